/* SPDX-License-Identifier: Apache-2.0
 *
 * The streaming resizer.
 *
 * Invariants:
 *  1. Taps and spans rise: the rows that result row j needs are not below those of j - 1, so that
 *     rows before the first one of the next result row are never needed again.
 *  2. A result row is emitted at the moment its last source row comes.
 *  3. hi <= lo + 1 for every tap, so two resized rows are enough.
 */
#include "data/resize.h"

#include <assert.h>
#include <math.h>

#include "data/resize_rows.h"

/* --- geometry ----------------------------------------------------------------------------------*/

static bool transposes(int orientation)
{
    return orientation >= 5 && orientation <= 8;
}

/* The displayed image's frame: sizes after the orientation is undone. */
typedef struct frame {
    int64_t h, w;                           /* displayed size */
    int64_t crop_y, crop_x, crop_h, crop_w; /* used part */
    int64_t dst_h, dst_w, pad_y, pad_x;
} frame;

/* keras.utils.image_dataset_from_directory(crop_to_aspect_ratio=True), in float32 as its graph. */
static void frame_crop(frame *f, int64_t out_h, int64_t out_w)
{
    int64_t crop_h = (int64_t)((float)(f->w * out_h) / (float)out_w);
    int64_t crop_w = (int64_t)((float)(f->h * out_w) / (float)out_h);

    f->crop_h = SN_MAX(SN_MIN(f->h, crop_h), 1);
    f->crop_w = SN_MAX(SN_MIN(f->w, crop_w), 1);
    f->crop_y = (int64_t)((float)(f->h - f->crop_h) / 2);
    f->crop_x = (int64_t)((float)(f->w - f->crop_w) / 2);
}

/* tf.image.resize_with_pad, in float32. */
static void frame_pad(frame *f, int64_t out_h, int64_t out_w)
{
    float h = (float)f->h, w = (float)f->w, th = (float)out_h, tw = (float)out_w;
    float ratio = fmaxf(w / tw, h / th);
    float resized_h = h / ratio, resized_w = w / ratio;

    f->dst_h = SN_MIN(SN_MAX((int64_t)floorf(resized_h), 1), out_h);
    f->dst_w = SN_MIN(SN_MAX((int64_t)floorf(resized_w), 1), out_w);
    f->pad_y = SN_MIN(SN_MAX((int64_t)floorf((th - resized_h) / 2), 0), out_h - f->dst_h);
    f->pad_x = SN_MIN(SN_MAX((int64_t)floorf((tw - resized_w) / 2), 0), out_w - f->dst_w);
}

static void plan_geometry(sn_resizer *r)
{
    const sn_resize_spec *s = &r->spec;
    bool turn = transposes(s->orientation);
    frame f = {.h = turn ? s->src_w : s->src_h, .w = turn ? s->src_h : s->src_w};

    f.crop_h = f.h;
    f.crop_w = f.w;
    f.dst_h = s->out_h;
    f.dst_w = s->out_w;
    if (s->fit == SNUG_FIT_CROP)
        frame_crop(&f, s->out_h, s->out_w);
    else if (s->fit == SNUG_FIT_PAD)
        frame_pad(&f, s->out_h, s->out_w);
    r->pad_y = f.pad_y;
    r->pad_x = f.pad_x;
    /* Back to the stored frame: axes swap, and a mirrored axis counts from its other end. */
    int o = s->orientation;
    bool flip_x = o == 2 || o == 3 || o == 7 || o == 8; /* displayed x runs against the stored */
    bool flip_y = o == 3 || o == 4 || o == 6 || o == 7;
    if (turn) { /* stored x is displayed y */
        bool against_y = o == 7 || o == 8, against_x = o == 6 || o == 7;
        r->crop_x = against_y ? f.h - f.crop_h - f.crop_y : f.crop_y;
        r->crop_y = against_x ? f.w - f.crop_w - f.crop_x : f.crop_x;
        r->crop_w = f.crop_h;
        r->crop_h = f.crop_w;
        r->dst_w = f.dst_h;
        r->dst_h = f.dst_w;
    } else {
        r->crop_x = flip_x ? f.w - f.crop_w - f.crop_x : f.crop_x;
        r->crop_y = flip_y ? f.h - f.crop_h - f.crop_y : f.crop_y;
        r->crop_w = f.crop_w;
        r->crop_h = f.crop_h;
        r->dst_w = f.dst_w;
        r->dst_h = f.dst_h;
    }
}

