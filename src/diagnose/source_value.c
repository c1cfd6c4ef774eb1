/* SPDX-License-Identifier: Apache-2.0
 *
 * source_value.c - names and expressions as abstract values.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/vec.h"
#include "diagnose/source_scan.h"

#define MAX_DEPTH 300
#define MAX_STEPS 3000000

sn_value sn_src_value(sn_value_kind kind, uint32_t line)
{
    sn_value v;
    memset(&v, 0, sizeof v);
    v.kind = kind;
    v.line = line;
    v.count = -1;
    return v;
}

bool sn_src_one_of(const char *name, size_t n, const char *list)
{
    while (*list) {
        size_t k = strcspn(list, "|");
        if (k == n && !memcmp(list, name, n))
            return true;
        list += k + (list[k] == '|');
    }
    return false;
}

bool sn_src_mentions(const char *text, const char *list)
{
    while (*list) {
        size_t k = strcspn(list, "|");
        for (const char *p = text; *p; p++) {
            size_t i = 0;
            while (i < k && p[i] && tolower((unsigned char)p[i]) == list[i])
                i++;
            if (i == k)
                return true;
        }
        list += k + (list[k] == '|');
    }
    return false;
}

bool sn_src_bounded(const sn_scan *scan)
{
    char name[64];
    const sn_func *f = scan->func;
    for (unsigned i = 0; i < scan->n_loops; i++)
        if (scan->loops[i].bounded)
            return true;
    if (!f)
        return false;
    if (f->yields)
        return true;
    snprintf(name, sizeof name, "%.*s", (int)f->def->n, f->def->s);
    return sn_src_mentions(name, "__getitem__|__next__|__iter__|__call__|collate|batch|generat|"
                                 "getitem|show|plot|display|visual|demo|sample");
}

/* The key of a path in a scope: self.x belongs to the class, the rest to the function. */
static void key_of(const sn_scan *scan, char *out, size_t n, const char *path)
{
    if (scan->class && sn_str_starts(path, "self."))
        snprintf(out, n, "c%.*s:%s", (int)scan->class->def->n, scan->class->def->s, path);
    else
        snprintf(out, n, "%u:%s", scan->func ? scan->func->id : 0, path);
}

void sn_src_bind(sn_scan *scan, const char *path, sn_value value)
{
    char key[192];
    if (!path[0])
        return;
    key_of(scan, key, sizeof key, path);
    uint64_t *at = sn_map_find_str(&scan->names, key);
    if (at) {
        if (value.kind != SN_V_LIST || !scan->values[*at].grown)
            scan->values[*at] = value;
        return;
    }
    if (scan->n_values == scan->cap_values) {
        size_t cap = scan->cap_values ? scan->cap_values * 2 : 64;
        sn_value *values = sn_arena_alloc_array(scan->arena, cap, sizeof *values);
        if (!values) {
            scan->failed = true;
            return;
        }
        if (scan->n_values)
            memcpy(values, scan->values, scan->n_values * sizeof *values);
        scan->values = values;
        scan->cap_values = cap;
    }
    if (!sn_map_set_str(&scan->names, key, scan->n_values)) {
        scan->failed = true;
        return;
    }
    scan->values[scan->n_values++] = value;
}

/* What a name that was never bound to something known is likely to be. */
static sn_value guess(const sn_scan *scan, const char *path, sn_value v)
{
    const char *last = strrchr(path, '.');
    last = last ? last + 1 : path;
    size_t n = strlen(last);
    if (!scan->torch)
        return v;
    if (sn_src_one_of(last, n,
                      "criterion|loss_fn|loss_func|loss_function|criteria|lossfn|loss_fct|"
                      "objective|crit")) {
        v.kind = SN_V_LOSSFN;
    } else if (sn_src_one_of(last, n,
                             "model|net|network|encoder|decoder|generator|discriminator|"
                             "netG|netD|backbone|classifier|unet|resnet|vgg|cnn|student|"
                             "teacher|ddp_model")) {
        v.kind = SN_V_MODEL;
    } else if (sn_src_mentions(last, "loader") || sn_str_ends(last, "_dl")) {
        v.kind = SN_V_LOADER;
    }
    return v;
}

