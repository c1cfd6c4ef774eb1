/* SPDX-License-Identifier: Apache-2.0
 *
 * Pooling: windows on BLOCKED tensors with one byte of index an element, whole planes in any
 * layout.
 */
#include "backend/cpu/internal.h"
#include "backend/cpu/kernels.h"

#include <string.h>

/* ---- windows --------------------------------------------------------------------------------- */

static const char *propose_pool(sn_cpu_device *d, const sn_operation *o, sn_proposal *out)
{
    const sn_pool_attrs *a = &o->attrs->pool;
    sn_layout blocked = SN_BLOCKED(d->block);
    if (o->in[0].dtype != SN_F32 || o->out[0].dtype != SN_F32)
        return "not float32";
    if (a->kind == SN_POOL_MAX && a->window[0] * a->window[1] > 255)
        return "window of more than 255 elements";
    for (int i = 0; i < o->n_in; i++)
        out->in[i] = blocked;
    for (int i = 0; i < o->n_out; i++) {
        out->out[i] = blocked;
        if (sn_cpu_present(&o->out[i]) && !sn_cpu_wish_ok(o, i, blocked))
            return "another layout is asked for";
    }
    return NULL;
}

static snug_status prepare_pool(sn_cpu_task *t, snug_error *err)
{
    sn_cpu_pool_job *j = sn_cpu_task_state(t, sizeof *j, err);
    if (!j)
        return SNUG_E_MEMORY;
    const sn_pool_attrs *a = &t->attrs->pool;
    bool forward = t->op == SN_OP_POOL2D;
    const sn_shape *x = forward ? &t->in[0].desc.shape : &t->out[0].desc.shape;
    const sn_shape *y = forward ? &t->out[0].desc.shape : &t->in[0].desc.shape;
    j->units = x->dim[0] * sn_cpu_div_up(x->dim[3], t->device->block);
    j->c = x->dim[3];
    j->h = x->dim[1];
    j->w = x->dim[2];
    j->oh = y->dim[1];
    j->ow = y->dim[2];
    memcpy(j->window, a->window, sizeof j->window);
    memcpy(j->stride, a->stride, sizeof j->stride);
    memcpy(j->pad, a->pad, sizeof j->pad);
    j->average = a->kind == SN_POOL_AVERAGE;
    j->x = t->in[0].data;
    j->y = t->out[0].data;
    j->index = forward ? (t->n_out > 1 ? t->out[1].data : NULL) : t->in[1].data;
    return SNUG_OK;
}

static snug_status run_pool(const sn_cpu_task *t, const sn_step *step, snug_error *err)
{
    SN_UNUSED(step);
    SN_UNUSED(err);
    const sn_cpu_simd *s = t->device->simd;
    sn_cpu_parallel_over(t->device, t->in[0].bytes + t->out[0].bytes,
                         t->op == SN_OP_POOL2D ? s->pool_forward : s->pool_backward, t->state);
    return SNUG_OK;
}

const sn_cpu_kernel sn_cpu_k_pool = {"own", propose_pool, prepare_pool, run_pool};

/* ---- planes ---------------------------------------------------------------------------------- */

static const char *propose_global(sn_cpu_device *d, const sn_operation *o, sn_proposal *out)
{
    if (!sn_cpu_all_f32(o))
        return "not float32";
    bool forward = o->op == SN_OP_GLOBAL_POOL;
    sn_layout planes = SN_BLOCKED(d->block);
    if (forward && o->in_layout[0].kind == SN_LAYOUT_PLAIN)
        planes = SN_PLAIN;
    if (!forward && o->out_wish && o->out_wish[0].kind == SN_LAYOUT_PLAIN)
        planes = SN_PLAIN;
    if (!sn_cpu_wish_ok(o, 0, forward ? SN_PLAIN : planes))
        return "another layout is asked for";
    for (int i = 0; i < o->n_in; i++)
        out->in[i] = i == 0 ? planes : SN_PLAIN;
    out->out[0] = forward ? SN_PLAIN : planes;
    return NULL;
}

static snug_status prepare_global(sn_cpu_task *t, snug_error *err)
{
    sn_cpu_plane_job *j = sn_cpu_task_state(t, sizeof *j, err);
    if (!j)
        return SNUG_E_MEMORY;
    bool forward = t->op == SN_OP_GLOBAL_POOL;
    const sn_cpu_arg *planes = forward ? &t->in[0] : &t->out[0];
    j->blocked = planes->layout.kind == SN_LAYOUT_BLOCKED;
    sn_cpu_planes(&planes->desc, j->blocked, &j->n, &j->pixels, &j->c);
    j->largest = t->attrs->pool.kind == SN_POOL_MAX;
    j->a = t->in[0].data;
    if (!forward) {
        j->best = t->in[1].data;
        j->b = t->in[2].data;
    }
    j->y = t->out[0].data;
    return SNUG_OK;
}

static snug_status run_global(const sn_cpu_task *t, const sn_step *step, snug_error *err)
{
    SN_UNUSED(step);
    SN_UNUSED(err);
    const sn_cpu_simd *s = t->device->simd;
    sn_cpu_parallel_over(t->device, t->in[0].bytes + t->out[0].bytes,
                         t->op == SN_OP_GLOBAL_POOL ? s->plane_pool : s->plane_pool_dx, t->state);
    return SNUG_OK;
}

const sn_cpu_kernel sn_cpu_k_global_pool = {"own", propose_global, prepare_global, run_global};
