/* SPDX-License-Identifier: Apache-2.0
 *
 * raw.h - a set of equal samples that lie one behind the other in files (IDX, NPY, a CSV that was
 * turned into numbers), read with pread one sample at a time.
 *
 *     sn_raw *raw;  sn_raw_new(&raw, err);
 *     raw->type = SN_RAW_U8;  raw->rank = 3;  raw->stored[0] = 28; ...  raw->parts[0] = ...
 *     sn_raw_seal(raw, &options, &set, err);
 *
 * Ownership: the raw owns its descriptors and texts; once sealed, set.ops->free ends it, before
 * sn_raw_free.  Threads: building by one.
 */
#ifndef SN_DATA_RAW_H
#define SN_DATA_RAW_H

#include "data/notes.h"
#include "data/set.h"

#define SN_RAW_TYPE_LIST(X)                                                                        \
    X(U8, 1)                                                                                       \
    X(I8, 1) X(U16, 2) X(I16, 2) X(U32, 4) X(I32, 4) X(I64, 8) X(F16, 2) X(F32, 4) X(F64, 8)
typedef enum sn_raw_type {
#define SN_RAW_ENUM(name, bytes) SN_RAW_##name,
    SN_RAW_TYPE_LIST(SN_RAW_ENUM)
#undef SN_RAW_ENUM
        SN_N_RAW_TYPES
} sn_raw_type;
size_t sn_raw_type_bytes(sn_raw_type type);
/* n numbers of that type (little-endian, as on every machine that snug runs on) to floats. */
void sn_raw_to_float(float *out, const void *in, sn_raw_type type, size_t n);

typedef enum sn_raw_labels {
    SN_RAW_NO_LABELS,
    SN_RAW_CLASSES, /* int32 a sample */
    SN_RAW_TARGETS, /* n_targets float32 a sample */
} sn_raw_labels;

typedef struct sn_raw {
    struct {
        int fd; /* owned unless it is that of an earlier part */
        uint64_t offset, n;
    } parts[3]; /* train, validation, test; n 0: absent */
    sn_raw_type type;
    int rank;
    int64_t stored[3]; /* [H,W,C] or [F,1,1] as in the file */
    int64_t shape[3];  /* as asked for */
    snug_resize resize;
    snug_fit fit;
    int labels_fd; /* all parts' labels in order; -1: none */
    sn_raw_labels labels;
    int64_t n_targets;
    SN_VEC(char *) classes;
    SN_VEC(uint64_t) class_counts;
    sn_notes notes;
    uint64_t begin[3];
    char *path; /* for messages */
} sn_raw;

snug_status sn_raw_new(sn_raw **out, const char *path, snug_error *err);
/* Appends `n` classes named "0", "1", ... ; false: no memory. */
bool sn_raw_number_classes(sn_raw *raw, size_t n);
/* Counts the train part's classes. SNUG_E_INPUT if a label is out of range. */
snug_status sn_raw_count_classes(sn_raw *raw, snug_error *err);
/* Checks what the options ask against what is stored; *set takes raw over. */
snug_status sn_raw_seal(sn_raw *raw, const snug_data_options *options, sn_set *set,
                        snug_error *err);
void sn_raw_free(sn_raw *raw); /* NULL-safe */

#endif
