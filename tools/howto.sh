#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs each "$ snug ..." line in the code blocks of docs/howto/*.md from the source folder and writes
# what it prints below it. `tools/howto.sh --check` changes nothing and fails if a page differs.
#   usage: tools/howto.sh [--check] [SNUG]
cd "$(dirname "$0")/.." || exit 1
check=no
[ "$1" = --check ] && check=yes && shift
snug=${1:-build/snug}
status=0
fresh=$(mktemp) || exit 1
trap 'rm -f "$fresh"' EXIT
for page in docs/howto/*.md; do
    skip=no
    while IFS= read -r line || [ -n "$line" ]; do
        case $line in
        '```'*) skip=no ;;
        '$ snug '*)
            printf '%s\n' "$line"
            sh -c "\"$snug\" ${line#\$ snug }" 2>&1 </dev/null
            skip=yes
            continue
            ;;
        esac
        [ $skip = yes ] || printf '%s\n' "$line"
    done <"$page" >"$fresh"
    if ! cmp -s "$fresh" "$page"; then
        if [ $check = yes ]; then
            echo "$page: not what the command prints now; run tools/howto.sh"
            diff "$page" "$fresh"
            status=1
        else
            cat "$fresh" >"$page"
        fi
    fi
done
exit $status
