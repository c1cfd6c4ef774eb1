/* SPDX-License-Identifier: Apache-2.0
 *
 * body_conv.h - convolutions that oneDNN has no good kernel for: the first one of a network, whose
 * few channels lie PLAIN ([N,H,W,1..4]), and the data gradient of strided depthwise ones.
 *
 * First convolution: with few channels the taps of one row of the kernel, kw*c numbers, are
 * neighbours in a row of the image; rows are copied once with their padding. The weight gradient is
 * summed in fixed slices of output rows, added in their order.
 *
 * Included by simd_*.c only.  Ownership: none.  Threads: bodies of a team.
 */

#if VEC_ISA == 16
#define FIRST_TILE 12
#else
#define FIRST_TILE 6
#endif

/* A convolution's own activation: none, or a ReLU of slope 0 (operators fuse no other). */
V_INLINE vf conv_relu(vf v, const sn_act_attrs *act)
{
    const bool relu = act->kind == SN_ACT_RELU;
    return v_relu(v, relu, relu && act->max > 0, v_set1(act->max));
}

V_INLINE int64_t first_taps(const sn_cpu_first_job *j)
{
    return j->kh * j->kw * j->c;
}
V_INLINE int64_t first_pairs(const sn_cpu_first_job *j)
{
    return (j->oc + 2 * VW - 1) / (2 * VW);
}
V_INLINE int64_t first_row_floats(const sn_cpu_first_job *j)
{
    /* The last tile reads past the last output. */
    return ((j->ow + FIRST_TILE) * j->stride[1] + j->kw) * j->c;
}

/* packed[pair][tap][2 * VW] = w [tap][oc], zeros past oc. */
static void first_pack(void *job, int thread, int n_threads)
{
    const sn_cpu_first_job *j = job;
    const int64_t taps = first_taps(j), pairs = first_pairs(j);
    for (int64_t i = thread; i < taps * pairs; i += n_threads) {
        int64_t pair = i / taps, tap = i % taps, left = j->oc - pair * 2 * VW;
        const float *w = j->w + tap * j->oc + pair * 2 * VW;
        v_store(j->packed + i * 2 * VW, v_load_some(w, left));
        v_store(j->packed + i * 2 * VW + VW, left > VW ? v_load_some(w + VW, left - VW) : v_zero());
    }
}

/* Rows of the image under output row oy, each with its padding; the rows of the kernel that lie
 * inside are [*k0, *k1). */
static void first_rows(const sn_cpu_first_job *j, int64_t n, int64_t oy, float *rows, int64_t *k0,
                       int64_t *k1)
{
    const int64_t floats = first_row_floats(j), top = oy * j->stride[0] - j->pad[0];
    pool_range(top, j->kh, j->h, k0, k1);
    for (int64_t k = *k0; k < *k1; k++) {
        float *row = rows + k * floats;
        int64_t before = j->pad[2] * j->c, width = j->width * j->c;
        if (width > floats - before)
            width = floats - before;
        const float *x = j->x + (n * j->h + top + k) * j->width * j->c;
        memset(row, 0, (size_t)before * sizeof *row);
        memcpy(row + before, x, (size_t)width * sizeof *row);
        memset(row + before + width, 0, (size_t)(floats - before - width) * sizeof *row);
    }
}

/* Where a tile's outputs go, one pair of blocks of channels. */
typedef struct first_place {
    const float *rows, *packed;
    int64_t k0, k1; /* rows of the kernel */
    float bias[2 * VW];
    float *y0, *y1; /* y1 NULL: the pair's second block is none */
} first_place;

/* n_t outputs of a row from ox on. */
V_INLINE void first_tile(const sn_cpu_first_job *j, const first_place *at, int64_t ox,
                         const int n_t)
{
    const int64_t floats = first_row_floats(j), step = j->stride[1] * j->c, run = j->kw * j->c;
    vf sum[FIRST_TILE][2];
    for (int t = 0; t < n_t; t++) {
        sum[t][0] = v_load(at->bias);
        sum[t][1] = v_load(at->bias + VW);
    }
    for (int64_t k = at->k0; k < at->k1; k++) {
        const float *x = at->rows + k * floats + ox * step, *w = at->packed + k * run * 2 * VW;
        for (int64_t i = 0; i < run; i++) {
            vf w0 = v_load(w + i * 2 * VW), w1 = v_load(w + i * 2 * VW + VW);
            for (int t = 0; t < n_t; t++) {
                vf v = v_set1(x[t * step + i]);
                sum[t][0] = v_fma(v, w0, sum[t][0]);
                sum[t][1] = v_fma(v, w1, sum[t][1]);
            }
        }
    }
    for (int t = 0; t < n_t; t++)
        for (int h = 0; h < 2; h++) {
            float *y = h ? at->y1 : at->y0;
            if (!y)
                continue;
            vf v = conv_relu(sum[t][h], &j->act);
            if (j->stream)
                v_stream(y + (ox + t) * VW, v);
            else
                v_store(y + (ox + t) * VW, v);
        }
}

