/* SPDX-License-Identifier: Apache-2.0
 *
 * test_io.c - whole reads, exact preads, atomic writes, temporary files, folders.
 */
#include "support/support.h"

#include "base/io.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[SN_TEST_PATH], path[SN_TEST_PATH], other[SN_TEST_PATH];

static int setup(void **state)
{
    test_make_folder(folder);
    return 0;
}

static int teardown(void **state)
{
    test_remove(folder);
    return 0;
}

static void a_file_is_read_whole(void **state)
{
    static const size_t sizes[] = {0, 1, 100, 65535, 65536, 65537, 300000};
    snug_error err = SNUG_ERROR_INIT;
    char *bytes = sn_alloc(SN_TAG_TEST, 300000);
    for (size_t i = 0; i < 300000; i++)
        bytes[i] = (char)(i * 31 >> 3);
    for (size_t i = 0; i < SN_LEN(sizes); i++) {
        test_write(test_path(path, folder, "f"), bytes, sizes[i]);
        char *data;
        size_t n;
        assert_ok(sn_io_read_all(&data, &n, path, sizes[i], SN_TAG_DATA, &err), &err);
        assert_int_equal(n, sizes[i]);
        assert_memory_equal(data, bytes, n);
        assert_int_equal(data[n], 0);
        sn_free(data);
    }
    sn_free(bytes);
    assert_no_leak();
}

static void the_limit_holds(void **state)
{
    snug_error err = SNUG_ERROR_INIT;
    test_write_text(test_path(path, folder, "f"), "0123456789");
    char *data = folder;
    size_t n = 5;
    assert_fails(sn_io_read_all(&data, &n, path, 9, SN_TAG_DATA, &err), SNUG_E_INPUT, &err);
    assert_contains(err.what, "longer than 9 bytes");
    assert_null(data);
    assert_int_equal(n, 0);
    /* A file of /proc does not say how long it is. */
    assert_fails(sn_io_read_all(&data, &n, "/proc/self/status", 9, SN_TAG_DATA, &err), SNUG_E_INPUT,
                 &err);
    assert_fails(sn_io_read_all(&data, &n, "/dev/zero", 1000000, SN_TAG_DATA, &err), SNUG_E_INPUT,
                 &err);
    assert_no_leak();
}

static void files_without_a_size_are_read_too(void **state)
{
    snug_error err = SNUG_ERROR_INIT;
    char *data;
    size_t n;
    assert_ok(sn_io_read_all(&data, &n, "/proc/self/status", SN_MIB, SN_TAG_DATA, &err), &err);
    assert_contains(data, "VmHWM:");
    assert_int_equal(strlen(data), n);
    sn_free(data);
    assert_ok(sn_io_read_all(&data, &n, "/dev/null", SN_MIB, SN_TAG_DATA, &err), &err);
    assert_int_equal(n, 0);
    sn_free(data);
    assert_no_leak();
}

static void *write_pipe(void *name)
{
    int fd = open(name, O_WRONLY | O_CLOEXEC);
    char chunk[1000];
    memset(chunk, 'p', sizeof chunk);
    for (int i = 0; i < 200; i++)
        if (sn_io_write(fd, chunk, sizeof chunk, name, NULL))
            break;
    close(fd);
    return NULL;
}

static void a_pipe_is_read_to_its_end(void **state)
{
    snug_error err = SNUG_ERROR_INIT;
    test_path(path, folder, "pipe");
    assert_int_equal(mkfifo(path, 0600), 0);
    pthread_t writer;
    assert_int_equal(pthread_create(&writer, NULL, write_pipe, path), 0);
    char *data;
    size_t n;
    assert_ok(sn_io_read_all(&data, &n, path, SN_MIB, SN_TAG_DATA, &err), &err);
    pthread_join(writer, NULL);
    assert_int_equal(n, 200000);
    assert_int_equal(data[199999], 'p');
    sn_free(data);
    assert_no_leak();
}

static void reading_what_is_not_there_or_no_file(void **state)
{
    snug_error err = SNUG_ERROR_INIT;
    char *data;
    size_t n;
    assert_fails(sn_io_read_all(&data, &n, test_path(path, folder, "none"), 9, SN_TAG_DATA, &err),
                 SNUG_E_NOT_FOUND, &err);
    assert_contains(err.what, "No such file");
    assert_contains(err.what, path);
    assert_fails(sn_io_read_all(&data, &n, folder, 9, SN_TAG_DATA, &err), SNUG_E_IO, &err);
    assert_contains(err.what, "is a folder");
    assert_int_equal(sn_io_read_all(&data, &n, path, 9, SN_TAG_DATA, NULL), SNUG_E_NOT_FOUND);
    assert_no_leak();
}

