/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_train.c - `snug train`: plan, train, save, say what happened.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"
#include "progress.h"
#include "score.h"
#include "setup.h"

typedef struct train {
    sn_cli_args args;
    sn_cli_setup setup;
    snug_session *session;
    sn_cli_progress progress;
    snug_train_result result;
    char folder[512];
    char *description;
    char **merged; /* --resume: the run's own command line and this one */
    int n_merged;
    char batch[24];
    snug_score final;
    bool has_final;
} train;

/* ---- resuming: the run's own command line, then what is new on this one ---- */

static int merge_arguments(train *t, int argc, char **argv, json_t **keep)
{
    char file[600];
    int rc;
    *keep = NULL;
    if (t->args.resume)
        snprintf(t->folder, sizeof t->folder, "%s", t->args.resume);
    else if (!sn_cli_newest_run(t->folder, sizeof t->folder))
        return sn_cli_usage("train", "there is no run to resume under runs/");
    snprintf(file, sizeof file, "%s/last.ckpt", t->folder);
    json_t *json = sn_cli_read_description(file, &rc);
    if (!json)
        return rc;
    *keep = json;
    json_t *stored = json_object_get(json, "arguments");
    size_t n = json_array_size(stored);
    char **merged = t->merged = calloc(n + (size_t)argc + 4, sizeof *merged);
    if (!merged)
        return SN_EXIT_FAILED;
    size_t used = 0;
    merged[used++] = argv[0];
    for (size_t i = 0; i < n; i++)
        merged[used++] = (char *)(uintptr_t)json_string_value(json_array_get(stored, i));
    /* "auto" was decided once: the placement, and so the bits, depend on it. */
    snprintf(t->batch, sizeof t->batch, "-b%lld",
             (long long)json_integer_value(json_object_get(json, "batch")));
    merged[used++] = t->batch;
    for (int i = 1; i < argc; i++)
        merged[used++] = argv[i];
    t->n_merged = (int)used;
    rc = sn_cli_parse_args(&t->args, SN_VERB_TRAIN, t->n_merged, merged);
    if (rc < 0 && t->args.n_positional > 1) {
        t->args.positional[0] = t->args.positional[t->args.n_positional - 1];
        t->args.n_positional = 1;
    }
    return rc;
}

/* ---- before the first step ---- */

static int class_weights(train *t)
{
    const char *text = t->args.class_weights;
    size_t n = (size_t)t->setup.n_classes;
    snug_error err = SNUG_ERROR_INIT;
    if (!text)
        return 0;
    float *weights = calloc(n, sizeof *weights);
    if (!weights)
        return SN_EXIT_FAILED;
    double all = 0;
    for (size_t i = 0; i < n; i++) {
        weights[i] = 1;
        all += (double)snug_data_class_count(t->setup.data, i);
    }
    int rc = 0;
    if (!strcmp(text, "auto")) {
        for (size_t i = 0; i < n; i++) {
            double count = (double)snug_data_class_count(t->setup.data, i);
            weights[i] = count > 0 ? (float)(all / ((double)n * count)) : 1;
        }
    } else {
        FILE *file = fopen(text, "r");
        char line[512];
        for (int number = 1; file && !rc && fgets(line, sizeof line, file); number++) {
            char *comma = strrchr(line, ','), *end;
            double value = comma ? strtod(comma + 1, &end) : -1;
            size_t i = 0;
            if (comma)
                *comma = 0;
            while (i < n && strcmp(snug_data_class_name(t->setup.data, i), line))
                i++;
            if (!comma || !(value >= 0) || i == n)
                rc = sn_cli_usage("train", "%s: line %d is not class,weight with a known class",
                                  text, number);
            else
                weights[i] = (float)value;
        }
        if (!file)
            rc = sn_cli_usage("train", "--class-weights %s: %s", text, strerror(errno));
        else
            fclose(file);
    }
    if (!rc && snug_session_class_weights(t->session, weights, n, &err))
        rc = sn_cli_fail(&err);
    free(weights);
    return rc;
}

