/* SPDX-License-Identifier: Apache-2.0
 *
 * ledger.h - every host byte that the library's own code allocates goes through here, so that live
 * bytes are known by tag, a test can find leaks, and a test can make the n-th allocation fail.
 *
 *     struct thing *t = sn_alloc(SN_TAG_PLAN, sizeof *t);   // zeroed
 *     sn_free(t);
 *
 * Ownership: the caller of sn_alloc frees with sn_free.  Threads: all functions are thread-safe.
 */
#ifndef SN_BASE_LEDGER_H
#define SN_BASE_LEDGER_H

#include "base/base.h"

#define SN_TAG_LIST(X)                                                                             \
    X(BASE)                                                                                        \
    X(GRAPH)                                                                                       \
    X(PLAN) X(BACKEND) X(DATA) X(FORMAT) X(TRAIN) X(ADVISE) X(DIAGNOSE) X(GPUS) X(CLI) X(TEST)

typedef enum sn_tag {
#define SN_TAG_ENUM(name) SN_TAG_##name,
    SN_TAG_LIST(SN_TAG_ENUM)
#undef SN_TAG_ENUM
        SN_N_TAGS
} sn_tag;

/* Zeroed memory, aligned for any type; NULL when there is none (or n is 0: never NULL then, a
 * unique pointer). Bytes are counted as asked. */
void *sn_alloc(sn_tag tag, size_t n);
/* sn_alloc(tag, n * size) with the product checked. */
void *sn_alloc_array(sn_tag tag, size_t n, size_t size);
/* Grows or shrinks; new bytes are NOT zeroed. ptr NULL allocates. On failure NULL and ptr lives. */
void *sn_realloc(sn_tag tag, void *ptr, size_t n);
/* NULL-safe. */
void sn_free(void *ptr);
char *sn_strdup(sn_tag tag, const char *text);
char *sn_strndup(sn_tag tag, const char *text, size_t n);

uint64_t sn_ledger_live_bytes(void);
uint64_t sn_ledger_live_bytes_of(sn_tag tag);
uint64_t sn_ledger_peak_bytes(void);
/* Calls of sn_alloc and sn_realloc so far: a flat count proves that nothing was allocated. */
uint64_t sn_ledger_calls(void);
/* Tests: the n-th allocation from now fails (1 = the next); 0 switches it off. */
void sn_ledger_fail_nth(uint64_t n);
/* "PLAN". */
const char *sn_tag_name(sn_tag tag);

#endif
