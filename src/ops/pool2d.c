/* SPDX-License-Identifier: Apache-2.0
 *
 * Max and average pooling, [N,H,W,C]. Padding never wins a maximum and is not counted in an
 * average: the divisor is the number of real elements in the window. NaN wins over numbers; of
 * equal elements the first in row-major order wins, and takes the gradient. */
#include "ops/util.h"

#include <math.h>

static sn_dtype index_dtype(const sn_pool_attrs *a)
{
    return a->window[0] * a->window[1] <= 255 ? SN_U8 : SN_I32;
}

static snug_status output_hw(sn_op_id id, const sn_pool_attrs *a, const int64_t *in_hw,
                             int64_t *out_hw, snug_error *err)
{
    for (int i = 0; i < 2; i++) {
        SN_OP_TRY(sn_op_window(id, i ? "width" : "height", in_hw[i], a->window[i], a->stride[i], 1,
                               a->pad[2 * i], a->pad[2 * i + 1], &out_hw[i], err));
        int64_t pad = SN_MAX(a->pad[2 * i], a->pad[2 * i + 1]);
        if (pad >= a->window[i])
            return sn_fail(err, SNUG_E_INPUT,
                           "%s: a padding of %" PRId64 " leaves windows of %" PRId64
                           " without an element",
                           sn_op_of(id)->name, pad, a->window[i]);
    }
    return SNUG_OK;
}

static snug_status infer(const sn_attrs *attrs, const sn_desc *in, int n_in, sn_desc *out,
                         int n_out, snug_error *err)
{
    const sn_pool_attrs *a = &attrs->pool;
    SN_OP_TRY(sn_op_arity(SN_OP_POOL2D, in, n_in, out, n_out, err));
    SN_OP_TRY(sn_op_need(SN_OP_POOL2D, in, 0, SN_F32, 4, err));
    sn_shape y = in[0].shape;
    SN_OP_TRY(output_hw(SN_OP_POOL2D, a, &in[0].shape.dim[1], &y.dim[1], err));
    SN_OP_TRY(sn_op_set(SN_OP_POOL2D, &out[0], SN_F32, &y, err));
    if (a->kind == SN_POOL_MAX && a->save_index)
        return sn_op_set(SN_OP_POOL2D, &out[1], index_dtype(a), &y, err);
    return SNUG_OK;
}

static snug_status infer_dx(const sn_attrs *attrs, const sn_desc *in, int n_in, sn_desc *out,
                            int n_out, snug_error *err)
{
    const sn_pool_attrs *a = &attrs->pool;
    const sn_op_id id = SN_OP_POOL2D_DX;
    int64_t hw[2];
    SN_OP_TRY(sn_op_arity(id, in, n_in, out, n_out, err));
    SN_OP_TRY(sn_op_need(id, in, 0, SN_F32, 4, err));
    sn_shape x = in[0].shape;
    x.dim[1] = a->in_hw[0], x.dim[2] = a->in_hw[1];
    SN_OP_TRY(output_hw(id, a, a->in_hw, hw, err));
    if (hw[0] != in[0].shape.dim[1] || hw[1] != in[0].shape.dim[2])
        return sn_fail(err, SNUG_E_INPUT,
                       "pool2d_dx: dx %" PRId64 " x %" PRId64 " goes with dy %" PRId64 " x %" PRId64
                       ", not %" PRId64 " x %" PRId64,
                       x.dim[1], x.dim[2], hw[0], hw[1], in[0].shape.dim[1], in[0].shape.dim[2]);
    if (a->kind == SN_POOL_MAX) {
        if (sn_desc_is_absent(&in[1]))
            return sn_fail(err, SNUG_E_INTERNAL, "pool2d_dx: max pooling lacks its saved index");
        SN_OP_TRY(sn_op_need(id, in, 1, index_dtype(a), 4, err));
        if (!sn_shape_eq(&in[1].shape, &in[0].shape))
            return sn_fail(err, SNUG_E_INPUT, "pool2d_dx: index and dy have different shapes");
    }
    return sn_op_set(id, &out[0], SN_F32, &x, err);
}

static snug_status grad(sn_grad *g, snug_error *err)
{
    if (!sn_op_grad_begin(g) || !g->wanted[0])
        return SNUG_OK;
    sn_attrs b = *g->attrs;
    sn_desc x = g->desc(g, g->in[0]);
    sn_ref index = g->n_out > 1 && b.pool.kind == SN_POOL_MAX ? g->out[1] : SN_NO_REF;
    if (b.pool.kind == SN_POOL_MAX && index == SN_NO_REF)
        return sn_fail(err, SNUG_E_INTERNAL,
                       "max pooling whose gradient is wanted must save its index");
    b.pool.in_hw[0] = x.shape.dim[1], b.pool.in_hw[1] = x.shape.dim[2];
    return sn_op_emit(g, SN_OP_POOL2D_DX, &b, 2, (sn_ref[]){g->dout[0], index}, &g->din[0], err);
}

static void cost(const sn_attrs *attrs, const sn_desc *in, int n_in, const sn_desc *out, int n_out,
                 sn_cost *c)
{
    sn_op_cost(1, in, n_in, out, n_out, c);
    const sn_desc *small = sn_shape_n(&in[0].shape) < sn_shape_n(&out[0].shape) ? &in[0] : &out[0];
    c->flops =
        (double)(attrs->pool.window[0] * attrs->pool.window[1]) * (double)sn_shape_n(&small->shape);
}

/* ---- references ------------------------------------------------------------------------------ */

typedef struct window {
    int64_t y0, y1, x0, x1; /* real elements, half open */
    int64_t top, left;      /* of the whole window, may be negative */
} window;

