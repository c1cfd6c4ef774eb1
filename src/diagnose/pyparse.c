/* SPDX-License-Identifier: Apache-2.0
 *
 * pyparse.c - statements and expressions from tokens, by recursive descent with precedence
 * climbing.
 *
 * 1. Every loop takes at least one token a turn or ends, so any input ends. 2. Nesting stops at
 * MAX_DEPTH, and the links of chains (a.b.c, a + b + c) at MAX_LINKS a statement: what is deeper
 * makes its statement SN_PY_OTHER, so that recursion over the tree is bounded.
 */
#include <stdio.h>
#include <string.h>

#include "diagnose/py.h"

#define MAX_DEPTH 150
#define MAX_LINKS 4000

typedef struct parser {
    sn_arena *arena;
    const sn_py_token *t;
    unsigned depth, links, n_stmts;
    bool failed; /* no memory */
    bool wrong;  /* this statement is not understood */
} parser;

static sn_py_node *binary(parser *x, int least);
static sn_py_node *expression(parser *x);
static sn_py_node *expression_list(parser *x);
static sn_py_stmt *block(parser *x);

static sn_py_node *node(parser *x, sn_py_kind kind, const sn_py_token *at)
{
    sn_py_node *made = sn_arena_alloc(x->arena, sizeof *made);
    static sn_py_node none;
    if (!made) {
        x->failed = x->wrong = true;
        none = (sn_py_node){SN_PY_NAME, 0, 0, "", NULL, NULL, NULL, NULL, NULL};
        return &none;
    }
    made->kind = kind;
    made->line = at->line;
    made->s = at->s;
    made->n = at->n;
    return made;
}

static bool op(const parser *x, const char *text)
{
    size_t n = strlen(text);
    return x->t->kind == SN_PY_T_OP && x->t->n == n && !memcmp(x->t->s, text, n);
}

static bool word(const parser *x, const char *text)
{
    size_t n = strlen(text);
    return x->t->kind == SN_PY_T_NAME && x->t->n == n && !memcmp(x->t->s, text, n);
}

static bool take_op(parser *x, const char *text)
{
    if (!op(x, text))
        return false;
    x->t++;
    return true;
}

static bool take_word(parser *x, const char *text)
{
    if (!word(x, text))
        return false;
    x->t++;
    return true;
}

static void expect(parser *x, const char *text)
{
    if (!take_op(x, text))
        x->wrong = true;
}

static bool line_ends(const parser *x)
{
    return x->t->kind == SN_PY_T_NEWLINE || x->t->kind == SN_PY_T_END ||
           x->t->kind == SN_PY_T_DEDENT || x->t->kind == SN_PY_T_INDENT;
}

/* [async] for target in iter [if cond]... repeated; element already read. */
static sn_py_node *comprehension(parser *x, sn_py_node *element, const sn_py_token *bracket)
{
    sn_py_node *made = node(x, SN_PY_COMP, bracket), **tail = &made->list;
    made->a = element;
    while (!x->wrong && (word(x, "for") || word(x, "async"))) {
        take_word(x, "async");
        sn_py_node *clause = node(x, SN_PY_FOR, x->t);
        if (!take_word(x, "for"))
            x->wrong = true;
        clause->a = NULL;
        sn_py_node *target = node(x, SN_PY_TUPLE, x->t), **names = &target->list;
        while (!x->wrong && !word(x, "in") && !line_ends(x)) {
            if (take_op(x, ",") || take_op(x, "(") || take_op(x, ")") || take_op(x, "*"))
                continue;
            *names = node(x, SN_PY_NAME, x->t++);
            names = &(*names)->next;
        }
        clause->a = target->list && !target->list->next ? target->list : target;
        if (!take_word(x, "in"))
            x->wrong = true;
        clause->b = binary(x, 1); /* an "if" after it is the clause's own */
        while (!x->wrong && take_word(x, "if"))
            binary(x, 1);
        *tail = clause;
        tail = &clause->next;
    }
    return made;
}

