import tensorflow as tf
(ds_train, ds_val), info = tfds.load('stanford_dogs', split=['train', 'test'], as_supervised=True, with_info=True)
def prep(img, lbl):
    img = tf.image.resize(img, (224, 224))
    return tf.cast(img, tf.float32) / 255.0, lbl
ds_train = ds_train.map(prep, num_parallel_calls=tf.data.AUTOTUNE)
ds_train = ds_train.cache()  # <- shuffle-or-cache-buffer
ds_train = ds_train.shuffle(100).batch(32).prefetch(tf.data.AUTOTUNE)
