/* SPDX-License-Identifier: Apache-2.0
 *
 * test_model.c - building models: the first error stays and names its layer, absurd numbers are
 * errors, names are Keras', first weights have the distributions of Keras' initializers.
 */
#include "support/support.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "graph/model.h"

static snug_model *begin(snug_tensor *x)
{
    snug_error err = SNUG_ERROR_INIT;
    snug_model *m;
    assert_ok(snug_model_new(&m, "net", &err), &err);
    *x = snug_input(m, 6, 8, 3);
    return m;
}

static snug_tensor conv(snug_model *m, snug_tensor x, snug_conv_options o)
{
    o.struct_size = sizeof o;
    return snug_conv2d(m, x, &o);
}

/* ---- errors ---------------------------------------------------------------------------------- */

#define HUGE_NUMBER (INT64_MAX / 2)
static const int64_t huge_pads[4] = {HUGE_NUMBER, HUGE_NUMBER, HUGE_NUMBER, HUGE_NUMBER};

/* Merges, shapes, and what else can be wrong. */
static snug_tensor bad_merge(snug_model *m, snug_tensor x, int number)
{
    switch (number) {
    case 24:
        return snug_merge(m, SNUG_SUBTRACT, (snug_tensor[]){x, x, x}, 3, NULL);
    case 25:
        return snug_merge(m, (snug_merge_kind)77, (snug_tensor[]){x, x}, 2, NULL);
    case 26:
        return snug_add(m, x, snug_max_pool2d(m, x, NULL), NULL);
    case 27:
        return snug_concatenate(m, (snug_tensor[]){x, x}, 2, 3, NULL);
    case 28:
        return snug_concatenate(m, &x, 1, -1, NULL);
    case 29:
        return snug_concatenate(m, (snug_tensor[]){x, snug_max_pool2d(m, x, NULL)}, 2, -1, NULL);
    case 30:
        return snug_dropout(m, x, 1, NULL, NULL);
    case 31:
        return snug_dropout(m, x, NAN, NULL, NULL);
    case 32:
        return snug_reshape(m, x, 2, (int64_t[]){-1, 7}, NULL);
    case 33:
        return snug_reshape(m, x, 2, (int64_t[]){-1, -1}, NULL);
    case 34:
        return snug_reshape(m, x, 3, (int64_t[]){HUGE_NUMBER, HUGE_NUMBER, 3}, NULL);
    case 35:
        return snug_reshape(m, x, 5, (int64_t[]){6, 8, 3, 1, 1}, NULL);
    case 36:
        return snug_permute(m, x, (int[]){1, 1, 2}, NULL);
    case 37:
        return snug_permute(m, x, (int[]){0, 1, 2}, NULL);
    case 38:
        return snug_normalization(m, x, 2, (float[]){0, 0}, (float[]){1, 1}, NULL);
    case 39:
        return snug_group_norm(m, x, &(snug_norm_options){SNUG_NORM_DEFAULTS, .groups = 2});
    case 40:
        return snug_group_norm(m, x, &(snug_norm_options){SNUG_NORM_DEFAULTS, .groups = -3});
    case 41:
        return snug_scalar(m, x, (snug_scalar_kind)55, 1, NULL);
    case 42:
        return snug_conv2d(
            m, snug_flatten(m, x, NULL),
            &(snug_conv_options){SNUG_CONV_DEFAULTS, .filters = 4, .kernel = {1, 1}});
    case 43:
        return snug_relu(m, x, 0, "");
    case 44:
        return snug_relu(m, snug_relu(m, x, 0, "twice"), 0, "twice");
    case 45:
        return snug_relu(m, 99, 0, NULL);
    case 46:
        return snug_input(m, 4, 4, 1);
    default:
        return snug_global_max_pool2d(m, snug_flatten(m, x, NULL), NULL);
    }
}

