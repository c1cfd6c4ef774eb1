/* SPDX-License-Identifier: Apache-2.0
 *
 * Augmentation of one sample, and the text that asks for it.
 */
#include "data/augment.h"

#include <math.h>

#include "base/rng.h"

/* Keeps these draws apart from those of the order and the split. */
#define AUGMENT_KEY UINT64_C(0x6175676d656e7400)

bool sn_augment_any(const snug_augment *a)
{
    return a->hflip || a->vflip || a->rotate_degrees > 0 || a->shift > 0 || a->zoom > 0 ||
           a->brightness > 0 || a->contrast > 0;
}

typedef struct draws {
    bool hflip, vflip;
    float angle, shift_y, shift_x, zoom, brightness, contrast;
} draws;

/* Uniform in [-range, range). */
static float around(uint32_t word, float range)
{
    return (2.0f * sn_uniform_f32(word) - 1.0f) * range;
}

static draws draw(const snug_augment *a, uint64_t seed, uint64_t epoch, uint64_t index)
{
    uint64_t key = sn_mix_u64(sn_mix_u64(seed, AUGMENT_KEY), epoch);
    uint32_t r[8];

    sn_philox(r, key, index, 0);
    sn_philox(r + 4, key, index, 1);
    return (draws){
        .hflip = a->hflip && (r[0] & 0x80000000u),
        .vflip = a->vflip && (r[1] & 0x80000000u),
        .angle = around(r[2], a->rotate_degrees) * 0.017453292519943295f,
        .shift_y = around(r[3], a->shift),
        .shift_x = around(r[4], a->shift),
        .zoom = 1.0f + around(r[5], a->zoom),
        .brightness = 1.0f + around(r[6], a->brightness),
        .contrast = 1.0f + around(r[7], a->contrast),
    };
}

static void mirror(float *x, int64_t h, int64_t w, int c, bool hflip, bool vflip, float *tmp)
{
    memcpy(tmp, x, (size_t)(h * w * c) * sizeof(float));
    for (int64_t i = 0; i < h; i++)
        for (int64_t j = 0; j < w; j++) {
            int64_t from_i = vflip ? h - 1 - i : i, from_j = hflip ? w - 1 - j : j;
            for (int k = 0; k < c; k++)
                x[(i * w + j) * c + k] = tmp[(from_i * w + from_j) * c + k];
        }
}

static int64_t clamp(int64_t i, int64_t n)
{
    return i < 0 ? 0 : i >= n ? n - 1 : i;
}

/* Each pixel of the result looks up where it came from, about the image's centre. */
static void warp(float *x, int64_t h, int64_t w, int c, const draws *d, float *tmp)
{
    float cosine = cosf(d->angle) / d->zoom, sine = sinf(d->angle) / d->zoom;
    float mid_y = (float)(h - 1) * 0.5f, mid_x = (float)(w - 1) * 0.5f;
    float move_y = d->shift_y * (float)h, move_x = d->shift_x * (float)w;

    memcpy(tmp, x, (size_t)(h * w * c) * sizeof(float));
    for (int64_t i = 0; i < h; i++)
        for (int64_t j = 0; j < w; j++) {
            float dy = (float)i - mid_y - move_y, dx = (float)j - mid_x - move_x;
            float sy = cosine * dy - sine * dx, sx = sine * dy + cosine * dx;
            sy = mid_y + (d->vflip ? -sy : sy);
            sx = mid_x + (d->hflip ? -sx : sx);
            /* Far outside there is only the edge; keeps the conversion to an index in range. */
            sy = fminf(fmaxf(sy, -1.0f), (float)h);
            sx = fminf(fmaxf(sx, -1.0f), (float)w);
            float fy = floorf(sy), fx = floorf(sx);
            int64_t y0 = clamp((int64_t)fy, h), y1 = clamp((int64_t)fy + 1, h);
            int64_t x0 = clamp((int64_t)fx, w), x1 = clamp((int64_t)fx + 1, w);
            float ty = sy - fy, tx = sx - fx;
            for (int k = 0; k < c; k++) {
                float a = tmp[(y0 * w + x0) * c + k], b = tmp[(y0 * w + x1) * c + k];
                float e = tmp[(y1 * w + x0) * c + k], f = tmp[(y1 * w + x1) * c + k];
                float upper = a + (b - a) * tx, lower = e + (f - e) * tx;
                x[(i * w + j) * c + k] = upper + (lower - upper) * ty;
            }
        }
}