static int open_session(train *t)
{
    snug_error err = SNUG_ERROR_INIT;
    snug_session_options o = {SNUG_SESSION_DEFAULTS, .seed = t->setup.seed,
                              .profile = t->args.profile};
    if (snug_data_start(t->setup.data, &t->setup.pipe, &err))
        return sn_cli_fail(&err);
    if (snug_session_open(&t->session, t->setup.plan, &o, &err)) {
        if (err.code == SNUG_E_DOES_NOT_FIT) {
            sn_cli_print_plan(stderr, &t->setup, false);
        }
        return sn_cli_fail(&err);
    }
    if (t->args.weights && snug_weights_load(t->session, t->args.weights, &err))
        return sn_cli_fail(&err);
    snug_session_numbers numbers;
    snug_session_measure(t->session, &numbers);
    if (numbers.rehearsal_seconds > 0)
        t->setup.step_seconds = numbers.rehearsal_seconds;
    return class_weights(t);
}

static void print_start(const train *t)
{
    const sn_cli_setup *s = &t->setup;
    if (t->args.quiet)
        return;
    sn_cli_print_plan(stderr, s, false);
    double epoch = s->step_seconds * ceil((double)s->plan_options.n_samples /
                                          (double)snug_plan_numbers(s->plan)->batch);
    time_t end = time(NULL) + (time_t)(epoch * (double)s->epochs);
    char clock[32];
    struct tm tm;
    if (!s->max_steps && epoch * (double)s->epochs > 60 && localtime_r(&end, &tm)) {
        strftime(clock, sizeof clock, "%a %H:%M", &tm);
        fprintf(stderr, "ends     about %s\n", clock);
    }
    fprintf(stderr, "run      %s\n", t->folder);
}

/* ---- after the last ---- */

