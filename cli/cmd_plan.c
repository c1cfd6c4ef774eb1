/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_plan.c - `snug plan`: what training would take. Exit 0 fits, 3 does not.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli.h"
#include "setup.h"

int sn_cli_refuse(sn_cli_setup *setup)
{
    snug_error err = SNUG_ERROR_INIT;
    snug_advise_options o = {SNUG_ADVISE_DEFAULTS, .model = setup->model_spec,
                             .classes = setup->n_classes,
                             .size_is_given = setup->data && !setup->is_image};
    if (snug_plan_advise(setup->plan, &o, &err))
        return sn_cli_fail(&err);
    if (setup->args->json) {
        char *text = snug_plan_json(setup->plan, &err);
        if (!text)
            return sn_cli_fail(&err);
        puts(text);
        snug_text_free(text);
    } else {
        sn_cli_print_refusal(stderr, setup);
    }
    return SN_EXIT_DOES_NOT_FIT;
}

static int print_text(char *text)
{
    if (!text) {
        fputs("error: no memory for the listing\n", stderr);
        return SN_EXIT_FAILED;
    }
    fputs(text, stdout);
    snug_text_free(text);
    return 0;
}

static int place(const sn_cli_args *args)
{
    snug_error err = SNUG_ERROR_INIT;
    snug_place_result r;
    uint64_t capacity = 0;
    char *end = NULL;
    if (args->capacity) {
        capacity = strtoull(args->capacity, &end, 10);
        if (*end || !isdigit((unsigned char)args->capacity[0]) || !capacity)
            return sn_cli_usage("plan", "--capacity %s is no number of bytes", args->capacity);
    }
    snug_status s = snug_place_file(&r, args->place, capacity, args->csv, &err);
    if (s && s != SNUG_E_DOES_NOT_FIT)
        return sn_cli_fail(&err);
    if (args->json)
        printf("{\"buffers\": %zu, \"peak_bytes\": %llu, \"lower_bound_bytes\": %llu, \"ratio\": "
               "%.6f, \"seconds\": %.3f, \"fits\": %s}\n",
               r.n, (unsigned long long)r.peak_bytes, (unsigned long long)r.lower_bound_bytes,
               r.lower_bound_bytes ? (double)r.peak_bytes / (double)r.lower_bound_bytes : 1,
               r.seconds, s ? "false" : "true");
    else
        printf("%zu buffers, peak %llu bytes, lower bound %llu (ratio %.4f), %.2f s\n", r.n,
               (unsigned long long)r.peak_bytes, (unsigned long long)r.lower_bound_bytes,
               r.lower_bound_bytes ? (double)r.peak_bytes / (double)r.lower_bound_bytes : 1,
               r.seconds);
    return s ? sn_cli_fail(&err) : 0;
}

/* A name that is a model rather than a file. */
static bool is_model(const char *text)
{
    struct stat st;
    size_t n;
    const char *const *names = snug_zoo_names(&n);
    for (size_t i = 0; i < n; i++) {
        size_t length = strlen(names[i]);
        if (!strncmp(text, names[i], length) && (!text[length] || text[length] == ':'))
            return stat(text, &st) != 0;
    }
    return false;
}

/* The training command of this plan: what was said, and the batch that was chosen. */
static void print_next(const sn_cli_setup *s, const char *data)
{
    const sn_cli_args *a = s->args;
    const struct {
        const char *option, *value;
    } said[] = {{"-s", a->size},
                {"-e", a->epochs},
                {"--max-steps", a->max_steps},
                {"--optimizer", a->optimizer},
                {"-l", a->lr},
                {"--lr-schedule", a->lr_schedule},
                {"--loss", a->loss},
                {"-M", a->memory},
                {"-j", a->threads},
                {"--validation", a->validation},
                {"--labels", a->labels},
                {"--label-column", a->label_column}};
    printf("next     snug train %s -m %s -b %lld", data, s->model_spec,
           (long long)snug_plan_numbers(s->plan)->batch);
    for (size_t i = 0; i < sizeof said / sizeof said[0]; i++)
        if (said[i].value)
            printf(" %s %s", said[i].option, said[i].value);
    putchar('\n');
}

static int print(sn_cli_setup *s, const char *data)
{
    const sn_cli_args *args = s->args;
    snug_error err = SNUG_ERROR_INIT;
    if (args->csv) {
        char *csv = snug_plan_csv(s->plan);
        int rc = csv ? sn_cli_write_file(args->csv, csv) : SN_EXIT_FAILED;
        snug_text_free(csv);
        if (rc)
            return rc;
    }
    if (args->program)
        return print_text(snug_plan_program_text(s->plan, SNUG_PLAN_TRAIN));
    if (args->why)
        return print_text(snug_plan_why(s->plan));
    if (args->json) {
        snug_plan_set_step_seconds(s->plan, s->step_seconds);
        char *text = snug_plan_json(s->plan, &err);
        if (!text)
            return sn_cli_fail(&err);
        puts(text);
        snug_text_free(text);
        return 0;
    }
    sn_cli_print_plan(stdout, s, true);
    if (s->data && snug_plan_device(s->plan)->computes)
        print_next(s, data);
    return 0;
}

int snug_cmd_plan(int argc, char **argv)
{
    sn_cli_args args;
    sn_cli_setup s;
    const char *data = NULL;
    char verb[] = "plan";
    argv[0] = verb;
    int rc = sn_cli_parse_args(&args, SN_VERB_PLAN | SN_VERB_TRAIN, argc, argv);
    if (rc >= 0)
        return rc;
    if (args.place)
        return place(&args);
    for (int i = 0; i < args.n_positional; i++) {
        if (is_model(args.positional[i]) && !args.model)
            args.model = args.positional[i];
        else if (!data)
            data = args.positional[i];
        else
            return sn_cli_usage("plan", "it takes one DATA and one MODEL; '%s' is too much",
                                args.positional[i]);
    }
    rc = sn_cli_setup_begin(&s, &args);
    if (!rc && !data && !args.model)
        rc = sn_cli_usage("plan", "it takes a MODEL, or DATA, or both: snug plan photos -m vgg16");
    rc = rc || !data ? rc : sn_cli_setup_data(&s, data);
    rc = rc ? rc : sn_cli_setup_model(&s);
    if (!rc && !data && !s.batch)
        s.plan_options.n_samples = 0;
    rc = rc ? rc : sn_cli_setup_plan(&s, SNUG_PLAN_TRAIN);
    if (!rc && !args.no_calibration && !args.program && !args.why)
        rc = sn_cli_setup_measure(&s);
    if (!rc)
        rc = s.does_not_fit ? sn_cli_refuse(&s) : print(&s, data);
    sn_cli_setup_end(&s);
    return rc;
}
