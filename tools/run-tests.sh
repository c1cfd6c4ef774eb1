#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# usage: tools/run-tests.sh [--quick] [--targets] BUILD [PATTERN...]
# Runs the test programs that BUILD/tests.txt lists (made by CMake) and whose "folder/name" matches
# a pattern (none: all), the quick ones first, several at once; then those that tests/slow.txt
# matches, one after another. Prints each program's closing lines, and all it said when it failed;
# keeps going. Ends with "N passed, N failed, N skipped", counted in cmocka tests; exits 1 if any
# failed, if a program crashed, or if nothing ran.
#   --quick     without the slow ones
#   --targets   only prints the build targets of what would run
# RUN_TESTS_JOBS: how many at once (all processors). RUN_TESTS_TIMEOUT: seconds a program (900).
# RUN_TESTS_TOTALS: a file to which a line "passed failed skipped" is appended.
set -u
quick=0 targets=0
while [ $# -gt 0 ]; do
    case $1 in
    --quick) quick=1 ;;
    --targets) targets=1 ;;
    *) break ;;
    esac
    shift
done
build=${1:?usage: tools/run-tests.sh [--quick] [--targets] BUILD [PATTERN...]}
shift
root=$(cd "$(dirname "$0")/.." && pwd)
build=$(cd "$build" && pwd) || exit 1

matches() { # name pattern...
    local name=$1 pattern
    shift
    for pattern in "$@"; do
        # shellcheck disable=SC2053
        [[ $name == $pattern ]] && return 0
    done
    return 1
}

mapfile -t slow_patterns < <(grep -v '^#' "$root/tests/slow.txt" 2>/dev/null)
quick_list=() slow_list=()
while read -r name program; do
    [ $# -gt 0 ] && ! matches "$name" "$@" && continue
    if matches "$name" "${slow_patterns[@]}"; then
        [ $quick = 1 ] || slow_list+=("$name $program")
    else
        quick_list+=("$name $program")
    fi
done <"$build/tests.txt"

if [ $targets = 1 ]; then
    for entry in ${quick_list[@]+"${quick_list[@]}"} ${slow_list[@]+"${slow_list[@]}"}; do
        basename "${entry#* }"
    done
    exit 0
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Sanitizers of gcc 12 and clang 14 cannot cope with the address randomization of new kernels.
under=""
if grep -qs '^SNUG_SANITIZE:[A-Z]*=.' "$build/CMakeCache.txt" && setarch -R true 2>/dev/null; then
    under="setarch -R"
fi
export root build work under
export RUN_TESTS_TIMEOUT=${RUN_TESTS_TIMEOUT:-900}

run_one() { # "name program"
    local name=${1%% *} program=${1#* } out status passed failed skipped counts
    out=$work/${name//\//_}.out
    # The braces swallow what the shell says of a program that a signal ended.
    # shellcheck disable=SC2086
    { (cd "$root" && exec timeout -k 10 "$RUN_TESTS_TIMEOUT" $under "$build/$program") \
        >"$out" 2>&1 </dev/null; } 2>/dev/null
    status=$?
    counts=$(awk '
        /^\[  PASSED  \] [0-9]+ test\(s\)/ { p += $4 }
        /^\[  FAILED  \] [0-9]+ test\(s\)/ { f += $4 }
        /^\[  SKIPPED \] [0-9]+ test\(s\)/ { s += $4 }
        END { print p + 0, f + 0, s + 0 }' "$out")
    read -r passed failed skipped <<<"$counts"
    # A crash, a leak found at exit, or silence is a failure that cmocka did not count.
    if [ $status != 0 ] && [ "$failed" = 0 ]; then
        failed=1
    elif [ $((passed + failed + skipped)) = 0 ]; then
        failed=1
    fi
    echo "$passed $failed $skipped $name" >"$out.counts"
    if [ "$failed" = 0 ]; then
        { # one write, so that programs that run at once do not mix their lines
            echo "== $name"
            grep -E '^\[  (PASSED |SKIPPED)' "$out"
        } >"$out.shown"
    else
        {
            echo "== $name: FAILED (exit status $status$([ $status = 124 ] && echo ', timed out'))"
            cat "$out"
            echo "== end of $name"
        } >"$out.shown"
    fi
    cat "$out.shown"
}
export -f run_one

jobs=${RUN_TESTS_JOBS:-$(nproc)}
if [ ${#quick_list[@]} -gt 0 ]; then
    printf '%s\0' "${quick_list[@]}" | xargs -0 -n 1 -P "$jobs" bash -c 'run_one "$1"' run-one
fi
for entry in ${slow_list[@]+"${slow_list[@]}"}; do
    run_one "$entry"
done

cat "$work"/*.counts >"$work/counts" 2>/dev/null
read -r passed failed skipped < <(awk '{ p += $1; f += $2; s += $3 }
    END { print p + 0, f + 0, s + 0 }' "$work/counts")
awk '$2 > 0 { print "FAILED: " $4 }' "$work/counts"
[ -n "${RUN_TESTS_TOTALS:-}" ] && echo "$passed $failed $skipped" >>"$RUN_TESTS_TOTALS"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
