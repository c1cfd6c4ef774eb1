/* SPDX-License-Identifier: Apache-2.0
 *
 * The last kernel of every list: the operator's plain C on PLAIN tensors. An output that the caller
 * wants otherwise is computed in the workspace and moved.
 */
#include "backend/cpu/internal.h"
#include "backend/cpu/kernels.h"

#include <string.h>

typedef struct reference_state {
    sn_call call;
    void *own_workspace;
    int n_movers;
    sn_cpu_mover movers[SN_MAX_OUT];
    sn_operand in[SN_MAX_IN], out[SN_MAX_OUT];
} reference_state;

static bool wants_move(const sn_desc *desc, sn_layout layout)
{
    return sn_cpu_present(desc) && layout.kind != SN_LAYOUT_PLAIN;
}

static uint64_t plain_bytes(const sn_cpu_device *device, const sn_desc *desc)
{
    return sn_align_up(sn_cpu_layout_bytes(device, desc, SN_PLAIN), SN_CPU_ALIGN);
}

static const char *propose(sn_cpu_device *device, const sn_operation *o, sn_proposal *out)
{
    const sn_op *op = sn_op_of(o->op);
    uint64_t moved = 0, scratch = 0;
    for (int i = 0; i < o->n_in; i++)
        out->in[i] = SN_PLAIN;
    for (int i = 0; i < o->n_out; i++) {
        out->out[i] = SN_PLAIN;
        if (!o->out_wish || o->out_wish[i].kind == SN_LAYOUT_UNSET ||
            !wants_move(&o->out[i], o->out_wish[i]))
            continue;
        uint64_t bytes;
        if (sn_cpu_mover_scratch(device, SN_PLAIN, o->out_wish[i], &bytes))
            return "no way to the layout asked for";
        out->out[i] = o->out_wish[i];
        moved += plain_bytes(device, &o->out[i]);
        scratch = SN_MAX(scratch, sn_align_up(bytes, SN_CPU_ALIGN));
    }
    uint64_t own = op->reference_workspace ? op->reference_workspace(o->attrs, o->in, o->n_in) : 0;
    out->workspace_bytes =
        moved || scratch ? sn_align_up(own, SN_CPU_ALIGN) + moved + scratch : own;
    return NULL;
}

static snug_status prepare(sn_cpu_task *task, snug_error *err)
{
    reference_state *state = sn_cpu_task_state(task, sizeof *state, err);
    if (!state)
        return SNUG_E_MEMORY;
    for (int i = 0; i < task->n_in; i++)
        state->in[i] = (sn_operand){task->in[i].data, task->in[i].desc};
    const sn_op *op = sn_op_of(task->op);
    sn_desc descs[SN_MAX_IN];
    for (int i = 0; i < task->n_in; i++)
        descs[i] = task->in[i].desc;
    uint64_t own =
        op->reference_workspace ? op->reference_workspace(task->attrs, descs, task->n_in) : 0;
    unsigned char *room = task->workspace;
    uint64_t used = sn_align_up(own, SN_CPU_ALIGN), end = task->workspace_bytes;
    if (own > end)
        return sn_fail(err, SNUG_E_INTERNAL, "%" PRIu64 " bytes of workspace, %" PRIu64 " needed",
                       end, own);
    void *temporary[SN_MAX_OUT] = {NULL};
    for (int i = 0; i < task->n_out; i++) {
        state->out[i] = (sn_operand){task->out[i].data, task->out[i].desc};
        if (!task->out[i].data || !wants_move(&task->out[i].desc, task->out[i].layout))
            continue;
        temporary[i] = room + used;
        used += plain_bytes(task->device, &task->out[i].desc);
        state->out[i].data = temporary[i];
    }
    snug_status s = SNUG_OK;
    for (int i = 0; !s && i < task->n_out; i++) {
        if (!temporary[i])
            continue;
        if (used > end)
            return sn_fail(err, SNUG_E_INTERNAL, "workspace of %" PRIu64 " bytes is too small",
                           end);
        s = sn_cpu_mover_init(&state->movers[state->n_movers++], task, &task->out[i].desc, SN_PLAIN,
                              temporary[i], task->out[i].layout, task->out[i].data, room + used,
                              end - used, err);
    }
    state->call = (sn_call){.attrs = task->attrs,
                            .in = state->in,
                            .out = state->out,
                            .n_in = task->n_in,
                            .n_out = task->n_out,
                            .workspace = task->workspace};
    return s;
}

static snug_status run(const sn_cpu_task *task, const sn_step *step, snug_error *err)
{
    const reference_state *state = task->state;
    sn_call call = state->call;
    call.step = step;
    sn_op_of(task->op)->reference(&call);
    snug_status s = SNUG_OK;
    for (int i = 0; !s && i < state->n_movers; i++)
        s = sn_cpu_mover_run(task->device, &state->movers[i], err);
    return s;
}

const sn_cpu_kernel sn_cpu_k_reference = {"reference", propose, prepare, run};
