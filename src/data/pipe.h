/* SPDX-License-Identifier: Apache-2.0
 *
 * pipe.h - the bounded ring of batch slots and the threads that fill it. A worker claims the next
 * place of the oldest slot that has one, loads its sample straight into that place, and claims
 * again; the consumer takes whole slots in order. Which sample stands where depends on the order of
 * the epoch and on which files are bad, never on timing.
 *
 *     sn_pipe_new(&p, data, &options, err);
 *     sn_pipe_reset(p, SNUG_SUBSET_TRAIN, epoch, 0, err);
 *     while (!sn_pipe_next(p, SNUG_SUBSET_TRAIN, &slot, err) && slot.n) ...
 *
 * Ownership: the pipe owns threads, scratch and (unless the caller brought it) the slots' memory.
 * Threads: one consumer.
 */
#ifndef SN_DATA_PIPE_H
#define SN_DATA_PIPE_H

#include "data/data.h"

typedef struct sn_pipe sn_pipe;

snug_status sn_pipe_new(sn_pipe **out, snug_data *data, const snug_pipe_options *options,
                        snug_error *err);
/* Also ends an epoch that is under way. */
snug_status sn_pipe_reset(sn_pipe *pipe, snug_subset subset, uint64_t epoch,
                          uint64_t first_position, snug_error *err);
snug_status sn_pipe_next(sn_pipe *pipe, snug_subset subset, snug_slot *slot, snug_error *err);
double sn_pipe_wait_fraction(sn_pipe *pipe);
int sn_pipe_threads(sn_pipe *pipe);
/* NULL-safe. Waits for the samples under way. */
void sn_pipe_free(sn_pipe *pipe);

#endif
