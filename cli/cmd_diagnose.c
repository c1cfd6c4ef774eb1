/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_diagnose.c - `snug diagnose`: from logs, notebooks, sources and allocator dumps, from a run
 * that it watches, or from the kernel's own log to the cause and what to do.
 */
#include <errno.h>
#include <getopt.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include "run.h"
#include "snug/diagnose.h"
#include "snug/gpus.h"

#define WIDTH 100

typedef struct arguments {
    bool json, quiet;
    const char *report, *framework, *root;
    char **files;
    int n_files;
    char **command; /* NULL: none */
} arguments;

static const char help_text[] =
    "snug diagnose: why a training died, whatever framework it ran in\n"
    "\n"
    "  snug diagnose FILE...         logs, notebooks (.ipynb), sources (.py, read and never run),\n"
    "                                TensorFlow's TF_BFC_MEMORY_DUMP, PyTorch's snapshot as JSON\n"
    "  COMMAND 2>&1 | snug diagnose -\n"
    "  snug diagnose -- COMMAND...   run it as it is, watch its memory, say how it ended\n"
    "  snug diagnose                 what the kernel killed for memory lately\n"
    "\n"
    "      --report FILE.html  of a run: memory over time, as a page of its own\n"
    "      --framework NAME    tensorflow, pytorch, jax, darknet: where the text does not say\n"
    "      --root DIR          look below DIR instead of / for the kernel's log\n"
    "      --json              one JSON object on stdout (of a run: its own stdout goes to "
    "stderr)\n"
    "      --quiet             the cause and the first fix only\n"
    "      --help              this page\n"
    "\n"
    "A run keeps its streams, signals and exit code; the answer stands on stderr, after its "
    "output.\n"
    "Exit: 0 done (also for 'unknown'), 2 wrong usage, 4 a file that cannot be read; of a run: "
    "the\n"
    "command's own exit code, 128+N if signal N ended it, 127 if there is no such command.\n"
    "See also: snug help out-of-memory\n";

/* ---- the screen ---- */

typedef struct screen {
    FILE *out;
    bool quiet;
    bool run; /* of a run: that it could be run watched is no advice any more */
} screen;

static bool known(const screen *s, const char *advice)
{
    return s->run && !strncmp(advice, "snug diagnose -- ", 17);
}

/* A line of evidence on one line of the screen: the file's own name, the line, what fits of it. */
static void print_place(FILE *out, const char *head, const snug_evidence *e)
{
    char line[WIDTH * 4];
    const char *slash = strrchr(e->source, '/');
    int n = snprintf(line, sizeof line, "%s%.60s", head, slash && slash[1] ? slash + 1 : e->source);
    if (e->line)
        n += snprintf(line + n, sizeof line - (size_t)n, ":%llu", (unsigned long long)e->line);
    n += snprintf(line + n, sizeof line - (size_t)n, "  ");
    int room = WIDTH - n;
    bool cut = (int)strlen(e->text) > room;
    int take = cut ? room - 4 : room;
    while (cut && take > 0 && ((unsigned char)e->text[take] & 0xC0) == 0x80)
        take--; /* not inside a character */
    snprintf(line + n, sizeof line - (size_t)n, "%.*s%s", take, e->text, cut ? " ..." : "");
    sn_cli_print_safe(out, line);
    fputc('\n', out);
}

static void print_evidence(FILE *out, const snug_cause *c, size_t most)
{
    for (size_t i = 0; i < c->n_evidence && i < most; i++)
        print_place(out, i ? "        " : "seen    ", &c->evidence[i]);
    if (c->n_evidence > most)
        fprintf(out, "        and %zu more\n", c->n_evidence - most);
}

static void print_fixes(const screen *s, const snug_cause *c, size_t most)
{
    size_t shown = 0;
    for (size_t i = 0; i < c->n_fixes && shown < most; i++) {
        char head[16];
        if (known(s, c->fixes[i].action))
            continue;
        snprintf(head, sizeof head, shown ? "    %zu   " : "fix %zu   ", shown + 1);
        shown++;
        sn_cli_wrap(s->out, head, c->fixes[i].action, WIDTH);
        if (c->fixes[i].why[0])
            sn_cli_wrap(s->out, "        ", c->fixes[i].why, WIDTH);
    }
}

