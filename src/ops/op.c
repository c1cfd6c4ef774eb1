/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/util.h"

#include <math.h>

static const sn_op *const table[SN_N_OPS] = {
#define SN_OP(id, name, file, in, out) [SN_OP_##id] = &sn_op_row_##id,
#include "ops/ops.def"
#undef SN_OP
};

static const struct {
    const char *name, *in, *out;
} signature[SN_N_OPS] = {
#define SN_OP(id, name, file, in, out) [SN_OP_##id] = {name, in, out},
#include "ops/ops.def"
#undef SN_OP
};

const sn_op *sn_op_of(sn_op_id id)
{
    return table[id];
}

sn_op_id sn_op_by_name(const char *name)
{
    for (int i = 0; i < SN_N_OPS; i++)
        if (sn_str_eq(signature[i].name, name))
            return (sn_op_id)i;
    return SN_N_OPS;
}

void sn_same_padding(int64_t in, int64_t kernel, int64_t stride, int64_t dilation, int64_t *before,
                     int64_t *after)
{
    int64_t out = (in + stride - 1) / stride;
    int64_t total = (out - 1) * stride + (kernel - 1) * dilation + 1 - in;
    total = SN_MAX(total, 0);
    *before = total / 2;
    *after = total - *before;
}

double sn_decimal(float value)
{
    char text[32];
    if (!isfinite(value))
        return value;
    for (int digits = 1; digits < 9; digits++) {
        (void)snprintf(text, sizeof text, "%.*g", digits, (double)value);
        double exact = strtod(text, NULL);
        if ((float)exact == value)
            return exact;
    }
    return value;
}

/* ---- operands by name ------------------------------------------------------------------------ */

static bool is_list(const char *names)
{
    return sn_str_ends(names, "...");
}

static int count_words(const char *names)
{
    int n = 1;
    for (; *names; names++)
        n += *names == ' ';
    return n;
}

/* Copies word i of names to out, without its marks; *optional: it had a "?". */
static const char *word(char *out, size_t size, const char *names, int i, bool *optional)
{
    size_t n = 0;
    bool list = is_list(names);
    for (; i > 0 && !list; i--) {
        names = strchr(names, ' ');
        if (!names)
            break;
        names++;
    }
    *optional = false;
    for (; names && *names && *names != ' '; names++) {
        if (*names == '?')
            *optional = true;
        else if (*names != '\'' && *names != '.' && n + 1 < size)
            out[n++] = *names;
    }
    out[n] = '\0';
    return out;
}

static const char *in_name(char *out, size_t size, sn_op_id id, int i)
{
    bool optional;
    return word(out, size, signature[id].in, i, &optional);
}

snug_status sn_op_arity(sn_op_id id, const sn_desc *in, int n_in, sn_desc *out, int n_out,
                        snug_error *err)
{
    char name[24];
    bool optional;
    const char *ins = signature[id].in;
    bool list = is_list(ins);
    if (list ? (n_in < 1 || n_in > SN_MAX_IN) : n_in != count_words(ins))
        return sn_fail(err, list ? SNUG_E_INPUT : SNUG_E_INTERNAL,
                       "%s was given %d inputs, it takes %d", signature[id].name, n_in,
                       list ? SN_MAX_IN : count_words(ins));
    if (n_out != count_words(signature[id].out))
        return sn_fail(err, SNUG_E_INTERNAL, "%s was asked for %d outputs, it has %d",
                       signature[id].name, n_out, count_words(signature[id].out));
    for (int i = 0; i < n_in; i++) {
        word(name, sizeof name, ins, i, &optional);
        if (!optional && sn_desc_is_absent(&in[i]))
            return sn_fail(err, SNUG_E_INTERNAL, "%s lacks its input %s", signature[id].name, name);
    }
    for (int i = 0; i < n_out; i++)
        out[i] = sn_desc_absent();
    return SNUG_OK;
}

