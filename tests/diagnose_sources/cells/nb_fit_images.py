# %% [markdown]
# # Cats and dogs
# %%
%matplotlib inline
import os
import numpy as np
import matplotlib.pyplot as plt
from tensorflow.keras.preprocessing import image
from tensorflow.keras import layers, models
# %%
!ls data/train | head
folder = "data/train"
pictures = [image.img_to_array(image.load_img(os.path.join(folder, f), target_size=(150, 150))) for f in os.listdir(folder)]
labels = [0 if "cat" in f else 1 for f in os.listdir(folder)]
# %%
plt.imshow(pictures[0].astype("uint8"))
# %%
x = np.array(pictures)  # <- whole-dataset
y = np.array(labels)
# %%
model = models.Sequential([layers.Conv2D(32, 3, activation="relu", input_shape=(150, 150, 3)),
                           layers.Flatten(), layers.Dense(1, activation="sigmoid")])
model.compile("adam", "binary_crossentropy", metrics=["accuracy"])
model.fit(x, y, epochs=5)
