/* SPDX-License-Identifier: Apache-2.0
 *
 * Convolutions by oneDNN: activations in blocks of channels, weights in whatever the fastest
 * implementation wants; gemm on plain tensors for what no fast one takes.
 *
 * Numbered invariants:
 *  1. what prepare builds has the layouts that propose gave: its primitive's descriptors have the
 *     bytes of the task's operands;
 *  2. the scratch of a smaller batch fits the planned workspace, which is the largest of several
 *     batches.
 */
#include "backend/cpu/conv.h"

#include <string.h>

#include "backend/cpu/kernels.h"

/* ---- geometry -------------------------------------------------------------------------------- */

static void set_weights(sn_cpu_conv *out, const sn_shape *w)
{
    out->kh = w->dim[0];
    out->kw = w->dim[1];
    out->oc = w->dim[3];
}

static void set_x(sn_cpu_conv *out, const sn_shape *x)
{
    out->n = x->dim[0];
    out->h = x->dim[1];
    out->w = x->dim[2];
    out->c = x->dim[3];
}

static void set_y(sn_cpu_conv *out, const sn_shape *y)
{
    out->n = y->dim[0];
    out->oh = y->dim[1];
    out->ow = y->dim[2];
    out->oc = y->dim[3];
}

void sn_cpu_conv_of(sn_cpu_conv *out, sn_op_id op, const sn_attrs *attrs, const sn_desc *in,
                    const sn_desc *y)
{
    const sn_conv_attrs *a = &attrs->conv;
    memset(out, 0, sizeof *out);
    switch (op) {
    case SN_OP_CONV2D:
        set_weights(out, &in[1].shape);
        set_x(out, &in[0].shape);
        set_y(out, &y[0].shape);
        break;
    case SN_OP_CONV2D_DX:
        set_weights(out, &in[1].shape);
        set_y(out, &in[0].shape);
        set_x(out, &y[0].shape);
        break;
    default: /* CONV2D_DW */
        set_weights(out, &y[0].shape);
        set_x(out, &in[0].shape);
        set_y(out, &in[1].shape);
    }
    out->groups = a->groups;
    memcpy(out->stride, a->stride, sizeof out->stride);
    memcpy(out->dilation, a->dilation, sizeof out->dilation);
    memcpy(out->pad, a->pad, sizeof out->pad);
}

void sn_cpu_conv_of_task(sn_cpu_conv *out, const sn_cpu_task *task)
{
    sn_desc in[2] = {task->in[0].desc, task->in[1].desc}, y = task->out[0].desc;
    sn_cpu_conv_of(out, task->op, task->attrs, in, &y);
}

static int weight_dims(int64_t dims[5], const sn_cpu_conv *c)
{
    int64_t o = c->oc / c->groups, i = c->c / c->groups;
    if (c->groups == 1) {
        memcpy(dims, (int64_t[]){o, i, c->kh, c->kw}, 4 * sizeof *dims);
        return 4;
    }
    memcpy(dims, (int64_t[]){c->groups, o, i, c->kh, c->kw}, 5 * sizeof *dims);
    return 5;
}

bool sn_cpu_conv_plain_weights(sn_md *out, const sn_cpu_conv *c)
{
    int64_t dims[5], o = c->oc / c->groups, i = c->c / c->groups;
    int rank = weight_dims(dims, c);
    int64_t strides[5] = {o, 1, c->oc, c->kw * i * c->oc, i * c->oc};
    return sn_md_strided(out, rank, dims, strides + (rank == 4));
}

bool sn_cpu_conv_weights(sn_md *out, const sn_cpu_conv *c, dnnl_format_tag_t tag)
{
    int64_t dims[5];
    int rank = weight_dims(dims, c);
    return sn_md_tag(out, rank, dims, tag);
}

bool sn_cpu_act_is_relu(const sn_act_attrs *act)
{
    return act->kind == SN_ACT_RELU && act->threshold == 0 && act->alpha == 0;
}

/* ---- one primitive descriptor ---------------------------------------------------------------- */

