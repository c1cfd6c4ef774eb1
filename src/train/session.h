/* SPDX-License-Identifier: Apache-2.0
 *
 * session.h - the inside of a session, for checkpoints and fit.
 *
 *     const sn_program_weight *w = sn_session_find(session, weight, slot);
 *     session->backend->read(session->memory, &w->view, values, err);
 *
 * Ownership: as in snug/session.h.  Threads: one at a time.
 */
#ifndef SN_TRAIN_SESSION_H
#define SN_TRAIN_SESSION_H

#include "backend/backend.h"
#include "graph/model.h"
#include "plan/plan.h"
#include "snug/session.h"

struct snug_session {
    snug_plan *plan;
    const snug_model *model;
    sn_device *device;
    const sn_backend *backend;
    sn_memory *memory;
    const sn_program *programs[3]; /* by sn_graph_mode; NULL: the plan has none */
    sn_exec *full[3];              /* for the plan's batch */
    sn_exec *part[3];              /* for a short batch of part_n samples */
    int64_t part_n[3];
    sn_graph_mode last_mode; /* whose outputs are to be read */
    sn_step step;
    uint64_t seed;
    int64_t n_fed;
    int64_t output_size;
    bool has_target;
    float *class_weights;
    size_t n_class_weights;
    float *scratch; /* host, plain: one batch of outputs, targets or sample weights */
    uint64_t scratch_bytes;
    double last_seconds, best_seconds, rehearsal_seconds;
    uint64_t allocations_at_open;
    bool profiling;
    snug_profile_row *profile;
    size_t n_profile;
};

/* Elements of a tensor in one sample of its batch. */
static inline int64_t sn_view_sample_size(const sn_view *view)
{
    const sn_shape *shape = &view->desc.shape;
    return sn_shape_n(shape) / shape->dim[0];
}
/* NULL when no program has it. slot -1: the weight itself. */
const sn_program_weight *sn_session_find(const snug_session *session, size_t weight, int slot);
/* First values of all constants, weights and slots. */
snug_status sn_session_initialize(snug_session *session, snug_error *err);
/* After a loss that is no number: forward again, instruction by instruction, to the first operator
 * whose output holds NaN or infinity. Always returns an error. */
snug_status sn_session_find_nonfinite(snug_session *session, sn_exec *exec, float loss,
                                      snug_error *err);

#endif
