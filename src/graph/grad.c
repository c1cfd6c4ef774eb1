/* SPDX-License-Identifier: Apache-2.0
 *
 * grad.c - the backward pass: the forward nodes from last to first, each operator's rule emitting
 * its own gradient operators; weights are updated as soon as their gradient is complete.
 *
 * Invariants:
 *  1. a gradient of a value is complete when the value's producer is reached, since every reader
 *     stands after it in the forward order;
 *  2. a weight's update stands after every reader of its old version;
 *  3. within one node's operators a weight's gradient comes before its input's: it frees the saved
 *     input first.
 */
#include "graph/graph.h"
#include "graph/model.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* Dense kernels from here on are updated while their gradient is made, tile by tile. */
#define TILED_UPDATE_BYTES (UINT64_C(1) << 20)

typedef struct backward {
    sn_graph *graph;
    size_t n_values;     /* when the arrays were made: forward values only */
    sn_ref *gradient;    /* of each forward value so far */
    bool *needs;         /* a trainable weight stands before it */
    bool *masked;        /* its gradient already passed the ReLU that made it */
    uint32_t *n_readers; /* forward readers not yet walked over */
    const sn_node *node; /* in work */
    snug_error *err;
} backward;

static sn_desc grad_desc(const sn_grad *grad, sn_ref ref)
{
    const backward *b = grad->context;
    return b->graph->values.at[ref].desc;
}

static snug_status grad_emit(sn_grad *grad, sn_op_id op, const sn_attrs *attrs, int n_in,
                             const sn_ref *in, int n_out, const bool *want, sn_ref *out,
                             snug_error *err)
{
    backward *b = grad->context;
    return sn_graph_append(b->graph, op, attrs, n_in, in, n_out, want, SN_PHASE_BACKWARD,
                           b->node->layer, b->node->layer_index, out, err);
}

static bool is_weight_gradient(sn_op_id op)
{
    return op == SN_OP_CONV2D_DW || op == SN_OP_DENSE_DW;
}

/* Moves weight gradients of nodes first.. to right behind what they read (3). */
static void weight_gradients_first(sn_graph *graph, size_t first)
{
    for (size_t i = first; i < graph->nodes.n; i++) {
        sn_node moved = graph->nodes.at[i];
        if (!is_weight_gradient(moved.op)) {
            continue;
        }
        size_t to = i;
        while (to > first) {
            const sn_node *before = &graph->nodes.at[to - 1];
            bool feeds = is_weight_gradient(before->op);
            for (int k = 0; k < moved.n_in; k++) {
                for (int j = 0; j < before->n_out; j++) {
                    feeds |= moved.in[k] == before->out[j];
                }
            }
            if (feeds) {
                break;
            }
            graph->nodes.at[to] = graph->nodes.at[to - 1];
            to--;
        }
        graph->nodes.at[to] = moved;
    }
}

static snug_status add_gradient(backward *b, sn_ref value, sn_ref gradient)
{
    if (b->gradient[value] == SN_NO_REF) {
        b->gradient[value] = gradient;
        return SNUG_OK;
    }
    sn_attrs attrs = {.binary = {.kind = SN_BINARY_ADD}};
    sn_ref in[2] = {b->gradient[value], gradient};
    return sn_graph_append(b->graph, SN_OP_BINARY, &attrs, 2, in, 1, NULL, SN_PHASE_BACKWARD,
                           b->node->layer, b->node->layer_index, &b->gradient[value], b->err);
}

/* The ReLU that made every element of a value which one node alone reads: fused into its producer,
 * or into all that a concatenation joins. NULL: there is none. BatchNorm finds its mask from x. */
static const sn_act_attrs *relu_of(const backward *b, sn_ref ref);

/* The one ReLU that made everything a concatenation joins. NULL: there is none, or several. */
static const sn_act_attrs *relu_of_all(const backward *b, const sn_node *concat)
{
    const sn_act_attrs *all = relu_of(b, concat->in[0]);
    for (int i = 1; i < concat->n_in && all; i++) {
        const sn_act_attrs *one = relu_of(b, concat->in[i]);
        all = one && one->kind == all->kind && one->max == all->max ? all : NULL;
    }
    return all;
}

