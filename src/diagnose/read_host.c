/* SPDX-License-Identifier: Apache-2.0
 *
 * The host: the kernel's and control groups' messages, exit codes, containers, batch systems,
 * notebooks, C++ and Python allocation failures, Windows.
 */
#include "diagnose/state.h"

#include <string.h>

#include "diagnose/scan.h"

static void raise_killed(snug_diagnosis *d, const sn_line *line, sn_tell_id tell)
{
    sn_fact_set(d, SN_FACT_KILLED, 1, line->number);
    sn_tell_raise(d, tell, line->number, line->text);
}

/* "Out of memory: Killed process 4242 (python3) total-vm:31457280kB, anon-rss:24012345kB, ..." and
 * the older "Kill process 4242 (python3) score 912 or sacrifice child". */
static void read_kernel_kill(snug_diagnosis *d, const sn_line *line, const char *at)
{
    uint64_t value, rss = 0, part;
    const char *kill = sn_scan_fold(at, "kill");
    const char *process = kill ? strstr(kill, "process ") : NULL;
    if (process) {
        const char *p = process + strlen("process ");
        if (sn_scan_count(&p, &value)) {
            sn_fact_set(d, SN_FACT_KILLED_PID, value, line->number);
            p += strspn(p, " ,");
            if (*p == '(')
                sn_fact_set_text(d, SN_FACT_KILLED_NAME, p + 1, strcspn(p + 1, ")"), line->number);
        }
    }
    if (sn_scan_after(at, "total-vm", &value))
        sn_fact_set(d, SN_FACT_KILLED_VM, value, line->number);
    bool found = false;
    static const char *const parts[] = {"anon-rss", "file-rss", "shmem-rss"};
    for (size_t i = 0; i < SN_LEN(parts); i++)
        if (sn_scan_after(at, parts[i], &part)) {
            found = true;
            rss += part;
        }
    if (found)
        sn_fact_set(d, SN_FACT_KILLED_RSS, rss, line->number);
    if (sn_scan_after(at, "shmem-rss", &part))
        sn_fact_set(d, SN_FACT_KILLED_SHMEM, part, line->number);
    bool cgroup = sn_scan_fold(line->text, "memory cgroup out of memory") != NULL;
    raise_killed(d, line, cgroup ? SN_TELL_CGROUP_OOM : SN_TELL_KERNEL_OOM);
}

/* "oom-kill:constraint=CONSTRAINT_MEMCG,...,task=python,pid=4242,uid=0" */
static void read_oom_kill(snug_diagnosis *d, const sn_line *line, const char *at)
{
    uint64_t pid;
    const char *task = strstr(at, ",task=");
    if (task) {
        task += strlen(",task=");
        sn_fact_set_text(d, SN_FACT_KILLED_NAME, task, strcspn(task, ","), line->number);
    }
    if (sn_scan_count_after(at, ",pid=", &pid))
        sn_fact_set(d, SN_FACT_KILLED_PID, pid, line->number);
    bool cgroup = sn_scan_has(at, "CONSTRAINT_MEMCG");
    raise_killed(d, line, cgroup ? SN_TELL_CGROUP_OOM : SN_TELL_KERNEL_OOM);
}

/* "memory: usage 2097152kB, limit 2097152kB, failcnt 512" */
static void read_cgroup_usage(snug_diagnosis *d, const sn_line *line, const char *at)
{
    uint64_t bytes;
    if (sn_scan_after(at, "usage", &bytes))
        sn_fact_set(d, SN_FACT_CGROUP_USAGE, bytes, line->number);
    if (sn_scan_after(at, "limit", &bytes) && bytes < UINT64_C(1) << 50)
        sn_fact_set(d, SN_FACT_CGROUP_LIMIT, bytes, line->number);
}

