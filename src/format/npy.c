/* SPDX-License-Identifier: Apache-2.0
 *
 * .npy in and out. The header is a Python dictionary; only the form that NumPy writes is read.
 */
#include "format/npy.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"

enum { MAX_HEADER = 64 * 1024 };

static const struct {
    const char *descr;
    sn_raw_type type;
    bool integers;
} descrs[] = {
    {"|u1", SN_RAW_U8, true},   {"|i1", SN_RAW_I8, true},   {"|b1", SN_RAW_U8, true},
    {"<u2", SN_RAW_U16, true},  {"<i2", SN_RAW_I16, true},  {"<u4", SN_RAW_U32, true},
    {"<i4", SN_RAW_I32, true},  {"<i8", SN_RAW_I64, true},  {"<u8", SN_RAW_I64, true},
    {"<f2", SN_RAW_F16, false}, {"<f4", SN_RAW_F32, false}, {"<f8", SN_RAW_F64, false},
};

/* The value of 'key' in the header's dictionary; NULL if it is not there. */
static const char *value_of(const char *header, const char *key)
{
    char quoted[32];

    snprintf(quoted, sizeof quoted, "'%s':", key);
    const char *at = strstr(header, quoted);
    if (!at)
        return NULL;
    at += strlen(quoted);
    return at + strspn(at, " ");
}

static snug_status parse_descr(sn_npy *out, const char *header, snug_error *err)
{
    const char *at = value_of(header, "descr");
    char descr[8] = "";

    if (!at || *at != '\'')
        return sn_fail(err, SNUG_E_UNSUPPORTED,
                       "an array of records, or a header without 'descr': only plain numbers are "
                       "read");
    size_t n = strcspn(++at, "'");
    if (n < sizeof descr)
        memcpy(descr, at, n);
    for (size_t i = 0; i < SN_LEN(descrs); i++)
        if (sn_str_eq(descr, descrs[i].descr)) {
            out->type = descrs[i].type;
            out->integers = descrs[i].integers;
            return SNUG_OK;
        }
    return sn_fail(err, SNUG_E_UNSUPPORTED,
                   "numbers of type '%.*s' are not read: save as uint8 or float32",
                   (int)SN_MIN(n, 8), at);
}

static snug_status parse_shape(sn_npy *out, const char *header, snug_error *err)
{
    const char *at = value_of(header, "shape"), *order = value_of(header, "fortran_order");

    if (!order || !at || *at != '(')
        return sn_fail(err, SNUG_E_INPUT, "the header has no 'shape' or 'fortran_order'");
    at++;
    for (;;) {
        at += strspn(at, " ,");
        if (*at == ')')
            break;
        int64_t dim = 0;
        const char *start = at;
        for (; *at >= '0' && *at <= '9'; at++)
            if (__builtin_mul_overflow(dim, 10, &dim) ||
                __builtin_add_overflow(dim, *at - '0', &dim))
                return sn_fail(err, SNUG_E_INPUT, "dimension %d is absurd", out->rank);
        if (at == start || (*at != ',' && *at != ')'))
            return sn_fail(err, SNUG_E_INPUT, "the shape in the header is damaged");
        if (out->rank == SN_NPY_MAX_RANK)
            return sn_fail(err, SNUG_E_UNSUPPORTED, "more than %d dimensions", SN_NPY_MAX_RANK);
        out->shape[out->rank++] = dim;
    }
    if (sn_str_starts(order, "True") && out->rank > 1)
        return sn_fail(err, SNUG_E_UNSUPPORTED,
                       "columns first (Fortran order): save with numpy.ascontiguousarray");
    return SNUG_OK;
}

static snug_status check_size(sn_npy *out, uint64_t file_bytes, snug_error *err)
{
    uint64_t bytes;

    out->n = 1;
    for (int i = 0; i < out->rank; i++)
        if (sn_mul_u64(&out->n, out->n, (uint64_t)out->shape[i]))
            return sn_fail(err, SNUG_E_INPUT, "the shape in the header is absurd");
    if (sn_mul_u64(&bytes, out->n, sn_raw_type_bytes(out->type)) ||
        bytes > file_bytes - out->offset)
        return sn_fail(err, SNUG_E_INPUT,
                       "cut off: its shape needs %" PRIu64
                       " numbers, the file has room for %" PRIu64,
                       out->n, (file_bytes - out->offset) / sn_raw_type_bytes(out->type));
    return SNUG_OK;
}

