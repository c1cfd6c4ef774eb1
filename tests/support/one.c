/* SPDX-License-Identifier: Apache-2.0 */
#include "support/one.h"

#include <string.h>

static const sn_view no_view = {.buffer = UINT32_MAX, .desc = {SN_F32, {-1, {0}}}};

static snug_status place(one_op *one, sn_view *view, const sn_desc *desc, sn_layout layout,
                         snug_error *err)
{
    *view = no_view;
    if (sn_desc_is_absent(desc))
        return SNUG_OK;
    uint64_t bytes;
    snug_status s = one->device->backend->layout_bytes(one->device, desc, layout, &bytes, err);
    if (s)
        return s;
    uint32_t at = (uint32_t)one->program.n_buffers++;
    *view = (sn_view){.buffer = at,
                      .slab = 0,
                      .offset = one->slab_bytes,
                      .bytes = bytes,
                      .desc = *desc,
                      .layout = layout};
    one->buffer[at] = (sn_program_buffer){
        .name = "b", .bytes = bytes, .persistent = true, .offset = one->slab_bytes};
    one->slab_bytes += (bytes + 63) / 64 * 64;
    return SNUG_OK;
}

sn_operation one_operation(const one_op *one)
{
    return (sn_operation){.op = one->op,
                          .attrs = &one->attrs,
                          .n_in = one->n_in,
                          .n_out = one->n_out,
                          .in = one->in,
                          .out = one->out,
                          .in_layout = one->in_layout,
                          .out_wish = one->wish};
}

snug_status one_make(one_op *one, snug_error *err)
{
    const sn_backend *b = one->device->backend;
    sn_operation o = one_operation(one);
    snug_status s = b->propose(one->device, &o, &one->proposal, err);
    for (int i = 0; !s && i < one->n_in; i++)
        s = place(one, &one->in_view[i], &one->in[i], one->proposal.in[i], err);
    for (int i = 0; !s && i < one->n_out; i++) {
        if (one->share[i] && !sn_desc_is_absent(&one->out[i]))
            one->out_view[i] = one->in_view[one->share[i] - 1];
        else
            s = place(one, &one->out_view[i], &one->out[i], one->proposal.out[i], err);
    }
    if (s)
        return s;
    one->instr = (sn_instr){.op = one->op,
                            .kernel = one->proposal.kernel,
                            .attrs = one->attrs,
                            .n_in = one->n_in,
                            .n_out = one->n_out,
                            .in = one->in_view,
                            .out = one->out_view,
                            .reads = one->version,
                            .writes = one->version,
                            .workspace = no_view,
                            .layer = "one"};
    if (one->proposal.workspace_bytes) {
        sn_desc w = {SN_U8, {1, {(int64_t)one->proposal.workspace_bytes}}};
        s = place(one, &one->instr.workspace, &w, SN_PLAIN, err);
    }
    one->program.batch = one->batch ? one->batch : one->in[0].shape.dim[0];
    one->program.n_instrs = 1;
    one->program.n_slabs = 1;
    one->program.instrs = &one->instr;
    one->program.buffers = one->buffer;
    one->program.slab_bytes = &one->slab_bytes;
    void *caller[1] = {one->caller_memory};
    if (!s)
        s = b->reserve(one->device, 1, &one->slab_bytes, one->caller_memory ? caller : NULL,
                       &one->memory, err);
    if (!s)
        s = b->prepare(one->memory, &one->program,
                       one->run_batch ? one->run_batch : one->program.batch, &one->exec, err);
    return s;
}

snug_status one_write(one_op *one, int input, const void *plain, snug_error *err)
{
    return one->device->backend->write(one->memory, &one->in_view[input], plain, err);
}

snug_status one_run(one_op *one, const sn_step *step, snug_error *err)
{
    return one->device->backend->run(one->exec, step, 0, 1, err);
}

snug_status one_read(one_op *one, int output, void *plain, snug_error *err)
{
    return one->device->backend->read(one->memory, &one->out_view[output], plain, err);
}

void one_free(one_op *one)
{
    one->device->backend->discard(one->exec);
    one->device->backend->release(one->memory);
    one->exec = NULL;
    one->memory = NULL;
}
