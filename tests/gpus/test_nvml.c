/* SPDX-License-Identifier: Apache-2.0
 *
 * NVIDIA's library in its three ages, through the stub of this folder.
 */
#include "support/fake_tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpus/gpus.h"

#define CARD "card GeForce GTX 950|0:1:0|2147483648|1776287744|0|1|0\n"

static const char *library(int form)
{
    static char path[SN_TEST_PATH];
    snprintf(path, sizeof path, "%s/stub_nvml_v%d/libnvidia-ml.so.1", SNUG_BUILD_DIR, form);
    return path;
}

static snug_gpus *look(const fake_tree *tree, int form, const char *says)
{
    snug_gpus_options o = SNUG_GPUS_OPTIONS_INIT;
    snug_error err = SNUG_ERROR_INIT;
    snug_gpus *gpus;
    o.root = tree->root;
    o.nvml = library(form);
    setenv("STUB_NVML", says, 1);
    assert_ok(snug_gpus_new(&gpus, &o, &err), &err);
    return gpus;
}

static void make(fake_tree *tree)
{
    fake_tree_make(tree);
    fake_nvidia_card(tree, 0, "0000:01:00.0", "NVIDIA GeForce GTX 950");
    for (int pid = 100; pid < 104; pid++) {
        fake_process(tree, &(fake_proc){.pid = pid, .pss_kib = 1024});
        fake_descriptor(tree, pid, 5, "/dev/nvidia0", NULL);
        fake_descriptor(tree, pid, 6, "/dev/nvidiactl", NULL);
    }
}

static const snug_gpus_process *process(const snug_gpus_card *card, int64_t pid)
{
    for (size_t i = 0; i < card->n_processes; i++)
        if (card->processes[i].pid == pid)
            return &card->processes[i];
    return NULL;
}

/* The same answers from each age; v2 and later tell what the driver keeps for itself. */
static void test_each_form(void **state)
{
    fake_tree tree;
    make(&tree);
    for (int form = 1; form <= 3; form++) {
        snug_gpus *gpus = look(&tree, form,
                               "card GeForce GTX 950|0:1:0|2147483648|1776287744|67108864|1|0\n"
                               "process 0 C 100 1000000 4294967295\n"
                               "process 0 G 101 2000000 4294967295\n"
                               "process 0 M 102 3000000 4294967295\n");
        assert_int_equal(snug_gpus_n_cards(gpus), 1);
        const snug_gpus_card *card = snug_gpus_card_at(gpus, 0);
        assert_string_equal(card->id, "nvidia:0");
        assert_string_equal(card->name, "GeForce GTX 950");
        assert_string_equal(card->address, "0000:01:00.0");
        assert_int_equal(card->total_bytes, 2147483648u);
        assert_int_equal(card->used_bytes, 1776287744u);
        assert_int_equal(card->reserved_bytes, form == 1 ? SNUG_BYTES_UNKNOWN : 67108864);
        assert_int_equal(card->display, 1);
        assert_int_equal(card->explained_bytes, 6000000);
        assert_int_equal(card->unexplained_bytes, 1776287744u - 6000000u);
        assert_int_equal(card->n_processes, 4); /* 103 has the card open, and no list names it */
        assert_int_equal(process(card, 100)->bytes, 1000000);
        assert_int_equal(process(card, 101)->bytes, 2000000);
        assert_int_equal(process(card, 102)->bytes, 3000000);
        assert_string_equal(process(card, 102)->source, "nvml");
        assert_int_equal(process(card, 103)->bytes, SNUG_BYTES_UNKNOWN);
        assert_string_equal(process(card, 103)->source, "fd-only");
        assert_int_equal(snug_gpus_n_notes(gpus), 0);
        snug_gpus_free(gpus);
    }
    fake_tree_remove(&tree);
    assert_no_leak();
}

static void test_long_entries(void **state)
{
    fake_tree tree;
    make(&tree);
    snug_gpus *gpus = look(&tree, 3,
                           CARD "long\nprocess 0 C 100 1000 4294967295\n"
                                "process 0 C 101 2000 4294967295\nprocess 0 C 102 3000 1\n");
    const snug_gpus_card *card = snug_gpus_card_at(gpus, 0);
    assert_int_equal(process(card, 100)->bytes, 1000);
    assert_int_equal(process(card, 101)->bytes, 2000);
    assert_int_equal(process(card, 102)->bytes, 3000);
    snug_gpus_free(gpus);
    fake_tree_remove(&tree);
    assert_no_leak();
}

