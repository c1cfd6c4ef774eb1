/* SPDX-License-Identifier: Apache-2.0
 *
 * y = x > 0 ? x : alpha*x, alpha of x's shape without the batch, its shared axes 1. At 0 no
 * gradient passes, as in Keras (relu(x) - alpha*relu(-x)). */
#include "ops/util.h"

static snug_status need_alpha(sn_op_id id, const sn_desc *in, snug_error *err)
{
    char x[96], alpha[96];
    SN_OP_TRY(sn_op_need(id, in, 0, SN_F32, -1, err));
    SN_OP_TRY(sn_op_need(id, in, 1, SN_F32, -1, err));
    const sn_shape *sx = &in[0].shape, *sa = &in[1].shape;
    bool fits = sa->rank == sx->rank - 1;
    for (int i = 0; fits && i < sa->rank; i++)
        fits = sa->dim[i] == 1 || sa->dim[i] == sx->dim[i + 1];
    if (!fits)
        return sn_fail(err, SNUG_E_INPUT, "%s: alpha %s does not go with x %s", sn_op_of(id)->name,
                       sn_shape_format(alpha, sizeof alpha, sa), sn_shape_format(x, sizeof x, sx));
    return SNUG_OK;
}

static snug_status infer(const sn_attrs *attrs, const sn_desc *in, int n_in, sn_desc *out,
                         int n_out, snug_error *err)
{
    SN_UNUSED(attrs);
    SN_OP_TRY(sn_op_arity(SN_OP_PRELU, in, n_in, out, n_out, err));
    SN_OP_TRY(need_alpha(SN_OP_PRELU, in, err));
    return sn_op_set(SN_OP_PRELU, &out[0], SN_F32, &in[0].shape, err);
}

static snug_status infer_dx(const sn_attrs *attrs, const sn_desc *in, int n_in, sn_desc *out,
                            int n_out, snug_error *err)
{
    SN_UNUSED(attrs);
    SN_OP_TRY(sn_op_arity(SN_OP_PRELU_DX, in, n_in, out, n_out, err));
    SN_OP_TRY(need_alpha(SN_OP_PRELU_DX, in, err));
    SN_OP_TRY(sn_op_need_shape(SN_OP_PRELU_DX, in, 2, &in[0].shape, err));
    SN_OP_TRY(sn_op_set(SN_OP_PRELU_DX, &out[0], SN_F32, &in[0].shape, err));
    return sn_op_set(SN_OP_PRELU_DX, &out[1], SN_F32, &in[1].shape, err);
}

static snug_status grad(sn_grad *g, snug_error *err)
{
    sn_ref out[2] = {SN_NO_REF, SN_NO_REF};
    if (!sn_op_grad_begin(g) || (!g->wanted[0] && !g->wanted[1]))
        return SNUG_OK;
    SN_OP_TRY(g->emit(g, SN_OP_PRELU_DX, g->attrs, 3, (sn_ref[]){g->in[0], g->in[1], g->dout[0]}, 2,
                      (bool[]){true, g->wanted[1]}, out, err));
    for (int i = 0; i < 2; i++)
        if (g->wanted[i])
            g->din[i] = out[i];
    return SNUG_OK;
}

static void cost(const sn_attrs *attrs, const sn_desc *in, int n_in, const sn_desc *out, int n_out,
                 sn_cost *c)
{
    SN_UNUSED(attrs);
    sn_op_cost(1, in, n_in, out, n_out, c);
}

/* The element of alpha that belongs to element i of x. */
static int64_t alpha_index(const sn_shape *x, const sn_shape *alpha, int64_t i)
{
    int64_t at = 0, step = 1;
    for (int axis = x->rank - 1; axis > 0; axis--) {
        int64_t d = alpha->dim[axis - 1];
        at += d == 1 ? 0 : i % x->dim[axis] * step;
        step *= d;
        i /= x->dim[axis];
    }
    return at;
}

static void reference(const sn_call *call)
{
    const float *x = call->in[0].data, *alpha = call->in[1].data;
    const sn_shape *sx = &call->in[0].desc.shape, *sa = &call->in[1].desc.shape;
    float *y = call->out[0].data;
    const int64_t n = sn_shape_n(sx);
    for (int64_t i = 0; i < n; i++)
        y[i] = x[i] > 0 ? x[i] : x[i] == 0 ? 0.0f : alpha[alpha_index(sx, sa, i)] * x[i];
}

static void reference_dx(const sn_call *call)
{
    const float *x = call->in[0].data, *alpha = call->in[1].data, *dy = call->in[2].data;
    const sn_shape *sx = &call->in[0].desc.shape, *sa = &call->in[1].desc.shape;
    float *dx = call->out[0].data, *dalpha = call->out[1].data;
    double *sums = call->workspace;
    const int64_t n = sn_shape_n(sx), n_alpha = sn_shape_n(sa);
    for (int64_t k = 0; k < n_alpha; k++)
        sums[k] = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t k = alpha_index(sx, sa, i);
        float d = dy[i];
        if (x[i] < 0)
            sums[k] += (double)d * (double)x[i];
        dx[i] = x[i] > 0 ? d : x[i] < 0 ? alpha[k] * d : 0.0f;
    }
    for (int64_t k = 0; dalpha && k < n_alpha; k++)
        dalpha[k] = (float)sums[k];
}

static uint64_t workspace_dx(const sn_attrs *attrs, const sn_desc *in, int n_in)
{
    SN_UNUSED(attrs);
    SN_UNUSED(n_in);
    return (uint64_t)sn_shape_n(&in[1].shape) * sizeof(double);
}

/* dx over dy */
static int in_place_dx(const sn_attrs *attrs, int index)
{
    SN_UNUSED(attrs);
    return index == 0 ? 2 : -1;
}

const sn_op sn_op_row_PRELU = {.name = "prelu",
                               .infer = infer,
                               .grad = grad,
                               .cost = cost,
                               .reference = reference,
                               .in_place = sn_op_in_place_first};
const sn_op sn_op_row_PRELU_DX = {.name = "prelu_dx",
                                  .infer = infer_dx,
                                  .grad = sn_op_no_second_gradient,
                                  .cost = cost,
                                  .reference = reference_dx,
                                  .reference_workspace = workspace_dx,
                                  .in_place = in_place_dx,
                                  .mixes_batch = sn_op_mixes};
