/* SPDX-License-Identifier: Apache-2.0
 *
 * idx.h - MNIST's IDX files (yann.lecun.com/exdb/mnist): a magic number, dimensions, bytes. Labels
 * and the test set are found beside the training images by their usual names. A gzipped file is
 * expanded once into a temporary file without a name, so that samples can be read by pread.
 *
 *     sn_idx_raw(&raw, "train-images-idx3-ubyte.gz", &options, err);
 *
 * Ownership: descriptors belong to who opened them.  Threads: reentrant.
 */
#ifndef SN_FORMAT_IDX_H
#define SN_FORMAT_IDX_H

#include "data/raw.h"

typedef struct sn_idx {
    int rank;
    int64_t shape[4];
    uint64_t offset, n; /* of the bytes; all lie within the file */
} sn_idx;

/* Of an uncompressed file. SNUG_E_INPUT, SNUG_E_UNSUPPORTED (numbers that are no bytes). */
snug_status sn_idx_read_header(sn_idx *out, int fd, const char *path, snug_error *err);
/* Opens, and expands if gzipped. */
snug_status sn_idx_open(int *fd, sn_idx *out, const char *path, snug_error *err);
snug_status sn_idx_raw(sn_raw **out, const char *path, const snug_data_options *options,
                       snug_error *err);
/* Whether the first 4 bytes are an IDX magic number, or gzip's. */
bool sn_idx_sniff(const uint8_t head[4]);

#endif
