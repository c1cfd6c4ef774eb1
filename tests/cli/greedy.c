/* SPDX-License-Identifier: Apache-2.0
 *
 * greedy.c - a program for the tests of `snug diagnose -- COMMAND`: misbehaves with memory in one
 * of the ways that trainings do.
 *
 *     greedy leak MIB_PER_STEP STEPS MS | load FILE TIMES | zeros MIB | workers N MIB | shm FILE
 * MIB | limit MIB | fail CODE | signal N | wait | echo | fine MIB
 */
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)

static void rest(long ms)
{
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&t, NULL);
}

static char *volatile kept; /* so that no compiler leaves out memory that nobody reads */

static char *fill(size_t mib)
{
    char *p = kept = malloc(mib * MIB);
    if (!p) {
        fputs("MemoryError: Unable to allocate an array\n", stderr);
        exit(1);
    }
    for (size_t i = 0; i < mib * MIB; i += 512)
        p[i] = (char)(i >> 9);
    return p;
}

static int leak(size_t mib, long steps, long ms)
{
    fill(24);
    for (long i = 1; i <= steps; i++) {
        fill(mib);
        printf("step %ld loss 0.%ld\n", i, 900 - i % 900);
        fflush(stdout);
        rest(ms);
    }
    return 0;
}

/* Reads a file again and again and keeps every byte: a data set in a list. */
static int load(const char *path, long times)
{
    for (long i = 0; i < times; i++) {
        int fd = open(path, O_RDONLY);
        char *p = malloc(MIB);
        ssize_t n;
        if (fd < 0 || !p)
            return 1;
        while ((n = read(fd, p, MIB)) > 0)
            if (!(p = malloc(MIB)))
                return 1;
        close(fd);
    }
    rest(200);
    return 0;
}

static int workers(int n, size_t mib)
{
    pid_t pids[64];
    fill(8);
    for (int i = 0; i < n && i < 64; i++)
        if (!(pids[i] = fork())) {
            for (size_t k = 0; k < mib / 4; k++) {
                fill(4);
                rest(3);
            }
            pause();
            _exit(0);
        }
    int status;
    wait(&status);
    fprintf(stderr, "RuntimeError: a worker exited unexpectedly\n");
    for (int i = 0; i < n && i < 64; i++)
        kill(pids[i], SIGTERM);
    return 1;
}

static int shm(const char *path, size_t mib)
{
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    if (fd < 0 || ftruncate(fd, (off_t)(mib * MIB)))
        return 2;
    char *p = mmap(NULL, mib * MIB, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED)
        return 2;
    for (size_t i = 0; i < mib * MIB; i += 4096) {
        p[i] = 1;
        if (i % (4 * MIB) == 0)
            rest(20);
    }
    return 0;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    long a = argc > 2 ? strtol(argv[2], NULL, 10) : 0, b = argc > 3 ? strtol(argv[3], NULL, 10) : 0;
    if (!strcmp(what, "leak"))
        return leak((size_t)a, b, argc > 4 ? strtol(argv[4], NULL, 10) : 10);
    if (!strcmp(what, "load"))
        return load(argv[2], b);
    if (!strcmp(what, "zeros")) {
        fill((size_t)a);
        return 0;
    }
    if (!strcmp(what, "workers"))
        return workers((int)a, (size_t)b);
    if (!strcmp(what, "shm"))
        return shm(argv[2], (size_t)b);
    if (!strcmp(what, "limit")) {
        for (long i = 0; i < a / 4; i++)
            fill(4);
        return 0;
    }
    if (!strcmp(what, "fine")) {
        fill((size_t)a);
        rest(300);
        return 0;
    }
    if (!strcmp(what, "fail")) {
        fputs("ValueError: shapes (32, 10) and (32, 9) do not match\n", stderr);
        return (int)a;
    }
    if (!strcmp(what, "signal")) {
        raise((int)a);
        return 0;
    }
    if (!strcmp(what, "wait")) {
        puts("ready");
        fflush(stdout);
        for (;;)
            pause();
    }
    if (!strcmp(what, "echo")) { /* both streams, bytes of every value */
        for (int i = 0; i < 256; i++)
            putchar(i);
        fputs("to stderr\r\x1b[31mred\x1b[0m\n", stderr);
        return isatty(1) ? 7 : 0;
    }
    return 64;
}
