import numpy as np
from tensorflow import keras

x = np.load("scans.npy")
y = np.load("labels.npy")
print(x.shape, x.dtype)
model = keras.models.load_model("start.keras")
history = model.fit(  # <- whole-dataset
    x=x,
    y=y,
    epochs=30,
    batch_size=8,
    validation_split=0.1,
)
history.model.save("end.keras")
