# %%
import numpy as np
import tensorflow as tf
from glob import glob
# %%
files = glob("/content/drive/MyDrive/xray/*.png")
H, W = 512, 512
X = np.zeros((len(files), H, W, 1), dtype=np.float32)  # <- whole-dataset
for i, f in enumerate(files):
    X[i, :, :, 0] = tf.keras.utils.img_to_array(tf.keras.utils.load_img(f, color_mode="grayscale", target_size=(H, W)))[:, :, 0]
