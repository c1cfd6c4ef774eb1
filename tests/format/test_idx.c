/* SPDX-License-Identifier: Apache-2.0
 *
 * IDX files: plain and gzipped, companions found beside, wrong magic numbers and lengths.
 */
#include "arrays.h"

#include <unistd.h>

#include <zlib.h>

static char folder[SN_TEST_PATH], images[SN_TEST_PATH], labels[SN_TEST_PATH];
static snug_data_options options;

static int set_up(void **state)
{
    test_make_folder(folder);
    test_path(images, folder, "train-images-idx3-ubyte");
    test_path(labels, folder, "train-labels-idx1-ubyte");
    options = (snug_data_options)SNUG_DATA_OPTIONS_INIT;
    options.no_shuffle = 1;
    return 0;
}

static int tear_down(void **state)
{
    test_remove(folder);
    return 0;
}

static size_t put32(uint8_t *p, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        p[i] = (uint8_t)(v >> (24 - 8 * i));
    return 4;
}

static void write_file(const char *path, const uint8_t *bytes, size_t n, bool gzipped)
{
    if (!gzipped) {
        test_write(path, bytes, n);
        return;
    }
    char named[SN_TEST_PATH + 4];
    snprintf(named, sizeof named, "%s.gz", path);
    test_write(named, "", 0); /* makes the folder */
    gzFile f = gzopen(named, "wb");
    assert_non_null(f);
    assert_int_equal(gzwrite(f, bytes, (unsigned)n), n);
    assert_int_equal(gzclose(f), Z_OK);
}

/* n images of 3x4 whose pixels count up from `first`. */
static size_t make_images(uint8_t *out, uint32_t n, uint8_t first)
{
    size_t at = put32(out, 0x00000803);

    at += put32(out + at, n);
    at += put32(out + at, 3);
    at += put32(out + at, 4);
    for (uint32_t i = 0; i < n * 12; i++)
        out[at++] = (uint8_t)(first + i);
    return at;
}

static size_t make_labels(uint8_t *out, uint32_t n)
{
    size_t at = put32(out, 0x00000801);

    at += put32(out + at, n);
    for (uint32_t i = 0; i < n; i++)
        out[at++] = (uint8_t)(i % 4);
    return at;
}

static void make_set(bool gzipped)
{
    uint8_t bytes[256];
    char path[SN_TEST_PATH];

    write_file(images, bytes, make_images(bytes, 8, 0), gzipped);
    write_file(labels, bytes, make_labels(bytes, 8), gzipped);
    write_file(test_path(path, folder, "t10k-images-idx3-ubyte"), bytes, make_images(bytes, 2, 100),
               gzipped);
    write_file(test_path(path, folder, "t10k-labels-idx1-ubyte"), bytes, make_labels(bytes, 2),
               gzipped);
}

static void check_set(const char *path)
{
    float x[8 * 12];
    int32_t classes[8];
    int rank;

    snug_data *data = arrays_open(path, &options);
    const int64_t *shape = snug_data_sample_shape(data, &rank);
    assert_int_equal(shape[0] * 100 + shape[1] * 10 + shape[2], 341);
    assert_int_equal(snug_data_n_classes(data), 4);
    assert_string_equal(snug_data_class_name(data, 3), "3");
    assert_int_equal(snug_data_class_count(data, 3), 2);
    assert_contains(snug_data_note(data, 0), "is the test set");
    assert_int_equal(arrays_read(data, SNUG_SUBSET_TRAIN, x, classes, NULL), 8);
    assert_true(x[0] == 0 && x[95] == 95.0f / 255.0f);
    assert_int_equal(classes[7], 3);
    assert_int_equal(arrays_read(data, SNUG_SUBSET_TEST, x, classes, NULL), 2);
    assert_true(x[0] == 100.0f / 255.0f);
    assert_int_equal(classes[1], 1);
    snug_data_free(data);
    assert_no_leak();
}

static void test_plain_and_gzipped(void **state)
{
    char path[SN_TEST_PATH];

    make_set(false);
    check_set(images);
    check_set(folder);
    test_remove(folder);
    make_set(true);
    check_set(test_path(path, folder, "train-images-idx3-ubyte.gz"));
    check_set(folder);
}

