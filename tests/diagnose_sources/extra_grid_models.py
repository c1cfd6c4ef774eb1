import itertools
import tensorflow as tf
import numpy as np
X = np.random.randn(1000, 50, 8).astype("float32")
Y = np.random.randn(1000, 1)
grid = itertools.product([16, 32], [0.1, 0.3], ["adam", "rmsprop"])
for units, drop, opt in grid:
    model = tf.keras.models.Sequential([  # <- leak-graph
        tf.keras.layers.LSTM(units),
        tf.keras.layers.Dropout(drop),
        tf.keras.layers.Dense(1)])
    model.compile(opt, "mse")
    model.fit(X, Y, epochs=3, verbose=0)
    print(units, drop, opt, model.evaluate(X, Y, verbose=0))
