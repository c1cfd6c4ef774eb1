/* SPDX-License-Identifier: Apache-2.0
 *
 * op.h - operators: what a row of ops.def means. Each has a shape rule, a gradient that emits other
 * operators, a cost, and a reference kernel in plain C on PLAIN layouts; faster kernels belong to
 * backends. Shapes are NHWC, kernels of convolutions HWIO [kh,kw,Cin/groups,Cout], dense [in,out].
 *
 *     const sn_op *op = sn_op_of(SN_OP_CONV2D);
 *     s = op->infer(&attrs, in, n_in, out, n_out, err);
 *     op->reference(&call);
 *
 * Absent optional inputs and outputs keep their place: a desc with shape.rank < 0 (sn_desc_absent),
 * an operand with data == NULL. An output marked x' in ops.def overwrites its input's storage.
 * Ownership: static tables.  Threads: everything here is reentrant.
 */
#ifndef SN_OPS_OP_H
#define SN_OPS_OP_H

#include "tensor/tensor.h"

#define SN_MAX_IN 16
#define SN_MAX_OUT 4

typedef enum sn_op_id {
#define SN_OP(id, name, file, in, out) SN_OP_##id,
#include "ops/ops.def"
#undef SN_OP
    SN_N_OPS
} sn_op_id;

/* ---- attributes ------------------------------------------------------------------------------ */

typedef enum sn_act {
    SN_ACT_NONE,
    SN_ACT_RELU,      /* Keras' ReLU: x >= max ? max : x > threshold ? x : alpha*(x-threshold) */
    SN_ACT_ELU,       /* x > 0 ? x : alpha*(exp(x)-1) */
    SN_ACT_GELU,      /* exact: x * Phi(x) */
    SN_ACT_GELU_TANH, /* tanh approximation */
    SN_ACT_SILU,      /* x * sigmoid(x) */
    SN_ACT_HARD_SILU, /* x * hard_sigmoid(x) */
    SN_ACT_SIGMOID,
    SN_ACT_HARD_SIGMOID, /* relu6(x+3)/6 */
    SN_ACT_TANH,
    SN_N_ACTS
} sn_act;

typedef struct sn_act_attrs {
    sn_act kind;
    float alpha;     /* RELU: negative slope; ELU: alpha */
    float max;       /* RELU: max value, 0: none */
    float threshold; /* RELU */
} sn_act_attrs;

typedef struct sn_conv_attrs {
    int64_t stride[2], dilation[2]; /* h, w; at least 1 */
    int64_t pad[4];                 /* top, bottom, left, right; zeros */
    int64_t groups;    /* at least 1; depthwise: Cin, kernel [kh,kw,1,Cin*multiplier] */
    int64_t in_hw[2];  /* CONV2D_DX: height and width of dx */
    int64_t kernel[2]; /* CONV2D_DW: height and width of dw */
    bool has_dbias;    /* CONV2D_DW, DENSE_DW: second output present */
    sn_act_attrs act;  /* CONV2D, DENSE: applied to y; gradients take dy before it */
} sn_conv_attrs;       /* DENSE, DENSE_DX, DENSE_DW use act and has_dbias only */

typedef struct sn_norm_attrs {
    float epsilon;
    float momentum;   /* MOVING_AVERAGE: moving = moving*momentum + value*(1-momentum) */
    int64_t groups;   /* GROUP_NORM: groups over [H,W,C/groups]; 0: layer norm over the last axis */
    sn_act_attrs act; /* BATCH_NORM*, RELU only (alpha 0): fused; *_DX take dy after it and find the
                       * mask again from x */
} sn_norm_attrs;

typedef enum sn_pool_kind { SN_POOL_MAX, SN_POOL_AVERAGE } sn_pool_kind;
typedef struct sn_pool_attrs {
    sn_pool_kind kind;
    int64_t window[2], stride[2], pad[4]; /* average: padding is not counted; max: pads -inf */
    int64_t in_hw[2];                     /* POOL2D_DX, and GLOBAL_POOL_DX without x */
    bool keepdims;                        /* GLOBAL_POOL*: [N,1,1,C] rather than [N,C] */
    bool save_index; /* POOL2D max: second output u8 (window <= 255 elements) or i32 [N,Ho,Wo,C]:
                      * h*window_w + w of the first largest element; NaN wins over numbers */
} sn_pool_attrs;

