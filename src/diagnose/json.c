/* SPDX-License-Identifier: Apache-2.0
 *
 * The report as one JSON object, keys in a fixed order. Written by hand: the text is clean UTF-8
 * already, and an allocation that fails must not lose a half-built tree.
 */
#include <string.h>

#include "diagnose/state.h"

static void put_string(sn_buf *b, const char *text)
{
    sn_buf_putc(b, '"');
    for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
        if (*p == '"' || *p == '\\') {
            sn_buf_putc(b, '\\');
            sn_buf_putc(b, (char)*p);
        } else if (*p < 0x20 || *p == 0x7f) {
            sn_buf_printf(b, "\\u%04x", *p);
        } else {
            sn_buf_putc(b, (char)*p);
        }
    }
    sn_buf_putc(b, '"');
}

static void put_field(sn_buf *b, const char *name, const char *text)
{
    sn_buf_printf(b, "\"%s\": ", name);
    put_string(b, text);
}

static void put_cause(sn_buf *b, const snug_cause *c)
{
    sn_buf_puts(b, "{");
    put_field(b, "cause", c->name);
    sn_buf_printf(b, ", \"confidence\": %.2f, \"decisive\": %s, \"evidence\": [", c->confidence,
                  c->decisive ? "true" : "false");
    for (size_t i = 0; i < c->n_evidence; i++) {
        sn_buf_printf(b, "%s{\"line\": %" PRIu64 ", ", i ? ", " : "", c->evidence[i].line);
        put_field(b, "text", c->evidence[i].text);
        sn_buf_puts(b, ", ");
        put_field(b, "source", c->evidence[i].source);
        sn_buf_puts(b, "}");
    }
    sn_buf_puts(b, "], ");
    put_field(b, "explanation", c->explanation);
    sn_buf_puts(b, ", \"fixes\": [");
    for (size_t i = 0; i < c->n_fixes; i++) {
        sn_buf_puts(b, i ? ", {" : "{");
        put_field(b, "do", c->fixes[i].action);
        sn_buf_puts(b, ", ");
        put_field(b, "why", c->fixes[i].why);
        sn_buf_puts(b, "}");
    }
    sn_buf_puts(b, "], ");
    put_field(b, "check", c->check);
    sn_buf_puts(b, "}");
}

static void put_number(sn_buf *b, const snug_number *n)
{
    sn_buf_printf(b, "\"%s\": ", n->name);
    switch (n->kind) {
    case SNUG_NUMBER_BYTES:
    case SNUG_NUMBER_COUNT:
        sn_buf_printf(b, "%" PRIu64, n->count);
        break;
    case SNUG_NUMBER_FLAG:
        sn_buf_puts(b, n->count ? "true" : "false");
        break;
    case SNUG_NUMBER_REAL:
        sn_buf_printf(b, "%.10g", n->real);
        break;
    case SNUG_NUMBER_TEXT:
        put_string(b, n->text);
        break;
    case SNUG_NUMBER_SHAPE:
        for (size_t i = 0; i < n->n_dims; i++)
            sn_buf_printf(b, "%s%" PRId64, i ? ", " : "[", n->dims[i]);
        sn_buf_putc(b, ']');
        break;
    }
}

static void put_gpus(sn_buf *b, const snug_diagnosis *d)
{
    sn_buf_puts(b, ", \"gpus\": [");
    for (size_t i = 0; i < d->n_gpus; i++) {
        const snug_diagnosis_gpu *gpu = &d->gpus[i];
        sn_buf_printf(b, "%s{\"index\": %d", i ? ", " : "", gpu->index);
        if (gpu->name[0]) {
            sn_buf_puts(b, ", ");
            put_field(b, "name", gpu->name);
        }
        if (gpu->used_bytes != UINT64_MAX)
            sn_buf_printf(b, ", \"used_bytes\": %" PRIu64, gpu->used_bytes);
        if (gpu->total_bytes != UINT64_MAX)
            sn_buf_printf(b, ", \"total_bytes\": %" PRIu64, gpu->total_bytes);
        sn_buf_puts(b, "}");
    }
    sn_buf_puts(b, "]");
}

static void put_holders(sn_buf *b, const snug_diagnosis *d)
{
    sn_buf_puts(b, ", \"holders\": [");
    for (size_t i = 0; i < d->holders.n; i++) {
        const sn_holder *h = &d->holders.at[i];
        sn_buf_printf(b, "%s{\"gpu\": %d, \"pid\": %" PRIu64, i ? ", " : "", h->gpu, h->pid);
        if (h->bytes != UINT64_MAX)
            sn_buf_printf(b, ", \"bytes\": %" PRIu64, h->bytes);
        sn_buf_puts(b, ", ");
        put_field(b, "name", h->name);
        sn_buf_puts(b, "}");
    }
    sn_buf_puts(b, "]");
}

snug_status snug_diagnosis_json(snug_diagnosis *d, const char **text, snug_error *err)
{
    sn_buf *b = &d->json;
    *text = NULL;
    sn_buf_clear(b);
    sn_buf_puts(b, "{\"causes\": [");
    for (size_t i = 0; i < d->causes.n; i++) {
        sn_buf_puts(b, i ? ", " : "");
        put_cause(b, &d->causes.at[i]);
    }
    sn_buf_puts(b, "], \"useless\": [");
    for (size_t i = 0; i < d->useless.n; i++) {
        sn_buf_puts(b, i ? ", {" : "{");
        put_field(b, "advice", d->useless.at[i].advice);
        sn_buf_puts(b, ", ");
        put_field(b, "why", d->useless.at[i].why);
        sn_buf_puts(b, "}");
    }
    sn_buf_puts(b, "]");
    if (d->framework_name) {
        sn_buf_puts(b, ", ");
        put_field(b, "framework", d->framework_name);
    }
    if (d->device) {
        sn_buf_puts(b, ", ");
        put_field(b, "device", d->device);
    }
    sn_buf_puts(b, ", \"numbers\": {");
    for (size_t i = 0; i < d->numbers.n; i++) {
        sn_buf_puts(b, i ? ", " : "");
        put_number(b, &d->numbers.at[i]);
    }
    sn_buf_puts(b, "}");
    if (d->n_gpus)
        put_gpus(b, d);
    if (d->holders.n)
        put_holders(b, d);
    sn_buf_printf(b, ", \"lines\": %" PRIu64 ", \"bytes\": %" PRIu64 "}", d->n_lines, d->n_bytes);
    if (b->failed)
        return sn_fail(err, SNUG_E_MEMORY, "no memory for the report");
    *text = b->data;
    return SNUG_OK;
}
