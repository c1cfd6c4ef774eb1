#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs the peers into build/peers (PyPI) and runs bench/peers.py against them.
set -eu
cd "$(dirname "$0")/.."
peers=build/peers
if [ ! -x "$peers/tf/bin/python" ]; then
    python3 -m venv "$peers/tf"
    "$peers/tf/bin/pip" install -q tensorflow-cpu==2.21.0 keras==3.15.1
fi
if [ ! -x "$peers/torch/bin/python" ]; then
    python3 -m venv "$peers/torch"
    "$peers/torch/bin/pip" install -q torch torchvision numpy
fi
cmake --build build --target bench_step
exec python3 bench/peers.py --snug build/bench_step --tensorflow "$peers/tf/bin/python" \
    --torch "$peers/torch/bin/python" "$@"
