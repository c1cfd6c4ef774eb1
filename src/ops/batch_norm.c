/* SPDX-License-Identifier: Apache-2.0
 *
 * Batch normalization over every axis but the last, as Keras has it (biased variance).
 *
 * 1. y is made from the mean and variance as they are stored (float32), so that BATCH_NORM_APPLY
 *    with the saved ones gives the bits of BATCH_NORM, and the *_DX find the very mask of a fused
 *    ReLU again.
 * 2. The *_DX make their sums in a full pass before the first element of dx is written: dx may lie
 *    over dy. */
#include "ops/util.h"

#include <math.h>

static snug_status infer(const sn_attrs *attrs, const sn_desc *in, int n_in, sn_desc *out,
                         int n_out, snug_error *err)
{
    const sn_op_id id = SN_OP_BATCH_NORM;
    SN_OP_TRY(sn_op_arity(id, in, n_in, out, n_out, err));
    SN_OP_TRY(sn_op_need(id, in, 0, SN_F32, -1, err));
    SN_OP_TRY(sn_op_need_act(id, &attrs->norm.act, true, err));
    sn_shape vector = {1, {sn_op_last(&in[0].shape)}};
    SN_OP_TRY(sn_op_need_shape(id, in, 1, &vector, err));
    SN_OP_TRY(sn_op_need_shape(id, in, 2, &vector, err));
    SN_OP_TRY(sn_op_set(id, &out[0], SN_F32, &in[0].shape, err));
    SN_OP_TRY(sn_op_set(id, &out[1], SN_F32, &vector, err));
    return sn_op_set(id, &out[2], SN_F32, &vector, err);
}

static snug_status infer_apply(const sn_attrs *attrs, const sn_desc *in, int n_in, sn_desc *out,
                               int n_out, snug_error *err)
{
    const sn_op_id id = SN_OP_BATCH_NORM_APPLY;
    SN_OP_TRY(sn_op_arity(id, in, n_in, out, n_out, err));
    SN_OP_TRY(sn_op_need(id, in, 0, SN_F32, -1, err));
    SN_OP_TRY(sn_op_need_act(id, &attrs->norm.act, true, err));
    for (int i = 1; i < 5; i++)
        SN_OP_TRY(sn_op_need_vector(id, in, i, sn_op_last(&in[0].shape), err));
    return sn_op_set(id, &out[0], SN_F32, &in[0].shape, err);
}

static snug_status infer_any_dx(sn_op_id id, const sn_attrs *attrs, const sn_desc *in, int n_in,
                                sn_desc *out, int n_out, snug_error *err)
{
    SN_OP_TRY(sn_op_arity(id, in, n_in, out, n_out, err));
    SN_OP_TRY(sn_op_need(id, in, 0, SN_F32, -1, err));
    SN_OP_TRY(sn_op_need_shape(id, in, 1, &in[0].shape, err));
    SN_OP_TRY(sn_op_need_act(id, &attrs->norm.act, true, err));
    for (int i = 2; i < 6; i++)
        SN_OP_TRY(sn_op_need_vector(id, in, i, sn_op_last(&in[0].shape), err));
    SN_OP_TRY(sn_op_set(id, &out[0], SN_F32, &in[0].shape, err));
    out[1] = in[2];
    out[2] = in[3];
    return SNUG_OK;
}

static snug_status infer_dx(const sn_attrs *attrs, const sn_desc *in, int n_in, sn_desc *out,
                            int n_out, snug_error *err)
{
    return infer_any_dx(SN_OP_BATCH_NORM_DX, attrs, in, n_in, out, n_out, err);
}

static snug_status infer_apply_dx(const sn_attrs *attrs, const sn_desc *in, int n_in, sn_desc *out,
                                  int n_out, snug_error *err)
{
    return infer_any_dx(SN_OP_BATCH_NORM_APPLY_DX, attrs, in, n_in, out, n_out, err);
}

static snug_status infer_moving(const sn_attrs *attrs, const sn_desc *in, int n_in, sn_desc *out,
                                int n_out, snug_error *err)
{
    const sn_op_id id = SN_OP_MOVING_AVERAGE;
    SN_UNUSED(attrs);
    SN_OP_TRY(sn_op_arity(id, in, n_in, out, n_out, err));
    SN_OP_TRY(sn_op_need(id, in, 0, SN_F32, -1, err));
    SN_OP_TRY(sn_op_need_shape(id, in, 1, &in[0].shape, err));
    return sn_op_set(id, &out[0], SN_F32, &in[0].shape, err);
}

