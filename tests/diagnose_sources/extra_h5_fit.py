import h5py
from keras.models import load_model
f = h5py.File("cells.h5", "r")
train_x = f["train/images"][()]
train_y = f["train/labels"][()]
model = load_model("unet.h5")
model.fit(train_x, train_y, batch_size=4, epochs=100)  # <- whole-dataset
