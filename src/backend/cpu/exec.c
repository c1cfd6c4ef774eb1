/* SPDX-License-Identifier: Apache-2.0
 *
 * A program made ready: pointers resolved, primitives made, and then run in order.
 *
 * Numbered invariants:
 *  1. every range of a task lies inside its slab, with the size that its own descriptor states;
 *  2. run allocates nothing of ours.
 */
#include "backend/batched.h"
#include "backend/cpu/internal.h"

#include <omp.h>
#include <string.h>

void sn_cpu_parallel(const sn_cpu_device *device, void (*fn)(void *, int, int), void *context)
{
    if (device->n_threads == 1) {
        fn(context, 0, 1);
        return;
    }
#pragma omp parallel num_threads(device->n_threads)
    fn(context, omp_get_thread_num(), omp_get_num_threads());
}

void sn_cpu_parallel_over(const sn_cpu_device *device, uint64_t bytes, void (*fn)(void *, int, int),
                          void *context)
{
    if (bytes < 64 * SN_KIB)
        fn(context, 0, 1);
    else
        sn_cpu_parallel(device, fn, context);
}

void *sn_cpu_task_state(sn_cpu_task *task, size_t bytes, snug_error *err)
{
    task->state = sn_arena_alloc(&task->exec->arena, bytes);
    if (!task->state)
        (void)sn_fail(err, SNUG_E_MEMORY, "no memory for a prepared instruction");
    return task->state;
}

snug_status sn_cpu_check_scratch(const sn_cpu_task *task, uint64_t bytes, snug_error *err)
{
    if (bytes > task->workspace_bytes)
        return sn_fail(err, SNUG_E_INTERNAL, "%" PRIu64 " bytes of scratch, %" PRIu64 " planned",
                       bytes, task->workspace_bytes);
    return SNUG_OK;
}

/* ---- prepare --------------------------------------------------------------------------------- */

static snug_status resolve(sn_exec *exec, const sn_view *view, int64_t batch, bool batched,
                           sn_cpu_arg *out, snug_error *err)
{
    out->desc = view->desc;
    out->layout = view->layout;
    if (view->buffer == UINT32_MAX)
        return SNUG_OK;
    if (batched && out->desc.shape.rank > 0 && out->desc.shape.dim[0] == exec->program->batch)
        out->desc.shape.dim[0] = batch;
    out->bytes = sn_cpu_layout_bytes(exec->device, &out->desc, out->layout);
    uint64_t end;
    const sn_memory *m = exec->memory;
    if (view->slab >= m->n_slabs || sn_add_u64(&end, view->offset, out->bytes) ||
        end > m->slabs[view->slab].bytes) /* 1 */
        return sn_fail(err, SNUG_E_INTERNAL,
                       "%" PRIu64 " bytes at %" PRIu64 " of slab %u end after the planned peak",
                       out->bytes, view->offset, view->slab);
    out->data = m->slabs[view->slab].data + view->offset;
    return SNUG_OK;
}

