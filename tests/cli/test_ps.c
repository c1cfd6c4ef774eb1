/* SPDX-License-Identifier: Apache-2.0
 *
 * `snug ps` as a person runs it, on a fake machine with a GTX 950 (stub NVML) and on this one.
 */
#include "support/fake_tree.h"

#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define RUN(...) test_run((const char *[]){test_command(), "ps", __VA_ARGS__, NULL}, NULL, NULL)

static fake_tree tree;

static int make(void **state)
{
    fake_tree_make(&tree);
    fake_nvidia_card(&tree, 0, "0000:01:00.0", "NVIDIA GeForce GTX 950");
    fake_drm_card(&tree, 0, "0000:03:00.0", "amdgpu", 0x1002, 0x744c);
    fake_process(&tree,
                 &(fake_proc){.pid = 700, .comm = "Xorg", .command = "/usr/lib/xorg/Xorg|:0"});
    fake_process(&tree, &(fake_proc){.pid = 4242,
                                     .pss_kib = 3145728,
                                     .state = 'T',
                                     .maps = "/v/libtensorflow_cc.so.2\n",
                                     .command = "python|train.py"});
    fake_process(&tree, &(fake_proc){.pid = 4300, .uid = (int)getuid() + 1, .rss_pages = 1 << 18});
    fake_descriptor(&tree, 700, 5, "/dev/nvidia0", NULL);
    fake_descriptor(&tree, 4242, 5, "/dev/nvidia0", NULL);
    fake_descriptor(&tree, 4300, 5, "/dev/nvidia0", NULL);
    char library[SN_TEST_PATH];
    snprintf(library, sizeof library, "%s/stub_nvml_v3/libnvidia-ml.so.1", SNUG_BUILD_DIR);
    setenv("SNUG_ROOT", tree.root, 1);
    setenv("SNUG_NVML", library, 1);
    setenv("STUB_NVML",
           "card NVIDIA GeForce GTX 950|0:1:0|2147483648|1992294400|67108864|1|0\n"
           "process 0 G 700 157286400 4294967295\nprocess 0 C 4242 1677721600 4294967295\n",
           1);
    return 0;
}

static int clean(void **state)
{
    fake_tree_remove(&tree);
    return 0;
}

static void test_list(void **state)
{
    test_result r = test_run((const char *[]){test_command(), "ps", NULL}, NULL, NULL);
    assert_int_equal(r.exit_code, 0);
    assert_contains(r.out,
                    "nvidia:0  NVIDIA GeForce GTX 950, 0000:01:00.0, driver nvidia, drives a "
                    "display\n");
    assert_contains(r.out, "          1900 MiB of 2048 MiB used: 1750 MiB by 2 processes, 150 MiB "
                           "unexplained\n");
    assert_contains(r.out,
                    "          1 process more has it open; how much it holds is not known\n");
    assert_contains(r.out, "          64 MiB are kept by the driver for itself\n");
    assert_contains(r.out, "1600 MiB    3072 MiB  26 h  stopped   python (tensorflow)  nvml     "
                           "python train.py\n");
    assert_contains(r.out, "     ?  < 1024 MiB  26 h  sleeping  python               fd-only  ");
    assert_contains(r.out, "amd:0     AMD card 1002:744c, 0000:03:00.0, driver amdgpu\n");
    assert_contains(r.out, "          0 processes hold 0 B of it; how much is in use in all, no "
                           "driver tells\n");
    assert_contains(r.out, "RAM       8192 MiB of 16.0 GiB available");
    assert_contains(r.out, "can go    1600 MiB of the cards and 3072 MiB of RAM, if you close");
    assert_contains(r.out,
                    "  snug ps --end 4242     frees 1600 MiB of the card and 3072 MiB of RAM: "
                    "python (tensorflow), stopped (as by Ctrl-Z)");
    assert_string_equal(r.err, "");
    test_result_free(&r);
}

static void test_one_card(void **state)
{
    static const char *const names[] = {"1", "amd:0"};
    for (size_t i = 0; i < 2; i++) {
        test_result r = RUN("--gpu", names[i]);
        assert_int_equal(r.exit_code, 0);
        assert_contains(r.out, "amd:0");
        assert_null(strstr(r.out, "nvidia:0"));
        assert_null(strstr(r.out, "RAM       "));
        test_result_free(&r);
    }
    test_result r = RUN("--gpu", "7");
    assert_int_equal(r.exit_code, 2);
    assert_contains(r.err, "there is no card '7': the cards are 0 (nvidia:0) to 1 (amd:0)");
    test_result_free(&r);
}

static void test_json(void **state)
{
    test_result r = RUN("--json");
    assert_int_equal(r.exit_code, 0);
    json_t *json = json_loads(r.out, 0, NULL);
    assert_non_null(json);
    json_t *card = json_array_get(json_object_get(json, "gpus"), 0);
    assert_int_equal(json_integer_value(json_object_get(card, "unexplained_bytes")), 157286400);
    json_t *last = json_array_get(json_object_get(card, "processes"), 2);
    assert_int_equal(json_integer_value(json_object_get(last, "pid")), 4300);
    assert_true(json_is_null(json_object_get(last, "bytes")));
    json_t *go = json_array_get(json_object_get(json, "can_go"), 0);
    assert_int_equal(json_integer_value(json_object_get(go, "frees_gpu_bytes")), 1677721600);
    assert_int_equal(json_integer_value(json_object_get(go, "frees_bytes")),
                     1677721600 + (int64_t)3072 * 1048576);
    json_decref(json);
    test_result_free(&r);
    r = RUN("--json", "--gpu", "amd:0");
    json = json_loads(r.out, 0, NULL);
    assert_int_equal(json_array_size(json_object_get(json, "gpus")), 1);
    json_decref(json);
    test_result_free(&r);
}

