/* SPDX-License-Identifier: Apache-2.0
 *
 * count.c - the numbers of a plan whose programs are made: kinds of bytes, what the process holds
 * outside of the arena, time, what a framework that keeps everything would take.
 */
#include <string.h>

#include "base/map.h"
#include "plan/internal.h"

enum {
    /* resident, for each kernel that a library makes: 30 to 110 KiB were measured for oneDNN's,
     * two of each */
    PRIMITIVE_BYTES = 48 * 1024,
    INSTRUCTION_BYTES = 1024, /* a session's own bookkeeping for an instruction */
};
/* What a session and its libraries hold whatever the model: code that is touched at its first call,
 * stacks, teams of threads. 4 MiB were measured. */
#define SESSION_BYTES (8 * SN_MIB)

static snug_status no_memory(snug_error *err)
{
    return sn_fail(err, SNUG_E_MEMORY, "no memory for the plan");
}

/* ---- numbers --------------------------------------------------------------------------------- */

static int first_mode(const snug_plan *plan)
{
    for (int m = 0; m < N_MODES; m++)
        if (plan->programs[m])
            return m;
    return 0;
}

/* What is live at the moment of the largest sum in the program that reaches highest; holes and the
 * layouts' padding make up the rest. */
static snug_status count_kinds(snug_plan *plan, snug_error *err)
{
    uint64_t *sums = NULL, most = 0, counted = 0;
    const sn_lifetimes *lives = NULL;
    size_t when = 0;
    for (int m = 0; m < N_MODES; m++) {
        const sn_lifetimes *l = plan->lives[m];
        if (!l)
            continue;
        sums = sn_alloc_array(SN_TAG_PLAN, l->n_instrs + 1, sizeof *sums);
        if (!sums)
            return no_memory(err);
        for (size_t i = 0; i < l->n; i++) {
            sums[l->lives[i].first] += l->lives[i].bytes;
            sums[l->lives[i].last + 1] -= l->lives[i].bytes; /* wraps, and wraps back */
        }
        uint64_t live = 0;
        for (size_t i = 0; i < l->n_instrs; i++) {
            live += sums[i];
            if (live > most) {
                most = live;
                when = i;
                lives = l;
            }
        }
        sn_free(sums);
    }
    for (size_t i = 0; lives && i < lives->n; i++) {
        const sn_life *life = &lives->lives[i];
        if (life->first <= when && when <= life->last) {
            plan->info.kind_bytes[life->kind] += life->plain_bytes;
            counted += life->plain_bytes;
        }
    }
    plan->info.kind_bytes[SN_BYTES_PADDING] =
        plan->info.arena_peak_bytes - SN_MIN(counted, plan->info.arena_peak_bytes);
    return SNUG_OK;
}

static bool from_library(sn_op_id op)
{
    return op == SN_OP_CONV2D || op == SN_OP_CONV2D_DX || op == SN_OP_CONV2D_DW ||
           op == SN_OP_DENSE || op == SN_OP_DENSE_DX || op == SN_OP_DENSE_DW;
}

/* What makes two library kernels the same one. */
typedef struct primitive_key {
    sn_op_id op;
    uint32_t kernel;
    int64_t stride[2], dilation[2], pad[4], groups;
    sn_desc in[2], out[1];
} primitive_key;

static void key_desc(sn_desc *out, const sn_view *view)
{
    if (view->buffer == UINT32_MAX)
        return;
    out->dtype = view->desc.dtype;
    out->shape.rank = view->desc.shape.rank;
    for (int i = 0; i < view->desc.shape.rank; i++)
        out->shape.dim[i] = view->desc.shape.dim[i];
}

/* Library kernels of a program that differ, SIZE_MAX: no memory. */
static size_t count_primitives(const sn_program *p)
{
    sn_map seen;
    bool ok = true;
    sn_map_init(&seen, SN_TAG_PLAN);
    for (size_t i = 0; i < p->n_instrs && ok; i++) {
        const sn_instr *in = &p->instrs[i];
        primitive_key key;
        if (!from_library(in->op))
            continue;
        memset(&key, 0, sizeof key);
        key.op = in->op;
        key.kernel = in->kernel;
        const sn_conv_attrs *conv = &in->attrs.conv;
        for (int k = 0; k < 2; k++) {
            key.stride[k] = conv->stride[k];
            key.dilation[k] = conv->dilation[k];
            key_desc(&key.in[k], &in->in[k]);
        }
        for (int k = 0; k < 4; k++)
            key.pad[k] = conv->pad[k];
        key.groups = conv->groups;
        key_desc(&key.out[0], &in->out[0]);
        ok = sn_map_set(&seen, &key, sizeof key, 1);
    }
    size_t n = seen.n;
    sn_map_deinit(&seen);
    return ok ? n : SIZE_MAX;
}

