/* SPDX-License-Identifier: Apache-2.0
 *
 * A whole snapshot of fake machines: clients, shared clients, vendors, processes that go away, what
 * may not be read, what a process is, and what can go.
 */
#include "support/fake_tree.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpus/gpus.h"

#define AMD "drm-driver:\tamdgpu\ndrm-pdev:\t0000:03:00.0\n"

static snug_gpus *look(const fake_tree *tree, const snug_gpus *previous)
{
    snug_gpus_options o = SNUG_GPUS_OPTIONS_INIT;
    snug_error err = SNUG_ERROR_INIT;
    snug_gpus *gpus;
    o.root = tree->root;
    o.previous = previous;
    assert_ok(snug_gpus_new(&gpus, &o, &err), &err);
    return gpus;
}

static const snug_gpus_process *find(const snug_gpus_process *at, size_t n, int64_t pid)
{
    for (size_t i = 0; i < n; i++)
        if (at[i].pid == pid)
            return &at[i];
    return NULL;
}

static const snug_gpus_process *on_card(const snug_gpus *gpus, size_t card, int64_t pid)
{
    const snug_gpus_card *c = snug_gpus_card_at(gpus, card);
    assert_non_null(c);
    return find(c->processes, c->n_processes, pid);
}

static const snug_gpus_candidate *candidate(const snug_gpus *gpus, int64_t pid)
{
    for (size_t i = 0; i < snug_gpus_n_candidates(gpus); i++)
        if (snug_gpus_candidate_at(gpus, i)->pid == pid)
            return snug_gpus_candidate_at(gpus, i);
    return NULL;
}

static void amd_client(const fake_tree *tree, int pid, int fd, int client, int kib)
{
    char text[256];
    snprintf(text, sizeof text, AMD "drm-client-id:\t%d\ndrm-resident-vram:\t%d KiB\n", client,
             kib);
    fake_descriptor(tree, pid, fd, fd % 2 ? "/dev/dri/renderD128" : "/dev/dri/card0", text);
}

static void amd_tree(fake_tree *tree)
{
    fake_tree_make(tree);
    fake_drm_card(tree, 0, "0000:03:00.0", "amdgpu", 0x1002, 0x744c);
    fake_file(tree, "8589934592\n", "sys/bus/pci/devices/0000:03:00.0/mem_info_vram_total");
    fake_file(tree, "1073741824\n", "sys/bus/pci/devices/0000:03:00.0/mem_info_vram_used");
}

/* ---- clients ---- */

static void test_one_client_two_descriptors(void **state)
{
    fake_tree tree;
    amd_tree(&tree);
    fake_process(&tree, &(fake_proc){.pid = 100, .pss_kib = 5000});
    amd_client(&tree, 100, 5, 7, 1000);
    amd_client(&tree, 100, 6, 7, 1000);
    amd_client(&tree, 100, 8, 9, 200);
    fake_descriptor(&tree, 100, 1, "/dev/null", NULL);
    fake_descriptor(&tree, 100, 2, "socket:[1234]", NULL);
    snug_gpus *gpus = look(&tree, NULL);
    assert_int_equal(snug_gpus_n_cards(gpus), 1);
    const snug_gpus_card *card = snug_gpus_card_at(gpus, 0);
    assert_string_equal(card->id, "amd:0");
    assert_string_equal(card->driver, "amdgpu");
    assert_int_equal(card->total_bytes, 8589934592u);
    assert_int_equal(card->explained_bytes, 1200 * 1024);
    assert_int_equal(card->unexplained_bytes, 1073741824 - 1200 * 1024);
    assert_false(card->unified);
    assert_int_equal(card->n_processes, 1);
    const snug_gpus_process *p = on_card(gpus, 0, 100);
    assert_int_equal(p->bytes, 1200 * 1024);
    assert_string_equal(p->source, "fdinfo");
    assert_int_equal(p->host_bytes, 5000 * 1024);
    assert_false(p->host_is_rss);
    assert_true(p->age_seconds > 99899.9 && p->age_seconds < 99900.1); /* started at 100 s */
    snug_gpus_free(gpus);
    fake_tree_remove(&tree);
    assert_no_leak();
}

/* The worker inherited client 7; it belongs to the older process, whatever the numbers say. */
static void test_forked_worker(void **state)
{
    fake_tree tree;
    amd_tree(&tree);
    fake_process(&tree, &(fake_proc){.pid = 900, .start_ticks = 50});
    fake_process(&tree, &(fake_proc){.pid = 100, .start_ticks = 70, .parent = 900, .group = 900});
    fake_process(&tree, &(fake_proc){.pid = 101, .start_ticks = 70, .parent = 900, .group = 900});
    amd_client(&tree, 900, 5, 7, 1000);
    amd_client(&tree, 100, 5, 7, 1000);
    amd_client(&tree, 101, 5, 7, 1000);
    amd_client(&tree, 101, 7, 8, 30);
    snug_gpus *gpus = look(&tree, NULL);
    assert_int_equal(snug_gpus_card_at(gpus, 0)->explained_bytes, 1030 * 1024);
    assert_int_equal(on_card(gpus, 0, 900)->bytes, 1000 * 1024);
    assert_int_equal(on_card(gpus, 0, 900)->shared_with, 0);
    assert_int_equal(on_card(gpus, 0, 100)->bytes, 0);
    assert_int_equal(on_card(gpus, 0, 100)->shared_with, 900);
    assert_int_equal(on_card(gpus, 0, 101)->bytes, 30 * 1024);
    assert_int_equal(on_card(gpus, 0, 101)->shared_with, 900);
    snug_gpus_free(gpus);
    fake_tree_remove(&tree);
    assert_no_leak();
}

