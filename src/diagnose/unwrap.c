/* SPDX-License-Identifier: Apache-2.0
 *
 * Lines that a terminal or a chat box broke are joined again. Two ways of breaking are told apart:
 * hard (a terminal: every broken line has exactly the width, words are cut) and soft (a chat box:
 * a break in place of a space, where the next word would not have fitted).
 *
 * 1. The width is the longest line's; nothing is joined if that is no width of a screen.
 * 2. A line that looks like the beginning of a record is never joined to the one before.
 */
#include "diagnose/state.h"

#include <string.h>

#include "diagnose/scan.h"

enum { PIECE_MAX = 6000 };

typedef struct piece {
    const char *text;
    size_t n, columns;
    uint64_t number;
} piece;

static size_t count_columns(const char *text, size_t n)
{
    size_t columns = 0;
    for (size_t i = 0; i < n; i++)
        columns += ((unsigned char)text[i] & 0xc0) != 0x80;
    return columns;
}

static bool digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool begins_record(const char *s)
{
    static const char *const starts[] = {
        "Traceback",
        "File \"",
        "Killed",
        "Aborted",
        "Bus error",
        "Segmentation",
        "terminate",
        "INFO",
        "WARNING",
        "WARN",
        "ERROR",
        "Epoch ",
        "---->",
        "-->",
        "$ ",
        ">>>",
        "[[",
        "During handling",
        "The above exception",
        "Node: ",
        "Limit:",
        "InUse:",
        "MaxInUse:",
        "NumAllocs:",
        "MaxAllocSize:",
        "Stats:",
        "slurmstepd",
        "zsh:",
        "bash:",
        "sh:",
        "[i]",
        "name: ",
        "pciBusID",
        "totalMemory",
        "CUDA Error",
        "darknet:",
    };
    if (s[0] == ' ' && s[1] == ' ')
        return true; /* indented */
    while (*s == ' ')
        s++;
    if (*s == '|' || *s == '+' || *s == '{' || !*s)
        return true;
    if (digit(s[0]) && digit(s[1]) && digit(s[2]) && digit(s[3]) && (s[4] == '-' || s[4] == '/'))
        return true; /* a date */
    if (digit(s[0]) && digit(s[1]) && s[2] == ':' && digit(s[3]))
        return true; /* a time */
    if (strchr("IWEF", s[0]) && digit(s[1]) && digit(s[2]) && digit(s[3]) && digit(s[4]) &&
        s[5] == ' ')
        return true; /* glog */
    if (s[0] == '[' && (digit(s[1]) || (s[1] == ' ' && strchr(" 0123456789", s[2]))))
        return s[1] == ' ' || strchr(s, ':') || strchr(s, '.'); /* [12:34:56] or [  123.456] */
    for (size_t i = 0; i < SN_LEN(starts); i++)
        if (sn_str_starts(s, starts[i]))
            return true;
    size_t word = sn_scan_word(s); /* "ResourceExhaustedError:" */
    return word > 6 && s[word - 1] == ':' &&
           (!strncmp(s + word - 6, "Error:", 6) || !strncmp(s + word - 7, "Warning:", 8));
}

static bool is_screen_width(size_t w)
{
    static const size_t widths[] = {60,  64,  70,  72,  75,  76,  78,  79,  80,  90,  96,
                                    100, 110, 120, 128, 130, 132, 140, 150, 160, 180, 200};
    for (size_t i = 0; i < SN_LEN(widths); i++)
        if (widths[i] == w)
            return true;
    return false;
}

/* Does the break look like one in place of a space? Behind a punctuation mark, or before a word
 * that these messages are full of; a cut inside a word or number seldom looks so. */
static bool breaks_like_chat(const char *left, size_t n, const char *right)
{
    static const char *const words[] = {
        "a",      "allocate", "allocated", "already", "an",       "and",        "array",
        "by",     "bytes",    "capacity",  "data",    "device",   "fit",        "for",
        "found",  "free",     "free)",     "from",    "GiB",      "GB",         "has",
        "in",     "is",       "large",     "memory",  "MiB",      "MB",         "not",
        "of",     "on",       "or",        "PyTorch", "PyTorch)", "reserved",   "shape",
        "size",   "tensor",   "that",      "the",     "this",     "to",         "total",
        "trying", "type",     "with",      "in-use",  "process",  "allocating", "allocated;",
        "free;",  "cached)",  "use.",      "code",    "file",     "No",         "killed",
    };
    if (!n || left[n - 1] == ' ')
        return false;
    if (strchr(";,.:)]", left[n - 1]) && right[0] != ' ')
        return true;
    size_t len = strcspn(right, " ");
    for (size_t i = 0; i < SN_LEN(words); i++)
        if (strlen(words[i]) == len && !strncmp(right, words[i], len))
            return true;
    return false;
}

