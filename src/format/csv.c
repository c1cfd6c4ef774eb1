/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows and cells.
 */
#include "format/csv.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/io.h"

enum { BUFFER = 64 * 1024, MAX_ROW = 4 * 1024 * 1024, MAX_CELLS = 1 << 20 };

snug_status sn_csv_open(sn_csv *out, const char *path, snug_error *err)
{
    memset(out, 0, sizeof *out);
    out->next_line = 1;
    out->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (out->fd < 0)
        return sn_fail_errno(err, errno == ENOENT ? SNUG_E_NOT_FOUND : SNUG_E_IO, errno,
                             "'%.120s' cannot be opened", path);
    out->path = sn_strdup(SN_TAG_FORMAT, path);
    out->buffer = sn_alloc(SN_TAG_FORMAT, BUFFER);
    out->row = sn_alloc(SN_TAG_FORMAT, MAX_ROW);
    if (out->path && out->buffer && out->row)
        return SNUG_OK;
    sn_csv_close(out);
    return sn_fail(err, SNUG_E_MEMORY, "no memory to read a CSV");
}

void sn_csv_close(sn_csv *csv)
{
    if (csv->fd >= 0 && csv->next_line)
        close(csv->fd);
    sn_free(csv->path);
    sn_free(csv->buffer);
    sn_free(csv->row);
    SN_VEC_FREE(&csv->starts);
    SN_VEC_FREE(&csv->texts);
    memset(csv, 0, sizeof *csv);
    csv->fd = -1;
}

/* The next byte, or -1 at the end of the file. */
static int peek(sn_csv *c, snug_status *status, snug_error *err)
{
    if (c->at == c->have) {
        c->at = c->have = 0;
        if (!c->at_end)
            *status = sn_io_read(c->fd, c->buffer, BUFFER, &c->have, c->path, err);
        if (*status || c->have == 0) {
            c->at_end = true;
            return -1;
        }
        if (c->line == 0 && c->next_line == 1 && c->have >= 3 &&
            !memcmp(c->buffer, "\xef\xbb\xbf", 3))
            c->at = 3;
        if (c->at == c->have)
            return -1;
    }
    return (unsigned char)c->buffer[c->at];
}

static snug_status too_long(const sn_csv *c, snug_error *err)
{
    snug_status status = sn_fail(err, SNUG_E_INPUT,
                                 "%.100s: line %" PRIu64 " is longer than 4 MiB or has more than a "
                                 "million cells (a quote that is not closed?)",
                                 c->path, c->line);
    if (err)
        err->pos = c->line;
    return status;
}

static bool put(sn_csv *c, int byte)
{
    if (c->row_used == MAX_ROW)
        return false;
    c->row[c->row_used++] = (char)byte;
    return true;
}

/* One cell up to its comma or the end of its line. *last: the row ends with it. */
static snug_status read_cell(sn_csv *c, bool *last, snug_error *err)
{
    snug_status status = SNUG_OK;
    bool quoted = false, was_quoted = false;
    size_t start = c->row_used;

    if (c->starts.n == MAX_CELLS)
        return too_long(c, err);
    if (!SN_VEC_PUSH(SN_TAG_FORMAT, &c->starts, start))
        return sn_fail(err, SNUG_E_MEMORY, "no memory to read a CSV");
    for (;;) {
        int byte = peek(c, &status, err);
        if (byte < 0)
            break;
        c->at++;
        if (quoted) {
            if (byte == '"') {
                if (peek(c, &status, err) == '"')
                    c->at++;
                else {
                    quoted = false;
                    continue;
                }
            }
            c->next_line += byte == '\n';
        } else if (byte == '"' && (c->row_used == start && !was_quoted)) {
            quoted = was_quoted = true;
            continue;
        } else if (byte == ',' || byte == '\n') {
            c->next_line += byte == '\n';
            *last = byte == '\n';
            if (byte == '\n' && c->row_used > start && c->row[c->row_used - 1] == '\r')
                c->row_used--;
            return put(c, '\0') ? SNUG_OK : too_long(c, err);
        }
        if (!put(c, byte))
            return too_long(c, err);
    }
    *last = true;
    if (status)
        return status;
    return put(c, '\0') ? SNUG_OK : too_long(c, err);
}

snug_status sn_csv_next(sn_csv *c, snug_error *err)
{
    snug_status status = SNUG_OK;

    for (;;) {
        bool last = false;
        c->n = c->row_used = c->starts.n = c->texts.n = 0;
        if (peek(c, &status, err) < 0)
            return status;
        c->line = c->next_line;
        while (!last && !(status = read_cell(c, &last, err)))
            continue;
        if (status)
            return status;
        if (c->starts.n > 1 || c->row[0])
            break;
    }
    for (size_t i = 0; i < c->starts.n; i++)
        if (!SN_VEC_PUSH(SN_TAG_FORMAT, &c->texts, c->row + c->starts.at[i]))
            return sn_fail(err, SNUG_E_MEMORY, "no memory to read a CSV");
    c->cells = c->texts.at;
    c->n = c->texts.n;
    return SNUG_OK;
}

size_t sn_csv_column(char *const *names, size_t n_columns, const char *name)
{
    int64_t number;

    for (size_t i = 0; i < n_columns; i++)
        if (sn_str_eq(names[i], name))
            return i;
    if (sn_parse_i64(name, 1, (int64_t)n_columns, &number))
        return (size_t)number - 1;
    return n_columns;
}
