/* SPDX-License-Identifier: Apache-2.0
 *
 * options.c - the table, and reading a command line by it.
 */
#include "options.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

typedef struct option_row {
    const char *name;
    char letter;          /* 0: none */
    const char *argument; /* NULL: a flag */
    size_t offset;        /* in sn_cli_args: const char * or bool */
    int verbs;
    const char *help;
} option_row;

#define AT(field) offsetof(sn_cli_args, field)
#define T SN_VERB_TRAIN
#define P SN_VERB_PLAN
#define E SN_VERB_EVALUATE
#define R SN_VERB_PREDICT
#define S SN_VERB_SUMMARY

static const option_row rows[] = {
    {"model", 'm', "MODEL", AT(model), T | P,
     "a zoo name with parameters, like mobilenet:width=0.5; default mobilenetv2 (arrays: cnn)"},
    {"size", 's', "N|HxW", AT(size), T | P | S,
     "height and width of a sample; default the model's own, arrays their own"},
    {"imgsz", 0, "N|HxW", AT(size), T | P | S, "the same as --size"},
    {"channels", 0, "1|3", AT(channels), T | P | S,
     "channels of an image; default 3, arrays their own"},
    {"classes", 0, "K", AT(classes), P | S,
     "classes of a model planned without data; default the model's own"},
    {"batch", 'b', "auto|N", AT(batch), T | P | E | R,
     "images a step; auto: the largest power of two up to 32 that fits"},
    {"epochs", 'e', "N", AT(epochs), T | P, "passes over the training data; default 10"},
    {"max-steps", 0, "N", AT(max_steps), T | P, "end after so many steps of the whole run"},
    {"optimizer", 0, "NAME[:k=v,...]", AT(optimizer), T | P,
     "sgd, adam, adamw, rmsprop, adagrad, lion; default sgd:momentum=0.9"},
    {"lr", 'l', "RATE", AT(lr), T | P, "learning rate; default the optimizer's (Keras')"},
    {"lr-schedule", 0, "NAME[:k=v,...]", AT(lr_schedule), T | P,
     "cosine, step, exponential, plateau, constant; default cosine:warmup=0.05"},
    {"loss", 0, "NAME", AT(loss), T | P,
     "auto, softmax, sigmoid, mse, mae, huber; default auto: by the labels"},
    {"weight-decay", 0, "W", AT(weight_decay), T | P, "decoupled weight decay"},
    {"clip-norm", 0, "N", AT(clip_norm), T | P, "clip each gradient tensor to this norm"},
    {"clip-global-norm", 0, "N", AT(clip_global_norm), T | P,
     "clip all gradients together to this norm (they are then kept whole)"},
    {"clip-value", 0, "V", AT(clip_value), T | P, "clip each gradient element"},
    {"label-smoothing", 0, "S", AT(label_smoothing), T | P, "0 to 1; default 0"},
    {"class-weights", 0, "auto|FILE", AT(class_weights), T,
     "auto: rare classes count more; FILE: lines of class,weight"},
    {"weights", 0, "FILE", AT(weights), T, "start from these .safetensors weights"},
    {"memory", 'M', "SIZE|N%", AT(memory), T | P | E | R,
     "cap on everything that the process holds: 1500M, 2G, 90%; default what is free"},
    {"device", 'd', "NAME", AT(device), T | P | E | R,
     "cpu, or for a plan null:2GiB,tflops=1.8,gbps=106; default cpu"},
    {"card", 0, "NAME|SIZE", AT(card), P, "plan for a card that is not here: \"GTX 950\", 2GB"},
    {"threads", 'j', "N", AT(threads), T | P | E | R, "compute threads; default all processors"},
    {"data-threads", 0, "auto|N", AT(data_threads), T | P | E | R,
     "threads that read and decode; default as many as keep the step fed"},
    {"validation-split", 0, "F", AT(validation_split), T | P,
     "share held out for validation; default 0.1 where the data brings none"},
    {"validation", 0, "DATA", AT(validation), T | P, "validation data of its own"},
    {"augment", 0, "LIST", AT(augment), T,
     "joined by commas: hflip vflip rotate=10 shift=0.1 zoom=0.2 brightness=0.2 contrast=0.2"},
    {"scale", 0, "MODE", AT(scale), T | P | E | R,
     "auto, 0..1, -1..1, 0..255, caffe, torch; default auto: as the model's family was trained"},
    {"resize", 0, "MODE", AT(resize), T | P | E | R,
     "bilinear (TensorFlow's pixels, default) or antialias"},
    {"fit", 0, "MODE", AT(fit), T | P | E | R, "stretch (default), crop or pad"},
    {"exif", 0, NULL, AT(exif), T | P | E | R, "honour the orientation tag of JPEG files"},
    {"fast-decode", 0, NULL, AT(fast_decode), T | P | E | R,
     "scale large JPEG files down while decoding (changes pixels)"},
    {"bad-files", 0, "skip|stop", AT(bad_files), T | E | R,
     "what a file that cannot be decoded does; default skip, named and counted"},
    {"labels", 0, "FILE", AT(labels), T | P | E,
     "labels.npy beside a .npy, or a CSV file,label for a folder of images"},
    {"label-column", 0, "NAME", AT(label_column), T | P | E | R, "the label's column in a CSV"},
    {"class-names", 0, "FILE", AT(class_names), T | P | E, "names of the classes, one a line"},
    {"no-shuffle", 0, NULL, AT(no_shuffle), T, "train in list order"},
    {"seed", 0, "N", AT(seed), T | P, "of weights, order, dropout, augmentation, split; default 1"},
    {"early-stop", 0, "N", AT(early_stop), T,
     "end after N epochs without a better validation loss"},
    {"patience", 0, "N", AT(early_stop), T, "the same as --early-stop"},
    {"checkpoint-every", 0, "10min|epoch|N", AT(checkpoint_every), T,
     "save also every so many minutes or steps; default 10min"},
    {"resume", 'r', "[RUN]", AT(resume), T,
     "go on with a run (the newest if none is named), exactly where it stopped"},
    {"out", 'o', "DIR", AT(out), T, "folder of the run; default runs/MODEL, never overwritten"},
    {"profile", 0, NULL, AT(profile), T, "print where the time of a step goes"},
    {"dry-run", 0, NULL, AT(dry_run), T, "plan only, as snug plan"},
    {"keep-activations", 0, NULL, AT(keep_activations), T | P,
     "keep what could be computed twice: more memory, a little faster"},
    {"program", 0, NULL, AT(program), P,
     "list the step's instructions with the live bytes beside each"},
    {"why", 0, NULL, AT(why), P, "why each operator got its kernel"},
    {"csv", 0, "FILE", AT(csv), P | R,
     "plan: buffers as id,lower,upper,size,offset; predict: the predictions"},
    {"no-calibration", 0, NULL, AT(no_calibration), P,
     "do not measure a step: times are estimates"},
    {"place", 0, "FILE", AT(place), P,
     "place the buffers of a CSV id,lower,upper,size instead of a model's"},
    {"capacity", 0, "BYTES", AT(capacity), P, "with --place: fail above this peak"},
    {"top", 0, "K", AT(top), R, "classes shown for each image; default 3"},
    {"limit", 0, "N", AT(limit), R, "stop after N samples"},
    {"output", 0, "FILE.npy", AT(output), R, "write the raw outputs"},
    {"json", 0, NULL, AT(json), T | P | E | R | S, "one JSON object on stdout and nothing else"},
    {"quiet", 0, NULL, AT(quiet), T | P | E | R | S, "no progress, no remarks"},
    {"color", 0, "WHEN", AT(color), T | P | E | R | S,
     "auto, always, never; default auto (NO_COLOR kept)"},
};

