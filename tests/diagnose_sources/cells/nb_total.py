# %%
import torch
from model import UNet
from data import train_dl
# %%
unet = UNet().cuda()
bce = torch.nn.BCEWithLogitsLoss()
adam = torch.optim.Adam(unet.parameters(), 1e-4)
# %%
for epoch in range(50):
    epoch_loss = 0
    for image, mask in train_dl:
        adam.zero_grad()
        pred = unet(image.cuda())
        loss = bce(pred, mask.cuda())
        loss.backward()
        adam.step()
        epoch_loss = epoch_loss + loss * image.shape[0]  # <- leak-history
    print(epoch, float(epoch_loss))