/* A row of the kernel's table of tasks: "[   4242]  1000  4242  7864320  6003086 ... python3". */
static void read_task_row(snug_diagnosis *d, const sn_line *line, const char *at)
{
    const char *open = strstr(line->text, "[ ");
    uint64_t pid, uid, tgid, vm, rss;
    SN_UNUSED(at);
    for (; open; open = strstr(open + 1, "[ ")) {
        const char *p = open + 1;
        if (!sn_scan_count(&p, &pid) || *p != ']')
            continue;
        p++;
        if (sn_scan_count(&p, &uid) && sn_scan_count(&p, &tgid) && sn_scan_count(&p, &vm) &&
            sn_scan_count(&p, &rss) && rss >= 65536) /* pages: 256 MiB */
            sn_tell_raise(d, SN_TELL_OOM_PYTHONS, line->number, line->text);
        return;
    }
}

/* Any line with "killed" in it: the shell's word, a signal's name, a supervisor's report. */
static void read_killed(snug_diagnosis *d, const sn_line *line, const char *at)
{
    const char *t = line->text;
    if (sn_scan_fold(t, "oomkilled") || sn_scan_fold(t, "killed process") ||
        sn_scan_has(t, "DataLoader worker") || sn_scan_has(t, "killed by user"))
        return; /* other rows read them */
    const char *s = t + strspn(t, " ");
    bool bare = sn_str_starts(s, "Killed") &&
                (s[6] == '\0' || s[6] == ' ' || s[6] == '.' || s[6] == ':' || s[6] == '\'');
    if (bare && s[6] == ' ') { /* "Killed" with what was killed, or the end of the line */
        const char *rest = s + 6 + strspn(s + 6, " ");
        bare = !*rest || *rest == '(' || *rest == '#' || sn_scan_has(rest, "python");
    }
    /* "/bin/sh: line 1: 4242 Killed   python train.py", "zsh: killed     python train.py" */
    bool shell = (sn_scan_has(t, "sh: ") || sn_scan_has(t, "line ") || sn_scan_has(t, ".sh")) &&
                 (sn_str_starts(at, "Killed ") || sn_str_starts(at, "killed "));
    bool job = sn_scan_has(t, "+ ") && sn_str_starts(at, "Killed  "); /* "[1]+  1234 Killed   x" */
    /* behind a progress bar, a time or a supervisor's name, but not at the end of a sentence */
    const char *before = at;
    while (before > t && before[-1] == ' ')
        before--;
    bool end = before > t && sn_str_starts(at, "Killed") && !at[6 + strspn(at + 6, " ")] &&
               !(before[-1] >= 'a' && before[-1] <= 'z') && before[-1] != ',';
    bool pressure = sn_scan_fold(t, "memory pressure") || sn_scan_fold(t, "OOM killer") ||
                    sn_scan_fold(t, "out-of-memory handler");
    if (pressure)
        raise_killed(d, line, SN_TELL_CGROUP_OOM);
    else if (bare || shell || job || end)
        raise_killed(d, line, SN_TELL_KILLED);
}

static void read_sigkill(snug_diagnosis *d, const sn_line *line, const char *at)
{
    SN_UNUSED(at);
    sn_fact_set_text(d, SN_FACT_SIGNAL, "SIGKILL", strlen("SIGKILL"), line->number);
    raise_killed(d, line, SN_TELL_EXIT_137);
}

/* "exit code 137", "exited with code 137", "exitCode": 137, "exitcode: -9" */
static void read_exit(snug_diagnosis *d, const sn_line *line, const char *at)
{
    const char *p = at + strcspn(at, "-0123456789");
    if (p - at > 40)
        return;
    bool negative = *p == '-';
    uint64_t value;
    p += negative;
    if (!sn_scan_count(&p, &value))
        return;
    if ((negative && value == 9) || (!negative && value == 137)) {
        sn_fact_set(d, SN_FACT_EXIT_CODE, 137, line->number);
        raise_killed(d, line, SN_TELL_EXIT_137);
    }
}

/* "OOMKilled": true, reason: OOMKilled; but "OOMKilled": false is no news. */
static void read_oomkilled(snug_diagnosis *d, const sn_line *line, const char *at)
{
    const char *p = at + strlen("OOMKilled");
    p += strspn(p, " \"':=");
    if (sn_scan_fold(p, "false") == p)
        return;
    raise_killed(d, line, SN_TELL_CGROUP_OOM);
}

static void read_scheduler(snug_diagnosis *d, const sn_line *line, const char *at)
{
    SN_UNUSED(at);
    raise_killed(d, line, SN_TELL_SCHEDULER_OOM);
}

