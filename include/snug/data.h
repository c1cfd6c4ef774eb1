/* SPDX-License-Identifier: Apache-2.0
 *
 * data.h - where batches come from. A data source is a struct of functions that any C program can
 * fill; snug_data_open makes one from files: a folder of class folders, images with a CSV of
 * labels, IDX, NPY or a numeric CSV. A data set is a list of names in a temporary file: pixels
 * exist in a bounded ring of batch slots only, so 25 GB cost as much memory as 25 MB.
 *
 *     snug_data_options o = SNUG_DATA_OPTIONS_INIT;  o.height = o.width = 224;
 *     snug_data_open(&data, "photos", &o, &err);
 *     snug_pipe_options p = SNUG_PIPE_OPTIONS_INIT;  p.batch = 32;
 *     snug_data_start(data, &p, &err);
 *     snug_data_source(&source, data, SNUG_SUBSET_TRAIN, &err);
 *     source.reset(source.context, 0, 0, &err);
 *     while (!source.next(source.context, &slot, &err) && slot.n) use(slot.x);
 *     snug_data_free(data);
 *
 * Ownership: snug_data_free ends everything that came from it, its sources included.
 * Threads: a snug_data and its sources are used by one thread at a time; getters may run beside.
 */
#ifndef SNUG_DATA_H
#define SNUG_DATA_H

#include <stddef.h>

#include "snug/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One batch in host memory, NHWC float32, already scaled. The memory belongs to the session, or to
 * the source that lends it (see snug_source.next). */
typedef struct snug_slot {
    float *x;               /* [capacity, sample shape] */
    int32_t *classes;       /* [capacity] class index; NULL for regression and unlabelled data */
    float *y;               /* [capacity, n_targets] regression targets, or NULL */
    uint64_t *positions;    /* [capacity] index in the source's list of each sample; may be NULL */
    int64_t n;              /* samples in this batch; 0 at the end of the epoch */
    int64_t capacity;       /* the batch size */
    int64_t sample_size;    /* floats in a sample of x, set with x; 0: not said. A session refuses
                               samples of another size than its model's */
    int64_t target_size;    /* floats in a sample's y, the same */
    uint64_t next_position; /* what reset takes to go on after this batch: differs from the sum of
                               n by the samples that were skipped */
} snug_slot;

/* A caller's own source, or one of snug_data_source. */
typedef struct snug_source {
    void *context;
    /* required. Fills up to slot->capacity samples and sets n and next_position. n < capacity only
     * in the last batch of an epoch, n = 0 after it. slot->x NULL asks a source of
     * snug_data_source to lend its own slot until the next call of next or reset (no copy); a
     * caller's own source is never asked with NULL. Pointers that are NULL beside a set x are not
     * filled. Any status other than SNUG_OK ends the epoch. */
    snug_status (*next)(void *context, snug_slot *slot, snug_error *err);
    /* required. Begins `epoch` (from 0) at list position first_position: 0, or a next_position
     * of the same epoch of an earlier run, which then goes on exactly. */
    snug_status (*reset)(void *context, uint64_t epoch, uint64_t first_position, snug_error *err);
    /* optional: NULL or 0 means unknown. Samples of an epoch, if none had to be skipped. */
    uint64_t (*size)(void *context);
    /* optional: NULL means nothing to free. */
    void (*free)(void *context);
} snug_source;

typedef enum snug_subset {
    SNUG_SUBSET_TRAIN,
    SNUG_SUBSET_VALIDATION,
    SNUG_SUBSET_TEST,
    SNUG_SUBSET_ALL, /* every sample, in list order */
    SNUG_N_SUBSETS
} snug_subset;

/* How the numbers 0..255 of a pixel become floats, each as Keras computes it in float32. */
typedef enum snug_scale {
    SNUG_SCALE_AUTO,     /* 0..1 for 8-bit pixels; floats are fed as they are */
    SNUG_SCALE_0_1,      /* x / 255.0f */
    SNUG_SCALE_MINUS1_1, /* x / 127.5f - 1 */
    SNUG_SCALE_0_255,    /* x */
    SNUG_SCALE_CAFFE,    /* BGR, each channel less ImageNet's mean */
    SNUG_SCALE_TORCH,    /* x / 255, less ImageNet's mean, by its standard deviation */
    SNUG_N_SCALES
} snug_scale;

