/* SPDX-License-Identifier: Apache-2.0
 *
 * apply.h - a trained run opened for use: its description read, its model built, its weights
 * loaded.
 *
 *     sn_cli_run run;  rc = sn_cli_run_open(&run, &args, "runs/a");
 *     rc = rc ? rc : sn_cli_run_session(&run, SNUG_PLAN_PREDICT);
 *     sn_cli_run_close(&run);
 *
 * Ownership: the run owns everything.  Threads: the command's main thread only.
 */
#ifndef SNUG_CLI_APPLY_H
#define SNUG_CLI_APPLY_H

#include "setup.h"

typedef struct sn_cli_run {
    sn_cli_setup setup;
    sn_cli_args args; /* the command line, filled up from the run */
    json_t *description;
    char weights[600];
    snug_session *session;
} sn_cli_run;

/* name: a folder of a run, or a weights file. */
int sn_cli_run_open(sn_cli_run *run, const sn_cli_args *args, const char *name);
/* Opens DATA (or files, for prediction) with the run's size and scale: data_options are ready after
 * sn_cli_run_open. Then plan and session. */
int sn_cli_run_session(sn_cli_run *run, snug_plan_purpose purpose);
/* The run's name of a class; "class 3" if it has none. */
const char *sn_cli_run_class(const sn_cli_run *run, size_t index, char *out, size_t n);
void sn_cli_run_close(sn_cli_run *run);

#endif
