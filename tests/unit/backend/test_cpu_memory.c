/* SPDX-License-Identifier: Apache-2.0
 *
 * The CPU backend's memory and execution: where a slab ends, a caller's memory, layouts there and
 * back, the measured peak, shorter batches, thread counts, failing allocations.
 */
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "backend/cpu/cpu.h"
#include "support/one.h"

static uint32_t state = 777;

static float draw(void)
{
    state = state * 1664525u + 1013904223u;
    return (float)(state >> 8) * (2.0f / 16777216.0f) - 1.0f;
}

static sn_device *open_device(int n_threads)
{
    sn_device_options options = {.n_threads = n_threads};
    snug_error err = SNUG_ERROR_INIT;
    sn_device *d;
    if (sn_backend_cpu.open(&d, "", &options, &err))
        fail_msg("%s", err.what);
    return d;
}

static sn_desc f32(int rank, int64_t a, int64_t b, int64_t c, int64_t d)
{
    sn_desc out = {SN_F32, {rank, {a, b, c, d}}};
    return out;
}

static void infer(one_op *o, int n_out)
{
    snug_error err = SNUG_ERROR_INIT;
    o->n_out = n_out;
    if (sn_op_of(o->op)->infer(&o->attrs, o->in, o->n_in, o->out, n_out, &err))
        fail_msg("%s", err.what);
}

static void make(one_op *o)
{
    snug_error err = SNUG_ERROR_INIT;
    if (one_make(o, &err))
        fail_msg("%s: %s", err.where, err.what);
}

static void test_open(void **unused)
{
    snug_error err = SNUG_ERROR_INIT;
    sn_device *d = NULL;
    sn_device_options options = {.n_threads = -1};
    assert_int_equal(sn_backend_cpu.open(&d, "2GiB", NULL, &err), SNUG_E_USAGE);
    assert_null(d);
    assert_int_equal(sn_backend_cpu.open(&d, "", &options, &err), SNUG_E_USAGE);
    assert_non_null(strstr(err.what, "-1"));
    d = open_device(3);
    sn_device_info info;
    sn_backend_cpu.info(d, &info);
    assert_int_equal(info.n_threads, 3);
    assert_true(info.is_host);
    assert_true(info.total_bytes > 0 && info.free_bytes <= info.total_bytes);
    assert_non_null(strstr(info.name, "3 threads"));
    sn_backend_cpu.close(d);
    sn_backend_cpu.close(NULL);
    assert_int_equal(sn_ledger_live_bytes(), 0);
}

/* The byte after the plan is not there. */
static void test_guard(void **unused)
{
    sn_device *d = open_device(1);
    uint64_t bytes[2] = {64 * 1000, 5000 * 64 + 7};
    sn_memory *m;
    assert_int_equal(sn_backend_cpu.reserve(d, 2, bytes, NULL, &m, NULL), SNUG_OK);
    for (uint32_t slab = 0; slab < 2; slab++) {
        uint64_t end = (bytes[slab] + 63) / 64 * 64;
        sn_view v = {.buffer = 0, .slab = slab, .offset = bytes[slab], .desc = f32(1, 1, 0, 0, 0)};
        unsigned char *at = sn_backend_cpu.host_address(m, &v);
        unsigned char *start = at - bytes[slab];
        for (uint64_t i = 0; i < end; i++)
            assert_int_equal(start[i], 0);
        memset(start, 1, end);
        pid_t child = fork();
        if (child == 0) {
            signal(SIGSEGV, SIG_DFL); /* cmocka's handler would run the tests on */
            start[end] = 1;
            _exit(0);
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status));
    }
    sn_view outside = {.buffer = 0, .slab = 2, .offset = 0, .desc = f32(1, 1, 0, 0, 0)};
    assert_null(sn_backend_cpu.host_address(m, &outside));
    float x = 0;
    outside.slab = 0;
    outside.offset = bytes[0] - 2;
    outside.layout = SN_PLAIN;
    assert_int_equal(sn_backend_cpu.write(m, &outside, &x, NULL), SNUG_E_INTERNAL);
    sn_backend_cpu.release(m);
    sn_backend_cpu.release(NULL);
    sn_backend_cpu.close(d);
    assert_int_equal(sn_ledger_live_bytes(), 0);
}

