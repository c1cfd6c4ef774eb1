/* SPDX-License-Identifier: Apache-2.0
 *
 * run.h - runs a command as if it had been started directly: its streams, signals and exit code
 * pass through, and what it prints is also shown to a watcher.
 *
 *     sn_cli_run run = {.argv = argv, .output = feed, .sample = sample, .wait = wait};
 *     if (sn_cli_run_to_end(&run, &err)) return sn_cli_fail(&err);
 *     return run.signal ? 128 + run.signal : run.exit_code;
 *
 * A stream that is a terminal stays one for the command (a pseudo terminal whose bytes are passed
 * on unchanged), so that progress bars work; others are pipes. Signals from elsewhere are
 * forwarded; those that a terminal sends reach the command by itself. Ownership: the caller's.
 * Threads: the main thread; it owns SIGCHLD while the command runs.
 */
#ifndef SNUG_CLI_RUN_H
#define SNUG_CLI_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "snug/error.h"

typedef struct sn_cli_run {
    char *const *argv;
    bool stdout_to_stderr; /* the command's stdout goes to stderr (our stdout is an answer) */
    /* required: called once with the command's pid, before it runs a single instruction of its own
     */
    snug_status (*started)(void *context, int pid, snug_error *err);
    /* required: bytes that it printed, whole lines where lines end in time */
    snug_status (*output)(void *context, const void *bytes, size_t n, snug_error *err);
    /* required: seconds until the next sample; takes one */
    double (*wait)(void *context);
    snug_status (*sample)(void *context, snug_error *err);
    void *context;
    /* results */
    int exit_code, signal;
    uint64_t peak_bytes; /* of the largest process, by the kernel's count */
} sn_cli_run;

/* SNUG_E_NOT_FOUND, SNUG_E_IO: the command could not be started (exit_code is then 127 or 126, as a
 * shell would say). A hook's failure ends the watching, not the command. */
snug_status sn_cli_run_to_end(sn_cli_run *run, snug_error *err);

#endif
