/* SPDX-License-Identifier: Apache-2.0
 *
 * build.c - from a model to a graph for one batch size: forward nodes, loss, and the walk through
 * the passes.
 */
#include "graph/graph.h"
#include "graph/model.h"

#include <stdio.h>
#include <string.h>

typedef struct builder {
    sn_graph *graph;
    const snug_model *model;
    sn_ref *tensors, *weights, *constants; /* of the model -> of the graph */
    bool *alive;                           /* template nodes that the output needs */
    int64_t last_node;                     /* template node cut off (its loss takes logits), -1 */
} builder;

/* Marks the template nodes that the output depends on. */
static void mark_alive(builder *b, uint32_t output)
{
    const snug_model *model = b->model;
    b->tensors[output] = 0;
    for (size_t i = model->nodes.n; i-- > 0;) {
        const sn_model_node *node = &model->nodes.at[i];
        if (b->tensors[node->out] != 0) {
            continue;
        }
        b->alive[i] = true;
        for (int k = 0; k < node->n_in; k++) {
            if (node->in[k].kind == SN_REF_TENSOR) {
                b->tensors[node->in[k].index] = 0;
            }
        }
    }
    for (size_t i = 0; i < model->tensors.n; i++) {
        b->tensors[i] = SN_NO_REF;
    }
}

/* The softmax or sigmoid at the end that the loss does itself, from logits. */
static int64_t cut_node(const snug_model *model, const sn_graph_options *options)
{
    if (options->mode == SN_GRAPH_PREDICT || model->nodes.n == 0) {
        return -1;
    }
    for (size_t i = model->nodes.n; i-- > 0;) {
        const sn_model_node *node = &model->nodes.at[i];
        if (node->out != model->output) {
            continue;
        }
        bool softmax = node->op == SN_OP_SOFTMAX && options->loss.kind == SN_LOSS_SOFTMAX_XENT;
        bool sigmoid = node->op == SN_OP_ACTIVATION && node->attrs.act.kind == SN_ACT_SIGMOID &&
                       options->loss.kind == SN_LOSS_SIGMOID_XENT;
        return softmax || sigmoid ? (int64_t)i : -1;
    }
    return -1;
}

static snug_status weight_value(builder *b, uint32_t weight, sn_ref *out, snug_error *err)
{
    if (b->weights[weight] == SN_NO_REF) {
        const sn_model_weight *w = &b->model->weights.at[weight];
        snug_status s = sn_graph_add_value(b->graph, w->name, &w->desc, SN_VALUE_WEIGHT,
                                           &b->weights[weight], err);
        if (s) {
            return s;
        }
        b->graph->values.at[b->weights[weight]].weight = (int32_t)weight;
    }
    *out = b->weights[weight];
    return SNUG_OK;
}

static snug_status input_value(builder *b, sn_model_ref ref, sn_ref *out, snug_error *err)
{
    *out = SN_NO_REF;
    switch (ref.kind) {
    case SN_REF_TENSOR:
        *out = b->tensors[ref.index];
        return SNUG_OK;
    case SN_REF_WEIGHT:
        return weight_value(b, ref.index, out, err);
    case SN_REF_CONSTANT:
        if (b->constants[ref.index] == SN_NO_REF) {
            const sn_model_constant *c = &b->model->constants.at[ref.index];
            snug_status s = sn_graph_add_value(b->graph, c->name, &c->desc, SN_VALUE_CONSTANT,
                                               &b->constants[ref.index], err);
            if (s) {
                return s;
            }
            b->graph->values.at[b->constants[ref.index]].weight = (int32_t)ref.index;
        }
        *out = b->constants[ref.index];
        return SNUG_OK;
    default:
        return SNUG_OK;
    }
}

/* One template node, in the form that the mode asks for. */
static snug_status instantiate(builder *b, const sn_model_node *t, snug_error *err)
{
    const sn_graph_options *o = &b->graph->options;
    const sn_model_layer *layer = &b->model->layers.at[t->layer];
    bool training = o->mode == SN_GRAPH_TRAIN;
    sn_ref in[SN_MAX_IN], out[SN_MAX_OUT];
    int n_in = t->n_in, n_out = 1;
    sn_op_id op = t->op;
    sn_attrs attrs = t->attrs;
    if (op == SN_OP_DROPOUT && (!training || layer->frozen || attrs.dropout.rate == 0)) {
        b->tensors[t->out] = b->tensors[t->in[0].index];
        return SNUG_OK;
    }
    if (op == SN_OP_BATCH_NORM) {
        if (training && !layer->frozen) {
            n_in = n_out = 3;
        } else {
            op = SN_OP_BATCH_NORM_APPLY;
        }
    } else if (op == SN_OP_GROUP_NORM) {
        n_out = 3;
    } else if (op == SN_OP_POOL2D) {
        attrs.pool.save_index = training && attrs.pool.kind == SN_POOL_MAX;
        n_out = 2;
    }
    for (int i = 0; i < n_in; i++) {
        snug_status s = input_value(b, t->in[i], &in[i], err);
        if (s) {
            return s;
        }
    }
    snug_status s = sn_graph_append(b->graph, op, &attrs, n_in, in, n_out, NULL, SN_PHASE_FORWARD,
                                    layer->name, (int32_t)t->layer, out, err);
    if (!s) {
        b->tensors[t->out] = out[0];
    }
    return s;
}

