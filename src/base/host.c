/* SPDX-License-Identifier: Apache-2.0
 *
 * host.c - the machine, its control groups, this process. Files of /proc and /sys are read into
 * buffers on the stack, so that asking for the free memory takes none.
 */
#include "base/host.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

enum { TEXT_BYTES = 8192, PATH_BYTES = 1024 };

sn_cpu_features sn_host_cpu(void)
{
    sn_cpu_features f = {0};
#if defined(__x86_64__) || defined(__i386__)
    /* These ask the operating system (xgetbv) as well as the processor. */
    __builtin_cpu_init();
    bool avx = __builtin_cpu_supports("avx");
    f.avx2 = __builtin_cpu_supports("avx2");
    f.fma = __builtin_cpu_supports("fma");
    f.avx512f = __builtin_cpu_supports("avx512f");
    f.avx512bw = __builtin_cpu_supports("avx512bw");
    f.avx512vl = __builtin_cpu_supports("avx512vl");
    unsigned a, b, c, d;
    f.f16c = avx && __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
    f.avx512_bf16 = f.avx512f && __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> 5 & 1);
#endif
    return f;
}

/* Reads the beginning of root + path as text; false if it cannot be read. */
static bool read_text(char text[TEXT_BYTES], const char *root, const char *path)
{
    char name[PATH_BYTES];
    text[0] = '\0';
    if (snprintf(name, sizeof name, "%s%s", root, path) >= (int)sizeof name)
        return false;
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    size_t n = 0;
    while (n < TEXT_BYTES - 1) {
        ssize_t r = read(fd, text + n, TEXT_BYTES - 1 - n);
        if (r < 0 && errno == EINTR)
            continue;
        if (r <= 0)
            break;
        n += (size_t)r;
    }
    text[n] = '\0';
    close(fd);
    return n > 0;
}

/* The number that follows `key` at the beginning of a line. */
static bool find_number(const char *text, const char *key, uint64_t *value)
{
    size_t n = strlen(key);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, n) != 0)
            continue;
        const char *at = line + n + strspn(line + n, " \t");
        if (*at < '0' || *at > '9')
            return false;
        *value = strtoull(at, NULL, 10);
        return true;
    }
    return false;
}

/* A file that holds one number ("max" and nonsense: false). */
static bool read_number(const char *root, const char *path, uint64_t *value)
{
    char text[TEXT_BYTES];
    return read_text(text, root, path) && find_number(text, "", value);
}

char *sn_host_cpu_name(char *out, size_t n)
{
    char text[TEXT_BYTES];
    const char *at = read_text(text, "", "/proc/cpuinfo") ? strstr(text, "model name") : NULL;
    at = at ? strchr(at, ':') : NULL;
    if (at) {
        at += 1 + strspn(at + 1, " \t");
        snprintf(out, n, "%.*s", (int)strcspn(at, "\n"), at);
    }
    if (!at || n == 0 || !out[0])
        snprintf(out, n, "unknown processor");
    return out;
}

/* The group of `controller` that this process is in, e.g. "/user.slice"; controller "" is version
 * 2. Lines of /proc/self/cgroup are "7:cpu,cpuacct:/path" and "0::/path". */
static bool group_of(char group[PATH_BYTES], const char *root, const char *controller)
{
    char text[TEXT_BYTES];
    if (!read_text(text, root, "/proc/self/cgroup"))
        return false;
    size_t wanted = strlen(controller);
    for (char *line = text, *next; line && *line; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        char *names = strchr(line, ':');
        char *path = names ? strchr(names + 1, ':') : NULL;
        if (!path || strlen(path + 1) >= PATH_BYTES)
            continue;
        *path++ = '\0';
        bool found = false;
        for (char *name = names + 1; name; name = strchr(name, ',')) {
            name += *name == ',';
            size_t len = strcspn(name, ",");
            found = found || (len == wanted && strncmp(name, controller, len) == 0);
        }
        if (found) {
            memcpy(group, path, strlen(path) + 1);
            return true;
        }
    }
    return false;
}

/* Is shown one folder of the hierarchy (a path below root). */
typedef void level_visitor(const char *root, const char *folder, void *context);

/* Visits the group's folder under `mount` and each one above it: a limit anywhere on the way binds.
 * Inside a container the path may be the host's and lead nowhere here; the mount itself is then the
 * container's own group, and it is always visited. */
static void visit_levels(const char *root, const char *mount, const char *controller,
                         level_visitor *visit, void *context)
{
    char group[PATH_BYTES], folder[2 * PATH_BYTES];
    if (!group_of(group, root, controller))
        return;
    for (;;) {
        size_t n = strlen(group);
        while (n && group[n - 1] == '/')
            group[--n] = '\0';
        snprintf(folder, sizeof folder, "%s%s", mount, group);
        visit(root, folder, context);
        char *slash = strrchr(group, '/');
        if (!slash)
            break;
        *slash = '\0';
    }
}

static bool read_number_in(const char *root, const char *folder, const char *name, uint64_t *value)
{
    char path[3 * PATH_BYTES];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return read_number(root, path, value);
}

/* Applies one group's limit: what is used now counts, file pages that can be dropped do not. */
static void apply(sn_host_memory *memory, uint64_t limit, uint64_t used, uint64_t reclaimable)
{
    used -= SN_MIN(used, reclaimable);
    memory->total_bytes = SN_MIN(memory->total_bytes, limit);
    memory->available_bytes = SN_MIN(memory->available_bytes, limit > used ? limit - used : 0);
}

