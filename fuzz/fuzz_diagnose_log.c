/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_diagnose_log.c - the reader of text logs: any bytes, in one piece and in pieces whose sizes
 * come from the input; both must give the same report, and the report must keep its promises.
 */
#include <stdlib.h>
#include <string.h>

#include "base/ledger.h"
#include "fuzz.h"
#include "snug/diagnose.h"

static snug_diagnosis *read_log(const uint8_t *data, size_t size, bool pieces)
{
    snug_error err = SNUG_ERROR_INIT;
    snug_diagnosis *d;
    if (snug_diagnosis_new(&d, NULL, &err))
        abort();
    for (size_t i = 0, n; i < size; i += n) {
        n = pieces ? (size_t)data[i] % 61 + 1 : size;
        if (n > size - i)
            n = size - i;
        if (snug_diagnosis_feed(d, "log", data + i, n, &err))
            abort();
    }
    if (snug_diagnosis_finish(d, &err))
        abort();
    return d;
}

/* One line between braces: whatever the log holds, the report is well formed. */
static const char *report(snug_diagnosis *d)
{
    snug_error err = SNUG_ERROR_INIT;
    const char *text;
    if (snug_diagnosis_json(d, &text, &err))
        abort();
    size_t n = strlen(text);
    if (n < 2 || text[0] != '{' || text[n - 1] != '}' || strpbrk(text, "\n\r\t\x1b"))
        abort();
    return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t before = sn_ledger_live_bytes();
    snug_diagnosis *whole = read_log(data, size, false), *parts = read_log(data, size, true);
    size_t n = snug_diagnosis_n_causes(whole);
    if (n == 0 || strcmp(report(whole), report(parts)) != 0)
        abort();
    for (size_t i = 0; i < n; i++) {
        const snug_cause *c = snug_diagnosis_cause(whole, i);
        if (c->confidence < 0 || c->confidence > 1 || (c->confidence > 0.5 && !c->decisive))
            abort();
        if (i && c->confidence > snug_diagnosis_cause(whole, i - 1)->confidence)
            abort();
        if (!c->explanation[0])
            abort();
    }
    snug_diagnosis_free(whole);
    snug_diagnosis_free(parts);
    if (sn_ledger_live_bytes() != before)
        abort();
    return 0;
}
