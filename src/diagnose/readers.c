/* SPDX-License-Identifier: Apache-2.0
 *
 * readers.c - which reader a file needs, by its name and first bytes.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "diagnose/readers.h"
#include "diagnose/source.h"

#define HEAD 4096
#define WHOLE_LIMIT (512 * SN_MIB)
#define SOURCE_LIMIT (16 * SN_MIB)

static bool holds(const char *head, size_t n, const char *word)
{
    return memmem(head, n, word, strlen(word)) != NULL;
}

/* MemoryDump begins with field 1, the allocator's name, a short printable string. */
static bool is_memory_dump(const uint8_t *p, size_t n)
{
    if (n < 8 || p[0] != 0x0A || p[1] < 3 || p[1] > 64 || (size_t)p[1] + 3 > n)
        return false;
    for (size_t i = 0; i < p[1]; i++)
        if (p[2 + i] < 32 || p[2 + i] > 126)
            return false;
    uint8_t after = p[2 + p[1]];
    return after == 0x12 || after == 0x1A; /* bin_summary or chunk */
}

sn_reader sn_reader_for(const char *path, const void *head, size_t n)
{
    const uint8_t *p = head;
    const char *text = head;
    size_t skip = 0;
    if (n >= 2 && p[0] == 0x80 && p[1] >= 2 && p[1] <= 5)
        return SN_READER_PICKLE;
    if (n >= 4 && !memcmp(p, "PK\003\004", 4))
        return SN_READER_PICKLE; /* torch.save: a zip around a pickle */
    if (is_memory_dump(p, n))
        return SN_READER_BFC_DUMP;
    while (skip < n && strchr(" \t\r\n", text[skip]) && text[skip])
        skip++;
    bool json = skip < n && (text[skip] == '{' || text[skip] == '[');
    if (json && (sn_str_ends_fold(path, ".ipynb") ||
                 (holds(text, n, "\"cells\"") && holds(text, n, "\"cell_type\""))))
        return SN_READER_NOTEBOOK;
    if (json && ((holds(text, n, "\"segments\"") && holds(text, n, "\"blocks\"")) ||
                 (holds(text, n, "\"device_traces\"")) ||
                 (holds(text, n, "\"total_size\"") && holds(text, n, "\"allocated_size\""))))
        return SN_READER_SNAPSHOT;
    if (sn_str_ends_fold(path, ".ipynb"))
        return SN_READER_NOTEBOOK;
    if (sn_str_ends_fold(path, ".py"))
        return SN_READER_SOURCE;
    if (sn_str_ends_fold(path, ".pickle") || sn_str_ends_fold(path, ".pkl"))
        return SN_READER_PICKLE;
    return SN_READER_TEXT;
}

static snug_status read_head(const char *path, char *head, size_t *n, snug_error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return sn_fail_errno(err, errno == ENOENT ? SNUG_E_NOT_FOUND : SNUG_E_IO, errno,
                             "cannot open %.120s", path);
    /* a FIFO's bytes are gone once read: it is a text */
    snug_status s = SNUG_OK;
    *n = 0;
    if (lseek(fd, 0, SEEK_CUR) != (off_t)-1)
        s = sn_io_read(fd, head, HEAD, n, path, err);
    close(fd);
    return s;
}

snug_status snug_diagnosis_read_file(snug_diagnosis *d, const char *path, snug_error *err)
{
    char head[HEAD], *bytes = NULL;
    size_t n = 0;
    snug_status s;
    if (sn_str_eq(path, "-"))
        return snug_diagnosis_feed_file(d, path, err);
    if (sn_io_is_folder(path))
        return sn_fail(err, SNUG_E_INPUT,
                       "%.120s is a folder: name the log, notebook or script in it", path);
    s = read_head(path, head, &n, err);
    if (s)
        return s;
    sn_reader reader = sn_reader_for(path, head, n);
    const char *name = sn_io_base_name(path);
    if (reader == SN_READER_TEXT)
        return snug_diagnosis_feed_file(d, path, err);
    if (reader == SN_READER_PICKLE)
        return sn_fail(
            err, SNUG_E_UNSUPPORTED,
            "%.50s is a pickle, which runs code when it is opened: not read. Where it was "
            "made write json.dump(torch.cuda.memory._snapshot(), open('snapshot.json','w'))",
            name);
    s = sn_io_read_all(&bytes, &n, path, reader == SN_READER_SOURCE ? SOURCE_LIMIT : WHOLE_LIMIT,
                       SN_TAG_DIAGNOSE, err);
    if (s)
        return s;
    if (reader == SN_READER_SOURCE)
        s = sn_source_read(d, name, bytes, n, NULL, 0, err);
    else if (reader == SN_READER_NOTEBOOK)
        s = sn_notebook_read(d, name, bytes, n, err);
    else if (reader == SN_READER_BFC_DUMP)
        s = sn_bfc_dump_read(d, name, bytes, n, err);
    else
        s = sn_snapshot_read(d, name, bytes, n, err);
    sn_free(bytes);
    return s;
}
