/* SPDX-License-Identifier: Apache-2.0
 *
 * The inner loops for AVX-512. */
#include "backend/cpu/simd.h"

#if defined(__x86_64__)
#if defined(__clang__)
#pragma clang attribute push(                                                                      \
    __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx2,fma"))), apply_to = function)
#else
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,avx2,fma")
#endif
#define VEC_ISA 16
#include "backend/cpu/bodies.h"

const sn_cpu_simd sn_cpu_simd_avx512 = SN_CPU_TABLE("AVX-512");

#if defined(__clang__)
#pragma clang attribute pop
#endif
#endif
