/* SPDX-License-Identifier: Apache-2.0
 *
 * test_steps.c - what a step does, checked from outside: penalties, clipping, frozen layers, class
 * weights, smoothed and one-hot targets, losses of regression, seeds, and a loss that is no number.
 * A step at rate 1 from no momentum leaves the negative gradient in the momentum: g = -m.
 */
#include "support/trainer.h"

#include <math.h>
#include <string.h>

enum { BATCH = 8, SIZE = 8 * 8 * 2 };

static const snug_optimizer bare = {SNUG_SGD, .lr = 1, .momentum = .9f};

/* A frozen stage, two dense layers with penalties: no BatchNorm, no dropout. */
static snug_model *dense_net(int64_t outputs, float l2)
{
    snug_error err = SNUG_ERROR_INIT;
    snug_model *m;
    assert_ok(snug_model_new(&m, "dense", &err), &err);
    snug_tensor x = snug_input(m, 8, 8, 2);
    x = snug_conv2d(m, x,
                    &(snug_conv_options){SNUG_CONV_DEFAULTS, .name = "conv", .filters = 3,
                                         .kernel = {3, 3}, .strides = {2, 2},
                                         .activation = SNUG_RELU, .l2 = l2});
    x = snug_dense(m, snug_flatten(m, x, NULL),
                   &(snug_dense_options){SNUG_DENSE_DEFAULTS, .name = "hidden", .units = 9,
                                         .activation = SNUG_TANH, .l2 = 2 * l2});
    x = snug_dense(m, x,
                   &(snug_dense_options){SNUG_DENSE_DEFAULTS, .name = "out", .units = outputs});
    assert_ok(snug_model_finish(m, x, &err), &err);
    return m;
}

static void open_net(trainer *t, snug_model *model, const char *device, snug_optimizer optimizer,
                     snug_loss loss)
{
    snug_plan_options o = {SNUG_PLAN_DEFAULTS, .batch = BATCH, .threads = 2, .optimizer = optimizer,
                           .loss = loss};
    trainer_open(t, model, device, &o, NULL);
}

static double sum_of_squares(trainer *t, const char *name, int slot)
{
    size_t n;
    float *w = trainer_weight(t, name, slot, &n);
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)w[i] * (double)w[i];
    sn_free(w);
    return sum;
}

static void near(double a, double b, double most, const char *what)
{
    if (!(fabs(a - b) <= most * (fabs(b) > 1 ? fabs(b) : 1)))
        fail_msg("%s: %.9g, expected %.9g", what, a, b);
}

static const toy four = {.n = 64, .size = SIZE, .classes = 4};

/* ---- penalties and clipping ------------------------------------------------------------------ */

static void l2_is_in_loss_and_gradient(void **state)
{
    static const char *const names[] = {"conv/kernel", "hidden/kernel", "out/kernel",
                                        "hidden/bias"};
    static const float factor[] = {.01f, .02f, 0, 0};
    for (int d = 0; d < TRAINER_N_DEVICES; d++) {
        trainer plain, with;
        open_net(&plain, dense_net(4, 0), trainer_devices[d], bare, (snug_loss){0});
        open_net(&with, dense_net(4, .01f), trainer_devices[d], bare, (snug_loss){0});
        double penalty = .01 * sum_of_squares(&with, "conv/kernel", -1) +
                         .02 * sum_of_squares(&with, "hidden/kernel", -1);
        float *before[4], *g[4], *h[4];
        size_t n[4];
        for (int i = 0; i < 4; i++)
            before[i] = trainer_weight(&with, names[i], -1, &n[i]);
        double a = (double)trainer_step(&plain, &four, 0, BATCH);
        double b = (double)trainer_step(&with, &four, 0, BATCH);
        near(b - a, penalty, 1e-6, "the penalty");
        for (int i = 0; i < 4; i++) {
            g[i] = trainer_weight(&plain, names[i], 0, NULL);
            h[i] = trainer_weight(&with, names[i], 0, NULL);
            for (size_t k = 0; k < n[i]; k++)
                near((double)-h[i][k], (double)(-g[i][k] + factor[i] * 2 * before[i][k]), 1e-6,
                     names[i]);
            sn_free(before[i]), sn_free(g[i]), sn_free(h[i]);
        }
        trainer_close(&plain);
        trainer_close(&with);
    }
}