/* A library that has the newest symbols, which answer that they are not there. */
static void test_newest_form_refuses(void **state)
{
    fake_tree tree;
    make(&tree);
    snug_gpus *gpus = look(&tree, 3,
                           CARD "fail DeviceGetComputeRunningProcesses_v3 13\n"
                                "fail DeviceGetMemoryInfo_v2 13\n"
                                "process 0 C 100 1000 4294967295\n");
    const snug_gpus_card *card = snug_gpus_card_at(gpus, 0);
    assert_int_equal(process(card, 100)->bytes, 1000);
    assert_int_equal(card->used_bytes, 1776287744u);
    assert_int_equal(card->reserved_bytes, SNUG_BYTES_UNKNOWN);
    snug_gpus_free(gpus);
    fake_tree_remove(&tree);
    assert_no_leak();
}

static void test_not_available(void **state)
{
    fake_tree tree;
    make(&tree);
    snug_gpus *gpus = look(&tree, 3,
                           CARD "process 0 C 100 na 4294967295\nprocess 0 G 100 na 4294967295\n"
                                "process 0 C 101 na 4294967295\nprocess 0 G 101 500 4294967295\n"
                                "fail DeviceGetMemoryInfo_v2 3\nfail DeviceGetMemoryInfo 3\n");
    const snug_gpus_card *card = snug_gpus_card_at(gpus, 0);
    assert_int_equal(process(card, 100)->bytes, SNUG_BYTES_UNKNOWN);
    assert_string_equal(process(card, 100)->source, "nvml");
    assert_int_equal(process(card, 101)->bytes, 500);
    assert_int_equal(card->total_bytes, SNUG_BYTES_UNKNOWN);
    assert_int_equal(card->used_bytes, SNUG_BYTES_UNKNOWN);
    assert_int_equal(card->unexplained_bytes, SNUG_BYTES_UNKNOWN);
    assert_int_equal(card->explained_bytes, 500);
    /* Known numbers come first. */
    assert_int_equal(card->processes[0].pid, 101);
    snug_gpus_free(gpus);
    fake_tree_remove(&tree);
    assert_no_leak();
}

/* One process in three lists is one number; two instances of a divided card add up. */
static void test_lists_and_instances(void **state)
{
    fake_tree tree;
    make(&tree);
    snug_gpus *gpus = look(&tree, 3,
                           CARD "process 0 C 100 700 4294967295\nprocess 0 G 100 700 4294967295\n"
                                "process 0 M 100 700 4294967295\n"
                                "process 0 C 101 10 1\nprocess 0 C 101 20 2\n");
    const snug_gpus_card *card = snug_gpus_card_at(gpus, 0);
    assert_int_equal(process(card, 100)->bytes, 700);
    assert_int_equal(process(card, 101)->bytes, 30);
    assert_int_equal(card->explained_bytes, 730);
    snug_gpus_free(gpus);
    fake_tree_remove(&tree);
    assert_no_leak();
}

static void test_gone_process(void **state)
{
    fake_tree tree;
    make(&tree);
    snug_gpus *gpus = look(&tree, 3, CARD "process 0 C 4711 900 4294967295\n");
    const snug_gpus_process *p = process(snug_gpus_card_at(gpus, 0), 4711);
    assert_non_null(p);
    assert_int_equal(p->bytes, 900);
    assert_string_equal(p->state, "gone");
    assert_null(p->user);
    assert_non_null(p->refusal);
    snug_gpus_free(gpus);
    fake_tree_remove(&tree);
    assert_no_leak();
}

/* In a container the driver's numbers are the host's: 4711 is nobody here, 200 is another process
 * of ours that has nothing to do with the card, 100 has the card open and may be believed. */
static void test_container_numbers(void **state)
{
    fake_tree tree;
    make(&tree);
    fake_link(&tree, "pid:[4026532800]", "proc/self/ns/pid");
    fake_process(&tree, &(fake_proc){.pid = 200, .comm = "bash", .command = "bash"});
    snug_gpus *gpus = look(&tree, 3,
                           CARD "process 0 C 4711 900 4294967295\nprocess 0 C 200 800 4294967295\n"
                                "process 0 C 100 700 4294967295\n");
    const snug_gpus_card *card = snug_gpus_card_at(gpus, 0);
    assert_string_equal(process(card, 4711)->state, "other container");
    assert_string_equal(process(card, 200)->state, "other container");
    assert_null(process(card, 200)->command);
    assert_int_equal(process(card, 200)->bytes, 800);
    assert_string_equal(process(card, 100)->what, "python");
    assert_int_equal(card->explained_bytes, 2400);
    assert_int_equal(snug_gpus_n_notes(gpus), 1);
    assert_contains(snug_gpus_note_at(gpus, 0), "--pid=host");
    snug_gpus_free(gpus);
    fake_tree_remove(&tree);
    assert_no_leak();
}

