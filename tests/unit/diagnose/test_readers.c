/* SPDX-License-Identifier: Apache-2.0
 *
 * Files that are no logs: notebooks' outputs, allocator dumps (two of them written by TensorFlow
 * itself: tests/data/diagnose/make_dumps.py), PyTorch's snapshot, pickles; and the kernel's log.
 */
#include <stdio.h>
#include <string.h>

#include "diagnose/readers.h"
#include "support/support.h"

static snug_diagnosis *fresh(void)
{
    snug_diagnosis *d;
    snug_error err = SNUG_ERROR_INIT;
    assert_ok(snug_diagnosis_new(&d, NULL, &err), &err);
    return d;
}

static const snug_cause *finish(snug_diagnosis *d)
{
    snug_error err = SNUG_ERROR_INIT;
    assert_ok(snug_diagnosis_finish(d, &err), &err);
    return snug_diagnosis_cause(d, 0);
}

static uint64_t number(const snug_diagnosis *d, const char *name)
{
    const snug_number *n = snug_diagnosis_number_named(d, name);
    return n ? n->count : UINT64_MAX;
}

static void kinds_of_files(void **state)
{
    static const struct {
        const char *path, *head;
        size_t n;
        sn_reader reader;
    } cases[] = {{"a.log", "Epoch 1/10", 10, SN_READER_TEXT},
                 {"a.py", "import x", 8, SN_READER_SOURCE},
                 {"a.ipynb", "{\"cells\"", 8, SN_READER_NOTEBOOK},
                 {"a.json", "{\"cells\": [{\"cell_type\"", 23, SN_READER_NOTEBOOK},
                 {"a.json", "{\"segments\": [{\"blocks\"", 23, SN_READER_SNAPSHOT},
                 {"a.json", "{\"step\": 1}", 11, SN_READER_TEXT},
                 {"a.pickle", "\x80\x04\x95", 3, SN_READER_PICKLE},
                 {"model.pt", "PK\003\004", 4, SN_READER_PICKLE},
                 {"x", "\x0A\x09GPU_0_bfc\x12\x04", 13, SN_READER_BFC_DUMP},
                 {"x", "\x0A\x09plain", 7, SN_READER_TEXT},
                 {"x", "", 0, SN_READER_TEXT}};
    for (size_t i = 0; i < SN_LEN(cases); i++)
        assert_int_equal(sn_reader_for(cases[i].path, cases[i].head, cases[i].n), cases[i].reader);
}

/* ---- notebooks ---- */

static void outputs_of_a_notebook(void **state)
{
    static const char text[] =
        "{\"cells\": [{\"cell_type\": \"markdown\", \"source\": \"# hi\"},"
        "{\"cell_type\": \"code\", \"source\": [\"%load x\\n\", \"model.fit(x)\"], \"outputs\": ["
        "{\"output_type\": \"stream\", \"name\": \"stdout\", \"text\": [\"Epoch 1/5\\n\"]},"
        "{\"output_type\": \"error\", \"ename\": \"OutOfMemoryError\", \"evalue\": \"CUDA\","
        " \"traceback\": [\"\\u001b[0;31mOutOfMemoryError\\u001b[0m: CUDA out of memory. Tried to "
        "allocate 20.00 MiB (GPU 0; 10.00 GiB total capacity; 1.50 GiB already allocated; 15.00 "
        "MiB "
        "free; 2.00 GiB reserved in total by PyTorch)\"]}]}],"
        "\"metadata\": {}, \"nbformat\": 4, \"nbformat_minor\": 5}";
    snug_diagnosis *d = fresh();
    snug_error err = SNUG_ERROR_INIT;
    assert_ok(sn_notebook_read(d, "a.ipynb", text, sizeof text - 1, &err), &err);
    const snug_cause *c = finish(d);
    assert_int_equal(c->id, SNUG_CAUSE_OTHER_PROCESS);
    assert_int_equal(number(d, "requested_bytes"), 20 * SN_MIB);
    assert_true(c->n_evidence > 0);
    assert_string_equal(c->evidence[0].source, "a.ipynb cell 2");
    assert_null(strchr(c->evidence[0].text, '\x1b'));
    snug_diagnosis_free(d);
    assert_no_leak();
}

