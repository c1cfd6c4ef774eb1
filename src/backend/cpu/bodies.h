/* SPDX-License-Identifier: Apache-2.0
 *
 * bodies.h - everything that is compiled once per instruction set, and the rows of the table.
 *
 * Included by simd_*.c only.  Ownership: none.  Threads: bodies of a team.
 */
#ifndef SN_BACKEND_CPU_BODIES_H
#define SN_BACKEND_CPU_BODIES_H

#include "backend/cpu/vec.h"

#include "backend/cpu/body_norm.h"

#define SN_CPU_BODIES                                                                              \
    .norm_forward = norm_forward, .norm_apply = norm_apply, .norm_backward = norm_backward

#endif
