/* SPDX-License-Identifier: Apache-2.0
 *
 * program.c - from a lowered graph and placed lives to the flat program that a backend executes.
 */
#include <string.h>

#include "plan/plan.h"

typedef struct writer {
    const sn_graph *graph;
    const sn_lifetimes *lives;
    sn_arena *arena;
    sn_device *device;
} writer;

static const sn_view absent = {
    .buffer = UINT32_MAX, .desc = {SN_F32, {-1, {0}}}, .layout = {SN_LAYOUT_UNSET, 0, 0}};

static snug_status view_of(const writer *w, sn_ref ref, sn_view *out, snug_error *err)
{
    *out = absent;
    if (ref == SN_NO_REF || w->lives->life_of[ref] == SN_NO_LIFE)
        return SNUG_OK;
    const sn_value *v = &w->graph->values.at[ref];
    uint32_t index = w->lives->life_of[ref];
    const sn_life *life = &w->lives->lives[index];
    *out = (sn_view){index, life->slab, life->offset, 0, v->desc, v->layout};
    return w->device->backend->layout_bytes(w->device, &v->desc, v->layout, &out->bytes, err);
}

static sn_version version_of(const writer *w, sn_ref ref)
{
    if (ref == SN_NO_REF)
        return (sn_version){UINT32_MAX, 0};
    const sn_value *v = &w->graph->values.at[ref];
    sn_value_kind kind = w->graph->values.at[v->storage].kind;
    bool versioned = kind == SN_VALUE_WEIGHT || kind == SN_VALUE_SLOT;
    return (sn_version){versioned ? w->lives->life_of[ref] : UINT32_MAX, v->version};
}

static snug_status operands(const writer *w, const sn_ref *refs, int n, const sn_view **views,
                            const sn_version **versions, snug_error *err)
{
    sn_view *v = sn_arena_alloc_array(w->arena, (size_t)n + 1, sizeof *v);
    sn_version *version = sn_arena_alloc_array(w->arena, (size_t)n + 1, sizeof *version);
    if (!v || !version)
        return sn_fail(err, SNUG_E_MEMORY, "no memory for the program");
    for (int i = 0; i < n; i++) {
        snug_status s = view_of(w, refs[i], &v[i], err);
        if (s)
            return s;
        version[i] = version_of(w, refs[i]);
    }
    *views = v;
    *versions = version;
    return SNUG_OK;
}

static snug_status make_instr(const writer *w, uint32_t index, sn_instr *out, snug_error *err)
{
    const sn_lifetimes *lives = w->lives;
    const sn_node *node = &w->graph->nodes.at[lives->node[index]];
    *out = (sn_instr){.op = node->op,
                      .kernel = node->kernel,
                      .attrs = node->attrs,
                      .n_in = node->n_in,
                      .n_out = node->n_out,
                      .workspace = absent,
                      .queue = lives->queue[index],
                      .n_waits = lives->n_waits[index],
                      .signals = lives->signals[index],
                      .phase = node->phase,
                      .node = lives->node[index]};
    out->layer = sn_arena_strdup(w->arena, node->layer ? node->layer : "");
    snug_status s = out->layer ? SNUG_OK : sn_fail(err, SNUG_E_MEMORY, "no memory for a program");
    if (!s)
        s = operands(w, node->in, node->n_in, &out->in, &out->reads, err);
    if (!s)
        s = operands(w, node->out, node->n_out, &out->out, &out->writes, err);
    uint32_t scratch = lives->workspace[index];
    if (scratch != SN_NO_LIFE) {
        const sn_life *life = &lives->lives[scratch];
        out->workspace = (sn_view){
            scratch, life->slab, life->offset, life->bytes, {SN_U8, {1, {(int64_t)life->bytes}}},
            SN_PLAIN};
    }
    if (!s && out->n_waits) {
        uint32_t *waits = sn_arena_alloc_array(w->arena, out->n_waits, sizeof *waits);
        if (!waits)
            return sn_fail(err, SNUG_E_MEMORY, "no memory for a program");
        memcpy(waits, lives->waits[index], out->n_waits * sizeof *waits);
        out->waits = waits;
    }
    return s;
}

