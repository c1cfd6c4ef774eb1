/* SPDX-License-Identifier: Apache-2.0
 *
 * test_training.c - ten steps of three small networks against frozen results of real Keras on
 * TensorFlow (make_training.py), on every backend that computes. Without BatchNorm: ten losses
 * within 1e-4. With it each step begins from TensorFlow's float32 weights and momentum: its loss
 * within 2e-5, what it leaves within a few roundings, and each gradient's 2-norm error over the ten
 * steps against TensorFlow in float64 at most 1.5 times that of TensorFlow in float32.
 * The whole comparison, with the networks of the zoo, is against_keras.py.
 */
#include "support/trainer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "support/tree.h"

enum { STEPS = 10, MAX_WEIGHTS = 64 };
static const float rate = .05f, momentum = .9f;

typedef struct frozen_weight {
    char name[64];
    size_t count;
    int trained;
    double error;   /* TensorFlow's own, over the ten steps */
    double square;  /* ours, squared */
    int32_t number; /* in our model */
} frozen_weight;

typedef struct frozen_net {
    char name[32];
    int64_t batch, side, channels, classes;
    size_t n;
    frozen_weight weights[MAX_WEIGHTS];
    double loss32[STEPS], loss64[STEPS];
    bool with_bn;
    const char *at; /* in training.bin */
} frozen_net;

static frozen_net nets[3];
static char *numbers;

/* ---- reading --------------------------------------------------------------------------------- */

static size_t bytes_of(const frozen_net *net)
{
    size_t all = 0, trained = 0;
    for (size_t i = 0; i < net->n; i++) {
        all += net->weights[i].count;
        trained += net->weights[i].trained ? net->weights[i].count : 0;
    }
    size_t x = (size_t)(net->batch * (net->side * net->side * net->channels + 1));
    return net->with_bn ? STEPS * (x + 4 * all + 12 * trained) : STEPS * x + 4 * all;
}

static int read_frozen(void **state)
{
    char path[SN_TEST_PATH], *text = test_source_text("tests/oracle/training.txt"), *at = text;
    size_t n_numbers = 0, used = 0;
    frozen_net *net = NULL;
    int step = 0, k = -1;
    SN_UNUSED(state);
    numbers = test_read(test_source_path(path, "tests/oracle/training.bin"), &n_numbers);
    for (char *line; (line = test_next_line(&at));) {
        frozen_net n = {0};
        frozen_weight w = {0};
        double a, b;
        if (sscanf(line, "net %31s %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64, n.name, &n.batch,
                   &n.side, &n.channels, &n.classes) == 5) {
            net = &nets[++k];
            *net = n;
            step = 0;
        } else if (sscanf(line, "weight %63s %zu %d %lf", w.name, &w.count, &w.trained, &w.error) ==
                   4) {
            net->weights[net->n++] = w;
            net->with_bn |= !w.trained;
        } else if (sscanf(line, "step %lf %lf", &a, &b) == 2) {
            net->loss32[step] = a;
            net->loss64[step++] = b;
        }
    }
    for (int i = 0; i <= k; i++) {
        nets[i].at = numbers + used;
        used += bytes_of(&nets[i]);
    }
    sn_free(text);
    return k == 2 && step == STEPS && used == n_numbers ? 0 : -1;
}

static int forget(void **state)
{
    SN_UNUSED(state);
    sn_free(numbers);
    return sn_ledger_live_bytes() == 0 ? 0 : -1;
}

/* ---- the same networks ----------------------------------------------------------------------- */

typedef struct conv_form {
    const char *name;
    int64_t filters, kernel, stride; /* filters 0: depthwise */
    snug_padding padding;
    snug_activation_kind activation;
    bool bias;
} conv_form;

static snug_tensor conv(snug_model *m, snug_tensor x, conv_form f)
{
    snug_conv_options o = {SNUG_CONV_DEFAULTS,
                           .name = f.name,
                           .filters = f.filters,
                           .kernel = {f.kernel, f.kernel},
                           .strides = {f.stride, f.stride},
                           .padding = f.padding,
                           .activation = f.activation,
                           .no_bias = !f.bias};
    return f.filters ? snug_conv2d(m, x, &o) : snug_depthwise_conv2d(m, x, &o);
}

static snug_tensor dense(snug_model *m, snug_tensor x, const char *name, int64_t units, bool relu)
{
    return snug_dense(m, x,
                      &(snug_dense_options){SNUG_DENSE_DEFAULTS, .name = name, .units = units,
                                            .activation = relu ? SNUG_RELU : SNUG_LINEAR});
}

static snug_tensor build_plain(snug_model *m, snug_tensor x, const frozen_net *net)
{
    x = conv(m, x, (conv_form){"conv1", 8, 3, 1, SNUG_SAME, SNUG_RELU, true});
    x = snug_max_pool2d(m, x, NULL);
    x = conv(m, x, (conv_form){"conv2", 12, 3, 2, SNUG_SAME, SNUG_RELU, true});
    x = dense(m, snug_flatten(m, x, NULL), "dense1", 16, true);
    return dense(m, x, "dense2", net->classes, false);
}

