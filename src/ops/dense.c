/* SPDX-License-Identifier: Apache-2.0
 *
 * Dense layers over the last axis: x [...,I], w [I,O], y [...,O]. DENSE_UPDATE makes the weight
 * gradient a few elements at a time and applies it at once: its bits are those of DENSE_DW followed
 * by UPDATE, so the order of summation is one function for both. */
#include "ops/util.h"

enum { BLOCK = 64 };

static snug_status infer(const sn_attrs *attrs, const sn_desc *in, int n_in, sn_desc *out,
                         int n_out, snug_error *err)
{
    const sn_op_id id = SN_OP_DENSE;
    SN_OP_TRY(sn_op_arity(id, in, n_in, out, n_out, err));
    SN_OP_TRY(sn_op_need(id, in, 0, SN_F32, -1, err));
    SN_OP_TRY(sn_op_need(id, in, 1, SN_F32, 2, err));
    SN_OP_TRY(sn_op_need_act(id, &attrs->conv.act, true, err));
    sn_shape y = in[0].shape;
    if (sn_op_last(&y) != in[1].shape.dim[0])
        return sn_fail(err, SNUG_E_INPUT, "dense: x has %" PRId64 " features, w takes %" PRId64,
                       sn_op_last(&y), in[1].shape.dim[0]);
    y.dim[y.rank - 1] = in[1].shape.dim[1];
    SN_OP_TRY(sn_op_need_vector(id, in, 2, in[1].shape.dim[1], err));
    return sn_op_set(id, &out[0], SN_F32, &y, err);
}

static snug_status infer_dx(const sn_attrs *attrs, const sn_desc *in, int n_in, sn_desc *out,
                            int n_out, snug_error *err)
{
    const sn_op_id id = SN_OP_DENSE_DX;
    SN_UNUSED(attrs);
    SN_OP_TRY(sn_op_arity(id, in, n_in, out, n_out, err));
    SN_OP_TRY(sn_op_need(id, in, 0, SN_F32, -1, err));
    SN_OP_TRY(sn_op_need(id, in, 1, SN_F32, 2, err));
    sn_shape x = in[0].shape;
    if (sn_op_last(&x) != in[1].shape.dim[1])
        return sn_fail(err, SNUG_E_INPUT, "dense_dx: dy has %" PRId64 " features, w gives %" PRId64,
                       sn_op_last(&x), in[1].shape.dim[1]);
    x.dim[x.rank - 1] = in[1].shape.dim[0];
    return sn_op_set(id, &out[0], SN_F32, &x, err);
}

/* x [...,I] and dy [...,O] have the same rows. */
static snug_status need_rows(sn_op_id id, const sn_desc *in, snug_error *err)
{
    SN_OP_TRY(sn_op_need(id, in, 0, SN_F32, -1, err));
    SN_OP_TRY(sn_op_need(id, in, 1, SN_F32, -1, err));
    if (sn_op_rows(&in[0].shape) != sn_op_rows(&in[1].shape))
        return sn_fail(err, SNUG_E_INPUT, "%s: x has %" PRId64 " rows, dy %" PRId64,
                       sn_op_of(id)->name, sn_op_rows(&in[0].shape), sn_op_rows(&in[1].shape));
    return SNUG_OK;
}

static snug_status infer_dw(const sn_attrs *attrs, const sn_desc *in, int n_in, sn_desc *out,
                            int n_out, snug_error *err)
{
    const sn_op_id id = SN_OP_DENSE_DW;
    SN_OP_TRY(sn_op_arity(id, in, n_in, out, n_out, err));
    SN_OP_TRY(need_rows(id, in, err));
    sn_shape w = {2, {sn_op_last(&in[0].shape), sn_op_last(&in[1].shape)}};
    sn_shape bias = {1, {w.dim[1]}};
    SN_OP_TRY(sn_op_set(id, &out[0], SN_F32, &w, err));
    return attrs->conv.has_dbias ? sn_op_set(id, &out[1], SN_F32, &bias, err) : SNUG_OK;
}

