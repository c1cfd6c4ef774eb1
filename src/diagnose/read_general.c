/* SPDX-License-Identifier: Apache-2.0
 *
 * What any log has: progress, tracebacks, losses, the memory that a program reports about itself.
 */
#include "diagnose/state.h"

#include <string.h>

#include "diagnose/scan.h"

/* "step 5", "global step 5:", "Iteration 19/500" */
static void read_step(snug_diagnosis *d, const sn_line *line, const char *at)
{
    const char *p = at + strcspn(at, "0123456789");
    uint64_t n;
    if (p - at > 16 || !sn_scan_count(&p, &n))
        return;
    sn_fact_set(d, SN_FACT_LAST_STEP, n, line->number);
    sn_tell_raise(d, n ? SN_TELL_PROGRESS_BACK : SN_TELL_FIRST_STEP, line->number, line->text);
}

/* tqdm: " 45%|####5     | 450/1000 [00:12<00:15, 36.1it/s, loss=0.3]" */
static void read_tqdm(snug_diagnosis *d, const sn_line *line, const char *at)
{
    const char *p = at;
    while (p > line->text && p[-1] >= '0' && p[-1] <= '9')
        p--;
    uint64_t percent, done, of;
    if (!sn_scan_count(&p, &percent) || percent > 100)
        return;
    const char *bar = strchr(at + 2, '|');
    if (!bar)
        return;
    bar++;
    if (!sn_scan_count(&bar, &done) || *bar != '/')
        return;
    bar++;
    if (!sn_scan_count(&bar, &of))
        return;
    if (sn_scan_has(line->text, "Caching") || sn_scan_has(line->text, "Scanning") ||
        sn_scan_has(line->text, "Loading") || sn_scan_has(line->text, "Downloading"))
        return;
    sn_fact_set(d, SN_FACT_LAST_STEP, done, line->number);
    sn_tell_raise(d, done ? SN_TELL_PROGRESS_BACK : SN_TELL_FIRST_STEP, line->number, line->text);
}

/* Keras: " 12/500 [====>....] - ETA: 12s - loss: 0.35" and "12/500 ━━━━━━ 3s 12ms/step" */
static void read_keras_bar(snug_diagnosis *d, const sn_line *line, const char *at)
{
    const char *p = line->text;
    uint64_t done, of;
    SN_UNUSED(at);
    if (!sn_scan_count(&p, &done) || *p != '/')
        return;
    p++;
    if (!sn_scan_count(&p, &of) || !of)
        return;
    sn_fact_set(d, SN_FACT_LAST_STEP, done, line->number);
    sn_tell_raise(d, done ? SN_TELL_PROGRESS_BACK : SN_TELL_FIRST_STEP, line->number, line->text);
}

static void read_loss(snug_diagnosis *d, const sn_line *line, const char *at)
{
    const char *p = at + strcspn(at, ":=");
    p += *p ? 1 : 0;
    p += strspn(p, " ");
    if (sn_scan_fold(p, "nan") == p)
        sn_tell_raise(d, SN_TELL_NAN_LOSS, line->number, line->text);
    else if ((*p >= '0' && *p <= '9') || *p == '-' || *p == '.')
        sn_tell_raise(d, SN_TELL_LOSS_LINE, line->number, line->text);
}

/* A table has several bars in a line, a supervisor's prefix has one. */
static bool is_table(const char *text)
{
    const char *bar = strchr(text, '|');
    bar = bar ? strchr(bar + 1, '|') : NULL;
    return bar && strchr(bar + 1, '|');
}

/* Does the text between the label and the number say that this is no reading of memory in use? */
static bool is_other_talk(const char *text)
{
    static const char *const parts[] = {
        "llocat",     "capacity",      "total mem", "Total mem", "Tried",   " free",
        "imit",       "out of memory", "with ",     "optimized", "exceed",  "OOM",
        "available",  "nsufficient",   "growth",    "fraction",  "needed",  "require",
        "Usage     ", "shared",        "clock",     "kB, limit", "of size",
    };
    static const char *const readings[] = {"emory_allocated", "emory allocated", "llocated memory",
                                           "allocated:", "mem allocated"};
    for (size_t i = 0; i < SN_LEN(readings); i++)
        if (sn_scan_has(text, readings[i]) && !sn_scan_has(text, "Tried") &&
            !sn_scan_has(text, "capacity") && !is_table(text))
            return false;
    for (size_t i = 0; i < SN_LEN(parts); i++)
        if (sn_scan_has(text, parts[i]))
            return true;
    return false;
}

