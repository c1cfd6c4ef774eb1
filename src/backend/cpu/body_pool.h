/* SPDX-License-Identifier: Apache-2.0
 *
 * body_pool.h - pooling with windows on BLOCKED tensors, one block of channels of one sample at a
 * time; dropout on any layout.
 *
 * Included by simd_*.c only.  Ownership: none.  Threads: bodies of a team.
 */

/* [first, last) of the window's positions on one axis that lie inside. */
V_INLINE void pool_range(int64_t start, int64_t window, int64_t size, int64_t *first, int64_t *last)
{
    *first = start < 0 ? -start : 0;
    *last = size - start < window ? size - start : window;
}

/* 1 for channels that exist, 0 past them. */
V_INLINE vf pool_lanes(const sn_cpu_pool_job *j, int64_t unit)
{
    float lanes[VW];
    int64_t blocks = (j->c + VW - 1) / VW, left = j->c - unit % blocks * VW;
    for (int i = 0; i < VW; i++)
        lanes[i] = i < left ? 1.0f : 0.0f;
    return v_load(lanes);
}

static void pool_forward(void *job, int thread, int n_threads)
{
    const sn_cpu_pool_job *j = job;
    int64_t rows = j->units * j->oh;
    int64_t begin = rows * thread / n_threads, end = rows * (thread + 1) / n_threads;
    for (int64_t row = begin; row < end; row++) {
        int64_t u = row / j->oh, oy = row % j->oh, ky0, ky1;
        const float *x = j->x + u * j->h * j->w * VW;
        const vf lanes = pool_lanes(j, u);
        int64_t top = oy * j->stride[0] - j->pad[0];
        pool_range(top, j->window[0], j->h, &ky0, &ky1);
        for (int64_t ox = 0; ox < j->ow; ox++) {
            int64_t left = ox * j->stride[1] - j->pad[2], kx0, kx1, at = (row * j->ow + ox) * VW;
            pool_range(left, j->window[1], j->w, &kx0, &kx1);
            const float *corner = x + (top * j->w + left) * VW;
            if (j->average) {
                vf sum = v_zero();
                for (int64_t ky = ky0; ky < ky1; ky++)
                    for (int64_t kx = kx0; kx < kx1; kx++)
                        sum = v_add(sum, v_load(corner + (ky * j->w + kx) * VW));
                float count = (float)((ky1 - ky0) * (kx1 - kx0));
                v_store(j->y + at, v_div(sum, v_set1(count)));
                continue;
            }
            vf best = v_load(corner + (ky0 * j->w + kx0) * VW);
            vf index = v_set1((float)(ky0 * j->window[1] + kx0));
            for (int64_t ky = ky0; ky < ky1; ky++)
                for (int64_t kx = kx0; kx < kx1; kx++) {
                    vf v = v_load(corner + (ky * j->w + kx) * VW);
                    vm m = v_or(v_gt(v, best), v_andnot(v_is_nan(v), v_is_nan(best)));
                    best = v_select(m, v, best);
                    index = v_select(m, v_set1((float)(ky * j->window[1] + kx)), index);
                }
            v_store(j->y + at, best);
            if (j->index)
                v_store_u8(j->index + at, v_mul(index, lanes));
        }
    }
}

/* First and last output position whose window covers position `at`. */
V_INLINE void pool_covering(int64_t at, int64_t before, int64_t window, int64_t stride,
                            int64_t n_out, int64_t *first, int64_t *last)
{
    int64_t t = at + before;
    *first = t < window ? 0 : (t - window) / stride + 1;
    *last = t / stride < n_out - 1 ? t / stride : n_out - 1;
}

/* Row iy of dx += what output row oy gives it; each output spreads over its window's columns. */
V_INLINE void pool_spread(const sn_cpu_pool_job *j, int64_t u, int64_t iy, int64_t oy, float *dx)
{
    int64_t top = oy * j->stride[0] - j->pad[0], ky0, ky1, at = (u * j->oh + oy) * j->ow * VW;
    const float first = (float)((iy - top) * j->window[1]);
    pool_range(top, j->window[0], j->h, &ky0, &ky1);
    for (int64_t ox = 0; ox < j->ow; ox++, at += VW) {
        int64_t left = ox * j->stride[1] - j->pad[2], kx0, kx1;
        pool_range(left, j->window[1], j->w, &kx0, &kx1);
        float *to = dx + left * VW;
        vf dy = v_load(j->x + at);
        if (j->average) {
            dy = v_div(dy, v_set1((float)((ky1 - ky0) * (kx1 - kx0))));
            for (int64_t kx = kx0; kx < kx1; kx++)
                v_store(to + kx * VW, v_add(v_load(to + kx * VW), dy));
            continue;
        }
        vf index = v_sub(v_load_u8(j->index + at), v_set1(first));
        for (int64_t kx = kx0; kx < kx1; kx++) {
            vf mine = v_keep(v_eq(index, v_set1((float)kx)), dy);
            v_store(to + kx * VW, v_add(v_load(to + kx * VW), mine));
        }
    }
}

