/* SPDX-License-Identifier: Apache-2.0
 *
 * Damaged image files: cut off at every byte, bits flipped, headers that claim the absurd. Never a
 * crash, never a byte written beyond the sample, and a cut-off file is always an error.
 */
#include "photos.h"

#include "data/image.h"

enum { H = 9, W = 11, N = H * W * 3, GUARD = 64 };

static sn_pool pool;
static sn_scratch scratch;

static int set_up(void **state)
{
    return sn_pool_init(&pool, 4 * SN_MIB, NULL) || sn_scratch_init(&scratch, SN_MIB, &pool, NULL);
}

static int tear_down(void **state)
{
    sn_scratch_deinit(&scratch);
    sn_pool_deinit(&pool);
    return 0;
}

static snug_status load(const void *bytes, size_t n, const sn_image_options *o, snug_error *err)
{
    float x[N + GUARD];
    sn_reader reader;

    for (size_t i = 0; i < N + GUARD; i++)
        x[i] = -7;
    sn_reader_memory(&reader, bytes, n);
    snug_status status = sn_image_load(x, &reader, o, &scratch, NULL, err);
    for (size_t i = N; i < N + GUARD; i++)
        assert_true(x[i] == -7);
    for (size_t i = 0; i < N && !status; i++)
        if (!(x[i] >= 0 && x[i] <= 255.001f)) /* the antialiasing weights are rounded */
            fail_msg("element %zu is %g", i, (double)x[i]);
    assert_true(!status || status == SNUG_E_INPUT || status == SNUG_E_UNSUPPORTED);
    assert_int_equal(pool.held, 0);
    return status;
}

static const char *const files[] = {
    "j420.jpg",      "jprogressive.jpg", "jcmyk_adobe.jpg", "jrestart.jpg",
    "jgray.jpg",     "jorient6.jpg",     "prgb.png",        "prgb_interlaced.png",
    "ppalette4.png", "pgray16.png",      "pgrayalpha.png",  "b24.bmp",
    "b8.bmp",        "b32.bmp",          "ptext.png",       "ppalette_trns.png"};

static char *read_file(const char *name, size_t *n)
{
    char path[SN_TEST_PATH], relative[128];

    snprintf(relative, sizeof relative, "tests/oracle/pixels/%s", name);
    return test_read(test_source_path(path, relative), n);
}

static sn_image_options options(int which)
{
    return (sn_image_options){.height = H,
                              .width = W,
                              .channels = 3,
                              .resize = which % 2 ? SNUG_RESIZE_ANTIALIAS : SNUG_RESIZE_BILINEAR,
                              .fit = (snug_fit)(which % 3),
                              .exif = which % 2 == 0,
                              .fast_decode = which % 5 == 0};
}

static void test_cut_off_at_every_byte(void **state)
{
    for (size_t f = 0; f < SN_LEN(files); f++) {
        size_t n;
        char *bytes = read_file(files[f], &n);
        sn_image_options o = options((int)f);
        snug_error err = SNUG_ERROR_INIT;
        assert_int_equal(load(bytes, n, &o, &err), SNUG_OK);
        for (size_t i = 0; i < n; i++) {
            /* A copy of exactly that length, so that reading beyond it is seen. */
            char *cut = sn_alloc(SN_TAG_TEST, i);
            memcpy(cut, bytes, i);
            snug_status status = load(cut, i, &o, &err);
            /* All rows of a JPEG can be there a few bytes before its end. */
            if (!status && !(files[f][0] == 'j' && i + 4 >= n))
                fail_msg("%s: %zu of %zu bytes are taken for whole", files[f], i, n);
            sn_free(cut);
        }
        sn_free(bytes);
    }
}

/* So small a sample that most rows are passed over: the end of the file is met while skipping. */
static void test_cut_off_while_rows_are_skipped(void **state)
{
    for (size_t f = 0; f < SN_LEN(files); f++) {
        size_t n;
        char *bytes = read_file(files[f], &n);
        sn_image_options o = {.height = 2, .width = 2, .channels = 3};
        for (size_t i = 0; i + 4 < n; i++) {
            snug_error err = SNUG_ERROR_INIT;
            if (!load(bytes, i, &o, &err))
                fail_msg("%s: %zu of %zu bytes are taken for whole", files[f], i, n);
        }
        sn_free(bytes);
    }
}

