/* SPDX-License-Identifier: Apache-2.0
 *
 * test_schedule.c - learning rates over a run, worked by hand; their texts; and history.csv.
 */
#include "support/support.h"

#include <math.h>
#include <string.h>

#include "train/history.h"
#include "train/schedule.h"

static void factor_is(snug_schedule s, uint64_t step, double expected)
{
    double f = snug_schedule_factor(&s, step, 100, 10); /* ten epochs of ten steps */
    if (!(fabs(f - expected) <= 1e-12))
        fail_msg("step %" PRIu64 ": %.15g, expected %.15g", step, f, expected);
}

static void factors(void **state)
{
    const snug_schedule constant = {0}, cosine = {.kind = SNUG_SCHEDULE_COSINE};
    const snug_schedule step = {SNUG_SCHEDULE_STEP, .every = 3, .factor = .5};
    const snug_schedule thirds = {.kind = SNUG_SCHEDULE_STEP};
    const snug_schedule falling = {SNUG_SCHEDULE_EXPONENTIAL, .factor = .81};
    const snug_schedule warm = {SNUG_SCHEDULE_COSINE, .warmup = .2};
    factor_is(constant, 0, 1);
    factor_is(constant, 99, 1);
    factor_is(cosine, 0, 1);
    factor_is(cosine, 25, .5 * (1 + sqrt(.5)));
    factor_is(cosine, 50, .5);
    factor_is(cosine, 100, 0);
    factor_is(cosine, 1000, 0); /* beyond the end it stays there */
    factor_is(step, 29, 1);
    factor_is(step, 30, .5);
    factor_is(step, 89, .25);
    factor_is(step, 90, .125);
    factor_is(thirds, 39, 1); /* a third of ten epochs, rounded up: four */
    factor_is(thirds, 40, .1);
    factor_is(falling, 0, 1);
    factor_is(falling, 5, .9);
    factor_is(falling, 20, .6561);
    factor_is(warm, 0, .05); /* twenty steps up, eighty down */
    factor_is(warm, 9, .5);
    factor_is(warm, 19, 1);
    factor_is(warm, 20, 1);
    factor_is(warm, 60, .5);
    assert_true(isfinite(snug_schedule_factor(&cosine, 3, 0, 0)));
}

static void defaults(void **state)
{
    static const double factors_given[] = {0, -1, NAN};
    for (size_t i = 0; i < SN_LEN(factors_given); i++) {
        snug_schedule plateau = {SNUG_SCHEDULE_PLATEAU, .factor = factors_given[i]};
        sn_schedule_fill(&plateau);
        assert_true(plateau.factor == .1 && plateau.patience == 5 && plateau.min_delta == 1e-4);
        snug_schedule falling = {SNUG_SCHEDULE_EXPONENTIAL, .factor = factors_given[i]};
        sn_schedule_fill(&falling);
        assert_true(falling.factor == .95);
    }
    snug_schedule given = {SNUG_SCHEDULE_PLATEAU, .factor = .5, .patience = 2, .min_delta = .25};
    sn_schedule_fill(&given);
    assert_true(given.factor == .5 && given.patience == 2 && given.min_delta == .25);
}

static void texts(void **state)
{
    snug_error err = SNUG_ERROR_INIT;
    snug_schedule s;
    assert_ok(snug_schedule_parse(&s, "cosine", &err), &err);
    assert_int_equal(s.kind, SNUG_SCHEDULE_COSINE);
    assert_ok(snug_schedule_parse(&s, "step:every=7,factor=0.5,warmup=0.1", &err), &err);
    assert_true(s.kind == SNUG_SCHEDULE_STEP && s.every == 7 && s.factor == .5 && s.warmup == .1);
    assert_ok(snug_schedule_parse(&s, "exponential", &err), &err);
    assert_true(s.factor == .95);
    assert_ok(snug_schedule_parse(&s, "plateau:patience=2,min_delta=0.5,min_lr=1e-5", &err), &err);
    assert_true(s.patience == 2 && s.min_delta == .5 && s.min_lr == 1e-5 && s.factor == .1);
    static const struct {
        const char *text, *says;
    } bad[] = {{"", "cosine"},
               {"cosin", "plateau"},
               {"cosine:factor=2", "warmup"},
               {"cosine:warmup=2", "warmup"},
               {"cosine:warmup", "warmup"},
               {"cosine:=1", "warmup"},
               {"step:every=0", "every"},
               {"step:every=1.5", "every"},
               {"step:factor=nan", "factor"},
               {"step:e=3", "every"},
               {"plateau:patience=-1", "patience"},
               {"exponential:factor=0", "factor"},
               {"step:a_name_longer_than_any_there_is=1", "every"}};
    for (size_t i = 0; i < SN_LEN(bad); i++) {
        if (snug_schedule_parse(&s, bad[i].text, &err) != SNUG_E_USAGE)
            fail_msg("'%s' was taken", bad[i].text);
        assert_contains(err.what, bad[i].says);
    }
}

