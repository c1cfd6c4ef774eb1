/* SPDX-License-Identifier: Apache-2.0
 *
 * test_sessions.c - opening and closing: 200 sessions leave no byte behind, every allocation may
 * fail, one thread means one thread, several sessions live side by side; and the example of the
 * public interface.
 *
 * Started with "one-thread" or "many" this program measures itself: threads and resident memory are
 * those of a fresh process.
 */
#include "support/trainer.h"

#include <dirent.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/host.h"

enum { BATCH = 4 };
static const toy samples = {.n = 64, .size = 8 * 8 * 2, .classes = 4};

static snug_plan_options plan_options(int threads)
{
    return (snug_plan_options){SNUG_PLAN_DEFAULTS, .batch = BATCH, .threads = threads,
                               .optimizer = {SNUG_SGD, .lr = .05f, .momentum = .9f}};
}

/* ---- in a fresh process ---------------------------------------------------------------------- */

static int count_threads(void)
{
    int n = 0;
    DIR *dir = opendir("/proc/self/task");
    for (struct dirent *e; dir && (e = readdir(dir));)
        n += e->d_name[0] != '.';
    if (dir)
        closedir(dir);
    return n;
}

static int run_with_threads(int threads)
{
    trainer t;
    snug_plan_options o = plan_options(threads);
    trainer_open(&t, trainer_small(4, .1f), "cpu", &o, NULL);
    for (uint64_t i = 0; i < 3; i++)
        trainer_step(&t, &samples, i, i == 1 ? 3 : BATCH);
    int n = count_threads();
    trainer_close(&t);
    return n;
}

static int64_t resident(void)
{
    uint64_t bytes = 0;
    malloc_trim(0);
    return sn_host_process_resident(&bytes, NULL) ? -1 : (int64_t)bytes;
}

static void one_session(void)
{
    trainer t;
    snug_error err = SNUG_ERROR_INIT;
    snug_plan_options o = plan_options(2);
    trainer_open(&t, trainer_small(4, .1f), "cpu", &o, NULL);
    trainer_step(&t, &samples, 0, BATCH);
    trainer_step(&t, &samples, 0, BATCH - 1);
    assert_ok(snug_session_predict(t.session, &err), &err);
    trainer_close(&t);
}

static int64_t growth_of_many(void)
{
    for (int i = 0; i < 20; i++) /* libraries take what they take */
        one_session();
    int64_t before = resident();
    for (int i = 0; i < 200; i++)
        one_session();
    return resident() - before;
}

static int64_t ask_myself(const char *what)
{
    char self[SN_TEST_PATH];
    int64_t answer = -1;
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    assert_true(n > 0);
    self[n] = 0;
    test_result r = test_run((const char *[]){self, what, NULL}, NULL, NULL);
    if (r.exit_code != 0 || sscanf(r.out, "%" SCNd64, &answer) != 1)
        fail_msg("%s: %d\n%s%s", what, r.exit_code, r.out, r.err);
    test_result_free(&r);
    return answer;
}

static void one_thread_makes_none(void **state)
{
    assert_int_equal(ask_myself("one-thread"), 1);
}

static void two_hundred_sessions_leave_nothing(void **state)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip(); /* sanitizers keep what was freed */
#endif
    int64_t grown = ask_myself("many");
    if (grown > (int64_t)SN_MIB)
        fail_msg("200 sessions left %" PRId64 " KiB", grown / 1024);
}

/* ---- failing allocations --------------------------------------------------------------------- */

/* Plan, open, one step of a short batch, save, load. *calls: allocations that it made. */
static snug_status whole_life(trainer *t, const char *device, const char *path, uint64_t *calls,
                              snug_error *err)
{
    snug_plan_options o = plan_options(1);
    uint64_t before = sn_ledger_calls();
    snug_status s = trainer_try(t, trainer_small(4, .1f), device, &o, NULL, err);
    if (!s) {
        snug_slot slot = t->slot;
        slot.y = NULL;
        slot.n = BATCH - 1;
        s = snug_session_feed(t->session, &slot, err);
        s = s ? s : snug_session_step(t->session, NULL, err);
        s = s ? s : snug_weights_save(t->session, path, NULL, err);
        s = s ? s : snug_weights_load(t->session, path, err);
    }
    *calls = sn_ledger_calls() - before;
    return s;
}