/* The square of the norm of all momenta, and their largest number. */
static double norm_of_momenta(trainer *t, double *largest)
{
    static const char *const names[] = {"conv/kernel", "conv/bias",  "hidden/kernel",
                                        "hidden/bias", "out/kernel", "out/bias"};
    double sum = 0;
    *largest = 0;
    for (size_t i = 0; i < SN_LEN(names); i++) {
        size_t n;
        float *m = trainer_weight(t, names[i], 0, &n);
        for (size_t k = 0; k < n; k++) {
            sum += (double)m[k] * (double)m[k];
            *largest = fmax(*largest, fabs((double)m[k]));
        }
        sn_free(m);
    }
    return sqrt(sum);
}

/* Keras' global norm is that of the gradients of the whole loss, penalties included. */
static void the_global_norm_has_the_penalties_in_it(void **state)
{
    snug_optimizer clipped = bare;
    clipped.clip_global_norm = .25f;
    for (int d = 0; d < TRAINER_N_DEVICES; d++) {
        trainer whole, cut;
        double largest;
        open_net(&whole, dense_net(4, .1f), trainer_devices[d], bare, (snug_loss){0});
        open_net(&cut, dense_net(4, .1f), trainer_devices[d], clipped, (snug_loss){0});
        float a = trainer_step(&whole, &four, 0, BATCH), b = trainer_step(&cut, &four, 0, BATCH);
        assert_memory_equal(&a, &b, sizeof a);
        double norm = norm_of_momenta(&whole, &largest);
        assert_true(norm > .5); /* there is something to cut */
        near(norm_of_momenta(&cut, &largest), .25, 1e-6, "the norm that is left");
        size_t n;
        float *g = trainer_weight(&whole, "hidden/kernel", 0, &n);
        float *h = trainer_weight(&cut, "hidden/kernel", 0, NULL);
        for (size_t i = 0; i < n; i++)
            near((double)h[i], (double)g[i] * .25 / norm, 1e-6, "a direction");
        sn_free(g), sn_free(h);
        trainer_close(&whole);
        trainer_close(&cut);
    }
}

static void each_norm_and_each_value_are_clipped(void **state)
{
    snug_optimizer by_norm = bare, by_value = bare;
    by_norm.clip_norm = .05f;
    by_value.clip_value = .01f;
    trainer t;
    double largest;
    open_net(&t, dense_net(4, .1f), "cpu", by_norm, (snug_loss){0});
    trainer_step(&t, &four, 0, BATCH);
    near(sqrt(sum_of_squares(&t, "hidden/kernel", 0)), .05, 1e-6, "a norm");
    near(sqrt(sum_of_squares(&t, "conv/kernel", 0)), .05, 1e-6, "a norm");
    trainer_close(&t);
    open_net(&t, dense_net(4, .1f), "cpu", by_value, (snug_loss){0});
    trainer_step(&t, &four, 0, BATCH);
    norm_of_momenta(&t, &largest);
    near(largest, .01, 1e-7, "the largest number");
    trainer_close(&t);
}

/* ---- frozen layers --------------------------------------------------------------------------- */

static void frozen_layers_stay(void **state)
{
    static const char *const still[] = {"conv/kernel", "bn/gamma", "bn/beta", "bn/moving_mean",
                                        "bn/moving_variance"};
    snug_error err = SNUG_ERROR_INIT;
    for (int d = 0; d < TRAINER_N_DEVICES; d++) {
        snug_model *m = trainer_small(4, 0);
        assert_ok(snug_model_set_trainable(m, "conv", false, &err), &err);
        assert_ok(snug_model_set_trainable(m, "bn", false, &err), &err);
        trainer t;
        open_net(&t, m, trainer_devices[d], bare, (snug_loss){0});
        float *before[SN_LEN(still)], *hidden = trainer_weight(&t, "hidden/kernel", -1, NULL);
        size_t n[SN_LEN(still)], n_hidden;
        for (size_t i = 0; i < SN_LEN(still); i++)
            before[i] = trainer_weight(&t, still[i], -1, &n[i]);
        for (uint64_t k = 0; k < 3; k++)
            trainer_step(&t, &four, k * BATCH, BATCH);
        for (size_t i = 0; i < SN_LEN(still); i++) {
            float *after = trainer_weight(&t, still[i], -1, NULL);
            trainer_same(before[i], after, n[i], still[i]);
            sn_free(before[i]), sn_free(after);
        }
        float *after = trainer_weight(&t, "hidden/kernel", -1, &n_hidden);
        assert_memory_not_equal(hidden, after, n_hidden * sizeof *after);
        sn_free(hidden), sn_free(after);
        assert_int_equal(snug_session_weight(t.session, 0, 0, t.slot.x, &err), SNUG_E_NOT_FOUND);
        trainer_close(&t);
    }
}

