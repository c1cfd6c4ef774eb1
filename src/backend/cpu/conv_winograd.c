/* SPDX-License-Identifier: Apache-2.0
 *
 * Convolutions of 3x3 by Winograd's F(2x2, 3x3), where that is faster than the direct way: output,
 * data gradient and weight gradient alike, so that the weights lie PLAIN for all three.
 *
 * Numbered invariants:
 *  1. a smaller batch takes no more scratch than a larger one;
 *  2. the bits depend on the shapes alone, not on the number of threads.
 */
#include "backend/cpu/conv.h"

#include <string.h>

#include "backend/cpu/kernels.h"

/* What a thread holds together: part of its second-level cache; but as many tiles as pay for going
 * over the weights, or over the gradient's sums, once more. */
#define CHUNK_BYTES (512 * SN_KIB)
#define FORWARD_TILES 48
#define GRADIENT_TILES 96
/* Weights' gradient: bytes of all slices' sums (one slice may take more); slices at most, and tiles
 * in each at least. */
#define SLICES_BYTES (4 * SN_MIB)
#define MAX_SLICES 16
#define SLICE_TILES 128

/* Where the direct way is as fast: the weights' transform goes through memory once, whatever the
 * tiles (measured: 32 of 16x64 channels, 60 to 100 of 512x512). */
#define MIN_TILES 32
#define WEIGHTS_A_TILE 4096

typedef struct wino_room {
    int64_t chunk, slices, parts;
    uint64_t u, v, m, sums;
} wino_room;

static int64_t tiles_of(const sn_cpu_conv *c)
{
    return c->n * sn_cpu_div_up(c->oh, 2) * sn_cpu_div_up(c->ow, 2);
}

/* By the shapes alone (2). */
static int64_t slices_of(const sn_cpu_conv *c, int64_t u_bytes)
{
    int64_t n = 1;
    while (2 * n <= MAX_SLICES && 2 * n * u_bytes <= (int64_t)SLICES_BYTES &&
           2 * n * SLICE_TILES <= tiles_of(c))
        n *= 2;
    return n;
}

/* c is the convolution that is computed: of the data gradient, from dy to dx. */
static wino_room room_of(const sn_cpu_device *d, const sn_cpu_conv *c, bool gradient)
{
    const int64_t width = d->block, rows = d->simd->wino_rows, vector = width * 4;
    const int64_t in = sn_cpu_div_up(c->c, width), out = sn_cpu_div_up(c->oc, width);
    int64_t most = (int64_t)CHUNK_BYTES / (16 * (in + out) * vector) / rows * rows;
    most = SN_MAX(most, gradient ? GRADIENT_TILES : FORWARD_TILES);
    const int64_t u = 16 * (out * in * width + 1) * width;
    wino_room r = {.slices = 1, .parts = 1};
    if (gradient) {
        r.slices = slices_of(c, u * 4);
        r.parts = SN_MIN(sn_cpu_div_up(d->n_threads, r.slices), in);
        r.sums = sn_align_up((uint64_t)(r.slices * out * width) * sizeof(double), SN_CPU_ALIGN);
    }
    /* A batch with fewer slices may have more tiles in each (1). */
    r.chunk = SN_MIN(most, sn_cpu_div_up(tiles_of(c), gradient ? 1 : d->n_threads));
    r.u = sn_cpu_floats_bytes(r.slices * u);
    r.v =
        sn_cpu_floats_bytes(d->n_threads * 16 * (sn_cpu_div_up(in, r.parts) * r.chunk + 1) * width);
    r.m = sn_cpu_floats_bytes(d->n_threads * 16 * (out * r.chunk + 1) * width);
    return r;
}

static uint64_t room_bytes(const wino_room *r)
{
    return r->u + r->v + r->m + r->sums;
}

/* The data gradient as a convolution of dy. */
static void turn(sn_cpu_conv *c)
{
    sn_cpu_conv was = *c;
    c->h = was.oh, c->w = was.ow, c->c = was.oc;
    c->oh = was.h, c->ow = was.w, c->oc = was.c;
    c->pad[0] = 2 - was.pad[0];
    c->pad[2] = 2 - was.pad[2];
}

/* Why the direct way is taken; the same answer for all three operators. */
static const char *refuse_shape(const sn_cpu_conv *c)
{
    if (c->kh != 3 || c->kw != 3)
        return "not 3x3";
    if (c->stride[0] != 1 || c->stride[1] != 1 || c->dilation[0] != 1 || c->dilation[1] != 1)
        return "strided or dilated";
    if (c->groups != 1)
        return "in groups";
    for (int i = 0; i < 4; i++)
        if (c->pad[i] > 2)
            return "padded by more than 2";
    if (c->n < 1 || c->h < 1 || c->w < 1 || c->oh < 1 || c->ow < 1)
        return "empty";
    if (c->c < 8 || c->oc < 8)
        return "few channels";
    if (tiles_of(c) < MIN_TILES + c->c * c->oc / WEIGHTS_A_TILE)
        return "too few outputs for the weights' transform";
    return NULL;
}

