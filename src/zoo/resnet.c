/* SPDX-License-Identifier: Apache-2.0
 *
 * resnet.c - ResNet (He et al., 2015): 50, 101 and 152 as keras.applications (v1: the stride in the
 * first 1x1, convolutions with bias), 18 and 34 as the paper (basic blocks, convolutions without
 * bias, projection where the shape changes).
 */
#include <stdio.h>

#include "zoo/zoo.h"

typedef struct stage {
    snug_model *model;
    const sn_zoo_params *params;
    char prefix[24]; /* "conv2_block1" */
    bool bias;
} stage;

static const char *named(const stage *s, char *out, size_t n, const char *suffix)
{
    snprintf(out, n, "%s_%s", s->prefix, suffix);
    return out;
}

/* Convolution and BatchNorm, "conv2_block1_1_conv" and "conv2_block1_1_bn". */
static snug_tensor conv_bn(const stage *s, snug_tensor x, const char *number, int64_t filters,
                           int64_t kernel, int64_t stride)
{
    char suffix[16], name[48];
    snprintf(suffix, sizeof suffix, "%s_conv", number);
    x = snug_conv2d(s->model, x,
                    &(snug_conv_options){
                        SNUG_CONV_DEFAULTS, .name = named(s, name, sizeof name, suffix),
                        .filters = filters, .kernel = {kernel, kernel}, .strides = {stride, stride},
                        .padding = kernel > 1 ? SNUG_SAME : SNUG_VALID, .no_bias = !s->bias});
    snprintf(suffix, sizeof suffix, "%s_bn", number);
    return snug_batch_norm(s->model, x,
                           &(snug_norm_options){SNUG_NORM_DEFAULTS,
                                                .name = named(s, name, sizeof name, suffix),
                                                .epsilon = 1.001e-5f});
}

static snug_tensor relu(const stage *s, snug_tensor x, const char *suffix)
{
    char name[48];
    return snug_activation(s->model, x,
                           &(snug_activation_options){SNUG_ACTIVATION_DEFAULTS,
                                                      .name = named(s, name, sizeof name, suffix),
                                                      .kind = SNUG_RELU});
}

static snug_tensor bottleneck(const stage *s, snug_tensor x, int64_t filters, int64_t stride,
                              bool project)
{
    int64_t inner = sn_zoo_channels(s->params, filters);
    int64_t outer = sn_zoo_channels(s->params, 4 * filters);
    char name[48];
    snug_tensor shortcut = project ? conv_bn(s, x, "0", outer, 1, stride) : x;
    snug_tensor y = relu(s, conv_bn(s, x, "1", inner, 1, stride), "1_relu");
    y = relu(s, conv_bn(s, y, "2", inner, 3, 1), "2_relu");
    y = conv_bn(s, y, "3", outer, 1, 1);
    return relu(s, snug_add(s->model, shortcut, y, named(s, name, sizeof name, "add")), "out");
}

static snug_tensor basic(const stage *s, snug_tensor x, int64_t filters, int64_t stride,
                         bool project)
{
    int64_t n = sn_zoo_channels(s->params, filters);
    char name[48];
    snug_tensor shortcut = project ? conv_bn(s, x, "0", n, 1, stride) : x;
    snug_tensor y = relu(s, conv_bn(s, x, "1", n, 3, stride), "1_relu");
    y = conv_bn(s, y, "2", n, 3, 1);
    return relu(s, snug_add(s->model, shortcut, y, named(s, name, sizeof name, "add")), "out");
}

static snug_tensor stem(const stage *s, snug_tensor x)
{
    int64_t n = sn_zoo_channels(s->params, 64);
    x = snug_zero_padding2d(s->model, x, (int64_t[]){3, 3, 3, 3}, "conv1_pad");
    x = snug_conv2d(s->model, x,
                    &(snug_conv_options){SNUG_CONV_DEFAULTS, .name = "conv1_conv", .filters = n,
                                         .kernel = {7, 7}, .strides = {2, 2}, .no_bias = !s->bias});
    x = snug_batch_norm(
        s->model, x,
        &(snug_norm_options){SNUG_NORM_DEFAULTS, .name = "conv1_bn", .epsilon = 1.001e-5f});
    x = snug_activation(s->model, x,
                        &(snug_activation_options){SNUG_ACTIVATION_DEFAULTS, .name = "conv1_relu",
                                                   .kind = SNUG_RELU});
    x = snug_zero_padding2d(s->model, x, (int64_t[]){1, 1, 1, 1}, "pool1_pad");
    return snug_max_pool2d(s->model, x,
                           &(snug_pool_options){SNUG_POOL_DEFAULTS, .name = "pool1_pool",
                                                .window = {3, 3}, .strides = {2, 2}});
}

snug_tensor sn_zoo_resnet(snug_model *model, snug_tensor x, const sn_zoo_params *p)
{
    static const int64_t filters[4] = {64, 128, 256, 512};
    static const struct {
        int64_t depth;
        int blocks[4];
    } depths[] = {{18, {2, 2, 2, 2}},
                  {34, {3, 4, 6, 3}},
                  {50, {3, 4, 6, 3}},
                  {101, {3, 4, 23, 3}},
                  {152, {3, 8, 36, 3}}};
    size_t d = 0;
    while (depths[d].depth != p->depth) {
        d++;
    }
    stage s = {.model = model, .params = p, .bias = p->depth >= 50};
    x = stem(&s, x);
    for (int i = 0; i < 4; i++) {
        for (int block = 0; block < depths[d].blocks[i]; block++) {
            snprintf(s.prefix, sizeof s.prefix, "conv%d_block%d", i + 2, block + 1);
            int64_t stride = i > 0 && block == 0 ? 2 : 1;
            x = s.bias ? bottleneck(&s, x, filters[i], stride, block == 0)
                       : basic(&s, x, filters[i], stride, i > 0 && block == 0);
        }
    }
    x = snug_global_average_pool2d(model, x,
                                   &(snug_pool_options){SNUG_POOL_DEFAULTS, .name = "avg_pool"});
    return snug_dense(
        model, x,
        &(snug_dense_options){SNUG_DENSE_DEFAULTS, .name = "predictions", .units = p->classes,
                              .activation = p->linear_head ? SNUG_LINEAR : SNUG_SOFTMAX});
}
