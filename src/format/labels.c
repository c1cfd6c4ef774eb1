/* SPDX-License-Identifier: Apache-2.0
 *
 * A column of labels.
 */
#include "format/labels.h"

#include <float.h>
#include <math.h>
#include <unistd.h>

#include "base/io.h"

/* More different labels than this are no classes: numbers are then taken as real targets. */
enum { MAX_CLASSES = 65536, MAX_NUMBER_CLASSES = 1000 };

snug_status sn_labels_init(sn_labels *out, snug_error *err)
{
    memset(out, 0, sizeof *out);
    sn_map_init(&out->classes, SN_TAG_FORMAT);
    out->all_numbers = out->all_whole = true;
    snug_status status = sn_io_temporary(&out->fd, err);
    if (status)
        out->fd = -1;
    return status;
}

static snug_status no_memory(snug_error *err)
{
    return sn_fail(err, SNUG_E_MEMORY, "no memory for labels");
}

static snug_status flush(sn_labels *l, snug_error *err)
{
    uint64_t first = l->n - l->n_held;
    snug_status status =
        sn_io_pwrite(l->fd, l->held, l->n_held * sizeof l->held[0], first * sizeof l->held[0],
                     "the temporary file of labels", err);
    l->n_held = 0;
    return status;
}

/* The provisional class of a text; -1 if there are too many, -2 no memory. */
static int32_t class_of(sn_labels *l, const char *text)
{
    const uint64_t *known = sn_map_find_str(&l->classes, text);

    if (known)
        return (int32_t)*known;
    if (l->names.n == MAX_CLASSES)
        return -1;
    char *copy = sn_strdup(SN_TAG_FORMAT, text);
    if (!copy || !SN_VEC_PUSH(SN_TAG_FORMAT, &l->names, copy)) {
        sn_free(copy);
        return -2;
    }
    return sn_map_set_str(&l->classes, text, l->names.n - 1) ? (int32_t)l->names.n - 1 : -2;
}

snug_status sn_labels_add(sn_labels *l, const char *text, snug_error *err)
{
    double value = 0;

    if (!text[0])
        return sn_fail(err, SNUG_E_INPUT, "the label is empty");
    if (!sn_parse_f64(text, -(double)FLT_MAX, (double)FLT_MAX, &value))
        l->all_numbers = false;
    else if (value != floor(value) || fabs(value) > 1e9)
        l->all_whole = false;
    int32_t class_index = l->overflowed ? -1 : class_of(l, text);
    if (class_index == -2)
        return no_memory(err);
    l->overflowed = l->overflowed || class_index < 0;
    if (l->overflowed && !l->all_numbers)
        return sn_fail(err, SNUG_E_INPUT, "more than %d different labels", MAX_CLASSES);
    l->held[l->n_held].class_index = class_index;
    l->held[l->n_held++].y = (float)value;
    l->n++;
    return l->n_held == SN_LEN(l->held) ? flush(l, err) : SNUG_OK;
}

static int natural(const void *a, const void *b)
{
    return sn_str_natural_cmp(*(char *const *)a, *(char *const *)b);
}

snug_status sn_labels_finish(sn_labels *l, snug_error *err)
{
    snug_status status = flush(l, err);

    if (status)
        return status;
    l->real = l->all_numbers && (!l->all_whole || l->overflowed || l->names.n > MAX_NUMBER_CLASSES);
    if (l->real || l->names.n == 0)
        return SNUG_OK;
    l->order = sn_alloc_array(SN_TAG_FORMAT, l->names.n, sizeof *l->order);
    if (!l->order)
        return no_memory(err);
    qsort(l->names.at, l->names.n, sizeof(char *), natural);
    for (size_t i = 0; i < l->names.n; i++)
        l->order[*sn_map_find_str(&l->classes, l->names.at[i])] = (int32_t)i;
    return SNUG_OK;
}

snug_status sn_labels_at(sn_labels *l, uint64_t i, int32_t *class_index, float *y, snug_error *err)
{
    snug_status status = sn_io_pread(l->fd, l->held, sizeof l->held[0], i * sizeof l->held[0],
                                     "the temporary file of labels", err);

    if (status)
        return status;
    *class_index = l->real ? -1 : l->order[l->held[0].class_index];
    *y = l->held[0].y;
    return SNUG_OK;
}

void sn_labels_deinit(sn_labels *l)
{
    if (l->fd >= 0)
        close(l->fd);
    for (size_t i = 0; i < l->names.n; i++)
        sn_free(l->names.at[i]);
    SN_VEC_FREE(&l->names);
    sn_map_deinit(&l->classes);
    sn_free(l->order);
    l->order = NULL;
    l->fd = -1;
}
