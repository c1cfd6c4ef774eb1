/* SPDX-License-Identifier: Apache-2.0
 *
 * Invariants:
 *  1. Every entry of an open file lies within it, has the bytes of its shape, and overlaps none.
 *  2. Entries are in the order of their offsets.
 */
#include "format/safetensors.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "base/arena.h"
#include "base/io.h"
#include "base/map.h"

enum { PREFIX = 8 };
#define MAX_HEADER (64 * SN_MIB)

struct sn_safetensors {
    int fd;
    char *path;
    sn_arena texts;
    sn_safetensors_entry *entries;
    size_t n;
    sn_safetensors_text *metadata;
    size_t n_metadata;
    sn_map by_name;
};

static const struct {
    const char *name;
    size_t bytes;
} dtypes[] = {{"F32", 4},  {"F16", 2}, {"BF16", 2},    {"F64", 8},    {"I64", 8}, {"I32", 4},
              {"I16", 2},  {"I8", 1},  {"U8", 1},      {"U16", 2},    {"U32", 4}, {"U64", 8},
              {"BOOL", 1}, {"C64", 8}, {"F8_E4M3", 1}, {"F8_E5M2", 1}};

size_t sn_safetensors_dtype_bytes(const char *dtype)
{
    for (size_t i = 0; i < SN_LEN(dtypes); i++)
        if (sn_str_eq(dtypes[i].name, dtype))
            return dtypes[i].bytes;
    return 0;
}

static const char *dtype_name(const char *dtype)
{
    for (size_t i = 0; i < SN_LEN(dtypes); i++)
        if (sn_str_eq(dtypes[i].name, dtype))
            return dtypes[i].name;
    return NULL;
}

/* true: no good. */
static bool entry_bytes(const sn_safetensors_entry *e, uint64_t *bytes)
{
    *bytes = sn_safetensors_dtype_bytes(e->dtype);
    if (!*bytes || e->rank < 0 || e->rank > SN_SAFETENSORS_MAX_RANK)
        return true;
    for (int i = 0; i < e->rank; i++)
        if (e->shape[i] < 0 || sn_mul_u64(bytes, *bytes, (uint64_t)e->shape[i]))
            return true;
    return false;
}

/* --- reading -----------------------------------------------------------------------------------*/

static snug_status no_memory(snug_error *err)
{
    return sn_fail(err, SNUG_E_MEMORY, "no memory for the header of a safetensors file");
}

/* One tensor of the header; data_bytes is what follows the header. */
static snug_status read_entry(sn_safetensors *f, const char *name, const json_t *value,
                              uint64_t data_at, uint64_t data_bytes, snug_error *err)
{
    sn_safetensors_entry *e = &f->entries[f->n];
    const json_t *shape = json_object_get(value, "shape");
    const json_t *offsets = json_object_get(value, "data_offsets");
    const char *dtype = json_string_value(json_object_get(value, "dtype"));
    uint64_t bytes;

    if (!dtype || !json_is_array(shape) || !json_is_array(offsets) || json_array_size(offsets) != 2)
        return sn_fail(err, SNUG_E_INPUT, "tensor '%.60s' lacks dtype, shape or data_offsets",
                       name);
    if (!(e->dtype = dtype_name(dtype)))
        return sn_fail(err, SNUG_E_UNSUPPORTED, "tensor '%.60s' has the unknown dtype '%.20s'",
                       name, dtype);
    if (json_array_size(shape) > SN_SAFETENSORS_MAX_RANK)
        return sn_fail(err, SNUG_E_UNSUPPORTED, "tensor '%.60s' has %zu dimensions, at most %d",
                       name, json_array_size(shape), SN_SAFETENSORS_MAX_RANK);
    e->rank = (int)json_array_size(shape);
    for (int i = 0; i < e->rank; i++) {
        const json_t *dim = json_array_get(shape, (size_t)i);
        if (!json_is_integer(dim) || json_integer_value(dim) < 0)
            return sn_fail(err, SNUG_E_INPUT, "tensor '%.60s': dimension %d is no size", name, i);
        e->shape[i] = json_integer_value(dim);
    }
    const json_t *from = json_array_get(offsets, 0), *to = json_array_get(offsets, 1);
    if (!json_is_integer(from) || !json_is_integer(to) || json_integer_value(from) < 0 ||
        json_integer_value(to) < json_integer_value(from) ||
        (uint64_t)json_integer_value(to) > data_bytes)
        return sn_fail(err, SNUG_E_INPUT,
                       "tensor '%.60s' lies outside the %" PRIu64 " bytes of data (file cut off?)",
                       name, data_bytes);
    e->bytes = (uint64_t)(json_integer_value(to) - json_integer_value(from));
    e->offset = data_at + (uint64_t)json_integer_value(from);
    if (entry_bytes(e, &bytes) || bytes != e->bytes)
        return sn_fail(err, SNUG_E_INPUT,
                       "tensor '%.60s' has %" PRIu64 " bytes, which its shape does not give", name,
                       e->bytes);
    if (!(e->name = sn_arena_strdup(&f->texts, name)))
        return no_memory(err);
    f->n++;
    return SNUG_OK;
}

