/* SPDX-License-Identifier: Apache-2.0
 *
 * zoo.h - the models that come with snug: one function each, which builds on the public model API.
 * As keras.applications where that has the model (names, layers, parameter counts), else as the
 * paper.
 *
 *     static snug_tensor build(snug_model *m, snug_tensor x, const sn_zoo_params *p);
 *
 * Ownership: a builder adds to the model that it is given.  Threads: reentrant.
 */
#ifndef SN_ZOO_ZOO_H
#define SN_ZOO_ZOO_H

#include "base/base.h"
#include "snug/model.h"

typedef struct sn_zoo_params {
    double width; /* multiplies channels */
    int64_t classes;
    int64_t dense; /* VGG, mlp: units of the hidden dense layers */
    int64_t depth; /* cnn: stages; mlp: hidden layers; resnet: 18, 34, 50, 101, 152; vgg: 16, 19 */
    int64_t height, width_pixels;
    bool linear_head; /* regression: the last layer's numbers as they are, no softmax */
} sn_zoo_params;

typedef snug_tensor (*sn_zoo_builder)(snug_model *model, snug_tensor x,
                                      const sn_zoo_params *params);

snug_tensor sn_zoo_mlp(snug_model *model, snug_tensor x, const sn_zoo_params *params);
snug_tensor sn_zoo_cnn(snug_model *model, snug_tensor x, const sn_zoo_params *params);
snug_tensor sn_zoo_mobilenet(snug_model *model, snug_tensor x, const sn_zoo_params *params);
snug_tensor sn_zoo_mobilenetv2(snug_model *model, snug_tensor x, const sn_zoo_params *params);
snug_tensor sn_zoo_squeezenet(snug_model *model, snug_tensor x, const sn_zoo_params *params);
snug_tensor sn_zoo_vgg(snug_model *model, snug_tensor x, const sn_zoo_params *params);
snug_tensor sn_zoo_resnet(snug_model *model, snug_tensor x, const sn_zoo_params *params);

/* n channels times the width, rounded to a multiple of 8 without losing more than a tenth
 * (MobileNetV2's make_divisible); n itself at width 1. */
int64_t sn_zoo_channels(const sn_zoo_params *params, int64_t n);

#endif
