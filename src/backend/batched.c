/* SPDX-License-Identifier: Apache-2.0
 *
 * batched.c - which operands have a dimension of the batch.
 */
#include "backend/batched.h"

#define ALL_IN 0xffffu
#define ALL 0xffffffffu

static bool shares_rank_and_batch(const sn_view *view, const sn_view *whole, int64_t batch)
{
    return view->buffer != UINT32_MAX && view->desc.shape.rank == whole->desc.shape.rank &&
           view->desc.shape.rank > 0 && view->desc.shape.dim[0] == batch;
}

/* Elementwise operators whose operands may broadcast. */
static uint32_t batched_broadcast(const sn_instr *instr, const sn_view *whole, int64_t batch)
{
    uint32_t mask = 0;
    for (int i = 0; i < instr->n_in; i++)
        if (shares_rank_and_batch(&instr->in[i], whole, batch))
            mask |= SN_BATCHED_IN(i);
    for (int i = 0; i < instr->n_out; i++)
        if (shares_rank_and_batch(&instr->out[i], whole, batch))
            mask |= SN_BATCHED_OUT(i);
    return mask;
}

uint32_t sn_batched_operands(const sn_instr *instr, int64_t batch)
{
    switch (instr->op) {
    case SN_OP_CONV2D:
    case SN_OP_CONV2D_DX:
    case SN_OP_DENSE:
    case SN_OP_DENSE_DX:
    case SN_OP_BIAS_ADD:
    case SN_OP_BATCH_NORM:
    case SN_OP_BATCH_NORM_APPLY:
    case SN_OP_PRELU:
        return SN_BATCHED_IN(0) | SN_BATCHED_OUT(0);
    case SN_OP_CONV2D_DW:
    case SN_OP_DENSE_DW:
    case SN_OP_DENSE_UPDATE:
        return SN_BATCHED_IN(0) | SN_BATCHED_IN(1);
    case SN_OP_BIAS_GRAD:
        return SN_BATCHED_IN(0);
    case SN_OP_BATCH_NORM_DX:
    case SN_OP_BATCH_NORM_APPLY_DX:
        return SN_BATCHED_IN(0) | SN_BATCHED_IN(1) | SN_BATCHED_OUT(0);
    case SN_OP_GROUP_NORM:
        return SN_BATCHED_IN(0) | SN_BATCHED_OUT(0) | SN_BATCHED_OUT(1) | SN_BATCHED_OUT(2);
    case SN_OP_GROUP_NORM_DX:
        return SN_BATCHED_IN(0) | SN_BATCHED_IN(1) | SN_BATCHED_IN(3) | SN_BATCHED_IN(4) |
               SN_BATCHED_OUT(0);
    case SN_OP_PRELU_DX:
        return SN_BATCHED_IN(0) | SN_BATCHED_IN(2) | SN_BATCHED_OUT(0);
    case SN_OP_BINARY:
        return batched_broadcast(instr, &instr->out[0], batch);
    case SN_OP_MAXIMUM_DX:
        return batched_broadcast(instr, &instr->in[2], batch);
    case SN_OP_REDUCE_TO:
        return batched_broadcast(instr, &instr->in[0], batch);
    case SN_OP_LOSS:
        return ALL_IN;
    case SN_OP_MOVING_AVERAGE:
    case SN_OP_SUM_SQUARES:
    case SN_OP_UPDATE:
        return 0;
    case SN_OP_REORDER:
    case SN_OP_CAST:
        /* Weights move too; whole tensors are right for both, only activations gain by less. */
        return instr->in[0].layout.kind == SN_LAYOUT_BLOCKED ||
                       instr->out[0].layout.kind == SN_LAYOUT_BLOCKED
                   ? SN_BATCHED_IN(0) | SN_BATCHED_OUT(0)
                   : 0;
    default:
        return ALL;
    }
}
