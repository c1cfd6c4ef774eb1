/* SPDX-License-Identifier: Apache-2.0
 *
 * plan.h - every byte of a training run, before it starts: from a model, a batch, an optimizer and
 * a device to the program, its places in memory and its peak.
 *
 *     snug_plan_options o = {SNUG_PLAN_DEFAULTS, .batch = 16, .memory_bytes = 2ull << 30};
 *     snug_status s = snug_plan_new(&plan, model, &o, &err);
 *     if (s == SNUG_OK || s == SNUG_E_DOES_NOT_FIT)          // the second comes with a plan, too
 *         printf("%llu bytes\n", (unsigned long long)snug_plan_numbers(plan)->peak_bytes);
 *     snug_plan_free(plan);
 *
 * A session runs exactly this plan. Zero in an option always means its default.
 * Ownership: the model must outlive the plan; getters borrow until snug_plan_free; text that is
 * returned is freed with snug_text_free.  Threads: one plan, one thread at a time.
 */
#ifndef SNUG_PLAN_H
#define SNUG_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "snug/device.h"
#include "snug/error.h"
#include "snug/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- what is trained, and how ---------------------------------------------------------------- */

typedef enum snug_optimizer_kind {
    SNUG_SGD,
    SNUG_ADAM,
    SNUG_ADAMW,
    SNUG_RMSPROP,
    SNUG_ADAGRAD,
    SNUG_LION
} snug_optimizer_kind;

/* Keras' formulas and defaults. */
typedef struct snug_optimizer {
    snug_optimizer_kind kind; /* default SGD */
    float lr;                 /* default: SGD .01, others .001 */
    float momentum;           /* SGD, RMSprop; default 0: none */
    float beta1, beta2;       /* Adam, AdamW .9 .999; Lion .9 .99 */
    float rho;                /* RMSprop .9 */
    float epsilon;            /* 1e-7 */
    bool nesterov, centered;
    float weight_decay; /* decoupled; default 0, AdamW .004; negative: none for AdamW too */
    float clip_value, clip_norm, clip_global_norm; /* 0: off; one at most */
} snug_optimizer;

/* "sgd:lr=0.01,momentum=0.9", "adam", "adamw:weight_decay=0.05": defaults filled in. SNUG_E_USAGE
 * names the nearest optimizer or the parameters that it has. */
SNUG_API snug_status snug_optimizer_parse(snug_optimizer *out, const char *text, snug_error *err);
/* Zeros replaced by the defaults. */
SNUG_API void snug_optimizer_fill(snug_optimizer *optimizer);
/* "sgd", "adam", ... "?" for a value that is none. */
SNUG_API const char *snug_optimizer_name(snug_optimizer_kind kind);

typedef enum snug_loss_kind {
    SNUG_LOSS_AUTO,    /* softmax cross entropy; a model that ends in sigmoid: that one */
    SNUG_LOSS_SOFTMAX, /* cross entropy of a softmax over the classes */
    SNUG_LOSS_SIGMOID, /* binary cross entropy */
    SNUG_LOSS_MSE,
    SNUG_LOSS_MAE,
    SNUG_LOSS_HUBER
} snug_loss_kind;

typedef struct snug_loss {
    snug_loss_kind kind;
    float smoothing; /* of labels; default 0 */
    float delta;     /* Huber; default 1 */
    bool one_hot; /* targets are float [N,K]; default: class numbers (regression: always float) */
} snug_loss;

/* ---- the options ----------------------------------------------------------------------------- */

typedef enum snug_plan_purpose {
    SNUG_PLAN_TRAIN,    /* training, evaluation and prediction share one arena */
    SNUG_PLAN_EVALUATE, /* evaluation and prediction */
    SNUG_PLAN_PREDICT
} snug_plan_purpose;