static snug_tensor build_cnn(snug_model *m, snug_tensor x, const frozen_net *net)
{
    for (int i = 0; i < 2; i++) {
        x = conv(m, x, (conv_form){NULL, 5 << i, 3, 1, SNUG_SAME, SNUG_LINEAR, false});
        x = snug_relu(m, snug_batch_norm(m, x, NULL), 0, NULL);
        x = snug_max_pool2d(m, x, NULL);
    }
    x = dense(m, snug_flatten(m, x, NULL), "dense", 9, true);
    return dense(m, x, "predictions", net->classes, false);
}

static snug_tensor bn_relu6(snug_model *m, snug_tensor x, const char *name)
{
    char bn[32];
    snprintf(bn, sizeof bn, "%s_bn", name);
    x = snug_batch_norm(m, x, &(snug_norm_options){SNUG_NORM_DEFAULTS, .name = bn});
    return snug_relu(m, x, 6, NULL);
}

static snug_tensor block(snug_model *m, snug_tensor x, const char *name, int64_t filters,
                         int64_t kernel, int64_t stride, snug_padding padding)
{
    x = conv(m, x, (conv_form){name, filters, kernel, stride, padding, SNUG_LINEAR, false});
    return bn_relu6(m, x, name);
}

static snug_tensor build_mobile(snug_model *m, snug_tensor x, const frozen_net *net)
{
    x = block(m, x, "conv1", 6, 3, 2, SNUG_SAME);
    x = block(m, x, "dw1", 0, 3, 1, SNUG_SAME);
    x = block(m, x, "pw1", 12, 1, 1, SNUG_SAME);
    x = snug_zero_padding2d(m, x, (int64_t[]){0, 1, 0, 1}, NULL);
    x = block(m, x, "dw2", 0, 3, 2, SNUG_VALID);
    snug_tensor y = x = block(m, x, "pw2", 16, 1, 1, SNUG_SAME);
    y = block(m, y, "expand", 20, 1, 1, SNUG_SAME);
    y = block(m, y, "dw3", 0, 3, 1, SNUG_SAME);
    y = conv(m, y, (conv_form){"project", 16, 1, 1, SNUG_SAME, SNUG_LINEAR, false});
    y = snug_batch_norm(m, y, &(snug_norm_options){SNUG_NORM_DEFAULTS, .name = "project_bn"});
    x = snug_add(m, x, y, NULL);
    x = snug_global_average_pool2d(m, x,
                                   &(snug_pool_options){SNUG_POOL_DEFAULTS, .keepdims = true});
    x = conv(m, x, (conv_form){"preds", net->classes, 1, 1, SNUG_SAME, SNUG_LINEAR, true});
    return snug_reshape(m, x, 1, &net->classes, NULL);
}

static void open_net(trainer *t, frozen_net *net, const char *device)
{
    static snug_tensor (*const builders[])(snug_model *, snug_tensor, const frozen_net *) = {
        build_plain, build_cnn, build_mobile};
    snug_error err = SNUG_ERROR_INIT;
    snug_model *m;
    assert_ok(snug_model_new(&m, net->name, &err), &err);
    snug_tensor x = snug_input(m, net->side, net->side, net->channels);
    assert_ok(snug_model_finish(m, builders[net - nets](m, x, net), &err), &err);
    snug_plan_options o = {SNUG_PLAN_DEFAULTS, .batch = net->batch, .threads = 2,
                           .optimizer = {SNUG_SGD, .lr = rate, .momentum = momentum}};
    trainer_open(t, m, device, &o, NULL);
    assert_int_equal(snug_model_n_weights(m), net->n);
    for (size_t i = 0; i < net->n; i++) {
        net->weights[i].square = 0;
        net->weights[i].number = -1;
        for (size_t k = 0; k < net->n; k++) {
            snug_weight_info w;
            snug_model_weight(m, k, &w);
            if (sn_str_eq(w.name, net->weights[i].name) && w.count == net->weights[i].count)
                net->weights[i].number = (int32_t)k;
        }
        if (net->weights[i].number < 0)
            fail_msg("no weight '%s'", net->weights[i].name);
    }
}

/* ---- steps ----------------------------------------------------------------------------------- */

static const char *feed(trainer *t, const frozen_net *net, const char *at)
{
    snug_error err = SNUG_ERROR_INIT;
    int64_t n = net->batch * net->side * net->side * net->channels;
    for (int64_t i = 0; i < n; i++)
        t->slot.x[i] = (float)*(const int8_t *)at++ / 64;
    for (int64_t i = 0; i < net->batch; i++)
        t->slot.classes[i] = *at++;
    snug_slot slot = t->slot;
    slot.y = NULL;
    slot.n = net->batch;
    assert_ok(snug_session_feed(t->session, &slot, &err), &err);
    return at;
}

