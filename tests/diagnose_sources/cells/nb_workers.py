# %%
import glob
import numpy as np
from PIL import Image
from torch.utils.data import Dataset, DataLoader
# %%
class InMemory(Dataset):
    def __init__(self, pattern):
        self.samples = []
        for p in sorted(glob.glob(pattern)):
            arr = np.asarray(Image.open(p).resize((320, 320)))
            self.samples.append(arr)  # <- host-loader
    def __len__(self):
        return len(self.samples)
    def __getitem__(self, i):
        return self.samples[i]
# %%
dl = DataLoader(InMemory("frames/*.png"), batch_size=32, num_workers=8, pin_memory=True)
