/* SPDX-License-Identifier: Apache-2.0
 *
 * plan.c - the whole plan: up to three programs over one arena. What persists (weights, optimizer
 * state, staging, constants) is placed once, at the bottom; each program's temporaries lie above
 * it.
 *
 * Invariants:
 *  1. what persists has one place for all programs, by (kind, weight, slot);
 *  2. the arena's slabs are the largest that any program needs, and what they need is exact;
 *  3. every program was accepted by the judge, unless the plan does not fit at all.
 */
#include "plan/internal.h"

#include <stdio.h>
#include <string.h>

#include "base/host.h"
#include "plan/options.h"

enum {
    AUTO_BATCH = 32,
    SEARCH_ROUNDS = 100,       /* of the local search, each placing every buffer again */
    SEARCH_LEAST = 200 * 1000, /* placed buffers, when there are few */
    SEARCH_TOLERANCE = 500,    /* no search when the peak is within a 500th of the bound */
};
#define LARGEST_BATCH ((int64_t)1 << 20)

static snug_status no_memory(snug_error *err)
{
    return sn_fail(err, SNUG_E_MEMORY, "no memory for the plan");
}

/* ---- graphs ---------------------------------------------------------------------------------- */

sn_graph_options sn_plan_graph_options(const snug_plan *plan, sn_graph_mode mode)
{
    return (sn_graph_options){.batch = plan->options.batch,
                              .mode = mode,
                              .loss = sn_plan_loss_attrs(&plan->options.loss),
                              .one_hot_target = plan->options.loss.one_hot,
                              .sample_weights =
                                  plan->options.sample_weights && mode == SN_GRAPH_TRAIN,
                              .update = sn_plan_update_attrs(&plan->options.optimizer),
                              .no_replay = plan->options.keep_activations};
}

static bool has_mode(const snug_plan *plan, sn_graph_mode mode)
{
    switch (plan->options.purpose) {
    case SNUG_PLAN_TRAIN:
        return true;
    case SNUG_PLAN_EVALUATE:
        return mode != SN_GRAPH_TRAIN;
    default:
        return mode == SN_GRAPH_PREDICT;
    }
}

static snug_status lower_mode(snug_plan *plan, sn_graph_mode mode, snug_error *err)
{
    sn_graph_options o = sn_plan_graph_options(plan, mode);
    snug_status s = sn_graph_from_model(&plan->graphs[mode], plan->model, &o, err);
    if (!s)
        s = sn_plan_lower(plan->graphs[mode], plan->device, &plan->layouts, err);
    if (!s)
        s = sn_plan_in_place(plan->graphs[mode], plan->device, &plan->n_in_place[mode], err);
    if (!s)
        s = sn_lifetimes_new(&plan->lives[mode], plan->graphs[mode], plan->device, err);
    return s;
}

/* ---- places ---------------------------------------------------------------------------------- */

typedef struct resident {
    sn_value_kind kind;
    int32_t weight;
    int8_t slot;
    const char *name;
} resident;

typedef struct placing {
    snug_plan *plan;
    sn_device_info info;
    uint64_t slab_bytes; /* 0: no limit */
    SN_VEC(resident) residents;
    SN_VEC(sn_place_item) items; /* of the residents */
    uint64_t *fixed;             /* where they end in each slab */
    size_t n_fixed;
} placing;

static size_t find_resident(const placing *p, const sn_life *life)
{
    size_t i = 0;
    for (; i < p->residents.n; i++) {
        const resident *r = &p->residents.at[i];
        if (r->kind == life->value_kind && r->weight == life->weight && r->slot == life->slot)
            break;
    }
    return i;
}

/* Invariant 1. */
static snug_status collect_residents(placing *p, snug_error *err)
{
    for (int m = 0; m < N_MODES; m++) {
        const sn_lifetimes *lives = p->plan->lives[m];
        for (size_t i = 0; lives && i < lives->n; i++) {
            const sn_life *life = &lives->lives[i];
            if (!life->persistent)
                continue;
            size_t at = find_resident(p, life);
            if (at == p->residents.n) {
                resident r = {life->value_kind, life->weight, life->slot, life->name};
                if (!SN_VEC_PUSH(SN_TAG_PLAN, &p->residents, r) ||
                    !SN_VEC_PUSH(SN_TAG_PLAN, &p->items, (sn_place_item){0}))
                    return no_memory(err);
            }
            p->items.at[at].bytes = SN_MAX(p->items.at[at].bytes, life->bytes);
        }
    }
    return SNUG_OK;
}

