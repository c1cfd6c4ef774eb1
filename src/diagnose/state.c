/* SPDX-License-Identifier: Apache-2.0
 *
 * 1. A tell's first and last line are copies; the text that was fed may be gone.
 * 2. A fact is set or absent; its value means nothing while absent.
 * 3. An allocation that fails sets d->failed and drops that piece; finish then reports it.
 */
#include "diagnose/state.h"

#include <math.h>
#include <string.h>

#include "diagnose/scan.h"

static const struct {
    const char *name;
    snug_number_kind kind;
} fact_rows[SN_N_FACTS] = {
#define F(id, json, k) {json, SNUG_NUMBER_##k},
#include "diagnose/facts.def"
#undef F
};

const char *sn_fact_name(size_t fact)
{
    return fact < SN_N_FACTS ? fact_rows[fact].name : "";
}

snug_number_kind sn_fact_kind(size_t fact)
{
    return fact < SN_N_FACTS ? fact_rows[fact].kind : SNUG_NUMBER_TEXT;
}

static const char *const cause_names[SNUG_N_CAUSES] = {
#define CAUSE(id, name, words) name,
    SNUG_CAUSE_LIST(CAUSE)
#undef CAUSE
};
static const char *const cause_words[SNUG_N_CAUSES] = {
#define CAUSE(id, name, words) words,
    SNUG_CAUSE_LIST(CAUSE)
#undef CAUSE
};

const char *snug_cause_name(snug_cause_id id)
{
    return (unsigned)id < SNUG_N_CAUSES ? cause_names[id] : "?";
}

const char *snug_cause_words(snug_cause_id id)
{
    return (unsigned)id < SNUG_N_CAUSES ? cause_words[id] : "?";
}

const char *sn_diagnosis_copy(snug_diagnosis *d, const char *text, size_t n)
{
    char *copy = sn_arena_alloc(&d->arena, n + 1);
    if (!copy) {
        d->failed = true;
        return NULL;
    }
    memcpy(copy, text, n);
    copy[n] = '\0';
    return copy;
}

bool sn_diagnosis_source(snug_diagnosis *d, const char *name)
{
    if (!sn_reader_end(d))
        return false;
    const char *copy = sn_diagnosis_copy(d, name, strlen(name));
    if (copy)
        d->source = copy;
    return copy != NULL;
}

/* Copies as much of text as fits without cutting a UTF-8 sequence. */
static void copy_cut(char *out, size_t cap, const char *text, size_t n)
{
    if (n >= cap) {
        n = cap - 1;
        while (n && ((unsigned char)text[n] & 0xc0) == 0x80)
            n--;
    }
    memcpy(out, text, n);
    out[n] = '\0';
}

static void mark_line(snug_diagnosis *d, struct sn_mark_line *at, uint64_t line, const char *text)
{
    if (!at->text)
        at->text = sn_arena_alloc(&d->arena, SN_DIAGNOSE_TEXT);
    if (!at->text) {
        d->failed = true;
        return;
    }
    at->line = line;
    at->order = d->reader.order + line;
    at->source = d->source;
    while (text && *text == ' ')
        text++;
    copy_cut(at->text, SN_DIAGNOSE_TEXT, text ? text : "", text ? strlen(text) : 0);
}

void sn_tell_raise(snug_diagnosis *d, sn_tell_id tell, uint64_t line, const char *text)
{
    if ((unsigned)tell >= SN_N_TELLS || tell == SN_TELL_NONE)
        return;
    sn_mark *mark = &d->tells[tell];
    if (!mark->n++)
        mark_line(d, &mark->first, line, text);
    mark_line(d, &mark->last, line, text);
}

uint64_t sn_tell_count(const snug_diagnosis *d, sn_tell_id tell)
{
    return (unsigned)tell < SN_N_TELLS ? d->tells[tell].n : 0;
}

