import csv
import torch
from PIL import Image
from torch.utils.data import Dataset, DataLoader
import torchvision.transforms as T

class Faces(Dataset):
    def __init__(self, table, size=128):
        self.resize = T.Resize((size, size))
        self.items = []
        with open(table) as f:
            for row in csv.reader(f):
                image = Image.open(row[0]).convert("RGB")
                self.items.append((self.resize(image), int(row[1])))  # <- host-loader

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        image, label = self.items[i]
        return T.functional.to_tensor(image), label

train = DataLoader(Faces("faces.csv"), batch_size=64, shuffle=True, num_workers=12)
