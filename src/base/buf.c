/* SPDX-License-Identifier: Apache-2.0
 *
 * buf.c - a growing byte string.
 *
 * Invariants: 1. data[len] == 0.  2. cap == 0 if and only if data is the shared empty text, which
 * nobody writes to.
 */
#include "base/buf.h"

#include <locale.h>
#include <stdio.h>
#include <string.h>

static char empty[1];

void sn_buf_init(sn_buf *buf, sn_tag tag)
{
    *buf = (sn_buf){.data = empty, .tag = tag};
}

/* Room for n more bytes and the NUL. */
static bool reserve(sn_buf *buf, size_t n)
{
    if (buf->failed)
        return false;
    if (n < buf->cap - buf->len && buf->cap)
        return true;
    size_t needed;
    if (__builtin_add_overflow(buf->len, n, &needed) || needed > SIZE_MAX / 4) {
        buf->failed = true;
        return false;
    }
    size_t cap = SN_MAX(needed + 1, SN_MAX(buf->cap * 2, (size_t)64));
    char *data = sn_realloc(buf->tag, buf->cap ? buf->data : NULL, cap);
    if (!data) {
        buf->failed = true;
        return false;
    }
    buf->data = data;
    buf->cap = cap;
    buf->data[buf->len] = '\0';
    return true;
}

void sn_buf_append(sn_buf *buf, const void *bytes, size_t n)
{
    if (n == 0 || !reserve(buf, n))
        return;
    memcpy(buf->data + buf->len, bytes, n);
    buf->len += n;
    buf->data[buf->len] = '\0';
}

void sn_buf_puts(sn_buf *buf, const char *text)
{
    sn_buf_append(buf, text, strlen(text));
}

void sn_buf_putc(sn_buf *buf, char c)
{
    sn_buf_append(buf, &c, 1);
}

void sn_buf_printf(sn_buf *buf, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    sn_buf_vprintf(buf, format, args);
    va_end(args);
}

static void print(sn_buf *buf, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    if (n < 0)
        buf->failed = true;
    else if (reserve(buf, (size_t)n)) {
        vsnprintf(buf->data + buf->len, (size_t)n + 1, format, again);
        buf->len += (size_t)n;
    }
    va_end(again);
}

/* Numbers have a point, whatever the locale of the program that uses the library. */
void sn_buf_vprintf(sn_buf *buf, const char *format, va_list args)
{
    locale_t c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!c_locale) {
        buf->failed = true;
        return;
    }
    locale_t before = uselocale(c_locale);
    print(buf, format, args);
    uselocale(before);
    freelocale(c_locale);
}

void sn_buf_puts_html(sn_buf *buf, const char *text)
{
    while (*text) {
        size_t plain = strcspn(text, "<>&\"");
        sn_buf_append(buf, text, plain);
        text += plain;
        if (!*text)
            break;
        sn_buf_puts(buf, *text == '<'   ? "&lt;"
                         : *text == '>' ? "&gt;"
                         : *text == '&' ? "&amp;"
                                        : "&quot;");
        text++;
    }
}

void sn_buf_clear(sn_buf *buf)
{
    buf->len = 0;
    if (buf->cap)
        buf->data[0] = '\0';
}

char *sn_buf_take(sn_buf *buf)
{
    char *result = NULL;
    if (reserve(buf, 0)) {
        result = buf->data;
        buf->cap = 0;
    }
    sn_buf_deinit(buf);
    return result;
}

void sn_buf_deinit(sn_buf *buf)
{
    if (buf->cap)
        sn_free(buf->data);
    sn_buf_init(buf, buf->tag);
}
