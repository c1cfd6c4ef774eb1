/* SPDX-License-Identifier: Apache-2.0
 *
 * test_plan.c - plans by the public interface, for cards that are not here: their numbers, budgets,
 * the largest batch, fixes, JSON, and what happens when memory runs out while planning.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/ledger.h"
#include "plan/plan.h"

static snug_model *zoo(const char *spec, int64_t side, int64_t classes)
{
    snug_error err = SNUG_ERROR_INIT;
    snug_model *m;
    if (snug_model_zoo(&m, spec, side, side, 3, classes, &err))
        fail_msg("%s: %s", spec, err.what);
    return m;
}

static snug_plan *plan_of(const snug_model *m, snug_plan_options o, snug_status expected,
                          snug_error *err)
{
    snug_error own = SNUG_ERROR_INIT;
    snug_plan *p;
    err = err ? err : &own;
    snug_status s = snug_plan_new(&p, m, &o, err);
    if (s != expected)
        fail_msg("%s: %s", snug_status_name(s), s ? err->what : "");
    return p;
}

#define OPTIONS(...) ((snug_plan_options){SNUG_PLAN_DEFAULTS, __VA_ARGS__})
#define CARD "null:64GiB,tflops=1.8,gbps=106"

/* ---- numbers --------------------------------------------------------------------------------- */

static void zoo_is_placed_tightly(void **state)
{
    static const char *const models[] = {"mlp",         "cnn",        "mobilenet",
                                         "mobilenetv2", "squeezenet", "vgg16",
                                         "resnet18",    "resnet50",   "resnet152"};
    static const int64_t batches[] = {1, 2, 7, 16};
    double worst = 0;
    for (size_t i = 0; i < SN_LEN(models); i++) {
        snug_model *m = zoo(models[i], i < 2 ? 28 : 224, 1000);
        for (size_t b = 0; b < SN_LEN(batches); b++) {
            snug_plan *p = plan_of(m, OPTIONS(.batch = batches[b], .device = CARD), SNUG_OK, NULL);
            const snug_plan_info *n = snug_plan_numbers(p);
            uint64_t sum = 0;
            for (int k = 0; k < SNUG_N_BYTES_KINDS; k++)
                sum += n->kind_bytes[k];
            assert_int_equal(sum, n->arena_peak_bytes);
            assert_int_equal(n->peak_bytes, n->arena_peak_bytes);
            assert_int_equal(snug_plan_arena_bytes(p), n->arena_peak_bytes);
            double ratio = (double)n->arena_peak_bytes / (double)n->arena_lower_bound_bytes;
            assert_true(ratio >= 1);
            if (ratio > 1.001)
                print_message("%s, batch %d: peak / lower bound %.4f\n", models[i], (int)batches[b],
                              ratio);
            worst = SN_MAX(worst, ratio);
            assert_true(n->step_seconds > 0);
            snug_plan_free(p);
        }
        snug_model_free(m);
    }
    print_message("worst peak / lower bound: %.4f\n", worst);
    assert_true(worst <= 1.02);
}

/* MONeT's baselines (README of utsaslab/MONeT, GB of 2^30, PyTorch): within 20 %. */
static void keep_all_is_what_others_take(void **state)
{
    static const struct {
        const char *model;
        int64_t batch;
        double gib;
    } points[] = {{"resnet50", 184, 15.06}, {"mobilenet", 272, 14.46}, {"vgg16", 176, 14.12}};
    for (size_t i = 0; i < SN_LEN(points); i++) {
        snug_model *m = zoo(points[i].model, 224, 1000);
        snug_plan *p = plan_of(
            m, OPTIONS(.batch = points[i].batch, .device = CARD, .optimizer = {.momentum = 0.9f}),
            SNUG_OK, NULL);
        const snug_plan_info *n = snug_plan_numbers(p);
        double gib = (double)n->keep_all_peak_bytes / (double)SN_GIB;
        print_message("%s b%d: keeping everything %.2f GiB (PyTorch %.2f), planned %.2f\n",
                      points[i].model, (int)points[i].batch, gib, points[i].gib,
                      (double)n->peak_bytes / (double)SN_GIB);
        assert_true(gib > 0.8 * points[i].gib && gib < 1.2 * points[i].gib);
        assert_true(n->peak_bytes < n->keep_all_peak_bytes);
        snug_plan_free(p);
        snug_model_free(m);
    }
}

