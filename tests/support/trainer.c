/* SPDX-License-Identifier: Apache-2.0 */
#include "support/trainer.h"

#include <string.h>

#include "backend/torture/torture.h"
#include "base/rng.h"

const char *const trainer_devices[TRAINER_N_DEVICES] = {"cpu", "torture:slab=64MiB,layouts=1"};

snug_status trainer_device(sn_device **out, const char *spec, int threads, snug_error *err)
{
    sn_device_options o = {.n_threads = threads, .seed = 1};
    if (strncmp(spec, "torture:", 8) == 0)
        return sn_backend_torture.open(out, spec + 8, &o, err);
    return sn_device_open(out, spec, &o, err);
}

static snug_status new_slot(trainer *t, const snug_plan_options *o, snug_error *err)
{
    int64_t shape[4], n_x = o->batch, n_y = o->batch;
    int rank = snug_model_input_shape(t->model, shape);
    for (int i = 0; i < rank; i++)
        n_x *= shape[i];
    rank = snug_model_output_shape(t->model, shape);
    for (int i = 0; i < rank; i++)
        n_y *= shape[i];
    t->slot.capacity = o->batch;
    t->slot.x = sn_alloc_array(SN_TAG_TRAIN, (size_t)n_x, sizeof(float));
    t->slot.y = sn_alloc_array(SN_TAG_TRAIN, (size_t)n_y, sizeof(float));
    t->slot.classes = sn_alloc_array(SN_TAG_TRAIN, (size_t)o->batch, sizeof(int32_t));
    return t->slot.x && t->slot.y && t->slot.classes
               ? SNUG_OK
               : sn_fail(err, SNUG_E_MEMORY, "no memory for a batch");
}

snug_status trainer_try(trainer *t, snug_model *model, const char *device,
                        const snug_plan_options *options, const snug_session_options *session,
                        snug_error *err)
{
    memset(t, 0, sizeof *t);
    t->model = model;
    snug_status s = trainer_device(&t->device, device, options->threads, err);
    if (!s)
        s = sn_plan_new(&t->plan, model, options, t->device, err);
    if (!s)
        s = new_slot(t, options, err);
    return s ? s : snug_session_open(&t->session, t->plan, session, err);
}

void trainer_open(trainer *t, snug_model *model, const char *device,
                  const snug_plan_options *options, const snug_session_options *session)
{
    snug_error err = SNUG_ERROR_INIT;
    if (trainer_try(t, model, device, options, session, &err))
        fail_msg("%s: %s: %s", device, err.where, err.what);
}

void trainer_close(trainer *t)
{
    snug_session_free(t->session);
    snug_plan_free(t->plan);
    sn_device_close(t->device);
    snug_model_free(t->model);
    sn_free(t->slot.x);
    sn_free(t->slot.y);
    sn_free(t->slot.classes);
    memset(t, 0, sizeof *t);
}

/* ---- samples --------------------------------------------------------------------------------- */

void toy_sample(const toy *data, uint64_t number, float *x, int32_t *classes, float *y)
{
    uint32_t r[4];
    sn_philox(r, 99, number, UINT64_MAX);
    int64_t class = data->targets ? 0 : (int64_t)(r[0] % (uint32_t)data->classes);
    for (int64_t i = 0; i < data->size; i++) {
        sn_philox(r, 99, number, (uint64_t)i);
        x[i] = sn_uniform_f32(r[0]) - 0.5f;
        if (!data->targets && i / 3 % data->classes == class)
            x[i] += 0.4f;
    }
    for (int64_t k = 0; y && k < data->targets; k++) {
        y[k] = (float)k;
        for (int64_t i = k; i < data->size; i += 1 + data->targets)
            y[k] += 0.5f * x[i];
    }
    for (int64_t k = 0; y && data->one_hot && k < data->classes; k++)
        y[k] = k == class;
    if (classes)
        *classes = (int32_t) class;
}

static int64_t n_y(const toy *data)
{
    return data->targets ? data->targets : data->one_hot ? data->classes : 0;
}

static snug_status next(void *context, snug_slot *slot, snug_error *err)
{
    toy *data = context;
    SN_UNUSED(err);
    for (slot->n = 0; slot->n < slot->capacity && data->at < data->n; slot->n++, data->at++) {
        uint64_t number = (data->at + 7 * data->epoch) % data->n;
        toy_sample(data, number, slot->x + slot->n * data->size,
                   slot->classes ? slot->classes + slot->n : NULL,
                   slot->y ? slot->y + slot->n * n_y(data) : NULL);
    }
    slot->next_position = data->at;
    return SNUG_OK;
}

