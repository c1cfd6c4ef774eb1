/* SPDX-License-Identifier: Apache-2.0
 *
 * choices.c - what the planner did to save memory: each remedy is taken away alone, and the lower
 * bound of what is then live tells what it saves.
 */
#include <string.h>

#include "plan/internal.h"

static snug_status bound_of(const sn_lifetimes *lives, uint64_t *bytes, snug_error *err)
{
    sn_place_item *items = sn_alloc_array(SN_TAG_PLAN, lives->n + 1, sizeof *items);
    bool ok = items != NULL;
    for (size_t i = 0; ok && i < lives->n; i++)
        items[i] = (sn_place_item){.bytes = lives->lives[i].bytes,
                                   .first = lives->lives[i].first,
                                   .last = lives->lives[i].last};
    ok = ok && sn_place_lower_bound(items, lives->n, 1, bytes, NULL);
    sn_free(items);
    return ok ? SNUG_OK : sn_fail(err, SNUG_E_MEMORY, "no memory for the plan");
}

/* The bound when every gradient of a weight is whole and stays to the end of the step. */
static snug_status kept_gradients(const snug_plan *plan, uint64_t *bytes, size_t *n,
                                  snug_error *err)
{
    const sn_lifetimes *lives = plan->lives[SN_GRAPH_TRAIN];
    const sn_graph *graph = plan->graphs[SN_GRAPH_TRAIN];
    uint64_t tiled = 0;
    *n = 0;
    for (size_t i = 0; i < graph->nodes.n; i++) {
        const sn_node *node = &graph->nodes.at[i];
        uint64_t size;
        *n += node->op == SN_OP_UPDATE || node->op == SN_OP_DENSE_UPDATE;
        if (node->op == SN_OP_DENSE_UPDATE &&
            !sn_desc_bytes(&graph->values.at[node->out[0]].desc, &size))
            tiled += size;
    }
    sn_place_item *items = sn_alloc_array(SN_TAG_PLAN, lives->n + 1, sizeof *items);
    bool ok = items != NULL;
    for (size_t i = 0; ok && i < lives->n; i++) {
        const sn_life *life = &lives->lives[i];
        items[i] = (sn_place_item){.bytes = life->bytes, .first = life->first, .last = life->last};
        if (life->kind == SN_BYTES_GRADIENTS)
            items[i].last = (uint32_t)lives->n_instrs - 1;
    }
    ok = ok && sn_place_lower_bound(items, lives->n, 1, bytes, NULL);
    *bytes += tiled;
    sn_free(items);
    return ok ? SNUG_OK : sn_fail(err, SNUG_E_MEMORY, "no memory for the plan");
}

static snug_status add(snug_plan *plan, const char *remedy, const char *where, uint64_t without,
                       uint64_t with, double slowdown, snug_error *err)
{
    snug_choice choice = {.remedy = remedy,
                          .where = where,
                          .saves_bytes = without > with ? without - with : 0,
                          .slowdown = slowdown,
                          .result = "identical"};
    if (!choice.saves_bytes)
        return SNUG_OK;
    if (!where || !SN_VEC_PUSH(SN_TAG_PLAN, &plan->choices, choice))
        return sn_fail(err, SNUG_E_MEMORY, "no memory for the plan");
    return SNUG_OK;
}

/* The training graph once more, with one thing left out: its bound, and its time. */
static snug_status variant(snug_plan *plan, bool in_place, bool replay, uint64_t *bytes,
                           double *seconds, snug_error *err)
{
    sn_graph *graph = NULL;
    sn_lifetimes *lives = NULL;
    sn_program *program = NULL;
    sn_device_info info;
    sn_graph_options o = sn_plan_graph_options(plan, SN_GRAPH_TRAIN);
    o.no_replay = o.no_replay || !replay;
    snug_status s = sn_graph_from_model(&graph, plan->model, &o, err);
    if (!s)
        s = sn_plan_lower(graph, plan->device, &plan->layouts, err);
    if (!s && in_place)
        s = sn_plan_in_place(graph, plan->device, NULL, err);
    if (!s)
        s = sn_lifetimes_new(&lives, graph, plan->device, err);
    if (!s)
        s = bound_of(lives, bytes, err);
    if (!s && seconds) {
        plan->device->backend->info(plan->device, &info);
        s = sn_program_new(&program, graph, plan->device, lives, 1, err);
        if (!s)
            *seconds = sn_program_seconds(program, &info, NULL);
    }
    sn_program_free(program);
    sn_lifetimes_free(lives);
    sn_graph_free(graph);
    return s;
}

snug_status sn_plan_find_choices(snug_plan *plan, snug_error *err)
{
    if (plan->options.purpose != SNUG_PLAN_TRAIN)
        return SNUG_OK;
    const sn_graph *graph = plan->graphs[SN_GRAPH_TRAIN];
    uint64_t now, without;
    size_t n_replays = 0, n_updates;
    double seconds = 0;
    for (size_t i = 0; i < graph->nodes.n; i++)
        n_replays += graph->nodes.at[i].is_replay;
    snug_status s = bound_of(plan->lives[SN_GRAPH_TRAIN], &now, err);
    if (!s)
        s = kept_gradients(plan, &without, &n_updates, err);
    if (!s && plan->options.optimizer.clip_global_norm == 0)
        s = add(plan, "fused-update", sn_arena_printf(&plan->arena, "%zu weights", n_updates),
                without, now, 0, err);
    if (!s && n_replays) {
        s = variant(plan, true, false, &without, &seconds, err);
        if (!s && seconds > 0)
            plan->replay_slowdown = SN_MAX(0, plan->info.step_seconds / seconds - 1);
        if (!s)
            s = add(plan, "recompute",
                    sn_arena_printf(&plan->arena, "%zu normalizations and activations", n_replays),
                    without, now, plan->replay_slowdown, err);
    }
    if (!s && plan->n_in_place[SN_GRAPH_TRAIN]) {
        s = variant(plan, false, true, &without, NULL, err);
        if (!s)
            s = add(
                plan, "in-place",
                sn_arena_printf(&plan->arena, "%zu operators", plan->n_in_place[SN_GRAPH_TRAIN]),
                without, now, 0, err);
    }
    return s;
}