/* A tensor larger than a slab: the plan goes on without the limit, for its numbers, and does not
 * fit. */
static snug_status place(placing *p, sn_place_item *items, size_t n, uint64_t search,
                         const char *(*name)(const placing *p, size_t index, const void *context),
                         const void *context, sn_place_result *result, snug_error *err)
{
    snug_error own = SNUG_ERROR_INIT;
    uint64_t bound = 0;
    if (!sn_place_lower_bound(items, n, p->info.align_bytes, &bound, NULL))
        return no_memory(err);
    sn_place_options o = {.align = p->info.align_bytes,
                          .slab_bytes = p->slab_bytes,
                          .search = search,
                          .target_bytes = bound + bound / SEARCH_TOLERANCE};
    snug_status s = sn_place(items, n, &o, result, &own);
    if (s == SNUG_E_DOES_NOT_FIT) {
        p->plan->oversize_bytes = own.need;
        p->plan->oversize = sn_arena_strdup(&p->plan->arena, name(p, own.pos, context));
        return SNUG_E_DOES_NOT_FIT;
    }
    if (s && err)
        *err = own;
    return s;
}

static const char *resident_name(const placing *p, size_t index, const void *context)
{
    SN_UNUSED(context);
    return p->residents.at[index].name;
}

static const char *life_name(const placing *p, size_t index, const void *context)
{
    const sn_lifetimes *lives = context;
    size_t seen = p->n_fixed;
    for (size_t i = 0; i < lives->n; i++)
        if (!lives->lives[i].persistent && seen++ == index)
            return lives->lives[i].name;
    return "what persists";
}

static snug_status place_residents(placing *p, snug_error *err)
{
    sn_place_result result;
    snug_status s = place(p, p->items.at, p->items.n, 0, resident_name, NULL, &result, err);
    if (s)
        return s;
    p->n_fixed = result.n_slabs;
    p->fixed = sn_alloc_array(SN_TAG_PLAN, result.n_slabs + 1, sizeof *p->fixed);
    if (!p->fixed)
        return no_memory(err);
    for (size_t i = 0; i < p->items.n; i++) {
        const sn_place_item *item = &p->items.at[i];
        if (!item->bytes)
            continue;
        uint64_t end = item->offset + sn_align_up(item->bytes, p->info.align_bytes);
        p->fixed[item->slab] = SN_MAX(p->fixed[item->slab], end);
        p->plan->info.persistent_bytes += item->bytes;
    }
    return SNUG_OK;
}

static uint64_t arena_bytes(const sn_lifetimes *lives, size_t *n_slabs, uint64_t *slabs)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < lives->n; i++) {
        const sn_life *life = &lives->lives[i];
        uint64_t end = life->offset + life->bytes;
        *n_slabs = SN_MAX(*n_slabs, (size_t)life->slab + 1);
        if (slabs)
            slabs[life->slab] = SN_MAX(slabs[life->slab], end);
    }
    for (size_t i = 0; slabs && i < *n_slabs; i++)
        sum += slabs[i];
    return sum;
}

