/* SPDX-License-Identifier: Apache-2.0
 *
 * map.h - a hash map from byte strings to 64-bit values (open addressing, keys copied).
 *
 *     sn_map m;  sn_map_init(&m, SN_TAG_DATA);
 *     sn_map_set_str(&m, "cat", 3);
 *     uint64_t *v = sn_map_find_str(&m, "cat");     // NULL if absent; valid until the next set
 *     sn_map_deinit(&m);
 *
 * Ownership: the map owns its keys.  Threads: one at a time.
 */
#ifndef SN_BASE_MAP_H
#define SN_BASE_MAP_H

#include "base/arena.h"

typedef struct sn_map {
    struct sn_map_slot *slots;
    size_t n, n_slots;
    sn_arena keys;
} sn_map;

void sn_map_init(sn_map *map, sn_tag tag);
/* Inserts or replaces; false when there is no memory. */
bool sn_map_set(sn_map *map, const void *key, size_t key_len, uint64_t value);
uint64_t *sn_map_find(const sn_map *map, const void *key, size_t key_len);
bool sn_map_set_str(sn_map *map, const char *key, uint64_t value);
uint64_t *sn_map_find_str(const sn_map *map, const char *key);
/* Iterates in unspecified order: start with *cursor = 0; false at the end. */
bool sn_map_next(const sn_map *map, size_t *cursor, const void **key, size_t *key_len,
                 uint64_t *value);
void sn_map_deinit(sn_map *map);

#endif
