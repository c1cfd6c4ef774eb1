import torch
class Trainer:
    def __init__(self, model, loaders):
        self.model = model; self.loaders = loaders; self.criterion = torch.nn.L1Loss(); self.history = []
    def fit(self):
        for e in range(10):
            self.model.train()
            tot = 0.
            for x, y in self.loaders['train']:
                loss = self.criterion(self.model(x), y)
                self.optimizer.zero_grad(); loss.backward(); self.optimizer.step()
                tot += loss.item()
            self.history.append(tot)
            self._validate()
    @torch.no_grad()
    def _validate(self):
        self.model.eval()
        outs = []
        s = 0
        for x, y in self.loaders['val']:
            o = self.model(x)
            s += self.criterion(o, y)
            outs.append(o.cpu().numpy())
        return s