/* slot -1: all weights; 0: the momentum of the trained ones, zero if at is NULL. */
static const char *load(trainer *t, const frozen_net *net, int slot, const char *at)
{
    static float values[8192];
    for (size_t i = 0; i < net->n; i++) {
        const frozen_weight *w = &net->weights[i];
        size_t bytes = w->count * sizeof *values;
        if (slot >= 0 && !w->trained)
            continue;
        assert_true(bytes <= sizeof values);
        memset(values, 0, bytes);
        if (at) {
            memcpy(values, at, bytes);
            at += bytes;
        }
        assert_int_equal(snug_session_set_weight(t->session, (size_t)w->number, slot, values, NULL),
                         SNUG_OK);
    }
    return at;
}

static double step(trainer *t, float lr)
{
    snug_error err = SNUG_ERROR_INIT;
    float loss = 0;
    snug_session_set_lr(t->session, lr);
    assert_ok(snug_session_step(t->session, &loss, &err), &err);
    return (double)loss;
}

static void near(double a, double b, double most, const char *what, int number)
{
    if (!(fabs(a - b) <= most * fabs(b)))
        fail_msg("%s, step %d: %.9g, TensorFlow has %.9g", what, number, a, b);
}

/* What a step left in weights and statistics, against what TensorFlow's left. */
static void compare_weights(trainer *t, const frozen_net *net, const char *at, int number)
{
    for (size_t i = 0; i < net->n; i++) {
        const frozen_weight *w = &net->weights[i];
        float *ours = trainer_weight(t, w->name, -1, NULL);
        double difference = 0, all = 0;
        for (size_t k = 0; k < w->count; k++, at += sizeof(float)) {
            float v;
            memcpy(&v, at, sizeof v);
            difference += pow((double)ours[k] - (double)v, 2);
            all += (double)v * (double)v;
        }
        sn_free(ours);
        if (!(difference <= 1e-12 * all))
            fail_msg("%s: '%s' after step %d differs by %.2g of itself", net->name, w->name, number,
                     sqrt(difference / all));
    }
}

/* A step at rate 1 from no momentum leaves the negative gradient in it. */
static const char *add_errors(trainer *t, frozen_net *net, const char *at)
{
    for (size_t i = 0; i < net->n; i++) {
        frozen_weight *w = &net->weights[i];
        if (!w->trained)
            continue;
        float *ours = trainer_weight(t, w->name, 0, NULL);
        for (size_t k = 0; k < w->count; k++, at += sizeof(double)) {
            double truth;
            memcpy(&truth, at, sizeof truth);
            w->square += pow(-(double)ours[k] - truth, 2);
        }
        sn_free(ours);
    }
    return at;
}

static void with_batch_norm(frozen_net *net, const char *device)
{
    trainer t;
    open_net(&t, net, device);
    const char *at = net->at;
    for (int k = 0; k < STEPS; k++) {
        const char *weights = feed(&t, net, at);
        if (k > 0) /* the weights of this step are what the one before left */
            compare_weights(&t, net, weights, k);
        at = load(&t, net, -1, weights);
        load(&t, net, 0, NULL);
        near(step(&t, 1), net->loss32[k], 2e-5, net->name, k + 1);
        const char *gradients = at;
        for (size_t i = 0; i < net->n; i++)
            gradients += net->weights[i].trained ? net->weights[i].count * sizeof(float) : 0;
        gradients = add_errors(&t, net, gradients);
        load(&t, net, -1, weights);
        load(&t, net, 0, at);
        near(step(&t, rate), net->loss32[k], 2e-5, net->name, k + 1);
        at = gradients;
    }
    trainer_close(&t);
    for (size_t i = 0; i < net->n; i++) {
        const frozen_weight *w = &net->weights[i];
        if (!(sqrt(w->square) <= 1.5 * w->error))
            fail_msg("%s on %s: the gradient of '%s' is off by %.3g, TensorFlow's by %.3g",
                     net->name, device, w->name, sqrt(w->square), w->error);
    }
}

static void without_batch_norm(frozen_net *net, const char *device)
{
    trainer t;
    open_net(&t, net, device);
    const char *at = net->at;
    for (int k = 0; k < STEPS; k++) {
        at = feed(&t, net, at);
        at = k ? at : load(&t, net, -1, at);
        double loss = step(&t, rate);
        near(loss, net->loss32[k], 1e-4, net->name, k + 1);
        near(loss, net->loss64[k], 1e-4, net->name, k + 1);
    }
    trainer_close(&t);
}

static void ten_losses(void **state)
{
    for (int d = 0; d < TRAINER_N_DEVICES; d++)
        without_batch_norm(&nets[0], trainer_devices[d]);
}

static void ten_steps_of_a_cnn(void **state)
{
    for (int d = 0; d < TRAINER_N_DEVICES; d++)
        with_batch_norm(&nets[1], trainer_devices[d]);
}

static void ten_steps_of_a_mobilenet(void **state)
{
    for (int d = 0; d < TRAINER_N_DEVICES; d++)
        with_batch_norm(&nets[2], trainer_devices[d]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(ten_losses),
                                       cmocka_unit_test(ten_steps_of_a_cnn),
                                       cmocka_unit_test(ten_steps_of_a_mobilenet)};
    return cmocka_run_group_tests(tests, read_frozen, forget);
}