static void test_caller_memory(void **unused)
{
    sn_device *d = open_device(1);
    uint64_t bytes[1] = {1024};
    unsigned char *own = aligned_alloc(64, 2048);
    memset(own, 7, 2048);
    void *caller[1] = {own};
    sn_memory *m;
    assert_int_equal(sn_backend_cpu.reserve(d, 1, bytes, caller, &m, NULL), SNUG_OK);
    for (int i = 0; i < 2048; i++)
        assert_int_equal(own[i], i < 1024 ? 0 : 7);
    sn_backend_cpu.release(m);
    caller[0] = own + 4;
    snug_error err = SNUG_ERROR_INIT;
    assert_int_equal(sn_backend_cpu.reserve(d, 1, bytes, caller, &m, &err), SNUG_E_USAGE);
    free(own);
    sn_backend_cpu.close(d);
    assert_int_equal(sn_ledger_live_bytes(), 0);
}

static void fill_conv(one_op *o, sn_device *d, int64_t n, int64_t c, int64_t oc, int64_t groups)
{
    memset(o, 0, sizeof *o);
    o->device = d;
    o->op = SN_OP_CONV2D;
    sn_conv_attrs *a = &o->attrs.conv;
    a->stride[0] = a->stride[1] = a->dilation[0] = a->dilation[1] = 1;
    a->pad[0] = a->pad[1] = a->pad[2] = a->pad[3] = 1;
    a->groups = groups;
    o->n_in = 3;
    o->in[0] = f32(4, n, 9, 7, c);
    o->in[1] = f32(4, 3, 3, c / groups, oc);
    o->in[2] = sn_desc_absent();
    infer(o, 1);
}

/* What is written comes back, whatever the layout. */
static void test_round_trips(void **unused)
{
    int64_t shapes[][3] = {{24, 40, 1}, {20, 20, 20}, {16, 48, 1}, {64, 32, 2}};
    sn_device *d = open_device(2);
    for (size_t i = 0; i < SN_LEN(shapes); i++) {
        one_op o;
        fill_conv(&o, d, 2, shapes[i][0], shapes[i][1], shapes[i][2]);
        make(&o);
        for (int k = 0; k < 2; k++) {
            size_t n = (size_t)sn_shape_n(&o.in[k].shape);
            float *a = malloc(n * sizeof *a), *b = calloc(n, sizeof *b);
            for (size_t e = 0; e < n; e++)
                a[e] = draw();
            assert_int_equal(one_write(&o, k, a, NULL), SNUG_OK);
            assert_int_equal(sn_backend_cpu.read(o.memory, &o.in_view[k], b, NULL), SNUG_OK);
            assert_memory_equal(a, b, n * sizeof *a);
            free(a);
            free(b);
        }
        char name[64];
        sn_backend_cpu.layout_name(d, o.proposal.in[1], name, sizeof name);
        assert_true(name[0] != 0);
        one_free(&o);
    }
    sn_backend_cpu.close(d);
    assert_int_equal(sn_ledger_live_bytes(), 0);
}

/* A layout is found again by equal descriptors, and a proposal does not change when asked twice. */
static void test_proposals_repeat(void **unused)
{
    sn_device *d = open_device(2);
    one_op a, b;
    fill_conv(&a, d, 2, 24, 40, 1);
    make(&a);
    fill_conv(&b, d, 2, 24, 40, 1);
    make(&b);
    assert_int_equal(a.proposal.kernel, b.proposal.kernel);
    assert_true(sn_layout_eq(a.proposal.in[1], b.proposal.in[1]));
    assert_int_equal(a.proposal.workspace_bytes, b.proposal.workspace_bytes);
    one_free(&a);
    one_free(&b);
    sn_backend_cpu.close(d);
}

static void test_measured_peak(void **unused)
{
    sn_device *d = open_device(2);
    one_op o;
    fill_conv(&o, d, 2, 24, 40, 1);
    make(&o);
    assert_int_equal(sn_backend_cpu.measured_peak(o.exec, 0), 0);
    assert_int_equal(one_run(&o, NULL, NULL), SNUG_OK);
    /* Operands end at whole lines; the last ends where its own bytes do. */
    uint64_t peak = sn_backend_cpu.measured_peak(o.exec, 0);
    assert_true(peak <= o.slab_bytes && peak + 64 > o.slab_bytes);
    assert_int_equal(sn_backend_cpu.measured_peak(o.exec, 1), 0);
    const double *seconds = sn_backend_cpu.profile(o.exec, true);
    assert_int_equal(one_run(&o, NULL, NULL), SNUG_OK);
    assert_true(seconds[0] > 0);
    assert_int_equal(sn_backend_cpu.run(o.exec, NULL, 0, 2, NULL), SNUG_E_INTERNAL);
    /* A slab that is one line too short is noticed before anything runs. */
    one_op p;
    fill_conv(&p, d, 2, 24, 40, 1);
    make(&p);
    sn_exec *exec;
    sn_memory *m;
    uint64_t less = p.slab_bytes - 64;
    snug_error err = SNUG_ERROR_INIT;
    assert_int_equal(sn_backend_cpu.reserve(d, 1, &less, NULL, &m, NULL), SNUG_OK);
    assert_int_equal(sn_backend_cpu.prepare(m, &p.program, 2, &exec, &err), SNUG_E_INTERNAL);
    assert_null(exec);
    sn_backend_cpu.release(m);
    assert_int_equal(sn_backend_cpu.prepare(p.memory, &p.program, 3, &exec, &err), SNUG_E_INTERNAL);
    one_free(&o);
    one_free(&p);
    sn_backend_cpu.close(d);
    assert_int_equal(sn_ledger_live_bytes(), 0);
}