static void print_cause(const screen *s, const snug_cause *c)
{
    char head[128];
    snprintf(head, sizeof head, "%s (%.2g): %s", c->name, c->confidence, snug_cause_words(c->id));
    sn_cli_wrap(s->out, "cause   ", head, WIDTH);
    if (c->explanation[0])
        sn_cli_wrap(s->out, "why     ", c->explanation, WIDTH);
    print_evidence(s->out, c, s->quiet ? 1 : 4);
    print_fixes(s, c, s->quiet ? 1 : 6);
}

static void print_next(const screen *s, const snug_cause *c)
{
    if (c->check[0] && !known(s, c->check))
        sn_cli_wrap(s->out, "next    ", c->check, WIDTH);
    if (c->id != SNUG_CAUSE_UNKNOWN)
        fprintf(s->out, "more    snug help %s\n", c->name);
}

static void print_useless(FILE *out, const snug_diagnosis *d)
{
    for (size_t i = 0; i < snug_diagnosis_n_useless(d); i++) {
        char text[512];
        const snug_useless *u = snug_diagnosis_useless(d, i);
        snprintf(text, sizeof text, "%s: %s", u->advice, u->why);
        sn_cli_wrap(out, i ? "        " : "no use  ", text, WIDTH);
    }
}

/* The causes after the first, one line of reason each. */
static void print_others(FILE *out, const snug_diagnosis *d)
{
    bool first = true;
    for (size_t i = 1; i < snug_diagnosis_n_causes(d) && i < 4; i++) {
        char text[512];
        const snug_cause *c = snug_diagnosis_cause(d, i);
        if (c->id == SNUG_CAUSE_UNKNOWN)
            continue;
        snprintf(text, sizeof text, "%s (%.2g): %.400s", c->name, c->confidence,
                 c->explanation[0] ? c->explanation : snug_cause_words(c->id));
        sn_cli_wrap(out, first ? "or      " : "        ", text, WIDTH);
        first = false;
        if (c->n_evidence && c->evidence[0].line)
            print_place(out, "        ", &c->evidence[0]);
    }
}

static void print_diagnosis(const screen *s, const snug_diagnosis *d)
{
    const snug_cause *best = snug_diagnosis_cause(d, 0);
    if (best->id == SNUG_CAUSE_UNKNOWN && best->confidence <= 0) {
        fputs("cause   none found: nothing here speaks of memory, of a limit or of a damaged "
              "input\n",
              s->out);
        print_next(s, best);
        return;
    }
    print_cause(s, best);
    if (s->quiet)
        return;
    print_useless(s->out, d);
    print_others(s->out, d);
    print_next(s, best);
}

/* The diagnosis as a JSON object with one more member (NULL: none), which is consumed. */
static int print_json(snug_diagnosis *d, const char *name, json_t *more)
{
    const char *text;
    snug_error err = SNUG_ERROR_INIT;
    if (snug_diagnosis_json(d, &text, &err)) {
        json_decref(more);
        return sn_cli_fail(&err);
    }
    json_t *all = json_loads(text, 0, NULL);
    if (!more || !all) {
        puts(text);
        json_decref(more);
    } else {
        json_object_set_new(all, name, more);
        char *line = json_dumps(all, JSON_PRESERVE_ORDER);
        puts(line ? line : text);
        free(line);
    }
    json_decref(all);
    return SN_EXIT_DONE;
}

/* ---- a run ---- */

typedef struct watched {
    snug_watch *watch;
    snug_diagnosis *d;
    bool gpus; /* there is a card to ask about */
    uint64_t gpu_bytes;
    bool gpu_known;
    unsigned gpu_skip;
} watched;

