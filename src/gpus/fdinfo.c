/* SPDX-License-Identifier: Apache-2.0
 *
 * fdinfo.c - DRM clients from /proc/P/fdinfo/N (Documentation/gpu/drm-usage-stats.rst).
 *
 * 1. A client is (device, client id). All descriptors of a client, in one process or in several,
 *    show the same numbers: they are counted once.
 * 2. A client's bytes belong to the process that has run longest of those that hold it; the others
 *    inherited it (fork, or a descriptor that was passed).
 * 3. For each region resident comes before total before the deprecated memory key.
 */
#include "gpus/gpus.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

typedef struct client {
    size_t card;
    bool has_id;
    uint64_t id; /* without a client id the process: too little rather than too much */
    uint64_t bytes;
    int64_t owner, last_pid;
    uint64_t owner_start;
} client;

typedef struct member {
    size_t client;
    int64_t pid;
} member;

struct sn_gpus_clients {
    SN_VEC(client) list;
    SN_VEC(member) members;
    sn_map index;
};

/* ---- the text ---- */

/* "123 KiB" in bytes; unknown if it is no number, too large, or of a unit that is not known. */
static uint64_t size_value(const char *text, size_t n)
{
    uint64_t value = 0;
    size_t i = 0;
    while (i < n && isdigit((unsigned char)text[i])) {
        if (sn_mul_u64(&value, value, 10) || sn_add_u64(&value, value, (uint64_t)(text[i] - '0')))
            return SNUG_BYTES_UNKNOWN;
        i++;
    }
    if (!i)
        return SNUG_BYTES_UNKNOWN;
    while (i < n && (text[i] == ' ' || text[i] == '\t'))
        i++;
    size_t left = n - i;
    static const struct {
        const char *unit;
        uint64_t bytes;
    } units[] = {{"", 1},        {"B", 1},        {"KiB", SN_KIB},
                 {"kB", SN_KIB}, {"MiB", SN_MIB}, {"GiB", SN_GIB}};
    for (size_t u = 0; u < SN_LEN(units); u++)
        if (strlen(units[u].unit) == left && !memcmp(units[u].unit, text + i, left))
            return sn_mul_u64(&value, value, units[u].bytes) ? SNUG_BYTES_UNKNOWN : value;
    return SNUG_BYTES_UNKNOWN;
}

static bool number(const char *text, size_t n, uint64_t *out)
{
    uint64_t value = 0;
    for (size_t i = 0; i < n; i++)
        if (!isdigit((unsigned char)text[i]) || sn_mul_u64(&value, value, 10) ||
            sn_add_u64(&value, value, (uint64_t)(text[i] - '0')))
            return false;
    *out = value;
    return n > 0;
}

static void word(char *out, size_t size, const char *text, size_t n)
{
    n = SN_MIN(n, size - 1);
    for (size_t i = 0; i < n; i++)
        out[i] = text[i] > 32 && text[i] < 127 ? (char)tolower((unsigned char)text[i]) : '?';
    out[n] = '\0';
}

/* key is "resident-vram0" and the like, without "drm-". */
static void region(sn_gpus_fdinfo *out, const char *key, size_t n, const char *value,
                   size_t n_value)
{
    static const char *const kinds[] = {"resident-", "total-", "memory-"};
    for (size_t k = 0; k < SN_LEN(kinds); k++) {
        size_t skip = strlen(kinds[k]);
        if (n <= skip || memcmp(key, kinds[k], skip))
            continue;
        char name[sizeof out->regions[0].name];
        if (n - skip >= sizeof name)
            return;
        word(name, sizeof name, key + skip, n - skip);
        size_t r = 0;
        while (r < out->n_regions && strcmp(out->regions[r].name, name))
            r++;
        if (r == SN_FDINFO_REGIONS)
            return;
        if (r == out->n_regions) {
            memcpy(out->regions[r].name, name, sizeof name);
            out->regions[r].resident = out->regions[r].total = SNUG_BYTES_UNKNOWN;
            out->regions[r].memory = SNUG_BYTES_UNKNOWN;
            out->n_regions++;
        }
        uint64_t bytes = size_value(value, n_value);
        *(k == 0   ? &out->regions[r].resident
          : k == 1 ? &out->regions[r].total
                   : &out->regions[r].memory) = bytes;
        return;
    }
}

static bool is_key(const char *key, size_t n, const char *name)
{
    return strlen(name) == n && !memcmp(key, name, n);
}

