/* SPDX-License-Identifier: Apache-2.0 */
#include "diagnose/scan.h"

#include <math.h>
#include <string.h>

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static char fold(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

bool sn_scan_real(const char **p, double *value)
{
    const char *s = *p;
    while (*s == ' ')
        s++;
    if (!is_digit(*s))
        return false;
    double v = 0;
    int digits = 0;
    while (is_digit(*s) || (*s == ',' && is_digit(s[1]) && is_digit(s[2]) && is_digit(s[3]))) {
        if (*s != ',') {
            v = v * 10 + (*s - '0');
            if (++digits > 30)
                return false;
        }
        s++;
    }
    if (*s == '.' && is_digit(s[1])) {
        double scale = 0.1;
        for (s++; is_digit(*s); s++, scale /= 10)
            v += (*s - '0') * scale;
    }
    *value = v;
    *p = s;
    return true;
}

bool sn_scan_count(const char **p, uint64_t *value)
{
    const char *s = *p;
    while (*s == ' ')
        s++;
    if (!is_digit(*s))
        return false;
    uint64_t v = 0;
    while (is_digit(*s) || (*s == ',' && is_digit(s[1]) && is_digit(s[2]) && is_digit(s[3]))) {
        if (*s != ',' && (sn_mul_u64(&v, v, 10) || sn_add_u64(&v, v, (uint64_t)(*s - '0'))))
            return false;
        s++;
    }
    *value = v;
    *p = s;
    return true;
}

/* The exponent (of 1024) of a unit at *s, moved past it; -1: no unit. */
static int unit_power(const char **s)
{
    const char *u = *s;
    const char *kinds = "kmgt";
    const char *kind = *u ? strchr(kinds, fold(*u)) : NULL;
    int power = 0;
    if (kind) {
        power = (int)(kind - kinds) + 1;
        u++;
        if (*u == 'i' && (u[1] == 'B' || u[1] == 'b'))
            u += 2;
        else if (*u == 'B' || *u == 'b')
            u++;
    } else if (!strncmp(u, "bytes", 5) || !strncmp(u, "Bytes", 5)) {
        u += 5;
    } else if (!strncmp(u, "byte", 4)) {
        u += 4;
    } else if (*u == 'B') {
        u++;
    } else {
        return -1;
    }
    if ((*u >= 'a' && *u <= 'z') || (*u >= 'A' && *u <= 'Z') || is_digit(*u))
        return -1; /* a word that begins like a unit */
    *s = u;
    return power;
}

bool sn_scan_size(const char **p, uint64_t *bytes, bool *unit)
{
    const char *s = *p, *whole = *p;
    double real;
    if (!sn_scan_real(&s, &real))
        return false;
    const char *after = s;
    while (*after == ' ')
        after++;
    int power = unit_power(&after);
    uint64_t count;
    if (power <= 0 && sn_scan_count(&whole, &count) && whole == s) {
        *bytes = count; /* exact, beyond what a double holds */
    } else {
        double value = ldexp(real, power > 0 ? 10 * power : 0);
        if (!(value < 9.0e18))
            return false;
        *bytes = (uint64_t)llround(value);
    }
    if (unit)
        *unit = power >= 0;
    *p = power >= 0 ? after : s;
    return true;
}

static const char *skip_between(const char *s)
{
    while (*s && strchr(" :=(\"'`<|~", *s))
        s++;
    return s;
}

bool sn_scan_after(const char *text, const char *label, uint64_t *bytes)
{
    const char *s = strstr(text, label);
    if (!s)
        return false;
    s = skip_between(s + strlen(label));
    return sn_scan_size(&s, bytes, NULL);
}

bool sn_scan_count_after(const char *text, const char *label, uint64_t *value)
{
    const char *s = strstr(text, label);
    if (!s)
        return false;
    s = skip_between(s + strlen(label));
    return sn_scan_count(&s, value);
}

bool sn_scan_real_after(const char *text, const char *label, double *value)
{
    const char *s = strstr(text, label);
    if (!s)
        return false;
    s = skip_between(s + strlen(label));
    return sn_scan_real(&s, value);
}

bool sn_scan_before(const char *text, const char *label, uint64_t *bytes)
{
    for (const char *at = strstr(text, label); at; at = strstr(at + 1, label)) {
        const char *s = at;
        while (s > text && s[-1] == ' ')
            s--;
        while (s > text && ((s[-1] >= 'a' && s[-1] <= 'z') || (s[-1] >= 'A' && s[-1] <= 'Z')))
            s--;
        while (s > text && s[-1] == ' ')
            s--;
        const char *end = s;
        while (s > text && (is_digit(s[-1]) || s[-1] == '.' || s[-1] == ','))
            s--;
        while (s < end && !is_digit(*s))
            s++;
        const char *after = s;
        if (s < end && sn_scan_size(&after, bytes, NULL) && after <= at)
            return true;
    }
    return false;
}

bool sn_scan_shape(const char *p, int64_t *dims, size_t *n)
{
    if (*p != '[' && *p != '(')
        return false;
    p++;
    size_t count = 0;
    for (;;) {
        uint64_t v = 0;
        while (*p == ' ')
            p++;
        if (!is_digit(*p))
            break;
        while (is_digit(*p)) { /* not sn_scan_count: a comma separates here */
            if (sn_mul_u64(&v, v, 10) || sn_add_u64(&v, v, (uint64_t)(*p - '0')))
                return false;
            p++;
        }
        if (*p == 'L')
            p++; /* Python 2's long */
        if (v > INT64_MAX || count == 8)
            return false;
        dims[count++] = (int64_t)v;
        while (*p == ' ')
            p++;
        if (*p != ',')
            break;
        p++;
    }
    if ((*p != ']' && *p != ')') || !count)
        return false;
    *n = count;
    return true;
}

size_t sn_scan_word(const char *p)
{
    return strcspn(p, " \"'`,;()[]{}<>");
}

const char *sn_scan_fold(const char *text, const char *needle)
{
    char first = fold(*needle);
    size_t n = strlen(needle);
    for (; *text; text++) {
        if (fold(*text) != first)
            continue;
        size_t i = 1;
        while (i < n && text[i] && fold(text[i]) == fold(needle[i]))
            i++;
        if (i >= n)
            return text;
    }
    return NULL;
}

bool sn_scan_has(const char *text, const char *needle)
{
    return strstr(text, needle) != NULL;
}
