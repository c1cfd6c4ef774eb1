/* SPDX-License-Identifier: Apache-2.0
 *
 * fit.c - the training loop.
 *
 * Invariants:
 *  1. between two steps `state` says exactly where the run stands: saving it and resuming gives the
 *     bits of a run that was never stopped;
 *  2. validation changes no weight and no random number of training.
 */
#include "train/fit.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "train/schedule.h"

#define CHANCE_STEPS 300

/* ---- batches ---- */

/* A batch from the source: lent by it, or written by it into the session's own staging. */
static snug_status next_batch(snug_session *session, const snug_source *source, bool lends,
                              snug_slot *slot, snug_error *err)
{
    memset(slot, 0, sizeof *slot);
    const sn_program *p = session->programs[SN_GRAPH_TRAIN] ? session->programs[SN_GRAPH_TRAIN]
                                                            : session->programs[SN_GRAPH_EVALUATE];
    slot->capacity = p->batch;
    if (!lends) {
        void *(*address)(sn_memory *, const sn_view *) = session->backend->host_address;
        if (!address) {
            return sn_fail(err, SNUG_E_USAGE,
                           "a source of its own needs a device whose memory is "
                           "the host's");
        }
        slot->x = address(session->memory, &p->x);
        slot->sample_size = sn_view_sample_size(&p->x);
        if (p->target.buffer != UINT32_MAX && p->target.desc.dtype == SN_I32) {
            slot->classes = address(session->memory, &p->target);
        } else if (p->target.buffer != UINT32_MAX) {
            slot->y = address(session->memory, &p->target);
            slot->target_size = sn_view_sample_size(&p->target);
        }
    }
    return source->next(source->context, slot, err);
}

/* ---- evaluation ---- */

/* 0: the outputs are numbers rather than one of so many classes (regression, several labels). */
static int64_t n_classes(const snug_session *session)
{
    const snug_loss *loss = snug_plan_loss(session->plan);
    int64_t n_outputs = session->output_size;
    bool one_of = loss->kind == SNUG_LOSS_SOFTMAX ||
                  (loss->kind == SNUG_LOSS_SIGMOID && (n_outputs == 1 || !loss->one_hot));
    return one_of ? SN_MAX(n_outputs, 2) : 0;
}

snug_status snug_evaluate(snug_session *session, const snug_source *source, bool source_lends,
                          snug_score *out, bool (*progress)(void *context, uint64_t n_done),
                          void *context, snug_error *err)
{
    memset(out, 0, sizeof *out);
    if (!session->programs[SN_GRAPH_EVALUATE]) {
        return sn_fail(err, SNUG_E_USAGE, "the session's plan is for prediction alone");
    }
    if (!source->next || !source->reset) {
        return sn_fail(err, SNUG_E_USAGE, "the source lacks next or reset");
    }
    int64_t n_outputs = snug_session_output_size(session);
    int64_t batch = snug_plan_numbers(session->plan)->batch;
    sn_scorer scorer;
    snug_status s = sn_scorer_init(&scorer, n_outputs, n_classes(session), true, err);
    if (s) {
        return s;
    }
    float *outputs = sn_alloc_array(SN_TAG_TRAIN, (size_t)(batch * n_outputs), sizeof *outputs);
    s = outputs ? source->reset(source->context, 0, 0, err)
                : sn_fail(err, SNUG_E_MEMORY, "no memory for a batch of outputs");
    while (!s) {
        snug_slot slot;
        float loss = 0;
        s = next_batch(session, source, source_lends, &slot, err);
        if (s || slot.n == 0) {
            break;
        }
        s = snug_session_feed(session, &slot, err);
        s = s ? s : snug_session_evaluate(session, &loss, err);
        s = s ? s : snug_session_outputs(session, outputs, err);
        if (!s) {
            sn_scorer_add(&scorer, outputs, slot.classes, slot.y, slot.n, (double)loss);
            if (progress && !progress(context, scorer.n)) {
                s = sn_fail(err, SNUG_E_INTERRUPTED, "stopped after %" PRIu64 " samples", scorer.n);
            }
        }
    }
    sn_free(outputs);
    if (s) {
        sn_scorer_deinit(&scorer);
        return s;
    }
    sn_scorer_finish(&scorer, out);
    return SNUG_OK;
}

/* ---- progress ---- */

static double running_loss(const sn_fit *fit)
{
    return fit->state.epoch_loss_sum / (double)SN_MAX(fit->state.epoch_n, 1);
}

static double running_accuracy(const sn_fit *fit)
{
    return fit->regression
               ? NAN
               : (double)fit->state.epoch_correct / (double)SN_MAX(fit->state.epoch_n, 1);
}

