/* SPDX-License-Identifier: Apache-2.0
 *
 * layer_dense.c - the layers with kernels: convolutions of every kind, and dense.
 */
#include "graph/model.h"

#include <string.h>

static const snug_conv_options conv_none = {SNUG_CONV_DEFAULTS};
static const snug_dense_options dense_none = {SNUG_DENSE_DEFAULTS};

/* The attributes that all convolutions share; false after an error. */
static bool conv_attrs(snug_model *model, const snug_conv_options *o, const sn_shape *in,
                       sn_conv_attrs *a)
{
    if (in->rank != 4) {
        char text[96];
        sn_model_fail(model, SNUG_E_USAGE, "it needs an image [height,width,channels], not %s",
                      sn_shape_format(text, sizeof text, in));
        return false;
    }
    memset(a, 0, sizeof *a);
    for (int i = 0; i < 2; i++) {
        a->kernel[i] = o->kernel[i] ? o->kernel[i] : o->kernel[0];
        a->stride[i] = o->strides[i] ? o->strides[i] : o->strides[0] ? o->strides[0] : 1;
        a->dilation[i] = o->dilation[i] ? o->dilation[i] : o->dilation[0] ? o->dilation[0] : 1;
        if (a->kernel[i] < 1 || a->stride[i] < 1 || a->dilation[i] < 1 || a->kernel[i] > 4096 ||
            a->stride[i] > 4096 || a->dilation[i] > 4096) {
            sn_model_fail(model, SNUG_E_USAGE,
                          "kernel %" PRId64 ", stride %" PRId64 " and dilation %" PRId64
                          " must lie in 1..4096",
                          a->kernel[i], a->stride[i], a->dilation[i]);
            return false;
        }
        if (o->padding == SNUG_SAME) {
            sn_same_padding(in->dim[1 + i], a->kernel[i], a->stride[i], a->dilation[i],
                            &a->pad[2 * i], &a->pad[2 * i + 1]);
        } else if (o->padding == SNUG_EXPLICIT) {
            a->pad[2 * i] = o->pads[2 * i];
            a->pad[2 * i + 1] = o->pads[2 * i + 1];
        }
    }
    a->groups = o->groups ? o->groups : 1;
    return true;
}

/* Outputs an input channel of a depthwise kernel; -1 after an error. */
static int64_t multiplier_of(snug_model *model, const snug_conv_options *o)
{
    int64_t multiplier = o->multiplier ? o->multiplier : 1;
    if (multiplier < 1 || multiplier > 65536) {
        sn_model_fail(model, SNUG_E_USAGE, "its multiplier %" PRId64 " must lie in 1..65536",
                      multiplier);
        return -1;
    }
    return multiplier;
}

/* conv2d with a kernel of its own, bias and activation: what conv2d, depthwise and the two halves
 * of a separable convolution have in common. */
static snug_tensor conv_node(snug_model *model, snug_tensor x, const snug_conv_options *o,
                             const sn_conv_attrs *a, int64_t filters, const char *kernel_name,
                             const sn_shape *keras_shape, bool bias)
{
    int64_t channels = sn_model_shape(model, x)->dim[3];
    if (a->groups < 1 || channels % a->groups || filters < 1 || filters % a->groups) {
        return sn_model_fail(model, SNUG_E_USAGE,
                             "%" PRId64 " groups must divide its %" PRId64
                             " input channels and its %" PRId64 " filters",
                             a->groups, channels, filters);
    }
    sn_shape shape = {4, {a->kernel[0], a->kernel[1], channels / a->groups, filters}};
    uint32_t kernel = sn_model_add_weight(model, kernel_name, shape, keras_shape,
                                          o->kernel_initializer, false, o->l2);
    sn_attrs attrs = {.conv = *a};
    sn_model_ref in[3] = {sn_model_tensor_ref(x), sn_model_weight_ref(kernel), {SN_REF_NONE, 0}};
    if (bias) {
        in[2] = sn_model_weight_ref(
            sn_model_add_weight(model, "bias", (sn_shape){1, {filters}}, NULL,
                                o->bias_initializer ? o->bias_initializer : SNUG_ZEROS, false, 0));
    }
    return sn_model_add_node(model, SN_OP_CONV2D, &attrs, 3, in);
}