typedef enum snug_resize {
    SNUG_RESIZE_BILINEAR,  /* tf.image.resize: half-pixel centres, two taps, bit for bit */
    SNUG_RESIZE_ANTIALIAS, /* triangle filter as wide as the reduction (antialias=True) */
    SNUG_N_RESIZES
} snug_resize;

typedef enum snug_fit {
    SNUG_FIT_STRETCH, /* the aspect ratio gives way */
    SNUG_FIT_CROP,    /* centre crop to the target's aspect ratio, then resize */
    SNUG_FIT_PAD,     /* resize within the target, black around it */
    SNUG_N_FITS
} snug_fit;

typedef enum snug_bad_files {
    SNUG_BAD_FILES_SKIP, /* named, counted, its place taken by the next good one */
    SNUG_BAD_FILES_STOP, /* the first one is an error */
    SNUG_N_BAD_FILES
} snug_bad_files;

/* Random changes of training images, drawn from (seed, epoch, list index). All 0: none. */
typedef struct snug_augment {
    int hflip, vflip;     /* mirrored with probability 1/2 */
    float rotate_degrees; /* uniform in [-d, d] */
    float shift;          /* each axis, uniform in [-f, f] of its size */
    float zoom;           /* factor uniform in [1-f, 1+f], both axes alike; below 1 */
    float brightness;     /* factor uniform in [1-f, 1+f] */
    float contrast;       /* factor about the image's mean, uniform in [1-f, 1+f] */
} snug_augment;

typedef struct snug_data_options {
    size_t struct_size;       /* set by INIT */
    int64_t height, width;    /* of a sample; 0: images 224, arrays their own. Features: ignored */
    int64_t channels;         /* 1 or 3; 0: images 3, arrays their own */
    snug_scale scale;         /* AUTO */
    snug_resize resize;       /* BILINEAR */
    snug_fit fit;             /* STRETCH */
    int exif;                 /* 1: honour the orientation tag of JPEG files; 0: as stored */
    int fast_decode;          /* 1: JPEG scaled down while decoding where the image stays larger
                                 than the sample; changes pixels */
    snug_bad_files bad_files; /* SKIP */
    uint64_t seed;            /* of the split, the order and the augmentation; 0 */
    int no_shuffle;           /* 1: training in list order; 0: a new order every epoch */
    double validation_split;  /* fraction of the training samples held out, [0, 1); 0: none. Kept
                                 for all epochs; ignored where DATA brings validation samples */
    const char *validation_path; /* DATA of its own for validation; NULL: none */
    const char *labels_path;  /* .npy beside a .npy, or CSV `file,label` for a folder; NULL: none */
    const char *label_column; /* of a CSV, by name; NULL: a labels CSV's second column */
    const char *class_names_path; /* text file, one a line, for data that has numbers only; NULL:
                                     classes.txt beside DATA if present, else the numbers */
    int lenient;                  /* 1: no classes, one class or no sample at all is no error (scan,
                                     predict) */
    uint64_t decode_bytes; /* bound for decoding one large image (progressive JPEG and interlaced
                              PNG need all of it at once); 0: 40 MiB, what 12 million pixels take */
    snug_augment augment;  /* none */
} snug_data_options;

#define SNUG_DATA_OPTIONS_INIT                                                                     \
    {                                                                                              \
        .struct_size = sizeof(snug_data_options)                                                   \
    }

typedef struct snug_data snug_data;

/* Opens DATA: lists names (external sort, at most 4 MiB of memory) and checks headers; reads no
 * pixels. path: a folder of class folders (natural order; train / val / test folders are a split),
 * a folder or a glob with options->labels_path, an IDX images file (labels and the t10k set are
 * found beside), a .npy, a .csv. options NULL: all defaults.
 * SNUG_E_NOT_FOUND, SNUG_E_INPUT, SNUG_E_UNSUPPORTED, SNUG_E_USAGE, SNUG_E_IO, SNUG_E_MEMORY. */
