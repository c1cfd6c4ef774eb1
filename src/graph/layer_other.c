/* SPDX-License-Identifier: Apache-2.0
 *
 * layer_other.c - the layers without kernels: norms, activations, pools, merges, shapes.
 */
#include "graph/model.h"

#include <math.h>
#include <string.h>

/* A layer of one node with one input. */
static snug_tensor single(snug_model *model, snug_tensor x, const char *stem, const char *type,
                          const char *name, sn_op_id op, const sn_attrs *attrs)
{
    if (sn_model_begin(model, stem, type, name, &x, 1) == SIZE_MAX) {
        return -1;
    }
    sn_model_ref in = sn_model_tensor_ref(x);
    return sn_model_end(model, sn_model_add_node(model, op, attrs, 1, &in));
}

/* ---- norms ---- */

/* gamma and beta, absent where the options leave them out. */
static void scale_and_center(snug_model *model, const snug_norm_options *o, int64_t channels,
                             sn_model_ref *gamma, sn_model_ref *beta)
{
    sn_shape shape = {1, {channels}};
    if (!o->no_scale) {
        *gamma = sn_model_weight_ref(
            sn_model_add_weight(model, "gamma", shape, NULL, SNUG_ONES, false, 0));
    }
    if (!o->no_center) {
        *beta = sn_model_weight_ref(
            sn_model_add_weight(model, "beta", shape, NULL, SNUG_ZEROS, false, 0));
    }
}

snug_tensor snug_batch_norm(snug_model *model, snug_tensor x, const snug_norm_options *options)
{
    const snug_norm_options none = {SNUG_NORM_DEFAULTS}, *o = options ? options : &none;
    if (sn_model_begin(model, "batch_normalization", "BatchNormalization", o->name, &x, 1) ==
        SIZE_MAX) {
        return -1;
    }
    const sn_shape *in = sn_model_shape(model, x);
    int64_t channels = in->dim[in->rank - 1];
    sn_model_ref refs[5] = {sn_model_tensor_ref(x)};
    scale_and_center(model, o, channels, &refs[1], &refs[2]);
    sn_shape shape = {1, {channels}};
    refs[3] = sn_model_weight_ref(
        sn_model_add_weight(model, "moving_mean", shape, NULL, SNUG_ZEROS, true, 0));
    refs[4] = sn_model_weight_ref(
        sn_model_add_weight(model, "moving_variance", shape, NULL, SNUG_ONES, true, 0));
    sn_attrs attrs = {.norm = {.epsilon = o->epsilon > 0 ? o->epsilon : 1e-3f,
                               .momentum = o->momentum > 0 ? o->momentum : .99f}};
    return sn_model_end(model, sn_model_add_node(model, SN_OP_BATCH_NORM, &attrs, 5, refs));
}

static snug_tensor group_norm(snug_model *model, snug_tensor x, const snug_norm_options *o,
                              const char *stem, const char *type, int64_t groups)
{
    if (sn_model_begin(model, stem, type, o->name, &x, 1) == SIZE_MAX) {
        return -1;
    }
    const sn_shape *in = sn_model_shape(model, x);
    sn_model_ref refs[3] = {sn_model_tensor_ref(x)};
    scale_and_center(model, o, in->dim[in->rank - 1], &refs[1], &refs[2]);
    sn_attrs attrs = {.norm = {.epsilon = o->epsilon > 0 ? o->epsilon : 1e-3f, .groups = groups}};
    return sn_model_end(model, sn_model_add_node(model, SN_OP_GROUP_NORM, &attrs, 3, refs));
}

snug_tensor snug_layer_norm(snug_model *model, snug_tensor x, const snug_norm_options *options)
{
    const snug_norm_options none = {SNUG_NORM_DEFAULTS}, *o = options ? options : &none;
    return group_norm(model, x, o, "layer_normalization", "LayerNormalization", 0);
}

snug_tensor snug_group_norm(snug_model *model, snug_tensor x, const snug_norm_options *options)
{
    const snug_norm_options none = {SNUG_NORM_DEFAULTS}, *o = options ? options : &none;
    return group_norm(model, x, o, "group_normalization", "GroupNormalization",
                      o->groups ? o->groups : 32);
}

