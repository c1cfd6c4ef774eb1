/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbered invariants:
 *  1. every primitive descriptor is made with dnn->attr or a clone of it: scratch is the caller's;
 *  2. the process-wide cache of primitives is off from the first device on.
 */
#include "backend/cpu/onednn.h"

#include <stdio.h>

#define IS_V3 (DNNL_VERSION_MAJOR >= 3)

snug_status sn_dnn_open(sn_dnn *dnn, int max_isa, snug_error *err)
{
    dnn->engine = NULL;
    dnn->stream = NULL;
    dnn->attr = NULL;
    /* Fails when kernels were made before: then the limit of the first device stands. */
    if (max_isa == 8)
        (void)dnnl_set_max_cpu_isa(dnnl_cpu_isa_avx2);
    else if (max_isa == 1)
        (void)dnnl_set_max_cpu_isa(dnnl_cpu_isa_sse41);
    bool bad =
        dnnl_set_primitive_cache_capacity(0) != dnnl_success ||
        dnnl_engine_create(&dnn->engine, dnnl_cpu, 0) != dnnl_success ||
        dnnl_stream_create(&dnn->stream, dnn->engine, dnnl_stream_default_flags) != dnnl_success ||
        dnnl_primitive_attr_create(&dnn->attr) != dnnl_success ||
        dnnl_primitive_attr_set_scratchpad_mode(dnn->attr, dnnl_scratchpad_mode_user) !=
            dnnl_success;
    if (!bad)
        return SNUG_OK;
    sn_dnn_close(dnn);
    return sn_fail(err, SNUG_E_DEVICE, "oneDNN cannot make an engine for this processor");
}

void sn_dnn_close(sn_dnn *dnn)
{
    if (dnn->attr)
        dnnl_primitive_attr_destroy(dnn->attr);
    if (dnn->stream)
        dnnl_stream_destroy(dnn->stream);
    if (dnn->engine)
        dnnl_engine_destroy(dnn->engine);
    dnn->attr = NULL;
    dnn->stream = NULL;
    dnn->engine = NULL;
}

char *sn_dnn_version(char *out, size_t n)
{
    const dnnl_version_t *v = dnnl_version();
    snprintf(out, n, "%d.%d.%d", v->major, v->minor, v->patch);
    return out;
}

/* ---- memory descriptors ---------------------------------------------------------------------- */

bool sn_md_tag(sn_md *out, int rank, const int64_t *dims, dnnl_format_tag_t tag)
{
#if IS_V3
    out->md = NULL;
    return dnnl_memory_desc_create_with_tag(&out->md, rank, dims, dnnl_f32, tag) != dnnl_success;
#else
    return dnnl_memory_desc_init_by_tag(&out->md, rank, dims, dnnl_f32, tag) != dnnl_success;
#endif
}

bool sn_md_strided(sn_md *out, int rank, const int64_t *dims, const int64_t *strides)
{
#if IS_V3
    out->md = NULL;
    return dnnl_memory_desc_create_with_strides(&out->md, rank, dims, dnnl_f32, strides) !=
           dnnl_success;
#else
    return dnnl_memory_desc_init_by_strides(&out->md, rank, dims, dnnl_f32, strides) !=
           dnnl_success;
#endif
}

bool sn_md_copy(sn_md *out, const sn_md *md)
{
#if IS_V3
    out->md = NULL;
    return dnnl_memory_desc_clone(&out->md, md->md) != dnnl_success;
#else
    out->md = md->md;
    return false;
#endif
}

/* The descriptor as oneDNN's functions take it. */
#if IS_V3
typedef const_dnnl_memory_desc_t md_handle_type;
static md_handle_type md_handle(const sn_md *md)
{
    return md ? md->md : NULL;
}
#else
typedef const dnnl_memory_desc_t *md_handle_type;
static md_handle_type md_handle(const sn_md *md)
{
    return md ? &md->md : NULL;
}
#endif

uint64_t sn_md_bytes(const sn_md *md)
{
    return dnnl_memory_desc_get_size(md_handle(md));
}

bool sn_md_eq(const sn_md *a, const sn_md *b)
{
    return dnnl_memory_desc_equal(md_handle(a), md_handle(b)) == 1;
}

void sn_md_free(sn_md *md)
{
#if IS_V3
    if (md->md)
        dnnl_memory_desc_destroy(md->md);
    md->md = NULL;
#else
    SN_UNUSED(md);
#endif
}

/* ---- primitives ------------------------------------------------------------------------------ */

