/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_ps.c - `snug ps`: who holds the memory of the cards and the RAM, and ending such a process.
 */
#include <errno.h>
#include <getopt.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"
#include "snug/gpus.h"

#define MAX_TARGETS 256
#define N_COLUMNS 9

typedef struct arguments {
    bool end, yes, watch, json, quiet;
    double interval;
    const char *gpu, *root, *nvml;
    uint32_t uid;
    snug_gpus_target targets[MAX_TARGETS];
    size_t n_targets;
} arguments;

static const char help_text[] =
    "snug ps: every process that holds memory of a graphics card, or much of the RAM\n"
    "\n"
    "  snug ps                      the cards, the RAM, and what could be closed\n"
    "  snug ps --end PID...         what ending these processes would do and free\n"
    "  snug ps --end PID... --yes   do it: TERM, wait, KILL\n"
    "\n"
    "      --end PID...      only your own processes; never the desktop, never what runs this\n"
    "      --yes             without it --end only says what it would do\n"
    "      --watch[=SECONDS] again and again (every 2 seconds), until Ctrl-C\n"
    "      --gpu N           only this card: its number in the list, or its name (nvidia:0)\n"
    "      --root DIR        look below DIR instead of / (proc, sys, dev of another machine)\n"
    "      --json            one JSON object; unknown numbers are null\n"
    "      --quiet           no remarks about what could not be seen\n"
    "      --help            this page\n"
    "\n"
    "MEM is memory of the card, RAM the process' share of main memory (shared pages divided;\n"
    "\"<\" before a number: not divided, at most that much). SOURCE says who knows: nvml "
    "(NVIDIA),\n"
    "fdinfo (AMD, Intel and others), kfd (ROCm), fd-only (has the card open, size unknown).\n"
    "'unexplained' is used memory that no process was seen to hold: the driver's own, or holders\n"
    "that you may not see (sudo snug ps).\n"
    "\n"
    "Exit: 0 done, 1 a process was refused or not ended, 2 wrong usage, 4 no such folder.\n"
    "See also: snug help who-holds-my-gpu\n";

/* ---- text ---- */

/* Whole MiB below 10 GiB, one decimal above; "?" where unknown. */
static const char *size_text(char *out, size_t n, uint64_t bytes)
{
    const double mib = 1024.0 * 1024.0;
    if (bytes == SNUG_BYTES_UNKNOWN)
        snprintf(out, n, "?");
    else if (bytes < 1024 * 1024)
        snprintf(out, n, bytes < 1024 ? "%.0f B" : "%.0f KiB",
                 bytes < 1024 ? (double)bytes : (double)bytes / 1024);
    else if ((double)bytes < 10 * 1024 * mib)
        snprintf(out, n, "%.0f MiB", (double)bytes / mib);
    else
        snprintf(out, n, "%.1f GiB", (double)bytes / mib / 1024);
    return out;
}

static const char *age_text(char *out, size_t n, double seconds)
{
    if (seconds < 0)
        snprintf(out, n, "?");
    else if (seconds < 60)
        snprintf(out, n, "%d s", (int)seconds);
    else if (seconds < 3600)
        snprintf(out, n, "%d min", (int)(seconds / 60));
    else if (seconds < 48 * 3600)
        snprintf(out, n, "%d h", (int)(seconds / 3600));
    else
        snprintf(out, n, "%d d", (int)(seconds / 86400));
    return out;
}

static size_t columns(const char *text)
{
    size_t n = 0;
    for (; *text; text++)
        n += ((unsigned char)*text & 0xC0) != 0x80;
    return n;
}

static size_t terminal_width(void)
{
    struct winsize size;
    if (!isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || size.ws_col < 40)
        return 0;
    return size.ws_col;
}

typedef struct row {
    char cell[N_COLUMNS][48];
    const char *command;
} row;

