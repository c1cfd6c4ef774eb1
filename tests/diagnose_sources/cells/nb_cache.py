# %%
import tensorflow as tf
size = (256, 256)
train_ds = tf.keras.utils.image_dataset_from_directory(
    "PetImages", validation_split=0.2, subset="training", seed=1, image_size=size, batch_size=32)
val_ds = tf.keras.utils.image_dataset_from_directory(
    "PetImages", validation_split=0.2, subset="validation", seed=1, image_size=size, batch_size=32)
# %%
class_names = train_ds.class_names
print(class_names)
# %%
AUTOTUNE = tf.data.AUTOTUNE
train_ds = train_ds.cache().prefetch(AUTOTUNE)  # <- shuffle-or-cache-buffer
