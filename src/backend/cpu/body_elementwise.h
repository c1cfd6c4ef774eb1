/* SPDX-License-Identifier: Apache-2.0
 *
 * body_elementwise.h - activations and their slopes, sums and products of tensors, on flat runs or
 * with one operand that has a number per channel; sums over pixels.
 *
 * Exponentials are the polynomials of Cephes (Moshier), within two units in the last place; erf is
 * Abramowitz and Stegun 7.1.26, within 2e-7.
 *
 * Included by simd_*.c only.  Ownership: none.  Threads: bodies of a team.
 */

/* ---- functions of one vector ----------------------------------------------------------------- */

/* NaN stays NaN: the bounds are second operands. */
V_INLINE vf v_exp(vf x)
{
    vf t = v_min(v_set1(88.72f), x);
    t = v_max(v_set1(-103.9f), t);
    vf n = v_round(v_mul(t, v_set1(1.44269504088896341f)));
    vf r = v_fma(n, v_set1(-0.693359375f), t);
    r = v_fma(n, v_set1(2.12194440e-4f), r);
    vf p = v_set1(1.9875691500e-4f);
    p = v_fma(p, r, v_set1(1.3981999507e-3f));
    p = v_fma(p, r, v_set1(8.3334519073e-3f));
    p = v_fma(p, r, v_set1(4.1665795894e-2f));
    p = v_fma(p, r, v_set1(1.6666665459e-1f));
    p = v_fma(p, r, v_set1(5.0000001201e-1f));
    p = v_add(v_fma(p, v_mul(r, r), r), v_set1(1.0f));
    vf y = v_select(v_gt(x, v_set1(88.72f)), v_set1(INFINITY), v_scale2(p, n));
    return v_select(v_is_nan(x), x, y);
}

V_INLINE vf v_negative(vf x)
{
    return v_sub(v_zero(), x);
}

V_INLINE vf v_sigmoid(vf x)
{
    return v_div(v_set1(1.0f), v_add(v_set1(1.0f), v_exp(v_negative(x))));
}

V_INLINE vf v_abs(vf x)
{
    return v_max(v_negative(x), x);
}

V_INLINE vf v_tanh(vf x)
{
    vf a = v_abs(x), e = v_exp(v_add(a, a));
    vf large = v_sub(v_set1(1.0f), v_div(v_set1(2.0f), v_add(e, v_set1(1.0f))));
    large = v_select(v_gt(v_zero(), x), v_negative(large), large);
    vf z = v_mul(x, x), p = v_set1(-5.70498872745e-3f);
    p = v_fma(p, z, v_set1(2.06390887954e-2f));
    p = v_fma(p, z, v_set1(-5.37397155531e-2f));
    p = v_fma(p, z, v_set1(1.33314422036e-1f));
    p = v_fma(p, z, v_set1(-3.33332819422e-1f));
    p = v_fma(v_mul(p, z), x, x);
    return v_select(v_gt(a, v_set1(0.625f)), large, p);
}

/* Below 1/2 the series, so that small results keep their digits. */
V_INLINE vf v_expm1(vf x)
{
    vf p = v_set1(1.0f / 5040);
    p = v_fma(p, x, v_set1(1.0f / 720));
    p = v_fma(p, x, v_set1(1.0f / 120));
    p = v_fma(p, x, v_set1(1.0f / 24));
    p = v_fma(p, x, v_set1(1.0f / 6));
    p = v_fma(p, x, v_set1(0.5f));
    p = v_fma(v_mul(p, x), x, x);
    return v_select(v_gt(v_abs(x), v_set1(0.35f)), v_sub(v_exp(x), v_set1(1.0f)), p);
}

