/* SPDX-License-Identifier: Apache-2.0
 *
 * test_vec.c - the growing array.
 */
#include "support/support.h"

#include "base/vec.h"

typedef struct pair {
    int a;
    double b;
} pair;

static void it_grows_and_keeps_order(void **state)
{
    SN_VEC(size_t) v = {0};
    for (size_t i = 0; i < 1000; i++)
        assert_true(SN_VEC_PUSH(SN_TAG_PLAN, &v, i * 3));
    assert_int_equal(v.n, 1000);
    assert_int_equal(v.cap, 1024);
    for (size_t i = 0; i < 1000; i++)
        assert_int_equal(v.at[i], i * 3);
    assert_int_equal(sn_ledger_live_bytes_of(SN_TAG_PLAN), 1024 * sizeof(size_t));
    SN_VEC_FREE(&v);
    assert_int_equal(v.n, 0);
    assert_no_leak();
    SN_VEC_FREE(&v);
}

static void structs_may_have_commas(void **state)
{
    SN_VEC(pair) v = {0};
    assert_true(SN_VEC_PUSH(SN_TAG_PLAN, &v, (pair){1, 2.5}));
    assert_true(SN_VEC_PUSH(SN_TAG_PLAN, &v, (pair){.b = 3, .a = 4}));
    assert_int_equal(v.at[1].a, 4);
    assert_int_equal(v.cap, 8);
    SN_VEC_FREE(&v);
    assert_no_leak();
}

static void a_failed_push_changes_nothing(void **state)
{
    SN_VEC(size_t) v = {0};
    sn_ledger_fail_nth(1);
    assert_false(SN_VEC_PUSH(SN_TAG_PLAN, &v, 1));
    assert_null(v.at);
    for (size_t i = 0; i < 8; i++)
        assert_true(SN_VEC_PUSH(SN_TAG_PLAN, &v, i));
    sn_ledger_fail_nth(1);
    assert_false(SN_VEC_PUSH(SN_TAG_PLAN, &v, 8));
    assert_int_equal(v.n, 8);
    assert_int_equal(v.cap, 8);
    assert_int_equal(v.at[7], 7);
    SN_VEC_FREE(&v);
    assert_no_leak();
}

static void a_capacity_that_cannot_double_is_refused(void **state)
{
    void *at = NULL;
    size_t cap = SIZE_MAX / 2 + 1;
    assert_false(sn_vec_grow(SN_TAG_PLAN, &at, &cap, 1));
    cap = SIZE_MAX / 4;
    assert_false(sn_vec_grow(SN_TAG_PLAN, &at, &cap, 8));
    assert_null(at);
    assert_int_equal(cap, SIZE_MAX / 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_grows_and_keeps_order),
        cmocka_unit_test(structs_may_have_commas),
        cmocka_unit_test(a_failed_push_changes_nothing),
        cmocka_unit_test(a_capacity_that_cannot_double_is_refused),
    };
    return cmocka_run_group_tests_name("base/vec", tests, NULL, NULL);
}