typedef struct conv_ask {
    sn_dnn_pass pass;
    sn_cpu_conv c;
    sn_layout x, y; /* PLAIN or BLOCKED */
    sn_layout w;    /* UNSET: any */
    bool bias, relu;
    float relu_max;
} conv_ask;

static bool act_md(sn_md *out, int64_t n, int64_t c, int64_t h, int64_t w, sn_layout layout)
{
    int64_t dims[4] = {n, c, h, w};
    dnnl_format_tag_t tag = layout.kind == SN_LAYOUT_PLAIN ? dnnl_nhwc
                            : layout.block == 8            ? dnnl_nChw8c
                                                           : dnnl_nChw16c;
    return sn_md_tag(out, 4, dims, tag);
}

/* true: nothing takes it. */
static bool conv_pd(sn_dnn_pd **out, const sn_cpu_device *d, const conv_ask *ask)
{
    const sn_cpu_conv *c = &ask->c;
    sn_md x, y, w, bias;
    int64_t oc = c->oc;
    *out = NULL;
    if (act_md(&x, c->n, c->c, c->h, c->w, ask->x))
        return true;
    bool bad = act_md(&y, c->n, c->oc, c->oh, c->ow, ask->y);
    if (!bad) {
        bad = ask->w.kind == SN_LAYOUT_OPAQUE  ? sn_md_copy(&w, &d->layouts.at[ask->w.index].md)
              : ask->w.kind == SN_LAYOUT_PLAIN ? sn_cpu_conv_plain_weights(&w, c)
                                               : sn_cpu_conv_weights(&w, c, dnnl_format_tag_any);
        if (!bad) {
            bad = sn_md_tag(&bias, 1, &oc, dnnl_a);
            if (!bad) {
                sn_dnn_conv conv = {.pass = ask->pass,
                                    .src = &x,
                                    .weights = &w,
                                    .bias = ask->bias ? &bias : NULL,
                                    .dst = &y,
                                    .stride = {c->stride[0], c->stride[1]},
                                    .dilation = {c->dilation[0], c->dilation[1]},
                                    .pad_low = {c->pad[0], c->pad[2]},
                                    .pad_high = {c->pad[1], c->pad[3]},
                                    .relu = ask->relu,
                                    .relu_max = ask->relu_max};
                bad = sn_dnn_conv_pd(out, &d->dnn, &conv);
                sn_md_free(&bias);
            }
            sn_md_free(&w);
        }
        sn_md_free(&y);
    }
    sn_md_free(&x);
    return bad;
}

static bool is_fast(const char *name)
{
    return (strncmp(name, "jit", 3) == 0 || strncmp(name, "brg", 3) == 0) && !strstr(name, "gemm");
}

static int weights_argument(sn_dnn_pass pass)
{
    return pass == SN_DNN_WEIGHTS ? DNNL_ARG_DIFF_WEIGHTS : DNNL_ARG_WEIGHTS;
}

/* The layout of the weights that a descriptor chose; UNSET: no memory. */
static sn_layout chosen_weights(sn_cpu_device *d, const sn_dnn_pd *pd, const conv_ask *ask)
{
    sn_md md, plain;
    sn_layout out = {SN_LAYOUT_UNSET, 0, 0};
    if (sn_dnn_pd_md(&md, pd, weights_argument(ask->pass)))
        return out;
    if (!sn_cpu_conv_plain_weights(&plain, &ask->c)) {
        if (sn_md_eq(&md, &plain)) {
            out = SN_PLAIN;
        } else {
            int index = sn_cpu_weight_layout_index(d, &md, &plain, false);
            if (index >= 0)
                out = sn_cpu_opaque(index);
        }
        sn_md_free(&plain);
    }
    sn_md_free(&md);
    return out;
}

