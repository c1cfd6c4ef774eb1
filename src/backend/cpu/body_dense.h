/* SPDX-License-Identifier: Apache-2.0
 *
 * body_dense.h - y = x w + b, dx = dy w', dw = x' dy, with w [in][out] as it is stored. Few rows:
 * each streams w from memory once. Many rows: a panel of w's columns is packed and stays in the
 * cache. A number is made by one thread, its terms in a fixed order: sequences of DENSE_RUN terms,
 * each from zero, added one after the other; so dw and the fused update see the same bits.
 *
 * Included by simd_*.c only.  Ownership: none.  Threads: bodies of a team.
 */

#define DENSE_RUN 512   /* terms of a sum that is then added to the total */
#define DENSE_TILE 4096 /* floats of y that are kept while w goes by */
#define PANEL (2 * VW)  /* columns of a packed panel */
#if VEC_ISA == 16
#define PANEL_ROWS 12
#else
#define PANEL_ROWS 6
#endif

V_INLINE vf dense_finish(const sn_cpu_dense_job *j, vf y, int64_t column, int64_t left)
{
    if (j->bias)
        y = v_add(y, v_load_some(j->bias + column, left));
    return j->act.kind == SN_ACT_NONE ? y : v_act(&j->act, y);
}

/* ---- few rows -------------------------------------------------------------------------------- */

/* tile[r][width] += x[r][i0..i1) w[i0..i1)[column..column+width), eight rows of w at a time. */
V_INLINE void dense_tile(const sn_cpu_dense_job *j, float *tile, int64_t column, int64_t width,
                         int64_t i0, int64_t i1)
{
    const int64_t n_in = j->n_in, n_out = j->n_out;
    int64_t i = i0;
    for (; i + 8 <= i1; i += 8) {
        const float *w = j->w + i * n_out + column;
        for (int64_t o = 0; o < width; o += VW) {
            int64_t left = width - o;
            vf row[8];
            for (int k = 0; k < 8; k++) {
                row[k] = v_load_some(w + k * n_out + o, left);
                __builtin_prefetch(w + (k + 8) * n_out + o);
            }
            for (int64_t r = 0; r < j->rows; r++) {
                const float *x = j->x + r * n_in + i;
                vf y = v_load_some(tile + r * width + o, left);
                for (int k = 0; k < 8; k++)
                    y = v_fma(v_set1(x[k]), row[k], y);
                v_store_some(tile + r * width + o, y, left);
            }
        }
    }
    for (; i < i1; i++)
        for (int64_t o = 0; o < width; o += VW) {
            int64_t left = width - o;
            vf row = v_load_some(j->w + i * n_out + column + o, left);
            for (int64_t r = 0; r < j->rows; r++) {
                float *y = tile + r * width + o;
                v_store_some(y, v_fma(v_set1(j->x[r * n_in + i]), row, v_load_some(y, left)), left);
            }
        }
}

static void dense_stream(void *job, int thread, int n_threads)
{
    const sn_cpu_dense_job *j = job;
    float tile[DENSE_TILE];
    int64_t columns = DENSE_TILE / j->rows / VW * VW, lines = (j->n_out + VW - 1) / VW;
    int64_t begin = lines * thread / n_threads * VW, end = lines * (thread + 1) / n_threads * VW;
    if (end > j->n_out)
        end = j->n_out;
    for (int64_t column = begin; column < end; column += columns) {
        int64_t width = end - column < columns ? end - column : columns;
        for (int64_t i = 0; i < j->n_in; i += DENSE_RUN) {
            int64_t last = i + DENSE_RUN < j->n_in ? i + DENSE_RUN : j->n_in;
            memset(tile, 0, (size_t)(j->rows * width) * sizeof *tile);
            dense_tile(j, tile, column, width, i, last);
            for (int64_t r = 0; r < j->rows; r++)
                for (int64_t o = 0; o < width; o += VW) {
                    int64_t left = width - o;
                    float *y = j->y + r * j->n_out + column + o;
                    vf v = v_load_some(tile + r * width + o, left);
                    if (i > 0)
                        v = v_add(v_load_some(y, left), v);
                    if (last == j->n_in)
                        v = dense_finish(j, v, column + o, left);
                    v_store_some(y, v, left);
                }
        }
    }
}

