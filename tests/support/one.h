/* SPDX-License-Identifier: Apache-2.0
 *
 * one.h - a device, and a program of one instruction on it: for tests and measurements of single
 * kernels. Every operand has its own buffer in one slab, or shares its input's (in place).
 *
 *     one_op o = {.device = d, .op = SN_OP_DENSE, .attrs = attrs, .n_in = 3, .n_out = 1, ...};
 *     one_make(&o, err);  one_write(&o, 0, x);  one_run(&o, &step);  one_read(&o, 0, y);
 *     one_free(&o);
 *
 * Ownership: one_free ends what one_make made.  Threads: one.
 */
#ifndef SN_TESTS_ONE_H
#define SN_TESTS_ONE_H

#include "backend/backend.h"

typedef struct one_op {
    sn_device *device;
    sn_op_id op;
    sn_attrs attrs;
    int n_in, n_out;
    sn_desc in[SN_MAX_IN], out[SN_MAX_OUT];
    sn_layout in_layout[SN_MAX_IN]; /* as the caller says; then as proposed */
    sn_layout wish[SN_MAX_OUT];
    int share[SN_MAX_OUT];    /* 1 + the input whose storage the output takes; 0: its own */
    int kernel;               /* 1 + the kernel to force; 0: the first that accepts */
    int64_t batch, run_batch; /* 0: dim[0] of in[0]; all */
    void *caller_memory;      /* NULL: the device's */
    /* made: */
    sn_proposal proposal;
    sn_program program;
    sn_instr instr;
    sn_view in_view[SN_MAX_IN], out_view[SN_MAX_OUT];
    sn_version version[SN_MAX_IN];
    sn_program_buffer buffer[SN_MAX_IN + SN_MAX_OUT + 1];
    uint64_t slab_bytes;
    sn_memory *memory;
    sn_exec *exec;
} one_op;

/* As a backend is asked for it; borrows from one. */
sn_operation one_operation(const one_op *one);
snug_status one_make(one_op *one, snug_error *err);
snug_status one_write(one_op *one, int input, const void *plain, snug_error *err);
snug_status one_run(one_op *one, const sn_step *step, snug_error *err);
snug_status one_read(one_op *one, int output, void *plain, snug_error *err);
void one_free(one_op *one);

#endif