static void fill_row(row *r, const snug_gpus_process *p, bool card)
{
    char text[32];
    memset(r, 0, sizeof *r);
    r->command = p->command ? p->command : "?";
    snprintf(r->cell[0], sizeof r->cell[0], "%lld", (long long)p->pid);
    snprintf(r->cell[1], sizeof r->cell[1], "%.40s", p->user ? p->user : "?");
    if (card && p->shared_with && !p->bytes)
        snprintf(r->cell[2], sizeof r->cell[2], "as %lld", (long long)p->shared_with);
    else if (card)
        size_text(r->cell[2], sizeof r->cell[2], p->bytes);
    snprintf(r->cell[3], sizeof r->cell[3], "%s%s", p->host_is_rss && p->host_bytes ? "< " : "",
             size_text(text, sizeof text, p->host_bytes));
    age_text(r->cell[4], sizeof r->cell[4], p->age_seconds);
    if (!strcmp(p->state, "idle") && p->idle_seconds >= 60)
        snprintf(r->cell[5], sizeof r->cell[5], "idle %s",
                 age_text(text, sizeof text, p->idle_seconds));
    else
        snprintf(r->cell[5], sizeof r->cell[5], "%.40s", p->state);
    snprintf(r->cell[6], sizeof r->cell[6], "%.40s", p->what ? p->what : "?");
    if (card)
        snprintf(r->cell[7], sizeof r->cell[7], "%.40s", p->source);
}

static void print_row(const row *r, const size_t *width, size_t terminal)
{
    size_t at = 2;
    fputs("  ", stdout);
    for (size_t c = 0; c < N_COLUMNS - 1; c++) {
        if (!width[c])
            continue;
        int pad = (int)(width[c] - columns(r->cell[c]));
        bool right = c == 0 || (c >= 2 && c <= 4);
        printf("%*s%s%*s  ", right ? pad : 0, "", r->cell[c], right ? 0 : pad, "");
        at += width[c] + 2;
    }
    if (terminal > at + 8 && columns(r->command) > terminal - at)
        printf("%.*s...\n", (int)(terminal - at - 3), r->command);
    else
        printf("%s\n", r->command);
}

static void print_processes(const snug_gpus_process *at, size_t n, bool card)
{
    static const char *const heads[] = {"PID", "USER",  "MEM",  "RAM",
                                        "AGE", "STATE", "WHAT", "SOURCE"};
    size_t width[N_COLUMNS] = {0}, terminal = terminal_width();
    row r;
    for (size_t i = 0; i < n; i++) {
        fill_row(&r, &at[i], card);
        for (size_t c = 0; c < N_COLUMNS; c++)
            if (columns(r.cell[c]) > width[c])
                width[c] = columns(r.cell[c]);
    }
    memset(&r, 0, sizeof r);
    r.command = "COMMAND";
    for (size_t c = 0; c < sizeof heads / sizeof heads[0]; c++)
        if (width[c]) {
            snprintf(r.cell[c], sizeof r.cell[c], "%s", heads[c]);
            if (columns(heads[c]) > width[c])
                width[c] = columns(heads[c]);
        }
    print_row(&r, width, terminal);
    for (size_t i = 0; i < n; i++) {
        fill_row(&r, &at[i], card);
        print_row(&r, width, terminal);
    }
}

static const char *plural(size_t n)
{
    return n == 1 ? "" : "es";
}

