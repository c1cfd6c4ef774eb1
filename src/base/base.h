/* SPDX-License-Identifier: Apache-2.0
 *
 * base.h - what every room may count on: fixed-width types, checked arithmetic, failing with an
 * error, small text helpers.
 *
 *     if (sn_mul_u64(&bytes, n, size))
 *         return sn_fail(err, SNUG_E_INPUT, "image of %" PRIu64 " x %" PRIu64 " is absurd", n,
 * size);
 *
 * Ownership: nothing here owns anything.  Threads: everything here is reentrant.
 */
#ifndef SN_BASE_BASE_H
#define SN_BASE_BASE_H

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "snug/error.h"

#define SN_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define SN_MIN(a, b) ((a) < (b) ? (a) : (b))
#define SN_MAX(a, b) ((a) > (b) ? (a) : (b))
#define SN_UNUSED(x) ((void)(x))
#define SN_KIB ((uint64_t)1 << 10)
#define SN_MIB ((uint64_t)1 << 20)
#define SN_GIB ((uint64_t)1 << 30)

/* Writes code and the formatted line into err (NULL allowed) and returns code, so that
 * `return sn_fail(...)` reads as one step. Clears where, pos, need and have. */
snug_status sn_fail(snug_error *err, snug_status code, const char *format, ...) SNUG_PRINTF(3, 4);
/* sn_fail with ": strerror(errno_value)" appended. */
snug_status sn_fail_errno(snug_error *err, snug_status code, int errno_value, const char *format,
                          ...) SNUG_PRINTF(4, 5);
/* Puts a place before what err->where already holds: "outer: inner". Returns err->code
 * (SNUG_E_INTERNAL if err is NULL). */
snug_status sn_where(snug_error *err, const char *format, ...) SNUG_PRINTF(2, 3);

/* Checked arithmetic: true on overflow (result then unspecified). */
static inline bool sn_mul_u64(uint64_t *out, uint64_t a, uint64_t b)
{
    return __builtin_mul_overflow(a, b, out);
}
static inline bool sn_add_u64(uint64_t *out, uint64_t a, uint64_t b)
{
    return __builtin_add_overflow(a, b, out);
}
/* value rounded up to a multiple of align (a power of two). The caller knows that it cannot wrap.
 */
static inline uint64_t sn_align_up(uint64_t value, uint64_t align)
{
    return (value + align - 1) & ~(align - 1);
}

/* Text. */
bool sn_str_eq(const char *a, const char *b); /* NULL equals NULL only */
bool sn_str_starts(const char *text, const char *prefix);
bool sn_str_ends(const char *text, const char *suffix);
/* Case folded (ASCII) suffix test, for file names. */
bool sn_str_ends_fold(const char *text, const char *suffix);
/* Natural order: runs of digits compare by value ("a2" < "a10"), else bytes as unsigned; equal by
 * that rule falls back to strcmp. */
int sn_str_natural_cmp(const char *a, const char *b);
/* Levenshtein distance, for "did you mean". Texts over 63 bytes count as far apart (64). */
size_t sn_str_distance(const char *a, const char *b);
/* The candidate nearest to text, NULL if none is near enough to be worth naming. */
const char *sn_str_nearest(const char *text, const char *const *candidates, size_t n);
/* Copies text to out (n bytes) so that a terminal shows it safely: control bytes and invalid UTF-8
 * become \xNN. Always terminates. Returns out. */
char *sn_str_printable(char *out, size_t n, const char *text);

/* Sizes. "1500M" "2G" "2GB" "2GiB" "2048MB" "4096" (bytes) are all binary; false if text is no
 * size, is negative or does not fit. Fractions are allowed: "1.5G". */
bool sn_parse_size(const char *text, uint64_t *bytes);
/* Strict whole numbers and reals (the whole text, no spaces); false when out of [lo, hi]. */
bool sn_parse_i64(const char *text, int64_t lo, int64_t hi, int64_t *value);
bool sn_parse_f64(const char *text, double lo, double hi, double *value);
/* "512 B", "3.5 KiB", "1633 MiB", "17.6 GiB": whole MiB below 10 GiB, one decimal above. Returns
 * out. */
char *sn_format_bytes(char *out, size_t n, uint64_t bytes);
/* "0.21 s", "45 s", "6 h 38 min". Returns out. */
char *sn_format_seconds(char *out, size_t n, double seconds);

/* Monotonic clock in seconds. */
double sn_now(void);

#endif
