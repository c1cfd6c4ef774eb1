import tensorflow as tf

AUTOTUNE = tf.data.AUTOTUNE

def decode(path):
    label = tf.strings.split(path, "/")[-2]
    image = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)
    image = tf.image.resize(image, [512, 512])
    return tf.cast(image, tf.float32) / 255.0, label

def make(pattern, batch):
    ds = tf.data.Dataset.list_files(pattern, shuffle=True)
    ds = ds.map(decode, num_parallel_calls=AUTOTUNE)
    ds = ds.cache()  # <- shuffle-or-cache-buffer
    ds = ds.batch(batch)
    return ds.prefetch(AUTOTUNE)

train = make("photos/train/*/*.jpg", 16)
