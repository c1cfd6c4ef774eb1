/* SPDX-License-Identifier: Apache-2.0
 *
 * torture.h - the backend that keeps plans honest (tests only, not in libsnug): the operators'
 * plain C, run so that whatever a plan gets wrong shows in the numbers.
 *
 *  - slabs are small (1 MiB unless the spec says otherwise), each between guard bytes;
 *  - a view is no pointer: each operand is copied into a guarded buffer of its own, and results are
 *    copied back; inputs that a kernel changed, or guards that it touched, fail the run;
 *  - instructions of the two queues run in a random order that the waits allow, by the seed;
 *  - NaN is written over a temporary before its first use and after its last one, and over scratch;
 *  - with layouts=1 convolutions want channels in blocks of 8 and weights in layouts of their own,
 *    another one for backward, so that reorders are there to get wrong.
 *
 *     sn_backend_torture.open(&d, "slab=1MiB,layouts=1", &(sn_device_options){.seed = 7}, err);
 *
 * Ownership: see backend.h.  Threads: see backend.h.
 */
#ifndef SN_BACKEND_TORTURE_TORTURE_H
#define SN_BACKEND_TORTURE_TORTURE_H

#include "backend/backend.h"

extern const sn_backend sn_backend_torture;

#endif
