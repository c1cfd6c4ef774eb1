/* SPDX-License-Identifier: Apache-2.0
 *
 * apply.c - a trained run opened for use.
 */
#include "apply.h"

#include <inttypes.h>
#include <string.h>

#include "cli.h"

int sn_cli_run_open(sn_cli_run *run, const sn_cli_args *args, const char *name)
{
    int rc;
    memset(run, 0, sizeof *run);
    run->args = *args;
    if (!sn_cli_weights_file(run->weights, sizeof run->weights, name)) {
        fprintf(stderr, "error: '%s' is no run and no weights file\n", name);
        return SN_EXIT_INPUT;
    }
    run->description = sn_cli_read_description(run->weights, &rc);
    if (!run->description)
        return rc;
    json_t *input = json_object_get(run->description, "input");
    if (!run->args.scale)
        run->args.scale = json_string_value(json_object_get(run->description, "scale"));
    run->args.model = json_string_value(json_object_get(run->description, "model"));
    rc = sn_cli_setup_begin(&run->setup, &run->args);
    if (rc)
        return rc;
    sn_cli_setup *s = &run->setup;
    s->height = json_integer_value(json_array_get(input, 0));
    s->width = json_integer_value(json_array_get(input, 1));
    s->channels = json_integer_value(json_array_get(input, 2));
    s->is_image = s->width > 0;
    s->n_classes = json_integer_value(json_object_get(run->description, "classes"));
    const char *loss = json_string_value(json_object_get(run->description, "loss"));
    if (loss && !strcmp(loss, "regression"))
        s->loss.kind = SNUG_LOSS_MSE;
    if (s->height < 1 || s->n_classes < 1) {
        fprintf(stderr, "error: '%s' does not say its model's input and classes\n", run->weights);
        return SN_EXIT_INPUT;
    }
    snprintf(s->model_spec, sizeof s->model_spec, "%s", run->args.model);
    s->data_options.height = s->height;
    s->data_options.width = s->width;
    s->data_options.channels = s->channels;
    s->data_options.validation_split = 0;
    s->data_options.validation_path = NULL;
    return 0;
}

/* Arrays come as they are: their samples must be what the model takes. */
static int check_samples(const sn_cli_setup *s)
{
    int rank;
    const int64_t *got = snug_data_sample_shape(s->data, &rank);
    const int64_t want[3] = {s->height, s->width, s->channels};
    int want_rank = s->is_image ? 3 : 1;
    int64_t n = 1, n_want = 1;
    bool same = true;
    for (int i = 0; i < rank; i++)
        n *= got[i];
    for (int i = 0; i < want_rank; i++)
        n_want *= want[i];
    for (int i = 0; i < rank && rank == want_rank; i++)
        same = same && got[i] == want[i];
    if (n == n_want && same)
        return 0;
    fputs("error: a sample of the data is ", stderr);
    for (int i = 0; i < rank; i++)
        fprintf(stderr, "%s%" PRId64, i ? "x" : "", got[i]);
    fputs(rank > 1 ? ", the run takes "
          : n == 1 ? " number, the run takes "
                   : " numbers, the run takes ",
          stderr);
    for (int i = 0; i < want_rank; i++)
        fprintf(stderr, "%s%" PRId64, i ? "x" : "", want[i]);
    fputc('\n', stderr);
    if (rank == 1 && n > n_want)
        fputs("hint:  is a label among the columns? --label-column NAME leaves it out\n", stderr);
    return SN_EXIT_INPUT;
}

int sn_cli_run_session(sn_cli_run *run, snug_plan_purpose purpose)
{
    sn_cli_setup *s = &run->setup;
    snug_error err = SNUG_ERROR_INIT;
    int64_t features = s->height;
    bool image = s->is_image;
    int wrong = check_samples(s);
    if (wrong)
        return wrong;
    if (snug_model_zoo(&s->model, s->model_spec, image ? s->height : 1, image ? s->width : features,
                       image ? s->channels : 1, s->n_classes, &err))
        return sn_cli_fail(&err);
    if (!s->batch)
        s->batch = json_integer_value(json_object_get(run->description, "batch"));
    int rc = sn_cli_setup_plan(s, purpose);
    if (rc)
        return rc;
    if (s->does_not_fit) {
        sn_cli_print_refusal(stderr, s);
        return SN_EXIT_DOES_NOT_FIT;
    }
    snug_session_options o = {SNUG_SESSION_DEFAULTS, .seed = s->seed};
    if (snug_data_start(s->data, &s->pipe, &err) ||
        snug_session_open(&run->session, s->plan, &o, &err) ||
        snug_weights_load(run->session, run->weights, &err))
        return sn_cli_fail(&err);
    return 0;
}

const char *sn_cli_run_class(const sn_cli_run *run, size_t index, char *out, size_t n)
{
    json_t *names = json_object_get(run->description, "class_names");
    const char *name = json_string_value(json_array_get(names, index));
    if (name)
        snprintf(out, n, "%s", name);
    else
        snprintf(out, n, "class %zu", index);
    return out;
}

void sn_cli_run_close(sn_cli_run *run)
{
    snug_session_free(run->session);
    sn_cli_setup_end(&run->setup);
    json_decref(run->description);
}
