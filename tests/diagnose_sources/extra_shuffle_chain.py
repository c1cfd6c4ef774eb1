import tensorflow as tf
BUFFER = 50000
def _load(p, l):
    return tf.image.resize(tf.io.decode_image(tf.io.read_file(p), expand_animations=False), [224, 224]), l
def get_ds(paths, labels):
    return (tf.data.Dataset.from_tensor_slices((paths, labels))
        .map(_load)
        .shuffle(BUFFER)  # <- shuffle-or-cache-buffer
        .batch(32))