sn_value sn_src_lookup(sn_scan *scan, const char *path)
{
    char key[192];
    sn_value v = sn_src_value(SN_V_UNKNOWN, 0);
    key_of(scan, key, sizeof key, path);
    uint64_t *at = sn_map_find_str(&scan->names, key);
    for (const sn_func *f = scan->func; !at && f; f = f->outer) {
        snprintf(key, sizeof key, "%u:%s", f->outer ? f->outer->id : 0, path);
        at = sn_map_find_str(&scan->names, key);
    }
    if (at)
        v = scan->values[*at];
    if (v.kind == SN_V_UNKNOWN && scan->torch && sn_map_find_str(&scan->backwarded, path)) {
        v.kind = SN_V_LOSS;
        v.grad = !scan->no_grad && !scan->grad_off;
    }
    return v.kind == SN_V_UNKNOWN ? guess(scan, path, v) : v;
}

static bool label_like(const sn_py_node *target)
{
    char path[128];
    sn_py_path(path, sizeof path, target);
    const char *last = strrchr(path, '.');
    last = last ? last + 1 : path;
    return last[0] == 'y' || sn_src_mentions(last, "label|target|class|name|lbl|info|meta|_y");
}

void sn_src_bind_target(sn_scan *scan, const sn_py_node *target, sn_value value)
{
    char path[128];
    if (!target)
        return;
    if (target->kind == SN_PY_TUPLE || target->kind == SN_PY_LIST) {
        bool first = true;
        for (const sn_py_node *p = target->list; p; p = p->next, first = false) {
            sn_value v = value;
            if (!first && label_like(p) && (v.kind == SN_V_SET || v.kind == SN_V_IMAGE))
                v = sn_src_value(SN_V_UNKNOWN, p->line);
            if (v.kind == SN_V_INT || v.kind == SN_V_DIMS)
                v = sn_src_value(SN_V_UNKNOWN, p->line);
            sn_src_bind_target(scan, p, v);
        }
        return;
    }
    if (target->kind == SN_PY_STAR) {
        sn_src_bind_target(scan, target->a, value);
        return;
    }
    if (target->kind != SN_PY_NAME && target->kind != SN_PY_ATTR)
        return;
    sn_py_path(path, sizeof path, target);
    sn_src_bind(scan, path, value);
    if (scan->class && sn_str_starts(path, "self.") && value.kind == SN_V_SET &&
        !sn_src_is_small(&value) && value.certain && !scan->class->set_line) {
        scan->class->set_line = value.line;
        scan->class->set = value;
    }
}

void sn_src_rebind(sn_scan *scan, const sn_py_node *target, sn_value value)
{
    char path[128], key[192];
    sn_py_path(path, sizeof path, target);
    key_of(scan, key, sizeof key, path);
    for (const sn_func *f = scan->func; f && target->kind == SN_PY_NAME; f = f->outer) {
        if (sn_map_find_str(&scan->names, key))
            break;
        snprintf(key, sizeof key, "%u:%s", f->outer ? f->outer->id : 0, path);
        uint64_t *at = sn_map_find_str(&scan->names, key);
        if (at) {
            value.grown = true;
            scan->values[*at] = value;
            return;
        }
    }
    sn_src_bind_target(scan, target, value);
}

static sn_value element_of(const sn_value *v, uint32_t line)
{
    sn_value e = sn_src_value(SN_V_UNKNOWN, line);
    switch (v->kind) {
    case SN_V_FILES:
        e.kind = SN_V_FILE;
        break;
    case SN_V_RANGE:
        e.kind = SN_V_INT;
        break;
    case SN_V_SET:
        e = *v;
        e.kind = SN_V_IMAGE;
        e.count = -1;
        break;
    case SN_V_TFDATA:
        if (v->decoded && !v->small) {
            e = *v;
            e.kind = SN_V_IMAGE;
        }
        break;
    default:
        break;
    }
    return e;
}

/* A call's own name: the attribute or the name called. */
static bool call_is(const sn_py_node *call, const char *list)
{
    return call->kind == SN_PY_CALL && call->a &&
           (call->a->kind == SN_PY_NAME || call->a->kind == SN_PY_ATTR) &&
           sn_src_one_of(call->a->s, call->a->n, list);
}

