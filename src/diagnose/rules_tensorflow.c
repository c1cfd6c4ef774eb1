/* SPDX-License-Identifier: Apache-2.0
 *
 * TensorFlow, Keras, XLA and JAX. The failing shape tells a batch from a weight; the allocator's
 * limit and biggest chunk tell a full card from a greedy neighbour and a whole data set.
 */
#include <string.h>

#include "diagnose/rules.h"

/* A pool of the host, or a device that is the host: its limit says nothing about a card. */
static bool cpu_allocator(const snug_diagnosis *d)
{
    const char *name = sn_fact_text(d, SN_FACT_ALLOCATOR);
    return (name && strstr(name, "cpu")) || (d->device && !strcmp(d->device, "cpu"));
}

/* A limit that a person sets is in whole MiB (the line that announces the device rounds to MB, so
 * there only in whole quarters of a GiB); what others left over is not. */
static bool round_limit(const snug_diagnosis *d)
{
    uint64_t unit = sn_tell_count(d, SN_TELL_TF_BFC_STATS) ? SN_MIB : SN_GIB / 4;
    return sn_fv(d, SN_FACT_LIMIT) % unit == 0;
}

/* The pool is a small part of the card, or tiny. */
static bool small_limit(const snug_diagnosis *d)
{
    uint64_t limit = sn_fv(d, SN_FACT_LIMIT), total = sn_fv(d, SN_FACT_GPU_TOTAL);
    return limit && !cpu_allocator(d) && (total ? limit < total / 100 * 40 : limit < 400 * SN_MIB);
}

/* Small, and nobody asked it to be. */
static bool tiny_limit(const snug_diagnosis *d)
{
    return small_limit(d) && !round_limit(d) && !sn_tell_count(d, SN_TELL_TF_MEMORY_LIMIT) &&
           !sn_tell_count(d, SN_TELL_TF_FRACTION);
}

static bool round_tiny_limit(const snug_diagnosis *d)
{
    return small_limit(d) && round_limit(d);
}

static bool card_nearly_taken(const snug_diagnosis *d)
{
    uint64_t total = sn_fv(d, SN_FACT_GPU_TOTAL);
    return sn_fact_has(d, SN_FACT_GPU_FREE) && total &&
           sn_fv(d, SN_FACT_GPU_FREE) < total / 100 * 40 &&
           (sn_is_device_oom(d) || sn_tell_count(d, SN_TELL_TF_CUDNN_ALLOC) ||
            sn_tell_count(d, SN_TELL_TF_CUDNN_INIT) || sn_tell_count(d, SN_TELL_TF_BLAS) ||
            sn_tell_count(d, SN_TELL_TF_FAILED_ALLOC));
}

static bool cap_was_set(const snug_diagnosis *d)
{
    uint64_t limit = sn_fv(d, SN_FACT_LIMIT), total = sn_fv(d, SN_FACT_GPU_TOTAL);
    return limit && total && limit < total / 100 * 60;
}

static bool fraction_beyond_free(const snug_diagnosis *d)
{
    double fraction = sn_fact_real(d, SN_FACT_MEMORY_FRACTION);
    return fraction > 0 && sn_fact_has(d, SN_FACT_GPU_TOTAL) && sn_fact_has(d, SN_FACT_GPU_FREE) &&
           fraction * (double)sn_fv(d, SN_FACT_GPU_TOTAL) > (double)sn_fv(d, SN_FACT_GPU_FREE);
}

static bool fraction_nearly_all(const snug_diagnosis *d)
{
    return sn_fact_real(d, SN_FACT_MEMORY_FRACTION) >= 0.95 && !fraction_beyond_free(d) &&
           (sn_is_device_oom(d) || sn_tell_count(d, SN_TELL_TF_CUDNN_ALLOC) ||
            sn_tell_count(d, SN_TELL_TF_CUDNN_INIT) || sn_tell_count(d, SN_TELL_TF_BLAS) ||
            sn_tell_count(d, SN_TELL_TF_FAILED_ALLOC));
}

static bool greedy_pool(const snug_diagnosis *d)
{
    uint64_t total = sn_fv(d, SN_FACT_GPU_TOTAL);
    return total && sn_fv(d, SN_FACT_LIMIT) >= total / 100 * 70 && !card_nearly_taken(d);
}

static bool library_start(const snug_diagnosis *d)
{
    return !sn_tell_count(d, SN_TELL_TF_OOM_TENSOR) && !card_nearly_taken(d);
}

static sn_shape_kind shape(const snug_diagnosis *d)
{
    return sn_shape_classify(d);
}

static bool known_kernel(const snug_diagnosis *d)
{
    return shape(d) == SN_SHAPE_KNOWN_KERNEL && !tiny_limit(d) &&
           !sn_tell_count(d, SN_TELL_TF_MANY_MODELS);
}