static snug_status read_header(sn_npy *out, int fd, const char *path, snug_error *err)
{
    struct stat st;
    uint8_t head[12] = {0};
    char *text = NULL;

    memset(out, 0, sizeof *out);
    if (fstat(fd, &st) || !S_ISREG(st.st_mode))
        return sn_fail(err, SNUG_E_INPUT, "is no regular file");
    uint64_t size = (uint64_t)st.st_size;
    if (size < sizeof head)
        return sn_fail(err, SNUG_E_INPUT, "%" PRIu64 " bytes are too few for a .npy", size);
    snug_status status = sn_io_pread(fd, head, sizeof head, 0, path, err);
    if (status)
        return status;
    if (memcmp(head, "\x93NUMPY", 6) != 0 || head[6] < 1 || head[6] > 3)
        return sn_fail(err, SNUG_E_INPUT, "is no .npy of version 1 to 3");
    uint64_t n = head[8] | (uint64_t)head[9] << 8, at = 10;
    if (head[6] > 1) {
        n |= (uint64_t)head[10] << 16 | (uint64_t)head[11] << 24;
        at = 12;
    }
    if (n > MAX_HEADER || n > size - at)
        return sn_fail(err, SNUG_E_INPUT, "its header claims %" PRIu64 " bytes", n);
    out->offset = at + n;
    if (!(text = sn_alloc(SN_TAG_FORMAT, (size_t)n + 1)))
        return sn_fail(err, SNUG_E_MEMORY, "no memory for a header");
    status = sn_io_pread(fd, text, (size_t)n, at, path, err);
    if (!status)
        status = parse_descr(out, text, err);
    if (!status)
        status = parse_shape(out, text, err);
    if (!status)
        status = check_size(out, size, err);
    sn_free(text);
    return status;
}

snug_status sn_npy_read_header(sn_npy *out, int fd, const char *path, snug_error *err)
{
    snug_error own = SNUG_ERROR_INIT;
    snug_status status = read_header(out, fd, path, &own);

    if (status && err) {
        *err = own;
        sn_where(err, "%.80s", path);
    }
    return status;
}