static const sn_py_node *nth(const sn_py_node *list, size_t i)
{
    while (list && i--)
        list = list->next;
    return list;
}

void sn_src_bind_loop(sn_scan *scan, const sn_py_node *target, const sn_py_node *iter)
{
    if (!target || !iter || ++scan->depth > MAX_DEPTH) {
        scan->depth -= target && iter;
        return;
    }
    bool tuple = target->kind == SN_PY_TUPLE;
    if (call_is(iter, "enumerate") && tuple && iter->list) {
        sn_src_bind_target(scan, nth(target->list, 0), sn_src_value(SN_V_INT, iter->line));
        if (target->list && target->list->next && !target->list->next->next) {
            sn_src_bind_loop(scan, target->list->next, iter->list);
        } else if (target->list) {
            sn_py_node rest = *target;
            rest.list = target->list->next;
            sn_src_bind_loop(scan, &rest, iter->list);
        }
    } else if (call_is(iter, "zip") && tuple) {
        size_t i = 0;
        for (const sn_py_node *p = iter->list; p; p = p->next)
            sn_src_bind_loop(scan, nth(target->list, i++), p);
    } else if (call_is(iter, "tqdm|trange|track|list|sorted|reversed|iter|enumerate|zip") &&
               iter->list && !call_is(iter, "trange")) {
        sn_src_bind_loop(scan, target, iter->list);
    } else {
        sn_value v = sn_src_eval(scan, iter);
        sn_value e = element_of(&v, iter->line);
        char name[128] = "";
        if (tuple && target->list)
            sn_py_path(name, sizeof name, target->list);
        if (v.kind == SN_V_LOADER && tuple &&
            (sn_src_one_of(name, strlen(name), "x|X|xb|data") ||
             sn_src_mentions(name, "image|img|input|frame|pixel|pictur"))) {
            e = sn_src_value(SN_V_IMAGE, iter->line); /* a batch of them */
            e.certain = true;
            sn_src_bind_target(scan, target, sn_src_value(SN_V_UNKNOWN, iter->line));
            sn_src_bind_target(scan, target->list, e);
        } else if (call_is(iter, "walk") && tuple) { /* folder, folders, names */
            sn_src_bind_target(scan, nth(target->list, 1), sn_src_value(SN_V_FILES, iter->line));
            sn_src_bind_target(scan, nth(target->list, 2), sn_src_value(SN_V_FILES, iter->line));
        } else {
            sn_src_bind_target(scan, target, e);
        }
    }
    scan->depth--;
}

static bool all_digits(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isdigit((unsigned char)s[i]) && s[i] != '_')
            return false;
    return n > 0;
}

static sn_value number(const sn_py_node *node)
{
    sn_value v = sn_src_value(SN_V_FLOAT, node->line);
    if (!all_digits(node->s, node->n))
        return v;
    v.kind = SN_V_INT;
    v.count = 0;
    for (uint32_t i = 0; i < node->n; i++)
        if (node->s[i] != '_' && v.count < INT64_MAX / 10 - 9)
            v.count = v.count * 10 + (node->s[i] - '0');
    return v;
}

static int rank(const sn_value *v)
{
    switch (v->kind) {
    case SN_V_LOSS:
    case SN_V_OUT:
        return 9;
    case SN_V_SET:
        return 8;
    case SN_V_TFDATA:
        return 7;
    case SN_V_IMAGE:
        return 6;
    case SN_V_FILES:
        return 5;
    case SN_V_FILE:
        return 4;
    default:
        return 0;
    }
}

