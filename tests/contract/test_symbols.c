/* SPDX-License-Identifier: Apache-2.0
 *
 * test_symbols.c - the three tiers of names, as nm sees them: libsnug.so exports what the public
 * headers declare and nothing else; the rooms' archives have sn_ names, each declared in a header.
 */
#include "support/tree.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/map.h"

/* Calls check for each defined global symbol that `script` (an nm -P) lists; the problems. */
static size_t read_symbols(const char *script, size_t (*check)(const char *name, sn_map *declared),
                           sn_map *declared)
{
    test_result r = test_run_shell(script, SNUG_BUILD_DIR);
    if (r.exit_code != 0)
        fail_msg("%s: %s", script, r.err);
    char *cursor = r.out, *line;
    size_t problems = 0, n = 0;
    while ((line = test_next_line(&cursor))) {
        size_t len = strcspn(line, " ");
        if (line[len] != ' ' || strchr("Uwv", line[len + 1]))
            continue;
        line[len] = '\0';
        problems += check(line, declared);
        n++;
    }
    test_result_free(&r);
    assert_true(n > 0);
    return problems;
}

static void remember(const char *name, void *declared)
{
    assert_true(sn_map_set_str(declared, name, 0));
}

static void read_public_headers(sn_map *declared)
{
    test_files files = {0};
    test_files_find(&files, "include/snug", ".h");
    for (size_t i = 0; i < files.n; i++) {
        char *text = test_source_text(files.at[i]);
        test_public_names(text, remember, declared);
        sn_free(text);
    }
    test_files_free(&files);
}

static size_t check_exported(const char *name, sn_map *declared)
{
    uint64_t *seen = sn_map_find_str(declared, name);
    if (seen)
        *seen = 1;
    if (!sn_str_starts(name, "snug_"))
        return test_problem("libsnug.so", 0, "exports %s", name);
    return seen ? 0 : test_problem("libsnug.so", 0, "%s is in no public header", name);
}

static void the_library_exports_what_its_headers_declare(void **state)
{
    sn_map declared;
    sn_map_init(&declared, SN_TAG_TEST);
    read_public_headers(&declared);
    size_t problems = read_symbols("nm -P -D --defined-only libsnug.so", check_exported, &declared);
    const void *name;
    size_t len, cursor = 0;
    uint64_t seen;
    while (sn_map_next(&declared, &cursor, &name, &len, &seen))
        if (!seen)
            problems += test_problem("include/snug", 0, "%.*s is declared and not there", (int)len,
                                     (const char *)name);
    sn_map_deinit(&declared);
    assert_int_equal(problems, 0);
    assert_no_leak();
}

/* Every word sn_... or snug_... of the headers of src/, macros expanded. */
static void read_room_headers(sn_map *declared)
{
    test_files files = {0};
    test_files_find(&files, "src", ".h");
    sn_buf unit;
    sn_buf_init(&unit, SN_TAG_TEST);
    for (size_t i = 0; i < files.n; i++)
        if (!sn_str_ends(files.at[i], "/banned.h"))
            sn_buf_printf(&unit, "#include \"%s\"\n", files.at[i] + strlen("src/"));
    test_files_free(&files);
    const char *preprocess[] = {"cc", "-E", "-P", "-D_GNU_SOURCE", "-Isrc", "-Iinclude", "-x",
                                "c",  "-",  NULL};
    test_result r = test_run(preprocess, unit.data, SNUG_SOURCE_DIR);
    if (r.exit_code != 0)
        fail_msg("the headers do not compile: %s", r.err);
    sn_buf_deinit(&unit);
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    for (const char *c = r.out; *c;) {
        size_t n = strspn(c, letters);
        if (n > 3 && strncmp(c, "sn", 2) == 0)
            assert_true(sn_map_set(declared, c, n, 0));
        c += n ? n : 1;
    }
    test_result_free(&r);
}

static size_t check_shared(const char *name, sn_map *declared)
{
    if (!sn_str_starts(name, "sn_") && !sn_str_starts(name, "snug_"))
        return test_problem("src", 0, "%s: a name shared between files begins with sn_", name);
    if (sn_str_starts(name, "sn_") && !sn_map_find_str(declared, name))
        return test_problem("src", 0, "%s is declared in no header: make it static", name);
    return 0;
}

static void what_rooms_share_is_declared(void **state)
{
    sn_map declared;
    sn_map_init(&declared, SN_TAG_TEST);
    read_room_headers(&declared);
    assert_true(declared.n > 100);
    size_t problems =
        read_symbols("nm -P -g --defined-only libsn_*.a | grep -v ':$'", check_shared, &declared);
    sn_map_deinit(&declared);
    assert_int_equal(problems, 0);
    assert_no_leak();
}

static void what_is_wrong_is_found(void **state)
{
    sn_map declared;
    sn_map_init(&declared, SN_TAG_TEST);
    static const char header[] = "#define SNUG_API x\n/* SNUG_API is a mark */\n"
                                 "SNUG_API const char *snug_name(int a);\n"
                                 "SNUG_API snug_status snug_plan_new(snug_plan **out,\n"
                                 "                                   int x);\n"
                                 "SNUG_API extern const int snug_table[3];\n";
    test_public_names(header, remember, &declared);
    assert_int_equal(declared.n, 3);
    assert_true(sn_map_set_str(&declared, "sn_known", 0));
    test_quiet = true;
    assert_int_equal(check_exported("snug_name", &declared), 0);
    assert_int_equal(check_exported("snug_plan_new", &declared), 0);
    assert_int_equal(check_exported("snug_table", &declared), 0);
    assert_int_equal(check_exported("snug_other", &declared), 1);
    assert_int_equal(check_exported("sn_known", &declared), 1);
    assert_int_equal(check_shared("sn_known", &declared), 0);
    assert_int_equal(check_shared("sn_unknown", &declared), 1);
    assert_int_equal(check_shared("helper", &declared), 1);
    test_quiet = false;
    sn_map_deinit(&declared);
    assert_no_leak();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_library_exports_what_its_headers_declare),
        cmocka_unit_test(what_rooms_share_is_declared),
        cmocka_unit_test(what_is_wrong_is_found),
    };
    return cmocka_run_group_tests_name("contract/symbols", tests, NULL, NULL);
}
