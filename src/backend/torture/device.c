/* SPDX-License-Identifier: Apache-2.0
 *
 * device.c - the torture device: options, layouts, proposals, memory between guards.
 *
 * Layouts: PLAIN; BLOCKED by 8 for 4-D tensors; OPAQUE 1 holds the elements backwards with three
 * zeros behind them, OPAQUE 2 the odd elements before the even ones.
 */
#include "backend/torture/internal.h"

#include <stdio.h>
#include <string.h>

enum { BLOCK = 8, BACKWARDS = 1, ODD_FIRST = 2, EXTRA = 3, CONV_SCRATCH = 300, GUARD_BYTE = 0xa5 };

/* ---- options --------------------------------------------------------------------------------- */

static snug_status set(sn_torture_device *d, const char *key, const char *value, snug_error *err)
{
    int64_t number = 0;
    bool ok;
    if (sn_str_eq(key, "slab"))
        ok = sn_parse_size(value, &d->slab_bytes) && d->slab_bytes >= SN_TORTURE_ALIGN;
    else if (sn_str_eq(key, "total"))
        ok = sn_parse_size(value, &d->total_bytes);
    else if (sn_str_eq(key, "layouts"))
        ok = sn_parse_i64(value, 0, 1, &number), d->layouts = number == 1;
    else if (sn_str_eq(key, "queues"))
        ok = sn_parse_i64(value, 1, 2, &number), d->n_queues = (int)number;
    else
        return sn_fail(err, SNUG_E_USAGE, "device torture: '%s' is not known", key);
    return ok ? SNUG_OK
              : sn_fail(err, SNUG_E_USAGE, "device torture: %s=%s makes no sense", key, value);
}

static snug_status torture_open(sn_device **out, const char *spec, const sn_device_options *options,
                                snug_error *err)
{
    char text[128];
    *out = NULL;
    if (strlen(spec) >= sizeof text)
        return sn_fail(err, SNUG_E_USAGE, "device torture: the description is too long");
    memcpy(text, spec, strlen(spec) + 1);
    sn_torture_device *d = sn_alloc(SN_TAG_BACKEND, sizeof *d);
    if (!d)
        return sn_fail(err, SNUG_E_MEMORY, "no memory for a device");
    *d = (sn_torture_device){.base = {&sn_backend_torture},
                             .slab_bytes = SN_MIB,
                             .total_bytes = SN_GIB,
                             .seed = options->seed,
                             .n_queues = 2};
    snug_status s = SNUG_OK;
    for (char *part = text, *next; part && *part && !s; part = next) {
        next = strchr(part, ',');
        if (next)
            *next++ = '\0';
        char *value = strchr(part, '=');
        if (value)
            *value++ = '\0';
        s = set(d, part, value ? value : "", err);
    }
    if (s)
        sn_free(d);
    else
        *out = &d->base;
    return s;
}

static void torture_close(sn_device *device)
{
    sn_free(device);
}

static void torture_info(sn_device *device, sn_device_info *out)
{
    const sn_torture_device *d = (const sn_torture_device *)device;
    *out = (sn_device_info){.name = "torture",
                            .total_bytes = d->total_bytes,
                            .free_bytes = d->total_bytes,
                            .largest_bytes = d->slab_bytes,
                            .align_bytes = SN_TORTURE_ALIGN,
                            .n_queues = d->n_queues,
                            .n_threads = 1,
                            .flops = 1e9,
                            .bytes_per_second = 1e9};
}

/* ---- layouts --------------------------------------------------------------------------------- */

uint64_t sn_torture_layout_bytes(const sn_desc *desc, sn_layout layout)
{
    uint64_t n;
    if (sn_shape_count(&desc->shape, &n) || n > UINT64_MAX / 64)
        return 0;
    uint64_t size = sn_dtype_bytes(desc->dtype);
    switch (layout.kind) {
    case SN_LAYOUT_PLAIN:
        return n * size;
    case SN_LAYOUT_BLOCKED:
        if (desc->shape.rank != 4 || layout.block != BLOCK)
            return 0;
        return n / (uint64_t)desc->shape.dim[3] * sn_align_up((uint64_t)desc->shape.dim[3], BLOCK) *
               size;
    case SN_LAYOUT_OPAQUE:
        if (layout.index == BACKWARDS)
            return (n + EXTRA) * size;
        return layout.index == ODD_FIRST ? n * size : 0;
    default:
        return 0;
    }
}

