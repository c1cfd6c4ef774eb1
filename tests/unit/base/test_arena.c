/* SPDX-License-Identifier: Apache-2.0
 *
 * test_arena.c - the bump allocator.
 */
#include "support/support.h"

#include "base/arena.h"

#include <string.h>

static void what_it_gives_is_zeroed_aligned_and_apart(void **state)
{
    sn_arena a;
    sn_arena_init(&a, SN_TAG_GRAPH);
    unsigned char *at[400];
    size_t size[400];
    for (size_t i = 0; i < 400; i++) {
        size[i] = i % 40 == 39 ? 50000 : i * 13 % 500;
        at[i] = sn_arena_alloc(&a, size[i]);
        assert_non_null(at[i]);
        assert_int_equal((uintptr_t)at[i] % 16, 0);
        for (size_t k = 0; k < size[i]; k++)
            assert_int_equal(at[i][k], 0);
        memset(at[i], (int)(i % 255) + 1, size[i]);
    }
    for (size_t i = 0; i < 400; i++)
        for (size_t k = 0; k < size[i]; k++)
            assert_int_equal(at[i][k], i % 255 + 1);
    assert_int_equal(sn_ledger_live_bytes(), sn_ledger_live_bytes_of(SN_TAG_GRAPH));
    sn_arena_deinit(&a);
    assert_no_leak();
    sn_arena_deinit(&a);
}

static void nothing_is_allocated_before_the_first_use(void **state)
{
    sn_arena a;
    sn_arena_init(&a, SN_TAG_GRAPH);
    assert_no_leak();
    void *p = sn_arena_alloc(&a, 0), *q = sn_arena_alloc(&a, 0);
    assert_non_null(p);
    assert_ptr_not_equal(p, q);
    sn_arena_deinit(&a);
    assert_no_leak();
}

static void small_things_share_blocks_after_a_large_one(void **state)
{
    sn_arena a;
    sn_arena_init(&a, SN_TAG_GRAPH);
    sn_arena_alloc(&a, 16);
    uint64_t calls = sn_ledger_calls();
    sn_arena_alloc(&a, 1000000);
    sn_arena_alloc(&a, 16);
    assert_int_equal(sn_ledger_calls(), calls + 1);
    sn_arena_deinit(&a);
    assert_no_leak();
}

static void texts(void **state)
{
    sn_arena a;
    sn_arena_init(&a, SN_TAG_GRAPH);
    assert_string_equal(sn_arena_strdup(&a, "conv1"), "conv1");
    assert_string_equal(sn_arena_strdup(&a, ""), "");
    assert_null(sn_arena_strdup(&a, NULL));
    assert_string_equal(sn_arena_printf(&a, "block%d_%s", 12, "relu"), "block12_relu");
    char *text = sn_arena_printf(&a, "%5000d", 7);
    assert_int_equal(strlen(text), 5000);
    sn_arena_deinit(&a);
    assert_no_leak();
}

static void absurd_sizes_are_refused(void **state)
{
    sn_arena a;
    sn_arena_init(&a, SN_TAG_GRAPH);
    assert_null(sn_arena_alloc(&a, SIZE_MAX));
    assert_null(sn_arena_alloc(&a, SIZE_MAX / 2));
    assert_null(sn_arena_alloc_array(&a, SIZE_MAX / 2, 4));
    int *v = sn_arena_alloc_array(&a, 10, sizeof *v);
    assert_int_equal(v[9], 0);
    sn_arena_deinit(&a);
    assert_no_leak();
}

static bool use(void)
{
    sn_arena a;
    sn_arena_init(&a, SN_TAG_GRAPH);
    bool ok = sn_arena_alloc(&a, 900) && sn_arena_alloc(&a, 900) && sn_arena_strdup(&a, "x") &&
              sn_arena_printf(&a, "%9000d", 1) && sn_arena_alloc_array(&a, 3000, 8);
    sn_arena_deinit(&a);
    return ok;
}

static void every_failing_allocation_is_survived(void **state)
{
    uint64_t before = sn_ledger_calls();
    assert_true(use());
    uint64_t n = sn_ledger_calls() - before;
    assert_true(n >= 3);
    for (uint64_t i = 1; i <= n; i++) {
        sn_ledger_fail_nth(i);
        assert_false(use());
        assert_no_leak();
    }
    sn_ledger_fail_nth(0);
    assert_true(use());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_it_gives_is_zeroed_aligned_and_apart),
        cmocka_unit_test(nothing_is_allocated_before_the_first_use),
        cmocka_unit_test(small_things_share_blocks_after_a_large_one),
        cmocka_unit_test(texts),
        cmocka_unit_test(absurd_sizes_are_refused),
        cmocka_unit_test(every_failing_allocation_is_survived),
    };
    return cmocka_run_group_tests_name("base/arena", tests, NULL, NULL);
}
