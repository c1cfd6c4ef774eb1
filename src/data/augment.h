/* SPDX-License-Identifier: Apache-2.0
 *
 * augment.h - random changes of a training image, on the resized sample before it is scaled: one
 * affine map (mirror, rotation, shift, zoom; two-tap bilinear, edges continued), then contrast,
 * then brightness. The draws are Philox's, keyed by (seed, epoch) and counted by list index: the
 * same on every thread, device and order of execution.
 *
 *     if (sn_augment_any(&a)) sn_augment_apply(&a, x, h, w, c, 255.0f, seed, epoch, index, tmp);
 *
 * Ownership: nothing is kept.  Threads: pure functions.
 */
#ifndef SN_DATA_AUGMENT_H
#define SN_DATA_AUGMENT_H

#include "base/base.h"
#include "snug/data.h"

bool sn_augment_any(const snug_augment *augment);
/* x [h, w, c] in place; tmp of the same size. top > 0 clips brightness and contrast to 0..top; 0:
 * unbounded values. */
void sn_augment_apply(const snug_augment *augment, float *x, int64_t h, int64_t w, int channels,
                      float top, uint64_t seed, uint64_t epoch, uint64_t index, float *tmp);

#endif