/* The temporaries of one program, above what persists. */
static snug_status place_mode(placing *p, int mode, snug_error *err)
{
    sn_lifetimes *lives = p->plan->lives[mode];
    sn_place_item *items = sn_alloc_array(SN_TAG_PLAN, lives->n + p->n_fixed + 1, sizeof *items);
    if (!items)
        return no_memory(err);
    size_t n = 0;
    for (; n < p->n_fixed; n++)
        items[n] = (sn_place_item){.bytes = p->fixed[n],
                                   .last = (uint32_t)lives->n_instrs - 1,
                                   .fixed = true,
                                   .slab = (uint32_t)n};
    for (size_t i = 0; i < lives->n; i++)
        if (!lives->lives[i].persistent)
            items[n++] = (sn_place_item){.bytes = lives->lives[i].bytes,
                                         .first = lives->lives[i].first,
                                         .last = lives->lives[i].last};
    sn_place_result result;
    uint64_t search = SN_MAX((uint64_t)SEARCH_ROUNDS * n, SEARCH_LEAST);
    snug_status s = place(p, items, n, search, life_name, lives, &result, err);
    n = p->n_fixed;
    for (size_t i = 0; i < lives->n && !s; i++) {
        sn_life *life = &lives->lives[i];
        const sn_place_item *item =
            life->persistent ? &p->items.at[find_resident(p, life)] : &items[n++];
        life->slab = item->slab;
        life->offset = item->offset;
    }
    p->plan->lower_bound[mode] = s ? 0 : result.lower_bound_bytes;
    sn_free(items);
    return s;
}

static snug_status place_all(snug_plan *plan, bool with_limit, snug_error *err)
{
    placing p = {.plan = plan};
    plan->device->backend->info(plan->device, &p.info);
    p.slab_bytes = with_limit ? p.info.largest_bytes : 0;
    plan->info.persistent_bytes = 0;
    snug_status s = collect_residents(&p, err);
    if (!s)
        s = place_residents(&p, err);
    for (int m = 0; m < N_MODES && !s; m++)
        if (plan->lives[m])
            s = place_mode(&p, m, err);
    SN_VEC_FREE(&p.residents);
    SN_VEC_FREE(&p.items);
    sn_free(p.fixed);
    return s;
}

/* Invariants 2 and 3. */
static snug_status make_programs(snug_plan *plan, snug_error *err)
{
    for (int m = 0; m < N_MODES; m++)
        if (plan->lives[m])
            arena_bytes(plan->lives[m], &plan->n_slabs, NULL);
    plan->slab_bytes = sn_arena_alloc_array(&plan->arena, plan->n_slabs + 1, sizeof(uint64_t));
    if (!plan->slab_bytes)
        return no_memory(err);
    snug_status s = SNUG_OK;
    for (int m = 0; m < N_MODES && !s; m++) {
        if (!plan->lives[m])
            continue;
        arena_bytes(plan->lives[m], &plan->n_slabs, plan->slab_bytes);
        s = sn_program_new(&plan->programs[m], plan->graphs[m], plan->device, plan->lives[m],
                           plan->n_slabs, err);
        if (!s && !plan->oversize)
            s = sn_plan_check(plan->programs[m], plan->device, err);
    }
    for (int a = 0; a < N_MODES && !s; a++)
        for (int b = 0; b < a && !s; b++)
            if (plan->programs[a] && plan->programs[b])
                s = sn_plan_check_shared(plan->programs[a], plan->programs[b], err);
    return s;
}

static snug_status plan_programs(snug_plan *plan, snug_error *err)
{
    snug_status s = SNUG_OK;
    plan->layouts.n = snug_model_n_weights(plan->model);
    plan->layouts.at =
        sn_arena_alloc_array(&plan->arena, plan->layouts.n + 1, sizeof *plan->layouts.at);
    if (!plan->layouts.at)
        return no_memory(err);
    for (int m = 0; m < N_MODES && !s; m++)
        if (has_mode(plan, (sn_graph_mode)m))
            s = lower_mode(plan, (sn_graph_mode)m, err);
    if (!s) {
        s = place_all(plan, true, err);
        if (s == SNUG_E_DOES_NOT_FIT)
            s = place_all(plan, false, err);
    }
    return s ? s : make_programs(plan, err);
}

/* ---- making one ------------------------------------------------------------------------------ */

static snug_status check_options(const snug_plan_options *o, snug_error *err)
{
    if (o->struct_size != sizeof *o)
        return sn_fail(err, SNUG_E_USAGE,
                       "plan options of %zu bytes; this library has %zu: begin them with "
                       "SNUG_PLAN_DEFAULTS",
                       o->struct_size, sizeof *o);
    if (o->batch < 0 || o->batch > LARGEST_BATCH)
        return sn_fail(err, SNUG_E_USAGE, "batch %" PRId64 " is not in 1..%" PRId64, o->batch,
                       LARGEST_BATCH);
    if ((int)o->purpose < 0 || o->purpose > SNUG_PLAN_PREDICT)
        return sn_fail(err, SNUG_E_USAGE, "purpose %d of a plan is none", (int)o->purpose);
    if (o->threads < 0 || o->threads > 1024)
        return sn_fail(err, SNUG_E_USAGE, "%d threads are not in 1..1024", o->threads);
    return sn_optimizer_check(&o->optimizer, err);
}

