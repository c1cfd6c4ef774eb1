# SPDX-License-Identifier: Apache-2.0
"""Freezes ten training steps of three small networks in real Keras on TensorFlow.

    python tests/oracle/make_training.py tests/oracle      (tensorflow-cpu 2.21, keras 3.15)

Writes training.txt, which describes training.bin:

    net NAME BATCH SIDE CHANNELS CLASSES
    weight NAME COUNT TRAINED ERROR     ERROR: 2-norm of the float32 run's error in this gradient over
                                        the ten steps, against the float64 run
    step LOSS32 LOSS64

and training.bin, little endian. Each step: x (int8, in 64ths), classes (int8). Nets with BatchNorm
begin each step from the float32 run's weights; then follow all weights (f4), the momentum before the
step of the trained ones (f4), and their gradients in float64 (f8). Nets without: the weights at the
first step only, and two independent runs of ten steps. SGD with rate .05 and momentum .9.
"""
import os
import sys

import nets
import numpy as np
import keras
from keras import layers

STEPS, LR, MOMENTUM = 10, np.float32(.05), np.float32(.9)


def plain(side, channels, classes):
    x = inputs = keras.Input((side, side, channels))
    x = layers.Conv2D(8, 3, padding="same", activation="relu", name="conv1")(x)
    x = layers.MaxPooling2D(name="pool1")(x)
    x = layers.Conv2D(12, 3, strides=2, padding="same", activation="relu", name="conv2")(x)
    x = layers.Flatten(name="flatten")(x)
    x = layers.Dense(16, activation="relu", name="dense1")(x)
    return keras.Model(inputs, layers.Dense(classes, name="dense2")(x))


def bn_relu6(x, name):
    x = layers.BatchNormalization(name=name + "_bn")(x)
    return layers.ReLU(6, name=name + "_relu")(x)


def mobile(side, channels, classes):
    """MobileNet's blocks, both strides, and MobileNetV2's sum."""
    x = inputs = keras.Input((side, side, channels))
    x = bn_relu6(layers.Conv2D(6, 3, 2, padding="same", use_bias=False, name="conv1")(x), "conv1")
    x = bn_relu6(layers.DepthwiseConv2D(3, padding="same", use_bias=False, name="dw1")(x), "dw1")
    x = bn_relu6(layers.Conv2D(12, 1, padding="same", use_bias=False, name="pw1")(x), "pw1")
    x = layers.ZeroPadding2D(((0, 1), (0, 1)), name="pad2")(x)
    x = bn_relu6(layers.DepthwiseConv2D(3, 2, padding="valid", use_bias=False, name="dw2")(x), "dw2")
    x = y = bn_relu6(layers.Conv2D(16, 1, padding="same", use_bias=False, name="pw2")(x), "pw2")
    y = bn_relu6(layers.Conv2D(20, 1, padding="same", use_bias=False, name="expand")(y), "expand")
    y = bn_relu6(layers.DepthwiseConv2D(3, padding="same", use_bias=False, name="dw3")(y), "dw3")
    y = layers.Conv2D(16, 1, padding="same", use_bias=False, name="project")(y)
    y = layers.BatchNormalization(name="project_bn")(y)
    x = layers.Add(name="add")([x, y])
    x = layers.GlobalAveragePooling2D(keepdims=True, name="pool")(x)
    x = layers.Conv2D(classes, 1, padding="same", name="preds")(x)
    return keras.Model(inputs, layers.Reshape((classes,), name="reshape")(x))


NETS = {"plain": (plain, 8, 12, 2, 5),
        "cnn": (lambda s, c, k: nets.cnn(s, c, k, first=5, dense=9), 8, 12, 1, 4),
        "mobile": (mobile, 8, 16, 3, 6)}
lines, blob = [], []


def put(kind, *arrays):
    for a in arrays:
        blob.append(np.ascontiguousarray(a, kind).tobytes())


def batch_of(rng, n, side, channels, classes):
    y = rng.integers(0, classes, n).astype(np.int32)
    x = rng.integers(-40, 41, (n, side, side, channels)) + (y * 16)[:, None, None, None] // classes
    return x.astype(np.int8), y


def move(run, momentum, grads, real):
    for n in run.trained:
        momentum[n] = real(MOMENTUM) * momentum[n] - real(LR) * grads[n]
        run.weights[n].assign_add(momentum[n])


def freeze(name):
    build, n, *shape = NETS[name]
    rng = np.random.default_rng(len(name))
    narrow = nets.Run(lambda: build(*shape), "float32")
    nets.randomize(narrow, rng)
    wide = nets.Run(lambda: build(*shape), "float64")
    with_bn = any(w.endswith("moving_mean") for w in narrow.weights)
    start = narrow.values()
    wide.assign(start)
    momentum = {w: np.zeros(start[w].shape, np.float32) for w in narrow.trained}
    momentum64 = {w: np.zeros(start[w].shape) for w in narrow.trained}
    square = {w: 0.0 for w in narrow.weights}
    steps = []
    for k in range(STEPS):
        x8, y = batch_of(rng, n, *shape)
        x = x8.astype(np.float32) / 64
        values = narrow.values()
        put("i1", x8, y)
        if with_bn or k == 0:
            put("<f4", *values.values())
        if with_bn:
            wide.assign(values)
            put("<f4", *momentum.values())
        loss, g = narrow.gradients(x, y)
        loss64, g64 = wide.gradients(x, y)
        steps.append(f"step {loss:.9g} {loss64:.17g}")
        if with_bn:
            put("<f8", *g64.values())
            for w in narrow.trained:
                square[w] += np.sum(np.square(g[w] - g64[w]))
        else:
            move(wide, momentum64, g64, np.float64)
        move(narrow, momentum, g, np.float32)
    lines.append(f"net {name} {n} " + " ".join(map(str, shape)))
    for w, v in narrow.weights.items():
        lines.append(f"weight {w} {start[w].size} {int(w in narrow.trained)} {np.sqrt(square[w]):.9g}")
    lines.extend(steps)


for net in NETS:
    freeze(net)
with open(os.path.join(sys.argv[1], "training.txt"), "w") as f:
    f.write("# SPDX-License-Identifier: Apache-2.0\n# Written by make_training.py.\n" + "\n".join(lines) + "\n")
with open(os.path.join(sys.argv[1], "training.bin"), "wb") as f:
    f.write(b"".join(blob))
