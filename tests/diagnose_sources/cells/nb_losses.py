# %%
import torch, torch.nn as nn
from torchvision import datasets, transforms
dev = "cuda"
train_loader = torch.utils.data.DataLoader(
    datasets.CIFAR10(".", transform=transforms.ToTensor(), download=True), batch_size=256)
# %%
class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 32, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10))
    def forward(self, x):
        return self.body(x)
# %%
m = Small().to(dev)
loss_fn = nn.CrossEntropyLoss()
opt = torch.optim.AdamW(m.parameters())
# %%
logs = {"train": [], "lr": []}
for xb, yb in train_loader:
    l = loss_fn(m(xb.to(dev)), yb.to(dev))
    opt.zero_grad(); l.backward(); opt.step()
    logs["train"].append(l)  # <- leak-history
