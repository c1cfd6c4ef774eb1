/* SPDX-License-Identifier: Apache-2.0
 *
 * set.h - a data set as the pipeline sees it: samples by index, loaded one at a time by any thread.
 * Image lists (images.h) and arrays on disk (raw.h) are the two kinds.
 *
 *     set.ops->load(set.self, scratch, i, SNUG_SCALE_0_1, x, &stop, err);
 *     set.ops->label(set.self, i, &class_index, y, err);
 *
 * Ownership: ops->free ends self.  Threads: load, label and name from any number of threads, a
 * scratch each.
 */
#ifndef SN_DATA_SET_H
#define SN_DATA_SET_H

#include "data/scratch.h"
#include "snug/data.h"

typedef struct sn_set_ops {
    /* required: x [sample] in the given scale. SNUG_E_INPUT, _UNSUPPORTED, _NOT_FOUND and _IO mean
     * that this sample is bad, SNUG_E_INTERRUPTED that *stop was seen; anything else ends the
     * epoch. */
    snug_status (*load)(void *self, sn_scratch *scratch, uint64_t i, snug_scale scale, float *x,
                        const bool *stop, snug_error *err);
    /* required: *class_index -1 if there are no classes; y [n_targets] may be NULL. */
    snug_status (*label)(void *self, uint64_t i, int32_t *class_index, float *y, snug_error *err);
    /* required: the file, or "row 12". */
    snug_status (*name)(void *self, uint64_t i, char *out, size_t n, snug_error *err);
    /* optional: NULL means there are none. */
    void (*facts)(void *self, snug_data_facts *out);
    /* required */
    void (*free)(void *self);
} sn_set_ops;

typedef struct sn_set {
    const sn_set_ops *ops;
    void *self;
    int rank; /* 3: [H,W,C], 1: [F] */
    int64_t shape[3];
    uint64_t begin[3], n[3]; /* where train, validation and test lie in the index */
    char *const *classes;    /* self's */
    size_t n_classes;
    const uint64_t *class_counts; /* in the train part */
    int64_t n_targets;            /* 0: classes, or no labels at all */
    char *const *notes;
    size_t n_notes;
    bool can_fail;        /* single samples can be bad (files), not the whole only (arrays) */
    bool needs_pool;      /* large images may need the shared decoding pool */
    float top;            /* 255: pixels; 0: numbers of any range */
    snug_scale scale;     /* AUTO resolved */
    size_t scratch_bytes; /* a thread's */
    uint64_t held_bytes;  /* what the set itself holds in memory */
} sn_set;

#endif