static void test_library_troubles(void **state)
{
    static const struct {
        const char *says, *note;
    } cases[] = {
        {CARD "fail Init 18\n", "different versions"},
        {CARD "fail Init 9\n", "not loaded"},
        {CARD "fail Init 16\n", "GPU access blocked"},
        {CARD "fail DeviceGetCount 999\n", "lists no devices"},
        {CARD "fail DeviceGetHandleByIndex 15\n", "cannot open its device 0"},
        {CARD "fail DeviceGetComputeRunningProcesses_v3 4\n", "sudo snug ps"},
    };
    fake_tree tree;
    make(&tree);
    for (size_t i = 0; i < SN_LEN(cases); i++) {
        snug_gpus *gpus = look(&tree, 3, cases[i].says);
        assert_int_equal(snug_gpus_n_notes(gpus), 1);
        assert_contains(snug_gpus_note_at(gpus, 0), cases[i].note);
        /* The card and who has it open are known without the library. */
        assert_int_equal(snug_gpus_n_cards(gpus), 1);
        assert_int_equal(snug_gpus_card_at(gpus, 0)->n_processes, 4);
        snug_gpus_free(gpus);
    }
    snug_gpus_options o = SNUG_GPUS_OPTIONS_INIT;
    snug_error err = SNUG_ERROR_INIT;
    snug_gpus *gpus;
    o.root = tree.root;
    o.nvml = "/nonexistent/libnvidia-ml.so.1";
    assert_ok(snug_gpus_new(&gpus, &o, &err), &err);
    assert_contains(snug_gpus_note_at(gpus, 0), "cannot be opened");
    assert_string_equal(snug_gpus_card_at(gpus, 0)->name, "NVIDIA GeForce GTX 950");
    assert_int_equal(snug_gpus_card_at(gpus, 0)->total_bytes, SNUG_BYTES_UNKNOWN);
    snug_gpus_free(gpus);
    fake_tree_remove(&tree);
    assert_no_leak();
}

static void test_64_cards(void **state)
{
    fake_tree tree;
    char says[64 * 160] = "";
    size_t n = 0;
    fake_tree_make(&tree);
    /* The library numbers the cards against the order of their places. */
    for (unsigned i = 0; i < 64; i++)
        n += (size_t)snprintf(says + n, sizeof says - n, "card H200|%x:%x:0|1000000|%u|0|0|%u\n",
                              i / 32, 200 - i, 1000 * i + 500, i);
    for (unsigned i = 0; i < 64; i++) {
        char link[32];
        n += (size_t)snprintf(says + n, sizeof says - n, "process %u C %u %u 4294967295\n", i,
                              1000 + i, 1000 * i);
        snprintf(link, sizeof link, "/dev/nvidia%u", i);
        fake_process(&tree, &(fake_proc){.pid = 1000 + (int)i});
        fake_descriptor(&tree, 1000 + (int)i, 9, link, NULL);
    }
    snug_gpus *gpus = look(&tree, 3, says);
    assert_int_equal(snug_gpus_n_cards(gpus), 64);
    for (unsigned i = 0; i < 64; i++) {
        const snug_gpus_card *card = snug_gpus_card_at(gpus, i);
        char id[32], address[32];
        snprintf(id, sizeof id, "nvidia:%u", i);
        snprintf(address, sizeof address, "%04x:%02x:00.0", i / 32, 200 - i);
        assert_string_equal(card->id, id);
        assert_string_equal(card->address, address);
        assert_int_equal(card->unexplained_bytes, 500);
        /* A process that holds 0 bytes holds nothing. */
        assert_int_equal(card->n_processes, i ? 1 : 0);
        if (i) {
            assert_int_equal(card->processes[0].pid, 1000 + i);
            assert_int_equal(card->processes[0].bytes, 1000 * i);
        }
    }
    snug_gpus_free(gpus);
    fake_tree_remove(&tree);
    assert_no_leak();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_form),
        cmocka_unit_test(test_long_entries),
        cmocka_unit_test(test_newest_form_refuses),
        cmocka_unit_test(test_not_available),
        cmocka_unit_test(test_lists_and_instances),
        cmocka_unit_test(test_gone_process),
        cmocka_unit_test(test_container_numbers),
        cmocka_unit_test(test_library_troubles),
        cmocka_unit_test(test_64_cards),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
