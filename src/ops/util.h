/* SPDX-License-Identifier: Apache-2.0
 *
 * util.h - what the operators' files share: checks of inputs that name the operand as ops.def does,
 * costs, emitting of gradients, and the update of a run of weights.
 *
 *     SN_OP_TRY(sn_op_arity(SN_OP_DENSE, n_in, n_out, err));
 *     SN_OP_TRY(sn_op_need(SN_OP_DENSE, in, 0, SN_F32, -1, err));
 *     return sn_op_set(SN_OP_DENSE, out, SN_F32, &shape, err);
 *
 * Ownership: none.  Threads: pure functions.
 */
#ifndef SN_OPS_UTIL_H
#define SN_OPS_UTIL_H

#include "ops/op.h"

/* The table's rows, one per operator, each in its family's file. */
#define SN_OP(id, name, file, in, out) extern const sn_op sn_op_row_##id;
#include "ops/ops.def"
#undef SN_OP

#define SN_OP_TRY(call)                                                                            \
    do {                                                                                           \
        snug_status status_ = (call);                                                              \
        if (status_)                                                                               \
            return status_;                                                                        \
    } while (0)
#define SN_OP_ANY_DTYPE SN_N_DTYPES

/* ---- shape rules ----------------------------------------------------------------------------- */

/* The number of operands is the operator's, and those that are not optional are present. Sets every
 * output to absent. */
snug_status sn_op_arity(sn_op_id id, const sn_desc *in, int n_in, sn_desc *out, int n_out,
                        snug_error *err);
/* Operand i has this type and rank (-1: any but a scalar), each dimension at least 1, and its
 * bytes do not overflow. */
snug_status sn_op_need(sn_op_id id, const sn_desc *in, int i, sn_dtype dtype, int rank,
                       snug_error *err);
/* Operand i, float32, has exactly this shape; absent is allowed. */
snug_status sn_op_need_shape(sn_op_id id, const sn_desc *in, int i, const sn_shape *shape,
                             snug_error *err);
/* Operand i is float32 [n]; absent is allowed. */
snug_status sn_op_need_vector(sn_op_id id, const sn_desc *in, int i, int64_t n, snug_error *err);
/* The activation's parameters make sense; fused: none, or ReLU with slope 0 and threshold 0. */
snug_status sn_op_need_act(sn_op_id id, const sn_act_attrs *act, bool fused, snug_error *err);
/* lo <= value <= hi, else an error that names the attribute. */
snug_status sn_op_need_range(sn_op_id id, const char *what, int64_t value, int64_t lo, int64_t hi,
                             snug_error *err);
/* Writes the description of an output; an overflow of its bytes is an error. */
snug_status sn_op_set(sn_op_id id, sn_desc *out, sn_dtype dtype, const sn_shape *shape,
                      snug_error *err);
/* One axis of a window that moves: output size, or an error when the window is larger than the
 * padded input. */
snug_status sn_op_window(sn_op_id id, const char *axis, int64_t in, int64_t kernel, int64_t stride,
                         int64_t dilation, int64_t before, int64_t after, int64_t *out,
                         snug_error *err);
/* Product of all dimensions but the last; the last. */
int64_t sn_op_rows(const sn_shape *shape);
int64_t sn_op_last(const sn_shape *shape);

/* ---- costs ----------------------------------------------------------------------------------- */

/* Bytes of all present operands, and flops times the elements of the largest one. */
void sn_op_cost(double flops_per_element, const sn_desc *in, int n_in, const sn_desc *out,
                int n_out, sn_cost *cost);

/* ---- gradients ------------------------------------------------------------------------------- */

/* Sets every din to SN_NO_REF; false when no gradient comes in at output 0. */
bool sn_op_grad_begin(sn_grad *grad);
/* Emits an operator of which only the first output is wanted. attrs NULL: all zero. */
snug_status sn_op_emit(sn_grad *grad, sn_op_id op, const sn_attrs *attrs, int n_in,
                       const sn_ref *in, sn_ref *out, snug_error *err);
/* *out = the gradient before a fused activation, from its output y and the gradient dy after it. */
snug_status sn_op_emit_act_dx(sn_grad *grad, const sn_act_attrs *act, sn_ref y, sn_ref dy,
                              sn_ref *out, snug_error *err);
/* *out = x summed over what was broadcast, so that it has the shape of `like`. */
snug_status sn_op_emit_reduce_to(sn_grad *grad, sn_ref x, sn_ref like, sn_ref *out,
                                 snug_error *err);
/* A gradient rule for operators that are gradients themselves: refuses. */
snug_status sn_op_no_second_gradient(sn_grad *grad, snug_error *err);

/* ---- small rules that many rows share -------------------------------------------------------- */

int sn_op_in_place_first(const sn_attrs *attrs, int index);  /* output 0 over input 0 */
int sn_op_in_place_second(const sn_attrs *attrs, int index); /* output 0 over input 1 */
bool sn_op_mixes(const sn_attrs *attrs);                     /* true */

/* ---- references ------------------------------------------------------------------------------ */

/* Fused ReLU (or none) of a number. */
static inline float sn_op_fused(const sn_act_attrs *act, float x)
{
    return act->kind == SN_ACT_NONE ? x : sn_act_value(act, x);
}

/* How the gradient of a tensor is clipped before its update. */
typedef struct sn_op_clip {
    enum { SN_OP_CLIP_NONE, SN_OP_CLIP_VALUE, SN_OP_CLIP_NORM, SN_OP_CLIP_GLOBAL } kind;
    float value; /* VALUE: bound; NORM: clip_norm; GLOBAL: factor */
    float norm;  /* NORM: max(norm of the tensor's gradient, clip_norm) */
} sn_op_clip;

/* n weights: w' and slots' from w, g and slots, in Keras' order of float32 operations. Unused slots
 * are NULL. In place is allowed. */
void sn_op_update_run(const sn_update_attrs *update, const sn_update_scalars *scalars,
                      const sn_op_clip *clip, int64_t n, float *w_out, const float *w,
                      const float *g, float *const slot_out[3], const float *const slot[3]);
/* The parameters make sense and the slots fit them. */
snug_status sn_op_need_update(sn_op_id id, const sn_update_attrs *update, const sn_desc *in,
                              int first_slot, int n_slots, const sn_shape *shape, snug_error *err);

#endif
