/* SPDX-License-Identifier: Apache-2.0
 *
 * JPEG as tf.io.decode_jpeg decodes it by default: libjpeg with JDCT_IFAST and fancy upsampling;
 * CMYK and YCCK through libjpeg's CMYK to RGB by TensorFlow's integer formula; a file that ends
 * before its last row is an error, damage inside it (a warning of libjpeg's) is not.
 *
 * Invariants:
 *  1. Every byte that libjpeg works in comes from the job's scratch, but for the one small pool of
 *     jpeg_create_decompress, which jpeg_destroy gives back on every way out.
 *  2. Between setjmp and a possible longjmp, what is used afterwards lives in the reader struct.
 */
#include "data/image.h"
#include "data/jpeg_memory.h"

#include <setjmp.h>

/* libjpeg-turbo stores to an aligned row past the caches, and the resizer, which reads it at once,
 * would wait for memory: half of the whole time. Rows are therefore kept off alignment. */
enum { CHUNK = 64 * 1024, MAX_EXIF = 4096, ROW_OFFSET = 8, MAX_SCANS = 200 };

typedef struct jpeg_reader {
    struct jpeg_error_mgr errors; /* first: cinfo->err is cast back */
    jmp_buf out;
    char text[JMSG_LENGTH_MAX];
    struct jpeg_source_mgr source; /* reached by container arithmetic from cinfo->src */
    const sn_reader *bytes;
    uint64_t offset; /* of the next chunk */
    uint8_t *chunk;
    snug_error io; /* a failed read */
    bool io_failed, stopped;
    const sn_decode *job;
    struct jpeg_progress_mgr progress;
    struct jpeg_decompress_struct cinfo;
    sn_jpeg_memory memory;
} jpeg_reader;

/* --- libjpeg's callbacks -----------------------------------------------------------------------*/

static void on_error(j_common_ptr cinfo)
{
    jpeg_reader *r = (jpeg_reader *)(void *)cinfo->err;

    r->errors.format_message(cinfo, r->text);
    longjmp(r->out, 1);
}

static void on_message(j_common_ptr cinfo)
{
    SN_UNUSED(cinfo); /* never printed */
}

static jpeg_reader *reader_of(j_decompress_ptr cinfo)
{
    return (jpeg_reader *)(void *)cinfo->err;
}

static void source_init(j_decompress_ptr cinfo)
{
    SN_UNUSED(cinfo);
}

/* FALSE at the end of the file: the decoder then suspends, which the caller takes for the end. */
static boolean source_fill(j_decompress_ptr cinfo)
{
    jpeg_reader *r = reader_of(cinfo);
    size_t got;

    if (sn_reader_read(r->bytes, r->chunk, CHUNK, r->offset, &got, &r->io)) {
        r->io_failed = true;
        return FALSE;
    }
    if (got == 0)
        return FALSE;
    r->offset += got;
    r->source.next_input_byte = r->chunk;
    r->source.bytes_in_buffer = got;
    return TRUE;
}

static void source_skip(j_decompress_ptr cinfo, long n)
{
    jpeg_reader *r = reader_of(cinfo);

    if (n <= 0)
        return;
    if ((size_t)n <= r->source.bytes_in_buffer) {
        r->source.next_input_byte += n;
        r->source.bytes_in_buffer -= (size_t)n;
        return;
    }
    r->offset += (size_t)n - r->source.bytes_in_buffer;
    r->source.bytes_in_buffer = 0;
}

static void source_end(j_decompress_ptr cinfo)
{
    SN_UNUSED(cinfo);
}

/* Called while all scans of a progressive file are read, before the first row comes. A small file
 * can hold thousands of scans and would take minutes. */
static void on_progress(j_common_ptr cinfo)
{
    jpeg_reader *r = (jpeg_reader *)(void *)cinfo->err;

    if (r->cinfo.input_scan_number > MAX_SCANS) {
        snprintf(r->text, sizeof r->text, "more than %d scans", MAX_SCANS);
        longjmp(r->out, 1);
    }
    if (sn_decode_stopped(r->job)) {
        r->stopped = true;
        longjmp(r->out, 1);
    }
}

/* --- EXIF --------------------------------------------------------------------------------------*/

