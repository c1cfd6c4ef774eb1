# SPDX-License-Identifier: Apache-2.0
"""Freezes the layers of keras.applications' models: name, type, output shape, parameters.

    python tests/oracle/make_zoo.py tests/oracle      (tensorflow-cpu 2.21, keras 3.15)

Writes zoo.txt:

    model SPEC SIDE TOTAL TRAINABLE
    layer NAME TYPE H,W,C PARAMETERS        (or "N" for features), sorted by name
"""
import os
import sys

os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import keras
from keras import applications as zoo

MODELS = [
    ("mobilenet", 224, zoo.MobileNet, {}), ("mobilenet:width=0.25", 128, zoo.MobileNet, {"alpha": .25}),
    ("mobilenet:width=0.75", 192, zoo.MobileNet, {"alpha": .75}),
    ("mobilenetv2", 224, zoo.MobileNetV2, {}), ("mobilenetv2:width=0.35", 96, zoo.MobileNetV2, {"alpha": .35}),
    ("mobilenetv2:width=1.4", 160, zoo.MobileNetV2, {"alpha": 1.4}),
    ("mobilenetv2:width=1.3", 225, zoo.MobileNetV2, {"alpha": 1.3}),
    ("vgg16", 224, zoo.VGG16, {}), ("vgg19", 224, zoo.VGG19, {}), ("vgg16:classes=10", 33, zoo.VGG16, {"classes": 10}),
    ("resnet50", 224, zoo.ResNet50, {}), ("resnet50:classes=7", 65, zoo.ResNet50, {"classes": 7}),
    ("resnet101", 224, zoo.ResNet101, {}), ("resnet152", 224, zoo.ResNet152, {}),
]
lines = []
for spec, side, make, options in MODELS:
    keras.backend.clear_session()
    model = make(weights=None, input_shape=(side, side, 3), **options)
    trained = sum(int(v.value.numpy().size) for v in model.trainable_weights)
    lines.append(f"model {spec} {side} {model.count_params()} {trained}")
    for layer in sorted(model.layers, key=lambda l: l.name):
        shape = ",".join(str(d) for d in layer.output.shape[1:])
        lines.append(f"layer {layer.name} {type(layer).__name__} {shape} {layer.count_params()}")
with open(os.path.join(sys.argv[1], "zoo.txt"), "w") as f:
    f.write("# SPDX-License-Identifier: Apache-2.0\n# Written by make_zoo.py.\n" + "\n".join(lines) + "\n")
