/* SPDX-License-Identifier: Apache-2.0
 *
 * device.h - runs one operator on a backend as a program of one instruction: proposed, placed
 * between guard bytes, prepared, run and read back. Inputs must be unchanged afterwards, guards
 * too, the padding of blocked outputs zero, and the measured peak the planned one.
 *
 *     device_runner d;  device_open(&d, &device_variants[0], DEVICE_PLAIN);
 *     tape *t = tape_new(device_run, &d);
 *
 * Ownership: device_close ends what device_open gave.  Threads: one.
 */
#ifndef TESTS_OPS_DEVICE_H
#define TESTS_OPS_DEVICE_H

#include "ops/tape.h"

#include <stdlib.h>

#include "backend/backend.h"
#include "backend/cpu/cpu.h"
#include "backend/torture/torture.h"

/* Every backend that computes, the CPU's also with narrower vectors than this machine has. */
static const struct device_variant {
    const sn_backend *backend;
    const char *isa; /* SNUG_CPU_ISA, NULL: unset */
} device_variants[] = {{&sn_backend_cpu, "generic"},
                       {&sn_backend_cpu, "avx2"},
                       {&sn_backend_cpu, NULL},
                       {&sn_backend_torture, NULL}};

typedef enum device_layouts {
    DEVICE_PLAIN,  /* every input stands in PLAIN before it is proposed */
    DEVICE_BLOCKED /* 4-D activations in the device's blocks, weights unset */
} device_layouts;

typedef struct device_runner {
    sn_device *device;
    sn_device_info info;
    device_layouts layouts;
    const char *isa;
    bool in_place; /* outputs over inputs wherever the operator says that they may */
    uint8_t block;
    char kernel[64]; /* of the last run */
} device_runner;

static inline bool device_is_weight(sn_op_id op, int i)
{
    return (op == SN_OP_CONV2D || op == SN_OP_CONV2D_DX) && i == 1;
}

/* The block of channels that the device likes for a convolution of 32 channels, 0 if none. */
static inline uint8_t device_block(sn_device *device)
{
    const sn_attrs attrs = {
        .conv = {.stride = {1, 1}, .dilation = {1, 1}, .pad = {1, 1, 1, 1}, .groups = 1}};
    const sn_desc in[3] = {
        {SN_F32, {4, {2, 8, 8, 32}}}, {SN_F32, {4, {3, 3, 32, 32}}}, sn_desc_absent()};
    const sn_desc out[1] = {{SN_F32, {4, {2, 8, 8, 32}}}};
    const sn_layout layouts[3] = {SN_PLAIN, {SN_LAYOUT_UNSET, 0, 0}, SN_PLAIN};
    const sn_operation o = {.op = SN_OP_CONV2D,
                            .attrs = &attrs,
                            .n_in = 3,
                            .n_out = 1,
                            .in = in,
                            .out = out,
                            .in_layout = layouts};
    sn_proposal p = {0};
    if (device->backend->propose(device, &o, &p, NULL))
        return 0;
    return p.in[0].kind == SN_LAYOUT_BLOCKED ? p.in[0].block : 0;
}

static inline void device_open(device_runner *d, const struct device_variant *variant,
                               device_layouts layouts)
{
    const sn_device_options options = {.n_threads = 2, .seed = 3};
    const sn_backend *backend = variant->backend;
    snug_error err = SNUG_ERROR_INIT;
    memset(d, 0, sizeof *d);
    if (variant->isa)
        setenv("SNUG_CPU_ISA", variant->isa, 1);
    else
        unsetenv("SNUG_CPU_ISA");
    d->isa = variant->isa ? variant->isa : "all";
    const char *spec =
        backend == &sn_backend_torture && layouts == DEVICE_BLOCKED ? "layouts=1" : "";
    if (backend->open(&d->device, spec, &options, &err))
        fail_msg("%s: %s", backend->name, err.what);
    backend->info(d->device, &d->info);
    d->layouts = layouts;
    d->block = device_block(d->device);
}

