/* SPDX-License-Identifier: Apache-2.0
 *
 * run.c - a command run with everything passed through.
 *
 * 1. Bytes reach the real stream before anybody else sees them, in order, unchanged. 2. The command
 * starts with the signal mask and dispositions that we were started with.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"
#include "run.h"

#define LINES 65536
#define DRAIN_MS 60

/* One of the command's streams. */
typedef struct stream {
    int from, to;  /* our end, the real stream; from -1: closed */
    int child_end; /* what the command gets */
    bool terminal;
    char lines[LINES]; /* what was passed on but not yet shown: the line that is not over */
    size_t n;
} stream;

typedef struct relay {
    sn_cli_run *run;
    stream out, err;
    bool one; /* both are one: the command's stderr goes where its stdout goes */
    int signals;
    sigset_t old_mask;
    struct sigaction old_pipe;
    pid_t child;
    bool over, hooks_over;
} relay;

static snug_status failed(snug_error *err, snug_status code, const char *format, ...)
    SNUG_PRINTF(3, 4);

static snug_status failed(snug_error *err, snug_status code, const char *format, ...)
{
    va_list args;
    err->code = code;
    err->where[0] = 0;
    va_start(args, format);
    vsnprintf(err->what, sizeof err->what, format, args);
    va_end(args);
    return code;
}

/* A pseudo terminal that passes bytes on as they are: the real one does what terminals do. */
static bool open_terminal(stream *s, int like)
{
    struct termios t;
    struct winsize size;
    bool has_size = !ioctl(like, TIOCGWINSZ, &size);
    if (tcgetattr(like, &t) || openpty(&s->from, &s->child_end, NULL, &t, has_size ? &size : NULL))
        return false;
    t.c_oflag &= ~(tcflag_t)OPOST;
    t.c_lflag &= ~(tcflag_t)(ECHO | ICANON | ISIG);
    tcsetattr(s->child_end, TCSANOW, &t);
    s->terminal = true;
    fcntl(s->from, F_SETFD, FD_CLOEXEC);
    fcntl(s->child_end, F_SETFD, FD_CLOEXEC);
    return true;
}

static bool open_stream(stream *s, int real)
{
    int ends[2];
    s->to = real;
    s->from = s->child_end = -1;
    if (isatty(real) && open_terminal(s, real))
        return true;
    if (pipe2(ends, O_CLOEXEC))
        return false;
    s->from = ends[0];
    s->child_end = ends[1];
    return true;
}

/* Whether both descriptors are one file: then one pipe keeps the order of what is printed. */
static bool same_file(int a, int b)
{
    struct stat x, y;
    return !fstat(a, &x) && !fstat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino &&
           x.st_rdev == y.st_rdev;
}

static bool write_all(int fd, const char *bytes, size_t n)
{
    while (n) {
        ssize_t done = write(fd, bytes, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0 && errno == EAGAIN) {
            struct pollfd p = {fd, POLLOUT, 0};
            poll(&p, 1, 1000);
            continue;
        }
        if (done < 0)
            return false;
        bytes += done;
        n -= (size_t)done;
    }
    return true;
}

