/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators that work element by element, on tensors as they lie.
 *
 * Numbered invariants:
 *  1. lanes past C stay zero: an operator that would fill them takes ragged tensors PLAIN.
 */
#include "backend/cpu/internal.h"
#include "backend/cpu/kernels.h"
#include "base/rng.h"

#include <math.h>

/* BLOCKED unless that would fill the lanes past C (1). */
static sn_layout pick(const sn_cpu_device *d, const sn_operation *o, uint32_t mask, bool keeps_zero)
{
    sn_layout layout = sn_cpu_pick_layout(d, o, mask);
    const sn_shape *s = &o->out[0].shape;
    if (layout.kind == SN_LAYOUT_BLOCKED && !keeps_zero && s->dim[s->rank - 1] % layout.block)
        return SN_PLAIN;
    return layout;
}

static const char *take_all(const sn_operation *o, sn_layout layout, sn_proposal *out)
{
    if (!sn_cpu_all_f32(o))
        return "not float32";
    if (!sn_cpu_wish_ok(o, 0, layout))
        return "another layout is asked for";
    for (int i = 0; i < o->n_in; i++)
        out->in[i] = layout;
    for (int i = 0; i < o->n_out; i++)
        out->out[i] = layout;
    return NULL;
}

/* ---- activations ----------------------------------------------------------------------------- */

static bool act_keeps_zero(const sn_act_attrs *a)
{
    if (a->kind == SN_ACT_SIGMOID || a->kind == SN_ACT_HARD_SIGMOID)
        return false;
    return a->kind != SN_ACT_RELU || a->threshold <= 0 || a->alpha == 0;
}

static const char *propose_act(sn_cpu_device *d, const sn_operation *o, sn_proposal *out)
{
    return take_all(o, pick(d, o, 1, act_keeps_zero(&o->attrs->act)), out);
}

static const char *propose_act_dx(sn_cpu_device *d, const sn_operation *o, sn_proposal *out)
{
    return take_all(o, pick(d, o, 3, true), out);
}

static snug_status prepare_act(sn_cpu_task *t, snug_error *err)
{
    sn_cpu_flat_job *j = sn_cpu_task_state(t, sizeof *j, err);
    if (!j)
        return SNUG_E_MEMORY;
    j->n = (int64_t)(t->out[0].bytes / sizeof(float));
    j->a = t->in[0].data;
    j->b = t->op == SN_OP_ACTIVATION_DX ? t->in[1].data : NULL;
    j->y = t->out[0].data;
    j->act = t->attrs->act;
    j->from_output = sn_act_from_output(&j->act);
    return SNUG_OK;
}

static snug_status run_act(const sn_cpu_task *t, const sn_step *step, snug_error *err)
{
    SN_UNUSED(step);
    SN_UNUSED(err);
    const sn_cpu_simd *s = t->device->simd;
    sn_cpu_parallel_over(t->device, t->in[0].bytes + t->out[0].bytes,
                         t->op == SN_OP_ACTIVATION ? s->act_forward : s->act_backward, t->state);
    return SNUG_OK;
}

const sn_cpu_kernel sn_cpu_k_activation = {"own", propose_act, prepare_act, run_act};
const sn_cpu_kernel sn_cpu_k_activation_dx = {"own", propose_act_dx, prepare_act, run_act};

/* ---- two tensors, or a number ---------------------------------------------------------------- */

static const char *propose_binary(sn_cpu_device *d, const sn_operation *o, sn_proposal *out)
{
    if (!sn_shape_eq(&o->in[0].shape, &o->in[1].shape))
        return "shapes differ";
    return take_all(o, pick(d, o, 3, o->attrs->binary.kind != SN_BINARY_DIV), out);
}

static const char *propose_scalar(sn_cpu_device *d, const sn_operation *o, sn_proposal *out)
{
    sn_scalar_kind k = o->attrs->scalar.kind;
    bool keeps = k == SN_SCALAR_MUL || (k == SN_SCALAR_DIV && o->attrs->scalar.value != 0) ||
                 (k == SN_SCALAR_AFFINE && o->attrs->scalar.offset == 0);
    return take_all(o, pick(d, o, 1, keeps), out);
}

