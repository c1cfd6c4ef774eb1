/* SPDX-License-Identifier: Apache-2.0
 *
 * test_ledger.c - every byte counted, by tag, from any thread; the n-th allocation made to fail.
 */
#include "support/support.h"

#include <pthread.h>
#include <string.h>

static void bytes_are_counted_as_asked(void **state)
{
    uint64_t calls = sn_ledger_calls();
    char *a = sn_alloc(SN_TAG_PLAN, 1000);
    char *b = sn_alloc(SN_TAG_DATA, 24);
    assert_int_equal(sn_ledger_live_bytes(), 1024);
    assert_int_equal(sn_ledger_live_bytes_of(SN_TAG_PLAN), 1000);
    assert_int_equal(sn_ledger_live_bytes_of(SN_TAG_DATA), 24);
    assert_true(sn_ledger_peak_bytes() >= 1024);
    assert_int_equal(sn_ledger_calls(), calls + 2);
    sn_free(a);
    assert_int_equal(sn_ledger_live_bytes(), 24);
    assert_int_equal(sn_ledger_live_bytes_of(SN_TAG_PLAN), 0);
    sn_free(b);
    sn_free(NULL);
    assert_no_leak();
}

static void memory_is_zeroed_and_aligned(void **state)
{
    for (size_t n = 1; n < 5000; n = n * 2 + 1) {
        unsigned char *p = sn_alloc(SN_TAG_TEST, n);
        assert_int_equal((uintptr_t)p % 16, 0);
        for (size_t i = 0; i < n; i++)
            assert_int_equal(p[i], 0);
        memset(p, 0xee, n);
        sn_free(p);
    }
    assert_no_leak();
}

static void nothing_asked_gives_a_unique_pointer(void **state)
{
    void *a = sn_alloc(SN_TAG_TEST, 0), *b = sn_alloc(SN_TAG_TEST, 0);
    assert_non_null(a);
    assert_non_null(b);
    assert_ptr_not_equal(a, b);
    assert_no_leak();
    sn_free(a);
    sn_free(b);
}

static void absurd_sizes_are_refused(void **state)
{
    assert_null(sn_alloc(SN_TAG_TEST, SIZE_MAX));
    assert_null(sn_alloc(SN_TAG_TEST, SIZE_MAX - 8));
    assert_null(sn_alloc_array(SN_TAG_TEST, SIZE_MAX / 2, 3));
    char *p = sn_alloc_array(SN_TAG_TEST, 3, 5);
    assert_int_equal(sn_ledger_live_bytes(), 15);
    assert_null(sn_realloc(SN_TAG_TEST, p, SIZE_MAX));
    assert_int_equal(sn_ledger_live_bytes(), 15);
    sn_free(p);
    assert_no_leak();
}

static void realloc_keeps_bytes_and_moves_the_count(void **state)
{
    char *p = sn_realloc(SN_TAG_PLAN, NULL, 10);
    memcpy(p, "123456789", 10);
    p = sn_realloc(SN_TAG_PLAN, p, 10000);
    assert_string_equal(p, "123456789");
    assert_int_equal(sn_ledger_live_bytes_of(SN_TAG_PLAN), 10000);
    p = sn_realloc(SN_TAG_DATA, p, 10);
    assert_string_equal(p, "123456789");
    assert_int_equal(sn_ledger_live_bytes_of(SN_TAG_PLAN), 0);
    assert_int_equal(sn_ledger_live_bytes_of(SN_TAG_DATA), 10);
    sn_free(p);
    assert_no_leak();
}

static void texts_are_copied(void **state)
{
    char *a = sn_strdup(SN_TAG_TEST, "abc"), *b = sn_strndup(SN_TAG_TEST, "abcdef", 3),
         *c = sn_strndup(SN_TAG_TEST, "ab", 30);
    assert_string_equal(a, "abc");
    assert_string_equal(b, "abc");
    assert_string_equal(c, "ab");
    assert_int_equal(sn_ledger_live_bytes(), 4 + 4 + 3);
    assert_null(sn_strdup(SN_TAG_TEST, NULL));
    assert_null(sn_strndup(SN_TAG_TEST, NULL, 3));
    sn_free(a);
    sn_free(b);
    sn_free(c);
    assert_no_leak();
}

static void the_nth_allocation_fails_once(void **state)
{
    sn_ledger_fail_nth(3);
    void *a = sn_alloc(SN_TAG_TEST, 8), *b = sn_realloc(SN_TAG_TEST, NULL, 8);
    assert_non_null(a);
    assert_non_null(b);
    memcpy(b, "kept...", 8);
    assert_null(sn_realloc(SN_TAG_TEST, b, 800));
    assert_string_equal(b, "kept...");
    void *c = sn_alloc(SN_TAG_TEST, 8);
    assert_non_null(c);
    sn_ledger_fail_nth(1);
    assert_null(sn_strdup(SN_TAG_TEST, "x"));
    sn_ledger_fail_nth(1);
    sn_ledger_fail_nth(0);
    void *d = sn_alloc(SN_TAG_TEST, 8);
    assert_non_null(d);
    sn_free(a);
    sn_free(b);
    sn_free(c);
    sn_free(d);
    assert_no_leak();
}

static void tags_have_names(void **state)
{
    assert_string_equal(sn_tag_name(SN_TAG_BASE), "BASE");
    assert_string_equal(sn_tag_name(SN_TAG_TEST), "TEST");
    assert_string_equal(sn_tag_name(SN_N_TAGS), "?");
    assert_string_equal(sn_tag_name((sn_tag)-1), "?");
}

static void *churn(void *argument)
{
    void *held[16] = {0};
    for (size_t i = 0; i < 4000; i++) {
        void **slot = &held[i * 7 % 16];
        sn_free(*slot);
        *slot = sn_alloc((sn_tag)(i % SN_N_TAGS), i % 300);
        if (!*slot)
            return argument;
    }
    for (size_t i = 0; i < 16; i++)
        sn_free(held[i]);
    return NULL;
}

static void threads_may_allocate_at_once(void **state)
{
    pthread_t threads[4];
    uint64_t calls = sn_ledger_calls();
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, churn, &calls), 0);
    for (size_t i = 0; i < 4; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    assert_int_equal(sn_ledger_calls(), calls + 16000);
    assert_no_leak();
    for (int tag = 0; tag < SN_N_TAGS; tag++)
        assert_int_equal(sn_ledger_live_bytes_of((sn_tag)tag), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_are_counted_as_asked),
        cmocka_unit_test(memory_is_zeroed_and_aligned),
        cmocka_unit_test(nothing_asked_gives_a_unique_pointer),
        cmocka_unit_test(absurd_sizes_are_refused),
        cmocka_unit_test(realloc_keeps_bytes_and_moves_the_count),
        cmocka_unit_test(texts_are_copied),
        cmocka_unit_test(the_nth_allocation_fails_once),
        cmocka_unit_test(tags_have_names),
        cmocka_unit_test(threads_may_allocate_at_once),
    };
    return cmocka_run_group_tests_name("base/ledger", tests, NULL, NULL);
}
