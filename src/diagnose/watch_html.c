/* SPDX-License-Identifier: Apache-2.0
 *
 * watch_html.c - the page of a watched run: what happened, memory over time as inline SVG, the same
 * as a table for those who cannot see it, the causes. No script, no reference to another file.
 */
#include <stdio.h>
#include <string.h>

#include "diagnose/watch.h"

#define WIDTH 920
#define HEIGHT 340
#define LEFT 84
#define RIGHT 16
#define TOP 16
#define BOTTOM 40
#define MAX_POINTS 600

static const char style[] =
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;"
    "color:#1a1a1a;background:#fff}h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2rem}"
    "code{background:#f0f0f0;padding:.1em .3em;border-radius:3px}table{border-collapse:collapse}"
    "th,td{text-align:right;padding:.2rem .8rem;border-bottom:1px solid #ddd}"
    "th:first-child,td:first-child{text-align:left}svg{width:100%;height:auto}"
    ".cause{border-left:4px solid #b3261e;padding-left:1rem;margin:1rem 0}"
    ".other{border-color:#999}.small{color:#555;font-size:.9rem}"
    "@media(prefers-color-scheme:dark){body{color:#eee;background:#161616}code{background:#333}"
    "th,td{border-color:#444}.small{color:#bbb}}";

typedef struct series {
    const char *name, *colour;
    size_t offset;
} series;

static const series all_series[] = {
    {"all processes", "#0b61a4", offsetof(sn_sample, tree_bytes)},
    {"the main process", "#2e8b57", offsetof(sn_sample, main_bytes)},
    {"/dev/shm", "#b8860b", offsetof(sn_sample, shm_bytes)},
    {"GPU", "#8e24aa", offsetof(sn_sample, gpu_bytes)},
};

static uint64_t value(const sn_sample *s, const series *of)
{
    uint64_t v;
    memcpy(&v, (const char *)s + of->offset, sizeof v);
    return v;
}

/* 0 for a series that is not drawn: nothing of it was seen, or it is that of all processes again.
 */
static uint64_t highest(const snug_watch *w, const series *of)
{
    uint64_t most = 0;
    if (of->offset == offsetof(sn_sample, main_bytes) && w->seen.n < 2)
        return 0;
    for (size_t i = 0; i < w->samples.n; i++)
        most = SN_MAX(most, value(&w->samples.at[i], of));
    return most;
}

/* A step of the axis: 1, 2 or 5 times a power of two or ten that gives at most six lines. */
static double axis_step(double top)
{
    double step = 1;
    static const double times[] = {2, 2.5, 2};
    for (size_t i = 0; top / step > 6; i++)
        step *= times[i % 3];
    return step;
}

static void svg_grid(sn_buf *b, double top, double unit, const char *unit_name, double seconds)
{
    double step = axis_step(top / unit);
    for (double v = 0; v <= top / unit; v += step) {
        double y = TOP + (HEIGHT - TOP - BOTTOM) * (1 - v * unit / top);
        sn_buf_printf(b,
                      "<line x1='%d' y1='%.1f' x2='%d' y2='%.1f' stroke='currentColor' "
                      "stroke-opacity='.15'/><text x='%d' y='%.1f' text-anchor='end'>%g %s</text>",
                      LEFT, y, WIDTH - RIGHT, y, LEFT - 8, y + 4, v, unit_name);
    }
    bool minutes = seconds > 180;
    double length = minutes ? seconds / 60 : seconds;
    double by = axis_step(length);
    if (length < 6)
        by = length > 2 ? 1 : length > 0.8 ? 0.25 : 0.1;
    for (double t = 0; t <= length; t += by)
        sn_buf_printf(b, "<text x='%.1f' y='%d' text-anchor='middle'>%g %s</text>",
                      LEFT + (WIDTH - LEFT - RIGHT) * t / length, HEIGHT - BOTTOM + 20, t,
                      minutes ? "min" : "s");
}

