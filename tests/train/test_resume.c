/* SPDX-License-Identifier: Apache-2.0
 *
 * test_resume.c - saving and going on: with shuffling, dropout and augmentation a run that was
 * stopped or killed anywhere ends with the bits of one that never was; the number of data threads
 * changes nothing; a damaged checkpoint, a full disk or another seed is a clear error that leaves
 * what is there as it is.
 *
 * Started with "child" this program is the one that is killed.
 */
#include "data/photos.h"
#include "support/trainer.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "train/checkpoint.h"

enum { BATCH = 4, CLASSES = 3, EACH = 9, EPOCHS = 4 };
static char photos[SN_TEST_PATH], folder[SN_TEST_PATH];

typedef struct job {
    const char *run; /* folder; NULL: none */
    int data_threads;
    uint64_t seed, stop_at, save_steps, max_steps;
    bool resume, tell;
    snug_status status;
    snug_error err;
    snug_train_result result;
    float *state; /* at the end */
    size_t n;
} job;

static snug_model *network(void)
{
    snug_error err = SNUG_ERROR_INIT;
    snug_model *m;
    assert_ok(snug_model_new(&m, "photos", &err), &err);
    snug_tensor x = snug_input(m, 20, 24, 3);
    x = snug_conv2d(m, x,
                    &(snug_conv_options){SNUG_CONV_DEFAULTS, .filters = 8, .kernel = {3, 3},
                                         .strides = {2, 2}, .no_bias = true});
    x = snug_relu(m, snug_batch_norm(m, x, NULL), 6, NULL);
    x = snug_flatten(m, snug_max_pool2d(m, x, NULL), NULL);
    x = snug_dropout(m, x, .3f, NULL, NULL);
    x = snug_dense(m, x,
                   &(snug_dense_options){SNUG_DENSE_DEFAULTS, .units = 12, .activation = SNUG_RELU,
                                         .l2 = 1e-3f});
    x = snug_dense(m, x, &(snug_dense_options){SNUG_DENSE_DEFAULTS, .units = CLASSES});
    assert_ok(snug_model_finish(m, x, &err), &err);
    return m;
}

static bool follow(void *context, const snug_train_progress *p)
{
    const job *j = context;
    if (j->tell && (p->event == SNUG_TRAIN_STEP || p->event == SNUG_TRAIN_SAVED)) {
        printf("%s %" PRIu64 "\n", p->event == SNUG_TRAIN_STEP ? "step" : "saved", p->total_step);
        fflush(stdout);
    }
    return !(j->stop_at && p->total_step >= j->stop_at);
}

static void open_trainer(trainer *t, uint64_t seed)
{
    snug_plan_options o = {SNUG_PLAN_DEFAULTS, .batch = BATCH, .threads = 2,
                           .optimizer = {SNUG_ADAM, .lr = .003f}};
    snug_session_options so = {SNUG_SESSION_DEFAULTS, .seed = seed ? seed : 11};
    trainer_open(t, network(), "cpu", &o, &so);
}

static snug_data *open_photos(snug_source *train, snug_source *validation, int data_threads)
{
    snug_error err = SNUG_ERROR_INIT;
    snug_data_options o = photos_options();
    o.validation_split = .2;
    o.augment = (snug_augment){.hflip = 1, .rotate_degrees = 10, .zoom = .1f, .brightness = .2f};
    snug_data *data = photos_open(photos, &o);
    *train = photos_start(data, BATCH, 0, data_threads, SNUG_SUBSET_TRAIN);
    assert_ok(snug_data_source(validation, data, SNUG_SUBSET_VALIDATION, &err), &err);
    return data;
}

static void work(job *j)
{
    trainer t;
    open_trainer(&t, j->seed);
    snug_train_options o = {SNUG_TRAIN_DEFAULTS,
                            .train_lends = true,
                            .validation_lends = true,
                            .epochs = EPOCHS,
                            .max_steps = j->max_steps,
                            .schedule = {SNUG_SCHEDULE_COSINE, .warmup = .2},
                            .folder = j->run,
                            .save_steps = j->save_steps,
                            .resume = j->resume,
                            .progress = follow,
                            .context = j};
    snug_data *data = open_photos(&o.train, &o.validation, j->data_threads ? j->data_threads : 1);
    j->err = (snug_error)SNUG_ERROR_INIT;
    j->status = snug_train(t.session, &o, &j->result, &j->err);
    j->state = trainer_state(&t, &j->n);
    snug_data_free(data);
    trainer_close(&t);
}

static void forget(job *j)
{
    sn_free(j->state);
    snug_train_result_deinit(&j->result);
}

static void succeeds(const job *j)
{
    if (j->status)
        fail_msg("%s: %s", j->err.where, j->err.what);
}

