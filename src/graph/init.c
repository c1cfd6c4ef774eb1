/* SPDX-License-Identifier: Apache-2.0
 *
 * init.c - first values of weights: Keras' initializers (keras.initializers: variance scaling over
 * the fans, truncation at two standard deviations), drawn by Philox so that a weight's values
 * depend on the seed and its number alone.
 */
#include "graph/model.h"

#include <math.h>
#include <string.h>

#include "base/rng.h"

/* Draw i of a stream: four words. */
static void draw(uint32_t r[4], uint64_t key, uint64_t i)
{
    sn_philox(r, key, i, 0);
}

static float uniform_open(uint32_t word)
{
    return ((float)(word >> 8) + 0.5f) * (1.0f / 16777216.0f); /* never 0: it goes into a log */
}

/* Box and Muller; `limit` > 0: drawn again until |z| <= limit (truncated normal). */
static float normal(uint64_t key, uint64_t i, float limit)
{
    for (uint64_t attempt = 0;; attempt++) {
        uint32_t r[4];
        sn_philox(r, key, i, attempt + 1);
        float radius = sqrtf(-2.0f * logf(uniform_open(r[0])));
        float z = radius * cosf(6.28318530718f * sn_uniform_f32(r[1]));
        if (limit <= 0 || fabsf(z) <= limit) {
            return z;
        }
    }
}

/* keras.initializers compute_fans. */
static void fans(const sn_shape *shape, double *in, double *out)
{
    double field = 1;
    for (int i = 0; i + 2 < shape->rank; i++) {
        field *= (double)shape->dim[i];
    }
    if (shape->rank < 2) {
        *in = *out = shape->rank ? (double)shape->dim[0] : 1;
        return;
    }
    *in = field * (double)shape->dim[shape->rank - 2];
    *out = field * (double)shape->dim[shape->rank - 1];
}

static void fill_uniform(float *out, size_t n, uint64_t key, float limit)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t r[4];
        draw(r, key, i);
        out[i] = limit * (2 * sn_uniform_f32(r[0]) - 1);
    }
}

static void fill_normal(float *out, size_t n, uint64_t key, float sigma, float limit)
{
    for (size_t i = 0; i < n; i++) {
        out[i] = sigma * normal(key, i, limit);
    }
}

static void fill_constant(float *out, size_t n, float value)
{
    for (size_t i = 0; i < n; i++) {
        out[i] = value;
    }
}

/* Rows of a normal matrix made orthonormal by modified Gram and Schmidt; a matrix with more rows
 * than columns gets orthonormal columns instead, as Keras does. */
static void fill_orthogonal(float *out, const sn_shape *shape, uint64_t key)
{
    size_t cols = (size_t)shape->dim[shape->rank - 1];
    size_t rows = (size_t)sn_shape_n(shape) / cols;
    fill_normal(out, rows * cols, key, 1, 0);
    size_t n = SN_MIN(rows, cols), len = SN_MAX(rows, cols);
    size_t step = rows <= cols ? 1 : cols, vec = rows <= cols ? cols : 1;
    for (size_t i = 0; i < n; i++) {
        float *v = out + i * vec;
        for (size_t j = 0; j < i; j++) {
            const float *u = out + j * vec;
            double dot = 0;
            for (size_t k = 0; k < len; k++) {
                dot += (double)v[k * step] * (double)u[k * step];
            }
            for (size_t k = 0; k < len; k++) {
                v[k * step] -= (float)dot * u[k * step];
            }
        }
        double norm = 0;
        for (size_t k = 0; k < len; k++) {
            norm += (double)v[k * step] * (double)v[k * step];
        }
        for (size_t k = 0; k < len; k++) {
            v[k * step] /= (float)sqrt(norm);
        }
    }
}

snug_status sn_model_init_weight(const snug_model *model, size_t weight, uint64_t seed, float *out,
                                 snug_error *err)
{
    const sn_model_weight *w = &model->weights.at[weight];
    size_t n = (size_t)sn_shape_n(&w->keras_shape);
    uint64_t key = sn_mix_u64(seed, sn_mix_u64(UINT64_C(0x1717), weight));
    double in, outs;
    fans(&w->keras_shape, &in, &outs);
    /* Keras' correction for the variance that truncation at two sigma takes away. */
    const double truncated = .87962566103423978;
    switch (w->initializer) {
    case SNUG_INIT_DEFAULT:
    case SNUG_GLOROT_UNIFORM:
        fill_uniform(out, n, key, (float)sqrt(6 / (in + outs)));
        break;
    case SNUG_GLOROT_NORMAL:
        fill_normal(out, n, key, (float)(sqrt(2 / (in + outs)) / truncated), 2);
        break;
    case SNUG_HE_UNIFORM:
        fill_uniform(out, n, key, (float)sqrt(6 / in));
        break;
    case SNUG_HE_NORMAL:
        fill_normal(out, n, key, (float)(sqrt(2 / in) / truncated), 2);
        break;
    case SNUG_LECUN_UNIFORM:
        fill_uniform(out, n, key, (float)sqrt(3 / in));
        break;
    case SNUG_LECUN_NORMAL:
        fill_normal(out, n, key, (float)(sqrt(1 / in) / truncated), 2);
        break;
    case SNUG_RANDOM_NORMAL:
        fill_normal(out, n, key, .05f, 0);
        break;
    case SNUG_RANDOM_UNIFORM:
        fill_uniform(out, n, key, .05f);
        break;
    case SNUG_TRUNCATED_NORMAL:
        fill_normal(out, n, key, .05f, 2);
        break;
    case SNUG_ORTHOGONAL:
        fill_orthogonal(out, &w->keras_shape, key);
        break;
    case SNUG_ZEROS:
        fill_constant(out, n, 0);
        break;
    case SNUG_ONES:
        fill_constant(out, n, 1);
        break;
    case SNUG_CONSTANT:
        fill_constant(out, n, w->init_value);
        break;
    default:
        return sn_fail(err, SNUG_E_USAGE,
                       "weight '%s' asks for initializer number %d, which is none", w->name,
                       (int)w->initializer);
    }
    return SNUG_OK;
}