static void test_class_names(void **state)
{
    char path[SN_TEST_PATH], fashion[SN_TEST_PATH];
    uint8_t bytes[256];

    make_set(false);
    test_write_text(test_path(path, folder, "classes.txt"), "zero\none\r\ntwo\nthree\n");
    snug_data *data = arrays_open(images, &options);
    assert_string_equal(snug_data_class_name(data, 1), "one");
    assert_string_equal(snug_data_class_name(data, 3), "three");
    snug_data_free(data);
    test_write_text(path, "zero\none\n");
    assert_refused(images, &options, SNUG_E_INPUT, "2 names for 4 classes");
    test_path(fashion, folder, "fashion-mnist/train-images-idx3-ubyte");
    test_write(fashion, bytes, make_images(bytes, 10, 0));
    size_t n = make_labels(bytes, 10);
    for (size_t i = 0; i < 10; i++)
        bytes[8 + i] = (uint8_t)i;
    test_write(test_path(path, folder, "fashion-mnist/train-labels-idx1-ubyte"), bytes, n);
    data = arrays_open(fashion, &options);
    assert_string_equal(snug_data_class_name(data, 9), "Ankle boot");
    snug_data_free(data);
    assert_no_leak();
}

static void test_wrong_files(void **state)
{
    uint8_t bytes[256];
    size_t n = make_images(bytes, 8, 0);

    make_set(false);
    bytes[3] = 1;
    test_write(images, bytes, 8 + 8);
    assert_refused(images, &options, SNUG_E_INPUT, "1 dimensions");
    n = make_images(bytes, 8, 0);
    bytes[2] = 0x0d;
    test_write(images, bytes, n);
    assert_refused(images, &options, SNUG_E_UNSUPPORTED, "type 0d");
    bytes[2] = 0x08;
    bytes[3] = 9;
    test_write(images, bytes, n);
    assert_refused(images, &options, SNUG_E_UNSUPPORTED, "of no known kind");
    bytes[3] = 3;
    test_write(images, bytes, n - 1);
    assert_refused(images, &options, SNUG_E_INPUT, "says 96 bytes, the file has 95 (cut off)");
    test_write(images, bytes, n + 1);
    assert_refused(images, &options, SNUG_E_INPUT, "the file has 97 (too long)");
    for (int i = 4; i < 16; i++)
        bytes[i] = 0xff;
    test_write(images, bytes, n);
    assert_refused(images, &options, SNUG_E_INPUT, "absurd");
    make_set(false);
    test_write(labels, bytes, make_labels(bytes, 7));
    assert_refused(images, &options, SNUG_E_INPUT, "7 labels (rank 1) for 8 images");
    assert_int_equal(unlink(labels), 0);
    assert_refused(images, &options, SNUG_E_NOT_FOUND, "no labels beside");
}

static void test_damaged_gzip(void **state)
{
    char path[SN_TEST_PATH];
    size_t n;

    make_set(true);
    test_path(path, folder, "train-images-idx3-ubyte.gz");
    char *read = test_read(path, &n), bytes[1024];
    assert_true(n <= sizeof bytes);
    memcpy(bytes, read, n);
    sn_free(read);
    for (size_t i = 4; i < n; i++) {
        test_write(path, bytes, i);
        assert_refused(path, &(snug_data_options){.struct_size = sizeof(snug_data_options)},
                       SNUG_E_INPUT, "train-images");
    }
    for (size_t bit = 80; bit < n * 8; bit++) {
        snug_data *data;
        snug_error err = SNUG_ERROR_INIT;
        bytes[bit / 8] ^= (char)(1 << bit % 8);
        test_write(path, bytes, n);
        /* The checksum sees every change of the contents; a few bits are padding. */
        if (!snug_data_open(&data, path, &options, &err)) {
            float x[8 * 12];
            assert_int_equal(arrays_read(data, SNUG_SUBSET_TRAIN, x, NULL, NULL), 8);
            for (int i = 0; i < 8 * 12; i++)
                assert_true(x[i] == (float)i / 255.0f);
            snug_data_free(data);
        }
        bytes[bit / 8] ^= (char)(1 << bit % 8);
    }
    assert_no_leak();
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(test_plain_and_gzipped),
        T(test_class_names),
        T(test_wrong_files),
        T(test_damaged_gzip),
    };

    return cmocka_run_group_tests_name("format/idx", tests, NULL, NULL);
}
