# %%
import pathlib
import tensorflow as tf
root = pathlib.Path("/data/birds")
paths = [str(p) for p in root.glob("*/*.jpg")]
n = len(paths)
# %%
def load(path):
    img = tf.image.decode_jpeg(tf.io.read_file(path), channels=3)
    return tf.image.resize(img, (384, 384))
# %%
ds = tf.data.Dataset.from_tensor_slices(paths)
ds = ds.map(load)
ds = ds.shuffle(n)  # <- shuffle-or-cache-buffer
ds = ds.batch(8)