static void print_card(const snug_gpus_card *c)
{
    char used[32], total[32], explained[32], unexplained[32], reserved[32];
    size_t n_known = 0;
    for (size_t i = 0; i < c->n_processes; i++)
        n_known += c->processes[i].bytes != SNUG_BYTES_UNKNOWN;
    size_t n_unknown = c->n_processes - n_known;
    printf("%-9s %s, %s%s%s%s\n", c->id, c->name, c->address, c->driver ? ", driver " : "",
           c->driver ? c->driver : "", c->display == 1 ? ", drives a display" : "");
    size_text(total, sizeof total, c->total_bytes);
    size_text(used, sizeof used, c->used_bytes);
    size_text(explained, sizeof explained, c->explained_bytes);
    size_text(unexplained, sizeof unexplained, c->unexplained_bytes);
    if (c->unified)
        printf("          its memory is the RAM: %zu process%s hold%s %s of it\n", n_known,
               plural(n_known), n_known == 1 ? "s" : "", explained);
    else if (c->used_bytes == SNUG_BYTES_UNKNOWN)
        printf(
            "          %zu process%s hold%s %s of it; how much is in use in all, no driver tells\n",
            n_known, plural(n_known), n_known == 1 ? "s" : "", explained);
    else
        printf("          %s of %s used: %s by %zu process%s, %s unexplained\n", used, total,
               explained, n_known, plural(n_known), unexplained);
    if (n_unknown)
        printf("          %zu process%s more %s it open; how much %s hold%s is not known\n",
               n_unknown, plural(n_unknown), n_unknown == 1 ? "has" : "have",
               n_unknown == 1 ? "it" : "they", n_unknown == 1 ? "s" : "");
    if (c->reserved_bytes != SNUG_BYTES_UNKNOWN && c->reserved_bytes)
        printf("          %s are kept by the driver for itself\n",
               size_text(reserved, sizeof reserved, c->reserved_bytes));
    if (c->n_processes)
        print_processes(c->processes, c->n_processes, true);
    putchar('\n');
}

static void print_ram(const snug_gpus_ram *r)
{
    char a[32], b[32];
    printf("RAM       %s of %s available", size_text(a, sizeof a, r->available_bytes),
           size_text(b, sizeof b, r->total_bytes));
    if (r->shm_bytes != SNUG_BYTES_UNKNOWN) {
        printf("; /dev/shm holds %s", size_text(a, sizeof a, r->shm_bytes));
        if (r->shm_total_bytes != SNUG_BYTES_UNKNOWN)
            printf(" of %s", size_text(b, sizeof b, r->shm_total_bytes));
    }
    if (r->swap_total_bytes == 0)
        fputs("; no swap", stdout);
    else if (r->swap_total_bytes != SNUG_BYTES_UNKNOWN)
        printf("; swap %s of %s", size_text(a, sizeof a, r->swap_bytes),
               size_text(b, sizeof b, r->swap_total_bytes));
    putchar('\n');
    if (r->limit_bytes != SNUG_BYTES_UNKNOWN)
        printf("          programs started here may use %s (control group), %s in use\n",
               size_text(a, sizeof a, r->limit_bytes), size_text(b, sizeof b, r->limit_used_bytes));
    /* Three at least, then only what is worth a line. */
    size_t n = 0;
    while (n < r->n_processes && (n < 3 || r->processes[n].bytes >= 16 << 20))
        n++;
    if (n)
        print_processes(r->processes, n, false);
    putchar('\n');
}

static const char *what_of(const snug_gpus *gpus, int64_t pid)
{
    for (size_t c = 0; c < snug_gpus_n_cards(gpus); c++) {
        const snug_gpus_card *card = snug_gpus_card_at(gpus, c);
        for (size_t i = 0; i < card->n_processes; i++)
            if (card->processes[i].pid == pid && card->processes[i].what)
                return card->processes[i].what;
    }
    const snug_gpus_ram *ram = snug_gpus_ram_of(gpus);
    for (size_t i = 0; i < ram->n_processes; i++)
        if (ram->processes[i].pid == pid && ram->processes[i].what)
            return ram->processes[i].what;
    return "";
}

