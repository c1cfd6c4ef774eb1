/* SPDX-License-Identifier: Apache-2.0
 *
 * Pooling over all of H and W: [N,H,W,C] -> [N,C], or [N,1,1,C] with keepdims. NaN wins a maximum.
 * The gradient of a maximum is split evenly among equal elements, as TensorFlow's reduce_max has
 * it; that of an average needs neither x nor y, only H and W (in_hw). */
#include "ops/util.h"

#include <math.h>

static snug_status infer(const sn_attrs *attrs, const sn_desc *in, int n_in, sn_desc *out,
                         int n_out, snug_error *err)
{
    SN_OP_TRY(sn_op_arity(SN_OP_GLOBAL_POOL, in, n_in, out, n_out, err));
    SN_OP_TRY(sn_op_need(SN_OP_GLOBAL_POOL, in, 0, SN_F32, 4, err));
    const int64_t *x = in[0].shape.dim;
    sn_shape y = {2, {x[0], x[3]}};
    if (attrs->pool.keepdims)
        y = (sn_shape){4, {x[0], 1, 1, x[3]}};
    return sn_op_set(SN_OP_GLOBAL_POOL, &out[0], SN_F32, &y, err);
}

static snug_status infer_dx(const sn_attrs *attrs, const sn_desc *in, int n_in, sn_desc *out,
                            int n_out, snug_error *err)
{
    const sn_pool_attrs *a = &attrs->pool;
    const sn_op_id id = SN_OP_GLOBAL_POOL_DX;
    SN_OP_TRY(sn_op_arity(id, in, n_in, out, n_out, err));
    SN_OP_TRY(sn_op_need(id, in, 2, SN_F32, a->keepdims ? 4 : 2, err));
    const sn_shape *dy = &in[2].shape;
    sn_shape x = {4, {dy->dim[0], a->in_hw[0], a->in_hw[1], sn_op_last(dy)}};
    if (a->kind == SN_POOL_MAX) {
        if (sn_desc_is_absent(&in[0]) || sn_desc_is_absent(&in[1]))
            return sn_fail(err, SNUG_E_INTERNAL, "global_pool_dx: a maximum needs x and y");
        SN_OP_TRY(sn_op_need(id, in, 0, SN_F32, 4, err));
        SN_OP_TRY(sn_op_need_shape(id, in, 1, dy, err));
        x.dim[1] = in[0].shape.dim[1], x.dim[2] = in[0].shape.dim[2];
    }
    SN_OP_TRY(sn_op_need_shape(id, in, 0, &x, err));
    SN_OP_TRY(sn_op_need_range(id, "the height of dx", x.dim[1], 1, INT64_MAX, err));
    SN_OP_TRY(sn_op_need_range(id, "the width of dx", x.dim[2], 1, INT64_MAX, err));
    return sn_op_set(id, &out[0], SN_F32, &x, err);
}

static snug_status grad(sn_grad *g, snug_error *err)
{
    if (!sn_op_grad_begin(g) || !g->wanted[0])
        return SNUG_OK;
    sn_attrs b = *g->attrs;
    sn_desc x = g->desc(g, g->in[0]);
    bool max = b.pool.kind == SN_POOL_MAX;
    b.pool.in_hw[0] = x.shape.dim[1], b.pool.in_hw[1] = x.shape.dim[2];
    return sn_op_emit(
        g, SN_OP_GLOBAL_POOL_DX, &b, 3,
        (sn_ref[]){max ? g->in[0] : SN_NO_REF, max ? g->out[0] : SN_NO_REF, g->dout[0]}, &g->din[0],
        err);
}

static void cost(const sn_attrs *attrs, const sn_desc *in, int n_in, const sn_desc *out, int n_out,
                 sn_cost *c)
{
    SN_UNUSED(attrs);
    sn_op_cost(1, in, n_in, out, n_out, c);
}

static void reference(const sn_call *call)
{
    const float *x = call->in[0].data;
    float *y = call->out[0].data;
    const int64_t *d = call->in[0].desc.shape.dim, hw = d[1] * d[2];
    for (int64_t n = 0; n < d[0]; n++)
        for (int64_t c = 0; c < d[3]; c++) {
            const float *p = x + n * hw * d[3] + c;
            float best = p[0];
            double sum = 0;
            for (int64_t i = 0; i < hw; i++) {
                float v = p[i * d[3]];
                sum += (double)v;
                best = v > best || isnan(v) ? v : best;
            }
            y[n * d[3] + c] =
                call->attrs->pool.kind == SN_POOL_MAX ? best : (float)(sum / (double)hw);
        }
}

static void reference_dx(const sn_call *call)
{
    const bool max = call->attrs->pool.kind == SN_POOL_MAX;
    const float *x = call->in[0].data, *y = call->in[1].data, *dy = call->in[2].data;
    float *dx = call->out[0].data;
    const int64_t *d = call->out[0].desc.shape.dim, hw = d[1] * d[2];
    for (int64_t n = 0; n < d[0]; n++)
        for (int64_t c = 0; c < d[3]; c++) {
            const int64_t at = n * d[3] + c, first = n * hw * d[3] + c;
            int64_t share = max ? 0 : hw;
            for (int64_t i = 0; max && i < hw; i++)
                share += x[first + i * d[3]] == y[at];
            for (int64_t i = 0; i < hw; i++) {
                bool mine = !max || x[first + i * d[3]] == y[at];
                dx[first + i * d[3]] = mine ? (float)((double)dy[at] / (double)share) : 0.0f;
            }
        }
}

const sn_op sn_op_row_GLOBAL_POOL = {
    .name = "global_pool", .infer = infer, .grad = grad, .cost = cost, .reference = reference};
const sn_op sn_op_row_GLOBAL_POOL_DX = {.name = "global_pool_dx",
                                        .infer = infer_dx,
                                        .grad = sn_op_no_second_gradient,
                                        .cost = cost,
                                        .reference = reference_dx};
