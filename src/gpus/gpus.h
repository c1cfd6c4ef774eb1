/* SPDX-License-Identifier: Apache-2.0
 *
 * gpus.h - inside of the room: one file per source fills `uses` (a card, a process, bytes, who says
 * so); merge.c makes the public lists of them. Order: open the root, cards, sweep of the processes
 * (with fdinfo), KFD, NVML, open files, merge, RAM, candidates.
 *
 *     sn_gpus_cards(gpus) -> sn_gpus_sweep(gpus) -> sn_gpus_kfd(gpus) -> sn_gpus_nvml(gpus, ...)
 *         -> sn_gpus_open_files(gpus) -> sn_gpus_merge(gpus)
 *
 * Every path is relative to the root's descriptor.
 * Ownership: strings live in the snapshot's arena.  Threads: one snapshot, one thread; parallel.c
 * gives each of its threads a part that no other touches.
 */
#ifndef SN_GPUS_GPUS_H
#define SN_GPUS_GPUS_H

#include <sys/types.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"
#include "snug/gpus.h"

#define SN_GPUS_NO_CARD SIZE_MAX

/* ---- root.c: files under the root ---- */

typedef struct sn_gpus_root {
    int fd;
    bool real; /* the root is this machine's own */
} sn_gpus_root;

snug_status sn_gpus_root_open(sn_gpus_root *out, const char *path, snug_error *err);
void sn_gpus_root_close(sn_gpus_root *root);
/* Reads at most n - 1 bytes of a small file below the folder `at`; NUL-terminated. The length, or
 * -errno (buf is "" then). */
ssize_t sn_gpus_read_at(int at, const char *path, char *buf, size_t n);
/* The same with a path made by the format, below the root. */
ssize_t sn_gpus_read(const sn_gpus_root *root, char *buf, size_t n, const char *format, ...)
    SNUG_PRINTF(4, 5);
/* A file that holds one whole number (decimal, or hexadecimal after 0x). */
bool sn_gpus_read_u64(const sn_gpus_root *root, uint64_t *out, const char *format, ...)
    SNUG_PRINTF(3, 4);
/* The last part of the text of a symbolic link; false if there is none. */
bool sn_gpus_link_name(const sn_gpus_root *root, char *buf, size_t n, const char *format, ...)
    SNUG_PRINTF(4, 5);
/* Calls visit for each name of a folder but . and .., in one pass; stops when it returns false.
 * fd is the open folder. 0, or -errno when it could not be opened or read. */
typedef bool sn_gpus_visit(void *context, int fd, const char *name);
int sn_gpus_each(int at, const char *path, sn_gpus_visit *visit, void *context);
/* Decimal digits only, the whole text. */
bool sn_gpus_parse_pid(const char *text, int64_t *out);

/* ---- what is known ---- */

enum {
    SN_PROC_NVIDIA = 1,       /* has /dev/nvidiaN or nvidia-uvm (or /dev/dxg) open */
    SN_PROC_UVM = 2,          /* nvidia-uvm */
    SN_PROC_KFD = 4,          /* /dev/kfd */
    SN_PROC_UNREADABLE = 8,   /* its descriptors could not be listed */
    SN_PROC_FACTS = 16,       /* the facts below are filled */
    SN_PROC_TWIN_ORPHAN = 32, /* one of several reparented processes of one command and group */
    SN_PROC_ANCESTOR = 64,    /* the caller or one of its ancestors */
    SN_PROC_LISTED = 128      /* some source names it as a holder */
};

typedef struct sn_gpus_proc {
    int64_t pid, parent, group;
    char comm[32];
    char state; /* of stat; 0 unknown */
    int tty;
    bool kernel_thread;
    uint64_t start_ticks, cpu_ticks, resident_bytes;
    unsigned flags;
    double idle_seconds; /* negative: unknown */
    /* facts, read only for processes that are shown (proc.c) */
    int64_t uid; /* -1 unknown */
    uint64_t host_bytes;
    bool host_is_rss, other_container, python;
    const char *user, *what, *command, *container, *status, *refusal;
} sn_gpus_proc;

