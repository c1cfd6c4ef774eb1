/* SPDX-License-Identifier: Apache-2.0
 *
 * Optimizer steps in Keras 3's order of float32 operations: gradient + L2 term, clipping, weight
 * decay, update. Scalars are rounded where Keras rounds them (sn_update_prepare). */
#include "ops/util.h"

#include <math.h>

static const char *const names[SN_N_UPDATES] = {
    [SN_UPDATE_SGD] = "sgd",         [SN_UPDATE_ADAM] = "adam",       [SN_UPDATE_ADAMW] = "adamw",
    [SN_UPDATE_RMSPROP] = "rmsprop", [SN_UPDATE_ADAGRAD] = "adagrad", [SN_UPDATE_LION] = "lion",
};

const char *sn_update_name(sn_update_kind kind)
{
    return (unsigned)kind < SN_N_UPDATES ? names[kind] : "?";
}

int sn_update_n_slots(const sn_update_attrs *update)
{
    switch (update->kind) {
    case SN_UPDATE_SGD:
        return update->momentum != 0;
    case SN_UPDATE_ADAM:
    case SN_UPDATE_ADAMW:
        return 2;
    case SN_UPDATE_RMSPROP:
        return 1 + (update->momentum > 0) + update->centered;
    case SN_UPDATE_ADAGRAD:
    case SN_UPDATE_LION:
        return 1;
    case SN_N_UPDATES:
        break;
    }
    return 0;
}

float sn_update_slot_start(const sn_update_attrs *update, int slot)
{
    SN_UNUSED(slot);
    return update->kind == SN_UPDATE_ADAGRAD ? 0.1f : 0.0f;
}

void sn_update_prepare(sn_update_scalars *out, const sn_update_attrs *update, const sn_step *step)
{
    const float t = (float)(step->number + 1);
    *out = (sn_update_scalars){
        .lr = step->lr * (update->lr_scale == 0 ? 1.0f : update->lr_scale),
        .momentum = update->momentum,
        .beta1 = update->beta1,
        .beta2 = update->beta2,
        .rho = update->rho,
        .epsilon = update->epsilon,
        .weight_decay = update->weight_decay,
        .l2 = update->l2,
        .one_minus_beta1 = (float)(1 - sn_decimal(update->beta1)),
        .one_minus_beta2 = (float)(1 - sn_decimal(update->beta2)),
        .one_minus_rho = (float)(1 - sn_decimal(update->rho)),
    };
    if (update->kind == SN_UPDATE_LION) { /* Keras casts Lion's betas first */
        out->one_minus_beta1 = 1.0f - update->beta1;
        out->one_minus_beta2 = 1.0f - update->beta2;
    }
    out->alpha = out->lr * sqrtf(1.0f - powf(update->beta2, t)) / (1.0f - powf(update->beta1, t));
}

/* ---- shape rules ----------------------------------------------------------------------------- */

snug_status sn_op_need_update(sn_op_id id, const sn_update_attrs *update, const sn_desc *in,
                              int first_slot, int n_slots, const sn_shape *shape, snug_error *err)
{
    const char *name = sn_op_of(id)->name;
    SN_OP_TRY(sn_op_need_range(id, "its kind", (int64_t)update->kind, 0, SN_N_UPDATES - 1, err));
    const int needs = sn_update_n_slots(update);
    if (needs > n_slots)
        return sn_fail(err, SNUG_E_UNSUPPORTED, "%s: %s keeps %d slots, there is room for %d", name,
                       sn_update_name(update->kind), needs, n_slots);
    for (int i = 0; i < n_slots; i++) {
        if (sn_desc_is_absent(&in[first_slot + i]) != (i >= needs))
            return sn_fail(err, SNUG_E_INTERNAL, "%s: %s keeps %d slots, slot %d is %s", name,
                           sn_update_name(update->kind), needs, i,
                           i < needs ? "missing" : "one too many");
        SN_OP_TRY(sn_op_need_shape(id, in, first_slot + i, shape, err));
    }
    return SNUG_OK;
}