static snug_status infer_update(const sn_attrs *attrs, const sn_desc *in, int n_in, sn_desc *out,
                                int n_out, snug_error *err)
{
    const sn_op_id id = SN_OP_DENSE_UPDATE;
    const sn_update_attrs *u = &attrs->update;
    SN_OP_TRY(sn_op_arity(id, in, n_in, out, n_out, err));
    SN_OP_TRY(need_rows(id, in, err));
    sn_shape w = {2, {sn_op_last(&in[0].shape), sn_op_last(&in[1].shape)}};
    SN_OP_TRY(sn_op_need_shape(id, in, 2, &w, err));
    if (u->clip_norm != 0 || u->clip_global != 0)
        return sn_fail(err, SNUG_E_UNSUPPORTED,
                       "dense_update: clipping by norm needs the whole gradient first");
    SN_OP_TRY(sn_op_need_update(id, u, in, 3, 2, &w, err));
    for (int i = 0; i < 1 + sn_update_n_slots(u); i++)
        SN_OP_TRY(sn_op_set(id, &out[i], SN_F32, &w, err));
    return SNUG_OK;
}

static snug_status grad(sn_grad *g, snug_error *err)
{
    sn_ref dy;
    if (!sn_op_grad_begin(g))
        return SNUG_OK;
    sn_attrs b = {0};
    bool bias = g->in[2] != SN_NO_REF && g->wanted[2];
    SN_OP_TRY(sn_op_emit_act_dx(g, &g->attrs->conv.act, g->out[0], g->dout[0], &dy, err));
    if (g->wanted[1]) {
        sn_ref out[2] = {SN_NO_REF, SN_NO_REF};
        b.conv.has_dbias = bias;
        SN_OP_TRY(g->emit(g, SN_OP_DENSE_DW, &b, 2, (sn_ref[]){g->in[0], dy}, 2,
                          (bool[]){true, bias}, out, err));
        g->din[1] = out[0];
        if (bias)
            g->din[2] = out[1];
    } else if (bias) {
        SN_OP_TRY(sn_op_emit(g, SN_OP_BIAS_GRAD, NULL, 1, &dy, &g->din[2], err));
    }
    if (g->wanted[0])
        SN_OP_TRY(
            sn_op_emit(g, SN_OP_DENSE_DX, NULL, 2, (sn_ref[]){dy, g->in[1]}, &g->din[0], err));
    return SNUG_OK;
}

static void cost(const sn_attrs *attrs, const sn_desc *in, int n_in, const sn_desc *out, int n_out,
                 sn_cost *c)
{
    SN_UNUSED(attrs);
    sn_op_cost(0, in, n_in, out, n_out, c);
    c->flops = 2.0 * (double)sn_op_rows(&in[0].shape) * (double)sn_shape_n(&in[1].shape);
}

static void cost_dw(const sn_attrs *attrs, const sn_desc *in, int n_in, const sn_desc *out,
                    int n_out, sn_cost *c)
{
    SN_UNUSED(attrs);
    sn_op_cost(0, in, n_in, out, n_out, c);
    c->flops = 2.0 * (double)sn_op_rows(&in[0].shape) * (double)sn_shape_n(&out[0].shape);
}

static void reference(const sn_call *call)
{
    const float *x = call->in[0].data, *w = call->in[1].data, *bias = call->in[2].data;
    float *y = call->out[0].data;
    const int64_t n_in = call->in[1].desc.shape.dim[0], n_out = call->in[1].desc.shape.dim[1];
    const int64_t rows = sn_op_rows(&call->in[0].desc.shape);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t o = 0; o < n_out; o += BLOCK) {
            double acc[BLOCK] = {0};
            const int64_t count = SN_MIN(n_out - o, BLOCK);
            for (int64_t i = 0; i < n_in; i++)
                for (int64_t k = 0; k < count; k++)
                    acc[k] += (double)x[r * n_in + i] * (double)w[i * n_out + o + k];
            for (int64_t k = 0; k < count; k++)
                y[r * n_out + o + k] = sn_op_fused(
                    &call->attrs->conv.act, (float)(acc[k] + (bias ? (double)bias[o + k] : 0)));
        }
}

static void reference_dx(const sn_call *call)
{
    const float *dy = call->in[0].data, *w = call->in[1].data;
    float *dx = call->out[0].data;
    const int64_t n_in = call->in[1].desc.shape.dim[0], n_out = call->in[1].desc.shape.dim[1];
    const int64_t rows = sn_op_rows(&call->in[0].desc.shape);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < n_in; i++) {
            double sum = 0;
            for (int64_t o = 0; o < n_out; o++)
                sum += (double)dy[r * n_out + o] * (double)w[i * n_out + o];
            dx[r * n_in + i] = (float)sum;
        }
}

