/* SPDX-License-Identifier: Apache-2.0
 *
 * lifetimes.c - from a lowered graph to instructions and buffers: from when to when each is needed,
 * how many bytes it takes, and who waits for whom when there are two queues.
 *
 * Invariants:
 *  1. clock[i][q] is one more than the last instruction of queue q that has ended before i begins
 *     (i's own queue: i itself counts); it never falls along a queue.
 *  2. an instruction that touches what another queue wrote, or writes what it read, has waited.
 *  3. a life ends when each queue has waited for its last use: an instruction after `last`, on any
 *     queue, begins after every use of it has ended.
 */
#include <string.h>

#include "base/vec.h"
#include "plan/plan.h"

enum { N_QUEUES = 2 };

typedef struct use {
    uint32_t wrote[N_QUEUES], read[N_QUEUES]; /* last, plus one; 0: none */
} use;

typedef struct builder {
    const sn_graph *graph;
    sn_device *device;
    sn_lifetimes *out;
    SN_VEC(sn_life) lives;
    uint32_t (*clock)[N_QUEUES];
    use *uses;
} builder;

static snug_status no_memory(snug_error *err)
{
    return sn_fail(err, SNUG_E_MEMORY, "no memory for the plan");
}

static bool is_persistent(sn_value_kind kind)
{
    return kind != SN_VALUE_TEMP;
}

static sn_bytes_kind bytes_kind(const sn_value *root)
{
    switch (root->kind) {
    case SN_VALUE_WEIGHT:
        return SN_BYTES_WEIGHTS;
    case SN_VALUE_SLOT:
        return SN_BYTES_OPTIMIZER;
    case SN_VALUE_CONSTANT:
        return SN_BYTES_CONSTANTS;
    case SN_VALUE_X:
    case SN_VALUE_TARGET:
    case SN_VALUE_SAMPLE_WEIGHT:
        return SN_BYTES_STAGING;
    default:
        break;
    }
    if (root->is_gradient)
        return SN_BYTES_GRADIENTS;
    /* a weight's copy in another layout is scratch of its reader */
    return root->weight >= 0 ? SN_BYTES_WORKSPACE : SN_BYTES_ACTIVATIONS;
}

/* ---- instructions and buffers ---------------------------------------------------------------- */

static bool is_alias(const sn_graph *graph, const sn_node *node)
{
    return node->op == SN_OP_RESHAPE &&
           graph->values.at[node->in[0]].storage == graph->values.at[node->out[0]].storage;
}

static snug_status make_instructions(builder *b, snug_error *err)
{
    sn_lifetimes *out = b->out;
    size_t n = b->graph->nodes.n;
    out->node = sn_arena_alloc_array(&out->arena, n + 1, sizeof *out->node);
    out->workspace = sn_arena_alloc_array(&out->arena, n + 1, sizeof *out->workspace);
    out->queue = sn_arena_alloc_array(&out->arena, n + 1, sizeof *out->queue);
    out->n_waits = sn_arena_alloc_array(&out->arena, n + 1, sizeof *out->n_waits);
    out->waits = sn_arena_alloc_array(&out->arena, n + 1, sizeof *out->waits);
    out->signals = sn_arena_alloc_array(&out->arena, n + 1, sizeof *out->signals);
    if (!out->node || !out->workspace || !out->queue || !out->n_waits || !out->waits ||
        !out->signals)
        return no_memory(err);
    for (size_t i = 0; i < n; i++) {
        if (is_alias(b->graph, &b->graph->nodes.at[i]))
            continue;
        if (b->graph->nodes.at[i].queue >= N_QUEUES)
            return sn_fail(err, SNUG_E_INTERNAL, "the device has no queue %d",
                           b->graph->nodes.at[i].queue);
        out->queue[out->n_instrs] = b->graph->nodes.at[i].queue;
        out->node[out->n_instrs++] = (uint32_t)i;
    }
    return SNUG_OK;
}

/* The life of a value's storage; made when it is first met, and as large as the largest value in
 * it. */
static snug_status life_of(builder *b, sn_ref ref, uint32_t *index, snug_error *err)
{
    const sn_value *v = &b->graph->values.at[ref], *root = &b->graph->values.at[v->storage];
    uint64_t bytes = 0, plain = 0;
    snug_status s = b->device->backend->layout_bytes(b->device, &v->desc, v->layout, &bytes, err);
    if (s)
        return s;
    if (sn_desc_bytes(&v->desc, &plain))
        return sn_fail(err, SNUG_E_UNSUPPORTED, "tensor '%s' has no size that fits 64 bits",
                       v->name);
    *index = b->out->life_of[v->storage];
    if (*index == SN_NO_LIFE) {
        if (b->lives.n >= SN_NO_LIFE)
            return sn_fail(err, SNUG_E_UNSUPPORTED, "a program with more than 2^32 buffers");
        sn_life life = {.name = root->name,
                        .first = UINT32_MAX,
                        .persistent = is_persistent(root->kind),
                        .kind = bytes_kind(root),
                        .value_kind = root->kind,
                        .weight = root->weight,
                        .slot = root->slot};
        *index = (uint32_t)b->lives.n;
        if (!SN_VEC_PUSH(SN_TAG_PLAN, &b->lives, life))
            return no_memory(err);
        b->out->life_of[v->storage] = *index;
    }
    b->out->life_of[ref] = *index;
    sn_life *life = &b->lives.at[*index];
    life->bytes = SN_MAX(life->bytes, bytes);
    life->plain_bytes = SN_MAX(life->plain_bytes, plain);
    return SNUG_OK;
}