static void tone(float *x, int64_t n, float brightness, float contrast, float top)
{
    double sum = 0;

    for (int64_t i = 0; i < n; i++)
        sum += (double)x[i];
    float mean = (float)(sum / (double)n);
    for (int64_t i = 0; i < n; i++) {
        float v = (mean + (x[i] - mean) * contrast) * brightness;
        x[i] = top > 0 ? fminf(fmaxf(v, 0.0f), top) : v;
    }
}

void sn_augment_apply(const snug_augment *a, float *x, int64_t h, int64_t w, int channels,
                      float top, uint64_t seed, uint64_t epoch, uint64_t index, float *tmp)
{
    draws d = draw(a, seed, epoch, index);

    if (a->rotate_degrees > 0 || a->shift > 0 || a->zoom > 0)
        warp(x, h, w, channels, &d, tmp);
    else if (d.hflip || d.vflip)
        mirror(x, h, w, channels, d.hflip, d.vflip, tmp);
    if (a->brightness > 0 || a->contrast > 0)
        tone(x, h * w * channels, d.brightness, d.contrast, top);
}

/* --- text --------------------------------------------------------------------------------------*/

static snug_status parse_one(snug_augment *out, const char *name, const char *value,
                             snug_error *err)
{
    static const char *const names[] = {"hflip", "vflip",      "rotate",  "shift",
                                        "zoom",  "brightness", "contrast"};
    float *const reals[] = {&out->rotate_degrees, &out->shift, &out->zoom, &out->brightness,
                            &out->contrast};
    static const double tops[] = {360, 1, 0.99, 1, 1};
    double real;

    for (size_t i = 0; i < SN_LEN(names); i++) {
        if (!sn_str_eq(names[i], name))
            continue;
        if (i < 2) {
            if (value)
                return sn_fail(err, SNUG_E_USAGE, "--augment: %s takes no value", name);
            *(i == 0 ? &out->hflip : &out->vflip) = 1;
            return SNUG_OK;
        }
        if (!value || !sn_parse_f64(value, 0, tops[i - 2], &real))
            return sn_fail(err, SNUG_E_USAGE,
                           "--augment: %s wants a number from 0 to %g, as in %s=%g", name,
                           tops[i - 2], name, i == 2 ? 10.0 : 0.1);
        *reals[i - 2] = (float)real;
        return SNUG_OK;
    }
    const char *near = sn_str_nearest(name, names, SN_LEN(names));
    return sn_fail(err, SNUG_E_USAGE,
                   "--augment: unknown '%.40s'%s%s%s; known: hflip, vflip, rotate=DEG, shift=F, "
                   "zoom=F, brightness=F, contrast=F",
                   name, near ? ", did you mean '" : "", near ? near : "", near ? "'" : "");
}

snug_status snug_augment_parse(snug_augment *out, const char *text, snug_error *err)
{
    snug_augment parsed = {0};

    while (*text) {
        char item[64], *equals;
        size_t n = strcspn(text, ",");
        if (n == 0 || n >= sizeof item)
            return sn_fail(err, SNUG_E_USAGE, "--augment: '%.40s' is no list like hflip,rotate=10",
                           text);
        memcpy(item, text, n);
        item[n] = '\0';
        text += n;
        if (*text == ',' && *++text == '\0')
            return sn_fail(err, SNUG_E_USAGE, "--augment: ends in a comma");
        equals = strchr(item, '=');
        if (equals)
            *equals = '\0';
        snug_status status = parse_one(&parsed, item, equals ? equals + 1 : NULL, err);
        if (status)
            return status;
    }
    *out = parsed;
    return SNUG_OK;
}

static const char *const scale_names[SNUG_N_SCALES] = {"auto",   "0..1",  "-1..1",
                                                       "0..255", "caffe", "torch"};

const char *snug_scale_name(snug_scale scale)
{
    return (unsigned)scale < SNUG_N_SCALES ? scale_names[scale] : "?";
}

int snug_scale_parse(snug_scale *out, const char *text)
{
    for (unsigned i = 0; i < SNUG_N_SCALES; i++)
        if (sn_str_eq(text, scale_names[i])) {
            *out = (snug_scale)i;
            return 1;
        }
    return 0;
}
