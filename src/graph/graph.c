/* SPDX-License-Identifier: Apache-2.0
 *
 * graph.c - values and nodes: adding, checking, printing. The invariants stand in graph.h.
 */
#include "graph/graph.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"

snug_status sn_graph_new(sn_graph **out, snug_error *err)
{
    *out = NULL;
    sn_graph *graph = sn_alloc(SN_TAG_GRAPH, sizeof *graph);
    if (!graph) {
        return sn_fail(err, SNUG_E_MEMORY, "no memory for a graph");
    }
    sn_arena_init(&graph->arena, SN_TAG_GRAPH);
    graph->x = graph->target = graph->sample_weight = graph->loss = graph->prediction = SN_NO_REF;
    *out = graph;
    return SNUG_OK;
}

void sn_graph_free(sn_graph *graph)
{
    if (!graph) {
        return;
    }
    SN_VEC_FREE(&graph->values);
    SN_VEC_FREE(&graph->nodes);
    sn_arena_deinit(&graph->arena);
    sn_free(graph);
}

snug_status sn_graph_add_value(sn_graph *graph, const char *name, const sn_desc *desc,
                               sn_value_kind kind, sn_ref *out, snug_error *err)
{
    sn_value value = {.desc = *desc,
                      .kind = kind,
                      .storage = (sn_ref)graph->values.n,
                      .producer = UINT32_MAX,
                      .weight = -1,
                      .slot = -1};
    value.name = sn_arena_strdup(&graph->arena, name);
    if (!value.name || !SN_VEC_PUSH(SN_TAG_GRAPH, &graph->values, value)) {
        return sn_fail(err, SNUG_E_MEMORY, "no memory for a graph of %zu values", graph->values.n);
    }
    *out = (sn_ref)graph->values.n - 1;
    return SNUG_OK;
}

sn_node *sn_graph_raw_node(sn_graph *graph, int n_in, int n_out)
{
    sn_node node = {.n_in = n_in, .n_out = n_out, .layer = "", .layer_index = -1};
    node.in = sn_arena_alloc_array(&graph->arena, (size_t)n_in + 1, sizeof *node.in);
    node.out = sn_arena_alloc_array(&graph->arena, (size_t)n_out + 1, sizeof *node.out);
    if (!node.in || !node.out || !SN_VEC_PUSH(SN_TAG_GRAPH, &graph->nodes, node)) {
        return NULL;
    }
    return &graph->nodes.at[graph->nodes.n - 1];
}

int sn_graph_overwrites(sn_op_id op, int output)
{
    switch (op) {
    case SN_OP_MOVING_AVERAGE:
        return 0;
    case SN_OP_UPDATE:
        return output == 0 ? 0 : output + 2;
    case SN_OP_DENSE_UPDATE:
        return output + 2;
    default:
        return -1;
    }
}

/* The value of one output: new bytes, or the next version of the input that it overwrites. */
static snug_status add_output(sn_graph *graph, const sn_node *node, int index, const sn_desc *desc,
                              snug_error *err)
{
    const char *stem = node->layer[0] ? node->layer : sn_op_of(node->op)->name;
    char name[320];
    snprintf(name, sizeof name, index ? "%s:%s.%d" : "%s:%s", stem, sn_op_of(node->op)->name,
             index);
    int source = sn_graph_overwrites(node->op, index);
    sn_ref old = source >= 0 ? node->in[source] : SN_NO_REF;
    if (old != SN_NO_REF) {
        snprintf(name, sizeof name, "%s", graph->values.at[old].name);
    }
    sn_ref ref;
    snug_status s = sn_graph_add_value(graph, name, desc, SN_VALUE_TEMP, &ref, err);
    if (s) {
        return s;
    }
    sn_value *value = &graph->values.at[ref];
    value->producer = (uint32_t)(node - graph->nodes.at);
    if (old != SN_NO_REF) {
        const sn_value *root = &graph->values.at[graph->values.at[old].storage];
        value->kind = root->kind;
        value->storage = graph->values.at[old].storage;
        value->version = graph->values.at[old].version + 1;
        value->weight = root->weight;
        value->slot = root->slot;
    }
    node->out[index] = ref;
    return SNUG_OK;
}

snug_status sn_graph_append(sn_graph *graph, sn_op_id op, const sn_attrs *attrs, int n_in,
                            const sn_ref *in, int n_out, const bool *want, sn_phase phase,
                            const char *layer, int32_t layer_index, sn_ref *out, snug_error *err)
{
    sn_desc in_desc[SN_MAX_IN], out_desc[SN_MAX_OUT];
    assert(n_in <= SN_MAX_IN && n_out <= SN_MAX_OUT);
    for (int i = 0; i < n_in; i++) {
        in_desc[i] = in[i] == SN_NO_REF ? sn_desc_absent() : graph->values.at[in[i]].desc;
    }
    snug_status s = sn_op_of(op)->infer(attrs, in_desc, n_in, out_desc, n_out, err);
    if (s) {
        sn_where(err, "layer '%s', %s", layer, sn_op_of(op)->name);
        return s;
    }
    sn_node *node = sn_graph_raw_node(graph, n_in, n_out);
    if (!node) {
        return sn_fail(err, SNUG_E_MEMORY, "no memory for a graph of %zu nodes", graph->nodes.n);
    }
    node->op = op;
    node->attrs = *attrs;
    node->phase = phase;
    node->layer = layer;
    node->layer_index = layer_index;
    memcpy(node->in, in, (size_t)n_in * sizeof *in);
    for (int i = 0; i < n_out; i++) {
        node->out[i] = SN_NO_REF;
        if ((!want || want[i]) && !sn_desc_is_absent(&out_desc[i])) {
            s = add_output(graph, node, i, &out_desc[i], err);
            if (s) {
                return s;
            }
        }
        if (out) {
            out[i] = node->out[i];
        }
    }
    return SNUG_OK;
}

