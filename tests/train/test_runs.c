/* SPDX-License-Identifier: Apache-2.0
 *
 * test_runs.c - whole runs of snug_train over a caller's own source: it learns, stops early, drops
 * the rate on a plateau, stops when told, writes its history, and says what is wrong with a source.
 */
#include "support/trainer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { BATCH = 8, SIZE = 8 * 8 * 2 };
static const snug_optimizer adam = {SNUG_ADAM, .lr = .01f};

static void open_small(trainer *t, int64_t outputs, float dropout, snug_optimizer optimizer,
                       snug_loss loss)
{
    snug_plan_options o = {SNUG_PLAN_DEFAULTS, .batch = BATCH, .threads = 2, .optimizer = optimizer,
                           .loss = loss};
    trainer_open(t, trainer_small(outputs, dropout), "cpu", &o, NULL);
}

static snug_train_result run(trainer *t, const snug_train_options *options)
{
    snug_error err = SNUG_ERROR_INIT;
    snug_train_result result;
    assert_ok(snug_train(t->session, options, &result, &err), &err);
    return result;
}

/* ---- learning -------------------------------------------------------------------------------- */

typedef struct watcher {
    int n[SNUG_TRAIN_ADVICE + 1];
    uint64_t stop_at; /* total step; 0: never */
    int stop_in;      /* the event that stops */
    uint64_t last_step;
} watcher;

static bool watch(void *context, const snug_train_progress *p)
{
    watcher *w = context;
    w->n[p->event]++;
    w->last_step = p->total_step;
    if (p->event == SNUG_TRAIN_STEP) {
        assert_true(p->step >= 1 && p->epoch >= 1 && p->epoch <= p->n_epochs);
        assert_true(p->n_steps == 0 || p->step <= p->n_steps);
        assert_true(isfinite(p->loss) && p->learning_rate > 0);
    }
    return !(w->stop_at && (int)p->event == w->stop_in && p->total_step >= w->stop_at);
}

static void it_learns(void **state)
{
    toy train = {.n = 250, .size = SIZE, .classes = 4, .has_size = true};
    toy held_out = {.n = 60, .size = SIZE, .classes = 4};
    watcher w = {.stop_at = 0};
    trainer t;
    open_small(&t, 4, .1f, adam, (snug_loss){0});
    snug_train_options o = {
        SNUG_TRAIN_DEFAULTS, .train = toy_source(&train), .validation = toy_source(&held_out),
        .epochs = 8,         .progress = watch,           .context = &w};
    snug_train_result r = run(&t, &o);
    assert_int_equal(r.epochs, 8);
    assert_int_equal(r.steps, 8 * 32); /* 31 whole batches and one of 2 */
    assert_int_equal(r.n_history, 8);
    assert_int_equal(w.n[SNUG_TRAIN_STEP], 8 * 32);
    assert_int_equal(w.n[SNUG_TRAIN_VALIDATE], 8 * 8);
    assert_int_equal(w.n[SNUG_TRAIN_EPOCH], 8);
    assert_int_equal(w.n[SNUG_TRAIN_SAVED], 0);
    assert_true(r.history[7].loss < r.history[0].loss / 3);
    if (!(r.history[7].accuracy > .8 && r.history[7].val_accuracy > .9))
        fail_msg("accuracy %.3f, %.3f held out", r.history[7].accuracy, r.history[7].val_accuracy);
    assert_true(r.images_per_second > 0);
    snug_error err = SNUG_ERROR_INIT;
    snug_score score;
    snug_source source = toy_source(&held_out);
    assert_ok(snug_evaluate(t.session, &source, false, &score, NULL, NULL, &err), &err);
    assert_int_equal(score.n, 60);
    assert_true(score.loss == r.history[7].val_loss);
    assert_true(score.accuracy == r.history[7].val_accuracy);
    uint64_t all = 0, right = 0;
    for (int i = 0; i < 16; i++) {
        all += score.confusion[i];
        right += i % 5 == 0 ? score.confusion[i] : 0;
    }
    assert_int_equal(all, 60);
    assert_true((double)right / 60 == score.accuracy);
    snug_score_deinit(&score);
    snug_train_result_deinit(&r);
    trainer_close(&t);
}

