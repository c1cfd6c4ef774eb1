/* SPDX-License-Identifier: Apache-2.0
 *
 * body_winograd.h - convolutions of 3x3, stride 1, by Winograd's minimal filtering F(2x2, 3x3):
 * 16 products where the direct way takes 36. Lavin and Gray, "Fast Algorithms for Convolutional
 * Neural Networks", 2015, section 4.1; the weights' gradient is F(3x3, 2x2) at the same points.
 *
 *     y = A' [ (G w G') . (B' x B) ] A,    dw = C' [ (H dy H') . (B' x B) ] C
 *
 *     B' = 1  0 -1  0    G = 1   0   0     A' = 1 1  1  0    H = 1   0     C' = 1 1  1  0
 *          0  1  1  0       1/2 1/2 1/2         0 1 -1 -1       1/2 1/2         0 1 -1  0
 *          0 -1  1  0       1/2 -1/2 1/2                        1/2 -1/2        0 1  1 -1
 *          0  1  0 -1        0   0   1                           0   1
 *
 * The products of one of the 16 points are a matrix product over all tiles and channels. Sums go
 * over the channels (or the tiles) in a fixed order: the bits do not depend on the team.
 *
 * Arrays: points [16][blocks][tiles][VW], weights [16][blocks of outputs][inputs][VW]; a point
 * begins one vector later than its size says, as distances of a power of two share few lines of
 * the cache.
 *
 * Included by simd_*.c only.  Ownership: none.  Threads: bodies of a team.
 */

#if VEC_ISA == 16
#define WINO_ROWS 12
#elif VEC_ISA == 8
#define WINO_ROWS 6
#else
#define WINO_ROWS 2
#endif
/* Channels of the weights' gradient that are summed together, and blocks beside them. */
#define WINO_LANES (VW / 2)
#if VEC_ISA == 1
#define WINO_BLOCKS 1
#else
#define WINO_BLOCKS 3
#endif

V_INLINE int64_t wino_blocks(int64_t channels)
{
    return (channels + VW - 1) / VW;
}
/* From a point to the next one. */
V_INLINE int64_t wino_pitch(int64_t blocks, int64_t each)
{
    return (blocks * each + 1) * VW;
}

/* Blocks of the input that one thread takes at most. */
V_INLINE int64_t wino_part_blocks(const sn_cpu_wino_job *j)
{
    return (wino_blocks(j->c) + j->parts - 1) / j->parts;
}

/* ---- transforms of one tile, a vector of channels -------------------------------------------- */

/* v = B' v */
V_INLINE void wino_data_1d(vf v[4])
{
    vf a = v_sub(v[0], v[2]), b = v_add(v[1], v[2]), c = v_sub(v[2], v[1]), d = v_sub(v[1], v[3]);
    v[0] = a, v[1] = b, v[2] = c, v[3] = d;
}

/* out = G g */
V_INLINE void wino_filter_1d(const vf g[3], vf out[4])
{
    const vf half = v_set1(0.5f);
    vf ends = v_add(g[0], g[2]);
    out[0] = g[0];
    out[1] = v_mul(half, v_add(ends, g[1]));
    out[2] = v_mul(half, v_sub(ends, g[1]));
    out[3] = g[2];
}

/* out = H g */
V_INLINE void wino_gradient_1d(vf g0, vf g1, vf out[4])
{
    const vf half = v_set1(0.5f);
    out[0] = g0;
    out[1] = v_mul(half, v_add(g0, g1));
    out[2] = v_mul(half, v_sub(g0, g1));
    out[3] = g1;
}

/* out = A' m */
V_INLINE void wino_output_1d(const vf m[4], vf out[2])
{
    out[0] = v_add(v_add(m[0], m[1]), m[2]);
    out[1] = v_sub(v_sub(m[1], m[2]), m[3]);
}

/* out = C' m */
V_INLINE void wino_weights_1d(const vf m[4], vf out[3])
{
    vf both = v_add(m[1], m[2]);
    out[0] = v_add(m[0], both);
    out[1] = v_sub(m[1], m[2]);
    out[2] = v_sub(both, m[3]);
}

