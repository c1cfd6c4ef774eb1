/* SPDX-License-Identifier: Apache-2.0
 *
 * Data on its way in: shuffle buffers, caches, loader settings, whole sets in one array, and files
 * that cannot be decoded.
 */
#include "diagnose/state.h"

#include <string.h>

#include "diagnose/scan.h"

/* "Filling up shuffle buffer (this may take a while): 257 of 2048" */
static void read_shuffle(snug_diagnosis *d, const sn_line *line, const char *at)
{
    uint64_t filled, of;
    const char *p = NULL;
    for (const char *q = at; (q = strstr(q, "): ")); q++)
        p = q;
    if (p) {
        p += strlen("): ");
        if (sn_scan_count(&p, &filled) && sn_str_starts(p, " of ")) {
            p += strlen(" of ");
            if (sn_scan_count(&p, &of)) {
                sn_fact_set(d, SN_FACT_SHUFFLE_FILLED, filled, line->number);
                sn_fact_set(d, SN_FACT_SHUFFLE_BUFFER, of, line->number);
            }
        }
    }
    sn_tell_raise(d, SN_TELL_SHUFFLE, line->number, line->text);
}

/* "Caching images (6.5GB): 100% 2368/2368", "Caching images (18.3GB ram):  33%|###  | 231/700" */
static void read_caching(snug_diagnosis *d, const sn_line *line, const char *at)
{
    uint64_t bytes, done = 0, of = 0;
    bool unit;
    const char *paren = strchr(at, '(');
    if (paren) {
        const char *p = paren + 1;
        if (sn_scan_size(&p, &bytes, &unit) && unit)
            sn_fact_set(d, SN_FACT_CACHE, bytes, line->number);
    }
    for (const char *slash = strchr(at, '/'); slash; slash = strchr(slash + 1, '/')) {
        const char *p = slash;
        while (p > at && p[-1] >= '0' && p[-1] <= '9')
            p--;
        const char *q = slash + 1;
        if (p < slash && sn_scan_count(&p, &done) && p == slash && sn_scan_count(&q, &of))
            break;
        done = of = 0;
    }
    if (of) {
        sn_fact_set(d, SN_FACT_CACHE_DONE, done, line->number);
        sn_fact_set(d, SN_FACT_CACHE_OF, of, line->number);
    }
    if (sn_scan_has(at, " disk"))
        return; /* a cache of files */
    if (of && done >= of && sn_fact_has(d, SN_FACT_CACHE))
        sn_fact_set(d, SN_FACT_CACHE_FINISHED, sn_fact_value(d, SN_FACT_CACHE), line->number);
    sn_tell_raise(d, of && done >= of ? SN_TELL_CACHE_DONE : SN_TELL_CACHE_PART, line->number,
                  line->text);
}

/* "8.5GB RAM required to cache images with 50% safety margin but only 5.1/15.6GB available" */
static void read_cache_estimate(snug_diagnosis *d, const sn_line *line, const char *at)
{
    uint64_t bytes;
    if (sn_scan_before(line->text, " RAM required", &bytes))
        sn_fact_set(d, SN_FACT_CACHE, bytes, line->number);
    SN_UNUSED(at);
    sn_tell_raise(d, SN_TELL_CACHE_WARNING, line->number, line->text);
}

/* "Number of workers: 4", "num_workers=8" */
static void read_workers(snug_diagnosis *d, const sn_line *line, const char *at)
{
    uint64_t n;
    const char *p = at + strcspn(at, ":=");
    if (!*p)
        return;
    p += 1 + strspn(p + 1, " :='\"");
    if (!sn_scan_count(&p, &n) || n > 4096)
        return;
    sn_fact_set(d, SN_FACT_WORKERS, n, line->number);
    if (n)
        sn_tell_raise(d, SN_TELL_WORKERS, line->number, line->text);
}

static void read_batch(snug_diagnosis *d, const sn_line *line, const char *at)
{
    uint64_t n;
    const char *p = at + strlen("batch size");
    if (strspn(p, " :='\"|") == 0)
        return;
    p += strspn(p, " :='\"|");
    if (sn_scan_count(&p, &n) && n && n < 1u << 24)
        sn_fact_set(d, SN_FACT_BATCH, n, line->number);
}

/* "# training samples: 26411", "Found 227411 images belonging to 37 classes." */
static void read_samples(snug_diagnosis *d, const sn_line *line, const char *at)
{
    uint64_t n;
    const char *p = at + strcspn(at, "0123456789");
    if (p - at < 32 && sn_scan_count(&p, &n))
        sn_fact_set(d, SN_FACT_SAMPLES, n, line->number);
}

static void read_found(snug_diagnosis *d, const sn_line *line, const char *at)
{
    const char *found = strstr(line->text, "Found ");
    uint64_t n;
    SN_UNUSED(at);
    if (found && sn_scan_count_after(found, "Found", &n))
        sn_fact_set(d, SN_FACT_SAMPLES, n, line->number);
}

