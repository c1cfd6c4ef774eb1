/* SPDX-License-Identifier: Apache-2.0
 *
 * diagnose/state.h - the inside of a diagnosis, shared by the files of this room only: what was
 * seen (tells, facts, cards, series), the stream reader's buffers, and the results.
 *
 *     if (sn_tell_count(d, SN_TELL_KILLED) && sn_tells_near(d, SN_TELL_CACHE_PART, SN_TELL_KILLED,
 * 40))
 *
 * Ownership: the diagnosis owns all of it.  Threads: one at a time.
 */
#ifndef SN_DIAGNOSE_STATE_H
#define SN_DIAGNOSE_STATE_H

#include "base/vec.h"
#include "diagnose/diagnose.h"

/* A cleaned line: no colours, no control bytes, no quote marks; NUL-terminated. */
typedef struct sn_line {
    const char *text;
    size_t n;
    uint64_t number;
} sn_line;

typedef void (*sn_parse_fn)(snug_diagnosis *d, const sn_line *line, const char *at);

/* A row of the pattern tables. */
typedef struct sn_pattern {
    const char *anchor; /* SN_ANCHOR_MIN to _MAX bytes; found without regard to case */
    const char *also;   /* must stand in the line too (case kept); NULL: nothing more */
    sn_tell_id tell;    /* raised when both are there and parse is NULL */
    sn_framework framework;
    sn_parse_fn parse; /* NULL, or decides and raises by itself; at points to the anchor */
    bool context;      /* tells nothing alone: in a large text looked for near other lines only */
} sn_pattern;

enum { SN_ANCHOR_MIN = 6, SN_ANCHOR_MAX = 63, SN_LINE_MAX = 8192 };

/* The pattern tables, concatenated: row i of all of them, NULL beyond the last. */
const sn_pattern *sn_pattern_at(size_t i);
/* The tables, one a file: read_torch.c, read_tensorflow.c, read_host.c, read_data.c, read_card.c,
 * read_general.c. *n is the number of rows. */
const sn_pattern *sn_patterns_torch(size_t *n);
const sn_pattern *sn_patterns_tensorflow(size_t *n);
const sn_pattern *sn_patterns_host(size_t *n);
const sn_pattern *sn_patterns_data(size_t *n);
const sn_pattern *sn_patterns_card(size_t *n);
const sn_pattern *sn_patterns_general(size_t *n);

typedef struct sn_mark {
    uint64_t n; /* how often */
    struct sn_mark_line {
        uint64_t line, order; /* order counts lines over all sources */
        const char *source;
        char *text; /* SN_DIAGNOSE_TEXT bytes, allocated when first needed */
    } first, last;
} sn_mark;

typedef struct sn_fact_slot {
    bool set;
    uint64_t count, line;
    double real;
    char text[96];
    int64_t dims[8];
    size_t n_dims;
} sn_fact_slot;

typedef struct sn_holder {
    int gpu;
    uint64_t pid, bytes, line;
    char name[64];
} sn_holder;

/* Memory over time by least squares, in constant memory. Sums are over (i - 0, MiB). */
typedef struct sn_series {
    char key[64];
    uint64_t n, first, last, max, first_line, last_line, n_up, middle, third;
    double sx, sy, sxx, sxy, syy;
    uint64_t stride; /* points kept in sample: every stride-th */
    uint64_t sample[128];
    size_t n_sample;
} sn_series;

typedef struct sn_finding {
    snug_cause_id cause;
    double confidence;
    bool decisive, only_fix;
    char *explanation, *action, *why;
    snug_evidence evidence;
} sn_finding;

typedef struct sn_filter sn_filter;
typedef struct sn_reader {
    char *data; /* the stream's buffer */
    size_t n, cap;
    bool streaming;    /* the source is larger than what is kept whole */
    bool begun, utf16; /* its first bytes were seen; they announce UTF-16 */
    bool open_line;    /* its last byte so far ends no line */
    uint64_t line;     /* number of the line at data[0], from 1 */
    uint64_t order;    /* lines of the sources before */
    char *scratch;     /* SN_LINE_MAX bytes, a cleaned line */
} sn_reader;

