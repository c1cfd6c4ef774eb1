/* SPDX-License-Identifier: Apache-2.0
 *
 * Every kernel of the CPU backend against the operators' plain C: odd shapes, both layouts, in
 * place, each instruction set that the processor has, lanes past C zero.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "unit/backend/sets.h"

typedef struct trial {
    one_op one;
    void *data[SN_MAX_IN]; /* plain inputs; NULL: drawn */
    bool positive[SN_MAX_IN];
    double tolerance; /* largest difference over largest value; 0: the same bits */
    bool may_be_reference;
    bool as_forward; /* CONV2D_DW: into the layout that the forward pass wants of the weights */
    uint64_t later;  /* steps past the seventh */
} trial;

/* Lanes past C of a BLOCKED output are zeros. */
static void check_lanes(one_op *o, int i)
{
    const sn_view *v = &o->out_view[i];
    if (v->buffer == UINT32_MAX || v->layout.kind != SN_LAYOUT_BLOCKED)
        return;
    const unsigned char *at = o->device->backend->host_address(o->memory, v);
    size_t element = sn_dtype_bytes(v->desc.dtype), block = v->layout.block;
    const int64_t *d = v->desc.shape.dim;
    size_t blocks = ((size_t)d[3] + block - 1) / block, pixels = (size_t)(d[1] * d[2]);
    for (size_t n = 0; n < (size_t)d[0]; n++)
        for (size_t p = 0; p < pixels; p++)
            for (size_t c = (size_t)d[3]; c < blocks * block; c++) {
                size_t e = ((n * blocks + c / block) * pixels + p) * block + c % block;
                for (size_t k = 0; k < element; k++)
                    if (at[e * element + k])
                        fail_msg("%s: lane %zu of %d channels is not zero", sn_op_of(o->op)->name,
                                 c, (int)d[3]);
            }
}

static void compare(const trial *t, const char *set, int i, const void *got, const void *want)
{
    const sn_desc *d = &t->one.out[i];
    uint64_t n = plain_bytes(d) / sn_dtype_bytes(d->dtype);
    if (d->dtype != SN_F32 || t->tolerance == 0) {
        if (memcmp(got, want, plain_bytes(d)))
            fail_msg("%s %s: output %d differs in its bits", set, sn_op_of(t->one.op)->name, i);
        return;
    }
    const float *a = got, *b = want;
    double largest = 0, difference = 0;
    for (uint64_t k = 0; k < n; k++) {
        largest = fmax(largest, fabs((double)b[k]));
        double e = fabs((double)a[k] - (double)b[k]);
        difference = isnan(e) ? INFINITY : fmax(difference, e);
    }
    if (difference > t->tolerance * largest)
        fail_msg("%s %s: output %d is off by %g of %g", set, sn_op_of(t->one.op)->name, i,
                 difference, largest);
}

static sn_layout forward_weights(sn_device *d, const one_op *dw)
{
    one_op o = {.op = SN_OP_CONV2D, .attrs = dw->attrs, .n_in = 3};
    sn_proposal out;
    o.in[0] = dw->in[0], o.in[1] = dw->out[0], o.in[2] = sn_desc_absent();
    infer(&o, 1);
    sn_operation operation = one_operation(&o);
    assert_int_equal(sn_backend_cpu.propose(d, &operation, &out, NULL), SNUG_OK);
    return out.in[1];
}

static void run_once(const trial *t, const char *set, void *const *in, void *const *want,
                     bool blocked, bool in_place)
{
    one_op o = t->one;
    snug_error err = SNUG_ERROR_INIT;
    sn_step step = {
        .number = 7 + t->later, .seed = 99, .first_sample = 5, .n_batch = 3, .lr = 0.1f};
    for (int i = 0; i < o.n_in; i++)
        if (o.in_layout[i].kind == SN_LAYOUT_UNSET)
            o.in_layout[i] = SN_PLAIN;
    sn_device_options options = {.n_threads = 2};
    assert_int_equal(sn_backend_cpu.open(&o.device, "", &options, &err), SNUG_OK);
    sn_device_info info;
    sn_backend_cpu.info(o.device, &info);
    if (t->as_forward)
        o.wish[0] = forward_weights(o.device, &o);
    int block = strstr(info.name, "AVX-512") ? 16 : 8;
    for (int i = 0; blocked && i < o.n_in; i++)
        if (o.in[i].shape.rank == 4 && o.in_layout[i].kind == SN_LAYOUT_PLAIN)
            o.in_layout[i] = SN_BLOCKED(block);
    const sn_op *op = sn_op_of(o.op);
    for (int i = 0; in_place && i < o.n_out; i++) {
        int from = op->in_place(&o.attrs, i);
        if (from >= 0 && !sn_desc_is_absent(&o.out[i]) &&
            sn_shape_eq(&o.in[from].shape, &o.out[i].shape))
            o.share[i] = 1 + from;
    }
    if (one_make(&o, &err))
        fail_msg("%s %s: %s %s", set, op->name, err.where, err.what);
    const char *kernel = sn_backend_cpu.kernel_name(o.device, o.op, o.proposal.kernel);
    if (!t->may_be_reference && strcmp(kernel, "reference") == 0)
        fail_msg("%s %s: only the reference takes it: %s", set, op->name, o.proposal.why);
    for (int i = 0; i < o.n_in; i++)
        if (in[i] && one_write(&o, i, in[i], &err))
            fail_msg("%s", err.what);
    if (one_run(&o, &step, &err))
        fail_msg("%s", err.what);
    assert_int_equal(sn_backend_cpu.measured_peak(o.exec, 0) <= o.slab_bytes, 1);
    for (int i = 0; i < o.n_out; i++) {
        if (sn_desc_is_absent(&o.out[i]))
            continue;
        void *got = calloc(1, plain_bytes(&o.out[i]) + 1);
        if (one_read(&o, i, got, &err))
            fail_msg("%s", err.what);
        compare(t, set, i, got, want[i]);
        check_lanes(&o, i);
        free(got);
    }
    one_free(&o);
    sn_backend_cpu.close(o.device);
}

