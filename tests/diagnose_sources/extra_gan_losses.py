import torch, torch.nn as nn
G, D = Gen().cuda(), Disc().cuda()
bce = nn.BCELoss()
for epoch in range(100):
    G_losses = []; D_losses = []
    for i, (real, _) in enumerate(dataloader):
        z = torch.randn(64, 100, device='cuda')
        fake = G(z)
        lossD = bce(D(real.cuda()), ones) + bce(D(fake.detach()), zeros)
        optD.zero_grad(); lossD.backward(); optD.step()
        lossG = bce(D(fake), ones)
        optG.zero_grad(); lossG.backward(); optG.step()
        G_losses.append(lossG.item())
        D_losses.append(lossD)  # <- leak-history
