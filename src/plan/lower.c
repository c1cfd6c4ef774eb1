/* SPDX-License-Identifier: Apache-2.0
 *
 * lower.c - asking the device for kernels, node by node, and putting a REORDER wherever a kernel
 * wants another layout than its input has.
 *
 * Invariants:
 *  1. a weight has one layout in all programs of a plan: what its first reader wanted. Slots and
 * the final gradient have it, too. A reader that wants another one gets a copy for itself.
 *  2. what is fed (X, TARGET, SAMPLE_WEIGHT) and constants lie plain.
 *  3. a copy made in forward serves later forward readers; in backward it is used again only if the
 *     original is a temporary (then keeping one of the two is enough).
 */
#include <stdio.h>
#include <string.h>

#include "base/vec.h"
#include "plan/plan.h"

typedef struct copy {
    sn_ref value, copy;
    sn_layout layout;
    sn_phase phase;
} copy;

typedef struct lowering {
    sn_graph *graph;
    sn_device *device;
    sn_weight_layouts *layouts;
    SN_VEC(copy) copies;
} lowering;

static snug_status no_memory(snug_error *err)
{
    return sn_fail(err, SNUG_E_MEMORY, "no memory for the plan");
}

/* Where the layout of a value is kept: weights and slots in the common table (invariant 1). */
static sn_layout *layout_at(lowering *l, sn_ref ref)
{
    sn_value *v = &l->graph->values.at[ref];
    sn_value *root = &l->graph->values.at[v->storage];
    bool of_weight = root->kind == SN_VALUE_WEIGHT || root->kind == SN_VALUE_SLOT;
    if (of_weight && root->weight >= 0 && (size_t)root->weight < l->layouts->n)
        return &l->layouts->at[root->weight];
    return v->storage == ref ? &v->layout : &root->layout;
}

/* A REORDER from `from` to `to`, which exist; a step of the reader's. */
static snug_status push_reorder(lowering *l, sn_ref from, sn_ref to, sn_layout from_layout,
                                sn_layout to_layout, const sn_node *reader, snug_error *err)
{
    sn_attrs attrs = {0};
    const sn_desc *desc = &l->graph->values.at[from].desc;
    sn_operation operation = {SN_OP_REORDER, &attrs, 1, 1, desc, desc, &from_layout, &to_layout};
    sn_proposal proposal = {0};
    snug_status s = l->device->backend->propose(l->device, &operation, &proposal, err);
    if (s)
        return s;
    if (!sn_layout_eq(proposal.in[0], from_layout) || !sn_layout_eq(proposal.out[0], to_layout))
        return sn_fail(err, SNUG_E_INTERNAL,
                       "the device reorders '%s' to another layout than asked",
                       l->graph->values.at[from].name);
    sn_node *node = sn_graph_raw_node(l->graph, 1, 1);
    if (!node)
        return no_memory(err);
    node->op = SN_OP_REORDER;
    node->in[0] = from;
    node->out[0] = to;
    node->phase = reader->phase;
    node->layer = reader->layer;
    node->layer_index = reader->layer_index;
    node->kernel = proposal.kernel;
    node->queue = proposal.queue;
    node->workspace_bytes = proposal.workspace_bytes;
    node->runtime_bytes = proposal.runtime_bytes;
    l->graph->values.at[to].layout = to_layout;
    return SNUG_OK;
}

/* A new temporary like `ref`. */
static snug_status twin(lowering *l, sn_ref ref, const char *suffix, sn_ref *out, snug_error *err)
{
    sn_desc desc = l->graph->values.at[ref].desc;
    int32_t weight = l->graph->values.at[ref].weight;
    bool is_gradient = l->graph->values.at[ref].is_gradient;
    char *name = sn_arena_printf(&l->graph->arena, "%s:%s", l->graph->values.at[ref].name, suffix);
    if (!name)
        return no_memory(err);
    snug_status s = sn_graph_add_value(l->graph, name, &desc, SN_VALUE_TEMP, out, err);
    if (s)
        return s;
    sn_value *v = &l->graph->values.at[*out];
    v->weight = weight;
    v->slot = -1;
    v->is_gradient = is_gradient;
    return SNUG_OK;
}

/* *ref in the wanted layout: a copy that is there (invariant 3) or a new one. */
static snug_status in_layout(lowering *l, sn_ref *ref, sn_layout have, sn_layout want,
                             const sn_node *reader, snug_error *err)
{
    const sn_value *v = &l->graph->values.at[*ref];
    bool is_temp = l->graph->values.at[v->storage].kind == SN_VALUE_TEMP;
    for (size_t i = l->copies.n; i-- > 0;) {
        const copy *c = &l->copies.at[i];
        if (c->value == *ref && sn_layout_eq(c->layout, want) &&
            (is_temp || (c->phase == SN_PHASE_FORWARD && reader->phase == SN_PHASE_FORWARD))) {
            *ref = c->copy;
            return SNUG_OK;
        }
    }
    sn_ref made;
    snug_status s = twin(l, *ref, "reordered", &made, err);
    if (!s)
        s = push_reorder(l, *ref, made, have, want, reader, err);
    if (s)
        return s;
    if (!SN_VEC_PUSH(SN_TAG_PLAN, &l->copies, (copy){*ref, made, want, reader->phase}))
        return no_memory(err);
    *ref = made;
    return SNUG_OK;
}

