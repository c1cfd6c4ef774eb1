/* SPDX-License-Identifier: Apache-2.0
 *
 * test_install.c - what `make install` leaves: a program compiles with what pkg-config says, runs
 * with the installed library, the examples do, and the installed command finds its library.
 */
#include "support/tree.h"

#include <stdio.h>
#include <string.h>

#define BY_PKG_CONFIG                                                                              \
    "PKG_CONFIG_PATH=$(dirname $(find $STAGE -name snug.pc)); export PKG_CONFIG_PATH\n"            \
    "PKG_CONFIG_SYSROOT_DIR=$STAGE; export PKG_CONFIG_SYSROOT_DIR\n"                               \
    "LD_LIBRARY_PATH=$(dirname $(find $STAGE -name libsnug.so)); export LD_LIBRARY_PATH\n"

static char stage[SN_TEST_PATH];

/* Runs a script with $STAGE set and requires that it succeeds. */
static test_result run(const char *script)
{
    char whole[4 * SN_TEST_PATH];
    snprintf(whole, sizeof whole, "set -e; STAGE='%s'; %s", stage, script);
    test_result r = test_run_shell(whole, SNUG_BUILD_DIR);
    if (r.exit_code != 0)
        fail_msg("%s\nexit %d\n%s%s", script, r.exit_code, r.out, r.err);
    return r;
}

static int install(void **state)
{
    test_make_folder(stage);
    test_result r = run("DESTDIR=$STAGE cmake --install . --prefix /opt/snug");
    test_result_free(&r);
    return 0;
}

static int uninstall(void **state)
{
    test_remove(stage);
    return 0;
}

static bool is_installed(const char *name)
{
    char path[SN_TEST_PATH], whole[SN_TEST_PATH];
    snprintf(whole, sizeof whole, "opt/snug/%s", name);
    return test_exists(test_path(path, stage, whole));
}

static void the_files_are_there(void **state)
{
    assert_true(is_installed("include/snug/error.h"));
    test_result r = run("cd $STAGE/opt/snug && find . -name 'libsnug.so*' -o -name snug.pc");
    assert_contains(r.out, "/libsnug.so\n");
    assert_contains(r.out, "/libsnug.so.0\n");
    assert_contains(r.out, "/pkgconfig/snug.pc\n");
    test_result_free(&r);
    assert_true(is_installed("share/man/man1/snug.1"));
    r = run("readelf -d $(find $STAGE -name libsnug.so)");
    assert_contains(r.out, "soname: [libsnug.so.0]");
    test_result_free(&r);
    assert_no_leak();
}

static void a_program_compiles_and_runs_by_pkg_config(void **state)
{
    char path[SN_TEST_PATH];
    test_write_text(test_path(path, stage, "main.c"),
                    "#include <stdio.h>\n#include <snug/snug.h>\n"
                    "int main(void)\n{\n    puts(snug_status_name(SNUG_E_DOES_NOT_FIT));\n"
                    "    puts(snug_version());\n    return snug_status_exit_code(SNUG_OK);\n}\n");
    test_result r =
        run(BY_PKG_CONFIG "cc $STAGE/main.c -o $STAGE/main $(pkg-config --cflags --libs snug)\n"
                          "$STAGE/main\n"
                          "pkg-config --modversion snug\n"
                          "grep ^prefix= $PKG_CONFIG_PATH/snug.pc");
    assert_string_equal(r.out, "SNUG_E_DOES_NOT_FIT\n" SNUG_VERSION "\n" SNUG_VERSION
                               "\nprefix=/opt/snug\n");
    test_result_free(&r);
    assert_no_leak();
}

/* As its first lines tell a reader to build it. */
static void the_examples_compile_and_run(void **state)
{
    test_files files = {0};
    test_files_find(&files, "examples", ".c");
    assert_true(files.n > 0);
    for (size_t i = 0; i < files.n; i++) {
        char script[2 * SN_TEST_PATH];
        snprintf(script, sizeof script,
                 BY_PKG_CONFIG "cc -Wall -Wextra -Werror '" SNUG_SOURCE_DIR "/%s' "
                               "$(pkg-config --cflags --libs snug) -o $STAGE/example\n"
                               "cd $STAGE && ./example",
                 files.at[i]);
        test_result r = run(script);
        test_result_free(&r);
    }
    test_files_free(&files);
    assert_no_leak();
}

static void the_installed_command_finds_its_library(void **state)
{
    test_result r = run("$STAGE/opt/snug/bin/snug --version");
    assert_contains(r.out, SNUG_VERSION);
    test_result_free(&r);
    r = run("ldd $STAGE/opt/snug/bin/snug");
    assert_contains(r.out, stage);
    test_result_free(&r);
    assert_no_leak();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_files_are_there),
        cmocka_unit_test(a_program_compiles_and_runs_by_pkg_config),
        cmocka_unit_test(the_examples_compile_and_run),
        cmocka_unit_test(the_installed_command_finds_its_library),
    };
    return cmocka_run_group_tests_name("contract/install", tests, install, uninstall);
}
