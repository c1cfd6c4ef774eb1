/* SPDX-License-Identifier: Apache-2.0
 *
 * cli.h - the frame of the command: the table of verbs, help, and what every verb shares. A verb is
 * one row of the table in main.c and one file cmd_<verb>.c, which sees only include/snug/.
 *
 *     int snug_cmd_data(int argc, char **argv)      // argv[0] is "data"; the result is the exit
 * code
 *
 * Ownership: nothing here owns anything.  Threads: the command's main thread only.
 */
#ifndef SNUG_CLI_H
#define SNUG_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "snug/error.h"

enum {
    SN_EXIT_DONE = 0,
    SN_EXIT_FAILED = 1,
    SN_EXIT_USAGE = 2,
    SN_EXIT_DOES_NOT_FIT = 3,
    SN_EXIT_INPUT = 4,
    SN_EXIT_INTERRUPTED = 130
};

typedef struct sn_cli_verb {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *help; /* one line */
    bool is_engine;   /* trains or runs a network: libgomp and malloc are set up for it first */
} sn_cli_verb;

int snug_cmd_data(int argc, char **argv);
int snug_cmd_diagnose(int argc, char **argv);
int snug_cmd_devices(int argc, char **argv);
int snug_cmd_evaluate(int argc, char **argv);
int snug_cmd_plan(int argc, char **argv);
int snug_cmd_predict(int argc, char **argv);
int snug_cmd_summary(int argc, char **argv);
int snug_cmd_train(int argc, char **argv);
int snug_cmd_help(int argc, char **argv);
int snug_cmd_ps(int argc, char **argv);

/* The table of verbs; *n is their number. */
const sn_cli_verb *sn_cli_verbs(size_t *n);

/* "error: where: what" and a newline on stderr; the status' exit code. */
int sn_cli_fail(const snug_error *err);
/* "error: snug VERB: ..." and the hint to --help on stderr; SN_EXIT_USAGE. */
int sn_cli_usage(const char *verb, const char *format, ...) SNUG_PRINTF(2, 3);
/* The candidate nearest to text by edit distance (at most a third of its length apart, two for
 * short words); NULL if none is near. */
const char *sn_cli_nearest(const char *text, const char *const *candidates, size_t n);
/* text on out so that a terminal shows it safely: control bytes other than newline and tab become
 * \xNN. */
void sn_cli_print_safe(FILE *out, const char *text);
/* text on out wrapped at width columns, the first line after `first`, the others after as many
 * spaces as that has columns. */
void sn_cli_wrap(FILE *out, const char *first, const char *text, size_t width);

#endif
