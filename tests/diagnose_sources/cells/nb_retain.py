# %%
import torch
x = torch.randn(64, 1000, device="cuda")
w = torch.randn(1000, 10, device="cuda", requires_grad=True)
h = torch.zeros(64, 10, device="cuda")
# %%
for t in range(10000):
    h = torch.tanh(x @ w + h)
    cost = (h ** 2).sum()
    cost.backward(retain_graph=True)  # <- leak-graph
    with torch.no_grad():
        w -= 1e-3 * w.grad
        w.grad.zero_()
