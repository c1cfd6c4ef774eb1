/* SPDX-License-Identifier: Apache-2.0
 *
 * .npy data sets: types, shapes, labels, resizing; nonsense in headers; what is exported is read
 * again.
 */
#include "arrays.h"

#include <math.h>

#include "format/npy.h"

static char folder[SN_TEST_PATH], path[SN_TEST_PATH], labels[SN_TEST_PATH];
static snug_data_options options;

static int set_up(void **state)
{
    test_make_folder(folder);
    test_path(path, folder, "x.npy");
    test_path(labels, folder, "y.npy");
    options = (snug_data_options)SNUG_DATA_OPTIONS_INIT;
    options.labels_path = labels;
    options.no_shuffle = 1;
    return 0;
}

static int tear_down(void **state)
{
    test_remove(folder);
    return 0;
}

static void write_npy(const char *to, const char *descr, int rank, const int64_t *shape,
                      const void *bytes, size_t n)
{
    char file[4096];

    assert_true(sn_npy_header(file, descr, rank, shape));
    memcpy(file + SN_NPY_HEADER, bytes, n);
    test_write(to, file, SN_NPY_HEADER + n);
}

static void write_labels(int64_t n)
{
    int64_t y[16];

    for (int64_t i = 0; i < n; i++)
        y[i] = i % 3;
    write_npy(labels, "<i8", 1, &n, y, (size_t)n * 8);
}

static void test_pixels_are_scaled(void **state)
{
    uint8_t x[4 * 2 * 3 * 3];
    float got[4 * 2 * 3 * 3];
    int32_t classes[4];
    int rank;

    for (size_t i = 0; i < sizeof x; i++)
        x[i] = (uint8_t)(i * 3);
    write_npy(path, "|u1", 4, (const int64_t[]){4, 2, 3, 3}, x, sizeof x);
    write_labels(4);
    snug_data *data = arrays_open(path, &options);
    const int64_t *shape = snug_data_sample_shape(data, &rank);
    assert_int_equal(rank, 3);
    assert_int_equal(shape[0] * 100 + shape[1] * 10 + shape[2], 233);
    assert_int_equal(snug_data_scale(data), SNUG_SCALE_0_1);
    assert_int_equal(snug_data_n_classes(data), 3);
    assert_int_equal(snug_data_class_count(data, 0), 2);
    assert_int_equal(arrays_read(data, SNUG_SUBSET_TRAIN, got, classes, NULL), 4);
    for (size_t i = 0; i < sizeof x; i++)
        assert_true(got[i] == (float)x[i] / 255.0f);
    assert_int_equal(classes[3], 0);
    snug_data_free(data);
    assert_no_leak();
}

static void test_numbers_are_fed_as_they_are(void **state)
{
    static const struct {
        const char *descr;
        size_t size;
    } types[] = {{"<f4", 4}, {"<f8", 8}, {"<i4", 4}, {"<i8", 8}, {"<i2", 2}, {"|i1", 1}};
    float got[10];

    write_labels(5);
    options.scale = SNUG_SCALE_0_1; /* does not apply, which is said */
    for (size_t t = 0; t < SN_LEN(types); t++) {
        char bytes[80];
        for (int i = 0; i < 10; i++) {
            float f = (float)(i - 4);
            double d = i - 4;
            int64_t w = i - 4;
            memcpy(bytes + (size_t)i * types[t].size,
                   types[t].descr[1] == 'i' ? (void *)&w
                   : types[t].size == 4     ? (void *)&f
                                            : (void *)&d,
                   types[t].size);
        }
        write_npy(path, types[t].descr, 2, (const int64_t[]){5, 2}, bytes, 10 * types[t].size);
        snug_data *data = arrays_open(path, &options);
        assert_contains(snug_data_note(data, 0), "the scale 0..1 does not apply");
        assert_int_equal(arrays_read(data, SNUG_SUBSET_TRAIN, got, NULL, NULL), 5);
        for (int i = 0; i < 10; i++)
            assert_true(got[i] == (float)(i - 4));
        snug_data_free(data);
    }
    assert_no_leak();
}

static void test_targets_are_regression(void **state)
{
    float x[6] = {1, 2, 3, 4, 5, 6}, y[6] = {0.5f, -1, 2, 3, 4, 1e6f}, got[6];

    write_npy(path, "<f4", 2, (const int64_t[]){3, 2}, x, sizeof x);
    write_npy(labels, "<f4", 2, (const int64_t[]){3, 2}, y, sizeof y);
    snug_data *data = arrays_open(path, &options);
    assert_true(snug_data_is_regression(data));
    assert_int_equal(snug_data_n_targets(data), 2);
    assert_int_equal(arrays_read(data, SNUG_SUBSET_TRAIN, NULL, NULL, got), 3);
    assert_memory_equal(got, y, sizeof y);
    snug_data_free(data);
    assert_no_leak();
}

