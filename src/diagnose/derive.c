/* SPDX-License-Identifier: Apache-2.0
 *
 * Facts that follow from others: the bytes of a shape, what others hold on the card, the batch, the
 * slope of memory over time, what kind of card it is.
 */
#include "diagnose/state.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diagnose/scan.h"

static bool has(const snug_diagnosis *d, sn_fact_id fact)
{
    return sn_fact_has(d, fact);
}

static uint64_t get(const snug_diagnosis *d, sn_fact_id fact)
{
    return sn_fact_value(d, fact);
}

static bool odd_small(int64_t n)
{
    return n >= 1 && n <= 11 && n % 2 == 1;
}

sn_shape_kind sn_shape_classify(const snug_diagnosis *d)
{
    return d->shape_kind;
}

/* Before the batch is set from the shape itself. */
static sn_shape_kind classify(const snug_diagnosis *d)
{
    if (!has(d, SN_FACT_SHAPE))
        return SN_SHAPE_NONE;
    const sn_fact_slot *shape = &d->facts[SN_FACT_SHAPE];
    const int64_t *s = shape->dims;
    size_t n = shape->n_dims;
    bool batch_said = has(d, SN_FACT_BATCH) && (int64_t)get(d, SN_FACT_BATCH) == s[0];
    if (sn_known_layer(s, n))
        return SN_SHAPE_KNOWN_KERNEL;
    if (sn_tell_count(d, SN_TELL_NUMPY_ALLOC))
        return n && s[0] >= 1000 ? SN_SHAPE_SET : SN_SHAPE_OTHER;
    if ((sn_tell_count(d, SN_TELL_TF_WEIGHT_OP) || sn_tell_count(d, SN_TELL_FRAME_BUILD)) &&
        !batch_said)
        return SN_SHAPE_KERNEL;
    if (n == 4 && odd_small(s[0]) && odd_small(s[1]) && s[2] >= 3 && s[3] >= 8 &&
        (s[0] == s[1] || (s[2] >= 32 && s[3] >= 32)) && !(s[0] == 1 && s[1] != 1 && s[1] == s[2]))
        return SN_SHAPE_KERNEL;
    if (n == 5 && odd_small(s[0]) && s[0] == s[1] && s[1] == s[2] && s[3] >= 3 && s[4] >= 8)
        return SN_SHAPE_KERNEL;
    if (n == 2 && !batch_said && s[0] >= 8192 && s[1] >= 128)
        return SN_SHAPE_KERNEL;
    if (n == 3 && (s[2] == 1 || s[2] == 3 || s[2] == 4) && s[0] >= 64 && s[1] >= 64 && !batch_said)
        return SN_SHAPE_IMAGE;
    if (n >= 3 && s[0] >= 1000 && !batch_said)
        return SN_SHAPE_SET;
    if (n >= 3 || (n == 2 && (s[0] <= 1024 || batch_said)))
        return SN_SHAPE_ACTIVATION;
    return SN_SHAPE_OTHER;
}

static void derive_tensor(snug_diagnosis *d)
{
    if (!has(d, SN_FACT_SHAPE))
        return;
    sn_fact_slot *shape = &d->facts[SN_FACT_SHAPE];
    sn_shape_kind kind = d->shape_kind = classify(d);
    uint64_t size = 4, elements = 1;
    if (has(d, SN_FACT_DTYPE))
        size = sn_dtype_name_bytes(sn_fact_text(d, SN_FACT_DTYPE));
    for (size_t i = 0; i < shape->n_dims; i++)
        if (sn_mul_u64(&elements, elements, (uint64_t)shape->dims[i]))
            return;
    uint64_t bytes;
    if (elements && size && !sn_mul_u64(&bytes, elements, size)) {
        sn_fact_set(d, SN_FACT_TENSOR_BYTES, bytes, shape->line);
        if (size > 1 && sn_tell_count(d, SN_TELL_NUMPY_ALLOC))
            sn_fact_set(d, SN_FACT_TENSOR_BYTES_U8, elements, shape->line);
    }
    const char *layer = sn_known_layer(shape->dims, shape->n_dims);
    if (layer)
        sn_fact_set_text(d, SN_FACT_LAYER, layer, strlen(layer), shape->line);
    if (!has(d, SN_FACT_BATCH) && (kind == SN_SHAPE_ACTIVATION || kind == SN_SHAPE_SET) &&
        !sn_tell_count(d, SN_TELL_NUMPY_ALLOC))
        sn_fact_set(d, SN_FACT_BATCH, (uint64_t)shape->dims[0], shape->line);
}

