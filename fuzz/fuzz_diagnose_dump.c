/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_diagnose_dump.c - allocator dumps, TensorFlow's and PyTorch's, by whichever reader the first
 * bytes ask for, and by both.
 */
#include <stdlib.h>

#include "diagnose/readers.h"
#include "fuzz.h"

typedef snug_status reader(snug_diagnosis *, const char *, const char *, size_t, snug_error *);

static snug_status bfc(snug_diagnosis *d, const char *name, const char *bytes, size_t n,
                       snug_error *err)
{
    return sn_bfc_dump_read(d, name, bytes, n, err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t before = sn_ledger_live_bytes();
    static reader *const readers[] = {bfc, sn_snapshot_read};
    sn_reader_for("x", data, size);
    for (size_t i = 0; i < SN_LEN(readers); i++) {
        snug_diagnosis *d;
        if (snug_diagnosis_new(&d, NULL, NULL))
            abort();
        snug_status s = readers[i](d, "x", (const char *)data, size, NULL);
        if ((s != SNUG_OK && s != SNUG_E_INPUT) || snug_diagnosis_finish(d, NULL))
            abort();
        snug_diagnosis_free(d);
    }
    if (sn_ledger_live_bytes() != before)
        abort();
    return 0;
}
