/* SPDX-License-Identifier: Apache-2.0
 *
 * holders.c - who holds an allocator's memory, and what that says: what TensorFlow's dump and
 * PyTorch's snapshot have in common.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "diagnose/readers.h"

#define SHOWN 5

static void add_sat(uint64_t *sum, uint64_t value)
{
    if (sn_add_u64(sum, *sum, value))
        *sum = UINT64_MAX;
}

void sn_holders_add(sn_holders *holders, const char *name, size_t n_name, uint64_t held,
                    uint64_t asked)
{
    char key[64];
    snprintf(key, sizeof key, "%.*s", (int)SN_MIN(n_name, sizeof key - 1), n_name ? name : "");
    if (!key[0])
        snprintf(key, sizeof key, "(unnamed)");
    add_sat(&holders->held_bytes, held);
    add_sat(&holders->total_bytes, held);
    add_sat(&holders->asked_bytes, asked);
    if (held > holders->largest_bytes) {
        holders->largest_bytes = held;
        memcpy(holders->largest_name, key, sizeof key);
    }
    sn_holder *at = NULL;
    for (size_t i = 0; i < holders->n && !at; i++)
        if (sn_str_eq(holders->at[i].name, key))
            at = &holders->at[i];
    if (!at && holders->n >= 4096) /* names beyond that are summed up together */
        at = &holders->at[holders->n - 1];
    if (!at) {
        sn_holder fresh = {.held_bytes = 0};
        memcpy(fresh.name, key, sizeof key);
        if (!SN_VEC_PUSH(SN_TAG_DIAGNOSE, holders, fresh)) {
            holders->failed = true;
            return;
        }
        at = &holders->at[holders->n - 1];
    }
    add_sat(&at->held_bytes, held);
    add_sat(&at->asked_bytes, asked);
    at->chunks++;
}

void sn_holders_add_free(sn_holders *holders, uint64_t bytes)
{
    add_sat(&holders->free_bytes, bytes);
    add_sat(&holders->total_bytes, bytes);
    holders->largest_free_bytes = SN_MAX(holders->largest_free_bytes, bytes);
}

static int larger_first(const void *a, const void *b)
{
    const sn_holder *x = a, *y = b;
    return x->held_bytes > y->held_bytes ? -1 : x->held_bytes < y->held_bytes;
}

static const char *size(char *out, size_t n, uint64_t bytes)
{
    return sn_format_bytes(out, n, bytes);
}

/* "Conv2D 1.2 GiB in 14 chunks, Const 300 MiB in 1 chunk" of the largest. */
static void list(const sn_holders *h, sn_buf *out)
{
    for (size_t i = 0; i < h->n && i < SHOWN; i++) {
        char held[32];
        sn_buf_printf(out, "%s%s %s in %" PRIu64 " chunk%s", i ? ", " : "", h->at[i].name,
                      size(held, sizeof held, h->at[i].held_bytes), h->at[i].chunks,
                      h->at[i].chunks == 1 ? "" : "s");
    }
}

static bool is_constant(const char *op)
{
    static const char *const names[] = {"_EagerConst", "Const",       "EagerConst",
                                        "convert",     "TensorSlice", "from_numpy"};
    for (size_t i = 0; i < SN_LEN(names); i++)
        if (strstr(op, names[i]))
            return true;
    return false;
}

void sn_holders_conclude(sn_holders *h, snug_diagnosis *d, const char *allocator)
{
    char held[32], asked[32], waste[32], free_text[32], block[32], text[512];
    sn_buf line;
    uint64_t over = h->held_bytes > h->asked_bytes ? h->held_bytes - h->asked_bytes : 0;
    if (h->n)
        qsort(h->at, h->n, sizeof *h->at, larger_first);
    sn_fact_set(d, SN_FACT_IN_USE, h->held_bytes, 0);
    sn_fact_set(d, SN_FACT_AVAILABLE, h->free_bytes, 0);
    if (h->largest_bytes)
        sn_fact_set(d, SN_FACT_BIGGEST_CHUNK, h->largest_bytes, 0);
    size(held, sizeof held, h->held_bytes);
    size(asked, sizeof asked, h->asked_bytes);
    size(waste, sizeof waste, over);
    size(free_text, sizeof free_text, h->free_bytes);
    size(block, sizeof block, h->largest_free_bytes);
    sn_buf_init(&line, SN_TAG_DIAGNOSE);
    sn_buf_printf(&line, "%s: ", allocator);
    list(h, &line);
    const char *who = line.failed ? allocator : line.data;
    if (h->largest_bytes > h->held_bytes / 2 && h->largest_bytes >= 256 * SN_MIB &&
        is_constant(h->largest_name)) {
        char largest[32];
        snprintf(text, sizeof text,
                 "One constant (%s) of %s is more than half of the %s in use: a data set as one "
                 "tensor.",
                 h->largest_name, size(largest, sizeof largest, h->largest_bytes), held);
        sn_finding_add(d, SNUG_CAUSE_DATASET, 0.8, true, text, 0, who);
    }
    bool split = h->free_bytes >= h->total_bytes / 5 && h->largest_free_bytes <= h->free_bytes / 3;
    if (h->total_bytes >= 16 * SN_MIB && split) {
        snprintf(text, sizeof text,
                 "%s are free, but the largest free block is %s: a request between the two fails "
                 "although the bytes are there.",
                 free_text, block);
        sn_finding_add(d, SNUG_CAUSE_FRAGMENTATION, 0.75, true, text, 0, who);
    } else if (h->held_bytes >= 16 * SN_MIB && over >= h->held_bytes / 5) {
        snprintf(text, sizeof text,
                 "%s are held for %s that were asked for: %s (%.0f %%) is lost in chunks larger "
                 "than their tensors.",
                 held, asked, waste, 100.0 * (double)over / (double)h->held_bytes);
        sn_finding_add(d, SNUG_CAUSE_FRAGMENTATION, 0.65, true, text, 0, who);
    } else if (h->held_bytes >= 16 * SN_MIB && h->free_bytes <= h->total_bytes / 10) {
        snprintf(text, sizeof text,
                 "%s in use (%s asked for), %s free in blocks of at most %s: the memory is full of "
                 "tensors, none of them out of proportion.",
                 held, asked, free_text, block);
        sn_finding_add(d, SNUG_CAUSE_BATCH, 0.45, false, text, 0, who);
    } else {
        snprintf(
            text, sizeof text,
            "%s in use (%s asked for), %s free in blocks of at most %s: this allocator was not "
            "full when the file was written.",
            held, asked, free_text, block);
        sn_finding_add(d, SNUG_CAUSE_UNKNOWN, 0.2, false, text, 0, who);
    }
    sn_buf_deinit(&line);
}

void sn_holders_free(sn_holders *holders)
{
    sn_free(holders->at);
    *holders = (sn_holders){0};
}
