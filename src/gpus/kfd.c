/* SPDX-License-Identifier: Apache-2.0
 *
 * kfd.c - ROCm's compute processes: /sys/class/kfd/kfd/proc/<pid>/vram_<gpuid>, in bytes; the gpuid
 * is that of a topology node, whose properties name the PCI place.
 */
#include "gpus/gpus.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct kfd_node {
    uint64_t gpu_id;
    size_t card;
} kfd_node;

typedef struct kfd {
    snug_gpus *gpus;
    SN_VEC(kfd_node) nodes;
    int64_t pid;
} kfd;

/* The number after "name " at the start of a line of a node's properties. */
static bool property(const char *text, const char *name, uint64_t *out)
{
    size_t n = strlen(name);
    for (const char *at = text; at && *at; at = strchr(at, '\n')) {
        at += *at == '\n';
        if (!strncmp(at, name, n) && at[n] == ' ' && isdigit((unsigned char)at[n + 1])) {
            *out = strtoull(at + n + 1, NULL, 10);
            return true;
        }
    }
    return false;
}

static bool topology_node(void *context, int fd, const char *name)
{
    kfd *k = context;
    char path[64], text[4096];
    kfd_node node = {0, SN_GPUS_NO_CARD};
    snprintf(path, sizeof path, "%.20s/gpu_id", name);
    if (sn_gpus_read_at(fd, path, text, sizeof text) <= 0)
        return true;
    node.gpu_id = strtoull(text, NULL, 10);
    snprintf(path, sizeof path, "%.20s/properties", name);
    if (!node.gpu_id || sn_gpus_read_at(fd, path, text, sizeof text) <= 0)
        return true; /* a processor's node has gpu_id 0 */
    uint64_t domain = 0, location, minor;
    char address[64];
    if (property(text, "drm_render_minor", &minor) && minor) {
        snprintf(address, sizeof address, "renderD%u", (unsigned)minor);
        node.card = sn_gpus_card_of_node(k->gpus, address);
    }
    if (node.card == SN_GPUS_NO_CARD && property(text, "location_id", &location) && location) {
        property(text, "domain", &domain);
        snprintf(address, sizeof address, "%04x:%02x:%02x.%x", (unsigned)domain & 0xffffu,
                 (unsigned)(location >> 8) & 0xffu, (unsigned)(location >> 3) & 0x1fu,
                 (unsigned)location & 7u);
        node.card = sn_gpus_card_make(k->gpus, address, "amdgpu");
    }
    if (node.card != SN_GPUS_NO_CARD && !SN_VEC_PUSH(SN_TAG_GPUS, &k->nodes, node))
        k->gpus->failed = true;
    return !k->gpus->failed;
}

static bool process_file(void *context, int fd, const char *name)
{
    kfd *k = context;
    if (!sn_str_starts(name, "vram_"))
        return true;
    char *end, text[32];
    uint64_t gpu_id = strtoull(name + 5, &end, 10);
    if (end == name + 5 || *end || sn_gpus_read_at(fd, name, text, sizeof text) <= 0)
        return true;
    uint64_t bytes =
        isdigit((unsigned char)text[0]) ? strtoull(text, NULL, 10) : SNUG_BYTES_UNKNOWN;
    for (size_t i = 0; i < k->nodes.n; i++)
        if (k->nodes.at[i].gpu_id == gpu_id && bytes) {
            const sn_gpus_proc *proc = sn_gpus_find(k->gpus, k->pid);
            /* The driver counts in the machine's pids; in a container ours may be another's. */
            bool elsewhere = !proc || (!k->gpus->own_namespace &&
                                       !(proc->flags & (SN_PROC_KFD | SN_PROC_UNREADABLE)));
            k->gpus->cards.at[k->nodes.at[i].card].has_vram = true;
            sn_gpus_add_use(k->gpus, (sn_gpus_use){k->nodes.at[i].card, k->pid, SN_SOURCE_KFD,
                                                   bytes, 0, elsewhere});
        }
    return true;
}

static bool kfd_process(void *context, int fd, const char *name)
{
    kfd *k = context;
    if (sn_gpus_parse_pid(name, &k->pid))
        sn_gpus_each(fd, name, process_file, k);
    return !k->gpus->failed;
}

void sn_gpus_kfd(snug_gpus *gpus)
{
    kfd k = {.gpus = gpus};
    sn_gpus_each(gpus->root.fd, "sys/class/kfd/kfd/topology/nodes", topology_node, &k);
    if (k.nodes.n)
        sn_gpus_each(gpus->root.fd, "sys/class/kfd/kfd/proc", kfd_process, &k);
    SN_VEC_FREE(&k.nodes);
}