static void test_end_in_words(void **state)
{
    test_result r = RUN("--end", "4242", "700", "4300", "99");
    assert_int_equal(r.exit_code, 1);
    assert_contains(r.out, "would end process 4242 (python (tensorflow))\n"
                           "          TERM, up to 10 s, then KILL; frees 1600 MiB of the card and "
                           "3072 MiB of RAM\n");
    assert_contains(r.out, "process 700 is not ended: Xorg shows the desktop");
    assert_contains(r.out, "process 4300 is not ended: it belongs to another user");
    assert_contains(r.out, "process 99: there is no such process");
    assert_contains(r.out, "Nothing was done. To do it: snug ps --yes --end 4242\n");
    test_result_free(&r);
    r = RUN("--end=4242,700", "--json");
    json_t *json = json_loads(r.out, 0, NULL);
    json_t *list = json_object_get(json, "processes");
    assert_true(json_is_false(json_object_get(json, "done")));
    assert_string_equal(json_string_value(json_object_get(json_array_get(list, 0), "verdict")),
                        "would-end");
    assert_string_equal(json_string_value(json_object_get(json_array_get(list, 1), "verdict")),
                        "refused");
    json_decref(json);
    test_result_free(&r);
    r = RUN("--yes", "--end", "4242");
    assert_int_equal(r.exit_code, 2);
    assert_contains(r.err, "another root");
    test_result_free(&r);
}

static void test_wrong_usage(void **state)
{
    static const struct {
        const char *arguments[4], *message;
    } cases[] = {
        {{"--jsno"}, "there is no option --jsno; did you mean --json?"},
        {{"--gpu"}, "--gpu needs a value"},
        {{"--end"}, "--end needs the numbers of processes"},
        {{"--end", "x1"}, "--end takes process numbers (at most 256), not 'x1'"},
        {{"--end=-4"}, "--end takes process numbers"},
        {{"--yes"}, "--yes belongs to --end"},
        {{"4242"}, "snug ps --end 4242 ends it"},
        {{"--watch", "--json"}, "--watch goes with the list only"},
        {{"--watch=0"}, "--watch takes seconds"},
        {{"--end", "1", "--gpu", "0"}, "--gpu chooses what is listed"},
    };
    for (size_t i = 0; i < SN_LEN(cases); i++) {
        const char *argv[8] = {test_command(), "ps"};
        memcpy(argv + 2, cases[i].arguments, sizeof cases[i].arguments);
        test_result r = test_run(argv, NULL, NULL);
        assert_int_equal(r.exit_code, 2);
        assert_contains(r.err, cases[i].message);
        assert_string_equal(r.out, "");
        test_result_free(&r);
    }
    test_result r = RUN("--root", "/nonexistent/x");
    assert_int_equal(r.exit_code, 4);
    assert_contains(r.err, "/nonexistent/x cannot be opened");
    test_result_free(&r);
    r = RUN("--help");
    assert_int_equal(r.exit_code, 0);
    assert_contains(r.out, "--end PID...");
    test_result_free(&r);
}

static void test_watch(void **state)
{
    test_result r =
        test_run_shell("\"$SNUG\" ps --watch=0.1 | head -n 60 | grep -c '^nvidia:0'", NULL);
    assert_true(strtol(r.out, NULL, 10) >= 2);
    test_result_free(&r);
}

/* This machine, whatever it has: the RAM part, and a child of the test that is ended for good. */
static void test_real(void **state)
{
    unsetenv("SNUG_ROOT");
    setenv("SNUG_NVML", "", 1);
    test_result r = RUN("--json");
    assert_int_equal(r.exit_code, 0);
    json_t *json = json_loads(r.out, 0, NULL);
    json_t *ram = json_object_get(json, "ram");
    assert_true(json_integer_value(json_object_get(ram, "total_bytes")) > 1 << 20);
    assert_true(json_array_size(json_object_get(ram, "processes")) > 0);
    json_decref(json);
    test_result_free(&r);
    pid_t pid = fork();
    if (!pid) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            pause();
    }
    char text[16];
    snprintf(text, sizeof text, "%d", (int)pid);
    r = RUN("--end", text);
    assert_int_equal(r.exit_code, 0);
    assert_contains(r.out, "Nothing was done");
    assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
    test_result_free(&r);
    r = RUN("--end", text, "--yes");
    assert_int_equal(r.exit_code, 0);
    assert_contains(r.out, "ended\n");
    assert_contains(r.out, "freed  ");
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
    test_result_free(&r);
    assert_no_leak();
}

int main(void)
{
    setenv("SNUG", test_command(), 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_list),        cmocka_unit_test(test_one_card),
        cmocka_unit_test(test_json),        cmocka_unit_test(test_end_in_words),
        cmocka_unit_test(test_wrong_usage), cmocka_unit_test(test_watch),
        cmocka_unit_test(test_real),
    };
    return cmocka_run_group_tests(tests, make, clean);
}
