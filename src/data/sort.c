/* SPDX-License-Identifier: Apache-2.0
 *
 * Invariants:
 *  1. A run in the file is a sequence of names, each with its NUL, in natural order.
 *  2. Between finish and the last next, heap[0] is the run whose present name is the least.
 *  3. A run's buffer holds its present name whole: names are shorter than a buffer.
 */
#include "data/sort.h"

#include <assert.h>
#include <unistd.h>

#include "base/io.h"
#include "data/names.h"

/* Half of the memory feeds the runs while merging, the other half collects what is written. */
enum { RUN_BUFFER = SN_SORTER_BYTES / 2 / SN_SORTER_FAN };
static_assert((int)RUN_BUFFER > (int)SN_NAME_MAX, "a buffer holds the longest name");

void sn_sorter_init(sn_sorter *out)
{
    memset(out, 0, sizeof *out);
    out->limit = SN_SORTER_BYTES;
}

void sn_sorter_limit(sn_sorter *sorter, size_t bytes)
{
    sorter->limit = bytes ? SN_MIN(bytes, (size_t)SN_SORTER_BYTES) : SN_SORTER_BYTES;
}

static uint32_t *offsets(sn_sorter *s)
{
    return (uint32_t *)(void *)(s->bytes + SN_SORTER_BYTES) - s->n;
}

static int compare(const void *a, const void *b, void *bytes)
{
    const char *text = bytes;

    return sn_str_natural_cmp(text + *(const uint32_t *)a, text + *(const uint32_t *)b);
}

static void sort_held(sn_sorter *s)
{
    if (s->n)
        qsort_r(offsets(s), s->n, sizeof(uint32_t), compare, s->bytes);
}

/* --- writing runs ------------------------------------------------------------------------------*/

/* Collects names for the file in `buffer` of n bytes. */
typedef struct run_writer {
    sn_sorter *sorter;
    char *buffer;
    size_t size, used;
    uint64_t start;
} run_writer;

static snug_status writer_flush(run_writer *w, snug_error *err)
{
    snug_status status = sn_io_pwrite(w->sorter->fd, w->buffer, w->used, w->sorter->file_end,
                                      "the temporary file for sorting names", err);
    w->sorter->file_end += w->used;
    w->used = 0;
    return status;
}

static snug_status writer_put(run_writer *w, const char *name, snug_error *err)
{
    size_t n = strlen(name) + 1;

    if (w->used + n > w->size) {
        snug_status status = writer_flush(w, err);
        if (status)
            return status;
    }
    memcpy(w->buffer + w->used, name, n);
    w->used += n;
    return SNUG_OK;
}

static snug_status writer_end(run_writer *w, snug_error *err)
{
    snug_status status = writer_flush(w, err);
    sn_sorter_run run = {.at = w->start, .end = w->sorter->file_end};

    if (!status && !SN_VEC_PUSH(SN_TAG_DATA, &w->sorter->runs, run))
        status = sn_fail(err, SNUG_E_MEMORY, "no memory to sort names");
    return status;
}

static snug_status write_held(sn_sorter *s, snug_error *err)
{
    char buffer[16 * 1024];
    snug_status status = s->fd > 0 ? SNUG_OK : sn_io_temporary(&s->fd, err);
    run_writer w = {s, buffer, sizeof buffer, 0, s->file_end};

    if (status)
        return status;
    sort_held(s);
    const uint32_t *at = offsets(s);
    for (size_t i = 0; i < s->n && !status; i++)
        status = writer_put(&w, s->bytes + at[i], err);
    if (!status)
        status = writer_end(&w, err);
    s->n = s->used = 0;
    return status;
}

snug_status sn_sorter_add(sn_sorter *s, const char *name, snug_error *err)
{
    size_t n = strlen(name) + 1;

    assert(n <= SN_NAME_MAX);
    if (!s->bytes && !(s->bytes = sn_alloc(SN_TAG_DATA, SN_SORTER_BYTES)))
        return sn_fail(err, SNUG_E_MEMORY, "no memory to sort names");
    if (s->n && s->used + n + (s->n + 1) * sizeof(uint32_t) > s->limit) {
        snug_status status = write_held(s, err);
        if (status)
            return status;
    }
    memcpy(s->bytes + s->used, name, n);
    s->n++;
    offsets(s)[0] = (uint32_t)s->used;
    s->used += n;
    return SNUG_OK;
}

/* --- merging -----------------------------------------------------------------------------------*/

