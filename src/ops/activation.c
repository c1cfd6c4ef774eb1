/* SPDX-License-Identifier: Apache-2.0
 *
 * y = act(x). The gradient takes y where that is enough (sn_act_from_output), else x. Where the
 * slope is 0 the gradient is 0, whatever dy is, as TensorFlow's select has it. */
#include "ops/util.h"

static snug_status infer(const sn_attrs *attrs, const sn_desc *in, int n_in, sn_desc *out,
                         int n_out, snug_error *err)
{
    SN_OP_TRY(sn_op_arity(SN_OP_ACTIVATION, in, n_in, out, n_out, err));
    SN_OP_TRY(sn_op_need(SN_OP_ACTIVATION, in, 0, SN_F32, -1, err));
    SN_OP_TRY(sn_op_need_act(SN_OP_ACTIVATION, &attrs->act, false, err));
    return sn_op_set(SN_OP_ACTIVATION, &out[0], SN_F32, &in[0].shape, err);
}

static snug_status infer_dx(const sn_attrs *attrs, const sn_desc *in, int n_in, sn_desc *out,
                            int n_out, snug_error *err)
{
    const sn_op_id id = SN_OP_ACTIVATION_DX;
    SN_OP_TRY(sn_op_arity(id, in, n_in, out, n_out, err));
    SN_OP_TRY(sn_op_need(id, in, 0, SN_F32, -1, err));
    SN_OP_TRY(sn_op_need_shape(id, in, 1, &in[0].shape, err));
    SN_OP_TRY(sn_op_need_act(id, &attrs->act, false, err));
    return sn_op_set(id, &out[0], SN_F32, &in[0].shape, err);
}

static snug_status grad(sn_grad *g, snug_error *err)
{
    if (!sn_op_grad_begin(g) || !g->wanted[0])
        return SNUG_OK;
    sn_ref saved = sn_act_from_output(&g->attrs->act) ? g->out[0] : g->in[0];
    return sn_op_emit_act_dx(g, &g->attrs->act, saved, g->dout[0], &g->din[0], err);
}

static void cost(const sn_attrs *attrs, const sn_desc *in, int n_in, const sn_desc *out, int n_out,
                 sn_cost *c)
{
    sn_op_cost(attrs->act.kind == SN_ACT_RELU ? 1 : 10, in, n_in, out, n_out, c);
}

static void reference(const sn_call *call)
{
    const float *x = call->in[0].data;
    float *y = call->out[0].data;
    const int64_t n = sn_shape_n(&call->in[0].desc.shape);
    for (int64_t i = 0; i < n; i++)
        y[i] = sn_act_value(&call->attrs->act, x[i]);
}

static void reference_dx(const sn_call *call)
{
    const float *saved = call->in[0].data, *dy = call->in[1].data;
    float *dx = call->out[0].data;
    const int64_t n = sn_shape_n(&call->in[0].desc.shape);
    for (int64_t i = 0; i < n; i++) {
        float slope = sn_act_slope(&call->attrs->act, saved[i]);
        dx[i] = slope == 0 ? 0.0f : dy[i] * slope;
    }
}

const sn_op sn_op_row_ACTIVATION = {.name = "activation",
                                    .infer = infer,
                                    .grad = grad,
                                    .cost = cost,
                                    .reference = reference,
                                    .in_place = sn_op_in_place_first};
const sn_op sn_op_row_ACTIVATION_DX = {.name = "activation_dx",
                                       .infer = infer_dx,
                                       .grad = sn_op_no_second_gradient,
                                       .cost = cost,
                                       .reference = reference_dx,
                                       .in_place = sn_op_in_place_second};
