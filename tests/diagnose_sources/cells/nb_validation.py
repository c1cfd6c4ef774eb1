# %%
import torch
from torch import nn
from tqdm.notebook import tqdm
# %%
net = nn.Sequential(nn.Flatten(), nn.Linear(3 * 64 * 64, 512), nn.ReLU(), nn.Linear(512, 10)).cuda()
crit = nn.CrossEntropyLoss()
opt = torch.optim.SGD(net.parameters(), 0.1)
# %%
for epoch in range(3):
    net.train()
    for x, y in tqdm(train_loader):
        opt.zero_grad()
        loss = crit(net(x.cuda()), y.cuda())
        loss.backward()
        opt.step()
    net.eval()
    hits = 0
    for x, y in tqdm(test_loader):
        hits += (net(x.cuda()).argmax(1).cpu() == y).sum().item()  # <- leak-graph
    print(hits)
