/* SPDX-License-Identifier: Apache-2.0
 *
 * vec.h - one vector of floats, for the instruction set that the including file was set up for
 * (VEC_ISA 1, 8 or 16: see simd_*.c). Included by those files only, before the bodies.
 *
 *     vf a = v_load(p), b = v_set1(2.0f);
 *     v_store(q, v_fma(a, b, a));                   // VW floats
 *
 * Maximum and minimum give their second operand when one is not a number.
 * Ownership: none.  Threads: pure functions.
 */
#ifndef SN_BACKEND_CPU_VEC_H
#define SN_BACKEND_CPU_VEC_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#define V_INLINE static inline __attribute__((always_inline, unused))
/* Before a loop whose sums fill the registers: unrolled, they would leave them. */
#if defined(__clang__)
#define V_ROLLED _Pragma("nounroll")
#else
#define V_ROLLED _Pragma("GCC unroll 1")
#endif

#if VEC_ISA == 16
#include <immintrin.h>
#define VW 16
typedef __m512 vf;
typedef __mmask16 vm;
V_INLINE vf v_load(const float *p)
{
    return _mm512_loadu_ps(p);
}
V_INLINE void v_store(float *p, vf v)
{
    _mm512_storeu_ps(p, v);
}
/* Past the caches; p is aligned to the vector. */
V_INLINE void v_stream(float *p, vf v)
{
    _mm512_stream_ps(p, v);
}
/* After the last v_stream, before others read. */
V_INLINE void v_fence(void)
{
    _mm_sfence();
}
V_INLINE vf v_set1(float x)
{
    return _mm512_set1_ps(x);
}
V_INLINE vf v_add(vf a, vf b)
{
    return _mm512_add_ps(a, b);
}
V_INLINE vf v_sub(vf a, vf b)
{
    return _mm512_sub_ps(a, b);
}
V_INLINE vf v_mul(vf a, vf b)
{
    return _mm512_mul_ps(a, b);
}
V_INLINE vf v_div(vf a, vf b)
{
    return _mm512_div_ps(a, b);
}
V_INLINE vf v_fma(vf a, vf b, vf c)
{
    return _mm512_fmadd_ps(a, b, c);
}
V_INLINE vf v_max(vf a, vf b)
{
    return _mm512_max_ps(a, b);
}
V_INLINE vf v_min(vf a, vf b)
{
    return _mm512_min_ps(a, b);
}
V_INLINE vf v_sqrt(vf a)
{
    return _mm512_sqrt_ps(a);
}
V_INLINE vm v_gt(vf a, vf b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ);
}
V_INLINE vm v_is_nan(vf a)
{
    return _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q);
}
V_INLINE vm v_and(vm a, vm b)
{
    return (vm)(a & b);
}
V_INLINE vm v_or(vm a, vm b)
{
    return (vm)(a | b);
}
V_INLINE vm v_andnot(vm a, vm b) /* a and not b */
{
    return (vm)(a & ~b);
}
V_INLINE vf v_select(vm m, vf a, vf b)
{
    return _mm512_mask_blend_ps(m, b, a);
}
V_INLINE vf v_keep(vm m, vf a)
{
    return _mm512_maskz_mov_ps(m, a);
}
V_INLINE vf v_load_n(const float *p, int n)
{
    return _mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), p);
}
V_INLINE void v_store_n(float *p, vf v, int n)
{
    _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1), v);
}
/* 2^k for whole k as floats. */
V_INLINE vf v_scale2(vf a, vf k)
{
    return _mm512_scalef_ps(a, k);
}
V_INLINE vf v_round(vf a)
{
    return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
/* Small whole numbers as bytes. */
V_INLINE void v_store_u8(uint8_t *p, vf v)
{
    _mm_storeu_si128((__m128i *)(void *)p, _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(v)));
}
V_INLINE vf v_load_u8(const uint8_t *p)
{
    return _mm512_cvtepi32_ps(
        _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)p)));
}
V_INLINE vm v_eq(vf a, vf b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ);
}
/* Rows and columns of VW vectors change places. */
V_INLINE void v_transpose(vf r[VW])
{
    vf t[VW], u[VW];
    for (int i = 0; i < VW; i += 2) {
        t[i] = _mm512_unpacklo_ps(r[i], r[i + 1]);
        t[i + 1] = _mm512_unpackhi_ps(r[i], r[i + 1]);
    }
    for (int i = 0; i < VW; i += 4)
        for (int k = 0; k < 2; k++) {
            u[i + 2 * k] = _mm512_shuffle_ps(t[i + k], t[i + k + 2], 0x44);
            u[i + 2 * k + 1] = _mm512_shuffle_ps(t[i + k], t[i + k + 2], 0xee);
        }
    for (int i = 0; i < 4; i++) {
        vf a = _mm512_shuffle_f32x4(u[i], u[4 + i], 0x88);
        vf b = _mm512_shuffle_f32x4(u[i], u[4 + i], 0xdd);
        vf c = _mm512_shuffle_f32x4(u[8 + i], u[12 + i], 0x88);
        vf d = _mm512_shuffle_f32x4(u[8 + i], u[12 + i], 0xdd);
        r[i] = _mm512_shuffle_f32x4(a, c, 0x88);
        r[4 + i] = _mm512_shuffle_f32x4(b, d, 0x88);
        r[8 + i] = _mm512_shuffle_f32x4(a, c, 0xdd);
        r[12 + i] = _mm512_shuffle_f32x4(b, d, 0xdd);
    }
}
/* Words in 64-bit lanes; v_mul_word multiplies the lower halves. */
typedef __m512i vd;
V_INLINE vd v_mul_word(vd a, vd b)
{
    return _mm512_mul_epu32(a, b);
}
V_INLINE vd v_set1_word(uint32_t x)
{
    return _mm512_set1_epi64((int64_t)x);
}
V_INLINE vd v_xor(vd a, vd b)
{
    return _mm512_xor_si512(a, b);
}
V_INLINE vd v_upper(vd a)
{
    return _mm512_srli_epi64(a, 32);
}
/* a + i in lane 2i, b + i in lane 2i + 1. */
V_INLINE vd v_pairs(uint64_t a, uint64_t b)
{
    long long x = (long long)a, y = (long long)b;
    return _mm512_add_epi64(_mm512_set_epi64(y, x, y, x, y, x, y, x),
                            _mm512_set_epi64(3, 3, 2, 2, 1, 1, 0, 0));
}
/* Lanes of words from the lower halves: those of even lanes, word 0 to 3 of each in its turn; those
 * of odd lanes. */
