/* SPDX-License-Identifier: Apache-2.0
 *
 * image.h - one image file to one sample: what kind it is (by content), decoding row by row, and
 * feeding the rows to the resizer, so that a photo of 12 million pixels needs a few rows of memory
 * and not 36 MB. Pixels are TensorFlow's, bit for bit: libjpeg's fast DCT with fancy upsampling,
 * CMYK as tf.io.decode_jpeg turns it to RGB, 16-bit PNG cut to 8, alpha dropped, palettes and gray
 * expanded.
 *
 *     sn_reader r;  sn_reader_fd(&r, fd, err);
 *     sn_image_load(x, &r, &options, scratch, err);     // x [height, width, channels], scaled
 *
 * Ownership: nothing is kept.  Threads: reentrant, one scratch a thread.
 */
#ifndef SN_DATA_IMAGE_H
#define SN_DATA_IMAGE_H

#include "data/resize.h"
#include "data/scratch.h"
#include "snug/data.h"

/* Bytes by offset, of a file or of memory. */
typedef struct sn_reader {
    int fd; /* -1: memory */
    const uint8_t *bytes;
    uint64_t size;
} sn_reader;

snug_status sn_reader_fd(sn_reader *out, int fd, snug_error *err);
void sn_reader_memory(sn_reader *out, const void *bytes, uint64_t n);
/* Up to n bytes at offset: *got < n only at the end. */
snug_status sn_reader_read(const sn_reader *reader, void *out, size_t n, uint64_t offset,
                           size_t *got, snug_error *err);

/* X(name, decodable, plain words). */
#define SN_IMAGE_KIND_LIST(X)                                                                      \
    X(UNKNOWN, 0, "no image that is known here")                                                   \
    X(EMPTY, 0, "an empty file")                                                                   \
    X(JPEG, 1, "a JPEG")                                                                           \
    X(PNG, 1, "a PNG")                                                                             \
    X(BMP, 1, "a BMP")                                                                             \
    X(GIF, 0, "a GIF")                                                                             \
    X(WEBP, 0, "a WebP image")                                                                     \
    X(TIFF, 0, "a TIFF")                                                                           \
    X(HEIC, 0, "a HEIC image")                                                                     \
    X(AVIF, 0, "an AVIF image")                                                                    \
    X(JXL, 0, "a JPEG XL image")                                                                   \
    X(JP2, 0, "a JPEG 2000 image")                                                                 \
    X(PSD, 0, "a Photoshop file")                                                                  \
    X(PNM, 0, "a PNM image")                                                                       \
    X(ICO, 0, "an icon file")                                                                      \
    X(SVG, 0, "an SVG or other XML file")                                                          \
    X(HTML, 0, "a web page")                                                                       \
    X(PDF, 0, "a PDF")                                                                             \
    X(ARCHIVE, 0, "an archive")

typedef enum sn_image_kind {
#define SN_IMAGE_KIND_ENUM(name, decodable, words) SN_IMAGE_##name,
    SN_IMAGE_KIND_LIST(SN_IMAGE_KIND_ENUM)
#undef SN_IMAGE_KIND_ENUM
        SN_N_IMAGE_KINDS
} sn_image_kind;

enum { SN_IMAGE_SNIFF_BYTES = 32 };
/* From the first n (up to SN_IMAGE_SNIFF_BYTES) bytes. */
sn_image_kind sn_image_sniff(const uint8_t *head, size_t n);
const char *sn_image_kind_words(sn_image_kind kind);
bool sn_image_kind_decodable(sn_image_kind kind);
/* The kind that a file's name claims: UNKNOWN for a suffix that says nothing. */
sn_image_kind sn_image_kind_of_name(const char *name);

/* More pixels than this are refused before anything is allocated. */
#define SN_IMAGE_MAX_PIXELS ((uint64_t)1 << 28)

typedef struct sn_image_options {
    int64_t height, width;
    int channels; /* 1 or 3 */
    snug_scale scale;
    snug_resize resize;
    snug_fit fit;
    bool exif, fast_decode;
    bool find_orientation; /* tell it in the facts, also without exif */
    const bool *stop;      /* NULL, or set (atomically) by another thread: decoding ends early */
} sn_image_options;

/* What a scan wants to know. */
typedef struct sn_image_facts {
    sn_image_kind kind;
    int64_t height, width;
    int channels; /* of the file */
    int orientation;
    unsigned n_warnings;
} sn_image_facts;

/* Decodes, resizes and scales into x [height, width, channels]. facts may be NULL. Bad input:
 * SNUG_E_INPUT or SNUG_E_UNSUPPORTED with the reason ("truncated JPEG: ends at row 112 of 375"). */
snug_status sn_image_load(float *x, const sn_reader *reader, const sn_image_options *options,
                          sn_scratch *scratch, sn_image_facts *facts, snug_error *err);

/* Scratch that one thread needs for images that stream. */
size_t sn_image_scratch_bytes(const sn_image_options *options);

/* The decoders. Each reads its header, begins the resizer with the image's size and gives it rows
 * of 8-bit samples with options->channels a pixel. */
typedef struct sn_decode {
    const sn_reader *reader;
    const sn_image_options *options;
    sn_scratch *scratch;
    sn_image_facts *facts;
    float *x;
} sn_decode;
snug_status sn_decode_jpeg(const sn_decode *job, snug_error *err);
snug_status sn_decode_png(const sn_decode *job, snug_error *err);
snug_status sn_decode_bmp(const sn_decode *job, snug_error *err);
/* The common check of a header's size. */
snug_status sn_decode_check_size(uint64_t width, uint64_t height, snug_error *err);
/* True when another thread asked to stop. */
bool sn_decode_stopped(const sn_decode *job);

#endif
