# %%
import os, torch
from PIL import Image
from torchvision import transforms
tfm = transforms.Compose([transforms.Resize((256, 256)), transforms.ToTensor()])
# %%
tensors = []
for root, dirs, files in os.walk("art"):
    for f in files:
        if f.endswith(".jpg"):
            tensors.append(tfm(Image.open(os.path.join(root, f)).convert("RGB")))
# %%
data = torch.stack(tensors).cuda()  # <- whole-dataset
print(data.shape)