/* Moves what is left of the buffer to its front and reads on. */
static snug_status run_refill(sn_sorter *s, sn_sorter_run *run, snug_error *err)
{
    size_t left = run->have - run->pos;

    memmove(run->buffer, run->buffer + run->pos, left);
    size_t n = (size_t)SN_MIN((uint64_t)(RUN_BUFFER - left), run->end - run->at);
    snug_status status = sn_io_pread(s->fd, run->buffer + left, n, run->at,
                                     "the temporary file for sorting names", err);
    run->at += n;
    run->have = left + n;
    run->pos = 0;
    return status;
}

/* After this the present name is whole in the buffer, or the run is done. */
static snug_status run_settle(sn_sorter *s, sn_sorter_run *run, snug_error *err)
{
    if (run->pos < run->have && memchr(run->buffer + run->pos, 0, run->have - run->pos))
        return SNUG_OK;
    snug_status status = run_refill(s, run, err);
    run->done = run->have == 0; /* 3 */
    return status;
}

static bool run_less(const sn_sorter_run *a, const sn_sorter_run *b)
{
    return sn_str_natural_cmp(a->buffer + a->pos, b->buffer + b->pos) < 0;
}

static void heap_sink(sn_sorter *s, size_t i)
{
    for (;;) {
        size_t least = i;
        for (size_t child = 2 * i + 1; child <= 2 * i + 2 && child < s->n_heap; child++)
            if (run_less(s->heap[child], s->heap[least]))
                least = child;
        if (least == i)
            return;
        sn_sorter_run *swap = s->heap[i];
        s->heap[i] = s->heap[least];
        s->heap[least] = swap;
        i = least;
    }
}

/* Begins to merge the first n runs that are left. Their buffers are in the front half of the
 * memory; the runs vector must not grow until they are merged. */
static snug_status merge_begin(sn_sorter *s, size_t n, snug_error *err)
{
    s->n_heap = 0;
    for (size_t i = 0; i < n; i++) {
        sn_sorter_run *run = &s->runs.at[s->first_run + i];
        run->buffer = s->bytes + i * RUN_BUFFER;
        snug_status status = run_settle(s, run, err);
        if (status)
            return status;
        if (!run->done)
            s->heap[s->n_heap++] = run;
    }
    for (size_t i = s->n_heap; i-- > 0;)
        heap_sink(s, i);
    return SNUG_OK;
}

/* Past the least name. */
static snug_status merge_advance(sn_sorter *s, snug_error *err)
{
    sn_sorter_run *run = s->heap[0];

    run->pos += strlen(run->buffer + run->pos) + 1;
    snug_status status = run_settle(s, run, err);
    if (run->done)
        s->heap[0] = s->heap[--s->n_heap];
    heap_sink(s, 0); /* 2 */
    return status;
}

/* Merges the first SN_SORTER_FAN runs into a new one at the end. */
static snug_status merge_some(sn_sorter *s, snug_error *err)
{
    run_writer w = {s, s->bytes + SN_SORTER_BYTES / 2, SN_SORTER_BYTES / 2, 0, s->file_end};
    snug_status status = merge_begin(s, SN_SORTER_FAN, err);

    while (!status && s->n_heap) {
        status = writer_put(&w, s->heap[0]->buffer + s->heap[0]->pos, err);
        if (!status)
            status = merge_advance(s, err);
    }
    s->first_run += SN_SORTER_FAN;
    return status ? status : writer_end(&w, err);
}

snug_status sn_sorter_finish(sn_sorter *s, snug_error *err)
{
    snug_status status = SNUG_OK;

    s->next = 0;
    if (s->runs.n == 0) {
        sort_held(s);
        return SNUG_OK;
    }
    if (s->n)
        status = write_held(s, err);
    while (!status && s->runs.n - s->first_run > SN_SORTER_FAN)
        status = merge_some(s, err);
    if (!status)
        status = merge_begin(s, s->runs.n - s->first_run, err);
    return status;
}

snug_status sn_sorter_next(sn_sorter *s, const char **name, snug_error *err)
{
    snug_status status = SNUG_OK;

    *name = NULL;
    if (s->runs.n == 0) {
        if (s->next < s->n)
            *name = s->bytes + offsets(s)[s->next++];
        return SNUG_OK;
    }
    if (s->merging && s->n_heap)
        status = merge_advance(s, err);
    s->merging = true;
    if (!status && s->n_heap)
        *name = s->heap[0]->buffer + s->heap[0]->pos;
    return status;
}

void sn_sorter_clear(sn_sorter *s)
{
    if (s->fd > 0)
        close(s->fd);
    s->fd = 0;
    s->runs.n = 0;
    s->n = s->used = s->next = s->first_run = s->n_heap = 0;
    s->file_end = 0;
    s->merging = false;
}

void sn_sorter_deinit(sn_sorter *s)
{
    sn_sorter_clear(s);
    SN_VEC_FREE(&s->runs);
    sn_free(s->bytes);
    s->bytes = NULL;
}