/* ---- shorter batches and thread counts ------------------------------------------------------- */

/* One operator's outputs; run_batch 0: all. */
static void outputs(one_op *o, float *const in[], float *out[], int n_out)
{
    snug_error err = SNUG_ERROR_INIT;
    sn_step step = {.number = 1, .seed = 3, .n_batch = 2, .lr = 0.1f};
    make(o);
    for (int i = 0; i < o->n_in; i++)
        if (in[i] && one_write(o, i, in[i], &err))
            fail_msg("%s", err.what);
    if (one_run(o, &step, &err))
        fail_msg("%s", err.what);
    for (int i = 0; i < n_out; i++)
        if (one_read(o, i, out[i], &err))
            fail_msg("%s", err.what);
    one_free(o);
}

static void conv_of(one_op *o, sn_device *d, sn_op_id op, int64_t n, int64_t c, int64_t oc,
                    int64_t groups)
{
    one_op f;
    fill_conv(&f, d, n, c, oc, groups);
    *o = f;
    o->op = op;
    o->batch = n;
    o->attrs.conv.in_hw[0] = 9, o->attrs.conv.in_hw[1] = 7;
    o->attrs.conv.kernel[0] = o->attrs.conv.kernel[1] = 3;
    if (op == SN_OP_CONV2D)
        return;
    o->n_in = 2;
    if (op == SN_OP_CONV2D_DX) {
        o->in[0] = f.out[0];
    } else {
        o->in[1] = f.out[0];
    }
    infer(o, op == SN_OP_CONV2D_DX ? 1 : 2);
}

/* The placement of batch 5 run with 2 samples gives what batch 2 gives. */
static void test_short_batch(void **unused)
{
    int64_t shapes[][3] = {{24, 40, 1}, {16, 16, 16}, {3, 20, 1}, {64, 32, 1}};
    sn_op_id ops[3] = {SN_OP_CONV2D, SN_OP_CONV2D_DX, SN_OP_CONV2D_DW};
    sn_device *d = open_device(2);
    enum { MOST = 5 * 9 * 7 * 64 };
    float *a = malloc(MOST * sizeof *a), *b = malloc(MOST * sizeof *b);
    float *y = calloc(MOST, sizeof *y), *z = calloc(MOST, sizeof *z);
    for (int i = 0; i < MOST; i++)
        a[i] = draw(), b[i] = draw();
    for (size_t s = 0; s < SN_LEN(shapes); s++)
        for (int k = 0; k < 3; k++) {
            one_op whole, less;
            conv_of(&whole, d, ops[k], 5, shapes[s][0], shapes[s][1], shapes[s][2]);
            conv_of(&less, d, ops[k], 2, shapes[s][0], shapes[s][1], shapes[s][2]);
            whole.run_batch = 2;
            memset(y, 0, MOST * sizeof *y);
            memset(z, 0, MOST * sizeof *z);
            int64_t n = sn_shape_n(&less.out[0].shape);
            outputs(&less, (float *[]){a, b, NULL}, &z, 1);
            outputs(&whole, (float *[]){a, b, NULL}, &y, 1);
            for (int64_t i = 0; i < n; i++)
                if (!(fabsf(y[i] - z[i]) <= 1e-4f))
                    fail_msg("%s: element %d is %g, not %g", sn_op_of(ops[k])->name, (int)i,
                             (double)y[i], (double)z[i]);
        }
    free(a);
    free(b);
    free(y);
    free(z);
    sn_backend_cpu.close(d);
    assert_int_equal(sn_ledger_live_bytes(), 0);
}