bool sn_tells_near(const snug_diagnosis *d, sn_tell_id a, sn_tell_id b, uint64_t lines)
{
    if (!sn_tell_count(d, a) || !sn_tell_count(d, b))
        return false;
    uint64_t from = d->tells[a].last.order, to = d->tells[b].last.order;
    return from <= to && to - from <= lines;
}

bool sn_tell_after(const snug_diagnosis *d, sn_tell_id a, sn_tell_id b)
{
    if (!sn_tell_count(d, a))
        return false;
    return !sn_tell_count(d, b) || d->tells[a].last.order >= d->tells[b].last.order;
}

static sn_fact_slot *slot_for(snug_diagnosis *d, sn_fact_id fact, uint64_t line)
{
    if ((unsigned)fact >= SN_N_FACTS)
        return NULL;
    sn_fact_slot *slot = &d->facts[fact];
    *slot = (sn_fact_slot){.set = true, .line = line};
    return slot;
}

void sn_fact_set(snug_diagnosis *d, sn_fact_id fact, uint64_t value, uint64_t line)
{
    sn_fact_slot *slot = slot_for(d, fact, line);
    if (slot)
        slot->count = value, slot->real = (double)value;
}

void sn_fact_set_real(snug_diagnosis *d, sn_fact_id fact, double value, uint64_t line)
{
    sn_fact_slot *slot = slot_for(d, fact, line);
    if (slot)
        slot->real = value;
}

void sn_fact_set_text(snug_diagnosis *d, sn_fact_id fact, const char *text, size_t n, uint64_t line)
{
    sn_fact_slot *slot = slot_for(d, fact, line);
    if (slot)
        copy_cut(slot->text, sizeof slot->text, text, n);
}

void sn_fact_set_shape(snug_diagnosis *d, sn_fact_id fact, const int64_t *dims, size_t n,
                       uint64_t line)
{
    sn_fact_slot *slot = slot_for(d, fact, line);
    if (!slot)
        return;
    slot->n_dims = SN_MIN(n, (size_t)8);
    memcpy(slot->dims, dims, slot->n_dims * sizeof dims[0]);
}

void sn_fact_clear(snug_diagnosis *d, sn_fact_id fact)
{
    if ((unsigned)fact < SN_N_FACTS)
        d->facts[fact].set = false;
}

bool sn_fact_has(const snug_diagnosis *d, sn_fact_id fact)
{
    return (unsigned)fact < SN_N_FACTS && d->facts[fact].set;
}

uint64_t sn_fact_value(const snug_diagnosis *d, sn_fact_id fact)
{
    return sn_fact_has(d, fact) ? d->facts[fact].count : 0;
}

double sn_fact_real(const snug_diagnosis *d, sn_fact_id fact)
{
    return sn_fact_has(d, fact) ? d->facts[fact].real : 0;
}

const char *sn_fact_text(const snug_diagnosis *d, sn_fact_id fact)
{
    return sn_fact_has(d, fact) ? d->facts[fact].text : NULL;
}

void sn_facts_begin_event(snug_diagnosis *d)
{
    static const sn_fact_id event[] = {
        SN_FACT_REQUESTED,   SN_FACT_TOTAL,           SN_FACT_FREE,
        SN_FACT_ALLOCATED,   SN_FACT_RESERVED,        SN_FACT_CACHED,
        SN_FACT_ALLOWED,     SN_FACT_OTHER_PID,       SN_FACT_RESERVED_UNALLOCATED,
        SN_FACT_OWN_PROCESS, SN_FACT_OTHER_PROCESSES,
    };
    for (size_t i = 0; i < SN_LEN(event); i++)
        sn_fact_clear(d, event[i]);
}