/* Products of four rows of w with up to four rows of dy. */
V_INLINE void dense_dots(const sn_cpu_dense_job *j, int64_t i, int n_i, int64_t r, int n_r)
{
    vf sum[4][4];
    const int64_t n_out = j->n_out;
    for (int a = 0; a < n_i; a++)
        for (int b = 0; b < n_r; b++)
            sum[a][b] = v_zero();
    for (int64_t o = 0; o < n_out; o += VW) {
        int64_t left = n_out - o;
        vf w[4];
        for (int a = 0; a < n_i; a++)
            w[a] = v_load_some(j->w + (i + a) * n_out + o, left);
        for (int b = 0; b < n_r; b++) {
            vf d = v_load_some(j->dy + (r + b) * n_out + o, left);
            for (int a = 0; a < n_i; a++)
                sum[a][b] = v_fma(w[a], d, sum[a][b]);
        }
    }
    for (int a = 0; a < n_i; a++)
        for (int b = 0; b < n_r; b++)
            j->y[(r + b) * j->n_in + i + a] = v_sum(sum[a][b]);
}

static void dense_dx_stream(void *job, int thread, int n_threads)
{
    const sn_cpu_dense_job *j = job;
    int64_t groups = (j->n_in + 3) / 4;
    int64_t first = groups * thread / n_threads, last = groups * (thread + 1) / n_threads;
    for (int64_t g = first; g < last; g++) {
        int64_t i = g * 4;
        if (i + 4 <= j->n_in) {
            int64_t r = 0;
            for (; r + 4 <= j->rows; r += 4)
                dense_dots(j, i, 4, r, 4);
            for (; r + 2 <= j->rows; r += 2)
                dense_dots(j, i, 4, r, 2);
            for (; r < j->rows; r++)
                dense_dots(j, i, 4, r, 1);
        } else {
            for (; i < j->n_in; i++)
                for (int64_t r = 0; r < j->rows; r++)
                    dense_dots(j, i, 1, r, 1);
        }
    }
}

/* ---- weight gradients, alone or with the update ---------------------------------------------- */

/* Sums over the rows for n_i inputs and one vector of outputs. */
V_INLINE void dense_outer(const sn_cpu_dense_job *j, int64_t i, int n_i, int64_t o, int64_t left,
                          vf total[4])
{
    for (int64_t r0 = 0; r0 < j->rows; r0 += DENSE_RUN) {
        int64_t r1 = r0 + DENSE_RUN < j->rows ? r0 + DENSE_RUN : j->rows;
        vf sum[4] = {v_zero(), v_zero(), v_zero(), v_zero()};
        for (int64_t r = r0; r < r1; r++) {
            vf d = v_load_some(j->dy + r * j->n_out + o, left);
            const float *x = j->x + r * j->n_in + i;
            for (int a = 0; a < n_i; a++)
                sum[a] = v_fma(v_set1(x[a]), d, sum[a]);
        }
        for (int a = 0; a < n_i; a++)
            total[a] = r0 ? v_add(total[a], sum[a]) : sum[a];
    }
}

V_INLINE void dense_dw_rows(const sn_cpu_dense_job *j, int64_t i, int n_i, bool update,
                            const update_vectors *k, int n_slots)
{
    for (int64_t o = 0; o < j->n_out; o += VW) {
        int64_t left = j->n_out - o;
        vf g[4] = {v_zero(), v_zero(), v_zero(), v_zero()};
        if (update)
            for (int a = 0; a < n_i; a++) {
                int64_t ahead = (i + a) * j->n_out + o + 8 * VW;
                __builtin_prefetch(j->update.w + ahead, 1);
                if (n_slots > 0)
                    __builtin_prefetch(j->update.slot[0] + ahead, 1);
            }
        dense_outer(j, i, n_i, o, left, g);
        for (int a = 0; a < n_i; a++) {
            if (update)
                update_at(&j->update, k, n_slots, (i + a) * j->n_out + o, left, g[a]);
            else
                v_store_some(j->y + (i + a) * j->n_out + o, g[a], left);
        }
    }
}

static void dense_dw(void *job, int thread, int n_threads)
{
    const sn_cpu_dense_job *j = job;
    int64_t groups = (j->n_in + 3) / 4;
    int64_t first = groups * thread / n_threads, last = groups * (thread + 1) / n_threads;
    const update_vectors k = update_vectors_of(&j->update);
    const bool update = j->update.w != NULL;
    for (int64_t g = first; g < last; g++) {
        int64_t i = g * 4;
        if (i + 4 > j->n_in) {
            for (; i < j->n_in; i++)
                dense_dw_rows(j, i, 1, update, &k, j->update.n_slots);
        } else if (!update) {
            dense_dw_rows(j, i, 4, false, &k, 0);
        } else if (j->update.n_slots == 1) {
            dense_dw_rows(j, i, 4, true, &k, 1);
        } else {
            dense_dw_rows(j, i, 4, true, &k, j->update.n_slots);
        }
    }
    if (j->dbias && thread == 0)
        for (int64_t o = 0; o < j->n_out; o += VW) {
            vf sum = v_zero();
            for (int64_t r = 0; r < j->rows; r++)
                sum = v_add(sum, v_load_some(j->dy + r * j->n_out + o, j->n_out - o));
            v_store_some(j->dbias + o, sum, j->n_out - o);
        }
}