typedef struct sn_cause_result {
    snug_cause cause;
    SN_VEC(snug_evidence) evidence;
    SN_VEC(snug_cause_fix) fixes;
    const char *explanation;
} sn_cause_result;

/* What a failing tensor's shape looks like. */
typedef enum sn_shape_kind {
    SN_SHAPE_NONE,         /* no shape was given */
    SN_SHAPE_OTHER,        /* it can be anything */
    SN_SHAPE_ACTIVATION,   /* its first dimension is a batch */
    SN_SHAPE_SET,          /* its first dimension is a whole set */
    SN_SHAPE_IMAGE,        /* one decoded image */
    SN_SHAPE_KERNEL,       /* a weight */
    SN_SHAPE_KNOWN_KERNEL, /* the weight of a famous network */
} sn_shape_kind;

struct snug_diagnosis {
    sn_arena arena;
    bool failed, finished; /* failed: an allocation failed; finish reports it */
    const char *source;
    uint64_t n_lines, n_bytes;
    sn_reader reader;
    sn_filter *filter, *main_filter; /* all rows; those that are not context */
    sn_mark tells[SN_N_TELLS];
    sn_fact_slot facts[SN_N_FACTS];
    snug_diagnosis_gpu gpus[SN_DIAGNOSE_GPUS];
    size_t n_gpus;
    int smi_gpu;  /* the card whose row of nvidia-smi's table was read last, -1: none */
    int smi_rows; /* rows of nvidia-smi's process table that may still come */
    char smi_name[SN_DIAGNOSE_GPUS][48];
    SN_VEC(sn_holder) holders;
    sn_series series[SN_DIAGNOSE_SERIES];
    size_t n_series;
    SN_VEC(sn_finding) findings;
    SN_VEC(snug_useless) useless;
    sn_framework framework;
    const char *framework_name, *device;
    bool maxwell, no_fp16_speed;
    sn_shape_kind shape_kind;
    /* results */
    bool rule_fired[256];
    sn_cause_result results[SNUG_N_CAUSES];
    SN_VEC(snug_cause) causes;
    SN_VEC(snug_number) numbers;
    sn_buf json;
};

/* Copies into the arena; NULL only after setting d->failed. */
const char *sn_diagnosis_copy(snug_diagnosis *d, const char *text, size_t n);
/* Lines (over all sources) between the last line of a and the last line of b, a not after b and
 * at most `lines` before it. False if either was not seen. */
bool sn_tells_near(const snug_diagnosis *d, sn_tell_id a, sn_tell_id b, uint64_t lines);
/* Was tell a last seen after tell b was last seen (or b never)? False if a was not seen. */
bool sn_tell_after(const snug_diagnosis *d, sn_tell_id a, sn_tell_id b);
/* The series of a key (its first 63 bytes); NULL if there is none yet. */
sn_series *sn_series_find(snug_diagnosis *d, const char *key);
/* The name in JSON and the kind of a fact. */
const char *sn_fact_name(size_t fact);
snug_number_kind sn_fact_kind(size_t fact);
/* Forgets the numbers of an event, so that those of the next do not mix with them. */
void sn_facts_begin_event(snug_diagnosis *d);
/* The bytes of one element of a dtype's name ("float", "float32", "f32", "<U10"); 0 if unknown. */
uint64_t sn_dtype_name_bytes(const char *name);
/* A name for a weight's shape that is known from a famous model ("VGG16's first dense layer");
 * NULL if it is not one. */
const char *sn_known_layer(const int64_t *dims, size_t n);

