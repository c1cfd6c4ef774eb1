/* SPDX-License-Identifier: Apache-2.0
 *
 * null.h - the device that computes nothing: it stands for a card that is not here, so that a plan
 * can be made for it. Spec: SIZE[,tflops=F][,gbps=F][,reserve=SIZE].
 *
 *     sn_device_open(&d, "null:2GiB,tflops=1.8,gbps=106,reserve=225MiB", &options, err);
 *
 * Every tensor lies plain, kernels take no workspace, offsets are multiples of 128, a slab is at
 * most a quarter of the memory (as NVIDIA's OpenCL has it), there are two queues. Ownership: see
 * backend.h.  Threads: see backend.h.
 */
#ifndef SN_BACKEND_NULL_NULL_H
#define SN_BACKEND_NULL_NULL_H

#include "backend/backend.h"

extern const sn_backend sn_backend_null;

#endif
