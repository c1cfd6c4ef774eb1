/* SPDX-License-Identifier: Apache-2.0
 *
 * place.c - greedy placing in several orders, then a bounded search over orders.
 *
 * Slabs are laid end to end in one address space: address = slab * slab_bytes + offset, and no item
 * crosses a multiple of slab_bytes.
 *
 * Invariants:
 *  1. placed[] is sorted by address; items that live at the same time never overlap in it.
 *  2. every size is a multiple of align, so every address is one too (fixed items are given so).
 *  3. an order that was tried gives the same addresses again: nothing depends on time or chance
 *     (the search's random numbers are a fixed sequence).
 */
#include "plan/place.h"

#include <stdlib.h>
#include <string.h>

#include "base/ledger.h"
#include "base/rng.h"

/* What was placed, packed for the scan. */
typedef struct spot {
    uint64_t address, end;
    uint32_t first, last;
} spot;

typedef struct placer {
    const sn_place_item *items;
    size_t n;
    uint64_t slab_bytes; /* UINT64_MAX: one slab without limit */
    uint64_t *bytes;     /* rounded up, invariant 2 */
    uint64_t *load;      /* largest sum of live bytes while it lives */
    uint32_t *order, *best_order, *trial;
    uint64_t *address, *best_address;
    uint64_t *slab_peak; /* highest end in each slab, while placing */
    size_t n_slabs_cap;
    spot *placed;
    size_t n_placed;
    uint64_t best_peak;
    size_t best_slabs;
    uint64_t work; /* items placed so far */
} placer;

/* ---- the lower bound ------------------------------------------------------------------------- */

typedef struct event {
    uint32_t when; /* births at 2*first, deaths at 2*last+1 */
    bool birth;
    uint64_t bytes;
} event;

static int event_cmp(const void *a, const void *b)
{
    const event *x = a, *y = b;
    if (x->when != y->when)
        return x->when < y->when ? -1 : 1;
    return (int)x->birth - (int)y->birth; /* deaths first: last is inclusive, when is last + 1 */
}

static uint64_t rounded(uint64_t bytes, uint64_t align)
{
    uint64_t up;
    return sn_add_u64(&up, bytes, align - 1) ? UINT64_MAX & ~(align - 1) : up & ~(align - 1);
}

/* Births and deaths in order of time; NULL: no memory. */
static event *events_new(const sn_place_item *items, size_t n, uint64_t align)
{
    event *events = sn_alloc_array(SN_TAG_PLAN, 2 * n + 1, sizeof *events);
    if (!events)
        return NULL;
    for (size_t i = 0; i < n; i++) {
        uint64_t bytes = rounded(items[i].bytes, align);
        events[2 * i] = (event){items[i].first, true, bytes};
        events[2 * i + 1] = (event){items[i].last + 1, false, bytes};
    }
    qsort(events, 2 * n, sizeof *events, event_cmp);
    return events;
}

bool sn_place_lower_bound(const sn_place_item *items, size_t n, uint64_t align, uint64_t *bytes,
                          uint32_t *when)
{
    event *events = events_new(items, n, align ? align : 1);
    if (!events)
        return false;
    uint64_t live = 0, most = 0;
    uint32_t at = 0;
    for (size_t i = 0; i < 2 * n; i++) {
        if (!events[i].birth)
            live -= events[i].bytes;
        else if ((live += events[i].bytes) > most) {
            most = live;
            at = events[i].when;
        }
    }
    sn_free(events);
    *bytes = most;
    if (when)
        *when = at;
    return true;
}

/* p->load: one pass over the steps of the live sum, each item taking the maximum over its span by a
 * sparse table of powers of two. */
