/* SPDX-License-Identifier: Apache-2.0
 *
 * proc.c - procfs and control groups under a root.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/vec.h"
#include "diagnose/proc.h"

long sn_proc_read(char *out, size_t n, const char *root, const char *format, ...)
{
    char path[512];
    int used = snprintf(path, sizeof path, "%s", root);
    va_list args;
    if (used < 0 || (size_t)used >= sizeof path)
        return -1;
    va_start(args, format);
    int more = vsnprintf(path + used, sizeof path - (size_t)used, format, args);
    va_end(args);
    if (more < 0 || (size_t)more >= sizeof path - (size_t)used)
        return -1;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return -1;
    size_t len = 0;
    while (len + 1 < n) {
        ssize_t got = read(fd, out + len, n - 1 - len);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        len += (size_t)got;
    }
    close(fd);
    out[len] = 0;
    return (long)len;
}

bool sn_proc_field(const char *text, const char *key, uint64_t *value)
{
    size_t k = strlen(key);
    for (const char *p = text; p; p = strchr(p, '\n'), p = p ? p + 1 : NULL) {
        if (strncmp(p, key, k) || (p[k] != ' ' && p[k] != '\t' && p[k] != ':'))
            continue;
        p += k + (p[k] == ':');
        while (*p == ' ' || *p == '\t')
            p++;
        char *end;
        errno = 0;
        unsigned long long v = strtoull(p, &end, 10);
        if (end == p || errno)
            return false;
        *value = v;
        if (!strncmp(end, " kB", 3) && sn_mul_u64(value, v, 1024))
            return false;
        return true;
    }
    return false;
}

/* "pid (name) S ppid ... start ...": the name may hold spaces and brackets. */
static bool read_stat(sn_proc *p, const char *root, int pid)
{
    char text[1024];
    if (sn_proc_read(text, sizeof text, root, "/proc/%d/stat", pid) <= 0)
        return false;
    char *open_bracket = strchr(text, '('), *close_bracket = strrchr(text, ')');
    if (!open_bracket || !close_bracket || close_bracket < open_bracket)
        return false;
    *p = (sn_proc){.pid = pid};
    snprintf(p->name, sizeof p->name, "%.*s",
             (int)SN_MIN((size_t)(close_bracket - open_bracket - 1), sizeof p->name - 1),
             open_bracket + 1);
    char *rest = close_bracket + 1;
    while (*rest == ' ')
        rest++;
    p->state = *rest;
    unsigned field = 3;
    for (char *q = strchr(rest, ' '); q; q = strchr(q + 1, ' ')) {
        field++;
        if (field == 4)
            p->parent = (int)strtol(q + 1, NULL, 10);
        if (field == 22) {
            p->start = strtoull(q + 1, NULL, 10);
            return true;
        }
    }
    return false;
}

static int by_pid(const void *a, const void *b)
{
    const sn_proc *x = a, *y = b;
    return x->pid < y->pid ? -1 : x->pid > y->pid;
}

/* All processes that can be read, sorted. */
static bool all(sn_proc_tree *out, const char *root)
{
    char path[512];
    snprintf(path, sizeof path, "%s/proc", root);
    DIR *dir = opendir(path);
    bool good = true;
    if (!dir)
        return true;
    for (struct dirent *e; good && (e = readdir(dir));) {
        int64_t pid;
        sn_proc p;
        if (e->d_name[0] < '1' || e->d_name[0] > '9' ||
            !sn_parse_i64(e->d_name, 1, INT32_MAX, &pid) || !read_stat(&p, root, (int)pid))
            continue;
        good = SN_VEC_PUSH(SN_TAG_DIAGNOSE, out, p);
    }
    closedir(dir);
    if (out->n)
        qsort(out->at, out->n, sizeof *out->at, by_pid);
    return good;
}

static sn_proc *find(const sn_proc_tree *tree, int pid)
{
    for (size_t i = 0; i < tree->n; i++)
        if (tree->at[i].pid == pid)
            return &tree->at[i];
    return NULL;
}

bool sn_proc_tree_read(sn_proc_tree *tree, const char *root, int pid)
{
    sn_proc_tree every = {0}, fresh = {0};
    bool good = all(&every, root);
    sn_proc *first = find(&every, pid);
    if (good && first && first->state != 'Z' && first->state != 'X')
        good = SN_VEC_PUSH(SN_TAG_DIAGNOSE, &fresh, *first);
    /* Children of what is there already, until a pass adds none: a parent's pid may be higher. */
    for (size_t from = 0; good && from < fresh.n; from++)
        for (size_t i = 0; good && i < every.n; i++)
            if (every.at[i].parent == fresh.at[from].pid && every.at[i].state != 'Z' &&
                every.at[i].state != 'X' && !find(&fresh, every.at[i].pid))
                good = SN_VEC_PUSH(SN_TAG_DIAGNOSE, &fresh, every.at[i]);
    for (size_t i = 0; i < fresh.n; i++) {
        const sn_proc *old = find(tree, fresh.at[i].pid);
        if (old && old->start == fresh.at[i].start) {
            sn_proc kept = *old;
            kept.parent = fresh.at[i].parent;
            kept.state = fresh.at[i].state;
            memcpy(kept.name, fresh.at[i].name, sizeof kept.name);
            fresh.at[i] = kept;
        }
    }
    sn_proc_tree_free(&every);
    sn_proc_tree_free(tree);
    *tree = fresh;
    return good;
}

