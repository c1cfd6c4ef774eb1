/* SPDX-License-Identifier: Apache-2.0
 *
 * resize.h - rows of 8-bit pixels in, a resized float sample out, streaming: the bilinear filter
 * keeps two rows, the antialiasing one as many as its window is high.
 *
 * Bilinear is tf.image.resize(antialias=False) in float32 without contraction: s = N / n,
 * x = (i + 0.5) s - 0.5, lo = max(floor x, 0), hi = min(ceil x, N - 1), f = x - floor x, in x then
 * in y: a + (b - a) f. Antialias is tf.image.resize(antialias=True): a triangle as wide as the
 * reduction, rows first, then columns.
 *
 *     sn_resizer r;  sn_resizer_begin(&r, &spec, scratch, err);
 *     for (y = 0; y < h; y++) if (sn_resizer_wants(&r, y)) sn_resizer_row(&r, y, row);
 *
 * Ownership: tables live in the scratch.  Threads: reentrant.
 */
#ifndef SN_DATA_RESIZE_H
#define SN_DATA_RESIZE_H

#include "data/scratch.h"
#include "snug/data.h"

typedef struct sn_resize_spec {
    int64_t src_h, src_w;
    int64_t out_h, out_w;
    int channels; /* 1..4 */
    snug_resize resize;
    snug_fit fit;
    snug_scale scale;
    int orientation; /* EXIF's 1..8; 0 counts as 1 */
    float *out;      /* [out_h, out_w, channels] */
} sn_resize_spec;

/* One output column or row of the bilinear filter. */
typedef struct sn_tap {
    int32_t lo, hi; /* source index (columns: times channels) */
    float f;
} sn_tap;

/* One output column or row of the antialiasing filter. */
typedef struct sn_span {
    int32_t start, n;
    const float *weights;
} sn_span;

typedef struct sn_resizer {
    sn_resize_spec spec;
    /* In the stored image's frame: the part of the source that is used, and the size it becomes. */
    int64_t crop_y, crop_x, crop_h, crop_w;
    int64_t dst_h, dst_w;
    int64_t pad_y, pad_x; /* in the output's frame */
    int64_t next;         /* the next row of the result */
    sn_tap *taps_x, *taps_y;
    sn_span *spans_x, *spans_y;
    float *lerped[2]; /* the last two source rows, resized in x */
    int64_t lerped_y[2];
    uint8_t *ring; /* antialias: the last ring_n source rows */
    int64_t ring_n, ring_stride;
    float *column; /* antialias: one row summed over y */
    float *line;   /* one result row before it is turned (orientation) */
} sn_resizer;

/* Upper bound of the scratch that begin takes. */
uint64_t sn_resizer_bytes(const sn_resize_spec *spec);
snug_status sn_resizer_begin(sn_resizer *out, const sn_resize_spec *spec, sn_scratch *scratch,
                             snug_error *err);
/* Whether row y (rows come in rising order) has any part in the result. */
bool sn_resizer_wants(const sn_resizer *resizer, int64_t y);
/* row [src_w, channels], readable 4 bytes beyond its end. */
void sn_resizer_row(sn_resizer *resizer, int64_t y, const uint8_t *row);

/* In place on [n, channels] pixels: 0..255 to the scale's range. AUTO and 0_255 change nothing. */
void sn_scale_apply(float *x, int64_t n_pixels, int channels, snug_scale scale);

#endif
