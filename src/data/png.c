/* SPDX-License-Identifier: Apache-2.0
 *
 * PNG as tf.io.decode_png(dtype=uint8) decodes it: 16 bits cut to the upper 8, palettes and low
 * bit depths expanded, alpha and transparency dropped (not blended), gray to RGB or RGB to gray as
 * asked. Plain images stream row by row; interlaced ones need all of their pixels at once.
 *
 * Invariants:
 *  1. Every byte that libpng works in comes from the job's scratch.
 *  2. What is used after a longjmp lives in the reader struct.
 */
#include "data/image.h"

#include <setjmp.h>

#include <png.h>

enum { CHUNK = 64 * 1024 };

typedef struct png_reader {
    jmp_buf out;
    char text[128];
    const sn_decode *job;
    uint8_t *chunk;
    size_t have, at;
    uint64_t offset;
    snug_error io;
    bool io_failed, ended;
    png_structp png;
    png_infop info;
} png_reader;

/* --- libpng's callbacks ------------------------------------------------------------------------*/

static void on_error(png_structp png, png_const_charp text)
{
    png_reader *r = png_get_error_ptr(png);

    snprintf(r->text, sizeof r->text, "%s", text);
    longjmp(r->out, 1);
}

static void on_warning(png_structp png, png_const_charp text)
{
    png_reader *r = png_get_error_ptr(png);

    SN_UNUSED(text);
    r->job->facts->n_warnings++;
}

static png_voidp on_malloc(png_structp png, png_alloc_size_t n)
{
    png_reader *r = png_get_mem_ptr(png);

    return sn_scratch_alloc(r->job->scratch, n);
}

static void on_free(png_structp png, png_voidp p)
{
    SN_UNUSED(png);
    SN_UNUSED(p);
}

static void on_read(png_structp png, png_bytep out, size_t n)
{
    png_reader *r = png_get_io_ptr(png);

    while (n) {
        if (r->at == r->have) {
            r->at = r->have = 0;
            if (sn_reader_read(r->job->reader, r->chunk, CHUNK, r->offset, &r->have, &r->io)) {
                r->io_failed = true;
                png_error(png, "read failed");
            }
            if (r->have == 0) {
                r->ended = true;
                png_error(png, "ends early");
            }
            r->offset += r->have;
        }
        size_t part = SN_MIN(n, r->have - r->at);
        memcpy(out, r->chunk + r->at, part);
        r->at += part;
        out += part;
        n -= part;
    }
}

/* --- decoding ----------------------------------------------------------------------------------*/

/* Texts, profiles and the like have no part in the pixels and could be large. Colour information
 * counts only where RGB becomes gray. */
static void ignore_chunks(png_structp png, int channels)
{
    static const png_byte names[] = "tEXt\0zTXt\0iTXt\0eXIf\0sPLT\0hIST\0tIME\0pHYs\0oFFs\0pCAL\0"
                                    "sCAL\0bKGD\0sBIT\0iCCP\0";
    int n = (int)(sizeof names - 1) / 5;

    png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, NULL, 0);
    png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, names, channels == 3 ? n : n - 1);
}

/* The order is that of TensorFlow's png_io.cc. */
static void set_transforms(png_structp png, png_infop info, int channels)
{
    int type = png_get_color_type(png, info), depth = png_get_bit_depth(png, info);
    bool gray = !(type & PNG_COLOR_MASK_COLOR);

    if ((type & PNG_COLOR_MASK_ALPHA) || png_get_valid(png, info, PNG_INFO_tRNS))
        png_set_strip_alpha(png);
    if (depth > 8)
        png_set_strip_16(png);
    png_set_packing(png);
    png_set_interlace_handling(png);
    if (type == PNG_COLOR_TYPE_PALETTE)
        png_set_palette_to_rgb(png);
    if (gray && depth < 8)
        png_set_expand_gray_1_2_4_to_8(png);
    if (channels == 1 && !gray)
        png_set_rgb_to_gray(png, PNG_ERROR_ACTION_NONE, 0.299, 0.587);
    else if (channels == 3 && gray)
        png_set_gray_to_rgb(png);
    png_read_update_info(png, info);
}

static void stream_rows(png_reader *r, sn_resizer *resizer, uint8_t *row, int64_t height)
{
    for (int64_t y = 0; y < height && !sn_decode_stopped(r->job); y++) {
        png_read_row(r->png, row, NULL);
        if (sn_resizer_wants(resizer, y))
            sn_resizer_row(resizer, y, row);
    }
}

static void interlaced_rows(png_reader *r, sn_resizer *resizer, uint8_t *pixels, uint64_t stride,
                            int64_t height)
{
    for (int pass = 0; pass < 7; pass++)
        for (int64_t y = 0; y < height && !sn_decode_stopped(r->job); y++)
            png_read_row(r->png, pixels + (uint64_t)y * stride, NULL);
    for (int64_t y = 0; y < height; y++)
        if (sn_resizer_wants(resizer, y))
            sn_resizer_row(resizer, y, pixels + (uint64_t)y * stride);
}

