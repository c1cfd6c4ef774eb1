/* SPDX-License-Identifier: Apache-2.0
 *
 * Batch normalisation's four operators in any layout, with a fused ReLU.
 *
 * Numbered invariants:
 *  1. BATCH_NORM, BATCH_NORM_APPLY and the mask of BATCH_NORM_DX compute y from (x, mean, var,
 *     gamma, beta) by the same instructions: a replayed y is y to the bit;
 *  2. a gradient is zero where x and dy are padding.
 */
#include "backend/cpu/conv.h"
#include "backend/cpu/kernels.h"

#include <string.h>

static bool is_backward(sn_op_id op)
{
    return op == SN_OP_BATCH_NORM_DX || op == SN_OP_BATCH_NORM_APPLY_DX;
}

static bool has_sums(sn_op_id op)
{
    return op != SN_OP_BATCH_NORM_APPLY;
}

static int64_t shared_blocks(const sn_cpu_device *d, int64_t c)
{
    return sn_cpu_div_up(c, d->block) % d->n_threads;
}

static uint64_t partial_bytes(const sn_cpu_device *d, int64_t n, int64_t c)
{
    int64_t blocks = shared_blocks(d, c), lanes = d->block;
    return (uint64_t)(blocks * n * 2 * lanes) * sizeof(double) +
           (uint64_t)(blocks * lanes) * sizeof(float);
}

static const char *propose(sn_cpu_device *d, const sn_operation *o, sn_proposal *out)
{
    const sn_act_attrs *act = &o->attrs->norm.act;
    if (!sn_cpu_all_f32(o))
        return "not float32";
    if (act->kind != SN_ACT_NONE && !sn_cpu_act_is_relu(act))
        return "activation is not a plain ReLU";
    if (o->in[0].shape.rank < 2)
        return "no channels";
    bool backward = is_backward(o->op);
    sn_layout layout = sn_cpu_pick_layout(d, o, backward ? 3 : 1);
    if (!sn_cpu_wish_ok(o, 0, layout))
        return "another layout is asked for";
    for (int i = 0; i < o->n_in; i++)
        out->in[i] = i == 0 || (backward && i == 1) ? layout : SN_PLAIN;
    out->out[0] = layout;
    for (int i = 1; i < o->n_out; i++)
        out->out[i] = SN_PLAIN;
    int64_t n, pixels, c;
    sn_cpu_planes(&o->in[0], layout.kind == SN_LAYOUT_BLOCKED, &n, &pixels, &c);
    out->workspace_bytes = has_sums(o->op) ? partial_bytes(d, n, c) : 0;
    return NULL;
}

static snug_status prepare(sn_cpu_task *t, snug_error *err)
{
    sn_cpu_norm_job *j = sn_cpu_task_state(t, sizeof *j, err);
    const sn_norm_attrs *a = &t->attrs->norm;
    if (!j)
        return SNUG_E_MEMORY;
    j->blocked = t->in[0].layout.kind == SN_LAYOUT_BLOCKED;
    sn_cpu_planes(&t->in[0].desc, j->blocked, &j->n, &j->pixels, &j->c);
    j->x = t->in[0].data;
    int p = is_backward(t->op) ? 2 : 1;
    j->dy = p == 2 ? t->in[1].data : NULL;
    j->gamma = t->in[p].data;
    j->beta = t->in[p + 1].data;
    j->y = t->out[0].data;
    if (t->op == SN_OP_BATCH_NORM) {
        j->mean_out = t->out[1].data;
        j->var_out = t->out[2].data;
    } else {
        j->mean = t->in[p + 2].data;
        j->var = t->in[p + 3].data;
    }
    if (p == 2) {
        j->dgamma = t->n_out > 1 ? t->out[1].data : NULL;
        j->dbeta = t->n_out > 2 ? t->out[2].data : NULL;
    }
    j->epsilon = a->epsilon;
    j->relu = a->act.kind == SN_ACT_RELU;
    j->max = SN_MAX(a->act.max, 0.0f);
    j->frozen = t->op == SN_OP_BATCH_NORM_APPLY_DX;
    j->stream =
        j->blocked && j->y != j->x && j->y != j->dy && t->out[0].bytes > SN_CPU_STREAM_BYTES;
    if (has_sums(t->op)) {
        j->n_shared = shared_blocks(t->device, j->c);
        j->partial = t->workspace;
        if (partial_bytes(t->device, j->n, j->c) > t->workspace_bytes)
            return sn_fail(err, SNUG_E_INTERNAL,
                           "batch norm's workspace of %" PRIu64 " bytes is too small",
                           t->workspace_bytes);
    }
    return SNUG_OK;
}

static snug_status run(const sn_cpu_task *t, const sn_step *step, snug_error *err)
{
    sn_cpu_norm_job j = *(const sn_cpu_norm_job *)t->state;
    const sn_cpu_simd *simd = t->device->simd;
    SN_UNUSED(step);
    SN_UNUSED(err);
    if (t->op == SN_OP_BATCH_NORM_APPLY) {
        sn_cpu_parallel_over(t->device, t->in[0].bytes + t->out[0].bytes, simd->norm_apply, &j);
        return SNUG_OK;
    }
    sn_cpu_body body = t->op == SN_OP_BATCH_NORM ? simd->norm_forward : simd->norm_backward;
    int64_t blocks = sn_cpu_div_up(j.c, t->device->block);
    int phases = j.n_shared ? 3 : 1;
    for (j.phase = blocks > j.n_shared ? 0 : 1; j.phase < phases; j.phase++)
        sn_cpu_parallel_over(t->device, t->in[0].bytes + t->out[0].bytes, body, &j);
    return SNUG_OK;
}

const sn_cpu_kernel sn_cpu_k_batch_norm = {"own", propose, prepare, run};
