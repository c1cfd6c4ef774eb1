/* SPDX-License-Identifier: Apache-2.0
 *
 * onednn.h - the one place that knows oneDNN, and that hides 2.x from 3.x: memory descriptors,
 * convolutions, matrix products, reorders. Primitives take their scratch from the caller and belong
 * to the caller; oneDNN's own cache of primitives is off.
 *
 *     sn_dnn dnn;  sn_dnn_open(&dnn, err);
 *     sn_dnn_conv conv = {...};  sn_dnn_pd *pd;
 *     if (sn_dnn_conv_pd(&pd, &dnn, &conv)) ...            // true: no implementation
 *     sn_dnn_prim *p = sn_dnn_prim_new(&dnn, pd);
 *     sn_dnn_run(&dnn, p, args, n_args);
 *
 * Ownership: whoever makes a descriptor, pd, primitive or memory object ends it.
 * Threads: every call from one thread (the device's).
 */
#ifndef SN_BACKEND_CPU_ONEDNN_H
#define SN_BACKEND_CPU_ONEDNN_H

#include <oneapi/dnnl/dnnl.h>

#include "tensor/tensor.h"

typedef struct sn_dnn {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_attr_t attr; /* user scratchpad, nothing else */
} sn_dnn;

/* max_isa: 0 no limit, 8: AVX2, 16: no limit, 1: SSE4.1 (only the first device of a process can
 * lower it). */
snug_status sn_dnn_open(sn_dnn *dnn, int max_isa, snug_error *err);
void sn_dnn_close(sn_dnn *dnn);
/* "2.6.3". */
char *sn_dnn_version(char *out, size_t n);

/* ---- memory descriptors ---------------------------------------------------------------------- */

#if DNNL_VERSION_MAJOR >= 3
typedef struct sn_md {
    dnnl_memory_desc_t md; /* owned; NULL: none */
} sn_md;
#else
typedef struct sn_md {
    dnnl_memory_desc_t md; /* ndims 0: none */
} sn_md;
#endif

/* All f32. Each makes *out anew (what it held before is not ended); true: refused. */
bool sn_md_tag(sn_md *out, int rank, const int64_t *dims, dnnl_format_tag_t tag);
bool sn_md_strided(sn_md *out, int rank, const int64_t *dims, const int64_t *strides);
bool sn_md_copy(sn_md *out, const sn_md *md);
uint64_t sn_md_bytes(const sn_md *md);
bool sn_md_eq(const sn_md *a, const sn_md *b);
void sn_md_free(sn_md *md);

/* ---- primitives ------------------------------------------------------------------------------ */

typedef struct dnnl_primitive_desc sn_dnn_pd;
typedef struct dnnl_primitive sn_dnn_prim;
typedef struct dnnl_memory sn_dnn_memory;

typedef enum sn_dnn_pass { SN_DNN_FORWARD, SN_DNN_DATA, SN_DNN_WEIGHTS } sn_dnn_pass;

/* Dimensions in oneDNN's order: src [N,C,H,W], weights [(G,)O,I,KH,KW], dst [N,O,H,W]. */
typedef struct sn_dnn_conv {
    sn_dnn_pass pass;
    const sn_md *src, *weights, *bias, *dst; /* of the pass: differences where it makes them; bias
                                              * NULL: none */
    int64_t stride[2], dilation[2], pad_low[2], pad_high[2]; /* dilation 1: none */
    bool relu;                                               /* FORWARD: fused */
    float relu_max;                                          /* 0: none */
} sn_dnn_conv;

/* true: no implementation takes it. */
bool sn_dnn_conv_pd(sn_dnn_pd **out, const sn_dnn *dnn, const sn_dnn_conv *conv);
bool sn_dnn_reorder_pd(sn_dnn_pd **out, const sn_dnn *dnn, const sn_md *from, const sn_md *to);
/* y = x w (+ bias), all rank 2. */
bool sn_dnn_matmul_pd(sn_dnn_pd **out, const sn_dnn *dnn, const sn_md *x, const sn_md *w,
                      const sn_md *bias, const sn_md *y);
const char *sn_dnn_pd_name(const sn_dnn_pd *pd);
uint64_t sn_dnn_pd_scratch(const sn_dnn_pd *pd);
/* One of DNNL_ARG_SRC, _WEIGHTS, _DST, _DIFF_WEIGHTS ... as a copy. */
bool sn_dnn_pd_md(sn_md *out, const sn_dnn_pd *pd, int argument);
void sn_dnn_pd_free(sn_dnn_pd *pd);

/* NULL: refused. */
sn_dnn_prim *sn_dnn_prim_new(const sn_dnn_pd *pd);
void sn_dnn_prim_free(sn_dnn_prim *prim);
/* A memory object over caller's bytes. NULL: refused. */
sn_dnn_memory *sn_dnn_memory_new(const sn_dnn *dnn, const sn_md *md, void *data);
/* The same for scratch of so many bytes. */
sn_dnn_memory *sn_dnn_scratch_new(const sn_dnn *dnn, uint64_t bytes, void *data);
void sn_dnn_memory_free(sn_dnn_memory *memory);
/* Waits for the end. true: failed. */
bool sn_dnn_run(const sn_dnn *dnn, const sn_dnn_prim *prim, const dnnl_exec_arg_t *args, int n);

#endif
