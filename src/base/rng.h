/* SPDX-License-Identifier: Apache-2.0
 *
 * rng.h - random numbers without state: Philox4x32-10 (Salmon et al., "Parallel Random Numbers: As
 * Easy as 1, 2, 3", SC'11) and a keyed permutation of an index (a Feistel network with cycle
 * walking). The same (key, counter) gives the same draw on every device, layout and slicing.
 *
 *     uint32_t r[4];  sn_philox(r, sn_mix_u64(seed, layer), step, position);
 *     uint64_t j = sn_permute(i, n, key);                 // i -> j is a bijection on 0..n-1
 *
 * Ownership: none.  Threads: pure functions.
 */
#ifndef SN_BASE_RNG_H
#define SN_BASE_RNG_H

#include "base/base.h"

/* Four words from a 64-bit key and a 128-bit counter (counter_lo, counter_hi). */
void sn_philox(uint32_t out[4], uint64_t key, uint64_t counter_lo, uint64_t counter_hi);
/* [0, 1) with 24 bits: exact in float32. */
static inline float sn_uniform_f32(uint32_t word)
{
    return (float)(word >> 8) * (1.0f / 16777216.0f);
}
/* One key from several numbers (SplitMix64 mixing), for (seed, epoch), (seed, layer) and the like.
 */
uint64_t sn_mix_u64(uint64_t a, uint64_t b);
/* Element i of the keyed permutation of 0..n-1. O(1) memory; n >= 1. */
uint64_t sn_permute(uint64_t i, uint64_t n, uint64_t key);

#endif