/* A tuple, list, dict: the shape that it is, or the most telling of its elements. */
static sn_value group(sn_scan *scan, const sn_py_node *node)
{
    sn_value best = sn_src_value(node->kind == SN_PY_TUPLE ? SN_V_UNKNOWN : SN_V_LIST, node->line);
    bool numbers = node->list != NULL && node->kind != SN_PY_DICT;
    int64_t dims[6];
    unsigned n = 0;
    for (const sn_py_node *p = node->list; p; p = p->next) {
        sn_value v = sn_src_eval(scan, p);
        if (n < 6 && numbers &&
            (v.kind == SN_V_INT || v.kind == SN_V_UNKNOWN || v.kind == SN_V_PLAIN ||
             v.kind == SN_V_FILE))
            dims[n++] = v.kind == SN_V_INT ? v.count : -1;
        else if (n < 6 && numbers && v.kind == SN_V_DIMS && p->kind == SN_PY_STAR)
            for (unsigned i = 0; i < v.n_dims && n < 6; i++)
                dims[n++] = v.dims[i];
        else
            numbers = false;
        if (rank(&v) > rank(&best))
            best = v;
    }
    bool any = false;
    for (unsigned i = 0; i < n; i++)
        any = any || dims[i] >= 0;
    if (numbers && (any || n >= 3) && rank(&best) < 5) {
        best = sn_src_value(SN_V_DIMS, node->line);
        memcpy(best.dims, dims, n * sizeof *dims);
        best.n_dims = n;
    } else if (node->kind != SN_PY_TUPLE && best.kind == SN_V_FILE) {
        best.kind = SN_V_LIST;
    } else if (node->kind != SN_PY_TUPLE && best.kind == SN_V_IMAGE) {
        best.kind = SN_V_UNKNOWN; /* a few images named one by one */
    }
    return best;
}

static sn_value comprehension(sn_scan *scan, const sn_py_node *node)
{
    bool files = false, bounded = false, ranged = false;
    int64_t count = -1;
    for (const sn_py_node *clause = node->list; clause; clause = clause->next) {
        sn_value over = sn_src_eval(scan, clause->b);
        char path[128];
        sn_py_path(path, sizeof path, clause->b);
        sn_src_bind_loop(scan, clause->a, clause->b);
        files = files || over.kind == SN_V_FILES || over.kind == SN_V_TFDATA;
        ranged = ranged || over.kind == SN_V_RANGE;
        bounded = bounded || over.bounded || sn_src_mentions(path, "batch");
        count = over.kind == SN_V_SET || over.kind == SN_V_FILES || over.kind == SN_V_RANGE
                    ? over.count
                    : count;
    }
    sn_value v = node->a ? sn_src_eval(scan, node->a) : sn_src_value(SN_V_UNKNOWN, node->line);
    sn_value made = sn_src_value(SN_V_LIST, node->line);
    if (v.kind == SN_V_IMAGE && !bounded && !sn_src_bounded(scan) && node->s[0] != '{') {
        made = v;
        made.kind = SN_V_SET;
        made.line = node->line;
        made.count = count;
        made.certain = true;
        made.array = made.decoded = false;
    } else if (v.kind == SN_V_FILE || (files && v.kind == SN_V_TEXT)) {
        made.kind = SN_V_FILES;
        made.count = count;
        made.bounded = bounded;
    } else if (v.kind == SN_V_LOSS || v.kind == SN_V_OUT) {
        made = v;
    } else {
        made.small = ranged;
    }
    return made;
}

static sn_value subscript(sn_scan *scan, const sn_py_node *node)
{
    sn_value base = sn_src_eval(scan, node->a);
    const sn_py_node *index = node->b;
    sn_value at = sn_src_value(SN_V_UNKNOWN, node->line);
    if (index && index->kind != SN_PY_SLICE)
        at = sn_src_eval(scan, index);
    sn_value high = sn_src_value(SN_V_UNKNOWN, node->line), low = high;
    bool slice = index && index->kind == SN_PY_SLICE, open = false;
    if (slice) {
        low = index->a ? sn_src_eval(scan, index->a) : low;
        high = index->b ? sn_src_eval(scan, index->b) : high;
        open = !index->a && !index->b;
    }
    switch (base.kind) {
    case SN_V_FILES:
    case SN_V_RANGE:
        if (!slice)
            return base.kind == SN_V_FILES ? sn_src_value(SN_V_FILE, node->line) : at;
        /* names[i:i+batch] and names[:64] are few; names[n:] and names[:n] may be most of them */
        base.bounded = base.bounded ||
                       (high.kind == SN_V_INT && high.count >= 0 && high.count <= 2048) ||
                       (index->a && index->b && !(low.kind == SN_V_INT && low.count == 0));
        if (high.kind == SN_V_INT && high.count >= 0)
            base.count = high.count;
        return base;
    case SN_V_SET:
        if (slice && index->a && index->b)
            return sn_src_value(SN_V_UNKNOWN, node->line); /* X[i:i+batch] */
        if (slice && high.kind == SN_V_INT && high.count >= 0)
            base.count = high.count;
        else if (slice && !open)
            base.count = -1;
        else if (at.kind == SN_V_INT)
            base.kind = SN_V_IMAGE;
        return base;
    case SN_V_H5:
        if (open || (index && index->kind == SN_PY_NAME && sn_py_is(index, "...")) ||
            (index && index->kind == SN_PY_TUPLE && !index->list)) {
            base.kind = SN_V_SET;
            base.array = true;
            base.line = node->line;
            return base;
        }
        return slice ? sn_src_value(SN_V_UNKNOWN, node->line) : base;
    case SN_V_DIMS:
        if (at.kind == SN_V_INT && at.count >= 0 && at.count < base.n_dims) {
            at.count = base.dims[at.count];
            return at;
        }
        return slice ? base : sn_src_value(SN_V_UNKNOWN, node->line);
    case SN_V_IMAGE:
    case SN_V_LOSS:
    case SN_V_OUT:
        return base;
    default:
        return sn_src_value(SN_V_UNKNOWN, node->line);
    }
}

