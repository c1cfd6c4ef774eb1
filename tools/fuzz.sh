#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# usage: tools/fuzz.sh BUILD SECONDS [NAME...]
# Runs each libFuzzer program of BUILD/fuzz for SECONDS, starting from fuzz/corpus/<name>. What it
# finds new is kept in BUILD/fuzz/corpus/<name>; an input that fails is left in BUILD/fuzz and named.
set -u
cd "$(dirname "$0")/.." || exit 1
build=${1:?usage: tools/fuzz.sh BUILD SECONDS [NAME...]} seconds=${2:?}
shift 2
under=""
setarch -R true 2>/dev/null && under="setarch -R"
failed=0 n=0
for program in "$build"/fuzz/fuzz_*; do
    [ -x "$program" ] && [ -f "$program" ] || continue
    name=${program##*/fuzz_}
    if [ $# -gt 0 ] && [[ " $* " != *" $name "* ]]; then
        continue
    fi
    n=$((n + 1))
    mkdir -p "$build/fuzz/corpus/$name"
    echo "== fuzz $name, $seconds s"
    if ! $under "$program" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 \
        -print_final_stats=0 -verbosity=0 -artifact_prefix="$build/fuzz/$name-" \
        "$build/fuzz/corpus/$name" "fuzz/corpus/$name"; then
        echo "== fuzz $name: FAILED; the input is $build/fuzz/$name-*"
        failed=$((failed + 1))
    fi
done
echo "$((n - failed)) fuzzers passed, $failed failed"
[ $failed = 0 ] && [ $n -gt 0 ]