static snug_status touch(builder *b, sn_ref ref, uint32_t instr, snug_error *err)
{
    uint32_t index;
    snug_status s = life_of(b, ref, &index, err);
    if (s)
        return s;
    sn_life *life = &b->lives.at[index];
    life->first = SN_MIN(life->first, instr);
    life->last = SN_MAX(life->last, instr);
    return SNUG_OK;
}

static snug_status add_workspace(builder *b, const sn_node *node, uint32_t instr, snug_error *err)
{
    b->out->workspace[instr] = SN_NO_LIFE;
    if (!node->workspace_bytes)
        return SNUG_OK;
    const char *name =
        sn_arena_printf(&b->out->arena, "%s%s%s:workspace", node->layer ? node->layer : "",
                        node->layer && node->layer[0] ? "/" : "", sn_op_of(node->op)->name);
    sn_life life = {.name = name,
                    .bytes = node->workspace_bytes,
                    .plain_bytes = node->workspace_bytes,
                    .first = instr,
                    .last = instr,
                    .kind = SN_BYTES_WORKSPACE,
                    .value_kind = SN_VALUE_TEMP,
                    .weight = -1,
                    .slot = -1};
    b->out->workspace[instr] = (uint32_t)b->lives.n;
    if (!name || !SN_VEC_PUSH(SN_TAG_PLAN, &b->lives, life))
        return no_memory(err);
    return SNUG_OK;
}

static snug_status make_lives(builder *b, snug_error *err)
{
    const sn_graph *graph = b->graph;
    snug_status s = SNUG_OK;
    uint32_t end = (uint32_t)b->out->n_instrs - 1, index;
    /* what persists first, in the graph's order, used or not: it has to be fed or loaded */
    for (size_t v = 0; v < graph->values.n && !s; v++)
        if (graph->values.at[v].storage == v && is_persistent(graph->values.at[v].kind))
            s = life_of(b, (sn_ref)v, &index, err);
    for (uint32_t i = 0; i < b->out->n_instrs && !s; i++) {
        const sn_node *node = &graph->nodes.at[b->out->node[i]];
        for (int k = 0; k < node->n_in && !s; k++)
            if (node->in[k] != SN_NO_REF)
                s = touch(b, node->in[k], i, err);
        for (int k = 0; k < node->n_out && !s; k++)
            if (node->out[k] != SN_NO_REF)
                s = touch(b, node->out[k], i, err);
        if (!s)
            s = add_workspace(b, node, i, err);
    }
    for (size_t v = 0; v < graph->values.n && !s; v++) {
        /* an alias that only the session reads was touched by no instruction */
        uint32_t root = b->out->life_of[graph->values.at[v].storage];
        if (graph->values.at[v].keep && root != SN_NO_LIFE &&
            !(s = life_of(b, (sn_ref)v, &index, err)))
            b->lives.at[root].last = end;
    }
    for (size_t i = 0; i < b->lives.n; i++)
        if (b->lives.at[i].persistent) {
            b->lives.at[i].first = 0;
            b->lives.at[i].last = end;
        }
    return s;
}

/* ---- queues ---------------------------------------------------------------------------------- */

/* The latest instruction of each queue that must have ended before `node` may touch what it
 * touches, plus one. */
static void needed(const builder *b, const sn_node *node, uint32_t need[N_QUEUES])
{
    need[0] = need[1] = 0;
    for (int k = 0; k < node->n_in + node->n_out; k++) {
        bool writes = k >= node->n_in;
        sn_ref ref = writes ? node->out[k - node->n_in] : node->in[k];
        if (ref == SN_NO_REF)
            continue;
        const use *u = &b->uses[b->out->life_of[ref]];
        for (int q = 0; q < N_QUEUES; q++) {
            need[q] = SN_MAX(need[q], u->wrote[q]);
            if (writes)
                need[q] = SN_MAX(need[q], u->read[q]);
        }
    }
}

