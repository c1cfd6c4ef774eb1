/* SPDX-License-Identifier: Apache-2.0
 *
 * verdict.c - what the measurements of a watched run say about its end.
 *
 * The order of judgement: shared memory full, a limit of the process reached, killed for memory
 * (and by whose doing: workers, a set loaded whole, a leak), a leak in a run that ended otherwise,
 * nothing.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "diagnose/watch.h"

#define MIN_GROWTH (16 * SN_MIB)

typedef struct fit_sums {
    double n, t, y, tt, ty, yy;
} fit_sums;

static void add_point(fit_sums *f, double t, double y)
{
    f->n += 1;
    f->t += t;
    f->y += y;
    f->tt += t * t;
    f->ty += t * y;
    f->yy += y * y;
}

static double slope_of(const fit_sums *f, double *r2)
{
    double tt = f->n * f->tt - f->t * f->t, ty = f->n * f->ty - f->t * f->y,
           yy = f->n * f->yy - f->y * f->y;
    if (tt <= 0 || yy <= 0) {
        *r2 = 0;
        return 0;
    }
    *r2 = ty * ty / (tt * yy);
    return ty / tt;
}

/* The line through the samples from `from` on; false if it is none or does not rise enough. */
static bool straight(const snug_watch *w, size_t from, sn_fit *fit)
{
    const sn_sample *s = w->samples.at;
    size_t n = w->samples.n;
    fit_sums f = {0};
    for (size_t i = from; i < n; i++)
        add_point(&f, s[i].seconds - s[from].seconds, (double)s[i].tree_bytes / 1e6);
    double r2, slope = slope_of(&f, &r2) * 1e6;
    double seconds = s[n - 1].seconds - s[from].seconds, growth = slope * seconds;
    *fit = (sn_fit){.slope = slope,
                    .since = s[from].seconds,
                    .r2 = r2,
                    .growth = growth,
                    .seconds = seconds,
                    .steps = s[n - 1].steps - s[from].steps};
    return r2 >= 0.9 && slope > 0 && growth >= (double)MIN_GROWTH &&
           growth >= 0.15 * (double)w->peak_bytes;
}

bool sn_watch_fit(const snug_watch *w, sn_fit *fit)
{
    size_t n = w->samples.n, begin = 0;
    const sn_sample *s = w->samples.at;
    uint64_t steps = n ? s[n - 1].steps : 0;
    if (n < 8)
        return false;
    /* What comes before the first steps is loading of libraries and data, not a leak. */
    while (steps >= 5 && begin < n && s[begin].steps < SN_MAX(steps / 20, (uint64_t)1))
        begin++;
    if (n - begin < 6)
        return false;
    /* Least squares from begin, from a sixteenth later, ... up to the middle: the first straight
     * one wins. */
    for (size_t k = 0; k <= 8; k++)
        if (straight(w, begin + (n - begin) * k / 16, fit))
            return true;
    return false;
}

/* ---- words ---- */

static const char *bytes(char *out, size_t n, double value)
{
    if (value < 0)
        value = 0;
    if (value >= (double)SN_GIB)
        snprintf(out, n, "%.1f GiB", value / (double)SN_GIB);
    else
        snprintf(out, n, "%.0f MiB", value / (double)SN_MIB);
    return out;
}

static void moment(char *out, size_t n, double seconds)
{
    if (seconds >= 120)
        snprintf(out, n, "minute %.0f", seconds / 60);
    else
        snprintf(out, n, "second %.0f", seconds);
}