/* Not inlined: what a caller keeps in registers would push the sums out of them. */
static __attribute__((noinline)) void first_whole_tile(const sn_cpu_first_job *j,
                                                       const first_place *at, int64_t ox)
{
    first_tile(j, at, ox, FIRST_TILE);
}
static __attribute__((noinline)) void first_output(const sn_cpu_first_job *j, const first_place *at,
                                                   int64_t ox)
{
    first_tile(j, at, ox, 1);
}

static void first_forward(void *job, int thread, int n_threads)
{
    const sn_cpu_first_job *j = job;
    const int64_t all = j->n * j->oh, pairs = first_pairs(j), blocks = (j->oc + VW - 1) / VW;
    const int64_t taps = first_taps(j);
    float *rows = j->rows + (int64_t)thread * j->kh * first_row_floats(j);
    first_place at = {.rows = rows};
    int64_t first = all * thread / n_threads, last = all * (thread + 1) / n_threads;
    for (int64_t r = first; r < last; r++) {
        int64_t n = r / j->oh, oy = r % j->oh;
        first_rows(j, n, oy, rows, &at.k0, &at.k1);
        for (int64_t p = 0; p < pairs; p++) {
            int64_t c = p * 2 * VW;
            for (int h = 0; h < 2; h++)
                v_store(at.bias + h * VW,
                        j->bias ? v_load_some(j->bias + c + h * VW, j->oc - c - h * VW) : v_zero());
            at.packed = j->packed + p * taps * 2 * VW;
            at.y0 = j->y + ((n * blocks + 2 * p) * j->oh + oy) * j->ow * VW;
            at.y1 = 2 * p + 1 < blocks ? at.y0 + j->oh * j->ow * VW : NULL;
            if (j->ow < FIRST_TILE)
                for (int64_t ox = 0; ox < j->ow; ox++)
                    first_output(j, &at, ox);
            else /* the last tile begins early enough to be whole */
                for (int64_t ox = 0; ox < j->ow; ox += FIRST_TILE)
                    first_whole_tile(j, &at, SN_MIN(ox, j->ow - FIRST_TILE));
        }
    }
    if (j->stream)
        v_fence();
}

/* sums[tap..tap+n_t)[2*VW] += one output row's share. */
V_INLINE void first_outer(const float *x, int64_t step, int64_t ow, const float *d0,
                          const float *d1, int n_t, float *sums)
{
    vf a[FIRST_TILE][2];
    for (int t = 0; t < n_t; t++)
        a[t][0] = a[t][1] = v_zero();
    for (int64_t ox = 0; ox < ow; ox++) {
        vf g0 = v_load(d0 + ox * VW), g1 = v_load(d1 + ox * VW);
        for (int t = 0; t < n_t; t++) {
            vf v = v_set1(x[ox * step + t]);
            a[t][0] = v_fma(v, g0, a[t][0]);
            a[t][1] = v_fma(v, g1, a[t][1]);
        }
    }
    for (int t = 0; t < n_t; t++) {
        float *s = sums + t * 2 * VW;
        v_store(s, v_add(v_load(s), a[t][0]));
        v_store(s + VW, v_add(v_load(s + VW), a[t][1]));
    }
}

V_INLINE void first_row_outer(const sn_cpu_first_job *j, const float *x, const float *d0,
                              const float *d1, float *sums)
{
    const int64_t run = j->kw * j->c, step = j->stride[1] * j->c;
    int64_t i = 0;
    for (; i + FIRST_TILE <= run; i += FIRST_TILE)
        first_outer(x + i, step, j->ow, d0, d1, FIRST_TILE, sums + i * 2 * VW);
#if VEC_ISA == 16
    for (; i + 9 <= run; i += 9)
        first_outer(x + i, step, j->ow, d0, d1, 9, sums + i * 2 * VW);
#endif
    for (; i + 3 <= run; i += 3)
        first_outer(x + i, step, j->ow, d0, d1, 3, sums + i * 2 * VW);
    for (; i < run; i++)
        first_outer(x + i, step, j->ow, d0, d1, 1, sums + i * 2 * VW);
}

