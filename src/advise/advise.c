/* SPDX-License-Identifier: Apache-2.0
 *
 * advise.c - fixes for a plan that does not fit: other settings and models, each really planned on
 * the same device, those that fit kept, the closest to what was asked for first.
 */
#include "advise/advise.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/ledger.h"

enum { MOST_FIXES = 5, N_ADD = 160, N_WHAT = 96, SIZE_STEP = 32, N_FOUND = 32 };

/* How far a fix is from what was asked for; the order of the list. */
typedef enum distance {
    NEAR_BATCH,
    OPTIMIZER,
    NEAR_SIZE,
    FAR_BATCH,
    NARROWER,
    FAR_SIZE,
    OTHER_MODEL,
    TWO_CHANGES,
    MORE_MEMORY
} distance;

typedef struct found {
    distance distance;
    char add[N_ADD], what[N_WHAT];
    uint64_t peak_bytes;
    double slowdown;
    size_t number; /* ties keep their order */
} found;

typedef struct adviser {
    snug_plan *plan;
    const snug_advise_options *o;
    int64_t height, width, channels;
    double seconds_an_image;
    found list[N_FOUND];
    size_t n;
} adviser;

/* What is changed of the original: zero and NULL mean nothing. */
typedef struct change {
    const char *optimizer; /* its text */
    const char *model;     /* zoo text */
    int64_t side;
    int64_t batch;
} change;

/* ---- planning one change --------------------------------------------------------------------- */

static double seconds_an_image(const snug_plan *plan)
{
    const snug_plan_info *info = snug_plan_numbers(plan);
    return info->step_seconds / (double)info->batch;
}

/* *out with its model, which outlives it. NULL when the change makes no sense (an image too small
 * for a model); then SNUG_OK. */
static snug_status try_change(const adviser *a, const change *c, snug_model **model,
                              snug_plan **out, snug_error *err)
{
    snug_error own = SNUG_ERROR_INIT;
    snug_plan_options o = *sn_plan_options(a->plan);
    *model = NULL;
    *out = NULL;
    if (c->optimizer) {
        snug_status s = snug_optimizer_parse(&o.optimizer, c->optimizer, err);
        if (s)
            return s;
    }
    if (c->batch)
        o.batch = c->batch;
    if (c->model || c->side) {
        int64_t h = c->side ? c->side : a->height, w = c->side ? c->side : a->width;
        snug_status s = snug_model_zoo(model, c->model ? c->model : a->o->model, h, w, a->channels,
                                       a->o->classes, &own);
        if (s == SNUG_E_MEMORY)
            return sn_fail(err, s, "no memory for another model");
        if (s)
            return SNUG_OK;
    }
    snug_status s = sn_plan_try(out, *model ? *model : sn_plan_model(a->plan), &o,
                                sn_plan_device(a->plan), true, &own);
    if (s) {
        snug_model_free(*model);
        *model = NULL;
        if (s == SNUG_E_MEMORY || s == SNUG_E_INTERNAL)
            return sn_fail(err, s, "%s", own.what);
    }
    return SNUG_OK;
}

/* "--optimizer sgd -m vgg16:dense=512 -s 128 -b 4" */
static void write_add(char out[N_ADD], const change *c)
{
    size_t n = 0;
    out[0] = '\0';
    if (c->model)
        n += (size_t)snprintf(out + n, N_ADD - n, "-m %s ", c->model);
    if (c->optimizer && n < N_ADD)
        n += (size_t)snprintf(out + n, N_ADD - n, "--optimizer %s ", c->optimizer);
    if (c->side && n < N_ADD)
        n += (size_t)snprintf(out + n, N_ADD - n, "-s %" PRId64 " ", c->side);
    if (c->batch && n < N_ADD)
        n += (size_t)snprintf(out + n, N_ADD - n, "-b %" PRId64 " ", c->batch);
    if (n && n < N_ADD)
        out[n - 1] = '\0';
}

static void keep(adviser *a, distance d, const change *c, const snug_plan *plan, const char *what)
{
    if (a->n == N_FOUND)
        return;
    found *f = &a->list[a->n];
    *f = (found){.distance = d, .peak_bytes = snug_plan_numbers(plan)->peak_bytes, .number = a->n};
    write_add(f->add, c);
    snprintf(f->what, sizeof f->what, "%s", what);
    double seconds = seconds_an_image(plan);
    f->slowdown = a->seconds_an_image > 0 ? seconds / a->seconds_an_image - 1 : 0;
    a->n++;
}

/* Keeps the change if it fits; else, when `with_batch`, the change and the largest batch that it
 * allows. *fits (NULL allowed) tells about the change alone. */
