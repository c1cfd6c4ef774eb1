/* SPDX-License-Identifier: Apache-2.0
 *
 * internal.h - what a plan is made of, for the files of this room.
 *
 *     snug_plan *p;  sn_plan_try(&p, model, &options, device, false, err);
 *     sn_plan_find_choices(p, err);
 *
 * Ownership: see plan.h.  Threads: one at a time.
 */
#ifndef SN_PLAN_INTERNAL_H
#define SN_PLAN_INTERNAL_H

#include "base/vec.h"
#include "plan/plan.h"

enum { N_MODES = 3 };

typedef struct sn_plan_useless {
    const char *advice, *why;
} sn_plan_useless;

struct snug_plan {
    sn_arena arena;
    const snug_model *model;
    snug_plan_options options; /* defaults filled in; device in the arena */
    sn_device *device;
    bool owns_device;
    bool quick; /* a probe: no search, no choices, no keep-all */
    snug_device_info device_info;
    sn_weight_layouts layouts;
    sn_graph *graphs[N_MODES]; /* by sn_graph_mode; NULL: not planned */
    sn_lifetimes *lives[N_MODES];
    sn_program *programs[N_MODES];
    size_t n_in_place[N_MODES];
    uint64_t lower_bound[N_MODES];
    size_t n_slabs;
    uint64_t *slab_bytes;
    uint64_t budget;
    const char *oversize; /* a tensor larger than a slab, NULL: none */
    uint64_t oversize_bytes;
    snug_plan_info info;
    int64_t largest_batch; /* -1: not looked for */
    SN_VEC(snug_choice) choices;
    SN_VEC(sn_plan_fix) fixes;
    SN_VEC(sn_plan_useless) useless;
    double replay_slowdown; /* of what is computed twice, by the roofline */
};

sn_graph_options sn_plan_graph_options(const snug_plan *plan, sn_graph_mode mode);
/* count.c: info, from programs that are made. */
snug_status sn_plan_count(snug_plan *plan, snug_error *err);
/* choices.c: what the planner did, and what each of it saves. */
snug_status sn_plan_find_choices(snug_plan *plan, snug_error *err);

#endif
