/* SPDX-License-Identifier: Apache-2.0
 *
 * report.c - a plan and a refusal in words, and small pieces of text.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "setup.h"

#define MIB 1048576.0

const char *sn_cli_bytes(char *out, size_t n, uint64_t bytes)
{
    if (bytes < 1024)
        snprintf(out, n, "%llu B", (unsigned long long)bytes);
    else if (bytes < 1024 * 1024)
        snprintf(out, n, "%.3g KiB", (double)bytes / 1024);
    else if ((double)bytes < 10 * 1024 * MIB)
        snprintf(out, n, "%.0f MiB", ceil((double)bytes / MIB));
    else
        snprintf(out, n, "%.1f GiB", (double)bytes / MIB / 1024);
    return out;
}

const char *sn_cli_seconds(char *out, size_t n, double seconds)
{
    if (seconds < .01)
        snprintf(out, n, "%.1f ms", seconds * 1e3);
    else if (seconds < 10)
        snprintf(out, n, "%.2g s", seconds);
    else if (seconds < 100)
        snprintf(out, n, "%.0f s", seconds);
    else if (seconds < 5400)
        snprintf(out, n, "%.0f min", seconds / 60);
    else if (seconds < 48 * 3600)
        snprintf(out, n, "%d h %d min", (int)(seconds / 3600), (int)fmod(seconds / 60, 60));
    else
        snprintf(out, n, "%.1f days", seconds / 86400);
    return out;
}

const char *sn_cli_count(char *out, size_t n, uint64_t value)
{
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%llu", (unsigned long long)value);
    size_t used = 0;
    for (int i = 0; i < length && used + 2 < n; i++) {
        if (i && (length - i) % 3 == 0)
            out[used++] = ',';
        out[used++] = digits[i];
    }
    out[used] = 0;
    return out;
}

static void print_what(FILE *out, const sn_cli_setup *s)
{
    char n[32], text[96] = "";
    const snug_plan_info *info = snug_plan_numbers(s->plan);
    if (s->data) {
        size_t k = snug_data_n_classes(s->data);
        uint64_t train = snug_data_n(s->data, SNUG_SUBSET_TRAIN);
        snprintf(text, sizeof text, "%s %s, ", sn_cli_count(n, sizeof n, train),
                 s->is_image ? "images" : "rows");
        fprintf(out, "data     %s", text);
        if (k)
            fprintf(out, "%zu classes", k);
        else
            fputs("real-valued targets", out);
        uint64_t held = snug_data_n(s->data, SNUG_SUBSET_VALIDATION);
        if (held)
            fprintf(out, "; %s more for validation", sn_cli_count(n, sizeof n, held));
        fputc('\n', out);
    }
    fprintf(out, "model    %s", s->model_spec);
    if (s->width)
        fprintf(out, " %lldx%lld", (long long)s->height, (long long)s->width);
    fprintf(out, ", %s parameters, batch %lld, %s, float32\n",
            sn_cli_count(n, sizeof n, info->parameters), (long long)info->batch,
            snug_optimizer_name(s->optimizer.kind));
}

static void print_verdict(FILE *out, const sn_cli_setup *s)
{
    char a[32], b[32];
    const snug_plan_info *info = snug_plan_numbers(s->plan);
    const snug_device_info *d = snug_plan_device(s->plan);
    fprintf(out, "device   %s: %s of %s free\n", d->name, sn_cli_bytes(a, sizeof a, d->free_bytes),
            sn_cli_bytes(b, sizeof b, d->total_bytes));
    fprintf(out, "%s %.0f of %.0f MiB%s\n", info->fits ? "FITS    " : "NO FIT  ",
            ceil((double)info->peak_bytes / MIB), (double)info->budget_bytes / MIB,
            info->fits ? ", same results as without a limit" : "");
    fputs("        ", out);
    for (int k = 0; k < SNUG_N_BYTES_KINDS; k++)
        if ((double)info->kind_bytes[k] >= MIB / 2)
            fprintf(out, " %s %.0f ", k == SNUG_BYTES_STAGING ? "batch" : snug_bytes_kind_name(k),
                    (double)info->kind_bytes[k] / MIB);
    fprintf(out, " libraries %.0f  pipeline %.0f\n", (double)info->runtime_bytes / MIB,
            (double)info->host_bytes / MIB);
}

/* How it fits, in plain words; the field's name once, in brackets. */
static void print_how(FILE *out, const sn_cli_setup *s)
{
    static const struct {
        const char *remedy, *words;
    } words[] = {{"recompute", "computed twice (recomputation)"},
                 {"in-place", "results written over their inputs (in place)"},
                 {"fused-update", "gradients applied at once (fused update)"},
                 {"small-saved", "masks and indices kept instead of tensors"}};
    size_t n = snug_plan_n_choices(s->plan), shown = 0;
    for (size_t i = 0; i < n; i++) {
        const snug_choice *c = snug_plan_choice(s->plan, i);
        const char *text = c->remedy;
        if ((double)c->saves_bytes < MIB)
            continue;
        for (size_t k = 0; k < sizeof words / sizeof words[0]; k++)
            text = strcmp(words[k].remedy, c->remedy) ? text : words[k].words;
        fprintf(out, "%s%s: -%.0f MiB", shown++ ? "; " : "how      ", text,
                (double)c->saves_bytes / MIB);
    }
    if (shown)
        fputc('\n', out);
    const snug_plan_info *info = snug_plan_numbers(s->plan);
    fprintf(out, "         a framework that keeps everything would take %.0f MiB\n",
            (double)info->keep_all_peak_bytes / MIB);
}

