/* SPDX-License-Identifier: Apache-2.0
 *
 * Subsets, orders, skipped samples and the public functions of an opened data set.
 *
 * Validation samples are a keyed choice that is even over the list: the train part is cut into as
 * many runs as there are validation samples, and each run gives one of its samples, drawn from
 * (seed, run). The list being sorted by class, every class gives its share; nothing is stored, and
 * both directions are arithmetic.
 */
#include "data/data.h"

#include <math.h>
#include <unistd.h>

#include "base/io.h"
#include "base/rng.h"
#include "data/augment.h"
#include "data/image.h"
#include "data/pipe.h"

#define SPLIT_KEY UINT64_C(0x73706c6974000000)
#define ORDER_KEY UINT64_C(0x6f72646572000000)

/* --- options -----------------------------------------------------------------------------------*/

static bool in_range(float value, float top)
{
    return value >= 0 && value <= top;
}

static snug_status check_values(const snug_data_options *o, snug_error *err)
{
    const snug_augment *a = &o->augment;

    if (o->height < 0 || o->width < 0 || o->height > 65535 || o->width > 65535 ||
        o->height * o->width > INT64_C(1) << 28)
        return sn_fail(err, SNUG_E_USAGE,
                       "an image size of %" PRId64 "x%" PRId64 " is out of range (1 to 65535)",
                       o->height, o->width);
    if (o->channels != 0 && o->channels != 1 && o->channels != 3)
        return sn_fail(err, SNUG_E_USAGE, "images have 1 or 3 channels, not %" PRId64, o->channels);
    if ((unsigned)o->scale >= SNUG_N_SCALES || (unsigned)o->resize >= SNUG_N_RESIZES ||
        (unsigned)o->fit >= SNUG_N_FITS || (unsigned)o->bad_files >= SNUG_N_BAD_FILES)
        return sn_fail(err, SNUG_E_USAGE, "scale, resize, fit or bad_files has no known value");
    if (!(o->validation_split >= 0 && o->validation_split < 1))
        return sn_fail(err, SNUG_E_USAGE, "a validation split of %g is not in 0..1",
                       o->validation_split);
    if (!in_range(a->rotate_degrees, 360) || !in_range(a->shift, 1) || !in_range(a->zoom, 0.99f) ||
        !in_range(a->brightness, 1) || !in_range(a->contrast, 1))
        return sn_fail(err, SNUG_E_USAGE, "an augmentation's strength is out of range");
    return SNUG_OK;
}

snug_status sn_data_options_check(snug_data_options *out, const snug_data_options *options,
                                  snug_error *err)
{
    *out = (snug_data_options)SNUG_DATA_OPTIONS_INIT;
    if (options) {
        if (options->struct_size < sizeof(size_t))
            return sn_fail(err, SNUG_E_USAGE, "the data options were not initialised");
        memcpy(out, options, SN_MIN(options->struct_size, sizeof *out));
        out->struct_size = sizeof *out;
    }
    if (!out->decode_bytes)
        out->decode_bytes = 40 * SN_MIB;
    return check_values(out, err);
}

snug_status sn_data_new(snug_data **out, const sn_set *set, const snug_data_options *options,
                        snug_error *err)
{
    snug_data *data = sn_alloc(SN_TAG_DATA, sizeof *data);

    *out = NULL;
    if (!data)
        return sn_fail(err, SNUG_E_MEMORY, "no memory for a data set");
    data->options = *options;
    data->options.validation_path = data->options.labels_path = NULL;
    data->options.label_column = data->options.class_names_path = NULL;
    data->set = *set;
    data->set.scale = set->top == 0                       ? SNUG_SCALE_0_255
                      : options->scale == SNUG_SCALE_AUTO ? SNUG_SCALE_0_1
                                                          : options->scale;
    data->skipped_fd = data->seen_fd = -1;
    uint64_t n = set->n[SNUG_SUBSET_TRAIN];
    if (options->validation_split > 0 && set->n[SNUG_SUBSET_VALIDATION] == 0 && n > 1) {
        double held = round(options->validation_split * (double)n);
        data->n_held_out = held < 1 ? 1 : SN_MIN((uint64_t)held, n - 1);
    }
    for (int i = 0; i < SNUG_N_SUBSETS; i++)
        data->contexts[i] = (struct sn_data_context){data, (snug_subset)i};
    *out = data;
    return SNUG_OK;
}

/* --- subsets and orders ------------------------------------------------------------------------*/

__extension__ typedef unsigned __int128 wide;

/* Where run v of the held-out choice begins. */
static uint64_t run_begin(const snug_data *data, uint64_t v)
{
    return (uint64_t)((wide)v * data->set.n[SNUG_SUBSET_TRAIN] / data->n_held_out);
}