/* 138 M weights, and never 550 MB of gradients. */
static void gradients_go_at_once(void **state)
{
    snug_model *m = zoo("vgg16", 224, 1000);
    snug_plan *p = plan_of(m, OPTIONS(.batch = 2, .device = CARD, .optimizer = {.momentum = 0.9f}),
                           SNUG_OK, NULL);
    const sn_program *program = sn_plan_program(p, SN_GRAPH_TRAIN);
    uint64_t most = 0;
    for (uint32_t i = 0; i < program->n_instrs; i++) {
        uint64_t live = 0;
        for (size_t b = 0; b < program->n_buffers; b++)
            if (program->buffers[b].kind == SN_BYTES_GRADIENTS && program->buffers[b].first <= i &&
                i <= program->buffers[b].last)
                live += program->buffers[b].bytes;
        most = SN_MAX(most, live);
    }
    assert_true(most < 32 * SN_MIB);
    bool found = false;
    for (size_t i = 0; i < snug_plan_n_choices(p); i++) {
        const snug_choice *c = snug_plan_choice(p, i);
        assert_string_equal(c->result, "identical");
        found = found || (!strcmp(c->remedy, "fused-update") && c->saves_bytes > 500 * SN_MIB);
    }
    assert_true(found);
    assert_null(snug_plan_choice(p, snug_plan_n_choices(p)));
    snug_plan_free(p);
    snug_model_free(m);
}

static void same_plan_every_time(void **state)
{
    snug_model *m = zoo("mobilenet", 96, 10);
    char *text[2];
    for (int i = 0; i < 2; i++) {
        snug_plan *p = plan_of(m, OPTIONS(.batch = 5, .device = CARD), SNUG_OK, NULL);
        text[i] = snug_plan_csv(p);
        snug_plan_free(p);
    }
    assert_true(strlen(text[0]) > 1000);
    assert_string_equal(text[0], text[1]);
    snug_text_free(text[0]);
    snug_text_free(text[1]);
    snug_model_free(m);
}

static void programs_of_a_purpose(void **state)
{
    snug_model *m = zoo("cnn", 28, 10);
    for (int purpose = SNUG_PLAN_TRAIN; purpose <= SNUG_PLAN_PREDICT; purpose++) {
        snug_plan *p =
            plan_of(m, OPTIONS(.batch = 4, .device = CARD, .purpose = (snug_plan_purpose)purpose),
                    SNUG_OK, NULL);
        for (int mode = 0; mode < 3; mode++)
            assert_int_equal(sn_plan_program(p, (sn_graph_mode)mode) != NULL, mode >= purpose);
        char *text = snug_plan_program_text(p, SNUG_PLAN_PREDICT);
        assert_non_null(strstr(text, "conv2d"));
        snug_text_free(text);
        text = snug_plan_program_text(p, SNUG_PLAN_TRAIN);
        assert_int_equal(text[0] != '\0', purpose == SNUG_PLAN_TRAIN);
        snug_text_free(text);
        text = snug_plan_why(p);
        assert_non_null(strstr(text, "conv2d"));
        snug_text_free(text);
        snug_plan_free(p);
    }
    snug_model_free(m);
}

/* ---- budgets --------------------------------------------------------------------------------- */

static bool fits(const snug_model *m, int64_t batch, uint64_t bytes)
{
    snug_plan *p;
    snug_plan_options o = OPTIONS(.batch = batch, .device = CARD, .memory_bytes = bytes);
    snug_status s = snug_plan_new(&p, m, &o, NULL);
    assert_non_null(p);
    snug_plan_free(p);
    return s == SNUG_OK;
}

static void budgets(void **state)
{
    snug_error err = SNUG_ERROR_INIT;
    snug_model *m = zoo("cnn", 28, 10);
    snug_plan *p = plan_of(m, OPTIONS(.batch = 8, .device = CARD), SNUG_OK, NULL);
    uint64_t peak = snug_plan_numbers(p)->peak_bytes;
    assert_true(snug_plan_numbers(p)->budget_is_free_memory);
    assert_int_equal(snug_plan_numbers(p)->budget_bytes, 64 * SN_GIB);
    snug_plan_free(p);
    assert_true(fits(m, 8, peak));
    assert_false(fits(m, 8, peak - 1));
    p = plan_of(m, OPTIONS(.batch = 8, .device = CARD, .memory_bytes = peak - 1),
                SNUG_E_DOES_NOT_FIT, &err);
    assert_int_equal(err.need, peak);
    assert_int_equal(err.have, peak - 1);
    assert_false(snug_plan_numbers(p)->fits);
    snug_plan_free(p);
    for (uint64_t budget = peak / 4; budget < peak * 40; budget = budget * 5 / 3) {
        int64_t largest;
        p = NULL;
        snug_plan_options o = OPTIONS(.batch = 8, .device = CARD, .memory_bytes = budget);
        snug_plan_new(&p, m, &o, NULL);
        assert_int_equal(snug_plan_largest_batch(p, &largest, &err), SNUG_OK);
        assert_true(!largest || fits(m, largest, budget));
        assert_false(fits(m, largest + 1, budget));
        snug_plan_free(p);
    }
    snug_model_free(m);
}