static json_t *number_or_null(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *skipped_json(const train *t)
{
    json_t *list = json_array();
    uint64_t n = snug_data_n_skipped(t->setup.data);
    for (uint64_t i = 0; i < n && i < 1000; i++) {
        char file[4096], why[256];
        if (!snug_data_skipped(t->setup.data, i, file, sizeof file, why, sizeof why, NULL)) {
            json_t *name = json_string(file);
            json_array_append_new(list,
                                  json_pack("{s:o, s:s}", "file",
                                            name ? name : json_string("(a name that is no UTF-8)"),
                                            "why", why));
        }
    }
    return list;
}

static double convolution_fraction(const train *t)
{
    const snug_profile_row *rows;
    size_t n = snug_session_profile(t->session, &rows);
    double all = 0, conv = 0;
    for (size_t i = 0; i < n; i++) {
        all += rows[i].seconds;
        conv += rows[i].op && !strncmp(rows[i].op, "conv2d", 6) ? rows[i].seconds : 0;
    }
    return all > 0 ? conv / all : NAN;
}

static json_t *run_json(const train *t)
{
    snug_session_numbers numbers;
    snug_session_measure(t->session, &numbers);
    json_t *epochs = json_array();
    for (size_t i = 0; i < t->result.n_history; i++) {
        const snug_epoch *e = &t->result.history[i];
        json_array_append_new(
            epochs,
            json_pack("{s:I, s:o, s:o, s:o, s:o, s:f, s:f}", "epoch", (json_int_t)e->epoch, "loss",
                      number_or_null(e->loss), "accuracy", number_or_null(e->accuracy), "val_loss",
                      number_or_null(e->val_loss), "val_accuracy", number_or_null(e->val_accuracy),
                      "seconds", e->seconds, "learning_rate", (double)e->learning_rate));
    }
    const snug_plan_info *info = snug_plan_numbers(t->setup.plan);
    json_t *json = json_pack(
        "{s:I, s:I, s:I, s:I, s:s, s:I, s:f, s:f, s:f, s:I, s:b, s:o, s:o}", "planned_peak_bytes",
        (json_int_t)numbers.planned_peak_bytes, "measured_peak_bytes",
        (json_int_t)numbers.measured_peak_bytes, "process_peak_bytes",
        (json_int_t)numbers.process_peak_bytes, "budget_bytes", (json_int_t)info->budget_bytes,
        "device", t->setup.device_spec, "batch", (json_int_t)info->batch, "images_per_second",
        t->result.images_per_second, "best_step_seconds", t->result.best_step_seconds,
        "data_wait_fraction", t->result.data_wait_fraction, "steps", (json_int_t)t->result.steps,
        "interrupted", t->result.interrupted, "epochs", epochs, "skipped_files", skipped_json(t));
    /* Known with --profile only: else null. */
    json_object_set_new(json, "convolution_fraction", number_or_null(convolution_fraction(t)));
    json_object_set_new(json, "model", json_string(t->setup.model_spec));
    json_object_set_new(json, "threads", json_integer(snug_plan_device(t->setup.plan)->n_threads));
    json_object_set_new(json, "machine", json_string(snug_plan_device(t->setup.plan)->name));
    json_object_set_new(json, "seed", json_integer((json_int_t)t->setup.seed));
    json_object_set_new(json, "allocations_after_open",
                        json_integer((json_int_t)numbers.allocations));
    if (t->has_final)
        json_object_set_new(json, "validation", sn_cli_score_json(&t->final, t->setup.data));
    return json;
}

static int write_text(const train *t, const char *name, char *text)
{
    char path[600];
    snprintf(path, sizeof path, "%s/%s", t->folder, name);
    int rc = text ? sn_cli_write_file(path, text) : SN_EXIT_FAILED;
    free(text);
    return rc;
}

static int write_skipped(const train *t)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return SN_EXIT_FAILED;
    fputs("file,why\n", out);
    uint64_t n = snug_data_n_skipped(t->setup.data);
    for (uint64_t i = 0; i < n; i++) {
        char file[4096], why[256];
        if (!snug_data_skipped(t->setup.data, i, file, sizeof file, why, sizeof why, NULL)) {
            sn_cli_csv_text(out, file);
            fputc(',', out);
            sn_cli_csv_text(out, why);
            fputc('\n', out);
        }
    }
    fclose(out);
    return write_text(t, "skipped.csv", text);
}

static int write_files(train *t)
{
    snug_error err = SNUG_ERROR_INIT;
    char *plan = snug_plan_json(t->setup.plan, &err);
    char path[600];
    snprintf(path, sizeof path, "%s/plan.json", t->folder);
    int rc = plan ? sn_cli_write_file(path, plan) : sn_cli_fail(&err);
    snug_text_free(plan);
    json_t *json = run_json(t);
    rc = rc ? rc : write_text(t, "run.json", json_dumps(json, JSON_INDENT(1)));
    json_decref(json);
    return rc ? rc : write_skipped(t);
}

static void print_profile(const train *t)
{
    static const char *const phases[] = {"forward", "backward", "update"};
    const snug_profile_row *rows;
    size_t n = snug_session_profile(t->session, &rows);
    double all = 0;
    for (size_t i = 0; i < n; i++)
        all += rows[i].seconds;
    printf("%-9s %-20s %6s %10s %7s\n", "phase", "operator", "calls", "ms", "share");
    for (size_t phase = 0; phase < 3; phase++)
        for (size_t i = 0; i < n; i++) {
            double seconds = 0;
            int calls = 0;
            bool first = rows[i].phase && !strcmp(rows[i].phase, phases[phase]);
            for (size_t k = 0; k < n && first; k++)
                if (rows[k].phase && !strcmp(rows[k].phase, rows[i].phase) &&
                    !strcmp(rows[k].op, rows[i].op)) {
                    first = k >= i;
                    seconds += rows[k].seconds;
                    calls++;
                }
            if (first && calls)
                printf("%-9s %-20s %6d %10.2f %6.1f%%\n", rows[i].phase, rows[i].op, calls,
                       seconds * 1e3, all > 0 ? 100 * seconds / all : 0);
        }
}