static snug_status prepare_task(sn_exec *exec, size_t at, int64_t batch, snug_error *err)
{
    const sn_instr *instr = &exec->program->instrs[at];
    sn_cpu_task *task = &exec->tasks[at];
    const sn_cpu_kernel *const *list = sn_cpu_kernels(instr->op);
    for (uint16_t i = 0; i <= instr->kernel; i++)
        if (!list[i])
            return sn_fail(err, SNUG_E_INTERNAL, "'%s' has no kernel %d on the cpu",
                           sn_op_of(instr->op)->name, instr->kernel);
    task->kernel = list[instr->kernel];
    task->device = exec->device;
    task->exec = exec;
    task->op = instr->op;
    task->attrs = &instr->attrs;
    task->n_in = instr->n_in;
    task->n_out = instr->n_out;
    task->in = sn_arena_alloc_array(&exec->arena, (size_t)instr->n_in + 1, sizeof *task->in);
    task->out = sn_arena_alloc_array(&exec->arena, (size_t)instr->n_out + 1, sizeof *task->out);
    if (!task->in || !task->out)
        return sn_fail(err, SNUG_E_MEMORY, "no memory for the prepared program");
    uint32_t mask = sn_batched_operands(instr, exec->program->batch);
    snug_status s = SNUG_OK;
    for (int i = 0; !s && i < instr->n_in; i++)
        s = resolve(exec, &instr->in[i], batch, mask & SN_BATCHED_IN(i), &task->in[i], err);
    for (int i = 0; !s && i < instr->n_out; i++)
        s = resolve(exec, &instr->out[i], batch, mask & SN_BATCHED_OUT(i), &task->out[i], err);
    if (!s && instr->workspace.buffer != UINT32_MAX) {
        const sn_memory *m = exec->memory;
        const sn_view *w = &instr->workspace;
        uint64_t end;
        if (w->slab >= m->n_slabs || sn_add_u64(&end, w->offset, w->bytes) ||
            end > m->slabs[w->slab].bytes) /* 1 */
            return sn_fail(err, SNUG_E_INTERNAL, "a workspace ends after the planned peak");
        task->workspace = m->slabs[w->slab].data + w->offset;
        task->workspace_bytes = w->bytes;
    }
    if (!s && task->kernel->prepare)
        s = task->kernel->prepare(task, err);
    if (s)
        return sn_where(err, "%s %s", sn_op_of(instr->op)->name, instr->layer);
    return SNUG_OK;
}

static snug_status prepare_all(sn_exec *exec, int64_t batch, snug_error *err)
{
    const sn_program *p = exec->program;
    exec->tasks = sn_arena_alloc_array(&exec->arena, p->n_instrs + 1, sizeof *exec->tasks);
    exec->seconds = sn_arena_alloc_array(&exec->arena, p->n_instrs + 1, sizeof *exec->seconds);
    exec->peak = sn_arena_alloc_array(&exec->arena, exec->memory->n_slabs + 1, sizeof *exec->peak);
    if (!exec->tasks || !exec->seconds || !exec->peak)
        return sn_fail(err, SNUG_E_MEMORY, "no memory for %zu prepared instructions", p->n_instrs);
    int before = omp_get_max_threads();
    omp_set_num_threads(exec->device->n_threads);
    snug_status s = SNUG_OK;
    for (size_t i = 0; !s && i < p->n_instrs; i++)
        s = prepare_task(exec, i, batch, err);
    omp_set_num_threads(before);
    return s;
}

snug_status sn_cpu_prepare(sn_memory *memory, const sn_program *program, int64_t batch,
                           sn_exec **out, snug_error *err)
{
    *out = NULL;
    if (batch < 1 || batch > program->batch)
        return sn_fail(err, SNUG_E_INTERNAL,
                       "a program for batch %" PRId64 " cannot run %" PRId64 " samples",
                       program->batch, batch);
    sn_exec *exec = sn_alloc(SN_TAG_BACKEND, sizeof *exec);
    if (!exec)
        return sn_fail(err, SNUG_E_MEMORY, "no memory for a prepared program");
    exec->device = memory->device;
    exec->memory = memory;
    exec->program = program;
    sn_arena_init(&exec->arena, SN_TAG_BACKEND);
    sn_map_init(&exec->primitives, SN_TAG_BACKEND);
    snug_status s = prepare_all(exec, batch, err);
    if (s) {
        sn_cpu_discard(exec);
        return s;
    }
    *out = exec;
    return SNUG_OK;
}

void sn_cpu_discard(sn_exec *exec)
{
    if (!exec)
        return;
    for (size_t i = 0; i < exec->memories.n; i++)
        sn_dnn_memory_free(exec->memories.at[i]);
    for (size_t i = 0; i < exec->prims.n; i++)
        sn_dnn_prim_free(exec->prims.at[i]);
    SN_VEC_FREE(&exec->memories);
    SN_VEC_FREE(&exec->prims);
    sn_map_deinit(&exec->primitives);
    sn_arena_deinit(&exec->arena);
    sn_free(exec);
}

