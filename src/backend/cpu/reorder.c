/* SPDX-License-Identifier: Apache-2.0
 *
 * Between layouts. PLAIN <-> BLOCKED is ours (it writes the zeros past C); weights move by oneDNN.
 */
#include "backend/cpu/internal.h"
#include "backend/cpu/kernels.h"

#include <string.h>

/* ---- PLAIN <-> BLOCKED ----------------------------------------------------------------------- */

typedef struct block_job {
    int64_t n, pixels, c, block, element;
    const unsigned char *src;
    unsigned char *dst;
    bool to_blocked;
} block_job;

static void block_rows(const block_job *j, int64_t row, int64_t first, int64_t last)
{
    int64_t nb = sn_cpu_div_up(j->c, j->block), n = row / nb, b = row % nb;
    int64_t c0 = b * j->block, width = SN_MIN(j->block, j->c - c0);
    size_t e = (size_t)j->element, bytes = (size_t)width * e;
    size_t pad = (size_t)(j->block - width) * e;
    for (int64_t p = first; p < last; p++) {
        size_t plain = (size_t)((n * j->pixels + p) * j->c + c0) * e;
        size_t blocked = (size_t)((row * j->pixels + p) * j->block) * e;
        if (j->to_blocked) {
            memcpy(j->dst + blocked, j->src + plain, bytes);
            memset(j->dst + blocked + bytes, 0, pad);
        } else {
            memcpy(j->dst + plain, j->src + blocked, bytes);
        }
    }
}

static void block_part(void *context, int thread, int n_threads)
{
    const block_job *j = context;
    int64_t rows = j->n * sn_cpu_div_up(j->c, j->block), first, last;
    sn_cpu_part(rows * j->pixels, thread, n_threads, &first, &last);
    while (first < last) {
        int64_t row = first / j->pixels, p = first % j->pixels;
        int64_t end = SN_MIN(j->pixels, p + last - first);
        block_rows(j, row, p, end);
        first += end - p;
    }
}

static void move_blocked(const sn_cpu_device *device, const sn_desc *desc, const void *src,
                         void *dst, int block, bool to_blocked)
{
    const int64_t *d = desc->shape.dim;
    block_job j = {.n = d[0],
                   .pixels = d[1] * d[2],
                   .c = d[3],
                   .block = block,
                   .element = (int64_t)sn_dtype_bytes(desc->dtype),
                   .src = src,
                   .dst = dst,
                   .to_blocked = to_blocked};
    sn_cpu_parallel(device, block_part, &j);
}

typedef struct copy_job {
    const unsigned char *src;
    unsigned char *dst;
    uint64_t bytes;
} copy_job;

static void copy_part(void *context, int thread, int n_threads)
{
    const copy_job *j = context;
    int64_t first, last;
    sn_cpu_part((int64_t)j->bytes, thread, n_threads, &first, &last);
    memcpy(j->dst + first, j->src + first, (size_t)(last - first));
}

/* Everything but weights' own layouts; false: not one of these ways. */
static bool move_own(const sn_cpu_device *device, const sn_desc *desc, sn_layout from,
                     const void *src, sn_layout to, void *dst)
{
    if (sn_layout_eq(from, to)) {
        copy_job j = {src, dst, sn_cpu_layout_bytes(device, desc, from)};
        if (src != dst)
            sn_cpu_parallel(device, copy_part, &j);
        return true;
    }
    if (from.kind == SN_LAYOUT_PLAIN && to.kind == SN_LAYOUT_BLOCKED)
        move_blocked(device, desc, src, dst, to.block, true);
    else if (from.kind == SN_LAYOUT_BLOCKED && to.kind == SN_LAYOUT_PLAIN)
        move_blocked(device, desc, src, dst, from.block, false);
    else
        return false;
    return true;
}

static bool is_own(sn_layout from, sn_layout to)
{
    return sn_layout_eq(from, to) ||
           (from.kind == SN_LAYOUT_PLAIN && to.kind == SN_LAYOUT_BLOCKED) ||
           (from.kind == SN_LAYOUT_BLOCKED && to.kind == SN_LAYOUT_PLAIN);
}