static bool large_kernel(const snug_diagnosis *d)
{
    return shape(d) == SN_SHAPE_KERNEL && sn_fv(d, SN_FACT_TENSOR_BYTES) >= 64 * SN_MIB &&
           !tiny_limit(d) && !sn_tell_count(d, SN_TELL_TF_MANY_MODELS);
}

static bool small_kernel(const snug_diagnosis *d)
{
    return shape(d) == SN_SHAPE_KERNEL && !large_kernel(d) && !tiny_limit(d);
}

static uint64_t asked(const snug_diagnosis *d)
{
    return sn_fact_has(d, SN_FACT_REQUESTED) ? sn_fv(d, SN_FACT_REQUESTED)
                                             : sn_fv(d, SN_FACT_TENSOR_BYTES);
}

/* The pool is full of many pieces, none of which is most of it: a step's activations. */
static bool activations_fill(const snug_diagnosis *d)
{
    uint64_t limit = sn_fv(d, SN_FACT_LIMIT), used = sn_fv(d, SN_FACT_IN_USE), sum;
    /* two dimensions could be a weight's too */
    bool sure = d->facts[SN_FACT_SHAPE].n_dims >= 3;
    return shape(d) == SN_SHAPE_ACTIVATION && sure && limit && sn_fact_has(d, SN_FACT_IN_USE) &&
           !tiny_limit(d) && !round_tiny_limit(d) && used >= limit / 2 &&
           !sn_add_u64(&sum, used, asked(d)) && sum > limit &&
           sn_fv(d, SN_FACT_BIGGEST_CHUNK) < limit / 100 * 40 &&
           !sn_tell_count(d, SN_TELL_TF_WEIGHT_OP) && !sn_tell_count(d, SN_TELL_TF_MANY_MODELS) &&
           !sn_tell_count(d, SN_TELL_TF_EAGER_CONST) && !sn_tell_count(d, SN_TELL_TF_CONVERT);
}

static bool activation(const snug_diagnosis *d)
{
    return shape(d) == SN_SHAPE_ACTIVATION && !tiny_limit(d) && !activations_fill(d);
}

static bool whole_set_shape(const snug_diagnosis *d)
{
    return shape(d) == SN_SHAPE_SET;
}

static bool evaluation_set(const snug_diagnosis *d)
{
    return shape(d) == SN_SHAPE_SET && !sn_tell_count(d, SN_TELL_TF_CONVERT) &&
           !sn_tell_count(d, SN_TELL_TF_EAGER_CONST) && !sn_tell_count(d, SN_TELL_TF_DST);
}

/* One piece is most of the pool, and a constant or a conversion made it. */
static bool one_huge_chunk(const snug_diagnosis *d)
{
    uint64_t big = sn_fv(d, SN_FACT_BIGGEST_CHUNK), limit = sn_fv(d, SN_FACT_LIMIT);
    return !tiny_limit(d) && big >= 64 * SN_MIB &&
           (limit ? big >= limit / 100 * 35 : big >= SN_GIB);
}

static bool huge_constant_request(const snug_diagnosis *d)
{
    uint64_t limit = sn_fv(d, SN_FACT_LIMIT);
    return !tiny_limit(d) && asked(d) >= 64 * SN_MIB && !sn_tell_count(d, SN_TELL_TF_WEIGHT_OP) &&
           (limit ? asked(d) >= limit / 100 * 30 : asked(d) >= SN_GIB);
}

static bool constant_alone(const snug_diagnosis *d)
{
    return !tiny_limit(d) && !one_huge_chunk(d) && !huge_constant_request(d);
}

static bool not_tiny(const snug_diagnosis *d)
{
    return !tiny_limit(d);
}

static bool no_tensor(const snug_diagnosis *d)
{
    return shape(d) == SN_SHAPE_NONE && !tiny_limit(d) &&
           !(sn_tell_count(d, SN_TELL_TF_EAGER_CONST) || sn_tell_count(d, SN_TELL_TF_DST)) &&
           (sn_tell_count(d, SN_TELL_TF_BFC_OOM) || sn_tell_count(d, SN_TELL_TF_CHUNKS) >= 2);
}

/* Twice what was asked for is free in the pool, and still no chunk was large enough. */
static bool pool_fragmented(const snug_diagnosis *d)
{
    uint64_t limit = sn_fv(d, SN_FACT_LIMIT), used = sn_fv(d, SN_FACT_IN_USE), q = asked(d);
    uint64_t region = sn_fv(d, SN_FACT_REGION);
    return limit && q && sn_fact_has(d, SN_FACT_IN_USE) && used < limit && used >= limit / 10 &&
           (limit - used) / 3 * 2 >= q && (!region || region >= limit / 100 * 97) &&
           !one_huge_chunk(d) && sn_tell_count(d, SN_TELL_TF_BFC_OOM);
}