static void auto_batch(void **state)
{
    snug_model *m = zoo("cnn", 28, 10);
    static const struct {
        uint64_t n_samples;
        int64_t batch;
    } cases[] = {{0, 32}, {1000, 32}, {319, 16}, {80, 8}, {19, 1}, {3, 1}};
    for (size_t i = 0; i < SN_LEN(cases); i++) {
        snug_plan *p =
            plan_of(m, OPTIONS(.n_samples = cases[i].n_samples, .device = CARD), SNUG_OK, NULL);
        assert_int_equal(snug_plan_numbers(p)->batch, cases[i].batch);
        assert_true(!cases[i].n_samples || snug_plan_numbers(p)->epoch_seconds > 0);
        snug_plan_free(p);
    }
    snug_plan *p = plan_of(m, OPTIONS(.batch = 4, .device = CARD), SNUG_OK, NULL);
    uint64_t four = snug_plan_numbers(p)->peak_bytes;
    snug_plan_free(p);
    p = plan_of(m, OPTIONS(.device = CARD, .memory_bytes = four + four / 100), SNUG_OK, NULL);
    assert_int_equal(snug_plan_numbers(p)->batch, 4);
    snug_plan_free(p);
    p = plan_of(m, OPTIONS(.device = CARD, .memory_bytes = 1), SNUG_E_DOES_NOT_FIT, NULL);
    assert_int_equal(snug_plan_numbers(p)->batch, 1);
    snug_plan_free(p);
    snug_model_free(m);
}

/* VGG16's first dense layer is 411 MB; a card of 1 GB gives 256 MB at once. */
static void larger_than_a_slab(void **state)
{
    snug_error err = SNUG_ERROR_INIT;
    snug_model *m = zoo("vgg16", 224, 1000);
    snug_plan *p =
        plan_of(m, OPTIONS(.batch = 1, .device = "null:1GiB"), SNUG_E_DOES_NOT_FIT, &err);
    assert_non_null(p);
    assert_non_null(strstr(err.what, "fc1/kernel"));
    assert_int_equal(err.have, 256 * SN_MIB);
    assert_true(snug_plan_numbers(p)->peak_bytes > 500 * SN_MIB);
    int64_t largest;
    assert_int_equal(snug_plan_largest_batch(p, &largest, &err), SNUG_OK);
    assert_int_equal(largest, 0);
    snug_plan_free(p);
    snug_model_free(m);
}

/* ---- options --------------------------------------------------------------------------------- */

static void options_that_make_no_sense(void **state)
{
    snug_model *m = zoo("cnn", 28, 10);
    snug_plan_options bad[] = {OPTIONS(.batch = -1),
                               OPTIONS(.batch = INT64_MAX),
                               OPTIONS(.threads = -1),
                               OPTIONS(.device = "gpu:0"),
                               OPTIONS(.purpose = (snug_plan_purpose)9),
                               OPTIONS(.loss = {.kind = (snug_loss_kind)77}),
                               OPTIONS(.loss = {.smoothing = 1}),
                               OPTIONS(.loss = {.kind = SNUG_LOSS_HUBER, .delta = -1}),
                               OPTIONS(.optimizer = {.kind = (snug_optimizer_kind)99}),
                               OPTIONS(.optimizer = {.lr = -1}),
                               OPTIONS(.optimizer = {.nesterov = true}),
                               OPTIONS(.optimizer = {.clip_norm = 1, .clip_value = 1}),
                               {.batch = 1}};
    for (size_t i = 0; i < SN_LEN(bad); i++) {
        snug_plan *p = (snug_plan *)&bad;
        snug_error err = SNUG_ERROR_INIT;
        if (snug_plan_new(&p, m, &bad[i], &err) != SNUG_E_USAGE)
            fail_msg("options %zu were taken", i);
        assert_null(p);
        assert_true(strlen(err.what) > 10);
    }
    snug_plan *p;
    snug_plan_options o = OPTIONS(.batch = 1);
    assert_int_equal(snug_plan_new(&p, NULL, &o, NULL), SNUG_E_USAGE);
    assert_int_equal(snug_plan_new(&p, m, NULL, NULL), SNUG_E_USAGE);
    snug_plan_free(NULL);
    snug_model_free(m);
}

