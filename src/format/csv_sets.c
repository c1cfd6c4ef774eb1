/* SPDX-License-Identifier: Apache-2.0
 *
 * CSV files as data sets: a table of numbers, and a list of image files with their labels.
 */
#include <float.h>
#include <fnmatch.h>
#include <math.h>
#include <unistd.h>

#include "base/io.h"
#include "format/csv.h"
#include "format/labels.h"

/* err gets the place of a cell. */
static snug_status in_cell(const sn_csv *c, size_t column, const char *name, snug_status status,
                           snug_error *err)
{
    if (err) {
        err->pos = c->line;
        if (name)
            sn_where(err, "%.40s: line %" PRIu64 ", column %zu (%.20s)", sn_io_base_name(c->path),
                     c->line, column + 1, name);
        else
            sn_where(err, "%.50s: line %" PRIu64 ", column %zu", sn_io_base_name(c->path), c->line,
                     column + 1);
    }
    return status;
}

static bool is_number(const char *text, float *value)
{
    double v;

    /* Spaces around a number are common and mean nothing. */
    char cell[64];
    text += strspn(text, " \t");
    size_t n = strlen(text);
    while (n && (text[n - 1] == ' ' || text[n - 1] == '\t'))
        n--;
    if (n == 0 || n >= sizeof cell)
        return false;
    memcpy(cell, text, n);
    cell[n] = '\0';
    if (!sn_parse_f64(cell, -(double)FLT_MAX, (double)FLT_MAX, &v))
        return false;
    *value = (float)v;
    return isfinite(*value) != 0;
}

static bool all_numbers(const sn_csv *c)
{
    float ignored;

    for (size_t i = 0; i < c->n; i++)
        if (!is_number(c->cells[i], &ignored))
            return false;
    return true;
}

/* --- a table of numbers ------------------------------------------------------------------------*/

typedef struct table {
    sn_csv csv;
    sn_labels labels;
    SN_VEC(char *) names; /* of the columns; empty without a header */
    size_t n_columns, label;
    float *row;
    int fd;
    uint64_t n;
} table;

static snug_status no_memory(snug_error *err)
{
    return sn_fail(err, SNUG_E_MEMORY, "no memory to read a CSV");
}

/* "a, b, c, ..." for a message. */
static const char *list_columns(char *out, size_t n, char *const *names, size_t n_names)
{
    size_t used = 0;

    out[0] = '\0';
    for (size_t i = 0; i < n_names && used < n; i++)
        used += (size_t)snprintf(out + used, n - used, "%s%.20s", i ? ", " : "", names[i]);
    return out;
}

/* The first row: names, or numbers already (*first_is_data). */
static snug_status read_names(table *t, const snug_data_options *o, bool *first_is_data,
                              snug_error *err)
{
    char columns[120];
    snug_status status = sn_csv_next(&t->csv, err);

    if (status)
        return status;
    if (t->csv.n == 0)
        return sn_fail(err, SNUG_E_INPUT, "'%.120s' is empty", t->csv.path);
    t->n_columns = t->csv.n;
    *first_is_data = all_numbers(&t->csv);
    for (size_t i = 0; i < t->n_columns && !*first_is_data; i++) {
        char *copy = sn_strdup(SN_TAG_FORMAT, t->csv.cells[i]);
        if (!copy || !SN_VEC_PUSH(SN_TAG_FORMAT, &t->names, copy)) {
            sn_free(copy);
            return no_memory(err);
        }
    }
    list_columns(columns, sizeof columns, t->csv.cells, t->n_columns);
    t->label = t->n_columns;
    if (o->label_column)
        t->label = sn_csv_column(t->csv.cells, t->n_columns, o->label_column);
    if (o->label_column && t->label == t->n_columns)
        return sn_fail(err, SNUG_E_INPUT, "no column '%.40s' in '%.60s'; its columns: %s",
                       o->label_column, t->csv.path, columns);
    if (!o->label_column && !o->lenient)
        return sn_fail(
            err, SNUG_E_USAGE,
            "a CSV needs --label-column NAME (or its number); the columns of '%.50s': %s",
            t->csv.path, columns);
    if (t->n_columns - (t->label < t->n_columns) < 1)
        return sn_fail(err, SNUG_E_INPUT, "'%.120s' has no column but the label", t->csv.path);
    return SNUG_OK;
}

