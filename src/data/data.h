/* SPDX-License-Identifier: Apache-2.0
 *
 * data.h - an opened data set: the samples (set.h), which of them belong to which subset, in which
 * order an epoch visits them, what was skipped, and the pipeline that runs over it. The functions
 * that open files (src/format/open.c) build a set and hand it to sn_data_new.
 *
 *     sn_data_new(&data, &set, &options, err);                 // takes the set over
 *     uint64_t i = sn_data_index(data, SNUG_SUBSET_TRAIN, epoch, position);
 *
 * Ownership: snug_data_free ends set and pipeline.  Threads: index from any; the rest one at a
 * time.
 */
#ifndef SN_DATA_DATA_H
#define SN_DATA_DATA_H

#include "data/set.h"

struct snug_data {
    snug_data_options options; /* its texts are NULL */
    sn_set set;
    uint64_t n_held_out; /* validation samples taken from the train part */
    /* Skipped samples: records in a temporary file, and a bit a sample in another. */
    int skipped_fd, seen_fd;
    uint64_t n_skipped;
    struct sn_pipe *pipe;
    struct sn_data_context {
        snug_data *data;
        snug_subset subset;
    } contexts[SNUG_N_SUBSETS];
};

/* options in the library's own full size. SNUG_E_USAGE for values out of range. */
snug_status sn_data_options_check(snug_data_options *out, const snug_data_options *options,
                                  snug_error *err);
/* On failure the set still belongs to the caller. */
snug_status sn_data_new(snug_data **out, const sn_set *set, const snug_data_options *options,
                        snug_error *err);
/* The list index of the sample at a position of an epoch. */
uint64_t sn_data_index(const snug_data *data, snug_subset subset, uint64_t epoch,
                       uint64_t position);
/* Remembers that sample i was skipped, once. *first: it was not known. */
snug_status sn_data_skip(snug_data *data, uint64_t i, const char *why, bool *first,
                         snug_error *err);

/* Sizes of a slot's samples and targets in floats beside the model's; 0 of either: not said, which
 * fits. SNUG_E_INPUT: they differ. */
snug_status sn_data_check_sizes(int64_t sample, int64_t model_sample, int64_t targets,
                                int64_t model_targets, snug_error *err);

enum { SN_DATA_WHY = 240 };

#endif
