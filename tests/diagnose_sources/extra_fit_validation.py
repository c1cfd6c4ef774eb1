import torch
def validation(model, val_dl, loss_fn):
    model.eval()
    losses = []
    for xb, yb in val_dl:
        pred = model(xb.to("cuda"))  # <- leak-graph
        losses.append(loss_fn(pred, yb.to("cuda")).item())
    return sum(losses) / len(losses)
def fit(epochs, model, loss_fn, opt, train_dl, val_dl):
    for epoch in range(epochs):
        model.train()
        for xb, yb in train_dl:
            loss = loss_fn(model(xb.to("cuda")), yb.to("cuda"))
            loss.backward()
            opt.step()
            opt.zero_grad()
        print(epoch, validation(model, val_dl, loss_fn))
