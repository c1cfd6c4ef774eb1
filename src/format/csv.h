/* SPDX-License-Identifier: Apache-2.0
 *
 * csv.h - comma-separated tables: cells row by row in bounded memory (RFC 4180: quotes, doubled
 * quotes, CRLF; a byte order mark is passed over), and a table of numbers as a data set: features
 * in a temporary file of floats, the label column by name.
 *
 *     sn_csv c;  sn_csv_open(&c, "iris.csv", err);
 *     while (!sn_csv_next(&c, err) && c.n) use(c.cells[0]);
 *     sn_csv_close(&c);
 *
 * Ownership: cells are valid until the next row.  Threads: one at a time.
 */
#ifndef SN_FORMAT_CSV_H
#define SN_FORMAT_CSV_H

#include "base/buf.h"
#include "base/vec.h"
#include "data/images.h"
#include "data/raw.h"

typedef struct sn_csv {
    int fd;
    char *path;
    char *buffer; /* of the file */
    size_t have, at;
    char *row; /* cells' texts, each with its NUL */
    size_t row_used;
    SN_VEC(size_t) starts;
    SN_VEC(char *) texts;
    char **cells;  /* [n] of the present row */
    size_t n;      /* 0: the end */
    uint64_t line; /* where the present row begins, from 1 */
    uint64_t next_line;
    bool at_end;
} sn_csv;

snug_status sn_csv_open(sn_csv *out, const char *path, snug_error *err);
/* The next row that is not empty; n = 0 at the end. SNUG_E_INPUT with err->pos the line. */
snug_status sn_csv_next(sn_csv *csv, snug_error *err);
void sn_csv_close(sn_csv *csv);

/* A table of numbers; options->label_column names the label. */
snug_status sn_csv_raw(sn_raw **out, const char *path, const snug_data_options *options,
                       snug_error *err);
/* A list `file,label` (options->labels_path) of images below `folder`; pattern: only files that
 * match it (fnmatch), NULL all. */
snug_status sn_csv_images(sn_images *images, const char *folder, const char *pattern,
                          const snug_data_options *options, snug_error *err);
/* Index of the column of that name (or of that number, from 1), n_columns if there is none. */
size_t sn_csv_column(char *const *names, size_t n_columns, const char *name);

#endif
