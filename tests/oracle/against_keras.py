# SPDX-License-Identifier: Apache-2.0
"""Whole training steps of snug against real Keras on TensorFlow, as DESIGN.md's last figure words it.

    ninja -C build oracle_step_driver
    python tests/oracle/against_keras.py build [cnn|vgg16|mobilenet|mobilenetv2|resnet50 ...]

Without BatchNorm ten losses of whole runs from Keras' first weights are compared, in TensorFlow's
float32 and float64 ("32 from 64" is how far these part by themselves); the former must be met within
1e-4. With it, and wherever the start is "he" (weights that keep the variance through ReLUs), each
of ten steps begins from TensorFlow's float32 weights and optimizer state: the step's loss within 2e-5,
and the 2-norm error of each gradient against a float64 run of TensorFlow, over the ten steps, divided
by that of TensorFlow's own float32 run, at most 1.5: for the whole gradient ("all") and for each
tensor ("sum"). Beside it stands the median of the ten steps' ratios: a ReLU whose input is within
rounding of 0 is now and then open in one of the runs and shut in the others, and one such step
outweighs the nine others in the sum, in either's favour; a wrong kernel shows in both. Exits 1 when a
figure is missed.
"""
import argparse
import os
import subprocess
import sys
import tempfile

import nets
import numpy as np

MODELS = {"cnn": (28, 1, 10, 16), "vgg16": (32, 3, 10, 8), "mobilenet": (64, 3, 10, 8),
          "mobilenetv2": (64, 3, 10, 8), "resnet50": (64, 3, 10, 8)}
STEPS, LR, MOMENTUM = 10, .01, .9


