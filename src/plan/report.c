/* SPDX-License-Identifier: Apache-2.0
 *
 * report.c - looking at a plan: getters, the largest batch, texts and JSON.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "plan/internal.h"

const char *snug_bytes_kind_name(int kind)
{
    static const char *const names[] = {
#define NAME(id, name) [SN_BYTES_##id] = name,
        SN_BYTES_KIND_LIST(NAME)
#undef NAME
    };
    _Static_assert((int)SNUG_N_BYTES_KINDS == (int)SN_N_BYTES_KINDS &&
                       (int)SNUG_BYTES_PADDING == (int)SN_BYTES_PADDING &&
                       (int)SNUG_BYTES_STAGING == (int)SN_BYTES_STAGING,
                   "the public kinds are the program's");
    return kind >= 0 && kind < SN_N_BYTES_KINDS ? names[kind] : "?";
}

const snug_plan_info *snug_plan_numbers(const snug_plan *plan)
{
    return &plan->info;
}

const snug_device_info *snug_plan_device(const snug_plan *plan)
{
    return &plan->device_info;
}

const snug_optimizer *snug_plan_optimizer(const snug_plan *plan)
{
    return &plan->options.optimizer;
}

const snug_loss *snug_plan_loss(const snug_plan *plan)
{
    return &plan->options.loss;
}

uint64_t snug_plan_arena_bytes(const snug_plan *plan)
{
    return plan->info.arena_peak_bytes;
}

size_t snug_plan_n_slabs(const snug_plan *plan)
{
    return plan->n_slabs;
}

uint64_t snug_plan_slab_bytes(const snug_plan *plan, size_t slab)
{
    return slab < plan->n_slabs ? plan->slab_bytes[slab] : 0;
}

size_t snug_plan_n_choices(const snug_plan *plan)
{
    return plan->choices.n;
}

const snug_choice *snug_plan_choice(const snug_plan *plan, size_t index)
{
    return index < plan->choices.n ? &plan->choices.at[index] : NULL;
}

const sn_program *sn_plan_program(const snug_plan *plan, sn_graph_mode mode)
{
    return plan->programs[mode];
}

const sn_graph *sn_plan_graph(const snug_plan *plan, sn_graph_mode mode)
{
    return plan->graphs[mode];
}

sn_device *sn_plan_device(const snug_plan *plan)
{
    return plan->device;
}

const snug_model *sn_plan_model(const snug_plan *plan)
{
    return plan->model;
}

const snug_plan_options *sn_plan_options(const snug_plan *plan)
{
    return &plan->options;
}

snug_status sn_plan_add_fix(snug_plan *plan, const sn_plan_fix *fix, snug_error *err)
{
    sn_plan_fix copy = *fix;
    copy.add = sn_arena_strdup(&plan->arena, fix->add);
    copy.result = sn_arena_strdup(&plan->arena, fix->result);
    copy.what = sn_arena_strdup(&plan->arena, fix->what);
    if (!copy.add || !copy.result || !copy.what || !SN_VEC_PUSH(SN_TAG_PLAN, &plan->fixes, copy))
        return sn_fail(err, SNUG_E_MEMORY, "no memory for the plan");
    return SNUG_OK;
}

snug_status sn_plan_add_useless(snug_plan *plan, const char *advice, const char *why,
                                snug_error *err)
{
    sn_plan_useless copy = {sn_arena_strdup(&plan->arena, advice),
                            sn_arena_strdup(&plan->arena, why)};
    if (!copy.advice || !copy.why || !SN_VEC_PUSH(SN_TAG_PLAN, &plan->useless, copy))
        return sn_fail(err, SNUG_E_MEMORY, "no memory for the plan");
    return SNUG_OK;
}

size_t snug_plan_n_fixes(const snug_plan *plan)
{
    return plan->fixes.n;
}

void snug_plan_fix_at(const snug_plan *plan, size_t index, snug_plan_fix *out)
{
    const sn_plan_fix *fix = &plan->fixes.at[index];
    *out = (snug_plan_fix){fix->add, fix->result, fix->what, fix->peak_bytes, fix->slowdown};
}

size_t snug_plan_n_useless(const snug_plan *plan)
{
    return plan->useless.n;
}

void snug_plan_useless_at(const snug_plan *plan, size_t index, const char **advice,
                          const char **why)
{
    *advice = plan->useless.at[index].advice;
    *why = plan->useless.at[index].why;
}

/* ---- the largest batch ----------------------------------------------------------------------- */

