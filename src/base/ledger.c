/* SPDX-License-Identifier: Apache-2.0
 *
 * ledger.c - the one file that calls malloc.
 *
 * Invariants:
 *  1. A block is a head of 16 bytes, then the bytes that the caller asked for.
 *  2. live[tag] is the sum of `size` of the blocks alive with that tag; total is the sum of live[].
 *  3. peak >= total at every moment that a caller can observe after its own allocation.
 */
#include "base/ledger.h"

#include <assert.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define MARK UINT32_C(0x534e5547)

typedef struct head {
    alignas(16) uint64_t size;
    uint32_t tag, mark;
} head;

static_assert(sizeof(head) == 16, "invariant 1");
static_assert(alignof(max_align_t) <= 16,
              "invariant 1: what follows the head is aligned for any type");

static _Atomic uint64_t live[SN_N_TAGS];
static _Atomic uint64_t total, peak, calls, fail_in;

static void count(head *h, sn_tag tag, size_t n)
{
    h->size = n;
    h->tag = (uint32_t)tag;
    h->mark = MARK;
    atomic_fetch_add(&live[tag], n);
    uint64_t now = atomic_fetch_add(&total, n) + n;
    uint64_t highest = atomic_load(&peak);
    while (now > highest && !atomic_compare_exchange_weak(&peak, &highest, now))
        ;
}

static void uncount(uint64_t size, uint32_t tag)
{
    atomic_fetch_sub(&live[tag], size);
    atomic_fetch_sub(&total, size);
}

/* Counts the call; true if it is the one that a test wants to fail. */
static bool must_fail(void)
{
    atomic_fetch_add(&calls, 1);
    uint64_t left = atomic_load(&fail_in);
    while (left && !atomic_compare_exchange_weak(&fail_in, &left, left - 1))
        ;
    return left == 1;
}

static bool too_large(size_t n)
{
    return n > (size_t)PTRDIFF_MAX - sizeof(head);
}

void *sn_alloc(sn_tag tag, size_t n)
{
    if (must_fail() || too_large(n))
        return NULL;
    head *h = calloc(1, sizeof *h + n);
    if (!h)
        return NULL;
    count(h, tag, n);
    return h + 1;
}

void *sn_alloc_array(sn_tag tag, size_t n, size_t size)
{
    size_t bytes;
    return __builtin_mul_overflow(n, size, &bytes) ? NULL : sn_alloc(tag, bytes);
}

void *sn_realloc(sn_tag tag, void *ptr, size_t n)
{
    if (must_fail() || too_large(n))
        return NULL;
    head *old = ptr ? (head *)ptr - 1 : NULL;
    assert(!old || old->mark == MARK);
    uint64_t old_size = old ? old->size : 0;
    uint32_t old_tag = old ? old->tag : 0;
    head *h = realloc(old, sizeof *h + n);
    if (!h)
        return NULL;
    uncount(old_size, old_tag);
    count(h, tag, n);
    return h + 1;
}

void sn_free(void *ptr)
{
    if (!ptr)
        return;
    head *h = (head *)ptr - 1;
    assert(h->mark == MARK);
    h->mark = 0;
    uncount(h->size, h->tag);
    free(h);
}

char *sn_strdup(sn_tag tag, const char *text)
{
    return text ? sn_strndup(tag, text, strlen(text)) : NULL;
}

char *sn_strndup(sn_tag tag, const char *text, size_t n)
{
    if (!text)
        return NULL;
    size_t len = strnlen(text, n);
    char *copy = sn_alloc(tag, len + 1);
    if (copy)
        memcpy(copy, text, len);
    return copy;
}

uint64_t sn_ledger_live_bytes(void)
{
    return atomic_load(&total);
}

uint64_t sn_ledger_live_bytes_of(sn_tag tag)
{
    return atomic_load(&live[tag]);
}

uint64_t sn_ledger_peak_bytes(void)
{
    return atomic_load(&peak);
}

uint64_t sn_ledger_calls(void)
{
    return atomic_load(&calls);
}

void sn_ledger_fail_nth(uint64_t n)
{
    atomic_store(&fail_in, n);
}

const char *sn_tag_name(sn_tag tag)
{
    static const char *const names[] = {
#define NAME(name) #name,
        SN_TAG_LIST(NAME)
#undef NAME
    };
    return (int)tag >= 0 && tag < SN_N_TAGS ? names[tag] : "?";
}
