/* SPDX-License-Identifier: Apache-2.0
 *
 * Convolution and its two gradients. x [N,H,W,C], w [kh,kw,C/groups,O], y [N,Ho,Wo,O]. Padding is
 * skipped, not multiplied by zero: an infinite weight beside it gives no NaN. CONV2D_DX is also the
 * forward of the transposed convolution (dy its input, w as Keras stores it: [kh,kw,O,C]). */
#include "ops/util.h"

enum { BLOCK = 64 };

typedef struct geometry {
    int64_t n, h, w, c; /* x */
    int64_t kh, kw, cg; /* cg: C/groups */
    int64_t ho, wo, o;  /* y */
    int64_t og;         /* O/groups */
} geometry;

static geometry geometry_of(const sn_conv_attrs *a, const sn_shape *x, const sn_shape *w,
                            const sn_shape *y)
{
    geometry g = {.n = x->dim[0], .h = x->dim[1], .w = x->dim[2], .c = x->dim[3]};
    g.kh = w->dim[0], g.kw = w->dim[1], g.cg = w->dim[2];
    g.ho = y->dim[1], g.wo = y->dim[2], g.o = y->dim[3];
    g.og = g.o / a->groups;
    return g;
}

static snug_status need_groups(sn_op_id id, const sn_conv_attrs *a, int64_t cin, int64_t cout,
                               snug_error *err)
{
    const char *name = sn_op_of(id)->name;
    if (a->groups < 1 || cin % a->groups || cout % a->groups)
        return sn_fail(err, SNUG_E_INPUT,
                       "%s: %" PRId64 " groups do not divide %" PRId64 " input and %" PRId64
                       " output channels",
                       name, a->groups, cin, cout);
    return SNUG_OK;
}

static snug_status output_hw(sn_op_id id, const sn_conv_attrs *a, int64_t h, int64_t w, int64_t kh,
                             int64_t kw, int64_t *ho, int64_t *wo, snug_error *err)
{
    SN_OP_TRY(sn_op_window(id, "height", h, kh, a->stride[0], a->dilation[0], a->pad[0], a->pad[1],
                           ho, err));
    return sn_op_window(id, "width", w, kw, a->stride[1], a->dilation[1], a->pad[2], a->pad[3], wo,
                        err);
}

static snug_status infer(const sn_attrs *attrs, const sn_desc *in, int n_in, sn_desc *out,
                         int n_out, snug_error *err)
{
    const sn_conv_attrs *a = &attrs->conv;
    const sn_op_id id = SN_OP_CONV2D;
    SN_OP_TRY(sn_op_arity(id, in, n_in, out, n_out, err));
    SN_OP_TRY(sn_op_need(id, in, 0, SN_F32, 4, err));
    SN_OP_TRY(sn_op_need(id, in, 1, SN_F32, 4, err));
    SN_OP_TRY(sn_op_need_act(id, &a->act, true, err));
    const int64_t *x = in[0].shape.dim, *w = in[1].shape.dim;
    SN_OP_TRY(need_groups(id, a, x[3], w[3], err));
    if (w[2] != x[3] / a->groups)
        return sn_fail(err, SNUG_E_INPUT,
                       "conv2d: w takes %" PRId64 " channels a group, x has %" PRId64
                       " channels in %" PRId64 " groups",
                       w[2], x[3], a->groups);
    SN_OP_TRY(sn_op_need_vector(id, in, 2, w[3], err));
    sn_shape y = {4, {x[0], 0, 0, w[3]}};
    SN_OP_TRY(output_hw(id, a, x[1], x[2], w[0], w[1], &y.dim[1], &y.dim[2], err));
    return sn_op_set(id, &out[0], SN_F32, &y, err);
}

static snug_status infer_dx(const sn_attrs *attrs, const sn_desc *in, int n_in, sn_desc *out,
                            int n_out, snug_error *err)
{
    const sn_conv_attrs *a = &attrs->conv;
    const sn_op_id id = SN_OP_CONV2D_DX;
    int64_t ho, wo;
    SN_OP_TRY(sn_op_arity(id, in, n_in, out, n_out, err));
    SN_OP_TRY(sn_op_need(id, in, 0, SN_F32, 4, err));
    SN_OP_TRY(sn_op_need(id, in, 1, SN_F32, 4, err));
    const int64_t *dy = in[0].shape.dim, *w = in[1].shape.dim;
    SN_OP_TRY(sn_op_need_range(id, "groups", a->groups, 1, w[3], err));
    sn_shape x = {4, {dy[0], a->in_hw[0], a->in_hw[1], w[2]}};
    if (__builtin_mul_overflow(w[2], a->groups, &x.dim[3]) || dy[3] != w[3] || w[3] % a->groups)
        return sn_fail(err, SNUG_E_INPUT,
                       "conv2d_dx: dy has %" PRId64 " channels, w gives %" PRId64 " in %" PRId64
                       " groups",
                       dy[3], w[3], a->groups);
    SN_OP_TRY(output_hw(id, a, x.dim[1], x.dim[2], w[0], w[1], &ho, &wo, err));
    if (ho != dy[1] || wo != dy[2])
        return sn_fail(err, SNUG_E_INPUT,
                       "conv2d_dx: dx %" PRId64 " x %" PRId64 " goes with dy %" PRId64 " x %" PRId64
                       ", not %" PRId64 " x %" PRId64,
                       x.dim[1], x.dim[2], ho, wo, dy[1], dy[2]);
    return sn_op_set(id, &out[0], SN_F32, &x, err);
}

