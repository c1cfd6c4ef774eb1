/* SPDX-License-Identifier: Apache-2.0
 *
 * IDX files.
 */
#include "format/idx.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zlib.h>

#include "base/io.h"

/* An expanded file larger than this is taken for a bomb. */
#define MAX_EXPANDED (64 * SN_GIB)

bool sn_idx_sniff(const uint8_t head[4])
{
    if (head[0] == 0x1f && head[1] == 0x8b)
        return true;
    return head[0] == 0 && head[1] == 0 && head[2] >= 0x08 && head[2] <= 0x0e && head[3] >= 1 &&
           head[3] <= 4;
}

static uint32_t be32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | (uint32_t)p[3];
}

static snug_status read_header(sn_idx *out, int fd, const char *path, snug_error *err)
{
    struct stat st;
    uint8_t head[4 + 4 * 4];

    memset(out, 0, sizeof *out);
    if (fstat(fd, &st) || !S_ISREG(st.st_mode))
        return sn_fail(err, SNUG_E_INPUT, "is no regular file");
    uint64_t size = (uint64_t)st.st_size;
    if (size < 8)
        return sn_fail(err, SNUG_E_INPUT, "%" PRIu64 " bytes are too few for an IDX file", size);
    snug_status status = sn_io_pread(fd, head, (size_t)SN_MIN(size, sizeof head), 0, path, err);
    if (status)
        return status;
    if (head[0] || head[1] || head[2] < 0x08 || head[2] > 0x0e || head[3] < 1 || head[3] > 4)
        return sn_fail(
            err, SNUG_E_INPUT,
            "begins with %02x %02x %02x %02x: no IDX file (magic 00 00 08 03 for images)", head[0],
            head[1], head[2], head[3]);
    if (head[2] != 0x08)
        return sn_fail(err, SNUG_E_UNSUPPORTED,
                       "IDX numbers of type %02x: only bytes (08) are read", head[2]);
    out->rank = head[3];
    out->offset = 4 + 4 * (uint64_t)out->rank;
    out->n = 1;
    if (size < out->offset)
        return sn_fail(err, SNUG_E_INPUT, "cut off within its header");
    for (int i = 0; i < out->rank; i++) {
        out->shape[i] = be32(head + 4 + 4 * i);
        if (sn_mul_u64(&out->n, out->n, (uint64_t)out->shape[i]))
            return sn_fail(err, SNUG_E_INPUT, "its header's dimensions are absurd");
    }
    if (out->n != size - out->offset)
        return sn_fail(err, SNUG_E_INPUT,
                       "its header says %" PRIu64 " bytes, the file has %" PRIu64 " (%s)", out->n,
                       size - out->offset, size - out->offset < out->n ? "cut off" : "too long");
    return SNUG_OK;
}

snug_status sn_idx_read_header(sn_idx *out, int fd, const char *path, snug_error *err)
{
    snug_error own = SNUG_ERROR_INIT;
    snug_status status = read_header(out, fd, path, &own);

    if (status && err) {
        *err = own;
        sn_where(err, "%.80s", path);
    }
    return status;
}

/* --- gzip --------------------------------------------------------------------------------------*/

typedef struct expander {
    z_stream z;
    int from, to;
    const char *path;
    uint64_t written;
    uint8_t in[32 * 1024], out[64 * 1024];
} expander;

static snug_status expand_all(expander *e, snug_error *err)
{
    int code = Z_OK;

    for (;;) {
        size_t got = 0;
        if (e->z.avail_in == 0) {
            snug_status status = sn_io_read(e->from, e->in, sizeof e->in, &got, e->path, err);
            if (status)
                return status;
            e->z.next_in = e->in;
            e->z.avail_in = (uInt)got;
            if (got == 0)
                break;
        }
        /* A file may be several members, one behind the other. */
        if (code == Z_STREAM_END && inflateReset(&e->z) != Z_OK)
            break;
        e->z.next_out = e->out;
        e->z.avail_out = sizeof e->out;
        code = inflate(&e->z, Z_NO_FLUSH);
        if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR)
            return sn_fail(err, SNUG_E_INPUT, "%.100s: damaged gzip data after %" PRIu64 " bytes",
                           e->path, e->written);
        size_t n = sizeof e->out - e->z.avail_out;
        snug_status status =
            sn_io_pwrite(e->to, e->out, n, e->written, "the temporary expanded file", err);
        if (status)
            return status;
        e->written += n;
        if (e->written > MAX_EXPANDED)
            return sn_fail(err, SNUG_E_INPUT, "%.100s: expands to more than 64 GiB", e->path);
    }
    if (code != Z_STREAM_END)
        return sn_fail(err, SNUG_E_INPUT, "%.100s: gzip data cut off after %" PRIu64 " bytes",
                       e->path, e->written);
    return SNUG_OK;
}

