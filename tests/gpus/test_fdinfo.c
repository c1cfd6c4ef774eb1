/* SPDX-License-Identifier: Apache-2.0
 *
 * The text of /proc/P/fdinfo/N, as the kernel's drivers write it, and as nobody should.
 */
#include "support/support.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "gpus/gpus.h"

static sn_gpus_fdinfo parse(const char *text)
{
    sn_gpus_fdinfo info;
    sn_gpus_fdinfo_parse(&info, text, strlen(text));
    return info;
}

static void expect(const char *text, uint64_t card, uint64_t host, bool has_vram)
{
    sn_gpus_fdinfo info = parse(text);
    uint64_t got_card, got_host;
    bool got_vram;
    sn_gpus_fdinfo_bytes(&info, &got_card, &got_host, &got_vram);
    assert_int_equal(got_card, card);
    assert_int_equal(got_host, host);
    assert_int_equal(got_vram, has_vram);
}

static void test_xe(void **state)
{
    sn_gpus_fdinfo info = parse("pos:\t0\nflags:\t0100002\ndrm-driver:\txe\ndrm-client-id:\t3\n"
                                "drm-pdev:\t0000:03:00.0\ndrm-total-gtt:\t192 KiB\n"
                                "drm-resident-gtt:\t192 KiB\ndrm-total-vram0:\t23992 KiB\n"
                                "drm-shared-vram0:\t16 MiB\ndrm-active-vram0:\t0\n"
                                "drm-resident-vram0:\t23992 KiB\ndrm-cycles-rcs:\t28257900\n");
    assert_true(info.is_drm);
    assert_string_equal(info.driver, "xe");
    assert_string_equal(info.address, "0000:03:00.0");
    assert_true(info.has_client);
    assert_int_equal(info.client, 3);
    uint64_t card, host;
    bool has_vram;
    sn_gpus_fdinfo_bytes(&info, &card, &host, &has_vram);
    assert_int_equal(card, 23992 * 1024);
    assert_int_equal(host, 192 * 1024);
    assert_true(has_vram);
}

static void test_units(void **state)
{
    expect("drm-resident-vram:\t4096\n", 4096, SNUG_BYTES_UNKNOWN, true);
    expect("drm-resident-vram:\t4096 B\n", 4096, SNUG_BYTES_UNKNOWN, true);
    expect("drm-resident-vram: 3 KiB\n", 3072, SNUG_BYTES_UNKNOWN, true);
    expect("drm-resident-vram:7MiB\n", 7 << 20, SNUG_BYTES_UNKNOWN, true);
    expect("drm-resident-vram:  2 GiB \r\n", (uint64_t)2 << 30, SNUG_BYTES_UNKNOWN, true);
    /* A unit that is not known is not guessed at. */
    expect("drm-resident-vram:\t7 pages\n", SNUG_BYTES_UNKNOWN, SNUG_BYTES_UNKNOWN, true);
    expect("drm-resident-vram:\t\n", SNUG_BYTES_UNKNOWN, SNUG_BYTES_UNKNOWN, true);
    expect("drm-resident-vram:\t-1\n", SNUG_BYTES_UNKNOWN, SNUG_BYTES_UNKNOWN, true);
    expect("drm-resident-vram:\t99999999999999999999\n", SNUG_BYTES_UNKNOWN, SNUG_BYTES_UNKNOWN,
           true);
    expect("drm-resident-vram:\t18446744073709551 GiB\n", SNUG_BYTES_UNKNOWN, SNUG_BYTES_UNKNOWN,
           true);
}

static void test_resident_before_total_before_memory(void **state)
{
    expect("drm-memory-vram:\t1 KiB\ndrm-total-vram:\t3 KiB\ndrm-resident-vram:\t2 KiB\n", 2048,
           SNUG_BYTES_UNKNOWN, true);
    expect("drm-memory-vram:\t1 KiB\ndrm-total-vram:\t3 KiB\n", 3072, SNUG_BYTES_UNKNOWN, true);
    expect("drm-memory-vram:\t1 KiB\n", 1024, SNUG_BYTES_UNKNOWN, true);
    /* A known zero is a zero: it is not skipped for a larger key. */
    expect("drm-total-vram:\t3 KiB\ndrm-resident-vram:\t0\n", 0, SNUG_BYTES_UNKNOWN, true);
}

static void test_i915_integrated(void **state)
{
    expect("drm-driver:\ti915\ndrm-total-system0:\t6044 KiB\ndrm-shared-system0:\t0\n"
           "drm-resident-system0:\t6000 KiB\ndrm-resident-stolen-system0:\t16 KiB\n",
           6016 * 1024, 6016 * 1024, false);
}

static void test_i915_discrete(void **state)
{
    expect("drm-driver:\ti915\ndrm-resident-system0:\t10 KiB\ndrm-resident-local0:\t100 KiB\n"
           "drm-resident-stolen-local0:\t4 KiB\n",
           104 * 1024, 10 * 1024, true);
}

