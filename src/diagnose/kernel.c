/* SPDX-License-Identifier: Apache-2.0
 *
 * kernel.c - what the kernel killed for memory lately, from its log as far as it may be read.
 *
 * 1. Kills are kept in the order of the log, the newest MAX_KILLS of them.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/klog.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"
#include "base/vec.h"
#include "diagnose/diagnose.h"
#include "diagnose/proc.h"

#define MAX_KILLS 32
#define LOG_LIMIT (64 * SN_MIB)
#define TAIL_BYTES (4 * SN_MIB)

struct snug_kills {
    SN_VEC(snug_kill) kills;
    sn_buf lines; /* of the log that speak of memory, newest kept */
    bool log_read, has_group, has_boot;
    uint64_t group, boot;
    double uptime;
};

/* "anon-rss:123kB": bytes. */
static bool field_kb(const char *line, const char *key, uint64_t *bytes)
{
    const char *p = strstr(line, key);
    if (!p)
        return false;
    p += strlen(key);
    if (!isdigit((unsigned char)*p))
        return false;
    return !sn_mul_u64(bytes, strtoull(p, NULL, 10), 1024);
}

/* "[12345.678901]" of dmesg: seconds since boot. */
static bool stamp(const char *line, double *seconds)
{
    const char *p = strchr(line, '[');
    if (!p)
        return false;
    p++;
    while (*p == ' ')
        p++;
    char *end;
    if (!isdigit((unsigned char)*p))
        return false;
    *seconds = strtod(p, &end);
    return *end == ']';
}

/* "Killed process 4242 (python3) total-vm:...kB, anon-rss:...kB, file-rss:...kB, shmem-rss:...kB",
 * also "Out of memory: Kill process" of kernels before 5.0 (a line of its own comes then). */
static bool parse_kill(snug_kill *kill, const char *line, double uptime)
{
    static const char mark[] = "Killed process ";
    const char *p = strstr(line, mark);
    double at;
    if (!p)
        return false;
    *kill = (snug_kill){.seconds_ago = -1};
    p += sizeof mark - 1;
    kill->pid = strtoll(p, NULL, 10);
    const char *name = strchr(p, '(');
    if (!isdigit((unsigned char)*p) || !name)
        return false;
    static const char *const ends[] = {") total-vm", "), ", ") "}; /* a name may hold brackets */
    const char *end = NULL;
    for (size_t i = 0; i < SN_LEN(ends) && !end; i++)
        end = strstr(name, ends[i]);
    if (!end)
        end = name + strlen(name);
    char raw[64];
    snprintf(raw, sizeof raw, "%.*s", (int)SN_MIN((size_t)(end - name - 1), sizeof raw - 1),
             name + 1);
    sn_str_printable(kill->name, sizeof kill->name, raw);
    field_kb(line, "anon-rss:", &kill->anonymous_bytes);
    field_kb(line, "file-rss:", &kill->file_bytes);
    field_kb(line, "shmem-rss:", &kill->shared_bytes);
    kill->by_group = strstr(line, "emory cgroup") != NULL;
    if (uptime > 0 && stamp(line, &at) && at <= uptime)
        kill->seconds_ago = uptime - at;
    sn_str_printable(kill->line, sizeof kill->line, line);
    return true;
}

static bool speaks_of_memory(const char *line)
{
    static const char *const words[] = {"ut of memory",   "oom-kill",     "invoked oom-killer",
                                        "Killed process", "oom_reaper",   "emory cgroup",
                                        "Mem-Info",       "memory: usage"};
    for (size_t i = 0; i < SN_LEN(words); i++)
        if (strstr(line, words[i]))
            return true;
    return false;
}

