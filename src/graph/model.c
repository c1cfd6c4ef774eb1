/* SPDX-License-Identifier: Apache-2.0
 *
 * model.c - building and looking at a snug_model.
 *
 * Invariants:
 *  1. after the first failure nothing is added any more, and error says what it was;
 *  2. the layer being built is the last one; its weights are the last n_weights of the list;
 *  3. every template tensor has a desc with batch 1, inferred by the operator's own rule.
 */
#include "graph/model.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

snug_status snug_model_new(snug_model **out, const char *name, snug_error *err)
{
    *out = NULL;
    snug_model *model = sn_alloc(SN_TAG_GRAPH, sizeof *model);
    if (!model) {
        return sn_fail(err, SNUG_E_MEMORY, "no memory for a model");
    }
    sn_arena_init(&model->arena, SN_TAG_GRAPH);
    sn_map_init(&model->layer_names, SN_TAG_GRAPH);
    sn_map_init(&model->name_counts, SN_TAG_GRAPH);
    model->name = sn_arena_strdup(&model->arena, name ? name : "model");
    if (!model->name) {
        snug_model_free(model);
        return sn_fail(err, SNUG_E_MEMORY, "no memory for a model");
    }
    *out = model;
    return SNUG_OK;
}

void snug_model_free(snug_model *model)
{
    if (!model) {
        return;
    }
    SN_VEC_FREE(&model->tensors);
    SN_VEC_FREE(&model->nodes);
    SN_VEC_FREE(&model->layers);
    SN_VEC_FREE(&model->weights);
    SN_VEC_FREE(&model->constants);
    sn_map_deinit(&model->layer_names);
    sn_map_deinit(&model->name_counts);
    sn_arena_deinit(&model->arena);
    sn_free(model);
}

snug_tensor sn_model_fail(snug_model *model, snug_status code, const char *format, ...)
{
    if (model->error.code != SNUG_OK) {
        return -1;
    }
    char text[224];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    sn_fail(&model->error, code, "%s", text);
    if (model->layers.n > 0) {
        sn_where(&model->error, "layer '%s'", model->layers.at[model->layers.n - 1].name);
    }
    return -1;
}

bool sn_model_ok(const snug_model *model, snug_tensor x)
{
    return model->error.code == SNUG_OK && x >= 0 && (size_t)x < model->tensors.n;
}

const sn_shape *sn_model_shape(const snug_model *model, snug_tensor x)
{
    assert(sn_model_ok(model, x)); /* 3 */
    return &model->tensors.at[x].desc.shape;
}

/* "conv2d", "conv2d_1", ...; a given name must be new. */
static const char *layer_name(snug_model *model, const char *stem, const char *name)
{
    if (name) {
        if (!name[0] || strlen(name) > 200) {
            sn_model_fail(model, SNUG_E_USAGE, "a layer's name has 1 to 200 bytes");
            return NULL;
        }
        if (sn_map_find_str(&model->layer_names, name)) {
            sn_model_fail(model, SNUG_E_USAGE, "two layers are named '%s'", name);
            return NULL;
        }
        return sn_arena_strdup(&model->arena, name);
    }
    for (;;) {
        uint64_t *count = sn_map_find_str(&model->name_counts, stem);
        uint64_t number = count ? *count : 0;
        if (!sn_map_set_str(&model->name_counts, stem, number + 1)) {
            return NULL;
        }
        const char *text = number ? sn_arena_printf(&model->arena, "%s_%" PRIu64, stem, number)
                                  : sn_arena_strdup(&model->arena, stem);
        if (!text || !sn_map_find_str(&model->layer_names, text)) {
            return text;
        }
    }
}

