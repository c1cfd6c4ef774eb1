/* SPDX-License-Identifier: Apache-2.0
 *
 * Winograd's convolutions beyond their values (test_cpu_kernels compares these): the same bits
 * whatever the team, room for every batch below the planned one.
 */
#include "unit/backend/sets.h"

/* A 3x3 convolution of h x w, c to oc channels, or one of its gradients. */
static one_op conv3x3(sn_op_id op, int64_t n, int64_t h, int64_t w, int64_t c, int64_t oc)
{
    one_op o = {.op = op, .batch = n, .n_in = 2};
    sn_conv_attrs *a = &o.attrs.conv;
    *a = (sn_conv_attrs){.stride = {1, 1}, .dilation = {1, 1}, .pad = {1, 1, 1, 1}, .groups = 1};
    a->in_hw[0] = h, a->in_hw[1] = w, a->kernel[0] = a->kernel[1] = 3;
    a->has_dbias = op == SN_OP_CONV2D_DW;
    sn_desc x = f32(4, n, h, w, c), y = f32(4, n, h, w, oc);
    o.in[0] = op == SN_OP_CONV2D_DX ? y : x;
    o.in[1] = op == SN_OP_CONV2D_DW ? y : f32(4, 3, 3, c, oc);
    if (op == SN_OP_CONV2D)
        o.in[o.n_in++] = sn_desc_absent();
    infer(&o, op == SN_OP_CONV2D_DW ? 2 : 1);
    return o;
}

/* Bits of one 3x3 convolution's three passes, made for `batch` samples, run for fewer. */
static uint64_t winograd_bits(int n_threads, int64_t batch, int64_t run_batch, sn_op_id op)
{
    static float x[5 * 23 * 21 * 40], w[9 * 40 * 24], y[5 * 23 * 21 * 40];
    snug_error err = SNUG_ERROR_INIT;
    sn_device_options options = {.n_threads = n_threads};
    sn_step step = {.number = 1};
    one_op o = conv3x3(op, batch, 23, 21, 40, 24);
    o.run_batch = run_batch;
    state = 4711;
    for (size_t i = 0; i < SN_LEN(x); i++)
        x[i] = draw();
    for (size_t i = 0; i < SN_LEN(w); i++)
        w[i] = draw();
    assert_int_equal(sn_backend_cpu.open(&o.device, "", &options, &err), SNUG_OK);
    if (one_make(&o, &err) || one_write(&o, 0, x, &err) ||
        one_write(&o, 1, op == SN_OP_CONV2D_DW ? x + 99 : w, &err) || one_run(&o, &step, &err))
        fail_msg("%s", err.what);
    assert_string_equal(sn_backend_cpu.kernel_name(o.device, op, o.proposal.kernel),
                        "own, Winograd");
    uint64_t bits = 0;
    for (int i = 0; i < o.n_out; i++) {
        memset(y, 0, sizeof y);
        assert_int_equal(one_read(&o, i, y, &err), SNUG_OK);
        uint64_t n = plain_bytes(&o.out[i]) / 4;
        if (op != SN_OP_CONV2D_DW)
            n = n / (uint64_t)batch * (uint64_t)run_batch;
        for (uint64_t k = 0; k < n; k++) {
            uint32_t word;
            memcpy(&word, &y[k], sizeof word);
            bits = (bits ^ word) * 1099511628211u;
        }
    }
    one_free(&o);
    sn_backend_cpu.close(o.device);
    return bits;
}

/* Scratch of a 3x3 convolution of n samples; 0: another kernel takes it. */
static uint64_t winograd_scratch(sn_device *d, sn_op_id op, int64_t n, int64_t side, int64_t c,
                                 int64_t oc)
{
    sn_proposal out;
    one_op o = conv3x3(op, n, side, side, c, oc);
    sn_operation operation = one_operation(&o);
    assert_int_equal(sn_backend_cpu.propose(d, &operation, &out, NULL), SNUG_OK);
    const char *kernel = sn_backend_cpu.kernel_name(d, op, out.kernel);
    return strcmp(kernel, "own, Winograd") == 0 ? out.workspace_bytes : 0;
}

/* A smaller batch fits the room of a larger one. */
static void test_winograd_room(void **unused)
{
    static const int64_t channels[][2] = {{8, 8}, {16, 64}, {64, 16}, {200, 130}, {512, 512}};
    static const int64_t sides[] = {7, 14, 55};
    sn_op_id ops[] = {SN_OP_CONV2D, SN_OP_CONV2D_DX, SN_OP_CONV2D_DW};
    setenv("SNUG_CPU_ISA", sets[0], 1);
    for (int n_threads = 1; n_threads <= 24; n_threads += n_threads < 3 ? 1 : 7) {
        sn_device *d;
        sn_device_options options = {.n_threads = n_threads};
        assert_int_equal(sn_backend_cpu.open(&d, "", &options, NULL), SNUG_OK);
        for (size_t i = 0; i < SN_LEN(ops) * SN_LEN(channels) * SN_LEN(sides); i++) {
            const int64_t *c = channels[i / SN_LEN(ops) % SN_LEN(channels)];
            int64_t side = sides[i / SN_LEN(ops) / SN_LEN(channels)];
            uint64_t before = 0;
            for (int64_t n = 1; n <= 40; n++) {
                uint64_t now = winograd_scratch(d, ops[i % SN_LEN(ops)], n, side, c[0], c[1]);
                if (now < before)
                    fail_msg("%d threads, batch %d of %dx%d, %d to %d: %llu bytes after %llu",
                             n_threads, (int)n, (int)side, (int)side, (int)c[0], (int)c[1],
                             (unsigned long long)now, (unsigned long long)before);
                before = now;
            }
            assert_true(before > 0);
        }
        sn_backend_cpu.close(d);
    }
    unsetenv("SNUG_CPU_ISA");
}

/* The bits depend neither on the team nor on the batch that the room was planned for. */
static void test_winograd_bits(void **unused)
{
    sn_op_id ops[] = {SN_OP_CONV2D, SN_OP_CONV2D_DX, SN_OP_CONV2D_DW};
    setenv("SNUG_CPU_ISA", sets[0], 1);
    for (size_t i = 0; i < SN_LEN(ops); i++) {
        uint64_t all = winograd_bits(1, 5, 5, ops[i]), some = winograd_bits(1, 2, 2, ops[i]);
        assert_true(all != some);
        for (int n_threads = 1; n_threads <= 5; n_threads++) {
            assert_true(winograd_bits(n_threads, 5, 5, ops[i]) == all);
            assert_true(winograd_bits(n_threads, 5, 2, ops[i]) == some);
        }
    }
    unsetenv("SNUG_CPU_ISA");
}

static int run_set(const char *set)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_winograd_bits),
        cmocka_unit_test(test_winograd_room),
    };
    sets[0] = set;
    int failed = cmocka_run_group_tests_name(set, tests, NULL, NULL);
    return failed || sn_ledger_live_bytes() != 0;
}

int main(void)
{
    return each_set(run_set);
}
