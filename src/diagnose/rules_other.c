/* SPDX-License-Identifier: Apache-2.0
 *
 * Libraries of the wrong version, darknet, OpenCL, other frameworks, and what nvidia-smi shows.
 */
#include "diagnose/rules.h"

#include <string.h>

/* Compute processes on the card besides one: whoever made the log is probably gone from the table.
 */
static bool smi_holders(const snug_diagnosis *d)
{
    uint64_t total = sn_fv(d, SN_FACT_GPU_TOTAL), held = 0;
    for (size_t i = 0; i < d->holders.n; i++)
        if (d->holders.at[i].bytes != UINT64_MAX)
            held += d->holders.at[i].bytes;
    return held >= SN_GIB / 2 && (!total || held >= total / 3) && sn_is_device_oom(d) &&
           !sn_card_is_ours(d);
}

static bool vllm_taken(const snug_diagnosis *d)
{
    return sn_fact_has(d, SN_FACT_FREE) && sn_fact_has(d, SN_FACT_TOTAL) &&
           sn_fv(d, SN_FACT_FREE) < sn_fv(d, SN_FACT_TOTAL) / 100 * 70;
}

static bool symbol_fatal(const snug_diagnosis *d)
{
    return !sn_went_on_after(d, SN_TELL_LIB_SYMBOL);
}

static bool missing_and_failed(const snug_diagnosis *d)
{
    return sn_tell_count(d, SN_TELL_TF_CONV_ALGO) || sn_tell_count(d, SN_TELL_TF_CUDNN_INIT) ||
           sn_tells_near(d, SN_TELL_TRACEBACK, SN_TELL_LIB_MISSING, 40);
}

static bool cudnn_missing(const snug_diagnosis *d)
{
    const char *library = sn_fact_text(d, SN_FACT_LIBRARY);
    return library && strstr(library, "cudnn") &&
           (sn_tell_count(d, SN_TELL_TF_CONV_ALGO) || sn_tell_count(d, SN_TELL_TF_CUDNN_INIT));
}

static bool other_capped(const snug_diagnosis *d)
{
    return sn_fact_has(d, SN_FACT_ALLOWED) && sn_fv(d, SN_FACT_ALLOWED) > 0;
}

static bool buffer_size(const snug_diagnosis *d)
{
    const char *status = sn_fact_text(d, SN_FACT_STATUS);
    return status && !strcmp(status, "CL_INVALID_BUFFER_SIZE");
}

static bool not_buffer_size(const snug_diagnosis *d)
{
    return !buffer_size(d);
}