/* "Image size: Size(w=300, h=300)" */
static void read_image_size(snug_diagnosis *d, const sn_line *line, const char *at)
{
    uint64_t w, h;
    if (sn_scan_count_after(at, "w=", &w) && sn_scan_count_after(at, "h=", &h) && w < 1u << 20 &&
        h < 1u << 20) {
        int64_t dims[2] = {(int64_t)h, (int64_t)w};
        sn_fact_set_shape(d, SN_FACT_IMAGE, dims, 2, line->number);
    }
}

/* "Premature end of JPEG data. Stopped at line 1214/2593" */
static void read_jpeg(snug_diagnosis *d, const sn_line *line, const char *at)
{
    uint64_t row, rows_in_all;
    const char *p = strstr(at, "Stopped at line ");
    if (p) {
        p += strlen("Stopped at line ");
        if (sn_scan_count(&p, &row)) {
            sn_fact_set(d, SN_FACT_JPEG_LINE, row, line->number);
            if (*p == '/') {
                p++;
                if (sn_scan_count(&p, &rows_in_all))
                    sn_fact_set(d, SN_FACT_JPEG_LINES, rows_in_all, line->number);
            }
        }
    }
    sn_tell_raise(d, SN_TELL_JPEG_BAD, line->number, line->text);
}

/* The file's name in quotes, if it has a suffix. */
static void read_bad_file(snug_diagnosis *d, const sn_line *line, const char *at)
{
    for (const char *p = line->text; (p = strpbrk(p, "'\""));) {
        char quote = *p++;
        const char *end = strchr(p, quote);
        if (!end)
            return;
        const char *dot = NULL;
        for (const char *q = p; q < end; q++)
            if (*q == '.')
                dot = q;
        if (dot && end - dot >= 3 && end - dot <= 6 && end - p > 4 && p > at - 64) {
            sn_fact_set_text(d, SN_FACT_BAD_FILE, p, (size_t)(end - p), line->number);
            return;
        }
        p = end + 1;
    }
}

static void read_bad_image(snug_diagnosis *d, const sn_line *line, const char *at)
{
    if (sn_scan_fold(line->text, "warning") || sn_scan_fold(line->text, "skipping") ||
        sn_scan_fold(line->text, "ignoring")) {
        sn_tell_raise(d, SN_TELL_IMAGE_SKIPPED, line->number, line->text);
        return;
    }
    read_bad_file(d, line, at);
    sn_tell_raise(d, SN_TELL_IMAGE_BAD, line->number, line->text);
}

static void read_bad_archive(snug_diagnosis *d, const sn_line *line, const char *at)
{
    read_bad_file(d, line, at);
    sn_tell_raise(d, SN_TELL_ARCHIVE_BAD, line->number, line->text);
}

static void read_bad_record(snug_diagnosis *d, const sn_line *line, const char *at)
{
    SN_UNUSED(at);
    sn_tell_raise(d, SN_TELL_RECORD_BAD, line->number, line->text);
}

/* A whole set in one array: the line of code that a traceback shows, or a program's own words. */
static void read_load_whole(snug_diagnosis *d, const sn_line *line, const char *at)
{
    SN_UNUSED(at);
    sn_tell_raise(d, SN_TELL_LOAD_WHOLE, line->number, line->text);
}