/* The same client id on two cards is two clients. */
static void test_client_ids_are_per_card(void **state)
{
    fake_tree tree;
    amd_tree(&tree);
    fake_drm_card(&tree, 1, "0000:04:00.0", "amdgpu", 0x1002, 0x744c);
    fake_process(&tree, &(fake_proc){.pid = 100});
    amd_client(&tree, 100, 5, 7, 1000);
    fake_descriptor(&tree, 100, 6, "/dev/dri/renderD129",
                    "drm-driver:\tamdgpu\ndrm-pdev:\t0000:04:00.0\ndrm-client-id:\t7\n"
                    "drm-memory-vram:\t5 MiB\n");
    snug_gpus *gpus = look(&tree, NULL);
    assert_int_equal(on_card(gpus, 0, 100)->bytes, 1000 * 1024);
    assert_int_equal(on_card(gpus, 1, 100)->bytes, 5 << 20);
    snug_gpus_free(gpus);
    fake_tree_remove(&tree);
    assert_no_leak();
}

static void test_processes_that_go_away(void **state)
{
    fake_tree tree;
    amd_tree(&tree);
    fake_process(&tree, &(fake_proc){.pid = 100});
    amd_client(&tree, 100, 5, 7, 1000);
    fake_link(&tree, "/dev/dri/renderD128", "proc/100/fd/9"); /* closed: its fdinfo is gone */
    fake_link(&tree, "nothing", "proc/200");                  /* gone between listing and reading */
    fake_file(&tree, "", "proc/300/stat");                    /* gone while its stat was read */
    fake_process(&tree, &(fake_proc){.pid = 400});
    char path[SN_TEST_PATH];
    test_remove(test_path(path, tree.root, "proc/400/fd"));      /* gone before its descriptors */
    test_remove(test_path(path, tree.root, "proc/100/cmdline")); /* gone before its facts */
    test_remove(test_path(path, tree.root, "proc/100/status"));
    snug_gpus *gpus = look(&tree, NULL);
    assert_int_equal(snug_gpus_card_at(gpus, 0)->n_processes, 1);
    const snug_gpus_process *p = on_card(gpus, 0, 100);
    assert_int_equal(p->bytes, 1000 * 1024);
    assert_null(p->user); /* unknown, not root */
    assert_non_null(p->refusal);
    snug_gpus_free(gpus);
    fake_tree_remove(&tree);
    assert_no_leak();
}

static void test_no_permission(void **state)
{
    fake_tree tree;
    char path[SN_TEST_PATH];
    amd_tree(&tree);
    fake_process(&tree, &(fake_proc){.pid = 100, .rss_pages = 50});
    fake_process(&tree, &(fake_proc){.pid = 101, .rss_pages = 500, .pss_kib = 10});
    fake_process(&tree, &(fake_proc){.pid = 102, .kernel = true});
    amd_client(&tree, 100, 5, 7, 1000);
    amd_client(&tree, 101, 5, 8, 2000);
    static const char *const closed[] = {"proc/101/fd", "proc/102/fd", "proc/101/smaps_rollup"};
    for (size_t i = 0; i < SN_LEN(closed); i++)
        assert_int_equal(chmod(test_path(path, tree.root, closed[i]), 0), 0);
    if (!geteuid())
        assert_int_equal(seteuid(65534), 0);
    snug_gpus *gpus = look(&tree, NULL);
    if (!getuid())
        assert_int_equal(seteuid(0), 0);
    assert_int_equal(snug_gpus_card_at(gpus, 0)->n_processes, 1);
    assert_int_equal(snug_gpus_n_notes(gpus), 1);
    assert_contains(snug_gpus_note_at(gpus, 0), "1 process of other users could not");
    const snug_gpus_ram *ram = snug_gpus_ram_of(gpus);
    const snug_gpus_process *p = find(ram->processes, ram->n_processes, 101);
    assert_true(p->host_is_rss);
    assert_string_equal(p->source, "rss");
    assert_int_equal(p->host_bytes, 500 * sysconf(_SC_PAGESIZE));
    snug_gpus_free(gpus);
    for (size_t i = 0; i < 2; i++)
        chmod(test_path(path, tree.root, closed[i]), 0755);
    fake_tree_remove(&tree);
    assert_no_leak();
}

/* ---- cards ---- */