static void close_end(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static void show(relay *r, const char *bytes, size_t n)
{
    snug_error err = SNUG_ERROR_INIT;
    if (n && !r->hooks_over && r->run->output(r->run->context, bytes, n, &err))
        r->hooks_over = true;
}

/* Shows the lines that are over; a line longer than the buffer is shown in pieces. */
static void take_lines(relay *r, stream *s, const char *bytes, size_t n)
{
    while (n) {
        size_t room = sizeof s->lines - s->n, part = n < room ? n : room;
        memcpy(s->lines + s->n, bytes, part);
        s->n += part;
        bytes += part;
        n -= part;
        size_t whole = s->n;
        while (whole && s->lines[whole - 1] != '\n' && s->lines[whole - 1] != '\r')
            whole--;
        if (!whole && s->n == sizeof s->lines)
            whole = s->n;
        show(r, s->lines, whole);
        memmove(s->lines, s->lines + whole, s->n - whole);
        s->n -= whole;
    }
}

/* One read; false when the stream is over. */
static bool pass(relay *r, stream *s)
{
    char bytes[16384];
    ssize_t got = read(s->from, bytes, sizeof bytes);
    if (got < 0 && (errno == EINTR || errno == EAGAIN))
        return true;
    if (got <= 0 || !write_all(s->to, bytes, (size_t)got)) { /* 1 */
        close_end(&s->from); /* nobody reads any more: the command gets SIGPIPE as it would have */
        return false;
    }
    take_lines(r, s, bytes, (size_t)got);
    return true;
}

static void child_side(relay *r, int failure)
{
    sigaction(SIGPIPE, &r->old_pipe, NULL); /* 2 */
    sigprocmask(SIG_SETMASK, &r->old_mask, NULL);
    dup2(r->out.child_end, STDOUT_FILENO);
    dup2(r->one ? r->out.child_end : r->err.child_end, STDERR_FILENO);
    execvp(r->run->argv[0], r->run->argv);
    int why = errno;
    ssize_t done = write(failure, &why, sizeof why);
    _exit(done == (ssize_t)sizeof why && why == ENOENT ? 127 : 126);
}

static snug_status start(relay *r, snug_error *err)
{
    int gate[2], why = 0;
    if (pipe2(gate, O_CLOEXEC))
        return failed(err, SNUG_E_IO, "no pipe for the command: %s", strerror(errno));
    r->child = fork();
    if (r->child < 0) {
        close(gate[0]);
        close(gate[1]);
        return failed(err, SNUG_E_IO, "no process for the command: %s", strerror(errno));
    }
    if (!r->child)
        child_side(r, gate[1]);
    close(gate[1]);
    close_end(&r->out.child_end);
    close_end(&r->err.child_end);
    snug_status s = r->run->started(r->run->context, r->child, err);
    ssize_t got = read(gate[0], &why, sizeof why);
    close(gate[0]);
    if (got == (ssize_t)sizeof why) {
        waitpid(r->child, NULL, 0);
        r->run->exit_code = why == ENOENT ? 127 : 126;
        return failed(err, why == ENOENT ? SNUG_E_NOT_FOUND : SNUG_E_IO, "cannot run %.100s: %s",
                      r->run->argv[0], strerror(why));
    }
    return s;
}

static void reap(relay *r)
{
    int status;
    struct rusage usage;
    pid_t pid;
    while ((pid = wait4(-1, &status, WNOHANG, &usage)) > 0) {
        if (pid != r->child)
            continue; /* an orphan of the command, handed to us as its subreaper */
        r->over = true;
        r->run->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
        r->run->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
        r->run->peak_bytes = (uint64_t)usage.ru_maxrss * 1024;
    }
}

static void take_signal(relay *r)
{
    struct signalfd_siginfo info;
    if (read(r->signals, &info, sizeof info) != (ssize_t)sizeof info)
        return;
    if (info.ssi_signo == SIGCHLD) {
        reap(r);
    } else if (info.ssi_signo == SIGWINCH) {
        struct winsize size;
        if (r->out.terminal && !ioctl(r->out.to, TIOCGWINSZ, &size))
            ioctl(r->out.from, TIOCSWINSZ, &size);
        if (r->err.terminal && r->err.from >= 0 && !ioctl(r->err.to, TIOCGWINSZ, &size))
            ioctl(r->err.from, TIOCSWINSZ, &size);
        if (info.ssi_code <= 0 && !r->over)
            kill(r->child, SIGWINCH);
    } else if (!r->over) {
        /* Ctrl-C and Ctrl-\ go to the whole foreground group: the command has its own already. */
        bool typed =
            info.ssi_code == SI_KERNEL && (info.ssi_signo == SIGINT || info.ssi_signo == SIGQUIT);
        if (!typed)
            kill(r->child, (int)info.ssi_signo);
    }
}

static int milliseconds(double seconds)
{
    return seconds <= 0 ? 0 : seconds > 10 ? 10000 : (int)(seconds * 1000) + 1;
}

/* Until the command has ended and what it printed is passed on. */
static void loop(relay *r)
{
    for (;;) {
        struct pollfd p[3] = {
            {r->signals, POLLIN, 0}, {r->out.from, POLLIN, 0}, {r->err.from, POLLIN, 0}};
        double wait = r->hooks_over ? 10 : r->run->wait(r->run->context);
        int n = poll(p, 3, r->over ? DRAIN_MS : milliseconds(wait));
        if (n < 0 && errno != EINTR)
            return;
        if (n > 0 && p[1].revents && r->out.from >= 0)
            pass(r, &r->out);
        if (n > 0 && p[2].revents && r->err.from >= 0)
            pass(r, &r->err);
        if (n > 0 && p[0].revents)
            take_signal(r);
        /* A daemon that the command left behind may keep its streams open: silence is the end. */
        if (r->over && (n == 0 || (r->out.from < 0 && r->err.from < 0)))
            return;
        snug_error err = SNUG_ERROR_INIT;
        if (!r->over && !r->hooks_over && r->run->wait(r->run->context) <= 0 &&
            r->run->sample(r->run->context, &err))
            r->hooks_over = true;
    }
}

static bool block_signals(relay *r)
{
    sigset_t mask;
    static const int forwarded[] = {SIGINT,  SIGTERM, SIGHUP,   SIGQUIT, SIGUSR1,
                                    SIGUSR2, SIGCHLD, SIGWINCH, SIGALRM, SIGCONT};
    struct sigaction ignore;
    memset(&ignore, 0, sizeof ignore);
    ignore.sa_handler = SIG_IGN;
    sigemptyset(&mask);
    for (size_t i = 0; i < sizeof forwarded / sizeof forwarded[0]; i++)
        sigaddset(&mask, forwarded[i]);
    if (sigprocmask(SIG_BLOCK, &mask, &r->old_mask) || sigaction(SIGPIPE, &ignore, &r->old_pipe))
        return false;
    r->signals = signalfd(-1, &mask, SFD_CLOEXEC);
    return r->signals >= 0;
}

snug_status sn_cli_run_to_end(sn_cli_run *run, snug_error *err)
{
    static relay r; /* two line buffers are too much for a stack */
    memset(&r, 0, sizeof r);
    r.run = run;
    r.out.from = r.err.from = r.out.child_end = r.err.child_end = r.signals = -1;
    run->exit_code = 1;
    int out = run->stdout_to_stderr ? STDERR_FILENO : STDOUT_FILENO;
    r.one = run->stdout_to_stderr || same_file(STDOUT_FILENO, STDERR_FILENO);
    snug_status s = SNUG_OK;
    if (!open_stream(&r.out, out) || (!r.one && !open_stream(&r.err, STDERR_FILENO)) ||
        !block_signals(&r))
        s = failed(err, SNUG_E_IO, "cannot prepare the command's streams: %s", strerror(errno));
    if (!s) {
        prctl(PR_SET_CHILD_SUBREAPER, 1);
        s = start(&r, err);
    }
    if (!s) {
        loop(&r);
        show(&r, r.out.lines, r.out.n);
        show(&r, r.err.lines, r.err.n);
    }
    close_end(&r.out.from);
    close_end(&r.err.from);
    close_end(&r.out.child_end);
    close_end(&r.err.child_end);
    close_end(&r.signals);
    return s;
}
