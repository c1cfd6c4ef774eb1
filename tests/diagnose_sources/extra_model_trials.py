import gc
import keras
from keras import layers
import numpy as np
def make_model(h):
    inputs = keras.Input((20,))
    x = layers.LSTM(h)(inputs)
    return keras.Model(inputs, layers.Dense(1)(x))
X = np.random.rand(200, 20, 4); y = np.random.rand(200)
best = None
for trial in range(100):
    model = make_model(np.random.randint(4, 64))  # <- leak-graph
    model.compile(loss='mse', optimizer='adam')
    model.fit(X, y, verbose=0)
    score = model.evaluate(X, y)
    del model
    gc.collect()
