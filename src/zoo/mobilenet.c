/* SPDX-License-Identifier: Apache-2.0
 *
 * mobilenet.c - MobileNet (Howard et al., 2017) and MobileNetV2 (Sandler et al., 2018), as
 * keras.applications; `width` is their alpha.
 */
#include <stdio.h>

#include "zoo/zoo.h"

static snug_tensor batch_norm(snug_model *model, snug_tensor x, const char *name, float momentum)
{
    return snug_batch_norm(
        model, x, &(snug_norm_options){SNUG_NORM_DEFAULTS, .name = name, .momentum = momentum});
}

/* ---- MobileNet ---- */

static snug_tensor separable_block(snug_model *model, snug_tensor x, const sn_zoo_params *p, int id,
                                   int64_t filters, int64_t stride)
{
    char name[32];
    if (stride > 1) {
        snprintf(name, sizeof name, "conv_pad_%d", id);
        x = snug_zero_padding2d(model, x, (int64_t[]){0, 1, 0, 1}, name);
    }
    snprintf(name, sizeof name, "conv_dw_%d", id);
    x = snug_depthwise_conv2d(model, x,
                              &(snug_conv_options){SNUG_CONV_DEFAULTS, .name = name,
                                                   .kernel = {3, 3}, .strides = {stride, stride},
                                                   .padding = stride > 1 ? SNUG_VALID : SNUG_SAME,
                                                   .no_bias = true});
    snprintf(name, sizeof name, "conv_dw_%d_bn", id);
    x = batch_norm(model, x, name, 0);
    snprintf(name, sizeof name, "conv_dw_%d_relu", id);
    x = snug_relu(model, x, 6, name);
    snprintf(name, sizeof name, "conv_pw_%d", id);
    x = snug_conv2d(model, x,
                    &(snug_conv_options){SNUG_CONV_DEFAULTS, .name = name,
                                         .filters = (int64_t)((double)filters * p->width),
                                         .kernel = {1, 1}, .padding = SNUG_SAME, .no_bias = true});
    snprintf(name, sizeof name, "conv_pw_%d_bn", id);
    x = batch_norm(model, x, name, 0);
    snprintf(name, sizeof name, "conv_pw_%d_relu", id);
    return snug_relu(model, x, 6, name);
}

snug_tensor sn_zoo_mobilenet(snug_model *model, snug_tensor x, const sn_zoo_params *p)
{
    static const int64_t filters[13] = {64,  128, 128, 256, 256,  512, 512,
                                        512, 512, 512, 512, 1024, 1024};
    x = snug_conv2d(model, x,
                    &(snug_conv_options){SNUG_CONV_DEFAULTS, .name = "conv1",
                                         .filters = (int64_t)(32 * p->width), .kernel = {3, 3},
                                         .strides = {2, 2}, .padding = SNUG_SAME, .no_bias = true});
    x = batch_norm(model, x, "conv1_bn", 0);
    x = snug_relu(model, x, 6, "conv1_relu");
    for (int i = 0; i < 13; i++) {
        int64_t stride = i == 1 || i == 3 || i == 5 || i == 11 ? 2 : 1;
        x = separable_block(model, x, p, i + 1, filters[i], stride);
    }
    x = snug_global_average_pool2d(model, x,
                                   &(snug_pool_options){SNUG_POOL_DEFAULTS, .keepdims = true});
    x = snug_dropout(model, x, .001f, NULL, "dropout");
    x = snug_conv2d(model, x,
                    &(snug_conv_options){SNUG_CONV_DEFAULTS, .name = "conv_preds",
                                         .filters = p->classes, .kernel = {1, 1},
                                         .padding = SNUG_SAME});
    x = snug_reshape(model, x, 1, &p->classes, "reshape_2");
    if (p->linear_head) {
        return x;
    }
    return snug_activation(model, x,
                           &(snug_activation_options){SNUG_ACTIVATION_DEFAULTS,
                                                      .name = "predictions", .kind = SNUG_SOFTMAX});
}

/* ---- MobileNetV2 ---- */

typedef struct inverted {
    snug_model *model;
    char prefix[24];
    int64_t height, width, channels; /* of what comes in */
} inverted;

static const char *named(const inverted *b, char *out, size_t n, const char *suffix)
{
    snprintf(out, n, "%s_%s", b->prefix, suffix);
    return out;
}

