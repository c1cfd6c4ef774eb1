/* SPDX-License-Identifier: Apache-2.0
 *
 * test_training.c - whole training steps on the torture backend: random order of execution, NaN
 * between lifetimes, other layouts, small slabs. The plain C kernels are the same in every run, so
 * the weights must be, too, to the bit.
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
#include "base/rng.h"
#include "plan/plan.h"
#include "snug/session.h"

enum { SIZE = 8, CHANNELS = 3, CLASSES = 5, BATCH = 4, N_STEPS = 3 };

static snug_tensor conv(snug_model *m, snug_tensor x, int64_t filters, int64_t kernel,
                        int64_t stride)
{
    snug_conv_options o = {SNUG_CONV_DEFAULTS, .filters = filters, .kernel = {kernel, kernel},
                           .strides = {stride, stride}, .padding = SNUG_SAME};
    return snug_conv2d(m, x, &o);
}

/* Branches, a residual, a concatenation, both pools, normalization, dropout, a penalty. */
static snug_model *network(void)
{
    snug_error err = SNUG_ERROR_INIT;
    snug_model *m;
    assert_int_equal(snug_model_new(&m, "net", &err), SNUG_OK);
    snug_tensor x = snug_input(m, SIZE, SIZE, CHANNELS);
    x = snug_relu(m, snug_batch_norm(m, conv(m, x, 6, 3, 1), NULL), 0, NULL);
    snug_tensor a = snug_relu(m, snug_batch_norm(m, conv(m, x, 6, 3, 1), NULL), 6, NULL);
    snug_tensor b = snug_batch_norm(m, conv(m, a, 6, 1, 1), NULL);
    x = snug_relu(m, snug_add(m, x, b, NULL), 0, NULL);
    b = snug_batch_norm(m, conv(m, x, 6, 3, 1), NULL);
    x = snug_relu(m, snug_add(m, x, b, NULL), 0, NULL);
    x = conv(m, x, 6, 1, 1);
    x = snug_max_pool2d(m, x, NULL);
    snug_conv_options depthwise = {SNUG_CONV_DEFAULTS, .kernel = {3, 3}, .padding = SNUG_SAME};
    snug_tensor c = snug_depthwise_conv2d(m, x, &depthwise);
    snug_tensor both[] = {
        x, snug_activation(
               m, c, &(snug_activation_options){SNUG_ACTIVATION_DEFAULTS, .kind = SNUG_SILU})};
    x = snug_concatenate(m, both, 2, -1, NULL);
    x = snug_dropout(m, x, 0.25f, NULL, NULL);
    x = snug_average_pool2d(m, x, NULL);
    x = snug_flatten(m, x, NULL);
    x = snug_dense(m, x,
                   &(snug_dense_options){SNUG_DENSE_DEFAULTS, .units = 7, .activation = SNUG_RELU,
                                         .l2 = 0.01f});
    x = snug_dense(m, x, &(snug_dense_options){SNUG_DENSE_DEFAULTS, .units = CLASSES});
    if (snug_model_finish(m, x, &err))
        fail_msg("%s: %s", err.where, err.what);
    return m;
}

typedef struct result {
    float weights[4096];
    size_t n;
    float loss[N_STEPS + 1], outputs[BATCH * CLASSES];
    uint64_t planned, measured, n_slabs;
    bool failed;
} result;

static void feed(snug_session *session, int step, int64_t n)
{
    static float x[BATCH * SIZE * SIZE * CHANNELS];
    static int32_t classes[BATCH];
    snug_error err = SNUG_ERROR_INIT;
    for (size_t i = 0; i < SN_LEN(x); i++) {
        uint32_t r[4];
        sn_philox(r, 3, (uint64_t)step, i);
        x[i] = sn_uniform_f32(r[0]) - 0.5f;
    }
    for (int i = 0; i < BATCH; i++)
        classes[i] = (step + i * 3) % CLASSES;
    snug_slot slot = {.x = x, .classes = classes, .n = n, .capacity = BATCH};
    if (snug_session_feed(session, &slot, &err))
        fail_msg("%s: %s", err.where, err.what);
}

static void take_weights(snug_session *session, const snug_model *model, result *out)
{
    out->n = 0;
    for (size_t w = 0; w < snug_model_n_weights(model); w++) {
        snug_weight_info info;
        snug_model_weight(model, w, &info);
        assert_true(out->n + info.count <= SN_LEN(out->weights));
        assert_int_equal(snug_session_weight(session, w, -1, out->weights + out->n, NULL), SNUG_OK);
        out->n += info.count;
    }
}

/* Does something to a program that a plan made. */
typedef void (*sabotage)(const sn_program *program);