static bool loads(placer *p, uint64_t align)
{
    event *events = events_new(p->items, p->n, align);
    size_t n_steps = 0, levels = 1;
    if (!events)
        return false;
    uint32_t *step_when = sn_alloc_array(SN_TAG_PLAN, 2 * p->n + 1, sizeof *step_when);
    uint64_t *sum = sn_alloc_array(SN_TAG_PLAN, 2 * p->n + 1, sizeof *sum);
    uint64_t live = 0;
    for (size_t i = 0; step_when && sum && i < 2 * p->n; i++) {
        live = events[i].birth ? live + events[i].bytes : live - events[i].bytes;
        if (!n_steps || step_when[n_steps - 1] != events[i].when)
            step_when[n_steps++] = events[i].when;
        sum[n_steps - 1] = live;
    }
    while (((size_t)1 << levels) <= n_steps)
        levels++;
    uint64_t *table = sn_alloc_array(SN_TAG_PLAN, levels * (n_steps + 1), sizeof *table);
    bool ok = step_when && sum && table;
    if (ok) {
        if (n_steps)
            memcpy(table, sum, n_steps * sizeof *sum);
        for (size_t k = 1; k < levels; k++)
            for (size_t i = 0; i + ((size_t)1 << k) <= n_steps; i++)
                table[k * n_steps + i] =
                    SN_MAX(table[(k - 1) * n_steps + i],
                           table[(k - 1) * n_steps + i + ((size_t)1 << (k - 1))]);
    }
    for (size_t i = 0; ok && i < p->n; i++) {
        size_t span[2];
        for (int e = 0; e < 2; e++) { /* the step of first, and the one of last + 1 */
            uint32_t when = e ? p->items[i].last + 1 : p->items[i].first;
            size_t lo = 0, hi = n_steps;
            while (lo < hi) {
                size_t middle = (lo + hi) / 2;
                if (step_when[middle] < when)
                    lo = middle + 1;
                else
                    hi = middle;
            }
            span[e] = lo;
        }
        size_t k = 0, length = span[1] - span[0];
        while (((size_t)2 << k) <= length)
            k++;
        p->load[i] =
            SN_MAX(table[k * n_steps + span[0]], table[k * n_steps + span[1] - ((size_t)1 << k)]);
    }
    sn_free(table);
    sn_free(sum);
    sn_free(step_when);
    sn_free(events);
    return ok;
}

/* ---- one order ------------------------------------------------------------------------------- */

/* The lowest address >= from at which bytes do not cross the end of a slab. */
static uint64_t in_slab(const placer *p, uint64_t from, uint64_t bytes)
{
    if (p->slab_bytes == UINT64_MAX)
        return from;
    uint64_t left = p->slab_bytes - from % p->slab_bytes;
    return bytes <= left ? from : from + left;
}

static uint64_t find(const placer *p, uint32_t item, bool best_fit)
{
    uint64_t bytes = p->bytes[item], top = 0, found = UINT64_MAX, smallest = UINT64_MAX;
    uint32_t first = p->items[item].first, last = p->items[item].last;
    for (size_t i = 0; i < p->n_placed; i++) {
        const spot *s = &p->placed[i];
        if (s->last < first || s->first > last)
            continue;
        if (s->address > top) {
            uint64_t at = in_slab(p, top, bytes);
            if (at <= s->address && bytes <= s->address - at && s->address - top < smallest) {
                if (!best_fit)
                    return at;
                found = at;
                smallest = s->address - top;
            }
        }
        top = SN_MAX(top, s->end);
    }
    return found != UINT64_MAX ? found : in_slab(p, top, bytes);
}

static void put(placer *p, uint32_t item, uint64_t address)
{
    size_t lo = 0, hi = p->n_placed;
    while (lo < hi) {
        size_t middle = (lo + hi) / 2;
        if (p->placed[middle].address < address)
            lo = middle + 1;
        else
            hi = middle;
    }
    memmove(p->placed + lo + 1, p->placed + lo, (p->n_placed - lo) * sizeof *p->placed);
    p->placed[lo] =
        (spot){address, address + p->bytes[item], p->items[item].first, p->items[item].last};
    p->n_placed++;
    p->address[item] = address;
}

/* Adds an item's end to its slab's peak; the new sum of the peaks, UINT64_MAX beyond the table. */
static uint64_t grow(placer *p, uint32_t item, uint64_t peak)
{
    size_t slab = 0;
    uint64_t end = p->address[item] + p->bytes[item];
    if (p->slab_bytes != UINT64_MAX) {
        slab = (size_t)(p->address[item] / p->slab_bytes);
        end -= slab * p->slab_bytes;
    }
    if (slab >= p->n_slabs_cap)
        return UINT64_MAX;
    if (end > p->slab_peak[slab]) {
        peak += end - p->slab_peak[slab];
        p->slab_peak[slab] = end;
    }
    return peak;
}

/* Places everything in an order; keeps it when it is better than the best. true: it was better.
 * Gives up as soon as it cannot be better (`or_equal`: as soon as it is worse). */
static bool try_order(placer *p, const uint32_t *order, bool best_fit, bool or_equal)
{
    uint64_t peak = 0;
    p->n_placed = 0;
    memset(p->slab_peak, 0, p->n_slabs_cap * sizeof *p->slab_peak);
    for (size_t i = 0; i < p->n; i++)
        if (p->items[i].fixed) {
            put(p, (uint32_t)i, p->address[i]);
            peak = grow(p, (uint32_t)i, peak);
        }
    for (size_t k = 0; k < p->n; k++) {
        uint32_t item = order[k];
        if (p->items[item].fixed || !p->bytes[item])
            continue;
        put(p, item, find(p, item, best_fit));
        p->work++;
        peak = grow(p, item, peak);
        if (peak > p->best_peak || (peak == p->best_peak && !or_equal))
            return false;
    }
    p->best_peak = peak;
    p->best_slabs = 0;
    for (size_t s = 0; s < p->n_slabs_cap; s++)
        if (p->slab_peak[s])
            p->best_slabs = s + 1;
    memcpy(p->best_address, p->address, p->n * sizeof *p->address);
    if (order != p->best_order)
        memcpy(p->best_order, order, p->n * sizeof *order);
    return true;
}