typedef struct sn_pad_attrs {
    int64_t pad[4]; /* PAD2D: added; CROP2D: removed; top, bottom, left, right */
} sn_pad_attrs;

typedef struct sn_upsample_attrs {
    int64_t factor[2];
    bool bilinear; /* half-pixel centres, as tf.image.resize; false: nearest */
} sn_upsample_attrs;

typedef enum sn_binary_kind {
    SN_BINARY_ADD,
    SN_BINARY_SUB,
    SN_BINARY_MUL,
    SN_BINARY_DIV,
    SN_BINARY_MAX
} sn_binary_kind;
typedef struct sn_binary_attrs {
    sn_binary_kind kind; /* shapes broadcast as numpy's do */
    sn_act_attrs act;    /* fused, RELU only */
} sn_binary_attrs;

typedef struct sn_slice_attrs {
    int axis;              /* CONCAT, SLICE */
    int64_t start, length; /* SLICE */
} sn_slice_attrs;

typedef enum sn_scalar_kind {
    SN_SCALAR_ADD,
    SN_SCALAR_MUL,
    SN_SCALAR_DIV, /* x/c */
    SN_SCALAR_SUB,
    SN_SCALAR_RSUB,   /* x-c, c-x */
    SN_SCALAR_RDIV,   /* c/x */
    SN_SCALAR_AFFINE, /* x*c + offset, product rounded first (Rescaling) */
    SN_SCALAR_RDIV_DX /* -c/(x*x): factor of RDIV's gradient */
} sn_scalar_kind;
typedef struct sn_scalar_attrs {
    sn_scalar_kind kind;
    float value, offset;
} sn_scalar_attrs;

typedef struct sn_dropout_attrs {
    float rate;      /* kept elements are scaled by 1/(1-rate); the gradient is the same operator */
    uint32_t stream; /* number of the layer: part of the key */
    uint8_t broadcast; /* bit i: axis i shares one draw (noise shape 1); axis 0 is always drawn */
} sn_dropout_attrs;

typedef struct sn_shape_attrs {
    sn_shape
        shape; /* RESHAPE, REDUCE_TO: result, its outermost dimension is the batch (-1 keeps) */
    int perm[SN_MAX_RANK]; /* PERMUTE: result axis i is input axis perm[i]; perm[0] = 0 */
    sn_dtype dtype;        /* CAST */
} sn_shape_attrs;

typedef enum sn_loss_kind {
    SN_LOSS_SOFTMAX_XENT, /* logits [N,K], target i32 [N] or f32 [N,K] */
    SN_LOSS_SIGMOID_XENT, /* logits [N,K], target i32 [N] (K = 1) or f32 [N,K]; mean over K */
    SN_LOSS_MSE,
    SN_LOSS_MAE,
    SN_LOSS_HUBER, /* prediction and target f32 [N,K]; mean over K */
    SN_N_LOSSES
} sn_loss_kind;
typedef struct sn_loss_attrs {
    sn_loss_kind kind;
    float smoothing; /* y*(1-s) + s/K; sigmoid: y*(1-s) + s/2 */
    float delta;     /* HUBER */
} sn_loss_attrs; /* LOSS: sum over samples of weight[i]*loss_i, divided by step->n_batch samples;
                  * weight f32 [N], absent: ones */

