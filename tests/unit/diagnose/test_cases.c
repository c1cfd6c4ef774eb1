/* SPDX-License-Identifier: Apache-2.0
 *
 * The collected real logs that live beside the checkout (SNUG_SHARED, else ../shared): the first
 * cause of at least 24 of 26, and every number of their index that the log itself holds.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "snug/diagnose.h"
#include "support/support.h"

/* The index's names of numbers, and ours. */
static const struct {
    const char *key, *name;
} names[] = {
    {"tensor", "tensor_shape"},
    {"shape", "tensor_shape"},
    {"dtype", "dtype"},
    {"tensor_bytes", "tensor_bytes"},
    {"bytes_f32", "tensor_bytes"},
    {"bytes", "tensor_bytes"},
    {"bytes_as_uint8", "tensor_bytes_as_uint8"},
    {"batch", "batch"},
    {"requested", "requested_bytes"},
    {"total", "total_bytes"},
    {"free", "free_bytes"},
    {"allocated", "allocated_bytes"},
    {"reserved", "reserved_bytes"},
    {"reserved_unallocated", "reserved_unallocated_bytes"},
    {"cached", "cached_bytes"},
    {"held_elsewhere", "held_elsewhere_bytes"},
    {"unaccounted", "unaccounted_bytes"},
    {"requested_gt_total", "requested_gt_total"},
    {"segment_total", "segment_total_bytes"},
    {"segment_live", "segment_live_bytes"},
    {"gpu_total", "gpu_total_bytes"},
    {"biggest_chunk", "biggest_chunk_bytes"},
    {"in_use", "in_use_bytes"},
    {"limit", "limit_bytes"},
    {"available", "available_bytes"},
    {"num_allocs", "num_allocs"},
    {"max_alloc", "max_alloc_bytes"},
    {"op", "op"},
    {"status", "status"},
    {"killed", "killed"},
    {"last_step", "last_step"},
    {"shuffle_buffer", "shuffle_buffer"},
    {"signal", "signal"},
    {"worker_pid", "worker_pid"},
    {"phase", "phase"},
    {"cudnn_loaded", "cudnn_loaded"},
    {"cudnn_built", "cudnn_built"},
    {"jpeg_line", "jpeg_line"},
    {"jpeg_lines", "jpeg_lines"},
    {"subdivisions", "subdivisions"},
    {"input", "input"},
    {"failing_layer", "failing_layer"},
    {"fraction", "memory_fraction"},
    {"workers", "workers"},
    {"train_samples", "samples"},
    {"image", "image"},
    {"winerror", "winerror"},
    {"cc", "compute_capability"},
    {"start_MB", "start_bytes"},
    {"end_MB", "end_bytes"},
    {"slope", "slope_bytes"},
};

/* What the index knows from the thread around the log, not from the log. */
static const char *const not_in_the_log[] = {
    "A05 gpu_total", "A05 requested", "A07 array",     "A07 bytes_f32", "A07 limit",
    "A08 image",     "A08 bytes_u8",  "A08 bytes_f32", "A10 shm_fix",   "A11 batch",
    "A11 gpu_total", "A12 batch",     "A12 gpu_total", "A23 input",     "A23 input_bytes_f32",
    "A21 img",       "A23 params",
};

static const char *shared_folder(void)
{
    const char *shared = getenv("SNUG_SHARED");
    return shared ? shared : SNUG_SOURCE_DIR "/../shared";
}

static bool is_listed(const char *id, const char *key)
{
    char both[96];
    snprintf(both, sizeof both, "%s %s", id, key);
    for (size_t i = 0; i < SN_LEN(not_in_the_log); i++)
        if (!strcmp(not_in_the_log[i], both))
            return true;
    return false;
}

static bool close_to(double got, double want, double tolerance)
{
    return got >= want * (1 - tolerance) && got <= want * (1 + tolerance);
}

/* "20.00MiB", "~7.98GiB", "[64,372,32,32]", "416x416x3", "yes", "1", "8.0.5", "762.70 (iteration
 * 18)" */
static bool matches(const snug_number *n, const char *key, const char *value)
{
    bool about = *value == '~';
    uint64_t bytes;
    double real;
    char head[64];
    snprintf(head, sizeof head, "%.*s", (int)strcspn(value + about, " /"), value + about);
    size_t len = strlen(key);
    if (len > 3 && !strcmp(key + len - 3, "_MB")) {
        if (!sn_parse_f64(head, 0, 1e9, &real))
            return false;
        return close_to((double)n->count, real * 1048576, 0.001);
    }
    switch (n->kind) {
    case SNUG_NUMBER_BYTES:
        if (!sn_parse_size(head, &bytes))
            return false;
        return strspn(head, "0123456789") == strlen(head)
                   ? n->count == bytes
                   : close_to((double)n->count, (double)bytes, about ? 0.03 : 0.0001);
    case SNUG_NUMBER_COUNT:
        return n->count == strtoull(head, NULL, 10);
    case SNUG_NUMBER_FLAG:
        return n->count == 1 && !strcmp(head, "yes");
    case SNUG_NUMBER_REAL:
        return sn_parse_f64(head, 0, 1e9, &real) && close_to(n->real, real, 1e-9);
    case SNUG_NUMBER_TEXT:
        return !strcmp(n->text, value);
    case SNUG_NUMBER_SHAPE: {
        const char *p = value + strcspn(value, "0123456789");
        for (size_t i = 0; i < n->n_dims; i++) {
            char *end;
            if (strtoll(p, &end, 10) != n->dims[i] || end == p)
                return false;
            p = end + strspn(end, ", x");
        }
        return !*p || *p == ']' || *p == ')';
    }
    }
    return false;
}

