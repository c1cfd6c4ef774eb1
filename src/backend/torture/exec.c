/* SPDX-License-Identifier: Apache-2.0
 *
 * exec.c - running a program as unkindly as the rules allow.
 *
 * Invariants:
 *  1. an instruction runs only when the earlier ones of its queue and those it waits for have run;
 *     everything else is up to the seed;
 *  2. a kernel sees copies between guards, never the slabs;
 *  3. a temporary holds NaN until the first instruction that uses it runs, and again as soon as the
 *     last one has run (results: until the next step).
 */
#include "backend/torture/internal.h"

#include <string.h>

#include "backend/batched.h"
#include "base/arena.h"
#include "base/rng.h"

enum { N_QUEUES = 2, GUARD_BYTE = 0x5a };

typedef struct copy {
    sn_view view;   /* desc and bytes for this batch */
    uint8_t *plain; /* between guards */
    uint64_t bytes; /* plain */
    bool is_shared; /* an output that lies on an input: the same copy */
} copy;

typedef struct state {
    sn_memory *memory;
    const sn_program *program;
    int64_t batch;
    sn_arena arena;
    uint8_t *scratch; /* room for the copies of any instruction */
    uint64_t scratch_bytes;
    uint32_t *uses; /* of each buffer, by the whole program */
    uint32_t *left; /* this step */
    bool *is_result;
    bool *done;
    uint64_t *peak;
    uint64_t n_runs;
} state;

static state *state_of(const sn_exec *exec)
{
    return (state *)(uintptr_t)exec;
}

/* ---- preparing ------------------------------------------------------------------------------- */

static bool is_absent(const sn_view *view)
{
    return view->buffer == UINT32_MAX;
}

static sn_view for_batch(const state *st, const sn_view *view, bool batched)
{
    sn_view v = *view;
    if (!is_absent(view) && batched && v.desc.shape.rank > 0 &&
        v.desc.shape.dim[0] == st->program->batch)
        v.desc.shape.dim[0] = st->batch;
    if (!is_absent(view))
        v.bytes = sn_torture_layout_bytes(&v.desc, v.layout);
    return v;
}

static uint64_t plain_bytes(const sn_desc *desc)
{
    uint64_t bytes = 0;
    return sn_desc_bytes(desc, &bytes) ? 0 : bytes;
}

/* Copies of an instruction's operands laid out in the scratch; returns the bytes that they take. */
static uint64_t lay_out(const state *st, const sn_instr *in, copy *ins, copy *outs,
                        uint8_t **workspace)
{
    uint32_t mask = sn_batched_operands(in, st->program->batch);
    uint64_t at = SN_TORTURE_GUARD;
    for (int k = 0; k < in->n_in + in->n_out; k++) {
        bool is_out = k >= in->n_in;
        int i = is_out ? k - in->n_in : k;
        copy *c = is_out ? &outs[i] : &ins[i];
        const sn_view *view = is_out ? &in->out[i] : &in->in[i];
        *c = (copy){.view = for_batch(st, view, mask >> (is_out ? 16 + i : i) & 1)};
        if (is_absent(view))
            continue;
        c->bytes = plain_bytes(&c->view.desc);
        for (int m = 0; is_out && m < in->n_in; m++)
            if (!is_absent(&in->in[m]) && in->in[m].slab == view->slab &&
                in->in[m].offset == view->offset && ins[m].bytes == c->bytes) {
                c->plain = ins[m].plain;
                c->is_shared = true;
                break;
            }
        if (c->is_shared)
            continue;
        c->plain = st->scratch ? st->scratch + at : NULL;
        at += sn_align_up(c->bytes, SN_TORTURE_GUARD) + SN_TORTURE_GUARD;
    }
    *workspace = st->scratch ? st->scratch + at : NULL;
    return at + sn_align_up(in->workspace.bytes, SN_TORTURE_GUARD) + SN_TORTURE_GUARD;
}

