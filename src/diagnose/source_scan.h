/* SPDX-License-Identifier: Apache-2.0
 *
 * source_scan.h - the inside of the source scan, shared by source.c (statements, the three walks),
 * source_value.c (expressions and calls) and source_rules.c (what is reported).
 *
 *     value v = sn_src_eval(scan, node);
 *     if (v.kind == SN_V_SET) sn_src_report(scan, SN_TRAP_CONVERT, line, v.line, "...");
 *
 * Ownership: the scan's arena.  Threads: one scan, one thread.
 */
#ifndef SN_DIAGNOSE_SOURCE_SCAN_H
#define SN_DIAGNOSE_SOURCE_SCAN_H

#include "base/map.h"
#include "diagnose/py.h"
#include "diagnose/source.h"

typedef enum sn_value_kind {
    SN_V_UNKNOWN,
    SN_V_PLAIN, /* a number or text of no interest: also what .item() gives */
    SN_V_INT,   /* count; -1: not known */
    SN_V_FLOAT,
    SN_V_TEXT,  /* text */
    SN_V_DIMS,  /* a tuple of numbers: dims */
    SN_V_RANGE, /* range(count) */
    SN_V_FILES, /* names of files: count */
    SN_V_FILE,
    SN_V_IMAGE,  /* one decoded sample: dims, width */
    SN_V_SET,    /* a whole set in memory: count samples of dims */
    SN_V_LIST,   /* another list */
    SN_V_TFDATA, /* a tf.data pipeline */
    SN_V_LOADER, /* a torch DataLoader */
    SN_V_MODEL,
    SN_V_LOSSFN,
    SN_V_LOSS,   /* a torch tensor that has or had a graph */
    SN_V_OUT,    /* a model's output */
    SN_V_FUNC,   /* func, or lambda */
    SN_V_CLASS,  /* class */
    SN_V_OBJECT, /* of class */
    SN_V_H5      /* an open HDF5 file or its dataset: lazy */
} sn_value_kind;

typedef struct sn_value {
    sn_value_kind kind;
    uint32_t line;   /* where it came to be */
    int64_t count;   /* INT: value; RANGE, FILES, SET: how many; TFDATA: batch; -1 unknown */
    int64_t dims[6]; /* of one sample; -1 unknown */
    unsigned n_dims;
    unsigned width;    /* bytes a number, 0 unknown */
    bool array;        /* SET: one array, no list */
    bool small;        /* known to be small */
    bool bounded;      /* FILES, RANGE: a slice, a batch */
    bool reported;     /* SET: an alarm stands already */
    bool grown;        /* SET: filled inside a function: its first [] means nothing */
    bool certain;      /* SET: surely images or large */
    bool decoded;      /* TFDATA: elements are decoded */
    bool records;      /* TFDATA: elements are encoded records */
    bool grad, device; /* LOSS, OUT: keeps a graph; lies on the card */
    bool keras;        /* MODEL */
    const char *text;
    size_t n_text;
    struct sn_func *func;
    const sn_py_node *lambda;
    struct sn_class *class;
} sn_value;

enum { SN_SRC_PARAMS = 12, SN_SRC_LOOPS = 24, SN_SRC_KEPT = 8, SN_SRC_CALLS = 8 };

typedef struct sn_func {
    const sn_py_stmt *def;
    struct sn_class *class;
    unsigned id; /* names its scope */
    sn_value params[SN_SRC_PARAMS], result, next_result;
    struct sn_func *outer; /* the function around it */
    bool yields, decodes, builds, fits, clears, called_grad, called_no_grad, no_grad, cached;
    struct sn_func *next;
} sn_func;

typedef struct sn_class {
    const sn_py_stmt *def;
    bool torch_model, keras_model, has_getitem;
    uint32_t set_line; /* self.x holds a whole set since this line */
    sn_value set;
    struct sn_class *next;
} sn_class;

typedef struct sn_kept {
    sn_trap trap;
    uint32_t line;
    char name[48];
} sn_kept;

