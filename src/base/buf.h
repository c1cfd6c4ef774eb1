/* SPDX-License-Identifier: Apache-2.0
 *
 * buf.h - a growing byte string, always terminated by a NUL that does not count.
 *
 *     sn_buf b;  sn_buf_init(&b, SN_TAG_CLI);
 *     sn_buf_printf(&b, "%d images", n);
 *     puts(b.data);  sn_buf_deinit(&b);
 *
 * Allocation failure is sticky: `failed` stays true and later appends do nothing, so that a caller
 * checks once at the end. data is "" (never NULL) until something is appended.
 * Ownership: the buffer owns its bytes; sn_buf_take hands them over.  Threads: one at a time.
 */
#ifndef SN_BASE_BUF_H
#define SN_BASE_BUF_H

#include <stdarg.h>

#include "base/ledger.h"

typedef struct sn_buf {
    char *data;
    size_t len, cap;
    bool failed;
    sn_tag tag;
} sn_buf;

void sn_buf_init(sn_buf *buf, sn_tag tag);
void sn_buf_append(sn_buf *buf, const void *bytes, size_t n);
void sn_buf_puts(sn_buf *buf, const char *text);
void sn_buf_putc(sn_buf *buf, char c);
void sn_buf_printf(sn_buf *buf, const char *format, ...) SNUG_PRINTF(2, 3);
void sn_buf_vprintf(sn_buf *buf, const char *format, va_list args);
/* Text with < > & and " replaced for HTML. */
void sn_buf_puts_html(sn_buf *buf, const char *text);
/* len = 0, memory kept. */
void sn_buf_clear(sn_buf *buf);
/* The bytes (sn_free them), the buffer is empty afterwards; NULL if failed. */
char *sn_buf_take(sn_buf *buf);
void sn_buf_deinit(sn_buf *buf);

#endif