static sn_value arithmetic(const sn_py_node *node, const sn_value *a, const sn_value *b)
{
    sn_value v = sn_src_value(SN_V_UNKNOWN, node->line);
    v.kind = SN_V_INT;
    char op = node->s[0];
    if (a->count < 0 || b->count < 0)
        return v;
    if (node->n == 2 && op == '*') {
        v.count = 1;
        for (int64_t i = 0; i < b->count && v.count >= 0; i++)
            if (i > 62 || __builtin_mul_overflow(v.count, a->count, &v.count))
                v.count = -1;
    } else if (op == '*') {
        if (__builtin_mul_overflow(a->count, b->count, &v.count))
            v.count = -1;
    } else if (op == '+') {
        if (__builtin_add_overflow(a->count, b->count, &v.count))
            v.count = -1;
    } else if (op == '-') {
        v.count = a->count >= b->count ? a->count - b->count : -1;
    } else if (op == '/' && b->count > 0) {
        v.count = a->count / b->count;
    } else if (op == '<' && b->count < 40) {
        v.count = a->count < ((int64_t)1 << 22) ? a->count << b->count : -1;
    }
    return v;
}

static sn_value binary(sn_scan *scan, const sn_py_node *node)
{
    sn_value a = sn_src_eval(scan, node->a), b = sn_src_eval(scan, node->b);
    if (a.kind == SN_V_INT && b.kind == SN_V_INT)
        return arithmetic(node, &a, &b);
    if (a.kind == SN_V_LOSS || b.kind == SN_V_LOSS || a.kind == SN_V_OUT || b.kind == SN_V_OUT) {
        sn_value v = a.kind == SN_V_LOSS || a.kind == SN_V_OUT ? a : b;
        v.grad = (a.kind == v.kind && a.grad) || (b.kind == v.kind && b.grad) ||
                 (a.kind == SN_V_LOSS && a.grad) || (b.kind == SN_V_LOSS && b.grad);
        return v;
    }
    if (a.kind == SN_V_IMAGE || a.kind == SN_V_SET) {
        if (node->s[0] == '/' && a.width == 1)
            a.width = 8; /* NumPy divides bytes into float64 */
        if (a.kind == SN_V_SET && b.kind == SN_V_SET && !a.array)
            a.count =
                a.count < 0 || b.count < 0 || __builtin_add_overflow(a.count, b.count, &a.count)
                    ? -1
                    : a.count;
        return a;
    }
    if (b.kind == SN_V_IMAGE || b.kind == SN_V_SET)
        return b;
    if (a.kind == SN_V_FILES || b.kind == SN_V_FILES)
        return a.kind == SN_V_FILES ? a : b;
    if (a.kind == SN_V_FILE || b.kind == SN_V_FILE)
        return sn_src_value(SN_V_FILE, node->line);
    if (a.kind == SN_V_DIMS && b.kind == SN_V_DIMS) {
        for (unsigned i = 0; i < b.n_dims && a.n_dims < 6; i++)
            a.dims[a.n_dims++] = b.dims[i];
        return a;
    }
    if (a.kind == SN_V_TEXT)
        return a;
    if (b.kind == SN_V_TEXT)
        return b;
    return sn_src_value(SN_V_UNKNOWN, node->line);
}

