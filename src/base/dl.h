/* SPDX-License-Identifier: Apache-2.0
 *
 * dl.h - shared libraries that may be absent (NVML, OpenCL, CUDA).
 *
 *     sn_dl *dl;
 *     if (!sn_dl_open(&dl, "libnvidia-ml.so.1", err)) init = sn_dl_symbol(dl, "nvmlInit_v2");
 *
 * Ownership: sn_dl_free closes the library.  Threads: one at a time.
 */
#ifndef SN_BASE_DL_H
#define SN_BASE_DL_H

#include "base/base.h"

typedef struct sn_dl sn_dl;
/* SNUG_E_NOT_FOUND with the loader's own words when it cannot be opened. */
snug_status sn_dl_open(sn_dl **out, const char *name, snug_error *err);
/* NULL when there is no such symbol. */
void *sn_dl_symbol(sn_dl *dl, const char *name);
void sn_dl_free(sn_dl *dl);

#endif
