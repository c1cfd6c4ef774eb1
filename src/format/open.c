/* SPDX-License-Identifier: Apache-2.0
 *
 * DATA on the command line to a data set: what is it, and which reader opens it.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "data/data.h"
#include "data/images.h"
#include "format/csv.h"
#include "format/idx.h"
#include "format/npy.h"

enum { MAX_PATH = 4096 };

/* --- arrays ------------------------------------------------------------------------------------*/

typedef snug_status raw_reader(sn_raw **out, const char *path, const snug_data_options *options,
                               snug_error *err);

static snug_status no_memory(snug_error *err)
{
    return sn_fail(err, SNUG_E_MEMORY, "no memory for a data set");
}

/* other's training part becomes raw's validation part. */
static snug_status merge_validation(sn_raw *raw, sn_raw *other, snug_error *err)
{
    char bytes[4096];
    uint64_t width = 4 * (uint64_t)(raw->labels == SN_RAW_TARGETS ? raw->n_targets : 1);
    uint64_t n = other->parts[0].n * width, first = raw->parts[0].n * width;
    uint64_t test = raw->parts[2].n * width;
    snug_status status = SNUG_OK;

    if (raw->type != other->type || raw->rank != other->rank ||
        memcmp(raw->stored, other->stored, sizeof raw->stored) != 0)
        return sn_fail(err, SNUG_E_INPUT,
                       "the validation samples are %" PRId64 "x%" PRId64 "x%" PRId64
                       ", the training samples %" PRId64 "x%" PRId64 "x%" PRId64
                       " (or of another type)",
                       other->stored[0], other->stored[1], other->stored[2], raw->stored[0],
                       raw->stored[1], raw->stored[2]);
    if (raw->labels != other->labels || raw->n_targets != other->n_targets)
        return sn_fail(err, SNUG_E_INPUT, "the validation labels are of another kind");
    for (size_t i = 0; i < other->classes.n; i++)
        if (i >= raw->classes.n || !sn_str_eq(raw->classes.at[i], other->classes.at[i])) {
            bool lacks = true;
            for (size_t k = 0; k < raw->classes.n; k++)
                lacks = lacks && !sn_str_eq(raw->classes.at[k], other->classes.at[i]);
            return sn_fail(err, SNUG_E_INPUT,
                           lacks ? "validation class '%.60s' is not among the training classes"
                                 : "the validation data lacks a class before '%.60s'",
                           other->classes.at[i]);
        }
    /* Labels lie in the order train, validation, test: the test set's move back. */
    for (uint64_t at = test; at > 0 && !status;) {
        size_t some = (size_t)SN_MIN(at, (uint64_t)sizeof bytes);
        at -= some;
        status = sn_io_pread(raw->labels_fd, bytes, some, first + at, "the labels", err);
        if (!status)
            status = sn_io_pwrite(raw->labels_fd, bytes, some, first + n + at, "the labels", err);
    }
    for (uint64_t at = 0; at < n && !status;) {
        size_t some = (size_t)SN_MIN(n - at, (uint64_t)sizeof bytes);
        status = sn_io_pread(other->labels_fd, bytes, some, at, "the labels", err);
        if (!status)
            status = sn_io_pwrite(raw->labels_fd, bytes, some, first + at, "the labels", err);
        at += some;
    }
    raw->parts[1] = other->parts[0];
    other->parts[0].fd = -1;
    return status;
}

/* The labels of a validation .npy: like those of the training file, "y.npy" beside "x.npy" becomes
 * "y_val.npy"; so its options must name them. Here: the same name with the folder exchanged. */
static snug_status read_validation(sn_raw *raw, raw_reader *reader, const snug_data_options *o,
                                   snug_error *err)
{
    snug_data_options own = *o;
    char labels[MAX_PATH];
    sn_raw *other;

    own.validation_path = NULL;
    if (reader == sn_npy_raw && o->labels_path) {
        const char *base = sn_io_base_name(o->validation_path);
        const char *label_base = sn_io_base_name(o->labels_path);
        snprintf(labels, sizeof labels, "%.*s%s", (int)(base - o->validation_path),
                 o->validation_path, label_base);
        own.labels_path = labels;
    } else if (reader == sn_idx_raw) {
        own.labels_path = NULL;
    }
    snug_status status = reader(&other, o->validation_path, &own, err);
    if (status)
        return status;
    status = merge_validation(raw, other, err);
    sn_raw_free(other);
    return status;
}

