/* SPDX-License-Identifier: Apache-2.0
 *
 * Every case of cases.h on every backend that computes, from plain and from blocked tensors, with
 * outputs apart and in place, against the operator's plain C: 1e-5 (max|a-b| / max|b|), whole
 * numbers exactly, in place to the bit.
 *
 *     build/tests/test_ops_backends ["conv2d 3x3"]
 */
#include "ops/cases.h"
#include "ops/device.h"

static const char *filter;
static int n_failed;

static void compare(const op_case *c, const device_runner *d, const tape *a, sn_ref ra,
                    const tape *b, sn_ref rb, int i, double most)
{
    if (rb == SN_NO_REF)
        return;
    const sn_operand *have = &a->value[ra], *want = &b->value[rb];
    double off = INFINITY;
    if (want->desc.dtype == SN_F32 && most > 0)
        off = tape_difference(have->data, want->data, sn_shape_n(&want->desc.shape));
    else if (memcmp(have->data, want->data, tape_bytes(&want->desc)) == 0)
        off = 0;
    if (off <= most)
        return;
    print_message("%s on %s (%s), kernel %s, %s%s: output %d differs by %.3g (at most %.3g)\n",
                  c->text, d->device->backend->name, d->isa, d->kernel,
                  d->layouts == DEVICE_BLOCKED ? "blocked" : "plain",
                  d->in_place ? ", in place" : "", i, off, most);
    n_failed++;
}

static void run_case(const op_case *c, device_runner *d)
{
    const int n_in = case_n_in(c), n_out = case_arity(c->op, true);
    tape *want = tape_new(tape_reference, NULL), *have = tape_new(device_run, d);
    tape *over = tape_new(device_run, d);
    sn_ref in[SN_MAX_IN] = {0}, a[SN_MAX_OUT], b[SN_MAX_OUT], o[SN_MAX_OUT];
    case_fill(want, c, in);
    tape_op(want, c->op, &c->attrs, n_in, in, n_out, NULL, b);
    case_fill(have, c, in);
    d->in_place = false;
    tape_op(have, c->op, &c->attrs, n_in, in, n_out, NULL, a);
    for (int i = 0; i < n_out; i++)
        compare(c, d, have, a[i], want, b[i], i, 1e-5);
    if (sn_op_of(c->op)->in_place) {
        d->in_place = true;
        case_fill(over, c, in);
        tape_op(over, c->op, &c->attrs, n_in, in, n_out, NULL, o);
        for (int i = 0; i < n_out; i++)
            compare(c, d, over, o[i], have, a[i], i, 0);
    }
    tape_free(want);
    tape_free(have);
    tape_free(over);
}

static void all_cases(void **state)
{
    n_failed = 0;
    for (size_t b = 0; b < SN_LEN(device_variants); b++)
        for (int layouts = DEVICE_PLAIN; layouts <= DEVICE_BLOCKED; layouts++) {
            device_runner d;
            device_open(&d, &device_variants[b], (device_layouts)layouts);
            for (size_t i = 0; i < SN_LEN(op_cases); i++)
                if (!filter || strstr(op_cases[i].text, filter))
                    run_case(&op_cases[i], &d);
            device_close(&d);
        }
    assert_int_equal(n_failed, 0);
    assert_int_equal(sn_ledger_live_bytes(), 0);
}

/* One pass of the operator's gradient rule, all on the device, against all in plain C. */
static void gradient(const op_case *c, tape *t, sn_ref *din)
{
    const int n_in = case_n_in(c), n_out = case_arity(c->op, true);
    sn_ref in[SN_MAX_IN] = {0}, out[SN_MAX_OUT], dout[SN_MAX_OUT];
    bool wanted[SN_MAX_IN] = {false};
    case_fill(t, c, in);
    for (int i = 0; i < n_in; i++)
        wanted[i] = in[i] != SN_NO_REF && case_wanted(c->op) >> i & 1;
    tape_op(t, c->op, &c->attrs, n_in, in, n_out, NULL, out);
    for (int i = 1; i < n_out; i++)
        dout[i] = SN_NO_REF;
    dout[0] = tape_add(t, &t->value[out[0]].desc, NULL);
    for (int64_t i = 0; i < sn_shape_n(&t->value[out[0]].desc.shape); i++)
        tape_data(t, dout[0])[i] = (float)(2 * case_draw(c->seed, 77, (uint64_t)i) - 1);
    tape_gradient(t, c->op, &c->attrs, n_in, in, n_out, out, dout, wanted, din);
}

static void all_gradients(void **state)
{
    n_failed = 0;
    for (size_t b = 0; b < SN_LEN(device_variants); b++) {
        device_runner d;
        device_open(&d, &device_variants[b], DEVICE_BLOCKED);
        for (size_t i = 0; i < SN_LEN(op_cases); i++) {
            const op_case *c = &op_cases[i];
            bool saved = c->op != SN_OP_POOL2D || c->attrs.pool.kind != SN_POOL_MAX ||
                         c->attrs.pool.save_index;
            if (!case_wanted(c->op) || !saved || (filter && !strstr(c->text, filter)))
                continue;
            tape *want = tape_new(tape_reference, NULL), *have = tape_new(device_run, &d);
            sn_ref x[SN_MAX_IN], y[SN_MAX_IN];
            gradient(c, want, y);
            gradient(c, have, x);
            for (int k = 0; k < case_n_in(c); k++)
                compare(c, &d, have, x[k], want, y[k], k, 2e-5);
            tape_free(want);
            tape_free(have);
        }
        device_close(&d);
    }
    assert_int_equal(n_failed, 0);
    assert_int_equal(sn_ledger_live_bytes(), 0);
}

int main(int argc, char **argv)
{
    filter = argc > 1 ? argv[1] : NULL;
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_cases),
                                       cmocka_unit_test(all_gradients)};
    return cmocka_run_group_tests_name("operators on backends", tests, NULL, NULL);
}
