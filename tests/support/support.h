/* SPDX-License-Identifier: Apache-2.0
 *
 * support.h - what many tests need: a folder that goes away again, files written and read in one
 * call, and commands run with their input given and their output captured.
 *
 *     char folder[SN_TEST_PATH];  test_make_folder(folder);
 *     test_write_text(test_path(path, folder, "labels.csv"), "a.jpg,0\n");
 *     test_result r = test_run((const char *[]){test_command(), "plan", "x", NULL}, NULL, NULL);
 *     assert_int_equal(r.exit_code, 4);  test_result_free(&r);  test_remove(folder);
 *
 * A helper that cannot do its work fails the running test with its reason.
 * Ownership: a test_result owns its two texts; test_result_free frees them.
 * Threads: one at a time.
 */
#ifndef SN_TEST_SUPPORT_H
#define SN_TEST_SUPPORT_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/base.h"
#include "base/ledger.h"

#define SN_TEST_PATH 1024

/* Fails the test, with the error's own words, when a call does not return SNUG_OK. */
#define assert_ok(call, err)                                                                       \
    do {                                                                                           \
        snug_status assert_ok_status = (call);                                                     \
        if (assert_ok_status != SNUG_OK)                                                           \
            fail_msg("%s: %s: %s", #call, snug_status_name(assert_ok_status), (err)->what);        \
    } while (0)
/* The call must return this status, with the same code and a message in err. */
#define assert_fails(call, status, err)                                                            \
    do {                                                                                           \
        snug_status assert_fails_status = (call);                                                  \
        if (assert_fails_status != (status))                                                       \
            fail_msg("%s: %s, expected %s: %s", #call, snug_status_name(assert_fails_status),      \
                     snug_status_name(status), (err)->what);                                       \
        assert_int_equal((err)->code, (status));                                                   \
        assert_true((err)->what[0] != '\0');                                                       \
    } while (0)
/* needle must stand in text; the message shows both. */
#define assert_contains(text, needle) test_contains((text), (needle), __FILE__, __LINE__)
#define assert_no_leak() assert_int_equal(sn_ledger_live_bytes(), 0)

void test_contains(const char *text, const char *needle, const char *file, int line);

/* Makes a new empty folder under TMPDIR (else /tmp) and writes its path into out. Returns out. */
char *test_make_folder(char out[SN_TEST_PATH]);
/* Removes a file or folder with all that is in it; what is not there is no failure. */
void test_remove(const char *path);
/* out = folder "/" name. Returns out. */
char *test_path(char out[SN_TEST_PATH], const char *folder, const char *name);
void test_write(const char *path, const void *bytes, size_t n); /* makes missing folders */
void test_write_text(const char *path, const char *text);
/* The whole file, NUL-terminated; n may be NULL. sn_free it. */
char *test_read(const char *path, size_t *n);
bool test_exists(const char *path);
/* The names in a folder, without "." and "..": how many there are. */
size_t test_count_entries(const char *folder);

/* Whether the longer sets are wanted (make check-nightly: SNUG_NIGHTLY=1). */
bool test_nightly(void);
/* <source folder>/<name>, e.g. "tools/layers.txt". Returns out. */
char *test_source_path(char out[SN_TEST_PATH], const char *name);
/* The folder of shared material: $SNUG_SHARED, else ../shared beside the source folder; NULL (skip
 * the test) if it is not there. name may be NULL or a path in it, which must exist too. */
const char *test_shared_path(char out[SN_TEST_PATH], const char *name);

typedef struct test_result {
    int exit_code;           /* 128 + the signal's number if a signal ended it */
    char *out, *err;         /* stdout and stderr, NUL-terminated */
    size_t out_len, err_len; /* without the NUL */
} test_result;
/* Runs argv[0] (looked up in PATH; argv ends with NULL) to its end. input NULL: empty stdin. folder
 * NULL: the current one. A sanitizer's report of a leak in the child shows in its exit code. */
test_result test_run(const char *const argv[], const char *input, const char *folder);
/* The same through `sh -c`, for pipes and redirections. */
test_result test_run_shell(const char *script, const char *folder);
void test_result_free(test_result *result);
/* The built command: <build folder>/snug. */
const char *test_command(void);

#endif