static void print_candidates(const snug_gpus *gpus)
{
    uint64_t card = 0, host = 0;
    bool unknown = false;
    size_t n = snug_gpus_n_candidates(gpus);
    char a[32], b[32];
    if (!n) {
        puts("can go    nothing: no idle, stopped or orphaned process of yours holds much");
        return;
    }
    for (size_t i = 0; i < n; i++) {
        const snug_gpus_candidate *c = snug_gpus_candidate_at(gpus, i);
        unknown |= c->frees_card_bytes == SNUG_BYTES_UNKNOWN;
        card += c->frees_card_bytes == SNUG_BYTES_UNKNOWN ? 0 : c->frees_card_bytes;
        host += c->frees_host_bytes == SNUG_BYTES_UNKNOWN ? 0 : c->frees_host_bytes;
    }
    if (snug_gpus_n_cards(gpus))
        printf("can go    %s%s of the cards and ", unknown ? "at least " : "",
               size_text(a, sizeof a, card));
    else
        fputs("can go    ", stdout);
    printf("%s of RAM, if you close what you no longer need:\n", size_text(b, sizeof b, host));
    for (size_t i = 0; i < n; i++) {
        const snug_gpus_candidate *c = snug_gpus_candidate_at(gpus, i);
        const char *what = what_of(gpus, c->pid);
        char command[48];
        snprintf(command, sizeof command, "snug ps --end %lld", (long long)c->pid);
        printf("  %-22s frees ", command);
        if (c->frees_card_bytes)
            printf("%s of the card and ", size_text(a, sizeof a, c->frees_card_bytes));
        printf("%s of RAM: %s%s%s\n", size_text(b, sizeof b, c->frees_host_bytes), what,
               *what ? ", " : "", c->how);
    }
}

static void print_notes(const snug_gpus *gpus)
{
    for (size_t i = 0; i < snug_gpus_n_notes(gpus); i++)
        sn_cli_wrap(stderr, "note:  ", snug_gpus_note_at(gpus, i), 100);
}

/* ---- --gpu ---- */

/* The index of the card that --gpu names; SIZE_MAX for none. */
static size_t chosen_card(const snug_gpus *gpus, const char *name)
{
    size_t n = snug_gpus_n_cards(gpus);
    for (size_t i = 0; i < n; i++) {
        char index[24];
        snprintf(index, sizeof index, "%zu", i);
        if (!strcmp(name, index) || !strcmp(name, snug_gpus_card_at(gpus, i)->id))
            return i;
    }
    return SIZE_MAX;
}

static int no_such_card(const snug_gpus *gpus, const char *name)
{
    size_t n = snug_gpus_n_cards(gpus);
    if (!n)
        return sn_cli_usage("ps", "there is no card '%s': this machine has none", name);
    return sn_cli_usage("ps", "there is no card '%s': the cards are 0 (%s)%s%zu%s%s%s", name,
                        snug_gpus_card_at(gpus, 0)->id, n > 1 ? " to " : ", that is ", n - 1,
                        n > 1 ? " (" : "", n > 1 ? snug_gpus_card_at(gpus, n - 1)->id : "",
                        n > 1 ? ")" : " alone");
}

/* ---- the list ---- */

static int print_json(snug_gpus *gpus, const arguments *a)
{
    snug_error err = SNUG_ERROR_INIT;
    const char *text;
    if (snug_gpus_json(&text, gpus, &err))
        return sn_cli_fail(&err);
    if (!a->gpu) {
        puts(text);
        return SN_EXIT_DONE;
    }
    size_t chosen = chosen_card(gpus, a->gpu);
    if (chosen == SIZE_MAX)
        return no_such_card(gpus, a->gpu);
    json_t *whole = json_loads(text, 0, NULL), *one = json_array();
    json_t *card = json_array_get(json_object_get(whole, "gpus"), chosen);
    bool ok = card && !json_array_append(one, card) && !json_object_set(whole, "gpus", one) &&
              !json_dumpf(whole, stdout, JSON_INDENT(1));
    json_decref(one);
    json_decref(whole);
    putchar('\n');
    return ok ? SN_EXIT_DONE : SN_EXIT_FAILED;
}

static int print_list(snug_gpus *gpus, const arguments *a)
{
    if (a->json)
        return print_json(gpus, a);
    size_t chosen = a->gpu ? chosen_card(gpus, a->gpu) : SIZE_MAX;
    if (a->gpu && chosen == SIZE_MAX)
        return no_such_card(gpus, a->gpu);
    if (!snug_gpus_n_cards(gpus))
        puts("No GPU here: no driver shows a card (NVIDIA, AMD, Intel or other). RAM only:\n");
    for (size_t i = 0; i < snug_gpus_n_cards(gpus); i++)
        if (chosen == SIZE_MAX || i == chosen)
            print_card(snug_gpus_card_at(gpus, i));
    if (chosen == SIZE_MAX)
        print_ram(snug_gpus_ram_of(gpus));
    print_candidates(gpus);
    if (!a->quiet)
        print_notes(gpus);
    return SN_EXIT_DONE;
}

