/* SPDX-License-Identifier: Apache-2.0
 *
 * The pipeline: order, batches that do not depend on threads and slots, bad files, exact resume,
 * bytes in flight, ends at any moment.
 */
#include "photos.h"

#include <stdlib.h>

enum { FLOATS = 20 * 24 * 3 };

static char folder[SN_TEST_PATH];

static int make_folder(void **state)
{
    test_make_folder(folder);
    return 0;
}

static int remove_folder(void **state)
{
    test_remove(folder);
    return 0;
}

/* --- order -------------------------------------------------------------------------------------*/

static void test_list_order(void **state)
{
    snug_data_options o = photos_options();
    snug_error err = SNUG_ERROR_INIT;
    snug_slot slot = {0};

    photos_make(folder, 3, 5);
    o.no_shuffle = 1;
    snug_data *data = photos_open(folder, &o);
    assert_int_equal(snug_data_n(data, SNUG_SUBSET_TRAIN), 15);
    snug_source s = photos_start(data, 4, 0, 3, SNUG_SUBSET_TRAIN);
    assert_int_equal(s.size(s.context), 15);
    assert_ok(s.reset(s.context, 0, 0, &err), &err);
    for (uint64_t at = 0; at < 15; at += 4) {
        assert_ok(s.next(s.context, &slot, &err), &err);
        assert_int_equal(slot.n, at == 12 ? 3 : 4);
        assert_int_equal(slot.capacity, 4);
        for (int64_t i = 0; i < slot.n; i++) {
            assert_int_equal(slot.positions[i], at + (uint64_t)i);
            assert_int_equal(slot.classes[i], (at + (uint64_t)i) / 5);
        }
        assert_int_equal(slot.next_position, at + (uint64_t)slot.n);
    }
    for (int again = 0; again < 2; again++) {
        assert_ok(s.next(s.context, &slot, &err), &err);
        assert_int_equal(slot.n, 0);
        assert_int_equal(slot.next_position, 15);
    }
    snug_data_free(data);
    assert_no_leak();
}

static void test_shuffle_is_a_permutation_of_its_epoch(void **state)
{
    snug_data_options o = photos_options();
    snug_error err = SNUG_ERROR_INIT;
    uint64_t orders[3][15];

    photos_make(folder, 3, 5);
    snug_data *data = photos_open(folder, &o);
    snug_source s = photos_start(data, 4, 0, 1, SNUG_SUBSET_TRAIN);
    for (uint64_t epoch = 0; epoch < 3; epoch++) {
        snug_slot slot = {0};
        uint64_t seen = 0, n = 0;
        assert_ok(s.reset(s.context, epoch % 2, 0, &err), &err);
        while (!s.next(s.context, &slot, &err) && slot.n)
            for (int64_t i = 0; i < slot.n; i++, n++) {
                orders[epoch][n] = slot.positions[i];
                seen |= UINT64_C(1) << slot.positions[i];
            }
        assert_int_equal(n, 15);
        assert_int_equal(seen, 0x7fff);
    }
    assert_memory_not_equal(orders[0], orders[1], sizeof orders[0]);
    assert_memory_equal(orders[0], orders[2], sizeof orders[0]);
    snug_data_free(data);
    assert_no_leak();
}

/* --- threads and slots -------------------------------------------------------------------------*/

/* Two epochs of training and one of validation, as one number. */
static uint64_t run_hash(const snug_data_options *o, int64_t batch, int slots, int threads,
                         uint64_t *n_skipped)
{
    snug_error err = SNUG_ERROR_INIT;
    snug_source source;
    snug_data *data = photos_open(folder, o);
    uint64_t h = UINT64_C(14695981039346656037);

    photos_start(data, batch, slots, threads, SNUG_SUBSET_TRAIN);
    for (int run = 0; run < 3; run++) {
        snug_slot slot = {0};
        snug_subset subset = run == 1 ? SNUG_SUBSET_VALIDATION : SNUG_SUBSET_TRAIN;
        assert_ok(snug_data_source(&source, data, subset, &err), &err);
        assert_ok(source.reset(source.context, (uint64_t)run, 0, &err), &err);
        do {
            assert_ok(source.next(source.context, &slot, &err), &err);
            h = photos_hash(h, &slot, FLOATS);
        } while (slot.n);
    }
    *n_skipped = snug_data_n_skipped(data);
    for (uint64_t i = 0; i < *n_skipped; i++) {
        char file[256], why[256];
        assert_ok(snug_data_skipped(data, i, file, sizeof file, why, sizeof why, &err), &err);
        h = photos_mix(h, file, strlen(file));
        h = photos_mix(h, why, strlen(why));
    }
    snug_data_free(data);
    return h;
}