static void test_four_vendors(void **state)
{
    fake_tree tree;
    amd_tree(&tree);
    fake_nvidia_card(&tree, 0, "0000:01:00.0", "NVIDIA GeForce GTX 950");
    fake_drm_card(&tree, 1, "0000:00:02.0", "i915", 0x8086, 0x46a6);
    fake_drm_card(&tree, 2, "0000:05:00.0", "xe", 0x8086, 0x56a0);
    fake_link(&tree, "../../../platform/fb000000.gpu", "sys/class/drm/renderD131/device");
    fake_link(&tree, "../bus/platform/drivers/panthor",
              "sys/platform/fb000000.gpu/driver"); /* where a real link would lead */
    fake_link(&tree, "../../../devices/pci/ast", "sys/class/drm/card9/device"); /* no render node */
    fake_file(&tree, "enabled\n", "sys/class/drm/card1-eDP-1/enabled");
    fake_file(&tree, "disabled\n", "sys/class/drm/card0-DP-1/enabled");
    fake_file(&tree,
              "# ids\n1002  Advanced Micro Devices\n\t744c  Navi 31 [Radeon RX 7900 XTX]\n"
              "8086  Intel Corporation\n\t46a6  Alder Lake-P GT2\n\t\t1028 0b1a  x\n"
              "9999  Other\n\t56a0  not this one\n",
              "usr/share/misc/pci.ids");
    for (int pid = 100; pid < 105; pid++)
        fake_process(&tree, &(fake_proc){.pid = pid});
    amd_client(&tree, 100, 5, 7, 1000);
    fake_descriptor(&tree, 101, 5, "/dev/nvidia0", NULL);
    fake_descriptor(&tree, 102, 5, "/dev/dri/renderD129",
                    "drm-driver:\ti915\ndrm-pdev:\t0000:00:02.0\ndrm-client-id:\t1\n"
                    "drm-resident-system0:\t300 KiB\n");
    fake_descriptor(&tree, 103, 5, "/dev/dri/renderD130",
                    "drm-driver:\txe\ndrm-pdev:\t0000:05:00.0\ndrm-client-id:\t2\n"
                    "drm-total-vram0:\t4 MiB\ndrm-total-gtt:\t1 MiB\n");
    fake_descriptor(&tree, 104, 5, "/dev/dri/renderD131",
                    "drm-driver:\tpanthor\ndrm-client-id:\t3\ndrm-resident-memory:\t77 KiB\n");
    snug_gpus *gpus = look(&tree, NULL);
    static const struct {
        const char *id, *name;
        int64_t pid;
        uint64_t bytes;
        bool unified;
        int display;
    } expected[] = {
        {"nvidia:0", "NVIDIA GeForce GTX 950", 101, SNUG_BYTES_UNKNOWN, false, -1},
        {"amd:0", "Advanced Micro Devices Navi 31 [Radeon RX 7900 XTX]", 100, 1000 << 10, false, 0},
        {"intel:0", "Intel Corporation Alder Lake-P GT2", 102, 300 << 10, true, 1},
        {"intel:1", "Intel card 8086:56a0", 103, 4 << 20, false, -1},
        {"panthor:0", "panthor card", 104, 77 << 10, true, -1},
    };
    assert_int_equal(snug_gpus_n_cards(gpus), SN_LEN(expected));
    for (size_t i = 0; i < SN_LEN(expected); i++) {
        const snug_gpus_card *card = snug_gpus_card_at(gpus, i);
        assert_string_equal(card->id, expected[i].id);
        assert_string_equal(card->name, expected[i].name);
        assert_int_equal(card->unified, expected[i].unified);
        assert_int_equal(card->display, expected[i].display);
        assert_int_equal(card->n_processes, 1);
        assert_int_equal(card->processes[0].pid, expected[i].pid);
        assert_int_equal(card->processes[0].bytes, expected[i].bytes);
    }
    assert_int_equal(snug_gpus_card_at(gpus, 2)->used_bytes, SNUG_BYTES_UNKNOWN);
    assert_null(snug_gpus_card_at(gpus, 5));
    snug_gpus_free(gpus);
    fake_tree_remove(&tree);
    assert_no_leak();
}

static void test_kfd(void **state)
{
    fake_tree tree;
    amd_tree(&tree);
    fake_drm_card(&tree, 1, "0001:0a:00.1", "amdgpu", 0x1002, 0x740f);
    fake_file(&tree, "0\n", "sys/class/kfd/kfd/topology/nodes/0/gpu_id");
    fake_file(&tree, "51140\n", "sys/class/kfd/kfd/topology/nodes/1/gpu_id");
    fake_file(&tree, "cpu_cores_count 0\ndrm_render_minor 128\nlocation_id 768\n",
              "sys/class/kfd/kfd/topology/nodes/1/properties");
    fake_file(&tree, "7777\n", "sys/class/kfd/kfd/topology/nodes/2/gpu_id");
    fake_file(&tree, "location_id 2561\ndomain 1\n",
              "sys/class/kfd/kfd/topology/nodes/2/properties");
    for (int pid = 100; pid < 104; pid++) {
        fake_process(&tree, &(fake_proc){.pid = pid});
        fake_descriptor(&tree, pid, 4, "/dev/kfd", NULL);
    }
    fake_file(&tree, "5000000\n", "sys/class/kfd/kfd/proc/100/vram_51140");
    fake_file(&tree, "1\n", "sys/class/kfd/kfd/proc/100/sdma_51140");
    fake_file(&tree, "0\n", "sys/class/kfd/kfd/proc/100/vram_7777");
    fake_file(&tree, "6000000\n", "sys/class/kfd/kfd/proc/101/vram_7777");
    fake_file(&tree, "900\n", "sys/class/kfd/kfd/proc/102/vram_51140");
    amd_client(&tree, 100, 5, 7, 1000);
    amd_client(&tree, 102, 5, 8, 1000);
    snug_gpus *gpus = look(&tree, NULL);
    assert_int_equal(snug_gpus_n_cards(gpus), 2);
    /* The larger of two that count the same memory, not their sum. */
    assert_int_equal(on_card(gpus, 0, 100)->bytes, 5000000);
    assert_string_equal(on_card(gpus, 0, 100)->source, "kfd");
    assert_int_equal(on_card(gpus, 0, 102)->bytes, 1000 * 1024);
    assert_string_equal(on_card(gpus, 0, 102)->source, "fdinfo");
    assert_string_equal(snug_gpus_card_at(gpus, 1)->address, "0001:0a:00.1");
    assert_int_equal(on_card(gpus, 1, 101)->bytes, 6000000);
    /* Has the compute driver open, and nothing tells where or how much. */
    assert_int_equal(on_card(gpus, 0, 103)->bytes, SNUG_BYTES_UNKNOWN);
    assert_int_equal(on_card(gpus, 1, 103)->bytes, SNUG_BYTES_UNKNOWN);
    assert_string_equal(on_card(gpus, 0, 103)->source, "fd-only");
    snug_gpus_free(gpus);
    fake_tree_remove(&tree);
    assert_no_leak();
}

