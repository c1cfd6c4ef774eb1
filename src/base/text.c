/* SPDX-License-Identifier: Apache-2.0
 *
 * text.c - small text helpers: comparing, naming the nearest, sizes and times in and out. Nothing
 * here depends on the process's locale.
 */
#include "base/base.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { DISTANCE_LIMIT = 64 };

static unsigned char fold(char c)
{
    return (unsigned char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

bool sn_str_eq(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

bool sn_str_starts(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

bool sn_str_ends(const char *text, const char *suffix)
{
    size_t n = strlen(text), m = strlen(suffix);
    return n >= m && memcmp(text + n - m, suffix, m) == 0;
}

bool sn_str_ends_fold(const char *text, const char *suffix)
{
    size_t n = strlen(text), m = strlen(suffix);
    if (n < m)
        return false;
    for (size_t i = 0; i < m; i++)
        if (fold(text[n - m + i]) != fold(suffix[i]))
            return false;
    return true;
}

/* Compares the runs of digits at *a and *b by value, of any length, and moves past them. */
static int compare_numbers(const char **a, const char **b)
{
    while (**a == '0')
        ++*a;
    while (**b == '0')
        ++*b;
    size_t n = 0, m = 0;
    while (is_digit((*a)[n]))
        n++;
    while (is_digit((*b)[m]))
        m++;
    int order = n != m ? (n < m ? -1 : 1) : memcmp(*a, *b, n);
    *a += n;
    *b += m;
    return order;
}

int sn_str_natural_cmp(const char *a, const char *b)
{
    const char *p = a, *q = b;
    while (*p && *q) {
        if (is_digit(*p) && is_digit(*q)) {
            int order = compare_numbers(&p, &q);
            if (order)
                return order;
        } else if (*p != *q) {
            return (unsigned char)*p < (unsigned char)*q ? -1 : 1;
        } else {
            p++;
            q++;
        }
    }
    if (*p || *q)
        return *p ? 1 : -1;
    return strcmp(a, b);
}

static size_t distance(const char *a, const char *b, bool folded)
{
    size_t n = strlen(a), m = strlen(b);
    if (n >= DISTANCE_LIMIT || m >= DISTANCE_LIMIT)
        return DISTANCE_LIMIT;
    size_t row[DISTANCE_LIMIT];
    for (size_t j = 0; j <= m; j++)
        row[j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            bool same = folded ? fold(a[i - 1]) == fold(b[j - 1]) : a[i - 1] == b[j - 1];
            size_t best = SN_MIN(diagonal + !same, SN_MIN(row[j], row[j - 1]) + 1);
            diagonal = row[j];
            row[j] = best;
        }
    }
    return row[m];
}

size_t sn_str_distance(const char *a, const char *b)
{
    return distance(a, b, false);
}

const char *sn_str_nearest(const char *text, const char *const *candidates, size_t n)
{
    size_t len = strlen(text);
    /* Two letters swapped are a distance of 2, wanted from five letters on. */
    size_t limit = SN_MAX((size_t)1, SN_MIN((size_t)3, len * 2 / 5));
    size_t best = limit + 1;
    const char *nearest = NULL;
    for (size_t i = 0; i < n; i++) {
        size_t d = distance(text, candidates[i], true);
        if (d < best && d < len) {
            best = d;
            nearest = candidates[i];
        }
    }
    return nearest;
}

/* The length of the UTF-8 sequence at s that a terminal may show as it is; 0 if the byte there is
 * to be escaped: malformed, overlong, a surrogate, a control, or a mark that reorders the line. */
static size_t shown_length(const unsigned char *s)
{
    if (s[0] < 0x80)
        return s[0] >= 0x20 && s[0] != 0x7f ? 1 : 0;
    size_t n = s[0] >= 0xf0 && s[0] <= 0xf4 ? 4 : s[0] >= 0xe0 ? 3 : s[0] >= 0xc2 ? 2 : 0;
    if (n == 0 || s[0] > 0xf4)
        return 0;
    uint32_t code = s[0] & (0x7fu >> n);
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (s[i] & 0x3fu);
    }
    bool overlong = (n == 3 && code < 0x800) || (n == 4 && code < 0x10000);
    bool surrogate = code >= 0xd800 && code <= 0xdfff;
    bool control = code >= 0x80 && code < 0xa0;
    bool reorders = (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069) ||
                    code == 0x2028 || code == 0x2029;
    return overlong || surrogate || control || reorders || code > 0x10ffff ? 0 : n;
}

char *sn_str_printable(char *out, size_t n, const char *text)
{
    static const char hex[] = "0123456789abcdef";
    if (n == 0)
        return out;
    size_t used = 0;
    for (const unsigned char *s = (const unsigned char *)(text ? text : ""); *s;) {
        size_t len = shown_length(s);
        size_t needed = len ? len : 4;
        if (needed > n - 1 - used)
            break;
        if (len) {
            memcpy(out + used, s, len);
            s += len;
        } else {
            const char escape[4] = {'\\', 'x', hex[*s >> 4], hex[*s & 15]};
            memcpy(out + used, escape, sizeof escape);
            s++;
        }
        used += needed;
    }
    out[used] = '\0';
    return out;
}

/* The shift of a unit: "", "B", "M", "MB", "MiB" and the like in either case; -1 if it is none. */
static int unit_shift(const char *unit)
{
    static const char letters[] = "kmgtp";
    if (!*unit)
        return 0;
    if (fold(unit[0]) == 'b')
        return unit[1] ? -1 : 0;
    const char *at = strchr(letters, fold(unit[0]));
    if (!at)
        return -1;
    unit++;
    if (fold(unit[0]) == 'i') {
        if (fold(unit[1]) != 'b')
            return -1;
        unit++;
    }
    if (fold(unit[0]) == 'b')
        unit++;
    return *unit ? -1 : (int)(at - letters + 1) * 10;
}

bool sn_parse_size(const char *text, uint64_t *bytes)
{
    if (!text)
        return false;
    uint64_t whole = 0, fraction = 0, scale = 1;
    const char *c = text;
    for (; is_digit(*c); c++)
        if (sn_mul_u64(&whole, whole, 10) || sn_add_u64(&whole, whole, (uint64_t)(*c - '0')))
            return false;
    bool has_digits = c > text, has_fraction = *c == '.';
    if (has_fraction) {
        if (!is_digit(c[1]))
            return false;
        has_digits = true;
        for (c++; is_digit(*c); c++)
            if (scale < UINT64_C(1000000000000)) { /* further digits are less than a byte's worth */
                fraction = fraction * 10 + (uint64_t)(*c - '0');
                scale *= 10;
            }
    }
    int shift = unit_shift(c);
    if (!has_digits || shift < 0 || (has_fraction && shift == 0))
        return false;
    __extension__ typedef unsigned __int128 wide;
    wide value = ((wide)whole << shift) + ((wide)fraction << shift) / scale;
    if (value > UINT64_MAX)
        return false;
    *bytes = (uint64_t)value;
    return true;
}

bool sn_parse_i64(const char *text, int64_t lo, int64_t hi, int64_t *value)
{
    if (!text)
        return false;
    bool negative = *text == '-';
    const char *c = text + negative;
    if (!is_digit(*c))
        return false;
    int64_t result = 0;
    for (; is_digit(*c); c++) {
        int digit = *c - '0';
        if (__builtin_mul_overflow(result, (int64_t)10, &result) ||
            __builtin_add_overflow(result, (int64_t)(negative ? -digit : digit), &result))
            return false;
    }
    if (*c || result < lo || result > hi)
        return false;
    *value = result;
    return true;
}

bool sn_parse_f64(const char *text, double lo, double hi, double *value)
{
    /* strtod also takes spaces, hexadecimal, "inf" and "nan": not here. */
    if (!text || !*text || text[strspn(text, "0123456789.eE+-")])
        return false;
    locale_t c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!c_locale)
        return false;
    char *end;
    double result = strtod_l(text, &end, c_locale);
    freelocale(c_locale);
    if (end == text || *end || !isfinite(result) || result < lo || result > hi)
        return false;
    *value = result;
    return true;
}

/* bytes in units of 2^shift, in tenths, rounded; the division is done so that nothing wraps. */
static uint64_t in_tenths(uint64_t bytes, int shift)
{
    uint64_t unit = (uint64_t)1 << shift, rest = bytes & (unit - 1);
    return (bytes >> shift) * 10 + (rest * 10 + unit / 2) / unit;
}

char *sn_format_bytes(char *out, size_t n, uint64_t bytes)
{
    uint64_t mib = (bytes >> 20) + ((bytes >> 19) & 1);
    uint64_t tenths;
    if (bytes < SN_KIB)
        snprintf(out, n, "%" PRIu64 " B", bytes);
    else if ((tenths = in_tenths(bytes, 10)) < 10240)
        snprintf(out, n, "%" PRIu64 ".%" PRIu64 " KiB", tenths / 10, tenths % 10);
    else if (mib < 10240)
        snprintf(out, n, "%" PRIu64 " MiB", mib);
    else if ((tenths = in_tenths(bytes, 30)) < 10240)
        snprintf(out, n, "%" PRIu64 ".%" PRIu64 " GiB", tenths / 10, tenths % 10);
    else {
        tenths = in_tenths(bytes, 40);
        snprintf(out, n, "%" PRIu64 ".%" PRIu64 " TiB", tenths / 10, tenths % 10);
    }
    return out;
}

char *sn_format_seconds(char *out, size_t n, double seconds)
{
    if (!(seconds >= 0 && seconds < 1e12)) {
        snprintf(out, n, "unknown");
    } else if (seconds < 0.0095) {
        unsigned micro = (unsigned)lround(seconds * 1e6);
        snprintf(out, n, "%u.%02u ms", micro / 1000, micro % 1000 / 10);
    } else if (seconds < 9.995) {
        unsigned hundredths = (unsigned)lround(seconds * 100);
        snprintf(out, n, "%u.%02u s", hundredths / 100, hundredths % 100);
    } else {
        uint64_t s = (uint64_t)llround(seconds), minutes = (s + 30) / 60, hours = (s + 1800) / 3600;
        if (s < 60)
            snprintf(out, n, "%" PRIu64 " s", s);
        else if (s < 600)
            snprintf(out, n, "%" PRIu64 " min %" PRIu64 " s", s / 60, s % 60);
        else if (minutes < 60)
            snprintf(out, n, "%" PRIu64 " min", minutes);
        else if (minutes < 48 * 60)
            snprintf(out, n, "%" PRIu64 " h %" PRIu64 " min", minutes / 60, minutes % 60);
        else
            snprintf(out, n, "%" PRIu64 " d %" PRIu64 " h", hours / 24, hours % 24);
    }
    return out;
}

double sn_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
