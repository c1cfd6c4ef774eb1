/* SPDX-License-Identifier: Apache-2.0
 *
 * Slabs: one mapping each, placed so that the planned peak ends where a page without access begins.
 *
 * Numbered invariants:
 *  1. data + align_up(bytes, SN_CPU_ALIGN) is the guard page's first byte (own memory);
 *  2. own memory is zero because the kernel gave it so; a caller's is set to zero.
 */
#include "backend/cpu/internal.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static snug_status map_slab(struct sn_cpu_slab *slab, uint64_t bytes, snug_error *err)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), used = sn_align_up(bytes, SN_CPU_ALIGN);
    uint64_t body = sn_align_up(used, page);
    void *at = mmap(NULL, body + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return sn_fail_errno(err, SNUG_E_DEVICE, errno,
                             "cannot reserve %" PRIu64 " bytes for the plan", bytes);
    slab->mapping = at;
    slab->mapping_bytes = body + page;
    unsigned char *guard = (unsigned char *)at + body;
    if (mprotect(guard, page, PROT_NONE))
        return sn_fail_errno(err, SNUG_E_DEVICE, errno, "cannot protect the page after the plan");
    /* Whole 2 MiB pieces inside the mapping only: nothing outside the plan becomes resident. */
    (void)madvise(at, body, MADV_HUGEPAGE);
    slab->data = guard - used;
    slab->bytes = bytes;
    assert(((uintptr_t)slab->data & (SN_CPU_ALIGN - 1)) == 0); /* 1 */
    return SNUG_OK;
}

snug_status sn_cpu_reserve(sn_device *device, size_t n_slabs, const uint64_t *bytes,
                           void *const *caller_memory, sn_memory **out, snug_error *err)
{
    *out = NULL;
    sn_memory *m = sn_alloc(SN_TAG_BACKEND, sizeof *m);
    if (m)
        m->slabs = sn_alloc_array(SN_TAG_BACKEND, n_slabs, sizeof *m->slabs);
    if (!m || !m->slabs) {
        sn_free(m);
        return sn_fail(err, SNUG_E_MEMORY, "no memory for a list of %zu slabs", n_slabs);
    }
    m->device = (sn_cpu_device *)device;
    m->n_slabs = n_slabs;
    for (size_t i = 0; i < n_slabs; i++) {
        snug_status s = SNUG_OK;
        if (!caller_memory)
            s = map_slab(&m->slabs[i], bytes[i], err);
        else if ((uintptr_t)caller_memory[i] & (SN_CPU_ALIGN - 1))
            s = sn_fail(err, SNUG_E_USAGE, "the memory given for the session is not aligned to %d",
                        SN_CPU_ALIGN);
        else {
            m->slabs[i].data = caller_memory[i];
            m->slabs[i].bytes = bytes[i];
            memset(caller_memory[i], 0, bytes[i]); /* 2 */
        }
        if (s) {
            sn_cpu_release(m);
            return s;
        }
    }
    *out = m;
    return SNUG_OK;
}

void sn_cpu_release(sn_memory *memory)
{
    if (!memory)
        return;
    for (size_t i = 0; i < memory->n_slabs; i++)
        if (memory->slabs[i].mapping)
            munmap(memory->slabs[i].mapping, memory->slabs[i].mapping_bytes);
    sn_free(memory->slabs);
    sn_free(memory);
}

void *sn_cpu_host_address(sn_memory *memory, const sn_view *view)
{
    if (view->buffer == UINT32_MAX || view->slab >= memory->n_slabs ||
        view->offset > memory->slabs[view->slab].bytes)
        return NULL;
    return memory->slabs[view->slab].data + view->offset;
}

static snug_status checked_address(sn_memory *memory, const sn_view *view, void **out,
                                   snug_error *err)
{
    uint64_t bytes = sn_cpu_layout_bytes(memory->device, &view->desc, view->layout), end;
    *out = sn_cpu_host_address(memory, view);
    if (!*out || sn_add_u64(&end, view->offset, bytes) || end > memory->slabs[view->slab].bytes)
        return sn_fail(err, SNUG_E_INTERNAL,
                       "a view of %" PRIu64 " bytes at %" PRIu64 " lies outside of slab %u", bytes,
                       view->offset, view->slab);
    return SNUG_OK;
}

snug_status sn_cpu_write(sn_memory *memory, const sn_view *view, const void *plain, snug_error *err)
{
    void *at;
    snug_status s = checked_address(memory, view, &at, err);
    return s ? s : sn_cpu_move(memory->device, &view->desc, SN_PLAIN, plain, view->layout, at, err);
}

snug_status sn_cpu_read(sn_memory *memory, const sn_view *view, void *plain, snug_error *err)
{
    void *at;
    snug_status s = checked_address(memory, view, &at, err);
    return s ? s : sn_cpu_move(memory->device, &view->desc, view->layout, at, SN_PLAIN, plain, err);
}
