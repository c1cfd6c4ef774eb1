/* SPDX-License-Identifier: Apache-2.0
 *
 * arena.c - blocks that double from 1 KiB to 64 KiB; a large request gets a block of its own behind
 * the head, so that the head's room is not lost.
 */
#include "base/arena.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { FIRST_BLOCK = 1024, LARGEST_BLOCK = 65536, ALIGNMENT = 16 };

struct sn_arena_block {
    struct sn_arena_block *next;
    size_t used, cap;
    size_t unused; /* keeps what follows at a multiple of 16 */
};

_Static_assert(sizeof(struct sn_arena_block) % ALIGNMENT == 0, "blocks keep their alignment");

void sn_arena_init(sn_arena *arena, sn_tag tag)
{
    *arena = (sn_arena){.tag = tag};
}

static struct sn_arena_block *add_block(sn_arena *arena, size_t n)
{
    struct sn_arena_block *head = arena->head;
    size_t cap = head ? SN_MIN(head->cap * 2, (size_t)LARGEST_BLOCK) : FIRST_BLOCK;
    bool alone = head && n > cap / 2;
    cap = alone ? n : SN_MAX(cap, n);
    struct sn_arena_block *block = sn_alloc(arena->tag, sizeof *block + cap);
    if (!block)
        return NULL;
    block->cap = cap;
    if (alone) {
        block->next = head->next;
        head->next = block;
    } else {
        block->next = head;
        arena->head = block;
    }
    return block;
}

void *sn_arena_alloc(sn_arena *arena, size_t n)
{
    if (n > SIZE_MAX / 2)
        return NULL;
    n = (size_t)sn_align_up(n ? n : 1, ALIGNMENT);
    struct sn_arena_block *block = arena->head;
    if (!block || n > block->cap - block->used)
        block = add_block(arena, n);
    if (!block)
        return NULL;
    void *result = (char *)(block + 1) + block->used;
    block->used += n;
    return result;
}

void *sn_arena_alloc_array(sn_arena *arena, size_t n, size_t size)
{
    size_t bytes;
    return __builtin_mul_overflow(n, size, &bytes) ? NULL : sn_arena_alloc(arena, bytes);
}

char *sn_arena_strdup(sn_arena *arena, const char *text)
{
    if (!text)
        return NULL;
    size_t n = strlen(text) + 1;
    char *copy = sn_arena_alloc(arena, n);
    if (copy)
        memcpy(copy, text, n);
    return copy;
}

char *sn_arena_printf(sn_arena *arena, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    char *text = n < 0 ? NULL : sn_arena_alloc(arena, (size_t)n + 1);
    if (text) {
        va_start(args, format);
        vsnprintf(text, (size_t)n + 1, format, args);
        va_end(args);
    }
    return text;
}

void sn_arena_deinit(sn_arena *arena)
{
    for (struct sn_arena_block *block = arena->head, *next; block; block = next) {
        next = block->next;
        sn_free(block);
    }
    arena->head = NULL;
}
