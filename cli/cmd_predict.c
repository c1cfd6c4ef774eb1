/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_predict.c - `snug predict`: the classes of images, or the raw outputs.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "apply.h"
#include "cli.h"
#include "progress.h"

typedef struct predict {
    sn_cli_run run;
    FILE *csv;
    FILE *npy;
    json_t *json;
    uint64_t n_written, limit;
    int64_t top, n_outputs;
    bool classes;
} predict;

/* The k largest outputs; the first of equals first. */
static void best(const float *row, int64_t n, int64_t k, int64_t *at)
{
    for (int64_t i = 0; i < k; i++) {
        at[i] = -1;
        for (int64_t j = 0; j < n; j++) {
            bool taken = false;
            for (int64_t m = 0; m < i; m++)
                taken |= at[m] == j;
            if (!taken && (at[i] < 0 || row[j] > row[at[i]]))
                at[i] = j;
        }
    }
}

static void print_sample(predict *p, const char *file, const float *row)
{
    int64_t at[16], k = p->classes ? p->top : 0;
    char name[256];
    best(row, p->n_outputs, k, at);
    if (p->json) {
        json_t *list = json_array();
        for (int64_t i = 0; i < (p->classes ? k : p->n_outputs); i++) {
            int64_t j = p->classes ? at[i] : i;
            json_array_append_new(list, p->classes ? json_pack("{s:s, s:f}", "class",
                                                               sn_cli_run_class(&p->run, (size_t)j,
                                                                                name, sizeof name),
                                                               "probability", (double)row[j])
                                                   : json_real((double)row[j]));
        }
        json_t *text = json_string(file);
        json_array_append_new(p->json,
                              json_pack("{s:o, s:o}", "file",
                                        text ? text : json_string("(no UTF-8)"), "output", list));
        return;
    }
    sn_cli_print_safe(stdout, file);
    for (int64_t i = 0; i < k; i++) {
        printf("%s", i ? ", " : "  ");
        sn_cli_print_safe(stdout, sn_cli_run_class(&p->run, (size_t)at[i], name, sizeof name));
        printf(" %.1f %%", 100 * (double)row[at[i]]);
    }
    for (int64_t i = 0; !p->classes && i < p->n_outputs; i++)
        printf("%s%g", i ? ", " : "  ", (double)row[i]);
    putchar('\n');
}

static void write_csv(predict *p, const char *file, const float *row)
{
    int64_t at[1];
    char name[256];
    sn_cli_csv_text(p->csv, file);
    if (p->classes) {
        best(row, p->n_outputs, 1, at);
        fputc(',', p->csv);
        sn_cli_csv_text(p->csv, sn_cli_run_class(&p->run, (size_t)at[0], name, sizeof name));
        fprintf(p->csv, ",%.6g", (double)row[at[0]]);
    }
    for (int64_t i = 0; i < p->n_outputs; i++)
        fprintf(p->csv, ",%.9g", (double)row[i]);
    fputc('\n', p->csv);
}

static int each_batch(predict *p)
{
    snug_error err = SNUG_ERROR_INIT;
    snug_source source;
    sn_cli_setup *s = &p->run.setup;
    int64_t batch = snug_plan_numbers(s->plan)->batch;
    float *outputs = malloc((size_t)(batch * p->n_outputs) * sizeof *outputs);
    uint64_t position = 0;
    snug_status status =
        outputs ? snug_data_source(&source, s->data, SNUG_SUBSET_ALL, &err) : SNUG_E_MEMORY;
    status = status ? status : source.reset(source.context, 0, 0, &err);
    while (!status) {
        snug_slot slot = {.capacity = batch};
        status = source.next(source.context, &slot, &err);
        if (status || slot.n == 0)
            break;
        status = snug_session_feed(p->run.session, &slot, &err);
        status = status ? status : snug_session_predict(p->run.session, &err);
        status = status ? status : snug_session_outputs(p->run.session, outputs, &err);
        for (int64_t i = 0; i < slot.n && !status && p->n_written < p->limit; i++, position++) {
            char file[4096];
            const float *row = outputs + i * p->n_outputs;
            uint64_t at = slot.positions ? slot.positions[i] : position;
            status = snug_data_name(s->data, at, file, sizeof file, &err);
            if (!status && (!p->csv || p->json))
                print_sample(p, file, row);
            if (!status && p->csv)
                write_csv(p, file, row);
            if (p->npy)
                fwrite(row, sizeof *row, (size_t)p->n_outputs, p->npy);
            p->n_written++;
        }
        if (sn_cli_stop_asked() || p->n_written >= p->limit)
            break;
    }
    free(outputs);
    return status ? sn_cli_fail(&err) : 0;
}

