/* SPDX-License-Identifier: Apache-2.0
 *
 * conv.h - the geometry of a convolution, read from any of its three operators.
 *
 *     sn_cpu_conv c;
 *     sn_cpu_conv_of(&c, o->op, o->attrs, o->in, o->out);
 *
 * Ownership: plain values.  Threads: pure functions.
 */
#ifndef SN_BACKEND_CPU_CONV_H
#define SN_BACKEND_CPU_CONV_H

#include "backend/cpu/internal.h"

typedef struct sn_cpu_conv {
    int64_t n, h, w, c; /* x */
    int64_t oh, ow, oc; /* y */
    int64_t kh, kw, groups;
    int64_t stride[2], dilation[2], pad[4]; /* top, bottom, left, right */
} sn_cpu_conv;

void sn_cpu_conv_of(sn_cpu_conv *out, sn_op_id op, const sn_attrs *attrs, const sn_desc *in,
                    const sn_desc *y);
void sn_cpu_conv_of_task(sn_cpu_conv *out, const sn_cpu_task *task);
/* One filter for each channel. */
static inline bool sn_cpu_conv_is_depthwise(const sn_cpu_conv *c)
{
    return c->groups > 1 && c->groups == c->c && c->oc == c->c;
}
/* The descriptor of the weights, [(G,)O,I,KH,KW], as they lie in the PLAIN layout. */
bool sn_cpu_conv_plain_weights(sn_md *out, const sn_cpu_conv *c);
/* The same tensor with a tag of oneDNN (any: dnnl_format_tag_any). */
bool sn_cpu_conv_weights(sn_md *out, const sn_cpu_conv *c, dnnl_format_tag_t tag);

/* A ReLU of slope and threshold 0, with a largest value or none: what operators fuse. */
bool sn_cpu_act_is_relu(const sn_act_attrs *act);

#endif
