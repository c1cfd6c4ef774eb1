/* SPDX-License-Identifier: Apache-2.0
 *
 * merge.c - from what the sources say to what is shown.
 *
 * 1. A process appears once on a card. NVML's number is believed before the others; of fdinfo and
 *    KFD the larger one, since newer kernels count KFD's memory in fdinfo too.
 * 2. A client's bytes are counted once on its card; who only inherited it is shown with the owner.
 * 3. Unknown stays unknown: explained sums what is known.
 */
#include "gpus/gpus.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void sn_gpus_show(snug_gpus *gpus, snug_gpus_process *out, sn_gpus_proc *proc)
{
    sn_gpus_facts(gpus, proc);
    long ticks = sysconf(_SC_CLK_TCK);
    double age = gpus->uptime - (double)proc->start_ticks / (double)(ticks > 0 ? ticks : 100);
    *out = (snug_gpus_process){
        .pid = proc->pid,
        .parent = proc->parent,
        .user = proc->user,
        .bytes = SNUG_BYTES_UNKNOWN,
        .host_bytes = proc->host_bytes,
        .host_is_rss = proc->host_is_rss,
        .age_seconds = gpus->uptime < 0 ? -1 : SN_MAX(age, 0),
        .idle_seconds = proc->idle_seconds,
        .what = proc->what,
        .state = proc->status,
        .command = proc->command,
        .container = proc->container,
        .refusal = proc->refusal,
    };
}

/* A holder whose number says nothing to us. */
static snug_gpus_process stranger(const snug_gpus *gpus, int64_t pid)
{
    bool gone = gpus->own_namespace;
    return (snug_gpus_process){
        .pid = pid,
        .bytes = SNUG_BYTES_UNKNOWN,
        .host_bytes = SNUG_BYTES_UNKNOWN,
        .age_seconds = -1,
        .idle_seconds = -1,
        .what = "unknown",
        .state = gone ? "gone" : "other container",
        .refusal = gone ? "there is no such process any more"
                        : "the driver's number is of another container: end it there, or on the "
                          "host",
    };
}

static int by_use(const void *a, const void *b)
{
    const sn_gpus_use *x = a, *y = b;
    if (x->card != y->card)
        return x->card < y->card ? -1 : 1;
    if (x->pid != y->pid)
        return x->pid < y->pid ? -1 : 1;
    if (x->elsewhere != y->elsewhere)
        return x->elsewhere ? 1 : -1;
    return (x->source > y->source) - (x->source < y->source);
}

/* uses[0..n) are all of one process on one card, by source. False: it holds nothing. */
static bool weigh(const sn_gpus_use *uses, size_t n, snug_gpus_process *out)
{
    static const char *const names[] = {"nvml", "fdinfo", "kfd", "fd-only"};
    uint64_t sums[4] = {SNUG_BYTES_UNKNOWN, SNUG_BYTES_UNKNOWN, SNUG_BYTES_UNKNOWN,
                        SNUG_BYTES_UNKNOWN};
    bool listed[4] = {false};
    for (size_t i = 0; i < n; i++) {
        sn_gpus_source s = uses[i].source;
        listed[s] = true;
        if (uses[i].bytes != SNUG_BYTES_UNKNOWN)
            sums[s] = (sums[s] == SNUG_BYTES_UNKNOWN ? 0 : sums[s]) + uses[i].bytes;
        if (uses[i].shared_with)
            out->shared_with = uses[i].shared_with;
    }
    int best = -1;
    for (int s = 0; s < 4 && best < 0; s++)
        if (listed[s])
            best = s;
    if (sums[SN_SOURCE_NVML] != SNUG_BYTES_UNKNOWN)
        best = SN_SOURCE_NVML;
    else if (sums[SN_SOURCE_FDINFO] != SNUG_BYTES_UNKNOWN)
        best = sums[SN_SOURCE_KFD] != SNUG_BYTES_UNKNOWN &&
                       sums[SN_SOURCE_KFD] > sums[SN_SOURCE_FDINFO]
                   ? SN_SOURCE_KFD
                   : SN_SOURCE_FDINFO;
    else if (sums[SN_SOURCE_KFD] != SNUG_BYTES_UNKNOWN)
        best = SN_SOURCE_KFD;
    out->bytes = sums[best];
    out->source = names[best];
    return out->bytes > 0 || out->shared_with;
}

