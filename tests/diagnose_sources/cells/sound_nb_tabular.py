# %%
import pandas as pd, numpy as np
import tensorflow as tf
frames = [pd.read_csv(f) for f in ["a.csv", "b.csv"]]
df = pd.concat(frames)
X = df.drop(columns="y").to_numpy(dtype="float32")
y = df["y"].to_numpy()
# %%
from sklearn.model_selection import train_test_split
X_train, X_test, y_train, y_test = train_test_split(X, y)
model = tf.keras.Sequential([tf.keras.layers.Dense(32, activation="relu"), tf.keras.layers.Dense(1)])
model.compile("adam", "mse")
model.fit(X_train, y_train, epochs=20, validation_data=(X_test, y_test))
preds = []
for chunk in np.array_split(X_test, 10):
    preds.append(model.predict(chunk))
print(np.concatenate(preds).shape)