static void test_flipped_bits(void **state)
{
    uint64_t random = 88172645463325252u;

    for (size_t f = 0; f < SN_LEN(files); f++) {
        size_t n;
        char *bytes = read_file(files[f], &n);
        for (int round = 0; round < 400; round++) {
            sn_image_options o = options(round);
            snug_error err = SNUG_ERROR_INIT;
            size_t at[3];
            for (int k = 0; k < 3; k++) {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                /* Mostly headers: half of the flips in the first 200 bytes. */
                at[k] = random % (round % 2 ? SN_MIN(n, (size_t)200) : n);
                bytes[at[k]] ^= (char)(1 << (random >> 60 & 7));
            }
            load(bytes, n, &o, &err);
            for (int k = 3; k-- > 0;) {
                char *again = read_file(files[f], &n);
                bytes[at[k]] = again[at[k]];
                sn_free(again);
            }
        }
        sn_free(bytes);
    }
}

static void put32(char *p, uint32_t v, bool big)
{
    for (int i = 0; i < 4; i++)
        p[big ? i : 3 - i] = (char)(v >> (24 - 8 * i));
}

/* CRC of PNG's chunks, so that a changed header is believed. */
static uint32_t crc(const char *p, size_t n)
{
    uint32_t c = 0xffffffffu;

    for (size_t i = 0; i < n; i++) {
        c ^= (uint8_t)p[i];
        for (int k = 0; k < 8; k++)
            c = c & 1 ? 0xedb88320u ^ c >> 1 : c >> 1;
    }
    return ~c;
}

static void test_absurd_headers(void **state)
{
    static const uint32_t sizes[][2] = {
        {0x7fffffff, 1}, {0x7fffffff, 0x7fffffff}, {65536, 32768}, {1, 0x7fffffff}, {0, 5}, {5, 0}};
    sn_image_options o = options(0);
    snug_error err = SNUG_ERROR_INIT;
    uint64_t calls = sn_ledger_calls();
    size_t n;

    char *png = read_file("prgb.png", &n);
    calls = sn_ledger_calls();
    for (size_t i = 0; i < SN_LEN(sizes); i++) {
        put32(png + 16, sizes[i][0], true);
        put32(png + 20, sizes[i][1], true);
        put32(png + 29, crc(png + 12, 17), true);
        assert_fails(load(png, n, &o, &err), SNUG_E_INPUT, &err);
    }
    assert_int_equal(sn_ledger_calls(), calls);
    sn_free(png);
    char *bmp = read_file("b24.bmp", &n);
    for (size_t i = 0; i < SN_LEN(sizes); i++) {
        put32(bmp + 18, sizes[i][0], false);
        put32(bmp + 22, sizes[i][1], false);
        assert_fails(load(bmp, n, &o, &err), SNUG_E_INPUT, &err);
    }
    put32(bmp + 18, 20, false);
    put32(bmp + 22, 0x80000000u, false); /* -2^31 rows */
    assert_fails(load(bmp, n, &o, &err), SNUG_E_INPUT, &err);
    sn_free(bmp);
    char *jpeg = read_file("jprogressive.jpg", &n);
    for (size_t i = 2; i + 9 < n; i++)
        if ((uint8_t)jpeg[i] == 0xff && (uint8_t)jpeg[i + 1] == 0xc2) {
            memcpy(jpeg + i + 5, "\xff\xdc\xff\xdc", 4); /* 65500 x 65500 */
            assert_fails(load(jpeg, n, &o, &err), SNUG_E_INPUT, &err);
            assert_contains(err.what, "65500x65500");
            memcpy(jpeg + i + 5, "\x1f\x40\x1f\x40", 4); /* 8000 x 8000: 192 MB of coefficients */
            assert_fails(load(jpeg, n, &o, &err), SNUG_E_UNSUPPORTED, &err);
            assert_contains(err.what, "the bound is");
            break;
        }
    sn_free(jpeg);
}