size_t sn_model_begin(snug_model *model, const char *stem, const char *type, const char *name,
                      const snug_tensor *x, size_t n_x)
{
    if (model->error.code != SNUG_OK) {
        return SIZE_MAX;
    }
    if (model->finished) {
        sn_model_fail(model, SNUG_E_USAGE, "the model is finished: no layer can be added");
        return SIZE_MAX;
    }
    for (size_t i = 0; i < n_x; i++) {
        if (!sn_model_ok(model, x[i])) {
            sn_model_fail(model, SNUG_E_USAGE, "%s: its input %zu is no tensor of this model", type,
                          i);
            return SIZE_MAX;
        }
    }
    sn_model_layer layer = {0};
    layer.name = layer_name(model, stem, name);
    layer.type = type;
    layer.n_inputs = n_x;
    layer.inputs = sn_arena_alloc_array(&model->arena, n_x ? n_x : 1, sizeof *layer.inputs);
    layer.first_weight = model->weights.n;
    if (model->error.code == SNUG_OK &&
        (!layer.name || !layer.inputs ||
         !sn_map_set_str(&model->layer_names, layer.name, model->layers.n))) {
        sn_model_fail(model, SNUG_E_MEMORY, "no memory for a layer");
    }
    if (model->error.code != SNUG_OK) {
        return SIZE_MAX;
    }
    for (size_t i = 0; i < n_x; i++) {
        layer.inputs[i] = model->tensors.at[x[i]].layer;
    }
    if (!SN_VEC_PUSH(SN_TAG_GRAPH, &model->layers, layer)) {
        sn_model_fail(model, SNUG_E_MEMORY, "no memory for a layer");
        return SIZE_MAX;
    }
    return model->layers.n - 1;
}

uint32_t sn_model_add_weight(snug_model *model, const char *name, sn_shape shape,
                             const sn_shape *keras_shape, snug_initializer initializer,
                             bool statistic, float l2)
{
    if (model->error.code != SNUG_OK) {
        return UINT32_MAX;
    }
    uint64_t count = 0;
    if (sn_shape_count(&shape, &count) || count > UINT64_C(1) << 40) {
        char text[96];
        sn_model_fail(model, SNUG_E_USAGE, "its weight '%s' would have the shape %s", name,
                      sn_shape_format(text, sizeof text, &shape));
        return UINT32_MAX;
    }
    sn_model_layer *layer = &model->layers.at[model->layers.n - 1];
    sn_model_weight weight = {.layer = model->layers.n - 1,
                              .desc = {SN_F32, shape},
                              .keras_shape = keras_shape ? *keras_shape : shape,
                              .statistic = statistic,
                              .initializer = initializer,
                              .l2 = l2};
    weight.name = sn_arena_printf(&model->arena, "%s/%s", layer->name, name);
    if (!weight.name || !SN_VEC_PUSH(SN_TAG_GRAPH, &model->weights, weight)) {
        sn_model_fail(model, SNUG_E_MEMORY, "no memory for a layer");
        return UINT32_MAX;
    }
    layer->n_weights++;
    return (uint32_t)model->weights.n - 1;
}

uint32_t sn_model_add_constant(snug_model *model, const char *name, sn_shape shape,
                               const float *values)
{
    if (model->error.code != SNUG_OK) {
        return UINT32_MAX;
    }
    const char *layer = model->layers.at[model->layers.n - 1].name;
    size_t n = (size_t)sn_shape_n(&shape);
    float *copy = sn_arena_alloc_array(&model->arena, n, sizeof *copy);
    sn_model_constant constant = {
        sn_arena_printf(&model->arena, "%s/%s", layer, name), {SN_F32, shape}, copy};
    if (!copy || !constant.name || !SN_VEC_PUSH(SN_TAG_GRAPH, &model->constants, constant)) {
        sn_model_fail(model, SNUG_E_MEMORY, "no memory for a layer");
        return UINT32_MAX;
    }
    memcpy(copy, values, n * sizeof *copy);
    return (uint32_t)model->constants.n - 1;
}

static sn_desc ref_desc(const snug_model *model, sn_model_ref ref)
{
    switch (ref.kind) {
    case SN_REF_TENSOR:
        return model->tensors.at[ref.index].desc;
    case SN_REF_WEIGHT:
        return model->weights.at[ref.index].desc;
    case SN_REF_CONSTANT:
        return model->constants.at[ref.index].desc;
    default:
        return sn_desc_absent();
    }
}

