/* SPDX-License-Identifier: Apache-2.0
 *
 * train.h - whole training runs over a session: epochs, learning rate, validation, metrics, saving,
 * exact resuming.
 *
 *     snug_train_options o = {SNUG_TRAIN_DEFAULTS, .train = source, .epochs = 10};
 *     snug_status s = snug_train(session, &o, &result, &err);
 *
 * The library prints nothing and handles no signals: `progress` is called after each step and
 * epoch, and its answer stops the run after the step in work.
 * Ownership: options are read during the call only; a score is freed with snug_score_deinit.
 * Threads: as the session.
 */
#ifndef SNUG_TRAIN_H
#define SNUG_TRAIN_H

#include "snug/data.h"
#include "snug/session.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- learning rate --------------------------------------------------------------------------- */

typedef enum snug_schedule_kind {
    SNUG_SCHEDULE_CONSTANT,
    SNUG_SCHEDULE_COSINE,      /* to 0 at the last step */
    SNUG_SCHEDULE_STEP,        /* times `factor` every `every` epochs */
    SNUG_SCHEDULE_EXPONENTIAL, /* times `factor` every epoch, continuously */
    SNUG_SCHEDULE_PLATEAU      /* times `factor` after `patience` epochs without a better loss */
} snug_schedule_kind;

typedef struct snug_schedule {
    snug_schedule_kind kind;
    double warmup;    /* share of all steps over which the rate rises from 0 linearly; default 0 */
    double factor;    /* STEP .1, EXPONENTIAL .95, PLATEAU .1 */
    int64_t every;    /* STEP: epochs; default a third of all */
    int64_t patience; /* PLATEAU: epochs; default 5 */
    double min_delta; /* PLATEAU: what counts as better; default 1e-4 */
    double min_lr;    /* PLATEAU: floor; default 0 */
} snug_schedule;

/* "cosine", "cosine:warmup=0.05", "step:every=10,factor=0.5", "plateau:patience=3", ... */
SNUG_API snug_status snug_schedule_parse(snug_schedule *out, const char *text, snug_error *err);
/* Factor on the base learning rate for optimizer step `step` (from 0) of n_steps. PLATEAU's drops
 * are not in it: they depend on what the run met. */
SNUG_API double snug_schedule_factor(const snug_schedule *schedule, uint64_t step, uint64_t n_steps,
                                     uint64_t steps_per_epoch);

/* ---- scores ---------------------------------------------------------------------------------- */

typedef struct snug_class_score {
    uint64_t n, predicted, correct; /* of this class, called this class, both */
    double precision, recall, f1;   /* 0 where nothing was called or there */
} snug_class_score;

typedef struct snug_score {
    uint64_t n;                /* samples */
    double loss;               /* mean over samples */
    double accuracy;           /* classes; binary: above .5 */
    double top_k;              /* accuracy within the k best (k = 5, or the number of classes) */
    double mae, rmse;          /* regression */
    int64_t n_classes;         /* 0: regression */
    uint64_t *confusion;       /* [n_classes, n_classes], row = truth; NULL above 2000 classes */
    snug_class_score *classes; /* [n_classes] */
} snug_score;

/* One pass over a source in inference form. source_lends: it is one of snug_data_source. progress
 * (NULL allowed) gets the samples done and answers false to stop (SNUG_E_INTERRUPTED). */
SNUG_API snug_status snug_evaluate(snug_session *session, const snug_source *source,
                                   bool source_lends, snug_score *out,
                                   bool (*progress)(void *context, uint64_t n_done), void *context,
                                   snug_error *err);
SNUG_API void snug_score_deinit(snug_score *score);

/* ---- training -----------------------------------------------------------------------------------
 */

typedef enum snug_train_event {
    SNUG_TRAIN_STEP,     /* a step was made */
    SNUG_TRAIN_VALIDATE, /* a validation batch was run */
    SNUG_TRAIN_EPOCH,    /* an epoch ended, validation included */
    SNUG_TRAIN_SAVED,    /* the run was saved to disk */
    SNUG_TRAIN_ADVICE    /* text says what was noticed */
} snug_train_event;