static snug_status consider(adviser *a, distance d, change c, const char *what, bool with_batch,
                            bool *fits, snug_error *err)
{
    snug_model *model;
    snug_plan *plan;
    snug_status s = try_change(a, &c, &model, &plan, err);
    if (fits)
        *fits = false;
    if (s || !plan)
        return s;
    if (snug_plan_numbers(plan)->fits) {
        if (fits)
            *fits = true;
        if (!with_batch)
            keep(a, d, &c, plan, what);
    } else if (with_batch) {
        int64_t batch;
        s = snug_plan_largest_batch(plan, &batch, err);
        if (!s && batch > 0) {
            c.batch = batch;
            s = consider(a, TWO_CHANGES, c, what, false, NULL, err);
        }
    }
    snug_plan_free(plan);
    snug_model_free(model);
    return s;
}

/* ---- what is tried --------------------------------------------------------------------------- */

static snug_status other_batch(adviser *a, snug_error *err)
{
    int64_t batch, asked = snug_plan_numbers(a->plan)->batch;
    snug_status s = snug_plan_largest_batch(a->plan, &batch, err);
    if (s || !batch || batch >= asked)
        return s;
    char what[N_WHAT];
    snprintf(what, sizeof what, "batch %" PRId64 " instead of %" PRId64, batch, asked);
    return consider(a, batch * 2 >= asked ? NEAR_BATCH : FAR_BATCH, (change){.batch = batch}, what,
                    false, NULL, err);
}

static snug_status other_optimizer(adviser *a, bool with_batch, snug_error *err)
{
    const snug_optimizer *o = snug_plan_optimizer(a->plan);
    sn_update_attrs attrs = sn_plan_update_attrs(o);
    int n_slots = sn_update_n_slots(&attrs);
    bool fits = false;
    snug_status s = SNUG_OK;
    if (n_slots >= 2 || (n_slots == 1 && o->kind != SNUG_SGD))
        s = consider(a, OPTIMIZER, (change){.optimizer = "sgd:momentum=0.9"},
                     "another optimizer: 1 number kept for each weight", with_batch, &fits, err);
    if (!s && n_slots >= 1 && !fits)
        s = consider(a, OPTIMIZER, (change){.optimizer = "sgd"},
                     "another optimizer: nothing kept for each weight", with_batch, NULL, err);
    return s;
}

/* The largest smaller image that fits, in steps of 32. */
static snug_status other_size(adviser *a, bool with_batch, snug_error *err)
{
    if (!a->o->model || a->o->size_is_given || a->height != a->width)
        return SNUG_OK;
    int64_t lo = 0, hi = (a->height + SIZE_STEP - 1) / SIZE_STEP; /* in steps; hi does not fit */
    char what[N_WHAT];
    while (hi - lo > 1) {
        int64_t middle = lo + (hi - lo) / 2;
        snug_model *model;
        snug_plan *plan;
        snug_status s = try_change(a, &(change){.side = middle * SIZE_STEP}, &model, &plan, err);
        if (s)
            return s;
        bool fits = plan && snug_plan_numbers(plan)->fits;
        snug_plan_free(plan);
        snug_model_free(model);
        *(fits ? &lo : &hi) = middle;
    }
    if (!lo && !with_batch)
        return SNUG_OK;
    int64_t side = lo ? lo * SIZE_STEP : a->height / 2 / SIZE_STEP * SIZE_STEP;
    if (!side || side >= a->height)
        return SNUG_OK;
    snprintf(what, sizeof what, "images of %" PRId64 "x%" PRId64 " instead of %" PRId64 "x%" PRId64,
             side, side, a->height, a->width);
    return consider(a, side * 10 >= a->height * 7 ? NEAR_SIZE : FAR_SIZE, (change){.side = side},
                    what, with_batch, NULL, err);
}

/* The model's text with one parameter set. */
static void with_parameter(char *out, size_t n, const char *spec, const char *key,
                           const char *value)
{
    size_t base = strcspn(spec, ":"), used;
    const char *rest = spec[base] ? spec + base + 1 : "";
    used = (size_t)snprintf(out, n, "%.*s:%s=%s", (int)base, spec, key, value);
    while (*rest && used < n) {
        size_t length = strcspn(rest, ",");
        if (strncmp(rest, key, strlen(key)) || rest[strlen(key)] != '=')
            used += (size_t)snprintf(out + used, n - used, ",%.*s", (int)length, rest);
        rest += length + (rest[length] == ',');
    }
}

/* The mildest of a parameter's values that fits. */
static snug_status narrower(adviser *a, const char *key, const char *const *values, size_t n,
                            const char *what, bool with_batch, snug_error *err)
{
    if (!a->o->model)
        return SNUG_OK;
    snug_status s = SNUG_OK;
    bool fits = false;
    for (size_t i = 0; i < n && !fits && !s; i++) {
        char spec[N_ADD], text[N_WHAT];
        if (with_batch && i + 1 < n)
            continue; /* the narrowest alone with a smaller batch */
        with_parameter(spec, sizeof spec, a->o->model, key, values[i]);
        snprintf(text, sizeof text, what, values[i]);
        s = consider(a, NARROWER, (change){.model = spec}, text, with_batch, &fits, err);
    }
    return s;
}