/* Slices of the output rows: sums[slice][pair][taps + 1][2*VW], the last row for the bias. */
static void first_weights(void *job, int thread, int n_threads)
{
    const sn_cpu_first_job *j = job;
    const int64_t all = j->n * j->oh, pairs = first_pairs(j), blocks = (j->oc + VW - 1) / VW;
    const int64_t taps = first_taps(j), run = j->kw * j->c, floats = first_row_floats(j);
    const int64_t size = pairs * (taps + 1) * 2 * VW;
    float *rows = j->rows + (int64_t)thread * j->kh * floats;
    /* Where a last block stands alone, the other half of the pair reads zeros. */
    const float *nothing = j->zeros;
    for (int64_t slice = 0; slice < SN_CPU_FIRST_SLICES; slice++) {
        if (slice % n_threads != thread)
            continue;
        float *sums = j->sums + slice * size;
        memset(sums, 0, (size_t)size * sizeof *sums);
        int64_t first = all * slice / SN_CPU_FIRST_SLICES;
        int64_t last = all * (slice + 1) / SN_CPU_FIRST_SLICES;
        for (int64_t r = first; r < last; r++) {
            int64_t n = r / j->oh, oy = r % j->oh, k0, k1;
            first_rows(j, n, oy, rows, &k0, &k1);
            for (int64_t p = 0; p < pairs; p++) {
                const float *d0 = j->dy + ((n * blocks + 2 * p) * j->oh + oy) * j->ow * VW;
                const float *d1 = 2 * p + 1 < blocks ? d0 + j->oh * j->ow * VW : nothing;
                float *at = sums + p * (taps + 1) * 2 * VW;
                for (int64_t k = k0; k < k1; k++)
                    first_row_outer(j, rows + k * floats, d0, d1, at + k * run * 2 * VW);
                if (j->dbias) {
                    float one = 1.0f;
                    first_outer(&one, 0, j->ow, d0, d1, 1, at + taps * 2 * VW);
                }
            }
        }
    }
}

static void first_reduce(void *job, int thread, int n_threads)
{
    const sn_cpu_first_job *j = job;
    const int64_t taps = first_taps(j), pairs = first_pairs(j), n = pairs * (taps + 1);
    for (int64_t i = thread; i < n; i += n_threads) {
        int64_t tap = i % (taps + 1);
        for (int h = 0; h < 2; h++) {
            int64_t c = i / (taps + 1) * 2 * VW + h * VW;
            vf sum = v_zero();
            for (int64_t s = 0; s < SN_CPU_FIRST_SLICES; s++)
                sum = v_add(sum, v_load(j->sums + (s * n + i) * 2 * VW + h * VW));
            if (c >= j->oc)
                continue;
            if (tap < taps)
                v_store_some(j->y + tap * j->oc + c, sum, j->oc - c);
            else if (j->dbias)
                v_store_some(j->dbias + c, sum, j->oc - c);
        }
    }
}

/* ---- depthwise, data gradient ---------------------------------------------------------------- */

/* dx row by row: each covering row of dy is spread with the kernel's stride. w
 * [blocks][kh][kw][VW].
 */
static void depth_data(void *job, int thread, int n_threads)
{
    const sn_cpu_depth_job *j = job;
    const int64_t rows = j->units * j->h, s = j->stride[1];
    int64_t begin = rows * thread / n_threads, end = rows * (thread + 1) / n_threads;
    for (int64_t row = begin; row < end; row++) {
        int64_t u = row / j->h, iy = row % j->h, y0, y1;
        float *dx = j->dx + row * j->w * VW;
        const float *w = j->weights + u % j->blocks * j->kh * j->kw * VW;
        memset(dx, 0, (size_t)(j->w * VW) * sizeof *dx);
        pool_covering(iy, j->pad[0], j->kh, j->stride[0], j->oh, &y0, &y1);
        for (int64_t oy = y0; oy <= y1; oy++) {
            int64_t ky = iy + j->pad[0] - oy * j->stride[0];
            const float *dy = j->dy + (u * j->oh + oy) * j->ow * VW;
            for (int64_t kx = 0; kx < j->kw; kx++) {
                /* ix = ox*s + shift inside [0, w) */
                int64_t shift = kx - j->pad[2], first = shift < 0 ? (-shift + s - 1) / s : 0;
                int64_t last = j->w - 1 - shift < 0 ? -1 : (j->w - 1 - shift) / s;
                if (last > j->ow - 1)
                    last = j->ow - 1;
                vf k = v_load(w + (ky * j->kw + kx) * VW);
                for (int64_t ox = first; ox <= last; ox++) {
                    float *at = dx + (ox * s + shift) * VW;
                    v_store(at, v_fma(v_load(dy + ox * VW), k, v_load(at)));
                }
            }
        }
    }
}
