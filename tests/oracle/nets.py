# SPDX-License-Identifier: Apache-2.0
"""Networks in Keras that equal those of snug's zoo, layer names included, without dropout; shared by
the scripts of this folder (tensorflow-cpu 2.21, keras 3.15)."""
import os

os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf
import keras
from keras import layers


def cnn(side, channels, classes, depth=2, first=32, dense=128):
    """snug's `cnn`: its own names are what Keras gives by itself in a new process."""
    x = inputs = keras.Input((side, side, channels))
    for i in range(depth):
        end = f"_{i}" if i else ""
        x = layers.Conv2D(first << i, 3, padding="same", use_bias=False, name="conv2d" + end)(x)
        x = layers.BatchNormalization(name="batch_normalization" + end)(x)
        x = layers.ReLU(name="re_lu" + end)(x)
        x = layers.MaxPooling2D(name="max_pooling2d" + end)(x)
    x = layers.Flatten(name="flatten")(x)
    x = layers.Dense(dense, activation="relu", name="dense")(x)
    return keras.Model(inputs, layers.Dense(classes, name="predictions")(x))


def zoo(name, side, channels, classes):
    """Ends in logits."""
    if name == "cnn":
        return cnn(side, channels, classes)
    make = {"vgg16": keras.applications.VGG16, "mobilenet": keras.applications.MobileNet,
            "mobilenetv2": keras.applications.MobileNetV2, "resnet50": keras.applications.ResNet50}[name]
    options = {"dropout": 0.0} if name == "mobilenet" else {}
    return make(weights=None, input_shape=(side, side, channels), classes=classes,
                classifier_activation=None, **options)


def weight_name(variable):
    layer, name = variable.path.split("/")[-2:]
    return layer + "/" + {"depthwise_kernel": "kernel"}.get(name, name)


class Run:
    """A model with its loss and gradients, in float32 or float64."""

    def __init__(self, build, dtype):
        keras.backend.set_floatx(dtype)
        keras.backend.clear_session()
        self.dtype = dtype
        self.model = build()
        self.loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        self.weights = {weight_name(v): v for v in self.model.weights}
        self.trained = [weight_name(v) for v in self.model.trainable_weights]
        self.step = tf.function(self._step)

    def _step(self, x, y):
        with tf.GradientTape() as tape:
            loss = self.loss(y, self.model(x, training=True))
        return loss, tape.gradient(loss, self.model.trainable_weights)

    def gradients(self, x, y):
        """Loss and gradients by name; moving statistics are updated."""
        keras.backend.set_floatx(self.dtype)
        loss, grads = self.step(tf.constant(x.astype(self.dtype)), tf.constant(y))
        return float(loss), {n: g.numpy() for n, g in zip(self.trained, grads)}

    def values(self):
        return {n: v.numpy() for n, v in self.weights.items()}

    def assign(self, values):
        for n, v in values.items():
            self.weights[n].assign(v.astype(self.dtype))


def randomize(run, rng):
    """Weights from which ten steps of SGD move every layer: variance kept through ReLUs."""
    for name, v in run.weights.items():
        shape = v.shape
        if name.endswith("/kernel"):
            depthwise = len(shape) == 4 and shape[3] == 1 and "dw" in name
            fan = np.prod(shape[:2]) if depthwise else np.prod(shape[:-1])
            v.assign(rng.normal(0, np.sqrt(2 / fan), shape).astype(np.float32))
        elif name.endswith(("/gamma", "/moving_variance")):
            v.assign(rng.uniform(.5, 1.5, shape).astype(np.float32))
        elif name.endswith(("/bias", "/beta", "/moving_mean")):
            v.assign(rng.normal(0, .1, shape).astype(np.float32))