static void spoil(size_t class_index, size_t i)
{
    char path[SN_TEST_PATH];
    size_t n;

    char *bytes = test_read(photos_path(path, folder, class_index, i), &n);
    test_write(path, bytes, n / 2);
    sn_free(bytes);
}

static void check_all_alike(uint64_t expected_skips)
{
    snug_data_options o = photos_options();
    uint64_t n_skipped;

    o.validation_split = 0.2;
    o.augment = (snug_augment){.hflip = 1, .rotate_degrees = 15, .shift = 0.1f, .brightness = 0.2f};
    for (int64_t batch = 1; batch <= 9; batch += 4) {
        uint64_t expected = run_hash(&o, batch, 0, 1, &n_skipped);
        assert_int_equal(n_skipped, expected_skips);
        for (int threads = 0; threads <= 5; threads++)
            for (int slots = 2; slots <= 5; slots++) {
                if (threads == 1)
                    continue;
                uint64_t got = run_hash(&o, batch, slots, threads, &n_skipped);
                if (got != expected)
                    fail_msg("batch %d, %d threads, %d slots give another run", (int)batch, threads,
                             slots);
            }
    }
    assert_no_leak();
}

static void test_threads_and_slots_do_not_matter(void **state)
{
    photos_make(folder, 3, 12);
    check_all_alike(0);
}

static void test_nor_with_bad_files(void **state)
{
    photos_make(folder, 4, 15);
    spoil(0, 0); /* the list's first, its last, two in a row, one alone */
    spoil(1, 7);
    spoil(1, 8);
    spoil(3, 14);
    spoil(2, 3);
    check_all_alike(5);
}

/* --- bad files ---------------------------------------------------------------------------------*/

static void write_in(const char *name, const char *text)
{
    char path[SN_TEST_PATH];

    test_write_text(test_path(path, folder, name), text);
}

static void test_bad_files_are_named_and_replaced(void **state)
{
    snug_data_options o = photos_options();
    snug_error err = SNUG_ERROR_INIT;
    snug_slot slot = {0};
    char file[256], why[256], path[SN_TEST_PATH];
    static const char *const expected[][2] = {
        {"class0/2.jpg", "truncated JPEG: ends at row"},
        {"class0/a.jpg", "empty file"},
        {"class0/b.jpg", "is a GIF"},
        {"class0/c.png", "no image: begins with bytes 6e 6f 6e 73"},
    };

    photos_make(folder, 2, 20);
    photos_copy(test_path(path, folder, "class0/2.jpg"), 0);
    spoil(0, 2);
    write_in("class0/a.jpg", "");
    write_in("class0/b.jpg", "GIF89a........................");
    write_in("class0/c.png", "nonsense");
    o.no_shuffle = 1;
    snug_data *data = photos_open(folder, &o);
    snug_source s = photos_start(data, 8, 0, 3, SNUG_SUBSET_TRAIN);
    assert_ok(s.reset(s.context, 0, 0, &err), &err);
    assert_ok(s.next(s.context, &slot, &err), &err);
    assert_int_equal(slot.n, 8);
    assert_int_equal(slot.positions[1], 1);
    assert_int_equal(slot.positions[2], 3);
    assert_int_equal(slot.next_position, 9);
    int64_t n = slot.n;
    while (!s.next(s.context, &slot, &err) && slot.n) {
        assert_true(slot.n == 8 || n + slot.n == 39);
        n += slot.n;
    }
    /* 4 of 43: not more than a tenth. */
    assert_int_equal(n, 39);
    assert_int_equal(snug_data_n_skipped(data), 4);
    for (uint64_t i = 0; i < 4; i++) {
        assert_ok(snug_data_skipped(data, i, file, sizeof file, why, sizeof why, &err), &err);
        assert_string_equal(file, expected[i][0]);
        assert_contains(why, expected[i][1]);
    }
    assert_fails(snug_data_skipped(data, 4, file, sizeof file, why, sizeof why, &err), SNUG_E_USAGE,
                 &err);
    snug_data_free(data);
    assert_no_leak();
}

