/* SPDX-License-Identifier: Apache-2.0
 *
 * fake_tree.h - a folder that looks like "/" of a machine with cards and processes: what the tests
 * and the benchmark of `snug ps` give as its root.
 *
 *     fake_tree t;  fake_tree_make(&t);
 *     fake_drm_card(&t, 0, "0000:03:00.0", "amdgpu", 0x1002, 0x744c);
 *     fake_process(&t, &(fake_proc){.pid = 100, .comm = "python3", .pss_kib = 4096});
 *     fake_descriptor(&t, 100, 5, "/dev/dri/renderD128", "drm-driver:\tamdgpu\n...");
 *     fake_tree_remove(&t);
 *
 * Ownership: the tree's folder exists until fake_tree_remove.  Threads: one at a time.
 */
#ifndef SN_TEST_FAKE_TREE_H
#define SN_TEST_FAKE_TREE_H

#include "support/support.h"

typedef struct fake_tree {
    char root[SN_TEST_PATH];
} fake_tree;

typedef struct fake_proc {
    int pid, parent;     /* parent 0: 1 */
    const char *comm;    /* NULL: "python3" */
    const char *command; /* words separated by '|'; NULL: "python3|train.py" */
    char state;          /* 0: 'S' */
    int uid;             /* 0: the caller's own */
    int group, tty;      /* group 0: the pid itself */
    unsigned long long cpu_ticks, start_ticks; /* start 0: 100 * pid */
    unsigned long long rss_pages;
    long pss_kib;       /* 0: no smaps_rollup */
    int levels;         /* pid namespaces in NSpid; 0: one */
    const char *cgroup; /* NULL: "0::/user.slice\n" */
    const char *maps;   /* NULL: empty */
    bool kernel;
} fake_proc;

/* proc/uptime 100000 s, meminfo of 16 GiB, passwd with root, ann (1000) and the caller, pid
 * namespace of the machine. */
void fake_tree_make(fake_tree *tree);
void fake_file(const fake_tree *tree, const char *text, const char *format, ...) SNUG_PRINTF(3, 4);
/* Replaces what is there. */
void fake_link(const fake_tree *tree, const char *target, const char *format, ...)
    SNUG_PRINTF(3, 4);
/* card<n> and renderD<128+n> of a PCI device. */
void fake_drm_card(const fake_tree *tree, int n, const char *address, const char *driver,
                   unsigned vendor, unsigned device);
/* An NVIDIA card as its driver shows it: PCI, no DRM. */
void fake_nvidia_card(const fake_tree *tree, int minor, const char *address, const char *model);
void fake_process(const fake_tree *tree, const fake_proc *proc);
/* fdinfo NULL: the file exists with the lines of every descriptor only. */
void fake_descriptor(const fake_tree *tree, int pid, int fd, const char *link, const char *fdinfo);
void fake_tree_remove(fake_tree *tree);

#endif