snug_tensor sn_model_add_node(snug_model *model, sn_op_id op, const sn_attrs *attrs, int n_in,
                              const sn_model_ref *in)
{
    if (model->error.code != SNUG_OK) {
        return -1;
    }
    assert(n_in <= SN_MAX_IN);
    sn_desc in_desc[SN_MAX_IN], out_desc[SN_MAX_OUT];
    /* The statistics of the training form come out of it: they are no inputs to its rule. */
    int n_rule = op == SN_OP_BATCH_NORM ? 3 : n_in;
    int n_out = op == SN_OP_BATCH_NORM   ? 3
                : op == SN_OP_GROUP_NORM ? 3
                : op == SN_OP_POOL2D     ? 2
                                         : 1;
    for (int i = 0; i < n_in; i++) {
        in_desc[i] = ref_desc(model, in[i]);
    }
    snug_error err = SNUG_ERROR_INIT;
    if (sn_op_of(op)->infer(attrs, in_desc, n_rule, out_desc, n_out, &err)) {
        return sn_model_fail(model, err.code, "%s", err.what);
    }
    sn_model_node node = {.op = op,
                          .attrs = *attrs,
                          .n_in = n_in,
                          .out = (uint32_t)model->tensors.n,
                          .layer = model->layers.n - 1};
    sn_model_ref *refs = sn_arena_alloc_array(&model->arena, (size_t)n_in, sizeof *refs);
    sn_model_tensor tensor = {out_desc[0], model->layers.n - 1};
    if (!refs || !SN_VEC_PUSH(SN_TAG_GRAPH, &model->tensors, tensor)) {
        return sn_model_fail(model, SNUG_E_MEMORY, "no memory for a layer");
    }
    memcpy(refs, in, (size_t)n_in * sizeof *refs);
    node.in = refs;
    if (!SN_VEC_PUSH(SN_TAG_GRAPH, &model->nodes, node)) {
        return sn_model_fail(model, SNUG_E_MEMORY, "no memory for a layer");
    }
    return (snug_tensor)node.out;
}

snug_tensor sn_model_end(snug_model *model, snug_tensor out)
{
    if (!sn_model_ok(model, out)) {
        return -1;
    }
    model->layers.at[model->layers.n - 1].out = (uint32_t)out;
    model->tensors.at[out].layer = model->layers.n - 1;
    return out;
}

static snug_tensor add_input(snug_model *model, sn_shape shape)
{
    if (model->error.code != SNUG_OK) {
        return -1;
    }
    if (model->has_input) {
        return sn_model_fail(model, SNUG_E_USAGE, "a model has one input");
    }
    if (sn_model_begin(model, "input_layer", "InputLayer", NULL, NULL, 0) == SIZE_MAX) {
        return -1;
    }
    uint64_t count;
    if (sn_shape_count(&shape, &count) || count == 0 || count > UINT64_C(1) << 32) {
        char text[96];
        return sn_model_fail(model, SNUG_E_USAGE,
                             "its shape %s is out of range (1 to 2^32 numbers)",
                             sn_shape_format(text, sizeof text, &shape));
    }
    sn_model_tensor tensor = {{SN_F32, shape}, 0};
    if (!SN_VEC_PUSH(SN_TAG_GRAPH, &model->tensors, tensor)) {
        return sn_model_fail(model, SNUG_E_MEMORY, "no memory for a layer");
    }
    model->has_input = true;
    model->input = 0;
    return sn_model_end(model, 0);
}

snug_tensor snug_input(snug_model *model, int64_t height, int64_t width, int64_t channels)
{
    return add_input(model, (sn_shape){4, {1, height, width, channels}});
}

snug_tensor snug_input_features(snug_model *model, int64_t n)
{
    return add_input(model, (sn_shape){2, {1, n}});
}

snug_status snug_model_finish(snug_model *model, snug_tensor output, snug_error *err)
{
    if (model->error.code == SNUG_OK && !sn_model_ok(model, output)) {
        sn_model_fail(model, SNUG_E_USAGE, "the output is no tensor of this model");
    }
    if (model->error.code != SNUG_OK) {
        if (err) {
            *err = model->error;
        }
        return model->error.code;
    }
    model->output = (uint32_t)output;
    model->finished = true;
    return SNUG_OK;
}

/* ---- looking at it ---- */

const char *snug_model_name(const snug_model *model)
{
    return model->name;
}

size_t snug_model_n_layers(const snug_model *model)
{
    return model->layers.n;
}

bool sn_model_weight_trains(const snug_model *model, size_t weight)
{
    const sn_model_weight *w = &model->weights.at[weight];
    return !w->statistic && !model->layers.at[w->layer].frozen;
}