static int make_photos(void **state)
{
    SN_UNUSED(state);
    photos_make(test_make_folder(photos), CLASSES, EACH);
    test_make_folder(folder);
    return 0;
}

static int remove_photos(void **state)
{
    SN_UNUSED(state);
    test_remove(photos);
    test_remove(folder);
    return sn_ledger_live_bytes() == 0 ? 0 : -1;
}

/* The run that nobody disturbed. */
static job whole_run(void)
{
    job j = {.seed = 0};
    work(&j);
    succeeds(&j);
    assert_int_equal(j.result.epochs, EPOCHS);
    return j;
}

/* ---- stopped and gone on --------------------------------------------------------------------- */

static void stopped_anywhere(void **state)
{
    job whole = whole_run();
    uint64_t n_steps = whole.result.steps, per_epoch = n_steps / EPOCHS;
    assert_true(per_epoch >= 5);
    const uint64_t stops[] = {1, per_epoch - 1, per_epoch, per_epoch + 1, n_steps / 2, n_steps - 1};
    for (size_t i = 0; i < SN_LEN(stops); i++) {
        char run[SN_TEST_PATH];
        test_path(run, folder, "stopped");
        job first = {.run = run, .stop_at = stops[i], .data_threads = 2};
        job second = {.run = run, .resume = true};
        work(&first);
        assert_int_equal(first.status, SNUG_E_INTERRUPTED);
        assert_int_equal(first.result.steps, stops[i]);
        work(&second);
        succeeds(&second);
        assert_int_equal(second.result.steps, n_steps);
        assert_int_equal(second.result.n_history, EPOCHS);
        for (size_t e = 0; e < EPOCHS; e++) {
            const snug_epoch *a = &whole.result.history[e], *b = &second.result.history[e];
            assert_int_equal(b->epoch, e + 1);
            /* a row that went through history.csv has nine digits */
            assert_true(fabs(a->loss - b->loss) <= 1e-8 * a->loss);
            assert_true(fabs(a->val_loss - b->val_loss) <= 1e-8 * a->val_loss);
            assert_true(fabs(a->accuracy - b->accuracy) <= 1e-8);
            assert_true(fabs(a->val_accuracy - b->val_accuracy) <= 1e-8);
        }
        assert_int_equal(whole.result.best_epoch, second.result.best_epoch);
        trainer_same(whole.state, second.state, whole.n, "weights and optimizer state");
        forget(&first);
        forget(&second);
        test_remove(run);
    }
    forget(&whole);
}

/* N steps, then as many again, by the bound on steps. */
static void two_halves(void **state)
{
    job whole = whole_run();
    char run[SN_TEST_PATH];
    job half = {.run = test_path(run, folder, "half"), .max_steps = whole.result.steps / 2};
    job rest = {.run = run, .resume = true};
    work(&half);
    succeeds(&half);
    work(&rest);
    succeeds(&rest);
    trainer_same(whole.state, rest.state, whole.n, "weights and optimizer state");
    /* a run that is done goes on to nothing */
    job nothing = {.run = run, .resume = true};
    work(&nothing);
    succeeds(&nothing);
    trainer_same(whole.state, nothing.state, whole.n, "weights of a run that was done");
    assert_int_equal(nothing.result.n_history, EPOCHS);
    forget(&nothing);
    forget(&half);
    forget(&rest);
    forget(&whole);
    test_remove(run);
}

static void data_threads_change_nothing(void **state)
{
    static const int threads[] = {2, 4, 0};
    job one = whole_run();
    for (size_t i = 0; i < SN_LEN(threads); i++) {
        job j = {.data_threads = threads[i]};
        work(&j);
        succeeds(&j);
        trainer_same(one.state, j.state, one.n, "weights with more data threads");
        forget(&j);
    }
    forget(&one);
}

/* ---- killed ---------------------------------------------------------------------------------- */

typedef struct child {
    pid_t pid;
    FILE *out;
} child;

static child spawn(const char *run, bool resume, const char *limit)
{
    int ends[2];
    child c;
    char self[SN_TEST_PATH];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    assert_true(n > 0);
    self[n] = 0;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    char *argv[] = {self,
                    (char *)"child",
                    photos,
                    (char *)(uintptr_t)run,
                    (char *)(uintptr_t)(resume ? "resume" : "new"),
                    (char *)(uintptr_t)limit,
                    NULL};
    fflush(NULL);
    c.pid = fork();
    if (c.pid == 0) {
        dup2(ends[1], STDOUT_FILENO);
        execv(self, argv);
        _exit(127);
    }
    assert_true(c.pid > 0);
    close(ends[1]);
    c.out = fdopen(ends[0], "r");
    assert_non_null(c.out);
    return c;
}