/* The operator's plain C, then every instruction set, layout and place. */
static void check(trial *t)
{
    one_op *o = &t->one;
    const sn_op *op = sn_op_of(o->op);
    void *in[SN_MAX_IN] = {NULL}, *want[SN_MAX_OUT] = {NULL}, *workspace = NULL;
    uint64_t live = sn_ledger_live_bytes();
    sn_operand in_operand[SN_MAX_IN], out_operand[SN_MAX_OUT];
    sn_step step = {
        .number = 7 + t->later, .seed = 99, .first_sample = 5, .n_batch = 3, .lr = 0.1f};
    for (int i = 0; i < o->n_in; i++) {
        in_operand[i] = (sn_operand){NULL, o->in[i]};
        if (sn_desc_is_absent(&o->in[i]))
            continue;
        uint64_t bytes = plain_bytes(&o->in[i]);
        in[i] = malloc(bytes + 1);
        float *at = in[i];
        for (uint64_t k = 0; !t->data[i] && k < bytes / 4; k++)
            at[k] = t->positive[i] ? 0.1f + fabsf(draw()) : draw() + 0.2f;
        if (t->data[i])
            memcpy(in[i], t->data[i], bytes);
        in_operand[i].data = in[i];
    }
    for (int i = 0; i < o->n_out; i++) {
        out_operand[i] = (sn_operand){NULL, o->out[i]};
        if (sn_desc_is_absent(&o->out[i]))
            continue;
        want[i] = calloc(1, plain_bytes(&o->out[i]) + 1);
        out_operand[i].data = want[i];
    }
    if (op->reference_workspace)
        workspace = calloc(1, op->reference_workspace(&o->attrs, o->in, o->n_in) + 1);
    sn_call call = {.attrs = &o->attrs,
                    .in = in_operand,
                    .out = out_operand,
                    .n_in = o->n_in,
                    .n_out = o->n_out,
                    .workspace = workspace,
                    .step = &step};
    op->reference(&call);
    for (size_t s = 0; s < SN_LEN(sets); s++) {
        setenv("SNUG_CPU_ISA", sets[s], 1);
        for (int blocked = 0; blocked < 2; blocked++) {
            run_once(t, sets[s], in, want, blocked, false);
            if (op->in_place)
                run_once(t, sets[s], in, want, blocked, true);
        }
    }
    unsetenv("SNUG_CPU_ISA");
    for (int i = 0; i < o->n_in; i++)
        free(in[i]);
    for (int i = 0; i < o->n_out; i++)
        free(want[i]);
    free(workspace);
    assert_int_equal(sn_ledger_live_bytes(), live);
}

static trial trial_of(sn_op_id op, double tolerance)
{
    trial t;
    memset(&t, 0, sizeof t);
    t.one.op = op;
    t.tolerance = tolerance;
    return t;
}

/* ---- convolutions ---------------------------------------------------------------------------- */

typedef struct conv_case {
    int64_t n, h, w, c, oc, kh, kw, stride, dilation, groups, pad[4];
    bool bias;
    sn_act_attrs act;
    bool may_be_reference;
} conv_case;

static const conv_case conv_cases[] = {
    {2, 9, 7, 16, 32, 3, 3, 1, 1, 1, {1, 1, 1, 1}, true, {SN_ACT_RELU, 0, 0, 0}, false},
    {2, 9, 7, 24, 20, 3, 3, 2, 1, 1, {0, 1, 0, 1}, false, {SN_ACT_NONE, 0, 0, 0}, false},
    {3, 8, 8, 40, 24, 1, 1, 1, 1, 1, {0, 0, 0, 0}, true, {SN_ACT_RELU, 0, 6, 0}, false},
    {1, 8, 6, 24, 40, 1, 1, 2, 1, 1, {0, 0, 0, 0}, false, {SN_ACT_NONE, 0, 0, 0}, false},
    {2, 11, 9, 24, 24, 3, 3, 1, 1, 24, {1, 1, 1, 1}, false, {SN_ACT_NONE, 0, 0, 0}, false},
    {2, 11, 9, 24, 24, 3, 3, 2, 1, 24, {0, 1, 1, 1}, true, {SN_ACT_RELU, 0, 6, 0}, false},
    {2, 12, 10, 16, 16, 5, 5, 2, 1, 16, {1, 2, 1, 2}, false, {SN_ACT_NONE, 0, 0, 0}, false},
    {2, 13, 11, 3, 20, 3, 3, 2, 1, 1, {0, 1, 0, 1}, false, {SN_ACT_NONE, 0, 0, 0}, false},
    {2, 15, 17, 3, 64, 7, 7, 2, 1, 1, {2, 3, 2, 3}, true, {SN_ACT_RELU, 0, 0, 0}, false},
    {3, 7, 6, 1, 8, 3, 3, 1, 1, 1, {0, 0, 0, 0}, true, {SN_ACT_RELU, 0, 0, 0}, false},
    {2, 9, 7, 16, 16, 3, 3, 1, 2, 1, {2, 2, 2, 2}, false, {SN_ACT_NONE, 0, 0, 0}, false},
    {2, 9, 7, 32, 32, 3, 3, 1, 1, 2, {1, 1, 1, 1}, false, {SN_ACT_NONE, 0, 0, 0}, false},
    {2, 17, 13, 20, 24, 3, 3, 1, 1, 1, {0, 2, 1, 0}, true, {SN_ACT_RELU, 0, 0, 0}, false},
    {3, 16, 16, 40, 72, 3, 3, 1, 1, 1, {1, 1, 1, 1}, false, {SN_ACT_RELU, 0, 6, 0}, false},
    {1, 35, 33, 8, 9, 3, 3, 1, 1, 1, {2, 2, 2, 2}, true, {SN_ACT_NONE, 0, 0, 0}, false},
    {2, 7, 7, 6, 12, 3, 3, 1, 1, 6, {1, 1, 1, 1}, true, {SN_ACT_NONE, 0, 0, 0}, true},
    {2, 7, 7, 6, 9, 3, 3, 1, 1, 3, {1, 1, 1, 1}, true, {SN_ACT_NONE, 0, 0, 0}, true},
};