/* Keras adds the penalties of trainable weights only. */
static void frozen_layers_have_no_penalty(void **state)
{
    snug_error err = SNUG_ERROR_INIT;
    snug_model *m = dense_net(4, .1f);
    assert_ok(snug_model_set_trainable(m, "conv", false, &err), &err);
    trainer plain, with;
    open_net(&plain, dense_net(4, 0), "cpu", bare, (snug_loss){0});
    open_net(&with, m, "cpu", bare, (snug_loss){0});
    double penalty = .2 * sum_of_squares(&with, "hidden/kernel", -1);
    double a = (double)trainer_step(&plain, &four, 0, BATCH);
    near((double)trainer_step(&with, &four, 0, BATCH) - a, penalty, 1e-6, "the penalty");
    trainer_close(&plain);
    trainer_close(&with);
}

static void everything_frozen(void **state)
{
    snug_error err = SNUG_ERROR_INIT;
    snug_model *m = dense_net(4, 0);
    for (size_t i = 0; i < snug_model_n_layers(m); i++) {
        snug_layer_info layer;
        snug_model_layer(m, i, &layer);
        assert_ok(snug_model_set_trainable(m, layer.name, false, &err), &err);
    }
    trainer t;
    open_net(&t, m, "cpu", bare, (snug_loss){0});
    float a = trainer_step(&t, &four, 0, BATCH), b = trainer_step(&t, &four, 0, BATCH);
    assert_memory_equal(&a, &b, sizeof a);
    trainer_close(&t);
    m = dense_net(4, 0);
    assert_fails(snug_model_set_trainable(m, "hiden", false, &err), SNUG_E_NOT_FOUND, &err);
    assert_contains(err.what, "hidden");
    snug_model_free(m);
}

/* ---- losses, from the logits that a step leaves ---------------------------------------------- */

static double cross_entropy(const float *logits, int n, const double *target)
{
    double most = -INFINITY, sum = 0, loss = 0;
    for (int i = 0; i < n; i++)
        most = fmax(most, (double)logits[i]);
    for (int i = 0; i < n; i++)
        sum += exp((double)logits[i] - most);
    for (int i = 0; i < n; i++)
        loss -= target[i] * ((double)logits[i] - most - log(sum));
    return loss;
}

static void one_hot(double *target, int n, int class, double smoothing)
{
    for (int i = 0; i < n; i++)
        target[i] = (i == class) * (1 - smoothing) + smoothing / n;
}

static void smoothing_and_one_hot(void **state)
{
    snug_error err = SNUG_ERROR_INIT;
    for (int form = 0; form < 4; form++) { /* smoothed or not, class numbers or one-hot */
        double smoothing = form & 1 ? .2 : 0, expected = 0;
        toy data = four;
        data.one_hot = form & 2;
        trainer t;
        open_net(&t, dense_net(4, 0), trainer_devices[form / 2], bare,
                 (snug_loss){.smoothing = (float)smoothing, .one_hot = data.one_hot});
        float outputs[BATCH * 4], x[SIZE];
        double loss = (double)trainer_step(&t, &data, 5, BATCH);
        assert_ok(snug_session_outputs(t.session, outputs, &err), &err);
        for (int i = 0; i < BATCH; i++) {
            double target[4];
            int32_t class;
            toy_sample(&four, 5 + (uint64_t)i, x, &class, NULL);
            one_hot(target, 4, class, smoothing);
            expected += cross_entropy(outputs + 4 * i, 4, target) / BATCH;
        }
        near(loss, expected, 1e-6, "cross entropy");
        trainer_close(&t);
    }
}

