/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

static const sn_cli_verb verbs[] = {
    {"train", snug_cmd_train, "train a network on images or arrays within the memory given", true},
    {"plan", snug_cmd_plan,
     "what training would take, before it starts: memory, time, largest batch", true},
    {"evaluate", snug_cmd_evaluate, "measure a trained run on data", true},
    {"predict", snug_cmd_predict, "name the classes of images with a trained run", true},
    {"summary", snug_cmd_summary, "a model's layers, their parameters and bytes", false},
    {"devices", snug_cmd_devices, "what can be trained on here", false},
    {"diagnose", snug_cmd_diagnose, "why a training died: from a log, a notebook, or a run", false},
    {"data", snug_cmd_data, "what a data set holds: classes, counts, sizes, every bad file; export",
     false},
    {"ps", snug_cmd_ps, "who holds the memory of the cards and the RAM, and ending such a process",
     false},
    {"help", snug_cmd_help, "help on a verb, or on a trouble: snug help out-of-memory", false},
};

const sn_cli_verb *sn_cli_verbs(size_t *n)
{
    *n = sizeof verbs / sizeof verbs[0];
    return verbs;
}

int sn_cli_fail(const snug_error *err)
{
    fputs("error: ", stderr);
    if (err->where[0]) {
        sn_cli_print_safe(stderr, err->where);
        fputs(": ", stderr);
    }
    sn_cli_print_safe(stderr, err->what);
    fputc('\n', stderr);
    return snug_status_exit_code(err->code);
}

int sn_cli_usage(const char *verb, const char *format, ...)
{
    va_list args;
    char line[512];
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    fprintf(stderr, "error: snug %s: ", verb);
    sn_cli_print_safe(stderr, line);
    fprintf(stderr, "\nhint:  snug %s --help\n", verb);
    return SN_EXIT_USAGE;
}

static int unknown_verb(const char *name)
{
    const char *names[sizeof verbs / sizeof verbs[0]];
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++)
        names[i] = verbs[i].name;
    const char *near = sn_cli_nearest(name, names, sizeof verbs / sizeof verbs[0]);
    fputs("error: snug has no verb '", stderr);
    sn_cli_print_safe(stderr, name);
    if (near)
        fprintf(stderr, "'; did you mean 'snug %s'?\n", near);
    else
        fputs("'; 'snug help' lists them\n", stderr);
    return SN_EXIT_USAGE;
}

/* libgomp and malloc read their settings when the program is loaded: what the engine needs of them
 * is set once and the command starts anew. Short spins keep the compute threads from fighting the
 * data threads for the processors; few arenas and no heap kept back hold resident memory to the
 * plan. What the user has set stays. */
static void settle_environment(char **argv)
{
    static const struct {
        const char *name, *value;
    } settings[] = {{"GOMP_SPINCOUNT", "20000"},
                    {"OMP_PROC_BIND", "false"},
                    {"OMP_DYNAMIC", "false"},
                    {"MALLOC_ARENA_MAX", "2"},
                    {"MALLOC_MMAP_THRESHOLD_", "131072"},
                    {"MALLOC_TRIM_THRESHOLD_", "131072"}};
    if (getenv("SNUG_SETTLED"))
        return;
    setenv("SNUG_SETTLED", "1", 1);
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++)
        setenv(settings[i].name, settings[i].value, 0);
    execv("/proc/self/exe", argv); /* where this fails the command goes on as it is */
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        char name[] = "help", *help[] = {name, NULL};
        snug_cmd_help(1, help);
        return SN_EXIT_USAGE;
    }
    if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V")) {
        puts("snug " SNUG_VERSION);
        return SN_EXIT_DONE;
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))
        return snug_cmd_help(argc - 1, argv + 1);
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++)
        if (!strcmp(argv[1], verbs[i].name)) {
            if (verbs[i].is_engine)
                settle_environment(argv);
            return verbs[i].run(argc - 1, argv + 1);
        }
    return unknown_verb(argv[1]);
}
