#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# How fast `snug diagnose` reads: a log of SIZE bytes (2 GB) in a temporary folder, once of training
# lines with the failure at the end, once with a reading of memory in every line (the slow case).
# Prints MB/s of processor time and the peak resident memory.
#
#     bench/diagnose_speed.sh [SNUG] [SIZE]
snug=${1:-build/snug}
size=${2:-2000000000}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT INT TERM

python3 - "$snug" "$size" "$work/train.log" <<'PY'
import os, resource, subprocess, sys

snug, size, path = sys.argv[1], int(sys.argv[2]), sys.argv[3]
END = ("RuntimeError: CUDA out of memory. Tried to allocate 36.00 MiB (GPU 0; 11.17 GiB total "
       "capacity; 2.10 GiB already allocated; 20.44 MiB free; 2.31 GiB reserved in total by "
       "PyTorch)\n")
KINDS = {
    "training lines": "2024-03-05 12:%02d:%02d,118 INFO trainer: epoch %d step %d loss: 0.4%03d "
                      "lr 0.0001 images/s 811.4\n",
    "memory in every line": "12:%02d:%02d epoch %d step %d loss 0.4%03d memory usage: 5003.2 MB\n",
}
for name, line in KINDS.items():
    block = "".join(line % (i % 60, i % 59, i % 90, i, i % 1000) for i in range(8000))
    with open(path, "w") as f:
        for _ in range(size // len(block)):
            f.write(block)
        f.write(END)
    best = None
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        out = subprocess.run([snug, "diagnose", "--json", path], stdout=subprocess.PIPE).stdout
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        took = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        best = took if best is None else min(best, took)
    assert b'"other-process"' in out, out[:200]
    print("%-22s %5.0f MB/s, peak %d MiB" % (name, os.path.getsize(path) / 1e6 / best,
                                             after.ru_maxrss / 1024))
PY
