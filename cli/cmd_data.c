/* SPDX-License-Identifier: Apache-2.0
 *
 * snug data: scans a data set, names every bad file, exports the decoded samples.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "cli.h"
#include "snug/data.h"

typedef struct request {
    const char *data, *export_path;
    snug_data_options options;
    int data_threads;
    bool uint8, json, quiet, verbose;
} request;

static const char help[] =
    "snug data DATA [OPTIONS]\n"
    "\n"
    "Lists what DATA holds (classes, counts, sizes) and decodes every image once, so that each "
    "bad\n"
    "file is named with its cause. DATA: a folder of class folders, a folder or pattern of images\n"
    "with --labels, IDX files, a .npy, a numeric CSV.\n"
    "\n"
    "  -s, --size N|HxW       size of a sample (images 224, arrays their own)\n"
    "      --scale S          auto, 0..1, -1..1, 0..255, caffe, torch (with --export: 0..255)\n"
    "      --resize R         bilinear (TensorFlow's, bit for bit) or antialias\n"
    "      --fit F            stretch, crop or pad\n"
    "      --exif             honour the orientation tag of JPEG files\n"
    "      --fast-decode      shrink JPEG files while decoding; other pixels, less time\n"
    "      --labels FILE      CSV `file,label` for images, .npy for a .npy\n"
    "      --label-column C   the label's column of a CSV, by name or number\n"
    "      --export OUT.npy   write the samples, float32 [N,H,W,C] in list order\n"
    "      --uint8            export bytes instead, rounded\n"
    "      --data-threads N   auto (as many as there are processors) or a number\n"
    "      --json             one JSON object on stdout\n"
    "      --quiet            no progress\n"
    "      --verbose          every class, however many\n";

/* --- arguments ---------------------------------------------------------------------------------*/

static bool parse_number(const char *text, long low, long high, long *out)
{
    char *end;

    errno = 0;
    *out = strtol(text, &end, 10);
    return !errno && end != text && !*end && *out >= low && *out <= high;
}

static bool parse_size(const char *text, snug_data_options *o)
{
    char first[16];
    long h, w;
    size_t n = strcspn(text, "xX");

    if (n >= sizeof first)
        return false;
    memcpy(first, text, n);
    first[n] = '\0';
    if (!parse_number(first, 1, 65535, &h))
        return false;
    w = h;
    if (text[n] && !parse_number(text + n + 1, 1, 65535, &w))
        return false;
    o->height = h;
    o->width = w;
    return true;
}

/* Index of text among n names, -1 if it is none. */
static int choice(const char *text, const char *const *names, int n)
{
    for (int i = 0; i < n; i++)
        if (!strcmp(text, names[i]))
            return i;
    return -1;
}

static bool parse_threads(const char *text, int *out)
{
    long n;

    if (!strcmp(text, "auto")) {
        *out = 0;
        return true;
    }
    if (!parse_number(text, 1, 1024, &n))
        return false;
    *out = (int)n;
    return true;
}

enum option { SIZE, SCALE, RESIZE, FIT, LABELS, COLUMN, EXPORT, THREADS, N_VALUED };
static const char *const valued[] = {"--size",   "--scale",        "--resize", "--fit",
                                     "--labels", "--label-column", "--export", "--data-threads"};
static const char *const plain[] = {"--exif", "--fast-decode", "--uint8",
                                    "--json", "--quiet",       "--verbose"};

static bool take_value(request *r, enum option option, const char *value)
{
    static const char *const resizes[] = {"bilinear", "antialias"};
    static const char *const fits[] = {"stretch", "crop", "pad"};
    int i;

    switch (option) {
    case SIZE:
        return parse_size(value, &r->options);
    case SCALE:
        return snug_scale_parse(&r->options.scale, value) != 0;
    case RESIZE:
        i = choice(value, resizes, 2);
        r->options.resize = (snug_resize)(i < 0 ? 0 : i);
        return i >= 0;
    case FIT:
        i = choice(value, fits, 3);
        r->options.fit = (snug_fit)(i < 0 ? 0 : i);
        return i >= 0;
    case LABELS:
        r->options.labels_path = value;
        return true;
    case COLUMN:
        r->options.label_column = value;
        return true;
    case EXPORT:
        r->export_path = value;
        return true;
    default:
        return parse_threads(value, &r->data_threads);
    }
}

static bool take_plain(request *r, const char *name)
{
    int i = choice(name, plain, (int)(sizeof plain / sizeof plain[0]));
    bool *const flags[] = {NULL, NULL, &r->uint8, &r->json, &r->quiet, &r->verbose};

    if (i == 0)
        r->options.exif = 1;
    else if (i == 1)
        r->options.fast_decode = 1;
    else if (i > 1)
        *flags[i] = true;
    return i >= 0;
}

