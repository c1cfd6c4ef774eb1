/* SPDX-License-Identifier: Apache-2.0
 *
 * plan.h - from a graph to a program: lowering (layouts, reorders, kernels), in-place operators,
 * lifetimes, places, the program, the judge, and the numbers that a plan reports.
 *
 *     sn_plan_lower(graph, device, layouts, err);       lower.c
 *     sn_plan_in_place(graph, device, err);             inplace.c
 *     sn_lifetimes_new(&lives, graph, device, err);     lifetimes.c
 *     sn_place(...)                                     place.c, by plan.c for all programs
 *     sn_program_new(&program, graph, device, ...);     program.c
 *     sn_plan_check(program, device, err);              check.c, apart from the rest on purpose
 *
 * Ownership: a plan owns its device (unless it was lent one), graphs and programs.
 * Threads: one at a time.
 */
#ifndef SN_PLAN_PLAN_H
#define SN_PLAN_PLAN_H

#include "backend/backend.h"
#include "base/buf.h"
#include "plan/place.h"
#include "snug/plan.h"

/* ---- the steps ------------------------------------------------------------------------------- */

/* Layouts that are decided once for all programs of a plan: those of the model's weights, by the
 * weight's index. UNSET: the first forward reader decides. */
typedef struct sn_weight_layouts {
    sn_layout *at;
    size_t n;
} sn_weight_layouts;

/* Asks the device for kernels, node by node; sets layouts, kernels, workspaces; inserts REORDER
 * nodes. SNUG_E_UNSUPPORTED naming the layer when the device has no kernel. */
snug_status sn_plan_lower(sn_graph *graph, sn_device *device, sn_weight_layouts *layouts,
                          snug_error *err);
/* Outputs take the storage of inputs that end there, as the operators' rules allow; reshapes that
 * move nothing become aliases. *n_shared (NULL allowed): how many. */
snug_status sn_plan_in_place(sn_graph *graph, sn_device *device, size_t *n_shared, snug_error *err);

#define SN_NO_LIFE UINT32_MAX

/* A buffer before it has a place. */
typedef struct sn_life {
    const char *name;
    uint64_t bytes, plain_bytes; /* in its layout; without the layout's padding */
    uint32_t first, last;        /* instructions */
    bool persistent;
    sn_bytes_kind kind;
    sn_value_kind value_kind;
    int32_t weight;
    int8_t slot;
    uint32_t slab;
    uint64_t offset;
} sn_life;

typedef struct sn_lifetimes {
    sn_arena arena;
    size_t n_instrs;
    uint32_t *node;      /* of each instruction: aliases take none */
    uint32_t *workspace; /* its life of each instruction, SN_NO_LIFE: none */
    uint8_t *queue;
    uint32_t *n_waits;
    uint32_t **waits;
    bool *signals;
    sn_life *lives;
    size_t n;
    uint32_t *life_of; /* of each value of the graph (its root's), SN_NO_LIFE: never used */
} sn_lifetimes;

snug_status sn_lifetimes_new(sn_lifetimes **out, const sn_graph *graph, sn_device *device,
                             snug_error *err);
void sn_lifetimes_free(sn_lifetimes *lives);

/* The program's slab_bytes are its own peaks; the plan reserves the largest of its programs'. */
snug_status sn_program_new(sn_program **out, const sn_graph *graph, sn_device *device,
                           const sn_lifetimes *lives, size_t n_slabs, snug_error *err);
void sn_program_free(sn_program *program);

/* The judge: SNUG_E_INTERNAL naming the first broken rule. Run on every plan. */
snug_status sn_plan_check(const sn_program *program, sn_device *device, snug_error *err);
/* What b shares with a (weights and slots by identity, staging) lies at the same place. */
snug_status sn_plan_check_shared(const sn_program *a, const sn_program *b, snug_error *err);

/* Listing with live bytes; CSV. */
void sn_program_print(const sn_program *program, sn_device *device, sn_buf *out);
void sn_program_csv(const sn_program *program, sn_buf *out);
/* Bytes live at an instruction (as placed: rounded to no alignment). */
uint64_t sn_program_live_bytes(const sn_program *program, uint32_t instr);

/* Seconds that a program takes by the device's roofline, 0 if it states none; flops NULL allowed.
 */
double sn_program_seconds(const sn_program *program, const sn_device_info *info, double *flops);

/* Peak of what a framework that keeps everything holds in tensors: a graph made with no_passes. */
snug_status sn_plan_keep_all(const sn_graph *graph, uint64_t *bytes, snug_error *err);

/* ---- the plan itself (plan.c) ---------------------------------------------------------------- */

/* As snug_plan_new, on a device that is lent (NULL: opened by options->device). */
snug_status sn_plan_new(snug_plan **out, const snug_model *model, const snug_plan_options *options,
                        sn_device *device, snug_error *err);
/* One plan of options that name a batch, on a lent device; fitting or not, SNUG_OK. quick: a probe,
 * without search, choices and what a framework that keeps everything holds. */
snug_status sn_plan_try(snug_plan **out, const snug_model *model, const snug_plan_options *options,
                        sn_device *device, bool quick, snug_error *err);
/* NULL when the plan has no such program. */
const sn_program *sn_plan_program(const snug_plan *plan, sn_graph_mode mode);
const sn_graph *sn_plan_graph(const snug_plan *plan, sn_graph_mode mode);
sn_device *sn_plan_device(const snug_plan *plan);
const snug_model *sn_plan_model(const snug_plan *plan);
const snug_plan_options *sn_plan_options(const snug_plan *plan); /* defaults filled in */

/* Keras' optimizer as an operator's attributes. */
sn_update_attrs sn_plan_update_attrs(const snug_optimizer *optimizer);

/* For advise: a fix, in the plan's JSON and getters; text is copied. */
typedef struct sn_plan_fix {
    const char *add, *result, *what; /* "--optimizer sgd:momentum=0.9", "different", in words */
    uint64_t peak_bytes;
    double slowdown;
} sn_plan_fix;
snug_status sn_plan_add_fix(snug_plan *plan, const sn_plan_fix *fix, snug_error *err);
snug_status sn_plan_add_useless(snug_plan *plan, const char *advice, const char *why,
                                snug_error *err);

#endif
