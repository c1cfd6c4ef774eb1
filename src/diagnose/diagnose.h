/* SPDX-License-Identifier: Apache-2.0
 *
 * diagnose/diagnose.h - the contract between whatever reads (text logs, notebooks, a watched run,
 * allocator dumps) and the rules. A reader raises tells ("the kernel killed a process"), sets facts
 * (requested bytes), adds points to series (memory over time) and, where it knows the cause by
 * itself, adds findings. At finish the rules (rows of rules_*.c) turn tells and facts into causes;
 * explanation, fixes and useless advice follow from the cause, the framework and the facts.
 *
 *     sn_diagnosis_source(d, "run of train.py");
 *     sn_tell_raise(d, SN_TELL_KERNEL_OOM, 0, "killed by the kernel");
 *     sn_fact_set(d, SN_FACT_KILLED_RSS, bytes, 0);
 *     sn_series_add(d, "resident", resident_bytes, 0);
 *     sn_finding_add(d, SNUG_CAUSE_HOST_LOADER, 0.8, true, "a loader worker holds 3 GiB", 0, NULL);
 *
 * Text that a framework printed goes through snug_diagnosis_feed; a reader that has lines (a
 * notebook's error output) simply feeds them under a name of its own.
 * Ownership: the diagnosis copies every text.  Threads: one at a time.
 */
#ifndef SN_DIAGNOSE_DIAGNOSE_H
#define SN_DIAGNOSE_DIAGNOSE_H

#include "base/arena.h"
#include "base/base.h"
#include "base/buf.h"
#include "snug/diagnose.h"

typedef enum sn_fact_id {
#define F(id, name, kind) SN_FACT_##id,
#include "diagnose/facts.def"
#undef F
    SN_N_FACTS
} sn_fact_id;

typedef enum sn_tell_id {
#define T(id, words) SN_TELL_##id,
#include "diagnose/tells.def"
#undef T
    SN_N_TELLS
} sn_tell_id;

typedef enum sn_framework {
    SN_FRAMEWORK_NONE,
    SN_FRAMEWORK_TENSORFLOW,
    SN_FRAMEWORK_PYTORCH,
    SN_FRAMEWORK_JAX,
    SN_FRAMEWORK_DARKNET,
    SN_FRAMEWORK_NUMPY,
    SN_FRAMEWORK_OTHER, /* mxnet, caffe, paddle, cupy, ...: the name in framework_name */
    SN_N_FRAMEWORKS
} sn_framework;

enum { SN_DIAGNOSE_TEXT = 400, SN_DIAGNOSE_GPUS = 64, SN_DIAGNOSE_SERIES = 16 };

/* ---- what readers call; all of them before finish ---- */

/* Names the text or measurement that follows. Line numbers begin anew. False: no memory. */
bool sn_diagnosis_source(snug_diagnosis *d, const char *name);
/* line 0: not from a text. text may be NULL. n counts how often a tell was raised; the first and
 * the last line are kept as evidence. */
void sn_tell_raise(snug_diagnosis *d, sn_tell_id tell, uint64_t line, const char *text);
void sn_fact_set(snug_diagnosis *d, sn_fact_id fact, uint64_t value, uint64_t line);
void sn_fact_set_real(snug_diagnosis *d, sn_fact_id fact, double value, uint64_t line);
/* n bytes of text, cut at 95. */
void sn_fact_set_text(snug_diagnosis *d, sn_fact_id fact, const char *text, size_t n,
                      uint64_t line);
void sn_fact_set_shape(snug_diagnosis *d, sn_fact_id fact, const int64_t *dims, size_t n,
                       uint64_t line);
void sn_fact_clear(snug_diagnosis *d, sn_fact_id fact);
/* A card; UINT64_MAX and NULL mean not said. index 0..63, others are ignored. */
void sn_gpu_set(snug_diagnosis *d, int index, const char *name, uint64_t used, uint64_t total);
/* A process on a card that nvidia-smi or a framework named. bytes UINT64_MAX: not said. */
void sn_gpu_holder_add(snug_diagnosis *d, int gpu, uint64_t pid, const char *name, uint64_t bytes,
                       uint64_t line);
/* A point of "memory over time" under a key (what the number is called). */
void sn_series_add(snug_diagnosis *d, const char *key, uint64_t bytes, uint64_t line);
/* A cause that the reader itself established. explanation is one or two plain sentences with the
 * numbers; it stands before the general one. Above 0.5 only with decisive. */
void sn_finding_add(snug_diagnosis *d, snug_cause_id cause, double confidence, bool decisive,
                    const char *explanation, uint64_t line, const char *text);
/* Puts a fix before those that the tables give for this cause. */
void sn_finding_fix(snug_diagnosis *d, snug_cause_id cause, const char *action, const char *why);
/* "there is no `snug ps`" and the like: advice that does not help here. */
void sn_useless_add(snug_diagnosis *d, const char *advice, const char *why);
/* Marks the framework, first come first served except that OTHER and NUMPY yield to the rest. */
void sn_framework_set(snug_diagnosis *d, sn_framework framework, const char *name);
void sn_device_set(snug_diagnosis *d, const char *device);

/* ---- what rules ask ---- */

uint64_t sn_tell_count(const snug_diagnosis *d, sn_tell_id tell);
bool sn_fact_has(const snug_diagnosis *d, sn_fact_id fact);
/* 0 if absent: ask sn_fact_has first where that matters. */
uint64_t sn_fact_value(const snug_diagnosis *d, sn_fact_id fact);
double sn_fact_real(const snug_diagnosis *d, sn_fact_id fact);
/* NULL if absent. */
const char *sn_fact_text(const snug_diagnosis *d, sn_fact_id fact);
sn_framework sn_diagnosis_framework_id(const snug_diagnosis *d);

#endif