/* Every 25th sample asks the drivers; the others get the same answer. */
static bool gpu_bytes(void *context, const int *pids, size_t n, uint64_t *bytes)
{
    watched *w = context;
    if (w->gpu_skip++ % 25) {
        *bytes = w->gpu_bytes;
        return w->gpu_known;
    }
    snug_gpus *now;
    snug_gpus_options options = SNUG_GPUS_OPTIONS_INIT;
    options.n_ram_processes = 1;
    w->gpu_known = false;
    w->gpu_bytes = 0;
    if (snug_gpus_new(&now, &options, NULL))
        return false;
    for (size_t c = 0; c < snug_gpus_n_cards(now); c++) {
        const snug_gpus_card *card = snug_gpus_card_at(now, c);
        for (size_t i = 0; i < card->n_processes; i++)
            for (size_t k = 0; k < n; k++)
                if (card->processes[i].pid == pids[k] &&
                    card->processes[i].bytes != SNUG_BYTES_UNKNOWN) {
                    w->gpu_bytes += card->processes[i].bytes;
                    w->gpu_known = true;
                }
    }
    snug_gpus_free(now);
    *bytes = w->gpu_bytes;
    return w->gpu_known;
}

static snug_status started(void *context, int pid, snug_error *err)
{
    watched *w = context;
    snug_watch_options options = SNUG_WATCH_OPTIONS_INIT;
    options.gpu_bytes = w->gpus ? gpu_bytes : NULL;
    options.context = w;
    return snug_watch_new(&w->watch, pid, &options, err);
}

static snug_status output(void *context, const void *bytes, size_t n, snug_error *err)
{
    watched *w = context;
    snug_watch_output(w->watch, bytes, n);
    return snug_diagnosis_feed(w->d, "its output", bytes, n, err);
}

static double wait_for(void *context)
{
    return snug_watch_wait(((watched *)context)->watch);
}

static snug_status sample(void *context, snug_error *err)
{
    return snug_watch_sample(((watched *)context)->watch, err);
}

/* "python train.py -e 3", cut. */
static void command_line(char *out, size_t n, char *const *argv)
{
    size_t used = 0;
    out[0] = 0;
    for (size_t i = 0; argv[i] && used + 1 < n; i++)
        used += (size_t)snprintf(out + used, n - used, i ? " %s" : "%s", argv[i]);
}

static snug_status write_report(snug_watch *watch, const snug_diagnosis *d, const char *path,
                                snug_error *err)
{
    const char *html;
    snug_status s = snug_watch_html(watch, d, &html, err);
    if (s)
        return s;
    FILE *f = fopen(path, "we");
    bool good = f && fputs(html, f) >= 0;
    good = f && !fclose(f) && good;
    if (!good) {
        err->code = SNUG_E_IO;
        snprintf(err->what, sizeof err->what, "cannot write %.100s: %s", path, strerror(errno));
        return SNUG_E_IO;
    }
    return SNUG_OK;
}

/* The script that an interpreter was given, read for the cause that the run showed. */
static void print_source(const arguments *a, const snug_cause *best)
{
    for (size_t i = 0; a->command[i]; i++) {
        size_t n = strlen(a->command[i]);
        snug_diagnosis *d;
        if (n < 4 || strcmp(a->command[i] + n - 3, ".py") || access(a->command[i], R_OK) ||
            snug_diagnosis_new(&d, NULL, NULL))
            continue;
        if (!snug_diagnosis_read_file(d, a->command[i], NULL) && !snug_diagnosis_finish(d, NULL))
            for (size_t k = 0; k < snug_diagnosis_n_causes(d); k++) {
                const snug_cause *c = snug_diagnosis_cause(d, k);
                if (c->id != best->id || !c->n_evidence)
                    continue;
                print_place(stderr, "code    ", &c->evidence[0]);
                sn_cli_wrap(stderr, "        ", c->explanation, WIDTH);
            }
        snug_diagnosis_free(d);
    }
}

