/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/cpu/simd.h"

#include "base/host.h"

static const sn_cpu_simd generic = {"baseline", 8, 1};
static const sn_cpu_simd avx2 = {"AVX2", 8, 8};
static const sn_cpu_simd avx512 = {"AVX-512", 16, 16};

const sn_cpu_simd *sn_cpu_simd_best(void)
{
    sn_cpu_features f = sn_host_cpu();
    const char *wish = getenv("SNUG_CPU_ISA");
    int limit = 16;
    if (wish && sn_str_eq(wish, "avx2"))
        limit = 8;
    else if (wish && sn_str_eq(wish, "generic"))
        limit = 1;
    if (limit >= 16 && f.avx512f && f.avx512bw && f.avx512vl)
        return &avx512;
    if (limit >= 8 && f.avx2 && f.fma)
        return &avx2;
    return &generic;
}
