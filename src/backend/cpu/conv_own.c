/* SPDX-License-Identifier: Apache-2.0
 *
 * Convolutions by kernels of our own: the first one of a network, and the data gradient of strided
 * depthwise ones.
 *
 * Numbered invariants:
 *  1. the first convolution's weights and their gradient lie PLAIN: no reorder, any thread count
 *     the same bits.
 */
#include "backend/cpu/conv.h"

#include <string.h>

#include "backend/cpu/kernels.h"

#define FIRST_CHANNELS 4

/* ---- the first convolution ------------------------------------------------------------------- */

static int64_t row_floats(const sn_cpu_device *d, const sn_cpu_conv *c)
{
    return ((c->ow + d->simd->first_tile) * c->stride[1] + c->kw) * c->c;
}

/* Parts of the workspace, in this order. */
typedef struct first_room {
    uint64_t packed, rows, sums, zeros;
} first_room;

static first_room room_of(const sn_cpu_device *d, const sn_cpu_conv *c, bool weights)
{
    int64_t pair = 2 * d->block, pairs = sn_cpu_div_up(c->oc, pair), taps = c->kh * c->kw * c->c;
    first_room r = {.rows = sn_cpu_floats_bytes(d->n_threads * c->kh * row_floats(d, c))};
    if (weights) {
        r.sums = sn_cpu_floats_bytes(SN_CPU_FIRST_SLICES * pairs * (taps + 1) * pair);
        r.zeros = sn_cpu_floats_bytes(c->ow * d->block);
    } else {
        r.packed = sn_cpu_floats_bytes(pairs * taps * pair);
    }
    return r;
}

static uint64_t room_bytes(const first_room *r)
{
    return r->packed + r->rows + r->sums + r->zeros;
}

static const char *propose_first(sn_cpu_device *d, const sn_operation *o, sn_proposal *out)
{
    sn_cpu_conv c;
    const sn_act_attrs *act = &o->attrs->conv.act;
    if (!sn_cpu_all_f32(o))
        return "not float32";
    sn_cpu_conv_of(&c, o->op, o->attrs, o->in, o->out);
    if (c.c > FIRST_CHANNELS || c.groups != 1)
        return "more than 4 channels";
    if (c.dilation[0] != 1 || c.dilation[1] != 1)
        return "dilated";
    bool forward = o->op == SN_OP_CONV2D;
    if (forward && act->kind != SN_ACT_NONE && !sn_cpu_act_is_relu(act))
        return "activation is not a plain ReLU";
    sn_layout blocked = SN_BLOCKED(d->block);
    out->in[0] = SN_PLAIN;
    out->in[1] = forward ? SN_PLAIN : blocked;
    out->in[2] = SN_PLAIN;
    out->out[0] = forward ? blocked : SN_PLAIN;
    out->out[1] = SN_PLAIN;
    if (!sn_cpu_wish_ok(o, 0, out->out[0]))
        return "another layout is asked for";
    first_room r = room_of(d, &c, !forward);
    out->workspace_bytes = room_bytes(&r);
    return NULL;
}

static snug_status prepare_first(sn_cpu_task *t, snug_error *err)
{
    sn_cpu_first_job *j = sn_cpu_task_state(t, sizeof *j, err);
    sn_cpu_conv c;
    if (!j)
        return SNUG_E_MEMORY;
    sn_cpu_conv_of_task(&c, t);
    bool forward = t->op == SN_OP_CONV2D;
    first_room r = room_of(t->device, &c, !forward);
    snug_status s = sn_cpu_check_scratch(t, room_bytes(&r), err);
    if (s)
        return s;
    *j = (sn_cpu_first_job){.n = c.n,
                            .h = c.h,
                            .width = c.w,
                            .c = c.c,
                            .oh = c.oh,
                            .ow = c.ow,
                            .oc = c.oc,
                            .kh = c.kh,
                            .kw = c.kw};
    memcpy(j->stride, c.stride, sizeof j->stride);
    memcpy(j->pad, c.pad, sizeof j->pad);
    j->x = t->in[0].data;
    j->y = t->out[0].data;
    if (forward) {
        j->w = t->in[1].data;
        j->bias = t->n_in > 2 ? t->in[2].data : NULL;
        j->act = t->attrs->conv.act;
        j->stream = t->out[0].bytes > SN_CPU_STREAM_BYTES;
    } else {
        j->dy = t->in[1].data;
        j->dbias = t->n_out > 1 ? t->out[1].data : NULL;
    }
    unsigned char *room = t->workspace;
    j->packed = (void *)room;
    j->rows = (void *)(room + r.packed);
    j->sums = (void *)(room + r.packed + r.rows);
    j->zeros = (void *)(room + r.packed + r.rows + r.sums);
    return SNUG_OK;
}

