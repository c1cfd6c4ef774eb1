/* SPDX-License-Identifier: Apache-2.0
 *
 * Invariants:
 *  1. A thread holds at most one grant, taken by one reserve: no thread waits while holding one.
 *  2. Grants are disjoint runs of blocks: `held` has exactly their bits.
 */
#include "data/scratch.h"

#include <assert.h>

snug_status sn_pool_init(sn_pool *pool, uint64_t bytes, snug_error *err)
{
    memset(pool, 0, sizeof *pool);
    pool->block_bytes = sn_align_up((bytes + SN_POOL_BLOCKS - 1) / SN_POOL_BLOCKS, 4096);
    pool->base = sn_alloc(SN_TAG_DATA, (size_t)(pool->block_bytes * SN_POOL_BLOCKS));
    if (!pool->base)
        return sn_fail(err, SNUG_E_MEMORY, "no memory for a decoding pool of %" PRIu64 " bytes",
                       bytes);
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->given_back, NULL);
    pool->ready = true;
    return SNUG_OK;
}

uint64_t sn_pool_bytes(const sn_pool *pool)
{
    return pool->block_bytes * SN_POOL_BLOCKS;
}

void sn_pool_deinit(sn_pool *pool)
{
    if (!pool->ready)
        return;
    pthread_cond_destroy(&pool->given_back);
    pthread_mutex_destroy(&pool->lock);
    sn_free(pool->base);
    memset(pool, 0, sizeof *pool);
}

/* The lowest run of n free blocks as a mask, 0 if there is none. */
static uint64_t find_run(uint64_t held, unsigned n)
{
    uint64_t mask = n >= SN_POOL_BLOCKS ? ~(uint64_t)0 : ((uint64_t)1 << n) - 1;

    for (unsigned at = 0; at + n <= SN_POOL_BLOCKS; at++)
        if (!(held & (mask << at)))
            return mask << at;
    return 0;
}

snug_status sn_scratch_init(sn_scratch *scratch, size_t size, sn_pool *pool, snug_error *err)
{
    memset(scratch, 0, sizeof *scratch);
    scratch->size = size;
    scratch->pool = pool;
    /* One alignment more, so that the first allocation can start on a line. */
    scratch->base = sn_alloc(SN_TAG_DATA, size + SN_SCRATCH_ALIGN);
    if (!scratch->base)
        return sn_fail(err, SNUG_E_MEMORY, "no memory for %zu bytes of decoding scratch", size);
    return SNUG_OK;
}

snug_status sn_scratch_reserve(sn_scratch *scratch, uint64_t bytes, snug_error *err)
{
    assert(!scratch->grant_bits); /* 1 */
    if (bytes <= scratch->size - scratch->used)
        return SNUG_OK;
    sn_pool *pool = scratch->pool;
    uint64_t limit = pool ? sn_pool_bytes(pool) : scratch->size;
    if (!pool || bytes > limit) {
        char need[32], have[32];
        return sn_fail(err, SNUG_E_UNSUPPORTED,
                       "needs %s to decode (progressive and interlaced images need all pixels at "
                       "once), the bound is %s",
                       sn_format_bytes(need, sizeof need, bytes),
                       sn_format_bytes(have, sizeof have, limit));
    }
    unsigned n = (unsigned)((bytes + pool->block_bytes - 1) / pool->block_bytes);
    uint64_t run;

    pthread_mutex_lock(&pool->lock);
    while (!(run = find_run(pool->held, n)))
        pthread_cond_wait(&pool->given_back, &pool->lock);
    assert(!(pool->held & run)); /* 2 */
    pool->held |= run;
    pthread_mutex_unlock(&pool->lock);
    scratch->grant_bits = run;
    scratch->grant = pool->base + (uint64_t)__builtin_ctzll(run) * pool->block_bytes;
    scratch->grant_size = n * pool->block_bytes;
    scratch->grant_used = 0;
    return SNUG_OK;
}

static void *bump(uint8_t *base, uint64_t size, uint64_t *used, uint64_t n)
{
    uint64_t start = sn_align_up((uintptr_t)base + *used, SN_SCRATCH_ALIGN) - (uintptr_t)base;

    if (start > size || n > size - start)
        return NULL;
    *used = start + n;
    return base + start;
}

void *sn_scratch_alloc(sn_scratch *scratch, uint64_t n)
{
    uint64_t used = scratch->used;
    void *p = NULL;

    if (scratch->grant_bits)
        p = bump(scratch->grant, scratch->grant_size, &scratch->grant_used, n);
    if (!p) {
        p = bump(scratch->base, scratch->size + SN_SCRATCH_ALIGN, &used, n);
        scratch->used = (size_t)used;
    }
    return p;
}

void sn_scratch_reset(sn_scratch *scratch)
{
    if (scratch->grant_bits) {
        sn_pool *pool = scratch->pool;
        pthread_mutex_lock(&pool->lock);
        pool->held &= ~scratch->grant_bits;
        pthread_cond_broadcast(&pool->given_back);
        pthread_mutex_unlock(&pool->lock);
        scratch->grant_bits = 0;
    }
    scratch->used = 0;
}

void sn_scratch_deinit(sn_scratch *scratch)
{
    if (!scratch->base)
        return;
    sn_scratch_reset(scratch);
    sn_free(scratch->base);
    memset(scratch, 0, sizeof *scratch);
}