static void line(sn_gpus_fdinfo *out, const char *key, size_t n, const char *value, size_t n_value)
{
    if (n > 4 && !memcmp(key, "drm-", 4)) {
        out->is_drm = true;
        key += 4;
        n -= 4;
        if (is_key(key, n, "driver"))
            word(out->driver, sizeof out->driver, value, n_value);
        else if (is_key(key, n, "pdev"))
            word(out->address, sizeof out->address, value, n_value);
        else if (is_key(key, n, "client-id"))
            out->has_client = number(value, n_value, &out->client);
        else
            region(out, key, n, value, n_value);
        return;
    }
    /* amdgpu before Linux 5.19: "pdev: ...", "pasid: ...", "vram mem: 123 kB". */
    if (is_key(key, n, "pdev")) {
        word(out->address, sizeof out->address, value, n_value);
    } else if (is_key(key, n, "pasid")) {
        out->has_client = number(value, n_value, &out->client);
    } else if (is_key(key, n, "vram mem") || is_key(key, n, "gtt mem") ||
               is_key(key, n, "cpu mem")) {
        char name[32];
        out->is_drm = true;
        if (!out->driver[0])
            memcpy(out->driver, "amdgpu", 7);
        int length = snprintf(name, sizeof name, "memory-%.*s", (int)(n - 4), key);
        region(out, name, (size_t)length, value, n_value);
    }
}

void sn_gpus_fdinfo_parse(sn_gpus_fdinfo *out, const char *text, size_t n)
{
    memset(out, 0, sizeof *out);
    for (size_t at = 0; at < n;) {
        const char *start = text + at, *end = memchr(start, '\n', n - at);
        size_t length = end ? (size_t)(end - start) : n - at;
        at += length + 1;
        const char *colon = memchr(start, ':', length);
        if (!colon)
            continue;
        const char *value = colon + 1, *stop = start + length;
        while (value < stop && (*value == ' ' || *value == '\t'))
            value++;
        while (stop > value && isspace((unsigned char)stop[-1]))
            stop--;
        line(out, start, (size_t)(colon - start), value, (size_t)(stop - value));
    }
}

static bool is_vram(const char *name)
{
    return sn_str_starts(name, "vram") || strstr(name, "local") != NULL;
}

/* Small on-chip stores, and parts of a region that has a line of its own. */
static bool is_counted(const char *name)
{
    static const char *const left_out[] = {"gds", "gws", "oa", "doorbell", "mmioremap", "visible"};
    for (size_t i = 0; i < SN_LEN(left_out); i++)
        if (sn_str_starts(name, left_out[i]))
            return false;
    return true;
}

static void add_known(uint64_t *sum, uint64_t bytes)
{
    if (bytes == SNUG_BYTES_UNKNOWN)
        return;
    uint64_t before = *sum == SNUG_BYTES_UNKNOWN ? 0 : *sum;
    if (sn_add_u64(sum, before, bytes))
        *sum = SNUG_BYTES_UNKNOWN - 1;
}

void sn_gpus_fdinfo_bytes(const sn_gpus_fdinfo *info, uint64_t *card, uint64_t *host,
                          bool *has_vram)
{
    *card = *host = SNUG_BYTES_UNKNOWN;
    *has_vram = false;
    for (size_t i = 0; i < info->n_regions; i++) {
        uint64_t bytes = info->regions[i].resident;
        if (bytes == SNUG_BYTES_UNKNOWN)
            bytes = info->regions[i].total;
        if (bytes == SNUG_BYTES_UNKNOWN)
            bytes = info->regions[i].memory;
        const char *name = info->regions[i].name;
        if (is_vram(name)) {
            *has_vram = true;
            add_known(card, bytes);
        } else if (is_counted(name)) {
            add_known(host, bytes);
        }
    }
    if (!*has_vram)
        *card = *host;
}

/* ---- the clients ---- */

static struct sn_gpus_clients *clients_of(snug_gpus *gpus)
{
    if (!gpus->clients) {
        gpus->clients = sn_alloc(SN_TAG_GPUS, sizeof *gpus->clients);
        if (gpus->clients)
            sn_map_init(&gpus->clients->index, SN_TAG_GPUS);
        else
            gpus->failed = true;
    }
    return gpus->clients;
}

