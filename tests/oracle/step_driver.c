/* SPDX-License-Identifier: Apache-2.0
 *
 * step_driver.c - single training steps of a zoo model on orders from standard input, for
 * against_keras.py. Dropout is taken out of the model.
 *
 *     oracle_step_driver MODEL SIDE CHANNELS CLASSES BATCH THREADS
 *
 * says "weight NAME COUNT TRAINED" for each weight and "ready"; then, one a line:
 *
 *     weights FILE    all weights from FILE (float32, in that order); optimizer state is set to
 * zero state FILE      the momentum of the trained ones batch FILE      x, then classes (int32) lr
 * NUMBER step            answers with the loss save FILE       all weights; answers when they are
 * written gradients FILE  the gradients of the trained weights, answers too; see below
 *
 * A step at rate 1 from no momentum leaves exactly the negative gradient in the momentum, also of
 * those weights whose gradients are applied while they are made and exist nowhere else.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/model.h"
#include "snug/session.h"

typedef struct driver {
    snug_model *model;
    snug_plan *plan;
    snug_session *session;
    int64_t batch, n_x;
    float *x, *values;
    int32_t *classes;
    snug_error err;
} driver;

static int failed(const snug_error *err)
{
    fprintf(stderr, "error: %s%s%s\n", err->where, err->where[0] ? ": " : "", err->what);
    return snug_status_exit_code(err->code);
}

static bool moves(driver *d, size_t weight, int slot, bool in, FILE *file, float sign)
{
    snug_weight_info w;
    snug_model_weight(d->model, weight, &w);
    if (in && fread(d->values, sizeof *d->values, w.count, file) != w.count) {
        return false;
    }
    if (in) {
        return !snug_session_set_weight(d->session, weight, slot, d->values, &d->err);
    }
    if (snug_session_weight(d->session, weight, slot, d->values, &d->err)) {
        return false;
    }
    for (uint64_t i = 0; i < w.count; i++) {
        d->values[i] *= sign;
    }
    return fwrite(d->values, sizeof *d->values, w.count, file) == w.count;
}

/* slot -1: all weights; 0: the momentum of the trained ones. */
static bool move_all(driver *d, const char *path, int slot, bool in, float sign)
{
    FILE *file = fopen(path, in ? "rb" : "wb");
    bool ok = file != NULL;
    for (size_t i = 0; i < snug_model_n_weights(d->model) && ok; i++) {
        snug_weight_info w;
        snug_model_weight(d->model, i, &w);
        if (slot < 0 || w.trainable) {
            ok = moves(d, i, slot, in, file, sign);
        }
    }
    return file && fclose(file) == 0 && ok;
}

static bool clear_state(driver *d)
{
    bool ok = true;
    for (size_t i = 0; i < snug_model_n_weights(d->model) && ok; i++) {
        snug_weight_info w;
        snug_model_weight(d->model, i, &w);
        if (w.trainable) {
            memset(d->values, 0, w.count * sizeof *d->values);
            ok = !snug_session_set_weight(d->session, i, 0, d->values, &d->err);
        }
    }
    return ok;
}

static bool feed(driver *d, const char *path)
{
    FILE *file = fopen(path, "rb");
    size_t n = (size_t)d->batch;
    bool ok = file && fread(d->x, sizeof *d->x, (size_t)d->n_x, file) == (size_t)d->n_x &&
              fread(d->classes, sizeof *d->classes, n, file) == n;
    if (file) {
        fclose(file);
    }
    snug_slot slot = {.x = d->x, .classes = d->classes, .n = d->batch, .capacity = d->batch};
    return ok && !snug_session_feed(d->session, &slot, &d->err);
}

static bool obey(driver *d, const char *verb, const char *argument)
{
    if (strcmp(verb, "weights") == 0) {
        return move_all(d, argument, -1, true, 1) && clear_state(d);
    }
    if (strcmp(verb, "state") == 0) {
        return move_all(d, argument, 0, true, 1);
    }
    if (strcmp(verb, "save") == 0 || strcmp(verb, "gradients") == 0) {
        bool gradients = verb[0] == 'g';
        bool ok = move_all(d, argument, gradients ? 0 : -1, false, gradients ? -1 : 1);
        puts("saved");
        return ok;
    }
    if (strcmp(verb, "batch") == 0) {
        return feed(d, argument);
    }
    if (strcmp(verb, "lr") == 0) {
        snug_session_set_lr(d->session, strtof(argument, NULL));
        return true;
    }
    float loss;
    if (strcmp(verb, "step") != 0 || snug_session_step(d->session, &loss, &d->err)) {
        return false;
    }
    printf("%.9g\n", (double)loss);
    return true;
}

static snug_status open_session(driver *d, char **argv)
{
    int64_t side = atoll(argv[2]), channels = atoll(argv[3]);
    d->batch = atoll(argv[5]);
    snug_status s =
        snug_model_zoo(&d->model, argv[1], side, side, channels, atoll(argv[4]), &d->err);
    if (s) {
        return s;
    }
    for (size_t i = 0; i < d->model->nodes.n; i++) {
        if (d->model->nodes.at[i].op == SN_OP_DROPOUT) {
            d->model->nodes.at[i].attrs.dropout.rate = 0;
        }
    }
    snug_plan_options o = {SNUG_PLAN_DEFAULTS, .batch = d->batch, .threads = atoi(argv[6]),
                           .optimizer = {SNUG_SGD, .lr = .01f, .momentum = .9f}};
    s = snug_plan_new(&d->plan, d->model, &o, &d->err);
    return s ? s : snug_session_open(&d->session, d->plan, NULL, &d->err);
}

static bool prepare(driver *d)
{
    int64_t shape[4];
    int rank = snug_model_input_shape(d->model, shape);
    uint64_t most = 1;
    d->n_x = d->batch;
    for (int i = 0; i < rank; i++) {
        d->n_x *= shape[i];
    }
    for (size_t i = 0; i < snug_model_n_weights(d->model); i++) {
        snug_weight_info w;
        snug_model_weight(d->model, i, &w);
        most = w.count > most ? w.count : most;
        printf("weight %s %" PRIu64 " %d\n", w.name, w.count, w.trainable);
    }
    printf("ready\n");
    fflush(stdout);
    d->x = malloc((size_t)d->n_x * sizeof *d->x);
    d->classes = malloc((size_t)d->batch * sizeof *d->classes);
    d->values = malloc(most * sizeof *d->values);
    return d->x && d->classes && d->values;
}

int main(int argc, char **argv)
{
    driver d = {.err = SNUG_ERROR_INIT};
    char line[1100], verb[16], argument[1024];
    if (argc != 7) {
        fprintf(stderr, "usage: %s MODEL SIDE CHANNELS CLASSES BATCH THREADS\n", argv[0]);
        return 2;
    }
    if (open_session(&d, argv)) {
        return failed(&d.err);
    }
    bool ok = prepare(&d);
    while (ok && fgets(line, sizeof line, stdin)) {
        argument[0] = 0;
        ok = sscanf(line, "%15s %1023[^\n]", verb, argument) >= 1 && obey(&d, verb, argument);
        fflush(stdout);
    }
    free(d.x);
    free(d.classes);
    free(d.values);
    snug_session_free(d.session);
    snug_plan_free(d.plan);
    snug_model_free(d.model);
    return ok ? 0 : failed(&d.err);
}
