/* SPDX-License-Identifier: Apache-2.0
 *
 * watch.h - the inside of a watched run: samples, processes, the fit of a straight line. watch.c
 * takes samples, verdict.c says what they mean, watch_html.c draws them.
 *
 *     sn_fit fit;
 *     if (sn_watch_fit(w, &fit)) printf("%.0f bytes a second since %.0f s", fit.slope, fit.since);
 *
 * Ownership: the watch owns all.  Threads: one at a time.
 */
#ifndef SN_DIAGNOSE_WATCH_H
#define SN_DIAGNOSE_WATCH_H

#include "base/vec.h"
#include "diagnose/diagnose.h"
#include "diagnose/proc.h"

enum { SN_WATCH_SAMPLES = 4096, SN_WATCH_PROCESSES = 256, SN_WATCH_COUNTERS = 4 };

typedef struct sn_sample {
    double seconds;
    uint64_t tree_bytes;    /* resident in all processes, shared pages once as far as known */
    uint64_t main_bytes;    /* resident in the watched process */
    uint64_t virtual_bytes; /* its address space */
    uint64_t read_bytes;    /* read by all processes so far */
    uint64_t shm_bytes, group_bytes, gpu_bytes;
    uint64_t steps; /* counted in the output */
    uint32_t n_processes;
} sn_sample;

/* A process that was seen, also after its end. */
typedef struct sn_seen {
    int pid;
    uint64_t start;
    char name[32];
    bool main;
    uint64_t peak_bytes;    /* private share of it: resident less what it shares */
    uint64_t bytes_at_peak; /* when the tree was largest */
} sn_seen;

typedef struct sn_counter {
    uint64_t key; /* what tells one counter from another: its total, or a hash of its word */
    uint64_t last, sum;
} sn_counter;

struct snug_watch {
    char root[256];
    int pid;
    bool (*gpu_bytes)(void *context, const int *pids, size_t n_pids, uint64_t *bytes);
    void *context;
    double begun, due, cost, tree_due, pss_due;
    sn_proc_tree tree;
    SN_VEC(sn_sample) samples;
    SN_VEC(sn_seen) seen;
    unsigned keep_every, skipped; /* when full, every second sample goes */
    sn_cgroup group;
    uint64_t limit_bytes, total_bytes; /* the group's limit (0: none) and the machine's memory */
    uint64_t kills_before, boot_kills_before, kills;
    bool has_kills, has_boot_kills;
    uint64_t shm_total, shm_before;
    uint64_t address_limit, vm_peak; /* RLIMIT_AS or RLIMIT_DATA, 0: none */
    uint64_t open_files;
    uint64_t peak_bytes, gpu_peak;
    uint64_t rusage_peak;
    double peak_seconds;
    sn_counter counters[SN_WATCH_COUNTERS];
    char line[256];
    size_t n_line;
    bool says_no_memory; /* the output holds MemoryError, bad_alloc, ... */
    snug_watch_end end;
    char command[160];
    char summary[400];
    sn_buf html;
};

typedef struct sn_fit {
    double slope;   /* bytes a second */
    double since;   /* seconds: where the straight part begins */
    double r2;      /* of the fit */
    double growth;  /* bytes over the straight part */
    double seconds; /* its length */
    uint64_t steps; /* counted in it, 0 if none */
} sn_fit;

/* The longest straight growth that lasts to the end. False: no growth worth the name. */
bool sn_watch_fit(const snug_watch *w, sn_fit *fit);
/* The limit that counts: the group's or the machine's. */
uint64_t sn_watch_limit(const snug_watch *w);

#endif
