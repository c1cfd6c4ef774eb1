/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_image.h - bytes as one image file, decoded and resized; nothing beyond the sample is
 * written.
 *
 *     return fuzz_image(data, size);
 *
 * Ownership: everything is given back.  Threads: one at a time.
 */
#ifndef SN_FUZZ_IMAGE_H
#define SN_FUZZ_IMAGE_H

#include <stdlib.h>

#include "data/image.h"

static inline int fuzz_image(const uint8_t *data, size_t size)
{
    enum { N = 7 * 5 * 3 };
    uint64_t live = sn_ledger_live_bytes();
    float x[N + 16];
    sn_pool pool;
    sn_scratch scratch;
    sn_reader reader;
    /* The last byte chooses among the options. */
    unsigned choice = size ? data[size - 1] : 0;
    sn_image_options o = {.height = 7,
                          .width = 5,
                          .channels = choice & 1 ? 1 : 3,
                          .resize = (snug_resize)(choice >> 1 & 1),
                          .fit = (snug_fit)((choice >> 2) % SNUG_N_FITS),
                          .exif = choice >> 4 & 1,
                          .fast_decode = choice >> 5 & 1};

    if (o.channels == 1)
        o.width = 15;
    for (int i = N; i < N + 16; i++)
        x[i] = -1;
    if (sn_pool_init(&pool, 2 * SN_MIB, NULL) || sn_scratch_init(&scratch, 512 * 1024, &pool, NULL))
        abort();
    sn_reader_memory(&reader, data, size);
    (void)sn_image_load(x, &reader, &o, &scratch, NULL, NULL);
    for (int i = N; i < N + 16; i++)
        if (x[i] != -1)
            abort();
    sn_scratch_deinit(&scratch);
    sn_pool_deinit(&pool);
    if (sn_ledger_live_bytes() != live)
        abort();
    return 0;
}

#endif