/* ---- the orders ------------------------------------------------------------------------------ */

typedef enum order_kind { BY_SIZE, BY_AREA, BY_BIRTH, BY_LIFETIME, BY_LOAD, N_ORDERS } order_kind;

static const char *const order_names[N_ORDERS][2] = {
    {"size, first fit", "size, best fit"},   {"area, first fit", "area, best fit"},
    {"birth, first fit", "birth, best fit"}, {"lifetime, first fit", "lifetime, best fit"},
    {"load, first fit", "load, best fit"},
};

typedef struct sort_key {
    double major;
    uint64_t bytes;
    uint32_t first, item;
} sort_key;

/* Larger keys first; equal ones by size, then birth, then index: a total order. */
static int key_cmp(const void *a, const void *b)
{
    const sort_key *x = a, *y = b;
    if (x->major != y->major)
        return x->major > y->major ? -1 : 1;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    return x->item < y->item ? -1 : 1;
}

static void sort_by(placer *p, order_kind kind, sort_key *keys)
{
    for (size_t i = 0; i < p->n; i++) {
        const sn_place_item *item = &p->items[i];
        double length = (double)(item->last - item->first) + 1.0, major = 0;
        switch (kind) {
        case BY_SIZE:
            major = (double)p->bytes[i];
            break;
        case BY_AREA:
            major = (double)p->bytes[i] * length;
            break;
        case BY_BIRTH:
            major = -(double)item->first;
            break;
        case BY_LIFETIME:
            major = length;
            break;
        default:
            major = (double)p->load[i];
        }
        keys[i] = (sort_key){major, p->bytes[i], item->first, (uint32_t)i};
    }
    qsort(keys, p->n, sizeof *keys, key_cmp);
    for (size_t i = 0; i < p->n; i++)
        p->order[i] = keys[i].item;
}

/* ---- the search ------------------------------------------------------------------------------ */

/* An item that ends at the peak of its slab, the k-th of them. */
static size_t at_peak(const placer *p, uint32_t draw)
{
    size_t n_found = 0, pick = 0;
    for (int pass = 0; pass < 2; pass++) {
        size_t seen = 0;
        for (size_t k = 0; k < p->n; k++) {
            uint32_t i = p->best_order[k];
            if (p->items[i].fixed || p->best_address[i] + p->bytes[i] < p->best_peak)
                continue;
            if (pass && seen == pick)
                return k;
            seen++;
        }
        n_found = seen;
        if (!n_found)
            return draw % p->n;
        pick = draw % n_found;
    }
    return 0;
}

/* Moves an item of the peak (or any other) earlier in the best order, and another one at random;
 * keeps what is no worse. */
static void search(placer *p, uint64_t limit, uint64_t target)
{
    uint64_t end = p->work + limit;
    for (uint64_t round = 0; p->work < end && p->best_peak > target && p->n > 1; round++) {
        uint32_t draw[4];
        sn_philox(draw, 1, round, 0);
        memcpy(p->trial, p->best_order, p->n * sizeof *p->trial);
        size_t from = round % 4 == 3 ? draw[0] % p->n : at_peak(p, draw[0]);
        size_t to = from ? draw[1] % from : draw[1] % p->n;
        uint32_t moved = p->trial[from];
        if (to < from)
            memmove(p->trial + to + 1, p->trial + to, (from - to) * sizeof *p->trial);
        else
            memmove(p->trial + from, p->trial + from + 1, (to - from) * sizeof *p->trial);
        p->trial[to] = moved;
        p->work++; /* also a round that fails at once counts */
        if (!try_order(p, p->trial, (draw[2] & 1) != 0, true))
            continue;
    }
}

/* ---- the whole ------------------------------------------------------------------------------- */

static void placer_free(placer *p)
{
    sn_free(p->bytes);
    sn_free(p->load);
    sn_free(p->order);
    sn_free(p->best_order);
    sn_free(p->trial);
    sn_free(p->address);
    sn_free(p->best_address);
    sn_free(p->slab_peak);
    sn_free(p->placed);
}