static void test_no_card(void **state)
{
    fake_tree tree;
    fake_tree_make(&tree);
    fake_process(&tree, &(fake_proc){.pid = 100, .rss_pages = 10, .pss_kib = 30});
    snug_gpus *gpus = look(&tree, NULL);
    assert_int_equal(snug_gpus_n_cards(gpus), 0);
    assert_int_equal(snug_gpus_n_notes(gpus), 0);
    assert_int_equal(snug_gpus_ram_of(gpus)->n_processes, 1);
    snug_gpus_free(gpus);
    fake_tree_remove(&tree);
    assert_no_leak();
}

static void test_bad_options(void **state)
{
    fake_tree tree;
    snug_gpus_options o = SNUG_GPUS_OPTIONS_INIT;
    snug_error err = SNUG_ERROR_INIT;
    snug_gpus *gpus = (snug_gpus *)1;
    o.root = "/nonexistent/root";
    assert_fails(snug_gpus_new(&gpus, &o, &err), SNUG_E_NOT_FOUND, &err);
    assert_null(gpus);
    fake_tree_make(&tree);
    char path[SN_TEST_PATH];
    test_remove(test_path(path, tree.root, "proc"));
    o.root = tree.root;
    assert_fails(snug_gpus_new(&gpus, &o, &err), SNUG_E_NOT_FOUND, &err);
    o.struct_size = 0;
    assert_fails(snug_gpus_new(&gpus, &o, &err), SNUG_E_USAGE, &err);
    fake_tree_remove(&tree);
    assert_no_leak();
}

/* ---- what a process is ---- */

static void test_what_and_state(void **state)
{
    static const struct {
        fake_proc proc;
        const char *what, *state;
    } cases[] = {
        {{.pid = 100, .maps = "7f00-7f01 r-xp 0 0:0 1 /v/tensorflow/libtensorflow_cc.so.2\n"},
         "python (tensorflow)",
         "sleeping"},
        {{.pid = 101,
          .maps = "7f00-7f01 r-xp 0 0:0 1 /v/torch/lib/libtorch_cuda.so\n",
          .state = 'R'},
         "python (torch)",
         "running"},
        {{.pid = 102,
          .command = "/usr/bin/python3|-m|ipykernel_launcher|-f|/run/kernel-1.json",
          .maps = "/x/libtensorflow_cc.so.2\n/x/libtorch.so\n"},
         "jupyter kernel (tensorflow, torch)",
         "sleeping"},
        {{.pid = 103, .comm = "Xorg", .command = "/usr/lib/xorg/Xorg|:0"}, "Xorg", "sleeping"},
        {{.pid = 104, .comm = "snug", .command = "snug|train|photos"}, "snug", "sleeping"},
        {{.pid = 105, .comm = "python3", .command = "", .state = 'Z'}, "python", "zombie"},
        {{.pid = 106, .command = "/v/bin/python3|-c|from multiprocessing.spawn import spawn_main"},
         "python",
         "orphan worker"},
        {{.pid = 107,
          .parent = 100,
          .command = "/v/bin/python3|-c|from multiprocessing.spawn import spawn_main"},
         "python",
         "sleeping"},
        {{.pid = 108, .comm = "pt_data_worker", .command = "python|train.py"},
         "python",
         "orphan worker"},
        {{.pid = 109, .state = 'T'}, "python", "stopped"},
        {{.pid = 110, .levels = 2}, "python", "other container"},
        {{.pid = 111,
          .cgroup = "0::/system.slice/docker-0123456789abcdef0123456789abcdef0123456789abcdef"
                    "0123456789abcdef.scope\n"},
         "python",
         "other container"},
        /* Two of a group whose leader is gone, both handed to init. */
        {{.pid = 112, .group = 77}, "python", "orphan worker"},
        {{.pid = 113, .group = 77}, "python", "orphan worker"},
        /* Alone so: it may be a training that was started from a script. */
        {{.pid = 114, .group = 78}, "python", "sleeping"},
    };
    fake_tree tree;
    amd_tree(&tree);
    for (size_t i = 0; i < SN_LEN(cases); i++) {
        fake_process(&tree, &cases[i].proc);
        amd_client(&tree, cases[i].proc.pid, 5, 10 + (int)i, 100);
    }
    snug_gpus *gpus = look(&tree, NULL);
    for (size_t i = 0; i < SN_LEN(cases); i++) {
        const snug_gpus_process *p = on_card(gpus, 0, cases[i].proc.pid);
        assert_non_null(p);
        if (strcmp(p->what, cases[i].what) || strcmp(p->state, cases[i].state))
            fail_msg("pid %d: %s, %s; expected %s, %s", cases[i].proc.pid, p->what, p->state,
                     cases[i].what, cases[i].state);
    }
    assert_string_equal(on_card(gpus, 0, 111)->container, "0123456789ab");
    assert_string_equal(on_card(gpus, 0, 105)->command, "[python3]");
    assert_contains(on_card(gpus, 0, 105)->refusal, "zombie");
    assert_contains(on_card(gpus, 0, 103)->refusal, "desktop");
    /* A driver file that lists nobody: the card is the display's because Xorg holds it. */
    assert_int_equal(snug_gpus_card_at(gpus, 0)->display, 1);
    snug_gpus_free(gpus);
    fake_tree_remove(&tree);
    assert_no_leak();
}