/* ---- activations ---- */

snug_tensor sn_model_add_activation(snug_model *model, snug_tensor x, snug_activation_kind kind,
                                    float alpha, float max_value, float threshold)
{
    static const sn_act kinds[] = {
        [SNUG_RELU] = SN_ACT_RELU,       [SNUG_RELU6] = SN_ACT_RELU,
        [SNUG_LEAKY_RELU] = SN_ACT_RELU, [SNUG_ELU] = SN_ACT_ELU,
        [SNUG_GELU] = SN_ACT_GELU,       [SNUG_GELU_TANH] = SN_ACT_GELU_TANH,
        [SNUG_SILU] = SN_ACT_SILU,       [SNUG_HARD_SILU] = SN_ACT_HARD_SILU,
        [SNUG_SIGMOID] = SN_ACT_SIGMOID, [SNUG_HARD_SIGMOID] = SN_ACT_HARD_SIGMOID,
        [SNUG_TANH] = SN_ACT_TANH};
    if (!sn_model_ok(model, x) || kind == SNUG_LINEAR) {
        return x;
    }
    sn_model_ref in = sn_model_tensor_ref(x);
    sn_attrs attrs = {0};
    if (kind == SNUG_SOFTMAX) {
        return sn_model_add_node(model, SN_OP_SOFTMAX, &attrs, 1, &in);
    }
    if ((size_t)kind >= SN_LEN(kinds)) {
        return sn_model_fail(model, SNUG_E_USAGE, "there is no activation number %d", (int)kind);
    }
    attrs.act = (sn_act_attrs){kinds[kind], alpha, max_value, threshold};
    if (kind == SNUG_RELU6) {
        attrs.act.max = 6;
    } else if (kind == SNUG_LEAKY_RELU && alpha == 0) {
        attrs.act.alpha = .2f;
    } else if (kind == SNUG_ELU && alpha == 0) {
        attrs.act.alpha = 1;
    }
    return sn_model_add_node(model, SN_OP_ACTIVATION, &attrs, 1, &in);
}

snug_tensor snug_activation(snug_model *model, snug_tensor x,
                            const snug_activation_options *options)
{
    const snug_activation_options none = {SNUG_ACTIVATION_DEFAULTS}, *o = options ? options : &none;
    const char *stem = "activation", *type = "Activation";
    float alpha = o->alpha;
    if (o->kind == SNUG_LEAKY_RELU) {
        stem = "leaky_re_lu";
        type = "LeakyReLU";
        alpha = alpha == 0 ? .3f : alpha;
    } else if (o->kind == SNUG_ELU) {
        stem = "elu";
        type = "ELU";
    }
    if (sn_model_begin(model, stem, type, o->name, &x, 1) == SIZE_MAX) {
        return -1;
    }
    if (o->kind == SNUG_LINEAR) { /* a layer that changes nothing still has an output of its own */
        sn_attrs attrs = {.scalar = {SN_SCALAR_MUL, 1, 0}};
        sn_model_ref in = sn_model_tensor_ref(x);
        return sn_model_end(model, sn_model_add_node(model, SN_OP_SCALAR, &attrs, 1, &in));
    }
    return sn_model_end(
        model, sn_model_add_activation(model, x, o->kind, alpha, o->max_value, o->threshold));
}

snug_tensor snug_relu(snug_model *model, snug_tensor x, float max_value, const char *name)
{
    sn_attrs attrs = {.act = {SN_ACT_RELU, 0, max_value, 0}};
    return single(model, x, "re_lu", "ReLU", name, SN_OP_ACTIVATION, &attrs);
}

snug_tensor snug_softmax(snug_model *model, snug_tensor x, const char *name)
{
    sn_attrs attrs = {0};
    return single(model, x, "softmax", "Softmax", name, SN_OP_SOFTMAX, &attrs);
}

