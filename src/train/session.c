/* SPDX-License-Identifier: Apache-2.0
 *
 * session.c - a plan with its memory, and the steps that are made in it.
 *
 * Invariants:
 *  1. device bytes are reserved here and nowhere else, from a judged plan;
 *  2. after snug_session_open our own code allocates nothing, but for the kernels of a short batch
 *     when its size is first seen;
 *  3. a step that fails leaves the weights as they were: nothing before loss_end writes them.
 */
#include "train/session.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/host.h"
#include "data/data.h"

#define SHORT_OF_BUDGET_BYTES (8 * SN_MIB)
#define LONG_REHEARSAL_SECONDS 3.0

static const sn_program *widest(const snug_session *session)
{
    return session->programs[SN_GRAPH_TRAIN]      ? session->programs[SN_GRAPH_TRAIN]
           : session->programs[SN_GRAPH_EVALUATE] ? session->programs[SN_GRAPH_EVALUATE]
                                                  : session->programs[SN_GRAPH_PREDICT];
}

const sn_program_weight *sn_session_find(const snug_session *session, size_t weight, int slot)
{
    for (int m = 0; m < 3; m++) {
        const sn_program *p = session->programs[m];
        for (size_t i = 0; p && i < p->n_weights; i++) {
            if (p->weights[i].weight == (int32_t)weight && p->weights[i].slot == slot) {
                return &p->weights[i];
            }
        }
    }
    return NULL;
}

/* ---- opening ---- */

static uint64_t scratch_bytes(const snug_session *session)
{
    uint64_t most = 64;
    for (int m = 0; m < 3; m++) {
        const sn_program *p = session->programs[m];
        uint64_t n = 0;
        if (p && p->prediction.buffer != UINT32_MAX && !sn_desc_bytes(&p->prediction.desc, &n)) {
            most = SN_MAX(most, n);
        }
        if (p && p->target.buffer != UINT32_MAX && !sn_desc_bytes(&p->target.desc, &n)) {
            most = SN_MAX(most, n);
        }
        most = p ? SN_MAX(most, (uint64_t)p->batch * sizeof(float)) : most;
    }
    return most;
}

static snug_status prepare_all(snug_session *session, snug_error *err)
{
    snug_status s = SNUG_OK;
    for (int m = 0; m < 3 && !s; m++) {
        const sn_program *p = session->programs[m];
        if (p) {
            s = session->backend->prepare(session->memory, p, p->batch, &session->full[m], err);
        }
    }
    return s;
}

/* The whole step once on zeros: every page is touched and every library has taken what it takes,
 * before anything is worth losing. */
static snug_status rehearse(snug_session *session, snug_error *err)
{
    const sn_program *p = widest(session);
    int mode = p == session->programs[0] ? 0 : p == session->programs[1] ? 1 : 2;
    sn_step step = {.seed = session->seed, .n_batch = (double)p->batch};
    snug_status s = SNUG_OK;
    for (int i = 0; i < 2 && !s; i++) { /* the second is the honest one: no page is new */
        double start = sn_now();
        s = session->backend->run(session->full[mode], &step, 0, p->n_instrs, err);
        session->rehearsal_seconds = sn_now() - start;
        if (session->rehearsal_seconds > LONG_REHEARSAL_SECONDS) {
            break;
        }
    }
    const snug_plan_info *info = snug_plan_numbers(session->plan);
    uint64_t peak = 0;
    if (s || !snug_plan_device(session->plan)->is_host || info->budget_is_free_memory ||
        sn_host_process_peak(&peak, NULL)) {
        return s;
    }
    /* A plan that comes nearer to its budget than the margin is held to what it leaves. */
    uint64_t margin = SN_MAX(SHORT_OF_BUDGET_BYTES, info->budget_bytes / 100);
    margin = SN_MIN(margin, info->budget_bytes - SN_MIN(info->budget_bytes, info->peak_bytes));
    if (peak + margin > info->budget_bytes) {
        uint64_t more = peak + margin - info->budget_bytes;
        s = sn_fail(err, SNUG_E_DOES_NOT_FIT,
                    "after a rehearsal the process had held %" PRIu64 " MiB of a budget of %" PRIu64
                    " MiB: libraries took more than was planned for them; give %" PRIu64
                    " MiB more",
                    peak / SN_MIB, info->budget_bytes / SN_MIB, more / SN_MIB + 1);
        if (err) {
            err->need = peak + margin;
            err->have = info->budget_bytes;
        }
    }
    return s;
}

