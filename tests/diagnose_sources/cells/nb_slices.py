# %%
import numpy as np, tensorflow as tf
archive = np.load("train_images.npz")
images = archive["images"]
labels = archive["labels"]
# %%
print(images.shape)
# %%
train = tf.data.Dataset.from_tensor_slices((images, labels))  # <- whole-dataset
train = train.batch(32)
