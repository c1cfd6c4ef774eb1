/* SPDX-License-Identifier: Apache-2.0 */
#include "gpus/gpus.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* What the kernel writes for getdents64; glibc's readdir would allocate and call once more. */
typedef struct entry {
    uint64_t inode;
    int64_t offset;
    uint16_t length;
    uint8_t type;
    char name[];
} entry;

snug_status sn_gpus_root_open(sn_gpus_root *out, const char *path, snug_error *err)
{
    const char *folder = path && path[0] ? path : "/";
    *out = (sn_gpus_root){-1, !strcmp(folder, "/")};
    out->fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (out->fd < 0)
        return sn_fail_errno(err, SNUG_E_NOT_FOUND, errno,
                             "the root folder %.120s cannot be opened", folder);
    return SNUG_OK;
}

void sn_gpus_root_close(sn_gpus_root *root)
{
    if (root->fd >= 0)
        close(root->fd);
    root->fd = -1;
}

ssize_t sn_gpus_read_at(int at, const char *path, char *buf, size_t n)
{
    buf[0] = '\0';
    int fd = openat(at, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return -errno;
    size_t length = 0;
    ssize_t got;
    while (length < n - 1) {
        got = read(fd, buf + length, n - 1 - length);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            ssize_t failed = -errno;
            close(fd);
            buf[0] = '\0';
            return failed;
        }
        length += (size_t)got;
        /* Files of proc give all that they have in one read unless the buffer was too small. */
        if (got == 0 || length < (n - 1) / 2)
            break;
    }
    close(fd);
    buf[length] = '\0';
    return (ssize_t)length;
}

ssize_t sn_gpus_read(const sn_gpus_root *root, char *buf, size_t n, const char *format, ...)
{
    char path[512];
    va_list args;
    va_start(args, format);
    vsnprintf(path, sizeof path, format, args);
    va_end(args);
    return sn_gpus_read_at(root->fd, path, buf, n);
}

bool sn_gpus_read_u64(const sn_gpus_root *root, uint64_t *out, const char *format, ...)
{
    char path[512], text[64];
    va_list args;
    va_start(args, format);
    vsnprintf(path, sizeof path, format, args);
    va_end(args);
    if (sn_gpus_read_at(root->fd, path, text, sizeof text) <= 0 || !isdigit((unsigned char)text[0]))
        return false;
    char *end;
    errno = 0;
    bool hexadecimal = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
    unsigned long long value = strtoull(text, &end, hexadecimal ? 16 : 10);
    if (errno || (*end && !isspace((unsigned char)*end)))
        return false;
    *out = value;
    return true;
}

bool sn_gpus_link_name(const sn_gpus_root *root, char *buf, size_t n, const char *format, ...)
{
    char path[512], text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(path, sizeof path, format, args);
    va_end(args);
    ssize_t got = readlinkat(root->fd, path, text, sizeof text - 1);
    buf[0] = '\0';
    if (got <= 0)
        return false;
    text[got] = '\0';
    const char *slash = strrchr(text, '/');
    snprintf(buf, n, "%s", slash ? slash + 1 : text);
    return buf[0] != '\0';
}

int sn_gpus_each(int at, const char *path, sn_gpus_visit *visit, void *context)
{
    _Alignas(entry) char buf[16384];
    int fd = openat(at, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int result = 0;
    for (;;) {
        long got = syscall(SYS_getdents64, fd, buf, sizeof buf);
        if (got <= 0) {
            result = got < 0 ? -errno : 0;
            break;
        }
        for (long at_byte = 0; at_byte < got;) {
            const entry *e = (const entry *)(buf + at_byte);
            at_byte += e->length;
            if (e->name[0] == '.' && (!e->name[1] || (e->name[1] == '.' && !e->name[2])))
                continue;
            if (!visit(context, fd, e->name)) {
                close(fd);
                return 0;
            }
        }
    }
    close(fd);
    return result;
}

bool sn_gpus_parse_pid(const char *text, int64_t *out)
{
    int64_t value = 0;
    size_t n = 0;
    for (; text[n] >= '0' && text[n] <= '9' && n < 10; n++)
        value = value * 10 + (text[n] - '0');
    if (!n || text[n])
        return false;
    *out = value;
    return true;
}
