/* SPDX-License-Identifier: Apache-2.0
 *
 * replay.c - forward values that backward finds again rather than keeps:
 *  - the output of an operator that costs about a pass over memory, where everything that it reads
 *    is kept anyway. BatchNorm + ReLU is replayed from the convolution's output with the saved
 *    statistics, so that neither is saved twice; running statistics are not touched by a replay;
 *  - the output of a residual block, from that of the block before and the normalizations inside
 *    the addition. Nothing is found again from what is found again so: every second one is kept;
 *  - the convolutions that give back most bytes for their arithmetic (a 1x1 that widens a large
 *    image), up to CONV_SHARE of the step's arithmetic.
 * A replay is the same operator on the same bits with the same weights, so its bits are the same.
 */
#include "graph/graph.h"

#include <string.h>

/* Share of the step's arithmetic that replayed convolutions may cost. */
#define CONV_SHARE .015

enum { INSIDE = 1 }; /* steps inside an operator's replay: the normalization in an addition */

typedef struct replayer {
    sn_graph *graph;
    uint32_t *first_use;   /* first backward node that reads the value, UINT32_MAX: none */
    uint32_t *last_use;    /* last node that reads it */
    uint32_t *overwritten; /* of a storage root: the node that writes its next version */
    bool *dropped;         /* values that are replayed */
    sn_ref *again;         /* while rebuilding: the replayed value, 0: not made yet */
    const sn_node *old;    /* while rebuilding: the nodes as they stood */
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
    case SN_OP_BINARY:
    case SN_OP_ACTIVATION:
        return true;
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

/* What nobody in backward reads, and what only a replay of its reader would need. */
static bool is_inside(const replayer *r, sn_ref ref)
{
    return r->graph->values.at[ref].kind == SN_VALUE_TEMP && r->first_use[ref] == UINT32_MAX &&
           !r->dropped[ref] && r->graph->values.at[ref].producer != UINT32_MAX;
}

/* Is every input still there when the replay runs at node `at`, without being kept for it alone? A
 * dropped input is found again itself. So is a cheap one that backward does not read, from inputs
 * that are kept, `depth` steps down. */
static bool inputs_are_kept(const replayer *r, const sn_node *node, uint32_t at,
                            bool may_be_dropped, int depth)
{
    sn_ref in[SN_MAX_IN];
    int n = replay_inputs(node, in);
    for (int i = 0; i < n; i++) {
        if (in[i] == SN_NO_REF) {
            continue;
        }
        const sn_value *value = &r->graph->values.at[in[i]];
        if (value->kind != SN_VALUE_TEMP) {
            if (r->overwritten[value->storage] < at) {
                return false; /* the weight of then is no more */
            }
        } else if (r->dropped[in[i]]) {
            if (!may_be_dropped) {
                return false;
            }
        } else if (depth > 0 && is_inside(r, in[i])) {
            const sn_node *inside = &r->graph->nodes.at[value->producer];
            if (!is_cheap(inside) || !inputs_are_kept(r, inside, at, false, depth - 1)) {
                return false;
            }
        } else if (r->first_use[in[i]] == UINT32_MAX || r->last_use[in[i]] < at) {
            return false;
        }
    }
    return true;
}

static void find_uses(replayer *r)
{
    const sn_graph *graph = r->graph;
    for (size_t i = 0; i < graph->values.n; i++) {
        r->first_use[i] = r->last_use[i] = r->overwritten[i] = UINT32_MAX;
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
        for (int k = 0; k < node->n_out; k++) {
            const sn_value *out =
                node->out[k] == SN_NO_REF ? NULL : &graph->values.at[node->out[k]];
            if (out && out->version > 0 && r->overwritten[out->storage] == UINT32_MAX) {
                r->overwritten[out->storage] = i;
            }
        }
    }
}

/* Appends the replay of a dropped value to the list that is being rebuilt, and before it the
 * replays that it reads. */
static snug_status append_replay(replayer *r, sn_ref value, snug_error *err)
{
    sn_graph *graph = r->graph;
    if (r->again[value]) {
        return SNUG_OK;
    }
    const sn_node *node = &r->old[graph->values.at[value].producer];
    sn_ref in[SN_MAX_IN], outs[SN_MAX_OUT];
    int n = replay_inputs(node, in);
    for (int i = 0; i < n; i++) {
        if (in[i] != SN_NO_REF && r->dropped[in[i]]) {
            snug_status s = append_replay(r, in[i], err);
            if (s) {
                return s;
            }
            in[i] = r->again[in[i]];
        }
    }
    sn_op_id op = node->op == SN_OP_BATCH_NORM ? SN_OP_BATCH_NORM_APPLY : node->op;
    snug_status s = sn_graph_append(graph, op, &node->attrs, n, in, 1, NULL, SN_PHASE_BACKWARD,
                                    node->layer, node->layer_index, outs, err);
    if (!s) {
        graph->nodes.at[graph->nodes.n - 1].is_replay = true;
        r->again[value] = outs[0];
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
    r->old = old;
    snug_status s = SNUG_OK;
    for (size_t i = 0; i < n_old && !s; i++) {
        sn_node *node = &old[i];
        for (int k = 0; k < node->n_in && node->phase != SN_PHASE_FORWARD && !s; k++) {
            sn_ref ref = node->in[k];
            if (ref != SN_NO_REF && ref < n_values && r->dropped[ref]) {
                s = append_replay(r, ref, err);
                node->in[k] = s ? ref : r->again[ref];
            }
        }
        if (!s && !SN_VEC_PUSH(SN_TAG_GRAPH, &graph->nodes, *node)) {
            s = sn_fail(err, SNUG_E_MEMORY, "no memory for %zu nodes", n_old);
        }
    }
    sn_free(old);
    return s;
}

static double node_flops(const sn_graph *graph, const sn_node *node)
{
    sn_desc in[SN_MAX_IN], out[SN_MAX_OUT];
    for (int i = 0; i < node->n_in; i++) {
        in[i] = node->in[i] == SN_NO_REF ? sn_desc_absent() : graph->values.at[node->in[i]].desc;
    }
    for (int i = 0; i < node->n_out; i++) {
        out[i] = node->out[i] == SN_NO_REF ? sn_desc_absent() : graph->values.at[node->out[i]].desc;
    }
    sn_cost cost = {0};
    sn_op_of(node->op)->cost(&node->attrs, in, node->n_in, out, node->n_out, &cost);
    return cost.flops;
}

/* Drops the node's output, and what only its replay makes. */
static void drop(replayer *r, const sn_node *node)
{
    r->dropped[node->out[0]] = true;
    for (int i = 0; i < node->n_in; i++) {
        if (node->in[i] != SN_NO_REF && is_inside(r, node->in[i])) {
            drop(r, &r->graph->nodes.at[r->graph->values.at[node->in[i]].producer]);
        }
    }
}

static void drop_cheap(replayer *r)
{
    const sn_graph *graph = r->graph;
    for (size_t i = 0; i < graph->nodes.n; i++) {
        const sn_node *node = &graph->nodes.at[i];
        if (node->phase != SN_PHASE_FORWARD || !is_cheap(node)) {
            continue;
        }
        sn_ref y = node->out[0];
        if (r->first_use[y] != UINT32_MAX && !graph->values.at[y].keep &&
            inputs_are_kept(r, node, r->first_use[y], false, INSIDE)) {
            drop(r, node);
        }
    }
}

/* Is y needed for the replay of something else that was dropped? Then dropping y as well would
 * stretch that replay's lifetime over its own. */
static bool feeds_a_replay(const replayer *r, sn_ref y)
{
    const sn_graph *graph = r->graph;
    for (size_t i = 0; i < graph->nodes.n; i++) {
        const sn_node *node = &graph->nodes.at[i];
        for (int k = 0; k < node->n_in && node->phase == SN_PHASE_FORWARD; k++) {
            if (node->in[k] == y && r->dropped[node->out[0]]) {
                return true;
            }
        }
    }
    return false;
}

/* Convolutions by bytes given back for each operation, while the budget of operations lasts. */
static void drop_convolutions(replayer *r)
{
    const sn_graph *graph = r->graph;
    double budget = 0;
    for (size_t i = 0; i < graph->nodes.n; i++) {
        budget += CONV_SHARE * node_flops(graph, &graph->nodes.at[i]);
    }
    for (;;) {
        double best = 0, cost = 0;
        sn_ref pick = SN_NO_REF;
        for (size_t i = 0; i < graph->nodes.n; i++) {
            const sn_node *node = &graph->nodes.at[i];
            sn_ref y = node->op == SN_OP_CONV2D && node->phase == SN_PHASE_FORWARD ? node->out[0]
                                                                                   : SN_NO_REF;
            if (y == SN_NO_REF || r->dropped[y] || graph->values.at[y].keep ||
                r->first_use[y] == UINT32_MAX || feeds_a_replay(r, y) ||
                !inputs_are_kept(r, node, r->first_use[y], true, 0)) {
                continue;
            }
            double flops = node_flops(graph, node);
            double gain = (double)sn_shape_n(&graph->values.at[y].desc.shape) / flops;
            if (flops <= budget && gain > best) {
                best = gain;
                cost = flops;
                pick = y;
            }
        }
        if (pick == SN_NO_REF) {
            return;
        }
        r->dropped[pick] = true;
        budget -= cost;
    }
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
    r.overwritten = sn_alloc_array(SN_TAG_GRAPH, n + 1, sizeof *r.overwritten);
    r.dropped = sn_alloc_array(SN_TAG_GRAPH, n + 1, sizeof *r.dropped);
    r.again = sn_alloc_array(SN_TAG_GRAPH, n + 1, sizeof *r.again);
    if (!r.first_use || !r.last_use || !r.overwritten || !r.dropped || !r.again) {
        s = sn_fail(err, SNUG_E_MEMORY, "no memory for %zu values", n);
        goto out;
    }
    find_uses(&r);
    drop_cheap(&r);
    drop_convolutions(&r);
    s = rebuild(&r, n, err);
    s = s ? s : sn_graph_check(graph, err);
out:
    sn_free(r.first_use);
    sn_free(r.last_use);
    sn_free(r.overwritten);
    sn_free(r.dropped);
    sn_free(r.again);
    return s;
}
