import torch, torch.nn as nn, random
from collections import deque
memory = deque(maxlen=10000)
policy = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 2))
for ep in range(500):
    s = env.reset(); log_probs = []; rewards = []
    done = False
    while not done:
        p = torch.distributions.Categorical(logits=policy(torch.tensor(s)))
        a = p.sample()
        log_probs.append(p.log_prob(a))
        s2, r, done, _ = env.step(a.item())
        memory.append((s, a.item(), r, s2, done)); rewards.append(r); s = s2
    loss = 0
    for lp, r in zip(log_probs, rewards):
        loss = loss - lp * r
    opt.zero_grad(); loss.backward(); opt.step()