static void test_resized_and_channels(void **state)
{
    uint8_t x[2 * 4 * 4];
    float got[2 * 2 * 2 * 3];

    for (size_t i = 0; i < sizeof x; i++)
        x[i] = (uint8_t)(i * 5);
    write_npy(path, "|u1", 3, (const int64_t[]){2, 4, 4}, x, sizeof x);
    write_labels(2);
    options.height = options.width = 2;
    options.channels = 3;
    options.scale = SNUG_SCALE_0_255;
    snug_data *data = arrays_open(path, &options);
    assert_int_equal(arrays_read(data, SNUG_SUBSET_TRAIN, got, NULL, NULL), 2);
    /* Twofold reduction: the exact mean of 2x2. */
    for (int c = 0; c < 3; c++)
        assert_true(got[c] == (float)(x[0] + x[1] + x[4] + x[5]) / 4);
    snug_data_free(data);
    float f[32] = {0};
    write_npy(path, "<f4", 3, (const int64_t[]){2, 4, 4}, f, sizeof f);
    assert_refused(path, &options, SNUG_E_UNSUPPORTED, "only 8-bit pixels are resized");
}

static void test_validation_file(void **state)
{
    char other[SN_TEST_PATH], other_labels[SN_TEST_PATH];
    float x[8] = {1, 2, 3, 4, 5, 6, 7, 8}, got[8];
    int32_t classes[4];
    int64_t y[4] = {2, 1, 0, 2};

    write_npy(path, "<f4", 2, (const int64_t[]){4, 2}, x, sizeof x);
    write_npy(labels, "<i8", 1, (const int64_t[]){4}, y, sizeof y);
    test_path(other, folder, "val/x.npy");
    test_path(other_labels, folder, "val/y.npy");
    write_npy(other, "<f4", 2, (const int64_t[]){2, 2}, x + 4, 16);
    write_npy(other_labels, "<i8", 1, (const int64_t[]){2}, y + 1, 16);
    options.validation_path = other;
    snug_data *data = arrays_open(path, &options);
    assert_int_equal(snug_data_n(data, SNUG_SUBSET_TRAIN), 4);
    assert_int_equal(arrays_read(data, SNUG_SUBSET_VALIDATION, got, classes, NULL), 2);
    assert_memory_equal(got, x + 4, 16);
    assert_int_equal(classes[0], 1);
    assert_int_equal(classes[1], 0);
    snug_data_free(data);
    write_npy(other, "<f4", 2, (const int64_t[]){1, 4}, x + 4, 16);
    write_npy(other_labels, "<i8", 1, (const int64_t[]){1}, y + 1, 8);
    assert_refused(path, &options, SNUG_E_INPUT, "the validation samples are 4x1x1");
}

static void test_wrong_labels(void **state)
{
    float x[6] = {0}, nan[3] = {0, NAN, 1};
    int64_t y[4] = {0, -1, 2, 1};

    write_npy(path, "<f4", 2, (const int64_t[]){3, 2}, x, sizeof x);
    write_npy(labels, "<i8", 1, (const int64_t[]){4}, y, 32);
    assert_refused(path, &options, SNUG_E_INPUT, "labels of 4 rows");
    write_npy(labels, "<i8", 1, (const int64_t[]){3}, y, 24);
    assert_refused(path, &options, SNUG_E_INPUT, "label -1 in row 1 is no class");
    write_npy(labels, "<f4", 1, (const int64_t[]){3}, nan, 12);
    assert_refused(path, &options, SNUG_E_INPUT, "the target in row 1 is");
    write_npy(labels, "<i8", 2, (const int64_t[]){3, 2}, (int64_t[6]){0}, 48);
    assert_refused(path, &options, SNUG_E_UNSUPPORTED, "argmax");
    write_npy(labels, "<i8", 1, (const int64_t[]){3}, (int64_t[3]){0}, 24);
    assert_refused(path, &options, SNUG_E_INPUT, "one class only");
    options.labels_path = NULL;
    assert_refused(path, &options, SNUG_E_USAGE, "has no labels");
    options.labels_path = "/nowhere.npy";
    assert_refused(path, &options, SNUG_E_NOT_FOUND, "/nowhere.npy");
}

/* A file with that header text and n bytes of zeros. */
static void write_header(const char *text, size_t n)
{
    static char file[4096];
    size_t length = strlen(text);

    memset(file, 0, sizeof file);
    memcpy(file, "\x93NUMPY\1\0", 8);
    file[8] = (char)(length & 255);
    file[9] = (char)(length >> 8);
    memcpy(file + 10, text, length);
    test_write(path, file, 10 + length + n);
}