/* Every allocation of the library but those of the model, one after the other. tolerated: how many
 * a device may do without (a kernel that is looked for twice because it could not be noted). */
static void fail_each(const char *device, uint64_t stride, int tolerated)
{
    char folder[SN_TEST_PATH], path[SN_TEST_PATH];
    snug_error err = SNUG_ERROR_INIT;
    uint64_t all, calls, in_model = sn_ledger_calls();
    trainer t;
    test_path(path, test_make_folder(folder), "weights");
    snug_model_free(trainer_small(4, .1f));
    in_model = sn_ledger_calls() - in_model;
    assert_ok(whole_life(&t, device, path, &all, &err), &err);
    trainer_close(&t);
    assert_true(all > in_model + 20);
    uint64_t live = sn_ledger_live_bytes();
    for (uint64_t n = in_model + 1; n <= all; n += stride) {
        err = (snug_error)SNUG_ERROR_INIT;
        sn_ledger_fail_nth(n);
        snug_status s = whole_life(&t, device, path, &calls, &err);
        sn_ledger_fail_nth(0);
        trainer_close(&t);
        if (s ? s != SNUG_E_MEMORY || !err.what[0] : --tolerated < 0)
            fail_msg("%s, allocation %" PRIu64 " of %" PRIu64 ": %s: %s", device, n, all,
                     snug_status_name(s), err.what);
        if (sn_ledger_live_bytes() != live)
            fail_msg("%s, allocation %" PRIu64 " of %" PRIu64 " failed: %" PRIu64 " bytes leaked",
                     device, n, all, sn_ledger_live_bytes() - live);
    }
    test_remove(folder);
}

static void every_allocation_may_fail(void **state)
{
    fail_each(trainer_devices[1], 1, 0);
    fail_each("cpu", test_nightly() ? 1 : 3, 5);
}

static void every_allocation_of_a_model_may_fail(void **state)
{
    static const char *const specs[] = {"mobilenet:width=0.25", "resnet18", "cnn"};
    for (size_t i = 0; i < SN_LEN(specs); i++) {
        snug_error err = SNUG_ERROR_INIT;
        snug_model *model;
        uint64_t before = sn_ledger_calls();
        assert_ok(snug_model_zoo(&model, specs[i], 32, 32, 0, 0, &err), &err);
        uint64_t all = sn_ledger_calls() - before;
        snug_model_free(model);
        for (uint64_t n = 1; n <= all; n++) {
            sn_ledger_fail_nth(n);
            snug_status s = snug_model_zoo(&model, specs[i], 32, 32, 0, 0, &err);
            sn_ledger_fail_nth(0);
            if (s != SNUG_E_MEMORY)
                fail_msg("%s, allocation %" PRIu64 " of %" PRIu64 ": %s: %s", specs[i], n, all,
                         snug_status_name(s), err.what);
            assert_null(model);
            assert_no_leak();
        }
    }
}

/* ---- side by side ---------------------------------------------------------------------------- */

static void two_sessions_of_one_plan(void **state)
{
    snug_error err = SNUG_ERROR_INIT;
    snug_plan_options o = plan_options(2);
    trainer a, b = {0};
    trainer_open(&a, trainer_small(4, .1f), "cpu", &o, NULL);
    assert_ok(snug_session_open(&b.session, a.plan, NULL, &err), &err);
    b.model = a.model;
    b.slot = a.slot;
    float first[4], second[4];
    for (uint64_t i = 0; i < 4; i++) /* in turns */
    {
        first[i] = trainer_step(&a, &samples, i * BATCH, BATCH);
        second[i] = trainer_step(&b, &samples, i * BATCH, BATCH);
    }
    assert_memory_equal(first, second, sizeof first);
    size_t n;
    float *x = trainer_state(&a, &n), *y = trainer_state(&b, &n);
    trainer_same(x, y, n, "two sessions of one plan");
    sn_free(x), sn_free(y);
    snug_session_free(b.session);
    trainer_close(&a);
}