static void test_amdgpu(void **state)
{
    expect("drm-driver:\tamdgpu\ndrm-memory-vram:\t1000 KiB\ndrm-memory-gtt: \t200 KiB\n"
           "drm-memory-cpu: \t8 KiB\namd-memory-visible-vram:\t900 KiB\namd-evicted-vram:\t1 KiB\n"
           "drm-resident-doorbell:\t4 KiB\n",
           1000 * 1024, 208 * 1024, true);
}

static void test_amdgpu_before_5_19(void **state)
{
    sn_gpus_fdinfo info = parse("pos:\t0\nflags:\t02100002\nmnt_id:\t21\npdev:\t0000:0A:00.0\n"
                                "pasid:\t32768\nvram mem:\t2048 kB\ngtt mem:\t64 kB\n"
                                "cpu mem:\t0 kB\ngfx0:\t1.50%\n");
    assert_true(info.is_drm);
    assert_string_equal(info.driver, "amdgpu");
    assert_string_equal(info.address, "0000:0a:00.0");
    assert_int_equal(info.client, 32768);
    uint64_t card, host;
    bool has_vram;
    sn_gpus_fdinfo_bytes(&info, &card, &host, &has_vram);
    assert_int_equal(card, 2 << 20);
    assert_int_equal(host, 64 << 10);
}

static void test_no_drm(void **state)
{
    sn_gpus_fdinfo info = parse("pos:\t0\nflags:\t02\nmnt_id:\t14\nino:\t5\n");
    assert_false(info.is_drm);
    assert_int_equal(info.n_regions, 0);
    expect("", SNUG_BYTES_UNKNOWN, SNUG_BYTES_UNKNOWN, false);
    /* NVIDIA's own driver names itself and tells no memory. */
    expect("drm-driver:\tnvidia-drm\ndrm-pdev:\t0000:01:00.0\ndrm-client-id:\t5\n",
           SNUG_BYTES_UNKNOWN, SNUG_BYTES_UNKNOWN, false);
}

static void test_more_regions_than_room(void **state)
{
    char text[4096] = "";
    for (int i = 0; i < 40; i++) {
        char line[64];
        snprintf(line, sizeof line, "drm-resident-vram%d:\t1 KiB\n", i);
        strcat(text, line);
    }
    sn_gpus_fdinfo info = parse(text);
    assert_int_equal(info.n_regions, SN_FDINFO_REGIONS);
}

/* Every file of the fuzzer's corpus, whole and cut at each byte. */
static void test_corpus(void **state)
{
    char folder[SN_TEST_PATH], path[SN_TEST_PATH];
    test_source_path(folder, "fuzz/corpus/fdinfo");
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    size_t n_files = 0;
    for (struct dirent *e; (e = readdir(dir));) {
        if (e->d_name[0] == '.')
            continue;
        size_t n;
        char *text = test_read(test_path(path, folder, e->d_name), &n);
        for (size_t cut = 0; cut <= n; cut++) {
            char *copy = sn_alloc(SN_TAG_TEST, cut);
            memcpy(copy, text, cut);
            sn_gpus_fdinfo info;
            uint64_t card, host;
            bool has_vram;
            sn_gpus_fdinfo_parse(&info, copy, cut);
            sn_gpus_fdinfo_bytes(&info, &card, &host, &has_vram);
            assert_true(info.n_regions <= SN_FDINFO_REGIONS);
            assert_true(has_vram || card == host);
            sn_free(copy);
        }
        sn_free(text);
        n_files++;
    }
    closedir(dir);
    assert_true(n_files >= 8);
    assert_no_leak();
}

static void test_stat_line(void **state)
{
    sn_gpus_proc proc = {.pid = 7};
    assert_true(sn_gpus_stat_parse(&proc,
                                   "7 (a) b (c)) Z 42 7 7 34816 -1 4194304 1 0 0 0 11 22 0 0 20 0 "
                                   "1 0 987654 1000 25 18446744073709551615"));
    assert_string_equal(proc.comm, "a) b (c)");
    assert_int_equal(proc.state, 'Z');
    assert_int_equal(proc.parent, 42);
    assert_int_equal(proc.cpu_ticks, 33);
    assert_int_equal(proc.start_ticks, 987654);
    assert_false(proc.kernel_thread);
    assert_false(sn_gpus_stat_parse(&proc, ""));
    assert_false(sn_gpus_stat_parse(&proc, "7 (cut"));
    assert_false(sn_gpus_stat_parse(&proc, ")("));
    assert_false(sn_gpus_stat_parse(&proc, "7 (x) S 1 2 3"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_xe),
        cmocka_unit_test(test_units),
        cmocka_unit_test(test_resident_before_total_before_memory),
        cmocka_unit_test(test_i915_integrated),
        cmocka_unit_test(test_i915_discrete),
        cmocka_unit_test(test_amdgpu),
        cmocka_unit_test(test_amdgpu_before_5_19),
        cmocka_unit_test(test_no_drm),
        cmocka_unit_test(test_more_regions_than_room),
        cmocka_unit_test(test_corpus),
        cmocka_unit_test(test_stat_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
