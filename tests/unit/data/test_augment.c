/* SPDX-License-Identifier: Apache-2.0
 *
 * Augmentation: its text, its draws, what each change does.
 */
#include "support/support.h"

#include <math.h>
#include <string.h>

#include "data/augment.h"

enum { H = 6, W = 8, C = 3, N = H * W * C };

static float x[N], original[N], tmp[N];

static void fresh(void)
{
    for (int i = 0; i < N; i++)
        x[i] = original[i] = (float)(i * 37 % 251);
}

static void apply(const snug_augment *a, uint64_t epoch, uint64_t index)
{
    fresh();
    sn_augment_apply(a, x, H, W, C, 255.0f, 3, epoch, index, tmp);
}

static void test_text(void **state)
{
    static const char *const bad[] = {"flip",       "hflip=1",      "rotate",      "rotate=x",
                                      "rotate=361", "zoom=1",       "shift=-1",    "hflip,",
                                      ",hflip",     "hflip,,vflip", "brightness=", "contrast=2"};
    snug_augment a;
    snug_error err = SNUG_ERROR_INIT;

    assert_ok(snug_augment_parse(
                  &a, "hflip,vflip,rotate=10,shift=0.1,zoom=.2,brightness=0.3,contrast=1", &err),
              &err);
    assert_true(a.hflip && a.vflip && a.rotate_degrees == 10 && a.shift == 0.1f && a.zoom == 0.2f &&
                a.brightness == 0.3f && a.contrast == 1);
    assert_true(sn_augment_any(&a));
    assert_ok(snug_augment_parse(&a, "", &err), &err);
    assert_false(sn_augment_any(&a));
    for (size_t i = 0; i < SN_LEN(bad); i++)
        if (!snug_augment_parse(&a, bad[i], &err))
            fail_msg("'%s' is taken", bad[i]);
    assert_fails(snug_augment_parse(&a, "rotat=3", &err), SNUG_E_USAGE, &err);
    assert_contains(err.what, "did you mean 'rotate'");
}

static void test_draws_depend_on_epoch_and_index_only(void **state)
{
    snug_augment a = {.hflip = 1, .rotate_degrees = 20, .shift = 0.2f, .contrast = 0.3f};
    float first[N];
    int same_epoch = 0, same_index = 0;

    for (uint64_t i = 0; i < 20; i++) {
        apply(&a, 1, i);
        memcpy(first, x, sizeof x);
        apply(&a, 1, i);
        assert_memory_equal(first, x, sizeof x);
        apply(&a, 2, i);
        same_epoch += !memcmp(first, x, sizeof x);
        apply(&a, 1, i + 1);
        same_index += !memcmp(first, x, sizeof x);
    }
    assert_int_equal(same_epoch + same_index, 0);
}

static void test_flips(void **state)
{
    snug_augment a = {.hflip = 1};
    int flipped = 0;

    for (uint64_t i = 0; i < 400; i++) {
        apply(&a, 0, i);
        bool is = memcmp(x, original, sizeof x) != 0;
        flipped += is;
        for (int y = 0; y < H && is; y++)
            for (int k = 0; k < W * C; k++)
                assert_true(x[y * W * C + k] == original[(y * W + W - 1 - k / C) * C + k % C]);
    }
    assert_true(flipped > 150 && flipped < 250);
    /* A warp that does nothing but mirror gives the same. */
    snug_augment b = {.hflip = 1, .rotate_degrees = 1e-30f};
    float by_mirror[N];
    for (uint64_t i = 0; i < 20; i++) {
        apply(&a, 0, i);
        memcpy(by_mirror, x, sizeof x);
        apply(&b, 0, i);
        for (int k = 0; k < N; k++)
            assert_true(fabsf(x[k] - by_mirror[k]) < 1e-2f);
    }
}

static void test_values_stay_in_range(void **state)
{
    snug_augment a = {
        .rotate_degrees = 360, .shift = 1, .zoom = 0.99f, .brightness = 1, .contrast = 1};

    for (uint64_t i = 0; i < 500; i++) {
        apply(&a, 0, i);
        for (int k = 0; k < N; k++)
            assert_true(x[k] >= 0 && x[k] <= 255);
    }
}

static void test_brightness_is_a_factor(void **state)
{
    snug_augment a = {.brightness = 0.5f};
    float low = 9, high = 0;

    for (uint64_t i = 0; i < 300; i++) {
        for (int k = 0; k < N; k++)
            x[k] = 100;
        sn_augment_apply(&a, x, H, W, C, 0, 1, 0, i, tmp);
        for (int k = 1; k < N; k++)
            assert_true(x[k] == x[0]);
        low = fminf(low, x[0] / 100);
        high = fmaxf(high, x[0] / 100);
    }
    assert_true(low >= 0.5f && low < 0.55f && high <= 1.5f && high > 1.45f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_draws_depend_on_epoch_and_index_only),
        cmocka_unit_test(test_flips),
        cmocka_unit_test(test_values_stay_in_range),
        cmocka_unit_test(test_brightness_is_a_factor),
    };

    return cmocka_run_group_tests_name("unit/data_augment", tests, NULL, NULL);
}
