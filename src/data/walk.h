/* SPDX-License-Identifier: Apache-2.0
 *
 * walk.h - folders: what is in one, and every file below one. Hidden names and links that lead back
 * up are left out; file names may be any bytes.
 *
 *     snug_status found(void *me, const char *path, snug_error *err) { ... }
 *     sn_walk(root_fd, "cat", found, me, err);       // "cat/1.jpg", "cat/more/2.jpg", any order
 *
 * Ownership: paths are valid during the call.  Threads: reentrant.
 */
#ifndef SN_DATA_WALK_H
#define SN_DATA_WALK_H

#include "base/ledger.h"

enum { SN_WALK_DEPTH = 32 };

typedef snug_status sn_walk_found(void *me, const char *path, snug_error *err);

/* Every file below `folder` (relative to root_fd, "" for root_fd itself); paths relative to
 * root_fd. What found returns ends the walk unless it is SNUG_OK. A folder that cannot be read is
 * SNUG_E_IO. */
snug_status sn_walk(int root_fd, const char *folder, sn_walk_found *found, void *me,
                    snug_error *err);
/* The entries of one folder, not hidden, with whether each is a folder (links followed). */
typedef snug_status sn_walk_entry(void *me, const char *name, bool is_folder, snug_error *err);
snug_status sn_walk_entries(int root_fd, const char *folder, sn_walk_entry *entry, void *me,
                            snug_error *err);
/* Names that tools leave behind and nobody means: hidden ones and "__MACOSX". */
bool sn_walk_hidden(const char *name);

#endif
