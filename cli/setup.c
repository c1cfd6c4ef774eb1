/* SPDX-License-Identifier: Apache-2.0
 *
 * setup.c - from a command line to data, model and plan.
 */
#include "setup.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

/* ---- numbers from text ---- */

static bool whole(const char *text, int64_t low, int64_t high, int64_t *out)
{
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (errno || end == text || *end || isspace((unsigned char)*text) || value < low ||
        value > high)
        return false;
    *out = value;
    return true;
}

static bool real(const char *text, double low, double high, double *out)
{
    char *end;
    errno = 0;
    double value = strtod(text, &end);
    if (errno || end == text || *end || isspace((unsigned char)*text) || !(value >= low) ||
        !(value <= high))
        return false;
    *out = value;
    return true;
}

/* "1500M", "2GiB", "2048MB": all binary. */
static bool size_bytes(const char *text, uint64_t *out)
{
    static const char units[] = "KMGT";
    char *end;
    double value = strtod(text, &end);
    if (end == text || !(value > 0) || isspace((unsigned char)*text))
        return false;
    double factor = 1;
    const char *unit = *end ? strchr(units, toupper((unsigned char)*end)) : NULL;
    if (unit) {
        factor = pow(1024, (double)(unit - units + 1));
        end++;
        if (!strcasecmp(end, "B") || !strcasecmp(end, "iB"))
            end += strlen(end);
    } else if (!strcasecmp(end, "B")) {
        end++;
    }
    if (*end || value * factor >= 9e18)
        return false;
    *out = (uint64_t)(value * factor);
    return true;
}

static int number(const sn_cli_setup *setup, const char *name, const char *text, double low,
                  double high, float *out)
{
    double value;
    if (!text)
        return 0;
    if (!real(text, low, high, &value))
        return sn_cli_usage(setup->args->verb_name, "--%s %s is not a number in %g..%g", name, text,
                            low, high);
    *out = (float)value;
    return 0;
}

static int count(const sn_cli_setup *setup, const char *name, const char *text, int64_t low,
                 int64_t high, int64_t *out)
{
    if (text && !whole(text, low, high, out))
        return sn_cli_usage(setup->args->verb_name, "--%s %s is not a whole number in %lld..%lld",
                            name, text, (long long)low, (long long)high);
    return 0;
}

/* ---- options ---- */

static int read_size(sn_cli_setup *setup)
{
    const char *text = setup->args->size;
    if (!text)
        return 0;
    char first[24] = "";
    size_t n = strcspn(text, "xX");
    snprintf(first, sizeof first, "%.*s", (int)n, text);
    const char *second = text[n] ? text + n + 1 : first;
    if (!whole(first, 1, 16384, &setup->height) || !whole(second, 1, 16384, &setup->width))
        return sn_cli_usage(setup->args->verb_name,
                            "--size %s is neither N nor HEIGHTxWIDTH with 1 to 16384 pixels", text);
    return 0;
}

static int read_optimizer(sn_cli_setup *setup)
{
    const sn_cli_args *a = setup->args;
    snug_error err = SNUG_ERROR_INIT;
    snug_optimizer *o = &setup->optimizer;
    if (snug_optimizer_parse(o, a->optimizer ? a->optimizer : "sgd:momentum=0.9", &err))
        return sn_cli_fail(&err);
    int rc = number(setup, "lr", a->lr, 1e-12, 1e6, &o->lr);
    rc = rc ? rc : number(setup, "weight-decay", a->weight_decay, 0, 1e6, &o->weight_decay);
    rc = rc ? rc : number(setup, "clip-norm", a->clip_norm, 1e-12, 1e12, &o->clip_norm);
    rc = rc ? rc
            : number(setup, "clip-global-norm", a->clip_global_norm, 1e-12, 1e12,
                     &o->clip_global_norm);
    rc = rc ? rc : number(setup, "clip-value", a->clip_value, 1e-12, 1e12, &o->clip_value);
    if (rc)
        return rc;
    if (snug_schedule_parse(&setup->schedule,
                            a->lr_schedule ? a->lr_schedule : "cosine:warmup=0.05", &err))
        return sn_cli_fail(&err);
    return 0;
}

static int read_loss(sn_cli_setup *setup)
{
    static const char *const names[] = {"auto", "softmax", "sigmoid", "mse", "mae", "huber"};
    const char *text = setup->args->loss ? setup->args->loss : "auto";
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (!strcmp(text, names[i])) {
            setup->loss.kind = (snug_loss_kind)i;
            return number(setup, "label-smoothing", setup->args->label_smoothing, 0, .999,
                          &setup->loss.smoothing);
        }
    }
    return sn_cli_usage(setup->args->verb_name,
                        "--loss %s is none of auto, softmax, sigmoid, mse, mae, huber", text);
}

