import torch
def accumulate(model, loader, optimizer, steps=8):
    optimizer.zero_grad()
    for i, (x, y) in enumerate(loader):
        loss = torch.nn.functional.cross_entropy(model(x), y) / steps
        loss.backward()
        if (i + 1) % steps == 0:
            optimizer.step(); optimizer.zero_grad()
def rnn(model, data):
    hidden = None
    losses = []
    for chunk in data:
        out, hidden = model(chunk, hidden)
        hidden = tuple(h.detach() for h in hidden)
        loss = out.mean()
        loss.backward()
        losses.append(float(loss))
@torch.inference_mode()
def embed(model, loader):
    return torch.cat([model(x.cuda()).cpu() for x, _ in loader])
def evaluate(model, val_loader):
    with torch.no_grad():
        return helper(model, val_loader)
def helper(model, val_loader):
    return sum(model(x).sum().item() for x in val_loader)
