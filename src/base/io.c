/* SPDX-License-Identifier: Apache-2.0
 *
 * io.c - files.
 *
 * Invariants of an atomic write: 1. until commit renames, nobody sees the new bytes.  2.
 * `temporary` is NULL if and only if the target is no regular file (a device or a pipe, which must
 * not be replaced) and is written directly.  3. fd is -1 and path NULL once it ended.
 */
#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define CHUNK ((size_t)65536)

snug_status sn_io_read(int fd, void *out, size_t n, size_t *got, const char *path, snug_error *err)
{
    size_t done = 0;
    while (done < n) {
        ssize_t r = read(fd, (char *)out + done, SN_MIN(n - done, (size_t)1 << 30));
        if (r < 0 && errno == EINTR)
            continue;
        if (r < 0)
            return sn_fail_errno(err, SNUG_E_IO, errno, "cannot read %s", path);
        if (r == 0)
            break;
        done += (size_t)r;
    }
    *got = done;
    return SNUG_OK;
}

snug_status sn_io_pread(int fd, void *out, size_t n, uint64_t offset, const char *path,
                        snug_error *err)
{
    uint64_t end;
    if (sn_add_u64(&end, offset, n) || end > INT64_MAX)
        return sn_fail(err, SNUG_E_INPUT, "%s: byte %" PRIu64 " lies beyond any file", path,
                       offset);
    size_t done = 0;
    while (done < n) {
        ssize_t r = pread(fd, (char *)out + done, SN_MIN(n - done, (size_t)1 << 30),
                          (off_t)(offset + done));
        if (r < 0 && errno == EINTR)
            continue;
        if (r < 0)
            return sn_fail_errno(err, SNUG_E_IO, errno, "cannot read %s", path);
        if (r == 0) {
            uint64_t ends = offset + done;
            struct stat st;
            if (done == 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
                ends = (uint64_t)st.st_size;
            sn_fail(err, SNUG_E_INPUT, "%s ends at byte %" PRIu64 ", %" PRIu64 " expected", path,
                    ends, end);
            if (err)
                err->pos = ends;
            return SNUG_E_INPUT;
        }
        done += (size_t)r;
    }
    return SNUG_OK;
}

snug_status sn_io_write(int fd, const void *bytes, size_t n, const char *path, snug_error *err)
{
    for (size_t done = 0; done < n;) {
        ssize_t w = write(fd, (const char *)bytes + done, SN_MIN(n - done, (size_t)1 << 30));
        if (w < 0 && errno == EINTR)
            continue;
        if (w <= 0)
            return sn_fail_errno(err, SNUG_E_IO, w < 0 ? errno : EIO, "cannot write %s", path);
        done += (size_t)w;
    }
    return SNUG_OK;
}

snug_status sn_io_pwrite(int fd, const void *bytes, size_t n, uint64_t offset, const char *path,
                         snug_error *err)
{
    uint64_t end;
    if (sn_add_u64(&end, offset, n) || end > INT64_MAX)
        return sn_fail_errno(err, SNUG_E_IO, EFBIG, "cannot write %s", path);
    for (size_t done = 0; done < n;) {
        ssize_t w = pwrite(fd, (const char *)bytes + done, SN_MIN(n - done, (size_t)1 << 30),
                           (off_t)(offset + done));
        if (w < 0 && errno == EINTR)
            continue;
        if (w <= 0)
            return sn_fail_errno(err, SNUG_E_IO, w < 0 ? errno : EIO, "cannot write %s", path);
        done += (size_t)w;
    }
    return SNUG_OK;
}

static snug_status too_long(const char *path, uint64_t limit, snug_error *err)
{
    return sn_fail(err, SNUG_E_INPUT, "%s is longer than %" PRIu64 " bytes, the limit here", path,
                   limit);
}

/* Reads fd to its end into a buffer that starts with room for `hint` bytes. */
static snug_status read_to_end(char **out, size_t *n, int fd, size_t hint, const char *path,
                               uint64_t limit, sn_tag tag, snug_error *err)
{
    size_t cap = hint, len = 0;
    char *data = sn_realloc(tag, NULL, cap + 1);
    snug_status status = SNUG_OK;
    while (data) {
        size_t got = 0;
        /* The byte for the NUL also tells a file that ends here from one that goes on. */
        status = sn_io_read(fd, data + len, cap + 1 - len, &got, path, err);
        len += got;
        if (status)
            break;
        if (len > limit) {
            status = too_long(path, limit, err);
            break;
        }
        if (len <= cap) {
            data[len] = '\0';
            *out = data;
            *n = len;
            return SNUG_OK;
        }
        if (cap > SIZE_MAX / 4)
            break;
        cap = SN_MAX(cap * 2, CHUNK);
        char *grown = sn_realloc(tag, data, cap + 1);
        if (!grown)
            break;
        data = grown;
    }
    sn_free(data);
    return status ? status
                  : sn_fail(err, SNUG_E_MEMORY, "no memory for the %zu bytes of %s", cap, path);
}

snug_status sn_io_read_all(char **out, size_t *n, const char *path, uint64_t limit, sn_tag tag,
                           snug_error *err)
{
    *out = NULL;
    *n = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return sn_fail_errno(err,
                             errno == ENOENT || errno == ENOTDIR ? SNUG_E_NOT_FOUND : SNUG_E_IO,
                             errno, "cannot open %s", path);
    struct stat st;
    snug_status status;
    if (fstat(fd, &st))
        status = sn_fail_errno(err, SNUG_E_IO, errno, "cannot read %s", path);
    else if (S_ISDIR(st.st_mode))
        status = sn_fail(err, SNUG_E_IO, "%s is a folder, a file is expected", path);
    else if (S_ISREG(st.st_mode) && (uint64_t)st.st_size > limit)
        status = too_long(path, limit, err);
    else {
        /* Files of /proc say 0. */
        bool known = S_ISREG(st.st_mode) && st.st_size > 0;
        size_t hint = known ? (size_t)st.st_size : (size_t)SN_MIN((uint64_t)CHUNK, limit);
        status = read_to_end(out, n, fd, hint, path, limit, tag, err);
    }
    close(fd);
    return status;
}

/* The file that path stands for, links followed: a link (also /dev/stdout) is kept, what it leads
 * to is replaced. */
static snug_status resolve(char **out, const char *path, snug_error *err)
{
    struct stat st;
    char real[PATH_MAX];
    if (lstat(path, &st) == 0 && S_ISLNK(st.st_mode)) {
        /* Links of /proc to pipes have no path of their own; stat sees through them. */
        if (realpath(path, real))
            path = real;
        else if (stat(path, &st) != 0)
            return sn_fail_errno(err, SNUG_E_IO, errno, "cannot follow the link %s", path);
    }
    *out = sn_strdup(SN_TAG_BASE, path);
    return *out ? SNUG_OK : sn_fail(err, SNUG_E_MEMORY, "no memory to write %s", path);
}

/* mkstemp makes files that only their owner can read; this one has the usual mode. */
static int open_temporary(char *name, size_t size, const char *path)
{
    for (unsigned attempt = 0; attempt < 10000; attempt++) {
        snprintf(name, size, "%s.%ld-%u.tmp", path, (long)getpid(), attempt);
        int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    return -1;
}

snug_status sn_io_atomic_open(sn_io_atomic *out, const char *path, snug_error *err)
{
    *out = (sn_io_atomic){.fd = -1};
    char *target = NULL;
    snug_status status = resolve(&target, path, err);
    if (status)
        return status;
    struct stat st;
    bool exists = stat(target, &st) == 0;
    if (exists && S_ISDIR(st.st_mode)) {
        sn_free(target);
        return sn_fail(err, SNUG_E_IO, "cannot write %s: it is a folder", path);
    }
    char *temporary = NULL;
    int fd;
    if (exists && !S_ISREG(st.st_mode)) {
        fd = open(target, O_WRONLY | O_CLOEXEC);
    } else {
        size_t size = strlen(target) + 48;
        temporary = sn_alloc(SN_TAG_BASE, size);
        if (!temporary) {
            sn_free(target);
            return sn_fail(err, SNUG_E_MEMORY, "no memory to write %s", path);
        }
        fd = open_temporary(temporary, size, target);
        if (fd >= 0 && exists)
            (void)!fchmod(fd, st.st_mode & 0777); /* not ours to change: the usual mode stays */
    }
    if (fd < 0) {
        status = sn_fail_errno(err, SNUG_E_IO, errno, "cannot write %s", path);
        sn_free(target);
        sn_free(temporary);
        return status;
    }
    *out = (sn_io_atomic){.fd = fd, .path = target, .temporary = temporary};
    return SNUG_OK;
}

/* Makes the rename itself durable. File systems that cannot sync a folder say EINVAL. */
static snug_status sync_folder_of(const char *path, snug_error *err)
{
    const char *slash = strrchr(path, '/');
    char folder[PATH_MAX];
    size_t n = slash ? SN_MAX((size_t)(slash - path), (size_t)1) : 1;
    if (n >= sizeof folder)
        return SNUG_OK;
    memcpy(folder, slash ? path : ".", n);
    folder[n] = '\0';
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return SNUG_OK; /* a folder that may be written but not read */
    int failed = fsync(fd) ? errno : 0;
    close(fd);
    if (failed && failed != EINVAL && failed != ENOTSUP)
        return sn_fail_errno(err, SNUG_E_IO, failed, "cannot write folder %s", folder);
    return SNUG_OK;
}

snug_status sn_io_atomic_commit(sn_io_atomic *file, snug_error *err)
{
    int failed = 0;
    if (file->temporary && fsync(file->fd) && errno != EINVAL && errno != ENOTSUP)
        failed = errno;
    if (close(file->fd) && !failed && errno != EINTR)
        failed = errno;
    file->fd = -1;
    if (!failed && file->temporary && rename(file->temporary, file->path))
        failed = errno;
    snug_status status = SNUG_OK;
    if (failed)
        status = sn_fail_errno(err, SNUG_E_IO, failed, "cannot write %s", file->path);
    else if (file->temporary) {
        status = sync_folder_of(file->path, err);
        sn_free(file->temporary); /* renamed: nothing left to unlink */
        file->temporary = NULL;
    }
    sn_io_atomic_abort(file);
    return status;
}

void sn_io_atomic_abort(sn_io_atomic *file)
{
    if (!file || !file->path)
        return;
    if (file->fd >= 0)
        close(file->fd);
    if (file->temporary)
        unlink(file->temporary);
    sn_free(file->temporary);
    sn_free(file->path);
    *file = (sn_io_atomic){.fd = -1};
}

snug_status sn_io_write_file(const char *path, const void *bytes, size_t n, snug_error *err)
{
    sn_io_atomic file;
    snug_status status = sn_io_atomic_open(&file, path, err);
    if (status)
        return status;
    status = sn_io_write(file.fd, bytes, n, path, err);
    if (status) {
        sn_io_atomic_abort(&file);
        return status;
    }
    return sn_io_atomic_commit(&file, err);
}

snug_status sn_io_temporary(int *fd, snug_error *err)
{
    const char *folder = getenv("TMPDIR");
    if (!folder || !*folder)
        folder = "/tmp";
    *fd = open(folder, O_RDWR | O_TMPFILE | O_EXCL | O_CLOEXEC, 0600);
    if (*fd >= 0)
        return SNUG_OK;
    /* Not every file system has O_TMPFILE. */
    char name[PATH_MAX];
    int n = snprintf(name, sizeof name, "%s/snug-XXXXXX", folder);
    if (n >= (int)sizeof name)
        return sn_fail(err, SNUG_E_IO, "the name of the temporary folder is too long: set TMPDIR");
    *fd = mkostemp(name, O_CLOEXEC);
    if (*fd < 0)
        return sn_fail_errno(err, SNUG_E_IO, errno,
                             "cannot make a temporary file in %s (TMPDIR names another folder)",
                             folder);
    unlink(name);
    return SNUG_OK;
}

snug_status sn_io_make_folder(const char *path, snug_error *err)
{
    char name[PATH_MAX];
    size_t n = strlen(path);
    if (n == 0 || n >= sizeof name)
        return sn_fail(err, SNUG_E_IO, "cannot make a folder whose name has %zu bytes", n);
    memcpy(name, path, n + 1);
    for (size_t i = 1; i <= n; i++) {
        if (name[i] != '/' && name[i] != '\0')
            continue;
        char end = name[i];
        name[i] = '\0';
        int failed = mkdir(name, 0777) ? errno : 0;
        /* A parent that exists may refuse with another reason, such as a read-only file system. */
        if (failed && !sn_io_is_folder(name))
            return sn_fail_errno(err, SNUG_E_IO, failed == EEXIST ? ENOTDIR : failed,
                                 "cannot make folder %s", name);
        name[i] = end;
    }
    return SNUG_OK;
}

snug_status sn_io_free_bytes(uint64_t *out, const char *path, snug_error *err)
{
    *out = 0;
    char name[PATH_MAX];
    size_t n = strlen(path);
    if (n >= sizeof name)
        return sn_fail(err, SNUG_E_IO, "a path of %zu bytes is too long", n);
    memcpy(name, path, n + 1);
    /* What is not there yet will stand in the nearest folder above it that is. */
    struct statvfs fs;
    while (statvfs(name, &fs) != 0) {
        if (errno == EINTR)
            continue;
        if (errno != ENOENT && errno != ENOTDIR)
            return sn_fail_errno(err, SNUG_E_IO, errno, "cannot ask for the free space of %s",
                                 path);
        char *slash = strrchr(name, '/');
        if (slash == name && name[1])
            name[1] = '\0';
        else if (slash && slash != name)
            *slash = '\0';
        else if (name[0] != '.' || name[1])
            memcpy(name, ".", 2);
        else
            return sn_fail_errno(err, SNUG_E_IO, errno, "cannot ask for the free space of %s",
                                 path);
    }
    if (sn_mul_u64(out, fs.f_bavail, fs.f_frsize))
        *out = UINT64_MAX;
    return SNUG_OK;
}

bool sn_io_is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

bool sn_io_is_file(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

char *sn_io_join(sn_tag tag, const char *folder, const char *name)
{
    size_t n = strlen(folder), m = strlen(name);
    bool slash = n && folder[n - 1] != '/';
    char *path = sn_alloc(tag, n + slash + m + 1);
    if (!path)
        return NULL;
    memcpy(path, folder, n);
    if (slash)
        path[n] = '/';
    memcpy(path + n + slash, name, m);
    return path;
}

const char *sn_io_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}
