/* SPDX-License-Identifier: Apache-2.0
 *
 * progress.h - the progress bar, one line an epoch, and stopping by signal.
 *
 *     sn_cli_progress p;  sn_cli_progress_begin(&p, quiet, planned_bytes);
 *     options.progress = sn_cli_on_progress;  options.context = &p;
 *
 * Ownership: nothing.  Threads: one; the signal handler only sets a flag.
 */
#ifndef SNUG_CLI_PROGRESS_H
#define SNUG_CLI_PROGRESS_H

#include <signal.h>

#include "snug/snug.h"

typedef struct sn_cli_progress {
    bool quiet, terminal, open; /* open: a bar stands on the line */
    double last_draw, last_line;
    uint64_t planned_bytes;
} sn_cli_progress;

void sn_cli_progress_begin(sn_cli_progress *progress, bool quiet, uint64_t planned_bytes);
/* For snug_train_options.progress. */
bool sn_cli_on_progress(void *context, const snug_train_progress *p);
/* For snug_evaluate. */
bool sn_cli_on_samples(void *context, uint64_t n_done);
void sn_cli_progress_end(sn_cli_progress *progress);
/* SIGINT, SIGTERM and SIGHUP ask for a stop from now on; the second SIGINT ends at once. */
void sn_cli_catch_signals(void);
bool sn_cli_stop_asked(void);

#endif
