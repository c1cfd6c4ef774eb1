# SPDX-License-Identifier: Apache-2.0
"""Freezes what real TensorFlow and Keras compute for each operator: forward and gradients.

    python tests/oracle/make_ops.py tests/oracle      (tensorflow-cpu 2.21, keras 3.15)

Writes ops.txt, the list of cases, and ops.f32, their numbers (4 bytes each, little endian). A case:

    case NAME
    op NAME key=v,v ...
    in|out|dout|din f32|i32 DIMS OFFSET     (or "absent"), in the operator's order of operands
    grad f32 DIMS OFFSET                    (updates: one a step; `out` is then w after each step)
"""
import os
import sys

os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
import numpy as np
import tensorflow as tf
import keras
from keras import layers

rng = np.random.default_rng(20261130)
lines, blob, at = [], [], 0


def uniform(*shape, lo=-1.0, hi=1.0):
    return rng.uniform(lo, hi, shape).astype(np.float32)


def put(role, value):
    global at
    if value is None:
        lines.append(f"{role} absent")
        return
    value = np.asarray(value)
    kind = "i32" if value.dtype.kind == "i" else "f32"
    value = np.ascontiguousarray(value, dtype="<i4" if kind == "i32" else "<f4")
    dims = ",".join(str(d) for d in value.shape) if value.shape else "scalar"
    lines.append(f"{role} {kind} {dims} {at}")
    blob.append(value.tobytes())
    at += value.size


def text(attrs):
    def one(v):
        return ",".join(repr(float(x)) if isinstance(x, float) else str(int(x)) if not isinstance(x, str) else x
                        for x in (v if isinstance(v, (list, tuple)) else [v]))
    return "".join(f" {k}={one(v)}" for k, v in attrs.items())


def case(name, op, attrs, inputs, f, wanted=None, extra=()):
    """f(*tensors) is what TensorFlow computes; extra: further expected outputs, functions too."""
    tensors = [None if x is None else tf.constant(x) for x in inputs]
    with tf.GradientTape() as tape:
        for t in tensors:
            if t is not None and t.dtype == tf.float32:
                tape.watch(t)
        y = f(*tensors)
        dout = uniform(*y.shape) if y.shape.rank else np.float32(1)
        total = tf.reduce_sum(y * dout)
    watched = [t for t in tensors if t is not None and t.dtype == tf.float32]
    grads = iter(tape.gradient(total, watched))
    lines.append(f"case {name}")
    lines.append(f"op {op}{text(attrs)}")
    for x in inputs:
        put("in", x)
    y = y.numpy()
    put("out", y.reshape(1) if y.shape == () else y)
    for g in extra:
        put("out", g(*tensors).numpy())
    put("dout", dout.reshape(1) if y.shape == () else dout)
    for i, t in enumerate(tensors):
        g = next(grads) if t is not None and t.dtype == tf.float32 else None
        keep = t is not None and t.dtype == tf.float32 and (wanted is None or i in wanted)
        put("din", g.numpy() if keep else None)  # a gradient that is missing is an error