static const sn_act_attrs *relu_of(const backward *b, sn_ref ref)
{
    const sn_value *value = &b->graph->values.at[ref];
    if (value->keep || value->producer == UINT32_MAX || b->n_readers[ref] != 1 ||
        b->gradient[ref] != SN_NO_REF) {
        return NULL;
    }
    sn_node *source = &b->graph->nodes.at[value->producer];
    if (source->op == SN_OP_CONCAT) {
        return relu_of_all(b, source);
    }
    const sn_act_attrs *act = sn_graph_fused_act(source);
    bool own_mask = source->op == SN_OP_BATCH_NORM || source->op == SN_OP_BATCH_NORM_APPLY;
    return act && act->kind != SN_ACT_NONE && !own_mask ? act : NULL;
}

static snug_status mask(backward *b, const sn_node *node, const sn_act_attrs *act, sn_ref *dout)
{
    sn_attrs attrs = {.act = *act};
    sn_ref refs[2] = {node->out[0], *dout};
    return sn_graph_append(b->graph, SN_OP_ACTIVATION_DX, &attrs, 2, refs, 1, NULL,
                           SN_PHASE_BACKWARD, node->layer, node->layer_index, dout, b->err);
}

/* Masks that are applied further out, so that nobody has to keep what stands before:
 * max(relu(x)) = relu(max(x)), so the mask goes to the pool's small output (identical to the bit:
 * the gradient goes to the largest element alone, and the pooled value is that element); and the
 * mask of a concatenation is the concatenation of the masks. */
static snug_status mask_further_out(backward *b, const sn_node *node, sn_ref *dout)
{
    bool pool = node->op == SN_OP_POOL2D && node->attrs.pool.kind == SN_POOL_MAX;
    snug_status s = SNUG_OK;
    if (pool && b->gradient[node->in[0]] == SN_NO_REF) {
        const sn_act_attrs *act = relu_of(b, node->in[0]);
        if (act) {
            b->masked[node->in[0]] = true;
            s = mask(b, node, act, dout);
        }
    } else if (node->op == SN_OP_CONCAT) {
        bool done = b->masked[node->out[0]];
        const sn_act_attrs *act = relu_of_all(b, node);
        for (int i = 0; i < node->n_in && act; i++) {
            b->masked[node->in[i]] = true;
        }
        s = act && !done ? mask(b, node, act, dout) : SNUG_OK;
    }
    return s;
}

/* The gradient rule of one forward node. */
static snug_status differentiate(backward *b, size_t number)
{
    sn_node node = b->graph->nodes.at[number]; /* a copy: emitting moves the array */
    const sn_op *op = sn_op_of(node.op);
    sn_ref dout[SN_MAX_OUT], din[SN_MAX_IN];
    bool wanted[SN_MAX_IN], any = false, reached = false;
    for (int i = 0; i < node.n_out; i++) {
        dout[i] = node.out[i] == SN_NO_REF ? SN_NO_REF : b->gradient[node.out[i]];
        reached |= dout[i] != SN_NO_REF;
    }
    for (int i = 0; i < node.n_in; i++) {
        din[i] = SN_NO_REF;
        wanted[i] = node.in[i] != SN_NO_REF && b->needs[node.in[i]];
        any |= wanted[i];
    }
    if (!reached || !any) {
        return SNUG_OK;
    }
    if (!op->grad) {
        return sn_fail(b->err, SNUG_E_UNSUPPORTED,
                       "layer '%s': no gradient passes through %s, but weights before it are to be "
                       "trained",
                       node.layer, op->name);
    }
    b->node = &node;
    snug_status s = mask_further_out(b, &node, &dout[0]);
    if (s) {
        return s;
    }
    sn_act_attrs *act = sn_graph_fused_act(&node);
    if (act && b->masked[node.out[0]]) {
        act->kind = SN_ACT_NONE;
    }
    size_t first = b->graph->nodes.n;
    sn_grad grad = {&node.attrs, node.n_in, node.n_out, node.in,   node.out, dout,
                    wanted,      din,       grad_emit,  grad_desc, b};
    s = op->grad(&grad, b->err);
    if (s) {
        sn_where(b->err, "layer '%s', gradient of %s", node.layer, op->name);
        return s;
    }
    weight_gradients_first(b->graph, first);
    for (int i = 0; i < node.n_in && !s; i++) {
        if (wanted[i] && din[i] != SN_NO_REF) {
            s = add_gradient(b, node.in[i], din[i]);
        }
    }
    return s;
}