typedef enum sn_update_kind {
    SN_UPDATE_SGD,  /* no slots; momentum: slot0; formulas of Keras 3, facts section 1.8 */
    SN_UPDATE_ADAM, /* slot0 m, slot1 v */
    SN_UPDATE_ADAMW,
    SN_UPDATE_RMSPROP, /* slot0 v, then with momentum: m, then centered: mean (no gaps) */
    SN_UPDATE_ADAGRAD, /* slot0 */
    SN_UPDATE_LION,    /* slot0 */
    SN_N_UPDATES
} sn_update_kind;
typedef struct sn_update_attrs {
    sn_update_kind kind;
    float momentum, beta1, beta2, rho, epsilon;
    bool nesterov, centered;
    float weight_decay; /* decoupled: w -= lr*wd*w before the update */
    float l2;           /* gradient += 2*l2*w */
    float clip_value;   /* 0: off. Keras refuses two of the three; here norm, global, value wins */
    float clip_norm;    /* per tensor, 0: off */
    float clip_global;  /* with input `norm` (sum of squares of all gradients), 0: off */
    float lr_scale;     /* times step->lr */
    float penalty;      /* SUM_SQUARES: factor (L2's loss term), 0: 1 */
} sn_update_attrs;

typedef union sn_attrs {
    sn_conv_attrs conv; /* CONV2D* DENSE* */
    sn_norm_attrs norm; /* BATCH_NORM* GROUP_NORM* MOVING_AVERAGE */
    sn_act_attrs act;   /* ACTIVATION* */
    sn_pool_attrs pool; /* POOL2D* GLOBAL_POOL* */
    sn_pad_attrs pad;   /* PAD2D CROP2D */
    sn_upsample_attrs upsample;
    sn_binary_attrs binary; /* BINARY MAXIMUM_DX */
    sn_slice_attrs slice;   /* CONCAT SLICE */
    sn_scalar_attrs scalar;
    sn_dropout_attrs dropout;
    sn_shape_attrs shape; /* RESHAPE REDUCE_TO PERMUTE CAST */
    sn_loss_attrs loss;
    sn_update_attrs update; /* UPDATE SUM_SQUARES; DENSE_UPDATE too */
} sn_attrs;

/* ---- running one ----------------------------------------------------------------------------- */

/* What changes from step to step; everything else stands in the program. */
typedef struct sn_step {
    uint64_t number;       /* optimizer steps done so far; Adam's t is number + 1 */
    uint64_t seed;         /* of the run */
    uint64_t first_sample; /* position of sample 0 in the global batch (slices) */
    double n_batch;        /* samples that the loss is divided by */
    float lr;
} sn_step;

typedef struct sn_operand {
    void *data; /* PLAIN layout; NULL: absent */
    sn_desc desc;
} sn_operand;

typedef struct sn_call {
    const sn_attrs *attrs;
    const sn_operand *in;
    const sn_operand *out;
    int n_in, n_out;
    void *workspace; /* reference_workspace() bytes */
    const sn_step *step;
} sn_call;

typedef struct sn_cost {
    double flops; /* multiply and add counted apart */
    double read_bytes, written_bytes;
} sn_cost;

/* ---- gradients ------------------------------------------------------------------------------- */

typedef uint32_t sn_ref; /* a value of the graph under construction */
#define SN_NO_REF UINT32_MAX

/* Given by graph/grad to an operator's gradient rule, for one node. */
typedef struct sn_grad {
    const sn_attrs *attrs;
    int n_in, n_out;
    const sn_ref *in, *out; /* the node's; SN_NO_REF: absent */
    const sn_ref *dout;     /* gradient of each output; SN_NO_REF: nothing depends on it */
    const bool *wanted;     /* per input: somebody needs its gradient */
    sn_ref *din;            /* filled in for wanted inputs; SN_NO_REF: it is zero */
    /* Appends a node and returns its outputs' refs in out (absent outputs: pass want[i] = false;
     * want NULL: all). */
    snug_status (*emit)(struct sn_grad *grad, sn_op_id op, const sn_attrs *attrs, int n_in,
                        const sn_ref *in, int n_out, const bool *want, sn_ref *out,
                        snug_error *err);
    sn_desc (*desc)(const struct sn_grad *grad, sn_ref ref);
    void *context;
} sn_grad;

/* ---- the table ------------------------------------------------------------------------------- */

