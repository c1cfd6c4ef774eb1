/* SPDX-License-Identifier: Apache-2.0
 *
 * program.h - the step program: a flat list of instructions over planned buffers. Training,
 * evaluation and prediction are three programs of the same kind. It is made by plan, checked by
 * plan/check, executed by a backend.
 *
 *     for (size_t i = 0; i < p->n_instrs; i++)
 *         execute(&p->instrs[i]);            // operator, kernel, views
 *
 * Ownership: a program owns everything that it points to (one arena).  Threads: read-only once
 * made.
 */
#ifndef SN_BACKEND_PROGRAM_H
#define SN_BACKEND_PROGRAM_H

#include "graph/graph.h"

/* Every byte of the arena has a kind. */
#define SN_BYTES_KIND_LIST(X)                                                                      \
    X(WEIGHTS, "weights")                                                                          \
    X(GRADIENTS, "gradients")                                                                      \
    X(OPTIMIZER, "optimizer")                                                                      \
    X(ACTIVATIONS, "activations")                                                                  \
    X(WORKSPACE, "workspace")                                                                      \
    X(STAGING, "staging")                                                                          \
    X(CONSTANTS, "constants")                                                                      \
    X(PADDING, "padding")
typedef enum sn_bytes_kind {
#define SN_BYTES_KIND_ENUM(id, name) SN_BYTES_##id,
    SN_BYTES_KIND_LIST(SN_BYTES_KIND_ENUM)
#undef SN_BYTES_KIND_ENUM
        SN_N_BYTES_KINDS
} sn_bytes_kind;

/* A lifetime with a place. Lives over instructions [first, last]; persistent ones (weights,
 * optimizer state, staging) over [0, n_instrs-1] and from step to step. */
typedef struct sn_program_buffer {
    const char *name;
    uint64_t bytes; /* physical, padding of the layout included */
    uint32_t first, last;
    bool persistent;
    sn_bytes_kind kind;
    uint32_t slab;
    uint64_t offset;
} sn_program_buffer;

/* One access to a weight (or optimizer slot, or moving statistic): the judge refuses a read of
 * version n after the write of n + 1. */
typedef struct sn_version {
    uint32_t buffer; /* UINT32_MAX: this operand is no versioned one */
    uint32_t number; /* the version read, or written */
} sn_version;

typedef struct sn_instr {
    sn_op_id op;
    uint16_t kernel;
    sn_attrs attrs;
    int n_in, n_out;
    const sn_view *in, *out;          /* absent: buffer == UINT32_MAX, desc absent */
    const sn_version *reads, *writes; /* n_in and n_out entries */
    sn_view workspace;                /* absent: buffer == UINT32_MAX */
    uint8_t queue;                    /* 0 compute, 1 copy */
    uint32_t n_waits;
    const uint32_t *waits; /* instructions of other queues that must have ended */
    bool signals;          /* somebody waits for this one */
    sn_phase phase;
    uint32_t node;     /* of the graph that it was made from */
    const char *layer; /* name of the layer it belongs to, "" if none */
} sn_instr;

/* Where something that outlives a step lies: weights, optimizer state, moving statistics. */
typedef struct sn_program_weight {
    const char *name; /* "conv1/kernel", "conv1/kernel:momentum" */
    sn_view view;
    int32_t weight; /* index of the model's weight; slots: of the weight they belong to */
    int8_t slot;    /* -1: the weight itself; 0.. : optimizer slot */
} sn_program_weight;

typedef struct sn_program {
    struct sn_arena *arena;
    int64_t batch;
    size_t n_instrs, n_buffers, n_slabs, n_weights;
    const sn_instr *instrs;
    const sn_program_buffer *buffers;
    const uint64_t *slab_bytes; /* planned peak of each slab */
    const sn_program_weight *weights;
    sn_view x, target, sample_weight; /* fed by the caller; absent: buffer == UINT32_MAX */
    sn_view loss;                     /* [1] f32; absent in prediction */
    sn_view prediction;               /* logits or outputs [N,...] */
    uint32_t loss_end; /* instructions before this one are forward, loss included: it is checked
                        * before backward begins */
} sn_program;

#endif