snug_tensor snug_prelu(snug_model *model, snug_tensor x, bool shared, const char *name)
{
    if (sn_model_begin(model, "p_re_lu", "PReLU", name, &x, 1) == SIZE_MAX) {
        return -1;
    }
    const sn_shape *in = sn_model_shape(model, x);
    sn_shape shape = {in->rank - 1, {0}};
    for (int i = 1; i < in->rank; i++) {
        shape.dim[i - 1] = shared && i < in->rank - 1 ? 1 : in->dim[i];
    }
    uint32_t alpha = sn_model_add_weight(model, "alpha", shape, NULL, SNUG_ZEROS, false, 0);
    sn_attrs attrs = {0};
    sn_model_ref refs[2] = {sn_model_tensor_ref(x), sn_model_weight_ref(alpha)};
    return sn_model_end(model, sn_model_add_node(model, SN_OP_PRELU, &attrs, 2, refs));
}

/* ---- pools ---- */

static snug_tensor pool(snug_model *model, snug_tensor x, const snug_pool_options *options,
                        sn_pool_kind kind, const char *stem, const char *type)
{
    const snug_pool_options none = {SNUG_POOL_DEFAULTS}, *o = options ? options : &none;
    if (sn_model_begin(model, stem, type, o->name, &x, 1) == SIZE_MAX) {
        return -1;
    }
    const sn_shape *in = sn_model_shape(model, x);
    if (in->rank != 4) {
        char text[96];
        return sn_model_fail(model, SNUG_E_USAGE,
                             "it needs an image [height,width,channels], not %s",
                             sn_shape_format(text, sizeof text, in));
    }
    sn_attrs attrs = {.pool = {.kind = kind}};
    for (int i = 0; i < 2; i++) {
        int64_t window = o->window[i] ? o->window[i] : o->window[0] ? o->window[0] : 2;
        int64_t stride = o->strides[i] ? o->strides[i] : o->strides[0] ? o->strides[0] : window;
        if (window < 1 || window > 4096 || stride < 1 || stride > 4096) {
            return sn_model_fail(model, SNUG_E_USAGE,
                                 "window %" PRId64 " and stride %" PRId64 " must lie in 1..4096",
                                 window, stride);
        }
        attrs.pool.window[i] = window;
        attrs.pool.stride[i] = stride;
        if (o->padding == SNUG_SAME) {
            sn_same_padding(in->dim[1 + i], window, stride, 1, &attrs.pool.pad[2 * i],
                            &attrs.pool.pad[2 * i + 1]);
        } else if (o->padding == SNUG_EXPLICIT) {
            attrs.pool.pad[2 * i] = o->pads[2 * i];
            attrs.pool.pad[2 * i + 1] = o->pads[2 * i + 1];
        }
    }
    sn_model_ref ref = sn_model_tensor_ref(x);
    return sn_model_end(model, sn_model_add_node(model, SN_OP_POOL2D, &attrs, 1, &ref));
}

snug_tensor snug_max_pool2d(snug_model *model, snug_tensor x, const snug_pool_options *options)
{
    return pool(model, x, options, SN_POOL_MAX, "max_pooling2d", "MaxPooling2D");
}

snug_tensor snug_average_pool2d(snug_model *model, snug_tensor x, const snug_pool_options *options)
{
    return pool(model, x, options, SN_POOL_AVERAGE, "average_pooling2d", "AveragePooling2D");
}

snug_tensor snug_global_max_pool2d(snug_model *model, snug_tensor x,
                                   const snug_pool_options *options)
{
    sn_attrs attrs = {.pool = {.kind = SN_POOL_MAX, .keepdims = options && options->keepdims}};
    return single(model, x, "global_max_pooling2d", "GlobalMaxPooling2D",
                  options ? options->name : NULL, SN_OP_GLOBAL_POOL, &attrs);
}

snug_tensor snug_global_average_pool2d(snug_model *model, snug_tensor x,
                                       const snug_pool_options *options)
{
    sn_attrs attrs = {.pool = {.kind = SN_POOL_AVERAGE, .keepdims = options && options->keepdims}};
    return single(model, x, "global_average_pooling2d", "GlobalAveragePooling2D",
                  options ? options->name : NULL, SN_OP_GLOBAL_POOL, &attrs);
}

