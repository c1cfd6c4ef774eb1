/* SPDX-License-Identifier: Apache-2.0
 *
 * half.c - 16-bit floats, by their bits. The same results as F16C and AVX512_BF16 give, except that
 * bfloat16 denormals are kept (VCVTNEPS2BF16 takes them as zero).
 */
#include "base/half.h"

#include <string.h>

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* x / 2^shift, to the nearest, ties to even. */
static uint32_t shift_rne(uint32_t x, unsigned shift)
{
    uint32_t half = (UINT32_C(1) << (shift - 1)) - 1;
    return (x + half + (x >> shift & 1)) >> shift;
}

uint16_t sn_f32_to_f16(float value)
{
    uint32_t bits = bits_of(value), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
    uint32_t result;
    if (magnitude > 0x7f800000) /* NaN: quiet, the payload's high bits kept */
        result = 0x7e00 | (magnitude >> 13 & 0x1ff);
    else if (magnitude >= 0x477ff000) /* 65520 and above round to infinity */
        result = 0x7c00;
    else if (magnitude >= 0x38800000) /* normal: 2^-14 and above */
        result = shift_rne(magnitude - (UINT32_C(112) << 23), 13);
    else if (magnitude >= 0x33000000) /* denormal: 2^-25 (a tie with zero) and above */
        result = shift_rne((magnitude & 0x7fffff) | 0x800000, 126 - (magnitude >> 23));
    else
        result = 0;
    return (uint16_t)(sign | result);
}

float sn_f16_to_f32(uint16_t bits)
{
    uint32_t sign = (uint32_t)(bits & 0x8000) << 16, exponent = bits >> 10 & 31,
             mantissa = bits & 0x3ff;
    if (exponent == 31)
        return float_of(sign | 0x7f800000 | mantissa << 13 | (mantissa ? 0x400000u : 0));
    if (exponent)
        return float_of(sign | (exponent + 112) << 23 | mantissa << 13);
    float magnitude = (float)mantissa * 0x1p-24f; /* exact */
    return sign ? -magnitude : magnitude;
}

uint16_t sn_f32_to_bf16(float value)
{
    uint32_t bits = bits_of(value);
    if ((bits & 0x7fffffff) > 0x7f800000)
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)shift_rne(bits, 16);
}

float sn_bf16_to_f32(uint16_t bits)
{
    return float_of((uint32_t)bits << 16);
}