static const struct {
    int verb;
    const char *name, *usage, *about;
} verbs[] = {
    {T, "train", "snug train [DATA] [OPTIONS]", "trains a network on DATA within the memory given"},
    {P, "plan", "snug plan [DATA] [MODEL] [OPTIONS]",
     "says what training would take, before it starts: memory, time, largest batch"},
    {E, "evaluate", "snug evaluate RUN|MODEL DATA [OPTIONS]", "measures a trained run on DATA"},
    {R, "predict", "snug predict RUN|MODEL FILE|DIR... [OPTIONS]", "names the classes of images"},
    {S, "summary", "snug summary MODEL [OPTIONS]",
     "lists a model's layers, their parameters and bytes"},
};

#define HELP_COLUMN 37
#define HELP_WIDTH 100

/* An option and what it does, in lines of HELP_WIDTH. */
static void print_option(const char *head, const char *help)
{
    int column = printf("%-*s", HELP_COLUMN - 1, head);
    while (*help) {
        int word = (int)strcspn(help, " ");
        if (column + 1 + word > HELP_WIDTH)
            column = printf("\n%*s", HELP_COLUMN - 1, "") - 1;
        column += printf(" %.*s", word, help);
        help += word;
        help += strspn(help, " ");
    }
    putchar('\n');
}

