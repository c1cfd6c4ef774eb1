/* SPDX-License-Identifier: Apache-2.0
 *
 * test_runner.c - tools/run-tests.sh itself: it must not pass what failed, crashed, hung or said
 * nothing, nor pass when nothing ran.
 */
#include "support/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static char build[SN_TEST_PATH];

static int setup(void **state)
{
    unsetenv("RUN_TESTS_TIMEOUT");
    unsetenv("RUN_TESTS_TOTALS"); /* what runs here is no part of the sum */
    char path[SN_TEST_PATH];
    test_make_folder(build);
    test_write_text(test_path(path, build, "tests.txt"), "");
    return 0;
}

static int teardown(void **state)
{
    test_remove(build);
    return 0;
}

/* A program of the fake build folder, a shell script. */
static void add(const char *label, const char *script)
{
    char path[SN_TEST_PATH], text[1024], name[64];
    snprintf(name, sizeof name, "%s", strrchr(label, '/') + 1);
    snprintf(text, sizeof text, "#!/bin/sh\n%s\n", script);
    test_write_text(test_path(path, build, name), text);
    assert_int_equal(chmod(path, 0755), 0);
    char *list = test_read(test_path(path, build, "tests.txt"), NULL);
    snprintf(text, sizeof text, "%s%s %s\n", list, label, name);
    test_write_text(path, text);
    sn_free(list);
}

static test_result run(const char *arguments_before, const char *arguments_after)
{
    char script[3 * SN_TEST_PATH];
    snprintf(script, sizeof script, "tools/run-tests.sh %s '%s' %s 2>&1", arguments_before, build,
             arguments_after);
    return test_run_shell(script, SNUG_SOURCE_DIR);
}

static void expect(const char *before, const char *after, int exit_code, const char *last_line)
{
    test_result r = run(before, after);
    if (r.exit_code != exit_code || !sn_str_ends(r.out, last_line))
        fail_msg("exit %d, expected %d and %s; it said:\n%s", r.exit_code, exit_code, last_line,
                 r.out);
    test_result_free(&r);
    assert_no_leak();
}

#define PASSED "echo '[  PASSED  ] 3 test(s).'"
#define FAILED "echo '[  FAILED  ] 2 test(s), listed below:'"
#define SKIPPED "echo '[  SKIPPED ] 1 test(s), listed below:'"

static void what_passes_is_added_up(void **state)
{
    add("unit/a", PASSED);
    add("unit/b", PASSED "; " SKIPPED);
    add("train/c", PASSED "; " PASSED);
    expect("", "", 0, "\n12 passed, 0 failed, 1 skipped\n");
    expect("--quick", "", 0, "\n6 passed, 0 failed, 1 skipped\n");
    expect("", "'unit/*' 'nothing/*'", 0, "\n6 passed, 0 failed, 1 skipped\n");
    expect("--targets", "", 0, "a\nb\nc\n");
}

static void failures_are_counted_shown_and_named(void **state)
{
    add("unit/bad", "echo the reason; " PASSED "; " FAILED "; exit 2");
    add("unit/good", PASSED);
    test_result r = run("", "");
    assert_int_equal(r.exit_code, 1);
    assert_contains(r.out, "the reason");
    assert_contains(r.out, "\nFAILED: unit/bad\n");
    assert_true(sn_str_ends(r.out, "\n6 passed, 2 failed, 0 skipped\n"));
    test_result_free(&r);
    assert_no_leak();
}

static void what_cmocka_did_not_count_fails_too(void **state)
{
    add("unit/crash", PASSED "; kill -SEGV $$");
    add("unit/leak", PASSED "; exit 1");
    add("unit/silent", "exit 0");
    add("unit/missing", "rm -f \"$0\"; exec /no/such/program");
    add("train/hangs", PASSED "; exec sleep 1000");
    setenv("RUN_TESTS_TIMEOUT", "5", 1);
    expect("", "", 1, "\n9 passed, 5 failed, 0 skipped\n");
}

static void running_nothing_is_no_success(void **state)
{
    expect("", "", 1, "0 passed, 0 failed, 0 skipped\n");
    add("unit/skips", SKIPPED);
    expect("", "", 1, "0 passed, 0 failed, 1 skipped\n");
}

#define WITH_BUILD(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_BUILD(what_passes_is_added_up),
        WITH_BUILD(failures_are_counted_shown_and_named),
        WITH_BUILD(what_cmocka_did_not_count_fails_too),
        WITH_BUILD(running_nothing_is_no_success),
    };
    return cmocka_run_group_tests_name("contract/runner", tests, NULL, NULL);
}
