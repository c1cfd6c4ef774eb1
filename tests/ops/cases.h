/* SPDX-License-Identifier: Apache-2.0
 *
 * cases.h - the one list of operator cases that every test and every backend goes through. A case's
 * text is its filter; its seed makes its numbers. Seeds and fills keep numbers away from kinks
 * (ReLU's zero, equal elements under a maximum), so that finite differences mean something.
 *
 *     for (size_t i = 0; i < SN_LEN(op_cases); i++)
 *         case_fill(t, &op_cases[i], in);             // in: the operands on the tape t
 *
 * Ownership: static tables.  Threads: any.
 */
#ifndef TESTS_OPS_CASES_H
#define TESTS_OPS_CASES_H

#include "ops/tape.h"

#include "base/rng.h"

typedef enum case_fill_kind {
    END,      /* no operand: the list is over */
    ABSENT,   /* an optional one that is not there */
    UNIFORM,  /* -1..1 */
    DISTINCT, /* odd multiples of 0.1 up to 6.1 on either side, neighbours far apart */
    POSITIVE, /* 0.5..1.5 */
    WIDE,     /* -4..4 */
    BITS,     /* 0 or 1 */
    SHARES,   /* rows of positive numbers that add up to 1 */
    CLASSES,  /* i32, 0..K-1 of input 0's last axis (0..1 if that is 1) */
    BYTES,    /* u8, 0..255 */
    DERIVED   /* made from the other operands (case_derive) */
} case_fill_kind;

typedef struct case_operand {
    case_fill_kind fill;
    sn_dtype dtype;
    int rank;
    int64_t dim[SN_MAX_RANK];
} case_operand;

typedef struct op_case {
    const char *text;
    sn_op_id op;
    uint64_t seed;
    sn_attrs attrs;
    case_operand in[7];
} op_case;

