/* SPDX-License-Identifier: Apache-2.0
 *
 * A libjpeg memory manager over a bump allocator. Whole-image arrays of coefficients are held in
 * memory whole; arrays of samples are never asked for by the decoder as it is used here.
 */
#include "data/jpeg_memory.h"

/* Our own messages, beside libjpeg's. */
enum {
    FIRST_MESSAGE = 1000,
    OUT_OF_SCRATCH = FIRST_MESSAGE,
    NOT_ASKED_FOR,
    BAD_ACCESS,
    LAST_MESSAGE
};

static const char *const messages[] = {"needs more memory to decode than the bound",
                                       "an array of samples was asked for",
                                       "coefficients beyond the image were asked for", NULL};

static void fail(j_common_ptr cinfo, int code)
{
    cinfo->err->msg_code = code;
    cinfo->err->error_exit(cinfo);
}

void sn_jpeg_memory_messages(struct jpeg_error_mgr *errors)
{
    errors->addon_message_table = messages;
    errors->first_addon_message = FIRST_MESSAGE;
    errors->last_addon_message = LAST_MESSAGE - 1;
}

/* libjpeg names this type and leaves it to its memory manager. */
struct jvirt_barray_control {
    JBLOCKARRAY rows;
    JDIMENSION n_rows, blocks_per_row;
    boolean zeroed;
    struct jvirt_barray_control *next;
};

static sn_jpeg_memory *memory_of(j_common_ptr cinfo)
{
    return (sn_jpeg_memory *)(void *)cinfo->mem;
}

static void *take(j_common_ptr cinfo, uint64_t n)
{
    void *p = sn_scratch_alloc(memory_of(cinfo)->scratch, n);

    if (!p)
        fail(cinfo, OUT_OF_SCRATCH);
    return p;
}

static void *alloc_any(j_common_ptr cinfo, int pool, size_t n)
{
    SN_UNUSED(pool);
    return take(cinfo, n);
}

/* Rows whose vector code may touch up to 64 bytes beyond the last sample. */
static void **alloc_rows(j_common_ptr cinfo, uint64_t row_bytes, JDIMENSION n_rows)
{
    uint64_t stride = sn_align_up(row_bytes, 2 * SN_SCRATCH_ALIGN);
    void **rows = take(cinfo, n_rows * sizeof(void *));
    uint8_t *bytes = take(cinfo, stride * n_rows);

    for (JDIMENSION i = 0; i < n_rows; i++)
        rows[i] = bytes + i * stride;
    return rows;
}

static JSAMPARRAY alloc_sarray(j_common_ptr cinfo, int pool, JDIMENSION per_row, JDIMENSION n_rows)
{
    SN_UNUSED(pool);
    return (JSAMPARRAY)(void *)alloc_rows(cinfo, (uint64_t)per_row * sizeof(JSAMPLE), n_rows);
}

static JBLOCKARRAY alloc_barray(j_common_ptr cinfo, int pool, JDIMENSION per_row, JDIMENSION n_rows)
{
    SN_UNUSED(pool);
    return (JBLOCKARRAY)(void *)alloc_rows(cinfo, (uint64_t)per_row * sizeof(JBLOCK), n_rows);
}

static jvirt_sarray_ptr request_sarray(j_common_ptr cinfo, int pool, boolean zero,
                                       JDIMENSION per_row, JDIMENSION n_rows, JDIMENSION access)
{
    SN_UNUSED(pool);
    SN_UNUSED(zero);
    SN_UNUSED(per_row);
    SN_UNUSED(n_rows);
    SN_UNUSED(access);
    fail(cinfo, NOT_ASKED_FOR);
    return NULL;
}

static jvirt_barray_ptr request_barray(j_common_ptr cinfo, int pool, boolean zero,
                                       JDIMENSION per_row, JDIMENSION n_rows, JDIMENSION access)
{
    sn_jpeg_memory *memory = memory_of(cinfo);
    struct jvirt_barray_control *array = take(cinfo, sizeof *array);

    SN_UNUSED(pool);
    SN_UNUSED(access);
    *array = (struct jvirt_barray_control){NULL, n_rows, per_row, zero, memory->arrays};
    memory->arrays = array;
    return array;
}

static void realize(j_common_ptr cinfo)
{
    sn_jpeg_memory *memory = memory_of(cinfo);

    for (struct jvirt_barray_control *a = memory->arrays; a; a = a->next) {
        if (a->rows)
            continue;
        a->rows = alloc_barray(cinfo, JPOOL_IMAGE, a->blocks_per_row, a->n_rows);
        /* The decoder counts on zeros where a scan brings nothing, asked for or not. */
        for (JDIMENSION i = 0; i < a->n_rows; i++)
            memset(a->rows[i], 0, a->blocks_per_row * sizeof(JBLOCK));
    }
}

static JSAMPARRAY access_sarray(j_common_ptr cinfo, jvirt_sarray_ptr array, JDIMENSION start,
                                JDIMENSION n, boolean writable)
{
    SN_UNUSED(array);
    SN_UNUSED(start);
    SN_UNUSED(n);
    SN_UNUSED(writable);
    fail(cinfo, NOT_ASKED_FOR);
    return NULL;
}

static JBLOCKARRAY access_barray(j_common_ptr cinfo, jvirt_barray_ptr array, JDIMENSION start,
                                 JDIMENSION n, boolean writable)
{
    SN_UNUSED(writable);
    if (!array->rows || start > array->n_rows || n > array->n_rows - start)
        fail(cinfo, BAD_ACCESS);
    return array->rows + start;
}

static void free_pool(j_common_ptr cinfo, int pool)
{
    if (pool == JPOOL_IMAGE)
        memory_of(cinfo)->arrays = NULL;
}

static void self_destruct(j_common_ptr cinfo)
{
    cinfo->mem = memory_of(cinfo)->original;
    cinfo->mem->self_destruct(cinfo);
}

void sn_jpeg_memory_init(sn_jpeg_memory *memory, j_decompress_ptr cinfo, sn_scratch *scratch)
{
    memory->original = cinfo->mem;
    memory->scratch = scratch;
    memory->arrays = NULL;
    memory->methods = *cinfo->mem;
    memory->methods.alloc_small = alloc_any;
    memory->methods.alloc_large = alloc_any;
    memory->methods.alloc_sarray = alloc_sarray;
    memory->methods.alloc_barray = alloc_barray;
    memory->methods.request_virt_sarray = request_sarray;
    memory->methods.request_virt_barray = request_barray;
    memory->methods.realize_virt_arrays = realize;
    memory->methods.access_virt_sarray = access_sarray;
    memory->methods.access_virt_barray = access_barray;
    memory->methods.free_pool = free_pool;
    memory->methods.self_destruct = self_destruct;
    cinfo->mem = &memory->methods;
}
