/* SPDX-License-Identifier: Apache-2.0
 *
 * y = a op b with numpy's broadcasting, and what its gradient needs. A maximum gives its gradient
 * to a where a >= b, as TensorFlow does; a NaN on either side is the maximum. */
#include "ops/util.h"

#include <math.h>

static snug_status infer_pair(sn_op_id id, const sn_desc *in, sn_shape *y, snug_error *err)
{
    char a[96], b[96];
    for (int i = 0; i < 2; i++)
        if (in[i].shape.rank != 0 || in[i].dtype != SN_F32)
            SN_OP_TRY(sn_op_need(id, in, i, SN_F32, -1, err));
    if (!sn_shape_broadcast(y, &in[0].shape, &in[1].shape))
        return sn_fail(err, SNUG_E_INPUT, "%s: a %s and b %s do not broadcast", sn_op_of(id)->name,
                       sn_shape_format(a, sizeof a, &in[0].shape),
                       sn_shape_format(b, sizeof b, &in[1].shape));
    return SNUG_OK;
}

static snug_status infer(const sn_attrs *attrs, const sn_desc *in, int n_in, sn_desc *out,
                         int n_out, snug_error *err)
{
    sn_shape y;
    SN_OP_TRY(sn_op_arity(SN_OP_BINARY, in, n_in, out, n_out, err));
    SN_OP_TRY(sn_op_need_act(SN_OP_BINARY, &attrs->binary.act, true, err));
    SN_OP_TRY(infer_pair(SN_OP_BINARY, in, &y, err));
    return sn_op_set(SN_OP_BINARY, &out[0], SN_F32, &y, err);
}

static snug_status infer_maximum(const sn_attrs *attrs, const sn_desc *in, int n_in, sn_desc *out,
                                 int n_out, snug_error *err)
{
    sn_shape y;
    SN_UNUSED(attrs);
    SN_OP_TRY(sn_op_arity(SN_OP_MAXIMUM_DX, in, n_in, out, n_out, err));
    SN_OP_TRY(infer_pair(SN_OP_MAXIMUM_DX, in, &y, err));
    SN_OP_TRY(sn_op_need_shape(SN_OP_MAXIMUM_DX, in, 2, &y, err));
    SN_OP_TRY(sn_op_set(SN_OP_MAXIMUM_DX, &out[0], SN_F32, &y, err));
    return sn_op_set(SN_OP_MAXIMUM_DX, &out[1], SN_F32, &y, err);
}

static snug_status infer_reduce(const sn_attrs *attrs, const sn_desc *in, int n_in, sn_desc *out,
                                int n_out, snug_error *err)
{
    char from[96], to[96];
    SN_OP_TRY(sn_op_arity(SN_OP_REDUCE_TO, in, n_in, out, n_out, err));
    SN_OP_TRY(sn_op_need(SN_OP_REDUCE_TO, in, 0, SN_F32, -1, err));
    sn_shape y = attrs->shape.shape, both;
    if (y.rank > 0 && y.dim[0] == -1)
        y.dim[0] = in[0].shape.dim[0];
    if (!sn_shape_broadcast(&both, &y, &in[0].shape) || !sn_shape_eq(&both, &in[0].shape))
        return sn_fail(err, SNUG_E_INPUT, "reduce_to: %s cannot be summed to %s",
                       sn_shape_format(from, sizeof from, &in[0].shape),
                       sn_shape_format(to, sizeof to, &y));
    return sn_op_set(SN_OP_REDUCE_TO, &out[0], SN_F32, &y, err);
}

/* ---- gradients ------------------------------------------------------------------------------- */

static snug_status emit_binary(sn_grad *g, sn_binary_kind kind, sn_ref a, sn_ref b, sn_ref *out,
                               snug_error *err)
{
    sn_attrs attrs = {.binary.kind = kind};
    return sn_op_emit(g, SN_OP_BINARY, &attrs, 2, (sn_ref[]){a, b}, out, err);
}

static snug_status emit_negative(sn_grad *g, sn_ref x, sn_ref *out, snug_error *err)
{
    sn_attrs attrs = {.scalar = {.kind = SN_SCALAR_MUL, .value = -1}};
    return sn_op_emit(g, SN_OP_SCALAR, &attrs, 1, &x, out, err);
}

