/* SPDX-License-Identifier: Apache-2.0
 *
 * cards.c - the cards: DRM devices that have a render node, NVIDIA's PCI functions (their driver
 * needs no DRM), and whatever a source names later.
 */
#include "gpus/gpus.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VENDOR_NVIDIA 0x10deu
#define VENDOR_AMD 0x1002u
#define VENDOR_INTEL 0x8086u

typedef SN_VEC(sn_gpus_node) node_list;

typedef struct names {
    snug_gpus *gpus;
    node_list list;
} names;

size_t sn_gpus_card_find(const snug_gpus *gpus, const char *address)
{
    for (size_t i = 0; i < gpus->cards.n; i++)
        if (!strcmp(gpus->cards.at[i].address, address))
            return i;
    return SN_GPUS_NO_CARD;
}

static void pci_facts(snug_gpus *gpus, sn_gpus_card *card)
{
    uint64_t value;
    if (sn_gpus_read_u64(&gpus->root, &value, "sys/bus/pci/devices/%s/vendor", card->address))
        card->vendor = (uint32_t)value;
    if (sn_gpus_read_u64(&gpus->root, &value, "sys/bus/pci/devices/%s/device", card->address))
        card->device = (uint32_t)value;
    if (!card->driver[0])
        sn_gpus_link_name(&gpus->root, card->driver, sizeof card->driver,
                          "sys/bus/pci/devices/%s/driver", card->address);
}

static uint32_t vendor_of_driver(const char *driver)
{
    static const struct {
        const char *driver;
        uint32_t vendor;
    } known[] = {{"nvidia", VENDOR_NVIDIA},  {"nvidia-drm", VENDOR_NVIDIA},
                 {"nouveau", VENDOR_NVIDIA}, {"amdgpu", VENDOR_AMD},
                 {"radeon", VENDOR_AMD},     {"i915", VENDOR_INTEL},
                 {"xe", VENDOR_INTEL}};
    for (size_t i = 0; i < SN_LEN(known); i++)
        if (!strcmp(driver, known[i].driver))
            return known[i].vendor;
    return 0;
}

size_t sn_gpus_card_make(snug_gpus *gpus, const char *address, const char *driver)
{
    size_t found = sn_gpus_card_find(gpus, address);
    if (found != SN_GPUS_NO_CARD) {
        sn_gpus_card *known = &gpus->cards.at[found];
        if (!known->driver[0] && driver)
            snprintf(known->driver, sizeof known->driver, "%s", driver);
        return found;
    }
    sn_gpus_card card = {.nvidia_minor = -1, .nvml_index = -1};
    card.shown.total_bytes = card.shown.used_bytes = SNUG_BYTES_UNKNOWN;
    card.shown.reserved_bytes = SNUG_BYTES_UNKNOWN;
    card.shown.display = -1;
    snprintf(card.address, sizeof card.address, "%s", address);
    snprintf(card.driver, sizeof card.driver, "%s", driver ? driver : "");
    pci_facts(gpus, &card);
    if (!card.vendor)
        card.vendor = vendor_of_driver(card.driver);
    uint64_t bytes;
    if (card.vendor == VENDOR_AMD) {
        card.has_vram = true; /* one within a processor has a part of the RAM set aside */
        if (sn_gpus_read_u64(&gpus->root, &bytes, "sys/bus/pci/devices/%s/mem_info_vram_total",
                             address))
            card.shown.total_bytes = bytes;
        if (sn_gpus_read_u64(&gpus->root, &bytes, "sys/bus/pci/devices/%s/mem_info_vram_used",
                             address))
            card.shown.used_bytes = bytes;
    } else if (card.vendor == VENDOR_INTEL) {
        card.has_vram = !sn_str_starts(address, "0000:00:02.");
        if (card.has_vram &&
            sn_gpus_read_u64(&gpus->root, &bytes,
                             "sys/bus/pci/devices/%s/tile0/physical_vram_size_bytes", address))
            card.shown.total_bytes = bytes;
    }
    if (!SN_VEC_PUSH(SN_TAG_GPUS, &gpus->cards, card)) {
        gpus->failed = true;
        return SN_GPUS_NO_CARD;
    }
    return gpus->cards.n - 1;
}

size_t sn_gpus_card_of_node(const snug_gpus *gpus, const char *node)
{
    for (size_t i = 0; i < gpus->nodes.n; i++)
        if (!strcmp(gpus->nodes.at[i].name, node))
            return gpus->nodes.at[i].card;
    return SN_GPUS_NO_CARD;
}

static bool collect(void *context, int fd, const char *name)
{
    SN_UNUSED(fd);
    names *n = context;
    if (!sn_str_starts(name, "card") && !sn_str_starts(name, "renderD"))
        return true;
    sn_gpus_node node = {.card = SN_GPUS_NO_CARD};
    snprintf(node.name, sizeof node.name, "%.23s", name);
    if (!SN_VEC_PUSH(SN_TAG_GPUS, &n->list, node))
        n->gpus->failed = true;
    return !n->gpus->failed;
}