static sn_value attribute(sn_scan *scan, const sn_py_node *node)
{
    char path[128];
    sn_py_path(path, sizeof path, node);
    if (node->a->kind == SN_PY_NAME || node->a->kind == SN_PY_ATTR) {
        sn_value v = sn_src_lookup(scan, path);
        if (v.kind != SN_V_UNKNOWN)
            return v;
    }
    sn_value base = sn_src_eval(scan, node->a);
    if (sn_py_is(node, "data") && (base.kind == SN_V_LOSS || base.kind == SN_V_OUT)) {
        base.grad = false;
        return base;
    }
    if (scan->torch && base.kind != SN_V_OBJECT && sn_py_is(node, "loss") &&
        (base.kind == SN_V_OUT || base.kind == SN_V_UNKNOWN) && node->a->kind == SN_PY_NAME &&
        !sn_py_is(node->a, "args") && !sn_py_is(node->a, "config")) {
        base = sn_src_value(SN_V_LOSS, node->line);
        base.grad = !scan->no_grad && !scan->grad_off;
        return base;
    }
    if (sn_py_is(node, "shape") || sn_py_is(node, "size"))
        return sn_src_value(SN_V_UNKNOWN, node->line);
    if (base.kind == SN_V_OUT || base.kind == SN_V_SET || base.kind == SN_V_IMAGE ||
        base.kind == SN_V_LOSS)
        return base;
    return sn_src_value(SN_V_UNKNOWN, node->line);
}

static sn_value evaluate(sn_scan *scan, const sn_py_node *node, sn_value v)
{
    sn_value other;
    char path[128];
    switch (node->kind) {
    case SN_PY_NAME:
        sn_py_path(path, sizeof path, node);
        return sn_src_lookup(scan, path);
    case SN_PY_NUMBER:
        return number(node);
    case SN_PY_STRING:
        v.kind = SN_V_TEXT;
        v.text = node->s;
        v.n_text = node->n;
        return v;
    case SN_PY_ATTR:
        return attribute(scan, node);
    case SN_PY_CALL:
        return sn_src_call(scan, node);
    case SN_PY_SUB:
        return subscript(scan, node);
    case SN_PY_TUPLE:
    case SN_PY_LIST:
    case SN_PY_DICT:
        return group(scan, node);
    case SN_PY_COMP:
        return comprehension(scan, node);
    case SN_PY_BINARY:
        return binary(scan, node);
    case SN_PY_COMPARE:
        sn_src_eval(scan, node->a);
        sn_src_eval(scan, node->b);
        v.kind = SN_V_PLAIN;
        return v;
    case SN_PY_IF:
        sn_src_eval(scan, node->b);
        v = sn_src_eval(scan, node->a);
        other = sn_src_eval(scan, node->c);
        return v.kind == SN_V_UNKNOWN || v.kind == SN_V_PLAIN ? other : v;
    case SN_PY_LAMBDA:
        v.kind = SN_V_FUNC;
        v.lambda = node;
        return v;
    case SN_PY_UNARY:
    case SN_PY_STAR:
    case SN_PY_YIELD:
    case SN_PY_KW:
        v = sn_src_eval(scan, node->a);
        if (node->kind == SN_PY_UNARY && v.kind == SN_V_INT)
            v = sn_src_value(SN_V_PLAIN, node->line);
        return v;
    case SN_PY_NAMED:
        v = sn_src_eval(scan, node->b);
        sn_src_bind_target(scan, node->a, v);
        return v;
    case SN_PY_SLICE:
    case SN_PY_FOR:
        break;
    }
    return v;
}

sn_value sn_src_eval(sn_scan *scan, const sn_py_node *node)
{
    sn_value v = sn_src_value(SN_V_UNKNOWN, node ? node->line : 0);
    if (!node || scan->failed || scan->depth > MAX_DEPTH || ++scan->steps > MAX_STEPS)
        return v;
    scan->depth++;
    v = evaluate(scan, node, v);
    scan->depth--;
    return v;
}
