/* SPDX-License-Identifier: Apache-2.0
 *
 * advise.h - what would make a plan fit: variants of the model and the settings, each planned.
 *
 *     snug_plan_advise(plan, &options, err);          // snug/plan.h: the room's one entrance
 *
 * Ownership: fixes belong to the plan.  Threads: one at a time.
 */
#ifndef SN_ADVISE_ADVISE_H
#define SN_ADVISE_ADVISE_H

#include "plan/plan.h"

#endif