/* --- tables ------------------------------------------------------------------------------------*/

/* n taps over `size` source elements beginning at `start`, indices times `step`. */
static void make_taps(sn_tap *taps, int64_t n, int64_t size, int64_t start, int step)
{
    float scale = (float)size / (float)n;

    for (int64_t i = 0; i < n; i++) {
        float x = ((float)i + 0.5f) * scale - 0.5f;
        float floor_x = floorf(x);
        int64_t lo = SN_MAX((int64_t)floor_x, 0);
        int64_t hi = SN_MIN((int64_t)ceilf(x), size - 1);
        lo = SN_MIN(lo, size - 1);
        hi = SN_MAX(hi, 0);
        taps[i].lo = (int32_t)((start + lo) * step);
        taps[i].hi = (int32_t)((start + hi) * step);
        taps[i].f = x - floor_x;
    }
}

/* How many source elements a span can hold: TensorFlow's bound. */
static int64_t span_bound(int64_t n, int64_t size)
{
    float inv_scale = 1.0f / ((float)n / (float)size);
    float kernel_scale = fmaxf(inv_scale, 1.0f);

    return SN_MIN(2 * (int64_t)ceilf(kernel_scale) + 1, size);
}

/* ScaleAndTranslate's spans with the triangle kernel (radius 1), antialias on, in its float32. */
static void make_spans(sn_span *spans, float *weights, int64_t n, int64_t size)
{
    float scale = (float)n / (float)size;
    float inv_scale = 1.0f / scale;
    float kernel_scale = fmaxf(inv_scale, 1.0f);
    float one_over_kernel_scale = 1.0f / kernel_scale;
    int64_t bound = span_bound(n, size);

    for (int64_t i = 0; i < n; i++) {
        float *w = weights + i * bound;
        float sample = ((float)i + 0.5f) * inv_scale;
        int64_t start = (int64_t)ceilf(sample - kernel_scale - 0.5f);
        int64_t end = (int64_t)floorf(sample + kernel_scale - 0.5f);
        float sum = 0;

        start = SN_MIN(SN_MAX(start, 0), size - 1);
        end = SN_MIN(SN_MAX(end, 0), size - 1) + 1;
        end = SN_MIN(end, start + bound);
        for (int64_t k = start; k < end; k++) {
            float d = fabsf(((float)k + 0.5f - sample) * one_over_kernel_scale);
            w[k - start] = d < 1.0f ? 1.0f - d : 0.0f;
            sum += w[k - start];
        }
        float one_over_sum = sum > 0 ? 1.0f / sum : 0.0f;
        for (int64_t k = start; k < end; k++)
            w[k - start] *= one_over_sum;
        spans[i] = (sn_span){(int32_t)start, (int32_t)(end - start), w};
    }
}

uint64_t sn_resizer_bytes(const sn_resize_spec *spec)
{
    sn_resizer r = {.spec = *spec};
    uint64_t c = (uint64_t)spec->channels;

    plan_geometry(&r);
    uint64_t w = (uint64_t)r.dst_w, h = (uint64_t)r.dst_h;
    uint64_t line = (w + 2) * c * sizeof(float), slack = 8 * SN_SCRATCH_ALIGN;
    if (spec->resize == SNUG_RESIZE_BILINEAR)
        return slack + (w + h) * sizeof(sn_tap) + 3 * line;
    uint64_t nx = (uint64_t)span_bound(r.dst_w, r.crop_w);
    uint64_t ny = (uint64_t)span_bound(r.dst_h, r.crop_h);
    uint64_t stride = (uint64_t)r.crop_w * c;
    return slack + line + (w + h) * sizeof(sn_span) + (w * nx + h * ny) * sizeof(float) +
           stride * (ny + sizeof(float));
}

