/* SPDX-License-Identifier: Apache-2.0
 *
 * A bias [C] added over the last axis, and its gradient: the sum over all other axes. */
#include "ops/util.h"

static snug_status infer(const sn_attrs *attrs, const sn_desc *in, int n_in, sn_desc *out,
                         int n_out, snug_error *err)
{
    const sn_op_id id = SN_OP_BIAS_ADD;
    SN_UNUSED(attrs);
    SN_OP_TRY(sn_op_arity(id, in, n_in, out, n_out, err));
    SN_OP_TRY(sn_op_need(id, in, 0, SN_F32, -1, err));
    SN_OP_TRY(sn_op_need_vector(id, in, 1, sn_op_last(&in[0].shape), err));
    return sn_op_set(id, &out[0], SN_F32, &in[0].shape, err);
}

static snug_status infer_grad(const sn_attrs *attrs, const sn_desc *in, int n_in, sn_desc *out,
                              int n_out, snug_error *err)
{
    const sn_op_id id = SN_OP_BIAS_GRAD;
    SN_UNUSED(attrs);
    SN_OP_TRY(sn_op_arity(id, in, n_in, out, n_out, err));
    SN_OP_TRY(sn_op_need(id, in, 0, SN_F32, -1, err));
    sn_shape bias = {1, {sn_op_last(&in[0].shape)}};
    return sn_op_set(id, &out[0], SN_F32, &bias, err);
}

static snug_status grad(sn_grad *g, snug_error *err)
{
    if (!sn_op_grad_begin(g))
        return SNUG_OK;
    if (g->wanted[0])
        g->din[0] = g->dout[0];
    if (g->wanted[1])
        return sn_op_emit(g, SN_OP_BIAS_GRAD, NULL, 1, g->dout, &g->din[1], err);
    return SNUG_OK;
}

static void cost(const sn_attrs *attrs, const sn_desc *in, int n_in, const sn_desc *out, int n_out,
                 sn_cost *c)
{
    SN_UNUSED(attrs);
    sn_op_cost(1, in, n_in, out, n_out, c);
}

static void reference(const sn_call *call)
{
    const float *x = call->in[0].data, *bias = call->in[1].data;
    float *y = call->out[0].data;
    const int64_t rows = sn_op_rows(&call->in[0].desc.shape), c = call->in[1].desc.shape.dim[0];
    for (int64_t r = 0; r < rows; r++)
        for (int64_t k = 0; k < c; k++)
            y[r * c + k] = x[r * c + k] + bias[k];
}

static void reference_grad(const sn_call *call)
{
    const float *dy = call->in[0].data;
    float *dbias = call->out[0].data;
    const int64_t rows = sn_op_rows(&call->in[0].desc.shape), c = call->out[0].desc.shape.dim[0];
    for (int64_t k = 0; k < c; k++) {
        double sum = 0;
        for (int64_t r = 0; r < rows; r++)
            sum += (double)dy[r * c + k];
        dbias[k] = (float)sum;
    }
}

const sn_op sn_op_row_BIAS_ADD = {.name = "bias_add",
                                  .infer = infer,
                                  .grad = grad,
                                  .cost = cost,
                                  .reference = reference,
                                  .in_place = sn_op_in_place_first};
const sn_op sn_op_row_BIAS_GRAD = {.name = "bias_grad",
                                   .infer = infer_grad,
                                   .grad = sn_op_no_second_gradient,
                                   .cost = cost,
                                   .reference = reference_grad,
                                   .mixes_batch = sn_op_mixes};