/* Where element i of the plain layout lies. */
static uint64_t place_of(const sn_desc *desc, sn_layout layout, uint64_t n, uint64_t i)
{
    if (layout.kind == SN_LAYOUT_BLOCKED) {
        uint64_t c = (uint64_t)desc->shape.dim[3];
        uint64_t hw = (uint64_t)(desc->shape.dim[1] * desc->shape.dim[2]);
        uint64_t channel = i % c, pixel = i / c % hw, sample = i / c / hw;
        uint64_t n_blocks = (c + BLOCK - 1) / BLOCK;
        return ((sample * n_blocks + channel / BLOCK) * hw + pixel) * BLOCK + channel % BLOCK;
    }
    if (layout.kind == SN_LAYOUT_OPAQUE && layout.index == BACKWARDS)
        return n - 1 - i;
    if (layout.kind == SN_LAYOUT_OPAQUE)
        return i % 2 ? i / 2 : n / 2 + i / 2;
    return i;
}

void sn_torture_pack(const sn_desc *desc, sn_layout layout, const void *plain, void *packed)
{
    uint64_t n = (uint64_t)sn_shape_n(&desc->shape), size = sn_dtype_bytes(desc->dtype);
    memset(packed, 0, sn_torture_layout_bytes(desc, layout));
    for (uint64_t i = 0; i < n; i++)
        memcpy((char *)packed + place_of(desc, layout, n, i) * size, (const char *)plain + i * size,
               size);
}

static uint64_t sum_of_bits(const uint8_t *at, uint64_t bytes)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < bytes; i++)
        sum += at[i];
    return sum;
}

bool sn_torture_unpack(const sn_desc *desc, sn_layout layout, const void *packed, void *plain)
{
    uint64_t n = (uint64_t)sn_shape_n(&desc->shape), size = sn_dtype_bytes(desc->dtype);
    for (uint64_t i = 0; i < n; i++)
        memcpy((char *)plain + i * size, (const char *)packed + place_of(desc, layout, n, i) * size,
               size);
    /* The padding is zero exactly when the bytes outside of it sum up to all of them. */
    return sum_of_bits(packed, sn_torture_layout_bytes(desc, layout)) ==
           sum_of_bits(plain, n * size);
}

static snug_status torture_layout_bytes(sn_device *device, const sn_desc *desc, sn_layout layout,
                                        uint64_t *bytes, snug_error *err)
{
    SN_UNUSED(device);
    *bytes = sn_torture_layout_bytes(desc, layout);
    return *bytes ? SNUG_OK : sn_fail(err, SNUG_E_INTERNAL, "the tensor has no such layout");
}

static void torture_layout_name(sn_device *device, sn_layout layout, char *out, size_t n)
{
    SN_UNUSED(device);
    static const char *const names[] = {"unset", "plain", "blocked", "opaque"};
    snprintf(out, n, "%s%d", names[layout.kind & 3], layout.index);
}

/* ---- proposals ------------------------------------------------------------------------------- */

static bool on_copy_queue(sn_op_id op)
{
    switch (op) {
    case SN_OP_REORDER:
    case SN_OP_CAST:
    case SN_OP_CONCAT:
    case SN_OP_SLICE:
    case SN_OP_PAD2D:
    case SN_OP_CROP2D:
    case SN_OP_PERMUTE:
    case SN_OP_MOVING_AVERAGE:
    case SN_OP_UPDATE:
        return true;
    default:
        return false;
    }
}

static bool keeps_layout(sn_op_id op)
{
    return op == SN_OP_ACTIVATION || op == SN_OP_ACTIVATION_DX || op == SN_OP_BATCH_NORM ||
           op == SN_OP_BATCH_NORM_APPLY || op == SN_OP_BATCH_NORM_DX || op == SN_OP_BINARY ||
           op == SN_OP_SCALAR || op == SN_OP_DROPOUT;
}