static unsigned exif_u16(const JOCTET *p, bool big)
{
    return big ? (unsigned)p[0] << 8 | p[1] : (unsigned)p[1] << 8 | p[0];
}

static uint64_t exif_u32(const JOCTET *p, bool big)
{
    return big ? (uint64_t)exif_u16(p, big) << 16 | exif_u16(p + 2, big)
               : (uint64_t)exif_u16(p + 2, big) << 16 | exif_u16(p, big);
}

/* The orientation tag (0x0112) of the first directory; 1 if it is not there or makes no sense. */
static int exif_orientation(const JOCTET *data, uint64_t n)
{
    if (n < 14 || memcmp(data, "Exif\0\0", 6) != 0)
        return 1;
    const JOCTET *tiff = data + 6;
    n -= 6;
    bool big = tiff[0] == 'M';
    if (exif_u16(tiff + 2, big) != 42)
        return 1;
    uint64_t at = exif_u32(tiff + 4, big);
    if (at > n || n - at < 2)
        return 1;
    unsigned entries = exif_u16(tiff + at, big);
    at += 2;
    for (unsigned i = 0; i < entries && n - at >= 12; i++, at += 12)
        if (exif_u16(tiff + at, big) == 0x0112) {
            unsigned value = exif_u16(tiff + at + 8, big);
            return value >= 1 && value <= 8 ? (int)value : 1;
        }
    return 1;
}

static int orientation_of(j_decompress_ptr cinfo)
{
    for (jpeg_saved_marker_ptr m = cinfo->marker_list; m; m = m->next)
        if (m->marker == JPEG_APP0 + 1) {
            int found = exif_orientation(m->data, m->data_length);
            if (found != 1)
                return found;
        }
    return 1;
}

/* --- decoding ----------------------------------------------------------------------------------*/

/* What the decoder will hold: rows, tables and, with more than one scan, every coefficient. */
static uint64_t bytes_needed(j_decompress_ptr cinfo)
{
    uint64_t width = cinfo->image_width, bytes = 192 * SN_KIB;

    for (int i = 0; i < cinfo->num_components; i++) {
        const jpeg_component_info *c = &cinfo->comp_info[i];
        uint64_t h = (uint64_t)c->h_samp_factor, v = (uint64_t)c->v_samp_factor;
        uint64_t max_h = (uint64_t)SN_MAX(cinfo->max_h_samp_factor, 1);
        uint64_t row = (width * h / max_h + 64) + 2 * SN_SCRATCH_ALIGN;
        bytes += row * v * (DCTSIZE + 4) * 2; /* main buffer with its context */
        bytes += (width + 256) * (uint64_t)SN_MAX(cinfo->max_v_samp_factor, 1); /* upsampled */
        if (jpeg_has_multiple_scans(cinfo)) {
            uint64_t across = sn_align_up(c->width_in_blocks, 4) + 4;
            uint64_t down = sn_align_up(c->height_in_blocks, 4) + 4;
            bytes +=
                (across * sizeof(JBLOCK) + 2 * SN_SCRATCH_ALIGN) * down + down * sizeof(void *);
        }
    }
    return bytes + width * 8 + SN_KIB;
}

/* tf.io.decode_jpeg's CMYK (inverted when Adobe's marker was seen) to RGB, then to gray if asked.
 */
static void convert_cmyk(uint8_t *out, const uint8_t *in, uint64_t n, bool adobe, int channels)
{
    for (uint64_t i = 0; i < n; i++, in += 4) {
        int c = in[0], m = in[1], y = in[2], k = in[3], r, g, b;
        if (adobe) {
            r = k * c / 255;
            g = k * m / 255;
            b = k * y / 255;
        } else {
            r = (255 - k) * (255 - c) / 255;
            g = (255 - k) * (255 - m) / 255;
            b = (255 - k) * (255 - y) / 255;
        }
        if (channels == 3) {
            out[3 * i] = (uint8_t)r;
            out[3 * i + 1] = (uint8_t)g;
            out[3 * i + 2] = (uint8_t)b;
        } else {
            out[i] = (uint8_t)((r * 19595 + g * 38470 + b * 7471 + 32768) >> 16);
        }
    }
}

