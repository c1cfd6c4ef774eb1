/* SPDX-License-Identifier: Apache-2.0
 *
 * graph.h - a model for one batch size as values and nodes in execution order: built from the
 * public model, extended by the backward pass and the updates, rewritten by passes, lowered to a
 * device by plan/lower (which adds reorders, layouts, kernels and workspaces).
 *
 *     sn_graph *g;  sn_graph_options o = {.batch = 16, .mode = SN_GRAPH_TRAIN, ...};
 *     s = sn_graph_from_model(&g, model, &o, err);
 *     for (size_t i = 0; i < g->nodes.n; i++) visit(&g->nodes.at[i]);
 *
 * Ownership: a graph owns its nodes and names in one arena; values and nodes are addressed by index
 * (sn_ref), which stays valid when more are appended.  Threads: one at a time.
 *
 * Invariants (asserted in debug builds by sn_graph_check):
 *  1. nodes stand in execution order: every input was produced before, or has no producer;
 *  2. a value has one producer at most;
 *  3. storage roots are their own storage; a value that shares bytes names the root directly;
 *  4. only WEIGHT and SLOT roots have versions above 0; an update's output is version + 1 of the
 *     same root, and nobody reads version n after version n + 1 was produced.
 */
#ifndef SN_GRAPH_GRAPH_H
#define SN_GRAPH_GRAPH_H

#include "base/arena.h"
#include "base/vec.h"
#include "ops/op.h"
#include "snug/model.h"

typedef enum sn_phase {
    SN_PHASE_FORWARD,
    SN_PHASE_BACKWARD,
    SN_PHASE_UPDATE,
    SN_N_PHASES
} sn_phase;

typedef enum sn_value_kind {
    SN_VALUE_X,             /* the batch [N,...] f32: staging, written by the session */
    SN_VALUE_TARGET,        /* i32 [N] or f32 [N,K]: staging */
    SN_VALUE_SAMPLE_WEIGHT, /* f32 [N]: staging */
    SN_VALUE_WEIGHT,        /* persistent: a weight of the model, trainable or not */
    SN_VALUE_SLOT,          /* persistent: optimizer state */
    SN_VALUE_CONSTANT,      /* persistent, never written after the start */
    SN_VALUE_TEMP           /* everything else: lives from its producer to its last reader */
} sn_value_kind;

typedef struct sn_value {
    const char *name; /* "conv1", "conv1/kernel", "conv1/kernel:grad" */
    sn_desc desc;
    sn_value_kind kind;
    sn_ref storage;    /* root whose bytes this value is; itself if it has its own */
    uint32_t version;  /* of a WEIGHT's or SLOT's bytes */
    uint32_t producer; /* node, UINT32_MAX: none (fed or persistent) */
    int32_t weight;    /* WEIGHT, SLOT and gradients: the model's weight; else -1 */
    int8_t slot;       /* SLOT: which; else -1 */
    bool is_gradient;  /* of a weight (kind "gradients" in the plan) */
    bool keep;         /* lives to the end of the step (loss, prediction): read by the session */
    float start;       /* SLOT: its first content */
    sn_layout layout;  /* lowering's; UNSET before */
} sn_value;

typedef struct sn_node {
    sn_op_id op;
    sn_attrs attrs;
    int n_in, n_out;
    sn_ref *in, *out; /* SN_NO_REF: absent */
    sn_phase phase;
    const char *layer;   /* the layer's name, "" if none */
    int32_t layer_index; /* of the model, -1 if none */
    bool is_replay;      /* recomputes a forward value for backward */
    /* lowering's: */
    uint16_t kernel;
    uint8_t queue;
    uint64_t workspace_bytes, runtime_bytes;
    const char *why; /* why better kernels were refused, "" or NULL: none was */
} sn_node;

typedef enum sn_graph_mode { SN_GRAPH_TRAIN, SN_GRAPH_EVALUATE, SN_GRAPH_PREDICT } sn_graph_mode;

typedef struct sn_graph_options {
    int64_t batch;
    sn_graph_mode mode;
    sn_loss_attrs loss;     /* TRAIN, EVALUATE */
    bool one_hot_target;    /* target f32 [N,K] rather than i32 [N] */
    bool sample_weights;    /* a SAMPLE_WEIGHT input is there */
    sn_update_attrs update; /* TRAIN */
    bool keep_gradients;    /* gradients are graph outputs (tests, oracles): no updates are made */
    bool no_passes;         /* neither fused nor replayed: what the layers say, one by one */
    bool no_replay;         /* BatchNorm + ReLU outputs are kept rather than recomputed */
} sn_graph_options;

typedef struct sn_graph {
    sn_arena arena;
    const snug_model *model;
    sn_graph_options options;
    SN_VEC(sn_value) values;
    SN_VEC(sn_node) nodes;
    sn_ref x, target, sample_weight, loss, prediction; /* SN_NO_REF: absent */
} sn_graph;

/* The whole walk: forward nodes from the model, fusion, loss, backward, updates, replays, order.
 * SNUG_E_UNSUPPORTED when an operator in the path of a trainable weight has no gradient. */
snug_status sn_graph_from_model(sn_graph **out, const snug_model *model,
                                const sn_graph_options *options, snug_error *err);
void sn_graph_free(sn_graph *graph);

/* ---- building blocks (graph.c) ---- */
snug_status sn_graph_new(sn_graph **out, snug_error *err);
/* A value without a producer. name is copied. */
snug_status sn_graph_add_value(sn_graph *graph, const char *name, const sn_desc *desc,
                               sn_value_kind kind, sn_ref *out, snug_error *err);
/* Appends a node: infers the outputs, makes their values (outputs whose want is false are absent;
 * want NULL: all that the operator gives). Outputs that overwrite an input (updates) become the
 * next version of its storage. */
snug_status sn_graph_append(sn_graph *graph, sn_op_id op, const sn_attrs *attrs, int n_in,
                            const sn_ref *in, int n_out, const bool *want, sn_phase phase,
                            const char *layer, int32_t layer_index, sn_ref *out, snug_error *err);
/* The input whose bytes output `output` of an update overwrites, -1: none (x' in ops.def). */
int sn_graph_overwrites(sn_op_id op, int output);
/* An empty node at the end of nodes with room for its lists; the caller fills it in. */
sn_node *sn_graph_raw_node(sn_graph *graph, int n_in, int n_out);
/* SNUG_E_INTERNAL naming the broken invariant. Sets producers anew. */
snug_status sn_graph_check(sn_graph *graph, snug_error *err);
/* For each value the number of the last node that reads it (or its storage), UINT32_MAX if none. */
snug_status sn_graph_last_uses(const sn_graph *graph, uint32_t **last, snug_error *err);

/* ---- passes (fuse.c, grad.c, replay.c), each leaves a graph that sn_graph_check accepts ---- */
snug_status sn_graph_fuse(sn_graph *graph, snug_error *err);
/* Where the node keeps its fused activation; NULL if its operator has none. */
sn_act_attrs *sn_graph_fused_act(sn_node *node);
/* Gradients, in the order that frees most (a weight's before its input's), and updates as soon as
 * the gradient is complete and the old weight was read for the last time. */
snug_status sn_graph_backward(sn_graph *graph, snug_error *err);
snug_status sn_graph_replay(sn_graph *graph, snug_error *err);

/* A listing, one line a node, for tests and for people. */
typedef struct sn_buf sn_buf;
void sn_graph_print(const sn_graph *graph, sn_buf *out);

#endif