/* The client of that card and id, made if absent. */
static client *client_of(snug_gpus *gpus, size_t card, bool has_id, uint64_t id)
{
    struct sn_gpus_clients *clients = clients_of(gpus);
    if (!clients)
        return NULL;
    uint64_t key[3] = {card, has_id, id};
    const uint64_t *known = sn_map_find(&clients->index, key, sizeof key);
    if (known)
        return &clients->list.at[*known];
    client made = {.card = card,
                   .has_id = has_id,
                   .id = id,
                   .bytes = SNUG_BYTES_UNKNOWN,
                   .last_pid = -1,
                   .owner = -1};
    if (!sn_map_set(&clients->index, key, sizeof key, clients->list.n) ||
        !SN_VEC_PUSH(SN_TAG_GPUS, &clients->list, made)) {
        gpus->failed = true;
        return NULL;
    }
    return &clients->list.at[clients->list.n - 1];
}

static void take_bytes(client *c, uint64_t bytes)
{
    if (c->bytes == SNUG_BYTES_UNKNOWN || (bytes != SNUG_BYTES_UNKNOWN && bytes > c->bytes))
        c->bytes = bytes;
}

void sn_gpus_fdinfo_add(snug_gpus *gpus, int64_t pid, const char *node, const char *text, size_t n)
{
    sn_gpus_fdinfo info;
    sn_gpus_fdinfo_parse(&info, text, n);
    size_t card = SN_GPUS_NO_CARD;
    if (info.is_drm && info.address[0])
        card = sn_gpus_card_make(gpus, info.address, info.driver);
    if (card == SN_GPUS_NO_CARD)
        card = sn_gpus_card_of_node(gpus, node);
    if (card == SN_GPUS_NO_CARD && info.driver[0])
        card = sn_gpus_card_make(gpus, info.driver, info.driver);
    if (card == SN_GPUS_NO_CARD)
        return;
    uint64_t bytes, host;
    bool has_vram;
    sn_gpus_fdinfo_bytes(&info, &bytes, &host, &has_vram);
    gpus->cards.at[card].has_vram |= has_vram;
    if (bytes == SNUG_BYTES_UNKNOWN) {
        sn_gpus_add_use(gpus, (sn_gpus_use){card, pid, SN_SOURCE_FD, SNUG_BYTES_UNKNOWN, 0, false});
        return;
    }
    client *c =
        client_of(gpus, card, info.has_client, info.has_client ? info.client : (uint64_t)pid);
    if (!c)
        return;
    take_bytes(c, bytes);
    if (c->last_pid != pid) {
        c->last_pid = pid;
        member m = {(size_t)(c - gpus->clients->list.at), pid};
        if (!SN_VEC_PUSH(SN_TAG_GPUS, &gpus->clients->members, m))
            gpus->failed = true;
    }
}

static void free_clients(snug_gpus *gpus)
{
    struct sn_gpus_clients *clients = gpus->clients;
    SN_VEC_FREE(&clients->list);
    SN_VEC_FREE(&clients->members);
    sn_map_deinit(&clients->index);
    sn_free(clients);
    gpus->clients = NULL;
}

void sn_gpus_fdinfo_adopt(snug_gpus *gpus, snug_gpus *part, const size_t *card)
{
    if (!part->clients)
        return;
    for (size_t i = 0; i < part->clients->members.n && !gpus->failed; i++) {
        member m = part->clients->members.at[i];
        const client *from = &part->clients->list.at[m.client];
        client *to = client_of(gpus, card[from->card], from->has_id, from->id);
        if (!to)
            break;
        take_bytes(to, from->bytes);
        m.client = (size_t)(to - gpus->clients->list.at);
        if (!SN_VEC_PUSH(SN_TAG_GPUS, &gpus->clients->members, m))
            gpus->failed = true;
    }
    free_clients(part);
}

void sn_gpus_fdinfo_finish(snug_gpus *gpus)
{
    struct sn_gpus_clients *clients = gpus->clients;
    if (!clients)
        return;
    for (size_t i = 0; i < clients->members.n; i++) {
        member m = clients->members.at[i];
        client *c = &clients->list.at[m.client];
        const sn_gpus_proc *proc = sn_gpus_find(gpus, m.pid);
        uint64_t start = proc ? proc->start_ticks : UINT64_MAX;
        if (c->owner < 0 || start < c->owner_start ||
            (start == c->owner_start && m.pid < c->owner)) {
            c->owner = m.pid;
            c->owner_start = start;
        }
    }
    for (size_t i = 0; i < clients->members.n && !gpus->failed; i++) {
        member m = clients->members.at[i];
        const client *c = &clients->list.at[m.client];
        bool owner = c->owner == m.pid;
        if (c->bytes)
            sn_gpus_add_use(gpus, (sn_gpus_use){c->card, m.pid, SN_SOURCE_FDINFO,
                                                owner ? c->bytes : 0, owner ? 0 : c->owner, false});
    }
    free_clients(gpus);
}
