/* SPDX-License-Identifier: Apache-2.0
 *
 * fit.h - the inside of a training run, shared by fit.c (the loop) and save.c (what it leaves on
 * disk).
 *
 *     sn_fit fit = {.session = session, .options = options};
 *     sn_fit_save(&fit, false, err);
 *
 * Ownership: a fit owns its history and its batch of outputs.  Threads: one at a time.
 */
#ifndef SN_TRAIN_FIT_H
#define SN_TRAIN_FIT_H

#include "base/vec.h"
#include "snug/train.h"
#include "train/checkpoint.h"
#include "train/score.h"

typedef struct sn_fit {
    snug_session *session;
    const snug_train_options *options;
    snug_train_result *result;
    sn_run_state state;
    SN_VEC(snug_epoch) history;
    float *outputs; /* one batch */
    int64_t n_outputs, n_classes;
    bool regression;
    uint64_t n_steps, steps_per_epoch; /* 0: not known */
    uint64_t epoch_step;               /* in the epoch, from 0 */
    uint64_t n_images;                 /* of this call */
    double train_seconds, wait_seconds, run_start, last_save, epoch_start;
    float lr;
    bool advised, stop;
} sn_fit;

/* Room for every file of the run, before the first step. */
snug_status sn_fit_check_room(const sn_fit *fit, snug_error *err);
/* Goes on from folder's last.ckpt. */
snug_status sn_fit_resume(sn_fit *fit, snug_error *err);
/* last.ckpt; at the end of an epoch history.csv and last.safetensors too, and best.safetensors when
 * it improved. */
snug_status sn_fit_save(sn_fit *fit, bool epoch_ended, bool improved, snug_error *err);

#endif
