/* SPDX-License-Identifier: Apache-2.0
 *
 * model.h - a model: layers as Keras names them, built by calls, one call a layer.
 *
 *     snug_model *m;
 *     snug_model_new(&m, "tiny", &err);
 *     snug_tensor x = snug_input(m, 28, 28, 1);
 *     snug_conv_options conv = {SNUG_CONV_DEFAULTS, .filters = 32, .kernel = {3, 3}};
 *     x = snug_conv2d(m, x, &conv);
 *     snug_dense_options dense = {SNUG_DENSE_DEFAULTS, .units = 10};
 *     x = snug_dense(m, snug_flatten(m, x), &dense);
 *     if (snug_model_finish(m, x, &err)) ...
 *
 * Errors are sticky: a layer call that fails returns -1 and later calls on -1 return -1;
 * snug_model_finish reports the first failure with its layer. Shapes exclude the batch.
 * Zero in an option always means its default. Names are copied; NULL makes Keras' name
 * ("conv2d", "conv2d_1", ...).
 * Ownership: the caller frees with snug_model_free; getters borrow until then.
 * Threads: one at a time while building, read-only afterwards.
 */
#ifndef SNUG_MODEL_H
#define SNUG_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "snug/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct snug_model snug_model;
typedef int32_t snug_tensor; /* a layer's output; -1: a failed call */

typedef enum snug_padding { SNUG_VALID, SNUG_SAME, SNUG_EXPLICIT } snug_padding;

typedef enum snug_activation_kind {
    SNUG_LINEAR,
    SNUG_RELU,
    SNUG_RELU6,
    SNUG_LEAKY_RELU, /* alpha .3 as a layer, .2 as an activation, as Keras */
    SNUG_ELU,
    SNUG_GELU,
    SNUG_GELU_TANH,
    SNUG_SILU,
    SNUG_HARD_SILU,
    SNUG_SIGMOID,
    SNUG_HARD_SIGMOID,
    SNUG_TANH,
    SNUG_SOFTMAX
} snug_activation_kind;

typedef enum snug_initializer {
    SNUG_INIT_DEFAULT, /* glorot uniform for kernels, zeros for biases, as Keras */
    SNUG_GLOROT_UNIFORM,
    SNUG_GLOROT_NORMAL,
    SNUG_HE_UNIFORM,
    SNUG_HE_NORMAL,
    SNUG_LECUN_UNIFORM,
    SNUG_LECUN_NORMAL,
    SNUG_RANDOM_NORMAL,    /* sigma .05 */
    SNUG_RANDOM_UNIFORM,   /* +-.05 */
    SNUG_TRUNCATED_NORMAL, /* sigma .05 */
    SNUG_ORTHOGONAL,
    SNUG_ZEROS,
    SNUG_ONES,
    SNUG_CONSTANT /* init_value */
} snug_initializer;

typedef struct snug_conv_options {
    size_t struct_size;
    const char *name;
    int64_t filters;           /* output channels; depthwise: must be 0 */
    int64_t kernel[2];         /* height, width; {3,0} means 3x3; required */
    int64_t strides[2];        /* default 1 */
    int64_t dilation[2];       /* default 1 */
    snug_padding padding;      /* default valid */
    int64_t pads[4];           /* EXPLICIT: top, bottom, left, right */
    int64_t groups;            /* default 1 */
    int64_t multiplier;        /* depthwise and separable: outputs an input channel, default 1 */
    int64_t output_padding[2]; /* transposed: added to the result; default none */
    snug_activation_kind activation; /* default linear */
    bool no_bias;
    snug_initializer kernel_initializer, bias_initializer;
    float l2; /* l2 * sum(w^2) is added to the loss; default 0 */
} snug_conv_options;
#define SNUG_CONV_DEFAULTS .struct_size = sizeof(snug_conv_options)

typedef struct snug_dense_options {
    size_t struct_size;
    const char *name;
    int64_t units; /* required */
    snug_activation_kind activation;
    bool no_bias;
    snug_initializer kernel_initializer, bias_initializer;
    float l2;
} snug_dense_options;
#define SNUG_DENSE_DEFAULTS .struct_size = sizeof(snug_dense_options)

typedef struct snug_norm_options {
    size_t struct_size;
    const char *name;
    bool no_scale, no_center;
    float momentum; /* batch norm; default .99 */
    float epsilon;  /* default 1e-3 */
    int64_t groups; /* group norm; default 32 */
} snug_norm_options;
#define SNUG_NORM_DEFAULTS .struct_size = sizeof(snug_norm_options)

typedef struct snug_pool_options {
    size_t struct_size;
    const char *name;
    int64_t window[2];  /* default 2 */
    int64_t strides[2]; /* default: the window */
    snug_padding padding;
    int64_t pads[4]; /* EXPLICIT */
    bool keepdims;   /* global pooling: [1,1,C] rather than [C] */
} snug_pool_options;
#define SNUG_POOL_DEFAULTS .struct_size = sizeof(snug_pool_options)

