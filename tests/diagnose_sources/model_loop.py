import numpy as np
import tensorflow as tf
from tensorflow.keras.layers import Dense, Input, Dropout
from tensorflow.keras.models import Model
from sklearn.model_selection import KFold

def build(units, rate):
    inp = Input(shape=(64,))
    h = inp
    for u in units:
        h = Dense(u, activation="relu")(h)
        h = Dropout(rate)(h)
    out = Dense(1)(h)
    m = Model(inputs=inp, outputs=out)
    m.compile(optimizer="adam", loss="mse")
    return m

x = np.random.rand(2000, 64)
y = np.random.rand(2000)
scores = {}
for units in ([64], [128, 64], [256, 128, 64]):
    for fold, (tr, te) in enumerate(KFold(10).split(x)):
        net = build(units, 0.2)  # <- leak-graph
        net.fit(x[tr], y[tr], epochs=20, verbose=0)
        scores[(len(units), fold)] = net.evaluate(x[te], y[te], verbose=0)
