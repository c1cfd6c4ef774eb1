import tensorflow as tf
train_ds = tf.keras.utils.image_dataset_from_directory("f", image_size=(180, 180), batch_size=32)
aug = tf.keras.Sequential([tf.keras.layers.RandomFlip("horizontal")])
train_ds = train_ds.map(lambda x, y: (aug(x), y)).prefetch(2)
names = tf.data.Dataset.list_files("g/*").shuffle(50000).cache()
val = names.take(100)
best = None
for lr in (1e-2, 1e-3):
    tf.keras.backend.clear_session()
    model = tf.keras.applications.MobileNetV2(weights=None, classes=5, input_shape=(180, 180, 3))
    model.compile(tf.keras.optimizers.Adam(lr), "sparse_categorical_crossentropy")
    model.fit(train_ds, epochs=2)