#define NO SN_FRAMEWORK_NONE
static const sn_pattern rows[] = {
    {"Filling up shuffle buffer", NULL, 0, SN_FRAMEWORK_TENSORFLOW, read_shuffle, false},
    {"Shuffle buffer filled", NULL, SN_TELL_SHUFFLE_DONE, SN_FRAMEWORK_TENSORFLOW, NULL, false},
    {"Caching images", NULL, 0, SN_FRAMEWORK_PYTORCH, read_caching, false},
    {"Caching labels and images", NULL, 0, NO, read_caching, false},
    {"RAM required to cache", NULL, 0, NO, read_cache_estimate, false},
    {"caching dataset", NULL, SN_TELL_CACHE_TF, NO, NULL, false},
    {"fully read the dataset being cached", NULL, SN_TELL_CACHE_TF, SN_FRAMEWORK_TENSORFLOW, NULL,
     false},
    {"Number of workers", NULL, 0, NO, read_workers, true},
    {"num_workers", NULL, 0, NO, read_workers, true},
    {"num workers", NULL, 0, NO, read_workers, true},
    {"dataloader workers", NULL, 0, NO, read_workers, true},
    {"--workers", NULL, SN_TELL_WORKERS, NO, NULL, true},
    {"dataloader", NULL, SN_TELL_DATA_QUEUE, NO, NULL, true},
    {"data_loader", NULL, SN_TELL_DATA_QUEUE, NO, NULL, true},
    {"input_reader", NULL, SN_TELL_DATA_QUEUE, NO, NULL, true},
    {"queue_runner", NULL, SN_TELL_DATA_QUEUE, NO, NULL, true},
    {"decode_jpeg", NULL, SN_TELL_DATA_QUEUE, NO, NULL, true},
    {"batch size", NULL, 0, NO, read_batch, true},
    {"batch_size", NULL, 0, NO, read_batch, true},
    {"batch-size", NULL, 0, NO, read_batch, true},
    {"training samples", NULL, 0, NO, read_samples, true},
    {"images belonging to", NULL, 0, NO, read_found, true},
    {"files belonging to", NULL, 0, NO, read_found, true},
    {"Image size", NULL, 0, NO, read_image_size, true},
    {"Premature end of JPEG", NULL, 0, NO, read_jpeg, false},
    {"Corrupt JPEG data", NULL, 0, NO, read_jpeg, false},
    {"Invalid JPEG data", NULL, 0, NO, read_bad_image, false},
    {"Not a JPEG file", NULL, 0, NO, read_bad_image, false},
    {"Unknown image file format", NULL, 0, NO, read_bad_image, false},
    {"got unknown format starting with", NULL, 0, NO, read_bad_image, false},
    {"Trying to decode", "format using a wrong op", 0, NO, read_bad_image, false},
    {"UnidentifiedImageError", NULL, 0, NO, read_bad_image, false},
    {"cannot identify image file", NULL, 0, NO, read_bad_image, false},
    {"image file is truncated", NULL, 0, NO, read_bad_image, false},
    {"Truncated File Read", NULL, 0, NO, read_bad_image, false},
    {"broken data stream when reading image", NULL, 0, NO, read_bad_image, false},
    {"broken PNG file", NULL, 0, NO, read_bad_image, false},
    {"unrecognized data stream contents when reading image", NULL, 0, NO, read_bad_image, false},
    {"Invalid PNG data", NULL, 0, NO, read_bad_image, false},
    {"Invalid PNG header", NULL, 0, NO, read_bad_image, false},
    {"Invalid GIF data", NULL, 0, NO, read_bad_image, false},
    {"libpng error", NULL, 0, NO, read_bad_image, false},
    {"!_src.empty()", NULL, 0, NO, read_bad_image, false},
    {"!ssize.empty()", NULL, 0, NO, read_bad_image, false},
    {"Cannot load image ", NULL, 0, SN_FRAMEWORK_DARKNET, read_bad_image, false},
    {"Couldn't open file: ", NULL, 0, SN_FRAMEWORK_DARKNET, read_bad_image, false},
    {"Input is empty", "decode", 0, NO, read_bad_image, false},
    {"Ignoring corrupted image", NULL, SN_TELL_IMAGE_SKIPPED, NO, NULL, false},
    {"ignoring corrupt image", NULL, SN_TELL_IMAGE_SKIPPED, NO, NULL, false},
    {"DataLossError", NULL, 0, SN_FRAMEWORK_TENSORFLOW, read_bad_record, false},
    {"corrupted record at", NULL, 0, SN_FRAMEWORK_TENSORFLOW, read_bad_record, false},
    {"truncated record at", NULL, 0, SN_FRAMEWORK_TENSORFLOW, read_bad_record, false},
    {"BadZipFile", NULL, 0, NO, read_bad_archive, false},
    {"File is not a zip file", NULL, 0, NO, read_bad_archive, false},
    {"Compressed file ended before", NULL, 0, NO, read_bad_archive, false},
    {"truncated file: eof", NULL, 0, NO, read_bad_archive, false},
    {"pickle data was truncated", NULL, 0, NO, read_bad_archive, false},
    {"unexpected end of data", "tarfile", 0, NO, read_bad_archive, false},
    {"_EmptyArrayError", NULL, 0, NO, read_bad_archive, false},
    {"CRC check failed", NULL, 0, NO, read_bad_archive, false},
    {"not a gzipped file", "rror", 0, NO, read_bad_archive, false},
    {"X_train.astype", NULL, 0, NO, read_load_whole, true},
    {"x_train.astype", NULL, 0, NO, read_load_whole, true},
    {"train_images.astype", NULL, 0, NO, read_load_whole, true},
    {"np.load(", NULL, 0, NO, read_load_whole, true},
    {"np.array(", NULL, 0, NO, read_load_whole, true},
    {"np.stack(", NULL, 0, NO, read_load_whole, true},
    {"np.concatenate(", NULL, 0, NO, read_load_whole, true},
    {"np.vstack(", NULL, 0, NO, read_load_whole, true},
    {"np.zeros(", NULL, 0, NO, read_load_whole, true},
    {"np.asarray(", NULL, 0, NO, read_load_whole, true},
    {"to_categorical(", NULL, 0, NO, read_load_whole, true},
    {"loading all images", NULL, 0, NO, read_load_whole, true},
    {"Loading dataset into memory", NULL, 0, NO, read_load_whole, true},
    {"into memory", NULL, 0, NO, read_load_whole, true},
    {"into RAM", "oad", 0, NO, read_load_whole, true},
};

const sn_pattern *sn_patterns_data(size_t *n)
{
    *n = SN_LEN(rows);
    return rows;
}
