import torch, torchvision
from torchvision import transforms
from torch.utils.data import DataLoader
ds = torchvision.datasets.ImageFolder("data", transforms.Compose([transforms.Resize((224,224)), transforms.ToTensor()]))
dl = DataLoader(ds, batch_size=64)
all_x, all_y = [], []
for x, y in dl:
    all_x.append(x)
    all_y.append(y)
X = torch.cat(all_x).cuda()  # <- whole-dataset
Y = torch.cat(all_y).cuda()