static snug_status prepare_flat(sn_cpu_task *t, snug_error *err)
{
    sn_cpu_flat_job *j = sn_cpu_task_state(t, sizeof *j, err);
    if (!j)
        return SNUG_E_MEMORY;
    j->n = (int64_t)(t->out[0].bytes / sizeof(float));
    j->a = t->in[0].data;
    j->y = t->out[0].data;
    if (t->op == SN_OP_BINARY) {
        j->b = t->in[1].data;
        j->kind = (int)t->attrs->binary.kind;
        j->act = t->attrs->binary.act;
    } else {
        j->kind = (int)t->attrs->scalar.kind;
        j->value = t->attrs->scalar.value;
        j->offset = t->attrs->scalar.offset;
    }
    return SNUG_OK;
}

static snug_status run_flat(const sn_cpu_task *t, const sn_step *step, snug_error *err)
{
    SN_UNUSED(step);
    SN_UNUSED(err);
    const sn_cpu_simd *s = t->device->simd;
    sn_cpu_parallel_over(t->device, t->in[0].bytes + t->out[0].bytes,
                         t->op == SN_OP_BINARY ? s->binary_flat : s->scalar_flat, t->state);
    return SNUG_OK;
}

const sn_cpu_kernel sn_cpu_k_binary = {"own", propose_binary, prepare_flat, run_flat};
const sn_cpu_kernel sn_cpu_k_scalar = {"own", propose_scalar, prepare_flat, run_flat};

/* ---- a number per channel -------------------------------------------------------------------- */

/* small is [C], [1,..,1,C] or [N,1,..,1,C] beside full [N,..,C]. */
static bool is_per_channel(const sn_shape *full, const sn_shape *small, bool *samples)
{
    int r = full->rank, k = small->rank;
    *samples = false;
    if (r < 2 || k < 1 || k > r || small->dim[k - 1] != full->dim[r - 1])
        return false;
    for (int i = 0; i < k - 1; i++) {
        if (small->dim[i] == 1)
            continue;
        if (i > 0 || k != r || r < 3 || small->dim[0] != full->dim[0])
            return false;
        *samples = true;
    }
    return true;
}

static const char *propose_channels(sn_cpu_device *d, const sn_operation *o, sn_proposal *out)
{
    bool samples, swapped = false;
    const sn_shape *y = &o->out[0].shape, *a = &o->in[0].shape, *b = &o->in[1].shape;
    if (!sn_shape_eq(a, y) || !is_per_channel(y, b, &samples)) {
        if (!sn_shape_eq(b, y) || !is_per_channel(y, a, &samples))
            return "neither operand is a number per channel";
        swapped = true;
    }
    sn_layout layout = pick(d, o, swapped ? 2 : 1, o->attrs->binary.kind != SN_BINARY_DIV);
    const char *no = take_all(o, layout, out);
    out->in[swapped ? 0 : 1] = SN_PLAIN;
    return no;
}

static const char *propose_bias(sn_cpu_device *d, const sn_operation *o, sn_proposal *out)
{
    const char *no = take_all(o, pick(d, o, 1, true), out);
    out->in[1] = SN_PLAIN;
    return o->in[0].shape.rank < 2 ? "no channels" : no;
}

static snug_status prepare_channels(sn_cpu_task *t, snug_error *err)
{
    sn_cpu_plane_job *j = sn_cpu_task_state(t, sizeof *j, err);
    if (!j)
        return SNUG_E_MEMORY;
    const sn_cpu_arg *full = &t->in[0], *small = &t->in[1];
    j->kind = SN_BINARY_ADD;
    if (t->op == SN_OP_BINARY) {
        j->kind = (int)t->attrs->binary.kind;
        j->act = t->attrs->binary.act;
        const sn_shape *y = &t->out[0].desc.shape;
        j->swapped = !sn_shape_eq(&full->desc.shape, y) ||
                     !is_per_channel(y, &small->desc.shape, &j->b_samples);
        if (j->swapped) {
            full = &t->in[1];
            small = &t->in[0];
            (void)is_per_channel(y, &small->desc.shape, &j->b_samples);
        }
    }
    j->blocked = full->layout.kind == SN_LAYOUT_BLOCKED;
    sn_cpu_planes(&full->desc, j->blocked, &j->n, &j->pixels, &j->c);
    j->a = full->data;
    j->b = small->data;
    j->y = t->out[0].data;
    return SNUG_OK;
}

static snug_status run_channels(const sn_cpu_task *t, const sn_step *step, snug_error *err)
{
    SN_UNUSED(step);
    SN_UNUSED(err);
    sn_cpu_parallel_over(t->device, t->in[0].bytes + t->out[0].bytes,
                         t->device->simd->binary_channels, t->state);
    return SNUG_OK;
}

