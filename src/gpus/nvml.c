/* SPDX-License-Identifier: Apache-2.0
 *
 * nvml.c - NVIDIA's management library, opened at run time. No header of it is needed: the few
 * structures are declared here as the library lays them out.
 *
 * 1. The newest form of each function is tried first (_v3, _v2, plain); a form that is missing or
 *    answers "function not found" leads to the next one.
 * 2. A process is in the compute, the graphics and the MPS list at once: the same number, not a
 * sum. Different GPU instances of a divided card do add up.
 * 3. All ones means "not available": unknown.
 */
#include "gpus/gpus.h"

#include <stdio.h>
#include <string.h>

#include "base/dl.h"

enum {
    NVML_SUCCESS = 0,
    NVML_NO_PERMISSION = 4,
    NVML_INSUFFICIENT_SIZE = 7,
    NVML_DRIVER_NOT_LOADED = 9,
    NVML_FUNCTION_NOT_FOUND = 13,
    NVML_VERSION_MISMATCH = 18
};

typedef struct nvml_process_v1 {
    unsigned pid;
    unsigned long long bytes;
} nvml_process_v1;

typedef struct nvml_process_v2 { /* also v3 */
    unsigned pid;
    unsigned long long bytes;
    unsigned gpu_instance, compute_instance;
} nvml_process_v2;

typedef struct nvml_process_cc { /* v3 of drivers 535.43 to 535.86 only */
    unsigned pid;
    unsigned long long bytes;
    unsigned gpu_instance, compute_instance;
    unsigned long long protected_bytes;
} nvml_process_cc;

typedef struct nvml_memory_v1 {
    unsigned long long total, free, used;
} nvml_memory_v1;

typedef struct nvml_memory_v2 {
    unsigned version;
    unsigned long long total, reserved, free, used;
} nvml_memory_v2;

typedef struct nvml_pci { /* v2 ends after the numbers: the same offsets */
    char legacy[16];
    unsigned domain, bus, device, pci_device_id, subsystem;
    char bus_id[32];
    unsigned spare[8];
} nvml_pci;

#define NO_INSTANCE 0xffffffffu
#define FILL 0xa5
#define MAX_PROCESSES 65536u

typedef struct found {
    int64_t pid;
    unsigned instance;
    uint64_t bytes;
} found;

typedef SN_VEC(found) found_list;

typedef struct nvml {
    snug_gpus *gpus;
    sn_dl *dl;
    int (*by_index)(unsigned, void **);
    bool denied;
} nvml;

/* dlsym gives an object pointer; C has no cast to a function pointer, a copy does it. */
static bool symbol(sn_dl *dl, void *function, const char *name)
{
    void *p = sn_dl_symbol(dl, name);
    memcpy(function, &p, sizeof p);
    return p != NULL;
}

static size_t card_of(nvml *n, void *device, unsigned index)
{
    int (*pci_info)(void *, nvml_pci *);
    nvml_pci pci;
    char address[64];
    memset(&pci, 0, sizeof pci);
    static const char *const names[] = {"nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetPciInfo_v2",
                                        "nvmlDeviceGetPciInfo"};
    bool known = false;
    for (size_t i = 0; i < SN_LEN(names) && !known; i++)
        known = symbol(n->dl, &pci_info, names[i]) && pci_info(device, &pci) == NVML_SUCCESS;
    if (known)
        snprintf(address, sizeof address, "%04x:%02x:%02x.0", pci.domain, pci.bus, pci.device);
    else
        snprintf(address, sizeof address, "nvml%u", index);
    size_t card = sn_gpus_card_make(n->gpus, address, "nvidia");
    int (*minor_number)(void *, unsigned *);
    unsigned minor;
    if (card != SN_GPUS_NO_CARD && symbol(n->dl, &minor_number, "nvmlDeviceGetMinorNumber") &&
        minor_number(device, &minor) == NVML_SUCCESS) {
        /* The sweep may have made a card of /dev/nvidiaN before its place was known. */
        snprintf(address, sizeof address, "nvidia%u", minor);
        size_t twin = sn_gpus_card_find(n->gpus, address);
        if (twin != SN_GPUS_NO_CARD && twin != card) {
            for (size_t i = 0; i < n->gpus->uses.n; i++)
                if (n->gpus->uses.at[i].card == twin)
                    n->gpus->uses.at[i].card = card;
            n->gpus->cards.at[twin].address[0] = '\0'; /* dropped below */
        }
        n->gpus->cards.at[card].nvidia_minor = minor;
    }
    return card;
}

