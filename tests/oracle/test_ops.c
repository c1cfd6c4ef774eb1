/* SPDX-License-Identifier: Apache-2.0
 *
 * Every operator against frozen results of real TensorFlow and Keras (make_ops.py): forward within
 * 1e-5, gradients within 1e-4, three steps of each optimizer to the bit (within 2e-7 where a norm
 * was summed in another order), on every backend that computes. Relative is max|a-b| / max|b|.
 *
 *     build/tests/test_oracle_ops ["conv2d same"]       only cases whose name holds the text
 */
#include "ops/cases.h"
#include "ops/device.h"
#include "support/support.h"

#include <stdlib.h>

enum { MAX_CASES = 400, MAX_TENSORS = 12 };

typedef struct tensor {
    sn_desc desc; /* absent: sn_desc_absent() */
    const void *data;
} tensor;

typedef struct oracle_case {
    char name[80];
    sn_op_id op;
    sn_attrs attrs;
    float lr;
    int n_in, n_out, n_din, n_grad;
    tensor in[MAX_TENSORS], out[MAX_TENSORS], din[MAX_TENSORS], grad[MAX_TENSORS], dout;
} oracle_case;

static oracle_case cases[MAX_CASES];
static size_t n_cases;
static char *numbers, *list;

/* ---- reading ops.txt ------------------------------------------------------------------------- */

/* The value list behind " key=", NULL if it is not there. */
static const char *find(const char *line, const char *key)
{
    char pattern[32];
    snprintf(pattern, sizeof pattern, " %s=", key);
    const char *at = strstr(line, pattern);
    return at ? at + strlen(pattern) : NULL;
}

/* Up to n numbers; how many there were. */
static int reals(const char *line, const char *key, double *out, int n)
{
    const char *at = find(line, key);
    int k = 0;
    while (at && k < n) {
        char *end;
        out[k] = strtod(at, &end);
        if (end == at)
            break;
        k++;
        at = *end == ',' ? end + 1 : NULL;
    }
    return k;
}

static void whole(const char *line, const char *key, int64_t *out, int n)
{
    double v[8] = {0};
    int k = reals(line, key, v, n);
    for (int i = 0; i < k; i++)
        out[i] = (int64_t)v[i];
}

static float real(const char *line, const char *key, float otherwise)
{
    double v;
    return reals(line, key, &v, 1) == 1 ? (float)v : otherwise;
}

static bool flag(const char *line, const char *key)
{
    const char *at = find(line, key);
    return at && *at == '1';
}

/* The index of the name behind " kind=" in names. */
static unsigned kind_of(const char *line, const char *const *names, unsigned n)
{
    const char *at = find(line, "kind");
    assert_non_null(at);
    for (unsigned i = 0; i < n; i++)
        if (strncmp(at, names[i], strlen(names[i])) == 0 && strchr(" \n", at[strlen(names[i])]))
            return i;
    fail_msg("unknown kind in: %s", line);
    return n;
}

static sn_act_attrs act_of(const char *line)
{
    sn_act_attrs act = {0};
    const char *at = find(line, "act");
    for (sn_act kind = 0; at && kind < SN_N_ACTS; kind++) {
        size_t n = strlen(sn_act_name(kind));
        if (strncmp(at, sn_act_name(kind), n) == 0 && at[n] == ',') {
            double v[3];
            act.kind = kind;
            assert_int_equal(sscanf(at + n, ",%lf,%lf,%lf", &v[0], &v[1], &v[2]), 3);
            act.alpha = (float)v[0], act.max = (float)v[1], act.threshold = (float)v[2];
        }
    }
    return act;
}