def same(n, k, s, d=1):
    out = -(-n // s)
    total = max((out - 1) * s + (k - 1) * d + 1 - n, 0)
    return total // 2, total - total // 2


def layer_of(cls, weights, *args, **kwargs):
    """A function of (x, *weights) that runs a Keras layer with those weights."""
    layer = cls(*args, **kwargs)

    def f(x, *w):
        if not layer.built:
            layer.build(x.shape)
        with keras.StatelessScope([(v, t) for v, t in zip(layer.weights, w)]):
            return layer(x)
    return f


def conv(name, x, k, o, stride=(1, 1), padding="valid", dilation=(1, 1), groups=1, bias=True, act=None,
         pads=None, scale=1.0):
    kh, kw = k
    c = x.shape[3]
    w = uniform(kh, kw, c // groups, o) * np.float32(scale)
    b = uniform(o) if bias else None
    pad = [0, 0, 0, 0]
    if pads:
        pad = [*pads[0], *pads[1]]
    elif padding == "same":
        pad = [*same(x.shape[1], kh, stride[0], dilation[0]), *same(x.shape[2], kw, stride[1], dilation[1])]
    run = layer_of(layers.Conv2D, 2, o, k, strides=stride, padding=padding, dilation_rate=dilation,
                   groups=groups, use_bias=bias, activation=act)

    def f(x, w, b):
        if pads:
            x = tf.pad(x, [[0, 0], pads[0], pads[1], [0, 0]])
        return run(x, w, b) if bias else run(x, w)
    attrs = dict(stride=stride, dilation=dilation, pad=pad, groups=groups)
    if act:
        attrs["act"] = ["relu", 0.0, 6.0 if act == "relu6" else 0.0, 0.0]
    case(f"conv2d {name}", "conv2d", attrs, [x, w, b], f)


def depthwise(name, x, k, mult, stride=1, padding="valid", dilation=1):
    c = x.shape[3]
    w = uniform(*k, 1, c * mult)
    b = uniform(c * mult)
    pad = [0, 0, 0, 0]
    if padding == "same":
        pad = [*same(x.shape[1], k[0], stride, dilation), *same(x.shape[2], k[1], stride, dilation)]
    run = layer_of(layers.DepthwiseConv2D, 2, k, strides=stride, padding=padding, depth_multiplier=mult,
                   dilation_rate=dilation)
    case(f"depthwise {name}", "conv2d",
         dict(stride=[stride] * 2, dilation=[dilation] * 2, pad=pad, groups=c),
         [x, w, b], lambda x, w, b: run(x, tf.reshape(w, [*k, c, mult]), b))


def transposed(name, x, k, o, stride=(1, 1), padding="valid", dilation=(1, 1)):
    w = uniform(*k, o, x.shape[3])
    layer = layers.Conv2DTranspose(o, k, strides=stride, padding=padding, dilation_rate=dilation, use_bias=False)
    hw = layer.compute_output_shape(x.shape)[1:3]
    pad = [0, 0, 0, 0]
    if padding == "same":
        pad = [*same(hw[0], k[0], stride[0], dilation[0]), *same(hw[1], k[1], stride[1], dilation[1])]
    run = layer_of(layers.Conv2DTranspose, 1, o, k, strides=stride, padding=padding, dilation_rate=dilation,
                   use_bias=False)
    case(f"transposed {name}", "conv2d_dx",
         dict(stride=stride, dilation=dilation, pad=pad, groups=1, in_hw=hw), [x, w], run)


def convolutions():
    x = uniform(2, 7, 5, 3)
    conv("valid 3x3", x, (3, 3), 4)
    conv("same 3x3", x, (3, 3), 4, padding="same")
    conv("same 3x3 stride 2 odd", uniform(2, 7, 9, 3), (3, 3), 5, (2, 2), "same")
    conv("same 3x3 stride 2 even", uniform(2, 8, 6, 3), (3, 3), 4, (2, 2), "same")
    conv("valid stride 2,1", uniform(1, 9, 6, 2), (3, 2), 3, (2, 1))
    conv("same 2x2 stride 3", uniform(2, 8, 7, 2), (2, 2), 3, (3, 3), "same")
    conv("1x1 stride 2", uniform(2, 7, 7, 5), (1, 1), 6, (2, 2))
    conv("1x1 no bias", uniform(3, 4, 5, 17), (1, 1), 20, bias=False)
    conv("5x3 same", uniform(1, 9, 8, 4), (5, 3), 3, padding="same")
    conv("1x7 same", uniform(1, 6, 9, 3), (1, 7), 4, padding="same")
    conv("dilated same", uniform(1, 9, 8, 3), (3, 3), 4, padding="same", dilation=(2, 2))
    conv("dilated valid", uniform(1, 9, 10, 3), (3, 2), 4, dilation=(2, 3))
    conv("groups 2", uniform(2, 6, 5, 4), (3, 3), 6, padding="same", groups=2)
    conv("groups 3 stride 2", uniform(2, 7, 7, 6), (3, 3), 9, (2, 2), "same", groups=3)
    conv("explicit", uniform(2, 6, 5, 3), (3, 3), 4, (2, 2), pads=[[1, 2], [0, 3]])
    conv("explicit 7x7 as ResNet", uniform(1, 15, 13, 3), (7, 7), 8, (2, 2), pads=[[3, 3], [3, 3]])
    conv("relu", uniform(2, 6, 5, 3), (3, 3), 20, padding="same", act="relu")
    conv("relu6", uniform(2, 6, 5, 3), (3, 3), 8, padding="same", act="relu6", scale=5.0)
    conv("1 channel", uniform(2, 9, 9, 1), (3, 3), 16)
    conv("one pixel", uniform(2, 1, 1, 8), (3, 3), 4, padding="same")
    conv("32 channels", uniform(1, 6, 6, 32), (3, 3), 33, padding="same")
    depthwise("same", uniform(2, 7, 6, 5), (3, 3), 1, padding="same")
    depthwise("same stride 2", uniform(2, 7, 6, 20), (3, 3), 1, 2, "same")
    depthwise("valid stride 2 5x5", uniform(1, 9, 8, 8), (5, 5), 1, 2)
    depthwise("multiplier 2", uniform(2, 6, 7, 3), (3, 3), 2)
    depthwise("multiplier 3 same", uniform(1, 5, 5, 4), (3, 2), 3, padding="same")
    depthwise("dilated", uniform(1, 8, 9, 4), (3, 3), 1, 1, "same", 2)
    transposed("valid stride 2", uniform(2, 4, 5, 3), (3, 3), 4, (2, 2))
    transposed("same stride 2", uniform(2, 4, 3, 3), (3, 3), 4, (2, 2), "same")
    transposed("same stride 2 4x4", uniform(1, 5, 4, 6), (4, 4), 5, (2, 2), "same")
    transposed("same stride 3 2x2", uniform(1, 4, 3, 3), (2, 2), 2, (3, 3), "same")
    transposed("valid stride 3 2x2", uniform(1, 4, 3, 3), (2, 2), 2, (3, 3))
    transposed("same stride 1,2", uniform(1, 4, 3, 3), (3, 5), 2, (1, 2), "same")


def dense():
    for name, shape, o, act, bias in [("plain", (5, 7), 4, None, True), ("no bias", (3, 33), 17, None, False),
                                      ("relu", (6, 20), 35, "relu", True), ("relu6", (4, 9), 8, "relu6", True),
                                      ("4-D", (2, 3, 2, 5), 6, None, True), ("one output", (4, 6), 1, None, True)]:
        x = uniform(*shape, lo=-3, hi=3)
        w = uniform(shape[-1], o)
        b = uniform(o) if bias else None
        attrs = {"act": ["relu", 0.0, 6.0 if act == "relu6" else 0.0, 0.0]} if act else {}
        run = layer_of(layers.Dense, 2, o, activation=act, use_bias=bias)
        case(f"dense {name}", "dense", attrs, [x, w, b],
             (lambda x, w, b, run=run: run(x, w, b)) if bias else (lambda x, w, b, run=run: run(x, w)))
    case("bias_add 4-D", "bias_add", {}, [uniform(2, 3, 4, 5), uniform(5)], tf.nn.bias_add)


def norms():
    def bn(name, shape, eps=1e-3, scale=True, center=True, relu=None):
        c = shape[-1]
        gamma = uniform(c, lo=0.5, hi=1.5) if scale else None
        beta = uniform(c) if center else None
        axes = list(range(len(shape) - 1))
        attrs = dict(epsilon=eps)
        if relu is not None:
            attrs["act"] = ["relu", 0.0, relu, 0.0]

        def act(y):
            return y if relu is None else tf.nn.relu6(y) if relu else tf.nn.relu(y)

        def f(x, gamma, beta):
            layer = layers.BatchNormalization(epsilon=eps, scale=scale, center=center)
            layer.build(x.shape)
            given = [t for t in (gamma, beta) if t is not None]
            with keras.StatelessScope([(v, t) for v, t in zip(layer.trainable_weights, given)]):
                return act(layer(x, training=True))
        x = uniform(*shape, lo=-2, hi=3)
        case(f"batch_norm {name}", "batch_norm", attrs, [x, gamma, beta], f,
             extra=(lambda x, g, b: tf.nn.moments(x, axes)[0], lambda x, g, b: tf.nn.moments(x, axes)[1]))

        def inference(x, gamma, beta, mean, var):
            layer = layers.BatchNormalization(epsilon=eps, scale=scale, center=center)
            layer.build(x.shape)
            given = [t for t in (gamma, beta, mean, var) if t is not None]
            with keras.StatelessScope([(v, t) for v, t in zip(layer.weights, given)]):
                return act(layer(x, training=False))
        case(f"batch_norm_apply {name}", "batch_norm_apply", attrs,
             [x, gamma, beta, uniform(c), uniform(c, lo=0.2, hi=2)], inference, wanted=[0, 1, 2])
    bn("4-D", (3, 4, 5, 6))
    bn("2-D", (7, 5))
    bn("no scale", (2, 3, 3, 4), scale=False)
    bn("no center", (2, 3, 3, 4), center=False, eps=1.001e-5)
    bn("neither", (2, 3, 3, 20), scale=False, center=False)
    bn("relu", (2, 3, 4, 20), relu=0.0)
    bn("relu6", (2, 5, 4, 8), relu=6.0)
    bn("one sample", (1, 2, 2, 16))
    layer = layers.BatchNormalization(momentum=0.99)
    x = uniform(4, 3, 3, 5, lo=1, hi=3)
    layer.build(x.shape)
    mean, var = uniform(5), uniform(5, lo=0.5, hi=1)
    layer.moving_mean.assign(mean)
    layer.moving_variance.assign(var)
    layer(x, training=True)
    m, v = tf.nn.moments(tf.constant(x), [0, 1, 2])
    for name, old, value, new in [("mean", mean, m, layer.moving_mean), ("variance", var, v, layer.moving_variance)]:
        lines.extend([f"case moving_average {name}", "op moving_average momentum=0.99"])
        put("in", old), put("in", value.numpy()), put("out", new.numpy())
    for name, shape in [("2-D", (4, 9)), ("4-D", (2, 3, 2, 6))]:
        c = shape[-1]
        run = layer_of(layers.LayerNormalization, 2, epsilon=1e-3)
        case(f"layer_norm {name}", "group_norm", dict(epsilon=1e-3, groups=0),
             [uniform(*shape), uniform(c, lo=0.5, hi=2), uniform(c)], run)
    for name, g, shape in [("2", 2, (2, 3, 4, 6)), ("4", 4, (3, 2, 2, 8)), ("instance", 5, (2, 3, 3, 5)),
                           ("one", 1, (2, 3, 3, 4))]:
        c = shape[-1]
        run = layer_of(layers.GroupNormalization, 2, g, epsilon=1e-3)
        case(f"group_norm {name}", "group_norm", dict(epsilon=1e-3, groups=g),
             [uniform(*shape, lo=-1, hi=2), uniform(c, lo=0.5, hi=2), uniform(c)], run)
    run = layer_of(layers.GroupNormalization, 0, 2, epsilon=1e-3, scale=False, center=False)
    case("group_norm bare", "group_norm", dict(epsilon=1e-3, groups=2), [uniform(2, 3, 3, 4), None, None],
         lambda x, g, b: run(x))


def activations():
    x = uniform(3, 5, 7, 4, lo=-8, hi=8)
    a = keras.activations
    for name, kind, p, f in [
            ("relu", "relu", (0.0, 0.0, 0.0), a.relu), ("relu6", "relu", (0.0, 6.0, 0.0), a.relu6),
            ("relu max 2.5", "relu", (0.0, 2.5, 0.0), lambda x: a.relu(x, max_value=2.5)),
            ("leaky", "relu", (0.3, 0.0, 0.0), lambda x: a.leaky_relu(x, 0.3)),
            ("relu threshold", "relu", (0.0, 0.0, 1.5), lambda x: a.relu(x, threshold=1.5)),
            ("relu all", "relu", (0.1, 4.0, 0.5), lambda x: a.relu(x, 0.1, 4.0, 0.5)),
            ("elu", "elu", (1.0, 0.0, 0.0), a.elu), ("elu 0.7", "elu", (0.7, 0.0, 0.0), lambda x: a.elu(x, 0.7)),
            ("gelu", "gelu", (0.0, 0.0, 0.0), a.gelu),
            ("gelu_tanh", "gelu_tanh", (0.0, 0.0, 0.0), lambda x: a.gelu(x, approximate=True)),
            ("silu", "silu", (0.0, 0.0, 0.0), a.silu), ("hard_silu", "hard_silu", (0.0, 0.0, 0.0), a.hard_silu),
            ("sigmoid", "sigmoid", (0.0, 0.0, 0.0), a.sigmoid),
            ("hard_sigmoid", "hard_sigmoid", (0.0, 0.0, 0.0), a.hard_sigmoid),
            ("tanh", "tanh", (0.0, 0.0, 0.0), a.tanh)]:
        case(f"activation {name}", "activation", {"act": [kind, *p]}, [x], f)
    x = uniform(2, 3, 4, 5)
    run = layer_of(layers.PReLU, 1)
    case("prelu full", "prelu", {}, [x, uniform(3, 4, 5)], run)
    run2 = layer_of(layers.PReLU, 1, shared_axes=[1, 2])
    case("prelu shared", "prelu", {}, [x, uniform(1, 1, 5)], run2)
    x = x.copy()
    x[0, 0] = 0
    case("prelu at zero", "prelu", {}, [x, uniform(1, 1, 5)], run2)
    case("softmax 2-D", "softmax", {}, [uniform(5, 11, lo=-6, hi=6)], keras.activations.softmax)
    case("softmax 4-D", "softmax", {}, [uniform(2, 3, 2, 10, lo=-3, hi=3)], keras.activations.softmax)
    case("softmax large", "softmax", {}, [uniform(3, 20, lo=-200, hi=200)], keras.activations.softmax)


def pools():
    def pool(kind, name, x, window, stride, padding):
        cls = layers.MaxPooling2D if kind == "max" else layers.AveragePooling2D
        pad = [0, 0, 0, 0]
        if padding == "same":
            pad = [*same(x.shape[1], window[0], stride[0]), *same(x.shape[2], window[1], stride[1])]
        case(f"{kind}_pool {name}", "pool2d",
             dict(kind=[kind], window=window, stride=stride, pad=pad, save_index=kind == "max"),
             [x], cls(window, strides=stride, padding=padding))
    for kind in ("max", "average"):
        pool(kind, "2x2", uniform(2, 6, 4, 5), (2, 2), (2, 2), "valid")
        pool(kind, "2x2 odd", uniform(2, 7, 5, 3), (2, 2), (2, 2), "valid")
        pool(kind, "3x3 s2 same", uniform(2, 7, 8, 3), (3, 3), (2, 2), "same")
        pool(kind, "3x3 s1 same", uniform(1, 5, 6, 20), (3, 3), (1, 1), "same")
        pool(kind, "3x2 s1,2", uniform(1, 6, 7, 4), (3, 2), (1, 2), "valid")
        pool(kind, "1x1 s2", uniform(1, 5, 5, 3), (1, 1), (2, 2), "valid")
        pool(kind, "2x2 s3 same", uniform(1, 8, 7, 3), (2, 2), (3, 3), "same")
        pool(kind, "all", uniform(2, 4, 3, 3), (4, 3), (4, 3), "valid")
    tied = np.maximum(np.round(uniform(2, 8, 8, 4) * 2) / 2, 0)
    pool("max", "ties 2x2", tied, (2, 2), (2, 2), "valid")
    pool("max", "ties 3x3 s2 same", tied, (3, 3), (2, 2), "same")
    pool("max", "17x17", uniform(1, 18, 19, 2), (17, 17), (1, 1), "valid")
    for keep in (False, True):
        for kind, cls in (("max", layers.GlobalMaxPooling2D), ("average", layers.GlobalAveragePooling2D)):
            case(f"global_{kind}_pool{' keepdims' if keep else ''}", "global_pool",
                 dict(kind=[kind], keepdims=keep), [uniform(2, 3, 5, 7)], cls(keepdims=keep))
    case("global_max_pool ties", "global_pool", dict(kind=["max"], keepdims=False),
         [np.maximum(np.round(uniform(3, 4, 4, 5)), 0)], layers.GlobalMaxPooling2D())


def shapes():
    x = uniform(2, 5, 4, 3)
    case("pad2d", "pad2d", dict(pad=[1, 2, 0, 3]), [x], layers.ZeroPadding2D(((1, 2), (0, 3))))
    case("crop2d", "crop2d", dict(pad=[1, 2, 0, 1]), [x], layers.Cropping2D(((1, 2), (0, 1))))
    case("upsample2d nearest", "upsample2d", dict(factor=[2, 3], bilinear=0), [x], layers.UpSampling2D((2, 3)))
    for name, f, shape in [("2x2", (2, 2), (2, 5, 4, 3)), ("3x2", (3, 2), (1, 4, 5, 2)), ("thin", (2, 4), (1, 1, 3, 2)),
                           ("5x1", (5, 1), (1, 3, 3, 2))]:
        case(f"upsample2d bilinear {name}", "upsample2d", dict(factor=list(f), bilinear=1), [uniform(*shape)],
             layers.UpSampling2D(f, interpolation="bilinear"))
    a, b, c = uniform(2, 3, 4, 5), uniform(2, 3, 4, 2), uniform(2, 3, 4, 7)
    case("concat channels", "concat", dict(axis=3), [a, b, c], lambda *t: layers.Concatenate()(list(t)))
    case("concat rows", "concat", dict(axis=1), [a, uniform(2, 2, 4, 5)], lambda *t: layers.Concatenate(axis=1)(list(t)))
    case("concat 2-D", "concat", dict(axis=1), [uniform(3, 4), uniform(3, 6)], lambda *t: layers.Concatenate()(list(t)))
    case("slice channels", "slice", dict(axis=3, start=1, length=3), [a], lambda x: x[..., 1:4])
    case("slice rows", "slice", dict(axis=1, start=1, length=2), [a], lambda x: x[:, 1:])
    case("slice columns", "slice", dict(axis=2, start=0, length=3), [a], lambda x: x[:, :, :3])
    case("reshape flatten", "reshape", dict(shape=[-1, 60]), [a], layers.Flatten())
    case("reshape", "reshape", dict(shape=[-1, 5, 12]), [a], layers.Reshape((5, 12)))
    case("permute", "permute", dict(perm=[0, 3, 1, 2]), [a], layers.Permute((3, 1, 2)))


def arithmetic():
    shape = (2, 3, 4, 5)
    kinds = [("add", layers.Add), ("sub", layers.Subtract), ("mul", layers.Multiply), ("max", layers.Maximum)]
    for kind, cls in kinds:
        case(f"binary {kind}", "binary", dict(kind=[kind]), [uniform(*shape), uniform(*shape)],
             lambda a, b, cls=cls: cls()([a, b]))
    case("binary div", "binary", dict(kind=["div"]), [uniform(*shape), uniform(*shape, lo=0.5, hi=2)], tf.divide)
    case("binary add relu", "binary", dict(kind=["add"], act=["relu", 0.0, 0.0, 0.0]),
         [uniform(*shape), uniform(*shape)], lambda a, b: tf.nn.relu(a + b))
    tied = np.round(uniform(*shape))
    case("binary max ties", "binary", dict(kind=["max"]), [tied, np.round(uniform(*shape))],
         lambda a, b: layers.Maximum()([a, b]))
    for kind, f in [("add", tf.add), ("sub", tf.subtract), ("mul", tf.multiply), ("div", tf.divide), ("max", tf.maximum)]:
        for name, sb in [("gate", (2, 1, 1, 5)), ("vector", (5,)), ("map", (2, 3, 4, 1)), ("inner", (1, 3, 1, 5))]:
            case(f"binary {kind} {name}", "binary", dict(kind=[kind]),
                 [uniform(*shape), uniform(*sb, lo=0.5, hi=1.5)], f)
    case("binary mul swapped", "binary", dict(kind=["mul"]), [uniform(2, 1, 1, 5), uniform(*shape)], tf.multiply)
    case("binary div both", "binary", dict(kind=["div"]), [uniform(2, 1, 4, 1), uniform(3, 1, 5, lo=0.5, hi=2)], tf.divide)
    x = uniform(3, 4, 5, lo=0.5, hi=2)
    for kind, v, off, f in [("add", 0.7, 0.0, lambda x: x + 0.7), ("mul", -1.3, 0.0, lambda x: x * -1.3),
                            ("div", 1.7, 0.0, lambda x: x / 1.7), ("sub", 0.3, 0.0, lambda x: x - 0.3),
                            ("rsub", 1.1, 0.0, lambda x: 1.1 - x), ("rdiv", 2.3, 0.0, lambda x: 2.3 / x)]:
        case(f"scalar {kind}", "scalar", dict(kind=[kind], value=v, offset=off), [x], f)
    case("scalar rescaling", "scalar", dict(kind=["affine"], value=1 / 127.5, offset=-1.0),
         [uniform(2, 3, 3, 3, lo=0, hi=255)], layers.Rescaling(1 / 127.5, -1.0))


def losses():
    n, k = 6, 7
    x = uniform(n, k, lo=-4, hi=4)
    classes = rng.integers(0, k, n).astype(np.int32)
    onehot = np.eye(k, dtype=np.float32)[classes]
    soft = rng.dirichlet(np.ones(k), n).astype(np.float32)
    weight = uniform(n, lo=0.2, hi=2)
    K = keras.losses

    def add(name, kind, target, loss, x=x, smoothing=0.0, delta=1.0):
        for w in (None, weight):
            case(f"loss {name}{' weighted' if w is not None else ''}", "loss",
                 dict(kind=[kind], smoothing=smoothing, delta=delta), [x, target, w],
                 lambda x, t, w: loss(tf.reshape(t, [-1, 1]) if t.shape.rank == 1 else t, x, sample_weight=w),
                 wanted=[0])
    add("sparse", "softmax_cross_entropy", classes, K.SparseCategoricalCrossentropy(from_logits=True))
    add("one-hot", "softmax_cross_entropy", onehot, K.CategoricalCrossentropy(from_logits=True))
    add("soft", "softmax_cross_entropy", soft, K.CategoricalCrossentropy(from_logits=True))
    add("smoothed", "softmax_cross_entropy", onehot, K.CategoricalCrossentropy(from_logits=True, label_smoothing=0.1),
        smoothing=0.1)
    smooth = K.CategoricalCrossentropy(from_logits=True, label_smoothing=0.2)

    def sparse_smoothed(t, x, sample_weight=None):
        return smooth(tf.one_hot(tf.reshape(t, [-1]), k), x, sample_weight=sample_weight)
    add("sparse smoothed", "softmax_cross_entropy", classes, sparse_smoothed, smoothing=0.2)
    add("large logits", "softmax_cross_entropy", classes, K.SparseCategoricalCrossentropy(from_logits=True), x=x * 50)
    bits = rng.integers(0, 2, (n, k)).astype(np.float32)
    add("sigmoid", "sigmoid_cross_entropy", bits, K.BinaryCrossentropy(from_logits=True))
    add("sigmoid smoothed", "sigmoid_cross_entropy", bits, K.BinaryCrossentropy(from_logits=True, label_smoothing=0.2),
        smoothing=0.2)
    one = uniform(n, 1, lo=-3, hi=3)
    binary = K.BinaryCrossentropy(from_logits=True)
    add("sigmoid classes", "sigmoid_cross_entropy", rng.integers(0, 2, n).astype(np.int32),
        lambda t, x, sample_weight=None: binary(tf.cast(t, tf.float32), x, sample_weight=sample_weight), x=one)
    target = uniform(n, k, lo=-4, hi=4)
    add("mse", "mse", target, K.MeanSquaredError())
    add("mae", "mae", target, K.MeanAbsoluteError())
    add("huber", "huber", target, K.Huber(delta=1.0))
    add("huber 2.5", "huber", target, K.Huber(delta=2.5), delta=2.5)
    tied = target.copy()
    tied[::2] = x[::2]
    add("mae at zero", "mae", tied, K.MeanAbsoluteError())


def updates():
    def run(name, optimizer, l2=0.0, scale=1.0, **attrs):
        w = uniform(7, 5)
        variable = keras.Variable(w, name="w")
        lines.append(f"case update {name}")
        lines.append("op update" + text(dict(kind=[attrs.pop("kind")], lr=float(optimizer.learning_rate.numpy()),
                                             l2=l2, **attrs)))
        put("in", w)
        optimizer.build([variable])
        for _ in range(3):
            g = uniform(7, 5) * np.float32(scale)
            put("grad", g)
            if l2:
                with tf.GradientTape() as tape:
                    total = tf.reduce_sum(variable.value * g) + keras.regularizers.L2(l2)(variable.value)
                g = tape.gradient(total, variable.value).numpy()
            optimizer.apply([tf.constant(g)], [variable])
            put("out", variable.numpy())
    o = keras.optimizers
    run("sgd", o.SGD(0.1), kind="sgd")
    run("sgd decay", o.SGD(0.1, weight_decay=0.01), kind="sgd", weight_decay=0.01)
    run("sgd l2", o.SGD(0.1), l2=0.003, kind="sgd")
    run("sgd momentum", o.SGD(0.1, momentum=0.9), kind="sgd", momentum=0.9)
    run("sgd nesterov", o.SGD(0.05, momentum=0.9, nesterov=True), kind="sgd", momentum=0.9, nesterov=1)
    run("sgd clip value", o.SGD(0.1, clipvalue=0.3), kind="sgd", clip_value=0.3)
    run("sgd clip norm", o.SGD(0.1, clipnorm=0.5), kind="sgd", clip_norm=0.5)
    run("sgd clip norm idle", o.SGD(0.1, clipnorm=50.0), kind="sgd", clip_norm=50.0)
    run("sgd clip global", o.SGD(0.1, momentum=0.9, global_clipnorm=0.7), kind="sgd", momentum=0.9, clip_global=0.7)
    run("sgd clip global idle", o.SGD(0.1, global_clipnorm=70.0), kind="sgd", clip_global=70.0)
    run("sgd all", o.SGD(0.1, momentum=0.9, nesterov=True, weight_decay=0.02, clipnorm=1.0), l2=0.01, kind="sgd",
        momentum=0.9, nesterov=1, weight_decay=0.02, clip_norm=1.0)
    run("adam", o.Adam(0.01), kind="adam", beta1=0.9, beta2=0.999, epsilon=1e-7)
    run("adam decay l2", o.Adam(0.01, weight_decay=0.05), l2=0.01, kind="adam", beta1=0.9, beta2=0.999, epsilon=1e-7,
        weight_decay=0.05)
    run("adam small", o.Adam(0.001, beta_1=0.8, beta_2=0.99, epsilon=1e-3), scale=1e-4, kind="adam", beta1=0.8,
        beta2=0.99, epsilon=1e-3)
    run("adamw", o.AdamW(0.01), kind="adamw", beta1=0.9, beta2=0.999, epsilon=1e-7, weight_decay=0.004)
    run("rmsprop", o.RMSprop(0.01), kind="rmsprop", rho=0.9, epsilon=1e-7)
    run("rmsprop momentum", o.RMSprop(0.01, momentum=0.9), kind="rmsprop", rho=0.9, epsilon=1e-7, momentum=0.9)
    run("rmsprop centered", o.RMSprop(0.01, centered=True), kind="rmsprop", rho=0.9, epsilon=1e-7, centered=1)
    run("rmsprop both", o.RMSprop(0.01, momentum=0.8, centered=True, weight_decay=0.01), kind="rmsprop", rho=0.9,
        epsilon=1e-7, momentum=0.8, centered=1, weight_decay=0.01)
    run("adagrad", o.Adagrad(0.01), kind="adagrad", epsilon=1e-7)
    run("lion", o.Lion(0.001), kind="lion", beta1=0.9, beta2=0.99)
    run("lion decay", o.Lion(0.001, weight_decay=0.1), kind="lion", beta1=0.9, beta2=0.99, weight_decay=0.1)


def main():
    folder = sys.argv[1]
    keras.utils.set_random_seed(1)
    for part in (convolutions, dense, norms, activations, pools, shapes, arithmetic, losses, updates):
        part()
    with open(os.path.join(folder, "ops.txt"), "w") as f:
        f.write(f"# made by make_ops.py from tensorflow {tf.__version__}, keras {keras.__version__}\n")
        f.write("\n".join(lines) + "\nend\n")
    with open(os.path.join(folder, "ops.f32"), "wb") as f:
        f.write(b"".join(blob))
    print(sum(l.startswith("case") for l in lines), "cases,", at * 4, "bytes")


main()