static void test_other_kinds_are_named(void **state)
{
    static const struct {
        const char *bytes;
        size_t n;
        const char *why;
    } kinds[] = {
        {"", 0, "empty file"},
        {"GIF89a....", 10, "is a GIF"},
        {"RIFF\x10\0\0\0WEBPVP8 ", 16, "is a WebP"},
        {"II*\0\x08\0\0\0", 8, "is a TIFF"},
        {"\0\0\0\x18"
         "ftypheic\0\0\0\0",
         16, "is a HEIC"},
        {"\0\0\0\x18"
         "ftypavif\0\0\0\0",
         16, "is an AVIF"},
        {"<!DOCTYPE html><html>", 21, "is a web page"},
        {"%PDF-1.7", 8, "is a PDF"},
        {"hello world", 11, "no image: begins with bytes 68 65 6c 6c"},
        {"\xff\xd8\xff", 3, "truncated JPEG: ends within its header"},
        {"\x89PNG\r\n\x1a\n", 8, "truncated PNG"},
        {"BM", 2, "truncated BMP"},
    };
    sn_image_options o = options(0);

    for (size_t i = 0; i < SN_LEN(kinds); i++) {
        snug_error err = SNUG_ERROR_INIT;
        assert_true(load(kinds[i].bytes, kinds[i].n, &o, &err) != SNUG_OK);
        assert_contains(err.what, kinds[i].why);
    }
}

/* The pixel of the stored image that stands at (y, x) when the orientation is undone. */
static void stored_at(int orientation, int h, int w, int y, int x, int *sy, int *sx)
{
    switch (orientation) {
    case 2:
        *sy = y, *sx = w - 1 - x;
        break;
    case 3:
        *sy = h - 1 - y, *sx = w - 1 - x;
        break;
    case 4:
        *sy = h - 1 - y, *sx = x;
        break;
    case 5:
        *sy = x, *sx = y;
        break;
    case 6:
        *sy = h - 1 - x, *sx = y;
        break;
    case 7:
        *sy = h - 1 - x, *sx = w - 1 - y;
        break;
    case 8:
        *sy = x, *sx = w - 1 - y;
        break;
    default:
        *sy = y, *sx = x;
        break;
    }
}

static void test_orientations(void **state)
{
    enum { SH = 37, SW = 53 }; /* jorient6.jpg's size */
    static float plain[SH * SW * 3], turned[SH * SW * 3];
    sn_image_options o = {.height = SH, .width = SW, .channels = 3};
    snug_error err = SNUG_ERROR_INIT;
    sn_reader reader;
    sn_image_facts facts;
    size_t n;
    char *bytes = read_file("jorient6.jpg", &n);

    assert_int_equal(bytes[2 + 4 + 6 + 8 + 2 + 9], 6); /* the tag's value, in its low byte */
    sn_reader_memory(&reader, bytes, n);
    assert_ok(sn_image_load(plain, &reader, &o, &scratch, NULL, &err), &err);
    for (int orientation = 1; orientation <= 8; orientation++) {
        bool turn = orientation > 4;
        bytes[2 + 4 + 6 + 8 + 2 + 9] = (char)orientation;
        o.exif = true;
        o.height = turn ? SW : SH;
        o.width = turn ? SH : SW;
        assert_ok(sn_image_load(turned, &reader, &o, &scratch, &facts, &err), &err);
        assert_int_equal(facts.orientation, orientation);
        for (int y = 0; y < o.height; y++)
            for (int x = 0; x < o.width; x++) {
                int sy, sx;
                stored_at(orientation, SH, SW, y, x, &sy, &sx);
                assert_memory_equal(turned + (y * o.width + x) * 3, plain + (sy * SW + sx) * 3,
                                    3 * sizeof(float));
            }
    }
    sn_free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cut_off_at_every_byte),
        cmocka_unit_test(test_cut_off_while_rows_are_skipped),
        cmocka_unit_test(test_flipped_bits),
        cmocka_unit_test(test_absurd_headers),
        cmocka_unit_test(test_other_kinds_are_named),
        cmocka_unit_test(test_orientations),
    };
    int failed = cmocka_run_group_tests_name("data/damage", tests, set_up, tear_down);

    return failed || sn_ledger_live_bytes() != 0;
}
