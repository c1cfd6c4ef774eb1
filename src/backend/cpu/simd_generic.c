/* SPDX-License-Identifier: Apache-2.0
 *
 * The inner loops for any processor. */
#include "backend/cpu/simd.h"

/* Vectors are passed between static functions only: no other object file sees that convention. */
#pragma GCC diagnostic ignored "-Wpsabi"
#define VEC_ISA 1
#include "backend/cpu/bodies.h"

const sn_cpu_simd sn_cpu_simd_generic = SN_CPU_TABLE("baseline");