/* Constants are persistent buffers of the graph's CONSTANT values, found by name. */
static snug_status write_constants(snug_session *session, int mode, snug_error *err)
{
    const sn_program *program = session->programs[mode];
    const sn_graph *graph = sn_plan_graph(session->plan, (sn_graph_mode)mode);
    snug_status s = SNUG_OK;
    for (size_t v = 0; v < graph->values.n && !s; v++) {
        const sn_value *value = &graph->values.at[v];
        for (size_t b = 0; value->kind == SN_VALUE_CONSTANT && b < program->n_buffers && !s; b++) {
            const sn_program_buffer *buffer = &program->buffers[b];
            if (buffer->persistent && sn_str_eq(buffer->name, value->name)) {
                sn_view view = {(uint32_t)b,   buffer->slab, buffer->offset,
                                buffer->bytes, value->desc,  value->layout};
                const float *values = session->model->constants.at[value->weight].values;
                s = session->backend->write(session->memory, &view, values, err);
            }
        }
    }
    return s;
}

static snug_status first_values(snug_session *session, const sn_program_weight *w, float *values,
                                snug_error *err)
{
    if (w->slot < 0) {
        return sn_model_init_weight(session->model, (size_t)w->weight, session->seed, values, err);
    }
    const sn_graph *graph = sn_plan_graph(session->plan, SN_GRAPH_TRAIN);
    float start = sn_update_slot_start(&graph->options.update, w->slot);
    int64_t n = sn_shape_n(&w->view.desc.shape);
    for (int64_t k = 0; k < n; k++) {
        values[k] = start;
    }
    return SNUG_OK;
}

snug_status sn_session_initialize(snug_session *session, snug_error *err)
{
    snug_status s = SNUG_OK;
    for (int m = 0; m < 3 && !s; m++) {
        if (session->programs[m]) {
            s = write_constants(session, m, err);
        }
    }
    const sn_program *p = widest(session);
    void *(*address)(sn_memory *, const sn_view *) = session->backend->host_address;
    /* Weights in the PLAIN layout (the large dense ones) are made in place; the others through a
     * buffer as large as the largest of them. */
    uint64_t most = 0;
    for (size_t i = 0; i < p->n_weights; i++) {
        if (!address || p->weights[i].view.layout.kind != SN_LAYOUT_PLAIN) {
            most = SN_MAX(most, (uint64_t)sn_shape_n(&p->weights[i].view.desc.shape));
        }
    }
    float *plain = sn_alloc(SN_TAG_TRAIN, (most + 1) * sizeof *plain);
    if (!plain) {
        return sn_fail(err, SNUG_E_MEMORY, "no memory for the largest weight");
    }
    for (size_t i = 0; i < p->n_weights && !s; i++) {
        const sn_program_weight *w = &p->weights[i];
        if (address && w->view.layout.kind == SN_LAYOUT_PLAIN) {
            s = first_values(session, w, address(session->memory, &w->view), err);
        } else {
            s = first_values(session, w, plain, err);
            s = s ? s : session->backend->write(session->memory, &w->view, plain, err);
        }
    }
    sn_free(plain);
    return s;
}

