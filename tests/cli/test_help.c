/* SPDX-License-Identifier: Apache-2.0
 *
 * snug --help, and the page of every verb that it lists: there, and no wider than a terminal.
 */
#include <stdio.h>
#include <string.h>

#include "cli/typed.h"

#define WIDEST 100

static void assert_narrow(const char *line, const char *page)
{
    for (const char *at = page; *at; at += strcspn(at, "\n"), at += *at == '\n')
        if (strcspn(at, "\n") > WIDEST)
            fail_msg("snug %s: wider than %d columns: %.*s", line, WIDEST, (int)strcspn(at, "\n"),
                     at);
}

/* `snug VERB --help` and `snug help VERB` are one page, which begins with the verb's own usage. */
static void page_is_right(const char *verb)
{
    char line[64], head[64];

    snprintf(line, sizeof line, "help %s", verb);
    test_result other = typed(0, line);
    snprintf(line, sizeof line, "%s --help", verb);
    test_result page = typed(0, line);
    snprintf(head, sizeof head, "snug %s", verb);
    if (strncmp(page.out, head, strlen(head)))
        fail_msg("snug %s: begins with %.40s", line, page.out);
    assert_string_equal(page.out, other.out);
    assert_string_equal(page.err, "");
    assert_narrow(line, page.out);
    test_result_free(&page);
    test_result_free(&other);
}

static void test_pages(void **state)
{
    static const char first[] = "\n  train ", last[] = "\n  help ";
    test_result list = typed(0, "--help"), again = typed(0, "help --help");
    const char *at = strstr(list.out, first), *end = strstr(list.out, last);
    size_t n = 0;

    assert_string_equal(list.err, "");
    assert_string_equal(list.out, again.out);
    assert_narrow("--help", list.out);
    assert_true(at && end && at < end);
    for (; at < end; at = strchr(at + 1, '\n'), n++) {
        char verb[32];
        assert_int_equal(sscanf(at, " %31s", verb), 1);
        page_is_right(verb);
    }
    assert_in_range(n, 9, 99); /* nine stood before `help` when this was written */
    test_result_free(&list);
    test_result_free(&again);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_pages, typed_set_up, typed_tear_down)};

    return cmocka_run_group_tests_name("cli/help", tests, NULL, NULL);
}