/* In a container the training may be process 1: its workers have a parent. */
static void test_training_is_process_1(void **state)
{
    fake_tree tree;
    amd_tree(&tree);
    fake_process(&tree, &(fake_proc){.pid = 1});
    fake_process(&tree, &(fake_proc){.pid = 20, .parent = 1, .comm = "pt_data_worker"});
    amd_client(&tree, 20, 5, 1, 100);
    snug_gpus *gpus = look(&tree, NULL);
    assert_string_equal(on_card(gpus, 0, 20)->state, "sleeping");
    snug_gpus_free(gpus);
    fake_tree_remove(&tree);
    assert_no_leak();
}

static void test_hostile_text(void **state)
{
    fake_tree tree;
    amd_tree(&tree);
    fake_process(&tree, &(fake_proc){.pid = 100,
                                     .comm = "py) R 1 (\x1b[31m",
                                     .command = "a\x1b[2Jb\xff\xfe|c\nd|\xe2\x82\xac"});
    amd_client(&tree, 100, 5, 7, 1000);
    snug_gpus *gpus = look(&tree, NULL);
    const snug_gpus_process *p = on_card(gpus, 0, 100);
    assert_string_equal(p->state, "sleeping");
    for (const char *c = p->command; *c; c++)
        assert_true((unsigned char)*c >= 32);
    assert_contains(p->command, "\xe2\x82\xac");
    snug_error err = SNUG_ERROR_INIT;
    const char *text;
    assert_ok(snug_gpus_json(&text, gpus, &err), &err);
    json_t *json = json_loads(text, 0, NULL);
    assert_non_null(json); /* valid UTF-8 among others */
    json_decref(json);
    snug_gpus_free(gpus);
    fake_tree_remove(&tree);
    assert_no_leak();
}

/* ---- what can go ---- */

static void make_candidates(const fake_tree *tree, unsigned long long cpu)
{
    int own = (int)getuid(), other = own == 1000 ? 1001 : 1000;
    fake_process(tree, &(fake_proc){.pid = 1, .comm = "systemd", .uid = other});
    fake_process(tree, &(fake_proc){.pid = 50, .parent = 49, .cpu_ticks = 9, .pss_kib = 1024});
    fake_process(tree, &(fake_proc){.pid = 51, .parent = 49, .cpu_ticks = cpu, .pss_kib = 2048});
    fake_process(tree, &(fake_proc){.pid = 52, .parent = 49, .uid = other, .pss_kib = 4096});
    fake_process(tree, &(fake_proc){.pid = 53, .comm = "pt_data_worker", .pss_kib = 8192});
    fake_process(tree, &(fake_proc){.pid = 54, .parent = 55, .state = 'Z', .command = ""});
    fake_process(tree, &(fake_proc){.pid = 55, .parent = 49, .cpu_ticks = cpu});
    fake_process(tree, &(fake_proc){.pid = 56, .comm = "Xorg", .parent = 49});
    fake_process(tree, &(fake_proc){.pid = 60, .parent = 49});
    fake_process(tree, &(fake_proc){.pid = 61, .parent = 60, .comm = "sh", .command = "sh"});
    fake_process(tree, &(fake_proc){.pid = 62, .parent = 61, .comm = "tool", .cpu_ticks = cpu});
    amd_client(tree, 60, 5, 60, 100);
    /* RAM alone: enough of it, and too little. */
    fake_process(tree, &(fake_proc){.pid = 57, .parent = 49, .rss_pages = 9, .pss_kib = 65536});
    fake_process(tree, &(fake_proc){.pid = 58, .parent = 49, .rss_pages = 8, .pss_kib = 65535});
    for (int pid = 50; pid < 57; pid++)
        amd_client(tree, pid, 5, pid, 100);
    fake_process(tree, &(fake_proc){.pid = 59,
                                    .comm = "python3",
                                    .parent = 50,
                                    .start_ticks = 9999,
                                    .cpu_ticks = 5,
                                    .pss_kib = 512});
    amd_client(tree, 59, 5, 50, 100); /* shares 50's client, and is idle too */
    amd_client(tree, 59, 6, 51, 100);
}

