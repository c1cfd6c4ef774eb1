/* SPDX-License-Identifier: Apache-2.0
 *
 * options.c - optimizers and losses: texts, Keras' defaults, and the operators' attributes.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "plan/options.h"

static const char *const names[] = {
    [SNUG_SGD] = "sgd",         [SNUG_ADAM] = "adam",       [SNUG_ADAMW] = "adamw",
    [SNUG_RMSPROP] = "rmsprop", [SNUG_ADAGRAD] = "adagrad", [SNUG_LION] = "lion",
};

/* Which optimizers a parameter is for: bits of snug_optimizer_kind. */
#define OF(kind) (1u << (kind))
#define ADAMS (OF(SNUG_ADAM) | OF(SNUG_ADAMW))
#define ALL 0x3fu

static const struct {
    const char *name;
    size_t offset;
    bool is_flag;
    unsigned kinds;
    double lo, hi;
} parameters[] = {
#define REAL(name, member, kinds, lo, hi)                                                          \
    {                                                                                              \
        name, offsetof(snug_optimizer, member), false, kinds, lo, hi                               \
    }
#define FLAG(name, member, kinds)                                                                  \
    {                                                                                              \
        name, offsetof(snug_optimizer, member), true, kinds, 0, 1                                  \
    }
    REAL("lr", lr, ALL, 1e-12, 1e6),
    REAL("momentum", momentum, OF(SNUG_SGD) | OF(SNUG_RMSPROP), 0, 1),
    FLAG("nesterov", nesterov, OF(SNUG_SGD)),
    REAL("beta1", beta1, ADAMS | OF(SNUG_LION), 1e-9, 1),
    REAL("beta2", beta2, ADAMS | OF(SNUG_LION), 1e-9, 1),
    REAL("rho", rho, OF(SNUG_RMSPROP), 1e-9, 1),
    REAL("epsilon", epsilon, ADAMS | OF(SNUG_RMSPROP) | OF(SNUG_ADAGRAD), 1e-30, 1e6),
    FLAG("centered", centered, OF(SNUG_RMSPROP)),
    REAL("weight_decay", weight_decay, ALL, 0, 1e6),
    REAL("clip_value", clip_value, ALL, 0, 1e30),
    REAL("clip_norm", clip_norm, ALL, 0, 1e30),
    REAL("clip_global_norm", clip_global_norm, ALL, 0, 1e30),
};

const char *snug_optimizer_name(snug_optimizer_kind kind)
{
    return (int)kind >= 0 && (size_t)kind < SN_LEN(names) ? names[kind] : "?";
}

void snug_optimizer_fill(snug_optimizer *o)
{
    bool lion = o->kind == SNUG_LION;
    if (o->lr == 0)
        o->lr = o->kind == SNUG_SGD ? 0.01f : 0.001f;
    if (o->beta1 == 0)
        o->beta1 = 0.9f;
    if (o->beta2 == 0)
        o->beta2 = lion ? 0.99f : 0.999f;
    if (o->rho == 0)
        o->rho = 0.9f;
    if (o->epsilon == 0)
        o->epsilon = 1e-7f;
    if (o->weight_decay == 0 && o->kind == SNUG_ADAMW)
        o->weight_decay = 0.004f;
    if (o->weight_decay < 0)
        o->weight_decay = 0;
}

static snug_status unknown_parameter(const char *key, snug_optimizer_kind kind, snug_error *err)
{
    char known[128] = "";
    for (size_t i = 0, used = 0; i < SN_LEN(parameters) && used < sizeof known; i++)
        if (parameters[i].kinds & OF(kind))
            used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", used ? ", " : "",
                                     parameters[i].name);
    char shown[40];
    return sn_fail(err, SNUG_E_USAGE, "optimizer %s has no '%s'; it has: %s", names[kind],
                   sn_str_printable(shown, sizeof shown, key), known);
}

static snug_status set(snug_optimizer *o, char *part, snug_error *err)
{
    char *value = strchr(part, '='), shown[40];
    double number = 1;
    if (value)
        *value++ = '\0';
    for (size_t i = 0; i < SN_LEN(parameters); i++) {
        if (!sn_str_eq(part, parameters[i].name) || !(parameters[i].kinds & OF(o->kind)))
            continue;
        void *at = (char *)o + parameters[i].offset;
        if (parameters[i].is_flag) {
            bool on = !value || sn_str_eq(value, "true") || sn_str_eq(value, "1");
            if (!on && !sn_str_eq(value, "false") && !sn_str_eq(value, "0"))
                return sn_fail(err, SNUG_E_USAGE, "optimizer %s: %s=%s is neither true nor false",
                               names[o->kind], part, sn_str_printable(shown, sizeof shown, value));
            *(bool *)at = on;
            return SNUG_OK;
        }
        if (!value || !sn_parse_f64(value, parameters[i].lo, parameters[i].hi, &number))
            return sn_fail(err, SNUG_E_USAGE, "optimizer %s: %s=%s is no number in [%g, %g]",
                           names[o->kind], part,
                           value ? sn_str_printable(shown, sizeof shown, value) : "",
                           parameters[i].lo, parameters[i].hi);
        *(float *)at = (float)number;
        /* a decay of nothing, said aloud, is not the default */
        if (sn_str_eq(part, "weight_decay") && number == 0)
            o->weight_decay = -1;
        return SNUG_OK;
    }
    return unknown_parameter(part, o->kind, err);
}