/* "growing 26 MiB an iteration since minute 3". */
static void growth_words(char *out, size_t n, const sn_fit *fit)
{
    char rate[32], since[32], whole[32];
    moment(since, sizeof since, fit->since);
    bytes(whole, sizeof whole, fit->growth);
    if (fit->steps >= 5) {
        double step = fit->growth / (double)fit->steps;
        if (step < 0.1 * (double)SN_MIB)
            snprintf(rate, sizeof rate, "%.0f KiB", step / 1024);
        else if (step < 10 * (double)SN_MIB)
            snprintf(rate, sizeof rate, "%.1f MiB", step / (double)SN_MIB);
        else
            bytes(rate, sizeof rate, step);
        snprintf(out, n,
                 "growing %s an iteration since %s (%s in %" PRIu64
                 " iterations, a straight line: R2 %.2f)",
                 rate, since, whole, fit->steps, fit->r2);
    } else {
        bytes(rate, sizeof rate, fit->slope * 60);
        snprintf(out, n, "growing %s a minute since %s (%s in %.0f s, a straight line: R2 %.2f)",
                 rate, since, whole, fit->seconds, fit->r2);
    }
}

/* The highest memory seen. Pages of files that others brought in are resident but not charged to
 * the group, so its limit is the most that can be said. */
static uint64_t peak_of(const snug_watch *w)
{
    uint64_t peak = SN_MAX(w->peak_bytes, w->rusage_peak);
    return w->limit_bytes ? SN_MIN(peak, w->limit_bytes) : peak;
}

/* ---- evidence ---- */

typedef struct workers {
    size_t n;
    uint64_t sum, largest;
    char name[32];
    int pid;
} workers;

/* The processes besides the watched one when memory was highest. A launcher (a shell that waits for
 * one child) is no worker's parent: the largest process counts as the main one then. */
static workers find_workers(const snug_watch *w)
{
    workers found = {0};
    const sn_seen *biggest = NULL;
    uint64_t main_bytes = 0;
    for (size_t i = 0; i < w->seen.n; i++) {
        if (w->seen.at[i].main)
            main_bytes = w->seen.at[i].bytes_at_peak;
        if (!biggest || w->seen.at[i].bytes_at_peak > biggest->bytes_at_peak)
            biggest = &w->seen.at[i];
    }
    for (size_t i = 0; i < w->seen.n; i++) {
        const sn_seen *s = &w->seen.at[i];
        if (s->main || s->bytes_at_peak < 8 * SN_MIB)
            continue;
        found.n++;
        found.sum += s->bytes_at_peak;
        if (s->bytes_at_peak > found.largest) {
            found.largest = s->bytes_at_peak;
            found.pid = s->pid;
            memcpy(found.name, s->name, sizeof found.name);
        }
    }
    if (found.n == 1 && biggest && main_bytes < 16 * SN_MIB)
        found.n = 0; /* a launcher and its one child */
    return found;
}

/* The address space was taken at once and then filled: one array. */
static bool one_block(const snug_watch *w)
{
    size_t n = w->samples.n;
    const sn_sample *s = w->samples.at;
    if (n < 4)
        return false;
    uint64_t first = s[0].main_bytes, last = s[n - 1].main_bytes;
    uint64_t vm0 = s[0].virtual_bytes, vm1 = s[n - 1].virtual_bytes;
    if (last < first + MIN_GROWTH)
        return false;
    for (size_t i = 0; i < n; i++) {
        if (s[i].main_bytes < first + (last - first) / 2)
            continue;
        /* at half of the growth the address space was there already */
        uint64_t grown = s[i].virtual_bytes > vm0 ? s[i].virtual_bytes - vm0 : 0;
        uint64_t whole = vm1 > vm0 ? vm1 - vm0 : 0;
        return whole == 0 ? vm1 > 2 * (last - first) / 2 && vm0 > last - first
                          : grown * 10 >= whole * 9 && whole * 10 >= (last - first) * 8;
    }
    return false;
}

static bool reads_what_it_keeps(const snug_watch *w, uint64_t *read, uint64_t *growth)
{
    size_t n = w->samples.n;
    if (n < 2)
        return false;
    const sn_sample *a = &w->samples.at[0], *b = &w->samples.at[n - 1];
    *read = b->read_bytes > a->read_bytes ? b->read_bytes - a->read_bytes : 0;
    *growth = b->tree_bytes > a->tree_bytes ? b->tree_bytes - a->tree_bytes : 0;
    return *growth >= MIN_GROWTH && *read >= *growth / 25 && *growth >= *read / 2;
}

