import numpy as np
from tensorflow import keras
x = np.random.random((1000, 20)); y = np.random.randint(2, size=(1000, 1))
(a, b), (c, d) = keras.datasets.cifar10.load_data()
a = a.reshape(-1, 3072).astype('float32') / 255
m = keras.Sequential([keras.layers.Dense(64, activation='relu'), keras.layers.Dense(10)])
m.compile('rmsprop', 'sparse_categorical_crossentropy')
m.fit(a, b, epochs=5)
preds = np.array([m.predict(c[i:i+100]) for i in range(0, 1000, 100)])
layers = []
for n in [32, 64]:
    layers.append(keras.layers.Dense(n))
e = np.zeros((1000, 1000))
emb = np.load('glove_embeddings.npy')