/* ---- gradients ------------------------------------------------------------------------------- */

static snug_status emit_dx(sn_grad *g, sn_op_id op, sn_ref mean, sn_ref var, snug_error *err)
{
    sn_ref gamma = g->in[1], beta = g->in[2], out[3] = {SN_NO_REF, SN_NO_REF, SN_NO_REF};
    bool want[3] = {true, gamma != SN_NO_REF && g->wanted[1], beta != SN_NO_REF && g->wanted[2]};
    if (!g->wanted[0] && !want[1] && !want[2])
        return SNUG_OK;
    SN_OP_TRY(g->emit(g, op, g->attrs, 6, (sn_ref[]){g->in[0], g->dout[0], gamma, beta, mean, var},
                      3, want, out, err));
    for (int i = 0; i < 3; i++)
        if (g->wanted[i] && want[i])
            g->din[i] = out[i];
    return SNUG_OK;
}

static snug_status grad(sn_grad *g, snug_error *err)
{
    return sn_op_grad_begin(g) ? emit_dx(g, SN_OP_BATCH_NORM_DX, g->out[1], g->out[2], err)
                               : SNUG_OK;
}

static snug_status grad_apply(sn_grad *g, snug_error *err)
{
    return sn_op_grad_begin(g) ? emit_dx(g, SN_OP_BATCH_NORM_APPLY_DX, g->in[3], g->in[4], err)
                               : SNUG_OK;
}

static void cost(const sn_attrs *attrs, const sn_desc *in, int n_in, const sn_desc *out, int n_out,
                 sn_cost *c)
{
    SN_UNUSED(attrs);
    sn_op_cost(n_out == 1 ? 2 : 8, in, n_in, out, n_out, c);
}

/* ---- references ------------------------------------------------------------------------------ */

typedef struct channel {
    double mean, rstd, gamma, beta;
} channel;

static channel channel_of(const sn_norm_attrs *a, const float *gamma, const float *beta,
                          const float *mean, const float *var, int64_t c)
{
    channel ch = {.mean = mean[c], .gamma = gamma ? gamma[c] : 1, .beta = beta ? beta[c] : 0};
    ch.rstd = 1 / sqrt((double)var[c] + (double)a->epsilon);
    return ch;
}

/* y before the activation */
static float normalized(const channel *ch, float x)
{
    return (float)((x - ch->mean) * ch->rstd * ch->gamma + ch->beta);
}

static void apply(const sn_norm_attrs *a, int64_t rows, int64_t n_c, const float *x,
                  const float *gamma, const float *beta, const float *mean, const float *var,
                  float *y)
{
    for (int64_t c = 0; c < n_c; c++) {
        channel ch = channel_of(a, gamma, beta, mean, var, c);
        for (int64_t r = 0; r < rows; r++)
            y[r * n_c + c] = sn_op_fused(&a->act, normalized(&ch, x[r * n_c + c]));
    }
}

static void reference(const sn_call *call)
{
    const sn_norm_attrs *a = &call->attrs->norm;
    const float *x = call->in[0].data;
    float *mean = call->out[1].data, *var = call->out[2].data;
    const int64_t rows = sn_op_rows(&call->in[0].desc.shape);
    const int64_t n_c = sn_op_last(&call->in[0].desc.shape);
    for (int64_t c = 0; c < n_c; c++) {
        double sum = 0, squares = 0, m;
        for (int64_t r = 0; r < rows; r++)
            sum += (double)x[r * n_c + c];
        m = sum / (double)rows;
        for (int64_t r = 0; r < rows; r++)
            squares += (x[r * n_c + c] - m) * (x[r * n_c + c] - m);
        mean[c] = (float)m;
        var[c] = (float)(squares / (double)rows);
    }
    apply(a, rows, n_c, x, call->in[1].data, call->in[2].data, mean, var, call->out[0].data);
}

