/* SPDX-License-Identifier: Apache-2.0
 *
 * body_norm.h - batch normalisation: statistics, normalisation, backward. A unit is one block of
 * channels of one sample. Sums run in float over short runs and in double between them, shifted by
 * the block's first pixel; a block's units are added in the order of the samples, so that neither
 * threads nor the way a block was shared out change a bit. A thread takes all units of a block
 * twice, statistics then result, so that the second time finds small blocks in its cache; the
 * blocks that do not share out evenly are split by samples.
 *
 * Included by simd_*.c only.  Ownership: none.  Threads: bodies of a team.
 */

#define NORM_RUN 256 /* pixels that are summed in float, by four accumulators */

typedef struct norm_coefs {
    vf mean, scale, beta;
    double rstd[VW];
} norm_coefs;

V_INLINE int64_t norm_blocks(const sn_cpu_norm_job *j)
{
    return (j->c + VW - 1) / VW;
}
/* Where unit (block, sample) begins. */
V_INLINE int64_t norm_at(const sn_cpu_norm_job *j, int64_t block, int64_t sample)
{
    return j->blocked ? (sample * norm_blocks(j) + block) * j->pixels * VW
                      : sample * j->pixels * j->c + block * VW;
}
V_INLINE int64_t norm_stride(const sn_cpu_norm_job *j)
{
    return j->blocked ? VW : j->c;
}
/* Channels of a block that exist. */
V_INLINE int norm_lanes(const sn_cpu_norm_job *j, int64_t block)
{
    int64_t left = j->c - block * VW;
    return left < VW ? (int)left : VW;
}
/* Lanes that a load may touch. */
V_INLINE int norm_width(const sn_cpu_norm_job *j, int64_t block)
{
    return j->blocked ? VW : norm_lanes(j, block);
}

static norm_coefs norm_coefs_of(const sn_cpu_norm_job *j, int64_t block, const float *mean,
                                const float *var)
{
    norm_coefs out;
    float scale[VW] = {0}, beta[VW] = {0}, middle[VW] = {0};
    int lanes = norm_lanes(j, block);
    for (int i = 0; i < VW; i++)
        out.rstd[i] = 0;
    for (int i = 0; i < lanes; i++) {
        int64_t c = block * VW + i;
        out.rstd[i] = 1.0 / sqrt((double)var[i] + (double)j->epsilon);
        scale[i] = (float)(out.rstd[i] * (j->gamma ? (double)j->gamma[c] : 1.0));
        beta[i] = j->beta ? j->beta[c] : 0.0f;
        middle[i] = mean[i];
    }
    out.mean = v_load(middle);
    out.scale = v_load(scale);
    out.beta = v_load(beta);
    return out;
}

/* ---- forward --------------------------------------------------------------------------------- */

V_INLINE void norm_sums(const float *x, int64_t stride, int64_t pixels, int width, vf shift,
                        double *sum, double *square)
{
    for (int64_t p = 0; p < pixels; p += NORM_RUN) {
        int64_t end = p + NORM_RUN < pixels ? p + NORM_RUN : pixels, q = p;
        vf s0 = v_zero(), s1 = s0, s2 = s0, s3 = s0, q0 = s0, q1 = s0, q2 = s0, q3 = s0;
        for (; q + 4 <= end; q += 4) {
            const float *at = x + q * stride;
            vf a = v_sub(width == VW ? v_load(at) : v_load_n(at, width), shift);
            at += stride;
            vf b = v_sub(width == VW ? v_load(at) : v_load_n(at, width), shift);
            at += stride;
            vf c = v_sub(width == VW ? v_load(at) : v_load_n(at, width), shift);
            at += stride;
            vf d = v_sub(width == VW ? v_load(at) : v_load_n(at, width), shift);
            s0 = v_add(s0, a);
            s1 = v_add(s1, b);
            s2 = v_add(s2, c);
            s3 = v_add(s3, d);
            q0 = v_fma(a, a, q0);
            q1 = v_fma(b, b, q1);
            q2 = v_fma(c, c, q2);
            q3 = v_fma(d, d, q3);
        }
        for (; q < end; q++) {
            const float *at = x + q * stride;
            vf a = v_sub(width == VW ? v_load(at) : v_load_n(at, width), shift);
            s0 = v_add(s0, a);
            q0 = v_fma(a, a, q0);
        }
        v_add_double(sum, v_add(v_add(s0, s1), v_add(s2, s3)));
        v_add_double(square, v_add(v_add(q0, q1), v_add(q2, q3)));
    }
}

