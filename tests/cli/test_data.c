/* SPDX-License-Identifier: Apache-2.0
 *
 * snug data: what it prints, exports and refuses.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "data/photos.h"

static char folder[SN_TEST_PATH];

static int set_up(void **state)
{
    test_make_folder(folder);
    return 0;
}

static int tear_down(void **state)
{
    test_remove(folder);
    return 0;
}

/* Up to four arguments after `snug data`. */
static test_result run(const char *a, const char *b, const char *c, const char *d)
{
    return test_run((const char *[]){test_command(), "data", a, b, c, d, NULL}, NULL, folder);
}

static void test_scan_in_words(void **state)
{
    char path[SN_TEST_PATH];

    photos_make(folder, 2, 6);
    test_write_text(test_path(path, folder, "class1/\xff\n.jpg"), "");
    test_write_text(test_path(path, folder, "class1/notes.txt"), "");
    test_result r = run(".", "-s", "16x24", NULL);
    assert_int_equal(r.exit_code, 0);
    assert_contains(r.out, ".   13 images, 2 classes, read as 16x24x3\n");
    assert_contains(r.out, "note    ignored 1 file: 1 .txt\n");
    assert_contains(r.out, "     1           7  class1\n");
    assert_contains(r.out, "decoded 12 images: ");
    assert_contains(r.out,
                    "skipped 1 file:\n        class1/\\xff\\x0a.jpg: empty file (0 bytes)\n");
    assert_string_equal(r.err, "");
    test_result_free(&r);
}

static void test_scan_as_json(void **state)
{
    char path[SN_TEST_PATH];
    json_error_t why;

    photos_make(folder, 2, 3);
    test_write_text(test_path(path, folder, "class0/\xff.jpg"), "GIF89a");
    test_result r = run(".", "--json", NULL, NULL);
    assert_int_equal(r.exit_code, 0);
    json_t *root = json_loads(r.out, 0, &why);
    assert_non_null(root);
    assert_int_equal(json_integer_value(json_object_get(root, "samples")), 7);
    assert_int_equal(json_integer_value(json_array_get(json_object_get(root, "shape"), 0)), 224);
    const json_t *first = json_array_get(json_object_get(root, "classes"), 0);
    assert_string_equal(json_string_value(json_object_get(first, "name")), "class0");
    assert_int_equal(json_integer_value(json_object_get(first, "count")), 4);
    assert_int_equal(json_integer_value(json_object_get(json_object_get(root, "files"), "decoded")),
                     6);
    const json_t *skipped = json_array_get(json_object_get(root, "skipped_files"), 0);
    assert_string_equal(json_string_value(json_object_get(skipped, "file")), "class0/\\xff.jpg");
    assert_contains(json_string_value(json_object_get(skipped, "why")), "is a GIF");
    json_decref(root);
    test_result_free(&r);
}

static void test_export(void **state)
{
    char path[SN_TEST_PATH];
    size_t n_floats, n_bytes;

    photos_make(folder, 2, 3);
    test_result r = run(".", "-s=5x4", "--export=x.npy", NULL);
    assert_int_equal(r.exit_code, 0);
    assert_contains(r.out, "wrote   6 samples to x.npy\n");
    test_result_free(&r);
    r = run(".", "-s=5x4", "--export=b.npy", "--uint8");
    assert_int_equal(r.exit_code, 0);
    test_result_free(&r);
    char *floats = test_read(test_path(path, folder, "x.npy"), &n_floats);
    char *bytes = test_read(test_path(path, folder, "b.npy"), &n_bytes);
    assert_contains(floats + 10, "'shape': (6, 5, 4, 3)");
    assert_int_equal(n_floats, 128 + 6 * 5 * 4 * 3 * 4);
    assert_int_equal(n_bytes, 128 + 6 * 5 * 4 * 3);
    for (size_t i = 0; i < 6 * 5 * 4 * 3; i++) {
        float f;
        memcpy(&f, floats + 128 + 4 * i, 4);
        assert_int_equal((uint8_t)bytes[128 + i], (uint8_t)floorf(f + 0.5f));
    }
    sn_free(floats);
    sn_free(bytes);
    /* The result does not lie where images are looked for, and nothing else was left. */
    assert_int_equal(test_count_entries(folder), 4);
}

static void test_wrong_use(void **state)
{
    static const struct {
        const char *arguments[3];
        int exit_code;
        const char *err;
    } bad[] = {
        {{NULL}, 2, "DATA is missing"},
        {{".", "--siz", "3"}, 2, "unknown option '--siz'; did you mean '--size'?"},
        {{".", "-s", "0"}, 2, "'0' is no value for -s"},
        {{".", "-s", "12x"}, 2, "'12x' is no value for -s"},
        {{".", "--scale", "2"}, 2, "'2' is no value for --scale"},
        {{".", "--fit"}, 2, "--fit wants a value"},
        {{".", "--uint8"}, 2, "--uint8 belongs to --export"},
        {{".", ".."}, 2, "one DATA at a time"},
        {{"nowhere"}, 4, "'nowhere' cannot be opened: No such file or directory"},
        {{"t.csv", "--label-column", "y"}, 4, "no column 'y'"},
        {{"text"}, 4, "'text' is of no known kind"},
    };
    char path[SN_TEST_PATH];

    test_write_text(test_path(path, folder, "t.csv"), "a,b\n1,2\n");
    test_write_text(test_path(path, folder, "text"), "hello\n");
    for (size_t i = 0; i < SN_LEN(bad); i++) {
        test_result r = run(bad[i].arguments[0], bad[i].arguments[1], bad[i].arguments[2], NULL);
        if (r.exit_code != bad[i].exit_code)
            fail_msg("case %zu: exit %d: %s", i, r.exit_code, r.err);
        assert_contains(r.err, bad[i].err);
        assert_string_equal(r.out, "");
        test_result_free(&r);
    }
    /* Not one good image. */
    test_write_text(test_path(path, folder, "p/a/1.jpg"), "no");
    test_write_text(test_path(path, folder, "p/b/1.jpg"), "no");
    test_result r = run("p", "--quiet", NULL, NULL);
    assert_int_equal(r.exit_code, 4);
    assert_contains(r.out, "a/1.jpg: no image: begins with bytes 6e 6f 00 00");
    assert_contains(r.err, "not one image can be decoded");
    test_result_free(&r);
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(test_scan_in_words),
        T(test_scan_as_json),
        T(test_export),
        T(test_wrong_use),
    };

    return cmocka_run_group_tests_name("cli/data", tests, NULL, NULL);
}