static inline void device_close(device_runner *d)
{
    d->device->backend->close(d->device);
}

/* ---- one instruction ------------------------------------------------------------------------- */

typedef struct device_job {
    device_runner *runner;
    const sn_call *call;
    sn_op_id op;
    sn_desc in[SN_MAX_IN], out[SN_MAX_OUT];
    sn_layout in_layout[SN_MAX_IN];
    sn_proposal proposal;
    sn_view in_view[SN_MAX_IN], out_view[SN_MAX_OUT];
    sn_version none[SN_MAX_IN];
    sn_program_buffer buffer[SN_MAX_IN + SN_MAX_OUT + 1];
    sn_instr instr;
    sn_program program;
    uint32_t n_buffers;
    uint64_t slab_bytes;
    sn_memory *memory;
    unsigned char *expected; /* the slab before the run */
} device_job;

static inline sn_view device_absent(void)
{
    sn_view v = {.buffer = UINT32_MAX, .desc = sn_desc_absent(), .layout = SN_PLAIN};
    return v;
}

/* The next place, behind a guard. */
static inline sn_view device_place(device_job *j, const sn_desc *desc, sn_layout layout,
                                   uint64_t bytes)
{
    const uint64_t align = SN_MAX(j->runner->info.align_bytes, 64);
    sn_view v = {
        .buffer = j->n_buffers, .slab = 0, .bytes = bytes, .desc = *desc, .layout = layout};
    v.offset = sn_align_up(j->slab_bytes, align) + align;
    j->buffer[j->n_buffers] = (sn_program_buffer){.name = "operand",
                                                  .bytes = bytes,
                                                  .persistent = true, /* read after the run */
                                                  .kind = SN_BYTES_ACTIVATIONS,
                                                  .offset = v.offset};
    j->n_buffers++;
    j->slab_bytes = v.offset + bytes;
    return v;
}

static inline sn_view device_place_tensor(device_job *j, const sn_desc *desc, sn_layout layout)
{
    sn_device *device = j->runner->device;
    uint64_t bytes = 0;
    snug_error err = SNUG_ERROR_INIT;
    if (sn_desc_is_absent(desc))
        return device_absent();
    if (device->backend->layout_bytes(device, desc, layout, &bytes, &err))
        fail_msg("layout_bytes: %s", err.what);
    return device_place(j, desc, layout, bytes);
}

static inline bool device_overwrites(sn_op_id op)
{
    return op == SN_OP_UPDATE || op == SN_OP_DENSE_UPDATE || op == SN_OP_MOVING_AVERAGE;
}

/* The input that output i lies over, -1: it has a place of its own. */
static inline int device_over(const device_job *j, int i)
{
    const sn_op *op = sn_op_of(j->op);
    if (!op->in_place || !(j->runner->in_place || device_overwrites(j->op)))
        return -1;
    int over = op->in_place(j->call->attrs, i);
    return over >= 0 && j->call->in[over].data && j->call->out[i].data &&
                   j->in[over].dtype == j->out[i].dtype &&
                   tape_bytes(&j->in[over]) == tape_bytes(&j->out[i]) &&
                   sn_layout_eq(j->proposal.in[over], j->proposal.out[i])
               ? over
               : -1;
}

