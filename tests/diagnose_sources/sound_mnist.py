import numpy as np
from tensorflow import keras
from tensorflow.keras import layers
import tensorflow as tf

(x_train, y_train), (x_test, y_test) = keras.datasets.mnist.load_data()
x_train = x_train.astype("float32") / 255
x_test = x_test.astype("float32") / 255
x_train = np.expand_dims(x_train, -1)
ds = tf.data.Dataset.from_tensor_slices((x_train, y_train)).cache().shuffle(60000).batch(128)
model = keras.Sequential([keras.Input((28, 28, 1)), layers.Conv2D(32, 3, activation="relu"),
                          layers.Flatten(), layers.Dense(10, activation="softmax")])
model.compile(loss="sparse_categorical_crossentropy", optimizer="adam")
model.fit(x_train, y_train, batch_size=128, epochs=3)
model.evaluate(tf.convert_to_tensor(x_test), y_test)
