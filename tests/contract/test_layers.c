/* SPDX-License-Identifier: Apache-2.0
 *
 * test_layers.c - who may include whom. src/: what tools/layers.txt says. The command, the examples
 * and the public headers: the public API alone. And the build says the same as layers.txt.
 */
#include "support/tree.h"

#include <stdio.h>
#include <string.h>

enum { MAX_ROOMS = 32 };

static struct {
    char room[32];
    char allowed[512]; /* " base tensor " */
} layers[MAX_ROOMS];
static size_t n_layers;

static int read_layers(void **state)
{
    char *text = test_source_text("tools/layers.txt"), *cursor = text, *line;
    while ((line = test_next_line(&cursor))) {
        char *colon = strchr(line, ':');
        if (line[0] == '#' || !colon)
            continue;
        *colon = '\0';
        assert_true(n_layers < MAX_ROOMS);
        snprintf(layers[n_layers].room, sizeof layers[0].room, "%s", line);
        snprintf(layers[n_layers].allowed, sizeof layers[0].allowed, " %s ", colon + 1);
        n_layers++;
    }
    sn_free(text);
    assert_true(n_layers > 5);
    return 0;
}

/* The row of the room whose name is the first n bytes of name; -1 if there is none. */
static int find_room(const char *name, size_t n)
{
    for (size_t i = 0; i < n_layers; i++)
        if (strlen(layers[i].room) == n && strncmp(layers[i].room, name, n) == 0)
            return (int)i;
    return -1;
}

static bool is_allowed(int row, const char *room, size_t n)
{
    char word[40];
    snprintf(word, sizeof word, " %.*s ", (int)n, room);
    return strstr(layers[row].allowed, word) != NULL;
}

static bool is_beside(const char *file, const char *included)
{
    char path[SN_TEST_PATH], name[SN_TEST_PATH];
    const char *slash = strrchr(file, '/');
    snprintf(name, sizeof name, "%.*s/%s", (int)(slash - file), file, included);
    return test_exists(test_source_path(path, name));
}

/* What stands between the quotes or brackets of an #include; false if the line is none. */
static bool parse_include(const char *line, char out[256], bool *quoted)
{
    line += strspn(line, " \t");
    if (*line != '#')
        return false;
    line += 1 + strspn(line + 1, " \t");
    if (!sn_str_starts(line, "include"))
        return false;
    line += 7 + strspn(line + 7, " \t");
    if (*line != '"' && *line != '<')
        return false;
    *quoted = *line == '"';
    snprintf(out, 256, "%.*s", (int)strcspn(line + 1, *quoted ? "\"" : ">"), line + 1);
    return true;
}

static size_t check_room_include(const char *file, size_t line, const char *included, bool quoted)
{
    const char *own = file + strlen("src/");
    int row = find_room(own, strcspn(own, "/"));
    if (row < 0)
        return test_problem(file, line, "its room is not in tools/layers.txt");
    size_t n = strcspn(included, "/");
    bool has_room = included[n] == '/' && find_room(included, n) >= 0;
    if (!quoted)
        return has_room ? test_problem(file, line, "write \"%s\", in quotes", included) : 0;
    if (strstr(included, ".."))
        return test_problem(file, line, "\"%s\": name the room, not the way to it", included);
    if (sn_str_starts(included, "snug/"))
        return 0;
    if (sn_str_starts(included, "backend/torture/") && !sn_str_starts(file, "src/backend/torture/"))
        return test_problem(file, line, "the torture backend is for tests only");
    if (has_room && n == strlen(layers[row].room) && strncmp(included, layers[row].room, n) == 0)
        return 0;
    if (has_room && !is_allowed(row, included, n))
        return test_problem(file, line, "%s may not include %s", layers[row].room, included);
    if (!has_room && !is_beside(file, included))
        return test_problem(file, line, "no room has \"%s\"", included);
    return 0;
}

/* cli/, examples/ and include/snug/ see include/snug and what lies beside them. */
static size_t check_outer_include(const char *file, size_t line, const char *included, bool quoted)
{
    if (sn_str_starts(included, "snug/"))
        return 0;
    if (quoted) {
        bool generated = sn_str_starts(file, "cli/") && sn_str_eq(included, "topics.h");
        bool own = !strchr(included, '/') && !sn_str_starts(file, "include/") &&
                   (generated || is_beside(file, included));
        return own ? 0 : test_problem(file, line, "\"%s\" is not public", included);
    }
    bool system = !strchr(included, '/') || sn_str_starts(included, "sys/");
    static const char *const libraries[] = {"dnnl.h", "jpeglib.h", "png.h", "zlib.h", "omp.h"};
    for (size_t i = 0; i < SN_LEN(libraries); i++)
        system = system && !sn_str_eq(included, libraries[i]);
    return system ? 0 : test_problem(file, line, "<%s> is for the library alone", included);
}

static size_t check_text(const char *file, char *text)
{
    size_t problems = 0, n = 0;
    char *line, included[256];
    bool quoted;
    while ((line = test_next_line(&text))) {
        n++;
        if (!parse_include(line, included, &quoted))
            continue;
        problems += sn_str_starts(file, "src/") ? check_room_include(file, n, included, quoted)
                                                : check_outer_include(file, n, included, quoted);
    }
    return problems;
}

