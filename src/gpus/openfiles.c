/* SPDX-License-Identifier: Apache-2.0
 *
 * openfiles.c - one pass over /proc: each process' stat line and the names behind its descriptors.
 *
 * 1. A process costs one stat read, one listing and one readlink a descriptor; fdinfo is read for
 *    descriptors below /dev/dri only.
 * 2. A process that goes away in the middle is left out, not an error.
 * 3. procs is sorted by pid when the pass is over.
 * 4. Nearly all the time is the kernel's: many processes are looked at by several threads.
 */
#include "gpus/gpus.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PF_KTHREAD 0x00200000u

typedef struct sweep {
    snug_gpus *gpus;
    bool with_files;
    int proc_fd;
    int fdinfo_fd;     /* of the process below, opened with its first DRM descriptor; -1 */
    sn_gpus_proc *now; /* the process whose descriptors are listed */
} sweep;

bool sn_gpus_stat_parse(sn_gpus_proc *out, const char *text)
{
    /* The name may hold anything, also ')': the last one ends it. */
    const char *open = strchr(text, '('), *end = strrchr(text, ')');
    if (!open || !end || end < open || end[1] != ' ' || !end[2])
        return false;
    size_t n = SN_MIN((size_t)(end - open - 1), sizeof out->comm - 1);
    memcpy(out->comm, open + 1, n);
    out->comm[n] = '\0';
    out->state = end[2];
    const char *p = end + 3;
    /* Fields 4 to 24 of proc(5). */
    unsigned long long field[25] = {0};
    int last = 3;
    while (last < 24 && *p) {
        char *next;
        unsigned long long value = strtoull(p, &next, 10);
        if (next == p)
            break;
        field[++last] = value;
        p = next;
    }
    if (last < 22)
        return false;
    out->parent = (int64_t)field[4];
    out->group = (int64_t)field[5];
    out->tty = (int)field[7];
    out->kernel_thread = (field[9] & PF_KTHREAD) != 0;
    out->cpu_ticks = field[14] + field[15];
    out->start_ticks = field[22];
    long page = sysconf(_SC_PAGESIZE);
    out->resident_bytes = (uint64_t)field[24] * (uint64_t)(page > 0 ? page : 4096);
    return true;
}

static void add_fd_use(sweep *s, size_t card)
{
    if (card == SN_GPUS_NO_CARD)
        return;
    sn_gpus_add_use(s->gpus,
                    (sn_gpus_use){card, s->now->pid, SN_SOURCE_FD, SNUG_BYTES_UNKNOWN, 0, false});
}

