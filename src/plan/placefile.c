/* SPDX-License-Identifier: Apache-2.0
 *
 * placefile.c - placing the buffers of a CSV file: id, lower, upper, size; lifetimes half open.
 */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/io.h"
#include "base/vec.h"
#include "plan/place.h"
#include "snug/plan.h"

enum { COLUMN_ID, COLUMN_LOWER, COLUMN_UPPER, COLUMN_SIZE, N_COLUMNS, MAX_COLUMNS = 16 };

static const char *const column_names[N_COLUMNS] = {"id", "lower", "upper", "size"};

typedef struct row {
    const char *id;
    int64_t lower, upper;
    int64_t bytes;
} row;

typedef struct table {
    SN_VEC(row) rows;
    sn_place_item *items;
} table;

/* The n fields of a line, cut in place; false when there are too many. */
static bool split(char *line, char *field[MAX_COLUMNS], size_t *n)
{
    *n = 0;
    for (char *at = line;; at++) {
        if (*n == MAX_COLUMNS)
            return false;
        field[(*n)++] = at;
        at = strchr(at, ',');
        if (!at)
            return true;
        *at = '\0';
    }
}

static snug_status read_head(char *line, size_t column[N_COLUMNS], const char *path,
                             snug_error *err)
{
    char *field[MAX_COLUMNS];
    size_t n;
    if (!split(line, field, &n))
        return sn_fail(err, SNUG_E_INPUT, "%s: line 1 has more than %d columns", path, MAX_COLUMNS);
    for (int c = 0; c < N_COLUMNS; c++) {
        column[c] = SIZE_MAX;
        for (size_t i = 0; i < n; i++)
            if (sn_str_eq(field[i], column_names[c]))
                column[c] = i;
        if (column[c] == SIZE_MAX)
            return sn_fail(err, SNUG_E_INPUT,
                           "%s: line 1 has no column '%s'; id,lower,upper,size are needed", path,
                           column_names[c]);
    }
    return SNUG_OK;
}

static snug_status read_row(char *line, const size_t column[N_COLUMNS], row *out, const char *path,
                            size_t number, snug_error *err)
{
    char *field[MAX_COLUMNS];
    size_t n;
    bool ok = split(line, field, &n);
    int64_t value[N_COLUMNS] = {0};
    for (int c = 0; c < N_COLUMNS && ok; c++) {
        ok = column[c] < n;
        if (ok && c != COLUMN_ID)
            ok = sn_parse_i64(field[column[c]], 0, INT64_MAX / 8, &value[c]);
    }
    if (!ok || value[COLUMN_UPPER] <= value[COLUMN_LOWER]) {
        sn_fail(err, SNUG_E_INPUT,
                ok ? "%s: line %zu: upper is not above lower"
                   : "%s: line %zu is no id,lower,upper,size of whole numbers",
                path, number);
        if (err)
            err->pos = number;
        return SNUG_E_INPUT;
    }
    *out = (row){field[column[COLUMN_ID]], value[COLUMN_LOWER], value[COLUMN_UPPER],
                 value[COLUMN_SIZE]};
    return SNUG_OK;
}

static snug_status parse(table *t, char *text, const char *path, snug_error *err)
{
    size_t column[N_COLUMNS], number = 0;
    for (char *line = text, *next; line; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        size_t length = strlen(line);
        if (length && line[length - 1] == '\r')
            line[length - 1] = '\0';
        number++;
        row r;
        snug_status s = SNUG_OK;
        if (number == 1)
            s = read_head(line, column, path, err);
        else if (*line) {
            s = read_row(line, column, &r, path, number, err);
            if (!s && !SN_VEC_PUSH(SN_TAG_PLAN, &t->rows, r))
                s = sn_fail(err, SNUG_E_MEMORY, "no memory for the rows of %s", path);
        }
        if (s)
            return s;
    }
    return SNUG_OK;
}

