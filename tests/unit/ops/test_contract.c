/* SPDX-License-Identifier: Apache-2.0
 *
 * Each row of ops.def has its file, its function pointers and a case in tests/ops/cases.h; what a
 * row says about running in place holds for its plain C. */
#include "ops/cases.h"
#include "support/support.h"

static const struct {
    const char *name, *file;
} rows[SN_N_OPS] = {
#define SN_OP(id, name, file, in, out) [SN_OP_##id] = {name, file},
#include "ops/ops.def"
#undef SN_OP
};

static void rows_are_complete(void **state)
{
    char path[SN_TEST_PATH], name[80];
    for (int id = 0; id < SN_N_OPS; id++) {
        const sn_op *op = sn_op_of((sn_op_id)id);
        assert_non_null(op);
        assert_string_equal(op->name, rows[id].name);
        assert_int_equal(sn_op_by_name(rows[id].name), id);
        assert_non_null(op->infer);
        assert_non_null(op->cost);
        assert_non_null(op->reference);
        snprintf(name, sizeof name, "src/ops/%s", rows[id].file);
        assert_true(test_exists(test_source_path(path, name)));
    }
    assert_int_equal(sn_op_by_name("no such operator"), SN_N_OPS);
}

static void rows_have_cases(void **state)
{
    bool seen[SN_N_OPS] = {false};
    for (size_t i = 0; i < SN_LEN(op_cases); i++) {
        const op_case *c = &op_cases[i];
        seen[c->op] = true;
        assert_int_equal(case_n_in(c),
                         c->op == SN_OP_CONCAT ? case_n_in(c) : case_arity(c->op, false));
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(c->text, op_cases[k].text);
    }
    for (int id = 0; id < SN_N_OPS; id++)
        if (!seen[id])
            fail_msg("no case for %s", rows[id].name);
}

/* Runs a case; with in_place, output i lies in the storage of the input that the row names. Returns
 * the outputs on t. */
static void run(tape *t, const op_case *c, bool in_place, sn_ref *out)
{
    const sn_op *op = sn_op_of(c->op);
    const int n_in = case_n_in(c), n_out = case_arity(c->op, true);
    sn_ref in[SN_MAX_IN] = {0};
    sn_desc din[SN_MAX_IN], dout[SN_MAX_OUT];
    sn_operand from[SN_MAX_IN], to[SN_MAX_OUT];
    snug_error err = SNUG_ERROR_INIT;
    case_fill(t, c, in);
    tape_describe(t, n_in, in, din);
    assert_ok(op->infer(&c->attrs, din, n_in, dout, n_out, &err), &err);
    for (int i = 0; i < n_in; i++)
        from[i] = tape_operand(t, in[i]);
    for (int i = 0; i < n_out; i++) {
        int over = in_place && op->in_place ? op->in_place(&c->attrs, i) : -1;
        bool fits = over >= 0 && from[over].data && !sn_desc_is_absent(&dout[i]) &&
                    tape_bytes(&from[over].desc) == tape_bytes(&dout[i]);
        out[i] = fits ? in[over] : tape_add(t, &dout[i], NULL);
        to[i] = tape_operand(t, out[i]);
        if (fits)
            to[i].desc = dout[i];
    }
    sn_call call = {
        .attrs = &c->attrs, .in = from, .out = to, .n_in = n_in, .n_out = n_out, .step = &t->step};
    tape_reference(NULL, c->op, &call);
}

static void in_place_gives_the_same_bits(void **state)
{
    int n_over = 0;
    for (size_t i = 0; i < SN_LEN(op_cases); i++) {
        const op_case *c = &op_cases[i];
        if (!sn_op_of(c->op)->in_place)
            continue;
        tape *a = tape_new(tape_reference, NULL), *b = tape_new(tape_reference, NULL);
        sn_ref apart[SN_MAX_OUT], over[SN_MAX_OUT];
        run(a, c, false, apart);
        run(b, c, true, over);
        n_over += a->n - b->n;
        for (int k = 0; k < case_arity(c->op, true); k++)
            if (apart[k] != SN_NO_REF && memcmp(tape_data(a, apart[k]), tape_data(b, over[k]),
                                                tape_bytes(&a->value[apart[k]].desc)))
                fail_msg("%s: output %d differs when made in place", c->text, k);
        tape_free(a);
        tape_free(b);
    }
    assert_true(n_over > 50);
}

/* Outputs are written whole, inputs and what lies around them are left alone (the tape's guards).
 */
static void outputs_are_whole(void **state)
{
    for (size_t i = 0; i < SN_LEN(op_cases); i++) {
        tape *t = tape_new(tape_reference, NULL);
        sn_ref out[SN_MAX_OUT];
        run(t, &op_cases[i], false, out);
        for (int k = 0; k < case_arity(op_cases[i].op, true); k++)
            for (int64_t e = 0; out[k] != SN_NO_REF && t->value[out[k]].desc.dtype == SN_F32 &&
                                e < sn_shape_n(&t->value[out[k]].desc.shape);
                 e++)
                if (!isfinite(tape_data(t, out[k])[e]))
                    fail_msg("%s: element %d of output %d", op_cases[i].text, (int)e, k);
        tape_free(t);
    }
}

static void costs_are_sane(void **state)
{
    for (size_t i = 0; i < SN_LEN(op_cases); i++) {
        const op_case *c = &op_cases[i];
        const int n_in = case_n_in(c), n_out = case_arity(c->op, true);
        sn_desc in[SN_MAX_IN], out[SN_MAX_OUT];
        sn_cost cost = {-1, -1, -1};
        snug_error err = SNUG_ERROR_INIT;
        for (int k = 0; k < n_in; k++)
            in[k] = case_desc(&c->in[k]);
        assert_ok(sn_op_of(c->op)->infer(&c->attrs, in, n_in, out, n_out, &err), &err);
        sn_op_of(c->op)->cost(&c->attrs, in, n_in, out, n_out, &cost);
        assert_true(cost.flops >= 0 && cost.read_bytes > 0 && cost.written_bytes > 0);
        if (c->op == SN_OP_CONV2D) {
            double y = (double)sn_shape_n(&out[0].shape), w = (double)sn_shape_n(&in[1].shape);
            assert_true(cost.flops == 2 * y * w / (double)in[1].shape.dim[3]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_complete),
        cmocka_unit_test(rows_have_cases),
        cmocka_unit_test(in_place_gives_the_same_bits),
        cmocka_unit_test(outputs_are_whole),
        cmocka_unit_test(costs_are_sane),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