static void test_stop_policy(void **state)
{
    snug_data_options o = photos_options();
    snug_error err = SNUG_ERROR_INIT;
    snug_slot slot = {0};

    photos_make(folder, 2, 20);
    spoil(0, 12);
    o.no_shuffle = 1;
    o.bad_files = SNUG_BAD_FILES_STOP;
    snug_data *data = photos_open(folder, &o);
    for (int threads = 1; threads <= 3; threads++) {
        snug_source s = photos_start(data, 5, 0, threads, SNUG_SUBSET_TRAIN);
        assert_ok(s.reset(s.context, 0, 0, &err), &err);
        assert_ok(s.next(s.context, &slot, &err), &err);
        assert_ok(s.next(s.context, &slot, &err), &err);
        assert_fails(s.next(s.context, &slot, &err), SNUG_E_INPUT, &err);
        assert_contains(err.what, "class0/12.jpg: ");
        /* The epoch is over. */
        assert_fails(s.next(s.context, &slot, &err), SNUG_E_USAGE, &err);
        slot = (snug_slot){0};
    }
    snug_data_free(data);
    assert_no_leak();
}

/* Batches until the epoch ends or fails. */
static snug_status drain(const snug_source *s, int64_t *n, snug_error *err)
{
    snug_slot slot = {0};
    snug_status status;

    *n = 0;
    while (!(status = s->next(s->context, &slot, err)) && slot.n)
        *n += slot.n;
    return status;
}

static void test_more_than_a_tenth_stops(void **state)
{
    snug_data_options o = photos_options();
    snug_error err = SNUG_ERROR_INIT;
    int64_t n, first = -1;

    photos_make(folder, 2, 20);
    for (size_t i = 0; i < 5; i++)
        spoil(1, i);
    o.no_shuffle = 1;
    snug_data *data = photos_open(folder, &o);
    snug_source s = photos_start(data, 8, 0, 2, SNUG_SUBSET_TRAIN);
    assert_ok(s.reset(s.context, 0, 0, &err), &err);
    /* 40 files are too few to stop before the end of the epoch. */
    assert_fails(drain(&s, &n, &err), SNUG_E_INPUT, &err);
    assert_int_equal(n, 35);
    assert_contains(err.what, "5 of 40 files cannot be read, more than a tenth; the first: "
                              "class1/0.jpg");
    snug_data_free(data);

    photos_make(folder, 2, 100);
    for (size_t i = 0; i < 60; i++)
        spoil(1, i);
    data = photos_open(folder, &o);
    for (int threads = 1; threads <= 4; threads++) {
        s = photos_start(data, 8, 0, threads, SNUG_SUBSET_TRAIN);
        assert_ok(s.reset(s.context, 0, 0, &err), &err);
        assert_fails(drain(&s, &n, &err), SNUG_E_INPUT, &err);
        /* 100 good ones, then bad ones: the 12th of 112 is the one too many. */
        assert_contains(err.what, "12 of 112 files");
        assert_true(first < 0 || first == n);
        first = n;
    }
    snug_data_free(data);
    o.lenient = 1; /* a scan goes on */
    data = photos_open(folder, &o);
    s = photos_start(data, 8, 0, 2, SNUG_SUBSET_TRAIN);
    assert_ok(s.reset(s.context, 0, 0, &err), &err);
    assert_ok(drain(&s, &n, &err), &err);
    assert_int_equal(n, 140);
    assert_int_equal(snug_data_n_skipped(data), 60);
    snug_data_free(data);
    assert_no_leak();
}

static void test_all_bad(void **state)
{
    snug_data_options o = photos_options();
    snug_error err = SNUG_ERROR_INIT;
    int64_t n;

    write_in("a/1.jpg", "no");
    write_in("b/1.jpg", "image");
    for (int threads = 1; threads <= 2; threads++) {
        snug_data *data = photos_open(folder, &o);
        snug_source s = photos_start(data, 8, 0, threads, SNUG_SUBSET_TRAIN);
        assert_ok(s.reset(s.context, 0, 0, &err), &err);
        assert_fails(drain(&s, &n, &err), SNUG_E_INPUT, &err);
        assert_contains(err.what, "2 of 2 files");
        snug_data_free(data);
    }
    assert_no_leak();
}