static void test_nonsense_in_headers(void **state)
{
    static const struct {
        const char *text, *why;
        snug_status status;
    } bad[] = {
        {"", "header without 'descr'", SNUG_E_UNSUPPORTED},
        {"{'descr': '<f4'}", "no 'shape'", SNUG_E_INPUT},
        {"{'descr': '>f4', 'fortran_order': False, 'shape': (2, 2), }", "'>f4' are not read",
         SNUG_E_UNSUPPORTED},
        {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }", "records",
         SNUG_E_UNSUPPORTED},
        {"{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2), }", "Fortran",
         SNUG_E_UNSUPPORTED},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, -2), }", "damaged", SNUG_E_INPUT},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2", "damaged", SNUG_E_INPUT},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999, 2), }", "absurd",
         SNUG_E_INPUT},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }", "absurd",
         SNUG_E_INPUT},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1000, 1000), }",
         "cut off: its shape needs 1000000 numbers, the file has room for 25", SNUG_E_INPUT},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (), }", "rank 0", SNUG_E_INPUT},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (25,), }", "rank 1", SNUG_E_INPUT},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (0, 5), }", "no data set",
         SNUG_E_INPUT},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1), }", "rank 5",
         SNUG_E_INPUT},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1), }",
         "more than 8 dimensions", SNUG_E_UNSUPPORTED},
    };

    write_labels(3);
    for (size_t i = 0; i < SN_LEN(bad); i++) {
        write_header(bad[i].text, 100);
        assert_refused(path, &options, bad[i].status, bad[i].why);
    }
    test_write(path, "\x93NUMPY\1\0\xff\xff{", 11);
    assert_refused(path, &options, SNUG_E_INPUT, "too few");
    test_write(path, "\x93NUMPY\1\0\xff\xff{}}}}}", 16);
    assert_refused(path, &options, SNUG_E_INPUT, "its header claims 65535 bytes");
    test_write(path, "\x93NUMPY\7\0\1\0{}}}}}", 16);
    assert_refused(path, &options, SNUG_E_INPUT, "no .npy of version");
    test_write_text(path, "text");
    assert_refused(path, &options, SNUG_E_INPUT, "is no .npy");
}

static void test_cut_off_at_every_byte(void **state)
{
    uint8_t x[24] = {0};
    size_t n;

    write_labels(4);
    write_npy(path, "|u1", 2, (const int64_t[]){4, 6}, x, sizeof x);
    char *bytes = test_read(path, &n);
    for (size_t i = 0; i < n; i++) {
        snug_data *data;
        snug_error err = SNUG_ERROR_INIT;
        test_write(path, bytes, i);
        assert_true(snug_data_open(&data, path, &options, &err) != SNUG_OK);
        assert_true(err.what[0]);
    }
    sn_free(bytes);
    assert_no_leak();
}

static void test_exported_is_read_again(void **state)
{
    uint8_t x[5 * 6];
    float got[5 * 6];
    char out[SN_TEST_PATH];
    uint64_t n;
    snug_error err = SNUG_ERROR_INIT;
    snug_pipe_options p = SNUG_PIPE_OPTIONS_INIT;
    snug_export_options e = SNUG_EXPORT_OPTIONS_INIT;

    for (size_t i = 0; i < sizeof x; i++)
        x[i] = (uint8_t)(250 - 7 * i);
    write_npy(path, "|u1", 3, (const int64_t[]){5, 2, 3}, x, sizeof x);
    write_labels(5);
    p.batch = 2;
    e.path = test_path(out, folder, "out.npy");
    for (int as_uint8 = 0; as_uint8 < 2; as_uint8++) {
        options.scale = as_uint8 ? SNUG_SCALE_0_255 : SNUG_SCALE_MINUS1_1;
        snug_data *data = arrays_open(path, &options);
        assert_ok(snug_data_start(data, &p, &err), &err);
        e.as_uint8 = as_uint8;
        assert_ok(snug_data_export(data, &e, &n, &err), &err);
        assert_int_equal(n, 5);
        snug_data_free(data);
        data = arrays_open(out, &options);
        assert_int_equal(arrays_read(data, SNUG_SUBSET_ALL, got, NULL, NULL), 5);
        for (size_t i = 0; i < sizeof x; i++)
            assert_true(got[i] == (as_uint8 ? (float)x[i] : (float)x[i] / 127.5f - 1.0f));
        snug_data_free(data);
    }
    float y[3] = {1, 2, 3};
    assert_ok(snug_npy_write(out, y, 2, (const int64_t[]){3, 1}, &err), &err);
    snug_data *data = arrays_open(
        out, &(snug_data_options){.struct_size = sizeof(snug_data_options), .lenient = 1});
    assert_int_equal(arrays_read(data, SNUG_SUBSET_ALL, got, NULL, NULL), 3);
    assert_memory_equal(got, y, sizeof y);
    snug_data_free(data);
    assert_fails(snug_npy_write(out, y, 0, NULL, &err), SNUG_E_USAGE, &err);
    assert_no_leak();
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(test_pixels_are_scaled),      T(test_numbers_are_fed_as_they_are),
        T(test_targets_are_regression), T(test_resized_and_channels),
        T(test_validation_file),        T(test_wrong_labels),
        T(test_nonsense_in_headers),    T(test_cut_off_at_every_byte),
        T(test_exported_is_read_again),
    };

    return cmocka_run_group_tests_name("format/npy", tests, NULL, NULL);
}