typedef enum sn_gpus_source {
    SN_SOURCE_NVML,
    SN_SOURCE_FDINFO,
    SN_SOURCE_KFD,
    SN_SOURCE_FD
} sn_gpus_source;

typedef struct sn_gpus_use {
    size_t card;
    int64_t pid;
    sn_gpus_source source;
    uint64_t bytes;
    int64_t shared_with;
    bool elsewhere; /* the number is of another pid namespace: nothing of our proc belongs to it */
} sn_gpus_use;

typedef SN_VEC(snug_gpus_process) sn_gpus_process_list;

typedef struct sn_gpus_card {
    snug_gpus_card shown;
    char address[64];
    char driver[32];
    uint32_t vendor, device; /* PCI numbers, 0 unknown */
    int64_t nvidia_minor;    /* of /dev/nvidiaN; -1 unknown */
    int64_t nvml_index;      /* -1: not there */
    bool has_vram;           /* a client or sysfs tells of memory of its own */
    sn_gpus_process_list processes;
} sn_gpus_card;

/* /dev/dri/NAME and its card. */
typedef struct sn_gpus_node {
    char name[24];
    size_t card;
} sn_gpus_node;

struct snug_gpus {
    sn_arena arena;
    sn_gpus_root root;
    bool failed;             /* an allocation failed on the way: sticky */
    double taken_at, uptime; /* seconds; uptime negative: unknown */
    int64_t self;
    uint64_t caller_uid;
    bool own_namespace; /* our pids are the machine's: those of drivers resolve */
    char self_namespace[48], self_container[72];
    SN_VEC(sn_gpus_proc) procs; /* sorted by pid */
    SN_VEC(sn_gpus_card) cards;
    SN_VEC(sn_gpus_node) nodes;
    SN_VEC(sn_gpus_use) uses;
    SN_VEC(const char *) notes;
    struct sn_gpus_clients *clients;
    sn_map users;           /* uid -> pointer to the name */
    SN_VEC(sn_arena) parts; /* arenas of the parts of parallel work, whose strings live on */
    size_t n_unreadable;
    snug_gpus_ram ram;
    sn_gpus_process_list ram_processes;
    SN_VEC(snug_gpus_candidate) candidates;
    char *json;
};

/* NULL if there is no such process. */
sn_gpus_proc *sn_gpus_find(const snug_gpus *gpus, int64_t pid);
void sn_gpus_note(snug_gpus *gpus, const char *format, ...) SNUG_PRINTF(2, 3);
void sn_gpus_add_use(snug_gpus *gpus, sn_gpus_use use);
/* Copies text so that it prints safely and is valid UTF-8; NULL when there is no memory. */
const char *sn_gpus_text(snug_gpus *gpus, const char *text);

/* ---- cards.c: the cards of /sys, their names and totals ---- */

void sn_gpus_cards(snug_gpus *gpus);
/* The card at that PCI address or of that device name; SN_GPUS_NO_CARD if none. */
size_t sn_gpus_card_find(const snug_gpus *gpus, const char *address);
/* The same, made if absent. SN_GPUS_NO_CARD only when there is no memory. */
size_t sn_gpus_card_make(snug_gpus *gpus, const char *address, const char *driver);
size_t sn_gpus_card_of_node(const snug_gpus *gpus, const char *node);
/* Order, ids and names; unified cards. Last step on the cards, remaps the uses. */
void sn_gpus_cards_finish(snug_gpus *gpus);

/* ---- fdinfo.c: DRM clients ---- */

#define SN_FDINFO_REGIONS 16
typedef struct sn_gpus_fdinfo {
    bool is_drm; /* a drm- key, or the keys of an old amdgpu */
    char driver[32], address[64];
    bool has_client;
    uint64_t client;
    size_t n_regions;
    struct {
        char name[24];
        uint64_t resident, total, memory; /* SNUG_BYTES_UNKNOWN where there is no such key */
    } regions[SN_FDINFO_REGIONS];
} sn_gpus_fdinfo;

/* Reads the text of /proc/P/fdinfo/N (n bytes, NUL-terminated or not). */
void sn_gpus_fdinfo_parse(sn_gpus_fdinfo *out, const char *text, size_t n);
/* The bytes on the card and those in RAM; *has_vram false: the card has no memory of its own, both
 * are the same. Unknown where no key tells. */
