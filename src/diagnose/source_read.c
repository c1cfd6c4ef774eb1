/* SPDX-License-Identifier: Apache-2.0
 *
 * source_read.c - the findings of a source scan as causes of a diagnosis.
 */
#include <stdio.h>
#include <string.h>

#include "diagnose/source.h"

static const struct {
    bool decisive;
    const char *action, *why;
} advice[] = {
#define SN_TRAP_ADVICE(id, cause, confidence, decisive, action, why) {decisive, action, why},
    SN_TRAP_LIST(SN_TRAP_ADVICE)
#undef SN_TRAP_ADVICE
};

/* Copies line number `line` of text, without its indentation. */
static void line_of(char *out, size_t n, const char *text, size_t len, uint32_t line)
{
    const char *p = text, *end = text + len;
    for (uint32_t i = 1; i < line && p; i++) {
        p = memchr(p, '\n', (size_t)(end - p));
        p = p ? p + 1 : NULL;
    }
    out[0] = 0;
    if (!p)
        return;
    while (p < end && (*p == ' ' || *p == '\t'))
        p++;
    size_t k = 0;
    while (p + k < end && p[k] != '\n' && p[k] != '\r')
        k++;
    snprintf(out, n, "%.*s", (int)SN_MIN(k, n - 1), p);
}

/* Which place a line of the concatenation belongs to; NULL: the source itself. */
static const sn_source_place *place_of(const sn_source_place *places, size_t n, uint32_t line)
{
    const sn_source_place *found = NULL;
    for (size_t i = 0; i < n && places[i].first_line <= line; i++)
        found = &places[i];
    return found;
}

static void add_finding(snug_diagnosis *d, const sn_source_finding *f, const char *name,
                        const char *text, size_t n, const sn_source_place *places, size_t n_places)
{
    char line[SN_DIAGNOSE_TEXT], words[640];
    const sn_source_place *at = place_of(places, n_places, f->line);
    const sn_source_place *from = place_of(places, n_places, f->other_line);
    snug_cause_id cause = sn_trap_cause(f->trap);
    uint32_t first = at ? at->first_line : 1;
    line_of(line, sizeof line, text, n, f->line);
    if (f->other_line && from && from != at)
        snprintf(words, sizeof words, "%s (see also %s, line %u)", f->explanation, from->name,
                 f->other_line - from->first_line + 1);
    else if (f->other_line)
        snprintf(words, sizeof words, "%s (see also line %u)", f->explanation,
                 f->other_line - first + 1);
    else
        snprintf(words, sizeof words, "%s", f->explanation);
    if (!sn_diagnosis_source(d, at ? at->name : name))
        return;
    sn_finding_add(d, cause, f->confidence, advice[f->trap].decisive, words, f->line - first + 1,
                   line);
    sn_finding_fix(d, cause, advice[f->trap].action, advice[f->trap].why);
}

snug_status sn_source_read(snug_diagnosis *d, const char *name, const char *text, size_t n,
                           const sn_source_place *places, size_t n_places, snug_error *err)
{
    sn_arena arena;
    sn_source_report report;
    sn_arena_init(&arena, SN_TAG_DIAGNOSE);
    snug_status s = sn_source_scan(&report, &arena, text, n, err);
    if (!s) {
        if (report.torch)
            sn_framework_set(d, SN_FRAMEWORK_PYTORCH, "pytorch");
        else if (report.tensorflow)
            sn_framework_set(d, SN_FRAMEWORK_TENSORFLOW, "tensorflow");
        for (size_t i = 0; i < report.n; i++)
            add_finding(d, &report.at[i], name, text, n, places, n_places);
    }
    sn_arena_deinit(&arena);
    return s;
}
