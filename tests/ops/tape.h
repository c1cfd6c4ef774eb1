/* SPDX-License-Identifier: Apache-2.0
 *
 * tape.h - runs operators one by one, by their plain C or on a device, and their gradient rules the
 * same way: what a rule emits is executed at once. Every tensor lies between guard bytes and
 * outputs start as NaN, so that a write outside and an element that was never written both show.
 *
 *     tape *t = tape_new(tape_reference, NULL);
 *     sn_ref x = tape_add(t, &desc, numbers);
 *     tape_op(t, SN_OP_SOFTMAX, &attrs, 1, &x, 1, NULL, &y);
 *     const float *result = tape_data(t, y);
 *     tape_free(t);                       // checks all guards
 *
 * Ownership: the tape owns its tensors.  Threads: one.
 */
#ifndef TESTS_OPS_TAPE_H
#define TESTS_OPS_TAPE_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/ledger.h"
#include "ops/op.h"

#define TAPE_MAX 96
#define TAPE_GUARD 64
#define TAPE_FILL 0xA5

/* Runs one operator on host tensors in the PLAIN layout. */
typedef void (*tape_runner)(void *context, sn_op_id op, const sn_call *call);

typedef struct tape {
    tape_runner run;
    void *context;
    sn_step step;
    int n;
    sn_operand value[TAPE_MAX];
    unsigned char *block[TAPE_MAX];
} tape;

static inline uint64_t tape_bytes(const sn_desc *desc)
{
    uint64_t bytes = 0;
    assert_false(sn_desc_bytes(desc, &bytes));
    return bytes;
}

static inline tape *tape_new(tape_runner run, void *context)
{
    tape *t = sn_alloc(SN_TAG_TEST, sizeof *t);
    assert_non_null(t);
    t->run = run;
    t->context = context;
    t->step = (sn_step){.number = 2, .seed = 7, .first_sample = 5, .n_batch = 3, .lr = 0.125f};
    return t;
}

/* data NULL: every byte 0xFF, which is NaN as float32. */
static inline sn_ref tape_add(tape *t, const sn_desc *desc, const void *data)
{
    if (sn_desc_is_absent(desc))
        return SN_NO_REF;
    assert_true(t->n < TAPE_MAX);
    uint64_t bytes = tape_bytes(desc);
    unsigned char *block = sn_alloc(SN_TAG_TEST, (size_t)bytes + 2 * TAPE_GUARD);
    assert_non_null(block);
    memset(block, TAPE_FILL, (size_t)bytes + 2 * TAPE_GUARD);
    if (data)
        memcpy(block + TAPE_GUARD, data, (size_t)bytes);
    else
        memset(block + TAPE_GUARD, 0xFF, (size_t)bytes);
    t->block[t->n] = block;
    t->value[t->n] = (sn_operand){block + TAPE_GUARD, *desc};
    return (sn_ref)t->n++;
}

static inline sn_operand tape_operand(const tape *t, sn_ref ref)
{
    return ref == SN_NO_REF ? (sn_operand){NULL, sn_desc_absent()} : t->value[ref];
}

static inline float *tape_data(const tape *t, sn_ref ref)
{
    return tape_operand(t, ref).data;
}

static inline void tape_check_guards(const tape *t)
{
    for (int i = 0; i < t->n; i++) {
        uint64_t bytes = tape_bytes(&t->value[i].desc);
        for (size_t k = 0; k < TAPE_GUARD; k++) {
            assert_int_equal(t->block[i][k], TAPE_FILL);
            assert_int_equal(t->block[i][TAPE_GUARD + bytes + k], TAPE_FILL);
        }
    }
}

static inline void tape_free(tape *t)
{
    tape_check_guards(t);
    for (int i = 0; i < t->n; i++)
        sn_free(t->block[i]);
    sn_free(t);
}

static inline void tape_describe(const tape *t, int n, const sn_ref *refs, sn_desc *descs)
{
    for (int i = 0; i < n; i++)
        descs[i] = tape_operand(t, refs[i]).desc;
}

