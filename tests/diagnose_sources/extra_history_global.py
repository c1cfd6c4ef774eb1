import torch
import torch.optim as optim
from models import ResNet
from utils import get_loaders
net = ResNet().cuda()
crit = torch.nn.CrossEntropyLoss().cuda()
opt = optim.SGD(net.parameters(), lr=.1)
trainloader, testloader = get_loaders()
loss_history = []
def train(epoch):
    net.train()
    for batch_idx, (inputs, targets) in enumerate(trainloader):
        inputs, targets = inputs.cuda(), targets.cuda()
        opt.zero_grad()
        loss = crit(net(inputs), targets)
        loss.backward()
        opt.step()
        loss_history.append(loss)  # <- leak-history
def test(epoch):
    net.eval()
    with torch.no_grad():
        correct = 0
        for inputs, targets in testloader:
            outputs = net(inputs.cuda())
            correct += outputs.max(1)[1].cpu().eq(targets).sum()
for e in range(10):
    train(e); test(e)