static bool append_relu(dnnl_primitive_attr_t *out, const sn_dnn *dnn, const sn_dnn_conv *conv)
{
    dnnl_post_ops_t ops = NULL;
    dnnl_primitive_attr_t attr = NULL;
    dnnl_alg_kind_t kind = conv->relu_max > 0 ? dnnl_eltwise_clip : dnnl_eltwise_relu;
    bool bad = dnnl_primitive_attr_clone(&attr, dnn->attr) != dnnl_success ||
               dnnl_post_ops_create(&ops) != dnnl_success;
    if (!bad) {
#if IS_V3
        bad = dnnl_post_ops_append_eltwise(ops, kind, 0.0f, conv->relu_max) != dnnl_success;
#else
        bad = dnnl_post_ops_append_eltwise(ops, 1.0f, kind, 0.0f, conv->relu_max) != dnnl_success;
#endif
    }
    bad = bad || dnnl_primitive_attr_set_post_ops(attr, ops) != dnnl_success;
    if (ops)
        dnnl_post_ops_destroy(ops);
    if (bad && attr)
        dnnl_primitive_attr_destroy(attr);
    *out = bad ? NULL : attr;
    return bad;
}

static dnnl_status_t conv_desc(sn_dnn_pd **out, const sn_dnn *dnn, const sn_dnn_conv *conv,
                               dnnl_primitive_attr_t attr)
{
    md_handle_type src = md_handle(conv->src), w = md_handle(conv->weights),
                   bias = md_handle(conv->bias), dst = md_handle(conv->dst);
    dnnl_dims_t stride = {conv->stride[0], conv->stride[1]};
    dnnl_dims_t dilate = {conv->dilation[0] - 1, conv->dilation[1] - 1};
    dnnl_dims_t low = {conv->pad_low[0], conv->pad_low[1]};
    dnnl_dims_t high = {conv->pad_high[0], conv->pad_high[1]};
    dnnl_alg_kind_t direct = dnnl_convolution_direct;
#if IS_V3
    switch (conv->pass) {
    case SN_DNN_FORWARD:
        return dnnl_convolution_forward_primitive_desc_create(
            out, dnn->engine, dnnl_forward_training, direct, src, w, bias, dst, stride, dilate, low,
            high, attr);
    case SN_DNN_DATA:
    case SN_DNN_WEIGHTS:
        break;
    }
    /* 3.x reads the forward descriptor that goes with a backward one. */
    sn_dnn_pd *hint = NULL;
    dnnl_status_t s = dnnl_convolution_forward_primitive_desc_create(
        &hint, dnn->engine, dnnl_forward_training, direct, src, w, bias, dst, stride, dilate, low,
        high, attr);
    if (s != dnnl_success)
        return s;
    if (conv->pass == SN_DNN_DATA)
        s = dnnl_convolution_backward_data_primitive_desc_create(
            out, dnn->engine, direct, src, w, dst, stride, dilate, low, high, hint, attr);
    else
        s = dnnl_convolution_backward_weights_primitive_desc_create(
            out, dnn->engine, direct, src, w, bias, dst, stride, dilate, low, high, hint, attr);
    dnnl_primitive_desc_destroy(hint);
    return s;
#else
    dnnl_convolution_desc_t desc;
    dnnl_status_t s = dnnl_invalid_arguments;
    switch (conv->pass) {
    case SN_DNN_FORWARD:
        s = dnnl_dilated_convolution_forward_desc_init(&desc, dnnl_forward_training, direct, src, w,
                                                       bias, dst, stride, dilate, low, high);
        break;
    case SN_DNN_DATA:
        s = dnnl_dilated_convolution_backward_data_desc_init(&desc, direct, src, w, dst, stride,
                                                             dilate, low, high);
        break;
    case SN_DNN_WEIGHTS:
        s = dnnl_dilated_convolution_backward_weights_desc_init(&desc, direct, src, w, bias, dst,
                                                                stride, dilate, low, high);
        break;
    }
    if (s != dnnl_success)
        return s;
    return dnnl_primitive_desc_create(out, &desc, attr, dnn->engine, NULL);
#endif
}

bool sn_dnn_conv_pd(sn_dnn_pd **out, const sn_dnn *dnn, const sn_dnn_conv *conv)
{
    dnnl_primitive_attr_t relu = NULL;
    *out = NULL;
    if (conv->relu && append_relu(&relu, dnn, conv))
        return true;
    bool bad = conv_desc(out, dnn, conv, relu ? relu : dnn->attr) != dnnl_success;
    if (relu)
        dnnl_primitive_attr_destroy(relu);
    if (bad)
        *out = NULL;
    return bad;
}

