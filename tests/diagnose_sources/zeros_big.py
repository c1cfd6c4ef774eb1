import numpy as np
from PIL import Image
from pathlib import Path

N = 50_000
SIDE = 224
files = sorted(Path("imagenet-part").rglob("*.JPEG"))[:N]
data = np.zeros((N, SIDE, SIDE, 3))  # <- whole-dataset
for i, f in enumerate(files):
    with Image.open(f) as im:
        data[i] = np.asarray(im.convert("RGB").resize((SIDE, SIDE))) / 255
np.save("train.npy", data)