void sn_gpu_set(snug_diagnosis *d, int index, const char *name, uint64_t used, uint64_t total)
{
    if (index < 0 || index >= SN_DIAGNOSE_GPUS)
        return;
    size_t i = 0;
    while (i < d->n_gpus && d->gpus[i].index != index)
        i++;
    if (i == SN_DIAGNOSE_GPUS)
        return;
    if (i == d->n_gpus) {
        d->gpus[i] = (snug_diagnosis_gpu){index, d->smi_name[i], UINT64_MAX, UINT64_MAX};
        d->smi_name[i][0] = '\0';
        d->n_gpus++;
    }
    if (name && *name)
        copy_cut(d->smi_name[i], sizeof d->smi_name[i], name, strlen(name));
    if (used != UINT64_MAX)
        d->gpus[i].used_bytes = used;
    if (total != UINT64_MAX)
        d->gpus[i].total_bytes = total;
}

void sn_gpu_holder_add(snug_diagnosis *d, int gpu, uint64_t pid, const char *name, uint64_t bytes,
                       uint64_t line)
{
    sn_holder holder = {.gpu = gpu, .pid = pid, .bytes = bytes, .line = line};
    copy_cut(holder.name, sizeof holder.name, name ? name : "", name ? strlen(name) : 0);
    for (size_t i = 0; i < d->holders.n; i++)
        if (d->holders.at[i].pid == pid && d->holders.at[i].gpu == gpu) {
            d->holders.at[i] = holder;
            return;
        }
    if (d->holders.n < 256 && !SN_VEC_PUSH(SN_TAG_DIAGNOSE, &d->holders, holder))
        d->failed = true;
}

sn_series *sn_series_find(snug_diagnosis *d, const char *key)
{
    for (size_t i = 0; i < d->n_series; i++)
        if (!strncmp(d->series[i].key, key, sizeof d->series[i].key - 1))
            return &d->series[i];
    return NULL;
}

void sn_series_add(snug_diagnosis *d, const char *key, uint64_t bytes, uint64_t line)
{
    sn_series *s = sn_series_find(d, key);
    if (!s) {
        if (d->n_series == SN_DIAGNOSE_SERIES)
            return;
        s = &d->series[d->n_series];
        *s = (sn_series){.first = bytes, .first_line = line, .stride = 1};
        copy_cut(s->key, sizeof s->key, key, strlen(key));
        d->n_series++;
    } else if (line && s->last_line == line) {
        return; /* two words for memory in one line */
    }
    double x = (double)s->n, y = (double)bytes / (double)SN_MIB;
    if (s->n && bytes > s->last)
        s->n_up++;
    s->sx += x, s->sy += y, s->sxx += x * x, s->sxy += x * y, s->syy += y * y;
    s->last = bytes;
    s->last_line = line;
    s->max = SN_MAX(s->max, bytes);
    if (s->n % s->stride == 0) {
        if (s->n_sample == SN_LEN(s->sample)) { /* keep every second point */
            for (size_t k = 0; k < s->n_sample / 2; k++)
                s->sample[k] = s->sample[2 * k];
            s->n_sample /= 2;
            s->stride *= 2;
        }
        if (s->n % s->stride == 0)
            s->sample[s->n_sample++] = bytes;
    }
    s->n++;
}

void sn_finding_add(snug_diagnosis *d, snug_cause_id cause, double confidence, bool decisive,
                    const char *explanation, uint64_t line, const char *text)
{
    if ((unsigned)cause >= SNUG_N_CAUSES)
        return;
    sn_finding f = {.cause = cause, .confidence = confidence, .decisive = decisive};
    f.explanation = sn_arena_strdup(&d->arena, explanation ? explanation : "");
    f.evidence.source = d->source;
    f.evidence.line = line;
    f.evidence.text = text ? sn_arena_strdup(&d->arena, text) : NULL;
    if (!f.explanation || (text && !f.evidence.text) ||
        !SN_VEC_PUSH(SN_TAG_DIAGNOSE, &d->findings, f))
        d->failed = true;
}

