/* SPDX-License-Identifier: Apache-2.0
 *
 * test_judge.c - good plans with one thing changed: the judge must refuse each, by its rule.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "backend/torture/torture.h"
#include "base/ledger.h"
#include "plan/plan.h"

static snug_model *network(void)
{
    snug_error err = SNUG_ERROR_INIT;
    snug_model *m;
    assert_int_equal(snug_model_new(&m, "net", &err), SNUG_OK);
    snug_conv_options conv = {SNUG_CONV_DEFAULTS, .filters = 6, .kernel = {3, 3},
                              .padding = SNUG_SAME};
    snug_tensor x = snug_input(m, 8, 8, 3);
    snug_tensor a = snug_relu(m, snug_batch_norm(m, snug_conv2d(m, x, &conv), NULL), 0, NULL);
    snug_tensor b = snug_softmax(m, snug_conv2d(m, a, &conv), NULL);
    snug_tensor both[] = {a, b};
    x = snug_max_pool2d(m, snug_concatenate(m, both, 2, -1, NULL), NULL);
    x = snug_dense(m, snug_flatten(m, x, NULL),
                   &(snug_dense_options){SNUG_DENSE_DEFAULTS, .units = 5});
    if (snug_model_finish(m, x, &err))
        fail_msg("%s: %s", err.where, err.what);
    return m;
}

/* A fresh plan that may be written to. */
typedef struct subject {
    snug_model *model;
    sn_device *device;
    snug_plan *plan;
    sn_program *p, *evaluation;
    sn_program_buffer *buffers;
    sn_instr *instrs;
    uint64_t *slab_bytes;
} subject;

static void make(subject *s, const char *spec)
{
    snug_error err = SNUG_ERROR_INIT;
    sn_device_options device_options = {0};
    s->model = network();
    assert_int_equal(sn_backend_torture.open(&s->device, spec, &device_options, &err), SNUG_OK);
    snug_plan_options o = {SNUG_PLAN_DEFAULTS, .batch = 2, .optimizer = {.momentum = 0.9f}};
    if (sn_plan_new(&s->plan, s->model, &o, s->device, &err))
        fail_msg("%s: %s", err.where, err.what);
    s->p = (sn_program *)(uintptr_t)sn_plan_program(s->plan, SN_GRAPH_TRAIN);
    s->evaluation = (sn_program *)(uintptr_t)sn_plan_program(s->plan, SN_GRAPH_EVALUATE);
    s->buffers = (sn_program_buffer *)(uintptr_t)s->p->buffers;
    s->instrs = (sn_instr *)(uintptr_t)s->p->instrs;
    s->slab_bytes = (uint64_t *)(uintptr_t)s->p->slab_bytes;
}

static void drop(subject *s)
{
    snug_plan_free(s->plan);
    s->device->backend->close(s->device);
    snug_model_free(s->model);
}

/* ---- finding places to hurt ------------------------------------------------------------------ */

static sn_view *in_of(sn_instr *in, int k)
{
    return (sn_view *)(uintptr_t)&in->in[k];
}

static sn_view *out_of(sn_instr *in, int k)
{
    return (sn_view *)(uintptr_t)&in->out[k];
}

static sn_version *reads_of(sn_instr *in, int k)
{
    return (sn_version *)(uintptr_t)&in->reads[k];
}

static sn_version *writes_of(sn_instr *in, int k)
{
    return (sn_version *)(uintptr_t)&in->writes[k];
}

static sn_instr *find(subject *s, sn_op_id op)
{
    for (size_t i = 0; i < s->p->n_instrs; i++)
        if (s->instrs[i].op == op)
            return &s->instrs[i];
    fail_msg("no %s in the program", sn_op_of(op)->name);
    return NULL;
}

static sn_instr *waiting(subject *s)
{
    for (size_t i = 0; i < s->p->n_instrs; i++)
        if (s->instrs[i].n_waits)
            return &s->instrs[i];
    fail_msg("nobody waits");
    return NULL;
}

static sn_instr *with_scratch(subject *s)
{
    for (size_t i = 0; i < s->p->n_instrs; i++)
        if (s->instrs[i].workspace.buffer != UINT32_MAX)
            return &s->instrs[i];
    fail_msg("nobody has scratch");
    return NULL;
}

/* A temporary that outlives its instruction. */
static sn_program_buffer *temporary(subject *s)
{
    for (size_t i = 0; i < s->p->n_buffers; i++)
        if (!s->buffers[i].persistent && s->buffers[i].last > s->buffers[i].first + 2)
            return &s->buffers[i];
    fail_msg("no temporary");
    return NULL;
}