static void reads_at_an_offset_are_exact(void **state)
{
    snug_error err = SNUG_ERROR_INIT;
    test_write_text(test_path(path, folder, "f"), "0123456789");
    int fd = open(path, O_RDWR | O_CLOEXEC);
    char out[11] = {0};
    assert_ok(sn_io_pread(fd, out, 4, 3, path, &err), &err);
    assert_string_equal(out, "3456");
    assert_ok(sn_io_pread(fd, out, 0, 99, path, &err), &err);
    assert_fails(sn_io_pread(fd, out, 4, 7, path, &err), SNUG_E_INPUT, &err);
    assert_contains(err.what, "ends at byte 10, 11 expected");
    assert_int_equal(err.pos, 10);
    assert_fails(sn_io_pread(fd, out, 4, 20, path, &err), SNUG_E_INPUT, &err);
    assert_contains(err.what, "ends at byte 10, 24 expected");
    assert_fails(sn_io_pread(fd, out, 4, UINT64_MAX - 1, path, &err), SNUG_E_INPUT, &err);
    assert_fails(sn_io_pread(fd, out, 4, INT64_MAX, path, &err), SNUG_E_INPUT, &err);
    assert_fails(sn_io_pread(-1, out, 4, 0, path, &err), SNUG_E_IO, &err);
    assert_int_equal(sn_io_pread(fd, out, 4, 7, path, NULL), SNUG_E_INPUT);

    assert_ok(sn_io_pwrite(fd, "XY", 2, 12, path, &err), &err);
    assert_fails(sn_io_pwrite(fd, "XY", 2, UINT64_MAX, path, &err), SNUG_E_IO, &err);
    size_t got = 0;
    char all[32];
    assert_ok(sn_io_read(fd, all, sizeof all, &got, path, &err), &err);
    assert_int_equal(got, 14);
    assert_memory_equal(all, "0123456789\0\0XY", 14);
    assert_ok(sn_io_read(fd, all, sizeof all, &got, path, &err), &err);
    assert_int_equal(got, 0);
    assert_fails(sn_io_read(-1, all, 1, &got, path, &err), SNUG_E_IO, &err);
    assert_fails(sn_io_write(-1, all, 1, path, &err), SNUG_E_IO, &err);
    close(fd);
}

static void a_full_disk_is_said(void **state)
{
    snug_error err = SNUG_ERROR_INIT;
    int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
    if (fd < 0) {
        print_message("no /dev/full here\n");
        skip();
    }
    assert_fails(sn_io_write(fd, "x", 1, "out.csv", &err), SNUG_E_IO, &err);
    assert_string_equal(err.what, "cannot write out.csv: No space left on device");
    close(fd);
    assert_fails(sn_io_write_file("/dev/full", "x", 1, &err), SNUG_E_IO, &err);
    assert_true(test_exists("/dev/full"));
    assert_no_leak();
}

static void expect(const char *file, const char *text)
{
    char *data = test_read(file, NULL);
    assert_string_equal(data, text);
    sn_free(data);
}

static void an_atomic_write_replaces_at_commit(void **state)
{
    snug_error err = SNUG_ERROR_INIT;
    test_write_text(test_path(path, folder, "run.json"), "old");
    assert_int_equal(chmod(path, 0640), 0);
    sn_io_atomic file;
    assert_ok(sn_io_atomic_open(&file, path, &err), &err);
    assert_ok(sn_io_write(file.fd, "new", 3, path, &err), &err);
    expect(path, "old");
    assert_ok(sn_io_atomic_commit(&file, &err), &err);
    expect(path, "new");
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);
    assert_int_equal(test_count_entries(folder), 1);
    sn_io_atomic_abort(&file);
    sn_io_atomic_abort(NULL);
    expect(path, "new");
    assert_no_leak();
}

static void an_aborted_write_leaves_the_old_file(void **state)
{
    snug_error err = SNUG_ERROR_INIT;
    test_write_text(test_path(path, folder, "last.ckpt"), "old");
    sn_io_atomic file;
    assert_ok(sn_io_atomic_open(&file, path, &err), &err);
    assert_ok(sn_io_write(file.fd, "half of the n", 13, path, &err), &err);
    sn_io_atomic_abort(&file);
    sn_io_atomic_abort(&file);
    expect(path, "old");
    assert_int_equal(test_count_entries(folder), 1);
    test_remove(path);
    assert_ok(sn_io_atomic_open(&file, path, &err), &err);
    sn_io_atomic_abort(&file);
    assert_int_equal(test_count_entries(folder), 0);
    assert_no_leak();
}