/* How far libjpeg may shrink so that the image stays at least as large as the sample. */
static void choose_reduction(j_decompress_ptr cinfo, const sn_image_options *o, int orientation)
{
    bool turn = orientation >= 5;
    uint64_t want_h = (uint64_t)(turn ? o->width : o->height);
    uint64_t want_w = (uint64_t)(turn ? o->height : o->width);

    for (unsigned by = 8; by > 1; by /= 2)
        if (cinfo->image_width / by >= want_w && cinfo->image_height / by >= want_h) {
            cinfo->scale_num = 1;
            cinfo->scale_denom = by;
            return;
        }
}

static void set_up(j_decompress_ptr cinfo, const sn_decode *job, int orientation)
{
    bool cmyk = cinfo->jpeg_color_space == JCS_CMYK || cinfo->jpeg_color_space == JCS_YCCK;

    cinfo->dct_method = JDCT_IFAST;
    cinfo->do_fancy_upsampling = TRUE;
    cinfo->out_color_space = cmyk                          ? JCS_CMYK
                             : job->options->channels == 1 ? JCS_GRAYSCALE
                                                           : JCS_RGB;
    if (job->options->fast_decode)
        choose_reduction(cinfo, job->options, orientation);
}

static snug_status ends_early(jpeg_reader *r, snug_error *err)
{
    if (r->io_failed) {
        if (err)
            *err = r->io;
        return r->io.code;
    }
    return sn_fail(err, SNUG_E_INPUT, "truncated JPEG: ends at row %u of %u",
                   r->cinfo.output_scanline, r->cinfo.output_height);
}

/* Rows that the resizer has no use for are passed over without colour conversion. A jump never
 * leaves the present row of blocks: libjpeg then reads and discards, and keeps its state. */
static JDIMENSION skip_rows(jpeg_reader *r, const sn_resizer *resizer)
{
#ifdef LIBJPEG_TURBO_VERSION
    j_decompress_ptr cinfo = &r->cinfo;
    JDIMENSION block = (JDIMENSION)(cinfo->max_v_samp_factor * cinfo->min_DCT_scaled_size);
    JDIMENSION y = cinfo->output_scanline, in_block = y % block, n = 0;

    if (in_block == 0 || cinfo->output_height - y <= block)
        return 0;
    while (in_block + n < block - 1 && !sn_resizer_wants(resizer, (int64_t)y + n))
        n++;
    return n ? jpeg_skip_scanlines(cinfo, n) : 0;
#else
    SN_UNUSED(r);
    SN_UNUSED(resizer);
    return 0;
#endif
}

static snug_status read_rows(jpeg_reader *r, const sn_decode *job, sn_resizer *resizer,
                             uint8_t *row, uint8_t *converted, snug_error *err)
{
    j_decompress_ptr cinfo = &r->cinfo;

    while (cinfo->output_scanline < cinfo->output_height) {
        if (sn_decode_stopped(job))
            return sn_fail(err, SNUG_E_INTERRUPTED, "stopped while decoding");
        JDIMENSION before = cinfo->output_scanline;
        if (skip_rows(r, resizer)) {
            /* At the end of the file libjpeg says that it skipped, but stands where it stood. */
            if (cinfo->output_scanline == before)
                return ends_early(r, err);
            continue;
        }
        int64_t y = cinfo->output_scanline;
        if (jpeg_read_scanlines(cinfo, &row, 1) != 1)
            return ends_early(r, err);
        if (!sn_resizer_wants(resizer, y))
            continue;
        if (converted)
            convert_cmyk(converted, row, cinfo->output_width, cinfo->saw_Adobe_marker,
                         job->options->channels);
        sn_resizer_row(resizer, y, converted ? converted : row);
    }
    return SNUG_OK;
}