static void test_convolutions(void **unused)
{
    for (size_t i = 0; i < SN_LEN(conv_cases); i++) {
        const conv_case *c = &conv_cases[i];
        sn_attrs attrs;
        memset(&attrs, 0, sizeof attrs);
        sn_conv_attrs *a = &attrs.conv;
        a->stride[0] = a->stride[1] = c->stride;
        a->dilation[0] = a->dilation[1] = c->dilation;
        memcpy(a->pad, c->pad, sizeof a->pad);
        a->groups = c->groups;
        a->in_hw[0] = c->h, a->in_hw[1] = c->w;
        a->kernel[0] = c->kh, a->kernel[1] = c->kw;
        a->has_dbias = c->bias;
        a->act = c->act;
        sn_desc x = f32(4, c->n, c->h, c->w, c->c);
        sn_desc w = f32(4, c->kh, c->kw, c->c / c->groups, c->oc), b = f32(1, c->oc, 0, 0, 0);
        trial t = trial_of(SN_OP_CONV2D, 1e-5);
        t.may_be_reference = c->may_be_reference;
        t.one.attrs = attrs;
        t.one.n_in = 3;
        t.one.in[0] = x, t.one.in[1] = w, t.one.in[2] = c->bias ? b : sn_desc_absent();
        t.one.in_layout[1] = (sn_layout){SN_LAYOUT_UNSET, 0, 0};
        infer(&t.one, 1);
        sn_desc y = t.one.out[0];
        check(&t);
        a->act.kind = SN_ACT_NONE;
        t = trial_of(SN_OP_CONV2D_DX, 1e-5);
        t.may_be_reference = c->may_be_reference || c->c < 8;
        t.one.attrs = attrs;
        t.one.n_in = 2;
        t.one.in[0] = y, t.one.in[1] = w;
        infer(&t.one, 1);
        check(&t);
        t = trial_of(SN_OP_CONV2D_DW, 1e-5);
        t.may_be_reference = c->may_be_reference;
        t.one.attrs = attrs;
        t.one.n_in = 2;
        t.one.in[0] = x, t.one.in[1] = y;
        infer(&t.one, 2);
        check(&t);
        t.one.wish[0] = SN_PLAIN;
        check(&t);
        t.as_forward = true;
        check(&t);
    }
}

/* ---- batch norm ------------------------------------------------------------------------------ */

static void norm_trials(sn_desc x, bool gamma, bool beta, bool relu, float max)
{
    int64_t c = x.shape.dim[x.shape.rank - 1];
    sn_desc v = f32(1, c, 0, 0, 0), none = sn_desc_absent();
    sn_op_id ops[4] = {SN_OP_BATCH_NORM, SN_OP_BATCH_NORM_APPLY, SN_OP_BATCH_NORM_DX,
                       SN_OP_BATCH_NORM_APPLY_DX};
    for (int k = 0; k < 4; k++) {
        trial t = trial_of(ops[k], 1e-5);
        one_op *o = &t.one;
        o->attrs.norm.epsilon = 1e-3f;
        o->attrs.norm.act.kind = relu ? SN_ACT_RELU : SN_ACT_NONE;
        o->attrs.norm.act.max = max;
        o->in[o->n_in++] = x;
        if (k >= 2)
            o->in[o->n_in++] = x;
        o->in[o->n_in++] = gamma ? v : none;
        o->in[o->n_in++] = beta ? v : none;
        if (k >= 1) {
            o->in[o->n_in++] = v;
            t.positive[o->n_in] = true;
            o->in[o->n_in++] = v;
        }
        infer(o, k == 1 ? 1 : 3);
        check(&t);
    }
}

static void test_batch_norm(void **unused)
{
    norm_trials(f32(4, 3, 5, 7, 24), true, true, true, 0);
    norm_trials(f32(4, 2, 19, 17, 40), true, true, true, 0.8f);
    norm_trials(f32(4, 1, 4, 4, 5), false, true, false, 0);
    norm_trials(f32(4, 4, 2, 3, 64), true, false, false, 0);
    norm_trials(f32(2, 13, 20, 0, 0), true, true, true, 0);
}

