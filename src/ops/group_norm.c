/* SPDX-License-Identifier: Apache-2.0
 *
 * Layer normalization (groups = 0: each row of the last axis) and group normalization (each sample
 * and group of channels over its positions). Both are the same sums over "cells": a cell is
 * [positions, channels of a group] of one sample, or one row. */
#include "ops/util.h"

#include <math.h>

typedef struct cells {
    int64_t n, positions, groups, width, n_c; /* n samples (rows), width = n_c / groups */
} cells;

static cells cells_of(const sn_norm_attrs *a, const sn_shape *x)
{
    cells k = {.positions = 1, .groups = 1, .n_c = sn_op_last(x)};
    k.n = sn_op_rows(x);
    if (a->groups > 0) {
        k.groups = a->groups;
        k.positions = k.n / x->dim[0];
        k.n = x->dim[0];
    }
    k.width = k.n_c / k.groups;
    return k;
}

static snug_status statistics(sn_op_id id, const sn_norm_attrs *a, const sn_shape *x, sn_shape *out,
                              snug_error *err)
{
    if (a->groups < 0 || (a->groups > 0 && sn_op_last(x) % a->groups))
        return sn_fail(err, SNUG_E_INPUT,
                       "%s: %" PRId64 " groups do not divide %" PRId64 " channels",
                       sn_op_of(id)->name, a->groups, sn_op_last(x));
    if (x->rank < 2)
        return sn_fail(err, SNUG_E_INPUT, "%s: x must have at least 2 dimensions, it has %d",
                       sn_op_of(id)->name, x->rank);
    *out = *x;
    out->rank--;
    if (a->groups > 0)
        *out = (sn_shape){2, {x->dim[0], a->groups}};
    return SNUG_OK;
}

static snug_status infer(const sn_attrs *attrs, const sn_desc *in, int n_in, sn_desc *out,
                         int n_out, snug_error *err)
{
    const sn_op_id id = SN_OP_GROUP_NORM;
    sn_shape stat;
    SN_OP_TRY(sn_op_arity(id, in, n_in, out, n_out, err));
    SN_OP_TRY(sn_op_need(id, in, 0, SN_F32, -1, err));
    SN_OP_TRY(statistics(id, &attrs->norm, &in[0].shape, &stat, err));
    SN_OP_TRY(sn_op_need_vector(id, in, 1, sn_op_last(&in[0].shape), err));
    SN_OP_TRY(sn_op_need_vector(id, in, 2, sn_op_last(&in[0].shape), err));
    SN_OP_TRY(sn_op_set(id, &out[0], SN_F32, &in[0].shape, err));
    SN_OP_TRY(sn_op_set(id, &out[1], SN_F32, &stat, err));
    return sn_op_set(id, &out[2], SN_F32, &stat, err);
}

static snug_status infer_dx(const sn_attrs *attrs, const sn_desc *in, int n_in, sn_desc *out,
                            int n_out, snug_error *err)
{
    const sn_op_id id = SN_OP_GROUP_NORM_DX;
    sn_shape stat;
    SN_OP_TRY(sn_op_arity(id, in, n_in, out, n_out, err));
    SN_OP_TRY(sn_op_need(id, in, 0, SN_F32, -1, err));
    SN_OP_TRY(sn_op_need_shape(id, in, 1, &in[0].shape, err));
    SN_OP_TRY(statistics(id, &attrs->norm, &in[0].shape, &stat, err));
    sn_shape vector = {1, {sn_op_last(&in[0].shape)}};
    SN_OP_TRY(sn_op_need_shape(id, in, 2, &vector, err));
    SN_OP_TRY(sn_op_need_shape(id, in, 3, &stat, err));
    SN_OP_TRY(sn_op_need_shape(id, in, 4, &stat, err));
    SN_OP_TRY(sn_op_set(id, &out[0], SN_F32, &in[0].shape, err));
    out[1] = in[2];
    return sn_op_set(id, &out[2], SN_F32, &vector, err);
}

static snug_status grad(sn_grad *g, snug_error *err)
{
    if (!sn_op_grad_begin(g))
        return SNUG_OK;
    sn_ref gamma = g->in[1], out[3] = {SN_NO_REF, SN_NO_REF, SN_NO_REF};
    bool want[3] = {true, gamma != SN_NO_REF && g->wanted[1],
                    g->in[2] != SN_NO_REF && g->wanted[2]};
    if (!g->wanted[0] && !want[1] && !want[2])
        return SNUG_OK;
    SN_OP_TRY(g->emit(g, SN_OP_GROUP_NORM_DX, g->attrs, 5,
                      (sn_ref[]){g->in[0], g->dout[0], gamma, g->out[1], g->out[2]}, 3, want, out,
                      err));
    for (int i = 0; i < 3; i++)
        if (g->wanted[i] && want[i])
            g->din[i] = out[i];
    return SNUG_OK;
}

