/* SPDX-License-Identifier: Apache-2.0
 *
 * step.c - the time and memory of training steps on random images, for bench/peers.py:
 *
 *     bench_step mobilenet 16 2 10 [height] [--profile]
 *
 * (model, batch, threads, steps) prints one JSON object: best step, peak resident memory, plan.
 * SGD with momentum .9, fp32, softmax cross entropy: what the peers' scripts do, too.
 */
#include <snug/snug.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failed(const snug_error *err)
{
    fprintf(stderr, "error: %s%s%s\n", err->where, err->where[0] ? ": " : "", err->what);
    return snug_status_exit_code(err->code);
}

/* Sums of seconds by operator and by kernel, largest first. */
static void print_profile(const snug_session *session)
{
    const snug_profile_row *rows;
    size_t n = snug_session_profile(session, &rows);
    struct sum {
        const char *op, *kernel, *phase;
        double seconds;
        int count;
    } sums[256];
    size_t n_sums = 0;
    double all = 0;
    for (size_t i = 0; i < n; i++) {
        size_t k = 0;
        while (k < n_sums && (strcmp(sums[k].op, rows[i].op) || strcmp(sums[k].phase, rows[i].phase) ||
                              strcmp(sums[k].kernel, rows[i].kernel))) {
            k++;
        }
        if (k == n_sums && n_sums < 256) {
            sums[n_sums++] = (struct sum){rows[i].op, rows[i].kernel, rows[i].phase, 0, 0};
        }
        sums[k].seconds += rows[i].seconds;
        sums[k].count++;
        all += rows[i].seconds;
    }
    for (size_t done = 0; done < n_sums; done++) {
        size_t best = 0;
        for (size_t k = 1; k < n_sums; k++) {
            best = sums[k].seconds > sums[best].seconds ? k : best;
        }
        fprintf(stderr, "%8.2f ms %5.1f %%  %4d x %-20s %-28s %s\n", 1e3 * sums[best].seconds,
                100 * sums[best].seconds / all, sums[best].count, sums[best].op, sums[best].kernel,
                sums[best].phase);
        sums[best].seconds = -1;
    }
    fprintf(stderr, "%8.2f ms in all\n", 1e3 * all);
}

int main(int argc, char **argv)
{
    if (argc < 5) {
        fprintf(stderr, "usage: bench_step MODEL BATCH THREADS STEPS [SIDE] [--profile]\n");
        return 2;
    }
    int64_t batch = atoll(argv[2]), side = argc > 5 && argv[5][0] != '-' ? atoll(argv[5]) : 0;
    int steps = atoi(argv[4]);
    bool profile = strcmp(argv[argc - 1], "--profile") == 0;
    snug_error err = SNUG_ERROR_INIT;
    snug_model *model;
    snug_plan *plan;
    snug_session *session;
    if (snug_model_zoo(&model, argv[1], side, side, 0, 0, &err)) {
        return failed(&err);
    }
    snug_plan_options o = {SNUG_PLAN_DEFAULTS, .batch = batch, .threads = atoi(argv[3]),
                           .optimizer = {SNUG_SGD, .lr = .01f, .momentum = .9f}};
    if (snug_plan_new(&plan, model, &o, &err)) {
        return failed(&err);
    }
    snug_session_options so = {SNUG_SESSION_DEFAULTS, .profile = profile};
    if (snug_session_open(&session, plan, &so, &err)) {
        return failed(&err);
    }
    int64_t shape[4], n = batch;
    int rank = snug_model_input_shape(model, shape);
    for (int i = 0; i < rank; i++) {
        n *= shape[i];
    }
    snug_slot slot = {.x = malloc((size_t)n * sizeof(float)),
                      .classes = malloc((size_t)batch * sizeof(int32_t)),
                      .n = batch,
                      .capacity = batch};
    int64_t outputs[4];
    snug_model_output_shape(model, outputs);
    unsigned long long random = 1;
    for (int64_t i = 0; i < n; i++) {
        random = random * 6364136223846793005ULL + 1442695040888963407ULL;
        slot.x[i] = (float)(random >> 40) / 16777216.0f;
    }
    for (int64_t i = 0; i < batch; i++) {
        slot.classes[i] = (int32_t)(i * 7 % outputs[0]);
    }
    float loss = 0;
    for (int i = 0; i < steps; i++) {
        if (snug_session_feed(session, &slot, &err) || snug_session_step(session, &loss, &err)) {
            return failed(&err);
        }
    }
    snug_session_numbers numbers;
    snug_session_measure(session, &numbers);
    printf("{\"best_step_seconds\": %.6f, \"images_per_second\": %.3f, \"loss\": %.5f, "
           "\"planned_peak_bytes\": %llu, \"measured_peak_bytes\": %llu, "
           "\"process_peak_bytes\": %llu}\n",
           numbers.best_step_seconds, (double)batch / numbers.best_step_seconds, (double)loss,
           (unsigned long long)numbers.planned_peak_bytes,
           (unsigned long long)numbers.measured_peak_bytes,
           (unsigned long long)numbers.process_peak_bytes);
    if (profile) {
        print_profile(session);
    }
    free(slot.x);
    free(slot.classes);
    snug_session_free(session);
    snug_plan_free(plan);
    snug_model_free(model);
    return 0;
}