/* What APPLY replays is what BATCH_NORM gave, to the bit. */
static void test_batch_norm_replay(void **unused)
{
    for (size_t s = 0; s < SN_LEN(sets); s++) {
        setenv("SNUG_CPU_ISA", sets[s], 1);
        sn_device_options options = {.n_threads = 2};
        sn_device *d;
        assert_int_equal(sn_backend_cpu.open(&d, "", &options, NULL), SNUG_OK);
        enum { N = 3 * 9 * 7 * 20 };
        static float x[N], y[N], again[N], gamma[20], beta[20], mean[20], var[20];
        for (int i = 0; i < N; i++)
            x[i] = draw() * 3 + 1;
        for (int i = 0; i < 20; i++)
            gamma[i] = draw(), beta[i] = draw();
        sn_desc xd = f32(4, 3, 9, 7, 20), v = f32(1, 20, 0, 0, 0);
        one_op o = {.device = d, .op = SN_OP_BATCH_NORM, .n_in = 3, .in = {xd, v, v}};
        o.attrs.norm.epsilon = 1e-3f;
        o.attrs.norm.act.kind = SN_ACT_RELU;
        infer(&o, 3);
        one_op p = o;
        assert_int_equal(one_make(&o, NULL), SNUG_OK);
        one_write(&o, 0, x, NULL), one_write(&o, 1, gamma, NULL), one_write(&o, 2, beta, NULL);
        assert_int_equal(one_run(&o, NULL, NULL), SNUG_OK);
        one_read(&o, 0, y, NULL), one_read(&o, 1, mean, NULL), one_read(&o, 2, var, NULL);
        one_free(&o);
        p.op = SN_OP_BATCH_NORM_APPLY;
        p.n_in = 5;
        p.in[3] = p.in[4] = v;
        infer(&p, 1);
        assert_int_equal(one_make(&p, NULL), SNUG_OK);
        one_write(&p, 0, x, NULL), one_write(&p, 1, gamma, NULL), one_write(&p, 2, beta, NULL);
        one_write(&p, 3, mean, NULL), one_write(&p, 4, var, NULL);
        assert_int_equal(one_run(&p, NULL, NULL), SNUG_OK);
        one_read(&p, 0, again, NULL);
        one_free(&p);
        assert_memory_equal(y, again, sizeof y);
        sn_backend_cpu.close(d);
    }
    unsetenv("SNUG_CPU_ISA");
}

/* ---- element by element ---------------------------------------------------------------------- */

static void test_activations(void **unused)
{
    static const sn_act_attrs acts[] = {
        {SN_ACT_RELU, 0, 0, 0},      {SN_ACT_RELU, 0, 0.5f, 0}, {SN_ACT_RELU, 0.1f, 0, 0},
        {SN_ACT_RELU, 0.1f, 1, .3f}, {SN_ACT_ELU, 0.7f, 0, 0},  {SN_ACT_GELU, 0, 0, 0},
        {SN_ACT_GELU_TANH, 0, 0, 0}, {SN_ACT_SILU, 0, 0, 0},    {SN_ACT_HARD_SILU, 0, 0, 0},
        {SN_ACT_SIGMOID, 0, 0, 0},   {SN_ACT_TANH, 0, 0, 0},    {SN_ACT_HARD_SIGMOID, 0, 0, 0},
    };
    sn_desc shapes[] = {f32(4, 2, 5, 3, 20), f32(2, 3, 13, 0, 0)};
    for (size_t i = 0; i < SN_LEN(acts); i++)
        for (size_t k = 0; k < SN_LEN(shapes); k++) {
            trial t = trial_of(SN_OP_ACTIVATION, 2e-6);
            float x[600];
            for (size_t e = 0; e < SN_LEN(x); e++)
                x[e] = draw() * 6;
            t.one.attrs.act = acts[i];
            t.one.n_in = 1;
            t.one.in[0] = shapes[k];
            t.data[0] = x;
            infer(&t.one, 1);
            check(&t);
            t.one.op = SN_OP_ACTIVATION_DX;
            t.one.n_in = 2;
            t.one.in[1] = shapes[k];
            infer(&t.one, 1);
            check(&t);
        }
}

static void test_special_numbers(void **unused)
{
    float x[16] = {NAN, INFINITY, -INFINITY, 0,  -0.0f, 1e-40f, 88, -88,
                   100, -104,     7,         -7, 3,     -3,     6,  1};
    sn_act kinds[] = {SN_ACT_RELU, SN_ACT_SILU, SN_ACT_SIGMOID,
                      SN_ACT_TANH, SN_ACT_ELU,  SN_ACT_HARD_SIGMOID};
    for (size_t s = 0; s < SN_LEN(sets); s++)
        for (size_t k = 0; k < SN_LEN(kinds); k++) {
            setenv("SNUG_CPU_ISA", sets[s], 1);
            sn_device_options options = {.n_threads = 1};
            one_op o = {.op = SN_OP_ACTIVATION, .n_in = 1, .in = {f32(1, 16, 0, 0, 0)}};
            o.attrs.act = (sn_act_attrs){.kind = kinds[k], .alpha = kinds[k] == SN_ACT_ELU};
            o.in_layout[0] = SN_PLAIN;
            float y[16];
            assert_int_equal(sn_backend_cpu.open(&o.device, "", &options, NULL), SNUG_OK);
            infer(&o, 1);
            assert_int_equal(one_make(&o, NULL), SNUG_OK);
            one_write(&o, 0, x, NULL);
            assert_int_equal(one_run(&o, NULL, NULL), SNUG_OK);
            one_read(&o, 0, y, NULL);
            for (int i = 0; i < 16; i++) {
                float want = sn_act_value(&o.attrs.act, x[i]);
                if (isnan(want)
                        ? !isnan(y[i])
                        : !(y[i] == want || fabsf(y[i] - want) <= 2e-6f * (1 + fabsf(want))))
                    fail_msg("%s %s(%g) is %g, not %g", sets[s], sn_act_name(kinds[k]),
                             (double)x[i], (double)y[i], (double)want);
            }
            one_free(&o);
            sn_backend_cpu.close(o.device);
        }
    unsetenv("SNUG_CPU_ISA");
}

