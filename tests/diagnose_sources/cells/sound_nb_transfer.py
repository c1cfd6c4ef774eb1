# %% [markdown]
# Transfer learning
# %%
import tensorflow as tf
from tensorflow import keras
!nvidia-smi
train_ds = keras.utils.image_dataset_from_directory("flowers", image_size=(224, 224), batch_size=16)
train_ds = train_ds.prefetch(tf.data.AUTOTUNE)
base = keras.applications.MobileNetV2(include_top=False, input_shape=(224, 224, 3), pooling="avg")
base.trainable = False
model = keras.Sequential([base, keras.layers.Dense(5, activation="softmax")])
model.compile("adam", "sparse_categorical_crossentropy")
hist = model.fit(train_ds, epochs=5)
# %%
import matplotlib.pyplot as plt
for images, labels in train_ds.take(1):
    for i in range(9):
        plt.subplot(3, 3, i + 1)
        plt.imshow(images[i].numpy().astype("uint8"))
