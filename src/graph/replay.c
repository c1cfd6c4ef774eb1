/* SPDX-License-Identifier: Apache-2.0
 *
 * replay.c - forward values that backward finds again rather than keeps: the output of an operator
 * that costs about a pass over memory, where everything that it reads is kept anyway. BatchNorm +
 * ReLU is replayed from the convolution's output with the saved statistics, so that neither is
 * saved twice; running statistics are not touched by a replay.
 */
#include "graph/graph.h"

#include <string.h>

typedef struct replayer {
    sn_graph *graph;
    uint32_t *first_use; /* first backward node that reads the value, UINT32_MAX: none */
    uint32_t *last_use;  /* last node that reads it */
    bool *dropped;       /* values that are replayed */
} replayer;

static bool is_cheap(const sn_node *node)
{
    switch (node->op) {
    case SN_OP_BATCH_NORM:
    case SN_OP_BATCH_NORM_APPLY:
    case SN_OP_CONCAT:
    case SN_OP_PAD2D:
    case SN_OP_SCALAR:
    case SN_OP_DROPOUT:
        return true;
    case SN_OP_ACTIVATION:
        return !sn_act_from_output(&node->attrs.act);
    default:
        return false;
    }
}

/* What a replay of the node reads: BatchNorm needs its own statistics instead of making them. */
static int replay_inputs(const sn_node *node, sn_ref in[SN_MAX_IN])
{
    memcpy(in, node->in, (size_t)node->n_in * sizeof *in);
    if (node->op == SN_OP_BATCH_NORM) {
        in[3] = node->out[1];
        in[4] = node->out[2];
        return 5;
    }
    return node->n_in;
}

/* Is every input still there when the replay runs, without being kept for it alone? */
static bool inputs_are_kept(const replayer *r, const sn_node *node, uint32_t at)
{
    sn_ref in[SN_MAX_IN];
    int n = replay_inputs(node, in);
    for (int i = 0; i < n; i++) {
        if (in[i] == SN_NO_REF) {
            continue;
        }
        const sn_value *value = &r->graph->values.at[in[i]];
        bool persistent = value->kind != SN_VALUE_TEMP;
        bool kept = r->first_use[in[i]] != UINT32_MAX && r->last_use[in[i]] >= at;
        if (!persistent && (!kept || r->dropped[in[i]])) {
            return false;
        }
    }
    return true;
}

static void find_uses(replayer *r)
{
    const sn_graph *graph = r->graph;
    for (size_t i = 0; i < graph->values.n; i++) {
        r->first_use[i] = r->last_use[i] = UINT32_MAX;
    }
    for (uint32_t i = 0; i < graph->nodes.n; i++) {
        const sn_node *node = &graph->nodes.at[i];
        for (int k = 0; k < node->n_in; k++) {
            sn_ref ref = node->in[k];
            if (ref == SN_NO_REF || node->phase == SN_PHASE_FORWARD) {
                continue;
            }
            r->last_use[ref] = i;
            if (r->first_use[ref] == UINT32_MAX) {
                r->first_use[ref] = i;
            }
        }
    }
}

/* Appends the replay of forward node `node` to the list that is being rebuilt. */
static snug_status append_replay(sn_graph *graph, const sn_node *node, sn_ref *out, snug_error *err)
{
    sn_ref in[SN_MAX_IN], outs[SN_MAX_OUT];
    int n = replay_inputs(node, in);
    sn_op_id op = node->op == SN_OP_BATCH_NORM ? SN_OP_BATCH_NORM_APPLY : node->op;
    snug_status s = sn_graph_append(graph, op, &node->attrs, n, in, 1, NULL, SN_PHASE_BACKWARD,
                                    node->layer, node->layer_index, outs, err);
    if (!s) {
        graph->nodes.at[graph->nodes.n - 1].is_replay = true;
        *out = outs[0];
    }
    return s;
}

/* Rebuilds the node list with the replays right before their first backward readers. */
static snug_status rebuild(replayer *r, size_t n_values, snug_error *err)
{
    sn_graph *graph = r->graph;
    sn_node *old = graph->nodes.at;
    size_t n_old = graph->nodes.n;
    graph->nodes.at = NULL;
    graph->nodes.n = graph->nodes.cap = 0;
    sn_ref *again = sn_alloc_array(SN_TAG_GRAPH, n_values + 1, sizeof *again);
    snug_status s =
        again ? SNUG_OK : sn_fail(err, SNUG_E_MEMORY, "no memory for %zu values", n_values);
    for (size_t i = 0; i < n_old && !s; i++) {
        sn_node *node = &old[i];
        for (int k = 0; k < node->n_in && node->phase != SN_PHASE_FORWARD && !s; k++) {
            sn_ref ref = node->in[k];
            if (ref == SN_NO_REF || ref >= n_values || !r->dropped[ref]) {
                continue;
            }
            if (!again[ref]) {
                s = append_replay(graph, &old[graph->values.at[ref].producer], &again[ref], err);
            }
            node->in[k] = s ? ref : again[ref];
        }
        if (!s && !SN_VEC_PUSH(SN_TAG_GRAPH, &graph->nodes, *node)) {
            s = sn_fail(err, SNUG_E_MEMORY, "no memory for %zu nodes", n_old);
        }
    }
    sn_free(again);
    sn_free(old);
    return s;
}

snug_status sn_graph_replay(sn_graph *graph, snug_error *err)
{
    size_t n = graph->values.n;
    replayer r = {.graph = graph};
    snug_status s = sn_graph_check(graph, err); /* producers anew */
    if (s) {
        return s;
    }
    r.first_use = sn_alloc_array(SN_TAG_GRAPH, n + 1, sizeof *r.first_use);
    r.last_use = sn_alloc_array(SN_TAG_GRAPH, n + 1, sizeof *r.last_use);
    r.dropped = sn_alloc_array(SN_TAG_GRAPH, n + 1, sizeof *r.dropped);
    if (!r.first_use || !r.last_use || !r.dropped) {
        s = sn_fail(err, SNUG_E_MEMORY, "no memory for %zu values", n);
        goto out;
    }
    find_uses(&r);
    for (size_t i = 0; i < graph->nodes.n; i++) {
        const sn_node *node = &graph->nodes.at[i];
        if (node->phase != SN_PHASE_FORWARD || !is_cheap(node)) {
            continue;
        }
        sn_ref y = node->out[0];
        if (r.first_use[y] != UINT32_MAX && !graph->values.at[y].keep &&
            inputs_are_kept(&r, node, r.first_use[y])) {
            r.dropped[y] = true;
        }
    }
    s = rebuild(&r, n, err);
    s = s ? s : sn_graph_check(graph, err);
out:
    sn_free(r.first_use);
    sn_free(r.last_use);
    sn_free(r.dropped);
    return s;
}
