/* SPDX-License-Identifier: Apache-2.0
 *
 * Losses as Keras 3 has them, cross entropies from logits. The sum over samples is divided by
 * step->n_batch, weights or not. A class number outside 0..K-1 makes loss and gradient NaN: it is
 * never read out of bounds, and never trained on silently. */
#include "ops/util.h"

#include <math.h>

static const char *const names[SN_N_LOSSES] = {
    [SN_LOSS_SOFTMAX_XENT] = "softmax_cross_entropy",
    [SN_LOSS_SIGMOID_XENT] = "sigmoid_cross_entropy",
    [SN_LOSS_MSE] = "mse",
    [SN_LOSS_MAE] = "mae",
    [SN_LOSS_HUBER] = "huber",
};

const char *sn_loss_name(sn_loss_kind kind)
{
    return (unsigned)kind < SN_N_LOSSES ? names[kind] : "?";
}

static snug_status need_all(sn_op_id id, const sn_loss_attrs *a, const sn_desc *in, snug_error *err)
{
    SN_OP_TRY(sn_op_need_range(id, "its kind", (int64_t)a->kind, 0, SN_N_LOSSES - 1, err));
    SN_OP_TRY(sn_op_need(id, in, 0, SN_F32, 2, err));
    const sn_shape *x = &in[0].shape;
    SN_OP_TRY(sn_op_need_vector(id, in, 2, x->dim[0], err));
    if (in[1].dtype == SN_I32 && a->kind <= SN_LOSS_SIGMOID_XENT) {
        SN_OP_TRY(sn_op_need(id, in, 1, SN_I32, 1, err));
        if (in[1].shape.dim[0] != x->dim[0])
            return sn_fail(err, SNUG_E_INPUT,
                           "%s: %" PRId64 " predictions, but %" PRId64 " targets",
                           sn_op_of(id)->name, x->dim[0], in[1].shape.dim[0]);
        if (a->kind == SN_LOSS_SIGMOID_XENT && x->dim[1] != 1)
            return sn_fail(err, SNUG_E_INPUT,
                           "%s: sigmoid cross entropy with class numbers needs one output, "
                           "not %" PRId64,
                           sn_op_of(id)->name, x->dim[1]);
        return SNUG_OK;
    }
    return sn_op_need_shape(id, in, 1, x, err);
}

static snug_status infer(const sn_attrs *attrs, const sn_desc *in, int n_in, sn_desc *out,
                         int n_out, snug_error *err)
{
    SN_OP_TRY(sn_op_arity(SN_OP_LOSS, in, n_in, out, n_out, err));
    SN_OP_TRY(need_all(SN_OP_LOSS, &attrs->loss, in, err));
    sn_shape one = {1, {1}};
    return sn_op_set(SN_OP_LOSS, &out[0], SN_F32, &one, err);
}

static snug_status infer_dx(const sn_attrs *attrs, const sn_desc *in, int n_in, sn_desc *out,
                            int n_out, snug_error *err)
{
    SN_OP_TRY(sn_op_arity(SN_OP_LOSS_DX, in, n_in, out, n_out, err));
    SN_OP_TRY(need_all(SN_OP_LOSS_DX, &attrs->loss, in, err));
    return sn_op_set(SN_OP_LOSS_DX, &out[0], SN_F32, &in[0].shape, err);
}

/* The loss is where gradients begin: dout is not read, and may be absent. */
static snug_status grad(sn_grad *g, snug_error *err)
{
    (void)sn_op_grad_begin(g);
    if (!g->wanted[0])
        return SNUG_OK;
    return sn_op_emit(g, SN_OP_LOSS_DX, g->attrs, 3, g->in, &g->din[0], err);
}

static void cost(const sn_attrs *attrs, const sn_desc *in, int n_in, const sn_desc *out, int n_out,
                 sn_cost *c)
{
    SN_UNUSED(attrs);
    sn_op_cost(10, in, n_in, out, n_out, c);
}

/* ---- references ------------------------------------------------------------------------------ */

