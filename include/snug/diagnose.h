/* SPDX-License-Identifier: Apache-2.0
 *
 * diagnose.h - what went wrong: from the text that a training run of any framework left behind to
 * causes with their evidence, the arithmetic, and what to do about them.
 *
 *     snug_diagnosis *d;
 *     if (snug_diagnosis_new(&d, NULL, &err)) ...
 *     snug_diagnosis_feed_file(d, "train.log", &err);
 *     snug_diagnosis_finish(d, &err);
 *     const snug_cause *best = snug_diagnosis_cause(d, 0);      // "other-process", 0.9
 *     snug_diagnosis_free(d);
 *
 * Memory is constant whatever the size of the text (under 16 MiB).
 * Ownership: everything that a getter returns belongs to the diagnosis and lives until its free.
 * Threads: one diagnosis, one thread at a time.
 */
#ifndef SNUG_DIAGNOSE_H
#define SNUG_DIAGNOSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "snug/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* X(identifier, name in JSON, one line in plain words). The order is that of the documentation. */
#define SNUG_CAUSE_LIST(X)                                                                         \
    X(SNUG_CAUSE_BATCH, "batch-too-large", "one step's activations do not fit")                    \
    X(SNUG_CAUSE_MODEL, "model-too-large", "weights, gradients and optimizer alone do not fit")    \
    X(SNUG_CAUSE_OTHER_PROCESS, "other-process", "somebody else has the card's memory")            \
    X(SNUG_CAUSE_DATASET, "whole-dataset", "the whole data set is one array or constant")          \
    X(SNUG_CAUSE_HOST_LOADER, "host-loader", "loading and decoding used up the host's memory")     \
    X(SNUG_CAUSE_CACHE, "shuffle-or-cache-buffer", "a shuffle buffer or cache exceeds the RAM")    \
    X(SNUG_CAUSE_SHM, "shared-memory", "shared memory (/dev/shm) is too small")                    \
    X(SNUG_CAUSE_LEAK_GRAPH, "leak-graph", "graphs, autograd history or models are kept alive")    \
    X(SNUG_CAUSE_LEAK_HISTORY, "leak-history", "losses or results are kept on the device")         \
    X(SNUG_CAUSE_FRAGMENTATION, "fragmentation", "enough is free, but in no block large enough")   \
    X(SNUG_CAUSE_WORKSPACE, "workspace", "a convolution's scratch memory, no tensor")              \
    X(SNUG_CAUSE_CAP, "growth-or-cap", "a cap or a greedy pool, no real shortage")                 \
    X(SNUG_CAUSE_GRAPHDEF, "graphdef-2gb", "protobuf's limit of 2 GB")                             \
    X(SNUG_CAUSE_LIBRARY, "library-mismatch", "a library of the wrong version")                    \
    X(SNUG_CAUSE_INPUT, "corrupt-input", "an input file is damaged")                               \
    X(SNUG_CAUSE_UNKNOWN, "unknown", "the text does not decide")

typedef struct snug_diagnosis snug_diagnosis;

typedef enum snug_cause_id {
#define SNUG_CAUSE_ENUM(id, name, words) id,
    SNUG_CAUSE_LIST(SNUG_CAUSE_ENUM)
#undef SNUG_CAUSE_ENUM
        SNUG_N_CAUSES
} snug_cause_id;

/* A line of the input, cleaned of colours and control bytes, cut at 400 bytes. */
typedef struct snug_evidence {
    const char *source; /* "train.log"; "-" for standard input */
    uint64_t line;      /* from 1; 0: not a line of a text (a measurement) */
    const char *text;
} snug_evidence;

typedef struct snug_cause_fix {
    const char *action; /* the line of code or the command to type ("do" in JSON) */
    const char *why;    /* what it gives */
} snug_cause_fix;

typedef struct snug_cause {
    snug_cause_id id;
    const char *name;
    double confidence; /* 0..1; above 0.5 only if decisive */
    bool decisive;     /* a rule that excludes the look-alikes fired */
    const snug_evidence *evidence;
    size_t n_evidence;
    const char *explanation; /* plain words with the arithmetic */
    const snug_cause_fix *fixes;
    size_t n_fixes;
    const char *check; /* what to run to be sure; "" if nothing */
} snug_cause;

/* Popular advice that does not help here, and the reason. */
typedef struct snug_useless {
    const char *advice, *why;
} snug_useless;

typedef enum snug_number_kind {
    SNUG_NUMBER_BYTES,
    SNUG_NUMBER_COUNT,
    SNUG_NUMBER_REAL,
    SNUG_NUMBER_FLAG, /* count is 0 or 1 */
    SNUG_NUMBER_TEXT,
    SNUG_NUMBER_SHAPE
} snug_number_kind;

