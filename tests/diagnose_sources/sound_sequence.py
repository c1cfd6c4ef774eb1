import os
import numpy as np
import cv2
from tensorflow import keras

class Batches(keras.utils.Sequence):
    def __init__(self, names, labels, batch_size=16, dim=(224, 224), n_channels=3):
        self.names, self.labels = names, labels
        self.batch_size, self.dim, self.n_channels = batch_size, dim, n_channels

    def __len__(self):
        return len(self.names) // self.batch_size

    def __getitem__(self, index):
        part = self.names[index * self.batch_size:(index + 1) * self.batch_size]
        X = np.empty((self.batch_size, *self.dim, self.n_channels), dtype="float32")
        images = []
        for n in part:
            images.append(cv2.resize(cv2.imread(n), self.dim))
        X = np.array(images) / 255.0
        return X, np.array(self.labels[index * self.batch_size:(index + 1) * self.batch_size])

def generator(files, batch=8):
    while True:
        images = []
        for f in np.random.choice(files, batch):
            images.append(cv2.imread(f))
        yield np.stack(images)

names = sorted(os.listdir("train"))
labels = np.array([int(n.split("_")[0]) for n in names])
for seed in range(3):
    keras.backend.clear_session()
    model = keras.applications.MobileNet(weights=None, classes=5)
    model.compile("adam", "sparse_categorical_crossentropy")
    model.fit(Batches(names, labels), epochs=2)