/* A connector, "card0-HDMI-A-1": is a screen on it? */
static void connector(snug_gpus *gpus, const char *name, size_t card)
{
    char text[32];
    sn_gpus_card *c = &gpus->cards.at[card];
    if (sn_gpus_read(&gpus->root, text, sizeof text, "sys/class/drm/%s/enabled", name) <= 0)
        return;
    if (sn_str_starts(text, "enabled"))
        c->shown.display = 1;
    else if (c->shown.display < 0)
        c->shown.display = 0;
}

static void drm_cards(snug_gpus *gpus)
{
    names n = {.gpus = gpus};
    sn_gpus_each(gpus->root.fd, "sys/class/drm", collect, &n);
    char address[64], driver[32];
    /* Render nodes make cards; a display controller without one (a server's console) is no GPU. */
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < n.list.n && !gpus->failed; i++) {
            sn_gpus_node node = n.list.at[i];
            bool render = node.name[0] == 'r';
            if (render != (pass == 0) || strchr(node.name, '-') ||
                !sn_gpus_link_name(&gpus->root, address, sizeof address, "sys/class/drm/%s/device",
                                   node.name))
                continue;
            driver[0] = '\0';
            sn_gpus_link_name(&gpus->root, driver, sizeof driver, "sys/class/drm/%s/device/driver",
                              node.name);
            node.card = render ? sn_gpus_card_make(gpus, address, driver)
                               : sn_gpus_card_find(gpus, address);
            if (node.card != SN_GPUS_NO_CARD && !SN_VEC_PUSH(SN_TAG_GPUS, &gpus->nodes, node))
                gpus->failed = true;
        }
    for (size_t i = 0; i < n.list.n; i++) {
        char card[24];
        const char *name = n.list.at[i].name, *dash = strchr(name, '-');
        if (!dash)
            continue;
        snprintf(card, sizeof card, "%.*s", (int)(dash - name), name);
        size_t at = sn_gpus_card_of_node(gpus, card);
        if (at != SN_GPUS_NO_CARD)
            connector(gpus, name, at);
    }
    SN_VEC_FREE(&n.list);
}

static bool nvidia_function(void *context, int fd, const char *name)
{
    snug_gpus *gpus = context;
    char path[128], text[16];
    snprintf(path, sizeof path, "%.40s/class", name);
    if (sn_gpus_read_at(fd, path, text, sizeof text) <= 0 || !sn_str_starts(text, "0x03"))
        return true;
    snprintf(path, sizeof path, "%.40s/vendor", name);
    if (sn_gpus_read_at(fd, path, text, sizeof text) <= 0 || !sn_str_starts(text, "0x10de"))
        return true;
    sn_gpus_card_make(gpus, name, NULL);
    return !gpus->failed;
}

/* The value of a line "Key:   value" of text, cut at n - 1 bytes. */
static bool field(const char *text, const char *key, char *out, size_t n)
{
    const char *at = strstr(text, key);
    if (!at)
        return false;
    at += strlen(key);
    at += strspn(at, " \t");
    snprintf(out, n, "%.*s", (int)strcspn(at, "\n"), at);
    return out[0] != '\0';
}

static bool nvidia_driver_card(void *context, int fd, const char *name)
{
    snug_gpus *gpus = context;
    char path[128], text[2048], value[96];
    snprintf(path, sizeof path, "%.60s/information", name);
    if (sn_gpus_read_at(fd, path, text, sizeof text) <= 0)
        return true;
    size_t at = sn_gpus_card_make(gpus, name, "nvidia");
    if (at == SN_GPUS_NO_CARD)
        return false;
    sn_gpus_card *card = &gpus->cards.at[at];
    if (field(text, "Device Minor:", value, sizeof value))
        sn_gpus_parse_pid(value, &card->nvidia_minor);
    if (field(text, "Model:", value, sizeof value))
        card->shown.name = sn_gpus_text(gpus, value);
    return true;
}

void sn_gpus_cards(snug_gpus *gpus)
{
    drm_cards(gpus);
    sn_gpus_each(gpus->root.fd, "sys/bus/pci/devices", nvidia_function, gpus);
    sn_gpus_each(gpus->root.fd, "proc/driver/nvidia/gpus", nvidia_driver_card, gpus);
}

/* ---- names, order ---- */

/* The text of the line that begins with "\n<prefix>", hex digits in any case. */
static const char *pci_line(const char *text, const char *prefix)
{
    const char *at = strcasestr(text, prefix);
    return at ? at + strlen(prefix) : NULL;
}

