/* SPDX-License-Identifier: Apache-2.0
 *
 * `snug diagnose` as a person runs it. The runs are those of greedy.c, the program beside this
 * file; a control group and a small /dev/shm are made where this machine lets the test make them.
 */
#include <errno.h>
#include <fcntl.h>
#include <pty.h>
#include <signal.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/support.h"

static const char *greedy(void)
{
    return SNUG_BUILD_DIR "/tests/greedy";
}

/* Runs `snug diagnose [options] -- greedy ...` by a shell line; %s of the line are snug and greedy.
 */
static test_result run(const char *format)
{
    char script[1024];
    snprintf(script, sizeof script, format, test_command(), greedy());
    return test_run_shell(script, NULL);
}

/* "cause   whole-dataset (0.85): ..." of the answer on stderr. */
static void assert_cause(const test_result *r, const char *cause)
{
    char want[64];
    snprintf(want, sizeof want, "cause   %s", cause);
    assert_contains(r->err, want);
}

/* ---- what passes through ---- */

static void streams_are_unchanged(void **state)
{
    test_result r = run("%s diagnose -- %s echo");
    assert_int_equal(r.exit_code, 0);
    assert_int_equal(r.out_len, 256);
    for (int i = 0; i < 256; i++)
        assert_int_equal((unsigned char)r.out[i], i);
    assert_true(sn_str_starts(r.err, "to stderr\r\x1b[31mred\x1b[0m\n"));
    test_result_free(&r);
    /* both into one file: in the order of writing */
    r = run("%s diagnose --quiet -- sh -c 'echo 1; echo 2 >&2; echo 3; echo 4 >&2' 2>&1; : %s");
    assert_string_equal(r.out, "1\n2\n3\n4\n");
    test_result_free(&r);
    r = run("echo to the command | %s diagnose --quiet -- cat; : %s");
    assert_string_equal(r.out, "to the command\n");
    test_result_free(&r);
}

static void exit_codes_and_signals_are_unchanged(void **state)
{
    static const struct {
        const char *line;
        int code;
    } cases[] = {
        {"%s diagnose -- %s fail 3", 3},        {"%s diagnose -- %s fail 255", 255},
        {"%s diagnose -- %s signal 15", 143},   {"%s diagnose -- %s signal 11", 139},
        {"%s diagnose -- %s-is-not-here", 127}, {"%s diagnose -- /etc/passwd; exit $?; : %s", 126}};
    for (size_t i = 0; i < SN_LEN(cases); i++) {
        test_result r = run(cases[i].line);
        assert_int_equal(r.exit_code, cases[i].code);
        test_result_free(&r);
    }
    test_result r = run("%s diagnose -- %s fail 3");
    assert_contains(r.err, "ValueError");
    assert_contains(r.err, "memory played no part");
    test_result_free(&r);
}

/* Starts snug with its stdout a pipe, waits until the command is ready, sends the signal. */
static void signals_are_forwarded(void **state)
{
    static const int numbers[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1};
    for (size_t i = 0; i < SN_LEN(numbers); i++) {
        int out[2], status;
        char ready[8];
        assert_int_equal(pipe(out), 0);
        pid_t pid = fork();
        if (!pid) {
            dup2(out[1], STDOUT_FILENO);
            dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
            close(out[0]);
            execl(test_command(), "snug", "diagnose", "--", greedy(), "wait", (char *)NULL);
            _exit(99);
        }
        close(out[1]);
        assert_true(read(out[0], ready, sizeof ready) > 0);
        kill(pid, numbers[i]);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 128 + numbers[i]);
        close(out[0]);
    }
}

/* With a terminal as stdout the command has one too, and its bytes come through as they are. */
static void a_terminal_stays_one(void **state)
{
    int master, status;
    char bytes[4096];
    size_t n = 0;
    pid_t pid = forkpty(&master, NULL, NULL, NULL);
    if (pid < 0)
        skip();
    if (!pid) {
        execl(test_command(), "snug", "diagnose", "--quiet", "--", greedy(), "echo", (char *)NULL);
        _exit(99);
    }
    for (ssize_t got; (got = read(master, bytes + n, sizeof bytes - 1 - n)) > 0;)
        n += (size_t)got;
    bytes[n] = 0;
    waitpid(pid, &status, 0);
    assert_int_equal(WEXITSTATUS(status), 7); /* isatty(1) */
    assert_non_null(memmem(bytes, n, "\x1b[31mred\x1b[0m\r\n", 14));
    close(master);
}