/* Scratch for this batch and smaller ones (2). */
static uint64_t worst_scratch(const sn_cpu_device *d, const conv_ask *ask, const sn_dnn_pd *pd)
{
    uint64_t worst = sn_dnn_pd_scratch(pd);
    int64_t n = ask->c.n, smaller[] = {1, 2, 3, n / 2, n - 1};
    int64_t last = 0;
    for (size_t i = 0; i < SN_LEN(smaller); i++) {
        if (smaller[i] <= last || smaller[i] >= n)
            continue;
        last = smaller[i];
        conv_ask less = *ask;
        less.c.n = last;
        sn_dnn_pd *p;
        if (conv_pd(&p, d, &less))
            continue;
        worst = SN_MAX(worst, sn_dnn_pd_scratch(p));
        sn_dnn_pd_free(p);
    }
    return worst;
}

/* ---- proposals ------------------------------------------------------------------------------- */

static sn_dnn_pass pass_of(sn_op_id op)
{
    return op == SN_OP_CONV2D      ? SN_DNN_FORWARD
           : op == SN_OP_CONV2D_DX ? SN_DNN_DATA
                                   : SN_DNN_WEIGHTS;
}

/* A layout of weights that belongs to a tensor of these dimensions. */
static bool fits_weights(const sn_cpu_device *d, sn_layout layout, const sn_cpu_conv *c)
{
    sn_md plain;
    if (layout.kind != SN_LAYOUT_OPAQUE || layout.index >= d->layouts.n ||
        sn_cpu_conv_plain_weights(&plain, c))
        return false;
    bool same = sn_md_eq(&plain, &d->layouts.at[layout.index].plain);
    sn_md_free(&plain);
    return same;
}

static void ask_of(conv_ask *ask, const sn_operation *o)
{
    memset(ask, 0, sizeof *ask);
    ask->pass = pass_of(o->op);
    sn_cpu_conv_of(&ask->c, o->op, o->attrs, o->in, o->out);
    ask->bias = ask->pass == SN_DNN_FORWARD   ? o->n_in > 2 && sn_cpu_present(&o->in[2])
                : ask->pass == SN_DNN_WEIGHTS ? o->n_out > 1 && sn_cpu_present(&o->out[1])
                                              : false;
    const sn_act_attrs *act = &o->attrs->conv.act;
    if (ask->pass == SN_DNN_FORWARD && act->kind != SN_ACT_NONE) {
        ask->relu = true;
        ask->relu_max = act->max;
    }
}

static void answer(const sn_operation *o, const conv_ask *ask, sn_layout w, sn_proposal *out)
{
    sn_layout vector = SN_PLAIN;
    switch (ask->pass) {
    case SN_DNN_FORWARD:
        out->in[0] = ask->x;
        out->in[1] = w;
        out->in[2] = vector;
        out->out[0] = ask->y;
        break;
    case SN_DNN_DATA:
        out->in[0] = ask->y;
        out->in[1] = w;
        out->out[0] = ask->x;
        break;
    case SN_DNN_WEIGHTS:
        out->in[0] = ask->x;
        out->in[1] = ask->y;
        out->out[0] = w;
        out->out[1] = vector;
        break;
    }
    SN_UNUSED(o);
}

static const char *refuse_common(const sn_operation *o, const conv_ask *ask)
{
    if (!sn_cpu_all_f32(o))
        return "not float32";
    if (o->op == SN_OP_CONV2D && ask->relu && !sn_cpu_act_is_relu(&o->attrs->conv.act))
        return "activation is not a plain ReLU";
    if (!sn_cpu_wish_ok(o, 0, ask->pass == SN_DNN_FORWARD ? ask->y : ask->x) &&
        ask->pass != SN_DNN_WEIGHTS)
        return "another layout is asked for";
    if (ask->c.n < 1 || ask->c.oh < 1 || ask->c.ow < 1)
        return "empty";
    return NULL;
}

/* Whether the weights' layout as it stands, or as it is wished, is tried before any other. */
static sn_layout given_weights(const sn_cpu_device *d, const sn_operation *o, const conv_ask *ask)
{
    sn_layout none = {SN_LAYOUT_UNSET, 0, 0};
    sn_layout given =
        ask->pass == SN_DNN_WEIGHTS ? (o->out_wish ? o->out_wish[0] : none) : o->in_layout[1];
    return fits_weights(d, given, &ask->c) ? given : none;
}

