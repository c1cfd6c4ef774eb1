/* SPDX-License-Identifier: Apache-2.0
 *
 * dump.c - allocator dumps: TensorFlow's MemoryDump (protobuf wire format, read by hand: five
 * messages of scalars) and PyTorch's memory snapshot as JSON.
 *
 * 1. No length read from the file is trusted before it was compared with what is left.
 */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/io.h"
#include "diagnose/readers.h"

/* ---- protobuf ---- */

typedef struct wire {
    const uint8_t *p, *end, *start;
    uint32_t field;
    uint64_t value;       /* varint, fixed32 and fixed64 */
    const uint8_t *bytes; /* length-delimited */
    size_t n;
} wire;

static bool varint(wire *w, uint64_t *out)
{
    *out = 0;
    for (unsigned shift = 0; shift < 64 && w->p < w->end; shift += 7) {
        uint8_t b = *w->p++;
        *out |= (uint64_t)(b & 0x7F) << shift;
        if (!(b & 0x80))
            return true;
    }
    return false;
}

/* The next field; false at the end or where the bytes are no protobuf (then p < end stays). */
static bool next_field(wire *w)
{
    const uint8_t *begin = w->p;
    uint64_t key, n;
    w->bytes = NULL;
    w->n = 0;
    w->value = 0;
    if (w->p >= w->end)
        return false;
    if (!varint(w, &key) || !(key >> 3) || key >> 3 > 536870911)
        goto bad;
    w->field = (uint32_t)(key >> 3);
    switch (key & 7) {
    case 0:
        if (!varint(w, &w->value))
            goto bad;
        return true;
    case 1:
    case 5:
        n = (key & 7) == 1 ? 8 : 4;
        if ((uint64_t)(w->end - w->p) < n)
            goto bad;
        memcpy(&w->value, w->p, n);
        w->p += n;
        return true;
    case 2:
        if (!varint(w, &n) || n > (uint64_t)(w->end - w->p)) /* 1 */
            goto bad;
        w->bytes = w->p;
        w->n = (size_t)n;
        w->p += n;
        return true;
    default:
        break;
    }
bad:
    w->p = begin;
    return false;
}

static wire sub(const wire *w)
{
    return (wire){.p = w->bytes, .end = w->bytes + w->n, .start = w->bytes};
}

typedef struct bfc {
    sn_holders holders;
    uint64_t n_allocs, in_use, peak, largest;
    bool has_stats;
    char name[64];
    uint64_t n_chunks, n_bad;
} bfc;

static bool read_chunk(bfc *b, wire w)
{
    uint64_t size = 0, asked = 0;
    bool used = false;
    const char *op = "";
    size_t n_op = 0;
    while (next_field(&w)) {
        if (w.field == 2)
            size = w.value;
        else if (w.field == 3)
            asked = w.value;
        else if (w.field == 5 && w.bytes) {
            op = (const char *)w.bytes;
            n_op = w.n;
        } else if (w.field == 8)
            used = w.value != 0;
    }
    if (w.p != w.end)
        return false;
    if (size > INT64_MAX || asked > INT64_MAX) { /* negative: not a size */
        b->n_bad++;
        return true;
    }
    b->n_chunks++;
    if (used)
        sn_holders_add(&b->holders, op, n_op, size, asked);
    else
        sn_holders_add_free(&b->holders, size);
    return true;
}

static bool read_stats(bfc *b, wire w)
{
    while (next_field(&w)) {
        uint64_t *to = w.field == 1   ? &b->n_allocs
                       : w.field == 2 ? &b->in_use
                       : w.field == 3 ? &b->peak
                       : w.field == 4 ? &b->largest
                                      : NULL;
        if (to && !w.bytes && w.value <= INT64_MAX)
            *to = w.value;
    }
    b->has_stats = true;
    return w.p == w.end;
}

snug_status sn_bfc_dump_read(snug_diagnosis *d, const char *name, const void *bytes, size_t n,
                             snug_error *err)
{
    bfc b;
    memset(&b, 0, sizeof b);
    wire w = {.p = bytes, .end = (const uint8_t *)bytes + n, .start = bytes};
    bool good = true;
    while (good && next_field(&w)) {
        if (w.field == 1 && w.bytes)
            snprintf(b.name, sizeof b.name, "%.*s", (int)SN_MIN(w.n, sizeof b.name - 1),
                     (const char *)w.bytes);
        else if (w.field == 3 && w.bytes)
            good = read_chunk(&b, sub(&w));
        else if (w.field == 5 && w.bytes)
            good = read_stats(&b, sub(&w));
    }
    snug_status s = SNUG_OK;
    if (!good || w.p != w.end || !b.n_chunks || !b.name[0]) {
        s = sn_fail(err, SNUG_E_INPUT,
                    "%.60s is no allocator dump, or is damaged: byte %zu of %zu (%" PRIu64
                    " chunks read)",
                    name, (size_t)(w.p - w.start), n, b.n_chunks);
        if (err)
            err->pos = (uint64_t)(w.p - w.start);
    } else if (b.holders.failed || !sn_diagnosis_source(d, name)) {
        s = sn_fail(err, SNUG_E_MEMORY, "no memory to read %.80s", name);
    } else {
        char clean[80];
        sn_str_printable(clean, sizeof clean, b.name);
        sn_framework_set(d, SN_FRAMEWORK_TENSORFLOW, "tensorflow");
        sn_fact_set_text(d, SN_FACT_ALLOCATOR, clean, strlen(clean), 0);
        sn_holders_conclude(&b.holders, d, clean);
        if (b.has_stats) {
            sn_fact_set(d, SN_FACT_N_ALLOCS, b.n_allocs, 0);
            sn_fact_set(d, SN_FACT_MAX_IN_USE, b.peak, 0);
            sn_fact_set(d, SN_FACT_MAX_ALLOC, b.largest, 0);
        }
    }
    sn_holders_free(&b.holders);
    return s;
}