static void count_uses(state *st)
{
    for (size_t i = 0; i < st->program->n_instrs; i++) {
        const sn_instr *in = &st->program->instrs[i];
        for (int k = 0; k < in->n_in; k++)
            if (!is_absent(&in->in[k]))
                st->uses[in->in[k].buffer]++;
        for (int k = 0; k < in->n_out; k++)
            if (!is_absent(&in->out[k]))
                st->uses[in->out[k].buffer]++;
    }
    const sn_view *results[] = {&st->program->loss, &st->program->prediction};
    for (size_t i = 0; i < SN_LEN(results); i++)
        if (!is_absent(results[i]))
            st->is_result[results[i]->buffer] = true;
}

snug_status sn_torture_prepare(sn_memory *memory, const sn_program *program, int64_t batch,
                               sn_exec **out, snug_error *err)
{
    *out = NULL;
    if (batch < 1 || batch > program->batch)
        return sn_fail(err, SNUG_E_INTERNAL, "a program for %" PRId64 " cannot run %" PRId64,
                       program->batch, batch);
    state *st = sn_alloc(SN_TAG_BACKEND, sizeof *st);
    if (!st)
        return sn_fail(err, SNUG_E_MEMORY, "no memory for a prepared program");
    *st = (state){.memory = memory, .program = program, .batch = batch};
    sn_arena_init(&st->arena, SN_TAG_BACKEND);
    size_t n = program->n_buffers + 1;
    st->uses = sn_arena_alloc_array(&st->arena, n, sizeof *st->uses);
    st->left = sn_arena_alloc_array(&st->arena, n, sizeof *st->left);
    st->is_result = sn_arena_alloc_array(&st->arena, n, sizeof *st->is_result);
    st->done = sn_arena_alloc_array(&st->arena, program->n_instrs + 1, sizeof *st->done);
    st->peak = sn_arena_alloc_array(&st->arena, memory->n_slabs + 1, sizeof *st->peak);
    bool ok = st->uses && st->left && st->is_result && st->done && st->peak;
    for (size_t i = 0; ok && i < program->n_instrs; i++) {
        copy ins[SN_MAX_IN], outs[SN_MAX_OUT];
        uint8_t *workspace;
        st->scratch_bytes =
            SN_MAX(st->scratch_bytes, lay_out(st, &program->instrs[i], ins, outs, &workspace));
    }
    if (ok) {
        count_uses(st);
        st->scratch = sn_alloc(SN_TAG_BACKEND, st->scratch_bytes);
    }
    if (!ok || !st->scratch) {
        sn_torture_discard((sn_exec *)st);
        return sn_fail(err, SNUG_E_MEMORY, "no memory for a prepared program");
    }
    *out = (sn_exec *)st;
    return SNUG_OK;
}

void sn_torture_discard(sn_exec *exec)
{
    state *st = state_of(exec);
    if (!st)
        return;
    sn_free(st->scratch);
    sn_arena_deinit(&st->arena);
    sn_free(st);
}

uint64_t sn_torture_measured_peak(const sn_exec *exec, size_t slab)
{
    const state *st = state_of(exec);
    return slab < st->memory->n_slabs ? st->peak[slab] : 0;
}

/* ---- one instruction ------------------------------------------------------------------------- */

static void touch(state *st, const sn_view *view)
{
    st->peak[view->slab] = SN_MAX(st->peak[view->slab], view->offset + view->bytes);
}

static void poison_buffer(state *st, uint32_t index)
{
    const sn_program_buffer *b = &st->program->buffers[index];
    sn_view whole = {.slab = b->slab, .offset = b->offset};
    if (!b->persistent)
        sn_torture_poison(sn_torture_at(st->memory, &whole), b->bytes);
}

/* Invariant 3, before. */
static void begin_lives(state *st, const copy *outs, int n_out, const copy *ins, int n_in)
{
    for (int k = 0; k < n_out + n_in; k++) {
        const copy *c = k < n_out ? &outs[k] : &ins[k - n_out];
        if (!is_absent(&c->view) && st->left[c->view.buffer] == st->uses[c->view.buffer])
            poison_buffer(st, c->view.buffer);
    }
}

