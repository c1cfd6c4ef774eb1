/* SPDX-License-Identifier: Apache-2.0
 *
 * gpus.h - who holds the memory: every process that holds bytes of a graphics card or much of the
 * RAM, from all sources at once (NVML, DRM fdinfo, AMD KFD, open device files, procfs), and ending
 * such a process safely.
 *
 *     snug_gpus *now;
 *     if (snug_gpus_new(&now, NULL, &err)) ...
 *     for (size_t i = 0; i < snug_gpus_n_cards(now); i++)
 *         puts(snug_gpus_card_at(now, i)->name);
 *     snug_gpus_free(now);
 *
 * A number that no source tells is SNUG_BYTES_UNKNOWN (or negative, or NULL), never 0.
 * Ownership: everything that a getter returns belongs to the snapshot and lives until its free.
 * Threads: one snapshot, one thread at a time; several snapshots are independent.
 */
#ifndef SNUG_GPUS_H
#define SNUG_GPUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "snug/error.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SNUG_BYTES_UNKNOWN UINT64_MAX

typedef struct snug_gpus snug_gpus;

typedef struct snug_gpus_options {
    size_t struct_size;        /* sizeof(snug_gpus_options) */
    const char *root;          /* folder that stands for "/"; NULL: "/" */
    const char *nvml;          /* NVIDIA's library; "": none. NULL: libnvidia-ml.so.1 when root is
                                  "/", none under another root (it would describe this machine) */
    const snug_gpus *previous; /* an earlier snapshot: tells idle from running; NULL: none */
    size_t n_ram_processes;    /* largest holders of RAM to list; 0: 10 */
    bool processes_only;       /* no cards, no memory: only good as a later one's `previous` */
    uint32_t uid;              /* whose processes may be closed; 0: the caller's real user's */
} snug_gpus_options;

#define SNUG_GPUS_OPTIONS_INIT                                                                     \
    {                                                                                              \
        sizeof(snug_gpus_options), NULL, NULL, NULL, 0, false, 0                                   \
    }

/* One process as a holder, of one card's memory or of RAM. */
typedef struct snug_gpus_process {
    int64_t pid, parent;   /* parent 0: unknown */
    const char *user;      /* NULL: unknown */
    uint64_t bytes;        /* held on this card (in the RAM list: of RAM) */
    uint64_t host_bytes;   /* of RAM: proportional set size, or resident where host_is_rss */
    bool host_is_rss;      /* counts shared pages in full: an upper bound */
    double age_seconds;    /* negative: unknown */
    double idle_seconds;   /* neither it nor what it started has used a processor for so long at
                              least; negative: unknown */
    const char *what;      /* "python (tensorflow)", "jupyter kernel (torch)", "Xorg", "snug" */
    const char *state;     /* "running" "idle" "sleeping" "stopped" "zombie" "orphan worker"
                              "other container" "gone" "unknown" */
    const char *source;    /* "nvml" "fdinfo" "kfd" "fd-only"; in the RAM list "pss" "rss" */
    const char *command;   /* printable, cut at 500 bytes; NULL: unknown */
    const char *container; /* what the control group calls it; NULL: none or unknown */
    int64_t shared_with;   /* the process that opened the client which this one only inherited (its
                              bytes are counted there); 0: none */
    const char *refusal;   /* why snug_gpus_end would not end it; NULL: it would */
} snug_gpus_process;

typedef struct snug_gpus_card {
    const char *id;                     /* "nvidia:0" "amd:0" "intel:1" */
    const char *name;                   /* never NULL */
    const char *address;                /* "0000:01:00.0", or the platform device's name */
    const char *driver;                 /* NULL: unknown */
    uint64_t total_bytes;               /* of the card */
    uint64_t used_bytes;                /* as the driver counts, whoever holds them */
    uint64_t reserved_bytes;            /* kept by the driver itself, not in used_bytes */
    uint64_t explained_bytes;           /* sum of the processes' known bytes */
    uint64_t unexplained_bytes;         /* used less explained, at least 0 */
    bool unified;                       /* its memory is the RAM */
    int display;                        /* drives a display: 1 yes, 0 no, -1 unknown */
    const snug_gpus_process *processes; /* most bytes first, unknown ones last */
    size_t n_processes;
} snug_gpus_card;

typedef struct snug_gpus_ram {
    uint64_t total_bytes, available_bytes;
    uint64_t shm_bytes, shm_total_bytes;   /* /dev/shm: in use, and its size */
    uint64_t swap_bytes, swap_total_bytes; /* in use, and its size */
    uint64_t limit_bytes;                  /* our control group's; SNUG_BYTES_UNKNOWN: no limit */
    uint64_t limit_used_bytes;             /* what the limited group uses */
    const snug_gpus_process *processes;    /* most bytes first */
    size_t n_processes;
} snug_gpus_ram;