/* From a read header to the last row. */
static snug_status decode(jpeg_reader *r, const sn_decode *job, int orientation, snug_error *err)
{
    j_decompress_ptr cinfo = &r->cinfo;
    const sn_image_options *o = job->options;
    sn_resizer resizer;
    snug_status status;

    set_up(cinfo, job, orientation);
    jpeg_calc_output_dimensions(cinfo);
    sn_resize_spec spec = {.src_h = (int64_t)cinfo->output_height,
                           .src_w = (int64_t)cinfo->output_width,
                           .out_h = o->height,
                           .out_w = o->width,
                           .channels = o->channels,
                           .resize = o->resize,
                           .fit = o->fit,
                           .scale = o->scale,
                           .orientation = orientation,
                           .out = job->x};
    uint64_t row_bytes = (uint64_t)cinfo->output_width * 4 + 64 + ROW_OFFSET;
    uint64_t need = bytes_needed(cinfo) + sn_resizer_bytes(&spec) + 2 * row_bytes + 4 * 64;
    if ((status = sn_scratch_reserve(job->scratch, need, err)))
        return status;
    if ((status = sn_resizer_begin(&resizer, &spec, job->scratch, err)))
        return status;
    uint8_t *row = sn_scratch_alloc(job->scratch, row_bytes);
    uint8_t *converted =
        cinfo->out_color_space == JCS_CMYK ? sn_scratch_alloc(job->scratch, row_bytes) : NULL;
    if (!row || (!converted && cinfo->out_color_space == JCS_CMYK))
        return sn_fail(err, SNUG_E_UNSUPPORTED, "needs more scratch to decode than the bound");
    row += ROW_OFFSET;
    if (!jpeg_start_decompress(cinfo))
        return ends_early(r, err);
    status = read_rows(r, job, &resizer, row, converted, err);
    job->facts->n_warnings = (unsigned)cinfo->err->num_warnings;
    return status;
}

static snug_status read_header(jpeg_reader *r, const sn_decode *job, int *orientation,
                               snug_error *err)
{
    j_decompress_ptr cinfo = &r->cinfo;

    if (job->options->exif || job->options->find_orientation)
        jpeg_save_markers(cinfo, JPEG_APP0 + 1, MAX_EXIF);
    if (jpeg_read_header(cinfo, TRUE) != JPEG_HEADER_OK) {
        if (r->io_failed)
            return ends_early(r, err);
        return sn_fail(err, SNUG_E_INPUT,
                       "truncated JPEG: ends within its header (%" PRIu64 " bytes)",
                       r->bytes->size);
    }
    job->facts->height = cinfo->image_height;
    job->facts->width = cinfo->image_width;
    job->facts->channels = cinfo->num_components;
    job->facts->orientation = orientation_of(cinfo);
    if (job->options->exif)
        *orientation = job->facts->orientation;
    return sn_decode_check_size(cinfo->image_width, cinfo->image_height, err);
}

static snug_status set_source(jpeg_reader *r, const sn_decode *job, snug_error *err)
{
    r->bytes = job->reader;
    r->chunk = sn_scratch_alloc(job->scratch, CHUNK);
    if (!r->chunk)
        return sn_fail(err, SNUG_E_MEMORY, "no scratch to read a file into");
    r->source.init_source = source_init;
    r->source.fill_input_buffer = source_fill;
    r->source.skip_input_data = source_skip;
    r->source.resync_to_restart = jpeg_resync_to_restart;
    r->source.term_source = source_end;
    r->source.next_input_byte = r->chunk;
    return SNUG_OK;
}

snug_status sn_decode_jpeg(const sn_decode *job, snug_error *err)
{
    jpeg_reader *r = sn_scratch_alloc(job->scratch, sizeof *r);
    int orientation = 1;

    if (!r)
        return sn_fail(err, SNUG_E_MEMORY, "no scratch to decode in");
    memset(r, 0, sizeof *r);
    snug_status status = set_source(r, job, err);
    if (status)
        return status;
    r->cinfo.err = jpeg_std_error(&r->errors);
    r->errors.error_exit = on_error;
    r->errors.output_message = on_message;
    sn_jpeg_memory_messages(&r->errors);
    if (setjmp(r->out)) { /* 2 */
        jpeg_destroy_decompress(&r->cinfo);
        if (r->stopped)
            return sn_fail(err, SNUG_E_INTERRUPTED, "stopped while decoding");
        return sn_fail(err, SNUG_E_INPUT, "damaged JPEG: %s", r->text);
    }
    jpeg_create_decompress(&r->cinfo);
    sn_jpeg_memory_init(&r->memory, &r->cinfo, job->scratch);
    r->cinfo.src = &r->source;
    r->job = job;
    r->progress.progress_monitor = on_progress;
    r->cinfo.progress = &r->progress;
    status = read_header(r, job, &orientation, err);
    if (!status)
        status = decode(r, job, orientation, err);
    jpeg_destroy_decompress(&r->cinfo); /* 1 */
    return status;
}
