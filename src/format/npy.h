/* SPDX-License-Identifier: Apache-2.0
 *
 * npy.h - NumPy's .npy: one array, a short text header, raw numbers. Read with pread, never mapped.
 *
 *     sn_npy a;  sn_npy_read_header(&a, fd, "x.npy", err);       // a.shape, a.type, a.offset
 *     sn_npy_raw(&raw, "x.npy", &options, err);                  // as a data set
 *     sn_npy_header(head, "<f4", 4, shape);                      // to write one
 *
 * Ownership: descriptors stay the caller's.  Threads: reentrant.
 */
#ifndef SN_FORMAT_NPY_H
#define SN_FORMAT_NPY_H

#include "data/raw.h"

enum { SN_NPY_MAX_RANK = 8, SN_NPY_HEADER = 128 };

typedef struct sn_npy {
    sn_raw_type type;
    bool integers; /* not floating */
    int rank;
    int64_t shape[SN_NPY_MAX_RANK];
    uint64_t offset; /* of the numbers */
    uint64_t n;      /* of them; all lie within the file */
} sn_npy;

/* SNUG_E_INPUT, SNUG_E_UNSUPPORTED (Fortran order, big-endian, other types) with path in where. */
snug_status sn_npy_read_header(sn_npy *out, int fd, const char *path, snug_error *err);
/* [N,H,W,C], [N,H,W] or [N,F] with options->labels_path. */
snug_status sn_npy_raw(sn_raw **out, const char *path, const snug_data_options *options,
                       snug_error *err);
/* Labels of n samples into raw (classes for whole numbers, targets for others). */
snug_status sn_npy_labels(sn_raw *raw, const char *path, uint64_t n, snug_error *err);
/* SN_NPY_HEADER bytes; the descr is numpy's ("<f4", "|u1"). false if the shape is too long. */
bool sn_npy_header(char out[SN_NPY_HEADER], const char *descr, int rank, const int64_t *shape);

#endif
