#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The guarantee on the CPU: peak resident memory, read from outside, never above --memory.

Five models at three budgets each (just what the plan needs, a tenth more, half more), 40 pictures of
96x96, batch 8, one epoch with validation and saving; and a 2 GB .npy with -M 400M. Where a control
group can be made the process runs in one of budget + 32 MiB, so that a violation is a kill.

usage: tests/nightly/budgets.py [--snug build/snug] [--big]
"""
import argparse
import json
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile

MIB = 1 << 20


def write_bmp(path, side, seed):
    draw = random.Random(seed)
    rows = bytes(draw.randrange(256) for _ in range(side * side * 3))
    header = struct.pack("<2sIHHIIiiHHIIiiII", b"BM", 54 + len(rows), 0, 0, 54, 40, side, side, 1,
                         24, 0, len(rows), 2835, 2835, 0, 0)
    with open(path, "wb") as out:
        out.write(header + rows)


def pictures(folder):
    for i in range(40):
        path = os.path.join(folder, "cat" if i % 2 else "dog")
        os.makedirs(path, exist_ok=True)
        write_bmp(os.path.join(path, "%02d.bmp" % i), 96, i)


def control_group(limit):
    base = "/sys/fs/cgroup"
    if not os.path.exists(os.path.join(base, "cgroup.controllers")):
        return None
    path = os.path.join(base, "snug-budget-%d" % os.getpid())
    try:
        os.mkdir(path)
        with open(os.path.join(path, "memory.max"), "w") as out:
            out.write(str(limit))
        return path
    except OSError:
        if os.path.isdir(path):
            os.rmdir(path)
        return None


def peak_of(command, group):
    """The exit code and the peak resident bytes that the kernel counted for the process itself."""
    pid = os.fork()
    if pid == 0:
        if group:
            with open(os.path.join(group, "cgroup.procs"), "w") as out:
                out.write(str(os.getpid()))
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        os.execv(command[0], command)
    _, status, usage = os.wait4(pid, 0)
    return os.waitstatus_to_exitcode(status), usage.ru_maxrss * 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--snug", default="build/snug")
    parser.add_argument("--big", action="store_true", help="the 2 GB .npy, too")
    options = parser.parse_args()
    snug = os.path.abspath(options.snug)
    work = tempfile.mkdtemp(prefix="snug-budgets-")
    violations, runs = 0, 0
    try:
        os.chdir(work)
        pictures("photos")
        cases = [(m, ["photos", "-m", m, "-s", "96", "-b", "8"]) for m in
                 ("mlp", "cnn", "mobilenet", "vgg16", "resnet50")]
        print("%-12s %8s %8s %8s %s" % ("model", "plan", "budget", "peak", ""))
        for name, arguments in cases:
            plan = json.loads(subprocess.run([snug, "plan", *arguments, "--json", "--quiet",
                                              "--no-calibration"], capture_output=True,
                                             check=True).stdout)
            for share in (1, 1.1, 1.5):
                budget = -(-int(plan["peak_bytes"] * share + (9 * MIB if share == 1 else 0)) // MIB)
                group = control_group((budget + 32) * MIB)
                command = [snug, "train", *arguments, "-e", "1", "-M", "%dM" % budget, "--quiet"]
                code, peak = peak_of(command, group)
                if group:
                    os.rmdir(group)
                bad = code != 0 or peak > budget * MIB
                violations += bad
                runs += 1
                print("%-12s %8.1f %8d %8.1f %s" % (name, plan["peak_bytes"] / MIB, budget,
                                                    peak / MIB, "VIOLATION, exit %d" % code
                                                    if bad else "ok"), flush=True)
        if options.big:
            runs += 1
            violations += big(snug)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    print("%d passed, %d failed" % (runs - violations, violations))
    return 1 if violations else 0


def big(snug):
    """2 GB of pictures in one array: 3,500 of 448x448x3 and their labels."""
    count, side = 3500, 448

    def npy(path, kind, shape, fill):
        text = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (kind, shape)
        text = text.ljust(117) + "\n"
        with open(path, "wb") as out:
            out.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode())
            for i in range(count):
                out.write(fill(i))
    image = os.urandom(side * side * 3)
    npy("x.npy", "|u1", (count, side, side, 3), lambda i: image)
    npy("y.npy", "<i4", (count,), lambda i: struct.pack("<i", i % 2))
    command = [snug, "train", "x.npy", "--labels", "y.npy", "-m", "cnn", "-s", "64", "-b", "16",
               "-e", "1", "--max-steps", "60", "-M", "400M", "--quiet"]
    code, peak = peak_of(command, control_group(432 * MIB))
    bad = code != 0 or peak > 400 * MIB
    print("%-12s %8s %8d %8.1f %s" % ("2 GB .npy", "", 400, peak / MIB,
                                      "VIOLATION, exit %d" % code if bad else "ok"))
    return bad


if __name__ == "__main__":
    sys.exit(main())