/* NumPy's header, version 1.0, 128 bytes for any number of rows (data stay aligned). */
static void npy_header(FILE *out, uint64_t rows, int64_t columns)
{
    char text[118];
    int n = snprintf(text, sizeof text,
                     "{'descr': '<f4', 'fortran_order': False, 'shape': (%llu, %lld), }",
                     (unsigned long long)rows, (long long)columns);
    memset(text + n, ' ', sizeof text - (size_t)n);
    text[sizeof text - 1] = '\n';
    fwrite("\x93NUMPY\x01\x00\x76\x00", 1, 10, out);
    fwrite(text, 1, sizeof text - 1, out);
    fputc('\n', out);
}

static int cannot_write(const char *path)
{
    fprintf(stderr, "error: cannot write '%s': %s\n", path, strerror(errno));
    return SN_EXIT_FAILED;
}

static int open_outputs(predict *p)
{
    const sn_cli_args *a = p->run.setup.args;
    if (a->csv) {
        p->csv = fopen(a->csv, "w");
        if (!p->csv)
            return cannot_write(a->csv);
        fputs(p->classes ? "file,class,probability" : "file", p->csv);
        for (int64_t i = 0; i < p->n_outputs; i++)
            fprintf(p->csv, ",output%lld", (long long)i);
        fputc('\n', p->csv);
    }
    if (a->output) {
        p->npy = fopen(a->output, "wb");
        if (!p->npy)
            return cannot_write(a->output);
        npy_header(p->npy, 0, p->n_outputs);
    }
    p->json = a->json ? json_array() : NULL;
    return 0;
}

static int close_outputs(predict *p)
{
    bool good = true;
    if (p->npy) {
        good = !fseek(p->npy, 0, SEEK_SET);
        npy_header(p->npy, p->n_written, p->n_outputs);
        good = !fclose(p->npy) && good;
    }
    if (p->csv)
        good = !fclose(p->csv) && good;
    if (p->json) {
        json_t *root = json_pack("{s:O}", "predictions", p->json);
        json_dumpf(root, stdout, JSON_INDENT(1));
        json_decref(root);
        putchar('\n');
        json_decref(p->json);
    }
    if (!good) {
        fputs("error: the results could not be written whole: is the disk full?\n", stderr);
        return SN_EXIT_FAILED;
    }
    return 0;
}

static int predict_all(predict *p)
{
    snug_error err = SNUG_ERROR_INIT;
    sn_cli_setup *s = &p->run.setup;
    const sn_cli_args *a = s->args;
    s->data_options.lenient = 1;
    const char *first = a->positional[1];
    snug_status status =
        sn_cli_looks_like_array(first)
            ? snug_data_open(&s->data, first, &s->data_options, &err)
            : snug_data_open_files(&s->data, a->positional + 1, (size_t)a->n_positional - 1,
                                   &s->data_options, &err);
    if (status)
        return sn_cli_fail(&err);
    int rc = sn_cli_run_session(&p->run, SNUG_PLAN_PREDICT);
    if (rc)
        return rc;
    p->n_outputs = snug_session_output_size(p->run.session);
    p->classes = s->loss.kind != SNUG_LOSS_MSE && p->n_outputs > 1;
    char *rest = NULL;
    p->limit = a->limit ? strtoull(a->limit, &rest, 10) : UINT64_MAX;
    if (p->limit < 1 || (rest && *rest) || (a->limit && strchr(a->limit, '-')))
        return sn_cli_usage("predict", "--limit %s is no number of samples", a->limit);
    char *end_of_top = NULL;
    p->top = a->top ? strtoll(a->top, &end_of_top, 10) : 3;
    if (p->top < 1 || p->top > 16 || (end_of_top && *end_of_top))
        return sn_cli_usage("predict", "--top %s is not in 1..16", a->top);
    p->top = p->top < p->n_outputs ? p->top : p->n_outputs;
    rc = open_outputs(p);
    rc = rc ? rc : each_batch(p);
    int end = close_outputs(p);
    uint64_t skipped = snug_data_n_skipped(s->data);
    for (uint64_t i = 0; i < skipped && i < 20 && !a->quiet; i++) {
        char file[4096], why[256];
        if (!snug_data_skipped(s->data, i, file, sizeof file, why, sizeof why, NULL)) {
            fputs("skipped: ", stderr);
            sn_cli_print_safe(stderr, file);
            fprintf(stderr, ": %s\n", why);
        }
    }
    return rc ? rc : end ? end : sn_cli_stop_asked() ? SN_EXIT_INTERRUPTED : 0;
}

int snug_cmd_predict(int argc, char **argv)
{
    sn_cli_args args;
    predict p = {0};
    int rc = sn_cli_parse_args(&args, SN_VERB_PREDICT, argc, argv);
    if (rc >= 0)
        return rc;
    if (args.n_positional < 2)
        return sn_cli_usage("predict", "it takes a RUN and images: snug predict runs/demo cat.jpg");
    sn_cli_catch_signals();
    rc = sn_cli_run_open(&p.run, &args, args.positional[0]);
    rc = rc ? rc : predict_all(&p);
    sn_cli_run_close(&p.run);
    return rc;
}