/* One unit's sums, from zero. */
static void norm_unit_sums(const sn_cpu_norm_job *j, int64_t block, int64_t sample, double *out)
{
    int width = norm_width(j, block);
    const float *x = j->x + norm_at(j, block, sample);
    const float *first = j->x + norm_at(j, block, 0);
    vf shift = v_load_some(first, width);
    for (int i = 0; i < 2 * VW; i++)
        out[i] = 0;
    if (width == VW)
        norm_sums(x, norm_stride(j), j->pixels, VW, shift, out, out + VW);
    else
        norm_sums(x, norm_stride(j), j->pixels, width, shift, out, out + VW);
}

/* Mean and variance of a block from its units' sums. */
static void norm_finish(const sn_cpu_norm_job *j, int64_t block, const float *first,
                        const double *total, float *mean, float *var)
{
    double count = (double)j->n * (double)j->pixels;
    int lanes = norm_lanes(j, block);
    for (int i = 0; i < lanes; i++) {
        double s = total[i] / count, v = total[VW + i] / count - s * s;
        mean[i] = (float)((double)first[i] + s);
        var[i] = v < 0 ? 0.0f : (float)v;
    }
}

V_INLINE void norm_write(const float *x, float *y, int64_t stride, int64_t pixels, int width,
                         const norm_coefs *k, bool relu, bool bounded, vf max, bool stream)
{
    for (int64_t p = 0; p < pixels; p++) {
        vf v = width == VW ? v_load(x + p * stride) : v_load_n(x + p * stride, width);
        v = v_relu(v_fma(v_sub(v, k->mean), k->scale, k->beta), relu, bounded, max);
        if (width != VW)
            v_store_n(y + p * stride, v, width);
        else if (stream)
            v_stream(y + p * stride, v);
        else
            v_store(y + p * stride, v);
    }
}

static void norm_unit_write(const sn_cpu_norm_job *j, int64_t block, int64_t sample,
                            const norm_coefs *k)
{
    int64_t at = norm_at(j, block, sample), stride = norm_stride(j);
    int width = norm_width(j, block);
    vf max = v_set1(j->max);
    bool bounded = j->relu && j->max > 0;
    const float *x = j->x + at;
    float *y = j->y + at;
    if (width != VW)
        norm_write(x, y, stride, j->pixels, width, k, j->relu, bounded, max, false);
    else if (bounded && j->stream)
        norm_write(x, y, stride, j->pixels, VW, k, true, true, max, true);
    else if (bounded)
        norm_write(x, y, stride, j->pixels, VW, k, true, true, max, false);
    else if (j->relu && j->stream)
        norm_write(x, y, stride, j->pixels, VW, k, true, false, max, true);
    else if (j->relu)
        norm_write(x, y, stride, j->pixels, VW, k, true, false, max, false);
    else if (j->stream)
        norm_write(x, y, stride, j->pixels, VW, k, false, false, max, true);
    else
        norm_write(x, y, stride, j->pixels, VW, k, false, false, max, false);
}

static void norm_add(double *total, const double *unit)
{
    for (int i = 0; i < 2 * VW; i++)
        total[i] += unit[i];
}