static int time_cmp(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static uint32_t rank(const int64_t *times, size_t n, int64_t value)
{
    size_t lo = 0, hi = n;
    while (lo < hi) {
        size_t middle = (lo + hi) / 2;
        if (times[middle] < value)
            lo = middle + 1;
        else
            hi = middle;
    }
    return (uint32_t)lo;
}

/* Times become ranks: only their order matters. */
static snug_status make_items(table *t, snug_error *err)
{
    size_t n = t->rows.n;
    int64_t *times = sn_alloc_array(SN_TAG_PLAN, 2 * n + 1, sizeof *times);
    t->items = sn_alloc_array(SN_TAG_PLAN, n + 1, sizeof *t->items);
    if (!times || !t->items) {
        sn_free(times);
        return sn_fail(err, SNUG_E_MEMORY, "no memory for %zu buffers", n);
    }
    for (size_t i = 0; i < n; i++) {
        times[2 * i] = t->rows.at[i].lower;
        times[2 * i + 1] = t->rows.at[i].upper;
    }
    qsort(times, 2 * n, sizeof *times, time_cmp);
    for (size_t i = 0; i < n; i++)
        t->items[i] = (sn_place_item){.bytes = (uint64_t)t->rows.at[i].bytes,
                                      .first = rank(times, 2 * n, t->rows.at[i].lower),
                                      .last = rank(times, 2 * n, t->rows.at[i].upper) - 1};
    sn_free(times);
    return SNUG_OK;
}

static snug_status write_out(const table *t, const char *path, snug_error *err)
{
    sn_buf text;
    sn_buf_init(&text, SN_TAG_PLAN);
    sn_buf_puts(&text, "id,lower,upper,size,offset\n");
    for (size_t i = 0; i < t->rows.n; i++) {
        const row *r = &t->rows.at[i];
        sn_buf_printf(&text, "%s,%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRIu64 "\n", r->id,
                      r->lower, r->upper, r->bytes, t->items[i].offset);
    }
    snug_status s = text.failed ? sn_fail(err, SNUG_E_MEMORY, "no memory for the text of %s", path)
                                : sn_io_write_file(path, text.data, text.len, err);
    sn_buf_deinit(&text);
    return s;
}

snug_status snug_place_file(snug_place_result *result, const char *path, uint64_t capacity,
                            const char *out_path, snug_error *err)
{
    *result = (snug_place_result){0};
    if (!path)
        return sn_fail(err, SNUG_E_USAGE, "no file of buffers was named");
    table t = {0};
    char *text = NULL;
    size_t length;
    double start = sn_now();
    snug_status s = sn_io_read_all(&text, &length, path, 256 * SN_MIB, SN_TAG_PLAN, err);
    if (!s && strlen(text) != length)
        s = sn_fail(err, SNUG_E_INPUT, "%s: a NUL at byte %zu: this is no CSV", path, strlen(text));
    if (!s)
        s = parse(&t, text, path, err);
    if (!s)
        s = make_items(&t, err);
    sn_place_result placed = {0};
    if (!s) {
        sn_place_options o = {.target_bytes = capacity, .search = 400000};
        s = sn_place(t.items, t.rows.n, &o, &placed, err);
    }
    if (!s) {
        *result = (snug_place_result){t.rows.n, placed.peak_bytes, placed.lower_bound_bytes,
                                      sn_now() - start};
        if (out_path)
            s = write_out(&t, out_path, err);
    }
    if (!s && capacity && placed.peak_bytes > capacity) {
        s = sn_fail(err, SNUG_E_DOES_NOT_FIT,
                    "%s: the best placing found takes %" PRIu64 " bytes, capacity %" PRIu64, path,
                    placed.peak_bytes, capacity);
        if (err) {
            err->need = placed.peak_bytes;
            err->have = capacity;
        }
    }
    SN_VEC_FREE(&t.rows);
    sn_free(t.items);
    sn_free(text);
    return s;
}
