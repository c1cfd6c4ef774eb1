/* SPDX-License-Identifier: Apache-2.0
 *
 * test_measured.c - the plan is the truth on the CPU: the arena's planned peak is, to the byte, the
 * highest end of any range handed to a kernel; steps allocate nothing; what is found again rather
 * than kept changes no bit.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/ledger.h"
#include "base/rng.h"
#include "plan/plan.h"
#include "snug/session.h"

enum { CLASSES = 10 };

typedef struct case_row {
    const char *model;
    int64_t side;
    bool is_small; /* all batches, else two of them */
} case_row;

static const case_row cases[] = {{"mlp", 28, true},
                                 {"cnn", 28, true},
                                 {"squeezenet", 48, true},
                                 {"mobilenet", 32, true},
                                 {"mobilenetv2", 32, false},
                                 {"vgg16:width=0.25,dense=64", 32, false},
                                 {"resnet50:width=0.25", 32, false}};

static void feed(snug_session *session, const snug_model *model, int64_t batch, int64_t n,
                 uint64_t seed)
{
    int64_t shape[4];
    int rank = snug_model_input_shape(model, shape);
    size_t size = (size_t)batch;
    for (int i = 0; i < rank; i++)
        size *= (size_t)shape[i];
    float *x = malloc(size * sizeof *x); /* not ours: ours are counted */
    int32_t *classes = malloc((size_t)batch * sizeof *classes);
    assert_true(x && classes);
    for (size_t i = 0; i < size; i++) {
        uint32_t r[4];
        sn_philox(r, seed, i, 0);
        x[i] = sn_uniform_f32(r[0]) - 0.5f;
    }
    for (int64_t i = 0; i < batch; i++)
        classes[i] = (int32_t)((i * 7 + (int64_t)seed) % CLASSES);
    snug_slot slot = {.x = x, .classes = classes, .n = n, .capacity = batch};
    snug_error err = SNUG_ERROR_INIT;
    if (snug_session_feed(session, &slot, &err))
        fail_msg("%s", err.what);
    free(x);
    free(classes);
}

static float train(const case_row *c, int64_t batch, bool keep)
{
    snug_error err = SNUG_ERROR_INIT;
    snug_model *m;
    snug_plan *p = NULL;
    snug_session *s = NULL;
    float loss = 0, last;
    snug_plan_options o = {SNUG_PLAN_DEFAULTS, .batch = batch, .threads = 2,
                           .optimizer = {.lr = 0.001f, .momentum = 0.9f}, .keep_activations = keep};
    if (snug_model_zoo(&m, c->model, c->side, c->side, 3, CLASSES, &err) ||
        snug_plan_new(&p, m, &o, &err) || snug_session_open(&s, p, NULL, &err))
        fail_msg("%s: %s %s", c->model, err.where, err.what);
    snug_session_numbers n;
    feed(s, m, batch, batch, 1);
    if (snug_session_step(s, &loss, &err))
        fail_msg("%s: %s", c->model, err.what);
    snug_session_measure(s, &n);
    assert_int_equal(n.allocations, 0);
    if (n.planned_peak_bytes != n.measured_peak_bytes)
        fail_msg("%s, batch %d: planned %llu, measured %llu", c->model, (int)batch,
                 (unsigned long long)n.planned_peak_bytes,
                 (unsigned long long)n.measured_peak_bytes);
    /* the last, short batch, evaluation and prediction stay below */
    feed(s, m, batch, batch > 1 ? batch - 1 : 1, 2);
    if (snug_session_step(s, &last, &err) || snug_session_evaluate(s, &last, &err) ||
        snug_session_predict(s, &err))
        fail_msg("%s: %s", c->model, err.what);
    snug_session_measure(s, &n);
    assert_int_equal(n.planned_peak_bytes, n.measured_peak_bytes);
    assert_true(snug_plan_numbers(p)->arena_peak_bytes <=
                snug_plan_numbers(p)->arena_lower_bound_bytes * 102 / 100);
    snug_session_free(s);
    snug_plan_free(p);
    snug_model_free(m);
    return last;
}

static void planned_is_measured(void **state)
{
    static const int64_t batches[] = {1, 2, 7, 16};
    for (size_t i = 0; i < SN_LEN(cases); i++)
        for (size_t b = 0; b < SN_LEN(batches); b++)
            if (cases[i].is_small || b % 2)
                train(&cases[i], batches[b], false);
}

static void replays_change_no_bit(void **state)
{
    for (size_t i = 2; i < SN_LEN(cases); i++) {
        float with = train(&cases[i], 3, false), without = train(&cases[i], 3, true);
        assert_memory_equal(&with, &without, sizeof with);
    }
}

static void leaks_nothing(void **state)
{
    assert_int_equal(sn_ledger_live_bytes(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(planned_is_measured),
                                       cmocka_unit_test(replays_change_no_bit),
                                       cmocka_unit_test(leaks_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
