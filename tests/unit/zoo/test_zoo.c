/* SPDX-License-Identifier: Apache-2.0
 *
 * test_zoo.c - the models of the zoo against a frozen table of real keras.applications
 * (tests/oracle/zoo.txt, made by make_zoo.py), against published counts where Keras has no such
 * model, and specifications that make no sense.
 */
#include "support/tree.h"

#include <stdio.h>
#include <string.h>

#include "snug/model.h"

typedef struct table_layer {
    char name[64], type[40];
    int rank;
    int64_t shape[4];
    uint64_t parameters;
    bool seen;
} table_layer;

typedef struct table_model {
    char spec[64];
    int64_t side;
    uint64_t parameters, trainable;
    size_t first, n;
} table_model;

static table_layer layers[4000];
static table_model models[40];
static size_t n_models;

static int read_shape(const char *text, int64_t shape[4])
{
    int rank = 0, used = 0;
    while (rank < 4 && sscanf(text, "%" SCNd64 "%n", &shape[rank], &used) == 1) {
        rank++;
        text += used;
        text += *text == ',';
    }
    return rank;
}

static int read_table(void **state)
{
    char *text = test_source_text("tests/oracle/zoo.txt"), *at = text, *line;
    size_t n = 0;
    SN_UNUSED(state);
    while ((line = test_next_line(&at))) {
        table_model *m = &models[n_models];
        table_layer *l = &layers[n];
        char shape[64];
        if (sscanf(line, "model %63s %" SCNd64 " %" SCNu64 " %" SCNu64, m->spec, &m->side,
                   &m->parameters, &m->trainable) == 4) {
            m->first = n;
            n_models++;
        } else if (sscanf(line, "layer %63s %39s %63s %" SCNu64, l->name, l->type, shape,
                          &l->parameters) == 4) {
            l->rank = read_shape(shape, l->shape);
            models[n_models - 1].n++;
            n++;
        }
    }
    sn_free(text);
    return n_models > 10 && n > 1000 ? 0 : -1;
}

static snug_model *zoo(const char *spec, int64_t side)
{
    snug_error err = SNUG_ERROR_INIT;
    snug_model *model;
    assert_ok(snug_model_zoo(&model, spec, side, side, 0, 0, &err), &err);
    return model;
}

static size_t compare_layer(const table_model *m, const snug_layer_info *info)
{
    for (size_t i = m->first; i < m->first + m->n; i++) {
        table_layer *l = &layers[i];
        if (!sn_str_eq(l->name, info->name))
            continue;
        bool same = sn_str_eq(l->type, info->type) && l->rank == info->rank &&
                    l->parameters == info->parameters && !l->seen;
        for (int d = 0; d < l->rank && same; d++)
            same = l->shape[d] == info->shape[d];
        l->seen = true;
        return same ? 0
                    : test_problem(m->spec, i - m->first, "%s is %s with %" PRIu64 " parameters",
                                   info->name, info->type, info->parameters);
    }
    return test_problem(m->spec, 0, "Keras has no layer '%s' (%s)", info->name, info->type);
}

static void as_keras(void **state)
{
    size_t problems = 0;
    for (size_t i = 0; i < n_models; i++) {
        const table_model *m = &models[i];
        snug_model *model = zoo(m->spec, m->side);
        if (snug_model_parameters(model) != m->parameters ||
            snug_model_trainable_parameters(model) != m->trainable)
            problems +=
                test_problem(m->spec, 0, "%" PRIu64 " parameters, %" PRIu64 " trained",
                             snug_model_parameters(model), snug_model_trainable_parameters(model));
        for (size_t k = 0; k < snug_model_n_layers(model); k++) {
            snug_layer_info info;
            snug_model_layer(model, k, &info);
            problems += compare_layer(m, &info);
        }
        for (size_t k = m->first; k < m->first + m->n; k++)
            if (!layers[k].seen)
                problems += test_problem(m->spec, k - m->first, "no layer '%s'", layers[k].name);
        snug_model_free(model);
    }
    assert_int_equal(problems, 0);
}

/* Counts as published: torchvision's for ResNet 18 and 34 and SqueezeNet 1.1. */
static void as_published(void **state)
{
    static const struct {
        const char *spec;
        uint64_t trainable;
    } rows[] = {{"squeezenet", 1235496}, {"resnet18", 11689512}, {"resnet34", 21797672}};
    for (size_t i = 0; i < SN_LEN(rows); i++) {
        snug_model *model = zoo(rows[i].spec, 0);
        assert_int_equal(snug_model_trainable_parameters(model), rows[i].trainable);
        int64_t shape[4];
        assert_int_equal(snug_model_output_shape(model, shape), 1);
        assert_int_equal(shape[0], 1000);
        assert_true(snug_model_ends_in_softmax(model));
        snug_model_free(model);
    }
}

/* Worked by hand: 784*128+128 + 128*128+128 + 128*10+10; and 3x3 convolutions without bias, two
 * BatchNorms of 4 numbers a channel, 7*7*64 features. */
static void small_ones(void **state)
{
    snug_model *mlp = zoo("mlp", 0), *cnn = zoo("cnn", 0);
    assert_int_equal(snug_model_parameters(mlp), 100480 + 16512 + 1290);
    assert_int_equal(snug_model_parameters(cnn),
                     288 + 4 * 32 + 9 * 32 * 64 + 4 * 64 + 3136 * 128 + 128 + 1290);
    assert_int_equal(snug_model_trainable_parameters(cnn), snug_model_parameters(cnn) - 2 * 96);
    assert_true(snug_model_has_batch_norm(cnn));
    assert_false(snug_model_has_batch_norm(mlp));
    snug_model_free(mlp);
    snug_model_free(cnn);
    mlp = zoo("mlp:depth=1,dense=7,classes=3", 5);
    assert_int_equal(snug_model_parameters(mlp), 25 * 7 + 7 + 7 * 3 + 3);
    snug_model_free(mlp);
}

