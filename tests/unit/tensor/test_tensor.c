/* SPDX-License-Identifier: Apache-2.0 */
#include "support/support.h"

#include "tensor/tensor.h"

#include <string.h>

static void dtypes(void **state)
{
    const size_t bytes[SN_N_DTYPES] = {4, 2, 2, 4, 1};
    for (int i = 0; i < SN_N_DTYPES; i++) {
        assert_int_equal(sn_dtype_bytes((sn_dtype)i), bytes[i]);
        assert_true(sn_dtype_name((sn_dtype)i)[0] != '?');
    }
    assert_int_equal(sn_dtype_bytes(SN_N_DTYPES), 0);
    assert_string_equal(sn_dtype_name(SN_N_DTYPES), "?");
}

static void counts(void **state)
{
    uint64_t n;
    sn_shape s = sn_shape_of(4, (int64_t[]){2, 3, 4, 5});
    assert_false(sn_shape_count(&s, &n));
    assert_int_equal(n, 120);
    assert_int_equal(sn_shape_n(&s), 120);
    s.rank = 0;
    assert_false(sn_shape_count(&s, &n));
    assert_int_equal(n, 1);
    s = sn_shape_of(2, (int64_t[]){0, INT64_MAX});
    assert_false(sn_shape_count(&s, &n));
    assert_int_equal(n, 0);
}

static void absurd_counts(void **state)
{
    uint64_t n;
    sn_shape s = sn_shape_of(3, (int64_t[]){(int64_t)1 << 32, (int64_t)1 << 31, 2});
    assert_true(sn_shape_count(&s, &n));
    s = sn_shape_of(1, (int64_t[]){-1});
    assert_true(sn_shape_count(&s, &n));
    s = (sn_shape){SN_MAX_RANK + 1, {1, 1, 1, 1, 1}};
    assert_true(sn_shape_count(&s, &n));
    s.rank = -1;
    assert_true(sn_shape_count(&s, &n));
    sn_desc d = {SN_F32, sn_shape_of(1, (int64_t[]){INT64_MAX})};
    assert_true(sn_desc_bytes(&d, &n));
    d.dtype = SN_U8;
    assert_false(sn_desc_bytes(&d, &n));
    assert_true(n == INT64_MAX);
}

static void texts(void **state)
{
    char text[64];
    sn_shape s = sn_shape_of(4, (int64_t[]){16, 224, 224, 3});
    assert_string_equal(sn_shape_format(text, sizeof text, &s), "[16,224,224,3]");
    assert_string_equal(sn_shape_format(text, 6, &s), "[16,2"); /* cut off, never past the end */
    s.rank = 0;
    assert_string_equal(sn_shape_format(text, sizeof text, &s), "[]");
}

static void broadcasting(void **state)
{
    sn_shape out, a = sn_shape_of(4, (int64_t[]){2, 1, 4, 5}),
                  b = sn_shape_of(2, (int64_t[]){4, 1});
    const sn_shape both = sn_shape_of(4, (int64_t[]){2, 1, 4, 5});
    assert_true(sn_shape_broadcast(&out, &a, &b));
    assert_true(sn_shape_eq(&out, &both));
    b = sn_shape_of(3, (int64_t[]){3, 1, 5});
    const sn_shape wide = sn_shape_of(4, (int64_t[]){2, 3, 4, 5});
    assert_true(sn_shape_broadcast(&out, &b, &a));
    assert_true(sn_shape_eq(&out, &wide));
    b = sn_shape_of(1, (int64_t[]){4});
    assert_false(sn_shape_broadcast(&out, &a, &b));
    b.rank = 0;
    assert_true(sn_shape_broadcast(&out, &b, &a));
    assert_true(sn_shape_eq(&out, &a));
}

static void layouts(void **state)
{
    assert_true(sn_layout_eq(SN_PLAIN, SN_PLAIN));
    assert_false(sn_layout_eq(SN_PLAIN, SN_BLOCKED(8)));
    assert_false(sn_layout_eq(SN_BLOCKED(16), SN_BLOCKED(8)));
    assert_false(
        sn_layout_eq((sn_layout){SN_LAYOUT_OPAQUE, 0, 1}, (sn_layout){SN_LAYOUT_OPAQUE, 0, 2}));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dtypes), cmocka_unit_test(counts),       cmocka_unit_test(absurd_counts),
        cmocka_unit_test(texts),  cmocka_unit_test(broadcasting), cmocka_unit_test(layouts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
