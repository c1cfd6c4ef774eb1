/* SPDX-License-Identifier: Apache-2.0
 *
 * test_text.c - comparing, naming the nearest, showing safely, sizes and times in and out.
 */
#include "support/support.h"

#include <locale.h>
#include <math.h>
#include <string.h>

static void checked_arithmetic_reports_overflow(void **state)
{
    uint64_t x;
    assert_false(sn_mul_u64(&x, UINT64_C(1) << 32, UINT64_C(0xffffffff)));
    assert_int_equal(x, UINT64_C(0xffffffff00000000));
    assert_true(sn_mul_u64(&x, UINT64_C(1) << 32, UINT64_C(1) << 32));
    assert_false(sn_add_u64(&x, UINT64_MAX - 1, 1));
    assert_true(sn_add_u64(&x, UINT64_MAX, 1));
    assert_int_equal(sn_align_up(0, 64), 0);
    assert_int_equal(sn_align_up(1, 64), 64);
    assert_int_equal(sn_align_up(64, 64), 64);
    assert_int_equal(sn_align_up(65, 64), 128);
}

static void comparisons(void **state)
{
    assert_true(sn_str_eq("a", "a"));
    assert_false(sn_str_eq("a", "b"));
    assert_true(sn_str_eq(NULL, NULL));
    assert_false(sn_str_eq("a", NULL));
    assert_false(sn_str_eq(NULL, "a"));
    assert_true(sn_str_starts("--json", "--"));
    assert_true(sn_str_starts("x", ""));
    assert_false(sn_str_starts("-", "--"));
    assert_true(sn_str_ends("a.jpg", ".jpg"));
    assert_false(sn_str_ends("a.JPG", ".jpg"));
    assert_false(sn_str_ends("g", ".jpg"));
    assert_true(sn_str_ends_fold("a.JpG", ".jpg"));
    assert_true(sn_str_ends_fold("a.jpg", ".JPG"));
    assert_false(sn_str_ends_fold("ajpg", ".jpg"));
    assert_false(sn_str_ends_fold("g", ".jpg"));
}

static void natural_order(void **state)
{
    /* Each text comes before all that follow it. */
    static const char *const sorted[] = {"",
                                         "0",
                                         "1",
                                         "2",
                                         "10",
                                         "A",
                                         "a",
                                         "a01",
                                         "a1",
                                         "a1b",
                                         "a2",
                                         "a10",
                                         "a10b2",
                                         "a10b11",
                                         "a18446744073709551616",
                                         "a18446744073709551617",
                                         "ab",
                                         "b",
                                         "\xc3\xa9"};
    for (size_t i = 0; i < SN_LEN(sorted); i++)
        for (size_t j = 0; j < SN_LEN(sorted); j++) {
            int order = sn_str_natural_cmp(sorted[i], sorted[j]);
            if ((order > 0) != (i > j) || (order < 0) != (i < j))
                fail_msg("'%s' against '%s': %d", sorted[i], sorted[j], order);
        }
}

static void distance_is_levenshtein(void **state)
{
    assert_int_equal(sn_str_distance("", ""), 0);
    assert_int_equal(sn_str_distance("", "abc"), 3);
    assert_int_equal(sn_str_distance("kitten", "sitting"), 3);
    assert_int_equal(sn_str_distance("sitting", "kitten"), 3);
    assert_int_equal(sn_str_distance("bacth", "batch"), 2);
    char longest[65];
    memset(longest, 'a', 64);
    longest[64] = '\0';
    assert_int_equal(sn_str_distance(longest, longest), 64);
    assert_int_equal(sn_str_distance("", longest), 64);
    longest[63] = '\0';
    assert_int_equal(sn_str_distance(longest, longest), 0);
    assert_int_equal(sn_str_distance("", longest), 63);
}

static void the_nearest_is_named_when_it_is_near(void **state)
{
    static const char *const options[] = {"--batch", "--epochs", "--memory", "--lr", "vgg16"};
    size_t n = SN_LEN(options);
    assert_string_equal(sn_str_nearest("--bacth", options, n), "--batch");
    assert_string_equal(sn_str_nearest("--memry", options, n), "--memory");
    assert_string_equal(sn_str_nearest("VGG16", options, n), "vgg16");
    assert_null(sn_str_nearest("--frobnicate", options, n));
    assert_null(sn_str_nearest("", options, n));
    assert_null(sn_str_nearest("x", options, n));
    assert_null(sn_str_nearest("--batch", options, 0));
}