static const sn_rule rows[] = {
    {.id = "library-cudnn",
     .cause = SNUG_CAUSE_LIBRARY,
     .weight = 0.92,
     .decisive = true,
     .all = {SN_TELL_LIB_CUDNN},
     .evidence = {SN_TELL_LIB_CUDNN, SN_TELL_TF_CONV_ALGO},
     .explanation = "[[cuDNN {cudnn_loaded} was loaded, but the framework was built with "
                    "{cudnn_built}. ]]It looks like missing memory and is a library of the wrong "
                    "version."},
    {.id = "library-driver",
     .cause = SNUG_CAUSE_LIBRARY,
     .weight = 0.87,
     .decisive = true,
     .all = {SN_TELL_LIB_DRIVER},
     .evidence = {SN_TELL_LIB_DRIVER},
     .explanation = "The NVIDIA driver is older than the CUDA runtime of the framework needs."},
    {.id = "library-arch",
     .cause = SNUG_CAUSE_LIBRARY,
     .weight = 0.87,
     .decisive = true,
     .all = {SN_TELL_LIB_ARCH},
     .evidence = {SN_TELL_LIB_ARCH},
     .explanation = "The framework's build has no code for this card[[ ({gpu_name})]][[, compute "
                    "capability {compute_capability}]]. It is no lack of memory."},
    {.id = "library-symbol",
     .cause = SNUG_CAUSE_LIBRARY,
     .weight = 0.75,
     .decisive = true,
     .all = {SN_TELL_LIB_SYMBOL},
     .when = symbol_fatal,
     .evidence = {SN_TELL_LIB_SYMBOL},
     .explanation = "The loader found a GPU library of another version[[: {library}]]."},
    {.id = "library-missing",
     .cause = SNUG_CAUSE_LIBRARY,
     .weight = 0.48,
     .all = {SN_TELL_LIB_MISSING},
     .when = missing_and_failed,
     .evidence = {SN_TELL_LIB_MISSING},
     .explanation = "A GPU library was not found[[: {library}]]."},
    {.id = "library-cudnn-missing",
     .cause = SNUG_CAUSE_LIBRARY,
     .weight = 0.6,
     .decisive = true,
     .all = {SN_TELL_LIB_MISSING},
     .when = cudnn_missing,
     .evidence = {SN_TELL_LIB_MISSING, SN_TELL_TF_CUDNN_INIT},
     .explanation = "cuDNN could not be started, and {library} was not found before that."},
    {.id = "smi-holders",
     .cause = SNUG_CAUSE_OTHER_PROCESS,
     .weight = 0.5,
     .all = {SN_TELL_SMI_HOLDER},
     .when = smi_holders,
     .evidence = {SN_TELL_SMI_HOLDER, SN_TELL_SMI},
     .explanation = "nvidia-smi lists processes that hold much of the card[[ ({gpu_used_bytes} of "
                    "{gpu_total_bytes} used)]]. The process that failed is gone by the time such a "
                    "table is made, so these are others, unless it was made before."},
    {.id = "share-not-free",
     .cause = SNUG_CAUSE_OTHER_PROCESS,
     .weight = 0.75,
     .decisive = true,
     .all = {SN_TELL_VLLM_FREE},
     .when = vllm_taken,
     .evidence = {SN_TELL_VLLM_FREE},
     .explanation = "When the program started only {free_bytes} of {total_bytes} was free: others "
                    "hold the rest."},
    {.id = "no-context",
     .cause = SNUG_CAUSE_OTHER_PROCESS,
     .weight = 0.7,
     .decisive = true,
     .all = {SN_TELL_TF_NO_CONTEXT},
     .evidence = {SN_TELL_TF_NO_CONTEXT},
     .explanation =
         "The card[[ of {gpu_total_bytes}]] had no room even for a driver context, which "
         "is the first thing that a program takes: others hold all of it."},
    {.id = "device-busy",
     .cause = SNUG_CAUSE_OTHER_PROCESS,
     .weight = 0.48,
     .all = {SN_TELL_DEVICE_BUSY},
     .evidence = {SN_TELL_DEVICE_BUSY},
     .explanation = "The card does not take another program: one that holds it exclusively, or one "
                    "that was not ended properly, is on it."},
    {.id = "darknet",
     .cause = SNUG_CAUSE_BATCH,
     .weight = 0.5,
     .all = {SN_TELL_DARKNET_OOM},
     .evidence = {SN_TELL_DARKNET_OOM, SN_TELL_DARKNET_LAYER},
     .explanation = "darknet allocates every layer for batch / subdivisions images when it reads "
                    "the network[[; the input is {input}]][[, layer {failing_layer} did not "
                    "fit]][[, subdivisions is {subdivisions}: the whole batch is on the card at "
                    "once]]."},
    {.id = "other-framework",
     .cause = SNUG_CAUSE_BATCH,
     .weight = 0.45,
     .all = {SN_TELL_OTHER_OOM},
     .none = {SN_TELL_TORCH_OOM},
     .evidence = {SN_TELL_OTHER_OOM},
     .explanation = "The card was full[[ when {requested_bytes} were asked for]][[, with "
                    "{allocated_bytes} allocated by this process]]. One step's activations are the "
                    "most frequent reason."},
    {.id = "other-framework-cap",
     .cause = SNUG_CAUSE_CAP,
     .weight = 0.48,
     .all = {SN_TELL_OTHER_OOM},
     .when = other_capped,
     .evidence = {SN_TELL_OTHER_OOM},
     .explanation = "The program limits itself to {allowed_bytes}[[; {allocated_bytes} are "
                    "allocated]]."},
    {.id = "opencl-buffer",
     .cause = SNUG_CAUSE_CAP,
     .weight = 0.48,
     .all = {SN_TELL_OPENCL_OOM},
     .when = buffer_size,
     .evidence = {SN_TELL_OPENCL_OOM},
     .explanation = "One OpenCL buffer is larger than the device allows (often a quarter of its "
                    "memory), whatever is free."},
    {.id = "opencl",
     .cause = SNUG_CAUSE_BATCH,
     .weight = 0.4,
     .all = {SN_TELL_OPENCL_OOM},
     .when = not_buffer_size,
     .evidence = {SN_TELL_OPENCL_OOM},
     .explanation = "The OpenCL device had no memory left ({status})."},
};

const sn_rule *sn_rules_other(size_t *n)
{
    *n = SN_LEN(rows);
    return rows;
}
