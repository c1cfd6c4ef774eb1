/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_idx.c - IDX files, gzipped or not: what is accepted lies within the (expanded) file.
 */
#include <sys/stat.h>

#include "format/idx.h"
#include "fuzz.h"
#include "fuzz_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t live = sn_ledger_live_bytes();
    char path[64];
    int fd = fuzz_file(path, data, size), expanded;
    sn_idx head;
    struct stat st;

    if (!sn_idx_open(&expanded, &head, path, NULL)) {
        if (fstat(expanded, &st) || head.offset + head.n != (uint64_t)st.st_size)
            abort();
        close(expanded);
    }
    close(fd);
    if (sn_ledger_live_bytes() != live)
        abort();
    return 0;
}
