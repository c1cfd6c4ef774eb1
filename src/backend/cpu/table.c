/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernels of each operator, best first; the plain C last.
 */
#include "backend/cpu/kernels.h"

static const sn_cpu_kernel *const reference[] = {&sn_cpu_k_reference, NULL};
static const sn_cpu_kernel *const reorder[] = {&sn_cpu_k_reorder, NULL};

const sn_cpu_kernel *const *sn_cpu_kernels(sn_op_id op)
{
    switch (op) {
    case SN_OP_REORDER:
        return reorder;
    default:
        return reference;
    }
}
