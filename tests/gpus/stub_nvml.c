/* SPDX-License-Identifier: Apache-2.0
 *
 * stub_nvml.c - a libnvidia-ml.so.1 for the tests. What it says stands in the environment variable
 * STUB_NVML, one item a line:
 *
 *     card NAME|DOMAIN:BUS:DEVICE|TOTAL|USED|RESERVED|DISPLAY|MINOR     (numbers in bytes)
 *     process CARD C|G|M PID BYTES|na INSTANCE                        (compute, graphics, MPS)
 *     fail FUNCTION CODE                                              (its name without "nvml")
 *     long                                  (_v3 entries of drivers 535.43 to 535.86, 32 bytes)
 *
 * STUB_NVML_FORM at compile time: 1 has the plain functions only, 2 also _v2, 3 also _v3.
 * Written from the public description of the interface; entry layouts as in nvml.c.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if STUB_NVML_FORM < 1 || STUB_NVML_FORM > 3
#error "STUB_NVML_FORM is 1, 2 or 3"
#endif

typedef struct stub_card {
    char name[64];
    unsigned domain, bus, device, display, minor;
    unsigned long long total, used, reserved;
} stub_card;

#define MAX_CARDS 128
static unsigned char handles[MAX_CARDS];

/* The n-th line that begins with word and a blank, or is the word; NULL if there is none. */
static const char *item(const char *word, unsigned n)
{
    const char *at = getenv("STUB_NVML");
    size_t length = strlen(word);
    while (at && *at) {
        if (!strncmp(at, word, length) && strchr(" \n", at[length]) && !n--)
            return at + length;
        at = strchr(at, '\n');
        at += at != NULL;
    }
    return NULL;
}

static int failure(const char *function)
{
    const char *at;
    for (unsigned i = 0; (at = item("fail", i)); i++) {
        char name[64];
        int code;
        if (sscanf(at, " %63s %d", name, &code) == 2 && !strcmp(name, function))
            return code;
    }
    return 0;
}

static int read_card(void *handle, stub_card *out)
{
    unsigned index = (unsigned)((unsigned char *)handle - handles);
    const char *at = item("card", index);
    if (!at)
        return 2;
    return sscanf(at, " %63[^|]|%x:%x:%x|%llu|%llu|%llu|%u|%u", out->name, &out->domain, &out->bus,
                  &out->device, &out->total, &out->used, &out->reserved, &out->display,
                  &out->minor) == 9
               ? 0
               : 999;
}

int nvmlInit(void)
{
    return failure("Init");
}

int nvmlShutdown(void)
{
    return 0;
}

const char *nvmlErrorString(int code)
{
    return code == 16 ? "GPU access blocked by the operating system" : "Unknown Error";
}

int nvmlDeviceGetCount(unsigned *count)
{
    *count = 0;
    while (item("card", *count))
        ++*count;
    return failure("DeviceGetCount");
}

int nvmlDeviceGetHandleByIndex(unsigned index, void **handle)
{
    if (index >= MAX_CARDS || !item("card", index))
        return 2;
    *handle = handles + index;
    return failure("DeviceGetHandleByIndex");
}

int nvmlDeviceGetName(void *handle, char *name, unsigned n)
{
    stub_card card;
    int result = read_card(handle, &card);
    if (!result)
        snprintf(name, n, "%s", card.name);
    return result;
}

int nvmlDeviceGetMinorNumber(void *handle, unsigned *minor)
{
    stub_card card;
    int result = read_card(handle, &card);
    *minor = card.minor;
    return result;
}

int nvmlDeviceGetDisplayActive(void *handle, unsigned *active)
{
    stub_card card;
    int result = read_card(handle, &card);
    *active = card.display;
    return result ? result : failure("DeviceGetDisplayActive");
}

typedef struct stub_pci {
    char legacy[16];
    unsigned domain, bus, device, id, subsystem;
    char bus_id[32];
} stub_pci;

