/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_npy.c - headers of .npy: what is accepted lies within the file.
 */
#include "format/npy.h"
#include "fuzz.h"
#include "fuzz_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t live = sn_ledger_live_bytes();
    char path[64];
    int fd = fuzz_file(path, data, size);
    sn_npy a;
    sn_raw *raw;
    snug_data_options o = SNUG_DATA_OPTIONS_INIT;

    if (!sn_npy_read_header(&a, fd, path, NULL) &&
        a.offset + a.n * sn_raw_type_bytes(a.type) > size)
        abort();
    o.lenient = 1;
    if (!sn_npy_raw(&raw, path, &o, NULL))
        sn_raw_free(raw);
    o.labels_path = path; /* the same bytes as labels */
    if (!sn_npy_raw(&raw, path, &o, NULL))
        sn_raw_free(raw);
    close(fd);
    if (sn_ledger_live_bytes() != live)
        abort();
    return 0;
}
