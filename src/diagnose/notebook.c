/* SPDX-License-Identifier: Apache-2.0
 *
 * notebook.c - a Jupyter notebook: what its cells printed and raised is read as a log, its code
 * cells together as one source, so that a name made in one cell is known in the next.
 */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/vec.h"
#include "diagnose/readers.h"
#include "diagnose/source.h"

typedef struct notebook {
    snug_diagnosis *d;
    const char *name;
    sn_arena arena;
    sn_buf source;
    uint32_t n_lines;
    SN_VEC(sn_source_place) places;
    bool failed;
} notebook;

/* A multi-line string of the format: one string or a list of strings. */
static void append_text(sn_buf *out, const json_t *text)
{
    size_t i;
    json_t *part;
    if (json_is_string(text))
        sn_buf_append(out, json_string_value(text), json_string_length(text));
    else if (json_is_array(text))
        json_array_foreach(text, i, part) if (json_is_string(part))
            sn_buf_append(out, json_string_value(part), json_string_length(part));
}

static snug_status feed(notebook *b, const char *place, const sn_buf *text, snug_error *err)
{
    if (!text->len)
        return SNUG_OK;
    snug_status s = snug_diagnosis_feed(b->d, place, text->data, text->len, err);
    if (!s && text->data[text->len - 1] != '\n')
        s = snug_diagnosis_feed(b->d, place, "\n", 1, err);
    return s;
}

static snug_status read_outputs(notebook *b, const char *place, const json_t *outputs,
                                snug_error *err)
{
    size_t i, k;
    json_t *output, *line;
    snug_status s = SNUG_OK;
    sn_buf text;
    sn_buf_init(&text, SN_TAG_DIAGNOSE);
    json_array_foreach(outputs, i, output)
    {
        const char *type = json_string_value(json_object_get(output, "output_type"));
        if (sn_str_eq(type, "stream")) {
            append_text(&text, json_object_get(output, "text"));
        } else if (sn_str_eq(type, "error")) {
            const json_t *traceback = json_object_get(output, "traceback");
            json_array_foreach(traceback, k, line)
            {
                append_text(&text, line);
                sn_buf_putc(&text, '\n');
            }
            if (!json_array_size(traceback)) {
                append_text(&text, json_object_get(output, "ename"));
                sn_buf_puts(&text, ": ");
                append_text(&text, json_object_get(output, "evalue"));
            }
        } else {
            append_text(&text, json_object_get(json_object_get(output, "data"), "text/plain"));
        }
        if (text.len && text.data[text.len - 1] != '\n')
            sn_buf_putc(&text, '\n');
    }
    if (text.failed)
        s = sn_fail(err, SNUG_E_MEMORY, "no memory for the outputs of %s", place);
    else
        s = feed(b, place, &text, err);
    sn_buf_deinit(&text);
    return s;
}

/* Cells of another language: "%%bash" and the like; %%time and its kin keep Python. */
static bool other_language(const char *code)
{
    static const char *const python[] = {"time", "timeit", "capture", "prun", "memit", "mprun"};
    while (*code == ' ' || *code == '\n')
        code++;
    if (code[0] != '%' || code[1] != '%')
        return false;
    for (size_t i = 0; i < SN_LEN(python); i++)
        if (sn_str_starts(code + 2, python[i]))
            return false;
    return true;
}

/* Adds the cell's lines; a magic or shell line becomes a comment, so that lines keep their number.
 */
static void add_code(notebook *b, const char *place, const char *code)
{
    char *kept = sn_arena_strdup(&b->arena, place);
    if (!kept ||
        !SN_VEC_PUSH(SN_TAG_DIAGNOSE, &b->places, (sn_source_place){kept, b->n_lines + 1})) {
        b->failed = true;
        return;
    }
    while (*code) {
        size_t n = strcspn(code, "\n"), indent = strspn(code, " \t");
        char first = indent < n ? code[indent] : 0;
        if (first == '%' || first == '!' || first == '?')
            sn_buf_putc(&b->source, '#');
        sn_buf_append(&b->source, code, n);
        sn_buf_putc(&b->source, '\n');
        b->n_lines++;
        code += n + (code[n] == '\n');
    }
}

static snug_status read_cells(notebook *b, const json_t *cells, bool python, snug_error *err)
{
    size_t i;
    json_t *cell;
    snug_status s = SNUG_OK;
    json_array_foreach(cells, i, cell)
    {
        char place[160];
        const json_t *code = json_object_get(cell, "source");
        if (!sn_str_eq(json_string_value(json_object_get(cell, "cell_type")), "code"))
            continue;
        snprintf(place, sizeof place, "%.120s cell %zu", b->name, i + 1);
        sn_buf text;
        sn_buf_init(&text, SN_TAG_DIAGNOSE);
        append_text(&text, code ? code : json_object_get(cell, "input"));
        b->failed = b->failed || text.failed;
        if (python && text.len && !text.failed && !other_language(text.data))
            add_code(b, place, text.data);
        sn_buf_deinit(&text);
        s = read_outputs(b, place, json_object_get(cell, "outputs"), err);
        if (s)
            return s;
    }
    return s;
}

snug_status sn_notebook_read(snug_diagnosis *d, const char *name, const char *json, size_t n,
                             snug_error *err)
{
    json_error_t where;
    json_t *root = json_loadb(json, n, JSON_ALLOW_NUL, &where);
    if (!root) {
        snug_status bad = sn_fail(err, SNUG_E_INPUT, "%.80s is no notebook: %.80s at line %d", name,
                                  where.text, where.line);
        if (err)
            err->pos = (uint64_t)SN_MAX(where.position, 0);
        return bad;
    }
    const json_t *cells = json_object_get(root, "cells");
    if (!cells) /* format 3 keeps them in worksheets */
        cells = json_object_get(json_array_get(json_object_get(root, "worksheets"), 0), "cells");
    if (!json_is_array(cells)) {
        json_decref(root);
        return sn_fail(err, SNUG_E_INPUT, "%.80s is JSON but no notebook: it has no list of cells",
                       name);
    }
    const json_t *language = json_object_get(
        json_object_get(json_object_get(root, "metadata"), "language_info"), "name");
    bool python = !json_is_string(language) || sn_str_starts(json_string_value(language), "python");
    notebook b = {.d = d, .name = name};
    sn_arena_init(&b.arena, SN_TAG_DIAGNOSE);
    sn_buf_init(&b.source, SN_TAG_DIAGNOSE);
    snug_status s = read_cells(&b, cells, python, err);
    if (!s && (b.failed || b.source.failed))
        s = sn_fail(err, SNUG_E_MEMORY, "no memory to read %.80s", name);
    if (!s && b.source.len)
        s = sn_source_read(d, name, b.source.data, b.source.len, b.places.at, b.places.n, err);
    SN_VEC_FREE(&b.places);
    sn_buf_deinit(&b.source);
    sn_arena_deinit(&b.arena);
    json_decref(root);
    return s;
}