/* moving = moving*momentum + batch*(1-momentum), where the batch's statistics are at hand anyway.
 */
static snug_status move_averages(backward *b, size_t number)
{
    sn_node node = b->graph->nodes.at[number];
    if (node.op != SN_OP_BATCH_NORM) {
        return SNUG_OK;
    }
    const sn_model_layer *layer = &b->graph->model->layers.at[node.layer_index];
    snug_status s = SNUG_OK;
    for (int i = 0; i < 2 && !s; i++) {
        size_t weight = layer->first_weight + layer->n_weights - 2 + (size_t)i;
        const sn_model_weight *w = &b->graph->model->weights.at[weight];
        sn_ref moving;
        s = sn_graph_add_value(b->graph, w->name, &w->desc, SN_VALUE_WEIGHT, &moving, b->err);
        if (s) {
            return s;
        }
        b->graph->values.at[moving].weight = (int32_t)weight;
        sn_ref in[2] = {moving, node.out[1 + i]};
        s = sn_graph_append(b->graph, SN_OP_MOVING_AVERAGE, &node.attrs, 2, in, 1, NULL,
                            SN_PHASE_UPDATE, node.layer, node.layer_index, NULL, b->err);
    }
    return s;
}

/* ---- updates ---- */

static snug_status add_slots(backward *b, sn_ref weight, const sn_update_attrs *update,
                             sn_ref slots[3])
{
    const sn_value w = b->graph->values.at[weight]; /* a copy: adding values moves the array */
    for (int i = 0; i < sn_update_n_slots(update); i++) {
        char name[300];
        snprintf(name, sizeof name, "%s:slot%d", w.name, i);
        snug_status s =
            sn_graph_add_value(b->graph, name, &w.desc, SN_VALUE_SLOT, &slots[i], b->err);
        if (s) {
            return s;
        }
        sn_value *slot = &b->graph->values.at[slots[i]];
        slot->weight = w.weight;
        slot->slot = (int8_t)i;
        slot->start = sn_update_slot_start(update, i);
    }
    return SNUG_OK;
}

/* The node of this weight's gradient, if it can be made and applied in tiles at once. */
static sn_node *tiled_gradient(backward *b, sn_ref weight, const sn_update_attrs *update)
{
    sn_graph *graph = b->graph;
    uint64_t bytes = 0;
    sn_desc_bytes(&graph->values.at[weight].desc, &bytes);
    if (bytes < TILED_UPDATE_BYTES || update->clip_norm > 0 || update->clip_global > 0 ||
        sn_update_n_slots(update) > 2) {
        return NULL;
    }
    for (size_t i = graph->nodes.n; i-- > 0 && graph->nodes.at[i].phase != SN_PHASE_FORWARD;) {
        sn_node *node = &graph->nodes.at[i];
        if (node->op == SN_OP_DENSE_DW && node->out[0] == b->gradient[weight]) {
            return node;
        }
    }
    return NULL;
}

/* DENSE_DW becomes DENSE_UPDATE behind the last reader of the old weight; what remains at its place
 * is the bias' gradient. */
static snug_status update_in_tiles(backward *b, sn_ref weight, sn_node *dw,
                                   const sn_update_attrs *update, const sn_ref slots[3])
{
    sn_graph *graph = b->graph;
    sn_ref in[5] = {dw->in[0], dw->in[1], weight, slots[0], slots[1]};
    const char *layer = dw->layer;
    int32_t layer_index = dw->layer_index;
    graph->values.at[dw->out[0]].desc.shape.rank = 0; /* nobody makes it any more */
    if (dw->n_out > 1 && dw->out[1] != SN_NO_REF) {
        dw->op = SN_OP_BIAS_GRAD;
        dw->in[0] = dw->in[1];
        dw->out[0] = dw->out[1];
        dw->n_in = dw->n_out = 1;
    } else {
        memmove(dw, dw + 1, (size_t)(graph->nodes.at + graph->nodes.n - (dw + 1)) * sizeof *dw);
        graph->nodes.n--;
    }
    sn_attrs attrs = {.update = *update};
    return sn_graph_append(graph, SN_OP_DENSE_UPDATE, &attrs, 5, in, 3, NULL, SN_PHASE_UPDATE,
                           layer, layer_index, NULL, b->err);
}

