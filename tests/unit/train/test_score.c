/* SPDX-License-Identifier: Apache-2.0
 *
 * test_score.c - accuracy, top-k, confusion, precision, recall and F1, and errors of regression, on
 * batches worked by hand.
 */
#include "support/support.h"

#include <math.h>

#include "train/score.h"

static bool near(double a, double b)
{
    return fabs(a - b) < 1e-12;
}

static void three_classes(void **state)
{
    static const float outputs[] = {
        5, 1,  0, /* 0, truth 0 */
        0, 2,  1, /* 1, truth 2 */
        0, -1, 3, /* 2, truth 2 */
        1, 1,  1, /* equal: the first, truth 0 */
        2, 2,  0, /* equal: the first, truth 1 */
        0, 0,  4, /* 2, truth 0 */
    };
    static const int32_t truth[] = {0, 2, 2, 0, 1, 0};
    static const uint64_t confusion[9] = {2, 0, 1, 1, 0, 0, 0, 1, 1};
    snug_error err = SNUG_ERROR_INIT;
    sn_scorer scorer;
    snug_score score;
    assert_ok(sn_scorer_init(&scorer, 3, 3, true, &err), &err);
    sn_scorer_add(&scorer, outputs, truth, NULL, 4, 1);
    sn_scorer_add(&scorer, outputs + 12, truth + 4, NULL, 2, 4);
    sn_scorer_finish(&scorer, &score);
    assert_int_equal(score.n, 6);
    assert_true(near(score.loss, 2));
    assert_true(near(score.accuracy, 3.0 / 6));
    assert_true(near(score.top_k, 1)); /* k is the number of classes */
    assert_memory_equal(score.confusion, confusion, sizeof confusion);
    assert_int_equal(score.classes[0].n, 3);
    assert_int_equal(score.classes[0].predicted, 3);
    assert_int_equal(score.classes[0].correct, 2);
    assert_true(near(score.classes[0].precision, 2.0 / 3));
    assert_true(near(score.classes[0].recall, 2.0 / 3));
    assert_true(near(score.classes[0].f1, 2.0 / 3));
    assert_true(score.classes[1].precision == 0 && score.classes[1].recall == 0);
    assert_true(score.classes[1].f1 == 0);
    assert_true(near(score.classes[2].precision, .5) && near(score.classes[2].recall, .5));
    snug_score_deinit(&score);
    assert_null(score.confusion);
}

/* Within the five best of seven; of equal outputs the first ones are the better. */
static void five_best(void **state)
{
    static const float outputs[] = {7, 6, 5, 4, 3, 2, 1,  /* truth 4: fifth */
                                    7, 6, 5, 4, 3, 2, 1,  /* truth 5: sixth */
                                    1, 1, 1, 1, 1, 1, 1,  /* truth 4: fifth of equals */
                                    1, 1, 1, 1, 1, 1, 1}; /* truth 5 */
    static const int32_t truth[] = {4, 5, 4, 5};
    snug_error err = SNUG_ERROR_INIT;
    sn_scorer scorer;
    snug_score score;
    assert_ok(sn_scorer_init(&scorer, 7, 7, false, &err), &err);
    sn_scorer_add(&scorer, outputs, truth, NULL, 4, 0);
    sn_scorer_finish(&scorer, &score);
    assert_true(near(score.top_k, .5));
    assert_true(score.accuracy == 0);
    assert_null(score.confusion);
    snug_score_deinit(&score);
}

static void one_output(void **state)
{
    static const float outputs[] = {.2f, -.1f, 3, -2}; /* logits */
    static const int32_t truth[] = {1, 1, 1, 0};
    static const float targets[] = {1, 1, 1, 0};
    for (int form = 0; form < 3; form++) {
        snug_error err = SNUG_ERROR_INIT;
        sn_scorer scorer;
        snug_score score;
        assert_ok(sn_scorer_init(&scorer, 1, 2, true, &err), &err);
        scorer.probabilities = form == 2; /* then .2 says class 0 */
        sn_scorer_add(&scorer, outputs, form ? NULL : truth, form ? targets : NULL, 4, 0);
        sn_scorer_finish(&scorer, &score);
        assert_true(near(score.accuracy, form == 2 ? .5 : .75));
        assert_int_equal(score.confusion[2], form == 2 ? 2 : 1); /* ones called zero */
        snug_score_deinit(&score);
    }
}

static void one_hot_rows(void **state)
{
    static const float outputs[] = {5, 1, 0, 0, 2, 1}, targets[] = {.9f, .05f, .05f, .1f, .1f, .8f};
    snug_error err = SNUG_ERROR_INIT;
    sn_scorer scorer;
    snug_score score;
    assert_ok(sn_scorer_init(&scorer, 3, 3, true, &err), &err);
    sn_scorer_add(&scorer, outputs, NULL, targets, 2, 0);
    sn_scorer_finish(&scorer, &score);
    assert_true(near(score.accuracy, .5));
    assert_int_equal(score.confusion[0], 1);
    assert_int_equal(score.confusion[7], 1);
    snug_score_deinit(&score);
}

static void regression(void **state)
{
    static const float outputs[] = {1, 2, 3, 4}, targets[] = {1, 0, 0, 5};
    snug_error err = SNUG_ERROR_INIT;
    sn_scorer scorer;
    snug_score score;
    assert_ok(sn_scorer_init(&scorer, 2, 0, true, &err), &err);
    sn_scorer_add(&scorer, outputs, NULL, targets, 2, 3.5);
    sn_scorer_finish(&scorer, &score);
    assert_true(near(score.mae, 6.0 / 4) && near(score.rmse, sqrt(14.0 / 4)));
    assert_int_equal(score.n_classes, 0);
    assert_null(score.confusion);
    snug_score_deinit(&score);
}

static void nothing_and_much(void **state)
{
    snug_error err = SNUG_ERROR_INIT;
    sn_scorer scorer;
    snug_score score;
    assert_ok(sn_scorer_init(&scorer, 4, 4, true, &err), &err);
    sn_scorer_finish(&scorer, &score); /* no sample at all */
    assert_true(score.n == 0 && score.loss == 0 && score.accuracy == 0);
    snug_score_deinit(&score);
    assert_ok(sn_scorer_init(&scorer, 3000, 3000, true, &err), &err);
    assert_null(scorer.confusion); /* above 2000 classes */
    assert_non_null(scorer.classes);
    sn_scorer_deinit(&scorer);
    sn_ledger_fail_nth(2);
    assert_fails(sn_scorer_init(&scorer, 4, 4, true, &err), SNUG_E_MEMORY, &err);
    sn_ledger_fail_nth(0);
}

static void leaks_nothing(void **state)
{
    assert_no_leak();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(three_classes), cmocka_unit_test(five_best),
        cmocka_unit_test(one_output),    cmocka_unit_test(one_hot_rows),
        cmocka_unit_test(regression),    cmocka_unit_test(nothing_and_much),
        cmocka_unit_test(leaks_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