static inline void device_propose(device_job *j)
{
    device_runner *d = j->runner;
    snug_error err = SNUG_ERROR_INIT;
    for (int i = 0; i < j->call->n_in; i++) {
        j->in[i] = j->call->in[i].data ? j->call->in[i].desc : sn_desc_absent();
        j->in_layout[i] = SN_PLAIN;
        if (device_is_weight(j->op, i))
            j->in_layout[i] = (sn_layout){SN_LAYOUT_UNSET, 0, 0};
        else if (d->layouts == DEVICE_BLOCKED && d->block && j->in[i].shape.rank == 4)
            j->in_layout[i] = SN_BLOCKED(d->block);
    }
    for (int i = 0; i < j->call->n_out; i++)
        j->out[i] = j->call->out[i].data ? j->call->out[i].desc : sn_desc_absent();
    /* A reorder is the one operator whose result is the caller's choice: the other layout. */
    const sn_layout wish = d->layouts == DEVICE_PLAIN && d->block ? SN_BLOCKED(d->block) : SN_PLAIN;
    const sn_operation o = {.op = j->op,
                            .attrs = j->call->attrs,
                            .n_in = j->call->n_in,
                            .n_out = j->call->n_out,
                            .in = j->in,
                            .out = j->out,
                            .in_layout = j->in_layout,
                            .out_wish = j->op == SN_OP_REORDER ? &wish : NULL};
    if (d->device->backend->propose(d->device, &o, &j->proposal, &err))
        fail_msg("%s: %s", sn_op_of(j->op)->name, err.what);
    snprintf(d->kernel, sizeof d->kernel, "%s",
             d->device->backend->kernel_name(d->device, j->op, j->proposal.kernel));
}

static inline void device_lay_out(device_job *j)
{
    const sn_desc bytes = {SN_U8, {1, {(int64_t)j->proposal.workspace_bytes}}};
    for (int i = 0; i < j->call->n_in; i++)
        j->in_view[i] = device_place_tensor(j, &j->in[i], j->proposal.in[i]);
    for (int i = 0; i < j->call->n_out; i++) {
        int over = device_over(j, i);
        if (over < 0) {
            j->out_view[i] = device_place_tensor(j, &j->out[i], j->proposal.out[i]);
        } else {
            j->out_view[i] = j->in_view[over];
            j->out_view[i].desc = j->out[i];
        }
    }
    j->instr = (sn_instr){.op = j->op,
                          .kernel = j->proposal.kernel,
                          .attrs = *j->call->attrs,
                          .n_in = j->call->n_in,
                          .n_out = j->call->n_out,
                          .in = j->in_view,
                          .out = j->out_view,
                          .reads = j->none,
                          .writes = j->none,
                          .layer = "test"};
    for (int i = 0; i < SN_MAX_IN; i++)
        j->none[i].buffer = UINT32_MAX;
    j->instr.workspace = device_absent();
    if (j->proposal.workspace_bytes)
        j->instr.workspace = device_place(j, &bytes, SN_PLAIN, j->proposal.workspace_bytes);
    const sn_view absent = device_absent();
    j->program = (sn_program){.batch = j->in[0].shape.rank > 0 ? j->in[0].shape.dim[0] : 1,
                              .n_instrs = 1,
                              .n_buffers = j->n_buffers,
                              .n_slabs = 1,
                              .instrs = &j->instr,
                              .buffers = j->buffer,
                              .slab_bytes = &j->slab_bytes,
                              .x = absent,
                              .target = absent,
                              .sample_weight = absent,
                              .loss = absent,
                              .prediction = absent};
}

static inline sn_view device_whole(const device_job *j)
{
    sn_view v = {.buffer = 0,
                 .bytes = j->slab_bytes,
                 .layout = SN_PLAIN,
                 .desc = {SN_U8, {1, {(int64_t)j->slab_bytes}}}};
    return v;
}

/* Guards, then NaN where outputs and the workspace will be, then the inputs. */
static inline void device_fill(device_job *j)
{
    const sn_backend *b = j->runner->device->backend;
    const sn_view whole = device_whole(j);
    snug_error err = SNUG_ERROR_INIT;
    memset(j->expected, TAPE_FILL, (size_t)j->slab_bytes);
    for (uint32_t i = 0; i < j->n_buffers; i++)
        memset(j->expected + j->buffer[i].offset, 0xFF, (size_t)j->buffer[i].bytes);
    if (b->write(j->memory, &whole, j->expected, &err))
        fail_msg("write: %s", err.what);
    for (int i = 0; i < j->call->n_in; i++)
        if (j->call->in[i].data && b->write(j->memory, &j->in_view[i], j->call->in[i].data, &err))
            fail_msg("write: %s", err.what);
    if (b->read(j->memory, &whole, j->expected, &err))
        fail_msg("read: %s", err.what);
}