static void norm_forward(void *job, int thread, int n_threads)
{
    const sn_cpu_norm_job *j = job;
    int64_t shared = norm_blocks(j) - j->n_shared; /* the first shared block */
    double unit[2 * VW], total[2 * VW];
    float mean[VW], var[VW];
    if (j->phase == 0) {
        int64_t first = shared * thread / n_threads, last = shared * (thread + 1) / n_threads;
        for (int64_t b = first; b < last; b++) {
            memset(total, 0, sizeof total);
            for (int64_t s = 0; s < j->n; s++) {
                norm_unit_sums(j, b, s, unit);
                norm_add(total, unit);
            }
            norm_finish(j, b, j->x + norm_at(j, b, 0), total, mean, var);
            memcpy(j->mean_out + b * VW, mean, (size_t)norm_lanes(j, b) * sizeof *mean);
            memcpy(j->var_out + b * VW, var, (size_t)norm_lanes(j, b) * sizeof *var);
            norm_coefs k = norm_coefs_of(j, b, mean, var);
            for (int64_t s = j->n - 1; s >= 0; s--)
                norm_unit_write(j, b, s, &k);
        }
        v_fence();
        return;
    }
    int64_t units = j->n_shared * j->n;
    int64_t first = units * thread / n_threads, last = units * (thread + 1) / n_threads;
    for (int64_t u = first; u < last; u++) {
        int64_t b = u / j->n, s = u % j->n;
        /* In place the first pixel is gone when the others are ready: it is kept. */
        float *shift = (float *)(j->partial + units * 2 * VW) + b * VW;
        if (j->phase == 1) {
            norm_unit_sums(j, shared + b, s, j->partial + u * 2 * VW);
            if (s == 0)
                v_store(shift,
                        v_load_some(j->x + norm_at(j, shared + b, 0), norm_width(j, shared + b)));
            continue;
        }
        memset(total, 0, sizeof total);
        for (int64_t i = 0; i < j->n; i++)
            norm_add(total, j->partial + (b * j->n + i) * 2 * VW);
        norm_finish(j, shared + b, shift, total, mean, var);
        if (s == 0) {
            size_t bytes = (size_t)norm_lanes(j, shared + b) * sizeof *mean;
            memcpy(j->mean_out + (shared + b) * VW, mean, bytes);
            memcpy(j->var_out + (shared + b) * VW, var, bytes);
        }
        norm_coefs k = norm_coefs_of(j, shared + b, mean, var);
        norm_unit_write(j, shared + b, s, &k);
    }
    v_fence();
}

static void norm_apply(void *job, int thread, int n_threads)
{
    const sn_cpu_norm_job *j = job;
    int64_t blocks = norm_blocks(j), units = blocks * j->n;
    int64_t first = units * thread / n_threads, last = units * (thread + 1) / n_threads;
    for (int64_t u = first; u < last; u++) {
        int64_t b = u % blocks, s = u / blocks;
        norm_coefs k = norm_coefs_of(j, b, j->mean + b * VW, j->var + b * VW);
        norm_unit_write(j, b, s, &k);
    }
    v_fence();
}

/* ---- backward -------------------------------------------------------------------------------- */

/* The gradient after the fused ReLU, whose mask is found again as forward computed it. */
V_INLINE vf norm_masked(vf dy, vf centred, const norm_coefs *k, bool relu, bool bounded, vf max)
{
    if (!relu)
        return dy;
    vf y = v_fma(centred, k->scale, k->beta);
    vm m = v_gt(y, v_zero());
    if (bounded)
        m = v_and(m, v_gt(max, y));
    return v_keep(m, dy);
}