typedef struct snug_train_progress {
    snug_train_event event;
    int64_t epoch, n_epochs;       /* from 1 */
    uint64_t step, n_steps;        /* in this epoch; n_steps 0: not known */
    uint64_t total_step;           /* optimizer steps of the whole run */
    double loss, accuracy;         /* running means over the epoch; accuracy NaN for regression */
    double val_loss, val_accuracy; /* NaN: no validation */
    double images_per_second;      /* of this epoch, waiting included */
    double seconds;                /* of this epoch so far */
    double eta_seconds;            /* to the end of the run; NaN: not known */
    float learning_rate;
    bool improved;    /* EPOCH: the best so far */
    const char *text; /* ADVICE */
} snug_train_progress;

typedef struct snug_train_options {
    size_t struct_size;
    snug_source train;
    snug_source validation;             /* next NULL: none */
    bool train_lends, validation_lends; /* the source is one of snug_data_source */
    int64_t epochs;                     /* default 10 */
    uint64_t max_steps;                 /* of the whole run; 0: no bound */
    float lr;                           /* default: the optimizer's */
    snug_schedule schedule;             /* default constant */
    int64_t early_stop;      /* epochs without a better validation (else training) loss; 0: off */
    double save_seconds;     /* default 600; negative: never between epochs */
    uint64_t save_steps;     /* also every n steps; 0: off */
    const char *folder;      /* of the run, made if absent; NULL: nothing is written */
    const char *description; /* text kept in every weights file and checkpoint (JSON of the
                              * command, for predict and --resume); NULL: none */
    bool resume;             /* folder holds a run: go on from its last whole save */
    bool (*progress)(void *context, const snug_train_progress *progress); /* false: stop, save */
    void *context;
} snug_train_options;
#define SNUG_TRAIN_DEFAULTS .struct_size = sizeof(snug_train_options)

typedef struct snug_epoch {
    int64_t epoch;                                          /* from 1 */
    double loss, accuracy, val_loss, val_accuracy, seconds; /* NaN: not there */
    float learning_rate;
} snug_epoch;

typedef struct snug_train_result {
    uint64_t steps; /* of the whole run */
    int64_t epochs; /* completed */
    bool interrupted, stopped_early;
    double images_per_second, best_step_seconds, data_wait_fraction; /* of this call */
    int64_t best_epoch;
    size_t n_history;
    snug_epoch *history; /* of the whole run, resumed epochs included */
} snug_train_result;

/* Trains. Into folder: last.ckpt, last.safetensors, best.safetensors, history.csv; each is the old
 * or the new one, whole, at every moment. Room for them is checked first (SNUG_E_IO).
 * SNUG_E_INTERRUPTED when progress said so, SNUG_E_NUMERIC for a loss that is no number (nothing is
 * saved over), or what a source returned. *result is filled in all cases. */
SNUG_API snug_status snug_train(snug_session *session, const snug_train_options *options,
                                snug_train_result *result, snug_error *err);
SNUG_API void snug_train_result_deinit(snug_train_result *result);

/* ---- files ----------------------------------------------------------------------------------- */

/* Weights as .safetensors, names "layer/kernel", Keras' shapes. */
SNUG_API snug_status snug_weights_save(snug_session *session, const char *path,
                                       const char *description, snug_error *err);
/* Every weight of the model must be there with its shape (SNUG_E_INPUT names the first that is
 * not); others in the file are ignored. */
SNUG_API snug_status snug_weights_load(snug_session *session, const char *path, snug_error *err);
/* The description that was saved with a file, "" if there is none; freed with snug_text_free. */
SNUG_API snug_status snug_weights_description(char **out, const char *path, snug_error *err);

#ifdef __cplusplus
}
#endif
#endif