/* reader.c: the streaming splitter */
bool sn_reader_init(snug_diagnosis *d);
void sn_reader_deinit(snug_diagnosis *d);
bool sn_reader_feed(snug_diagnosis *d, const char *bytes, size_t n);
/* Space at the end of the buffer to read into, then commit what was read. */
char *sn_reader_space(snug_diagnosis *d, size_t *n);
bool sn_reader_commit(snug_diagnosis *d, size_t n);
/* Ends the current source. */
bool sn_reader_end(snug_diagnosis *d);
/* Colours, control bytes, quote marks away; out has SN_LINE_MAX bytes. Returns the length. */
size_t sn_line_clean(char *out, const char *raw, size_t n);
/* Matches every pattern against a cleaned line. */
void sn_line_match(snug_diagnosis *d, const sn_line *line);
/* A row of nvidia-smi's list of processes, if it is one. */
void sn_smi_row(snug_diagnosis *d, const sn_line *line);
/* unwrap.c: a small text, with lines that a terminal or a chat box broke joined again. */
void sn_unwrap_match(snug_diagnosis *d, const char *text, size_t n);

/* filter.c: finds pattern anchors (Wu and Manber, "A fast algorithm for multi-pattern searching",
 * TR 94-17, blocks of three bytes). */
sn_filter *sn_filter_new(bool context); /* with the context rows or without */
/* The next anchor: its row in *pattern, its place returned; NULL if none.
 * *cursor carries the state between calls of one text: start with {0}. */
typedef struct sn_filter_cursor {
    size_t pos;
    uint32_t entry;
} sn_filter_cursor;
const char *sn_filter_next(const sn_filter *filter, const char *text, size_t n,
                           sn_filter_cursor *cursor, const sn_pattern **pattern);
void sn_filter_free(sn_filter *filter);

/* derive.c: what the failing tensor's shape looks like; valid after sn_derive. */
sn_shape_kind sn_shape_classify(const snug_diagnosis *d);
/* Facts that follow from others, at finish. */
void sn_derive(snug_diagnosis *d);
/* The slope of the steepest convincing series; NULL if none grows. */
const sn_series *sn_series_growing(const snug_diagnosis *d);
double sn_series_slope(const sn_series *series);

/* rules.c */
typedef struct sn_rule {
    const char *id;
    snug_cause_id cause;
    double weight;
    bool decisive;
    sn_tell_id all[4], any[6], none[6];    /* ended by SN_TELL_NONE */
    bool (*when)(const snug_diagnosis *d); /* NULL: always */
    sn_tell_id evidence[5];
    const char *explanation; /* a template: explain.c */
} sn_rule;
/* Row i of all rule tables, NULL beyond the last. */
const sn_rule *sn_rule_at(size_t i);
const sn_rule *sn_rules_torch(size_t *n);
const sn_rule *sn_rules_tensorflow(size_t *n);
const sn_rule *sn_rules_host(size_t *n);
const sn_rule *sn_rules_other(size_t *n);
bool sn_rule_applies(const snug_diagnosis *d, const sn_rule *rule);
/* Did row i apply at finish? For the tests that want a log for each row. */
bool sn_rule_fired(const snug_diagnosis *d, size_t i);

/* explain.c: {requested_bytes} is replaced by the fact, formatted; a part in [[ ]] is left out when
 * a fact in it is absent. NULL if a fact outside [[ ]] is absent. The text lives in d's arena. */
const char *sn_expand(snug_diagnosis *d, const char *template_text);
/* "7.98 GiB", two decimals from MiB on. Returns out. */
char *sn_format_exact(char *out, size_t n, uint64_t bytes);
/* fixes.c: appends the rows for this cause. */
void sn_fixes_add(snug_diagnosis *d, sn_cause_result *result);
const char *sn_check_for(snug_diagnosis *d, snug_cause_id cause);
/* useless.c: advice that does not help, for the best causes. */
void sn_useless_find(snug_diagnosis *d);
/* rank.c: rules and findings to d->causes. */
void sn_rank(snug_diagnosis *d);

#endif