static snug_status read_metadata(sn_safetensors *f, json_t *object, snug_error *err)
{
    const char *key;
    json_t *value;

    if (!json_is_object(object))
        return sn_fail(err, SNUG_E_INPUT, "__metadata__ is no object");
    size_t n = json_object_size(object);
    f->metadata = sn_arena_alloc_array(&f->texts, n ? n : 1, sizeof *f->metadata);
    if (!f->metadata)
        return no_memory(err);
    json_object_foreach(object, key, value)
    {
        if (!json_is_string(value))
            return sn_fail(err, SNUG_E_INPUT, "__metadata__: '%.60s' is no text", key);
        sn_safetensors_text *t = &f->metadata[f->n_metadata++];
        t->key = sn_arena_strdup(&f->texts, key);
        t->value = sn_arena_strdup(&f->texts, json_string_value(value));
        if (!t->key || !t->value)
            return no_memory(err);
    }
    return SNUG_OK;
}

static int by_offset(const void *a, const void *b)
{
    const sn_safetensors_entry *x = a, *y = b;

    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

static snug_status index_entries(sn_safetensors *f, snug_error *err)
{
    if (f->n)
        qsort(f->entries, f->n, sizeof *f->entries, by_offset); /* 2 */
    for (size_t i = 0; i < f->n; i++) {
        const sn_safetensors_entry *e = &f->entries[i];
        if (i && f->entries[i - 1].offset + f->entries[i - 1].bytes > e->offset) /* 1 */
            return sn_fail(err, SNUG_E_INPUT, "tensors '%.60s' and '%.60s' overlap",
                           f->entries[i - 1].name, e->name);
        if (!sn_map_set_str(&f->by_name, e->name, i))
            return no_memory(err);
    }
    return SNUG_OK;
}

static snug_status parse_header(sn_safetensors *f, const char *text, size_t n, uint64_t file_bytes,
                                snug_error *err)
{
    json_error_t why;
    const char *key;
    json_t *value, *root = json_loadb(text, n, JSON_REJECT_DUPLICATES, &why);
    snug_status status = SNUG_OK;

    if (!root) {
        status = sn_fail(err, SNUG_E_INPUT, "the header is no JSON: %.100s", why.text);
        if (err)
            err->pos = PREFIX + (uint64_t)SN_MAX(why.position, 0);
        return status;
    }
    if (!json_is_object(root))
        status = sn_fail(err, SNUG_E_INPUT, "the header is no JSON object");
    f->entries = sn_arena_alloc_array(&f->texts, json_object_size(root) + 1, sizeof *f->entries);
    if (!f->entries)
        status = no_memory(err);
    if (!status)
        json_object_foreach(root, key, value)
        {
            if (!status && sn_str_eq(key, "__metadata__"))
                status = read_metadata(f, value, err);
            else if (!status)
                status = read_entry(f, key, value, PREFIX + n, file_bytes - PREFIX - n, err);
        }
    json_decref(root);
    return status ? status : index_entries(f, err);
}

static snug_status open_file(sn_safetensors *f, snug_error *err)
{
    struct stat st;
    uint8_t prefix[PREFIX];
    uint64_t n = 0;

    f->fd = open(f->path, O_RDONLY | O_CLOEXEC);
    if (f->fd < 0)
        return sn_fail_errno(err, errno == ENOENT ? SNUG_E_NOT_FOUND : SNUG_E_IO, errno,
                             "cannot be opened");
    if (fstat(f->fd, &st) || !S_ISREG(st.st_mode))
        return sn_fail(err, SNUG_E_INPUT, "is no regular file");
    if (st.st_size < PREFIX + 2)
        return sn_fail(err, SNUG_E_INPUT, "%" PRId64 " bytes are too few for a safetensors file",
                       (int64_t)st.st_size);
    snug_status status = sn_io_pread(f->fd, prefix, PREFIX, 0, f->path, err);
    if (status)
        return status;
    for (int i = 0; i < PREFIX; i++)
        n |= (uint64_t)prefix[i] << (8 * i);
    if (n > (uint64_t)st.st_size - PREFIX || n > MAX_HEADER)
        return sn_fail(err, SNUG_E_INPUT,
                       "a header of %" PRIu64 " bytes in a file of %" PRId64
                       ": no safetensors file, or cut off",
                       n, (int64_t)st.st_size);
    char *text = sn_alloc(SN_TAG_FORMAT, (size_t)n + 1);
    if (!text)
        return no_memory(err);
    status = sn_io_pread(f->fd, text, (size_t)n, PREFIX, f->path, err);
    if (!status)
        status = parse_header(f, text, (size_t)n, (uint64_t)st.st_size, err);
    sn_free(text);
    return status;
}

snug_status sn_safetensors_open(sn_safetensors **out, const char *path, snug_error *err)
{
    sn_safetensors *f = sn_alloc(SN_TAG_FORMAT, sizeof *f);
    snug_error own = SNUG_ERROR_INIT;

    *out = NULL;
    if (!f)
        return no_memory(err);
    f->fd = -1;
    sn_arena_init(&f->texts, SN_TAG_FORMAT);
    sn_map_init(&f->by_name, SN_TAG_FORMAT);
    f->path = sn_strdup(SN_TAG_FORMAT, path);
    snug_status status = f->path ? open_file(f, &own) : no_memory(&own);
    if (!status) {
        *out = f;
        return SNUG_OK;
    }
    sn_safetensors_free(f);
    sn_where(&own, "%s", path);
    if (err)
        *err = own;
    return status;
}

size_t sn_safetensors_n(const sn_safetensors *file)
{
    return file->n;
}

const sn_safetensors_entry *sn_safetensors_entry_at(const sn_safetensors *file, size_t i)
{
    return i < file->n ? &file->entries[i] : NULL;
}

const sn_safetensors_entry *sn_safetensors_find(const sn_safetensors *file, const char *name)
{
    const uint64_t *i = sn_map_find_str(&file->by_name, name);

    return i ? &file->entries[*i] : NULL;
}

const char *sn_safetensors_metadata(const sn_safetensors *file, const char *key)
{
    for (size_t i = 0; i < file->n_metadata; i++)
        if (sn_str_eq(file->metadata[i].key, key))
            return file->metadata[i].value;
    return NULL;
}

snug_status sn_safetensors_read(const sn_safetensors *file, const sn_safetensors_entry *entry,
                                void *buffer, snug_error *err)
{
    return sn_io_pread(file->fd, buffer, (size_t)entry->bytes, entry->offset, file->path, err);
}

snug_status sn_safetensors_read_part(const sn_safetensors *file, const sn_safetensors_entry *entry,
                                     uint64_t offset, void *buffer, size_t n, snug_error *err)
{
    if (offset > entry->bytes || n > entry->bytes - offset)
        return sn_fail(err, SNUG_E_USAGE,
                       "%zu bytes at %" PRIu64 " are beyond the %" PRIu64 " of '%.60s'", n, offset,
                       entry->bytes, entry->name);
    return sn_io_pread(file->fd, buffer, n, entry->offset + offset, file->path, err);
}

void sn_safetensors_free(sn_safetensors *file)
{
    if (!file)
        return;
    if (file->fd >= 0)
        close(file->fd);
    sn_map_deinit(&file->by_name);
    sn_arena_deinit(&file->texts);
    sn_free(file->path);
    sn_free(file);
}

/* --- writing -----------------------------------------------------------------------------------*/

struct sn_safetensors_writer {
    sn_io_atomic file;
    size_t n;
    struct tensor {
        uint64_t offset, bytes, written;
    } * tensors;
};

static json_t *entry_json(const sn_safetensors_entry *e, uint64_t from, uint64_t bytes)
{
    json_t *shape = json_array();

    for (int i = 0; i < e->rank; i++)
        json_array_append_new(shape, json_integer(e->shape[i]));
    return json_pack("{s:s, s:o, s:[I, I]}", "dtype", e->dtype, "shape", shape, "data_offsets",
                     (json_int_t)from, (json_int_t)(from + bytes));
}

/* The header's text, padded so that the data is 8-byte aligned (jansson's memory: free it with
 * json's own); *data_bytes: what follows. NULL: something is no good. */
static char *header_text(const sn_safetensors_entry *entries, size_t n,
                         const sn_safetensors_text *metadata, size_t n_metadata,
                         uint64_t *data_bytes)
{
    json_t *root = json_object(), *texts = n_metadata ? json_object() : NULL;
    bool bad = false;

    *data_bytes = 0;
    for (size_t i = 0; i < n_metadata && !bad; i++)
        bad = json_object_set_new(texts, metadata[i].key, json_string(metadata[i].value)) != 0;
    if (texts)
        bad = json_object_set_new(root, "__metadata__", texts) != 0 || bad;
    for (size_t i = 0; i < n && !bad; i++) {
        uint64_t bytes;
        bad = entry_bytes(&entries[i], &bytes) || json_object_get(root, entries[i].name) ||
              json_object_set_new(root, entries[i].name,
                                  entry_json(&entries[i], *data_bytes, bytes)) ||
              sn_add_u64(data_bytes, *data_bytes, bytes) || *data_bytes > INT64_MAX;
    }
    char *text = bad ? NULL : json_dumps(root, JSON_COMPACT);
    json_decref(root);
    return text;
}

static void free_text(char *text)
{
    json_malloc_t ignored;
    json_free_t release;

    json_get_alloc_funcs(&ignored, &release);
    release(text);
}

uint64_t sn_safetensors_file_bytes(const sn_safetensors_entry *entries, size_t n,
                                   const sn_safetensors_text *metadata, size_t n_metadata)
{
    uint64_t data_bytes;
    char *text = header_text(entries, n, metadata, n_metadata, &data_bytes);

    if (!text)
        return 0;
    uint64_t bytes = PREFIX + sn_align_up(strlen(text), 8) + data_bytes;
    free_text(text);
    return bytes;
}

static snug_status write_header(sn_safetensors_writer *w, const char *text, uint64_t data_bytes,
                                const char *path, snug_error *err)
{
    uint8_t prefix[PREFIX];
    uint64_t length = strlen(text), padded = sn_align_up(length, 8);
    static const char spaces[] = "        ";

    for (int i = 0; i < PREFIX; i++)
        prefix[i] = (uint8_t)(padded >> (8 * i));
    for (size_t i = 0; i < w->n; i++)
        w->tensors[i].offset += PREFIX + padded;
    snug_status status = sn_io_pwrite(w->file.fd, prefix, PREFIX, 0, path, err);
    if (!status)
        status = sn_io_pwrite(w->file.fd, text, (size_t)length, PREFIX, path, err);
    if (!status)
        status =
            sn_io_pwrite(w->file.fd, spaces, (size_t)(padded - length), PREFIX + length, path, err);
    if (status)
        return status;
    int why = posix_fallocate(w->file.fd, 0, (off_t)(PREFIX + padded + data_bytes));
    if (why)
        return sn_fail_errno(err, SNUG_E_IO, why, "%.120s: no room for %" PRIu64 " bytes", path,
                             PREFIX + padded + data_bytes);
    return SNUG_OK;
}

snug_status sn_safetensors_begin(sn_safetensors_writer **out, const char *path,
                                 const sn_safetensors_entry *entries, size_t n,
                                 const sn_safetensors_text *metadata, size_t n_metadata,
                                 snug_error *err)
{
    uint64_t data_bytes, at = 0;
    sn_safetensors_writer *w = sn_alloc(SN_TAG_FORMAT, sizeof *w);

    *out = NULL;
    if (w)
        w->tensors = sn_alloc_array(SN_TAG_FORMAT, n ? n : 1, sizeof *w->tensors);
    if (!w || !w->tensors) {
        sn_free(w);
        return no_memory(err);
    }
    w->n = n;
    for (size_t i = 0; i < n; i++) {
        w->tensors[i].offset = at;
        if (!entry_bytes(&entries[i], &w->tensors[i].bytes))
            at += w->tensors[i].bytes;
    }
    char *text = header_text(entries, n, metadata, n_metadata, &data_bytes);
    snug_status status =
        text ? sn_io_atomic_open(&w->file, path, err)
             : sn_fail(err, SNUG_E_USAGE,
                       "a tensor's name, dtype or shape, or a text, cannot stand in a safetensors "
                       "file (a name twice, or no UTF-8?)");
    bool opened = text && !status;
    if (opened)
        status = write_header(w, text, data_bytes, path, err);
    if (text)
        free_text(text);
    if (!status) {
        *out = w;
        return SNUG_OK;
    }
    if (opened)
        sn_io_atomic_abort(&w->file);
    sn_free(w->tensors);
    sn_free(w);
    return status;
}

snug_status sn_safetensors_write(sn_safetensors_writer *writer, size_t i, uint64_t offset,
                                 const void *bytes, size_t n, snug_error *err)
{
    if (i >= writer->n || offset > writer->tensors[i].bytes ||
        n > writer->tensors[i].bytes - offset)
        return sn_fail(err, SNUG_E_USAGE, "%zu bytes at %" PRIu64 " are beyond tensor %zu", n,
                       offset, i);
    snug_status status = sn_io_pwrite(writer->file.fd, bytes, n, writer->tensors[i].offset + offset,
                                      writer->file.path, err);
    if (!status)
        writer->tensors[i].written += n;
    return status;
}

snug_status sn_safetensors_commit(sn_safetensors_writer *writer, snug_error *err)
{
    for (size_t i = 0; i < writer->n; i++)
        if (writer->tensors[i].written != writer->tensors[i].bytes) {
            snug_status status =
                sn_fail(err, SNUG_E_USAGE, "tensor %zu: %" PRIu64 " of %" PRIu64 " bytes written",
                        i, writer->tensors[i].written, writer->tensors[i].bytes);
            sn_safetensors_abort(writer);
            return status;
        }
    snug_status status = sn_io_atomic_commit(&writer->file, err);
    if (status)
        sn_io_atomic_abort(&writer->file);
    sn_free(writer->tensors);
    sn_free(writer);
    return status;
}

void sn_safetensors_abort(sn_safetensors_writer *writer)
{
    if (!writer)
        return;
    sn_io_atomic_abort(&writer->file);
    sn_free(writer->tensors);
    sn_free(writer);
}