static snug_status begin_bilinear(sn_resizer *r, sn_scratch *scratch)
{
    int c = r->spec.channels;
    uint64_t line = (uint64_t)(r->dst_w + 2) * (uint64_t)c * sizeof(float);

    r->taps_x = sn_scratch_alloc(scratch, (uint64_t)r->dst_w * sizeof *r->taps_x);
    r->taps_y = sn_scratch_alloc(scratch, (uint64_t)r->dst_h * sizeof *r->taps_y);
    for (int i = 0; i < 2; i++) {
        r->lerped[i] = sn_scratch_alloc(scratch, line);
        r->lerped_y[i] = -1;
    }
    if (!r->taps_x || !r->taps_y || !r->lerped[0] || !r->lerped[1])
        return SNUG_E_MEMORY;
    make_taps(r->taps_x, r->dst_w, r->crop_w, r->crop_x, c);
    make_taps(r->taps_y, r->dst_h, r->crop_h, r->crop_y, 1);
    return SNUG_OK;
}

static snug_status begin_antialias(sn_resizer *r, sn_scratch *scratch)
{
    int64_t nx = span_bound(r->dst_w, r->crop_w), ny = span_bound(r->dst_h, r->crop_h);
    uint64_t stride = (uint64_t)r->crop_w * (uint64_t)r->spec.channels;

    r->spans_x = sn_scratch_alloc(scratch, (uint64_t)r->dst_w * sizeof *r->spans_x);
    r->spans_y = sn_scratch_alloc(scratch, (uint64_t)r->dst_h * sizeof *r->spans_y);
    float *wx = sn_scratch_alloc(scratch, (uint64_t)(r->dst_w * nx) * sizeof(float));
    float *wy = sn_scratch_alloc(scratch, (uint64_t)(r->dst_h * ny) * sizeof(float));
    r->ring_n = ny;
    r->ring_stride = (int64_t)stride;
    r->ring = sn_scratch_alloc(scratch, stride * (uint64_t)ny);
    r->column = sn_scratch_alloc(scratch, stride * sizeof(float));
    if (!r->spans_x || !r->spans_y || !wx || !wy || !r->ring || !r->column)
        return SNUG_E_MEMORY;
    make_spans(r->spans_x, wx, r->dst_w, r->crop_w);
    make_spans(r->spans_y, wy, r->dst_h, r->crop_h);
    return SNUG_OK;
}

snug_status sn_resizer_begin(sn_resizer *out, const sn_resize_spec *spec, sn_scratch *scratch,
                             snug_error *err)
{
    memset(out, 0, sizeof *out);
    out->spec = *spec;
    plan_geometry(out);
    out->line =
        sn_scratch_alloc(scratch, (uint64_t)(out->dst_w + 2) * (uint64_t)spec->channels * 4);
    snug_status status = !out->line                              ? SNUG_E_MEMORY
                         : spec->resize == SNUG_RESIZE_ANTIALIAS ? begin_antialias(out, scratch)
                                                                 : begin_bilinear(out, scratch);
    if (status)
        return sn_fail(err, SNUG_E_UNSUPPORTED,
                       "resizing %" PRId64 "x%" PRId64 " needs more scratch than the bound",
                       spec->src_w, spec->src_h);
    if (spec->fit == SNUG_FIT_PAD) {
        int64_t n = spec->out_h * spec->out_w * spec->channels;
        memset(spec->out, 0, (size_t)n * sizeof(float));
        sn_scale_apply(spec->out, spec->out_h * spec->out_w, spec->channels, spec->scale);
    }
    return SNUG_OK;
}

/* --- rows --------------------------------------------------------------------------------------*/

