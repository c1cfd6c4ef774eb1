/* SPDX-License-Identifier: Apache-2.0
 *
 * schedule.c - learning rates over a run (Keras' CosineDecay with warm-up, ExponentialDecay,
 * step decay, ReduceLROnPlateau).
 */
#include "train/schedule.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"

static const struct {
    const char *name;
    snug_schedule_kind kind;
    const char *keys;
} kinds[] = {{"constant", SNUG_SCHEDULE_CONSTANT, "warmup"},
             {"cosine", SNUG_SCHEDULE_COSINE, "warmup"},
             {"step", SNUG_SCHEDULE_STEP, "warmup, every, factor"},
             {"exponential", SNUG_SCHEDULE_EXPONENTIAL, "warmup, factor"},
             {"plateau", SNUG_SCHEDULE_PLATEAU, "warmup, factor, patience, min_delta, min_lr"}};

void sn_schedule_fill(snug_schedule *s)
{
    if (!(s->factor > 0)) {
        s->factor = s->kind == SNUG_SCHEDULE_EXPONENTIAL ? .95 : .1;
    }
    s->patience = s->patience ? s->patience : 5;
    s->min_delta = s->min_delta > 0 ? s->min_delta : 1e-4;
}

static bool set_key(snug_schedule *s, const char *keys, const char *key, const char *value)
{
    if (!strstr(keys, key)) {
        return false;
    }
    if (sn_str_eq(key, "warmup")) {
        return sn_parse_f64(value, 0, 1, &s->warmup);
    }
    if (sn_str_eq(key, "factor")) {
        return sn_parse_f64(value, 1e-9, 1, &s->factor);
    }
    if (sn_str_eq(key, "every")) {
        return sn_parse_i64(value, 1, INT32_MAX, &s->every);
    }
    if (sn_str_eq(key, "patience")) {
        return sn_parse_i64(value, 1, INT32_MAX, &s->patience);
    }
    if (sn_str_eq(key, "min_delta")) {
        return sn_parse_f64(value, 0, 1e9, &s->min_delta);
    }
    return sn_str_eq(key, "min_lr") && sn_parse_f64(value, 0, 1e9, &s->min_lr);
}

snug_status snug_schedule_parse(snug_schedule *out, const char *text, snug_error *err)
{
    *out = (snug_schedule){0};
    size_t name = strcspn(text, ":"), row = 0;
    while (row < SN_LEN(kinds) &&
           (strlen(kinds[row].name) != name || memcmp(kinds[row].name, text, name) != 0)) {
        row++;
    }
    if (row == SN_LEN(kinds)) {
        return sn_fail(err, SNUG_E_USAGE,
                       "'%.*s' is no schedule: there are constant, cosine, step, exponential and "
                       "plateau",
                       (int)SN_MIN(name, 40), text);
    }
    out->kind = kinds[row].kind;
    const char *at = text + name + (text[name] == ':');
    while (*at) {
        char key[24] = "", value[32] = "";
        size_t k = strcspn(at, "=,"), v = at[k] == '=' ? strcspn(at + k + 1, ",") : 0;
        if (k < sizeof key && v < sizeof value) {
            snprintf(key, sizeof key, "%.*s", (int)k, at);
            snprintf(value, sizeof value, "%.*s", (int)v, at[k] == '=' ? at + k + 1 : "");
        }
        if (!key[0] || !value[0] || !set_key(out, kinds[row].keys, key, value)) {
            return sn_fail(err, SNUG_E_USAGE, "schedule %s: '%.40s' is not one of %s with a number",
                           kinds[row].name, at, kinds[row].keys);
        }
        at += k + 1 + v;
        at += *at == ',';
    }
    sn_schedule_fill(out);
    return SNUG_OK;
}

double snug_schedule_factor(const snug_schedule *schedule, uint64_t step, uint64_t n_steps,
                            uint64_t steps_per_epoch)
{
    snug_schedule s = *schedule;
    sn_schedule_fill(&s);
    n_steps = SN_MAX(n_steps, 1);
    steps_per_epoch = SN_MAX(steps_per_epoch, 1);
    uint64_t warm = (uint64_t)(s.warmup * (double)n_steps + .5);
    if (step < warm) {
        return (double)(step + 1) / (double)warm;
    }
    double epoch = (double)step / (double)steps_per_epoch;
    switch (s.kind) {
    case SNUG_SCHEDULE_COSINE: {
        double at = (double)(step - warm) / (double)SN_MAX(n_steps - warm, 1);
        return .5 * (1 + cos(3.14159265358979323846 * SN_MIN(at, 1)));
    }
    case SNUG_SCHEDULE_STEP: {
        double every = s.every ? (double)s.every
                               : SN_MAX(1, ceil((double)n_steps / (double)steps_per_epoch / 3));
        return pow(s.factor, floor(epoch / every));
    }
    case SNUG_SCHEDULE_EXPONENTIAL:
        return pow(s.factor, epoch);
    default:
        return 1;
    }
}
