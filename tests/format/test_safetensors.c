/* SPDX-License-Identifier: Apache-2.0
 *
 * safetensors: what is written is read again; damaged headers are refused; a file is replaced whole
 * or not at all.
 */
#include "support/support.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "format/safetensors.h"

static char folder[SN_TEST_PATH], path[SN_TEST_PATH];

static int set_up(void **state)
{
    test_make_folder(folder);
    test_path(path, folder, "x.safetensors");
    return 0;
}

static int tear_down(void **state)
{
    test_remove(folder);
    return 0;
}

static const sn_safetensors_entry entries[] = {
    {.name = "conv/kernel", .dtype = "F32", .rank = 4, .shape = {3, 3, 1, 2}},
    {.name = "step", .dtype = "I64", .rank = 0},
    {.name = "half", .dtype = "F16", .rank = 1, .shape = {5}},
    {.name = "nothing", .dtype = "F32", .rank = 2, .shape = {0, 7}},
    {.name = "n\xc3\xa4me \"quoted\"", .dtype = "U8", .rank = 1, .shape = {3}},
};
static const sn_safetensors_text texts[] = {{"format", "snug"}, {"run", "{\"a\": 1}\n"}};

static void write_all(void)
{
    sn_safetensors_writer *w;
    snug_error err = SNUG_ERROR_INIT;
    float kernel[18];
    int64_t step = INT64_C(1) << 40;

    for (int i = 0; i < 18; i++)
        kernel[i] = (float)i * 0.5f;
    assert_ok(sn_safetensors_begin(&w, path, entries, SN_LEN(entries), texts, 2, &err), &err);
    /* Any order, any pieces. */
    assert_ok(sn_safetensors_write(w, 4, 0, "abc", 3, &err), &err);
    assert_ok(sn_safetensors_write(w, 0, 40, kernel + 10, 32, &err), &err);
    assert_ok(sn_safetensors_write(w, 2, 0, "0123456789", 10, &err), &err);
    assert_ok(sn_safetensors_write(w, 0, 0, kernel, 40, &err), &err);
    assert_ok(sn_safetensors_write(w, 1, 0, &step, 8, &err), &err);
    assert_fails(sn_safetensors_write(w, 1, 1, &step, 8, &err), SNUG_E_USAGE, &err);
    assert_fails(sn_safetensors_write(w, 5, 0, &step, 1, &err), SNUG_E_USAGE, &err);
    assert_ok(sn_safetensors_commit(w, &err), &err);
}

static void test_round_trip(void **state)
{
    sn_safetensors *f;
    snug_error err = SNUG_ERROR_INIT;
    float kernel[18];
    int64_t step;
    char bytes[16];
    struct stat st;

    write_all();
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, sn_safetensors_file_bytes(entries, SN_LEN(entries), texts, 2));
    assert_ok(sn_safetensors_open(&f, path, &err), &err);
    assert_int_equal(sn_safetensors_n(f), SN_LEN(entries));
    assert_null(sn_safetensors_entry_at(f, SN_LEN(entries)));
    const sn_safetensors_entry *e = sn_safetensors_find(f, "conv/kernel");
    assert_non_null(e);
    assert_int_equal(e->rank, 4);
    assert_int_equal(e->shape[3], 2);
    assert_int_equal(e->bytes, 72);
    assert_int_equal(e->offset % 8, 0);
    assert_ok(sn_safetensors_read(f, e, kernel, &err), &err);
    assert_true(kernel[17] == 8.5f);
    e = sn_safetensors_find(f, "step");
    assert_int_equal(e->rank, 0);
    assert_ok(sn_safetensors_read(f, e, &step, &err), &err);
    assert_int_equal(step, INT64_C(1) << 40);
    assert_ok(sn_safetensors_read_part(f, sn_safetensors_find(f, "half"), 4, bytes, 6, &err), &err);
    assert_memory_equal(bytes, "456789", 6);
    assert_fails(sn_safetensors_read_part(f, sn_safetensors_find(f, "half"), 5, bytes, 6, &err),
                 SNUG_E_USAGE, &err);
    assert_int_equal(sn_safetensors_find(f, "nothing")->bytes, 0);
    assert_non_null(sn_safetensors_find(f, "n\xc3\xa4me \"quoted\""));
    assert_null(sn_safetensors_find(f, "absent"));
    assert_string_equal(sn_safetensors_metadata(f, "run"), "{\"a\": 1}\n");
    assert_null(sn_safetensors_metadata(f, "absent"));
    sn_safetensors_free(f);
    assert_no_leak();
}

static void test_replaced_whole_or_not_at_all(void **state)
{
    sn_safetensors_writer *w;
    snug_error err = SNUG_ERROR_INIT;
    size_t before, after;

    write_all();
    char *old = test_read(path, &before);
    assert_ok(sn_safetensors_begin(&w, path, entries, 1, NULL, 0, &err), &err);
    assert_ok(sn_safetensors_write(w, 0, 0, "1234", 4, &err), &err);
    /* 4 of 72 bytes: refused, and the old file is there. */
    assert_fails(sn_safetensors_commit(w, &err), SNUG_E_USAGE, &err);
    assert_ok(sn_safetensors_begin(&w, path, entries, 1, NULL, 0, &err), &err);
    sn_safetensors_abort(w);
    sn_safetensors_abort(NULL);
    char *new = test_read(path, &after);
    assert_int_equal(before, after);
    assert_memory_equal(old, new, before);
    assert_int_equal(test_count_entries(folder), 1);
    sn_free(old);
    sn_free(new);
    assert_no_leak();
}