/* "MemoryError: Unable to allocate 2.04 GiB for an array with shape (697932, 784, 1) and data type
 * float32" */
static void read_numpy(snug_diagnosis *d, const sn_line *line, const char *at)
{
    uint64_t bytes;
    int64_t dims[8];
    size_t n;
    if (sn_scan_after(at, "nable to allocate", &bytes))
        sn_fact_set(d, SN_FACT_REQUESTED, bytes, line->number);
    const char *shape = strstr(at, "shape ");
    if (shape && sn_scan_shape(shape + strlen("shape "), dims, &n))
        sn_fact_set_shape(d, SN_FACT_SHAPE, dims, n, line->number);
    const char *type = strstr(at, "data type ");
    if (type) {
        type += strlen("data type ");
        size_t k = strcspn(type, " ,;\"'");
        sn_fact_set_text(d, SN_FACT_DTYPE, type, k, line->number);
    }
    sn_framework_set(d, SN_FRAMEWORK_NUMPY, NULL);
    sn_device_set(d, "cpu");
    sn_tell_raise(d, SN_TELL_NUMPY_ALLOC, line->number, line->text);
}

/* R: "Error: cannot allocate vector of size 12.5 Gb" */
static void read_vector(snug_diagnosis *d, const sn_line *line, const char *at)
{
    uint64_t bytes;
    if (sn_scan_after(at, "of size", &bytes))
        sn_fact_set(d, SN_FACT_REQUESTED, bytes, line->number);
    sn_framework_set(d, SN_FRAMEWORK_OTHER, "r");
    sn_device_set(d, "cpu");
    sn_tell_raise(d, SN_TELL_NUMPY_ALLOC, line->number, line->text);
}

/* MemoryError on a line of its own, or with nothing that another row reads. */
static void read_memory_error(snug_diagnosis *d, const sn_line *line, const char *at)
{
    if (sn_scan_has(at, "nable to allocate") || sn_scan_has(line->text, "except ") ||
        sn_scan_has(at, "allocating") || sn_scan_has(line->text, "raise "))
        return;
    if (at > line->text && at[-1] != ' ' && at[-1] != '.' && at[-1] != '_')
        return; /* OutOfMemoryError */
    sn_tell_raise(d, SN_TELL_MEMORY_ERROR, line->number, line->text);
}

/* "OpenCV(4.8.0) ...: error: (-4:Insufficient memory) Failed to allocate 36578304 bytes in
 * function 'OutOfMemoryError'" */
static void read_opencv(snug_diagnosis *d, const sn_line *line, const char *at)
{
    uint64_t bytes;
    if (sn_scan_after(line->text, "ailed to allocate", &bytes))
        sn_fact_set(d, SN_FACT_REQUESTED, bytes, line->number);
    SN_UNUSED(at);
    sn_tell_raise(d, SN_TELL_CV_ALLOC, line->number, line->text);
}

static void read_errno(snug_diagnosis *d, const sn_line *line, const char *at)
{
    SN_UNUSED(at);
    if (sn_scan_has(line->text, "CPUAllocator") || sn_scan_has(line->text, "/torch_"))
        return;
    sn_tell_raise(d, SN_TELL_ERRNO_12, line->number, line->text);
}

static void read_winerror(snug_diagnosis *d, const sn_line *line, const char *at)
{
    uint64_t code;
    if (!sn_scan_count_after(at, "WinError", &code))
        return;
    if (code == 1455 || code == 8 || code == 14 || code == 1450) {
        sn_fact_set(d, SN_FACT_WINERROR, code, line->number);
        sn_tell_raise(d, code == 1455 ? SN_TELL_WIN_PAGING : SN_TELL_WIN_NOMEM, line->number,
                      line->text);
    }
}

/* "No space left on device" is the disk, unless shared memory is named near it. */
static void read_no_space(snug_diagnosis *d, const sn_line *line, const char *at)
{
    SN_UNUSED(at);
    if (sn_scan_has(line->text, "/dev/shm") || sn_scan_has(line->text, "torch_") ||
        sn_scan_has(line->text, "shm_open") || sn_scan_has(line->text, "psm_"))
        sn_tell_raise(d, SN_TELL_SHM_FULL, line->number, line->text);
}