/* Element k of sample i's target, smoothed; NaN for a class that does not exist. */
static double target_of(const sn_call *call, int64_t i, int64_t k, int64_t n_k)
{
    const sn_loss_attrs *a = &call->attrs->loss;
    const bool sigmoid = a->kind == SN_LOSS_SIGMOID_XENT;
    double t;
    if (call->in[1].desc.dtype == SN_I32) {
        int32_t c = ((const int32_t *)call->in[1].data)[i];
        if (c < 0 || c >= (sigmoid ? 2 : n_k))
            return NAN;
        t = sigmoid ? c : c == k;
    } else {
        t = ((const float *)call->in[1].data)[i * n_k + k];
    }
    if (a->kind > SN_LOSS_SIGMOID_XENT)
        return t;
    const double s = a->smoothing;
    return t * (1 - s) + s / (sigmoid ? 2 : (double)n_k);
}

/* log(sum(exp(x))) */
static double log_sum(const float *x, int64_t n)
{
    double top = x[0], sum = 0;
    for (int64_t k = 1; k < n; k++)
        top = (double)x[k] > top || isnan(x[k]) ? (double)x[k] : top;
    for (int64_t k = 0; k < n; k++)
        sum += exp(x[k] - top);
    return top + log(sum);
}

/* One term of a loss that is a mean over K. */
static double term(const sn_loss_attrs *a, double x, double t)
{
    const double d = x - t, size = fabs(d), delta = a->delta;
    switch (a->kind) {
    case SN_LOSS_SIGMOID_XENT:
        return (x > 0 ? x : 0) - x * t + log1p(exp(-fabs(x)));
    case SN_LOSS_MSE:
        return d * d;
    case SN_LOSS_MAE:
        return size;
    default:
        return size <= delta ? 0.5 * d * d : delta * size - 0.5 * delta * delta;
    }
}

static double term_slope(const sn_loss_attrs *a, double x, double t)
{
    const double d = x - t, delta = a->delta;
    const double sign = d > 0 ? 1 : d < 0 ? -1 : d;
    switch (a->kind) {
    case SN_LOSS_SIGMOID_XENT:
        return 1 / (1 + exp(-x)) - t;
    case SN_LOSS_MSE:
        return 2 * d;
    case SN_LOSS_MAE:
        return sign;
    default:
        return fabs(d) <= delta ? d : delta * sign;
    }
}

static double sample_loss(const sn_call *call, int64_t i, const float *x, int64_t n_k)
{
    const sn_loss_attrs *a = &call->attrs->loss;
    double sum = 0;
    if (a->kind == SN_LOSS_SOFTMAX_XENT) {
        const double norm = log_sum(x, n_k);
        for (int64_t k = 0; k < n_k; k++) {
            double t = target_of(call, i, k, n_k);
            sum += t == 0 ? 0 : t * (norm - x[k]);
        }
        return sum;
    }
    for (int64_t k = 0; k < n_k; k++)
        sum += term(a, x[k], target_of(call, i, k, n_k));
    return sum / (double)n_k;
}

static void reference(const sn_call *call)
{
    const float *x = call->in[0].data, *weight = call->in[2].data;
    const int64_t n = call->in[0].desc.shape.dim[0], n_k = call->in[0].desc.shape.dim[1];
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += sample_loss(call, i, x + i * n_k, n_k) * (weight ? (double)weight[i] : 1);
    *(float *)call->out[0].data = (float)(sum / call->step->n_batch);
}

static void reference_dx(const sn_call *call)
{
    const sn_loss_attrs *a = &call->attrs->loss;
    const float *x = call->in[0].data, *weight = call->in[2].data;
    float *dx = call->out[0].data;
    const int64_t n = call->in[0].desc.shape.dim[0], n_k = call->in[0].desc.shape.dim[1];
    for (int64_t i = 0; i < n; i++, x += n_k, dx += n_k) {
        const bool softmax = a->kind == SN_LOSS_SOFTMAX_XENT;
        const double factor = (weight ? (double)weight[i] : 1) / call->step->n_batch;
        const double norm = softmax ? log_sum(x, n_k) : 0;
        for (int64_t k = 0; k < n_k; k++) {
            double t = target_of(call, i, k, n_k);
            dx[k] = (float)(softmax ? (exp(x[k] - norm) - t) * factor
                                    : term_slope(a, x[k], t) / (double)n_k * factor);
        }
    }
}

const sn_op sn_op_row_LOSS = {.name = "loss",
                              .infer = infer,
                              .grad = grad,
                              .cost = cost,
                              .reference = reference,
                              .mixes_batch = sn_op_mixes};
const sn_op sn_op_row_LOSS_DX = {.name = "loss_dx",
                                 .infer = infer_dx,
                                 .grad = sn_op_no_second_gradient,
                                 .cost = cost,
                                 .reference = reference_dx};
