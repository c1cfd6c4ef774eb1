/* SPDX-License-Identifier: Apache-2.0
 *
 * proc.c - what a process is: owner, age, command, kind, state. Read only for processes that are
 * shown; each fact that cannot be read stays unknown.
 */
#include "gpus/gpus.h"

#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- owner ---- */

/* The number after "\nKey:\t" in a status file; NULL if absent. */
static const char *status_line(const char *text, const char *key)
{
    const char *at = strstr(text, key);
    return at ? at + strlen(key) : NULL;
}

int64_t sn_gpus_uid(const sn_gpus_root *root, int64_t pid, int *n_levels)
{
    char text[8192];
    if (n_levels)
        *n_levels = 0;
    if (sn_gpus_read(root, text, sizeof text, "proc/%lld/status", (long long)pid) <= 0)
        return -1;
    const char *levels = status_line(text, "\nNSpid:");
    if (levels && n_levels)
        for (const char *p = levels; *p && *p != '\n'; p++)
            *n_levels += *p != '\t' && *p != ' ' && (p[-1] == '\t' || p[-1] == ' ');
    const char *uid = status_line(text, "\nUid:");
    if (!uid)
        return -1;
    char *end;
    unsigned long long value = strtoull(uid, &end, 10);
    return end == uid || value > UINT32_MAX ? -1 : (int64_t)value;
}

/* The name of that uid in the root's passwd file, into out. */
static bool passwd_name(const sn_gpus_root *root, int64_t uid, char *out, size_t n)
{
    enum { LIMIT = 1 << 20 };
    char *text = sn_alloc(SN_TAG_GPUS, LIMIT);
    bool found = false;
    if (text && sn_gpus_read(root, text, LIMIT, "etc/passwd") > 0)
        for (char *line = text; *line && !found;) {
            size_t length = strcspn(line, "\n"), name = strcspn(line, ":");
            const char *second = name < length ? strchr(line + name + 1, ':') : NULL;
            char *end;
            if (second && second < line + length && strtoll(second + 1, &end, 10) == uid &&
                end > second + 1 && *end == ':') {
                snprintf(out, n, "%.*s", (int)name, line);
                found = out[0] != '\0';
            }
            line += length + (line[length] == '\n');
        }
    sn_free(text);
    return found;
}

const char *sn_gpus_user(snug_gpus *gpus, int64_t uid)
{
    if (uid < 0)
        return NULL;
    const uint64_t *known = sn_map_find(&gpus->users, &uid, sizeof uid);
    if (known)
        return (const char *)(uintptr_t)*known;
    char name[256], buf[4096];
    bool found = passwd_name(&gpus->root, uid, name, sizeof name);
    if (!found && gpus->root.real) {
        struct passwd entry, *result = NULL;
        found = !getpwuid_r((uid_t)uid, &entry, buf, sizeof buf, &result) && result;
        if (found)
            snprintf(name, sizeof name, "%s", entry.pw_name);
    }
    if (!found)
        snprintf(name, sizeof name, "uid %lld", (long long)uid);
    const char *text = sn_gpus_text(gpus, name);
    if (text && !sn_map_set(&gpus->users, &uid, sizeof uid, (uint64_t)(uintptr_t)text))
        gpus->failed = true;
    return text;
}

/* ---- container ---- */

/* What the last part of a control group's path calls a container: the first 12 digits of a 64-digit
 * id, or a name after a runtime's prefix. */
bool sn_gpus_container_name(const char *cgroup, char *out, size_t n)
{
    out[0] = '\0';
    size_t run = 0;
    for (const char *p = cgroup;; p++) {
        bool hex = (*p >= '0' && *p <= '9') || (*p >= 'a' && *p <= 'f');
        if (!hex && run == 64)
            snprintf(out, n, "%.12s", p - 64);
        run = hex ? run + 1 : 0;
        if (!*p)
            break;
    }
    static const char *const prefixes[] = {"/lxc/", "/lxc.payload.", "/machine.slice/"};
    for (size_t i = 0; i < SN_LEN(prefixes) && !out[0]; i++) {
        const char *at = strstr(cgroup, prefixes[i]);
        if (at)
            snprintf(out, n, "%.*s", (int)strcspn(at + strlen(prefixes[i]), "/\n"),
                     at + strlen(prefixes[i]));
    }
    return out[0] != '\0';
}

