/* SPDX-License-Identifier: Apache-2.0
 *
 * A tensor and a number, rounded after each operation. */
#include "ops/util.h"

static snug_status infer(const sn_attrs *attrs, const sn_desc *in, int n_in, sn_desc *out,
                         int n_out, snug_error *err)
{
    SN_OP_TRY(sn_op_arity(SN_OP_SCALAR, in, n_in, out, n_out, err));
    SN_OP_TRY(sn_op_need_range(SN_OP_SCALAR, "its kind", (int64_t)attrs->scalar.kind, 0,
                               SN_SCALAR_RDIV_DX, err));
    if (in[0].shape.rank != 0 || in[0].dtype != SN_F32)
        SN_OP_TRY(sn_op_need(SN_OP_SCALAR, in, 0, SN_F32, -1, err));
    return sn_op_set(SN_OP_SCALAR, &out[0], SN_F32, &in[0].shape, err);
}

static snug_status grad(sn_grad *g, snug_error *err)
{
    sn_attrs b = {.scalar = {.kind = SN_SCALAR_MUL, .value = g->attrs->scalar.value}};
    sn_ref factor;
    if (!sn_op_grad_begin(g) || !g->wanted[0])
        return SNUG_OK;
    switch (g->attrs->scalar.kind) {
    case SN_SCALAR_ADD:
    case SN_SCALAR_SUB:
        g->din[0] = g->dout[0];
        return SNUG_OK;
    case SN_SCALAR_DIV:
        b.scalar.kind = SN_SCALAR_DIV;
        break;
    case SN_SCALAR_RSUB:
        b.scalar.value = -1;
        break;
    case SN_SCALAR_RDIV:
        b.scalar.kind = SN_SCALAR_RDIV_DX;
        SN_OP_TRY(sn_op_emit(g, SN_OP_SCALAR, &b, 1, &g->in[0], &factor, err));
        b = (sn_attrs){.binary.kind = SN_BINARY_MUL};
        return sn_op_emit(g, SN_OP_BINARY, &b, 2, (sn_ref[]){g->dout[0], factor}, &g->din[0], err);
    case SN_SCALAR_RDIV_DX:
        return sn_op_no_second_gradient(g, err);
    case SN_SCALAR_MUL:
    case SN_SCALAR_AFFINE:
        break;
    }
    return sn_op_emit(g, SN_OP_SCALAR, &b, 1, g->dout, &g->din[0], err);
}

static void cost(const sn_attrs *attrs, const sn_desc *in, int n_in, const sn_desc *out, int n_out,
                 sn_cost *c)
{
    sn_op_cost(attrs->scalar.kind == SN_SCALAR_AFFINE ? 2 : 1, in, n_in, out, n_out, c);
}

static float combine(const sn_scalar_attrs *a, float x)
{
    switch (a->kind) {
    case SN_SCALAR_ADD:
        return x + a->value;
    case SN_SCALAR_MUL:
        return x * a->value;
    case SN_SCALAR_DIV:
        return x / a->value;
    case SN_SCALAR_SUB:
        return x - a->value;
    case SN_SCALAR_RSUB:
        return a->value - x;
    case SN_SCALAR_RDIV:
        return a->value / x;
    case SN_SCALAR_AFFINE:
        return x * a->value + a->offset;
    case SN_SCALAR_RDIV_DX:
        break;
    }
    return -a->value / (x * x);
}

static void reference(const sn_call *call)
{
    const float *x = call->in[0].data;
    float *y = call->out[0].data;
    const int64_t n = sn_shape_n(&call->in[0].desc.shape);
    for (int64_t i = 0; i < n; i++)
        y[i] = combine(&call->attrs->scalar, x[i]);
}

const sn_op sn_op_row_SCALAR = {.name = "scalar",
                                .infer = infer,
                                .grad = grad,
                                .cost = cost,
                                .reference = reference,
                                .in_place = sn_op_in_place_first};