static snug_status update_weight(backward *b, sn_ref weight, sn_ref norm)
{
    sn_graph *graph = b->graph;
    sn_value *value = &graph->values.at[weight];
    sn_ref gradient = b->gradient[weight];
    char name[300];
    snprintf(name, sizeof name, "%s:grad", value->name);
    sn_value *g = &graph->values.at[gradient];
    g->name = sn_arena_strdup(&graph->arena, name);
    g->is_gradient = true;
    g->weight = value->weight;
    if (!g->name) {
        return sn_fail(b->err, SNUG_E_MEMORY, "no memory for a graph");
    }
    if (graph->options.keep_gradients) {
        g->keep = true;
        return SNUG_OK;
    }
    const sn_model_weight *w = &graph->model->weights.at[value->weight];
    sn_attrs attrs = {.update = graph->options.update};
    attrs.update.l2 = norm == SN_NO_REF ? w->l2 : 0; /* 0: it is in the gradient already */
    attrs.update.lr_scale = 1;
    const char *layer = graph->model->layers.at[w->layer].name;
    sn_ref slots[3] = {SN_NO_REF, SN_NO_REF, SN_NO_REF};
    snug_status s = add_slots(b, weight, &attrs.update, slots);
    if (s) {
        return s;
    }
    sn_node *dw = graph->options.no_passes ? NULL : tiled_gradient(b, weight, &attrs.update);
    if (dw) {
        return update_in_tiles(b, weight, dw, &attrs.update, slots);
    }
    sn_ref in[6] = {weight, gradient, norm, slots[0], slots[1], slots[2]};
    return sn_graph_append(graph, SN_OP_UPDATE, &attrs, 6, in, 4, NULL, SN_PHASE_UPDATE, layer,
                           (int32_t)w->layer, NULL, b->err);
}

/* After node `number` was walked over: the weights that no earlier node reads. */
static snug_status update_complete(backward *b, size_t number)
{
    sn_node node = b->graph->nodes.at[number];
    snug_status s = SNUG_OK;
    for (int i = 0; i < node.n_in && !s; i++) {
        sn_ref ref = node.in[i];
        if (ref == SN_NO_REF || --b->n_readers[ref] > 0) {
            continue;
        }
        if (b->graph->values.at[ref].kind == SN_VALUE_WEIGHT && b->needs[ref] &&
            b->gradient[ref] != SN_NO_REF && b->graph->options.update.clip_global == 0) {
            s = update_weight(b, ref, SN_NO_REF);
        }
    }
    return s;
}

/* gradient += 2 * l2 * w: what the penalty adds to it, where an update does not do that itself. */
static snug_status add_penalty(backward *b, sn_ref weight)
{
    sn_graph *graph = b->graph;
    const sn_model_weight *w = &graph->model->weights.at[graph->values.at[weight].weight];
    if (w->l2 == 0) {
        return SNUG_OK;
    }
    const char *layer = graph->model->layers.at[w->layer].name;
    sn_attrs scale = {.scalar = {.kind = SN_SCALAR_MUL, .value = 2 * w->l2}};
    sn_attrs sum = {.binary = {.kind = SN_BINARY_ADD}};
    sn_ref in[2] = {b->gradient[weight], SN_NO_REF};
    snug_status s = sn_graph_append(graph, SN_OP_SCALAR, &scale, 1, &weight, 1, NULL,
                                    SN_PHASE_BACKWARD, layer, (int32_t)w->layer, &in[1], b->err);
    return s ? s
             : sn_graph_append(graph, SN_OP_BINARY, &sum, 2, in, 1, NULL, SN_PHASE_BACKWARD, layer,
                               (int32_t)w->layer, &b->gradient[weight], b->err);
}

