/* SPDX-License-Identifier: Apache-2.0
 *
 * source.c - walks the statements of a Python source: scopes, loops, no_grad contexts, functions.
 *
 * 1. The module's statements are walked first, then each function's body, so a body starts with no
 * loop around it. 2. N_WALKS walks; only the last one reports. 3. What a function gives is known
 * from the walk before.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diagnose/source_scan.h"

#define N_WALKS 4

static void walk_block(sn_scan *scan, const sn_py_stmt *stmt);

/* ---- before the walks: who gets .backward() ---- */

/* Calls see(scan, node) for node and everything below it. */
static void visit(sn_scan *scan, const sn_py_node *node, void (*see)(sn_scan *, const sn_py_node *))
{
    if (!node)
        return;
    see(scan, node);
    visit(scan, node->a, see);
    visit(scan, node->b, see);
    visit(scan, node->c, see);
    for (const sn_py_node *p = node->list; p; p = p->next)
        visit(scan, p, see);
}

static void visit_block(sn_scan *scan, const sn_py_stmt *stmt,
                        void (*see)(sn_scan *, const sn_py_node *),
                        void (*statement)(sn_scan *, const sn_py_stmt *))
{
    for (; stmt; stmt = stmt->next) {
        if (statement)
            statement(scan, stmt);
        if (see)
            visit(scan, stmt->value, see);
        visit_block(scan, stmt->body, see, statement);
    }
}

static void add(sn_scan *scan, sn_map *map, const char *path)
{
    if (path[0] && !sn_map_set_str(map, path, 1))
        scan->failed = true;
}

/* Every name below node, called functions left out. */
static void add_names(sn_scan *scan, const sn_py_node *node, sn_map *map, unsigned depth)
{
    char path[128];
    if (!node || depth > 60)
        return;
    if (node->kind == SN_PY_NAME || node->kind == SN_PY_ATTR) {
        sn_py_path(path, sizeof path, node);
        add(scan, map, path);
        if (node->kind == SN_PY_ATTR)
            add_names(scan, node->a, map, depth + 1);
        return;
    }
    if (node->kind == SN_PY_CALL) {
        if (node->a && node->a->kind == SN_PY_ATTR)
            add_names(scan, node->a->a, map, depth + 1);
    } else {
        add_names(scan, node->a, map, depth + 1);
    }
    add_names(scan, node->b, map, depth + 1);
    add_names(scan, node->c, map, depth + 1);
    for (const sn_py_node *p = node->list; p; p = p->next)
        add_names(scan, p, map, depth + 1);
}

static void see_backward(sn_scan *scan, const sn_py_node *node)
{
    char path[128];
    if (node->kind != SN_PY_CALL || !node->a)
        return;
    if (!sn_py_is(node->a, "backward") && !sn_py_is(node->a, "manual_backward"))
        return;
    const sn_py_node *from = node->a->kind == SN_PY_ATTR ? node->a->a : NULL;
    if (from && (from->kind == SN_PY_NAME || from->kind == SN_PY_ATTR)) {
        sn_py_path(path, sizeof path, from);
        if (!node->list || node->list->kind == SN_PY_KW)
            add(scan, &scan->backwarded, path);
    } else if (from) {
        add_names(scan, from, &scan->flows, 0);
        if (from->kind == SN_PY_CALL && from->list)
            add_names(scan, from->list, &scan->backwarded, 0);
    }
    if (node->list && node->list->kind != SN_PY_KW) /* accelerator.backward(loss) */
        add_names(scan, node->list, &scan->backwarded, 0);
}

static void flow(sn_scan *scan, const sn_py_stmt *stmt)
{
    char path[128];
    if (stmt->kind == SN_PY_LOOP && stmt->targets) { /* for p, r in zip(probs, rewards) */
        const sn_py_node *t = stmt->targets;
        for (t = t->kind == SN_PY_TUPLE ? t->list : t; t; t = t->next) {
            sn_py_path(path, sizeof path, t);
            if (sn_map_find_str(&scan->flows, path))
                add_names(scan, stmt->value, &scan->flows, 0);
        }
        return;
    }
    if ((stmt->kind != SN_PY_ASSIGN && stmt->kind != SN_PY_AUG) || !stmt->targets)
        return;
    sn_py_path(path, sizeof path, stmt->targets);
    if (sn_map_find_str(&scan->backwarded, path) || sn_map_find_str(&scan->flows, path))
        add_names(scan, stmt->value, &scan->flows, 0);
}

