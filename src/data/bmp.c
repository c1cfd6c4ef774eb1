/* SPDX-License-Identifier: Apache-2.0
 *
 * BMP: 24 and 32 bits, 8 bits with a palette (a gray one is what tf.io.decode_bmp takes it for),
 * bottom-up or top-down, uncompressed. Everything else is refused in words.
 */
#include "data/image.h"

enum { HEADER = 54, MAX_PALETTE = 256 };

typedef struct bmp {
    uint64_t width, height, row_bytes, pixels_at;
    bool top_down;
    unsigned bits;
    uint8_t palette[MAX_PALETTE][4]; /* blue, green, red, unused */
    unsigned n_palette;
} bmp;

static uint32_t le32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static unsigned le16(const uint8_t *p)
{
    return (unsigned)p[0] | (unsigned)p[1] << 8;
}

/* Bit masks other than the plain order of bytes would need shuffling that nobody writes. */
static bool plain_masks(const uint8_t *masks)
{
    return le32(masks) == 0x00ff0000 && le32(masks + 4) == 0x0000ff00 &&
           le32(masks + 8) == 0x000000ff;
}

static snug_status check_kind(bmp *b, const sn_decode *job, const uint8_t *head, snug_error *err)
{
    uint32_t compression = le32(head + 30);
    uint8_t masks[12];
    size_t got;

    if (b->bits != 8 && b->bits != 24 && b->bits != 32)
        return sn_fail(err, SNUG_E_UNSUPPORTED,
                       "BMP of %u bits a pixel: only 8, 24 and 32 are read", b->bits);
    if (compression == 1 || compression == 2)
        return sn_fail(err, SNUG_E_UNSUPPORTED, "run-length compressed BMP: not supported");
    if (compression == 3 || compression == 6) {
        snug_status status = sn_reader_read(job->reader, masks, sizeof masks, HEADER, &got, err);
        if (status)
            return status;
        if (b->bits != 32 || got < sizeof masks || !plain_masks(masks))
            return sn_fail(err, SNUG_E_UNSUPPORTED, "BMP with unusual colour masks: not supported");
    } else if (compression != 0) {
        return sn_fail(err, SNUG_E_UNSUPPORTED, "BMP with compression %" PRIu32 ": not supported",
                       compression);
    }
    return SNUG_OK;
}

static snug_status read_palette(bmp *b, const sn_decode *job, const uint8_t *head, snug_error *err)
{
    uint32_t used = le32(head + 46);
    size_t got;

    b->n_palette = used == 0 || used > MAX_PALETTE ? MAX_PALETTE : used;
    snug_status status = sn_reader_read(job->reader, b->palette, (size_t)b->n_palette * 4,
                                        14 + (uint64_t)le32(head + 14), &got, err);
    if (status)
        return status;
    if (got < (size_t)b->n_palette * 4)
        return sn_fail(err, SNUG_E_INPUT, "truncated BMP: its palette of %u colours is cut off",
                       b->n_palette);
    return SNUG_OK;
}

static snug_status read_header(bmp *b, const sn_decode *job, snug_error *err)
{
    uint8_t head[HEADER];
    size_t got;
    snug_status status = sn_reader_read(job->reader, head, sizeof head, 0, &got, err);

    if (status)
        return status;
    if (got < sizeof head)
        return sn_fail(err, SNUG_E_INPUT, "truncated BMP: %zu bytes, its header has %d", got,
                       HEADER);
    if (le32(head + 14) < 40 || le32(head + 14) > 1024)
        return sn_fail(err, SNUG_E_UNSUPPORTED,
                       "BMP with a header of %" PRIu32 " bytes: not supported", le32(head + 14));
    int32_t width = (int32_t)le32(head + 18), height = (int32_t)le32(head + 22);
    b->top_down = height < 0;
    b->width = width < 0 ? 0 : (uint64_t)width;
    b->height = (uint64_t)(height < 0 ? -(int64_t)height : height);
    b->bits = le16(head + 28);
    b->pixels_at = le32(head + 10);
    if ((status = sn_decode_check_size(b->width, b->height, err)))
        return status;
    if ((status = check_kind(b, job, head, err)))
        return status;
    b->row_bytes = (b->width * (b->bits / 8) + 3) / 4 * 4;
    if (b->bits == 8 && (status = read_palette(b, job, head, err)))
        return status;
    uint64_t whole = b->pixels_at + b->row_bytes * b->height;
    if (b->pixels_at < HEADER || whole > job->reader->size) {
        uint64_t have = job->reader->size > b->pixels_at ? job->reader->size - b->pixels_at : 0;
        return sn_fail(err, SNUG_E_INPUT,
                       "truncated BMP: has %" PRIu64 " of %" PRIu64 " rows of pixels",
                       have / b->row_bytes, b->height);
    }
    return SNUG_OK;
}