/* --- resume ------------------------------------------------------------------------------------*/

static void test_resume_goes_on_exactly(void **state)
{
    snug_data_options o = photos_options();
    snug_error err = SNUG_ERROR_INIT;
    enum { MOST = 32 };
    uint64_t hashes[MOST], next[MOST];
    size_t n = 0;

    photos_make(folder, 4, 11);
    spoil(0, 3);
    spoil(2, 9);
    o.augment.hflip = 1;
    o.augment.zoom = 0.2f;
    snug_data *data = photos_open(folder, &o);
    snug_source s = photos_start(data, 5, 3, 3, SNUG_SUBSET_TRAIN);
    snug_slot slot = {0};
    assert_ok(s.reset(s.context, 3, 0, &err), &err);
    for (; !s.next(s.context, &slot, &err) && slot.n; n++) {
        hashes[n] = photos_hash(0, &slot, FLOATS);
        next[n] = slot.next_position;
    }
    assert_true(n > 5);
    for (size_t from = 0; from < n; from++) {
        snug_slot again = {0};
        assert_ok(s.reset(s.context, 3, next[from], &err), &err);
        for (size_t i = from + 1; i < n; i++) {
            assert_ok(s.next(s.context, &again, &err), &err);
            assert_int_equal(photos_hash(0, &again, FLOATS), hashes[i]);
        }
        assert_ok(s.next(s.context, &again, &err), &err);
        assert_int_equal(again.n, 0);
    }
    assert_int_equal(snug_data_n_skipped(data), 2); /* each once */
    snug_data_free(data);
    assert_no_leak();
}

/* --- bytes in flight ---------------------------------------------------------------------------*/

static void test_brought_memory_is_all_that_is_written(void **state)
{
    snug_data_options o = photos_options();
    snug_error err = SNUG_ERROR_INIT;
    snug_pipe_options p = SNUG_PIPE_OPTIONS_INIT;
    snug_source s;
    snug_slot slot = {0};

    photos_make(folder, 3, 20);
    snug_data *data = photos_open(folder, &o);
    uint64_t bytes = 2 * snug_data_slot_bytes(data, 7);
    assert_true(bytes >= 2 * 7 * FLOATS * sizeof(float));
    uint8_t *memory = aligned_alloc(64, (size_t)bytes + 4096);
    memset(memory, 0xA5, (size_t)bytes + 4096);
    p.batch = 7;
    p.n_slots = 2;
    p.data_threads = 3;
    p.memory = memory;
    p.memory_bytes = bytes;
    assert_ok(snug_data_start(data, &p, &err), &err);
    assert_ok(snug_data_source(&s, data, SNUG_SUBSET_TRAIN, &err), &err);
    uint64_t allocations = sn_ledger_calls(), live = sn_ledger_live_bytes();
    for (uint64_t epoch = 0; epoch < 3; epoch++) {
        assert_ok(s.reset(s.context, epoch, 0, &err), &err);
        while (!s.next(s.context, &slot, &err) && slot.n) {
            const uint8_t *x = (const uint8_t *)slot.x;
            assert_true(x == memory || x == memory + bytes / 2);
            assert_true((const uint8_t *)(slot.positions + slot.n) <= memory + bytes);
        }
    }
    /* Nothing was allocated after the start. */
    assert_int_equal(sn_ledger_calls(), allocations);
    assert_int_equal(sn_ledger_live_bytes(), live);
    snug_data_stop(data);
    for (size_t i = (size_t)bytes; i < (size_t)bytes + 4096; i++)
        assert_int_equal(memory[i], 0xA5);
    p.memory_bytes--;
    assert_fails(snug_data_start(data, &p, &err), SNUG_E_USAGE, &err);
    p.memory_bytes++;
    p.memory = memory + 8;
    assert_fails(snug_data_start(data, &p, &err), SNUG_E_USAGE, &err);
    free(memory);
    snug_data_free(data);
    assert_no_leak();
}

