/* SPDX-License-Identifier: Apache-2.0
 *
 * Decoding scratch: bounds, alignment, grants of the pool from several threads.
 */
#include "support/support.h"

#include <pthread.h>
#include <string.h>

#include "data/scratch.h"

static void test_bounded_and_aligned(void **state)
{
    sn_scratch s;

    assert_int_equal(sn_scratch_init(&s, 1000, NULL, NULL), SNUG_OK);
    for (int round = 0; round < 3; round++) {
        uint8_t *a = sn_scratch_alloc(&s, 10), *b = sn_scratch_alloc(&s, 900);
        assert_non_null(a);
        assert_non_null(b);
        assert_int_equal((uintptr_t)a % 64, 0);
        assert_int_equal((uintptr_t)b % 64, 0);
        assert_true(b >= a + 10);
        memset(b, 1, 900);
        assert_null(sn_scratch_alloc(&s, 100));
        assert_null(sn_scratch_alloc(&s, UINT64_MAX));
        sn_scratch_reset(&s);
    }
    snug_error err = SNUG_ERROR_INIT;
    assert_int_equal(sn_scratch_reserve(&s, 1000, &err), SNUG_OK);
    assert_fails(sn_scratch_reserve(&s, 1001, &err), SNUG_E_UNSUPPORTED, &err);
    assert_contains(err.what, "the bound is 1000 B");
    sn_scratch_deinit(&s);
    sn_scratch_deinit(&s);
    assert_no_leak();
}

enum { THREADS = 4, ROUNDS = 400 };

static sn_pool pool;

/* Each fills its grant with its own number and finds it unchanged. */
static void *user(void *argument)
{
    uintptr_t me = (uintptr_t)argument;
    sn_scratch s;

    if (sn_scratch_init(&s, 64, &pool, NULL))
        return "no scratch";
    for (size_t i = 0; i < ROUNDS; i++) {
        size_t n = (size_t)((me * 31 + i * 17) % 50 + 1) * 4096 - 64;
        if (sn_scratch_reserve(&s, n, NULL))
            return "no grant";
        uint8_t *p = sn_scratch_alloc(&s, n);
        if (!p || p < pool.base || p + n > pool.base + sn_pool_bytes(&pool))
            return "outside of the pool";
        memset(p, (int)me, n);
        for (size_t k = 0; k < n; k += 511)
            if (p[k] != me)
                return "somebody else wrote here";
        sn_scratch_reset(&s);
    }
    sn_scratch_deinit(&s);
    return NULL;
}

static void test_grants_do_not_overlap(void **state)
{
    pthread_t threads[THREADS];

    assert_int_equal(sn_pool_init(&pool, 64 * 4096, NULL), SNUG_OK);
    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, user, (void *)(i + 1)), 0);
    for (int i = 0; i < THREADS; i++) {
        void *why;
        pthread_join(threads[i], &why);
        if (why)
            fail_msg("%s", (const char *)why);
    }
    assert_int_equal(pool.held, 0);
    sn_scratch s;
    snug_error err = SNUG_ERROR_INIT;
    assert_int_equal(sn_scratch_init(&s, 64, &pool, NULL), SNUG_OK);
    assert_int_equal(sn_scratch_reserve(&s, 64 * 4096, &err), SNUG_OK);
    sn_scratch_reset(&s);
    assert_fails(sn_scratch_reserve(&s, 64 * 4096 + 1, &err), SNUG_E_UNSUPPORTED, &err);
    sn_scratch_deinit(&s);
    sn_pool_deinit(&pool);
    assert_no_leak();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bounded_and_aligned),
        cmocka_unit_test(test_grants_do_not_overlap),
    };

    return cmocka_run_group_tests_name("unit/data_scratch", tests, NULL, NULL);
}