static void test_binary(void **unused)
{
    sn_desc full = f32(4, 2, 5, 3, 20), flat = f32(2, 3, 13, 0, 0);
    sn_desc pairs[][2] = {{full, full},
                          {flat, flat},
                          {full, f32(1, 20, 0, 0, 0)},
                          {full, f32(4, 2, 1, 1, 20)},
                          {f32(4, 1, 1, 1, 20), full},
                          {flat, f32(1, 13, 0, 0, 0)}};
    for (size_t i = 0; i < SN_LEN(pairs); i++)
        for (int kind = 0; kind <= SN_BINARY_MAX; kind++) {
            trial t = trial_of(SN_OP_BINARY, 1e-6);
            t.one.attrs.binary.kind = (sn_binary_kind)kind;
            t.one.attrs.binary.act.kind = kind == SN_BINARY_ADD ? SN_ACT_RELU : SN_ACT_NONE;
            t.one.n_in = 2;
            t.one.in[0] = pairs[i][0], t.one.in[1] = pairs[i][1];
            t.positive[1] = t.positive[0] = kind == SN_BINARY_DIV;
            infer(&t.one, 1);
            check(&t);
        }
    trial t = trial_of(SN_OP_BINARY, 0);
    t.may_be_reference = true;
    t.one.n_in = 2;
    t.one.in[0] = full, t.one.in[1] = f32(4, 1, 5, 1, 1);
    infer(&t.one, 1);
    check(&t);
}

static void test_scalars_and_bias(void **unused)
{
    for (int kind = 0; kind <= SN_SCALAR_RDIV_DX; kind++) {
        trial t = trial_of(SN_OP_SCALAR, 1e-6);
        t.one.attrs.scalar = (sn_scalar_attrs){(sn_scalar_kind)kind, 1.5f, 0.25f};
        t.one.n_in = 1;
        t.one.in[0] = f32(4, 2, 3, 3, 10);
        t.positive[0] = true;
        infer(&t.one, 1);
        check(&t);
    }
    sn_desc shapes[] = {f32(4, 2, 5, 3, 20), f32(2, 3, 13, 0, 0)};
    for (size_t k = 0; k < SN_LEN(shapes); k++) {
        int64_t c = shapes[k].shape.dim[shapes[k].shape.rank - 1];
        trial t = trial_of(SN_OP_BIAS_ADD, 1e-6);
        t.one.n_in = 2;
        t.one.in[0] = shapes[k], t.one.in[1] = f32(1, c, 0, 0, 0);
        infer(&t.one, 1);
        check(&t);
        t = trial_of(SN_OP_BIAS_GRAD, 1e-6);
        t.one.n_in = 1;
        t.one.in[0] = shapes[k];
        infer(&t.one, 1);
        check(&t);
    }
}

static void test_dropout(void **unused)
{
    /* Blocks of Philox that straddle pixels, end within a vector, fill less than one; the last but
     * one is large enough for two threads. */
    sn_desc shapes[] = {f32(4, 3, 5, 3, 20),  f32(4, 2, 3, 3, 7),  f32(2, 3, 133, 0, 0),
                        f32(4, 3, 1, 1, 4),   f32(4, 2, 3, 5, 6),  f32(4, 2, 3, 2, 16),
                        f32(4, 2, 5, 5, 32),  f32(4, 3, 1, 1, 5),  f32(2, 3, 1, 0, 0),
                        f32(2, 3, 2, 0, 0),   f32(3, 2, 3, 13, 0), f32(4, 3, 23, 17, 36),
                        f32(2, 3, 9001, 0, 0)};
    const float rates[] = {0.3f, 0, 1, 0.9999999f};
    for (size_t k = 0; k < SN_LEN(shapes) * SN_LEN(rates); k++) {
        trial t = trial_of(SN_OP_DROPOUT, 0);
        float rate = rates[k / SN_LEN(shapes)];
        t.one.attrs.dropout = (sn_dropout_attrs){.rate = rate, .stream = 4};
        t.may_be_reference = rate == 1;
        t.one.n_in = 1;
        t.one.in[0] = shapes[k % SN_LEN(shapes)];
        infer(&t.one, 1);
        check(&t);
    }
    /* The rate is a draw: of element 6 of sample 1, in a step whose number takes both words. */
    for (size_t k = 0; k < 2; k++) {
        trial t = trial_of(SN_OP_DROPOUT, 0);
        t.later = (uint64_t)3 << 32;
        uint32_t r[4];
        sn_philox(r, sn_mix_u64(99, 4), 7 + t.later, (uint64_t)(5 + 1) << 32 | 6 / 4);
        float rate = (float)(r[6 % 4] >> 8) / 16777216.0f;
        t.one.attrs.dropout = (sn_dropout_attrs){.rate = rate, .stream = 4};
        t.one.n_in = 1;
        t.one.in[0] = k ? f32(4, 2, 3, 3, 16) : f32(2, 2, 9, 0, 0);
        infer(&t.one, 1);
        check(&t);
    }
}

/* ---- pooling --------------------------------------------------------------------------------- */