/* ---- checking ---- */

static snug_status check_node(sn_graph *graph, uint32_t number, uint32_t *newest, bool *made,
                              snug_error *err)
{
    const sn_node *node = &graph->nodes.at[number];
    for (int i = 0; i < node->n_in; i++) {
        sn_ref ref = node->in[i];
        if (ref == SN_NO_REF) {
            continue;
        }
        const sn_value *value = &graph->values.at[ref];
        if (ref >= graph->values.n || !made[ref]) {
            return sn_fail(err, SNUG_E_INTERNAL,
                           "graph invariant 1: node %u (%s) reads value %u before it is made",
                           number, sn_op_of(node->op)->name, ref);
        }
        if (value->version < newest[value->storage]) {
            return sn_fail(err, SNUG_E_INTERNAL,
                           "graph invariant 4: node %u (%s) reads version %u of '%.80s' after %u",
                           number, sn_op_of(node->op)->name, value->version, value->name,
                           newest[value->storage]);
        }
    }
    for (int i = 0; i < node->n_out; i++) {
        sn_ref ref = node->out[i];
        if (ref == SN_NO_REF) {
            continue;
        }
        sn_value *value = &graph->values.at[ref];
        if (made[ref]) {
            return sn_fail(err, SNUG_E_INTERNAL,
                           "graph invariant 2: value %u is made twice, again by node %u", ref,
                           number);
        }
        if (graph->values.at[value->storage].storage != value->storage) {
            return sn_fail(err, SNUG_E_INTERNAL,
                           "graph invariant 3: the storage of value %u is no root", ref);
        }
        value->producer = number;
        made[ref] = true;
        if (value->version) {
            newest[value->storage] = value->version;
        }
    }
    return SNUG_OK;
}

snug_status sn_graph_check(sn_graph *graph, snug_error *err)
{
    snug_status s = SNUG_OK;
    size_t n = graph->values.n;
    bool *made = sn_alloc_array(SN_TAG_GRAPH, n + 1, sizeof *made);
    uint32_t *newest = sn_alloc_array(SN_TAG_GRAPH, n + 1, sizeof *newest);
    if (!made || !newest) {
        s = sn_fail(err, SNUG_E_MEMORY, "no memory to check a graph of %zu values", n);
        goto out;
    }
    for (size_t i = 0; i < n; i++) {
        sn_value *value = &graph->values.at[i];
        value->producer = UINT32_MAX;
        made[i] = value->version == 0 && value->kind != SN_VALUE_TEMP;
    }
    for (uint32_t i = 0; i < graph->nodes.n && !s; i++) {
        s = check_node(graph, i, newest, made, err);
    }
out:
    sn_free(made);
    sn_free(newest);
    return s;
}

snug_status sn_graph_last_uses(const sn_graph *graph, uint32_t **last, snug_error *err)
{
    *last = sn_alloc_array(SN_TAG_GRAPH, graph->values.n + 1, sizeof **last);
    if (!*last) {
        return sn_fail(err, SNUG_E_MEMORY, "no memory for %zu values", graph->values.n);
    }
    for (size_t i = 0; i < graph->values.n; i++) {
        (*last)[i] = UINT32_MAX;
    }
    for (uint32_t i = 0; i < graph->nodes.n; i++) {
        const sn_node *node = &graph->nodes.at[i];
        for (int k = 0; k < node->n_in; k++) {
            if (node->in[k] != SN_NO_REF) {
                (*last)[node->in[k]] = i;
                (*last)[graph->values.at[node->in[k]].storage] = i;
            }
        }
    }
    return SNUG_OK;
}

void sn_graph_print(const sn_graph *graph, sn_buf *out)
{
    static const char *const phases[] = {"forward", "backward", "update"};
    for (size_t i = 0; i < graph->nodes.n; i++) {
        const sn_node *node = &graph->nodes.at[i];
        sn_buf_printf(out, "%4zu %-8s %-18s %-24s", i, phases[node->phase],
                      sn_op_of(node->op)->name, node->layer);
        for (int k = 0; k < node->n_in; k++) {
            if (node->in[k] == SN_NO_REF) {
                sn_buf_puts(out, " -");
            } else {
                sn_buf_printf(out, " %%%u.%u", node->in[k], graph->values.at[node->in[k]].version);
            }
        }
        sn_buf_puts(out, " ->");
        for (int k = 0; k < node->n_out; k++) {
            if (node->out[k] != SN_NO_REF) {
                char shape[96];
                const sn_value *value = &graph->values.at[node->out[k]];
                sn_buf_printf(out, " %%%u%s", node->out[k],
                              sn_shape_format(shape, sizeof shape, &value->desc.shape));
            }
        }
        sn_buf_puts(out, node->is_replay ? " (replay)\n" : "\n");
    }
}
