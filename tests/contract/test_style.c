/* SPDX-License-Identifier: Apache-2.0
 *
 * test_style.c - what a reader may count on in every file: a licence line, no file over 1,000 lines
 * and no function over 120, nothing left to be done, and headers that say who owns what.
 */
#include "support/tree.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"

enum { MAX_FILE_LINES = 1000, MAX_FUNCTION_LINES = 120, LICENCE_WITHIN_LINES = 3 };

static bool is_code(const char *name)
{
    return sn_str_ends(name, ".c") || sn_str_ends(name, ".h");
}

/* No letter, digit or _ on either side of the n bytes at `at`. */
static bool stands_alone(const char *line, const char *at, size_t n)
{
    bool joined = at > line && (isalnum((unsigned char)at[-1]) || at[-1] == '_');
    return !joined && !isalnum((unsigned char)at[n]) && at[n] != '_';
}

static size_t check_words(const char *name, size_t number, const char *line)
{
    /* In two halves each, so that this file does not find itself. */
    static const char *const words[] = {"TO"
                                        "DO",
                                        "FIX"
                                        "ME",
                                        "XX"
                                        "X",
                                        "HA"
                                        "CK"};
    size_t problems = 0;
    for (size_t i = 0; i < SN_LEN(words); i++) {
        size_t n = strlen(words[i]);
        for (const char *at = line; (at = strstr(at, words[i])); at++)
            if (stands_alone(line, at, n))
                problems += test_problem(name, number, "%s: nothing is left for later in the tree",
                                         words[i]);
    }
    return problems;
}

static size_t check_lines(const char *name, char *text)
{
    static const char licence[] = "SPDX-License-Identifier: Apache-2.0";
    size_t problems = 0, n = 0, body = 0;
    bool licensed = false;
    char *line;
    while ((line = test_next_line(&text))) {
        n++;
        licensed = licensed || (n <= LICENCE_WITHIN_LINES && strstr(line, licence));
        problems += check_words(name, n, line);
        if (!is_code(name))
            continue;
        /* clang-format puts a function's braces alone in the first column, and no others. */
        if (sn_str_eq(line, "{"))
            body = n;
        if (sn_str_eq(line, "}") && body) {
            if (n - body + 1 > MAX_FUNCTION_LINES)
                problems += test_problem(name, body, "a function of %zu lines, %d at most",
                                         n - body + 1, MAX_FUNCTION_LINES);
            body = 0;
        }
    }
    if (!licensed)
        problems +=
            test_problem(name, 1, "no %s in its first %d lines", licence, LICENCE_WITHIN_LINES);
    if (n > MAX_FILE_LINES)
        problems += test_problem(name, n, "%zu lines, %d at most", n, MAX_FILE_LINES);
    return problems;
}

/* What tests feed to a reader is text as its authors write it, not source of this project. */
static bool is_test_input(const char *name)
{
    return sn_str_starts(name, "tests/diagnose_");
}

static size_t check_header(const char *name, const char *text)
{
    size_t problems = 0;
    if (!sn_str_ends(name, ".h") ||
        !(sn_str_starts(name, "src/") || sn_str_starts(name, "include/")))
        return 0;
    static const char *const lines[] = {"Ownership:", "Threads:"};
    for (size_t i = 0; i < SN_LEN(lines); i++)
        if (!strstr(text, lines[i]))
            problems += test_problem(name, 1, "its comment has no \"%s\"", lines[i]);
    return problems;
}

static size_t check_file(const char *name, char *text)
{
    size_t problems = check_header(name, text);
    return problems + check_lines(name, text);
}

static void every_file_keeps_the_rules(void **state)
{
    static const char suffixes[] = ".c .h .def .cl .cu .inc .sh .py .cmake CMakeLists.txt .in";
    static const char *const folders[] = {"include", "src",   "cli",      "tests",
                                          "fuzz",    "bench", "examples", "tools"};
    test_files files = {0};
    for (size_t i = 0; i < SN_LEN(folders); i++)
        test_files_find(&files, folders[i], suffixes);
    assert_true(files.n > 50);
    size_t problems = 0;
    for (size_t i = 0; i < files.n; i++) {
        if (is_test_input(files.at[i]))
            continue;
        char *text = test_source_text(files.at[i]);
        problems += check_file(files.at[i], text);
        sn_free(text);
    }
    test_files_free(&files);
    static const char *const others[] = {"Makefile", "CMakeLists.txt", ".ci/run"};
    for (size_t i = 0; i < SN_LEN(others); i++) {
        char *text = test_source_text(others[i]);
        problems += check_file(others[i], text);
        sn_free(text);
    }
    assert_int_equal(problems, 0);
    assert_no_leak();
}

/* The problems of a file that begins with `head`, has `line` so many times, and ends with "}". */
static size_t count(const char *name, const char *head, const char *line, size_t times)
{
    sn_buf text;
    sn_buf_init(&text, SN_TAG_TEST);
    sn_buf_puts(&text, head);
    for (size_t i = 0; i < times; i++)
        sn_buf_puts(&text, line);
    sn_buf_puts(&text, "}\n");
    test_quiet = true;
    size_t problems = check_file(name, text.data);
    test_quiet = false;
    sn_buf_deinit(&text);
    return problems;
}

static void what_breaks_the_rules_is_found(void **state)
{
    static const char licence[] = "/* SPDX-License-Identifier: Apache-2.0 */\n";
    static const char function[] = "/* SPDX-License-Identifier: Apache-2.0 */\nint f(void)\n{\n";
    assert_int_equal(count("src/base/x.c", licence, "int x;\n", 998), 0);
    assert_int_equal(count("src/base/x.c", licence, "int x;\n", 999), 1);
    assert_int_equal(count("src/base/x.c", "\n\n\n", licence, 1), 1);
    assert_int_equal(count("src/base/x.c", "", "int x;\n", 1), 1);
    assert_int_equal(count("src/base/x.c", function, "    f();\n", 118), 0);
    assert_int_equal(count("src/base/x.c", function, "    f();\n", 119), 1);
    assert_int_equal(count("src/base/x.c", licence,
                           "/* TO"
                           "DO: more */\n",
                           1),
                     1);
    assert_int_equal(count("tools/x.sh", licence,
                           "# HA"
                           "CK, XX"
                           "X\n",
                           1),
                     2);
    assert_int_equal(count("src/base/x.c", licence,
                           "x(\"snug-XX"
                           "XXXX\");\n",
                           1),
                     0);
    assert_int_equal(count("tests/x.h", licence, "int x;\n", 1), 0);
    assert_int_equal(count("src/base/x.h", licence, "/* Ownership: none. */\n", 1), 1);
    assert_int_equal(count("src/base/x.h", licence, "/* Ownership: x. Threads: y. */\n", 1), 0);
    assert_int_equal(count("include/snug/x.h", licence, "int x;\n", 1), 2);
    assert_no_leak();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_file_keeps_the_rules),
        cmocka_unit_test(what_breaks_the_rules_is_found),
    };
    return cmocka_run_group_tests_name("contract/style", tests, NULL, NULL);
}