static snug_status infer(const sn_attrs *attrs, const sn_desc *in, int n_in, sn_desc *out,
                         int n_out, snug_error *err)
{
    const sn_op_id id = SN_OP_UPDATE;
    const sn_update_attrs *u = &attrs->update;
    SN_OP_TRY(sn_op_arity(id, in, n_in, out, n_out, err));
    SN_OP_TRY(sn_op_need(id, in, 0, SN_F32, -1, err));
    SN_OP_TRY(sn_op_need_shape(id, in, 1, &in[0].shape, err));
    SN_OP_TRY(sn_op_need_vector(id, in, 2, 1, err));
    if (u->clip_global > 0 && sn_desc_is_absent(&in[2]))
        return sn_fail(err, SNUG_E_INTERNAL, "update: clipping by global norm lacks the norm");
    SN_OP_TRY(sn_op_need_update(id, u, in, 3, 3, &in[0].shape, err));
    for (int i = 0; i < 1 + sn_update_n_slots(u); i++)
        SN_OP_TRY(sn_op_set(id, &out[i], SN_F32, &in[0].shape, err));
    return SNUG_OK;
}

static snug_status infer_squares(const sn_attrs *attrs, const sn_desc *in, int n_in, sn_desc *out,
                                 int n_out, snug_error *err)
{
    const sn_op_id id = SN_OP_SUM_SQUARES;
    sn_shape one = {1, {1}};
    SN_UNUSED(attrs);
    SN_OP_TRY(sn_op_arity(id, in, n_in, out, n_out, err));
    SN_OP_TRY(sn_op_need(id, in, 0, SN_F32, -1, err));
    SN_OP_TRY(sn_op_need_shape(id, in, 1, &one, err));
    return sn_op_set(id, &out[0], SN_F32, &one, err);
}

static void cost(const sn_attrs *attrs, const sn_desc *in, int n_in, const sn_desc *out, int n_out,
                 sn_cost *c)
{
    sn_op_cost(n_out == 1 ? 2 : 2 + 5 * sn_update_n_slots(&attrs->update), in, n_in, out, n_out, c);
}

/* ---- references ------------------------------------------------------------------------------ */

static float with_l2(const sn_update_scalars *s, float g, float w)
{
    return s->l2 == 0 ? g : g + s->l2 * (2.0f * w);
}

static float clipped(const sn_op_clip *clip, float g)
{
    switch (clip->kind) {
    case SN_OP_CLIP_VALUE: /* NaN stays */
        return g > clip->value ? clip->value : g < -clip->value ? -clip->value : g;
    case SN_OP_CLIP_NORM:
        return g * clip->value / clip->norm;
    case SN_OP_CLIP_GLOBAL:
        return g * clip->value;
    case SN_OP_CLIP_NONE:
        break;
    }
    return g;
}

static float sgd(const sn_update_attrs *u, const sn_update_scalars *s, float w, float g, float *m)
{
    if (u->momentum == 0)
        return w - g * s->lr;
    *m = *m * s->momentum - g * s->lr;
    return u->nesterov ? w + (*m * s->momentum - g * s->lr) : w + *m;
}

static float adam(const sn_update_scalars *s, float w, float g, float *m, float *v)
{
    *m = *m + (g - *m) * s->one_minus_beta1;
    *v = *v + (g * g - *v) * s->one_minus_beta2;
    return w - *m * s->alpha / (sqrtf(*v) + s->epsilon);
}

static float rmsprop(const sn_update_attrs *u, const sn_update_scalars *s, float w, float g,
                     float slot[3])
{
    float *momentum = &slot[1], *mean = &slot[u->momentum > 0 ? 2 : 1], denominator;
    slot[0] = s->rho * slot[0] + s->one_minus_rho * (g * g);
    if (u->centered) {
        *mean = s->rho * *mean + s->one_minus_rho * g;
        denominator = slot[0] - *mean * *mean + s->epsilon;
    } else {
        denominator = slot[0] + s->epsilon;
    }
    float increment = s->lr * g / sqrtf(denominator);
    if (u->momentum > 0) {
        *momentum = s->momentum * *momentum + increment;
        increment = *momentum;
    }
    return w - increment;
}

static float adagrad(const sn_update_scalars *s, float w, float g, float *sum)
{
    *sum = *sum + g * g;
    return w - s->lr * g / sqrtf(*sum + s->epsilon);
}

static float lion(const sn_update_scalars *s, float w, float g, float *m)
{
    float c = *m * s->beta1 + g * s->one_minus_beta1;
    *m = *m * s->beta2 + g * s->one_minus_beta2;
    return w - s->lr * (c > 0 ? 1.0f : c < 0 ? -1.0f : c);
}