static void test_can_go(void **state)
{
    fake_tree tree;
    amd_tree(&tree);
    make_candidates(&tree, 0);
    snug_gpus *before = look(&tree, NULL);
    /* Nothing is known to be idle after one look; the orphan and the zombie's parent are known. */
    assert_int_equal(snug_gpus_n_candidates(before), 2);
    make_candidates(&tree, 1000);
    usleep(20000);
    snug_gpus *gpus = look(&tree, before);
    assert_string_equal(on_card(gpus, 0, 50)->state, "idle");
    assert_true(on_card(gpus, 0, 50)->idle_seconds >= 0.02);
    assert_string_equal(on_card(gpus, 0, 51)->state, "running");
    assert_int_equal(candidate(gpus, 50)->frees_card_bytes, 100 << 10);
    assert_int_equal(candidate(gpus, 50)->frees_host_bytes, 1 << 20);
    assert_int_equal(candidate(gpus, 50)->frees_bytes, (100 << 10) + (1 << 20));
    assert_contains(candidate(gpus, 50)->how, "idle now");
    assert_null(candidate(gpus, 51));
    assert_null(candidate(gpus, 52));
    assert_contains(candidate(gpus, 53)->how, "training is gone");
    assert_null(candidate(gpus, 54));
    assert_contains(candidate(gpus, 55)->how, "dead process 54");
    assert_int_equal(candidate(gpus, 55)->frees_card_bytes, 100 << 10);
    assert_null(candidate(gpus, 56));
    /* Waits for a child that works. */
    assert_string_equal(on_card(gpus, 0, 60)->state, "running");
    assert_null(candidate(gpus, 60));
    assert_int_equal(candidate(gpus, 57)->frees_host_bytes, 64 << 20);
    assert_int_equal(candidate(gpus, 57)->frees_card_bytes, 0);
    assert_null(candidate(gpus, 58));
    /* What it shares is counted at the owner, once. */
    assert_int_equal(candidate(gpus, 59)->frees_card_bytes, 0);
    /* Most first. */
    assert_int_equal(snug_gpus_candidate_at(gpus, 0)->pid, 57);
    assert_null(snug_gpus_candidate_at(gpus, snug_gpus_n_candidates(gpus)));
    /* A third look adds to the idle time. */
    usleep(20000);
    snug_gpus *third = look(&tree, gpus);
    assert_true(on_card(third, 0, 50)->idle_seconds > on_card(gpus, 0, 50)->idle_seconds);
    snug_gpus_free(third);
    snug_gpus_free(gpus);
    snug_gpus_free(before);
    fake_tree_remove(&tree);
    assert_no_leak();
}

/* Closing the owner frees nothing while a busy process shares its client. */
static void test_shared_by_a_busy_process(void **state)
{
    fake_tree tree;
    amd_tree(&tree);
    fake_process(&tree, &(fake_proc){.pid = 50, .parent = 49, .state = 'T', .start_ticks = 1});
    fake_process(&tree, &(fake_proc){.pid = 51, .parent = 49, .state = 'R', .start_ticks = 2});
    amd_client(&tree, 50, 5, 1, 100);
    amd_client(&tree, 51, 5, 1, 100);
    snug_gpus *gpus = look(&tree, NULL);
    assert_int_equal(snug_gpus_n_candidates(gpus), 1);
    assert_int_equal(candidate(gpus, 50)->frees_card_bytes, 0);
    snug_gpus_free(gpus);
    fake_tree_remove(&tree);
    assert_no_leak();
}

/* ---- RAM ---- */

static void test_ram(void **state)
{
    fake_tree tree;
    fake_tree_make(&tree);
    fake_file(&tree, "0::/user.slice/a.scope\n", "proc/self/cgroup");
    fake_file(&tree, "max\n", "sys/fs/cgroup/user.slice/a.scope/memory.max");
    fake_file(&tree, "4294967296\n", "sys/fs/cgroup/user.slice/memory.max");
    fake_file(&tree, "123456\n", "sys/fs/cgroup/user.slice/memory.current");
    fake_file(&tree, "x", "dev/shm/a");
    fake_file(&tree, "y", "dev/shm/folder/b");
    /* The workers have more resident pages and less of their own. */
    fake_process(&tree, &(fake_proc){.pid = 10, .rss_pages = 100, .pss_kib = 300});
    fake_process(&tree, &(fake_proc){.pid = 11, .rss_pages = 110, .pss_kib = 200});
    fake_process(&tree, &(fake_proc){.pid = 12, .rss_pages = 5});
    fake_process(&tree, &(fake_proc){.pid = 13, .rss_pages = 0});
    snug_gpus *gpus = look(&tree, NULL);
    const snug_gpus_ram *ram = snug_gpus_ram_of(gpus);
    assert_int_equal(ram->total_bytes, (uint64_t)16 << 30);
    assert_int_equal(ram->available_bytes, (uint64_t)8 << 30);
    assert_int_equal(ram->swap_total_bytes, (uint64_t)2 << 30);
    assert_int_equal(ram->swap_bytes, (uint64_t)1 << 30);
    assert_int_equal(ram->limit_bytes, (uint64_t)4 << 30);
    assert_int_equal(ram->limit_used_bytes, 123456);
    assert_true(ram->shm_bytes > 0 && ram->shm_bytes < 1 << 20);
    assert_int_equal(ram->shm_total_bytes, SNUG_BYTES_UNKNOWN);
    assert_int_equal(ram->n_processes, 3);
    assert_int_equal(ram->processes[0].pid, 10);
    assert_int_equal(ram->processes[0].bytes, 300 << 10);
    assert_string_equal(ram->processes[0].source, "pss");
    assert_int_equal(ram->processes[1].pid, 11);
    assert_int_equal(ram->processes[2].pid, 12);
    assert_string_equal(ram->processes[2].source, "rss");
    snug_gpus_free(gpus);
    fake_tree_remove(&tree);
    assert_no_leak();
}