/* Invariant 3, after. */
static void end_lives(state *st, const copy *outs, int n_out, const copy *ins, int n_in)
{
    for (int k = 0; k < n_out + n_in; k++) {
        const copy *c = k < n_out ? &outs[k] : &ins[k - n_out];
        if (is_absent(&c->view))
            continue;
        if (--st->left[c->view.buffer] == 0 && !st->is_result[c->view.buffer])
            poison_buffer(st, c->view.buffer);
    }
}

static bool guard_whole(const uint8_t *after, uint64_t bytes)
{
    for (const uint8_t *g = after + bytes;
         g < after + sn_align_up(bytes, SN_TORTURE_GUARD) + SN_TORTURE_GUARD; g++)
        if (*g != GUARD_BYTE)
            return false;
    for (int k = 1; k <= SN_TORTURE_GUARD; k++)
        if (after[-k] != GUARD_BYTE)
            return false;
    return true;
}

static snug_status load(state *st, const sn_instr *in, copy *ins, copy *outs, uint8_t *workspace,
                        snug_error *err)
{
    memset(st->scratch, GUARD_BYTE, st->scratch_bytes);
    for (int k = 0; k < in->n_in; k++) {
        if (is_absent(&ins[k].view))
            continue;
        touch(st, &ins[k].view);
        if (!sn_torture_unpack(&ins[k].view.desc, ins[k].view.layout,
                               sn_torture_at(st->memory, &ins[k].view), ins[k].plain))
            return sn_fail(err, SNUG_E_INTERNAL, "%s of '%s': the padding of input %d is not zero",
                           sn_op_of(in->op)->name, in->layer, k);
    }
    for (int k = 0; k < in->n_out; k++) {
        if (is_absent(&outs[k].view))
            continue;
        touch(st, &outs[k].view);
        if (!outs[k].is_shared)
            sn_torture_poison(outs[k].plain, outs[k].bytes);
    }
    if (!is_absent(&in->workspace)) {
        touch(st, &in->workspace);
        sn_torture_poison(sn_torture_at(st->memory, &in->workspace), in->workspace.bytes);
        sn_torture_poison(workspace, in->workspace.bytes);
    }
    return SNUG_OK;
}

/* Guards, and inputs that no output lies on. */
static snug_status inspect(state *st, const sn_instr *in, const copy *ins, const copy *outs,
                           const uint8_t *workspace, snug_error *err)
{
    bool ok = is_absent(&in->workspace) || guard_whole(workspace, in->workspace.bytes);
    for (int k = 0; k < in->n_out && ok; k++)
        ok = is_absent(&outs[k].view) || guard_whole(outs[k].plain, outs[k].bytes);
    for (int k = 0; k < in->n_in && ok; k++) {
        if (is_absent(&ins[k].view))
            continue;
        ok = guard_whole(ins[k].plain, ins[k].bytes);
        bool is_output = false;
        for (int m = 0; m < in->n_out; m++)
            is_output = is_output || outs[m].plain == ins[k].plain;
        if (ok && !is_output && ins[k].view.layout.kind == SN_LAYOUT_PLAIN &&
            memcmp(ins[k].plain, sn_torture_at(st->memory, &ins[k].view), ins[k].bytes))
            return sn_fail(err, SNUG_E_INTERNAL, "%s of '%s' changed its input %d",
                           sn_op_of(in->op)->name, in->layer, k);
    }
    return ok ? SNUG_OK
              : sn_fail(err, SNUG_E_INTERNAL, "%s of '%s' wrote outside of its tensors",
                        sn_op_of(in->op)->name, in->layer);
}