/* `df`: "shm              64M   64M     0 100% /dev/shm" (kilobytes without -h) */
static void read_shm_row(snug_diagnosis *d, const sn_line *line, const char *at)
{
    const char *percent = strchr(line->text, '%');
    if (sn_scan_has(line->text, "nccl") || sn_scan_has(line->text, "NCCL")) {
        if (sn_scan_fold(line->text, "no space left") || sn_scan_fold(line->text, "error"))
            sn_tell_raise(d, SN_TELL_NCCL_SHM, line->number, line->text);
        return;
    }
    if (!percent || percent > at)
        return;
    const char *p = line->text + strcspn(line->text, " ");
    uint64_t total, used, unused;
    bool unit;
    if (!sn_scan_size(&p, &total, &unit) || !sn_scan_size(&p, &used, NULL) ||
        !sn_scan_size(&p, &unused, NULL))
        return;
    if (!unit) {
        total *= 1024;
        used *= 1024;
    }
    sn_fact_set(d, SN_FACT_SHM_TOTAL, total, line->number);
    sn_fact_set(d, SN_FACT_SHM_USED, used, line->number);
}

/* "Mem:            31Gi        30Gi ..." of `free` */
static void read_free(snug_diagnosis *d, const sn_line *line, const char *at)
{
    char text[80];
    size_t n = 0;
    for (const char *p = at + strlen("Mem:"); *p && n < sizeof text - 2; p++)
        if (!(*p == 'i' && p[1] == ' ')) /* "31Gi" */
            text[n++] = *p;
    text[n] = '\0';
    const char *p = text;
    uint64_t total;
    bool unit;
    if (sn_scan_size(&p, &total, &unit) && total)
        sn_fact_set(d, SN_FACT_HOST_TOTAL, unit ? total : total * 1024, line->number);
}

static void read_bus(snug_diagnosis *d, const sn_line *line, const char *at)
{
    if (sn_scan_has(line->text, "DataLoader worker"))
        return;
    if (at == line->text + strspn(line->text, " ") || sn_scan_has(line->text, "core dumped") ||
        sn_scan_has(line->text, "Fatal Python error") || sn_scan_has(line->text, "line ") ||
        sn_scan_has(line->text, "SIGBUS"))
        sn_tell_raise(d, SN_TELL_BUS_ERROR, line->number, line->text);
}

