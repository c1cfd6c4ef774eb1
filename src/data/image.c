/* SPDX-License-Identifier: Apache-2.0
 *
 * Kinds of files, the byte reader, and the way from a file to a sample.
 */
#include "data/image.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- bytes -------------------------------------------------------------------------------------*/

snug_status sn_reader_fd(sn_reader *out, int fd, snug_error *err)
{
    struct stat st;

    if (fstat(fd, &st))
        return sn_fail_errno(err, SNUG_E_IO, errno, "cannot be read");
    if (!S_ISREG(st.st_mode))
        return sn_fail(err, SNUG_E_INPUT, "is no regular file");
    *out = (sn_reader){.fd = fd, .size = (uint64_t)st.st_size};
    return SNUG_OK;
}

void sn_reader_memory(sn_reader *out, const void *bytes, uint64_t n)
{
    *out = (sn_reader){.fd = -1, .bytes = bytes, .size = n};
}

snug_status sn_reader_read(const sn_reader *reader, void *out, size_t n, uint64_t offset,
                           size_t *got, snug_error *err)
{
    *got = 0;
    if (reader->fd < 0) {
        if (offset < reader->size)
            *got = (size_t)SN_MIN((uint64_t)n, reader->size - offset);
        if (*got)
            memcpy(out, reader->bytes + offset, *got);
        return SNUG_OK;
    }
    if (offset > (uint64_t)INT64_MAX)
        return SNUG_OK;
    while (*got < n) {
        ssize_t r = pread(reader->fd, (char *)out + *got, n - *got, (off_t)(offset + *got));
        if (r < 0 && errno == EINTR)
            continue;
        if (r < 0)
            return sn_fail_errno(err, SNUG_E_IO, errno, "cannot be read");
        if (r == 0)
            break;
        *got += (size_t)r;
    }
    return SNUG_OK;
}

/* --- kinds -------------------------------------------------------------------------------------*/

static bool begins(const uint8_t *head, size_t n, size_t at, const char *magic, size_t length)
{
    return n >= at + length && !memcmp(head + at, magic, length);
}
#define BEGINS(at, magic) begins(head, n, at, magic, sizeof(magic) - 1)

/* ISO base media files say by brand what they are. */
static sn_image_kind sniff_brand(const uint8_t *head, size_t n)
{
    static const char *const heic[] = {"heic", "heix", "hevc", "heim", "heis", "mif1", "msf1"};

    if (BEGINS(8, "avif") || BEGINS(8, "avis"))
        return SN_IMAGE_AVIF;
    for (size_t i = 0; i < SN_LEN(heic); i++)
        if (begins(head, n, 8, heic[i], 4))
            return SN_IMAGE_HEIC;
    return SN_IMAGE_UNKNOWN;
}

sn_image_kind sn_image_sniff(const uint8_t *head, size_t n)
{
    if (n == 0)
        return SN_IMAGE_EMPTY;
    if (BEGINS(0, "\xff\xd8\xff"))
        return SN_IMAGE_JPEG;
    if (BEGINS(0, "\x89PNG\r\n\x1a\n"))
        return SN_IMAGE_PNG;
    if (BEGINS(0, "BM"))
        return SN_IMAGE_BMP;
    if (BEGINS(0, "GIF8"))
        return SN_IMAGE_GIF;
    if (BEGINS(0, "RIFF") && BEGINS(8, "WEBP"))
        return SN_IMAGE_WEBP;
    if (BEGINS(0, "II*\0") || BEGINS(0, "MM\0*") || BEGINS(0, "II+\0") || BEGINS(0, "MM\0+"))
        return SN_IMAGE_TIFF;
    if (BEGINS(4, "ftyp"))
        return sniff_brand(head, n);
    if (BEGINS(0, "\xff\x0a") || BEGINS(0, "\0\0\0\x0cJXL "))
        return SN_IMAGE_JXL;
    if (BEGINS(0, "\0\0\0\x0cjP  ") || BEGINS(0, "\xff\x4f\xff\x51"))
        return SN_IMAGE_JP2;
    if (BEGINS(0, "8BPS"))
        return SN_IMAGE_PSD;
    if (n > 2 && head[0] == 'P' && head[1] >= '1' && head[1] <= '6' &&
        (head[2] == '\n' || head[2] == ' ' || head[2] == '\r'))
        return SN_IMAGE_PNM;
    if (BEGINS(0, "\0\0\1\0"))
        return SN_IMAGE_ICO;
    if (BEGINS(0, "<?xml") || BEGINS(0, "<svg"))
        return SN_IMAGE_SVG;
    if (BEGINS(0, "<!DOCTYPE") || BEGINS(0, "<!doctype") || BEGINS(0, "<html") ||
        BEGINS(0, "<HTML"))
        return SN_IMAGE_HTML;
    if (BEGINS(0, "%PDF"))
        return SN_IMAGE_PDF;
    if (BEGINS(0, "PK\3\4") || BEGINS(0, "\x1f\x8b") || BEGINS(0, "7z\xbc\xaf") ||
        BEGINS(0, "Rar!"))
        return SN_IMAGE_ARCHIVE;
    return SN_IMAGE_UNKNOWN;
}