static double eta_seconds(const sn_fit *fit)
{
    if (fit->n_steps == 0 || fit->state.step == 0 || fit->n_images == 0) {
        return NAN;
    }
    uint64_t batch = (uint64_t)snug_plan_numbers(fit->session->plan)->batch;
    double per_step = (sn_now() - fit->run_start) / ((double)fit->n_images / (double)batch);
    uint64_t end =
        fit->options->max_steps ? SN_MIN(fit->options->max_steps, fit->n_steps) : fit->n_steps;
    return per_step * (double)(end - SN_MIN(end, fit->state.step));
}

static void report(sn_fit *fit, snug_train_event event, const snug_epoch *epoch, bool improved,
                   const char *text)
{
    if (!fit->options->progress) {
        return;
    }
    double seconds = fit->state.epoch_seconds;
    snug_train_progress p = {
        .event = event,
        .epoch = event == SNUG_TRAIN_EPOCH ? epoch->epoch : fit->state.epoch + 1,
        .n_epochs = fit->options->epochs,
        .step = fit->epoch_step,
        .n_steps = fit->steps_per_epoch,
        .total_step = fit->state.step,
        .loss = epoch ? epoch->loss : running_loss(fit),
        .accuracy = epoch ? epoch->accuracy : running_accuracy(fit),
        .val_loss = epoch ? epoch->val_loss : NAN,
        .val_accuracy = epoch ? epoch->val_accuracy : NAN,
        .images_per_second =
            fit->train_seconds > 0 ? (double)fit->n_images / fit->train_seconds : 0,
        .seconds = epoch ? epoch->seconds : seconds,
        .eta_seconds = eta_seconds(fit),
        .learning_rate = fit->lr,
        .improved = improved,
        .text = text};
    if (!fit->options->progress(fit->options->context, &p)) {
        fit->stop = true;
    }
}

static bool validation_progress(void *context, uint64_t n_done)
{
    sn_fit *fit = context;
    (void)n_done;
    report(fit, SNUG_TRAIN_VALIDATE, NULL, false, NULL);
    return !fit->stop;
}

/* A run that has learned nothing so far: once, in one line. */
static void look_for_chance(sn_fit *fit)
{
    if (fit->advised || fit->regression || fit->state.step < CHANCE_STEPS ||
        fit->epoch_step < 100) {
        return;
    }
    double k = (double)fit->n_classes, chance = log(k);
    if (fabs(running_loss(fit) - chance) > .02 * chance || running_accuracy(fit) > 1.2 / k) {
        return;
    }
    char text[256];
    snprintf(text, sizeof text,
             "after %" PRIu64 " steps the loss is still log(%.0f) = %.3f, what guessing gives: try "
             "another learning rate (--lr %.2g or %.2g), --optimizer adam, or look at the labels",
             fit->state.step, k, chance, (double)fit->lr / 10, (double)fit->lr * 10);
    fit->advised = true;
    report(fit, SNUG_TRAIN_ADVICE, NULL, false, text);
}

/* ---- the loop ---- */

static double schedule_factor(const sn_fit *fit)
{
    const snug_schedule *schedule = &fit->options->schedule;
    bool by_epoch =
        schedule->kind == SNUG_SCHEDULE_STEP || schedule->kind == SNUG_SCHEDULE_EXPONENTIAL;
    if (fit->n_steps > 0 && (fit->steps_per_epoch > 0 || !by_epoch)) {
        return snug_schedule_factor(schedule, fit->state.step, fit->n_steps, fit->steps_per_epoch);
    }
    /* The length of an epoch is not known: epochs are counted instead of steps. */
    return snug_schedule_factor(schedule, (uint64_t)fit->state.epoch,
                                (uint64_t)fit->options->epochs, 1);
}

static float learning_rate(const sn_fit *fit)
{
    double factor = schedule_factor(fit);
    double base = fit->options->lr > 0 ? (double)fit->options->lr
                                       : (double)snug_plan_optimizer(fit->session->plan)->lr;
    double lr = base * factor;
    if (fit->options->schedule.kind == SNUG_SCHEDULE_PLATEAU) {
        lr = SN_MAX(lr * fit->state.plateau_factor, fit->options->schedule.min_lr);
    }
    return (float)lr;
}

static snug_status one_step(sn_fit *fit, const snug_slot *slot, snug_error *err)
{
    float loss;
    fit->lr = learning_rate(fit);
    snug_session_set_lr(fit->session, fit->lr);
    snug_status s = snug_session_feed(fit->session, slot, err);
    s = s ? s : snug_session_step(fit->session, &loss, err);
    s = s ? s : snug_session_outputs(fit->session, fit->outputs, err);
    if (s) {
        return s;
    }
    sn_scorer scorer = {.n_outputs = fit->n_outputs, .n_classes = fit->n_classes};
    sn_scorer_add(&scorer, fit->outputs, slot->classes, slot->y, slot->n, (double)loss);
    fit->state.step++;
    fit->epoch_step++;
    fit->state.next_position = slot->next_position;
    fit->state.epoch_n += scorer.n;
    fit->state.epoch_correct += scorer.n_correct;
    fit->state.epoch_loss_sum += scorer.loss_sum;
    fit->n_images += (uint64_t)slot->n;
    return SNUG_OK;
}