static sn_update_attrs update_of(const char *line)
{
    static const char *const kinds[] = {"sgd", "adam", "adamw", "rmsprop", "adagrad", "lion"};
    return (sn_update_attrs){
        .kind = kind_of(line, kinds, 6),
        .momentum = real(line, "momentum", 0),
        .beta1 = real(line, "beta1", 0),
        .beta2 = real(line, "beta2", 0),
        .rho = real(line, "rho", 0),
        .epsilon = real(line, "epsilon", 0),
        .nesterov = flag(line, "nesterov"),
        .centered = flag(line, "centered"),
        .weight_decay = real(line, "weight_decay", 0),
        .l2 = real(line, "l2", 0),
        .clip_value = real(line, "clip_value", 0),
        .clip_norm = real(line, "clip_norm", 0),
        .clip_global = real(line, "clip_global", 0),
    };
}

static void read_shape_attrs(sn_attrs *a, sn_op_id op, const char *line)
{
    int64_t v[SN_MAX_RANK] = {0};
    double ignored[SN_MAX_RANK];
    if (op == SN_OP_PERMUTE) {
        whole(line, "perm", v, SN_MAX_RANK);
        for (int i = 0; i < SN_MAX_RANK; i++)
            a->shape.perm[i] = (int)v[i];
    } else {
        a->shape.shape.rank = reals(line, "shape", ignored, SN_MAX_RANK);
        whole(line, "shape", a->shape.shape.dim, SN_MAX_RANK);
    }
}

static sn_attrs attrs_of(sn_op_id op, const char *line)
{
    static const char *const pools[] = {"max", "average"};
    static const char *const binaries[] = {"add", "sub", "mul", "div", "max"};
    static const char *const scalars[] = {"add", "mul", "div", "sub", "rsub", "rdiv", "affine"};
    static const char *const losses[] = {"softmax_cross_entropy", "sigmoid_cross_entropy", "mse",
                                         "mae", "huber"};
    sn_attrs a = {0};
    int64_t axis = 0;
    switch (op) {
    case SN_OP_CONV2D:
    case SN_OP_CONV2D_DX:
    case SN_OP_DENSE:
        whole(line, "stride", a.conv.stride, 2), whole(line, "dilation", a.conv.dilation, 2);
        whole(line, "pad", a.conv.pad, 4), whole(line, "groups", &a.conv.groups, 1);
        whole(line, "in_hw", a.conv.in_hw, 2);
        a.conv.act = act_of(line);
        break;
    case SN_OP_BATCH_NORM:
    case SN_OP_BATCH_NORM_APPLY:
    case SN_OP_MOVING_AVERAGE:
    case SN_OP_GROUP_NORM:
        a.norm.epsilon = real(line, "epsilon", 0), a.norm.momentum = real(line, "momentum", 0);
        whole(line, "groups", &a.norm.groups, 1);
        a.norm.act = act_of(line);
        break;
    case SN_OP_ACTIVATION:
        a.act = act_of(line);
        break;
    case SN_OP_POOL2D:
    case SN_OP_GLOBAL_POOL:
        a.pool.kind = kind_of(line, pools, 2);
        whole(line, "window", a.pool.window, 2), whole(line, "stride", a.pool.stride, 2);
        whole(line, "pad", a.pool.pad, 4);
        a.pool.keepdims = flag(line, "keepdims"), a.pool.save_index = flag(line, "save_index");
        break;
    case SN_OP_PAD2D:
    case SN_OP_CROP2D:
        whole(line, "pad", a.pad.pad, 4);
        break;
    case SN_OP_UPSAMPLE2D:
        whole(line, "factor", a.upsample.factor, 2);
        a.upsample.bilinear = flag(line, "bilinear");
        break;
    case SN_OP_BINARY:
        a.binary = (sn_binary_attrs){kind_of(line, binaries, 5), act_of(line)};
        break;
    case SN_OP_CONCAT:
    case SN_OP_SLICE:
        whole(line, "axis", &axis, 1);
        a.slice.axis = (int)axis;
        whole(line, "start", &a.slice.start, 1), whole(line, "length", &a.slice.length, 1);
        break;
    case SN_OP_SCALAR:
        a.scalar = (sn_scalar_attrs){kind_of(line, scalars, 7), real(line, "value", 0),
                                     real(line, "offset", 0)};
        break;
    case SN_OP_RESHAPE:
    case SN_OP_PERMUTE:
        read_shape_attrs(&a, op, line);
        break;
    case SN_OP_LOSS:
        a.loss = (sn_loss_attrs){kind_of(line, losses, 5), real(line, "smoothing", 0),
                                 real(line, "delta", 0)};
        break;
    case SN_OP_UPDATE:
        a.update = update_of(line);
        break;
    default:
        break;
    }
    return a;
}