static void reference_apply(const sn_call *call)
{
    apply(&call->attrs->norm, sn_op_rows(&call->in[0].desc.shape),
          sn_op_last(&call->in[0].desc.shape), call->in[0].data, call->in[1].data, call->in[2].data,
          call->in[3].data, call->in[4].data, call->out[0].data);
}

/* dy before the fused activation */
static double before_act(const sn_norm_attrs *a, const channel *ch, float x, float dy)
{
    if (a->act.kind == SN_ACT_NONE)
        return dy;
    float slope = sn_act_slope(&a->act, normalized(ch, x));
    return slope == 0 ? 0 : dy;
}

static void any_dx(const sn_call *call, bool batch_statistics)
{
    const sn_norm_attrs *a = &call->attrs->norm;
    const float *x = call->in[0].data, *dy = call->in[1].data;
    float *dx = call->out[0].data, *dgamma = call->out[1].data, *dbeta = call->out[2].data;
    const int64_t rows = sn_op_rows(&call->in[0].desc.shape);
    const int64_t n_c = sn_op_last(&call->in[0].desc.shape);
    for (int64_t c = 0; c < n_c; c++) {
        channel ch = channel_of(a, call->in[2].data, call->in[3].data, call->in[4].data,
                                call->in[5].data, c);
        double sum = 0, dot = 0;
        for (int64_t r = 0; r < rows; r++) {
            double d = before_act(a, &ch, x[r * n_c + c], dy[r * n_c + c]);
            sum += d;
            dot += d * (x[r * n_c + c] - ch.mean) * ch.rstd;
        }
        if (dgamma)
            dgamma[c] = (float)dot;
        if (dbeta)
            dbeta[c] = (float)sum;
        for (int64_t r = 0; r < rows; r++) {
            double d = before_act(a, &ch, x[r * n_c + c], dy[r * n_c + c]);
            if (batch_statistics)
                d -= (sum + (x[r * n_c + c] - ch.mean) * ch.rstd * dot) / (double)rows;
            dx[r * n_c + c] = (float)(d * ch.gamma * ch.rstd);
        }
    }
}

static void reference_dx(const sn_call *call)
{
    any_dx(call, true);
}

static void reference_apply_dx(const sn_call *call)
{
    any_dx(call, false);
}

static void reference_moving(const sn_call *call)
{
    const float *moving = call->in[0].data, *value = call->in[1].data;
    float *out = call->out[0].data;
    const float keep = call->attrs->norm.momentum, take = (float)(1.0 - sn_decimal(keep));
    const int64_t n = sn_shape_n(&call->in[0].desc.shape);
    for (int64_t i = 0; i < n; i++)
        out[i] = moving[i] * keep + value[i] * take;
}

const sn_op sn_op_row_BATCH_NORM = {.name = "batch_norm",
                                    .infer = infer,
                                    .grad = grad,
                                    .cost = cost,
                                    .reference = reference,
                                    .mixes_batch = sn_op_mixes};
const sn_op sn_op_row_BATCH_NORM_APPLY = {.name = "batch_norm_apply",
                                          .infer = infer_apply,
                                          .grad = grad_apply,
                                          .cost = cost,
                                          .reference = reference_apply,
                                          .in_place = sn_op_in_place_first};
const sn_op sn_op_row_BATCH_NORM_DX = {.name = "batch_norm_dx",
                                       .infer = infer_dx,
                                       .grad = sn_op_no_second_gradient,
                                       .cost = cost,
                                       .reference = reference_dx,
                                       .in_place = sn_op_in_place_second,
                                       .mixes_batch = sn_op_mixes};
const sn_op sn_op_row_BATCH_NORM_APPLY_DX = {.name = "batch_norm_apply_dx",
                                             .infer = infer_apply_dx,
                                             .grad = sn_op_no_second_gradient,
                                             .cost = cost,
                                             .reference = reference_apply_dx,
                                             .in_place = sn_op_in_place_second,
                                             .mixes_batch = sn_op_mixes};
const sn_op sn_op_row_MOVING_AVERAGE = {.name = "moving_average",
                                        .infer = infer_moving,
                                        .cost = cost,
                                        .reference = reference_moving,
                                        .in_place = sn_op_in_place_first,
                                        .mixes_batch = sn_op_mixes};