/* A process that could be closed: the caller's own, and idle, orphaned, stopped or dead. */
typedef struct snug_gpus_candidate {
    int64_t pid;               /* what to end (of a zombie: its parent) */
    const char *how;           /* "idle 12 min: close it" */
    uint64_t frees_bytes;      /* on cards and in RAM together, as far as known */
    uint64_t frees_card_bytes; /* on cards; may be unknown */
    uint64_t frees_host_bytes; /* in RAM; may be unknown */
} snug_gpus_candidate;

/* Looks now. SNUG_E_USAGE (struct_size), SNUG_E_NOT_FOUND (no such root, or no proc in it),
 * SNUG_E_MEMORY. A source that is absent or refuses is a note, not an error. */
SNUG_API snug_status snug_gpus_new(snug_gpus **out, const snug_gpus_options *options,
                                   snug_error *err);
SNUG_API size_t snug_gpus_n_cards(const snug_gpus *gpus);
/* NULL if there is no such card. */
SNUG_API const snug_gpus_card *snug_gpus_card_at(const snug_gpus *gpus, size_t i);
SNUG_API const snug_gpus_ram *snug_gpus_ram_of(const snug_gpus *gpus);
SNUG_API size_t snug_gpus_n_candidates(const snug_gpus *gpus);
SNUG_API const snug_gpus_candidate *snug_gpus_candidate_at(const snug_gpus *gpus, size_t i);
/* Whole sentences about what could not be seen and how to see it. */
SNUG_API size_t snug_gpus_n_notes(const snug_gpus *gpus);
SNUG_API const char *snug_gpus_note_at(const snug_gpus *gpus, size_t i);
/* The whole snapshot as one JSON object; unknown numbers are null. SNUG_E_MEMORY. The text is made
 * once and belongs to the snapshot. */
SNUG_API snug_status snug_gpus_json(const char **out, snug_gpus *gpus, snug_error *err);

typedef enum snug_gpus_verdict {
    SNUG_GPUS_WOULD_END, /* dry run: it would be ended */
    SNUG_GPUS_ENDED,     /* ended by TERM */
    SNUG_GPUS_KILLED,    /* did not end by TERM, ended by KILL */
    SNUG_GPUS_REFUSED,   /* not to be ended: text says why, and what to do instead */
    SNUG_GPUS_GONE,      /* no such process (any more) */
    SNUG_GPUS_FAILED     /* could not be signalled, or did not end even by KILL */
} snug_gpus_verdict;

typedef struct snug_gpus_target {
    int64_t pid;          /* in */
    uint64_t start_ticks; /* in: the start time (field 22 of its stat) that it must have; 0: the one
                             that the snapshot saw */
    snug_gpus_verdict verdict;
    char text[320];      /* one line about this process */
    uint64_t card_bytes; /* what it held on cards when the snapshot was taken; may be unknown */
    uint64_t host_bytes; /* what it held of RAM then; may be unknown */
} snug_gpus_target;

typedef struct snug_gpus_end_options {
    size_t struct_size;
    bool yes;              /* default false: say what would be done, send nothing */
    uint32_t wait_ms;      /* from TERM to KILL; 0: 10000 */
    uint32_t kill_wait_ms; /* after KILL; 0: 5000 */
    uint32_t uid;          /* only processes of this user are ended; 0: as for the snapshot */
} snug_gpus_end_options;

#define SNUG_GPUS_END_OPTIONS_INIT                                                                 \
    {                                                                                              \
        sizeof(snug_gpus_end_options), false, 0, 0, 0                                              \
    }

/* Ends the n targets, or with options->yes false only says what would happen. Each is held by a
 * pidfd before its start time and owner are read again, so that a reused number is never signalled.
 * Never ended: pid 1, kernel threads, the caller and its ancestors, display servers and session
 * managers, another user's processes, zombies (text names the parent).
 * SNUG_E_USAGE: `yes` on a snapshot of another root. SNUG_E_UNSUPPORTED: a kernel without pidfd.
 * The verdicts of single targets are no errors. */
SNUG_API snug_status snug_gpus_end(snug_gpus_target *targets, size_t n, snug_gpus *gpus,
                                   const snug_gpus_end_options *options, snug_error *err);

/* NULL-safe. */
SNUG_API void snug_gpus_free(snug_gpus *gpus);

#ifdef __cplusplus
}
#endif
#endif
