from datasets import load_dataset
import torch
from transformers import AutoModelForSequenceClassification, Trainer
model = AutoModelForSequenceClassification.from_pretrained("bert-base").to("cuda")
optim = torch.optim.AdamW(model.parameters())
total_loss = 0
for epoch in range(3):
    for batch in train_dataloader:
        outputs = model(**batch)
        loss = outputs.loss
        loss.backward()
        optim.step(); optim.zero_grad()
        total_loss += loss  # <- leak-history
    avg = total_loss / len(train_dataloader)
