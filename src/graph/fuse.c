/* SPDX-License-Identifier: Apache-2.0
 *
 * fuse.c - forward nodes that one kernel does as well as two: ReLU into what makes its input, zero
 * padding into the convolution or max pool that reads it. Runs before gradients are made, so that
 * the fused operator's own rule applies.
 */
#include "graph/graph.h"

#include <string.h>

static snug_status count_readers(const sn_graph *graph, uint32_t **out, snug_error *err)
{
    uint32_t *n = sn_alloc_array(SN_TAG_GRAPH, graph->values.n + 1, sizeof *n);
    if (!n) {
        return sn_fail(err, SNUG_E_MEMORY, "no memory for %zu values", graph->values.n);
    }
    for (size_t i = 0; i < graph->nodes.n; i++) {
        const sn_node *node = &graph->nodes.at[i];
        for (int k = 0; k < node->n_in; k++) {
            if (node->in[k] != SN_NO_REF) {
                n[node->in[k]]++;
            }
        }
    }
    for (size_t i = 0; i < graph->values.n; i++) {
        n[i] += graph->values.at[i].keep;
    }
    *out = n;
    return SNUG_OK;
}

/* Where an operator keeps its fused activation; NULL if it has none. */
sn_act_attrs *sn_graph_fused_act(sn_node *node)
{
    switch (node->op) {
    case SN_OP_CONV2D:
    case SN_OP_DENSE:
        return &node->attrs.conv.act;
    case SN_OP_BATCH_NORM:
    case SN_OP_BATCH_NORM_APPLY:
        return &node->attrs.norm.act;
    case SN_OP_BINARY:
        return node->attrs.binary.kind == SN_BINARY_ADD ? &node->attrs.binary.act : NULL;
    default:
        return NULL;
    }
}

static bool is_plain_relu(const sn_act_attrs *act)
{
    return act->kind == SN_ACT_RELU && act->alpha == 0 && act->threshold == 0;
}

static void fuse_relu(sn_graph *graph, const uint32_t *readers, bool *gone, size_t i)
{
    sn_node *node = &graph->nodes.at[i];
    if (node->op != SN_OP_ACTIVATION || !is_plain_relu(&node->attrs.act)) {
        return;
    }
    uint32_t producer = graph->values.at[node->in[0]].producer;
    if (producer == UINT32_MAX || readers[node->in[0]] != 1 || gone[producer]) {
        return;
    }
    sn_node *before = &graph->nodes.at[producer];
    sn_act_attrs *act = sn_graph_fused_act(before);
    if (!act || act->kind != SN_ACT_NONE || before->out[0] != node->in[0]) {
        return;
    }
    *act = node->attrs.act;
    before->out[0] = node->out[0];
    graph->values.at[node->out[0]].producer = producer;
    gone[i] = true;
}

/* Zeros before a convolution are its own padding; before a max pool they are what -inf would give
 * when everything it sees is a ReLU's output, gradient included (a zero's gradient is masked). */
static void fuse_pad(sn_graph *graph, const uint32_t *readers, bool *gone, size_t i)
{
    sn_node *node = &graph->nodes.at[i];
    bool conv = node->op == SN_OP_CONV2D;
    bool pool = node->op == SN_OP_POOL2D && node->attrs.pool.kind == SN_POOL_MAX;
    if ((!conv && !pool) || graph->values.at[node->in[0]].producer == UINT32_MAX) {
        return;
    }
    uint32_t number = graph->values.at[node->in[0]].producer;
    const sn_node *pad = &graph->nodes.at[number];
    if (pad->op != SN_OP_PAD2D || readers[node->in[0]] != 1 || gone[number]) {
        return;
    }
    int64_t *into = conv ? node->attrs.conv.pad : node->attrs.pool.pad;
    if (pool) {
        uint32_t source = graph->values.at[pad->in[0]].producer;
        const sn_act_attrs *act =
            source == UINT32_MAX ? NULL : sn_graph_fused_act(&graph->nodes.at[source]);
        if (!act || !is_plain_relu(act)) {
            return;
        }
        for (int k = 0; k < 4; k++) {
            if (into[k] + pad->attrs.pad.pad[k] >= node->attrs.pool.window[k / 2]) {
                return; /* a window of nothing but padding */
            }
        }
    }
    for (int k = 0; k < 4; k++) {
        into[k] += pad->attrs.pad.pad[k];
    }
    node->in[0] = pad->in[0];
    gone[number] = true;
}

snug_status sn_graph_fuse(sn_graph *graph, snug_error *err)
{
    uint32_t *readers = NULL;
    bool *gone = sn_alloc_array(SN_TAG_GRAPH, graph->nodes.n + 1, sizeof *gone);
    snug_status s = gone ? count_readers(graph, &readers, err)
                         : sn_fail(err, SNUG_E_MEMORY, "no memory for %zu nodes", graph->nodes.n);
    if (s) {
        goto out;
    }
    for (size_t i = 0; i < graph->nodes.n; i++) {
        fuse_relu(graph, readers, gone, i);
    }
    for (size_t i = 0; i < graph->nodes.n; i++) {
        fuse_pad(graph, readers, gone, i);
    }
    size_t n = 0;
    for (size_t i = 0; i < graph->nodes.n; i++) {
        if (!gone[i]) {
            graph->nodes.at[n++] = graph->nodes.at[i];
        }
    }
    graph->nodes.n = n;
    s = sn_graph_check(graph, err);
out:
    sn_free(gone);
    sn_free(readers);
    return s;
}
