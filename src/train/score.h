/* SPDX-License-Identifier: Apache-2.0
 *
 * score.h - accuracy, top-k, confusion and regression errors, gathered batch by batch.
 *
 *     sn_scorer sc;  sn_scorer_init(&sc, n_outputs, n_classes, confusion, err);
 *     sn_scorer_add(&sc, outputs, classes, targets, n, loss);
 *     sn_scorer_finish(&sc, &score);
 *
 * Ownership: the scorer owns its tables until finish hands them to the score.
 * Threads: one at a time.
 */
#ifndef SN_TRAIN_SCORE_H
#define SN_TRAIN_SCORE_H

#include "base/ledger.h"
#include "snug/train.h"

typedef struct sn_scorer {
    int64_t n_outputs, n_classes, k;
    uint64_t n, n_correct, n_top;
    double loss_sum, absolute_sum, square_sum;
    bool probabilities; /* a single output is a probability rather than a logit */
    uint64_t *confusion;
    snug_class_score *classes;
} sn_scorer;

/* n_classes 0: regression. tables false: neither confusion nor classes (training). */
snug_status sn_scorer_init(sn_scorer *scorer, int64_t n_outputs, int64_t n_classes, bool tables,
                           snug_error *err);
/* outputs [n, n_outputs]; classes [n] or targets [n, n_outputs] (of classes: one-hot); loss: the
 * batch's mean. The first of equal outputs counts as the largest, as argmax does. */
void sn_scorer_add(sn_scorer *scorer, const float *outputs, const int32_t *classes,
                   const float *targets, int64_t n, double loss);
void sn_scorer_finish(sn_scorer *scorer, snug_score *out);
void sn_scorer_deinit(sn_scorer *scorer);

#endif
