# SPDX-License-Identifier: Apache-2.0
"""PyTorch's side of bench/peers.py: reads "step" lines, makes one training step each, answers with
its seconds. usage: peer_torch.py MODEL BATCH THREADS SIDE"""
import sys
import time

import torch
import torch.nn as nn

name, batch, threads, side = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
torch.set_num_threads(threads)
torch.manual_seed(1)


def mobilenet():
    def conv_bn(i, o, k, s, g=1):
        return nn.Sequential(nn.Conv2d(i, o, k, s, k // 2, groups=g, bias=False),
                             nn.BatchNorm2d(o), nn.ReLU6(inplace=True))
    plan = [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2)] + [(512, 1)] * 5
    plan += [(1024, 2), (1024, 1)]
    layers, c = [conv_bn(3, 32, 3, 2)], 32
    for o, s in plan:
        layers += [conv_bn(c, c, 3, s, c), conv_bn(c, o, 1, 1)]
        c = o
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(.001),
                         nn.Linear(1024, 1000))


def make():
    if name == "mobilenet":
        return mobilenet()
    import torchvision.models as m
    return {"mobilenetv2": m.mobilenet_v2, "resnet50": m.resnet50, "vgg16": m.vgg16,
            "squeezenet": m.squeezenet1_1}[name]()


model = make().to(memory_format=torch.channels_last).train()
optimizer = torch.optim.SGD(model.parameters(), lr=.01, momentum=.9)
loss = nn.CrossEntropyLoss()
x = torch.rand(batch, 3, side, side).to(memory_format=torch.channels_last)
y = torch.arange(batch) * 7 % 1000
print("ready", torch.__version__, flush=True)
for line in sys.stdin:
    start = time.perf_counter()
    optimizer.zero_grad(set_to_none=True)
    value = loss(model(x), y)
    value.backward()
    optimizer.step()
    float(value)
    print(time.perf_counter() - start, flush=True)