static snug_tensor bad_layer(snug_model *m, snug_tensor x, int number)
{
    switch (number) {
    case 0:
        return conv(m, x, (snug_conv_options){.filters = 4}); /* no kernel */
    case 1:
        return conv(m, x, (snug_conv_options){.kernel = {3, 3}}); /* no filters */
    case 2:
        return conv(m, x, (snug_conv_options){.filters = -4, .kernel = {3, 3}});
    case 3:
        return conv(m, x, (snug_conv_options){.filters = HUGE_NUMBER, .kernel = {3, 3}});
    case 4:
        return conv(m, x, (snug_conv_options){.filters = 4, .kernel = {7, 7}}); /* higher than 6 */
    case 5:
        return conv(m, x, (snug_conv_options){.filters = 4, .kernel = {3, 3}, .groups = 2});
    case 6:
        return conv(m, x, (snug_conv_options){.filters = 4, .kernel = {3, 3}, .strides = {-1, 1}});
    case 7:
        return conv(
            m, x,
            (snug_conv_options){
                .filters = 4, .kernel = {3, 3}, .padding = SNUG_EXPLICIT, .pads = {-1, 0, 0, 0}});
    case 8:
        return conv(m, x,
                    (snug_conv_options){.filters = 4,
                                        .kernel = {3, 3},
                                        .padding = SNUG_EXPLICIT,
                                        .pads = {HUGE_NUMBER, HUGE_NUMBER, 0, 0}});
    case 9:
        return conv(m, x,
                    (snug_conv_options){
                        .filters = 4, .kernel = {3, 3}, .activation = (snug_activation_kind)99});
    case 10:
        return snug_depthwise_conv2d(
            m, x,
            &(snug_conv_options){SNUG_CONV_DEFAULTS, .kernel = {3, 3}, .multiplier = INT64_MAX});
    case 11:
        return snug_separable_conv2d(m, x,
                                     &(snug_conv_options){SNUG_CONV_DEFAULTS, .kernel = {3, 3},
                                                          .filters = 4, .multiplier = -2});
    case 12:
        return snug_conv2d_transpose(m, x,
                                     &(snug_conv_options){SNUG_CONV_DEFAULTS, .kernel = {3, 3},
                                                          .filters = 4, .strides = {2, 2},
                                                          .output_padding = {INT64_MAX, 1}});
    case 13:
        return snug_conv2d_transpose(m, x,
                                     &(snug_conv_options){SNUG_CONV_DEFAULTS, .kernel = {3, 3},
                                                          .filters = 4, .dilation = {2, 2}});
    case 14:
        return snug_dense(m, x, NULL); /* no units */
    case 15:
        return snug_dense(m, x, &(snug_dense_options){SNUG_DENSE_DEFAULTS, .units = INT64_MAX});
    case 16:
        return snug_max_pool2d(m, x, &(snug_pool_options){SNUG_POOL_DEFAULTS, .window = {9, 9}});
    case 17:
        return snug_max_pool2d(m, x, &(snug_pool_options){SNUG_POOL_DEFAULTS, .window = {-2, 2}});
    case 18:
        return snug_average_pool2d(m, x,
                                   &(snug_pool_options){SNUG_POOL_DEFAULTS,
                                                        .padding = SNUG_EXPLICIT,
                                                        .pads = {5, 5, 5, 5}});
    case 19:
        return snug_zero_padding2d(m, x, huge_pads, NULL);
    case 20:
        return snug_cropping2d(m, x, (int64_t[]){3, 3, 0, 0}, NULL);
    case 21:
        return snug_cropping2d(m, x, huge_pads, NULL);
    case 22:
        return snug_upsampling2d(m, x, HUGE_NUMBER, 2, false, NULL);
    case 23:
        return snug_upsampling2d(m, x, 0, 2, true, NULL);
    default:
        return bad_merge(m, x, number);
    }
}

static void each_bad_layer_is_an_error(void **state)
{
    for (int number = 0; number <= 47; number++) {
        snug_error err = SNUG_ERROR_INIT;
        snug_tensor x;
        snug_model *m = begin(&x);
        snug_tensor y = bad_layer(m, x, number);
        if (y != -1)
            fail_msg("bad layer %d was taken", number);
        snug_status s = snug_model_finish(m, y, &err);
        if (s != SNUG_E_USAGE && s != SNUG_E_INPUT && s != SNUG_E_UNSUPPORTED)
            fail_msg("bad layer %d: %s", number, snug_status_name(s));
        assert_true(err.what[0] != 0);
        snug_model_free(m);
    }
}

