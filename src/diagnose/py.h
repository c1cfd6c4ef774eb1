/* SPDX-License-Identifier: Apache-2.0
 *
 * py.h - reads Python source into statements and expressions without running it. It is lenient:
 * a statement that it does not understand becomes SN_PY_OTHER and reading goes on with the next
 * line, so that a notebook's magic, a half-written cell or a newer syntax costs one line only.
 *
 *     sn_py_module module;
 *     sn_py_read(&module, &arena, text, n, err);       // SNUG_E_MEMORY only
 *     for (const sn_py_stmt *s = module.body; s; s = s->next) ...
 *
 * Ownership: everything lives in the caller's arena; names point into text, which must outlive it.
 * Threads: reentrant.
 */
#ifndef SN_DIAGNOSE_PY_H
#define SN_DIAGNOSE_PY_H

#include "base/arena.h"

typedef enum sn_py_token_kind {
    SN_PY_T_END,
    SN_PY_T_NEWLINE,
    SN_PY_T_INDENT,
    SN_PY_T_DEDENT,
    SN_PY_T_NAME,
    SN_PY_T_NUMBER,
    SN_PY_T_STRING,
    SN_PY_T_OP
} sn_py_token_kind;

typedef struct sn_py_token {
    sn_py_token_kind kind;
    uint32_t line; /* from 1 */
    uint32_t n;
    const char *s;
} sn_py_token;

typedef enum sn_py_kind {
    SN_PY_NAME,    /* s */
    SN_PY_NUMBER,  /* s */
    SN_PY_STRING,  /* s: the body of the first piece, without quotes */
    SN_PY_ATTR,    /* a.s */
    SN_PY_CALL,    /* a(list...), SN_PY_KW among them */
    SN_PY_KW,      /* s=a inside a call; s empty: **a */
    SN_PY_SUB,     /* a[b] */
    SN_PY_SLICE,   /* a:b:c, each may be NULL */
    SN_PY_TUPLE,   /* list */
    SN_PY_LIST,    /* list */
    SN_PY_DICT,    /* list: keys and values in turn; also sets */
    SN_PY_COMP,    /* a for list (SN_PY_FOR); s[0] is the bracket */
    SN_PY_FOR,     /* a in b, inside a comprehension */
    SN_PY_BINARY,  /* a s b */
    SN_PY_COMPARE, /* a s b; also and, or, not (a NULL) */
    SN_PY_UNARY,   /* s a */
    SN_PY_LAMBDA,  /* list: the parameters (names), a: the body */
    SN_PY_IF,      /* a if b else c */
    SN_PY_STAR,    /* *a */
    SN_PY_YIELD,   /* a may be NULL; await is no node of its own */
    SN_PY_NAMED    /* a := b */
} sn_py_kind;

typedef struct sn_py_node {
    sn_py_kind kind;
    uint32_t line, n;
    const char *s;
    struct sn_py_node *a, *b, *c, *list, *next;
} sn_py_node;

typedef enum sn_py_stmt_kind {
    SN_PY_EXPR,   /* value */
    SN_PY_ASSIGN, /* targets (list by next) = value */
    SN_PY_AUG,    /* targets s= value */
    SN_PY_RETURN, /* value may be NULL */
    SN_PY_LOOP,   /* for targets in value: body; while value: body (targets NULL) */
    SN_PY_BRANCH, /* if, elif, else, try, except, finally, match, case: body */
    SN_PY_WITH,   /* value: a tuple of the context expressions; body */
    SN_PY_DEF,    /* s: name, params, decorators, body */
    SN_PY_CLASS,  /* s: name, value: a tuple of the bases, decorators, body */
    SN_PY_IMPORT, /* s: the module, targets: the names (SN_PY_NAME, a: the local name if renamed) */
    SN_PY_OTHER   /* not understood, or pass, break, ...; may have a body */
} sn_py_stmt_kind;

typedef struct sn_py_stmt {
    sn_py_stmt_kind kind;
    uint32_t line, n;
    bool from_import; /* from s import targets */
    const char *s;
    sn_py_node *targets, *value, *params, *decorators;
    struct sn_py_stmt *body, *next;
} sn_py_stmt;

typedef struct sn_py_module {
    sn_py_stmt *body;
    size_t n_lines, n_stmts;
} sn_py_module;

/* Tokens of text, ended by SN_PY_T_END, in the arena; NULL when there is no memory. */
sn_py_token *sn_py_tokens(sn_arena *arena, const char *text, size_t n, size_t *n_tokens);
/* SNUG_OK or SNUG_E_MEMORY; text that is no Python gives statements of SN_PY_OTHER. */
snug_status sn_py_read(sn_py_module *out, sn_arena *arena, const char *text, size_t n,
                       snug_error *err);

bool sn_py_is(const sn_py_node *node, const char *text);      /* node's own s equals text */
bool sn_py_stmt_is(const sn_py_stmt *stmt, const char *text); /* stmt's s equals text */
/* "tf.data.Dataset" of names and attributes, calls and subscripts left out: the dotted path of an
 * expression; "" for anything else. Always terminates, cut to n. */
void sn_py_path(char *out, size_t n, const sn_py_node *node);
/* A call's positional argument `index` (stars count), or its keyword argument; NULL if absent. */
const sn_py_node *sn_py_arg(const sn_py_node *call, size_t index, const char *keyword);

#endif