/* The best weights once more over the validation data, for the report by class. */
static int final_score(train *t)
{
    snug_error err = SNUG_ERROR_INIT;
    snug_source source;
    char best[600];
    if (t->result.interrupted || snug_data_n(t->setup.data, SNUG_SUBSET_VALIDATION) == 0)
        return 0;
    snprintf(best, sizeof best, "%s/best.safetensors", t->folder);
    if ((!access(best, R_OK) && snug_weights_load(t->session, best, &err)) ||
        snug_data_source(&source, t->setup.data, SNUG_SUBSET_VALIDATION, &err) ||
        snug_evaluate(t->session, &source, true, &t->final, sn_cli_on_samples, &t->progress, &err))
        return sn_cli_fail(&err);
    t->has_final = true;
    return 0;
}

static void print_result(const train *t)
{
    snug_session_numbers numbers;
    char a[32], b[32];
    snug_session_measure(t->session, &numbers);
    if (t->has_final) {
        printf("best      epoch %lld: ", (long long)t->result.best_epoch);
        sn_cli_print_score(stdout, &t->final, t->setup.data, true);
    }
    printf("speed     %.1f images/s, best step %s, %.1f %% of the time waiting for data\n",
           t->result.images_per_second, sn_cli_seconds(a, sizeof a, t->result.best_step_seconds),
           100 * t->result.data_wait_fraction);
    printf("memory    arena planned %s, measured %s; ",
           sn_cli_bytes(a, sizeof a, numbers.planned_peak_bytes),
           sn_cli_bytes(b, sizeof b, numbers.measured_peak_bytes));
    printf("process peak %s\n", sn_cli_bytes(a, sizeof a, numbers.process_peak_bytes));
    uint64_t skipped = snug_data_n_skipped(t->setup.data);
    if (skipped)
        printf("skipped   %llu files that could not be decoded: %s/skipped.csv\n",
               (unsigned long long)skipped, t->folder);
    printf("files     %s/ (best.safetensors, last.safetensors, last.ckpt, history.csv, run.json)\n",
           t->folder);
    printf("next      snug predict %s FILE...   snug evaluate %s DATA\n", t->folder, t->folder);
}

/* ---- the run ---- */

static int save_options(const train *t, snug_train_options *o)
{
    const char *text = t->args.checkpoint_every;
    char *end;
    if (!text)
        return 0;
    double value = strtod(text, &end);
    if (!strcmp(text, "epoch"))
        o->save_seconds = -1;
    else if (end != text && value > 0 && !strcmp(end, "min"))
        o->save_seconds = value * 60;
    else if (end != text && value >= 1 && !*end)
        o->save_steps = (uint64_t)value;
    else
        return sn_cli_usage("train",
                            "--checkpoint-every %s is neither 10min, epoch nor a number of "
                            "steps",
                            text);
    return 0;
}

