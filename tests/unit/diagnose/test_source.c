/* SPDX-License-Identifier: Apache-2.0
 *
 * Sources read without being run: the scripts and notebooks of tests/diagnose_sources, in which a
 * comment "# <- cause" marks each line to be found; those called sound_* have none. And the parser
 * on what people write.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "diagnose/py.h"
#include "diagnose/readers.h"
#include "diagnose/source.h"
#include "support/support.h"

static const char folder[] = "tests/diagnose_sources";

/* The cause that a marked line names; NULL if it is not marked. */
static const char *mark(const char *line, size_t n, char *cause)
{
    const char *p = memmem(line, n, "# <- ", 5);
    if (!p)
        return NULL;
    size_t k = strspn(p + 5, "abcdefghijklmnopqrstuvwxyz-");
    memcpy(cause, p + 5, k);
    cause[k] = 0;
    return cause;
}

/* How many lines were found that are not marked, or marked and not found. */
static size_t compare(const char *name, const char *text, size_t n, size_t *n_marks)
{
    sn_arena arena;
    sn_source_report report;
    snug_error err = SNUG_ERROR_INIT;
    size_t wrong = 0, line_number = 0;
    char cause[64];
    sn_arena_init(&arena, SN_TAG_TEST);
    assert_ok(sn_source_scan(&report, &arena, text, n, &err), &err);
    for (const char *p = text; p < text + n; line_number++) {
        const char *end = memchr(p, '\n', (size_t)(text + n - p));
        size_t len = end ? (size_t)(end - p) : (size_t)(text + n - p);
        const char *want = mark(p, len, cause), *got = NULL;
        for (size_t i = 0; i < report.n; i++)
            if (report.at[i].line == line_number + 1)
                got = snug_cause_name(sn_trap_cause(report.at[i].trap));
        *n_marks += want != NULL;
        if (!sn_str_eq(want, got)) {
            print_message("%s:%zu: expected %s, found %s\n", name, line_number + 1,
                          want ? want : "nothing", got ? got : "nothing");
            wrong++;
        }
        p += len + 1;
    }
    sn_arena_deinit(&arena);
    return wrong;
}

static void scripts(void **state)
{
    char path[SN_TEST_PATH], root[SN_TEST_PATH];
    size_t n_files = 0, n_sound = 0, n_marks = 0, wrong = 0;
    DIR *dir = opendir(test_source_path(root, folder));
    assert_non_null(dir);
    for (struct dirent *e; (e = readdir(dir));) {
        size_t n;
        if (!sn_str_ends(e->d_name, ".py") || sn_str_starts(e->d_name, "make_"))
            continue;
        char *text = test_read(test_path(path, root, e->d_name), &n);
        wrong += compare(e->d_name, text, n, &n_marks);
        n_files++;
        n_sound += sn_str_starts(e->d_name, "sound_");
        sn_free(text);
    }
    closedir(dir);
    assert_true(n_files - n_sound >= 15);
    assert_true(n_sound >= 5);
    assert_true(n_marks >= n_files - n_sound);
    assert_int_equal(wrong, 0);
    assert_no_leak();
}

/* A notebook goes through the diagnosis: its evidence must be the marked lines. */
static void notebooks(void **state)
{
    char path[SN_TEST_PATH], root[SN_TEST_PATH];
    size_t n_files = 0, n_sound = 0, n_found = 0;
    DIR *dir = opendir(test_source_path(root, folder));
    assert_non_null(dir);
    for (struct dirent *e; (e = readdir(dir));) {
        snug_diagnosis *d;
        snug_error err = SNUG_ERROR_INIT;
        char want[64], place[64];
        if (!sn_str_ends(e->d_name, ".ipynb"))
            continue;
        bool sound = sn_str_starts(e->d_name, "sound_"), right = false;
        assert_ok(snug_diagnosis_new(&d, NULL, &err), &err);
        assert_ok(snug_diagnosis_read_file(d, test_path(path, root, e->d_name), &err), &err);
        assert_ok(snug_diagnosis_finish(d, &err), &err);
        const snug_cause *best = snug_diagnosis_cause(d, 0);
        snprintf(place, sizeof place, "%.40s cell ", e->d_name);
        for (size_t i = 0; i < best->n_evidence; i++) {
            const char *text = best->evidence[i].text;
            right = right || (mark(text, strlen(text), want) && sn_str_eq(want, best->name) &&
                              sn_str_starts(best->evidence[i].source, place));
        }
        if (sound ? best->id != SNUG_CAUSE_UNKNOWN : !right)
            print_message("%s: %s\n", e->d_name, best->name);
        n_files++;
        n_sound += sound;
        n_found += sound ? 0 : right;
        if (sound)
            assert_int_equal(best->id, SNUG_CAUSE_UNKNOWN);
        snug_diagnosis_free(d);
    }
    closedir(dir);
    assert_true(n_files - n_sound >= 15);
    assert_true(n_sound >= 5);
    assert_int_equal(n_found, n_files - n_sound);
    assert_no_leak();
}

