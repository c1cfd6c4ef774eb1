/* SPDX-License-Identifier: Apache-2.0
 *
 * names.h - the list of a data set: one small record and one name a sample, in two temporary files
 * without a name that are read with pread, so that 10 million files take no memory.
 *
 *     sn_names l;  sn_names_init(&l, err);
 *     sn_names_add(&l, "cat/1.jpg", &(sn_name_record){.class_index = 0}, err);
 *     sn_names_seal(&l, err);                               // then:
 *     sn_names_at(&l, i, &record, name, sizeof name, err);
 *
 * Ownership: the list owns its files.  Threads: add by one; at from any number after seal.
 */
#ifndef SN_DATA_NAMES_H
#define SN_DATA_NAMES_H

#include "base/ledger.h"

enum { SN_NAME_MAX = 4096 }; /* bytes of a name with its NUL */

typedef struct sn_name_record {
    uint64_t offset; /* set by add */
    uint32_t length; /* set by add */
    int32_t class_index;
    float y;
    uint32_t root; /* which of the set's folders the name is relative to */
} sn_name_record;

typedef struct sn_names {
    int records_fd, text_fd;
    uint64_t n, n_text;
    /* While adding. */
    sn_name_record *records;
    char *text;
    size_t n_records_held, n_text_held;
} sn_names;

snug_status sn_names_init(sn_names *out, snug_error *err);
snug_status sn_names_add(sn_names *names, const char *name, const sn_name_record *record,
                         snug_error *err);
/* Writes what is held and gives the buffers back. */
snug_status sn_names_seal(sn_names *names, snug_error *err);
/* name may be NULL. SNUG_E_INTERNAL if it does not fit n (SN_NAME_MAX always does). */
snug_status sn_names_at(const sn_names *names, uint64_t i, sn_name_record *record, char *name,
                        size_t n, snug_error *err);
void sn_names_deinit(sn_names *names); /* also before init, on zeroed memory */

#endif