static snug_status forward(builder *b, snug_error *err)
{
    const snug_model *model = b->model;
    sn_graph *graph = b->graph;
    b->last_node = cut_node(model, &graph->options);
    uint32_t output = b->last_node >= 0 ? model->nodes.at[b->last_node].in[0].index : model->output;
    mark_alive(b, output);
    sn_desc desc = model->tensors.at[model->input].desc;
    desc.shape.dim[0] = graph->options.batch;
    snug_status s = sn_graph_add_value(graph, "x", &desc, SN_VALUE_X, &graph->x, err);
    b->tensors[model->input] = graph->x;
    for (size_t i = 0; i < model->nodes.n && !s; i++) {
        if (b->alive[i]) {
            s = instantiate(b, &model->nodes.at[i], err);
        }
    }
    if (s) {
        return s;
    }
    graph->prediction = b->tensors[output];
    graph->values.at[graph->prediction].keep = true;
    return SNUG_OK;
}

/* The loss and the penalties of L2 of what is trained, added to it one after the other. */
static snug_status add_loss(builder *b, snug_error *err)
{
    sn_graph *graph = b->graph;
    const sn_graph_options *o = &graph->options;
    sn_desc prediction = graph->values.at[graph->prediction].desc,
            target = {SN_I32, {1, {o->batch}}};
    bool regression = o->loss.kind != SN_LOSS_SOFTMAX_XENT && o->loss.kind != SN_LOSS_SIGMOID_XENT;
    if (regression || o->one_hot_target) {
        target = prediction;
    }
    snug_status s =
        sn_graph_add_value(graph, "target", &target, SN_VALUE_TARGET, &graph->target, err);
    if (!s && o->sample_weights) {
        sn_desc weight = {SN_F32, {1, {o->batch}}};
        s = sn_graph_add_value(graph, "sample_weight", &weight, SN_VALUE_SAMPLE_WEIGHT,
                               &graph->sample_weight, err);
    }
    if (s) {
        return s;
    }
    sn_attrs attrs = {.loss = o->loss};
    sn_ref in[3] = {graph->prediction, graph->target, graph->sample_weight};
    s = sn_graph_append(graph, SN_OP_LOSS, &attrs, 3, in, 1, NULL, SN_PHASE_FORWARD, "loss", -1,
                        &graph->loss, err);
    for (size_t i = 0; i < b->model->weights.n && !s; i++) {
        if (b->model->weights.at[i].l2 > 0 && b->weights[i] != SN_NO_REF &&
            sn_model_weight_trains(b->model, i)) {
            sn_attrs penalty = {.update = {.penalty = b->model->weights.at[i].l2}};
            sn_ref sum[2] = {b->weights[i], graph->loss};
            s = sn_graph_append(graph, SN_OP_SUM_SQUARES, &penalty, 2, sum, 1, NULL,
                                SN_PHASE_FORWARD, "loss", -1, &graph->loss, err);
        }
    }
    if (!s) {
        graph->values.at[graph->loss].keep = true;
    }
    return s;
}

static snug_status walk(builder *b, snug_error *err)
{
    sn_graph *graph = b->graph;
    const sn_graph_options *o = &graph->options;
    snug_status s = forward(b, err);
    if (!s && !o->no_passes) {
        s = sn_graph_fuse(graph, err);
    }
    if (!s && o->mode != SN_GRAPH_PREDICT) {
        s = add_loss(b, err);
    }
    if (!s && o->mode == SN_GRAPH_TRAIN) {
        s = sn_graph_backward(graph, err);
        if (!s && !o->no_passes && !o->no_replay) {
            s = sn_graph_replay(graph, err);
        }
    }
    return s ? s : sn_graph_check(graph, err);
}

snug_status sn_graph_from_model(sn_graph **out, const snug_model *model,
                                const sn_graph_options *options, snug_error *err)
{
    *out = NULL;
    if (!model->finished) {
        return sn_fail(err, SNUG_E_USAGE, "model '%s' is not finished", model->name);
    }
    if (options->batch < 1 || options->batch > INT32_MAX) {
        return sn_fail(err, SNUG_E_USAGE, "batch %" PRId64 " is not in 1..%d", options->batch,
                       INT32_MAX);
    }
    builder b = {.model = model};
    snug_status s = sn_graph_new(&b.graph, err);
    if (s) {
        return s;
    }
    b.graph->model = model;
    b.graph->options = *options;
    b.tensors = sn_alloc_array(SN_TAG_GRAPH, model->tensors.n + 1, sizeof *b.tensors);
    b.weights = sn_alloc_array(SN_TAG_GRAPH, model->weights.n + 1, sizeof *b.weights);
    b.constants = sn_alloc_array(SN_TAG_GRAPH, model->constants.n + 1, sizeof *b.constants);
    b.alive = sn_alloc_array(SN_TAG_GRAPH, model->nodes.n + 1, sizeof *b.alive);
    if (!b.tensors || !b.weights || !b.constants || !b.alive) {
        s = sn_fail(err, SNUG_E_MEMORY, "no memory for a graph of %zu layers", model->layers.n);
        goto out;
    }
    memset(b.tensors, 0xff, model->tensors.n * sizeof *b.tensors);
    memset(b.weights, 0xff, model->weights.n * sizeof *b.weights);
    memset(b.constants, 0xff, model->constants.n * sizeof *b.constants);
    s = walk(&b, err);
out:
    sn_free(b.tensors);
    sn_free(b.weights);
    sn_free(b.constants);
    sn_free(b.alive);
    if (s) {
        sn_graph_free(b.graph);
        return s;
    }
    *out = b.graph;
    return SNUG_OK;
}
