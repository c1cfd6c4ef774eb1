# %%
import torch
from torch import nn
from torch.utils.data import DataLoader
from torchvision import datasets, transforms
train_loader = DataLoader(datasets.MNIST(".", train=True, transform=transforms.ToTensor()), batch_size=64)
test_loader = DataLoader(datasets.MNIST(".", train=False, transform=transforms.ToTensor()), batch_size=1000)
# %%
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList()
        for i in range(3):
            self.layers.append(nn.Sequential(nn.LazyLinear(64), nn.ReLU()))
        self.out = nn.Linear(64, 10)
    def forward(self, x):
        x = x.flatten(1)
        hidden = []
        for layer in self.layers:
            x = layer(x)
            hidden.append(x)
        return self.out(sum(hidden))
# %%
def test(model):
    model.eval()
    loss, correct = 0, 0
    with torch.no_grad():
        for x, y in test_loader:
            out = model(x.cuda())
            loss += nn.functional.cross_entropy(out, y.cuda(), reduction="sum")
            correct += out.argmax(1).eq(y.cuda()).sum().item()
    return loss.item(), correct
# %%
model = Net().cuda()
opt = torch.optim.Adam(model.parameters())
train_losses = []
for epoch in range(3):
    model.train()
    for x, y in train_loader:
        opt.zero_grad()
        loss = nn.functional.cross_entropy(model(x.cuda()), y.cuda())
        loss.backward()
        opt.step()
        train_losses.append(loss.item())
    print(test(model))