void sn_finding_fix(snug_diagnosis *d, snug_cause_id cause, const char *action, const char *why)
{
    if ((unsigned)cause >= SNUG_N_CAUSES)
        return;
    sn_finding f = {.cause = cause, .only_fix = true};
    f.action = sn_arena_strdup(&d->arena, action);
    f.why = sn_arena_strdup(&d->arena, why);
    if (!f.action || !f.why || !SN_VEC_PUSH(SN_TAG_DIAGNOSE, &d->findings, f))
        d->failed = true;
}

void sn_useless_add(snug_diagnosis *d, const char *advice, const char *why)
{
    snug_useless u = {sn_arena_strdup(&d->arena, advice), sn_arena_strdup(&d->arena, why)};
    if (!u.advice || !u.why || !SN_VEC_PUSH(SN_TAG_DIAGNOSE, &d->useless, u))
        d->failed = true;
}

void sn_framework_set(snug_diagnosis *d, sn_framework framework, const char *name)
{
    static const char *const names[SN_N_FRAMEWORKS] = {NULL,      "tensorflow", "pytorch", "jax",
                                                       "darknet", "numpy",      "other"};
    bool weak = d->framework == SN_FRAMEWORK_NONE || d->framework == SN_FRAMEWORK_NUMPY ||
                d->framework == SN_FRAMEWORK_OTHER;
    bool strong = framework != SN_FRAMEWORK_NUMPY && framework != SN_FRAMEWORK_OTHER;
    if (framework == SN_FRAMEWORK_NONE || (unsigned)framework >= SN_N_FRAMEWORKS)
        return;
    if (d->framework == SN_FRAMEWORK_NONE || (weak && strong)) {
        d->framework = framework;
        d->framework_name = name ? sn_diagnosis_copy(d, name, strlen(name)) : names[framework];
    }
}

void sn_device_set(snug_diagnosis *d, const char *device)
{
    if (!d->device || strcmp(d->device, device))
        d->device = sn_diagnosis_copy(d, device, strlen(device));
}

sn_framework sn_diagnosis_framework_id(const snug_diagnosis *d)
{
    return d->framework;
}

uint64_t sn_dtype_name_bytes(const char *name)
{
    static const struct {
        const char *name;
        uint64_t bytes;
    } table[] = {
        {"float", 4},   {"float32", 4}, {"f32", 4},       {"single", 4},      {"half", 2},
        {"float16", 2}, {"f16", 2},     {"bfloat16", 2},  {"bf16", 2},        {"double", 8},
        {"float64", 8}, {"f64", 8},     {"int64", 8},     {"s64", 8},         {"uint64", 8},
        {"int32", 4},   {"s32", 4},     {"uint32", 4},    {"int", 4},         {"int16", 2},
        {"uint16", 2},  {"int8", 1},    {"uint8", 1},     {"u8", 1},          {"s8", 1},
        {"bool", 1},    {"pred", 1},    {"complex64", 8}, {"complex128", 16}, {"object", 8},
    };
    for (size_t i = 0; name && i < SN_LEN(table); i++)
        if (!strcmp(name, table[i].name))
            return table[i].bytes;
    if (name && (sn_str_starts(name, "<U") || sn_str_starts(name, "|S"))) {
        const char *p = name + 2;
        uint64_t n;
        if (sn_scan_count(&p, &n) && n < 1u << 30)
            return name[1] == 'U' ? 4 * n : n;
    }
    return name && sn_str_starts(name, "datetime64") ? 8 : 0;
}