static void device_facts(nvml *n, void *device, sn_gpus_card *card)
{
    int (*name)(void *, char *, unsigned), (*display)(void *, unsigned *);
    int (*memory_v2)(void *, nvml_memory_v2 *), (*memory_v1)(void *, nvml_memory_v1 *);
    char text[96] = "";
    unsigned active;
    if (symbol(n->dl, &name, "nvmlDeviceGetName") &&
        name(device, text, sizeof text) == NVML_SUCCESS && text[0]) {
        text[sizeof text - 1] = '\0';
        card->shown.name = sn_gpus_text(n->gpus, text);
    }
    nvml_memory_v2 m2 = {.version = (unsigned)sizeof m2 | 2u << 24};
    nvml_memory_v1 m1;
    if (symbol(n->dl, &memory_v2, "nvmlDeviceGetMemoryInfo_v2") &&
        memory_v2(device, &m2) == NVML_SUCCESS) {
        card->shown.total_bytes = m2.total;
        card->shown.used_bytes = m2.used;
        card->shown.reserved_bytes = m2.reserved;
    } else if (symbol(n->dl, &memory_v1, "nvmlDeviceGetMemoryInfo") &&
               memory_v1(device, &m1) == NVML_SUCCESS) {
        card->shown.total_bytes = m1.total;
        card->shown.used_bytes = m1.used;
    }
    if (symbol(n->dl, &display, "nvmlDeviceGetDisplayActive") &&
        display(device, &active) == NVML_SUCCESS)
        card->shown.display = active ? 1 : 0;
}

static bool keep(found_list *list, int64_t pid, unsigned instance, uint64_t bytes)
{
    for (size_t i = 0; i < list->n; i++)
        if (list->at[i].pid == pid && list->at[i].instance == instance) {
            if (list->at[i].bytes == SNUG_BYTES_UNKNOWN ||
                (bytes != SNUG_BYTES_UNKNOWN && bytes > list->at[i].bytes))
                list->at[i].bytes = bytes;
            return true;
        }
    return SN_VEC_PUSH(SN_TAG_GPUS, list, (found){pid, instance, bytes});
}

/* The size of one entry, told by how far the library wrote into a buffer of FILL bytes: drivers
 * 535.43 to 535.86 have longer entries under the same name. A library that wrote even further has
 * cleared the buffer, which tells nothing. */
static size_t stride_of(const unsigned char *buf, unsigned count, size_t size)
{
    if (size == sizeof(nvml_process_v1) || !count)
        return size;
    size_t shorter = count * sizeof(nvml_process_v2), longer = count * sizeof(nvml_process_cc);
    bool written = false, beyond = false;
    for (size_t i = shorter; i < longer; i++)
        written |= buf[i] != FILL;
    for (size_t i = longer; i < longer + sizeof(nvml_process_v2); i++)
        beyond |= buf[i] != FILL;
    return written && !beyond ? sizeof(nvml_process_cc) : sizeof(nvml_process_v2);
}

static int read_list(nvml *n, int (*list)(void *, unsigned *, void *), void *device, size_t size,
                     found_list *out)
{
    unsigned count = 0;
    int result = list(device, &count, NULL);
    for (int attempt = 0; attempt < 4 && result == NVML_INSUFFICIENT_SIZE; attempt++) {
        /* More processes may come before the second call. */
        unsigned room = SN_MIN(count, MAX_PROCESSES) * 2 + 8;
        unsigned char *buf = sn_alloc_array(SN_TAG_GPUS, room, sizeof(nvml_process_cc));
        if (!buf) {
            n->gpus->failed = true;
            return NVML_SUCCESS;
        }
        memset(buf, FILL, room * sizeof(nvml_process_cc));
        count = room;
        result = list(device, &count, buf);
        count = SN_MIN(count, room);
        size_t stride = stride_of(buf, result == NVML_SUCCESS ? count : 0, size);
        for (unsigned i = 0; result == NVML_SUCCESS && i < count; i++) {
            nvml_process_v2 p = {.gpu_instance = NO_INSTANCE};
            memcpy(&p, buf + i * stride, SN_MIN(size, sizeof p));
            if (!keep(out, (int64_t)p.pid, p.gpu_instance, (uint64_t)p.bytes))
                n->gpus->failed = true;
        }
        sn_free(buf);
    }
    return result;
}

static void processes(nvml *n, void *device, size_t card)
{
    static const char *const kinds[] = {"Compute", "Graphics", "MPSCompute"};
    static const char *const forms[] = {"_v3", "_v2", ""};
    found_list list = {0};
    for (size_t k = 0; k < SN_LEN(kinds); k++)
        for (size_t f = 0; f < SN_LEN(forms); f++) {
            int (*function)(void *, unsigned *, void *);
            char name[64];
            snprintf(name, sizeof name, "nvmlDeviceGet%sRunningProcesses%s", kinds[k], forms[f]);
            if (!symbol(n->dl, &function, name))
                continue;
            size_t size = forms[f][0] ? sizeof(nvml_process_v2) : sizeof(nvml_process_v1);
            int result = read_list(n, function, device, size, &list);
            n->denied |= result == NVML_NO_PERMISSION;
            if (result != NVML_FUNCTION_NOT_FOUND)
                break;
        }
    for (size_t i = 0; i < list.n; i++) {
        const sn_gpus_proc *proc = sn_gpus_find(n->gpus, list.at[i].pid);
        /* NVML counts in the machine's pids. In a container such a number may be another process
         * of ours: it is believed only if that one has the driver open. */
        bool elsewhere = !proc || (!n->gpus->own_namespace &&
                                   !(proc->flags & (SN_PROC_NVIDIA | SN_PROC_UNREADABLE)));
        sn_gpus_add_use(n->gpus, (sn_gpus_use){card, list.at[i].pid, SN_SOURCE_NVML,
                                               list.at[i].bytes, 0, elsewhere});
    }
    SN_VEC_FREE(&list);
}

