import numpy as np
import tensorflow as tf
IMG_SIZE = (128, 128)
NUM = 60000
images = np.empty((NUM,) + IMG_SIZE + (3,), dtype=np.float32)  # <- whole-dataset
labels = np.empty((NUM,), dtype=np.int32)
for i in range(NUM):
    images[i] = tf.keras.utils.img_to_array(tf.keras.utils.load_img(f"img/{i}.jpg", target_size=IMG_SIZE)) / 255
model.fit(images, labels)