/* ---- small questions ---- */

static bool names_mention(const sn_py_node *node, const char *list, unsigned depth)
{
    char path[128];
    if (!node || depth > 40)
        return false;
    if (node->kind == SN_PY_NAME || node->kind == SN_PY_ATTR || node->kind == SN_PY_STRING) {
        if (node->kind == SN_PY_STRING)
            snprintf(path, sizeof path, "%.*s", (int)SN_MIN(node->n, 100), node->s);
        else
            sn_py_path(path, sizeof path, node);
        return sn_src_mentions(path, list);
    }
    if (names_mention(node->a, list, depth + 1) || names_mention(node->b, list, depth + 1))
        return true;
    for (const sn_py_node *p = node->list; p; p = p->next)
        if (names_mention(p, list, depth + 1))
            return true;
    return false;
}

static bool yields_in(const sn_py_node *node, unsigned depth)
{
    if (!node || depth > 60)
        return false;
    if (node->kind == SN_PY_YIELD)
        return true;
    if (node->kind == SN_PY_LAMBDA)
        return false;
    return yields_in(node->a, depth + 1) || yields_in(node->b, depth + 1) ||
           (node->list && yields_in(node->list, depth + 1));
}

static bool block_yields(const sn_py_stmt *stmt)
{
    for (; stmt; stmt = stmt->next)
        if (stmt->kind != SN_PY_DEF && stmt->kind != SN_PY_CLASS &&
            (yields_in(stmt->value, 0) || block_yields(stmt->body)))
            return true;
    return false;
}

static bool mentions_test(const char *text)
{
    return sn_src_mentions(text, "val|test|eval|dev_|holdout|infer|predict") &&
           !sn_src_mentions(text, "train|value|interval|retrieval|devic|latest|greatest|medieval");
}

static bool iter_is_test(const sn_py_node *node, unsigned depth)
{
    char path[128];
    if (!node || depth > 40)
        return false;
    if (node->kind == SN_PY_NAME || node->kind == SN_PY_ATTR) {
        sn_py_path(path, sizeof path, node);
        return mentions_test(path);
    }
    if (node->kind == SN_PY_SUB && node->b && node->b->kind == SN_PY_STRING) {
        snprintf(path, sizeof path, "%.*s", (int)SN_MIN(node->b->n, 100), node->b->s);
        return mentions_test(path) || iter_is_test(node->a, depth + 1);
    }
    for (const sn_py_node *p = node->list; p; p = p->next)
        if (iter_is_test(p, depth + 1))
            return true;
    return node->kind == SN_PY_CALL && node->a && node->a->kind == SN_PY_ATTR &&
           iter_is_test(node->a, depth + 1);
}

/* ---- statements ---- */

static sn_func *function_of(sn_scan *scan, const sn_py_stmt *def)
{
    sn_func **tail = &scan->funcs;
    for (; *tail; tail = &(*tail)->next)
        if ((*tail)->def == def)
            return *tail;
    sn_func *f = sn_arena_alloc(scan->arena, sizeof *f);
    if (!f) {
        scan->failed = true;
        return NULL;
    }
    f->def = def;
    f->class = scan->class;
    f->outer = scan->func;
    f->id = ++scan->n_funcs;
    f->yields = block_yields(def->body);
    f->result = f->next_result = sn_src_value(SN_V_UNKNOWN, def->line);
    for (size_t i = 0; i < SN_SRC_PARAMS; i++)
        f->params[i] = sn_src_value(SN_V_UNKNOWN, def->line);
    for (const sn_py_node *p = def->decorators; p; p = p->next) {
        char path[128];
        sn_py_path(path, sizeof path, p);
        f->no_grad = f->no_grad || sn_src_mentions(path, "no_grad|inference_mode");
        if (sn_str_ends(path, "cache")) { /* lru_cache forgets unless maxsize=None */
            const sn_py_node *size = p->kind == SN_PY_CALL ? sn_py_arg(p, 0, "maxsize") : NULL;
            f->cached = sn_str_ends(path, "lru_cache") ? size && sn_py_is(size, "None") : true;
        }
    }
    return *tail = f;
}

