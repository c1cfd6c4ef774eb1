/* SPDX-License-Identifier: Apache-2.0
 *
 * ram.c - RAM as one more device: totals, /dev/shm, swap, the control group's limit, and the
 * largest holders by proportional set size.
 */
#include "gpus/gpus.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define TMPFS 0x01021994
#define NO_LIMIT ((uint64_t)1 << 60) /* version 1 writes about 2^63 for "none" */

/* "Key:   123 kB" in bytes. */
static uint64_t kib_line(const char *text, const char *key)
{
    const char *at = strstr(text, key);
    if (!at)
        return SNUG_BYTES_UNKNOWN;
    at += strlen(key);
    char *end;
    unsigned long long value = strtoull(at, &end, 10);
    uint64_t bytes;
    return end == at || sn_mul_u64(&bytes, value, 1024) ? SNUG_BYTES_UNKNOWN : bytes;
}

uint64_t sn_gpus_host_bytes(const sn_gpus_root *root, const sn_gpus_proc *proc, bool *is_rss)
{
    char text[4096];
    *is_rss = false;
    if (proc->state != 'Z' &&
        sn_gpus_read(root, text, sizeof text, "proc/%lld/smaps_rollup", (long long)proc->pid) > 0) {
        uint64_t bytes = kib_line(text, "\nPss:");
        if (bytes != SNUG_BYTES_UNKNOWN)
            return bytes;
    }
    *is_rss = proc->state != 'Z';
    return proc->resident_bytes;
}

/* ---- /dev/shm ---- */

typedef struct shm_sum {
    uint64_t bytes;
    int depth;
} shm_sum;

static bool shm_file(void *context, int fd, const char *name)
{
    shm_sum *sum = context;
    struct stat st;
    if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW))
        return true;
    sum->bytes += (uint64_t)st.st_blocks * 512;
    if (S_ISDIR(st.st_mode) && sum->depth < 8) {
        sum->depth++;
        sn_gpus_each(fd, name, shm_file, sum);
        sum->depth--;
    }
    return true;
}

