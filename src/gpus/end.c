/* SPDX-License-Identifier: Apache-2.0
 *
 * end.c - ending a process without ever hitting another one.
 *
 * 1. The pidfd is opened first; then start time and owner are read again and compared. If they are
 *    those expected, the pidfd means that process, whatever happens to its number later.
 * 2. Signals go through the pidfd only.
 * 3. What is refused, and why, is decided by one function for the list, the dry run and the act.
 */
#include "gpus/gpus.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
#endif

bool sn_gpus_refusal(const snug_gpus *gpus, const sn_gpus_proc *proc, int64_t owner, uint64_t uid,
                     char *out, size_t n)
{
    const char *role = sn_gpus_session_role(proc->comm);
    if (proc->pid <= 1)
        snprintf(out, n, "process %lld runs the machine (or the container)", (long long)proc->pid);
    else if (proc->kernel_thread)
        snprintf(out, n, "it is a thread of the kernel");
    else if (proc->pid == gpus->self)
        snprintf(out, n, "it is this very command");
    else if (proc->flags & SN_PROC_ANCESTOR)
        snprintf(out, n, "this command runs inside it (an ancestor)");
    else if (role)
        snprintf(out, n, "%.15s %s", proc->comm, role);
    else if (proc->state == 'Z' || proc->state == 'X') {
        const sn_gpus_proc *parent = sn_gpus_find(gpus, proc->parent);
        snprintf(out, n,
                 "it is dead already (a zombie): what it held goes when its parent, process %lld%s"
                 "%.15s%s, collects it or ends",
                 (long long)proc->parent, parent ? " (" : "", parent ? parent->comm : "",
                 parent ? ")" : "");
    } else if (owner < 0)
        snprintf(out, n, "its owner cannot be read");
    else if ((uint64_t)owner != uid)
        snprintf(out, n, "it belongs to another user (uid %lld, not %llu): ask its owner",
                 (long long)owner, (unsigned long long)uid);
    else
        return false;
    return true;
}

static int pidfd_open(int64_t pid)
{
    return (int)syscall(SYS_pidfd_open, (pid_t)pid, 0u);
}

static int pidfd_signal(int fd, int signal_number)
{
    return (int)syscall(SYS_pidfd_send_signal, fd, signal_number, NULL, 0u);
}

static void verdict(snug_gpus_target *t, snug_gpus_verdict v, const char *format, ...)
    SNUG_PRINTF(3, 4);
static void verdict(snug_gpus_target *t, snug_gpus_verdict v, const char *format, ...)
{
    va_list args;
    t->verdict = v;
    va_start(args, format);
    vsnprintf(t->text, sizeof t->text, format, args);
    va_end(args);
}

/* What the target held when the snapshot was taken. */
static void held(snug_gpus *gpus, snug_gpus_target *t)
{
    t->card_bytes = 0;
    t->host_bytes = SNUG_BYTES_UNKNOWN;
    for (size_t c = 0; c < gpus->cards.n; c++)
        for (size_t i = 0; i < gpus->cards.at[c].processes.n; i++) {
            const snug_gpus_process *p = &gpus->cards.at[c].processes.at[i];
            if (p->pid != t->pid)
                continue;
            if (p->bytes == SNUG_BYTES_UNKNOWN || t->card_bytes == SNUG_BYTES_UNKNOWN)
                t->card_bytes = SNUG_BYTES_UNKNOWN;
            else
                t->card_bytes += p->bytes;
        }
    sn_gpus_proc *proc = sn_gpus_find(gpus, t->pid);
    if (proc) {
        sn_gpus_facts(gpus, proc);
        t->host_bytes = proc->host_bytes;
    }
}

/* The process as it is now; false: gone. */
static bool read_now(const sn_gpus_root *root, int64_t pid, sn_gpus_proc *out)
{
    char text[1024];
    *out = (sn_gpus_proc){.pid = pid, .idle_seconds = -1, .uid = -1};
    return sn_gpus_read(root, text, sizeof text, "proc/%lld/stat", (long long)pid) > 0 &&
           sn_gpus_stat_parse(out, text);
}

/* Whether the target may be ended; its verdict is set if not. */
static bool judge(snug_gpus *gpus, snug_gpus_target *t, uint64_t uid)
{
    const sn_gpus_proc *seen = sn_gpus_find(gpus, t->pid);
    sn_gpus_proc now;
    held(gpus, t);
    if (!read_now(&gpus->root, t->pid, &now)) {
        verdict(t, SNUG_GPUS_GONE, "process %lld: there is no such process", (long long)t->pid);
        return false;
    }
    uint64_t expected = t->start_ticks ? t->start_ticks : seen ? seen->start_ticks : 0;
    if ((t->start_ticks || seen) && now.start_ticks != expected) {
        verdict(t, SNUG_GPUS_GONE,
                "process %lld: it has ended, its number now belongs to another process (%.15s), "
                "which is left alone",
                (long long)t->pid, now.comm);
        return false;
    }
    if (seen)
        now.flags = seen->flags;
    char why[280];
    if (sn_gpus_refusal(gpus, &now, sn_gpus_uid(&gpus->root, t->pid, NULL), uid, why, sizeof why)) {
        verdict(t, SNUG_GPUS_REFUSED, "process %lld is not ended: %s", (long long)t->pid, why);
        return false;
    }
    bool kernel = seen && seen->what && sn_str_starts(seen->what, "jupyter kernel");
    verdict(t, SNUG_GPUS_WOULD_END, "process %lld (%.60s)%s", (long long)t->pid,
            seen && seen->what ? seen->what : now.comm,
            kernel ? ": a notebook's kernel. Better shut it down in Jupyter (Kernel > Shut Down); "
                     "if it is ended from here Jupyter says that it died and starts a new one"
                   : "");
    return true;
}

