/* SPDX-License-Identifier: Apache-2.0
 *
 * body_update.h - optimizer steps on flat runs, in the operators' own order of float operations (no
 * fused multiply-add), so that they give the reference's bits; sums of squares in fixed slices.
 *
 * Included by simd_*.c only.  Ownership: none.  Threads: bodies of a team.
 */

typedef struct update_vectors {
    vf lr, momentum, beta1, beta2, rho, epsilon, decay, l2, rest1, rest2, rest_rho, alpha;
    vf clip, norm;
} update_vectors;

V_INLINE update_vectors update_vectors_of(const sn_cpu_update *u)
{
    const sn_update_scalars *s = &u->scalars;
    return (update_vectors){v_set1(s->lr),
                            v_set1(s->momentum),
                            v_set1(s->beta1),
                            v_set1(s->beta2),
                            v_set1(s->rho),
                            v_set1(s->epsilon),
                            v_set1(s->weight_decay),
                            v_set1(s->l2),
                            v_set1(s->one_minus_beta1),
                            v_set1(s->one_minus_beta2),
                            v_set1(s->one_minus_rho),
                            v_set1(s->alpha),
                            v_set1(u->clip_value),
                            v_set1(u->clip_norm)};
}

V_INLINE vf update_clip(const sn_cpu_update *u, const update_vectors *k, vf g)
{
    switch (u->clip) {
    case SN_CPU_CLIP_VALUE: /* NaN stays */
        g = v_select(v_gt(g, k->clip), k->clip, g);
        return v_select(v_gt(v_negative(k->clip), g), v_negative(k->clip), g);
    case SN_CPU_CLIP_NORM:
        return v_div(v_mul(g, k->clip), k->norm);
    case SN_CPU_CLIP_GLOBAL:
        return v_mul(g, k->clip);
    case SN_CPU_CLIP_NONE:
        break;
    }
    return g;
}

/* The new weight; slots change in place. */
V_INLINE vf update_one(const sn_cpu_update *u, const update_vectors *k, vf w, vf g, vf slot[3])
{
    const sn_update_attrs *a = u->attrs;
    if (u->scalars.l2 != 0)
        g = v_add(g, v_mul(k->l2, v_mul(v_set1(2.0f), w)));
    g = update_clip(u, k, g);
    if (u->scalars.weight_decay != 0)
        w = v_sub(w, v_mul(v_mul(w, k->decay), k->lr));
    switch (a->kind) {
    case SN_UPDATE_SGD: {
        vf step = v_mul(g, k->lr);
        if (a->momentum == 0)
            return v_sub(w, step);
        slot[0] = v_sub(v_mul(slot[0], k->momentum), step);
        return v_add(w, a->nesterov ? v_sub(v_mul(slot[0], k->momentum), step) : slot[0]);
    }
    case SN_UPDATE_ADAM:
    case SN_UPDATE_ADAMW:
        slot[0] = v_add(slot[0], v_mul(v_sub(g, slot[0]), k->rest1));
        slot[1] = v_add(slot[1], v_mul(v_sub(v_mul(g, g), slot[1]), k->rest2));
        return v_sub(w, v_div(v_mul(slot[0], k->alpha), v_add(v_sqrt(slot[1]), k->epsilon)));
    case SN_UPDATE_RMSPROP: {
        int mean = a->momentum > 0 ? 2 : 1;
        slot[0] = v_add(v_mul(k->rho, slot[0]), v_mul(k->rest_rho, v_mul(g, g)));
        vf d = v_add(slot[0], k->epsilon);
        if (a->centered) {
            slot[mean] = v_add(v_mul(k->rho, slot[mean]), v_mul(k->rest_rho, g));
            d = v_add(v_sub(slot[0], v_mul(slot[mean], slot[mean])), k->epsilon);
        }
        vf step = v_div(v_mul(k->lr, g), v_sqrt(d));
        if (a->momentum > 0) {
            slot[1] = v_add(v_mul(k->momentum, slot[1]), step);
            step = slot[1];
        }
        return v_sub(w, step);
    }
    case SN_UPDATE_ADAGRAD:
        slot[0] = v_add(slot[0], v_mul(g, g));
        return v_sub(w, v_div(v_mul(k->lr, g), v_sqrt(v_add(slot[0], k->epsilon))));
    case SN_UPDATE_LION: {
        vf c = v_add(v_mul(slot[0], k->beta1), v_mul(g, k->rest1));
        slot[0] = v_add(v_mul(slot[0], k->beta2), v_mul(g, k->rest2));
        vf sign = v_select(v_gt(c, v_zero()), v_set1(1.0f),
                           v_select(v_gt(v_zero(), c), v_set1(-1.0f), c));
        return v_sub(w, v_mul(k->lr, sign));
    }
    case SN_N_UPDATES:
        break;
    }
    return w;
}

V_INLINE void update_at(const sn_cpu_update *u, const update_vectors *k, int n_slots, int64_t i,
                        int64_t left, vf g)
{
    vf slot[3] = {v_zero(), v_zero(), v_zero()};
    for (int s = 0; s < n_slots; s++)
        slot[s] = v_load_some(u->slot[s] + i, left);
    vf w = update_one(u, k, v_load_some(u->w + i, left), g, slot);
    v_store_some(u->w_out + i, w, left);
    for (int s = 0; s < n_slots; s++)
        v_store_some(u->slot_out[s] + i, slot[s], left);
}

static void update_flat(void *job, int thread, int n_threads)
{
    const sn_cpu_update_job *j = job;
    const sn_cpu_update *u = &j->update;
    const update_vectors k = update_vectors_of(u);
    int64_t first, last;
    flat_part(j->n, thread, n_threads, &first, &last);
    for (int64_t i = first; i < last; i += VW)
        update_at(u, &k, u->n_slots, i, last - i, v_load_some(j->g + i, last - i));
}

/* Squares of a (with w: of a + 2*l2*w) in SN_CPU_SLICES fixed slices. */
static void square_slices(void *job, int thread, int n_threads)
{
    const sn_cpu_square_job *j = job;
    const vf l2 = v_set1(2.0f * j->l2);
    for (int slice = 0; slice < SN_CPU_SLICES; slice++) {
        if (slice % n_threads != thread)
            continue;
        int64_t first, last;
        flat_part(j->n, slice, SN_CPU_SLICES, &first, &last);
        double sum[VW] = {0}, total = 0;
        for (int64_t i = first; i < last; i += 32 * VW) {
            int64_t end = i + 32 * VW < last ? i + 32 * VW : last;
            vf run = v_zero();
            for (int64_t k = i; k < end; k += VW) {
                vf x = v_load_some(j->a + k, end - k);
                if (j->w)
                    x = v_add(x, v_mul(l2, v_load_some(j->w + k, end - k)));
                run = v_fma(x, x, run);
            }
            v_add_double(sum, run);
        }
        for (int i = 0; i < VW; i++)
            total += sum[i];
        j->sums[slice] = total;
    }
}