snug_status sn_op_need(sn_op_id id, const sn_desc *in, int i, sn_dtype dtype, int rank,
                       snug_error *err)
{
    char name[24], shape[96];
    uint64_t bytes;
    const sn_desc *d = &in[i];
    in_name(name, sizeof name, id, i);
    sn_shape_format(shape, sizeof shape, &d->shape);
    if (dtype != SN_OP_ANY_DTYPE && d->dtype != dtype)
        return sn_fail(err, SNUG_E_INPUT, "%s: %s %s must be %s, it is %s", signature[id].name,
                       name, shape, sn_dtype_name(dtype), sn_dtype_name(d->dtype));
    if (rank >= 0 ? d->shape.rank != rank : d->shape.rank < 1)
        return sn_fail(err, SNUG_E_INPUT, "%s: %s %s must have %s%d dimension%s, it has %d",
                       signature[id].name, name, shape, rank < 0 ? "at least " : "",
                       rank < 0 ? 1 : rank, rank < 0 || rank == 1 ? "" : "s", d->shape.rank);
    for (int k = 0; k < d->shape.rank; k++)
        if (d->shape.dim[k] < 1)
            return sn_fail(err, SNUG_E_INPUT, "%s: %s %s has an empty dimension",
                           signature[id].name, name, shape);
    if (sn_desc_bytes(d, &bytes) || bytes > INT64_MAX)
        return sn_fail(err, SNUG_E_INPUT, "%s: %s %s is absurdly large", signature[id].name, name,
                       shape);
    return SNUG_OK;
}

snug_status sn_op_need_shape(sn_op_id id, const sn_desc *in, int i, const sn_shape *want,
                             snug_error *err)
{
    char name[24], have[96], text[96];
    if (sn_desc_is_absent(&in[i]))
        return SNUG_OK;
    if (in[i].dtype == SN_F32 && sn_shape_eq(&in[i].shape, want))
        return SNUG_OK;
    return sn_fail(err, SNUG_E_INPUT, "%s: %s is %s %s, it must be float32 %s", signature[id].name,
                   in_name(name, sizeof name, id, i), sn_dtype_name(in[i].dtype),
                   sn_shape_format(have, sizeof have, &in[i].shape),
                   sn_shape_format(text, sizeof text, want));
}

snug_status sn_op_need_vector(sn_op_id id, const sn_desc *in, int i, int64_t n, snug_error *err)
{
    sn_shape shape = {1, {n}};
    return sn_op_need_shape(id, in, i, &shape, err);
}

snug_status sn_op_need_act(sn_op_id id, const sn_act_attrs *act, bool fused, snug_error *err)
{
    if ((unsigned)act->kind >= SN_N_ACTS)
        return sn_fail(err, SNUG_E_INPUT, "%s: unknown activation %d", signature[id].name,
                       (int)act->kind);
    if (act->kind == SN_ACT_RELU && (!(act->max >= 0) || !(act->threshold >= 0)))
        return sn_fail(err, SNUG_E_INPUT, "%s: relu's max %g and threshold %g must not be negative",
                       signature[id].name, (double)act->max, (double)act->threshold);
    bool plain = act->kind == SN_ACT_NONE ||
                 (act->kind == SN_ACT_RELU && act->alpha == 0 && act->threshold == 0);
    if (fused && !plain)
        return sn_fail(err, SNUG_E_UNSUPPORTED,
                       "%s: only relu with slope 0 and threshold 0 can be fused, not %s",
                       signature[id].name, sn_act_name(act->kind));
    return SNUG_OK;
}

snug_status sn_op_need_range(sn_op_id id, const char *what, int64_t value, int64_t lo, int64_t hi,
                             snug_error *err)
{
    if (value >= lo && value <= hi)
        return SNUG_OK;
    return sn_fail(err, SNUG_E_INPUT, "%s: %s is %" PRId64 ", it must be %" PRId64 " to %" PRId64,
                   signature[id].name, what, value, lo, hi);
}

snug_status sn_op_set(sn_op_id id, sn_desc *out, sn_dtype dtype, const sn_shape *shape,
                      snug_error *err)
{
    char text[96];
    uint64_t bytes;
    sn_desc d = {dtype, *shape};
    if (sn_desc_bytes(&d, &bytes) || bytes > INT64_MAX)
        return sn_fail(err, SNUG_E_INPUT, "%s: its result %s is absurdly large", signature[id].name,
                       sn_shape_format(text, sizeof text, shape));
    *out = d;
    return SNUG_OK;
}

snug_status sn_op_window(sn_op_id id, const char *axis, int64_t in, int64_t kernel, int64_t stride,
                         int64_t dilation, int64_t before, int64_t after, int64_t *out,
                         snug_error *err)
{
    const int64_t most = (int64_t)1 << 28;
    SN_OP_TRY(sn_op_need_range(id, "a stride", stride, 1, most, err));
    SN_OP_TRY(sn_op_need_range(id, "a dilation", dilation, 1, most, err));
    SN_OP_TRY(sn_op_need_range(id, "a padding", before, 0, most, err));
    SN_OP_TRY(sn_op_need_range(id, "a padding", after, 0, most, err));
    SN_OP_TRY(sn_op_need_range(id, "a window", kernel, 1, most, err));
    SN_OP_TRY(sn_op_need_range(id, axis, in, 1, INT64_MAX / 4, err));
    int64_t reach = (kernel - 1) * dilation + 1, padded = in + before + after;
    if (padded < reach)
        return sn_fail(err, SNUG_E_INPUT,
                       "%s: the window reaches over %" PRId64 " but the padded %s is only %" PRId64,
                       signature[id].name, reach, axis, padded);
    *out = (padded - reach) / stride + 1;
    return SNUG_OK;
}

