/* SPDX-License-Identifier: Apache-2.0
 *
 * session.h - a plan with its memory: weights and optimizer state live here, batches are fed,
 * steps are made. Everything is allocated when the session is opened; the arena is exactly what
 * the plan says.
 *
 *     snug_session_open(&s, plan, NULL, &err);
 *     while (!source.next(source.context, &slot, &err) && slot.n > 0) {
 *         snug_session_feed(s, &slot, &err);
 *         snug_session_step(s, &loss, &err);
 *     }
 *     snug_session_free(s);                       // every byte goes back
 *
 * Weights go in and out in Keras' shapes and order (row-major, HWIO kernels).
 * Ownership: the plan (and its model) must outlive the session; memory that the caller brings stays
 * the caller's.  Threads: a session is used by one thread at a time; with threads = 1 in the plan
 * no thread is made.
 */
#ifndef SNUG_SESSION_H
#define SNUG_SESSION_H

#include "snug/data.h"
#include "snug/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct snug_session snug_session;

typedef struct snug_session_options {
    size_t struct_size;
    uint64_t seed;       /* of first weights and dropout; default 1 */
    void *const *memory; /* the caller's slabs (snug_plan_n_slabs pointers, each of
                          * snug_plan_slab_bytes, aligned to 64); default: our own */
    bool profile;        /* seconds of each instruction are kept */
    bool no_rehearsal;   /* the program is not run once on zeros before the weights come in */
} snug_session_options;
#define SNUG_SESSION_DEFAULTS .struct_size = sizeof(snug_session_options)

/* Reserves the arena, makes the kernels, rehearses the step on zeros, draws the first weights.
 * SNUG_E_DOES_NOT_FIT when the plan does not fit its budget, or when after the rehearsal the
 * process has come nearer to it than max(8 MiB, 1 %); SNUG_E_DEVICE, SNUG_E_MEMORY. */
SNUG_API snug_status snug_session_open(snug_session **out, snug_plan *plan,
                                       const snug_session_options *options, snug_error *err);

/* Copies a batch into the staging buffers. slot->n may be less than the plan's batch (the last,
 * short one). SNUG_E_INPUT when a class is out of range or targets are missing. */
SNUG_API snug_status snug_session_feed(snug_session *session, const snug_slot *slot,
                                       snug_error *err);
/* A weight for each class, n of them (copied); NULL: all 1. Needs a plan with sample_weights. */
SNUG_API snug_status snug_session_class_weights(snug_session *session, const float *weights,
                                                size_t n, snug_error *err);
/* Learning rate of the steps to come. Default: the optimizer's. */
SNUG_API void snug_session_set_lr(snug_session *session, float lr);

/* Forward, loss, backward and updates over what was fed. *loss is the mean over the batch before
 * the update. SNUG_E_NUMERIC when it is NaN or infinite: the weights are then those of before the
 * step, and the message names the first operator that made one and the range of its inputs. */
SNUG_API snug_status snug_session_step(snug_session *session, float *loss, snug_error *err);
/* Forward in inference form, with the loss. */
SNUG_API snug_status snug_session_evaluate(snug_session *session, float *loss, snug_error *err);
/* Forward in inference form without a target; outputs are what the model's last layer says. */
SNUG_API snug_status snug_session_predict(snug_session *session, snug_error *err);

/* What the last step, evaluation (logits where the loss takes them) or prediction (the model's
 * output) gave: n samples of snug_session_output_size numbers each. */
SNUG_API snug_status snug_session_outputs(snug_session *session, float *out, snug_error *err);
SNUG_API int64_t snug_session_output_size(const snug_session *session);

/* Optimizer steps made so far. */
SNUG_API uint64_t snug_session_step_number(const snug_session *session);
SNUG_API void snug_session_set_step_number(snug_session *session, uint64_t number);

/* A weight of the model, or (slot 0..) its optimizer state; `values` has the weight's count.
 * SNUG_E_NOT_FOUND when the program has no such state. */
SNUG_API snug_status snug_session_weight(snug_session *session, size_t weight, int slot,
                                         float *values, snug_error *err);
SNUG_API snug_status snug_session_set_weight(snug_session *session, size_t weight, int slot,
                                             const float *values, snug_error *err);
/* Optimizer slots of each trained weight: -1 says `the weight itself` in the calls above. */
SNUG_API int snug_session_n_slots(const snug_session *session);

typedef struct snug_session_numbers {
    uint64_t planned_peak_bytes;  /* the arena's */
    uint64_t measured_peak_bytes; /* highest end of any range handed to an executed kernel */
    uint64_t process_peak_bytes;  /* VmHWM; 0 if the system does not say */
    double last_step_seconds, best_step_seconds; /* of full batches; 0 before the first */
    double rehearsal_seconds; /* of a step on zeros, when the session was opened; 0: none */
    uint64_t allocations;     /* of the library's own code since the session was opened */
} snug_session_numbers;
/* What the session's memory and steps came to so far. */
SNUG_API void snug_session_measure(const snug_session *session, snug_session_numbers *out);

/* Where the time of the last step went (options.profile); rows in order of execution. */
typedef struct snug_profile_row {
    const char *op, *kernel, *layer, *phase;
    double seconds;
} snug_profile_row;
/* *rows of the last step, their number returned: 0 without options.profile. Borrowed until the next
 * step. */
SNUG_API size_t snug_session_profile(const snug_session *session, const snug_profile_row **rows);

/* The plan it was opened from. Borrowed. */
SNUG_API const snug_plan *snug_session_plan(const snug_session *session);
/* NULL-safe. Gives every byte back. */
SNUG_API void snug_session_free(snug_session *session);

/* Host bytes that the library's own code holds now; 0 when everything was freed. */
SNUG_API uint64_t snug_live_bytes(void);

#ifdef __cplusplus
}
#endif
#endif