class Driver:
    def __init__(self, build, folder, name, threads):
        side, channels, classes, batch = MODELS[name]
        self.folder = folder
        self.process = subprocess.Popen(
            [os.path.join(build, "tests", "oracle_step_driver"), name,
             *map(str, (side, channels, classes, batch, threads))],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.weights, self.trained, self.count = [], [], {}
        for line in self.process.stdout:
            if line == "ready\n":
                break
            _, weight, count, trained = line.split()
            self.weights.append(weight)
            self.count[weight] = int(count)
            if trained == "1":
                self.trained.append(weight)

    def order(self, verb, argument="", answers=False):
        self.process.stdin.write(f"{verb} {argument}\n")
        self.process.stdin.flush()
        return self.process.stdout.readline() if answers else None

    def put(self, verb, *arrays):
        path = os.path.join(self.folder, verb)
        with open(path, "wb") as f:
            for a in arrays:
                f.write(np.ascontiguousarray(a).tobytes())
        self.order(verb, path)

    def take(self, verb, names, like):
        path = os.path.join(self.folder, "out")
        self.order(verb, path, answers=True)
        flat = np.fromfile(path, "<f4")
        out, at = {}, 0
        for n in names:
            out[n] = flat[at:at + self.count[n]].reshape(like[n].shape)
            at += self.count[n]
        return out

    def step(self, lr):
        self.order("lr", repr(lr))
        return float(self.order("step", answers=True))

    def close(self):
        self.process.stdin.close()
        if self.process.wait():
            sys.exit("the driver failed")


def batch_of(rng, name):
    side, channels, classes, batch = MODELS[name]
    y = rng.integers(0, classes, batch).astype(np.int32)
    x = rng.random((batch, side, side, channels), dtype=np.float32)
    return x + (y[:, None, None, None] / np.float32(classes)).astype(np.float32), y


def norm(a):
    return np.sqrt(np.sum(np.square(np.asarray(a, np.float64))))


def check_names(driver, run):
    wrong = set(driver.weights) ^ set(run.weights)
    if wrong or set(driver.trained) != set(run.trained):
        sys.exit(f"other weights than Keras': {sorted(wrong)[:6]}")


def train(run, start, batches):
    """Losses of SGD with momentum from `start`, in the run's own precision."""
    real = np.dtype(run.dtype).type
    run.assign(start)
    momentum = {n: np.zeros(start[n].shape, real) for n in run.trained}
    losses = []
    for x, y in batches:
        loss, g = run.gradients(x, y)
        losses.append(loss)
        for n in run.trained:
            momentum[n] = real(MOMENTUM) * momentum[n] - real(LR) * g[n]
            run.weights[n].assign_add(momentum[n])
    return np.array(losses)


def compare_runs(driver, run, wide, batches, result):
    start = run.values()
    driver.put("weights", *[start[n] for n in driver.weights])
    ours = []
    for x, y in batches:
        driver.put("batch", x, y)
        ours.append(driver.step(LR))
    narrow, exact = train(run, start, batches), train(wide, start, batches)
    result["losses"] = narrow
    result["to 32"] = np.abs(ours - narrow) / narrow
    result["to 64"] = np.abs(ours - exact) / exact
    result["32 to 64"] = np.abs(narrow - exact) / exact


def compare_steps(driver, run, wide, batches, result):
    """Each step from the float32 run's weights and momentum."""
    momentum = {n: np.zeros(run.weights[n].shape, np.float32) for n in run.trained}
    rows, whole = [], []
    errors = {n: [] for n in run.weights}
    for x, y in batches:
        values = run.values()
        driver.put("weights", *[values[n] for n in driver.weights])
        driver.put("state", *[momentum[n] for n in driver.trained])
        driver.put("batch", x, y)
        ours = driver.step(LR)
        after = driver.take("save", driver.weights, values)
        driver.put("weights", *[values[n] for n in driver.weights])
        driver.step(1.0)
        g = driver.take("gradients", driver.trained, values)
        loss, g32 = run.gradients(x, y)
        wide.assign(values)
        exact, g64 = wide.gradients(x, y)
        rows.append((loss, abs(ours - loss) / loss, abs(ours - exact) / exact, abs(loss - exact) / exact))
        square = np.zeros(2)
        for n in run.trained:
            both = np.array([norm(g[n] - g64[n]) ** 2, norm(g32[n] - g64[n]) ** 2])
            errors[n].append(both)
            square += both
        whole.append(square)
        narrow, moved = run.values(), wide.values()
        for n in set(run.weights) - set(run.trained):
            errors[n].append([norm(after[n] - moved[n]) ** 2, norm(narrow[n] - moved[n]) ** 2])
        for n in run.trained:
            momentum[n] = np.float32(MOMENTUM) * momentum[n] - np.float32(LR) * g32[n]
            run.weights[n].assign_add(momentum[n])
    result["losses"], result["to 32"], result["to 64"], result["32 to 64"] = np.array(rows).T
    errors = {n: np.array(e) for n, e in errors.items()}
    with np.errstate(divide="ignore", invalid="ignore"):  # a step without any error of float32's
        typical = {n: np.nanmedian(np.sqrt(e[:, 0] / e[:, 1])) for n, e in errors.items()}
        total = {n: np.sqrt(e[:, 0].sum() / e[:, 1].sum()) for n, e in errors.items()}
    result["typical"] = {n: typical[n] for n in run.trained}
    result["total"] = {n: total[n] for n in run.trained}
    result["statistics"] = np.array([t for n, t in typical.items() if n not in run.trained] or [0])
    result["steps"] = np.sqrt(np.divide(*np.array(whole).T))
    result["whole"] = np.sqrt(np.sum(whole, 0))


def compare(build, folder, name, start, threads, steps):
    rng = np.random.default_rng(20261201)
    make = lambda: nets.zoo(name, *MODELS[name][:3])
    nets.keras.utils.set_random_seed(1)
    run = nets.Run(make, "float32")
    if start == "he":
        nets.randomize(run, rng)
    wide = nets.Run(make, "float64")
    driver = Driver(build, folder, name, threads)
    check_names(driver, run)
    batches = [batch_of(rng, name) for _ in range(steps)]
    result = {}
    by_steps = start == "he" or any(n.endswith("moving_mean") for n in run.weights)
    (compare_steps if by_steps else compare_runs)(driver, run, wide, batches, result)
    driver.close()
    return result


def report(name, start, result, worst):
    """Prints a line; whether a figure was missed."""
    line = f"{name + ', ' + start:18} {result['losses'][0]:8.4f} ->{result['losses'][-1]:8.4f}"
    for key in ("to 32", "to 64", "32 to 64"):
        line += f" {max(result[key]):9.1e}"
    if "typical" not in result:
        print(line, flush=True)
        return max(result["to 32"]) > 1e-4
    typical, total = (np.array(list(result[k].values())) for k in ("typical", "total"))
    all_of_it = result["whole"][0] / result["whole"][1]
    print(f"{line} {np.median(typical):7.2f} {typical.max():6.2f} {np.sum(typical > 1.5):3d} {total.max():7.2f} {np.sum(total > 1.5):3d}  "
          f"of {len(total):<4d} {all_of_it:6.2f} {np.median(result['steps']):7.2f} "
          f"{np.median(result['statistics']):8.2f} {result['statistics'].max():6.2f}", flush=True)
    for n in sorted(result["total"], key=result["total"].get, reverse=True)[:worst]:
        print(f"    {result['typical'][n]:6.2f} {result['total'][n]:6.2f}  {n}")
    return max(result["to 32"]) > 2e-5 or total.max() > 1.5 or all_of_it > 1.5


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("models", nargs="*", default=["cnn", "vgg16", "mobilenet", "resnet50"])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--worst", type=int, default=0, help="list the worst gradients")
    a = parser.parse_args()
    bad = False
    print("                      ten losses          loss differs               error of gradients / that "
          "of TensorFlow's float32 (tensors: worst, above 1.5)\n"
          "model, start                             from 32   from 64  32 from 64  typical  median >1.5     "
          "sum >1.5           all  a step   statistics")
    for name in a.models:
        for start in ("keras", "he"):
            with tempfile.TemporaryDirectory() as folder:
                result = compare(a.build, folder, name, start, a.threads, a.steps)
            bad |= report(name, start, result, a.worst)
    sys.exit(bad)


main()