static void move_views(subject *s, uint32_t buffer)
{
    for (size_t i = 0; i < s->p->n_instrs; i++) {
        sn_instr *in = &s->instrs[i];
        for (int k = 0; k < in->n_in + in->n_out; k++) {
            sn_view *v = k < in->n_in ? in_of(in, k) : out_of(in, k - in->n_in);
            if (v->buffer == buffer) {
                v->slab = s->buffers[buffer].slab;
                v->offset = s->buffers[buffer].offset;
            }
        }
        if (in->workspace.buffer == buffer) {
            in->workspace.slab = s->buffers[buffer].slab;
            in->workspace.offset = s->buffers[buffer].offset;
        }
    }
}

/* ---- the planted faults ---------------------------------------------------------------------- */

static void slab_too_large(subject *s)
{
    s->slab_bytes[0] = (uint64_t)1 << 40;
}
static void slab_not_tight(subject *s)
{
    s->slab_bytes[0] += 16;
}
static void beyond_slab(subject *s)
{
    temporary(s)->offset = s->slab_bytes[0];
}
static void wrong_slab(subject *s)
{
    temporary(s)->slab = 77;
}
static void misaligned(subject *s)
{
    sn_program_buffer *b = temporary(s);
    b->bytes -= 8;
    b->offset += 8;
}
static void backward_life(subject *s)
{
    sn_program_buffer *b = temporary(s);
    b->last = b->first - 1;
}
static void beyond_program(subject *s)
{
    temporary(s)->last = (uint32_t)s->p->n_instrs;
}
static void weight_dies(subject *s)
{
    s->buffers[s->p->weights[0].view.buffer].last--;
}
static void view_elsewhere(subject *s)
{
    sn_view *v = in_of(find(s, SN_OP_SOFTMAX), 0);
    v->offset += s->buffers[v->buffer].bytes;
}
static void view_of_nothing(subject *s)
{
    in_of(find(s, SN_OP_SOFTMAX), 0)->buffer = (uint32_t)s->p->n_buffers;
}
static void view_too_short(subject *s)
{
    in_of(find(s, SN_OP_CONV2D), 0)->bytes -= 16;
}
static void buffer_too_short(subject *s)
{
    s->buffers[out_of(find(s, SN_OP_SOFTMAX), 0)->buffer].bytes /= 2;
}
static void another_shape(subject *s)
{
    in_of(find(s, SN_OP_CONV2D), 0)->desc.shape.dim[1]++;
}
static void born_late(subject *s)
{
    temporary(s)->first++;
}
static void dies_early(subject *s)
{
    for (size_t i = 0; i < s->p->n_buffers; i++) {
        sn_program_buffer *b = &s->buffers[i];
        const sn_instr *end = &s->instrs[b->last];
        for (int k = 0; !b->persistent && k < end->n_in; k++)
            if (end->in[k].buffer == i && b->last > b->first) {
                b->last--;
                return;
            }
    }
    fail_msg("no such buffer");
}
static void never_written(subject *s)
{
    sn_instr *in = find(s, SN_OP_SOFTMAX);
    out_of(in, 0)->buffer = UINT32_MAX;
}
static void two_at_once(subject *s)
{
    for (uint32_t i = 0; i < s->p->n_buffers; i++)
        for (uint32_t k = 0; k < s->p->n_buffers; k++) {
            sn_program_buffer *a = &s->buffers[i], *b = &s->buffers[k];
            if (i == k || a->persistent || b->persistent || b->first < a->first ||
                b->first > a->last || b->bytes > a->bytes)
                continue;
            b->slab = a->slab;
            b->offset = a->offset;
            move_views(s, k);
            return;
        }
    fail_msg("no such pair");
}
static void on_a_weight(subject *s)
{
    sn_program_buffer *a = temporary(s), *w = NULL;
    for (size_t i = 0; i < s->p->n_weights; i++)
        if (!w || s->p->weights[i].view.bytes > w->bytes)
            w = &s->buffers[s->p->weights[i].view.buffer];
    a->slab = w->slab;
    a->offset = w->offset;
    move_views(s, (uint32_t)(a - s->buffers));
}
static void no_wait(subject *s)
{
    waiting(s)->n_waits = 0;
}
static void wait_for_the_future(subject *s)
{
    *(uint32_t *)(uintptr_t)waiting(s)->waits = (uint32_t)s->p->n_instrs - 1;
}
static void wait_for_own_queue(subject *s)
{
    for (size_t i = 0; i < s->p->n_instrs; i++)
        for (uint32_t k = 0; k < i && s->instrs[i].n_waits; k++)
            if (s->instrs[k].queue == s->instrs[i].queue && s->instrs[k].signals) {
                *(uint32_t *)(uintptr_t)s->instrs[i].waits = k;
                return;
            }
    fail_msg("no such pair");
}
static void no_signal(subject *s)
{
    s->instrs[waiting(s)->waits[0]].signals = false;
}
static void third_queue(subject *s)
{
    s->instrs[3].queue = 2;
}
static void old_version(subject *s)
{
    sn_instr *in = find(s, SN_OP_UPDATE);
    reads_of(in, 0)->number++;
}
static void version_left_out(subject *s)
{
    writes_of(find(s, SN_OP_UPDATE), 0)->number++;
}
static void without_version(subject *s)
{
    reads_of(find(s, SN_OP_CONV2D), 1)->buffer = UINT32_MAX;
}
static void version_of_another(subject *s)
{
    reads_of(find(s, SN_OP_CONV2D), 1)->buffer++;
}
/* The update of the second convolution goes before its data gradient: reads 0 after 1. */
static void update_too_early(subject *s)
{
    sn_instr *dx = find(s, SN_OP_CONV2D_DX);
    uint32_t weight = dx->in[1].buffer;
    for (size_t i = 0; i < s->p->n_instrs; i++)
        if (s->instrs[i].op == SN_OP_UPDATE && s->instrs[i].out[0].buffer == weight) {
            sn_instr moved = s->instrs[i];
            size_t at = (size_t)(dx - s->instrs);
            assert_true(at < i);
            memmove(dx + 1, dx, (i - at) * sizeof *dx);
            *dx = moved;
            return;
        }
    fail_msg("no such update");
}
static void onto_its_input(subject *s)
{
    sn_instr *in = find(s, SN_OP_MOVING_AVERAGE);
    *out_of(in, 0) = in->in[1];
    writes_of(in, 0)->buffer = UINT32_MAX;
}
static void update_elsewhere(subject *s)
{
    for (size_t i = 0; i < s->p->n_instrs; i++)
        for (size_t k = 0; k < i; k++) {
            sn_instr *a = &s->instrs[i], *b = &s->instrs[k];
            if (a->op != SN_OP_UPDATE || b->op != SN_OP_UPDATE ||
                a->out[0].bytes != b->out[0].bytes)
                continue;
            *out_of(b, 0) = a->out[0];
            writes_of(b, 0)->buffer = a->out[0].buffer;
            return;
        }
    fail_msg("no two updates of one size");
}
static void outputs_on_each_other(subject *s)
{
    sn_instr *in = find(s, SN_OP_BATCH_NORM);
    *out_of(in, 2) = in->out[1];
}
static void scratch_on_operand(subject *s)
{
    sn_instr *in = with_scratch(s);
    in->workspace.buffer = in->in[0].buffer;
    in->workspace.offset = in->in[0].offset;
    in->workspace.slab = in->in[0].slab;
    in->workspace.bytes = 16;
}
static void scratch_outlived(subject *s)
{
    sn_instr *in = with_scratch(s);
    s->buffers[in->workspace.buffer].first = s->buffers[in->workspace.buffer].last =
        (uint32_t)(in - s->instrs) ? 0 : 1;
}
static void result_dies(subject *s)
{
    sn_program_buffer *b = &s->buffers[s->p->loss.buffer];
    assert_false(b->persistent);
    b->last--;
}
static void x_is_temporary(subject *s)
{
    s->buffers[s->p->x.buffer].persistent = false;
}
static void loss_ends_late(subject *s)
{
    s->p->loss_end++;
}
static void nothing_left(subject *s)
{
    s->p->n_instrs = 0;
}