static snug_status probe(const snug_plan *plan, int64_t batch, uint64_t *peak, bool *fits,
                         snug_error *err)
{
    snug_plan_options o = plan->options;
    snug_plan *other;
    o.batch = batch;
    snug_status s = sn_plan_try(&other, plan->model, &o, plan->device, true, err);
    if (s)
        return s;
    *peak = other->info.peak_bytes;
    *fits = *peak <= plan->budget && !other->oversize;
    snug_plan_free(other);
    return SNUG_OK;
}

/* lo fits and hi does not: the next one to try, by the line through both, kept off the ends so that
 * the interval shrinks. */
static int64_t between(int64_t lo, uint64_t lo_peak, int64_t hi, uint64_t hi_peak, uint64_t budget,
                       int round)
{
    int64_t middle = lo + (hi - lo) / 2;
    if (round % 3 == 2 || hi_peak <= lo_peak || budget < lo_peak)
        return middle;
    double share = (double)(budget - lo_peak) / (double)(hi_peak - lo_peak);
    int64_t at = lo + (int64_t)((double)(hi - lo) * SN_MIN(share, 1));
    return SN_MAX(lo + 1, SN_MIN(at, hi - 1));
}

snug_status snug_plan_largest_batch(snug_plan *plan, int64_t *batch, snug_error *err)
{
    enum { MOST = 1 << 16 };
    uint64_t lo_peak = 0, hi_peak = plan->info.peak_bytes;
    int64_t lo = 0, hi = plan->info.batch;
    bool fits = plan->info.fits;
    if (plan->largest_batch >= 0) {
        *batch = plan->largest_batch;
        return SNUG_OK;
    }
    while (fits) { /* upward until it no longer fits, guided by the slope so far */
        uint64_t slope = hi > lo ? (hi_peak - SN_MIN(lo_peak, hi_peak)) / (uint64_t)(hi - lo) : 0;
        uint64_t room = plan->budget - hi_peak;
        int64_t step = lo && slope ? (int64_t)SN_MIN(room / slope, MOST) + 1 : hi;
        lo = hi;
        lo_peak = hi_peak;
        if (lo >= MOST)
            break;
        hi = SN_MIN(lo + SN_MAX(step, 1), MOST);
        snug_status s = probe(plan, hi, &hi_peak, &fits, err);
        if (s)
            return s;
    }
    for (int round = 0; !fits && hi - lo > 1; round++) {
        int64_t at =
            lo ? between(lo, lo_peak, hi, hi_peak, plan->budget, round) : lo + (hi - lo) / 2;
        uint64_t peak;
        bool ok;
        snug_status s = probe(plan, at, &peak, &ok, err);
        if (s)
            return s;
        *(ok ? &lo : &hi) = at;
        *(ok ? &lo_peak : &hi_peak) = peak;
    }
    *batch = plan->largest_batch = lo;
    return SNUG_OK;
}

/* ---- texts ----------------------------------------------------------------------------------- */

void snug_text_free(char *text)
{
    sn_free(text);
}

static char *take(sn_buf *buf)
{
    char *text = sn_buf_take(buf);
    sn_buf_deinit(buf);
    return text;
}

static const sn_program *first_program(const snug_plan *plan)
{
    for (int m = 0; m < N_MODES; m++)
        if (plan->programs[m])
            return plan->programs[m];
    return NULL;
}

