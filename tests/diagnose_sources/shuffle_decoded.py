import tensorflow as tf

def parse(example):
    feats = tf.io.parse_single_example(example, {
        "image": tf.io.FixedLenFeature([], tf.string),
        "label": tf.io.FixedLenFeature([], tf.int64),
    })
    img = tf.io.decode_jpeg(feats["image"], channels=3)
    img = tf.image.resize(img, (300, 300))
    return img, feats["label"]

dataset = (
    tf.data.TFRecordDataset(tf.io.gfile.glob("records/train-*"))
    .map(parse, num_parallel_calls=8)
    .shuffle(buffer_size=20000)  # <- shuffle-or-cache-buffer
    .batch(32)
    .repeat()
)
model = tf.keras.applications.MobileNetV2(weights=None, input_shape=(300, 300, 3), classes=10)
model.compile("adam", "sparse_categorical_crossentropy")
model.fit(dataset, steps_per_epoch=1000, epochs=5)
