/* SPDX-License-Identifier: Apache-2.0
 *
 * arena.h - a bump allocator for things that live and die together (a graph's nodes and names).
 *
 *     sn_arena a;  sn_arena_init(&a, SN_TAG_GRAPH);
 *     node *n = sn_arena_alloc(&a, sizeof *n);          // zeroed, 16-byte aligned
 *     sn_arena_deinit(&a);
 *
 * Ownership: the arena owns what it gave out.  Threads: one at a time.
 */
#ifndef SN_BASE_ARENA_H
#define SN_BASE_ARENA_H

#include "base/ledger.h"

typedef struct sn_arena {
    struct sn_arena_block *head;
    sn_tag tag;
} sn_arena;

void sn_arena_init(sn_arena *arena, sn_tag tag);
/* Zeroed; NULL when the host has no memory. */
void *sn_arena_alloc(sn_arena *arena, size_t n);
void *sn_arena_alloc_array(sn_arena *arena, size_t n, size_t size);
char *sn_arena_strdup(sn_arena *arena, const char *text);
char *sn_arena_printf(sn_arena *arena, const char *format, ...) SNUG_PRINTF(2, 3);
void sn_arena_deinit(sn_arena *arena);

#endif
