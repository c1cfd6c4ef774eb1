import torch
from tqdm import tqdm
class Runner:
    def run(self):
        for epoch in range(self.epochs):
            pbar = tqdm(self.train_loader)
            epoch_loss = torch.zeros(1).cuda()
            for i, batch in enumerate(pbar):
                self.optimizer.zero_grad()
                out = self.model(batch['img'].cuda())
                loss = self.loss_fn(out, batch['mask'].cuda())
                loss.backward()
                self.optimizer.step()
                epoch_loss += loss  # <- leak-history
                pbar.set_postfix(loss=loss.item())
