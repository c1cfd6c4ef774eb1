/* SPDX-License-Identifier: Apache-2.0
 *
 * options.h - one table of options for the verbs that train, plan, evaluate and predict: it parses,
 * it makes `--help`, it makes the reference page.
 *
 *     sn_cli_args args;
 *     int rc = sn_cli_parse_args(&args, SN_VERB_TRAIN, argc, argv);
 *     if (rc >= 0) return rc;                       // --help was printed, or an error
 *
 * Ownership: args point into argv and static text; nothing is to be freed.
 * Threads: the command's main thread only.
 */
#ifndef SNUG_CLI_OPTIONS_H
#define SNUG_CLI_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

enum {
    SN_VERB_TRAIN = 1,
    SN_VERB_PLAN = 2,
    SN_VERB_EVALUATE = 4,
    SN_VERB_PREDICT = 8,
    SN_VERB_SUMMARY = 16
};

/* NULL and 0: not given. */
typedef struct sn_cli_args {
    int verb;
    const char *verb_name;
    const char *positional[64];
    int n_positional;
    const char *model, *size, *batch, *optimizer, *lr, *lr_schedule, *loss, *weight_decay;
    const char *clip_norm, *clip_global_norm, *clip_value, *label_smoothing, *class_weights;
    const char *weights, *memory, *device, *card, *validation_split, *validation, *augment, *scale;
    const char *resize, *fit, *bad_files, *seed, *threads, *data_threads, *early_stop;
    const char *checkpoint_every, *resume, *out, *labels, *label_column, *class_names, *csv;
    const char *epochs, *max_steps, *top, *output, *color, *place, *capacity, *channels, *classes,
        *limit;
    bool has_resume, exif, fast_decode, no_shuffle, profile, dry_run, program, why, json, quiet;
    bool no_calibration, keep_activations;
} sn_cli_args;

/* -1: go on; else the exit code to return. */
int sn_cli_parse_args(sn_cli_args *args, int verb, int argc, char **argv);
/* All options of all verbs as a Markdown page, for the generated reference. */
void sn_cli_print_reference(void);
/* The man page snug(1). */
void sn_cli_print_man(void);

#endif
