import torch
from tqdm import tqdm
class Runner:
    def run(self):
        for epoch in range(self.epochs):
            pbar = tqdm(self.train_loader)
            epoch_loss = 0
            for i, batch in enumerate(pbar):
                out = self.model(batch['img'].cuda())
                loss = self.loss_fn(out, batch['mask'].cuda())
                loss.backward()
                epoch_loss += loss.item()
                self.meter.update(loss.item(), out.size(0))
                self.preds.append(out.detach().cpu().numpy())
            self.history.append(epoch_loss)
    @torch.inference_mode()
    def test(self):
        self.model.eval()
        for b in self.test_loader:
            y = self.model(b['img'].cuda())
            self.results.extend(y.argmax(-1).tolist())
