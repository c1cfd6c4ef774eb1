#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the allocator dumps of this folder with real TensorFlow on a CPU (2.21 made those here).

TF_CPU_ALLOCATOR_USE_BFC=1 TF_CPU_BFC_MEM_LIMIT_IN_MB=128 TF_BFC_MEMORY_DUMP=PREFIX \
    python make_dumps.py const|conv          # the last file with this PREFIX
"""
import sys

import numpy as np
import tensorflow as tf

keep = []
try:
    if sys.argv[1] == "const":
        keep.append(tf.constant(np.zeros((64, 256, 256, 3), "float32")))
        for _ in range(100):
            keep.append(keep[0] * 2)
    else:
        for _ in range(100):
            keep.append(tf.random.normal((8, 256, 256, 3)) * 1.0)
            keep.append(tf.nn.conv2d(keep[-1], tf.ones((3, 3, 3, 8)), 1, "SAME"))
except tf.errors.ResourceExhaustedError as error:
    print(str(error)[:200])