/* Elements up to the closing bracket: a tuple, list, dict or set, or a comprehension. */
static sn_py_node *bracketed(parser *x)
{
    const sn_py_token *open = x->t++;
    const char *close = *open->s == '(' ? ")" : *open->s == '[' ? "]" : "}";
    sn_py_kind kind = *open->s == '(' ? SN_PY_TUPLE : *open->s == '[' ? SN_PY_LIST : SN_PY_DICT;
    sn_py_node *made = node(x, kind, open), **tail = &made->list;
    bool comma = false;
    while (!x->wrong && !op(x, close) && !line_ends(x)) {
        take_op(x, "**");
        sn_py_node *item = expression(x);
        *tail = item;
        tail = &item->next;
        if (kind == SN_PY_DICT && take_op(x, ":")) {
            item = expression(x);
            *tail = item;
            tail = &item->next;
        }
        if (word(x, "for") || word(x, "async")) {
            sn_py_node *made_comp = comprehension(x, item, open);
            expect(x, close);
            return made_comp;
        }
        if (!take_op(x, ","))
            break;
        comma = true;
    }
    expect(x, close);
    if (kind == SN_PY_TUPLE && made->list && !made->list->next && !comma)
        return made->list; /* parentheses only */
    return made;
}

static void arguments(parser *x, sn_py_node *call)
{
    sn_py_node **tail = &call->list;
    while (!x->wrong && !op(x, ")") && !line_ends(x)) {
        sn_py_node *item;
        if (op(x, "**")) {
            item = node(x, SN_PY_KW, x->t++);
            item->n = 0;
            item->a = expression(x);
        } else if (x->t->kind == SN_PY_T_NAME && x->t[1].kind == SN_PY_T_OP && x->t[1].n == 1 &&
                   *x->t[1].s == '=') {
            item = node(x, SN_PY_KW, x->t);
            x->t += 2;
            item->a = expression(x);
        } else {
            const sn_py_token *at = x->t;
            item = expression(x);
            if (word(x, "for") || word(x, "async"))
                item = comprehension(x, item, at);
        }
        *tail = item;
        tail = &item->next;
        if (!take_op(x, ","))
            break;
    }
    expect(x, ")");
}

static sn_py_node *slice_item(parser *x)
{
    const sn_py_token *at = x->t;
    sn_py_node *parts[3] = {NULL, NULL, NULL};
    size_t n = 0;
    bool slice = false;
    while (!x->wrong && !op(x, "]") && !op(x, ",") && !line_ends(x)) {
        if (take_op(x, ":")) {
            slice = true;
            if (++n > 2)
                x->wrong = true;
            continue;
        }
        if (n > 2 || parts[n]) {
            x->wrong = true;
            break;
        }
        parts[n] = expression(x);
    }
    if (!slice)
        return parts[0] ? parts[0] : node(x, SN_PY_TUPLE, at);
    sn_py_node *made = node(x, SN_PY_SLICE, at);
    made->a = parts[0];
    made->b = parts[1];
    made->c = parts[2];
    return made;
}

static sn_py_node *subscript(parser *x, sn_py_node *value)
{
    sn_py_node *made = node(x, SN_PY_SUB, x->t++);
    made->line = value->line;
    made->a = value;
    made->b = slice_item(x);
    if (op(x, ",")) {
        sn_py_node *tuple = node(x, SN_PY_TUPLE, x->t), **tail = &tuple->list;
        *tail = made->b;
        tail = &made->b->next;
        while (!x->wrong && take_op(x, ",") && !op(x, "]")) {
            *tail = slice_item(x);
            tail = &(*tail)->next;
        }
        made->b = tuple;
    }
    expect(x, "]");
    return made;
}

static sn_py_node *lambda(parser *x)
{
    sn_py_node *made = node(x, SN_PY_LAMBDA, x->t++), **tail = &made->list;
    while (!x->wrong && !op(x, ":") && !line_ends(x)) {
        if (take_op(x, ",") || take_op(x, "*") || take_op(x, "**") || take_op(x, "/"))
            continue;
        if (x->t->kind != SN_PY_T_NAME) {
            x->wrong = true;
            break;
        }
        *tail = node(x, SN_PY_NAME, x->t++);
        tail = &(*tail)->next;
        if (take_op(x, "="))
            expression(x);
    }
    expect(x, ":");
    made->a = expression(x);
    return made;
}

