/* SPDX-License-Identifier: Apache-2.0
 *
 * half.h - IEEE binary16 and bfloat16 against float32, round to nearest even, NaN kept (quiet),
 * denormals kept.
 *
 * Ownership: none.  Threads: pure functions.
 */
#ifndef SN_BASE_HALF_H
#define SN_BASE_HALF_H

#include "base/base.h"

uint16_t sn_f32_to_f16(float value);
float sn_f16_to_f32(uint16_t bits);
uint16_t sn_f32_to_bf16(float value);
float sn_bf16_to_f32(uint16_t bits);

#endif