static void pause_seconds(double seconds)
{
    struct timespec t = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    nanosleep(&t, NULL);
}

static snug_gpus_options look_options(const arguments *a)
{
    snug_gpus_options o = SNUG_GPUS_OPTIONS_INIT;
    o.root = a->root;
    o.nvml = a->nvml;
    o.uid = a->uid;
    return o;
}

/* Two looks a moment apart tell idle from running. In another root nothing moves. */
static int list(const arguments *a)
{
    snug_error err = SNUG_ERROR_INIT;
    snug_gpus_options o = look_options(a);
    snug_gpus *before = NULL, *now = NULL;
    int code = SN_EXIT_DONE;
    if (!a->root) {
        o.processes_only = true;
        if (snug_gpus_new(&before, &o, &err))
            return sn_cli_fail(&err);
        o.processes_only = false;
        pause_seconds(0.25);
    }
    do {
        o.previous = before;
        if (snug_gpus_new(&now, &o, &err)) {
            code = sn_cli_fail(&err);
            break;
        }
        if (a->watch && isatty(STDOUT_FILENO))
            fputs("\033[H\033[J", stdout);
        code = print_list(now, a);
        snug_gpus_free(before);
        before = now;
        if (a->watch) {
            fflush(stdout);
            pause_seconds(a->interval);
        }
    } while (a->watch && code == SN_EXIT_DONE);
    snug_gpus_free(before);
    return code;
}

/* ---- --end ---- */

static const char *const verdicts[] = {"would-end", "ended", "killed", "refused", "gone", "failed"};

static int print_freed(const arguments *a, const snug_gpus *before, json_t *json)
{
    snug_error err = SNUG_ERROR_INIT;
    snug_gpus_options o = look_options(a);
    snug_gpus *after;
    char b[32], c[32], d[32];
    if (snug_gpus_new(&after, &o, &err))
        return sn_cli_fail(&err);
    json_t *cards = json_array();
    for (size_t i = 0; i < snug_gpus_n_cards(after); i++) {
        const snug_gpus_card *now = snug_gpus_card_at(after, i);
        const snug_gpus_card *was = snug_gpus_card_at(before, i);
        if (!was || strcmp(was->id, now->id) || was->used_bytes == SNUG_BYTES_UNKNOWN ||
            now->used_bytes == SNUG_BYTES_UNKNOWN)
            continue;
        uint64_t freed = was->used_bytes > now->used_bytes ? was->used_bytes - now->used_bytes : 0;
        json_array_append_new(
            cards, json_pack("{s:s,s:I}", "gpu", now->id, "freed_bytes", (json_int_t)freed));
        if (!json)
            printf("freed  %s on %s (now %s of %s used)\n", size_text(b, sizeof b, freed), now->id,
                   size_text(c, sizeof c, now->used_bytes),
                   size_text(d, sizeof d, now->total_bytes));
    }
    uint64_t was = snug_gpus_ram_of(before)->available_bytes;
    uint64_t now = snug_gpus_ram_of(after)->available_bytes;
    if (was != SNUG_BYTES_UNKNOWN && now != SNUG_BYTES_UNKNOWN) {
        uint64_t freed = now > was ? now - was : 0;
        if (json)
            json_object_set_new(json, "freed_ram_bytes", json_integer((json_int_t)freed));
        else
            printf("freed  %s of RAM (now %s available)\n", size_text(b, sizeof b, freed),
                   size_text(c, sizeof c, now));
    }
    if (json)
        json_object_set(json, "freed_gpus", cards);
    json_decref(cards);
    snug_gpus_free(after);
    return SN_EXIT_DONE;
}

