/* SPDX-License-Identifier: Apache-2.0
 *
 * Listing folders: what is a class, what is an image, what is said about the rest; splits, held-out
 * samples; memory that does not grow with the number of files.
 */
#include "photos.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/host.h"

static char folder[SN_TEST_PATH];

static int make_folder(void **state)
{
    test_make_folder(folder);
    return 0;
}

static int remove_folder(void **state)
{
    test_remove(folder);
    return 0;
}

static void put(const char *name)
{
    char path[SN_TEST_PATH];

    photos_copy(test_path(path, folder, name), 0);
}

static void put_text(const char *name, const char *text)
{
    char path[SN_TEST_PATH];

    test_write_text(test_path(path, folder, name), text);
}

static void refused(snug_status status, const char *why)
{
    snug_data_options o = photos_options();
    snug_error err = SNUG_ERROR_INIT;
    snug_data *data = (snug_data *)1;

    assert_fails(snug_data_open(&data, folder, &o, &err), status, &err);
    assert_null(data);
    assert_contains(err.what, why);
    assert_no_leak();
}

/* All notes in one text. */
static char *notes_of(const snug_data *data)
{
    static char text[4096];

    text[0] = '\0';
    for (size_t i = 0; i < snug_data_n_notes(data); i++) {
        size_t n = strlen(text);
        snprintf(text + n, sizeof text - n, "%s\n", snug_data_note(data, i));
    }
    return text;
}

static void test_classes_and_files_in_natural_order(void **state)
{
    snug_data_options o = photos_options();
    snug_error err = SNUG_ERROR_INIT;
    char name[256];
    static const char *const expected[] = {"2/a.jpg",         "2/b2.png",     "2/b10.bmp",
                                           "2/deep/er/z.jpg", "10/no_suffix", "10/\xff\xfe.jpg",
                                           "b/x.JPG"};

    put("10/\xff\xfe.jpg");
    put("10/no_suffix");
    put("2/b10.bmp");
    put("2/b2.png");
    put("2/a.jpg");
    put("2/deep/er/z.jpg");
    put("b/x.JPG");
    put(".ipynb_checkpoints/x.jpg");
    put("__MACOSX/x.jpg");
    put("b/.hidden.jpg");
    put("beside.jpg");
    put_text("b/readme.txt", "hello");
    put_text("b/scan.tif", "II*\0 and so on");
    put_text("b/more.TIF", "II*\0 and so on");
    snug_data *data = photos_open(folder, &o);
    assert_int_equal(snug_data_n_classes(data), 3);
    assert_string_equal(snug_data_class_name(data, 0), "2");
    assert_string_equal(snug_data_class_name(data, 1), "10");
    assert_string_equal(snug_data_class_name(data, 2), "b");
    assert_null(snug_data_class_name(data, 3));
    assert_int_equal(snug_data_class_count(data, 0), 4);
    assert_int_equal(snug_data_class_count(data, 1), 2);
    assert_int_equal(snug_data_class_count(data, 2), 1);
    assert_int_equal(snug_data_n(data, SNUG_SUBSET_ALL), SN_LEN(expected));
    for (uint64_t i = 0; i < SN_LEN(expected); i++) {
        assert_ok(snug_data_name(data, i, name, sizeof name, &err), &err);
        assert_string_equal(name, expected[i]);
    }
    assert_fails(snug_data_name(data, 7, name, sizeof name, &err), SNUG_E_USAGE, &err);
    assert_contains(notes_of(data), "1 images lie beside the class folders");
    assert_contains(notes_of(data), "ignored 3 files: 2 .tif (a TIFF), 1 .txt");
    snug_data_free(data);
    assert_no_leak();
}

static void test_empty_class_is_kept(void **state)
{
    snug_data_options o = photos_options();
    char path[SN_TEST_PATH];

    put("a/1.jpg");
    put("c/1.jpg");
    assert_int_equal(mkdir(test_path(path, folder, "b"), 0700), 0);
    snug_data *data = photos_open(folder, &o);
    assert_int_equal(snug_data_n_classes(data), 3);
    assert_int_equal(snug_data_class_count(data, 1), 0);
    assert_contains(notes_of(data), "class folder 'b' is empty");
    snug_data_free(data);
    assert_no_leak();
}