/* A number that the text gives or that follows from it. One that it does not give is not listed. */
typedef struct snug_number {
    const char *name; /* "requested_bytes" */
    snug_number_kind kind;
    uint64_t count; /* BYTES, COUNT, FLAG */
    double real;
    const char *text;
    int64_t dims[8]; /* SHAPE, outermost first */
    size_t n_dims;
    uint64_t line; /* where it was read; 0: computed or measured */
} snug_number;

/* A card as nvidia-smi or a framework listed it; absent figures are UINT64_MAX. */
typedef struct snug_diagnosis_gpu {
    int index;
    const char *name; /* "" if not said */
    uint64_t used_bytes, total_bytes;
} snug_diagnosis_gpu;

typedef struct snug_diagnosis_options {
    size_t struct_size;
    /* What the reader uses, where the text does not say: "tensorflow", "pytorch", ...; NULL: from
     * the text. Picks the wording of fixes. */
    const char *framework;
} snug_diagnosis_options;

#define SNUG_DIAGNOSIS_OPTIONS_INIT                                                                \
    {                                                                                              \
        sizeof(snug_diagnosis_options), NULL                                                       \
    }

/* An empty diagnosis. options NULL: defaults. SNUG_E_MEMORY, SNUG_E_USAGE. */
SNUG_API snug_status snug_diagnosis_new(snug_diagnosis **out, const snug_diagnosis_options *options,
                                        snug_error *err);
/* The next n bytes of the text called source; any cut is right, also in the middle of a line. A
 * different source name, or NULL bytes with n 0, ends the text before. SNUG_E_MEMORY;
 * SNUG_E_USAGE after finish. */
SNUG_API snug_status snug_diagnosis_feed(snug_diagnosis *d, const char *source, const void *bytes,
                                         size_t n, snug_error *err);
/* A whole text file, streamed ("-": standard input). SNUG_E_NOT_FOUND, SNUG_E_IO, SNUG_E_MEMORY. */
SNUG_API snug_status snug_diagnosis_feed_file(snug_diagnosis *d, const char *path, snug_error *err);
/* A file of any kind, by its name and first bytes: a text log (as feed_file), a notebook (.ipynb),
 * a Python source (read, never run), TensorFlow's TF_BFC_MEMORY_DUMP, PyTorch's memory snapshot as
 * JSON. A pickle is refused. As feed_file, and SNUG_E_INPUT, SNUG_E_UNSUPPORTED. */
SNUG_API snug_status snug_diagnosis_read_file(snug_diagnosis *d, const char *path, snug_error *err);
/* Applies the rules; after it only getters are called. SNUG_E_MEMORY. */
SNUG_API snug_status snug_diagnosis_finish(snug_diagnosis *d, snug_error *err);

/* ---- a run that is watched ----
 *
 *     snug_watch_new(&w, pid, NULL, &err);
 *     while (the process runs) { wait snug_watch_wait(w) seconds; snug_watch_sample(w); }
 *     snug_watch_finish(w, d, &end, "python train.py", &err);      // then snug_diagnosis_finish
 *
 * The caller starts the process, passes its streams on and waits for it; the watch only reads
 * /proc, /sys/fs/cgroup and /dev/shm. Threads: one watch, one thread at a time. */
typedef struct snug_watch snug_watch;

typedef struct snug_watch_options {
    size_t struct_size;
    const char *root; /* before every path of /proc, /sys and /dev; NULL: the real ones */
    /* optional: bytes of GPU memory that these processes hold; false: not known. NULL: not asked.
     */
    bool (*gpu_bytes)(void *context, const int *pids, size_t n_pids, uint64_t *bytes);
    void *context;
} snug_watch_options;

#define SNUG_WATCH_OPTIONS_INIT                                                                    \
    {                                                                                              \
        sizeof(snug_watch_options), NULL, NULL, NULL                                               \
    }

/* How the process ended: one of exit_code and signal counts. */
typedef struct snug_watch_end {
    int exit_code;
    int signal;          /* 0: it exited */
    uint64_t peak_bytes; /* ru_maxrss in bytes; 0: not known */
} snug_watch_end;

/* Watches process pid and its descendants. SNUG_E_MEMORY, SNUG_E_USAGE. */
SNUG_API snug_status snug_watch_new(snug_watch **out, int pid, const snug_watch_options *options,
                                    snug_error *err);
/* Seconds until the next sample is due, 0 if now; chosen so that watching takes under 1 % of a
 * core. */
SNUG_API double snug_watch_wait(const snug_watch *w);
/* Takes a sample now. SNUG_E_MEMORY; a process that is gone is no error. */
SNUG_API snug_status snug_watch_sample(snug_watch *w, snug_error *err);
/* What the process printed: counters of steps are looked for in it ("step 120", "37/500"). */
SNUG_API void snug_watch_output(snug_watch *w, const void *bytes, size_t n);
/* Adds to d what the measurements say; command names the run in d. SNUG_E_MEMORY. */
SNUG_API snug_status snug_watch_finish(snug_watch *w, snug_diagnosis *d, const snug_watch_end *end,
                                       const char *command, snug_error *err);
