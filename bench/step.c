/* SPDX-License-Identifier: Apache-2.0
 *
 * step.c - the time and memory of training steps on random images, for bench/peers.py:
 *
 *     bench_step mobilenet 16 2 224 --steps 10 [--profile]
 *     bench_step mobilenet 16 2 224 --serve
 *
 * (model, batch, threads, side) prints one JSON object: best step, peak resident memory, plan.
 * --serve makes a step for each line of stdin and answers with its seconds. SGD with momentum .9,
 * fp32, softmax cross entropy: what the peers' scripts do, too.
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
        while (k < n_sums &&
               (strcmp(sums[k].op, rows[i].op) || strcmp(sums[k].phase, rows[i].phase) ||
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

static float *random_images(int64_t n)
{
    float *x = malloc((size_t)n * sizeof *x);
    unsigned long long random = 1;
    for (int64_t i = 0; x && i < n; i++) {
        random = random * 6364136223846793005ULL + 1442695040888963407ULL;
        x[i] = (float)(random >> 40) / 16777216.0f;
    }
    return x;
}

static int run(snug_session *session, const snug_slot *slot, const char *mode, int steps)
{
    snug_error err = SNUG_ERROR_INIT;
    snug_session_numbers numbers;
    bool serve = strcmp(mode, "--serve") == 0;
    char line[64];
    float loss = 0;
    if (serve) {
        printf("ready %s\n", snug_version());
        fflush(stdout);
    }
    for (int i = 0; serve ? fgets(line, sizeof line, stdin) != NULL : i < steps; i++) {
        if (snug_session_feed(session, slot, &err) || snug_session_step(session, &loss, &err)) {
            return failed(&err);
        }
        snug_session_measure(session, &numbers);
        if (serve) {
            printf("%.6f\n", numbers.last_step_seconds);
            fflush(stdout);
        }
    }
    if (!serve) {
        snug_session_measure(session, &numbers);
        printf("{\"best_step_seconds\": %.6f, \"images_per_second\": %.3f, \"loss\": %.5f, "
               "\"planned_peak_bytes\": %llu, \"measured_peak_bytes\": %llu, "
               "\"process_peak_bytes\": %llu, \"plan_bytes\": %llu}\n",
               numbers.best_step_seconds, (double)slot->n / numbers.best_step_seconds, (double)loss,
               (unsigned long long)numbers.planned_peak_bytes,
               (unsigned long long)numbers.measured_peak_bytes,
               (unsigned long long)numbers.process_peak_bytes,
               (unsigned long long)snug_plan_numbers(snug_session_plan(session))->peak_bytes);
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 6) {
        fprintf(stderr,
                "usage: bench_step MODEL BATCH THREADS SIDE --serve|--steps N [--profile]\n");
        return 2;
    }
    int64_t batch = atoll(argv[2]), side = atoll(argv[4]), shape[4], outputs[4], n = batch;
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
    snug_session_options so = {SNUG_SESSION_DEFAULTS, .profile = profile};
    if (snug_plan_new(&plan, model, &o, &err) || snug_session_open(&session, plan, &so, &err)) {
        return failed(&err);
    }
    int rank = snug_model_input_shape(model, shape);
    for (int i = 0; i < rank; i++) {
        n *= shape[i];
    }
    snug_model_output_shape(model, outputs);
    snug_slot slot = {.x = random_images(n),
                      .classes = malloc((size_t)batch * sizeof(int32_t)),
                      .n = batch,
                      .capacity = batch};
    for (int64_t i = 0; i < batch; i++) {
        slot.classes[i] = (int32_t)(i * 7 % outputs[0]);
    }
    int rc = run(session, &slot, argv[5], argc > 6 ? atoi(argv[6]) : 5);
    if (profile) {
        print_profile(session);
    }
    free(slot.x);
    free(slot.classes);
    snug_session_free(session);
    snug_plan_free(plan);
    snug_model_free(model);
    return rc;
}