static void set_like(const sn_operation *o, sn_proposal *out, sn_layout layout)
{
    for (int i = 0; i < o->n_in; i++)
        if (!sn_desc_is_absent(&o->in[i]) && sn_shape_eq(&o->in[i].shape, &o->in[0].shape))
            out->in[i] = layout;
    for (int i = 0; i < o->n_out; i++)
        if (!sn_desc_is_absent(&o->out[i]) && sn_shape_eq(&o->out[i].shape, &o->in[0].shape))
            out->out[i] = layout;
}

static void with_layouts(const sn_operation *o, sn_proposal *out)
{
    const sn_layout blocked = SN_BLOCKED(BLOCK);
    const sn_layout backwards = {SN_LAYOUT_OPAQUE, 0, BACKWARDS};
    const sn_layout odd_first = {SN_LAYOUT_OPAQUE, 0, ODD_FIRST};
    switch (o->op) {
    case SN_OP_CONV2D:
        out->in[0] = out->out[0] = blocked;
        out->in[1] = backwards;
        break;
    case SN_OP_CONV2D_DX:
        out->in[0] = out->out[0] = blocked;
        out->in[1] = odd_first;
        break;
    case SN_OP_CONV2D_DW:
        out->in[0] = out->in[1] = blocked;
        if (o->out_wish && o->out_wish[0].kind == SN_LAYOUT_OPAQUE)
            out->out[0] = o->out_wish[0];
        break;
    case SN_OP_REORDER:
        out->in[0] = o->in_layout[0];
        out->out[0] = o->out_wish[0];
        break;
    case SN_OP_UPDATE:
        set_like(o, out, o->in_layout[0].kind == SN_LAYOUT_UNSET ? SN_PLAIN : o->in_layout[0]);
        break;
    case SN_OP_SUM_SQUARES:
        out->in[0] = o->in_layout[0].kind == SN_LAYOUT_UNSET ? SN_PLAIN : o->in_layout[0];
        break;
    default:
        if (keeps_layout(o->op) && o->in_layout[0].kind == SN_LAYOUT_BLOCKED)
            set_like(o, out, blocked);
    }
}

static snug_status torture_propose(sn_device *device, const sn_operation *operation,
                                   sn_proposal *out, snug_error *err)
{
    SN_UNUSED(err);
    const sn_torture_device *d = (const sn_torture_device *)device;
    const sn_op *op = sn_op_of(operation->op);
    *out = (sn_proposal){0};
    for (int i = 0; i < operation->n_in; i++)
        out->in[i] = SN_PLAIN;
    for (int i = 0; i < operation->n_out; i++)
        out->out[i] = SN_PLAIN;
    if (d->layouts)
        with_layouts(operation, out);
    if (op->reference_workspace)
        out->workspace_bytes =
            op->reference_workspace(operation->attrs, operation->in, operation->n_in);
    if (operation->op == SN_OP_CONV2D) /* so that some scratch is there to get wrong */
        out->workspace_bytes += CONV_SCRATCH;
    out->queue = d->n_queues > 1 && on_copy_queue(operation->op);
    return SNUG_OK;
}

static const char *torture_kernel_name(sn_device *device, sn_op_id op, uint16_t kernel)
{
    SN_UNUSED(device);
    SN_UNUSED(op);
    SN_UNUSED(kernel);
    return "reference";
}

/* ---- memory ---------------------------------------------------------------------------------- */

void sn_torture_poison(void *at, uint64_t bytes)
{
    memset(at, 0xff, bytes);
}

static void torture_release(sn_memory *memory)
{
    if (!memory)
        return;
    for (size_t i = 0; memory->blocks && i < memory->n_slabs; i++)
        sn_free(memory->blocks[i]);
    sn_free(memory->blocks);
    sn_free(memory->bytes);
    sn_free(memory);
}