snug_tensor snug_conv2d(snug_model *model, snug_tensor x, const snug_conv_options *options)
{
    const snug_conv_options *o = options ? options : &conv_none;
    sn_conv_attrs a;
    if (sn_model_begin(model, "conv2d", "Conv2D", o->name, &x, 1) == SIZE_MAX ||
        !conv_attrs(model, o, sn_model_shape(model, x), &a)) {
        return -1;
    }
    x = conv_node(model, x, o, &a, o->filters, "kernel", NULL, !o->no_bias);
    return sn_model_end(model, sn_model_add_activation(model, x, o->activation, 0, 0, 0));
}

/* A depthwise convolution, the whole of a depthwise layer or the first half of a separable one; -1
 * after an error. */
static snug_tensor depthwise_node(snug_model *model, snug_tensor x, const snug_conv_options *o,
                                  const char *kernel_name, bool bias)
{
    sn_conv_attrs a;
    if (!conv_attrs(model, o, sn_model_shape(model, x), &a)) {
        return -1;
    }
    int64_t channels = sn_model_shape(model, x)->dim[3];
    int64_t multiplier = multiplier_of(model, o);
    if (multiplier < 0) {
        return -1;
    }
    a.groups = channels;
    sn_shape keras = {4, {a.kernel[0], a.kernel[1], channels, multiplier}};
    return conv_node(model, x, o, &a, channels * multiplier, kernel_name, &keras, bias);
}

snug_tensor snug_depthwise_conv2d(snug_model *model, snug_tensor x,
                                  const snug_conv_options *options)
{
    const snug_conv_options *o = options ? options : &conv_none;
    if (sn_model_begin(model, "depthwise_conv2d", "DepthwiseConv2D", o->name, &x, 1) == SIZE_MAX) {
        return -1;
    }
    x = depthwise_node(model, x, o, "kernel", !o->no_bias);
    return sn_model_ok(model, x)
               ? sn_model_end(model, sn_model_add_activation(model, x, o->activation, 0, 0, 0))
               : -1;
}

snug_tensor snug_separable_conv2d(snug_model *model, snug_tensor x,
                                  const snug_conv_options *options)
{
    const snug_conv_options *o = options ? options : &conv_none;
    if (sn_model_begin(model, "separable_conv2d", "SeparableConv2D", o->name, &x, 1) == SIZE_MAX) {
        return -1;
    }
    x = depthwise_node(model, x, o, "depthwise_kernel", false);
    if (!sn_model_ok(model, x)) {
        return -1;
    }
    sn_conv_attrs point = {.stride = {1, 1}, .dilation = {1, 1}, .groups = 1, .kernel = {1, 1}};
    x = conv_node(model, x, o, &point, o->filters, "pointwise_kernel", NULL, !o->no_bias);
    return sn_model_end(model, sn_model_add_activation(model, x, o->activation, 0, 0, 0));
}

/* Length of a transposed convolution's result, as Keras' deconv_output_length. */
static int64_t transposed_length(const snug_conv_options *o, int64_t in, int64_t kernel,
                                 int64_t stride, int64_t output_padding)
{
    if (output_padding > 0) {
        int64_t pad = o->padding == SNUG_SAME ? kernel / 2 : 0;
        return (in - 1) * stride + kernel - 2 * pad + output_padding;
    }
    return o->padding == SNUG_SAME ? in * stride : in * stride + SN_MAX(kernel - stride, 0);
}