/* One loop that is being walked. */
typedef struct sn_loop {
    uint32_t line, build_line, model_line, retain_line;
    bool evaluates, trains, fits, clears, backward, plain_backward, bounded;
    sn_kept kept[SN_SRC_KEPT];
    unsigned n_kept;
} sn_loop;

typedef struct sn_scan {
    sn_arena *arena;
    sn_source_report *report;
    bool reporting, failed;
    bool torch, tensorflow, cuda, grad_off;
    bool saw_decode; /* a decoding call was evaluated */
    uint32_t steps;  /* expressions evaluated: bounded, so that any input ends */
    sn_map names;    /* "scope:path" -> index into values */
    sn_value *values;
    size_t n_values, cap_values;
    sn_map backwarded;     /* paths that get .backward() */
    sn_map flows;          /* and what flows into them */
    sn_func *funcs, *func; /* all; the one being walked */
    sn_class *classes, *class;
    unsigned n_funcs;
    sn_loop loops[SN_SRC_LOOPS];
    unsigned n_loops, depth;
    unsigned no_grad; /* nesting of no_grad contexts */
    bool evaluating;  /* after model.eval() */
    unsigned workers; /* the largest num_workers of a DataLoader */
    uint32_t workers_line;
} sn_scan;

/* source_value.c */
sn_value sn_src_eval(sn_scan *scan, const sn_py_node *node);
sn_value sn_src_value(sn_value_kind kind, uint32_t line);
sn_value sn_src_lookup(sn_scan *scan, const char *path);
void sn_src_bind(sn_scan *scan, const char *path, sn_value value);
void sn_src_bind_target(sn_scan *scan, const sn_py_node *target, sn_value value);
/* The same for something that is changed, not assigned: in the scope where it was made. */
void sn_src_rebind(sn_scan *scan, const sn_py_node *target, sn_value value);
/* What one turn over iter gives, bound to target. */
void sn_src_bind_loop(sn_scan *scan, const sn_py_node *target, const sn_py_node *iter);
/* Whether name is one of the words of list ("a|b|c"). */
bool sn_src_one_of(const char *name, size_t n, const char *list);
/* Whether text holds one of the words of list, letters folded. */
bool sn_src_mentions(const char *text, const char *list);
/* Inside a function that makes one batch or sample at a time. */
bool sn_src_bounded(const sn_scan *scan);

/* source_call.c */
sn_value sn_src_call(sn_scan *scan, const sn_py_node *call);

/* source_rules.c */
void sn_src_report(sn_scan *scan, sn_trap trap, double confidence, uint32_t line, uint32_t other,
                   const char *format, ...) SNUG_PRINTF(6, 7);
/* Bytes of one sample, of the whole set; 0 if not known. */
uint64_t sn_src_sample_bytes(const sn_value *v);
uint64_t sn_src_set_bytes(const sn_value *v);
/* "50000 x 224x224x3 float32 = 28.0 GiB" or what of it is known. */
const char *sn_src_size_text(sn_scan *scan, const sn_value *v);
/* A set that is small by its numbers or name raises no alarm. */
bool sn_src_is_small(const sn_value *v);
void sn_src_check_convert(sn_scan *scan, const char *call, sn_value *v, uint32_t line);
void sn_src_check_fit(sn_scan *scan, const char *call, sn_value *v, uint32_t line);
void sn_src_check_array(sn_scan *scan, sn_value *v, const char *call, uint32_t line);
void sn_src_check_cache(sn_scan *scan, const sn_value *v, const sn_py_node *call);
void sn_src_check_shuffle(sn_scan *scan, const sn_value *v, const sn_value *buffer,
                          const sn_py_node *call);
/* list.append(v), dict[k] = v, total += v and the like: name is the container. */
void sn_src_check_kept(sn_scan *scan, const char *name, const sn_value *v, uint32_t line, bool sum);
void sn_src_check_loop(sn_scan *scan, const sn_loop *loop);
void sn_src_check_class(sn_scan *scan, sn_class *class);

#endif
