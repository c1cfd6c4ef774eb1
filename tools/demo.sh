#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The demo: a plan, a refusal on purpose, training on Fashion-MNIST, test accuracy, ten predictions.
# usage: tools/demo.sh [path of the snug command]
set -eu
snug=${1:-build/snug}
folder=${SNUG_FASHION_MNIST:-/usr/share/datasets/fashion-mnist}
data=$folder/train-images-idx3-ubyte.gz
names=$(dirname "$0")/../examples/fashion-mnist-classes.txt
run=runs/demo
if [ ! -r "$data" ]; then
    echo "error: Fashion-MNIST is not in '$folder': install Debian's package dataset-fashion-mnist" >&2
    exit 1
fi
n=2
while [ -e "$run" ]; do
    run=runs/demo-$n
    n=$((n + 1))
done

echo "== 1. The plan: every byte, before anything starts"
echo "\$ snug plan $data -m cnn -b 64 -e 6"
"$snug" plan "$data" -m cnn -b 64 -e 6

echo
echo "== 2. A refusal on purpose: VGG16 with Adam in 600 MiB"
echo "\$ snug train $data -m vgg16 -s 224 --optimizer adam -b 16 -M 600M"
rc=0
"$snug" train "$data" -m vgg16 -s 224 --optimizer adam -b 16 -M 600M || rc=$?
echo "(exit $rc)"
[ "$rc" -eq 3 ] || exit 1

echo
echo "== 3. Training a small convolutional network"
echo "\$ snug train $data -m cnn -b 64 -e 6 --lr 0.05 --class-names $names -o $run"
"$snug" train "$data" -m cnn -b 64 -e 6 --lr 0.05 --class-names "$names" -o "$run"

echo
echo "== 4. The test set, with the weights of the last epoch"
echo "\$ snug evaluate $run/last.safetensors $data"
"$snug" evaluate "$run/last.safetensors" "$data" --class-names "$names"

echo
echo "== 5. Ten predictions"
echo "\$ snug predict $run $folder/t10k-images-idx3-ubyte.gz --limit 10"
"$snug" predict "$run" "$folder/t10k-images-idx3-ubyte.gz" --limit 10

echo
echo "The run is in $run/: $(ls "$run" | tr '\n' ' ')"