static void name_from_pci_ids(snug_gpus *gpus, sn_gpus_card *card)
{
    static const char *const files[] = {"usr/share/misc/pci.ids", "usr/share/hwdata/pci.ids"};
    enum { LIMIT = 4 << 20 };
    char *text = sn_alloc(SN_TAG_GPUS, LIMIT);
    ssize_t n = 0;
    for (size_t i = 0; text && i < SN_LEN(files) && n <= 0; i++)
        n = sn_gpus_read(&gpus->root, text, LIMIT, "%s", files[i]);
    char prefix[16];
    snprintf(prefix, sizeof prefix, "\n%04x  ", card->vendor);
    const char *vendor = n > 0 ? pci_line(text, prefix) : NULL;
    if (vendor) {
        snprintf(prefix, sizeof prefix, "\n\t%04x  ", card->device);
        const char *device = pci_line(vendor, prefix);
        /* A line without a tab begins the next vendor. */
        const char *next = vendor;
        do
            next = strchr(next, '\n');
        while (next && (*++next == '\t' || *next == '#'));
        if (device && (!next || device < next)) {
            char name[160];
            snprintf(name, sizeof name, "%.*s %.*s", (int)strcspn(vendor, "\n"), vendor,
                     (int)strcspn(device, "\n"), device);
            card->shown.name = sn_gpus_text(gpus, name);
        }
    }
    sn_free(text);
}

static void name_card(snug_gpus *gpus, sn_gpus_card *card)
{
    char text[160];
    if (card->shown.name)
        return;
    if (card->vendor == VENDOR_AMD &&
        sn_gpus_read(&gpus->root, text, sizeof text, "sys/bus/pci/devices/%s/product_name",
                     card->address) > 1) {
        text[strcspn(text, "\n")] = '\0';
        card->shown.name = text[0] ? sn_gpus_text(gpus, text) : NULL;
    }
    /* The file is long: cards of one kind look once. */
    for (const sn_gpus_card *c = gpus->cards.at; c < card && !card->shown.name; c++)
        if (c->vendor == card->vendor && c->device == card->device)
            card->shown.name = c->shown.name;
    if (!card->shown.name && card->vendor && card->device)
        name_from_pci_ids(gpus, card);
    if (card->shown.name)
        return;
    const char *maker = card->vendor == VENDOR_NVIDIA  ? "NVIDIA"
                        : card->vendor == VENDOR_AMD   ? "AMD"
                        : card->vendor == VENDOR_INTEL ? "Intel"
                        : card->driver[0]              ? card->driver
                                                       : "unknown";
    if (card->device)
        snprintf(text, sizeof text, "%s card %04x:%04x", maker, card->vendor, card->device);
    else
        snprintf(text, sizeof text, "%s card", maker);
    card->shown.name = sn_gpus_text(gpus, text);
}

static int vendor_rank(const sn_gpus_card *card)
{
    return card->vendor == VENDOR_NVIDIA  ? 0
           : card->vendor == VENDOR_AMD   ? 1
           : card->vendor == VENDOR_INTEL ? 2
                                          : 3;
}

/* Indexes into cards, sorted through a copy that remembers the old place. */
typedef struct placed {
    sn_gpus_card card;
    size_t old;
} placed;

static int by_card(const void *a, const void *b)
{
    const sn_gpus_card *x = &((const placed *)a)->card, *y = &((const placed *)b)->card;
    int rank = vendor_rank(x) - vendor_rank(y);
    if (rank)
        return rank;
    if (x->nvml_index != y->nvml_index && x->nvml_index >= 0 && y->nvml_index >= 0)
        return x->nvml_index < y->nvml_index ? -1 : 1;
    if ((x->nvml_index >= 0) != (y->nvml_index >= 0))
        return x->nvml_index >= 0 ? -1 : 1;
    return sn_str_natural_cmp(x->address, y->address);
}

static void id_card(snug_gpus *gpus, sn_gpus_card *card, size_t index)
{
    static const char *const kinds[] = {"nvidia", "amd", "intel"};
    int rank = vendor_rank(card);
    const char *kind = rank < 3 ? kinds[rank] : card->driver[0] ? card->driver : "gpu";
    card->shown.id = sn_arena_printf(&gpus->arena, "%s:%zu", kind, index);
    card->shown.address = sn_gpus_text(gpus, card->address);
    card->shown.driver = card->driver[0] ? sn_gpus_text(gpus, card->driver) : NULL;
    card->shown.unified = !card->has_vram && rank != 0;
    name_card(gpus, card);
}

void sn_gpus_cards_finish(snug_gpus *gpus)
{
    size_t n = gpus->cards.n;
    placed *order = sn_alloc_array(SN_TAG_GPUS, n, sizeof *order);
    size_t *place = sn_alloc_array(SN_TAG_GPUS, n, sizeof *place);
    if (!order || !place) {
        gpus->failed = true;
        goto out;
    }
    for (size_t i = 0; i < n; i++)
        order[i] = (placed){gpus->cards.at[i], i};
    qsort(order, n, sizeof *order, by_card);
    size_t index = 0;
    for (size_t i = 0; i < n; i++) {
        sn_gpus_card *card = &gpus->cards.at[i];
        *card = order[i].card;
        place[order[i].old] = i;
        bool same_kind = i && vendor_rank(card) == vendor_rank(card - 1) &&
                         (vendor_rank(card) < 3 || !strcmp(card->driver, card[-1].driver));
        index = same_kind ? index + 1 : 0;
        id_card(gpus, card, index);
    }
    for (size_t i = 0; i < gpus->uses.n; i++)
        gpus->uses.at[i].card = place[gpus->uses.at[i].card];
out:
    sn_free(order);
    sn_free(place);
}