static void define(sn_scan *scan, const sn_py_stmt *stmt)
{
    sn_func *f = function_of(scan, stmt);
    char name[128];
    if (!f)
        return;
    sn_value v = sn_src_value(SN_V_FUNC, stmt->line);
    v.func = f;
    snprintf(name, sizeof name, "%.*s", (int)SN_MIN(stmt->n, 100), stmt->s);
    if (scan->class && !scan->func) {
        snprintf(name, sizeof name, "self.%.*s", (int)SN_MIN(stmt->n, 100), stmt->s);
        if (sn_py_stmt_is(stmt, "__getitem__"))
            scan->class->has_getitem = true;
    }
    sn_src_bind(scan, name, v);
}

static void class_stmt(sn_scan *scan, const sn_py_stmt *stmt)
{
    sn_class **tail = &scan->classes;
    char name[128];
    while (*tail && (*tail)->def != stmt)
        tail = &(*tail)->next;
    if (!*tail) {
        *tail = sn_arena_alloc(scan->arena, sizeof **tail);
        if (!*tail) {
            scan->failed = true;
            return;
        }
        (*tail)->def = stmt;
        bool model = names_mention(stmt->value, "module|model|network", 0);
        (*tail)->keras_model =
            model && scan->tensorflow && !names_mention(stmt->value, "nn.module", 0);
        (*tail)->torch_model = model && scan->torch && !(*tail)->keras_model;
    }
    sn_value v = sn_src_value(SN_V_CLASS, stmt->line);
    v.class = *tail;
    snprintf(name, sizeof name, "%.*s", (int)SN_MIN(stmt->n, 100), stmt->s);
    sn_src_bind(scan, name, v);
    sn_class *saved = scan->class;
    sn_func *func = scan->func;
    scan->class = *tail;
    scan->func = NULL;
    walk_block(scan, stmt->body);
    scan->class = saved;
    scan->func = func;
}

static void push_loop(sn_scan *scan, sn_loop *loop, const sn_py_stmt *stmt)
{
    char name[64] = "";
    memset(loop, 0, sizeof *loop);
    loop->line = stmt->line;
    if (stmt->targets) {
        sn_value over = sn_src_eval(scan, stmt->value);
        const sn_py_node *iter = stmt->value;
        bool range = iter->kind == SN_PY_CALL && sn_py_is(iter->a, "range");
        loop->trains = over.kind == SN_V_LOADER || names_mention(iter, "loader", 0);
        loop->bounded =
            over.bounded || (over.kind == SN_V_RANGE && over.count >= 0 && over.count <= 256);
        if ((!range || (iter->list && !iter->list->next)) &&
            names_mention(iter, "batch|sample_", 0))
            loop->bounded = true;
        if (scan->func)
            snprintf(name, sizeof name, "%.*s", (int)SN_MIN(scan->func->def->n, 60),
                     scan->func->def->s);
        bool epochs = range || names_mention(iter, "epoch|range", 0);
        loop->evaluates =
            !epochs && (iter_is_test(iter, 0) || mentions_test(name) || scan->evaluating);
        sn_src_bind_loop(scan, stmt->targets, iter);
    } else {
        sn_src_eval(scan, stmt->value);
    }
}

static void loop_stmt(sn_scan *scan, const sn_py_stmt *stmt)
{
    if (scan->n_loops == SN_SRC_LOOPS) {
        walk_block(scan, stmt->body);
        return;
    }
    sn_loop loop;
    push_loop(scan, &loop, stmt);
    scan->loops[scan->n_loops++] = loop;
    walk_block(scan, stmt->body);
    loop = scan->loops[scan->n_loops - 1];
    sn_src_check_loop(scan, &loop);
    scan->n_loops--;
}

static void with_stmt(sn_scan *scan, const sn_py_stmt *stmt)
{
    unsigned no_grad = scan->no_grad;
    for (const sn_py_node *p = stmt->value ? stmt->value->list : NULL; p; p = p->next) {
        char path[128];
        sn_py_path(path, sizeof path, p);
        if (sn_src_mentions(path, "no_grad|inference_mode") ||
            (sn_src_mentions(path, "set_grad_enabled") && p->list && !sn_py_is(p->list, "True"))) {
            scan->no_grad++;
            continue;
        }
        sn_value v = sn_src_eval(scan, p);
        if (p->c && p->kind != SN_PY_IF && p->kind != SN_PY_SLICE)
            sn_src_bind_target(scan, p->c, v);
    }
    walk_block(scan, stmt->body);
    scan->no_grad = no_grad;
}