SNUG_API snug_status snug_data_open(snug_data **out, const char *path,
                                    const snug_data_options *options, snug_error *err);
/* Unlabelled images: files as they come, folders walked in natural order. For prediction. */
SNUG_API snug_status snug_data_open_files(snug_data **out, const char *const *paths, size_t n_paths,
                                          const snug_data_options *options, snug_error *err);

/* [H,W,C] or [F]; the rank is 3 or 1. Borrowed. */
SNUG_API const int64_t *snug_data_sample_shape(const snug_data *data, int *rank);
/* Number of classes; 0 for regression and unlabelled data. */
SNUG_API size_t snug_data_n_classes(const snug_data *data);
/* Name of class i (any bytes but NUL); NULL out of range. Borrowed. */
SNUG_API const char *snug_data_class_name(const snug_data *data, size_t i);
/* Samples of class i that training may use (train with the part held out of it); 0 out of range. */
SNUG_API uint64_t snug_data_class_count(const snug_data *data, size_t i);
/* 1 if the labels are real numbers. */
SNUG_API int snug_data_is_regression(const snug_data *data);
/* 1 if each sample is a file of its own, which can be bad by itself; 0 for arrays. */
SNUG_API int snug_data_is_files(const snug_data *data);
/* Numbers in a regression label; 0 for classes. */
SNUG_API int64_t snug_data_n_targets(const snug_data *data);
/* Samples in a subset. */
SNUG_API uint64_t snug_data_n(const snug_data *data, snug_subset subset);
/* What the listing met, one complete line each: files ignored by kind, a split recognised, an
 * empty class. NULL out of range. Borrowed. */
SNUG_API size_t snug_data_n_notes(const snug_data *data);
SNUG_API const char *snug_data_note(const snug_data *data, size_t i);
/* The file (or "row 12") behind list index i, relative to DATA, into out (always terminated). */
SNUG_API snug_status snug_data_name(const snug_data *data, uint64_t i, char *out, size_t n,
                                    snug_error *err);
/* What decoding has met so far in a set of image files; arrays give zeros. */
typedef struct snug_data_facts {
    uint64_t n_decoded;             /* images; each time one is decoded counts */
    uint64_t n_jpeg, n_png, n_bmp;  /* by content */
    int64_t min_height, max_height; /* of the files; 0 if n_decoded is 0 */
    int64_t min_width, max_width;
    uint64_t n_smaller;               /* smaller than the sample in height or width */
    uint64_t n_landscape, n_portrait; /* wider than high, higher than wide */
    uint64_t n_gray;                  /* one channel, or two with alpha */
    uint64_t n_turned;                /* EXIF says turned (looked for if lenient or exif) */
    uint64_t n_damaged;               /* decoded in spite of damage that libjpeg or libpng met */
} snug_data_facts;
SNUG_API void snug_data_facts_now(const snug_data *data, snug_data_facts *out);
/* The scale in force (AUTO resolved); SNUG_SCALE_0_255 for data that is fed as it is. */
SNUG_API snug_scale snug_data_scale(const snug_data *data);

/* The running of it: a ring of batch slots, filled by data threads. */
typedef struct snug_pipe_options {
    size_t struct_size; /* set by INIT */
    int64_t batch;      /* samples in a slot; 0: 32 */
    int n_slots;        /* in the ring, the one lent out included; 0: 3, and 1 without threads */
    int data_threads;   /* 0: as many as keep the consumer fed, adjusted while running; 1: none of
                           ours, next() decodes in its caller's thread; N: N threads */
    void *memory;       /* n_slots * snug_data_slot_bytes(), 64-byte aligned, the session's; NULL:
                           allocated here */
    uint64_t memory_bytes; /* of memory */
} snug_pipe_options;

#define SNUG_PIPE_OPTIONS_INIT                                                                     \
    {                                                                                              \
        .struct_size = sizeof(snug_pipe_options)                                                   \
    }

/* Bytes of one slot of `batch` samples (x at its start, labels and positions behind), a multiple of
 * 64; 0 if batch is not in 1..2^31 or the product is absurd. */
