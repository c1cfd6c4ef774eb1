/* SPDX-License-Identifier: Apache-2.0
 *
 * PyTorch. Its message has the numbers that tell a full card from a foreign holder, fragmentation
 * and a cap; which of batch, model and leak filled a card that is ours, only the frames can say.
 */
#include "diagnose/rules.h"

static bool elsewhere(const snug_diagnosis *d, uint64_t at_least)
{
    return sn_fact_has(d, SN_FACT_HELD_ELSEWHERE) && sn_fact_has(d, SN_FACT_TOTAL) &&
           sn_fv(d, SN_FACT_HELD_ELSEWHERE) >= at_least &&
           !sn_fact_has(d, SN_FACT_FREE_GT_REQUESTED) &&
           !sn_fact_has(d, SN_FACT_REQUESTED_GT_TOTAL);
}

static bool elsewhere_computed(const snug_diagnosis *d)
{
    return !sn_fact_has(d, SN_FACT_OTHER_PROCESSES) && elsewhere(d, sn_elsewhere_threshold(d)) &&
           !sn_is_fragmented(d, 35);
}

/* The others' share is what is missing, and is no mere context or display. */
static bool elsewhere_named(const snug_diagnosis *d)
{
    uint64_t room;
    bool own = sn_fact_has(d, SN_FACT_OWN_PROCESS) || sn_fact_has(d, SN_FACT_ALLOCATED);
    return sn_fact_has(d, SN_FACT_OTHER_PROCESSES) && own &&
           elsewhere(d, SN_MAX(sn_fv(d, SN_FACT_TOTAL) / 8, SN_GIB / 2)) &&
           !sn_add_u64(&room, sn_fv(d, SN_FACT_FREE), sn_fv(d, SN_FACT_HELD_ELSEWHERE)) &&
           sn_fv(d, SN_FACT_REQUESTED) <= room && !sn_is_fragmented(d, 35);
}

static bool elsewhere_some(const snug_diagnosis *d)
{
    return elsewhere(d, sn_elsewhere_threshold(d) / 2) && !elsewhere_computed(d) &&
           !elsewhere_named(d);
}

static bool fragmented(const snug_diagnosis *d)
{
    return sn_is_fragmented(d, 35) && !elsewhere_named(d);
}

static bool fragmented_some(const snug_diagnosis *d)
{
    return sn_is_fragmented(d, 20) && !sn_is_fragmented(d, 35);
}

static bool beyond_card(const snug_diagnosis *d)
{
    return sn_fact_has(d, SN_FACT_REQUESTED_GT_TOTAL);
}

static bool beyond_card_conv(const snug_diagnosis *d)
{
    return beyond_card(d) && sn_frame_of_oom(d, SN_TELL_FRAME_CONV);
}

static bool allowed_cap(const snug_diagnosis *d)
{
    return sn_fact_has(d, SN_FACT_ALLOWED) && sn_fact_has(d, SN_FACT_FREE_GT_REQUESTED) &&
           sn_fv(d, SN_FACT_ALLOWED) < sn_fv(d, SN_FACT_TOTAL);
}

static bool fraction_cap(const snug_diagnosis *d)
{
    return sn_fact_has(d, SN_FACT_FREE_GT_REQUESTED) && !allowed_cap(d);
}

/* All that this process does not hold is free, and still the request failed. */
static bool free_much(const snug_diagnosis *d)
{
    return sn_fact_has(d, SN_FACT_FREE_GT_REQUESTED) && !allowed_cap(d) &&
           sn_fv(d, SN_FACT_FREE) / 4 >= sn_fv(d, SN_FACT_REQUESTED) &&
           sn_fv(d, SN_FACT_FREE) >= sn_fv(d, SN_FACT_TOTAL) / 100 * 80;
}

static bool free_some(const snug_diagnosis *d)
{
    return sn_fact_has(d, SN_FACT_FREE_GT_REQUESTED) && !allowed_cap(d) && !free_much(d) &&
           !sn_tell_count(d, SN_TELL_TF_FRACTION);
}