snug_tensor snug_conv2d_transpose(snug_model *model, snug_tensor x,
                                  const snug_conv_options *options)
{
    const snug_conv_options *o = options ? options : &conv_none;
    sn_conv_attrs a;
    if (sn_model_begin(model, "conv2d_transpose", "Conv2DTranspose", o->name, &x, 1) == SIZE_MAX ||
        !conv_attrs(model, o, sn_model_shape(model, x), &a)) {
        return -1;
    }
    if (o->padding == SNUG_EXPLICIT || a.groups != 1 || a.dilation[0] != 1 || a.dilation[1] != 1) {
        return sn_model_fail(model, SNUG_E_UNSUPPORTED,
                             "a transposed convolution takes padding valid or same, one group and "
                             "no dilation");
    }
    const sn_shape *in = sn_model_shape(model, x);
    for (int i = 0; i < 2; i++) {
        if (o->output_padding[i] < 0 ||
            (o->output_padding[i] && o->output_padding[i] >= a.stride[i])) {
            return sn_model_fail(model, SNUG_E_USAGE,
                                 "its output padding %" PRId64
                                 " must lie below its stride %" PRId64,
                                 o->output_padding[i], a.stride[i]);
        }
        a.in_hw[i] =
            transposed_length(o, in->dim[1 + i], a.kernel[i], a.stride[i], o->output_padding[i]);
        a.pad[2 * i] = a.pad[2 * i + 1] = 0;
        if (o->padding == SNUG_SAME && a.in_hw[i] > 0) {
            sn_same_padding(a.in_hw[i], a.kernel[i], a.stride[i], 1, &a.pad[2 * i],
                            &a.pad[2 * i + 1]);
        }
    }
    sn_shape shape = {4, {a.kernel[0], a.kernel[1], o->filters, in->dim[3]}};
    uint32_t kernel =
        sn_model_add_weight(model, "kernel", shape, NULL, o->kernel_initializer, false, o->l2);
    sn_attrs attrs = {.conv = a};
    sn_model_ref refs[2] = {sn_model_tensor_ref(x), sn_model_weight_ref(kernel)};
    x = sn_model_add_node(model, SN_OP_CONV2D_DX, &attrs, 2, refs);
    if (!o->no_bias && sn_model_ok(model, x)) {
        uint32_t bias =
            sn_model_add_weight(model, "bias", (sn_shape){1, {o->filters}}, NULL,
                                o->bias_initializer ? o->bias_initializer : SNUG_ZEROS, false, 0);
        sn_attrs none = {0};
        sn_model_ref add[2] = {sn_model_tensor_ref(x), sn_model_weight_ref(bias)};
        x = sn_model_add_node(model, SN_OP_BIAS_ADD, &none, 2, add);
    }
    return sn_model_end(model, sn_model_add_activation(model, x, o->activation, 0, 0, 0));
}

snug_tensor snug_dense(snug_model *model, snug_tensor x, const snug_dense_options *options)
{
    const snug_dense_options *o = options ? options : &dense_none;
    if (sn_model_begin(model, "dense", "Dense", o->name, &x, 1) == SIZE_MAX) {
        return -1;
    }
    const sn_shape *in = sn_model_shape(model, x);
    if (o->units < 1) {
        return sn_model_fail(model, SNUG_E_USAGE, "units is %" PRId64 ", it must be at least 1",
                             o->units);
    }
    sn_shape shape = {2, {in->dim[in->rank - 1], o->units}};
    uint32_t kernel =
        sn_model_add_weight(model, "kernel", shape, NULL, o->kernel_initializer, false, o->l2);
    sn_attrs attrs = {.conv = {.groups = 1}};
    sn_model_ref refs[3] = {sn_model_tensor_ref(x), sn_model_weight_ref(kernel), {SN_REF_NONE, 0}};
    if (!o->no_bias) {
        refs[2] = sn_model_weight_ref(
            sn_model_add_weight(model, "bias", (sn_shape){1, {o->units}}, NULL,
                                o->bias_initializer ? o->bias_initializer : SNUG_ZEROS, false, 0));
    }
    x = sn_model_add_node(model, SN_OP_DENSE, &attrs, 3, refs);
    return sn_model_end(model, sn_model_add_activation(model, x, o->activation, 0, 0, 0));
}