/* Kernels of our own give the same bits for every number of threads. */
static void test_threads(void **unused)
{
    enum { N = 6 * 9 * 7 * 40 };
    float *x = malloc(N * sizeof *x), *dy = malloc(N * sizeof *dy), *out[3][3];
    float gamma[40], beta[40], mean[40], var[40];
    for (int i = 0; i < N; i++)
        x[i] = draw(), dy[i] = draw();
    for (int i = 0; i < 40; i++)
        gamma[i] = draw(), beta[i] = draw(), mean[i] = draw(), var[i] = 1 + draw();
    for (int t = 0; t < 3; t++)
        for (int i = 0; i < 3; i++)
            out[t][i] = calloc(N, sizeof *out[t][i]);
    sn_desc xd = f32(4, 6, 9, 7, 40), v = f32(1, 40, 0, 0, 0);
    for (int k = 0; k < 3; k++) {
        for (int t = 0; t < 3; t++) {
            sn_device *d = open_device(t + 1);
            one_op o = {.device = d, .op = SN_OP_BATCH_NORM, .n_in = 3, .in = {xd, v, v}};
            o.attrs.norm.epsilon = 1e-3f;
            o.attrs.norm.act.kind = SN_ACT_RELU;
            if (k == 0) {
                infer(&o, 3);
                outputs(&o, (float *[]){x, gamma, beta}, out[t], 3);
            } else if (k == 1) {
                o.op = SN_OP_BATCH_NORM_DX;
                o.n_in = 6;
                o.in[1] = xd;
                for (int i = 2; i < 6; i++)
                    o.in[i] = v;
                infer(&o, 3);
                outputs(&o, (float *[]){x, dy, gamma, beta, mean, var}, out[t], 3);
            } else {
                one_op c;
                conv_of(&c, d, SN_OP_CONV2D_DW, 6, 3, 40, 1);
                c.attrs.conv.has_dbias = true;
                infer(&c, 2);
                outputs(&c, (float *[]){x, dy}, out[t], 2);
            }
            sn_backend_cpu.close(d);
        }
        for (int i = 0; i < 3; i++) {
            assert_memory_equal(out[0][i], out[1][i], N * sizeof *out[0][i]);
            assert_memory_equal(out[0][i], out[2][i], N * sizeof *out[0][i]);
        }
    }
    for (int t = 0; t < 3; t++)
        for (int i = 0; i < 3; i++)
            free(out[t][i]);
    free(x);
    free(dy);
    assert_int_equal(sn_ledger_live_bytes(), 0);
}

/* ---- nothing left behind --------------------------------------------------------------------- */

static void test_failing_allocations(void **unused)
{
    bool done = false;
    for (uint64_t n = 1; n < 200 && !done; n++) {
        sn_device_options options = {.n_threads = 1};
        sn_device *d = NULL;
        sn_ledger_fail_nth(n);
        snug_error err = SNUG_ERROR_INIT;
        if (sn_backend_cpu.open(&d, "", &options, &err) == SNUG_OK) {
            one_op o;
            conv_of(&o, d, SN_OP_CONV2D_DW, 2, 24, 40, 1);
            o.wish[0] = SN_PLAIN;
            snug_status s = one_make(&o, &err);
            if (s)
                assert_true(err.what[0] != 0);
            done = s == SNUG_OK && n > 30;
            one_free(&o);
        }
        sn_ledger_fail_nth(0);
        sn_backend_cpu.close(d);
        assert_int_equal(sn_ledger_live_bytes(), 0);
    }
    assert_true(done);
}

/* A prepared program runs without an allocation of ours. */
static void test_run_allocates_nothing(void **unused)
{
    sn_device *d = open_device(2);
    one_op o;
    conv_of(&o, d, SN_OP_CONV2D_DW, 2, 24, 40, 1);
    make(&o);
    sn_step step = {.n_batch = 2};
    uint64_t calls = sn_ledger_calls();
    for (int i = 0; i < 3; i++)
        assert_int_equal(one_run(&o, &step, NULL), SNUG_OK);
    assert_int_equal(sn_ledger_calls(), calls);
    one_free(&o);
    sn_backend_cpu.close(d);
    assert_int_equal(sn_ledger_live_bytes(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_open),
        cmocka_unit_test(test_guard),
        cmocka_unit_test(test_caller_memory),
        cmocka_unit_test(test_round_trips),
        cmocka_unit_test(test_proposals_repeat),
        cmocka_unit_test(test_measured_peak),
        cmocka_unit_test(test_short_batch),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_failing_allocations),
        cmocka_unit_test(test_run_allocates_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