static snug_status other_models(adviser *a, bool with_batch, snug_error *err)
{
    static const char *const lean[] = {"mobilenetv2", "mobilenet", "squeezenet",
                                       "mobilenet:width=0.25", "mlp"};
    snug_status s = SNUG_OK;
    size_t before = a->n;
    if (!a->o->model)
        return s;
    size_t base = strcspn(a->o->model, ":");
    for (size_t i = 0; i < SN_LEN(lean) && a->n < before + 2 && !s; i++) {
        if (strcspn(lean[i], ":") == base && !strncmp(a->o->model, lean[i], base))
            continue;
        s = consider(a, OTHER_MODEL, (change){.model = lean[i]}, "a smaller model", with_batch,
                     NULL, err);
    }
    return s;
}

/* What always works: a budget that is large enough for one image. */
static snug_status more_memory(adviser *a, snug_error *err)
{
    snug_model *model;
    snug_plan *plan;
    snug_status s = try_change(a, &(change){.batch = 1}, &model, &plan, err);
    if (s)
        return s;
    const snug_plan_info *info = snug_plan_numbers(plan ? plan : a->plan);
    found *f = &a->list[a->n++];
    *f = (found){.distance = MORE_MEMORY, .peak_bytes = info->peak_bytes};
    snprintf(f->add, sizeof f->add, "%s-M %" PRIu64 "M", plan ? "-b 1 " : "",
             (info->peak_bytes + SN_MIB - 1) / SN_MIB);
    snprintf(f->what, sizeof f->what, "the memory that it takes");
    snug_plan_free(plan);
    return SNUG_OK;
}

static snug_status try_all(adviser *a, bool with_batch, snug_error *err)
{
    static const char *const widths[] = {"0.75", "0.5", "0.35", "0.25"};
    static const char *const denses[] = {"2048", "1024", "512", "256", "128"};
    snug_status s = with_batch ? SNUG_OK : other_batch(a, err);
    if (!s)
        s = other_optimizer(a, with_batch, err);
    if (!s)
        s = other_size(a, with_batch, err);
    if (!s && a->o->model && strstr(a->o->model, "vgg"))
        s = narrower(a, "dense", denses, SN_LEN(denses), "dense layers of %s units", with_batch,
                     err);
    if (!s)
        s = narrower(a, "width", widths, SN_LEN(widths), "%s of the channels", with_batch, err);
    return s ? s : other_models(a, with_batch, err);
}

/* ---- what would not help --------------------------------------------------------------------- */

static uint64_t at_any_batch(const snug_plan *plan)
{
    const snug_plan_info *info = snug_plan_numbers(plan);
    return info->kind_bytes[SNUG_BYTES_WEIGHTS] + info->kind_bytes[SNUG_BYTES_OPTIMIZER];
}