static void read_shm(snug_gpus *gpus, snug_gpus_ram *ram)
{
    struct stat shm, dev;
    if (fstatat(gpus->root.fd, "dev/shm", &shm, 0) || fstatat(gpus->root.fd, "dev", &dev, 0))
        return;
    int fd = openat(gpus->root.fd, "dev/shm", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return;
    struct statfs fs;
    /* A folder that is no file system of its own (a copied tree) has no size: its files count. */
    if (shm.st_dev != dev.st_dev && !fstatfs(fd, &fs) && fs.f_type == TMPFS) {
        uint64_t block = (uint64_t)fs.f_bsize;
        ram->shm_bytes = ((uint64_t)fs.f_blocks - (uint64_t)fs.f_bfree) * block;
        if (fs.f_blocks)
            ram->shm_total_bytes = (uint64_t)fs.f_blocks * block;
    } else {
        shm_sum sum = {0};
        if (!sn_gpus_each(fd, ".", shm_file, &sum))
            ram->shm_bytes = sum.bytes;
    }
    close(fd);
}

/* ---- the control group ---- */

/* The path of our group in the hierarchy that `controller` names ("" for version 2). */
static bool group_path(const char *text, const char *controller, char *out, size_t n)
{
    for (const char *line = text; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        const char *first = strchr(line, ':'), *second = first ? strchr(first + 1, ':') : NULL;
        if (!second)
            return false;
        size_t length = (size_t)(second - first - 1);
        if (length == strlen(controller) && !strncmp(first + 1, controller, length)) {
            snprintf(out, n, "%.*s", (int)strcspn(second + 1, "\n"), second + 1);
            return true;
        }
    }
    return false;
}

/* The smallest limit of the group and those above it. */
static void read_limits(snug_gpus *gpus, snug_gpus_ram *ram, const char *mount, char *path,
                        const char *limit_file, const char *used_file)
{
    for (;;) {
        uint64_t limit, used;
        if (sn_gpus_read_u64(&gpus->root, &limit, "%s%s/%s", mount, path, limit_file) &&
            limit < NO_LIMIT && limit < ram->limit_bytes) {
            ram->limit_bytes = limit;
            ram->limit_used_bytes = SNUG_BYTES_UNKNOWN;
            if (sn_gpus_read_u64(&gpus->root, &used, "%s%s/%s", mount, path, used_file))
                ram->limit_used_bytes = used;
        }
        char *slash = strrchr(path, '/');
        if (!slash)
            return;
        *slash = '\0';
    }
}

static void read_group(snug_gpus *gpus, snug_gpus_ram *ram)
{
    char text[4096], path[400];
    if (sn_gpus_read(&gpus->root, text, sizeof text, "proc/self/cgroup") <= 0 &&
        sn_gpus_read(&gpus->root, text, sizeof text, "proc/%lld/cgroup", (long long)gpus->self) <=
            0)
        text[0] = '\0';
    /* In a container the path is the host's and not to be found below the mount; then the mount
     * itself is our group, which is where the walk upward ends. */
    if (!group_path(text, "", path, sizeof path))
        path[0] = '\0';
    read_limits(gpus, ram, "sys/fs/cgroup", path, "memory.max", "memory.current");
    if (group_path(text, "memory", path, sizeof path))
        read_limits(gpus, ram, "sys/fs/cgroup/memory", path, "memory.limit_in_bytes",
                    "memory.usage_in_bytes");
}

/* ---- the holders ---- */

typedef struct ranked {
    uint64_t bytes;
    size_t proc;
} ranked;

static int by_bytes(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    return (x->proc > y->proc) - (x->proc < y->proc);
}

static void read_holders(snug_gpus *gpus, size_t n)
{
    ranked *order = sn_alloc_array(SN_TAG_GPUS, gpus->procs.n, sizeof *order);
    if (!order) {
        gpus->failed = true;
        return;
    }
    size_t n_order = 0;
    for (size_t i = 0; i < gpus->procs.n; i++)
        if (gpus->procs.at[i].resident_bytes && !gpus->procs.at[i].kernel_thread)
            order[n_order++] = (ranked){gpus->procs.at[i].resident_bytes, i};
    qsort(order, n_order, sizeof *order, by_bytes);
    /* PSS costs a walk of the page tables. It is at most RSS, so the rest needs none as soon as n
     * are known that hold more than the next one's RSS; forked workers share much and come late. */
    size_t n_asked = 0, n_sorted = SN_MIN(n_order, 6 * n);
    for (; n_asked < n_sorted; n_asked++) {
        if (n_asked >= n && order[n - 1].bytes >= order[n_asked].bytes)
            break;
        sn_gpus_proc *proc = &gpus->procs.at[order[n_asked].proc];
        sn_gpus_facts(gpus, proc);
        ranked now = {proc->host_bytes, order[n_asked].proc};
        size_t place = n_asked;
        for (; place > 0 && order[place - 1].bytes < now.bytes; place--)
            order[place] = order[place - 1];
        order[place] = now;
    }
    n_order = n_asked;
    for (size_t i = 0; i < n_order && i < n && !gpus->failed; i++) {
        snug_gpus_process shown;
        sn_gpus_show(gpus, &shown, &gpus->procs.at[order[i].proc]);
        shown.bytes = shown.host_bytes;
        shown.source = shown.host_is_rss ? "rss" : "pss";
        if (!SN_VEC_PUSH(SN_TAG_GPUS, &gpus->ram_processes, shown))
            gpus->failed = true;
    }
    sn_free(order);
    gpus->ram.processes = gpus->ram_processes.at;
    gpus->ram.n_processes = gpus->ram_processes.n;
}

void sn_gpus_ram(snug_gpus *gpus, size_t n_processes)
{
    char text[8192];
    snug_gpus_ram *ram = &gpus->ram;
    if (sn_gpus_read(&gpus->root, text, sizeof text, "proc/meminfo") > 0) {
        uint64_t free_swap = kib_line(text, "\nSwapFree:");
        ram->total_bytes = kib_line(text, "MemTotal:");
        ram->available_bytes = kib_line(text, "\nMemAvailable:");
        ram->swap_total_bytes = kib_line(text, "\nSwapTotal:");
        if (free_swap <= ram->swap_total_bytes && ram->swap_total_bytes != SNUG_BYTES_UNKNOWN)
            ram->swap_bytes = ram->swap_total_bytes - free_swap;
    }
    read_shm(gpus, ram);
    read_group(gpus, ram);
    read_holders(gpus, n_processes);
}