/* Bytes in the order of the plain layout whatever the layout says: [N,1,1,C], C a multiple. */
static bool is_plain_in_fact(const sn_desc *desc, sn_layout layout)
{
    const sn_shape *s = &desc->shape;
    return layout.kind == SN_LAYOUT_PLAIN ||
           (layout.kind == SN_LAYOUT_BLOCKED && s->rank == 4 && s->dim[1] == 1 && s->dim[2] == 1 &&
            s->dim[3] % layout.block == 0);
}

/* Reshapes move nothing: they take plain input and never reach the device. */
static snug_status lower_reshape(lowering *l, sn_node *node, snug_error *err)
{
    sn_layout *have = layout_at(l, node->in[0]);
    if (have->kind == SN_LAYOUT_UNSET)
        *have = SN_PLAIN;
    if (!is_plain_in_fact(&l->graph->values.at[node->in[0]].desc, *have)) {
        snug_status s = in_layout(l, &node->in[0], *have, SN_PLAIN, node, err);
        if (s)
            return s;
    }
    sn_node *moved = sn_graph_raw_node(l->graph, 0, 0);
    if (!moved)
        return no_memory(err);
    *moved = *node;
    l->graph->values.at[node->out[0]].layout = SN_PLAIN;
    return SNUG_OK;
}

/* ---- one node -------------------------------------------------------------------------------- */

typedef struct question {
    sn_desc in[SN_MAX_IN], out[SN_MAX_OUT];
    sn_layout have[SN_MAX_IN], wish[SN_MAX_OUT];
} question;

static void ask(lowering *l, const sn_node *node, question *q)
{
    static const sn_layout unset = {SN_LAYOUT_UNSET, 0, 0};
    for (int i = 0; i < node->n_in; i++) {
        bool there = node->in[i] != SN_NO_REF;
        q->in[i] = there ? l->graph->values.at[node->in[i]].desc : sn_desc_absent();
        q->have[i] = there ? *layout_at(l, node->in[i]) : unset;
        sn_value_kind kind = there ? l->graph->values.at[node->in[i]].kind : SN_VALUE_TEMP;
        if (there && kind != SN_VALUE_TEMP && kind != SN_VALUE_WEIGHT && kind != SN_VALUE_SLOT)
            *layout_at(l, node->in[i]) = q->have[i] = SN_PLAIN; /* invariant 2 */
    }
    for (int i = 0; i < node->n_out; i++) {
        bool there = node->out[i] != SN_NO_REF;
        q->out[i] = there ? l->graph->values.at[node->out[i]].desc : sn_desc_absent();
        q->wish[i] = unset;
        if (!there)
            continue;
        const sn_value *v = &l->graph->values.at[node->out[i]];
        if (v->kind == SN_VALUE_WEIGHT || v->kind == SN_VALUE_SLOT)
            q->wish[i] = *layout_at(l, node->out[i]);
        else if (v->is_gradient && v->weight >= 0 && (size_t)v->weight < l->layouts->n)
            q->wish[i] = l->layouts->at[v->weight];
    }
}

static bool overwrites(const lowering *l, const sn_node *node, sn_ref in)
{
    for (int k = 0; k < node->n_out; k++)
        if (node->out[k] != SN_NO_REF && l->graph->values.at[node->out[k]].kind != SN_VALUE_TEMP &&
            l->graph->values.at[node->out[k]].storage == l->graph->values.at[in].storage)
            return true;
    return false;
}

static snug_status lower_inputs(lowering *l, sn_node *node, const question *q,
                                const sn_proposal *proposal, snug_error *err)
{
    for (int i = 0; i < node->n_in; i++) {
        if (node->in[i] == SN_NO_REF)
            continue;
        sn_layout *have = layout_at(l, node->in[i]), want = proposal->in[i];
        if (want.kind == SN_LAYOUT_UNSET)
            want = have->kind == SN_LAYOUT_UNSET ? SN_PLAIN : *have;
        if (have->kind == SN_LAYOUT_UNSET)
            *have = want;
        SN_UNUSED(q);
        if (sn_layout_eq(*have, want))
            continue;
        if (overwrites(l, node, node->in[i]))
            return sn_fail(err, SNUG_E_INTERNAL,
                           "the device wants '%s' in another layout, though it is overwritten",
                           l->graph->values.at[node->in[i]].name);
        snug_status s = in_layout(l, &node->in[i], *have, want, node, err);
        if (s)
            return s;
    }
    return SNUG_OK;
}

