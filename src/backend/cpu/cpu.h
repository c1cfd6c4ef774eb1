/* SPDX-License-Identifier: Apache-2.0
 *
 * cpu.h - the backend that runs on the host's processor: oneDNN for convolutions and large
 * products, kernels of our own around it, the operators' plain C last.
 *
 *     extern const sn_backend sn_backend_cpu;      // a row of the registry
 *
 * SNUG_CPU_ISA=generic|avx2|avx512 in the environment lowers what the kernels use (tests).
 * Ownership: see backend.h.  Threads: a device is used from one thread; kernels run in OpenMP
 * teams of the device's size.
 */
#ifndef SN_BACKEND_CPU_CPU_H
#define SN_BACKEND_CPU_CPU_H

#include "backend/backend.h"

extern const sn_backend sn_backend_cpu;

#endif