static void test_lent_slot_is_left_alone(void **state)
{
    snug_data_options o = photos_options();
    snug_error err = SNUG_ERROR_INIT;
    snug_slot slot = {0};

    photos_make(folder, 3, 20);
    snug_data *data = photos_open(folder, &o);
    snug_source s = photos_start(data, 4, 2, 4, SNUG_SUBSET_TRAIN);
    assert_ok(s.reset(s.context, 0, 0, &err), &err);
    assert_ok(s.next(s.context, &slot, &err), &err);
    uint64_t before = photos_hash(0, &slot, FLOATS);
    /* The workers fill the other slot meanwhile and stop at this one: whenever we look, it is as
     * it was. */
    for (int i = 0; i < 2000; i++)
        assert_int_equal(photos_hash(0, &slot, FLOATS), before);
    snug_data_free(data);
    assert_no_leak();
}

static void test_copies_into_a_slot_of_the_caller(void **state)
{
    snug_data_options o = photos_options();
    snug_error err = SNUG_ERROR_INIT;
    static float x[4 * FLOATS];
    int32_t classes[4];
    uint64_t positions[4];
    snug_slot own = {.x = x, .classes = classes, .positions = positions, .capacity = 4}, lent = {0};

    photos_make(folder, 2, 5);
    snug_data *data = photos_open(folder, &o);
    snug_source s = photos_start(data, 4, 0, 2, SNUG_SUBSET_TRAIN);
    for (int batch = 0; batch < 3; batch++) {
        uint64_t first = (uint64_t)batch * 4;
        lent = (snug_slot){0};
        assert_ok(s.reset(s.context, 0, first, &err), &err);
        assert_ok(s.next(s.context, &lent, &err), &err);
        uint64_t h = photos_hash(0, &lent, FLOATS);
        assert_ok(s.reset(s.context, 0, first, &err), &err);
        assert_ok(s.next(s.context, &own, &err), &err);
        assert_ptr_equal(own.x, x);
        assert_int_equal(photos_hash(0, &own, FLOATS), h);
    }
    assert_int_equal(lent.sample_size, FLOATS);
    own.capacity = 3;
    assert_ok(s.reset(s.context, 0, 0, &err), &err);
    assert_fails(s.next(s.context, &own, &err), SNUG_E_USAGE, &err);
    own.capacity = 4;
    own.sample_size = FLOATS - 1;
    assert_ok(s.reset(s.context, 0, 0, &err), &err);
    assert_fails(s.next(s.context, &own, &err), SNUG_E_INPUT, &err);
    assert_contains(err.what, "numbers, the model takes");
    snug_data_free(data);
    assert_no_leak();
}

static void test_host_bytes_bound_what_is_held(void **state)
{
    snug_error err = SNUG_ERROR_INIT;

    photos_make(folder, 3, 4);
    for (int with = 0; with < 2; with++)
        for (int threads = 1; threads < 4; threads++) {
            snug_data_options o = photos_options();
            snug_pipe_options p = SNUG_PIPE_OPTIONS_INIT;
            o.augment.rotate_degrees = with ? 10.0f : 0.0f;
            o.decode_bytes = 3 * SN_MIB;
            snug_data *data = photos_open(folder, &o);
            p.batch = 6;
            p.data_threads = threads;
            assert_ok(snug_data_start(data, &p, &err), &err);
            uint64_t held = sn_ledger_live_bytes();
            uint64_t stacks = threads > 1 ? (uint64_t)threads * 272 * 1024 : 0;
            uint64_t bound = snug_data_host_bytes(data, &p);
            assert_true(held + stacks <= bound + 2048);
            assert_true(bound <= held + stacks + 64 * 1024);
            snug_data_free(data);
        }
    assert_no_leak();
}

/* --- ends --------------------------------------------------------------------------------------*/

static void test_end_at_any_moment(void **state)
{
    snug_data_options o = photos_options();
    snug_error err = SNUG_ERROR_INIT;

    photos_make(folder, 3, 12);
    spoil(1, 1);
    for (int threads = 1; threads <= 4; threads++)
        for (int batches = -1; batches < 9; batches++)
            for (int how = 0; how < 3; how++) {
                snug_data *data = photos_open(folder, &o);
                snug_source s = photos_start(data, 5, 0, threads, SNUG_SUBSET_TRAIN);
                snug_slot slot = {0};
                if (batches >= 0)
                    assert_ok(s.reset(s.context, 0, 0, &err), &err);
                for (int i = 0; i < batches; i++)
                    assert_ok(s.next(s.context, &slot, &err), &err);
                if (how == 1)
                    snug_data_stop(data);
                if (how == 2) {
                    slot = (snug_slot){0};
                    assert_ok(s.reset(s.context, 1, 3, &err), &err);
                    assert_ok(s.next(s.context, &slot, &err), &err);
                    assert_int_equal(slot.n, 5);
                }
                snug_data_free(data);
            }
    assert_no_leak();
}

