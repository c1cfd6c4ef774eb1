/* SPDX-License-Identifier: Apache-2.0
 *
 * The resizer against the formulas in their plainest form, for many sizes; its vector loops against
 * plain ones; the scales; the bound on its scratch.
 */
#include "support/support.h"

#include <math.h>
#include <string.h>

#include "data/resize_rows.h"

enum { MAX = 70 };

static uint8_t source[MAX * MAX * 3 + 64];
static float out[MAX * MAX * 3 + 16], expected[MAX * MAX * 3];
static sn_scratch scratch;

static int set_up(void **state)
{
    uint32_t random = 1;

    for (size_t i = 0; i < sizeof source; i++)
        source[i] = (uint8_t)((random = random * 1664525u + 1013904223u) >> 24);
    return sn_scratch_init(&scratch, 4 * SN_MIB, NULL, NULL);
}

static int tear_down(void **state)
{
    sn_scratch_deinit(&scratch);
    return sn_ledger_live_bytes() != 0;
}

static void run(const sn_resize_spec *spec)
{
    sn_resizer r;
    snug_error err = SNUG_ERROR_INIT;
    int64_t n = spec->out_h * spec->out_w * spec->channels, wanted = 0;

    sn_scratch_reset(&scratch);
    for (int64_t i = 0; i < n + 16; i++)
        out[i] = -99;
    assert_ok(sn_resizer_begin(&r, spec, &scratch, &err), &err);
    assert_true(scratch.used <= sn_resizer_bytes(spec));
    for (int64_t y = 0; y < spec->src_h; y++)
        if (sn_resizer_wants(&r, y)) {
            sn_resizer_row(&r, y, source + y * spec->src_w * spec->channels);
            wanted++;
        }
    assert_true(wanted <= spec->src_h);
    for (int64_t i = n; i < n + 16; i++)
        assert_true(out[i] == -99);
}

/* Element (y, x, c) by the formula, for one axis at a time. */
static void axis(int64_t i, int64_t n, int64_t size, int64_t *lo, int64_t *hi, float *f)
{
    float s = (float)size / (float)n, x = ((float)i + 0.5f) * s - 0.5f;

    *lo = SN_MAX((int64_t)floorf(x), 0);
    *hi = SN_MIN((int64_t)ceilf(x), size - 1);
    *f = x - floorf(x);
}

static void plain_bilinear(const sn_resize_spec *s)
{
    int c = s->channels;

    for (int64_t y = 0; y < s->out_h; y++)
        for (int64_t x = 0; x < s->out_w; x++)
            for (int k = 0; k < c; k++) {
                int64_t y0, y1, x0, x1;
                float fy, fx;
                axis(y, s->out_h, s->src_h, &y0, &y1, &fy);
                axis(x, s->out_w, s->src_w, &x0, &x1, &fx);
                float a = source[(y0 * s->src_w + x0) * c + k],
                      b = source[(y0 * s->src_w + x1) * c + k];
                float d = source[(y1 * s->src_w + x0) * c + k],
                      e = source[(y1 * s->src_w + x1) * c + k];
                float top = a + (b - a) * fx, bottom = d + (e - d) * fx;
                float v = top + (bottom - top) * fy;
                expected[(y * s->out_w + x) * c + k] = s->scale == SNUG_SCALE_0_1 ? v / 255.0f
                                                       : s->scale == SNUG_SCALE_MINUS1_1
                                                           ? v / 127.5f - 1.0f
                                                           : v;
            }
}

static void test_bilinear(void **state)
{
    static const int64_t sizes[] = {1, 2, 3, 5, 7, 16, 33, 64, 70};
    static const snug_scale scales[] = {SNUG_SCALE_0_255, SNUG_SCALE_0_1, SNUG_SCALE_MINUS1_1};

    for (size_t i = 0; i < SN_LEN(sizes); i++)
        for (size_t j = 0; j < SN_LEN(sizes); j++)
            for (int c = 1; c <= 3; c += 2)
                for (size_t k = 0; k < 3; k++) {
                    sn_resize_spec s = {.src_h = sizes[i],
                                        .src_w = sizes[(i * 2 + j) % SN_LEN(sizes)],
                                        .out_h = sizes[j],
                                        .out_w = sizes[(j + 4) % SN_LEN(sizes)],
                                        .channels = c,
                                        .scale = scales[k],
                                        .out = out};
                    run(&s);
                    plain_bilinear(&s);
                    assert_memory_equal(out, expected,
                                        (size_t)(s.out_h * s.out_w * c) * sizeof *out);
                }
}

