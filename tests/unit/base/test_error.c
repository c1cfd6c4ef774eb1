/* SPDX-License-Identifier: Apache-2.0
 *
 * test_error.c - statuses and the struct that carries them.
 */
#include "support/support.h"

#include <errno.h>
#include <string.h>

static void statuses_have_names_texts_and_exit_codes(void **state)
{
    assert_string_equal(snug_status_name(SNUG_OK), "SNUG_OK");
    assert_string_equal(snug_status_name(SNUG_E_INPUT), "SNUG_E_INPUT");
    assert_string_equal(snug_status_text(SNUG_OK), "done");
    assert_int_equal(snug_status_exit_code(SNUG_OK), 0);
    assert_int_equal(snug_status_exit_code(SNUG_E_NUMERIC), 1);
    assert_int_equal(snug_status_exit_code(SNUG_E_USAGE), 2);
    assert_int_equal(snug_status_exit_code(SNUG_E_DOES_NOT_FIT), 3);
    assert_int_equal(snug_status_exit_code(SNUG_E_NOT_FOUND), 4);
    assert_int_equal(snug_status_exit_code(SNUG_E_INTERRUPTED), 130);
}

static void a_value_that_is_no_status_is_harmless(void **state)
{
    assert_string_equal(snug_status_name((snug_status)999), "?");
    assert_string_equal(snug_status_name((snug_status)-1), "?");
    assert_string_equal(snug_status_text((snug_status)999), "unknown status");
    assert_int_equal(snug_status_exit_code((snug_status)999), 1);
}

static void fail_writes_code_and_line_and_clears_the_rest(void **state)
{
    snug_error err = {SNUG_E_IO, "old", "old place", 7, 8, 9};
    assert_int_equal(sn_fail(&err, SNUG_E_INPUT, "row %d of %s", 3, "a.csv"), SNUG_E_INPUT);
    assert_int_equal(err.code, SNUG_E_INPUT);
    assert_string_equal(err.what, "row 3 of a.csv");
    assert_string_equal(err.where, "");
    assert_true(err.pos == 0 && err.need == 0 && err.have == 0);
    assert_int_equal(sn_fail(NULL, SNUG_E_DEVICE, "nobody listens"), SNUG_E_DEVICE);
}

static void fail_may_quote_the_error_that_it_replaces(void **state)
{
    snug_error err = SNUG_ERROR_INIT;
    sn_fail(&err, SNUG_E_IO, "disk full");
    sn_fail(&err, SNUG_E_DEVICE, "while saving: %s", err.what);
    assert_string_equal(err.what, "while saving: disk full");
}

static void fail_stays_one_line(void **state)
{
    snug_error err = SNUG_ERROR_INIT;
    sn_fail(&err, SNUG_E_INPUT, "file '%s'", "a\nb\x1b[31m\x7f");
    assert_string_equal(err.what, "file 'a?b?[31m?'");
}

static void a_long_message_says_that_it_was_cut(void **state)
{
    snug_error err = SNUG_ERROR_INIT;
    char longest[sizeof err.what], text[400];
    memset(longest, 'y', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    sn_fail(&err, SNUG_E_INPUT, "%s", longest);
    assert_string_equal(err.what, longest);
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    sn_fail(&err, SNUG_E_INPUT, "%s", text);
    assert_int_equal(strlen(err.what), sizeof err.what - 1);
    assert_string_equal(err.what + sizeof err.what - 5, "x...");
    sn_fail_errno(&err, SNUG_E_IO, ENOENT, "%s", text);
    assert_string_equal(err.what + sizeof err.what - 5, "x...");
}

static void fail_errno_appends_the_reason(void **state)
{
    snug_error err = SNUG_ERROR_INIT;
    assert_int_equal(sn_fail_errno(&err, SNUG_E_IO, ENOENT, "cannot open %s", "x"), SNUG_E_IO);
    assert_string_equal(err.what, "cannot open x: No such file or directory");
    assert_int_equal(sn_fail_errno(NULL, SNUG_E_IO, EIO, "x"), SNUG_E_IO);
}

static void where_puts_outer_places_first(void **state)
{
    snug_error err = SNUG_ERROR_INIT;
    sn_fail(&err, SNUG_E_INPUT, "strides (0, 2): both must be at least 1");
    assert_int_equal(sn_where(&err, "layer '%s'", "conv2d_3"), SNUG_E_INPUT);
    assert_string_equal(err.where, "layer 'conv2d_3'");
    assert_int_equal(sn_where(&err, "model.keras"), SNUG_E_INPUT);
    assert_string_equal(err.where, "model.keras: layer 'conv2d_3'");
    assert_int_equal(sn_where(NULL, "x"), SNUG_E_INTERNAL);
}

static void a_long_place_is_cut_and_says_so(void **state)
{
    snug_error err = SNUG_ERROR_INIT;
    sn_fail(&err, SNUG_E_INPUT, "bad");
    for (int i = 0; i < 20; i++)
        sn_where(&err, "level %d", i);
    assert_int_equal(strlen(err.where), sizeof err.where - 1);
    assert_true(sn_str_starts(err.where, "level 19: level 18"));
    assert_true(sn_str_ends(err.where, "..."));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(statuses_have_names_texts_and_exit_codes),
        cmocka_unit_test(a_value_that_is_no_status_is_harmless),
        cmocka_unit_test(fail_writes_code_and_line_and_clears_the_rest),
        cmocka_unit_test(fail_may_quote_the_error_that_it_replaces),
        cmocka_unit_test(fail_stays_one_line),
        cmocka_unit_test(a_long_message_says_that_it_was_cut),
        cmocka_unit_test(fail_errno_appends_the_reason),
        cmocka_unit_test(where_puts_outer_places_first),
        cmocka_unit_test(a_long_place_is_cut_and_says_so),
    };
    return cmocka_run_group_tests_name("base/error", tests, NULL, NULL);
}
