/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_evaluate.c - `snug evaluate`: a trained run measured on DATA: its test part, else its
 * validation part, else all of it.
 */
#include <string.h>

#include "apply.h"
#include "cli.h"
#include "progress.h"
#include "score.h"

static bool is_class(const sn_cli_run *run, size_t i)
{
    json_t *name = sn_cli_class_json(run->setup.data, i);
    bool same =
        json_equal(name, json_array_get(json_object_get(run->description, "class_names"), i));
    json_decref(name);
    return same;
}

/* The data's classes must be the run's, in its order. */
static int check_classes(const sn_cli_run *run)
{
    const snug_data *data = run->setup.data;
    size_t n = snug_data_n_classes(data);
    if ((int64_t)n > run->setup.n_classes) {
        fprintf(stderr, "error: the data have %zu classes, the run knows %lld\n", n,
                (long long)run->setup.n_classes);
        return SN_EXIT_INPUT;
    }
    for (size_t i = 0; i < n; i++) {
        if (!is_class(run, i)) {
            char name[256];
            fputs("error: class ", stderr);
            fprintf(stderr, "%zu is '", i);
            sn_cli_print_safe(stderr, snug_data_class_name(data, i));
            fputs("' in the data and '", stderr);
            sn_cli_print_safe(stderr, sn_cli_run_class(run, i, name, sizeof name));
            fputs("' in the run: the folders must be named as in training\n", stderr);
            return SN_EXIT_INPUT;
        }
    }
    return 0;
}

static int evaluate(sn_cli_run *run, const char *path)
{
    static const snug_subset order[] = {SNUG_SUBSET_TEST, SNUG_SUBSET_VALIDATION, SNUG_SUBSET_ALL};
    static const char *const words[] = {"test part", "validation part", "all of it"};
    snug_error err = SNUG_ERROR_INIT;
    sn_cli_setup *s = &run->setup;
    snug_source source;
    snug_score score;
    sn_cli_progress progress;
    size_t part = 0;
    if (snug_data_open(&s->data, path, &s->data_options, &err))
        return sn_cli_fail(&err);
    int rc = snug_data_is_regression(s->data) ? 0 : check_classes(run);
    rc = rc ? rc : sn_cli_run_session(run, SNUG_PLAN_EVALUATE);
    if (rc)
        return rc;
    while (part < 2 && !snug_data_n(s->data, order[part]))
        part++;
    sn_cli_progress_begin(&progress, s->args->quiet, 0);
    if (snug_data_source(&source, s->data, order[part], &err) ||
        snug_evaluate(run->session, &source, true, &score, sn_cli_on_samples, &progress, &err))
        return sn_cli_fail(&err);
    sn_cli_progress_end(&progress);
    if (s->args->json) {
        json_t *json = sn_cli_score_json(&score, s->data);
        json_object_set_new(json, "part", json_string(words[part]));
        json_dumpf(json, stdout, JSON_INDENT(1));
        putchar('\n');
        json_decref(json);
    } else {
        printf("%s, %s: ", path, words[part]);
        sn_cli_print_score(stdout, &score, s->data, true);
    }
    uint64_t skipped = snug_data_n_skipped(s->data);
    if (skipped && !s->args->quiet)
        fprintf(stderr, "note: %llu files could not be decoded and were left out\n",
                (unsigned long long)skipped);
    snug_score_deinit(&score);
    return 0;
}

int snug_cmd_evaluate(int argc, char **argv)
{
    sn_cli_args args;
    sn_cli_run run;
    int rc = sn_cli_parse_args(&args, SN_VERB_EVALUATE, argc, argv);
    if (rc >= 0)
        return rc;
    if (args.n_positional != 2)
        return sn_cli_usage("evaluate", "it takes a RUN and DATA (%d given)", args.n_positional);
    sn_cli_catch_signals();
    rc = sn_cli_run_open(&run, &args, args.positional[0]);
    rc = rc ? rc : evaluate(&run, args.positional[1]);
    sn_cli_run_close(&run);
    return rc;
}
