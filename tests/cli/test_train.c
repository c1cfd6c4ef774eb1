/* SPDX-License-Identifier: Apache-2.0
 *
 * snug train, evaluate and predict as they are typed: exit codes, files, refusals, resuming.
 */
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "cli/typed.h"

static void snug_quietly(int exit_code, const char *line)
{
    test_result r = typed(exit_code, line);
    test_result_free(&r);
}

static json_int_t whole(const json_t *root, const char *key)
{
    const json_t *value = json_object_get(root, key);

    if (!json_is_integer(value))
        fail_msg("%s is missing or no whole number", key);
    return json_integer_value(value);
}

#define TINY " -m cnn -s 16 -b 4 -j 1 "

static void test_run_folder(void **state)
{
    static const char *const files[] = {"best.safetensors", "last.safetensors", "last.ckpt",
                                        "history.csv",      "plan.json",        "run.json",
                                        "skipped.csv"};
    static const char *const fields[] = {"process_peak_bytes",
                                         "budget_bytes",
                                         "device",
                                         "batch",
                                         "images_per_second",
                                         "best_step_seconds",
                                         "data_wait_fraction",
                                         "convolution_fraction",
                                         "steps",
                                         "interrupted",
                                         "epochs",
                                         "skipped_files"};
    char path[SN_TEST_PATH], name[64];

    test_write_text(test_path(path, folder, "d/c0/bad.jpg"), "no image");
    test_result r = typed(0, "train d" TINY "-e 2 --json --quiet");
    assert_string_equal(r.err, "");
    json_t *out = json_loads(r.out, 0, NULL), *run = NULL;
    assert_true(json_is_object(out));
    test_result_free(&r);
    for (size_t i = 0; i < SN_LEN(files); i++) {
        snprintf(name, sizeof name, "runs/cnn/%s", files[i]);
        if (!test_exists(test_path(path, folder, name)))
            fail_msg("%s is missing", name);
    }
    char *text = test_read(test_path(path, folder, "runs/cnn/run.json"), NULL);
    run = json_loads(text, 0, NULL);
    sn_free(text);
    for (size_t i = 0; i < SN_LEN(fields); i++)
        if (!json_object_get(run, fields[i]))
            fail_msg("run.json has no %s", fields[i]);
    assert_true(whole(run, "planned_peak_bytes") > 0);
    assert_int_equal(whole(run, "planned_peak_bytes"), whole(run, "measured_peak_bytes"));
    assert_int_equal(json_array_size(json_object_get(run, "epochs")), 2);
    assert_int_equal(json_array_size(json_object_get(run, "skipped_files")), 1);
    json_decref(out);
    json_decref(run);
    text = test_read(test_path(path, folder, "runs/cnn/skipped.csv"), NULL);
    assert_contains(text, "bad.jpg");
    sn_free(text);

    snug_quietly(0, "train d" TINY "-e 1 --quiet");
    assert_true(test_exists(test_path(path, folder, "runs/cnn-2/run.json")));
    size_t before, after;
    char *old = test_read(test_path(path, folder, "runs/cnn/last.ckpt"), &before);
    r = typed(2, "train d" TINY "-e 1 -o runs/cnn");
    assert_contains(r.err, "never overwritten");
    test_result_free(&r);
    text = test_read(test_path(path, folder, "runs/cnn/last.ckpt"), &after);
    assert_int_equal(before, after);
    assert_memory_equal(old, text, before);
    sn_free(old);
    sn_free(text);
    snug_quietly(4, "train d" TINY "-e 1 --bad-files stop");
}

/* The tensors of two .safetensors files: what follows the two headers. */
static void assert_same_weights(const char *a, const char *b)
{
    char path[SN_TEST_PATH];
    size_t n_a, n_b;
    uint64_t head_a, head_b;
    char *x = test_read(test_path(path, folder, a), &n_a);
    char *y = test_read(test_path(path, folder, b), &n_b);

    memcpy(&head_a, x, 8);
    memcpy(&head_b, y, 8);
    assert_true(n_a > 8 + head_a + 100000);
    assert_int_equal(n_a - head_a, n_b - head_b);
    assert_memory_equal(x + 8 + head_a, y + 8 + head_b, n_a - 8 - head_a);
    sn_free(x);
    sn_free(y);
}

static void test_resume(void **state)
{
    snug_quietly(0, "train d" TINY "--lr-schedule constant -e 2 -o whole");
    snug_quietly(0, "train d" TINY "--lr-schedule constant -e 1 -o part");
    snug_quietly(0, "train --resume part -e 2");
    assert_same_weights("whole/last.safetensors", "part/last.safetensors");
    snug_quietly(2, "train --resume nowhere/at/all --epoch 2");
}

