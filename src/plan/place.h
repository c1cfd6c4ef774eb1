/* SPDX-License-Identifier: Apache-2.0
 *
 * place.h - offsets for lifetimes (dynamic storage allocation): five greedy orders, first fit and
 * best fit each, stopping at the lower bound, then a bounded local search. It knows nothing of
 * tensors; plan/check judges what it gives.
 *
 *     sn_place_item items[] = {{.bytes = 64, .first = 0, .last = 3}, ...};
 *     sn_place_options o = {.align = 64, .slab_bytes = UINT64_MAX};
 *     s = sn_place(items, n, &o, &result, err);          // items[i].slab, items[i].offset
 *
 * Limits are counts of work, not seconds: the same input gives the same offsets everywhere.
 * Ownership: the caller's array is filled in.  Threads: reentrant.
 */
#ifndef SN_PLAN_PLACE_H
#define SN_PLAN_PLACE_H

#include "base/base.h"

typedef struct sn_place_item {
    uint64_t bytes;
    uint32_t first, last; /* both inclusive */
    bool fixed;           /* slab and offset are given and stay */
    uint32_t slab;
    uint64_t offset; /* in the slab */
} sn_place_item;

typedef struct sn_place_options {
    uint64_t align;        /* of every offset, a power of two; 0: 1 */
    uint64_t slab_bytes;   /* largest slab; 0: no limit */
    uint64_t search;       /* buffers that the local search may place; 0: none */
    uint64_t target_bytes; /* no search when the peak is no higher; 0: the lower bound */
} sn_place_options;

typedef struct sn_place_result {
    uint64_t peak_bytes;        /* sum over the slabs of their highest end */
    uint64_t lower_bound_bytes; /* largest sum of live bytes, each rounded up to align */
    size_t n_slabs;
    const char *order; /* "size, best fit": what won */
} sn_place_result;

/* SNUG_E_DOES_NOT_FIT when an item is larger than a slab (err->need, err->have and pos = its
 * index), SNUG_E_MEMORY. */
snug_status sn_place(sn_place_item *items, size_t n, const sn_place_options *options,
                     sn_place_result *result, snug_error *err);
/* The largest sum of live bytes, each rounded up to align; *when (NULL allowed) is the first moment
 * at which it is reached. false: no memory. */
bool sn_place_lower_bound(const sn_place_item *items, size_t n, uint64_t align, uint64_t *bytes,
                          uint32_t *when);

#endif
