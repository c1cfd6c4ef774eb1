/* SPDX-License-Identifier: Apache-2.0
 *
 * rng.c - Philox4x32-10 and a keyed permutation.
 */
#include "base/rng.h"

#include <assert.h>

void sn_philox(uint32_t out[4], uint64_t key, uint64_t counter_lo, uint64_t counter_hi)
{
    uint32_t c0 = (uint32_t)counter_lo, c1 = (uint32_t)(counter_lo >> 32);
    uint32_t c2 = (uint32_t)counter_hi, c3 = (uint32_t)(counter_hi >> 32);
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = UINT64_C(0xD2511F53) * c0, p1 = UINT64_C(0xCD9E8D57) * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += UINT32_C(0x9E3779B9);
        k1 += UINT32_C(0xBB67AE85);
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

/* SplitMix64's finalizer (Steele, Lea, Flood, OOPSLA'14, after Stafford's variant 13). */
static uint64_t mix(uint64_t z)
{
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

uint64_t sn_mix_u64(uint64_t a, uint64_t b)
{
    uint64_t golden = UINT64_C(0x9e3779b97f4a7c15);
    return mix(mix(a + golden) + golden * 2 + b);
}

/* A balanced Feistel network over 2 * half bits: a bijection whatever the round function is. */
static uint64_t feistel(uint64_t x, int half, const uint64_t round_keys[6])
{
    uint64_t mask = ((uint64_t)1 << half) - 1;
    uint64_t left = x >> half, right = x & mask;
    for (int round = 0; round < 6; round++) {
        uint64_t next = left ^ (mix(right + round_keys[round]) & mask);
        left = right;
        right = next;
    }
    return left << half | right;
}

uint64_t sn_permute(uint64_t i, uint64_t n, uint64_t key)
{
    assert(n >= 1 && i < n);
    int half = 1;
    while (half < 32 && ((n - 1) >> (2 * half)) != 0)
        half++;
    uint64_t round_keys[6];
    for (uint64_t r = 0; r < 6; r++)
        round_keys[r] = sn_mix_u64(key, r);
    /* Walking the cycle that i is on until it is back below n makes the bijection one of 0..n-1;
     * the domain is less than four times n (but for n <= 1), so that a walk is short. */
    do
        i = feistel(i, half, round_keys);
    while (i >= n);
    return i;
}