static void read_container(snug_gpus *gpus, sn_gpus_proc *proc, int n_levels)
{
    char text[4096], name[72], space[48];
    if (sn_gpus_read(&gpus->root, text, sizeof text, "proc/%lld/cgroup", (long long)proc->pid) >
            0 &&
        sn_gpus_container_name(text, name, sizeof name)) {
        proc->container = sn_gpus_text(gpus, name);
        proc->other_container = strcmp(name, gpus->self_container) != 0;
    }
    if (n_levels > 1)
        proc->other_container = true;
    else if (!n_levels && gpus->self_namespace[0] &&
             sn_gpus_link_name(&gpus->root, space, sizeof space, "proc/%lld/ns/pid",
                               (long long)proc->pid))
        proc->other_container |= strcmp(space, gpus->self_namespace) != 0;
}

/* ---- what it is ---- */

const char *sn_gpus_session_role(const char *comm)
{
    static const struct {
        const char *comm, *role;
    } roles[] = {
        {"Xorg", "shows the desktop: ending it closes every program on the screen"},
        {"X", "shows the desktop: ending it closes every program on the screen"},
        {"Xwayland", "shows the programs of the desktop"},
        {"gnome-shell", "is the desktop itself"},
        {"gnome-session-b", "keeps the desktop session"},
        {"mutter", "shows the desktop"},
        {"kwin_x11", "shows the desktop"},
        {"kwin_wayland", "shows the desktop"},
        {"plasmashell", "is the desktop itself"},
        {"sway", "shows the desktop"},
        {"weston", "shows the desktop"},
        {"Hyprland", "shows the desktop"},
        {"wayfire", "shows the desktop"},
        {"labwc", "shows the desktop"},
        {"river", "shows the desktop"},
        {"niri", "shows the desktop"},
        {"cosmic-comp", "shows the desktop"},
        {"gamescope", "shows the desktop"},
        {"cinnamon", "is the desktop itself"},
        {"xfwm4", "manages the windows of the desktop"},
        {"xfce4-session", "keeps the desktop session"},
        {"marco", "manages the windows of the desktop"},
        {"muffin", "shows the desktop"},
        {"budgie-wm", "shows the desktop"},
        {"gala", "shows the desktop"},
        {"gdm", "keeps the login screen"},
        {"gdm-x-session", "keeps the desktop session"},
        {"gdm-wayland-ses", "keeps the desktop session"},
        {"sddm", "keeps the login screen"},
        {"lightdm", "keeps the login screen"},
        {"systemd", "keeps the session"},
        {"dbus-daemon", "connects the programs of the session"},
        {"dbus-broker", "connects the programs of the session"},
        {"sshd", "keeps a login over the network"},
        {"login", "keeps a login"},
    };
    for (size_t i = 0; i < SN_LEN(roles); i++)
        if (!strcmp(comm, roles[i].comm))
            return roles[i].role;
    return NULL;
}

static const struct {
    const char *name, *map, *word;
} frameworks[] = {
    {"tensorflow", "libtensorflow", "tensorflow"},
    {"torch", "libtorch", "torch"},
    {"jax", "/jaxlib/", "jax"},
};

