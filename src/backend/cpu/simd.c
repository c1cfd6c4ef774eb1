/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/cpu/simd.h"

#include "base/host.h"

const sn_cpu_simd *sn_cpu_simd_best(void)
{
    sn_cpu_features f = sn_host_cpu();
    const char *wish = getenv("SNUG_CPU_ISA");
    int limit = 16;
    if (wish && sn_str_eq(wish, "avx2"))
        limit = 8;
    else if (wish && sn_str_eq(wish, "generic"))
        limit = 1;
#if defined(__x86_64__)
    if (limit >= 16 && f.avx512f && f.avx512bw && f.avx512vl)
        return &sn_cpu_simd_avx512;
    if (limit >= 8 && f.avx2 && f.fma)
        return &sn_cpu_simd_avx2;
#endif
    SN_UNUSED(f);
    SN_UNUSED(limit);
    return &sn_cpu_simd_generic;
}
