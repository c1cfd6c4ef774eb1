/* SPDX-License-Identifier: Apache-2.0
 *
 * replay_main.c - feeds a fuzzer its corpus, without libFuzzer: each file whole, and cut short at
 * several lengths. Inputs lie in blocks of their exact size, so that a sanitizer sees an overread;
 * the ledger is empty before each, and must be after.
 */
#include "support/support.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

static void feed(const char *name, const char *data, size_t n)
{
    uint8_t *copy = malloc(n ? n : 1);
    assert_non_null(copy);
    memcpy(copy, data, n);
    assert_no_leak();
    LLVMFuzzerTestOneInput(copy, n);
    free(copy);
    if (sn_ledger_live_bytes())
        fail_msg("%s, its first %zu bytes: %" PRIu64 " bytes were left allocated", name, n,
                 sn_ledger_live_bytes());
}

/* The bytes of a file, in memory that the ledger does not know. */
static char *load(const char *path, size_t *n)
{
    char *read = test_read(path, n), *data = malloc(*n + 1);
    assert_non_null(data);
    memcpy(data, read, *n);
    sn_free(read);
    return data;
}

static void the_corpus_is_survived(void **state)
{
    char folder[SN_TEST_PATH], path[SN_TEST_PATH];
    struct dirent **entries;
    int n =
        scandir(test_source_path(folder, "fuzz/corpus/" SNUG_FUZZ_NAME), &entries, NULL, alphasort);
    if (n < 0)
        fail_msg("%s is missing: a fuzzer needs inputs to start from", folder);
    size_t fed = 0;
    for (int i = 0; i < n; i++) {
        if (entries[i]->d_name[0] != '.') {
            size_t len;
            char *data = load(test_path(path, folder, entries[i]->d_name), &len);
            feed(entries[i]->d_name, data, len);
            for (size_t cut = 0; cut < 32 && cut < len; cut++)
                feed(entries[i]->d_name, data, len * cut / 32);
            free(data);
            fed++;
        }
        free(entries[i]);
    }
    free(entries);
    assert_true(fed > 0);
    assert_no_leak();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_corpus_is_survived)};
    return cmocka_run_group_tests_name("fuzz/" SNUG_FUZZ_NAME, tests, NULL, NULL);
}