snug_tensor snug_zero_padding2d(snug_model *model, snug_tensor x, const int64_t pads[4],
                                const char *name)
{
    sn_attrs attrs = {.pad = {{pads[0], pads[1], pads[2], pads[3]}}};
    return single(model, x, "zero_padding2d", "ZeroPadding2D", name, SN_OP_PAD2D, &attrs);
}

snug_tensor snug_cropping2d(snug_model *model, snug_tensor x, const int64_t crops[4],
                            const char *name)
{
    sn_attrs attrs = {.pad = {{crops[0], crops[1], crops[2], crops[3]}}};
    return single(model, x, "cropping2d", "Cropping2D", name, SN_OP_CROP2D, &attrs);
}

snug_tensor snug_upsampling2d(snug_model *model, snug_tensor x, int64_t factor_h, int64_t factor_w,
                              bool bilinear, const char *name)
{
    sn_attrs attrs = {.upsample = {{factor_h, factor_w}, bilinear}};
    return single(model, x, "up_sampling2d", "UpSampling2D", name, SN_OP_UPSAMPLE2D, &attrs);
}

/* ---- merges and scalars ---- */

snug_tensor snug_merge(snug_model *model, snug_merge_kind kind, const snug_tensor *x, size_t n,
                       const char *name)
{
    static const struct {
        const char *stem, *type;
        sn_binary_kind op;
        size_t most;
    } kinds[] = {[SNUG_ADD] = {"add", "Add", SN_BINARY_ADD, 64},
                 [SNUG_SUBTRACT] = {"subtract", "Subtract", SN_BINARY_SUB, 2},
                 [SNUG_MULTIPLY] = {"multiply", "Multiply", SN_BINARY_MUL, 64},
                 [SNUG_DIVIDE] = {"divide", "Divide", SN_BINARY_DIV, 2},
                 [SNUG_AVERAGE] = {"average", "Average", SN_BINARY_ADD, 64},
                 [SNUG_MAXIMUM] = {"maximum", "Maximum", SN_BINARY_MAX, 64}};
    if ((size_t)kind >= SN_LEN(kinds)) {
        return sn_model_fail(model, SNUG_E_USAGE, "there is no merge number %d", (int)kind);
    }
    if (sn_model_begin(model, kinds[kind].stem, kinds[kind].type, name, x, n) == SIZE_MAX) {
        return -1;
    }
    if (n < 2 || n > kinds[kind].most) {
        return sn_model_fail(model, SNUG_E_USAGE, "it takes 2 to %zu inputs, not %zu",
                             kinds[kind].most, n);
    }
    snug_tensor sum = x[0];
    for (size_t i = 1; i < n && sum >= 0; i++) {
        sn_attrs attrs = {.binary = {.kind = kinds[kind].op}};
        sn_model_ref in[2] = {sn_model_tensor_ref(sum), sn_model_tensor_ref(x[i])};
        sum = sn_model_add_node(model, SN_OP_BINARY, &attrs, 2, in);
    }
    if (kind == SNUG_AVERAGE && sum >= 0) {
        sn_attrs attrs = {.scalar = {SN_SCALAR_DIV, (float)n, 0}};
        sn_model_ref in = sn_model_tensor_ref(sum);
        sum = sn_model_add_node(model, SN_OP_SCALAR, &attrs, 1, &in);
    }
    return sn_model_end(model, sum);
}

snug_tensor snug_add(snug_model *model, snug_tensor a, snug_tensor b, const char *name)
{
    return snug_merge(model, SNUG_ADD, (snug_tensor[]){a, b}, 2, name);
}

