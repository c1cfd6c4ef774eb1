/* SPDX-License-Identifier: Apache-2.0
 *
 * simd.h - inner loops of our own kernels, compiled once per instruction set from the same source
 * and chosen when a device is opened.
 *
 *     const sn_cpu_simd *simd = sn_cpu_simd_best();
 *
 * Ownership: static tables.  Threads: reentrant.
 */
#ifndef SN_BACKEND_CPU_SIMD_H
#define SN_BACKEND_CPU_SIMD_H

#include "ops/op.h"

typedef struct sn_cpu_simd {
    const char *name;
    int width; /* floats in a vector: 8 or 16, the block of BLOCKED layouts too */
    int isa;   /* 1 baseline, 8 AVX2 with FMA, 16 AVX-512 */
} sn_cpu_simd;

/* The widest that this processor has; SNUG_CPU_ISA in the environment lowers it. */
const sn_cpu_simd *sn_cpu_simd_best(void);

#endif