/* Phi(x), the normal distribution. */
V_INLINE vf v_phi(vf x)
{
    vf z = v_mul(v_abs(x), v_set1(0.70710678118654752f));
    vf t = v_div(v_set1(1.0f), v_fma(v_set1(0.3275911f), z, v_set1(1.0f)));
    vf p = v_set1(1.061405429f);
    p = v_fma(p, t, v_set1(-1.453152027f));
    p = v_fma(p, t, v_set1(1.421413741f));
    p = v_fma(p, t, v_set1(-0.284496736f));
    p = v_fma(p, t, v_set1(0.254829592f));
    vf half = v_mul(v_set1(0.5f), v_mul(v_mul(p, t), v_exp(v_negative(v_mul(z, z)))));
    return v_select(v_gt(v_zero(), x), half, v_sub(v_set1(1.0f), half));
}

V_INLINE vf v_hard_sigmoid(vf x)
{
    vf t = v_add(x, v_set1(3.0f));
    t = v_min(v_set1(6.0f), v_max(v_zero(), t));
    return v_div(t, v_set1(6.0f));
}

/* (x + 0.044715 x^3) sqrt(2/pi) */
V_INLINE vf v_gelu_inner(vf x)
{
    vf cube = v_mul(v_mul(x, x), x);
    return v_mul(v_set1(0.79788456080286536f), v_fma(v_set1(0.044715f), cube, x));
}

V_INLINE vf v_act(const sn_act_attrs *a, vf x)
{
    vf one = v_set1(1.0f), alpha = v_set1(a->alpha);
    switch (a->kind) {
    case SN_ACT_RELU: {
        vf threshold = v_set1(a->threshold);
        vf low = a->alpha == 0 ? v_zero() : v_mul(alpha, v_sub(x, threshold));
        vf y = v_select(v_or(v_gt(x, threshold), v_is_nan(x)), x, low);
        return a->max > 0
                   ? v_select(v_gt(v_set1(a->max), x), y, v_select(v_is_nan(x), x, v_set1(a->max)))
                   : y;
    }
    case SN_ACT_ELU:
        return v_select(v_gt(x, v_zero()), x, v_mul(alpha, v_expm1(x)));
    case SN_ACT_GELU:
        return v_mul(x, v_phi(x));
    case SN_ACT_GELU_TANH:
        return v_mul(v_mul(v_set1(0.5f), x), v_add(one, v_tanh(v_gelu_inner(x))));
    case SN_ACT_SILU:
        return v_mul(x, v_sigmoid(x));
    case SN_ACT_HARD_SILU:
        return v_mul(x, v_hard_sigmoid(x));
    case SN_ACT_SIGMOID:
        return v_sigmoid(x);
    case SN_ACT_HARD_SIGMOID:
        return v_hard_sigmoid(x);
    case SN_ACT_TANH:
        return v_tanh(x);
    default:
        return x;
    }
}

V_INLINE vf v_gelu_tanh_slope(vf x)
{
    vf one = v_set1(1.0f), half = v_set1(0.5f), t = v_tanh(v_gelu_inner(x));
    vf inner = v_mul(v_set1(0.79788456080286536f), v_fma(v_set1(3 * 0.044715f), v_mul(x, x), one));
    vf right = v_mul(v_mul(half, x), v_mul(v_sub(one, v_mul(t, t)), inner));
    return v_fma(half, v_add(one, t), right);
}