static snug_status wait_for(builder *b, uint32_t instr, uint32_t other, snug_error *err)
{
    uint32_t *list = sn_arena_alloc_array(&b->out->arena, 1, sizeof *list);
    if (!list)
        return no_memory(err);
    *list = other;
    b->out->waits[instr] = list;
    b->out->n_waits[instr] = 1;
    b->out->signals[other] = true;
    for (int q = 0; q < N_QUEUES; q++)
        b->clock[instr][q] = SN_MAX(b->clock[instr][q], b->clock[other][q]);
    return SNUG_OK;
}

static snug_status synchronise(builder *b, snug_error *err)
{
    uint32_t before[N_QUEUES] = {UINT32_MAX, UINT32_MAX};
    for (uint32_t i = 0; i < b->out->n_instrs; i++) {
        const sn_node *node = &b->graph->nodes.at[b->out->node[i]];
        uint8_t own = b->out->queue[i], other = own ^ 1;
        uint32_t need[N_QUEUES];
        if (before[own] != UINT32_MAX)
            memcpy(b->clock[i], b->clock[before[own]], sizeof *b->clock);
        needed(b, node, need);
        if (need[other] > b->clock[i][other]) { /* invariant 2 */
            snug_status s = wait_for(b, i, need[other] - 1, err);
            if (s)
                return s;
        }
        b->clock[i][own] = i + 1;
        before[own] = i;
        for (int k = 0; k < node->n_in; k++)
            if (node->in[k] != SN_NO_REF)
                b->uses[b->out->life_of[node->in[k]]].read[own] = i + 1;
        for (int k = 0; k < node->n_out; k++)
            if (node->out[k] != SN_NO_REF)
                b->uses[b->out->life_of[node->out[k]]].wrote[own] = i + 1;
        if (b->out->workspace[i] != SN_NO_LIFE)
            b->uses[b->out->workspace[i]].wrote[own] = i + 1;
    }
    return SNUG_OK;
}

/* Invariant 3. */
static void outlast(builder *b)
{
    size_t n = b->out->n_instrs;
    for (size_t l = 0; l < b->lives.n; l++) {
        if (b->lives.at[l].persistent)
            continue;
        for (int q = 0; q < N_QUEUES; q++) {
            uint32_t last = SN_MAX(b->uses[l].wrote[q], b->uses[l].read[q]);
            if (!last)
                continue;
            uint32_t i = last; /* the first instruction of the other queue that has waited */
            while (i < n && (b->out->queue[i] == q || b->clock[i][q] < last))
                i++;
            b->lives.at[l].last = SN_MAX(b->lives.at[l].last, i - 1);
        }
    }
}

static snug_status queues(builder *b, snug_error *err)
{
    bool two = false;
    for (size_t i = 0; i < b->out->n_instrs; i++)
        two = two || b->out->queue[i] != b->out->queue[0];
    if (!two)
        return SNUG_OK;
    b->clock = sn_alloc_array(SN_TAG_PLAN, b->out->n_instrs, sizeof *b->clock);
    b->uses = sn_alloc_array(SN_TAG_PLAN, b->lives.n + 1, sizeof *b->uses);
    if (!b->clock || !b->uses)
        return no_memory(err);
    snug_status s = synchronise(b, err);
    if (!s)
        outlast(b);
    return s;
}

/* ---- the whole ------------------------------------------------------------------------------- */

snug_status sn_lifetimes_new(sn_lifetimes **out, const sn_graph *graph, sn_device *device,
                             snug_error *err)
{
    *out = NULL;
    sn_lifetimes *lives = sn_alloc(SN_TAG_PLAN, sizeof *lives);
    if (!lives)
        return no_memory(err);
    sn_arena_init(&lives->arena, SN_TAG_PLAN);
    builder b = {.graph = graph, .device = device, .out = lives};
    snug_status s = SNUG_OK;
    lives->life_of = sn_arena_alloc_array(&lives->arena, graph->values.n + 1, sizeof(uint32_t));
    if (!lives->life_of)
        s = no_memory(err);
    else
        memset(lives->life_of, 0xff, (graph->values.n + 1) * sizeof(uint32_t));
    if (!s)
        s = make_instructions(&b, err);
    if (!s && (!lives->n_instrs || lives->n_instrs >= UINT32_MAX / 4))
        s = sn_fail(err, SNUG_E_UNSUPPORTED, "a program of %zu instructions", lives->n_instrs);
    if (!s)
        s = make_lives(&b, err);
    if (!s)
        s = queues(&b, err);
    sn_free(b.clock);
    sn_free(b.uses);
    lives->lives = b.lives.at;
    lives->n = b.lives.n;
    if (s)
        sn_lifetimes_free(lives);
    else
        *out = lives;
    return s;
}

void sn_lifetimes_free(sn_lifetimes *lives)
{
    if (!lives)
        return;
    sn_free(lives->lives);
    sn_arena_deinit(&lives->arena);
    sn_free(lives);
}
