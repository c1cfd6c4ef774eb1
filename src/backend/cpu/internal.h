/* SPDX-License-Identifier: Apache-2.0
 *
 * internal.h - what the files of the CPU backend share: the device with its table of weight
 * layouts, the prepared instruction (task), the kernel lists, the one way to run in parallel.
 *
 *     const sn_cpu_kernel *const *list = sn_cpu_kernels(SN_OP_CONV2D);   // best first, NULL last
 *     const char *refused = list[0]->propose(device, &operation, &proposal);
 *
 * A kernel that accepts says which layouts it takes and gives; prepare fills task->state once, run
 * allocates nothing. `run` gets pointers that were resolved at prepare: slabs do not move.
 *
 * Ownership: the device owns its tables, an exec its tasks and primitives.
 * Threads: one thread calls; sn_cpu_parallel makes the team.
 */
#ifndef SN_BACKEND_CPU_INTERNAL_H
#define SN_BACKEND_CPU_INTERNAL_H

#include "backend/cpu/cpu.h"
#include "backend/cpu/onednn.h"
#include "backend/cpu/simd.h"
#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"

#define SN_CPU_ALIGN 64
/* Writing past the caches pays when the result does not fit them. */
#define SN_CPU_STREAM_BYTES (8 * SN_MIB)

/* A layout that only we know: of a convolution's weights with these dimensions. */
typedef struct sn_cpu_weight_layout {
    sn_md md;    /* as the kernel takes it: [(G,)O,I,KH,KW] */
    sn_md plain; /* the same tensor as [KH,KW,I,O], as strides */
    uint64_t bytes;
    bool is_depthwise; /* [C/block][KH][KW][block], block the device's vector */
} sn_cpu_weight_layout;

typedef struct sn_cpu_device {
    sn_device base; /* first */
    sn_dnn dnn;
    const sn_cpu_simd *simd;
    int n_threads;
    int block; /* of BLOCKED layouts: the vector's floats */
    SN_VEC(sn_cpu_weight_layout) layouts;
    sn_map proposals; /* operation -> index in kept */
    SN_VEC(sn_proposal) kept;
} sn_cpu_device;

typedef struct sn_cpu_arg {
    void *data;   /* NULL: absent */
    sn_desc desc; /* of the batch that runs */
    sn_layout layout;
    uint64_t bytes; /* physical */
} sn_cpu_arg;

typedef struct sn_cpu_kernel sn_cpu_kernel;

typedef struct sn_cpu_task {
    const sn_cpu_kernel *kernel;
    sn_cpu_device *device;
    sn_exec *exec;
    sn_op_id op;
    const sn_attrs *attrs;
    int n_in, n_out;
    sn_cpu_arg *in, *out;
    void *workspace;
    uint64_t workspace_bytes;
    void *state; /* the kernel's, in the exec's arena */
} sn_cpu_task;

struct sn_cpu_kernel {
    const char *name;
    /* required: NULL means accepted and out (zeroed before) is filled in; else why not, in static
     * storage */
    const char *(*propose)(sn_cpu_device *device, const sn_operation *operation, sn_proposal *out);
    /* optional: NULL means that run needs no state. SNUG_E_UNSUPPORTED lets exec try no other: it
     * is an error. */
    snug_status (*prepare)(sn_cpu_task *task, snug_error *err);
    /* required */
    snug_status (*run)(const sn_cpu_task *task, const sn_step *step, snug_error *err);
};

/* Primitives and memory objects that an exec ends. */
struct sn_exec {
    sn_cpu_device *device;
    sn_memory *memory;
    const sn_program *program;
    sn_arena arena;
    sn_cpu_task *tasks; /* n_instrs */
    sn_map primitives;  /* key -> index in prims */
    SN_VEC(sn_dnn_prim *) prims;
    SN_VEC(sn_dnn_memory *) memories;
    uint64_t *peak;  /* per slab */
    double *seconds; /* per instruction */
    bool profiled;
};

struct sn_memory {
    sn_cpu_device *device;
    size_t n_slabs;
    struct sn_cpu_slab {
        unsigned char *data;
        uint64_t bytes;
        void *mapping; /* NULL: the caller's */
        size_t mapping_bytes;
    } * slabs;
};

/* ---- memory.c, exec.c: rows of the vtable ---- */
snug_status sn_cpu_reserve(sn_device *device, size_t n_slabs, const uint64_t *bytes,
                           void *const *caller_memory, sn_memory **out, snug_error *err);
void sn_cpu_release(sn_memory *memory);
void *sn_cpu_host_address(sn_memory *memory, const sn_view *view);
snug_status sn_cpu_write(sn_memory *memory, const sn_view *view, const void *plain,
                         snug_error *err);
snug_status sn_cpu_read(sn_memory *memory, const sn_view *view, void *plain, snug_error *err);
snug_status sn_cpu_prepare(sn_memory *memory, const sn_program *program, int64_t batch,
                           sn_exec **out, snug_error *err);
snug_status sn_cpu_run(sn_exec *exec, const sn_step *step, size_t first, size_t count,
                       snug_error *err);
void sn_cpu_discard(sn_exec *exec);
uint64_t sn_cpu_measured_peak(const sn_exec *exec, size_t slab);
const double *sn_cpu_profile(sn_exec *exec, bool enable);