/* Fifteen workers with much resident memory that they share, and two with less but their own. */
static void test_largest_are_found_behind_workers(void **state)
{
    fake_tree tree;
    fake_tree_make(&tree);
    for (int pid = 10; pid < 25; pid++)
        fake_process(&tree, &(fake_proc){.pid = pid, .rss_pages = 5000, .pss_kib = pid});
    fake_process(&tree, &(fake_proc){.pid = 30, .rss_pages = 1000, .pss_kib = 3000});
    fake_process(&tree, &(fake_proc){.pid = 31, .rss_pages = 900, .pss_kib = 2000});
    fake_process(&tree, &(fake_proc){.pid = 32, .rss_pages = 400, .pss_kib = 1});
    snug_gpus_options o = SNUG_GPUS_OPTIONS_INIT;
    snug_error err = SNUG_ERROR_INIT;
    snug_gpus *gpus;
    o.root = tree.root;
    o.n_ram_processes = 3;
    assert_ok(snug_gpus_new(&gpus, &o, &err), &err);
    const snug_gpus_ram *ram = snug_gpus_ram_of(gpus);
    assert_int_equal(ram->n_processes, 3);
    assert_int_equal(ram->processes[0].pid, 30);
    assert_int_equal(ram->processes[1].pid, 31);
    assert_int_equal(ram->processes[2].pid, 24);
    /* Nobody's pages were walked in vain. */
    o.n_ram_processes = 2;
    snug_gpus_free(gpus);
    fake_process(&tree, &(fake_proc){.pid = 40, .rss_pages = 9000, .pss_kib = 36000});
    fake_process(&tree, &(fake_proc){.pid = 41, .rss_pages = 8000, .pss_kib = 32000});
    assert_ok(snug_gpus_new(&gpus, &o, &err), &err);
    assert_int_equal(snug_gpus_ram_of(gpus)->processes[1].pid, 41);
    assert_false(sn_gpus_find(gpus, 24)->flags & SN_PROC_FACTS);
    snug_gpus_free(gpus);
    fake_tree_remove(&tree);
    assert_no_leak();
}

static void test_ram_group_of_version_1(void **state)
{
    fake_tree tree;
    fake_tree_make(&tree);
    fake_file(&tree, "9:name=systemd:/\n4:memory:/docker/abc\n0::/\n", "proc/self/cgroup");
    /* In a container the group's path is the host's; the mount itself is the group. */
    fake_file(&tree, "2147483648\n", "sys/fs/cgroup/memory/memory.limit_in_bytes");
    fake_file(&tree, "77\n", "sys/fs/cgroup/memory/memory.usage_in_bytes");
    fake_process(&tree, &(fake_proc){.pid = 10});
    snug_gpus *gpus = look(&tree, NULL);
    assert_int_equal(snug_gpus_ram_of(gpus)->limit_bytes, (uint64_t)2 << 30);
    assert_int_equal(snug_gpus_ram_of(gpus)->limit_used_bytes, 77);
    snug_gpus_free(gpus);
    fake_file(&tree, "9223372036854771712\n", "sys/fs/cgroup/memory/memory.limit_in_bytes");
    gpus = look(&tree, NULL);
    assert_int_equal(snug_gpus_ram_of(gpus)->limit_bytes, SNUG_BYTES_UNKNOWN);
    snug_gpus_free(gpus);
    char path[SN_TEST_PATH];
    test_remove(test_path(path, tree.root, "proc/meminfo"));
    gpus = look(&tree, NULL);
    assert_int_equal(snug_gpus_ram_of(gpus)->total_bytes, SNUG_BYTES_UNKNOWN);
    assert_int_equal(snug_gpus_ram_of(gpus)->swap_bytes, SNUG_BYTES_UNKNOWN);
    snug_gpus_free(gpus);
    fake_tree_remove(&tree);
    assert_no_leak();
}

/* ---- JSON ---- */

static void test_json(void **state)
{
    fake_tree tree;
    amd_tree(&tree);
    fake_process(&tree, &(fake_proc){.pid = 100, .pss_kib = 5});
    fake_process(&tree, &(fake_proc){.pid = 101});
    amd_client(&tree, 100, 5, 7, 1000);
    fake_descriptor(&tree, 101, 5, "/dev/dri/renderD128", NULL);
    snug_gpus *gpus = look(&tree, NULL);
    snug_error err = SNUG_ERROR_INIT;
    const char *text, *again;
    assert_ok(snug_gpus_json(&text, gpus, &err), &err);
    assert_ok(snug_gpus_json(&again, gpus, &err), &err);
    assert_ptr_equal(text, again);
    json_t *json = json_loads(text, 0, NULL);
    json_t *card = json_array_get(json_object_get(json, "gpus"), 0);
    assert_string_equal(json_string_value(json_object_get(card, "gpu")), "amd:0");
    assert_int_equal(json_integer_value(json_object_get(card, "total_bytes")), 8589934592);
    json_t *list = json_object_get(card, "processes");
    assert_int_equal(json_array_size(list), 2);
    json_t *p = json_array_get(list, 0), *q = json_array_get(list, 1);
    assert_int_equal(json_integer_value(json_object_get(p, "pid")), 100);
    assert_int_equal(json_integer_value(json_object_get(p, "bytes")), 1000 << 10);
    assert_int_equal(json_integer_value(json_object_get(p, "host_bytes")), 5 << 10);
    static const char *const keys[] = {"user",   "age_seconds", "what",   "state",
                                       "source", "command",     "parent", "can_end"};
    for (size_t i = 0; i < SN_LEN(keys); i++)
        assert_non_null(json_object_get(p, keys[i]));
    assert_true(json_is_null(json_object_get(q, "bytes"))); /* unknown, not 0 */
    json_t *ram = json_object_get(json, "ram");
    assert_true(json_is_null(json_object_get(ram, "limit_bytes")));
    assert_true(json_is_array(json_object_get(ram, "processes")));
    assert_true(json_is_array(json_object_get(json, "can_go")));
    json_decref(json);
    snug_gpus_free(gpus);
    fake_tree_remove(&tree);
    assert_no_leak();
}

/* ---- size, and no memory ---- */

