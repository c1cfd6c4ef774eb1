/* SPDX-License-Identifier: Apache-2.0
 *
 * test_buf.c - the growing byte string.
 */
#include "support/support.h"

#include "base/buf.h"

#include <locale.h>
#include <string.h>

static void an_empty_buffer_is_an_empty_text(void **state)
{
    sn_buf b;
    sn_buf_init(&b, SN_TAG_CLI);
    assert_string_equal(b.data, "");
    sn_buf_clear(&b);
    sn_buf_append(&b, "", 0);
    assert_string_equal(b.data, "");
    assert_no_leak();
    sn_buf_deinit(&b);
    assert_string_equal(b.data, "");
}

static void it_grows_and_stays_terminated(void **state)
{
    sn_buf b;
    sn_buf_init(&b, SN_TAG_CLI);
    for (int i = 0; i < 1000; i++) {
        sn_buf_putc(&b, (char)('a' + i % 26));
        assert_int_equal(strlen(b.data), i + 1);
    }
    sn_buf_append(&b, "x\0y", 3);
    assert_int_equal(b.len, 1003);
    assert_int_equal(b.data[1003], 0);
    assert_memory_equal(b.data + 1000, "x\0y", 4);
    uint64_t held = sn_ledger_live_bytes();
    sn_buf_clear(&b);
    assert_int_equal(b.len, 0);
    assert_string_equal(b.data, "");
    assert_int_equal(sn_ledger_live_bytes(), held);
    sn_buf_puts(&b, "again");
    assert_string_equal(b.data, "again");
    sn_buf_deinit(&b);
    assert_no_leak();
}

static void printing(void **state)
{
    sn_buf b;
    sn_buf_init(&b, SN_TAG_CLI);
    sn_buf_printf(&b, "%d images, ", 12);
    sn_buf_printf(&b, "%s", "");
    sn_buf_printf(&b, "%.2f s", 0.5);
    assert_string_equal(b.data, "12 images, 0.50 s");
    sn_buf_clear(&b);
    /* Every length around the buffer's own size. */
    for (int n = 1; n < 300; n++) {
        sn_buf_deinit(&b);
        sn_buf_printf(&b, "%*d", n, 7);
        assert_int_equal(b.len, n);
        assert_int_equal(b.data[n - 1], '7');
        assert_int_equal(b.data[n], 0);
    }
    sn_buf_deinit(&b);
    assert_no_leak();
}

static void numbers_keep_their_point_in_every_locale(void **state)
{
    if (!setlocale(LC_ALL, "de_DE.UTF-8") && !setlocale(LC_ALL, "fr_FR.UTF-8")) {
        print_message("no locale with a decimal comma is installed\n");
        skip();
    }
    sn_buf b;
    sn_buf_init(&b, SN_TAG_CLI);
    sn_buf_printf(&b, "%.1f", 2.5);
    setlocale(LC_ALL, "C");
    assert_string_equal(b.data, "2.5");
    sn_buf_deinit(&b);
}

static void html_is_escaped(void **state)
{
    sn_buf b;
    sn_buf_init(&b, SN_TAG_CLI);
    sn_buf_puts_html(&b, "<a href=\"x\">R&D</a>");
    assert_string_equal(b.data, "&lt;a href=&quot;x&quot;&gt;R&amp;D&lt;/a&gt;");
    sn_buf_clear(&b);
    sn_buf_puts_html(&b, "");
    sn_buf_puts_html(&b, "plain");
    assert_string_equal(b.data, "plain");
    sn_buf_deinit(&b);
    assert_no_leak();
}

static void taking_hands_the_bytes_over(void **state)
{
    sn_buf b;
    sn_buf_init(&b, SN_TAG_CLI);
    sn_buf_puts(&b, "mine");
    char *text = sn_buf_take(&b);
    assert_string_equal(b.data, "");
    assert_int_equal(b.len, 0);
    sn_buf_puts(&b, "next");
    assert_string_equal(text, "mine");
    sn_free(text);
    sn_buf_deinit(&b);
    text = sn_buf_take(&b);
    assert_string_equal(text, "");
    sn_free(text);
    assert_no_leak();
}

static void failure_is_sticky_until_the_end(void **state)
{
    sn_buf b;
    sn_buf_init(&b, SN_TAG_CLI);
    sn_buf_puts(&b, "before");
    sn_ledger_fail_nth(1);
    sn_buf_printf(&b, "%100d", 1);
    assert_true(b.failed);
    sn_buf_puts(&b, "after");
    assert_string_equal(b.data, "before");
    assert_null(sn_buf_take(&b));
    assert_no_leak();
    assert_false(b.failed);
    sn_ledger_fail_nth(1);
    assert_null(sn_buf_take(&b));
    sn_ledger_fail_nth(1);
    sn_buf_putc(&b, 'x');
    assert_true(b.failed);
    assert_string_equal(b.data, "");
    sn_buf_deinit(&b);
    assert_no_leak();
}

static void an_absurd_append_fails(void **state)
{
    sn_buf b;
    sn_buf_init(&b, SN_TAG_CLI);
    sn_buf_puts(&b, "x");
    sn_buf_append(&b, "y", SIZE_MAX);
    assert_true(b.failed);
    sn_buf_deinit(&b);
    assert_no_leak();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_buffer_is_an_empty_text),
        cmocka_unit_test(it_grows_and_stays_terminated),
        cmocka_unit_test(printing),
        cmocka_unit_test(numbers_keep_their_point_in_every_locale),
        cmocka_unit_test(html_is_escaped),
        cmocka_unit_test(taking_hands_the_bytes_over),
        cmocka_unit_test(failure_is_sticky_until_the_end),
        cmocka_unit_test(an_absurd_append_fails),
    };
    return cmocka_run_group_tests_name("base/buf", tests, NULL, NULL);
}