static snug_status open_memory(snug_session *session, const snug_session_options *o,
                               snug_error *err)
{
    size_t n = snug_plan_n_slabs(session->plan);
    uint64_t *bytes = sn_alloc_array(SN_TAG_TRAIN, n + 1, sizeof *bytes);
    session->scratch_bytes = scratch_bytes(session);
    session->scratch = sn_alloc(SN_TAG_TRAIN, session->scratch_bytes);
    if (session->profiling && session->programs[SN_GRAPH_TRAIN]) {
        session->n_profile = session->programs[SN_GRAPH_TRAIN]->n_instrs;
        session->profile =
            sn_alloc_array(SN_TAG_TRAIN, session->n_profile, sizeof *session->profile);
    }
    if (!bytes || !session->scratch || (session->n_profile && !session->profile)) {
        sn_free(bytes);
        return sn_fail(err, SNUG_E_MEMORY, "no memory for a session");
    }
    for (size_t i = 0; i < n; i++) {
        bytes[i] = snug_plan_slab_bytes(session->plan, i);
    }
    snug_status s = session->backend->reserve(session->device, n, bytes, o ? o->memory : NULL,
                                              &session->memory, err);
    sn_free(bytes);
    return s;
}

static snug_status does_not_fit(const snug_plan_info *info, snug_error *err)
{
    sn_fail(err, SNUG_E_DOES_NOT_FIT,
            "the plan needs %" PRIu64 " MiB, the budget is %" PRIu64 " MiB",
            info->peak_bytes / SN_MIB, info->budget_bytes / SN_MIB);
    if (err) {
        err->need = info->peak_bytes;
        err->have = info->budget_bytes;
    }
    return SNUG_E_DOES_NOT_FIT;
}

snug_status snug_session_open(snug_session **out, snug_plan *plan,
                              const snug_session_options *options, snug_error *err)
{
    *out = NULL;
    if (!snug_plan_numbers(plan)->fits) {
        return does_not_fit(snug_plan_numbers(plan), err);
    }
    snug_session *session = sn_alloc(SN_TAG_TRAIN, sizeof *session);
    if (!session) {
        return sn_fail(err, SNUG_E_MEMORY, "no memory for a session");
    }
    session->plan = plan;
    session->model = sn_plan_model(plan);
    session->device = sn_plan_device(plan);
    session->backend = session->device->backend;
    session->seed = options && options->seed ? options->seed : 1;
    session->profiling = options && options->profile;
    session->step.lr = snug_plan_optimizer(plan)->lr;
    session->step.seed = session->seed;
    for (int m = 0; m < 3; m++) {
        session->programs[m] = sn_plan_program(plan, (sn_graph_mode)m);
    }
    session->output_size = sn_view_sample_size(&widest(session)->prediction);
    snug_status s = open_memory(session, options, err);
    s = s ? s : prepare_all(session, err);
    s = s || (options && options->no_rehearsal) ? s : rehearse(session, err);
    s = s ? s : sn_session_initialize(session, err);
    if (s) {
        snug_session_free(session);
        return s;
    }
    session->allocations_at_open = sn_ledger_calls();
    *out = session;
    return SNUG_OK;
}

void snug_session_free(snug_session *session)
{
    if (!session) {
        return;
    }
    for (int m = 0; m < 3; m++) {
        session->backend->discard(session->full[m]);
        session->backend->discard(session->part[m]);
    }
    session->backend->release(session->memory);
    sn_free(session->class_weights);
    sn_free(session->scratch);
    sn_free(session->profile);
    sn_free(session);
}

/* ---- feeding ---- */

static sn_view prefix(const sn_view *view, int64_t n)
{
    sn_view part = *view;
    part.desc.shape.dim[0] = n;
    return part;
}

