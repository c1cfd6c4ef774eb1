/* SPDX-License-Identifier: Apache-2.0
 *
 * Joining along an axis and cutting a piece out. The gradient of a cut pads with zeros: the tensor
 * is seen as [N, before, axis*inner, 1], so that PAD2D along its width does it. */
#include "ops/util.h"

static snug_status need_axis(sn_op_id id, const sn_slice_attrs *a, const sn_shape *x,
                             snug_error *err)
{
    return sn_op_need_range(id, "axis", a->axis, 0, x->rank - 1, err);
}

static snug_status infer(const sn_attrs *attrs, const sn_desc *in, int n_in, sn_desc *out,
                         int n_out, snug_error *err)
{
    char first[96], other[96];
    const sn_op_id id = SN_OP_CONCAT;
    SN_OP_TRY(sn_op_arity(id, in, n_in, out, n_out, err));
    SN_OP_TRY(sn_op_need(id, in, 0, SN_OP_ANY_DTYPE, -1, err));
    SN_OP_TRY(need_axis(id, &attrs->slice, &in[0].shape, err));
    const int axis = attrs->slice.axis;
    sn_shape y = in[0].shape;
    for (int i = 1; i < n_in; i++) {
        SN_OP_TRY(sn_op_need(id, in, i, in[0].dtype, in[0].shape.rank, err));
        sn_shape same = in[i].shape;
        same.dim[axis] = in[0].shape.dim[axis];
        if (!sn_shape_eq(&same, &in[0].shape))
            return sn_fail(err, SNUG_E_INPUT, "concat: %s and %s differ beside axis %d",
                           sn_shape_format(first, sizeof first, &in[0].shape),
                           sn_shape_format(other, sizeof other, &in[i].shape), axis);
        if (__builtin_add_overflow(y.dim[axis], in[i].shape.dim[axis], &y.dim[axis]))
            return sn_fail(err, SNUG_E_INPUT, "concat: its result is absurdly large");
    }
    return sn_op_set(id, &out[0], in[0].dtype, &y, err);
}

static snug_status infer_slice(const sn_attrs *attrs, const sn_desc *in, int n_in, sn_desc *out,
                               int n_out, snug_error *err)
{
    const sn_slice_attrs *a = &attrs->slice;
    const sn_op_id id = SN_OP_SLICE;
    SN_OP_TRY(sn_op_arity(id, in, n_in, out, n_out, err));
    SN_OP_TRY(sn_op_need(id, in, 0, SN_OP_ANY_DTYPE, -1, err));
    SN_OP_TRY(need_axis(id, a, &in[0].shape, err));
    sn_shape y = in[0].shape;
    SN_OP_TRY(sn_op_need_range(id, "start", a->start, 0, y.dim[a->axis] - 1, err));
    SN_OP_TRY(sn_op_need_range(id, "length", a->length, 1, y.dim[a->axis] - a->start, err));
    y.dim[a->axis] = a->length;
    return sn_op_set(id, &out[0], in[0].dtype, &y, err);
}

static snug_status grad(sn_grad *g, snug_error *err)
{
    if (!sn_op_grad_begin(g))
        return SNUG_OK;
    sn_attrs b = *g->attrs;
    b.slice.start = 0;
    for (int i = 0; i < g->n_in; i++) {
        sn_desc x = g->desc(g, g->in[i]);
        b.slice.length = x.shape.dim[b.slice.axis];
        if (g->wanted[i])
            SN_OP_TRY(sn_op_emit(g, SN_OP_SLICE, &b, 1, g->dout, &g->din[i], err));
        b.slice.start += b.slice.length;
    }
    return SNUG_OK;
}

static snug_status grad_slice(sn_grad *g, snug_error *err)
{
    const sn_slice_attrs *a = &g->attrs->slice;
    sn_ref flat, padded;
    if (!sn_op_grad_begin(g) || !g->wanted[0])
        return SNUG_OK;
    if (a->axis == 0)
        return sn_fail(err, SNUG_E_UNSUPPORTED, "a slice of the batch has no gradient");
    sn_desc x = g->desc(g, g->in[0]);
    int64_t before = 1, inner = 1, rest = x.shape.dim[a->axis] - a->start - a->length;
    for (int i = 1; i < x.shape.rank; i++)
        *(i < a->axis ? &before : &inner) *= i == a->axis ? 1 : x.shape.dim[i];
    sn_attrs view = {.shape.shape = {4, {-1, before, a->length * inner, 1}}};
    sn_attrs pad = {.pad.pad = {0, 0, a->start * inner, rest * inner}};
    sn_attrs back = {.shape.shape = x.shape};
    back.shape.shape.dim[0] = -1;
    SN_OP_TRY(sn_op_emit(g, SN_OP_RESHAPE, &view, 1, g->dout, &flat, err));
    SN_OP_TRY(sn_op_emit(g, SN_OP_PAD2D, &pad, 1, &flat, &padded, err));
    return sn_op_emit(g, SN_OP_RESHAPE, &back, 1, &padded, &g->din[0], err);
}

static void cost(const sn_attrs *attrs, const sn_desc *in, int n_in, const sn_desc *out, int n_out,
                 sn_cost *c)
{
    SN_UNUSED(attrs);
    sn_op_cost(0, in, n_in, out, n_out, c);
    if (n_in == 1) /* a slice reads no more than it writes */
        c->read_bytes = SN_MIN(c->read_bytes, c->written_bytes);
}

static size_t run_bytes(const sn_desc *d, int axis)
{
    int64_t n = 1;
    for (int i = axis; i < d->shape.rank; i++)
        n *= d->shape.dim[i];
    return (size_t)n * sn_dtype_bytes(d->dtype);
}

static void reference(const sn_call *call)
{
    const int axis = call->attrs->slice.axis;
    const sn_desc *y = &call->out[0].desc;
    const size_t pitch = run_bytes(y, axis);
    char *to = call->out[0].data;
    int64_t outer = 1;
    for (int i = 0; i < axis; i++)
        outer *= y->shape.dim[i];
    for (int i = 0; i < call->n_in; i++) {
        const char *from = call->in[i].data;
        const size_t run = run_bytes(&call->in[i].desc, axis);
        for (int64_t r = 0; r < outer; r++)
            memcpy(to + (size_t)r * pitch, from + (size_t)r * run, run);
        to += run;
    }
}

static void reference_slice(const sn_call *call)
{
    const sn_slice_attrs *a = &call->attrs->slice;
    const sn_desc *x = &call->in[0].desc;
    const size_t pitch = run_bytes(x, a->axis), run = run_bytes(&call->out[0].desc, a->axis);
    const char *from =
        (const char *)call->in[0].data + pitch / (size_t)x->shape.dim[a->axis] * (size_t)a->start;
    int64_t outer = 1;
    for (int i = 0; i < a->axis; i++)
        outer *= x->shape.dim[i];
    for (int64_t r = 0; r < outer; r++)
        memcpy((char *)call->out[0].data + (size_t)r * run, from + (size_t)r * pitch, run);
}

static bool batch_axis(const sn_attrs *attrs)
{
    return attrs->slice.axis == 0;
}

const sn_op sn_op_row_CONCAT = {.name = "concat",
                                .infer = infer,
                                .grad = grad,
                                .cost = cost,
                                .reference = reference,
                                .mixes_batch = batch_axis};
const sn_op sn_op_row_SLICE = {.name = "slice",
                               .infer = infer_slice,
                               .grad = grad_slice,
                               .cost = cost,
                               .reference = reference_slice,
                               .mixes_batch = batch_axis};
