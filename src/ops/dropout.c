/* SPDX-License-Identifier: Apache-2.0
 *
 * Inverted dropout. One draw of Philox belongs to (seed, layer; step, position of the sample in the
 * global batch, logical element), so that it is the same on every device, layout and slicing, and
 * the gradient is the same operator on dy. */
#include "ops/util.h"

#include "base/rng.h"

static snug_status infer(const sn_attrs *attrs, const sn_desc *in, int n_in, sn_desc *out,
                         int n_out, snug_error *err)
{
    const float rate = attrs->dropout.rate;
    SN_OP_TRY(sn_op_arity(SN_OP_DROPOUT, in, n_in, out, n_out, err));
    SN_OP_TRY(sn_op_need(SN_OP_DROPOUT, in, 0, SN_F32, -1, err));
    if (!(rate >= 0 && rate <= 1))
        return sn_fail(err, SNUG_E_INPUT, "dropout: rate is %g, it must be 0 to 1", (double)rate);
    return sn_op_set(SN_OP_DROPOUT, &out[0], SN_F32, &in[0].shape, err);
}

static snug_status grad(sn_grad *g, snug_error *err)
{
    if (!sn_op_grad_begin(g) || !g->wanted[0])
        return SNUG_OK;
    return sn_op_emit(g, SN_OP_DROPOUT, g->attrs, 1, g->dout, &g->din[0], err);
}

static void cost(const sn_attrs *attrs, const sn_desc *in, int n_in, const sn_desc *out, int n_out,
                 sn_cost *c)
{
    SN_UNUSED(attrs);
    sn_op_cost(20, in, n_in, out, n_out, c);
}

bool sn_dropout_keeps(const sn_dropout_attrs *dropout, const sn_step *step, uint64_t sample,
                      uint64_t element)
{
    uint32_t r[4];
    /* Four neighbours share a block of Philox: sample in the upper half of the counter's second
     * word, block in the lower. */
    sn_philox(r, sn_mix_u64(step->seed, dropout->stream), step->number,
              (step->first_sample + sample) << 32 ^ element >> 2);
    return sn_uniform_f32(r[element & 3]) >= dropout->rate;
}

uint64_t sn_dropout_fold(const sn_dropout_attrs *dropout, const sn_shape *shape, uint64_t element)
{
    uint64_t folded = 0, stride = 1;
    for (int axis = shape->rank - 1; axis > 0; axis--) {
        uint64_t d = (uint64_t)shape->dim[axis];
        if (!(dropout->broadcast >> axis & 1))
            folded += element % d * stride;
        stride *= d;
        element /= d;
    }
    return folded;
}

static void reference(const sn_call *call)
{
    const sn_dropout_attrs *a = &call->attrs->dropout;
    const sn_shape *shape = &call->in[0].desc.shape;
    const float *x = call->in[0].data;
    float *y = call->out[0].data;
    const float scale = a->rate < 1 ? 1.0f / (1.0f - a->rate) : 0.0f;
    const int64_t n = shape->dim[0], each = sn_shape_n(shape) / n;
    for (int64_t i = 0; i < n * each; i++) {
        uint64_t element = sn_dropout_fold(a, shape, (uint64_t)(i % each));
        bool keep = sn_dropout_keeps(a, call->step, (uint64_t)(i / each), element);
        y[i] = keep ? x[i] * scale : 0.0f;
    }
}

const sn_op sn_op_row_DROPOUT = {.name = "dropout",
                                 .infer = infer,
                                 .grad = grad,
                                 .cost = cost,
                                 .reference = reference,
                                 .in_place = sn_op_in_place_first};
