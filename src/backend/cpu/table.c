/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernels of each operator, best first; the plain C last.
 */
#include "backend/cpu/kernels.h"

static const sn_cpu_kernel *const reference[] = {&sn_cpu_k_reference, NULL};
static const sn_cpu_kernel *const reorder[] = {&sn_cpu_k_reorder, NULL};

static const sn_cpu_kernel *const conv2d[] = {&sn_cpu_k_conv, &sn_cpu_k_conv_plain,
                                              &sn_cpu_k_reference, NULL};
static const sn_cpu_kernel *const conv2d_dw[] = {&sn_cpu_k_conv, &sn_cpu_k_conv_moved,
                                                 &sn_cpu_k_conv_plain, &sn_cpu_k_reference, NULL};

const sn_cpu_kernel *const *sn_cpu_kernels(sn_op_id op)
{
    switch (op) {
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