static snug_status placer_init(placer *p, const sn_place_options *options, snug_error *err)
{
    size_t n = p->n + 1; /* also for no items */
    uint64_t align = options->align ? options->align : 1, total = 0;
    p->bytes = sn_alloc_array(SN_TAG_PLAN, n, sizeof *p->bytes);
    p->load = sn_alloc_array(SN_TAG_PLAN, n, sizeof *p->load);
    p->order = sn_alloc_array(SN_TAG_PLAN, n, sizeof *p->order);
    p->best_order = sn_alloc_array(SN_TAG_PLAN, n, sizeof *p->best_order);
    p->trial = sn_alloc_array(SN_TAG_PLAN, n, sizeof *p->trial);
    p->address = sn_alloc_array(SN_TAG_PLAN, n, sizeof *p->address);
    p->best_address = sn_alloc_array(SN_TAG_PLAN, n, sizeof *p->best_address);
    p->placed = sn_alloc_array(SN_TAG_PLAN, n, sizeof *p->placed);
    if (!p->bytes || !p->load || !p->order || !p->best_order || !p->trial || !p->address ||
        !p->best_address || !p->placed)
        return sn_fail(err, SNUG_E_MEMORY, "no memory to place %zu buffers", p->n);
    p->slab_bytes = options->slab_bytes ? options->slab_bytes : UINT64_MAX;
    if (p->slab_bytes != UINT64_MAX)
        p->slab_bytes &= ~(align - 1);
    for (size_t i = 0; i < p->n; i++) {
        p->bytes[i] = rounded(p->items[i].bytes, align);
        if (p->bytes[i] > p->slab_bytes || sn_add_u64(&total, total, p->bytes[i]) ||
            total > UINT64_MAX / 4) {
            sn_fail(err, SNUG_E_DOES_NOT_FIT,
                    "a buffer of %" PRIu64 " bytes; the largest allocation is %" PRIu64,
                    p->items[i].bytes, p->slab_bytes);
            if (err) {
                err->need = p->items[i].bytes;
                err->have = p->slab_bytes;
                err->pos = i;
            }
            return SNUG_E_DOES_NOT_FIT;
        }
        if (p->items[i].fixed)
            p->address[i] = p->items[i].offset +
                            (p->slab_bytes == UINT64_MAX ? 0 : p->items[i].slab * p->slab_bytes);
    }
    /* Every item stands on another one's end, on address 0 or on a slab's start, where it skipped
     * less than its own size: twice the total is high enough, above the fixed ones. */
    p->n_slabs_cap = 1;
    if (p->slab_bytes != UINT64_MAX) {
        for (size_t i = 0; i < p->n; i++)
            if (p->items[i].fixed)
                p->n_slabs_cap = SN_MAX(p->n_slabs_cap, (size_t)p->items[i].slab + 1);
        p->n_slabs_cap += (size_t)(2 * total / p->slab_bytes) + 2;
    }
    p->slab_peak = sn_alloc_array(SN_TAG_PLAN, p->n_slabs_cap, sizeof *p->slab_peak);
    if (!p->slab_peak || !loads(p, align))
        return sn_fail(err, SNUG_E_MEMORY, "no memory to place %zu buffers", p->n);
    return SNUG_OK;
}

snug_status sn_place(sn_place_item *items, size_t n, const sn_place_options *options,
                     sn_place_result *result, snug_error *err)
{
    placer p = {.items = items, .n = n, .best_peak = UINT64_MAX};
    *result = (sn_place_result){.order = "nothing to place"};
    sort_key *keys = sn_alloc_array(SN_TAG_PLAN, n + 1, sizeof *keys);
    snug_status s = keys ? placer_init(&p, options, err)
                         : sn_fail(err, SNUG_E_MEMORY, "no memory to place %zu buffers", n);
    if (!s && !sn_place_lower_bound(items, n, options->align, &result->lower_bound_bytes, NULL))
        s = sn_fail(err, SNUG_E_MEMORY, "no memory to place %zu buffers", n);
    if (s)
        goto out;
    uint64_t bound = result->lower_bound_bytes, target = SN_MAX(options->target_bytes, bound);
    for (int kind = 0; kind < N_ORDERS && p.best_peak > bound; kind++) {
        sort_by(&p, (order_kind)kind, keys);
        for (int fit = 0; fit < 2 && p.best_peak > bound; fit++)
            if (try_order(&p, p.order, fit == 1, false))
                result->order = order_names[kind][fit];
    }
    uint64_t greedy = p.best_peak;
    search(&p, options->search, target);
    if (p.best_peak < greedy)
        result->order = "local search";
    result->peak_bytes = p.best_peak;
    result->n_slabs = p.best_slabs;
    for (size_t i = 0; i < n; i++) {
        if (items[i].fixed)
            continue;
        bool one = p.slab_bytes == UINT64_MAX;
        items[i].slab = one ? 0 : (uint32_t)(p.best_address[i] / p.slab_bytes);
        items[i].offset = one ? p.best_address[i] : p.best_address[i] % p.slab_bytes;
    }
out:
    placer_free(&p);
    sn_free(keys);
    return s;
}
