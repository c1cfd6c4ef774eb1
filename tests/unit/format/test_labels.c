/* SPDX-License-Identifier: Apache-2.0
 *
 * Columns of labels: names, numbers, real targets.
 */
#include "support/support.h"

#include <stdio.h>

#include "format/labels.h"

static sn_labels l;
static snug_error err;

static void fill(const char *const *texts, size_t n)
{
    assert_ok(sn_labels_init(&l, &err), &err);
    for (size_t i = 0; i < n; i++)
        assert_ok(sn_labels_add(&l, texts[i], &err), &err);
    assert_ok(sn_labels_finish(&l, &err), &err);
}

static int32_t class_at(uint64_t i)
{
    int32_t class_index;
    float y;

    assert_ok(sn_labels_at(&l, i, &class_index, &y, &err), &err);
    return class_index;
}

static void test_names_in_natural_order(void **state)
{
    const char *const texts[] = {"b10", "b9", "a", "b10", "b9"};

    fill(texts, 5);
    assert_false(l.real);
    assert_int_equal(l.names.n, 3);
    assert_string_equal(l.names.at[1], "b9");
    assert_int_equal(class_at(0), 2);
    assert_int_equal(class_at(2), 0);
    assert_int_equal(class_at(4), 1);
    sn_labels_deinit(&l);
    assert_no_leak();
}

static void test_whole_numbers_are_classes(void **state)
{
    const char *const texts[] = {"10", "2", "-1", "10"};

    fill(texts, 4);
    assert_false(l.real);
    assert_string_equal(l.names.at[2], "10");
    assert_int_equal(class_at(3), 2);
    sn_labels_deinit(&l);
}

static void test_others_are_targets(void **state)
{
    const char *const texts[] = {"10", "2.5", "-1e3"};
    float y;
    int32_t class_index;

    fill(texts, 3);
    assert_true(l.real);
    assert_ok(sn_labels_at(&l, 2, &class_index, &y, &err), &err);
    assert_int_equal(class_index, -1);
    assert_true(y == -1000);
    sn_labels_deinit(&l);
}

static void test_many_numbers_are_targets(void **state)
{
    char text[16];

    for (int n = 1000; n <= 1001; n++) { /* up to 1000 different ones are classes */
        assert_ok(sn_labels_init(&l, &err), &err);
        for (int i = 0; i < 3 * n; i++) {
            snprintf(text, sizeof text, "%d", i % n);
            assert_ok(sn_labels_add(&l, text, &err), &err);
        }
        assert_ok(sn_labels_finish(&l, &err), &err);
        assert_int_equal(l.real, n == 1001);
        sn_labels_deinit(&l);
    }
    assert_no_leak();
}

static void test_too_many_names(void **state)
{
    char text[16];
    snug_status status = SNUG_OK;
    int i = 0;

    assert_ok(sn_labels_init(&l, &err), &err);
    for (; !status && i < 70000; i++) {
        snprintf(text, sizeof text, "name%d", i);
        status = sn_labels_add(&l, text, &err);
    }
    assert_int_equal(status, SNUG_E_INPUT);
    assert_int_equal(i, 65537);
    assert_fails(sn_labels_add(&l, "", &err), SNUG_E_INPUT, &err);
    sn_labels_deinit(&l);
    assert_no_leak();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_in_natural_order),
        cmocka_unit_test(test_whole_numbers_are_classes),
        cmocka_unit_test(test_others_are_targets),
        cmocka_unit_test(test_many_numbers_are_targets),
        cmocka_unit_test(test_too_many_names),
    };

    return cmocka_run_group_tests_name("unit/format_labels", tests, NULL, NULL);
}