/* Cards that were merged into another one have no address any more. */
static void drop_twins(snug_gpus *gpus)
{
    for (size_t i = gpus->cards.n; i-- > 0;) {
        if (gpus->cards.at[i].address[0])
            continue;
        memmove(&gpus->cards.at[i], &gpus->cards.at[i + 1],
                (gpus->cards.n - i - 1) * sizeof *gpus->cards.at);
        gpus->cards.n--;
        for (size_t u = 0; u < gpus->uses.n; u++)
            gpus->uses.at[u].card -= gpus->uses.at[u].card > i;
        for (size_t d = 0; d < gpus->nodes.n; d++)
            gpus->nodes.at[d].card -= gpus->nodes.at[d].card > i;
    }
}

static bool any_nvidia(const snug_gpus *gpus)
{
    for (size_t i = 0; i < gpus->cards.n; i++)
        if (gpus->cards.at[i].vendor == 0x10de && strcmp(gpus->cards.at[i].driver, "nouveau"))
            return true;
    return false;
}

static void init_failed(nvml *n, int result)
{
    if (result == NVML_DRIVER_NOT_LOADED) {
        if (any_nvidia(n->gpus))
            sn_gpus_note(n->gpus, "NVIDIA's driver is not loaded (NVML says so): its cards' memory "
                                  "is unknown.");
    } else if (result == NVML_VERSION_MISMATCH) {
        sn_gpus_note(n->gpus, "NVIDIA's library and the loaded driver are of different versions "
                              "(after an update: restart the machine); bytes on NVIDIA cards are "
                              "unknown.");
    } else {
        const char *(*words)(int);
        const char *text = symbol(n->dl, &words, "nvmlErrorString") ? words(result) : NULL;
        sn_gpus_note(n->gpus,
                     "NVML does not start (error %d%s%.80s): bytes on NVIDIA cards are "
                     "unknown.",
                     result, text ? ", " : "", text ? text : "");
    }
}

static void read_devices(nvml *n)
{
    int (*n_devices)(unsigned *);
    unsigned count = 0;
    if ((!symbol(n->dl, &n_devices, "nvmlDeviceGetCount_v2") &&
         !symbol(n->dl, &n_devices, "nvmlDeviceGetCount")) ||
        (!symbol(n->dl, &n->by_index, "nvmlDeviceGetHandleByIndex_v2") &&
         !symbol(n->dl, &n->by_index, "nvmlDeviceGetHandleByIndex")) ||
        n_devices(&count) != NVML_SUCCESS) {
        sn_gpus_note(n->gpus, "NVML lists no devices: bytes on NVIDIA cards are unknown.");
        return;
    }
    for (unsigned i = 0; i < count && !n->gpus->failed; i++) {
        void *device;
        if (n->by_index(i, &device) != NVML_SUCCESS) {
            sn_gpus_note(n->gpus, "NVML cannot open its device %u (lost, or not yours to see).", i);
            continue;
        }
        size_t card = card_of(n, device, i);
        if (card == SN_GPUS_NO_CARD)
            break;
        n->gpus->cards.at[card].nvml_index = i;
        n->gpus->cards.at[card].has_vram = true;
        device_facts(n, device, &n->gpus->cards.at[card]);
        processes(n, device, card);
    }
    if (n->denied)
        sn_gpus_note(n->gpus, "NVML does not let you see all processes: sudo snug ps shows them.");
    drop_twins(n->gpus);
}

void sn_gpus_nvml(snug_gpus *gpus, const char *name)
{
    nvml n = {.gpus = gpus};
    snug_error err = SNUG_ERROR_INIT;
    if (!name || !name[0])
        return;
    if (sn_dl_open(&n.dl, name, &err)) {
        if (any_nvidia(gpus))
            sn_gpus_note(gpus,
                         "%.60s cannot be opened: bytes on NVIDIA cards are unknown; it comes "
                         "with NVIDIA's driver.",
                         name);
        return;
    }
    int (*init)(void), (*shut_down)(void);
    if (!symbol(n.dl, &init, "nvmlInit_v2") && !symbol(n.dl, &init, "nvmlInit")) {
        sn_gpus_note(gpus, "%.60s is no NVML: it has no nvmlInit.", name);
    } else {
        int result = init();
        if (result == NVML_SUCCESS) {
            read_devices(&n);
            if (symbol(n.dl, &shut_down, "nvmlShutdown"))
                shut_down();
        } else {
            init_failed(&n, result);
        }
    }
    sn_dl_free(n.dl);
}
