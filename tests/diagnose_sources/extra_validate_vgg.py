import torch, torchvision
from torch.utils.data import DataLoader
def validate(net, data, criterion):
    total, n = 0, 0
    for x, t in data:
        out = net(x.to('cuda'))  # <- leak-graph
        total += criterion(out, t.to('cuda')).item()
        n += 1
    return total / n
net = torchvision.models.vgg16().to('cuda')
crit = torch.nn.CrossEntropyLoss()
val = DataLoader(torchvision.datasets.ImageFolder('val'), 64)
print(validate(net, val, crit))