static void same(double a, double b)
{
    assert_true((isnan(a) && isnan(b)) || fabs(a - b) <= 1e-8 * fabs(a));
}

static void history_goes_and_comes(void **state)
{
    const snug_epoch rows[] = {{1, 2.302585092994, .1, 2.25, .125, 12.5, .01f},
                               {2, 1e-9, 1, NAN, NAN, 3600.25, 1e-6f},
                               {3, 123456.789, NAN, .5, NAN, 0, 0}};
    char folder[SN_TEST_PATH], path[SN_TEST_PATH];
    snug_error err = SNUG_ERROR_INIT;
    snug_epoch *back;
    size_t n;
    test_path(path, test_make_folder(folder), "history.csv");
    assert_ok(sn_history_read(path, 9, &back, &n, &err), &err); /* not there: no rows */
    assert_true(n == 0 && !back);
    assert_ok(sn_history_write(path, rows, 3, &err), &err);
    for (int64_t most = 0; most <= 4; most++) {
        assert_ok(sn_history_read(path, most, &back, &n, &err), &err);
        assert_int_equal(n, SN_MIN(most, 3));
        for (size_t i = 0; i < n; i++) {
            assert_int_equal(back[i].epoch, rows[i].epoch);
            same(rows[i].loss, back[i].loss);
            same(rows[i].accuracy, back[i].accuracy);
            same(rows[i].val_loss, back[i].val_loss);
            same(rows[i].val_accuracy, back[i].val_accuracy);
            same((double)rows[i].learning_rate, (double)back[i].learning_rate);
        }
        sn_free(back);
    }
    test_remove(folder);
}

static void histories_that_are_none(void **state)
{
    static const char *const texts[] = {"h\nx,1,1,1,1,1,1\n", "h\n1,1,1\n", "h\n1,a,1,1,1,1,1\n",
                                        "h\n1,1,1,1,1,1,1\n\n",
                                        "h\n1,1111111111111111111111111111111111111111111,,,,,\n"};
    char folder[SN_TEST_PATH], path[SN_TEST_PATH];
    snug_error err = SNUG_ERROR_INIT;
    snug_epoch *back;
    size_t n;
    test_path(path, test_make_folder(folder), "history.csv");
    for (size_t i = 0; i < SN_LEN(texts); i++) {
        test_write_text(path, texts[i]);
        assert_fails(sn_history_read(path, 9, &back, &n, &err), SNUG_E_INPUT, &err);
        assert_contains(err.what, "line");
        assert_true(n == 0 && !back);
    }
    static const char *const empty[] = {"", "h", "h\n"};
    for (size_t i = 0; i < SN_LEN(empty); i++) {
        test_write_text(path, empty[i]);
        assert_ok(sn_history_read(path, 9, &back, &n, &err), &err);
        assert_true(n == 0 && !back);
    }
    test_remove(folder);
}

static void leaks_nothing(void **state)
{
    assert_no_leak();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(factors),
                                       cmocka_unit_test(defaults),
                                       cmocka_unit_test(texts),
                                       cmocka_unit_test(history_goes_and_comes),
                                       cmocka_unit_test(histories_that_are_none),
                                       cmocka_unit_test(leaks_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
