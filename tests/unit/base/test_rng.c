/* SPDX-License-Identifier: Apache-2.0
 *
 * test_rng.c - Philox against the published vectors; the permutation against its definition.
 */
#include "support/support.h"

#include "base/rng.h"

#include <string.h>

/* Random123's kat_vectors, philox4x32 with 10 rounds. */
static void philox_matches_the_published_vectors(void **state)
{
    static const struct {
        uint64_t key, lo, hi;
        uint32_t out[4];
    } vectors[] = {
        {0, 0, 0, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {UINT64_MAX, UINT64_MAX, UINT64_MAX, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {0x299f31d0a4093822,
         0x85a308d3243f6a88,
         0x0370734413198a2e,
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < SN_LEN(vectors); i++) {
        uint32_t out[4];
        sn_philox(out, vectors[i].key, vectors[i].lo, vectors[i].hi);
        assert_memory_equal(out, vectors[i].out, sizeof out);
    }
}

static void uniforms_lie_in_the_half_open_interval(void **state)
{
    assert_true(sn_uniform_f32(0) == 0.0f);
    assert_true(sn_uniform_f32(UINT32_MAX) < 1.0f);
    assert_true(sn_uniform_f32(UINT32_MAX) == 16777215.0f / 16777216.0f);
    assert_true(sn_uniform_f32(0x80000000) == 0.5f);
    double sum = 0;
    for (uint32_t i = 0; i < 10000; i++) {
        uint32_t r[4];
        sn_philox(r, 1, i, 0);
        for (size_t k = 0; k < 4; k++)
            sum += (double)sn_uniform_f32(r[k]);
    }
    /* 40,000 draws: the mean's standard deviation is 0.0014; the draws are always the same. */
    assert_true(sum / 40000 > 0.495 && sum / 40000 < 0.505);
}

static void mixing_depends_on_both_and_on_their_order(void **state)
{
    assert_true(sn_mix_u64(1, 2) == sn_mix_u64(1, 2));
    assert_true(sn_mix_u64(1, 2) != sn_mix_u64(2, 1));
    assert_true(sn_mix_u64(0, 0) != 0);
    for (uint64_t i = 1; i < 64; i++) {
        assert_true(sn_mix_u64(5, 6) != sn_mix_u64(5 ^ (UINT64_C(1) << i), 6));
        assert_true(sn_mix_u64(5, 6) != sn_mix_u64(5, 6 ^ (UINT64_C(1) << i)));
    }
}

static void check_bijective(uint64_t n, uint64_t key)
{
    unsigned char *seen = sn_alloc(SN_TAG_TEST, n);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t j = sn_permute(i, n, key);
        if (j >= n || seen[j])
            fail_msg("n %" PRIu64 ", key %" PRIu64 ": %" PRIu64 " -> %" PRIu64, n, key, i, j);
        seen[j] = 1;
    }
    sn_free(seen);
}

static void the_permutation_is_bijective(void **state)
{
    for (uint64_t n = 1; n <= 300; n++)
        for (uint64_t key = 0; key < 5; key++)
            check_bijective(n, key);
    static const uint64_t sizes[] = {1023, 1024,  1025,  4095,  4096,
                                     4097, 60000, 65536, 65537, 100003};
    for (size_t i = 0; i < SN_LEN(sizes); i++)
        check_bijective(sizes[i], 0x123456789abcdef);
    assert_no_leak();
}

static void huge_domains_stay_inside(void **state)
{
    static const uint64_t sizes[] = {(UINT64_C(1) << 32) + 1, (UINT64_C(1) << 62) + 1,
                                     UINT64_C(1) << 63, UINT64_MAX};
    for (size_t k = 0; k < SN_LEN(sizes); k++) {
        uint64_t n = sizes[k], previous = UINT64_MAX;
        for (uint64_t i = 0; i < 1000; i++) {
            uint64_t j = sn_permute(i, n, 9);
            assert_true(j < n);
            assert_true(j != previous);
            previous = j;
        }
        assert_true(sn_permute(n - 1, n, 9) < n);
    }
}

/* A shuffle that leaves much in place, or that a key does not change, would be no shuffle. For a
 * random permutation the number of fixed points is Poisson with mean 1. */
static void it_shuffles(void **state)
{
    enum { N = 10000 };
    size_t fixed = 0, same = 0, neighbours = 0;
    for (uint64_t i = 0; i < N; i++) {
        uint64_t a = sn_permute(i, N, 1);
        fixed += a == i;
        same += a == sn_permute(i, N, 2);
        neighbours += sn_permute((i + 1) % N, N, 1) == (a + 1) % N;
    }
    assert_true(fixed < 10);
    assert_true(same < 10);
    assert_true(neighbours < 10);
}

/* Each element must be able to land anywhere, evenly over the keys: 16 x 16 counts over 16,000 keys
 * have mean 1000 and standard deviation 31; the keys are always the same. */
static void every_place_is_as_likely(void **state)
{
    uint32_t count[16][16] = {{0}};
    for (uint64_t key = 0; key < 16000; key++)
        for (uint64_t i = 0; i < 16; i++)
            count[i][sn_permute(i, 16, key)]++;
    for (size_t i = 0; i < 16; i++)
        for (size_t j = 0; j < 16; j++)
            if (count[i][j] < 840 || count[i][j] > 1160)
                fail_msg("%zu -> %zu: %u of 16000", i, j, count[i][j]);
}

/* Runs are resumed by other builds of snug: these may never change. */
static void the_order_is_frozen(void **state)
{
    static const uint64_t expected[10] = {7, 6, 4, 3, 5, 1, 0, 9, 2, 8};
    for (uint64_t i = 0; i < 10; i++)
        assert_int_equal(sn_permute(i, 10, 42), expected[i]);
    assert_true(sn_mix_u64(1, 2) == UINT64_C(0xe2bbf3eb5675cf33));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(philox_matches_the_published_vectors),
        cmocka_unit_test(uniforms_lie_in_the_half_open_interval),
        cmocka_unit_test(mixing_depends_on_both_and_on_their_order),
        cmocka_unit_test(the_permutation_is_bijective),
        cmocka_unit_test(huge_domains_stay_inside),
        cmocka_unit_test(it_shuffles),
        cmocka_unit_test(every_place_is_as_likely),
        cmocka_unit_test(the_order_is_frozen),
    };
    return cmocka_run_group_tests_name("base/rng", tests, NULL, NULL);
}
