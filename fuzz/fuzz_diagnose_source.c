/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_diagnose_source.c - Python that nobody wrote: the parser and the scan end, and every finding
 * stands on a line that there is.
 */
#include <stdlib.h>
#include <string.h>

#include "diagnose/source.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t before = sn_ledger_live_bytes();
    sn_arena arena;
    sn_source_report report;
    size_t n_lines = 1;
    for (size_t i = 0; i < size; i++)
        n_lines += data[i] == '\n';
    sn_arena_init(&arena, SN_TAG_TEST);
    if (sn_source_scan(&report, &arena, (const char *)data, size, NULL))
        abort();
    for (size_t i = 0; i < report.n; i++)
        if (!report.at[i].line || report.at[i].line > n_lines ||
            report.at[i].other_line > n_lines || !strlen(report.at[i].explanation))
            abort();
    sn_arena_deinit(&arena);
    if (sn_ledger_live_bytes() != before)
        abort();
    return 0;
}