/* ---- the parser ---- */

static const sn_py_stmt *read_one(sn_arena *arena, const char *text)
{
    sn_py_module module;
    snug_error err = SNUG_ERROR_INIT;
    assert_ok(sn_py_read(&module, arena, text, strlen(text), &err), &err);
    assert_non_null(module.body);
    return module.body;
}

static void statements(void **state)
{
    static const struct {
        const char *text;
        sn_py_stmt_kind kind;
    } cases[] = {{"x = 1", SN_PY_ASSIGN},
                 {"x: int = 1", SN_PY_ASSIGN},
                 {"a = b = c", SN_PY_ASSIGN},
                 {"a, b = b, a", SN_PY_ASSIGN},
                 {"x += y", SN_PY_AUG},
                 {"x @= y", SN_PY_AUG},
                 {"f(x, *a, k=1, **d)", SN_PY_EXPR},
                 {"x[1:2, ..., None]", SN_PY_EXPR},
                 {"'a' 'b' f'{x!r:>{w}}'", SN_PY_EXPR},
                 {"lambda x, *a, y=2, **k: x if y else a", SN_PY_EXPR},
                 {"[y async for y in z if y not in w]", SN_PY_EXPR},
                 {"{**a, 'b': 1, 'c': [i for i in d]}", SN_PY_EXPR},
                 {"x if not (y and z) else -w ** 2", SN_PY_EXPR},
                 {"await f(x)", SN_PY_EXPR},
                 {"(n := len(a))", SN_PY_EXPR},
                 {"return", SN_PY_RETURN},
                 {"return a, b", SN_PY_RETURN},
                 {"from a.b import (c as d, e)", SN_PY_IMPORT},
                 {"import a.b as c, d", SN_PY_IMPORT},
                 {"for i, (a, b) in enumerate(z): f(a); g(b)", SN_PY_LOOP},
                 {"while x:\n  f()\n", SN_PY_LOOP},
                 {"with (open(a) as f, open(b) as g):\n  f()\n", SN_PY_WITH},
                 {"async def f(a, /, b: int = 2, *, c=None, **k) -> int:\n  pass\n", SN_PY_DEF},
                 {"@d.e(1)\nclass A(B, metaclass=C):\n  x = 1\n", SN_PY_CLASS},
                 {"if x:\n\n    # comment\n    f()\n", SN_PY_BRANCH},
                 {"try:\n  f()\n", SN_PY_BRANCH},
                 {"match x:\n  case [1, *_]:\n    f()\n", SN_PY_BRANCH},
                 {"pass", SN_PY_OTHER},
                 {"print 'old'", SN_PY_OTHER},
                 {"x = (1,\n  2,  # two\n\n  3)", SN_PY_ASSIGN},
                 {"x = 1 + \\\n  2", SN_PY_ASSIGN},
                 {"x = \"\"\"a\nb'''c\"\"\"", SN_PY_ASSIGN}};
    for (size_t i = 0; i < SN_LEN(cases); i++) {
        sn_arena arena;
        sn_arena_init(&arena, SN_TAG_TEST);
        const sn_py_stmt *s = read_one(&arena, cases[i].text);
        if (s->kind != cases[i].kind || s->next)
            fail_msg("'%s' read as kind %d%s", cases[i].text, s->kind, s->next ? " and more" : "");
        sn_arena_deinit(&arena);
    }
    assert_no_leak();
}

