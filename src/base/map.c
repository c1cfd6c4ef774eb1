/* SPDX-License-Identifier: Apache-2.0
 *
 * map.c - open addressing with linear probing.
 *
 * Invariants: 1. n_slots is 0 or a power of two.  2. n <= 3/4 of n_slots, so that a probe always
 * meets a free slot.  3. A slot is free if and only if its key is NULL.
 */
#include "base/map.h"

#include <assert.h>
#include <string.h>

struct sn_map_slot {
    const char *key;
    size_t key_len;
    uint64_t hash, value;
};

/* FNV-1a, then a mix, since the slot is taken from the low bits. */
static uint64_t hash_of(const void *key, size_t n)
{
    const unsigned char *s = key;
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < n; i++)
        h = (h ^ s[i]) * UINT64_C(0x100000001b3);
    h ^= h >> 32;
    h *= UINT64_C(0xd6e8feb86659fd93);
    return h ^ h >> 32;
}

/* The slot that holds the key, else the free slot where it belongs. */
static struct sn_map_slot *probe(struct sn_map_slot *slots, size_t n_slots, const void *key,
                                 size_t key_len, uint64_t hash)
{
    for (size_t i = (size_t)hash & (n_slots - 1);; i = (i + 1) & (n_slots - 1)) {
        struct sn_map_slot *slot = &slots[i];
        if (!slot->key)
            return slot;
        if (slot->hash == hash && slot->key_len == key_len &&
            (key_len == 0 || memcmp(slot->key, key, key_len) == 0))
            return slot;
    }
}

static bool grow(sn_map *map)
{
    size_t n_slots = map->n_slots ? map->n_slots * 2 : 16;
    struct sn_map_slot *slots = sn_alloc_array(map->keys.tag, n_slots, sizeof *slots);
    if (!slots)
        return false;
    for (size_t i = 0; i < map->n_slots; i++) {
        const struct sn_map_slot *old = &map->slots[i];
        if (old->key)
            *probe(slots, n_slots, old->key, old->key_len, old->hash) = *old;
    }
    sn_free(map->slots);
    map->slots = slots;
    map->n_slots = n_slots;
    return true;
}

void sn_map_init(sn_map *map, sn_tag tag)
{
    *map = (sn_map){0};
    sn_arena_init(&map->keys, tag);
}

bool sn_map_set(sn_map *map, const void *key, size_t key_len, uint64_t value)
{
    uint64_t *found = sn_map_find(map, key, key_len);
    if (found) {
        *found = value;
        return true;
    }
    if ((map->n + 1) * 4 > map->n_slots * 3 && !grow(map))
        return false;
    assert((map->n + 1) * 4 <= map->n_slots * 3); /* 2 */
    char *copy = key_len < SIZE_MAX ? sn_arena_alloc(&map->keys, key_len + 1) : NULL;
    if (!copy)
        return false;
    if (key_len)
        memcpy(copy, key, key_len);
    uint64_t hash = hash_of(copy, key_len);
    *probe(map->slots, map->n_slots, copy, key_len, hash) =
        (struct sn_map_slot){.key = copy, .key_len = key_len, .hash = hash, .value = value};
    map->n++;
    return true;
}

uint64_t *sn_map_find(const sn_map *map, const void *key, size_t key_len)
{
    if (!map->n_slots)
        return NULL;
    struct sn_map_slot *slot = probe(map->slots, map->n_slots, key, key_len, hash_of(key, key_len));
    return slot->key ? &slot->value : NULL;
}

bool sn_map_set_str(sn_map *map, const char *key, uint64_t value)
{
    return sn_map_set(map, key, strlen(key), value);
}

uint64_t *sn_map_find_str(const sn_map *map, const char *key)
{
    return sn_map_find(map, key, strlen(key));
}

bool sn_map_next(const sn_map *map, size_t *cursor, const void **key, size_t *key_len,
                 uint64_t *value)
{
    for (; *cursor < map->n_slots; ++*cursor) {
        const struct sn_map_slot *slot = &map->slots[*cursor];
        if (!slot->key)
            continue;
        if (key)
            *key = slot->key;
        if (key_len)
            *key_len = slot->key_len;
        if (value)
            *value = slot->value;
        ++*cursor;
        return true;
    }
    return false;
}

void sn_map_deinit(sn_map *map)
{
    sn_free(map->slots);
    sn_arena_deinit(&map->keys);
    map->slots = NULL;
    map->n = map->n_slots = 0;
}
