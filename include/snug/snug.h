/* SPDX-License-Identifier: Apache-2.0
 *
 * snug.h - all of libsnug: trains neural networks in the memory you have.
 *
 *     #include <snug/snug.h>                    // cc train.c $(pkg-config --cflags --libs snug)
 *
 * Ownership: as each header says.  Threads: as each header says.
 */
#ifndef SNUG_SNUG_H
#define SNUG_SNUG_H

#include "snug/data.h"
#include "snug/device.h"
#include "snug/diagnose.h"
#include "snug/error.h"
#include "snug/gpus.h"
#include "snug/model.h"
#include "snug/plan.h"
#include "snug/session.h"
#include "snug/train.h"

#ifdef __cplusplus
extern "C" {
#endif

/* "0.1.0", of the library that is running. Static storage. */
SNUG_API const char *snug_version(void);

#ifdef __cplusplus
}
#endif
#endif