static snug_status execute(state *st, uint32_t index, const sn_step *step, snug_error *err)
{
    const sn_instr *in = &st->program->instrs[index];
    copy ins[SN_MAX_IN], outs[SN_MAX_OUT];
    sn_operand in_operands[SN_MAX_IN], out_operands[SN_MAX_OUT];
    uint8_t *workspace;
    lay_out(st, in, ins, outs, &workspace);
    begin_lives(st, outs, in->n_out, ins, in->n_in);
    snug_status s = load(st, in, ins, outs, workspace, err);
    if (s)
        return s;
    for (int k = 0; k < in->n_in; k++)
        in_operands[k] = (sn_operand){ins[k].plain, ins[k].view.desc};
    for (int k = 0; k < in->n_out; k++)
        out_operands[k] = (sn_operand){outs[k].plain, outs[k].view.desc};
    if (in->op == SN_OP_REORDER) {
        memcpy(outs[0].plain, ins[0].plain, ins[0].bytes);
    } else {
        sn_call call = {&in->attrs, in_operands, out_operands,
                        in->n_in,   in->n_out,   is_absent(&in->workspace) ? NULL : workspace,
                        step};
        sn_op_of(in->op)->reference(&call);
    }
    s = inspect(st, in, ins, outs, workspace, err);
    for (int k = 0; k < in->n_out && !s; k++)
        if (!is_absent(&outs[k].view))
            sn_torture_pack(&outs[k].view.desc, outs[k].view.layout, outs[k].plain,
                            sn_torture_at(st->memory, &outs[k].view));
    if (!s && !is_absent(&in->workspace))
        sn_torture_poison(sn_torture_at(st->memory, &in->workspace), in->workspace.bytes);
    end_lives(st, outs, in->n_out, ins, in->n_in);
    return s;
}

/* ---- running --------------------------------------------------------------------------------- */

/* The next instruction of a queue in [first, end) that has not run; end if none. */
static uint32_t head(const state *st, int queue, uint32_t first, uint32_t end)
{
    while (first < end && (st->done[first] || st->program->instrs[first].queue != queue))
        first++;
    return first;
}

static bool may_run(const state *st, uint32_t index, uint32_t first)
{
    const sn_instr *in = &st->program->instrs[index];
    for (uint32_t k = 0; k < in->n_waits; k++)
        if (in->waits[k] >= first && !st->done[in->waits[k]])
            return false;
    return true;
}

snug_status sn_torture_run(sn_exec *exec, const sn_step *step, size_t first, size_t count,
                           snug_error *err)
{
    state *st = state_of(exec);
    if (first > st->program->n_instrs || count > st->program->n_instrs - first)
        return sn_fail(err, SNUG_E_INTERNAL, "instructions %zu + %zu of %zu", first, count,
                       st->program->n_instrs);
    uint32_t begin = (uint32_t)first, end = (uint32_t)(first + count);
    if (!first)
        memcpy(st->left, st->uses, st->program->n_buffers * sizeof *st->left);
    memset(st->done + first, 0, count * sizeof *st->done);
    st->n_runs++;
    for (size_t k = 0; k < count; k++) {
        uint32_t pick[N_QUEUES], n = 0, draw[4];
        uint32_t lowest = end;
        for (int q = 0; q < N_QUEUES; q++) {
            uint32_t i = head(st, q, begin, end);
            lowest = SN_MIN(lowest, i);
            if (i < end && may_run(st, i, begin))
                pick[n++] = i;
        }
        if (!n)
            return sn_fail(err, SNUG_E_INTERNAL, "the queues wait for each other at %u", lowest);
        sn_philox(draw, st->memory->device->seed, st->n_runs, k);
        uint32_t chosen = pick[draw[0] % n];
        snug_status s = execute(st, chosen, step, err);
        if (!s && !sn_torture_guards_whole(st->memory))
            s = sn_fail(err, SNUG_E_INTERNAL, "instruction %u wrote outside of the slabs", chosen);
        if (s)
            return s;
        st->done[chosen] = true;
    }
    return SNUG_OK;
}