typedef struct snug_plan_options {
    size_t struct_size;
    snug_plan_purpose purpose;
    int64_t batch;      /* default: the largest power of two up to 32 that fits, and is no more
                         * than a tenth of n_samples */
    uint64_t n_samples; /* of the training set, for the time of an epoch; 0: not known */
    snug_optimizer optimizer; /* default SGD without momentum */
    snug_loss loss;
    bool sample_weights;     /* a weight for each sample is fed with the batch (class weights) */
    const char *device;      /* default "cpu" */
    int threads;             /* default: as many as the process may use */
    uint64_t memory_bytes;   /* budget for everything that the process holds on the device; default:
                              * what is free now */
    uint64_t pipeline_bytes; /* host bytes that the caller's data pipeline will hold */
    uint64_t runtime_bytes;  /* resident bytes of the process before the session is opened; default:
                              * read from the system now (devices whose memory is the host's) */
    bool keep_activations;   /* BatchNorm and ReLU outputs are kept rather than computed twice */
} snug_plan_options;
#define SNUG_PLAN_DEFAULTS .struct_size = sizeof(snug_plan_options)

/* ---- the plan -------------------------------------------------------------------------------- */

typedef struct snug_plan snug_plan;

enum {
    SNUG_BYTES_WEIGHTS,
    SNUG_BYTES_GRADIENTS,
    SNUG_BYTES_OPTIMIZER,
    SNUG_BYTES_ACTIVATIONS,
    SNUG_BYTES_WORKSPACE,
    SNUG_BYTES_STAGING,
    SNUG_BYTES_CONSTANTS,
    SNUG_BYTES_PADDING,
    SNUG_N_BYTES_KINDS
};
/* "weights", "gradients", ... */
SNUG_API const char *snug_bytes_kind_name(int kind);

typedef struct snug_plan_info {
    int64_t batch;
    bool fits;
    uint64_t budget_bytes;
    bool budget_is_free_memory; /* no budget was given: it is what was free */
    uint64_t peak_bytes;        /* arena + runtime + host */
    uint64_t arena_peak_bytes, arena_lower_bound_bytes;
    uint64_t persistent_bytes; /* of the arena: weights, optimizer, staging, constants */
    size_t n_slabs, n_tensors, n_instructions;
    uint64_t kind_bytes[SNUG_N_BYTES_KINDS]; /* what is live at the peak; sums to the arena's */
    uint64_t runtime_bytes, host_bytes;
    uint64_t keep_all_peak_bytes; /* a framework that keeps everything: what backward reads, all
                                   * gradients whole, nothing in place, fp32 */
    double step_seconds;          /* 0: the device's speed is not known */
    double epoch_seconds;         /* 0: not known */
    double planning_seconds;
    double flops; /* of a step */
    uint64_t parameters, trainable;
} snug_plan_info;

/* Something that the planner did to save memory. */
typedef struct snug_choice {
    const char *remedy; /* "recompute", "in-place", "fused-update" */
    const char *where;  /* "42 places" */
    uint64_t saves_bytes;
    double slowdown;    /* 0.03: 3 % more time */
    const char *result; /* "identical", "rounding", "different" */
} snug_choice;

/* On SNUG_E_DOES_NOT_FIT *out is a plan all the same (err's need and have are set), so that its
 * numbers can be shown and its fixes looked for; on any other failure it is NULL. SNUG_E_USAGE for
 * options that make no sense, SNUG_E_UNSUPPORTED, SNUG_E_DEVICE, SNUG_E_MEMORY. */
SNUG_API snug_status snug_plan_new(snug_plan **out, const snug_model *model,
                                   const snug_plan_options *options, snug_error *err);
SNUG_API const snug_plan_info *snug_plan_numbers(const snug_plan *plan);
SNUG_API const snug_device_info *snug_plan_device(const snug_plan *plan);
SNUG_API const snug_optimizer *snug_plan_optimizer(const snug_plan *plan);
/* With SNUG_LOSS_AUTO decided. */
SNUG_API const snug_loss *snug_plan_loss(const snug_plan *plan);
/* What a caller must bring to hold the whole arena, in slabs. */
SNUG_API uint64_t snug_plan_arena_bytes(const snug_plan *plan);
SNUG_API size_t snug_plan_n_slabs(const snug_plan *plan);
SNUG_API uint64_t snug_plan_slab_bytes(const snug_plan *plan, size_t slab);
SNUG_API size_t snug_plan_n_choices(const snug_plan *plan);
SNUG_API const snug_choice *snug_plan_choice(const snug_plan *plan, size_t index);