/* Targets given as one-hot rows are scored as classes; the run is the same. */
static void one_hot_is_scored(void **state)
{
    double loss[2], accuracy[2], val[2];
    for (int form = 0; form < 2; form++) {
        toy data = {.n = 80, .size = SIZE, .classes = 4, .one_hot = form};
        toy again = data;
        trainer t;
        open_small(&t, 4, 0, adam, (snug_loss){.one_hot = form});
        snug_train_options o = {SNUG_TRAIN_DEFAULTS, .train = toy_source(&data),
                                .validation = toy_source(&again), .epochs = 2};
        snug_train_result r = run(&t, &o);
        loss[form] = r.history[1].loss;
        accuracy[form] = r.history[1].accuracy;
        val[form] = r.history[1].val_accuracy;
        snug_train_result_deinit(&r);
        trainer_close(&t);
    }
    assert_true(fabs(loss[0] - loss[1]) < 1e-4);
    assert_true(accuracy[0] > .3 && accuracy[0] == accuracy[1]);
    assert_true(val[0] > .3 && val[0] == val[1]);
}

static void regression_has_errors_and_no_accuracy(void **state)
{
    toy data = {.n = 100, .size = SIZE, .targets = 3};
    snug_error err = SNUG_ERROR_INIT;
    trainer t;
    open_small(&t, 3, 0, adam, (snug_loss){.kind = SNUG_LOSS_MSE});
    snug_source source = toy_source(&data);
    snug_train_options o = {SNUG_TRAIN_DEFAULTS, .train = source, .validation = source,
                            .epochs = 3};
    snug_train_result r = run(&t, &o);
    assert_true(r.history[2].loss < r.history[0].loss);
    assert_true(isnan(r.history[2].accuracy) && isnan(r.history[2].val_accuracy));
    snug_score score;
    assert_ok(snug_evaluate(t.session, &source, false, &score, NULL, NULL, &err), &err);
    assert_int_equal(score.n_classes, 0);
    assert_true(fabs(score.rmse * score.rmse - score.loss) < 1e-5 * score.loss);
    assert_true(score.mae > 0 && score.mae <= score.rmse);
    snug_score_deinit(&score);
    snug_train_result_deinit(&r);
    trainer_close(&t);
}

/* ---- rates ----------------------------------------------------------------------------------- */

/* Nothing is learned at this rate: the watched loss is the same in every epoch. */
static const snug_optimizer idle = {SNUG_SGD, .lr = 1e-30f};

static void early_stop_counts_bad_epochs(void **state)
{
    toy train = {.n = 20, .size = SIZE, .classes = 4}, held_out = train;
    trainer t;
    open_small(&t, 4, 0, idle, (snug_loss){0});
    snug_model_set_trainable(t.model, "bn", true, NULL);
    snug_train_options o = {SNUG_TRAIN_DEFAULTS, .train = toy_source(&train),
                            .validation = toy_source(&held_out), .epochs = 50, .early_stop = 3};
    snug_train_result r = run(&t, &o);
    assert_true(r.stopped_early);
    assert_int_equal(r.epochs, r.best_epoch + 3);
    assert_int_equal(r.n_history, r.epochs);
    for (size_t i = 0; i < r.n_history; i++)
        assert_true(r.history[r.best_epoch - 1].val_loss <= r.history[i].val_loss);
    snug_train_result_deinit(&r);
    trainer_close(&t);
}