static void a_reader_that_leaves(void **state)
{
    /* the command must die of SIGPIPE as it would without us, not run on for ever */
    test_result r = run("timeout 20 %s diagnose --quiet -- yes | head -c 100000 | wc -c; : %s");
    assert_string_equal(r.out, "100000\n");
    test_result_free(&r);
}

/* ---- what is said about a run ---- */

static void a_leak(void **state)
{
    test_result r = run("%s diagnose -- %s leak 4 60 20");
    assert_int_equal(r.exit_code, 0);
    assert_cause(&r, "leak-history");
    assert_contains(r.err, "MiB an iteration");
    test_result_free(&r);
}

static void an_address_space_limit(void **state)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip(); /* sanitizers need terabytes of address space */
#endif
    test_result r = run("ulimit -v 300000; %s diagnose -- %s limit 1000");
    assert_int_equal(r.exit_code, 1);
    assert_cause(&r, "growth-or-cap");
    assert_contains(r.err, "ulimit -v");
    test_result_free(&r);
}

static void no_trouble(void **state)
{
    test_result r = run("%s diagnose -- %s fine 60");
    assert_int_equal(r.exit_code, 0);
    assert_contains(r.err, "no sign of trouble with memory");
    test_result_free(&r);
    r = run("%s diagnose --quiet -- %s fine 1");
    assert_string_equal(r.err, "");
    test_result_free(&r);
    r = run("%s diagnose -- %s signal 9");
    assert_int_equal(r.exit_code, 137);
    assert_cause(&r, "unknown");
    test_result_free(&r);
}

/* A folder for a control group of 150 MiB; false where none can be made. */
static bool make_group(char *folder, size_t n)
{
    static const char *const bases[] = {"/sys/fs/cgroup/memory", "/sys/fs/cgroup"};
    static const char *const files[] = {"memory.limit_in_bytes", "memory.max"};
    for (size_t i = 0; i < SN_LEN(bases); i++) {
        char file[256];
        snprintf(folder, n, "%s/snug-test-%d", bases[i], (int)getpid());
        if (mkdir(folder, 0755))
            continue;
        snprintf(file, sizeof file, "%s/%s", folder, files[i]);
        FILE *f = fopen(file, "w");
        bool good = f && fputs("157286400", f) >= 0;
        good = f && !fclose(f) && good;
        if (good)
            return true;
        rmdir(folder);
    }
    return false;
}

static void killed_by_a_control_group(void **state)
{
    static const struct {
        const char *arguments, *cause;
        int code;
    } cases[] = {{"leak 2 1000 15", "leak-history", 137},
                 {"load %s/big 20", "whole-dataset", 137},
                 {"zeros 400", "whole-dataset", 137},
                 {"workers 4 100", "host-loader", 1}};
    char group[128], root[SN_TEST_PATH], path[SN_TEST_PATH];
    if (!make_group(group, sizeof group)) {
        print_message("skipped: no control group can be made here\n");
        skip();
    }
    test_make_folder(root);
    char *big = sn_alloc(SN_TAG_TEST, 20 << 20);
    assert_non_null(big);
    test_write(test_path(path, root, "big"), big, 20 << 20);
    sn_free(big);
    for (size_t i = 0; i < SN_LEN(cases); i++) {
        char arguments[SN_TEST_PATH + 64], script[2 * SN_TEST_PATH + 512];
        snprintf(arguments, sizeof arguments, cases[i].arguments, root);
        snprintf(script, sizeof script, "echo $$ > %s/cgroup.procs && exec %s diagnose -- %s %s",
                 group, test_command(), greedy(), arguments);
        test_result r = test_run_shell(script, NULL);
        if (r.exit_code != cases[i].code)
            fail_msg("%s: exit code %d: %s", arguments, r.exit_code, r.err);
        assert_cause(&r, cases[i].cause);
        assert_contains(r.err, "of 150 MiB");
        test_result_free(&r);
    }
    test_remove(root);
    for (int i = 0; i < 100 && rmdir(group) && errno == EBUSY; i++)
        usleep(20000);
    assert_no_leak();
}