static void pool_trials(const sn_pool_attrs *attrs, sn_desc x)
{
    trial t = trial_of(SN_OP_POOL2D, 1e-6);
    bool max = attrs->kind == SN_POOL_MAX;
    t.one.attrs.pool = *attrs;
    t.one.attrs.pool.save_index = max;
    t.one.n_in = 1;
    t.one.in[0] = x;
    float *data = malloc(plain_bytes(&x));
    for (uint64_t i = 0; i < plain_bytes(&x) / 4; i++)
        data[i] = floorf(draw() * 4);
    data[3] = NAN;
    t.data[0] = max ? data : NULL;
    infer(&t.one, 2);
    sn_desc y = t.one.out[0], index = t.one.out[1];
    /* NaN has no difference: the maxima are compared by their bits. */
    if (max)
        t.tolerance = 0;
    check(&t);
    void *values = malloc(plain_bytes(&y)), *chosen = NULL;
    if (max) {
        chosen = malloc(plain_bytes(&index));
        sn_operand in[1] = {{data, x}}, out[2] = {{values, y}, {chosen, index}};
        sn_call call = {.attrs = &t.one.attrs, .in = in, .out = out, .n_in = 1, .n_out = 2};
        sn_op_of(SN_OP_POOL2D)->reference(&call);
    }
    trial b = trial_of(SN_OP_POOL2D_DX, 1e-6);
    b.one.attrs = t.one.attrs;
    b.one.attrs.pool.in_hw[0] = x.shape.dim[1], b.one.attrs.pool.in_hw[1] = x.shape.dim[2];
    b.one.n_in = 2;
    b.one.in[0] = y, b.one.in[1] = max ? index : sn_desc_absent();
    b.data[1] = chosen;
    infer(&b.one, 1);
    check(&b);
    free(values);
    free(chosen);
    free(data);
}

static void test_pools(void **unused)
{
    sn_pool_attrs cases[] = {
        {.window = {2, 2}, .stride = {2, 2}},
        {.window = {3, 3}, .stride = {2, 2}, .pad = {0, 1, 0, 1}},
        {.window = {3, 2}, .stride = {1, 3}, .pad = {1, 1, 0, 1}},
    };
    for (size_t i = 0; i < SN_LEN(cases); i++) {
        cases[i].kind = SN_POOL_MAX;
        pool_trials(&cases[i], f32(4, 2, 9, 8, 20));
        cases[i].kind = SN_POOL_AVERAGE;
        pool_trials(&cases[i], f32(4, 2, 9, 8, 20));
    }
}

static void test_global_pools(void **unused)
{
    sn_desc x = f32(4, 3, 5, 7, 20);
    for (int max = 0; max < 2; max++)
        for (int keep = 0; keep < 2; keep++) {
            static float data[3 * 5 * 7 * 20], best[60];
            for (size_t i = 0; i < SN_LEN(data); i++)
                data[i] = floorf(draw() * 4);
            trial t = trial_of(SN_OP_GLOBAL_POOL, 1e-6);
            t.one.attrs.pool.kind = max ? SN_POOL_MAX : SN_POOL_AVERAGE;
            t.one.attrs.pool.keepdims = keep;
            t.one.attrs.pool.in_hw[0] = 5, t.one.attrs.pool.in_hw[1] = 7;
            t.one.n_in = 1;
            t.one.in[0] = x;
            t.data[0] = data;
            infer(&t.one, 1);
            check(&t);
            sn_desc y = t.one.out[0];
            sn_operand in[1] = {{data, x}}, out[1] = {{best, y}};
            sn_call call = {.attrs = &t.one.attrs, .in = in, .out = out, .n_in = 1, .n_out = 1};
            sn_op_of(SN_OP_GLOBAL_POOL)->reference(&call);
            trial b = trial_of(SN_OP_GLOBAL_POOL_DX, 1e-6);
            b.one.attrs = t.one.attrs;
            b.one.n_in = 3;
            b.one.batch = 3;
            b.one.in[0] = max ? x : sn_desc_absent(), b.one.in[1] = max ? y : sn_desc_absent();
            b.one.in[2] = y;
            b.data[0] = data, b.data[1] = best;
            infer(&b.one, 1);
            check(&b);
        }
}

/* ---- moving bytes ---------------------------------------------------------------------------- */

static void test_moves(void **unused)
{
    for (int axis = 1; axis < 4; axis++)
        for (int ragged = 0; ragged < 2; ragged++) {
            trial t = trial_of(SN_OP_CONCAT, 0);
            t.one.attrs.slice.axis = axis;
            t.one.n_in = 3;
            for (int i = 0; i < 3; i++) {
                t.one.in[i] = f32(4, 2, 3, 4, axis == 3 || !ragged ? 32 : 20);
                t.one.in[i].shape.dim[axis] += axis == 3 ? ragged * 3 * i : i;
            }
            infer(&t.one, 1);
            sn_desc y = t.one.out[0];
            check(&t);
            t = trial_of(SN_OP_SLICE, 0);
            t.one.attrs.slice = (sn_slice_attrs){axis, axis == 3 ? 32 : 1, axis == 3 ? 16 : 2};
            if (ragged && axis == 3)
                t.one.attrs.slice.length = y.shape.dim[3] - 32;
            t.one.n_in = 1;
            t.one.in[0] = y;
            infer(&t.one, 1);
            check(&t);
        }
    trial t = trial_of(SN_OP_PAD2D, 0);
    memcpy(t.one.attrs.pad.pad, (int64_t[]){1, 2, 3, 0}, sizeof t.one.attrs.pad.pad);
    t.one.n_in = 1;
    t.one.in[0] = f32(4, 2, 5, 6, 20);
    infer(&t.one, 1);
    check(&t);
    t.one.op = SN_OP_CROP2D;
    infer(&t.one, 1);
    check(&t);
    t = trial_of(SN_OP_RESHAPE, 0);
    t.one.attrs.shape.shape = (sn_shape){2, {-1, 600}};
    t.one.n_in = 1;
    t.one.in[0] = f32(4, 2, 5, 6, 20);
    infer(&t.one, 1);
    check(&t);
}