static void test_wrong_use(void **state)
{
    snug_data_options o = photos_options();
    snug_pipe_options p = SNUG_PIPE_OPTIONS_INIT;
    snug_error err = SNUG_ERROR_INIT;
    snug_source s, v;
    snug_slot slot = {0};
    static const int64_t batches[] = {-1, INT64_MAX, (INT64_C(1) << 31) + 1};

    photos_make(folder, 3, 4);
    o.validation_split = 0.25;
    snug_data *data = photos_open(folder, &o);
    assert_fails(snug_data_source(&s, data, SNUG_SUBSET_TRAIN, &err), SNUG_E_USAGE, &err);
    for (size_t i = 0; i < SN_LEN(batches); i++) {
        p.batch = batches[i];
        assert_fails(snug_data_start(data, &p, &err), SNUG_E_USAGE, &err);
        assert_int_equal(snug_data_slot_bytes(data, batches[i]), 0);
    }
    assert_int_equal(snug_data_slot_bytes(data, 0), 0);
    p.batch = 4;
    p.n_slots = 1;
    p.data_threads = 2;
    assert_fails(snug_data_start(data, &p, &err), SNUG_E_USAGE, &err);
    s = photos_start(data, 4, 0, 2, SNUG_SUBSET_TRAIN);
    assert_ok(snug_data_source(&v, data, SNUG_SUBSET_VALIDATION, &err), &err);
    assert_fails(s.next(s.context, &slot, &err), SNUG_E_USAGE, &err);
    assert_ok(s.reset(s.context, 0, 0, &err), &err);
    assert_fails(v.next(v.context, &slot, &err), SNUG_E_USAGE, &err);
    assert_fails(s.reset(s.context, 0, 10, &err), SNUG_E_USAGE, &err);
    assert_ok(s.reset(s.context, 0, 9, &err), &err);
    assert_ok(s.next(s.context, &slot, &err), &err);
    assert_int_equal(slot.n, 0);
    snug_data_stop(data);
    assert_fails(s.next(s.context, &slot, &err), SNUG_E_USAGE, &err);
    assert_fails(s.reset(s.context, 0, 0, &err), SNUG_E_USAGE, &err);
    snug_data_free(data);
    assert_no_leak();
}

static void test_any_failed_allocation(void **state)
{
    snug_data_options o = photos_options();
    snug_pipe_options p = SNUG_PIPE_OPTIONS_INIT;
    bool passed = false;

    photos_make(folder, 2, 3);
    o.augment.hflip = 1;
    p.data_threads = 2;
    p.batch = 2;
    for (uint64_t nth = 1; !passed; nth++) {
        snug_data *data = NULL;
        snug_error err = SNUG_ERROR_INIT;
        sn_ledger_fail_nth(nth);
        snug_status status = snug_data_open(&data, folder, &o, &err);
        if (!status)
            status = snug_data_start(data, &p, &err);
        passed = sn_ledger_calls() && status == SNUG_OK;
        sn_ledger_fail_nth(0);
        if (status)
            assert_int_equal(err.code, SNUG_E_MEMORY);
        snug_data_free(data);
        assert_no_leak();
        assert_true(nth < 1000);
    }
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)
    const struct CMUnitTest tests[] = {
        T(test_list_order),
        T(test_shuffle_is_a_permutation_of_its_epoch),
        T(test_threads_and_slots_do_not_matter),
        T(test_nor_with_bad_files),
        T(test_bad_files_are_named_and_replaced),
        T(test_stop_policy),
        T(test_more_than_a_tenth_stops),
        T(test_all_bad),
        T(test_resume_goes_on_exactly),
        T(test_brought_memory_is_all_that_is_written),
        T(test_lent_slot_is_left_alone),
        T(test_copies_into_a_slot_of_the_caller),
        T(test_host_bytes_bound_what_is_held),
        T(test_end_at_any_moment),
        T(test_wrong_use),
        T(test_any_failed_allocation),
    };

    return cmocka_run_group_tests_name("data/pipe", tests, NULL, NULL);
}