V_INLINE void norm_dsums(const float *x, const float *dy, int64_t stride, int64_t pixels, int width,
                         const norm_coefs *k, bool relu, bool bounded, vf max, double *sum,
                         double *product)
{
    for (int64_t p = 0; p < pixels; p += NORM_RUN) {
        int64_t end = p + NORM_RUN < pixels ? p + NORM_RUN : pixels, q = p;
        vf s0 = v_zero(), s1 = s0, t0 = s0, t1 = s0;
        for (; q + 2 <= end; q += 2) {
            const float *at = x + q * stride, *dat = dy + q * stride;
            vf a = v_sub(width == VW ? v_load(at) : v_load_n(at, width), k->mean);
            vf g = width == VW ? v_load(dat) : v_load_n(dat, width);
            g = norm_masked(g, a, k, relu, bounded, max);
            at += stride;
            dat += stride;
            vf b = v_sub(width == VW ? v_load(at) : v_load_n(at, width), k->mean);
            vf h = width == VW ? v_load(dat) : v_load_n(dat, width);
            h = norm_masked(h, b, k, relu, bounded, max);
            s0 = v_add(s0, g);
            s1 = v_add(s1, h);
            t0 = v_fma(g, a, t0);
            t1 = v_fma(h, b, t1);
        }
        if (q < end) {
            const float *at = x + q * stride, *dat = dy + q * stride;
            vf a = v_sub(width == VW ? v_load(at) : v_load_n(at, width), k->mean);
            vf g = width == VW ? v_load(dat) : v_load_n(dat, width);
            g = norm_masked(g, a, k, relu, bounded, max);
            s0 = v_add(s0, g);
            t0 = v_fma(g, a, t0);
        }
        v_add_double(sum, v_add(s0, s1));
        v_add_double(product, v_add(t0, t1));
    }
}

static void norm_unit_dsums(const sn_cpu_norm_job *j, int64_t block, int64_t sample,
                            const norm_coefs *k, double *out)
{
    int64_t at = norm_at(j, block, sample), stride = norm_stride(j);
    int width = norm_width(j, block);
    vf max = v_set1(j->max);
    bool bounded = j->relu && j->max > 0;
    const float *x = j->x + at, *dy = j->dy + at;
    for (int i = 0; i < 2 * VW; i++)
        out[i] = 0;
    if (width != VW)
        norm_dsums(x, dy, stride, j->pixels, width, k, j->relu, bounded, max, out, out + VW);
    else if (bounded)
        norm_dsums(x, dy, stride, j->pixels, VW, k, true, true, max, out, out + VW);
    else if (j->relu)
        norm_dsums(x, dy, stride, j->pixels, VW, k, true, false, max, out, out + VW);
    else
        norm_dsums(x, dy, stride, j->pixels, VW, k, false, false, max, out, out + VW);
}

/* dx = scale*dy + by_x*(x-mean) + constant. */
typedef struct norm_slopes {
    vf by_x, constant;
} norm_slopes;

static norm_slopes norm_slopes_of(const sn_cpu_norm_job *j, const norm_coefs *k,
                                  const double *total)
{
    float by_x[VW], constant[VW], scale[VW];
    double count = (double)j->n * (double)j->pixels;
    v_store(scale, k->scale);
    for (int i = 0; i < VW; i++) {
        double r = k->rstd[i];
        by_x[i] = j->frozen ? 0.0f : (float)(-(double)scale[i] * r * r * total[VW + i] / count);
        constant[i] = j->frozen ? 0.0f : (float)(-(double)scale[i] * total[i] / count);
    }
    return (norm_slopes){v_load(by_x), v_load(constant)};
}

V_INLINE void norm_dwrite(const float *x, const float *dy, float *dx, int64_t stride,
                          int64_t pixels, int width, const norm_coefs *k, const norm_slopes *l,
                          bool relu, bool bounded, vf max, bool stream)
{
    for (int64_t p = 0; p < pixels; p++) {
        const float *at = x + p * stride, *dat = dy + p * stride;
        vf a = v_sub(width == VW ? v_load(at) : v_load_n(at, width), k->mean);
        vf g = width == VW ? v_load(dat) : v_load_n(dat, width);
        g = norm_masked(g, a, k, relu, bounded, max);
        g = v_fma(g, k->scale, v_fma(a, l->by_x, l->constant));
        if (width != VW)
            v_store_n(dx + p * stride, g, width);
        else if (stream)
            v_stream(dx + p * stride, g);
        else
            v_store(dx + p * stride, g);
    }
}