snug_status snug_optimizer_parse(snug_optimizer *out, const char *text, snug_error *err)
{
    char copy[256], shown[64];
    *out = (snug_optimizer){0};
    if (!text || strlen(text) >= sizeof copy)
        return sn_fail(err, SNUG_E_USAGE, "an optimizer is named like sgd:lr=0.01,momentum=0.9");
    memcpy(copy, text, strlen(text) + 1);
    char *rest = strchr(copy, ':');
    if (rest)
        *rest++ = '\0';
    size_t kind = 0;
    while (kind < SN_LEN(names) && !sn_str_eq(copy, names[kind]))
        kind++;
    if (kind == SN_LEN(names)) {
        const char *nearest = sn_str_nearest(copy, names, SN_LEN(names));
        sn_str_printable(shown, sizeof shown, copy);
        return nearest ? sn_fail(err, SNUG_E_USAGE, "optimizer '%s' is not known; did you mean %s?",
                                 shown, nearest)
                       : sn_fail(err, SNUG_E_USAGE,
                                 "optimizer '%s' is not known; there are sgd, adam, adamw, "
                                 "rmsprop, adagrad, lion",
                                 shown);
    }
    out->kind = (snug_optimizer_kind)kind;
    for (char *part = rest, *next; part; part = next) {
        next = strchr(part, ',');
        if (next)
            *next++ = '\0';
        snug_status s = set(out, part, err);
        if (s)
            return s;
    }
    snug_status s = sn_optimizer_check(out, err);
    if (!s)
        snug_optimizer_fill(out);
    return s;
}

snug_status sn_optimizer_check(const snug_optimizer *o, snug_error *err)
{
    if ((int)o->kind < 0 || (size_t)o->kind >= SN_LEN(names))
        return sn_fail(err, SNUG_E_USAGE, "optimizer %d is none", (int)o->kind);
    const float numbers[] = {o->lr,      o->momentum,  o->beta1,      o->beta2,           o->rho,
                             o->epsilon, o->clip_norm, o->clip_value, o->clip_global_norm};
    for (size_t i = 0; i < SN_LEN(numbers); i++)
        if (!isfinite(numbers[i]) || numbers[i] < 0)
            return sn_fail(err, SNUG_E_USAGE, "optimizer %s: a parameter is negative or no number",
                           names[o->kind]);
    if (!isfinite(o->weight_decay))
        return sn_fail(err, SNUG_E_USAGE, "optimizer %s: the weight decay is no number",
                       names[o->kind]);
    if ((o->clip_norm > 0) + (o->clip_value > 0) + (o->clip_global_norm > 0) > 1)
        return sn_fail(err, SNUG_E_USAGE,
                       "one of clip_value, clip_norm and clip_global_norm at most");
    if (o->nesterov && o->momentum == 0)
        return sn_fail(err, SNUG_E_USAGE, "nesterov needs a momentum above 0");
    return SNUG_OK;
}

sn_update_attrs sn_plan_update_attrs(const snug_optimizer *o)
{
    static const sn_update_kind kinds[] = {
        [SNUG_SGD] = SN_UPDATE_SGD,         [SNUG_ADAM] = SN_UPDATE_ADAM,
        [SNUG_ADAMW] = SN_UPDATE_ADAMW,     [SNUG_RMSPROP] = SN_UPDATE_RMSPROP,
        [SNUG_ADAGRAD] = SN_UPDATE_ADAGRAD, [SNUG_LION] = SN_UPDATE_LION,
    };
    return (sn_update_attrs){.kind = kinds[o->kind],
                             .momentum = o->momentum,
                             .beta1 = o->beta1,
                             .beta2 = o->beta2,
                             .rho = o->rho,
                             .epsilon = o->epsilon,
                             .nesterov = o->nesterov,
                             .centered = o->centered,
                             .weight_decay = o->weight_decay,
                             .clip_value = o->clip_value,
                             .clip_norm = o->clip_norm,
                             .clip_global = o->clip_global_norm,
                             .lr_scale = 1};
}

sn_loss_attrs sn_plan_loss_attrs(const snug_loss *loss)
{
    static const sn_loss_kind kinds[] = {
        [SNUG_LOSS_AUTO] = SN_LOSS_SOFTMAX_XENT,
        [SNUG_LOSS_SOFTMAX] = SN_LOSS_SOFTMAX_XENT,
        [SNUG_LOSS_SIGMOID] = SN_LOSS_SIGMOID_XENT,
        [SNUG_LOSS_MSE] = SN_LOSS_MSE,
        [SNUG_LOSS_MAE] = SN_LOSS_MAE,
        [SNUG_LOSS_HUBER] = SN_LOSS_HUBER,
    };
    return (sn_loss_attrs){kinds[loss->kind], loss->smoothing, loss->delta};
}

snug_status sn_loss_resolve(snug_loss *loss, const snug_model *model, snug_error *err)
{
    if ((int)loss->kind < 0 || loss->kind > SNUG_LOSS_HUBER)
        return sn_fail(err, SNUG_E_USAGE, "loss %d is none", (int)loss->kind);
    if (!(loss->smoothing >= 0 && loss->smoothing < 1))
        return sn_fail(err, SNUG_E_USAGE, "label smoothing %g is not in [0, 1)",
                       (double)loss->smoothing);
    if (!(loss->delta >= 0) || !isfinite(loss->delta))
        return sn_fail(err, SNUG_E_USAGE, "Huber's delta %g is no number above 0",
                       (double)loss->delta);
    if (loss->kind == SNUG_LOSS_AUTO)
        loss->kind = snug_model_ends_in_sigmoid(model) ? SNUG_LOSS_SIGMOID : SNUG_LOSS_SOFTMAX;
    if (loss->delta == 0)
        loss->delta = 1;
    return SNUG_OK;
}