/* "start Current memory usage: 762.70 MB": a point of a series named by the words before it. */
static void read_memory(snug_diagnosis *d, const sn_line *line, const char *at)
{
    const char *p = at;
    while (*p && (*p < '0' || *p > '9') && p - at <= 44)
        p++;
    if (*p < '0' || *p > '9')
        return;
    const char *digits = p;
    uint64_t bytes;
    bool unit;
    if (!sn_scan_size(&p, &bytes, &unit))
        return;
    if (!unit) {
        double real;
        const char *q = digits;
        if (!sn_scan_real(&q, &real) || *q == '/' || *q == ':' || *q == '%')
            return;
        char named[48];
        size_t n = SN_MIN((size_t)(digits - at), sizeof named - 1);
        memcpy(named, at, n);
        named[n] = '\0';
        if (sn_scan_fold(named, "gb") || sn_scan_fold(named, "gib"))
            bytes = (uint64_t)(real * (double)SN_GIB);
        else if (sn_scan_fold(named, "mb") || sn_scan_fold(named, "mib") || real < 1e6)
            bytes = (uint64_t)(real * (double)SN_MIB);
    }
    if (bytes < SN_MIB)
        return;
    char key[512]; /* the words before the number, numbers in them made equal */
    size_t k = 0;
    const char *from = digits - line->text > 500 ? digits - 500 : line->text;
    for (const char *c = from; c < digits; c++) {
        bool number = (*c >= '0' && *c <= '9') || *c == '.' || *c == '-';
        char put = number ? '#' : *c;
        if ((put == '#' || put == ' ') && k && key[k - 1] == put)
            continue;
        key[k++] = put;
    }
    key[k] = '\0';
    const char *tail = k > 60 ? key + k - 60 : key;
    if (!sn_series_find(d, tail) && is_other_talk(line->text))
        return;
    sn_series_add(d, tail, bytes, line->number);
}

#define NO SN_FRAMEWORK_NONE
static const sn_pattern rows[] = {
    {"Traceback (most recent call last)", NULL, SN_TELL_TRACEBACK, NO, NULL, true},
    {"global step ", NULL, 0, NO, read_step, true},
    {" step ", NULL, 0, NO, read_step, true},
    {"Step: ", NULL, 0, NO, read_step, true},
    {"iteration ", NULL, 0, NO, read_step, true},
    {"%|    ", NULL, 0, NO, read_tqdm, true},
    {"%|####", NULL, 0, NO, read_tqdm, true},
    {"%|\xe2\x96\x88\xe2", NULL, 0, NO, read_tqdm, true},
    {" - ETA:", NULL, 0, NO, read_keras_bar, true},
    {" - loss:", NULL, 0, NO, read_keras_bar, true},
    {"loss: ", NULL, 0, NO, read_loss, true},
    {"loss = ", NULL, 0, NO, read_loss, true},
    {"Epoch ", NULL, SN_TELL_EPOCH_LINE, NO, NULL, true},
    {"Training model", NULL, SN_TELL_BUILD_MODEL, NO, NULL, true},
    {"Building model", NULL, SN_TELL_BUILD_MODEL, NO, NULL, true},
    {"Creating model", NULL, SN_TELL_BUILD_MODEL, NO, NULL, true},
    {"build_model", NULL, SN_TELL_BUILD_MODEL, NO, NULL, true},
    {"create_model", NULL, SN_TELL_BUILD_MODEL, NO, NULL, true},
    {"clear_session", NULL, SN_TELL_BUILD_MODEL, NO, NULL, true},
    {"Model: \"", NULL, SN_TELL_BUILD_MODEL, NO, NULL, true},
    {" trial ", NULL, SN_TELL_BUILD_MODEL, NO, NULL, true},
    {"Trial ", NULL, SN_TELL_BUILD_MODEL, NO, NULL, true},
    {" fold ", NULL, SN_TELL_BUILD_MODEL, NO, NULL, true},
    {"memory", NULL, 0, NO, read_memory, false},
    {"RAM usage", NULL, 0, NO, read_memory, false},
    {"RAM used", NULL, 0, NO, read_memory, false},
    {"used RAM", NULL, 0, NO, read_memory, false},
    {"VRAM: ", NULL, 0, NO, read_memory, false},
    {"VmRSS:", NULL, 0, NO, read_memory, false},
    {" rss: ", NULL, 0, NO, read_memory, false},
    {" rss= ", NULL, 0, NO, read_memory, false},
    {"rss_mb", NULL, 0, NO, read_memory, false},
    {"rss_gb", NULL, 0, NO, read_memory, false},
    {"RSS is", NULL, 0, NO, read_memory, false},
    {"max mem: ", NULL, 0, NO, read_memory, false},
    {"max_mem: ", NULL, 0, NO, read_memory, false},
    {"gpu_mem", NULL, 0, NO, read_memory, false},
    {"gpu mem", NULL, 0, NO, read_memory, false},
    {" mem: ", NULL, 0, NO, read_memory, false},
    {"Training finished", NULL, SN_TELL_FINISHED, NO, NULL, true},
    {"Training complete", NULL, SN_TELL_FINISHED, NO, NULL, true},
    {"epochs completed in", NULL, SN_TELL_FINISHED, NO, NULL, true},
};

const sn_pattern *sn_patterns_general(size_t *n)
{
    *n = SN_LEN(rows);
    return rows;
}
