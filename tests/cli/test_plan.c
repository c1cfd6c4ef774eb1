/* SPDX-License-Identifier: Apache-2.0
 *
 * snug plan as it is typed: its JSON, its listings, cards that are not here, refusals.
 */
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "cli/typed.h"

static json_t *plan_json(int exit_code, const char *line)
{
    test_result r = typed(exit_code, line);
    json_t *json = json_loads(r.out, 0, NULL);

    if (!json_is_object(json))
        fail_msg("snug %s: stdout is not one JSON object: %s", line, r.out);
    test_result_free(&r);
    return json;
}

static void test_json_fields(void **state)
{
    static const char *const fields[] = {"model",
                                         "batch",
                                         "micro_batch",
                                         "largest_batch",
                                         "precision",
                                         "optimizer",
                                         "device",
                                         "device_free_bytes",
                                         "budget_bytes",
                                         "fits",
                                         "peak_bytes",
                                         "arena",
                                         "runtime_bytes",
                                         "host_bytes",
                                         "keep_all_peak_bytes",
                                         "smallest_budget_bytes",
                                         "smallest_identical_budget_bytes",
                                         "choices",
                                         "predicted_slowdown",
                                         "step_seconds",
                                         "epoch_seconds",
                                         "planning_seconds",
                                         "fixes",
                                         "useless"};
    json_t *json = plan_json(0, "plan d -m cnn -s 16 -b 4 -j 1 --no-calibration --json --quiet");
    const char *kind;
    json_t *value;
    json_int_t sum = 0;

    for (size_t i = 0; i < SN_LEN(fields); i++)
        if (!json_object_get(json, fields[i]))
            fail_msg("the plan has no %s", fields[i]);
    json_t *arena = json_object_get(json, "arena");
    assert_int_equal(json_object_size(json_object_get(arena, "by_kind")), 8);
    json_object_foreach(json_object_get(arena, "by_kind"), kind, value) sum +=
        json_integer_value(value);
    assert_int_equal(sum, json_integer_value(json_object_get(arena, "peak_bytes")));
    json_decref(json);

    json = plan_json(3, "plan vgg16 -b 16 -d null:1GiB --no-calibration --json");
    assert_true(json_is_false(json_object_get(json, "fits")));
    assert_true(json_array_size(json_object_get(json, "fixes")) > 0);
    json_decref(json);
}

static void test_forms(void **state)
{
    static const struct {
        const char *line;
        int exit_code;
        const char *out, *err;
    } forms[] = {
        {"plan cnn -s 16 -j 1 --no-calibration", 0, "FITS ", ""},
        {"plan d cnn -s 16 -j 1 --optimizer adam --no-calibration", 0,
         "next     snug train d -m cnn -b 2 -s 16 --optimizer adam -j 1\n", ""},
        {"plan vgg16 -b 2 --card 'GTX 950' --no-calibration", 0, "FITS ", ""},
        {"plan vgg16 -b 2 --card 2GB --no-calibration", 0, "of 2048 MiB", ""},
        {"plan cnn -s 16 -d null:2GiB,tflops=1.8,gbps=106", 0, "of 2048 MiB", ""},
        {"plan cnn -s 16 --program", 0, "conv2d", ""},
        {"plan cnn -s 16 --why", 0, "conv2d", ""},
        {"plan cnn -s 16 --no-calibration --csv b.csv", 0, "FITS ", ""},
        {"plan --place b.csv", 0, "lower bound", ""},
        {"plan --place b.csv --csv placed.csv", 0, "ratio", ""},
        {"plan --place b.csv --capacity 10", 3, "", "capacity 10"},
        {"plan --place b.csv --capacity 1x", 2, "", "--capacity 1x is no number of bytes"},
        {"plan --place nowhere.csv", 4, "", "nowhere.csv"},
        {"plan", 2, "", "takes a MODEL, or DATA"},
        {"plan d cnn e", 2, "", "it takes one DATA and one MODEL; 'e' is too much"},
        {"plan cnn -d null:", 2, "", "write null:2GiB"},
        {"plan cnn --card nothing", 2, "", "nothing"},
    };

    for (size_t i = 0; i < SN_LEN(forms); i++) {
        test_result r = typed(forms[i].exit_code, forms[i].line);
        assert_contains(r.out, forms[i].out);
        assert_contains(r.err, forms[i].err);
        test_result_free(&r);
    }
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, typed_set_up, typed_tear_down)
    const struct CMUnitTest tests[] = {T(test_json_fields), T(test_forms)};

    return cmocka_run_group_tests_name("cli/plan", tests, NULL, NULL);
}