typedef struct rig {
    snug_model *model;
    sn_device *device;
    snug_plan *plan;
    snug_session *session;
} rig;

/* The status of opening the session: after a sabotage its rehearsal may find it. */
static snug_status rig_open(rig *r, const char *spec, uint64_t seed, snug_optimizer optimizer,
                            bool keep, sabotage harm)
{
    snug_error err = SNUG_ERROR_INIT;
    sn_device_options device_options = {.seed = seed};
    r->model = network();
    assert_int_equal(sn_backend_torture.open(&r->device, spec, &device_options, &err), SNUG_OK);
    snug_plan_options o = {SNUG_PLAN_DEFAULTS, .batch = BATCH, .optimizer = optimizer,
                           .keep_activations = keep};
    if (sn_plan_new(&r->plan, r->model, &o, r->device, &err))
        fail_msg("%s: %s", err.where, err.what);
    if (harm)
        harm(sn_plan_program(r->plan, SN_GRAPH_TRAIN));
    snug_status opened = snug_session_open(&r->session, r->plan, NULL, &err);
    if (opened && !harm)
        fail_msg("%s: %s", err.where, err.what);
    return opened;
}

static void rig_close(rig *r)
{
    snug_session_free(r->session);
    snug_plan_free(r->plan);
    sn_device_close(r->device);
    snug_model_free(r->model);
}

static void train_with(const char *spec, uint64_t seed, snug_optimizer optimizer, bool keep,
                       sabotage harm, result *out)
{
    snug_error err = SNUG_ERROR_INIT;
    rig r;
    memset(out, 0, sizeof *out);
    if (rig_open(&r, spec, seed, optimizer, keep, harm)) {
        out->failed = true;
        rig_close(&r);
        return;
    }
    out->planned = snug_plan_arena_bytes(r.plan);
    out->n_slabs = snug_plan_n_slabs(r.plan);
    for (int step = 0; step < N_STEPS; step++) {
        feed(r.session, step, step == 1 ? 3 : BATCH);
        if (snug_session_step(r.session, &out->loss[step], &err)) {
            if (!harm)
                fail_msg("%s: %s", err.where, err.what);
            out->failed = true;
        }
    }
    feed(r.session, 9, BATCH);
    if (snug_session_evaluate(r.session, &out->loss[N_STEPS], &err) ||
        snug_session_predict(r.session, &err) ||
        snug_session_outputs(r.session, out->outputs, &err))
        fail_msg("%s: %s", err.where, err.what);
    take_weights(r.session, r.model, out);
    snug_session_numbers numbers;
    snug_session_measure(r.session, &numbers);
    out->measured = numbers.measured_peak_bytes;
    rig_close(&r);
}

static void train(const char *spec, uint64_t seed, snug_optimizer optimizer, bool keep, result *out)
{
    train_with(spec, seed, optimizer, keep, NULL, out);
}

/* A residual block's output is found again: the normalization inside the addition, too. */
static void what_is_replayed(void **state)
{
    for (int keep = 0; keep < 2; keep++) {
        snug_error err = SNUG_ERROR_INIT;
        snug_model *model = network();
        snug_plan *plan;
        snug_plan_options o = {SNUG_PLAN_DEFAULTS, .batch = BATCH, .device = "null:1GiB",
                               .keep_activations = keep};
        assert_int_equal(snug_plan_new(&plan, model, &o, &err), SNUG_OK);
        const sn_graph *g = sn_plan_graph(plan, SN_GRAPH_TRAIN);
        int additions = 0, normalizations = 0;
        for (size_t i = 0; i < g->nodes.n; i++) {
            additions += g->nodes.at[i].is_replay && g->nodes.at[i].op == SN_OP_BINARY;
            normalizations +=
                g->nodes.at[i].is_replay && g->nodes.at[i].op == SN_OP_BATCH_NORM_APPLY;
        }
        assert_int_equal(additions > 0, !keep);
        assert_int_equal(normalizations > 1, !keep);
        snug_plan_free(plan);
        snug_model_free(model);
    }
}

static const snug_optimizer sgd = {.kind = SNUG_SGD, .lr = 0.05f, .momentum = 0.9f};
static const snug_optimizer adam = {.kind = SNUG_ADAM, .lr = 0.01f};
static const snug_optimizer clipped = {.kind = SNUG_SGD, .lr = 0.05f, .clip_global_norm = 0.5f};

static void same(const result *a, const result *b)
{
    assert_int_equal(a->n, b->n);
    assert_memory_equal(a->loss, b->loss, sizeof a->loss);
    assert_memory_equal(a->weights, b->weights, a->n * sizeof *a->weights);
    assert_memory_equal(a->outputs, b->outputs, sizeof a->outputs);
}