static void test_interrupt(void **state)
{
    char script[8192], path[SN_TEST_PATH];

    snprintf(script, sizeof script,
             "'%s' train d" TINY "-e 100000 -o r 2>err & p=$!\n"
             "until [ -e r/last.ckpt ] || ! kill -0 $p; do sleep .02; done\n"
             "kill -TERM $p; wait $p",
             test_command());
    test_result r = test_run_shell(script, folder);
    assert_int_equal(r.exit_code, 130);
    test_result_free(&r);
    char *err = test_read(test_path(path, folder, "err"), NULL);
    assert_contains(err, "go on with: snug train --resume r");
    sn_free(err);
    char *text = test_read(test_path(path, folder, "r/run.json"), NULL);
    json_t *run = json_loads(text, 0, NULL);
    sn_free(text);
    assert_true(json_is_true(json_object_get(run, "interrupted")));
    snprintf(script, sizeof script, "train --resume r --max-steps %lld",
             (long long)whole(run, "steps") + 1);
    json_decref(run);
    snug_quietly(0, script);
}

static void test_refusal_and_fixes(void **state)
{
    char path[SN_TEST_PATH], line[512];
    test_result r = typed(3, "train d -m cnn -s 64 -b 16 -j 1 -M 8M");
    const char *at = strstr(r.err, "\nfix:");
    int tried = 0;

    assert_contains(r.err, "Nothing was started or allocated.");
    assert_non_null(at);
    assert_false(test_exists(test_path(path, folder, "runs")));
    for (at = strchr(at + 1, '\n'); at && !strncmp(at, "\n  ", 3); at = strchr(at + 1, '\n')) {
        const char *add = strchr(at, '-'), *end = add ? strstr(add, "   ") : NULL;
        assert_non_null(end);
        snprintf(line, sizeof line, "plan d -m cnn -s 64 -b 16 -j 1 -M 8M --no-calibration %.*s",
                 (int)(end - add), add);
        snug_quietly(0, line);
        tried++;
    }
    assert_true(tried > 0);
    test_result_free(&r);
}

static void test_wrong_use(void **state)
{
    static const struct {
        const char *line;
        int exit_code;
        const char *err;
    } bad[] = {
        {"train", 2, "takes one DATA"},
        {"train d -b 0", 2, "--batch 0 is not a whole number"},
        {"train d -b -1", 2, "--batch -1 is not a whole number"},
        {"train d -b 9223372036854775807", 2, "is not a whole number"},
        {"train d -s 3y", 2, "--size 3y"},
        {"train d -s 0", 2, "--size 0"},
        {"train d --epoch 3", 2, "did you mean --epochs?"},
        {"train d -m mobilnet", 4, "did you mean 'mobilenet'?"},
        {"train d --optimizer sdg", 2, "optimizer 'sdg' is not known"},
        {"train d --optimizer sgd:lr=x", 2, "lr=x is no number"},
        {"train d -M lots", 2, "--memory lots is no size"},
        {"train d --color maybe", 2, "--color maybe is none of auto, always, never"},
        {"train nowhere", 4, "'nowhere' cannot be opened"},
        {"train one", 4, "one class only"},
        {"train empty", 4, "no class folders and no images"},
        {"train text", 4, "no image"},
        {"evaluate nowhere d", 4, "nowhere"},
        {"predict nowhere d", 4, "nowhere"},
        {"predict nowhere d --verbose", 2, "no option '--verbose'"},
    };
    char path[SN_TEST_PATH];

    images_bmp(test_path(path, folder, "one/a/1.bmp"), 1, 0);
    test_write_text(test_path(path, folder, "text/a/x.txt"), "hi");
    test_write_text(test_path(path, folder, "empty/x"), "");
    for (size_t i = 0; i < SN_LEN(bad); i++) {
        test_result r = typed(bad[i].exit_code, bad[i].line);
        assert_contains(r.err, bad[i].err);
        assert_string_equal(r.out, "");
        test_result_free(&r);
    }
}

static void test_default_training(void **state)
{
    char path[SN_TEST_PATH];

    snug_quietly(0, "train d --max-steps 1");
    assert_true(test_exists(test_path(path, folder, "runs/mobilenetv2/last.safetensors")));
}

