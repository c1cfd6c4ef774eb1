import torch
import torch.nn as nn
from torchvision import models

def evaluate(model, loader, device):
    model.eval()
    right = total = 0
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        logits = model(images)  # <- leak-graph
        right += (logits.argmax(dim=1) == labels).sum().item()
        total += labels.numel()
    return right / total

def train_one(model, loader, optimizer, device):
    model.train()
    for images, labels in loader:
        optimizer.zero_grad(set_to_none=True)
        loss = nn.functional.cross_entropy(model(images.to(device)), labels.to(device))
        loss.backward()
        optimizer.step()

def main(train_loader, val_loader):
    device = "cuda"
    model = models.resnet50(num_classes=100).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    for epoch in range(90):
        train_one(model, train_loader, optimizer, device)
        print(epoch, evaluate(model, val_loader, device))
