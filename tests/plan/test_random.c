/* SPDX-License-Identifier: Apache-2.0
 *
 * test_random.c - thousands of random graphs: lowered, made in place, placed, judged, and run on
 * the torture backend in random order; an interpreter that keeps everything says what must come
 * out.
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

enum { N_GRAPHS = 2000, MAX_NODES = 40, BATCH = 2, MAX_ELEMENTS = 4096 };

typedef struct dice {
    uint64_t seed, n;
} dice;

static uint32_t roll(dice *d, uint32_t sides)
{
    uint32_t r[4];
    sn_philox(r, d->seed, d->n++, 0);
    return r[0] % sides;
}

static sn_ref pick(dice *d, const sn_graph *g)
{
    for (;;) { /* rather a late one: that makes chains */
        size_t n = g->values.n;
        sn_ref ref = (sn_ref)(roll(d, 2) ? roll(d, (uint32_t)n) : n - 1 - roll(d, 4) % n);
        if (g->values.at[ref].kind == SN_VALUE_X || g->values.at[ref].kind == SN_VALUE_TEMP)
            return ref;
    }
}

static void add_node(dice *d, sn_graph *g)
{
    sn_attrs attrs;
    sn_ref in[2] = {pick(d, g), SN_NO_REF}, out[1];
    const sn_desc *desc = &g->values.at[in[0]].desc;
    sn_op_id op;
    int n_in = 1;
    memset(&attrs, 0, sizeof attrs);
    switch (roll(d, 7)) {
    case 0:
        op = SN_OP_ACTIVATION;
        attrs.act = (sn_act_attrs){.kind = roll(d, 2) ? SN_ACT_RELU : SN_ACT_TANH};
        break;
    case 1:
        op = SN_OP_SCALAR;
        attrs.scalar = (sn_scalar_attrs){.kind = SN_SCALAR_MUL, .value = 0.75f};
        break;
    case 2: /* two of one shape */
        op = SN_OP_BINARY;
        attrs.binary = (sn_binary_attrs){.kind = SN_BINARY_ADD};
        n_in = 2;
        in[1] = in[0];
        for (int tries = 0; tries < 20; tries++) {
            sn_ref other = pick(d, g);
            if (sn_shape_eq(&g->values.at[other].desc.shape, &desc->shape))
                in[1] = other;
        }
        break;
    case 3:
        if (sn_shape_n(&desc->shape) * 2 > MAX_ELEMENTS)
            return;
        op = SN_OP_CONCAT;
        attrs.slice.axis = desc->shape.rank - 1;
        n_in = 2;
        in[1] = in[0];
        break;
    case 4:
        if (desc->shape.dim[desc->shape.rank - 1] < 2)
            return;
        op = SN_OP_SLICE;
        attrs.slice = (sn_slice_attrs){.axis = desc->shape.rank - 1,
                                       .start = 1,
                                       .length = desc->shape.dim[desc->shape.rank - 1] / 2};
        break;
    case 5:
        op = SN_OP_RESHAPE;
        attrs.shape.shape = sn_shape_of(2, (int64_t[]){BATCH, sn_shape_n(&desc->shape) / BATCH});
        break;
    default:
        op = SN_OP_SOFTMAX;
    }
    snug_error err = SNUG_ERROR_INIT;
    if (sn_graph_append(g, op, &attrs, n_in, in, 1, NULL, SN_PHASE_FORWARD, "l", -1, out, &err))
        fail_msg("%s: %s", sn_op_of(op)->name, err.what);
}

static sn_graph *make(uint64_t seed)
{
    dice d = {seed, 0};
    sn_graph *g;
    sn_desc x = {SN_F32, {4, {BATCH, 3, 2, 1 + roll(&d, 9)}}};
    assert_int_equal(sn_graph_new(&g, NULL), SNUG_OK);
    g->options.batch = BATCH;
    assert_int_equal(sn_graph_add_value(g, "x", &x, SN_VALUE_X, &g->x, NULL), SNUG_OK);
    uint32_t n = 3 + roll(&d, MAX_NODES - 3);
    while (g->nodes.n < n)
        add_node(&d, g);
    g->prediction = (sn_ref)g->values.n - 1;
    g->values.at[g->prediction].keep = true;
    return g;
}

/* ---- an interpreter that keeps everything ---------------------------------------------------- */

static float store[MAX_NODES + 2][MAX_ELEMENTS];

static void fill(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t r[4];
        sn_philox(r, 11, i, 0);
        x[i] = sn_uniform_f32(r[0]) - 0.5f;
    }
}