static bool add_line(snug_kills *k, const char *line)
{
    snug_kill kill;
    if (!speaks_of_memory(line))
        return true;
    sn_buf_puts(&k->lines, line);
    sn_buf_putc(&k->lines, '\n');
    if (k->lines.len > 256 * SN_KIB) { /* the newest half stays */
        size_t cut = k->lines.len / 2;
        while (cut < k->lines.len && k->lines.data[cut - 1] != '\n')
            cut++;
        memmove(k->lines.data, k->lines.data + cut, k->lines.len - cut + 1);
        k->lines.len -= cut;
    }
    if (!parse_kill(&kill, line, k->uptime))
        return !k->lines.failed;
    if (k->kills.n == MAX_KILLS) { /* 1 */
        memmove(k->kills.at, k->kills.at + 1, (MAX_KILLS - 1) * sizeof *k->kills.at);
        k->kills.n--;
    }
    return SN_VEC_PUSH(SN_TAG_DIAGNOSE, &k->kills, kill) && !k->lines.failed;
}

snug_status snug_kills_feed(snug_kills *k, const char *text, size_t n, snug_error *err)
{
    char line[1024];
    bool good = true;
    for (size_t i = 0; i < n && good;) {
        const char *end = memchr(text + i, '\n', n - i);
        size_t len = end ? (size_t)(end - text) - i : n - i;
        snprintf(line, sizeof line, "%.*s", (int)SN_MIN(len, sizeof line - 1), text + i);
        good = add_line(k, line);
        i += len + 1;
    }
    if (n)
        k->log_read = true;
    return good ? SNUG_OK : sn_fail(err, SNUG_E_MEMORY, "no memory to read the kernel log");
}

/* Records "level,sequence,microseconds,flags;message": rewritten as dmesg prints them. */
static snug_status read_kmsg(snug_kills *k, const char *root, snug_error *err)
{
    char path[512], record[8192], line[1200];
    struct stat st;
    snprintf(path, sizeof path, "%s/dev/kmsg", root);
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return SNUG_OK;
    bool good = true;
    if (fstat(fd, &st) || S_ISREG(st.st_mode)) { /* a test's file: lines, not records */
        char *text;
        size_t n;
        close(fd);
        snug_status s = sn_io_read_all(&text, &n, path, LOG_LIMIT, SN_TAG_DIAGNOSE, err);
        if (s)
            return s;
        for (char *p = text; p < text + n && good;) {
            char *end = memchr(p, '\n', (size_t)(text + n - p));
            size_t len = end ? (size_t)(end - p) : (size_t)(text + n - p);
            const char *message = memchr(p, ';', len);
            const char *comma = memchr(p, ',', len), *second = NULL;
            if (comma)
                second = memchr(comma + 1, ',', len - (size_t)(comma + 1 - p));
            if (message && second && second < message)
                snprintf(line, sizeof line, "[%.6f] %.*s", strtod(second + 1, NULL) / 1e6,
                         (int)SN_MIN(len - (size_t)(message + 1 - p), (size_t)1000), message + 1);
            else
                snprintf(line, sizeof line, "%.*s", (int)SN_MIN(len, (size_t)1000), p);
            good = add_line(k, line);
            p += len + 1;
        }
        k->log_read = n > 0;
        sn_free(text);
        return good ? SNUG_OK : sn_fail(err, SNUG_E_MEMORY, "no memory to read the kernel log");
    }
    for (;;) {
        ssize_t got = read(fd, record, sizeof record - 1);
        if (got < 0 && (errno == EINTR || errno == EPIPE))
            continue; /* EPIPE: a record was overwritten before it was read */
        if (got <= 0)
            break;
        k->log_read = true;
        record[got] = 0;
        char *message = strchr(record, ';'), *comma = strchr(record, ',');
        char *second = comma ? strchr(comma + 1, ',') : NULL;
        if (!message || !second || second > message)
            continue;
        message[1 + strcspn(message + 1, "\n")] = 0;
        snprintf(line, sizeof line, "[%.6f] %.1000s", strtod(second + 1, NULL) / 1e6, message + 1);
        good = good && add_line(k, line);
    }
    close(fd);
    return good ? SNUG_OK : sn_fail(err, SNUG_E_MEMORY, "no memory to read the kernel log");
}

