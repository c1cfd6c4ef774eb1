/* SPDX-License-Identifier: Apache-2.0
 *
 * source_rules.c - what is reported, and the arithmetic in its words.
 *
 * 1. A trap is reported once a line, and only in the last walk.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "diagnose/source_scan.h"

/* Below this a set in memory is nobody's trouble. */
#define SMALL_BYTES (256 * SN_MIB)
/* Samples below it are digits or thumbnails: ten thousands of them fit anywhere. */
#define SMALL_SAMPLE (16 * SN_KIB)
/* A photo as most networks take it, where the code does not say. */
#define USUAL_BYTES (224 * 224 * 3 * 4)

static const struct {
    const char *name;
    snug_cause_id cause;
    double confidence;
} traps[] = {
#define SN_TRAP_ROW(id, cause, confidence, decisive, action, why)                                  \
    {#id, SNUG_CAUSE_##cause, confidence},
    SN_TRAP_LIST(SN_TRAP_ROW)
#undef SN_TRAP_ROW
};

const char *sn_trap_name(sn_trap trap)
{
    return (size_t)trap < SN_LEN(traps) ? traps[trap].name : "?";
}

snug_cause_id sn_trap_cause(sn_trap trap)
{
    return (size_t)trap < SN_LEN(traps) ? traps[trap].cause : SNUG_CAUSE_UNKNOWN;
}

void sn_src_report(sn_scan *scan, sn_trap trap, double confidence, uint32_t line, uint32_t other,
                   const char *format, ...)
{
    sn_source_report *r = scan->report;
    va_list args;
    if (!scan->reporting || scan->failed)
        return;
    for (size_t i = 0; i < r->n; i++) /* 1 */
        if (r->at[i].line == line &&
            (r->at[i].trap == trap || sn_trap_cause(r->at[i].trap) == sn_trap_cause(trap)))
            return;
    if (r->n == r->cap) {
        size_t cap = r->cap ? r->cap * 2 : 16;
        sn_source_finding *at = sn_arena_alloc_array(scan->arena, cap, sizeof *at);
        if (!at) {
            scan->failed = true;
            return;
        }
        if (r->n)
            memcpy(at, r->at, r->n * sizeof *at);
        r->at = at;
        r->cap = cap;
    }
    char text[512];
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    char *kept = sn_arena_strdup(scan->arena, text);
    if (!kept) {
        scan->failed = true;
        return;
    }
    r->at[r->n++] = (sn_source_finding){trap, confidence > 0 ? confidence : traps[trap].confidence,
                                        line, other == line ? 0 : other, kept};
}

uint64_t sn_src_sample_bytes(const sn_value *v)
{
    uint64_t bytes = v->width ? v->width : 4;
    if (!v->n_dims)
        return 0;
    for (unsigned i = 0; i < v->n_dims; i++)
        if (v->dims[i] < 0 || sn_mul_u64(&bytes, bytes, (uint64_t)v->dims[i]))
            return 0;
    return bytes;
}

uint64_t sn_src_set_bytes(const sn_value *v)
{
    uint64_t bytes = sn_src_sample_bytes(v);
    if (v->count < 0 || sn_mul_u64(&bytes, bytes, (uint64_t)v->count))
        return 0;
    return bytes;
}

bool sn_src_is_small(const sn_value *v)
{
    uint64_t bytes = sn_src_set_bytes(v);
    uint64_t sample = sn_src_sample_bytes(v);
    bool empty = v->n_dims && v->count == 0;
    bool thumbnails = v->count < 0 && sample && sample < SMALL_SAMPLE;
    return v->small || empty || thumbnails || (bytes && bytes < SMALL_BYTES);
}

static const char *type_name(unsigned width)
{
    return width == 1 ? "uint8" : width == 2 ? "16-bit" : width == 8 ? "float64" : "float32";
}

static void size_bytes(char *out, size_t n, uint64_t bytes)
{
    double b = (double)bytes;
    if (bytes >= SN_GIB)
        snprintf(out, n, "%.2f GiB", b / (double)SN_GIB);
    else if (bytes >= SN_MIB)
        snprintf(out, n, "%.1f MiB", b / (double)SN_MIB);
    else
        snprintf(out, n, "%.0f KiB", b / (double)SN_KIB);
}

const char *sn_src_size_text(sn_scan *scan, const sn_value *v)
{
    char dims[96] = "", one[32], all[32];
    uint64_t sample = sn_src_sample_bytes(v), whole = sn_src_set_bytes(v);
    size_t used = 0;
    for (unsigned i = 0; i < v->n_dims && used < sizeof dims - 24; i++)
        used += (size_t)snprintf(dims + used, sizeof dims - used, "%s%" PRId64, i ? "x" : "",
                                 v->dims[i]);
    char *text;
    if (whole) {
        size_bytes(all, sizeof all, whole);
        text = sn_arena_printf(scan->arena, "%" PRId64 " x %s in %s = %s", v->count, dims,
                               type_name(v->width), all);
    } else if (sample) {
        size_bytes(one, sizeof one, sample);
        size_bytes(all, sizeof all, sample > UINT64_MAX / 10000 ? UINT64_MAX : sample * 10000);
        text = sn_arena_printf(scan->arena, "%s in %s is %s a sample, %s for each 10,000", dims,
                               type_name(v->width), one, all);
    } else {
        text = sn_arena_printf(scan->arena, "a 224x224x3 image is 588 KiB as float32, 5.61 GiB for "
                                            "each 10,000");
    }
    if (!text)
        scan->failed = true;
    return text ? text : "";
}

void sn_src_check_convert(sn_scan *scan, const char *call, sn_value *v, uint32_t line)
{
    if (sn_src_is_small(v) || v->reported || sn_src_bounded(scan))
        return;
    /* np.load() of something: only what surely copies it, and only if images or a shape say so. */
    bool copies =
        sn_src_mentions(call, "convert_to_tensor|constant|from_tensor|variable|list()|.to|cuda");
    if (!v->certain && !copies && !sn_src_set_bytes(v))
        return;
    v->reported = true;
    sn_src_report(
        scan, SN_TRAP_CONVERT, 0, line, v->line,
        "%.60s() makes one array of the whole data set, beside what it is made from (%s).", call,
        sn_src_size_text(scan, v));
}

void sn_src_check_fit(sn_scan *scan, const char *call, sn_value *v, uint32_t line)
{
    if (sn_src_is_small(v) || v->reported || sn_src_bounded(scan))
        return;
    v->reported = true;
    sn_src_report(scan, SN_TRAP_FIT_ARRAY, 0, line, v->line,
                  "%.60s() gets the whole data set as one array, which Keras copies into a tensor "
                  "(%s).",
                  call, sn_src_size_text(scan, v));
}

void sn_src_check_array(sn_scan *scan, sn_value *v, const char *call, uint32_t line)
{
    uint64_t bytes = sn_src_set_bytes(v), sample = sn_src_sample_bytes(v);
    bool of_files = v->count < 0 && !v->small && v->n_dims >= 2 && sample >= 3 * 64 * 64 &&
                    !sn_src_bounded(scan);
    if (bytes >= SN_GIB || of_files) {
        v->reported = v->certain = true;
        sn_src_report(scan, SN_TRAP_BIG_ARRAY, 0, line, 0,
                      "%.60s() allocates the whole data set at once (%s).", call,
                      sn_src_size_text(scan, v));
    } else if (v->count < 0) {
        v->small = true;
    }
}

void sn_src_check_cache(sn_scan *scan, const sn_value *v, const sn_py_node *call)
{
    const sn_py_node *file = sn_py_arg(call, 0, "filename");
    uint32_t line = call->a ? call->a->line : call->line;
    bool none = !file || (file->kind == SN_PY_STRING && file->n == 0);
    if (!none || v->small || (!v->decoded && !v->records))
        return;
    if (v->records && !v->decoded)
        sn_src_report(scan, SN_TRAP_CACHE_RAM, 0.55, line, 0,
                      "cache() without a file keeps every record of the files in RAM: as much as "
                      "they take on disk.");
    else
        sn_src_report(scan, SN_TRAP_CACHE_RAM, 0, line, 0,
                      "cache() without a file keeps every decoded image in RAM from the first "
                      "epoch on (%s).",
                      sn_src_size_text(scan, &(sn_value){.count = -1,
                                                         .n_dims = v->n_dims,
                                                         .width = v->width,
                                                         .dims = {v->dims[0], v->dims[1],
                                                                  v->dims[2], v->dims[3]}}));
}

void sn_src_check_shuffle(sn_scan *scan, const sn_value *v, const sn_value *buffer,
                          const sn_py_node *call)
{
    uint32_t line = call->a ? call->a->line : call->line;
    uint64_t sample = sn_src_sample_bytes(v), bytes;
    if (v->small || (!v->decoded && !v->records))
        return;
    uint64_t one = sample ? sample : v->records ? 100 * SN_KIB : USUAL_BYTES;
    uint64_t each = one * (uint64_t)(v->count > 0 ? v->count : 1);
    char all[32], per[32];
    size_bytes(per, sizeof per, each);
    if (buffer->kind == SN_V_INT && buffer->count >= 0) {
        if (sn_mul_u64(&bytes, each, (uint64_t)buffer->count) || bytes < SN_GIB / 2)
            return;
        size_bytes(all, sizeof all, bytes);
        sn_src_report(scan, SN_TRAP_SHUFFLE, sample ? 0 : 0.6, line, 0,
                      "The shuffle buffer holds %" PRId64 " %s of %s%s: %s.", buffer->count,
                      v->count > 1 ? "batches"
                      : v->records ? "records"
                                   : "decoded samples",
                      sample ? "" : "about ", per, all);
    } else if (v->decoded && (buffer->kind != SN_V_INT || buffer->certain || buffer->count < 0)) {
        sn_src_report(scan, SN_TRAP_SHUFFLE, buffer->certain ? 0 : 0.55, line, 0,
                      "The shuffle buffer stands after decoding: it holds its length times %s, "
                      "up to the whole data set.",
                      per);
    }
}

void sn_src_check_kept(sn_scan *scan, const char *name, const sn_value *v, uint32_t line, bool sum)
{
    sn_trap trap = sum                    ? SN_TRAP_LOSS_SUM
                   : v->kind == SN_V_LOSS ? SN_TRAP_LOSS_KEPT
                   : v->grad              ? SN_TRAP_OUTPUT_KEPT
                                          : SN_TRAP_OUTPUT_ON_GPU;
    if (!scan->torch || (!v->grad && (sum || v->kind == SN_V_LOSS || !v->device)))
        return;
    if (scan->func && sn_py_stmt_is(scan->func->def, "forward"))
        return; /* what a forward pass gathers it returns */
    if (sn_map_find_str(&scan->flows, name))
        return; /* it flows into a loss that is differentiated: kept on purpose */
    if (scan->n_loops) {
        sn_loop *loop = &scan->loops[scan->n_loops - 1];
        if (loop->n_kept < SN_SRC_KEPT) {
            sn_kept *kept = &loop->kept[loop->n_kept++];
            kept->trap = trap;
            kept->line = line;
            snprintf(kept->name, sizeof kept->name, "%s", name);
        }
    } else if (sn_str_starts(name, "self.") && scan->func &&
               !sn_py_stmt_is(scan->func->def, "__init__") && !sum) {
        sn_src_report(
            scan, trap, 0.65, line, 0,
            "%.40s keeps a tensor at each call, with the graph that made it: memory grows "
            "in a straight line.",
            name);
    }
}

static void report_kept(sn_scan *scan, const sn_kept *kept)
{
    switch (kept->trap) {
    case SN_TRAP_LOSS_SUM:
        sn_src_report(scan, kept->trap, 0, kept->line, 0,
                      "%.40s adds up tensors, not numbers: it keeps the graph of every step, and "
                      "memory grows in a straight line.",
                      kept->name);
        break;
    case SN_TRAP_LOSS_KEPT:
        sn_src_report(scan, kept->trap, 0, kept->line, 0,
                      "%.40s keeps loss tensors, each with the graph and activations of its step: "
                      "memory grows in a straight line.",
                      kept->name);
        break;
    case SN_TRAP_OUTPUT_KEPT:
        sn_src_report(scan, kept->trap, 0, kept->line, 0,
                      "%.40s keeps outputs with the graph that made them (cpu() alone does not cut "
                      "it): memory grows at each step.",
                      kept->name);
        break;
    default:
        sn_src_report(scan, kept->trap, 0, kept->line, 0,
                      "%.40s gathers outputs on the card: its memory grows with the number of "
                      "batches.",
                      kept->name);
        break;
    }
}

void sn_src_check_loop(sn_scan *scan, const sn_loop *loop)
{
    if (loop->build_line && loop->fits && !loop->clears)
        sn_src_report(scan, SN_TRAP_MODEL_LOOP, 0, loop->build_line, loop->line,
                      "A new Keras model is built at each turn of the loop of line %u and none is "
                      "let go: Keras' session keeps their graphs.",
                      loop->line);
    if (!scan->torch)
        return;
    if (loop->retain_line && !loop->plain_backward)
        sn_src_report(
            scan, SN_TRAP_RETAIN_GRAPH, 0, loop->retain_line, loop->line,
            "retain_graph=True keeps the graph and activations after backward(); whatever "
            "the next step still refers to stays alive with all steps before it.");
    if (loop->evaluates && loop->model_line && !loop->backward)
        sn_src_report(scan, SN_TRAP_NO_NO_GRAD, 0, loop->model_line, loop->line,
                      "The model is evaluated with autograd on: each forward pass keeps its "
                      "activations as if it were to be differentiated, so a batch that fits in "
                      "training may not fit here.");
    if (loop->backward || loop->model_line || loop->evaluates || loop->trains)
        for (unsigned i = 0; i < loop->n_kept; i++)
            report_kept(scan, &loop->kept[i]);
}

void sn_src_check_class(sn_scan *scan, sn_class *class)
{
    if (!class->set_line || !class->has_getitem)
        return;
    if (scan->workers)
        sn_src_report(scan, SN_TRAP_WORKERS, 0, class->set_line, scan->workers_line,
                      "The data set object holds every decoded sample in memory and goes to %u "
                      "worker processes: each ends with a copy of it (%s).",
                      scan->workers, sn_src_size_text(scan, &class->set));
    else
        sn_src_report(scan, SN_TRAP_DATASET_INIT, 0, class->set_line, 0,
                      "The data set object decodes every file when it is made and keeps them all "
                      "(%s).",
                      sn_src_size_text(scan, &class->set));
}