static int by_bytes(const void *a, const void *b)
{
    const snug_gpus_process *x = a, *y = b;
    /* Unknown is the largest number there is: it goes last by hand. */
    bool x_known = x->bytes != SNUG_BYTES_UNKNOWN, y_known = y->bytes != SNUG_BYTES_UNKNOWN;
    if (x_known != y_known)
        return x_known ? -1 : 1;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    return (x->pid > y->pid) - (x->pid < y->pid);
}

static void finish_card(snug_gpus *gpus, sn_gpus_card *card, size_t *n_strangers)
{
    snug_gpus_card *shown = &card->shown;
    shown->explained_bytes = 0;
    for (size_t i = 0; i < card->processes.n; i++) {
        const snug_gpus_process *p = &card->processes.at[i];
        if (p->bytes != SNUG_BYTES_UNKNOWN)
            shown->explained_bytes += p->bytes;
        *n_strangers += !p->command && !gpus->own_namespace;
        if (p->what && shown->display < 0 && (!strcmp(p->what, "Xorg")))
            shown->display = 1;
    }
    shown->unexplained_bytes = SNUG_BYTES_UNKNOWN;
    if (shown->used_bytes != SNUG_BYTES_UNKNOWN)
        shown->unexplained_bytes = shown->used_bytes > shown->explained_bytes
                                       ? shown->used_bytes - shown->explained_bytes
                                       : 0;
    if (card->processes.n)
        qsort(card->processes.at, card->processes.n, sizeof *card->processes.at, by_bytes);
    shown->processes = card->processes.at;
    shown->n_processes = card->processes.n;
}

void sn_gpus_merge(snug_gpus *gpus)
{
    size_t n = gpus->uses.n, n_strangers = 0;
    const sn_gpus_use *uses = gpus->uses.at;
    if (n)
        qsort(gpus->uses.at, n, sizeof *gpus->uses.at, by_use);
    for (size_t i = 0, end; i < n && !gpus->failed; i = end) {
        for (end = i + 1; end < n && uses[end].card == uses[i].card &&
                          uses[end].pid == uses[i].pid && uses[end].elsewhere == uses[i].elsewhere;)
            end++;
        sn_gpus_proc *proc = uses[i].elsewhere ? NULL : sn_gpus_find(gpus, uses[i].pid);
        snug_gpus_process shown = stranger(gpus, uses[i].pid);
        if (!proc && !uses[i].elsewhere)
            continue; /* it went away while we looked */
        snug_gpus_process weighed = {0};
        if (!weigh(uses + i, end - i, &weighed))
            continue;
        if (proc)
            sn_gpus_show(gpus, &shown, proc);
        shown.bytes = weighed.bytes;
        shown.source = weighed.source;
        shown.shared_with = weighed.shared_with;
        if (!SN_VEC_PUSH(SN_TAG_GPUS, &gpus->cards.at[uses[i].card].processes, shown))
            gpus->failed = true;
    }
    for (size_t i = 0; i < gpus->cards.n; i++)
        finish_card(gpus, &gpus->cards.at[i], &n_strangers);
    if (n_strangers)
        sn_gpus_note(gpus,
                     "%zu holder%s cannot be matched with a process here: in a container the "
                     "driver counts as the host does. Run snug ps on the host, or start the "
                     "container with --pid=host.",
                     n_strangers, n_strangers == 1 ? "" : "s");
    if (gpus->n_unreadable)
        sn_gpus_note(gpus,
                     "%zu process%s of other users could not be looked into: sudo snug ps "
                     "sees all.",
                     gpus->n_unreadable, gpus->n_unreadable == 1 ? "" : "es");
}

/* ---- what can go ---- */

typedef struct weight {
    uint64_t card_bytes;
    bool on_card, unknown, kept; /* kept: somebody who stays shares the client */
} weight;

static bool may_go(const sn_gpus_proc *proc)
{
    return proc && !proc->refusal &&
           (sn_str_eq(proc->status, "idle") || sn_str_eq(proc->status, "stopped") ||
            sn_str_eq(proc->status, "orphan worker"));
}

static weight weigh_on_cards(const snug_gpus *gpus, int64_t pid)
{
    weight w = {0};
    for (size_t c = 0; c < gpus->cards.n; c++)
        for (size_t i = 0; i < gpus->cards.at[c].processes.n; i++) {
            const snug_gpus_process *p = &gpus->cards.at[c].processes.at[i];
            if (p->shared_with == pid && !may_go(sn_gpus_find(gpus, p->pid)))
                w.kept = true;
            if (p->pid != pid || !p->command)
                continue;
            w.on_card = true;
            if (p->bytes == SNUG_BYTES_UNKNOWN)
                w.unknown = true;
            else
                w.card_bytes += p->bytes;
        }
    return w;
}