/* -(dy * (a/b)) / b, from the operands as they were before a fused activation */
static snug_status emit_divisor(sn_grad *g, sn_ref dy, sn_ref *out, snug_error *err)
{
    sn_ref q, r;
    SN_OP_TRY(emit_binary(g, SN_BINARY_DIV, g->in[0], g->in[1], &q, err));
    SN_OP_TRY(emit_binary(g, SN_BINARY_DIV, q, g->in[1], &r, err));
    SN_OP_TRY(emit_binary(g, SN_BINARY_MUL, dy, r, &q, err));
    return emit_negative(g, q, out, err);
}

/* The gradient of operand i in y's shape. */
static snug_status emit_operand(sn_grad *g, int i, sn_ref dy, sn_ref *out, snug_error *err)
{
    *out = dy;
    switch (g->attrs->binary.kind) {
    case SN_BINARY_SUB:
        return i == 1 ? emit_negative(g, dy, out, err) : SNUG_OK;
    case SN_BINARY_MUL:
        return emit_binary(g, SN_BINARY_MUL, dy, g->in[1 - i], out, err);
    case SN_BINARY_DIV:
        return i == 0 ? emit_binary(g, SN_BINARY_DIV, dy, g->in[1], out, err)
                      : emit_divisor(g, dy, out, err);
    case SN_BINARY_ADD:
    case SN_BINARY_MAX:
        break;
    }
    return SNUG_OK;
}

static snug_status grad(sn_grad *g, snug_error *err)
{
    sn_ref dy, full[2] = {SN_NO_REF, SN_NO_REF};
    if (!sn_op_grad_begin(g) || (!g->wanted[0] && !g->wanted[1]))
        return SNUG_OK;
    SN_OP_TRY(sn_op_emit_act_dx(g, &g->attrs->binary.act, g->out[0], g->dout[0], &dy, err));
    if (g->attrs->binary.kind == SN_BINARY_MAX) {
        sn_attrs b = {.binary.kind = SN_BINARY_MAX};
        SN_OP_TRY(g->emit(g, SN_OP_MAXIMUM_DX, &b, 3, (sn_ref[]){g->in[0], g->in[1], dy}, 2,
                          g->wanted, full, err));
    }
    for (int i = 0; i < 2; i++) {
        if (!g->wanted[i])
            continue;
        if (g->attrs->binary.kind != SN_BINARY_MAX)
            SN_OP_TRY(emit_operand(g, i, dy, &full[i], err));
        SN_OP_TRY(sn_op_emit_reduce_to(g, full[i], g->in[i], &g->din[i], err));
    }
    return SNUG_OK;
}

/* A sum is broadcast back: x of zeros in the full shape, plus dy. */
static snug_status grad_reduce(sn_grad *g, snug_error *err)
{
    sn_ref zeros;
    sn_attrs times = {.scalar = {.kind = SN_SCALAR_MUL, .value = 0}};
    if (!sn_op_grad_begin(g) || !g->wanted[0])
        return SNUG_OK;
    SN_OP_TRY(sn_op_emit(g, SN_OP_SCALAR, &times, 1, &g->in[0], &zeros, err));
    return emit_binary(g, SN_BINARY_ADD, zeros, g->dout[0], &g->din[0], err);
}

static void cost(const sn_attrs *attrs, const sn_desc *in, int n_in, const sn_desc *out, int n_out,
                 sn_cost *c)
{
    SN_UNUSED(attrs);
    sn_op_cost(1, in, n_in, out, n_out, c);
}

/* ---- references ------------------------------------------------------------------------------ */

/* Strides, in elements, of `part` along the axes of `whole`; 0 where it is broadcast. */
static void strides_of(const sn_shape *whole, const sn_shape *part, int64_t stride[SN_MAX_RANK])
{
    int64_t step = 1;
    for (int i = whole->rank - 1; i >= 0; i--) {
        int k = i - (whole->rank - part->rank);
        int64_t d = k < 0 ? 1 : part->dim[k];
        stride[i] = d == 1 ? 0 : step;
        step *= d;
    }
}

static int64_t offset_of(const sn_shape *whole, const int64_t stride[SN_MAX_RANK], int64_t i)
{
    int64_t at = 0;
    for (int axis = whole->rank - 1; axis >= 0; axis--) {
        at += i % whole->dim[axis] * stride[axis];
        i /= whole->dim[axis];
    }
    return at;
}

static bool first_is_larger(float a, float b)
{
    return a >= b || isnan(a);
}