/* The largest weight that is not plain goes through a buffer of its own when it is loaded or
 * saved. */
static uint64_t weight_buffer(const sn_program *p)
{
    uint64_t most = 0, bytes;
    for (size_t i = 0; i < p->n_weights; i++)
        if (p->weights[i].view.layout.kind != SN_LAYOUT_PLAIN &&
            !sn_desc_bytes(&p->weights[i].view.desc, &bytes))
            most = SN_MAX(most, bytes);
    return most;
}

/* Outside the arena, on a device whose memory is the process' own. */
static snug_status count_host(snug_plan *plan, snug_error *err)
{
    snug_plan_info *info = &plan->info;
    if (!plan->device_info.is_host)
        return SNUG_OK;
    uint64_t runtime = plan->options.runtime_bytes + SESSION_BYTES, inside = 0, buffer = 0;
    uint64_t host = plan->options.pipeline_bytes;
    for (int m = 0; m < N_MODES; m++) {
        const sn_program *p = plan->programs[m];
        if (!p)
            continue;
        size_t n = count_primitives(p);
        if (n == SIZE_MAX)
            return no_memory(err);
        runtime += 2 * n * PRIMITIVE_BYTES; /* the last, short batch has its own */
        for (size_t i = 0; i < p->n_instrs; i++)
            inside = SN_MAX(inside, plan->graphs[m]->nodes.at[p->instrs[i].node].runtime_bytes);
        host += p->n_instrs * INSTRUCTION_BYTES;
        buffer = SN_MAX(buffer, weight_buffer(p));
    }
    info->runtime_bytes = sn_align_up(runtime + inside, SN_MIB);
    info->host_bytes = sn_align_up(host + buffer, 64 * SN_KIB);
    return SNUG_OK;
}

static snug_status keep_all(snug_plan *plan, snug_error *err)
{
    if (plan->options.purpose != SNUG_PLAN_TRAIN || plan->quick)
        return SNUG_OK;
    sn_graph *graph;
    sn_graph_options o = sn_plan_graph_options(plan, SN_GRAPH_TRAIN);
    o.no_passes = true;
    snug_status s = sn_graph_from_model(&graph, plan->model, &o, err);
    if (s)
        return s;
    s = sn_plan_keep_all(graph, &plan->info.keep_all_peak_bytes, err);
    plan->info.keep_all_peak_bytes += plan->info.runtime_bytes + plan->info.host_bytes;
    sn_graph_free(graph);
    return s;
}

static void count_time(snug_plan *plan)
{
    snug_plan_info *info = &plan->info;
    sn_device_info device;
    plan->device->backend->info(plan->device, &device);
    info->step_seconds =
        sn_program_seconds(plan->programs[first_mode(plan)], &device, &info->flops);
    if (plan->options.n_samples) {
        uint64_t batch = (uint64_t)info->batch;
        uint64_t n_steps = (plan->options.n_samples + batch - 1) / batch;
        info->epoch_seconds = info->step_seconds * (double)n_steps;
    }
}

snug_status sn_plan_count(snug_plan *plan, snug_error *err)
{
    snug_plan_info *info = &plan->info;
    info->batch = plan->options.batch;
    info->n_slabs = plan->n_slabs;
    uint64_t lower = 0;
    for (size_t i = 0; i < plan->n_slabs; i++)
        info->arena_peak_bytes += plan->slab_bytes[i];
    for (int m = 0; m < N_MODES; m++)
        lower = SN_MAX(lower, plan->lower_bound[m]);
    /* the bound counts in whole multiples of the alignment, the peak to the byte */
    info->arena_lower_bound_bytes = SN_MIN(lower, info->arena_peak_bytes);
    info->n_tensors = plan->programs[first_mode(plan)]->n_buffers;
    info->n_instructions = plan->programs[first_mode(plan)]->n_instrs;
    info->parameters = snug_model_parameters(plan->model);
    info->trainable = snug_model_trainable_parameters(plan->model);
    snug_status s = count_host(plan, err);
    if (s)
        return s;
    info->peak_bytes = info->arena_peak_bytes + info->runtime_bytes + info->host_bytes;
    count_time(plan);
    s = count_kinds(plan, err);
    if (!s)
        s = keep_all(plan, err);
    info->budget_bytes = plan->budget;
    info->budget_is_free_memory = !plan->options.memory_bytes;
    info->fits = info->peak_bytes <= plan->budget && !plan->oversize;
    return s;
}