/* from_output: the saved number is y. */
V_INLINE vf v_slope(const sn_act_attrs *a, bool from_output, vf s)
{
    vf one = v_set1(1.0f), alpha = v_set1(a->alpha), zero = v_zero();
    switch (a->kind) {
    case SN_ACT_RELU: {
        vf k = v_select(v_gt(s, v_set1(from_output ? 0.0f : a->threshold)), one, alpha);
        return a->max > 0 ? v_select(v_or(v_gt(v_set1(a->max), s), v_is_nan(s)), k, zero) : k;
    }
    case SN_ACT_ELU:
        return v_select(v_gt(s, zero), one, from_output ? v_add(s, alpha) : v_mul(alpha, v_exp(s)));
    case SN_ACT_GELU: {
        vf density = v_mul(v_set1(0.39894228040143268f), v_exp(v_mul(v_set1(-0.5f), v_mul(s, s))));
        return v_fma(s, density, v_phi(s));
    }
    case SN_ACT_GELU_TANH:
        return v_gelu_tanh_slope(s);
    case SN_ACT_SILU: {
        vf g = v_sigmoid(s);
        return v_mul(g, v_fma(s, v_sub(one, g), one));
    }
    case SN_ACT_HARD_SILU: {
        vf k = v_div(v_fma(v_set1(2.0f), s, v_set1(3.0f)), v_set1(6.0f));
        k = v_select(v_gt(s, v_set1(-3.0f)), k, v_select(v_is_nan(s), s, zero));
        return v_select(v_gt(v_set1(3.0f), s), k, v_select(v_is_nan(s), s, one));
    }
    case SN_ACT_SIGMOID:
        return v_mul(s, v_sub(one, s));
    case SN_ACT_HARD_SIGMOID:
        return v_keep(v_and(v_gt(s, zero), v_gt(one, s)), v_set1(1.0f / 6.0f));
    case SN_ACT_TANH:
        return v_sub(one, v_mul(s, s));
    default:
        return one;
    }
}

/* ---- flat runs ------------------------------------------------------------------------------- */

/* A thread's part of n floats, in whole cache lines. */
V_INLINE void flat_part(int64_t n, int thread, int n_threads, int64_t *first, int64_t *last)
{
    int64_t lines = (n + 15) / 16;
    *first = lines * thread / n_threads * 16;
    *last = lines * (thread + 1) / n_threads * 16;
    if (*last > n)
        *last = n;
}

#define FLAT_LOOP(n_, thread_, n_threads_)                                                         \
    int64_t first_, last_;                                                                         \
    flat_part((n_), (thread_), (n_threads_), &first_, &last_);                                     \
    for (int64_t i = first_, left = last_ - i; i < last_; i += VW, left -= VW)

static void act_forward(void *job, int thread, int n_threads)
{
    const sn_cpu_flat_job *j = job;
    const sn_act_attrs *a = &j->act;
    FLAT_LOOP(j->n, thread, n_threads)
    {
        v_store_some(j->y + i, v_act(a, v_load_some(j->a + i, left)), left);
    }
}

/* dx = dy * slope, and 0 where the slope is 0 whatever dy is. */
static void act_backward(void *job, int thread, int n_threads)
{
    const sn_cpu_flat_job *j = job;
    const sn_act_attrs *a = &j->act;
    const bool from_output = j->from_output;
    if (a->kind == SN_ACT_RELU && a->alpha == 0 && (from_output || a->threshold == 0)) {
        const vf max = v_set1(a->max > 0 ? a->max : INFINITY);
        const bool bounded = a->max > 0;
        FLAT_LOOP(j->n, thread, n_threads)
        {
            vf s = v_load_some(j->a + i, left);
            vm m = v_gt(s, v_zero());
            if (bounded)
                m = v_and(m, v_gt(max, s));
            v_store_some(j->y + i, v_keep(m, v_load_some(j->b + i, left)), left);
        }
        return;
    }
    FLAT_LOOP(j->n, thread, n_threads)
    {
        vf k = v_slope(a, from_output, v_load_some(j->a + i, left));
        vf d = v_mul(v_load_some(j->b + i, left), k);
        v_store_some(j->y + i, v_select(v_eq(k, v_zero()), v_zero(), d), left);
    }
}

V_INLINE vf v_combine(sn_binary_kind kind, vf a, vf b)
{
    switch (kind) {
    case SN_BINARY_ADD:
        return v_add(a, b);
    case SN_BINARY_SUB:
        return v_sub(a, b);
    case SN_BINARY_MUL:
        return v_mul(a, b);
    case SN_BINARY_DIV:
        return v_div(a, b);
    case SN_BINARY_MAX:
        break;
    }
    return v_select(v_or(v_gt(a, b), v_is_nan(a)), a, b);
}

