/* SPDX-License-Identifier: Apache-2.0
 *
 * check.c - the judge. It believes nothing of what the planner computed: from the program alone
 * (and the device's sizes) it derives again who uses what when, and refuses a program that breaks a
 * rule. Simple on purpose: pairs of buffers, one by one. Run on every plan.
 *
 * The rules:
 *  1. slabs: no more bytes than the device's largest allocation; each as large as its highest
 * buffer.
 *  2. buffers: inside their slab, aligned, alive in [first, last] within the program; what persists
 *     lives all the time.
 *  3. views: of a buffer that there is, at its place and inside it, as many bytes as the device
 * says that the tensor takes.
 *  4. every use of a buffer lies in its life; a temporary is written before it is read.
 *  5. buffers that share addresses never live at the same time.
 *  6. across queues: waits name earlier instructions of other queues that signal; of two uses of a
 *     buffer, one of them a write, and of two buffers that share addresses, one has ended before
 * the other begins.
 *  7. versions: a weight is read in the version that was written last, and written in the next one.
 *  8. operands of one instruction overlap only as the operator's in-place rule allows; its scratch
 *     overlaps nothing and lives for it alone.
 *  9. results (loss, prediction) are alive at the end; what is fed and what is stored persists.
 */
#include <string.h>

#include "base/ledger.h"
#include "plan/plan.h"

enum { N_QUEUES = 2 };

typedef struct accesses {
    uint32_t first[N_QUEUES], last[N_QUEUES]; /* any use, plus one; 0: none */
    uint32_t wrote[N_QUEUES], read[N_QUEUES]; /* while walking: the last so far, plus one */
    uint32_t version;                         /* while walking */
    bool is_written, is_used;
} accesses;

typedef struct judge {
    const sn_program *p;
    sn_device *device;
    sn_device_info info;
    accesses *uses;
    uint32_t (*clock)[N_QUEUES]; /* one more than the last instruction of a queue that has ended */
} judge;

