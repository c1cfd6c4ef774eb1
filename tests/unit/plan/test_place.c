/* SPDX-License-Identifier: Apache-2.0
 *
 * test_place.c - offsets worked out by hand, random problems, slabs, the public instances.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/io.h"
#include "base/ledger.h"
#include "base/rng.h"
#include "plan/place.h"
#include "snug/plan.h"

/* A judge of its own: nothing of place.c is used. Returns the text of what is wrong. */
static const char *judge(const sn_place_item *items, size_t n, uint64_t align, uint64_t slab_bytes,
                         uint64_t peak)
{
    uint64_t top[64] = {0}, sum = 0;
    for (size_t i = 0; i < n; i++) {
        if (items[i].offset % align)
            return "alignment";
        if (slab_bytes && items[i].offset + items[i].bytes > slab_bytes)
            return "slab";
        if (items[i].slab >= 64)
            return "too many slabs for this judge";
        uint64_t end = items[i].offset + (items[i].bytes + align - 1) / align * align;
        if (items[i].bytes && end > top[items[i].slab])
            top[items[i].slab] = end;
        for (size_t k = 0; k < i; k++)
            if (items[i].slab == items[k].slab && items[i].first <= items[k].last &&
                items[k].first <= items[i].last &&
                items[i].offset < items[k].offset + items[k].bytes &&
                items[k].offset < items[i].offset + items[i].bytes)
                return "overlap";
    }
    for (int s = 0; s < 64; s++)
        sum += top[s];
    return sum == peak ? NULL : "peak";
}

static void place(sn_place_item *items, size_t n, sn_place_options o, sn_place_result *r)
{
    snug_error err = SNUG_ERROR_INIT;
    assert_int_equal(sn_place(items, n, &o, r, &err), SNUG_OK);
    assert_true(r->peak_bytes >= r->lower_bound_bytes || o.slab_bytes);
    const char *wrong = judge(items, n, o.align ? o.align : 1, o.slab_bytes, r->peak_bytes);
    if (wrong)
        fail_msg("%s", wrong);
}

/* By size: 40 at 0; 30 lives beside it, at 40; 20 lives after 40 and beside 30: at 0; 10 lives
 * beside 30 and 20: first fit finds 20. */
static void by_hand(void **state)
{
    sn_place_item items[] = {{.bytes = 40, .first = 0, .last = 1},
                             {.bytes = 30, .first = 1, .last = 3},
                             {.bytes = 20, .first = 2, .last = 3},
                             {.bytes = 10, .first = 3, .last = 4}};
    sn_place_result r;
    place(items, 4, (sn_place_options){.align = 1}, &r);
    assert_int_equal(items[0].offset, 0);
    assert_int_equal(items[1].offset, 40);
    assert_int_equal(items[2].offset, 0);
    assert_int_equal(items[3].offset, 20);
    assert_int_equal(r.peak_bytes, 70);
    assert_int_equal(r.lower_bound_bytes, 70);
    assert_string_equal(r.order, "size, first fit");
}

/* The same with offsets in multiples of 16: 40 takes 48, 30 takes 32, 20 takes 32, 10 takes 16. */
static void aligned(void **state)
{
    sn_place_item items[] = {{.bytes = 40, .first = 0, .last = 1},
                             {.bytes = 30, .first = 1, .last = 3},
                             {.bytes = 20, .first = 2, .last = 3},
                             {.bytes = 10, .first = 3, .last = 4}};
    sn_place_result r;
    place(items, 4, (sn_place_options){.align = 16}, &r);
    assert_int_equal(items[1].offset, 48);
    assert_int_equal(items[2].offset, 0);
    assert_int_equal(items[3].offset, 32);
    assert_int_equal(r.peak_bytes, 80);
}

/* Best fit takes the tighter of two gaps. Fixed: [0,10) [30,40) [45,60); free: 10..30 and 40..45.
 */
static void best_fit(void **state)
{
    sn_place_item items[] = {{.bytes = 10, .last = 9, .fixed = true, .offset = 0},
                             {.bytes = 10, .last = 9, .fixed = true, .offset = 30},
                             {.bytes = 15, .last = 9, .fixed = true, .offset = 45},
                             {.bytes = 5, .first = 0, .last = 4},
                             {.bytes = 18, .first = 3, .last = 9}};
    sn_place_result r;
    place(items, 5, (sn_place_options){.align = 1}, &r);
    assert_int_equal(r.peak_bytes, 60);
    assert_int_equal(items[3].offset, 40);
    assert_int_equal(items[4].offset, 10);
    assert_int_equal(items[1].offset, 30);
}

