/* SPDX-License-Identifier: Apache-2.0
 *
 * test_half.c - 16-bit floats: every value, every tie, and the processor's own conversions.
 */
#include "support/support.h"

#include "base/half.h"
#include "base/host.h"
#include "base/rng.h"

#include <math.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

static float f32(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint32_t bits(float value)
{
    uint32_t b;
    memcpy(&b, &value, sizeof b);
    return b;
}

/* The value from the format's definition, in double: exact. */
static double f16_value(unsigned h)
{
    unsigned exponent = h >> 10 & 31, mantissa = h & 0x3ff;
    double magnitude = exponent ? ldexp(1024 + mantissa, (int)exponent - 25) : ldexp(mantissa, -24);
    return h & 0x8000 ? -magnitude : magnitude;
}

static void every_f16_is_read_by_its_definition(void **state)
{
    for (unsigned h = 0; h < 65536; h++) {
        float value = sn_f16_to_f32((uint16_t)h);
        bool special = (h >> 10 & 31) == 31;
        if (special && (h & 0x3ff)) {
            assert_true(isnan(value));
            assert_int_equal(signbit(value) != 0, h >> 15);
        } else if (special) {
            assert_true(isinf(value) && (value < 0) == (h >> 15));
        } else {
            assert_true((double)value == f16_value(h));
            assert_int_equal(signbit(value) != 0, h >> 15);
        }
    }
}

static void every_f16_survives_the_round_trip(void **state)
{
    for (unsigned h = 0; h < 65536; h++) {
        bool nan = (h >> 10 & 31) == 31 && (h & 0x3ff);
        unsigned expected = nan ? h | 0x200 : h;
        assert_int_equal(sn_f32_to_f16(sn_f16_to_f32((uint16_t)h)), expected);
    }
}

static void f16_rounds_to_nearest_even_between_all_neighbours(void **state)
{
    for (unsigned h = 0; h < 0x7bff; h++) {
        double a = f16_value(h), b = f16_value(h + 1);
        float tie = (float)((a + b) / 2); /* exact: one more bit than f16 has */
        unsigned even = h & 1 ? h + 1 : h;
        assert_int_equal(sn_f32_to_f16(tie), even);
        assert_int_equal(sn_f32_to_f16(nextafterf(tie, 0)), h);
        assert_int_equal(sn_f32_to_f16(nextafterf(tie, INFINITY)), h + 1);
        assert_int_equal(sn_f32_to_f16(-tie), even | 0x8000);
    }
    assert_int_equal(sn_f32_to_f16(65519.996f), 0x7bff);
    assert_int_equal(sn_f32_to_f16(65520.0f), 0x7c00);
    assert_int_equal(sn_f32_to_f16(1e30f), 0x7c00);
    assert_int_equal(sn_f32_to_f16(-INFINITY), 0xfc00);
    assert_int_equal(sn_f32_to_f16(1e-30f), 0);
    assert_int_equal(sn_f32_to_f16(-1e-45f), 0x8000);
}

static void nan_stays_nan(void **state)
{
    /* Payloads only in the low bits must not become infinity. */
    assert_int_equal(sn_f32_to_f16(f32(0x7f800001)), 0x7e00);
    assert_int_equal(sn_f32_to_f16(f32(0xff800001)), 0xfe00);
    assert_int_equal(sn_f32_to_f16(f32(0x7fffffff)), 0x7fff);
    assert_int_equal(sn_f32_to_bf16(f32(0x7f800001)), 0x7fc0);
    assert_int_equal(sn_f32_to_bf16(f32(0xffffffff)), 0xffff);
    assert_true(isnan(sn_bf16_to_f32(0x7fc0)));
}

static void bf16_rounds_to_nearest_even(void **state)
{
    for (uint32_t b = 0; b < 0x7f80; b++) {
        uint32_t even = b & 1 ? b + 1 : b;
        assert_int_equal(sn_f32_to_bf16(f32(b << 16)), b);
        assert_int_equal(sn_f32_to_bf16(f32(b << 16 | 0x7fff)), b);
        assert_int_equal(sn_f32_to_bf16(f32(b << 16 | 0x8000)), even);
        assert_int_equal(sn_f32_to_bf16(f32(b << 16 | 0x8001)), b + 1);
        assert_int_equal(sn_f32_to_bf16(f32(0x80000000 | b << 16 | 0x8000)), 0x8000 | even);
    }
    assert_int_equal(sn_f32_to_bf16(INFINITY), 0x7f80);
    assert_int_equal(sn_f32_to_bf16(f32(0x7f7fffff)), 0x7f80);
}

static void every_bf16_survives_the_round_trip(void **state)
{
    for (uint32_t b = 0; b < 65536; b++) {
        bool nan = (b & 0x7fff) > 0x7f80;
        assert_int_equal(bits(sn_bf16_to_f32((uint16_t)b)), b << 16);
        assert_int_equal(sn_f32_to_bf16(sn_bf16_to_f32((uint16_t)b)), nan ? b | 0x40 : b);
    }
}

#if defined(__x86_64__)
__attribute__((target("f16c"))) static unsigned native_f16(float value)
{
    return _cvtss_sh(value, _MM_FROUND_TO_NEAREST_INT);
}

__attribute__((target("f16c"))) static float native_f32(unsigned h)
{
    return _cvtsh_ss((unsigned short)h);
}

static void f16_agrees_with_the_processor(void **state)
{
    if (!sn_host_cpu().f16c) {
        print_message("this processor has no F16C\n");
        skip();
    }
    for (unsigned h = 0; h < 65536; h++)
        assert_int_equal(bits(sn_f16_to_f32((uint16_t)h)), bits(native_f32(h)));
    for (uint32_t i = 0; i < 500000; i++) {
        uint32_t r[4];
        sn_philox(r, 3, i, 0);
        for (size_t k = 0; k < 4; k++) {
            /* Half of the draws anywhere, half where f16 has values. */
            uint32_t b = k & 1 ? r[k] : (r[k] & 0x8fffffff) | 0x30000000;
            if (sn_f32_to_f16(f32(b)) != native_f16(f32(b)))
                fail_msg("0x%08x: 0x%04x, the processor says 0x%04x", b, sn_f32_to_f16(f32(b)),
                         native_f16(f32(b)));
        }
    }
}
#else
static void f16_agrees_with_the_processor(void **state)
{
    print_message("no processor to compare with is known for this architecture\n");
    skip();
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_f16_is_read_by_its_definition),
        cmocka_unit_test(every_f16_survives_the_round_trip),
        cmocka_unit_test(f16_rounds_to_nearest_even_between_all_neighbours),
        cmocka_unit_test(nan_stays_nan),
        cmocka_unit_test(bf16_rounds_to_nearest_even),
        cmocka_unit_test(every_bf16_survives_the_round_trip),
        cmocka_unit_test(f16_agrees_with_the_processor),
    };
    return cmocka_run_group_tests_name("base/half", tests, NULL, NULL);
}
