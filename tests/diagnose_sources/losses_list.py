import torch
import torch.nn as nn
import torch.nn.functional as F

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)
        self.fc = nn.Linear(8, 10)

    def forward(self, x):
        x = F.relu(self.conv(x))
        return self.fc(x.mean(dim=(2, 3)))

def train(loader, device="cuda"):
    net = Net().to(device)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    history = []
    for epoch in range(20):
        for x, y in loader:
            opt.zero_grad()
            loss = F.cross_entropy(net(x.to(device)), y.to(device))
            loss.backward()
            opt.step()
            history.append(loss)  # <- leak-history
    return history