/* to[point * pitch] = B' d B */
V_INLINE void wino_data(vf d[4][4], float *to, int64_t pitch)
{
    for (int x = 0; x < 4; x++) {
        vf column[4] = {d[0][x], d[1][x], d[2][x], d[3][x]};
        wino_data_1d(column);
        for (int y = 0; y < 4; y++)
            d[y][x] = column[y];
    }
    for (int y = 0; y < 4; y++) {
        wino_data_1d(d[y]);
        for (int x = 0; x < 4; x++)
            v_store(to + (y * 4 + x) * pitch, d[y][x]);
    }
}

/* to[point * pitch] = G g G' */
V_INLINE void wino_filter(vf g[3][3], float *to, int64_t pitch)
{
    vf rows[4][3];
    for (int x = 0; x < 3; x++) {
        vf column[3] = {g[0][x], g[1][x], g[2][x]}, out[4];
        wino_filter_1d(column, out);
        for (int y = 0; y < 4; y++)
            rows[y][x] = out[y];
    }
    for (int y = 0; y < 4; y++) {
        vf out[4];
        wino_filter_1d(rows[y], out);
        for (int x = 0; x < 4; x++)
            v_store(to + (y * 4 + x) * pitch, out[x]);
    }
}

/* to[point * pitch] = H g H' */
V_INLINE void wino_gradient(vf g[2][2], float *to, int64_t pitch)
{
    vf left[4], right[4];
    wino_gradient_1d(g[0][0], g[1][0], left);
    wino_gradient_1d(g[0][1], g[1][1], right);
    for (int y = 0; y < 4; y++) {
        vf out[4];
        wino_gradient_1d(left[y], right[y], out);
        for (int x = 0; x < 4; x++)
            v_store(to + (y * 4 + x) * pitch, out[x]);
    }
}

/* ---- tiles ----------------------------------------------------------------------------------- */

typedef struct wino_at {
    int64_t n, row, column; /* of the tile in its grid */
} wino_at;

V_INLINE wino_at wino_tile(const sn_cpu_wino_job *j, int64_t tile)
{
    int64_t grid = j->tile_rows * j->tile_columns, rest = tile % grid;
    return (wino_at){tile / grid, rest / j->tile_columns, rest % j->tile_columns};
}

V_INLINE void wino_next(const sn_cpu_wino_job *j, wino_at *at)
{
    if (++at->column < j->tile_columns)
        return;
    at->column = 0;
    if (++at->row < j->tile_rows)
        return;
    at->row = 0;
    at->n++;
}

/* n tiles of one block of the input, into to[point * pitch + tile * VW]. */
static void wino_load_tiles(const sn_cpu_wino_job *j, int64_t block, int64_t first, int64_t n,
                            float *to, int64_t pitch)
{
    const int64_t blocks = wino_blocks(j->c), plane = j->h * j->w * VW;
    wino_at at = wino_tile(j, first);
    for (int64_t i = 0; i < n; i++, wino_next(j, &at)) {
        const float *x = j->x + (at.n * blocks + block) * plane;
        int64_t top = at.row * 2 - j->top, left = at.column * 2 - j->left;
        vf d[4][4];
        if (top >= 0 && left >= 0 && top + 4 <= j->h && left + 4 <= j->w) {
            for (int r = 0; r < 4; r++)
                for (int c = 0; c < 4; c++)
                    d[r][c] = v_load(x + ((top + r) * j->w + left + c) * VW);
        } else {
            for (int r = 0; r < 4; r++)
                for (int c = 0; c < 4; c++) {
                    bool inside =
                        top + r >= 0 && top + r < j->h && left + c >= 0 && left + c < j->w;
                    d[r][c] = inside ? v_load(x + ((top + r) * j->w + left + c) * VW) : v_zero();
                }
        }
        wino_data(d, to + i * VW, pitch);
    }
}

