/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_safetensors.c - what is accepted lies within the file and can be read.
 */
#include "format/safetensors.h"
#include "fuzz.h"
#include "fuzz_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t live = sn_ledger_live_bytes();
    char path[64];
    int fd = fuzz_file(path, data, size);
    sn_safetensors *f;

    if (!sn_safetensors_open(&f, path, NULL)) {
        for (size_t i = 0; i < sn_safetensors_n(f); i++) {
            const sn_safetensors_entry *e = sn_safetensors_entry_at(f, i);
            void *bytes = sn_alloc(SN_TAG_TEST, (size_t)e->bytes);
            if (e->offset + e->bytes > size || !bytes || sn_safetensors_read(f, e, bytes, NULL))
                abort();
            sn_free(bytes);
        }
        sn_safetensors_free(f);
    }
    close(fd);
    if (sn_ledger_live_bytes() != live)
        abort();
    return 0;
}