static void class_weights_weigh(void **state)
{
    static const float weights[] = {.5f, 3, 1, .25f};
    snug_error err = SNUG_ERROR_INIT;
    for (int d = 0; d < TRAINER_N_DEVICES; d++) {
        trainer t;
        snug_plan_options o = {SNUG_PLAN_DEFAULTS, .batch = BATCH, .optimizer = bare,
                               .sample_weights = true};
        trainer_open(&t, dense_net(4, 0), trainer_devices[d], &o, NULL);
        assert_ok(snug_session_class_weights(t.session, weights, 4, &err), &err);
        for (int64_t n = BATCH; n >= BATCH - 1; n--) { /* a short batch, too */
            float outputs[BATCH * 4], x[SIZE];
            double expected = 0, loss = (double)trainer_step(&t, &four, 0, n);
            assert_ok(snug_session_outputs(t.session, outputs, &err), &err);
            for (int i = 0; i < n; i++) {
                double target[4];
                int32_t class;
                toy_sample(&four, (uint64_t)i, x, &class, NULL);
                one_hot(target, 4, class, 0);
                expected += (double)weights[class] * cross_entropy(outputs + 4 * i, 4, target);
            }
            near(loss, expected / (double)n, 1e-6, "the weighted loss");
        }
        assert_ok(snug_session_class_weights(t.session, NULL, 0, &err), &err);
        trainer_close(&t);
    }
    trainer t;
    open_net(&t, dense_net(4, 0), "cpu", bare, (snug_loss){0});
    assert_fails(snug_session_class_weights(t.session, weights, 4, &err), SNUG_E_USAGE, &err);
    trainer_close(&t);
}

static double element_loss(snug_loss_kind kind, double d)
{
    switch (kind) {
    case SNUG_LOSS_MSE:
        return d * d;
    case SNUG_LOSS_MAE:
        return fabs(d);
    default:
        return fabs(d) <= .5 ? d * d / 2 : .5 * (fabs(d) - .25);
    }
}

static void regression(void **state)
{
    static const snug_loss_kind kinds[] = {SNUG_LOSS_MSE, SNUG_LOSS_MAE, SNUG_LOSS_HUBER};
    const toy data = {.n = 64, .size = SIZE, .targets = 3};
    snug_error err = SNUG_ERROR_INIT;
    for (size_t k = 0; k < SN_LEN(kinds); k++) {
        trainer t;
        open_net(&t, dense_net(3, 0), trainer_devices[k % 2],
                 (snug_optimizer){SNUG_ADAM, .lr = .01f},
                 (snug_loss){.kind = kinds[k], .delta = .5f});
        float outputs[BATCH * 3], x[SIZE], y[3], last = 0;
        float first = trainer_step(&t, &data, 0, BATCH);
        double expected = 0;
        assert_ok(snug_session_outputs(t.session, outputs, &err), &err);
        for (int i = 0; i < BATCH; i++) {
            toy_sample(&data, (uint64_t)i, x, NULL, y);
            for (int j = 0; j < 3; j++)
                expected += element_loss(kinds[k], (double)(y[j] - outputs[3 * i + j]));
        }
        near((double)first, expected / (3 * BATCH), 1e-6, "the loss");
        for (int i = 0; i < 120; i++)
            last = trainer_step(&t, &data, 0, BATCH);
        assert_true(last < first / 2);
        trainer_close(&t);
    }
}

static void binary(void **state)
{
    const toy two = {.n = 64, .size = SIZE, .classes = 2};
    snug_error err = SNUG_ERROR_INIT;
    trainer t;
    open_net(&t, dense_net(1, 0), "cpu", (snug_optimizer){SNUG_ADAM, .lr = .01f},
             (snug_loss){.kind = SNUG_LOSS_SIGMOID});
    float outputs[BATCH], x[SIZE];
    double expected = 0, loss = (double)trainer_step(&t, &two, 0, BATCH);
    assert_ok(snug_session_outputs(t.session, outputs, &err), &err);
    for (int i = 0; i < BATCH; i++) {
        int32_t class;
        toy_sample(&two, (uint64_t)i, x, &class, NULL);
        expected += log1p(exp((class ? -1 : 1) * (double)outputs[i])) / BATCH;
    }
    near(loss, expected, 1e-6, "sigmoid cross entropy");
    t.slot.classes[0] = 2;
    t.slot.n = 1;
    snug_slot slot = t.slot;
    slot.y = NULL;
    assert_fails(snug_session_feed(t.session, &slot, &err), SNUG_E_INPUT, &err);
    trainer_close(&t);
}

