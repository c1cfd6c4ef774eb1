# %%
from tensorflow import keras
from tensorflow.keras import layers
import numpy as np
data = np.load("features_small.npy")
target = np.load("target.npy")
# %%
results = []
for lr in [1e-1, 1e-2, 1e-3, 1e-4]:
    for width in [16, 64, 256]:
        model = keras.Sequential()  # <- leak-graph
        model.add(layers.Dense(width, activation="relu"))
        model.add(layers.Dense(1))
        model.compile(keras.optimizers.Adam(lr), "mse")
        h = model.fit(data, target, epochs=10, verbose=0)
        results.append((lr, width, h.history["loss"][-1]))