static bool uses(const sn_py_node *node, const char *path, unsigned depth)
{
    char own[128];
    if (!node || depth > 20)
        return false;
    sn_py_path(own, sizeof own, node);
    if ((node->kind == SN_PY_NAME || node->kind == SN_PY_ATTR) && sn_str_eq(own, path))
        return true;
    for (const sn_py_node *p = node->list; p; p = p->next)
        if (uses(p, path, depth + 1))
            return true;
    return node->kind == SN_PY_BINARY &&
           (uses(node->a, path, depth + 1) || uses(node->b, path, depth + 1));
}

/* total = total + loss; X = np.concatenate([X, image]): growth by assignment. */
static void growth(sn_scan *scan, const sn_py_stmt *stmt, const char *path, const sn_value *v)
{
    const sn_py_node *value = stmt->value;
    if (value && value->kind == SN_PY_IF) /* X = image if X is None else concatenate([X, image]) */
        value = uses(value->a, path, 0) ? value->a : value->c;
    if (!scan->n_loops || !path[0] || !value || !uses(value, path, 0))
        return;
    bool call = value->kind == SN_PY_CALL && value->a;
    bool joins = call && (sn_py_is(value->a, "append") || sn_py_is(value->a, "concatenate") ||
                          sn_py_is(value->a, "vstack") || sn_py_is(value->a, "cat") ||
                          sn_py_is(value->a, "concat") || sn_py_is(value->a, "hstack"));
    if (value->kind == SN_PY_BINARY && *value->s == '+') {
        sn_value other = sn_src_eval(scan, uses(value->a, path, 0) ? value->b : value->a);
        if (other.kind == SN_V_LOSS || other.kind == SN_V_OUT)
            sn_src_check_kept(scan, path, &other, stmt->line, true);
    } else if (joins) {
        sn_value grown = *v;
        for (const sn_py_node *p = value->list; p; p = p->next) {
            for (const sn_py_node *q = p->list ? p->list : p; q; q = p->list ? q->next : NULL) {
                sn_value e = sn_src_eval(scan, q->kind == SN_PY_KW ? q->a : q);
                if (e.kind == SN_V_IMAGE || e.kind == SN_V_LOSS || e.kind == SN_V_OUT)
                    grown = e;
            }
        }
        if (grown.kind == SN_V_IMAGE && !sn_src_bounded(scan)) {
            sn_src_report(scan, SN_TRAP_ACCUMULATE, 0, stmt->line, 0,
                          "%.40s grows by one sample at each turn, copied whole each time (%s).",
                          path, sn_src_size_text(scan, &grown));
        } else if (grown.kind == SN_V_LOSS || grown.kind == SN_V_OUT) {
            sn_src_check_kept(scan, path, &grown, stmt->line, false);
        }
    }
}

static void assign(sn_scan *scan, const sn_py_stmt *stmt)
{
    sn_value v = sn_src_eval(scan, stmt->value);
    for (const sn_py_node *t = stmt->targets; t; t = t->next) {
        char path[128];
        sn_py_path(path, sizeof path, t);
        if (t->kind == SN_PY_SUB) {
            bool self = sn_str_starts(path, "self.");
            if (v.kind == SN_V_LOSS || v.kind == SN_V_OUT)
                sn_src_check_kept(scan, path, &v, t->line, false);
            if (v.kind == SN_V_IMAGE && self && scan->func && scan->class && !scan->n_loops &&
                sn_py_stmt_is(scan->func->def, "__getitem__"))
                sn_src_report(scan, SN_TRAP_CACHE_ITEMS, 0, t->line, 0,
                              "%.40s keeps every sample that was ever read, once in each worker "
                              "process (%s).",
                              path, sn_src_size_text(scan, &v));
            continue;
        }
        bool pairs = (t->kind == SN_PY_TUPLE || t->kind == SN_PY_LIST) && stmt->value &&
                     stmt->value->kind == SN_PY_TUPLE;
        if (pairs) {
            const sn_py_node *from = stmt->value->list;
            for (const sn_py_node *p = t->list; p; p = p->next) {
                sn_src_bind_target(scan, p, sn_src_eval(scan, from));
                from = from ? from->next : NULL;
            }
            continue;
        }
        growth(scan, stmt, path, &v);
        /* a branch that leaves a name unknown does not undo what another branch said */
        if (v.kind == SN_V_UNKNOWN && (t->kind == SN_PY_NAME || t->kind == SN_PY_ATTR) &&
            uses(stmt->value, path, 0) && stmt->value->kind != SN_PY_CALL)
            continue;
        sn_src_bind_target(scan, t, v);
    }
}