static json_t *run_json(const watched *w, const sn_cli_run *run)
{
    double cpu, seconds;
    snug_watch_cost(w->watch, &cpu, &seconds);
    json_t *j = json_object();
    if (run->signal)
        json_object_set_new(j, "signal", json_integer(run->signal));
    else
        json_object_set_new(j, "exit_code", json_integer(run->exit_code));
    json_object_set_new(j, "seconds", json_real(seconds));
    json_object_set_new(j, "watch_cpu_seconds", json_real(cpu));
    json_object_set_new(j, "summary", json_string(snug_watch_summary(w->watch)));
    return j;
}

static void run_end(const arguments *a, watched *w, const sn_cli_run *run)
{
    snug_error err = SNUG_ERROR_INIT;
    char command[200];
    snug_watch_end end = {run->exit_code, run->signal, run->peak_bytes};
    command_line(command, sizeof command, a->command);
    if (snug_watch_finish(w->watch, w->d, &end, command, &err) ||
        snug_diagnosis_finish(w->d, &err)) {
        sn_cli_fail(&err);
        return;
    }
    const snug_cause *best = snug_diagnosis_cause(w->d, 0);
    bool calm = best->id == SNUG_CAUSE_UNKNOWN && best->confidence <= 0;
    if (a->json) {
        print_json(w->d, "run", run_json(w, run));
    } else if (!a->quiet || !calm) {
        fprintf(stderr, "\nsnug    %s: %s\n", command, snug_watch_summary(w->watch));
        if (!calm) {
            print_diagnosis(&(screen){stderr, a->quiet, true}, w->d);
            print_source(a, best);
        } else {
            fputs(run->exit_code || run->signal
                      ? "cause   none found: memory played no part in how it ended\n"
                      : "        no sign of trouble with memory\n",
                  stderr);
        }
    }
    if (a->report && write_report(w->watch, w->d, a->report, &err))
        sn_cli_fail(&err);
    else if (a->report && !a->quiet && !a->json)
        fprintf(stderr, "page    %s\n", a->report);
}

static int do_run(const arguments *a)
{
    snug_error err = SNUG_ERROR_INIT;
    snug_diagnosis_options options = SNUG_DIAGNOSIS_OPTIONS_INIT;
    watched w;
    memset(&w, 0, sizeof w);
    w.gpus =
        !access("/dev/nvidiactl", F_OK) || !access("/dev/dri", F_OK) || !access("/dev/kfd", F_OK);
    options.framework = a->framework;
    if (snug_diagnosis_new(&w.d, &options, &err))
        return sn_cli_fail(&err);
    sn_cli_run run = {.argv = a->command,
                      .stdout_to_stderr = a->json,
                      .started = started,
                      .output = output,
                      .wait = wait_for,
                      .sample = sample,
                      .context = &w};
    int code;
    if (sn_cli_run_to_end(&run, &err)) {
        code = sn_cli_fail(&err);
        code = run.exit_code > 1 ? run.exit_code : code;
    } else {
        run_end(a, &w, &run);
        code = run.signal ? 128 + run.signal : run.exit_code;
    }
    snug_watch_free(w.watch);
    snug_diagnosis_free(w.d);
    return code;
}

/* ---- what the kernel killed ---- */

/* The journal keeps what the ring buffer has lost, and users of its group may read it. */
static void read_journal(snug_kills *k)
{
    char *text = NULL;
    size_t n = 0, got;
    FILE *p = popen("journalctl -k -q --no-pager -o short-monotonic -n 4000 2>/dev/null", "re");
    if (!p)
        return;
    char part[65536];
    while ((got = fread(part, 1, sizeof part, p)) > 0 && n < ((size_t)64 << 20)) {
        char *more = realloc(text, n + got);
        if (!more)
            break;
        text = more;
        memcpy(text + n, part, got);
        n += got;
    }
    pclose(p);
    if (n)
        snug_kills_feed(k, text, n, NULL);
    free(text);
}

