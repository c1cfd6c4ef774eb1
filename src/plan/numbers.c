/* SPDX-License-Identifier: Apache-2.0
 *
 * numbers.c - what a plan reports besides its places: the time by the roofline, what a framework
 * that keeps everything would hold, and what a lower bound says of a set of lives.
 */
#include <string.h>

#include "plan/plan.h"

/* An instruction takes as long as its arithmetic or its traffic, whichever is longer. */
double sn_program_seconds(const sn_program *program, const sn_device_info *info, double *flops)
{
    double seconds = 0, all = 0;
    for (size_t i = 0; i < program->n_instrs; i++) {
        const sn_instr *in = &program->instrs[i];
        sn_desc ins[SN_MAX_IN], outs[SN_MAX_OUT];
        sn_cost cost = {0};
        for (int k = 0; k < in->n_in && k < SN_MAX_IN; k++)
            ins[k] = in->in[k].desc;
        for (int k = 0; k < in->n_out && k < SN_MAX_OUT; k++)
            outs[k] = in->out[k].desc;
        sn_op_of(in->op)->cost(&in->attrs, ins, in->n_in, outs, in->n_out, &cost);
        all += cost.flops;
        if (info->flops > 0 && info->bytes_per_second > 0)
            seconds += SN_MAX(cost.flops / info->flops,
                              (cost.read_bytes + cost.written_bytes) / info->bytes_per_second);
    }
    if (flops)
        *flops = all;
    return seconds;
}

/* Each temporary from its producer to its last reader, gradients of weights and results to the end,
 * what persists always: the largest sum. */
snug_status sn_plan_keep_all(const sn_graph *graph, uint64_t *bytes, snug_error *err)
{
    size_t n_values = graph->values.n, n_nodes = graph->nodes.n;
    uint32_t *last;
    snug_status s = sn_graph_last_uses(graph, &last, err);
    if (s)
        return s;
    uint64_t *born = sn_alloc_array(SN_TAG_PLAN, n_nodes + 2, sizeof *born);
    uint64_t *dead = sn_alloc_array(SN_TAG_PLAN, n_nodes + 2, sizeof *dead);
    if (!born || !dead) {
        s = sn_fail(err, SNUG_E_MEMORY, "no memory for the plan");
        goto out;
    }
    uint64_t always = 0;
    for (size_t i = n_nodes; i-- > 0;) { /* who reads a view reads what it views */
        const sn_node *node = &graph->nodes.at[i];
        uint32_t *of = node->op == SN_OP_RESHAPE ? &last[node->in[0]] : NULL;
        if (of && last[node->out[0]] != UINT32_MAX)
            *of = SN_MAX(*of, last[node->out[0]]);
    }
    for (size_t i = 0; i < n_values && !s; i++) {
        const sn_value *v = &graph->values.at[i];
        uint64_t size;
        if (v->storage != i)
            continue;
        if (v->kind == SN_VALUE_TEMP && v->producer != UINT32_MAX &&
            graph->nodes.at[v->producer].op == SN_OP_RESHAPE)
            continue; /* a view of its input */
        if (sn_desc_bytes(&v->desc, &size) || size > UINT64_MAX / 1024)
            s = sn_fail(err, SNUG_E_UNSUPPORTED, "tensor '%s' has no size that fits 64 bits",
                        v->name);
        else if (v->kind != SN_VALUE_TEMP || v->producer == UINT32_MAX)
            always += size;
        else {
            bool stays = v->keep || v->is_gradient;
            uint32_t end =
                stays ? (uint32_t)n_nodes : (last[i] == UINT32_MAX ? v->producer : last[i]);
            born[v->producer] += size;
            dead[end + 1] += size;
        }
    }
    uint64_t live = always, most = always;
    for (size_t i = 0; i < n_nodes && !s; i++) {
        live += born[i];
        live -= dead[i];
        most = SN_MAX(most, live);
    }
    *bytes = most;
out:
    sn_free(born);
    sn_free(dead);
    sn_free(last);
    return s;
}