static void the_rate_falls_on_a_plateau(void **state)
{
    toy train = {.n = 16, .size = SIZE, .classes = 4};
    trainer t;
    open_small(&t, 4, 0, idle, (snug_loss){0});
    snug_train_options o = {SNUG_TRAIN_DEFAULTS, .train = toy_source(&train), .epochs = 9,
                            .lr = 2e-30f,
                            .schedule = {SNUG_SCHEDULE_PLATEAU, .factor = .5, .patience = 2,
                                         .min_delta = 10, .min_lr = 3e-31}};
    snug_train_result r = run(&t, &o);
    /* The first epoch is the best one; two bad ones are seen after epochs 3, 5 and 7. */
    static const float rates[] = {2e-30f, 2e-30f, 2e-30f, 1e-30f, 1e-30f,
                                  5e-31f, 5e-31f, 3e-31f, 3e-31f};
    for (size_t i = 0; i < SN_LEN(rates); i++)
        assert_memory_equal(&r.history[i].learning_rate, &rates[i], sizeof(float));
    snug_train_result_deinit(&r);
    trainer_close(&t);
}

/* The last rate of each epoch, with and without a source that knows its size. */
static void schedules_reach_the_steps(void **state)
{
    for (int known = 0; known < 2; known++) {
        toy train = {.n = 4 * BATCH, .size = SIZE, .classes = 4, .has_size = known};
        trainer t;
        open_small(&t, 4, 0, idle, (snug_loss){0});
        snug_train_options o = {SNUG_TRAIN_DEFAULTS, .train = toy_source(&train), .epochs = 4,
                                .schedule = {.kind = SNUG_SCHEDULE_COSINE}};
        snug_train_result r = run(&t, &o);
        for (int i = 0; i < 4; i++) {
            double at = known ? (4.0 * i + 3) / 16 : i / 4.0;
            double rate = 1e-30 * .5 * (1 + cos(3.14159265358979 * at));
            assert_true(fabs((double)r.history[i].learning_rate - rate) < 1e-36);
        }
        snug_train_result_deinit(&r);
        trainer_close(&t);
        open_small(&t, 4, 0, idle, (snug_loss){0}); /* a second run goes on where the first ended */
        o.schedule = (snug_schedule){SNUG_SCHEDULE_STEP, .every = 2, .factor = .1};
        r = run(&t, &o);
        assert_true(fabs((double)r.history[1].learning_rate - 1e-30) < 1e-36);
        assert_true(fabs((double)r.history[2].learning_rate - 1e-31) < 1e-36);
        snug_train_result_deinit(&r);
        trainer_close(&t);
    }
}

/* ---- files ----------------------------------------------------------------------------------- */

static void a_run_leaves_its_files(void **state)
{
    char folder[SN_TEST_PATH], path[SN_TEST_PATH], best[SN_TEST_PATH];
    toy train = {.n = 30, .size = SIZE, .classes = 4},
        held_out = {.n = 9, .size = SIZE, .classes = 4};
    watcher w = {.stop_at = 0};
    snug_error err = SNUG_ERROR_INIT;
    trainer t;
    test_make_folder(folder);
    test_path(path, folder, "run");
    open_small(&t, 4, 0, adam, (snug_loss){0});
    snug_train_options o = {SNUG_TRAIN_DEFAULTS,
                            .train = toy_source(&train),
                            .validation = toy_source(&held_out),
                            .epochs = 3,
                            .folder = path,
                            .description = "{\"a\": \"b\"}",
                            .save_steps = 3,
                            .progress = watch,
                            .context = &w};
    snug_train_result r = run(&t, &o);
    assert_int_equal(w.n[SNUG_TRAIN_SAVED], 4); /* steps 3, 6, 9, 12 of 12 */
    assert_int_equal(test_count_entries(path), 4);
    static const char *const names[] = {"last.ckpt", "last.safetensors", "best.safetensors",
                                        "history.csv"};
    for (size_t i = 0; i < SN_LEN(names); i++)
        assert_true(test_exists(test_path(best, path, names[i])));
    char *csv = test_read(test_path(best, path, "history.csv"), NULL), line[200];
    assert_contains(csv, "epoch,loss,accuracy,val_loss,val_accuracy,seconds,learning_rate\n");
    snprintf(line, sizeof line, "\n3,%.9g,%.9g,%.9g,%.9g,", r.history[2].loss,
             r.history[2].accuracy, r.history[2].val_loss, r.history[2].val_accuracy);
    assert_contains(csv, line);
    sn_free(csv);
    char *description;
    assert_ok(
        snug_weights_description(&description, test_path(best, path, "best.safetensors"), &err),
        &err);
    assert_string_equal(description, "{\"a\": \"b\"}");
    snug_text_free(description);
    /* the best weights give the best loss */
    snug_score score;
    assert_ok(snug_weights_load(t.session, best, &err), &err);
    assert_ok(snug_evaluate(t.session, &o.validation, false, &score, NULL, NULL, &err), &err);
    assert_true(score.loss == r.history[r.best_epoch - 1].val_loss);
    snug_score_deinit(&score);
    snug_train_result_deinit(&r);
    trainer_close(&t);
    test_remove(folder);
}