/* Later calls change nothing, and neither does asking again. */
static void the_first_error_stays(void **state)
{
    snug_error err = SNUG_ERROR_INIT;
    snug_tensor x;
    snug_model *m = begin(&x);
    size_t n = snug_model_n_layers(m);
    snug_tensor y = snug_dropout(m, x, 7, NULL, "first");
    assert_int_equal(y, -1);
    assert_int_equal(snug_dense(m, y, NULL), -1);
    assert_int_equal(snug_relu(m, x, 0, NULL), -1); /* of a good input, too */
    assert_int_equal(snug_flatten(m, y, NULL), -1);
    for (int i = 0; i < 2; i++) {
        assert_fails(snug_model_finish(m, x, &err), SNUG_E_USAGE, &err);
        assert_contains(err.where, "'first'");
        assert_contains(err.what, "7");
    }
    assert_true(snug_model_n_layers(m) <= n + 1);
    snug_model_free(m);
}

static void ends_of_models(void **state)
{
    snug_error err = SNUG_ERROR_INIT;
    snug_model *m;
    assert_ok(snug_model_new(&m, NULL, &err), &err);
    assert_string_equal(snug_model_name(m), "model");
    assert_fails(snug_model_finish(m, 0, &err), SNUG_E_USAGE, &err); /* nothing is in it */
    snug_model_free(m);
    snug_tensor x;
    m = begin(&x);
    x = snug_relu(m, x, 0, NULL);
    assert_ok(snug_model_finish(m, x, &err), &err);
    assert_int_equal(snug_relu(m, x, 0, NULL), -1); /* it is finished */
    snug_model_free(m);
    static const int64_t shapes[][3] = {
        {0, 4, 3}, {-1, 4, 3}, {INT64_MAX, INT64_MAX, INT64_MAX}, {1 << 20, 1 << 20, 3}};
    for (size_t i = 0; i < SN_LEN(shapes); i++) {
        assert_ok(snug_model_new(&m, "big", &err), &err);
        assert_int_equal(snug_input(m, shapes[i][0], shapes[i][1], shapes[i][2]), -1);
        assert_fails(snug_model_finish(m, 0, &err), SNUG_E_USAGE, &err);
        snug_model_free(m);
    }
    snug_model_free(NULL);
}

/* ---- names and looks ------------------------------------------------------------------------- */

static void names_are_those_of_keras(void **state)
{
    static const char *const expected[] = {
        "input_layer", "conv2d",  "conv2d_1", "batch_normalization",
        "re_lu",       "re_lu_1", "conv2d_3", "conv2d_2",
        "conv2d_4",    "add",     "flatten",  "dense"};
    static const char *const weights[] = {
        "conv2d/kernel",
        "conv2d/bias",
        "conv2d_1/kernel",
        "batch_normalization/gamma",
        "batch_normalization/beta",
        "batch_normalization/moving_mean",
        "batch_normalization/moving_variance",
    };
    snug_error err = SNUG_ERROR_INIT;
    snug_tensor x, y;
    const snug_conv_options one = {.filters = 3, .kernel = {1, 1}};
    snug_conv_options bare = one, named = one;
    bare.no_bias = true;
    named.name = "conv2d_3"; /* a name of its own that Keras would have given later */
    snug_model *m = begin(&x);
    x = conv(m, conv(m, x, one), bare);
    x = y = snug_relu(m, snug_relu(m, snug_batch_norm(m, x, NULL), 0, NULL), 0, NULL);
    y = conv(m, conv(m, conv(m, y, named), one), one);
    x = snug_flatten(m, snug_add(m, x, y, NULL), NULL);
    x = snug_dense(m, x, &(snug_dense_options){SNUG_DENSE_DEFAULTS, .units = 2});
    assert_ok(snug_model_finish(m, x, &err), &err);
    assert_int_equal(snug_model_n_layers(m), SN_LEN(expected));
    for (size_t i = 0; i < SN_LEN(expected); i++) {
        snug_layer_info info;
        snug_model_layer(m, i, &info);
        assert_string_equal(info.name, expected[i]);
    }
    for (size_t i = 0; i < SN_LEN(weights); i++) {
        snug_weight_info info;
        snug_model_weight(m, i, &info);
        assert_string_equal(info.name, weights[i]);
        assert_int_equal(info.trainable, i < 5);
    }
    snug_layer_info add;
    snug_model_layer(m, 9, &add);
    assert_int_equal(add.n_inputs, 2);
    assert_int_equal(add.inputs[0], 5);
    assert_int_equal(add.inputs[1], 8);
    uint64_t all = snug_model_trainable_parameters(m);
    assert_ok(snug_model_set_trainable(m, "batch_normalization", false, &err), &err);
    assert_int_equal(snug_model_trainable_parameters(m), all - 6);
    assert_ok(snug_model_set_trainable(m, "batch_normalization", true, &err), &err);
    assert_int_equal(snug_model_trainable_parameters(m), all);
    snug_model_free(m);
}