static void svg_line(sn_buf *b, const snug_watch *w, const series *of, double top, double seconds)
{
    size_t n = w->samples.n, step = n > MAX_POINTS ? n / MAX_POINTS + 1 : 1;
    sn_buf_printf(b, "<polyline fill='none' stroke='%s' stroke-width='2' points='", of->colour);
    for (size_t i = 0; i < n; i += step) {
        const sn_sample *s = &w->samples.at[i];
        sn_buf_printf(b, "%.1f,%.1f ", LEFT + (WIDTH - LEFT - RIGHT) * s->seconds / seconds,
                      TOP + (HEIGHT - TOP - BOTTOM) * (1 - (double)value(s, of) / top));
    }
    sn_buf_puts(b, "'/>");
}

static void svg(sn_buf *b, const snug_watch *w)
{
    size_t n = w->samples.n;
    double seconds = n ? w->samples.at[n - 1].seconds : 0;
    uint64_t peak = SN_MAX(w->peak_bytes, w->gpu_peak), limit = sn_watch_limit(w);
    char at_peak[32], at_limit[32];
    if (n < 2 || seconds <= 0 || !peak) {
        sn_buf_puts(b, "<p>The run was too short to be drawn.</p>");
        return;
    }
    /* The limit is drawn where it is near enough to matter. */
    bool draw_limit = limit && limit < peak * 4;
    double top = 1.08 * (double)(draw_limit ? SN_MAX(limit, peak) : peak);
    double unit = top >= 2.0 * (double)SN_GIB ? (double)SN_GIB : (double)SN_MIB;
    sn_buf_printf(b,
                  "<svg viewBox='0 0 %d %d' role='img' aria-labelledby='t s' font-size='12' "
                  "fill='currentColor'><title id='t'>Memory over time</title><desc id='s'>",
                  WIDTH, HEIGHT);
    sn_buf_printf(b, "Memory rises to %s at second %.1f of %.1f; the limit is %s.",
                  sn_format_bytes(at_peak, sizeof at_peak, peak), w->peak_seconds, seconds,
                  sn_format_bytes(at_limit, sizeof at_limit, limit));
    sn_buf_puts(b, "</desc>");
    svg_grid(b, top, unit, unit == (double)SN_GIB ? "GiB" : "MiB", seconds);
    if (draw_limit) {
        double y = TOP + (HEIGHT - TOP - BOTTOM) * (1 - (double)limit / top);
        sn_buf_printf(b,
                      "<line x1='%d' y1='%.1f' x2='%d' y2='%.1f' stroke='#b3261e' "
                      "stroke-width='1.5' stroke-dasharray='6 4'/><text x='%d' y='%.1f' "
                      "fill='#b3261e'>limit %s</text>",
                      LEFT, y, WIDTH - RIGHT, y, LEFT + 6, y - 5, at_limit);
    }
    for (size_t i = 0; i < SN_LEN(all_series); i++)
        if (highest(w, &all_series[i]))
            svg_line(b, w, &all_series[i], top, seconds);
    sn_buf_puts(b, "</svg><p class='small'>");
    for (size_t i = 0; i < SN_LEN(all_series); i++)
        if (highest(w, &all_series[i]))
            sn_buf_printf(b, "<span style='color:%s'>&#9632;</span> %s &nbsp; ",
                          all_series[i].colour, all_series[i].name);
    sn_buf_puts(b, "</p>");
}

/* Ten moments as numbers. */
static void table(sn_buf *b, const snug_watch *w)
{
    size_t n = w->samples.n, rows = SN_MIN(n, (size_t)10);
    char one[32], two[32], three[32];
    sn_buf_puts(b, "<h2>The same as numbers</h2><table><tr><th>time</th><th>all processes</th>"
                   "<th>main process</th><th>/dev/shm</th><th>processes</th><th>steps</th></tr>");
    for (size_t r = 0; r < rows; r++) {
        const sn_sample *s = &w->samples.at[rows > 1 ? r * (n - 1) / (rows - 1) : 0];
        sn_buf_printf(b,
                      "<tr><td>%.1f s</td><td>%s</td><td>%s</td><td>%s</td><td>%u</td><td>%" PRIu64
                      "</td></tr>",
                      s->seconds, sn_format_bytes(one, sizeof one, s->tree_bytes),
                      sn_format_bytes(two, sizeof two, s->main_bytes),
                      sn_format_bytes(three, sizeof three, s->shm_bytes), s->n_processes, s->steps);
    }
    sn_buf_puts(b, "</table>");
}