#define NO SN_FRAMEWORK_NONE
static const sn_pattern rows[] = {
    {"out of memory: Killed process", NULL, 0, NO, read_kernel_kill, false},
    {"out of memory: Kill process", NULL, 0, NO, read_kernel_kill, false},
    {"Killed process ", "-rss:", 0, NO, read_kernel_kill, false},
    {"oom-kill:constraint", NULL, 0, NO, read_oom_kill, false},
    {"oom_reaper: reaped process", NULL, SN_TELL_KERNEL_OOM, NO, NULL, false},
    {"invoked oom-killer", NULL, SN_TELL_KERNEL_OOM, NO, NULL, false},
    {"memory: usage ", "limit", 0, NO, read_cgroup_usage, false},
    {"python", "]", 0, NO, read_task_row, true},
    {"pt_main_thread", "]", 0, NO, read_task_row, true},
    {"pt_data_worker", "]", 0, NO, read_task_row, true},
    {"killed", NULL, 0, NO, read_killed, false},
    {"SIGKILL", NULL, 0, NO, read_sigkill, false},
    {"terminated by signal 9", NULL, 0, NO, read_sigkill, false},
    {"died with signal 9", NULL, 0, NO, read_sigkill, false},
    {"by signal 9", NULL, 0, NO, read_sigkill, false},
    {"exit code", NULL, 0, NO, read_exit, false},
    {"exitcode", NULL, 0, NO, read_exit, false},
    {"exit status", NULL, 0, NO, read_exit, false},
    {"exited with", NULL, 0, NO, read_exit, false},
    {"exited (", NULL, 0, NO, read_exit, false},
    {"return code", NULL, 0, NO, read_exit, false},
    {"returncode", NULL, 0, NO, read_exit, false},
    {"exit_code", NULL, 0, NO, read_exit, false},
    {"OOMKilled", NULL, 0, NO, read_oomkilled, false},
    {"terminated abruptly", "process pool", SN_TELL_EXIT_137, NO, NULL, false},
    {"executor was unexpectedly terminated", NULL, SN_TELL_EXIT_137, NO, NULL, false},
    {"oom-kill event", NULL, 0, NO, read_scheduler, false},
    {"oom_kill event", NULL, 0, NO, read_scheduler, false},
    {"OUT_OF_MEMORY", "State", 0, NO, read_scheduler, false},
    {"DUE TO MEMORY", NULL, 0, NO, read_scheduler, false},
    {"Exceeded job memory limit", NULL, 0, NO, read_scheduler, false},
    {"exceeded memory limit", NULL, 0, NO, read_scheduler, false},
    {"node running low on memory", NULL, 0, NO, read_scheduler, false},
    {"killed due to memory pressure", NULL, 0, NO, read_scheduler, false},
    {"job killed: mem", NULL, 0, NO, read_scheduler, false},
    {": Out Of Memory", "task", 0, NO, read_scheduler, false},
    {"was OOM-killed", NULL, 0, NO, read_scheduler, false},
    {"Container killed due to memory", NULL, 0, NO, read_scheduler, false},
    {"Memory limit of ", "exceeded", 0, NO, read_scheduler, false},
    {"TERM_MEMLIMIT", NULL, 0, NO, read_scheduler, false},
    {"Exceeded step memory limit", NULL, 0, NO, read_scheduler, false},
    {"exceeding its requested memory", NULL, 0, NO, read_scheduler, false},
    {"badness ", "VmRSS", 0, NO, read_scheduler, false},
    {"was evicted", "memory", 0, NO, read_scheduler, false},
    {"node was low on resource: memory", NULL, 0, NO, read_scheduler, false},
    {"crashed after using all available RAM", NULL, SN_TELL_NOTEBOOK_RAM, NO, NULL, false},
    {"tried to allocate more memory than is available", NULL, SN_TELL_NOTEBOOK_RAM, NO, NULL,
     false},
    {"kernel appears to have died", NULL, SN_TELL_NOTEBOOK_DIED, NO, NULL, false},
    {"Kernel crashed while executing", NULL, SN_TELL_NOTEBOOK_DIED, NO, NULL, false},
    {"session crashed for an unknown reason", NULL, SN_TELL_NOTEBOOK_DIED, NO, NULL, false},
    {"KernelRestarter: restarting kernel", NULL, SN_TELL_NOTEBOOK_DIED, NO, NULL, false},
    {"bad_alloc", NULL, SN_TELL_BAD_ALLOC, NO, NULL, false},
    {"std::length_error", "memory", SN_TELL_BAD_ALLOC, NO, NULL, false},
    {"Unable to allocate ", "array with shape", 0, NO, read_numpy, false},
    {"cannot allocate vector of size", NULL, 0, NO, read_vector, false},
    {"MemoryError", NULL, 0, NO, read_memory_error, false},
    {"Insufficient memory", NULL, 0, NO, read_opencv, false},
    {"Cannot allocate memory", NULL, 0, NO, read_errno, false},
    {"not enough RAM", NULL, SN_TELL_CACHE_WARNING, NO, NULL, false},
    {"WinError", NULL, 0, NO, read_winerror, false},
    {"paging file is too small", NULL, SN_TELL_WIN_PAGING, NO, NULL, false},
    {"Not enough memory resources are available", NULL, SN_TELL_WIN_NOMEM, NO, NULL, false},
    {"No space left on device", NULL, 0, NO, read_no_space, false},
    {"/dev/shm", NULL, 0, NO, read_shm_row, false},
    {"Mem:   ", NULL, 0, NO, read_free, true},
    {"Bus error", NULL, 0, NO, read_bus, false},
    {"SIGBUS", NULL, 0, NO, read_bus, false},
    {"Unable to allocate internal buffer", NULL, SN_TELL_MEMORY_ERROR, NO, NULL, false},
};

const sn_pattern *sn_patterns_host(size_t *n)
{
    *n = SN_LEN(rows);
    return rows;
}
