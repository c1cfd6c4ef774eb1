/* SPDX-License-Identifier: Apache-2.0
 *
 * arrays.h - opening small array files in the tests of the formats.
 *
 *     assert_refused(path, &options, SNUG_E_INPUT, "cut off");
 *     snug_data *d = arrays_open(path, &options);
 *     arrays_read(d, SNUG_SUBSET_TRAIN, x, classes, y);         // the whole subset, in list order
 *
 * Ownership: what open returns is freed by snug_data_free.  Threads: one at a time.
 */
#ifndef SN_TEST_ARRAYS_H
#define SN_TEST_ARRAYS_H

#include <stdio.h>
#include <string.h>

#include "snug/data.h"
#include "support/support.h"

static inline snug_data *arrays_open(const char *path, const snug_data_options *options)
{
    snug_data *data;
    snug_error err = SNUG_ERROR_INIT;

    assert_ok(snug_data_open(&data, path, options, &err), &err);
    return data;
}

#define assert_refused(path, options, status, why)                                                 \
    do {                                                                                           \
        snug_data *refused_data = NULL;                                                            \
        snug_error refused_err = SNUG_ERROR_INIT;                                                  \
        char refused_text[400];                                                                    \
        assert_fails(snug_data_open(&refused_data, (path), (options), &refused_err), (status),     \
                     &refused_err);                                                                \
        snprintf(refused_text, sizeof refused_text, "%s: %s", refused_err.where,                   \
                 refused_err.what);                                                                \
        assert_contains(refused_text, (why));                                                      \
        assert_null(refused_data);                                                                 \
        assert_no_leak();                                                                          \
    } while (0)

/* Returns the number of samples. NULL: not wanted. */
static inline int64_t arrays_read(snug_data *data, snug_subset subset, float *x, int32_t *classes,
                                  float *y)
{
    snug_pipe_options p = SNUG_PIPE_OPTIONS_INIT;
    snug_source s;
    snug_slot slot = {0};
    snug_error err = SNUG_ERROR_INIT;
    int rank;
    const int64_t *shape = snug_data_sample_shape(data, &rank);
    int64_t floats = shape[0] * (rank == 3 ? shape[1] * shape[2] : 1), n = 0;
    int64_t targets = snug_data_n_targets(data);

    p.batch = 3;
    p.data_threads = 2;
    assert_ok(snug_data_start(data, &p, &err), &err);
    assert_ok(snug_data_source(&s, data, subset, &err), &err);
    assert_ok(s.reset(s.context, 0, 0, &err), &err);
    for (;;) {
        assert_ok(s.next(s.context, &slot, &err), &err);
        if (slot.n == 0)
            return n;
        if (x)
            memcpy(x + n * floats, slot.x, (size_t)(slot.n * floats) * sizeof(float));
        if (classes)
            memcpy(classes + n, slot.classes, (size_t)slot.n * sizeof(int32_t));
        if (y)
            memcpy(y + n * targets, slot.y, (size_t)(slot.n * targets) * sizeof(float));
        n += slot.n;
    }
}

#endif