static void optimizers(void **state)
{
    snug_optimizer o;
    assert_int_equal(snug_optimizer_parse(&o, "sgd:lr=0.25,momentum=0.9,nesterov", NULL), SNUG_OK);
    assert_true(o.kind == SNUG_SGD && o.lr == 0.25f && o.momentum == 0.9f && o.nesterov);
    assert_int_equal(snug_optimizer_parse(&o, "adam", NULL), SNUG_OK);
    assert_true(o.lr == 0.001f && o.beta1 == 0.9f && o.beta2 == 0.999f && o.epsilon == 1e-7f);
    assert_int_equal(snug_optimizer_parse(&o, "adamw", NULL), SNUG_OK);
    assert_true(o.weight_decay == 0.004f);
    assert_int_equal(snug_optimizer_parse(&o, "adamw:weight_decay=0", NULL), SNUG_OK);
    assert_true(o.weight_decay == 0);
    assert_int_equal(snug_optimizer_parse(&o, "lion", NULL), SNUG_OK);
    assert_true(o.beta2 == 0.99f);
    assert_int_equal(snug_optimizer_parse(&o, "rmsprop:rho=0.8,centered=true", NULL), SNUG_OK);
    assert_true(o.rho == 0.8f && o.centered);
    assert_int_equal(snug_optimizer_parse(&o, "adagrad:clip_global_norm=2", NULL), SNUG_OK);
    assert_true(o.clip_global_norm == 2);
    static const struct {
        const char *text, *part;
    } bad[] = {{"adm", "adam"},
               {"", "there are"},
               {"sgd:beta1=.9", "momentum"},
               {"adam:momentum=1", "beta1"},
               {"sgd:lr", "lr="},
               {"sgd:lr=x", "lr=x"},
               {"sgd:lr=0", "lr=0"},
               {"sgd:lr=-1", "lr=-1"},
               {"sgd:nesterov=maybe", "maybe"},
               {"sgd:nesterov", "momentum"},
               {"sgd:clip_norm=1,clip_value=1", "at most"},
               {"sgd:", "has no"},
               {NULL, "named like"}};
    for (size_t i = 0; i < SN_LEN(bad); i++) {
        snug_error err = SNUG_ERROR_INIT;
        if (snug_optimizer_parse(&o, bad[i].text, &err) != SNUG_E_USAGE ||
            !strstr(err.what, bad[i].part))
            fail_msg("%s: %s", bad[i].text ? bad[i].text : "NULL", err.what);
    }
}

static void losses(void **state)
{
    static const snug_loss_kind kinds[] = {SNUG_LOSS_SOFTMAX, SNUG_LOSS_SIGMOID, SNUG_LOSS_MSE,
                                           SNUG_LOSS_MAE, SNUG_LOSS_HUBER};
    snug_model *m = zoo("mlp", 28, 1);
    for (size_t i = 0; i < SN_LEN(kinds); i++) {
        snug_plan *p = plan_of(m, OPTIONS(.batch = 3, .device = CARD, .loss = {.kind = kinds[i]}),
                               SNUG_OK, NULL);
        assert_int_equal(snug_plan_loss(p)->kind, kinds[i]);
        assert_true(snug_plan_loss(p)->delta == 1);
        snug_plan_free(p);
    }
    snug_plan *p = plan_of(m, OPTIONS(.batch = 3, .device = CARD), SNUG_OK, NULL);
    assert_int_not_equal(snug_plan_loss(p)->kind, SNUG_LOSS_AUTO);
    snug_plan_free(p);
    snug_model_free(m);
}

/* ---- advice and JSON ------------------------------------------------------------------------- */

/* The value behind an option in a fix, NULL if it is not there. */
static const char *option(char *copy, size_t n, const char *add, const char *name)
{
    snprintf(copy, n, "%s", add);
    char *at = strstr(copy, name);
    if (!at)
        return NULL;
    at += strlen(name);
    at[strcspn(at, " ")] = '\0';
    return at;
}

