/* SPDX-License-Identifier: Apache-2.0
 *
 * test_memory.c - what was planned is what is used, for every model of the zoo: the measured peak
 * of the arena is the planned one to the byte, nothing is written behind it, nothing is allocated
 * while steps are made, and the peak lies within 2 % of its lower bound.
 */
#include "support/trainer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TAIL = 1 << 20, PATTERN = 0x5a };
static const int64_t batches[] = {1, 2, 7, 16};

static snug_model *zoo(const char *spec, int64_t side)
{
    snug_error err = SNUG_ERROR_INIT;
    snug_model *model;
    assert_ok(snug_model_zoo(&model, spec, side, side, 0, 0, &err), &err);
    return model;
}

static toy samples_of(const snug_model *model)
{
    int64_t shape[4];
    toy data = {.n = 64, .size = 1};
    int rank = snug_model_input_shape(model, shape);
    for (int i = 0; i < rank; i++)
        data.size *= shape[i];
    snug_model_output_shape(model, shape);
    data.classes = shape[0];
    return data;
}

/* A whole batch, a short one, an evaluation and a prediction. What they compute is of no matter
 * here: a deep network with BatchNorm over a single pixel explodes, in Keras too. */
static void use(trainer *t, const toy *data, int64_t batch)
{
    snug_error err = SNUG_ERROR_INIT;
    float loss = 0;
    trainer_step(t, data, 0, batch);
    if (batch > 1)
        trainer_step(t, data, 20, batch - 1);
    trainer_feed(t, data, 0, batch);
    assert_ok(snug_session_evaluate(t->session, &loss, &err), &err);
    assert_ok(snug_session_predict(t->session, &err), &err);
}

static void compare_peaks(const trainer *t, const char *what, int64_t batch)
{
    snug_session_numbers n;
    snug_session_measure(t->session, &n);
    if (n.planned_peak_bytes != n.measured_peak_bytes)
        fail_msg("%s, batch %d: planned %" PRIu64 ", measured %" PRIu64, what, (int)batch,
                 n.planned_peak_bytes, n.measured_peak_bytes);
    assert_int_equal(n.planned_peak_bytes, snug_plan_arena_bytes(t->plan));
}

/* In the caller's memory, on a page of pattern that begins at the planned peak. */
static void on_the_cpu(const char *spec, int64_t side, int64_t batch)
{
    snug_error err = SNUG_ERROR_INIT;
    trainer t = {.model = zoo(spec, side)};
    toy data = samples_of(t.model);
    snug_plan_options o = {SNUG_PLAN_DEFAULTS, .batch = batch, .threads = 2,
                           .memory_bytes = UINT64_C(1) << 40,
                           .optimizer = {SNUG_SGD, .lr = .001f, .momentum = .9f}};
    assert_ok(trainer_device(&t.device, "cpu", 2, &err), &err);
    assert_ok(sn_plan_new(&t.plan, t.model, &o, t.device, &err), &err);
    assert_int_equal(snug_plan_n_slabs(t.plan), 1);
    uint64_t bytes = snug_plan_slab_bytes(t.plan, 0);
    unsigned char *memory = aligned_alloc(64, sn_align_up(bytes, 64) + TAIL);
    assert_non_null(memory);
    memset(memory + bytes, PATTERN, sn_align_up(bytes, 64) + TAIL - bytes);
    snug_session_options so = {SNUG_SESSION_DEFAULTS, .memory = (void *const[]){memory},
                               .no_rehearsal = true};
    assert_ok(snug_session_open(&t.session, t.plan, &so, &err), &err);
    int64_t n_x = batch * data.size;
    t.slot = (snug_slot){.x = sn_alloc_array(SN_TAG_TRAIN, (size_t)n_x, sizeof(float)),
                         .classes = sn_alloc_array(SN_TAG_TRAIN, (size_t)batch, sizeof(int32_t)),
                         .capacity = batch};
    use(&t, &data, batch);
    compare_peaks(&t, spec, batch);
    for (uint64_t i = bytes; i < sn_align_up(bytes, 64) + TAIL; i++)
        if (memory[i] != PATTERN)
            fail_msg("%s, batch %d: byte %" PRIu64 " behind the peak was written", spec, (int)batch,
                     i - bytes);
    trainer_close(&t);
    free(memory);
}

/* Models as they are, but for the number of classes and the width of VGG's dense layers. */
static void planned_is_measured_on_the_cpu(void **state)
{
    static const struct {
        const char *spec;
        int64_t side;
    } rows[] = {{"mlp", 28},
                {"cnn", 28},
                {"mobilenet:classes=10", 32},
                {"mobilenetv2:classes=10", 64},
                {"squeezenet:classes=10", 33},
                {"vgg16:classes=10,dense=512", 32},
                {"vgg19:classes=10,dense=512", 32},
                {"resnet18:classes=10", 64},
                {"resnet34:classes=10", 32},
                {"resnet50:classes=10", 33},
                {"resnet101:classes=10", 32},
                {"resnet152:classes=10", 32}};
    size_t n;
    snug_zoo_names(&n);
    assert_int_equal(n, SN_LEN(rows));
    for (size_t i = 0; i < n; i++)
        for (size_t b = 0; b < SN_LEN(batches); b++)
            on_the_cpu(rows[i].spec, rows[i].side, batches[b]);
    const char *const *names = snug_zoo_names(&n);
    for (size_t i = 0; i < n && test_nightly(); i++) /* as they come, 224 x 224 */
        on_the_cpu(names[i], 0, 2);
}

