/* SPDX-License-Identifier: Apache-2.0
 *
 * Axes in another order; the batch stays the first. */
#include "ops/util.h"

static snug_status infer(const sn_attrs *attrs, const sn_desc *in, int n_in, sn_desc *out,
                         int n_out, snug_error *err)
{
    const int *perm = attrs->shape.perm;
    unsigned seen = 0;
    SN_OP_TRY(sn_op_arity(SN_OP_PERMUTE, in, n_in, out, n_out, err));
    SN_OP_TRY(sn_op_need(SN_OP_PERMUTE, in, 0, SN_OP_ANY_DTYPE, -1, err));
    sn_shape y = in[0].shape;
    for (int i = 0; i < y.rank; i++) {
        if (perm[i] < 0 || perm[i] >= y.rank || seen >> perm[i] & 1)
            return sn_fail(err, SNUG_E_INPUT, "permute: axis %d of the result is %d of %d", i,
                           perm[i], y.rank);
        seen |= 1u << perm[i];
        y.dim[i] = in[0].shape.dim[perm[i]];
    }
    if (perm[0] != 0)
        return sn_fail(err, SNUG_E_INPUT, "permute: the batch must stay the first axis");
    return sn_op_set(SN_OP_PERMUTE, &out[0], in[0].dtype, &y, err);
}

static snug_status grad(sn_grad *g, snug_error *err)
{
    sn_attrs b = {0};
    if (!sn_op_grad_begin(g) || !g->wanted[0])
        return SNUG_OK;
    int rank = g->desc(g, g->in[0]).shape.rank;
    for (int i = 0; i < rank; i++)
        b.shape.perm[g->attrs->shape.perm[i]] = i;
    return sn_op_emit(g, SN_OP_PERMUTE, &b, 1, g->dout, &g->din[0], err);
}

static void cost(const sn_attrs *attrs, const sn_desc *in, int n_in, const sn_desc *out, int n_out,
                 sn_cost *c)
{
    SN_UNUSED(attrs);
    sn_op_cost(0, in, n_in, out, n_out, c);
}

static void reference(const sn_call *call)
{
    const sn_shape *x = &call->in[0].desc.shape, *y = &call->out[0].desc.shape;
    const size_t bytes = sn_dtype_bytes(call->in[0].desc.dtype);
    const char *from = call->in[0].data;
    char *to = call->out[0].data;
    int64_t stride[SN_MAX_RANK], step = 1;
    for (int i = x->rank - 1; i >= 0; i--) {
        stride[i] = step;
        step *= x->dim[i];
    }
    const int64_t n = sn_shape_n(y);
    for (int64_t i = 0; i < n; i++) {
        int64_t at = 0, rest = i;
        for (int axis = y->rank - 1; axis >= 0; axis--) {
            at += rest % y->dim[axis] * stride[call->attrs->shape.perm[axis]];
            rest /= y->dim[axis];
        }
        memcpy(to + (size_t)i * bytes, from + (size_t)at * bytes, bytes);
    }
}

const sn_op sn_op_row_PERMUTE = {
    .name = "permute", .infer = infer, .grad = grad, .cost = cost, .reference = reference};
