import os
import numpy as np
import torch
import cv2

class Slices(torch.utils.data.Dataset):
    def __init__(self, folder):
        names = [n for n in os.listdir(folder) if n.endswith(".png")]
        self.images = [cv2.resize(cv2.imread(os.path.join(folder, n)), (512, 512)) for n in names]  # <- whole-dataset
        self.names = names

    def __len__(self):
        return len(self.names)

    def __getitem__(self, index):
        image = self.images[index].astype(np.float32) / 255
        return torch.from_numpy(image).permute(2, 0, 1)

loader = torch.utils.data.DataLoader(Slices("slices"), batch_size=8)