static void test_what_is_no_data_set(void **state)
{
    refused(SNUG_E_INPUT, "has no class folders and no images");
    put_text("a/1.txt", "text");
    put_text("b/1.txt", "text");
    refused(SNUG_E_INPUT, "has 2 class folders but no image");
    put("a/1.jpg");
    test_remove(folder);
    put("a/1.jpg");
    refused(SNUG_E_INPUT, "has one class only ('a')");
    test_remove(folder);
    put("1.jpg");
    refused(SNUG_E_INPUT, "has 1 images but no class folders");
    test_remove(folder);
    refused(SNUG_E_NOT_FOUND, "cannot be opened");
}

static void test_lenient_takes_them(void **state)
{
    snug_data_options o = photos_options();

    o.lenient = 1;
    put("1.jpg");
    put("10.jpg");
    put("2.jpg");
    snug_data *data = photos_open(folder, &o);
    assert_int_equal(snug_data_n(data, SNUG_SUBSET_ALL), 3);
    assert_int_equal(snug_data_n_classes(data), 0);
    snug_data_free(data);
    test_remove(folder);
    put("a/1.jpg");
    data = photos_open(folder, &o);
    assert_int_equal(snug_data_n_classes(data), 1);
    snug_data_free(data);
    assert_no_leak();
}

static void test_files_for_prediction(void **state)
{
    snug_data_options o = photos_options();
    snug_error err = SNUG_ERROR_INIT;
    char a[SN_TEST_PATH], b[SN_TEST_PATH], name[SN_TEST_PATH];
    snug_data *data;
    snug_slot slot = {0};

    put("many/10.jpg");
    put("many/9.jpg");
    put("one.jpg");
    const char *const paths[] = {test_path(a, folder, "one.jpg"), test_path(b, folder, "many")};
    assert_ok(snug_data_open_files(&data, paths, 2, &o, &err), &err);
    assert_int_equal(snug_data_n(data, SNUG_SUBSET_ALL), 3);
    snug_source s = photos_start(data, 8, 0, 1, SNUG_SUBSET_ALL);
    assert_ok(s.reset(s.context, 0, 0, &err), &err);
    assert_ok(s.next(s.context, &slot, &err), &err);
    assert_int_equal(slot.n, 3);
    assert_null(slot.classes);
    assert_ok(snug_data_name(data, slot.positions[1], name, sizeof name, &err), &err);
    assert_contains(name, "many/9.jpg");
    snug_data_free(data);
    const char *const missing[] = {"/nothing/here.jpg"};
    assert_fails(snug_data_open_files(&data, missing, 1, &o, &err), SNUG_E_NOT_FOUND, &err);
    assert_no_leak();
}

static void test_split_folders(void **state)
{
    snug_data_options o = photos_options();
    snug_error err = SNUG_ERROR_INIT;
    snug_slot slot = {0};

    put("Train/cat/1.jpg");
    put("Train/cat/2.jpg");
    put("Train/dog/1.jpg");
    put("valid/dog/7.jpg");
    put("test/cat/8.jpg");
    put("test/dog/9.jpg");
    o.validation_split = 0.5; /* not used: there is a validation part */
    snug_data *data = photos_open(folder, &o);
    assert_int_equal(snug_data_n_classes(data), 2);
    assert_int_equal(snug_data_n(data, SNUG_SUBSET_TRAIN), 3);
    assert_int_equal(snug_data_n(data, SNUG_SUBSET_VALIDATION), 1);
    assert_int_equal(snug_data_n(data, SNUG_SUBSET_TEST), 2);
    assert_int_equal(snug_data_class_count(data, 0), 2);
    assert_contains(notes_of(data),
                    "a split, not classes: Train (training), valid (validation), test (test)");
    snug_source s = photos_start(data, 8, 0, 1, SNUG_SUBSET_VALIDATION);
    assert_ok(s.reset(s.context, 0, 0, &err), &err);
    assert_ok(s.next(s.context, &slot, &err), &err);
    assert_int_equal(slot.n, 1);
    assert_int_equal(slot.classes[0], 1);
    snug_data_free(data);
    /* One more folder, and they are classes. */
    put("other/1.jpg");
    data = photos_open(folder, &o);
    assert_int_equal(snug_data_n_classes(data), 4);
    snug_data_free(data);
    test_remove(folder);
    put("train/cat/1.jpg");
    put("train/dog/1.jpg");
    put("val/fish/1.jpg");
    refused(SNUG_E_INPUT, "class 'fish' of 'val' is not among the training classes");
}