static void test_what_cannot_be_written(void **state)
{
    static const sn_safetensors_entry bad[][2] = {
        {{.name = "a", .dtype = "F31", .rank = 0}, {.name = "b", .dtype = "F32", .rank = 0}},
        {{.name = "a", .dtype = "F32", .rank = 1, .shape = {-1}}, {.name = "b", .dtype = "F32"}},
        {{.name = "a", .dtype = "F32"}, {.name = "a", .dtype = "F32"}},
        {{.name = "\xff", .dtype = "F32"}, {.name = "b", .dtype = "F32"}},
        {{.name = "a", .dtype = "F32", .rank = 9}, {.name = "b", .dtype = "F32"}},
        {{.name = "a", .dtype = "F32", .rank = 2, .shape = {INT64_MAX, INT64_MAX}},
         {.name = "b", .dtype = "F32"}},
    };
    sn_safetensors_writer *w;
    snug_error err = SNUG_ERROR_INIT;

    for (size_t i = 0; i < SN_LEN(bad); i++) {
        assert_fails(sn_safetensors_begin(&w, path, bad[i], 2, NULL, 0, &err), SNUG_E_USAGE, &err);
        assert_null(w);
        assert_int_equal(sn_safetensors_file_bytes(bad[i], 2, NULL, 0), 0);
    }
    assert_true(sn_safetensors_begin(&w, "/nowhere/at/all", entries, 1, NULL, 0, &err) != SNUG_OK);
    assert_int_equal(test_count_entries(folder), 0);
    assert_no_leak();
}

static void write_raw(const char *header, size_t data_bytes)
{
    char bytes[2048] = {0};
    uint64_t n = strlen(header);

    memcpy(bytes, &n, 8);
    memcpy(bytes + 8, header, n);
    test_write(path, bytes, 8 + n + data_bytes);
}

static void test_bad_headers(void **state)
{
    static const struct {
        const char *header, *why;
    } bad[] = {
        {"{\"a\":", "no JSON"},
        {"[1]", "no JSON object"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}", "lacks dtype, shape or data_offsets"},
        {"{\"a\":{\"dtype\":\"F99\",\"shape\":[2],\"data_offsets\":[0,8]}}", "unknown dtype"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,12]}}", "its shape does not"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[5],\"data_offsets\":[0,20]}}", "lies outside"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,0]}}", "lies outside"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[-8,0]}}", "lies outside"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[-2],\"data_offsets\":[0,8]}}", "is no size"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1.5],\"data_offsets\":[0,8]}}", "is no size"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[9223372036854775807,4],\"data_offsets\":[0,8]}}",
         "its shape does not"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,4]}}",
         "9 dimensions"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
         "\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[4,12]}}",
         "overlap"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
         "\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,16]}}",
         "no JSON"},
        {"{\"__metadata__\":{\"a\":1}}", "is no text"},
        {"{\"__metadata__\":[]}", "is no object"},
    };
    sn_safetensors *f;

    for (size_t i = 0; i < SN_LEN(bad); i++) {
        snug_error err = SNUG_ERROR_INIT;
        write_raw(bad[i].header, 16);
        if (!sn_safetensors_open(&f, path, &err))
            fail_msg("accepted: %s", bad[i].header);
        assert_contains(err.what, bad[i].why);
        assert_contains(err.where, "x.safetensors");
        assert_null(f);
    }
    snug_error err = SNUG_ERROR_INIT;
    write_raw("{}", 0);
    assert_ok(sn_safetensors_open(&f, path, &err), &err);
    assert_int_equal(sn_safetensors_n(f), 0);
    sn_safetensors_free(f);
    assert_fails(sn_safetensors_open(&f, "/nowhere", &err), SNUG_E_NOT_FOUND, &err);
    assert_fails(sn_safetensors_open(&f, folder, &err), SNUG_E_INPUT, &err);
    assert_no_leak();
}

static void test_cut_off_at_every_byte(void **state)
{
    sn_safetensors *f;
    size_t n;
    snug_error err = SNUG_ERROR_INIT;

    write_all();
    char *bytes = test_read(path, &n);
    for (size_t i = 0; i < n; i++) {
        test_write(path, bytes, i);
        assert_fails(sn_safetensors_open(&f, path, &err), SNUG_E_INPUT, &err);
    }
    for (size_t bit = 0; bit < 8 * 200; bit++) {
        bytes[bit / 8] ^= (char)(1 << bit % 8);
        test_write(path, bytes, n);
        if (!sn_safetensors_open(&f, path, &err)) {
            for (size_t i = 0; i < sn_safetensors_n(f); i++) {
                const sn_safetensors_entry *e = sn_safetensors_entry_at(f, i);
                assert_true(e->offset + e->bytes <= n);
            }
            sn_safetensors_free(f);
        }
        bytes[bit / 8] ^= (char)(1 << bit % 8);
    }
    sn_free(bytes);
    assert_no_leak();
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(test_round_trip),  T(test_replaced_whole_or_not_at_all), T(test_what_cannot_be_written),
        T(test_bad_headers), T(test_cut_off_at_every_byte),
    };

    return cmocka_run_group_tests_name("format/safetensors", tests, NULL, NULL);
}