static const char *try_blocked(sn_cpu_device *d, const sn_operation *o, conv_ask *ask,
                               sn_proposal *out)
{
    sn_dnn_pd *pd = NULL;
    bool bad = conv_pd(&pd, d, ask);
    if (!bad && !is_fast(sn_dnn_pd_name(pd))) {
        sn_dnn_pd_free(pd);
        bad = true;
    }
    if (bad)
        return "no generated kernel for this shape";
    sn_layout w = ask->w.kind != SN_LAYOUT_UNSET ? ask->w : chosen_weights(d, pd, ask);
    if (w.kind == SN_LAYOUT_UNSET) {
        sn_dnn_pd_free(pd);
        return "no room for another weight layout";
    }
    ask->w = w;
    out->workspace_bytes = worst_scratch(d, ask, pd);
    sn_dnn_pd_free(pd);
    answer(o, ask, w, out);
    return NULL;
}

static const char *propose_blocked(sn_cpu_device *d, const sn_operation *o, sn_proposal *out)
{
    conv_ask ask;
    ask_of(&ask, o);
    ask.x = ask.y = SN_BLOCKED(d->block);
    const char *no = refuse_common(o, &ask);
    if (no)
        return no;
    ask.w = given_weights(d, o, &ask);
    if (ask.w.kind != SN_LAYOUT_UNSET && !try_blocked(d, o, &ask, out))
        return NULL;
    if (ask.pass == SN_DNN_WEIGHTS && o->out_wish && o->out_wish[0].kind != SN_LAYOUT_UNSET)
        return "not in the weight's layout";
    ask.w = (sn_layout){SN_LAYOUT_UNSET, 0, 0};
    return try_blocked(d, o, &ask, out);
}

/* Adds room for a weight gradient in a layout of its own, from which it is moved to the weight's.
 * NULL: added; else why not. */
static const char *add_move(const sn_cpu_device *d, const sn_operation *o, sn_layout own,
                            sn_layout wish, sn_proposal *out)
{
    uint64_t bytes;
    if (sn_cpu_mover_scratch(d, own, wish, &bytes))
        return "no way to the weight's layout";
    out->out[0] = wish;
    out->workspace_bytes = sn_align_up(out->workspace_bytes, SN_CPU_ALIGN) +
                           sn_align_up(sn_cpu_layout_bytes(d, &o->out[0], own), SN_CPU_ALIGN) +
                           bytes;
    return NULL;
}

/* Weight gradients whose own layout is not the weight's: computed in the workspace, then moved. */
static const char *propose_moved(sn_cpu_device *d, const sn_operation *o, sn_proposal *out)
{
    conv_ask ask;
    ask_of(&ask, o);
    ask.x = ask.y = SN_BLOCKED(d->block);
    const char *no = refuse_common(o, &ask);
    if (no)
        return no;
    sn_layout wish = o->out_wish ? o->out_wish[0] : SN_PLAIN;
    if (wish.kind != SN_LAYOUT_PLAIN && !fits_weights(d, wish, &ask.c))
        return "no layout is asked for";
    no = try_blocked(d, o, &ask, out);
    if (no)
        return no;
    if (out->out[0].kind != SN_LAYOUT_OPAQUE)
        return "no way to the weight's layout";
    return add_move(d, o, out->out[0], wish, out);
}

/* gemm on plain tensors; it allocates inside. A weight gradient is moved to where the weight lies:
 * processors without AVX2 have no other kernel for it. */
static const char *propose_plain(sn_cpu_device *d, const sn_operation *o, sn_proposal *out)
{
    conv_ask ask;
    ask_of(&ask, o);
    ask.x = ask.y = ask.w = SN_PLAIN;
    const char *no = refuse_common(o, &ask);
    if (no)
        return no;
    bool moved = ask.pass == SN_DNN_WEIGHTS && !sn_cpu_wish_ok(o, 0, SN_PLAIN);
    if (moved && !fits_weights(d, o->out_wish[0], &ask.c))
        return "no layout of this weight is asked for";
    sn_dnn_pd *pd;
    if (conv_pd(&pd, d, &ask))
        return "oneDNN refuses";
    const char *name = sn_dnn_pd_name(pd);
    bool gemm = strstr(name, "gemm") != NULL;
    if (gemm || is_fast(name))
        out->workspace_bytes = worst_scratch(d, &ask, pd);
    bool taken = gemm || is_fast(name);
    sn_dnn_pd_free(pd);
    if (!taken)
        return "oneDNN has its reference only";
    out->runtime_bytes = gemm ? 4 * SN_MIB : 0;
    answer(o, &ask, SN_PLAIN, out);
    return moved ? add_move(d, o, SN_PLAIN, o->out_wish[0], out) : NULL;
}

