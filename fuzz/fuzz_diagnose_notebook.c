/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_diagnose_notebook.c - notebooks: read, or refused as what they are.
 */
#include <stdlib.h>

#include "diagnose/readers.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t before = sn_ledger_live_bytes();
    snug_diagnosis *d;
    if (snug_diagnosis_new(&d, NULL, NULL))
        abort();
    snug_status s = sn_notebook_read(d, "a.ipynb", (const char *)data, size, NULL);
    if (s != SNUG_OK && s != SNUG_E_INPUT)
        abort();
    if (snug_diagnosis_finish(d, NULL) || !snug_diagnosis_cause(d, 0))
        abort();
    snug_diagnosis_free(d);
    if (sn_ledger_live_bytes() != before)
        abort();
    return 0;
}