static void notebooks_that_are_none(void **state)
{
    static const char *const texts[] = {"", "{", "[]", "{\"cells\": 3}", "{\"a\": []}", "null"};
    for (size_t i = 0; i < SN_LEN(texts); i++) {
        snug_diagnosis *d = fresh();
        snug_error err = SNUG_ERROR_INIT;
        assert_fails(sn_notebook_read(d, "a.ipynb", texts[i], strlen(texts[i]), &err), SNUG_E_INPUT,
                     &err);
        snug_diagnosis_free(d);
    }
    assert_no_leak();
}

static void other_languages_are_no_python(void **state)
{
    static const char cell[] =
        "{\"cells\": [{\"cell_type\": \"code\", \"outputs\": [], \"source\": "
        "\"%s\"}], \"metadata\": {%s}}";
    static const char trap[] =
        "import tensorflow as tf\\nx = tf.constant([tf.io.decode_jpeg(f) for f in "
        "glob.glob('*')])\\n";
    static const struct {
        const char *before, *metadata;
        bool found;
    } cases[] = {{"", "", true},
                 {"%%time\\n", "", true},
                 {"%%bash\\n", "", false},
                 {"", "\"language_info\": {\"name\": \"R\"}", false}};
    for (size_t i = 0; i < SN_LEN(cases); i++) {
        char source[512], text[1024];
        snug_error err = SNUG_ERROR_INIT;
        snprintf(source, sizeof source, "%s%s", cases[i].before, trap);
        snprintf(text, sizeof text, cell, source, cases[i].metadata);
        snug_diagnosis *d = fresh();
        assert_ok(sn_notebook_read(d, "a.ipynb", text, strlen(text), &err), &err);
        assert_int_equal(finish(d)->id == SNUG_CAUSE_DATASET, cases[i].found);
        snug_diagnosis_free(d);
    }
    assert_no_leak();
}

/* ---- allocator dumps ---- */

static void dumps_of_tensorflow(void **state)
{
    char path[SN_TEST_PATH];
    snug_error err = SNUG_ERROR_INIT;
    snug_diagnosis *d = fresh();
    assert_ok(snug_diagnosis_read_file(
                  d, test_source_path(path, "tests/data/diagnose/bfc_const.dump"), &err),
              &err);
    const snug_cause *c = finish(d);
    /* 48 MiB asked for twice in a pool of 128: the second chunk was not worth splitting */
    assert_int_equal(c->id, SNUG_CAUSE_FRAGMENTATION);
    assert_contains(c->explanation, "128 MiB are held for 96 MiB");
    assert_int_equal(number(d, "in_use_bytes"), 128 * SN_MIB);
    assert_string_equal(snug_diagnosis_framework(d), "tensorflow");
    snug_diagnosis_free(d);

    d = fresh();
    assert_ok(snug_diagnosis_read_file(
                  d, test_source_path(path, "tests/data/diagnose/bfc_conv.dump"), &err),
              &err);
    finish(d);
    assert_int_equal(number(d, "in_use_bytes") + number(d, "available_bytes"), 128 * SN_MIB);
    snug_diagnosis_free(d);
    assert_no_leak();
}

/* Every prefix and every flipped byte of a real dump is read or refused, never trusted. */
static void damaged_dumps(void **state)
{
    char path[SN_TEST_PATH];
    size_t n, refused = 0;
    char *bytes = test_read(test_source_path(path, "tests/data/diagnose/bfc_conv.dump"), &n);
    for (size_t i = 0; i < n * 2; i++) {
        snug_diagnosis *d = fresh();
        snug_error err = SNUG_ERROR_INIT;
        if (i >= n)
            bytes[i - n] = (char)(bytes[i - n] ^ 0xFF);
        snug_status s = sn_bfc_dump_read(d, "x", bytes, i < n ? i : n, &err);
        if (i >= n)
            bytes[i - n] = (char)(bytes[i - n] ^ 0xFF);
        assert_true(s == SNUG_OK || s == SNUG_E_INPUT);
        refused += s != SNUG_OK;
        snug_diagnosis_free(d);
    }
    assert_true(refused > n / 2);
    sn_free(bytes);
    assert_no_leak();
}

