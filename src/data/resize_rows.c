/* SPDX-License-Identifier: Apache-2.0
 *
 * The resizer's inner loops and the scales. Loops that the compiler vectorises by itself are
 * written once as an always-inlined body and compiled twice, for the baseline and for AVX2.
 */
#include "data/resize_rows.h"

#if defined(__x86_64__)
#define SN_ROWS_X86 1
#include <immintrin.h>
#else
#define SN_ROWS_X86 0
#endif

#define INLINE static inline __attribute__((always_inline))

static bool has_avx2(void)
{
#if SN_ROWS_X86
    return __builtin_cpu_supports("avx2") != 0;
#else
    return false;
#endif
}

/* --- x -----------------------------------------------------------------------------------------*/

INLINE void lerp_x_body(float *out, const uint8_t *row, const sn_tap *taps, int64_t n, int c)
{
    for (int64_t i = 0; i < n; i++)
        for (int k = 0; k < c; k++) {
            float lo = (float)row[taps[i].lo + k], hi = (float)row[taps[i].hi + k];
            out[i * c + k] = lo + (hi - lo) * taps[i].f;
        }
}

#if SN_ROWS_X86
/* Three channels, a pixel a time in four lanes: the fourth lane is the next pixel's first and is
 * overwritten by it. */
__attribute__((target("avx2"))) static void lerp_x_rgb(float *out, const uint8_t *row,
                                                       const sn_tap *taps, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        int32_t a, b;
        memcpy(&a, row + taps[i].lo, 4);
        memcpy(&b, row + taps[i].hi, 4);
        __m128 lo = _mm_cvtepi32_ps(_mm_cvtepu8_epi32(_mm_cvtsi32_si128(a)));
        __m128 hi = _mm_cvtepi32_ps(_mm_cvtepu8_epi32(_mm_cvtsi32_si128(b)));
        __m128 f = _mm_broadcast_ss(&taps[i].f);
        _mm_storeu_ps(out + 3 * i, _mm_add_ps(lo, _mm_mul_ps(_mm_sub_ps(hi, lo), f)));
    }
}

__attribute__((target("avx2"))) static void lerp_x_gray(float *out, const uint8_t *row,
                                                        const sn_tap *taps, int64_t n)
{
    lerp_x_body(out, row, taps, n, 1);
}
#endif

void sn_rows_lerp_x(float *out, const uint8_t *row, const sn_tap *taps, int64_t n, int channels)
{
#if SN_ROWS_X86
    if (channels == 3 && has_avx2()) {
        lerp_x_rgb(out, row, taps, n);
        return;
    }
    if (channels == 1 && has_avx2()) {
        lerp_x_gray(out, row, taps, n);
        return;
    }
#endif
    lerp_x_body(out, row, taps, n, channels);
}

/* --- loops compiled twice ----------------------------------------------------------------------*/

INLINE void lerp_y_body(float *restrict out, const float *lo, const float *hi, float f, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = lo[i] + (hi[i] - lo[i]) * f;
}

INLINE void add_scaled_body(float *restrict sum, const uint8_t *row, float weight, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        sum[i] += weight * (float)row[i];
}

INLINE void widen_body(float *restrict out, const uint8_t *in, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = (float)in[i];
}

INLINE void divide_body(float *x, float by, float less, int64_t n)
{
    if (less != 0)
        for (int64_t i = 0; i < n; i++)
            x[i] = x[i] / by - less;
    else
        for (int64_t i = 0; i < n; i++)
            x[i] = x[i] / by;
}

#if SN_ROWS_X86
__attribute__((target("avx2"))) static void lerp_y_avx2(float *out, const float *lo,
                                                        const float *hi, float f, int64_t n)
{
    lerp_y_body(out, lo, hi, f, n);
}

__attribute__((target("avx2"))) static void add_scaled_avx2(float *sum, const uint8_t *row,
                                                            float weight, int64_t n)
{
    add_scaled_body(sum, row, weight, n);
}

