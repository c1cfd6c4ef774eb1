import torch
from torch import nn
from torch.utils.data import DataLoader
from mydata import Crops

device = torch.device("cuda:0")
model = torch.hub.load("pytorch/vision", "resnet18", num_classes=4).to(device)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters())
loader = DataLoader(Crops("train.csv"), batch_size=32, shuffle=True)

for epoch in range(5):
    running_loss = 0.0
    for i, (inputs, targets) in enumerate(loader):
        inputs, targets = inputs.to(device), targets.to(device)
        optimizer.zero_grad()
        outputs = model(inputs)
        loss = criterion(outputs, targets)
        loss.backward()
        optimizer.step()
        running_loss += loss  # <- leak-history
        if i % 100 == 99:
            print(epoch, i, running_loss / 100)
