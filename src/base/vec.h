/* SPDX-License-Identifier: Apache-2.0
 *
 * vec.h - a growing array of one type, by macro.
 *
 *     SN_VEC(int) v = {0};
 *     if (!SN_VEC_PUSH(SN_TAG_PLAN, &v, 42)) return SNUG_E_MEMORY;
 *     for (size_t i = 0; i < v.n; i++) use(v.at[i]);
 *     SN_VEC_FREE(&v);
 *
 * Ownership: the vector owns its array, not what its elements point to.  Threads: one at a time.
 */
#ifndef SN_BASE_VEC_H
#define SN_BASE_VEC_H

#include "base/ledger.h"

#define SN_VEC(type)                                                                               \
    struct {                                                                                       \
        type *at;                                                                                  \
        size_t n, cap;                                                                             \
    }

/* Makes room for one more element; false when there is no memory (the vector is unchanged). */
#define SN_VEC_RESERVE(tag, v)                                                                     \
    ((v)->n < (v)->cap || sn_vec_grow((tag), (void **)&(v)->at, &(v)->cap, sizeof *(v)->at))
#define SN_VEC_PUSH(tag, v, ...)                                                                   \
    (SN_VEC_RESERVE((tag), (v)) ? ((v)->at[(v)->n++] = (__VA_ARGS__), true) : false)
#define SN_VEC_FREE(v) (sn_free((v)->at), (v)->at = NULL, (v)->n = (v)->cap = 0)

/* Doubles *cap (at least 8). */
bool sn_vec_grow(sn_tag tag, void **at, size_t *cap, size_t size);

#endif