snug_tensor snug_concatenate(snug_model *model, const snug_tensor *x, size_t n, int axis,
                             const char *name)
{
    if (sn_model_begin(model, "concatenate", "Concatenate", name, x, n) == SIZE_MAX) {
        return -1;
    }
    if (n < 2 || n > SN_MAX_IN) {
        return sn_model_fail(model, SNUG_E_USAGE, "it takes 2 to %d inputs, not %zu", SN_MAX_IN, n);
    }
    int rank = sn_model_shape(model, x[0])->rank;
    if (axis < -1 || axis >= rank - 1) {
        return sn_model_fail(model, SNUG_E_USAGE, "axis %d is not one of its %d axes", axis,
                             rank - 1);
    }
    sn_model_ref in[SN_MAX_IN];
    for (size_t i = 0; i < n; i++) {
        in[i] = sn_model_tensor_ref(x[i]);
    }
    sn_attrs attrs = {.slice = {.axis = axis < 0 ? rank - 1 : axis + 1}};
    return sn_model_end(model, sn_model_add_node(model, SN_OP_CONCAT, &attrs, (int)n, in));
}

snug_tensor snug_scalar(snug_model *model, snug_tensor x, snug_scalar_kind kind, float value,
                        const char *name)
{
    static const struct {
        const char *stem, *type;
        sn_scalar_kind op;
    } kinds[] = {[SNUG_SCALAR_ADD] = {"add", "Add", SN_SCALAR_ADD},
                 [SNUG_SCALAR_SUBTRACT] = {"subtract", "Subtract", SN_SCALAR_SUB},
                 [SNUG_SCALAR_MULTIPLY] = {"multiply", "Multiply", SN_SCALAR_MUL},
                 [SNUG_SCALAR_DIVIDE] = {"true_divide", "TrueDivide", SN_SCALAR_DIV},
                 [SNUG_SCALAR_RSUBTRACT] = {"subtract", "Subtract", SN_SCALAR_RSUB},
                 [SNUG_SCALAR_RDIVIDE] = {"true_divide", "TrueDivide", SN_SCALAR_RDIV}};
    if ((size_t)kind >= SN_LEN(kinds)) {
        return sn_model_fail(model, SNUG_E_USAGE, "there is no scalar form number %d", (int)kind);
    }
    sn_attrs attrs = {.scalar = {kinds[kind].op, value, 0}};
    return single(model, x, kinds[kind].stem, kinds[kind].type, name, SN_OP_SCALAR, &attrs);
}

snug_tensor snug_rescaling(snug_model *model, snug_tensor x, float scale, float offset,
                           const char *name)
{
    sn_attrs attrs = {.scalar = {SN_SCALAR_AFFINE, scale, offset}};
    return single(model, x, "rescaling", "Rescaling", name, SN_OP_SCALAR, &attrs);
}

snug_tensor snug_normalization(snug_model *model, snug_tensor x, size_t n, const float *mean,
                               const float *variance, const char *name)
{
    if (sn_model_begin(model, "normalization", "Normalization", name, &x, 1) == SIZE_MAX) {
        return -1;
    }
    const sn_shape *in = sn_model_shape(model, x);
    if (n < 1 || (int64_t)n != in->dim[in->rank - 1]) {
        return sn_model_fail(model, SNUG_E_USAGE, "%zu means for %" PRId64 " channels", n,
                             in->dim[in->rank - 1]);
    }
    float *deviation = sn_arena_alloc_array(&model->arena, n, sizeof *deviation);
    if (!deviation) {
        return sn_model_fail(model, SNUG_E_MEMORY, "no memory for a layer");
    }
    for (size_t i = 0; i < n; i++) {
        deviation[i] = fmaxf(sqrtf(variance[i]), 1e-7f);
    }
    sn_shape shape = {1, {(int64_t)n}};
    sn_model_ref refs[2] = {sn_model_tensor_ref(x),
                            {SN_REF_CONSTANT, sn_model_add_constant(model, "mean", shape, mean)}};
    sn_attrs attrs = {.binary = {.kind = SN_BINARY_SUB}};
    x = sn_model_add_node(model, SN_OP_BINARY, &attrs, 2, refs);
    if (x < 0) {
        return -1;
    }
    refs[0] = sn_model_tensor_ref(x);
    refs[1] = (sn_model_ref){SN_REF_CONSTANT,
                             sn_model_add_constant(model, "deviation", shape, deviation)};
    attrs.binary.kind = SN_BINARY_DIV;
    return sn_model_end(model, sn_model_add_node(model, SN_OP_BINARY, &attrs, 2, refs));
}

/* ---- dropout and shapes ---- */