static snug_status infer_dw(const sn_attrs *attrs, const sn_desc *in, int n_in, sn_desc *out,
                            int n_out, snug_error *err)
{
    const sn_conv_attrs *a = &attrs->conv;
    const sn_op_id id = SN_OP_CONV2D_DW;
    int64_t ho, wo;
    SN_OP_TRY(sn_op_arity(id, in, n_in, out, n_out, err));
    SN_OP_TRY(sn_op_need(id, in, 0, SN_F32, 4, err));
    SN_OP_TRY(sn_op_need(id, in, 1, SN_F32, 4, err));
    const int64_t *x = in[0].shape.dim, *dy = in[1].shape.dim;
    SN_OP_TRY(need_groups(id, a, x[3], dy[3], err));
    SN_OP_TRY(output_hw(id, a, x[1], x[2], a->kernel[0], a->kernel[1], &ho, &wo, err));
    if (x[0] != dy[0] || ho != dy[1] || wo != dy[2])
        return sn_fail(err, SNUG_E_INPUT,
                       "conv2d_dw: x gives %" PRId64 " x %" PRId64 " x %" PRId64 ", dy is %" PRId64
                       " x %" PRId64 " x %" PRId64,
                       x[0], ho, wo, dy[0], dy[1], dy[2]);
    sn_shape w = {4, {a->kernel[0], a->kernel[1], x[3] / a->groups, dy[3]}};
    SN_OP_TRY(sn_op_set(id, &out[0], SN_F32, &w, err));
    sn_shape bias = {1, {dy[3]}};
    return a->has_dbias ? sn_op_set(id, &out[1], SN_F32, &bias, err) : SNUG_OK;
}

/* ---- gradients ------------------------------------------------------------------------------- */

static sn_attrs without_act(const sn_attrs *attrs)
{
    sn_attrs b = *attrs;
    b.conv.act = (sn_act_attrs){0};
    b.conv.has_dbias = false;
    return b;
}

static snug_status grad(sn_grad *g, snug_error *err)
{
    sn_ref dy;
    if (!sn_op_grad_begin(g))
        return SNUG_OK;
    sn_attrs b = without_act(g->attrs);
    sn_desc x = g->desc(g, g->in[0]), w = g->desc(g, g->in[1]);
    bool bias = g->in[2] != SN_NO_REF && g->wanted[2];
    SN_OP_TRY(sn_op_emit_act_dx(g, &g->attrs->conv.act, g->out[0], g->dout[0], &dy, err));
    b.conv.in_hw[0] = x.shape.dim[1], b.conv.in_hw[1] = x.shape.dim[2];
    b.conv.kernel[0] = w.shape.dim[0], b.conv.kernel[1] = w.shape.dim[1];
    if (g->wanted[1]) {
        sn_ref out[2] = {SN_NO_REF, SN_NO_REF};
        b.conv.has_dbias = bias;
        SN_OP_TRY(g->emit(g, SN_OP_CONV2D_DW, &b, 2, (sn_ref[]){g->in[0], dy}, 2,
                          (bool[]){true, bias}, out, err));
        g->din[1] = out[0];
        if (bias)
            g->din[2] = out[1];
    } else if (bias) {
        SN_OP_TRY(sn_op_emit(g, SN_OP_BIAS_GRAD, NULL, 1, &dy, &g->din[2], err));
    }
    b.conv.has_dbias = false;
    if (g->wanted[0])
        SN_OP_TRY(sn_op_emit(g, SN_OP_CONV2D_DX, &b, 2, (sn_ref[]){dy, g->in[1]}, &g->din[0], err));
    return SNUG_OK;
}

/* y = conv_dx(t, w): as a function of t it is linear with the adjoint conv, as a function of w its
 * gradient is that of a convolution whose x is the incoming gradient and whose dy is t. */
