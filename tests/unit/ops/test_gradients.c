/* SPDX-License-Identifier: Apache-2.0
 *
 * The gradient rule of each operator, run by the plain C, against finite differences of its plain C
 * forward: four points, error of fourth order, sums in double. Operators are float32, so the step
 * is large (1/32) and the bound 5e-4 of the largest gradient. Elements beside the kink of a fused
 * ReLU are left out: there the difference depends on the step. At least half must remain.
 *
 *     build/tests/test_ops_gradients ["conv2d"]
 */
#include "ops/cases.h"

#include <stdlib.h>

static const char *filter;

/* sum(dout * y) of the first output, the operator run on these inputs. */
static double objective(const op_case *c, const tape *from, const sn_ref *in, const float *dout)
{
    tape *t = tape_new(tape_reference, NULL);
    sn_ref own[SN_MAX_IN] = {0}, out[SN_MAX_OUT];
    double sum = 0;
    t->step = from->step;
    for (int i = 0; i < case_n_in(c); i++)
        own[i] = in[i] == SN_NO_REF
                     ? SN_NO_REF
                     : tape_add(t, &from->value[in[i]].desc, from->value[in[i]].data);
    tape_op(t, c->op, &c->attrs, case_n_in(c), own, case_arity(c->op, true), NULL, out);
    const int64_t n = sn_shape_n(&t->value[out[0]].desc.shape);
    for (int64_t i = 0; i < n; i++)
        sum += (double)dout[i] * (double)tape_data(t, out[0])[i];
    tape_free(t);
    return sum;
}

static double difference(const op_case *c, tape *t, const sn_ref *in, int k, int64_t i, float h,
                         const float *dout)
{
    const float at = tape_data(t, in[k])[i];
    double f[4];
    for (int p = 0; p < 4; p++) {
        tape_data(t, in[k])[i] = at + (float[]){-2, -1, 1, 2}[p] * h;
        f[p] = objective(c, t, in, dout);
    }
    tape_data(t, in[k])[i] = at;
    return (f[0] - 8 * f[1] + 8 * f[2] - f[3]) / (12 * (double)h);
}

/* A fused ReLU or a maximum: some elements lie beside a kink, where the difference depends on the
 * step. */
static bool has_kinks(const op_case *c)
{
    return ((c->op == SN_OP_CONV2D || c->op == SN_OP_DENSE) && c->attrs.conv.act.kind) ||
           ((c->op == SN_OP_BATCH_NORM || c->op == SN_OP_BATCH_NORM_APPLY) &&
            c->attrs.norm.act.kind) ||
           (c->op == SN_OP_BINARY &&
            (c->attrs.binary.act.kind || c->attrs.binary.kind == SN_BINARY_MAX));
}

static void check_input(const op_case *c, tape *t, const sn_ref *in, int k, sn_ref din,
                        const float *dout)
{
    const int64_t n = sn_shape_n(&t->value[in[k]].desc.shape), step = n > 150 ? n / 97 : 1;
    const float h = 1 / 32.0f;
    double want[200], shift[200], size = 0;
    int n_checked = 0, m = 0;
    if (din == SN_NO_REF)
        fail_msg("%s: no gradient for input %d", c->text, k);
    assert_true(sn_shape_eq(&t->value[din].desc.shape, &t->value[in[k]].desc.shape));
    for (int64_t i = 0; i < n; i += step, m++) {
        want[m] = difference(c, t, in, k, i, h, dout);
        shift[m] = has_kinks(c) ? want[m] - difference(c, t, in, k, i, h / 2, dout) : 0;
        size = fmax(size, fabs(want[m]));
    }
    assert_true(size > 0);
    for (int i = 0; i < m; i++) {
        if (fabs(shift[i]) > 2.5e-4 * size)
            continue;
        double off = fabs(want[i] - (double)tape_data(t, din)[i * step]);
        if (!(off <= 5e-4 * size))
            fail_msg("%s: gradient of input %d, element %d is off by %.3g of %.3g", c->text, k,
                     (int)(i * step), off, size);
        n_checked++;
    }
    assert_true(n_checked * 2 >= m);
}

/* Numbers for the gradient that comes in. */
static sn_ref incoming(const op_case *c, tape *t, sn_ref y)
{
    sn_ref dout = tape_add(t, &t->value[y].desc, NULL);
    const int64_t n = sn_shape_n(&t->value[y].desc.shape);
    for (int64_t i = 0; i < n; i++)
        tape_data(t, dout)[i] =
            c->op == SN_OP_LOSS ? 1 : (float)(2 * case_draw(c->seed, 77, (uint64_t)i) - 1);
    return dout;
}