/* Planned again with the fix, as the command would: it fits. */
static void apply(const snug_plan_fix *fix, const char *spec, snug_plan_options o)
{
    char copy[200], model[100];
    const char *v;
    int64_t side = 224;
    if ((v = option(copy, sizeof copy, fix->add, "-b ")))
        o.batch = atoll(v);
    if ((v = option(copy, sizeof copy, fix->add, "--optimizer ")))
        assert_int_equal(snug_optimizer_parse(&o.optimizer, v, NULL), SNUG_OK);
    if ((v = option(copy, sizeof copy, fix->add, "-s ")))
        side = atoll(v);
    if ((v = option(copy, sizeof copy, fix->add, "-M ")))
        assert_true(sn_parse_size(v, &o.memory_bytes));
    if ((v = option(copy, sizeof copy, fix->add, "-m "))) {
        snprintf(model, sizeof model, "%s", v);
        spec = model;
    }
    snug_model *m = zoo(spec, side, 1000);
    snug_plan *p = plan_of(m, o, SNUG_OK, NULL);
    assert_true(snug_plan_numbers(p)->peak_bytes <= fix->peak_bytes);
    assert_true(snug_plan_numbers(p)->peak_bytes <= o.memory_bytes);
    snug_plan_free(p);
    snug_model_free(m);
}

static void every_fix_fits(void **state)
{
    static const struct {
        const char *model, *optimizer;
        int64_t batch;
        uint64_t mib;
        bool alone; /* one fix only: more memory */
    } cases[] = {{"vgg16", "adam", 2, 1500, false},
                 {"resnet50", "sgd:momentum=0.9", 64, 1800, false},
                 {"mobilenet", "adam", 16, 60, false},
                 {"resnet50", "adam", 8, 20, false},
                 {"squeezenet", "sgd", 4, 1, true}};
    for (size_t i = 0; i < SN_LEN(cases); i++) {
        snug_model *m = zoo(cases[i].model, 224, 1000);
        snug_plan_options o =
            OPTIONS(.batch = cases[i].batch, .device = CARD, .memory_bytes = cases[i].mib * SN_MIB);
        assert_int_equal(snug_optimizer_parse(&o.optimizer, cases[i].optimizer, NULL), SNUG_OK);
        snug_plan *p = plan_of(m, o, SNUG_E_DOES_NOT_FIT, NULL);
        snug_advise_options a = {SNUG_ADVISE_DEFAULTS, .model = cases[i].model, .classes = 1000};
        assert_int_equal(snug_plan_advise(p, &a, NULL), SNUG_OK);
        assert_true(snug_plan_n_fixes(p) >= 1);
        char *reason = snug_plan_reason(p);
        assert_true(strlen(reason) > 20);
        snug_text_free(reason);
        for (size_t f = 0; f < snug_plan_n_fixes(p); f++) {
            snug_plan_fix fix;
            snug_plan_fix_at(p, f, &fix);
            if (cases[i].alone)
                assert_non_null(strstr(fix.add, "-M "));
            apply(&fix, cases[i].model, o);
        }
        snug_plan_free(p);
        snug_model_free(m);
    }
}

static void no_advice_without_need(void **state)
{
    snug_model *m = zoo("cnn", 28, 10);
    snug_plan *p = plan_of(m, OPTIONS(.batch = 2, .device = CARD), SNUG_OK, NULL);
    assert_int_equal(snug_plan_advise(p, NULL, NULL), SNUG_OK);
    assert_int_equal(snug_plan_n_fixes(p), 0);
    snug_advise_options old = {.struct_size = 3};
    assert_int_equal(snug_plan_advise(p, &old, NULL), SNUG_E_USAGE);
    snug_plan_free(p);
    snug_model_free(m);
}