static snug_status grad_dx(sn_grad *g, snug_error *err)
{
    if (!sn_op_grad_begin(g))
        return SNUG_OK;
    sn_attrs b = without_act(g->attrs);
    sn_desc w = g->desc(g, g->in[1]);
    b.conv.kernel[0] = w.shape.dim[0], b.conv.kernel[1] = w.shape.dim[1];
    if (g->wanted[1])
        SN_OP_TRY(sn_op_emit(g, SN_OP_CONV2D_DW, &b, 2, (sn_ref[]){g->dout[0], g->in[0]},
                             &g->din[1], err));
    if (g->wanted[0])
        SN_OP_TRY(sn_op_emit(g, SN_OP_CONV2D, &b, 3, (sn_ref[]){g->dout[0], g->in[1], SN_NO_REF},
                             &g->din[0], err));
    return SNUG_OK;
}

/* ---- costs ----------------------------------------------------------------------------------- */

static void cost_of(const sn_desc *y, const sn_desc *w, sn_cost *cost)
{
    cost->flops = 2.0 * (double)sn_shape_n(&y->shape) *
                  (double)(w->shape.dim[0] * w->shape.dim[1] * w->shape.dim[2]);
}

static void cost(const sn_attrs *attrs, const sn_desc *in, int n_in, const sn_desc *out, int n_out,
                 sn_cost *c)
{
    SN_UNUSED(attrs);
    sn_op_cost(0, in, n_in, out, n_out, c);
    cost_of(&out[0], &in[1], c);
}

static void cost_dx(const sn_attrs *attrs, const sn_desc *in, int n_in, const sn_desc *out,
                    int n_out, sn_cost *c)
{
    SN_UNUSED(attrs);
    sn_op_cost(0, in, n_in, out, n_out, c);
    cost_of(&in[0], &in[1], c);
}

static void cost_dw(const sn_attrs *attrs, const sn_desc *in, int n_in, const sn_desc *out,
                    int n_out, sn_cost *c)
{
    SN_UNUSED(attrs);
    sn_op_cost(0, in, n_in, out, n_out, c);
    cost_of(&in[1], &out[0], c);
}

/* ---- references ------------------------------------------------------------------------------ */

/* One pixel of y, channels o .. o+count-1 of one group. */
static void pixel(const sn_conv_attrs *a, const geometry *g, const float *x, const float *w,
                  int64_t n, int64_t oy, int64_t ox, int64_t o, int64_t count, double *acc)
{
    const int64_t first = o / g->og * g->cg;
    for (int64_t ky = 0; ky < g->kh; ky++) {
        int64_t iy = oy * a->stride[0] - a->pad[0] + ky * a->dilation[0];
        if (iy < 0 || iy >= g->h)
            continue;
        for (int64_t kx = 0; kx < g->kw; kx++) {
            int64_t ix = ox * a->stride[1] - a->pad[2] + kx * a->dilation[1];
            if (ix < 0 || ix >= g->w)
                continue;
            const float *px = x + ((n * g->h + iy) * g->w + ix) * g->c + first;
            const float *pw = w + (ky * g->kw + kx) * g->cg * g->o + o;
            for (int64_t i = 0; i < g->cg; i++)
                for (int64_t k = 0; k < count; k++)
                    acc[k] += (double)px[i] * (double)pw[i * g->o + k];
        }
    }
}

static void reference(const sn_call *call)
{
    const sn_conv_attrs *a = &call->attrs->conv;
    const float *x = call->in[0].data, *w = call->in[1].data, *bias = call->in[2].data;
    float *y = call->out[0].data;
    geometry g =
        geometry_of(a, &call->in[0].desc.shape, &call->in[1].desc.shape, &call->out[0].desc.shape);
    for (int64_t p = 0; p < g.n * g.ho * g.wo; p++) {
        int64_t n = p / (g.ho * g.wo), oy = p / g.wo % g.ho, ox = p % g.wo;
        for (int64_t o = 0, count; o < g.o; o += count) {
            double acc[BLOCK] = {0};
            count = SN_MIN(g.og - o % g.og, BLOCK);
            pixel(a, &g, x, w, n, oy, ox, o, count, acc);
            for (int64_t k = 0; k < count; k++)
                y[p * g.o + o + k] =
                    sn_op_fused(&a->act, (float)(acc[k] + (bias ? (double)bias[o + k] : 0)));
        }
    }
}

/* The position in y from which in = out*stride - before + k*dilation comes; -1 if none. */
static int64_t source(int64_t in, int64_t before, int64_t k, int64_t dilation, int64_t stride,
                      int64_t n_out)
{
    int64_t t = in + before - k * dilation;
    return t >= 0 && t % stride == 0 && t / stride < n_out ? t / stride : -1;
}

