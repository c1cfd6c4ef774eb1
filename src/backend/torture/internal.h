/* SPDX-License-Identifier: Apache-2.0
 *
 * internal.h - what the files of the torture backend share: the device, its memory, packing.
 *
 * Ownership: see backend.h.  Threads: see backend.h.
 */
#ifndef SN_BACKEND_TORTURE_INTERNAL_H
#define SN_BACKEND_TORTURE_INTERNAL_H

#include "backend/torture/torture.h"
#include "base/ledger.h"

enum { SN_TORTURE_GUARD = 64, SN_TORTURE_ALIGN = 16 };

typedef struct sn_torture_device {
    sn_device base;
    uint64_t slab_bytes, total_bytes, seed;
    bool layouts;
    int n_queues;
} sn_torture_device;

struct sn_memory {
    sn_torture_device *device;
    size_t n_slabs;
    uint64_t *bytes;
    uint8_t **blocks; /* guard, slab, guard */
};

/* Bytes in a layout; 0: no layout of this device. */
uint64_t sn_torture_layout_bytes(const sn_desc *desc, sn_layout layout);
/* Plain elements into a layout (padding becomes zeros) and back (false: the padding was not zero).
 */
void sn_torture_pack(const sn_desc *desc, sn_layout layout, const void *plain, void *packed);
bool sn_torture_unpack(const sn_desc *desc, sn_layout layout, const void *packed, void *plain);
/* The first byte of a view. */
uint8_t *sn_torture_at(const sn_memory *memory, const sn_view *view);
/* false: the guards around a slab were written. */
bool sn_torture_guards_whole(const sn_memory *memory);
/* NaN in every float that fits. */
void sn_torture_poison(void *at, uint64_t bytes);

snug_status sn_torture_prepare(sn_memory *memory, const sn_program *program, int64_t batch,
                               sn_exec **out, snug_error *err);
snug_status sn_torture_run(sn_exec *exec, const sn_step *step, size_t first, size_t count,
                           snug_error *err);
void sn_torture_discard(sn_exec *exec);
uint64_t sn_torture_measured_peak(const sn_exec *exec, size_t slab);

#endif