void snug_model_layer(const snug_model *model, size_t index, snug_layer_info *out)
{
    const sn_model_layer *layer = &model->layers.at[index];
    const sn_shape *shape = &model->tensors.at[layer->out].desc.shape;
    *out = (snug_layer_info){.name = layer->name,
                             .type = layer->type,
                             .rank = shape->rank - 1,
                             .n_inputs = layer->n_inputs,
                             .inputs = layer->inputs};
    for (int i = 1; i < shape->rank; i++) {
        out->shape[i - 1] = shape->dim[i];
    }
    for (size_t w = layer->first_weight; w < layer->first_weight + layer->n_weights; w++) {
        uint64_t n = (uint64_t)sn_shape_n(&model->weights.at[w].desc.shape);
        out->parameters += n;
        out->trainable += sn_model_weight_trains(model, w) ? n : 0;
    }
}

size_t snug_model_n_weights(const snug_model *model)
{
    return model->weights.n;
}

void snug_model_weight(const snug_model *model, size_t index, snug_weight_info *out)
{
    const sn_model_weight *weight = &model->weights.at[index];
    *out = (snug_weight_info){.name = weight->name,
                              .layer = weight->layer,
                              .rank = weight->keras_shape.rank,
                              .count = (uint64_t)sn_shape_n(&weight->desc.shape),
                              .trainable = sn_model_weight_trains(model, index)};
    for (int i = 0; i < out->rank; i++) {
        out->shape[i] = weight->keras_shape.dim[i];
    }
}

uint64_t snug_model_parameters(const snug_model *model)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < model->weights.n; i++) {
        sum += (uint64_t)sn_shape_n(&model->weights.at[i].desc.shape);
    }
    return sum;
}

uint64_t snug_model_trainable_parameters(const snug_model *model)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < model->weights.n; i++) {
        sum += sn_model_weight_trains(model, i)
                   ? (uint64_t)sn_shape_n(&model->weights.at[i].desc.shape)
                   : 0;
    }
    return sum;
}

static int sample_shape(const snug_model *model, uint32_t tensor, int64_t shape[4])
{
    const sn_shape *s = &model->tensors.at[tensor].desc.shape;
    for (int i = 1; i < s->rank; i++) {
        shape[i - 1] = s->dim[i];
    }
    return s->rank - 1;
}

int snug_model_input_shape(const snug_model *model, int64_t shape[4])
{
    return sample_shape(model, model->input, shape);
}

int snug_model_output_shape(const snug_model *model, int64_t shape[4])
{
    return sample_shape(model, model->output, shape);
}

static const sn_model_node *producer(const snug_model *model, uint32_t tensor)
{
    for (size_t i = model->nodes.n; i-- > 0;) {
        if (model->nodes.at[i].out == tensor) {
            return &model->nodes.at[i];
        }
    }
    return NULL;
}

bool snug_model_ends_in_softmax(const snug_model *model)
{
    const sn_model_node *node = producer(model, model->output);
    return node && node->op == SN_OP_SOFTMAX;
}

bool snug_model_ends_in_sigmoid(const snug_model *model)
{
    const sn_model_node *node = producer(model, model->output);
    return node && node->op == SN_OP_ACTIVATION && node->attrs.act.kind == SN_ACT_SIGMOID;
}

bool snug_model_rescales_itself(const snug_model *model)
{
    const char *first = model->layers.n > 1 ? model->layers.at[1].type : "";
    return sn_str_eq(first, "Rescaling") || sn_str_eq(first, "Normalization");
}

bool snug_model_has_batch_norm(const snug_model *model)
{
    for (size_t i = 0; i < model->nodes.n; i++) {
        if (model->nodes.at[i].op == SN_OP_BATCH_NORM) {
            return true;
        }
    }
    return false;
}

snug_status snug_model_set_trainable(snug_model *model, const char *layer, bool trainable,
                                     snug_error *err)
{
    for (size_t i = 0; i < model->layers.n; i++) {
        if (sn_str_eq(model->layers.at[i].name, layer)) {
            model->layers.at[i].frozen = !trainable;
            return SNUG_OK;
        }
    }
    const char *near = NULL;
    size_t best = 8;
    for (size_t i = 0; i < model->layers.n; i++) {
        size_t d = sn_str_distance(model->layers.at[i].name, layer);
        if (d < best) {
            best = d;
            near = model->layers.at[i].name;
        }
    }
    return sn_fail(err, SNUG_E_NOT_FOUND, "%s has no layer '%.60s'%s%s%s", model->name, layer,
                   near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}