static void test_same_size_is_the_image(void **state)
{
    for (int resize = 0; resize < 2; resize++) {
        sn_resize_spec s = {.src_h = 11,
                            .src_w = 13,
                            .out_h = 11,
                            .out_w = 13,
                            .channels = 3,
                            .resize = (snug_resize)resize,
                            .out = out};
        run(&s);
        for (int i = 0; i < 11 * 13 * 3; i++)
            assert_true(out[i] == (float)source[i]);
    }
}

static void test_antialias_keeps_the_mean(void **state)
{
    static uint8_t kept[sizeof source];

    memcpy(kept, source, sizeof source);
    memset(source, 77, sizeof source);
    for (int64_t n = 1; n < 40; n += 3) {
        sn_resize_spec s = {.src_h = 64,
                            .src_w = 50,
                            .out_h = n,
                            .out_w = 41 - n,
                            .channels = 3,
                            .resize = SNUG_RESIZE_ANTIALIAS,
                            .out = out};
        run(&s);
        for (int64_t i = 0; i < s.out_h * s.out_w * 3; i++)
            assert_true(fabsf(out[i] - 77) < 1e-3f);
    }
    memcpy(source, kept, sizeof source);
}

static void test_pad_is_black_in_every_scale(void **state)
{
    static const float black[SNUG_N_SCALES][3] = {
        [SNUG_SCALE_0_1] = {0, 0, 0},
        [SNUG_SCALE_MINUS1_1] = {-1, -1, -1},
        [SNUG_SCALE_0_255] = {0, 0, 0},
        [SNUG_SCALE_CAFFE] = {-103.939f, -116.779f, -123.68f},
        [SNUG_SCALE_TORCH] = {-0.485f / 0.229f, -0.456f / 0.224f, -0.406f / 0.225f},
    };

    for (int scale = SNUG_SCALE_0_1; scale < SNUG_N_SCALES; scale++) {
        sn_resize_spec s = {.src_h = 10,
                            .src_w = 20,
                            .out_h = 20,
                            .out_w = 20,
                            .channels = 3,
                            .fit = SNUG_FIT_PAD,
                            .scale = (snug_scale)scale,
                            .out = out};
        run(&s);
        for (int c = 0; c < 3; c++) {
            assert_true(out[c] == black[scale][c]);
            assert_true(out[(19 * 20 + 19) * 3 + c] == black[scale][c]);
        }
        /* Ten rows of the image lie in the middle. */
        float v = out[(10 * 20 + 3) * 3];
        float pixel = (float)source[(5 * 20 + 3) * 3 + (scale == SNUG_SCALE_CAFFE ? 2 : 0)];
        assert_true(scale != SNUG_SCALE_0_255 || v == pixel);
        assert_true(scale != SNUG_SCALE_CAFFE || v == pixel - 103.939f);
    }
}

static void test_crop_is_the_middle(void **state)
{
    sn_resize_spec s = {.src_h = 10,
                        .src_w = 30,
                        .out_h = 10,
                        .out_w = 10,
                        .channels = 1,
                        .fit = SNUG_FIT_CROP,
                        .out = out};

    run(&s);
    for (int y = 0; y < 10; y++)
        for (int x = 0; x < 10; x++)
            assert_true(out[y * 10 + x] == (float)source[y * 30 + 10 + x]);
}

static void test_division_is_rounded_correctly(void **state)
{
    static float x[256], y[256];
    uint32_t random = 7;

    for (int round = 0; round < 4000; round++) {
        float by = round % 2 ? 255.0f : 127.5f;
        for (int i = 0; i < 256; i++)
            x[i] =
                (float)((random = random * 1664525u + 1013904223u) >> 8) * (255.0f / 16777216.0f);
        sn_rows_lerp_y(y, x, x, 0.3f, by, 0, 256);
        for (int i = 0; i < 256; i++)
            assert_true(y[i] == x[i] / by);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bilinear),
        cmocka_unit_test(test_same_size_is_the_image),
        cmocka_unit_test(test_antialias_keeps_the_mean),
        cmocka_unit_test(test_pad_is_black_in_every_scale),
        cmocka_unit_test(test_crop_is_the_middle),
        cmocka_unit_test(test_division_is_rounded_correctly),
    };

    return cmocka_run_group_tests_name("unit/data_resize", tests, set_up, tear_down);
}