static void planned_is_measured_in_torture(void **state)
{
    static const struct {
        const char *spec;
        int64_t side, batch;
        const char *device;
    } rows[] = {{"mlp", 28, 7, "torture:slab=1MiB"},
                {"cnn:width=0.5", 20, 16, "torture:slab=1MiB,layouts=1"},
                {"mobilenet:width=0.25,classes=10", 32, 2, "torture:slab=2MiB,layouts=1"},
                {"mobilenetv2:width=0.25,classes=10", 32, 1, "torture:slab=8MiB"},
                {"squeezenet:width=0.25,classes=10", 33, 2, "torture:slab=8MiB,layouts=1"},
                {"vgg16:width=0.25,classes=10,dense=64", 32, 1, "torture:slab=4MiB,layouts=1"},
                {"resnet18:width=0.25,classes=10", 32, 2, "torture:slab=4MiB"},
                {"resnet50:width=0.25,classes=10", 32, 1, "torture:slab=4MiB,layouts=1"}};
    for (size_t i = 0; i < SN_LEN(rows); i++) {
        trainer t;
        snug_plan_options o = {SNUG_PLAN_DEFAULTS, .batch = rows[i].batch,
                               .optimizer = {SNUG_ADAM, .lr = .001f}};
        snug_session_options so = {SNUG_SESSION_DEFAULTS, .no_rehearsal = true};
        trainer_open(&t, zoo(rows[i].spec, rows[i].side), rows[i].device, &o, &so);
        toy data = samples_of(t.model);
        use(&t, &data, rows[i].batch);
        compare_peaks(&t, rows[i].spec, rows[i].batch);
        trainer_close(&t);
    }
}

/* At 224 x 224, without running anything. */
static void peaks_are_near_their_bounds(void **state)
{
    size_t n;
    const char *const *names = snug_zoo_names(&n);
    for (size_t i = 0; i < n; i++)
        for (size_t b = 0; b < SN_LEN(batches); b++) {
            snug_error err = SNUG_ERROR_INIT;
            snug_plan *plan;
            snug_model *model = zoo(names[i], 0);
            snug_plan_options o = {SNUG_PLAN_DEFAULTS, .batch = batches[b], .threads = 2,
                                   .memory_bytes = UINT64_C(1) << 50,
                                   .optimizer = {SNUG_SGD, .momentum = .9f}};
            assert_ok(snug_plan_new(&plan, model, &o, &err), &err);
            const snug_plan_info *info = snug_plan_numbers(plan);
            double ratio = (double)info->arena_peak_bytes / (double)info->arena_lower_bound_bytes;
            if (!(ratio <= 1.02))
                fail_msg("%s, batch %d: the peak is %.4f of its bound", names[i], (int)batches[b],
                         ratio);
            snug_plan_free(plan);
            snug_model_free(model);
        }
}

static void steps_allocate_nothing(void **state)
{
    for (int d = 0; d < TRAINER_N_DEVICES; d++) {
        trainer t;
        snug_plan_options o = {SNUG_PLAN_DEFAULTS, .batch = 6, .optimizer = {.kind = SNUG_ADAM}};
        trainer_open(&t, trainer_small(4, .2f), trainer_devices[d], &o, NULL);
        toy data = samples_of(t.model);
        uint64_t calls = sn_ledger_calls();
        for (uint64_t i = 0; i < 5; i++)
            trainer_step(&t, &data, i, 6);
        assert_int_equal(sn_ledger_calls(), calls);
        snug_session_numbers n;
        snug_session_measure(t.session, &n);
        assert_int_equal(n.allocations, 0);
        trainer_step(&t, &data, 0, 5); /* its kernels are made now */
        calls = sn_ledger_calls();
        trainer_step(&t, &data, 0, 5);
        trainer_step(&t, &data, 0, 6);
        trainer_step(&t, &data, 0, 5);
        assert_int_equal(sn_ledger_calls(), calls);
        trainer_close(&t);
    }
}

/* A caller's memory that is not aligned is an error, not a crash. */
static void memory_must_be_aligned(void **state)
{
    snug_error err = SNUG_ERROR_INIT;
    trainer t = {.model = trainer_small(3, 0)};
    snug_plan_options o = {SNUG_PLAN_DEFAULTS, .batch = 2};
    assert_ok(snug_plan_new(&t.plan, t.model, &o, &err), &err);
    char *memory = aligned_alloc(64, sn_align_up(snug_plan_arena_bytes(t.plan), 64) + 64);
    snug_session_options so = {SNUG_SESSION_DEFAULTS, .memory = (void *const[]){memory + 4}};
    assert_fails(snug_session_open(&t.session, t.plan, &so, &err), SNUG_E_USAGE, &err);
    assert_null(t.session);
    assert_contains(err.what, "aligned");
    free(memory);
    trainer_close(&t);
}

static void leaks_nothing(void **state)
{
    assert_no_leak();
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(planned_is_measured_on_the_cpu),
                                       cmocka_unit_test(planned_is_measured_in_torture),
                                       cmocka_unit_test(peaks_are_near_their_bounds),
                                       cmocka_unit_test(steps_allocate_nothing),
                                       cmocka_unit_test(memory_must_be_aligned),
                                       cmocka_unit_test(leaks_nothing)};
    cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