static sn_py_node *atom(parser *x)
{
    const sn_py_token *at = x->t;
    if (op(x, "(") || op(x, "[") || op(x, "{"))
        return bracketed(x);
    if (at->kind == SN_PY_T_NAME && !word(x, "in") && !word(x, "for") && !word(x, "if"))
        return node(x, SN_PY_NAME, x->t++);
    if (at->kind == SN_PY_T_NUMBER)
        return node(x, SN_PY_NUMBER, x->t++);
    if (at->kind == SN_PY_T_STRING) {
        sn_py_node *made = node(x, SN_PY_STRING, at);
        while (x->t->kind == SN_PY_T_STRING)
            x->t++;
        return made;
    }
    if (op(x, "..."))
        return node(x, SN_PY_NAME, x->t++);
    x->wrong = true;
    return node(x, SN_PY_TUPLE, at);
}

/* One more link of a chain in this statement. */
static void link_chain(parser *x)
{
    if (++x->links > MAX_LINKS) /* 2 */
        x->wrong = true;
}

static sn_py_node *primary(parser *x)
{
    if (word(x, "await") && !line_ends(x))
        x->t++;
    sn_py_node *made = atom(x);
    while (!x->wrong) {
        const sn_py_token *at = x->t;
        link_chain(x);
        if (take_op(x, ".")) {
            if (x->t->kind != SN_PY_T_NAME) {
                x->wrong = true;
                break;
            }
            sn_py_node *attr = node(x, SN_PY_ATTR, x->t++);
            attr->a = made;
            made = attr;
        } else if (op(x, "(")) {
            sn_py_node *call = node(x, SN_PY_CALL, at);
            /* A call's line is that of its own name: the method in a chain over several lines. */
            call->line = made->line;
            call->a = made;
            x->t++;
            arguments(x, call);
            made = call;
        } else if (op(x, "[")) {
            made = subscript(x, made);
        } else {
            break;
        }
    }
    return made;
}

static int precedence(const parser *x, bool *compare)
{
    static const struct {
        const char *text;
        int level;
    } table[] = {{"|", 5},  {"^", 6},  {"&", 7},   {"<<", 8}, {">>", 8}, {"+", 9},  {"-", 9},
                 {"*", 10}, {"/", 10}, {"//", 10}, {"%", 10}, {"@", 10}, {"**", 12}};
    static const char *const compares[] = {"<", ">", "==", ">=", "<=", "!="};
    *compare = false;
    if (x->t->kind == SN_PY_T_OP) {
        for (size_t i = 0; i < SN_LEN(table); i++)
            if (op(x, table[i].text))
                return table[i].level;
        for (size_t i = 0; i < SN_LEN(compares); i++)
            if (op(x, compares[i])) {
                *compare = true;
                return 4;
            }
        return 0;
    }
    *compare = true;
    if (word(x, "or"))
        return 1;
    if (word(x, "and"))
        return 2;
    if (word(x, "in") || word(x, "is"))
        return 4;
    if (word(x, "not") && x->t[1].kind == SN_PY_T_NAME && x->t[1].n == 2 &&
        !memcmp(x->t[1].s, "in", 2))
        return 4;
    return 0;
}

static sn_py_node *binary(parser *x, int least)
{
    const sn_py_token *at = x->t;
    sn_py_node *left;
    if (++x->depth > MAX_DEPTH) { /* 2 */
        x->wrong = true;
        x->depth--;
        return node(x, SN_PY_TUPLE, at);
    }
    if (take_word(x, "not")) {
        left = node(x, SN_PY_COMPARE, at);
        left->b = binary(x, 3);
    } else if (op(x, "-") || op(x, "+") || op(x, "~")) {
        left = node(x, SN_PY_UNARY, x->t++);
        left->a = binary(x, 11);
    } else {
        left = primary(x);
    }
    bool compare;
    int level;
    while (!x->wrong && (level = precedence(x, &compare)) && level >= least) {
        sn_py_node *made = node(x, compare ? SN_PY_COMPARE : SN_PY_BINARY, x->t);
        if (take_word(x, "not")) {
            x->t++;
        } else {
            bool is = word(x, "is");
            x->t++;
            if (is)
                take_word(x, "not");
        }
        link_chain(x);
        made->a = left;
        made->b = binary(x, level == 12 ? 11 : level + 1);
        left = made;
    }
    x->depth--;
    return left;
}