/* Replaces *fd by a temporary file with the expanded bytes. */
static snug_status expand(int *fd, const char *path, snug_error *err)
{
    expander *e = sn_alloc(SN_TAG_FORMAT, sizeof *e);
    snug_status status;

    if (!e)
        return sn_fail(err, SNUG_E_MEMORY, "no memory to expand a gzip file");
    e->from = *fd;
    e->to = -1;
    e->path = path;
    status = sn_io_temporary(&e->to, err);
    if (!status && inflateInit2(&e->z, 15 + 16) != Z_OK)
        status = sn_fail(err, SNUG_E_MEMORY, "no memory to expand a gzip file");
    else if (!status) {
        status = expand_all(e, err);
        inflateEnd(&e->z);
    }
    if (status && e->to >= 0) {
        close(e->to);
    } else if (!status) {
        close(*fd);
        *fd = e->to;
    }
    sn_free(e);
    return status;
}

snug_status sn_idx_open(int *fd, sn_idx *out, const char *path, snug_error *err)
{
    uint8_t head[2] = {0};
    size_t got;

    *fd = open(path, O_RDONLY | O_CLOEXEC);
    if (*fd < 0)
        return sn_fail_errno(err, errno == ENOENT ? SNUG_E_NOT_FOUND : SNUG_E_IO, errno,
                             "'%.120s' cannot be opened", path);
    snug_status status = sn_io_read(*fd, head, sizeof head, &got, path, err);
    if (!status && lseek(*fd, 0, SEEK_SET) != 0)
        status = sn_fail_errno(err, SNUG_E_IO, errno, "'%.120s' cannot be read", path);
    if (!status && head[0] == 0x1f && head[1] == 0x8b)
        status = expand(fd, path, err);
    if (!status)
        status = sn_idx_read_header(out, *fd, path, err);
    if (status) {
        close(*fd);
        *fd = -1;
    }
    return status;
}

/* --- companions --------------------------------------------------------------------------------*/

/* out = path with `from` in its base name replaced by `to`; false if it is not in there. */
static bool renamed(char *out, size_t n, const char *path, const char *from, const char *to)
{
    const char *base = sn_io_base_name(path), *at = strstr(base, from);

    if (!at)
        return false;
    return snprintf(out, n, "%.*s%s%s", (int)(at - path), path, to, at + strlen(from)) < (int)n;
}

/* path, or path with .gz added or taken away, whichever exists. */
static bool existing(char *path, size_t n)
{
    size_t length = strlen(path);

    if (sn_io_is_file(path))
        return true;
    if (sn_str_ends(path, ".gz")) {
        path[length - 3] = '\0';
    } else {
        if (length + 4 > n)
            return false;
        memcpy(path + length, ".gz", 4);
    }
    return sn_io_is_file(path);
}

static bool labels_beside(char *out, size_t n, const char *images)
{
    char without[1024];

    return renamed(without, sizeof without, images, "images", "labels") &&
           (renamed(out, n, without, "idx3", "idx1") || renamed(out, n, without, "idx4", "idx1") ||
            snprintf(out, n, "%s", without) < (int)n) &&
           existing(out, n);
}

/* --- as a data set -----------------------------------------------------------------------------*/

/* The images of one part. */
static snug_status add_images(sn_raw *raw, int part, const char *path, snug_error *err)
{
    sn_idx head;
    int64_t stored[3];
    snug_status status = sn_idx_open(&raw->parts[part].fd, &head, path, err);

    if (status)
        return status;
    if (head.rank < 2 || head.n == 0)
        return sn_fail(err, SNUG_E_INPUT,
                       "%.100s: %d dimensions, %" PRIu64 " bytes: these are no images", path,
                       head.rank, head.n);
    stored[0] = head.shape[1];
    stored[1] = head.rank > 2 ? head.shape[2] : 1;
    stored[2] = head.rank > 3 ? head.shape[3] : 1;
    if (part && memcmp(stored, raw->stored, sizeof stored) != 0)
        return sn_fail(err, SNUG_E_INPUT,
                       "%.80s: images of %" PRId64 "x%" PRId64 " beside training images of %" PRId64
                       "x%" PRId64,
                       path, stored[0], stored[1], raw->stored[0], raw->stored[1]);
    memcpy(raw->stored, stored, sizeof stored);
    raw->rank = head.rank == 2 ? 1 : 3;
    raw->parts[part].n = (uint64_t)head.shape[0];
    raw->parts[part].offset = head.offset;
    return SNUG_OK;
}

