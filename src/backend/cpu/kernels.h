/* SPDX-License-Identifier: Apache-2.0
 *
 * kernels.h - every kernel of the CPU backend; table.c puts them in order.
 *
 *     static const sn_cpu_kernel *const dense[] = {&sn_cpu_k_dense, &sn_cpu_k_reference, NULL};
 *
 * Ownership: static.  Threads: read-only.
 */
#ifndef SN_BACKEND_CPU_KERNELS_H
#define SN_BACKEND_CPU_KERNELS_H

#include "backend/cpu/internal.h"

extern const sn_cpu_kernel sn_cpu_k_reference;
extern const sn_cpu_kernel sn_cpu_k_reorder;
extern const sn_cpu_kernel sn_cpu_k_conv;
extern const sn_cpu_kernel sn_cpu_k_conv_moved; /* CONV2D_DW */
extern const sn_cpu_kernel sn_cpu_k_conv_plain;
extern const sn_cpu_kernel sn_cpu_k_batch_norm; /* all four of its operators */

#endif