static sn_py_node *expression(parser *x)
{
    const sn_py_token *at = x->t;
    sn_py_node *made;
    if (++x->depth > MAX_DEPTH) { /* 2 */
        x->wrong = true;
        x->depth--;
        return node(x, SN_PY_TUPLE, at);
    }
    if (op(x, "*") || op(x, "**")) {
        made = node(x, SN_PY_STAR, x->t++);
        made->a = expression(x);
    } else if (word(x, "lambda")) {
        made = lambda(x);
    } else if (word(x, "yield")) {
        made = node(x, SN_PY_YIELD, x->t++);
        take_word(x, "from");
        if (!line_ends(x) && !op(x, ")"))
            made->a = expression_list(x);
    } else {
        made = binary(x, 1);
        if (!x->wrong && word(x, "if")) {
            sn_py_node *ternary = node(x, SN_PY_IF, x->t++);
            ternary->a = made;
            ternary->b = binary(x, 1);
            if (take_word(x, "else")) {
                ternary->c = expression(x);
                made = ternary;
            } else {
                x->wrong = true;
            }
        }
        if (!x->wrong && op(x, ":=")) {
            sn_py_node *named = node(x, SN_PY_NAMED, x->t++);
            named->a = made;
            named->b = expression(x);
            made = named;
        }
    }
    x->depth--;
    return made;
}

static sn_py_node *expression_list(parser *x)
{
    const sn_py_token *at = x->t;
    sn_py_node *first = expression(x);
    if (!op(x, ","))
        return first;
    sn_py_node *tuple = node(x, SN_PY_TUPLE, at), **tail = &first->next;
    tuple->list = first;
    while (!x->wrong && take_op(x, ",") && !line_ends(x) && !op(x, "=") && !op(x, ")")) {
        *tail = expression(x);
        tail = &(*tail)->next;
    }
    return tuple;
}

/* The targets of a for loop: names, attributes, tuples of them, up to "in". */
static sn_py_node *loop_targets(parser *x)
{
    sn_py_node *tuple = node(x, SN_PY_TUPLE, x->t), **tail = &tuple->list;
    while (!x->wrong && !word(x, "in") && !line_ends(x)) {
        if (take_op(x, ",") || take_op(x, "(") || take_op(x, ")") || take_op(x, "*") ||
            take_op(x, "[") || take_op(x, "]"))
            continue;
        *tail = primary(x);
        tail = &(*tail)->next;
    }
    return tuple->list && !tuple->list->next ? tuple->list : tuple;
}

static void parameters(parser *x, sn_py_stmt *stmt)
{
    sn_py_node **tail = &stmt->params;
    expect(x, "(");
    while (!x->wrong && !op(x, ")") && !line_ends(x)) {
        if (take_op(x, ",") || take_op(x, "*") || take_op(x, "**") || take_op(x, "/"))
            continue;
        if (x->t->kind != SN_PY_T_NAME) {
            x->wrong = true;
            return;
        }
        *tail = node(x, SN_PY_NAME, x->t++);
        if (take_op(x, ":"))
            expression(x);
        if (take_op(x, "="))
            (*tail)->a = expression(x);
        tail = &(*tail)->next;
    }
    expect(x, ")");
    if (take_op(x, "->"))
        expression(x);
}

static sn_py_stmt *statement(parser *x, sn_py_stmt_kind kind)
{
    static sn_py_stmt none;
    sn_py_stmt *made = sn_arena_alloc(x->arena, sizeof *made);
    if (!made) {
        x->failed = x->wrong = true;
        none = (sn_py_stmt){.kind = SN_PY_OTHER, .s = ""};
        return &none;
    }
    made->kind = kind;
    made->line = x->t->line;
    made->s = x->t->s;
    made->n = x->t->n;
    x->n_stmts++;
    return made;
}

