/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor/tensor.h"

#include <stdio.h>

static const struct {
    const char *name;
    size_t bytes;
} dtypes[SN_N_DTYPES] = {
    [SN_F32] = {"float32", 4}, [SN_F16] = {"float16", 2}, [SN_BF16] = {"bfloat16", 2},
    [SN_I32] = {"int32", 4},   [SN_U8] = {"uint8", 1},
};

size_t sn_dtype_bytes(sn_dtype dtype)
{
    return (unsigned)dtype < SN_N_DTYPES ? dtypes[dtype].bytes : 0;
}

const char *sn_dtype_name(sn_dtype dtype)
{
    return (unsigned)dtype < SN_N_DTYPES ? dtypes[dtype].name : "?";
}

sn_shape sn_shape_of(int rank, const int64_t *dim)
{
    sn_shape shape = {rank, {0}};
    for (int i = 0; i < rank && i < SN_MAX_RANK; i++)
        shape.dim[i] = dim[i];
    return shape;
}

bool sn_shape_eq(const sn_shape *a, const sn_shape *b)
{
    if (a->rank != b->rank)
        return false;
    for (int i = 0; i < a->rank; i++)
        if (a->dim[i] != b->dim[i])
            return false;
    return true;
}

bool sn_shape_count(const sn_shape *shape, uint64_t *count)
{
    if (shape->rank < 0 || shape->rank > SN_MAX_RANK)
        return true;
    uint64_t n = 1;
    for (int i = 0; i < shape->rank; i++)
        if (shape->dim[i] < 0 || sn_mul_u64(&n, n, (uint64_t)shape->dim[i]))
            return true;
    *count = n;
    return n > INT64_MAX;
}

bool sn_desc_bytes(const sn_desc *desc, uint64_t *bytes)
{
    uint64_t n = 0;
    return sn_shape_count(&desc->shape, &n) || sn_mul_u64(bytes, n, sn_dtype_bytes(desc->dtype));
}

int64_t sn_shape_n(const sn_shape *shape)
{
    int64_t n = 1;
    for (int i = 0; i < shape->rank; i++)
        n *= shape->dim[i];
    return n;
}

char *sn_shape_format(char *out, size_t n, const sn_shape *shape)
{
    size_t used = 0;
    if (n == 0)
        return out;
    out[0] = '\0';
    for (int i = 0; i < shape->rank && used < n; i++) {
        int k = snprintf(out + used, n - used, "%s%" PRId64, i ? "," : "[", shape->dim[i]);
        used += k > 0 ? (size_t)k : 0;
    }
    if (used < n)
        (void)snprintf(out + used, n - used, "%s", shape->rank > 0 ? "]" : "[]");
    return out;
}

bool sn_layout_eq(sn_layout a, sn_layout b)
{
    return a.kind == b.kind && a.block == b.block && a.index == b.index;
}

bool sn_shape_broadcast(sn_shape *out, const sn_shape *a, const sn_shape *b)
{
    if (a->rank < 0 || b->rank < 0 || a->rank > SN_MAX_RANK || b->rank > SN_MAX_RANK)
        return false;
    sn_shape shape = {SN_MAX(a->rank, b->rank), {0}};
    for (int i = 0; i < shape.rank; i++) {
        int ia = i - (shape.rank - a->rank), ib = i - (shape.rank - b->rank);
        int64_t da = ia < 0 ? 1 : a->dim[ia], db = ib < 0 ? 1 : b->dim[ib];
        if (da != db && da != 1 && db != 1)
            return false;
        shape.dim[i] = da == 1 ? db : da;
    }
    *out = shape;
    return true;
}
