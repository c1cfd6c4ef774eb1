/* SPDX-License-Identifier: Apache-2.0
 *
 * Decoded and resized pixels against real TensorFlow's, bit for bit: the cases of pixels/cases.csv,
 * which make_pixels.py wrote.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/ledger.h"
#include "data/image.h"

#define FOLDER SNUG_SOURCE_DIR "/tests/oracle/pixels/"

typedef struct pixel_case {
    char file[64], expected[64], resize[16], fit[16], scale[16];
    int height, width, channels;
} pixel_case;

static float *load_expected(const pixel_case *c)
{
    char path[512], *bytes;
    size_t n;

    snprintf(path, sizeof path, FOLDER "%s", c->expected);
    assert_int_equal(sn_io_read_all(&bytes, &n, path, SN_MIB, SN_TAG_TEST, NULL), SNUG_OK);
    size_t head = 10 + (size_t)(uint8_t)bytes[8] + 256 * (size_t)(uint8_t)bytes[9];
    size_t want = (size_t)(c->height * c->width * c->channels) * sizeof(float);
    assert_int_equal(n, head + want);
    float *x = sn_alloc(SN_TAG_TEST, want);
    memcpy(x, bytes + head, want);
    sn_free(bytes);
    return x;
}

static sn_image_options options_of(const pixel_case *c)
{
    sn_image_options o = {.height = c->height, .width = c->width, .channels = c->channels};
    static const char *const resizes[] = {"bilinear", "antialias"};
    static const char *const fits[] = {"stretch", "crop", "pad"};

    for (int i = 0; i < 2; i++)
        if (!strcmp(c->resize, resizes[i]))
            o.resize = (snug_resize)i;
    for (int i = 0; i < 3; i++)
        if (!strcmp(c->fit, fits[i]))
            o.fit = (snug_fit)i;
    assert_true(snug_scale_parse(&o.scale, c->scale));
    return o;
}

/* Number of elements that differ in any bit. */
static size_t compare(const pixel_case *c, const float *got, const float *expected)
{
    size_t n = (size_t)(c->height * c->width * c->channels), bad = 0, first = n;

    for (size_t i = 0; i < n; i++)
        if (memcmp(&got[i], &expected[i], sizeof(float)) != 0 && bad++ == 0)
            first = i;
    if (bad)
        print_message("%s to %dx%dx%d %s %s %s: %zu of %zu differ, first at %zu: %.9g is %.9g\n",
                      c->file, c->height, c->width, c->channels, c->resize, c->fit, c->scale, bad,
                      n, first, (double)expected[first], (double)got[first]);
    return bad;
}

static size_t run_case(const pixel_case *c, sn_scratch *scratch, bool exif)
{
    char path[512];
    sn_reader reader;
    snug_error err = SNUG_ERROR_INIT;
    sn_image_options o = options_of(c);

    o.exif = exif;
    snprintf(path, sizeof path, FOLDER "%s", c->file);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(sn_reader_fd(&reader, fd, &err), SNUG_OK);
    float *x = sn_alloc(SN_TAG_TEST, (size_t)(c->height * c->width * c->channels) * sizeof(float));
    if (sn_image_load(x, &reader, &o, scratch, NULL, &err))
        fail_msg("%s: %s", c->file, err.what);
    float *expected = load_expected(c);
    size_t bad = compare(c, x, expected);
    sn_free(expected);
    sn_free(x);
    close(fd);
    return bad;
}

static void test_against_tensorflow(void **state)
{
    char *text, *line, *save = NULL;
    size_t n, n_cases = 0, bad = 0;
    sn_pool pool;
    sn_scratch scratch;

    assert_int_equal(sn_io_read_all(&text, &n, FOLDER "cases.csv", SN_MIB, SN_TAG_TEST, NULL),
                     SNUG_OK);
    assert_int_equal(sn_pool_init(&pool, 4 * SN_MIB, NULL), SNUG_OK);
    assert_int_equal(sn_scratch_init(&scratch, SN_MIB, &pool, NULL), SNUG_OK);
    line = strtok_r(text, "\n", &save); /* the column names */
    while ((line = strtok_r(NULL, "\n", &save))) {
        pixel_case c;
        assert_int_equal(sscanf(line, "%63[^,],%d,%d,%d,%15[^,],%15[^,],%15[^,],%63s", c.file,
                                &c.height, &c.width, &c.channels, c.resize, c.fit, c.scale,
                                c.expected),
                         8);
        bad += run_case(&c, &scratch, false) != 0;
        n_cases++;
    }
    print_message("%zu cases, %zu differ\n", n_cases, bad);
    assert_true(n_cases > 80);
    assert_int_equal(bad, 0);
    sn_scratch_deinit(&scratch);
    sn_pool_deinit(&pool);
    sn_free(text);
    assert_int_equal(sn_ledger_live_bytes(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_tensorflow)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