/* Names for classes that are numbers only, one a line. */
static snug_status read_class_names(sn_raw *raw, const char *path, snug_error *err)
{
    char *text, *line, *save = NULL;
    size_t n, i = 0;
    snug_status status = sn_io_read_all(&text, &n, path, SN_MIB, SN_TAG_FORMAT, err);

    if (status)
        return status;
    for (line = strtok_r(text, "\r\n", &save); line; line = strtok_r(NULL, "\r\n", &save), i++) {
        char *copy = i < raw->classes.n ? sn_strdup(SN_TAG_DATA, line) : NULL;
        if (i < raw->classes.n && !copy) {
            sn_free(text);
            return no_memory(err);
        }
        if (copy) {
            sn_free(raw->classes.at[i]);
            raw->classes.at[i] = copy;
        }
    }
    sn_free(text);
    if (i != raw->classes.n)
        return sn_fail(err, SNUG_E_INPUT, "'%.100s' has %zu names for %zu classes", path, i,
                       raw->classes.n);
    return SNUG_OK;
}

static snug_status name_classes(sn_raw *raw, const snug_data_options *o, snug_error *err)
{
    char beside[MAX_PATH];
    const char *base = sn_io_base_name(raw->path);

    if (raw->classes.n == 0)
        return SNUG_OK;
    if (o->class_names_path)
        return read_class_names(raw, o->class_names_path, err);
    snprintf(beside, sizeof beside, "%.*sclasses.txt", (int)(base - raw->path), raw->path);
    return sn_io_is_file(beside) ? read_class_names(raw, beside, err) : SNUG_OK;
}

static snug_status open_raw(sn_set *set, raw_reader *reader, const char *path,
                            const snug_data_options *o, snug_error *err)
{
    sn_raw *raw;
    snug_status status = reader(&raw, path, o, err);

    if (status)
        return status;
    if (o->validation_path)
        status = read_validation(raw, reader, o, err);
    if (!status && reader != sn_csv_raw)
        status = name_classes(raw, o, err);
    if (!status && raw->labels == SN_RAW_CLASSES)
        status = sn_raw_count_classes(raw, err);
    if (!status && raw->labels == SN_RAW_CLASSES && raw->classes.n < 2 && !o->lenient)
        status = sn_fail(err, SNUG_E_INPUT,
                         "'%.120s' has one class only: there is nothing to tell "
                         "apart",
                         path);
    if (!status)
        status = sn_raw_seal(raw, o, set, err);
    if (status)
        sn_raw_free(raw);
    return status;
}

/* --- images ------------------------------------------------------------------------------------*/

/* The folder before the first wildcard, and the pattern relative to it. */
static void split_glob(const char *path, char *folder, size_t n, const char **pattern)
{
    const char *wild = path + strcspn(path, "*?["), *slash = path;

    for (const char *at = path; at < wild; at++)
        if (*at == '/')
            slash = at + 1;
    *pattern = slash;
    if (slash == path)
        snprintf(folder, n, ".");
    else
        snprintf(folder, n, "%.*s", (int)(slash - path), path);
}

static snug_status open_images(sn_set *set, const char *path, bool is_glob,
                               const snug_data_options *o, snug_error *err)
{
    sn_images *im;
    char folder[MAX_PATH];
    const char *pattern = NULL;
    snug_status status = sn_images_new(&im, o, err);

    if (status)
        return status;
    if (is_glob)
        split_glob(path, folder, sizeof folder, &pattern);
    if (o->labels_path)
        status = sn_csv_images(im, is_glob ? folder : path, pattern, o, err);
    else
        status = sn_images_scan(im, path, false, o->lenient != 0, err);
    if (!status && o->validation_path) {
        if (im->n[SNUG_SUBSET_TEST])
            status = sn_fail(err, SNUG_E_USAGE,
                             "'%.60s' is a split with its own test folder: --validation cannot be "
                             "added to it",
                             path);
        else if (o->labels_path)
            status = sn_fail(err, SNUG_E_UNSUPPORTED,
                             "--validation beside --labels: use --validation-split");
        else
            status = sn_images_scan(im, o->validation_path, true, true, err);
    }
    if (!status && !im->regression && im->classes.n == 1 && o->labels_path && !o->lenient)
        status = sn_fail(err, SNUG_E_INPUT,
                         "'%.100s' has one class only ('%.60s'): there is nothing "
                         "to tell apart",
                         o->labels_path, im->classes.at[0]);
    if (!status)
        status = sn_images_seal(im, set, err);
    if (status)
        sn_images_free(im);
    return status;
}

/* --- what is it --------------------------------------------------------------------------------*/

