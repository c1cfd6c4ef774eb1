/* SPDX-License-Identifier: Apache-2.0
 *
 * pylex.c - Python's tokens: strings of every prefix, comments, line joining by brackets and
 * backslashes, indentation.
 *
 * 1. Every token's text lies inside the input. 2. INDENT and DEDENT balance at the end.
 */
#include <assert.h>
#include <string.h>

#include "base/vec.h"
#include "diagnose/py.h"

#define MAX_INDENT 100

typedef struct lexer {
    sn_arena *arena;
    const char *p, *end;
    uint32_t line;
    unsigned depth; /* of open brackets */
    unsigned indents[MAX_INDENT], n_indents;
    sn_py_token *at;
    size_t n, cap;
    bool failed;
} lexer;

static void push(lexer *x, sn_py_token_kind kind, const char *s, size_t n, uint32_t line)
{
    if (x->n == x->cap) {
        size_t cap = x->cap ? x->cap * 2 : 256;
        sn_py_token *at = sn_arena_alloc_array(x->arena, cap, sizeof *at);
        if (!at) {
            x->failed = true;
            return;
        }
        if (x->n)
            memcpy(at, x->at, x->n * sizeof *at);
        x->at = at;
        x->cap = cap;
    }
    assert(s <= x->end && n <= (size_t)(x->end - s)); /* 1 */
    x->at[x->n++] = (sn_py_token){kind, line, (uint32_t)n, s};
}

static bool name_start(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (unsigned char)c >= 128;
}

static bool digit(char c)
{
    return c >= '0' && c <= '9';
}

/* A string whose opening quote is at *p; the token keeps the body only. An unclosed one-line string
 * ends at the newline, an unclosed triple one at the end of the text. */
static void string(lexer *x)
{
    char quote = *x->p;
    bool triple = x->end - x->p >= 3 && x->p[1] == quote && x->p[2] == quote;
    uint32_t line = x->line;
    x->p += triple ? 3 : 1;
    const char *start = x->p;
    while (x->p < x->end) {
        if (*x->p == '\\' && x->end - x->p > 1) {
            x->line += x->p[1] == '\n';
            x->p += 2;
            continue;
        }
        if (*x->p == '\n') {
            if (!triple)
                break;
            x->line++;
        } else if (*x->p == quote) {
            if (!triple || (x->end - x->p >= 3 && x->p[1] == quote && x->p[2] == quote))
                break;
        }
        x->p++;
    }
    push(x, SN_PY_T_STRING, start, (size_t)(x->p - start), line);
    if (x->p < x->end && *x->p == quote)
        x->p += triple ? 3 : 1;
}

static bool string_prefix(const char *s, size_t n)
{
    if (n > 2)
        return false;
    for (size_t i = 0; i < n; i++)
        if (!strchr("rRbBuUfFtT", s[i]))
            return false;
    return true;
}

static void word(lexer *x)
{
    const char *start = x->p;
    while (x->p < x->end && (name_start(*x->p) || digit(*x->p)))
        x->p++;
    size_t n = (size_t)(x->p - start);
    if (x->p < x->end && (*x->p == '"' || *x->p == '\'') && string_prefix(start, n))
        string(x);
    else
        push(x, SN_PY_T_NAME, start, n, x->line);
}

static void number(lexer *x)
{
    const char *start = x->p;
    while (x->p < x->end) {
        bool exponent = (*x->p == '+' || *x->p == '-') && (x->p[-1] == 'e' || x->p[-1] == 'E') &&
                        !(x->p - start > 1 && (start[1] == 'x' || start[1] == 'X'));
        if (!digit(*x->p) && !name_start(*x->p) && *x->p != '.' && !(x->p > start && exponent))
            break;
        x->p++;
    }
    push(x, SN_PY_T_NUMBER, start, (size_t)(x->p - start), x->line);
}

static void operator_token(lexer *x)
{
    static const char *const longs[] = {"**=", "//=", ">>=", "<<=", "...", "**", "//", ">>",
                                        "<<",  "<=",  ">=",  "==",  "!=",  "->", "+=", "-=",
                                        "*=",  "/=",  "%=",  "&=",  "|=",  "^=", "@=", ":="};
    size_t left = (size_t)(x->end - x->p), n = 1;
    for (size_t i = 0; i < SN_LEN(longs); i++) {
        size_t k = strlen(longs[i]);
        if (k <= left && !memcmp(x->p, longs[i], k)) {
            n = k;
            break;
        }
    }
    if (n == 1 && strchr("([{", *x->p))
        x->depth++;
    if (n == 1 && strchr(")]}", *x->p) && x->depth)
        x->depth--;
    push(x, SN_PY_T_OP, x->p, n, x->line);
    x->p += n;
}