static int unknown_option(const char *name)
{
    const char *all[N_VALUED + sizeof plain / sizeof plain[0]];
    size_t n = 0;

    for (size_t i = 0; i < N_VALUED; i++)
        all[n++] = valued[i];
    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++)
        all[n++] = plain[i];
    const char *near = sn_cli_nearest(name, all, n);
    if (near)
        return sn_cli_usage("data", "unknown option '%s'; did you mean '%s'?", name, near);
    return sn_cli_usage("data", "unknown option '%s'", name);
}

/* SN_EXIT_DONE, or the exit code of a usage error. */
static int parse(request *r, int argc, char **argv)
{
    char name[64];

    for (int i = 1; i < argc; i++) {
        const char *equals = strchr(argv[i], '='), *value = NULL;
        if (argv[i][0] != '-' || !argv[i][1]) {
            if (r->data)
                return sn_cli_usage("data", "one DATA at a time: '%s' and '%s'", r->data, argv[i]);
            r->data = argv[i];
            continue;
        }
        size_t n = equals ? (size_t)(equals - argv[i]) : strlen(argv[i]);
        if (n >= sizeof name)
            return unknown_option(argv[i]);
        memcpy(name, argv[i], n);
        name[n] = '\0';
        if (!equals && take_plain(r, name))
            continue;
        int option = !strcmp(name, "-s") || !strcmp(name, "--imgsz")
                         ? SIZE
                         : choice(name, valued, (int)N_VALUED);
        if (option < 0)
            return unknown_option(name);
        value = equals ? equals + 1 : i + 1 < argc ? argv[++i] : NULL;
        if (!value)
            return sn_cli_usage("data", "%s wants a value", name);
        if (!take_value(r, (enum option)option, value))
            return sn_cli_usage("data", "'%s' is no value for %s", value, name);
    }
    if (!r->data)
        return sn_cli_usage("data", "DATA is missing");
    if (r->uint8 && !r->export_path)
        return sn_cli_usage("data", "--uint8 belongs to --export OUT.npy");
    return SN_EXIT_DONE;
}

/* --- progress ----------------------------------------------------------------------------------*/

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
    (void)number;
    interrupted = 1;
}

static int progress(void *context, uint64_t done, uint64_t total)
{
    const request *r = context;

    if (!r->quiet && isatty(2))
        fprintf(stderr, "\r%" PRIu64 " of %" PRIu64 " samples", done, total);
    return interrupted;
}

/* --- names -------------------------------------------------------------------------------------*/

/* File names may be any bytes: control bytes, and all that is no ASCII where the whole is no UTF-8,
 * become \xNN. Returns out. */
static const char *safe_name(char *out, size_t n, const char *name)
{
    json_t *valid = json_string(name);
    size_t used = 0;

    for (const unsigned char *p = (const unsigned char *)name; *p && used + 5 < n; p++) {
        bool kept = *p >= 0x20 && *p != 0x7f && (*p < 0x80 || valid);
        used += (size_t)snprintf(out + used, n - used, kept ? "%c" : "\\x%02x", *p);
    }
    out[used] = '\0';
    json_decref(valid);
    return out;
}

/* --- text --------------------------------------------------------------------------------------*/

static void print_head(const request *r, const snug_data *data)
{
    int rank;
    const int64_t *s = snug_data_sample_shape(data, &rank);
    uint64_t n = snug_data_n(data, SNUG_SUBSET_ALL);
    const char *what = snug_data_is_files(data) ? "images" : rank == 3 ? "samples" : "rows";

    sn_cli_print_safe(stdout, r->data);
    printf("   %" PRIu64 " %s", n, what);
    if (snug_data_n_classes(data))
        printf(", %zu classes", snug_data_n_classes(data));
    else if (snug_data_is_regression(data))
        printf(", %" PRId64 " real target%s", snug_data_n_targets(data),
               snug_data_n_targets(data) == 1 ? "" : "s");
    else
        printf(", no labels");
    if (rank == 3)
        printf(", read as %" PRId64 "x%" PRId64 "x%" PRId64 "\n", s[0], s[1], s[2]);
    else
        printf(", %" PRId64 " numbers each\n", s[0]);
    uint64_t validation = snug_data_n(data, SNUG_SUBSET_VALIDATION);
    uint64_t test = snug_data_n(data, SNUG_SUBSET_TEST);
    if (validation || test)
        printf("split   %" PRIu64 " to train, %" PRIu64 " to validate, %" PRIu64 " to test\n",
               snug_data_n(data, SNUG_SUBSET_TRAIN), validation, test);
    for (size_t i = 0; i < snug_data_n_notes(data); i++) {
        fputs("note    ", stdout);
        sn_cli_print_safe(stdout, snug_data_note(data, i));
        putchar('\n');
    }
}