/* ---- dense and updates ----------------------------------------------------------------------- */

static void dense_trials(sn_desc x, int64_t in, int64_t out, bool bias, sn_act act)
{
    sn_desc w = f32(2, in, out, 0, 0);
    trial t = trial_of(SN_OP_DENSE, 1e-5);
    t.one.attrs.conv.act.kind = act;
    t.one.n_in = 3;
    t.one.in[0] = x, t.one.in[1] = w, t.one.in[2] = bias ? f32(1, out, 0, 0, 0) : sn_desc_absent();
    infer(&t.one, 1);
    sn_desc y = t.one.out[0];
    check(&t);
    t = trial_of(SN_OP_DENSE_DX, 1e-5);
    t.one.n_in = 2;
    t.one.in[0] = y, t.one.in[1] = w;
    infer(&t.one, 1);
    check(&t);
    t = trial_of(SN_OP_DENSE_DW, 1e-5);
    t.one.attrs.conv.has_dbias = bias;
    t.one.n_in = 2;
    t.one.in[0] = x, t.one.in[1] = y;
    infer(&t.one, 2);
    check(&t);
}

static void test_dense(void **unused)
{
    dense_trials(f32(2, 2, 70, 0, 0), 70, 45, true, SN_ACT_RELU);
    dense_trials(f32(2, 1, 7, 0, 0), 7, 3, false, SN_ACT_NONE);
    dense_trials(f32(2, 16, 1100, 0, 0), 1100, 37, true, SN_ACT_NONE);
    dense_trials(f32(2, 45, 1100, 0, 0), 1100, 70, true, SN_ACT_RELU);
    dense_trials(f32(2, 700, 19, 0, 0), 19, 16, true, SN_ACT_NONE);
    dense_trials(f32(4, 2, 5, 3, 24), 24, 10, true, SN_ACT_NONE);
}

static sn_update_attrs update_of(int i)
{
    static const sn_update_attrs all[] = {
        {.kind = SN_UPDATE_SGD},
        {.kind = SN_UPDATE_SGD, .momentum = 0.9f},
        {.kind = SN_UPDATE_SGD, .momentum = 0.9f, .nesterov = true, .l2 = 0.01f},
        {.kind = SN_UPDATE_ADAM, .beta1 = 0.9f, .beta2 = 0.999f, .epsilon = 1e-7f},
        {.kind = SN_UPDATE_ADAMW,
         .beta1 = 0.9f,
         .beta2 = 0.999f,
         .epsilon = 1e-7f,
         .weight_decay = 0.01f,
         .clip_value = 0.3f},
        {.kind = SN_UPDATE_RMSPROP, .rho = 0.9f, .epsilon = 1e-7f},
        {.kind = SN_UPDATE_RMSPROP,
         .rho = 0.9f,
         .epsilon = 1e-2f,
         .momentum = 0.5f,
         .centered = true},
        {.kind = SN_UPDATE_ADAGRAD, .epsilon = 1e-7f, .lr_scale = 0.5f},
        {.kind = SN_UPDATE_LION, .beta1 = 0.9f, .beta2 = 0.99f},
        {.kind = SN_UPDATE_SGD, .momentum = 0.9f, .clip_norm = 0.5f},
        {.kind = SN_UPDATE_SGD, .clip_global = 0.5f},
    };
    return all[i];
}
#define N_UPDATES 11

static void test_updates(void **unused)
{
    for (int i = 0; i < N_UPDATES; i++)
        for (int64_t n = 5; n < 4000; n += 1999) {
            trial t = trial_of(SN_OP_UPDATE, 0);
            sn_update_attrs *u = &t.one.attrs.update;
            *u = update_of(i);
            /* The norm's sum is taken in another order. */
            t.tolerance = u->clip_norm > 0 ? 1e-6 : 0;
            sn_desc w = f32(1, n, 0, 0, 0);
            t.one.n_in = 6;
            t.one.in[0] = t.one.in[1] = w;
            t.one.in[2] = u->clip_global > 0 ? f32(1, 1, 0, 0, 0) : sn_desc_absent();
            t.positive[2] = true;
            for (int s = 0; s < 3; s++) {
                t.one.in[3 + s] = s < sn_update_n_slots(u) ? w : sn_desc_absent();
                t.positive[3 + s] = true;
            }
            infer(&t.one, 4);
            check(&t);
        }
    for (int with = 0; with < 2; with++) {
        trial t = trial_of(SN_OP_SUM_SQUARES, 1e-6);
        t.one.attrs.update.penalty = with ? 0.5f : 0;
        t.one.n_in = 2;
        t.one.in[0] = f32(2, 37, 91, 0, 0);
        t.one.in[1] = with ? f32(1, 1, 0, 0, 0) : sn_desc_absent();
        infer(&t.one, 1);
        check(&t);
    }
}

static void make_dense(one_op *o, sn_device *d, sn_op_id op, int64_t rows, int64_t in, int64_t out)
{
    memset(o, 0, sizeof *o);
    o->device = d;
    o->op = op;
    o->in[0] = f32(2, rows, in, 0, 0);
    o->in[1] = f32(2, rows, out, 0, 0);
    o->n_in = 2;
}