static void augment(sn_scan *scan, const sn_py_stmt *stmt)
{
    char path[128];
    sn_value v = sn_src_eval(scan, stmt->value);
    sn_py_path(path, sizeof path, stmt->targets);
    if (!sn_py_stmt_is(stmt, "+="))
        return;
    if (v.kind == SN_V_LOSS || v.kind == SN_V_OUT) {
        bool list = stmt->value->kind == SN_PY_LIST;
        if (v.grad && scan->n_loops)
            sn_src_check_kept(scan, path, &v, stmt->line, !list);
    } else if (v.kind == SN_V_FILES || (v.kind == SN_V_SET && !v.array)) {
        sn_src_bind_target(scan, stmt->targets, v);
    }
}

static void import(sn_scan *scan, const sn_py_stmt *stmt)
{
    char path[128];
    snprintf(path, sizeof path, "%.*s", (int)SN_MIN(stmt->n, 100), stmt->s);
    for (const sn_py_node *p = stmt->targets; p || stmt->from_import; p = p->next) {
        if (!stmt->from_import)
            snprintf(path, sizeof path, "%.*s", (int)SN_MIN(p->n, 100), p->s);
        if (sn_str_starts(path, "torch") || sn_src_mentions(path, "lightning|fastai|timm"))
            scan->torch = true;
        if (sn_src_mentions(path, "tensorflow|keras"))
            scan->tensorflow = true;
        if (stmt->from_import)
            break;
    }
}

static void walk(sn_scan *scan, const sn_py_stmt *stmt)
{
    sn_value v;
    switch (stmt->kind) {
    case SN_PY_EXPR:
        sn_src_eval(scan, stmt->value);
        break;
    case SN_PY_ASSIGN:
        assign(scan, stmt);
        break;
    case SN_PY_AUG:
        augment(scan, stmt);
        break;
    case SN_PY_RETURN:
        v = sn_src_eval(scan, stmt->value);
        if (scan->func && (scan->func->next_result.kind == SN_V_UNKNOWN ||
                           scan->func->next_result.kind == SN_V_PLAIN))
            scan->func->next_result = v;
        break;
    case SN_PY_LOOP:
        loop_stmt(scan, stmt);
        break;
    case SN_PY_WITH:
        with_stmt(scan, stmt);
        break;
    case SN_PY_DEF:
        define(scan, stmt);
        break;
    case SN_PY_CLASS:
        class_stmt(scan, stmt);
        break;
    case SN_PY_IMPORT:
        import(scan, stmt);
        break;
    case SN_PY_BRANCH:
    case SN_PY_OTHER:
        sn_src_eval(scan, stmt->value);
        walk_block(scan, stmt->body);
        break;
    }
}

static void walk_block(sn_scan *scan, const sn_py_stmt *stmt)
{
    for (; stmt && !scan->failed; stmt = stmt->next)
        walk(scan, stmt);
}

static void walk_function(sn_scan *scan, sn_func *f)
{
    size_t i = 0;
    scan->func = f;
    scan->class = f->class;
    scan->n_loops = 0;
    scan->evaluating = false;
    scan->grad_off = false;
    scan->no_grad = f->no_grad || (f->called_no_grad && !f->called_grad);
    f->next_result = sn_src_value(SN_V_UNKNOWN, f->def->line);
    for (const sn_py_node *p = f->def->params; p && i < SN_SRC_PARAMS; p = p->next, i++) {
        char name[128];
        sn_value v = f->params[i];
        if (v.kind == SN_V_UNKNOWN && p->a)
            v = sn_src_eval(scan, p->a);
        if (v.kind == SN_V_PLAIN || v.kind == SN_V_LIST)
            v = sn_src_value(SN_V_UNKNOWN, p->line);
        snprintf(name, sizeof name, "%.*s", (int)SN_MIN(p->n, 100), p->s);
        if (!sn_str_eq(name, "self"))
            sn_src_bind(scan, name, v);
    }
    walk_block(scan, f->def->body);
    f->result = f->next_result;
    if (f->cached && f->decodes)
        sn_src_report(scan, SN_TRAP_CACHE_ITEMS, 0, f->def->line, 0,
                      "The results of %.*s() are cached without a limit: every decoded file stays "
                      "in RAM, once in each worker process.",
                      (int)SN_MIN(f->def->n, 40), f->def->s);
    scan->func = NULL;
    scan->class = NULL;
    scan->no_grad = 0;
}

