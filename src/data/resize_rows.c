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

static bool has_fma(void)
{
#if SN_ROWS_X86
    return __builtin_cpu_supports("fma") != 0;
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
/* Four bytes at a and four at b as eight floats. */
__attribute__((target("avx2"))) static inline __m256 two_pixels(const uint8_t *a, const uint8_t *b)
{
    int32_t p, q;

    memcpy(&p, a, 4);
    memcpy(&q, b, 4);
    return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_insert_epi32(_mm_cvtsi32_si128(p), q, 1)));
}

/* Three channels, two pixels a time in four lanes each, then closed up to six; the last two lanes
 * are overwritten by the next two pixels. */
__attribute__((target("avx2"))) static void lerp_x_rgb(float *out, const uint8_t *row,
                                                       const sn_tap *taps, int64_t n)
{
    const __m256i close_up = _mm256_setr_epi32(0, 1, 2, 4, 5, 6, 7, 7);
    int64_t i = 0;

    for (; i + 2 <= n; i += 2, taps += 2, out += 6) {
        __m256 lo = two_pixels(row + taps[0].lo, row + taps[1].lo);
        __m256 hi = two_pixels(row + taps[0].hi, row + taps[1].hi);
        __m256 f =
            _mm256_insertf128_ps(_mm256_broadcast_ss(&taps[0].f), _mm_broadcast_ss(&taps[1].f), 1);
        __m256 v = _mm256_add_ps(lo, _mm256_mul_ps(_mm256_sub_ps(hi, lo), f));
        _mm256_storeu_ps(out, _mm256_permutevar8x32_ps(v, close_up));
    }
    if (i < n)
        lerp_x_body(out, row, taps, 1, 3);
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

INLINE void lerp_y_divide_body(float *restrict out, const float *lo, const float *hi, float f,
                               float by, float less, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = (lo[i] + (hi[i] - lo[i]) * f) / by - less;
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

/* Divides by multiplying with the rounded reciprocal and correcting once with the exact remainder,
 * which gives the correctly rounded quotient (Markstein, "Computation of elementary functions on
 * the IBM RISC System/6000 processor", 1990; tried for every float from 0 to 255). */
__attribute__((target("avx2,fma"))) static void lerp_y_divide_fma(float *out, const float *lo,
                                                                  const float *hi, float f,
                                                                  float by, float less, int64_t n)
{
    __m256 vf = _mm256_set1_ps(f), vby = _mm256_set1_ps(by), vless = _mm256_set1_ps(less);
    __m256 inverse = _mm256_set1_ps(1.0f / by);
    /* A batch is larger than the caches that matter: past them, and the fence orders what another
     * thread is told afterwards. */
    bool past_caches = (uintptr_t)out % 32 == 0 && n >= 256;
    int64_t i = 0;

    for (; i + 8 <= n; i += 8) {
        __m256 a = _mm256_loadu_ps(lo + i), b = _mm256_loadu_ps(hi + i);
        __m256 v = _mm256_add_ps(a, _mm256_mul_ps(_mm256_sub_ps(b, a), vf));
        __m256 q = _mm256_mul_ps(v, inverse);
        __m256 left = _mm256_fnmadd_ps(q, vby, v);
        q = _mm256_fmadd_ps(left, inverse, q);
        q = _mm256_sub_ps(q, vless);
        if (past_caches)
            _mm256_stream_ps(out + i, q);
        else
            _mm256_storeu_ps(out + i, q);
    }
    if (past_caches)
        _mm_sfence();
    lerp_y_divide_body(out + i, lo + i, hi + i, f, by, less, n - i);
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
#define lerp_y_divide_fma lerp_y_divide_body
#define add_scaled_avx2 add_scaled_body
#define widen_avx2 widen_body
#define divide_avx2 divide_body
#endif

void sn_rows_lerp_y(float *out, const float *lo, const float *hi, float f, float by, float less,
                    int64_t n)
{
    if (by == 0 && has_avx2())
        lerp_y_avx2(out, lo, hi, f, n);
    else if (by == 0)
        lerp_y_body(out, lo, hi, f, n);
    else if (has_avx2() && has_fma())
        lerp_y_divide_fma(out, lo, hi, f, by, less, n);
    else
        lerp_y_divide_body(out, lo, hi, f, by, less, n);
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
