"""Flowers classifier, first version."""
import glob
import os

import cv2
import numpy as np
import tensorflow as tf
from tensorflow.keras import layers

IMG = 224
images, labels = [], []
for path in glob.glob("flowers/*/*.jpg"):
    img = cv2.imread(path)
    img = cv2.resize(img, (IMG, IMG))
    images.append(img)
    labels.append(os.path.basename(os.path.dirname(path)))

names = sorted(set(labels))
y = np.array([names.index(n) for n in labels])
X = np.array(images, dtype="float32") / 255.0  # <- whole-dataset
model = tf.keras.Sequential([
    layers.Input((IMG, IMG, 3)),
    layers.Conv2D(16, 3, activation="relu"),
    layers.GlobalAveragePooling2D(),
    layers.Dense(len(names), activation="softmax"),
])
model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(X, y, batch_size=2, epochs=10)
