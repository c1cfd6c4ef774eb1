/* SPDX-License-Identifier: Apache-2.0
 *
 * photos.h - small data sets of real image files for the tests of the pipeline: copies of the
 * oracle's images in class folders.
 *
 *     photos_make(folder, 3, 10);                          // 3 classes of 10 images
 *     snug_data *d = photos_open(folder, &options);
 *     uint64_t h = photos_hash(&slot, sample_floats);
 *
 * Ownership: what open returns is freed by snug_data_free.  Threads: one at a time.
 */
#ifndef SN_TEST_PHOTOS_H
#define SN_TEST_PHOTOS_H

#include <stdio.h>
#include <string.h>

#include "snug/data.h"
#include "support/support.h"

static const char *const photos_files[] = {
    "j420.jpg",    "j444.jpg", "prgb.png", "b24.bmp",   "jgray.jpg",    "jprogressive.jpg",
    "pgray16.png", "j422.jpg", "b8.bmp",   "prgba.png", "ppalette.png", "jrestart.jpg"};

static inline void photos_copy(const char *to, size_t which)
{
    char name[64], from[SN_TEST_PATH];
    size_t n;

    snprintf(name, sizeof name, "tests/oracle/pixels/%s",
             photos_files[which % SN_LEN(photos_files)]);
    char *bytes = test_read(test_source_path(from, name), &n);
    test_write(to, bytes, n);
    sn_free(bytes);
}

/* folder/class<k>/<i>.jpg. Returns out. */
static inline char *photos_path(char out[SN_TEST_PATH], const char *folder, size_t k, size_t i)
{
    char name[64];

    snprintf(name, sizeof name, "class%zu/%zu.jpg", k, i);
    return test_path(out, folder, name);
}

/* class<k>/<i>.jpg below folder; every class begins with another image. */
static inline void photos_make(const char *folder, size_t n_classes, size_t n_each)
{
    char path[SN_TEST_PATH];

    for (size_t k = 0; k < n_classes; k++)
        for (size_t i = 0; i < n_each; i++)
            photos_copy(photos_path(path, folder, k, i), k * 5 + i);
}

static inline snug_data_options photos_options(void)
{
    snug_data_options o = SNUG_DATA_OPTIONS_INIT;

    o.height = 20;
    o.width = 24;
    o.seed = 7;
    return o;
}

static inline snug_data *photos_open(const char *folder, const snug_data_options *options)
{
    snug_data *data;
    snug_error err = SNUG_ERROR_INIT;

    assert_ok(snug_data_open(&data, folder, options, &err), &err);
    return data;
}

static inline snug_source photos_start(snug_data *data, int64_t batch, int slots, int threads,
                                       snug_subset subset)
{
    snug_pipe_options p = SNUG_PIPE_OPTIONS_INIT;
    snug_source source;
    snug_error err = SNUG_ERROR_INIT;

    p.batch = batch;
    p.n_slots = slots;
    p.data_threads = threads;
    assert_ok(snug_data_start(data, &p, &err), &err);
    assert_ok(snug_data_source(&source, data, subset, &err), &err);
    return source;
}

static inline uint64_t photos_mix(uint64_t h, const void *bytes, size_t n)
{
    const uint8_t *p = bytes;

    for (size_t i = 0; i < n; i++)
        h = (h ^ p[i]) * UINT64_C(1099511628211);
    return h;
}

/* Everything that a batch is. */
static inline uint64_t photos_hash(uint64_t h, const snug_slot *s, size_t floats)
{
    size_t n = (size_t)s->n;

    h = photos_mix(h, &s->n, sizeof s->n);
    h = photos_mix(h, &s->next_position, sizeof s->next_position);
    h = photos_mix(h, s->x, n * floats * sizeof(float));
    if (s->classes)
        h = photos_mix(h, s->classes, n * sizeof(int32_t));
    return photos_mix(h, s->positions, n * sizeof(uint64_t));
}

#endif