/* The same of the output's gradient. */
static void wino_load_gradients(const sn_cpu_wino_job *j, int64_t block, int64_t first, int64_t n,
                                float *to, int64_t pitch)
{
    const int64_t blocks = wino_blocks(j->oc), plane = j->oh * j->ow * VW;
    wino_at at = wino_tile(j, first);
    for (int64_t i = 0; i < n; i++, wino_next(j, &at)) {
        const float *dy = j->dy + (at.n * blocks + block) * plane;
        vf g[2][2];
        for (int r = 0; r < 2; r++)
            for (int c = 0; c < 2; c++) {
                int64_t y = at.row * 2 + r, x = at.column * 2 + c;
                g[r][c] = y < j->oh && x < j->ow ? v_load(dy + (y * j->ow + x) * VW) : v_zero();
            }
        wino_gradient(g, to + i * VW, pitch);
    }
}

/* n tiles of one block of the output, from their products. */
static void wino_store_tiles(const sn_cpu_wino_job *j, int64_t block, int64_t first, int64_t n,
                             const float *from, int64_t pitch)
{
    const int64_t blocks = wino_blocks(j->oc), plane = j->oh * j->ow * VW;
    const int64_t left_over = j->oc - block * VW;
    const vf bias = j->bias ? v_load_some(j->bias + block * VW, left_over) : v_zero();
    wino_at at = wino_tile(j, first);
    for (int64_t i = 0; i < n; i++, wino_next(j, &at)) {
        const float *m = from + i * VW;
        vf rows[2][4];
        for (int x = 0; x < 4; x++) {
            vf column[4], out[2];
            for (int y = 0; y < 4; y++)
                column[y] = v_load(m + (y * 4 + x) * pitch);
            wino_output_1d(column, out);
            for (int r = 0; r < 2; r++)
                rows[r][x] = out[r];
        }
        float *y = j->y + (at.n * blocks + block) * plane;
        bool right = at.column * 2 + 1 < j->ow;
        for (int r = 0; r < 2 && at.row * 2 + r < j->oh; r++) {
            float *to = y + ((at.row * 2 + r) * j->ow + at.column * 2) * VW;
            vf out[2];
            wino_output_1d(rows[r], out);
            v_store(to, conv_relu(v_add(bias, out[0]), &j->act));
            if (right)
                v_store(to + VW, conv_relu(v_add(bias, out[1]), &j->act));
        }
    }
}

/* ---- output, and data gradient --------------------------------------------------------------- */

/* The taps of input k, from w [3][3][c][oc]: vectors of a block of the outputs. */
V_INLINE void wino_taps(const sn_cpu_wino_job *j, int64_t block, int64_t k, vf taps[3][3])
{
    for (int r = 0; r < 3; r++)
        for (int s = 0; s < 3; s++)
            taps[r][s] = v_load_some(j->weights + ((r * 3 + s) * j->c + k) * j->oc + block * VW,
                                     j->oc - block * VW);
}

/* The data gradient's: turned by 180 degrees, inputs and outputs changed over: VW inputs at once,
 * from w [3][3][oc][c] of the job's names. */
static void wino_turned_taps(const sn_cpu_wino_job *j, int64_t block, int64_t k0, int64_t n,
                             float *taps)
{
    const int64_t lanes = j->oc - block * VW;
    for (int t = 0; t < 9; t++) {
        const float *w = j->weights + ((8 - t) * j->oc + block * VW) * j->c + k0;
        vf rows[VW];
        for (int lane = 0; lane < VW; lane++)
            rows[lane] = lane < lanes ? v_load_some(w + lane * j->c, n) : v_zero();
        v_transpose(rows);
        for (int k = 0; k < VW; k++)
            v_store(taps + (k * 9 + t) * VW, rows[k]);
    }
}

