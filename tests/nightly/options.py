#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The command with options and values drawn at random: whatever is typed ends with one of the exit
codes that the help names, says something, and leaves the sanitizers silent.

usage: tests/nightly/options.py [--snug build-asan/snug] [--runs 500] [--seed 1]
"""
import argparse
import os
import random
import re
import subprocess
import sys
import tempfile

from budgets import write_bmp

CODES = (0, 1, 2, 3, 4, 130)
LIMIT = 60  # seconds
VERBS = ["train", "plan", "evaluate", "predict", "summary", "devices", "data", "ps", "help",
         "diagnose"]
VALUES = ["0", "1", "-1", "2", "16", "999999999999", "9223372036854775807", "1e9", "nan", "inf", "",
          "x", "auto", "sgd", "adam:lr=0.1", "sgd:momentum=2", "lion", "softmax", "mse", "huber",
          "cosine:warmup=0.5", "step:every=1", "plateau", "8x8", "1x1", "0x0", "32", "100000", "1M",
          "40M", "1G", "50%", "0%", "photos", "table.csv", "run", "nope", "cpu", "null:2GiB",
          "null:0", "GTX 950", "hflip", "rotate=400", "hflip,zoom=9", "mlp", "cnn",
          "mobilenet:width=0.25,classes=3", "squeezenet", "resnet18:width=0.1", "caffe", "crop",
          "antialias", "label", "/dev/null", "/", "\udcff", "a" * 300]
NAMES = ["photos", "table.csv", "run", "nope", "/dev/null", "mlp", "cnn", "photos/cat/0.bmp",
         "text.txt", ""]
# What would end other processes, or wait for somebody.
LEFT_OUT = {"--end", "--watch", "-w", "--"}


def make_inputs(snug, folder):
    draw = random.Random(3)
    for i in range(16):
        kind = os.path.join(folder, "photos", ("cat", "dog", "2", "10")[i % 4])
        os.makedirs(kind, exist_ok=True)
        write_bmp(os.path.join(kind, "%d.bmp" % (i // 4)), draw.choice([4, 20, 36]), i)
    with open(os.path.join(folder, "table.csv"), "w") as out:
        out.write("a,b,label\n")
        for _ in range(40):
            a, b = draw.random(), draw.random()
            out.write("%.3f,%.3f,%d\n" % (a, b, a > b))
    with open(os.path.join(folder, "text.txt"), "w") as out:
        out.write("RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB\n")
    subprocess.run([snug, "train", "photos", "-m", "cnn", "-s", "8", "-b", "4", "-e", "1", "-o", "run",
                    "--quiet"], cwd=folder, check=True, capture_output=True)


def options_of(snug):
    out = {}
    for verb in VERBS:
        page = subprocess.run([snug, verb, "--help"], capture_output=True, text=True, check=True).stdout
        out[verb] = [o for o in re.findall(r"(--[a-z0-9-]+|(?<= )-[a-zA-Z](?=,))", page)
                     if o not in LEFT_OUT]
    return out


def command_of(draw, options):
    verb = draw.choice(VERBS)
    words = [verb] + draw.choices(NAMES, k=draw.choice([0, 1, 1, 1, 2]))
    for _ in range(draw.choice([0, 1, 2, 3, 4])):
        if options[verb]:
            words.append(draw.choice(options[verb]))
            if draw.random() < .75:
                words.append(draw.choice(VALUES))
    if verb == "train":
        words += ["--max-steps", "2", "-e", "1", "-b", "2", "--quiet"]
    if verb == "plan":
        words.append("--no-calibration")
    return words


def trouble(run):
    """What is wrong with how it ended; None: nothing."""
    err = run.stderr.decode("latin1")
    if run.returncode not in CODES:
        return "exit %d: %s" % (run.returncode, err[-2000:])
    if "Sanitizer" in err or "runtime error" in err:
        return err[-2000:]
    if run.returncode not in (0, 130) and not err.strip() and not run.stdout.strip():
        return "exit %d without a word" % run.returncode
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--snug", default="build-asan/snug")
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    a = parser.parse_args()
    snug, draw, bad = os.path.abspath(a.snug), random.Random(a.seed), 0
    with tempfile.TemporaryDirectory() as folder:
        make_inputs(snug, folder)
        options = options_of(snug)
        for _ in range(a.runs):
            words = command_of(draw, options)
            try:
                run = subprocess.run([snug, *map(os.fsencode, words)], cwd=folder, timeout=LIMIT,
                                     stdin=subprocess.DEVNULL, capture_output=True)
                wrong = trouble(run)
            except subprocess.TimeoutExpired:
                wrong = "still running after %d s" % LIMIT
            if wrong:
                bad += 1
                print("snug %s: %s" % (" ".join(map(repr, words)), wrong), flush=True)
    print("%d passed, %d failed" % (a.runs - bad, bad))
    sys.exit(bad > 0)


main()
