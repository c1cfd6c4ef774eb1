/* SPDX-License-Identifier: Apache-2.0
 *
 * schedule.h - the defaults of a learning-rate schedule, for those who read its numbers.
 *
 *     snug_schedule s = options->schedule;
 *     sn_schedule_fill(&s);                   // factor, patience, min_delta are set
 *
 * Ownership: none.  Threads: pure function.
 */
#ifndef SN_TRAIN_SCHEDULE_H
#define SN_TRAIN_SCHEDULE_H

#include "snug/train.h"

/* What is 0, or no positive factor or min_delta, becomes the default of its kind. */
void sn_schedule_fill(snug_schedule *schedule);

#endif
