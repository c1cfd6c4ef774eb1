# %%
import numpy as np
import tensorflow as tf
x = np.load("images.npy", mmap_mode="r")
y = np.load("labels.npy")
# %%
def batches():
    for i in range(0, len(x), 32):
        yield np.array(x[i:i + 32], dtype="float32") / 255, y[i:i + 32]
ds = tf.data.Dataset.from_generator(batches, output_signature=(
    tf.TensorSpec((None, 224, 224, 3)), tf.TensorSpec((None,), tf.int64)))
# %%
model = tf.keras.applications.ResNet50(weights=None, classes=10)
model.compile("sgd", "sparse_categorical_crossentropy")
model.fit(ds.prefetch(2), epochs=2)