static int read_pixels(sn_cli_setup *setup)
{
    static const char *const resizes[] = {"bilinear", "antialias"};
    static const char *const fits[] = {"stretch", "crop", "pad"};
    static const char *const bad[] = {"skip", "stop"};
    const sn_cli_args *a = setup->args;
    snug_data_options *o = &setup->data_options;
    snug_error err = SNUG_ERROR_INIT;
    if (a->scale && !snug_scale_parse(&o->scale, a->scale))
        return sn_cli_usage(a->verb_name,
                            "--scale %s is none of auto, 0..1, -1..1, 0..255, caffe, torch",
                            a->scale);
    const struct {
        const char *option, *text, *const *names;
        size_t n;
        int *out;
    } choices[] = {{"resize", a->resize, resizes, 2, (int *)&o->resize},
                   {"fit", a->fit, fits, 3, (int *)&o->fit},
                   {"bad-files", a->bad_files, bad, 2, (int *)&o->bad_files}};
    for (size_t c = 0; c < 3; c++) {
        size_t k = 0;
        if (!choices[c].text)
            continue;
        while (k < choices[c].n && strcmp(choices[c].names[k], choices[c].text))
            k++;
        if (k == choices[c].n)
            return sn_cli_usage(a->verb_name, "--%s %s is not one of %s, %s%s%s", choices[c].option,
                                choices[c].text, choices[c].names[0], choices[c].names[1],
                                choices[c].n > 2 ? ", " : "",
                                choices[c].n > 2 ? choices[c].names[2] : "");
        *choices[c].out = (int)k;
    }
    if (a->augment && snug_augment_parse(&o->augment, a->augment, &err))
        return sn_cli_fail(&err);
    o->exif = a->exif;
    o->fast_decode = a->fast_decode;
    o->no_shuffle = a->no_shuffle;
    o->labels_path = a->labels;
    o->label_column = a->label_column;
    o->class_names_path = a->class_names;
    return 0;
}

static int read_memory(sn_cli_setup *setup)
{
    const char *text = setup->args->memory;
    if (!text)
        return 0;
    size_t n = strlen(text);
    if (n > 1 && text[n - 1] == '%') {
        char bare[24];
        double percent;
        snprintf(bare, sizeof bare, "%.*s", (int)(n - 1), text);
        if (!real(bare, .1, 100, &percent))
            return sn_cli_usage(setup->args->verb_name, "--memory %s is not 0.1%% to 100%%", text);
        double bytes = (double)setup->device.total_bytes * percent / 100;
        setup->budget_bytes = (uint64_t)fmin(bytes, (double)setup->device.free_bytes);
        return 0;
    }
    if (!size_bytes(text, &setup->budget_bytes))
        return sn_cli_usage(setup->args->verb_name,
                            "--memory %s is no size: write 1500M, 2G or 90%%", text);
    if (setup->device.computes && setup->budget_bytes > setup->device.free_bytes) {
        char a[32];
        fprintf(stderr, "note: --memory %s is more than is free now: the budget is %s\n", text,
                sn_cli_bytes(a, sizeof a, setup->device.free_bytes));
        setup->budget_bytes = setup->device.free_bytes;
    }
    return 0;
}

static int read_device(sn_cli_setup *setup)
{
    const sn_cli_args *a = setup->args;
    snug_error err = SNUG_ERROR_INIT;
    int64_t threads = 0;
    int rc = count(setup, "threads", a->threads, 1, 1024, &threads);
    if (rc)
        return rc;
    setup->plan_options.threads = (int)threads;
    snprintf(setup->device_spec, sizeof setup->device_spec, "%s", a->device ? a->device : "cpu");
    if (a->card && snug_card_spec(setup->device_spec, sizeof setup->device_spec, a->card, &err))
        return sn_cli_usage(a->verb_name, "%s", err.what);
    if (snug_device_query(&setup->device, setup->device_spec, (int)threads, &err))
        return sn_cli_fail(&err);
    setup->plan_options.device = setup->device_spec;
    return 0;
}