static bool plainly_full(const snug_diagnosis *d)
{
    return sn_card_is_plainly_full(d);
}

static bool kept_elsewhere(const snug_diagnosis *d) /* frames that point to another cause */
{
    return sn_frame_of_oom(d, SN_TELL_FRAME_VALIDATE) ||
           sn_frame_of_oom(d, SN_TELL_FRAME_TO_DEVICE) ||
           sn_frame_of_oom(d, SN_TELL_FRAME_OPTIMIZER) ||
           sn_frame_of_oom(d, SN_TELL_FRAME_DATA_TO_DEVICE) ||
           sn_frame_of_oom(d, SN_TELL_FRAME_LIST_KEPT) || sn_series_growing(d);
}

static bool full_at_first_step(const snug_diagnosis *d)
{
    return sn_card_is_plainly_full(d) && !kept_elsewhere(d) &&
           !sn_tell_count(d, SN_TELL_PROGRESS_BACK) && sn_frame_of_oom(d, SN_TELL_FIRST_STEP) &&
           (sn_frame_of_oom(d, SN_TELL_FRAME_FORWARD) ||
            sn_frame_of_oom(d, SN_TELL_FRAME_BACKWARD) || sn_frame_of_oom(d, SN_TELL_FRAME_CONV)) &&
           sn_fv(d, SN_FACT_BATCH) != 1;
}

static bool full_batch_one(const snug_diagnosis *d)
{
    return sn_card_is_plainly_full(d) && sn_fact_has(d, SN_FACT_BATCH) &&
           sn_fv(d, SN_FACT_BATCH) == 1;
}

static bool full_to_device(const snug_diagnosis *d)
{
    return sn_card_is_plainly_full(d) && sn_frame_of_oom(d, SN_TELL_FRAME_TO_DEVICE) &&
           !sn_frame_of_oom(d, SN_TELL_FRAME_DATA_TO_DEVICE) &&
           !sn_frame_of_oom(d, SN_TELL_FRAME_FORWARD) &&
           !sn_frame_of_oom(d, SN_TELL_FRAME_BACKWARD) && !sn_tell_count(d, SN_TELL_PROGRESS_BACK);
}

static bool bare_to_device(const snug_diagnosis *d)
{
    return sn_frame_of_oom(d, SN_TELL_FRAME_TO_DEVICE) &&
           !sn_frame_of_oom(d, SN_TELL_FRAME_FORWARD);
}

static bool full_optimizer(const snug_diagnosis *d)
{
    return sn_card_is_plainly_full(d) && sn_frame_of_oom(d, SN_TELL_FRAME_OPTIMIZER) &&
           !sn_frame_of_oom(d, SN_TELL_FRAME_BACKWARD) &&
           !sn_frame_of_oom(d, SN_TELL_FRAME_FORWARD);
}

static bool data_to_device(const snug_diagnosis *d)
{
    uint64_t q = sn_fv(d, SN_FACT_REQUESTED);
    return sn_frame_of_oom(d, SN_TELL_FRAME_DATA_TO_DEVICE) && q >= SN_GIB / 2 &&
           q >= sn_fv(d, SN_FACT_TOTAL) / 10 && !elsewhere_computed(d) && !elsewhere_named(d);
}

static bool data_to_device_some(const snug_diagnosis *d)
{
    return sn_frame_of_oom(d, SN_TELL_FRAME_DATA_TO_DEVICE) && !data_to_device(d);
}

/* Nothing is on the card yet, and one tensor of it asks for more than any weight has. */
static bool first_request(const snug_diagnosis *d)
{
    return sn_fact_has(d, SN_FACT_ALLOCATED) && sn_fv(d, SN_FACT_ALLOCATED) < SN_MIB &&
           sn_fv(d, SN_FACT_REQUESTED) >= SN_GIB && !data_to_device(d) && !elsewhere_computed(d) &&
           !elsewhere_named(d);
}

static bool validate_full(const snug_diagnosis *d)
{
    return sn_card_is_plainly_full(d) && sn_frame_of_oom(d, SN_TELL_FRAME_VALIDATE) &&
           !sn_frame_of_oom(d, SN_TELL_FRAME_BACKWARD) && !sn_series_growing(d);
}