static void add(snug_watch *w, snug_diagnosis *d, snug_cause_id cause, double confidence,
                bool decisive, const char *text)
{
    char line[200], peak[32], limit[32];
    snprintf(line, sizeof line, "peak %s at %.1f s, limit %s, %zu samples",
             bytes(peak, sizeof peak, (double)SN_MIN(w->peak_bytes, peak_of(w))), w->peak_seconds,
             bytes(limit, sizeof limit, (double)sn_watch_limit(w)), w->samples.n);
    sn_finding_add(d, cause, confidence, decisive, text, 0, line);
}

/* Who used the memory up, when it is used up. how: "killed by the kernel at 22.9 of 24.0 GiB". */
static void blame(snug_watch *w, snug_diagnosis *d, const char *how, double confidence)
{
    char text[640], a[32], b[32], c[32], grows[200];
    workers other = find_workers(w);
    sn_fit fit;
    uint64_t read, growth;
    bool fits = sn_watch_fit(w, &fit), loads = reads_what_it_keeps(w, &read, &growth);
    bool burst = fits && fit.steps < 5 && fit.slope > 64.0 * (double)SN_MIB;
    if (other.n >= 2 && other.sum * 2 >= w->peak_bytes) {
        snprintf(text, sizeof text,
                 "%s: %zu worker processes hold %s of the %s; the largest (%s, pid %d) holds %s.",
                 how, other.n, bytes(a, sizeof a, (double)other.sum),
                 bytes(b, sizeof b, (double)w->peak_bytes), other.name, other.pid,
                 bytes(c, sizeof c, (double)other.largest));
        sn_fact_set(d, SN_FACT_WORKERS, other.n, 0);
        sn_fact_set(d, SN_FACT_WORKER_PID, (uint64_t)other.pid, 0);
        add(w, d, SNUG_CAUSE_HOST_LOADER, confidence, true, text);
    } else if (fits && fit.steps >= 5) {
        growth_words(grows, sizeof grows, &fit);
        snprintf(text, sizeof text, "%s: %s.", how, grows);
        add(w, d, SNUG_CAUSE_LEAK_HISTORY, confidence, true, text);
    } else if (loads || one_block(w)) {
        if (loads)
            snprintf(text, sizeof text,
                     "%s: %s were read from files and memory grew by %s: what is read is kept, a "
                     "data set loaded whole.",
                     how, bytes(a, sizeof a, (double)read), bytes(b, sizeof b, (double)growth));
        else
            snprintf(
                text, sizeof text,
                "%s: one block of address space was taken at once and then filled: an array for "
                "a whole data set.",
                how);
        add(w, d, SNUG_CAUSE_DATASET, confidence - 0.05, true, text);
    } else if (fits && !burst) {
        growth_words(grows, sizeof grows, &fit);
        snprintf(text, sizeof text, "%s: %s.", how, grows);
        add(w, d, SNUG_CAUSE_LEAK_HISTORY, confidence - 0.1, true, text);
    } else {
        snprintf(text, sizeof text, "%s: the host's memory was used up within %.1f s.", how,
                 w->peak_seconds);
        add(w, d, SNUG_CAUSE_HOST_LOADER, confidence - 0.2, true, text);
        add(w, d, SNUG_CAUSE_DATASET, 0.4, false,
            "Memory filled up in one go, as when a data set is loaded whole.");
    }
    if (fits) {
        sn_fact_set(d, SN_FACT_SLOPE,
                    (uint64_t)(fit.steps >= 5 ? fit.growth / (double)fit.steps : fit.slope * 60),
                    0);
    }
}