static void a_plan_that_does_not_fit_is_not_opened(void **state)
{
    snug_error err = SNUG_ERROR_INIT;
    trainer t = {.model = trainer_small(4, 0)};
    snug_plan_options o = plan_options(1);
    o.memory_bytes = SN_MIB;
    assert_fails(snug_plan_new(&t.plan, t.model, &o, &err), SNUG_E_DOES_NOT_FIT, &err);
    assert_non_null(t.plan);
    err = (snug_error)SNUG_ERROR_INIT;
    assert_fails(snug_session_open(&t.session, t.plan, NULL, &err), SNUG_E_DOES_NOT_FIT, &err);
    assert_null(t.session);
    assert_true(err.need > err.have && err.have == SN_MIB);
    trainer_close(&t);
}

/* The rehearsal on zeros leaves no trace: with it and without, the same run. */
static void rehearsing_changes_nothing(void **state)
{
    for (int d = 0; d < TRAINER_N_DEVICES; d++) {
        float *values[2];
        size_t n = 0;
        for (int i = 0; i < 2; i++) {
            trainer t;
            snug_plan_options o = plan_options(2);
            snug_session_options so = {SNUG_SESSION_DEFAULTS, .no_rehearsal = i};
            trainer_open(&t, trainer_small(4, .1f), trainer_devices[d], &o, &so);
            trainer_step(&t, &samples, 0, BATCH);
            trainer_step(&t, &samples, 4, BATCH);
            values[i] = trainer_state(&t, &n);
            trainer_close(&t);
        }
        trainer_same(values[0], values[1], n, "a rehearsed session");
        sn_free(values[0]), sn_free(values[1]);
    }
}

static void no_such_weight(void **state)
{
    snug_error err = SNUG_ERROR_INIT;
    snug_plan_options o = plan_options(1);
    trainer t;
    float value = 0;
    trainer_open(&t, trainer_small(4, 0), "cpu", &o, NULL);
    size_t n = snug_model_n_weights(t.model);
    assert_fails(snug_session_weight(t.session, n, -1, &value, &err), SNUG_E_NOT_FOUND, &err);
    assert_fails(snug_session_weight(t.session, 0, 1, &value, &err), SNUG_E_NOT_FOUND, &err);
    assert_fails(snug_session_set_weight(t.session, SIZE_MAX, -1, &value, &err), SNUG_E_NOT_FOUND,
                 &err);
    trainer_close(&t);
}

/* ---- the example ----------------------------------------------------------------------------- */

static void the_example_trains(void **state)
{
    test_result r =
        test_run((const char *[]){SNUG_BUILD_DIR "/tests/train_from_c", NULL}, NULL, NULL);
    int epoch;
    float loss, accuracy = 0;
    const char *last = r.out ? strstr(r.out, "epoch 3:") : NULL;
    if (r.exit_code != 0 || !last ||
        sscanf(last, "epoch %d: loss %f, accuracy %f", &epoch, &loss, &accuracy) != 3)
        fail_msg("exit code %d\n%s%s", r.exit_code, r.out, r.err);
    assert_true(accuracy > .9f);
    test_result_free(&r);
}

static void leaks_nothing(void **state)
{
    assert_no_leak();
}

int main(int argc, char **argv)
{
    if (argc == 2 && sn_str_eq(argv[1], "one-thread"))
        return printf("%d\n", run_with_threads(1)) < 0;
    if (argc == 2 && sn_str_eq(argv[1], "many"))
        return printf("%" PRId64 "\n", growth_of_many()) < 0 || sn_ledger_live_bytes() != 0;
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_thread_makes_none),
                                       cmocka_unit_test(two_hundred_sessions_leave_nothing),
                                       cmocka_unit_test(every_allocation_may_fail),
                                       cmocka_unit_test(every_allocation_of_a_model_may_fail),
                                       cmocka_unit_test(two_sessions_of_one_plan),
                                       cmocka_unit_test(a_plan_that_does_not_fit_is_not_opened),
                                       cmocka_unit_test(rehearsing_changes_nothing),
                                       cmocka_unit_test(no_such_weight),
                                       cmocka_unit_test(the_example_trains),
                                       cmocka_unit_test(leaks_nothing)};
    cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
