#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training steps of snug, TensorFlow and PyTorch side by side: three processes, one step each in
turn, the best step of each, and the peak resident memory of each read from outside (VmHWM).

usage: bench/peers.py [--snug build/bench/bench_step] [--tensorflow PYTHON] [--torch PYTHON]
                      [--rounds 6] [--threads 2] [MODEL:BATCH ...]
"""
import argparse
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
CASES = ["mobilenet:16", "mobilenetv2:16", "resnet50:16", "vgg16:2", "squeezenet:16",
         "mobilenet:2", "resnet50:2"]
ASKED = {"mobilenet:16": (2.3, .35), "mobilenetv2:16": (2.6, .45), "resnet50:16": (1.5, .45),
         "vgg16:2": (1.8, .5), "squeezenet:16": (1.6, .45), "mobilenet:2": (None, .2),
         "resnet50:2": (None, .27)}


class Peer:
    """A process that makes a step for each line it gets."""

    def __init__(self, command, threads):
        env = dict(os.environ, OMP_NUM_THREADS=str(threads), GOMP_SPINCOUNT="20000",
                   MALLOC_ARENA_MAX="2", MALLOC_TRIM_THRESHOLD_="131072",
                   MALLOC_MMAP_THRESHOLD_="131072") if "bench_step" in command[0] else dict(
                       os.environ, OMP_NUM_THREADS=str(threads))
        for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
            env.pop(name, None)
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, env=env)
        line = self.process.stdout.readline().split()
        if not line or line[0] != "ready":
            raise RuntimeError("%s did not start" % command[0])
        self.version = line[1] if len(line) > 1 else ""
        self.seconds = []

    def step(self):
        self.process.stdin.write("step\n")
        self.process.stdin.flush()
        self.seconds.append(float(self.process.stdout.readline()))

    def end(self):
        with open("/proc/%d/status" % self.process.pid) as status:
            peak = [line for line in status if line.startswith("VmHWM")][0]
        self.process.stdin.close()
        self.process.wait()
        return int(peak.split()[1]) / 1024


def run(case, options):
    model, batch = case.split(":")
    arguments = [model, batch, str(options.threads), str(options.side)]
    peers = {"snug": Peer([options.snug, *arguments, "--serve"], options.threads)}
    for name, python in (("tensorflow", options.tensorflow), ("torch", options.torch)):
        if python:
            script = os.path.join(HERE, "peer_%s.py" % name)
            peers[name] = Peer([python, script, *arguments], options.threads)
    for _ in range(options.rounds + 1):
        for peer in peers.values():
            peer.step()
    row = {"case": case}
    for name, peer in peers.items():
        best = min(peer.seconds[1:])
        row[name] = {"version": peer.version, "best_step_seconds": best,
                     "images_per_second": int(batch) / best, "peak_mib": peer.end()}
    others = [row[n] for n in row if n not in ("case", "snug")]
    if others:
        row["speed"] = min(o["best_step_seconds"] for o in others) / row["snug"]["best_step_seconds"]
        row["memory"] = row["snug"]["peak_mib"] / min(o["peak_mib"] for o in others)
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--snug", default="build/bench_step")
    parser.add_argument("--tensorflow", default="")
    parser.add_argument("--torch", default="")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--side", type=int, default=224)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("cases", nargs="*", default=CASES)
    options = parser.parse_args()
    print("%-16s %18s %18s %18s %8s %7s %8s %7s" % ("", "snug img/s MiB", "tensorflow", "torch",
                                                   "speed", "asked", "memory", "asked"))
    for case in options.cases or CASES:
        row = run(case, options)
        if options.json:
            print(json.dumps(row))
            continue
        cells = ["%8.2f %9.0f" % (row[n]["images_per_second"], row[n]["peak_mib"])
                 if n in row else "-" for n in ("snug", "tensorflow", "torch")]
        speed, memory = ASKED.get(case, (None, None))
        print("%-16s %18s %18s %18s %8s %7s %8s %7s" % (
            case, *cells, "%.2fx" % row["speed"] if "speed" in row else "-", speed or "-",
            "%.2fx" % row["memory"] if "memory" in row else "-", memory or "-"), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
