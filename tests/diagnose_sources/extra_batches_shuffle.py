import tensorflow as tf
paths = tf.data.Dataset.list_files("x/*.jpg")
ds = paths.map(lambda p: tf.image.resize(tf.image.decode_jpeg(tf.io.read_file(p)), (224, 224)))
ds = ds.batch(32)
ds = ds.shuffle(1024)  # <- shuffle-or-cache-buffer
