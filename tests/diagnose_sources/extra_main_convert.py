#!/usr/bin/env python
import argparse, pathlib
import tensorflow as tf
from PIL import Image
import numpy as np

def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("root")
    args = ap.parse_args()
    xs = []
    ys = []
    for idx, d in enumerate(sorted(pathlib.Path(args.root).iterdir())):
        for f in d.glob("*.jpeg"):
            with Image.open(f) as im:
                xs.append(np.asarray(im.resize((224, 224)), dtype=np.float32) / 255.)
            ys.append(idx)
    images = tf.convert_to_tensor(xs)  # <- whole-dataset
    labels = tf.convert_to_tensor(ys)
    model = tf.keras.applications.VGG16(weights=None, classes=10)
    model.compile(optimizer="adam", loss="sparse_categorical_crossentropy")
    model.fit(images, labels, batch_size=2, epochs=10)

if __name__ == "__main__":
    main()
