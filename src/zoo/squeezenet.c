/* SPDX-License-Identifier: Apache-2.0
 *
 * squeezenet.c - SqueezeNet 1.1 (Iandola et al., 2016, and its repository's later variant).
 */
#include <stdio.h>

#include "zoo/zoo.h"

static snug_tensor conv(snug_model *model, snug_tensor x, const char *name, int64_t filters,
                        int64_t kernel, int64_t stride)
{
    return snug_conv2d(model, x,
                       &(snug_conv_options){SNUG_CONV_DEFAULTS, .name = name, .filters = filters,
                                            .kernel = {kernel, kernel}, .strides = {stride, stride},
                                            .padding = stride == 1 ? SNUG_SAME : SNUG_VALID,
                                            .activation = SNUG_RELU,
                                            .kernel_initializer = SNUG_HE_UNIFORM});
}

static snug_tensor fire(snug_model *model, snug_tensor x, const sn_zoo_params *p, int id,
                        int64_t squeeze, int64_t expand)
{
    char name[32];
    snprintf(name, sizeof name, "fire%d_squeeze", id);
    x = conv(model, x, name, sn_zoo_channels(p, squeeze), 1, 1);
    snprintf(name, sizeof name, "fire%d_expand1x1", id);
    snug_tensor one = conv(model, x, name, sn_zoo_channels(p, expand), 1, 1);
    snprintf(name, sizeof name, "fire%d_expand3x3", id);
    snug_tensor three = conv(model, x, name, sn_zoo_channels(p, expand), 3, 1);
    snprintf(name, sizeof name, "fire%d_concat", id);
    return snug_concatenate(model, (snug_tensor[]){one, three}, 2, -1, name);
}

static snug_tensor pool(snug_model *model, snug_tensor x, const char *name)
{
    return snug_max_pool2d(model, x,
                           &(snug_pool_options){SNUG_POOL_DEFAULTS, .name = name, .window = {3, 3},
                                                .strides = {2, 2}});
}

snug_tensor sn_zoo_squeezenet(snug_model *model, snug_tensor x, const sn_zoo_params *p)
{
    x = conv(model, x, "conv1", sn_zoo_channels(p, 64), 3, 2);
    x = pool(model, x, "pool1");
    x = fire(model, x, p, 2, 16, 64);
    x = fire(model, x, p, 3, 16, 64);
    x = pool(model, x, "pool3");
    x = fire(model, x, p, 4, 32, 128);
    x = fire(model, x, p, 5, 32, 128);
    x = pool(model, x, "pool5");
    x = fire(model, x, p, 6, 48, 192);
    x = fire(model, x, p, 7, 48, 192);
    x = fire(model, x, p, 8, 64, 256);
    x = fire(model, x, p, 9, 64, 256);
    x = snug_dropout(model, x, .5f, NULL, "drop9");
    x = snug_conv2d(model, x,
                    &(snug_conv_options){SNUG_CONV_DEFAULTS, .name = "conv10",
                                         .filters = p->classes, .kernel = {1, 1},
                                         .activation = p->linear_head ? SNUG_LINEAR : SNUG_RELU});
    x = snug_global_average_pool2d(model, x,
                                   &(snug_pool_options){SNUG_POOL_DEFAULTS, .name = "pool10"});
    if (p->linear_head) {
        return x;
    }
    return snug_activation(model, x,
                           &(snug_activation_options){SNUG_ACTIVATION_DEFAULTS,
                                                      .name = "predictions", .kind = SNUG_SOFTMAX});
}
