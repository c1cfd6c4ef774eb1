/* SPDX-License-Identifier: Apache-2.0
 *
 * Decoded samples and arrays as .npy files.
 */
#include <math.h>
#include <unistd.h>

#include "base/io.h"
#include "data/data.h"
#include "format/npy.h"

typedef struct export
{
    snug_data *data;
    snug_export_options options;
    sn_io_atomic file;
    uint64_t n, sample; /* samples written, floats each */
}
export;

/* Rounds in place: the bytes never reach beyond the floats that they come from. */
static void to_bytes(float *x, size_t n)
{
    uint8_t *out = (uint8_t *)(void *)x;

    for (size_t i = 0; i < n; i++) {
        float v = x[i];
        out[i] = v > 0 ? (uint8_t)fminf(floorf(v + 0.5f), 255.0f) : 0;
    }
}

static snug_status write_batch(export *e, const snug_slot *slot, snug_error *err)
{
    size_t n = (size_t)slot->n * (size_t)e->sample, size = e->options.as_uint8 ? 1 : sizeof(float);

    if (!e->options.path)
        return SNUG_OK;
    if (e->options.as_uint8)
        to_bytes(slot->x, n);
    return sn_io_pwrite(e->file.fd, slot->x, n * size, SN_NPY_HEADER + e->n * e->sample * size,
                        e->options.path, err);
}

static snug_status write_header(export *e, snug_error *err)
{
    char head[SN_NPY_HEADER];
    int rank;
    const int64_t *shape = snug_data_sample_shape(e->data, &rank);
    int64_t whole[4] = {(int64_t)e->n, shape[0], shape[1], shape[2]};

    sn_npy_header(head, e->options.as_uint8 ? "|u1" : "<f4", rank + 1, whole);
    return sn_io_pwrite(e->file.fd, head, sizeof head, 0, e->options.path, err);
}

static snug_status run(export *e, const snug_source *source, snug_error *err)
{
    uint64_t total = snug_data_n(e->data, SNUG_SUBSET_ALL);
    snug_status status = source->reset(source->context, 0, 0, err);

    while (!status) {
        snug_slot slot = {0};
        status = source->next(source->context, &slot, err);
        if (status || slot.n == 0)
            break;
        status = write_batch(e, &slot, err);
        e->n += (uint64_t)slot.n;
        if (!status && e->options.progress &&
            e->options.progress(e->options.context, slot.next_position, total))
            status = sn_fail(err, SNUG_E_INTERRUPTED, "stopped after %" PRIu64 " samples", e->n);
    }
    return status;
}

snug_status snug_data_export(snug_data *data, const snug_export_options *options, uint64_t *n,
                             snug_error *err)
{
    export e = {.data = data, .options = SNUG_EXPORT_OPTIONS_INIT};
    snug_source source;
    int rank;
    snug_status status = snug_data_source(&source, data, SNUG_SUBSET_ALL, err);

    *n = 0;
    if (status)
        return status;
    if (options)
        memcpy(&e.options, options, SN_MIN(options->struct_size, sizeof e.options));
    const int64_t *shape = snug_data_sample_shape(data, &rank);
    e.sample = (uint64_t)shape[0] * (uint64_t)(rank == 3 ? shape[1] * shape[2] : 1);
    if (e.options.path && (status = sn_io_atomic_open(&e.file, e.options.path, err)))
        return status;
    status = run(&e, &source, err);
    if (!status && e.options.path)
        status = write_header(&e, err);
    if (!status && e.options.path)
        status = sn_io_atomic_commit(&e.file, err);
    if (status && e.options.path)
        sn_io_atomic_abort(&e.file);
    *n = e.n;
    return status;
}

snug_status snug_npy_write(const char *path, const float *x, int rank, const int64_t *shape,
                           snug_error *err)
{
    char head[SN_NPY_HEADER];
    sn_io_atomic file;
    uint64_t bytes = sizeof(float);
    bool good = rank >= 1 && rank <= SN_NPY_MAX_RANK && sn_npy_header(head, "<f4", rank, shape);

    for (int i = 0; good && i < rank; i++)
        good = shape[i] >= 0 && !sn_mul_u64(&bytes, bytes, (uint64_t)shape[i]);
    if (!good)
        return sn_fail(err, SNUG_E_USAGE, "a shape of rank %d cannot be written", rank);
    snug_status status = sn_io_atomic_open(&file, path, err);
    if (status)
        return status;
    status = sn_io_pwrite(file.fd, head, sizeof head, 0, path, err);
    if (!status)
        status = sn_io_pwrite(file.fd, x, (size_t)bytes, sizeof head, path, err);
    if (!status)
        status = sn_io_atomic_commit(&file, err);
    if (status)
        sn_io_atomic_abort(&file);
    return status;
}