static snug_status feed_classes(snug_session *session, const snug_slot *slot, const sn_view *target,
                                snug_error *err)
{
    int64_t n_classes = SN_MAX(session->output_size, 2);
    for (int64_t i = 0; i < slot->n; i++) {
        int32_t c = slot->classes[i];
        if (c < 0 || c >= n_classes) {
            return sn_fail(err, SNUG_E_INPUT,
                           "sample %" PRId64
                           " of the batch is of class %d, the model knows classes "
                           "0 to %" PRId64,
                           i, c, n_classes - 1);
        }
    }
    sn_view view = prefix(target, slot->n);
    if (target->desc.dtype == SN_I32) {
        return session->backend->write(session->memory, &view, slot->classes, err);
    }
    int64_t k = sn_view_sample_size(target);
    memset(session->scratch, 0, (size_t)(slot->n * k) * sizeof(float));
    for (int64_t i = 0; i < slot->n; i++) {
        if (k == 1) {
            session->scratch[i] = (float)slot->classes[i];
        } else {
            session->scratch[i * k + slot->classes[i]] = 1;
        }
    }
    return session->backend->write(session->memory, &view, session->scratch, err);
}

static snug_status feed_weights(snug_session *session, const snug_slot *slot, const sn_view *weight,
                                snug_error *err)
{
    for (int64_t i = 0; i < slot->n; i++) {
        size_t c = slot->classes ? (size_t)slot->classes[i] : SIZE_MAX;
        session->scratch[i] = c < session->n_class_weights ? session->class_weights[c] : 1;
    }
    sn_view view = prefix(weight, slot->n);
    return session->backend->write(session->memory, &view, session->scratch, err);
}

static snug_status feed_targets(snug_session *session, const snug_slot *slot, const sn_program *p,
                                snug_error *err)
{
    session->has_target = p->target.buffer != UINT32_MAX && (slot->classes || slot->y);
    if (!session->has_target) {
        return SNUG_OK;
    }
    if (slot->classes) {
        return feed_classes(session, slot, &p->target, err);
    }
    if (p->target.desc.dtype != SN_F32) {
        return sn_fail(err, SNUG_E_INPUT,
                       "the data's targets are real numbers but the loss takes "
                       "class numbers: choose a loss for regression (mse)");
    }
    snug_status s =
        sn_data_check_sizes(0, 0, slot->target_size, sn_view_sample_size(&p->target), err);
    if (s) {
        return s;
    }
    sn_view y = prefix(&p->target, slot->n);
    return session->backend->write(session->memory, &y, slot->y, err);
}

snug_status snug_session_feed(snug_session *session, const snug_slot *slot, snug_error *err)
{
    const sn_program *p = widest(session);
    session->n_fed = 0;
    if (slot->n < 1 || slot->n > p->batch) {
        return sn_fail(err, SNUG_E_USAGE,
                       "a batch of %" PRId64 " samples, the plan is for 1 to %" PRId64, slot->n,
                       p->batch);
    }
    sn_view x = prefix(&p->x, slot->n);
    snug_status s = sn_data_check_sizes(slot->sample_size, sn_view_sample_size(&p->x), 0, 0, err);
    s = s ? s : session->backend->write(session->memory, &x, slot->x, err);
    s = s ? s : feed_targets(session, slot, p, err);
    if (!s && p->sample_weight.buffer != UINT32_MAX) {
        s = feed_weights(session, slot, &p->sample_weight, err);
    }
    session->n_fed = s ? 0 : slot->n;
    return s;
}

snug_status snug_session_class_weights(snug_session *session, const float *weights, size_t n,
                                       snug_error *err)
{
    if (weights && widest(session)->sample_weight.buffer == UINT32_MAX) {
        return sn_fail(err, SNUG_E_USAGE, "the plan was made without sample weights");
    }
    sn_free(session->class_weights);
    session->class_weights = NULL;
    session->n_class_weights = 0;
    if (weights) {
        session->class_weights = sn_alloc_array(SN_TAG_TRAIN, n, sizeof *weights);
        if (!session->class_weights) {
            return sn_fail(err, SNUG_E_MEMORY, "no memory for %zu class weights", n);
        }
        memcpy(session->class_weights, weights, n * sizeof *weights);
        session->n_class_weights = n;
    }
    return SNUG_OK;
}

