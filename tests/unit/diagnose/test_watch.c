/* SPDX-License-Identifier: Apache-2.0
 *
 * A watched run without a run: samples made by hand go to the judge; procfs is a folder of the
 * test.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "diagnose/watch.h"
#include "support/support.h"

typedef struct run {
    snug_watch *w;
    snug_diagnosis *d;
    char root[SN_TEST_PATH];
} run;

static void put(const run *r, const char *name, const char *text)
{
    char path[SN_TEST_PATH];
    test_write_text(test_path(path, r->root, name), text);
}

static void begin(run *r)
{
    snug_error err = SNUG_ERROR_INIT;
    test_make_folder(r->root);
    put(r, "proc/100/stat", "100 (python) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 0 0 1 0 500 0 0\n");
    put(r, "proc/100/cgroup", "0::/job\n");
    put(r, "proc/meminfo", "MemTotal: 25165824 kB\nMemAvailable: 20000000 kB\n");
    put(r, "proc/vmstat", "oom_kill 3\n");
    put(r, "sys/fs/cgroup/job/memory.current", "536870912\n");
    put(r, "sys/fs/cgroup/job/memory.max", "1073741824\n");
    put(r, "sys/fs/cgroup/job/memory.events", "oom 0\noom_kill 7\n");
    snug_watch_options options = SNUG_WATCH_OPTIONS_INIT;
    options.root = r->root;
    assert_ok(snug_watch_new(&r->w, 100, &options, &err), &err);
    assert_ok(snug_diagnosis_new(&r->d, NULL, &err), &err);
    assert_int_equal(sn_watch_limit(r->w), SN_GIB);
}

/* A sample: seconds, MiB of the tree, steps counted, MiB read, MiB of address space. */
static void sample(run *r, double seconds, double mib, uint64_t steps, double read, double address)
{
    sn_sample s = {.seconds = seconds,
                   .tree_bytes = (uint64_t)(mib * (double)SN_MIB),
                   .main_bytes = (uint64_t)(mib * (double)SN_MIB),
                   .virtual_bytes = (uint64_t)(address * (double)SN_MIB),
                   .read_bytes = (uint64_t)(read * (double)SN_MIB),
                   .steps = steps,
                   .n_processes = 1};
    assert_true(SN_VEC_PUSH(SN_TAG_DIAGNOSE, &r->w->samples, s));
    if (s.tree_bytes > r->w->peak_bytes) {
        r->w->peak_bytes = s.tree_bytes;
        r->w->peak_seconds = seconds;
    }
}

static void process(run *r, int pid, bool main, double mib)
{
    sn_seen s = {.pid = pid, .name = "python", .main = main};
    s.peak_bytes = s.bytes_at_peak = (uint64_t)(mib * (double)SN_MIB);
    assert_true(SN_VEC_PUSH(SN_TAG_DIAGNOSE, &r->w->seen, s));
}

static const snug_cause *end(run *r, int exit_code, int signal)
{
    snug_error err = SNUG_ERROR_INIT;
    snug_watch_end how = {exit_code, signal, 0};
    assert_ok(snug_watch_finish(r->w, r->d, &how, "python train.py", &err), &err);
    assert_ok(snug_diagnosis_finish(r->d, &err), &err);
    return snug_diagnosis_cause(r->d, 0);
}

static void kernel_kills(run *r)
{
    put(r, "sys/fs/cgroup/job/memory.events", "oom 1\noom_kill 8\n");
}

static void finish(run *r)
{
    snug_watch_free(r->w);
    snug_diagnosis_free(r->d);
    test_remove(r->root);
    assert_no_leak();
}

static void a_leak_by_iterations(void **state)
{
    run r;
    begin(&r);
    for (int i = 0; i < 20; i++) /* libraries are loaded */
        sample(&r, i * 0.1, 20 * i, 0, 0, 0);
    for (int i = 0; i < 60; i++)
        sample(&r, 180 + i, 400 + 10 * i, (uint64_t)i * 5, 0, 0);
    kernel_kills(&r);
    const snug_cause *c = end(&r, 0, SIGKILL);
    assert_int_equal(c->id, SNUG_CAUSE_LEAK_HISTORY);
    assert_true(c->decisive && c->confidence > 0.8);
    assert_contains(c->explanation, "Killed by the kernel at 990 MiB of 1.0 GiB");
    assert_contains(c->explanation, "growing 2.0 MiB an iteration since minute 3");
    assert_contains(snug_watch_summary(r.w), "killed by signal 9 (KILL)");
    finish(&r);
}

