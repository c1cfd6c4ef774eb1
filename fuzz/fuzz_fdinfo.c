/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_fdinfo.c - the reader of /proc/P/fdinfo/N: any bytes, in a block of exactly their size.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "gpus/gpus.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sn_gpus_fdinfo info;
    uint64_t card, host;
    bool has_vram;
    sn_gpus_fdinfo_parse(&info, (const char *)data, size);
    sn_gpus_fdinfo_bytes(&info, &card, &host, &has_vram);
    if (info.n_regions > SN_FDINFO_REGIONS || (!has_vram && card != host))
        abort();
    if (!memchr(info.driver, 0, sizeof info.driver) ||
        !memchr(info.address, 0, sizeof info.address))
        abort();
    char text[512];
    size_t length = size < sizeof text - 1 ? size : sizeof text - 1;
    if (length)
        memcpy(text, data, length);
    text[length] = '\0';
    sn_gpus_proc proc;
    memset(&proc, 0, sizeof proc);
    if (sn_gpus_stat_parse(&proc, text) && !memchr(proc.comm, 0, sizeof proc.comm))
        abort();
    return 0;
}