static tensor tensor_of(const char *line)
{
    tensor t = {sn_desc_absent(), NULL};
    char type[8], dims[64];
    unsigned long long offset;
    if (strstr(line, " absent"))
        return t;
    assert_int_equal(sscanf(line, "%*s %7s %63s %llu", type, dims, &offset), 3);
    t.desc = (sn_desc){strcmp(type, "i32") == 0 ? SN_I32 : SN_F32, {0, {0}}};
    for (char *at = dims; *at; at += *at == ',') {
        t.desc.shape.dim[t.desc.shape.rank++] = strtol(at, &at, 10);
    }
    t.data = numbers + 4 * offset;
    return t;
}

static void read_line(const char *line)
{
    oracle_case *c = n_cases ? &cases[n_cases - 1] : NULL;
    if (strncmp(line, "case ", 5) == 0) {
        assert_true(n_cases < MAX_CASES);
        snprintf(cases[n_cases++].name, sizeof c->name, "%s", line + 5);
    } else if (strncmp(line, "op ", 3) == 0) {
        char name[32];
        assert_int_equal(sscanf(line, "op %31s", name), 1);
        c->op = sn_op_by_name(name);
        assert_true(c->op < SN_N_OPS);
        c->attrs = attrs_of(c->op, line);
        c->lr = real(line, "lr", 0);
    } else if (strncmp(line, "in ", 3) == 0) {
        c->in[c->n_in++] = tensor_of(line);
    } else if (strncmp(line, "out ", 4) == 0) {
        c->out[c->n_out++] = tensor_of(line);
    } else if (strncmp(line, "dout ", 5) == 0) {
        c->dout = tensor_of(line);
    } else if (strncmp(line, "din ", 4) == 0) {
        c->din[c->n_din++] = tensor_of(line);
    } else if (strncmp(line, "grad ", 5) == 0) {
        c->grad[c->n_grad++] = tensor_of(line);
    }
}

