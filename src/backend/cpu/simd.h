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

/* Runs of n floats: y from a (and b). In place is allowed. */
typedef struct sn_cpu_flat_job {
    int64_t n;
    const float *a, *b;
    float *y;
    sn_act_attrs act;
    bool from_output;
    int kind; /* sn_binary_kind or sn_scalar_kind */
    float value, offset;
} sn_cpu_flat_job;

/* Planes, with b a number per channel: [c], or [n][c] with b_samples. */
typedef struct sn_cpu_plane_job {
    int64_t n, pixels, c;
    bool blocked;
    const float *a, *b, *best;
    float *y;
    sn_act_attrs act;
    int kind;
    bool b_samples, swapped, largest;
} sn_cpu_plane_job;

typedef struct sn_cpu_update {
    const sn_update_attrs *attrs;
    sn_update_scalars scalars;
    enum { SN_CPU_CLIP_NONE, SN_CPU_CLIP_VALUE, SN_CPU_CLIP_NORM, SN_CPU_CLIP_GLOBAL } clip;
    float clip_value, clip_norm; /* NORM: times value, divided by norm */
    int n_slots;
    const float *w, *slot[3];
    float *w_out, *slot_out[3];
} sn_cpu_update;

typedef struct sn_cpu_update_job {
    int64_t n;
    const float *g;
    sn_cpu_update update;
} sn_cpu_update_job;

#define SN_CPU_SLICES 64
typedef struct sn_cpu_square_job {
    int64_t n;
    const float *a, *w; /* w NULL: squares of a alone */
    float l2;
    double *sums; /* [SN_CPU_SLICES] */
} sn_cpu_square_job;

#define SN_CPU_PANEL_ROOM(width) (512 * 2 * (width))
/* x [rows][n_in], dy [rows][n_out], w [n_in][n_out]; y is the result of the pass. */
typedef struct sn_cpu_dense_job {
    int64_t rows, n_in, n_out;
    const float *x, *dy, *w, *bias;
    float *y, *dbias;
    sn_act_attrs act;
    float *room;          /* panels: n_threads * SN_CPU_PANEL_ROOM(width) floats */
    sn_cpu_update update; /* dense_dw: w NULL: the gradient is written to y */
} sn_cpu_dense_job;

/* BLOCKED planes; units are samples times blocks. backward: x is dy, y is dx. */
typedef struct sn_cpu_pool_job {
    int64_t units, c, h, w, oh, ow;
    int64_t window[2], stride[2], pad[4];
    bool average;
    const float *x;
    float *y;
    uint8_t *index;
} sn_cpu_pool_job;

/* A convolution of 1 to 4 channels: x PLAIN, y BLOCKED, w [kh][kw][c][oc]. */
#define SN_CPU_FIRST_SLICES 16
typedef struct sn_cpu_first_job {
    int64_t n, h, width, c, oh, ow, oc, kh, kw;
    int64_t stride[2], pad[4];
    const float *x, *w, *bias, *dy;
    float *y, *dbias; /* y: the output, or dw */
    sn_act_attrs act;
    bool stream;                         /* write past the caches */
    float *packed, *rows, *sums, *zeros; /* in the workspace; zeros: ow vectors */
} sn_cpu_first_job;

/* Depthwise on BLOCKED planes; units are samples times blocks. */
typedef struct sn_cpu_depth_job {
    int64_t units, blocks, h, w, oh, ow, kh, kw;
    int64_t stride[2], pad[4];
    const float *dy, *weights;
    float *dx;
} sn_cpu_depth_job;

/* 3x3 with stride 1, x and y BLOCKED, weights [3][3][c][oc]; the data gradient is the same with dy
 * as x and its weights `turned`. v, m, u as body_winograd.h has them. */
typedef struct sn_cpu_wino_job {
    int64_t h, w, c, oh, ow, oc;
    int64_t top, left;               /* padding */
    int64_t tile_rows, tile_columns; /* of 2x2 outputs, in a sample */
    int64_t tiles, chunk;            /* in all, and at most together */
    int64_t slices, parts;           /* weights' gradient: of the tiles, of the blocks of c */
    const float *x, *weights, *bias, *dy;
    float *y, *dbias; /* y: the output, or dw */
    bool turned;
    sn_act_attrs act;
    float *u, *v, *m;
    double *sums; /* of dbias: [slices][oc in whole blocks], zeros before */
} sn_cpu_wino_job;

typedef struct sn_cpu_drop_job {
    int64_t n, each, pixels, c;
    uint64_t key, number, first_sample;
    uint32_t threshold; /* a word is kept from here on */
    float scale;
    const float *x;
    float *y;
} sn_cpu_drop_job;

typedef void (*sn_cpu_body)(void *job, int thread, int n_threads);

typedef struct sn_cpu_simd {
    const char *name;
    int width; /* floats in a vector: 8 or 16, the block of BLOCKED layouts too */
    int isa;   /* 1 baseline, 8 AVX2 with FMA, 16 AVX-512 */
    sn_cpu_body norm_forward, norm_apply, norm_backward;
    sn_cpu_body act_forward, act_backward, binary_flat, scalar_flat;
    sn_cpu_body binary_channels, channel_sums, plane_pool, plane_pool_dx;
    sn_cpu_body update_flat, square_slices;
    sn_cpu_body dense_stream, dense_dx_stream, dense_dw, dense_panels, dense_dx_panels;
    int first_tile; /* outputs that first_forward makes together */
    sn_cpu_body first_pack, first_forward, first_weights, first_reduce, depth_data;
    int wino_rows; /* tiles whose products are summed together */
    sn_cpu_body wino_weights, wino_forward, wino_slices, wino_finish;
    sn_cpu_body pool_forward, pool_backward, drop_plain, drop_blocked;
} sn_cpu_simd;

extern const sn_cpu_simd sn_cpu_simd_generic, sn_cpu_simd_avx2, sn_cpu_simd_avx512;

/* The widest that this processor has; SNUG_CPU_ISA in the environment lowers it. */
const sn_cpu_simd *sn_cpu_simd_best(void);

#endif