static const struct fault {
    const char *name;
    void (*plant)(subject *s);
    const char *rules; /* one of these */
} faults[] = {
#define FAULT(name, rules)                                                                         \
    {                                                                                              \
#name, name, rules                                                                         \
    }
    FAULT(slab_too_large, "1"),
    FAULT(slab_not_tight, "1"),
    FAULT(beyond_slab, "2"),
    FAULT(wrong_slab, "2"),
    FAULT(misaligned, "2"),
    FAULT(backward_life, "2"),
    FAULT(beyond_program, "2"),
    FAULT(weight_dies, "2"),
    FAULT(view_elsewhere, "3"),
    FAULT(view_of_nothing, "3"),
    FAULT(view_too_short, "3"),
    FAULT(buffer_too_short, "3"),
    FAULT(another_shape, "3"),
    FAULT(born_late, "4"),
    FAULT(dies_early, "4"),
    FAULT(never_written, "4"),
    FAULT(two_at_once, "58"),
    FAULT(on_a_weight, "58"),
    FAULT(no_wait, "6"),
    FAULT(wait_for_the_future, "6"),
    FAULT(wait_for_own_queue, "6"),
    FAULT(no_signal, "6"),
    FAULT(third_queue, "6"),
    FAULT(old_version, "7"),
    FAULT(version_left_out, "7"),
    FAULT(without_version, "7"),
    FAULT(version_of_another, "7"),
    FAULT(update_too_early, "467"),
    FAULT(onto_its_input, "68"),
    FAULT(update_elsewhere, "678"),
    FAULT(outputs_on_each_other, "48"),
    FAULT(scratch_on_operand, "8"),
    FAULT(scratch_outlived, "4"),
    FAULT(result_dies, "49"),
    FAULT(x_is_temporary, "49"),
    FAULT(loss_ends_late, "9"),
    FAULT(nothing_left, "2"),
};

