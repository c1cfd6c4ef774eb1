import tensorflow as tf
import h5py

with h5py.File("galaxies.h5", "r") as f:
    pictures = f["images"][:]
    kinds = f["kinds"][:]

ds = tf.data.Dataset.from_tensor_slices((pictures, kinds))  # <- whole-dataset
ds = ds.shuffle(1000).batch(64).prefetch(1)
model = tf.keras.applications.ResNet50(weights=None, classes=10, input_shape=(256, 256, 3))
model.compile("sgd", "sparse_categorical_crossentropy")
model.fit(ds, epochs=3)
