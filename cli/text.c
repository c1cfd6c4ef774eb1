/* SPDX-License-Identifier: Apache-2.0
 *
 * text.c - small text helpers of the command.
 */
#include <string.h>

#include "cli.h"

#define WORD_MAX 63

static size_t distance(const char *a, const char *b)
{
    size_t na = strlen(a), nb = strlen(b), row[WORD_MAX + 1];
    if (na > WORD_MAX || nb > WORD_MAX)
        return WORD_MAX + 1;
    for (size_t j = 0; j <= nb; j++)
        row[j] = j;
    for (size_t i = 1; i <= na; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= nb; j++) {
            size_t above = row[j];
            size_t best = diagonal + (a[i - 1] != b[j - 1]);
            if (above + 1 < best)
                best = above + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            row[j] = best;
            diagonal = above;
        }
    }
    return row[nb];
}

const char *sn_cli_nearest(const char *text, const char *const *candidates, size_t n)
{
    size_t limit = strlen(text) / 3, best = WORD_MAX;
    const char *found = NULL;
    if (limit < 2)
        limit = 2;
    for (size_t i = 0; i < n; i++) {
        size_t d = distance(text, candidates[i]);
        if (d <= limit && d < best && d < strlen(candidates[i])) {
            best = d;
            found = candidates[i];
        }
    }
    return found;
}

static void put_safe(FILE *out, unsigned char byte)
{
    if (byte < 32 || byte == 127)
        fprintf(out, "\\x%02X", byte);
    else
        fputc(byte, out);
}

void sn_cli_print_safe(FILE *out, const char *text)
{
    for (; *text; text++)
        if (*text == '\n' || *text == '\t')
            fputc(*text, out);
        else
            put_safe(out, (unsigned char)*text);
}

/* Columns of n bytes of UTF-8: continuation bytes take none. */
static size_t columns(const char *text, size_t n)
{
    size_t c = 0;
    for (size_t i = 0; i < n; i++)
        c += ((unsigned char)text[i] & 0xC0) != 0x80;
    return c;
}

void sn_cli_wrap(FILE *out, const char *first, const char *text, size_t width)
{
    size_t indent = columns(first, strlen(first)), at = indent;
    bool fresh = true;
    fputs(first, out);
    while (*text) {
        size_t n = strcspn(text, " \n"), c = columns(text, n);
        if (!fresh && at + 1 + c > width) {
            fprintf(out, "\n%*s", (int)indent, "");
            at = indent;
            fresh = true;
        }
        if (!fresh && n) {
            fputc(' ', out);
            at++;
        }
        for (size_t i = 0; i < n; i++)
            put_safe(out, (unsigned char)text[i]);
        at += c;
        fresh = fresh && !n;
        text += n;
        if (*text == '\n') {
            fprintf(out, "\n%*s", (int)indent, "");
            at = indent;
            fresh = true;
        }
        text += *text != 0;
    }
    fputc('\n', out);
}
