/* SPDX-License-Identifier: Apache-2.0
 *
 * notes.h - what the listing of a data set has to say: lines, and files that were ignored counted
 * by the ending of their names.
 *
 *     sn_notes_add(&n, "train and val are a split", ...);
 *     sn_notes_ignore(&n, "scan.tif");  ...  sn_notes_sum_up(&n);     // "ignored: 120 .tif (a
 * TIFF)"
 *
 * Ownership: the notes own their lines.  Threads: one at a time.
 */
#ifndef SN_DATA_NOTES_H
#define SN_DATA_NOTES_H

#include "base/map.h"
#include "base/vec.h"

typedef struct sn_notes {
    SN_VEC(char *) lines;
    sn_map ignored; /* ".tif" -> count */
} sn_notes;

void sn_notes_init(sn_notes *out);
/* false: no memory. */
bool sn_notes_add(sn_notes *notes, const char *format, ...) SNUG_PRINTF(2, 3);
bool sn_notes_ignore(sn_notes *notes, const char *name);
/* Turns the counts into one line. */
bool sn_notes_sum_up(sn_notes *notes);
void sn_notes_deinit(sn_notes *notes);

#endif