static bool wait_end(int fd, double until)
{
    for (;;) {
        double left = until - sn_now();
        struct pollfd p = {.fd = fd, .events = POLLIN};
        int result = poll(&p, 1, left > 0 ? (int)(left * 1000) + 1 : 0);
        if (result > 0)
            return true;
        if (result == 0 && left <= 0)
            return false;
        if (result < 0 && errno != EINTR)
            return false;
    }
}

/* Sends TERM through a pidfd, which is returned; -1: the verdict says why not. */
static int start_end(snug_gpus *gpus, snug_gpus_target *t, uint64_t uid, bool *no_pidfd)
{
    int fd = t->pid > 0 && t->pid <= INT32_MAX ? pidfd_open(t->pid) : -1;
    if (fd < 0 && (errno == ENOSYS || errno == EPERM)) {
        *no_pidfd = true;
        return -1;
    }
    if (!judge(gpus, t, uid)) {
        if (fd >= 0)
            close(fd);
        return -1;
    }
    if (fd < 0) {
        verdict(t, SNUG_GPUS_GONE, "process %lld: there is no such process", (long long)t->pid);
        return -1;
    }
    if (pidfd_signal(fd, SIGTERM)) {
        int why = errno;
        close(fd);
        if (why == ESRCH)
            verdict(t, SNUG_GPUS_GONE, "process %lld ended by itself", (long long)t->pid);
        else
            verdict(t, SNUG_GPUS_FAILED, "process %lld could not be signalled: %s",
                    (long long)t->pid, strerror(why));
        return -1;
    }
    /* A stopped process takes TERM only when it goes on. */
    pidfd_signal(fd, SIGCONT);
    return fd;
}

static void finish_end(snug_gpus_target *t, int fd, double until, uint32_t kill_wait_ms)
{
    if (wait_end(fd, until)) {
        verdict(t, SNUG_GPUS_ENDED, "process %lld ended", (long long)t->pid);
    } else if (pidfd_signal(fd, SIGKILL) && errno != ESRCH) {
        verdict(t, SNUG_GPUS_FAILED, "process %lld did not end and could not be killed: %s",
                (long long)t->pid, strerror(errno));
    } else if (wait_end(fd, sn_now() + kill_wait_ms / 1000.0)) {
        verdict(t, SNUG_GPUS_KILLED, "process %lld did not react to TERM and was killed",
                (long long)t->pid);
    } else {
        verdict(t, SNUG_GPUS_FAILED,
                "process %lld does not end even by KILL: it waits inside the kernel, often for the "
                "driver; if it stays, only a restart of the machine helps",
                (long long)t->pid);
    }
}

snug_status snug_gpus_end(snug_gpus_target *targets, size_t n, snug_gpus *gpus,
                          const snug_gpus_end_options *options, snug_error *err)
{
    snug_gpus_end_options o = SNUG_GPUS_END_OPTIONS_INIT;
    if (options && options->struct_size < sizeof o.struct_size)
        return sn_fail(err, SNUG_E_USAGE, "snug_gpus_end_options: struct_size is not set");
    if (options)
        memcpy(&o, options, SN_MIN(options->struct_size, sizeof o));
    uint64_t uid = o.uid ? o.uid : gpus->caller_uid;
    if (!o.yes) {
        for (size_t i = 0; i < n; i++)
            judge(gpus, &targets[i], uid);
        return SNUG_OK;
    }
    if (!gpus->root.real)
        return sn_fail(err, SNUG_E_USAGE,
                       "processes of another root are not ended: only this machine's can be");
    int *fds = sn_alloc_array(SN_TAG_GPUS, n, sizeof *fds);
    if (!fds)
        return sn_fail(err, SNUG_E_MEMORY, "no memory for %zu processes", n);
    bool no_pidfd = false;
    for (size_t i = 0; i < n; i++)
        fds[i] = no_pidfd ? -1 : start_end(gpus, &targets[i], uid, &no_pidfd);
    double until = sn_now() + (o.wait_ms ? o.wait_ms : 10000) / 1000.0;
    for (size_t i = 0; i < n; i++)
        if (fds[i] >= 0) {
            finish_end(&targets[i], fds[i], until, o.kill_wait_ms ? o.kill_wait_ms : 5000);
            close(fds[i]);
        }
    sn_free(fds);
    return no_pidfd ? sn_fail(err, SNUG_E_UNSUPPORTED,
                              "this kernel (or sandbox) has no pidfd, which Linux 5.3 brought; end "
                              "the process with: kill PID")
                    : SNUG_OK;
}