static void print_classes(const request *r, const snug_data *data)
{
    size_t n = snug_data_n_classes(data), shown = n > 50 && !r->verbose ? 50 : n;
    char name[2048];

    for (size_t i = 0; i < shown; i++) {
        safe_name(name, sizeof name, snug_data_class_name(data, i));
        printf("%6zu  %10" PRIu64 "  %s\n", i, snug_data_class_count(data, i), name);
    }
    if (shown < n)
        printf("        ... and %zu more classes (--verbose)\n", n - shown);
}

static void print_facts(const snug_data *data, const snug_data_facts *f)
{
    int rank;
    const int64_t *s = snug_data_sample_shape(data, &rank);

    if (!f->n_decoded)
        return;
    printf("decoded %" PRIu64 " images: %" PRIu64 " JPEG, %" PRIu64 " PNG, %" PRIu64
           " BMP; %" PRId64 "x%" PRId64 " to %" PRId64 "x%" PRId64 " (height x width)\n",
           f->n_decoded, f->n_jpeg, f->n_png, f->n_bmp, f->min_height, f->min_width, f->max_height,
           f->max_width);
    if (f->n_gray)
        printf("        %" PRIu64 " are gray: expanded to %" PRId64 " channels\n", f->n_gray, s[2]);
    if (f->n_smaller)
        printf("        %" PRIu64 " are smaller than %" PRId64 "x%" PRId64 "\n", f->n_smaller, s[0],
               s[1]);
    if (f->n_damaged)
        printf("        %" PRIu64 " have damage that did not keep them from being decoded\n",
               f->n_damaged);
    if (f->n_turned)
        printf("hint    %" PRIu64 " carry an orientation tag: --exif honours it\n", f->n_turned);
    if ((s[0] > s[1] && f->n_landscape > f->n_decoded * 9 / 10) ||
        (s[1] > s[0] && f->n_portrait > f->n_decoded * 9 / 10))
        printf("hint    most images lie the other way: sizes are HEIGHTxWIDTH, %" PRId64 "x%" PRId64
               " here\n",
               s[0], s[1]);
    if (f->min_height > 2 * s[0] && f->min_width > 2 * s[1])
        printf("hint    all images are more than twice the sample's size: --resize antialias loses "
               "less\n");
}

static void print_skipped(const snug_data *data)
{
    uint64_t n = snug_data_n_skipped(data);
    char file[4096], shown[8192], why[256];

    if (n)
        printf("skipped %" PRIu64 " file%s:\n", n, n == 1 ? "" : "s");
    for (uint64_t i = 0; i < n; i++) {
        if (snug_data_skipped(data, i, file, sizeof file, why, sizeof why, NULL))
            continue;
        printf("        %s: ", safe_name(shown, sizeof shown, file));
        sn_cli_print_safe(stdout, why);
        putchar('\n');
    }
    if (!n && snug_data_is_files(data))
        puts("every file can be decoded");
}

/* --- JSON --------------------------------------------------------------------------------------*/

static json_t *text_json(const char *text)
{
    json_t *as_it_is = json_string(text);
    char safe[8192];

    return as_it_is ? as_it_is : json_string(safe_name(safe, sizeof safe, text));
}

static json_t *facts_json(const snug_data_facts *f)
{
    return json_pack("{s:I, s:I, s:I, s:I, s:[I,I], s:[I,I], s:I, s:I, s:I, s:I}", "decoded",
                     (json_int_t)f->n_decoded, "jpeg", (json_int_t)f->n_jpeg, "png",
                     (json_int_t)f->n_png, "bmp", (json_int_t)f->n_bmp, "smallest",
                     (json_int_t)f->min_height, (json_int_t)f->min_width, "largest",
                     (json_int_t)f->max_height, (json_int_t)f->max_width, "gray",
                     (json_int_t)f->n_gray, "smaller", (json_int_t)f->n_smaller, "turned",
                     (json_int_t)f->n_turned, "damaged", (json_int_t)f->n_damaged);
}

static json_t *skipped_json(const snug_data *data)
{
    json_t *list = json_array();
    char file[4096], why[256];

    for (uint64_t i = 0; i < snug_data_n_skipped(data); i++)
        if (!snug_data_skipped(data, i, file, sizeof file, why, sizeof why, NULL))
            json_array_append_new(
                list, json_pack("{s:o, s:o}", "file", text_json(file), "why", text_json(why)));
    return list;
}

