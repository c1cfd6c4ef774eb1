#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# usage: tools/onednn3.sh
# Builds against oneDNN 3 (Debian 12 brings 2.6) in build-onednn3 and runs the tests that reach its
# kernels. The library comes from PyPI's wheels, fetched once, into build-onednn3/wheels; where they
# cannot be had it says why and counts one skipped test. JOBS: compilers at once (all processors).
set -u
cd "$(dirname "$0")/.." || exit 1
version=2023.2.0
build=build-onednn3
root=$build/onednn
tests=('unit/backend_*' 'ops/backends' 'oracle/ops' 'torture/training')

# Fetches the two wheels and unpacks them to $root, which appears only when it is whole.
# Returns 77 when they cannot be had.
fetch() {
    [ -d "$root" ] && return 0
    local part=$build/unpack wheel
    rm -rf "$part"
    mkdir -p "$build/wheels" "$part" || return 1
    timeout 120 python3 -m pip download --no-deps --disable-pip-version-check --retries 1 \
        --timeout 20 -d "$build/wheels" "onednn-cpu-gomp==$version" \
        "onednn-devel-cpu-gomp==$version" >"$build/pip.log" 2>&1 || return 77
    for wheel in "$build/wheels"/onednn_{cpu,devel_cpu}_gomp-$version-*.whl; do
        python3 -m zipfile -e "$wheel" "$part" || return 1
    done
    mkdir "$part/root" && cp -a "$part"/*.data/data/. "$part/root/" && mv "$part/root" "$root" &&
        rm -rf "$part"
}

fetch
case $? in
0) ;;
77)
    [ -n "${RUN_TESTS_TOTALS:-}" ] && echo "0 0 1" >>"$RUN_TESTS_TOTALS"
    echo "SKIPPED: oneDNN 3: pip could not fetch its wheels; the end of $build/pip.log:"
    tail -n 2 "$build/pip.log"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
    ;;
*)
    echo "onednn3.sh: the wheels in '$build/wheels' cannot be unpacked: remove them, try again" >&2
    exit 1
    ;;
esac

# What an earlier configuration found would be kept.
cmake -S . -G Ninja -B $build -UDNNL_LIBRARY -UDNNL_INCLUDE -DCMAKE_BUILD_TYPE=Release \
    -DSNUG_ONEDNN_ROOT="$PWD/$root" >/dev/null || exit 1
mapfile -t targets < <(tools/run-tests.sh --targets $build "${tests[@]}")
ninja -j "${JOBS:-$(nproc)}" -C $build "${targets[@]}" || exit 1
exec tools/run-tests.sh $build "${tests[@]}"