static void snapshots_of_pytorch(void **state)
{
    static const char text[] =
        "{\"segments\": [{\"device\": 0, \"total_size\": 41943040, \"blocks\": ["
        "{\"size\": 20971520, \"requested_size\": 20000000, \"state\": \"active_allocated\","
        " \"frames\": [{\"filename\": \"/usr/lib/python3/site-packages/torch/nn/x.py\", \"line\": "
        "3},"
        "{\"filename\": \"/home/a/train.py\", \"line\": 42, \"name\": \"step\"}]},"
        "{\"size\": 5242880, \"state\": \"inactive\"}, {\"size\": 1048576, \"requested_size\": "
        "1000000,"
        " \"state\": \"active_allocated\", \"frames\": []}, {\"size\": 5242880, \"state\": "
        "\"inactive\"},"
        "{\"size\": 4194304, \"requested_size\": 4194304, \"state\": \"active_allocated\"},"
        "{\"size\": 5242880, \"state\": \"inactive\"}]}],"
        "\"device_traces\": [[{\"action\": \"alloc\", \"size\": 1}, {\"action\": \"oom\", "
        "\"size\": "
        "10485760, \"device_free\": 1048576}]]}";
    snug_diagnosis *d = fresh();
    snug_error err = SNUG_ERROR_INIT;
    assert_ok(sn_snapshot_read(d, "snapshot.json", text, sizeof text - 1, &err), &err);
    const snug_cause *c = finish(d);
    assert_int_equal(c->id, SNUG_CAUSE_FRAGMENTATION);
    assert_contains(c->explanation, "15 MiB are free, but the largest free block is 5 MiB");
    assert_contains(c->evidence[0].text, "train.py:42 20 MiB in 1 chunk");
    assert_int_equal(number(d, "requested_bytes"), 10485760);
    assert_int_equal(number(d, "allocated_bytes"), 25 * SN_MIB);
    assert_int_equal(number(d, "reserved_bytes"), 40 * SN_MIB);
    snug_diagnosis_free(d);
    d = fresh();
    assert_fails(sn_snapshot_read(d, "s", "{\"segments\": []}", 16, &err), SNUG_E_INPUT, &err);
    assert_fails(sn_snapshot_read(d, "s", "{\"segments\": [", 14, &err), SNUG_E_INPUT, &err);
    snug_diagnosis_free(d);
    assert_no_leak();
}

static void pickles_are_refused(void **state)
{
    char root[SN_TEST_PATH], path[SN_TEST_PATH];
    snug_error err = SNUG_ERROR_INIT;
    snug_diagnosis *d = fresh();
    test_make_folder(root);
    test_write(test_path(path, root, "snapshot.pickle"), "\x80\x04\x95\x00.", 5);
    assert_fails(snug_diagnosis_read_file(d, path, &err), SNUG_E_UNSUPPORTED, &err);
    assert_contains(err.what, "json.dump(torch.cuda.memory._snapshot()");
    assert_fails(snug_diagnosis_read_file(d, root, &err), SNUG_E_INPUT, &err);
    assert_fails(snug_diagnosis_read_file(d, test_path(path, root, "none.log"), &err),
                 SNUG_E_NOT_FOUND, &err);
    snug_diagnosis_free(d);
    test_remove(root);
    assert_no_leak();
}

/* ---- the kernel's log ---- */

