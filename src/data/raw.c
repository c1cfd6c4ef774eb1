/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrays on disk by index.
 */
#include "data/raw.h"

#include <unistd.h>

#include "base/half.h"
#include "base/io.h"
#include "data/image.h"
#include "data/resize_rows.h"

enum { CHUNK = 64 * 1024 };

size_t sn_raw_type_bytes(sn_raw_type type)
{
    static const uint8_t bytes[] = {
#define ROW(name, n) n,
        SN_RAW_TYPE_LIST(ROW)
#undef ROW
    };
    return bytes[type];
}

#define CONVERT(type, value)                                                                       \
    for (size_t i = 0; i < n; i++) {                                                               \
        type v;                                                                                    \
        memcpy(&v, (const char *)in + i * sizeof v, sizeof v);                                     \
        out[i] = (value);                                                                          \
    }                                                                                              \
    break

void sn_raw_to_float(float *out, const void *in, sn_raw_type type, size_t n)
{
    switch (type) {
    case SN_RAW_U8:
        sn_rows_widen(out, in, (int64_t)n);
        break;
    case SN_RAW_I8:
        CONVERT(int8_t, (float)v);
    case SN_RAW_U16:
        CONVERT(uint16_t, (float)v);
    case SN_RAW_I16:
        CONVERT(int16_t, (float)v);
    case SN_RAW_U32:
        CONVERT(uint32_t, (float)v);
    case SN_RAW_I32:
        CONVERT(int32_t, (float)v);
    case SN_RAW_I64:
        CONVERT(int64_t, (float)v);
    case SN_RAW_F16:
        CONVERT(uint16_t, sn_f16_to_f32(v));
    case SN_RAW_F32:
        memcpy(out, in, n * sizeof(float));
        break;
    case SN_RAW_F64:
        CONVERT(double, (float)v);
    default:
        break;
    }
}

snug_status sn_raw_new(sn_raw **out, const char *path, snug_error *err)
{
    sn_raw *raw = sn_alloc(SN_TAG_DATA, sizeof *raw);

    *out = NULL;
    if (!raw)
        return sn_fail(err, SNUG_E_MEMORY, "no memory for a data set");
    for (int i = 0; i < 3; i++)
        raw->parts[i].fd = -1;
    raw->labels_fd = -1;
    sn_notes_init(&raw->notes);
    raw->path = sn_strdup(SN_TAG_DATA, path);
    if (!raw->path) {
        sn_raw_free(raw);
        return sn_fail(err, SNUG_E_MEMORY, "no memory for a data set");
    }
    *out = raw;
    return SNUG_OK;
}

bool sn_raw_number_classes(sn_raw *raw, size_t n)
{
    for (size_t i = raw->classes.n; i < n; i++) {
        char text[24];
        snprintf(text, sizeof text, "%zu", i);
        char *name = sn_strdup(SN_TAG_DATA, text);
        if (!name || !SN_VEC_PUSH(SN_TAG_DATA, &raw->classes, name)) {
            sn_free(name);
            return false;
        }
    }
    return true;
}

snug_status sn_raw_count_classes(sn_raw *raw, snug_error *err)
{
    int32_t labels[2048];
    uint64_t n = 0;

    raw->class_counts.n = 0;
    for (size_t i = 0; i < raw->classes.n; i++)
        if (!SN_VEC_PUSH(SN_TAG_DATA, &raw->class_counts, 0))
            return sn_fail(err, SNUG_E_MEMORY, "no memory for a data set");
    for (int part = 0; part < 3; part++)
        n += raw->parts[part].n;
    for (uint64_t at = 0; at < n;) {
        size_t some = (size_t)SN_MIN(n - at, (uint64_t)SN_LEN(labels));
        snug_status status = sn_io_pread(raw->labels_fd, labels, some * sizeof *labels,
                                         at * sizeof *labels, "the labels", err);
        if (status)
            return status;
        for (size_t i = 0; i < some; i++, at++) {
            if (labels[i] < 0 || (size_t)labels[i] >= raw->classes.n)
                return sn_fail(err, SNUG_E_INPUT,
                               "label %" PRId32 " of row %" PRIu64 " is none of %zu classes",
                               labels[i], at, raw->classes.n);
            if (at < raw->parts[0].n)
                raw->class_counts.at[labels[i]]++;
        }
    }
    return SNUG_OK;
}

/* --- loading -----------------------------------------------------------------------------------*/

static uint64_t sample_elements(const sn_raw *raw)
{
    return (uint64_t)raw->stored[0] * (uint64_t)raw->stored[1] * (uint64_t)raw->stored[2];
}

/* Where sample i lies. */
static void locate(const sn_raw *raw, uint64_t i, int *fd, uint64_t *offset)
{
    int part = 0;

    while (part < 2 && i >= raw->begin[part] + raw->parts[part].n)
        part++;
    *fd = raw->parts[part].fd;
    *offset = raw->parts[part].offset +
              (i - raw->begin[part]) * sample_elements(raw) * sn_raw_type_bytes(raw->type);
}