/* u [16][blocks of oc][c in whole blocks][VW] */
static void wino_weights(void *job, int thread, int n_threads)
{
    const sn_cpu_wino_job *j = job;
    const int64_t in = wino_blocks(j->c), out = wino_blocks(j->oc);
    const int64_t pitch = wino_pitch(out, in * VW);
    int64_t first = in * out * thread / n_threads, last = in * out * (thread + 1) / n_threads;
    float turned[VW * 9 * VW];
    for (int64_t i = first; i < last; i++) {
        int64_t block = i / in, k0 = i % in * VW, n = j->c - k0 < VW ? j->c - k0 : VW;
        float *u = j->u + (block * in * VW + k0) * VW;
        if (j->turned)
            wino_turned_taps(j, block, k0, n, turned);
        for (int64_t k = 0; k < VW; k++) {
            vf taps[3][3];
            if (k >= n)
                for (int t = 0; t < 9; t++)
                    taps[t / 3][t % 3] = v_zero();
            else if (j->turned)
                for (int t = 0; t < 9; t++)
                    taps[t / 3][t % 3] = v_load(turned + (k * 9 + t) * VW);
            else
                wino_taps(j, block, k0 + k, taps);
            wino_filter(taps, u + k * VW, pitch);
        }
    }
}

/* m [n_blocks][rows][VW] = v [blocks of c][rows][VW] times u [n_blocks][c][VW]. */
V_INLINE void wino_product(const float *v, const float *u, int64_t blocks, int64_t chunk, float *m,
                           const int rows, const int n_blocks)
{
    const int64_t u_block = blocks * VW * VW;
    vf sum[WINO_ROWS][2];
    for (int r = 0; r < rows; r++)
        for (int b = 0; b < n_blocks; b++)
            sum[r][b] = v_zero();
    for (int64_t block = 0; block < blocks; block++, v += chunk * VW)
        V_ROLLED for (int k = 0; k < VW; k++, u += VW)
        {
            vf u0 = v_load(u), u1 = n_blocks > 1 ? v_load(u + u_block) : v_zero();
            for (int r = 0; r < rows; r++) {
                vf x = v_set1(v[r * VW + k]);
                sum[r][0] = v_fma(x, u0, sum[r][0]);
                if (n_blocks > 1)
                    sum[r][1] = v_fma(x, u1, sum[r][1]);
            }
        }
    for (int r = 0; r < rows; r++)
        for (int b = 0; b < n_blocks; b++)
            v_store(m + (b * chunk + r) * VW, sum[r][b]);
}

#define WINO_CASE(rows)                                                                            \
    case rows:                                                                                     \
        if (n_blocks > 1)                                                                          \
            wino_product(v, u, blocks, chunk, m, rows, 2);                                         \
        else                                                                                       \
            wino_product(v, u, blocks, chunk, m, rows, 1);                                         \
        break

static void wino_rows(int rows, int n_blocks, const float *v, const float *u, int64_t blocks,
                      int64_t chunk, float *m)
{
    switch (rows) {
        WINO_CASE(1);
        WINO_CASE(2);
#if WINO_ROWS >= 6
        WINO_CASE(3);
        WINO_CASE(4);
        WINO_CASE(5);
        WINO_CASE(6);
#endif
#if WINO_ROWS >= 12
        WINO_CASE(7);
        WINO_CASE(8);
        WINO_CASE(9);
        WINO_CASE(10);
        WINO_CASE(11);
        WINO_CASE(12);
#endif
    default:
        break;
    }
}

/* Products of one point, n tiles in nearly equal groups of rows. */
static void wino_point(const float *v, const float *u, int64_t in, int64_t out, int64_t chunk,
                       int64_t n, float *m)
{
    const int64_t groups = (n + WINO_ROWS - 1) / WINO_ROWS;
    for (int64_t block = 0; block < out; block += 2) {
        int n_blocks = out - block > 1 ? 2 : 1;
        for (int64_t g = 0; g < groups; g++) {
            int64_t row = n * g / groups, end = n * (g + 1) / groups;
            wino_rows((int)(end - row), n_blocks, v + row * VW, u + block * in * VW * VW, in, chunk,
                      m + (block * chunk + row) * VW);
        }
    }
}

