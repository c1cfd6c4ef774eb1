/* SPDX-License-Identifier: Apache-2.0
 *
 * test_dl.c - libraries that are there, and those that are not.
 */
#include "support/support.h"

#include "base/dl.h"

static void a_library_that_is_there(void **state)
{
    snug_error err = SNUG_ERROR_INIT;
    sn_dl *dl;
    assert_ok(sn_dl_open(&dl, "libm.so.6", &err), &err);
    assert_non_null(sn_dl_symbol(dl, "cos"));
    assert_null(sn_dl_symbol(dl, "no_such_function"));
    sn_dl_free(dl);
    sn_dl_free(NULL);
    assert_no_leak();
}

static void a_library_that_is_not(void **state)
{
    snug_error err = SNUG_ERROR_INIT;
    sn_dl *dl = (sn_dl *)&err;
    assert_fails(sn_dl_open(&dl, "libsnug-no-such.so.1", &err), SNUG_E_NOT_FOUND, &err);
    assert_null(dl);
    assert_contains(err.what, "libsnug-no-such.so.1");
    sn_ledger_fail_nth(1);
    assert_fails(sn_dl_open(&dl, "libm.so.6", &err), SNUG_E_MEMORY, &err);
    assert_no_leak();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_library_that_is_there),
        cmocka_unit_test(a_library_that_is_not),
    };
    return cmocka_run_group_tests_name("base/dl", tests, NULL, NULL);
}