/* ---- weights --------------------------------------------------------------------------------- */

/* The two descriptors; true: not a way between weights' layouts. */
static bool weight_mds(const sn_cpu_device *d, sn_layout from, sn_layout to, const sn_md **a,
                       const sn_md **b)
{
    bool from_own = from.kind == SN_LAYOUT_OPAQUE, to_own = to.kind == SN_LAYOUT_OPAQUE;
    if ((!from_own && from.kind != SN_LAYOUT_PLAIN) || (!to_own && to.kind != SN_LAYOUT_PLAIN) ||
        (!from_own && !to_own) || (from_own && from.index >= d->layouts.n) ||
        (to_own && to.index >= d->layouts.n))
        return true;
    *a = from_own ? &d->layouts.at[from.index].md : &d->layouts.at[to.index].plain;
    *b = to_own ? &d->layouts.at[to.index].md : &d->layouts.at[from.index].plain;
    return false;
}

bool sn_cpu_mover_scratch(const sn_cpu_device *device, sn_layout from, sn_layout to,
                          uint64_t *bytes)
{
    const sn_md *a, *b;
    sn_dnn_pd *pd;
    *bytes = 0;
    if (is_own(from, to))
        return false;
    if (weight_mds(device, from, to, &a, &b) || sn_dnn_reorder_pd(&pd, &device->dnn, a, b))
        return true;
    *bytes = sn_dnn_pd_scratch(pd);
    sn_dnn_pd_free(pd);
    return false;
}

typedef struct make_context {
    const sn_dnn *dnn;
    const sn_md *a, *b;
} make_context;

static bool make_reorder(sn_dnn_pd **out, void *context)
{
    const make_context *c = context;
    return sn_dnn_reorder_pd(out, c->dnn, c->a, c->b);
}

snug_status sn_cpu_mover_init(sn_cpu_mover *mover, sn_cpu_task *task, const sn_desc *desc,
                              sn_layout from, const void *src, sn_layout to, void *dst,
                              void *scratch, uint64_t scratch_bytes, snug_error *err)
{
    sn_cpu_device *d = task->device;
    memset(mover, 0, sizeof *mover);
    mover->desc = *desc;
    mover->from = from;
    mover->to = to;
    mover->src = src;
    mover->dst = dst;
    if (is_own(from, to))
        return SNUG_OK;
    uint64_t need;
    make_context c = {.dnn = &d->dnn};
    if (sn_cpu_mover_scratch(d, from, to, &need) || weight_mds(d, from, to, &c.a, &c.b) ||
        need > scratch_bytes)
        return sn_fail(err, SNUG_E_INTERNAL,
                       "no way between layouts %d and %d in %" PRIu64 " bytes", from.index,
                       to.index, scratch_bytes);
    struct {
        char what[8];
        sn_layout from, to;
    } key;
    memset(&key, 0, sizeof key);
    memcpy(key.what, "move", 5);
    key.from = from;
    key.to = to;
    mover->prim = sn_cpu_exec_prim(task->exec, &key, sizeof key, make_reorder, &c);
    /* oneDNN's own interface takes no const data. */
    sn_dnn_memory *in = sn_cpu_exec_memory(task->exec, c.a, (void *)(uintptr_t)src);
    sn_dnn_memory *out = sn_cpu_exec_memory(task->exec, c.b, dst);
    sn_dnn_memory *room = need ? sn_cpu_exec_scratch(task->exec, need, scratch) : NULL;
    if (!mover->prim || !in || !out || (need && !room))
        return sn_fail(err, SNUG_E_INTERNAL, "oneDNN refuses to move weights");
    mover->args[mover->n_args++] = (dnnl_exec_arg_t){DNNL_ARG_SRC, in};
    mover->args[mover->n_args++] = (dnnl_exec_arg_t){DNNL_ARG_DST, out};
    if (room)
        mover->args[mover->n_args++] = (dnnl_exec_arg_t){DNNL_ARG_SCRATCHPAD, room};
    return SNUG_OK;
}

