/* SPDX-License-Identifier: Apache-2.0
 *
 * watch.c - samples of a running tree of processes.
 *
 * 1. Samples may cost CREDIT seconds at once, for short runs, and SHARE of the time since then:
 * under 1 % of a core. 2. At most SN_WATCH_SAMPLES samples are kept: when they are full every
 * second one goes and from then on only every second (fourth, ...) is kept.
 */
#include <assert.h>
#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "diagnose/watch.h"

#define CREDIT 0.04
#define SHARE 0.006
#define LONGEST 2.0
#define PSS_EVERY 3.0

static double cpu_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

snug_status snug_watch_new(snug_watch **out, int pid, const snug_watch_options *options,
                           snug_error *err)
{
    *out = NULL;
    if (pid <= 0)
        return sn_fail(err, SNUG_E_USAGE, "process %d cannot be watched", pid);
    snug_watch *w = sn_alloc(SN_TAG_DIAGNOSE, sizeof *w);
    if (!w)
        return sn_fail(err, SNUG_E_MEMORY, "no memory to watch process %d", pid);
    uint64_t unused;
    if (options && options->root)
        snprintf(w->root, sizeof w->root, "%s", options->root);
    if (options) {
        w->gpu_bytes = options->gpu_bytes;
        w->context = options->context;
    }
    w->pid = pid;
    w->keep_every = 1;
    w->begun = sn_now();
    sn_buf_init(&w->html, SN_TAG_DIAGNOSE);
    sn_cgroup_of(&w->group, w->root, pid);
    sn_cgroup_limit(&w->group, w->root, &w->limit_bytes);
    sn_proc_memory_info(w->root, &w->total_bytes, &unused);
    w->has_kills = sn_cgroup_kills(&w->group, w->root, &w->kills_before);
    w->has_boot_kills = sn_proc_kills(w->root, &w->boot_kills_before);
    if (!sn_shm(w->root, &w->shm_total, &w->shm_before))
        w->shm_total = w->shm_before = 0;
    *out = w;
    return SNUG_OK;
}

double snug_watch_wait(const snug_watch *w)
{
    double left = w->due - sn_now();
    return left > 0 ? left : 0;
}

uint64_t sn_watch_limit(const snug_watch *w)
{
    if (w->limit_bytes && (!w->total_bytes || w->limit_bytes < w->total_bytes))
        return w->limit_bytes;
    return w->total_bytes;
}

static sn_seen *seen(snug_watch *w, const sn_proc *p)
{
    for (size_t i = 0; i < w->seen.n; i++)
        if (w->seen.at[i].pid == p->pid && w->seen.at[i].start == p->start)
            return &w->seen.at[i];
    if (w->seen.n == SN_WATCH_PROCESSES) { /* the smallest makes room */
        size_t least = 0;
        for (size_t i = 0; i < w->seen.n; i++)
            if (!w->seen.at[i].main && w->seen.at[i].peak_bytes < w->seen.at[least].peak_bytes)
                least = i;
        w->seen.at[least] = w->seen.at[--w->seen.n];
    }
    sn_seen fresh = {.pid = p->pid, .start = p->start, .main = p->pid == w->pid};
    memcpy(fresh.name, p->name, sizeof fresh.name);
    return SN_VEC_PUSH(SN_TAG_DIAGNOSE, &w->seen, fresh) ? &w->seen.at[w->seen.n - 1] : NULL;
}

/* "Max address space  1024  2048  bytes": the soft limit, unless unlimited. */
static void read_limits(snug_watch *w, int pid)
{
    char text[4096];
    static const char *const names[] = {"Max address space", "Max data size"};
    if (sn_proc_read(text, sizeof text, w->root, "/proc/%d/limits", pid) <= 0)
        return;
    for (size_t i = 0; i < SN_LEN(names); i++) {
        const char *p = strstr(text, names[i]);
        if (!p)
            continue;
        p += strlen(names[i]);
        while (*p == ' ')
            p++;
        uint64_t v = isdigit((unsigned char)*p) ? strtoull(p, NULL, 10) : 0;
        if (v && (!w->address_limit || v < w->address_limit))
            w->address_limit = v;
    }
}

static void count_files(snug_watch *w)
{
    char path[512];
    snprintf(path, sizeof path, "%s/proc/%d/fd", w->root, w->pid);
    DIR *dir = opendir(path);
    uint64_t n = 0;
    if (!dir)
        return;
    for (struct dirent *e; (e = readdir(dir));)
        n += e->d_name[0] != '.';
    closedir(dir);
    w->open_files = SN_MAX(w->open_files, n);
}

/* What a process adds to the tree: its Pss as far as known (scaled from the last reading), else its
 * private pages, and shared memory only where it is the first to be counted. */
static uint64_t share_of(const sn_proc *p, uint64_t *shared_seen)
{
    if (p->pss_bytes)
        return p->pss_bytes;
    uint64_t own = p->resident_bytes > p->shared_bytes ? p->resident_bytes - p->shared_bytes : 0;
    uint64_t more = p->shared_bytes > *shared_seen ? p->shared_bytes - *shared_seen : 0;
    *shared_seen = SN_MAX(*shared_seen, p->shared_bytes);
    return own + more;
}

