/* SPDX-License-Identifier: Apache-2.0
 *
 * Ending processes: real children of this test, of which the right one ends and no other.
 */
#include "support/fake_tree.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpus/gpus.h"

enum { PLAIN, DEAF, XORG, FOREIGN };

/* A child that waits for signals; it is ready when this returns. */
static pid_t child(int kind)
{
    int ready[2];
    char byte;
    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    if (!pid) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        signal(SIGTERM, kind == DEAF ? SIG_IGN : SIG_DFL);
        if (kind == XORG)
            prctl(PR_SET_NAME, "Xorg");
        if (kind == FOREIGN && setuid(65534))
            _exit(1);
        if (write(ready[1], "r", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    assert_true(pid > 0);
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    return pid;
}

static bool alive(pid_t pid)
{
    return waitpid(pid, NULL, WNOHANG) == 0;
}

static void kill_child(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static snug_gpus *look(void)
{
    snug_gpus_options o = SNUG_GPUS_OPTIONS_INIT;
    snug_error err = SNUG_ERROR_INIT;
    snug_gpus *gpus;
    o.nvml = "";
    assert_ok(snug_gpus_new(&gpus, &o, &err), &err);
    return gpus;
}

/* Generous: only a process that is deaf to TERM waits so long. */
#define PATIENT 60000

static void end(snug_gpus_target *targets, size_t n, bool yes, uint32_t wait_ms)
{
    snug_gpus *gpus = look();
    snug_gpus_end_options o = SNUG_GPUS_END_OPTIONS_INIT;
    snug_error err = SNUG_ERROR_INIT;
    o.yes = yes;
    o.wait_ms = wait_ms;
    o.kill_wait_ms = PATIENT;
    assert_ok(snug_gpus_end(targets, n, gpus, &o, &err), &err);
    snug_gpus_free(gpus);
}

static void refused(pid_t pid, const char *why)
{
    snug_gpus_target dry = {.pid = pid}, real = {.pid = pid};
    end(&dry, 1, false, PATIENT);
    assert_int_equal(dry.verdict, SNUG_GPUS_REFUSED);
    assert_contains(dry.text, why);
    end(&real, 1, true, PATIENT);
    assert_int_equal(real.verdict, SNUG_GPUS_REFUSED);
    assert_string_equal(real.text, dry.text);
}

static void test_dry_run(void **state)
{
    pid_t pid = child(PLAIN);
    snug_gpus_target t = {.pid = pid};
    end(&t, 1, false, PATIENT);
    assert_int_equal(t.verdict, SNUG_GPUS_WOULD_END);
    assert_int_equal(t.card_bytes, 0);
    assert_true(t.host_bytes > 0 && t.host_bytes != SNUG_BYTES_UNKNOWN);
    assert_true(alive(pid));
    kill_child(pid);
    assert_no_leak();
}

static void test_the_right_one(void **state)
{
    pid_t before = child(PLAIN), pid = child(PLAIN), after = child(PLAIN);
    snug_gpus_target t = {.pid = pid};
    end(&t, 1, true, PATIENT);
    assert_int_equal(t.verdict, SNUG_GPUS_ENDED);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
    assert_true(alive(before));
    assert_true(alive(after));
    kill_child(before);
    kill_child(after);
    assert_no_leak();
}

static void test_deaf_to_term(void **state)
{
    pid_t pid = child(DEAF);
    snug_gpus_target t = {.pid = pid};
    end(&t, 1, true, 100);
    assert_int_equal(t.verdict, SNUG_GPUS_KILLED);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    assert_no_leak();
}

static void test_stopped(void **state)
{
    pid_t pid = child(PLAIN);
    kill(pid, SIGSTOP);
    waitpid(pid, NULL, WUNTRACED);
    snug_gpus_target t = {.pid = pid};
    end(&t, 1, true, PATIENT);
    assert_int_equal(t.verdict, SNUG_GPUS_ENDED);
    waitpid(pid, NULL, 0);
    assert_no_leak();
}

/* The number is of another process than the one that was meant: it is left alone. */
static void test_reused_number(void **state)
{
    pid_t pid = child(PLAIN);
    snug_gpus *gpus = look();
    const sn_gpus_proc *seen = sn_gpus_find(gpus, pid);
    assert_non_null(seen);
    uint64_t start = seen->start_ticks;
    snug_gpus_free(gpus);
    snug_gpus_target t = {.pid = pid, .start_ticks = start - 1};
    end(&t, 1, true, PATIENT);
    assert_int_equal(t.verdict, SNUG_GPUS_GONE);
    assert_contains(t.text, "left alone");
    assert_true(alive(pid));
    /* The snapshot's own memory of it counts as well. */
    gpus = look();
    sn_gpus_find(gpus, pid)->start_ticks = start + 5;
    t = (snug_gpus_target){.pid = pid};
    snug_gpus_end_options o = SNUG_GPUS_END_OPTIONS_INIT;
    snug_error err = SNUG_ERROR_INIT;
    o.yes = true;
    assert_ok(snug_gpus_end(&t, 1, gpus, &o, &err), &err);
    assert_int_equal(t.verdict, SNUG_GPUS_GONE);
    assert_true(alive(pid));
    snug_gpus_free(gpus);
    /* With the right start time it is ended. */
    t = (snug_gpus_target){.pid = pid, .start_ticks = start};
    end(&t, 1, true, PATIENT);
    assert_int_equal(t.verdict, SNUG_GPUS_ENDED);
    waitpid(pid, NULL, 0);
    assert_no_leak();
}

static void test_gone(void **state)
{
    pid_t pid = child(PLAIN);
    kill_child(pid);
    for (int yes = 0; yes < 2; yes++) {
        snug_gpus_target t[3] = {{.pid = pid}, {.pid = 0}, {.pid = INT64_MAX}};
        end(t, 3, yes, PATIENT);
        assert_int_equal(t[0].verdict, SNUG_GPUS_GONE);
        assert_true(t[1].verdict == SNUG_GPUS_GONE || t[1].verdict == SNUG_GPUS_REFUSED);
        assert_int_equal(t[2].verdict, SNUG_GPUS_GONE);
    }
    assert_no_leak();
}

static void test_refused(void **state)
{
    refused(1, "runs the machine");
    refused(getpid(), "this very command");
    if (getppid() > 1)
        refused(getppid(), "ancestor");
    pid_t xorg = child(XORG);
    refused(xorg, "desktop");
    assert_true(alive(xorg));
    kill_child(xorg);
    pid_t zombie = fork();
    if (!zombie)
        _exit(0);
    siginfo_t info;
    waitid(P_PID, (id_t)zombie, &info, WEXITED | WNOWAIT);
    char parent[64];
    snprintf(parent, sizeof parent, "parent, process %d", (int)getpid());
    refused(zombie, parent);
    waitpid(zombie, NULL, 0);
    assert_no_leak();
}

static void test_another_users(void **state)
{
    if (!getuid()) {
        pid_t pid = child(FOREIGN);
        refused(pid, "another user");
        assert_true(alive(pid));
        /* Whose processes may be ended can be said (sudo); then it is not root's turn. */
        snug_gpus *gpus = look();
        snug_gpus_end_options o = SNUG_GPUS_END_OPTIONS_INIT;
        snug_error err = SNUG_ERROR_INIT;
        o.uid = 65534;
        pid_t own = child(PLAIN);
        snug_gpus_target t[2] = {{.pid = pid}, {.pid = own}};
        assert_ok(snug_gpus_end(t, 2, gpus, &o, &err), &err);
        assert_int_equal(t[0].verdict, SNUG_GPUS_WOULD_END);
        assert_int_equal(t[1].verdict, SNUG_GPUS_REFUSED);
        snug_gpus_free(gpus);
        kill_child(own);
        kill_child(pid);
    }
    fake_tree tree;
    fake_tree_make(&tree);
    fake_process(&tree, &(fake_proc){.pid = 100, .uid = (int)getuid() + 1});
    fake_process(&tree, &(fake_proc){.pid = 101, .kernel = true});
    fake_process(&tree, &(fake_proc){.pid = 102, .command = "python3|-m|ipykernel_launcher"});
    fake_process(&tree, &(fake_proc){.pid = 103, .rss_pages = 1});
    fake_process(&tree, &(fake_proc){.pid = (int)getpid(), .parent = 103});
    snug_gpus_options o = SNUG_GPUS_OPTIONS_INIT;
    snug_error err = SNUG_ERROR_INIT;
    snug_gpus *gpus;
    o.root = tree.root;
    assert_ok(snug_gpus_new(&gpus, &o, &err), &err);
    snug_gpus_target t[4] = {{.pid = 100}, {.pid = 101}, {.pid = 102}, {.pid = 103}};
    assert_ok(snug_gpus_end(t, 4, gpus, NULL, &err), &err);
    assert_int_equal(t[0].verdict, SNUG_GPUS_REFUSED);
    assert_contains(t[0].text, "another user");
    assert_int_equal(t[1].verdict, SNUG_GPUS_REFUSED);
    assert_contains(t[1].text, "kernel");
    assert_int_equal(t[2].verdict, SNUG_GPUS_WOULD_END);
    assert_contains(t[2].text, "Jupyter");
    assert_int_equal(t[3].verdict, SNUG_GPUS_REFUSED);
    assert_contains(t[3].text, "ancestor");
    snug_gpus_end_options yes = SNUG_GPUS_END_OPTIONS_INIT;
    yes.yes = true;
    assert_fails(snug_gpus_end(t, 4, gpus, &yes, &err), SNUG_E_USAGE, &err);
    yes.struct_size = 1;
    assert_fails(snug_gpus_end(t, 4, gpus, &yes, &err), SNUG_E_USAGE, &err);
    snug_gpus_free(gpus);
    fake_tree_remove(&tree);
    assert_no_leak();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dry_run),       cmocka_unit_test(test_the_right_one),
        cmocka_unit_test(test_deaf_to_term),  cmocka_unit_test(test_stopped),
        cmocka_unit_test(test_reused_number), cmocka_unit_test(test_gone),
        cmocka_unit_test(test_refused),       cmocka_unit_test(test_another_users),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
