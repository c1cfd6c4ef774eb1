/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernels of each operator, best first; the plain C last.
 */
#include "backend/cpu/kernels.h"

sn_layout sn_cpu_pick_layout(const sn_cpu_device *device, const sn_operation *o, uint32_t mask)
{
    sn_layout blocked = SN_BLOCKED(device->block);
    if (o->out_wish && o->out_wish[0].kind == SN_LAYOUT_PLAIN)
        return SN_PLAIN;
    for (int i = 0; i < o->n_in; i++) {
        if (!(mask >> i & 1) || !sn_cpu_present(&o->in[i]) || o->in[i].shape.rank != 4)
            continue;
        if (sn_layout_eq(o->in_layout[i], blocked) || o->in_layout[i].kind == SN_LAYOUT_UNSET)
            return blocked;
    }
    return o->out_wish && o->out_wish[0].kind == SN_LAYOUT_BLOCKED ? o->out_wish[0] : SN_PLAIN;
}

bool sn_cpu_all_f32(const sn_operation *o)
{
    for (int i = 0; i < o->n_in; i++)
        if (sn_cpu_present(&o->in[i]) && o->in[i].dtype != SN_F32)
            return false;
    for (int i = 0; i < o->n_out; i++)
        if (sn_cpu_present(&o->out[i]) && o->out[i].dtype != SN_F32)
            return false;
    return true;
}

static const sn_cpu_kernel *const reference[] = {&sn_cpu_k_reference, NULL};
static const sn_cpu_kernel *const reorder[] = {&sn_cpu_k_reorder, NULL};

static const sn_cpu_kernel *const conv2d[] = {&sn_cpu_k_conv, &sn_cpu_k_conv_plain,
                                              &sn_cpu_k_reference, NULL};
static const sn_cpu_kernel *const conv2d_dw[] = {&sn_cpu_k_conv, &sn_cpu_k_conv_moved,
                                                 &sn_cpu_k_conv_plain, &sn_cpu_k_reference, NULL};

static const sn_cpu_kernel *const batch_norm[] = {&sn_cpu_k_batch_norm, &sn_cpu_k_reference, NULL};

const sn_cpu_kernel *const *sn_cpu_kernels(sn_op_id op)
{
    switch (op) {
    case SN_OP_BATCH_NORM:
    case SN_OP_BATCH_NORM_APPLY:
    case SN_OP_BATCH_NORM_DX:
    case SN_OP_BATCH_NORM_APPLY_DX:
        return batch_norm;
    case SN_OP_CONV2D:
    case SN_OP_CONV2D_DX:
        return conv2d;
    case SN_OP_CONV2D_DW:
        return conv2d_dw;
    case SN_OP_REORDER:
        return reorder;
    default:
        return reference;
    }
}