static void every_width_builds(void **state)
{
    static const char *const widths[] = {"0.25", "0.5", "0.75", "1.25", "2"};
    size_t n;
    const char *const *names = snug_zoo_names(&n);
    assert_int_equal(n, 12);
    for (size_t i = 0; i < n; i++) {
        uint64_t before = 0;
        for (size_t w = 0; w < SN_LEN(widths); w++) {
            char spec[64];
            snprintf(spec, sizeof spec, "%s:width=%s,classes=3", names[i], widths[w]);
            snug_model *model = zoo(spec, 37);
            int64_t shape[4];
            assert_int_equal(snug_model_output_shape(model, shape), 1);
            assert_int_equal(shape[0], 3);
            assert_true(snug_model_parameters(model) > before);
            before = snug_model_parameters(model);
            snug_model_free(model);
        }
    }
}

static void images_that_are_not_square(void **state)
{
    snug_error err = SNUG_ERROR_INIT;
    snug_model *model;
    assert_ok(snug_model_zoo(&model, "mobilenetv2", 97, 64, 1, 5, &err), &err);
    int64_t shape[4];
    assert_int_equal(snug_model_input_shape(model, shape), 3);
    assert_int_equal(shape[0], 97);
    assert_int_equal(shape[1], 64);
    assert_int_equal(shape[2], 1);
    snug_model_free(model);
}

/* Same weights as with a softmax, but the last numbers come out as they are. */
static void a_linear_head(void **state)
{
    size_t n;
    const char *const *names = snug_zoo_names(&n);
    for (size_t i = 0; i < n; i++) {
        char spec[64];
        snprintf(spec, sizeof spec, "%s:classes=2", names[i]);
        snug_model *with = zoo(spec, 37);
        snprintf(spec, sizeof spec, "%s:classes=2,head=linear", names[i]);
        snug_model *without = zoo(spec, 37);
        assert_true(snug_model_ends_in_softmax(with));
        assert_false(snug_model_ends_in_softmax(without));
        assert_true(snug_model_parameters(with) == snug_model_parameters(without));
        snug_model_free(with);
        snug_model_free(without);
    }
}

static void bad_specifications(void **state)
{
    static const struct {
        const char *spec;
        int64_t side;
        snug_status status;
        const char *says;
    } rows[] = {
        {"resnet5", 0, SNUG_E_NOT_FOUND, "resnet50"},
        {"", 0, SNUG_E_NOT_FOUND, "mobilenet"},
        {":width=1", 0, SNUG_E_NOT_FOUND, "mobilenet"},
        {"something quite different", 0, SNUG_E_NOT_FOUND, "vgg16"},
        {"mobilenet:width=0.1", 0, SNUG_E_USAGE, "0.25..2"},
        {"mobilenet:width=nan", 0, SNUG_E_USAGE, "0.25..2"},
        {"mobilenet:width=", 0, SNUG_E_USAGE, "name=value"},
        {"mobilenet:width", 0, SNUG_E_USAGE, "name=value"},
        {"mobilenet:=1", 0, SNUG_E_USAGE, "name=value"},
        {"mobilenet:dense=5", 0, SNUG_E_USAGE, "takes width, classes, head"},
        {"mobilenet:head=relu", 0, SNUG_E_USAGE, "neither softmax nor linear"},
        {"vgg16:dense=0", 0, SNUG_E_USAGE, "1..65536"},
        {"vgg16:depth=3", 0, SNUG_E_USAGE, "no parameter 'depth'"},
        {"cnn:depth=9", 0, SNUG_E_USAGE, "1..8"},
        {"mlp:classes=0", 0, SNUG_E_USAGE, "1..1000000"},
        {"mlp:classes=9223372036854775808", 0, SNUG_E_USAGE, "1..1000000"},
        {"mlp:a_name_that_is_longer_than_any_parameter_is=1", 0, SNUG_E_USAGE, "name=value"},
        {"resnet50", 31, SNUG_E_USAGE, "at least 32 x 32"},
        {"squeezenet", 20, SNUG_E_USAGE, "at least 21 x 21"},
        {"mobilenet", -5, SNUG_E_USAGE, "at least 32 x 32"},
        {"resnet50", INT64_MAX / 2, SNUG_E_USAGE, "out of range"},
    };
    for (size_t i = 0; i < SN_LEN(rows); i++) {
        snug_error err = SNUG_ERROR_INIT;
        snug_model *model = (snug_model *)&err;
        snug_status s =
            snug_model_zoo(&model, rows[i].spec, rows[i].side, rows[i].side, 0, 0, &err);
        if (s != rows[i].status)
            fail_msg("%s: %s: %s", rows[i].spec, snug_status_name(s), err.what);
        assert_null(model);
        char whole[400];
        snprintf(whole, sizeof whole, "%s: %s", err.where, err.what);
        assert_contains(whole, rows[i].says);
    }
}

static void leaks_nothing(void **state)
{
    assert_no_leak();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_keras),
                                       cmocka_unit_test(as_published),
                                       cmocka_unit_test(small_ones),
                                       cmocka_unit_test(every_width_builds),
                                       cmocka_unit_test(images_that_are_not_square),
                                       cmocka_unit_test(a_linear_head),
                                       cmocka_unit_test(bad_specifications),
                                       cmocka_unit_test(leaks_nothing)};
    return cmocka_run_group_tests(tests, read_table, NULL);
}
