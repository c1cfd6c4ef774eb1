/* SPDX-License-Identifier: Apache-2.0
 *
 * batched.h - which operands of an instruction have the batch as their outermost dimension: the
 * ones that are shorter when a program runs on a prefix of its batch (a weight may have as many
 * rows).
 *
 *     uint32_t mask = sn_batched_operands(instr, program->batch);
 *     if (mask & SN_BATCHED_IN(0) && desc.shape.dim[0] == program->batch) desc.shape.dim[0] =
 * batch;
 *
 * Ownership: none.  Threads: pure functions.
 */
#ifndef SN_BACKEND_BATCHED_H
#define SN_BACKEND_BATCHED_H

#include "backend/program.h"

#define SN_BATCHED_IN(i) (1u << (i))
#define SN_BATCHED_OUT(i) (1u << (16 + (i)))

uint32_t sn_batched_operands(const sn_instr *instr, int64_t batch);

#endif