/* The sample of run v that is held out. */
static uint64_t held_out(const snug_data *data, uint64_t v)
{
    uint64_t begin = run_begin(data, v), end = run_begin(data, v + 1);
    uint32_t r[4];

    sn_philox(r, sn_mix_u64(data->options.seed, SPLIT_KEY), v, 0);
    return begin + ((uint64_t)r[0] << 32 | r[1]) % (end - begin);
}

/* The t-th sample that is not held out: in the last run that has t or fewer before it. */
static uint64_t not_held_out(const snug_data *data, uint64_t t)
{
    uint64_t low = 0, high = data->n_held_out;

    while (high - low > 1) {
        uint64_t mid = low + (high - low) / 2;
        if (run_begin(data, mid) - mid <= t)
            low = mid;
        else
            high = mid;
    }
    uint64_t i = run_begin(data, low) + (t - (run_begin(data, low) - low));
    return i + (i >= held_out(data, low));
}

uint64_t snug_data_n(const snug_data *data, snug_subset subset)
{
    const uint64_t *n = data->set.n;

    switch (subset) {
    case SNUG_SUBSET_TRAIN:
        return n[0] - data->n_held_out;
    case SNUG_SUBSET_VALIDATION:
        return data->n_held_out ? data->n_held_out : n[1];
    case SNUG_SUBSET_TEST:
        return n[2];
    case SNUG_SUBSET_ALL:
        return n[0] + n[1] + n[2];
    default:
        return 0;
    }
}

uint64_t sn_data_index(const snug_data *data, snug_subset subset, uint64_t epoch, uint64_t position)
{
    const sn_set *set = &data->set;

    if (subset == SNUG_SUBSET_ALL)
        return position;
    if (subset == SNUG_SUBSET_TRAIN && !data->options.no_shuffle)
        position = sn_permute(position, snug_data_n(data, subset),
                              sn_mix_u64(sn_mix_u64(data->options.seed, ORDER_KEY), epoch));
    if (!data->n_held_out || subset == SNUG_SUBSET_TEST)
        return set->begin[subset] + position;
    return set->begin[SNUG_SUBSET_TRAIN] +
           (subset == SNUG_SUBSET_TRAIN ? not_held_out(data, position) : held_out(data, position));
}

/* --- getters -----------------------------------------------------------------------------------*/

const int64_t *snug_data_sample_shape(const snug_data *data, int *rank)
{
    if (rank)
        *rank = data->set.rank;
    return data->set.shape;
}

size_t snug_data_n_classes(const snug_data *data)
{
    return data->set.n_classes;
}

const char *snug_data_class_name(const snug_data *data, size_t i)
{
    return i < data->set.n_classes ? data->set.classes[i] : NULL;
}

uint64_t snug_data_class_count(const snug_data *data, size_t i)
{
    return i < data->set.n_classes ? data->set.class_counts[i] : 0;
}

int snug_data_is_regression(const snug_data *data)
{
    return data->set.n_targets > 0;
}

int snug_data_is_files(const snug_data *data)
{
    return data->set.can_fail;
}

int64_t snug_data_n_targets(const snug_data *data)
{
    return data->set.n_targets;
}

size_t snug_data_n_notes(const snug_data *data)
{
    return data->set.n_notes;
}

const char *snug_data_note(const snug_data *data, size_t i)
{
    return i < data->set.n_notes ? data->set.notes[i] : NULL;
}

void snug_data_facts_now(const snug_data *data, snug_data_facts *out)
{
    memset(out, 0, sizeof *out);
    if (data->set.ops->facts)
        data->set.ops->facts(data->set.self, out);
}

snug_scale snug_data_scale(const snug_data *data)
{
    return data->set.scale;
}

snug_status snug_data_name(const snug_data *data, uint64_t i, char *out, size_t n, snug_error *err)
{
    if (i >= snug_data_n(data, SNUG_SUBSET_ALL))
        return sn_fail(err, SNUG_E_USAGE, "there is no sample %" PRIu64, i);
    return data->set.ops->name(data->set.self, i, out, n, err);
}

/* --- skipped samples ---------------------------------------------------------------------------*/

typedef struct skip_record {
    uint64_t index;
    char why[SN_DATA_WHY];
} skip_record;

/* Sets sample i's bit; *was: its value before. Bytes beyond the file's end count as 0. */
static snug_status mark_seen(snug_data *data, uint64_t i, bool *was, snug_error *err)
{
    uint8_t byte = 0;
    ssize_t got = pread(data->seen_fd, &byte, 1, (off_t)(i / 8));
    uint8_t bit = (uint8_t)(1u << (i % 8));

    *was = got == 1 && (byte & bit);
    if (*was)
        return SNUG_OK;
    byte = (uint8_t)((got == 1 ? byte : 0) | bit);
    return sn_io_pwrite(data->seen_fd, &byte, 1, i / 8, "the temporary list of skipped files", err);
}