static void measure_tree(snug_watch *w, sn_sample *s, bool pss)
{
    uint64_t shared = 0;
    for (size_t i = 0; i < w->tree.n; i++) {
        sn_proc *p = &w->tree.at[i];
        uint64_t before = p->resident_bytes, known = p->pss_bytes, v;
        char text[4096];
        if (!sn_proc_memory(p, w->root))
            continue;
        if (w->tree.n > 1 && (pss || !known)) /* a fresh child shares nearly all its pages */
            sn_proc_pss(p, w->root);
        else if (known && before) /* moves with what is resident, until it is read again */
            p->pss_bytes = (uint64_t)((double)known * (double)p->resident_bytes / (double)before);
        uint64_t bytes = share_of(p, &shared);
        s->tree_bytes += bytes;
        s->n_processes++;
        if (p->pid == w->pid)
            s->main_bytes = p->resident_bytes;
        if (p->pid == w->pid || w->tree.n == 1)
            s->virtual_bytes = p->virtual_bytes;
        w->vm_peak = SN_MAX(w->vm_peak, p->virtual_peak_bytes);
        if (sn_proc_read(text, sizeof text, w->root, "/proc/%d/io", p->pid) > 0 &&
            sn_proc_field(text, "rchar", &v))
            s->read_bytes += v;
        sn_seen *at = seen(w, p);
        if (at) {
            memcpy(at->name, p->name, sizeof at->name);
            at->peak_bytes = SN_MAX(at->peak_bytes, bytes);
        }
    }
}

/* When the tree is largest, what each process holds is what a verdict names. */
static void note_peak(snug_watch *w, const sn_sample *s)
{
    uint64_t shared = 0;
    if (s->tree_bytes <= w->peak_bytes)
        return;
    w->peak_bytes = s->tree_bytes;
    w->peak_seconds = s->seconds;
    for (size_t i = 0; i < w->seen.n; i++)
        w->seen.at[i].bytes_at_peak = 0;
    for (size_t i = 0; i < w->tree.n; i++) {
        sn_seen *at = seen(w, &w->tree.at[i]);
        if (at)
            at->bytes_at_peak = share_of(&w->tree.at[i], &shared);
    }
}

static bool keep(snug_watch *w, const sn_sample *s)
{
    if (++w->skipped < w->keep_every)
        return true;
    w->skipped = 0;
    if (w->samples.n == SN_WATCH_SAMPLES) { /* 2 */
        size_t n = 0;
        for (size_t i = 0; i < w->samples.n; i += 2)
            w->samples.at[n++] = w->samples.at[i];
        w->samples.n = n;
        w->keep_every *= 2;
    }
    assert(w->samples.n < SN_WATCH_SAMPLES);
    return SN_VEC_PUSH(SN_TAG_DIAGNOSE, &w->samples, *s);
}

static uint64_t steps(const snug_watch *w)
{
    uint64_t most = 0;
    for (size_t i = 0; i < SN_WATCH_COUNTERS; i++)
        most = SN_MAX(most, w->counters[i].sum);
    return most;
}

static void measure_around(snug_watch *w, sn_sample *s)
{
    uint64_t total, used, kills;
    if (sn_shm(w->root, &total, &used)) {
        w->shm_total = total;
        s->shm_bytes = used;
    }
    if (!sn_cgroup_usage(&w->group, w->root, &s->group_bytes))
        s->group_bytes = 0;
    if (w->has_kills && sn_cgroup_kills(&w->group, w->root, &kills) && kills > w->kills_before)
        w->kills = SN_MAX(w->kills, kills - w->kills_before);
    if (w->gpu_bytes && w->tree.n) {
        int pids[128];
        size_t n = SN_MIN(w->tree.n, SN_LEN(pids));
        for (size_t i = 0; i < n; i++)
            pids[i] = w->tree.at[i].pid;
        if (w->gpu_bytes(w->context, pids, n, &s->gpu_bytes))
            w->gpu_peak = SN_MAX(w->gpu_peak, s->gpu_bytes);
    }
}

/* The process may have moved to another control group since (a launcher's child). */
static void look_again(snug_watch *w)
{
    sn_cgroup group;
    sn_cgroup_of(&group, w->root, w->pid);
    /* A process that is ending is in the root group: no move to a group above. */
    if (!group.path[0] || sn_str_starts(w->group.path, group.path))
        return;
    w->group = group;
    w->limit_bytes = 0;
    sn_cgroup_limit(&w->group, w->root, &w->limit_bytes);
    w->has_kills = sn_cgroup_kills(&w->group, w->root, &w->kills_before);
}

