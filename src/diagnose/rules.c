/* SPDX-License-Identifier: Apache-2.0 */
#include "diagnose/rules.h"

const sn_rule *sn_rule_at(size_t i)
{
    static const sn_rule *(*const tables[])(size_t *) = {sn_rules_torch, sn_rules_tensorflow,
                                                         sn_rules_host, sn_rules_other};
    for (size_t k = 0; k < SN_LEN(tables); k++) {
        size_t n;
        const sn_rule *rows = tables[k](&n);
        if (i < n)
            return &rows[i];
        i -= n;
    }
    return NULL;
}

bool sn_rule_applies(const snug_diagnosis *d, const sn_rule *rule)
{
    for (size_t i = 0; i < SN_LEN(rule->all) && rule->all[i]; i++)
        if (!sn_tell_count(d, rule->all[i]))
            return false;
    for (size_t i = 0; i < SN_LEN(rule->none) && rule->none[i]; i++)
        if (sn_tell_count(d, rule->none[i]))
            return false;
    bool any = !rule->any[0];
    for (size_t i = 0; i < SN_LEN(rule->any) && rule->any[i]; i++)
        any |= sn_tell_count(d, rule->any[i]) > 0;
    return any && (!rule->when || rule->when(d));
}

bool sn_rule_fired(const snug_diagnosis *d, size_t i)
{
    return i < SN_LEN(d->rule_fired) && d->rule_fired[i];
}

static const sn_tell_id deaths[] = {
    SN_TELL_KILLED,        SN_TELL_KERNEL_OOM,   SN_TELL_CGROUP_OOM,    SN_TELL_EXIT_137,
    SN_TELL_SCHEDULER_OOM, SN_TELL_NOTEBOOK_RAM, SN_TELL_NOTEBOOK_DIED, SN_TELL_BAD_ALLOC,
    SN_TELL_MEMORY_ERROR,  SN_TELL_NUMPY_ALLOC,  SN_TELL_ERRNO_12,      SN_TELL_WIN_PAGING,
    SN_TELL_WIN_NOMEM,     SN_TELL_CV_ALLOC,     SN_TELL_WORKER_KILLED, SN_TELL_TORCH_CPU,
};

static const sn_tell_id device_ooms[] = {
    SN_TELL_TORCH_OOM,   SN_TELL_TORCH_OOM_BARE, SN_TELL_TORCH_MPS,  SN_TELL_TORCH_CUBLAS,
    SN_TELL_TORCH_CUDNN, SN_TELL_TF_OOM_TENSOR,  SN_TELL_TF_BFC_OOM, SN_TELL_XLA_OOM,
    SN_TELL_DARKNET_OOM, SN_TELL_OTHER_OOM,      SN_TELL_TF_DST,     SN_TELL_TORCH_NO_ENGINE,
    SN_TELL_OPENCL_OOM,
};

bool sn_is_killed(const snug_diagnosis *d)
{
    for (size_t i = 0; i < SN_LEN(deaths); i++)
        if (sn_tell_count(d, deaths[i]))
            return true;
    return false;
}

bool sn_killed_soon_after(const snug_diagnosis *d, sn_tell_id a, uint64_t lines)
{
    for (size_t i = 0; i < SN_LEN(deaths); i++)
        if (sn_tells_near(d, a, deaths[i], lines))
            return true;
    return false;
}

bool sn_is_device_oom(const snug_diagnosis *d)
{
    for (size_t i = 0; i < SN_LEN(device_ooms); i++)
        if (sn_tell_count(d, device_ooms[i]))
            return true;
    return false;
}

bool sn_frame_of_oom(const snug_diagnosis *d, sn_tell_id frame)
{
    for (size_t i = 0; i < SN_LEN(device_ooms); i++)
        if (sn_tells_near(d, frame, device_ooms[i], 60))
            return true;
    return false;
}

uint64_t sn_elsewhere_threshold(const snug_diagnosis *d)
{
    uint64_t total = sn_fv(d, SN_FACT_TOTAL);
    uint64_t small = SN_MIN(2 * SN_GIB, total / 100 * 45);
    return SN_MAX(total / 10 * 3, small);
}

bool sn_card_is_ours(const snug_diagnosis *d)
{
    if (!sn_tell_count(d, SN_TELL_TORCH_OOM) || !sn_fact_has(d, SN_FACT_TOTAL))
        return false;
    uint64_t own = SN_MAX(sn_fv(d, SN_FACT_OWN_PROCESS),
                          SN_MAX(sn_fv(d, SN_FACT_RESERVED), sn_fv(d, SN_FACT_ALLOCATED)));
    return own >= sn_fv(d, SN_FACT_TOTAL) / 100 * 55 &&
           sn_fv(d, SN_FACT_HELD_ELSEWHERE) < sn_elsewhere_threshold(d);
}

bool sn_is_fragmented(const snug_diagnosis *d, unsigned percent_of_reserved)
{
    uint64_t idle = sn_fv(d, SN_FACT_RESERVED_UNALLOCATED);
    return sn_fact_has(d, SN_FACT_RESERVED_UNALLOCATED) && sn_fact_has(d, SN_FACT_REQUESTED) &&
           idle >= sn_fv(d, SN_FACT_REQUESTED) && idle >= 64 * SN_MIB &&
           idle >= sn_fv(d, SN_FACT_RESERVED) / 100 * percent_of_reserved &&
           !sn_fact_has(d, SN_FACT_FREE_GT_REQUESTED);
}

bool sn_card_is_plainly_full(const snug_diagnosis *d)
{
    return sn_card_is_ours(d) && !sn_is_fragmented(d, 20) &&
           !sn_fact_has(d, SN_FACT_FREE_GT_REQUESTED) &&
           !sn_fact_has(d, SN_FACT_REQUESTED_GT_TOTAL);
}

bool sn_went_on_after(const snug_diagnosis *d, sn_tell_id tell)
{
    static const sn_tell_id steps[] = {SN_TELL_PROGRESS_BACK, SN_TELL_LOSS_LINE, SN_TELL_FINISHED};
    for (size_t i = 0; i < SN_LEN(steps); i++)
        if (sn_tell_count(d, steps[i]) && sn_tell_count(d, tell) &&
            d->tells[steps[i]].last.order > d->tells[tell].last.order + 2)
            return true;
    return false;
}