static float combine(sn_binary_kind kind, float a, float b)
{
    switch (kind) {
    case SN_BINARY_ADD:
        return a + b;
    case SN_BINARY_SUB:
        return a - b;
    case SN_BINARY_MUL:
        return a * b;
    case SN_BINARY_DIV:
        return a / b;
    case SN_BINARY_MAX:
        break;
    }
    return first_is_larger(a, b) ? a : b;
}

static void reference(const sn_call *call)
{
    const sn_binary_attrs *attrs = &call->attrs->binary;
    const float *a = call->in[0].data, *b = call->in[1].data;
    const sn_shape *shape = &call->out[0].desc.shape;
    float *y = call->out[0].data;
    int64_t sa[SN_MAX_RANK], sb[SN_MAX_RANK];
    strides_of(shape, &call->in[0].desc.shape, sa);
    strides_of(shape, &call->in[1].desc.shape, sb);
    const int64_t n = sn_shape_n(shape);
    for (int64_t i = 0; i < n; i++)
        y[i] = sn_op_fused(&attrs->act, combine(attrs->kind, a[offset_of(shape, sa, i)],
                                                b[offset_of(shape, sb, i)]));
}

static void reference_maximum(const sn_call *call)
{
    const float *a = call->in[0].data, *b = call->in[1].data, *dy = call->in[2].data;
    const sn_shape *shape = &call->in[2].desc.shape;
    float *da = call->out[0].data, *db = call->out[1].data;
    int64_t sa[SN_MAX_RANK], sb[SN_MAX_RANK];
    strides_of(shape, &call->in[0].desc.shape, sa);
    strides_of(shape, &call->in[1].desc.shape, sb);
    const int64_t n = sn_shape_n(shape);
    for (int64_t i = 0; i < n; i++) {
        bool first = first_is_larger(a[offset_of(shape, sa, i)], b[offset_of(shape, sb, i)]);
        float d = dy[i];
        if (da)
            da[i] = first ? d : 0.0f;
        if (db)
            db[i] = first ? 0.0f : d;
    }
}

static void reference_reduce(const sn_call *call)
{
    const float *x = call->in[0].data;
    const sn_shape *from = &call->in[0].desc.shape, *to = &call->out[0].desc.shape;
    float *y = call->out[0].data;
    double *sums = call->workspace;
    int64_t stride[SN_MAX_RANK];
    strides_of(from, to, stride);
    const int64_t n = sn_shape_n(from), n_to = sn_shape_n(to);
    for (int64_t i = 0; i < n_to; i++)
        sums[i] = 0;
    for (int64_t i = 0; i < n; i++)
        sums[offset_of(from, stride, i)] += (double)x[i];
    for (int64_t i = 0; i < n_to; i++)
        y[i] = (float)sums[i];
}

static uint64_t workspace_reduce(const sn_attrs *attrs, const sn_desc *in, int n_in)
{
    sn_shape y = attrs->shape.shape;
    SN_UNUSED(n_in);
    if (y.rank > 0 && y.dim[0] == -1)
        y.dim[0] = in[0].shape.dim[0];
    return (uint64_t)sn_shape_n(&y) * sizeof(double);
}

static int in_place_maximum(const sn_attrs *attrs, int index)
{
    SN_UNUSED(attrs);
    return index == 0 ? 2 : -1;
}

static bool reduce_mixes(const sn_attrs *attrs)
{
    return attrs->shape.shape.rank == 0 || attrs->shape.shape.dim[0] != -1;
}

const sn_op sn_op_row_BINARY = {.name = "binary",
                                .infer = infer,
                                .grad = grad,
                                .cost = cost,
                                .reference = reference,
                                .in_place = sn_op_in_place_first};
const sn_op sn_op_row_MAXIMUM_DX = {.name = "maximum_dx",
                                    .infer = infer_maximum,
                                    .grad = sn_op_no_second_gradient,
                                    .cost = cost,
                                    .reference = reference_maximum,
                                    .in_place = in_place_maximum};
const sn_op sn_op_row_REDUCE_TO = {.name = "reduce_to",
                                   .infer = infer_reduce,
                                   .grad = grad_reduce,
                                   .cost = cost,
                                   .reference = reference_reduce,
                                   .reference_workspace = workspace_reduce,
                                   .mixes_batch = reduce_mixes};
