/* SPDX-License-Identifier: Apache-2.0
 *
 * resize_rows.h - the inner loops of the resizer: one row at a time, chosen at run time by what the
 * processor has. Every form gives the same bits: float32 multiplications and additions in the order
 * written here, never contracted.
 *
 *     sn_rows_lerp_x(out, row, taps, n, 3);      // out [n, 3]
 *
 * Ownership: none.  Threads: pure functions.
 */
#ifndef SN_DATA_RESIZE_ROWS_H
#define SN_DATA_RESIZE_ROWS_H

#include "data/resize.h"

/* out [n, channels] = row[lo] + (row[hi] - row[lo]) * f; out is writable one pixel beyond its end,
 * row readable 4 bytes beyond its end. */
void sn_rows_lerp_x(float *out, const uint8_t *row, const sn_tap *taps, int64_t n, int channels);
/* out [n] = lo + (hi - lo) * f, then / by - less where by is not 0 (values from 0 to 255). */
void sn_rows_lerp_y(float *out, const float *lo, const float *hi, float f, float by, float less,
                    int64_t n);
/* sum [n] += weight * row. */
void sn_rows_add_scaled(float *sum, const uint8_t *row, float weight, int64_t n);
/* out [n, channels] = for each span the weighted sum of column's pixels. */
void sn_rows_spans_x(float *out, const float *column, const sn_span *spans, int64_t n,
                     int channels);
/* [n] bytes to floats. */
void sn_rows_widen(float *out, const uint8_t *in, int64_t n);

#endif