static bool judge_shm(snug_watch *w, snug_diagnosis *d, bool failed)
{
    char text[400], a[32], b[32];
    uint64_t most = 0;
    bool bus = w->end.signal == SIGBUS || w->end.exit_code == 128 + SIGBUS;
    for (size_t i = 0; i < w->samples.n; i++)
        most = SN_MAX(most, w->samples.at[i].shm_bytes);
    if (!w->shm_total || (!failed && !bus))
        return false;
    sn_fact_set(d, SN_FACT_SHM_TOTAL, w->shm_total, 0);
    sn_fact_set(d, SN_FACT_SHM_USED, most, 0);
    bool full = most >= w->shm_total - w->shm_total / 32 && most > w->shm_before;
    bytes(a, sizeof a, (double)most);
    bytes(b, sizeof b, (double)w->shm_total);
    if (full || (bus && most >= w->shm_total / 2)) {
        snprintf(
            text, sizeof text,
            "/dev/shm was full: %s of %s in use%s. Loader workers hand batches over through it.", a,
            b, bus ? ", and the process died of a bus error" : "");
        add(w, d, SNUG_CAUSE_SHM, 0.9, true, text);
        return true;
    }
    if (bus) {
        snprintf(
            text, sizeof text,
            "The process died of a bus error: memory that is backed by a file could not be had. "
            "/dev/shm held %s of %s when last seen.",
            a, b);
        add(w, d, SNUG_CAUSE_SHM, w->shm_total <= SN_GIB ? 0.7 : 0.5, w->shm_total <= SN_GIB, text);
        return true;
    }
    return false;
}

static bool judge_rlimit(snug_watch *w, snug_diagnosis *d, bool failed)
{
    char text[400], a[32], b[32];
    if (!failed || !w->address_limit)
        return false;
    bool near_limit = w->vm_peak >= w->address_limit - w->address_limit / 10;
    if (!w->says_no_memory && !near_limit)
        return false;
    snprintf(
        text, sizeof text,
        "A limit of %s on the process's address space (ulimit -v) was reached: its address space "
        "was %s, while the machine has memory left. No real shortage.",
        bytes(a, sizeof a, (double)w->address_limit), bytes(b, sizeof b, (double)w->vm_peak));
    add(w, d, SNUG_CAUSE_CAP, w->says_no_memory ? 0.9 : 0.7, true, text);
    sn_finding_fix(d, SNUG_CAUSE_CAP, "ulimit -v unlimited",
                   "address space is not memory: frameworks reserve much more than they use");
    return true;
}

static void summarize(snug_watch *w)
{
    char how[64], peak[32], limit[32], seconds[32];
    if (w->end.signal)
        snprintf(how, sizeof how, "killed by signal %d (%s)", w->end.signal,
                 sigabbrev_np(w->end.signal) ? sigabbrev_np(w->end.signal) : "?");
    else
        snprintf(how, sizeof how, "exit code %d", w->end.exit_code);
    snprintf(w->summary, sizeof w->summary, "%s after %s; highest memory %s of %s%s%s%s.", how,
             sn_format_seconds(seconds, sizeof seconds,
                               w->samples.n ? w->samples.at[w->samples.n - 1].seconds : 0),
             bytes(peak, sizeof peak, (double)peak_of(w)),
             bytes(limit, sizeof limit, (double)sn_watch_limit(w)),
             w->limit_bytes && w->limit_bytes < w->total_bytes ? " (the control group's limit)"
                                                               : "",
             w->kills ? ", and the kernel killed for memory" : "",
             w->gpu_peak ? ", on the GPU more" : "");
}

/* What can be read after the end: the group's counters and /dev/shm. */
static void last_look(snug_watch *w)
{
    uint64_t kills, used, total;
    if (w->has_kills && sn_cgroup_kills(&w->group, w->root, &kills) && kills > w->kills_before)
        w->kills = SN_MAX(w->kills, kills - w->kills_before);
    if (!w->kills && w->has_boot_kills && sn_proc_kills(w->root, &kills) &&
        kills > w->boot_kills_before &&
        (w->end.signal == SIGKILL || w->end.exit_code == 128 + SIGKILL))
        w->kills = kills - w->boot_kills_before;
    if (sn_shm(w->root, &total, &used) && w->samples.n) {
        sn_sample *last = &w->samples.at[w->samples.n - 1];
        last->shm_bytes = SN_MAX(last->shm_bytes, used);
    }
}