V_INLINE void v_four_words(const vd c[4], vd out[2])
{
    vd a = _mm512_mask_blend_epi32(0xaaaa, c[0], _mm512_slli_epi64(c[1], 32));
    vd b = _mm512_mask_blend_epi32(0xaaaa, c[2], _mm512_slli_epi64(c[3], 32));
    out[0] = _mm512_unpacklo_epi64(a, b);
    out[1] = _mm512_unpackhi_epi64(a, b);
}
/* Which of VW words are at least x. */
V_INLINE vm v_words_from(vd words, uint32_t x)
{
    return _mm512_cmpge_epu32_mask(words, _mm512_set1_epi32((int)x));
}

#elif VEC_ISA == 8
#include <immintrin.h>
#define VW 8
typedef __m256 vf;
typedef __m256 vm;
V_INLINE vf v_load(const float *p)
{
    return _mm256_loadu_ps(p);
}
V_INLINE void v_store(float *p, vf v)
{
    _mm256_storeu_ps(p, v);
}
V_INLINE void v_stream(float *p, vf v)
{
    _mm256_stream_ps(p, v);
}
V_INLINE void v_fence(void)
{
    _mm_sfence();
}
V_INLINE vf v_set1(float x)
{
    return _mm256_set1_ps(x);
}
V_INLINE vf v_add(vf a, vf b)
{
    return _mm256_add_ps(a, b);
}
V_INLINE vf v_sub(vf a, vf b)
{
    return _mm256_sub_ps(a, b);
}
V_INLINE vf v_mul(vf a, vf b)
{
    return _mm256_mul_ps(a, b);
}
V_INLINE vf v_div(vf a, vf b)
{
    return _mm256_div_ps(a, b);
}
V_INLINE vf v_fma(vf a, vf b, vf c)
{
    return _mm256_fmadd_ps(a, b, c);
}
V_INLINE vf v_max(vf a, vf b)
{
    return _mm256_max_ps(a, b);
}
V_INLINE vf v_min(vf a, vf b)
{
    return _mm256_min_ps(a, b);
}
V_INLINE vf v_sqrt(vf a)
{
    return _mm256_sqrt_ps(a);
}
V_INLINE vm v_gt(vf a, vf b)
{
    return _mm256_cmp_ps(a, b, _CMP_GT_OQ);
}
V_INLINE vm v_eq(vf a, vf b)
{
    return _mm256_cmp_ps(a, b, _CMP_EQ_OQ);
}
V_INLINE vm v_is_nan(vf a)
{
    return _mm256_cmp_ps(a, a, _CMP_UNORD_Q);
}
V_INLINE vm v_and(vm a, vm b)
{
    return _mm256_and_ps(a, b);
}
V_INLINE vm v_or(vm a, vm b)
{
    return _mm256_or_ps(a, b);
}
V_INLINE vm v_andnot(vm a, vm b)
{
    return _mm256_andnot_ps(b, a);
}
V_INLINE vf v_select(vm m, vf a, vf b)
{
    return _mm256_blendv_ps(b, a, m);
}
V_INLINE vf v_keep(vm m, vf a)
{
    return _mm256_and_ps(m, a);
}
V_INLINE __m256i v_first(int n)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
V_INLINE vf v_load_n(const float *p, int n)
{
    return _mm256_maskload_ps(p, v_first(n));
}
V_INLINE void v_store_n(float *p, vf v, int n)
{
    _mm256_maskstore_ps(p, v_first(n), v);
}
V_INLINE vf v_scale2(vf a, vf k)
{
    /* In two steps, so that results that are denormal or barely finite come out right. */
    __m256i whole = _mm256_cvtps_epi32(k), half = _mm256_srai_epi32(whole, 1);
    __m256i rest = _mm256_sub_epi32(whole, half), bias = _mm256_set1_epi32(127);
    vf p = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(half, bias), 23));
    vf q = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(rest, bias), 23));
    return _mm256_mul_ps(_mm256_mul_ps(a, p), q);
}
V_INLINE vf v_round(vf a)
{
    return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
V_INLINE void v_store_u8(uint8_t *p, vf v)
{
    __m256i i = _mm256_cvtps_epi32(v);
    __m128i s = _mm_packus_epi32(_mm256_castsi256_si128(i), _mm256_extracti128_si256(i, 1));
    _mm_storel_epi64((__m128i *)(void *)p, _mm_packus_epi16(s, s));
}
V_INLINE vf v_load_u8(const uint8_t *p)
{
    return _mm256_cvtepi32_ps(
        _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)p)));
}
V_INLINE void v_transpose(vf r[VW])
{
    vf t[VW], u[VW];
    for (int i = 0; i < VW; i += 2) {
        t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
        t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
    }
    for (int i = 0; i < VW; i += 4)
        for (int k = 0; k < 2; k++) {
            u[i + 2 * k] = _mm256_shuffle_ps(t[i + k], t[i + k + 2], 0x44);
            u[i + 2 * k + 1] = _mm256_shuffle_ps(t[i + k], t[i + k + 2], 0xee);
        }
    for (int i = 0; i < 4; i++) {
        r[i] = _mm256_permute2f128_ps(u[i], u[4 + i], 0x20);
        r[4 + i] = _mm256_permute2f128_ps(u[i], u[4 + i], 0x31);
    }
}
typedef __m256i vd;
V_INLINE vd v_mul_word(vd a, vd b)
{
    return _mm256_mul_epu32(a, b);
}
V_INLINE vd v_set1_word(uint32_t x)
{
    return _mm256_set1_epi64x((int64_t)x);
}
V_INLINE vd v_xor(vd a, vd b)
{
    return _mm256_xor_si256(a, b);
}
V_INLINE vd v_upper(vd a)
{
    return _mm256_srli_epi64(a, 32);
}
V_INLINE vd v_pairs(uint64_t a, uint64_t b)
{
    long long x = (long long)a, y = (long long)b;
    return _mm256_add_epi64(_mm256_set_epi64x(y, x, y, x), _mm256_set_epi64x(1, 1, 0, 0));
}
V_INLINE void v_four_words(const vd c[4], vd out[2])
{
    vd a = _mm256_blend_epi32(c[0], _mm256_slli_epi64(c[1], 32), 0xaa);
    vd b = _mm256_blend_epi32(c[2], _mm256_slli_epi64(c[3], 32), 0xaa);
    out[0] = _mm256_unpacklo_epi64(a, b);
    out[1] = _mm256_unpackhi_epi64(a, b);
}
V_INLINE vm v_words_from(vd words, uint32_t x)
{
    vd least = _mm256_max_epu32(words, _mm256_set1_epi32((int)x));
    return _mm256_castsi256_ps(_mm256_cmpeq_epi32(least, words));
}