/* Whether a line that starts a statement begins at p: used to recover from an unclosed bracket. */
static bool statement_starts(const char *p, const char *end)
{
    static const char *const words[] = {"def ", "class ", "import ", "from ", "for ", "with "};
    for (size_t i = 0; i < SN_LEN(words); i++) {
        size_t k = strlen(words[i]);
        if ((size_t)(end - p) > k && !memcmp(p, words[i], k)) {
            const char *newline = memchr(p, '\n', (size_t)(end - p));
            const char *stop = newline ? newline : end;
            while (stop > p && (stop[-1] == ' ' || stop[-1] == '\r'))
                stop--;
            /* "for x in y" inside brackets is a comprehension; a header ends with a colon. */
            return words[i][0] == 'i' || (stop > p && stop[-1] == ':');
        }
    }
    return false;
}

/* The indentation of the line at p; moves p to its first other byte. */
static unsigned measure(lexer *x)
{
    unsigned column = 0;
    while (x->p < x->end && (*x->p == ' ' || *x->p == '\t' || *x->p == '\f')) {
        column = *x->p == '\t' ? (column / 8 + 1) * 8 : *x->p == '\f' ? 0 : column + 1;
        x->p++;
    }
    return column;
}

static void indentation(lexer *x)
{
    unsigned column = measure(x);
    if (x->p >= x->end || *x->p == '\n' || *x->p == '#' || *x->p == '\r')
        return;
    if (column > x->indents[x->n_indents - 1] && x->n_indents < MAX_INDENT) {
        x->indents[x->n_indents++] = column;
        push(x, SN_PY_T_INDENT, x->p, 0, x->line);
    }
    while (x->n_indents > 1 && column < x->indents[x->n_indents - 1]) {
        x->n_indents--;
        push(x, SN_PY_T_DEDENT, x->p, 0, x->line);
    }
}

static void newline(lexer *x)
{
    x->p++;
    if (x->depth && statement_starts(x->p, x->end)) {
        x->depth = 0;
    }
    if (!x->depth) {
        if (x->n && x->at[x->n - 1].kind != SN_PY_T_NEWLINE &&
            x->at[x->n - 1].kind != SN_PY_T_INDENT && x->at[x->n - 1].kind != SN_PY_T_DEDENT)
            push(x, SN_PY_T_NEWLINE, x->p, 0, x->line);
        x->line++;
        indentation(x);
    } else {
        x->line++;
    }
}

static void step(lexer *x)
{
    char c = *x->p;
    if (c == '\n') {
        newline(x);
    } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == 0) {
        x->p++;
    } else if (c == '#') {
        while (x->p < x->end && *x->p != '\n')
            x->p++;
    } else if (c == '\\') {
        x->p++;
        while (x->p < x->end && *x->p == '\r')
            x->p++;
        if (x->p < x->end && *x->p == '\n') {
            x->p++;
            x->line++;
        }
    } else if (c == '"' || c == '\'') {
        string(x);
    } else if (name_start(c)) {
        word(x);
    } else if (digit(c) || (c == '.' && x->end - x->p > 1 && digit(x->p[1]))) {
        number(x);
    } else {
        operator_token(x);
    }
}

sn_py_token *sn_py_tokens(sn_arena *arena, const char *text, size_t n, size_t *n_tokens)
{
    lexer x = {.arena = arena, .p = text, .end = text + n, .line = 1, .n_indents = 1};
    if (n >= 3 && !memcmp(text, "\xEF\xBB\xBF", 3))
        x.p += 3;
    indentation(&x);
    while (x.p < x.end && !x.failed)
        step(&x);
    push(&x, SN_PY_T_NEWLINE, x.end, 0, x.line);
    for (; x.n_indents > 1 && !x.failed; x.n_indents--) /* 2 */
        push(&x, SN_PY_T_DEDENT, x.end, 0, x.line);
    push(&x, SN_PY_T_END, x.end, 0, x.line);
    *n_tokens = x.n;
    return x.failed ? NULL : x.at;
}