static void test_validation_folder(void **state)
{
    snug_data_options o = photos_options();
    char train[SN_TEST_PATH], other[SN_TEST_PATH], name[SN_TEST_PATH];
    snug_error err = SNUG_ERROR_INIT;

    put("t/a/1.jpg");
    put("t/b/1.jpg");
    put("v/b/5.jpg");
    put("v/b/6.jpg");
    o.validation_path = test_path(other, folder, "v");
    snug_data *data = photos_open(test_path(train, folder, "t"), &o);
    assert_int_equal(snug_data_n(data, SNUG_SUBSET_TRAIN), 2);
    assert_int_equal(snug_data_n(data, SNUG_SUBSET_VALIDATION), 2);
    assert_ok(snug_data_name(data, 2, name, sizeof name, &err), &err);
    assert_contains(name, "/v/b/5.jpg");
    snug_data_free(data);
    assert_no_leak();
}

static void test_links(void **state)
{
    snug_data_options o = photos_options();
    char path[SN_TEST_PATH], target[SN_TEST_PATH];

    put("a/1.jpg");
    put("b/1.jpg");
    put("elsewhere/2.jpg");
    assert_int_equal(symlink("..", test_path(path, folder, "a/loop")), 0);
    assert_int_equal(symlink("nowhere", test_path(path, folder, "a/dangling.jpg")), 0);
    assert_int_equal(
        symlink(test_path(target, folder, "elsewhere/2.jpg"), test_path(path, folder, "b/2.jpg")),
        0);
    assert_int_equal(mkfifo(test_path(path, folder, "b/pipe.jpg"), 0600), 0);
    snug_data *data = photos_open(folder, &o);
    assert_int_equal(snug_data_n_classes(data), 3);
    assert_int_equal(snug_data_class_count(data, 1), 2);
    /* The loop ends where it comes back to itself. */
    assert_true(snug_data_class_count(data, 0) >= 1 && snug_data_class_count(data, 0) < 10);
    snug_data_free(data);
    assert_no_leak();
}

/* --- held-out samples --------------------------------------------------------------------------*/

/* The indices of an epoch as flags. */
static void visit(snug_data *data, snug_subset subset, uint64_t epoch, uint8_t *seen)
{
    snug_source s;
    snug_error err = SNUG_ERROR_INIT;
    snug_slot slot = {0};

    assert_ok(snug_data_source(&s, data, subset, &err), &err);
    assert_ok(s.reset(s.context, epoch, 0, &err), &err);
    while (!s.next(s.context, &slot, &err) && slot.n)
        for (int64_t i = 0; i < slot.n; i++)
            seen[slot.positions[i]]++;
}

static void test_held_out_samples(void **state)
{
    static const double splits[] = {0.05, 0.1, 0.25, 0.5, 0.66, 0.9, 0.999};
    snug_data_options o = photos_options();
    uint8_t train[60], held[60], again[60], other[60];
    bool differs = false;

    o.height = o.width = 1;
    photos_make(folder, 3, 20);
    for (size_t k = 0; k < SN_LEN(splits); k++) {
        o.validation_split = splits[k];
        o.seed = 5;
        memset(train, 0, sizeof train);
        memset(held, 0, sizeof held);
        memset(again, 0, sizeof again);
        memset(other, 0, sizeof other);
        snug_data *data = photos_open(folder, &o);
        photos_start(data, 16, 0, 1, SNUG_SUBSET_TRAIN);
        visit(data, SNUG_SUBSET_TRAIN, 0, train);
        visit(data, SNUG_SUBSET_VALIDATION, 0, held);
        visit(data, SNUG_SUBSET_VALIDATION, 1, again);
        size_t by_class[3] = {0}, n = 0;
        for (size_t i = 0; i < 60; i++) {
            assert_int_equal(train[i] + held[i], 1);
            by_class[i / 20] += held[i];
            n += held[i];
        }
        assert_int_equal(n, snug_data_n(data, SNUG_SUBSET_VALIDATION));
        assert_int_equal(n, SN_MIN((size_t)(splits[k] * 60 + 0.5), 59));
        for (size_t c = 0; c < 3; c++)
            assert_true(by_class[c] + 1 >= n / 3 && by_class[c] <= n / 3 + 1);
        assert_memory_equal(held, again, sizeof held);
        snug_data_free(data);
        o.seed = 6;
        data = photos_open(folder, &o);
        photos_start(data, 16, 0, 1, SNUG_SUBSET_TRAIN);
        visit(data, SNUG_SUBSET_VALIDATION, 0, other);
        differs = differs || memcmp(held, other, sizeof held) != 0;
        snug_data_free(data);
    }
    assert_true(differs);
    assert_no_leak();
}