static void cost(const sn_attrs *attrs, const sn_desc *in, int n_in, const sn_desc *out, int n_out,
                 sn_cost *c)
{
    SN_UNUSED(attrs);
    sn_op_cost(8, in, n_in, out, n_out, c);
}

/* Offset of position p, channel 0 of the group, of cell (n, g). */
static int64_t offset(const cells *k, int64_t cell, int64_t p)
{
    int64_t n = cell / k->groups, g = cell % k->groups;
    return (n * k->positions + p) * k->n_c + g * k->width;
}

static void reference(const sn_call *call)
{
    const float *x = call->in[0].data, *gamma = call->in[1].data, *beta = call->in[2].data;
    float *y = call->out[0].data, *mean = call->out[1].data, *rstd = call->out[2].data;
    const cells k = cells_of(&call->attrs->norm, &call->in[0].desc.shape);
    for (int64_t cell = 0; cell < k.n * k.groups; cell++) {
        const int64_t first = cell % k.groups * k.width;
        const double n = (double)(k.positions * k.width);
        double sum = 0, squares = 0;
        for (int64_t i = 0; i < k.positions * k.width; i++)
            sum += (double)x[offset(&k, cell, i / k.width) + i % k.width];
        const double m = sum / n;
        for (int64_t i = 0; i < k.positions * k.width; i++) {
            double d = x[offset(&k, cell, i / k.width) + i % k.width] - m;
            squares += d * d;
        }
        const double r = 1 / sqrt(squares / n + (double)call->attrs->norm.epsilon);
        mean[cell] = (float)m;
        rstd[cell] = (float)r;
        for (int64_t i = 0; i < k.positions * k.width; i++) {
            int64_t at = offset(&k, cell, i / k.width) + i % k.width, c = first + i % k.width;
            y[at] = (float)((x[at] - m) * r * (gamma ? (double)gamma[c] : 1) +
                            (beta ? (double)beta[c] : 0));
        }
    }
}

/* Sums of each channel over all samples and positions. */
static void channel_sums(const cells *k, const float *x, const float *dy, const float *mean,
                         const float *rstd, float *dgamma, float *dbeta)
{
    for (int64_t c = 0; c < k->n_c; c++) {
        double sum = 0, dot = 0;
        for (int64_t r = 0; r < k->n * k->positions; r++) {
            int64_t cell = r / k->positions * k->groups + c / k->width;
            double d = dy[r * k->n_c + c];
            sum += d;
            dot += d * ((double)x[r * k->n_c + c] - (double)mean[cell]) * (double)rstd[cell];
        }
        if (dgamma)
            dgamma[c] = (float)dot;
        if (dbeta)
            dbeta[c] = (float)sum;
    }
}

static void reference_dx(const sn_call *call)
{
    const float *x = call->in[0].data, *dy = call->in[1].data, *gamma = call->in[2].data;
    const float *mean = call->in[3].data, *rstd = call->in[4].data;
    float *dx = call->out[0].data;
    const cells k = cells_of(&call->attrs->norm, &call->in[0].desc.shape);
    if (call->out[1].data || call->out[2].data)
        channel_sums(&k, x, dy, mean, rstd, call->out[1].data, call->out[2].data);
    for (int64_t cell = 0; cell < k.n * k.groups; cell++) {
        const int64_t first = cell % k.groups * k.width, n = k.positions * k.width;
        const double m = mean[cell], r = rstd[cell];
        double sum = 0, dot = 0;
        for (int64_t i = 0; i < n; i++) {
            int64_t at = offset(&k, cell, i / k.width) + i % k.width;
            double d = (double)dy[at] * (gamma ? (double)gamma[first + i % k.width] : 1);
            sum += d;
            dot += d * (x[at] - m) * r;
        }
        for (int64_t i = 0; i < n; i++) {
            int64_t at = offset(&k, cell, i / k.width) + i % k.width;
            double d = (double)dy[at] * (gamma ? (double)gamma[first + i % k.width] : 1);
            dx[at] = (float)(r * (d - (sum + (x[at] - m) * r * dot) / (double)n));
        }
    }
}

const sn_op sn_op_row_GROUP_NORM = {
    .name = "group_norm", .infer = infer, .grad = grad, .cost = cost, .reference = reference};
const sn_op sn_op_row_GROUP_NORM_DX = {.name = "group_norm_dx",
                                       .infer = infer_dx,
                                       .grad = sn_op_no_second_gradient,
                                       .cost = cost,
                                       .reference = reference_dx,
                                       .mixes_batch = sn_op_mixes};
