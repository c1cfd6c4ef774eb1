/* SPDX-License-Identifier: Apache-2.0
 *
 * device.h - the devices that a plan can be made for, and what they have.
 *
 *     snug_device_info info;
 *     if (snug_device_query(&info, "cpu", 0, &err)) ...
 *     printf("%s: %llu bytes free\n", info.name, (unsigned long long)info.free_bytes);
 *
 * A device is named by text: "cpu", or "null:2GiB,tflops=1.8,gbps=106,reserve=225MiB" for a card
 * that is not here (it plans and computes nothing).
 * Ownership: results are values; the tables are static.  Threads: reentrant.
 */
#ifndef SNUG_DEVICE_H
#define SNUG_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "snug/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct snug_device_info {
    char spec[96];           /* "cpu": what opens it */
    char name[96];           /* "cpu AMD EPYC 7763, 2 threads, AVX2" */
    uint64_t total_bytes;    /* of its memory */
    uint64_t free_bytes;     /* now, or less the stated reserve for a card that is not here */
    uint64_t reserve_bytes;  /* what was subtracted */
    uint64_t largest_bytes;  /* largest single allocation */
    int n_threads;           /* compute threads, 0: none of the host's */
    bool is_host;            /* its memory is the process' own */
    bool computes;           /* false: a device to plan for only */
    double flops;            /* a second, 0: not known */
    double bytes_per_second; /* 0: not known */
} snug_device_info;

/* What the device of this spec has. threads 0: as many as the process may use. SNUG_E_USAGE for a
 * bad spec, SNUG_E_DEVICE when there is no such device. */
SNUG_API snug_status snug_device_query(snug_device_info *out, const char *spec, int threads,
                                       snug_error *err);
/* The names before the colon, "cpu" and so on; static, *n of them. */
SNUG_API const char *const *snug_device_kinds(size_t *n);

/* A card to plan for: what its data sheet says. */
typedef struct snug_card {
    const char *name;       /* "GTX 950" */
    uint64_t bytes;         /* of its memory */
    double gbps, tflops;    /* 1e9 bytes a second, 1e12 float32 operations a second */
    uint64_t reserve_bytes; /* driver context and screen: what a program cannot have */
} snug_card;
/* The table, *n rows; static. */
SNUG_API const snug_card *snug_cards(size_t *n);
/* Text that opens a device standing for a card: card is a name of the table ("GTX 950", case and
 * "GeForce" do not matter) or a size ("2GB"). Writes "null:2GiB,tflops=..." to out.
 * SNUG_E_NOT_FOUND names the nearest card. */
SNUG_API snug_status snug_card_spec(char *out, size_t n, const char *card, snug_error *err);

#ifdef __cplusplus
}
#endif
#endif