static void print_target(const snug_gpus_target *t)
{
    char card[32], host[32];
    if (t->verdict != SNUG_GPUS_WOULD_END) {
        printf("%s\n", t->text);
        return;
    }
    printf("would end %s\n          TERM, up to 10 s, then KILL; frees ", t->text);
    if (t->card_bytes)
        printf("%s of the card and ", size_text(card, sizeof card, t->card_bytes));
    printf("%s of RAM\n", size_text(host, sizeof host, t->host_bytes));
}

static json_t *target_json(const snug_gpus_target *t)
{
    return json_pack("{s:I,s:s,s:s,s:o,s:o}", "pid", (json_int_t)t->pid, "verdict",
                     verdicts[t->verdict], "text", t->text, "gpu_bytes",
                     t->card_bytes == SNUG_BYTES_UNKNOWN ? json_null()
                                                         : json_integer((json_int_t)t->card_bytes),
                     "host_bytes",
                     t->host_bytes == SNUG_BYTES_UNKNOWN ? json_null()
                                                         : json_integer((json_int_t)t->host_bytes));
}

static int end(arguments *a)
{
    snug_error err = SNUG_ERROR_INIT;
    snug_gpus_options o = look_options(a);
    snug_gpus_end_options how = SNUG_GPUS_END_OPTIONS_INIT;
    snug_gpus *gpus;
    how.yes = a->yes;
    if (snug_gpus_new(&gpus, &o, &err))
        return sn_cli_fail(&err);
    if (snug_gpus_end(a->targets, a->n_targets, gpus, &how, &err)) {
        snug_gpus_free(gpus);
        return sn_cli_fail(&err);
    }
    int code = SN_EXIT_DONE;
    size_t n_ended = 0, n_would = 0;
    json_t *json = a->json ? json_object() : NULL, *list_of = json_array();
    for (size_t i = 0; i < a->n_targets; i++) {
        snug_gpus_verdict v = a->targets[i].verdict;
        n_ended += v == SNUG_GPUS_ENDED || v == SNUG_GPUS_KILLED;
        n_would += v == SNUG_GPUS_WOULD_END;
        if (v == SNUG_GPUS_REFUSED || v == SNUG_GPUS_GONE || v == SNUG_GPUS_FAILED)
            code = SN_EXIT_FAILED;
        if (json)
            json_array_append_new(list_of, target_json(&a->targets[i]));
        else
            print_target(&a->targets[i]);
    }
    if (n_ended && print_freed(a, gpus, json))
        code = SN_EXIT_FAILED;
    if (json) {
        json_object_set_new(json, "done", json_boolean(a->yes));
        json_object_set(json, "processes", list_of);
        if (json_dumpf(json, stdout, JSON_INDENT(1)))
            code = SN_EXIT_FAILED;
        putchar('\n');
    } else if (n_would) {
        fputs("Nothing was done. To do it: snug ps --yes --end", stdout);
        for (size_t i = 0; i < a->n_targets; i++)
            if (a->targets[i].verdict == SNUG_GPUS_WOULD_END)
                printf(" %lld", (long long)a->targets[i].pid);
        putchar('\n');
    }
    json_decref(list_of);
    json_decref(json);
    snug_gpus_free(gpus);
    return code;
}

/* ---- arguments ---- */

static bool add_targets(arguments *a, const char *text)
{
    while (*text) {
        char *stop;
        errno = 0;
        long long pid = strtoll(text, &stop, 10);
        if (stop == text || errno || pid <= 0 || (*stop && *stop != ',') ||
            a->n_targets == MAX_TARGETS)
            return false;
        a->targets[a->n_targets++] = (snug_gpus_target){.pid = pid};
        text = *stop ? stop + 1 : stop;
    }
    return true;
}

static bool parse_interval(arguments *a, const char *text)
{
    char *stop;
    a->interval = strtod(text, &stop);
    return stop != text && !*stop && a->interval >= 0.1 && a->interval <= 86400;
}

enum { OPT_END = 256, OPT_YES, OPT_WATCH, OPT_GPU, OPT_ROOT, OPT_JSON, OPT_QUIET, OPT_HELP };