static bool same_shape(const sn_raw *raw)
{
    return !memcmp(raw->stored, raw->shape, sizeof raw->shape);
}

static snug_status load_whole(const sn_raw *raw, sn_scratch *scratch, int fd, uint64_t offset,
                              float *x, snug_error *err)
{
    size_t size = sn_raw_type_bytes(raw->type), n = (size_t)sample_elements(raw);

    if (raw->type == SN_RAW_F32)
        return sn_io_pread(fd, x, n * sizeof(float), offset, raw->path, err);
    uint8_t *chunk = sn_scratch_alloc(scratch, CHUNK);
    if (!chunk)
        return sn_fail(err, SNUG_E_MEMORY, "no scratch to read into");
    while (n) {
        size_t some = SN_MIN(n, CHUNK / size);
        snug_status status = sn_io_pread(fd, chunk, some * size, offset, raw->path, err);
        if (status)
            return status;
        sn_raw_to_float(x, chunk, raw->type, some);
        x += some;
        offset += some * size;
        n -= some;
    }
    return SNUG_OK;
}

/* A row of c_in channels to c_out: gray repeated, or colour to luma. */
static void convert_channels(uint8_t *row, const uint8_t *in, int64_t w, int64_t c_in,
                             int64_t c_out)
{
    for (int64_t i = 0; i < w; i++, in += c_in) {
        if (c_in == 1 && c_out == 3)
            row[3 * i] = row[3 * i + 1] = row[3 * i + 2] = in[0];
        else if (c_in == 3 && c_out == 1)
            row[i] = (uint8_t)((in[0] * 19595 + in[1] * 38470 + in[2] * 7471 + 32768) >> 16);
        else
            memcpy(row + i * c_out, in, (size_t)c_out);
    }
}

static sn_resize_spec spec_of(const sn_raw *raw, snug_scale scale, float *x)
{
    return (sn_resize_spec){.src_h = raw->stored[0],
                            .src_w = raw->stored[1],
                            .out_h = raw->shape[0],
                            .out_w = raw->shape[1],
                            .channels = (int)raw->shape[2],
                            .resize = raw->resize,
                            .fit = raw->fit,
                            .scale = scale,
                            .out = x};
}

static snug_status load_resized(const sn_raw *raw, sn_scratch *scratch, int fd, uint64_t offset,
                                snug_scale scale, float *x, snug_error *err)
{
    int64_t w = raw->stored[1], c_in = raw->stored[2], c_out = raw->shape[2];
    sn_resize_spec spec = spec_of(raw, scale, x);
    sn_resizer resizer;
    snug_status status = sn_resizer_begin(&resizer, &spec, scratch, err);

    if (status)
        return status;
    uint8_t *stored = sn_scratch_alloc(scratch, (uint64_t)(w * c_in));
    uint8_t *row = sn_scratch_alloc(scratch, (uint64_t)(w * c_out) + 64);
    if (!stored || !row)
        return sn_fail(err, SNUG_E_MEMORY, "no scratch to read into");
    for (int64_t y = 0; y < raw->stored[0]; y++) {
        if (!sn_resizer_wants(&resizer, y))
            continue;
        status = sn_io_pread(fd, stored, (size_t)(w * c_in), offset + (uint64_t)(y * w * c_in),
                             raw->path, err);
        if (status)
            return status;
        convert_channels(row, stored, w, c_in, c_out);
        sn_resizer_row(&resizer, y, row);
    }
    return SNUG_OK;
}

static snug_status raw_load(void *self, sn_scratch *scratch, uint64_t i, snug_scale scale, float *x,
                            const bool *stop, snug_error *err)
{
    const sn_raw *raw = self;
    int fd;
    uint64_t offset;
    snug_status status;

    SN_UNUSED(stop);
    sn_scratch_reset(scratch);
    locate(raw, i, &fd, &offset);
    if (!same_shape(raw))
        return load_resized(raw, scratch, fd, offset, scale, x, err);
    status = load_whole(raw, scratch, fd, offset, x, err);
    if (!status && raw->type == SN_RAW_U8)
        sn_scale_apply(x, raw->rank == 3 ? raw->shape[0] * raw->shape[1] : raw->shape[0],
                       (int)raw->shape[2], scale);
    return status;
}

static snug_status raw_label(void *self, uint64_t i, int32_t *class_index, float *y,
                             snug_error *err)
{
    const sn_raw *raw = self;

    *class_index = -1;
    if (raw->labels == SN_RAW_CLASSES)
        return sn_io_pread(raw->labels_fd, class_index, sizeof *class_index,
                           i * sizeof *class_index, "the labels", err);
    if (raw->labels == SN_RAW_TARGETS && y) {
        uint64_t bytes = (uint64_t)raw->n_targets * sizeof(float);
        return sn_io_pread(raw->labels_fd, y, (size_t)bytes, i * bytes, "the labels", err);
    }
    return SNUG_OK;
}