typedef struct sn_op {
    const char *name;
    /* required: shapes and types of the outputs; SNUG_E_INPUT with the numbers when the inputs do
     * not go together. An output that the attributes leave out gets sn_desc_absent(). */
    snug_status (*infer)(const sn_attrs *attrs, const sn_desc *in, int n_in, sn_desc *out,
                         int n_out, snug_error *err);
    /* optional: NULL means that no gradient passes (updates, losses' own gradients) */
    snug_status (*grad)(sn_grad *grad, snug_error *err);
    /* required */
    void (*cost)(const sn_attrs *attrs, const sn_desc *in, int n_in, const sn_desc *out, int n_out,
                 sn_cost *cost);
    /* required */
    void (*reference)(const sn_call *call);
    /* optional: NULL means none */
    uint64_t (*reference_workspace)(const sn_attrs *attrs, const sn_desc *in, int n_in);
    /* optional: the input whose storage output `index` may share, element for element (in place),
     * -1 none; NULL means none. Holds for every backend's kernels, and only where both have the
     * same bytes (a broadcast input does not). */
    int (*in_place)(const sn_attrs *attrs, int index);
    /* optional: true when the result mixes samples of the batch (BatchNorm's statistics, weight
     * gradients, losses): such an operator cannot be sliced along the batch. NULL means it can. */
    bool (*mixes_batch)(const sn_attrs *attrs);
} sn_op;

const sn_op *sn_op_of(sn_op_id id);
/* SN_N_OPS when there is no such name. */
sn_op_id sn_op_by_name(const char *name);

static inline sn_desc sn_desc_absent(void)
{
    sn_desc d = {SN_F32, {-1, {0}}};
    return d;
}
static inline bool sn_desc_is_absent(const sn_desc *desc)
{
    return desc->shape.rank < 0;
}

/* The activation of one number, and its derivative from `saved` (y when sn_act_from_output, else
 * x). */
float sn_act_value(const sn_act_attrs *act, float x);
float sn_act_slope(const sn_act_attrs *act, float saved);
bool sn_act_from_output(const sn_act_attrs *act);
const char *sn_act_name(sn_act kind);
/* Number of slots that an update keeps (0..3) and the value they start from. */
int sn_update_n_slots(const sn_update_attrs *update);
float sn_update_slot_start(const sn_update_attrs *update, int slot);
/* The numbers of one step, rounded to float32 where Keras rounds them; every kernel uses these. */
typedef struct sn_update_scalars {
    float lr;    /* step->lr * lr_scale (0: 1) */
    float alpha; /* ADAM, ADAMW: lr * sqrt(1 - beta2^t) / (1 - beta1^t) */
    float momentum, beta1, beta2, rho, epsilon, weight_decay, l2;
    float one_minus_beta1, one_minus_beta2, one_minus_rho;
} sn_update_scalars;
void sn_update_prepare(sn_update_scalars *out, const sn_update_attrs *update, const sn_step *step);
/* The number whose shortest decimal rounds to this float: 0.9f -> 0.9. Keras takes 1 - beta from
 * the double that its user wrote, before it rounds. */
double sn_decimal(float value);
const char *sn_update_name(sn_update_kind kind);
const char *sn_loss_name(sn_loss_kind kind);
/* Is element e (logical NHWC index in the sample) of sample s kept by this dropout? One rule for
 * every kernel: of Philox' block e / 4 with the key (seed, stream) and the counter (step number,
 * first_sample + s, block) the upper 24 bits of word e % 4, as a fraction, are at least the rate.
 */
bool sn_dropout_keeps(const sn_dropout_attrs *dropout, const sn_step *step, uint64_t sample,
                      uint64_t element);
/* The element whose draw `element` shares, after the broadcast axes are folded. */
uint64_t sn_dropout_fold(const sn_dropout_attrs *dropout, const sn_shape *shape, uint64_t element);
/* TensorFlow's "same": padding before and after for one axis. */
void sn_same_padding(int64_t in, int64_t kernel, int64_t stride, int64_t dilation, int64_t *before,
                     int64_t *after);

#endif