static void check_case(const op_case *c)
{
    const unsigned mask = case_wanted(c->op);
    const int n_in = case_n_in(c), n_out = case_arity(c->op, true);
    tape *t = tape_new(tape_reference, NULL);
    sn_ref in[SN_MAX_IN] = {0}, out[SN_MAX_OUT], din[SN_MAX_IN], dout[SN_MAX_OUT];
    bool wanted[SN_MAX_IN] = {false};
    case_fill(t, c, in);
    for (int i = 0; i < n_in; i++)
        wanted[i] = in[i] != SN_NO_REF && mask >> i & 1;
    tape_op(t, c->op, &c->attrs, n_in, in, n_out, NULL, out);
    for (int i = 0; i < n_out; i++)
        dout[i] = i ? SN_NO_REF : incoming(c, t, out[0]);
    tape_gradient(t, c->op, &c->attrs, n_in, in, n_out, out, dout, wanted, din);
    for (int i = 0; i < n_in; i++) {
        if (wanted[i])
            check_input(c, t, in, i, din[i], tape_data(t, dout[0]));
        else
            assert_int_equal(din[i], SN_NO_REF);
    }
    tape_free(t);
}

static bool chosen(const op_case *c)
{
    const bool max = c->op == SN_OP_POOL2D && c->attrs.pool.kind == SN_POOL_MAX;
    return case_wanted(c->op) && (!filter || strstr(c->text, filter)) &&
           !(max && !c->attrs.pool.save_index) && !(max && c->attrs.pool.window[0] == 17);
}

static void finite_differences(void **state)
{
    size_t n = 0;
    for (size_t i = 0; i < SN_LEN(op_cases); i++)
        if (chosen(&op_cases[i])) {
            check_case(&op_cases[i]);
            n++;
        }
    assert_true(filter || n > 90);
    assert_int_equal(sn_ledger_live_bytes(), 0);
}

/* Runs the rule with these inputs wanted; returns the number of values that it emitted. */
static int emitted(const op_case *c, unsigned want)
{
    tape *t = tape_new(tape_reference, NULL);
    sn_ref in[SN_MAX_IN] = {0}, out[SN_MAX_OUT], din[SN_MAX_IN], dout[SN_MAX_OUT];
    bool wanted[SN_MAX_IN] = {false};
    const int n_in = case_n_in(c), n_out = case_arity(c->op, true);
    case_fill(t, c, in);
    for (int k = 0; k < n_in; k++)
        wanted[k] = in[k] != SN_NO_REF && want >> k & 1;
    tape_op(t, c->op, &c->attrs, n_in, in, n_out, NULL, out);
    for (int k = 0; k < n_out; k++)
        dout[k] = k ? SN_NO_REF : incoming(c, t, out[0]);
    const int before = t->n;
    tape_gradient(t, c->op, &c->attrs, n_in, in, n_out, out, dout, wanted, din);
    for (int k = 0; k < n_in; k++)
        if (wanted[k] != (din[k] != SN_NO_REF))
            fail_msg("%s: input %d is %swanted, its gradient is %s", c->text, k,
                     wanted[k] ? "" : "not ", wanted[k] ? "missing" : "there");
    const int n = t->n - before;
    tape_free(t);
    return n;
}

/* What is not wanted is not computed. Only the gradient before a fused activation may come first.
 */
static void unwanted(void **state)
{
    for (size_t i = 0; i < SN_LEN(op_cases); i++) {
        const op_case *c = &op_cases[i];
        if (!chosen(c))
            continue;
        const unsigned mask = case_wanted(c->op);
        const int all = emitted(c, mask);
        if (emitted(c, 0) > 1)
            fail_msg("%s: emits what nobody wants", c->text);
        for (int k = 0; k < case_n_in(c); k++)
            if (mask >> k & 1 && (emitted(c, mask & ~(1u << k)) > all || emitted(c, 1u << k) > all))
                fail_msg("%s: emits more for less", c->text);
    }
    assert_int_equal(sn_ledger_live_bytes(), 0);
}

int main(int argc, char **argv)
{
    filter = argc > 1 ? argv[1] : NULL;
    const struct CMUnitTest tests[] = {cmocka_unit_test(finite_differences),
                                       cmocka_unit_test(unwanted)};
    return cmocka_run_group_tests_name("gradients", tests, NULL, NULL);
}
