/* SPDX-License-Identifier: Apache-2.0
 *
 * Softmax over the last axis. A NaN, or +infinity, in a row makes the whole row NaN. */
#include "ops/util.h"

#include <math.h>

static snug_status infer(const sn_attrs *attrs, const sn_desc *in, int n_in, sn_desc *out,
                         int n_out, snug_error *err)
{
    SN_UNUSED(attrs);
    SN_OP_TRY(sn_op_arity(SN_OP_SOFTMAX, in, n_in, out, n_out, err));
    SN_OP_TRY(sn_op_need(SN_OP_SOFTMAX, in, 0, SN_F32, -1, err));
    return sn_op_set(SN_OP_SOFTMAX, &out[0], SN_F32, &in[0].shape, err);
}

static snug_status infer_dx(const sn_attrs *attrs, const sn_desc *in, int n_in, sn_desc *out,
                            int n_out, snug_error *err)
{
    SN_UNUSED(attrs);
    SN_OP_TRY(sn_op_arity(SN_OP_SOFTMAX_DX, in, n_in, out, n_out, err));
    SN_OP_TRY(sn_op_need(SN_OP_SOFTMAX_DX, in, 0, SN_F32, -1, err));
    SN_OP_TRY(sn_op_need_shape(SN_OP_SOFTMAX_DX, in, 1, &in[0].shape, err));
    return sn_op_set(SN_OP_SOFTMAX_DX, &out[0], SN_F32, &in[0].shape, err);
}

static snug_status grad(sn_grad *g, snug_error *err)
{
    if (!sn_op_grad_begin(g) || !g->wanted[0])
        return SNUG_OK;
    return sn_op_emit(g, SN_OP_SOFTMAX_DX, NULL, 2, (sn_ref[]){g->out[0], g->dout[0]}, &g->din[0],
                      err);
}

static void cost(const sn_attrs *attrs, const sn_desc *in, int n_in, const sn_desc *out, int n_out,
                 sn_cost *c)
{
    SN_UNUSED(attrs);
    sn_op_cost(10, in, n_in, out, n_out, c);
}

static void reference(const sn_call *call)
{
    const float *x = call->in[0].data;
    float *y = call->out[0].data;
    const int64_t rows = sn_op_rows(&call->in[0].desc.shape);
    const int64_t n = sn_op_last(&call->in[0].desc.shape);
    for (int64_t r = 0; r < rows; r++, x += n, y += n) {
        double top = x[0], sum = 0;
        for (int64_t i = 1; i < n; i++)
            top = (double)x[i] > top || isnan(x[i]) ? (double)x[i] : top;
        for (int64_t i = 0; i < n; i++)
            sum += exp(x[i] - top);
        for (int64_t i = 0; i < n; i++)
            y[i] = (float)(exp(x[i] - top) / sum);
    }
}

static void reference_dx(const sn_call *call)
{
    const float *y = call->in[0].data, *dy = call->in[1].data;
    float *dx = call->out[0].data;
    const int64_t rows = sn_op_rows(&call->in[0].desc.shape);
    const int64_t n = sn_op_last(&call->in[0].desc.shape);
    for (int64_t r = 0; r < rows; r++, y += n, dy += n, dx += n) {
        double dot = 0;
        for (int64_t i = 0; i < n; i++)
            dot += (double)y[i] * (double)dy[i];
        for (int64_t i = 0; i < n; i++)
            dx[i] = (float)((double)y[i] * (dy[i] - dot));
    }
}

const sn_op sn_op_row_SOFTMAX = {
    .name = "softmax", .infer = infer, .grad = grad, .cost = cost, .reference = reference};
const sn_op sn_op_row_SOFTMAX_DX = {.name = "softmax_dx",
                                    .infer = infer_dx,
                                    .grad = sn_op_no_second_gradient,
                                    .cost = cost,
                                    .reference = reference_dx};
