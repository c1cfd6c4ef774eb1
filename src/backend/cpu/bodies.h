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

#include "backend/cpu/body_elementwise.h"

#include "backend/cpu/body_update.h"

#include "backend/cpu/body_dense.h"

#include "backend/cpu/body_pool.h"

#include "backend/cpu/body_conv.h"

#include "backend/cpu/body_winograd.h"

#define SN_CPU_BODIES                                                                              \
    .norm_forward = norm_forward, .norm_apply = norm_apply, .norm_backward = norm_backward,        \
    .act_forward = act_forward, .act_backward = act_backward, .binary_flat = binary_flat,          \
    .scalar_flat = scalar_flat, .binary_channels = binary_channels, .channel_sums = channel_sums,  \
    .plane_pool = plane_pool, .plane_pool_dx = plane_pool_dx, .update_flat = update_flat,          \
    .square_slices = square_slices, .dense_stream = dense_stream,                                  \
    .dense_dx_stream = dense_dx_stream, .dense_dw = dense_dw, .dense_panels = dense_panels,        \
    .dense_dx_panels = dense_dx_panels, .pool_forward = pool_forward,                              \
    .pool_backward = pool_backward, .drop_plain = drop_plain, .drop_blocked = drop_blocked,        \
    .first_tile = FIRST_TILE, .first_pack = first_pack, .first_forward = first_forward,            \
    .first_weights = first_weights, .first_reduce = first_reduce, .depth_data = depth_data,        \
    .wino_rows = WINO_ROWS, .wino_weights = wino_weights, .wino_forward = wino_forward,            \
    .wino_slices = wino_slices, .wino_finish = wino_finish

/* The table of the instruction set that VEC_ISA names; bodies.h is included after VEC_ISA. */
#define SN_CPU_TABLE(title)                                                                        \
    {                                                                                              \
        .name = (title), .width = VW, .isa = VEC_ISA, SN_CPU_BODIES                                \
    }

#endif