#else /* any processor: the compiler's own vectors */
#define VW 8
typedef float vf __attribute__((vector_size(32)));
typedef int32_t vm __attribute__((vector_size(32)));
V_INLINE vf v_load(const float *p)
{
    vf v;
    memcpy(&v, p, sizeof v);
    return v;
}
V_INLINE void v_store(float *p, vf v)
{
    memcpy(p, &v, sizeof v);
}
V_INLINE void v_stream(float *p, vf v)
{
    memcpy(p, &v, sizeof v);
}
V_INLINE void v_fence(void)
{
}
V_INLINE vf v_set1(float x)
{
    return (vf){x, x, x, x, x, x, x, x};
}
V_INLINE vf v_add(vf a, vf b)
{
    return a + b;
}
V_INLINE vf v_sub(vf a, vf b)
{
    return a - b;
}
V_INLINE vf v_mul(vf a, vf b)
{
    return a * b;
}
V_INLINE vf v_div(vf a, vf b)
{
    return a / b;
}
V_INLINE vf v_fma(vf a, vf b, vf c)
{
    return a * b + c;
}
V_INLINE vm v_gt(vf a, vf b)
{
    return a > b;
}
V_INLINE vm v_eq(vf a, vf b)
{
    return a == b;
}
V_INLINE vm v_is_nan(vf a)
{
    return a != a;
}
V_INLINE vm v_and(vm a, vm b)
{
    return a & b;
}
V_INLINE vm v_or(vm a, vm b)
{
    return a | b;
}
V_INLINE vm v_andnot(vm a, vm b)
{
    return a & ~b;
}
V_INLINE vf v_select(vm m, vf a, vf b)
{
    return (vf)((m & (vm)a) | (~m & (vm)b));
}
V_INLINE vf v_keep(vm m, vf a)
{
    return (vf)(m & (vm)a);
}
V_INLINE vf v_max(vf a, vf b)
{
    return v_select(a > b, a, b);
}
V_INLINE vf v_min(vf a, vf b)
{
    return v_select(a < b, a, b);
}
V_INLINE vf v_sqrt(vf a)
{
    for (int i = 0; i < VW; i++)
        a[i] = sqrtf(a[i]);
    return a;
}
V_INLINE vf v_load_n(const float *p, int n)
{
    vf v = v_set1(0.0f);
    memcpy(&v, p, (size_t)n * sizeof *p);
    return v;
}
V_INLINE void v_store_n(float *p, vf v, int n)
{
    memcpy(p, &v, (size_t)n * sizeof *p);
}
V_INLINE vf v_scale2(vf a, vf k)
{
    for (int i = 0; i < VW; i++)
        a[i] = ldexpf(a[i], (int)k[i]);
    return a;
}
V_INLINE vf v_round(vf a)
{
    for (int i = 0; i < VW; i++)
        a[i] = rintf(a[i]);
    return a;
}
V_INLINE void v_store_u8(uint8_t *p, vf v)
{
    for (int i = 0; i < VW; i++)
        p[i] = (uint8_t)v[i];
}
V_INLINE vf v_load_u8(const uint8_t *p)
{
    vf v;
    for (int i = 0; i < VW; i++)
        v[i] = p[i];
    return v;
}
V_INLINE void v_transpose(vf r[VW])
{
    for (int i = 0; i < VW; i++)
        for (int k = 0; k < i; k++) {
            float held = r[i][k];
            r[i][k] = r[k][i];
            r[k][i] = held;
        }
}
typedef uint64_t vd __attribute__((vector_size(32)));
V_INLINE vd v_set1_word(uint32_t x)
{
    return (vd){x, x, x, x};
}
V_INLINE vd v_mul_word(vd a, vd b)
{
    vd lower = v_set1_word(UINT32_MAX);
    return (a & lower) * (b & lower);
}
V_INLINE vd v_xor(vd a, vd b)
{
    return a ^ b;
}
V_INLINE vd v_upper(vd a)
{
    return a >> 32;
}
V_INLINE vd v_pairs(uint64_t a, uint64_t b)
{
    return (vd){a, b, a + 1, b + 1};
}
V_INLINE void v_four_words(const vd c[4], vd out[2])
{
    uint32_t words[2][VW];
    for (int i = 0; i < VW; i++) {
        words[0][i] = (uint32_t)c[i % 4][i / 4 * 2];
        words[1][i] = (uint32_t)c[i % 4][i / 4 * 2 + 1];
    }
    memcpy(&out[0], words[0], sizeof out[0]);
    memcpy(&out[1], words[1], sizeof out[1]);
}
V_INLINE vm v_words_from(vd words, uint32_t x)
{
    typedef uint32_t lanes __attribute__((vector_size(32)));
    return (vm)((lanes)words >= x);
}
#endif

