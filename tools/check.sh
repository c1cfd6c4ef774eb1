#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# usage: tools/check.sh STAGE...      stages: release asan tsan onednn3 clang fmt
# Builds and runs each stage in turn, goes on after a failure, and ends with one line that sums up
# all of them.
set -u
cd "$(dirname "$0")/.." || exit 1
totals=$(mktemp)
trap 'rm -f "$totals"' EXIT
export RUN_TESTS_TOTALS=$totals
broken=""

stage() { # name build-target command...
    local name=$1 target=$2 begin=$SECONDS before
    shift 2
    echo "---- $name: build"
    if ! make --no-print-directory "$target"; then
        broken+=" $name(build)"
        return
    fi
    echo "---- $name: tests (built in $((SECONDS - begin)) s)"
    begin=$SECONDS
    before=$(wc -l <"$totals")
    if ! "$@" && [ "$(wc -l <"$totals")" = "$before" ]; then
        broken+=" $name(tests)" # failures among the tests are in the totals already
    fi
    echo "---- $name: $((SECONDS - begin)) s"
}

for name in "$@"; do
    case $name in
    release)
        stage release release-tests tools/run-tests.sh build
        ;;
    asan | tsan)
        stage "$name" "$name-tests" make --no-print-directory "check-$name"
        ;;
    onednn3)
        stage onednn3 deps-test make --no-print-directory check-onednn3
        ;;
    clang)
        stage clang clang-tests tools/run-tests.sh --quick build-clang
        ;;
    fmt)
        echo "---- format"
        make --no-print-directory fmt-check || broken+=" format"
        ;;
    *)
        echo "check.sh: no stage '$name'" >&2
        exit 2
        ;;
    esac
done

read -r passed failed skipped < <(awk '{ p += $1; f += $2; s += $3 }
    END { print p + 0, f + 0, s + 0 }' "$totals")
for what in $broken; do
    echo "FAILED: $what"
    failed=$((failed + 1))
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