static snug_status read_row(table *t, snug_error *err)
{
    const sn_csv *c = &t->csv;
    size_t n = 0;
    char shown[40];

    if (c->n != t->n_columns) {
        snug_status status = sn_fail(
            err, SNUG_E_INPUT, "%.80s: line %" PRIu64 " has %zu cells, the first line has %zu",
            c->path, c->line, c->n, t->n_columns);
        if (err)
            err->pos = c->line;
        return status;
    }
    for (size_t i = 0; i < c->n; i++) {
        const char *name = t->names.n ? t->names.at[i] : NULL;
        if (i == t->label) {
            snug_status status = sn_labels_add(&t->labels, c->cells[i], err);
            if (status)
                return in_cell(c, i, name, status, err);
        } else if (!is_number(c->cells[i], &t->row[n++])) {
            sn_str_printable(shown, sizeof shown, c->cells[i]);
            return in_cell(c, i, name,
                           sn_fail(err, SNUG_E_INPUT,
                                   c->cells[i][0] ? "'%s' is no number" : "the cell is empty%s",
                                   shown),
                           err);
        }
    }
    uint64_t bytes = n * sizeof(float);
    return sn_io_pwrite(t->fd, t->row, (size_t)bytes, t->n++ * bytes,
                        "the temporary file of numbers", err);
}

/* Labels into raw's own file, with their final numbers. */
static snug_status move_labels(sn_raw *raw, sn_labels *labels, snug_error *err)
{
    snug_status status = sn_io_temporary(&raw->labels_fd, err);

    raw->labels = labels->real ? SN_RAW_TARGETS : SN_RAW_CLASSES;
    raw->n_targets = labels->real ? 1 : 0;
    for (uint64_t i = 0; i < labels->n && !status; i++) {
        int32_t class_index;
        float y;
        status = sn_labels_at(labels, i, &class_index, &y, err);
        if (!status)
            status = sn_io_pwrite(raw->labels_fd,
                                  labels->real ? (const void *)&y : (const void *)&class_index, 4,
                                  i * 4, "the temporary file of labels", err);
    }
    for (size_t i = 0; i < labels->names.n && !labels->real && !status; i++) {
        if (!SN_VEC_PUSH(SN_TAG_DATA, &raw->classes, labels->names.at[i]))
            return no_memory(err);
        labels->names.at[i] = NULL;
    }
    return status;
}

static snug_status fill(sn_raw *raw, table *t, const snug_data_options *o, snug_error *err)
{
    bool first_is_data = false;
    snug_status status = sn_csv_open(&t->csv, raw->path, err);

    if (!status)
        status = sn_labels_init(&t->labels, err);
    if (!status)
        status = read_names(t, o, &first_is_data, err);
    if (!status)
        status = sn_io_temporary(&t->fd, err);
    if (status)
        return status;
    t->row = sn_alloc_array(SN_TAG_FORMAT, t->n_columns, sizeof(float));
    if (!t->row)
        return no_memory(err);
    if (first_is_data)
        status = read_row(t, err);
    while (!status && !(status = sn_csv_next(&t->csv, err)) && t->csv.n)
        status = read_row(t, err);
    if (!status && t->n == 0)
        status = sn_fail(err, SNUG_E_INPUT, "'%.120s' has column names but no rows", raw->path);
    if (!status)
        status = sn_labels_finish(&t->labels, err);
    if (!status && t->label < t->n_columns)
        status = move_labels(raw, &t->labels, err);
    if (status)
        return status;
    raw->type = SN_RAW_F32;
    raw->rank = 1;
    raw->stored[0] = (int64_t)(t->n_columns - (t->label < t->n_columns));
    raw->stored[1] = raw->stored[2] = 1;
    raw->parts[0].fd = t->fd;
    raw->parts[0].n = t->n;
    t->fd = -1;
    return SNUG_OK;
}

snug_status sn_csv_raw(sn_raw **out, const char *path, const snug_data_options *options,
                       snug_error *err)
{
    sn_raw *raw;
    snug_status status = sn_raw_new(&raw, path, err);

    *out = NULL;
    if (status)
        return status;
    table *t = sn_alloc(SN_TAG_FORMAT, sizeof *t);
    if (!t) {
        sn_raw_free(raw);
        return no_memory(err);
    }
    t->fd = t->csv.fd = t->labels.fd = -1;
    status = fill(raw, t, options, err);
    if (t->fd >= 0)
        close(t->fd);
    for (size_t i = 0; i < t->names.n; i++)
        sn_free(t->names.at[i]);
    SN_VEC_FREE(&t->names);
    sn_free(t->row);
    sn_labels_deinit(&t->labels);
    sn_csv_close(&t->csv);
    sn_free(t);
    if (status)
        sn_raw_free(raw);
    else
        *out = raw;
    return status;
}

/* --- a list of images --------------------------------------------------------------------------*/