__attribute__((target("avx2"))) static void widen_avx2(float *out, const uint8_t *in, int64_t n)
{
    widen_body(out, in, n);
}

__attribute__((target("avx2"))) static void divide_avx2(float *x, float by, float less, int64_t n)
{
    divide_body(x, by, less, n);
}
#else
#define lerp_y_avx2 lerp_y_body
#define add_scaled_avx2 add_scaled_body
#define widen_avx2 widen_body
#define divide_avx2 divide_body
#endif

void sn_rows_lerp_y(float *out, const float *lo, const float *hi, float f, int64_t n)
{
    if (has_avx2())
        lerp_y_avx2(out, lo, hi, f, n);
    else
        lerp_y_body(out, lo, hi, f, n);
}

void sn_rows_add_scaled(float *sum, const uint8_t *row, float weight, int64_t n)
{
    if (has_avx2())
        add_scaled_avx2(sum, row, weight, n);
    else
        add_scaled_body(sum, row, weight, n);
}

void sn_rows_widen(float *out, const uint8_t *in, int64_t n)
{
    if (has_avx2())
        widen_avx2(out, in, n);
    else
        widen_body(out, in, n);
}

void sn_rows_spans_x(float *out, const float *column, const sn_span *spans, int64_t n, int channels)
{
    for (int64_t i = 0; i < n; i++) {
        const float *in = column + (int64_t)spans[i].start * channels;
        float sum[4] = {0, 0, 0, 0};
        for (int32_t k = 0; k < spans[i].n; k++, in += channels)
            for (int c = 0; c < channels; c++)
                sum[c] += spans[i].weights[k] * in[c];
        for (int c = 0; c < channels; c++)
            out[i * channels + c] = sum[c];
    }
}

/* --- scales ------------------------------------------------------------------------------------*/

static void divide(float *x, float by, float less, int64_t n)
{
    if (has_avx2())
        divide_avx2(x, by, less, n);
    else
        divide_body(x, by, less, n);
}

/* keras.applications.imagenet_utils.preprocess_input, mode "caffe": RGB to BGR, less the means. A
 * single gray channel loses their average. */
static void scale_caffe(float *x, int64_t n_pixels, int channels)
{
    if (channels != 3) {
        for (int64_t i = 0; i < n_pixels * channels; i++)
            x[i] = x[i] - 114.45867f;
        return;
    }
    for (int64_t i = 0; i < n_pixels; i++, x += 3) {
        float r = x[0], g = x[1], b = x[2];
        x[0] = b - 103.939f;
        x[1] = g - 116.779f;
        x[2] = r - 123.68f;
    }
}

/* Mode "torch". */
static void scale_torch(float *x, int64_t n_pixels, int channels)
{
    static const float mean[3] = {0.485f, 0.456f, 0.406f}, std[3] = {0.229f, 0.224f, 0.225f};

    if (channels != 3) {
        for (int64_t i = 0; i < n_pixels * channels; i++)
            x[i] = (x[i] / 255.0f - 0.449f) / 0.226f;
        return;
    }
    for (int64_t i = 0; i < n_pixels; i++, x += 3)
        for (int c = 0; c < 3; c++)
            x[c] = (x[c] / 255.0f - mean[c]) / std[c];
}

void sn_scale_apply(float *x, int64_t n_pixels, int channels, snug_scale scale)
{
    switch (scale) {
    case SNUG_SCALE_0_1:
        divide(x, 255.0f, 0, n_pixels * channels);
        break;
    case SNUG_SCALE_MINUS1_1:
        divide(x, 127.5f, 1.0f, n_pixels * channels);
        break;
    case SNUG_SCALE_CAFFE:
        scale_caffe(x, n_pixels, channels);
        break;
    case SNUG_SCALE_TORCH:
        scale_torch(x, n_pixels, channels);
        break;
    default:
        break;
    }
}
