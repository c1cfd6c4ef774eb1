import torch
from tqdm import tqdm
def test(model, test_loader, device):
    model.eval()
    preds, gts = [], []
    with torch.no_grad():
        for x, y in tqdm(test_loader):
            out = model(x.to(device))
            preds.append(torch.softmax(out, dim=1))  # <- leak-history
            gts.append(y)
    return torch.cat(preds), torch.cat(gts)