static void all_finite(const result *r)
{
    for (size_t i = 0; i < r->n; i++)
        assert_true(r->weights[i] - r->weights[i] == 0);
    for (int i = 0; i <= N_STEPS; i++)
        assert_true(r->loss[i] > 0 && r->loss[i] < 100);
}

static void check_all(snug_optimizer optimizer)
{
    static result first, other;
    train("slab=64MiB,queues=1", 0, optimizer, true, &first);
    all_finite(&first);
    for (uint64_t seed = 1; seed <= 6; seed++) {
        static const char *const specs[] = {"slab=1MiB", "slab=1MiB,layouts=1", "slab=12KiB",
                                            "slab=12KiB,layouts=1,queues=1"};
        train(specs[seed % 4], seed, optimizer, seed % 2, &other);
        same(&first, &other);
        assert_int_equal(other.planned, other.measured);
        if (seed % 4 >= 2)
            assert_true(other.n_slabs > 1);
    }
}

static void with_sgd(void **state)
{
    check_all(sgd);
}

static void with_adam(void **state)
{
    check_all(adam);
}

static void with_clipping(void **state)
{
    check_all(clipped);
}

/* The loss of a batch that is seen again and again falls: the numbers are not only the same, they
 * are training. */
static void it_learns(void **state)
{
    snug_error err = SNUG_ERROR_INIT;
    float first = 0, last = 0;
    rig r;
    rig_open(&r, "layouts=1", 1, adam, false, NULL);
    for (int step = 0; step < 20; step++) {
        feed(r.session, 0, BATCH);
        if (snug_session_step(r.session, step ? &last : &first, &err))
            fail_msg("%s: %s", err.where, err.what);
    }
    rig_close(&r);
    if (!(last < first / 2))
        fail_msg("the loss of one batch was %g, and is %g after twenty steps", (double)first,
                 (double)last);
}

/* ---- the torture finds what is wrong --------------------------------------------------------- */

static void forget_waits(const sn_program *program)
{
    sn_instr *instrs = (sn_instr *)(uintptr_t)program->instrs;
    for (size_t i = 0; i < program->n_instrs; i++)
        instrs[i].n_waits = 0;
}

static void move(const sn_program *program, uint32_t buffer, uint32_t slab, uint64_t offset)
{
    ((sn_program_buffer *)(uintptr_t)&program->buffers[buffer])->offset = offset;
    ((sn_program_buffer *)(uintptr_t)&program->buffers[buffer])->slab = slab;
    for (size_t i = 0; i < program->n_instrs; i++) {
        const sn_instr *in = &program->instrs[i];
        for (int k = 0; k < in->n_in + in->n_out; k++) {
            sn_view *v = (sn_view *)(uintptr_t)(k < in->n_in ? &in->in[k] : &in->out[k - in->n_in]);
            if (v->buffer == buffer) {
                v->offset = offset;
                v->slab = slab;
            }
        }
    }
}

/* The longest-lived activation is put where another one lives meanwhile. */
static void overlap(const sn_program *program)
{
    uint32_t longest = 0, length = 0;
    for (uint32_t i = 0; i < program->n_buffers; i++) {
        const sn_program_buffer *b = &program->buffers[i];
        if (!b->persistent && b->kind == SN_BYTES_ACTIVATIONS && b->last - b->first > length) {
            longest = i;
            length = b->last - b->first;
        }
    }
    const sn_program_buffer *b = &program->buffers[longest];
    for (uint32_t i = 0; i < program->n_buffers; i++) {
        const sn_program_buffer *c = &program->buffers[i];
        if (!c->persistent && c->first > b->first && c->last < b->last && c->bytes >= b->bytes) {
            move(program, longest, c->slab, c->offset);
            return;
        }
    }
    fail_msg("no such pair in this program");
}

static void a_broken_plan_shows(void **state)
{
    static result good, bad;
    static const sabotage harms[] = {forget_waits, overlap};
    for (size_t h = 0; h < SN_LEN(harms); h++) {
        int found = 0;
        for (uint64_t seed = 1; seed <= 4; seed++) {
            train("layouts=1", seed, sgd, false, &good);
            train_with("layouts=1", seed, sgd, false, harms[h], &bad);
            found += bad.failed || memcmp(good.weights, bad.weights, good.n * sizeof(float)) != 0;
        }
        assert_true(found > 0);
    }
}

static void leaks_nothing(void **state)
{
    assert_int_equal(sn_ledger_live_bytes(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_replayed), cmocka_unit_test(with_sgd),
        cmocka_unit_test(with_adam),        cmocka_unit_test(with_clipping),
        cmocka_unit_test(it_learns),        cmocka_unit_test(a_broken_plan_shows),
        cmocka_unit_test(leaks_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