static bool has_gpu0(const snug_diagnosis *d, const char *key, const char *value)
{
    uint64_t bytes;
    const snug_diagnosis_gpu *gpu = snug_diagnosis_gpu_at(d, 0);
    if (!gpu || gpu->index != 0 || !sn_parse_size(value, &bytes))
        return false;
    return (!strcmp(key, "gpu0_used") ? gpu->used_bytes : gpu->total_bytes) == bytes;
}

/* One "key=value" of the index. */
static bool check_number(const snug_diagnosis *d, const char *key, const char *value)
{
    if (!strncmp(key, "gpu0_", 5))
        return has_gpu0(d, key, value);
    if (!strcmp(key, "device")) {
        const char *device = snug_diagnosis_device(d), *digits = strrchr(value, ':');
        return device && strrchr(device, ':') &&
               !strcmp(strrchr(device, ':') + 1, digits ? digits + 1 : value);
    }
    if (!strcmp(key, "contradiction"))
        return snug_diagnosis_number_named(d, "free_gt_requested") != NULL;
    if (!strcmp(key, "chunks_seen")) {
        const snug_number *n = snug_diagnosis_number_named(d, "biggest_chunk_bytes");
        return n && n->count == strtoull(strchr(value, ',') + 1, NULL, 10);
    }
    if (!strcmp(key, "cache_train")) {
        const snug_number *n = snug_diagnosis_number_named(d, "cache_finished_bytes");
        return n && close_to((double)n->count, 6.5 * 1073741824.0, 0.001);
    }
    if (!strcmp(key, "cache_val")) {
        const snug_number *n = snug_diagnosis_number_named(d, "cache_bytes");
        const snug_number *done = snug_diagnosis_number_named(d, "cache_done");
        const snug_number *of = snug_diagnosis_number_named(d, "cache_of");
        return n && done && of && close_to((double)n->count, 1.3 * 1073741824.0, 0.001) &&
               done->count == 458 && of->count == 591;
    }
    for (size_t i = 0; i < SN_LEN(names); i++) {
        if (strcmp(names[i].key, key) != 0)
            continue;
        const snug_number *n = snug_diagnosis_number_named(d, names[i].name);
        return n && matches(n, key, value);
    }
    return false;
}

static size_t check_numbers(const snug_diagnosis *d, const char *id, char *list, size_t *asked)
{
    size_t wrong = 0;
    for (char *p = list, *next; p && *p; p = next) {
        next = strstr(p, "; ");
        if (next) {
            *next = '\0';
            next += 2;
        }
        char *equal = p + strcspn(p, "=~");
        bool about = *equal == '~';
        if (!*equal)
            continue;
        char key[64];
        snprintf(key, sizeof key, "%.*s", (int)(equal - p), p);
        if (is_listed(id, key))
            continue;
        ++*asked;
        if (!check_number(d, key, about ? equal : equal + 1)) {
            print_message("%s: %s is not in the report as %s\n", id, key, equal);
            wrong++;
        }
    }
    return wrong;
}

static void the_collected_logs(void **state)
{
    char path[SN_TEST_PATH], folder[SN_TEST_PATH];
    snug_error err = SNUG_ERROR_INIT;
    char *index;
    size_t n_index;
    size_t right = 0, logs = 0, asked = 0, wrong = 0;
    test_path(folder, shared_folder(), "cases/oom");
    test_path(path, folder, "index.tsv");
    if (!sn_io_is_file(path)) {
        print_message("no %s here: set SNUG_SHARED\n", path);
        skip();
    }
    assert_ok(sn_io_read_all(&index, &n_index, path, 1 << 20, SN_TAG_TEST, &err), &err);
    char *next;
    for (char *row = strchr(index, '\n'); row && row[1]; row = next) {
        char *field[5];
        row++;
        next = strchr(row, '\n');
        if (next)
            *next = '\0';
        field[0] = row;
        for (int i = 1; i < 5; i++) {
            field[i] = strchr(field[i - 1], '\t');
            assert_non_null(field[i]);
            *field[i]++ = '\0';
        }
        char name[32];
        snprintf(name, sizeof name, "%s.log", field[0]);
        snug_diagnosis *d;
        assert_ok(snug_diagnosis_new(&d, NULL, &err), &err);
        assert_ok(snug_diagnosis_feed_file(d, test_path(path, folder, name), &err), &err);
        assert_ok(snug_diagnosis_finish(d, &err), &err);
        const snug_cause *best = snug_diagnosis_cause(d, 0);
        assert_non_null(best);
        logs++;
        if (!strcmp(best->name, field[1]))
            right++;
        else
            print_message("%s: %s, expected %s\n", field[0], best->name, field[1]);
        if (strcmp(best->name, field[1]) != 0 && best->confidence > 0.5)
            fail_msg("%s: wrong and sure of it", field[0]);
        wrong += check_numbers(d, field[0], field[3], &asked);
        snug_diagnosis_free(d);
    }
    sn_free(index);
    print_message("%zu of %zu first causes right, %zu of %zu numbers\n", right, logs, asked - wrong,
                  asked);
    assert_int_equal(logs, 26);
    assert_true(right >= 24);
    assert_int_equal(wrong, 0);
    assert_true(asked >= 89);
    assert_no_leak();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_collected_logs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