/* What others hold: total - free - what this process holds. */
static void derive_elsewhere(snug_diagnosis *d)
{
    if (has(d, SN_FACT_RESERVED) && has(d, SN_FACT_ALLOCATED) &&
        !has(d, SN_FACT_RESERVED_UNALLOCATED) &&
        get(d, SN_FACT_RESERVED) >= get(d, SN_FACT_ALLOCATED))
        sn_fact_set(d, SN_FACT_RESERVED_UNALLOCATED,
                    get(d, SN_FACT_RESERVED) - get(d, SN_FACT_ALLOCATED), 0);
    if (has(d, SN_FACT_OTHER_PROCESSES)) {
        if (!sn_tell_count(d, SN_TELL_TORCH_MPS))
            sn_fact_set(d, SN_FACT_HELD_ELSEWHERE, get(d, SN_FACT_OTHER_PROCESSES), 0);
    } else if (sn_tell_count(d, SN_TELL_TORCH_OOM) && has(d, SN_FACT_TOTAL) &&
               has(d, SN_FACT_FREE)) {
        uint64_t own = has(d, SN_FACT_OWN_PROCESS) ? get(d, SN_FACT_OWN_PROCESS)
                       : has(d, SN_FACT_RESERVED)  ? get(d, SN_FACT_RESERVED)
                                                   : get(d, SN_FACT_ALLOCATED);
        uint64_t sum;
        if (!sn_add_u64(&sum, own, get(d, SN_FACT_FREE)) && sum <= get(d, SN_FACT_TOTAL))
            sn_fact_set(d, SN_FACT_HELD_ELSEWHERE, get(d, SN_FACT_TOTAL) - sum, 0);
    }
    if (has(d, SN_FACT_REQUESTED) && has(d, SN_FACT_TOTAL) &&
        get(d, SN_FACT_REQUESTED) > get(d, SN_FACT_TOTAL))
        sn_fact_set(d, SN_FACT_REQUESTED_GT_TOTAL, 1, 0);
    /* a little more free than asked for is no contradiction: segments and the driver round up */
    uint64_t enough, margin = SN_MAX(get(d, SN_FACT_REQUESTED) / 4, 64 * SN_MIB);
    if (has(d, SN_FACT_REQUESTED) && has(d, SN_FACT_FREE) && sn_tell_count(d, SN_TELL_TORCH_OOM) &&
        !sn_add_u64(&enough, get(d, SN_FACT_REQUESTED), margin) && get(d, SN_FACT_FREE) > enough) {
        sn_fact_set(d, SN_FACT_FREE_GT_REQUESTED, 1, 0);
        if (has(d, SN_FACT_HELD_ELSEWHERE))
            sn_fact_set(d, SN_FACT_UNACCOUNTED, get(d, SN_FACT_HELD_ELSEWHERE), 0);
    }
}

/* The card of the failing device in nvidia-smi's table, or the only one. */
static void derive_card(snug_diagnosis *d)
{
    int index = -1;
    if (d->device) {
        const char *colon = strrchr(d->device, ':');
        uint64_t n;
        const char *p = colon ? colon + 1 : "";
        if (sn_scan_count(&p, &n) && n < SN_DIAGNOSE_GPUS)
            index = (int)n;
    }
    for (size_t i = 0; i < d->n_gpus; i++) {
        const snug_diagnosis_gpu *gpu = &d->gpus[i];
        if (gpu->index != index && d->n_gpus > 1 && !(index < 0 && i == 0))
            continue;
        if (gpu->total_bytes != UINT64_MAX && !has(d, SN_FACT_GPU_TOTAL))
            sn_fact_set(d, SN_FACT_GPU_TOTAL, gpu->total_bytes, 0);
        if (gpu->used_bytes != UINT64_MAX)
            sn_fact_set(d, SN_FACT_GPU_USED, gpu->used_bytes, 0);
        if (gpu->name[0] && !has(d, SN_FACT_GPU_NAME))
            sn_fact_set_text(d, SN_FACT_GPU_NAME, gpu->name, strlen(gpu->name), 0);
    }
    if (has(d, SN_FACT_GPU_TOTAL) && !has(d, SN_FACT_TOTAL))
        sn_fact_set(d, SN_FACT_TOTAL, get(d, SN_FACT_GPU_TOTAL), d->facts[SN_FACT_GPU_TOTAL].line);
    if (has(d, SN_FACT_GPU_FREE) && !has(d, SN_FACT_FREE))
        sn_fact_set(d, SN_FACT_FREE, get(d, SN_FACT_GPU_FREE), d->facts[SN_FACT_GPU_FREE].line);
    static const char *const maxwell[] = {
        "GTX 9", "GTX 750",  "GTX 745",  "GTX TITAN X", "Quadro M", "Tesla M", "940M",
        "930M",  "920MX",    "950M",     "960M",        "965M",     "MX110",   "MX130",
        "945M",  "GTX 850M", "GTX 860M", "840M",        "830M",     "M1000M",  "M2000"};
    double cc = sn_fact_real(d, SN_FACT_COMPUTE_CAPABILITY);
    const char *name = sn_fact_text(d, SN_FACT_GPU_NAME);
    d->maxwell = cc >= 5.0 && cc < 6.0;
    for (size_t i = 0; name && i < SN_LEN(maxwell); i++)
        d->maxwell |= sn_scan_has(name, maxwell[i]);
    d->no_fp16_speed =
        d->maxwell || (cc > 0 && cc < 7.0 && cc != 6.0) || (name && sn_scan_has(name, "GTX 10"));
}

