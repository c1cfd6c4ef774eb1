/* SPDX-License-Identifier: Apache-2.0
 *
 * Zeros around H and W, and cutting them off: each is the other's gradient. */
#include "ops/util.h"

static snug_status need_pads(sn_op_id id, const sn_pad_attrs *a, snug_error *err)
{
    for (int i = 0; i < 4; i++)
        SN_OP_TRY(sn_op_need_range(id, "a border", a->pad[i], 0, INT64_MAX / 8, err));
    return SNUG_OK;
}

static snug_status infer(const sn_attrs *attrs, const sn_desc *in, int n_in, sn_desc *out,
                         int n_out, snug_error *err)
{
    const sn_pad_attrs *a = &attrs->pad;
    SN_OP_TRY(sn_op_arity(SN_OP_PAD2D, in, n_in, out, n_out, err));
    SN_OP_TRY(sn_op_need(SN_OP_PAD2D, in, 0, SN_OP_ANY_DTYPE, 4, err));
    SN_OP_TRY(need_pads(SN_OP_PAD2D, a, err));
    sn_shape y = in[0].shape;
    if (y.dim[1] > INT64_MAX / 4 || y.dim[2] > INT64_MAX / 4)
        return sn_fail(err, SNUG_E_INPUT, "pad2d: x is absurdly large");
    y.dim[1] += a->pad[0] + a->pad[1];
    y.dim[2] += a->pad[2] + a->pad[3];
    return sn_op_set(SN_OP_PAD2D, &out[0], in[0].dtype, &y, err);
}

static snug_status infer_crop(const sn_attrs *attrs, const sn_desc *in, int n_in, sn_desc *out,
                              int n_out, snug_error *err)
{
    const sn_pad_attrs *a = &attrs->pad;
    SN_OP_TRY(sn_op_arity(SN_OP_CROP2D, in, n_in, out, n_out, err));
    SN_OP_TRY(sn_op_need(SN_OP_CROP2D, in, 0, SN_OP_ANY_DTYPE, 4, err));
    SN_OP_TRY(need_pads(SN_OP_CROP2D, a, err));
    sn_shape y = in[0].shape;
    y.dim[1] -= a->pad[0] + a->pad[1];
    y.dim[2] -= a->pad[2] + a->pad[3];
    if (y.dim[1] < 1 || y.dim[2] < 1)
        return sn_fail(err, SNUG_E_INPUT,
                       "crop2d: nothing is left of %" PRId64 " x %" PRId64 " when %" PRId64
                       " rows and %" PRId64 " columns are cut off",
                       in[0].shape.dim[1], in[0].shape.dim[2], a->pad[0] + a->pad[1],
                       a->pad[2] + a->pad[3]);
    return sn_op_set(SN_OP_CROP2D, &out[0], in[0].dtype, &y, err);
}

static snug_status grad(sn_grad *g, snug_error *err)
{
    if (!sn_op_grad_begin(g) || !g->wanted[0])
        return SNUG_OK;
    return sn_op_emit(g, SN_OP_CROP2D, g->attrs, 1, g->dout, &g->din[0], err);
}

static snug_status grad_crop(sn_grad *g, snug_error *err)
{
    if (!sn_op_grad_begin(g) || !g->wanted[0])
        return SNUG_OK;
    return sn_op_emit(g, SN_OP_PAD2D, g->attrs, 1, g->dout, &g->din[0], err);
}

static void cost(const sn_attrs *attrs, const sn_desc *in, int n_in, const sn_desc *out, int n_out,
                 sn_cost *c)
{
    SN_UNUSED(attrs);
    sn_op_cost(0, in, n_in, out, n_out, c);
}

static void reference(const sn_call *call)
{
    const int64_t *pad = call->attrs->pad.pad;
    const sn_operand *x = &call->in[0], *y = &call->out[0];
    const int64_t *xd = x->desc.shape.dim, *yd = y->desc.shape.dim;
    const size_t pixel = (size_t)xd[3] * sn_dtype_bytes(x->desc.dtype);
    memset(y->data, 0, (size_t)(yd[0] * yd[1] * yd[2]) * pixel);
    for (int64_t r = 0; r < xd[0] * xd[1]; r++) {
        int64_t row = r / xd[1] * yd[1] + r % xd[1] + pad[0];
        memcpy((char *)y->data + (size_t)(row * yd[2] + pad[2]) * pixel,
               (const char *)x->data + (size_t)(r * xd[2]) * pixel, (size_t)xd[2] * pixel);
    }
}

static void reference_crop(const sn_call *call)
{
    const int64_t *pad = call->attrs->pad.pad;
    const sn_operand *x = &call->in[0], *y = &call->out[0];
    const int64_t *xd = x->desc.shape.dim, *yd = y->desc.shape.dim;
    const size_t pixel = (size_t)xd[3] * sn_dtype_bytes(x->desc.dtype);
    for (int64_t r = 0; r < yd[0] * yd[1]; r++) {
        int64_t row = r / yd[1] * xd[1] + r % yd[1] + pad[0];
        memcpy((char *)y->data + (size_t)(r * yd[2]) * pixel,
               (const char *)x->data + (size_t)(row * xd[2] + pad[2]) * pixel,
               (size_t)yd[2] * pixel);
    }
}

const sn_op sn_op_row_PAD2D = {
    .name = "pad2d", .infer = infer, .grad = grad, .cost = cost, .reference = reference};
const sn_op sn_op_row_CROP2D = {.name = "crop2d",
                                .infer = infer_crop,
                                .grad = grad_crop,
                                .cost = cost,
                                .reference = reference_crop};
