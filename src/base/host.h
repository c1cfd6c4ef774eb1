/* SPDX-License-Identifier: Apache-2.0
 *
 * host.h - what the machine under us is and has: processor features, cores, memory of the machine,
 * of the control group and of this process.
 *
 * Ownership: none.  Threads: reentrant.
 */
#ifndef SN_BASE_HOST_H
#define SN_BASE_HOST_H

#include "base/base.h"

typedef struct sn_cpu_features {
    bool avx2, fma, f16c, avx512f, avx512bw, avx512vl, avx512_bf16;
} sn_cpu_features;
/* Read at run time, the operating system's support for the registers included. */
sn_cpu_features sn_host_cpu(void);
/* "AMD EPYC 7763 64-Core Processor"; "unknown processor" if it does not say. Returns out. */
char *sn_host_cpu_name(char *out, size_t n);
/* Processors that this process may run on (affinity and control group quota), at least 1. */
int sn_host_n_cpus(void);

typedef struct sn_host_memory {
    uint64_t total_bytes;     /* the machine's, or the control group's limit if that is smaller */
    uint64_t available_bytes; /* what can be had now without swapping, within the same limit */
} sn_host_memory;
snug_status sn_host_memory_now(sn_host_memory *out, snug_error *err);
/* The same with every file taken from below root ("" is this machine), for a fake /proc and /sys.
 */
snug_status sn_host_memory_at(sn_host_memory *out, const char *root, snug_error *err);
/* n processors, lowered to the control group's quota as the files below root state it. */
int sn_host_limit_cpus_at(int n, const char *root);
/* This process: VmHWM and VmRSS of /proc/self/status, in bytes. */
snug_status sn_host_process_peak(uint64_t *bytes, snug_error *err);
snug_status sn_host_process_resident(uint64_t *bytes, snug_error *err);

#endif
