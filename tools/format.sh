#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# usage: tools/format.sh [--check]
# Formats every C file of the tree with clang-format 14; --check only names those that differ.
# Another version would format differently, and is refused.
set -u
cd "$(dirname "$0")/.." || exit 1
tool=""
for candidate in clang-format-14 clang-format; do
    if "$candidate" --version 2>/dev/null | grep -q 'version 14\.'; then
        tool=$candidate
        break
    fi
done
if [ -z "$tool" ]; then
    echo "format.sh: clang-format 14 is missing (Debian: apt-get install clang-format-14)" >&2
    exit 1
fi
folders=()
for folder in include src cli tests fuzz bench examples; do
    [ -d $folder ] && folders+=($folder)
done
mapfile -d '' -t files < <(find "${folders[@]}" -name '*.[ch]' -print0 | sort -z)
if [ "${1:-}" = --check ]; then
    "$tool" --dry-run --Werror "${files[@]}" && echo "format: ${#files[@]} files are as they should be"
else
    "$tool" -i "${files[@]}"
fi
