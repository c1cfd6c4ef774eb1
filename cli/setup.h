/* SPDX-License-Identifier: Apache-2.0
 *
 * setup.h - from a command line to data, model and plan: what train, plan, evaluate and predict
 * have in common.
 *
 *     sn_cli_setup setup;
 *     rc = sn_cli_setup_begin(&setup, &args);            // devices, options
 *     rc = rc ? rc : sn_cli_setup_data(&setup, path);
 *     rc = rc ? rc : sn_cli_setup_model(&setup);
 *     rc = rc ? rc : sn_cli_setup_plan(&setup, SNUG_PLAN_TRAIN);
 *     sn_cli_setup_end(&setup);
 *
 * Each returns 0 or the exit code, having said why on stderr.
 * Ownership: the setup owns data, model and plan.  Threads: the command's main thread only.
 */
#ifndef SNUG_CLI_SETUP_H
#define SNUG_CLI_SETUP_H

#include <jansson.h>

#include "options.h"
#include "snug/snug.h"

typedef struct sn_cli_setup {
    const sn_cli_args *args;
    snug_data *data;
    snug_model *model;
    snug_plan *plan;
    snug_device_info device;
    char device_spec[128];
    char model_spec[160];
    int64_t height, width, channels; /* of a sample; 0: not decided yet */
    int64_t n_classes;
    snug_optimizer optimizer;
    snug_schedule schedule;
    snug_loss loss;
    snug_data_options data_options;
    snug_pipe_options pipe;
    snug_plan_options plan_options;
    int64_t batch; /* 0: auto */
    int64_t epochs;
    uint64_t max_steps, seed, budget_bytes; /* 0: what is free */
    bool is_image, does_not_fit;
    snug_error fit_error; /* why not */
    double step_seconds;  /* measured or by the roofline; 0: not known */
} sn_cli_setup;

int sn_cli_setup_begin(sn_cli_setup *setup, const sn_cli_args *args);
int sn_cli_setup_data(sn_cli_setup *setup, const char *path);
/* By its name: NPY, CSV or IDX. */
bool sn_cli_looks_like_array(const char *path);
/* From args->model, the data's classes and shape. */
int sn_cli_setup_model(sn_cli_setup *setup);
/* A plan that does not fit is no failure here: does_not_fit is set. */
int sn_cli_setup_plan(sn_cli_setup *setup, snug_plan_purpose purpose);
/* Measures a step in a session of its own, or takes what was measured before. */
int sn_cli_setup_measure(sn_cli_setup *setup);
void sn_cli_setup_end(sn_cli_setup *setup);

/* The lines of a plan: data, device, verdict, how, time, room. */
void sn_cli_print_plan(FILE *out, const sn_cli_setup *setup, bool with_room);
/* The refusal: error, why, fixes, no use. */
void sn_cli_print_refusal(FILE *out, const sn_cli_setup *setup);
/* The refusal on stderr (with --json: the plan on stdout), fixes looked for first; exit code 3. */
int sn_cli_refuse(sn_cli_setup *setup);
/* What predict and --resume need to know of a run, as JSON text; free() it. */
char *sn_cli_describe(const sn_cli_setup *setup, int argc, char **argv);

/* ---- runs (runs.c) ---- */

/* "runs/NAME", "runs/NAME-2", ... the first that is not there. */
void sn_cli_new_run(char *out, size_t n, const char *name);
/* The newest folder of runs/ that holds a last.ckpt; false if none. */
bool sn_cli_newest_run(char *out, size_t n);
/* The weights file of a run (best, else last) or the file itself; false if there is none. */
bool sn_cli_weights_file(char *out, size_t n, const char *run_or_file);
/* The description saved in a file, as JSON; NULL after a message on stderr, *rc the exit code. */
json_t *sn_cli_read_description(const char *file, int *rc);

/* ---- text ---- */
const char *sn_cli_bytes(char *out, size_t n, uint64_t bytes);
const char *sn_cli_seconds(char *out, size_t n, double seconds);
/* 227411 -> "227,411". */
const char *sn_cli_count(char *out, size_t n, uint64_t value);
/* A CSV field in quotes. */
void sn_cli_csv_text(FILE *out, const char *text);
/* Writes all of a text to a file through a temporary name. 0 or an exit code. */
int sn_cli_write_file(const char *path, const char *text);

#endif