int sn_cli_setup_begin(sn_cli_setup *setup, const sn_cli_args *args)
{
    memset(setup, 0, sizeof *setup);
    setup->args = args;
    setup->data_options = (snug_data_options)SNUG_DATA_OPTIONS_INIT;
    setup->pipe = (snug_pipe_options)SNUG_PIPE_OPTIONS_INIT;
    setup->plan_options = (snug_plan_options){SNUG_PLAN_DEFAULTS};
    setup->epochs = 10;
    int64_t seed = 1, steps = 0, data_threads = 0;
    int rc = read_device(setup);
    rc = rc ? rc : read_size(setup);
    rc = rc ? rc : read_memory(setup);
    rc = rc ? rc : count(setup, "channels", args->channels, 1, 3, &setup->channels);
    rc = rc ? rc : count(setup, "classes", args->classes, 1, 1000000, &setup->n_classes);
    rc = rc ? rc : count(setup, "epochs", args->epochs, 1, 1000000, &setup->epochs);
    rc = rc ? rc : count(setup, "max-steps", args->max_steps, 1, INT64_MAX, &steps);
    rc = rc ? rc : count(setup, "seed", args->seed, 0, INT64_MAX, &seed);
    if (!rc && args->batch && strcmp(args->batch, "auto"))
        rc = count(setup, "batch", args->batch, 1, 1 << 20, &setup->batch);
    if (!rc && args->data_threads && strcmp(args->data_threads, "auto"))
        rc = count(setup, "data-threads", args->data_threads, 1, 256, &data_threads);
    rc = rc ? rc : read_optimizer(setup);
    rc = rc ? rc : read_loss(setup);
    rc = rc ? rc : read_pixels(setup);
    if (!rc && args->validation_split &&
        !real(args->validation_split, 0, .9, &setup->data_options.validation_split))
        rc = sn_cli_usage(args->verb_name, "--validation-split %s is not a number in 0..0.9",
                          args->validation_split);
    if (!args->validation_split && !args->validation)
        setup->data_options.validation_split = .1;
    setup->data_options.validation_path = args->validation;
    setup->seed = seed ? (uint64_t)seed : 1;
    setup->data_options.seed = setup->seed;
    setup->max_steps = (uint64_t)steps;
    setup->pipe.data_threads = (int)data_threads;
    return rc;
}

/* ---- data ---- */

static const char *model_name(const sn_cli_setup *setup)
{
    return setup->args->model ? setup->args->model : "";
}

static bool is_family(const char *spec, const char *name)
{
    size_t n = strlen(name);
    return !strncmp(spec, name, n) &&
           (!spec[n] || spec[n] == ':' || isdigit((unsigned char)spec[n]));
}

/* What the family was trained with, where --scale says auto. */
static snug_scale family_scale(const char *spec)
{
    if (is_family(spec, "mobilenet") || is_family(spec, "mobilenetv2"))
        return SNUG_SCALE_MINUS1_1;
    if (is_family(spec, "vgg") || is_family(spec, "resnet"))
        return SNUG_SCALE_CAFFE;
    return SNUG_SCALE_AUTO;
}

/* Arrays keep their own size for the models that take any; photographs get the model's. */
bool sn_cli_looks_like_array(const char *path)
{
    size_t n = strlen(path);
    return (n > 4 && (!strcmp(path + n - 4, ".npy") || !strcmp(path + n - 4, ".csv"))) ||
           strstr(path, "ubyte");
}

int sn_cli_setup_data(sn_cli_setup *setup, const char *path)
{
    snug_error err = SNUG_ERROR_INIT;
    snug_data_options *o = &setup->data_options;
    bool array = sn_cli_looks_like_array(path), free_size;
    if (!setup->args->model)
        snprintf(setup->model_spec, sizeof setup->model_spec, array ? "cnn" : "mobilenetv2");
    else
        snprintf(setup->model_spec, sizeof setup->model_spec, "%s", model_name(setup));
    free_size = is_family(setup->model_spec, "cnn") || is_family(setup->model_spec, "mlp");
    if (!setup->height && !(array && free_size))
        setup->height = setup->width = free_size ? 64 : 224;
    o->height = setup->height;
    o->width = setup->width;
    o->channels = setup->channels;
    if (setup->budget_bytes) { /* a small budget leaves little for one huge progressive JPEG */
        uint64_t share = setup->budget_bytes / 16;
        o->decode_bytes = share < 8 << 20 ? 8 << 20 : share < 64 << 20 ? share : 64 << 20;
    }
    if (o->scale == SNUG_SCALE_AUTO)
        o->scale = family_scale(setup->model_spec);
    if (snug_data_open(&setup->data, path, o, &err))
        return sn_cli_fail(&err);
    int rank;
    const int64_t *shape = snug_data_sample_shape(setup->data, &rank);
    setup->is_image = rank == 3;
    setup->height = shape[0];
    setup->width = rank == 3 ? shape[1] : 0;
    setup->channels = rank == 3 ? shape[2] : 0;
    setup->n_classes = snug_data_is_regression(setup->data)
                           ? snug_data_n_targets(setup->data)
                           : (int64_t)snug_data_n_classes(setup->data);
    if (!setup->is_image && !setup->args->model)
        snprintf(setup->model_spec, sizeof setup->model_spec, "mlp");
    if (snug_data_is_regression(setup->data) && setup->loss.kind == SNUG_LOSS_AUTO)
        setup->loss.kind = SNUG_LOSS_MSE;
    if (!setup->args->quiet)
        for (size_t i = 0; i < snug_data_n_notes(setup->data); i++) {
            fputs("note: ", stderr);
            sn_cli_print_safe(stderr, snug_data_note(setup->data, i));
            fputc('\n', stderr);
        }
    setup->plan_options.n_samples = snug_data_n(setup->data, SNUG_SUBSET_TRAIN);
    return 0;
}