bool sn_dnn_reorder_pd(sn_dnn_pd **out, const sn_dnn *dnn, const sn_md *from, const sn_md *to)
{
    *out = NULL;
    return dnnl_reorder_primitive_desc_create(out, md_handle(from), dnn->engine, md_handle(to),
                                              dnn->engine, dnn->attr) != dnnl_success;
}

bool sn_dnn_matmul_pd(sn_dnn_pd **out, const sn_dnn *dnn, const sn_md *x, const sn_md *w,
                      const sn_md *bias, const sn_md *y)
{
    *out = NULL;
#if IS_V3
    return dnnl_matmul_primitive_desc_create(out, dnn->engine, md_handle(x), md_handle(w),
                                             md_handle(bias), md_handle(y),
                                             dnn->attr) != dnnl_success;
#else
    dnnl_matmul_desc_t desc;
    return dnnl_matmul_desc_init(&desc, md_handle(x), md_handle(w), md_handle(bias),
                                 md_handle(y)) != dnnl_success ||
           dnnl_primitive_desc_create(out, &desc, dnn->attr, dnn->engine, NULL) != dnnl_success;
#endif
}

const char *sn_dnn_pd_name(const sn_dnn_pd *pd)
{
    const char *name = NULL;
    if (dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &name) != dnnl_success)
        return "";
    return name ? name : "";
}

uint64_t sn_dnn_pd_scratch(const sn_dnn_pd *pd)
{
    int64_t bytes = 0;
    md_handle_type md = dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0);
    if (md)
        bytes = (int64_t)dnnl_memory_desc_get_size(md);
    return (uint64_t)bytes;
}

bool sn_dnn_pd_md(sn_md *out, const sn_dnn_pd *pd, int argument)
{
    md_handle_type md = dnnl_primitive_desc_query_md(pd, dnnl_query_exec_arg_md, argument);
    if (!md)
        return true;
#if IS_V3
    out->md = NULL;
    return dnnl_memory_desc_clone(&out->md, md) != dnnl_success;
#else
    out->md = *md;
    return out->md.ndims == 0;
#endif
}

void sn_dnn_pd_free(sn_dnn_pd *pd)
{
    if (pd)
        dnnl_primitive_desc_destroy(pd);
}

sn_dnn_prim *sn_dnn_prim_new(const sn_dnn_pd *pd)
{
    sn_dnn_prim *prim = NULL;
    return dnnl_primitive_create(&prim, pd) == dnnl_success ? prim : NULL;
}

void sn_dnn_prim_free(sn_dnn_prim *prim)
{
    if (prim)
        dnnl_primitive_destroy(prim);
}

sn_dnn_memory *sn_dnn_memory_new(const sn_dnn *dnn, const sn_md *md, void *data)
{
    sn_dnn_memory *memory = NULL;
    return dnnl_memory_create(&memory, md_handle(md), dnn->engine, data) == dnnl_success ? memory
                                                                                         : NULL;
}

sn_dnn_memory *sn_dnn_scratch_new(const sn_dnn *dnn, uint64_t bytes, void *data)
{
    sn_dnn_memory *memory = NULL;
    dnnl_dims_t dims = {(int64_t)bytes};
    dnnl_status_t s;
#if IS_V3
    dnnl_memory_desc_t md = NULL;
    s = dnnl_memory_desc_create_with_tag(&md, 1, dims, dnnl_u8, dnnl_a);
    if (s == dnnl_success)
        s = dnnl_memory_create(&memory, md, dnn->engine, data);
    if (md)
        dnnl_memory_desc_destroy(md);
#else
    dnnl_memory_desc_t md;
    s = dnnl_memory_desc_init_by_tag(&md, 1, dims, dnnl_u8, dnnl_a);
    if (s == dnnl_success)
        s = dnnl_memory_create(&memory, &md, dnn->engine, data);
#endif
    return s == dnnl_success ? memory : NULL;
}

void sn_dnn_memory_free(sn_dnn_memory *memory)
{
    if (memory)
        dnnl_memory_destroy(memory);
}

bool sn_dnn_run(const sn_dnn *dnn, const sn_dnn_prim *prim, const dnnl_exec_arg_t *args, int n)
{
    return dnnl_primitive_execute(prim, dnn->stream, n, args) != dnnl_success ||
           dnnl_stream_wait(dnn->stream) != dnnl_success;
}
