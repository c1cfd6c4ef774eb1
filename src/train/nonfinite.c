/* SPDX-License-Identifier: Apache-2.0
 *
 * nonfinite.c - which operator made the first NaN: the forward pass again, one instruction at a
 * time, looking at every output.
 */
#include <math.h>
#include <stdio.h>

#include "train/session.h"

typedef struct range {
    float low, high;
    uint64_t n_bad, n;
} range;

/* The tensor's range over its finite numbers, and how many are not. False: it could not be read. */
static bool look(snug_session *session, const sn_view *view, int64_t batch, range *out)
{
    *out = (range){.low = INFINITY, .high = -INFINITY};
    sn_view part = *view;
    if (part.buffer == UINT32_MAX || part.desc.dtype != SN_F32) {
        return false;
    }
    if (part.desc.shape.rank > 0 && part.desc.shape.dim[0] == batch) {
        part.desc.shape.dim[0] = session->n_fed;
    }
    uint64_t bytes;
    float *values = sn_desc_bytes(&part.desc, &bytes) ? NULL : sn_alloc(SN_TAG_TRAIN, bytes);
    if (!values || session->backend->read(session->memory, &part, values, NULL)) {
        sn_free(values);
        return false;
    }
    out->n = bytes / sizeof *values;
    for (uint64_t i = 0; i < out->n; i++) {
        if (isfinite(values[i])) {
            out->low = fminf(out->low, values[i]);
            out->high = fmaxf(out->high, values[i]);
        } else {
            out->n_bad++;
        }
    }
    sn_free(values);
    return true;
}

static void describe_inputs(snug_session *session, const sn_instr *instr, int64_t batch, char *text,
                            size_t n)
{
    size_t used = 0;
    text[0] = 0;
    for (int i = 0; i < instr->n_in && used < n; i++) {
        range r;
        if (!look(session, &instr->in[i], batch, &r)) {
            continue;
        }
        const char *comma = used ? ", " : "";
        int k = r.n_bad == r.n
                    ? snprintf(text + used, n - used, "%sno finite number", comma)
                    : snprintf(text + used, n - used, "%s[%.3g, %.3g]%s", comma, (double)r.low,
                               (double)r.high, r.n_bad ? " and NaN or infinity" : "");
        used += k > 0 ? (size_t)k : 0;
    }
}

snug_status sn_session_find_nonfinite(snug_session *session, sn_exec *exec, float loss,
                                      snug_error *err)
{
    const sn_program *p = session->programs[SN_GRAPH_TRAIN];
    for (uint32_t i = 0; i < p->loss_end; i++) {
        const sn_instr *instr = &p->instrs[i];
        char inputs[100];
        describe_inputs(session, instr, p->batch, inputs, sizeof inputs);
        snug_status s = session->backend->run(exec, &session->step, i, 1, err);
        if (s) {
            return s;
        }
        for (int k = 0; k < instr->n_out; k++) {
            range r;
            if (look(session, &instr->out[k], p->batch, &r) && r.n_bad > 0) {
                return sn_fail(err, SNUG_E_NUMERIC,
                               "loss is %f in step %" PRIu64 ": %s of layer '%.32s' made %" PRIu64
                               " of %" PRIu64 " numbers NaN or infinite; its inputs: %s; try a "
                               "learning rate below %g",
                               (double)loss, session->step.number + 1, sn_op_of(instr->op)->name,
                               instr->layer, r.n_bad, r.n, inputs, (double)session->step.lr);
            }
        }
    }
    return sn_fail(err, SNUG_E_NUMERIC,
                   "loss is %f in step %" PRIu64
                   " though every operator's output is finite: look at "
                   "the targets",
                   (double)loss, session->step.number + 1);
}