/* ---- seeds ----------------------------------------------------------------------------------- */

static float *trained(const char *device, uint64_t seed, snug_optimizer optimizer, size_t *n)
{
    trainer t;
    snug_plan_options o = {SNUG_PLAN_DEFAULTS, .batch = BATCH, .threads = 2,
                           .optimizer = optimizer};
    snug_session_options so = {SNUG_SESSION_DEFAULTS, .seed = seed};
    trainer_open(&t, trainer_small(4, .3f), device, &o, &so);
    float first = 0, last = 0;
    for (uint64_t i = 0; i < 60; i++) {
        last = trainer_step(&t, &four, i * BATCH, i % 8 == 7 ? 5 : BATCH);
        first = i ? first : last;
    }
    assert_true(last < first);
    float *values = trainer_state(&t, n);
    trainer_close(&t);
    return values;
}

static void a_seed_decides_everything(void **state)
{
    static const snug_optimizer optimizers[] = {{SNUG_SGD, .lr = .05f, .momentum = .9f},
                                                {SNUG_ADAM, .lr = .01f}};
    for (int d = 0; d < TRAINER_N_DEVICES; d++) {
        size_t n, m;
        float *a = trained(trainer_devices[d], 5, optimizers[d], &n);
        float *b = trained(trainer_devices[d], 5, optimizers[d], &m);
        float *c = trained(trainer_devices[d], 6, optimizers[d], &m);
        assert_int_equal(n, m);
        trainer_same(a, b, n, "the same seed");
        assert_memory_not_equal(a, c, n * sizeof *a);
        sn_free(a), sn_free(b), sn_free(c);
    }
}

/* ---- what goes wrong ------------------------------------------------------------------------- */

static void overwrite(trainer *t, const char *name, float value)
{
    for (size_t i = 0; i < snug_model_n_weights(t->model); i++) {
        snug_weight_info w;
        snug_model_weight(t->model, i, &w);
        if (!sn_str_eq(w.name, name))
            continue;
        size_t n;
        float *values = trainer_weight(t, name, -1, &n);
        for (size_t k = 0; k < n; k++)
            values[k] = k % 2 ? value : -value;
        assert_int_equal(snug_session_set_weight(t->session, i, -1, values, NULL), SNUG_OK);
        sn_free(values);
    }
}

static void a_loss_that_is_no_number(void **state)
{
    snug_error err = SNUG_ERROR_INIT;
    for (int d = 0; d < TRAINER_N_DEVICES; d++) {
        trainer t;
        open_net(&t, trainer_small(4, .1f), trainer_devices[d], bare, (snug_loss){0});
        trainer_step(&t, &four, 0, BATCH);
        float *good = trainer_weight(&t, "hidden/kernel", -1, NULL);
        overwrite(&t, "hidden/kernel", 3e38f);
        for (int64_t n = BATCH; n > BATCH - 2; n--) { /* a short batch, too */
            size_t n_before, n_after;
            float *before = trainer_state(&t, &n_before), loss = -7;
            trainer_feed(&t, &four, 8, n);
            assert_fails(snug_session_step(t.session, &loss, &err), SNUG_E_NUMERIC, &err);
            assert_contains(err.what, "'hidden'");
            assert_contains(err.what, "step 2");
            assert_contains(err.what, "3e+38");
            float *after = trainer_state(&t, &n_after);
            trainer_same(before, after, n_before, "the weights after a bad step");
            assert_true(loss == -7);
            assert_int_equal(snug_session_step_number(t.session), 1);
            sn_free(before), sn_free(after);
        }
        for (size_t i = 0; i < snug_model_n_weights(t.model); i++) {
            snug_weight_info w;
            snug_model_weight(t.model, i, &w);
            if (sn_str_eq(w.name, "hidden/kernel"))
                assert_ok(snug_session_set_weight(t.session, i, -1, good, &err), &err);
        }
        assert_true(isfinite(trainer_step(&t, &four, 0, BATCH))); /* and on it goes */
        sn_free(good);
        trainer_close(&t);
    }
}