/* Sets the outputs' layouts; where one differs from what it has to be, the node writes a temporary
 * and a REORDER follows. */
static snug_status lower_outputs(lowering *l, sn_node *node, const question *q,
                                 const sn_proposal *proposal, snug_error *err)
{
    sn_ref written[SN_MAX_OUT], wanted[SN_MAX_OUT];
    for (int i = 0; i < node->n_out; i++) {
        written[i] = wanted[i] = node->out[i];
        if (node->out[i] == SN_NO_REF)
            continue;
        sn_layout got = proposal->out[i];
        if (got.kind == SN_LAYOUT_UNSET)
            got = SN_PLAIN;
        sn_layout wish = q->wish[i];
        if (l->graph->values.at[node->out[i]].kind != SN_VALUE_TEMP) {
            /* an update: its weight may have been claimed by this very node */
            if (!sn_layout_eq(*layout_at(l, node->out[i]), got))
                return sn_fail(err, SNUG_E_INTERNAL,
                               "the device writes '%s' in another layout than it is read",
                               l->graph->values.at[node->out[i]].name);
            continue;
        }
        if (wish.kind == SN_LAYOUT_UNSET || sn_layout_eq(wish, got)) {
            l->graph->values.at[node->out[i]].layout = got;
            continue;
        }
        snug_status s = twin(l, node->out[i], "raw", &written[i], err);
        if (s)
            return s;
        l->graph->values.at[written[i]].layout = got;
    }
    sn_node *moved = sn_graph_raw_node(l->graph, 0, 0);
    if (!moved)
        return no_memory(err);
    for (int i = 0; i < node->n_out; i++)
        node->out[i] = written[i];
    *moved = *node;
    for (int i = 0; i < node->n_out; i++) {
        if (written[i] == wanted[i])
            continue;
        snug_status s = push_reorder(l, written[i], wanted[i],
                                     l->graph->values.at[written[i]].layout, q->wish[i], node, err);
        if (s)
            return s;
    }
    return SNUG_OK;
}

static snug_status lower_node(lowering *l, sn_node *node, snug_error *err)
{
    if (node->n_in > SN_MAX_IN || node->n_out > SN_MAX_OUT)
        return sn_fail(err, SNUG_E_UNSUPPORTED, "an operator with %d inputs; %d is the limit",
                       node->n_in, SN_MAX_IN);
    if (node->op == SN_OP_RESHAPE)
        return lower_reshape(l, node, err);
    question q;
    ask(l, node, &q);
    sn_operation operation = {node->op, &node->attrs, node->n_in, node->n_out,
                              q.in,     q.out,        q.have,     q.wish};
    sn_proposal proposal = {0};
    snug_status s = l->device->backend->propose(l->device, &operation, &proposal, err);
    if (s)
        return s;
    node->kernel = proposal.kernel;
    node->queue = proposal.queue;
    node->workspace_bytes = proposal.workspace_bytes;
    node->runtime_bytes = proposal.runtime_bytes;
    node->why = proposal.why[0] ? sn_arena_strdup(&l->graph->arena, proposal.why) : NULL;
    if (proposal.why[0] && !node->why)
        return no_memory(err);
    s = lower_inputs(l, node, &q, &proposal, err);
    return s ? s : lower_outputs(l, node, &q, &proposal, err);
}

/* ---- the graph ------------------------------------------------------------------------------- */

/* Layouts of the values that share or stand in the table. */
static void settle(lowering *l)
{
    for (size_t i = 0; i < l->graph->values.n; i++) {
        sn_value *v = &l->graph->values.at[i];
        if (v->kind == SN_VALUE_TEMP)
            continue;
        sn_layout *at = layout_at(l, (sn_ref)i);
        if (at->kind == SN_LAYOUT_UNSET)
            *at = SN_PLAIN;
        v->layout = *at;
    }
}

snug_status sn_plan_lower(sn_graph *graph, sn_device *device, sn_weight_layouts *layouts,
                          snug_error *err)
{
    lowering l = {.graph = graph, .device = device, .layouts = layouts};
    sn_node *old = graph->nodes.at;
    size_t n = graph->nodes.n;
    graph->nodes.at = NULL;
    graph->nodes.n = graph->nodes.cap = 0;
    snug_status s = SNUG_OK;
    for (size_t i = 0; i < n && !s; i++) {
        s = lower_node(&l, &old[i], err);
        if (s && old[i].layer && old[i].layer[0])
            sn_where(err, "layer '%s'", old[i].layer);
    }
    if (!s)
        settle(&l);
    sn_free(old);
    SN_VEC_FREE(&l.copies);
    return s ? s : sn_graph_check(graph, err);
}