static void printable_escapes_what_a_terminal_would_obey(void **state)
{
    static const struct {
        const char *text, *shown;
    } cases[] = {
        {"plain ~", "plain ~"},
        {"a\x1b[31mb", "a\\x1b[31mb"},
        {"tab\tnl\n", "tab\\x09nl\\x0a"},
        {"\x7f", "\\x7f"},
        {"caf\xc3\xa9 \xe6\x97\xa5 \xf0\x9f\x90\x88", "caf\xc3\xa9 \xe6\x97\xa5 \xf0\x9f\x90\x88"},
        {"\xff\xfe", "\\xff\\xfe"},
        {"\xc3", "\\xc3"},                            /* cut short */
        {"\xc3(", "\\xc3("},                          /* no continuation */
        {"\xc0\xaf", "\\xc0\\xaf"},                   /* overlong */
        {"\xe0\x80\xaf", "\\xe0\\x80\\xaf"},          /* overlong */
        {"\xed\xa0\x80", "\\xed\\xa0\\x80"},          /* a surrogate */
        {"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"}, /* beyond Unicode */
        {"\xf8\x88\x80\x80", "\\xf8\\x88\\x80\\x80"}, /* no such length */
        {"\xc2\x9b", "\\xc2\\x9b"},                   /* C1: "control sequence introducer" */
        {"\xe2\x80\xae", "\\xe2\\x80\\xae"},          /* right-to-left override */
    };
    char out[64];
    for (size_t i = 0; i < SN_LEN(cases); i++)
        assert_string_equal(sn_str_printable(out, sizeof out, cases[i].text), cases[i].shown);
    assert_string_equal(sn_str_printable(out, sizeof out, NULL), "");
}

static void printable_never_cuts_a_character_and_always_terminates(void **state)
{
    char out[8];
    assert_string_equal(sn_str_printable(out, 3, "\xc3\xa9z"), "\xc3\xa9");
    assert_string_equal(sn_str_printable(out, 2, "\xc3\xa9z"), "");
    assert_string_equal(sn_str_printable(out, 4, "\x01z"), "");
    assert_string_equal(sn_str_printable(out, 5, "\x01z"), "\\x01");
    assert_string_equal(sn_str_printable(out, 1, "abc"), "");
    out[0] = 'k';
    sn_str_printable(out, 0, "abc");
    assert_int_equal(out[0], 'k');
}

static void sizes(void **state)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } good[] = {
        {"0", 0},
        {"4096", 4096},
        {"4096B", 4096},
        {"1500M", 1500 * SN_MIB},
        {"2G", 2 * SN_GIB},
        {"2GB", 2 * SN_GIB},
        {"2GiB", 2 * SN_GIB},
        {"2gib", 2 * SN_GIB},
        {"2048MB", 2 * SN_GIB},
        {"7k", 7 * SN_KIB},
        {"1T", 1024 * SN_GIB},
        {"1P", 1024 * 1024 * SN_GIB},
        {"1.5G", 3 * SN_GIB / 2},
        {"0.5K", 512},
        {".5K", 512},
        {"0.1M", 104857}, /* 104857.6 */
        {"0.999999999999999999G", SN_GIB - 1},
        {"18446744073709551615", UINT64_MAX},
        {"17179869183G", UINT64_MAX - SN_GIB + 1},
    };
    static const char *const bad[] = {"",
                                      " ",
                                      "M",
                                      "-1",
                                      "-1G",
                                      "+1",
                                      "1 G",
                                      " 1G",
                                      "1G ",
                                      "1.G",
                                      "1.5",
                                      "1.5B",
                                      "1..5G",
                                      "1e3",
                                      "0x10",
                                      "inf",
                                      "nan",
                                      "G1",
                                      "1GG",
                                      "1GiBB",
                                      "1Gi",
                                      "1iB",
                                      "1X",
                                      "1BB",
                                      "90%",
                                      ".",
                                      ".G",
                                      "1,5G",
                                      "2GBi",
                                      "1\n",
                                      "18446744073709551616",
                                      "17179869184G",
                                      "99999999999999999999999999999P"};
    for (size_t i = 0; i < SN_LEN(good); i++) {
        uint64_t bytes = 12345;
        if (!sn_parse_size(good[i].text, &bytes) || bytes != good[i].bytes)
            fail_msg("%s is %" PRIu64, good[i].text, bytes);
    }
    for (size_t i = 0; i < SN_LEN(bad); i++) {
        uint64_t bytes = 12345;
        if (sn_parse_size(bad[i], &bytes))
            fail_msg("'%s' was taken for %" PRIu64, bad[i], bytes);
        assert_int_equal(bytes, 12345);
    }
    assert_false(sn_parse_size(NULL, &(uint64_t){0}));
}

static void whole_numbers(void **state)
{
    int64_t v = 77;
    assert_true(sn_parse_i64("0", 0, 10, &v) && v == 0);
    assert_true(sn_parse_i64("-7", -7, 10, &v) && v == -7);
    assert_true(sn_parse_i64("007", 0, 10, &v) && v == 7);
    assert_true(sn_parse_i64("9223372036854775807", INT64_MIN, INT64_MAX, &v) && v == INT64_MAX);
    assert_true(sn_parse_i64("-9223372036854775808", INT64_MIN, INT64_MAX, &v) && v == INT64_MIN);
    static const char *const bad[] = {"",
                                      " 1",
                                      "1 ",
                                      "+1",
                                      "-",
                                      "--1",
                                      "1.0",
                                      "1e2",
                                      "0x1",
                                      "a",
                                      "1a",
                                      "9223372036854775808",
                                      "-9223372036854775809"};
    v = 77;
    for (size_t i = 0; i < SN_LEN(bad); i++)
        if (sn_parse_i64(bad[i], INT64_MIN, INT64_MAX, &v))
            fail_msg("'%s' was taken", bad[i]);
    assert_false(sn_parse_i64("11", 0, 10, &v));
    assert_false(sn_parse_i64("-1", 0, 10, &v));
    assert_false(sn_parse_i64(NULL, 0, 10, &v));
    assert_int_equal(v, 77);
}

