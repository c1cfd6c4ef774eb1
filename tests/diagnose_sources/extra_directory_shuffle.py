import tensorflow as tf
ds = tf.keras.preprocessing.image_dataset_from_directory("imgs", image_size=(224,224), batch_size=None)
ds = ds.shuffle(buffer_size=10000).batch(32)  # <- shuffle-or-cache-buffer