static void skip_line(parser *x)
{
    while (!line_ends(x))
        x->t++;
}

static void import_names(parser *x, sn_py_stmt *made)
{
    sn_py_node **tail = &made->targets;
    take_op(x, "(");
    while (!line_ends(x) && !op(x, ")") && !op(x, ";")) {
        if (x->t->kind != SN_PY_T_NAME) {
            x->t++;
            continue;
        }
        sn_py_node *name = node(x, SN_PY_NAME, x->t++);
        while (op(x, ".") && x->t[1].kind == SN_PY_T_NAME) {
            name->n = (uint32_t)(x->t[1].s + x->t[1].n - name->s);
            x->t += 2;
        }
        if (take_word(x, "as") && x->t->kind == SN_PY_T_NAME)
            name->a = node(x, SN_PY_NAME, x->t++);
        *tail = name;
        tail = &name->next;
    }
    take_op(x, ")");
}

static sn_py_stmt *import_stmt(parser *x)
{
    sn_py_stmt *made = statement(x, SN_PY_IMPORT);
    made->from_import = word(x, "from");
    x->t++;
    made->s = x->t->s;
    made->n = 0;
    if (made->from_import) {
        while (!line_ends(x) && !word(x, "import")) {
            made->n = (uint32_t)(x->t->s + x->t->n - made->s);
            x->t++;
        }
        take_word(x, "import");
    }
    import_names(x, made);
    return made;
}

static sn_py_stmt *simple(parser *x)
{
    if (word(x, "import") || word(x, "from"))
        return import_stmt(x);
    if (word(x, "return")) {
        sn_py_stmt *made = statement(x, SN_PY_RETURN);
        x->t++;
        if (!line_ends(x) && !op(x, ";"))
            made->value = expression_list(x);
        return made;
    }
    if (word(x, "pass") || word(x, "break") || word(x, "continue") || word(x, "global") ||
        word(x, "nonlocal") || word(x, "del") || word(x, "raise") || word(x, "assert")) {
        sn_py_stmt *made = statement(x, SN_PY_OTHER);
        while (!line_ends(x) && !op(x, ";"))
            x->t++;
        return made;
    }
    sn_py_stmt *made = statement(x, SN_PY_EXPR);
    sn_py_node *first = expression_list(x);
    if (!x->wrong && take_op(x, ":")) /* an annotation */
        expression(x);
    if (x->t->kind == SN_PY_T_OP && x->t->n >= 2 && x->t->s[x->t->n - 1] == '=' && !op(x, "==") &&
        !op(x, "<=") && !op(x, ">=") && !op(x, "!=") && !op(x, ":=")) {
        made->kind = SN_PY_AUG;
        made->s = x->t->s;
        made->n = x->t->n;
        x->t++;
        made->targets = first;
        made->value = expression_list(x);
        return made;
    }
    sn_py_node **tail = &made->targets;
    while (!x->wrong && take_op(x, "=")) {
        made->kind = SN_PY_ASSIGN;
        *tail = first;
        tail = &first->next;
        first = expression_list(x);
    }
    made->value = first;
    return made;
}

/* The suite after a colon: a block, or simple statements on the same line. */
static sn_py_stmt *suite(parser *x)
{
    if (x->t->kind == SN_PY_T_NEWLINE) {
        x->t++;
        if (x->t->kind == SN_PY_T_INDENT) {
            x->t++;
            return block(x);
        }
        return NULL;
    }
    sn_py_stmt *head = NULL, **tail = &head;
    while (!x->wrong && !line_ends(x)) {
        *tail = simple(x);
        tail = &(*tail)->next;
        if (!take_op(x, ";"))
            break;
    }
    return head;
}