static bool validate_bare(const snug_diagnosis *d)
{
    return sn_frame_of_oom(d, SN_TELL_FRAME_VALIDATE);
}

static bool graph_kept(const snug_diagnosis *d)
{
    return sn_frame_of_oom(d, SN_TELL_FRAME_GRAPH_KEPT) && !elsewhere_computed(d);
}

static bool list_kept(const snug_diagnosis *d)
{
    return sn_card_is_plainly_full(d) && sn_frame_of_oom(d, SN_TELL_FRAME_LIST_KEPT) &&
           sn_fv(d, SN_FACT_LAST_STEP) >= 10;
}

static bool list_kept_some(const snug_diagnosis *d)
{
    return sn_frame_of_oom(d, SN_TELL_FRAME_LIST_KEPT) && !list_kept(d);
}

static bool full_late(const snug_diagnosis *d)
{
    return sn_card_is_plainly_full(d) && sn_fv(d, SN_FACT_LAST_STEP) >= 50;
}

static bool conv_quarter(const snug_diagnosis *d)
{
    return sn_frame_of_oom(d, SN_TELL_FRAME_CONV) && !beyond_card(d) &&
           sn_fv(d, SN_FACT_REQUESTED) >= sn_fv(d, SN_FACT_TOTAL) / 100 * 30 &&
           sn_fact_has(d, SN_FACT_TOTAL) && !elsewhere_computed(d) && !elsewhere_named(d);
}

static bool mps_full(const snug_diagnosis *d)
{
    return sn_fv(d, SN_FACT_OTHER_PROCESSES) < sn_fv(d, SN_FACT_ALLOCATED);
}

static bool mps_others(const snug_diagnosis *d)
{
    return sn_fact_has(d, SN_FACT_OTHER_PROCESSES) && !mps_full(d);
}

#define SUM                                                                                        \
    "{total_bytes} total - {free_bytes} free - {reserved_bytes} reserved by this process = "       \
    "{held_elsewhere_bytes} held by others"

