/* SPDX-License-Identifier: Apache-2.0
 *
 * scratch.h - the bounded memory that decoding works in. Each data thread has a small block of its
 * own; an image that needs more (progressive JPEG, interlaced PNG) is granted a run of blocks of
 * one pool that all threads share, and waits for it if others hold it. Nothing else is allocated
 * while decoding, so the plan's figure is the truth.
 *
 *     sn_scratch_reset(s);
 *     if (!sn_scratch_reserve(s, bytes, &err)) row = sn_scratch_alloc(s, n);   // NULL: beyond it
 *     sn_scratch_reset(s);                                                     // gives the grant
 * back
 *
 * Ownership: what alloc returns is valid until reset.  Threads: a scratch is one thread's; the pool
 * is shared.
 */
#ifndef SN_DATA_SCRATCH_H
#define SN_DATA_SCRATCH_H

#include <pthread.h>

#include "base/ledger.h"

enum { SN_SCRATCH_ALIGN = 64, SN_POOL_BLOCKS = 64 };

typedef struct sn_pool {
    pthread_mutex_t lock;
    pthread_cond_t given_back;
    uint8_t *base;
    uint64_t block_bytes;
    uint64_t held; /* bit i: block i is granted */
    bool ready;
} sn_pool;

/* bytes is rounded up to SN_POOL_BLOCKS equal blocks. */
snug_status sn_pool_init(sn_pool *pool, uint64_t bytes, snug_error *err);
uint64_t sn_pool_bytes(const sn_pool *pool);
void sn_pool_deinit(sn_pool *pool);

typedef struct sn_scratch {
    uint8_t *base;
    size_t size, used;
    sn_pool *pool; /* NULL: the small block is all there is */
    uint8_t *grant;
    uint64_t grant_size, grant_used, grant_bits;
} sn_scratch;

snug_status sn_scratch_init(sn_scratch *scratch, size_t size, sn_pool *pool, snug_error *err);
/* Makes sure that allocations of `bytes` in all (alignment included) will succeed; waits for the
 * pool. At most one reserve between two resets. SNUG_E_UNSUPPORTED if the bound is smaller. */
snug_status sn_scratch_reserve(sn_scratch *scratch, uint64_t bytes, snug_error *err);
/* 64-byte aligned, not zeroed; NULL when the bound is reached. */
void *sn_scratch_alloc(sn_scratch *scratch, uint64_t n);
void sn_scratch_reset(sn_scratch *scratch);
void sn_scratch_deinit(sn_scratch *scratch);

#endif