static void add_candidate(snug_gpus *gpus, snug_gpus_candidate c)
{
    uint64_t card = c.frees_card_bytes == SNUG_BYTES_UNKNOWN ? 0 : c.frees_card_bytes;
    uint64_t host = c.frees_host_bytes == SNUG_BYTES_UNKNOWN ? 0 : c.frees_host_bytes;
    c.frees_bytes = card + host;
    if (!c.how || !SN_VEC_PUSH(SN_TAG_GPUS, &gpus->candidates, c))
        gpus->failed = true;
}

static const char *how_to_go(snug_gpus *gpus, const sn_gpus_proc *proc)
{
    if (sn_str_eq(proc->status, "orphan worker"))
        return "a worker whose training is gone";
    if (sn_str_eq(proc->status, "stopped"))
        return "stopped (as by Ctrl-Z): still holds its memory";
    char since[48] = "idle now";
    if (proc->idle_seconds >= 60) {
        char age[32];
        snprintf(since, sizeof since, "idle for %s",
                 sn_format_seconds(age, sizeof age, proc->idle_seconds));
    }
    return sn_arena_printf(&gpus->arena, "%s%s", since,
                           sn_str_starts(proc->what ? proc->what : "", "jupyter kernel")
                               ? ": shut the kernel down in Jupyter"
                               : "");
}

/* Services that the machine started for itself are no one's leftovers. */
static bool is_service(const sn_gpus_proc *proc)
{
    return proc->parent == 1 && !proc->tty && proc->uid >= 0 && proc->uid < 1000 && !proc->python;
}

static void consider(snug_gpus *gpus, int64_t pid)
{
    sn_gpus_proc *proc = sn_gpus_find(gpus, pid);
    if (!proc || !(proc->flags & SN_PROC_FACTS))
        return;
    weight w = weigh_on_cards(gpus, pid);
    snug_gpus_candidate c = {.pid = pid,
                             .frees_card_bytes = w.unknown && !w.card_bytes ? SNUG_BYTES_UNKNOWN
                                                 : w.kept                   ? 0
                                                                            : w.card_bytes,
                             .frees_host_bytes = proc->host_bytes};
    if (sn_str_eq(proc->status, "zombie") && w.on_card) {
        sn_gpus_proc *parent = sn_gpus_find(gpus, proc->parent);
        if (!parent)
            return;
        sn_gpus_facts(gpus, parent);
        if (parent->refusal)
            return;
        c.pid = parent->pid;
        c.frees_host_bytes = 0;
        c.how = sn_arena_printf(&gpus->arena,
                                "parent of the dead process %lld, which it has not "
                                "collected",
                                (long long)pid);
        add_candidate(gpus, c);
    } else if (may_go(proc) &&
               (w.on_card || (proc->host_bytes != SNUG_BYTES_UNKNOWN &&
                              proc->host_bytes >= 64 * SN_MIB && !is_service(proc)))) {
        c.how = how_to_go(gpus, proc);
        add_candidate(gpus, c);
    }
}

static int by_pid(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int by_frees(const void *a, const void *b)
{
    const snug_gpus_candidate *x = a, *y = b;
    if (x->frees_bytes != y->frees_bytes)
        return x->frees_bytes > y->frees_bytes ? -1 : 1;
    return (x->pid > y->pid) - (x->pid < y->pid);
}

void sn_gpus_candidates(snug_gpus *gpus)
{
    SN_VEC(int64_t) pids = {0};
    bool room = true;
    for (size_t c = 0; c < gpus->cards.n; c++)
        for (size_t i = 0; i < gpus->cards.at[c].processes.n && room; i++)
            if (gpus->cards.at[c].processes.at[i].command)
                room = SN_VEC_PUSH(SN_TAG_GPUS, &pids, gpus->cards.at[c].processes.at[i].pid);
    for (size_t i = 0; i < gpus->ram_processes.n && room; i++)
        room = SN_VEC_PUSH(SN_TAG_GPUS, &pids, gpus->ram_processes.at[i].pid);
    gpus->failed |= !room;
    if (pids.n)
        qsort(pids.at, pids.n, sizeof *pids.at, by_pid);
    for (size_t i = 0; i < pids.n && !gpus->failed; i++)
        if (!i || pids.at[i] != pids.at[i - 1])
            consider(gpus, pids.at[i]);
    SN_VEC_FREE(&pids);
    if (gpus->candidates.n)
        qsort(gpus->candidates.at, gpus->candidates.n, sizeof *gpus->candidates.at, by_frees);
}