static void pool_backward(void *job, int thread, int n_threads)
{
    const sn_cpu_pool_job *j = job;
    int64_t rows = j->units * j->h;
    int64_t begin = rows * thread / n_threads, end = rows * (thread + 1) / n_threads;
    for (int64_t row = begin; row < end; row++) {
        int64_t u = row / j->h, iy = row % j->h, y0, y1;
        float *dx = j->y + row * j->w * VW;
        memset(dx, 0, (size_t)(j->w * VW) * sizeof *dx);
        pool_covering(iy, j->pad[0], j->window[0], j->stride[0], j->oh, &y0, &y1);
        for (int64_t oy = y0; oy <= y1; oy++)
            pool_spread(j, u, iy, oy, dx);
    }
}

/* ---- dropout --------------------------------------------------------------------------------- */

/* Philox4x32-10 as base/rng.c has it, for VW / 2 blocks of one sample: counter (number, sample <<
 * 32 ^ block). A word stands in the lower half of a 64-bit lane; the upper half is anything. The
 * words of the blocks from a on, in their order, and of those from b on: VW each. */
V_INLINE void drop_words(const sn_cpu_drop_job *j, uint32_t sample, uint64_t a, uint64_t b,
                         vd words[2])
{
    const vd m0 = v_set1_word(UINT32_C(0xD2511F53)), m1 = v_set1_word(UINT32_C(0xCD9E8D57));
    vd c[4] = {v_set1_word((uint32_t)j->number), v_set1_word((uint32_t)(j->number >> 32)),
               v_pairs(a, b), v_set1_word(sample)};
    uint32_t k0 = (uint32_t)j->key, k1 = (uint32_t)(j->key >> 32);
    for (int round = 0; round < 10; round++) {
        vd p0 = v_mul_word(m0, c[0]), p1 = v_mul_word(m1, c[2]);
        c[0] = v_xor(v_xor(v_upper(p1), c[1]), v_set1_word(k0));
        c[2] = v_xor(v_xor(v_upper(p0), c[3]), v_set1_word(k1));
        c[1] = p1;
        c[3] = p0;
        k0 += UINT32_C(0x9E3779B9);
        k1 += UINT32_C(0xBB67AE85);
    }
    v_four_words(c, words);
}

/* A dropped element is 0 whatever it was. */
V_INLINE void drop_write(const sn_cpu_drop_job *j, int64_t at, vd words, int64_t n)
{
    vf y = v_mul(v_load_some(j->x + at, n), v_set1(j->scale));
    v_store_some(j->y + at, v_keep(v_words_from(words, j->threshold), y), n);
}

static void drop_plain(void *job, int thread, int n_threads)
{
    const sn_cpu_drop_job *j = job;
    int64_t chunks = (j->each + 2 * VW - 1) / (2 * VW), all = chunks * j->n;
    int64_t first = all * thread / n_threads, last = all * (thread + 1) / n_threads;
    for (int64_t i = first; i < last; i++) {
        int64_t s = i / chunks, e = i % chunks * 2 * VW, at = s * j->each + e;
        uint64_t block = (uint64_t)e / 4;
        vd words[2];
        drop_words(j, (uint32_t)(j->first_sample + (uint64_t)s), block, block + VW / 4, words);
        drop_write(j, at, words[0], j->each - e);
        drop_write(j, at + VW, words[1], j->each - e - VW);
    }
}

/* BLOCKED, c a multiple of 4. */
static void drop_blocked(void *job, int thread, int n_threads)
{
    const sn_cpu_drop_job *j = job;
    const int64_t blocks = (j->c + VW - 1) / VW, units = blocks * j->n;
    int64_t first = units * thread / n_threads, last = units * (thread + 1) / n_threads;
    for (int64_t u = first; u < last; u++) {
        int64_t s = u / blocks, c0 = u % blocks * VW;
        for (int64_t p = 0; p < j->pixels; p += 2) {
            uint64_t block = (uint64_t)(p * j->c + c0) / 4;
            int64_t at = (u * j->pixels + p) * VW;
            vd words[2];
            drop_words(j, (uint32_t)(j->first_sample + (uint64_t)s), block,
                       block + (uint64_t)j->c / 4, words);
            drop_write(j, at, words[0], VW);
            if (p + 1 < j->pixels)
                drop_write(j, at + VW, words[1], VW);
        }
    }
}