static void judge(snug_watch *w, snug_diagnosis *d)
{
    char how[160], a[32], b[32], text[400], grows[200];
    bool killed = w->end.signal == SIGKILL || w->end.exit_code == 128 + SIGKILL;
    bool failed = w->end.signal || w->end.exit_code;
    uint64_t limit = sn_watch_limit(w), peak = peak_of(w);
    sn_fit fit;
    bytes(a, sizeof a, (double)peak);
    bytes(b, sizeof b, (double)limit);
    if (judge_shm(w, d, failed) || judge_rlimit(w, d, failed))
        return;
    if (w->kills) {
        snprintf(how, sizeof how, "%s at %s of %s%s",
                 killed ? "Killed by the kernel" : "The kernel killed one of its processes", a, b,
                 w->limit_bytes && w->limit_bytes < w->total_bytes ? " (the control group's limit)"
                                                                   : "");
        sn_tell_raise(d, SN_TELL_KERNEL_OOM, 0, how);
        blame(w, d, how, 0.9);
    } else if (killed && limit && peak >= limit - limit / 7) {
        snprintf(how, sizeof how, "Killed by signal 9 at %s of %s", a, b);
        blame(w, d, how, 0.75);
    } else if (failed && w->says_no_memory && peak * 2 >= limit) {
        snprintf(how, sizeof how, "It was refused memory at %s of %s", a, b);
        blame(w, d, how, 0.7);
    } else if (sn_watch_fit(w, &fit) && fit.r2 >= 0.95 && (fit.steps >= 5 || fit.seconds >= 10) &&
               (fit.growth >= 256.0 * (double)SN_MIB || fit.growth * 2 >= (double)w->peak_bytes) &&
               (fit.steps >= 5 || fit.slope < 64.0 * (double)SN_MIB)) {
        growth_words(grows, sizeof grows, &fit);
        double left = limit > w->peak_bytes ? (double)(limit - w->peak_bytes) / fit.slope : 0;
        char when[32];
        snprintf(text, sizeof text, "Memory was %s, and would have reached %s %s later.", grows, b,
                 sn_format_seconds(when, sizeof when, left));
        add(w, d, SNUG_CAUSE_LEAK_HISTORY, failed ? 0.5 : 0.6, !failed, text);
    } else if (killed) {
        snprintf(text, sizeof text,
                 "Killed by signal 9 at %s of %s, with no sign that the kernel did it for memory: "
                 "somebody or a batch system sent the signal.",
                 a, b);
        add(w, d, SNUG_CAUSE_UNKNOWN, 0.3, false, text);
    }
}

snug_status snug_watch_finish(snug_watch *w, snug_diagnosis *d, const snug_watch_end *end,
                              const char *command, snug_error *err)
{
    char name[192];
    w->end = *end;
    w->rusage_peak = end->peak_bytes;
    sn_str_printable(w->command, sizeof w->command, command ? command : "");
    if (w->n_line)
        snug_watch_output(w, "\n", 1);
    last_look(w);
    snprintf(name, sizeof name, "run of %s", w->command);
    if (!sn_diagnosis_source(d, name))
        return sn_fail(err, SNUG_E_MEMORY, "no memory to judge the run");
    if (w->samples.n) {
        sn_fact_set(d, SN_FACT_HOST_PEAK, peak_of(w), 0);
        sn_fact_set(d, SN_FACT_START, w->samples.at[0].tree_bytes, 0);
        sn_fact_set(d, SN_FACT_END, w->samples.at[w->samples.n - 1].tree_bytes, 0);
    }
    if (w->total_bytes)
        sn_fact_set(d, SN_FACT_HOST_TOTAL, w->total_bytes, 0);
    if (w->limit_bytes)
        sn_fact_set(d, SN_FACT_CGROUP_LIMIT, w->limit_bytes, 0);
    if (end->signal)
        sn_fact_set(d, SN_FACT_EXIT_CODE, (uint64_t)(128 + end->signal), 0);
    else
        sn_fact_set(d, SN_FACT_EXIT_CODE, (uint64_t)end->exit_code, 0);
    judge(w, d);
    summarize(w);
    return SNUG_OK;
}

const char *snug_watch_summary(const snug_watch *w)
{
    return w->summary;
}