const char *sn_known_layer(const int64_t *dims, size_t n)
{
    static const struct {
        int64_t dims[4];
        size_t n;
        const char *what;
    } table[] = {
        {{25088, 4096}, 2, "the first dense layer of VGG16 or VGG19 (fc1: 103 million weights)"},
        {{4096, 25088}, 2, "the first dense layer of VGG16 or VGG19 (fc1: 103 million weights)"},
        {{7, 7, 512, 4096}, 4, "VGG's first dense layer as a 7x7 convolution (fc6 of an FCN)"},
        {{4096, 512, 7, 7}, 4, "VGG's first dense layer as a 7x7 convolution (fc6 of an FCN)"},
        {{4096, 4096}, 2, "the second dense layer of VGG or AlexNet (fc2)"},
        {{1, 1, 4096, 4096}, 4, "VGG's second dense layer as a convolution (fc7 of an FCN)"},
        {{9216, 4096}, 2, "AlexNet's first dense layer"},
        {{4096, 9216}, 2, "AlexNet's first dense layer"},
        {{4096, 1000}, 2, "VGG's or AlexNet's last dense layer"},
        {{6400, 4096}, 2, "the first dense layer of an AlexNet variant"},
        {{100352, 4096}, 2, "a dense layer after Flatten of 14x14x512 (VGG without its last pool)"},
        {{18432, 4096}, 2, "VGG's first dense layer for a 192x192 image"},
        {{8192, 4096}, 2, "VGG's first dense layer for a 128x128 image"},
        {{32768, 4096}, 2, "VGG's first dense layer for a 256x256 image"},
        {{131072, 4096}, 2, "VGG's first dense layer for a 512x512 image"},
        {{100352, 1024}, 2, "a dense layer after Flatten of ResNet50's 7x7x2048"},
        {{2048, 1000}, 2, "the classifier of ResNet50"},
        {{3, 3, 512, 512}, 4, "a 3x3 convolution of VGG"},
        {{3, 3, 512, 1024}, 4, "YOLO's and other networks' 3x3 convolution to 1024 filters"},
        {{3, 3, 1024, 1024}, 4, "a U-Net's bottom 3x3 convolution"},
        {{30522, 768}, 2, "BERT-base's word embedding"},
        {{30522, 1024}, 2, "BERT-large's word embedding"},
        {{50257, 768}, 2, "GPT-2's word embedding"},
        {{50257, 1600}, 2, "GPT-2 XL's word embedding"},
        {{32000, 4096}, 2, "LLaMA-7B's word embedding"},
        {{11008, 4096}, 2, "a feed-forward matrix of LLaMA-7B"},
        {{4096, 11008}, 2, "a feed-forward matrix of LLaMA-7B"},
    };
    for (size_t i = 0; i < SN_LEN(table); i++)
        if (table[i].n == n && !memcmp(table[i].dims, dims, n * sizeof dims[0]))
            return table[i].what;
    return NULL;
}

/* ---- life and getters ---- */

snug_status snug_diagnosis_new(snug_diagnosis **out, const snug_diagnosis_options *options,
                               snug_error *err)
{
    *out = NULL;
    if (options && options->struct_size < sizeof *options)
        return sn_fail(
            err, SNUG_E_USAGE,
            "snug_diagnosis_options: struct_size is %zu, expected %zu: use the INIT macro",
            options->struct_size, sizeof *options);
    snug_diagnosis *d = sn_alloc(SN_TAG_DIAGNOSE, sizeof *d);
    if (!d)
        return sn_fail(err, SNUG_E_MEMORY, "no memory for a diagnosis (%zu bytes)", sizeof *d);
    sn_arena_init(&d->arena, SN_TAG_DIAGNOSE);
    sn_buf_init(&d->json, SN_TAG_DIAGNOSE);
    d->source = "-";
    d->smi_gpu = -1;
    d->filter = sn_filter_new(true);
    d->main_filter = sn_filter_new(false);
    if (!d->filter || !d->main_filter || !sn_reader_init(d)) {
        snug_diagnosis_free(d);
        return sn_fail(err, SNUG_E_MEMORY, "no memory for a diagnosis' buffers");
    }
    if (options && options->framework) {
        static const char *const names[] = {"tensorflow", "pytorch", "jax", "darknet", "numpy"};
        sn_framework f = SN_FRAMEWORK_OTHER;
        for (size_t i = 0; i < SN_LEN(names); i++)
            if (!strcmp(options->framework, names[i]))
                f = (sn_framework)(i + 1);
        sn_framework_set(d, f, options->framework);
    }
    *out = d;
    return SNUG_OK;
}