#define REFUSE(rule, ...)                                                                          \
    sn_fail(err, SNUG_E_INTERNAL, "the plan breaks rule " #rule ": " __VA_ARGS__)

/* ---- rules 1 and 2 --------------------------------------------------------------------------- */

static snug_status check_buffer(const judge *j, size_t index, snug_error *err)
{
    const sn_program_buffer *b = &j->p->buffers[index];
    uint64_t end;
    if (b->slab >= j->p->n_slabs)
        return REFUSE(2, "buffer '%.60s' lies in slab %u of %zu", b->name, b->slab, j->p->n_slabs);
    if (sn_add_u64(&end, b->offset, b->bytes) || end > j->p->slab_bytes[b->slab])
        return REFUSE(2, "buffer '%.60s' ends beyond its slab of %" PRIu64 " bytes", b->name,
                      j->p->slab_bytes[b->slab]);
    if (b->offset % j->info.align_bytes)
        return REFUSE(2, "buffer '%.60s' at %" PRIu64 " is not aligned to %" PRIu64, b->name,
                      b->offset, j->info.align_bytes);
    if (b->first > b->last || b->last >= j->p->n_instrs)
        return REFUSE(2, "buffer '%.60s' lives over [%u, %u] of %zu instructions", b->name,
                      b->first, b->last, j->p->n_instrs);
    if (b->persistent && (b->first || b->last != j->p->n_instrs - 1))
        return REFUSE(2, "buffer '%.60s' persists, but lives over [%u, %u] only", b->name, b->first,
                      b->last);
    if (b->kind < 0 || b->kind >= SN_N_BYTES_KINDS)
        return REFUSE(2, "buffer '%.60s' has no kind", b->name);
    return SNUG_OK;
}

static snug_status check_slabs(const judge *j, snug_error *err)
{
    for (size_t s = 0; s < j->p->n_slabs; s++)
        if (j->p->slab_bytes[s] > j->info.largest_bytes)
            return REFUSE(1, "slab %zu has %" PRIu64 " bytes, the largest allocation is %" PRIu64,
                          s, j->p->slab_bytes[s], j->info.largest_bytes);
    for (size_t i = 0; i < j->p->n_buffers; i++) {
        snug_status s = check_buffer(j, i, err);
        if (s)
            return s;
    }
    return SNUG_OK;
}

/* ---- rule 3 ---------------------------------------------------------------------------------- */

static bool is_absent(const sn_view *view)
{
    return view->buffer == UINT32_MAX;
}

static snug_status check_view(const judge *j, const sn_view *v, const char *what, bool sized,
                              snug_error *err)
{
    if (is_absent(v))
        return SNUG_OK;
    if (v->buffer >= j->p->n_buffers)
        return REFUSE(3, "%s is a view of buffer %u; there are %zu", what, v->buffer,
                      j->p->n_buffers);
    const sn_program_buffer *b = &j->p->buffers[v->buffer];
    uint64_t end;
    if (v->slab != b->slab || v->offset < b->offset || sn_add_u64(&end, v->offset, v->bytes) ||
        end > b->offset + b->bytes)
        return REFUSE(3, "%s: %" PRIu64 " bytes at %" PRIu64 " are not inside buffer '%.60s'", what,
                      v->bytes, v->offset, b->name);
    if (v->offset % j->info.align_bytes)
        return REFUSE(3, "%s: a view at %" PRIu64 " is not aligned", what, v->offset);
    if (!sized)
        return SNUG_OK;
    uint64_t bytes;
    snug_status s = j->device->backend->layout_bytes(j->device, &v->desc, v->layout, &bytes, err);
    if (s)
        return s;
    if (bytes != v->bytes)
        return REFUSE(3, "%s has %" PRIu64 " bytes in the plan, the device says %" PRIu64, what,
                      v->bytes, bytes);
    return SNUG_OK;
}

static snug_status check_views(const judge *j, snug_error *err)
{
    const sn_view *fed[] = {&j->p->x, &j->p->target, &j->p->sample_weight, &j->p->loss,
                            &j->p->prediction};
    snug_status s = SNUG_OK;
    for (uint32_t i = 0; i < j->p->n_instrs && !s; i++) {
        const sn_instr *in = &j->p->instrs[i];
        const char *name = (int)in->op >= 0 && in->op < SN_N_OPS ? sn_op_of(in->op)->name : NULL;
        if (!name)
            return REFUSE(3, "instruction %u has no operator", i);
        for (int k = 0; k < in->n_in && !s; k++)
            s = check_view(j, &in->in[k], name, true, err);
        for (int k = 0; k < in->n_out && !s; k++)
            s = check_view(j, &in->out[k], name, true, err);
        if (!s)
            s = check_view(j, &in->workspace, name, false, err);
        if (s)
            sn_where(err, "instruction %u", i);
    }
    for (size_t k = 0; k < SN_LEN(fed) && !s; k++)
        s = check_view(j, fed[k], "what is fed or read", true, err);
    for (size_t k = 0; k < j->p->n_weights && !s; k++)
        s = is_absent(&j->p->weights[k].view)
                ? REFUSE(9, "'%.60s' has no place", j->p->weights[k].name)
                : check_view(j, &j->p->weights[k].view, j->p->weights[k].name, true, err);
    return s;
}

/* ---- rules 4, 6 (within a buffer) and 7: one walk in the order of issue ---------------------- */

static snug_status check_waits(judge *j, uint32_t i, const uint32_t before[N_QUEUES],
                               snug_error *err)
{
    const sn_instr *in = &j->p->instrs[i];
    if (in->queue >= N_QUEUES || in->queue >= j->info.n_queues)
        return REFUSE(6, "instruction %u is on queue %u of %d", i, in->queue, j->info.n_queues);
    if (before[in->queue] != UINT32_MAX)
        memcpy(j->clock[i], j->clock[before[in->queue]], sizeof *j->clock);
    for (uint32_t k = 0; k < in->n_waits; k++) {
        uint32_t other = in->waits[k];
        if (other >= i || j->p->instrs[other].queue == in->queue || !j->p->instrs[other].signals)
            return REFUSE(6, "instruction %u waits for %u, which is no earlier one that signals", i,
                          other);
        for (int q = 0; q < N_QUEUES; q++)
            j->clock[i][q] = SN_MAX(j->clock[i][q], j->clock[other][q]);
    }
    j->clock[i][in->queue] = i + 1;
    return SNUG_OK;
}

static snug_status check_use(judge *j, uint32_t i, const sn_view *view, sn_version version,
                             bool writes, snug_error *err)
{
    if (is_absent(view))
        return SNUG_OK;
    const sn_program_buffer *b = &j->p->buffers[view->buffer];
    accesses *u = &j->uses[view->buffer];
    int own = j->p->instrs[i].queue;
    if (i < b->first || i > b->last)
        return REFUSE(4, "instruction %u uses '%.60s', which lives over [%u, %u]", i, b->name,
                      b->first, b->last);
    if (!writes && !b->persistent && !u->is_written)
        return REFUSE(4, "instruction %u reads '%.60s' before it is written", i, b->name);
    for (int q = 0; q < N_QUEUES; q++) {
        uint32_t need = writes ? SN_MAX(u->wrote[q], u->read[q]) : u->wrote[q];
        if (q != own && need > j->clock[i][q])
            return REFUSE(6, "instruction %u uses '%.60s' without waiting for %u", i, b->name,
                          need - 1);
    }
    bool versioned = b->kind == SN_BYTES_WEIGHTS || b->kind == SN_BYTES_OPTIMIZER;
    if (versioned != (version.buffer != UINT32_MAX) ||
        (versioned && version.buffer != view->buffer))
        return REFUSE(7, "instruction %u %s '%.60s' without its version", i,
                      writes ? "writes" : "reads", b->name);
    if (versioned && version.number != u->version + (writes ? 1 : 0))
        return REFUSE(7, "instruction %u %s version %u of '%.60s', which is at %u", i,
                      writes ? "writes" : "reads", version.number, b->name, u->version);
    return SNUG_OK;
}

static void note(judge *j, uint32_t i, uint32_t buffer, sn_version version, bool writes)
{
    accesses *u = &j->uses[buffer];
    int own = j->p->instrs[i].queue;
    u->is_used = true;
    u->last[own] = i + 1;
    if (!u->first[own])
        u->first[own] = i + 1;
    if (!writes) {
        u->read[own] = i + 1;
        return;
    }
    u->wrote[own] = i + 1;
    u->is_written = true;
    if (version.buffer != UINT32_MAX)
        u->version = version.number;
}

static snug_status walk(judge *j, snug_error *err)
{
    static const sn_version none = {UINT32_MAX, 0};
    uint32_t before[N_QUEUES] = {UINT32_MAX, UINT32_MAX};
    for (uint32_t i = 0; i < j->p->n_instrs; i++) {
        const sn_instr *in = &j->p->instrs[i];
        snug_status s = check_waits(j, i, before, err);
        for (int k = 0; k < in->n_in && !s; k++)
            s = check_use(j, i, &in->in[k], in->reads[k], false, err);
        for (int k = 0; k < in->n_in && !s; k++)
            if (!is_absent(&in->in[k]))
                note(j, i, in->in[k].buffer, in->reads[k], false);
        for (int k = 0; k < in->n_out && !s; k++)
            s = check_use(j, i, &in->out[k], in->writes[k], true, err);
        if (!s)
            s = check_use(j, i, &in->workspace, none, true, err);
        if (s)
            return s;
        for (int k = 0; k < in->n_out; k++)
            if (!is_absent(&in->out[k]))
                note(j, i, in->out[k].buffer, in->writes[k], true);
        if (!is_absent(&in->workspace))
            note(j, i, in->workspace.buffer, none, true);
        before[in->queue] = i;
    }
    return SNUG_OK;
}

/* ---- rules 5 and 6 (between buffers) --------------------------------------------------------- */

/* Every use of a has ended before any use of b begins. */
static bool ends_before(const judge *j, size_t a, size_t b)
{
    const accesses *x = &j->uses[a], *y = &j->uses[b];
    for (int q = 0; q < N_QUEUES; q++)
        for (int r = 0; r < N_QUEUES; r++)
            if (x->last[q] && y->first[r] && j->clock[y->first[r] - 1][q] < x->last[q])
                return false;
    return true;
}

static snug_status check_pairs(const judge *j, snug_error *err)
{
    for (size_t i = 0; i < j->p->n_buffers; i++) {
        const sn_program_buffer *a = &j->p->buffers[i];
        for (size_t k = 0; k < i; k++) {
            const sn_program_buffer *b = &j->p->buffers[k];
            if (a->slab != b->slab || a->offset >= b->offset + b->bytes ||
                b->offset >= a->offset + a->bytes)
                continue;
            if (a->first <= b->last && b->first <= a->last)
                return REFUSE(5, "'%.50s' [%u, %u] and '%.50s' [%u, %u] share addresses", a->name,
                              a->first, a->last, b->name, b->first, b->last);
            bool ordered = a->first > b->last ? ends_before(j, k, i) : ends_before(j, i, k);
            if (!ordered)
                return REFUSE(6, "'%.50s' and '%.50s' share addresses, and no wait orders them",
                              a->name, b->name);
        }
    }
    return SNUG_OK;
}

/* ---- rule 8 ---------------------------------------------------------------------------------- */

static bool overlap(const sn_view *a, const sn_view *b)
{
    return !is_absent(a) && !is_absent(b) && a->slab == b->slab &&
           a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
}

/* Output k may lie on input i: the same place whole, as the operator allows. */
static bool may_lie_on(const sn_instr *in, int k, int i)
{
    const sn_op *op = sn_op_of(in->op);
    int by_version = sn_graph_overwrites(in->op, k);
    int by_rule = op->in_place ? op->in_place(&in->attrs, k) : -1;
    if (by_version != i && by_rule != i)
        return false;
    return in->in[i].buffer == in->out[k].buffer && in->in[i].offset == in->out[k].offset &&
           in->in[i].bytes == in->out[k].bytes && sn_layout_eq(in->in[i].layout, in->out[k].layout);
}

static snug_status check_operands(const judge *j, uint32_t i, snug_error *err)
{
    const sn_instr *in = &j->p->instrs[i];
    for (int k = 0; k < in->n_out; k++) {
        for (int m = 0; m < k; m++)
            if (overlap(&in->out[k], &in->out[m]))
                return REFUSE(8, "instruction %u: outputs %d and %d overlap", i, m, k);
        for (int m = 0; m < in->n_in; m++)
            if (overlap(&in->out[k], &in->in[m]) && !may_lie_on(in, k, m))
                return REFUSE(8, "instruction %u (%s): output %d lies on input %d", i,
                              sn_op_of(in->op)->name, k, m);
        int source = sn_graph_overwrites(in->op, k);
        if (source >= 0 && !is_absent(&in->out[k]) && !overlap(&in->out[k], &in->in[source]))
            return REFUSE(8, "instruction %u (%s): output %d does not lie on what it updates", i,
                          sn_op_of(in->op)->name, k);
        if (overlap(&in->out[k], &in->workspace))
            return REFUSE(8, "instruction %u: the scratch overlaps output %d", i, k);
    }
    for (int m = 0; m < in->n_in; m++)
        if (overlap(&in->in[m], &in->workspace))
            return REFUSE(8, "instruction %u: the scratch overlaps input %d", i, m);
    return SNUG_OK;
}

/* ---- rule 9 and the whole -------------------------------------------------------------------- */

static snug_status check_ends(const judge *j, snug_error *err)
{
    const sn_program *p = j->p;
    const sn_view *results[] = {&p->loss, &p->prediction};
    const sn_view *fed[] = {&p->x, &p->target, &p->sample_weight};
    for (size_t k = 0; k < SN_LEN(results); k++)
        if (!is_absent(results[k]) &&
            p->buffers[results[k]->buffer].last != (uint32_t)p->n_instrs - 1)
            return REFUSE(9, "the result '%.60s' is not alive at the end",
                          p->buffers[results[k]->buffer].name);
    for (size_t k = 0; k < SN_LEN(fed); k++)
        if (!is_absent(fed[k]) && !p->buffers[fed[k]->buffer].persistent)
            return REFUSE(9, "'%.60s' is fed, but does not persist",
                          p->buffers[fed[k]->buffer].name);
    for (size_t k = 0; k < p->n_weights; k++)
        if (!p->buffers[p->weights[k].view.buffer].persistent)
            return REFUSE(9, "'%.60s' is stored, but does not persist", p->weights[k].name);
    for (uint32_t i = 0; i < p->loss_end && i < p->n_instrs; i++)
        if (p->instrs[i].phase != SN_PHASE_FORWARD)
            return REFUSE(9, "instruction %u comes before the loss is checked, and is not forward",
                          i);
    if (p->loss_end > p->n_instrs)
        return REFUSE(9, "the loss ends at %u of %zu", p->loss_end, p->n_instrs);
    return SNUG_OK;
}

/* Each slab is exactly as large as what lies in it: the planned peak is no guess. */
static snug_status check_tight(const judge *j, snug_error *err)
{
    for (size_t s = 0; s < j->p->n_slabs; s++) {
        uint64_t top = 0;
        for (size_t i = 0; i < j->p->n_buffers; i++)
            if (j->p->buffers[i].slab == s)
                top = SN_MAX(top, j->p->buffers[i].offset + j->p->buffers[i].bytes);
        if (j->p->slab_bytes[s] != top)
            return REFUSE(
                1, "slab %zu is planned with %" PRIu64 " bytes, what lies in it takes %" PRIu64, s,
                j->p->slab_bytes[s], top);
    }
    return SNUG_OK;
}

snug_status sn_plan_check(const sn_program *program, sn_device *device, snug_error *err)
{
    judge j = {.p = program, .device = device};
    device->backend->info(device, &j.info);
    if (!program->n_instrs)
        return REFUSE(2, "the program is empty");
    j.uses = sn_alloc_array(SN_TAG_PLAN, program->n_buffers + 1, sizeof *j.uses);
    j.clock = sn_alloc_array(SN_TAG_PLAN, program->n_instrs, sizeof *j.clock);
    snug_status s =
        j.uses && j.clock ? SNUG_OK : sn_fail(err, SNUG_E_MEMORY, "no memory for the judge");
    if (!s)
        s = check_slabs(&j, err);
    if (!s)
        s = check_tight(&j, err);
    if (!s)
        s = check_views(&j, err);
    if (!s)
        s = walk(&j, err);
    if (!s)
        s = check_pairs(&j, err);
    for (uint32_t i = 0; i < program->n_instrs && !s; i++)
        s = check_operands(&j, i, err);
    if (!s)
        s = check_ends(&j, err);
    sn_free(j.uses);
    sn_free(j.clock);
    return s;
}

/* ---- two programs of one plan ---------------------------------------------------------------- */

static bool same_place(const sn_view *a, const sn_view *b)
{
    return a->slab == b->slab && a->offset == b->offset && a->bytes == b->bytes &&
           sn_layout_eq(a->layout, b->layout) && sn_shape_eq(&a->desc.shape, &b->desc.shape);
}

/* What persists in a is not touched by b's temporaries. */
static snug_status check_apart(const sn_program *a, const sn_program *b, snug_error *err)
{
    for (size_t i = 0; i < a->n_buffers; i++) {
        const sn_program_buffer *x = &a->buffers[i];
        for (size_t k = 0; x->persistent && k < b->n_buffers; k++) {
            const sn_program_buffer *y = &b->buffers[k];
            if (y->persistent || x->slab != y->slab || x->offset >= y->offset + y->bytes ||
                y->offset >= x->offset + x->bytes)
                continue;
            return REFUSE(9, "'%.50s' persists, and '%.50s' of another program lies on it", x->name,
                          y->name);
        }
    }
    return SNUG_OK;
}

snug_status sn_plan_check_shared(const sn_program *a, const sn_program *b, snug_error *err)
{
    const sn_view *fed[3][2] = {
        {&a->x, &b->x}, {&a->target, &b->target}, {&a->sample_weight, &b->sample_weight}};
    for (size_t i = 0; i < a->n_weights; i++)
        for (size_t k = 0; k < b->n_weights; k++) {
            const sn_program_weight *x = &a->weights[i], *y = &b->weights[k];
            if (x->weight != y->weight || x->slot != y->slot ||
                (x->weight < 0 && !sn_str_eq(x->name, y->name)))
                continue;
            if (!same_place(&x->view, &y->view))
                return REFUSE(9, "'%.60s' lies at different places in two programs", x->name);
        }
    for (size_t i = 0; i < 3; i++)
        if (!is_absent(fed[i][0]) && !is_absent(fed[i][1]) && !same_place(fed[i][0], fed[i][1]))
            return REFUSE(9, "what is fed lies at different places in two programs");
    snug_status s = check_apart(a, b, err);
    return s ? s : check_apart(b, a, err);
}