typedef struct snug_activation_options {
    size_t struct_size;
    const char *name;
    snug_activation_kind kind;
    float alpha;     /* leaky: slope, default .3; elu: default 1 */
    float max_value; /* relu: 0 none */
    float threshold; /* relu */
} snug_activation_options;
#define SNUG_ACTIVATION_DEFAULTS .struct_size = sizeof(snug_activation_options)

typedef enum snug_merge_kind {
    SNUG_ADD,
    SNUG_SUBTRACT,
    SNUG_MULTIPLY,
    SNUG_DIVIDE,
    SNUG_AVERAGE,
    SNUG_MAXIMUM
} snug_merge_kind;

typedef enum snug_scalar_kind {
    SNUG_SCALAR_ADD,
    SNUG_SCALAR_SUBTRACT,
    SNUG_SCALAR_MULTIPLY,
    SNUG_SCALAR_DIVIDE,
    SNUG_SCALAR_RSUBTRACT,
    SNUG_SCALAR_RDIVIDE
} snug_scalar_kind;

/* An empty model; its input comes next. name NULL: "model". SNUG_E_MEMORY. */
SNUG_API snug_status snug_model_new(snug_model **out, const char *name, snug_error *err);

/* The one input: an image [height, width, channels], or features [n]. Call once, first. */
SNUG_API snug_tensor snug_input(snug_model *model, int64_t height, int64_t width, int64_t channels);
SNUG_API snug_tensor snug_input_features(snug_model *model, int64_t n);

/* Convolutions, as Keras' layers of these names; x is [H,W,C]. options are read during the call. */
SNUG_API snug_tensor snug_conv2d(snug_model *model, snug_tensor x,
                                 const snug_conv_options *options);
SNUG_API snug_tensor snug_depthwise_conv2d(snug_model *model, snug_tensor x,
                                           const snug_conv_options *options);
SNUG_API snug_tensor snug_separable_conv2d(snug_model *model, snug_tensor x,
                                           const snug_conv_options *options);
SNUG_API snug_tensor snug_conv2d_transpose(snug_model *model, snug_tensor x,
                                           const snug_conv_options *options);
SNUG_API snug_tensor snug_dense(snug_model *model, snug_tensor x,
                                const snug_dense_options *options);
SNUG_API snug_tensor snug_batch_norm(snug_model *model, snug_tensor x,
                                     const snug_norm_options *options);
SNUG_API snug_tensor snug_layer_norm(snug_model *model, snug_tensor x,
                                     const snug_norm_options *options);
SNUG_API snug_tensor snug_group_norm(snug_model *model, snug_tensor x,
                                     const snug_norm_options *options);
SNUG_API snug_tensor snug_activation(snug_model *model, snug_tensor x,
                                     const snug_activation_options *options);
/* Short forms: snug_relu(m, x, 6, "relu6") has max_value 6 (0: none). */
SNUG_API snug_tensor snug_relu(snug_model *model, snug_tensor x, float max_value, const char *name);
SNUG_API snug_tensor snug_softmax(snug_model *model, snug_tensor x, const char *name);
/* One alpha for each channel (shared_axes 1, 2) when shared, else for each element. */
SNUG_API snug_tensor snug_prelu(snug_model *model, snug_tensor x, bool shared, const char *name);
SNUG_API snug_tensor snug_max_pool2d(snug_model *model, snug_tensor x,
                                     const snug_pool_options *options);
SNUG_API snug_tensor snug_average_pool2d(snug_model *model, snug_tensor x,
                                         const snug_pool_options *options);
SNUG_API snug_tensor snug_global_max_pool2d(snug_model *model, snug_tensor x,
                                            const snug_pool_options *options);
SNUG_API snug_tensor snug_global_average_pool2d(snug_model *model, snug_tensor x,
                                                const snug_pool_options *options);
/* top, bottom, left, right */
SNUG_API snug_tensor snug_zero_padding2d(snug_model *model, snug_tensor x, const int64_t pads[4],
                                         const char *name);
SNUG_API snug_tensor snug_cropping2d(snug_model *model, snug_tensor x, const int64_t crops[4],
                                     const char *name);
SNUG_API snug_tensor snug_upsampling2d(snug_model *model, snug_tensor x, int64_t factor_h,
                                       int64_t factor_w, bool bilinear, const char *name);
/* n inputs of shapes that broadcast (add, average, multiply, maximum: 2 or more; the others: 2). */
SNUG_API snug_tensor snug_merge(snug_model *model, snug_merge_kind kind, const snug_tensor *x,
                                size_t n, const char *name);