static uint8_t luma(unsigned r, unsigned g, unsigned b)
{
    return (uint8_t)((r * 19595 + g * 38470 + b * 7471 + 32768) >> 16);
}

/* One stored row to samples of `channels`, in place at the end of the same buffer or elsewhere. */
static void convert_row(const bmp *b, uint8_t *out, const uint8_t *in, int channels)
{
    unsigned step = b->bits / 8;

    for (uint64_t i = 0; i < b->width; i++) {
        const uint8_t *p = in + i * step;
        if (step == 1)
            p = b->palette[*p < b->n_palette ? *p : 0];
        if (channels == 3) {
            out[3 * i] = p[2];
            out[3 * i + 1] = p[1];
            out[3 * i + 2] = p[0];
        } else {
            out[i] = luma(p[2], p[1], p[0]);
        }
    }
}

snug_status sn_decode_bmp(const sn_decode *job, snug_error *err)
{
    bmp b = {0};
    snug_status status = read_header(&b, job, err);

    if (status)
        return status;
    const sn_image_options *o = job->options;
    job->facts->height = (int64_t)b.height;
    job->facts->width = (int64_t)b.width;
    job->facts->channels = (int)(b.bits / 8);
    sn_resize_spec spec = {.src_h = (int64_t)b.height,
                           .src_w = (int64_t)b.width,
                           .out_h = o->height,
                           .out_w = o->width,
                           .channels = o->channels,
                           .resize = o->resize,
                           .fit = o->fit,
                           .scale = o->scale,
                           .out = job->x};
    uint64_t row_bytes = b.width * (uint64_t)o->channels + 64;
    sn_resizer resizer;
    if ((status = sn_scratch_reserve(job->scratch,
                                     sn_resizer_bytes(&spec) + row_bytes + b.row_bytes + 256, err)))
        return status;
    if ((status = sn_resizer_begin(&resizer, &spec, job->scratch, err)))
        return status;
    uint8_t *raw = sn_scratch_alloc(job->scratch, b.row_bytes);
    uint8_t *row = sn_scratch_alloc(job->scratch, row_bytes);
    if (!raw || !row)
        return sn_fail(err, SNUG_E_UNSUPPORTED, "needs more scratch to decode than the bound");
    for (uint64_t y = 0; y < b.height && !sn_decode_stopped(job); y++) {
        if (!sn_resizer_wants(&resizer, (int64_t)y))
            continue;
        uint64_t stored = b.top_down ? y : b.height - 1 - y;
        size_t got;
        status = sn_reader_read(job->reader, raw, (size_t)b.row_bytes,
                                b.pixels_at + stored * b.row_bytes, &got, err);
        if (status)
            return status;
        if (got < b.row_bytes)
            return sn_fail(err, SNUG_E_INPUT, "truncated BMP: ends at row %" PRIu64 " of %" PRIu64,
                           y, b.height);
        convert_row(&b, row, raw, o->channels);
        sn_resizer_row(&resizer, (int64_t)y, row);
    }
    return SNUG_OK;
}
