# %%
import glob
from PIL import Image
import numpy as np
import matplotlib.pyplot as plt
files = sorted(glob.glob("train/*.jpg"))
print(len(files), files[:3])
# %%
sizes = []
for f in files:
    with Image.open(f) as im:
        sizes.append(im.size)
print(np.array(sizes).mean(axis=0))
# %%
sample = [np.asarray(Image.open(f)) for f in files[:9]]
fig, axes = plt.subplots(3, 3)
for ax, im in zip(axes.flat, sample):
    ax.imshow(im)
means = []
for f in files:
    img = np.asarray(Image.open(f).convert("RGB"))
    means.append(img.mean(axis=(0, 1)))