/* ---- running --------------------------------------------------------------------------------- */

typedef struct conv_state {
    const sn_dnn_prim *prim;
    dnnl_exec_arg_t args[5];
    int n_args;
    bool moved;
    sn_cpu_mover mover;
} conv_state;

typedef struct make_context {
    const sn_cpu_device *device;
    const conv_ask *ask;
} make_context;

static bool make_conv(sn_dnn_pd **out, void *context)
{
    const make_context *c = context;
    return conv_pd(out, c->device, c->ask);
}

static void ask_of_task(conv_ask *ask, const sn_cpu_task *t)
{
    sn_desc in[3], out[2];
    sn_operation o = {.op = t->op, .attrs = t->attrs, .n_in = t->n_in, .n_out = t->n_out};
    for (int i = 0; i < t->n_in; i++)
        in[i] = t->in[i].data ? t->in[i].desc : sn_desc_absent();
    for (int i = 0; i < t->n_out; i++)
        out[i] = t->out[i].data ? t->out[i].desc : sn_desc_absent();
    o.in = in;
    o.out = out;
    ask_of(ask, &o);
    ask->x = ask->pass == SN_DNN_DATA ? t->out[0].layout : t->in[0].layout;
    ask->y = ask->pass == SN_DNN_FORWARD ? t->out[0].layout
             : ask->pass == SN_DNN_DATA  ? t->in[0].layout
                                         : t->in[1].layout;
    ask->w = ask->pass == SN_DNN_WEIGHTS ? t->out[0].layout : t->in[1].layout;
}

/* Adds one operand; true: its descriptor's size is not the task's (1), or oneDNN refuses. */
static bool add_arg(conv_state *state, sn_cpu_task *t, const sn_dnn_pd *pd, int argument,
                    const sn_cpu_arg *a, void *data)
{
    sn_md md;
    if (sn_dnn_pd_md(&md, pd, argument))
        return true;
    sn_dnn_memory *m = NULL;
    if (!a || sn_md_bytes(&md) == a->bytes)
        m = sn_cpu_exec_memory(t->exec, &md, data);
    sn_md_free(&md);
    if (!m)
        return true;
    state->args[state->n_args++] = (dnnl_exec_arg_t){argument, m};
    return false;
}

static bool add_args(conv_state *state, sn_cpu_task *t, const conv_ask *ask, const sn_dnn_pd *pd,
                     void *weights_at)
{
    const sn_cpu_arg *x = ask->pass == SN_DNN_DATA ? &t->out[0] : &t->in[0];
    const sn_cpu_arg *y = ask->pass == SN_DNN_FORWARD ? &t->out[0]
                          : ask->pass == SN_DNN_DATA  ? &t->in[0]
                                                      : &t->in[1];
    const sn_cpu_arg *w = ask->pass == SN_DNN_WEIGHTS ? &t->out[0] : &t->in[1];
    int x_arg = ask->pass == SN_DNN_DATA ? DNNL_ARG_DIFF_SRC : DNNL_ARG_SRC;
    int y_arg = ask->pass == SN_DNN_FORWARD ? DNNL_ARG_DST : DNNL_ARG_DIFF_DST;
    if (add_arg(state, t, pd, x_arg, x, x->data) || add_arg(state, t, pd, y_arg, y, y->data) ||
        add_arg(state, t, pd, weights_argument(ask->pass), weights_at == w->data ? w : NULL,
                weights_at))
        return true;
    if (!ask->bias)
        return false;
    const sn_cpu_arg *b = ask->pass == SN_DNN_FORWARD ? &t->in[2] : &t->out[1];
    return add_arg(state, t, pd, ask->pass == SN_DNN_FORWARD ? DNNL_ARG_BIAS : DNNL_ARG_DIFF_BIAS,
                   b, b->data);
}

