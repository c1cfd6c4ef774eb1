/* SPDX-License-Identifier: Apache-2.0
 *
 * support.c - temporary folders, whole files, captured commands.
 */
#include "support/support.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/io.h"

void test_contains(const char *text, const char *needle, const char *file, int line)
{
    if (text && strstr(text, needle))
        return;
    print_error("\"%s\" does not stand in:\n%s\n", needle, text ? text : "(NULL)");
    _fail(file, line);
}

char *test_make_folder(char out[SN_TEST_PATH])
{
    const char *base = getenv("TMPDIR");
    snprintf(out, SN_TEST_PATH, "%s/snug-test-XXXXXX", base && *base ? base : "/tmp");
    if (!mkdtemp(out))
        fail_msg("cannot make %s: %s", out, strerror(errno));
    return out;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *where)
{
    SN_UNUSED(st);
    SN_UNUSED(kind);
    SN_UNUSED(where);
    return remove(path);
}

/* nftw reads a folder only if it may. */
static int open_up(const char *path, const struct stat *st, int kind, struct FTW *where)
{
    SN_UNUSED(where);
    if (kind == FTW_D || kind == FTW_DNR)
        return chmod(path, (st->st_mode & 0777) | 0700);
    return 0;
}

void test_remove(const char *path)
{
    struct stat st;
    if (lstat(path, &st) != 0)
        return;
    nftw(path, open_up, 16, FTW_PHYS);
    if (nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS) != 0)
        fail_msg("cannot remove %s: %s", path, strerror(errno));
}

char *test_path(char out[SN_TEST_PATH], const char *folder, const char *name)
{
    if (snprintf(out, SN_TEST_PATH, "%s/%s", folder, name) >= SN_TEST_PATH)
        fail_msg("%s/%s is too long", folder, name);
    return out;
}

void test_write(const char *path, const void *bytes, size_t n)
{
    snug_error err = SNUG_ERROR_INIT;
    char folder[SN_TEST_PATH];
    snprintf(folder, sizeof folder, "%s", path);
    char *slash = strrchr(folder, '/');
    if (slash && slash != folder) {
        *slash = '\0';
        assert_ok(sn_io_make_folder(folder, &err), &err);
    }
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0)
        fail_msg("cannot write %s: %s", path, strerror(errno));
    assert_ok(sn_io_write(fd, bytes, n, path, &err), &err);
    close(fd);
}

void test_write_text(const char *path, const char *text)
{
    test_write(path, text, strlen(text));
}

char *test_read(const char *path, size_t *n)
{
    snug_error err = SNUG_ERROR_INIT;
    char *data;
    size_t len;
    assert_ok(sn_io_read_all(&data, &len, path, SN_GIB, SN_TAG_TEST, &err), &err);
    if (n)
        *n = len;
    return data;
}

bool test_exists(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}

size_t test_count_entries(const char *folder)
{
    DIR *dir = opendir(folder);
    if (!dir)
        fail_msg("cannot open %s: %s", folder, strerror(errno));
    size_t n = 0;
    for (struct dirent *entry; (entry = readdir(dir));)
        n += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(dir);
    return n;
}

bool test_nightly(void)
{
    const char *nightly = getenv("SNUG_NIGHTLY");
    return nightly && sn_str_eq(nightly, "1");
}

char *test_source_path(char out[SN_TEST_PATH], const char *name)
{
    return test_path(out, SNUG_SOURCE_DIR, name);
}

const char *test_shared_path(char out[SN_TEST_PATH], const char *name)
{
    const char *shared = getenv("SNUG_SHARED");
    if (!shared || !*shared)
        shared = SNUG_SOURCE_DIR "/../shared";
    snprintf(out, SN_TEST_PATH, "%s%s%s", shared, name ? "/" : "", name ? name : "");
    return test_exists(out) ? out : NULL;
}

static void child(const char *const argv[], int in, int out, int err, const char *folder)
{
    if (folder && chdir(folder) != 0)
        _exit(127);
    if (dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0)
        _exit(127);
    execvp(argv[0], (char *const *)(uintptr_t)argv);
    dprintf(2, "cannot run %s: %s\n", argv[0], strerror(errno));
    _exit(127);
}

/* Reads both pipes until both have ended, in whatever order the child fills them. */
static void drain(int out, int err, sn_buf *texts)
{
    struct pollfd fds[2] = {{.fd = out, .events = POLLIN}, {.fd = err, .events = POLLIN}};
    while (fds[0].fd >= 0 || fds[1].fd >= 0) {
        if (poll(fds, 2, -1) < 0 && errno != EINTR)
            fail_msg("poll: %s", strerror(errno));
        for (size_t i = 0; i < 2; i++) {
            char chunk[4096];
            if (fds[i].fd < 0 || !fds[i].revents)
                continue;
            ssize_t n = read(fds[i].fd, chunk, sizeof chunk);
            if (n > 0)
                sn_buf_append(&texts[i], chunk, (size_t)n);
            else if (n == 0 || errno != EINTR)
                fds[i].fd = -1;
        }
    }
}

test_result test_run(const char *const argv[], const char *input, const char *folder)
{
    snug_error error = SNUG_ERROR_INIT;
    int out[2], err[2], in;
    /* A file, not a pipe: the child may take its input when it likes, or never. */
    assert_ok(sn_io_temporary(&in, &error), &error);
    if (input) {
        assert_ok(sn_io_write(in, input, strlen(input), "stdin", &error), &error);
        lseek(in, 0, SEEK_SET);
    }
    if (pipe2(out, O_CLOEXEC) || pipe2(err, O_CLOEXEC))
        fail_msg("pipe: %s", strerror(errno));
    fflush(NULL);
    pid_t pid = fork();
    if (pid < 0)
        fail_msg("fork: %s", strerror(errno));
    if (pid == 0)
        child(argv, in, out[1], err[1], folder);
    close(in);
    close(out[1]);
    close(err[1]);
    sn_buf texts[2];
    sn_buf_init(&texts[0], SN_TAG_TEST);
    sn_buf_init(&texts[1], SN_TAG_TEST);
    drain(out[0], err[0], texts);
    close(out[0]);
    close(err[0]);
    int status;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            fail_msg("waitpid: %s", strerror(errno));
    test_result result = {.exit_code =
                              WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
                          .out_len = texts[0].len,
                          .err_len = texts[1].len};
    result.out = sn_buf_take(&texts[0]);
    result.err = sn_buf_take(&texts[1]);
    assert_non_null(result.out);
    assert_non_null(result.err);
    return result;
}

test_result test_run_shell(const char *script, const char *folder)
{
    return test_run((const char *[]){"sh", "-c", script, NULL}, NULL, folder);
}

void test_result_free(test_result *result)
{
    sn_free(result->out);
    sn_free(result->err);
    result->out = result->err = NULL;
}

const char *test_command(void)
{
    return SNUG_BUILD_DIR "/snug";
}
