/* SPDX-License-Identifier: Apache-2.0
 *
 * diagnose/rules.h - questions that several rule tables ask. They are asked at finish, after the
 * facts that follow from others are set.
 *
 *     static bool full(const snug_diagnosis *d) { return sn_card_is_ours(d) && !sn_is_killed(d); }
 *
 * Ownership: none.  Threads: one at a time.
 */
#ifndef SN_DIAGNOSE_RULES_H
#define SN_DIAGNOSE_RULES_H

#include "diagnose/state.h"

static inline uint64_t sn_fv(const snug_diagnosis *d, sn_fact_id fact)
{
    return sn_fact_value(d, fact);
}

/* Something ended the process from outside, or its host memory was refused. */
bool sn_is_killed(const snug_diagnosis *d);
/* Was a the last thing of its kind before the death, at most `lines` before any sign of it? */
bool sn_killed_soon_after(const snug_diagnosis *d, sn_tell_id a, uint64_t lines);
/* A device ran out of memory, in the words of any framework. */
bool sn_is_device_oom(const snug_diagnosis *d);
/* Is a frame tell part of the traceback of the last device failure (within 60 lines)? */
bool sn_frame_of_oom(const snug_diagnosis *d, sn_tell_id frame);
/* PyTorch's numbers: bytes held by others that are more than contexts and a display take. */
uint64_t sn_elsewhere_threshold(const snug_diagnosis *d);
/* PyTorch's numbers are there, and this process holds most of the card. */
bool sn_card_is_ours(const snug_diagnosis *d);
/* The same, with nothing that points to fragmentation, a cap or a request beyond the card. */
bool sn_card_is_plainly_full(const snug_diagnosis *d);
/* Reserved but unallocated bytes that could hold the request. */
bool sn_is_fragmented(const snug_diagnosis *d, unsigned percent_of_reserved);
/* Training went on (steps or losses) after the last line of this tell. */
bool sn_went_on_after(const snug_diagnosis *d, sn_tell_id tell);

#endif
