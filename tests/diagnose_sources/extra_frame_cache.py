import tensorflow as tf
import pandas as pd
df = pd.read_csv("train.csv")
def load_image(path, label):
    image = tf.io.read_file(path)
    image = tf.image.decode_png(image, channels=3)
    image = tf.image.resize(image, [600, 600])
    image = image / 255.0
    return image, label
train = tf.data.Dataset.from_tensor_slices((df["path"].values, df["label"].values))
train = train.map(load_image).cache().shuffle(500).batch(8).prefetch(1)  # <- shuffle-or-cache-buffer