static void planted_faults(void **state)
{
    int caught = 0;
    for (size_t i = 0; i < SN_LEN(faults); i++) {
        subject s;
        snug_error err = SNUG_ERROR_INIT;
        make(&s, "slab=1MiB");
        assert_int_equal(sn_plan_check(s.p, s.device, &err), SNUG_OK);
        size_t n_instrs = s.p->n_instrs;
        faults[i].plant(&s);
        snug_status status = sn_plan_check(s.p, s.device, &err);
        const char *rule = strstr(err.what, "breaks rule ");
        if (status != SNUG_E_INTERNAL || !rule || !strchr(faults[i].rules, rule[12]))
            fail_msg("%s: %s", faults[i].name, status ? err.what : "accepted");
        s.p->n_instrs = n_instrs;
        caught++;
        drop(&s);
    }
    print_message("%d planted faults, all refused\n", caught);
}

/* Every single life cut short, every wait taken away: none is there for nothing. */
static void every_life_and_wait(void **state)
{
    size_t lives = 0, waits = 0;
    for (int queues = 1; queues <= 2; queues++) {
        subject s;
        make(&s, queues == 2 ? "slab=1MiB,layouts=1" : "slab=1MiB,layouts=1,queues=1");
        for (size_t i = 0; i < s.p->n_buffers; i++) {
            sn_program_buffer *b = &s.buffers[i];
            if (b->persistent || b->first == b->last)
                continue;
            b->first++;
            assert_int_equal(sn_plan_check(s.p, s.device, NULL), SNUG_E_INTERNAL);
            b->first--;
            lives++;
            if (queues == 2)
                continue; /* there a life may be longer than its uses: until all have waited */
            b->last--;
            assert_int_equal(sn_plan_check(s.p, s.device, NULL), SNUG_E_INTERNAL);
            b->last++;
            lives++;
        }
        for (size_t i = 0; i < s.p->n_instrs; i++) {
            uint32_t n = s.instrs[i].n_waits;
            if (!n)
                continue;
            s.instrs[i].n_waits = 0;
            assert_int_equal(sn_plan_check(s.p, s.device, NULL), SNUG_E_INTERNAL);
            s.instrs[i].n_waits = n;
            waits++;
        }
        assert_int_equal(sn_plan_check(s.p, s.device, NULL), SNUG_OK);
        drop(&s);
    }
    print_message("%zu lives cut, %zu waits taken away, all refused\n", lives, waits);
    assert_true(lives > 50 && waits > 10);
}

/* Two programs of one plan. */
static void shared_places(void **state)
{
    subject s;
    make(&s, "slab=1MiB");
    assert_int_equal(sn_plan_check_shared(s.p, s.evaluation, NULL), SNUG_OK);
    sn_program_weight *w = (sn_program_weight *)(uintptr_t)&s.evaluation->weights[1];
    w->view.offset += 16;
    assert_int_equal(sn_plan_check_shared(s.p, s.evaluation, NULL), SNUG_E_INTERNAL);
    w->view.offset -= 16;
    w->view.layout = SN_BLOCKED(8);
    assert_int_equal(sn_plan_check_shared(s.p, s.evaluation, NULL), SNUG_E_INTERNAL);
    w->view.layout = SN_PLAIN;
    s.evaluation->x.offset += 16;
    assert_int_equal(sn_plan_check_shared(s.p, s.evaluation, NULL), SNUG_E_INTERNAL);
    s.evaluation->x.offset -= 16;
    sn_program_buffer *b = (sn_program_buffer *)(uintptr_t)s.evaluation->buffers;
    for (size_t i = 0; i < s.evaluation->n_buffers; i++)
        if (!b[i].persistent) { /* on the optimizer's state, which evaluation does not know */
            uint64_t offset = b[i].offset;
            for (size_t k = 0; k < s.p->n_weights; k++)
                if (s.p->weights[k].slot == 0)
                    b[i].offset = s.p->weights[k].view.offset;
            assert_int_equal(sn_plan_check_shared(s.p, s.evaluation, NULL), SNUG_E_INTERNAL);
            b[i].offset = offset;
            break;
        }
    assert_int_equal(sn_plan_check_shared(s.p, s.evaluation, NULL), SNUG_OK);
    drop(&s);
}

static void leaks_nothing(void **state)
{
    assert_int_equal(sn_ledger_live_bytes(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(planted_faults), cmocka_unit_test(every_life_and_wait),
        cmocka_unit_test(shared_places), cmocka_unit_test(leaks_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