static void what_models_end_in(void **state)
{
    snug_error err = SNUG_ERROR_INIT;
    for (int kind = 0; kind < 3; kind++) {
        snug_tensor x;
        snug_model *m = begin(&x);
        if (kind == 1)
            x = snug_rescaling(m, x, 1.0f / 255, 0, NULL);
        x = snug_flatten(m, x, NULL);
        static const snug_activation_kind ends[] = {SNUG_LINEAR, SNUG_SOFTMAX, SNUG_SIGMOID};
        x = snug_dense(
            m, x, &(snug_dense_options){SNUG_DENSE_DEFAULTS, .units = 2, .activation = ends[kind]});
        assert_ok(snug_model_finish(m, x, &err), &err);
        assert_int_equal(snug_model_ends_in_softmax(m), kind == 1);
        assert_int_equal(snug_model_ends_in_sigmoid(m), kind == 2);
        assert_int_equal(snug_model_rescales_itself(m), kind == 1);
        snug_model_free(m);
    }
}

/* ---- first weights --------------------------------------------------------------------------- */

typedef struct moments {
    double mean, deviation, largest;
} moments;

static moments look(const float *w, size_t n)
{
    moments m = {0};
    for (size_t i = 0; i < n; i++) {
        m.mean += (double)w[i] / (double)n;
        m.largest = fmax(m.largest, fabs((double)w[i]));
    }
    for (size_t i = 0; i < n; i++)
        m.deviation += pow((double)w[i] - m.mean, 2) / (double)n;
    m.deviation = sqrt(m.deviation);
    return m;
}