static void two_writers_do_not_mix(void **state)
{
    snug_error err = SNUG_ERROR_INIT;
    test_path(path, folder, "f");
    sn_io_atomic a, b;
    assert_ok(sn_io_atomic_open(&a, path, &err), &err);
    assert_ok(sn_io_atomic_open(&b, path, &err), &err);
    assert_string_not_equal(a.temporary, b.temporary);
    assert_ok(sn_io_write(a.fd, "aaaa", 4, path, &err), &err);
    assert_ok(sn_io_write(b.fd, "bb", 2, path, &err), &err);
    assert_ok(sn_io_atomic_commit(&b, &err), &err);
    expect(path, "bb");
    assert_ok(sn_io_atomic_commit(&a, &err), &err);
    expect(path, "aaaa");
    assert_int_equal(test_count_entries(folder), 1);
    assert_no_leak();
}

static void a_failed_commit_cleans_up(void **state)
{
    snug_error err = SNUG_ERROR_INIT;
    test_path(path, folder, "f");
    sn_io_atomic file;
    assert_ok(sn_io_atomic_open(&file, path, &err), &err);
    assert_int_equal(mkdir(path, 0755), 0); /* a folder appeared in its place */
    assert_fails(sn_io_atomic_commit(&file, &err), SNUG_E_IO, &err);
    assert_int_equal(test_count_entries(folder), 1);
    assert_fails(sn_io_atomic_open(&file, path, &err), SNUG_E_IO, &err);
    assert_contains(err.what, "it is a folder");
    assert_fails(sn_io_atomic_open(&file, test_path(other, folder, "no/f"), &err), SNUG_E_IO, &err);
    assert_no_leak();
}

