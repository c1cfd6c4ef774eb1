/* SPDX-License-Identifier: Apache-2.0
 *
 * labels.h - a column of label texts, read once: classes in natural order if they are names or a
 * moderate number of whole numbers, else real targets. Labels get numbers as they come; the final
 * numbers are known at the end.
 *
 *     sn_labels l;  sn_labels_init(&l, err);
 *     sn_labels_add(&l, "cat", err); ...               // one a sample
 *     sn_labels_finish(&l, err);                       // l.real, l.order[provisional] = class
 *     sn_labels_at(&l, i, &class_index, &y, err);
 *
 * Ownership: deinit ends it.  Threads: one at a time.
 */
#ifndef SN_FORMAT_LABELS_H
#define SN_FORMAT_LABELS_H

#include "base/map.h"
#include "base/vec.h"

typedef struct sn_labels {
    int fd; /* records of {provisional class, value} */
    uint64_t n;
    sn_map classes;       /* text -> provisional class */
    SN_VEC(char *) names; /* provisional order; after finish natural order */
    int32_t *order;
    bool all_numbers, all_whole, overflowed;
    bool real; /* after finish */
    struct {
        int32_t class_index;
        float y;
    } held[1024];
    size_t n_held;
} sn_labels;

snug_status sn_labels_init(sn_labels *out, snug_error *err);
snug_status sn_labels_add(sn_labels *labels, const char *text, snug_error *err);
snug_status sn_labels_finish(sn_labels *labels, snug_error *err);
snug_status sn_labels_at(sn_labels *labels, uint64_t i, int32_t *class_index, float *y,
                         snug_error *err);
void sn_labels_deinit(sn_labels *labels);

#endif
