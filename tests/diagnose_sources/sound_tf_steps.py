import tensorflow as tf
@tf.function
def train_step(images, labels):
    with tf.GradientTape() as tape:
        predictions = model(images, training=True)
        loss = loss_object(labels, predictions)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    train_loss(loss)
    return loss
losses = []
for epoch in range(5):
    for images, labels in train_ds:
        losses.append(train_step(images, labels))
    for t, l in test_ds:
        model(t, training=False)
filenames = tf.io.gfile.glob('gs://x/*.tfrec')
ds = tf.data.TFRecordDataset(filenames).shuffle(2048).map(lambda e: tf.io.parse_single_example(e, {})).batch(64)
