/* SPDX-License-Identifier: Apache-2.0
 *
 * The device: what it is, how tensors lie in it, which kernel an operator gets.
 *
 * Numbered invariants:
 *  1. a row of device->layouts never changes or moves to another index: programs hold indices;
 *  2. equal descriptors share a row, so that equal layouts compare equal by index;
 *  3. a proposal depends on the operation and the device only (dimensions, layouts, threads).
 */
#include "backend/cpu/internal.h"

#include <omp.h>
#include <stdio.h>
#include <string.h>

#include "base/host.h"

static snug_status cpu_open(sn_device **out, const char *spec, const sn_device_options *options,
                            snug_error *err)
{
    *out = NULL;
    if (spec && spec[0])
        return sn_fail(err, SNUG_E_USAGE, "device 'cpu' takes no '%s': write just cpu", spec);
    if (options && options->n_threads < 0)
        return sn_fail(err, SNUG_E_USAGE, "%d threads: at least 1 is needed", options->n_threads);
    sn_cpu_device *d = sn_alloc(SN_TAG_BACKEND, sizeof *d);
    if (!d)
        return sn_fail(err, SNUG_E_MEMORY, "no memory for the device's tables");
    d->base.backend = &sn_backend_cpu;
    d->simd = sn_cpu_simd_best();
    d->block = d->simd->width;
    d->n_threads = options && options->n_threads ? options->n_threads : sn_host_n_cpus();
    sn_map_init(&d->proposals, SN_TAG_BACKEND);
    snug_status s = sn_dnn_open(&d->dnn, d->simd->isa, err);
    if (s) {
        sn_map_deinit(&d->proposals);
        sn_free(d);
        return s;
    }
    *out = &d->base;
    return SNUG_OK;
}

static void cpu_close(sn_device *device)
{
    sn_cpu_device *d = (sn_cpu_device *)device;
    if (!d)
        return;
    for (size_t i = 0; i < d->layouts.n; i++) {
        sn_md_free(&d->layouts.at[i].md);
        sn_md_free(&d->layouts.at[i].plain);
    }
    SN_VEC_FREE(&d->layouts);
    SN_VEC_FREE(&d->kept);
    sn_map_deinit(&d->proposals);
    sn_dnn_close(&d->dnn);
    sn_free(d);
}

static void cpu_info(sn_device *device, sn_device_info *out)
{
    const sn_cpu_device *d = (const sn_cpu_device *)device;
    char name[64];
    sn_host_memory memory = {0, 0};
    memset(out, 0, sizeof *out);
    snprintf(out->name, sizeof out->name, "cpu %.52s, %d thread%s, %s",
             sn_host_cpu_name(name, sizeof name), d->n_threads, d->n_threads == 1 ? "" : "s",
             d->simd->name);
    if (sn_host_memory_now(&memory, NULL) == SNUG_OK) {
        out->total_bytes = memory.total_bytes;
        out->free_bytes = memory.available_bytes;
    }
    out->largest_bytes = out->total_bytes ? out->total_bytes : UINT64_MAX / 2;
    out->align_bytes = SN_CPU_ALIGN;
    out->n_queues = 1;
    out->n_threads = d->n_threads;
    out->is_host = true;
    /* A guess until kernels were measured: two FMA a cycle at 2.5 GHz, a memory channel and a half
     * for each core up to four. */
    out->flops = d->n_threads * 2.0 * 2.0 * SN_MIN(d->block, 8) * 2.5e9;
    out->bytes_per_second = 12e9 * SN_MIN(d->n_threads, 4);
}

uint64_t sn_cpu_layout_bytes(const sn_cpu_device *device, const sn_desc *desc, sn_layout layout)
{
    if (layout.kind == SN_LAYOUT_OPAQUE)
        return layout.index < device->layouts.n ? device->layouts.at[layout.index].bytes : 0;
    uint64_t n = 1;
    for (int i = 0; i < desc->shape.rank; i++) {
        uint64_t dim = (uint64_t)desc->shape.dim[i];
        if (layout.kind == SN_LAYOUT_BLOCKED && i == desc->shape.rank - 1)
            dim = (dim + layout.block - 1) / layout.block * layout.block;
        n *= dim;
    }
    return n * sn_dtype_bytes(desc->dtype);
}