static snug_status open_device(snug_plan *plan, sn_device *lent, snug_error *err)
{
    snug_plan_options *o = &plan->options;
    plan->device = lent;
    if (!lent) {
        sn_device_options device_options = {.n_threads = o->threads};
        snug_status s = sn_device_open(&plan->device, o->device, &device_options, err);
        if (s)
            return s;
        plan->owns_device = true;
    }
    sn_device_info info;
    plan->device->backend->info(plan->device, &info);
    plan->device_info =
        (snug_device_info){.total_bytes = info.total_bytes,
                           .free_bytes = info.free_bytes,
                           .reserve_bytes = info.reserve_bytes,
                           .largest_bytes = info.largest_bytes,
                           .n_threads = info.n_threads,
                           .is_host = info.is_host,
                           .computes = !sn_str_eq(plan->device->backend->name, "null"),
                           .flops = info.flops,
                           .bytes_per_second = info.bytes_per_second};
    snprintf(plan->device_info.name, sizeof plan->device_info.name, "%s", info.name);
    snprintf(plan->device_info.spec, sizeof plan->device_info.spec, "%s",
             o->device ? o->device : plan->device->backend->name);
    if (info.is_host && !o->runtime_bytes && sn_host_process_resident(&o->runtime_bytes, NULL))
        o->runtime_bytes = 32 * SN_MIB; /* the system does not say */
    return SNUG_OK;
}

/* Without a budget: what is free, less a reserve for everybody else; the process' own counts as
 * free. */
static uint64_t budget_of(const snug_plan *plan)
{
    const snug_device_info *d = &plan->device_info;
    if (plan->options.memory_bytes)
        return plan->options.memory_bytes;
    if (!d->is_host)
        return d->free_bytes;
    uint64_t reserve = SN_MIN(SN_MAX(64 * SN_MIB, d->total_bytes / 50), d->free_bytes / 4);
    return d->free_bytes - reserve + plan->options.runtime_bytes;
}

static snug_status begin(snug_plan **out, const snug_model *model, const snug_plan_options *options,
                         sn_device *device, bool quick, snug_error *err)
{
    *out = NULL;
    snug_status s = check_options(options, err);
    if (s)
        return s;
    snug_plan *plan = sn_alloc(SN_TAG_PLAN, sizeof *plan);
    if (!plan)
        return no_memory(err);
    sn_arena_init(&plan->arena, SN_TAG_PLAN);
    plan->model = model;
    plan->options = *options;
    plan->quick = quick;
    plan->largest_batch = -1;
    snug_optimizer_fill(&plan->options.optimizer);
    plan->options.device = sn_arena_strdup(&plan->arena, options->device);
    if (options->device && !plan->options.device)
        s = no_memory(err);
    if (!s)
        s = sn_loss_resolve(&plan->options.loss, model, err);
    if (!s)
        s = open_device(plan, device, err);
    if (s) {
        snug_plan_free(plan);
        return s;
    }
    plan->budget = budget_of(plan);
    *out = plan;
    return SNUG_OK;
}

snug_status sn_plan_try(snug_plan **out, const snug_model *model, const snug_plan_options *options,
                        sn_device *device, bool quick, snug_error *err)
{
    double start = sn_now();
    snug_status s = begin(out, model, options, device, quick, err);
    if (s)
        return s;
    snug_plan *plan = *out;
    s = plan_programs(plan, err);
    if (!s)
        s = sn_plan_count(plan, err);
    if (!s && !quick)
        s = sn_plan_find_choices(plan, err);
    if (s) {
        snug_plan_free(plan);
        *out = NULL;
        return s;
    }
    plan->info.planning_seconds = sn_now() - start;
    return SNUG_OK;
}