/* A command may take the options of several verbs: its name says which page it is. */
static void print_help(const char *name, int verb)
{
    size_t v = 0;
    while (v + 1 < sizeof verbs / sizeof verbs[0] && strcmp(verbs[v].name, name))
        v++;
    printf("%s\n\n  %s\n\n", verbs[v].usage, verbs[v].about);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char head[64];
        if (!(rows[i].verbs & verb))
            continue;
        if (rows[i].letter)
            snprintf(head, sizeof head, "  -%c, --%s %s", rows[i].letter, rows[i].name,
                     rows[i].argument ? rows[i].argument : "");
        else
            snprintf(head, sizeof head, "      --%s %s", rows[i].name,
                     rows[i].argument ? rows[i].argument : "");
        print_option(head, rows[i].help);
    }
    print_option("      --help", "this page");
    putchar('\n');
    puts("DATA: a folder of class folders (JPEG, PNG, BMP), a folder or glob with --labels "
         "FILE.csv,\n"
         "IDX files (train-images-idx3-ubyte.gz), a .npy with --labels y.npy, a numeric CSV with\n"
         "--label-column NAME. MODEL: mlp cnn mobilenet mobilenetv2 squeezenet vgg16 vgg19 "
         "resnet18\n"
         "resnet34 resnet50 resnet101 resnet152, with :width=0.25..2,classes=K,dense=N,depth=N\n"
         "(head=linear for regression).\n"
         "Exit: 0 done, 1 failed, 2 wrong usage, 3 does not fit, 4 bad input, 130 interrupted.");
}

void sn_cli_print_reference(void)
{
    puts("# Options\n\nMade from the table in cli/options.c.");
    for (size_t v = 0; v < sizeof verbs / sizeof verbs[0]; v++) {
        printf("\n## %s\n\n`%s`: %s.\n\n| option | meaning |\n|---|---|\n", verbs[v].name,
               verbs[v].usage, verbs[v].about);
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
            if (!(rows[i].verbs & verbs[v].verb))
                continue;
            fputs("| `", stdout);
            if (rows[i].letter)
                printf("-%c`, `", rows[i].letter);
            printf("--%s%s", rows[i].name, rows[i].argument ? " " : "");
            for (const char *c = rows[i].argument ? rows[i].argument : ""; *c; c++)
                printf(*c == '|' ? "\\|" : "%c", *c);
            printf("` | %s |\n", rows[i].help);
        }
    }
}

/* Text as troff takes it: a hyphen is a hyphen, a leading dot no request. */
static void print_troff(const char *text)
{
    for (const char *c = text; *c; c++) {
        if (*c == '-' || *c == '\\')
            putchar('\\');
        if ((*c == '.' || *c == '\'') && c == text)
            fputs("\\&", stdout);
        putchar(*c);
    }
}

void sn_cli_print_man(void)
{
    size_t n;
    const sn_cli_verb *all = sn_cli_verbs(&n);
    puts(".TH SNUG 1\n.SH NAME\nsnug \\- train neural networks in the memory you have\n.SH "
         "SYNOPSIS\n"
         ".B snug\nVERB [ARGUMENTS] [OPTIONS]\n.SH VERBS");
    for (size_t i = 0; i < n; i++) {
        printf(".TP\n.B %s\n", all[i].name);
        print_troff(all[i].help);
        putchar('\n');
    }
    for (size_t v = 0; v < sizeof verbs / sizeof verbs[0]; v++) {
        printf(".SH OPTIONS OF %s\n", verbs[v].name);
        print_troff(verbs[v].usage);
        putchar('\n');
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
            if (!(rows[i].verbs & verbs[v].verb))
                continue;
            fputs(".TP\n.B ", stdout);
            if (rows[i].letter)
                printf("\\-%c, ", rows[i].letter);
            fputs("\\-\\-", stdout);
            print_troff(rows[i].name);
            if (rows[i].argument) {
                putchar(' ');
                print_troff(rows[i].argument);
            }
            putchar('\n');
            print_troff(rows[i].help);
            putchar('\n');
        }
    }
    puts(".SH EXIT STATUS\n0 done, 1 failed, 2 wrong usage, 3 does not fit the budget, 4 bad "
         "input, 130\n"
         "interrupted (saved first).");
}