#define RANK(...) ((int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)))
#define OF(fill, dtype, ...)                                                                       \
    {                                                                                              \
        fill, dtype, RANK(__VA_ARGS__),                                                            \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
#define U(...) OF(UNIFORM, SN_F32, __VA_ARGS__)
#define D(...) OF(DISTINCT, SN_F32, __VA_ARGS__)
#define P(...) OF(POSITIVE, SN_F32, __VA_ARGS__)
#define W(...) OF(WIDE, SN_F32, __VA_ARGS__)
#define S(...) OF(SHARES, SN_F32, __VA_ARGS__)
#define X(...) OF(DERIVED, SN_F32, __VA_ARGS__)
#define NONE                                                                                       \
    {                                                                                              \
        ABSENT, SN_F32, -1,                                                                        \
        {                                                                                          \
            0                                                                                      \
        }                                                                                          \
    }
/* stride, dilation, padding (top, bottom, left, right), groups, more fields */
#define CONV(sh, sw, dh, dw, pt, pb, pl, pr, g, ...)                                               \
    {                                                                                              \
        .conv = {                                                                                  \
            .stride = {sh, sw},                                                                    \
            .dilation = {dh, dw},                                                                  \
            .pad = {pt, pb, pl, pr},                                                               \
            .groups = g,                                                                           \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
#define IN_HW(h, w) .in_hw = {h, w}
#define KERNEL(h, w) .kernel = {h, w}
#define RELU                                                                                       \
    {                                                                                              \
        SN_ACT_RELU, 0, 0, 0                                                                       \
    }
#define RELU6                                                                                      \
    {                                                                                              \
        SN_ACT_RELU, 0, 6, 0                                                                       \
    }
#define NORM(...)                                                                                  \
    {                                                                                              \
        .norm = {.epsilon = 1e-3f, __VA_ARGS__ }                                                   \
    }
#define POOL(k, wh, ww, sh, sw, pt, pb, pl, pr, ...)                                               \
    {                                                                                              \
        .pool = {                                                                                  \
            .kind = k,                                                                             \
            .window = {wh, ww},                                                                    \
            .stride = {sh, sw},                                                                    \
            .pad = {pt, pb, pl, pr},                                                               \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
#define ACT(k, a, m, t)                                                                            \
    {                                                                                              \
        .act = { k, a, m, t }                                                                      \
    }
#define BINARY(k, ...)                                                                             \
    {                                                                                              \
        .binary = {.kind = SN_BINARY_##k, __VA_ARGS__ }                                            \
    }
#define SCALAR(k, v, o)                                                                            \
    {                                                                                              \
        .scalar = { SN_SCALAR_##k, v, o }                                                          \
    }
#define LOSS(k, s)                                                                                 \
    {                                                                                              \
        .loss = { SN_LOSS_##k, s, 1.0f }                                                           \
    }
#define UPDATE(k, ...)                                                                             \
    {                                                                                              \
        .update = {                                                                                \
            .kind = SN_UPDATE_##k,                                                                 \
            .beta1 = 0.9f,                                                                         \
            .beta2 = 0.999f,                                                                       \
            .rho = 0.9f,                                                                           \
            .epsilon = 1e-7f,                                                                      \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
#define SHAPE(...)                                                                                 \
    {                                                                                              \
        .shape = {.shape = {RANK(__VA_ARGS__), {__VA_ARGS__}} }                                    \
    }

static const op_case op_cases[] = {
    {"conv2d 3x3 valid",
     SN_OP_CONV2D,
     1,
     CONV(1, 1, 1, 1, 0, 0, 0, 0, 1, .act = {0}),
     {U(2, 5, 4, 3), U(3, 3, 3, 4), U(4)}},
    {"conv2d 3x3 same",
     SN_OP_CONV2D,
     2,
     CONV(1, 1, 1, 1, 1, 1, 1, 1, 1, .act = {0}),
     {U(2, 5, 4, 8), U(3, 3, 8, 16), U(16)}},
    {"conv2d 3x3 stride 2 odd padding",
     SN_OP_CONV2D,
     3,
     CONV(2, 2, 1, 1, 0, 1, 0, 1, 1, .act = {0}),
     {U(2, 6, 7, 3), U(3, 3, 3, 5), U(5)}},
    {"conv2d 1x1 stride 2",
     SN_OP_CONV2D,
     4,
     CONV(2, 2, 1, 1, 0, 0, 0, 0, 1, .act = {0}),
     {U(2, 5, 5, 16), U(1, 1, 16, 33), NONE}},
    {"conv2d 2x3 stride 3,2",
     SN_OP_CONV2D,
     5,
     CONV(3, 2, 1, 1, 1, 0, 2, 1, 1, .act = {0}),
     {U(1, 7, 6, 4), U(2, 3, 4, 3), U(3)}},
    {"conv2d dilated",
     SN_OP_CONV2D,
     6,
     CONV(1, 1, 2, 3, 2, 2, 3, 3, 1, .act = {0}),
     {U(1, 7, 8, 3), U(3, 3, 3, 4), NONE}},
    {"conv2d groups 2",
     SN_OP_CONV2D,
     7,
     CONV(1, 1, 1, 1, 1, 1, 1, 1, 2, .act = {0}),
     {U(2, 4, 5, 6), U(3, 3, 3, 8), U(8)}},
    {"conv2d groups 2 of 16",
     SN_OP_CONV2D,
     8,
     CONV(2, 2, 1, 1, 1, 1, 1, 1, 2, .act = {0}),
     {U(1, 5, 5, 32), U(3, 3, 16, 32), U(32)}},
    {"conv2d depthwise 3x3 same",
     SN_OP_CONV2D,
     9,
     CONV(1, 1, 1, 1, 1, 1, 1, 1, 20, .act = {0}),
     {U(2, 5, 6, 20), U(3, 3, 1, 20), U(20)}},
    {"conv2d depthwise stride 2",
     SN_OP_CONV2D,
     10,
     CONV(2, 2, 1, 1, 0, 1, 0, 1, 16, .act = {0}),
     {U(2, 6, 8, 16), U(3, 3, 1, 16), NONE}},
    {"conv2d depthwise multiplier 2",
     SN_OP_CONV2D,
     11,
     CONV(1, 1, 1, 1, 0, 0, 0, 0, 3, .act = {0}),
     {U(2, 4, 4, 3), U(3, 2, 1, 6), U(6)}},
    {"conv2d depthwise 5x5 dilated",
     SN_OP_CONV2D,
     12,
     CONV(1, 1, 2, 2, 4, 4, 4, 4, 8, .act = {0}),
     {U(1, 7, 6, 8), U(5, 5, 1, 8), U(8)}},
    {"conv2d relu",
     SN_OP_CONV2D,
     13,
     CONV(1, 1, 1, 1, 1, 1, 1, 1, 1, .act = RELU),
     {U(1, 4, 4, 3), U(3, 3, 3, 4), U(4)}},
    {"conv2d relu6",
     SN_OP_CONV2D,
     14,
     CONV(1, 1, 1, 1, 0, 0, 0, 0, 1, .act = RELU6),
     {W(1, 3, 3, 8), U(1, 1, 8, 16), U(16)}},
    {"conv2d 7x7 stride 2 image",
     SN_OP_CONV2D,
     15,
     CONV(2, 2, 1, 1, 3, 3, 3, 3, 1, .act = {0}),
     {U(1, 11, 9, 3), U(7, 7, 3, 8), U(8)}},
    {"conv2d 1x1 wide",
     SN_OP_CONV2D,
     16,
     CONV(1, 1, 1, 1, 0, 0, 0, 0, 1, .act = {0}),
     {U(3, 3, 5, 40), U(1, 1, 40, 24), U(24)}},
    {"conv2d one channel in and out",
     SN_OP_CONV2D,
     17,
     CONV(1, 1, 1, 1, 1, 1, 1, 1, 1, .act = {0}),
     {U(2, 5, 3, 1), U(3, 3, 1, 1), U(1)}},
    {"conv2d_dx stride 2",
     SN_OP_CONV2D_DX,
     18,
     CONV(2, 2, 1, 1, 0, 1, 0, 1, 1, IN_HW(6, 7)),
     {U(2, 3, 3, 5), U(3, 3, 4, 5)}},
    {"conv2d_dx transposed valid",
     SN_OP_CONV2D_DX,
     19,
     CONV(3, 2, 1, 1, 0, 0, 0, 0, 1, IN_HW(9, 7)),
     {U(1, 3, 3, 3), U(2, 3, 2, 3)}},
    {"conv2d_dx groups",
     SN_OP_CONV2D_DX,
     20,
     CONV(1, 1, 1, 1, 1, 1, 1, 1, 2, IN_HW(4, 4)),
     {U(1, 4, 4, 8), U(3, 3, 3, 8)}},
    {"conv2d_dx wide",
     SN_OP_CONV2D_DX,
     21,
     CONV(1, 1, 1, 1, 1, 1, 1, 1, 1, IN_HW(5, 4)),
     {U(2, 5, 4, 32), U(3, 3, 16, 32)}},
    {"conv2d_dx depthwise stride 2",
     SN_OP_CONV2D_DX,
     22,
     CONV(2, 2, 1, 1, 1, 1, 1, 1, 17, IN_HW(6, 5)),
     {U(2, 3, 3, 17), U(3, 3, 1, 17)}},
    {"conv2d_dw bias",
     SN_OP_CONV2D_DW,
     23,
     CONV(1, 1, 1, 1, 1, 1, 1, 1, 1, KERNEL(3, 3), .has_dbias = true),
     {U(2, 4, 5, 3), U(2, 4, 5, 20)}},
    {"conv2d_dw stride 2",
     SN_OP_CONV2D_DW,
     24,
     CONV(2, 2, 1, 1, 0, 1, 0, 1, 1, KERNEL(3, 3)),
     {U(2, 6, 7, 16), U(2, 3, 3, 16)}},
    {"conv2d_dw groups",
     SN_OP_CONV2D_DW,
     25,
     CONV(1, 1, 1, 1, 0, 0, 0, 0, 2, KERNEL(2, 3), .has_dbias = true),
     {U(1, 4, 5, 4), U(1, 3, 3, 6)}},
    {"conv2d_dw depthwise stride 2",
     SN_OP_CONV2D_DW,
     26,
     CONV(2, 2, 1, 1, 1, 1, 1, 1, 24, KERNEL(3, 3), .has_dbias = true),
     {U(2, 6, 5, 24), U(2, 3, 3, 24)}},
    {"dense", SN_OP_DENSE, 27, {.conv = {.act = {0}}}, {U(3, 7), U(7, 5), U(5)}},
    {"dense no bias", SN_OP_DENSE, 28, {.conv = {.act = {0}}}, {U(2, 33), U(33, 17), NONE}},
    {"dense relu", SN_OP_DENSE, 29, {.conv = {.act = RELU}}, {U(4, 6), U(6, 20), U(20)}},
    {"dense 4-D", SN_OP_DENSE, 30, {.conv = {.act = {0}}}, {U(2, 3, 2, 4), U(4, 3), U(3)}},
    {"dense one sample", SN_OP_DENSE, 31, {.conv = {.act = {0}}}, {U(1, 40), U(40, 1), U(1)}},
    {"dense_dx", SN_OP_DENSE_DX, 32, {.conv = {.act = {0}}}, {U(3, 20), U(9, 20)}},
    {"dense_dx 4-D", SN_OP_DENSE_DX, 33, {.conv = {.act = {0}}}, {U(2, 2, 2, 5), U(4, 5)}},
    {"dense_dw bias", SN_OP_DENSE_DW, 34, {.conv = {.has_dbias = true}}, {U(5, 9), U(5, 70)}},
    {"dense_dw 4-D", SN_OP_DENSE_DW, 35, {.conv = {.act = {0}}}, {U(2, 2, 3, 4), U(2, 2, 3, 5)}},
    {"dense_update sgd",
     SN_OP_DENSE_UPDATE,
     36,
     UPDATE(SGD, .weight_decay = 0.01f),
     {U(5, 9), U(5, 70), U(9, 70), NONE, NONE}},
    {"dense_update momentum",
     SN_OP_DENSE_UPDATE,
     37,
     UPDATE(SGD, .momentum = 0.9f, .nesterov = true, .l2 = 0.01f, .clip_value = 0.5f),
     {U(3, 20), U(3, 33), U(20, 33), U(20, 33), NONE}},
    {"dense_update adam",
     SN_OP_DENSE_UPDATE,
     38,
     UPDATE(ADAM, .weight_decay = 0.1f),
     {U(4, 6), U(4, 65), U(6, 65), U(6, 65), P(6, 65)}},
    {"bias_add", SN_OP_BIAS_ADD, 39, {.conv = {.act = {0}}}, {U(2, 3, 2, 5), U(5)}},
    {"bias_add 2-D", SN_OP_BIAS_ADD, 40, {.conv = {.act = {0}}}, {U(3, 20), U(20)}},
    {"bias_grad", SN_OP_BIAS_GRAD, 41, {.conv = {.act = {0}}}, {U(3, 3, 2, 20)}},
    {"bias_grad 2-D", SN_OP_BIAS_GRAD, 42, {.conv = {.act = {0}}}, {U(9, 7)}},
    {"batch_norm", SN_OP_BATCH_NORM, 43, NORM(.groups = 0), {U(3, 3, 2, 5), P(5), U(5)}},
    {"batch_norm 2-D", SN_OP_BATCH_NORM, 44, NORM(.groups = 0), {U(6, 7), P(7), U(7)}},
    {"batch_norm no scale", SN_OP_BATCH_NORM, 45, NORM(.groups = 0), {U(2, 2, 3, 20), NONE, U(20)}},
    {"batch_norm no center", SN_OP_BATCH_NORM, 46, NORM(.groups = 0), {U(2, 3, 3, 4), P(4), NONE}},
    {"batch_norm relu", SN_OP_BATCH_NORM, 47, NORM(.act = RELU), {W(2, 3, 2, 16), P(16), U(16)}},
    {"batch_norm relu6", SN_OP_BATCH_NORM, 48, NORM(.act = RELU6), {W(2, 2, 2, 8), P(8), U(8)}},
    {"batch_norm_apply",
     SN_OP_BATCH_NORM_APPLY,
     49,
     NORM(.groups = 0),
     {U(2, 3, 2, 5), P(5), U(5), U(5), P(5)}},
    {"batch_norm_apply relu",
     SN_OP_BATCH_NORM_APPLY,
     50,
     NORM(.act = RELU),
     {W(2, 2, 3, 20), P(20), U(20), U(20), P(20)}},
    {"batch_norm_apply bare",
     SN_OP_BATCH_NORM_APPLY,
     51,
     NORM(.groups = 0),
     {U(4, 6), NONE, NONE, U(6), P(6)}},
    {"batch_norm_dx",
     SN_OP_BATCH_NORM_DX,
     52,
     NORM(.groups = 0),
     {U(3, 3, 2, 20), U(3, 3, 2, 20), P(20), U(20), X(20), X(20)}},
    {"batch_norm_dx relu",
     SN_OP_BATCH_NORM_DX,
     53,
     NORM(.act = RELU),
     {U(2, 3, 4, 16), U(2, 3, 4, 16), P(16), U(16), X(16), X(16)}},
    {"batch_norm_dx relu6 no scale",
     SN_OP_BATCH_NORM_DX,
     54,
     NORM(.act = RELU6),
     {U(2, 3, 3, 8), U(2, 3, 3, 8), NONE, U(8), X(8), X(8)}},
    {"batch_norm_dx 2-D",
     SN_OP_BATCH_NORM_DX,
     55,
     NORM(.groups = 0),
     {U(7, 5), U(7, 5), P(5), NONE, X(5), X(5)}},
    {"batch_norm_apply_dx",
     SN_OP_BATCH_NORM_APPLY_DX,
     56,
     NORM(.act = RELU),
     {U(2, 3, 3, 20), U(2, 3, 3, 20), P(20), U(20), U(20), P(20)}},
    {"batch_norm_apply_dx bare",
     SN_OP_BATCH_NORM_APPLY_DX,
     57,
     NORM(.groups = 0),
     {U(2, 3, 2, 5), U(2, 3, 2, 5), NONE, NONE, U(5), P(5)}},
    {"moving_average", SN_OP_MOVING_AVERAGE, 58, NORM(.momentum = 0.99f), {U(20), P(20)}},
    {"group_norm layer 2-D", SN_OP_GROUP_NORM, 59, NORM(.groups = 0), {U(3, 9), P(9), U(9)}},
    {"group_norm layer 4-D", SN_OP_GROUP_NORM, 60, NORM(.groups = 0), {U(2, 2, 3, 6), P(6), U(6)}},
    {"group_norm 2 groups", SN_OP_GROUP_NORM, 61, NORM(.groups = 2), {U(2, 3, 2, 6), P(6), U(6)}},
    {"group_norm instance bare",
     SN_OP_GROUP_NORM,
     62,
     NORM(.groups = 3),
     {U(2, 3, 3, 3), NONE, NONE}},
    {"group_norm_dx layer",
     SN_OP_GROUP_NORM_DX,
     63,
     NORM(.groups = 0),
     {U(4, 9), U(4, 9), P(9), X(4), X(4)}},
    {"group_norm_dx 2 groups",
     SN_OP_GROUP_NORM_DX,
     64,
     NORM(.groups = 2),
     {U(2, 3, 2, 6), U(2, 3, 2, 6), NONE, X(2, 2), X(2, 2)}},
    {"activation relu", SN_OP_ACTIVATION, 65, ACT(SN_ACT_RELU, 0, 0, 0), {D(2, 3, 3, 17)}},
    {"activation relu all", SN_OP_ACTIVATION, 66, ACT(SN_ACT_RELU, 0.1f, 4, 0.4f), {D(3, 40)}},
    {"activation leaky", SN_OP_ACTIVATION, 67, ACT(SN_ACT_RELU, 0.3f, 0, 0), {D(3, 30)}},
    {"activation relu6", SN_OP_ACTIVATION, 68, ACT(SN_ACT_RELU, 0, 6, 0), {D(2, 2, 3, 20)}},
    {"activation elu", SN_OP_ACTIVATION, 69, ACT(SN_ACT_ELU, 1, 0, 0), {D(3, 30)}},
    {"activation elu 0.7", SN_OP_ACTIVATION, 70, ACT(SN_ACT_ELU, 0.7f, 0, 0), {D(3, 30)}},
    {"activation gelu", SN_OP_ACTIVATION, 71, ACT(SN_ACT_GELU, 0, 0, 0), {W(3, 30)}},
    {"activation gelu_tanh", SN_OP_ACTIVATION, 72, ACT(SN_ACT_GELU_TANH, 0, 0, 0), {W(3, 30)}},
    {"activation silu", SN_OP_ACTIVATION, 73, ACT(SN_ACT_SILU, 0, 0, 0), {W(2, 2, 3, 18)}},
    {"activation hard_silu",
     SN_OP_ACTIVATION,
     74,
     ACT(SN_ACT_HARD_SILU, 0, 0, 0),
     {D(2, 2, 3, 18)}},
    {"activation sigmoid", SN_OP_ACTIVATION, 75, ACT(SN_ACT_SIGMOID, 0, 0, 0), {W(3, 30)}},
    {"activation hard_sigmoid",
     SN_OP_ACTIVATION,
     76,
     ACT(SN_ACT_HARD_SIGMOID, 0, 0, 0),
     {D(3, 30)}},
    {"activation tanh", SN_OP_ACTIVATION, 77, ACT(SN_ACT_TANH, 0, 0, 0), {W(3, 30)}},
    {"activation_dx relu",
     SN_OP_ACTIVATION_DX,
     78,
     ACT(SN_ACT_RELU, 0, 0, 0),
     {D(2, 3, 3, 17), U(2, 3, 3, 17)}},
    {"activation_dx relu6",
     SN_OP_ACTIVATION_DX,
     79,
     ACT(SN_ACT_RELU, 0, 6, 0),
     {D(2, 2, 3, 20), U(2, 2, 3, 20)}},
    {"activation_dx tanh", SN_OP_ACTIVATION_DX, 80, ACT(SN_ACT_TANH, 0, 0, 0), {U(3, 7), U(3, 7)}},
    {"activation_dx gelu", SN_OP_ACTIVATION_DX, 81, ACT(SN_ACT_GELU, 0, 0, 0), {W(3, 7), U(3, 7)}},
    {"prelu full", SN_OP_PRELU, 82, {.act = {0}}, {D(2, 2, 3, 4), U(2, 3, 4)}},
    {"prelu shared", SN_OP_PRELU, 83, {.act = {0}}, {D(2, 2, 3, 5), U(1, 1, 5)}},
    {"prelu_dx shared",
     SN_OP_PRELU_DX,
     84,
     {.act = {0}},
     {D(2, 2, 3, 5), U(1, 1, 5), U(2, 2, 3, 5)}},
    {"softmax", SN_OP_SOFTMAX, 85, {.act = {0}}, {W(3, 11)}},
    {"softmax 4-D", SN_OP_SOFTMAX, 86, {.act = {0}}, {U(2, 2, 2, 20)}},
    {"softmax_dx", SN_OP_SOFTMAX_DX, 87, {.act = {0}}, {S(3, 11), U(3, 11)}},
    {"pool2d max 2x2",
     SN_OP_POOL2D,
     88,
     POOL(SN_POOL_MAX, 2, 2, 2, 2, 0, 0, 0, 0, .save_index = true),
     {D(2, 4, 5, 3)}},
    {"pool2d max 3x3 stride 2 padded",
     SN_OP_POOL2D,
     89,
     POOL(SN_POOL_MAX, 3, 3, 2, 2, 1, 1, 0, 1, .save_index = true),
     {D(2, 5, 6, 3)}},
    {"pool2d max 3x3 wide",
     SN_OP_POOL2D,
     90,
     POOL(SN_POOL_MAX, 3, 3, 1, 1, 1, 1, 1, 1, .save_index = true),
     {D(1, 4, 3, 20)}},
    {"pool2d max 17x16",
     SN_OP_POOL2D,
     91,
     POOL(SN_POOL_MAX, 17, 16, 1, 2, 0, 0, 0, 0, .save_index = true),
     {U(1, 18, 18, 2)}},
    {"pool2d max without index",
     SN_OP_POOL2D,
     92,
     POOL(SN_POOL_MAX, 2, 2, 2, 2, 0, 0, 0, 0, .save_index = false),
     {D(2, 4, 4, 16)}},
    {"pool2d average",
     SN_OP_POOL2D,
     93,
     POOL(SN_POOL_AVERAGE, 2, 3, 2, 1, 0, 0, 0, 0, .in_hw = {0}),
     {U(2, 5, 4, 3)}},
    {"pool2d average padded",
     SN_OP_POOL2D,
     94,
     POOL(SN_POOL_AVERAGE, 3, 3, 1, 1, 1, 1, 1, 1, .in_hw = {0}),
     {U(2, 4, 3, 20)}},
    {"pool2d_dx max",
     SN_OP_POOL2D_DX,
     95,
     POOL(SN_POOL_MAX, 3, 3, 2, 2, 1, 1, 0, 1, .save_index = true, .in_hw = {5, 6}),
     {U(2, 3, 3, 20), OF(DERIVED, SN_U8, 2, 3, 3, 20)}},
    {"pool2d_dx max 17x16",
     SN_OP_POOL2D_DX,
     96,
     POOL(SN_POOL_MAX, 17, 16, 1, 2, 0, 0, 0, 0, .save_index = true, .in_hw = {18, 18}),
     {U(1, 2, 2, 2), OF(DERIVED, SN_I32, 1, 2, 2, 2)}},
    {"pool2d_dx average padded",
     SN_OP_POOL2D_DX,
     97,
     POOL(SN_POOL_AVERAGE, 3, 3, 2, 2, 1, 1, 1, 0, .in_hw = {5, 6}),
     {U(2, 3, 3, 17), NONE}},
    {"global_pool average",
     SN_OP_GLOBAL_POOL,
     98,
     POOL(SN_POOL_AVERAGE, 0, 0, 0, 0, 0, 0, 0, 0, .in_hw = {0}),
     {U(2, 3, 4, 20)}},
    {"global_pool average keepdims",
     SN_OP_GLOBAL_POOL,
     99,
     POOL(SN_POOL_AVERAGE, 0, 0, 0, 0, 0, 0, 0, 0, .keepdims = true),
     {U(2, 3, 2, 5)}},
    {"global_pool max",
     SN_OP_GLOBAL_POOL,
     100,
     POOL(SN_POOL_MAX, 0, 0, 0, 0, 0, 0, 0, 0, .in_hw = {0}),
     {D(2, 3, 2, 5)}},
    {"global_pool_dx average",
     SN_OP_GLOBAL_POOL_DX,
     101,
     POOL(SN_POOL_AVERAGE, 0, 0, 0, 0, 0, 0, 0, 0, .in_hw = {3, 4}),
     {NONE, NONE, U(2, 20)}},
    {"global_pool_dx max keepdims",
     SN_OP_GLOBAL_POOL_DX,
     102,
     POOL(SN_POOL_MAX, 0, 0, 0, 0, 0, 0, 0, 0, .keepdims = true, .in_hw = {3, 2}),
     {D(2, 3, 2, 5), X(2, 1, 1, 5), U(2, 1, 1, 5)}},
    {"pad2d", SN_OP_PAD2D, 103, {.pad = {{1, 2, 0, 3}}}, {U(2, 3, 2, 5)}},
    {"pad2d wide", SN_OP_PAD2D, 104, {.pad = {{0, 1, 0, 1}}}, {U(1, 4, 4, 20)}},
    {"crop2d", SN_OP_CROP2D, 105, {.pad = {{1, 2, 0, 1}}}, {U(2, 5, 4, 3)}},
    {"crop2d wide", SN_OP_CROP2D, 106, {.pad = {{0, 1, 1, 0}}}, {U(1, 4, 4, 17)}},
    {"upsample2d nearest", SN_OP_UPSAMPLE2D, 107, {.upsample = {{2, 3}, false}}, {U(2, 3, 2, 4)}},
    {"upsample2d bilinear", SN_OP_UPSAMPLE2D, 108, {.upsample = {{2, 3}, true}}, {U(2, 3, 2, 4)}},
    {"upsample2d_dx nearest",
     SN_OP_UPSAMPLE2D_DX,
     109,
     {.upsample = {{2, 2}, false}},
     {U(2, 4, 6, 17)}},
    {"upsample2d_dx bilinear",
     SN_OP_UPSAMPLE2D_DX,
     110,
     {.upsample = {{3, 2}, true}},
     {U(1, 6, 6, 5)}},
    {"binary add", SN_OP_BINARY, 111, BINARY(ADD, .act = {0}), {U(2, 3, 2, 20), U(2, 3, 2, 20)}},
    {"binary add relu",
     SN_OP_BINARY,
     112,
     BINARY(ADD, .act = RELU),
     {D(2, 3, 2, 5), U(2, 3, 2, 5)}},
    {"binary sub", SN_OP_BINARY, 113, BINARY(SUB, .act = {0}), {U(3, 7), U(3, 7)}},
    {"binary mul gate",
     SN_OP_BINARY,
     114,
     BINARY(MUL, .act = {0}),
     {U(2, 3, 2, 20), U(2, 1, 1, 20)}},
    {"binary mul vector", SN_OP_BINARY, 115, BINARY(MUL, .act = {0}), {U(2, 3, 2, 5), U(5)}},
    {"binary mul swapped",
     SN_OP_BINARY,
     116,
     BINARY(MUL, .act = {0}),
     {U(2, 1, 1, 5), U(2, 3, 2, 5)}},
    {"binary div", SN_OP_BINARY, 117, BINARY(DIV, .act = {0}), {U(2, 3, 4), P(2, 3, 4)}},
    {"binary div both broadcast",
     SN_OP_BINARY,
     118,
     BINARY(DIV, .act = {0}),
     {U(2, 1, 4, 1), P(3, 1, 5)}},
    {"binary max", SN_OP_BINARY, 119, BINARY(MAX, .act = {0}), {D(2, 2, 2, 5), U(2, 2, 2, 5)}},
    {"maximum_dx",
     SN_OP_MAXIMUM_DX,
     120,
     BINARY(MAX, .act = {0}),
     {D(2, 2, 2, 5), U(2, 2, 2, 5), U(2, 2, 2, 5)}},
    {"maximum_dx broadcast",
     SN_OP_MAXIMUM_DX,
     121,
     BINARY(MAX, .act = {0}),
     {D(2, 2, 2, 20), U(20), U(2, 2, 2, 20)}},
    {"reduce_to vector", SN_OP_REDUCE_TO, 122, SHAPE(20), {U(2, 3, 2, 20)}},
    {"reduce_to gate", SN_OP_REDUCE_TO, 123, SHAPE(-1, 1, 1, 5), {U(2, 3, 2, 5)}},
    {"reduce_to map", SN_OP_REDUCE_TO, 124, SHAPE(-1, 3, 2, 1), {U(2, 3, 2, 20)}},
    {"concat channels",
     SN_OP_CONCAT,
     125,
     {.slice = {.axis = 3}},
     {U(2, 2, 3, 5), U(2, 2, 3, 16), U(2, 2, 3, 3)}},
    {"concat aligned", SN_OP_CONCAT, 126, {.slice = {.axis = 3}}, {U(2, 2, 3, 16), U(2, 2, 3, 32)}},
    {"concat rows", SN_OP_CONCAT, 127, {.slice = {.axis = 1}}, {U(2, 2, 3, 5), U(2, 1, 3, 5)}},
    {"concat 2-D", SN_OP_CONCAT, 128, {.slice = {.axis = 1}}, {U(3, 4), U(3, 7)}},
    {"slice channels", SN_OP_SLICE, 129, {.slice = {3, 4, 9}}, {U(2, 2, 3, 20)}},
    {"slice rows", SN_OP_SLICE, 130, {.slice = {1, 1, 2}}, {U(2, 4, 3, 5)}},
    {"scalar add", SN_OP_SCALAR, 131, SCALAR(ADD, 0.7f, 0), {U(2, 3, 2, 17)}},
    {"scalar mul", SN_OP_SCALAR, 132, SCALAR(MUL, -1.3f, 0), {U(3, 7)}},
    {"scalar div", SN_OP_SCALAR, 133, SCALAR(DIV, 1.7f, 0), {U(3, 7)}},
    {"scalar sub", SN_OP_SCALAR, 134, SCALAR(SUB, 0.3f, 0), {U(3, 7)}},
    {"scalar rsub", SN_OP_SCALAR, 135, SCALAR(RSUB, 1.1f, 0), {U(3, 7)}},
    {"scalar rdiv", SN_OP_SCALAR, 136, SCALAR(RDIV, 2.3f, 0), {P(3, 7)}},
    {"scalar affine", SN_OP_SCALAR, 137, SCALAR(AFFINE, 1 / 127.5f, -1), {U(2, 3, 3, 3)}},
    {"dropout", SN_OP_DROPOUT, 138, {.dropout = {0.4f, 3, 0}}, {U(3, 4, 4, 20)}},
    {"dropout broadcast", SN_OP_DROPOUT, 139, {.dropout = {0.5f, 4, 6}}, {U(3, 3, 2, 17)}},
    {"reshape flatten", SN_OP_RESHAPE, 140, SHAPE(-1, 60), {U(2, 3, 4, 5)}},
    {"reshape flatten wide", SN_OP_RESHAPE, 141, SHAPE(-1, 80), {U(2, 2, 2, 20)}},
    {"reshape up", SN_OP_RESHAPE, 142, SHAPE(-1, 2, 3, 4), {U(2, 24)}},
    {"permute", SN_OP_PERMUTE, 143, {.shape = {.perm = {0, 3, 1, 2}}}, {U(2, 3, 2, 5)}},
    {"loss softmax classes",
     SN_OP_LOSS,
     144,
     LOSS(SOFTMAX_XENT, 0.1f),
     {W(4, 7), OF(CLASSES, SN_I32, 4), NONE}},
    {"loss softmax weighted", SN_OP_LOSS, 145, LOSS(SOFTMAX_XENT, 0), {W(4, 20), S(4, 20), P(4)}},
    {"loss sigmoid",
     SN_OP_LOSS,
     146,
     LOSS(SIGMOID_XENT, 0.2f),
     {W(4, 5), OF(BITS, SN_F32, 4, 5), P(4)}},
    {"loss sigmoid classes",
     SN_OP_LOSS,
     147,
     LOSS(SIGMOID_XENT, 0),
     {W(5, 1), OF(CLASSES, SN_I32, 5), NONE}},
    {"loss mse", SN_OP_LOSS, 148, LOSS(MSE, 0), {W(4, 3), U(4, 3), NONE}},
    {"loss mae", SN_OP_LOSS, 149, LOSS(MAE, 0), {D(4, 3), OF(BITS, SN_F32, 4, 3), P(4)}},
    {"loss huber", SN_OP_LOSS, 150, LOSS(HUBER, 0), {D(4, 5), OF(BITS, SN_F32, 4, 5), NONE}},
    {"loss_dx softmax classes",
     SN_OP_LOSS_DX,
     151,
     LOSS(SOFTMAX_XENT, 0.1f),
     {W(4, 17), OF(CLASSES, SN_I32, 4), P(4)}},
    {"loss_dx sigmoid",
     SN_OP_LOSS_DX,
     152,
     LOSS(SIGMOID_XENT, 0),
     {W(4, 5), OF(BITS, SN_F32, 4, 5), NONE}},
    {"loss_dx huber", SN_OP_LOSS_DX, 153, LOSS(HUBER, 0), {W(4, 5), U(4, 5), P(4)}},
    {"sum_squares", SN_OP_SUM_SQUARES, 154, {.update = {.penalty = 1}}, {U(9, 7), NONE}},
    {"sum_squares penalty",
     SN_OP_SUM_SQUARES,
     155,
     {.update = {.penalty = 0.01f}},
     {U(3, 3, 4, 5), P(1)}},
    {"update sgd",
     SN_OP_UPDATE,
     156,
     UPDATE(SGD, .weight_decay = 0.01f, .lr_scale = 2),
     {U(7, 9), U(7, 9), NONE, NONE, NONE, NONE}},
    {"update momentum clip value",
     SN_OP_UPDATE,
     157,
     UPDATE(SGD, .momentum = 0.9f, .nesterov = true, .clip_value = 0.4f, .l2 = 0.02f),
     {U(3, 3, 4, 5), U(3, 3, 4, 5), NONE, U(3, 3, 4, 5), NONE, NONE}},
    {"update clip norm",
     SN_OP_UPDATE,
     158,
     UPDATE(SGD, .momentum = 0.9f, .clip_norm = 1, .l2 = 0.1f),
     {U(65), U(65), NONE, U(65), NONE, NONE}},
    {"update clip global",
     SN_OP_UPDATE,
     159,
     UPDATE(SGD, .clip_global = 0.5f),
     {U(33), U(33), P(1), NONE, NONE, NONE}},
    {"update adam",
     SN_OP_UPDATE,
     160,
     UPDATE(ADAM, .l2 = 0.01f),
     {U(7, 9), U(7, 9), NONE, U(7, 9), P(7, 9), NONE}},
    {"update adamw",
     SN_OP_UPDATE,
     161,
     UPDATE(ADAMW, .weight_decay = 0.004f),
     {U(70), U(70), NONE, U(70), P(70), NONE}},
    {"update rmsprop",
     SN_OP_UPDATE,
     162,
     UPDATE(RMSPROP, .momentum = 0),
     {U(33), U(33), NONE, P(33), NONE, NONE}},
    {"update rmsprop all",
     SN_OP_UPDATE,
     163,
     UPDATE(RMSPROP, .momentum = 0.8f, .centered = true),
     {U(33), U(33), NONE, P(33), U(33), S(33)}},
    {"update adagrad",
     SN_OP_UPDATE,
     164,
     UPDATE(ADAGRAD, .momentum = 0),
     {U(33), U(33), NONE, P(33), NONE, NONE}},
    {"update lion",
     SN_OP_UPDATE,
     165,
     UPDATE(LION, .weight_decay = 0.1f),
     {U(33), U(33), NONE, U(33), NONE, NONE}},
    {"reorder", SN_OP_REORDER, 166, {.shape = {.dtype = SN_F32}}, {U(2, 3, 2, 20)}},
    {"cast to f16", SN_OP_CAST, 167, {.shape = {.dtype = SN_F16}}, {W(3, 20)}},
    {"cast from u8", SN_OP_CAST, 168, {.shape = {.dtype = SN_F32}}, {OF(BYTES, SN_U8, 2, 3, 3, 3)}},
};

#undef RANK
#undef OF
#undef U
#undef D
#undef P
#undef W
#undef S
#undef X
#undef NONE
#undef CONV
#undef IN_HW
#undef KERNEL
#undef RELU
#undef RELU6
#undef NORM
#undef POOL
#undef ACT
#undef BINARY
#undef SCALAR
#undef LOSS
#undef UPDATE
#undef SHAPE

/* ---- their numbers --------------------------------------------------------------------------- */

static inline int case_n_in(const op_case *c)
{
    int n = 0;
    while (n < (int)SN_LEN(c->in) && c->in[n].fill != END)
        n++;
    return n;
}

static inline sn_desc case_desc(const case_operand *o)
{
    return o->fill == ABSENT ? sn_desc_absent() : (sn_desc){o->dtype, sn_shape_of(o->rank, o->dim)};
}

/* The number of operands that ops.def lists. */
static inline int case_arity(sn_op_id op, bool out)
{
    static const char *const names[SN_N_OPS][2] = {
#define SN_OP(id, name, file, in, out) [SN_OP_##id] = {in, out},
#include "ops/ops.def"
#undef SN_OP
    };
    int n = 1;
    for (const char *at = names[op][out]; *at; at++)
        n += *at == ' ';
    return n;
}

/* 0..1 */
static inline double case_draw(uint64_t seed, uint64_t operand, uint64_t i)
{
    uint32_t r[4];
    sn_philox(r, sn_mix_u64(seed, operand), i, 0);
    return (double)r[0] / 4294967296.0;
}

static inline double case_number(const op_case *c, const case_operand *o, uint64_t operand,
                                 uint64_t i)
{
    double u = case_draw(c->seed, operand, i);
    int64_t last = c->in[0].rank > 0 ? c->in[0].dim[c->in[0].rank - 1] : 1;
    switch (o->fill) {
    case DISTINCT: /* 61 values, 17 apart */
        return ((double)((i * 17 + c->seed * 7) % 61) - 30) * 0.2 + 0.1;
    case POSITIVE:
        return 0.5 + u;
    case WIDE:
        return 8 * u - 4;
    case BITS:
        return u < 0.5;
    case SHARES:
        return 0.1 + u;
    case CLASSES:
        return floor(u * (double)(last == 1 ? 2 : last));
    case BYTES:
        return floor(u * 256);
    default:
        return 2 * u - 1;
    }
}

static inline void case_put(const sn_operand *to, uint64_t i, double v)
{
    if (to->desc.dtype == SN_I32)
        ((int32_t *)to->data)[i] = (int32_t)v;
    else if (to->desc.dtype == SN_U8)
        ((uint8_t *)to->data)[i] = (uint8_t)v;
    else
        ((float *)to->data)[i] = (float)v;
}

/* Runs the operator's forward by its plain C and copies output `from` of it to `to`. */
static inline void case_forward(tape *t, sn_op_id op, const sn_attrs *attrs, int n_in,
                                const sn_ref *in, int from, sn_ref to)
{
    tape *own = tape_new(tape_reference, NULL);
    sn_ref copy[SN_MAX_IN], out[SN_MAX_OUT];
    for (int i = 0; i < n_in; i++)
        copy[i] = in[i] == SN_NO_REF ? SN_NO_REF
                                     : tape_add(own, &t->value[in[i]].desc, t->value[in[i]].data);
    tape_op(own, op, attrs, n_in, copy, case_arity(op, true), NULL, out);
    assert_int_equal(tape_bytes(&t->value[to].desc), tape_bytes(&own->value[out[from]].desc));
    memcpy(t->value[to].data, own->value[out[from]].data, tape_bytes(&t->value[to].desc));
    tape_free(own);
}

/* Operands that only make sense together with others. */
static inline void case_derive(tape *t, const op_case *c, const sn_ref *in)
{
    if (c->op == SN_OP_BATCH_NORM_DX) {
        const sn_ref forward[] = {in[0], in[2], in[3]};
        case_forward(t, SN_OP_BATCH_NORM, &c->attrs, 3, forward, 1, in[4]);
        case_forward(t, SN_OP_BATCH_NORM, &c->attrs, 3, forward, 2, in[5]);
    } else if (c->op == SN_OP_GROUP_NORM_DX) {
        const sn_ref forward[] = {in[0], in[2], SN_NO_REF};
        case_forward(t, SN_OP_GROUP_NORM, &c->attrs, 3, forward, 1, in[3]);
        case_forward(t, SN_OP_GROUP_NORM, &c->attrs, 3, forward, 2, in[4]);
    } else if (c->op == SN_OP_GLOBAL_POOL_DX && in[1] != SN_NO_REF) {
        case_forward(t, SN_OP_GLOBAL_POOL, &c->attrs, 1, in, 0, in[1]);
    } else if (c->op == SN_OP_POOL2D_DX && in[1] != SN_NO_REF) {
        const case_operand x = {
            DISTINCT,
            SN_F32,
            4,
            {c->in[0].dim[0], c->attrs.pool.in_hw[0], c->attrs.pool.in_hw[1], c->in[0].dim[3]}};
        sn_desc desc = case_desc(&x);
        sn_ref ref = tape_add(t, &desc, NULL);
        for (uint64_t i = 0; i < (uint64_t)sn_shape_n(&desc.shape); i++)
            case_put(&t->value[ref], i, case_number(c, &x, 9, i));
        case_forward(t, SN_OP_POOL2D, &c->attrs, 1, &ref, 1, in[1]);
    }
}

static inline void case_fill(tape *t, const op_case *c, sn_ref in[SN_MAX_IN])
{
    const int n_in = case_n_in(c);
    for (int k = 0; k < n_in; k++) {
        sn_desc desc = case_desc(&c->in[k]);
        in[k] = tape_add(t, &desc, NULL);
        if (in[k] == SN_NO_REF)
            continue;
        const int64_t n = sn_shape_n(&desc.shape), last = desc.shape.dim[desc.shape.rank - 1];
        for (int64_t i = 0; i < n; i++)
            case_put(&t->value[in[k]], (uint64_t)i,
                     case_number(c, &c->in[k], (uint64_t)k, (uint64_t)i));
        for (int64_t i = 0; c->in[k].fill == SHARES && i < n; i += last) {
            float *row = tape_data(t, in[k]) + i, sum = 0;
            for (int64_t j = 0; j < last; j++)
                sum += row[j];
            for (int64_t j = 0; j < last; j++)
                row[j] /= sum;
        }
    }
    case_derive(t, c, in);
    t->step.n_batch = (double)c->in[0].dim[0];
}

/* Bit i: input i has a gradient. 0: the operator is a gradient or an update itself. */
static inline unsigned case_wanted(sn_op_id op)
{
    switch (op) {
    case SN_OP_CONV2D:
    case SN_OP_DENSE:
    case SN_OP_BATCH_NORM:
    case SN_OP_BATCH_NORM_APPLY:
    case SN_OP_GROUP_NORM:
    case SN_OP_CONCAT:
        return 7;
    case SN_OP_CONV2D_DX:
    case SN_OP_BIAS_ADD:
    case SN_OP_PRELU:
    case SN_OP_BINARY:
        return 3;
    case SN_OP_ACTIVATION:
    case SN_OP_SOFTMAX:
    case SN_OP_POOL2D:
    case SN_OP_GLOBAL_POOL:
    case SN_OP_PAD2D:
    case SN_OP_CROP2D:
    case SN_OP_UPSAMPLE2D:
    case SN_OP_REDUCE_TO:
    case SN_OP_SLICE:
    case SN_OP_SCALAR:
    case SN_OP_DROPOUT:
    case SN_OP_RESHAPE:
    case SN_OP_PERMUTE:
    case SN_OP_LOSS:
    case SN_OP_REORDER:
        return 1;
    default:
        return 0;
    }
}

#endif