void snug_session_set_lr(snug_session *session, float lr)
{
    session->step.lr = lr;
}

/* ---- running ---- */

/* The kernels for what was fed; those for a short batch are made when its size is first seen. */
static snug_status exec_for(snug_session *session, sn_graph_mode mode, sn_exec **out,
                            snug_error *err)
{
    const sn_program *p = session->programs[mode];
    if (!p) {
        return sn_fail(err, SNUG_E_USAGE, "the plan has no program for this");
    }
    if (session->n_fed < 1) {
        return sn_fail(err, SNUG_E_USAGE, "no batch was fed");
    }
    if (mode != SN_GRAPH_PREDICT && !session->has_target) {
        return sn_fail(err, SNUG_E_INPUT, "the batch has no targets");
    }
    session->step.n_batch = (double)session->n_fed;
    session->last_mode = mode;
    if (session->n_fed == p->batch) {
        *out = session->full[mode];
        return SNUG_OK;
    }
    if (session->part_n[mode] != session->n_fed) {
        session->backend->discard(session->part[mode]);
        session->part[mode] = NULL;
        session->part_n[mode] = 0;
        snug_status s = session->backend->prepare(session->memory, p, session->n_fed,
                                                  &session->part[mode], err);
        if (s) {
            return s;
        }
        session->part_n[mode] = session->n_fed;
    }
    *out = session->part[mode];
    return SNUG_OK;
}

static void keep_profile(snug_session *session, const sn_program *program, sn_exec *exec)
{
    static const char *const phases[] = {"forward", "backward", "update"};
    const double *seconds = session->backend->profile(exec, true);
    for (size_t i = 0; seconds && i < session->n_profile; i++) {
        const sn_instr *instr = &program->instrs[i];
        session->profile[i] = (snug_profile_row){
            sn_op_of(instr->op)->name,
            session->backend->kernel_name(session->device, instr->op, instr->kernel), instr->layer,
            phases[instr->phase], seconds[i]};
    }
}

static void note_time(snug_session *session, const sn_program *p, sn_exec *exec, double seconds)
{
    if (session->n_fed < p->batch) {
        return;
    }
    session->last_seconds = seconds;
    if (session->best_seconds == 0 || seconds < session->best_seconds) {
        session->best_seconds = seconds;
    }
    if (session->profiling && session->backend->profile) {
        keep_profile(session, p, exec);
    }
}

snug_status snug_session_step(snug_session *session, float *loss, snug_error *err)
{
    sn_exec *exec = NULL;
    snug_status s = exec_for(session, SN_GRAPH_TRAIN, &exec, err);
    if (s) {
        return s;
    }
    const sn_program *p = session->programs[SN_GRAPH_TRAIN];
    if (session->profiling && session->backend->profile) {
        session->backend->profile(exec, true);
    }
    double start = sn_now();
    float value = 0;
    s = session->backend->run(exec, &session->step, 0, p->loss_end, err);
    s = s ? s : session->backend->read(session->memory, &p->loss, &value, err);
    if (!s && !isfinite(value)) {
        return sn_session_find_nonfinite(session, exec, value, err);
    }
    s = s ? s
          : session->backend->run(exec, &session->step, p->loss_end, p->n_instrs - p->loss_end,
                                  err);
    if (s) {
        return s;
    }
    note_time(session, p, exec, sn_now() - start);
    session->step.number++;
    if (loss) {
        *loss = value;
    }
    return SNUG_OK;
}