/* Channels past C of a blocked output are zeros (-0.0 is one). */
static inline void device_check_padding(const device_job *j, const unsigned char *slab,
                                        const sn_view *v)
{
    if (v->buffer == UINT32_MAX || v->layout.kind != SN_LAYOUT_BLOCKED || v->desc.dtype != SN_F32)
        return;
    const int64_t *d = v->desc.shape.dim, block = v->layout.block;
    const int64_t n_blocks = (d[3] + block - 1) / block, pixels = d[1] * d[2];
    for (int64_t n = 0; n < d[0]; n++)
        for (int64_t p = 0; p < pixels; p++)
            for (int64_t c = d[3]; c < n_blocks * block; c++) {
                int64_t at = ((n * n_blocks + c / block) * pixels + p) * block + c % block;
                float value;
                memcpy(&value, slab + v->offset + (uint64_t)at * sizeof value, sizeof value);
                if (value != 0)
                    fail_msg("%s, kernel %s: %g in the padding of channels", sn_op_of(j->op)->name,
                             j->runner->kernel, (double)value);
            }
}

/* Nothing but the outputs and the workspace has changed. */
static inline void device_check(device_job *j)
{
    const sn_backend *b = j->runner->device->backend;
    const sn_view whole = device_whole(j);
    snug_error err = SNUG_ERROR_INIT;
    unsigned char *after = sn_alloc(SN_TAG_TEST, (size_t)j->slab_bytes);
    assert_non_null(after);
    if (b->read(j->memory, &whole, after, &err))
        fail_msg("read: %s", err.what);
    for (int i = 0; i < j->call->n_out; i++)
        device_check_padding(j, after, &j->out_view[i]);
    for (int i = 0; i <= j->call->n_out; i++) {
        const sn_view *v = i < j->call->n_out ? &j->out_view[i] : &j->instr.workspace;
        if (v->buffer != UINT32_MAX)
            memcpy(after + v->offset, j->expected + v->offset, (size_t)v->bytes);
    }
    for (uint64_t i = 0; i < j->slab_bytes; i++)
        if (after[i] != j->expected[i])
            fail_msg("%s, kernel %s: byte %llu of %llu was changed", sn_op_of(j->op)->name,
                     j->runner->kernel, (unsigned long long)i, (unsigned long long)j->slab_bytes);
    sn_free(after);
}

static inline void device_run(void *context, sn_op_id op, const sn_call *call)
{
    device_runner *d = context;
    const sn_backend *b = d->device->backend;
    device_job *j = sn_alloc(SN_TAG_TEST, sizeof *j);
    sn_exec *exec = NULL;
    snug_error err = SNUG_ERROR_INIT;
    assert_non_null(j);
    j->runner = d, j->call = call, j->op = op;
    device_propose(j);
    device_lay_out(j);
    assert_true(j->slab_bytes <= d->info.largest_bytes);
    j->expected = sn_alloc(SN_TAG_TEST, (size_t)j->slab_bytes);
    assert_non_null(j->expected);
    if (b->reserve(d->device, 1, &j->slab_bytes, NULL, &j->memory, &err))
        fail_msg("reserve: %s", err.what);
    device_fill(j);
    if (b->prepare(j->memory, &j->program, j->program.batch, &exec, &err))
        fail_msg("prepare %s, kernel %s: %s", sn_op_of(op)->name, d->kernel, err.what);
    if (b->run(exec, call->step, 0, 1, &err))
        fail_msg("run %s, kernel %s: %s", sn_op_of(op)->name, d->kernel, err.what);
    assert_int_equal(b->measured_peak(exec, 0), j->slab_bytes);
    device_check(j);
    for (int i = 0; i < call->n_out; i++)
        if (call->out[i].data && b->read(j->memory, &j->out_view[i], call->out[i].data, &err))
            fail_msg("read: %s", err.what);
    b->discard(exec);
    b->release(j->memory);
    sn_free(j->expected);
    sn_free(j);
}

#endif