static const option_row *find_long(const char *name, size_t n, int verb)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if ((rows[i].verbs & verb) && strlen(rows[i].name) == n && !memcmp(rows[i].name, name, n))
            return &rows[i];
    return NULL;
}

static const option_row *find_short(char letter, int verb)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if ((rows[i].verbs & verb) && rows[i].letter == letter)
            return &rows[i];
    return NULL;
}

static int unknown_option(const sn_cli_args *args, const char *text)
{
    const char *names[sizeof rows / sizeof rows[0]];
    char bare[64];
    size_t n = 0;
    snprintf(bare, sizeof bare, "%.*s", (int)strcspn(text + 2, "="), text + 2);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].verbs & args->verb)
            names[n++] = rows[i].name;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (!strcmp(rows[i].name, bare))
            return sn_cli_usage(args->verb_name, "option '--%s' does not belong to it", bare);
    const char *near = text[1] == '-' ? sn_cli_nearest(bare, names, n) : NULL;
    return near ? sn_cli_usage(args->verb_name, "there is no option '%s'; did you mean --%s?", text,
                               near)
                : sn_cli_usage(args->verb_name, "there is no option '%s'", text);
}

static void store(sn_cli_args *args, const option_row *row, const char *value)
{
    char *field = (char *)args + row->offset;
    if (row->argument)
        memcpy(field, &value, sizeof value);
    else
        *(bool *)field = true;
}

/* An option at argv[*i]: -1, or an exit code. */
static int take_option(sn_cli_args *args, int argc, char **argv, int *i)
{
    const char *text = argv[*i], *value = NULL;
    const option_row *row;
    if (text[1] == '-') {
        size_t n = strcspn(text + 2, "=");
        row = find_long(text + 2, n, args->verb);
        value = text[2 + n] == '=' ? text + 3 + n : NULL;
    } else {
        row = find_short(text[1], args->verb);
        value = text[2] ? text + 2 : NULL;
    }
    if (!row)
        return unknown_option(args, text);
    if (!row->argument && value)
        return sn_cli_usage(args->verb_name, "option --%s takes no value", row->name);
    if (!strcmp(row->name, "resume")) { /* its value may be left out */
        args->has_resume = true;
        if (!value && *i + 1 < argc && argv[*i + 1][0] != '-')
            value = argv[++*i];
        args->resume = value;
        return -1;
    }
    if (row->argument && !value) {
        if (*i + 1 >= argc)
            return sn_cli_usage(args->verb_name, "option --%s needs a value: %s", row->name,
                                row->argument);
        value = argv[++*i];
    }
    store(args, row, value);
    return -1;
}

int sn_cli_parse_args(sn_cli_args *args, int verb, int argc, char **argv)
{
    bool only_names = false;
    memset(args, 0, sizeof *args);
    args->verb = verb;
    args->verb_name = argv[0];
    for (int i = 1; i < argc; i++) {
        const char *text = argv[i];
        if (only_names || text[0] != '-' || !text[1]) {
            if (args->n_positional == (int)(sizeof args->positional / sizeof args->positional[0]))
                return sn_cli_usage(args->verb_name, "more than %d names; hand in a folder instead",
                                    args->n_positional);
            args->positional[args->n_positional++] = text;
        } else if (!strcmp(text, "--")) {
            only_names = true;
        } else if (!strcmp(text, "--help") || !strcmp(text, "-h")) {
            print_help(args->verb_name, verb);
            return SN_EXIT_DONE;
        } else {
            int rc = take_option(args, argc, argv, &i);
            if (rc >= 0)
                return rc;
        }
    }
    if (args->color && strcmp(args->color, "auto") && strcmp(args->color, "always") &&
        strcmp(args->color, "never"))
        return sn_cli_usage(args->verb_name, "--color %s is none of auto, always, never",
                            args->color);
    return -1;
}
