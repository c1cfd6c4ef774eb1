import torch
import torch.nn.functional as F

def step(model, heads, batch, optimizer):
    features = model(batch["x"].cuda())
    total = 0
    parts = []
    for name, head in heads.items():
        part = F.cross_entropy(head(features), batch[name].cuda())
        parts.append(part)
        total += part
    total = total + 0.1 * torch.stack(parts).std()
    optimizer.zero_grad()
    total.backward()
    optimizer.step()
    return total.item()

def policy_gradient(policy, episodes, optimizer):
    for episode in episodes:
        policy_loss = []
        for log_prob, reward in episode:
            policy_loss.append(-log_prob * reward)
        loss = torch.cat(policy_loss).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

def gan(d, g, loader, opt_d, opt_g):
    for real, _ in loader:
        fake = g(torch.randn(real.size(0), 100).cuda())
        d_loss = F.softplus(d(fake.detach())).mean() + F.softplus(-d(real.cuda())).mean()
        g_loss = F.softplus(-d(fake)).mean()
        d_loss.backward(retain_graph=True)
        g_loss.backward()
        opt_d.step(); opt_g.step()
