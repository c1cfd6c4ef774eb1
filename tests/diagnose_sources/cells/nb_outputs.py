# %%
import torch
from torchvision import models
encoder = models.resnet50(weights="DEFAULT").eval().cuda()
encoder.fc = torch.nn.Identity()
# %%
features = []
for images, _ in loader:
    f = encoder(images.cuda())  # <- leak-graph
    features.append(f.cpu())  # <- leak-history
features = torch.cat(features)