/* ---- PyTorch's snapshot ---- */

static bool number(const json_t *object, const char *key, uint64_t *out)
{
    const json_t *v = json_object_get(object, key);
    if (!json_is_integer(v) || json_integer_value(v) < 0)
        return false;
    *out = (uint64_t)json_integer_value(v);
    return true;
}

/* The innermost frame that is the user's own: not of site-packages, torch or Python itself. */
static void holder_name(char *out, size_t n, const json_t *frames)
{
    size_t i;
    json_t *frame;
    snprintf(out, n, "(no stack recorded)");
    bool any = false;
    json_array_foreach(frames, i, frame)
    {
        const char *file = json_string_value(json_object_get(frame, "filename"));
        uint64_t line = 0;
        if (!file || !number(frame, "line", &line))
            continue;
        bool own = !strstr(file, "site-packages") && !strstr(file, "/torch/") &&
                   !strstr(file, "dist-packages") && strstr(file, ".py");
        if (!any || own)
            snprintf(out, n, "%.48s:%" PRIu64, sn_io_base_name(file), line);
        any = true;
        if (own)
            return;
    }
}

static void read_segment(sn_holders *h, const json_t *segment)
{
    size_t i;
    json_t *block;
    json_array_foreach(json_object_get(segment, "blocks"), i, block)
    {
        const char *state = json_string_value(json_object_get(block, "state"));
        uint64_t size = 0, asked = 0;
        char name[64];
        if (!state || !number(block, "size", &size))
            continue;
        if (!number(block, "requested_size", &asked))
            asked = size;
        if (sn_str_eq(state, "inactive")) {
            sn_holders_add_free(h, size);
            continue;
        }
        const json_t *frames = json_object_get(block, "frames");
        if (!frames) /* before 2.1: the last of the block's history */
            frames =
                json_object_get(json_array_get(json_object_get(block, "history"), 0), "frames");
        holder_name(name, sizeof name, frames);
        sn_holders_add(h, name, strlen(name), size, asked);
    }
}

static void read_oom(snug_diagnosis *d, const json_t *traces)
{
    size_t i, k;
    json_t *trace, *event;
    json_array_foreach(traces, i, trace) json_array_foreach(trace, k, event)
    {
        uint64_t asked, left;
        if (!sn_str_eq(json_string_value(json_object_get(event, "action")), "oom"))
            continue;
        if (number(event, "size", &asked))
            sn_fact_set(d, SN_FACT_REQUESTED, asked, 0);
        if (number(event, "device_free", &left))
            sn_fact_set(d, SN_FACT_FREE, left, 0);
    }
}

snug_status sn_snapshot_read(snug_diagnosis *d, const char *name, const char *json, size_t n,
                             snug_error *err)
{
    json_error_t where;
    json_t *root = json_loadb(json, n, JSON_ALLOW_NUL, &where), *segment;
    if (!root)
        return sn_fail(err, SNUG_E_INPUT, "%.80s is no snapshot: %.80s at line %d", name,
                       where.text, where.line);
    const json_t *segments = json_is_array(root) ? root : json_object_get(root, "segments");
    size_t i, n_segments = 0;
    sn_holders h = {0};
    json_array_foreach(segments, i, segment)
    {
        n_segments += json_is_array(json_object_get(segment, "blocks"));
        read_segment(&h, segment);
    }
    snug_status s = SNUG_OK;
    if (!n_segments) {
        s = sn_fail(err, SNUG_E_INPUT,
                    "%.80s is JSON but no memory snapshot: it has no segments with blocks", name);
    } else if (h.failed || !sn_diagnosis_source(d, name)) {
        s = sn_fail(err, SNUG_E_MEMORY, "no memory to read %.80s", name);
    } else {
        sn_framework_set(d, SN_FRAMEWORK_PYTORCH, "pytorch");
        sn_holders_conclude(&h, d, "PyTorch's caching allocator");
        sn_fact_set(d, SN_FACT_ALLOCATED, h.held_bytes, 0);
        sn_fact_set(d, SN_FACT_RESERVED, h.total_bytes, 0);
        read_oom(d, json_object_get(root, "device_traces"));
    }
    sn_holders_free(&h);
    json_decref(root);
    return s;
}
