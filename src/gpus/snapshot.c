/* SPDX-License-Identifier: Apache-2.0
 *
 * snapshot.c - the public face: takes a snapshot, source by source, and hands it out.
 */
#include "gpus/gpus.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

sn_gpus_proc *sn_gpus_find(const snug_gpus *gpus, int64_t pid)
{
    size_t low = 0, high = gpus->procs.n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (gpus->procs.at[middle].pid < pid)
            low = middle + 1;
        else
            high = middle;
    }
    return low < gpus->procs.n && gpus->procs.at[low].pid == pid ? &gpus->procs.at[low] : NULL;
}

const char *sn_gpus_text(snug_gpus *gpus, const char *text)
{
    char safe[2048];
    const char *copy = sn_arena_strdup(&gpus->arena, sn_str_printable(safe, sizeof safe, text));
    if (!copy)
        gpus->failed = true;
    return copy;
}

void sn_gpus_note(snug_gpus *gpus, const char *format, ...)
{
    char line[512];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    const char *text = sn_gpus_text(gpus, line);
    if (!text || !SN_VEC_PUSH(SN_TAG_GPUS, &gpus->notes, text))
        gpus->failed = true;
}

void sn_gpus_add_use(snug_gpus *gpus, sn_gpus_use use)
{
    if (gpus->uses.n && use.source == SN_SOURCE_FD) {
        const sn_gpus_use *last = &gpus->uses.at[gpus->uses.n - 1];
        if (last->pid == use.pid && last->card == use.card && last->source == use.source)
            return; /* one more descriptor of the same holder */
    }
    if (!SN_VEC_PUSH(SN_TAG_GPUS, &gpus->uses, use))
        gpus->failed = true;
}

static void read_self(snug_gpus *gpus, uint32_t uid)
{
    char text[4096], *end;
    gpus->self = getpid();
    gpus->caller_uid = uid ? uid : getuid();
    gpus->uptime = -1;
    if (sn_gpus_read(&gpus->root, text, sizeof text, "proc/uptime") > 0) {
        double seconds = strtod(text, &end);
        if (end != text)
            gpus->uptime = seconds;
    }
    if (sn_gpus_link_name(&gpus->root, gpus->self_namespace, sizeof gpus->self_namespace,
                          "proc/self/ns/pid"))
        /* The number that the kernel gives to the first pid namespace, always. */
        gpus->own_namespace = !strcmp(gpus->self_namespace, "pid:[4026531836]");
    if (sn_gpus_read(&gpus->root, text, sizeof text, "proc/self/cgroup") > 0)
        sn_gpus_container_name(text, gpus->self_container, sizeof gpus->self_container);
}

static snug_status look(snug_gpus *gpus, const snug_gpus_options *o, snug_error *err)
{
    read_self(gpus, o->uid);
    if (!o->processes_only)
        sn_gpus_cards(gpus);
    snug_status status = sn_gpus_sweep(gpus, !o->processes_only, err);
    if (status)
        return status;
    sn_gpus_idle(gpus, o->previous);
    if (o->processes_only)
        return SNUG_OK;
    sn_gpus_relations(gpus);
    sn_gpus_fdinfo_finish(gpus);
    sn_gpus_kfd(gpus);
    sn_gpus_nvml(gpus, o->nvml ? o->nvml : gpus->root.real ? "libnvidia-ml.so.1" : NULL);
    sn_gpus_open_files(gpus);
    sn_gpus_cards_finish(gpus);
    sn_gpus_facts_of_holders(gpus);
    sn_gpus_merge(gpus);
    sn_gpus_ram(gpus, o->n_ram_processes ? o->n_ram_processes : 10);
    sn_gpus_candidates(gpus);
    return SNUG_OK;
}

snug_status snug_gpus_new(snug_gpus **out, const snug_gpus_options *options, snug_error *err)
{
    snug_gpus_options o = SNUG_GPUS_OPTIONS_INIT;
    *out = NULL;
    if (options && options->struct_size < sizeof o.struct_size)
        return sn_fail(err, SNUG_E_USAGE, "snug_gpus_options: struct_size is not set");
    if (options)
        memcpy(&o, options, SN_MIN(options->struct_size, sizeof o));
    snug_gpus *gpus = sn_alloc(SN_TAG_GPUS, sizeof *gpus);
    if (!gpus)
        return sn_fail(err, SNUG_E_MEMORY, "no memory for a list of processes");
    sn_arena_init(&gpus->arena, SN_TAG_GPUS);
    sn_map_init(&gpus->users, SN_TAG_GPUS);
    gpus->taken_at = sn_now();
    gpus->ram.total_bytes = gpus->ram.available_bytes = SNUG_BYTES_UNKNOWN;
    gpus->ram.shm_bytes = gpus->ram.shm_total_bytes = SNUG_BYTES_UNKNOWN;
    gpus->ram.swap_bytes = gpus->ram.swap_total_bytes = SNUG_BYTES_UNKNOWN;
    gpus->ram.limit_bytes = gpus->ram.limit_used_bytes = SNUG_BYTES_UNKNOWN;
    snug_status status = sn_gpus_root_open(&gpus->root, o.root, err);
    if (!status)
        status = look(gpus, &o, err);
    if (!status && gpus->failed)
        status =
            sn_fail(err, SNUG_E_MEMORY, "no memory for the list of %zu processes", gpus->procs.n);
    if (status) {
        snug_gpus_free(gpus);
        return status;
    }
    *out = gpus;
    return SNUG_OK;
}

size_t snug_gpus_n_cards(const snug_gpus *gpus)
{
    return gpus->cards.n;
}

const snug_gpus_card *snug_gpus_card_at(const snug_gpus *gpus, size_t i)
{
    return i < gpus->cards.n ? &gpus->cards.at[i].shown : NULL;
}

const snug_gpus_ram *snug_gpus_ram_of(const snug_gpus *gpus)
{
    return &gpus->ram;
}

size_t snug_gpus_n_candidates(const snug_gpus *gpus)
{
    return gpus->candidates.n;
}

const snug_gpus_candidate *snug_gpus_candidate_at(const snug_gpus *gpus, size_t i)
{
    return i < gpus->candidates.n ? &gpus->candidates.at[i] : NULL;
}

size_t snug_gpus_n_notes(const snug_gpus *gpus)
{
    return gpus->notes.n;
}

const char *snug_gpus_note_at(const snug_gpus *gpus, size_t i)
{
    return i < gpus->notes.n ? gpus->notes.at[i] : NULL;
}

void snug_gpus_free(snug_gpus *gpus)
{
    if (!gpus)
        return;
    sn_gpus_fdinfo_finish(gpus); /* if the sweep failed half-way */
    for (size_t i = 0; i < gpus->cards.n; i++)
        SN_VEC_FREE(&gpus->cards.at[i].processes);
    SN_VEC_FREE(&gpus->procs);
    SN_VEC_FREE(&gpus->cards);
    SN_VEC_FREE(&gpus->nodes);
    SN_VEC_FREE(&gpus->uses);
    SN_VEC_FREE(&gpus->notes);
    SN_VEC_FREE(&gpus->ram_processes);
    SN_VEC_FREE(&gpus->candidates);
    sn_map_deinit(&gpus->users);
    for (size_t i = 0; i < gpus->parts.n; i++)
        sn_arena_deinit(&gpus->parts.at[i]);
    SN_VEC_FREE(&gpus->parts);
    sn_arena_deinit(&gpus->arena);
    sn_gpus_root_close(&gpus->root);
    sn_free(gpus->json);
    sn_free(gpus);
}