static const sn_rule rows[] = {
    {.id = "torch-elsewhere",
     .cause = SNUG_CAUSE_OTHER_PROCESS,
     .weight = 0.85,
     .decisive = true,
     .all = {SN_TELL_TORCH_OOM},
     .when = elsewhere_computed,
     .evidence = {SN_TELL_TORCH_OOM},
     .explanation = "[[" SUM ". ]]Another program holds {held_elsewhere_bytes} of the card; this "
                    "process has too little left, and asked for only {requested_bytes}."},
    {.id = "torch-elsewhere-named",
     .cause = SNUG_CAUSE_OTHER_PROCESS,
     .weight = 0.9,
     .decisive = true,
     .all = {SN_TELL_TORCH_OOM},
     .when = elsewhere_named,
     .evidence = {SN_TELL_TORCH_OOM, SN_TELL_SMI_HOLDER},
     .explanation = "PyTorch names other processes with {held_elsewhere_bytes} of the card's "
                    "{total_bytes}[[ (the largest is process {other_pid})]]; {free_bytes} is free "
                    "and {requested_bytes} was asked for. Without them it would have fitted."},
    {.id = "torch-elsewhere-some",
     .cause = SNUG_CAUSE_OTHER_PROCESS,
     .weight = 0.35,
     .all = {SN_TELL_TORCH_OOM},
     .when = elsewhere_some,
     .evidence = {SN_TELL_TORCH_OOM},
     .explanation = SUM ": more than the driver's own context usually takes."},
    {.id = "torch-fragmented",
     .cause = SNUG_CAUSE_FRAGMENTATION,
     .weight = 0.85,
     .decisive = true,
     .all = {SN_TELL_TORCH_OOM},
     .when = fragmented,
     .evidence = {SN_TELL_TORCH_OOM, SN_TELL_TORCH_SEGMENTS},
     .explanation =
         "{reserved_bytes} reserved - {allocated_bytes} allocated = {reserved_unallocated_bytes} "
         "that PyTorch holds but nobody uses. That is more than the {requested_bytes} asked for, "
         "but it lies in pieces of which none is large enough."},
    {.id = "torch-fragmented-some",
     .cause = SNUG_CAUSE_FRAGMENTATION,
     .weight = 0.4,
     .all = {SN_TELL_TORCH_OOM},
     .when = fragmented_some,
     .evidence = {SN_TELL_TORCH_OOM},
     .explanation =
         "{reserved_bytes} reserved - {allocated_bytes} allocated = {reserved_unallocated_bytes} "
         "held in pieces; {requested_bytes} was asked for."},
    {.id = "torch-beyond-card-conv",
     .cause = SNUG_CAUSE_WORKSPACE,
     .weight = 0.7,
     .decisive = true,
     .all = {SN_TELL_TORCH_OOM},
     .when = beyond_card_conv,
     .evidence = {SN_TELL_TORCH_OOM, SN_TELL_FRAME_CONV},
     .explanation = "One request of {requested_bytes} is larger than the whole card "
                    "({total_bytes}), and it came from a convolution: that is the scratch memory "
                    "of the algorithm that cuDNN chose, not a tensor."},
    {.id = "torch-beyond-card",
     .cause = SNUG_CAUSE_WORKSPACE,
     .weight = 0.5,
     .all = {SN_TELL_TORCH_OOM},
     .when = beyond_card,
     .evidence = {SN_TELL_TORCH_OOM},
     .explanation = "One request of {requested_bytes} is larger than the whole card "
                    "({total_bytes})[[ while only {allocated_bytes} is in use]]: a scratch buffer "
                    "or a shape that is not what it should be, not one more tensor of the model."},
    {.id = "torch-conv-scratch",
     .cause = SNUG_CAUSE_WORKSPACE,
     .weight = 0.45,
     .all = {SN_TELL_TORCH_OOM},
     .when = conv_quarter,
     .evidence = {SN_TELL_TORCH_OOM, SN_TELL_FRAME_CONV},
     .explanation = "A convolution asked for {requested_bytes} at once: probably its scratch "
                    "memory."},
    {.id = "torch-no-engine",
     .cause = SNUG_CAUSE_WORKSPACE,
     .weight = 0.5,
     .all = {SN_TELL_TORCH_NO_ENGINE},
     .evidence = {SN_TELL_TORCH_NO_ENGINE},
     .explanation = "cuDNN found no convolution algorithm whose scratch memory fits into what is "
                    "free on the card."},
    {.id = "torch-allowed",
     .cause = SNUG_CAUSE_CAP,
     .weight = 0.85,
     .decisive = true,
     .all = {SN_TELL_TORCH_OOM, SN_TELL_TORCH_ALLOWED},
     .when = allowed_cap,
     .evidence = {SN_TELL_TORCH_OOM},
     .explanation = "{free_bytes} of {total_bytes} is free and only {requested_bytes} was asked "
                    "for, but this process may use no more than {allowed_bytes}: "
                    "set_per_process_memory_fraction is a cap, and the cap is what is full."},
    {.id = "torch-fraction",
     .cause = SNUG_CAUSE_CAP,
     .weight = 0.8,
     .decisive = true,
     .all = {SN_TELL_TORCH_OOM, SN_TELL_TF_FRACTION},
     .when = fraction_cap,
     .evidence = {SN_TELL_TORCH_OOM, SN_TELL_TF_FRACTION},
     .explanation = "{free_bytes} is free, more than the {requested_bytes} asked for, and the "
                    "program sets a memory fraction: its own cap is full, not the card."},
    {.id = "torch-free-much",
     .cause = SNUG_CAUSE_CAP,
     .weight = 0.5,
     .all = {SN_TELL_TORCH_OOM},
     .when = free_much,
     .evidence = {SN_TELL_TORCH_OOM},
     .explanation =
         "{free_bytes} of {total_bytes} is free, yet {requested_bytes} was refused: no real "
         "shortage. A cap set by the program, a limit of the machine (a slice of a card, a full "
         "page file or full RAM behind the driver), or the numbers of another card."},
    {.id = "torch-free-some-cap",
     .cause = SNUG_CAUSE_CAP,
     .weight = 0.3,
     .all = {SN_TELL_TORCH_OOM},
     .when = free_some,
     .evidence = {SN_TELL_TORCH_OOM},
     .explanation = "{free_bytes} is free, more than the {requested_bytes} asked for: a cap could "
                    "explain it."},
    {.id = "torch-contradiction",
     .cause = SNUG_CAUSE_UNKNOWN,
     .weight = 0.45,
     .all = {SN_TELL_TORCH_OOM},
     .when = free_some,
     .evidence = {SN_TELL_TORCH_OOM},
     .explanation =
         "The numbers contradict the message: {requested_bytes} was refused while {free_bytes} is "
         "free.[[ {total_bytes} total - {free_bytes} free - {reserved_bytes} of this process "
         "leaves "
         "{held_elsewhere_bytes} unaccounted for.]] A cap, another card's numbers, or full host "
         "memory behind the driver can each do that; this text does not decide."},
    {.id = "torch-full-first-step",
     .cause = SNUG_CAUSE_BATCH,
     .weight = 0.6,
     .decisive = true,
     .all = {SN_TELL_TORCH_OOM},
     .when = full_at_first_step,
     .evidence = {SN_TELL_TORCH_OOM, SN_TELL_FIRST_STEP, SN_TELL_FRAME_FORWARD},
     .explanation = "This process alone holds [[{allocated_bytes} of ]]the card's {total_bytes}, "
                    "and it failed inside the first step: one step's activations do not fit."},
    {.id = "torch-full",
     .cause = SNUG_CAUSE_BATCH,
     .weight = 0.47,
     .all = {SN_TELL_TORCH_OOM},
     .when = plainly_full,
     .evidence = {SN_TELL_TORCH_OOM},
     .explanation = "This process alone fills the card: [[{allocated_bytes} in tensors of "
                    "]]{total_bytes}, {free_bytes} free, {requested_bytes} asked for."},
    {.id = "torch-full-batch-one",
     .cause = SNUG_CAUSE_MODEL,
     .weight = 0.5,
     .all = {SN_TELL_TORCH_OOM},
     .when = full_batch_one,
     .evidence = {SN_TELL_TORCH_OOM},
     .explanation = "The batch is 1 already, and this process alone fills the {total_bytes} of the "
                    "card."},
    {.id = "torch-model-to-device",
     .cause = SNUG_CAUSE_MODEL,
     .weight = 0.75,
     .decisive = true,
     .all = {SN_TELL_TORCH_OOM},
     .when = full_to_device,
     .evidence = {SN_TELL_TORCH_OOM, SN_TELL_FRAME_TO_DEVICE},
     .explanation = "The model was still being moved to the card when its {total_bytes} were full "
                    "([[{allocated_bytes} of ]]weights so far): no batch is on it yet. Gradients "
                    "and the optimizer would come on top."},
    {.id = "torch-model-to-device-bare",
     .cause = SNUG_CAUSE_MODEL,
     .weight = 0.42,
     .all = {SN_TELL_TORCH_OOM_BARE},
     .when = bare_to_device,
     .evidence = {SN_TELL_TORCH_OOM_BARE, SN_TELL_FRAME_TO_DEVICE},
     .explanation = "The model was being moved to the card when the card was full; the message "
                    "does not say whether by this process or by others."},
    {.id = "torch-optimizer-state",
     .cause = SNUG_CAUSE_MODEL,
     .weight = 0.65,
     .decisive = true,
     .all = {SN_TELL_TORCH_OOM},
     .when = full_optimizer,
     .evidence = {SN_TELL_TORCH_OOM, SN_TELL_FRAME_OPTIMIZER},
     .explanation = "The optimizer was making its state, one or two numbers for each weight: "
                    "weights + gradients + optimizer state do not fit into {total_bytes}, whatever "
                    "the batch."},
    {.id = "torch-data-to-device",
     .cause = SNUG_CAUSE_DATASET,
     .weight = 0.7,
     .decisive = true,
     .all = {SN_TELL_TORCH_OOM},
     .when = data_to_device,
     .evidence = {SN_TELL_TORCH_OOM, SN_TELL_FRAME_DATA_TO_DEVICE},
     .explanation = "{requested_bytes} were asked for at once to move a whole data set to the "
                    "card[[ of {total_bytes}]]."},
    {.id = "torch-data-to-device-some",
     .cause = SNUG_CAUSE_DATASET,
     .weight = 0.45,
     .any = {SN_TELL_TORCH_OOM, SN_TELL_TORCH_OOM_BARE},
     .when = data_to_device_some,
     .evidence = {SN_TELL_FRAME_DATA_TO_DEVICE, SN_TELL_TORCH_OOM},
     .explanation = "The failing line moves a data set to the card."},
    {.id = "torch-first-request",
     .cause = SNUG_CAUSE_DATASET,
     .weight = 0.5,
     .all = {SN_TELL_TORCH_OOM},
     .when = first_request,
     .evidence = {SN_TELL_TORCH_OOM},
     .explanation = "Nothing of this process was on the card yet, and the first thing to be put "
                    "there asked for {requested_bytes} at once: an array of many samples, not a "
                    "batch."},
    {.id = "torch-validation-full",
     .cause = SNUG_CAUSE_LEAK_GRAPH,
     .weight = 0.55,
     .decisive = true,
     .all = {SN_TELL_TORCH_OOM},
     .when = validate_full,
     .evidence = {SN_TELL_TORCH_OOM, SN_TELL_FRAME_VALIDATE},
     .explanation =
         "Training fitted; the failure is in {phase}, with [[{allocated_bytes} of ]]{total_bytes} "
         "held by this process. Validation without torch.no_grad() keeps every activation for a "
         "backward pass that never comes."},
    {.id = "torch-validation",
     .cause = SNUG_CAUSE_LEAK_GRAPH,
     .weight = 0.5,
     .any = {SN_TELL_TORCH_OOM_BARE, SN_TELL_TORCH_OOM, SN_TELL_TORCH_CUDNN},
     .none = {SN_TELL_TF_OOM_TENSOR},
     .when = validate_bare,
     .evidence = {SN_TELL_FRAME_VALIDATE, SN_TELL_TORCH_OOM_BARE, SN_TELL_TORCH_OOM},
     .explanation = "The failure is in {phase}, not in training. Validation without "
                    "torch.no_grad() keeps every activation for a backward pass that never comes; "
                    "a larger validation batch would fail in the same place."},
    {.id = "torch-graph-kept",
     .cause = SNUG_CAUSE_LEAK_GRAPH,
     .weight = 0.5,
     .any = {SN_TELL_TORCH_OOM, SN_TELL_TORCH_OOM_BARE},
     .when = graph_kept,
     .evidence = {SN_TELL_FRAME_GRAPH_KEPT, SN_TELL_TORCH_OOM},
     .explanation = "retain_graph=True or create_graph=True keeps the whole autograd graph of a "
                    "step alive; if anything refers to it, every step adds one."},
    {.id = "torch-list-kept",
     .cause = SNUG_CAUSE_LEAK_HISTORY,
     .weight = 0.6,
     .decisive = true,
     .all = {SN_TELL_TORCH_OOM},
     .when = list_kept,
     .evidence = {SN_TELL_FRAME_LIST_KEPT, SN_TELL_TORCH_OOM},
     .explanation = "It failed only after {last_step} steps, at a line that keeps a tensor: what "
                    "is kept holds its whole graph on the card, and every step adds one."},
    {.id = "torch-list-kept-some",
     .cause = SNUG_CAUSE_LEAK_HISTORY,
     .weight = 0.48,
     .any = {SN_TELL_TORCH_OOM, SN_TELL_TORCH_OOM_BARE},
     .when = list_kept_some,
     .evidence = {SN_TELL_FRAME_LIST_KEPT, SN_TELL_TORCH_OOM},
     .explanation = "The failing code keeps tensors (losses, outputs) that still hold their graph "
                    "on the card."},
    {.id = "torch-full-late",
     .cause = SNUG_CAUSE_LEAK_HISTORY,
     .weight = 0.4,
     .all = {SN_TELL_TORCH_OOM},
     .when = full_late,
     .evidence = {SN_TELL_TORCH_OOM},
     .explanation = "It worked for {last_step} steps and then was full: something may grow from "
                    "step to step (or one batch was larger than the others)."},
    {.id = "torch-history-possible",
     .cause = SNUG_CAUSE_LEAK_HISTORY,
     .weight = 0.3,
     .all = {SN_TELL_TORCH_OOM},
     .when = plainly_full,
     .evidence = {SN_TELL_TORCH_OOM},
     .explanation = "A card that this process fills may be filled by results kept from former "
                    "steps; watch whether memory grows from step to step."},
    {.id = "torch-bare",
     .cause = SNUG_CAUSE_BATCH,
     .weight = 0.38,
     .all = {SN_TELL_TORCH_OOM_BARE},
     .none = {SN_TELL_TORCH_OOM},
     .evidence = {SN_TELL_TORCH_OOM_BARE},
     .explanation =
         "The card was full. The message has no numbers, so it does not say whether this "
         "process or another filled it; a batch that is too large is the most frequent "
         "reason."},
    {.id = "torch-bare-other",
     .cause = SNUG_CAUSE_OTHER_PROCESS,
     .weight = 0.25,
     .any = {SN_TELL_TORCH_OOM_BARE, SN_TELL_TORCH_CUBLAS, SN_TELL_TORCH_CUDNN},
     .none = {SN_TELL_TORCH_OOM},
     .evidence = {SN_TELL_TORCH_OOM_BARE, SN_TELL_TORCH_CUBLAS, SN_TELL_TORCH_CUDNN},
     .explanation = "Another program may hold the card."},
    {.id = "torch-library-memory",
     .cause = SNUG_CAUSE_BATCH,
     .weight = 0.42,
     .any = {SN_TELL_TORCH_CUBLAS, SN_TELL_TORCH_CUDNN},
     .none = {SN_TELL_TORCH_OOM, SN_TELL_LIB_CUDNN, SN_TELL_LIB_ARCH, SN_TELL_LIB_DRIVER},
     .evidence = {SN_TELL_TORCH_CUBLAS, SN_TELL_TORCH_CUDNN},
     .explanation = "{status}: a GPU library could not get the memory that it takes when it is "
                    "first used, because the tensors have filled the card."},
    {.id = "torch-mps",
     .cause = SNUG_CAUSE_BATCH,
     .weight = 0.47,
     .all = {SN_TELL_TORCH_MPS},
     .when = mps_full,
     .evidence = {SN_TELL_TORCH_MPS},
     .explanation =
         "This process holds {allocated_bytes} of the {allowed_bytes} that Metal allows, "
         "and asked for {requested_bytes} more."},
    {.id = "torch-mps-others",
     .cause = SNUG_CAUSE_OTHER_PROCESS,
     .weight = 0.5,
     .all = {SN_TELL_TORCH_MPS},
     .when = mps_others,
     .evidence = {SN_TELL_TORCH_MPS},
     .explanation = "Others hold {other_processes_bytes} of the {allowed_bytes} that Metal allows; "
                    "this process holds {allocated_bytes}."},
    {.id = "torch-summary",
     .cause = SNUG_CAUSE_BATCH,
     .weight = 0.4,
     .all = {SN_TELL_TORCH_SUMMARY_OOM},
     .none = {SN_TELL_TORCH_OOM},
     .evidence = {SN_TELL_TORCH_SUMMARY_OOM},
     .explanation = "memory_summary() counts failed allocations[[ with {allocated_bytes} "
                    "allocated]][[ and {reserved_bytes} reserved]]."},
};

const sn_rule *sn_rules_torch(size_t *n)
{
    *n = SN_LEN(rows);
    return rows;
}