bool sn_npy_header(char out[SN_NPY_HEADER], const char *descr, int rank, const int64_t *shape)
{
    size_t used = 10, room = SN_NPY_HEADER - 1;

    memset(out, ' ', SN_NPY_HEADER);
    memcpy(out, "\x93NUMPY\1\0\x76\0", 10);
    used += (size_t)snprintf(out + used, SN_NPY_HEADER - used,
                             "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
    for (int i = 0; i < rank && used < room; i++)
        used += (size_t)snprintf(out + used, SN_NPY_HEADER - used, "%" PRId64 "%s", shape[i],
                                 rank == 1      ? ","
                                 : i + 1 < rank ? ", "
                                                : "");
    if (used + 4 >= room)
        return false;
    memcpy(out + used, "), }", 4);
    out[used + 4] = ' ';
    out[room] = '\n';
    return true;
}

/* --- as a data set -----------------------------------------------------------------------------*/

static snug_status open_npy(int *fd, sn_npy *head, const char *path, snug_error *err)
{
    *fd = open(path, O_RDONLY | O_CLOEXEC);
    if (*fd < 0)
        return sn_fail_errno(err, errno == ENOENT ? SNUG_E_NOT_FOUND : SNUG_E_IO, errno,
                             "'%.120s' cannot be opened", path);
    snug_status status = sn_npy_read_header(head, *fd, path, err);
    if (status) {
        close(*fd);
        *fd = -1;
    }
    return status;
}

/* Copies n x width numbers of an open array to raw's label file; whole numbers as int32. */
static snug_status copy_labels(sn_raw *raw, int fd, const sn_npy *a, const char *path,
                               int64_t *largest, snug_error *err)
{
    enum { SOME = 4096 };
    uint8_t in[SOME * 8];
    float reals[SOME];
    int32_t whole[SOME];
    size_t size = sn_raw_type_bytes(a->type);
    snug_status status = SNUG_OK;

    for (uint64_t at = 0; at < a->n && !status;) {
        size_t n = (size_t)SN_MIN(a->n - at, (uint64_t)SOME);
        status = sn_io_pread(fd, in, n * size, a->offset + at * size, path, err);
        if (status)
            break;
        sn_raw_to_float(reals, in, a->type, n);
        for (size_t i = 0; i < n && a->integers; i++) {
            /* Whole numbers up to 2^24 are exact as floats; class indices are far below. */
            if (!(reals[i] >= 0 && reals[i] < 1e6f))
                return sn_fail(err, SNUG_E_INPUT,
                               "%.80s: label %g in row %" PRIu64 " is no class (0 to 999999); save "
                               "real targets as float32",
                               path, (double)reals[i], at + i);
            whole[i] = (int32_t)reals[i];
            *largest = SN_MAX(*largest, whole[i]);
        }
        for (size_t i = 0; i < n && !a->integers; i++)
            if (!isfinite(reals[i]))
                return sn_fail(err, SNUG_E_INPUT, "%.80s: the target in row %" PRIu64 " is %g",
                               path, at + i, (double)reals[i]);
        status = sn_io_pwrite(raw->labels_fd, a->integers ? (void *)whole : (void *)reals, n * 4,
                              at * 4, "the temporary file of labels", err);
        at += n;
    }
    return status;
}

snug_status sn_npy_labels(sn_raw *raw, const char *path, uint64_t n, snug_error *err)
{
    sn_npy a;
    int fd;
    int64_t largest = -1;
    snug_status status = open_npy(&fd, &a, path, err);

    if (status)
        return status;
    int64_t width = a.rank == 2 ? a.shape[1] : 1;
    if (a.rank < 1 || a.rank > 2 || (uint64_t)a.shape[0] != n || width < 1)
        status = sn_fail(err, SNUG_E_INPUT,
                         "%.80s: labels of %" PRId64 " rows (rank %d) for %" PRIu64 " samples",
                         path, a.rank ? a.shape[0] : 0, a.rank, n);
    else if (a.integers && width != 1)
        status = sn_fail(err, SNUG_E_UNSUPPORTED,
                         "%.80s: %" PRId64 " whole numbers a sample: save class indices (argmax of "
                         "one-hot rows), or float32 targets",
                         path, width);
    if (!status)
        status = sn_io_temporary(&raw->labels_fd, err);
    if (!status)
        status = copy_labels(raw, fd, &a, path, &largest, err);
    close(fd);
    if (status)
        return status;
    raw->labels = a.integers ? SN_RAW_CLASSES : SN_RAW_TARGETS;
    raw->n_targets = a.integers ? 0 : width;
    if (a.integers && !sn_raw_number_classes(raw, (size_t)largest + 1))
        return sn_fail(err, SNUG_E_MEMORY, "no memory for class names");
    return SNUG_OK;
}

static snug_status fill(sn_raw *raw, const sn_npy *a, const char *path, snug_error *err)
{
    if (a->rank < 2 || a->rank > 4 || a->shape[0] == 0 || a->n == 0)
        return sn_fail(err, SNUG_E_INPUT,
                       "%.80s: an array of rank %d with %" PRIu64
                       " numbers is no data set: [N,H,W,C], "
                       "[N,H,W] or [N,F] is wanted",
                       path, a->rank, a->n);
    raw->parts[0].n = (uint64_t)a->shape[0];
    raw->parts[0].offset = a->offset;
    raw->type = a->type;
    raw->rank = a->rank == 2 ? 1 : 3;
    raw->stored[0] = a->shape[1];
    raw->stored[1] = a->rank > 2 ? a->shape[2] : 1;
    raw->stored[2] = a->rank > 3 ? a->shape[3] : 1;
    for (int i = 0; i < 3; i++)
        if (raw->stored[i] > INT32_MAX)
            return sn_fail(err, SNUG_E_INPUT, "%.80s: a dimension of %" PRId64 " is too large",
                           path, raw->stored[i]);
    return SNUG_OK;
}

snug_status sn_npy_raw(sn_raw **out, const char *path, const snug_data_options *options,
                       snug_error *err)
{
    sn_raw *raw;
    sn_npy a;
    snug_status status = sn_raw_new(&raw, path, err);

    *out = NULL;
    if (status)
        return status;
    status = open_npy(&raw->parts[0].fd, &a, path, err);
    if (!status)
        status = fill(raw, &a, path, err);
    if (!status && options->labels_path)
        status = sn_npy_labels(raw, options->labels_path, raw->parts[0].n, err);
    else if (!status && !options->lenient)
        status = sn_fail(err, SNUG_E_USAGE, "'%.120s' has no labels: give --labels FILE.npy", path);
    if (status)
        sn_raw_free(raw);
    else
        *out = raw;
    return status;
}
