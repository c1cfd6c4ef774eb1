/* SPDX-License-Identifier: Apache-2.0
 *
 * sort.h - any number of names into natural order in bounded memory: sorted runs in a temporary
 * file, merged 64 at a time.
 *
 *     sn_sorter s;  sn_sorter_init(&s);
 *     sn_sorter_add(&s, "b/10.jpg", err); ...
 *     sn_sorter_finish(&s, err);
 *     while (!sn_sorter_next(&s, &name, err) && name) use(name);
 *     sn_sorter_deinit(&s);
 *
 * Ownership: a name is valid until the next call.  Threads: one at a time.
 */
#ifndef SN_DATA_SORT_H
#define SN_DATA_SORT_H

#include "base/vec.h"

enum { SN_SORTER_BYTES = 1 << 20, SN_SORTER_FAN = 64 };

typedef struct sn_sorter_run {
    uint64_t at, end; /* in the file */
    /* While merging: the part that is in memory, and where the present name stands in it. */
    char *buffer;
    size_t have, pos;
    bool done;
} sn_sorter_run;

typedef struct sn_sorter {
    char *bytes;    /* SN_SORTER_BYTES: names from the front, their offsets from the back */
    size_t used, n; /* names held in memory */
    size_t limit;   /* bytes to use before a run is written */
    size_t next;    /* the next name to give out, if there are no runs */
    int fd;         /* of the runs, 0 if there are none */
    uint64_t file_end;
    SN_VEC(sn_sorter_run) runs;
    size_t first_run; /* runs before it have been merged away */
    sn_sorter_run *heap[SN_SORTER_FAN];
    size_t n_heap;
    bool merging;
} sn_sorter;

void sn_sorter_init(sn_sorter *out);
/* Tests: write a run after this many bytes (0: all of the memory). */
void sn_sorter_limit(sn_sorter *sorter, size_t bytes);
snug_status sn_sorter_add(sn_sorter *sorter, const char *name, snug_error *err);
snug_status sn_sorter_finish(sn_sorter *sorter, snug_error *err);
/* *name NULL after the last. */
snug_status sn_sorter_next(sn_sorter *sorter, const char **name, snug_error *err);
/* Empties it for another set of names; the memory stays. */
void sn_sorter_clear(sn_sorter *sorter);
void sn_sorter_deinit(sn_sorter *sorter);

#endif