static uint64_t sum_of(const char *text, const char *const *keys, size_t n)
{
    uint64_t sum = 0, value;
    for (size_t i = 0; i < n; i++)
        if (find_number(text, keys[i], &value) && sn_add_u64(&sum, sum, value))
            return UINT64_MAX;
    return sum;
}

static void visit_memory_v2(const char *root, const char *folder, void *context)
{
    static const char *const keys[] = {"inactive_file ", "active_file ", "slab_reclaimable "};
    uint64_t max = UINT64_MAX, high = UINT64_MAX, used;
    read_number_in(root, folder, "memory.max", &max);
    read_number_in(root, folder, "memory.high", &high); /* above it the kernel stalls the process */
    if (SN_MIN(max, high) == UINT64_MAX || !read_number_in(root, folder, "memory.current", &used))
        return;
    char path[3 * PATH_BYTES], text[TEXT_BYTES];
    snprintf(path, sizeof path, "%s/memory.stat", folder);
    read_text(text, root, path);
    apply(context, SN_MIN(max, high), used, sum_of(text, keys, SN_LEN(keys)));
}

static void visit_memory_v1(const char *root, const char *folder, void *context)
{
    static const char *const keys[] = {"total_inactive_file ", "total_active_file "};
    uint64_t limit, used;
    if (!read_number_in(root, folder, "memory.limit_in_bytes", &limit) ||
        !read_number_in(root, folder, "memory.usage_in_bytes", &used))
        return;
    char path[3 * PATH_BYTES], text[TEXT_BYTES];
    snprintf(path, sizeof path, "%s/memory.stat", folder);
    read_text(text, root, path);
    apply(context, limit, used, sum_of(text, keys, SN_LEN(keys)));
}

snug_status sn_host_memory_at(sn_host_memory *out, const char *root, snug_error *err)
{
    *out = (sn_host_memory){0};
    char text[TEXT_BYTES];
    uint64_t total, available;
    if (!read_text(text, root, "/proc/meminfo") || !find_number(text, "MemTotal:", &total) ||
        !find_number(text, "MemAvailable:", &available))
        return sn_fail(err, SNUG_E_IO, "cannot read how much memory there is from %s/proc/meminfo",
                       root);
    *out = (sn_host_memory){.total_bytes = total * SN_KIB, .available_bytes = available * SN_KIB};
    visit_levels(root, "/sys/fs/cgroup", "", visit_memory_v2, out);
    visit_levels(root, "/sys/fs/cgroup/unified", "", visit_memory_v2, out);
    visit_levels(root, "/sys/fs/cgroup/memory", "memory", visit_memory_v1, out);
    return SNUG_OK;
}

snug_status sn_host_memory_now(sn_host_memory *out, snug_error *err)
{
    return sn_host_memory_at(out, "", err);
}

static void lower(int *n, uint64_t quota, uint64_t period)
{
    if (period && quota / period < (uint64_t)*n)
        *n = (int)SN_MAX(quota / period, (uint64_t)1);
}

static void visit_cpu_v2(const char *root, const char *folder, void *context)
{
    char path[3 * PATH_BYTES], text[TEXT_BYTES];
    snprintf(path, sizeof path, "%s/cpu.max", folder);
    uint64_t quota;
    if (!read_text(text, root, path) || !find_number(text, "", &quota))
        return;
    const char *space = strchr(text, ' ');
    lower(context, quota, space ? strtoull(space, NULL, 10) : 0);
}

static void visit_cpu_v1(const char *root, const char *folder, void *context)
{
    uint64_t quota, period; /* a quota of -1 is none, and no number here */
    if (read_number_in(root, folder, "cpu.cfs_quota_us", &quota) &&
        read_number_in(root, folder, "cpu.cfs_period_us", &period))
        lower(context, quota, period);
}

int sn_host_limit_cpus_at(int n, const char *root)
{
    visit_levels(root, "/sys/fs/cgroup", "", visit_cpu_v2, &n);
    visit_levels(root, "/sys/fs/cgroup/cpu", "cpu", visit_cpu_v1, &n);
    return n;
}

int sn_host_n_cpus(void)
{
    int n = 0;
    /* The set must be as large as the kernel's own, which no call tells. */
    for (int bits = CPU_SETSIZE; n == 0 && bits <= (1 << 20); bits *= 2) {
        cpu_set_t *set = CPU_ALLOC((size_t)bits);
        if (!set)
            break;
        size_t size = CPU_ALLOC_SIZE((size_t)bits);
        CPU_ZERO_S(size, set);
        if (sched_getaffinity(0, size, set) == 0)
            n = CPU_COUNT_S(size, set);
        else if (errno != EINVAL)
            bits = 1 << 20;
        CPU_FREE(set);
    }
    if (n == 0)
        n = (int)SN_MAX(sysconf(_SC_NPROCESSORS_ONLN), 1L);
    return sn_host_limit_cpus_at(n, "");
}

static snug_status read_status(uint64_t *bytes, const char *key, snug_error *err)
{
    char text[TEXT_BYTES];
    *bytes = 0;
    if (!read_text(text, "", "/proc/self/status") || !find_number(text, key, bytes))
        return sn_fail(err, SNUG_E_IO, "/proc/self/status does not say %s", key);
    *bytes *= SN_KIB;
    return SNUG_OK;
}

snug_status sn_host_process_peak(uint64_t *bytes, snug_error *err)
{
    return read_status(bytes, "VmHWM:", err);
}

snug_status sn_host_process_resident(uint64_t *bytes, snug_error *err)
{
    return read_status(bytes, "VmRSS:", err);
}