static void a_leak_by_time(void **state)
{
    run r;
    begin(&r);
    for (int i = 0; i < 80; i++)
        sample(&r, i * 15, 100 + 11 * i, 0, 0, 0);
    kernel_kills(&r);
    const snug_cause *c = end(&r, 137, 0);
    assert_int_equal(c->id, SNUG_CAUSE_LEAK_HISTORY);
    assert_contains(c->explanation, "growing 44 MiB a minute");
    finish(&r);
}

static void workers_that_hold_it(void **state)
{
    run r;
    begin(&r);
    for (int i = 0; i < 20; i++)
        sample(&r, i * 0.05, 50 * i, 0, 0, 0);
    process(&r, 100, true, 150);
    for (int i = 1; i <= 4; i++)
        process(&r, 100 + i, false, 190 + i);
    kernel_kills(&r);
    const snug_cause *c = end(&r, 1, 0);
    assert_int_equal(c->id, SNUG_CAUSE_HOST_LOADER);
    assert_contains(c->explanation, "4 worker processes hold 770 MiB of the 950 MiB");
    assert_contains(c->explanation, "pid 104) holds 194 MiB");
    finish(&r);
}

static void a_set_that_is_read_and_kept(void **state)
{
    run r;
    begin(&r);
    for (int i = 0; i < 20; i++)
        sample(&r, i * 0.05, 20 + 50 * i, 0, 12 * i, 30 + 50 * i);
    kernel_kills(&r);
    const snug_cause *c = end(&r, 0, SIGKILL);
    assert_int_equal(c->id, SNUG_CAUSE_DATASET);
    assert_contains(c->explanation, "228 MiB were read from files and memory grew by 950 MiB");
    finish(&r);
}

static void one_array_that_is_filled(void **state)
{
    run r;
    begin(&r);
    sample(&r, 0, 20, 0, 0, 100);
    for (int i = 0; i < 20; i++)
        sample(&r, 0.1 + i * 0.05, 20 + 50 * i, 0, 0, 1400);
    kernel_kills(&r);
    assert_int_equal(end(&r, 0, SIGKILL)->id, SNUG_CAUSE_DATASET);
    finish(&r);
}

static void an_address_space_limit(void **state)
{
    run r;
    begin(&r);
    sample(&r, 0, 20, 0, 0, 100);
    r.w->address_limit = 300 * SN_MIB;
    r.w->vm_peak = 250 * SN_MIB;
    snug_watch_output(r.w, "Traceback\nMemoryError\n", 22);
    const snug_cause *c = end(&r, 1, 0);
    assert_int_equal(c->id, SNUG_CAUSE_CAP);
    assert_contains(c->explanation, "limit of 300 MiB");
    finish(&r);
}

static void shared_memory_is_full(void **state)
{
    run r;
    begin(&r);
    sample(&r, 0, 20, 0, 0, 100);
    r.w->shm_total = 64 * SN_MIB;
    r.w->samples.at[0].shm_bytes = 64 * SN_MIB;
    const snug_cause *c = end(&r, 0, SIGBUS);
    assert_int_equal(c->id, SNUG_CAUSE_SHM);
    assert_contains(c->explanation, "64 MiB of 64 MiB");
    finish(&r);
}

/* Runs that memory did not end: nothing is made up. */
static void calm_ends(void **state)
{
    static const struct {
        int exit_code, signal;
        double top; /* MiB reached within two seconds of loading, then flat */
    } cases[] = {{0, 0, 400}, {1, 0, 400}, {0, SIGTERM, 300}, {0, SIGSEGV, 20}, {130, 0, 900}};
    for (size_t k = 0; k < SN_LEN(cases); k++) {
        run r;
        begin(&r);
        for (int i = 0; i < 40; i++)
            sample(&r, i * 0.05, cases[k].top * SN_MIN(i, 30) / 30, (uint64_t)SN_MAX(i - 30, 0),
                   10 * i, 0);
        const snug_cause *c = end(&r, cases[k].exit_code, cases[k].signal);
        assert_int_equal(c->id, SNUG_CAUSE_UNKNOWN);
        assert_true(c->confidence <= 0);
        finish(&r);
    }
}