snug_status sn_data_skip(snug_data *data, uint64_t i, const char *why, bool *first, snug_error *err)
{
    skip_record record = {.index = i};
    bool was;
    snug_status status = SNUG_OK;

    *first = false;
    if (data->seen_fd < 0)
        status = sn_io_temporary(&data->seen_fd, err);
    if (!status && data->skipped_fd < 0)
        status = sn_io_temporary(&data->skipped_fd, err);
    if (!status)
        status = mark_seen(data, i, &was, err);
    if (status || was)
        return status;
    snprintf(record.why, sizeof record.why, "%s", why);
    uint64_t n = __atomic_load_n(&data->n_skipped, __ATOMIC_RELAXED);
    status = sn_io_pwrite(data->skipped_fd, &record, sizeof record, n * sizeof record,
                          "the temporary list of skipped files", err);
    if (status)
        return status;
    *first = true;
    __atomic_store_n(&data->n_skipped, n + 1, __ATOMIC_RELEASE);
    return SNUG_OK;
}

uint64_t snug_data_n_skipped(const snug_data *data)
{
    return __atomic_load_n(&data->n_skipped, __ATOMIC_ACQUIRE);
}

snug_status snug_data_skipped(const snug_data *data, uint64_t i, char *file, size_t n_file,
                              char *why, size_t n_why, snug_error *err)
{
    skip_record record;

    if (n_file)
        file[0] = '\0';
    if (n_why)
        why[0] = '\0';
    if (i >= snug_data_n_skipped(data))
        return sn_fail(err, SNUG_E_USAGE, "there is no skipped file %" PRIu64, i);
    snug_status status = sn_io_pread(data->skipped_fd, &record, sizeof record, i * sizeof record,
                                     "the temporary list of skipped files", err);
    if (status)
        return status;
    snprintf(why, n_why, "%s", record.why);
    return snug_data_name(data, record.index, file, n_file, err);
}

/* --- running -----------------------------------------------------------------------------------*/

static snug_status source_next(void *context, snug_slot *slot, snug_error *err)
{
    struct sn_data_context *c = context;

    return sn_pipe_next(c->data->pipe, c->subset, slot, err);
}

static snug_status source_reset(void *context, uint64_t epoch, uint64_t first_position,
                                snug_error *err)
{
    struct sn_data_context *c = context;

    return sn_pipe_reset(c->data->pipe, c->subset, epoch, first_position, err);
}

static uint64_t source_size(void *context)
{
    struct sn_data_context *c = context;

    return snug_data_n(c->data, c->subset);
}

snug_status snug_data_start(snug_data *data, const snug_pipe_options *options, snug_error *err)
{
    snug_data_stop(data);
    return sn_pipe_new(&data->pipe, data, options, err);
}

snug_status snug_data_source(snug_source *out, snug_data *data, snug_subset subset, snug_error *err)
{
    memset(out, 0, sizeof *out);
    if (!data->pipe)
        return sn_fail(err, SNUG_E_USAGE, "snug_data_start comes before snug_data_source");
    if ((unsigned)subset >= SNUG_N_SUBSETS)
        return sn_fail(err, SNUG_E_USAGE, "there is no subset %d", (int)subset);
    *out = (snug_source){&data->contexts[subset], source_next, source_reset, source_size, NULL};
    return SNUG_OK;
}

void snug_data_stop(snug_data *data)
{
    if (data)
        sn_pipe_free(data->pipe);
    if (data)
        data->pipe = NULL;
}

double snug_data_wait_fraction(const snug_data *data)
{
    return data->pipe ? sn_pipe_wait_fraction(data->pipe) : 0;
}

int snug_data_threads(const snug_data *data)
{
    return data->pipe ? sn_pipe_threads(data->pipe) : 0;
}

snug_status sn_data_check_sizes(int64_t sample, int64_t model_sample, int64_t targets,
                                int64_t model_targets, snug_error *err)
{
    if (sample && model_sample && sample != model_sample)
        return sn_fail(err, SNUG_E_INPUT,
                       "the data's samples have %" PRId64 " numbers, the model takes %" PRId64,
                       sample, model_sample);
    if (targets && model_targets && targets != model_targets)
        return sn_fail(err, SNUG_E_INPUT,
                       "the data have %" PRId64 " targets a sample, the model has %" PRId64
                       " outputs",
                       targets, model_targets);
    return SNUG_OK;
}

void snug_data_free(snug_data *data)
{
    if (!data)
        return;
    snug_data_stop(data);
    data->set.ops->free(data->set.self);
    if (data->skipped_fd >= 0)
        close(data->skipped_fd);
    if (data->seen_fd >= 0)
        close(data->seen_fd);
    sn_free(data);
}