static snug_status add_labels(sn_raw *raw, int part, const char *path, uint64_t first, int *largest,
                              snug_error *err)
{
    enum { SOME = 4096 };
    uint8_t in[SOME];
    int32_t out[SOME];
    sn_idx head;
    int fd;
    uint64_t n = raw->parts[part].n;
    snug_status status = sn_idx_open(&fd, &head, path, err);

    if (status)
        return status;
    if (head.rank != 1 || head.n != n)
        status = sn_fail(err, SNUG_E_INPUT,
                         "%.100s: %" PRIu64 " labels (rank %d) for %" PRIu64 " images", path,
                         head.n, head.rank, n);
    for (uint64_t at = 0; at < n && !status;) {
        size_t some = (size_t)SN_MIN(n - at, (uint64_t)SOME);
        status = sn_io_pread(fd, in, some, head.offset + at, path, err);
        for (size_t i = 0; i < some && !status; i++) {
            out[i] = in[i];
            *largest = SN_MAX(*largest, out[i]);
        }
        if (!status)
            status = sn_io_pwrite(raw->labels_fd, out, some * sizeof *out,
                                  (first + at) * sizeof *out, "the temporary file of labels", err);
        at += some;
    }
    close(fd);
    return status;
}

/* Zalando's Fashion-MNIST has well-known names for its numbers. */
static bool name_fashion(sn_raw *raw)
{
    static const char *const names[] = {"T-shirt/top", "Trouser",   "Pullover", "Dress",
                                        "Coat",        "Sandal",    "Shirt",    "Sneaker",
                                        "Bag",         "Ankle boot"};

    if (raw->classes.n != SN_LEN(names) || !strcasestr(raw->path, "fashion"))
        return true;
    for (size_t i = 0; i < SN_LEN(names); i++) {
        char *copy = sn_strdup(SN_TAG_DATA, names[i]);
        if (!copy)
            return false;
        sn_free(raw->classes.at[i]);
        raw->classes.at[i] = copy;
    }
    return true;
}

static snug_status fill(sn_raw *raw, const char *path, const snug_data_options *o, snug_error *err)
{
    char test[1024], labels[1024];
    int largest = -1;
    snug_status status = add_images(raw, SNUG_SUBSET_TRAIN, path, err);

    if (status)
        return status;
    bool known = o->labels_path
                     ? snprintf(labels, sizeof labels, "%s", o->labels_path) < (int)sizeof labels
                     : labels_beside(labels, sizeof labels, path);
    if (!known && o->lenient)
        return SNUG_OK;
    if (!known)
        return sn_fail(err, SNUG_E_NOT_FOUND,
                       "no labels beside '%.100s' (train-labels-idx1-ubyte): give --labels FILE",
                       path);
    if ((status = sn_io_temporary(&raw->labels_fd, err)))
        return status;
    raw->labels = SN_RAW_CLASSES;
    if ((status = add_labels(raw, SNUG_SUBSET_TRAIN, labels, 0, &largest, err)))
        return status;
    if (renamed(test, sizeof test, path, "train", "t10k") && existing(test, sizeof test) &&
        labels_beside(labels, sizeof labels, test)) {
        status = add_images(raw, SNUG_SUBSET_TEST, test, err);
        if (!status)
            status = add_labels(raw, SNUG_SUBSET_TEST, labels, raw->parts[0].n, &largest, err);
        if (!status && !sn_notes_add(&raw->notes, "%s is the test set", sn_io_base_name(test)))
            status = sn_fail(err, SNUG_E_MEMORY, "no memory for a data set");
    }
    if (!status && (!sn_raw_number_classes(raw, (size_t)(largest + 1)) || !name_fashion(raw)))
        status = sn_fail(err, SNUG_E_MEMORY, "no memory for class names");
    return status;
}

snug_status sn_idx_raw(sn_raw **out, const char *path, const snug_data_options *options,
                       snug_error *err)
{
    sn_raw *raw;
    snug_status status = sn_raw_new(&raw, path, err);

    *out = NULL;
    if (status)
        return status;
    raw->type = SN_RAW_U8;
    status = fill(raw, path, options, err);
    if (status)
        sn_raw_free(raw);
    else
        *out = raw;
    return status;
}
