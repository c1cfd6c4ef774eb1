#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Decode and resize: snug's pipeline beside tf.data on the same photos, one thread each, interleaved.

    python bench/pipeline_peers.py FOLDER [--snug build/snug] [--size 224] [--rounds 5] [--fast]

FOLDER holds class folders. Prints whether the pixels are the same to the bit, then images a second
of processor time (best round of each) and the ratio. Needs tensorflow-cpu and numpy.
"""
import argparse
import os
import resource
import subprocess
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np
import tensorflow as tf


def files_of(folder):
    found = []
    for root, folders, names in os.walk(folder):
        folders.sort()
        found += [os.path.join(root, n) for n in sorted(names)]
    return found


def dataset(files, size):
    def load(path):
        image = tf.io.decode_image(tf.io.read_file(path), channels=3, expand_animations=False)
        return tf.image.resize(image, (size, size))

    options = tf.data.Options()
    options.threading.private_threadpool_size = 1
    options.threading.max_intra_op_parallelism = 1
    data = tf.data.Dataset.from_tensor_slices(files).map(load, num_parallel_calls=1)
    return data.batch(16).with_options(options)


def run_tensorflow(files, size, repeats):
    data = dataset(files, size).repeat(repeats).map(lambda x: x / 255.0)
    iterator = iter(data)
    next(iterator)  # the graph is built
    began, n = time.process_time(), 0
    for batch in iterator:
        n += len(batch)
    return n / (time.process_time() - began)


def run_snug(snug, folder, size, fast):
    command = [snug, "data", folder, "-s", str(size), "--data-threads", "1", "--quiet", "--json"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command + (["--fast-decode"] if fast else []), check=True,
                   stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def compare(snug, folder, files, size):
    with tempfile.TemporaryDirectory() as where:
        out = os.path.join(where, "x.npy")
        subprocess.run([snug, "data", folder, "-s", str(size), "--export", out, "--quiet"],
                       check=True, stdout=subprocess.DEVNULL)
        ours = np.load(out, mmap_mode="r")
        differ = at = 0
        for batch in dataset(files, size):
            theirs = batch.numpy()
            for image in theirs:
                differ += not np.array_equal(ours[at].view(np.uint32), image.view(np.uint32))
                at += 1
        print(f"pixels: {len(ours)} images, {differ} differ in any bit")
        return differ == 0 and at == len(ours)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("folder")
    p.add_argument("--snug", default="build/snug")
    p.add_argument("--size", type=int, default=224)
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--repeats", type=int, default=10, help="times the folder is gone through a round")
    p.add_argument("--fast", action="store_true", help="snug with --fast-decode")
    a = p.parse_args()
    files = files_of(a.folder)
    same = compare(a.snug, a.folder, files, a.size)
    with tempfile.TemporaryDirectory(dir=os.path.dirname(os.path.abspath(a.folder))) as many:
        for i in range(a.repeats):
            os.makedirs(os.path.join(many, str(i)))
            for k, f in enumerate(files):
                os.link(f, os.path.join(many, str(i), f"{k}_{os.path.basename(f)}"))
        best = {"snug": 0.0, "tf.data": 0.0}
        n = len(files) * a.repeats
        for _ in range(a.rounds):
            best["snug"] = max(best["snug"], n / run_snug(a.snug, many, a.size, a.fast))
            best["tf.data"] = max(best["tf.data"], run_tensorflow(files, a.size, a.repeats))
    for name, speed in best.items():
        print(f"{name:8} {speed:8.1f} images/s of processor time")
    print(f"ratio    {best['snug'] / best['tf.data']:8.2f}")
    raise SystemExit(0 if same else 1)


if __name__ == "__main__":
    main()