static void drm_file(sweep *s, const char *descriptor, char *node)
{
    char path[64], text[4096];
    node[strcspn(node, " ")] = '\0'; /* " (deleted)" */
    if (s->fdinfo_fd < 0) {
        snprintf(path, sizeof path, "%lld/fdinfo", (long long)s->now->pid);
        s->fdinfo_fd = openat(s->proc_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    }
    ssize_t got =
        s->fdinfo_fd < 0 ? -errno : sn_gpus_read_at(s->fdinfo_fd, descriptor, text, sizeof text);
    if (got > 0)
        sn_gpus_fdinfo_add(s->gpus, s->now->pid, node, text, (size_t)got);
    else if (got != -ENOENT && got != -ESRCH)
        add_fd_use(s, sn_gpus_card_of_node(s->gpus, node));
}

/* /dev/nvidia0 holds that card; which card is settled when NVML has spoken. nvidiactl and
 * nvidia-modeset are opened by whoever only asks. */
static void nvidia_file(sweep *s, const char *name)
{
    if (sn_str_starts(name, "-uvm")) {
        s->now->flags |= SN_PROC_NVIDIA | SN_PROC_UVM;
        return;
    }
    int64_t minor;
    char digits[16];
    snprintf(digits, sizeof digits, "%.*s", (int)strcspn(name, " "), name);
    if (!sn_gpus_parse_pid(digits, &minor))
        return;
    s->now->flags |= SN_PROC_NVIDIA;
    size_t card = SN_GPUS_NO_CARD;
    for (size_t i = 0; i < s->gpus->cards.n; i++)
        if (s->gpus->cards.at[i].nvidia_minor == minor)
            card = i;
    if (card == SN_GPUS_NO_CARD) {
        char address[64];
        snprintf(address, sizeof address, "nvidia%d", (int)minor);
        card = sn_gpus_card_make(s->gpus, address, "nvidia");
        if (card != SN_GPUS_NO_CARD)
            s->gpus->cards.at[card].nvidia_minor = minor;
    }
    add_fd_use(s, card);
}

static bool descriptor(void *context, int fd, const char *name)
{
    sweep *s = context;
    char link[64];
    ssize_t got = readlinkat(fd, name, link, sizeof link - 1);
    if (got < 8 || memcmp(link, "/dev/", 5))
        return true;
    link[got] = '\0';
    if (!memcmp(link + 5, "dri/", 4))
        drm_file(s, name, link + 9);
    else if (sn_str_starts(link + 5, "nvidia"))
        nvidia_file(s, link + 11);
    else if (sn_str_starts(link + 5, "kfd") && (!link[8] || link[8] == ' '))
        s->now->flags |= SN_PROC_KFD;
    else if (sn_str_starts(link + 5, "dxg"))
        s->now->flags |= SN_PROC_NVIDIA;
    return true;
}

static bool process(sweep *s, int fd, const char *name)
{
    sn_gpus_proc proc = {.idle_seconds = -1, .uid = -1, .host_bytes = SNUG_BYTES_UNKNOWN};
    if (!sn_gpus_parse_pid(name, &proc.pid))
        return true;
    char path[32], text[1024];
    snprintf(path, sizeof path, "%s/stat", name);
    if (sn_gpus_read_at(fd, path, text, sizeof text) <= 0 || !sn_gpus_stat_parse(&proc, text))
        return true;
    s->proc_fd = fd;
    s->now = &proc;
    if (s->with_files && !proc.kernel_thread) {
        snprintf(path, sizeof path, "%s/fd", name);
        s->fdinfo_fd = -1;
        int result = sn_gpus_each(fd, path, descriptor, s);
        if (s->fdinfo_fd >= 0)
            close(s->fdinfo_fd);
        if (result == -EACCES || result == -EPERM) {
            proc.flags |= SN_PROC_UNREADABLE;
            s->gpus->n_unreadable++;
        } else if (result == -ENOENT || result == -ESRCH) {
            return true;
        }
    }
    if (!SN_VEC_PUSH(SN_TAG_GPUS, &s->gpus->procs, proc))
        s->gpus->failed = true;
    return !s->gpus->failed;
}

static int by_pid(const void *a, const void *b)
{
    int64_t x = ((const sn_gpus_proc *)a)->pid, y = ((const sn_gpus_proc *)b)->pid;
    return (x > y) - (x < y);
}

typedef struct listing {
    snug_gpus *gpus;
    SN_VEC(int64_t) pids;
    int proc_fd;
    bool with_files;
} listing;

static bool collect(void *context, int fd, const char *name)
{
    SN_UNUSED(fd);
    listing *l = context;
    int64_t pid;
    if (sn_gpus_parse_pid(name, &pid) && !SN_VEC_PUSH(SN_TAG_GPUS, &l->pids, pid))
        l->gpus->failed = true;
    return !l->gpus->failed;
}

static void sweep_part(snug_gpus *part, size_t begin, size_t end, void *context)
{
    const listing *l = context;
    sweep s = {.gpus = part, .with_files = l->with_files, .fdinfo_fd = -1};
    for (size_t i = begin; i < end; i++) {
        char name[24];
        snprintf(name, sizeof name, "%lld", (long long)l->pids.at[i]);
        if (!process(&s, l->proc_fd, name))
            break;
    }
}

snug_status sn_gpus_sweep(snug_gpus *gpus, bool with_files, snug_error *err)
{
    listing l = {.gpus = gpus, .with_files = with_files};
    l.proc_fd = openat(gpus->root.fd, "proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int result = l.proc_fd < 0 ? -errno : sn_gpus_each(l.proc_fd, ".", collect, &l);
    if (result >= 0)
        sn_gpus_parallel(gpus, l.pids.n, false, sweep_part, &l);
    if (l.proc_fd >= 0)
        close(l.proc_fd);
    SN_VEC_FREE(&l.pids);
    if (result < 0)
        return sn_fail_errno(err, SNUG_E_NOT_FOUND, -result, "proc/ below the root cannot be read");
    if (gpus->procs.n)
        qsort(gpus->procs.at, gpus->procs.n, sizeof *gpus->procs.at, by_pid);
    return SNUG_OK;
}

/* Holders known by a driver file that names no card: uvm alone (a forked worker that closed the
 * rest) and kfd. With several cards of the kind it is not known which. */
void sn_gpus_open_files(snug_gpus *gpus)
{
    size_t nvidia = SN_GPUS_NO_CARD, n_nvidia = 0;
    for (size_t i = 0; i < gpus->cards.n; i++)
        if (gpus->cards.at[i].vendor == 0x10de) {
            nvidia = i;
            n_nvidia++;
        }
    size_t n_cards = gpus->cards.n;
    for (size_t p = 0; p < gpus->procs.n; p++) {
        const sn_gpus_proc *proc = &gpus->procs.at[p];
        if (proc->flags & SN_PROC_UVM && n_nvidia == 1)
            sn_gpus_add_use(
                gpus, (sn_gpus_use){nvidia, proc->pid, SN_SOURCE_FD, SNUG_BYTES_UNKNOWN, 0, false});
        for (size_t i = 0; i < n_cards && proc->flags & SN_PROC_KFD; i++)
            if (gpus->cards.at[i].vendor == 0x1002)
                sn_gpus_add_use(
                    gpus, (sn_gpus_use){i, proc->pid, SN_SOURCE_FD, SNUG_BYTES_UNKNOWN, 0, false});
    }
}
