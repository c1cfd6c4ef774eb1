import torch
import torch.nn as nn

rnn = nn.LSTM(32, 64, batch_first=True).cuda()
head = nn.Linear(64, 1).cuda()
opt = torch.optim.Adam(list(rnn.parameters()) + list(head.parameters()))
state = None
for step, (seq, target) in enumerate(torch.load("sequences.pt")):
    out, state = rnn(seq.cuda(), state)
    loss = ((head(out[:, -1]) - target.cuda()) ** 2).mean()
    opt.zero_grad()
    loss.backward(retain_graph=True)  # <- leak-graph
    opt.step()
    if step % 10 == 0:
        print(step, loss.item())
