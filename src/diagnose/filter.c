/* SPDX-License-Identifier: Apache-2.0
 *
 * 1. Every anchor has at least SN_ANCHOR_MIN bytes; only its first SN_ANCHOR_MIN make the shifts.
 * 2. shift[h] is the least distance from a block with hash h to the window's end in any anchor; 0
 *    means that an anchor may end its window here.
 * 3. cursor->pos is the index of the window's last byte.
 */
#include "diagnose/state.h"

#include <string.h>

enum { WINDOW = SN_ANCHOR_MIN, BLOCK = 3, HASH_BITS = 13 };

typedef struct filter_entry {
    char anchor[SN_ANCHOR_MAX + 1]; /* folded */
    uint32_t len, next;             /* next: entry + 1 of the same hash, 0 the last */
    const sn_pattern *pattern;
} filter_entry;

struct sn_filter {
    uint8_t shift[1 << HASH_BITS];
    uint16_t head[1 << HASH_BITS];
    size_t n;
    filter_entry entries[];
};

static char fold(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

/* The hash of the three bytes that end at *last. The byte before them is loaded too. */
static inline uint32_t block_hash(const char *last)
{
    uint32_t v;
    memcpy(&v, last - 3, sizeof v);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    v = __builtin_bswap32(v);
#endif
    return (((v >> 8) | 0x202020u) * 0x9e3779b1u) >> (32 - HASH_BITS);
}

sn_filter *sn_filter_new(bool context)
{
    size_t n = 0;
    while (sn_pattern_at(n))
        n++;
    sn_filter *f = sn_alloc(SN_TAG_DIAGNOSE, sizeof *f + n * sizeof f->entries[0]);
    if (!f)
        return NULL;
    memset(f->shift, WINDOW - BLOCK + 1, sizeof f->shift);
    for (size_t i = 0; i < n; i++) {
        if (sn_pattern_at(i)->context && !context)
            continue;
        filter_entry *entry = &f->entries[f->n++];
        entry->pattern = sn_pattern_at(i);
        const char *anchor = sn_pattern_at(i)->anchor; /* a test knows that it fits */
        entry->len = (uint32_t)SN_MIN(strlen(anchor), sizeof entry->anchor - 1);
        for (size_t k = 0; k < entry->len; k++)
            entry->anchor[k] = fold(anchor[k]);
        char window[WINDOW + 1] = {0}; /* one byte before, for block_hash */
        for (size_t k = 0; k < WINDOW && k < entry->len; k++)
            window[k + 1] = entry->anchor[k];
        for (size_t end = BLOCK; end <= WINDOW; end++) {
            uint32_t h = block_hash(window + end);
            f->shift[h] = (uint8_t)SN_MIN((size_t)f->shift[h], WINDOW - end);
            if (end == WINDOW) {
                entry->next = f->head[h];
                f->head[h] = (uint16_t)f->n;
            }
        }
    }
    return f;
}

const char *sn_filter_next(const sn_filter *f, const char *text, size_t n, sn_filter_cursor *cursor,
                           const sn_pattern **pattern)
{
    size_t pos = SN_MAX(cursor->pos, (size_t)WINDOW - 1);
    uint32_t entry = cursor->entry;
    while (pos < n) {
        if (!entry) {
            uint32_t h = block_hash(text + pos);
            size_t shift = f->shift[h];
            if (shift) {
                pos += shift;
                continue;
            }
            entry = f->head[h];
        }
        const char *start = text + pos - (WINDOW - 1);
        while (entry) {
            const filter_entry *e = &f->entries[entry - 1];
            entry = e->next;
            if (e->len > n - (size_t)(start - text))
                continue;
            size_t k = 0;
            while (k < e->len && fold(start[k]) == e->anchor[k])
                k++;
            if (k == e->len) {
                cursor->pos = entry ? pos : pos + 1;
                cursor->entry = entry;
                *pattern = e->pattern;
                return start;
            }
        }
        pos++;
    }
    cursor->pos = pos;
    cursor->entry = 0;
    return NULL;
}

void sn_filter_free(sn_filter *filter)
{
    sn_free(filter);
}