static snug_status useless(adviser *a, snug_error *err)
{
    const snug_plan_info *info = snug_plan_numbers(a->plan);
    char why[160], need[32], always[32];
    snug_model *model;
    snug_plan *other;
    int64_t largest;
    snug_status s = snug_plan_largest_batch(a->plan, &largest, err);
    if (!s && !largest && info->batch > 1 &&
        !(s = try_change(a, &(change){.batch = 1}, &model, &other, err)) && other) {
        snprintf(why, sizeof why, "still takes %s: weights and optimizer state are %s at any batch",
                 sn_format_bytes(need, sizeof need, snug_plan_numbers(other)->peak_bytes),
                 sn_format_bytes(always, sizeof always, at_any_batch(a->plan)));
        s = sn_plan_add_useless(a->plan, "batch 1", why, err);
        snug_plan_free(other);
        snug_model_free(model);
    }
    int64_t half = a->height / 2;
    if (!s && a->o->model && !a->o->size_is_given && half >= SIZE_STEP &&
        !(s = try_change(a, &(change){.side = half}, &model, &other, err)) && other) {
        uint64_t peak = snug_plan_numbers(other)->peak_bytes;
        uint64_t saved = info->peak_bytes > peak ? info->peak_bytes - peak : 0;
        if (saved < info->peak_bytes / 10) {
            snprintf(why, sizeof why, "half the side saves %.0f %% only",
                     100.0 * (double)saved / (double)info->peak_bytes);
            s = sn_plan_add_useless(a->plan, "smaller images", why, err);
        }
        snug_plan_free(other);
        snug_model_free(model);
    }
    uint64_t state = info->kind_bytes[SNUG_BYTES_OPTIMIZER];
    if (!s && state && state < info->peak_bytes / 20) {
        snprintf(why, sizeof why, "its state is %s of %s",
                 sn_format_bytes(always, sizeof always, state),
                 sn_format_bytes(need, sizeof need, info->peak_bytes));
        s = sn_plan_add_useless(a->plan, "another optimizer", why, err);
    }
    return s;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static bool is_before(const found *a, const found *b)
{
    if (a->distance != b->distance)
        return a->distance < b->distance;
    return a->slowdown != b->slowdown ? a->slowdown < b->slowdown : a->number < b->number;
}

static snug_status hand_over(adviser *a, snug_error *err)
{
    snug_status s = SNUG_OK;
    for (size_t i = 1; i < a->n; i++)
        for (size_t k = i; k > 0 && is_before(&a->list[k], &a->list[k - 1]); k--) {
            found swapped = a->list[k];
            a->list[k] = a->list[k - 1];
            a->list[k - 1] = swapped;
        }
    for (size_t i = 0; i < a->n && i < MOST_FIXES && !s; i++) {
        const found *f = &a->list[i];
        sn_plan_fix fix = {f->add, "different", f->what, f->peak_bytes, f->slowdown};
        s = sn_plan_add_fix(a->plan, &fix, err);
    }
    return s;
}

snug_status snug_plan_advise(snug_plan *plan, const snug_advise_options *options, snug_error *err)
{
    static const snug_advise_options defaults = {SNUG_ADVISE_DEFAULTS};
    const snug_plan_info *info = snug_plan_numbers(plan);
    if (options && options->struct_size != sizeof *options)
        return sn_fail(err, SNUG_E_USAGE,
                       "advise options of %zu bytes; begin them with SNUG_ADVISE_DEFAULTS",
                       options->struct_size);
    if (info->fits || snug_plan_n_fixes(plan))
        return SNUG_OK;
    adviser *a = sn_alloc(SN_TAG_ADVISE, sizeof *a);
    if (!a)
        return sn_fail(err, SNUG_E_MEMORY, "no memory for advice");
    a->plan = plan;
    a->o = options ? options : &defaults;
    a->seconds_an_image = seconds_an_image(plan);
    int64_t shape[4] = {0};
    if (snug_model_input_shape(sn_plan_model(plan), shape) == 3) {
        a->height = shape[0];
        a->width = shape[1];
        a->channels = shape[2];
    }
    snug_status s = try_all(a, false, err);
    if (!s && a->n < 2)
        s = try_all(a, true, err);
    if (!s && !a->n)
        s = more_memory(a, err);
    if (!s)
        s = hand_over(a, err);
    if (!s)
        s = useless(a, err);
    sn_free(a);
    return s;
}

char *snug_plan_reason(const snug_plan *plan)
{
    const snug_plan_info *info = snug_plan_numbers(plan);
    const uint64_t *kind = info->kind_bytes;
    char a[32], b[32];
    sn_buf text;
    sn_buf_init(&text, SN_TAG_ADVISE);
    sn_update_attrs attrs = sn_plan_update_attrs(snug_plan_optimizer(plan));
    int n_slots = sn_update_n_slots(&attrs);
    if (info->runtime_bytes > info->arena_peak_bytes)
        sn_buf_printf(&text, "the process and its libraries alone hold %s, the plan's tensors %s",
                      sn_format_bytes(a, sizeof a, info->runtime_bytes + info->host_bytes),
                      sn_format_bytes(b, sizeof b, info->arena_peak_bytes));
    else if (kind[SNUG_BYTES_OPTIMIZER] >= kind[SNUG_BYTES_ACTIVATIONS] && n_slots)
        sn_buf_printf(&text, "%s keeps %d number%s for each of %.1f M weights: %s at any batch",
                      snug_optimizer_name(snug_plan_optimizer(plan)->kind), n_slots,
                      n_slots == 1 ? "" : "s", (double)info->trainable / 1e6,
                      sn_format_bytes(a, sizeof a, kind[SNUG_BYTES_OPTIMIZER]));
    else if (kind[SNUG_BYTES_WEIGHTS] >= kind[SNUG_BYTES_ACTIVATIONS])
        sn_buf_printf(&text, "%.1f M weights take %s at any batch", (double)info->parameters / 1e6,
                      sn_format_bytes(a, sizeof a, kind[SNUG_BYTES_WEIGHTS]));
    else
        sn_buf_printf(
            &text, "activations of %" PRId64 " images take %s, %s each", info->batch,
            sn_format_bytes(a, sizeof a, kind[SNUG_BYTES_ACTIVATIONS]),
            sn_format_bytes(b, sizeof b, kind[SNUG_BYTES_ACTIVATIONS] / (uint64_t)info->batch));
    char *out = sn_buf_take(&text);
    sn_buf_deinit(&text);
    return out;
}