static bool time_to_save(const sn_fit *fit)
{
    const snug_train_options *o = fit->options;
    double every = o->save_seconds == 0 ? 600 : o->save_seconds;
    return (o->save_steps && fit->state.step % o->save_steps == 0) ||
           (every > 0 && sn_now() - fit->last_save >= every);
}

/* The rest of the epoch in work; *ended false: stopped or the bound on steps was reached. */
static snug_status train_epoch(sn_fit *fit, bool *ended, snug_error *err)
{
    const snug_train_options *o = fit->options;
    snug_status s =
        o->train.reset(o->train.context, (uint64_t)fit->state.epoch, fit->state.next_position, err);
    *ended = false;
    while (!s && !fit->stop) {
        if (o->max_steps && fit->state.step >= o->max_steps) {
            return SNUG_OK;
        }
        snug_slot slot;
        double start = sn_now();
        s = next_batch(fit->session, &o->train, o->train_lends, &slot, err);
        double got = sn_now();
        if (s || slot.n == 0) {
            *ended = !s;
            return s;
        }
        s = one_step(fit, &slot, err);
        double seconds = sn_now() - start;
        fit->wait_seconds += got - start;
        fit->train_seconds += seconds;
        fit->state.epoch_seconds += seconds;
        if (!s) {
            look_for_chance(fit);
            report(fit, SNUG_TRAIN_STEP, NULL, false, NULL);
            if (time_to_save(fit)) {
                s = sn_fit_save(fit, false, false, err);
                report(fit, SNUG_TRAIN_SAVED, NULL, false, NULL);
            }
        }
    }
    return s;
}

static snug_status validate(sn_fit *fit, snug_epoch *epoch, snug_error *err)
{
    const snug_train_options *o = fit->options;
    if (!o->validation.next) {
        return SNUG_OK;
    }
    snug_score score;
    snug_status s = snug_evaluate(fit->session, &o->validation, o->validation_lends, &score,
                                  validation_progress, fit, err);
    if (!s) {
        epoch->val_loss = score.loss;
        epoch->val_accuracy = fit->regression ? NAN : score.accuracy;
        snug_score_deinit(&score);
    }
    return s;
}

/* Best, plateau and early stop, from the loss that is watched. True: it improved. */
static bool judge_epoch(sn_fit *fit, const snug_epoch *epoch)
{
    double watched = isnan(epoch->val_loss) ? epoch->loss : epoch->val_loss;
    bool improved = watched < fit->state.best;
    if (improved) {
        fit->state.best = watched;
        fit->state.best_epoch = epoch->epoch;
        fit->state.bad_epochs = 0;
    } else {
        fit->state.bad_epochs++;
    }
    snug_schedule schedule = fit->options->schedule;
    sn_schedule_fill(&schedule);
    if (watched < fit->state.plateau_best - schedule.min_delta) {
        fit->state.plateau_best = watched;
        fit->state.plateau_bad = 0;
    } else if (++fit->state.plateau_bad >= schedule.patience) {
        fit->state.plateau_bad = 0;
        fit->state.plateau_factor *= schedule.factor;
    }
    return improved;
}

static void begin_next_epoch(sn_fit *fit)
{
    fit->state.epoch++;
    fit->state.next_position = 0;
    fit->state.epoch_n = fit->state.epoch_correct = 0;
    fit->state.epoch_loss_sum = fit->state.epoch_seconds = 0;
    fit->epoch_step = 0;
}

static snug_status end_epoch(sn_fit *fit, bool whole, snug_error *err)
{
    snug_epoch epoch = {.epoch = fit->state.epoch + 1,
                        .loss = running_loss(fit),
                        .accuracy = running_accuracy(fit),
                        .val_loss = NAN,
                        .val_accuracy = NAN,
                        .seconds = fit->state.epoch_seconds,
                        .learning_rate = fit->lr};
    snug_status s = validate(fit, &epoch, err);
    if (s) {
        return s;
    }
    if (!SN_VEC_PUSH(SN_TAG_TRAIN, &fit->history, epoch)) {
        return sn_fail(err, SNUG_E_MEMORY, "no memory for the history");
    }
    bool improved = false;
    if (whole) {
        improved = judge_epoch(fit, &epoch);
        begin_next_epoch(fit);
    }
    s = sn_fit_save(fit, true, improved || !fit->state.best_epoch, err);
    report(fit, SNUG_TRAIN_EPOCH, &epoch, improved, NULL);
    return s;
}

