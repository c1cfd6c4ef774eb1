import os, cv2, numpy as np
from sklearn.model_selection import train_test_split
from tensorflow.keras.models import Sequential
from tensorflow.keras.layers import *
data_dir = "/data/xray"
categories = ["normal", "pneumonia"]
training_data = []
def create_training_data():
    for category in categories:
        path = os.path.join(data_dir, category)
        class_num = categories.index(category)
        for img in os.listdir(path):
            try:
                img_array = cv2.imread(os.path.join(path, img), cv2.IMREAD_GRAYSCALE)
                new_array = cv2.resize(img_array, (300, 300))
                training_data.append([new_array, class_num])
            except Exception as e:
                pass
create_training_data()
X, y = [], []
for features, label in training_data:
    X.append(features)
    y.append(label)
X = np.array(X).reshape(-1, 300, 300, 1)  # <- whole-dataset
X = X / 255.0
X_train, X_test, y_train, y_test = train_test_split(X, np.array(y))
model = Sequential([Conv2D(64, 3, input_shape=X.shape[1:]), Flatten(), Dense(1)])
model.compile("adam", "binary_crossentropy")
model.fit(X_train, y_train, batch_size=32, epochs=3, validation_data=(X_test, y_test))