static bool many_models(const snug_diagnosis *d)
{
    return sn_is_device_oom(d) || sn_is_killed(d);
}

/* A small weight of a new model found no room, among many pieces of its own size. */
static bool same_weights(const snug_diagnosis *d)
{
    uint64_t bytes = sn_fv(d, SN_FACT_TENSOR_BYTES), chunk = sn_fv(d, SN_FACT_SAME_CHUNK);
    return bytes && chunk >= bytes && chunk - bytes <= bytes / 8 + 4096 &&
           sn_fv(d, SN_FACT_SAME_CHUNKS) >= 24 && bytes < sn_fv(d, SN_FACT_LIMIT) / 10;
}

static bool weights_on_full_card(const snug_diagnosis *d)
{
    uint64_t limit = sn_fv(d, SN_FACT_LIMIT);
    return !same_weights(d) && !tiny_limit(d) && limit && asked(d) &&
           sn_fv(d, SN_FACT_N_ALLOCS) >= 10000 && asked(d) < limit / 20 &&
           sn_fv(d, SN_FACT_IN_USE) >= limit / 100 * 70;
}

/* The first thing that was ever put into the pool did not fit, and no operation asked for it. */
static bool first_request(const snug_diagnosis *d)
{
    uint64_t limit = sn_fv(d, SN_FACT_LIMIT);
    return limit && sn_fact_has(d, SN_FACT_IN_USE) && sn_fv(d, SN_FACT_IN_USE) <= SN_MIB &&
           sn_fv(d, SN_FACT_REQUESTED) > limit / 2 && !sn_fact_has(d, SN_FACT_OP) &&
           shape(d) == SN_SHAPE_NONE && !tiny_limit(d) && !sn_tell_count(d, SN_TELL_XLA_OOM);
}

static bool oom_after_retracing(const snug_diagnosis *d)
{
    return sn_is_device_oom(d);
}

static bool killed_after_retracing(const snug_diagnosis *d)
{
    return sn_is_killed(d) && sn_tell_count(d, SN_TELL_TF_RETRACING) >= 2;
}

static bool one_image(const snug_diagnosis *d)
{
    return shape(d) == SN_SHAPE_IMAGE;
}

static bool xla_mostly(const snug_diagnosis *d, sn_fact_id part, unsigned percent)
{
    double sum = (double)sn_fv(d, SN_FACT_XLA_PARAMETERS) +
                 (double)sn_fv(d, SN_FACT_XLA_CONSTANTS) + (double)sn_fv(d, SN_FACT_XLA_TEMP);
    return sum > 0 && (double)sn_fv(d, part) >= sum * percent / 100;
}

static bool xla_parameters(const snug_diagnosis *d)
{
    return xla_mostly(d, SN_FACT_XLA_PARAMETERS, 65) && sn_fact_has(d, SN_FACT_XLA_TEMP);
}

static bool xla_constants(const snug_diagnosis *d)
{
    return xla_mostly(d, SN_FACT_XLA_CONSTANTS, 50) && sn_fact_has(d, SN_FACT_XLA_TEMP);
}

static bool xla_temp(const snug_diagnosis *d)
{
    return xla_mostly(d, SN_FACT_XLA_TEMP, 60) && sn_fact_has(d, SN_FACT_XLA_PARAMETERS);
}

static bool xla_plain(const snug_diagnosis *d)
{
    return !tiny_limit(d);
}

static bool failed_alloc(const snug_diagnosis *d)
{
    return !sn_went_on_after(d, SN_TELL_TF_FAILED_ALLOC);
}

static bool pinned_host(const snug_diagnosis *d)
{
    return !sn_went_on_after(d, SN_TELL_TF_HOST_ALLOC);
}

static bool scratch_refused(const snug_diagnosis *d)
{
    return sn_tells_near(d, SN_TELL_TF_BFC_NOT_FATAL, SN_TELL_TF_NO_ALGO, 200);
}

