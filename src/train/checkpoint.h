/* SPDX-License-Identifier: Apache-2.0
 *
 * checkpoint.h - weights and whole states of a run as safetensors, streamed out of the arena and
 * into it.
 *
 *     sn_run_state state = {.epoch = 3, .next_position = 4096, ...};
 *     sn_checkpoint_save(session, "run/last.ckpt", description, &state, err);
 *     sn_checkpoint_load(session, "run/last.ckpt", &state, err);
 *
 * Ownership: nothing is kept between calls.  Threads: one at a time.
 */
#ifndef SN_TRAIN_CHECKPOINT_H
#define SN_TRAIN_CHECKPOINT_H

#include "train/session.h"

/* Where a run stands, to the step. */
typedef struct sn_run_state {
    uint64_t step;                   /* optimizer steps made */
    int64_t epoch;                   /* in work, from 0 */
    uint64_t next_position;          /* of the training source in this epoch; 0: at its beginning */
    uint64_t epoch_n, epoch_correct; /* samples and hits of this epoch so far */
    double epoch_loss_sum, epoch_seconds;
    double best;                    /* best monitored loss; infinite: none yet */
    int64_t best_epoch, bad_epochs; /* since the best */
    double plateau_factor, plateau_best;
    int64_t plateau_bad;
    uint64_t seed;
} sn_run_state;

/* state NULL: weights alone (no optimizer slots). */
snug_status sn_checkpoint_save(snug_session *session, const char *path, const char *description,
                               const sn_run_state *state, snug_error *err);
/* state NULL: weights alone. SNUG_E_INPUT when a tensor is missing or has another shape. */
snug_status sn_checkpoint_load(snug_session *session, const char *path, sn_run_state *state,
                               snug_error *err);
/* Bytes of the file that save would make. */
uint64_t sn_checkpoint_bytes(const snug_session *session, bool with_state);

#endif