static const char *propose_winograd(sn_cpu_device *d, const sn_operation *o, sn_proposal *out)
{
    sn_cpu_conv c;
    const sn_act_attrs *act = &o->attrs->conv.act;
    bool forward = o->op == SN_OP_CONV2D, gradient = o->op == SN_OP_CONV2D_DW;
    if (!sn_cpu_all_f32(o))
        return "not float32";
    if (forward && act->kind != SN_ACT_NONE && !sn_cpu_act_is_relu(act))
        return "activation is not a plain ReLU";
    sn_cpu_conv_of(&c, o->op, o->attrs, o->in, o->out);
    const char *no = refuse_shape(&c);
    if (no)
        return no;
    sn_layout blocked = SN_BLOCKED(d->block);
    out->in[0] = blocked;
    out->in[1] = gradient ? blocked : SN_PLAIN;
    out->in[2] = SN_PLAIN;
    out->out[0] = gradient ? SN_PLAIN : blocked;
    out->out[1] = SN_PLAIN;
    if (!sn_cpu_wish_ok(o, 0, out->out[0]))
        return "another layout is asked for";
    if (o->op == SN_OP_CONV2D_DX)
        turn(&c);
    wino_room r = room_of(d, &c, gradient);
    out->workspace_bytes = room_bytes(&r);
    return NULL;
}

static void set_operands(sn_cpu_wino_job *j, const sn_cpu_task *t)
{
    j->x = t->in[0].data;
    j->y = t->out[0].data;
    if (t->op == SN_OP_CONV2D_DW) {
        j->dy = t->in[1].data;
        j->dbias = t->n_out > 1 ? t->out[1].data : NULL;
        return;
    }
    j->weights = t->in[1].data;
    j->turned = t->op == SN_OP_CONV2D_DX;
    if (t->op == SN_OP_CONV2D) {
        j->bias = t->n_in > 2 ? t->in[2].data : NULL;
        j->act = t->attrs->conv.act;
    }
}

static snug_status prepare_winograd(sn_cpu_task *t, snug_error *err)
{
    sn_cpu_wino_job *j = sn_cpu_task_state(t, sizeof *j, err);
    sn_cpu_conv c;
    if (!j)
        return SNUG_E_MEMORY;
    sn_cpu_conv_of_task(&c, t);
    if (t->op == SN_OP_CONV2D_DX)
        turn(&c);
    wino_room r = room_of(t->device, &c, t->op == SN_OP_CONV2D_DW);
    snug_status s = sn_cpu_check_scratch(t, room_bytes(&r), err); /* 1 */
    if (s)
        return s;
    *j = (sn_cpu_wino_job){.h = c.h,
                           .w = c.w,
                           .c = c.c,
                           .oh = c.oh,
                           .ow = c.ow,
                           .oc = c.oc,
                           .top = c.pad[0],
                           .left = c.pad[2],
                           .tile_rows = sn_cpu_div_up(c.oh, 2),
                           .tile_columns = sn_cpu_div_up(c.ow, 2),
                           .tiles = tiles_of(&c),
                           .chunk = r.chunk,
                           .slices = r.slices,
                           .parts = r.parts};
    set_operands(j, t);
    unsigned char *room = t->workspace;
    j->u = (void *)room;
    j->v = (void *)(room + r.u);
    j->m = (void *)(room + r.u + r.v);
    j->sums = (void *)(room + r.u + r.v + r.m);
    return SNUG_OK;
}

static snug_status run_winograd(const sn_cpu_task *t, const sn_step *step, snug_error *err)
{
    const sn_cpu_simd *s = t->device->simd;
    sn_cpu_wino_job *j = t->state;
    SN_UNUSED(step);
    SN_UNUSED(err);
    if (t->op == SN_OP_CONV2D_DW) {
        int64_t lanes = sn_cpu_div_up(j->oc, t->device->block) * t->device->block;
        memset(j->sums, 0, (size_t)(j->slices * lanes) * sizeof *j->sums);
        sn_cpu_parallel(t->device, s->wino_slices, j);
        sn_cpu_parallel(t->device, s->wino_finish, j);
    } else {
        sn_cpu_parallel(t->device, s->wino_weights, j);
        sn_cpu_parallel(t->device, s->wino_forward, j);
    }
    return SNUG_OK;
}

const sn_cpu_kernel sn_cpu_k_conv_winograd = {"own, Winograd", propose_winograd, prepare_winograd,
                                              run_winograd};