/* syslog(2), which a kernel may allow where /dev/kmsg is missing (containers). */
static snug_status read_ring(snug_kills *k, snug_error *err)
{
    enum { READ_ALL = 3, SIZE_BUFFER = 10 };
    int size = klogctl(SIZE_BUFFER, NULL, 0);
    if (size <= 0)
        return SNUG_OK;
    char *text = sn_alloc(SN_TAG_DIAGNOSE, (size_t)size);
    if (!text)
        return sn_fail(err, SNUG_E_MEMORY, "no memory to read the kernel log");
    int got = klogctl(READ_ALL, text, size);
    snug_status s = got > 0 ? snug_kills_feed(k, text, (size_t)got, err) : SNUG_OK;
    sn_free(text);
    return s;
}

/* The last TAIL_BYTES of a log file. */
static snug_status read_log(snug_kills *k, const char *root, const char *name, snug_error *err)
{
    char path[512];
    snprintf(path, sizeof path, "%s/var/log/%s", root, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return SNUG_OK;
    struct stat st;
    snug_status s = SNUG_OK;
    if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size > 0) {
        uint64_t size = (uint64_t)st.st_size, from = size > TAIL_BYTES ? size - TAIL_BYTES : 0;
        char *text = sn_alloc(SN_TAG_DIAGNOSE, (size_t)(size - from));
        if (!text) {
            close(fd);
            return sn_fail(err, SNUG_E_MEMORY, "no memory to read %.100s", path);
        }
        if (!sn_io_pread(fd, text, (size_t)(size - from), from, path, NULL))
            s = snug_kills_feed(k, text, (size_t)(size - from), err);
        sn_free(text);
    }
    close(fd);
    return s;
}

snug_status snug_kills_read(snug_kills **out, const char *root, snug_error *err)
{
    static const char *const logs[] = {"kern.log", "messages", "syslog"};
    char text[128];
    sn_cgroup group;
    *out = NULL;
    snug_kills *k = sn_alloc(SN_TAG_DIAGNOSE, sizeof *k);
    if (!k)
        return sn_fail(err, SNUG_E_MEMORY, "no memory to read the kernel log");
    if (!root)
        root = "";
    sn_buf_init(&k->lines, SN_TAG_DIAGNOSE);
    if (sn_proc_read(text, sizeof text, root, "/proc/uptime") > 0)
        k->uptime = strtod(text, NULL);
    snug_status s = read_kmsg(k, root, err);
    if (!s && !k->log_read && !root[0])
        s = read_ring(k, err);
    for (size_t i = 0; i < SN_LEN(logs) && !s && !k->kills.n; i++)
        s = read_log(k, root, logs[i], err);
    /* /proc/self of a root that a test made has no pid of ours: pid 1 stands for it there */
    sn_cgroup_of(&group, root, root[0] ? 1 : (int)getpid());
    k->has_group = sn_cgroup_kills(&group, root, &k->group);
    k->has_boot = sn_proc_kills(root, &k->boot);
    if (s) {
        snug_kills_free(k);
        return s;
    }
    *out = k;
    return SNUG_OK;
}

size_t snug_kills_n(const snug_kills *k)
{
    return k->kills.n;
}

const snug_kill *snug_kills_at(const snug_kills *k, size_t i)
{
    return i < k->kills.n ? &k->kills.at[k->kills.n - 1 - i] : NULL;
}

bool snug_kills_of_group(const snug_kills *k, uint64_t *n)
{
    *n = k->group;
    return k->has_group;
}

bool snug_kills_since_boot(const snug_kills *k, uint64_t *n)
{
    *n = k->boot;
    return k->has_boot;
}

bool snug_kills_log_read(const snug_kills *k)
{
    return k->log_read;
}

snug_status snug_kills_diagnose(const snug_kills *k, snug_diagnosis *d, snug_error *err)
{
    if (!k->lines.len)
        return SNUG_OK;
    return snug_diagnosis_feed(d, "kernel log", k->lines.data, k->lines.len, err);
}

void snug_kills_free(snug_kills *k)
{
    if (!k)
        return;
    SN_VEC_FREE(&k->kills);
    sn_buf_deinit(&k->lines);
    sn_free(k);
}
