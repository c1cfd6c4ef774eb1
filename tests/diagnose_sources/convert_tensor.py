import os
import tensorflow as tf
from tensorflow.keras.preprocessing.image import load_img, img_to_array

def load_folder(root):
    data = []
    for name in sorted(os.listdir(root)):
        picture = load_img(os.path.join(root, name), target_size=(299, 299))
        data.append(img_to_array(picture))
    return data

train = load_folder("train")
x_train = tf.convert_to_tensor(train)  # <- whole-dataset
x_train = x_train / 255.0
net = tf.keras.applications.Xception(weights=None, classes=7)
net.compile(optimizer="sgd", loss="categorical_crossentropy")