char *snug_plan_program_text(const snug_plan *plan, snug_plan_purpose program)
{
    sn_buf buf;
    sn_buf_init(&buf, SN_TAG_PLAN);
    if ((int)program >= 0 && (int)program < N_MODES && plan->programs[program])
        sn_program_print(plan->programs[program], plan->device, &buf);
    else
        sn_buf_puts(&buf, "");
    return take(&buf);
}

char *snug_plan_csv(const snug_plan *plan)
{
    sn_buf buf;
    sn_buf_init(&buf, SN_TAG_PLAN);
    sn_program_csv(first_program(plan), &buf);
    return take(&buf);
}

char *snug_plan_why(const snug_plan *plan)
{
    sn_buf buf;
    sn_buf_init(&buf, SN_TAG_PLAN);
    for (int m = 0; m < N_MODES; m++) {
        const sn_program *p = plan->programs[m];
        if (!p)
            continue;
        for (size_t i = 0; i < p->n_instrs; i++) {
            const sn_node *node = &plan->graphs[m]->nodes.at[p->instrs[i].node];
            sn_buf_printf(&buf, "%5zu  %-20s %-28s %s%s%s\n", i, sn_op_of(node->op)->name,
                          p->instrs[i].layer,
                          plan->device->backend->kernel_name(plan->device, node->op, node->kernel),
                          node->why && node->why[0] ? "; not " : "", node->why ? node->why : "");
        }
        break;
    }
    return take(&buf);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *whole(uint64_t n)
{
    return json_integer((json_int_t)SN_MIN(n, (uint64_t)INT64_MAX));
}

static json_t *model_json(const snug_plan *plan)
{
    int64_t in[4], out[4];
    int rank = snug_model_input_shape(plan->model, in);
    int out_rank = snug_model_output_shape(plan->model, out);
    json_t *o = json_object(), *shape = json_array();
    for (int i = 0; i < rank; i++)
        json_array_append_new(shape, json_integer(in[i]));
    json_object_set_new(o, "name", json_string(snug_model_name(plan->model)));
    json_object_set_new(o, "parameters", whole(plan->info.parameters));
    json_object_set_new(o, "trainable", whole(plan->info.trainable));
    json_object_set_new(o, "input", shape);
    if (out_rank > 0)
        json_object_set_new(o, "classes", json_integer(out[out_rank - 1]));
    return o;
}

static json_t *arena_json(const snug_plan *plan)
{
    json_t *o = json_object(), *slabs = json_array(), *kinds = json_object();
    for (size_t i = 0; i < plan->n_slabs; i++)
        json_array_append_new(slabs, whole(plan->slab_bytes[i]));
    for (int k = 0; k < SN_N_BYTES_KINDS; k++)
        json_object_set_new(kinds, snug_bytes_kind_name(k), whole(plan->info.kind_bytes[k]));
    json_object_set_new(o, "peak_bytes", whole(plan->info.arena_peak_bytes));
    json_object_set_new(o, "lower_bound_bytes", whole(plan->info.arena_lower_bound_bytes));
    json_object_set_new(o, "slabs", slabs);
    json_object_set_new(o, "tensors", whole(plan->info.n_tensors));
    json_object_set_new(o, "instructions", whole(plan->info.n_instructions));
    json_object_set_new(o, "persistent_bytes", whole(plan->info.persistent_bytes));
    json_object_set_new(o, "by_kind", kinds);
    return o;
}

static json_t *choices_json(const snug_plan *plan)
{
    json_t *list = json_array();
    for (size_t i = 0; i < plan->choices.n; i++) {
        const snug_choice *c = &plan->choices.at[i];
        json_t *o = json_object();
        json_object_set_new(o, "remedy", json_string(c->remedy));
        json_object_set_new(o, "where", json_string(c->where));
        json_object_set_new(o, "saves_bytes", whole(c->saves_bytes));
        json_object_set_new(o, "slowdown", json_real(c->slowdown));
        json_object_set_new(o, "result", json_string(c->result));
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *fixes_json(const snug_plan *plan)
{
    json_t *list = json_array();
    for (size_t i = 0; i < plan->fixes.n; i++) {
        const sn_plan_fix *f = &plan->fixes.at[i];
        json_t *o = json_object();
        json_object_set_new(o, "add", json_string(f->add));
        json_object_set_new(o, "peak_bytes", whole(f->peak_bytes));
        json_object_set_new(o, "slowdown", json_real(f->slowdown));
        json_object_set_new(o, "result", json_string(f->result));
        json_object_set_new(o, "what", json_string(f->what));
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *useless_json(const snug_plan *plan)
{
    json_t *list = json_array();
    for (size_t i = 0; i < plan->useless.n; i++) {
        json_t *o = json_object();
        json_object_set_new(o, "advice", json_string(plan->useless.at[i].advice));
        json_object_set_new(o, "why", json_string(plan->useless.at[i].why));
        json_array_append_new(list, o);
    }
    return list;
}

char *snug_plan_json(snug_plan *plan, snug_error *err)
{
    const snug_plan_info *info = &plan->info;
    int64_t largest;
    if (snug_plan_largest_batch(plan, &largest, err))
        return NULL;
    json_t *o = json_object();
    json_object_set_new(o, "model", model_json(plan));
    json_object_set_new(o, "batch", json_integer(info->batch));
    json_object_set_new(o, "micro_batch", json_integer(info->batch));
    json_object_set_new(o, "largest_batch", json_integer(largest));
    json_object_set_new(o, "precision", json_string("float32"));
    json_object_set_new(o, "optimizer",
                        json_string(snug_optimizer_name(plan->options.optimizer.kind)));
    json_object_set_new(o, "device", json_string(plan->device_info.spec));
    json_object_set_new(o, "device_name", json_string(plan->device_info.name));
    json_object_set_new(o, "device_free_bytes", whole(plan->device_info.free_bytes));
    json_object_set_new(o, "budget_bytes", whole(info->budget_bytes));
    json_object_set_new(o, "fits", json_boolean(info->fits));
    json_object_set_new(o, "peak_bytes", whole(info->peak_bytes));
    json_object_set_new(o, "arena", arena_json(plan));
    json_object_set_new(o, "runtime_bytes", whole(info->runtime_bytes));
    json_object_set_new(o, "host_bytes", whole(info->host_bytes));
    if (info->keep_all_peak_bytes)
        json_object_set_new(o, "keep_all_peak_bytes", whole(info->keep_all_peak_bytes));
    json_object_set_new(o, "smallest_budget_bytes", whole(info->peak_bytes));
    json_object_set_new(o, "smallest_identical_budget_bytes", whole(info->peak_bytes));
    json_object_set_new(o, "choices", choices_json(plan));
    json_object_set_new(o, "predicted_slowdown", json_real(plan->replay_slowdown));
    if (info->step_seconds > 0)
        json_object_set_new(o, "step_seconds", json_real(info->step_seconds));
    if (info->epoch_seconds > 0)
        json_object_set_new(o, "epoch_seconds", json_real(info->epoch_seconds));
    json_object_set_new(o, "planning_seconds", json_real(info->planning_seconds));
    json_object_set_new(o, "fixes", fixes_json(plan));
    json_object_set_new(o, "useless", useless_json(plan));
    char *dumped = json_dumps(o, JSON_COMPACT | JSON_REAL_PRECISION(6));
    json_decref(o);
    char *text = dumped ? sn_strdup(SN_TAG_PLAN, dumped) : NULL;
    free(dumped);
    if (!text)
        sn_fail(err, SNUG_E_MEMORY, "no memory for the plan's text");
    return text;
}