static void ago(char *out, size_t n, double seconds)
{
    if (seconds < 0)
        snprintf(out, n, "?");
    else if (seconds < 120)
        snprintf(out, n, "%.0f s ago", seconds);
    else if (seconds < 7200)
        snprintf(out, n, "%.0f min ago", seconds / 60);
    else if (seconds < 172800)
        snprintf(out, n, "%.0f h ago", seconds / 3600);
    else
        snprintf(out, n, "%.0f days ago", seconds / 86400);
}

static json_t *kills_json(const snug_kills *k)
{
    json_t *list = json_array();
    for (size_t i = 0; i < snug_kills_n(k); i++) {
        const snug_kill *kill = snug_kills_at(k, i);
        json_t *j = json_object();
        json_object_set_new(j, "pid", json_integer(kill->pid));
        json_object_set_new(j, "name", json_string(kill->name));
        json_object_set_new(j, "anonymous_bytes", json_integer((json_int_t)kill->anonymous_bytes));
        json_object_set_new(j, "file_bytes", json_integer((json_int_t)kill->file_bytes));
        json_object_set_new(j, "shared_bytes", json_integer((json_int_t)kill->shared_bytes));
        json_object_set_new(j, "by_group", json_boolean(kill->by_group));
        if (kill->seconds_ago >= 0)
            json_object_set_new(j, "seconds_ago", json_real(kill->seconds_ago));
        json_array_append_new(list, j);
    }
    return list;
}

static void print_kills(const snug_kills *k)
{
    uint64_t n;
    const double gib = 1024.0 * 1024.0 * 1024.0;
    if (snug_kills_n(k)) {
        puts("Killed by the kernel for memory, newest first:\n");
        puts("  WHEN         PID      NAME             MEMORY     SHARED     LIMIT");
    }
    for (size_t i = 0; i < snug_kills_n(k) && i < 10; i++) {
        const snug_kill *kill = snug_kills_at(k, i);
        char when[32];
        ago(when, sizeof when, kill->seconds_ago);
        printf("  %-12s %-8lld %-16s %5.1f GiB  %5.1f GiB  %s\n", when, (long long)kill->pid,
               kill->name, (double)kill->anonymous_bytes / gib, (double)kill->shared_bytes / gib,
               kill->by_group ? "a control group's" : "the machine's");
    }
    if (!snug_kills_n(k) && snug_kills_log_read(k))
        puts("The kernel's log names no process killed for memory.");
    else if (!snug_kills_log_read(k))
        puts("The kernel's log may not be read here (try: sudo snug diagnose).");
    if (snug_kills_since_boot(k, &n))
        printf("By its own count the kernel has killed %llu process%s for memory since boot.\n",
               (unsigned long long)n, n == 1 ? "" : "es");
    if (snug_kills_of_group(k, &n) && n)
        printf("In this control group (container): %llu.\n", (unsigned long long)n);
    puts("\nHand in what you have:\n"
         "  snug diagnose train.log            what the training printed (also .ipynb, .py)\n"
         "  python train.py 2>&1 | tee train.log | snug diagnose -\n"
         "  snug diagnose -- python train.py   run it again, watched");
}

static int do_kernel(const arguments *a)
{
    snug_kills *k;
    snug_diagnosis *d = NULL;
    snug_error err = SNUG_ERROR_INIT;
    int code = SN_EXIT_DONE;
    if (snug_kills_read(&k, a->root, &err))
        return sn_cli_fail(&err);
    if (!a->root && !snug_kills_n(k))
        read_journal(k);
    if (a->json) {
        if (snug_diagnosis_new(&d, NULL, &err) || snug_kills_diagnose(k, d, &err) ||
            snug_diagnosis_finish(d, &err))
            code = sn_cli_fail(&err);
        else
            code = print_json(d, "kills", kills_json(k));
    } else {
        print_kills(k);
    }
    snug_diagnosis_free(d);
    snug_kills_free(k);
    return code;
}

/* ---- files ---- */