/* Which columns hold the file and the label. *first_is_data: there is no header. */
static snug_status find_columns(const sn_csv *c, const char *label_column, size_t *file,
                                size_t *label, bool *first_is_data, snug_error *err)
{
    static const char *const file_names[] = {"file", "filename", "image", "path", "name", "id"};
    char columns[120];

    list_columns(columns, sizeof columns, c->cells, c->n);
    if (c->n < 2)
        return sn_fail(err, SNUG_E_INPUT, "'%.100s' has one column: file and label are wanted",
                       c->path);
    *file = c->n;
    for (size_t i = 0; i < SN_LEN(file_names) && *file == c->n; i++)
        for (size_t k = 0; k < c->n && *file == c->n; k++)
            if (!strcasecmp(c->cells[k], file_names[i]))
                *file = k;
    bool header = *file < c->n;
    if (!header)
        *file = 0;
    *label = *file == 0 ? 1 : 0;
    if (label_column) {
        *label = sn_csv_column(c->cells, c->n, label_column);
        if (*label == c->n)
            return sn_fail(err, SNUG_E_INPUT, "no column '%.40s' in '%.60s'; its columns: %s",
                           label_column, c->path, columns);
        int64_t number;
        header = header || !sn_parse_i64(label_column, 1, INT32_MAX, &number);
    }
    *first_is_data = !header;
    return SNUG_OK;
}

typedef struct list {
    sn_csv csv;
    sn_labels labels;
    size_t file, label;
    uint64_t n_unmatched;
} list;

static bool matches(const char *pattern, const char *name)
{
    return !pattern || fnmatch(pattern, name, FNM_PATHNAME | FNM_PERIOD) == 0;
}

/* Both passes over the list: first the labels, then the names with their final classes. */
static snug_status pass(list *l, sn_images *im, uint32_t root, const char *pattern,
                        const char *label_column, bool names, snug_error *err)
{
    bool data = false;
    uint64_t i = 0;
    snug_status status = sn_csv_next(&l->csv, err);

    if (!status && l->csv.n == 0)
        status = sn_fail(err, SNUG_E_INPUT, "'%.120s' is empty", l->csv.path);
    if (!status)
        status = find_columns(&l->csv, label_column, &l->file, &l->label, &data, err);
    if (!status && !data)
        status = sn_csv_next(&l->csv, err);
    for (; !status && l->csv.n; status = status ? status : sn_csv_next(&l->csv, err)) {
        if (l->csv.n <= SN_MAX(l->file, l->label)) {
            status = sn_fail(err, SNUG_E_INPUT, "%.80s: line %" PRIu64 " has %zu cells only",
                             l->csv.path, l->csv.line, l->csv.n);
            break;
        }
        const char *name = l->csv.cells[l->file];
        if (!matches(pattern, name)) {
            l->n_unmatched += names;
        } else if (names) {
            int32_t class_index;
            float y;
            status = sn_labels_at(&l->labels, i++, &class_index, &y, err);
            if (!status)
                status = sn_images_add(im, root, name, class_index, y, err);
        } else {
            status = sn_labels_add(&l->labels, l->csv.cells[l->label], err);
            if (status)
                in_cell(&l->csv, l->label, NULL, status, err);
        }
    }
    return status;
}

static snug_status read_list(list *l, sn_images *im, const char *folder, const char *pattern,
                             const snug_data_options *o, snug_error *err)
{
    uint32_t root;
    snug_status status = sn_images_add_root(im, folder, &root, err);

    if (!status)
        status = sn_labels_init(&l->labels, err);
    if (!status)
        status = sn_csv_open(&l->csv, o->labels_path, err);
    if (!status)
        status = pass(l, im, root, pattern, o->label_column, false, err);
    if (!status && l->labels.n == 0)
        status = sn_fail(err, SNUG_E_INPUT, "'%.100s' names no file%s%.60s", o->labels_path,
                         pattern ? " that matches " : "", pattern ? pattern : "");
    if (!status)
        status = sn_labels_finish(&l->labels, err);
    for (size_t i = 0; i < l->labels.names.n && !status && !l->labels.real; i++)
        if (!SN_VEC_PUSH(SN_TAG_DATA, &im->class_counts, 0) ||
            !SN_VEC_PUSH(SN_TAG_DATA, &im->classes, l->labels.names.at[i]))
            status = no_memory(err);
        else
            l->labels.names.at[i] = NULL;
    if (status)
        return status;
    im->regression = l->labels.real;
    sn_csv_close(&l->csv);
    sn_images_begin(im, SNUG_SUBSET_TRAIN);
    status = sn_csv_open(&l->csv, o->labels_path, err);
    if (!status)
        status = pass(l, im, root, pattern, o->label_column, true, err);
    if (!status && l->n_unmatched &&
        !sn_notes_add(&im->notes, "%" PRIu64 " rows of %s name files that do not match %s",
                      l->n_unmatched, o->labels_path, pattern))
        status = no_memory(err);
    return status;
}

snug_status sn_csv_images(sn_images *images, const char *folder, const char *pattern,
                          const snug_data_options *options, snug_error *err)
{
    list *l = sn_alloc(SN_TAG_FORMAT, sizeof *l);

    if (!l)
        return no_memory(err);
    l->csv.fd = l->labels.fd = -1;
    snug_status status = read_list(l, images, folder, pattern, options, err);
    sn_labels_deinit(&l->labels);
    sn_csv_close(&l->csv);
    sn_free(l);
    return status;
}