static snug_status cpu_layout_bytes(sn_device *device, const sn_desc *desc, sn_layout layout,
                                    uint64_t *bytes, snug_error *err)
{
    const sn_cpu_device *d = (const sn_cpu_device *)device;
    char text[64];
    uint64_t plain;
    if (sn_desc_bytes(desc, &plain) || plain > UINT64_MAX / 64)
        return sn_fail(err, SNUG_E_INPUT, "a tensor of shape %s has too many bytes to count",
                       sn_shape_format(text, sizeof text, &desc->shape));
    if (layout.kind == SN_LAYOUT_BLOCKED && (desc->shape.rank != 4 || layout.block == 0))
        return sn_fail(err, SNUG_E_INTERNAL, "shape %s cannot lie in blocks of channels",
                       sn_shape_format(text, sizeof text, &desc->shape));
    if (layout.kind == SN_LAYOUT_OPAQUE && layout.index >= d->layouts.n)
        return sn_fail(err, SNUG_E_INTERNAL, "weight layout %d is none of this device's %zu",
                       layout.index, d->layouts.n);
    *bytes = sn_cpu_layout_bytes(d, desc, layout);
    return SNUG_OK;
}

static void cpu_layout_name(sn_device *device, sn_layout layout, char *out, size_t n)
{
    SN_UNUSED(device);
    switch (layout.kind) {
    case SN_LAYOUT_PLAIN:
        snprintf(out, n, "plain");
        break;
    case SN_LAYOUT_BLOCKED:
        snprintf(out, n, "blocked%d", layout.block);
        break;
    case SN_LAYOUT_OPAQUE:
        snprintf(out, n, "weights#%d", layout.index);
        break;
    default:
        snprintf(out, n, "unset");
    }
}

int sn_cpu_weight_layout_index(sn_cpu_device *device, const sn_md *md, const sn_md *plain,
                               bool is_depthwise)
{
    for (size_t i = 0; i < device->layouts.n; i++)
        if (sn_md_eq(&device->layouts.at[i].md, md) &&
            sn_md_eq(&device->layouts.at[i].plain, plain))
            return (int)i;
    if (device->layouts.n >= UINT16_MAX)
        return -1;
    sn_cpu_weight_layout row = {.bytes = sn_md_bytes(md), .is_depthwise = is_depthwise};
    if (sn_md_copy(&row.md, md))
        return -1;
    if (sn_md_copy(&row.plain, plain)) {
        sn_md_free(&row.md);
        return -1;
    }
    if (!SN_VEC_PUSH(SN_TAG_BACKEND, &device->layouts, row)) {
        sn_md_free(&row.md);
        sn_md_free(&row.plain);
        return -1;
    }
    return (int)device->layouts.n - 1;
}

/* ---- proposals ------------------------------------------------------------------------------- */

typedef struct proposal_key {
    sn_op_id op;
    int n_in, n_out;
    sn_conv_attrs attrs;
    sn_desc in[3], out[2];
    sn_layout in_layout[3], wish[2];
} proposal_key;

static void key_desc(sn_desc *out, const sn_desc *in)
{
    out->dtype = in->dtype;
    out->shape.rank = in->shape.rank;
    for (int i = 0; i < in->shape.rank; i++)
        out->shape.dim[i] = in->shape.dim[i];
}

