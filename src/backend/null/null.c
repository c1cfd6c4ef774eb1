/* SPDX-License-Identifier: Apache-2.0
 *
 * null.c - planning for a card that is not here.
 */
#include "backend/null/null.h"

#include <stdio.h>
#include <string.h>

#include "base/ledger.h"

enum { ALIGN = 128, SLAB_FRACTION = 4 };

typedef struct null_device {
    sn_device base;
    uint64_t bytes, reserve;
    double flops, bytes_per_second;
} null_device;

/* One "key=value" of the spec. */
static snug_status set(null_device *d, const char *key, const char *value, snug_error *err)
{
    double number;
    if (sn_str_eq(key, "reserve")) {
        if (!sn_parse_size(value, &d->reserve))
            return sn_fail(err, SNUG_E_USAGE, "device null: reserve=%s is no size", value);
        return SNUG_OK;
    }
    bool is_flops = sn_str_eq(key, "tflops");
    if (!is_flops && !sn_str_eq(key, "gbps"))
        return sn_fail(err, SNUG_E_USAGE,
                       "device null: '%s' is not known; tflops=, gbps= and reserve= are", key);
    if (!sn_parse_f64(value, 1e-6, 1e9, &number))
        return sn_fail(err, SNUG_E_USAGE, "device null: %s=%s is no number above 0", key, value);
    if (is_flops)
        d->flops = number * 1e12;
    else
        d->bytes_per_second = number * 1e9;
    return SNUG_OK;
}

static snug_status parse(null_device *d, const char *spec, snug_error *err)
{
    char text[128];
    if (strlen(spec) >= sizeof text)
        return sn_fail(err, SNUG_E_USAGE, "device null: the description is longer than %zu bytes",
                       sizeof text - 1);
    memcpy(text, spec, strlen(spec) + 1);
    bool is_first = true;
    for (char *part = text, *next; part; part = next) {
        next = strchr(part, ',');
        if (next)
            *next++ = '\0';
        char *value = strchr(part, '=');
        if (is_first) {
            if (!sn_parse_size(part, &d->bytes) || d->bytes < SN_MIB)
                return sn_fail(err, SNUG_E_USAGE,
                               "device null: '%s' is no memory size of 1 MiB or more; write "
                               "null:2GiB",
                               part);
            is_first = false;
            continue;
        }
        if (!value)
            return sn_fail(err, SNUG_E_USAGE, "device null: '%s' is not of the form key=value",
                           part);
        *value++ = '\0';
        snug_status s = set(d, part, value, err);
        if (s)
            return s;
    }
    if (d->reserve >= d->bytes)
        return sn_fail(err, SNUG_E_USAGE, "device null: the reserve leaves nothing of the memory");
    return SNUG_OK;
}

static snug_status null_open(sn_device **out, const char *spec, const sn_device_options *options,
                             snug_error *err)
{
    SN_UNUSED(options);
    *out = NULL;
    null_device *d = sn_alloc(SN_TAG_BACKEND, sizeof *d);
    if (!d)
        return sn_fail(err, SNUG_E_MEMORY, "no memory for a device");
    snug_status s = parse(d, spec, err);
    if (s) {
        sn_free(d);
        return s;
    }
    d->base.backend = &sn_backend_null;
    *out = &d->base;
    return SNUG_OK;
}

static void null_close(sn_device *device)
{
    sn_free(device);
}

static void null_info(sn_device *device, sn_device_info *out)
{
    const null_device *d = (const null_device *)device;
    char size[32];
    *out = (sn_device_info){.total_bytes = d->bytes,
                            .free_bytes = d->bytes - d->reserve,
                            .reserve_bytes = d->reserve,
                            .largest_bytes = d->bytes / SLAB_FRACTION,
                            .align_bytes = ALIGN,
                            .n_queues = 2,
                            .flops = d->flops,
                            .bytes_per_second = d->bytes_per_second};
    snprintf(out->name, sizeof out->name, "a card of %s (planned for, not here)",
             sn_format_bytes(size, sizeof size, d->bytes));
}

