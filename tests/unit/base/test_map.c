/* SPDX-License-Identifier: Apache-2.0
 *
 * test_map.c - the hash map.
 */
#include "support/support.h"

#include "base/map.h"

#include <stdio.h>
#include <string.h>

static void what_is_set_is_found(void **state)
{
    sn_map m;
    sn_map_init(&m, SN_TAG_DATA);
    assert_null(sn_map_find_str(&m, "k0"));
    char key[32];
    for (uint64_t i = 0; i < 5000; i++) {
        snprintf(key, sizeof key, "k%d", (int)i);
        assert_true(sn_map_set_str(&m, key, i));
    }
    memset(key, 0, sizeof key); /* keys are copied */
    assert_int_equal(m.n, 5000);
    for (uint64_t i = 0; i < 5000; i++) {
        snprintf(key, sizeof key, "k%d", (int)i);
        uint64_t *v = sn_map_find_str(&m, key);
        assert_non_null(v);
        assert_int_equal(*v, i);
    }
    assert_null(sn_map_find_str(&m, "k5000"));
    assert_null(sn_map_find_str(&m, "k"));
    assert_null(sn_map_find_str(&m, ""));
    sn_map_deinit(&m);
    assert_no_leak();
    assert_null(sn_map_find_str(&m, "k1"));
    sn_map_deinit(&m);
}

static void setting_again_replaces(void **state)
{
    sn_map m;
    sn_map_init(&m, SN_TAG_DATA);
    sn_map_set_str(&m, "cat", 3);
    uint64_t calls = sn_ledger_calls();
    sn_map_set_str(&m, "cat", 4);
    assert_int_equal(sn_ledger_calls(), calls);
    assert_int_equal(m.n, 1);
    *sn_map_find_str(&m, "cat") += 10;
    assert_int_equal(*sn_map_find_str(&m, "cat"), 14);
    sn_map_deinit(&m);
    assert_no_leak();
}

static void keys_are_bytes(void **state)
{
    sn_map m;
    sn_map_init(&m, SN_TAG_DATA);
    assert_true(sn_map_set(&m, "a\0b", 3, 1));
    assert_true(sn_map_set(&m, "a\0c", 3, 2));
    assert_true(sn_map_set(&m, "a", 1, 3));
    assert_true(sn_map_set(&m, "", 0, 4));
    assert_int_equal(*sn_map_find(&m, "a\0b", 3), 1);
    assert_int_equal(*sn_map_find(&m, "a\0c", 3), 2);
    assert_int_equal(*sn_map_find_str(&m, "a"), 3);
    assert_int_equal(*sn_map_find(&m, NULL, 0), 4);
    assert_int_equal(m.n, 4);
    sn_map_deinit(&m);
    assert_no_leak();
}

static void iteration_sees_each_once(void **state)
{
    sn_map m;
    sn_map_init(&m, SN_TAG_DATA);
    size_t cursor = 0;
    assert_false(sn_map_next(&m, &cursor, NULL, NULL, NULL));
    for (uint32_t i = 0; i < 100; i++)
        assert_true(sn_map_set(&m, &i, sizeof i, i * 2));
    bool seen[100] = {0};
    const void *key;
    size_t len, n = 0;
    uint64_t value;
    for (cursor = 0; sn_map_next(&m, &cursor, &key, &len, &value); n++) {
        uint32_t i;
        assert_int_equal(len, sizeof i);
        memcpy(&i, key, sizeof i);
        assert_true(i < 100 && !seen[i]);
        assert_int_equal(value, i * 2);
        seen[i] = true;
    }
    assert_int_equal(n, 100);
    for (n = 0, cursor = 0; sn_map_next(&m, &cursor, NULL, NULL, NULL);)
        n++;
    assert_int_equal(n, 100);
    sn_map_deinit(&m);
    assert_no_leak();
}

/* Sets 40 keys; how many sets reported success. What was set must be there. */
static size_t use(void)
{
    sn_map m;
    sn_map_init(&m, SN_TAG_DATA);
    size_t set = 0;
    char key[64];
    for (int i = 0; i < 40; i++) {
        snprintf(key, sizeof key, "%050d", i);
        bool ok = sn_map_set_str(&m, key, (uint64_t)i);
        assert_int_equal(sn_map_find_str(&m, key) != NULL, ok);
        set += ok;
    }
    assert_int_equal(m.n, set);
    sn_map_deinit(&m);
    return set;
}

static void every_failing_allocation_is_survived(void **state)
{
    uint64_t before = sn_ledger_calls();
    assert_int_equal(use(), 40);
    uint64_t n = sn_ledger_calls() - before;
    assert_true(n >= 4);
    for (uint64_t i = 1; i <= n; i++) {
        sn_ledger_fail_nth(i);
        assert_int_equal(use(), 39);
        assert_no_leak();
    }
    sn_ledger_fail_nth(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_set_is_found),
        cmocka_unit_test(setting_again_replaces),
        cmocka_unit_test(keys_are_bytes),
        cmocka_unit_test(iteration_sees_each_once),
        cmocka_unit_test(every_failing_allocation_is_survived),
    };
    return cmocka_run_group_tests_name("base/map", tests, NULL, NULL);
}
