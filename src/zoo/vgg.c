/* SPDX-License-Identifier: Apache-2.0
 *
 * vgg.c - VGG16 and VGG19 (Simonyan and Zisserman, 2014), as keras.applications.
 */
#include <stdio.h>

#include "zoo/zoo.h"

snug_tensor sn_zoo_vgg(snug_model *model, snug_tensor x, const sn_zoo_params *p)
{
    static const int64_t channels[5] = {64, 128, 256, 512, 512};
    for (int block = 0; block < 5; block++) {
        char name[32];
        int n = block < 2 ? 2 : p->depth == 19 ? 4 : 3;
        for (int i = 0; i < n; i++) {
            snprintf(name, sizeof name, "block%d_conv%d", block + 1, i + 1);
            x = snug_conv2d(model, x,
                            &(snug_conv_options){SNUG_CONV_DEFAULTS, .name = name,
                                                 .filters = sn_zoo_channels(p, channels[block]),
                                                 .kernel = {3, 3}, .padding = SNUG_SAME,
                                                 .activation = SNUG_RELU});
        }
        snprintf(name, sizeof name, "block%d_pool", block + 1);
        x = snug_max_pool2d(model, x, &(snug_pool_options){SNUG_POOL_DEFAULTS, .name = name});
    }
    x = snug_flatten(model, x, "flatten");
    for (int i = 0; i < 2; i++) {
        x = snug_dense(model, x,
                       &(snug_dense_options){SNUG_DENSE_DEFAULTS, .name = i ? "fc2" : "fc1",
                                             .units = p->dense, .activation = SNUG_RELU});
    }
    return snug_dense(
        model, x,
        &(snug_dense_options){SNUG_DENSE_DEFAULTS, .name = "predictions", .units = p->classes,
                              .activation = p->linear_head ? SNUG_LINEAR : SNUG_SOFTMAX});
}
