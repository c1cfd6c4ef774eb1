/* SPDX-License-Identifier: Apache-2.0
 *
 * readers.h - readers of whole files that are no text logs, and which of them a file needs.
 *
 *     switch (sn_reader_for(path, head, n)) { case SN_READER_NOTEBOOK: ... }
 *
 * Ownership: texts are copied into the diagnosis.  Threads: reentrant.
 */
#ifndef SN_DIAGNOSE_READERS_H
#define SN_DIAGNOSE_READERS_H

#include "diagnose/diagnose.h"

typedef enum sn_reader {
    SN_READER_TEXT,     /* a log, streamed */
    SN_READER_SOURCE,   /* .py */
    SN_READER_NOTEBOOK, /* .ipynb */
    SN_READER_BFC_DUMP, /* TF_BFC_MEMORY_DUMP */
    SN_READER_SNAPSHOT, /* torch.cuda.memory._snapshot() as JSON */
    SN_READER_PICKLE    /* refused */
} sn_reader;

/* From the name and the first n bytes (4 KiB are enough). */
sn_reader sn_reader_for(const char *path, const void *head, size_t n);

/* A Jupyter notebook: error and stream outputs as text (sources "name cell N"), its Python cells as
 * source. SNUG_E_INPUT with the byte if it is no JSON or no notebook. */
snug_status sn_notebook_read(snug_diagnosis *d, const char *name, const char *json, size_t n,
                             snug_error *err);
/* The protobuf MemoryDump that TensorFlow's BFC allocator writes. SNUG_E_INPUT with the byte. */
snug_status sn_bfc_dump_read(snug_diagnosis *d, const char *name, const void *bytes, size_t n,
                             snug_error *err);
/* PyTorch's memory snapshot, or its list of segments, as JSON. SNUG_E_INPUT. */
snug_status sn_snapshot_read(snug_diagnosis *d, const char *name, const char *json, size_t n,
                             snug_error *err);

/* Holders of an allocator, largest first when settled: who holds how much, asked and held. */
typedef struct sn_holder {
    char name[64];
    uint64_t held_bytes, asked_bytes, chunks;
} sn_holder;
typedef struct sn_holders {
    sn_holder *at;
    size_t n, cap;
    bool failed;
    uint64_t held_bytes, asked_bytes, free_bytes, largest_free_bytes, total_bytes;
    uint64_t largest_bytes; /* the largest chunk in use */
    char largest_name[64];
} sn_holders;
void sn_holders_add(sn_holders *holders, const char *name, size_t n_name, uint64_t held,
                    uint64_t asked);
void sn_holders_add_free(sn_holders *holders, uint64_t bytes);
/* Sorts, sets facts and series, adds the findings that both allocators share. */
void sn_holders_conclude(sn_holders *holders, snug_diagnosis *d, const char *allocator);
void sn_holders_free(sn_holders *holders);

#endif