/* ---- device.c ---- */
/* The row of the weight layout, made if it is new; the descriptors are copied. -1: no memory, or
 * the table is full. */
int sn_cpu_weight_layout_index(sn_cpu_device *device, const sn_md *md, const sn_md *plain,
                               bool is_depthwise);
uint64_t sn_cpu_layout_bytes(const sn_cpu_device *device, const sn_desc *desc, sn_layout layout);
static inline sn_layout sn_cpu_opaque(int index)
{
    return (sn_layout){SN_LAYOUT_OPAQUE, 0, (uint16_t)index};
}

/* ---- exec.c ---- */
/* fn(context, thread, n_threads) on every thread of the team, with a barrier at the end. */
void sn_cpu_parallel(const sn_cpu_device *device, void (*fn)(void *, int, int), void *context);
/* The same on one thread when there are few bytes to go over: waking a team takes longer. */
void sn_cpu_parallel_over(const sn_cpu_device *device, uint64_t bytes, void (*fn)(void *, int, int),
                          void *context);
/* A primitive that equal keys share; pd is made by the caller's make(context). NULL: refused. */
sn_dnn_prim *sn_cpu_exec_prim(sn_exec *exec, const void *key, size_t key_bytes,
                              bool (*make)(sn_dnn_pd **out, void *context), void *context);
sn_dnn_memory *sn_cpu_exec_memory(sn_exec *exec, const sn_md *md, void *data);
sn_dnn_memory *sn_cpu_exec_scratch(sn_exec *exec, uint64_t bytes, void *data);

/* The kernel's state of so many bytes, zeroed, in the exec's arena. NULL: SNUG_E_MEMORY. */
void *sn_cpu_task_state(sn_cpu_task *task, size_t bytes, snug_error *err);
/* SNUG_E_INTERNAL when so much scratch was not planned. */
snug_status sn_cpu_check_scratch(const sn_cpu_task *task, uint64_t bytes, snug_error *err);

/* ---- table.c: the lists, and what proposals share ---- */
const sn_cpu_kernel *const *sn_cpu_kernels(sn_op_id op);

/* ---- reorder.c ---- */
/* A tensor's way from one layout to another, made ready once. */
typedef struct sn_cpu_mover {
    sn_desc desc;
    sn_layout from, to;
    const void *src;
    void *dst;
    sn_dnn_prim *prim; /* NULL: a kernel of our own */
    dnnl_exec_arg_t args[3];
    int n_args;
} sn_cpu_mover;
/* Scratch that moving takes; true: there is no way between the two layouts. */
bool sn_cpu_mover_scratch(const sn_cpu_device *device, sn_layout from, sn_layout to,
                          uint64_t *bytes);
/* Primitives belong to the task's exec. */
snug_status sn_cpu_mover_init(sn_cpu_mover *mover, sn_cpu_task *task, const sn_desc *desc,
                              sn_layout from, const void *src, sn_layout to, void *dst,
                              void *scratch, uint64_t scratch_bytes, snug_error *err);
snug_status sn_cpu_mover_run(const sn_cpu_device *device, const sn_cpu_mover *mover,
                             snug_error *err);
/* The same at once, for session-time moves: makes and ends what it takes. */
snug_status sn_cpu_move(sn_cpu_device *device, const sn_desc *desc, sn_layout from, const void *src,
                        sn_layout to, void *dst, snug_error *err);

/* ---- helpers for kernels ---- */
static inline bool sn_cpu_present(const sn_desc *desc)
{
    return !sn_desc_is_absent(desc);
}
/* True when a layout is not fixed by the caller, or is this one. */
static inline bool sn_cpu_wish_ok(const sn_operation *o, int out, sn_layout layout)
{
    return !o->out_wish || o->out_wish[out].kind == SN_LAYOUT_UNSET ||
           sn_layout_eq(o->out_wish[out], layout);
}
/* BLOCKED when one of the inputs (bits of mask) already lies so and nobody asks for PLAIN, else
 * PLAIN. UNSET inputs of rank 4 count as BLOCKED. */
sn_layout sn_cpu_pick_layout(const sn_cpu_device *device, const sn_operation *o, uint32_t mask);
/* All present operands are f32. */
bool sn_cpu_all_f32(const sn_operation *o);
/* n, pixels, c of a tensor whose last dimension is the channels; rank 2 is one sample of rows. */
static inline void sn_cpu_planes(const sn_desc *desc, bool blocked, int64_t *n, int64_t *pixels,
                                 int64_t *c)
{
    int rank = desc->shape.rank;
    int64_t rows = 1;
    for (int i = 0; i < rank - 1; i++)
        rows *= desc->shape.dim[i];
    *c = rank > 0 ? desc->shape.dim[rank - 1] : 1;
    *n = rank >= 3 || blocked ? desc->shape.dim[0] : 1;
    *pixels = *n > 0 ? rows / *n : 0;
}
static inline int64_t sn_cpu_div_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}
/* Of a part of a workspace: the next part begins aligned. */
static inline uint64_t sn_cpu_floats_bytes(int64_t n)
{
    return sn_align_up((uint64_t)n * sizeof(float), SN_CPU_ALIGN);
}
/* Part `index` of `n` nearly equal parts of [0, total). */
static inline void sn_cpu_part(int64_t total, int index, int n, int64_t *first, int64_t *last)
{
    *first = total * index / n;
    *last = total * (index + 1) / n;
}

#endif