static void with_items(parser *x, sn_py_stmt *made)
{
    sn_py_node *tuple = node(x, SN_PY_TUPLE, x->t), **tail = &tuple->list;
    bool parens = false;
    if (op(x, "(")) { /* with (a as b, c as d): or an expression in parentheses */
        const sn_py_token *p = x->t + 1;
        for (unsigned depth = 1; depth && p->kind != SN_PY_T_NEWLINE && p->kind != SN_PY_T_END; p++)
            if (p->kind == SN_PY_T_OP && p->n == 1)
                depth += strchr("([{", *p->s) ? 1U : strchr(")]}", *p->s) ? -1U : 0U;
        parens = p->kind == SN_PY_T_OP && *p->s == ':';
        x->t += parens;
    }
    while (!x->wrong && !op(x, ":") && !op(x, ")") && !line_ends(x)) {
        sn_py_node *item = expression(x);
        *tail = item;
        tail = &item->next;
        if (take_word(x, "as"))
            item->c = primary(x);
        if (!take_op(x, ","))
            break;
    }
    if (parens)
        expect(x, ")");
    made->value = tuple;
}

static void header(parser *x, sn_py_stmt *made)
{
    if (made->kind == SN_PY_LOOP) {
        bool is_for = word(x, "for");
        x->t++;
        if (is_for) {
            made->targets = loop_targets(x);
            if (!take_word(x, "in"))
                x->wrong = true;
        }
        made->value = expression_list(x);
    } else if (made->kind == SN_PY_WITH) {
        x->t++;
        with_items(x, made);
    } else if (made->kind == SN_PY_DEF || made->kind == SN_PY_CLASS) {
        x->t++;
        made->s = x->t->s;
        made->n = x->t->n;
        x->t++;
        if (made->kind == SN_PY_DEF) {
            parameters(x, made);
        } else if (op(x, "(")) {
            sn_py_node *call = node(x, SN_PY_CALL, x->t++);
            arguments(x, call);
            made->value = call;
        }
    } else if (!op(x, ":") && !x->wrong) { /* if, elif, except ..., match, case */
        x->t++;
        while (!line_ends(x) && !op(x, ":")) {
            if (made->value || word(x, "as")) {
                x->t++;
                continue;
            }
            made->value = expression_list(x);
            if (x->wrong) { /* a pattern or an old except clause: the body still counts */
                x->wrong = false;
                while (!line_ends(x) && !op(x, ":"))
                    x->t++;
            }
        }
    }
    expect(x, ":");
}

static sn_py_stmt *compound(parser *x, sn_py_stmt_kind kind)
{
    sn_py_stmt *made = statement(x, kind);
    header(x, made);
    if (x->wrong)
        return made;
    made->body = suite(x);
    return made;
}

static bool soft_keyword(const parser *x, const char *text)
{
    if (!word(x, text) || x->t[1].kind == SN_PY_T_OP)
        return false;
    const sn_py_token *p = x->t;
    while (p[1].kind != SN_PY_T_NEWLINE && p[1].kind != SN_PY_T_END)
        p++;
    return p->kind == SN_PY_T_OP && *p->s == ':';
}

static sn_py_stmt *any_statement(parser *x)
{
    static const struct {
        const char *text;
        sn_py_stmt_kind kind;
    } table[] = {{"for", SN_PY_LOOP},      {"while", SN_PY_LOOP},     {"with", SN_PY_WITH},
                 {"def", SN_PY_DEF},       {"class", SN_PY_CLASS},    {"if", SN_PY_BRANCH},
                 {"elif", SN_PY_BRANCH},   {"else", SN_PY_BRANCH},    {"try", SN_PY_BRANCH},
                 {"except", SN_PY_BRANCH}, {"finally", SN_PY_BRANCH}, {"match", SN_PY_BRANCH},
                 {"case", SN_PY_BRANCH}};
    if (word(x, "async"))
        x->t++;
    for (size_t i = 0; i < SN_LEN(table); i++) {
        bool soft = !strcmp(table[i].text, "match") || !strcmp(table[i].text, "case");
        if (soft ? soft_keyword(x, table[i].text) : word(x, table[i].text))
            return compound(x, table[i].kind);
    }
    return simple(x);
}