/* A kernel of 3x3x20x40: fan in 180, fan out 360. */
static void initializers(void **state)
{
    const double in = 180, out = 360, cut = .87962566103423978; /* of a normal cut at 2 sigma */
    const struct {
        snug_initializer kind;
        double deviation, largest; /* largest possible; 0: no bound */
    } rows[] = {{SNUG_INIT_DEFAULT, sqrt(2 / (in + out)), sqrt(6 / (in + out))},
                {SNUG_GLOROT_UNIFORM, sqrt(2 / (in + out)), sqrt(6 / (in + out))},
                {SNUG_GLOROT_NORMAL, sqrt(2 / (in + out)), 2 * sqrt(2 / (in + out)) / cut},
                {SNUG_HE_UNIFORM, sqrt(2 / in), sqrt(6 / in)},
                {SNUG_HE_NORMAL, sqrt(2 / in), 2 * sqrt(2 / in) / cut},
                {SNUG_LECUN_UNIFORM, sqrt(1 / in), sqrt(3 / in)},
                {SNUG_LECUN_NORMAL, sqrt(1 / in), 2 * sqrt(1 / in) / cut},
                {SNUG_RANDOM_NORMAL, .05, 0},
                {SNUG_RANDOM_UNIFORM, .05 / sqrt(3), .05},
                {SNUG_TRUNCATED_NORMAL, .05 * cut, .1},
                {SNUG_ORTHOGONAL, 1 / sqrt(180), 1}};
    enum { N = 3 * 3 * 20 * 40 };
    static float w[N], again[N], other[N];
    for (size_t i = 0; i < SN_LEN(rows); i++) {
        snug_error err = SNUG_ERROR_INIT;
        snug_model *m;
        assert_ok(snug_model_new(&m, "net", &err), &err);
        snug_tensor x = snug_input(m, 6, 8, 20);
        x = conv(m, x,
                 (snug_conv_options){
                     .filters = 40, .kernel = {3, 3}, .kernel_initializer = rows[i].kind});
        x = conv(m, x,
                 (snug_conv_options){
                     .filters = 20, .kernel = {3, 3}, .kernel_initializer = rows[i].kind});
        assert_ok(snug_model_finish(m, x, &err), &err);
        assert_ok(sn_model_init_weight(m, 0, 5, w, &err), &err);
        assert_ok(sn_model_init_weight(m, 0, 5, again, &err), &err);
        assert_memory_equal(w, again, sizeof w);
        assert_ok(sn_model_init_weight(m, 0, 6, other, &err), &err);
        assert_memory_not_equal(w, other, sizeof w);
        assert_ok(sn_model_init_weight(m, 2, 5, other, &err), &err);
        assert_memory_not_equal(w, other, sizeof w);
        moments is = look(w, N);
        if (!(fabs(is.mean) <= 4 * rows[i].deviation / sqrt(N) &&
              fabs(is.deviation - rows[i].deviation) <= .03 * rows[i].deviation) ||
            (rows[i].largest > 0 && is.largest > rows[i].largest * 1.000001))
            fail_msg("initializer %d: mean %g, deviation %g (%g), largest %g (%g)",
                     (int)rows[i].kind, is.mean, is.deviation, rows[i].deviation, is.largest,
                     rows[i].largest);
        assert_ok(sn_model_init_weight(m, 1, 5, w, &err), &err);
        for (int k = 0; k < 40; k++) /* biases */
            assert_true(w[k] == 0);
        snug_model_free(m);
    }
}

static void orthogonal_columns(void **state)
{
    enum { ROWS = 12, COLUMNS = 7 };
    snug_error err = SNUG_ERROR_INIT;
    snug_model *m;
    float w[ROWS * COLUMNS];
    for (int wide = 0; wide < 2; wide++) {
        int rows = wide ? COLUMNS : ROWS, columns = wide ? ROWS : COLUMNS;
        assert_ok(snug_model_new(&m, "net", &err), &err);
        snug_tensor x = snug_input_features(m, rows);
        x = snug_dense(m, x,
                       &(snug_dense_options){SNUG_DENSE_DEFAULTS, .units = columns,
                                             .kernel_initializer = SNUG_ORTHOGONAL});
        assert_ok(snug_model_finish(m, x, &err), &err);
        assert_ok(sn_model_init_weight(m, 0, 1, w, &err), &err);
        for (int a = 0; a < COLUMNS; a++)
            for (int b = 0; b < COLUMNS; b++) {
                double dot = 0;
                for (int k = 0; k < ROWS; k++)
                    dot += wide ? (double)w[a * ROWS + k] * (double)w[b * ROWS + k]
                                : (double)w[k * COLUMNS + a] * (double)w[k * COLUMNS + b];
                assert_true(fabs(dot - (a == b)) < 1e-5);
            }
        snug_model_free(m);
    }
}

static void leaks_nothing(void **state)
{
    assert_no_leak();
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_bad_layer_is_an_error),
                                       cmocka_unit_test(the_first_error_stays),
                                       cmocka_unit_test(ends_of_models),
                                       cmocka_unit_test(names_are_those_of_keras),
                                       cmocka_unit_test(what_models_end_in),
                                       cmocka_unit_test(initializers),
                                       cmocka_unit_test(orthogonal_columns),
                                       cmocka_unit_test(leaks_nothing)};
    cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