static snug_status prepare_conv(sn_cpu_task *t, snug_error *err)
{
    conv_ask ask;
    conv_state *state = sn_cpu_task_state(t, sizeof *state, err);
    if (!state)
        return SNUG_E_MEMORY;
    ask_of_task(&ask, t);
    bool plain = t->kernel == &sn_cpu_k_conv_plain;
    state->moved = t->kernel == &sn_cpu_k_conv_moved || (plain && ask.w.kind != SN_LAYOUT_PLAIN);
    if (state->moved)
        ask.w = plain ? SN_PLAIN : (sn_layout){SN_LAYOUT_UNSET, 0, 0};
    sn_dnn_pd *pd;
    if (conv_pd(&pd, t->device, &ask))
        return sn_fail(err, SNUG_E_INTERNAL, "oneDNN refuses a convolution of batch %" PRId64,
                       ask.c.n);
    uint64_t scratch = sn_dnn_pd_scratch(pd), own = 0;
    sn_layout w = ask.w;
    if (state->moved) {
        w = plain ? SN_PLAIN : chosen_weights(t->device, pd, &ask);
        own = w.kind == SN_LAYOUT_UNSET ? 0 : sn_cpu_layout_bytes(t->device, &t->out[0].desc, w);
    }
    uint64_t at = sn_align_up(scratch, SN_CPU_ALIGN), after = at + sn_align_up(own, SN_CPU_ALIGN);
    unsigned char *room = t->workspace;
    snug_status s = sn_cpu_check_scratch(t, state->moved ? after : scratch, err);
    if (!s && w.kind == SN_LAYOUT_UNSET)
        s = sn_fail(err, SNUG_E_INTERNAL, "no room for another weight layout");
    if (!s) {
        make_context context = {t->device, &ask};
        const sn_cpu_arg *wa = ask.pass == SN_DNN_WEIGHTS ? &t->out[0] : &t->in[1];
        state->prim = sn_cpu_exec_prim(t->exec, &ask, sizeof ask, make_conv, &context);
        bool bad =
            !state->prim || add_args(state, t, &ask, pd, state->moved ? room + at : wa->data);
        if (!bad && scratch) {
            sn_dnn_memory *m = sn_cpu_exec_scratch(t->exec, scratch, room);
            bad = !m;
            state->args[state->n_args++] = (dnnl_exec_arg_t){DNNL_ARG_SCRATCHPAD, m};
        }
        if (bad)
            s = sn_fail(err, SNUG_E_INTERNAL, "a convolution's operands do not have their sizes");
        else if (state->moved)
            s = sn_cpu_mover_init(&state->mover, t, &t->out[0].desc, w, room + at, t->out[0].layout,
                                  t->out[0].data, room + after, t->workspace_bytes - after, err);
    }
    sn_dnn_pd_free(pd);
    return s;
}

static snug_status run_conv(const sn_cpu_task *t, const sn_step *step, snug_error *err)
{
    const conv_state *state = t->state;
    SN_UNUSED(step);
    if (sn_dnn_run(&t->device->dnn, state->prim, state->args, state->n_args))
        return sn_fail(err, SNUG_E_DEVICE, "oneDNN failed in a convolution");
    return state->moved ? sn_cpu_mover_run(t->device, &state->mover, err) : SNUG_OK;
}

const sn_cpu_kernel sn_cpu_k_conv = {"onednn blocked", propose_blocked, prepare_conv, run_conv};
const sn_cpu_kernel sn_cpu_k_conv_moved = {"onednn blocked, moved", propose_moved, prepare_conv,
                                           run_conv};
const sn_cpu_kernel sn_cpu_k_conv_plain = {"onednn plain", propose_plain, prepare_conv, run_conv};
