/* SPDX-License-Identifier: Apache-2.0
 *
 * save.c - what a run leaves on disk. Every file is written under a temporary name and renamed, the
 * checkpoint last: whatever moment the machine stops at, the newest whole checkpoint is in place.
 */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "train/fit.h"
#include "train/history.h"

static snug_status save_one(sn_fit *fit, const char *name, const sn_run_state *state,
                            snug_error *err)
{
    char *path = sn_io_join(SN_TAG_TRAIN, fit->options->folder, name);
    snug_status s =
        path ? sn_checkpoint_save(fit->session, path, fit->options->description, state, err)
             : sn_fail(err, SNUG_E_MEMORY, "no memory for a path");
    sn_free(path);
    return s;
}

static snug_status save_history(sn_fit *fit, snug_error *err)
{
    char *path = sn_io_join(SN_TAG_TRAIN, fit->options->folder, "history.csv");
    snug_status s = path ? sn_history_write(path, fit->history.at, fit->history.n, err)
                         : sn_fail(err, SNUG_E_MEMORY, "no memory for a path");
    sn_free(path);
    return s;
}

snug_status sn_fit_save(sn_fit *fit, bool epoch_ended, bool improved, snug_error *err)
{
    if (!fit->options->folder) {
        return SNUG_OK;
    }
    snug_status s = SNUG_OK;
    if (improved) {
        s = save_one(fit, "best.safetensors", NULL, err);
    }
    if (!s && epoch_ended) {
        s = save_one(fit, "last.safetensors", NULL, err);
        s = s ? s : save_history(fit, err);
    }
    s = s ? s : save_one(fit, "last.ckpt", &fit->state, err);
    fit->last_save = sn_now();
    return s;
}

/* "last.ckpt.1234-0.tmp": what process 1234 was writing when it was killed. */
static bool is_leftover(const char *name)
{
    static const char *const ours[] = {"last.ckpt.", "last.safetensors.", "best.safetensors.",
                                       "history.csv."};
    for (size_t i = 0; i < SN_LEN(ours); i++) {
        size_t n = strlen(ours[i]);
        long process;
        unsigned attempt;
        int used = 0;
        if (strncmp(name, ours[i], n) == 0 &&
            sscanf(name + n, "%ld-%u.tmp%n", &process, &attempt, &used) == 2 && used > 0 &&
            name[n + (size_t)used] == 0 && process > 0) {
            return kill((pid_t)process, 0) != 0 && errno == ESRCH;
        }
    }
    return false;
}

/* A process that is killed while it saves leaves a temporary file as large as a checkpoint. */
static void remove_leftovers(const char *folder)
{
    DIR *dir = opendir(folder);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        if (is_leftover(entry->d_name)) {
            (void)unlinkat(dirfd(dir), entry->d_name, 0); /* if it stays, it is only room */
        }
    }
    if (dir) {
        closedir(dir);
    }
}

static uint64_t existing_bytes(const sn_fit *fit, const char *name)
{
    struct stat info;
    char *path = sn_io_join(SN_TAG_TRAIN, fit->options->folder, name);
    uint64_t bytes = path && stat(path, &info) == 0 ? (uint64_t)info.st_size : 0;
    sn_free(path);
    return bytes;
}

/* The largest file that the process may write (ulimit -f): beyond it a signal would end it. */
static snug_status check_file_limit(uint64_t bytes, snug_error *err)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur == RLIM_INFINITY ||
        (uint64_t)limit.rlim_cur >= bytes) {
        return SNUG_OK;
    }
    char a[32], b[32];
    return sn_fail(err, SNUG_E_IO,
                   "a checkpoint of this run takes %s, files are limited to %s: raise the limit "
                   "(ulimit -f)",
                   sn_format_bytes(a, sizeof a, bytes),
                   sn_format_bytes(b, sizeof b, (uint64_t)limit.rlim_cur));
}

snug_status sn_fit_check_room(const sn_fit *fit, snug_error *err)
{
    if (!fit->options->folder) {
        return SNUG_OK;
    }
    snug_status s = sn_io_make_folder(fit->options->folder, err);
    uint64_t free_bytes;
    if (!s) {
        remove_leftovers(fit->options->folder);
    }
    s = s ? s : sn_io_free_bytes(&free_bytes, fit->options->folder, err);
    if (s) {
        return s;
    }
    /* Each file once, and the largest a second time: the old one stays until the new one is
     * whole. What a run that goes on has there already is not needed again. */
    uint64_t checkpoint = sn_checkpoint_bytes(fit->session, true);
    uint64_t weights = sn_checkpoint_bytes(fit->session, false);
    uint64_t need = 2 * checkpoint + 2 * weights + SN_MIB;
    uint64_t there = SN_MIN(existing_bytes(fit, "last.ckpt"), checkpoint) +
                     SN_MIN(existing_bytes(fit, "last.safetensors"), weights) +
                     SN_MIN(existing_bytes(fit, "best.safetensors"), weights);
    need -= there;
    s = check_file_limit(checkpoint, err);
    if (s) {
        return s;
    }
    if (free_bytes < need) {
        char a[32], b[32];
        return sn_fail(
            err, SNUG_E_IO,
            "saving this run takes %s, '%.100s' has %s free: make room or choose another "
            "folder with -o",
            sn_format_bytes(a, sizeof a, need), fit->options->folder,
            sn_format_bytes(b, sizeof b, free_bytes));
    }
    return SNUG_OK;
}

snug_status sn_fit_resume(sn_fit *fit, snug_error *err)
{
    char *path = sn_io_join(SN_TAG_TRAIN, fit->options->folder, "last.ckpt");
    char *history = sn_io_join(SN_TAG_TRAIN, fit->options->folder, "history.csv");
    snug_status s = path && history ? sn_checkpoint_load(fit->session, path, &fit->state, err)
                                    : sn_fail(err, SNUG_E_MEMORY, "no memory for a path");
    if (!s && fit->state.seed != fit->session->seed) {
        s = sn_fail(err, SNUG_E_USAGE,
                    "the run was begun with seed %" PRIu64 ", not %" PRIu64
                    ": the same seed is needed to go on exactly",
                    fit->state.seed, fit->session->seed);
    }
    if (!s) {
        snug_epoch *rows;
        size_t n;
        s = sn_history_read(history, fit->state.epoch, &rows, &n, err);
        if (!s) {
            fit->history.at = rows;
            fit->history.n = fit->history.cap = n;
        }
        snug_session_set_step_number(fit->session, fit->state.step);
    }
    sn_free(path);
    sn_free(history);
    return s;
}