static snug_tensor point(const inverted *b, snug_tensor x, int64_t filters, const char *conv,
                         const char *bn)
{
    char name[48];
    x = snug_conv2d(b->model, x,
                    &(snug_conv_options){SNUG_CONV_DEFAULTS,
                                         .name = named(b, name, sizeof name, conv),
                                         .filters = filters, .kernel = {1, 1}, .padding = SNUG_SAME,
                                         .no_bias = true});
    return batch_norm(b->model, x, named(b, name, sizeof name, bn), .999f);
}

static snug_tensor inverted_block(inverted *b, snug_tensor in, int64_t filters, int64_t stride,
                                  int64_t expansion)
{
    char name[48];
    snug_tensor x = in;
    if (expansion > 1) {
        x = point(b, x, expansion * b->channels, "expand", "expand_BN");
        x = snug_relu(b->model, x, 6, named(b, name, sizeof name, "expand_relu"));
    }
    if (stride == 2) { /* Keras' correct_pad for a kernel of 3 */
        int64_t pads[4] = {b->height % 2, 1, b->width % 2, 1};
        x = snug_zero_padding2d(b->model, x, pads, named(b, name, sizeof name, "pad"));
        b->height = (b->height + 1) / 2;
        b->width = (b->width + 1) / 2;
    }
    x = snug_depthwise_conv2d(
        b->model, x,
        &(snug_conv_options){SNUG_CONV_DEFAULTS, .name = named(b, name, sizeof name, "depthwise"),
                             .kernel = {3, 3}, .strides = {stride, stride},
                             .padding = stride == 2 ? SNUG_VALID : SNUG_SAME, .no_bias = true});
    x = batch_norm(b->model, x, named(b, name, sizeof name, "depthwise_BN"), .999f);
    x = snug_relu(b->model, x, 6, named(b, name, sizeof name, "depthwise_relu"));
    x = point(b, x, filters, "project", "project_BN");
    if (stride == 1 && filters == b->channels) {
        x = snug_add(b->model, in, x, named(b, name, sizeof name, "add"));
    }
    b->channels = filters;
    return x;
}

/* make_divisible of the reference code, at every width. */
static int64_t divisible(double value)
{
    int64_t rounded = SN_MAX((int64_t)(value + 4) / 8 * 8, 8);
    return (double)rounded < .9 * value ? rounded + 8 : rounded;
}

snug_tensor sn_zoo_mobilenetv2(snug_model *model, snug_tensor x, const sn_zoo_params *p)
{
    static const struct {
        int64_t expansion, filters, stride;
        int n;
    } stages[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 2, 3}, {6, 64, 2, 4},
                  {6, 96, 1, 3}, {6, 160, 2, 3}, {6, 320, 1, 1}};
    int64_t first = divisible(32 * p->width);
    x = snug_conv2d(model, x,
                    &(snug_conv_options){SNUG_CONV_DEFAULTS, .name = "Conv1", .filters = first,
                                         .kernel = {3, 3}, .strides = {2, 2}, .padding = SNUG_SAME,
                                         .no_bias = true});
    x = batch_norm(model, x, "bn_Conv1", .999f);
    x = snug_relu(model, x, 6, "Conv1_relu");
    inverted b = {.model = model,
                  .height = (p->height + 1) / 2,
                  .width = (p->width_pixels + 1) / 2,
                  .channels = first};
    int id = 0;
    for (size_t i = 0; i < SN_LEN(stages); i++) {
        for (int k = 0; k < stages[i].n; k++, id++) {
            if (id == 0) {
                snprintf(b.prefix, sizeof b.prefix, "expanded_conv");
            } else {
                snprintf(b.prefix, sizeof b.prefix, "block_%d", id);
            }
            int64_t filters = divisible((double)stages[i].filters * p->width);
            x = inverted_block(&b, x, filters, k == 0 ? stages[i].stride : 1, stages[i].expansion);
        }
    }
    int64_t last = p->width > 1 ? divisible(1280 * p->width) : 1280;
    x = snug_conv2d(model, x,
                    &(snug_conv_options){SNUG_CONV_DEFAULTS, .name = "Conv_1", .filters = last,
                                         .kernel = {1, 1}, .no_bias = true});
    x = batch_norm(model, x, "Conv_1_bn", .999f);
    x = snug_relu(model, x, 6, "out_relu");
    x = snug_global_average_pool2d(model, x, NULL);
    return snug_dense(
        model, x,
        &(snug_dense_options){SNUG_DENSE_DEFAULTS, .name = "predictions", .units = p->classes,
                              .activation = p->linear_head ? SNUG_LINEAR : SNUG_SOFTMAX});
}