static snug_status raw_name(void *self, uint64_t i, char *out, size_t n, snug_error *err)
{
    static const char *const parts[] = {"row", "validation row", "test row"};
    const sn_raw *raw = self;
    int part = 0;

    SN_UNUSED(err);
    while (part < 2 && i >= raw->begin[part] + raw->parts[part].n)
        part++;
    snprintf(out, n, "%s %" PRIu64, parts[part], i - raw->begin[part]);
    return SNUG_OK;
}

static void raw_free(void *self)
{
    sn_raw_free(self);
}

static const sn_set_ops raw_ops = {raw_load, raw_label, raw_name, NULL, raw_free};

/* --- sealing -----------------------------------------------------------------------------------*/

/* shape[] from what is stored and what is asked. */
static snug_status resolve_shape(sn_raw *raw, const snug_data_options *o, snug_error *err)
{
    memcpy(raw->shape, raw->stored, sizeof raw->shape);
    if (raw->rank != 3)
        return SNUG_OK;
    if (o->height)
        raw->shape[0] = o->height;
    if (o->width)
        raw->shape[1] = o->width;
    if (o->channels)
        raw->shape[2] = o->channels;
    if (same_shape(raw))
        return SNUG_OK;
    if (raw->type != SN_RAW_U8)
        return sn_fail(err, SNUG_E_UNSUPPORTED,
                       "samples of %" PRId64 "x%" PRId64 "x%" PRId64
                       " numbers are fed as they are, %" PRId64 "x%" PRId64 "x%" PRId64
                       " was asked: only 8-bit pixels are resized",
                       raw->stored[0], raw->stored[1], raw->stored[2], raw->shape[0], raw->shape[1],
                       raw->shape[2]);
    int64_t c = raw->stored[2], d = raw->shape[2];
    if ((c != d && !(c == 1 && d == 3) && !(c == 3 && d == 1)) || d > 4)
        return sn_fail(err, SNUG_E_UNSUPPORTED,
                       "images of %" PRId64 " channels cannot become %" PRId64, c, d);
    return SNUG_OK;
}

snug_status sn_raw_seal(sn_raw *raw, const snug_data_options *options, sn_set *set, snug_error *err)
{
    snug_status status = resolve_shape(raw, options, err);

    if (status)
        return status;
    raw->resize = options->resize;
    raw->fit = options->fit;
    memset(set, 0, sizeof *set);
    set->scratch_bytes = CHUNK + SN_KIB;
    if (!same_shape(raw)) {
        sn_resize_spec spec = spec_of(raw, SNUG_SCALE_0_255, NULL);
        set->scratch_bytes = (size_t)(sn_resizer_bytes(&spec) + 2 * (uint64_t)raw->stored[1] * 4 +
                                      4 * SN_SCRATCH_ALIGN);
    }
    if (raw->type != SN_RAW_U8 && options->scale != SNUG_SCALE_AUTO &&
        options->scale != SNUG_SCALE_0_255 &&
        !sn_notes_add(&raw->notes,
                      "numbers that are no 8-bit pixels are fed as they are: the scale "
                      "%s does not apply",
                      snug_scale_name(options->scale)))
        return sn_fail(err, SNUG_E_MEMORY, "no memory for a data set");
    for (int part = 0; part < 3; part++) {
        raw->begin[part] = part ? raw->begin[part - 1] + raw->parts[part - 1].n : 0;
        set->begin[part] = raw->begin[part];
        set->n[part] = raw->parts[part].n;
    }
    set->ops = &raw_ops;
    set->self = raw;
    set->rank = raw->rank;
    memcpy(set->shape, raw->shape, sizeof set->shape);
    set->classes = raw->classes.at;
    set->n_classes = raw->classes.n;
    set->class_counts = raw->class_counts.at;
    set->n_targets = raw->labels == SN_RAW_TARGETS ? raw->n_targets : 0;
    set->notes = raw->notes.lines.at;
    set->n_notes = raw->notes.lines.n;
    set->top = raw->type == SN_RAW_U8 ? 255.0f : 0.0f;
    set->held_bytes = sizeof *raw + raw->classes.n * 64;
    return SNUG_OK;
}

void sn_raw_free(sn_raw *raw)
{
    if (!raw)
        return;
    for (int i = 0; i < 3; i++) {
        bool shared = false;
        for (int j = 0; j < i; j++)
            shared = shared || raw->parts[j].fd == raw->parts[i].fd;
        if (raw->parts[i].fd >= 0 && !shared)
            close(raw->parts[i].fd);
    }
    if (raw->labels_fd >= 0)
        close(raw->labels_fd);
    for (size_t i = 0; i < raw->classes.n; i++)
        sn_free(raw->classes.at[i]);
    SN_VEC_FREE(&raw->classes);
    SN_VEC_FREE(&raw->class_counts);
    sn_notes_deinit(&raw->notes);
    sn_free(raw->path);
    sn_free(raw);
}
