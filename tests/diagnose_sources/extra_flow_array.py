from tensorflow.keras.preprocessing.image import ImageDataGenerator
import numpy as np, glob, cv2
files = glob.glob('*.png')
X = np.array([cv2.imread(f) for f in files])  # <- whole-dataset
gen = ImageDataGenerator(rescale=1/255.)
it = gen.flow(X, batch_size=32)