static void shared_memory_that_is_full(void **state)
{
    test_result r = test_run_shell("unshare -m mount -t tmpfs -o size=1M none /dev/shm", NULL);
    bool can = r.exit_code == 0;
    test_result_free(&r);
    if (!can) {
        print_message("skipped: no mount namespace can be made here\n");
        skip();
    }
    r = run("unshare -m sh -c 'mount -t tmpfs -o size=40M none /dev/shm && exec %s diagnose -- %s "
            "shm /dev/shm/x 100'");
    assert_int_equal(r.exit_code, 128 + SIGBUS);
    assert_cause(&r, "shared-memory");
    assert_contains(r.err, "40 MiB of 40 MiB");
    test_result_free(&r);
}

static void a_page_and_json_of_a_run(void **state)
{
    char root[SN_TEST_PATH], path[SN_TEST_PATH], line[2 * SN_TEST_PATH];
    test_make_folder(root);
    test_path(path, root, "run.html");
    snprintf(line, sizeof line, "%s diagnose --json --report %s -- %s leak 4 40 20", test_command(),
             path, greedy());
    test_result r = test_run_shell(line, NULL);
    assert_int_equal(r.exit_code, 0);
    assert_contains(r.err, "step 40 ");
    json_t *j = json_loads(r.out, JSON_DISABLE_EOF_CHECK, NULL);
    assert_non_null(j);
    assert_string_equal(json_string_value(json_object_get(
                            json_array_get(json_object_get(j, "causes"), 0), "cause")),
                        "leak-history");
    json_t *run_of = json_object_get(j, "run");
    assert_int_equal(json_integer_value(json_object_get(run_of, "exit_code")), 0);
    double cpu = json_real_value(json_object_get(run_of, "watch_cpu_seconds"));
    double seconds = json_real_value(json_object_get(run_of, "seconds"));
    assert_true(cpu >= 0 && seconds > 0);
    json_decref(j);
    char *html = test_read(path, NULL);
    assert_contains(html, "<polyline");
    assert_contains(html, "leak-history");
    sn_free(html);
    test_result_free(&r);
    test_remove(root);
    assert_no_leak();
}

/* ---- files and the kernel's log ---- */

static void files(void **state)
{
    test_result r = run("%s diagnose tests/diagnose_sources/cache_ram.py; : %s");
    assert_contains(r.out, "cause   shuffle-or-cache-buffer (0.75)");
    assert_contains(r.out, "seen    cache_ram.py:14  ds = ds.cache()");
    assert_contains(r.out, "more    snug help shuffle-or-cache-buffer");
    test_result_free(&r);
    r = run("%s diagnose tests/diagnose_sources/sound_tfdata.py; : %s");
    assert_int_equal(r.exit_code, 0);
    assert_contains(r.out, "cause   none found");
    test_result_free(&r);
    r = run(
        "echo 'RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 10.00 GiB "
        "total capacity; 1.50 GiB already allocated; 15.00 MiB free; 2.00 GiB reserved in total "
        "by PyTorch)' | %s diagnose --json -; : %s");
    json_t *j = json_loads(r.out, JSON_DISABLE_EOF_CHECK, NULL);
    assert_non_null(j);
    assert_string_equal(json_string_value(json_object_get(
                            json_array_get(json_object_get(j, "causes"), 0), "cause")),
                        "other-process");
    json_decref(j);
    test_result_free(&r);
}

static void wrong_usage(void **state)
{
    static const struct {
        const char *line, *words;
        int code;
    } cases[] = {{"%s diagnose --reprot x; exit $?; : %s", "did you mean --report?", 2},
                 {"%s diagnose --report; exit $?; : %s", "--report needs a value", 2},
                 {"%s diagnose --report x.html a.log; exit $?; : %s", "--report draws a run", 2},
                 {"%s diagnose a.log -- x; exit $?; : %s", "both a file (a.log) and a command", 2},
                 {"%s diagnose --; exit $?; : %s", "no command after --", 2},
                 {"%s diagnose no-such.log; exit $?; : %s", "no-such.log", 4},
                 {"%s diagnose tests; exit $?; : %s", "tests is a folder", 4},
                 {"%s diagnoze; exit $?; : %s", "did you mean 'snug diagnose'?", 2}};
    for (size_t i = 0; i < SN_LEN(cases); i++) {
        test_result r = run(cases[i].line);
        assert_contains(r.err, cases[i].words);
        assert_int_equal(r.exit_code, cases[i].code);
        assert_string_equal(r.out, "");
        test_result_free(&r);
    }
}

