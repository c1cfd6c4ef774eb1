/* SPDX-License-Identifier: Apache-2.0
 *
 * model.h - what stands behind the public snug_model: layers for people, and under each layer the
 * operators that it means, as a template for one sample that sn_graph_from_model instantiates for a
 * batch.
 *
 *     for (size_t i = 0; i < model->nodes.n; i++)
 *         instantiate(&model->nodes.at[i]);
 *
 * Ownership: the model owns everything in its arena.  Threads: read-only once finished.
 */
#ifndef SN_GRAPH_MODEL_H
#define SN_GRAPH_MODEL_H

#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"
#include "ops/op.h"
#include "snug/model.h"

typedef enum sn_model_ref_kind {
    SN_REF_NONE,
    SN_REF_TENSOR,
    SN_REF_WEIGHT,
    SN_REF_CONSTANT
} sn_model_ref_kind;

/* An input of a template node. */
typedef struct sn_model_ref {
    sn_model_ref_kind kind;
    uint32_t index;
} sn_model_ref;

typedef struct sn_model_tensor {
    sn_desc desc; /* batch 1 */
    size_t layer;
} sn_model_tensor;

/* BATCH_NORM stands for its training and its inference form: x gamma? beta? moving_mean moving_var.
 */
typedef struct sn_model_node {
    sn_op_id op;
    sn_attrs attrs;
    int n_in;
    const sn_model_ref *in;
    uint32_t out; /* tensor */
    size_t layer;
} sn_model_node;

typedef struct sn_model_layer {
    const char *name, *type;
    uint32_t out; /* tensor */
    size_t n_inputs;
    size_t *inputs;
    size_t first_weight, n_weights;
    bool frozen;
} sn_model_layer;

typedef struct sn_model_weight {
    const char *name;
    size_t layer;
    sn_desc desc;         /* as the operator takes it */
    sn_shape keras_shape; /* as Keras has it: the same bytes in the PLAIN layout */
    bool statistic;       /* moving mean or variance: never trained */
    snug_initializer initializer;
    float init_value; /* SNUG_CONSTANT */
    float l2;
} sn_model_weight;

typedef struct sn_model_constant {
    const char *name;
    sn_desc desc;
    const float *values;
} sn_model_constant;

struct snug_model {
    sn_arena arena;
    const char *name;
    SN_VEC(sn_model_tensor) tensors;
    SN_VEC(sn_model_node) nodes;
    SN_VEC(sn_model_layer) layers;
    SN_VEC(sn_model_weight) weights;
    SN_VEC(sn_model_constant) constants;
    sn_map layer_names; /* name -> layer */
    sn_map name_counts; /* "conv2d" -> how many took that stem */
    uint32_t input, output;
    bool has_input, finished;
    snug_error error; /* the first failure while building */
};

/* ---- for the layer calls (layer_*.c) ---- */

/* Begins a layer: a unique name (given, or the stem with a number). SIZE_MAX after an error. */
size_t sn_model_begin(snug_model *model, const char *stem, const char *type, const char *name,
                      const snug_tensor *x, size_t n_x);
/* A weight of the layer being built; its index, UINT32_MAX after an error. keras_shape NULL: as
 * desc. */
uint32_t sn_model_add_weight(snug_model *model, const char *name, sn_shape shape,
                             const sn_shape *keras_shape, snug_initializer initializer,
                             bool statistic, float l2);
uint32_t sn_model_add_constant(snug_model *model, const char *name, sn_shape shape,
                               const float *values);
/* A template node of the layer being built; the tensor it makes, -1 after an error. */
snug_tensor sn_model_add_node(snug_model *model, sn_op_id op, const sn_attrs *attrs, int n_in,
                              const sn_model_ref *in);
/* Ends the layer: its output. Returns out. */
snug_tensor sn_model_end(snug_model *model, snug_tensor out);
/* Records the first failure, prefixed by the layer's name. Returns -1. */
snug_tensor sn_model_fail(snug_model *model, snug_status code, const char *format, ...)
    SNUG_PRINTF(3, 4);
bool sn_model_ok(const snug_model *model, snug_tensor x);
const sn_shape *sn_model_shape(const snug_model *model, snug_tensor x);
/* The activation's node after x, x itself for linear. alpha 0: the activation's default. */
snug_tensor sn_model_add_activation(snug_model *model, snug_tensor x, snug_activation_kind kind,
                                    float alpha, float max_value, float threshold);
static inline sn_model_ref sn_model_tensor_ref(snug_tensor x)
{
    return (sn_model_ref){SN_REF_TENSOR, (uint32_t)x};
}
static inline sn_model_ref sn_model_weight_ref(uint32_t weight)
{
    return (sn_model_ref){SN_REF_WEIGHT, weight};
}

/* ---- for those who run models ---- */

bool sn_model_weight_trains(const snug_model *model, size_t weight);
/* The first values of a weight in the PLAIN layout: Keras' initializers, drawn by Philox keyed by
 * (seed, weight). */
snug_status sn_model_init_weight(const snug_model *model, size_t weight, uint64_t seed, float *out,
                                 snug_error *err);

#endif