static const struct option options[] = {
    {"end", optional_argument, NULL, OPT_END},
    {"yes", no_argument, NULL, OPT_YES},
    {"watch", optional_argument, NULL, OPT_WATCH},
    {"gpu", required_argument, NULL, OPT_GPU},
    {"root", required_argument, NULL, OPT_ROOT},
    {"json", no_argument, NULL, OPT_JSON},
    {"quiet", no_argument, NULL, OPT_QUIET},
    {"help", no_argument, NULL, OPT_HELP},
    {NULL, 0, NULL, 0},
};

static int unknown_option(const char *text, int option)
{
    static const char *const names[] = {"--end",  "--yes",  "--watch", "--gpu",
                                        "--root", "--json", "--quiet", "--help"};
    if (option == ':')
        return sn_cli_usage("ps", "%s needs a value", text);
    const char *near = sn_cli_nearest(text, names, sizeof names / sizeof names[0]);
    return sn_cli_usage("ps", "there is no option %s%s%s%s", text, near ? "; did you mean " : "",
                        near ? near : "", near ? "?" : "");
}

/* -1: go on; else the exit code. */
static int take_option(arguments *a, int option)
{
    switch (option) {
    case OPT_END:
        a->end = true;
        if (optarg && !add_targets(a, optarg))
            return sn_cli_usage("ps", "--end takes process numbers (at most %d), not '%s'",
                                MAX_TARGETS, optarg);
        return -1;
    case OPT_YES:
        a->yes = true;
        return -1;
    case OPT_WATCH:
        a->watch = true;
        if (optarg && !parse_interval(a, optarg))
            return sn_cli_usage("ps", "--watch takes seconds from 0.1 on, not '%s'", optarg);
        return -1;
    case OPT_GPU:
        a->gpu = optarg;
        return -1;
    case OPT_ROOT:
        a->root = optarg;
        return -1;
    case OPT_JSON:
        a->json = true;
        return -1;
    case OPT_QUIET:
        a->quiet = true;
        return -1;
    default:
        fputs(help_text, stdout);
        return SN_EXIT_DONE;
    }
}

static int check(const arguments *a)
{
    if (a->end && !a->n_targets)
        return sn_cli_usage("ps", "--end needs the numbers of processes: snug ps --end 4242");
    if (!a->end && a->yes)
        return sn_cli_usage("ps", "--yes belongs to --end PID...");
    if (a->watch && (a->end || a->json))
        return sn_cli_usage("ps", "--watch goes with the list only, not with %s",
                            a->end ? "--end" : "--json");
    if (a->end && a->gpu)
        return sn_cli_usage("ps", "--gpu chooses what is listed; --end takes process numbers");
    return -1;
}

int snug_cmd_ps(int argc, char **argv)
{
    arguments a = {.interval = 2, .root = getenv("SNUG_ROOT"), .nvml = getenv("SNUG_NVML")};
    const char *sudo = getenv("SUDO_UID");
    int option, code;
    /* Under sudo the processes that may go are those of the person who typed it. */
    if (!getuid() && sudo && *sudo)
        a.uid = (uint32_t)strtoul(sudo, NULL, 10);
    opterr = 0;
    optind = 0;
    while ((option = getopt_long(argc, argv, ":", options, NULL)) != -1) {
        if (option == '?' || option == ':')
            return unknown_option(argv[optind - 1], option);
        if ((code = take_option(&a, option)) >= 0)
            return code;
    }
    for (; optind < argc; optind++) {
        if (!a.end)
            return sn_cli_usage("ps", "what should happen with '%s'? snug ps --end %s ends it",
                                argv[optind], argv[optind]);
        if (!add_targets(&a, argv[optind]))
            return sn_cli_usage("ps", "--end takes process numbers (at most %d), not '%s'",
                                MAX_TARGETS, argv[optind]);
    }
    if (a.root && (!*a.root || !strcmp(a.root, "/")))
        a.root = NULL;
    if ((code = check(&a)) >= 0)
        return code;
    return a.end ? end(&a) : list(&a);
}
