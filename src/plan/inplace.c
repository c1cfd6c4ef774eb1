/* SPDX-License-Identifier: Apache-2.0
 *
 * inplace.c - outputs that take the storage of an input, and reshapes as aliases.
 *
 * Invariants:
 *  1. only a temporary that nobody reads later is overwritten, and it is no result to keep;
 *  2. both have the same layout, type and bytes;
 *  3. no other operand of the node lies in that storage.
 */
#include <string.h>

#include "base/vec.h"
#include "plan/plan.h"

#define END_OF_STEP (UINT32_MAX - 1)

static sn_ref root_of(const sn_graph *graph, sn_ref ref)
{
    return graph->values.at[ref].storage;
}

/* Last node that reads a storage, by root; END_OF_STEP for what is kept. */
static uint32_t *last_reads(const sn_graph *graph)
{
    uint32_t *last = sn_alloc_array(SN_TAG_PLAN, graph->values.n + 1, sizeof *last);
    for (size_t i = 0; last && i < graph->nodes.n; i++)
        for (int k = 0; k < graph->nodes.at[i].n_in; k++)
            if (graph->nodes.at[i].in[k] != SN_NO_REF)
                last[root_of(graph, graph->nodes.at[i].in[k])] = (uint32_t)i;
    for (size_t v = 0; last && v < graph->values.n; v++)
        if (graph->values.at[v].keep)
            last[root_of(graph, (sn_ref)v)] = END_OF_STEP;
    return last;
}

static void share(sn_graph *graph, uint32_t *last, sn_ref out, sn_ref root)
{
    graph->values.at[out].storage = root;
    last[root] = SN_MAX(last[root], last[out]);
}

static snug_status may_share(const sn_graph *graph, sn_device *device, const uint32_t *last,
                             size_t index, int in, int out, bool *may, snug_error *err)
{
    const sn_node *node = &graph->nodes.at[index];
    *may = false;
    if (in < 0 || in >= node->n_in || node->in[in] == SN_NO_REF)
        return SNUG_OK;
    const sn_value *a = &graph->values.at[node->in[in]], *b = &graph->values.at[node->out[out]];
    sn_ref root = a->storage;
    if (graph->values.at[root].kind != SN_VALUE_TEMP || last[root] != index ||
        b->kind != SN_VALUE_TEMP || b->storage != node->out[out])
        return SNUG_OK; /* invariant 1 */
    for (int k = 0; k < node->n_in; k++)
        if (k != in && node->in[k] != SN_NO_REF && root_of(graph, node->in[k]) == root)
            return SNUG_OK; /* invariant 3 */
    for (int k = 0; k < node->n_out; k++)
        if (k != out && node->out[k] != SN_NO_REF && root_of(graph, node->out[k]) == root)
            return SNUG_OK;
    if (!sn_layout_eq(a->layout, b->layout) ||
        sn_dtype_bytes(a->desc.dtype) != sn_dtype_bytes(b->desc.dtype) ||
        sn_shape_n(&a->desc.shape) != sn_shape_n(&b->desc.shape))
        return SNUG_OK;
    uint64_t a_bytes = 0, b_bytes = 0;
    snug_status s = device->backend->layout_bytes(device, &a->desc, a->layout, &a_bytes, err);
    if (!s)
        s = device->backend->layout_bytes(device, &b->desc, b->layout, &b_bytes, err);
    *may = !s && a_bytes == b_bytes; /* invariant 2 */
    return s;
}

snug_status sn_plan_in_place(sn_graph *graph, sn_device *device, size_t *n_shared, snug_error *err)
{
    size_t n = 0;
    snug_status s = SNUG_OK;
    for (size_t v = 0; v < graph->values.n; v++)
        if (graph->values.at[v].kind == SN_VALUE_TEMP)
            graph->values.at[v].storage = (sn_ref)v;
    uint32_t *last = last_reads(graph);
    if (!last)
        return sn_fail(err, SNUG_E_MEMORY, "no memory for the plan");
    for (size_t i = 0; i < graph->nodes.n && !s; i++) {
        const sn_node *node = &graph->nodes.at[i];
        const sn_op *op = sn_op_of(node->op);
        if (node->op == SN_OP_RESHAPE) {
            share(graph, last, node->out[0], root_of(graph, node->in[0]));
            continue;
        }
        for (int k = 0; op->in_place && k < node->n_out && !s; k++) {
            bool may = false;
            if (node->out[k] == SN_NO_REF)
                continue;
            int in = op->in_place(&node->attrs, k);
            s = may_share(graph, device, last, i, in, k, &may, err);
            if (!may)
                continue;
            share(graph, last, node->out[k], root_of(graph, node->in[in]));
            n++;
        }
    }
    sn_free(last);
    if (n_shared)
        *n_shared = n;
    return s ? s : sn_graph_check(graph, err);
}