static void wino_forward(void *job, int thread, int n_threads)
{
    const sn_cpu_wino_job *j = job;
    const int64_t in = wino_blocks(j->c), out = wino_blocks(j->oc);
    const int64_t v_pitch = wino_pitch(in, j->chunk), m_pitch = wino_pitch(out, j->chunk);
    const int64_t u_pitch = wino_pitch(out, in * VW);
    float *v = j->v + thread * 16 * v_pitch, *m = j->m + thread * 16 * m_pitch;
    /* As many for each thread. */
    int64_t chunks = (j->tiles + j->chunk - 1) / j->chunk;
    chunks = (chunks + n_threads - 1) / n_threads * n_threads;
    int64_t first = chunks * thread / n_threads, last = chunks * (thread + 1) / n_threads;
    for (int64_t chunk = first; chunk < last; chunk++) {
        int64_t tile = j->tiles * chunk / chunks, n = j->tiles * (chunk + 1) / chunks - tile;
        for (int64_t block = 0; block < in; block++)
            wino_load_tiles(j, block, tile, n, v + block * j->chunk * VW, v_pitch);
        for (int p = 0; p < 16; p++)
            wino_point(v + p * v_pitch, j->u + p * u_pitch, in, out, j->chunk, n, m + p * m_pitch);
        for (int64_t block = 0; block < out; block++)
            wino_store_tiles(j, block, tile, n, m + block * j->chunk * VW, m_pitch);
    }
}

/* ---- weights' gradient ----------------------------------------------------------------------- */

/* sum [n_blocks][..][VW] (+)= outer products over n tiles: WINO_LANES channels of v. */
V_INLINE void wino_outer(const float *v, const float *g, int64_t n, int64_t chunk, float *sum,
                         int64_t sum_block, bool add, const int n_blocks)
{
    vf s[WINO_LANES][WINO_BLOCKS];
    for (int l = 0; l < WINO_LANES; l++)
        for (int b = 0; b < n_blocks; b++)
            s[l][b] = v_zero();
    for (int64_t i = 0; i < n; i++) {
        vf y[WINO_BLOCKS];
        for (int b = 0; b < n_blocks; b++)
            y[b] = v_load(g + (b * chunk + i) * VW);
        for (int l = 0; l < WINO_LANES; l++) {
            vf x = v_set1(v[i * VW + l]);
            for (int b = 0; b < n_blocks; b++)
                s[l][b] = v_fma(x, y[b], s[l][b]);
        }
    }
    for (int l = 0; l < WINO_LANES; l++)
        for (int b = 0; b < n_blocks; b++) {
            float *to = sum + b * sum_block + l * VW;
            v_store(to, add ? v_add(v_load(to), s[l][b]) : s[l][b]);
        }
}

/* The bias's gradient: at the point (1, 1) lie quarters of a tile's sum. */
static void wino_bias_sums(const float *g, int64_t out, int64_t chunk, int64_t n, double *sums)
{
    for (int64_t block = 0; block < out; block++) {
        vf sum = v_zero();
        for (int64_t i = 0; i < n; i++)
            sum = v_add(sum, v_load(g + (block * chunk + i) * VW));
        v_add_double(sums + block * VW, sum);
    }
}

/* u [blocks of oc][c in whole blocks][VW] of one point: n_blocks of the input, n tiles. */
static void wino_gradient_point(const sn_cpu_wino_job *j, const float *v, const float *g,
                                int64_t n_blocks, int64_t n, float *u, bool add)
{
    const int64_t out = wino_blocks(j->oc), chunk = j->chunk;
    const int64_t u_block = wino_blocks(j->c) * VW * VW;
    for (int64_t block = 0; block < n_blocks; block++, v += chunk * VW, u += VW * VW)
        for (int64_t o = 0; o < out; o += WINO_BLOCKS)
            for (int l = 0; l < VW; l += WINO_LANES) {
                const float *at = g + o * chunk * VW;
                float *sum = u + o * u_block + l * VW;
                if (out - o >= WINO_BLOCKS)
                    wino_outer(v + l, at, n, chunk, sum, u_block, add, WINO_BLOCKS);
                else if (WINO_BLOCKS > 2 && out - o == 2)
                    wino_outer(v + l, at, n, chunk, sum, u_block, add, 2);
                else
                    wino_outer(v + l, at, n, chunk, sum, u_block, add, 1);
            }
}