static void test_options_out_of_range(void **state)
{
    static const struct {
        int64_t height, width, channels;
        double split;
        float zoom;
        int scale;
    } bad[] = {{-1, 8, 0, 0, 0, 0},    {8, 65536, 0, 0, 0, 0},    {8, 8, 2, 0, 0, 0},
               {8, 8, 4, 0, 0, 0},     {8, 8, 3, 1.0, 0, 0},      {8, 8, 3, -0.1, 0, 0},
               {8, 8, 3, 0, 1.0f, 0},  {8, 8, 3, 0, 0, 99},       {65535, 65535, 3, 0, 0, 0},
               {8, 8, 3, 0, -0.1f, 0}, {INT64_MAX, 8, 3, 0, 0, 0}};

    photos_make(folder, 2, 1);
    for (size_t i = 0; i < SN_LEN(bad); i++) {
        snug_data_options o = SNUG_DATA_OPTIONS_INIT;
        snug_error err = SNUG_ERROR_INIT;
        snug_data *data;
        o.height = bad[i].height;
        o.width = bad[i].width;
        o.channels = bad[i].channels;
        o.validation_split = bad[i].split;
        o.augment.zoom = bad[i].zoom;
        o.scale = (snug_scale)bad[i].scale;
        assert_fails(snug_data_open(&data, folder, &o, &err), SNUG_E_USAGE, &err);
    }
    assert_no_leak();
}

/* --- many files --------------------------------------------------------------------------------*/

/* Resident bytes gained, and the most that the ledger held, by listing n hard links. */
static uint64_t list_many(size_t n)
{
    snug_data_options o = photos_options();
    char first[SN_TEST_PATH], path[SN_TEST_PATH], name[64];
    uint64_t before, after;

    put("a/0.jpg");
    put("b/0.jpg");
    test_path(first, folder, "a/0.jpg");
    for (size_t i = 1; i < n; i++) {
        snprintf(name, sizeof name, "a/some_photo_%zu.jpg", i * 7919 % n);
        assert_int_equal(link(first, test_path(path, folder, name)), 0);
    }
    assert_int_equal(sn_host_process_resident(&before, NULL), SNUG_OK);
    snug_data *data = photos_open(folder, &o);
    assert_int_equal(snug_data_n(data, SNUG_SUBSET_ALL), n + 1);
    assert_int_equal(sn_host_process_resident(&after, NULL), SNUG_OK);
    /* In order, over several runs of the sorter. */
    for (uint64_t i = 1; i < n; i += n / 50 + 1) {
        snug_error err = SNUG_ERROR_INIT;
        snprintf(path, sizeof path, "a/some_photo_%" PRIu64 ".jpg", i);
        assert_ok(snug_data_name(data, i, name, sizeof name, &err), &err);
        assert_string_equal(name, path);
    }
    assert_true(sn_ledger_live_bytes() < 256 * 1024);
    snug_data_free(data);
    test_remove(folder);
    return after > before ? after - before : 0;
}

static void test_memory_does_not_grow_with_files(void **state)
{
    uint64_t few = list_many(500), many = list_many(60000);

    assert_true(sn_ledger_peak_bytes() < 4 * SN_MIB);
    assert_true(many < few + 4 * SN_MIB);
    assert_no_leak();
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)
    const struct CMUnitTest tests[] = {
        T(test_memory_does_not_grow_with_files),
        T(test_classes_and_files_in_natural_order),
        T(test_empty_class_is_kept),
        T(test_what_is_no_data_set),
        T(test_lenient_takes_them),
        T(test_files_for_prediction),
        T(test_split_folders),
        T(test_validation_folder),
        T(test_links),
        T(test_held_out_samples),
        T(test_options_out_of_range),
    };

    return cmocka_run_group_tests_name("data/scan", tests, NULL, NULL);
}