int64_t sn_op_rows(const sn_shape *shape)
{
    int64_t n = 1;
    for (int i = 0; i + 1 < shape->rank; i++)
        n *= shape->dim[i];
    return n;
}

int64_t sn_op_last(const sn_shape *shape)
{
    return shape->rank > 0 ? shape->dim[shape->rank - 1] : 1;
}

/* ---- costs ----------------------------------------------------------------------------------- */

void sn_op_cost(double flops_per_element, const sn_desc *in, int n_in, const sn_desc *out,
                int n_out, sn_cost *cost)
{
    double most = 0;
    *cost = (sn_cost){0};
    for (int i = 0; i < n_in + n_out; i++) {
        const sn_desc *d = i < n_in ? &in[i] : &out[i - n_in];
        uint64_t bytes, n;
        if (sn_desc_is_absent(d) || sn_desc_bytes(d, &bytes) || sn_shape_count(&d->shape, &n))
            continue;
        *(i < n_in ? &cost->read_bytes : &cost->written_bytes) += (double)bytes;
        most = SN_MAX(most, (double)n);
    }
    cost->flops = flops_per_element * most;
}

/* ---- gradients ------------------------------------------------------------------------------- */

bool sn_op_grad_begin(sn_grad *grad)
{
    for (int i = 0; i < grad->n_in; i++)
        grad->din[i] = SN_NO_REF;
    return grad->dout[0] != SN_NO_REF;
}

snug_status sn_op_emit(sn_grad *grad, sn_op_id op, const sn_attrs *attrs, int n_in,
                       const sn_ref *in, sn_ref *out, snug_error *err)
{
    static const sn_attrs none;
    const bool want[SN_MAX_OUT] = {true};
    sn_ref refs[SN_MAX_OUT];
    SN_OP_TRY(grad->emit(grad, op, attrs ? attrs : &none, n_in, in, count_words(signature[op].out),
                         want, refs, err));
    *out = refs[0];
    return SNUG_OK;
}

snug_status sn_op_emit_act_dx(sn_grad *grad, const sn_act_attrs *act, sn_ref y, sn_ref dy,
                              sn_ref *out, snug_error *err)
{
    *out = dy;
    if (act->kind == SN_ACT_NONE)
        return SNUG_OK;
    sn_attrs attrs = {.act = *act};
    return sn_op_emit(grad, SN_OP_ACTIVATION_DX, &attrs, 2, (sn_ref[]){y, dy}, out, err);
}

snug_status sn_op_emit_reduce_to(sn_grad *grad, sn_ref x, sn_ref like, sn_ref *out, snug_error *err)
{
    sn_desc from = grad->desc(grad, x), to = grad->desc(grad, like);
    *out = x;
    if (sn_shape_eq(&from.shape, &to.shape))
        return SNUG_OK;
    sn_attrs attrs = {.shape.shape = to.shape};
    if (to.shape.rank > 0 && to.shape.rank == from.shape.rank &&
        to.shape.dim[0] == from.shape.dim[0])
        attrs.shape.shape.dim[0] = -1;
    return sn_op_emit(grad, SN_OP_REDUCE_TO, &attrs, 1, &x, out, err);
}

snug_status sn_op_no_second_gradient(sn_grad *grad, snug_error *err)
{
    if (!sn_op_grad_begin(grad))
        return SNUG_OK;
    return sn_fail(err, SNUG_E_UNSUPPORTED, "a gradient of a gradient is asked for");
}

/* ---- small rules ----------------------------------------------------------------------------- */

int sn_op_in_place_first(const sn_attrs *attrs, int index)
{
    SN_UNUSED(attrs);
    return index == 0 ? 0 : -1;
}

int sn_op_in_place_second(const sn_attrs *attrs, int index)
{
    SN_UNUSED(attrs);
    return index == 0 ? 1 : -1;
}

bool sn_op_mixes(const sn_attrs *attrs)
{
    SN_UNUSED(attrs);
    return true;
}
