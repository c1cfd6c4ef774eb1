/* SPDX-License-Identifier: Apache-2.0
 *
 * io.h - files: whole reads with a limit, exact preads, atomic writes, unlinked temporary files.
 * Nothing is ever mapped: mapped pages count against a budget.
 *
 *     char *text; size_t n;
 *     snug_status s = sn_io_read_all(&text, &n, "labels.csv", 64 * SN_MIB, SN_TAG_DATA, err);
 *
 * Ownership: buffers that are returned belong to the caller.  Threads: reentrant.
 */
#ifndef SN_BASE_IO_H
#define SN_BASE_IO_H

#include "base/ledger.h"

/* Reads a whole file (also a pipe or a file of /proc whose size is not known). SNUG_E_NOT_FOUND,
 * SNUG_E_IO, SNUG_E_INPUT when it is longer than limit. A NUL follows the bytes and does not count.
 */
snug_status sn_io_read_all(char **out, size_t *n, const char *path, uint64_t limit, sn_tag tag,
                           snug_error *err);
/* Exactly n bytes at offset, or SNUG_E_INPUT "ends at byte ..., ... expected". Retries EINTR. */
snug_status sn_io_pread(int fd, void *out, size_t n, uint64_t offset, const char *path,
                        snug_error *err);
/* Up to n bytes; *got < n only at the end of the file. Retries EINTR. */
snug_status sn_io_read(int fd, void *out, size_t n, size_t *got, const char *path, snug_error *err);
snug_status sn_io_write(int fd, const void *bytes, size_t n, const char *path, snug_error *err);
snug_status sn_io_pwrite(int fd, const void *bytes, size_t n, uint64_t offset, const char *path,
                         snug_error *err);

/* Atomic replacement of a file: write to a temporary name in the same folder, fsync, rename, fsync
 * the folder. sn_io_atomic_commit or _abort ends it; the file at path is the old or the new one,
 * whole, at every moment. */
typedef struct sn_io_atomic {
    int fd;
    char *path, *temporary;
} sn_io_atomic;
snug_status sn_io_atomic_open(sn_io_atomic *out, const char *path, snug_error *err);
snug_status sn_io_atomic_commit(sn_io_atomic *file, snug_error *err);
void sn_io_atomic_abort(sn_io_atomic *file); /* NULL-safe and safe after commit */
/* The three steps for bytes at hand. */
snug_status sn_io_write_file(const char *path, const void *bytes, size_t n, snug_error *err);

/* An open temporary file that has no name (TMPDIR, else /tmp; O_TMPFILE or unlinked at once). */
snug_status sn_io_temporary(int *fd, snug_error *err);
/* mkdir -p. */
snug_status sn_io_make_folder(const char *path, snug_error *err);
/* Free bytes for an unprivileged user on the file system that holds path. */
snug_status sn_io_free_bytes(uint64_t *out, const char *path, snug_error *err);
bool sn_io_is_folder(const char *path);
bool sn_io_is_file(const char *path);
/* dir + "/" + name in memory of the caller's tag; NULL when there is none. */
char *sn_io_join(sn_tag tag, const char *folder, const char *name);
/* The part after the last slash. */
const char *sn_io_base_name(const char *path);

#endif