int sn_cli_setup_model(sn_cli_setup *setup)
{
    snug_error err = SNUG_ERROR_INIT;
    if (!setup->model_spec[0])
        snprintf(setup->model_spec, sizeof setup->model_spec, "%s",
                 setup->args->model ? setup->args->model : "mobilenetv2");
    if (setup->data && !setup->is_image && !is_family(setup->model_spec, "mlp"))
        return sn_cli_usage(setup->args->verb_name,
                            "the data are rows of %lld numbers, not images: use -m mlp",
                            (long long)setup->height);
    if (setup->data && snug_data_is_regression(setup->data) &&
        !strstr(setup->model_spec, "head=")) {
        size_t n = strlen(setup->model_spec); /* real numbers, not shares of classes */
        snprintf(setup->model_spec + n, sizeof setup->model_spec - n, "%chead=linear",
                 strchr(setup->model_spec, ':') ? ',' : ':');
    }
    bool features = setup->data && !setup->is_image;
    if (snug_model_zoo(&setup->model, setup->model_spec, features ? 1 : setup->height,
                       features ? setup->height : setup->width, features ? 1 : setup->channels,
                       setup->n_classes, &err))
        return sn_cli_fail(&err);
    if (!features) { /* what the model chose where nothing was said */
        int64_t shape[4];
        snug_model_input_shape(setup->model, shape);
        setup->height = shape[0];
        setup->width = shape[1];
        setup->channels = shape[2];
    }
    return 0;
}

/* ---- plan ---- */

static snug_status plan_once(sn_cli_setup *setup, int64_t batch, snug_plan **out, snug_error *err)
{
    snug_plan_options o = setup->plan_options;
    o.batch = batch;
    setup->pipe.batch = batch;
    o.pipeline_bytes = setup->data ? snug_data_host_bytes(setup->data, &setup->pipe) : 0;
    return snug_plan_new(out, setup->model, &o, err);
}

/* The largest power of two up to 32 that fits and is no more than a tenth of the images. */
static snug_status plan_auto(sn_cli_setup *setup, snug_error *err)
{
    uint64_t n = setup->plan_options.n_samples;
    snug_status s = SNUG_OK;
    for (int64_t batch = 32; batch >= 1; batch /= 2) {
        if (batch > 1 && n > 0 && (uint64_t)batch * 10 > n)
            continue;
        snug_plan_free(setup->plan);
        s = plan_once(setup, batch, &setup->plan, err);
        if (s != SNUG_E_DOES_NOT_FIT)
            break;
    }
    return s;
}

int sn_cli_setup_plan(sn_cli_setup *setup, snug_plan_purpose purpose)
{
    snug_error err = SNUG_ERROR_INIT;
    setup->plan_options.purpose = purpose;
    setup->plan_options.optimizer = setup->optimizer;
    setup->plan_options.loss = setup->loss;
    setup->plan_options.memory_bytes = setup->budget_bytes;
    setup->plan_options.sample_weights = setup->args->class_weights != NULL;
    setup->plan_options.keep_activations = setup->args->keep_activations;
    snug_status s =
        setup->batch ? plan_once(setup, setup->batch, &setup->plan, &err) : plan_auto(setup, &err);
    if (s == SNUG_E_DOES_NOT_FIT && setup->plan) {
        setup->does_not_fit = true;
        setup->fit_error = err;
        s = SNUG_OK;
    }
    if (s)
        return sn_cli_fail(&err);
    setup->optimizer = *snug_plan_optimizer(setup->plan);
    setup->step_seconds = snug_plan_numbers(setup->plan)->step_seconds;
    return 0;
}

void sn_cli_setup_end(sn_cli_setup *setup)
{
    snug_plan_free(setup->plan);
    snug_model_free(setup->model);
    snug_data_free(setup->data);
    setup->plan = NULL;
    setup->model = NULL;
    setup->data = NULL;
}