/* After the header: the rest. Leaves by longjmp if libpng finds damage. */
static snug_status decode(png_reader *r, snug_error *err)
{
    const sn_decode *job = r->job;
    const sn_image_options *o = job->options;
    int64_t height = png_get_image_height(r->png, r->info);
    int64_t width = png_get_image_width(r->png, r->info);
    bool interlaced = png_get_interlace_type(r->png, r->info) != PNG_INTERLACE_NONE;
    sn_resizer resizer;
    snug_status status;

    set_transforms(r->png, r->info, o->channels);
    sn_resize_spec spec = {.src_h = height,
                           .src_w = width,
                           .out_h = o->height,
                           .out_w = o->width,
                           .channels = o->channels,
                           .resize = o->resize,
                           .fit = o->fit,
                           .scale = o->scale,
                           .out = job->x};
    /* A row as libpng hands it over, never shorter than what the transforms work on. */
    uint64_t stride = SN_MAX(png_get_rowbytes(r->png, r->info), (uint64_t)width * 3) + 64;
    uint64_t libpng_rows = 3 * ((uint64_t)width * 8 + 512);
    uint64_t need = sn_resizer_bytes(&spec) + libpng_rows + 96 * SN_KIB +
                    stride * (interlaced ? (uint64_t)height : 1);
    if ((status = sn_scratch_reserve(job->scratch, need, err)))
        return status;
    if ((status = sn_resizer_begin(&resizer, &spec, job->scratch, err)))
        return status;
    uint8_t *pixels = sn_scratch_alloc(job->scratch, stride * (interlaced ? (uint64_t)height : 1));
    if (!pixels)
        return sn_fail(err, SNUG_E_UNSUPPORTED, "needs more scratch to decode than the bound");
    if (interlaced)
        interlaced_rows(r, &resizer, pixels, stride, height);
    else
        stream_rows(r, &resizer, pixels, height);
    if (sn_decode_stopped(job))
        return sn_fail(err, SNUG_E_INTERRUPTED, "stopped while decoding");
    png_read_end(r->png, NULL);
    return SNUG_OK;
}

static snug_status damaged(png_reader *r, snug_error *err)
{
    if (r->io_failed) {
        if (err)
            *err = r->io;
        return r->io.code;
    }
    if (r->ended && r->job->facts->height)
        return sn_fail(err, SNUG_E_INPUT,
                       "truncated PNG: %" PRIu64 " bytes, ends within its pixels",
                       r->job->reader->size);
    if (r->ended)
        return sn_fail(err, SNUG_E_INPUT,
                       "truncated PNG: %" PRIu64 " bytes, ends within its header",
                       r->job->reader->size);
    return sn_fail(err, SNUG_E_INPUT, "damaged PNG: %s", r->text);
}

static snug_status read_header(png_reader *r, snug_error *err)
{
    const sn_decode *job = r->job;

    png_set_read_fn(r->png, r, on_read);
    /* Sizes are judged below, in our own words. */
    png_set_user_limits(r->png, 0x7fffffff, 0x7fffffff);
    png_set_chunk_malloc_max(r->png, 256 * 1024);
    ignore_chunks(r->png, job->options->channels);
    png_read_info(r->png, r->info);
    snug_status status = sn_decode_check_size(png_get_image_width(r->png, r->info),
                                              png_get_image_height(r->png, r->info), err);
    if (status)
        return status;
    job->facts->height = png_get_image_height(r->png, r->info);
    job->facts->width = png_get_image_width(r->png, r->info);
    job->facts->channels = png_get_channels(r->png, r->info);
    return SNUG_OK;
}

snug_status sn_decode_png(const sn_decode *job, snug_error *err)
{
    png_reader *r = sn_scratch_alloc(job->scratch, sizeof *r);
    uint8_t *chunk = sn_scratch_alloc(job->scratch, CHUNK);

    if (!r || !chunk)
        return sn_fail(err, SNUG_E_MEMORY, "no scratch to decode in");
    memset(r, 0, sizeof *r);
    r->job = job;
    r->chunk = chunk;
    if (setjmp(r->out)) { /* 2 */
        png_destroy_read_struct(&r->png, &r->info, NULL);
        return damaged(r, err);
    }
    r->png = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, r, on_error, on_warning, r, on_malloc,
                                      on_free); /* 1 */
    if (r->png)
        r->info = png_create_info_struct(r->png);
    if (!r->png || !r->info) {
        png_destroy_read_struct(&r->png, &r->info, NULL);
        return sn_fail(err, SNUG_E_MEMORY, "libpng cannot be set up in the scratch");
    }
    snug_status status = read_header(r, err);
    if (!status)
        status = decode(r, err);
    png_destroy_read_struct(&r->png, &r->info, NULL);
    return status;
}