static void kills_of_the_kernel(void **state)
{
    char root[SN_TEST_PATH], path[SN_TEST_PATH];
    snug_kills *k;
    uint64_t n;
    snug_error err = SNUG_ERROR_INIT;
    test_make_folder(root);
    test_write_text(test_path(path, root, "proc/uptime"), "10000.50 3000.00\n");
    test_write_text(test_path(path, root, "proc/vmstat"), "nr_free_pages 1\noom_kill 5\n");
    test_write_text(test_path(path, root, "proc/1/cgroup"), "0::/box\n");
    test_write_text(test_path(path, root, "sys/fs/cgroup/box/memory.current"), "1\n");
    test_write_text(test_path(path, root, "sys/fs/cgroup/box/memory.events"),
                    "low 0\nhigh 0\nmax 9\noom 3\noom_kill 2\n");
    test_write_text(
        test_path(path, root, "dev/kmsg"),
        "6,339,5140900000,-;NET: Registered PF_INET6\n"
        "3,340,9000000000,-;Out of memory: Killed process 4242 (python3) total-vm:31000000kB, "
        "anon-rss:23068672kB, file-rss:4kB, shmem-rss:1048576kB, UID:1000 pgtables:1kB\n"
        "3,341,9940500000,-;Memory cgroup out of memory: Killed process 77 (a (b) c) "
        "total-vm:9kB, anon-rss:2097152kB, file-rss:0kB, shmem-rss:0kB\n");
    assert_ok(snug_kills_read(&k, root, &err), &err);
    assert_int_equal(snug_kills_n(k), 2);
    const snug_kill *last = snug_kills_at(k, 0), *first = snug_kills_at(k, 1);
    assert_int_equal(last->pid, 77);
    assert_string_equal(last->name, "a (b) c");
    assert_true(last->by_group);
    assert_int_equal(last->anonymous_bytes, 2 * SN_GIB);
    assert_float_equal(last->seconds_ago, 60, 0.01);
    assert_int_equal(first->pid, 4242);
    assert_int_equal(first->anonymous_bytes, 22 * SN_GIB);
    assert_int_equal(first->shared_bytes, SN_GIB);
    assert_false(first->by_group);
    assert_null(snug_kills_at(k, 2));
    assert_true(snug_kills_since_boot(k, &n) && n == 5);
    assert_true(snug_kills_of_group(k, &n) && n == 2);
    assert_true(snug_kills_log_read(k));
    snug_diagnosis *d = fresh();
    assert_ok(snug_kills_diagnose(k, d, &err), &err);
    assert_int_equal(finish(d)->id, SNUG_CAUSE_HOST_LOADER);
    snug_diagnosis_free(d);
    snug_kills_free(k);
    test_remove(root);
    assert_no_leak();
}

static void a_log_that_may_not_be_read(void **state)
{
    char root[SN_TEST_PATH], path[SN_TEST_PATH];
    snug_kills *k;
    uint64_t n;
    snug_error err = SNUG_ERROR_INIT;
    test_make_folder(root);
    assert_ok(snug_kills_read(&k, root, &err), &err);
    assert_int_equal(snug_kills_n(k), 0);
    assert_false(snug_kills_log_read(k));
    assert_false(snug_kills_since_boot(k, &n));
    assert_false(snug_kills_of_group(k, &n));
    snug_kills_free(k);
    test_write_text(test_path(path, root, "var/log/kern.log"),
                    "Nov 30 12:00:01 box kernel: [  100.000000] Out of memory: Killed process 9 "
                    "(train) total-vm:1kB, anon-rss:1048576kB, file-rss:0kB, shmem-rss:0kB\n");
    assert_ok(snug_kills_read(&k, root, &err), &err);
    assert_int_equal(snug_kills_n(k), 1);
    assert_string_equal(snug_kills_at(k, 0)->name, "train");
    assert_true(snug_kills_at(k, 0)->seconds_ago < 0);
    snug_kills_free(k);
    test_remove(root);
    assert_no_leak();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds_of_files),          cmocka_unit_test(outputs_of_a_notebook),
        cmocka_unit_test(notebooks_that_are_none), cmocka_unit_test(other_languages_are_no_python),
        cmocka_unit_test(dumps_of_tensorflow),     cmocka_unit_test(damaged_dumps),
        cmocka_unit_test(snapshots_of_pytorch),    cmocka_unit_test(pickles_are_refused),
        cmocka_unit_test(kills_of_the_kernel),     cmocka_unit_test(a_log_that_may_not_be_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
