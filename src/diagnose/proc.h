/* SPDX-License-Identifier: Apache-2.0
 *
 * proc.h - what /proc, /sys/fs/cgroup and /dev/shm say about a tree of processes and the memory
 * around it. Every path stands under a root ("" is the real one) so that tests bring their own.
 *
 *     sn_proc_tree tree = {0};
 *     sn_proc_tree_read(&tree, "", pid);
 *     for (size_t i = 0; i < tree.n; i++) sn_proc_memory(&tree.at[i], "");
 *
 * Ownership: sn_proc_tree_free.  Threads: reentrant.
 */
#ifndef SN_DIAGNOSE_PROC_H
#define SN_DIAGNOSE_PROC_H

#include "base/ledger.h"

/* "/proc/%d/%s" and the like, read whole into out (n bytes, NUL-terminated); its length, -1 if it
 * cannot be read. */
long sn_proc_read(char *out, size_t n, const char *root, const char *format, ...) SNUG_PRINTF(4, 5);
/* The number after `key` at the start of a line ("VmRSS:" of status, "oom_kill" of memory.events);
 * kB are made bytes. False if absent or "max". */
bool sn_proc_field(const char *text, const char *key, uint64_t *value);

typedef struct sn_proc {
    int pid, parent;
    uint64_t start; /* clock ticks since boot: tells a reused pid */
    char name[32];
    char state;
    uint64_t resident_bytes, anonymous_bytes, shared_bytes; /* VmRSS, RssAnon, RssShmem */
    uint64_t pss_bytes;                                     /* 0: not read */
    uint64_t peak_bytes;                                    /* VmHWM */
    uint64_t virtual_bytes, virtual_peak_bytes;             /* VmSize, VmPeak */
} sn_proc;

typedef struct sn_proc_tree {
    sn_proc *at; /* the root of the tree first, then by pid */
    size_t n, cap;
} sn_proc_tree;

/* pid and its descendants, zombies left out; what was known of a process in the tree stays known.
 * n is 0 if pid is gone. False: no memory. */
bool sn_proc_tree_read(sn_proc_tree *tree, const char *root, int pid);
/* VmRSS and so on of one process; false if it is gone. */
bool sn_proc_memory(sn_proc *process, const char *root);
/* Pss of smaps_rollup: exact for shared pages and costly for large processes. */
bool sn_proc_pss(sn_proc *process, const char *root);
void sn_proc_tree_free(sn_proc_tree *tree);

/* The control group of a process that limits its memory, versions 1 and 2. */
typedef struct sn_cgroup {
    char path[256]; /* below root, "" if none was found */
    bool v2;
} sn_cgroup;
void sn_cgroup_of(sn_cgroup *group, const char *root, int pid);
/* Smallest limit of the group and those above it; false: none. */
bool sn_cgroup_limit(const sn_cgroup *group, const char *root, uint64_t *bytes);
bool sn_cgroup_usage(const sn_cgroup *group, const char *root, uint64_t *bytes);
/* Processes of the group that the kernel killed for memory. */
bool sn_cgroup_kills(const sn_cgroup *group, const char *root, uint64_t *n);

/* MemTotal and MemAvailable. */
bool sn_proc_memory_info(const char *root, uint64_t *total, uint64_t *available);
/* /proc/vmstat's oom_kill: every process that the kernel killed for memory since boot. */
bool sn_proc_kills(const char *root, uint64_t *n);
/* Size and use of root/dev/shm. */
bool sn_shm(const char *root, uint64_t *total, uint64_t *used);

#endif