static void print_json(const request *r, const snug_data *data, uint64_t n_written)
{
    snug_data_facts facts;
    int rank;
    const int64_t *s = snug_data_sample_shape(data, &rank);
    json_t *shape = json_array(), *classes = json_array(), *notes = json_array();

    snug_data_facts_now(data, &facts);
    for (int i = 0; i < rank; i++)
        json_array_append_new(shape, json_integer(s[i]));
    for (size_t i = 0; i < snug_data_n_classes(data); i++)
        json_array_append_new(classes, json_pack("{s:o, s:I}", "name",
                                                 text_json(snug_data_class_name(data, i)), "count",
                                                 (json_int_t)snug_data_class_count(data, i)));
    for (size_t i = 0; i < snug_data_n_notes(data); i++)
        json_array_append_new(notes, text_json(snug_data_note(data, i)));
    json_t *root = json_pack(
        "{s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:s, s:o, s:o, s:o}", "data", text_json(r->data),
        "shape", shape, "samples", (json_int_t)snug_data_n(data, SNUG_SUBSET_ALL), "train",
        (json_int_t)snug_data_n(data, SNUG_SUBSET_TRAIN), "validation",
        (json_int_t)snug_data_n(data, SNUG_SUBSET_VALIDATION), "test",
        (json_int_t)snug_data_n(data, SNUG_SUBSET_TEST), "targets",
        (json_int_t)snug_data_n_targets(data), "scale", snug_scale_name(snug_data_scale(data)),
        "classes", classes, "notes", notes, "skipped_files", skipped_json(data));
    if (snug_data_is_files(data))
        json_object_set_new(root, "files", facts_json(&facts));
    if (r->export_path)
        json_object_set_new(root, "exported",
                            json_pack("{s:o, s:I}", "file", text_json(r->export_path), "samples",
                                      (json_int_t)n_written));
    char *text = json_dumps(root, JSON_INDENT(1));
    puts(text ? text : "{}");
    free(text);
    json_decref(root);
}

/* --- the verb ----------------------------------------------------------------------------------*/

static snug_status scan(const request *r, snug_data *data, uint64_t *n, snug_error *err)
{
    snug_pipe_options pipe = SNUG_PIPE_OPTIONS_INIT;
    snug_export_options out = SNUG_EXPORT_OPTIONS_INIT;
    struct sigaction action = {.sa_handler = on_signal}, before;

    *n = 0;
    if (!r->export_path && !snug_data_is_files(data))
        return SNUG_OK;
    pipe.batch = 16;
    pipe.data_threads = r->data_threads;
    snug_status status = snug_data_start(data, &pipe, err);
    if (status)
        return status;
    out.path = r->export_path;
    out.as_uint8 = r->uint8;
    out.progress = progress;
    out.context = (void *)(uintptr_t)r;
    sigaction(SIGINT, &action, &before);
    status = snug_data_export(data, &out, n, err);
    sigaction(SIGINT, &before, NULL);
    if (!r->quiet && isatty(2))
        fputs("\r\033[K", stderr);
    return status;
}

static int run(const request *r, snug_data *data)
{
    snug_error err = SNUG_ERROR_INIT;
    snug_data_facts facts;
    uint64_t n;

    if (!r->json) {
        print_head(r, data);
        print_classes(r, data);
        fflush(stdout);
    }
    if (scan(r, data, &n, &err))
        return sn_cli_fail(&err);
    snug_data_facts_now(data, &facts);
    if (r->json) {
        print_json(r, data, n);
    } else {
        print_facts(data, &facts);
        print_skipped(data);
        if (r->export_path) {
            printf("wrote   %" PRIu64 " samples to ", n);
            sn_cli_print_safe(stdout, r->export_path);
            putchar('\n');
        }
    }
    bool none = snug_data_is_files(data) && facts.n_decoded == 0;
    if (none)
        fputs("error: not one image can be decoded\n", stderr);
    return none ? SN_EXIT_INPUT : SN_EXIT_DONE;
}

int snug_cmd_data(int argc, char **argv)
{
    request r = {.options = SNUG_DATA_OPTIONS_INIT};
    snug_error err = SNUG_ERROR_INIT;
    snug_data *data;

    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
            fputs(help, stdout);
            return SN_EXIT_DONE;
        }
    int code = parse(&r, argc, argv);
    if (code)
        return code;
    r.options.lenient = 1;
    if (r.export_path && r.options.scale == SNUG_SCALE_AUTO)
        r.options.scale = SNUG_SCALE_0_255;
    /* A scan says what training would skip; an export is to have every image. */
    if (r.export_path)
        r.options.decode_bytes = (uint64_t)1 << 30;
    if (snug_data_open(&data, r.data, &r.options, &err))
        return sn_cli_fail(&err);
    code = run(&r, data);
    snug_data_free(data);
    return code;
}
