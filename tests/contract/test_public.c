/* SPDX-License-Identifier: Apache-2.0
 *
 * test_public.c - the public headers as a program meets them: each compiles alone, as C11 and as
 * C++, without a warning, and says of each function what it does.
 */
#include "support/tree.h"

#include <stdio.h>
#include <string.h>

static size_t compile(const char *name, const char *const argv[])
{
    char unit[256];
    snprintf(unit, sizeof unit, "#include \"%s\"\nint main(void) { return 0; }\n",
             name + strlen("include/"));
    test_result r = test_run(argv, unit, SNUG_SOURCE_DIR);
    size_t problems = 0;
    if (r.exit_code != 0)
        problems = test_problem(name, 0, "does not compile alone (%s):\n%.400s", argv[0], r.err);
    test_result_free(&r);
    return problems;
}

static size_t for_each_header(size_t (*check)(const char *name))
{
    test_files files = {0};
    test_files_find(&files, "include/snug", ".h");
    assert_true(files.n >= 5);
    size_t problems = 0;
    for (size_t i = 0; i < files.n; i++)
        problems += check(files.at[i]);
    test_files_free(&files);
    return problems;
}

static size_t compile_c(const char *name)
{
    const char *argv[] = {
        "cc",           "-std=c11", "-Wall",   "-Wextra",   "-Wpedantic",    "-Wshadow",
        "-Wconversion", "-Wundef",  "-Werror", "-Iinclude", "-fsyntax-only", "-Wstrict-prototypes",
        "-x",           "c",        "-",       NULL};
    return compile(name, argv);
}

static size_t compile_cxx(const char *name)
{
    const char *argv[] = {"c++",       "-std=c++11",    "-Wall", "-Wextra", "-Wpedantic", "-Werror",
                          "-Iinclude", "-fsyntax-only", "-x",    "c++",     "-",          NULL};
    return compile(name, argv);
}

static void each_header_compiles_alone_as_c(void **state)
{
    assert_int_equal(for_each_header(compile_c), 0);
    assert_no_leak();
}

static void each_header_compiles_alone_as_cxx(void **state)
{
    test_result r = test_run_shell("command -v c++", NULL);
    bool present = r.exit_code == 0;
    test_result_free(&r);
    if (!present) {
        print_message("no C++ compiler here\n");
        skip();
    }
    assert_int_equal(for_each_header(compile_cxx), 0);
    assert_no_leak();
}

static void a_header_that_does_not_compile_is_found(void **state)
{
    test_quiet = true;
    assert_int_equal(compile_c("include/no/such/header.h"), 1);
    test_quiet = false;
    assert_no_leak();
}

/* A declaration has a comment right above it, or follows without a blank line another declaration
 * or a struct that has. */
static size_t check_comments(const char *name, char *text)
{
    enum { NOTHING, COMMENT, DECLARED } before = NOTHING;
    size_t problems = 0, n = 0;
    bool inside = false;    /* a declaration that goes on */
    bool commented = false; /* the struct that is open */
    char *line;
    while ((line = test_next_line(&text))) {
        n++;
        if (sn_str_starts(line, "SNUG_API")) {
            if (before == NOTHING)
                problems += test_problem(name, n, "no comment above: %s", line);
            inside = true;
        }
        if (inside) {
            before = DECLARED;
            inside = !strchr(line, ';');
        } else if (sn_str_starts(line, "typedef struct")) {
            commented = before == COMMENT;
            before = NOTHING;
        } else if (line[0] == '}') {
            before = commented ? DECLARED : NOTHING;
        } else {
            before = sn_str_ends(line, "*/") ? COMMENT : NOTHING;
        }
    }
    return problems;
}

static size_t check_comments_of(const char *name)
{
    char *text = test_source_text(name);
    size_t problems = check_comments(name, text);
    sn_free(text);
    return problems;
}

static void each_function_has_a_comment(void **state)
{
    assert_int_equal(for_each_header(check_comments_of), 0);
    assert_no_leak();
}

static void a_function_without_a_comment_is_found(void **state)
{
    char good[] = "/* Two of a kind. */\nSNUG_API int snug_a(void);\nSNUG_API int snug_b(int x,\n"
                  "                     int y);\nSNUG_API int snug_c(void);\n"
                  "/* A pair. */\ntypedef struct x {\n    int a;\n} x;\nSNUG_API x snug_x(void);\n";
    char bad[] = "/* One. */\nSNUG_API int snug_a(void);\n\nSNUG_API int snug_b(void);\n"
                 "typedef int x;\nSNUG_API int snug_c(void);\n"
                 "typedef struct x {\n    int a; /* one */\n} x;\nSNUG_API x snug_x(void);\n";
    test_quiet = true;
    assert_int_equal(check_comments("x.h", good), 0);
    assert_int_equal(check_comments("x.h", bad), 3);
    test_quiet = false;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_header_compiles_alone_as_c),
        cmocka_unit_test(each_header_compiles_alone_as_cxx),
        cmocka_unit_test(a_header_that_does_not_compile_is_found),
        cmocka_unit_test(each_function_has_a_comment),
        cmocka_unit_test(a_function_without_a_comment_is_found),
    };
    return cmocka_run_group_tests_name("contract/public", tests, NULL, NULL);
}
