/* SPDX-License-Identifier: Apache-2.0
 *
 * The inner loops for AVX2. */
#include "backend/cpu/simd.h"

#if defined(__x86_64__)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC target("avx2,fma")
#endif
#define VEC_ISA 8
#include "backend/cpu/bodies.h"

const sn_cpu_simd sn_cpu_simd_avx2 = SN_CPU_TABLE("AVX2");

#if defined(__clang__)
#pragma clang attribute pop
#endif
#endif