static void norm_unit_dwrite(const sn_cpu_norm_job *j, int64_t block, int64_t sample,
                             const norm_coefs *k, const norm_slopes *l)
{
    int64_t at = norm_at(j, block, sample), stride = norm_stride(j);
    int width = norm_width(j, block);
    vf max = v_set1(j->max);
    bool bounded = j->relu && j->max > 0;
    const float *x = j->x + at, *dy = j->dy + at;
    float *dx = j->y + at;
    if (width != VW)
        norm_dwrite(x, dy, dx, stride, j->pixels, width, k, l, j->relu, bounded, max, false);
    else if (j->stream && bounded)
        norm_dwrite(x, dy, dx, stride, j->pixels, VW, k, l, true, true, max, true);
    else if (bounded)
        norm_dwrite(x, dy, dx, stride, j->pixels, VW, k, l, true, true, max, false);
    else if (j->stream && j->relu)
        norm_dwrite(x, dy, dx, stride, j->pixels, VW, k, l, true, false, max, true);
    else if (j->relu)
        norm_dwrite(x, dy, dx, stride, j->pixels, VW, k, l, true, false, max, false);
    else if (j->stream)
        norm_dwrite(x, dy, dx, stride, j->pixels, VW, k, l, false, false, max, true);
    else
        norm_dwrite(x, dy, dx, stride, j->pixels, VW, k, l, false, false, max, false);
}

static void norm_write_parameters(const sn_cpu_norm_job *j, int64_t block, const norm_coefs *k,
                                  const double *total)
{
    int lanes = norm_lanes(j, block);
    for (int i = 0; i < lanes; i++) {
        if (j->dgamma)
            j->dgamma[block * VW + i] = (float)(total[VW + i] * k->rstd[i]);
        if (j->dbeta)
            j->dbeta[block * VW + i] = (float)total[i];
    }
}

static void norm_backward(void *job, int thread, int n_threads)
{
    const sn_cpu_norm_job *j = job;
    int64_t shared = norm_blocks(j) - j->n_shared;
    double unit[2 * VW], total[2 * VW];
    if (j->phase == 0) {
        int64_t first = shared * thread / n_threads, last = shared * (thread + 1) / n_threads;
        for (int64_t b = first; b < last; b++) {
            norm_coefs k = norm_coefs_of(j, b, j->mean + b * VW, j->var + b * VW);
            memset(total, 0, sizeof total);
            for (int64_t s = 0; s < j->n; s++) {
                norm_unit_dsums(j, b, s, &k, unit);
                norm_add(total, unit);
            }
            norm_write_parameters(j, b, &k, total);
            norm_slopes l = norm_slopes_of(j, &k, total);
            for (int64_t s = j->n - 1; s >= 0; s--)
                norm_unit_dwrite(j, b, s, &k, &l);
        }
        v_fence();
        return;
    }
    int64_t units = j->n_shared * j->n;
    int64_t first = units * thread / n_threads, last = units * (thread + 1) / n_threads;
    for (int64_t u = first; u < last; u++) {
        int64_t b = u / j->n, s = u % j->n, block = shared + b;
        norm_coefs k = norm_coefs_of(j, block, j->mean + block * VW, j->var + block * VW);
        if (j->phase == 1) {
            norm_unit_dsums(j, block, s, &k, j->partial + u * 2 * VW);
            continue;
        }
        memset(total, 0, sizeof total);
        for (int64_t i = 0; i < j->n; i++)
            norm_add(total, j->partial + (b * j->n + i) * 2 * VW);
        if (s == 0)
            norm_write_parameters(j, block, &k, total);
        norm_slopes l = norm_slopes_of(j, &k, total);
        norm_unit_dwrite(j, block, s, &k, &l);
    }
    v_fence();
}