static const float *interpret(const sn_graph *g)
{
    static uint8_t workspace[65536];
    fill(store[g->x], (size_t)sn_shape_n(&g->values.at[g->x].desc.shape));
    for (size_t i = 0; i < g->nodes.n; i++) {
        const sn_node *node = &g->nodes.at[i];
        const sn_op *op = sn_op_of(node->op);
        sn_operand in[2], out[1];
        sn_desc descs[2];
        for (int k = 0; k < node->n_in; k++) {
            descs[k] = g->values.at[node->in[k]].desc;
            in[k] = (sn_operand){store[node->in[k]], descs[k]};
        }
        out[0] = (sn_operand){store[node->out[0]], g->values.at[node->out[0]].desc};
        sn_step step = {.n_batch = BATCH};
        sn_call call = {&node->attrs, in, out, node->n_in, node->n_out, workspace, &step};
        if (op->reference_workspace)
            assert_true(op->reference_workspace(&node->attrs, descs, node->n_in) <=
                        sizeof workspace);
        op->reference(&call);
    }
    return store[g->prediction];
}

/* ---- the planned way ------------------------------------------------------------------------- */

static void place(sn_lifetimes *lives, sn_device *device, size_t *n_slabs)
{
    static sn_place_item items[256];
    sn_device_info info;
    sn_place_result r;
    device->backend->info(device, &info);
    assert_true(lives->n <= SN_LEN(items));
    for (size_t i = 0; i < lives->n; i++)
        items[i] = (sn_place_item){.bytes = lives->lives[i].bytes,
                                   .first = lives->lives[i].first,
                                   .last = lives->lives[i].last};
    sn_place_options o = {.align = info.align_bytes, .slab_bytes = info.largest_bytes};
    assert_int_equal(sn_place(items, lives->n, &o, &r, NULL), SNUG_OK);
    for (size_t i = 0; i < lives->n; i++) {
        lives->lives[i].slab = items[i].slab;
        lives->lives[i].offset = items[i].offset;
    }
    *n_slabs = r.n_slabs;
}

static void run(const sn_program *p, sn_device *device, float *out)
{
    static float x[MAX_ELEMENTS];
    snug_error err = SNUG_ERROR_INIT;
    sn_memory *memory;
    sn_exec *exec;
    sn_step step = {.n_batch = BATCH};
    const sn_backend *b = device->backend;
    fill(x, SN_LEN(x));
    snug_status s = b->reserve(device, p->n_slabs, p->slab_bytes, NULL, &memory, &err);
    if (!s)
        s = b->prepare(memory, p, BATCH, &exec, &err);
    if (!s)
        s = b->write(memory, &p->x, x, &err);
    if (!s)
        s = b->run(exec, &step, 0, p->n_instrs, &err);
    if (!s)
        s = b->read(memory, &p->prediction, out, &err);
    if (s)
        fail_msg("%s", err.what);
    for (size_t slab = 0; slab < p->n_slabs; slab++)
        assert_true(b->measured_peak(exec, slab) <= p->slab_bytes[slab]);
    b->discard(exec);
    b->release(memory);
}

static void random_graphs(void **state)
{
    static float got[MAX_ELEMENTS];
    size_t shared = 0, waits = 0, aliases = 0;
    for (uint64_t seed = 0; seed < N_GRAPHS; seed++) {
        snug_error err = SNUG_ERROR_INIT;
        sn_device *device;
        sn_lifetimes *lives = NULL;
        sn_program *program = NULL;
        sn_weight_layouts none = {NULL, 0};
        size_t n = 0, n_slabs;
        sn_graph *g = make(seed);
        const float *expected = interpret(g);
        sn_device_options o = {.seed = seed};
        const char *spec = seed % 3 ? "slab=1MiB" : "slab=20KiB";
        assert_int_equal(sn_backend_torture.open(&device, spec, &o, &err), SNUG_OK);
        snug_status s = sn_plan_lower(g, device, &none, &err);
        if (!s && seed % 4)
            s = sn_plan_in_place(g, device, &n, &err);
        if (!s)
            s = sn_lifetimes_new(&lives, g, device, &err);
        if (!s) {
            place(lives, device, &n_slabs);
            s = sn_program_new(&program, g, device, lives, n_slabs, &err);
        }
        if (!s)
            s = sn_plan_check(program, device, &err);
        if (s)
            fail_msg("graph %d: %s", (int)seed, err.what);
        run(program, device, got);
        if (memcmp(got, expected, (size_t)program->prediction.bytes))
            fail_msg("graph %d computes something else", (int)seed);
        shared += n;
        aliases += g->nodes.n - program->n_instrs;
        for (size_t i = 0; i < program->n_instrs; i++)
            waits += program->instrs[i].n_waits;
        sn_program_free(program);
        sn_lifetimes_free(lives);
        sn_graph_free(g);
        device->backend->close(device);
    }
    print_message("%d graphs: %zu operators in place, %zu aliases, %zu waits\n", N_GRAPHS, shared,
                  aliases, waits);
    assert_true(shared > N_GRAPHS && waits > N_GRAPHS && aliases > 0);
}

static void leaks_nothing(void **state)
{
    assert_int_equal(sn_ledger_live_bytes(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_graphs),
                                       cmocka_unit_test(leaks_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