static const struct {
    const char *words;
    bool decodable;
} kinds[] = {
#define ROW(name, decodable, words) {words, decodable},
    SN_IMAGE_KIND_LIST(ROW)
#undef ROW
};

const char *sn_image_kind_words(sn_image_kind kind)
{
    return (unsigned)kind < SN_N_IMAGE_KINDS ? kinds[kind].words : "?";
}

bool sn_image_kind_decodable(sn_image_kind kind)
{
    return (unsigned)kind < SN_N_IMAGE_KINDS && kinds[kind].decodable;
}

sn_image_kind sn_image_kind_of_name(const char *name)
{
    static const struct {
        const char *suffix;
        sn_image_kind kind;
    } suffixes[] = {
        {".jpg", SN_IMAGE_JPEG},  {".jpeg", SN_IMAGE_JPEG}, {".png", SN_IMAGE_PNG},
        {".bmp", SN_IMAGE_BMP},   {".jpe", SN_IMAGE_JPEG},  {".jfif", SN_IMAGE_JPEG},
        {".dib", SN_IMAGE_BMP},   {".gif", SN_IMAGE_GIF},   {".webp", SN_IMAGE_WEBP},
        {".tif", SN_IMAGE_TIFF},  {".tiff", SN_IMAGE_TIFF}, {".heic", SN_IMAGE_HEIC},
        {".heif", SN_IMAGE_HEIC}, {".avif", SN_IMAGE_AVIF}, {".jxl", SN_IMAGE_JXL},
        {".jp2", SN_IMAGE_JP2},   {".psd", SN_IMAGE_PSD},   {".ppm", SN_IMAGE_PNM},
        {".pgm", SN_IMAGE_PNM},   {".pbm", SN_IMAGE_PNM},   {".svg", SN_IMAGE_SVG},
        {".ico", SN_IMAGE_ICO},
    };
    for (size_t i = 0; i < SN_LEN(suffixes); i++)
        if (sn_str_ends_fold(name, suffixes[i].suffix))
            return suffixes[i].kind;
    return SN_IMAGE_UNKNOWN;
}

/* --- decoding ----------------------------------------------------------------------------------*/

snug_status sn_decode_check_size(uint64_t width, uint64_t height, snug_error *err)
{
    uint64_t pixels;

    if (width == 0 || height == 0)
        return sn_fail(err, SNUG_E_INPUT,
                       "its header says %" PRIu64 "x%" PRIu64 ": no pixels at all", width, height);
    if (sn_mul_u64(&pixels, width, height) || pixels > SN_IMAGE_MAX_PIXELS)
        return sn_fail(err, SNUG_E_INPUT,
                       "its header says %" PRIu64 "x%" PRIu64 ": more than %d million pixels is "
                       "taken for damage",
                       width, height, (int)(SN_IMAGE_MAX_PIXELS / 1000000));
    return SNUG_OK;
}

bool sn_decode_stopped(const sn_decode *job)
{
    return job->options->stop && __atomic_load_n(job->options->stop, __ATOMIC_RELAXED);
}

size_t sn_image_scratch_bytes(const sn_image_options *options)
{
    /* The read buffer, libjpeg's and libpng's own state, and rows of images up to some 8,000
     * pixels wide; wider ones are granted blocks of the pool. */
    size_t rows = options->resize == SNUG_RESIZE_ANTIALIAS ? (size_t)(2 * SN_MIB) : (size_t)SN_MIB;
    size_t longest = (size_t)SN_MAX(options->height, options->width);

    return rows + longest * (2 * sizeof(sn_tap) + 4 * (size_t)options->channels * sizeof(float));
}

snug_status sn_image_load(float *x, const sn_reader *reader, const sn_image_options *options,
                          sn_scratch *scratch, sn_image_facts *facts, snug_error *err)
{
    uint8_t head[SN_IMAGE_SNIFF_BYTES];
    size_t got;
    sn_image_facts own;
    sn_decode job = {reader, options, scratch, facts ? facts : &own, x};
    snug_status status = sn_reader_read(reader, head, sizeof head, 0, &got, err);

    if (status)
        return status;
    memset(job.facts, 0, sizeof *job.facts);
    job.facts->orientation = 1;
    job.facts->kind = sn_image_sniff(head, got);
    sn_scratch_reset(scratch);
    switch (job.facts->kind) {
    case SN_IMAGE_JPEG:
        status = sn_decode_jpeg(&job, err);
        break;
    case SN_IMAGE_PNG:
        status = sn_decode_png(&job, err);
        break;
    case SN_IMAGE_BMP:
        status = sn_decode_bmp(&job, err);
        break;
    case SN_IMAGE_EMPTY:
        status = sn_fail(err, SNUG_E_INPUT, "empty file (0 bytes)");
        break;
    case SN_IMAGE_UNKNOWN:
        status =
            sn_fail(err, SNUG_E_INPUT, "no image: begins with bytes %02x %02x %02x %02x", head[0],
                    got > 1 ? head[1] : 0U, got > 2 ? head[2] : 0U, got > 3 ? head[3] : 0U);
        break;
    default:
        status = sn_fail(err, SNUG_E_UNSUPPORTED,
                         "is %s: only JPEG, PNG and BMP are read, convert it to one of them",
                         sn_image_kind_words(job.facts->kind));
        break;
    }
    sn_scratch_reset(scratch);
    return status;
}
