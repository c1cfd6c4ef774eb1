/* SPDX-License-Identifier: Apache-2.0
 *
 * registry.c - the backends of this build, and opening a device by its text.
 */
#include <stdio.h>
#include <string.h>

#include "backend/backend.h"
#include "backend/cpu/cpu.h"
#include "backend/null/null.h"
#include "snug/device.h"

static const sn_backend *const backends[] = {&sn_backend_cpu, &sn_backend_null};

/* The same as text, in the same order. */
static const char *const names[] = {"cpu", "null"};

_Static_assert(SN_LEN(backends) == SN_LEN(names), "one name per backend");

const sn_backend *const *sn_backends(size_t *n)
{
    *n = SN_LEN(backends);
    return backends;
}

const char *const *snug_device_kinds(size_t *n)
{
    *n = SN_LEN(names);
    return names;
}

static snug_status unknown(const char *spec, snug_error *err)
{
    char known[96] = "", name[48];
    for (size_t i = 0, used = 0; i < SN_LEN(names) && used < sizeof known; i++)
        used +=
            (size_t)snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "", names[i]);
    return sn_fail(err, SNUG_E_USAGE, "device '%s' is not known; this build has: %s",
                   sn_str_printable(name, sizeof name, spec), known);
}

snug_status sn_device_open(sn_device **out, const char *spec, const sn_device_options *options,
                           snug_error *err)
{
    static const sn_device_options defaults = {0};
    *out = NULL;
    if (!spec)
        spec = names[0];
    const char *colon = strchr(spec, ':');
    size_t length = colon ? (size_t)(colon - spec) : strlen(spec);
    for (size_t i = 0; i < SN_LEN(backends); i++)
        if (strlen(backends[i]->name) == length && !strncmp(spec, backends[i]->name, length))
            return backends[i]->open(out, colon ? colon + 1 : "", options ? options : &defaults,
                                     err);
    return unknown(spec, err);
}

void sn_device_close(sn_device *device)
{
    if (device)
        device->backend->close(device);
}

snug_status snug_device_query(snug_device_info *out, const char *spec, int threads, snug_error *err)
{
    sn_device *device;
    sn_device_options options = {.n_threads = threads};
    *out = (snug_device_info){0};
    snug_status s = sn_device_open(&device, spec, &options, err);
    if (s)
        return s;
    sn_device_info info;
    device->backend->info(device, &info);
    *out = (snug_device_info){.total_bytes = info.total_bytes,
                              .free_bytes = info.free_bytes,
                              .reserve_bytes = info.reserve_bytes,
                              .largest_bytes = info.largest_bytes,
                              .n_threads = info.n_threads,
                              .is_host = info.is_host,
                              .computes = device->backend != &sn_backend_null,
                              .flops = info.flops,
                              .bytes_per_second = info.bytes_per_second};
    snprintf(out->spec, sizeof out->spec, "%s", spec ? spec : names[0]);
    memcpy(out->name, info.name, sizeof out->name);
    sn_device_close(device);
    return SNUG_OK;
}