static void every_include_is_allowed(void **state)
{
    test_files files = {0};
    test_files_find(&files, "src", ".c .h .def .inc");
    test_files_find(&files, "cli", ".c .h");
    test_files_find(&files, "include", ".h");
    test_files_find(&files, "examples", ".c .h");
    assert_true(files.n > 20);
    size_t problems = 0;
    for (size_t i = 0; i < files.n; i++) {
        char *text = test_source_text(files.at[i]);
        problems += check_text(files.at[i], text);
        sn_free(text);
    }
    test_files_free(&files);
    assert_int_equal(problems, 0);
    assert_no_leak();
}

static void what_is_forbidden_is_found(void **state)
{
    static const struct {
        const char *file, *text;
        size_t problems;
    } cases[] = {
        {"src/base/io.c", "#include \"base/io.h\"\n#include <stdio.h>\n", 0},
        {"src/base/io.c", "#include \"snug/error.h\"\n", 0},
        {"src/base/io.c", "# include \"tensor/tensor.h\"\n", 1},
        {"src/data/x.c", "#include \"tensor/tensor.h\"\n#include \"base/io.h\"\n", 0},
        {"src/data/x.c", "#include \"graph/graph.h\"", 1},
        {"src/data/x.c", "#include <tensor/tensor.h>", 1},
        {"src/data/x.c", "#include \"../tensor/tensor.h\"", 1},
        {"src/data/x.c", "#include \"nothing.h\"", 1},
        {"src/nowhere/x.c", "#include \"base/io.h\"", 1},
        {"src/backend/torture/x.c", "#include \"backend/torture/torture.h\"\n", 0},
        {"src/train/x.c", "#include \"backend/torture/torture.h\"\n", 1},
        {"src/backend/x.c", "#include \"backend/torture/torture.h\"\n", 1},
        {"cli/main.c", "#include \"snug/error.h\"\n#include <jansson.h>\n#include \"cli.h\"", 0},
        {"cli/main.c", "#include \"base/io.h\"\n#include <oneapi/dnnl/dnnl.h>\n", 2},
        {"include/snug/plan.h", "#include \"snug/error.h\"\n#include <stdint.h>", 0},
        {"include/snug/plan.h", "#include \"plan.h\"", 1},
    };
    test_quiet = true;
    for (size_t i = 0; i < SN_LEN(cases); i++) {
        char *text = sn_strdup(SN_TAG_TEST, cases[i].text);
        size_t problems = check_text(cases[i].file, text);
        sn_free(text);
        if (problems != cases[i].problems)
            fail_msg("%s with %s: %zu problems", cases[i].file, cases[i].text, problems);
    }
    test_quiet = false;
    assert_no_leak();
}

/* Adds to out, " base tensor " and the like, the rooms that `room` links according to
 * CMakeLists.txt, and those that they link. */
static void add_linked(const char *cmake, const char *room, char out[512])
{
    char key[64], list[512];
    snprintf(key, sizeof key, "set(SNUG_DEPS_%s ", room);
    const char *at = strstr(cmake, key);
    if (!at)
        fail_msg("CMakeLists.txt has no SNUG_DEPS_%s", room);
    at += strlen(key);
    snprintf(list, sizeof list, "%.*s", (int)strcspn(at, ")"), at);
    for (char *word = list; *word;) {
        size_t n = strcspn(word, " ");
        char next = word[n];
        word[n] = '\0';
        char padded[sizeof list + 2];
        snprintf(padded, sizeof padded, " %s ", word);
        if (*word && *word != '"' && !strstr(out, padded)) {
            size_t used = strlen(out);
            snprintf(out + used, 512 - used, "%s ", word);
            add_linked(cmake, word, out);
        }
        word += n + (next == ' ');
    }
}

static void the_build_links_what_may_be_included(void **state)
{
    char *cmake = test_source_text("CMakeLists.txt");
    size_t problems = 0;
    for (size_t i = 0; i < n_layers; i++) {
        char linked[512] = " ";
        add_linked(cmake, layers[i].room, linked);
        bool same = true;
        for (size_t k = 0; k < n_layers; k++) {
            char word[sizeof layers[0].room + 2];
            snprintf(word, sizeof word, " %.31s ", layers[k].room);
            same = same && !strstr(linked, word) == !strstr(layers[i].allowed, word);
        }
        if (!same)
            problems += test_problem("CMakeLists.txt", 0, "%s links%s, layers.txt allows%s",
                                     layers[i].room, linked, layers[i].allowed);
    }
    sn_free(cmake);
    assert_int_equal(problems, 0);
    assert_no_leak();
}

static void rooms_stand_in_the_order_of_dependence(void **state)
{
    for (size_t i = 0; i < n_layers; i++)
        for (size_t k = i; k < n_layers; k++)
            assert_false(is_allowed((int)i, layers[k].room, strlen(layers[k].room)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_include_is_allowed),
        cmocka_unit_test(what_is_forbidden_is_found),
        cmocka_unit_test(the_build_links_what_may_be_included),
        cmocka_unit_test(rooms_stand_in_the_order_of_dependence),
    };
    return cmocka_run_group_tests_name("contract/layers", tests, read_layers, NULL);
}
