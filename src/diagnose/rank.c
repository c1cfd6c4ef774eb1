/* SPDX-License-Identifier: Apache-2.0
 *
 * From rules and findings to causes.
 *
 * 1. Confidence above 0.5 only if a decisive rule or finding applied.
 * 2. A cause that several rules support gains a little, never more than decisive ones allow.
 * 3. There is always a cause: unknown, if nothing reaches FLOOR.
 */
#include <string.h>

#include "diagnose/rules.h"

static const double FLOOR = 0.25;

static void add_evidence(snug_diagnosis *d, sn_cause_result *result, const char *source,
                         uint64_t line, const char *text)
{
    for (size_t i = 0; i < result->evidence.n; i++)
        if (result->evidence.at[i].line == line && !strcmp(result->evidence.at[i].text, text) &&
            !strcmp(result->evidence.at[i].source, source))
            return;
    snug_evidence e = {source, line, text};
    if (result->evidence.n < 12 && !SN_VEC_PUSH(SN_TAG_DIAGNOSE, &result->evidence, e))
        d->failed = true;
}

static void add_tell(snug_diagnosis *d, sn_cause_result *result, sn_tell_id tell)
{
    const sn_mark *mark = &d->tells[tell];
    if (!mark->n || !mark->last.text)
        return;
    if (tell != SN_TELL_SMI) /* the first row is the first card's */
        add_evidence(d, result, mark->last.source, mark->last.line, mark->last.text);
    else
        add_evidence(d, result, mark->first.source, mark->first.line, mark->first.text);
    if (mark->n > 1 && mark->first.text &&
        (tell == SN_TELL_SHUFFLE || tell == SN_TELL_CACHE_PART || tell == SN_TELL_BUILD_MODEL))
        add_evidence(d, result, mark->first.source, mark->first.line, mark->first.text);
}

/* A memory series has no tell of its own: its first and last reading are the evidence. */
static void add_series(snug_diagnosis *d, sn_cause_result *result)
{
    const sn_series *s = sn_series_growing(d);
    char first[24], last[24];
    if (!s)
        return;
    sn_format_exact(first, sizeof first, s->first);
    sn_format_exact(last, sizeof last, s->last);
    const char *a = sn_arena_printf(&d->arena, "%s%s", s->key, first);
    const char *b = sn_arena_printf(&d->arena, "%s%s", s->key, last);
    if (!a || !b) {
        d->failed = true;
        return;
    }
    add_evidence(d, result, d->source, s->first_line, a);
    add_evidence(d, result, d->source, s->last_line, b);
}

static void support(sn_cause_result *result, double weight, bool decisive)
{
    snug_cause *c = &result->cause;
    double cap = decisive || c->decisive ? 0.95 : 0.5;
    double best = SN_MAX(weight, c->confidence);
    if (c->confidence > 0 && weight > 0)
        best += 0.01;
    if (!decisive && !c->decisive)
        best = SN_MIN(best, 0.5);
    c->confidence = SN_MIN(best, cap);
    c->decisive |= decisive;
}

static void apply_rules(snug_diagnosis *d)
{
    double best[SNUG_N_CAUSES] = {0};
    const sn_rule *rule;
    for (size_t i = 0; (rule = sn_rule_at(i)); i++) {
        if (!sn_rule_applies(d, rule))
            continue;
        if (i < SN_LEN(d->rule_fired))
            d->rule_fired[i] = true;
        sn_cause_result *result = &d->results[rule->cause];
        support(result, rule->weight, rule->decisive);
        for (size_t k = 0; k < SN_LEN(rule->evidence) && rule->evidence[k]; k++)
            add_tell(d, result, rule->evidence[k]);
        if (rule->cause == SNUG_CAUSE_LEAK_GRAPH || rule->cause == SNUG_CAUSE_LEAK_HISTORY)
            add_series(d, result);
        if (rule->weight > best[rule->cause]) {
            const char *text = sn_expand(d, rule->explanation);
            if (text) {
                result->explanation = text;
                best[rule->cause] = rule->weight;
            }
        }
    }
}

