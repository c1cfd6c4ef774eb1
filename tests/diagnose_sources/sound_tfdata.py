import tensorflow as tf

def decode(path):
    image = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)
    return tf.image.resize(image, [224, 224]) / 255.0

files = tf.data.Dataset.list_files("photos/*/*.jpg")
ds = (files.cache().shuffle(100_000).map(decode, num_parallel_calls=tf.data.AUTOTUNE)
      .shuffle(64).batch(2).prefetch(tf.data.AUTOTUNE))
disk = files.map(decode).cache("/tmp/decoded").batch(8)
model = tf.keras.applications.MobileNetV2(weights=None, classes=3)
model.compile("adam", "sparse_categorical_crossentropy")
model.fit(ds, epochs=10)