snug_tensor snug_dropout(snug_model *model, snug_tensor x, float rate, const int64_t *noise_shape,
                         const char *name)
{
    if (sn_model_begin(model, "dropout", "Dropout", name, &x, 1) == SIZE_MAX) {
        return -1;
    }
    if (!(rate >= 0 && rate < 1)) {
        return sn_model_fail(model, SNUG_E_USAGE, "its rate %g must lie in 0 <= rate < 1",
                             (double)rate);
    }
    sn_attrs attrs = {.dropout = {.rate = rate, .stream = (uint32_t)model->layers.n - 1}};
    const sn_shape *in = sn_model_shape(model, x);
    for (int i = 1; noise_shape && i < in->rank; i++) {
        if (noise_shape[i - 1] == 1) {
            attrs.dropout.broadcast |= (uint8_t)(1u << i);
        }
    }
    sn_model_ref ref = sn_model_tensor_ref(x);
    return sn_model_end(model, sn_model_add_node(model, SN_OP_DROPOUT, &attrs, 1, &ref));
}

snug_tensor snug_flatten(snug_model *model, snug_tensor x, const char *name)
{
    if (!sn_model_ok(model, x)) {
        return sn_model_fail(model, SNUG_E_USAGE, "flatten: its input is no tensor of this model");
    }
    int64_t n = sn_shape_n(sn_model_shape(model, x));
    sn_attrs attrs = {.shape = {.shape = {2, {-1, n}}}};
    return single(model, x, "flatten", "Flatten", name, SN_OP_RESHAPE, &attrs);
}

snug_tensor snug_reshape(snug_model *model, snug_tensor x, int rank, const int64_t *dim,
                         const char *name)
{
    if (sn_model_begin(model, "reshape", "Reshape", name, &x, 1) == SIZE_MAX) {
        return -1;
    }
    if (rank < 1 || rank > 4) {
        return sn_model_fail(model, SNUG_E_USAGE, "rank %d is not in 1..4", rank);
    }
    int64_t n = sn_shape_n(sn_model_shape(model, x)), known = 1;
    int unknown = -1;
    sn_attrs attrs = {.shape = {.shape = {rank + 1, {-1}}}};
    for (int i = 0; i < rank; i++) {
        attrs.shape.shape.dim[i + 1] = dim[i];
        if (dim[i] == -1 && unknown < 0) {
            unknown = i + 1;
        } else if (dim[i] < 1 || __builtin_mul_overflow(known, dim[i], &known)) {
            return sn_model_fail(model, SNUG_E_USAGE, "dimension %d is %" PRId64, i, dim[i]);
        }
    }
    if (unknown >= 0) {
        attrs.shape.shape.dim[unknown] = n / known;
        known *= n / known;
    }
    if (known != n) {
        return sn_model_fail(model, SNUG_E_USAGE,
                             "%" PRId64 " numbers cannot take a shape of %" PRId64, n, known);
    }
    sn_model_ref ref = sn_model_tensor_ref(x);
    return sn_model_end(model, sn_model_add_node(model, SN_OP_RESHAPE, &attrs, 1, &ref));
}

snug_tensor snug_permute(snug_model *model, snug_tensor x, const int *perm, const char *name)
{
    if (sn_model_begin(model, "permute", "Permute", name, &x, 1) == SIZE_MAX) {
        return -1;
    }
    const sn_shape *in = sn_model_shape(model, x);
    sn_attrs attrs = {.shape = {.perm = {0}}};
    unsigned seen = 0;
    for (int i = 1; i < in->rank; i++) {
        int p = perm[i - 1];
        if (p < 1 || p >= in->rank || (seen & (1u << p))) {
            return sn_model_fail(model, SNUG_E_USAGE, "perm names axis %d twice or out of 1..%d", p,
                                 in->rank - 1);
        }
        seen |= 1u << p;
        attrs.shape.perm[i] = p;
    }
    sn_model_ref ref = sn_model_tensor_ref(x);
    return sn_model_end(model, sn_model_add_node(model, SN_OP_PERMUTE, &attrs, 1, &ref));
}