static void nothing_and_zero(void **state)
{
    sn_place_item none,
        zero[] = {{.bytes = 0, .first = 0, .last = 5}, {.bytes = 8, .first = 0, .last = 5}};
    sn_place_result r;
    place(&none, 0, (sn_place_options){.align = 1}, &r);
    assert_int_equal(r.peak_bytes, 0);
    place(zero, 2, (sn_place_options){.align = 1}, &r);
    assert_int_equal(r.peak_bytes, 8);
}

/* Three of 60 and one of 40 in slabs of 100, all alive: 60+40, 60, 60. */
static void slabs(void **state)
{
    sn_place_item items[] = {{.bytes = 60, .last = 1},
                             {.bytes = 60, .last = 1},
                             {.bytes = 40, .last = 1},
                             {.bytes = 60, .last = 1}};
    sn_place_result r;
    place(items, 4, (sn_place_options){.align = 4, .slab_bytes = 100}, &r);
    assert_int_equal(r.n_slabs, 3);
    assert_int_equal(r.peak_bytes, 220);

    sn_place_item large[] = {{.bytes = 8}, {.bytes = 101}};
    snug_error err = SNUG_ERROR_INIT;
    sn_place_options o = {.align = 4, .slab_bytes = 100};
    assert_int_equal(sn_place(large, 2, &o, &r, &err), SNUG_E_DOES_NOT_FIT);
    assert_int_equal(err.need, 101);
    assert_int_equal(err.have, 100);
    assert_int_equal(err.pos, 1);
}

static size_t random_items(sn_place_item *items, uint64_t seed, size_t most, uint32_t horizon)
{
    uint32_t r[4];
    sn_philox(r, 7, seed, 0);
    size_t n = 1 + r[0] % most;
    for (size_t i = 0; i < n; i++) {
        sn_philox(r, 7, seed, i + 1);
        uint32_t first = r[0] % horizon, length = r[1] % (r[3] % 4 ? 6 : horizon);
        items[i] = (sn_place_item){.bytes = r[2] % (r[3] % 8 ? 2000 : 30000),
                                   .first = first,
                                   .last = SN_MIN(first + length, horizon - 1)};
    }
    return n;
}

static void thousands(void **state)
{
    static sn_place_item items[120], again[120];
    double worst = 0, sum = 0;
    for (uint64_t seed = 0; seed < 3000; seed++) {
        size_t n = random_items(items, seed, 120, 60);
        memcpy(again, items, sizeof again);
        sn_place_result r, r2;
        sn_place_options o = {.align = (uint64_t)1 << seed % 8, .search = seed % 10 ? 0 : 5000};
        if (seed % 3 == 0)
            o.slab_bytes = 32768;
        place(items, n, o, &r);
        if (seed % 10 == 0) {
            place(again, n, o, &r2);
            assert_memory_equal(items, again, n * sizeof *items);
        }
        double ratio = r.lower_bound_bytes ? (double)r.peak_bytes / (double)r.lower_bound_bytes : 1;
        worst = SN_MAX(worst, ratio);
        sum += ratio;
    }
    print_message("3000 random problems: mean peak / lower bound %.4f, worst %.3f\n", sum / 3000,
                  worst);
    assert_true(sum / 3000 < 1.1);
}

/* The search never makes a plan worse, and some plans better. */
static void search_helps(void **state)
{
    static sn_place_item items[200], again[200];
    uint64_t without = 0, with = 0;
    for (uint64_t seed = 5000; seed < 5030; seed++) {
        size_t n = random_items(items, seed, 200, 100);
        memcpy(again, items, sizeof again);
        sn_place_result a, b;
        place(items, n, (sn_place_options){.align = 1}, &a);
        place(again, n, (sn_place_options){.align = 1, .search = 100000}, &b);
        assert_true(b.peak_bytes <= a.peak_bytes);
        without += a.peak_bytes;
        with += b.peak_bytes;
    }
    assert_true(with < without);
}

/* ---- files ----------------------------------------------------------------------------------- */

static const char *shared(char *out, size_t n, const char *name)
{
    const char *root = getenv("SNUG_SHARED");
    snprintf(out, n, "%s/data/minimalloc/%s", root ? root : SNUG_SOURCE_DIR "/../shared", name);
    return sn_io_is_file(out) ? out : NULL;
}