V_INLINE void binary_run(const sn_cpu_flat_job *j, sn_binary_kind kind, int thread, int n_threads)
{
    const vf max = v_set1(j->act.max);
    const bool relu = j->act.kind == SN_ACT_RELU, bounded = relu && j->act.max > 0;
    FLAT_LOOP(j->n, thread, n_threads)
    {
        vf y = v_combine(kind, v_load_some(j->a + i, left), v_load_some(j->b + i, left));
        v_store_some(j->y + i, v_relu(y, relu, bounded, max), left);
    }
}

static void binary_flat(void *job, int thread, int n_threads)
{
    const sn_cpu_flat_job *j = job;
    if (j->kind == SN_BINARY_ADD)
        binary_run(j, SN_BINARY_ADD, thread, n_threads);
    else if (j->kind == SN_BINARY_MUL)
        binary_run(j, SN_BINARY_MUL, thread, n_threads);
    else
        binary_run(j, (sn_binary_kind)j->kind, thread, n_threads);
}

static void scalar_flat(void *job, int thread, int n_threads)
{
    const sn_cpu_flat_job *j = job;
    const vf c = v_set1(j->value), offset = v_set1(j->offset);
    const sn_scalar_kind kind = (sn_scalar_kind)j->kind;
    FLAT_LOOP(j->n, thread, n_threads)
    {
        vf x = v_load_some(j->a + i, left), y = x;
        switch (kind) {
        case SN_SCALAR_ADD:
            y = v_add(x, c);
            break;
        case SN_SCALAR_MUL:
            y = v_mul(x, c);
            break;
        case SN_SCALAR_DIV:
            y = v_div(x, c);
            break;
        case SN_SCALAR_SUB:
            y = v_sub(x, c);
            break;
        case SN_SCALAR_RSUB:
            y = v_sub(c, x);
            break;
        case SN_SCALAR_RDIV:
            y = v_div(c, x);
            break;
        case SN_SCALAR_AFFINE:
            y = v_add(v_mul(x, c), offset);
            break;
        case SN_SCALAR_RDIV_DX:
            y = v_div(v_negative(c), v_mul(x, x));
            break;
        }
        v_store_some(j->y + i, y, left);
    }
}

/* ---- one operand with a number per channel --------------------------------------------------- */

/* y = a op b (or b op a when swapped), b [c] or [n][c]. */
static void binary_channels(void *job, int thread, int n_threads)
{
    const sn_cpu_plane_job *j = job;
    int64_t blocks = (j->c + VW - 1) / VW, units = blocks * j->n;
    int64_t first = units * thread / n_threads, last = units * (thread + 1) / n_threads;
    const bool relu = j->act.kind == SN_ACT_RELU, bounded = relu && j->act.max > 0;
    const vf max = v_set1(j->act.max);
    const sn_binary_kind kind = (sn_binary_kind)j->kind;
    for (int64_t u = first; u < last; u++) {
        int64_t block = u % blocks, s = u / blocks, lanes = j->c - block * VW;
        vf b = v_load_some(j->b + (j->b_samples ? s * j->c : 0) + block * VW, lanes);
        int64_t at = j->blocked ? u * j->pixels * VW : s * j->pixels * j->c + block * VW;
        int64_t stride = j->blocked ? VW : j->c, width = j->blocked ? VW : lanes;
        for (int64_t p = 0; p < j->pixels; p++) {
            vf a = v_load_some(j->a + at + p * stride, width);
            vf y = j->swapped ? v_combine(kind, b, a) : v_combine(kind, a, b);
            v_store_some(j->y + at + p * stride, v_relu(y, relu, bounded, max), width);
        }
    }
}

/* y [c] = sum of a over samples and pixels. Each block of channels by one thread, samples in order.
 */
