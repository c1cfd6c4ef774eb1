/* SPDX-License-Identifier: Apache-2.0
 *
 * REORDER changes the physical layout, which only a backend sees: here it is a copy. CAST changes
 * the element type: float to integer cuts off towards zero and stays within the type's range. */
#include "ops/util.h"

#include <math.h>

#include "base/half.h"

static snug_status infer(const sn_attrs *attrs, const sn_desc *in, int n_in, sn_desc *out,
                         int n_out, snug_error *err)
{
    SN_UNUSED(attrs);
    SN_OP_TRY(sn_op_arity(SN_OP_REORDER, in, n_in, out, n_out, err));
    SN_OP_TRY(sn_op_need(SN_OP_REORDER, in, 0, SN_OP_ANY_DTYPE, -1, err));
    return sn_op_set(SN_OP_REORDER, &out[0], in[0].dtype, &in[0].shape, err);
}

static snug_status infer_cast(const sn_attrs *attrs, const sn_desc *in, int n_in, sn_desc *out,
                              int n_out, snug_error *err)
{
    SN_OP_TRY(sn_op_arity(SN_OP_CAST, in, n_in, out, n_out, err));
    SN_OP_TRY(sn_op_need(SN_OP_CAST, in, 0, SN_OP_ANY_DTYPE, -1, err));
    SN_OP_TRY(sn_op_need_range(SN_OP_CAST, "its type", (int64_t)attrs->shape.dtype, 0,
                               SN_N_DTYPES - 1, err));
    return sn_op_set(SN_OP_CAST, &out[0], attrs->shape.dtype, &in[0].shape, err);
}

static snug_status grad(sn_grad *g, snug_error *err)
{
    SN_UNUSED(err);
    if (sn_op_grad_begin(g) && g->wanted[0])
        g->din[0] = g->dout[0];
    return SNUG_OK;
}

/* No gradient reaches integers. */
static snug_status grad_cast(sn_grad *g, snug_error *err)
{
    if (!sn_op_grad_begin(g) || !g->wanted[0])
        return SNUG_OK;
    sn_attrs b = {.shape.dtype = g->desc(g, g->in[0]).dtype};
    if (b.shape.dtype == SN_I32 || b.shape.dtype == SN_U8)
        return SNUG_OK;
    return sn_op_emit(g, SN_OP_CAST, &b, 1, g->dout, &g->din[0], err);
}

static void cost(const sn_attrs *attrs, const sn_desc *in, int n_in, const sn_desc *out, int n_out,
                 sn_cost *c)
{
    SN_UNUSED(attrs);
    sn_op_cost(0, in, n_in, out, n_out, c);
}

static void reference(const sn_call *call)
{
    uint64_t bytes;
    if (!sn_desc_bytes(&call->in[0].desc, &bytes))
        memmove(call->out[0].data, call->in[0].data, (size_t)bytes);
}

static float load(const sn_operand *x, int64_t i)
{
    switch (x->desc.dtype) {
    case SN_F16:
        return sn_f16_to_f32(((const uint16_t *)x->data)[i]);
    case SN_BF16:
        return sn_bf16_to_f32(((const uint16_t *)x->data)[i]);
    case SN_I32:
        return (float)((const int32_t *)x->data)[i];
    case SN_U8:
        return (float)((const uint8_t *)x->data)[i];
    case SN_F32:
    case SN_N_DTYPES:
        break;
    }
    return ((const float *)x->data)[i];
}

/* NaN becomes 0. */
static double whole(float v, double lo, double hi)
{
    double t = isnan(v) ? 0 : trunc((double)v);
    return t < lo ? lo : t > hi ? hi : t;
}

static void store(const sn_operand *y, int64_t i, float v)
{
    switch (y->desc.dtype) {
    case SN_F16:
        ((uint16_t *)y->data)[i] = sn_f32_to_f16(v);
        break;
    case SN_BF16:
        ((uint16_t *)y->data)[i] = sn_f32_to_bf16(v);
        break;
    case SN_I32:
        ((int32_t *)y->data)[i] = (int32_t)whole(v, INT32_MIN, INT32_MAX);
        break;
    case SN_U8:
        ((uint8_t *)y->data)[i] = (uint8_t)whole(v, 0, UINT8_MAX);
        break;
    case SN_F32:
    case SN_N_DTYPES:
        ((float *)y->data)[i] = v;
        break;
    }
}

static void reference_cast(const sn_call *call)
{
    if (call->in[0].desc.dtype == call->out[0].desc.dtype) {
        reference(call);
        return;
    }
    const int64_t n = sn_shape_n(&call->in[0].desc.shape);
    for (int64_t i = 0; i < n; i++)
        store(&call->out[0], i, load(&call->in[0], i));
}

const sn_op sn_op_row_REORDER = {
    .name = "reorder", .infer = infer, .grad = grad, .cost = cost, .reference = reference};
const sn_op sn_op_row_CAST = {.name = "cast",
                              .infer = infer_cast,
                              .grad = grad_cast,
                              .cost = cost,
                              .reference = reference_cast};