static snug_status null_layout_bytes(sn_device *device, const sn_desc *desc, sn_layout layout,
                                     uint64_t *bytes, snug_error *err)
{
    SN_UNUSED(device);
    char shape[96];
    if (layout.kind != SN_LAYOUT_PLAIN)
        return sn_fail(err, SNUG_E_INTERNAL, "device null has plain layouts only");
    if (sn_desc_bytes(desc, bytes))
        return sn_fail(err, SNUG_E_UNSUPPORTED, "a tensor %s has no size that fits 64 bits",
                       sn_shape_format(shape, sizeof shape, &desc->shape));
    return SNUG_OK;
}

static void null_layout_name(sn_device *device, sn_layout layout, char *out, size_t n)
{
    SN_UNUSED(device);
    snprintf(out, n, "%s", layout.kind == SN_LAYOUT_PLAIN ? "plain" : "?");
}

static snug_status null_propose(sn_device *device, const sn_operation *operation, sn_proposal *out,
                                snug_error *err)
{
    SN_UNUSED(device);
    SN_UNUSED(err);
    *out = (sn_proposal){0};
    for (int i = 0; i < operation->n_in; i++)
        out->in[i] = SN_PLAIN;
    for (int i = 0; i < operation->n_out; i++)
        out->out[i] = SN_PLAIN;
    return SNUG_OK;
}

static const char *null_kernel_name(sn_device *device, sn_op_id op, uint16_t kernel)
{
    SN_UNUSED(device);
    SN_UNUSED(op);
    SN_UNUSED(kernel);
    return "planned";
}

static snug_status nothing(snug_error *err)
{
    return sn_fail(err, SNUG_E_DEVICE,
                   "device null computes nothing: it stands for a card that is not here");
}

static snug_status null_reserve(sn_device *device, size_t n_slabs, const uint64_t *bytes,
                                void *const *caller_memory, sn_memory **out, snug_error *err)
{
    SN_UNUSED(device);
    SN_UNUSED(n_slabs);
    SN_UNUSED(bytes);
    SN_UNUSED(caller_memory);
    *out = NULL;
    return nothing(err);
}

static void null_release(sn_memory *memory)
{
    SN_UNUSED(memory);
}

static snug_status null_write(sn_memory *memory, const sn_view *view, const void *plain,
                              snug_error *err)
{
    SN_UNUSED(memory);
    SN_UNUSED(view);
    SN_UNUSED(plain);
    return nothing(err);
}

static snug_status null_read(sn_memory *memory, const sn_view *view, void *plain, snug_error *err)
{
    SN_UNUSED(memory);
    SN_UNUSED(view);
    SN_UNUSED(plain);
    return nothing(err);
}

static snug_status null_prepare(sn_memory *memory, const sn_program *program, int64_t batch,
                                sn_exec **out, snug_error *err)
{
    SN_UNUSED(memory);
    SN_UNUSED(program);
    SN_UNUSED(batch);
    *out = NULL;
    return nothing(err);
}

static snug_status null_run(sn_exec *exec, const sn_step *step, size_t first, size_t count,
                            snug_error *err)
{
    SN_UNUSED(exec);
    SN_UNUSED(step);
    SN_UNUSED(first);
    SN_UNUSED(count);
    return nothing(err);
}

static void null_discard(sn_exec *exec)
{
    SN_UNUSED(exec);
}

static uint64_t null_measured_peak(const sn_exec *exec, size_t slab)
{
    SN_UNUSED(exec);
    SN_UNUSED(slab);
    return 0;
}

const sn_backend sn_backend_null = {
    .name = "null",
    .open = null_open,
    .close = null_close,
    .info = null_info,
    .layout_bytes = null_layout_bytes,
    .layout_name = null_layout_name,
    .propose = null_propose,
    .kernel_name = null_kernel_name,
    .reserve = null_reserve,
    .release = null_release,
    .write = null_write,
    .read = null_read,
    .prepare = null_prepare,
    .run = null_run,
    .discard = null_discard,
    .measured_peak = null_measured_peak,
};