SNUG_API snug_tensor snug_add(snug_model *model, snug_tensor a, snug_tensor b, const char *name);
/* Along an axis of the sample (0 height, 1 width, 2 channels; -1 the last). */
SNUG_API snug_tensor snug_concatenate(snug_model *model, const snug_tensor *x, size_t n, int axis,
                                      const char *name);
SNUG_API snug_tensor snug_scalar(snug_model *model, snug_tensor x, snug_scalar_kind kind,
                                 float value, const char *name);
/* noise_shape: NULL, or one number an axis of the sample: 1 shares the draw along it, 0 does not.
 */
SNUG_API snug_tensor snug_dropout(snug_model *model, snug_tensor x, float rate,
                                  const int64_t *noise_shape, const char *name);
SNUG_API snug_tensor snug_flatten(snug_model *model, snug_tensor x, const char *name);
/* One dimension may be -1. rank 1..4 */
SNUG_API snug_tensor snug_reshape(snug_model *model, snug_tensor x, int rank, const int64_t *dim,
                                  const char *name);
/* perm counts sample axes from 1, as Keras' Permute. */
SNUG_API snug_tensor snug_permute(snug_model *model, snug_tensor x, const int *perm,
                                  const char *name);
SNUG_API snug_tensor snug_rescaling(snug_model *model, snug_tensor x, float scale, float offset,
                                    const char *name);
/* (x - mean) / max(sqrt(variance), 1e-7) along the last axis; n values each, copied. */
SNUG_API snug_tensor snug_normalization(snug_model *model, snug_tensor x, size_t n,
                                        const float *mean, const float *variance, const char *name);

/* Ends building: `output` is the model's output. Every later use needs it. */
SNUG_API snug_status snug_model_finish(snug_model *model, snug_tensor output, snug_error *err);

/* A model of the zoo, "mobilenet", "mobilenet:width=0.5", "cnn:depth=4"; input height, width and
 * channels (0: the model's own), classes (0: the model's own, 1000 or as its parameters say).
 * SNUG_E_NOT_FOUND names the nearest model; SNUG_E_USAGE a bad parameter. */
SNUG_API snug_status snug_model_zoo(snug_model **out, const char *spec, int64_t height,
                                    int64_t width, int64_t channels, int64_t classes,
                                    snug_error *err);
/* Names of the zoo, *n of them; static storage. */
SNUG_API const char *const *snug_zoo_names(size_t *n);

/* ---- looking at a model ---- */
typedef struct snug_layer_info {
    const char *name;
    const char *type; /* "Conv2D" */
    int rank;         /* of the output, without the batch */
    int64_t shape[4];
    uint64_t parameters, trainable; /* numbers, not bytes */
    size_t n_inputs;                /* layers that it reads */
    const size_t *inputs;           /* their indices */
} snug_layer_info;

typedef struct snug_weight_info {
    const char *name; /* "conv1/kernel" */
    size_t layer;
    int rank;
    int64_t shape[4];
    uint64_t count;
    bool trainable; /* by kind (moving statistics are not) and by its layer */
} snug_weight_info;

/* What the model consists of, layers and weights in the order in which they were made. Names and
 * arrays are borrowed; index counts from 0 and must be less than the number. */
SNUG_API const char *snug_model_name(const snug_model *model);
SNUG_API size_t snug_model_n_layers(const snug_model *model);
SNUG_API void snug_model_layer(const snug_model *model, size_t index, snug_layer_info *out);
SNUG_API size_t snug_model_n_weights(const snug_model *model);
SNUG_API void snug_model_weight(const snug_model *model, size_t index, snug_weight_info *out);
SNUG_API uint64_t snug_model_parameters(const snug_model *model);
SNUG_API uint64_t snug_model_trainable_parameters(const snug_model *model);
/* Without the batch; returns the rank (1 or 3 for the input). */
SNUG_API int snug_model_input_shape(const snug_model *model, int64_t shape[4]);
SNUG_API int snug_model_output_shape(const snug_model *model, int64_t shape[4]);
/* The output layer is a softmax (or sigmoid): losses are computed from its logits. */
SNUG_API bool snug_model_ends_in_softmax(const snug_model *model);
SNUG_API bool snug_model_ends_in_sigmoid(const snug_model *model);
/* The first layers are Rescaling or Normalization: the model takes 0..255. */
SNUG_API bool snug_model_rescales_itself(const snug_model *model);
SNUG_API bool snug_model_has_batch_norm(const snug_model *model);
/* Freezes or thaws a layer; SNUG_E_NOT_FOUND names the nearest layer. A frozen BatchNorm uses its
 * moving statistics. */
SNUG_API snug_status snug_model_set_trainable(snug_model *model, const char *layer, bool trainable,
                                              snug_error *err);

/* NULL-safe. */
SNUG_API void snug_model_free(snug_model *model);

#ifdef __cplusplus
}
#endif
#endif
