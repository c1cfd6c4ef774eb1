# %%
import numpy as np
import cv2
from pathlib import Path
# %%
stack = None
for p in Path("cells").rglob("*.tif"):
    img = cv2.resize(cv2.imread(str(p)), (1024, 1024))[None]
    stack = img if stack is None else np.concatenate([stack, img])  # <- whole-dataset
# %%
print(stack.nbytes)
