/* SPDX-License-Identifier: Apache-2.0
 *
 * test_null.c - devices by their text: cards that are not here, and what is refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "backend/backend.h"
#include "base/ledger.h"
#include "snug/device.h"

static void a_card(void **state)
{
    snug_device_info info;
    snug_error err = SNUG_ERROR_INIT;
    assert_int_equal(
        snug_device_query(&info, "null:2GiB,tflops=1.8,gbps=106,reserve=225MiB", 0, &err), SNUG_OK);
    assert_int_equal(info.total_bytes, 2 * SN_GIB);
    assert_int_equal(info.free_bytes, 2 * SN_GIB - 225 * SN_MIB);
    assert_int_equal(info.reserve_bytes, 225 * SN_MIB);
    assert_int_equal(info.largest_bytes, SN_GIB / 2);
    assert_true(info.flops > 1.79e12 && info.flops < 1.81e12);
    assert_true(info.bytes_per_second > 105e9 && info.bytes_per_second < 107e9);
    assert_false(info.computes);
    assert_false(info.is_host);
    assert_string_equal(info.spec, "null:2GiB,tflops=1.8,gbps=106,reserve=225MiB");
}

static void refused(void **state)
{
    static const char *const bad[] = {"null",
                                      "null:",
                                      "null:x",
                                      "null:-1",
                                      "null:1K",
                                      "null:2GiB,",
                                      "null:2GiB,tflops",
                                      "null:2GiB,tflops=x",
                                      "null:2GiB,tflops=0",
                                      "null:2GiB,gbps=-1",
                                      "null:2GiB,cores=7",
                                      "null:2GiB,reserve=3GiB",
                                      "gpu",
                                      "nul:2GiB",
                                      "",
                                      "null:99999999999999999999GiB"};
    for (size_t i = 0; i < SN_LEN(bad); i++) {
        snug_device_info info;
        snug_error err = SNUG_ERROR_INIT;
        if (snug_device_query(&info, bad[i], 0, &err) != SNUG_E_USAGE)
            fail_msg("'%s' was taken", bad[i]);
        assert_true(strlen(err.what) > 10);
    }
}

static void computes_nothing(void **state)
{
    snug_error err = SNUG_ERROR_INIT;
    sn_device *d;
    sn_memory *memory;
    sn_exec *exec;
    sn_program program = {.batch = 1};
    sn_step step = {.n_batch = 1};
    uint64_t bytes = 128;
    assert_int_equal(sn_device_open(&d, "null:1GiB", NULL, &err), SNUG_OK);
    assert_int_equal(d->backend->reserve(d, 1, &bytes, NULL, &memory, &err), SNUG_E_DEVICE);
    assert_null(memory);
    assert_int_equal(d->backend->prepare(NULL, &program, 1, &exec, &err), SNUG_E_DEVICE);
    assert_int_equal(d->backend->run(NULL, &step, 0, 0, &err), SNUG_E_DEVICE);
    assert_non_null(strstr(err.what, "computes nothing"));
    sn_device_close(d);
    sn_device_close(NULL);
}

static void every_backend_has_a_whole_table(void **state)
{
    size_t n, n_names;
    const sn_backend *const *list = sn_backends(&n);
    const char *const *names = snug_device_kinds(&n_names);
    assert_int_equal(n, n_names);
    for (size_t i = 0; i < n; i++) {
        const sn_backend *b = list[i];
        assert_string_equal(b->name, names[i]);
        assert_true(b->open && b->close && b->info && b->layout_bytes && b->layout_name &&
                    b->propose && b->kernel_name && b->reserve && b->release && b->write &&
                    b->read && b->prepare && b->run && b->discard && b->measured_peak);
    }
}

static void cards(void **state)
{
    size_t n;
    char spec[128];
    const snug_card *list = snug_cards(&n);
    assert_true(n >= 40);
    for (size_t i = 0; i < n; i++) {
        snug_device_info info;
        snug_error err = SNUG_ERROR_INIT;
        assert_int_equal(snug_card_spec(spec, sizeof spec, list[i].name, &err), SNUG_OK);
        assert_int_equal(snug_device_query(&info, spec, 0, &err), SNUG_OK);
        assert_int_equal(info.total_bytes, list[i].bytes);
        assert_true(info.free_bytes < info.total_bytes && info.flops > 1e11);
    }
    static const char *const same[] = {"GTX 950", "gtx950", "NVIDIA GeForce GTX 950",
                                       "geforce gtx-950"};
    for (size_t i = 0; i < SN_LEN(same); i++) {
        assert_int_equal(snug_card_spec(spec, sizeof spec, same[i], NULL), SNUG_OK);
        assert_string_equal(spec, "null:2048MiB,tflops=1.8,gbps=106,reserve=225MiB");
    }
    assert_int_equal(snug_card_spec(spec, sizeof spec, "2GB", NULL), SNUG_OK);
    assert_string_equal(spec, "null:2048MiB,reserve=225MiB");
    snug_error err = SNUG_ERROR_INIT;
    assert_int_equal(snug_card_spec(spec, sizeof spec, "GTX 1060", &err), SNUG_E_NOT_FOUND);
    assert_non_null(strstr(err.what, "GTX 1060 3GB"));
    assert_int_equal(snug_card_spec(spec, sizeof spec, "GTX 951", &err), SNUG_E_NOT_FOUND);
    assert_non_null(strstr(err.what, "GTX 950"));
    assert_int_equal(snug_card_spec(spec, sizeof spec, "", &err), SNUG_E_USAGE);
    assert_int_equal(snug_card_spec(spec, sizeof spec, "potato chips", &err), SNUG_E_NOT_FOUND);
}

static void leaks_nothing(void **state)
{
    assert_int_equal(sn_ledger_live_bytes(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_card),
                                       cmocka_unit_test(refused),
                                       cmocka_unit_test(computes_nothing),
                                       cmocka_unit_test(every_backend_has_a_whole_table),
                                       cmocka_unit_test(cards),
                                       cmocka_unit_test(leaks_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
