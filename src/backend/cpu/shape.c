/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators that only move bytes: concatenation, slices, padding, cropping, reshaping, of any type.
 * BLOCKED where whole blocks move.
 */
#include "backend/cpu/internal.h"
#include "backend/cpu/kernels.h"

#include <string.h>

/* A tensor as rows of bytes: dimensions as they lie, outermost first. */
typedef struct physical {
    int rank;
    int64_t dim[SN_MAX_RANK + 1];
    int64_t element;
} physical;

static physical physical_of(const sn_desc *desc, sn_layout layout)
{
    physical p = {.rank = desc->shape.rank, .element = (int64_t)sn_dtype_bytes(desc->dtype)};
    const int64_t *d = desc->shape.dim;
    if (layout.kind == SN_LAYOUT_BLOCKED) {
        int64_t dims[4] = {d[0], sn_cpu_div_up(d[3], layout.block), d[1], d[2]};
        memcpy(p.dim, dims, sizeof dims);
        p.element *= layout.block;
        return p;
    }
    for (int i = 0; i < p.rank; i++)
        p.dim[i] = d[i];
    return p;
}

/* Where a logical axis lies. */
static int physical_axis(int axis, sn_layout layout)
{
    static const int blocked[4] = {0, 2, 3, 1};
    return layout.kind == SN_LAYOUT_BLOCKED ? blocked[axis] : axis;
}

static int64_t bytes_from(const physical *p, int axis)
{
    int64_t n = p->element;
    for (int i = axis; i < p->rank; i++)
        n *= p->dim[i];
    return n;
}

static int64_t outer_of(const physical *p, int axis)
{
    int64_t n = 1;
    for (int i = 0; i < axis; i++)
        n *= p->dim[i];
    return n;
}

/* n runs from one place to another, each with its own pitch. */
typedef struct run_job {
    const unsigned char *from;
    unsigned char *to;
    int64_t n, bytes, from_pitch, to_pitch;
} run_job;

static void copy_runs(void *context, int thread, int n_threads)
{
    const run_job *j = context;
    int64_t first, last;
    sn_cpu_part(j->n * j->bytes, thread, n_threads, &first, &last);
    while (first < last) {
        int64_t run = first / j->bytes, at = first % j->bytes;
        int64_t n = SN_MIN(j->bytes - at, last - first);
        memcpy(j->to + run * j->to_pitch + at, j->from + run * j->from_pitch + at, (size_t)n);
        first += n;
    }
}

/* ---- concatenation and slices ---------------------------------------------------------------- */

/* BLOCKED when every edge along the channels falls between two blocks. */
static sn_layout pick_axis(const sn_cpu_device *d, const sn_operation *o, uint32_t mask)
{
    sn_layout layout = sn_cpu_pick_layout(d, o, mask);
    const sn_slice_attrs *a = &o->attrs->slice;
    if (layout.kind != SN_LAYOUT_BLOCKED || a->axis != 3)
        return layout;
    if (o->op == SN_OP_SLICE) {
        bool ends =
            (a->start + a->length) % d->block == 0 || a->start + a->length == o->in[0].shape.dim[3];
        return a->start % d->block == 0 && ends ? layout : SN_PLAIN;
    }
    for (int i = 0; i + 1 < o->n_in; i++)
        if (o->in[i].shape.dim[3] % d->block)
            return SN_PLAIN;
    return layout;
}

static const char *propose_concat(sn_cpu_device *d, const sn_operation *o, sn_proposal *out)
{
    sn_layout layout = pick_axis(d, o, 0xffff);
    if (!sn_cpu_wish_ok(o, 0, layout))
        return "another layout is asked for";
    for (int i = 0; i < o->n_in; i++)
        out->in[i] = layout;
    out->out[0] = layout;
    return NULL;
}

static snug_status run_concat(const sn_cpu_task *t, const sn_step *step, snug_error *err)
{
    SN_UNUSED(step);
    SN_UNUSED(err);
    int axis = physical_axis(t->attrs->slice.axis, t->out[0].layout);
    physical y = physical_of(&t->out[0].desc, t->out[0].layout);
    unsigned char *to = t->out[0].data;
    for (int i = 0; i < t->n_in; i++) {
        physical x = physical_of(&t->in[i].desc, t->in[i].layout);
        run_job j = {.from = t->in[i].data,
                     .to = to,
                     .n = outer_of(&y, axis),
                     .bytes = bytes_from(&x, axis),
                     .from_pitch = bytes_from(&x, axis),
                     .to_pitch = bytes_from(&y, axis)};
        sn_cpu_parallel_over(t->device, t->out[0].bytes, copy_runs, &j);
        to += j.bytes;
    }
    return SNUG_OK;
}