static void a_batch_that_is_no_number(void **state)
{
    snug_error err = SNUG_ERROR_INIT;
    trainer t;
    open_net(&t, dense_net(4, 0), "cpu", bare, (snug_loss){0});
    trainer_feed(&t, &four, 0, BATCH);
    snug_slot slot = t.slot;
    slot.y = NULL;
    slot.n = BATCH;
    slot.x[77] = NAN;
    assert_ok(snug_session_feed(t.session, &slot, &err), &err);
    assert_fails(snug_session_step(t.session, NULL, &err), SNUG_E_NUMERIC, &err);
    assert_contains(err.what, "'conv'");
    assert_contains(err.what, "NaN or infinity");
    trainer_close(&t);
}

static void bad_batches(void **state)
{
    snug_error err = SNUG_ERROR_INIT;
    trainer t;
    open_net(&t, dense_net(4, 0), "cpu", bare, (snug_loss){0});
    assert_fails(snug_session_step(t.session, NULL, &err), SNUG_E_USAGE, &err); /* nothing fed */
    snug_slot slot = t.slot;
    slot.y = NULL;
    static const int64_t sizes[] = {0, -1, BATCH + 1, INT64_MAX};
    for (size_t i = 0; i < SN_LEN(sizes); i++) {
        slot.n = sizes[i];
        assert_fails(snug_session_feed(t.session, &slot, &err), SNUG_E_USAGE, &err);
    }
    slot.n = 2;
    static const int32_t classes[] = {-1, 4, INT32_MAX};
    for (size_t i = 0; i < SN_LEN(classes); i++) {
        slot.classes[1] = classes[i];
        assert_fails(snug_session_feed(t.session, &slot, &err), SNUG_E_INPUT, &err);
        assert_contains(err.what, "0 to 3");
        assert_fails(snug_session_step(t.session, NULL, &err), SNUG_E_USAGE, &err);
    }
    slot.classes[1] = 3;
    slot.sample_size = 1;
    assert_fails(snug_session_feed(t.session, &slot, &err), SNUG_E_INPUT, &err);
    assert_contains(err.what, "the data's samples have 1 numbers, the model takes");
    slot.sample_size = 0;
    assert_ok(snug_session_feed(t.session, &slot, &err), &err);
    slot.classes = NULL; /* unlabelled: good for prediction alone */
    assert_ok(snug_session_feed(t.session, &slot, &err), &err);
    assert_fails(snug_session_step(t.session, NULL, &err), SNUG_E_INPUT, &err);
    assert_ok(snug_session_predict(t.session, &err), &err);
    slot.y = t.slot.y; /* real numbers for a loss of classes */
    assert_fails(snug_session_feed(t.session, &slot, &err), SNUG_E_INPUT, &err);
    trainer_close(&t);
}

static void leaks_nothing(void **state)
{
    assert_no_leak();
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(l2_is_in_loss_and_gradient),
                                       cmocka_unit_test(the_global_norm_has_the_penalties_in_it),
                                       cmocka_unit_test(each_norm_and_each_value_are_clipped),
                                       cmocka_unit_test(frozen_layers_stay),
                                       cmocka_unit_test(frozen_layers_have_no_penalty),
                                       cmocka_unit_test(everything_frozen),
                                       cmocka_unit_test(smoothing_and_one_hot),
                                       cmocka_unit_test(class_weights_weigh),
                                       cmocka_unit_test(regression),
                                       cmocka_unit_test(binary),
                                       cmocka_unit_test(a_seed_decides_everything),
                                       cmocka_unit_test(a_loss_that_is_no_number),
                                       cmocka_unit_test(a_batch_that_is_no_number),
                                       cmocka_unit_test(bad_batches),
                                       cmocka_unit_test(leaks_nothing)};
    cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
