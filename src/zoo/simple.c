/* SPDX-License-Identifier: Apache-2.0
 *
 * simple.c - a multilayer perceptron and a small convolutional network.
 */
#include "zoo/zoo.h"

static snug_tensor classifier(snug_model *model, snug_tensor x, const sn_zoo_params *p)
{
    return snug_dense(
        model, x,
        &(snug_dense_options){SNUG_DENSE_DEFAULTS, .name = "predictions", .units = p->classes,
                              .activation = p->linear_head ? SNUG_LINEAR : SNUG_SOFTMAX});
}

snug_tensor sn_zoo_mlp(snug_model *model, snug_tensor x, const sn_zoo_params *p)
{
    x = snug_flatten(model, x, NULL);
    for (int64_t i = 0; i < p->depth; i++) {
        x = snug_dense(model, x,
                       &(snug_dense_options){SNUG_DENSE_DEFAULTS,
                                             .units = sn_zoo_channels(p, p->dense),
                                             .activation = SNUG_RELU});
    }
    return classifier(model, x, p);
}

/* Stages of convolution, BatchNorm, ReLU and pooling, 32 channels doubling; then a hidden dense
 * layer with dropout. */
snug_tensor sn_zoo_cnn(snug_model *model, snug_tensor x, const sn_zoo_params *p)
{
    int64_t side = SN_MIN(p->height, p->width_pixels);
    for (int64_t i = 0; i < p->depth; i++) {
        x = snug_conv2d(model, x,
                        &(snug_conv_options){
                            SNUG_CONV_DEFAULTS, .filters = sn_zoo_channels(p, INT64_C(32) << i),
                            .kernel = {3, 3}, .padding = SNUG_SAME, .no_bias = true});
        x = snug_batch_norm(model, x, NULL);
        x = snug_relu(model, x, 0, NULL);
        if (side >= 2) {
            x = snug_max_pool2d(model, x, NULL);
            side /= 2;
        }
    }
    x = snug_flatten(model, x, NULL);
    x = snug_dense(model, x,
                   &(snug_dense_options){SNUG_DENSE_DEFAULTS, .units = sn_zoo_channels(p, p->dense),
                                         .activation = SNUG_RELU});
    x = snug_dropout(model, x, .4f, NULL, NULL);
    return classifier(model, x, p);
}