static int load(void **state)
{
    numbers = test_read(SNUG_SOURCE_DIR "/tests/oracle/ops.f32", NULL);
    list = test_read(SNUG_SOURCE_DIR "/tests/oracle/ops.txt", NULL);
    char *save = NULL;
    for (char *line = strtok_r(list, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
        read_line(line);
    return n_cases > 150 ? 0 : -1;
}

static int unload(void **state)
{
    sn_free(numbers);
    sn_free(list);
    return sn_ledger_live_bytes() == 0 ? 0 : -1;
}

/* ---- running --------------------------------------------------------------------------------- */

static int n_failed;

static void compare(const oracle_case *c, const char *what, int i, const tape *t, sn_ref ref,
                    const tensor *want, double most)
{
    if (ref == SN_NO_REF) {
        print_message("%s: %s %d is missing\n", c->name, what, i);
        n_failed++;
        return;
    }
    assert_true(sn_shape_eq(&t->value[ref].desc.shape, &want->desc.shape));
    double d = tape_difference(tape_data(t, ref), want->data, sn_shape_n(&want->desc.shape));
    if (!(d <= most)) {
        print_message("%s: %s %d differs by %.3g (at most %.3g)\n", c->name, what, i, d, most);
        n_failed++;
    }
}

static void run_case(tape *t, const oracle_case *c)
{
    sn_ref in[SN_MAX_IN] = {0}, out[SN_MAX_OUT], din[SN_MAX_IN], dout[SN_MAX_OUT];
    bool wanted[SN_MAX_IN] = {false}, any = false;
    const int n_out = case_arity(c->op, true);
    int n_in = c->n_in;
    for (int i = 0; i < n_in; i++) {
        in[i] = tape_add(t, &c->in[i].desc, c->in[i].data);
        wanted[i] = i < c->n_din && !sn_desc_is_absent(&c->din[i].desc);
        any |= wanted[i];
    }
    t->step.n_batch = (double)c->in[0].desc.shape.dim[0];
    tape_op(t, c->op, &c->attrs, n_in, in, n_out, NULL, out);
    for (int i = 0; i < c->n_out; i++)
        compare(c, "output", i, t, out[i], &c->out[i], 1e-5);
    if (!any)
        return;
    for (int i = 0; i < n_out; i++)
        dout[i] = i ? SN_NO_REF : tape_add(t, &c->dout.desc, c->dout.data);
    tape_gradient(t, c->op, &c->attrs, n_in, in, n_out, out, dout, wanted, din);
    for (int i = 0; i < n_in; i++)
        if (wanted[i])
            compare(c, "gradient", i, t, din[i], &c->din[i], 1e-4);
}

/* Three steps; slots begin as sn_update_slot_start says. */
static void run_update(tape *t, const oracle_case *c)
{
    const sn_update_attrs *u = &c->attrs.update;
    const sn_attrs squares = {.update = {.penalty = 1}};
    sn_ref w[4] = {tape_add(t, &c->in[0].desc, c->in[0].data), SN_NO_REF, SN_NO_REF, SN_NO_REF};
    for (int s = 0; s < sn_update_n_slots(u); s++) {
        w[1 + s] = tape_add(t, &c->in[0].desc, NULL);
        for (int64_t i = 0; i < sn_shape_n(&c->in[0].desc.shape); i++)
            tape_data(t, w[1 + s])[i] = sn_update_slot_start(u, s);
    }
    for (int k = 0; k < c->n_grad; k++) {
        sn_ref g = tape_add(t, &c->grad[k].desc, c->grad[k].data), norm = SN_NO_REF;
        if (u->clip_global > 0)
            tape_op(t, SN_OP_SUM_SQUARES, &squares, 2, (sn_ref[]){g, SN_NO_REF}, 1, NULL, &norm);
        t->step.number = (uint64_t)k;
        t->step.lr = c->lr;
        sn_ref in[6] = {w[0], g, norm, w[1], w[2], w[3]};
        tape_op(t, SN_OP_UPDATE, &c->attrs, 6, in, 4, NULL, w);
        compare(c, "step", k, t, w[0], &c->out[k], u->clip_norm > 0 ? 2e-7 : 0);
    }
}

static const char *filter;

static void run_all(tape_runner run, void *context)
{
    n_failed = 0;
    for (size_t i = 0; i < n_cases; i++) {
        if (filter && !strstr(cases[i].name, filter))
            continue;
        tape *t = tape_new(run, context);
        if (cases[i].op == SN_OP_UPDATE)
            run_update(t, &cases[i]);
        else
            run_case(t, &cases[i]);
        tape_free(t);
    }
    assert_int_equal(n_failed, 0);
}

static void reference(void **state)
{
    run_all(tape_reference, NULL);
}

static void backends(void **state)
{
    for (size_t i = 0; i < SN_LEN(device_variants); i++)
        for (int layouts = DEVICE_PLAIN; layouts <= DEVICE_BLOCKED; layouts++) {
            device_runner d;
            device_open(&d, &device_variants[i], (device_layouts)layouts);
            run_all(device_run, &d);
            device_close(&d);
        }
}

int main(int argc, char **argv)
{
    filter = argc > 1 ? argv[1] : NULL;
    const struct CMUnitTest tests[] = {cmocka_unit_test(reference), cmocka_unit_test(backends)};
    return cmocka_run_group_tests_name("operators against TensorFlow", tests, load, unload);
}