static int pci(void *handle, stub_pci *out, size_t size)
{
    stub_card card;
    stub_pci value;
    int result = read_card(handle, &card);
    if (result)
        return result;
    memset(&value, 0, sizeof value);
    value.domain = card.domain;
    value.bus = card.bus;
    value.device = card.device;
    snprintf(value.bus_id, sizeof value.bus_id, "%08X:%02X:%02X.0", card.domain, card.bus,
             card.device);
    memcpy(out, &value, size);
    return 0;
}

int nvmlDeviceGetPciInfo(void *handle, stub_pci *out)
{
    return pci(handle, out, 32);
}

int nvmlDeviceGetMemoryInfo(void *handle, unsigned long long out[3])
{
    stub_card card;
    int result = read_card(handle, &card);
    out[0] = card.total;
    out[1] = card.total - card.used;
    out[2] = card.used;
    return result ? result : failure("DeviceGetMemoryInfo");
}

/* Entries of 16 bytes (v1), 24 (v2, v3) or 32. */
static int list(void *handle, char kind, unsigned *count, unsigned char *out, size_t entry)
{
    unsigned card = (unsigned)((unsigned char *)handle - handles), found = 0, room = *count;
    const char *at;
    for (unsigned i = 0; (at = item("process", i)); i++) {
        unsigned of, pid, instance;
        char which, bytes_text[32];
        if (sscanf(at, " %u %c %u %31s %u", &of, &which, &pid, bytes_text, &instance) != 5)
            return 999;
        if (of != card || which != kind)
            continue;
        if (found++ >= room || !out)
            continue;
        unsigned long long bytes =
            strcmp(bytes_text, "na") ? strtoull(bytes_text, NULL, 10) : ~0ull;
        unsigned char *to = out + (found - 1) * entry;
        memset(to, 0, entry);
        memcpy(to, &pid, 4);
        memcpy(to + 8, &bytes, 8);
        if (entry >= 24) {
            memcpy(to + 16, &instance, 4);
            memset(to + 20, 0xff, 4);
        }
    }
    *count = found;
    return found > room ? 7 : 0;
}

#define LISTS(form, entry)                                                                         \
    int nvmlDeviceGetComputeRunningProcesses##form(void *h, unsigned *n, void *out)                \
    {                                                                                              \
        int bad = failure("DeviceGetComputeRunningProcesses" #form);                               \
        return bad ? bad : list(h, 'C', n, out, entry);                                            \
    }                                                                                              \
    int nvmlDeviceGetGraphicsRunningProcesses##form(void *h, unsigned *n, void *out)               \
    {                                                                                              \
        int bad = failure("DeviceGetGraphicsRunningProcesses" #form);                              \
        return bad ? bad : list(h, 'G', n, out, entry);                                            \
    }                                                                                              \
    int nvmlDeviceGetMPSComputeRunningProcesses##form(void *h, unsigned *n, void *out)             \
    {                                                                                              \
        int bad = failure("DeviceGetMPSComputeRunningProcesses" #form);                            \
        return bad ? bad : list(h, 'M', n, out, entry);                                            \
    }

LISTS(, 16)

#if STUB_NVML_FORM >= 2
LISTS(_v2, 24)

int nvmlInit_v2(void)
{
    return failure("Init");
}

int nvmlDeviceGetCount_v2(unsigned *count)
{
    return nvmlDeviceGetCount(count);
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **handle)
{
    return nvmlDeviceGetHandleByIndex(index, handle);
}

typedef struct stub_memory_v2 {
    unsigned version;
    unsigned long long total, reserved, free, used;
} stub_memory_v2;

int nvmlDeviceGetMemoryInfo_v2(void *handle, stub_memory_v2 *out)
{
    stub_card card;
    int result = read_card(handle, &card);
    if (result)
        return result;
    if (out->version != 0x02000028)
        return 25;
    out->total = card.total;
    out->reserved = card.reserved;
    out->used = card.used;
    out->free = card.total - card.used - card.reserved;
    return failure("DeviceGetMemoryInfo_v2");
}
#endif

#if STUB_NVML_FORM >= 3
LISTS(_v3, item("long", 0) ? 32 : 24)

int nvmlDeviceGetPciInfo_v3(void *handle, stub_pci *out)
{
    return pci(handle, out, sizeof *out);
}
#endif