static void holders(sn_buf *b, const snug_watch *w)
{
    char peak[32], then[32];
    sn_buf_puts(b, "<h2>Who held it</h2><table><tr><th>process</th><th>when memory was highest</th>"
                   "<th>its own highest</th></tr>");
    bool done[SN_WATCH_PROCESSES] = {false};
    for (size_t row = 0; row < 12 && row < w->seen.n; row++) {
        size_t best = w->seen.n;
        for (size_t i = 0; i < w->seen.n; i++)
            if (!done[i] &&
                (best == w->seen.n || w->seen.at[i].bytes_at_peak > w->seen.at[best].bytes_at_peak))
                best = i;
        done[best] = true;
        const sn_seen *s = &w->seen.at[best];
        sn_buf_puts(b, "<tr><td>");
        sn_buf_puts_html(b, s->name);
        sn_buf_printf(b, " (%d)%s</td><td>%s</td><td>%s</td></tr>", s->pid, s->main ? ", main" : "",
                      sn_format_bytes(then, sizeof then, s->bytes_at_peak),
                      sn_format_bytes(peak, sizeof peak, s->peak_bytes));
    }
    sn_buf_puts(b, "</table>");
}

static void cause(sn_buf *b, const snug_cause *c, bool first)
{
    sn_buf_printf(b, "<div class='cause%s'><p><strong>%s</strong> (%.1f) ", first ? "" : " other",
                  c->name, c->confidence);
    sn_buf_puts_html(b, c->explanation);
    sn_buf_puts(b, "</p>");
    for (size_t i = 0; i < c->n_evidence; i++) {
        sn_buf_puts(b, "<p class='small'>");
        sn_buf_puts_html(b, c->evidence[i].source);
        if (c->evidence[i].line)
            sn_buf_printf(b, ":%" PRIu64, c->evidence[i].line);
        sn_buf_puts(b, " <code>");
        sn_buf_puts_html(b, c->evidence[i].text);
        sn_buf_puts(b, "</code></p>");
    }
    if (c->n_fixes)
        sn_buf_puts(b, "<ol>");
    for (size_t i = 0; i < c->n_fixes; i++) {
        sn_buf_puts(b, "<li><code>");
        sn_buf_puts_html(b, c->fixes[i].action);
        sn_buf_puts(b, "</code> ");
        sn_buf_puts_html(b, c->fixes[i].why);
        sn_buf_puts(b, "</li>");
    }
    sn_buf_puts(b, c->n_fixes ? "</ol></div>" : "</div>");
}

snug_status snug_watch_html(snug_watch *w, const snug_diagnosis *d, const char **html,
                            snug_error *err)
{
    sn_buf *b = &w->html;
    sn_buf_clear(b);
    sn_buf_puts(b, "<!DOCTYPE html><html lang='en'><head><meta charset='utf-8'>"
                   "<meta name='viewport' content='width=device-width'><title>snug diagnose: ");
    sn_buf_puts_html(b, w->command);
    sn_buf_printf(b, "</title><style>%s</style></head><body><h1>", style);
    sn_buf_puts_html(b, w->command);
    sn_buf_puts(b, "</h1><p>How it ended: ");
    sn_buf_puts_html(b, w->summary);
    sn_buf_puts(b, "</p><h2>Memory over time</h2>");
    svg(b, w);
    sn_buf_puts(b, "<h2>Why</h2>");
    for (size_t i = 0; i < snug_diagnosis_n_causes(d) && i < 3; i++)
        cause(b, snug_diagnosis_cause(d, i), i == 0);
    holders(b, w);
    table(b, w);
    sn_buf_printf(
        b,
        "<p class='small'>%zu samples; watching took %.2f s of processor time. Processes "
        "that share pages: each page once where the kernel says so (Pss).</p></body></html>\n",
        w->samples.n, w->cost);
    if (b->failed)
        return sn_fail(err, SNUG_E_MEMORY, "no memory for the page");
    *html = b->data;
    return SNUG_OK;
}
