/* SPDX-License-Identifier: Apache-2.0
 *
 * safetensors.h - named tensors in one file: 8 bytes of header length, a JSON header, raw
 * little-endian bytes (github.com/huggingface/safetensors). The reader checks the whole header
 * before it believes any of it; the writer streams into a temporary name and renames, so the file
 * is the old or the new one at every moment.
 *
 *     sn_safetensors *f;  sn_safetensors_open(&f, "last.ckpt", err);
 *     const sn_safetensors_entry *e = sn_safetensors_find(f, "conv1/kernel");
 *     sn_safetensors_read(f, e, buffer, err);
 *
 *     sn_safetensors_writer *w;
 *     sn_safetensors_begin(&w, "last.ckpt", entries, n, metadata, n_metadata, err);
 *     sn_safetensors_write(w, i, offset, bytes, n, err);      // any order, any pieces
 *     sn_safetensors_commit(w, err);                          // or _abort
 *
 * Ownership: the reader owns entries and texts until free; begin copies what it is given.
 * Threads: reads of one open file may run side by side; a writer is one thread's.
 */
#ifndef SN_FORMAT_SAFETENSORS_H
#define SN_FORMAT_SAFETENSORS_H

#include "base/ledger.h"

enum { SN_SAFETENSORS_MAX_RANK = 8 };

typedef struct sn_safetensors_entry {
    const char *name;
    const char
        *dtype; /* "F32", "F16", "BF16", "F64", "I64", "I32", "I16", "I8", "U8", "BOOL", ... */
    int rank;   /* 0: a scalar */
    int64_t shape[SN_SAFETENSORS_MAX_RANK];
    uint64_t offset; /* of the first byte in the file; the writer ignores it */
    uint64_t bytes;  /* product of shape x size of dtype; the writer ignores it */
} sn_safetensors_entry;

typedef struct sn_safetensors_text {
    const char *key, *value;
} sn_safetensors_text;

typedef struct sn_safetensors sn_safetensors;
/* SNUG_E_NOT_FOUND, SNUG_E_IO, SNUG_E_INPUT (what is wrong, err->pos the byte), SNUG_E_MEMORY. */
snug_status sn_safetensors_open(sn_safetensors **out, const char *path, snug_error *err);
size_t sn_safetensors_n(const sn_safetensors *file);
/* In the order of their offsets. NULL out of range. */
const sn_safetensors_entry *sn_safetensors_entry_at(const sn_safetensors *file, size_t i);
/* NULL if there is none of that name. */
const sn_safetensors_entry *sn_safetensors_find(const sn_safetensors *file, const char *name);
/* Value of a __metadata__ key; NULL if absent. */
const char *sn_safetensors_metadata(const sn_safetensors *file, const char *key);
/* All entry->bytes of it into buffer. */
snug_status sn_safetensors_read(const sn_safetensors *file, const sn_safetensors_entry *entry,
                                void *buffer, snug_error *err);
/* n bytes from `offset` within the tensor; SNUG_E_USAGE beyond its end. */
snug_status sn_safetensors_read_part(const sn_safetensors *file, const sn_safetensors_entry *entry,
                                     uint64_t offset, void *buffer, size_t n, snug_error *err);
/* NULL-safe. */
void sn_safetensors_free(sn_safetensors *file);

typedef struct sn_safetensors_writer sn_safetensors_writer;
/* Writes the header and reserves the file's whole length, so that a full disk is met here
 * (SNUG_E_IO). entries: name, dtype, rank and shape are read. The tensors lie in the order given,
 * the data 8-byte aligned. */
snug_status sn_safetensors_begin(sn_safetensors_writer **out, const char *path,
                                 const sn_safetensors_entry *entries, size_t n,
                                 const sn_safetensors_text *metadata, size_t n_metadata,
                                 snug_error *err);
/* n bytes at `offset` within tensor i. SNUG_E_USAGE beyond its end. */
snug_status sn_safetensors_write(sn_safetensors_writer *writer, size_t i, uint64_t offset,
                                 const void *bytes, size_t n, snug_error *err);
/* Checks that each tensor was written whole, syncs, renames, frees the writer (also on failure). */
snug_status sn_safetensors_commit(sn_safetensors_writer *writer, snug_error *err);
/* Leaves path as it was, frees the writer. NULL-safe. */
void sn_safetensors_abort(sn_safetensors_writer *writer);

/* The length of the file that begin would make; 0 if a name, dtype or shape is no good. */
uint64_t sn_safetensors_file_bytes(const sn_safetensors_entry *entries, size_t n,
                                   const sn_safetensors_text *metadata, size_t n_metadata);
/* Bytes of an element; 0 for an unknown dtype. */
size_t sn_safetensors_dtype_bytes(const char *dtype);

#endif
