/* SPDX-License-Identifier: Apache-2.0
 *
 * Templates: "{total_bytes} total - {free_bytes} free[[, asked: {requested_bytes}]]". A name is
 * that of a fact in JSON; a part in [[ ]] falls away when a fact in it is absent.
 */
#include "diagnose/state.h"

#include <stdio.h>
#include <string.h>

char *sn_format_exact(char *out, size_t n, uint64_t bytes)
{
    double b = (double)bytes;
    if (bytes >= SN_GIB)
        snprintf(out, n, "%.2f GiB", b / (double)SN_GIB);
    else if (bytes >= SN_MIB)
        snprintf(out, n, "%.2f MiB", b / (double)SN_MIB);
    else if (bytes >= SN_KIB)
        snprintf(out, n, "%.1f KiB", b / (double)SN_KIB);
    else
        snprintf(out, n, "%u bytes", (unsigned)bytes);
    return out;
}

/* Appends the fact called name[0..n); false if it is absent. */
static bool put_fact(const snug_diagnosis *d, sn_buf *out, const char *name, size_t n)
{
    for (size_t i = 0; i < SN_N_FACTS; i++) {
        if (strlen(sn_fact_name(i)) != n || memcmp(sn_fact_name(i), name, n) != 0)
            continue;
        const sn_fact_slot *slot = &d->facts[i];
        char text[32];
        if (!slot->set)
            return false;
        switch (sn_fact_kind(i)) {
        case SNUG_NUMBER_BYTES:
            sn_buf_puts(out, sn_format_exact(text, sizeof text, slot->count));
            break;
        case SNUG_NUMBER_COUNT:
        case SNUG_NUMBER_FLAG:
            sn_buf_printf(out, "%" PRIu64, slot->count);
            break;
        case SNUG_NUMBER_REAL:
            sn_buf_printf(out, "%.10g", slot->real);
            break;
        case SNUG_NUMBER_TEXT:
            sn_buf_puts(out, slot->text);
            break;
        case SNUG_NUMBER_SHAPE:
            for (size_t k = 0; k < slot->n_dims; k++)
                sn_buf_printf(out, "%s%" PRId64, k ? "," : "[", slot->dims[k]);
            sn_buf_putc(out, ']');
            break;
        }
        return true;
    }
    return false;
}

/* Appends text[0..n) with facts replaced; false if one is absent. */
static bool put_part(const snug_diagnosis *d, sn_buf *out, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char *close = text[i] == '{' ? memchr(text + i, '}', n - i) : NULL;
        if (!close) {
            sn_buf_putc(out, text[i]);
            continue;
        }
        size_t name = (size_t)(close - text) - i - 1;
        if (!put_fact(d, out, text + i + 1, name))
            return false;
        i += name + 1;
    }
    return true;
}

const char *sn_expand(snug_diagnosis *d, const char *template_text)
{
    sn_buf out, part;
    sn_buf_init(&out, SN_TAG_DIAGNOSE);
    sn_buf_init(&part, SN_TAG_DIAGNOSE);
    bool whole = true;
    for (const char *p = template_text; *p && whole;) {
        const char *open = strstr(p, "[[");
        const char *close = open ? strstr(open, "]]") : NULL;
        size_t n = close ? (size_t)(open - p) : strlen(p);
        whole = put_part(d, &out, p, n);
        if (!close)
            break;
        sn_buf_clear(&part);
        if (put_part(d, &part, open + 2, (size_t)(close - open) - 2))
            sn_buf_append(&out, part.data, part.len);
        p = close + 2;
    }
    const char *copy = NULL;
    if (out.failed || part.failed)
        d->failed = true;
    else if (whole)
        copy = sn_diagnosis_copy(d, out.data, out.len);
    sn_buf_deinit(&out);
    sn_buf_deinit(&part);
    return copy;
}