/* ---- many rows ------------------------------------------------------------------------------- */

/* packed[k - k0][PANEL] = rows [k0, k1) of columns [column, column+width) of w, or of its
 * transpose.
 */
V_INLINE void panel_pack(const sn_cpu_dense_job *j, float *packed, int64_t k0, int64_t k1,
                         int64_t column, int64_t width, bool transposed)
{
    if (!transposed) {
        for (int64_t k = k0; k < k1; k++) {
            const float *w = j->w + k * j->n_out + column;
            v_store(packed + (k - k0) * PANEL, v_load_some(w, width));
            v_store(packed + (k - k0) * PANEL + VW, v_load_some(w + VW, width - VW));
        }
        return;
    }
    for (int64_t c = 0; c < PANEL; c++) {
        const float *w = j->w + (column + c) * j->n_out;
        for (int64_t k = k0; k < k1; k++)
            packed[(k - k0) * PANEL + c] = c < width ? w[k] : 0.0f;
    }
}

typedef struct panel_place {
    int64_t depth, k0, k1, pitch, column, width;
    bool finish;
} panel_place;

/* n_r rows of a [rows][depth] with a packed panel. */
V_INLINE void panel_rows(const sn_cpu_dense_job *j, const panel_place *p, const float *a,
                         const float *packed, float *y, int n_r)
{
    vf sum[PANEL_ROWS][2];
    for (int r = 0; r < n_r; r++)
        sum[r][0] = sum[r][1] = v_zero();
    for (int64_t k = p->k0; k < p->k1; k++) {
        const float *b = packed + (k - p->k0) * PANEL;
        vf b0 = v_load(b), b1 = v_load(b + VW);
        for (int r = 0; r < n_r; r++) {
            vf x = v_set1(a[r * p->depth + k]);
            sum[r][0] = v_fma(x, b0, sum[r][0]);
            sum[r][1] = v_fma(x, b1, sum[r][1]);
        }
    }
    for (int r = 0; r < n_r; r++)
        for (int h = 0; h < 2; h++) {
            int64_t left = p->width - h * VW;
            float *at = y + r * p->pitch + h * VW;
            if (left <= 0)
                continue;
            vf v = sum[r][h];
            if (p->k0)
                v = v_add(v_load_some(at, left), v);
            if (p->finish)
                v = dense_finish(j, v, p->column + h * VW, left);
            v_store_some(at, v, left);
        }
}

V_INLINE void panel_run(const sn_cpu_dense_job *j, int thread, int n_threads, bool backward)
{
    const int64_t depth = backward ? j->n_out : j->n_in, columns = backward ? j->n_in : j->n_out;
    const float *a = backward ? j->dy : j->x;
    float *packed = j->room + (int64_t)thread * DENSE_RUN * PANEL;
    int64_t panels = (columns + PANEL - 1) / PANEL;
    for (int64_t i = thread; i < panels; i += n_threads) {
        panel_place p = {.depth = depth, .pitch = columns, .column = i * PANEL};
        p.width = columns - p.column < PANEL ? columns - p.column : PANEL;
        for (p.k0 = 0; p.k0 < depth; p.k0 += DENSE_RUN) {
            p.k1 = p.k0 + DENSE_RUN < depth ? p.k0 + DENSE_RUN : depth;
            p.finish = !backward && p.k1 == depth;
            panel_pack(j, packed, p.k0, p.k1, p.column, p.width, backward);
            int64_t r = 0;
            for (; r + PANEL_ROWS <= j->rows; r += PANEL_ROWS)
                panel_rows(j, &p, a + r * depth, packed, j->y + r * columns + p.column, PANEL_ROWS);
            for (; r < j->rows; r++)
                panel_rows(j, &p, a + r * depth, packed, j->y + r * columns + p.column, 1);
        }
    }
}

static void dense_panels(void *job, int thread, int n_threads)
{
    panel_run(job, thread, n_threads, false);
}

static void dense_dx_panels(void *job, int thread, int n_threads)
{
    panel_run(job, thread, n_threads, true);
}