static void apply_findings(snug_diagnosis *d)
{
    for (size_t i = 0; i < d->findings.n; i++) {
        const sn_finding *f = &d->findings.at[i];
        sn_cause_result *result = &d->results[f->cause];
        if (f->only_fix)
            continue;
        bool stronger = f->confidence >= result->cause.confidence;
        support(result, f->decisive ? f->confidence : SN_MIN(f->confidence, 0.5), f->decisive);
        if (f->explanation[0] && (stronger || !result->explanation))
            result->explanation = f->explanation;
        else if (f->explanation[0] && strcmp(f->explanation, result->explanation) != 0) {
            const char *both =
                sn_arena_printf(&d->arena, "%s %s", f->explanation, result->explanation);
            if (both)
                result->explanation = both;
        }
        if (f->evidence.text)
            add_evidence(d, result, f->evidence.source, f->evidence.line, f->evidence.text);
    }
}

static void add_finding_fixes(snug_diagnosis *d, sn_cause_result *result)
{
    for (size_t i = 0; i < d->findings.n; i++) {
        const sn_finding *f = &d->findings.at[i];
        snug_cause_fix fix = {f->action, f->why};
        if (f->only_fix && f->cause == result->cause.id &&
            !SN_VEC_PUSH(SN_TAG_DIAGNOSE, &result->fixes, fix))
            d->failed = true;
    }
}

/* A decisive cause leaves the others less. */
static void settle(snug_diagnosis *d)
{
    double strongest = 0;
    snug_cause_id which = SNUG_CAUSE_UNKNOWN;
    for (size_t i = 0; i < SNUG_N_CAUSES; i++)
        if (d->results[i].cause.decisive && d->results[i].cause.confidence > strongest) {
            strongest = d->results[i].cause.confidence;
            which = (snug_cause_id)i;
        }
    for (size_t i = 0; i < SNUG_N_CAUSES; i++) {
        snug_cause *c = &d->results[i].cause;
        if (strongest > 0 && i != which)
            c->confidence = SN_MIN(c->confidence * (c->decisive ? 0.9 : 0.6), strongest - 0.05);
    }
}

static void put_unknown(snug_diagnosis *d)
{
    sn_cause_result *unknown = &d->results[SNUG_CAUSE_UNKNOWN];
    double best = 0;
    for (size_t i = 0; i < SNUG_CAUSE_UNKNOWN; i++)
        best = SN_MAX(best, d->results[i].cause.confidence);
    if (unknown->cause.confidence > 0 || best >= FLOOR)
        return;
    bool failed = sn_is_killed(d) || sn_is_device_oom(d);
    if (failed || best > 0)
        unknown->cause.confidence = SN_MIN(best + 0.05, 0.3);
    if (failed) {
        unknown->explanation = "Something failed, but this text does not say why: the lines that "
                               "would decide are not in it.";
    } else {
        unknown->explanation = "Nothing in this text says that memory ran out.";
    }
}

static int compare(const snug_cause *a, const snug_cause *b)
{
    if (a->confidence != b->confidence)
        return a->confidence < b->confidence ? 1 : -1;
    return (int)a->id - (int)b->id;
}

void sn_rank(snug_diagnosis *d)
{
    for (size_t i = 0; i < SNUG_N_CAUSES; i++) {
        d->results[i].cause.id = (snug_cause_id)i;
        d->results[i].cause.name = snug_cause_name((snug_cause_id)i);
    }
    apply_rules(d);
    apply_findings(d);
    settle(d);
    put_unknown(d);
    for (size_t i = 0; i < SNUG_N_CAUSES; i++) {
        sn_cause_result *result = &d->results[i];
        bool wanted =
            result->cause.confidence >= 0.1 || (i == SNUG_CAUSE_UNKNOWN && result->explanation);
        if (!wanted)
            continue;
        if (!result->explanation) /* a number that the rules' words need is not in the text */
            result->explanation = snug_cause_words((snug_cause_id)i);
        add_finding_fixes(d, result);
        sn_fixes_add(d, result);
        result->cause.explanation = result->explanation;
        result->cause.evidence = result->evidence.at;
        result->cause.n_evidence = result->evidence.n;
        result->cause.fixes = result->fixes.at;
        result->cause.n_fixes = result->fixes.n;
        result->cause.check = sn_check_for(d, (snug_cause_id)i);
        if (!SN_VEC_PUSH(SN_TAG_DIAGNOSE, &d->causes, result->cause))
            d->failed = true;
    }
    for (size_t i = 1; i < d->causes.n; i++) /* a handful: insertion keeps it stable */
        for (size_t k = i; k > 0 && compare(&d->causes.at[k], &d->causes.at[k - 1]) < 0; k--) {
            snug_cause swap = d->causes.at[k];
            d->causes.at[k] = d->causes.at[k - 1];
            d->causes.at[k - 1] = swap;
        }
}