static void test_2000_processes(void **state)
{
    fake_tree tree;
    amd_tree(&tree);
    for (int pid = 2; pid < 2002; pid++) {
        fake_process(&tree, &(fake_proc){.pid = pid, .comm = "worker", .command = "worker"});
        for (int fd = 0; fd < 10; fd++)
            if (fd == 9 && pid % 50 == 0)
                amd_client(&tree, pid, fd, pid, pid);
            else
                fake_link(&tree, "/dev/null", "proc/%d/fd/%d", pid, fd);
    }
    snug_gpus *gpus = look(&tree, NULL);
    const snug_gpus_card *card = snug_gpus_card_at(gpus, 0);
    assert_int_equal(card->n_processes, 40);
    uint64_t sum = 0;
    for (int pid = 50; pid <= 2000; pid += 50)
        sum += (uint64_t)pid << 10;
    assert_int_equal(card->explained_bytes, sum);
    for (size_t i = 0; i < 40; i++)
        assert_int_equal(card->processes[i].pid, 2000 - 50 * (int)i);
    snug_gpus_free(gpus);
    fake_tree_remove(&tree);
    assert_no_leak();
}

/* Many processes are looked at in parts: what lies in different parts must come together. */
static void test_parts_come_together(void **state)
{
    fake_tree tree;
    amd_tree(&tree);
    for (int pid = 2; pid < 802; pid++) {
        fake_process(&tree, &(fake_proc){.pid = pid, .pss_kib = pid});
        amd_client(&tree, pid, 5, 1000 + pid, 1);
    }
    amd_client(&tree, 10, 7, 5, 4096);
    amd_client(&tree, 790, 7, 5, 4096);
    fake_descriptor(&tree, 11, 8, "/dev/nvidia3", NULL);
    fake_descriptor(&tree, 791, 8, "/dev/nvidia3", NULL);
    snug_gpus *gpus = look(&tree, NULL);
    assert_int_equal(snug_gpus_n_cards(gpus), 2);
    assert_int_equal(snug_gpus_card_at(gpus, 0)->n_processes, 2);
    assert_int_equal(snug_gpus_card_at(gpus, 1)->n_processes, 800);
    assert_int_equal(snug_gpus_card_at(gpus, 1)->explained_bytes, (800 + 4096) << 10);
    assert_int_equal(on_card(gpus, 1, 10)->bytes, 4097 << 10);
    assert_int_equal(on_card(gpus, 1, 790)->bytes, 1 << 10);
    assert_int_equal(on_card(gpus, 1, 790)->shared_with, 10);
    for (int pid = 2; pid < 802; pid++) {
        assert_int_equal(on_card(gpus, 1, pid)->host_bytes, pid << 10);
        assert_string_equal(on_card(gpus, 1, pid)->command, "python3 train.py");
    }
    snug_gpus_free(gpus);
    assert_no_leak();
    snug_gpus_options o = SNUG_GPUS_OPTIONS_INIT;
    o.root = tree.root;
    for (uint64_t n = 1; n < 400; n += 7) {
        snug_error err = SNUG_ERROR_INIT;
        sn_ledger_fail_nth(n);
        snug_status status = snug_gpus_new(&gpus, &o, &err);
        sn_ledger_fail_nth(0);
        assert_true(!status || status == SNUG_E_MEMORY);
        snug_gpus_free(gpus);
        assert_no_leak();
    }
    fake_tree_remove(&tree);
}

/* The n-th allocation fails, for each n: an error or a whole answer, and no leak. */
static void test_no_memory(void **state)
{
    fake_tree tree;
    amd_tree(&tree);
    make_candidates(&tree, 0);
    snug_gpus_options o = SNUG_GPUS_OPTIONS_INIT;
    o.root = tree.root;
    bool done = false;
    size_t n_failed = 0;
    for (uint64_t n = 1; !done && n < 1000; n++) {
        snug_error err = SNUG_ERROR_INIT;
        snug_gpus *gpus;
        sn_ledger_fail_nth(n);
        snug_status status = snug_gpus_new(&gpus, &o, &err);
        if (!status) {
            const char *text;
            status = snug_gpus_json(&text, gpus, &err);
            done = !status && snug_gpus_n_candidates(gpus) == 2;
        }
        sn_ledger_fail_nth(0);
        assert_true(!status || status == SNUG_E_MEMORY);
        n_failed += status != 0;
        snug_gpus_free(gpus);
        assert_no_leak();
    }
    assert_true(done);
    assert_true(n_failed > 5);
    fake_tree_remove(&tree);
    assert_no_leak();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_client_two_descriptors),
        cmocka_unit_test(test_forked_worker),
        cmocka_unit_test(test_client_ids_are_per_card),
        cmocka_unit_test(test_processes_that_go_away),
        cmocka_unit_test(test_no_permission),
        cmocka_unit_test(test_four_vendors),
        cmocka_unit_test(test_kfd),
        cmocka_unit_test(test_no_card),
        cmocka_unit_test(test_bad_options),
        cmocka_unit_test(test_what_and_state),
        cmocka_unit_test(test_training_is_process_1),
        cmocka_unit_test(test_hostile_text),
        cmocka_unit_test(test_can_go),
        cmocka_unit_test(test_shared_by_a_busy_process),
        cmocka_unit_test(test_ram),
        cmocka_unit_test(test_largest_are_found_behind_workers),
        cmocka_unit_test(test_ram_group_of_version_1),
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_2000_processes),
        cmocka_unit_test(test_parts_come_together),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