V_INLINE vf v_zero(void)
{
    return v_set1(0.0f);
}
/* Up to n floats, zeros after them. */
V_INLINE vf v_load_some(const float *p, int64_t n)
{
    return n >= VW ? v_load(p) : n <= 0 ? v_zero() : v_load_n(p, (int)n);
}
V_INLINE void v_store_some(float *p, vf v, int64_t n)
{
    if (n >= VW)
        v_store(p, v);
    else if (n > 0)
        v_store_n(p, v, (int)n);
}
/* The sum of the lanes, always in the same order. */
V_INLINE float v_sum(vf v)
{
    float t[VW];
    v_store(t, v);
    for (int step = VW / 2; step > 0; step /= 2)
        for (int i = 0; i < step; i++)
            t[i] += t[i + step];
    return t[0];
}
/* Lanes added to doubles. */
V_INLINE void v_add_double(double *sum, vf v)
{
    float t[VW];
    v_store(t, v);
    for (int i = 0; i < VW; i++)
        sum[i] += (double)t[i];
}
/* The fused activations: ReLU, with a largest value if max > 0. */
V_INLINE vf v_relu(vf x, bool relu, bool bounded, vf max)
{
    if (relu)
        x = v_max(v_zero(), x);
    if (bounded)
        x = v_min(max, x);
    return x;
}

#endif