SNUG_API uint64_t snug_data_slot_bytes(const snug_data *data, int64_t batch);
/* Upper bound of the host bytes that the pipeline will hold with these options: slots (unless
 * options->memory is set), their bookkeeping, thread stacks, decoding scratch, list. For the plan.
 */
SNUG_API uint64_t snug_data_host_bytes(const snug_data *data, const snug_pipe_options *options);
/* Number of slots that these options give, n_slots 0 resolved. */
SNUG_API int snug_data_n_slots(const snug_pipe_options *options);

/* Makes ring and threads, once for all subsets; called again it replaces them (sources of before
 * are then reset). Nothing is allocated afterwards. SNUG_E_USAGE, SNUG_E_MEMORY, SNUG_E_DEVICE. */
SNUG_API snug_status snug_data_start(snug_data *data, const snug_pipe_options *options,
                                     snug_error *err);
/* Fills *out with the source of a subset; its context lives in data. The subsets share the ring:
 * one epoch runs at a time, reset of one source ends the epoch of another. The order of an epoch,
 * its pixels and its batches do not depend on the number of threads or slots.
 * next() returns SNUG_E_INPUT if more than a tenth of the files fail (once 100 were seen or the
 * epoch ended). SNUG_E_USAGE before snug_data_start. */
SNUG_API snug_status snug_data_source(snug_source *out, snug_data *data, snug_subset subset,
                                      snug_error *err);
/* Ends the threads and gives back the ring; snug_data_start makes them anew. */
SNUG_API void snug_data_stop(snug_data *data);

/* Files that were skipped so far, each once, in the order in which they were met. */
SNUG_API uint64_t snug_data_n_skipped(const snug_data *data);
/* SNUG_E_USAGE out of range. file and why are always terminated. */
SNUG_API snug_status snug_data_skipped(const snug_data *data, uint64_t i, char *file, size_t n_file,
                                       char *why, size_t n_why, snug_error *err);
/* Share of the time between calls of next, since the last reset, that the caller waited for data.
 */
SNUG_API double snug_data_wait_fraction(const snug_data *data);
/* Data threads at work now; 0 if none is ours. */
SNUG_API int snug_data_threads(const snug_data *data);

typedef struct snug_export_options {
    size_t struct_size; /* set by INIT */
    const char *path; /* .npy to write, [N, sample shape] in list order; NULL: decode only (scan) */
    int as_uint8;     /* 1: rounded and cut to 0..255; 0: float32 */
    /* optional: after each batch, samples done of how many; not 0 stops (SNUG_E_INTERRUPTED). */
    int (*progress)(void *context, uint64_t done, uint64_t total);
    void *context;
} snug_export_options;
#define SNUG_EXPORT_OPTIONS_INIT                                                                   \
    {                                                                                              \
        .struct_size = sizeof(snug_export_options)                                                 \
    }
/* Runs once over SNUG_SUBSET_ALL of a started data set and writes what comes; *n samples came
 * (skipped ones are in snug_data_skipped). SNUG_E_USAGE, SNUG_E_IO, and whatever next returns. */
SNUG_API snug_status snug_data_export(snug_data *data, const snug_export_options *options,
                                      uint64_t *n, snug_error *err);
/* x [shape[0], ..., shape[rank - 1]] as a float32 .npy; the old file or the new one, never half.
 * SNUG_E_IO, SNUG_E_USAGE for a rank that is not in 1..8. */
SNUG_API snug_status snug_npy_write(const char *path, const float *x, int rank,
                                    const int64_t *shape, snug_error *err);

/* NULL-safe. */
SNUG_API void snug_data_free(snug_data *data);

/* "0..1", "-1..1", "0..255", "caffe", "torch", "auto" and back; false (0) if unknown. */
SNUG_API const char *snug_scale_name(snug_scale scale);
SNUG_API int snug_scale_parse(snug_scale *out, const char *text);
/* "hflip,vflip,rotate=10,shift=0.1,zoom=0.2,brightness=0.2,contrast=0.2". SNUG_E_USAGE. */
SNUG_API snug_status snug_augment_parse(snug_augment *out, const char *text, snug_error *err);

#ifdef __cplusplus
}
#endif
#endif