/* MNIST's folder: its training images by their usual name. */
static bool idx_in_folder(const char *folder, char *out, size_t n)
{
    static const char *const names[] = {"train-images-idx3-ubyte.gz", "train-images-idx3-ubyte",
                                        "train-images.idx3-ubyte"};

    for (size_t i = 0; i < SN_LEN(names); i++)
        if (snprintf(out, n, "%s/%s", folder, names[i]) < (int)n && sn_io_is_file(out))
            return true;
    return false;
}

static snug_status open_file(sn_set *set, const char *path, const snug_data_options *o,
                             snug_error *err)
{
    uint8_t head[SN_IMAGE_SNIFF_BYTES] = {0};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (fd < 0)
        return sn_fail_errno(err, SNUG_E_IO, errno, "'%.120s' cannot be opened", path);
    ssize_t got = pread(fd, head, sizeof head, 0);
    close(fd);
    if (got >= 6 && !memcmp(head, "\x93NUMPY", 6))
        return open_raw(set, sn_npy_raw, path, o, err);
    if (sn_str_ends_fold(path, ".csv"))
        return open_raw(set, sn_csv_raw, path, o, err);
    sn_image_kind kind = sn_image_sniff(head, got > 0 ? (size_t)got : 0);
    if (got >= 4 && sn_idx_sniff(head) && !sn_image_kind_decodable(kind))
        return open_raw(set, sn_idx_raw, path, o, err);
    if (sn_str_ends_fold(path, ".npy"))
        return sn_fail(err, SNUG_E_INPUT, "'%.120s' is no .npy: it does not begin with \\x93NUMPY",
                       path);
    if (sn_image_kind_decodable(kind))
        return sn_fail(err, SNUG_E_INPUT,
                       "'%.120s' is one image; DATA is a folder with a folder a class", path);
    return sn_fail(err, SNUG_E_UNSUPPORTED,
                   "'%.80s' is %s; DATA is a folder of class folders, an IDX, .npy or .csv file",
                   path, kind == SN_IMAGE_UNKNOWN ? "of no known kind" : sn_image_kind_words(kind));
}

static snug_status open_set(sn_set *set, const char *path, const snug_data_options *o,
                            snug_error *err)
{
    struct stat st;
    char idx[MAX_PATH], shown[160];

    if (stat(path, &st)) {
        int why = errno;
        if (why == ENOENT && path[strcspn(path, "*?[")])
            return o->labels_path
                       ? open_images(set, path, true, o, err)
                       : sn_fail(err, SNUG_E_USAGE,
                                 "a pattern of files ('%.100s') needs --labels FILE.csv", path);
        return sn_fail_errno(err, why == ENOENT ? SNUG_E_NOT_FOUND : SNUG_E_IO, why,
                             "'%s' cannot be opened", sn_str_printable(shown, sizeof shown, path));
    }
    if (!S_ISDIR(st.st_mode))
        return open_file(set, path, o, err);
    if (!o->labels_path && idx_in_folder(path, idx, sizeof idx))
        return open_raw(set, sn_idx_raw, idx, o, err);
    return open_images(set, path, false, o, err);
}

static snug_status finish(snug_data **out, sn_set *set, const snug_data_options *o, snug_error *err)
{
    snug_status status = sn_data_new(out, set, o, err);

    if (status)
        set->ops->free(set->self);
    return status;
}

snug_status snug_data_open(snug_data **out, const char *path, const snug_data_options *options,
                           snug_error *err)
{
    snug_data_options o;
    sn_set set;
    snug_status status = sn_data_options_check(&o, options, err);

    *out = NULL;
    if (!status)
        status = open_set(&set, path, &o, err);
    return status ? status : finish(out, &set, &o, err);
}

snug_status snug_data_open_files(snug_data **out, const char *const *paths, size_t n_paths,
                                 const snug_data_options *options, snug_error *err)
{
    snug_data_options o;
    sn_set set;
    sn_images *im;
    snug_status status = sn_data_options_check(&o, options, err);

    *out = NULL;
    o.lenient = 1;
    if (!status)
        status = sn_images_new(&im, &o, err);
    if (status)
        return status;
    sn_images_begin(im, SNUG_SUBSET_TRAIN);
    for (size_t i = 0; i < n_paths && !status; i++)
        status = sn_images_add_path(im, paths[i], err);
    if (!status)
        status = sn_images_seal(im, &set, err);
    if (!status)
        return finish(out, &set, &o, err);
    sn_images_free(im);
    return status;
}
