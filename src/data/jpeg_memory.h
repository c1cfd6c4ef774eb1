/* SPDX-License-Identifier: Apache-2.0
 *
 * jpeg_memory.h - libjpeg's memory, taken from a decoding scratch: the manager's functions are
 * replaced after jpeg_create_decompress, so that decoding allocates nothing of its own.
 *
 *     jpeg_create_decompress(&cinfo);
 *     sn_jpeg_memory_init(&memory, &cinfo, scratch);
 *
 * Ownership: everything is the scratch's; free_pool gives nothing back, sn_scratch_reset does.
 * Threads: one at a time.
 */
#ifndef SN_DATA_JPEG_MEMORY_H
#define SN_DATA_JPEG_MEMORY_H

#include <stdio.h>

#include <jpeglib.h>

#include "data/scratch.h"

typedef struct sn_jpeg_memory {
    struct jpeg_memory_mgr methods; /* what cinfo->mem points to; first, for the casts */
    struct jpeg_memory_mgr *original;
    sn_scratch *scratch;
    struct jvirt_barray_control *arrays; /* asked for, realized together */
} sn_jpeg_memory;

/* Adds this manager's messages to those of jpeg_std_error. */
void sn_jpeg_memory_messages(struct jpeg_error_mgr *errors);
void sn_jpeg_memory_init(sn_jpeg_memory *memory, j_decompress_ptr cinfo, sn_scratch *scratch);

#endif