static void walk_all(sn_scan *scan, const sn_py_module *module)
{
    scan->n_loops = 0;
    scan->func = NULL;
    scan->class = NULL;
    scan->evaluating = scan->grad_off = false;
    scan->steps = 0;
    walk_block(scan, module->body);
    bool off = scan->grad_off; /* set_grad_enabled(False) for the whole file */
    for (sn_func *f = scan->funcs; f && !scan->failed; f = f->next) {
        f->called_no_grad = f->called_no_grad || off;
        walk_function(scan, f);
    }
    for (sn_class *c = scan->classes; c; c = c->next)
        sn_src_check_class(scan, c);
}

/* Lists of decoded samples, where nothing else was said about a set in memory. */
static void report_lists(sn_scan *scan)
{
    for (size_t k = 0; k < scan->report->n; k++)
        if (sn_trap_cause(scan->report->at[k].trap) == SNUG_CAUSE_DATASET)
            return;
    for (size_t i = 0; i < scan->n_values; i++) {
        const sn_value *v = &scan->values[i];
        bool told =
            v->kind != SN_V_SET || v->array || !v->certain || v->reported || sn_src_is_small(v);
        for (size_t k = 0; k < scan->report->n && !told; k++)
            told = scan->report->at[k].line == v->line;
        if (!told)
            sn_src_report(scan, SN_TRAP_ACCUMULATE, 0.5, v->line, 0,
                          "The list gathers every decoded sample in RAM (%s).",
                          sn_src_size_text(scan, v));
    }
}

static int by_line(const void *a, const void *b)
{
    const sn_source_finding *x = a, *y = b;
    return x->line < y->line ? -1 : x->line > y->line;
}

static bool holds_text(const char *text, size_t n, const char *word)
{
    return memmem(text, n, word, strlen(word)) != NULL;
}

snug_status sn_source_scan(sn_source_report *out, sn_arena *arena, const char *text, size_t n,
                           snug_error *err)
{
    sn_py_module module;
    sn_scan *scan = sn_arena_alloc(arena, sizeof *scan);
    *out = (sn_source_report){0};
    if (!scan)
        return sn_fail(err, SNUG_E_MEMORY, "no memory to read a source of %zu bytes", n);
    snug_status s = sn_py_read(&module, arena, text, n, err);
    if (s)
        return s;
    scan->arena = arena;
    scan->report = out;
    scan->cuda = holds_text(text, n, "cuda") || holds_text(text, n, "(device") ||
                 holds_text(text, n, "device=");
    sn_map_init(&scan->names, SN_TAG_DIAGNOSE);
    sn_map_init(&scan->backwarded, SN_TAG_DIAGNOSE);
    sn_map_init(&scan->flows, SN_TAG_DIAGNOSE);
    visit_block(scan, module.body, see_backward, NULL);
    for (int i = 0; i < 4; i++)
        visit_block(scan, module.body, NULL, flow);
    for (int i = 0; i < N_WALKS && !scan->failed; i++) { /* 2 */
        scan->reporting = i == N_WALKS - 1;
        walk_all(scan, &module);
    }
    report_lists(scan);
    if (out->n)
        qsort(out->at, out->n, sizeof *out->at, by_line);
    out->torch = scan->torch;
    out->tensorflow = scan->tensorflow;
    bool failed = scan->failed;
    sn_map_deinit(&scan->names);
    sn_map_deinit(&scan->backwarded);
    sn_map_deinit(&scan->flows);
    return failed ? sn_fail(err, SNUG_E_MEMORY, "no memory to read a source of %zu bytes", n)
                  : SNUG_OK;
}