static void lines_are_those_of_the_text(void **state)
{
    sn_arena arena;
    sn_arena_init(&arena, SN_TAG_TEST);
    const sn_py_stmt *s =
        read_one(&arena, "a = '''1\n2'''\n\nds = (x\n  .map(f)\n  .cache())\nb\n");
    assert_int_equal(s->next->line, 4);
    assert_int_equal(s->next->value->a->line, 6); /* .cache of the chain */
    assert_int_equal(s->next->next->line, 7);
    /* what is not understood costs one line */
    s = read_one(&arena, "x = = 2\ny = 3\n");
    assert_int_equal(s->kind, SN_PY_OTHER);
    assert_int_equal(s->next->kind, SN_PY_ASSIGN);
    /* an unclosed bracket ends at the next definition */
    s = read_one(&arena, "x = f(1,\ndef g():\n  return 2\n");
    assert_int_equal(s->next->kind, SN_PY_DEF);
    sn_arena_deinit(&arena);
    assert_no_leak();
}

static void deep_and_long_texts_end(void **state)
{
    static const char *const parts[] = {"(",    "[",       "a.",      "1+",           "-", "f(",
                                        "not ", "lambda:", "if x:\n", "[x for x in ", "{", "x["};
    snug_error err = SNUG_ERROR_INIT;
    for (size_t i = 0; i < SN_LEN(parts); i++) {
        sn_buf text;
        sn_arena arena;
        sn_source_report report;
        sn_buf_init(&text, SN_TAG_TEST);
        for (int k = 0; k < 20000; k++)
            sn_buf_puts(&text, parts[i]);
        sn_arena_init(&arena, SN_TAG_TEST);
        assert_ok(sn_source_scan(&report, &arena, text.data, text.len, &err), &err);
        assert_int_equal(report.n, 0);
        sn_arena_deinit(&arena);
        sn_buf_deinit(&text);
    }
    assert_no_leak();
}

static void gib_where_sizes_stand(void **state)
{
    static const struct {
        const char *text, *words;
    } cases[] = {{"import numpy as np\nx = np.zeros((50000, 224, 224, 3))\n", "= 56.08 GiB"},
                 {"import numpy as np\nN, S = 10_000, 512\nx = np.ones((N, S, S, 3), np.uint8)\n",
                  "uint8 = 7.32 GiB"},
                 {"import torch\nx = torch.randn(20000, 3, 256, 256)\n", "= 14.65 GiB"},
                 {"import tensorflow as tf\n"
                  "d = lambda p: tf.image.resize(tf.io.decode_jpeg(p), (100, 200))\n"
                  "s = tf.data.Dataset.list_files('*').map(d).shuffle(8192)\n",
                  "8192 decoded samples of 234 KiB: 1.83 GiB"}};
    for (size_t i = 0; i < SN_LEN(cases); i++) {
        sn_arena arena;
        sn_source_report report;
        snug_error err = SNUG_ERROR_INIT;
        sn_arena_init(&arena, SN_TAG_TEST);
        assert_ok(sn_source_scan(&report, &arena, cases[i].text, strlen(cases[i].text), &err),
                  &err);
        assert_int_equal(report.n, 1);
        assert_contains(report.at[0].explanation, cases[i].words);
        sn_arena_deinit(&arena);
    }
    assert_no_leak();
}

static void out_of_memory_is_told(void **state)
{
    static const char text[] = "import torch\nlosses = []\nfor x, y in loader:\n"
                               "    loss = net(x)\n    loss.backward()\n    losses.append(loss)\n";
    for (uint64_t n = 1; n < 40; n++) {
        sn_arena arena;
        sn_source_report report;
        snug_error err = SNUG_ERROR_INIT;
        sn_arena_init(&arena, SN_TAG_TEST);
        sn_ledger_fail_nth(n);
        snug_status s = sn_source_scan(&report, &arena, text, sizeof text - 1, &err);
        sn_ledger_fail_nth(0);
        assert_true(s == SNUG_E_MEMORY || (s == SNUG_OK && report.n == 1));
        sn_arena_deinit(&arena);
    }
    assert_no_leak();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scripts),
        cmocka_unit_test(notebooks),
        cmocka_unit_test(statements),
        cmocka_unit_test(lines_are_those_of_the_text),
        cmocka_unit_test(deep_and_long_texts_end),
        cmocka_unit_test(gib_where_sizes_stand),
        cmocka_unit_test(out_of_memory_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
