import torch
from torch import nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset
class LSTMModel(nn.Module):
    def __init__(self): super().__init__(); self.l = nn.LSTM(10, 10)
    def forward(self, x): return self.l(x)[0]
def run(args):
    model = LSTMModel().cuda()
    optimizer = torch.optim.Adam(model.parameters())
    train_losses, val_losses = [], []
    for epoch in range(args.epochs):
        model.train()
        batch_losses = []
        for xb, yb in args.train_loader:
            optimizer.zero_grad()
            pred = model(xb.cuda())
            loss = F.mse_loss(pred, yb.cuda())
            loss.backward()
            optimizer.step()
            batch_losses.append(loss.item())
        model.eval()
        val_loss = 0.0
        for xb, yb in args.val_loader:
            val_loss += F.mse_loss(model(xb.cuda()), yb.cuda()).item()  # <- leak-graph
        train_losses.append(sum(batch_losses) / len(batch_losses))
        val_losses.append(val_loss)
