/* SPDX-License-Identifier: Apache-2.0
 *
 * trainer.h - a model with its device, plan and session in one, for tests that train; and samples
 * that can be learned, drawn by number.
 *
 *     trainer t;
 *     snug_plan_options o = {SNUG_PLAN_DEFAULTS, .batch = 8};
 *     trainer_open(&t, model, trainer_devices[0], &o, NULL);     // takes the model
 *     toy data = {.n = 100, .size = 64, .classes = 3};
 *     float loss = trainer_step(&t, &data, 0, 8);
 *     trainer_close(&t);
 *
 * What cannot be done fails the running test with its reason.
 * Ownership: a trainer owns its model, device, plan, session and batch; trainer_close frees them.
 * Threads: one at a time.
 */
#ifndef SN_TEST_TRAINER_H
#define SN_TEST_TRAINER_H

#include "backend/backend.h"
#include "plan/plan.h"
#include "snug/session.h"
#include "snug/train.h"
#include "support/support.h"

/* Those that compute: "cpu", and the torture device with layouts of its own. */
enum { TRAINER_N_DEVICES = 2 };
extern const char *const trainer_devices[TRAINER_N_DEVICES];

typedef struct trainer {
    snug_model *model;
    sn_device *device;
    snug_plan *plan;
    snug_session *session;
    snug_slot slot; /* x, classes, y of one batch */
} trainer;

/* "cpu", "null:...", or "torture:..." */
snug_status trainer_device(sn_device **out, const char *spec, int threads, snug_error *err);
/* Also in case of an error the model is the trainer's, and trainer_close is due. */
snug_status trainer_try(trainer *t, snug_model *model, const char *device,
                        const snug_plan_options *options, const snug_session_options *session,
                        snug_error *err);
void trainer_open(trainer *t, snug_model *model, const char *device,
                  const snug_plan_options *options, const snug_session_options *session);
void trainer_close(trainer *t);

/* Samples of `size` numbers. Classes (then targets is 0): a pattern of the class in noise; targets:
 * sums of some of the numbers. As a source it gives them in another order in every epoch. */
typedef struct toy {
    uint64_t n;
    int64_t size, classes, targets;
    bool one_hot;   /* y is [n, classes] */
    uint64_t at;    /* position in the epoch */
    uint64_t epoch; /* from 0 */
    bool has_size;
} toy;
void toy_sample(const toy *data, uint64_t number, float *x, int32_t *classes, float *y);
snug_source toy_source(toy *data);

/* Feeds samples first .. first + n - 1 (modulo data->n). */
void trainer_feed(trainer *t, const toy *data, uint64_t first, int64_t n);
/* Feeds and steps; the loss. */
float trainer_step(trainer *t, const toy *data, uint64_t first, int64_t n);
/* Every weight and every slot, one after the other: *n numbers, to be freed with sn_free. */
float *trainer_state(trainer *t, size_t *n);
/* One weight by its name, or (slot 0..) its state; to be freed with sn_free. n may be NULL. */
float *trainer_weight(trainer *t, const char *name, int slot, size_t *n);
/* Bit for bit; says where they differ first. */
void trainer_same(const float *a, const float *b, size_t n, const char *what);

/* Convolution, BatchNorm, ReLU, pooling, dropout, dense layers: 8 x 8 x 2 in, `classes` out. */
snug_model *trainer_small(int64_t classes, float dropout);

#endif