static snug_status torture_reserve(sn_device *device, size_t n_slabs, const uint64_t *bytes,
                                   void *const *caller_memory, sn_memory **out, snug_error *err)
{
    sn_torture_device *d = (sn_torture_device *)device;
    *out = NULL;
    if (caller_memory)
        return sn_fail(err, SNUG_E_USAGE, "device torture takes no memory of the caller");
    for (size_t i = 0; i < n_slabs; i++)
        if (bytes[i] > d->slab_bytes)
            return sn_fail(err, SNUG_E_DEVICE,
                           "a slab of %" PRIu64 " bytes; %" PRIu64 " is the largest", bytes[i],
                           d->slab_bytes);
    sn_memory *m = sn_alloc(SN_TAG_BACKEND, sizeof *m);
    if (!m)
        return sn_fail(err, SNUG_E_MEMORY, "no memory for slabs");
    m->device = d;
    m->n_slabs = n_slabs;
    m->bytes = sn_alloc_array(SN_TAG_BACKEND, n_slabs + 1, sizeof *m->bytes);
    m->blocks = sn_alloc_array(SN_TAG_BACKEND, n_slabs + 1, sizeof *m->blocks);
    bool ok = m->bytes && m->blocks;
    for (size_t i = 0; ok && i < n_slabs; i++) {
        m->bytes[i] = bytes[i];
        m->blocks[i] = sn_alloc(SN_TAG_BACKEND, bytes[i] + 2 * SN_TORTURE_GUARD);
        ok = m->blocks[i] != NULL;
        if (ok) {
            memset(m->blocks[i], GUARD_BYTE, SN_TORTURE_GUARD);
            memset(m->blocks[i] + SN_TORTURE_GUARD + bytes[i], GUARD_BYTE, SN_TORTURE_GUARD);
        }
    }
    if (!ok) {
        torture_release(m);
        return sn_fail(err, SNUG_E_MEMORY, "no memory for slabs");
    }
    *out = m;
    return SNUG_OK;
}

bool sn_torture_guards_whole(const sn_memory *memory)
{
    for (size_t i = 0; i < memory->n_slabs; i++)
        for (int k = 0; k < SN_TORTURE_GUARD; k++)
            if (memory->blocks[i][k] != GUARD_BYTE ||
                memory->blocks[i][SN_TORTURE_GUARD + memory->bytes[i] + (uint64_t)k] != GUARD_BYTE)
                return false;
    return true;
}

uint8_t *sn_torture_at(const sn_memory *memory, const sn_view *view)
{
    return memory->blocks[view->slab] + SN_TORTURE_GUARD + view->offset;
}

static snug_status check_view(const sn_memory *m, const sn_view *view, snug_error *err)
{
    if (view->buffer != UINT32_MAX && view->slab < m->n_slabs &&
        view->offset + view->bytes <= m->bytes[view->slab])
        return SNUG_OK;
    return sn_fail(err, SNUG_E_INTERNAL, "a view outside of the slabs");
}

static snug_status torture_write(sn_memory *memory, const sn_view *view, const void *plain,
                                 snug_error *err)
{
    snug_status s = check_view(memory, view, err);
    if (!s)
        sn_torture_pack(&view->desc, view->layout, plain, sn_torture_at(memory, view));
    return s;
}

static snug_status torture_read(sn_memory *memory, const sn_view *view, void *plain,
                                snug_error *err)
{
    snug_status s = check_view(memory, view, err);
    if (!s && !sn_torture_unpack(&view->desc, view->layout, sn_torture_at(memory, view), plain))
        s = sn_fail(err, SNUG_E_INTERNAL, "the padding of what is read is not zero");
    return s;
}

const sn_backend sn_backend_torture = {
    .name = "torture",
    .open = torture_open,
    .close = torture_close,
    .info = torture_info,
    .layout_bytes = torture_layout_bytes,
    .layout_name = torture_layout_name,
    .propose = torture_propose,
    .kernel_name = torture_kernel_name,
    .reserve = torture_reserve,
    .release = torture_release,
    .write = torture_write,
    .read = torture_read,
    .prepare = sn_torture_prepare,
    .run = sn_torture_run,
    .discard = sn_torture_discard,
    .measured_peak = sn_torture_measured_peak,
};