sn_dnn_prim *sn_cpu_exec_prim(sn_exec *exec, const void *key, size_t key_bytes,
                              bool (*make)(sn_dnn_pd **out, void *context), void *context)
{
    const uint64_t *at = sn_map_find(&exec->primitives, key, key_bytes);
    if (at)
        return exec->prims.at[*at];
    sn_dnn_pd *pd = NULL;
    if (make(&pd, context))
        return NULL;
    sn_dnn_prim *prim = sn_dnn_prim_new(pd);
    sn_dnn_pd_free(pd);
    if (!prim)
        return NULL;
    if (!SN_VEC_PUSH(SN_TAG_BACKEND, &exec->prims, prim)) {
        sn_dnn_prim_free(prim);
        return NULL;
    }
    /* Without memory for the key it is merely not shared. */
    (void)sn_map_set(&exec->primitives, key, key_bytes, exec->prims.n - 1);
    return prim;
}

static sn_dnn_memory *keep_memory(sn_exec *exec, sn_dnn_memory *memory)
{
    if (memory && !SN_VEC_PUSH(SN_TAG_BACKEND, &exec->memories, memory)) {
        sn_dnn_memory_free(memory);
        return NULL;
    }
    return memory;
}

sn_dnn_memory *sn_cpu_exec_memory(sn_exec *exec, const sn_md *md, void *data)
{
    return keep_memory(exec, sn_dnn_memory_new(&exec->device->dnn, md, data));
}

sn_dnn_memory *sn_cpu_exec_scratch(sn_exec *exec, uint64_t bytes, void *data)
{
    return keep_memory(exec, sn_dnn_scratch_new(&exec->device->dnn, bytes, data));
}

/* ---- run ------------------------------------------------------------------------------------- */

static void raise_peak(sn_exec *exec, const sn_view *view, uint64_t bytes)
{
    if (view->buffer != UINT32_MAX && view->offset + bytes > exec->peak[view->slab])
        exec->peak[view->slab] = view->offset + bytes;
}

static void measure(sn_exec *exec, size_t at)
{
    const sn_instr *instr = &exec->program->instrs[at];
    const sn_cpu_task *task = &exec->tasks[at];
    for (int i = 0; i < instr->n_in; i++)
        raise_peak(exec, &instr->in[i], task->in[i].bytes);
    for (int i = 0; i < instr->n_out; i++)
        raise_peak(exec, &instr->out[i], task->out[i].bytes);
    raise_peak(exec, &instr->workspace, task->workspace_bytes);
}

snug_status sn_cpu_run(sn_exec *exec, const sn_step *step, size_t first, size_t count,
                       snug_error *err)
{
    if (first > exec->program->n_instrs || count > exec->program->n_instrs - first)
        return sn_fail(err, SNUG_E_INTERNAL, "instructions %zu to %zu of %zu", first, first + count,
                       exec->program->n_instrs);
    int before = omp_get_max_threads();
    omp_set_num_threads(exec->device->n_threads);
    snug_status s = SNUG_OK;
    double start = exec->profiled ? sn_now() : 0;
    for (size_t i = first; !s && i < first + count; i++) {
        const sn_cpu_task *task = &exec->tasks[i];
        measure(exec, i);
        s = task->kernel->run(task, step, err);
        if (exec->profiled) {
            double now = sn_now();
            exec->seconds[i] = now - start;
            start = now;
        }
    }
    omp_set_num_threads(before);
    return s;
}

uint64_t sn_cpu_measured_peak(const sn_exec *exec, size_t slab)
{
    return slab < exec->memory->n_slabs ? exec->peak[slab] : 0;
}

const double *sn_cpu_profile(sn_exec *exec, bool enable)
{
    exec->profiled = enable;
    return exec->seconds;
}
