/* SPDX-License-Identifier: Apache-2.0
 *
 * test_host.c - the machine as /proc and /sys describe it, and fake ones with control groups.
 */
#include "support/support.h"

#include "base/host.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

static char root[SN_TEST_PATH];

static int setup(void **state)
{
    test_make_folder(root);
    return 0;
}

static int teardown(void **state)
{
    test_remove(root);
    return 0;
}

static void put(const char *name, const char *text)
{
    char path[SN_TEST_PATH];
    test_write_text(test_path(path, root, name), text);
}

static void put_machine(const char *groups)
{
    put("proc/meminfo", "MemTotal:       8000000 kB\nMemFree:         100 kB\n"
                        "MemAvailable:   6000000 kB\n");
    put("proc/self/cgroup", groups);
}

static void expect(uint64_t total, uint64_t available)
{
    snug_error err = SNUG_ERROR_INIT;
    sn_host_memory memory;
    assert_ok(sn_host_memory_at(&memory, root, &err), &err);
    assert_int_equal(memory.total_bytes, total);
    assert_int_equal(memory.available_bytes, available);
}

static void without_groups_the_machine_counts(void **state)
{
    put("proc/meminfo", "MemTotal:       8000000 kB\nMemAvailable:   6000000 kB\n");
    expect(8000000 * SN_KIB, 6000000 * SN_KIB);
    put_machine("0::/\n");
    expect(8000000 * SN_KIB, 6000000 * SN_KIB);
}

static void version_2_limits_less_use_plus_file_cache(void **state)
{
    put_machine("0::/app\n");
    put("sys/fs/cgroup/app/memory.max", "1000000000\n");
    put("sys/fs/cgroup/app/memory.current", "700000000\n");
    put("sys/fs/cgroup/app/memory.stat",
        "anon 300\nfile 999\nunreclaimable 5\ninactive_file 150000000\n"
        "active_file 50000000\nslab_reclaimable 1000\n");
    expect(1000000000, 500001000);
    put("sys/fs/cgroup/app/memory.max", "max\n");
    expect(8000000 * SN_KIB, 6000000 * SN_KIB);
    put("sys/fs/cgroup/app/memory.high", "800000000\n");
    expect(800000000, 300001000);
    put("sys/fs/cgroup/app/memory.current", "2000000000\n");
    expect(800000000, 0);
    /* More cache than use is nonsense, but not a reason to promise more than the limit. */
    put("sys/fs/cgroup/app/memory.current", "1000\n");
    expect(800000000, 800000000);
}

static void a_limit_above_binds_too(void **state)
{
    put_machine("0::/user.slice/app\n");
    put("sys/fs/cgroup/user.slice/app/memory.max", "3000000000\n");
    put("sys/fs/cgroup/user.slice/app/memory.current", "1000000000\n");
    put("sys/fs/cgroup/user.slice/memory.max", "2500000000\n");
    put("sys/fs/cgroup/user.slice/memory.current", "2400000000\n");
    expect(2500000000, 100000000);
}

static void in_a_container_the_mount_is_the_group(void **state)
{
    put_machine("0::/system.slice/docker-0123.scope\n");
    put("sys/fs/cgroup/memory.max", "500000000\n");
    put("sys/fs/cgroup/memory.current", "100000000\n");
    expect(500000000, 400000000);
}