void sn_op_update_run(const sn_update_attrs *update, const sn_update_scalars *scalars,
                      const sn_op_clip *clip, int64_t n, float *w_out, const float *w,
                      const float *g, float *const slot_out[3], const float *const slot[3])
{
    const int n_slots = sn_update_n_slots(update);
    for (int64_t i = 0; i < n; i++) {
        float k[3] = {0, 0, 0}, v = w[i];
        float d = clipped(clip, with_l2(scalars, g[i], v));
        for (int s = 0; s < n_slots; s++)
            k[s] = slot[s][i];
        if (scalars->weight_decay != 0)
            v = v - v * scalars->weight_decay * scalars->lr;
        switch (update->kind) {
        case SN_UPDATE_SGD:
            v = sgd(update, scalars, v, d, &k[0]);
            break;
        case SN_UPDATE_ADAM:
        case SN_UPDATE_ADAMW:
            v = adam(scalars, v, d, &k[0], &k[1]);
            break;
        case SN_UPDATE_RMSPROP:
            v = rmsprop(update, scalars, v, d, k);
            break;
        case SN_UPDATE_ADAGRAD:
            v = adagrad(scalars, v, d, &k[0]);
            break;
        case SN_UPDATE_LION:
            v = lion(scalars, v, d, &k[0]);
            break;
        case SN_N_UPDATES:
            break;
        }
        w_out[i] = v;
        for (int s = 0; s < n_slots; s++)
            slot_out[s][i] = k[s];
    }
}

/* NaN and infinity in the norm make every weight NaN, as in Keras: they are not hidden. */
static sn_op_clip clip_of(const sn_update_attrs *u, const sn_update_scalars *s, const float *w,
                          const float *g, int64_t n, const float *norm)
{
    sn_op_clip clip = {SN_OP_CLIP_NONE, 0, 0};
    if (u->clip_norm > 0) {
        double sum = 0;
        for (int64_t i = 0; i < n; i++) {
            double d = with_l2(s, g[i], w[i]);
            sum += d * d;
        }
        float own = sqrtf((float)sum);
        clip =
            (sn_op_clip){SN_OP_CLIP_NORM, u->clip_norm, own <= u->clip_norm ? u->clip_norm : own};
    } else if (u->clip_global > 0) {
        float all = sqrtf(*norm), a = 1.0f / all, b = 1.0f / u->clip_global;
        clip = (sn_op_clip){SN_OP_CLIP_GLOBAL, u->clip_global * (a < b ? a : b) + (all - all), 0};
    } else if (u->clip_value > 0) {
        clip = (sn_op_clip){SN_OP_CLIP_VALUE, u->clip_value, 0};
    }
    return clip;
}

static void reference(const sn_call *call)
{
    const sn_update_attrs *u = &call->attrs->update;
    const float *w = call->in[0].data, *g = call->in[1].data;
    const int64_t n = sn_shape_n(&call->in[0].desc.shape);
    sn_update_scalars scalars;
    sn_update_prepare(&scalars, u, call->step);
    sn_op_clip clip = clip_of(u, &scalars, w, g, n, call->in[2].data);
    float *const slot_out[3] = {call->out[1].data, call->out[2].data, call->out[3].data};
    const float *const slot[3] = {call->in[3].data, call->in[4].data, call->in[5].data};
    sn_op_update_run(u, &scalars, &clip, n, call->out[0].data, w, g, slot_out, slot);
}

static void reference_squares(const sn_call *call)
{
    const float *x = call->in[0].data, *before = call->in[1].data;
    const float penalty = call->attrs->update.penalty;
    const int64_t n = sn_shape_n(&call->in[0].desc.shape);
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += (double)x[i] * (double)x[i];
    sum *= penalty == 0 ? 1 : (double)penalty;
    *(float *)call->out[0].data = (float)(sum + (before ? (double)*before : 0));
}

/* w' over w, slots' over slots (after gradient and norm) */
static int in_place(const sn_attrs *attrs, int index)
{
    SN_UNUSED(attrs);
    return index == 0 ? 0 : index + 2;
}

const sn_op sn_op_row_UPDATE = {.name = "update",
                                .infer = infer,
                                .cost = cost,
                                .reference = reference,
                                .in_place = in_place,
                                .mixes_batch = sn_op_mixes};
const sn_op sn_op_row_SUM_SQUARES = {.name = "sum_squares",
                                     .infer = infer_squares,
                                     .cost = cost,
                                     .reference = reference_squares,
                                     .in_place = sn_op_in_place_second,
                                     .mixes_batch = sn_op_mixes};
