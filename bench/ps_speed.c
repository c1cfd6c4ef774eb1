/* SPDX-License-Identifier: Apache-2.0
 *
 * How long `snug ps` looks: on fake trees of 2,000 processes with 10 descriptors each, and on the
 * real procfs with many descriptors, against a bare loop that only lists and reads the links (the
 * kernel's own cost). Best of several runs; beside the wall time the processor time of all threads,
 * which a busy machine disturbs less.
 *
 *     bench_ps_speed [processes] [descriptors]        (of the real part; 400 and 50)
 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "gpus/gpus.h"
#include "support/fake_tree.h"

#define REPEATS 7

typedef struct times {
    double wall, cpu; /* milliseconds, the best of each */
} times;

static double cpu_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void keep_best(times *best, double wall, double cpu)
{
    best->wall = SN_MIN(best->wall, (sn_now() - wall) * 1000);
    best->cpu = SN_MIN(best->cpu, cpu_ms() - cpu);
}

/* A look below root (NULL: the real one); *holders: processes on cards. */
static times look(const char *root, size_t *holders)
{
    times best = {1e9, 1e9};
    for (int i = 0; i < REPEATS; i++) {
        snug_gpus_options o = SNUG_GPUS_OPTIONS_INIT;
        snug_error err = SNUG_ERROR_INIT;
        snug_gpus *gpus;
        o.root = root;
        o.nvml = "";
        o.n_ram_processes = 1; /* the walk of large processes' pages is not what is measured */
        double start = sn_now(), cpu = cpu_ms();
        if (snug_gpus_new(&gpus, &o, &err)) {
            fprintf(stderr, "error: %s\n", err.what);
            exit(1);
        }
        keep_best(&best, start, cpu);
        *holders = 0;
        for (size_t c = 0; c < snug_gpus_n_cards(gpus); c++)
            *holders += snug_gpus_card_at(gpus, c)->n_processes;
        snug_gpus_free(gpus);
    }
    return best;
}

/* 2,000 processes with 10 descriptors; every `every`-th has n_drm of them on the card. */
static void fake(const char *name, int every, int n_drm)
{
    fake_tree tree;
    char text[256];
    size_t holders;
    fake_tree_make(&tree);
    fake_drm_card(&tree, 0, "0000:03:00.0", "amdgpu", 0x1002, 0x744c);
    for (int pid = 2; pid < 2002; pid++) {
        fake_process(&tree, &(fake_proc){.pid = pid, .rss_pages = 100, .pss_kib = pid});
        for (int fd = 0; fd < 10; fd++) {
            snprintf(text, sizeof text,
                     "drm-driver:\tamdgpu\ndrm-pdev:\t0000:03:00.0\ndrm-client-id:\t%d\n"
                     "drm-total-vram:\t9 MiB\ndrm-resident-vram:\t%d KiB\n",
                     pid, pid);
            bool drm = pid % every == 0 && fd < n_drm;
            if (drm)
                fake_descriptor(&tree, pid, fd, "/dev/dri/renderD128", text);
            else
                fake_link(&tree, "/dev/null", "proc/%d/fd/%d", pid, fd);
        }
    }
    times t = look(tree.root, &holders);
    printf("2000 processes x 10 descriptors, %-28s %6.1f ms (processor %.1f), %zu holders\n", name,
           t.wall, t.cpu, holders);
    fake_tree_remove(&tree);
}

/* The kernel's own cost: list /proc and each fd folder, read each link. *n: links. */
static times bare(size_t *n)
{
    times best = {1e9, 1e9};
    for (int i = 0; i < REPEATS; i++) {
        double start = sn_now(), cpu = cpu_ms();
        DIR *proc = opendir("/proc");
        *n = 0;
        for (struct dirent *p; proc && (p = readdir(proc));) {
            char path[300], link[64];
            if (p->d_name[0] < '0' || p->d_name[0] > '9')
                continue;
            snprintf(path, sizeof path, "/proc/%s/fd", p->d_name);
            DIR *folder = opendir(path);
            if (!folder)
                continue;
            for (struct dirent *f; (f = readdir(folder));)
                if (f->d_name[0] != '.')
                    *n += readlinkat(dirfd(folder), f->d_name, link, sizeof link) > 0;
            closedir(folder);
        }
        if (proc)
            closedir(proc);
        keep_best(&best, start, cpu);
    }
    return best;
}

static void real(int n_processes, int n_descriptors)
{
    pid_t *children = sn_alloc_array(SN_TAG_TEST, (size_t)n_processes, sizeof *children);
    struct rlimit limit = {(rlim_t)n_descriptors + 64, (rlim_t)n_descriptors + 64};
    int ready[2], n = 0;
    char byte;
    if (!children || pipe(ready))
        exit(1);
    for (; n < n_processes && (children[n] = fork()) >= 0; n++)
        if (!children[n]) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            setrlimit(RLIMIT_NOFILE, &limit);
            for (int i = 0; i < n_descriptors; i++)
                if (open("/dev/null", O_RDONLY) < 0)
                    break;
            if (write(ready[1], "r", 1) == 1)
                for (;;)
                    pause();
            _exit(1);
        }
    for (int i = 0; i < n; i++)
        if (read(ready[0], &byte, 1) != 1)
            break;
    size_t n_links, holders;
    times loop = bare(&n_links), snug = look(NULL, &holders);
    printf(
        "real procfs, %d processes more, %zu descriptors: bare loop %.1f ms (processor %.1f), snug "
        "%.1f ms (processor %.1f); above the loop, us a descriptor: %.2f (processor %.2f)\n",
        n, n_links, loop.wall, loop.cpu, snug.wall, snug.cpu,
        (snug.wall - loop.wall) * 1000 / (double)n_links,
        (snug.cpu - loop.cpu) * 1000 / (double)n_links);
    for (int i = 0; i < n; i++) {
        kill(children[i], SIGKILL);
        waitpid(children[i], NULL, 0);
    }
    sn_free(children);
}

int main(int argc, char **argv)
{
    int64_t n_processes = 400, n_descriptors = 50;
    if ((argc > 1 && !sn_parse_i64(argv[1], 1, 30000, &n_processes)) ||
        (argc > 2 && !sn_parse_i64(argv[2], 1, 100000, &n_descriptors))) {
        fputs("usage: bench_ps_speed [processes] [descriptors]\n", stderr);
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    fake("40 hold the card", 50, 2);
    fake("all hold it, by one", 1, 1);
    fake("all hold it, by all ten", 1, 10);
    real((int)n_processes, (int)n_descriptors);
    real((int)n_processes * 5, (int)n_descriptors / 5);
    return 0;
}
