/* SPDX-License-Identifier: Apache-2.0
 *
 * history.c - history.csv.
 */
#include "train/history.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/vec.h"

static const char header[] = "epoch,loss,accuracy,val_loss,val_accuracy,seconds,learning_rate\n";

/* NaN (not there) is an empty field. */
static void put(sn_buf *buf, double value, const char *format)
{
    sn_buf_putc(buf, ',');
    if (!isnan(value)) {
        sn_buf_printf(buf, "%.*g", format[0] == 's' ? 6 : 9, value);
    }
}

snug_status sn_history_write(const char *path, const snug_epoch *rows, size_t n, snug_error *err)
{
    sn_buf buf;
    sn_buf_init(&buf, SN_TAG_TRAIN);
    sn_buf_puts(&buf, header);
    for (size_t i = 0; i < n; i++) {
        sn_buf_printf(&buf, "%" PRId64, rows[i].epoch);
        put(&buf, rows[i].loss, "n");
        put(&buf, rows[i].accuracy, "n");
        put(&buf, rows[i].val_loss, "n");
        put(&buf, rows[i].val_accuracy, "n");
        put(&buf, rows[i].seconds, "s");
        put(&buf, (double)rows[i].learning_rate, "s");
        sn_buf_putc(&buf, '\n');
    }
    snug_status s = buf.failed ? sn_fail(err, SNUG_E_MEMORY, "no memory for the history")
                               : sn_io_write_file(path, buf.data, buf.len, err);
    sn_buf_deinit(&buf);
    return s;
}

/* One field: a number, or nothing. */
static bool take(const char **at, double *value)
{
    if (**at != ',') {
        return false;
    }
    char text[40];
    size_t n = strcspn(++*at, ",\n");
    if (n >= sizeof text) {
        return false;
    }
    memcpy(text, *at, n);
    text[n] = 0;
    *at += n;
    *value = NAN;
    return n == 0 || sn_parse_f64(text, -INFINITY, INFINITY, value);
}

snug_status sn_history_read(const char *path, int64_t most, snug_epoch **rows, size_t *n,
                            snug_error *err)
{
    *rows = NULL;
    *n = 0;
    if (!sn_io_is_file(path)) {
        return SNUG_OK;
    }
    char *text;
    size_t length, line = 1;
    snug_status s = sn_io_read_all(&text, &length, path, 64 * SN_MIB, SN_TAG_TRAIN, err);
    if (s) {
        return s;
    }
    SN_VEC(snug_epoch) list = {0};
    const char *at = strchr(text, '\n');
    while (!s && at && at[1]) {
        snug_epoch e = {0};
        double rate;
        int used = 0;
        line++;
        at++;
        if (sscanf(at, "%" SCNd64 "%n", &e.epoch, &used) != 1) {
            used = 0;
        }
        at += used;
        if (!used || !take(&at, &e.loss) || !take(&at, &e.accuracy) || !take(&at, &e.val_loss) ||
            !take(&at, &e.val_accuracy) || !take(&at, &e.seconds) || !take(&at, &rate)) {
            s = sn_fail(err, SNUG_E_INPUT, "%s: line %zu is no row of a history", path, line);
            break;
        }
        e.learning_rate = (float)rate;
        if (e.epoch <= most && !SN_VEC_PUSH(SN_TAG_TRAIN, &list, e)) {
            s = sn_fail(err, SNUG_E_MEMORY, "no memory for the history");
        }
        at = strchr(at, '\n');
    }
    sn_free(text);
    if (s) {
        SN_VEC_FREE(&list);
        return s;
    }
    *rows = list.at;
    *n = list.n;
    return SNUG_OK;
}