static void json(void **state)
{
    static const char *const wholes[] = {"batch",
                                         "micro_batch",
                                         "largest_batch",
                                         "device_free_bytes",
                                         "budget_bytes",
                                         "peak_bytes",
                                         "runtime_bytes",
                                         "host_bytes",
                                         "keep_all_peak_bytes",
                                         "smallest_budget_bytes",
                                         "smallest_identical_budget_bytes"};
    snug_model *m = zoo("mobilenet", 64, 7);
    snug_plan *p = plan_of(
        m, OPTIONS(.batch = 16, .device = CARD, .n_samples = 100, .memory_bytes = 20 * SN_MIB),
        SNUG_E_DOES_NOT_FIT, NULL);
    snug_advise_options a = {SNUG_ADVISE_DEFAULTS, .model = "mobilenet", .classes = 7};
    assert_int_equal(snug_plan_advise(p, &a, NULL), SNUG_OK);
    char *text = snug_plan_json(p, NULL);
    json_t *o = json_loads(text, 0, NULL);
    assert_non_null(o);
    for (size_t i = 0; i < SN_LEN(wholes); i++)
        if (!json_is_integer(json_object_get(o, wholes[i])))
            fail_msg("%s is missing", wholes[i]);
    assert_true(json_is_false(json_object_get(o, "fits")));
    assert_true(json_is_real(json_object_get(o, "step_seconds")));
    assert_true(json_is_real(json_object_get(o, "epoch_seconds")));
    json_t *model = json_object_get(o, "model"), *arena = json_object_get(o, "arena");
    assert_int_equal(json_integer_value(json_object_get(model, "classes")), 7);
    assert_int_equal(json_integer_value(json_array_get(json_object_get(model, "input"), 0)), 64);
    json_int_t sum = 0;
    const char *key;
    json_t *value;
    json_object_foreach(json_object_get(arena, "by_kind"), key, value) sum +=
        json_integer_value(value);
    assert_int_equal(sum, json_integer_value(json_object_get(arena, "peak_bytes")));
    json_t *fix = json_array_get(json_object_get(o, "fixes"), 0);
    assert_true(json_is_string(json_object_get(fix, "add")));
    assert_true(json_is_integer(json_object_get(fix, "peak_bytes")));
    json_decref(o);
    snug_text_free(text);
    snug_plan_free(p);
    snug_model_free(m);
}

/* ---- when memory runs out while planning ----------------------------------------------------- */

static void every_allocation_fails_once(void **state)
{
    snug_model *m = zoo("cnn", 28, 10);
    snug_plan_options o = OPTIONS(.batch = 4, .device = CARD, .optimizer = {.momentum = 0.9f},
                                  .memory_bytes = SN_MIB);
    uint64_t before = sn_ledger_live_bytes(), nth = 0;
    snug_status s = SNUG_E_MEMORY;
    while (s != SNUG_E_DOES_NOT_FIT) {
        snug_plan *p = NULL;
        snug_error err = SNUG_ERROR_INIT;
        sn_ledger_fail_nth(++nth);
        s = snug_plan_new(&p, m, &o, &err);
        sn_ledger_fail_nth(0);
        if (s != SNUG_E_DOES_NOT_FIT) {
            assert_int_equal(s, SNUG_E_MEMORY);
            assert_null(p);
        }
        snug_plan_free(p);
        assert_int_equal(sn_ledger_live_bytes(), before);
    }
    print_message("%d allocations of a plan failed, one by one\n", (int)nth - 1);
    assert_true(nth > 100);

    snug_plan *p = plan_of(m, o, SNUG_E_DOES_NOT_FIT, NULL);
    snug_advise_options a = {SNUG_ADVISE_DEFAULTS, .model = "cnn", .classes = 10};
    for (nth = 1; nth < 4000; nth += 1 + nth / 16) {
        sn_ledger_fail_nth(nth);
        s = snug_plan_advise(p, &a, NULL);
        sn_ledger_fail_nth(0);
        if (s == SNUG_OK)
            break;
        assert_int_equal(s, SNUG_E_MEMORY);
    }
    sn_ledger_fail_nth(1);
    assert_null(snug_plan_csv(p));
    sn_ledger_fail_nth(1);
    assert_null(snug_plan_program_text(p, SNUG_PLAN_TRAIN));
    sn_ledger_fail_nth(0);
    snug_plan_free(p);
    assert_int_equal(sn_ledger_live_bytes(), before);
    snug_model_free(m);
}

static void leaks_nothing(void **state)
{
    assert_int_equal(sn_ledger_live_bytes(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(zoo_is_placed_tightly),
                                       cmocka_unit_test(keep_all_is_what_others_take),
                                       cmocka_unit_test(gradients_go_at_once),
                                       cmocka_unit_test(same_plan_every_time),
                                       cmocka_unit_test(programs_of_a_purpose),
                                       cmocka_unit_test(budgets),
                                       cmocka_unit_test(auto_batch),
                                       cmocka_unit_test(larger_than_a_slab),
                                       cmocka_unit_test(options_that_make_no_sense),
                                       cmocka_unit_test(optimizers),
                                       cmocka_unit_test(losses),
                                       cmocka_unit_test(every_fix_fits),
                                       cmocka_unit_test(no_advice_without_need),
                                       cmocka_unit_test(json),
                                       cmocka_unit_test(every_allocation_fails_once),
                                       cmocka_unit_test(leaks_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