void sn_gpus_fdinfo_bytes(const sn_gpus_fdinfo *info, uint64_t *card, uint64_t *host,
                          bool *has_vram);
/* One descriptor of a process: node is what its link names below /dev/dri. */
void sn_gpus_fdinfo_add(snug_gpus *gpus, int64_t pid, const char *node, const char *text, size_t n);
/* When the sweep is over: clients become uses, each counted once. */
void sn_gpus_fdinfo_finish(snug_gpus *gpus);

/* The clients of a part of the sweep go to the whole; card[i]: the whole's index of the part's. */
void sn_gpus_fdinfo_adopt(snug_gpus *gpus, snug_gpus *part, const size_t *card);

/* ---- parallel.c: the same work on many processes, by a few threads ---- */

/* Does items [begin, end) on a snapshot of its own. */
typedef void sn_gpus_work(snug_gpus *part, size_t begin, size_t end, void *context);
/* Calls work for parts of n_items, each with a part of the snapshot: its own arena, cards, uses and
 * clients, which are put together afterwards. shared_procs: the parts see the whole's processes and
 * change only those of their items; else each finds its own. Few items: no thread, no parts. */
void sn_gpus_parallel(snug_gpus *gpus, size_t n_items, bool shared_procs, sn_gpus_work *work,
                      void *context);

/* ---- openfiles.c: one pass over the processes and their descriptors ---- */

snug_status sn_gpus_sweep(snug_gpus *gpus, bool with_files, snug_error *err);
/* Parses a line of /proc/P/stat. */
bool sn_gpus_stat_parse(sn_gpus_proc *out, const char *text);
/* /dev/nvidiaN, nvidia-uvm and kfd of processes become uses of unknown size. */
void sn_gpus_open_files(snug_gpus *gpus);

/* ---- kfd.c, nvml.c ---- */

void sn_gpus_kfd(snug_gpus *gpus);
/* name NULL: no NVML. */
void sn_gpus_nvml(snug_gpus *gpus, const char *name);

/* ---- proc.c: facts of the processes that are shown ---- */

void sn_gpus_facts(snug_gpus *gpus, sn_gpus_proc *proc);
/* The facts of every process that a source names. */
void sn_gpus_facts_of_holders(snug_gpus *gpus);
/* Real uid from /proc/P/status; -1 unknown. n_levels: pid namespaces that it is in, 0 unknown. */
int64_t sn_gpus_uid(const sn_gpus_root *root, int64_t pid, int *n_levels);
/* The container that the text of a cgroup file names; false, and "" in out, if none. */
bool sn_gpus_container_name(const char *cgroup, char *out, size_t n);
const char *sn_gpus_user(snug_gpus *gpus, int64_t uid);
/* "ends the desktop session" and the like; NULL: no such process. */
const char *sn_gpus_session_role(const char *comm);
/* idle_seconds of each process, from an earlier snapshot. */
void sn_gpus_idle(snug_gpus *gpus, const snug_gpus *previous);
/* The caller's ancestors and workers without a parent. */
void sn_gpus_relations(snug_gpus *gpus);

/* ---- ram.c, merge.c, json.c, end.c ---- */

/* The proportional set size, or the resident one (*is_rss) where it cannot be read. */
uint64_t sn_gpus_host_bytes(const sn_gpus_root *root, const sn_gpus_proc *proc, bool *is_rss);
void sn_gpus_ram(snug_gpus *gpus, size_t n_processes);
void sn_gpus_merge(snug_gpus *gpus);
void sn_gpus_candidates(snug_gpus *gpus);
/* Fills a public process from what is known of proc. */
void sn_gpus_show(snug_gpus *gpus, snug_gpus_process *out, sn_gpus_proc *proc);
/* Why a process with these facts may not be ended by uid; false: it may. */
bool sn_gpus_refusal(const snug_gpus *gpus, const sn_gpus_proc *proc, int64_t owner, uint64_t uid,
                     char *out, size_t n);

#endif
