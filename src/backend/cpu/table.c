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
static const sn_cpu_kernel *const conv2d[] = {&sn_cpu_k_conv_first, &sn_cpu_k_conv_winograd,
                                              &sn_cpu_k_conv,       &sn_cpu_k_conv_plain,
                                              &sn_cpu_k_reference,  NULL};
static const sn_cpu_kernel *const conv2d_dx[] = {
    &sn_cpu_k_conv_depth_data, &sn_cpu_k_conv_winograd, &sn_cpu_k_conv,
    &sn_cpu_k_conv_plain,      &sn_cpu_k_reference,     NULL};
static const sn_cpu_kernel *const conv2d_dw[] = {&sn_cpu_k_conv_first,
                                                 &sn_cpu_k_conv_winograd,
                                                 &sn_cpu_k_conv,
                                                 &sn_cpu_k_conv_moved,
                                                 &sn_cpu_k_conv_plain,
                                                 &sn_cpu_k_reference,
                                                 NULL};
static const sn_cpu_kernel *const batch_norm[] = {&sn_cpu_k_batch_norm, &sn_cpu_k_reference, NULL};
static const sn_cpu_kernel *const activation[] = {&sn_cpu_k_activation, &sn_cpu_k_reference, NULL};
static const sn_cpu_kernel *const activation_dx[] = {&sn_cpu_k_activation_dx, &sn_cpu_k_reference,
                                                     NULL};
static const sn_cpu_kernel *const binary[] = {&sn_cpu_k_binary, &sn_cpu_k_binary_channels,
                                              &sn_cpu_k_reference, NULL};
static const sn_cpu_kernel *const scalar[] = {&sn_cpu_k_scalar, &sn_cpu_k_reference, NULL};
static const sn_cpu_kernel *const bias_add[] = {&sn_cpu_k_bias_add, &sn_cpu_k_reference, NULL};
static const sn_cpu_kernel *const bias_grad[] = {&sn_cpu_k_bias_grad, &sn_cpu_k_reference, NULL};
static const sn_cpu_kernel *const dropout[] = {&sn_cpu_k_dropout, &sn_cpu_k_reference, NULL};
static const sn_cpu_kernel *const pool2d[] = {&sn_cpu_k_pool, &sn_cpu_k_reference, NULL};
static const sn_cpu_kernel *const global_pool[] = {&sn_cpu_k_global_pool, &sn_cpu_k_reference,
                                                   NULL};
static const sn_cpu_kernel *const dense[] = {&sn_cpu_k_dense, &sn_cpu_k_reference, NULL};
static const sn_cpu_kernel *const update[] = {&sn_cpu_k_update, &sn_cpu_k_reference, NULL};
static const sn_cpu_kernel *const sum_squares[] = {&sn_cpu_k_sum_squares, &sn_cpu_k_reference,
                                                   NULL};
static const sn_cpu_kernel *const concat[] = {&sn_cpu_k_concat, &sn_cpu_k_reference, NULL};
static const sn_cpu_kernel *const slice[] = {&sn_cpu_k_slice, &sn_cpu_k_reference, NULL};
static const sn_cpu_kernel *const pad2d[] = {&sn_cpu_k_pad, &sn_cpu_k_reference, NULL};
static const sn_cpu_kernel *const reshape[] = {&sn_cpu_k_reshape, &sn_cpu_k_reference, NULL};

const sn_cpu_kernel *const *sn_cpu_kernels(sn_op_id op)
{
    static const sn_cpu_kernel *const *const lists[SN_N_OPS] = {
        [SN_OP_REORDER] = reorder,
        [SN_OP_CONV2D] = conv2d,
        [SN_OP_CONV2D_DX] = conv2d_dx,
        [SN_OP_CONV2D_DW] = conv2d_dw,
        [SN_OP_BATCH_NORM] = batch_norm,
        [SN_OP_BATCH_NORM_APPLY] = batch_norm,
        [SN_OP_BATCH_NORM_DX] = batch_norm,
        [SN_OP_BATCH_NORM_APPLY_DX] = batch_norm,
        [SN_OP_ACTIVATION] = activation,
        [SN_OP_ACTIVATION_DX] = activation_dx,
        [SN_OP_BINARY] = binary,
        [SN_OP_SCALAR] = scalar,
        [SN_OP_BIAS_ADD] = bias_add,
        [SN_OP_BIAS_GRAD] = bias_grad,
        [SN_OP_DROPOUT] = dropout,
        [SN_OP_POOL2D] = pool2d,
        [SN_OP_POOL2D_DX] = pool2d,
        [SN_OP_GLOBAL_POOL] = global_pool,
        [SN_OP_GLOBAL_POOL_DX] = global_pool,
        [SN_OP_DENSE] = dense,
        [SN_OP_DENSE_DX] = dense,
        [SN_OP_DENSE_DW] = dense,
        [SN_OP_DENSE_UPDATE] = dense,
        [SN_OP_UPDATE] = update,
        [SN_OP_SUM_SQUARES] = sum_squares,
        [SN_OP_CONCAT] = concat,
        [SN_OP_SLICE] = slice,
        [SN_OP_PAD2D] = pad2d,
        [SN_OP_CROP2D] = pad2d,
        [SN_OP_RESHAPE] = reshape,
    };
    return lists[op] ? lists[op] : reference;
}