bool sn_proc_memory(sn_proc *p, const char *root)
{
    char text[4096];
    if (sn_proc_read(text, sizeof text, root, "/proc/%d/status", p->pid) <= 0)
        return false;
    if (!sn_proc_field(text, "VmRSS", &p->resident_bytes))
        return false;
    if (!sn_proc_field(text, "RssAnon", &p->anonymous_bytes))
        p->anonymous_bytes = p->resident_bytes;
    if (!sn_proc_field(text, "RssShmem", &p->shared_bytes))
        p->shared_bytes = 0;
    sn_proc_field(text, "VmHWM", &p->peak_bytes);
    sn_proc_field(text, "VmSize", &p->virtual_bytes);
    sn_proc_field(text, "VmPeak", &p->virtual_peak_bytes);
    return true;
}

bool sn_proc_pss(sn_proc *p, const char *root)
{
    char text[4096];
    return sn_proc_read(text, sizeof text, root, "/proc/%d/smaps_rollup", p->pid) > 0 &&
           sn_proc_field(text, "Pss", &p->pss_bytes);
}

void sn_proc_tree_free(sn_proc_tree *tree)
{
    SN_VEC_FREE(tree);
}

/* Whether file can be read in the group of this path. */
static bool group_has(const char *root, const char *path, const char *file)
{
    char text[64];
    return sn_proc_read(text, sizeof text, root, "%s/%s", path, file) > 0;
}

/* Tries base + path, then the folders above it: inside a container the path of the host may not
 * exist below the mount. */
static bool locate(sn_cgroup *group, const char *root, const char *base, const char *path, size_t n,
                   const char *file)
{
    char full[256];
    for (;;) {
        int len = snprintf(full, sizeof full, "%s%.*s", base, (int)n, path);
        if (len > 0 && (size_t)len < sizeof full && !strstr(full, "..") &&
            group_has(root, full, file)) {
            memcpy(group->path, full, sizeof full);
            return true;
        }
        if (!n)
            return false;
        while (n && path[n - 1] != '/')
            n--;
        n -= n > 0;
    }
}

void sn_cgroup_of(sn_cgroup *group, const char *root, int pid)
{
    char text[4096];
    *group = (sn_cgroup){"", false};
    if (sn_proc_read(text, sizeof text, root, "/proc/%d/cgroup", pid) <= 0)
        return;
    for (const char *line = text; line && *line;) {
        size_t n = strcspn(line, "\n");
        const char *name = memchr(line, ':', n);
        const char *path = name ? memchr(name + 1, ':', n - (size_t)(name + 1 - line)) : NULL;
        if (path) {
            size_t n_name = (size_t)(path - name - 1), n_path = n - (size_t)(path + 1 - line);
            if (n_path == 1)
                n_path = 0; /* "/" */
            if (n_name == 6 && !memcmp(name + 1, "memory", 6) &&
                locate(group, root, "/sys/fs/cgroup/memory", path + 1, n_path,
                       "memory.usage_in_bytes")) {
                group->v2 = false;
                return;
            }
            if (!n_name && !group->path[0] &&
                locate(group, root, "/sys/fs/cgroup", path + 1, n_path, "memory.current"))
                group->v2 = true;
        }
        line += n + (line[n] == '\n');
    }
}

static bool number(const char *root, const char *path, size_t n, const char *file, uint64_t *value)
{
    char text[64];
    if (sn_proc_read(text, sizeof text, root, "%.*s/%s", (int)n, path, file) <= 0)
        return false;
    char *end;
    errno = 0;
    unsigned long long v = strtoull(text, &end, 10);
    if (end == text || errno)
        return false;
    *value = v;
    return true;
}

bool sn_cgroup_limit(const sn_cgroup *group, const char *root, uint64_t *bytes)
{
    const char *file = group->v2 ? "memory.max" : "memory.limit_in_bytes";
    bool any = false;
    for (size_t n = strlen(group->path); n > strlen("/sys/fs/cgroup");) {
        uint64_t v;
        /* version 1 says "no limit" with a number near 2^63 */
        if (number(root, group->path, n, file, &v) && v < (uint64_t)1 << 60 &&
            (!any || v < *bytes)) {
            *bytes = v;
            any = true;
        }
        while (n && group->path[n - 1] != '/')
            n--;
        n -= n > 0;
    }
    return any;
}

bool sn_cgroup_usage(const sn_cgroup *group, const char *root, uint64_t *bytes)
{
    return group->path[0] && number(root, group->path, strlen(group->path),
                                    group->v2 ? "memory.current" : "memory.usage_in_bytes", bytes);
}

bool sn_cgroup_kills(const sn_cgroup *group, const char *root, uint64_t *n)
{
    char text[1024];
    return group->path[0] &&
           sn_proc_read(text, sizeof text, root, "%s/%s", group->path,
                        group->v2 ? "memory.events" : "memory.oom_control") > 0 &&
           sn_proc_field(text, "oom_kill", n);
}

bool sn_proc_memory_info(const char *root, uint64_t *total, uint64_t *available)
{
    char text[4096];
    return sn_proc_read(text, sizeof text, root, "/proc/meminfo") > 0 &&
           sn_proc_field(text, "MemTotal", total) && sn_proc_field(text, "MemAvailable", available);
}

bool sn_proc_kills(const char *root, uint64_t *n)
{
    char text[16384];
    return sn_proc_read(text, sizeof text, root, "/proc/vmstat") > 0 &&
           sn_proc_field(text, "oom_kill", n);
}

bool sn_shm(const char *root, uint64_t *total, uint64_t *used)
{
    char path[512];
    struct statvfs v;
    snprintf(path, sizeof path, "%s/dev/shm", root);
    if (statvfs(path, &v) || !v.f_blocks)
        return false;
    return !sn_mul_u64(total, v.f_blocks, v.f_frsize) &&
           !sn_mul_u64(used, v.f_blocks - v.f_bfree, v.f_frsize);
}