static snug_status reset(void *context, uint64_t epoch, uint64_t first, snug_error *err)
{
    toy *data = context;
    SN_UNUSED(err);
    data->epoch = epoch;
    data->at = first;
    return SNUG_OK;
}

static uint64_t size(void *context)
{
    const toy *data = context;
    return data->n;
}

snug_source toy_source(toy *data)
{
    return (snug_source){
        .context = data, .next = next, .reset = reset, .size = data->has_size ? size : NULL};
}

/* ---- steps ----------------------------------------------------------------------------------- */

void trainer_feed(trainer *t, const toy *data, uint64_t first, int64_t n)
{
    snug_error err = SNUG_ERROR_INIT;
    snug_slot slot = t->slot;
    slot.n = n;
    for (int64_t i = 0; i < n; i++)
        toy_sample(data, (first + (uint64_t)i) % data->n, slot.x + i * data->size, slot.classes + i,
                   slot.y + i * n_y(data));
    if (data->targets || data->one_hot)
        slot.classes = NULL;
    else
        slot.y = NULL;
    assert_ok(snug_session_feed(t->session, &slot, &err), &err);
}

float trainer_step(trainer *t, const toy *data, uint64_t first, int64_t n)
{
    snug_error err = SNUG_ERROR_INIT;
    float loss = 0;
    trainer_feed(t, data, first, n);
    assert_ok(snug_session_step(t->session, &loss, &err), &err);
    return loss;
}

float *trainer_state(trainer *t, size_t *n)
{
    int n_slots = snug_session_n_slots(t->session);
    snug_weight_info w;
    size_t all = 0;
    for (size_t i = 0; i < snug_model_n_weights(t->model); i++) {
        snug_model_weight(t->model, i, &w);
        all += w.count * (size_t)(1 + (w.trainable ? n_slots : 0));
    }
    float *values = sn_alloc_array(SN_TAG_TRAIN, all, sizeof *values);
    assert_non_null(values);
    *n = all;
    size_t at = 0;
    for (size_t i = 0; i < snug_model_n_weights(t->model); i++) {
        snug_model_weight(t->model, i, &w);
        for (int slot = -1; slot < (w.trainable ? n_slots : 0); slot++, at += w.count)
            assert_int_equal(snug_session_weight(t->session, i, slot, values + at, NULL), SNUG_OK);
    }
    return values;
}

float *trainer_weight(trainer *t, const char *name, int slot, size_t *n)
{
    for (size_t i = 0; i < snug_model_n_weights(t->model); i++) {
        snug_weight_info w;
        snug_model_weight(t->model, i, &w);
        if (sn_str_eq(w.name, name)) {
            float *values = sn_alloc_array(SN_TAG_TRAIN, w.count, sizeof *values);
            assert_non_null(values);
            if (n)
                *n = w.count;
            assert_int_equal(snug_session_weight(t->session, i, slot, values, NULL), SNUG_OK);
            return values;
        }
    }
    fail_msg("no weight '%s'", name);
    return NULL;
}

void trainer_same(const float *a, const float *b, size_t n, const char *what)
{
    for (size_t i = 0; i < n; i++)
        if (memcmp(&a[i], &b[i], sizeof *a) != 0)
            fail_msg("%s: number %zu of %zu: %.9g, %.9g", what, i, n, (double)a[i], (double)b[i]);
}

snug_model *trainer_small(int64_t classes, float dropout)
{
    snug_error err = SNUG_ERROR_INIT;
    snug_model *m;
    assert_ok(snug_model_new(&m, "small", &err), &err);
    snug_tensor x = snug_input(m, 8, 8, 2);
    x = snug_conv2d(m, x,
                    &(snug_conv_options){SNUG_CONV_DEFAULTS, .name = "conv", .filters = 6,
                                         .kernel = {3, 3}, .padding = SNUG_SAME, .no_bias = true});
    x = snug_relu(m, snug_batch_norm(m, x, &(snug_norm_options){SNUG_NORM_DEFAULTS, .name = "bn"}),
                  0, NULL);
    x = snug_flatten(m, snug_max_pool2d(m, x, NULL), NULL);
    x = snug_dense(m, x,
                   &(snug_dense_options){SNUG_DENSE_DEFAULTS, .name = "hidden", .units = 10,
                                         .activation = SNUG_RELU});
    x = snug_dropout(m, x, dropout, NULL, NULL);
    x = snug_dense(m, x,
                   &(snug_dense_options){SNUG_DENSE_DEFAULTS, .name = "out", .units = classes});
    assert_ok(snug_model_finish(m, x, &err), &err);
    return m;
}