static snug_status run_first(const sn_cpu_task *t, const sn_step *step, snug_error *err)
{
    const sn_cpu_simd *s = t->device->simd;
    sn_cpu_first_job *j = t->state;
    SN_UNUSED(step);
    SN_UNUSED(err);
    if (t->op == SN_OP_CONV2D) {
        sn_cpu_parallel(t->device, s->first_pack, j);
        sn_cpu_parallel(t->device, s->first_forward, j);
    } else {
        memset(j->zeros, 0, (size_t)(j->ow * t->device->block) * sizeof *j->zeros);
        sn_cpu_parallel(t->device, s->first_weights, j);
        sn_cpu_parallel(t->device, s->first_reduce, j);
    }
    return SNUG_OK;
}

const sn_cpu_kernel sn_cpu_k_conv_first = {"own, few channels", propose_first, prepare_first,
                                           run_first};

/* ---- depthwise, data gradient ---------------------------------------------------------------- */

/* The row of the layout [C/block][KH][KW][block], -1: none. */
static int depth_layout(sn_cpu_device *d, const sn_cpu_conv *c)
{
    sn_md md, plain;
    int index = -1;
    if (sn_cpu_conv_weights(&md, c, d->block == 8 ? dnnl_Goihw8g : dnnl_Goihw16g))
        return -1;
    if (!sn_cpu_conv_plain_weights(&plain, c)) {
        index = sn_cpu_weight_layout_index(d, &md, &plain, true);
        sn_md_free(&plain);
    }
    sn_md_free(&md);
    return index;
}

static const char *propose_depth(sn_cpu_device *d, const sn_operation *o, sn_proposal *out)
{
    sn_cpu_conv c;
    if (!sn_cpu_all_f32(o))
        return "not float32";
    sn_cpu_conv_of(&c, o->op, o->attrs, o->in, o->out);
    if (!sn_cpu_conv_is_depthwise(&c))
        return "not depthwise";
    if (c.dilation[0] != 1 || c.dilation[1] != 1)
        return "dilated";
    if (c.stride[0] < 2 && c.stride[1] < 2)
        return "no stride: oneDNN is as fast";
    sn_layout blocked = SN_BLOCKED(d->block);
    if (!sn_cpu_wish_ok(o, 0, blocked))
        return "another layout is asked for";
    int index = depth_layout(d, &c);
    if (index < 0)
        return "no room for another weight layout";
    out->in[0] = blocked;
    out->in[1] = sn_cpu_opaque(index);
    out->out[0] = blocked;
    return NULL;
}

static snug_status prepare_depth(sn_cpu_task *t, snug_error *err)
{
    sn_cpu_depth_job *j = sn_cpu_task_state(t, sizeof *j, err);
    sn_cpu_conv c;
    if (!j)
        return SNUG_E_MEMORY;
    sn_cpu_conv_of_task(&c, t);
    int64_t blocks = sn_cpu_div_up(c.c, t->device->block);
    *j = (sn_cpu_depth_job){.units = c.n * blocks,
                            .blocks = blocks,
                            .h = c.h,
                            .w = c.w,
                            .oh = c.oh,
                            .ow = c.ow,
                            .kh = c.kh,
                            .kw = c.kw,
                            .dy = t->in[0].data,
                            .weights = t->in[1].data,
                            .dx = t->out[0].data};
    memcpy(j->stride, c.stride, sizeof j->stride);
    memcpy(j->pad, c.pad, sizeof j->pad);
    return SNUG_OK;
}

static snug_status run_depth(const sn_cpu_task *t, const sn_step *step, snug_error *err)
{
    SN_UNUSED(step);
    SN_UNUSED(err);
    sn_cpu_parallel(t->device, t->device->simd->depth_data, t->state);
    return SNUG_OK;
}

const sn_cpu_kernel sn_cpu_k_conv_depth_data = {"own, depthwise", propose_depth, prepare_depth,
                                                run_depth};