static void a_kill_by_somebody(void **state)
{
    run r;
    begin(&r);
    sample(&r, 0, 20, 0, 0, 100);
    const snug_cause *c = end(&r, 0, SIGKILL);
    assert_int_equal(c->id, SNUG_CAUSE_UNKNOWN);
    assert_contains(c->explanation, "somebody or a batch system");
    finish(&r);
}

static void counters_in_the_output(void **state)
{
    static const struct {
        const char *text;
        uint64_t steps;
    } cases[] = {
        {"step 1\nstep 2\nstep 9\n", 8},
        {"Epoch 1/2\n 1/50 [>..]\r 10/50 [=>.]\r 50/50 [==]\nEpoch 2/2\n 1/50\r 31/50\r", 80},
        {"iter: 100 loss 2.5\niter: 200 loss 2.4\n", 100},
        {"loss 0.5\nloss 0.4\n", 0},
        {"2024/11/30 12:00:01\n2024/11/30 12:00:02\n", 0}};
    for (size_t i = 0; i < SN_LEN(cases); i++) {
        run r;
        begin(&r);
        for (const char *p = cases[i].text; *p; p++) /* any cut is right */
            snug_watch_output(r.w, p, 1);
        uint64_t most = 0;
        for (size_t k = 0; k < SN_WATCH_COUNTERS; k++)
            most = SN_MAX(most, r.w->counters[k].sum);
        if (most != cases[i].steps)
            fail_msg("'%s': %llu steps", cases[i].text, (unsigned long long)most);
        finish(&r);
    }
}

/* ---- procfs ---- */

static void a_tree_of_processes(void **state)
{
    run r;
    snug_error err = SNUG_ERROR_INIT;
    begin(&r);
    put(&r, "proc/100/status",
        "VmPeak: 900000 kB\nVmSize: 800000 kB\nVmHWM: 409600 kB\nVmRSS: "
        "307200 kB\nRssAnon: 204800 kB\nRssShmem: 102400 kB\n");
    put(&r, "proc/100/io", "rchar: 5000\nwchar: 1\n");
    put(&r, "proc/100/limits",
        "Limit  Soft Hard Units\nMax data size  unlimited unlimited bytes\n"
        "Max address space         2147483648           unlimited bytes\n");
    /* a worker with a name that tries to be two fields; its pid is lower than its parent's */
    put(&r, "proc/50/stat", "50 (a) R 9) S 100 1 1 0 -1 0 0 0 0 0 0 0 0 0 0 0 1 0 600 0 0\n");
    put(&r, "proc/50/status", "VmRSS: 204800 kB\nRssAnon: 102400 kB\nRssShmem: 102400 kB\n");
    put(&r, "proc/60/stat", "60 (zombie) Z 100 1 1 0 -1 0 0 0 0 0 0 0 0 0 0 0 1 0 600 0 0\n");
    put(&r, "proc/70/stat", "70 (other) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 0 0 1 0 600 0 0\n");
    put(&r, "proc/70/status", "VmRSS: 9999999 kB\n");
    put(&r, "proc/80/stat", "no stat at all");
    assert_ok(snug_watch_sample(r.w, &err), &err);
    assert_int_equal(r.w->tree.n, 2);
    assert_int_equal(r.w->tree.at[0].pid, 100);
    assert_string_equal(r.w->tree.at[1].name, "a) R 9");
    const sn_sample *s = &r.w->samples.at[0];
    /* 200 private and 100 shared, and 100 private of the worker: shared pages count once */
    assert_int_equal(s->tree_bytes, 400 * SN_MIB);
    assert_int_equal(s->main_bytes, 300 * SN_MIB);
    assert_int_equal(s->read_bytes, 5000);
    assert_int_equal(r.w->address_limit, 2 * SN_GIB);
    assert_int_equal(r.w->vm_peak, 900000 * SN_KIB);
    /* what the group was charged bounds what its processes can hold */
    put(&r, "sys/fs/cgroup/job/memory.current", "367001600\n");
    assert_ok(snug_watch_sample(r.w, &err), &err);
    assert_int_equal(r.w->samples.at[1].tree_bytes, 350 * SN_MIB);
    /* the process goes away: no error, no sample */
    char path[SN_TEST_PATH];
    test_remove(test_path(path, r.root, "proc/100"));
    test_remove(test_path(path, r.root, "proc/50"));
    assert_ok(snug_watch_sample(r.w, &err), &err);
    assert_int_equal(r.w->samples.n, 2);
    assert_int_equal(end(&r, 0, 0)->id, SNUG_CAUSE_UNKNOWN);
    finish(&r);
}

