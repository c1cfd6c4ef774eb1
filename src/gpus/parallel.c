/* SPDX-License-Identifier: Apache-2.0
 *
 * parallel.c - the same work on many processes, by a few threads. Each thread has a snapshot of its
 * own to write into, so nothing is locked; the parts are put together in their order.
 */
#include "gpus/gpus.h"

#include <pthread.h>
#include <string.h>

#include "base/host.h"
#include "base/thread.h"

#define MAX_PARTS 4
#define ITEMS_A_PART 128 /* below that a thread costs more than it brings */

typedef struct share {
    snug_gpus gpus;
    size_t begin, end;
    sn_gpus_work *work;
    void *context;
    pthread_t thread;
    bool threaded;
} share;

static void *run(void *argument)
{
    share *p = argument;
    if (!p->gpus.failed)
        p->work(&p->gpus, p->begin, p->end, p->context);
    return NULL;
}

/* A part knows the cards and what the whole knows of the machine; it has found nothing yet. */
static void open_part(share *p, const snug_gpus *gpus, bool shared_procs)
{
    p->gpus = *gpus;
    sn_arena_init(&p->gpus.arena, SN_TAG_GPUS);
    sn_map_init(&p->gpus.users, SN_TAG_GPUS);
    p->gpus.clients = NULL;
    p->gpus.n_unreadable = 0;
    memset(&p->gpus.uses, 0, sizeof p->gpus.uses);
    memset(&p->gpus.cards, 0, sizeof p->gpus.cards);
    memset(&p->gpus.notes, 0, sizeof p->gpus.notes);
    if (!shared_procs)
        memset(&p->gpus.procs, 0, sizeof p->gpus.procs);
    for (size_t i = 0; i < gpus->cards.n; i++)
        if (!SN_VEC_PUSH(SN_TAG_GPUS, &p->gpus.cards, gpus->cards.at[i]))
            p->gpus.failed = true;
}

/* Cards that the part came upon, and what it learned of those known. */
static void adopt_cards(snug_gpus *gpus, const snug_gpus *part, size_t *card)
{
    for (size_t i = 0; i < part->cards.n && !gpus->failed; i++) {
        const sn_gpus_card *from = &part->cards.at[i];
        card[i] = sn_gpus_card_make(gpus, from->address, from->driver);
        if (card[i] == SN_GPUS_NO_CARD)
            break;
        gpus->cards.at[card[i]].has_vram |= from->has_vram;
        if (from->nvidia_minor >= 0)
            gpus->cards.at[card[i]].nvidia_minor = from->nvidia_minor;
    }
}

static void adopt(snug_gpus *gpus, snug_gpus *part, bool shared_procs)
{
    size_t *card = sn_alloc_array(SN_TAG_GPUS, part->cards.n, sizeof *card);
    gpus->failed |= part->failed || !card;
    if (!gpus->failed)
        adopt_cards(gpus, part, card);
    for (size_t i = 0; i < part->uses.n && !gpus->failed; i++) {
        sn_gpus_use use = part->uses.at[i];
        use.card = card[use.card];
        sn_gpus_add_use(gpus, use);
    }
    if (!gpus->failed)
        sn_gpus_fdinfo_adopt(gpus, part, card);
    for (size_t i = 0; i < part->procs.n && !gpus->failed && !shared_procs; i++)
        if (!SN_VEC_PUSH(SN_TAG_GPUS, &gpus->procs, part->procs.at[i]))
            gpus->failed = true;
    gpus->n_unreadable += part->n_unreadable;
    sn_free(card);
}

static void close_part(snug_gpus *gpus, snug_gpus *part, bool shared_procs)
{
    /* Without room for it the strings go; the whole has failed then and shows none. */
    if (!SN_VEC_PUSH(SN_TAG_GPUS, &gpus->parts, part->arena)) {
        gpus->failed = true;
        sn_arena_deinit(&part->arena);
    }
    sn_map_deinit(&part->users);
    sn_gpus_fdinfo_finish(part); /* only if they were not adopted */
    SN_VEC_FREE(&part->uses);
    SN_VEC_FREE(&part->cards);
    SN_VEC_FREE(&part->notes);
    if (!shared_procs)
        SN_VEC_FREE(&part->procs);
}

void sn_gpus_parallel(snug_gpus *gpus, size_t n_items, bool shared_procs, sn_gpus_work *work,
                      void *context)
{
    size_t n = SN_MIN((size_t)SN_MIN(sn_host_n_cpus(), MAX_PARTS), n_items / ITEMS_A_PART);
    share *parts = n > 1 ? sn_alloc_array(SN_TAG_GPUS, n, sizeof *parts) : NULL;
    if (!parts) {
        work(gpus, 0, n_items, context);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        share *p = &parts[i];
        open_part(p, gpus, shared_procs);
        p->begin = n_items * i / n;
        p->end = n_items * (i + 1) / n;
        p->work = work;
        p->context = context;
        p->threaded = i + 1 < n && !sn_thread_start(&p->thread, "snug-ps", run, p, NULL);
        if (!p->threaded)
            run(p);
    }
    for (size_t i = 0; i < n; i++) {
        if (parts[i].threaded)
            pthread_join(parts[i].thread, NULL);
        adopt(gpus, &parts[i].gpus, shared_procs);
        close_part(gpus, &parts[i].gpus, shared_procs);
    }
    sn_free(parts);
}