/* The fused step has the bits of the gradient and then the update; and is near the plain C. */
static void test_dense_update(void **unused)
{
    int64_t sizes[][3] = {{2, 37, 45}, {16, 21, 70}, {600, 6, 19}};
    for (int i = 0; i < 9; i++)
        for (size_t k = 0; k < SN_LEN(sizes); k++) {
            sn_update_attrs u = update_of(i);
            int64_t rows = sizes[k][0], in = sizes[k][1], out = sizes[k][2];
            if (sn_update_n_slots(&u) > 2)
                continue;
            trial t = trial_of(SN_OP_DENSE_UPDATE, 1e-4);
            make_dense(&t.one, NULL, SN_OP_DENSE_UPDATE, rows, in, out);
            t.one.attrs.update = u;
            t.one.n_in = 5;
            sn_desc w = f32(2, in, out, 0, 0);
            t.one.in[2] = w;
            for (int s = 0; s < 2; s++) {
                t.one.in[3 + s] = s < sn_update_n_slots(&u) ? w : sn_desc_absent();
                t.positive[3 + s] = true;
            }
            infer(&t.one, 3);
            if (u.kind != SN_UPDATE_LION) /* a sign may fall either way */
                check(&t);
        }
    for (size_t s = 0; s < SN_LEN(sets); s++) {
        setenv("SNUG_CPU_ISA", sets[s], 1);
        sn_device_options options = {.n_threads = 2};
        sn_device *d;
        assert_int_equal(sn_backend_cpu.open(&d, "", &options, NULL), SNUG_OK);
        sn_step step = {.number = 3, .lr = 0.1f};
        enum { ROWS = 600, IN = 13, OUT = 35 };
        static float x[ROWS * IN], dy[ROWS * OUT], w[IN * OUT], m[IN * OUT], g[IN * OUT];
        static float w1[IN * OUT], m1[IN * OUT], w2[IN * OUT], m2[IN * OUT];
        for (int i = 0; i < ROWS * IN; i++)
            x[i] = draw();
        for (int i = 0; i < ROWS * OUT; i++)
            dy[i] = draw();
        for (int i = 0; i < IN * OUT; i++)
            w[i] = draw(), m[i] = draw();
        one_op a, b, c;
        make_dense(&a, d, SN_OP_DENSE_UPDATE, ROWS, IN, OUT);
        a.attrs.update = update_of(1);
        a.n_in = 5;
        a.in[2] = a.in[3] = f32(2, IN, OUT, 0, 0);
        a.in[4] = sn_desc_absent();
        a.share[0] = 3, a.share[1] = 4;
        infer(&a, 3);
        assert_int_equal(one_make(&a, NULL), SNUG_OK);
        one_write(&a, 0, x, NULL), one_write(&a, 1, dy, NULL);
        one_write(&a, 2, w, NULL), one_write(&a, 3, m, NULL);
        assert_int_equal(one_run(&a, &step, NULL), SNUG_OK);
        one_read(&a, 0, w1, NULL), one_read(&a, 1, m1, NULL);
        one_free(&a);
        make_dense(&b, d, SN_OP_DENSE_DW, ROWS, IN, OUT);
        infer(&b, 2);
        assert_int_equal(one_make(&b, NULL), SNUG_OK);
        one_write(&b, 0, x, NULL), one_write(&b, 1, dy, NULL);
        assert_int_equal(one_run(&b, &step, NULL), SNUG_OK);
        one_read(&b, 0, g, NULL);
        one_free(&b);
        make_dense(&c, d, SN_OP_UPDATE, ROWS, IN, OUT);
        c.attrs.update = update_of(1);
        c.n_in = 6;
        c.in[0] = c.in[1] = c.in[3] = f32(2, IN, OUT, 0, 0);
        c.in[2] = c.in[4] = c.in[5] = sn_desc_absent();
        c.share[0] = 1, c.share[1] = 4;
        infer(&c, 4);
        assert_int_equal(one_make(&c, NULL), SNUG_OK);
        one_write(&c, 0, w, NULL), one_write(&c, 1, g, NULL), one_write(&c, 3, m, NULL);
        assert_int_equal(one_run(&c, &step, NULL), SNUG_OK);
        one_read(&c, 0, w2, NULL), one_read(&c, 1, m2, NULL);
        one_free(&c);
        assert_memory_equal(w1, w2, sizeof w1);
        assert_memory_equal(m1, m2, sizeof m1);
        sn_backend_cpu.close(d);
    }
    unsetenv("SNUG_CPU_ISA");
}

static int run_set(const char *set)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_convolutions),
        cmocka_unit_test(test_batch_norm),
        cmocka_unit_test(test_batch_norm_replay),
        cmocka_unit_test(test_activations),
        cmocka_unit_test(test_special_numbers),
        cmocka_unit_test(test_binary),
        cmocka_unit_test(test_scalars_and_bias),
        cmocka_unit_test(test_dropout),
        cmocka_unit_test(test_pools),
        cmocka_unit_test(test_global_pools),
        cmocka_unit_test(test_moves),
        cmocka_unit_test(test_dense),
        cmocka_unit_test(test_updates),
        cmocka_unit_test(test_dense_update),
    };
    sets[0] = set;
    int failed = cmocka_run_group_tests_name(set, tests, NULL, NULL);
    return failed || sn_ledger_live_bytes() != 0;
}

int main(void)
{
    return each_set(run_set);
}
