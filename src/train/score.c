/* SPDX-License-Identifier: Apache-2.0
 *
 * score.c - metrics as Keras defines them: argmax takes the first of equals, a binary output counts
 * as 1 above one half.
 */
#include "train/score.h"

#include <math.h>

#define MOST_CLASSES 2000

snug_status sn_scorer_init(sn_scorer *scorer, int64_t n_outputs, int64_t n_classes, bool tables,
                           snug_error *err)
{
    *scorer = (sn_scorer){.n_outputs = n_outputs, .n_classes = n_classes};
    scorer->k = SN_MIN(5, n_classes);
    if (!tables || n_classes < 1) {
        return SNUG_OK;
    }
    size_t n = (size_t)n_classes;
    scorer->classes = sn_alloc_array(SN_TAG_TRAIN, n, sizeof *scorer->classes);
    bool square = n_classes <= MOST_CLASSES;
    if (square) {
        scorer->confusion = sn_alloc_array(SN_TAG_TRAIN, n * n, sizeof *scorer->confusion);
    }
    if (!scorer->classes || (square && !scorer->confusion)) {
        sn_scorer_deinit(scorer);
        return sn_fail(err, SNUG_E_MEMORY, "no memory for the scores of %zu classes", n);
    }
    return SNUG_OK;
}

static void add_class(sn_scorer *scorer, const float *row, int32_t truth)
{
    int64_t called = 0, better = 0;
    if (scorer->n_outputs == 1) {
        called = row[0] > (scorer->probabilities ? .5f : 0.0f);
        better = called != truth;
    } else {
        for (int64_t j = 1; j < scorer->n_outputs; j++) {
            called = row[j] > row[called] ? j : called;
        }
        for (int64_t j = 0; j < scorer->n_outputs; j++) {
            better += row[j] > row[truth] || (row[j] == row[truth] && j < truth);
        }
    }
    scorer->n_correct += called == truth;
    scorer->n_top += better < scorer->k;
    if (scorer->classes && truth < scorer->n_classes && called < scorer->n_classes) {
        scorer->classes[truth].n++;
        scorer->classes[called].predicted++;
        scorer->classes[truth].correct += called == truth;
        if (scorer->confusion) {
            scorer->confusion[truth * scorer->n_classes + called]++;
        }
    }
}

/* The class that a row of one-hot (or smoothed) targets means. */
static int32_t class_of(const sn_scorer *scorer, const float *target)
{
    if (scorer->n_outputs == 1) {
        return target[0] > .5f;
    }
    int64_t best = 0;
    for (int64_t j = 1; j < scorer->n_outputs; j++) {
        best = target[j] > target[best] ? j : best;
    }
    return (int32_t)best;
}

void sn_scorer_add(sn_scorer *scorer, const float *outputs, const int32_t *classes,
                   const float *targets, int64_t n, double loss)
{
    scorer->n += (uint64_t)n;
    scorer->loss_sum += loss * (double)n;
    for (int64_t i = 0; i < n; i++) {
        const float *row = outputs + i * scorer->n_outputs;
        if (classes) {
            add_class(scorer, row, classes[i]);
        } else if (targets && scorer->n_classes > 0) {
            add_class(scorer, row, class_of(scorer, targets + i * scorer->n_outputs));
        } else if (targets) {
            for (int64_t j = 0; j < scorer->n_outputs; j++) {
                double d = (double)row[j] - (double)targets[i * scorer->n_outputs + j];
                scorer->absolute_sum += fabs(d);
                scorer->square_sum += d * d;
            }
        }
    }
}

void sn_scorer_finish(sn_scorer *scorer, snug_score *out)
{
    double n = (double)SN_MAX(scorer->n, 1), m = n * (double)scorer->n_outputs;
    *out = (snug_score){.n = scorer->n,
                        .loss = scorer->loss_sum / n,
                        .accuracy = (double)scorer->n_correct / n,
                        .top_k = (double)scorer->n_top / n,
                        .mae = scorer->absolute_sum / m,
                        .rmse = sqrt(scorer->square_sum / m),
                        .n_classes = scorer->n_classes,
                        .confusion = scorer->confusion,
                        .classes = scorer->classes};
    for (int64_t i = 0; out->classes && i < out->n_classes; i++) {
        snug_class_score *c = &out->classes[i];
        c->precision = c->predicted ? (double)c->correct / (double)c->predicted : 0;
        c->recall = c->n ? (double)c->correct / (double)c->n : 0;
        double sum = c->precision + c->recall;
        c->f1 = sum > 0 ? 2 * c->precision * c->recall / sum : 0;
    }
    scorer->confusion = NULL;
    scorer->classes = NULL;
}

void sn_scorer_deinit(sn_scorer *scorer)
{
    sn_free(scorer->confusion);
    sn_free(scorer->classes);
    scorer->confusion = NULL;
    scorer->classes = NULL;
}

void snug_score_deinit(snug_score *score)
{
    sn_free(score->confusion);
    sn_free(score->classes);
    *score = (snug_score){0};
}