static void version_1(void **state)
{
    put_machine("11:cpu,cpuacct:/x\n4:memory:/docker/0123\n1:name=systemd:/y\n");
    put("sys/fs/cgroup/memory/docker/0123/memory.limit_in_bytes", "1000000000\n");
    put("sys/fs/cgroup/memory/docker/0123/memory.usage_in_bytes", "600000000\n");
    put("sys/fs/cgroup/memory/docker/0123/memory.stat",
        "cache 1\ninactive_file 7\ntotal_inactive_file 100000000\ntotal_active_file 50000000\n");
    put("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    put("sys/fs/cgroup/memory/memory.usage_in_bytes", "5000000000\n");
    expect(1000000000, 550000000);
}

static void a_limit_above_the_machine_is_none(void **state)
{
    put_machine("0::/app\n");
    put("sys/fs/cgroup/app/memory.max", "99000000000\n");
    put("sys/fs/cgroup/app/memory.current", "1000\n");
    expect(8000000 * SN_KIB, 6000000 * SN_KIB);
}

static void nonsense_is_an_error_or_ignored(void **state)
{
    snug_error err = SNUG_ERROR_INIT;
    sn_host_memory memory;
    assert_fails(sn_host_memory_at(&memory, root, &err), SNUG_E_IO, &err);
    put("proc/meminfo", "MemTotal: 5 kB\n");
    assert_fails(sn_host_memory_at(&memory, root, &err), SNUG_E_IO, &err);
    assert_int_equal(memory.total_bytes, 0);
    put_machine("garbage\n\n:\n::\n0:\n0::");
    put("sys/fs/cgroup/memory.max", "what\n");
    put("sys/fs/cgroup/memory.current", "");
    expect(8000000 * SN_KIB, 6000000 * SN_KIB);
}

static void processor_quotas(void **state)
{
    put_machine("0::/a/b\n2:cpu,cpuacct:/c\n");
    assert_int_equal(sn_host_limit_cpus_at(8, root), 8);
    put("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
    assert_int_equal(sn_host_limit_cpus_at(8, root), 8);
    put("sys/fs/cgroup/a/cpu.max", "350000 100000\n");
    assert_int_equal(sn_host_limit_cpus_at(8, root), 3);
    assert_int_equal(sn_host_limit_cpus_at(2, root), 2);
    put("sys/fs/cgroup/a/b/cpu.max", "50000 100000\n");
    assert_int_equal(sn_host_limit_cpus_at(8, root), 1);
    put("sys/fs/cgroup/a/b/cpu.max", "50000 0\n");
    assert_int_equal(sn_host_limit_cpus_at(8, root), 3);
    put("sys/fs/cgroup/cpu/c/cpu.cfs_quota_us", "-1\n");
    put("sys/fs/cgroup/cpu/c/cpu.cfs_period_us", "100000\n");
    assert_int_equal(sn_host_limit_cpus_at(8, root), 3);
    put("sys/fs/cgroup/cpu/c/cpu.cfs_quota_us", "200000\n");
    assert_int_equal(sn_host_limit_cpus_at(8, root), 2);
}

static void this_machine(void **state)
{
    snug_error err = SNUG_ERROR_INIT;
    sn_host_memory memory;
    assert_ok(sn_host_memory_now(&memory, &err), &err);
    assert_true(memory.total_bytes > 0 && memory.available_bytes <= memory.total_bytes);
    uint64_t peak, resident;
    assert_ok(sn_host_process_peak(&peak, &err), &err);
    assert_ok(sn_host_process_resident(&resident, &err), &err);
    assert_true(peak >= SN_MIB / 4 && resident >= SN_MIB / 4);
    unsigned char *block = sn_alloc(SN_TAG_TEST, 64 * SN_MIB);
    memset(block, 1, 64 * SN_MIB);
    uint64_t later;
    assert_ok(sn_host_process_peak(&later, &err), &err);
    assert_true(later >= resident + 60 * SN_MIB);
    sn_free(block);
    char name[128] = "";
    assert_ptr_equal(sn_host_cpu_name(name, sizeof name), name);
    assert_true(name[0] != '\0' && !strchr(name, '\n'));
    assert_no_leak();
}

static void affinity_is_kept(void **state)
{
    cpu_set_t before, one;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    int n = sn_host_n_cpus();
    assert_true(n >= 1 && n <= CPU_COUNT(&before));
    CPU_ZERO(&one);
    for (size_t i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++)
        if (CPU_ISSET(i, &before))
            CPU_SET(i, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    int limited = sn_host_n_cpus();
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
    assert_int_equal(limited, 1);
}

/* The kernel's own list of flags is the reference. */
static void features_agree_with_the_kernel(void **state)
{
    test_result r = test_run_shell("grep -m1 ^flags /proc/cpuinfo", NULL);
    if (r.exit_code != 0) {
        test_result_free(&r);
        print_message("/proc/cpuinfo lists no flags here\n");
        skip();
    }
    for (char *c = r.out; *c; c++)
        if (*c == '\n')
            *c = ' ';
    sn_cpu_features f = sn_host_cpu();
    const struct {
        const char *flag;
        bool has;
    } flags[] = {{" avx2 ", f.avx2},
                 {" fma ", f.fma},
                 {" f16c ", f.f16c},
                 {" avx512f ", f.avx512f},
                 {" avx512bw ", f.avx512bw},
                 {" avx512vl ", f.avx512vl},
                 {" avx512_bf16 ", f.avx512_bf16}};
    for (size_t i = 0; i < SN_LEN(flags); i++)
        if ((strstr(r.out, flags[i].flag) != NULL) != flags[i].has)
            fail_msg("%s: %d here, the kernel says otherwise", flags[i].flag, flags[i].has);
    test_result_free(&r);
}

#define WITH_ROOT(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_ROOT(without_groups_the_machine_counts),
        WITH_ROOT(version_2_limits_less_use_plus_file_cache),
        WITH_ROOT(a_limit_above_binds_too),
        WITH_ROOT(in_a_container_the_mount_is_the_group),
        WITH_ROOT(version_1),
        WITH_ROOT(a_limit_above_the_machine_is_none),
        WITH_ROOT(nonsense_is_an_error_or_ignored),
        WITH_ROOT(processor_quotas),
        cmocka_unit_test(this_machine),
        cmocka_unit_test(affinity_is_kept),
        cmocka_unit_test(features_agree_with_the_kernel),
    };
    return cmocka_run_group_tests_name("base/host", tests, NULL, NULL);
}
