/* SPDX-License-Identifier: Apache-2.0
 *
 * The same elements in another shape. An outermost dimension of -1 keeps the batch. */
#include "ops/util.h"

static snug_status infer(const sn_attrs *attrs, const sn_desc *in, int n_in, sn_desc *out,
                         int n_out, snug_error *err)
{
    char from[96], to[96];
    uint64_t a = 0, b = 0;
    SN_OP_TRY(sn_op_arity(SN_OP_RESHAPE, in, n_in, out, n_out, err));
    SN_OP_TRY(sn_op_need(SN_OP_RESHAPE, in, 0, SN_OP_ANY_DTYPE, -1, err));
    sn_shape y = attrs->shape.shape;
    if (y.rank > 0 && y.dim[0] == -1)
        y.dim[0] = in[0].shape.dim[0];
    if (sn_shape_count(&y, &a) || sn_shape_count(&in[0].shape, &b) || a != b)
        return sn_fail(err, SNUG_E_INPUT, "reshape: %s has not as many elements as %s",
                       sn_shape_format(to, sizeof to, &y),
                       sn_shape_format(from, sizeof from, &in[0].shape));
    return sn_op_set(SN_OP_RESHAPE, &out[0], in[0].dtype, &y, err);
}

static snug_status grad(sn_grad *g, snug_error *err)
{
    if (!sn_op_grad_begin(g) || !g->wanted[0])
        return SNUG_OK;
    sn_attrs b = {.shape.shape = g->desc(g, g->in[0]).shape};
    if (g->attrs->shape.shape.rank > 0 && g->attrs->shape.shape.dim[0] == -1)
        b.shape.shape.dim[0] = -1;
    return sn_op_emit(g, SN_OP_RESHAPE, &b, 1, g->dout, &g->din[0], err);
}

static void cost(const sn_attrs *attrs, const sn_desc *in, int n_in, const sn_desc *out, int n_out,
                 sn_cost *c)
{
    SN_UNUSED(attrs);
    sn_op_cost(0, in, n_in, out, n_out, c);
}

static void reference(const sn_call *call)
{
    uint64_t bytes = 0;
    if (call->out[0].data != call->in[0].data && !sn_desc_bytes(&call->in[0].desc, &bytes))
        memcpy(call->out[0].data, call->in[0].data, (size_t)bytes);
}

/* Rows of the batch are regrouped unless the outermost dimension stays. */
static bool mixes(const sn_attrs *attrs)
{
    return attrs->shape.shape.rank == 0 || attrs->shape.shape.dim[0] != -1;
}

const sn_op sn_op_row_RESHAPE = {.name = "reshape",
                                 .infer = infer,
                                 .grad = grad,
                                 .cost = cost,
                                 .reference = reference,
                                 .in_place = sn_op_in_place_first,
                                 .mixes_batch = mixes};