/* ---- what goes wrong, and what is asked for ---------------------------------------------------
 */

static void told_to_stop(void **state)
{
    static const struct {
        uint64_t step;
        int event;
    } stops[] = {{5, SNUG_TRAIN_STEP}, {8, SNUG_TRAIN_VALIDATE}, {4, SNUG_TRAIN_EPOCH}};
    for (size_t i = 0; i < SN_LEN(stops); i++) {
        toy train = {.n = 4 * BATCH, .size = SIZE, .classes = 4}, held_out = train;
        watcher w = {.stop_at = stops[i].step, .stop_in = stops[i].event};
        snug_error err = SNUG_ERROR_INIT;
        snug_train_result r;
        trainer t;
        open_small(&t, 4, 0, adam, (snug_loss){0});
        snug_train_options o = {
            SNUG_TRAIN_DEFAULTS, .train = toy_source(&train), .validation = toy_source(&held_out),
            .epochs = 3,         .progress = watch,           .context = &w};
        assert_fails(snug_train(t.session, &o, &r, &err), SNUG_E_INTERRUPTED, &err);
        assert_true(r.interrupted);
        assert_int_equal(r.steps, stops[i].step);
        snug_train_result_deinit(&r);
        trainer_close(&t);
    }
}

static void bounded_by_steps(void **state)
{
    toy train = {.n = 4 * BATCH, .size = SIZE, .classes = 4};
    trainer t;
    open_small(&t, 4, 0, adam, (snug_loss){0});
    snug_train_options o = {SNUG_TRAIN_DEFAULTS, .train = toy_source(&train), .epochs = 9,
                            .max_steps = 6};
    snug_train_result r = run(&t, &o);
    assert_int_equal(r.steps, 6);
    assert_int_equal(r.epochs, 1);
    assert_int_equal(r.n_history, 2); /* the second one in part */
    snug_train_result_deinit(&r);
    trainer_close(&t);
}

static snug_status broken_next(void *context, snug_slot *slot, snug_error *err)
{
    int *left = context;
    if (--*left < 0)
        return sn_fail(err, SNUG_E_IO, "the disk is gone");
    memset(slot->x, 0, (size_t)slot->capacity * SIZE * sizeof(float));
    for (int64_t i = 0; i < slot->capacity; i++)
        slot->classes[i] = *left == 0 ? 9 : 1;
    slot->n = slot->capacity;
    slot->next_position = 1;
    return SNUG_OK;
}

static snug_status any_reset(void *context, uint64_t epoch, uint64_t first, snug_error *err)
{
    return SNUG_OK;
}

static snug_status bad_reset(void *context, uint64_t epoch, uint64_t first, snug_error *err)
{
    return sn_fail(err, SNUG_E_INPUT, "no such epoch");
}

