/* SPDX-License-Identifier: Apache-2.0
 *
 * typed.h - `snug LINE` as somebody types it, in a folder of the test that holds the images `d`.
 *
 *     cmocka_run_group_tests(tests, typed_set_up, typed_tear_down)
 *     test_result r = typed(0, "plan d --json");      // the exit code must be this one
 *
 * Ownership: the caller frees results.  Threads: one.
 */
#ifndef SN_TESTS_CLI_TYPED_H
#define SN_TESTS_CLI_TYPED_H

#include "cli/images.h"

static char folder[SN_TEST_PATH];

static inline int typed_set_up(void **state)
{
    (void)state;
    test_make_folder(folder);
    images_make(folder, "d");
    return 0;
}

static inline int typed_tear_down(void **state)
{
    (void)state;
    test_remove(folder);
    return 0;
}

static inline test_result typed(int exit_code, const char *line)
{
    char script[8192];

    snprintf(script, sizeof script, "'%.1024s' %.2048s", test_command(), line);
    test_result r = test_run_shell(script, folder);
    if (r.exit_code != exit_code)
        fail_msg("snug %s: exit %d, expected %d: %s", line, r.exit_code, exit_code, r.err);
    return r;
}

#endif