static void print_time(FILE *out, const sn_cli_setup *s)
{
    char a[32], b[32], c[32];
    const snug_plan_info *info = snug_plan_numbers(s->plan);
    if (s->step_seconds <= 0)
        return;
    fprintf(out, "time     %s a step, %.1f images/s", sn_cli_seconds(a, sizeof a, s->step_seconds),
            (double)info->batch / s->step_seconds);
    if (s->plan_options.n_samples) {
        double epoch =
            s->step_seconds * ceil((double)s->plan_options.n_samples / (double)info->batch);
        fprintf(out, ", %s an epoch, %s for %lld", sn_cli_seconds(b, sizeof b, epoch),
                sn_cli_seconds(c, sizeof c, epoch * (double)s->epochs), (long long)s->epochs);
    }
    fputc('\n', out);
}

void sn_cli_print_plan(FILE *out, const sn_cli_setup *s, bool with_room)
{
    print_what(out, s);
    print_verdict(out, s);
    print_how(out, s);
    print_time(out, s);
    if (with_room) {
        int64_t largest = 0;
        if (!snug_plan_largest_batch(s->plan, &largest, NULL))
            fprintf(out, "room     largest batch that fits: %lld\n", (long long)largest);
    }
    if (snug_plan_numbers(s->plan)->batch < 8 && snug_model_has_batch_norm(s->model))
        fprintf(out,
                "note     a batch of %lld is few for BatchNorm's statistics: 8 or more learn "
                "better\n",
                (long long)snug_plan_numbers(s->plan)->batch);
}

/* What takes most, with the numbers. */
static void print_why(FILE *out, const sn_cli_setup *s)
{
    const snug_plan_info *info = snug_plan_numbers(s->plan);
    char *reason = snug_plan_reason(s->plan);
    if (reason)
        fprintf(out, "why:   %s\n", reason);
    snug_text_free(reason);
    double rest = (double)(info->runtime_bytes + info->host_bytes) / MIB;
    if (rest > .25 * (double)info->budget_bytes / MIB)
        fprintf(out, "       the program itself and its pipeline take %.0f MiB of the budget\n",
                rest);
}

void sn_cli_print_refusal(FILE *out, const sn_cli_setup *s)
{
    const snug_plan_info *info = snug_plan_numbers(s->plan);
    fprintf(out,
            "error: does not fit: at least %.0f MiB, budget %.0f MiB. Nothing was started or "
            "allocated.\n",
            ceil((double)info->peak_bytes / MIB), floor((double)info->budget_bytes / MIB));
    print_why(out, s);
    size_t n = snug_plan_n_fixes(s->plan);
    if (n)
        fputs("fix:   (each one planned; add it to your command)\n", out);
    for (size_t i = 0; i < n; i++) {
        snug_plan_fix fix;
        snug_plan_fix_at(s->plan, i, &fix);
        fprintf(out, "  %zu    %-30s %6.0f MiB   %s\n", i + 1, fix.add,
                ceil((double)fix.peak_bytes / MIB), fix.what);
    }
    size_t n_useless = snug_plan_n_useless(s->plan);
    for (size_t i = 0; i < n_useless; i++) {
        const char *advice, *why;
        snug_plan_useless_at(s->plan, i, &advice, &why);
        fprintf(out, "%s%s (%s)%s", i ? ", " : "no use: ", advice, why,
                i + 1 == n_useless ? "\n" : "");
    }
}

int sn_cli_write_file(const char *path, const char *text)
{
    char temporary[4200];
    snprintf(temporary, sizeof temporary, "%s.tmp", path);
    FILE *file = fopen(temporary, "w");
    bool good = file && fputs(text, file) >= 0 && !fflush(file) && !fsync(fileno(file));
    good = file && !fclose(file) && good;
    if (!good || rename(temporary, path)) {
        fprintf(stderr, "error: cannot write '%s'\n", path);
        remove(temporary);
        return SN_EXIT_FAILED;
    }
    return 0;
}

void sn_cli_csv_text(FILE *out, const char *text)
{
    fputc('"', out);
    for (; *text; text++) {
        if (*text == '"')
            fputc('"', out);
        fputc(*text, out);
    }
    fputc('"', out);
}