static size_t first_word(const char *text)
{
    return strcspn(text, " ");
}

/* Would the next line's first word have stood on this one if nothing had been broken? */
static bool breaks_here(const piece *at, const piece *next, size_t width)
{
    return at->columns * 10 >= width * 6 && next->n && next->text[0] != ' ' &&
           at->columns + 1 + first_word(next->text) > width && !begins_record(next->text);
}

typedef enum wrap_kind { WRAP_NONE, WRAP_HARD, WRAP_SOFT } wrap_kind;

static wrap_kind find_wrap(const piece *pieces, size_t n, size_t *width)
{
    size_t w = 0, at_width = 0, soft = 0, chat = 0;
    for (size_t i = 0; i < n; i++)
        w = SN_MAX(w, pieces[i].columns);
    *width = w;
    if (w < 60 || w > 200 || n < 2)
        return WRAP_NONE;
    for (size_t i = 0; i + 1 < n; i++) {
        at_width += pieces[i].columns == w && !begins_record(pieces[i + 1].text);
        bool breaks = breaks_here(&pieces[i], &pieces[i + 1], w);
        soft += breaks;
        chat += breaks && pieces[i].columns == w &&
                breaks_like_chat(pieces[i].text, pieces[i].n, pieces[i + 1].text);
    }
    if (at_width && at_width * 2 >= soft && chat * 2 < at_width + 1 && is_screen_width(w))
        return WRAP_HARD;
    return soft && w <= 132 ? WRAP_SOFT : WRAP_NONE;
}

static void match_joined(snug_diagnosis *d, const piece *pieces, size_t n)
{
    size_t width;
    wrap_kind kind = find_wrap(pieces, n, &width);
    char *joined = d->reader.scratch;
    for (size_t i = 0; i < n;) {
        size_t len = SN_MIN(pieces[i].n, (size_t)SN_LINE_MAX - 1);
        memcpy(joined, pieces[i].text, len);
        sn_line line = {joined, 0, pieces[i].number};
        for (i++; i < n; i++) {
            bool hard = kind == WRAP_HARD && pieces[i - 1].columns == width &&
                        !begins_record(pieces[i].text);
            bool soft = kind == WRAP_SOFT && breaks_here(&pieces[i - 1], &pieces[i], width);
            if ((!hard && !soft) || len + pieces[i].n + 2 > SN_LINE_MAX)
                break;
            if (soft && len && joined[len - 1] != ' ')
                joined[len++] = ' ';
            memcpy(joined + len, pieces[i].text, pieces[i].n);
            len += pieces[i].n;
        }
        joined[len] = '\0';
        line.n = len;
        if (len)
            sn_line_match(d, &line);
    }
}

void sn_unwrap_match(snug_diagnosis *d, const char *text, size_t n)
{
    SN_VEC(piece) pieces = {0};
    char *clean = sn_alloc(SN_TAG_DIAGNOSE, n + SN_LINE_MAX);
    size_t used = 0, from = 0;
    uint64_t number = 1;
    bool ok = clean != NULL;
    while (ok && from < n) {
        size_t end = from;
        while (end < n && text[end] != '\n' && text[end] != '\r' && text[end] != '\b' &&
               end - from < PIECE_MAX)
            end++;
        if (end > from || (end < n && text[end] == '\n')) {
            size_t len = sn_line_clean(clean + used, text + from, end - from);
            piece it = {clean + used, len, count_columns(clean + used, len), number};
            bool keep = len || !pieces.n || pieces.at[pieces.n - 1].number != number;
            if (keep) /* "\r\n" makes no second, empty piece */
                ok = SN_VEC_PUSH(SN_TAG_DIAGNOSE, &pieces, it);
            used += len + 1;
        }
        if (end < n && (text[end] == '\n' || text[end] == '\r' || text[end] == '\b')) {
            number += text[end] == '\n';
            end++;
        }
        from = end;
    }
    d->reader.line = number;
    if (ok)
        match_joined(d, pieces.at, pieces.n);
    else
        d->failed = true;
    SN_VEC_FREE(&pieces);
    sn_free(clean);
}