size_t snug_diagnosis_n_causes(const snug_diagnosis *d)
{
    return d->causes.n;
}

const snug_cause *snug_diagnosis_cause(const snug_diagnosis *d, size_t i)
{
    return i < d->causes.n ? &d->causes.at[i] : NULL;
}

size_t snug_diagnosis_n_useless(const snug_diagnosis *d)
{
    return d->useless.n;
}

const snug_useless *snug_diagnosis_useless(const snug_diagnosis *d, size_t i)
{
    return i < d->useless.n ? &d->useless.at[i] : NULL;
}

size_t snug_diagnosis_n_numbers(const snug_diagnosis *d)
{
    return d->numbers.n;
}

const snug_number *snug_diagnosis_number(const snug_diagnosis *d, size_t i)
{
    return i < d->numbers.n ? &d->numbers.at[i] : NULL;
}

const snug_number *snug_diagnosis_number_named(const snug_diagnosis *d, const char *name)
{
    for (size_t i = 0; i < d->numbers.n; i++)
        if (!strcmp(d->numbers.at[i].name, name))
            return &d->numbers.at[i];
    return NULL;
}

size_t snug_diagnosis_n_gpus(const snug_diagnosis *d)
{
    return d->n_gpus;
}

const snug_diagnosis_gpu *snug_diagnosis_gpu_at(const snug_diagnosis *d, size_t i)
{
    return i < d->n_gpus ? &d->gpus[i] : NULL;
}

const char *snug_diagnosis_framework(const snug_diagnosis *d)
{
    return d->framework_name;
}

const char *snug_diagnosis_device(const snug_diagnosis *d)
{
    return d->device;
}

uint64_t snug_diagnosis_n_lines(const snug_diagnosis *d)
{
    return d->n_lines;
}

uint64_t snug_diagnosis_n_bytes(const snug_diagnosis *d)
{
    return d->n_bytes;
}

static bool list_numbers(snug_diagnosis *d)
{
    for (size_t i = 0; i < SN_N_FACTS; i++) {
        const sn_fact_slot *slot = &d->facts[i];
        if (!slot->set)
            continue;
        snug_number number = {.name = fact_rows[i].name,
                              .kind = fact_rows[i].kind,
                              .count = slot->count,
                              .real = slot->real,
                              .text = slot->text,
                              .n_dims = slot->n_dims,
                              .line = slot->line};
        memcpy(number.dims, slot->dims, sizeof number.dims);
        if (!SN_VEC_PUSH(SN_TAG_DIAGNOSE, &d->numbers, number))
            return false;
    }
    return true;
}

snug_status snug_diagnosis_finish(snug_diagnosis *d, snug_error *err)
{
    if (d->finished)
        return sn_fail(err, SNUG_E_USAGE, "the diagnosis is finished already");
    sn_reader_end(d);
    sn_derive(d);
    sn_rank(d);
    sn_useless_find(d);
    if (!list_numbers(d))
        d->failed = true;
    d->finished = true;
    if (d->failed)
        return sn_fail(err, SNUG_E_MEMORY,
                       "no memory left while reading; the diagnosis is partial");
    return SNUG_OK;
}

void snug_diagnosis_free(snug_diagnosis *d)
{
    if (!d)
        return;
    for (size_t i = 0; i < SNUG_N_CAUSES; i++) {
        SN_VEC_FREE(&d->results[i].evidence);
        SN_VEC_FREE(&d->results[i].fixes);
    }
    SN_VEC_FREE(&d->holders);
    SN_VEC_FREE(&d->findings);
    SN_VEC_FREE(&d->useless);
    SN_VEC_FREE(&d->causes);
    SN_VEC_FREE(&d->numbers);
    sn_buf_deinit(&d->json);
    sn_reader_deinit(d);
    sn_filter_free(d->filter);
    sn_filter_free(d->main_filter);
    sn_arena_deinit(&d->arena);
    sn_free(d);
}