static snug_status make_buffers(const writer *w, sn_program *p, snug_error *err)
{
    sn_program_buffer *buffers = sn_arena_alloc_array(w->arena, w->lives->n + 1, sizeof *buffers);
    if (!buffers)
        return sn_fail(err, SNUG_E_MEMORY, "no memory for a program");
    for (size_t i = 0; i < w->lives->n; i++) {
        const sn_life *life = &w->lives->lives[i];
        buffers[i] = (sn_program_buffer){.bytes = life->bytes,
                                         .first = life->first,
                                         .last = life->last,
                                         .persistent = life->persistent,
                                         .kind = life->kind,
                                         .slab = life->slab,
                                         .offset = life->offset};
        buffers[i].name = sn_arena_strdup(w->arena, life->name);
        if (!buffers[i].name)
            return sn_fail(err, SNUG_E_MEMORY, "no memory for a program");
    }
    p->buffers = buffers;
    p->n_buffers = w->lives->n;
    return SNUG_OK;
}

static snug_status make_weights(const writer *w, sn_program *p, snug_error *err)
{
    size_t n = 0;
    sn_program_weight *weights = sn_arena_alloc_array(w->arena, w->lives->n + 1, sizeof *weights);
    if (!weights)
        return sn_fail(err, SNUG_E_MEMORY, "no memory for a program");
    for (size_t i = 0; i < w->graph->values.n; i++) {
        const sn_value *v = &w->graph->values.at[i];
        if (v->storage != i || (v->kind != SN_VALUE_WEIGHT && v->kind != SN_VALUE_SLOT))
            continue;
        sn_program_weight *out = &weights[n];
        *out = (sn_program_weight){.weight = v->weight, .slot = v->slot};
        out->name = sn_arena_strdup(w->arena, v->name);
        snug_status s = out->name ? view_of(w, (sn_ref)i, &out->view, err)
                                  : sn_fail(err, SNUG_E_MEMORY, "no memory for a program");
        if (s)
            return s;
        n++;
    }
    p->weights = weights;
    p->n_weights = n;
    return SNUG_OK;
}

/* The first instruction after the loss that is not forward. */
static uint32_t loss_end(const sn_graph *graph, const sn_program *p)
{
    uint32_t producer =
        graph->loss == SN_NO_REF ? UINT32_MAX : graph->values.at[graph->loss].producer;
    uint32_t i = 0;
    while (i < p->n_instrs && producer != UINT32_MAX && p->instrs[i].node <= producer)
        i++;
    while (i < p->n_instrs && p->instrs[i].phase == SN_PHASE_FORWARD)
        i++;
    return i;
}

snug_status sn_program_new(sn_program **out, const sn_graph *graph, sn_device *device,
                           const sn_lifetimes *lives, size_t n_slabs, snug_error *err)
{
    *out = NULL;
    sn_program *p = sn_alloc(SN_TAG_PLAN, sizeof *p);
    sn_arena *arena = sn_alloc(SN_TAG_PLAN, sizeof *arena);
    if (!p || !arena) {
        sn_free(p);
        sn_free(arena);
        return sn_fail(err, SNUG_E_MEMORY, "no memory for a program");
    }
    sn_arena_init(arena, SN_TAG_PLAN);
    *p = (sn_program){.arena = arena,
                      .batch = graph->options.batch,
                      .n_instrs = lives->n_instrs,
                      .n_slabs = n_slabs};
    writer w = {graph, lives, arena, device};
    sn_instr *instrs = sn_arena_alloc_array(arena, lives->n_instrs + 1, sizeof *instrs);
    uint64_t *slabs = sn_arena_alloc_array(arena, n_slabs + 1, sizeof *slabs);
    snug_status s =
        instrs && slabs ? SNUG_OK : sn_fail(err, SNUG_E_MEMORY, "no memory for a program");
    for (uint32_t i = 0; i < lives->n_instrs && !s; i++)
        s = make_instr(&w, i, &instrs[i], err);
    if (!s)
        s = make_buffers(&w, p, err);
    if (!s)
        s = make_weights(&w, p, err);
    const sn_ref refs[] = {graph->x, graph->target, graph->sample_weight, graph->loss,
                           graph->prediction};
    sn_view *const views[] = {&p->x, &p->target, &p->sample_weight, &p->loss, &p->prediction};
    for (size_t i = 0; i < SN_LEN(refs) && !s; i++)
        s = view_of(&w, refs[i], views[i], err);
    if (s) {
        sn_program_free(p);
        return s;
    }
    for (size_t i = 0; i < p->n_buffers; i++) {
        const sn_program_buffer *b = &p->buffers[i];
        slabs[b->slab] = SN_MAX(slabs[b->slab], b->offset + b->bytes);
    }
    p->instrs = instrs;
    p->slab_bytes = slabs;
    p->loss_end = loss_end(graph, p);
    *out = p;
    return SNUG_OK;
}

void sn_program_free(sn_program *program)
{
    if (!program)
        return;
    sn_arena_deinit(program->arena);
    sn_free(program->arena);
    sn_free(program);
}
