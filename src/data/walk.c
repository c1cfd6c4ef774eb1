/* SPDX-License-Identifier: Apache-2.0
 *
 * Walking folders with a stack of open ones, so that depth is bounded and a loop of links is seen.
 */
#include "data/walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/names.h"

typedef struct walk {
    sn_walk_found *found;
    void *me;
    char path[SN_NAME_MAX];
    struct {
        dev_t device;
        ino_t inode;
    } above[SN_WALK_DEPTH];
} walk;

bool sn_walk_hidden(const char *name)
{
    return name[0] == '.' || sn_str_eq(name, "__MACOSX");
}

static DIR *open_folder(int at, const char *path, struct stat *st)
{
    int fd = openat(at, path[0] ? path : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        return NULL;
    DIR *dir = fstat(fd, st) ? NULL : fdopendir(fd);
    if (!dir)
        close(fd);
    return dir;
}

/* 'd' a folder, 'f' a regular file, 'o' anything else (also a dangling link). */
static char kind_of(int at, const struct dirent *entry)
{
    struct stat st;

    if (entry->d_type == DT_DIR)
        return 'd';
    if (entry->d_type == DT_REG)
        return 'f';
    if (entry->d_type != DT_UNKNOWN && entry->d_type != DT_LNK)
        return 'o';
    if (fstatat(at, entry->d_name, &st, 0))
        return 'o';
    return S_ISDIR(st.st_mode) ? 'd' : S_ISREG(st.st_mode) ? 'f' : 'o';
}

static bool loops(const walk *w, int depth, const struct stat *st)
{
    for (int i = 0; i < depth; i++)
        if (w->above[i].device == st->st_dev && w->above[i].inode == st->st_ino)
            return true;
    return false;
}

static snug_status walk_folder(walk *w, int root, size_t length, int depth, snug_error *err);

static snug_status walk_one(walk *w, int root, int dir_fd, const struct dirent *entry,
                            size_t length, int depth, snug_error *err)
{
    size_t n = strlen(entry->d_name), start = length ? length + 1 : 0;
    char kind = kind_of(dir_fd, entry);

    if (kind == 'o')
        return SNUG_OK;
    if (start + n >= sizeof w->path)
        return sn_fail(err, SNUG_E_INPUT, "a path is longer than %zu bytes", sizeof w->path - 1);
    if (length)
        w->path[length] = '/';
    memcpy(w->path + start, entry->d_name, n + 1);
    snug_status status = kind == 'd' ? walk_folder(w, root, start + n, depth + 1, err)
                                     : w->found(w->me, w->path, err);
    w->path[length] = '\0';
    return status;
}

/* w->path holds the folder's path of `length` bytes. */
static snug_status walk_folder(walk *w, int root, size_t length, int depth, snug_error *err)
{
    struct stat st;
    struct dirent *entry;
    snug_status status = SNUG_OK;
    char shown[128];

    if (depth >= SN_WALK_DEPTH)
        return sn_fail(err, SNUG_E_INPUT, "folders nested deeper than %d: %s", SN_WALK_DEPTH,
                       sn_str_printable(shown, sizeof shown, w->path));
    DIR *dir = open_folder(root, w->path, &st);
    if (!dir)
        return sn_fail_errno(err, SNUG_E_IO, errno, "folder '%s' cannot be read",
                             sn_str_printable(shown, sizeof shown, w->path));
    w->above[depth].device = st.st_dev;
    w->above[depth].inode = st.st_ino;
    if (!loops(w, depth, &st))
        while (!status && (errno = 0, entry = readdir(dir)))
            if (!sn_walk_hidden(entry->d_name))
                status = walk_one(w, root, dirfd(dir), entry, length, depth, err);
    closedir(dir);
    return status;
}

snug_status sn_walk(int root_fd, const char *folder, sn_walk_found *found, void *me,
                    snug_error *err)
{
    walk *w = sn_alloc(SN_TAG_DATA, sizeof *w);

    if (!w)
        return sn_fail(err, SNUG_E_MEMORY, "no memory to walk folders");
    w->found = found;
    w->me = me;
    size_t n = strlen(folder);
    snug_status status;
    if (n >= sizeof w->path) {
        status = sn_fail(err, SNUG_E_INPUT, "a path is longer than %zu bytes", sizeof w->path - 1);
    } else {
        memcpy(w->path, folder, n + 1);
        status = walk_folder(w, root_fd, n, 0, err);
    }
    sn_free(w);
    return status;
}

snug_status sn_walk_entries(int root_fd, const char *folder, sn_walk_entry *entry, void *me,
                            snug_error *err)
{
    struct stat st;
    struct dirent *e;
    snug_status status = SNUG_OK;
    char shown[128];
    DIR *dir = open_folder(root_fd, folder, &st);

    if (!dir)
        return sn_fail_errno(err, SNUG_E_IO, errno, "folder '%s' cannot be read",
                             sn_str_printable(shown, sizeof shown, folder));
    while (!status && (e = readdir(dir))) {
        if (sn_walk_hidden(e->d_name))
            continue;
        char kind = kind_of(dirfd(dir), e);
        if (kind != 'o')
            status = entry(me, e->d_name, kind == 'd', err);
    }
    closedir(dir);
    return status;
}