static int do_files(const arguments *a)
{
    snug_diagnosis *d;
    snug_error err = SNUG_ERROR_INIT;
    snug_diagnosis_options options = SNUG_DIAGNOSIS_OPTIONS_INIT;
    options.framework = a->framework;
    int code = SN_EXIT_DONE;
    if (snug_diagnosis_new(&d, &options, &err))
        return sn_cli_fail(&err);
    for (int i = 0; i < a->n_files && !code; i++)
        if (snug_diagnosis_read_file(d, a->files[i], &err))
            code = sn_cli_fail(&err);
    if (!code && snug_diagnosis_finish(d, &err))
        code = sn_cli_fail(&err);
    if (!code && a->json)
        code = print_json(d, NULL, NULL);
    else if (!code)
        print_diagnosis(&(screen){stdout, a->quiet, false}, d);
    snug_diagnosis_free(d);
    return code;
}

/* Whether standard input was given on purpose: a file or a pipe, no terminal, no /dev/null. */
static bool stdin_given(void)
{
    struct stat st;
    return !fstat(STDIN_FILENO, &st) &&
           (S_ISFIFO(st.st_mode) || (S_ISREG(st.st_mode) && st.st_size));
}

static int parse(arguments *a, int argc, char **argv)
{
    enum { REPORT = 1000, FRAMEWORK, ROOT, JSON, QUIET, HELP, COLOR, VERBOSE };
    static const struct option options[] = {{"report", required_argument, NULL, REPORT},
                                            {"framework", required_argument, NULL, FRAMEWORK},
                                            {"root", required_argument, NULL, ROOT},
                                            {"json", no_argument, NULL, JSON},
                                            {"quiet", no_argument, NULL, QUIET},
                                            {"help", no_argument, NULL, HELP},
                                            {"color", required_argument, NULL, COLOR},
                                            {"verbose", no_argument, NULL, VERBOSE},
                                            {NULL, 0, NULL, 0}};
    static const char *const names[] = {"--report", "--framework", "--root",  "--json",
                                        "--quiet",  "--help",      "--color", "--verbose"};
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], "--")) {
            a->command = argv + i + 1;
            argc = i;
        }
    if (a->command && !a->command[0])
        return sn_cli_usage("diagnose", "no command after --");
    optind = 0;
    opterr = 0;
    for (int c; (c = getopt_long(argc, argv, ":", options, NULL)) != -1;) {
        if (c == REPORT) {
            a->report = optarg;
        } else if (c == FRAMEWORK) {
            a->framework = optarg;
        } else if (c == ROOT) {
            a->root = optarg;
        } else if (c == JSON) {
            a->json = true;
        } else if (c == QUIET) {
            a->quiet = true;
        } else if (c == HELP) {
            fputs(help_text, stdout);
            return -1;
        } else if (c == ':') {
            return sn_cli_usage("diagnose", "%s needs a value", argv[optind - 1]);
        } else if (c == '?') {
            const char *given = argv[optind - 1];
            const char *near = sn_cli_nearest(given, names, sizeof names / sizeof names[0]);
            return near ? sn_cli_usage("diagnose", "no option %s; did you mean %s?", given, near)
                        : sn_cli_usage("diagnose", "no option %s", given);
        }
    }
    a->files = argv + optind;
    a->n_files = argc - optind;
    if (a->command && a->n_files)
        return sn_cli_usage("diagnose", "both a file (%s) and a command after --", a->files[0]);
    if (a->report && !a->command)
        return sn_cli_usage(
            "diagnose", "--report draws a run: snug diagnose --report %s -- COMMAND", a->report);
    return 0;
}

int snug_cmd_diagnose(int argc, char **argv)
{
    arguments a;
    memset(&a, 0, sizeof a);
    int code = parse(&a, argc, argv);
    if (code)
        return code < 0 ? SN_EXIT_DONE : code;
    if (a.command)
        return do_run(&a);
    if (a.n_files)
        return do_files(&a);
    if (!a.root && stdin_given()) {
        static char dash[] = "-";
        static char *only[] = {dash};
        a.files = only;
        a.n_files = 1;
        return do_files(&a);
    }
    return do_kernel(&a);
}