static snug_status does_not_fit(const snug_plan *plan, snug_error *err)
{
    char need[32], have[32];
    const snug_plan_info *info = &plan->info;
    uint64_t bytes = info->peak_bytes, budget = info->budget_bytes;
    if (plan->oversize) {
        bytes = plan->oversize_bytes;
        budget = plan->device_info.largest_bytes;
        sn_fail(err, SNUG_E_DOES_NOT_FIT,
                "does not fit: tensor '%.60s' alone is %s, the device's largest allocation %s",
                plan->oversize, sn_format_bytes(need, sizeof need, bytes),
                sn_format_bytes(have, sizeof have, budget));
    } else {
        sn_fail(err, SNUG_E_DOES_NOT_FIT,
                "does not fit: at least %s, %s %s. Nothing was started or allocated.",
                sn_format_bytes(need, sizeof need, bytes),
                info->budget_is_free_memory ? "free are" : "budget",
                sn_format_bytes(have, sizeof have, budget));
    }
    if (err) {
        err->need = bytes;
        err->have = budget;
    }
    return SNUG_E_DOES_NOT_FIT;
}

/* The largest power of two up to 32 that fits, at most a tenth of the samples. */
static snug_status choose_batch(const snug_model *model, snug_plan_options *o, sn_device *device,
                                snug_error *err)
{
    int64_t most = AUTO_BATCH;
    while (most > 1 && o->n_samples && (uint64_t)most > o->n_samples / 10)
        most /= 2;
    for (o->batch = most; o->batch > 1; o->batch /= 2) {
        snug_plan *plan;
        snug_status s = sn_plan_try(&plan, model, o, device, true, err);
        if (s)
            return s;
        bool fits = plan->info.fits;
        snug_plan_free(plan);
        if (fits)
            break;
    }
    return SNUG_OK;
}

snug_status sn_plan_new(snug_plan **out, const snug_model *model, const snug_plan_options *options,
                        sn_device *device, snug_error *err)
{
    *out = NULL;
    snug_plan_options o = *options;
    sn_device *opened = NULL;
    double start = sn_now();
    snug_status s = check_options(&o, err);
    if (s)
        return s;
    if (!device) {
        sn_device_options device_options = {.n_threads = o.threads};
        s = sn_device_open(&opened, o.device, &device_options, err);
        if (s)
            return s;
    }
    if (!o.batch)
        s = choose_batch(model, &o, device ? device : opened, err);
    if (!s)
        s = sn_plan_try(out, model, &o, device ? device : opened, false, err);
    if (s) {
        sn_device_close(opened);
        return s;
    }
    (*out)->owns_device = opened != NULL;
    (*out)->info.planning_seconds = sn_now() - start;
    return (*out)->info.fits ? SNUG_OK : does_not_fit(*out, err);
}

snug_status snug_plan_new(snug_plan **out, const snug_model *model,
                          const snug_plan_options *options, snug_error *err)
{
    *out = NULL;
    if (!model || !options)
        return sn_fail(err, SNUG_E_USAGE, "a plan needs a model and options");
    return sn_plan_new(out, model, options, NULL, err);
}

void snug_plan_free(snug_plan *plan)
{
    if (!plan)
        return;
    for (int m = 0; m < N_MODES; m++) {
        sn_program_free(plan->programs[m]);
        sn_lifetimes_free(plan->lives[m]);
        sn_graph_free(plan->graphs[m]);
    }
    SN_VEC_FREE(&plan->choices);
    SN_VEC_FREE(&plan->fixes);
    SN_VEC_FREE(&plan->useless);
    if (plan->owns_device)
        sn_device_close(plan->device);
    sn_arena_deinit(&plan->arena);
    sn_free(plan);
}

void snug_plan_set_step_seconds(snug_plan *plan, double seconds)
{
    if (seconds <= 0) {
        return;
    }
    uint64_t batch = (uint64_t)plan->info.batch;
    uint64_t n_steps = (plan->options.n_samples + batch - 1) / batch;
    plan->info.step_seconds = seconds;
    plan->info.epoch_seconds = n_steps ? seconds * (double)n_steps : 0;
}