static int wait_for(child *c)
{
    int status = 0;
    while (waitpid(c->pid, &status, 0) < 0 && errno == EINTR)
        continue;
    fclose(c->out);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Reads what the child says until it made n_steps or ended; the step of its newest save. */
static uint64_t listen(child *c, unsigned n_steps, uint64_t saved)
{
    char line[64];
    uint64_t step;
    while (n_steps > 0 && fgets(line, sizeof line, c->out)) {
        if (sscanf(line, "saved %" SCNu64, &step) == 1)
            saved = step;
        else
            n_steps--;
    }
    return saved;
}

/* What is on disk now is whole, and no older than what was said to be saved. */
static void check_saved(const char *run, uint64_t saved)
{
    char path[SN_TEST_PATH];
    snug_error err = SNUG_ERROR_INIT;
    sn_run_state at;
    trainer t;
    test_path(path, run, "last.ckpt");
    if (saved == 0 && !test_exists(path))
        return;
    open_trainer(&t, 0);
    assert_ok(sn_checkpoint_load(t.session, path, &at, &err), &err);
    assert_true(at.step >= saved);
    test_path(path, run, "best.safetensors");
    if (test_exists(path))
        assert_ok(snug_weights_load(t.session, path, &err), &err);
    trainer_close(&t);
}

static void killed_at_random(void **state)
{
    job whole = whole_run();
    char run[SN_TEST_PATH], path[SN_TEST_PATH];
    unsigned random = 12345, most = test_nightly() ? 100 : 20, kills = 0;
    uint64_t saved = 0;
    int status = -1;
    test_path(run, folder, "killed");
    while (status != 0) {
        child c = spawn(run, test_exists(test_path(path, run, "last.ckpt")), "");
        random = random * 1103515245u + 12345u;
        saved = listen(&c, kills < most ? 1 + random / 65536 % 4 : UINT32_MAX, saved);
        if (kills < most) {
            nanosleep(&(struct timespec){0, (long)(random / 1024 % 4000000)}, NULL);
            kill(c.pid, SIGKILL);
            kills++;
        }
        status = wait_for(&c);
        assert_true(status == 0 || status == 128 + SIGKILL);
        check_saved(run, saved);
    }
    job last = {.run = run, .resume = true};
    work(&last);
    succeeds(&last);
    assert_int_equal(last.result.steps, whole.result.steps);
    trainer_same(whole.state, last.state, whole.n, "weights after kills");
    assert_int_equal(test_count_entries(run), 4); /* no half files of the killed ones */
    forget(&last);
    forget(&whole);
    test_remove(run);
}

/* ---- damage ---------------------------------------------------------------------------------- */

typedef struct kept {
    char *bytes;
    size_t n;
} kept;

static void keep(kept *file, const char *run, const char *name)
{
    char path[SN_TEST_PATH];
    file->bytes = test_read(test_path(path, run, name), &file->n);
}

static void still_there(const kept *file, const char *run, const char *name)
{
    kept now;
    keep(&now, run, name);
    assert_int_equal(now.n, file->n);
    assert_memory_equal(now.bytes, file->bytes, now.n);
    sn_free(now.bytes);
}

static void damaged_checkpoints(void **state)
{
    static const char *const names[] = {"last.safetensors", "best.safetensors", "history.csv"};
    char run[SN_TEST_PATH], path[SN_TEST_PATH];
    kept checkpoint, others[3];
    job first = {.run = test_path(run, folder, "damaged"), .stop_at = 9};
    work(&first);
    assert_int_equal(first.status, SNUG_E_INTERRUPTED);
    keep(&checkpoint, run, "last.ckpt");
    for (int i = 0; i < 3; i++)
        keep(&others[i], run, names[i]);
    test_path(path, run, "last.ckpt");
    size_t step = test_nightly() ? 97 : checkpoint.n / 20 + 1;
    for (size_t n = 0; n < checkpoint.n; n += n < 64 ? 9 : step) {
        test_write(path, checkpoint.bytes, n);
        job j = {.run = run, .resume = true};
        work(&j);
        assert_int_equal(j.status, SNUG_E_INPUT);
        char words[600];
        snprintf(words, sizeof words, "%s: %s", j.err.where, j.err.what);
        assert_contains(words, "last.ckpt");
        for (int i = 0; i < 3; i++)
            still_there(&others[i], run, names[i]);
        forget(&j);
    }
    /* weights alone are no state to go on from */
    test_write(path, others[0].bytes, others[0].n);
    job j = {.run = run, .resume = true};
    work(&j);
    assert_int_equal(j.status, SNUG_E_INPUT);
    forget(&j);
    test_remove(path);
    j = (job){.run = run, .resume = true};
    work(&j);
    assert_int_equal(j.status, SNUG_E_NOT_FOUND);
    forget(&j);
    test_write(path, checkpoint.bytes, checkpoint.n);
    j = (job){.run = run, .resume = true, .seed = 12};
    work(&j);
    assert_int_equal(j.status, SNUG_E_USAGE);
    assert_contains(j.err.what, "seed 11");
    forget(&j);
    j = (job){.run = run, .resume = true}; /* and the whole one still goes on */
    work(&j);
    succeeds(&j);
    forget(&j);
    forget(&first);
    sn_free(checkpoint.bytes);
    for (int i = 0; i < 3; i++)
        sn_free(others[i].bytes);
    test_remove(run);
}

/* Weights of another network. */
static void weights_that_do_not_match(void **state)
{
    char path[SN_TEST_PATH];
    snug_error err = SNUG_ERROR_INIT;
    trainer small, t;
    snug_plan_options o = {SNUG_PLAN_DEFAULTS, .batch = 2};
    trainer_open(&small, trainer_small(4, 0), "cpu", &o, NULL);
    test_path(path, folder, "weights.safetensors");
    assert_ok(snug_weights_save(small.session, path, "", &err), &err);
    open_trainer(&t, 0);
    assert_fails(snug_weights_load(t.session, path, &err), SNUG_E_INPUT, &err);
    assert_contains(err.what, "conv2d/kernel");
    trainer_close(&t);
    trainer_open(&t, trainer_small(5, 0), "cpu", &o, NULL);
    assert_fails(snug_weights_load(t.session, path, &err), SNUG_E_INPUT, &err);
    assert_contains(err.what, "[10,4]");
    assert_contains(err.what, "[10,5]");
    trainer_close(&t);
    trainer_open(&t, trainer_small(4, 0), "cpu", &o, NULL);
    assert_ok(snug_weights_load(t.session, path, &err), &err);
    trainer_close(&t);
    trainer_close(&small);
    test_remove(path);
}

/* ---- no room --------------------------------------------------------------------------------- */

static void a_limit_on_files_is_met_before_training(void **state)
{
    char run[SN_TEST_PATH], line[256];
    test_path(run, folder, "limited");
    child c = spawn(run, false, "8192");
    assert_null(fgets(line, sizeof line, c.out)); /* not a step was made */
    assert_int_equal(wait_for(&c), snug_status_exit_code(SNUG_E_IO));
    assert_int_equal(test_count_entries(run), 0);
    test_remove(run);
}

static void a_full_disk_is_met_before_training(void **state)
{
    char disk[SN_TEST_PATH], run[SN_TEST_PATH];
    test_path(disk, folder, "disk");
    assert_int_equal(mkdir(disk, 0700), 0);
    if (mount("tmpfs", disk, "tmpfs", 0, "size=512k")) {
        rmdir(disk);
        print_message("no small file system can be mounted here (%s)\n", strerror(errno));
        skip();
    }
    job j = {.run = test_path(run, disk, "run")};
    work(&j);
    size_t left = test_count_entries(run);
    umount(disk);
    rmdir(disk);
    assert_int_equal(j.status, SNUG_E_IO);
    assert_int_equal(j.result.steps, 0);
    assert_contains(j.err.what, "free");
    assert_int_equal(left, 0);
    forget(&j);
}

/* ---- the child ------------------------------------------------------------------------------- */

static int be_child(char **argv)
{
    if (argv[5][0]) {
        struct rlimit limit = {(rlim_t)atoll(argv[5]), (rlim_t)atoll(argv[5])};
        setrlimit(RLIMIT_FSIZE, &limit);
    }
    snprintf(photos, sizeof photos, "%s", argv[2]);
    job j = {.run = argv[3],
             .resume = sn_str_eq(argv[4], "resume"),
             .save_steps = 2,
             .tell = true,
             .data_threads = 2};
    work(&j);
    forget(&j);
    return snug_status_exit_code(j.status);
}

int main(int argc, char **argv)
{
    if (argc == 6 && sn_str_eq(argv[1], "child"))
        return be_child(argv);
    const struct CMUnitTest tests[] = {cmocka_unit_test(stopped_anywhere),
                                       cmocka_unit_test(two_halves),
                                       cmocka_unit_test(data_threads_change_nothing),
                                       cmocka_unit_test(killed_at_random),
                                       cmocka_unit_test(damaged_checkpoints),
                                       cmocka_unit_test(weights_that_do_not_match),
                                       cmocka_unit_test(a_limit_on_files_is_met_before_training),
                                       cmocka_unit_test(a_full_disk_is_met_before_training)};
    cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);
    return cmocka_run_group_tests(tests, make_photos, remove_photos);
}