static void kills(void **state)
{
    char root[SN_TEST_PATH], path[SN_TEST_PATH], line[SN_TEST_PATH + 256];
    test_make_folder(root);
    test_write_text(test_path(path, root, "proc/uptime"), "10000.50 3000.00\n");
    test_write_text(test_path(path, root, "dev/kmsg"),
                    "3,340,6400500000,-;Out of memory: Killed process 4242 (python3) "
                    "total-vm:31000000kB, anon-rss:24012390kB, file-rss:4kB, shmem-rss:0kB\n");
    snprintf(line, sizeof line, "%s diagnose --root %s", test_command(), root);
    test_result r = test_run_shell(line, NULL);
    assert_int_equal(r.exit_code, 0);
    assert_contains(r.out, "60 min ago");
    assert_contains(r.out, "4242     python3");
    assert_contains(r.out, "22.9 GiB");
    assert_contains(r.out, "snug diagnose -- python train.py");
    test_result_free(&r);
    snprintf(line, sizeof line, "%s diagnose --json --root %s", test_command(), root);
    r = test_run_shell(line, NULL);
    json_t *j = json_loads(r.out, JSON_DISABLE_EOF_CHECK, NULL);
    assert_non_null(j);
    json_t *kill_of = json_array_get(json_object_get(j, "kills"), 0);
    assert_int_equal(json_integer_value(json_object_get(kill_of, "pid")), 4242);
    json_decref(j);
    test_result_free(&r);
    test_remove(root);
    assert_no_leak();
}

static void help(void **state)
{
    test_result r = run("%s help out-of-memory; : %s");
    static const char *const causes[] = {
        "batch-too-large", "model-too-large",         "other-process", "whole-dataset",
        "host-loader",     "shuffle-or-cache-buffer", "shared-memory", "leak-graph",
        "leak-history",    "fragmentation",           "workspace",     "growth-or-cap",
        "graphdef-2gb",    "library-mismatch",        "corrupt-input"};
    for (size_t i = 0; i < SN_LEN(causes); i++) {
        char page[96], command[96];
        assert_contains(r.out, causes[i]);
        snprintf(command, sizeof command, "%%s help %s; : %%s", causes[i]);
        test_result p = run(command);
        snprintf(page, sizeof page, "snug diagnose");
        assert_int_equal(p.exit_code, 0);
        assert_contains(p.out, page);
        test_result_free(&p);
    }
    test_result_free(&r);
    /* what the pages show is what the commands print */
    char script[2 * SN_TEST_PATH];
    snprintf(script, sizeof script, "%s/tools/howto.sh --check %s", SNUG_SOURCE_DIR,
             test_command());
    r = test_run_shell(script, NULL);
    if (r.exit_code)
        fail_msg("%s", r.out);
    test_result_free(&r);
    r = run("%s help no such trouble; : %s");
    assert_contains(r.err, "no verb and no page");
    test_result_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams_are_unchanged),
        cmocka_unit_test(exit_codes_and_signals_are_unchanged),
        cmocka_unit_test(signals_are_forwarded),
        cmocka_unit_test(a_terminal_stays_one),
        cmocka_unit_test(a_reader_that_leaves),
        cmocka_unit_test(a_leak),
        cmocka_unit_test(an_address_space_limit),
        cmocka_unit_test(no_trouble),
        cmocka_unit_test(killed_by_a_control_group),
        cmocka_unit_test(shared_memory_that_is_full),
        cmocka_unit_test(a_page_and_json_of_a_run),
        cmocka_unit_test(files),
        cmocka_unit_test(wrong_usage),
        cmocka_unit_test(kills),
        cmocka_unit_test(help),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