/* dw[i][o .. o+count-1] */
static void gradient_of(const float *x, const float *dy, int64_t rows, int64_t n_in, int64_t n_out,
                        int64_t i, int64_t o, int64_t count, float *dw)
{
    double acc[BLOCK] = {0};
    for (int64_t r = 0; r < rows; r++)
        for (int64_t k = 0; k < count; k++)
            acc[k] += (double)x[r * n_in + i] * (double)dy[r * n_out + o + k];
    for (int64_t k = 0; k < count; k++)
        dw[k] = (float)acc[k];
}

static void reference_dw(const sn_call *call)
{
    const float *x = call->in[0].data, *dy = call->in[1].data;
    float *dw = call->out[0].data, *dbias = call->out[1].data;
    const int64_t rows = sn_op_rows(&call->in[0].desc.shape);
    const int64_t n_in = call->out[0].desc.shape.dim[0], n_out = call->out[0].desc.shape.dim[1];
    for (int64_t i = 0; i < n_in; i++)
        for (int64_t o = 0; o < n_out; o += BLOCK)
            gradient_of(x, dy, rows, n_in, n_out, i, o, SN_MIN(n_out - o, BLOCK),
                        dw + i * n_out + o);
    for (int64_t o = 0; dbias && o < n_out; o++) {
        double sum = 0;
        for (int64_t r = 0; r < rows; r++)
            sum += (double)dy[r * n_out + o];
        dbias[o] = (float)sum;
    }
}

static void reference_update(const sn_call *call)
{
    const float *x = call->in[0].data, *dy = call->in[1].data, *w = call->in[2].data;
    const sn_update_attrs *u = &call->attrs->update;
    const int64_t rows = sn_op_rows(&call->in[0].desc.shape);
    const int64_t n_in = call->in[2].desc.shape.dim[0], n_out = call->in[2].desc.shape.dim[1];
    sn_op_clip clip = {u->clip_value > 0 ? SN_OP_CLIP_VALUE : SN_OP_CLIP_NONE, u->clip_value, 0};
    sn_update_scalars scalars;
    sn_update_prepare(&scalars, u, call->step);
    for (int64_t at = 0, count; at < n_in * n_out; at += count) {
        float g[BLOCK], *slot_out[3] = {NULL, NULL, NULL};
        const float *slot[3] = {NULL, NULL, NULL};
        count = SN_MIN(n_out - at % n_out, BLOCK);
        gradient_of(x, dy, rows, n_in, n_out, at / n_out, at % n_out, count, g);
        for (int s = 0; s < 2 && s < sn_update_n_slots(u); s++) {
            slot[s] = (const float *)call->in[3 + s].data + at;
            slot_out[s] = (float *)call->out[1 + s].data + at;
        }
        sn_op_update_run(u, &scalars, &clip, count, (float *)call->out[0].data + at, w + at, g,
                         slot_out, slot);
    }
}

/* w', slot0', slot1' over w, slot0, slot1 */
static int in_place_update(const sn_attrs *attrs, int index)
{
    SN_UNUSED(attrs);
    return index + 2;
}

const sn_op sn_op_row_DENSE = {
    .name = "dense", .infer = infer, .grad = grad, .cost = cost, .reference = reference};
const sn_op sn_op_row_DENSE_DX = {.name = "dense_dx",
                                  .infer = infer_dx,
                                  .grad = sn_op_no_second_gradient,
                                  .cost = cost,
                                  .reference = reference_dx};
const sn_op sn_op_row_DENSE_DW = {.name = "dense_dw",
                                  .infer = infer_dw,
                                  .grad = sn_op_no_second_gradient,
                                  .cost = cost_dw,
                                  .reference = reference_dw,
                                  .mixes_batch = sn_op_mixes};
const sn_op sn_op_row_DENSE_UPDATE = {.name = "dense_update",
                                      .infer = infer_update,
                                      .cost = cost_dw,
                                      .reference = reference_update,
                                      .in_place = in_place_update,
                                      .mixes_batch = sn_op_mixes};