static int run(train *t)
{
    snug_error err = SNUG_ERROR_INIT;
    snug_train_options o = {SNUG_TRAIN_DEFAULTS,
                            .epochs = t->setup.epochs,
                            .max_steps = t->setup.max_steps,
                            .schedule = t->setup.schedule,
                            .train_lends = true,
                            .validation_lends = true,
                            .folder = t->folder,
                            .description = t->description,
                            .resume = t->args.has_resume,
                            .progress = sn_cli_on_progress,
                            .context = &t->progress};
    int rc = save_options(t, &o);
    char *end = NULL;
    if (t->args.early_stop) {
        o.early_stop = strtoll(t->args.early_stop, &end, 10);
        if (*end || o.early_stop < 1)
            return sn_cli_usage("train", "--early-stop %s is no number of epochs",
                                t->args.early_stop);
    }
    if (rc)
        return rc;
    if (snug_data_source(&o.train, t->setup.data, SNUG_SUBSET_TRAIN, &err) ||
        (snug_data_n(t->setup.data, SNUG_SUBSET_VALIDATION) &&
         snug_data_source(&o.validation, t->setup.data, SNUG_SUBSET_VALIDATION, &err)))
        return sn_cli_fail(&err);
    snug_status s = snug_train(t->session, &o, &t->result, &err);
    sn_cli_progress_end(&t->progress);
    if (s && s != SNUG_E_INTERRUPTED)
        return sn_cli_fail(&err);
    if (t->result.best_step_seconds == 0 && !t->result.interrupted)
        fprintf(stderr, "note: the run has all its %lld epochs: -e N gives it more\n",
                (long long)t->setup.epochs);
    rc = final_score(t);
    rc = rc ? rc : write_files(t);
    if (rc)
        return rc;
    if (s == SNUG_E_INTERRUPTED) {
        fprintf(stderr, "%s; go on with: snug train --resume %s\n", err.what, t->folder);
        return SN_EXIT_INTERRUPTED;
    }
    if (t->args.json) {
        json_t *json = run_json(t);
        json_dumpf(json, stdout, JSON_INDENT(1));
        putchar('\n');
        json_decref(json);
        return 0;
    }
    if (t->args.profile)
        print_profile(t);
    print_result(t);
    return 0;
}

static int prepare(train *t, int argc, char **argv)
{
    sn_cli_setup *s = &t->setup;
    int rc = sn_cli_setup_begin(s, &t->args);
    if (!rc && t->args.n_positional != 1)
        rc = sn_cli_usage("train",
                          "it takes one DATA: a folder, an IDX, .npy or .csv file (%d given)",
                          t->args.n_positional);
    rc = rc ? rc : sn_cli_setup_data(s, t->args.positional[0]);
    rc = rc ? rc : sn_cli_setup_model(s);
    rc = rc ? rc : sn_cli_setup_plan(s, SNUG_PLAN_TRAIN);
    if (rc)
        return rc;
    if (s->does_not_fit)
        return sn_cli_refuse(s);
    if (!t->args.has_resume && t->args.out)
        snprintf(t->folder, sizeof t->folder, "%s", t->args.out);
    else if (!t->args.has_resume)
        sn_cli_new_run(t->folder, sizeof t->folder, s->model_spec);
    char last[600];
    snprintf(last, sizeof last, "%s/last.ckpt", t->folder);
    if (!t->args.has_resume && !access(last, F_OK))
        return sn_cli_usage("train",
                            "'%s' holds a run already: it is never overwritten; go on with it "
                            "by --resume %s, or choose another -o",
                            t->folder, t->folder);
    t->description =
        t->merged ? sn_cli_describe(s, t->n_merged, t->merged) : sn_cli_describe(s, argc, argv);
    return t->description ? 0 : SN_EXIT_FAILED;
}

int snug_cmd_train(int argc, char **argv)
{
    train t = {0};
    json_t *keep = NULL;
    int rc = sn_cli_parse_args(&t.args, SN_VERB_TRAIN, argc, argv);
    if (rc >= 0)
        return rc;
    if (t.args.dry_run) /* --dry-run is the only word of train's that plan does not know */
        return snug_cmd_plan(argc, argv);
    bool resume = t.args.has_resume;
    rc = resume ? merge_arguments(&t, argc, argv, &keep) : -1;
    if (rc >= 0) {
        free(t.merged);
        json_decref(keep);
        return rc;
    }
    t.args.has_resume = resume;
    sn_cli_catch_signals();
    rc = prepare(&t, argc, argv);
    rc = rc ? rc : open_session(&t);
    if (!rc) {
        sn_cli_progress_begin(&t.progress, t.args.quiet,
                              snug_plan_numbers(t.setup.plan)->peak_bytes);
        print_start(&t);
        rc = run(&t);
    }
    snug_train_result_deinit(&t.result);
    snug_score_deinit(&t.final);
    snug_session_free(t.session);
    sn_cli_setup_end(&t.setup);
    free(t.description);
    free(t.merged);
    json_decref(keep);
    return rc;
}