/* Field by field: the padding of the caller's structs is not looked at. */
static void make_key(proposal_key *key, const sn_operation *o)
{
    memset(key, 0, sizeof *key);
    key->op = o->op;
    key->n_in = o->n_in;
    key->n_out = o->n_out;
    const sn_conv_attrs *a = &o->attrs->conv;
    for (int i = 0; i < 2; i++) {
        key->attrs.stride[i] = a->stride[i];
        key->attrs.dilation[i] = a->dilation[i];
        key->attrs.in_hw[i] = o->op == SN_OP_CONV2D_DX ? a->in_hw[i] : 0;
        key->attrs.kernel[i] = o->op == SN_OP_CONV2D_DW ? a->kernel[i] : 0;
    }
    for (int i = 0; i < 4; i++)
        key->attrs.pad[i] = a->pad[i];
    key->attrs.groups = a->groups;
    key->attrs.has_dbias = a->has_dbias;
    key->attrs.act.kind = a->act.kind;
    key->attrs.act.alpha = a->act.alpha;
    key->attrs.act.max = a->act.max;
    key->attrs.act.threshold = a->act.threshold;
    for (int i = 0; i < o->n_in && i < 3; i++) {
        key_desc(&key->in[i], &o->in[i]);
        key->in_layout[i] = o->in_layout[i];
    }
    for (int i = 0; i < o->n_out && i < 2; i++) {
        key_desc(&key->out[i], &o->out[i]);
        if (o->out_wish)
            key->wish[i] = o->out_wish[i];
    }
}

static bool is_convolution(sn_op_id op)
{
    return op == SN_OP_CONV2D || op == SN_OP_CONV2D_DX || op == SN_OP_CONV2D_DW;
}

static snug_status propose_first(sn_cpu_device *d, const sn_operation *o, sn_proposal *out,
                                 snug_error *err)
{
    const sn_cpu_kernel *const *list = sn_cpu_kernels(o->op);
    char why[sizeof out->why] = "";
    for (uint16_t i = 0; list[i]; i++) {
        memset(out, 0, sizeof *out);
        const char *refused = list[i]->propose(d, o, out);
        if (!refused) {
            out->kernel = i;
            memcpy(out->why, why, sizeof why);
            return SNUG_OK;
        }
        size_t used = strlen(why);
        snprintf(why + used, sizeof why - used, "%s%s: %s", used ? "; " : "", list[i]->name,
                 refused);
    }
    return sn_fail(err, SNUG_E_UNSUPPORTED, "device cpu has no kernel for '%s' here: %s",
                   sn_op_of(o->op)->name, why);
}

static snug_status cpu_propose(sn_device *device, const sn_operation *operation, sn_proposal *out,
                               snug_error *err)
{
    sn_cpu_device *d = (sn_cpu_device *)device;
    proposal_key key;
    bool cached = is_convolution(operation->op);
    if (cached) {
        make_key(&key, operation);
        const uint64_t *at = sn_map_find(&d->proposals, &key, sizeof key);
        if (at) {
            *out = d->kept.at[*at];
            return SNUG_OK;
        }
    }
    int before = omp_get_max_threads();
    omp_set_num_threads(d->n_threads);
    snug_status s = propose_first(d, operation, out, err);
    omp_set_num_threads(before);
    /* A proposal that could not be kept is found again the next time. */
    if (!s && cached && SN_VEC_PUSH(SN_TAG_BACKEND, &d->kept, *out))
        (void)sn_map_set(&d->proposals, &key, sizeof key, d->kept.n - 1);
    return s;
}

static const char *cpu_kernel_name(sn_device *device, sn_op_id op, uint16_t kernel)
{
    SN_UNUSED(device);
    const sn_cpu_kernel *const *list = sn_cpu_kernels(op);
    for (uint16_t i = 0; list[i]; i++)
        if (i == kernel)
            return list[i]->name;
    return "none";
}

const sn_backend sn_backend_cpu = {
    .name = "cpu",
    .open = cpu_open,
    .close = cpu_close,
    .info = cpu_info,
    .layout_bytes = cpu_layout_bytes,
    .layout_name = cpu_layout_name,
    .propose = cpu_propose,
    .kernel_name = cpu_kernel_name,
    .reserve = sn_cpu_reserve,
    .release = sn_cpu_release,
    .write = sn_cpu_write,
    .read = sn_cpu_read,
    .host_address = sn_cpu_host_address,
    .prepare = sn_cpu_prepare,
    .run = sn_cpu_run,
    .discard = sn_cpu_discard,
    .measured_peak = sn_cpu_measured_peak,
    .profile = sn_cpu_profile,
};