static snug_status loop(sn_fit *fit, snug_error *err)
{
    const snug_train_options *o = fit->options;
    snug_status s = SNUG_OK;
    while (!s && fit->state.epoch < o->epochs) {
        bool ended;
        if (o->early_stop > 0 && fit->state.bad_epochs >= o->early_stop) {
            fit->result->stopped_early = true;
            break;
        }
        s = train_epoch(fit, &ended, err);
        if (s) {
            break;
        }
        if (fit->stop && !ended) {
            break;
        }
        if (ended && fit->state.epoch_n == 0) {
            return sn_fail(err, SNUG_E_INPUT, "the training source gave no sample");
        }
        if (fit->state.epoch_n > 0) {
            s = end_epoch(fit, ended, err);
        }
        if (!ended || fit->stop) {
            break;
        }
    }
    bool stopped = fit->stop && (s == SNUG_OK || s == SNUG_E_INTERRUPTED);
    if (stopped && fit->state.epoch < o->epochs) {
        s = sn_fit_save(fit, false, false, err);
        fit->result->interrupted = true;
        return s ? s
                 : sn_fail(err, SNUG_E_INTERRUPTED,
                           "stopped in epoch %" PRId64 " after step %" PRIu64 "%s",
                           fit->state.epoch + 1, fit->state.step,
                           o->folder ? ", everything is saved" : "");
    }
    return s;
}

static snug_status begin(sn_fit *fit, snug_error *err)
{
    const snug_train_options *o = fit->options;
    snug_session *session = fit->session;
    if (!session->programs[SN_GRAPH_TRAIN]) {
        return sn_fail(err, SNUG_E_USAGE, "the session's plan is not for training");
    }
    if (!o->train.next || !o->train.reset) {
        return sn_fail(err, SNUG_E_USAGE, "the training source lacks next or reset");
    }
    int64_t batch = snug_plan_numbers(session->plan)->batch;
    fit->n_outputs = snug_session_output_size(session);
    fit->n_classes = n_classes(session);
    fit->regression = fit->n_classes == 0;
    fit->outputs = sn_alloc_array(SN_TAG_TRAIN, (size_t)(batch * fit->n_outputs), sizeof(float));
    if (!fit->outputs) {
        return sn_fail(err, SNUG_E_MEMORY, "no memory for a batch of outputs");
    }
    uint64_t size = o->train.size ? o->train.size(o->train.context) : 0;
    fit->steps_per_epoch = (size + (uint64_t)batch - 1) / (uint64_t)batch;
    fit->n_steps = fit->steps_per_epoch * (uint64_t)o->epochs;
    if (fit->n_steps == 0) {
        fit->n_steps = o->max_steps;
    }
    fit->state = (sn_run_state){.best = INFINITY,
                                .plateau_best = INFINITY,
                                .plateau_factor = 1,
                                .seed = session->seed,
                                .step = session->step.number};
    snug_status s = sn_fit_check_room(fit, err);
    if (!s && o->resume) {
        s = o->folder ? sn_fit_resume(fit, err)
                      : sn_fail(err, SNUG_E_USAGE, "resuming needs the run's folder");
    }
    fit->epoch_step = (fit->state.epoch_n + (uint64_t)batch - 1) / (uint64_t)batch;
    fit->run_start = fit->last_save = sn_now();
    return s;
}

snug_status snug_train(snug_session *session, const snug_train_options *options,
                       snug_train_result *result, snug_error *err)
{
    memset(result, 0, sizeof *result);
    snug_train_options o = *options;
    o.epochs = o.epochs ? o.epochs : 10;
    sn_fit fit = {.session = session, .options = &o, .result = result};
    snug_status s = begin(&fit, err);
    s = s ? s : loop(&fit, err);
    snug_session_numbers numbers;
    snug_session_measure(session, &numbers);
    result->steps = fit.state.step;
    result->epochs = fit.state.epoch;
    result->best_epoch = fit.state.best_epoch;
    result->best_step_seconds = numbers.best_step_seconds;
    if (fit.train_seconds > 0) {
        result->images_per_second = (double)fit.n_images / fit.train_seconds;
        result->data_wait_fraction = fit.wait_seconds / fit.train_seconds;
    }
    result->history = fit.history.at;
    result->n_history = fit.history.n;
    sn_free(fit.outputs);
    return s;
}

void snug_train_result_deinit(snug_train_result *result)
{
    sn_free(result->history);
    result->history = NULL;
    result->n_history = 0;
}
