import torch
import numpy as np
X = np.load('X_train.npy')
y = np.load('y_train.npy')
X_t = torch.tensor(X, dtype=torch.float32).to('cuda')  # <- whole-dataset
y_t = torch.tensor(y).to('cuda')
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(X_t, y_t), batch_size=16)