snug_status snug_watch_sample(snug_watch *w, snug_error *err)
{
    double cpu = cpu_now(), now = sn_now();
    sn_sample s = {.seconds = now - w->begun, .steps = steps(w)};
    bool good = true;
    if (now >= w->tree_due) {
        good = sn_proc_tree_read(&w->tree, w->root, w->pid);
        look_again(w);
        for (size_t i = 0; i < w->tree.n; i++)
            read_limits(w, w->tree.at[i].pid);
        count_files(w);
    }
    bool pss = now >= w->pss_due;
    measure_tree(w, &s, pss);
    measure_around(w, &s);
    if (w->limit_bytes &&
        s.group_bytes) /* between two readings of Pss shared pages may count twice */
        s.tree_bytes = SN_MIN(s.tree_bytes, SN_MAX(s.group_bytes, s.main_bytes));
    note_peak(w, &s);
    good = good && (!w->tree.n || !s.n_processes || keep(w, &s));
    double took = cpu_now() - cpu;
    w->cost += took;
    double shortest = s.seconds < 1 ? 0.01 : s.seconds < 5 ? 0.02 : s.seconds < 60 ? 0.05 : 0.2;
    double spent = (w->cost - CREDIT) / SHARE - s.seconds; /* 1: until then the budget is used up */
    w->due = now + SN_MIN(SN_MAX(shortest, spent), LONGEST);
    if (now >= w->tree_due)
        w->tree_due = now + SN_MIN(SN_MAX(s.seconds < 3 ? 0.06 : 0.5, took * 100), 10.0);
    if (pss)
        w->pss_due = now + SN_MIN(SN_MAX(s.seconds < 3 ? 0.25 : PSS_EVERY, took * 200), 60.0);
    return good ? SNUG_OK : sn_fail(err, SNUG_E_MEMORY, "no memory for another sample");
}

void snug_watch_cost(const snug_watch *w, double *cpu_seconds, double *seconds)
{
    *cpu_seconds = w->cost;
    *seconds = sn_now() - w->begun;
}

/* ---- counters of steps in the output ---- */

static void count_step(snug_watch *w, uint64_t key, uint64_t value)
{
    sn_counter *at = NULL, *least = &w->counters[0];
    for (size_t i = 0; i < SN_WATCH_COUNTERS; i++) {
        if (w->counters[i].key == key)
            at = &w->counters[i];
        if (w->counters[i].sum < least->sum)
            least = &w->counters[i];
    }
    if (!at) {
        *least = (sn_counter){.key = key, .last = value};
        return;
    }
    if (value > at->last)
        at->sum += value - at->last;
    else if (value < at->last)
        at->sum += SN_MIN(value, 1U); /* a new epoch begins */
    at->last = value;
}

static bool digits(const char **p, uint64_t *value)
{
    const char *s = *p;
    *value = 0;
    while (isdigit((unsigned char)*s) && s - *p < 12)
        *value = *value * 10 + (uint64_t)(*s++ - '0');
    bool any = s > *p && !isdigit((unsigned char)*s);
    *p = s;
    return any;
}

static void read_counters(snug_watch *w, const char *line)
{
    static const char *const words[] = {"step", "iter", "iteration", "batch", "epoch", "it"};
    static const char *const troubles[] = {
        "MemoryError",   "bad_alloc",     "Cannot allocate memory", "Unable to allocate",
        "out of memory", "Out of memory", "cannot allocate memory", "can't allocate memory"};
    for (size_t i = 0; i < SN_LEN(troubles); i++)
        if (strstr(line, troubles[i]))
            w->says_no_memory = true;
    for (const char *p = line; *p; p++) {
        uint64_t value, of;
        bool starts = p == line || !isalnum((unsigned char)p[-1]);
        if (starts && isdigit((unsigned char)*p)) {
            const char *q = p;
            if (digits(&q, &value) && *q == '/') {
                const char *r = q + 1;
                if (digits(&r, &of) && of > 1 && value <= of && *r != '/')
                    count_step(w, of, value);
            }
            p = q > p ? q - 1 : p;
            continue;
        }
        for (size_t i = 0; starts && i < SN_LEN(words); i++) {
            size_t n = strlen(words[i]);
            if (strncasecmp(p, words[i], n) || isalpha((unsigned char)p[n]))
                continue;
            const char *q = p + n;
            while (*q == ' ' || *q == ':' || *q == '=' || *q == '#' || *q == '[')
                q++;
            if (q > p + n && digits(&q, &value) && *q != '/' && *q != '.')
                count_step(w, UINT64_MAX - i, value);
        }
    }
}

void snug_watch_output(snug_watch *w, const void *bytes, size_t n)
{
    const char *p = bytes;
    for (size_t i = 0; i < n; i++) {
        char c = p[i];
        if (c == '\n' || c == '\r') {
            w->line[w->n_line] = 0;
            if (w->n_line)
                read_counters(w, w->line);
            w->n_line = 0;
        } else if (w->n_line + 1 < sizeof w->line) {
            w->line[w->n_line++] = c ? c : ' ';
        }
    }
}

void snug_watch_free(snug_watch *w)
{
    if (!w)
        return;
    sn_proc_tree_free(&w->tree);
    SN_VEC_FREE(&w->samples);
    SN_VEC_FREE(&w->seen);
    sn_buf_deinit(&w->html);
    sn_free(w);
}