/* One or two sentences: how it ended, the peak, against what limit. After finish. */
SNUG_API const char *snug_watch_summary(const snug_watch *w);
/* A page with memory over time and the causes of d (finished), without any reference to other
 * files; owned by w. After finish. SNUG_E_MEMORY. */
SNUG_API snug_status snug_watch_html(snug_watch *w, const snug_diagnosis *d, const char **html,
                                     snug_error *err);
/* Processor seconds that the watch itself took, and seconds watched. */
SNUG_API void snug_watch_cost(const snug_watch *w, double *cpu_seconds, double *seconds);
/* NULL-safe. */
SNUG_API void snug_watch_free(snug_watch *w);

/* ---- what the kernel killed lately ---- */

typedef struct snug_kill {
    int64_t pid;
    char name[32];
    uint64_t anonymous_bytes, file_bytes, shared_bytes; /* resident when it was killed */
    bool by_group;      /* a control group's limit, not the machine's */
    double seconds_ago; /* negative: not known */
    char line[400];     /* as the kernel wrote it */
} snug_kill;

typedef struct snug_kills snug_kills;
/* Reads root/dev/kmsg, else the kernel's ring buffer, else root/var/log/{kern.log,messages,syslog},
 * and the control group's counter. What may not be read is no error. SNUG_E_MEMORY. */
SNUG_API snug_status snug_kills_read(snug_kills **out, const char *root, snug_error *err);
/* Text of a kernel log from elsewhere (journalctl -k). SNUG_E_MEMORY. */
SNUG_API snug_status snug_kills_feed(snug_kills *k, const char *text, size_t n, snug_error *err);
SNUG_API size_t snug_kills_n(const snug_kills *k);
/* Newest first; NULL beyond the last. */
SNUG_API const snug_kill *snug_kills_at(const snug_kills *k, size_t i);
/* Processes of this control group killed for memory since it was made; false: not known. */
SNUG_API bool snug_kills_of_group(const snug_kills *k, uint64_t *n);
/* Processes killed for memory since boot, by the kernel's own counter; false: not known. */
SNUG_API bool snug_kills_since_boot(const snug_kills *k, uint64_t *n);
/* Whether a kernel log could be read at all. */
SNUG_API bool snug_kills_log_read(const snug_kills *k);
/* Feeds the newest kill's lines to d. SNUG_E_MEMORY. */
SNUG_API snug_status snug_kills_diagnose(const snug_kills *k, snug_diagnosis *d, snug_error *err);
SNUG_API void snug_kills_free(snug_kills *k); /* NULL-safe */

/* Causes, best first. There is always at least one: SNUG_CAUSE_UNKNOWN if the text does not decide,
 * with confidence 0 if it shows no sign of trouble at all. NULL beyond the last. */
SNUG_API size_t snug_diagnosis_n_causes(const snug_diagnosis *d);
SNUG_API const snug_cause *snug_diagnosis_cause(const snug_diagnosis *d, size_t i);
SNUG_API size_t snug_diagnosis_n_useless(const snug_diagnosis *d);
SNUG_API const snug_useless *snug_diagnosis_useless(const snug_diagnosis *d, size_t i);
SNUG_API size_t snug_diagnosis_n_numbers(const snug_diagnosis *d);
SNUG_API const snug_number *snug_diagnosis_number(const snug_diagnosis *d, size_t i);
/* By name; NULL if the text does not give it. */
SNUG_API const snug_number *snug_diagnosis_number_named(const snug_diagnosis *d, const char *name);
SNUG_API size_t snug_diagnosis_n_gpus(const snug_diagnosis *d);
SNUG_API const snug_diagnosis_gpu *snug_diagnosis_gpu_at(const snug_diagnosis *d, size_t i);
/* "pytorch", "tensorflow", "jax", "darknet", "numpy", ...; NULL if the text does not say. */
SNUG_API const char *snug_diagnosis_framework(const snug_diagnosis *d);
/* "cuda:0", "GPU:0", "cpu"; NULL if the text does not say. */
SNUG_API const char *snug_diagnosis_device(const snug_diagnosis *d);
/* Lines and bytes read so far, all sources. */
SNUG_API uint64_t snug_diagnosis_n_lines(const snug_diagnosis *d);
SNUG_API uint64_t snug_diagnosis_n_bytes(const snug_diagnosis *d);
/* The report of `snug diagnose --json` as one line of text with a NUL, owned by d. SNUG_E_MEMORY.
 */
SNUG_API snug_status snug_diagnosis_json(snug_diagnosis *d, const char **text, snug_error *err);
/* "batch-too-large"; "?" for a value that is no cause. Static storage. */
SNUG_API const char *snug_cause_name(snug_cause_id id);
/* The cause in one line of plain words. Static storage. */
SNUG_API const char *snug_cause_words(snug_cause_id id);
/* NULL-safe. */
SNUG_API void snug_diagnosis_free(snug_diagnosis *d);

#ifdef __cplusplus
}
#endif
#endif
