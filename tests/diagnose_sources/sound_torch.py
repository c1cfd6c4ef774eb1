import torch
from torch import nn
from torch.utils.data import DataLoader
from torchvision import datasets, models, transforms

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
tf = transforms.Compose([transforms.Resize((224, 224)), transforms.ToTensor()])
sets = {p: datasets.ImageFolder(f"data/{p}", tf) for p in ("train", "val")}
loaders = {p: DataLoader(sets[p], batch_size=16, shuffle=p == "train", num_workers=4) for p in sets}
model = models.resnet18(weights=None, num_classes=2).to(device)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
losses = []
for epoch in range(25):
    for phase in ["train", "val"]:
        model.train() if phase == "train" else model.eval()
        running_loss, running_corrects = 0.0, 0
        for inputs, labels in loaders[phase]:
            inputs, labels = inputs.to(device), labels.to(device)
            optimizer.zero_grad()
            with torch.set_grad_enabled(phase == "train"):
                outputs = model(inputs)
                _, preds = torch.max(outputs, 1)
                loss = criterion(outputs, labels)
                if phase == "train":
                    loss.backward()
                    optimizer.step()
            running_loss += loss.item() * inputs.size(0)
            running_corrects += torch.sum(preds == labels.data)
            losses.append(loss.detach().cpu())
        print(phase, running_loss / len(sets[phase]), running_corrects.double() / len(sets[phase]))
