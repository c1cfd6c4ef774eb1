/* SPDX-License-Identifier: Apache-2.0
 *
 * err.c - the statuses' names and texts, and the functions that fill a snug_error.
 */
#include "base/base.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* An error is one line: what a user's file put into it must not break the terminal or the line.
 * A text that was cut says so. */
static void one_line(char *text, size_t size, bool was_cut)
{
    for (char *c = text; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = '?';
    if (was_cut)
        memcpy(text + size - 4, "...", 4);
}

/* Formats aside first: an argument may point into err itself. */
static snug_status fill(snug_error *err, snug_status code, int errno_value, const char *format,
                        va_list args)
{
    if (!err)
        return code;
    char what[sizeof err->what];
    int n = vsnprintf(what, sizeof what, format, args);
    size_t used = n < 0 ? 0 : SN_MIN((size_t)n, sizeof what - 1);
    what[used] = '\0';
    bool was_cut = n >= (int)sizeof what;
    if (errno_value && !was_cut) {
        char reason[96];
        const char *text = strerror_r(errno_value, reason, sizeof reason);
        n = snprintf(what + used, sizeof what - used, ": %s", text);
        was_cut = n >= (int)(sizeof what - used);
    }
    one_line(what, sizeof what, was_cut);
    memset(err, 0, sizeof *err);
    err->code = code;
    memcpy(err->what, what, sizeof what);
    return code;
}

snug_status sn_fail(snug_error *err, snug_status code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fill(err, code, 0, format, args);
    va_end(args);
    return code;
}

snug_status sn_fail_errno(snug_error *err, snug_status code, int errno_value, const char *format,
                          ...)
{
    va_list args;
    va_start(args, format);
    fill(err, code, errno_value, format, args);
    va_end(args);
    return code;
}

snug_status sn_where(snug_error *err, const char *format, ...)
{
    if (!err)
        return SNUG_E_INTERNAL;
    char place[sizeof err->where];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(place, sizeof place, format, args);
    va_end(args);
    size_t used = n < 0 ? 0 : SN_MIN((size_t)n, sizeof place - 1);
    place[used] = '\0';
    bool was_cut = n >= (int)sizeof place;
    if (err->where[0] && !was_cut) {
        n = snprintf(place + used, sizeof place - used, "%s%s", used ? ": " : "", err->where);
        was_cut = n >= (int)(sizeof place - used);
    }
    one_line(place, sizeof place, was_cut);
    memcpy(err->where, place, sizeof place);
    return err->code;
}

static const struct {
    const char *name, *text;
    int exit_code;
} statuses[] = {
#define ROW(name, exit_code, meaning) [name] = {#name, meaning, exit_code},
    SNUG_STATUS_LIST(ROW)
#undef ROW
};

static bool known(snug_status status)
{
    return (int)status >= 0 && (size_t)status < SN_LEN(statuses);
}

const char *snug_status_name(snug_status status)
{
    return known(status) ? statuses[status].name : "?";
}

const char *snug_status_text(snug_status status)
{
    return known(status) ? statuses[status].text : "unknown status";
}

int snug_status_exit_code(snug_status status)
{
    return known(status) ? statuses[status].exit_code : 1;
}
