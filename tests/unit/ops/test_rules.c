/* SPDX-License-Identifier: Apache-2.0
 *
 * Shape rules refuse what does not go together, with the numbers; NaN and infinity rules; the
 * helpers of op.h; identities between operators. */
#include "ops/cases.h"
#include "support/support.h"

#include "base/rng.h"

#include <math.h>

/* ---- shape rules ----------------------------------------------------------------------------- */

#define F32(...)                                                                                   \
    {                                                                                              \
        SN_F32,                                                                                    \
        {                                                                                          \
            (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),                             \
            {                                                                                      \
                __VA_ARGS__                                                                        \
            }                                                                                      \
        }                                                                                          \
    }
#define ABSENT_DESC                                                                                \
    {                                                                                              \
        SN_F32,                                                                                    \
        {                                                                                          \
            -1,                                                                                    \
            {                                                                                      \
                0                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }
#define CONV .conv = {.stride = {1, 1}, .dilation = {1, 1}, .groups = 1}

static const struct {
    sn_op_id op;
    sn_attrs attrs;
    int n_in;
    sn_desc in[6];
    snug_status status;
    const char *words; /* stand in the message */
} refused[] = {
    {SN_OP_CONV2D,
     {CONV},
     3,
     {F32(1, 4, 4, 3), F32(3, 3, 4, 8), ABSENT_DESC},
     SNUG_E_INPUT,
     "4 channels a group, x has 3"},
    {SN_OP_CONV2D,
     {CONV},
     3,
     {F32(1, 2, 4, 3), F32(3, 3, 3, 8), ABSENT_DESC},
     SNUG_E_INPUT,
     "reaches over 3 but the padded height is only 2"},
    {SN_OP_CONV2D,
     {CONV},
     3,
     {F32(1, 4, 4, 3), F32(3, 3, 3, 8), F32(7)},
     SNUG_E_INPUT,
     "bias is float32 [7], it must be float32 [8]"},
    {SN_OP_CONV2D,
     {CONV},
     3,
     {F32(4, 4, 3), F32(3, 3, 3, 8), ABSENT_DESC},
     SNUG_E_INPUT,
     "x [4,4,3] must have 4 dimensions"},
    {SN_OP_CONV2D,
     {CONV},
     3,
     {{SN_U8, {4, {1, 4, 4, 3}}}, F32(3, 3, 3, 8), ABSENT_DESC},
     SNUG_E_INPUT,
     "must be float32, it is uint8"},
    {SN_OP_CONV2D,
     {.conv = {.stride = {0, 1}, .dilation = {1, 1}, .groups = 1}},
     3,
     {F32(1, 4, 4, 3), F32(3, 3, 3, 8), ABSENT_DESC},
     SNUG_E_INPUT,
     "a stride is 0"},
    {SN_OP_CONV2D,
     {.conv = {.stride = {1, 1}, .dilation = {1, 1}, .pad = {-1}, .groups = 1}},
     3,
     {F32(1, 4, 4, 3), F32(3, 3, 3, 8), ABSENT_DESC},
     SNUG_E_INPUT,
     "a padding is -1"},
    {SN_OP_CONV2D,
     {.conv = {.stride = {1, 1}, .dilation = {1, 1}, .groups = 2}},
     3,
     {F32(1, 4, 4, 3), F32(3, 3, 1, 8), ABSENT_DESC},
     SNUG_E_INPUT,
     "2 groups do not divide 3"},
    {SN_OP_CONV2D,
     {.conv = {.stride = {1, 1}, .dilation = {1, 1}, .groups = 1, .act = {SN_ACT_GELU, 0, 0, 0}}},
     3,
     {F32(1, 4, 4, 3), F32(3, 3, 3, 8), ABSENT_DESC},
     SNUG_E_UNSUPPORTED,
     "not gelu"},
    {SN_OP_CONV2D,
     {CONV},
     3,
     {F32(1, 4, 4, 3), ABSENT_DESC, ABSENT_DESC},
     SNUG_E_INTERNAL,
     "lacks its input w"},
    {SN_OP_CONV2D,
     {CONV},
     3,
     {F32(1, INT64_MAX / 8, 1, 1), F32(1, 1, 1, 8), ABSENT_DESC},
     SNUG_E_INPUT,
     "absurdly large"},
    {SN_OP_CONV2D_DX,
     {.conv = {.stride = {2, 2}, .dilation = {1, 1}, .groups = 1, .in_hw = {9, 9}}},
     2,
     {F32(1, 3, 3, 8), F32(3, 3, 3, 8)},
     SNUG_E_INPUT,
     "goes with dy 4 x 4, not 3 x 3"},
    {SN_OP_CONV2D_DW,
     {.conv = {.stride = {1, 1}, .dilation = {1, 1}, .groups = 1, .kernel = {3, 3}}},
     2,
     {F32(1, 4, 4, 3), F32(1, 4, 4, 8)},
     SNUG_E_INPUT,
     "x gives 1 x 2 x 2"},
    {SN_OP_DENSE,
     {.conv = {.groups = 0}},
     3,
     {F32(2, 7), F32(8, 3), ABSENT_DESC},
     SNUG_E_INPUT,
     "x has 7 features, w takes 8"},
    {SN_OP_DENSE_UPDATE,
     {.update = {.clip_norm = 1}},
     5,
     {F32(2, 3), F32(2, 4), F32(3, 4), ABSENT_DESC, ABSENT_DESC},
     SNUG_E_UNSUPPORTED,
     "by norm"},
    {SN_OP_DENSE_UPDATE,
     {.update = {.kind = SN_UPDATE_RMSPROP, .momentum = 0.9f, .centered = true}},
     5,
     {F32(2, 3), F32(2, 4), F32(3, 4), F32(3, 4), F32(3, 4)},
     SNUG_E_UNSUPPORTED,
     "keeps 3 slots"},
    {SN_OP_UPDATE,
     {.update = {.kind = SN_UPDATE_ADAM}},
     6,
     {F32(5), F32(5), ABSENT_DESC, F32(5), ABSENT_DESC, ABSENT_DESC},
     SNUG_E_INTERNAL,
     "slot 1 is missing"},
    {SN_OP_UPDATE,
     {.update = {.kind = SN_UPDATE_SGD}},
     6,
     {F32(5), F32(4), ABSENT_DESC, ABSENT_DESC, ABSENT_DESC, ABSENT_DESC},
     SNUG_E_INPUT,
     "gradient is float32 [4]"},
    {SN_OP_UPDATE,
     {.update = {.kind = SN_UPDATE_SGD, .clip_global = 1}},
     6,
     {F32(5), F32(5), ABSENT_DESC, ABSENT_DESC, ABSENT_DESC, ABSENT_DESC},
     SNUG_E_INTERNAL,
     "lacks the norm"},
    {SN_OP_BATCH_NORM,
     {.norm = {.epsilon = 1e-3f}},
     3,
     {F32(2, 5), F32(4), ABSENT_DESC},
     SNUG_E_INPUT,
     "gamma is float32 [4], it must be float32 [5]"},
    {SN_OP_GROUP_NORM,
     {.norm = {.groups = 4}},
     3,
     {F32(2, 2, 2, 6), ABSENT_DESC, ABSENT_DESC},
     SNUG_E_INPUT,
     "4 groups do not divide 6"},
    {SN_OP_PRELU, {.act = {0}}, 2, {F32(2, 3, 4), F32(2, 4)}, SNUG_E_INPUT, "[2,4] does not go"},
    {SN_OP_ACTIVATION, {.act = {SN_ACT_RELU, 0, -1, 0}}, 1, {F32(2, 3)}, SNUG_E_INPUT, "max -1"},
    {SN_OP_POOL2D,
     {.pool = {.window = {2, 2}, .stride = {1, 1}, .pad = {2, 0, 0, 0}}},
     1,
     {F32(1, 4, 4, 1)},
     SNUG_E_INPUT,
     "without an element"},
    {SN_OP_POOL2D_DX,
     {.pool = {.window = {2, 2}, .stride = {2, 2}, .in_hw = {4, 4}}},
     2,
     {F32(1, 2, 2, 1), ABSENT_DESC},
     SNUG_E_INTERNAL,
     "saved index"},
    {SN_OP_GLOBAL_POOL,
     {.pool = {.kind = SN_POOL_MAX}},
     1,
     {F32(2, 3)},
     SNUG_E_INPUT,
     "4 dimensions"},
    {SN_OP_CROP2D, {.pad = {{2, 2, 0, 0}}}, 1, {F32(1, 4, 4, 1)}, SNUG_E_INPUT, "nothing is left"},
    {SN_OP_PAD2D, {.pad = {{-1, 2, 0, 0}}}, 1, {F32(1, 4, 4, 1)}, SNUG_E_INPUT, "a border is -1"},
    {SN_OP_UPSAMPLE2D,
     {.upsample = {{0, 2}, false}},
     1,
     {F32(1, 4, 4, 1)},
     SNUG_E_INPUT,
     "a factor is 0"},
    {SN_OP_BINARY,
     {.binary = {.kind = SN_BINARY_ADD}},
     2,
     {F32(2, 3), F32(2, 4)},
     SNUG_E_INPUT,
     "a [2,3] and b [2,4] do not broadcast"},
    {SN_OP_REDUCE_TO,
     {.shape = {.shape = {1, {4}}}},
     1,
     {F32(2, 3)},
     SNUG_E_INPUT,
     "[2,3] cannot be summed to [4]"},
    {SN_OP_CONCAT,
     {.slice = {.axis = 1}},
     2,
     {F32(2, 3), F32(3, 3)},
     SNUG_E_INPUT,
     "beside axis 1"},
    {SN_OP_CONCAT, {.slice = {.axis = 2}}, 1, {F32(2, 3)}, SNUG_E_INPUT, "axis is 2"},
    {SN_OP_SLICE, {.slice = {1, 2, 2}}, 1, {F32(2, 3)}, SNUG_E_INPUT, "length is 2"},
    {SN_OP_DROPOUT, {.dropout = {1.5f, 0, 0}}, 1, {F32(2, 3)}, SNUG_E_INPUT, "rate is 1.5"},
    {SN_OP_RESHAPE,
     {.shape = {.shape = {2, {-1, 4}}}},
     1,
     {F32(2, 3)},
     SNUG_E_INPUT,
     "[2,4] has not as many elements as [2,3]"},
    {SN_OP_PERMUTE, {.shape = {.perm = {1, 0}}}, 1, {F32(2, 3)}, SNUG_E_INPUT, "batch must stay"},
    {SN_OP_PERMUTE, {.shape = {.perm = {0, 0}}}, 1, {F32(2, 3)}, SNUG_E_INPUT, "is 0 of 2"},
    {SN_OP_LOSS,
     {.loss = {SN_LOSS_SOFTMAX_XENT, 0, 0}},
     3,
     {F32(4, 3), {SN_I32, {1, {5}}}, ABSENT_DESC},
     SNUG_E_INPUT,
     "4 predictions, but 5 targets"},
    {SN_OP_LOSS,
     {.loss = {SN_LOSS_SIGMOID_XENT, 0, 0}},
     3,
     {F32(4, 3), {SN_I32, {1, {4}}}, ABSENT_DESC},
     SNUG_E_INPUT,
     "one output, not 3"},
    {SN_OP_LOSS,
     {.loss = {SN_LOSS_MSE, 0, 0}},
     3,
     {F32(4, 3), F32(4, 2), ABSENT_DESC},
     SNUG_E_INPUT,
     "target is float32 [4,2]"},
    {SN_OP_CAST, {.shape = {.dtype = SN_N_DTYPES}}, 1, {F32(2)}, SNUG_E_INPUT, "its type"},
};

static void shape_rules_refuse(void **state)
{
    for (size_t i = 0; i < SN_LEN(refused); i++) {
        sn_desc out[SN_MAX_OUT];
        snug_error err = SNUG_ERROR_INIT;
        assert_fails(sn_op_of(refused[i].op)
                         ->infer(&refused[i].attrs, refused[i].in, refused[i].n_in, out,
                                 case_arity(refused[i].op, true), &err),
                     refused[i].status, &err);
        assert_contains(err.what, refused[i].words);
    }
}

static void shapes(void **state)
{
    sn_desc in[3] = {F32(2, 7, 9, 3), F32(3, 3, 3, 5), F32(5)}, out[1];
    const sn_attrs a = {
        .conv = {.stride = {2, 2}, .dilation = {1, 1}, .pad = {1, 1, 1, 1}, .groups = 1}};
    const sn_shape want = {4, {2, 4, 5, 5}};
    assert_int_equal(sn_op_of(SN_OP_CONV2D)->infer(&a, in, 3, out, 1, NULL), SNUG_OK);
    assert_true(sn_shape_eq(&out[0].shape, &want));
    sn_desc pool[2];
    const sn_attrs p = {.pool = {.window = {16, 16}, .stride = {1, 1}, .save_index = true}};
    in[0] = (sn_desc)F32(1, 16, 16, 2);
    assert_int_equal(sn_op_of(SN_OP_POOL2D)->infer(&p, in, 1, pool, 2, NULL), SNUG_OK);
    assert_int_equal(pool[1].dtype, SN_I32); /* 256 elements */
}

/* ---- NaN, infinity, edges -------------------------------------------------------------------- */

static void one_op(sn_op_id op, const sn_attrs *attrs, const sn_desc *desc, const float *x,
                   float *y, int64_t n)
{
    tape *t = tape_new(tape_reference, NULL);
    sn_ref in = tape_add(t, desc, x), out[SN_MAX_OUT];
    tape_op(t, op, attrs, 1, &in, case_arity(op, true), NULL, out);
    memcpy(y, tape_data(t, out[0]), (size_t)n * sizeof *y);
    tape_free(t);
}

static void activations_keep_nan(void **state)
{
    for (sn_act kind = 0; kind < SN_N_ACTS; kind++) {
        const sn_act_attrs act = {kind, 0.1f, 6, 0};
        assert_true(isnan(sn_act_value(&act, NAN)));
        assert_true(isfinite(sn_act_value(&act, 100.0f)));
        assert_true(isfinite(sn_act_value(&act, -100.0f)));
    }
    const sn_act_attrs relu = {SN_ACT_RELU, 0, 0, 0};
    assert_true(sn_act_value(&relu, -INFINITY) == 0);
    assert_true(sn_act_value(&relu, INFINITY) == INFINITY);
}

static void pools_let_nan_win(void **state)
{
    const sn_attrs a = {.pool = {.window = {2, 2}, .stride = {2, 2}}};
    const sn_desc d = F32(1, 2, 4, 1);
    float y[2];
    one_op(SN_OP_POOL2D, &a, &d, (float[]){1, NAN, -INFINITY, -INFINITY, 5, 2, -INFINITY, -3}, y,
           2);
    assert_true(isnan(y[0]));
    assert_true(y[1] == -3);
    const sn_attrs g = {.pool = {.kind = SN_POOL_MAX}};
    const sn_desc one = F32(1, 2, 2, 1);
    one_op(SN_OP_GLOBAL_POOL, &g, &one, (float[]){1, 2, NAN, 3}, y, 1);
    assert_true(isnan(y[0]));
}

static void a_maximum_lets_nan_win(void **state)
{
    const sn_attrs a = {.binary = {.kind = SN_BINARY_MAX}};
    const sn_desc d = F32(3);
    tape *t = tape_new(tape_reference, NULL);
    sn_ref in[2] = {tape_add(t, &d, (float[]){NAN, 1, 2}), tape_add(t, &d, (float[]){1, NAN, 3})},
           y;
    tape_op(t, SN_OP_BINARY, &a, 2, in, 1, NULL, &y);
    assert_true(isnan(tape_data(t, y)[0]) && isnan(tape_data(t, y)[1]));
    assert_true(tape_data(t, y)[2] == 3);
    tape_free(t);
}

static void softmax_of_extremes(void **state)
{
    const sn_attrs a = {.act = {0}};
    const sn_desc d = F32(2, 3);
    float y[6];
    one_op(SN_OP_SOFTMAX, &a, &d, (float[]){1e30f, -INFINITY, 1e30f, 0, NAN, 1}, y, 6);
    assert_true(y[0] == 0.5f && y[1] == 0 && y[2] == 0.5f);
    assert_true(isnan(y[3]) && isnan(y[4]) && isnan(y[5]));
}

static void a_class_that_is_none_gives_nan(void **state)
{
    const sn_attrs a = {.loss = {SN_LOSS_SOFTMAX_XENT, 0, 0}};
    const sn_desc x = F32(2, 3), target = {SN_I32, {1, {2}}};
    const int32_t bad[][2] = {{0, 3}, {-1, 1}, {INT32_MAX, 0}};
    for (size_t i = 0; i < SN_LEN(bad); i++) {
        tape *t = tape_new(tape_reference, NULL);
        sn_ref in[3] = {tape_add(t, &x, (float[]){1, 2, 3, 4, 5, 6}), tape_add(t, &target, bad[i]),
                        SN_NO_REF};
        sn_ref y, dx;
        tape_op(t, SN_OP_LOSS, &a, 3, in, 1, NULL, &y);
        assert_true(isnan(tape_data(t, y)[0]));
        tape_op(t, SN_OP_LOSS_DX, &a, 3, in, 1, NULL, &dx);
        assert_true(isnan(tape_data(t, dx)[i == 0 ? 3 : 0]));
        tape_free(t);
    }
}

static void casts(void **state)
{
    const sn_desc d = F32(5);
    sn_attrs a = {.shape = {.dtype = SN_U8}};
    tape *t = tape_new(tape_reference, NULL);
    sn_ref in = tape_add(t, &d, (float[]){-3.5f, 2.9f, 300, NAN, 255}), y;
    tape_op(t, SN_OP_CAST, &a, 1, &in, 1, NULL, &y);
    const uint8_t want[] = {0, 2, 255, 0, 255};
    assert_memory_equal(t->value[y].data, want, 5);
    a.shape.dtype = SN_I32;
    tape_op(t, SN_OP_CAST, &a, 1, &in, 1, NULL, &y);
    const int32_t whole[] = {-3, 2, 300, 0, 255};
    assert_memory_equal(t->value[y].data, whole, sizeof whole);
    a.shape.dtype = SN_F16;
    tape_op(t, SN_OP_CAST, &a, 1, &in, 1, NULL, &y);
    a.shape.dtype = SN_F32;
    tape_op(t, SN_OP_CAST, &a, 1, &y, 1, NULL, &y);
    assert_true(tape_data(t, y)[0] == -3.5f && isnan(tape_data(t, y)[3]));
    tape_free(t);
}

/* ---- helpers --------------------------------------------------------------------------------- */

static void same_padding(void **state)
{
    const int64_t want[][6] = {/* in, kernel, stride, dilation: before, after */
                               {224, 3, 2, 1, 0, 1}, {7, 3, 2, 1, 1, 1}, {5, 3, 1, 1, 1, 1},
                               {5, 2, 3, 1, 0, 0},   {8, 2, 3, 1, 0, 0}, {9, 3, 1, 2, 2, 2},
                               {1, 3, 1, 1, 1, 1},   {6, 1, 2, 1, 0, 0}};
    for (size_t i = 0; i < SN_LEN(want); i++) {
        int64_t before, after;
        sn_same_padding(want[i][0], want[i][1], want[i][2], want[i][3], &before, &after);
        assert_int_equal(before, want[i][4]);
        assert_int_equal(after, want[i][5]);
    }
}

static void decimals(void **state)
{
    assert_true(sn_decimal(0.9f) == 0.9);
    assert_true(sn_decimal(0.999f) == 0.999);
    assert_true(sn_decimal(1e-7f) == 1e-7);
    assert_true(sn_decimal(0) == 0);
    assert_true((float)(1 - sn_decimal(0.9f)) == 0.1f);
    assert_true(isinf(sn_decimal(INFINITY)));
    for (int i = 0; i < 1000; i++) {
        float v = (float)case_draw(5, 5, (uint64_t)i);
        assert_true((float)sn_decimal(v) == v);
    }
}

static void names(void **state)
{
    for (sn_act i = 0; i < SN_N_ACTS; i++)
        assert_true(sn_act_name(i)[0] != '?');
    for (sn_update_kind i = 0; i < SN_N_UPDATES; i++)
        assert_true(sn_update_name(i)[0] != '?');
    for (sn_loss_kind i = 0; i < SN_N_LOSSES; i++)
        assert_true(sn_loss_name(i)[0] != '?');
    assert_string_equal(sn_act_name(SN_N_ACTS), "?");
    assert_string_equal(sn_update_name(SN_N_UPDATES), "?");
    assert_string_equal(sn_loss_name(SN_N_LOSSES), "?");
}

static void slots(void **state)
{
    const struct {
        sn_update_attrs u;
        int n;
    } want[] = {{{.kind = SN_UPDATE_SGD}, 0},
                {{.kind = SN_UPDATE_SGD, .momentum = 0.9f}, 1},
                {{.kind = SN_UPDATE_ADAM}, 2},
                {{.kind = SN_UPDATE_ADAMW}, 2},
                {{.kind = SN_UPDATE_RMSPROP}, 1},
                {{.kind = SN_UPDATE_RMSPROP, .centered = true}, 2},
                {{.kind = SN_UPDATE_RMSPROP, .centered = true, .momentum = 0.5f}, 3},
                {{.kind = SN_UPDATE_ADAGRAD}, 1},
                {{.kind = SN_UPDATE_LION}, 1}};
    for (size_t i = 0; i < SN_LEN(want); i++) {
        assert_int_equal(sn_update_n_slots(&want[i].u), want[i].n);
        assert_true(sn_update_slot_start(&want[i].u, 0) ==
                    (want[i].u.kind == SN_UPDATE_ADAGRAD ? 0.1f : 0));
    }
}

/* ---- dropout --------------------------------------------------------------------------------- */

static void dropout_is_one_draw_everywhere(void **state)
{
    const sn_dropout_attrs a = {0.3f, 4, 0};
    const sn_step whole = {.number = 9, .seed = 77},
                  part = {.number = 9, .seed = 77, .first_sample = 5};
    int64_t kept = 0, differ[3] = {0, 0, 0};
    for (uint64_t e = 0; e < 20000; e++) {
        bool keep = sn_dropout_keeps(&a, &whole, 6, e);
        assert_true(keep == sn_dropout_keeps(&a, &part, 1, e)); /* the slice's sample 1 */
        kept += keep;
        sn_dropout_attrs other = a;
        other.stream = 5;
        const sn_step next = {.number = 10, .seed = 77};
        differ[0] += keep != sn_dropout_keeps(&other, &whole, 6, e);
        differ[1] += keep != sn_dropout_keeps(&a, &next, 6, e);
        differ[2] += keep != sn_dropout_keeps(&a, &whole, 7, e);
    }
    assert_true(kept > 13700 && kept < 14300); /* 14000 +- 4.6 standard deviations */
    for (int i = 0; i < 3; i++)
        assert_true(differ[i] > 8000 && differ[i] < 8800); /* 2 * 0.3 * 0.7 = 8400 */
}

/* Element e has word e % 4 of block e / 4, and of it the upper 24 bits. */
static void dropout_takes_every_word_of_a_block(void **state)
{
    const sn_step step = {.number = (uint64_t)3 << 32 | 9, .seed = 77, .first_sample = 5};
    for (uint64_t e = 0; e < 1000; e++) {
        uint32_t r[4];
        sn_philox(r, sn_mix_u64(77, 4), step.number, (uint64_t)7 << 32 | e / 4);
        float draw = (float)(r[e % 4] >> 8) / 16777216.0f;
        sn_dropout_attrs at = {draw, 4, 0}, above = {nextafterf(draw, 2), 4, 0};
        assert_true(sn_dropout_keeps(&at, &step, 2, e));
        assert_false(sn_dropout_keeps(&above, &step, 2, e));
    }
}

/* A batch in one go has the bits of its samples one by one. */
static void dropout_of_a_batch_is_that_of_its_samples(void **state)
{
    enum { N = 3, EACH = 7 * 3 };
    const sn_attrs a = {.dropout = {0.4f, 2, 0}};
    float x[N * EACH], whole[N * EACH], part[EACH];
    for (int i = 0; i < N * EACH; i++)
        x[i] = (float)(i + 1);
    for (int n = -1; n < N; n++) {
        const sn_step step = {
            .number = 4, .seed = 6, .first_sample = (uint64_t)(10 + (n > 0 ? n : 0))};
        sn_operand in = {n < 0 ? x : x + n * EACH, F32(n < 0 ? N : 1, 3, 7)};
        sn_operand out = {n < 0 ? whole : part, in.desc};
        sn_call call = {.attrs = &a, .in = &in, .out = &out, .n_in = 1, .n_out = 1, .step = &step};
        sn_op_of(SN_OP_DROPOUT)->reference(&call);
        if (n >= 0)
            assert_memory_equal(part, whole + n * EACH, sizeof part);
    }
    int dropped = 0;
    for (int i = 0; i < N * EACH; i++)
        dropped += whole[i] == 0;
    assert_true(dropped > 5 && dropped < N * EACH - 5);
}

static void dropout_shares_draws_over_broadcast_axes(void **state)
{
    const sn_attrs a = {.dropout = {0.5f, 1, 1 << 1 | 1 << 2}};
    const sn_desc d = F32(4, 3, 5, 16);
    float x[960], y[960];
    for (int i = 0; i < 960; i++)
        x[i] = 1;
    one_op(SN_OP_DROPOUT, &a, &d, x, y, 960);
    for (int n = 0; n < 4; n++)
        for (int i = 0; i < 240; i++) {
            assert_true(y[n * 240 + i] == 0 || y[n * 240 + i] == 2);
            assert_true(y[n * 240 + i] == y[n * 240 + i % 16]);
        }
}

static void dropout_of_all_and_nothing(void **state)
{
    const sn_desc d = F32(2, 50);
    float x[100], y[100];
    for (int i = 0; i < 100; i++)
        x[i] = (float)i;
    sn_attrs a = {.dropout = {0, 1, 0}};
    one_op(SN_OP_DROPOUT, &a, &d, x, y, 100);
    assert_memory_equal(x, y, sizeof x);
    a.dropout.rate = 1;
    one_op(SN_OP_DROPOUT, &a, &d, x, y, 100);
    for (int i = 0; i < 100; i++)
        assert_true(y[i] == 0);
}

/* ---- identities ------------------------------------------------------------------------------ */

/* DENSE_UPDATE has the bits of DENSE_DW followed by UPDATE. */
static void dense_update_is_two_operators(void **state)
{
    int n = 0;
    for (size_t i = 0; i < SN_LEN(op_cases); i++) {
        const op_case *c = &op_cases[i];
        if (c->op != SN_OP_DENSE_UPDATE)
            continue;
        const sn_attrs none = {.conv = {.has_dbias = false}};
        tape *t = tape_new(tape_reference, NULL);
        sn_ref in[SN_MAX_IN], fused[3], dw[2], apart[4];
        case_fill(t, c, in);
        tape_op(t, SN_OP_DENSE_UPDATE, &c->attrs, 5, in, 3, NULL, fused);
        tape_op(t, SN_OP_DENSE_DW, &none, 2, in, 2, NULL, dw);
        sn_ref update[6] = {in[2], dw[0], SN_NO_REF, in[3], in[4], SN_NO_REF};
        tape_op(t, SN_OP_UPDATE, &c->attrs, 6, update, 4, NULL, apart);
        for (int k = 0; k < 3; k++) {
            assert_int_equal(fused[k] == SN_NO_REF, apart[k] == SN_NO_REF);
            if (fused[k] != SN_NO_REF)
                assert_memory_equal(tape_data(t, fused[k]), tape_data(t, apart[k]),
                                    tape_bytes(&t->value[fused[k]].desc));
        }
        tape_free(t);
        n++;
    }
    assert_true(n >= 3);
}

/* BATCH_NORM_APPLY with the saved statistics has the bits of BATCH_NORM: it may be replayed. */
static void batch_norm_can_be_replayed(void **state)
{
    for (size_t i = 0; i < SN_LEN(op_cases); i++) {
        const op_case *c = &op_cases[i];
        if (c->op != SN_OP_BATCH_NORM)
            continue;
        tape *t = tape_new(tape_reference, NULL);
        sn_ref in[SN_MAX_IN], out[3], again;
        case_fill(t, c, in);
        tape_op(t, SN_OP_BATCH_NORM, &c->attrs, 3, in, 3, NULL, out);
        tape_op(t, SN_OP_BATCH_NORM_APPLY, &c->attrs, 5,
                (sn_ref[]){in[0], in[1], in[2], out[1], out[2]}, 1, NULL, &again);
        assert_memory_equal(tape_data(t, out[0]), tape_data(t, again),
                            tape_bytes(&t->value[again].desc));
        tape_free(t);
    }
}

/* A last short batch divides by its own samples: two halves of a batch add up to the whole. */
static void losses_add_up(void **state)
{
    const sn_attrs a = {.loss = {SN_LOSS_SOFTMAX_XENT, 0.1f, 0}};
    const sn_desc whole = F32(4, 3), half = F32(2, 3), targets = {SN_I32, {1, {4}}},
                  two = {SN_I32, {1, {2}}};
    const float x[12] = {1, 2, 3, -1, 0, 1, 4, 4, 1, 0, 0, 0};
    const int32_t y[4] = {0, 2, 1, 1};
    tape *t = tape_new(tape_reference, NULL);
    t->step.n_batch = 4;
    sn_ref loss[3];
    tape_op(t, SN_OP_LOSS, &a, 3,
            (sn_ref[]){tape_add(t, &whole, x), tape_add(t, &targets, y), SN_NO_REF}, 1, NULL,
            &loss[0]);
    for (int i = 0; i < 2; i++)
        tape_op(t, SN_OP_LOSS, &a, 3,
                (sn_ref[]){tape_add(t, &half, x + 6 * i), tape_add(t, &two, y + 2 * i), SN_NO_REF},
                1, NULL, &loss[1 + i]);
    assert_true(fabsf(tape_data(t, loss[0])[0] -
                      (tape_data(t, loss[1])[0] + tape_data(t, loss[2])[0])) < 1e-6f);
    tape_free(t);
}

static int no_leak(void **state)
{
    return sn_ledger_live_bytes() == 0 ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shape_rules_refuse),
        cmocka_unit_test(shapes),
        cmocka_unit_test(activations_keep_nan),
        cmocka_unit_test(pools_let_nan_win),
        cmocka_unit_test(a_maximum_lets_nan_win),
        cmocka_unit_test(softmax_of_extremes),
        cmocka_unit_test(a_class_that_is_none_gives_nan),
        cmocka_unit_test(casts),
        cmocka_unit_test(same_padding),
        cmocka_unit_test(decimals),
        cmocka_unit_test(names),
        cmocka_unit_test(slots),
        cmocka_unit_test(dropout_is_one_draw_everywhere),
        cmocka_unit_test(dropout_takes_every_word_of_a_block),
        cmocka_unit_test(dropout_of_a_batch_is_that_of_its_samples),
        cmocka_unit_test(dropout_shares_draws_over_broadcast_axes),
        cmocka_unit_test(dropout_of_all_and_nothing),
        cmocka_unit_test(dense_update_is_two_operators),
        cmocka_unit_test(batch_norm_can_be_replayed),
        cmocka_unit_test(losses_add_up),
    };
    return cmocka_run_group_tests(tests, NULL, no_leak);
}
