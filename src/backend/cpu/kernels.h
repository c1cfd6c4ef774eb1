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
extern const sn_cpu_kernel sn_cpu_k_conv_moved;
extern const sn_cpu_kernel sn_cpu_k_conv_plain;
extern const sn_cpu_kernel sn_cpu_k_batch_norm;
extern const sn_cpu_kernel sn_cpu_k_activation;
extern const sn_cpu_kernel sn_cpu_k_activation_dx;
extern const sn_cpu_kernel sn_cpu_k_binary;
extern const sn_cpu_kernel sn_cpu_k_binary_channels;
extern const sn_cpu_kernel sn_cpu_k_scalar;
extern const sn_cpu_kernel sn_cpu_k_bias_add;
extern const sn_cpu_kernel sn_cpu_k_bias_grad;
extern const sn_cpu_kernel sn_cpu_k_dropout;
extern const sn_cpu_kernel sn_cpu_k_pool;
extern const sn_cpu_kernel sn_cpu_k_global_pool;
extern const sn_cpu_kernel sn_cpu_k_dense;
extern const sn_cpu_kernel sn_cpu_k_update;
extern const sn_cpu_kernel sn_cpu_k_sum_squares;
extern const sn_cpu_kernel sn_cpu_k_concat;
extern const sn_cpu_kernel sn_cpu_k_slice;
extern const sn_cpu_kernel sn_cpu_k_pad;
extern const sn_cpu_kernel sn_cpu_k_reshape;
extern const sn_cpu_kernel sn_cpu_k_conv_first;
extern const sn_cpu_kernel sn_cpu_k_conv_depth_data;
extern const sn_cpu_kernel sn_cpu_k_conv_winograd;

#endif