static snug_status run_slice(const sn_cpu_task *t, const sn_step *step, snug_error *err)
{
    SN_UNUSED(step);
    SN_UNUSED(err);
    const sn_slice_attrs *a = &t->attrs->slice;
    sn_layout layout = t->out[0].layout;
    int axis = physical_axis(a->axis, layout);
    physical x = physical_of(&t->in[0].desc, layout), y = physical_of(&t->out[0].desc, layout);
    int64_t start =
        layout.kind == SN_LAYOUT_BLOCKED && a->axis == 3 ? a->start / layout.block : a->start;
    run_job j = {.from = (const unsigned char *)t->in[0].data + start * bytes_from(&x, axis + 1),
                 .to = t->out[0].data,
                 .n = outer_of(&y, axis),
                 .bytes = bytes_from(&y, axis),
                 .from_pitch = bytes_from(&x, axis),
                 .to_pitch = bytes_from(&y, axis)};
    sn_cpu_parallel_over(t->device, t->out[0].bytes, copy_runs, &j);
    return SNUG_OK;
}

const sn_cpu_kernel sn_cpu_k_concat = {"own", propose_concat, NULL, run_concat};
const sn_cpu_kernel sn_cpu_k_slice = {"own", propose_concat, NULL, run_slice};

/* ---- padding and cropping -------------------------------------------------------------------- */

typedef struct pad_job {
    const unsigned char *x;
    unsigned char *y;
    int64_t planes, h, w, oh, ow, pixel; /* x [planes][h][w][pixel], y [planes][oh][ow][pixel] */
    int64_t top, left;                   /* of x in y; negative: cropped */
} pad_job;

static void pad_rows(void *context, int thread, int n_threads)
{
    const pad_job *j = context;
    int64_t first, last;
    sn_cpu_part(j->planes * j->oh, thread, n_threads, &first, &last);
    int64_t begin = SN_MAX(j->left, 0), end = SN_MIN(j->left + j->w, j->ow);
    for (int64_t r = first; r < last; r++) {
        unsigned char *y = j->y + r * j->ow * j->pixel;
        int64_t iy = r % j->oh - j->top;
        if (iy < 0 || iy >= j->h || begin >= end) {
            memset(y, 0, (size_t)(j->ow * j->pixel));
            continue;
        }
        const unsigned char *x =
            j->x + ((r / j->oh * j->h + iy) * j->w + begin - j->left) * j->pixel;
        memset(y, 0, (size_t)(begin * j->pixel));
        memcpy(y + begin * j->pixel, x, (size_t)((end - begin) * j->pixel));
        memset(y + end * j->pixel, 0, (size_t)((j->ow - end) * j->pixel));
    }
}

static const char *propose_pad(sn_cpu_device *d, const sn_operation *o, sn_proposal *out)
{
    sn_layout layout = sn_cpu_pick_layout(d, o, 1);
    if (o->in[0].shape.rank != 4)
        return "not an image";
    if (!sn_cpu_wish_ok(o, 0, layout))
        return "another layout is asked for";
    out->in[0] = out->out[0] = layout;
    return NULL;
}

static snug_status run_pad(const sn_cpu_task *t, const sn_step *step, snug_error *err)
{
    SN_UNUSED(step);
    SN_UNUSED(err);
    const int64_t *x = t->in[0].desc.shape.dim, *y = t->out[0].desc.shape.dim;
    const int64_t *pad = t->attrs->pad.pad;
    bool blocked = t->in[0].layout.kind == SN_LAYOUT_BLOCKED;
    int64_t element = (int64_t)sn_dtype_bytes(t->in[0].desc.dtype), sign = 1;
    if (t->op == SN_OP_CROP2D)
        sign = -1;
    pad_job j = {.x = t->in[0].data,
                 .y = t->out[0].data,
                 .planes = x[0] * (blocked ? sn_cpu_div_up(x[3], t->in[0].layout.block) : 1),
                 .h = x[1],
                 .w = x[2],
                 .oh = y[1],
                 .ow = y[2],
                 .pixel = element * (blocked ? t->in[0].layout.block : x[3]),
                 .top = sign * pad[0],
                 .left = sign * pad[2]};
    sn_cpu_parallel_over(t->device, t->out[0].bytes, pad_rows, &j);
    return SNUG_OK;
}

const sn_cpu_kernel sn_cpu_k_pad = {"own", propose_pad, NULL, run_pad};

/* ---- reshaping ------------------------------------------------------------------------------- */

static const char *propose_reshape(sn_cpu_device *d, const sn_operation *o, sn_proposal *out)
{
    SN_UNUSED(d);
    if (!sn_cpu_wish_ok(o, 0, SN_PLAIN))
        return "another layout is asked for";
    out->in[0] = out->out[0] = SN_PLAIN;
    return NULL;
}

static snug_status run_reshape(const sn_cpu_task *t, const sn_step *step, snug_error *err)
{
    SN_UNUSED(step);
    SN_UNUSED(err);
    if (t->in[0].data == t->out[0].data)
        return SNUG_OK;
    int64_t n = (int64_t)t->out[0].bytes;
    run_job j = {t->in[0].data, t->out[0].data, 1, n, n, n};
    if (n > 0)
        sn_cpu_parallel_over(t->device, t->out[0].bytes, copy_runs, &j);
    return SNUG_OK;
}

const sn_cpu_kernel sn_cpu_k_reshape = {"own", propose_reshape, NULL, run_reshape};