static void reals(void **state)
{
    double v = 77;
    assert_true(sn_parse_f64("0.25", 0, 1, &v) && v == 0.25);
    assert_true(sn_parse_f64("1e-3", 0, 1, &v) && v == 1e-3);
    assert_true(sn_parse_f64("-2.5E+2", -1000, 1, &v) && v == -250);
    assert_true(sn_parse_f64(".5", 0, 1, &v) && v == .5);
    static const char *const bad[] = {"",   " 1", "1 ",    "nan", "inf", "-inf",  "0x1p3", "1,5",
                                      "1e", "e1", "1e999", ".",   "-",   "1.2.3", "1f"};
    v = 77;
    for (size_t i = 0; i < SN_LEN(bad); i++)
        if (sn_parse_f64(bad[i], -1e308, 1e308, &v))
            fail_msg("'%s' was taken", bad[i]);
    assert_false(sn_parse_f64("1.01", 0, 1, &v));
    assert_false(sn_parse_f64("-0.01", 0, 1, &v));
    assert_false(sn_parse_f64(NULL, 0, 1, &v));
    assert_true(v == 77);
}

static void bytes_in_words(void **state)
{
    static const struct {
        uint64_t bytes;
        const char *text;
    } cases[] = {
        {0, "0 B"},
        {512, "512 B"},
        {1023, "1023 B"},
        {1024, "1.0 KiB"},
        {3584, "3.5 KiB"},
        {SN_MIB - 1, "1 MiB"}, /* not "1024.0 KiB" */
        {SN_MIB, "1 MiB"},
        {3 * SN_MIB / 2, "2 MiB"},
        {1633 * SN_MIB, "1633 MiB"},
        {10 * SN_GIB - SN_MIB, "10239 MiB"},
        {10 * SN_GIB - 1, "10.0 GiB"}, /* not "10240 MiB" */
        {10 * SN_GIB, "10.0 GiB"},
        {17 * SN_GIB + 600 * SN_MIB, "17.6 GiB"},
        {1024 * SN_GIB, "1.0 TiB"},
        {UINT64_MAX, "16777216.0 TiB"},
    };
    char out[32];
    for (size_t i = 0; i < SN_LEN(cases); i++)
        assert_string_equal(sn_format_bytes(out, sizeof out, cases[i].bytes), cases[i].text);
    assert_string_equal(sn_format_bytes(out, 4, 512), "512");
}

static void seconds_in_words(void **state)
{
    static const struct {
        double seconds;
        const char *text;
    } cases[] = {
        {0, "0.00 ms"},        {0.00321, "3.21 ms"},  {0.0094, "9.40 ms"}, {0.0096, "0.01 s"},
        {0.21, "0.21 s"},      {9.994, "9.99 s"},     {9.996, "10 s"},     {45.4, "45 s"},
        {59.6, "1 min 0 s"},   {125, "2 min 5 s"},    {1830, "31 min"},    {3599, "1 h 0 min"},
        {23880, "6 h 38 min"}, {172800, "2 d 0 h"},   {190800, "2 d 5 h"}, {-1, "unknown"},
        {NAN, "unknown"},      {INFINITY, "unknown"},
    };
    char out[32];
    for (size_t i = 0; i < SN_LEN(cases); i++)
        assert_string_equal(sn_format_seconds(out, sizeof out, cases[i].seconds), cases[i].text);
}

static void the_clock_does_not_go_back(void **state)
{
    double before = sn_now();
    for (int i = 0; i < 1000; i++) {
        double now = sn_now();
        assert_true(now >= before);
        before = now;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checked_arithmetic_reports_overflow),
        cmocka_unit_test(comparisons),
        cmocka_unit_test(natural_order),
        cmocka_unit_test(distance_is_levenshtein),
        cmocka_unit_test(the_nearest_is_named_when_it_is_near),
        cmocka_unit_test(printable_escapes_what_a_terminal_would_obey),
        cmocka_unit_test(printable_never_cuts_a_character_and_always_terminates),
        cmocka_unit_test(sizes),
        cmocka_unit_test(whole_numbers),
        cmocka_unit_test(reals),
        cmocka_unit_test(bytes_in_words),
        cmocka_unit_test(seconds_in_words),
        cmocka_unit_test(the_clock_does_not_go_back),
    };
    return cmocka_run_group_tests_name("base/text", tests, NULL, NULL);
}