static void channel_sums(void *job, int thread, int n_threads)
{
    const sn_cpu_plane_job *j = job;
    int64_t blocks = (j->c + VW - 1) / VW;
    int64_t first = blocks * thread / n_threads, last = blocks * (thread + 1) / n_threads;
    for (int64_t block = first; block < last; block++) {
        int64_t lanes = j->c - block * VW, stride = j->blocked ? VW : j->c;
        int64_t width = j->blocked ? VW : lanes;
        double sum[VW] = {0};
        for (int64_t s = 0; s < j->n; s++) {
            const float *a = j->a + (j->blocked ? (s * blocks + block) * j->pixels * VW
                                                : s * j->pixels * j->c + block * VW);
            for (int64_t p = 0; p < j->pixels; p += 128) {
                int64_t end = p + 128 < j->pixels ? p + 128 : j->pixels;
                vf run = v_zero();
                for (int64_t q = p; q < end; q++)
                    run = v_add(run, v_load_some(a + q * stride, width));
                v_add_double(sum, run);
            }
        }
        for (int i = 0; i < VW && i < lanes; i++)
            j->y[block * VW + i] = (float)sum[i];
    }
}

/* y [n][c] = mean or largest of a over the pixels. */
static void plane_pool(void *job, int thread, int n_threads)
{
    const sn_cpu_plane_job *j = job;
    int64_t blocks = (j->c + VW - 1) / VW, units = blocks * j->n;
    int64_t first = units * thread / n_threads, last = units * (thread + 1) / n_threads;
    for (int64_t u = first; u < last; u++) {
        int64_t block = u % blocks, s = u / blocks, lanes = j->c - block * VW;
        const float *a =
            j->a + (j->blocked ? u * j->pixels * VW : s * j->pixels * j->c + block * VW);
        int64_t stride = j->blocked ? VW : j->c, width = j->blocked ? VW : lanes;
        double sum[VW] = {0};
        vf best = v_load_some(a, width);
        for (int64_t p = 0; p < j->pixels; p += 64) {
            int64_t end = p + 64 < j->pixels ? p + 64 : j->pixels;
            vf run = v_zero();
            for (int64_t q = p; q < end; q++) {
                vf v = v_load_some(a + q * stride, width);
                run = v_add(run, v);
                best = v_select(v_or(v_gt(v, best), v_is_nan(v)), v, best);
            }
            v_add_double(sum, run);
        }
        float *y = j->y + s * j->c + block * VW;
        if (j->largest)
            v_store_some(y, best, lanes);
        for (int i = 0; !j->largest && i < VW && i < lanes; i++)
            y[i] = (float)(sum[i] / (double)j->pixels);
    }
}

/* dx = dy [n][c] / pixels, or / (number of pixels that equal the largest) where they do. */
static void plane_pool_dx(void *job, int thread, int n_threads)
{
    const sn_cpu_plane_job *j = job;
    int64_t blocks = (j->c + VW - 1) / VW, units = blocks * j->n;
    int64_t first = units * thread / n_threads, last = units * (thread + 1) / n_threads;
    for (int64_t u = first; u < last; u++) {
        int64_t block = u % blocks, s = u / blocks, lanes = j->c - block * VW;
        int64_t at = j->blocked ? u * j->pixels * VW : s * j->pixels * j->c + block * VW;
        int64_t stride = j->blocked ? VW : j->c, width = j->blocked ? VW : lanes;
        vf dy = v_load_some(j->b + s * j->c + block * VW, lanes), best = v_zero();
        vf count = v_set1((float)j->pixels);
        if (j->largest) {
            best = v_load_some(j->best + s * j->c + block * VW, lanes);
            count = v_zero();
            for (int64_t p = 0; p < j->pixels; p++)
                count = v_add(count, v_keep(v_eq(v_load_some(j->a + at + p * stride, width), best),
                                            v_set1(1.0f)));
        }
        vf share = v_div(dy, count);
        for (int64_t p = 0; p < j->pixels; p++) {
            vf v = share;
            if (j->largest)
                v = v_keep(v_eq(v_load_some(j->a + at + p * stride, width), best), share);
            v_store_some(j->y + at + p * stride, v, width);
        }
    }
}