static void minimalloc(void **state)
{
    char path[512], name[32];
    if (!shared(path, sizeof path, "A.1048576.csv")) {
        print_message("no ../shared/data/minimalloc: skipped\n");
        skip();
    }
    for (char c = 'A'; c <= 'K'; c++) {
        snug_error err = SNUG_ERROR_INIT;
        snug_place_result r;
        snprintf(name, sizeof name, "%c.1048576.csv", c);
        snug_status s = snug_place_file(&r, shared(path, sizeof path, name), 1048576, NULL, &err);
        assert_true(s == SNUG_OK || s == SNUG_E_DOES_NOT_FIT);
        assert_int_equal(s == SNUG_OK, r.peak_bytes <= 1048576);
        print_message("%c: %zu buffers, peak / lower bound %.3f\n", c, r.n,
                      (double)r.peak_bytes / (double)r.lower_bound_bytes);
        assert_true((double)r.peak_bytes <= 1.30 * (double)r.lower_bound_bytes);
    }
    snug_place_result r;
    assert_int_equal(snug_place_file(&r, shared(path, sizeof path, "input.12.csv"), 12, NULL, NULL),
                     SNUG_OK);
    assert_int_equal(r.n, 5);
}

static char csv[] = "/tmp/snug_place_XXXXXX";

static snug_status place_text(const char *text, uint64_t capacity, const char *out,
                              snug_place_result *r, snug_error *err)
{
    assert_int_equal(sn_io_write_file(csv, text, strlen(text), err), SNUG_OK);
    return snug_place_file(r, csv, capacity, out, err);
}

static void files(void **state)
{
    int fd = mkstemp(csv);
    assert_true(fd >= 0);
    fclose(fdopen(fd, "w"));
    char out[64];
    snprintf(out, sizeof out, "%s.out", csv);
    snug_error err = SNUG_ERROR_INIT;
    snug_place_result r;
    /* columns in any order, others ignored, half open: b may take a's place at 10 */
    assert_int_equal(
        place_text("size,id,upper,lower,x\n64,a,10,0,?\r\n32,b,20,10,?\n\n", 0, out, &r, &err),
        SNUG_OK);
    assert_int_equal(r.peak_bytes, 64);
    char *text;
    size_t n;
    assert_int_equal(sn_io_read_all(&text, &n, out, 1000, SN_TAG_TEST, &err), SNUG_OK);
    assert_string_equal(text, "id,lower,upper,size,offset\na,0,10,64,0\nb,10,20,32,0\n");
    sn_free(text);
    assert_int_equal(place_text("id,lower,upper,size\na,0,2,60\nb,1,3,60\n", 100, NULL, &r, &err),
                     SNUG_E_DOES_NOT_FIT);
    assert_int_equal(r.peak_bytes, 120);
    assert_int_equal(err.need, 120);
    assert_int_equal(err.have, 100);

    static const struct {
        const char *text, *part;
        uint64_t line;
    } bad[] = {{"", "'id'", 0},
               {"id,lower,size\n", "'upper'", 0},
               {"id,lower,upper,size\na,0,0,5\n", "not above", 2},
               {"id,lower,upper,size\na,0,1,5\nb,0,1\n", "line 3", 3},
               {"id,lower,upper,size\na,-1,1,5\n", "line 2", 2},
               {"id,lower,upper,size\na,0,1,99999999999999999999\n", "line 2", 2},
               {"id,lower,upper,size\na,0,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1\n", "line 2", 2}};
    for (size_t i = 0; i < SN_LEN(bad); i++) {
        err = (snug_error)SNUG_ERROR_INIT;
        assert_int_equal(place_text(bad[i].text, 0, NULL, &r, &err), SNUG_E_INPUT);
        assert_non_null(strstr(err.what, bad[i].part));
        assert_int_equal(err.pos, bad[i].line);
    }
    assert_int_equal(snug_place_file(&r, "/nowhere/x.csv", 0, NULL, &err), SNUG_E_NOT_FOUND);
    assert_int_equal(snug_place_file(&r, NULL, 0, NULL, &err), SNUG_E_USAGE);

    /* Every allocation may fail. */
    snug_status s = SNUG_E_MEMORY;
    uint64_t nth = 0;
    while (s != SNUG_OK) {
        sn_ledger_fail_nth(++nth);
        s = snug_place_file(&r, csv, 0, out, &err);
        if (s != SNUG_OK && s != SNUG_E_INPUT)
            assert_int_equal(s, SNUG_E_MEMORY);
        sn_ledger_fail_nth(0);
        if (s == SNUG_E_INPUT)
            place_text("id,lower,upper,size\na,0,2,60\nb,1,3,60\n", 0, NULL, &r, &err);
        assert_true(nth < 100);
    }
    assert_true(nth > 5);
    remove(csv);
    remove(out);
}

static void leaks_nothing(void **state)
{
    assert_int_equal(sn_ledger_live_bytes(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_hand),      cmocka_unit_test(aligned),
        cmocka_unit_test(best_fit),     cmocka_unit_test(nothing_and_zero),
        cmocka_unit_test(slabs),        cmocka_unit_test(thousands),
        cmocka_unit_test(search_helps), cmocka_unit_test(minimalloc),
        cmocka_unit_test(files),        cmocka_unit_test(leaks_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