const sn_cpu_kernel sn_cpu_k_binary_channels = {"own, per channel", propose_channels,
                                                prepare_channels, run_channels};
const sn_cpu_kernel sn_cpu_k_bias_add = {"own", propose_bias, prepare_channels, run_channels};

static const char *propose_bias_grad(sn_cpu_device *d, const sn_operation *o, sn_proposal *out)
{
    if (!sn_cpu_all_f32(o))
        return "not float32";
    if (o->in[0].shape.rank < 2)
        return "no channels";
    if (!sn_cpu_wish_ok(o, 0, SN_PLAIN))
        return "another layout is asked for";
    out->in[0] = sn_layout_eq(o->in_layout[0], SN_BLOCKED(d->block)) ? o->in_layout[0] : SN_PLAIN;
    out->out[0] = SN_PLAIN;
    return NULL;
}

static snug_status prepare_bias_grad(sn_cpu_task *t, snug_error *err)
{
    sn_cpu_plane_job *j = sn_cpu_task_state(t, sizeof *j, err);
    if (!j)
        return SNUG_E_MEMORY;
    j->blocked = t->in[0].layout.kind == SN_LAYOUT_BLOCKED;
    sn_cpu_planes(&t->in[0].desc, j->blocked, &j->n, &j->pixels, &j->c);
    j->a = t->in[0].data;
    j->y = t->out[0].data;
    return SNUG_OK;
}

static snug_status run_bias_grad(const sn_cpu_task *t, const sn_step *step, snug_error *err)
{
    SN_UNUSED(step);
    SN_UNUSED(err);
    sn_cpu_parallel_over(t->device, t->in[0].bytes + t->out[0].bytes, t->device->simd->channel_sums,
                         t->state);
    return SNUG_OK;
}

const sn_cpu_kernel sn_cpu_k_bias_grad = {"own", propose_bias_grad, prepare_bias_grad,
                                          run_bias_grad};

/* ---- dropout --------------------------------------------------------------------------------- */

static const char *propose_dropout(sn_cpu_device *d, const sn_operation *o, sn_proposal *out)
{
    const sn_shape *s = &o->out[0].shape;
    if (o->attrs->dropout.broadcast)
        return "noise is shared along an axis";
    if (o->attrs->dropout.rate >= 1)
        return "everything is dropped";
    if (s->rank < 1)
        return "no batch";
    sn_layout layout = sn_cpu_pick_layout(d, o, 1);
    if (layout.kind == SN_LAYOUT_BLOCKED && s->dim[3] % 4)
        layout = SN_PLAIN;
    return take_all(o, layout, out);
}

static snug_status prepare_dropout(sn_cpu_task *t, snug_error *err)
{
    sn_cpu_drop_job *j = sn_cpu_task_state(t, sizeof *j, err);
    if (!j)
        return SNUG_E_MEMORY;
    const sn_dropout_attrs *a = &t->attrs->dropout;
    const sn_shape *s = &t->out[0].desc.shape;
    j->n = s->dim[0];
    j->each = j->n ? sn_shape_n(s) / j->n : 0;
    if (t->out[0].layout.kind == SN_LAYOUT_BLOCKED)
        sn_cpu_planes(&t->out[0].desc, true, &j->n, &j->pixels, &j->c);
    /* Draws are whole multiples of 2^-24, a word's upper 24 bits: the comparison with the rate is
     * one of whole numbers. */
    j->threshold = (uint32_t)ceil((double)a->rate * 16777216.0) << 8;
    j->scale = 1.0f / (1.0f - a->rate);
    j->x = t->in[0].data;
    j->y = t->out[0].data;
    return SNUG_OK;
}

static snug_status run_dropout(const sn_cpu_task *t, const sn_step *step, snug_error *err)
{
    sn_cpu_drop_job j = *(const sn_cpu_drop_job *)t->state;
    SN_UNUSED(err);
    j.key = sn_mix_u64(step->seed, t->attrs->dropout.stream);
    j.number = step->number;
    j.first_sample = step->first_sample;
    const sn_cpu_simd *s = t->device->simd;
    sn_cpu_parallel_over(t->device, t->in[0].bytes + t->out[0].bytes,
                         j.c ? s->drop_blocked : s->drop_plain, &j);
    return SNUG_OK;
}

const sn_cpu_kernel sn_cpu_k_dropout = {"own", propose_dropout, prepare_dropout, run_dropout};