static window window_of(const sn_pool_attrs *a, int64_t h, int64_t w, int64_t oy, int64_t ox)
{
    window k = {.top = oy * a->stride[0] - a->pad[0], .left = ox * a->stride[1] - a->pad[2]};
    k.y0 = SN_MAX(k.top, 0), k.y1 = SN_MIN(k.top + a->window[0], h);
    k.x0 = SN_MAX(k.left, 0), k.x1 = SN_MIN(k.left + a->window[1], w);
    return k;
}

static void put_index(const sn_operand *index, int64_t at, int64_t value)
{
    if (index->data && index->desc.dtype == SN_U8)
        ((uint8_t *)index->data)[at] = (uint8_t)value;
    else if (index->data)
        ((int32_t *)index->data)[at] = (int32_t)value;
}

static int64_t index_at(const sn_operand *index, int64_t at)
{
    return index->desc.dtype == SN_U8 ? ((const uint8_t *)index->data)[at]
                                      : ((const int32_t *)index->data)[at];
}

static float largest(const sn_pool_attrs *a, const window *k, const float *x, int64_t w, int64_t c,
                     int64_t *index)
{
    float best = x[(k->y0 * w + k->x0) * c];
    *index = (k->y0 - k->top) * a->window[1] + k->x0 - k->left;
    for (int64_t iy = k->y0; iy < k->y1; iy++)
        for (int64_t ix = k->x0; ix < k->x1; ix++) {
            float v = x[(iy * w + ix) * c];
            if (v > best || (isnan(v) && !isnan(best))) {
                best = v;
                *index = (iy - k->top) * a->window[1] + ix - k->left;
            }
        }
    return best;
}

static float mean(const window *k, const float *x, int64_t w, int64_t c)
{
    double sum = 0;
    for (int64_t iy = k->y0; iy < k->y1; iy++)
        for (int64_t ix = k->x0; ix < k->x1; ix++)
            sum += (double)x[(iy * w + ix) * c];
    return (float)(sum / (double)((k->y1 - k->y0) * (k->x1 - k->x0)));
}

static void reference(const sn_call *call)
{
    const sn_pool_attrs *a = &call->attrs->pool;
    const float *x = call->in[0].data;
    float *y = call->out[0].data;
    const int64_t *xd = call->in[0].desc.shape.dim, *yd = call->out[0].desc.shape.dim;
    const int64_t n_c = xd[3];
    for (int64_t p = 0; p < yd[0] * yd[1] * yd[2]; p++) {
        const float *sample = x + p / (yd[1] * yd[2]) * xd[1] * xd[2] * n_c;
        window k = window_of(a, xd[1], xd[2], p / yd[2] % yd[1], p % yd[2]);
        for (int64_t c = 0; c < n_c; c++) {
            int64_t index;
            if (a->kind == SN_POOL_AVERAGE) {
                y[p * n_c + c] = mean(&k, sample + c, xd[2], n_c);
            } else {
                y[p * n_c + c] = largest(a, &k, sample + c, xd[2], n_c, &index);
                put_index(&call->out[1], p * n_c + c, index);
            }
        }
    }
}

/* What element (iy, ix) of dx gets from position (oy, ox) of dy. */
static double share(const sn_call *call, int64_t n, int64_t oy, int64_t ox, int64_t iy, int64_t ix,
                    int64_t c)
{
    const sn_pool_attrs *a = &call->attrs->pool;
    const int64_t *yd = call->in[0].desc.shape.dim, *xd = call->out[0].desc.shape.dim;
    const int64_t at = ((n * yd[1] + oy) * yd[2] + ox) * yd[3] + c;
    const double dy = ((const float *)call->in[0].data)[at];
    window k = window_of(a, xd[1], xd[2], oy, ox);
    if (a->kind == SN_POOL_AVERAGE)
        return dy / (double)((k.y1 - k.y0) * (k.x1 - k.x0));
    int64_t mine = (iy - k.top) * a->window[1] + ix - k.left;
    return index_at(&call->in[1], at) == mine ? dy : 0;
}

/* First and last output position whose window covers `in`. */
static void covering(int64_t in, int64_t before, int64_t reach, int64_t stride, int64_t n_out,
                     int64_t *first, int64_t *last)
{
    int64_t t = in + before;
    *first = t < reach ? 0 : (t - reach) / stride + 1;
    *last = SN_MIN(t / stride, n_out - 1);
}

static void reference_dx(const sn_call *call)
{
    const sn_pool_attrs *a = &call->attrs->pool;
    const int64_t *yd = call->in[0].desc.shape.dim, *xd = call->out[0].desc.shape.dim;
    float *dx = call->out[0].data;
    for (int64_t p = 0; p < xd[0] * xd[1] * xd[2]; p++) {
        int64_t n = p / (xd[1] * xd[2]), iy = p / xd[2] % xd[1], ix = p % xd[2];
        int64_t y0, y1, x0, x1;
        covering(iy, a->pad[0], a->window[0], a->stride[0], yd[1], &y0, &y1);
        covering(ix, a->pad[2], a->window[1], a->stride[1], yd[2], &x0, &x1);
        for (int64_t c = 0; c < xd[3]; c++) {
            double sum = 0;
            for (int64_t oy = y0; oy <= y1; oy++)
                for (int64_t ox = x0; ox <= x1; ox++)
                    sum += share(call, n, oy, ox, iy, ix, c);
            dx[p * xd[3] + c] = (float)sum;
        }
    }
}

const sn_op sn_op_row_POOL2D = {
    .name = "pool2d", .infer = infer, .grad = grad, .cost = cost, .reference = reference};
const sn_op sn_op_row_POOL2D_DX = {.name = "pool2d_dx",
                                   .infer = infer_dx,
                                   .grad = sn_op_no_second_gradient,
                                   .cost = cost,
                                   .reference = reference_dx};