/* Puts result row j (r->line, or already in place) where the orientation wants it. */
static void place_line(sn_resizer *r, int64_t j, const float *line)
{
    const sn_resize_spec *s = &r->spec;
    int c = s->channels, o = s->orientation;
    int64_t last_i = r->dst_w - 1, last_j = r->dst_h - 1;

    for (int64_t i = 0; i <= last_i; i++) {
        int64_t y, x;
        switch (o) {
        case 2:
            y = j, x = last_i - i;
            break;
        case 3:
            y = last_j - j, x = last_i - i;
            break;
        case 4:
            y = last_j - j, x = i;
            break;
        case 5:
            y = i, x = j;
            break;
        case 6:
            y = i, x = last_j - j;
            break;
        case 7:
            y = last_i - i, x = last_j - j;
            break;
        case 8:
            y = last_i - i, x = j;
            break;
        default:
            y = j, x = i;
            break;
        }
        float *to = s->out + ((r->pad_y + y) * s->out_w + r->pad_x + x) * c;
        for (int k = 0; k < c; k++)
            to[k] = line[i * c + k];
    }
}

/* Where row j may be written at once: in place unless it has to be turned. */
static float *line_for(sn_resizer *r, int64_t j)
{
    const sn_resize_spec *s = &r->spec;

    if (s->orientation > 1)
        return r->line;
    return s->out + ((r->pad_y + j) * s->out_w + r->pad_x) * s->channels;
}

/* scaled: the line has its scale already. */
static void finish_line(sn_resizer *r, int64_t j, float *line, bool scaled)
{
    if (!scaled)
        sn_scale_apply(line, r->dst_w, r->spec.channels, r->spec.scale);
    if (line == r->line)
        place_line(r, j, line);
}

static void row_bilinear(sn_resizer *r, int64_t y, const uint8_t *row)
{
    int64_t n = r->dst_w * r->spec.channels;
    snug_scale scale = r->spec.scale;
    float by = scale == SNUG_SCALE_0_1 ? 255.0f : scale == SNUG_SCALE_MINUS1_1 ? 127.5f : 0.0f;
    float less = scale == SNUG_SCALE_MINUS1_1 ? 1.0f : 0.0f;
    /* The older of the two buffers goes. */
    int slot = r->lerped_y[0] <= r->lerped_y[1] ? 0 : 1;

    sn_rows_lerp_x(r->lerped[slot], row, r->taps_x, r->dst_w, r->spec.channels);
    r->lerped_y[slot] = y;
    for (; r->next < r->dst_h && r->taps_y[r->next].hi <= y; r->next++) {
        sn_tap tap = r->taps_y[r->next];
        const float *hi = r->lerped[slot];
        const float *lo = tap.lo == y ? hi : r->lerped[1 - slot];
        assert(tap.lo == y || r->lerped_y[1 - slot] == tap.lo); /* 2, 3 */
        float *line = line_for(r, r->next);
        sn_rows_lerp_y(line, lo, hi, tap.f, by, less, n);
        finish_line(r, r->next, line, by > 0);
    }
}

static void row_antialias(sn_resizer *r, int64_t y, const uint8_t *row)
{
    int c = r->spec.channels;
    int64_t stride = r->ring_stride, at = y - r->crop_y;

    memcpy(r->ring + at % r->ring_n * stride, row + r->crop_x * c, (size_t)stride);
    for (; r->next < r->dst_h; r->next++) {
        const sn_span *span = &r->spans_y[r->next];
        if (span->start + span->n - 1 > at)
            return;
        memset(r->column, 0, (size_t)stride * sizeof(float));
        for (int32_t k = 0; k < span->n; k++)
            sn_rows_add_scaled(r->column, r->ring + (span->start + k) % r->ring_n * stride,
                               span->weights[k], stride);
        float *line = line_for(r, r->next);
        sn_rows_spans_x(line, r->column, r->spans_x, r->dst_w, c);
        finish_line(r, r->next, line, false);
    }
}

bool sn_resizer_wants(const sn_resizer *r, int64_t y)
{
    if (r->next >= r->dst_h)
        return false;
    if (r->spec.resize == SNUG_RESIZE_ANTIALIAS)
        return y >= r->crop_y + r->spans_y[r->next].start;
    return y >= r->taps_y[r->next].lo;
}

void sn_resizer_row(sn_resizer *r, int64_t y, const uint8_t *row)
{
    if (r->spec.resize == SNUG_RESIZE_ANTIALIAS)
        row_antialias(r, y, row);
    else
        row_bilinear(r, y, row);
}