/* Which frameworks' libraries are mapped, as bits; false if maps cannot be read. */
static bool mapped_frameworks(const snug_gpus *gpus, int64_t pid, unsigned *bits)
{
    char path[64], buf[16384 + 32];
    size_t kept = 0;
    *bits = 0;
    snprintf(path, sizeof path, "proc/%lld/maps", (long long)pid);
    int fd = openat(gpus->root.fd, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t got;
    while ((got = read(fd, buf + kept, sizeof buf - kept)) > 0) {
        size_t n = kept + (size_t)got;
        for (size_t i = 0; i < SN_LEN(frameworks); i++)
            if (memmem(buf, n, frameworks[i].map, strlen(frameworks[i].map)))
                *bits |= 1u << i;
        kept = SN_MIN(n, 31); /* a name may lie across two reads */
        memmove(buf, buf + n - kept, kept);
    }
    close(fd);
    return got == 0;
}

static const char *base_of_first_word(const char *command)
{
    size_t n = strcspn(command, " "), slash = n;
    while (slash > 0 && command[slash - 1] != '/')
        slash--;
    return command + slash;
}

static bool holds(const char *text, const char *part)
{
    return text && strstr(text, part);
}

static bool is_worker(const sn_gpus_proc *proc)
{
    static const char *const marks[] = {"multiprocessing.spawn", "--multiprocessing-fork",
                                        "multiprocessing.forkserver", "popen_loky"};
    for (size_t i = 0; i < SN_LEN(marks); i++)
        if (holds(proc->command, marks[i]))
            return true;
    return sn_str_starts(proc->comm, "pt_data_worker");
}

static void read_what(snug_gpus *gpus, sn_gpus_proc *proc)
{
    const char *command = proc->command ? proc->command : "";
    const char *program = base_of_first_word(command);
    proc->python = sn_str_starts(program, "python") || sn_str_starts(proc->comm, "python") ||
                   sn_str_starts(program, "pypy") || sn_str_starts(proc->comm, "pt_") ||
                   sn_str_starts(proc->comm, "ipython") || sn_str_starts(proc->comm, "jupyter");
    if (!proc->python) {
        proc->what = sn_gpus_text(gpus, proc->comm[0] ? proc->comm : "?");
        return;
    }
    unsigned bits;
    if (proc->state == 'Z' || !mapped_frameworks(gpus, proc->pid, &bits)) {
        bits = 0;
        for (size_t i = 0; i < SN_LEN(frameworks); i++)
            bits |= holds(command, frameworks[i].word) ? 1u << i : 0;
    }
    const char *kind = holds(command, "ipykernel") || holds(command, "colab_kernel")
                           ? "jupyter kernel"
                       : holds(command, "jupyter") ? "jupyter server"
                                                   : "python";
    char text[96];
    int n = snprintf(text, sizeof text, "%s", kind);
    const char *before = " (";
    for (size_t i = 0; i < SN_LEN(frameworks); i++)
        if (bits & 1u << i) {
            n += snprintf(text + n, sizeof text - (size_t)n, "%s%s", before, frameworks[i].name);
            before = ", ";
        }
    if (bits)
        snprintf(text + n, sizeof text - (size_t)n, ")");
    proc->what = sn_gpus_text(gpus, text);
}

static void read_command(snug_gpus *gpus, sn_gpus_proc *proc)
{
    char text[1024];
    ssize_t n = sn_gpus_read(&gpus->root, text, 501, "proc/%lld/cmdline", (long long)proc->pid);
    if (n > 0) {
        while (n > 0 && !text[n - 1])
            n--;
        for (ssize_t i = 0; i < n; i++)
            if (!text[i] || text[i] == '\n' || text[i] == '\t')
                text[i] = ' '; /* the words, and the lines of python -c */
        text[n] = '\0';
    }
    if (n <= 0 && proc->comm[0])
        snprintf(text, sizeof text, "[%s]", proc->comm);
    proc->command = text[0] ? sn_gpus_text(gpus, text) : NULL;
}

/* ---- state ---- */

static bool reparented(const snug_gpus *gpus, const sn_gpus_proc *proc)
{
    static const char *const keepers[] = {"systemd",     "init",      "tini",      "dumb-init",
                                          "docker-init", "catatonit", "s6-svscan", "runsvdir"};
    const sn_gpus_proc *parent = sn_gpus_find(gpus, proc->parent);
    if (!parent)
        return proc->parent == 1;
    for (size_t i = 0; i < SN_LEN(keepers); i++)
        if (!strcmp(parent->comm, keepers[i]))
            return true;
    /* In a container the training itself may be process 1, the parent of its own workers. */
    return parent->pid == 1 && !sn_str_starts(parent->comm, "python") &&
           !sn_str_starts(parent->comm, "pt_");
}

static const char *status_of(const snug_gpus *gpus, const sn_gpus_proc *proc)
{
    if (proc->state == 'Z' || proc->state == 'X')
        return "zombie";
    if (proc->flags & SN_PROC_TWIN_ORPHAN || (is_worker(proc) && reparented(gpus, proc)))
        return "orphan worker";
    if (proc->other_container)
        return "other container";
    if (proc->state == 'T' || proc->state == 't')
        return "stopped";
    if (proc->idle_seconds > 0)
        return "idle";
    if (proc->state == 'R' || proc->idle_seconds == 0)
        return "running";
    return proc->state == 'S' || proc->state == 'D' || proc->state == 'I' ? "sleeping" : "unknown";
}

void sn_gpus_facts(snug_gpus *gpus, sn_gpus_proc *proc)
{
    if (proc->flags & SN_PROC_FACTS)
        return;
    int n_levels;
    proc->flags |= SN_PROC_FACTS;
    proc->uid = sn_gpus_uid(&gpus->root, proc->pid, &n_levels);
    proc->user = sn_gpus_user(gpus, proc->uid);
    read_command(gpus, proc);
    read_container(gpus, proc, n_levels);
    read_what(gpus, proc);
    proc->host_bytes = sn_gpus_host_bytes(&gpus->root, proc, &proc->host_is_rss);
    proc->status = status_of(gpus, proc);
    char why[320];
    if (sn_gpus_refusal(gpus, proc, proc->uid, gpus->caller_uid, why, sizeof why))
        proc->refusal = sn_gpus_text(gpus, why);
}

static void facts_part(snug_gpus *part, size_t begin, size_t end, void *context)
{
    sn_gpus_proc *const *holders = context;
    for (size_t i = begin; i < end; i++)
        sn_gpus_facts(part, holders[i]);
}

void sn_gpus_facts_of_holders(snug_gpus *gpus)
{
    sn_gpus_proc **holders = sn_alloc_array(SN_TAG_GPUS, gpus->uses.n, sizeof *holders);
    size_t n = 0;
    if (!holders) {
        gpus->failed = true;
        return;
    }
    for (size_t i = 0; i < gpus->uses.n; i++) {
        sn_gpus_proc *proc =
            gpus->uses.at[i].elsewhere ? NULL : sn_gpus_find(gpus, gpus->uses.at[i].pid);
        if (proc && !(proc->flags & SN_PROC_LISTED)) {
            proc->flags |= SN_PROC_LISTED; /* each once: no two threads may have the same */
            holders[n++] = proc;
        }
    }
    sn_gpus_parallel(gpus, n, true, facts_part, holders);
    sn_free(holders);
}

/* ---- relations between processes and in time ---- */

/* Who waits for a busy child is at work too: a script that runs a program, a notebook's server. */
static void spread_running(snug_gpus *gpus)
{
    for (size_t i = 0; i < gpus->procs.n; i++) {
        if (gpus->procs.at[i].idle_seconds != 0)
            continue;
        sn_gpus_proc *proc = sn_gpus_find(gpus, gpus->procs.at[i].parent);
        /* The times above 0 are changed on the way up, so that each step is made once. */
        while (proc && proc->idle_seconds > 0) {
            proc->idle_seconds = 0;
            proc = sn_gpus_find(gpus, proc->parent);
        }
    }
}

void sn_gpus_idle(snug_gpus *gpus, const snug_gpus *previous)
{
    double seconds = previous ? gpus->taken_at - previous->taken_at : 0;
    long ticks = sysconf(_SC_CLK_TCK);
    if (seconds <= 0 || ticks <= 0)
        return;
    for (size_t i = 0; i < gpus->procs.n; i++) {
        sn_gpus_proc *proc = &gpus->procs.at[i];
        const sn_gpus_proc *before = sn_gpus_find(previous, proc->pid);
        if (!before || before->start_ticks != proc->start_ticks ||
            proc->cpu_ticks < before->cpu_ticks)
            continue;
        double used = (double)(proc->cpu_ticks - before->cpu_ticks) / (double)ticks;
        if (used > 0.02 * seconds)
            proc->idle_seconds = 0;
        else
            proc->idle_seconds = seconds + (before->idle_seconds > 0 ? before->idle_seconds : 0);
    }
    spread_running(gpus);
}

static void find_twins(snug_gpus *gpus)
{
    /* Forked workers have their training's command line, so nothing marks one by itself; several of
     * one process group whose leader is gone, all handed to init, are workers without a training.
     */
    sn_map groups;
    sn_map_init(&groups, SN_TAG_GPUS);
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < gpus->procs.n && !gpus->failed; i++) {
            sn_gpus_proc *proc = &gpus->procs.at[i];
            if (!sn_str_starts(proc->comm, "python") || proc->group == proc->pid ||
                sn_gpus_find(gpus, proc->group) || !reparented(gpus, proc))
                continue;
            uint64_t *n = sn_map_find(&groups, &proc->group, sizeof proc->group);
            if (pass && n && *n > 1)
                proc->flags |= SN_PROC_TWIN_ORPHAN;
            else if (!pass &&
                     !sn_map_set(&groups, &proc->group, sizeof proc->group, n ? *n + 1 : 1))
                gpus->failed = true;
        }
    sn_map_deinit(&groups);
}

void sn_gpus_relations(snug_gpus *gpus)
{
    int64_t pid = gpus->self;
    for (int depth = 0; depth < 1000; depth++) {
        sn_gpus_proc *proc = sn_gpus_find(gpus, pid);
        if (!proc)
            break;
        proc->flags |= SN_PROC_ANCESTOR;
        pid = proc->parent;
    }
    find_twins(gpus);
}
