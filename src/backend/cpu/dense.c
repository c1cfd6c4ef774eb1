/* SPDX-License-Identifier: Apache-2.0
 *
 * Dense layers and optimizer steps.
 *
 * Numbered invariants:
 *  1. DENSE_DW and DENSE_UPDATE form a gradient by the same body: the fused step has the bits of
 *     the two operators one after the other.
 */
#include "backend/cpu/internal.h"
#include "backend/cpu/kernels.h"

#include <math.h>

/* Up to here w is read from memory once and rows go by; above, panels of w are packed. */
#define FEW_ROWS 32

/* ---- dense ----------------------------------------------------------------------------------- */

static int64_t rows_of(const sn_desc *desc)
{
    int64_t rows = 1;
    for (int i = 0; i < desc->shape.rank - 1; i++)
        rows *= desc->shape.dim[i];
    return rows;
}

static const char *propose_dense(sn_cpu_device *d, const sn_operation *o, sn_proposal *out)
{
    if (!sn_cpu_all_f32(o))
        return "not float32";
    for (int i = 0; i < o->n_in; i++)
        out->in[i] = SN_PLAIN;
    for (int i = 0; i < o->n_out; i++) {
        out->out[i] = SN_PLAIN;
        if (!sn_cpu_wish_ok(o, i, SN_PLAIN))
            return "another layout is asked for";
    }
    if ((o->op == SN_OP_DENSE || o->op == SN_OP_DENSE_DX) && rows_of(&o->in[0]) > FEW_ROWS)
        out->workspace_bytes =
            (uint64_t)(d->n_threads * SN_CPU_PANEL_ROOM(d->block)) * sizeof(float);
    return NULL;
}

static void bind_update(sn_cpu_update *u, const sn_cpu_task *t, int first_in, int w_in)
{
    u->attrs = &t->attrs->update;
    u->n_slots = sn_update_n_slots(u->attrs);
    u->w = t->in[w_in].data;
    u->w_out = t->out[0].data;
    for (int i = 0; i < u->n_slots; i++) {
        u->slot[i] = t->in[first_in + i].data;
        u->slot_out[i] = t->out[1 + i].data;
    }
}

static snug_status prepare_dense(sn_cpu_task *t, snug_error *err)
{
    sn_cpu_dense_job *j = sn_cpu_task_state(t, sizeof *j, err);
    if (!j)
        return SNUG_E_MEMORY;
    const sn_desc *w = NULL;
    j->rows = rows_of(&t->in[0].desc);
    switch (t->op) {
    case SN_OP_DENSE:
        w = &t->in[1].desc;
        j->x = t->in[0].data;
        j->w = t->in[1].data;
        j->bias = t->n_in > 2 ? t->in[2].data : NULL;
        j->act = t->attrs->conv.act;
        break;
    case SN_OP_DENSE_DX:
        w = &t->in[1].desc;
        j->dy = t->in[0].data;
        j->w = t->in[1].data;
        break;
    case SN_OP_DENSE_DW:
        w = &t->out[0].desc;
        j->x = t->in[0].data;
        j->dy = t->in[1].data;
        j->dbias = t->n_out > 1 ? t->out[1].data : NULL;
        j->update.attrs = &t->attrs->update; /* read by nobody: update.w is NULL */
        break;
    default: /* DENSE_UPDATE */
        w = &t->in[2].desc;
        j->x = t->in[0].data;
        j->dy = t->in[1].data;
        bind_update(&j->update, t, 3, 2);
    }
    j->n_in = w->shape.dim[0];
    j->n_out = w->shape.dim[1];
    j->y = t->out[0].data;
    j->room = t->workspace;
    uint64_t room =
        (uint64_t)(t->device->n_threads * SN_CPU_PANEL_ROOM(t->device->block)) * sizeof(float);
    bool panels = (t->op == SN_OP_DENSE || t->op == SN_OP_DENSE_DX) && j->rows > FEW_ROWS;
    if (panels && room > t->workspace_bytes)
        return sn_fail(err, SNUG_E_INTERNAL, "dense: workspace of %" PRIu64 " bytes is too small",
                       t->workspace_bytes);
    return SNUG_OK;
}

static snug_status run_dense(const sn_cpu_task *t, const sn_step *step, snug_error *err)
{
    sn_cpu_dense_job *j = t->state;
    const sn_cpu_simd *s = t->device->simd;
    sn_cpu_body body = s->dense_dw;
    uint64_t weight_bytes = (uint64_t)(j->n_in * j->n_out * j->rows) * sizeof(float);
    SN_UNUSED(err);
    if (t->op == SN_OP_DENSE)
        body = j->rows > FEW_ROWS ? s->dense_panels : s->dense_stream;
    else if (t->op == SN_OP_DENSE_DX)
        body = j->rows > FEW_ROWS ? s->dense_dx_panels : s->dense_dx_stream;
    if (t->op == SN_OP_DENSE_UPDATE) {
        sn_update_prepare(&j->update.scalars, j->update.attrs, step);
        bool clips = j->update.attrs->clip_value > 0;
        j->update.clip = clips ? SN_CPU_CLIP_VALUE : SN_CPU_CLIP_NONE;
        j->update.clip_value = j->update.attrs->clip_value;
    }
    sn_cpu_parallel_over(t->device, weight_bytes, body, j);
    return SNUG_OK;
}

