/* SPDX-License-Identifier: Apache-2.0
 * A network and a data source of one's own, trained from C: which quarter of a picture is bright?
 *   cc train_from_c.c $(pkg-config --cflags --libs snug) -o train_from_c && ./train_from_c */
#include <snug/snug.h>
#include <stdio.h>
#include <string.h>

enum { SIDE = 16, SAMPLES = 2000 };
static uint64_t at;

static snug_status reset(void *context, uint64_t epoch, uint64_t first, snug_error *err)
{
    (void)context, (void)epoch, (void)err;
    at = first;
    return SNUG_OK;
}

static snug_status next(void *context, snug_slot *slot, snug_error *err)
{
    (void)context, (void)err;
    for (slot->n = 0; slot->n < slot->capacity && at < SAMPLES; slot->n++, at++) {
        int32_t quarter = (int32_t)(at * 7 % 4);
        float *image = slot->x + slot->n * SIDE * SIDE;
        for (int i = 0; i < SIDE * SIDE; i++) {
            int here = (i / SIDE >= SIDE / 2) * 2 + (i % SIDE >= SIDE / 2);
            float noise = (float)((at * 2654435761u + (uint64_t)i * 40503u) % 1000) / 1000;
            image[i] = noise + (here == quarter ? 0.5f : 0);
        }
        slot->classes[slot->n] = quarter;
    }
    slot->next_position = at;
    return SNUG_OK;
}

static int failed(const snug_error *err)
{
    fprintf(stderr, "error: %s%s%s\n", err->where, err->where[0] ? ": " : "", err->what);
    return snug_status_exit_code(err->code);
}

int main(void)
{
    snug_error err = SNUG_ERROR_INIT;
    snug_model *m;
    if (snug_model_new(&m, "quarters", &err))
        return failed(&err);
    snug_tensor x = snug_input(m, SIDE, SIDE, 1);
    x = snug_conv2d(m, x,
                    &(snug_conv_options){SNUG_CONV_DEFAULTS, .filters = 8, .kernel = {3, 3},
                                         .activation = SNUG_RELU});
    x = snug_flatten(m, snug_max_pool2d(m, x, NULL), NULL);
    x = snug_dense(
        m, x, &(snug_dense_options){SNUG_DENSE_DEFAULTS, .units = 4, .activation = SNUG_SOFTMAX});
    if (snug_model_finish(m, x, &err))
        return failed(&err);
    snug_plan_options plan_options = {SNUG_PLAN_DEFAULTS, .batch = 32, .optimizer = {SNUG_ADAM}};
    snug_plan *plan;
    snug_session *session;
    if (snug_plan_new(&plan, m, &plan_options, &err))
        return failed(&err);
    printf("arena: %llu bytes\n", (unsigned long long)snug_plan_arena_bytes(plan));
    if (snug_session_open(&session, plan, NULL, &err))
        return failed(&err);
    snug_train_options options = {SNUG_TRAIN_DEFAULTS, .train = {.next = next, .reset = reset},
                                  .epochs = 3};
    snug_train_result result;
    if (snug_train(session, &options, &result, &err))
        return failed(&err);
    for (size_t i = 0; i < result.n_history; i++)
        printf("epoch %d: loss %.3f, accuracy %.3f\n", (int)i + 1, result.history[i].loss,
               result.history[i].accuracy);
    snug_train_result_deinit(&result);
    snug_session_free(session);
    snug_plan_free(plan);
    snug_model_free(m);
    return snug_live_bytes() == 0 ? 0 : 1;
}