/* Infers, makes the wanted outputs (want NULL: all that the operator gives) and runs. */
static inline void tape_op(tape *t, sn_op_id op, const sn_attrs *attrs, int n_in, const sn_ref *in,
                           int n_out, const bool *want, sn_ref *out)
{
    sn_desc din[SN_MAX_IN], dout[SN_MAX_OUT];
    sn_operand operand_in[SN_MAX_IN], operand_out[SN_MAX_OUT];
    snug_error err = SNUG_ERROR_INIT;
    tape_describe(t, n_in, in, din);
    if (sn_op_of(op)->infer(attrs, din, n_in, dout, n_out, &err))
        fail_msg("%s: %s", sn_op_of(op)->name, err.what);
    for (int i = 0; i < n_in; i++)
        operand_in[i] = tape_operand(t, in[i]);
    for (int i = 0; i < n_out; i++) {
        out[i] = want && !want[i] ? SN_NO_REF : tape_add(t, &dout[i], NULL);
        operand_out[i] = tape_operand(t, out[i]);
    }
    sn_call call = {.attrs = attrs,
                    .in = operand_in,
                    .out = operand_out,
                    .n_in = n_in,
                    .n_out = n_out,
                    .step = &t->step};
    t->run(t->context, op, &call);
}

/* The plain C of the operator, its workspace between guards. */
static inline void tape_reference(void *context, sn_op_id op, const sn_call *call)
{
    SN_UNUSED(context);
    const sn_op *row = sn_op_of(op);
    sn_desc in[SN_MAX_IN];
    sn_call with = *call;
    unsigned char *block = NULL;
    uint64_t bytes = 0;
    for (int i = 0; i < call->n_in; i++)
        in[i] = call->in[i].desc;
    if (row->reference_workspace) {
        bytes = row->reference_workspace(call->attrs, in, call->n_in);
        block = sn_alloc(SN_TAG_TEST, (size_t)bytes + 2 * TAPE_GUARD);
        assert_non_null(block);
        memset(block, TAPE_FILL, (size_t)bytes + 2 * TAPE_GUARD);
        with.workspace = block + TAPE_GUARD;
    }
    row->reference(&with);
    for (size_t k = 0; block && k < TAPE_GUARD; k++) {
        assert_int_equal(block[k], TAPE_FILL);
        assert_int_equal(block[TAPE_GUARD + bytes + k], TAPE_FILL);
    }
    sn_free(block);
}

/* ---- gradients ------------------------------------------------------------------------------- */

static inline snug_status tape_emit(sn_grad *grad, sn_op_id op, const sn_attrs *attrs, int n_in,
                                    const sn_ref *in, int n_out, const bool *want, sn_ref *out,
                                    snug_error *err)
{
    SN_UNUSED(err);
    tape_op(grad->context, op, attrs, n_in, in, n_out, want, out);
    return SNUG_OK;
}

static inline sn_desc tape_desc(const sn_grad *grad, sn_ref ref)
{
    return tape_operand(grad->context, ref).desc;
}

/* Runs the gradient rule; din gets SN_NO_REF where nothing comes. */
static inline void tape_gradient(tape *t, sn_op_id op, const sn_attrs *attrs, int n_in,
                                 const sn_ref *in, int n_out, const sn_ref *out, const sn_ref *dout,
                                 const bool *wanted, sn_ref *din)
{
    snug_error err = SNUG_ERROR_INIT;
    sn_grad grad = {.attrs = attrs,
                    .n_in = n_in,
                    .n_out = n_out,
                    .in = in,
                    .out = out,
                    .dout = dout,
                    .wanted = wanted,
                    .din = din,
                    .emit = tape_emit,
                    .desc = tape_desc,
                    .context = t};
    assert_non_null(sn_op_of(op)->grad);
    if (sn_op_of(op)->grad(&grad, &err))
        fail_msg("gradient of %s: %s", sn_op_of(op)->name, err.what);
}

/* ---- comparing ------------------------------------------------------------------------------- */

/* max|a-b| / max|b|; infinity when one is NaN and the other is not, or infinities differ. */
static inline double tape_difference(const float *a, const float *b, int64_t n)
{
    double worst = 0, size = 0;
    for (int64_t i = 0; i < n; i++) {
        if (isnan(a[i]) != isnan(b[i]) || (isinf(b[i]) && a[i] != b[i]))
            return INFINITY;
        if (!isfinite(b[i]))
            continue;
        worst = fmax(worst, fabs((double)a[i] - (double)b[i]));
        size = fmax(size, fabs((double)b[i]));
    }
    return worst == 0 ? 0 : worst / size;
}

#endif