static double pixel_dx(const sn_conv_attrs *a, const geometry *g, const float *dy, const float *w,
                       int64_t n, int64_t iy, int64_t ix, int64_t c)
{
    const int64_t i = c % g->cg, first = c / g->cg * g->og;
    double sum = 0;
    for (int64_t ky = 0; ky < g->kh; ky++) {
        int64_t oy = source(iy, a->pad[0], ky, a->dilation[0], a->stride[0], g->ho);
        if (oy < 0)
            continue;
        for (int64_t kx = 0; kx < g->kw; kx++) {
            int64_t ox = source(ix, a->pad[2], kx, a->dilation[1], a->stride[1], g->wo);
            if (ox < 0)
                continue;
            const float *pdy = dy + ((n * g->ho + oy) * g->wo + ox) * g->o + first;
            const float *pw = w + ((ky * g->kw + kx) * g->cg + i) * g->o + first;
            for (int64_t k = 0; k < g->og; k++)
                sum += (double)pdy[k] * (double)pw[k];
        }
    }
    return sum;
}

static void reference_dx(const sn_call *call)
{
    const sn_conv_attrs *a = &call->attrs->conv;
    const float *dy = call->in[0].data, *w = call->in[1].data;
    float *dx = call->out[0].data;
    geometry g =
        geometry_of(a, &call->out[0].desc.shape, &call->in[1].desc.shape, &call->in[0].desc.shape);
    for (int64_t p = 0; p < g.n * g.h * g.w; p++)
        for (int64_t c = 0; c < g.c; c++)
            dx[p * g.c + c] =
                (float)pixel_dx(a, &g, dy, w, p / (g.h * g.w), p / g.w % g.h, p % g.w, c);
}

static void weight_dw(const sn_conv_attrs *a, const geometry *g, const float *x, const float *dy,
                      int64_t ky, int64_t kx, int64_t c, int64_t o, int64_t count, double *acc)
{
    for (int64_t n = 0; n < g->n; n++)
        for (int64_t oy = 0; oy < g->ho; oy++) {
            int64_t iy = oy * a->stride[0] - a->pad[0] + ky * a->dilation[0];
            if (iy < 0 || iy >= g->h)
                continue;
            for (int64_t ox = 0; ox < g->wo; ox++) {
                int64_t ix = ox * a->stride[1] - a->pad[2] + kx * a->dilation[1];
                if (ix < 0 || ix >= g->w)
                    continue;
                double v = x[((n * g->h + iy) * g->w + ix) * g->c + c];
                const float *pdy = dy + ((n * g->ho + oy) * g->wo + ox) * g->o + o;
                for (int64_t k = 0; k < count; k++)
                    acc[k] += v * (double)pdy[k];
            }
        }
}

static void reference_dw(const sn_call *call)
{
    const sn_conv_attrs *a = &call->attrs->conv;
    const float *x = call->in[0].data, *dy = call->in[1].data;
    float *dw = call->out[0].data, *dbias = call->out[1].data;
    geometry g =
        geometry_of(a, &call->in[0].desc.shape, &call->out[0].desc.shape, &call->in[1].desc.shape);
    for (int64_t row = 0; row < g.kh * g.kw * g.cg; row++)
        for (int64_t o = 0, count; o < g.o; o += count) {
            double acc[BLOCK] = {0};
            count = SN_MIN(g.og - o % g.og, BLOCK);
            weight_dw(a, &g, x, dy, row / (g.kw * g.cg), row / g.cg % g.kw,
                      o / g.og * g.cg + row % g.cg, o, count, acc);
            for (int64_t k = 0; k < count; k++)
                dw[row * g.o + o + k] = (float)acc[k];
        }
    for (int64_t o = 0; dbias && o < g.o; o++) {
        double sum = 0;
        for (int64_t p = 0; p < g.n * g.ho * g.wo; p++)
            sum += (double)dy[p * g.o + o];
        dbias[o] = (float)sum;
    }
}

const sn_op sn_op_row_CONV2D = {
    .name = "conv2d", .infer = infer, .grad = grad, .cost = cost, .reference = reference};
const sn_op sn_op_row_CONV2D_DX = {.name = "conv2d_dx",
                                   .infer = infer_dx,
                                   .grad = grad_dx,
                                   .cost = cost_dx,
                                   .reference = reference_dx};
const sn_op sn_op_row_CONV2D_DW = {.name = "conv2d_dw",
                                   .infer = infer_dw,
                                   .grad = sn_op_no_second_gradient,
                                   .cost = cost_dw,
                                   .reference = reference_dw,
                                   .mixes_batch = sn_op_mixes};
