# %%
import cv2
from torch.utils.data import Dataset, DataLoader
class Cached(Dataset):
    def __init__(self, paths):
        self.paths = paths
        self.cache = {}
    def __len__(self):
        return len(self.paths)
    def __getitem__(self, i):
        if i not in self.cache:
            self.cache[i] = cv2.resize(cv2.imread(self.paths[i]), (640, 640))  # <- shuffle-or-cache-buffer
        return self.cache[i]
# %%
loader = DataLoader(Cached(open("train.txt").read().split()), batch_size=16, num_workers=4)
