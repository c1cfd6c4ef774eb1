/* SPDX-License-Identifier: Apache-2.0
 *
 * sets.h - what the tests of the CPU backend's kernels share: numbers, descriptions, and one
 * process for each instruction set, as oneDNN's limit holds for a process.
 *
 *     static int run_set(const char *set);             // sets sets[0], runs the group
 *
 *     return each_set(run_set);                        // main
 *
 * Ownership: nothing is held.  Threads: one.
 */
#ifndef SN_TESTS_SETS_H
#define SN_TESTS_SETS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "backend/cpu/cpu.h"
#include "support/one.h"

/* The one of this process, for SNUG_CPU_ISA. */
static const char *sets[1];

static uint32_t state = 12345;

static inline float draw(void)
{
    state = state * 1664525u + 1013904223u;
    return (float)(state >> 8) * (2.0f / 16777216.0f) - 1.0f;
}

static inline uint64_t plain_bytes(const sn_desc *d)
{
    uint64_t bytes = 0;
    assert_false(sn_desc_bytes(d, &bytes));
    return bytes;
}

static inline sn_desc f32(int rank, int64_t a, int64_t b, int64_t c, int64_t d)
{
    sn_desc out = {SN_F32, {rank, {a, b, c, d}}};
    return out;
}

static inline void infer(one_op *o, int n_out)
{
    snug_error err = SNUG_ERROR_INIT;
    o->n_out = n_out;
    if (sn_op_of(o->op)->infer(&o->attrs, o->in, o->n_in, o->out, n_out, &err))
        fail_msg("%s", err.what);
}

/* The sum of the processes' failures. */
static inline int each_set(int (*run)(const char *set))
{
    static const char *const all[] = {"generic", "avx2", "avx512"};
    int failed = 0;
    for (size_t i = 0; i < SN_LEN(all); i++) {
        pid_t child = fork();
        if (child == 0)
            exit(run(all[i]));
        int status = 1;
        if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
            failed++;
    }
    return failed;
}

#endif