snug_status snug_session_evaluate(snug_session *session, float *loss, snug_error *err)
{
    sn_exec *exec = NULL;
    float value = 0;
    snug_status s = exec_for(session, SN_GRAPH_EVALUATE, &exec, err);
    if (s) {
        return s;
    }
    const sn_program *p = session->programs[SN_GRAPH_EVALUATE];
    s = session->backend->run(exec, &session->step, 0, p->n_instrs, err);
    s = s ? s : session->backend->read(session->memory, &p->loss, &value, err);
    if (!s && loss) {
        *loss = value;
    }
    return s;
}

snug_status snug_session_predict(snug_session *session, snug_error *err)
{
    sn_exec *exec = NULL;
    snug_status s = exec_for(session, SN_GRAPH_PREDICT, &exec, err);
    return s ? s
             : session->backend->run(exec, &session->step, 0,
                                     session->programs[SN_GRAPH_PREDICT]->n_instrs, err);
}

snug_status snug_session_outputs(snug_session *session, float *out, snug_error *err)
{
    const sn_program *p = session->programs[session->last_mode];
    if (!p || session->n_fed < 1) {
        return sn_fail(err, SNUG_E_USAGE, "nothing was run yet");
    }
    sn_view view = prefix(&p->prediction, session->n_fed);
    return session->backend->read(session->memory, &view, out, err);
}

/* ---- looking ---- */

int64_t snug_session_output_size(const snug_session *session)
{
    return session->output_size;
}

uint64_t snug_session_step_number(const snug_session *session)
{
    return session->step.number;
}

void snug_session_set_step_number(snug_session *session, uint64_t number)
{
    session->step.number = number;
}

static snug_status no_such_state(const snug_session *session, size_t weight, int slot,
                                 snug_error *err)
{
    return sn_fail(err, SNUG_E_NOT_FOUND,
                   "the program holds no weight number %zu (of %zu), slot %d", weight,
                   session->model->weights.n, slot);
}

snug_status snug_session_weight(snug_session *session, size_t weight, int slot, float *values,
                                snug_error *err)
{
    const sn_program_weight *w = sn_session_find(session, weight, slot);
    return w ? session->backend->read(session->memory, &w->view, values, err)
             : no_such_state(session, weight, slot, err);
}

snug_status snug_session_set_weight(snug_session *session, size_t weight, int slot,
                                    const float *values, snug_error *err)
{
    const sn_program_weight *w = sn_session_find(session, weight, slot);
    return w ? session->backend->write(session->memory, &w->view, values, err)
             : no_such_state(session, weight, slot, err);
}

int snug_session_n_slots(const snug_session *session)
{
    const sn_graph *graph = sn_plan_graph(session->plan, SN_GRAPH_TRAIN);
    return graph ? sn_update_n_slots(&graph->options.update) : 0;
}

void snug_session_measure(const snug_session *session, snug_session_numbers *out)
{
    *out = (snug_session_numbers){.planned_peak_bytes = snug_plan_arena_bytes(session->plan),
                                  .last_step_seconds = session->last_seconds,
                                  .best_step_seconds = session->best_seconds,
                                  .rehearsal_seconds = session->rehearsal_seconds,
                                  .allocations = sn_ledger_calls() - session->allocations_at_open};
    size_t n_slabs = snug_plan_n_slabs(session->plan);
    for (size_t slab = 0; slab < n_slabs; slab++) {
        uint64_t most = 0;
        for (int m = 0; m < 3; m++) {
            if (session->full[m]) {
                most = SN_MAX(most, session->backend->measured_peak(session->full[m], slab));
            }
        }
        out->measured_peak_bytes += most;
    }
    uint64_t peak = 0;
    if (!sn_host_process_peak(&peak, NULL)) {
        out->process_peak_bytes = peak;
    }
}

size_t snug_session_profile(const snug_session *session, const snug_profile_row **rows)
{
    *rows = session->profile;
    return session->n_profile;
}

const snug_plan *snug_session_plan(const snug_session *session)
{
    return session->plan;
}

uint64_t snug_live_bytes(void)
{
    return sn_ledger_live_bytes();
}