static void control_groups(void **state)
{
    run r;
    uint64_t v;
    sn_cgroup g;
    begin(&r);
    /* version 1, in a container: the host's path does not exist here, the mount's root does */
    put(&r, "proc/200/cgroup", "9:name=systemd:/\n4:memory:/docker/abc\n0::/docker/abc\n");
    put(&r, "sys/fs/cgroup/memory/memory.usage_in_bytes", "500\n");
    put(&r, "sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    put(&r, "sys/fs/cgroup/memory/memory.oom_control",
        "oom_kill_disable 0\nunder_oom 0\noom_kill 4\n");
    sn_cgroup_of(&g, r.root, 200);
    assert_string_equal(g.path, "/sys/fs/cgroup/memory");
    assert_false(sn_cgroup_limit(&g, r.root, &v));
    assert_true(sn_cgroup_usage(&g, r.root, &v) && v == 500);
    assert_true(sn_cgroup_kills(&g, r.root, &v) && v == 4);
    /* version 2: the limit of a group above counts */
    put(&r, "proc/201/cgroup", "0::/job/step/worker\n");
    put(&r, "sys/fs/cgroup/job/step/worker/memory.current", "7\n");
    put(&r, "sys/fs/cgroup/job/step/worker/memory.max", "max\n");
    put(&r, "sys/fs/cgroup/job/step/memory.max", "4096\n");
    sn_cgroup_of(&g, r.root, 201);
    assert_true(g.v2);
    assert_true(sn_cgroup_limit(&g, r.root, &v) && v == 4096);
    /* nothing to read */
    sn_cgroup_of(&g, r.root, 999);
    assert_string_equal(g.path, "");
    assert_false(sn_cgroup_usage(&g, r.root, &v));
    finish(&r);
}

/* ---- the page ---- */

static void a_page_of_its_own(void **state)
{
    run r;
    const char *html;
    snug_error err = SNUG_ERROR_INIT;
    begin(&r);
    for (int i = 0; i < 60; i++)
        sample(&r, i, 300 + 11 * i, (uint64_t)i * 5, 0, 0);
    process(&r, 100, true, 900);
    process(&r, 101, false, 9);
    memcpy(r.w->seen.at[1].name, "<b>", 4);
    kernel_kills(&r);
    end(&r, 0, SIGKILL);
    assert_ok(snug_watch_html(r.w, r.d, &html, &err), &err);
    assert_contains(html, "<polyline");
    assert_contains(html, "<title id='t'>Memory over time</title>");
    assert_contains(html, "Memory rises to 949 MiB");
    assert_contains(html, "limit 1024 MiB");
    assert_contains(html, "leak-history");
    assert_contains(html, "&lt;b&gt;");
    assert_null(strstr(html, "<b>"));
    assert_null(strstr(html, "http"));
    assert_null(strstr(html, "<script"));
    finish(&r);
}

/* Full is half as dense: memory stays bounded and the first and the latest moments stay. */
static void many_samples(void **state)
{
    run r;
    snug_error err = SNUG_ERROR_INIT;
    begin(&r);
    put(&r, "proc/100/status", "VmRSS: 1024 kB\n");
    for (int i = 0; i < SN_WATCH_SAMPLES + 100; i++)
        assert_ok(snug_watch_sample(r.w, &err), &err);
    assert_true(r.w->samples.n >= SN_WATCH_SAMPLES / 2 && r.w->samples.n < SN_WATCH_SAMPLES);
    assert_int_equal(r.w->keep_every, 2);
    for (size_t i = 1; i < r.w->samples.n; i++)
        assert_true(r.w->samples.at[i].seconds >= r.w->samples.at[i - 1].seconds);
    end(&r, 0, 0);
    finish(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_leak_by_iterations),     cmocka_unit_test(a_leak_by_time),
        cmocka_unit_test(workers_that_hold_it),     cmocka_unit_test(a_set_that_is_read_and_kept),
        cmocka_unit_test(one_array_that_is_filled), cmocka_unit_test(an_address_space_limit),
        cmocka_unit_test(shared_memory_is_full),    cmocka_unit_test(calm_ends),
        cmocka_unit_test(a_kill_by_somebody),       cmocka_unit_test(counters_in_the_output),
        cmocka_unit_test(a_tree_of_processes),      cmocka_unit_test(control_groups),
        cmocka_unit_test(a_page_of_its_own),        cmocka_unit_test(many_samples),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
