# SPDX-License-Identifier: Apache-2.0
"""TensorFlow's side of bench/peers.py: reads "step" lines, makes one training step each, answers
with its seconds. usage: peer_tensorflow.py MODEL BATCH THREADS SIDE"""
import os
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
import keras
import numpy as np
import tensorflow as tf
from keras import layers

name, batch, threads, side = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
tf.config.threading.set_intra_op_parallelism_threads(threads)
tf.config.threading.set_inter_op_parallelism_threads(threads)
keras.utils.set_random_seed(1)


def squeezenet():
    def conv(x, filters, kernel, strides=1):
        return layers.Conv2D(filters, kernel, strides, "same" if strides == 1 else "valid",
                             activation="relu")(x)

    def fire(x, squeeze, expand):
        x = conv(x, squeeze, 1)
        return layers.Concatenate()([conv(x, expand, 1), conv(x, expand, 3)])
    image = keras.Input((side, side, 3))
    x = layers.MaxPooling2D(3, 2)(conv(image, 64, 3, 2))
    x = layers.MaxPooling2D(3, 2)(fire(fire(x, 16, 64), 16, 64))
    x = layers.MaxPooling2D(3, 2)(fire(fire(x, 32, 128), 32, 128))
    x = fire(fire(fire(fire(x, 48, 192), 48, 192), 64, 256), 64, 256)
    x = layers.Conv2D(1000, 1, activation="relu")(layers.Dropout(.5)(x))
    return keras.Model(image, layers.Softmax()(layers.GlobalAveragePooling2D()(x)))


applications = {"mobilenet": keras.applications.MobileNet, "vgg16": keras.applications.VGG16,
                "mobilenetv2": keras.applications.MobileNetV2,
                "resnet50": keras.applications.ResNet50}
model = squeezenet() if name == "squeezenet" else applications[name](
    weights=None, input_shape=(side, side, 3))
model.compile(optimizer=keras.optimizers.SGD(.01, momentum=.9),
              loss="sparse_categorical_crossentropy")
x = tf.constant(np.random.default_rng(1).random((batch, side, side, 3), dtype=np.float32))
y = tf.constant(np.arange(batch) * 7 % 1000)
print("ready", tf.__version__, flush=True)
for line in sys.stdin:
    start = time.perf_counter()
    float(model.train_on_batch(x, y))
    print(time.perf_counter() - start, flush=True)
