/* SPDX-License-Identifier: Apache-2.0
 *
 * Enlarging H and W by whole factors: nearest, or bilinear with half-pixel centres in float32 as
 * tf.image.resize computes it. */
#include "ops/util.h"

#include <math.h>

static snug_status need_factors(sn_op_id id, const sn_upsample_attrs *a, snug_error *err)
{
    for (int i = 0; i < 2; i++)
        SN_OP_TRY(sn_op_need_range(id, "a factor", a->factor[i], 1, 1 << 20, err));
    return SNUG_OK;
}

static snug_status infer(const sn_attrs *attrs, const sn_desc *in, int n_in, sn_desc *out,
                         int n_out, snug_error *err)
{
    const sn_op_id id = SN_OP_UPSAMPLE2D;
    SN_OP_TRY(sn_op_arity(id, in, n_in, out, n_out, err));
    SN_OP_TRY(sn_op_need(id, in, 0, SN_F32, 4, err));
    SN_OP_TRY(need_factors(id, &attrs->upsample, err));
    sn_shape y = in[0].shape;
    for (int i = 0; i < 2; i++)
        if (__builtin_mul_overflow(y.dim[1 + i], attrs->upsample.factor[i], &y.dim[1 + i]))
            return sn_fail(err, SNUG_E_INPUT, "upsample2d: its result is absurdly large");
    return sn_op_set(id, &out[0], SN_F32, &y, err);
}

static snug_status infer_dx(const sn_attrs *attrs, const sn_desc *in, int n_in, sn_desc *out,
                            int n_out, snug_error *err)
{
    const sn_op_id id = SN_OP_UPSAMPLE2D_DX;
    SN_OP_TRY(sn_op_arity(id, in, n_in, out, n_out, err));
    SN_OP_TRY(sn_op_need(id, in, 0, SN_F32, 4, err));
    SN_OP_TRY(need_factors(id, &attrs->upsample, err));
    sn_shape x = in[0].shape;
    for (int i = 0; i < 2; i++) {
        if (x.dim[1 + i] % attrs->upsample.factor[i])
            return sn_fail(err, SNUG_E_INPUT,
                           "upsample2d_dx: %" PRId64 " is not a multiple of the factor %" PRId64,
                           x.dim[1 + i], attrs->upsample.factor[i]);
        x.dim[1 + i] /= attrs->upsample.factor[i];
    }
    return sn_op_set(id, &out[0], SN_F32, &x, err);
}

static snug_status grad(sn_grad *g, snug_error *err)
{
    if (!sn_op_grad_begin(g) || !g->wanted[0])
        return SNUG_OK;
    return sn_op_emit(g, SN_OP_UPSAMPLE2D_DX, g->attrs, 1, g->dout, &g->din[0], err);
}

static void cost(const sn_attrs *attrs, const sn_desc *in, int n_in, const sn_desc *out, int n_out,
                 sn_cost *c)
{
    sn_op_cost(attrs->upsample.bilinear ? 8 : 1, in, n_in, out, n_out, c);
}

/* The two input positions and the weight of the second that make output position `out`. */
typedef struct tap {
    int64_t low, high;
    float weight;
} tap;

static tap tap_of(const sn_upsample_attrs *a, int axis, int64_t out, int64_t n_in)
{
    if (!a->bilinear)
        return (tap){out / a->factor[axis], out / a->factor[axis], 0};
    const float scale = (float)n_in / (float)(n_in * a->factor[axis]);
    const float at = ((float)out + 0.5f) * scale - 0.5f, floor = floorf(at);
    tap t = {SN_MAX((int64_t)floor, 0), SN_MIN((int64_t)ceilf(at), n_in - 1), at - floor};
    return t;
}

static void reference(const sn_call *call)
{
    const sn_upsample_attrs *a = &call->attrs->upsample;
    const float *x = call->in[0].data;
    float *y = call->out[0].data;
    const int64_t *xd = call->in[0].desc.shape.dim, *yd = call->out[0].desc.shape.dim;
    for (int64_t p = 0; p < yd[0] * yd[1] * yd[2]; p++) {
        const float *sample = x + p / (yd[1] * yd[2]) * xd[1] * xd[2] * xd[3];
        tap v = tap_of(a, 0, p / yd[2] % yd[1], xd[1]), h = tap_of(a, 1, p % yd[2], xd[2]);
        for (int64_t c = 0; c < xd[3]; c++) {
            float tl = sample[(v.low * xd[2] + h.low) * xd[3] + c];
            float tr = sample[(v.low * xd[2] + h.high) * xd[3] + c];
            float bl = sample[(v.high * xd[2] + h.low) * xd[3] + c];
            float br = sample[(v.high * xd[2] + h.high) * xd[3] + c];
            float top = tl + (tr - tl) * h.weight, bottom = bl + (br - bl) * h.weight;
            y[p * xd[3] + c] = a->bilinear ? top + (bottom - top) * v.weight : tl;
        }
    }
}

/* The weight of input position `in` in output position `out`. */
static double weight(const sn_upsample_attrs *a, int axis, int64_t out, int64_t in, int64_t n_in)
{
    tap t = tap_of(a, axis, out, n_in);
    return (t.low == in ? 1 - (double)t.weight : 0) + (t.high == in ? (double)t.weight : 0);
}

static double gather(const sn_upsample_attrs *a, const float *dy, const int64_t *yd,
                     const int64_t *xd, int64_t iy, int64_t ix)
{
    const int64_t *f = a->factor;
    double sum = 0;
    for (int64_t oy = SN_MAX((iy - 1) * f[0], 0); oy < SN_MIN((iy + 2) * f[0], yd[1]); oy++) {
        double v = weight(a, 0, oy, iy, xd[1]);
        for (int64_t ox = SN_MAX((ix - 1) * f[1], 0); v != 0 && ox < SN_MIN((ix + 2) * f[1], yd[2]);
             ox++) {
            double h = weight(a, 1, ox, ix, xd[2]);
            if (h != 0)
                sum += v * h * (double)dy[(oy * yd[2] + ox) * yd[3]];
        }
    }
    return sum;
}

static void reference_dx(const sn_call *call)
{
    const float *dy = call->in[0].data;
    float *dx = call->out[0].data;
    const int64_t *yd = call->in[0].desc.shape.dim, *xd = call->out[0].desc.shape.dim;
    for (int64_t p = 0; p < xd[0] * xd[1] * xd[2]; p++) {
        const float *sample = dy + p / (xd[1] * xd[2]) * yd[1] * yd[2] * yd[3];
        for (int64_t c = 0; c < xd[3]; c++)
            dx[p * xd[3] + c] = (float)gather(&call->attrs->upsample, sample + c, yd, xd,
                                              p / xd[2] % xd[1], p % xd[2]);
    }
}

const sn_op sn_op_row_UPSAMPLE2D = {
    .name = "upsample2d", .infer = infer, .grad = grad, .cost = cost, .reference = reference};
const sn_op sn_op_row_UPSAMPLE2D_DX = {.name = "upsample2d_dx",
                                       .infer = infer_dx,
                                       .grad = sn_op_no_second_gradient,
                                       .cost = cost,
                                       .reference = reference_dx};
