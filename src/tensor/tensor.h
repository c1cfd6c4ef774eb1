/* SPDX-License-Identifier: Apache-2.0
 *
 * tensor.h - descriptions of tensors: element type, shape as the user sees it (NHWC, outermost
 * first), physical layout as a backend proposed it, and views into planned memory. Descriptions
 * only: no bytes live here.
 *
 *     sn_desc d = {SN_F32, sn_shape_of(4, (int64_t[]){n, h, w, c})};
 *     if (sn_shape_count(&d.shape, &elements)) ...            // true: overflow
 *
 * Ownership: plain values.  Threads: pure functions.
 */
#ifndef SN_TENSOR_TENSOR_H
#define SN_TENSOR_TENSOR_H

#include "base/base.h"

#define SN_MAX_RANK 5

typedef enum sn_dtype { SN_F32, SN_F16, SN_BF16, SN_I32, SN_U8, SN_N_DTYPES } sn_dtype;

typedef struct sn_shape {
    int rank; /* 0: a scalar */
    int64_t dim[SN_MAX_RANK];
} sn_shape;

/* What an operator sees of a tensor. */
typedef struct sn_desc {
    sn_dtype dtype;
    sn_shape shape;
} sn_desc;

/* How the elements lie in memory.
 * PLAIN: row-major in the order of the shape (NHWC).
 * BLOCKED: 4-D activations as [N][ceil(C/block)][H][W][block]; channels past C are zeros, always.
 * OPAQUE: weights in a layout that only the backend knows; index is a row of the device's table.
 * Two layouts are the same exactly when all three fields are equal. */
typedef enum sn_layout_kind {
    SN_LAYOUT_UNSET, /* a weight that no kernel has claimed yet */
    SN_LAYOUT_PLAIN,
    SN_LAYOUT_BLOCKED,
    SN_LAYOUT_OPAQUE
} sn_layout_kind;

typedef struct sn_layout {
    uint8_t kind;   /* sn_layout_kind */
    uint8_t block;  /* BLOCKED: 8 or 16 */
    uint16_t index; /* OPAQUE */
} sn_layout;

#define SN_PLAIN ((sn_layout){SN_LAYOUT_PLAIN, 0, 0})
#define SN_BLOCKED(b) ((sn_layout){SN_LAYOUT_BLOCKED, (uint8_t)(b), 0})

/* A piece of planned memory: never a pointer. The arena is a list of slabs. */
typedef struct sn_view {
    uint32_t buffer; /* index in the program's buffers; UINT32_MAX: absent */
    uint32_t slab;
    uint64_t offset, bytes; /* in the slab */
    sn_desc desc;
    sn_layout layout;
} sn_view;

size_t sn_dtype_bytes(sn_dtype dtype);
const char *sn_dtype_name(sn_dtype dtype);
sn_shape sn_shape_of(int rank, const int64_t *dim);
bool sn_shape_eq(const sn_shape *a, const sn_shape *b);
/* Number of elements (1 for a scalar); true on overflow, a negative dimension or a bad rank. */
bool sn_shape_count(const sn_shape *shape, uint64_t *count);
/* Elements times element size in the PLAIN layout; true on overflow. */
bool sn_desc_bytes(const sn_desc *desc, uint64_t *bytes);
/* Elements from a shape that was checked when it was made. */
int64_t sn_shape_n(const sn_shape *shape);
/* "[16,224,224,3]". Returns out. */
char *sn_shape_format(char *out, size_t n, const sn_shape *shape);
bool sn_layout_eq(sn_layout a, sn_layout b);
/* Numpy's broadcasting of a and b; false if they do not broadcast. */
bool sn_shape_broadcast(sn_shape *out, const sn_shape *a, const sn_shape *b);

#endif