/* Clipping by the global norm: all gradients first, penalties included as Keras has it, their
 * squares summed, then all updates. */
static snug_status update_all(backward *b)
{
    sn_ref sum = SN_NO_REF;
    snug_status s = SNUG_OK;
    sn_attrs attrs = {.update = {.penalty = 1}};
    for (sn_ref v = 0; v < b->n_values && !s; v++) {
        if (b->graph->values.at[v].kind == SN_VALUE_WEIGHT && b->gradient[v] != SN_NO_REF) {
            s = add_penalty(b, v);
            sn_ref in[2] = {b->gradient[v], sum};
            s = s ? s
                  : sn_graph_append(b->graph, SN_OP_SUM_SQUARES, &attrs, 2, in, 1, NULL,
                                    SN_PHASE_BACKWARD, "", -1, &sum, b->err);
        }
    }
    for (sn_ref v = 0; v < b->n_values && !s; v++) {
        if (b->graph->values.at[v].kind == SN_VALUE_WEIGHT && b->gradient[v] != SN_NO_REF) {
            s = update_weight(b, v, sum);
        }
    }
    return s;
}

/* ---- the walk ---- */

static void mark_needs(backward *b, size_t n_forward)
{
    const sn_graph *graph = b->graph;
    for (size_t v = 0; v < b->n_values; v++) {
        const sn_value *value = &graph->values.at[v];
        b->gradient[v] = SN_NO_REF;
        b->needs[v] = value->kind == SN_VALUE_WEIGHT &&
                      sn_model_weight_trains(graph->model, (size_t)value->weight);
    }
    for (size_t i = 0; i < n_forward; i++) {
        const sn_node *node = &graph->nodes.at[i];
        bool any = false;
        for (int k = 0; k < node->n_in; k++) {
            if (node->in[k] != SN_NO_REF) {
                any |= b->needs[node->in[k]];
                b->n_readers[node->in[k]]++;
            }
        }
        for (int k = 0; k < node->n_out; k++) {
            if (node->out[k] != SN_NO_REF) {
                b->needs[node->out[k]] = any;
            }
        }
    }
}

static snug_status walk_back(backward *b)
{
    sn_graph *graph = b->graph;
    size_t n_forward = graph->nodes.n;
    mark_needs(b, n_forward);
    sn_attrs attrs = {.loss = graph->options.loss};
    sn_ref in[3] = {graph->prediction, graph->target, graph->sample_weight};
    snug_status s = SNUG_OK;
    if (b->needs[graph->prediction]) {
        s = sn_graph_append(graph, SN_OP_LOSS_DX, &attrs, 3, in, 1, NULL, SN_PHASE_BACKWARD, "loss",
                            -1, &b->gradient[graph->prediction], b->err);
    }
    for (size_t i = n_forward; i-- > 0 && !s;) {
        sn_op_id op = graph->nodes.at[i].op;
        if (op != SN_OP_LOSS && op != SN_OP_SUM_SQUARES) {
            s = differentiate(b, i);
        }
        s = s ? s : move_averages(b, i);
        s = s ? s : update_complete(b, i);
    }
    return !s && graph->options.update.clip_global > 0 ? update_all(b) : s;
}

snug_status sn_graph_backward(sn_graph *graph, snug_error *err)
{
    backward b = {.graph = graph, .n_values = graph->values.n, .err = err};
    size_t n = graph->values.n + 1;
    b.gradient = sn_alloc_array(SN_TAG_GRAPH, n, sizeof *b.gradient);
    b.needs = sn_alloc_array(SN_TAG_GRAPH, n, sizeof *b.needs);
    b.masked = sn_alloc_array(SN_TAG_GRAPH, n, sizeof *b.masked);
    b.n_readers = sn_alloc_array(SN_TAG_GRAPH, n, sizeof *b.n_readers);
    snug_status s =
        b.gradient && b.needs && b.masked && b.n_readers
            ? walk_back(&b)
            : sn_fail(err, SNUG_E_MEMORY, "no memory for the gradients of %zu values", n);
    sn_free(b.gradient);
    sn_free(b.needs);
    sn_free(b.masked);
    sn_free(b.n_readers);
    return s ? s : sn_graph_check(graph, err);
}