/* ---- what would make it fit ------------------------------------------------------------------ */

typedef struct snug_advise_options {
    size_t struct_size;
    const char *model;  /* the model's text for snug_model_zoo; default: it is none of the zoo:
                         * no other size, width or model is tried */
    int64_t classes;    /* as the model was asked for, for other models; default: its own */
    bool size_is_given; /* by the data: no other image size is tried */
} snug_advise_options;
#define SNUG_ADVISE_DEFAULTS .struct_size = sizeof(snug_advise_options)

/* Plans other batches, optimizers, image sizes, widths and models, and puts those that fit into the
 * plan's fixes, closest first, and popular advice that would not help into its useless ones. At
 * least one fix is found: at last, the memory that it takes. A plan that fits gets none. */
SNUG_API snug_status snug_plan_advise(snug_plan *plan, const snug_advise_options *options,
                                      snug_error *err);
/* Why it takes what it takes, one line: "adam keeps 2 numbers for each of 138 M weights: 1056 MiB
 * at any batch". To be freed with snug_text_free; NULL when there is no memory. */
SNUG_API char *snug_plan_reason(const snug_plan *plan);

/* A fix: text to append to the command, planned and true. */
typedef struct snug_plan_fix {
    const char *add;    /* "--optimizer sgd:momentum=0.9" */
    const char *result; /* "identical", "rounding", "different" */
    const char *what;   /* in words */
    uint64_t peak_bytes;
    double slowdown; /* of an image; below 0: faster */
} snug_plan_fix;
SNUG_API size_t snug_plan_n_fixes(const snug_plan *plan);
SNUG_API void snug_plan_fix_at(const snug_plan *plan, size_t index, snug_plan_fix *out);
/* Popular advice that would not help here, and why. */
SNUG_API size_t snug_plan_n_useless(const snug_plan *plan);
SNUG_API void snug_plan_useless_at(const snug_plan *plan, size_t index, const char **advice,
                                   const char **why);

/* The largest batch that fits the plan's budget (0: not even one), found by planning others; kept
 * once found. */
SNUG_API snug_status snug_plan_largest_batch(snug_plan *plan, int64_t *batch, snug_error *err);

/* Text, to be freed with snug_text_free; NULL when there is no memory.
 * The program as a listing, with the live bytes beside each line; evaluation and prediction too. */
SNUG_API char *snug_plan_program_text(const snug_plan *plan, snug_plan_purpose program);
/* id,lower,upper,size,offset of every buffer of the first program. */
SNUG_API char *snug_plan_csv(const snug_plan *plan);
/* Why each operator got the kernel that it has, where others were refused. */
SNUG_API char *snug_plan_why(const snug_plan *plan);
/* Seconds of a step that were measured elsewhere (a session's rehearsal): they stand in the plan's
 * numbers and JSON instead of the roofline's. 0 changes nothing. */
SNUG_API void snug_plan_set_step_seconds(snug_plan *plan, double seconds);
/* One JSON object, without a newline at its end. Fixes stand in it when advise added them. */
SNUG_API char *snug_plan_json(snug_plan *plan, snug_error *err);
SNUG_API void snug_text_free(char *text);

/* NULL-safe. */
SNUG_API void snug_plan_free(snug_plan *plan);

/* ---- placing alone --------------------------------------------------------------------------- */

typedef struct snug_place_result {
    size_t n;
    uint64_t peak_bytes, lower_bound_bytes;
    double seconds;
} snug_place_result;

/* Places the buffers of a CSV "id,lower,upper,size" (lifetimes half open) and, when out_path is not
 * NULL, writes them with their offsets. capacity 0: as low as it gets; else SNUG_E_DOES_NOT_FIT
 * when the peak that was found is above it (*result is filled in all the same). SNUG_E_INPUT names
 * the line. */
SNUG_API snug_status snug_place_file(snug_place_result *result, const char *path, uint64_t capacity,
                                     const char *out_path, snug_error *err);

#ifdef __cplusplus
}
#endif
#endif