static void test_evaluate_and_predict(void **state)
{
    char path[SN_TEST_PATH];
    size_t n;

    snug_quietly(0, "train d" TINY "-e 1 -o r");
    test_result r = typed(0, "evaluate r d --json --quiet");
    json_t *json = json_loads(r.out, 0, NULL);
    assert_int_equal(whole(json, "samples"), 24);
    assert_string_equal(r.err, "");
    json_decref(json);
    test_result_free(&r);
    snug_quietly(2, "predict r d/c0 --limit -1");
    snug_quietly(2, "predict r d/c0 --limit 2x");
    /* A diverging run names where the first NaN came from. */
    r = typed(1, "train d" TINY "-e 9 -l 1e6 -o diverges");
    assert_contains(r.err, "of layer '");
    assert_contains(r.err, "try a learning rate below");
    test_result_free(&r);
    r = typed(0, "predict r d/c0 --limit 2 --json --quiet");
    json = json_loads(r.out, 0, NULL);
    assert_int_equal(json_array_size(json_object_get(json, "predictions")), 2);
    assert_string_equal(r.err, "");
    json_decref(json);
    test_result_free(&r);
    r = typed(0, "predict r d/c0 --limit 2 --quiet --csv p.csv --output p.npy");
    test_result_free(&r);
    char *text = test_read(test_path(path, folder, "p.npy"), &n);
    assert_contains(text + 10, "'shape': (2, 2)");
    assert_int_equal(n, 128 + 2 * 2 * 4);
    sn_free(text);
    text = test_read(test_path(path, folder, "p.csv"), NULL);
    assert_contains(text, "d/c0/01.bmp");
    assert_null(strstr(text, "d/c0/02.bmp"));
    sn_free(text);
}

/* Real targets are learned by a last layer without softmax: the loss of a linear function falls. */
static void test_regression(void **state)
{
    char path[SN_TEST_PATH], csv[16384];
    size_t n = (size_t)snprintf(csv, sizeof csv, "a,b,target\n");

    for (int i = 0; i < 300; i++) {
        double a = (i * 37 % 101) / 101.0 - .5, b = (i * 53 % 97) / 97.0 - .5;
        n += (size_t)snprintf(csv + n, sizeof csv - n, "%.5f,%.5f,%.5f\n", a, b, 2 * a - b + .1234);
    }
    test_write_text(test_path(path, folder, "r.csv"), csv);
    test_result r =
        typed(0, "train r.csv --label-column target -e 6 -b 8 -j 1 -o run --json --quiet");
    json_t *run = json_loads(r.out, 0, NULL), *epochs = json_object_get(run, "epochs");
    test_result_free(&r);
    double first = json_real_value(json_object_get(json_array_get(epochs, 0), "val_loss"));
    double last = json_real_value(json_object_get(json_array_get(epochs, 5), "val_loss"));
    if (!(first > 0 && last < first / 4))
        fail_msg("validation loss %g after one epoch, %g after six", first, last);
    json_decref(run);
    /* The same file with the target among its columns is not what the network takes. */
    r = typed(4, "predict run r.csv");
    assert_contains(r.err, "a sample of the data is 3 numbers, the run takes 2");
    assert_contains(r.err, "--label-column NAME leaves it out");
    assert_string_equal(r.out, "");
    test_result_free(&r);
    test_write_text(test_path(path, folder, "narrow.csv"), "a\n0.5\n");
    r = typed(4, "predict run narrow.csv");
    assert_contains(r.err, "a sample of the data is 1 number, the run takes 2");
    test_result_free(&r);
    r = typed(0, "predict run r.csv --label-column target --limit 3 --json --quiet");
    json_t *root = json_loads(r.out, 0, NULL), *rows = json_object_get(root, "predictions");
    assert_int_equal(json_array_size(rows), 3);
    for (size_t i = 0; i < 3; i++) {
        double a = ((int)i * 37 % 101) / 101.0 - .5, b = ((int)i * 53 % 97) / 97.0 - .5;
        const json_t *output = json_object_get(json_array_get(rows, i), "output");
        double got = json_number_value(json_array_get(output, 0)), want = 2 * a - b + .1234;
        if (!(got > want - .4 && got < want + .4))
            fail_msg("row %zu: %g, the function is %g there", i, got, want);
    }
    json_decref(root);
    test_result_free(&r);
}

/* A class whose name is not UTF-8 is known again. */
static void test_names_of_any_bytes(void **state)
{
    char path[SN_TEST_PATH];

    images_bmp(test_path(path, folder, "any/c\xe9t/1.bmp"), 1, 0);
    images_bmp(test_path(path, folder, "any/c\xe9t/2.bmp"), 2, 0);
    images_bmp(test_path(path, folder, "any/dog/1.bmp"), 3, 100);
    images_bmp(test_path(path, folder, "other/cat/1.bmp"), 1, 0);
    images_bmp(test_path(path, folder, "other/dog/1.bmp"), 3, 100);
    snug_quietly(0, "train any" TINY "-e 1 -o any-run");
    snug_quietly(0, "evaluate any-run any");
    test_result r = typed(4, "evaluate any-run other");
    assert_contains(r.err, "class 0 is 'cat' in the data and 'class 0' in the run");
    test_result_free(&r);
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, typed_set_up, typed_tear_down)
    const struct CMUnitTest tests[] = {
        T(test_names_of_any_bytes),
        T(test_regression),
        T(test_run_folder),
        T(test_resume),
        T(test_interrupt),
        T(test_refusal_and_fixes),
        T(test_wrong_use),
        T(test_default_training),
        T(test_evaluate_and_predict),
    };

    return cmocka_run_group_tests_name("cli/train", tests, NULL, NULL);
}
