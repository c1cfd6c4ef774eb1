import numpy as np, os
import tensorflow as tf
from keras.models import Sequential
from keras.layers import *
from keras.utils import to_categorical
def read_data(dir_):
    X, Y = [], []
    for c, cls in enumerate(os.listdir(dir_)):
        for fn in os.listdir(os.path.join(dir_, cls)):
            im = tf.keras.preprocessing.image.load_img(os.path.join(dir_, cls, fn), target_size=(224,224))
            X.append(np.array(im))
            Y.append(c)
    return np.array(X), np.array(Y)  # <- whole-dataset
x_train, y_train = read_data('train')
x_test, y_test = read_data('test')
x_train = x_train / 255.
model = Sequential()
model.add(Conv2D(8, 3, input_shape=(224,224,3)))
model.add(Flatten())
model.add(Dense(10))
model.compile('adam', 'mse')
model.fit(x_train, to_categorical(y_train), epochs=3, validation_data=(x_test, to_categorical(y_test)))