/* One slice of the tiles, some blocks of the input: into the slice's own sums. */
static void wino_slice(const sn_cpu_wino_job *j, int64_t slice, int64_t part, float *v, float *m)
{
    const int64_t in = wino_blocks(j->c), out = wino_blocks(j->oc);
    const int64_t v_pitch = wino_pitch(wino_part_blocks(j), j->chunk);
    const int64_t m_pitch = wino_pitch(out, j->chunk), u_pitch = wino_pitch(out, in * VW);
    const int64_t b0 = in * part / j->parts, b1 = in * (part + 1) / j->parts;
    const int64_t first = j->tiles * slice / j->slices, end = j->tiles * (slice + 1) / j->slices;
    const int64_t chunks = (end - first + j->chunk - 1) / j->chunk;
    float *u = j->u + slice * 16 * u_pitch + b0 * VW * VW;
    double *sums = j->sums + slice * out * VW;
    for (int64_t i = 0; i < chunks; i++) {
        int64_t tile = first + (end - first) * i / chunks;
        int64_t n = first + (end - first) * (i + 1) / chunks - tile;
        for (int64_t b = b0; b < b1; b++)
            wino_load_tiles(j, b, tile, n, v + (b - b0) * j->chunk * VW, v_pitch);
        for (int64_t b = 0; b < out; b++)
            wino_load_gradients(j, b, tile, n, m + b * j->chunk * VW, m_pitch);
        for (int p = 0; p < 16; p++)
            wino_gradient_point(j, v + p * v_pitch, m + p * m_pitch, b1 - b0, n, u + p * u_pitch,
                                i > 0);
        if (part == 0 && j->dbias)
            wino_bias_sums(m + 5 * m_pitch, out, j->chunk, n, sums);
    }
}

/* u [slices][16][blocks of oc][c in whole blocks][VW]: no thread reads what another one wrote. */
static void wino_slices(void *job, int thread, int n_threads)
{
    const sn_cpu_wino_job *j = job;
    float *v = j->v + thread * 16 * wino_pitch(wino_part_blocks(j), j->chunk);
    float *m = j->m + thread * 16 * wino_pitch(wino_blocks(j->oc), j->chunk);
    int64_t units = j->slices * j->parts;
    int64_t first = units * thread / n_threads, last = units * (thread + 1) / n_threads;
    for (int64_t unit = first; unit < last; unit++)
        wino_slice(j, unit / j->parts, unit % j->parts, v, m);
}

/* y [3][3][c][oc] from u, and dbias from its sums. */
static void wino_finish(void *job, int thread, int n_threads)
{
    const sn_cpu_wino_job *j = job;
    const int64_t in = wino_blocks(j->c), out = wino_blocks(j->oc);
    const int64_t pitch = wino_pitch(out, in * VW);
    int64_t first = j->c * thread / n_threads, last = j->c * (thread + 1) / n_threads;
    for (int64_t block = 0; block < out; block++)
        for (int64_t c = first; c < last; c++) {
            const float *u = j->u + (block * in * VW + c) * VW;
            vf rows[3][4];
            for (int x = 0; x < 4; x++) {
                vf m[4], column[3];
                for (int y = 0; y < 4; y++) {
                    const float *at = u + (y * 4 + x) * pitch;
                    m[y] = v_load(at);
                    for (int64_t slice = 1; slice < j->slices; slice++)
                        m[y] = v_add(m[y], v_load(at + slice * 16 * pitch));
                }
                wino_weights_1d(m, column);
                for (int r = 0; r < 3; r++)
                    rows[r][x] = column[r];
            }
            for (int r = 0; r < 3; r++) {
                vf w[3];
                wino_weights_1d(rows[r], w);
                for (int s = 0; s < 3; s++)
                    v_store_some(j->y + ((r * 3 + s) * j->c + c) * j->oc + block * VW, w[s],
                                 j->oc - block * VW);
            }
        }
    if (thread > 0 || !j->dbias)
        return;
    for (int64_t o = 0; o < j->oc; o++) {
        double sum = 0;
        for (int64_t slice = 0; slice < j->slices; slice++)
            sum += j->sums[slice * out * VW + o];
        j->dbias[o] = (float)(4 * sum);
    }
}
