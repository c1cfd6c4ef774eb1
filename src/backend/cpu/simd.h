/* SPDX-License-Identifier: Apache-2.0
 *
 * simd.h - inner loops of our own kernels, compiled once per instruction set from the same source
 * (body_*.h) and chosen when a device is opened. Each takes a job, the thread's number and the size
 * of the team; results do not depend on the size of the team.
 *
 *     const sn_cpu_simd *simd = sn_cpu_simd_best();
 *     sn_cpu_parallel(device, simd->norm_apply, &job);
 *
 * Tensors are seen as planes: [n][blocks][pixels][block] (BLOCKED) or [n][pixels][c] (PLAIN, taken
 * in blocks of the vector's width, the last one partial). BLOCKED lanes past c are zeros and stay
 * so.
 * Ownership: static tables; jobs borrow.  Threads: reentrant.
 */
#ifndef SN_BACKEND_CPU_SIMD_H
#define SN_BACKEND_CPU_SIMD_H

#include "ops/op.h"

/* Batch normalisation; unused pointers NULL. */
typedef struct sn_cpu_norm_job {
    int64_t n, pixels, c;
    bool blocked;
    const float *x, *dy, *gamma, *beta, *mean, *var; /* gamma NULL: 1, beta NULL: 0 */
    float *y;                                        /* or dx */
    float *mean_out, *var_out, *dgamma, *dbeta;
    double *partial; /* [shared blocks][n][2][width] */
    float epsilon;
    bool relu;
    float max;        /* 0: none */
    bool frozen;      /* backward: mean and var are constants */
    bool stream;      /* write past the caches */
    int phase;        /* 0: each thread its own blocks; 1, 2: the blocks that are left, together */
    int64_t n_shared; /* blocks left */
} sn_cpu_norm_job;

typedef void (*sn_cpu_body)(void *job, int thread, int n_threads);

typedef struct sn_cpu_simd {
    const char *name;
    int width; /* floats in a vector: 8 or 16, the block of BLOCKED layouts too */
    int isa;   /* 1 baseline, 8 AVX2 with FMA, 16 AVX-512 */
    sn_cpu_body norm_forward, norm_apply, norm_backward;
} sn_cpu_simd;

extern const sn_cpu_simd sn_cpu_simd_generic, sn_cpu_simd_avx2, sn_cpu_simd_avx512;

/* The widest that this processor has; SNUG_CPU_ISA in the environment lowers it. */
const sn_cpu_simd *sn_cpu_simd_best(void);

#endif
