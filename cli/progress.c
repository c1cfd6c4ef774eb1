/* SPDX-License-Identifier: Apache-2.0
 *
 * progress.c - the progress bar on stderr: drawn over itself on a terminal, a line every half
 * minute elsewhere.
 */
#include "progress.h"

#include <math.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"
#include "setup.h"

static volatile sig_atomic_t stop_asked;

static void on_signal(int number)
{
    if (stop_asked && number == SIGINT)
        _exit(130);
    stop_asked = 1;
}

void sn_cli_catch_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
}

bool sn_cli_stop_asked(void)
{
    return stop_asked;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void sn_cli_progress_begin(sn_cli_progress *progress, bool quiet, uint64_t planned_bytes)
{
    *progress = (sn_cli_progress){.quiet = quiet,
                                  .terminal = isatty(STDERR_FILENO),
                                  .planned_bytes = planned_bytes,
                                  .last_line = now()};
}

static int width(void)
{
    struct winsize size;
    return !ioctl(STDERR_FILENO, TIOCGWINSZ, &size) && size.ws_col >= 40 ? size.ws_col : 80;
}

static uint64_t resident_bytes(void)
{
    unsigned long long pages = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file)
        return 0;
    if (fscanf(file, "%llu %llu", &pages, &resident) != 2)
        resident = 0;
    fclose(file);
    return resident * (unsigned long long)sysconf(_SC_PAGESIZE);
}

static void bar(char *out, size_t n, const snug_train_progress *p)
{
    const int cells = 20;
    int full = p->n_steps ? (int)((double)cells * (double)p->step / (double)p->n_steps) : 0;
    size_t used = 0;
    for (int i = 0; i < cells && used + 4 < n; i++)
        used += (size_t)snprintf(out + used, n - used, "%s", i < full ? "━" : "─");
}

static void draw(sn_cli_progress *progress, const snug_train_progress *p)
{
    char cells[96], line[400], eta[32] = "", a[32], b[32];
    bar(cells, sizeof cells, p);
    if (!isnan(p->eta_seconds))
        sn_cli_seconds(eta, sizeof eta, p->eta_seconds);
    int n = snprintf(line, sizeof line, "epoch %lld/%lld %s %llu", (long long)p->epoch,
                     (long long)p->n_epochs, progress->terminal ? cells : "step",
                     (unsigned long long)p->step);
    if (p->n_steps)
        n += snprintf(line + n, sizeof line - (size_t)n, "/%llu", (unsigned long long)p->n_steps);
    n += snprintf(line + n, sizeof line - (size_t)n, "  %.1f img/s  loss %.4f",
                  p->images_per_second, p->loss);
    if (!isnan(p->accuracy))
        n += snprintf(line + n, sizeof line - (size_t)n, "  acc %.4f", p->accuracy);
    if (eta[0])
        n += snprintf(line + n, sizeof line - (size_t)n, "  %s left", eta);
    snprintf(line + n, sizeof line - (size_t)n, "  mem %s / %s",
             sn_cli_bytes(a, sizeof a, resident_bytes()),
             sn_cli_bytes(b, sizeof b, progress->planned_bytes));
    if (progress->terminal) {
        fprintf(stderr, "\r%.*s\033[K", width() + 38, line); /* the bar's cells take 3 bytes each */
        progress->open = true;
    } else {
        fprintf(stderr, "%s\n", line);
    }
    fflush(stderr);
}

static void close_bar(sn_cli_progress *progress)
{
    if (progress->open)
        fputs("\r\033[K", stderr);
    progress->open = false;
}

static void epoch_line(sn_cli_progress *progress, const snug_train_progress *p)
{
    char a[32];
    close_bar(progress);
    fprintf(stderr, "epoch %lld/%lld  %s  loss %.4f", (long long)p->epoch, (long long)p->n_epochs,
            sn_cli_seconds(a, sizeof a, p->seconds), p->loss);
    if (!isnan(p->accuracy))
        fprintf(stderr, "  accuracy %.4f", p->accuracy);
    if (!isnan(p->val_loss))
        fprintf(stderr, "  val_loss %.4f", p->val_loss);
    if (!isnan(p->val_accuracy))
        fprintf(stderr, "  val_accuracy %.4f", p->val_accuracy);
    fprintf(stderr, "  lr %.3g%s\n", (double)p->learning_rate, p->improved ? "  best" : "");
    fflush(stderr);
    progress->last_line = now();
}

bool sn_cli_on_progress(void *context, const snug_train_progress *p)
{
    sn_cli_progress *progress = context;
    double t = now();
    if (progress->quiet)
        return !stop_asked;
    if (p->event == SNUG_TRAIN_EPOCH) {
        epoch_line(progress, p);
    } else if (p->event == SNUG_TRAIN_ADVICE) {
        close_bar(progress);
        fprintf(stderr, "advice: %s\n", p->text);
    } else if (p->event == SNUG_TRAIN_STEP) {
        bool due =
            progress->terminal ? t - progress->last_draw >= .1 : t - progress->last_line >= 30;
        if (due) {
            draw(progress, p);
            progress->last_draw = progress->last_line = t;
        }
    }
    return !stop_asked;
}

bool sn_cli_on_samples(void *context, uint64_t n_done)
{
    sn_cli_progress *progress = context;
    double t = now();
    if (!progress->quiet && progress->terminal && t - progress->last_draw >= .2) {
        fprintf(stderr, "\r%llu samples\033[K", (unsigned long long)n_done);
        fflush(stderr);
        progress->open = true;
        progress->last_draw = t;
    }
    return !stop_asked;
}

void sn_cli_progress_end(sn_cli_progress *progress)
{
    close_bar(progress);
}