static const sn_rule rows[] = {
    {.id = "tf-limit-tiny",
     .cause = SNUG_CAUSE_OTHER_PROCESS,
     .weight = 0.85,
     .decisive = true,
     .any = {SN_TELL_TF_OOM_TENSOR, SN_TELL_TF_BFC_OOM, SN_TELL_TF_DST, SN_TELL_TF_BFC_STATS,
             SN_TELL_XLA_OOM},
     .when = tiny_limit,
     .evidence = {SN_TELL_TF_BFC_STATS, SN_TELL_TF_DEVICE, SN_TELL_TF_BFC_OOM, SN_TELL_TF_DST},
     .explanation = "TensorFlow takes nearly all of the card's free memory when it starts, and it "
                    "got only {limit_bytes}[[ of {gpu_total_bytes}]]: others hold the rest.[[ "
                    "Only {in_use_bytes} of that was in use when it failed.]]"},
    {.id = "tf-card-taken",
     .cause = SNUG_CAUSE_OTHER_PROCESS,
     .weight = 0.8,
     .decisive = true,
     .all = {SN_TELL_TF_DEVICE_FREE},
     .when = card_nearly_taken,
     .evidence = {SN_TELL_TF_DEVICE_FREE},
     .explanation =
         "Already when TensorFlow started only {gpu_free_bytes} of {gpu_total_bytes} was "
         "free: others hold the rest."},
    {.id = "tf-limit-round",
     .cause = SNUG_CAUSE_CAP,
     .weight = 0.5,
     .any = {SN_TELL_TF_OOM_TENSOR, SN_TELL_TF_BFC_OOM, SN_TELL_TF_DST, SN_TELL_TF_BFC_STATS},
     .when = round_tiny_limit,
     .evidence = {SN_TELL_TF_BFC_STATS},
     .explanation = "TensorFlow's pool is limited to {limit_bytes}, a round number: a cap that "
                    "somebody set."},
    {.id = "tf-cap-set",
     .cause = SNUG_CAUSE_CAP,
     .weight = 0.8,
     .decisive = true,
     .any = {SN_TELL_TF_MEMORY_LIMIT, SN_TELL_TF_FRACTION},
     .when = cap_was_set,
     .evidence = {SN_TELL_TF_MEMORY_LIMIT, SN_TELL_TF_FRACTION, SN_TELL_TF_BFC_STATS},
     .explanation = "The program limits itself to {limit_bytes} of a card of {gpu_total_bytes}; "
                    "that limit is what is full."},
    {.id = "tf-fraction-beyond-free",
     .cause = SNUG_CAUSE_CAP,
     .weight = 0.75,
     .decisive = true,
     .all = {SN_TELL_TF_FRACTION},
     .when = fraction_beyond_free,
     .evidence = {SN_TELL_TF_FRACTION, SN_TELL_TF_DEVICE_FREE},
     .explanation =
         "per_process_gpu_memory_fraction = {memory_fraction} asks for {memory_fraction} "
         "x {gpu_total_bytes}, but only {gpu_free_bytes} is free: the driver's context "
         "and the display have the difference. No data was on the card yet."},
    {.id = "tf-fraction-all",
     .cause = SNUG_CAUSE_CAP,
     .weight = 0.48,
     .all = {SN_TELL_TF_FRACTION},
     .when = fraction_nearly_all,
     .evidence = {SN_TELL_TF_FRACTION},
     .explanation = "A memory fraction of {memory_fraction} leaves nothing for cuDNN, cuBLAS and "
                    "the driver, which take their memory outside TensorFlow's pool."},
    {.id = "tf-greedy-pool",
     .cause = SNUG_CAUSE_CAP,
     .weight = 0.7,
     .decisive = true,
     .any = {SN_TELL_TF_CUDNN_ALLOC, SN_TELL_TF_CUDNN_INIT, SN_TELL_TF_CONV_ALGO, SN_TELL_TF_BLAS},
     .none = {SN_TELL_LIB_CUDNN, SN_TELL_LIB_DRIVER, SN_TELL_LIB_ARCH, SN_TELL_LIB_SYMBOL,
              SN_TELL_TF_OOM_TENSOR},
     .when = greedy_pool,
     .evidence = {SN_TELL_TF_DEVICE, SN_TELL_TF_CUDNN_ALLOC, SN_TELL_TF_CUDNN_INIT,
                  SN_TELL_TF_CONV_ALGO, SN_TELL_TF_BLAS},
     .explanation = "TensorFlow's pool took {limit_bytes} of the card's {gpu_total_bytes} at the "
                    "start; the GPU library, which needs memory outside the pool, found none. "
                    "There is no real shortage."},
    {.id = "tf-library-start",
     .cause = SNUG_CAUSE_CAP,
     .weight = 0.5,
     .any = {SN_TELL_TF_CUDNN_ALLOC, SN_TELL_TF_CUDNN_INIT, SN_TELL_TF_BLAS},
     .none = {SN_TELL_LIB_CUDNN, SN_TELL_LIB_DRIVER, SN_TELL_LIB_ARCH, SN_TELL_LIB_SYMBOL},
     .when = library_start,
     .evidence = {SN_TELL_TF_CUDNN_ALLOC, SN_TELL_TF_CUDNN_INIT, SN_TELL_TF_BLAS,
                  SN_TELL_TF_CONV_ALGO},
     .explanation = "A GPU library could not get its memory when it was first used[[ ({status})]]. "
                    "TensorFlow's pool takes nearly the whole card at the start and leaves the "
                    "library nothing; a card that others fill would look the same."},
    {.id = "tf-conv-algorithm",
     .cause = SNUG_CAUSE_CAP,
     .weight = 0.42,
     .all = {SN_TELL_TF_CONV_ALGO},
     .none = {SN_TELL_LIB_CUDNN, SN_TELL_LIB_DRIVER, SN_TELL_LIB_ARCH, SN_TELL_LIB_SYMBOL,
              SN_TELL_TF_CUDNN_ALLOC, SN_TELL_TF_CUDNN_INIT},
     .when = library_start,
     .evidence = {SN_TELL_TF_CONV_ALGO},
     .explanation = "cuDNN did not start. That line alone means a greedy pool, a full card or a "
                    "wrong library; the lines before it decide, and they are not in this text."},
    {.id = "tf-conv-algorithm-library",
     .cause = SNUG_CAUSE_LIBRARY,
     .weight = 0.28,
     .any = {SN_TELL_TF_CONV_ALGO, SN_TELL_TF_CUDNN_INIT},
     .none = {SN_TELL_LIB_CUDNN, SN_TELL_TF_CUDNN_ALLOC},
     .evidence = {SN_TELL_TF_CONV_ALGO, SN_TELL_TF_CUDNN_INIT},
     .explanation = "A cuDNN of another version than TensorFlow was built with gives the same "
                    "message."},
    {.id = "tf-library-start-other",
     .cause = SNUG_CAUSE_OTHER_PROCESS,
     .weight = 0.3,
     .any = {SN_TELL_TF_CUDNN_ALLOC, SN_TELL_TF_CUDNN_INIT, SN_TELL_TF_BLAS, SN_TELL_TF_CONV_ALGO},
     .none = {SN_TELL_LIB_CUDNN},
     .evidence = {SN_TELL_TF_CUDNN_ALLOC, SN_TELL_TF_CUDNN_INIT, SN_TELL_TF_BLAS},
     .explanation = "Another program may hold the card."},
    {.id = "tf-growth-too-late",
     .cause = SNUG_CAUSE_CAP,
     .weight = 0.5,
     .all = {SN_TELL_TF_MEMORY_SET},
     .evidence = {SN_TELL_TF_MEMORY_SET},
     .explanation = "Memory growth or a limit was set after the card had been used; TensorFlow "
                    "refuses that."},
    {.id = "tf-failed-alloc",
     .cause = SNUG_CAUSE_CAP,
     .weight = 0.35,
     .all = {SN_TELL_TF_FAILED_ALLOC},
     .none = {SN_TELL_TF_OOM_TENSOR, SN_TELL_TF_BFC_OOM},
     .when = failed_alloc,
     .evidence = {SN_TELL_TF_FAILED_ALLOC},
     .explanation = "The driver refused TensorFlow[[ {requested_bytes}]] on the card."},
    {.id = "tf-failed-alloc-other",
     .cause = SNUG_CAUSE_OTHER_PROCESS,
     .weight = 0.4,
     .all = {SN_TELL_TF_FAILED_ALLOC},
     .none = {SN_TELL_TF_OOM_TENSOR, SN_TELL_TF_BFC_OOM},
     .when = failed_alloc,
     .evidence = {SN_TELL_TF_FAILED_ALLOC},
     .explanation = "The driver refused TensorFlow[[ {requested_bytes}]] that it had counted as "
                    "free or as its share: another process probably holds it."},
    {.id = "tf-weight-known",
     .cause = SNUG_CAUSE_MODEL,
     .weight = 0.78,
     .decisive = true,
     .all = {SN_TELL_TF_OOM_TENSOR},
     .when = known_kernel,
     .evidence = {SN_TELL_TF_OOM_TENSOR},
     .explanation = "The tensor that failed, {tensor_shape}, is a weight: {known_layer}. It alone "
                    "takes {tensor_bytes}, its gradient as much again, and each optimizer slot "
                    "too. No batch is in it, so no batch size helps."},
    {.id = "tf-weight-large",
     .cause = SNUG_CAUSE_MODEL,
     .weight = 0.7,
     .decisive = true,
     .all = {SN_TELL_TF_OOM_TENSOR},
     .when = large_kernel,
     .evidence = {SN_TELL_TF_OOM_TENSOR, SN_TELL_TF_WEIGHT_OP},
     .explanation = "The tensor that failed, {tensor_shape}, has the shape of a weight "
                    "({tensor_bytes}): no batch is in it. Its gradient takes as much again, and "
                    "each optimizer slot too."},
    {.id = "tf-weight-small",
     .cause = SNUG_CAUSE_MODEL,
     .weight = 0.42,
     .all = {SN_TELL_TF_OOM_TENSOR},
     .when = small_kernel,
     .evidence = {SN_TELL_TF_OOM_TENSOR, SN_TELL_TF_WEIGHT_OP},
     .explanation =
         "The tensor that failed, {tensor_shape}, has the shape of a weight; it is small "
         "([[{tensor_bytes}]]), so what filled the memory came before it."},
    {.id = "tf-activations",
     .cause = SNUG_CAUSE_BATCH,
     .weight = 0.7,
     .decisive = true,
     .all = {SN_TELL_TF_OOM_TENSOR},
     .when = activations_fill,
     .evidence = {SN_TELL_TF_OOM_TENSOR, SN_TELL_TF_BFC_STATS, SN_TELL_TF_BFC_OOM},
     .explanation = "{in_use_bytes} in use + {tensor_bytes} for {tensor_shape} is more than the "
                    "{limit_bytes} that TensorFlow may use, and no single piece is most of it: a "
                    "step's activations, which grow with the batch of {batch}."},
    {.id = "tf-activation",
     .cause = SNUG_CAUSE_BATCH,
     .weight = 0.48,
     .all = {SN_TELL_TF_OOM_TENSOR},
     .when = activation,
     .evidence = {SN_TELL_TF_OOM_TENSOR, SN_TELL_SMI},
     .explanation = "The tensor that failed, {tensor_shape}, is an activation: its first dimension "
                    "is the batch.[[ It takes {tensor_bytes}, and a step keeps many like it.]][[ "
                    "The card has {gpu_total_bytes}, {gpu_used_bytes} in use.]]"},
    {.id = "tf-evaluation-set",
     .cause = SNUG_CAUSE_BATCH,
     .weight = 0.48,
     .all = {SN_TELL_TF_OOM_TENSOR},
     .when = evaluation_set,
     .evidence = {SN_TELL_TF_OOM_TENSOR},
     .explanation = "The first dimension of {tensor_shape} is no training batch: that many samples "
                    "at once are a whole test or training set in one step ({tensor_bytes} for this "
                    "tensor alone)."},
    {.id = "tf-set-shape",
     .cause = SNUG_CAUSE_DATASET,
     .weight = 0.4,
     .all = {SN_TELL_TF_OOM_TENSOR},
     .when = whole_set_shape,
     .evidence = {SN_TELL_TF_OOM_TENSOR},
     .explanation = "The first dimension of {tensor_shape} is that of a whole data set."},
    {.id = "tf-no-tensor",
     .cause = SNUG_CAUSE_BATCH,
     .weight = 0.42,
     .when = no_tensor,
     .evidence = {SN_TELL_TF_BFC_OOM, SN_TELL_TF_CHUNKS},
     .explanation = "TensorFlow's pool is full[[: {in_use_bytes} in use of {limit_bytes}]][[; "
                    "{requested_bytes} asked for]]. The text names no tensor; a step's activations "
                    "are the most frequent reason.[[ The largest piece in the list has "
                    "{biggest_chunk_bytes}.]][[ The card has {gpu_total_bytes}.]]"},
    {.id = "tf-one-huge-chunk",
     .cause = SNUG_CAUSE_DATASET,
     .weight = 0.85,
     .decisive = true,
     .any = {SN_TELL_TF_EAGER_CONST, SN_TELL_TF_DST, SN_TELL_TF_CONVERT},
     .when = one_huge_chunk,
     .evidence = {SN_TELL_TF_CHUNKS, SN_TELL_TF_EAGER_CONST, SN_TELL_TF_DST, SN_TELL_TF_CONVERT},
     .explanation = "One single piece of {biggest_chunk_bytes} is most of [[the {limit_bytes} of "
                    "]]the pool, and a constant was being copied to the device: the whole data set "
                    "is one tensor."},
    {.id = "tf-constant-request",
     .cause = SNUG_CAUSE_DATASET,
     .weight = 0.8,
     .decisive = true,
     .any = {SN_TELL_TF_EAGER_CONST, SN_TELL_TF_CONVERT, SN_TELL_TF_DST},
     .all = {SN_TELL_TF_BFC_OOM},
     .when = huge_constant_request,
     .evidence = {SN_TELL_TF_BFC_OOM, SN_TELL_TF_EAGER_CONST, SN_TELL_TF_DST, SN_TELL_TF_CONVERT},
     .explanation = "{requested_bytes} were asked for at once to turn an array into one tensor[[, "
                    "of {limit_bytes} in all]]: the whole data set is one constant."},
    {.id = "tf-constant",
     .cause = SNUG_CAUSE_DATASET,
     .weight = 0.46,
     .any = {SN_TELL_TF_EAGER_CONST, SN_TELL_TF_DST},
     .when = constant_alone,
     .evidence = {SN_TELL_TF_EAGER_CONST, SN_TELL_TF_DST},
     .explanation = "A copy from the host to the device found no room: most often an array that "
                    "holds a whole data set, turned into one tensor."},
    {.id = "tf-constant-other",
     .cause = SNUG_CAUSE_OTHER_PROCESS,
     .weight = 0.38,
     .all = {SN_TELL_TF_DST},
     .when = constant_alone,
     .evidence = {SN_TELL_TF_DST},
     .explanation = "\"Dst tensor is not initialized\" means only that the device had no room; "
                    "another process may hold it."},
    {.id = "tf-convert",
     .cause = SNUG_CAUSE_DATASET,
     .weight = 0.45,
     .all = {SN_TELL_TF_CONVERT},
     .any = {SN_TELL_TF_OOM_TENSOR, SN_TELL_TF_BFC_OOM, SN_TELL_XLA_OOM},
     .when = not_tiny,
     .evidence = {SN_TELL_TF_CONVERT, SN_TELL_TF_BFC_OOM},
     .explanation = "The traceback goes through a conversion of an array to one tensor."},
    {.id = "tf-pool-fragmented",
     .cause = SNUG_CAUSE_FRAGMENTATION,
     .weight = 0.75,
     .decisive = true,
     .any = {SN_TELL_TF_BFC_STATS},
     .when = pool_fragmented,
     .evidence = {SN_TELL_TF_BFC_STATS, SN_TELL_TF_BFC_OOM},
     .explanation =
         "{limit_bytes} in the pool, {in_use_bytes} in use: what is free is more than "
         "the {requested_bytes} asked for, but no free piece is large enough[[ (the largest has "
         "{largest_free_chunk_bytes})]]."},
    {.id = "tf-many-models",
     .cause = SNUG_CAUSE_LEAK_GRAPH,
     .weight = 0.72,
     .decisive = true,
     .all = {SN_TELL_TF_MANY_MODELS},
     .when = many_models,
     .evidence = {SN_TELL_TF_MANY_MODELS, SN_TELL_TF_OOM_TENSOR},
     .explanation = "Keras numbers the models of a process, and the name of the failing layer "
                    "([[{node}]]) shows that dozens were made before: their graphs and weights are "
                    "still alive."},
    {.id = "tf-same-weights",
     .cause = SNUG_CAUSE_LEAK_GRAPH,
     .weight = 0.62,
     .decisive = true,
     .all = {SN_TELL_TF_OOM_TENSOR, SN_TELL_FRAME_BUILD},
     .when = same_weights,
     .evidence = {SN_TELL_FRAME_BUILD, SN_TELL_TF_CHUNKS, SN_TELL_TF_OOM_TENSOR},
     .explanation = "A weight of a new model, {tensor_shape} ({tensor_bytes}), found no room: "
                    "{same_chunks} pieces of just that size are alive already, one for each model "
                    "that was made before."},
    {.id = "tf-weights-on-full-card",
     .cause = SNUG_CAUSE_LEAK_GRAPH,
     .weight = 0.48,
     .all = {SN_TELL_TF_OOM_TENSOR, SN_TELL_FRAME_BUILD},
     .when = weights_on_full_card,
     .evidence = {SN_TELL_FRAME_BUILD, SN_TELL_TF_OOM_TENSOR},
     .explanation = "A small weight of a new model found no room in a pool that is full after "
                    "{num_allocs} allocations: what was made before is still alive."},
    {.id = "tf-first-request",
     .cause = SNUG_CAUSE_DATASET,
     .weight = 0.65,
     .decisive = true,
     .all = {SN_TELL_TF_BFC_OOM},
     .when = first_request,
     .evidence = {SN_TELL_TF_BFC_OOM, SN_TELL_TF_BFC_STATS},
     .explanation = "The first thing that was put on the device, {requested_bytes} in one piece, "
                    "did not fit into {limit_bytes}, and no operation had asked for it: an array "
                    "was copied as a whole."},
    {.id = "tf-retracing",
     .cause = SNUG_CAUSE_LEAK_GRAPH,
     .weight = 0.46,
     .all = {SN_TELL_TF_RETRACING},
     .when = oom_after_retracing,
     .evidence = {SN_TELL_TF_RETRACING},
     .explanation = "tf.function is traced again and again; each trace keeps a graph alive."},
    {.id = "tf-retracing-killed",
     .cause = SNUG_CAUSE_LEAK_GRAPH,
     .weight = 0.49,
     .all = {SN_TELL_TF_RETRACING},
     .when = killed_after_retracing,
     .evidence = {SN_TELL_TF_RETRACING, SN_TELL_KILLED, SN_TELL_EXIT_137},
     .explanation = "tf.function is traced again and again, each trace keeps a graph alive in the "
                    "host's memory, and the process was killed for it."},
    {.id = "tf-one-image",
     .cause = SNUG_CAUSE_HOST_LOADER,
     .weight = 0.5,
     .all = {SN_TELL_TF_OOM_TENSOR},
     .when = one_image,
     .evidence = {SN_TELL_TF_OOM_TENSOR},
     .explanation =
         "The tensor that failed, {tensor_shape}, is one decoded image ({tensor_bytes}): "
         "the input pipeline and its queues filled the memory."},
    {.id = "xla-parameters",
     .cause = SNUG_CAUSE_MODEL,
     .weight = 0.75,
     .decisive = true,
     .all = {SN_TELL_XLA_BUFFERS},
     .when = xla_parameters,
     .evidence = {SN_TELL_XLA_OOM, SN_TELL_XLA_BUFFERS},
     .explanation = "Of what XLA's program needs, {xla_parameters_bytes} are parameters (weights "
                    "and optimizer state)[[ and only {xla_temp_bytes} temporary]]."},
    {.id = "xla-constants",
     .cause = SNUG_CAUSE_DATASET,
     .weight = 0.8,
     .decisive = true,
     .all = {SN_TELL_XLA_BUFFERS},
     .when = xla_constants,
     .evidence = {SN_TELL_XLA_OOM, SN_TELL_XLA_BUFFERS},
     .explanation = "Of what XLA's program needs, {xla_constants_bytes} are constants: data that "
                    "was captured by the function instead of being passed to it."},
    {.id = "xla-temporaries",
     .cause = SNUG_CAUSE_BATCH,
     .weight = 0.72,
     .decisive = true,
     .all = {SN_TELL_XLA_BUFFERS},
     .when = xla_temp,
     .evidence = {SN_TELL_XLA_OOM, SN_TELL_XLA_BUFFERS},
     .explanation = "Of what XLA's program needs, {xla_temp_bytes} are temporaries (activations) "
                    "and {xla_parameters_bytes} parameters: it grows with the batch."},
    {.id = "xla-plain",
     .cause = SNUG_CAUSE_BATCH,
     .weight = 0.45,
     .all = {SN_TELL_XLA_OOM},
     .none = {SN_TELL_TF_NO_ALGO},
     .when = xla_plain,
     .evidence = {SN_TELL_XLA_OOM},
     .explanation = "A compiled (XLA) step asked for {requested_bytes} at once: that is all its "
                    "activations and scratch together. XLA names no layer and no shape."},
    {.id = "tf-scratch-refused",
     .cause = SNUG_CAUSE_WORKSPACE,
     .weight = 0.7,
     .decisive = true,
     .all = {SN_TELL_TF_BFC_NOT_FATAL, SN_TELL_TF_NO_ALGO},
     .when = scratch_refused,
     .evidence = {SN_TELL_TF_BFC_NOT_FATAL, SN_TELL_TF_NO_ALGO},
     .explanation = "Convolutions were refused their scratch memory, usually no failure, but here "
                    "no algorithm that needs less was left."},
    {.id = "tf-no-algorithm",
     .cause = SNUG_CAUSE_WORKSPACE,
     .weight = 0.45,
     .all = {SN_TELL_TF_NO_ALGO},
     .none = {SN_TELL_LIB_CUDNN},
     .evidence = {SN_TELL_TF_NO_ALGO},
     .explanation = "No convolution algorithm worked: usually none whose scratch memory fits into "
                    "what is left."},
    {.id = "tf-pinned-host",
     .cause = SNUG_CAUSE_HOST_LOADER,
     .weight = 0.6,
     .decisive = true,
     .all = {SN_TELL_TF_HOST_ALLOC},
     .when = pinned_host,
     .evidence = {SN_TELL_TF_HOST_ALLOC},
     .explanation = "The message speaks of CUDA, but the memory that was refused is the host's: "
                    "[[{requested_bytes} of ]]pinned RAM for copies."},
    {.id = "graphdef",
     .cause = SNUG_CAUSE_GRAPHDEF,
     .weight = 0.92,
     .decisive = true,
     .all = {SN_TELL_GRAPHDEF},
     .evidence = {SN_TELL_GRAPHDEF},
     .explanation = "A graph or model is written as one protobuf message, and such a message may "
                    "not exceed 2 GiB ({proto_limit_bytes})[[; this one has {proto_bytes}]]. "
                    "Somewhere a large array is a constant in it."},
};

const sn_rule *sn_rules_tensorflow(size_t *n)
{
    *n = SN_LEN(rows);
    return rows;
}