static void links_and_devices_are_kept(void **state)
{
    snug_error err = SNUG_ERROR_INIT;
    test_write_text(test_path(path, folder, "real"), "old");
    test_path(other, folder, "link");
    assert_int_equal(symlink("real", other), 0);
    assert_ok(sn_io_write_file(other, "new", 3, &err), &err);
    expect(path, "new");
    struct stat st;
    assert_int_equal(lstat(other, &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_ok(sn_io_write_file("/dev/null", "gone", 4, &err), &err);
    assert_int_equal(stat("/dev/null", &st), 0);
    assert_true(S_ISCHR(st.st_mode));
    test_path(other, folder, "dangling");
    assert_int_equal(symlink("nowhere/at/all", other), 0);
    assert_fails(sn_io_write_file(other, "x", 1, &err), SNUG_E_IO, &err);
    assert_no_leak();
}

static void write_file_is_readable_by_the_usual_people(void **state)
{
    snug_error err = SNUG_ERROR_INIT;
    mode_t mask = umask(022);
    assert_ok(sn_io_write_file(test_path(path, folder, "f"), "hello", 5, &err), &err);
    umask(mask);
    expect(path, "hello");
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0644);
    assert_no_leak();
}

static void a_temporary_file_has_no_name(void **state)
{
    snug_error err = SNUG_ERROR_INIT;
    char *before = getenv("TMPDIR") ? sn_strdup(SN_TAG_TEST, getenv("TMPDIR")) : NULL;
    setenv("TMPDIR", folder, 1);
    int fd;
    assert_ok(sn_io_temporary(&fd, &err), &err);
    assert_int_equal(test_count_entries(folder), 0);
    assert_ok(sn_io_pwrite(fd, "abc", 3, 0, "tmp", &err), &err);
    char out[4] = {0};
    assert_ok(sn_io_pread(fd, out, 3, 0, "tmp", &err), &err);
    assert_string_equal(out, "abc");
    close(fd);
    setenv("TMPDIR", "/no/such/folder", 1);
    assert_fails(sn_io_temporary(&fd, &err), SNUG_E_IO, &err);
    assert_contains(err.what, "/no/such/folder");
    if (before)
        setenv("TMPDIR", before, 1);
    else
        unsetenv("TMPDIR");
    sn_free(before);
    assert_no_leak();
}

static void folders(void **state)
{
    snug_error err = SNUG_ERROR_INIT;
    assert_ok(sn_io_make_folder(test_path(path, folder, "a/b//c/"), &err), &err);
    assert_true(sn_io_is_folder(path));
    assert_ok(sn_io_make_folder(path, &err), &err);
    assert_ok(sn_io_make_folder("/", &err), &err);
    assert_false(sn_io_is_file(path));
    test_write_text(test_path(path, folder, "f"), "x");
    assert_true(sn_io_is_file(path));
    assert_false(sn_io_is_folder(path));
    assert_fails(sn_io_make_folder(path, &err), SNUG_E_IO, &err);
    assert_fails(sn_io_make_folder(test_path(path, folder, "f/g"), &err), SNUG_E_IO, &err);
    assert_fails(sn_io_make_folder("", &err), SNUG_E_IO, &err);
    assert_false(sn_io_is_file(path));
    assert_false(sn_io_is_folder(path));
}

static void free_space_of_what_is_not_there_yet(void **state)
{
    snug_error err = SNUG_ERROR_INIT;
    uint64_t bytes = 0;
    assert_ok(sn_io_free_bytes(&bytes, folder, &err), &err);
    assert_true(bytes > 0);
    bytes = 0;
    assert_ok(sn_io_free_bytes(&bytes, test_path(path, folder, "runs/x/last.ckpt"), &err), &err);
    assert_true(bytes > 0);
    assert_ok(sn_io_free_bytes(&bytes, "no-such-folder/x", &err), &err);
    assert_ok(sn_io_free_bytes(&bytes, "/no-such-folder", &err), &err);
    assert_ok(sn_io_free_bytes(&bytes, "", &err), &err);
}

static void names(void **state)
{
    char *a = sn_io_join(SN_TAG_DATA, "dir", "f"), *b = sn_io_join(SN_TAG_DATA, "dir/", "f"),
         *c = sn_io_join(SN_TAG_DATA, "", "f");
    assert_string_equal(a, "dir/f");
    assert_string_equal(b, "dir/f");
    assert_string_equal(c, "f");
    assert_true(sn_ledger_live_bytes_of(SN_TAG_DATA) > 0);
    sn_free(a);
    sn_free(b);
    sn_free(c);
    assert_string_equal(sn_io_base_name("a/b.jpg"), "b.jpg");
    assert_string_equal(sn_io_base_name("b.jpg"), "b.jpg");
    assert_string_equal(sn_io_base_name("a/"), "");
    assert_no_leak();
}

static snug_status use(snug_error *err)
{
    char *data = NULL, *joined = sn_io_join(SN_TAG_TEST, folder, "f");
    size_t n;
    if (!joined)
        return sn_fail(err, SNUG_E_MEMORY, "join");
    snug_status status = sn_io_write_file(joined, "hello", 5, err);
    if (!status)
        status = sn_io_read_all(&data, &n, joined, 100, SN_TAG_TEST, err);
    sn_free(data);
    data = NULL;
    if (!status)
        status = sn_io_read_all(&data, &n, path, SN_MIB, SN_TAG_TEST, err);
    sn_free(data);
    sn_free(joined);
    return status;
}

static void every_failing_allocation_is_survived(void **state)
{
    /* Longer than its chunk and without a size: the buffer must grow. */
    snprintf(path, sizeof path, "/proc/self/smaps");
    snug_error err = SNUG_ERROR_INIT;
    uint64_t before = sn_ledger_calls();
    assert_ok(use(&err), &err);
    uint64_t n = sn_ledger_calls() - before;
    assert_true(n >= 5);
    for (uint64_t i = 1; i <= n; i++) {
        sn_ledger_fail_nth(i);
        assert_fails(use(&err), SNUG_E_MEMORY, &err);
        assert_no_leak();
        assert_true(test_count_entries(folder) <= 1);
    }
    sn_ledger_fail_nth(0);
}

#define WITH_FOLDER(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FOLDER(a_file_is_read_whole),
        WITH_FOLDER(the_limit_holds),
        WITH_FOLDER(files_without_a_size_are_read_too),
        WITH_FOLDER(a_pipe_is_read_to_its_end),
        WITH_FOLDER(reading_what_is_not_there_or_no_file),
        WITH_FOLDER(reads_at_an_offset_are_exact),
        WITH_FOLDER(a_full_disk_is_said),
        WITH_FOLDER(an_atomic_write_replaces_at_commit),
        WITH_FOLDER(an_aborted_write_leaves_the_old_file),
        WITH_FOLDER(two_writers_do_not_mix),
        WITH_FOLDER(a_failed_commit_cleans_up),
        WITH_FOLDER(links_and_devices_are_kept),
        WITH_FOLDER(write_file_is_readable_by_the_usual_people),
        WITH_FOLDER(a_temporary_file_has_no_name),
        WITH_FOLDER(folders),
        WITH_FOLDER(free_space_of_what_is_not_there_yet),
        WITH_FOLDER(names),
        WITH_FOLDER(every_failing_allocation_is_survived),
    };
    return cmocka_run_group_tests_name("base/io", tests, NULL, NULL);
}