double sn_series_slope(const sn_series *s)
{
    double n = (double)s->n, den = n * s->sxx - s->sx * s->sx;
    return den > 0 ? (n * s->sxy - s->sx * s->sy) / den : 0;
}

/* Does memory grow in a line, in the second half too, by an amount that matters? */
static bool grows(const sn_series *s)
{
    if (s->n < 5 || s->last <= s->first || s->n_sample < 4)
        return false;
    double n = (double)s->n, slope = sn_series_slope(s);
    double cov = n * s->sxy - s->sx * s->sy;
    double vx = n * s->sxx - s->sx * s->sx, vy = n * s->syy - s->sy * s->sy;
    double r2 = vx > 0 && vy > 0 ? cov * cov / (vx * vy) : 0;
    uint64_t growth = s->last - s->first, middle = s->sample[s->n_sample / 2];
    uint64_t late = s->last > middle ? s->last - middle : 0;
    return slope > 0 && r2 >= 0.8 && s->n_up * 2 >= s->n && growth >= 8 * SN_MIB &&
           growth * 20 >= s->first && late * 4 >= growth;
}

const sn_series *sn_series_growing(const snug_diagnosis *d)
{
    const sn_series *best = NULL;
    for (size_t i = 0; i < d->n_series; i++)
        if (grows(&d->series[i]) && (!best || d->series[i].n > best->n))
            best = &d->series[i];
    return best;
}

static int compare_real(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Bytes a reading: the median step, which a pause or a jump does not bend, or the line of least
 * squares where most readings show no step at all. */
static double typical_step(const sn_series *s)
{
    double steps[SN_LEN(s->sample)], line = sn_series_slope(s) * (double)SN_MIB;
    size_t n = s->n_sample - 1;
    for (size_t i = 0; i < n; i++)
        steps[i] = ((double)s->sample[i + 1] - (double)s->sample[i]) / (double)s->stride;
    qsort(steps, n, sizeof steps[0], compare_real);
    double median = n % 2 ? steps[n / 2] : (steps[n / 2 - 1] + steps[n / 2]) / 2;
    return median >= line / 2 && median <= line * 2 ? median : line;
}

static void derive_series(snug_diagnosis *d)
{
    const sn_series *best = sn_series_growing(d);
    if (!best)
        return;
    uint64_t start = best->first, start_line = best->first_line;
    uint64_t end = best->last, end_line = best->last_line;
    for (size_t i = 0; i < d->n_series; i++) { /* "start ..." and "end ..." are one story */
        const sn_series *s = &d->series[i];
        if (!grows(s) || s->n * 2 < best->n)
            continue;
        if (s->first_line < start_line)
            start = s->first, start_line = s->first_line;
        if (s->last_line > end_line)
            end = s->last, end_line = s->last_line;
    }
    sn_fact_set(d, SN_FACT_START, start, start_line);
    sn_fact_set(d, SN_FACT_END, end, end_line);
    sn_fact_set(d, SN_FACT_SLOPE, (uint64_t)llround(typical_step(best)), 0);
    sn_fact_set(d, SN_FACT_N_POINTS, best->n, 0);
}

void sn_derive(snug_diagnosis *d)
{
    derive_elsewhere(d);
    derive_card(d);
    derive_tensor(d);
    derive_series(d);
}