/* Decorators wait until their function or class. */
static sn_py_node *decorators(parser *x)
{
    sn_py_node *head = NULL, **tail = &head;
    while (take_op(x, "@")) {
        *tail = expression(x);
        if (x->wrong) {
            x->wrong = false;
            skip_line(x);
        }
        tail = &(*tail)->next;
        if (x->t->kind == SN_PY_T_NEWLINE)
            x->t++;
    }
    return head;
}

/* Statements up to the DEDENT that ends the block (taken) or the end. */
static sn_py_stmt *block(parser *x)
{
    sn_py_stmt *head = NULL, **tail = &head;
    if (++x->depth > MAX_DEPTH)
        x->wrong = true;
    while (!x->failed && x->t->kind != SN_PY_T_END) {
        if (x->t->kind == SN_PY_T_DEDENT) {
            x->t++;
            break;
        }
        if (x->t->kind == SN_PY_T_NEWLINE || op(x, ";")) {
            x->t++;
            continue;
        }
        unsigned depth = x->depth;
        sn_py_stmt *made;
        x->links = 0;
        if (x->t->kind == SN_PY_T_INDENT) { /* a block without a header that we understood */
            made = statement(x, SN_PY_OTHER);
            x->t++;
            made->body = block(x);
        } else {
            sn_py_node *marks = decorators(x);
            const sn_py_token *start = x->t;
            made = any_statement(x);
            made->decorators = marks;
            if (x->wrong || (!line_ends(x) && !op(x, ";") && !made->body)) {
                made->kind = SN_PY_OTHER;
                made->value = made->targets = NULL;
                skip_line(x);
                if (x->t == start && x->t->kind == SN_PY_T_NEWLINE)
                    x->t++; /* 1 */
            }
        }
        x->depth = depth;
        x->wrong = x->failed;
        *tail = made;
        tail = &made->next;
    }
    x->depth--;
    return head;
}

snug_status sn_py_read(sn_py_module *out, sn_arena *arena, const char *text, size_t n,
                       snug_error *err)
{
    size_t n_tokens;
    parser x = {.arena = arena};
    *out = (sn_py_module){NULL, 0, 0};
    x.t = sn_py_tokens(arena, text, n, &n_tokens);
    if (!x.t)
        return sn_fail(err, SNUG_E_MEMORY, "no memory to read %zu bytes of Python", n);
    out->n_lines = x.t[n_tokens - 1].line;
    sn_py_stmt **tail = &out->body;
    while (!x.failed && x.t->kind != SN_PY_T_END) {
        *tail = block(&x); /* a stray DEDENT ends a block early; go on */
        while (*tail)
            tail = &(*tail)->next;
    }
    out->n_stmts = x.n_stmts;
    if (x.failed)
        return sn_fail(err, SNUG_E_MEMORY, "no memory to read %zu bytes of Python", n);
    return SNUG_OK;
}

bool sn_py_is(const sn_py_node *at, const char *text)
{
    return at && at->n == strlen(text) && !memcmp(at->s, text, at->n);
}

bool sn_py_stmt_is(const sn_py_stmt *stmt, const char *text)
{
    return stmt->n == strlen(text) && !memcmp(stmt->s, text, stmt->n);
}

void sn_py_path(char *out, size_t n, const sn_py_node *at)
{
    out[0] = 0;
    if (!at)
        return;
    if (at->kind == SN_PY_ATTR) {
        sn_py_path(out, n, at->a);
        size_t used = strlen(out);
        if (used + 1 < n)
            snprintf(out + used, n - used, ".%.*s", (int)at->n, at->s);
    } else if (at->kind == SN_PY_NAME) {
        snprintf(out, n, "%.*s", (int)at->n, at->s);
    } else if (at->kind == SN_PY_CALL || at->kind == SN_PY_SUB) {
        sn_py_path(out, n, at->a);
    }
}

const sn_py_node *sn_py_arg(const sn_py_node *call, size_t index, const char *keyword)
{
    size_t i = 0;
    for (const sn_py_node *p = call->list; p; p = p->next) {
        if (p->kind == SN_PY_KW) {
            if (keyword && sn_py_is(p, keyword))
                return p->a;
        } else if (i++ == index) {
            return p;
        }
    }
    return NULL;
}