snug_status sn_cpu_mover_run(const sn_cpu_device *device, const sn_cpu_mover *mover,
                             snug_error *err)
{
    if (!mover->prim) {
        move_own(device, &mover->desc, mover->from, mover->src, mover->to, mover->dst);
        return SNUG_OK;
    }
    if (sn_dnn_run(&device->dnn, mover->prim, mover->args, mover->n_args))
        return sn_fail(err, SNUG_E_DEVICE, "oneDNN failed to move weights");
    return SNUG_OK;
}

snug_status sn_cpu_move(sn_cpu_device *device, const sn_desc *desc, sn_layout from, const void *src,
                        sn_layout to, void *dst, snug_error *err)
{
    if (move_own(device, desc, from, src, to, dst))
        return SNUG_OK;
    const sn_md *a, *b;
    sn_dnn_pd *pd = NULL;
    if (weight_mds(device, from, to, &a, &b) || sn_dnn_reorder_pd(&pd, &device->dnn, a, b))
        return sn_fail(err, SNUG_E_INTERNAL, "no way between layouts %d and %d", from.kind,
                       to.kind);
    uint64_t need = sn_dnn_pd_scratch(pd);
    void *scratch = need ? sn_alloc(SN_TAG_BACKEND, need) : NULL;
    sn_dnn_prim *prim = sn_dnn_prim_new(pd);
    sn_dnn_pd_free(pd);
    sn_dnn_memory *in = sn_dnn_memory_new(&device->dnn, a, (void *)(uintptr_t)src);
    sn_dnn_memory *out = sn_dnn_memory_new(&device->dnn, b, dst);
    sn_dnn_memory *room = scratch ? sn_dnn_scratch_new(&device->dnn, need, scratch) : NULL;
    dnnl_exec_arg_t args[3] = {
        {DNNL_ARG_SRC, in}, {DNNL_ARG_DST, out}, {DNNL_ARG_SCRATCHPAD, room}};
    snug_status s = SNUG_OK;
    if (!prim || !in || !out || (need && !room) ||
        sn_dnn_run(&device->dnn, prim, args, room ? 3 : 2))
        s = sn_fail(err, SNUG_E_DEVICE, "oneDNN failed to move weights");
    sn_dnn_memory_free(in);
    sn_dnn_memory_free(out);
    sn_dnn_memory_free(room);
    sn_dnn_prim_free(prim);
    sn_free(scratch);
    return s;
}

/* ---- the operator ---------------------------------------------------------------------------- */

/* The caller states where from (in_layout) and where to (out_wish). */
static const char *propose_reorder(sn_cpu_device *device, const sn_operation *o, sn_proposal *out)
{
    if (!o->out_wish || o->out_wish[0].kind == SN_LAYOUT_UNSET ||
        o->in_layout[0].kind == SN_LAYOUT_UNSET)
        return "both layouts must be given";
    if (sn_cpu_mover_scratch(device, o->in_layout[0], o->out_wish[0], &out->workspace_bytes))
        return "no way between these layouts";
    out->in[0] = o->in_layout[0];
    out->out[0] = o->out_wish[0];
    return NULL;
}

static snug_status prepare_reorder(sn_cpu_task *task, snug_error *err)
{
    sn_cpu_mover *mover = sn_cpu_task_state(task, sizeof *mover, err);
    if (!mover)
        return SNUG_E_MEMORY;
    return sn_cpu_mover_init(mover, task, &task->in[0].desc, task->in[0].layout, task->in[0].data,
                             task->out[0].layout, task->out[0].data, task->workspace,
                             task->workspace_bytes, err);
}

static snug_status run_reorder(const sn_cpu_task *task, const sn_step *step, snug_error *err)
{
    SN_UNUSED(step);
    return sn_cpu_mover_run(task->device, task->state, err);
}

const sn_cpu_kernel sn_cpu_k_reorder = {"reorder", propose_reorder, prepare_reorder, run_reorder};
