/* SPDX-License-Identifier: Apache-2.0
 *
 * Sorting names in bounded memory: in memory, over runs, over more runs than are merged at once.
 */
#include "support/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/names.h"
#include "data/sort.h"

/* Names 0..n-1 in a scrambled order, each `times` times. */
static void check(size_t n, size_t times, size_t limit)
{
    sn_sorter s;
    snug_error err = SNUG_ERROR_INIT;
    char name[64];
    const char *got;

    sn_sorter_init(&s);
    sn_sorter_limit(&s, limit);
    for (int round = 0; round < 2; round++) { /* also after a clear */
        for (size_t i = 0; i < n * times; i++) {
            snprintf(name, sizeof name, "dir/photo%zu.jpg", i * 7919 % n);
            assert_ok(sn_sorter_add(&s, name, &err), &err);
        }
        assert_ok(sn_sorter_finish(&s, &err), &err);
        for (size_t i = 0; i < n * times; i++) {
            snprintf(name, sizeof name, "dir/photo%zu.jpg", i / times);
            assert_ok(sn_sorter_next(&s, &got, &err), &err);
            assert_non_null(got);
            assert_string_equal(got, name);
        }
        for (int i = 0; i < 2; i++) {
            assert_ok(sn_sorter_next(&s, &got, &err), &err);
            assert_null(got);
        }
        sn_sorter_clear(&s);
    }
    sn_sorter_deinit(&s);
    assert_no_leak();
}

static void test_in_memory(void **state)
{
    check(1, 1, 0);
    check(5000, 1, 0);
    check(100, 7, 0);
}

static void test_over_runs(void **state)
{
    check(1000, 1, 2048); /* some 11 names a run: 90 runs, two passes */
    check(20000, 1, 16 * 1024);
    check(300, 1, 1); /* a name a run: 300 runs */
    check(50, 9, 512);
}

static void test_nothing(void **state)
{
    sn_sorter s;
    const char *name = "x";

    sn_sorter_init(&s);
    assert_int_equal(sn_sorter_finish(&s, NULL), SNUG_OK);
    assert_int_equal(sn_sorter_next(&s, &name, NULL), SNUG_OK);
    assert_null(name);
    sn_sorter_deinit(&s);
    assert_no_leak();
}

static void test_longest_names(void **state)
{
    sn_sorter s;
    snug_error err = SNUG_ERROR_INIT;
    static char name[SN_NAME_MAX];
    const char *got;

    sn_sorter_init(&s);
    sn_sorter_limit(&s, 10000);
    for (int i = 0; i < 100; i++) {
        memset(name, 'a', SN_NAME_MAX - 1);
        name[SN_NAME_MAX - 2] = (char)('0' + i * 7 % 10);
        name[SN_NAME_MAX - 3] = (char)('0' + i * 7 / 10 % 10);
        assert_ok(sn_sorter_add(&s, name, &err), &err);
    }
    assert_ok(sn_sorter_finish(&s, &err), &err);
    int last = -1, n = 0;
    while (!sn_sorter_next(&s, &got, &err) && got) {
        assert_int_equal(strlen(got), SN_NAME_MAX - 1);
        int number = atoi(got + SN_NAME_MAX - 3);
        assert_true(number >= last);
        last = number;
        n++;
    }
    assert_int_equal(n, 100);
    sn_sorter_deinit(&s);
    assert_no_leak();
}

static void test_list_of_names(void **state)
{
    sn_names l;
    snug_error err = SNUG_ERROR_INIT;
    sn_name_record record;
    char name[64], expected[64];
    static char long_name[SN_NAME_MAX + 8];

    assert_ok(sn_names_init(&l, &err), &err);
    for (int i = 0; i < 10000; i++) {
        snprintf(name, sizeof name, "%d/%d", i % 7, i);
        assert_ok(
            sn_names_add(&l, name, &(sn_name_record){.class_index = i % 7, .y = (float)i}, &err),
            &err);
    }
    memset(long_name, 'x', sizeof long_name - 1);
    assert_fails(sn_names_add(&l, long_name, &(sn_name_record){0}, &err), SNUG_E_INPUT, &err);
    assert_ok(sn_names_seal(&l, &err), &err);
    assert_int_equal(sn_ledger_live_bytes(), 0); /* all of it is in the files */
    for (int i = 9999; i >= 0; i -= 13) {
        snprintf(expected, sizeof expected, "%d/%d", i % 7, i);
        assert_ok(sn_names_at(&l, (uint64_t)i, &record, name, sizeof name, &err), &err);
        assert_string_equal(name, expected);
        assert_int_equal(record.class_index, i % 7);
        assert_true(record.y == (float)i);
    }
    assert_fails(sn_names_at(&l, 5, &record, name, 2, &err), SNUG_E_INTERNAL, &err);
    sn_names_deinit(&l);
    assert_no_leak();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_in_memory),     cmocka_unit_test(test_over_runs),
        cmocka_unit_test(test_nothing),       cmocka_unit_test(test_longest_names),
        cmocka_unit_test(test_list_of_names),
    };

    return cmocka_run_group_tests_name("unit/data_sort", tests, NULL, NULL);
}