static void sources_that_fail(void **state)
{
    snug_error err = SNUG_ERROR_INIT;
    snug_train_result r;
    toy empty = {.n = 0, .size = SIZE, .classes = 4};
    int left = 3;
    trainer t;
    open_small(&t, 4, 0, adam, (snug_loss){0});
    snug_train_options o = {SNUG_TRAIN_DEFAULTS, .train = toy_source(&empty), .epochs = 2};
    assert_fails(snug_train(t.session, &o, &r, &err), SNUG_E_INPUT, &err);
    assert_contains(err.what, "no sample");
    o.train = (snug_source){.context = &left, .next = broken_next, .reset = any_reset};
    assert_fails(snug_train(t.session, &o, &r, &err), SNUG_E_INPUT, &err); /* class 9 of 4 */
    assert_int_equal(r.steps, 2);
    left = 1;
    o.train.reset = bad_reset;
    assert_fails(snug_train(t.session, &o, &r, &err), SNUG_E_INPUT, &err);
    assert_contains(err.what, "no such epoch");
    left = 0;
    o.train.reset = any_reset;
    assert_fails(snug_train(t.session, &o, &r, &err), SNUG_E_IO, &err);
    assert_contains(err.what, "the disk is gone");
    o.train.next = NULL;
    assert_fails(snug_train(t.session, &o, &r, &err), SNUG_E_USAGE, &err);
    o.train = toy_source(&empty);
    o.resume = true;
    assert_fails(snug_train(t.session, &o, &r, &err), SNUG_E_USAGE, &err);
    assert_contains(err.what, "folder");
    trainer_close(&t);
}

static void plans_for_less(void **state)
{
    snug_error err = SNUG_ERROR_INIT;
    toy data = {.n = 20, .size = SIZE, .classes = 4};
    snug_source source = toy_source(&data);
    snug_train_result r;
    snug_score score;
    for (int purpose = SNUG_PLAN_EVALUATE; purpose <= SNUG_PLAN_PREDICT; purpose++) {
        trainer t;
        snug_plan_options o = {SNUG_PLAN_DEFAULTS, .batch = BATCH,
                               .purpose = (snug_plan_purpose)purpose};
        trainer_open(&t, trainer_small(4, .2f), "cpu", &o, NULL);
        snug_train_options to = {SNUG_TRAIN_DEFAULTS, .train = source};
        assert_fails(snug_train(t.session, &to, &r, &err), SNUG_E_USAGE, &err);
        trainer_feed(&t, &data, 0, BATCH);
        assert_fails(snug_session_step(t.session, NULL, &err), SNUG_E_USAGE, &err);
        assert_ok(snug_session_predict(t.session, &err), &err);
        snug_status s = snug_evaluate(t.session, &source, false, &score, NULL, NULL, &err);
        assert_int_equal(s, purpose == SNUG_PLAN_EVALUATE ? SNUG_OK : SNUG_E_USAGE);
        snug_score_deinit(&score);
        assert_int_equal(snug_session_n_slots(t.session), 0);
        trainer_close(&t);
    }
}

static void leaks_nothing(void **state)
{
    assert_no_leak();
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(it_learns),
                                       cmocka_unit_test(one_hot_is_scored),
                                       cmocka_unit_test(regression_has_errors_and_no_accuracy),
                                       cmocka_unit_test(early_stop_counts_bad_epochs),
                                       cmocka_unit_test(the_rate_falls_on_a_plateau),
                                       cmocka_unit_test(schedules_reach_the_steps),
                                       cmocka_unit_test(a_run_leaves_its_files),
                                       cmocka_unit_test(told_to_stop),
                                       cmocka_unit_test(bounded_by_steps),
                                       cmocka_unit_test(sources_that_fail),
                                       cmocka_unit_test(plans_for_less),
                                       cmocka_unit_test(leaks_nothing)};
    cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
