/* SPDX-License-Identifier: Apache-2.0
 *
 * history.h - history.csv of a run: a line an epoch, read back when the run is resumed.
 *
 *     sn_history_write("runs/a/history.csv", rows, n, err);
 *
 * Ownership: read gives an array to be freed with sn_free.  Threads: reentrant.
 */
#ifndef SN_TRAIN_HISTORY_H
#define SN_TRAIN_HISTORY_H

#include "base/ledger.h"
#include "snug/train.h"

snug_status sn_history_write(const char *path, const snug_epoch *rows, size_t n, snug_error *err);
/* Rows of epochs 1..most; a file that is not there has none. SNUG_E_INPUT names the line. */
snug_status sn_history_read(const char *path, int64_t most, snug_epoch **rows, size_t *n,
                            snug_error *err);

#endif
