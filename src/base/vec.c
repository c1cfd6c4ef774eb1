/* SPDX-License-Identifier: Apache-2.0
 *
 * vec.c - growing the array of a vector.
 */
#include "base/vec.h"

bool sn_vec_grow(sn_tag tag, void **at, size_t *cap, size_t size)
{
    size_t n = *cap ? *cap : 4, bytes;
    if (__builtin_mul_overflow(n, (size_t)2, &n) || __builtin_mul_overflow(n, size, &bytes))
        return false;
    void *grown = sn_realloc(tag, *at, bytes);
    if (!grown)
        return false;
    *at = grown;
    *cap = n;
    return true;
}