const sn_cpu_kernel sn_cpu_k_dense = {"own", propose_dense, prepare_dense, run_dense};

/* ---- updates --------------------------------------------------------------------------------- */

static bool needs_sums(const sn_operation *o)
{
    return o->op == SN_OP_SUM_SQUARES || o->attrs->update.clip_norm > 0;
}

static const char *propose_update(sn_cpu_device *d, const sn_operation *o, sn_proposal *out)
{
    SN_UNUSED(d);
    if (!sn_cpu_all_f32(o))
        return "not float32";
    sn_layout w = o->in_layout[0].kind == SN_LAYOUT_UNSET ? SN_PLAIN : o->in_layout[0];
    for (int i = 0; i < o->n_in; i++)
        out->in[i] = w;
    for (int i = 0; i < o->n_out; i++)
        out->out[i] = w;
    if (o->op == SN_OP_SUM_SQUARES) {
        out->in[1] = SN_PLAIN;
        out->out[0] = SN_PLAIN;
    } else {
        out->in[2] = SN_PLAIN;
    }
    out->workspace_bytes = needs_sums(o) ? SN_CPU_SLICES * sizeof(double) : 0;
    return NULL;
}

typedef struct update_state {
    sn_cpu_update_job job;
    sn_cpu_square_job squares;
    const float *norm;
} update_state;

static snug_status prepare_update(sn_cpu_task *t, snug_error *err)
{
    update_state *u = sn_cpu_task_state(t, sizeof *u, err);
    if (!u)
        return SNUG_E_MEMORY;
    int64_t n = (int64_t)(t->in[0].bytes / sizeof(float));
    bool squares = t->op == SN_OP_SUM_SQUARES;
    u->squares = (sn_cpu_square_job){.n = n, .a = t->in[0].data, .sums = t->workspace};
    if (!squares) {
        bind_update(&u->job.update, t, 3, 0);
        u->job.n = n;
        u->job.g = t->in[1].data;
        u->norm = t->in[2].data;
        u->squares.a = t->in[1].data;
        u->squares.l2 = t->attrs->update.l2;
        u->squares.w = u->squares.l2 != 0 ? u->job.update.w : NULL;
    }
    if ((squares || t->attrs->update.clip_norm > 0) &&
        t->workspace_bytes < SN_CPU_SLICES * sizeof(double))
        return sn_fail(err, SNUG_E_INTERNAL, "update: the workspace is too small");
    return SNUG_OK;
}

static double sum_squares(const sn_cpu_task *t, sn_cpu_square_job *job)
{
    double total = 0;
    sn_cpu_parallel_over(t->device, t->in[0].bytes, t->device->simd->square_slices, job);
    for (int i = 0; i < SN_CPU_SLICES; i++)
        total += job->sums[i];
    return total;
}

/* As the operator's plain C has it; NaN and infinity in the norm reach every weight. */
static void set_clip(const sn_cpu_task *t, update_state *u)
{
    const sn_update_attrs *a = &t->attrs->update;
    sn_cpu_update *k = &u->job.update;
    k->clip = SN_CPU_CLIP_NONE;
    if (a->clip_norm > 0) {
        float own = sqrtf((float)sum_squares(t, &u->squares));
        k->clip = SN_CPU_CLIP_NORM;
        k->clip_value = a->clip_norm;
        k->clip_norm = own <= a->clip_norm ? a->clip_norm : own;
    } else if (a->clip_global > 0) {
        float all = sqrtf(*u->norm), x = 1.0f / all, y = 1.0f / a->clip_global;
        k->clip = SN_CPU_CLIP_GLOBAL;
        k->clip_value = a->clip_global * (x < y ? x : y) + (all - all);
    } else if (a->clip_value > 0) {
        k->clip = SN_CPU_CLIP_VALUE;
        k->clip_value = a->clip_value;
    }
}

static snug_status run_update(const sn_cpu_task *t, const sn_step *step, snug_error *err)
{
    update_state *u = t->state;
    SN_UNUSED(err);
    sn_update_prepare(&u->job.update.scalars, u->job.update.attrs, step);
    set_clip(t, u);
    sn_cpu_parallel_over(t->device, 4 * t->in[0].bytes, t->device->simd->update_flat, &u->job);
    return SNUG_OK;
}

static snug_status run_squares(const sn_cpu_task *t, const sn_step *step, snug_error *err)
{
    update_state *u = t->state;
    SN_UNUSED(step);
    SN_UNUSED(err);
    const float *before = t->n_in > 1 ? t->in[1].data : NULL;
    float penalty = t->attrs->update.penalty, *out = t->out[0].data;
    double sum = sum_squares(t, &u->squares) * (penalty == 0 ? 1.0 : (double)penalty);
    *out = (float)(sum + (before ? (double)*before : 0.0));
    return SNUG_OK;
}

const sn_cpu_kernel sn_cpu_k_update = {"own", propose_update, prepare_update, run_update};
const sn_cpu_kernel sn_cpu_k_sum_squares = {"own", propose_update, prepare_update, run_squares};
