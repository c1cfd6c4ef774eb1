/* SPDX-License-Identifier: Apache-2.0
 *
 * The activations of one number. NaN stays NaN in every one of them. */
#include "ops/op.h"

#include <math.h>

static const char *const names[SN_N_ACTS] = {
    [SN_ACT_NONE] = "linear",
    [SN_ACT_RELU] = "relu",
    [SN_ACT_ELU] = "elu",
    [SN_ACT_GELU] = "gelu",
    [SN_ACT_GELU_TANH] = "gelu_tanh",
    [SN_ACT_SILU] = "silu",
    [SN_ACT_HARD_SILU] = "hard_silu",
    [SN_ACT_SIGMOID] = "sigmoid",
    [SN_ACT_HARD_SIGMOID] = "hard_sigmoid",
    [SN_ACT_TANH] = "tanh",
};

#define SQRT_HALF 0.70710678118654752440
#define RSQRT_2PI 0.39894228040143267794
#define SQRT_2_OVER_PI 0.79788456080286535588
#define GELU_CUBE 0.044715

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static float hard_sigmoid(float x)
{
    float t = x + 3.0f;
    t = t >= 6.0f ? 6.0f : t <= 0.0f ? 0.0f : t;
    return t / 6.0f;
}

static float relu(const sn_act_attrs *act, float x)
{
    if (act->max > 0 && x >= act->max)
        return act->max;
    if (x > act->threshold || isnan(x))
        return x;
    return act->alpha == 0 ? 0.0f : act->alpha * (x - act->threshold);
}

float sn_act_value(const sn_act_attrs *act, float x)
{
    double d = x;
    switch (act->kind) {
    case SN_ACT_RELU:
        return relu(act, x);
    case SN_ACT_ELU:
        return x > 0 ? x : act->alpha * (float)expm1(d);
    case SN_ACT_GELU:
        return (float)(0.5 * d * erfc(-d * SQRT_HALF));
    case SN_ACT_GELU_TANH:
        return (float)(0.5 * d * (1 + tanh(SQRT_2_OVER_PI * (d + GELU_CUBE * d * d * d))));
    case SN_ACT_SILU:
        return (float)(d * sigmoid(d));
    case SN_ACT_HARD_SILU:
        return x * hard_sigmoid(x);
    case SN_ACT_SIGMOID:
        return (float)sigmoid(d);
    case SN_ACT_HARD_SIGMOID:
        return hard_sigmoid(x);
    case SN_ACT_TANH:
        return (float)tanh(d);
    case SN_ACT_NONE:
    case SN_N_ACTS:
        break;
    }
    return x;
}

static double gelu_tanh_slope(double x)
{
    double t = tanh(SQRT_2_OVER_PI * (x + GELU_CUBE * x * x * x));
    double inner = SQRT_2_OVER_PI * (1 + 3 * GELU_CUBE * x * x);
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * inner;
}

float sn_act_slope(const sn_act_attrs *act, float saved)
{
    double d = saved, s;
    switch (act->kind) {
    case SN_ACT_RELU:
        if (act->max > 0 && saved >= act->max)
            return 0.0f;
        return saved > (sn_act_from_output(act) ? 0.0f : act->threshold) ? 1.0f : act->alpha;
    case SN_ACT_ELU:
        if (saved > 0)
            return 1.0f;
        return sn_act_from_output(act) ? saved + act->alpha : act->alpha * (float)exp(d);
    case SN_ACT_GELU:
        return (float)(0.5 * erfc(-d * SQRT_HALF) + d * RSQRT_2PI * exp(-0.5 * d * d));
    case SN_ACT_GELU_TANH:
        return (float)gelu_tanh_slope(d);
    case SN_ACT_SILU:
        s = sigmoid(d);
        return (float)(s * (1 + d * (1 - s)));
    case SN_ACT_HARD_SILU:
        return saved <= -3.0f ? 0.0f : saved >= 3.0f ? 1.0f : (float)((2 * d + 3) / 6);
    case SN_ACT_SIGMOID:
        return (float)(d * (1 - d));
    case SN_ACT_HARD_SIGMOID:
        return saved > 0 && saved < 1 ? 1.0f / 6.0f : 0.0f;
    case SN_ACT_TANH:
        return (float)(1 - d * d);
    case SN_ACT_NONE:
    case SN_N_ACTS:
        break;
    }
    return 1.0f;
}

bool sn_act_from_output(const sn_act_attrs *act)
{
    switch (act->kind) {
    case SN_ACT_NONE:
    case SN_ACT_SIGMOID:
    case SN_ACT_HARD_SIGMOID:
    case SN_ACT_TANH:
        return true;
    case SN_ACT_RELU:
        return act->alpha >= 0 && act->threshold == 0;
    case SN_ACT_ELU:
        return act->alpha >= 0;
    default:
        return false;
    }
}

const char *sn_act_name(sn_act kind)
{
    return (unsigned)kind < SN_N_ACTS ? names[kind] : "?";
}
