/* SPDX-License-Identifier: Apache-2.0
 *
 * backend.h - what runs programs: the vtable that cpu, null, torture, and later opencl and cuda
 * fill. Backends propose layouts and workspaces at planning and execute programs; they decide
 * nothing. Memory is slabs; tensors are views {buffer, slab, offset}, never pointers.
 *
 *     sn_device *d;  sn_device_open(&d, "cpu", &options, err);
 *     d->backend->propose(d, &operation, &proposal, err);        // planning
 *     d->backend->reserve(d, n_slabs, bytes, NULL, &memory, err);
 *     d->backend->prepare(d, memory, program, batch, &exec, err);
 *     d->backend->run(exec, &step, 0, program->n_instrs, err);
 *
 * Ownership: close, release and discard end what open, reserve and prepare gave.
 * Threads: a device and what belongs to it are used from one thread.
 */
#ifndef SN_BACKEND_BACKEND_H
#define SN_BACKEND_BACKEND_H

#include "backend/program.h"

typedef struct sn_backend sn_backend;

typedef struct sn_device {
    const sn_backend *backend; /* a backend's own device struct begins with this one */
} sn_device;

typedef struct sn_device_options {
    int n_threads; /* 0: as many as the process may use */
    uint64_t seed; /* torture: order of execution */
} sn_device_options;

typedef struct sn_device_info {
    char name[96];                  /* "cpu AMD EPYC 7763, 2 threads, AVX-512" */
    uint64_t total_bytes;           /* of its memory */
    uint64_t free_bytes;            /* now; a stated reserve already subtracted for null */
    uint64_t reserve_bytes;         /* what was subtracted */
    uint64_t largest_bytes;         /* largest single allocation: a slab is never larger */
    uint64_t align_bytes;           /* of every offset; a power of two */
    int n_queues;                   /* 1: compute; 2: compute and copy */
    int n_threads;                  /* CPU: compute threads */
    bool is_host;                   /* its memory is the process' own: a budget bounds VmHWM */
    double flops, bytes_per_second; /* roofline, 0 unknown */
} sn_device_info;

/* An operator to find a kernel for. */
typedef struct sn_operation {
    sn_op_id op;
    const sn_attrs *attrs;
    int n_in, n_out;
    const sn_desc *in, *out;    /* absent ones marked (sn_desc_is_absent) */
    const sn_layout *in_layout; /* as the inputs stand now; UNSET: the kernel may choose */
    const sn_layout *out_wish;  /* fixed by the caller where not UNSET (a gradient that must match
                                 * its  weight's layout); NULL: none */
} sn_operation;

typedef struct sn_proposal {
    uint16_t kernel;         /* index in the backend's list for this operator */
    sn_layout in[SN_MAX_IN]; /* wanted; the planner inserts reorders where it differs */
    sn_layout out[SN_MAX_OUT];
    uint64_t workspace_bytes; /* scratch, live during this instruction only */
    uint64_t runtime_bytes;   /* allocated inside the library that runs it, worst case */
    char why[96];             /* why kernels before it in the list were refused; may be "" */
    uint8_t queue;            /* 0 compute; 1 copy, where the device has two. The planner clears the
                               * proposal before it asks. */
} sn_proposal;

typedef struct sn_memory sn_memory; /* reserved slabs; defined by the backend */
typedef struct sn_exec sn_exec;     /* a program made ready; defined by the backend */

struct sn_backend {
    const char *name;
    /* required. spec is what follows the name's colon ("2GiB,tflops=1.8" of "null:2GiB,..."), "" if
     * nothing does. SNUG_E_USAGE for a bad spec, SNUG_E_DEVICE when there is no such device. */
    snug_status (*open)(sn_device **out, const char *spec, const sn_device_options *options,
                        snug_error *err);
    void (*close)(sn_device *device);                     /* required, NULL-safe */
    void (*info)(sn_device *device, sn_device_info *out); /* required */
    /* required: bytes that a tensor takes in a layout, padding included */
    snug_status (*layout_bytes)(sn_device *device, const sn_desc *desc, sn_layout layout,
                                uint64_t *bytes, snug_error *err);
    void (*layout_name)(sn_device *device, sn_layout layout, char *out, size_t n); /* required */
    /* required: SNUG_E_UNSUPPORTED when there is no kernel for it */
    snug_status (*propose)(sn_device *device, const sn_operation *operation, sn_proposal *out,
                           snug_error *err);
    const char *(*kernel_name)(sn_device *device, sn_op_id op, uint16_t kernel); /* required */

    /* required: all slabs at once, zeroed; caller_memory (n_slabs pointers, aligned) is used
     * instead of own memory when it is not NULL (host devices only) */
    snug_status (*reserve)(sn_device *device, size_t n_slabs, const uint64_t *bytes,
                           void *const *caller_memory, sn_memory **out, snug_error *err);
    void (*release)(sn_memory *memory); /* required, NULL-safe */
    /* required: plain host bytes -> a tensor in its layout, and back. `plain` holds the tensor in
     * the PLAIN layout and the view's dtype. */
    snug_status (*write)(sn_memory *memory, const sn_view *view, const void *plain,
                         snug_error *err);
    snug_status (*read)(sn_memory *memory, const sn_view *view, void *plain, snug_error *err);
    /* optional: the host address of a view; NULL means device memory is not host memory */
    void *(*host_address)(sn_memory *memory, const sn_view *view);

    /* required: makes everything that running takes (primitives, kernels); batch <= program->batch
     * runs the same placement on a prefix. Layouts and kernels are the program's. */
    snug_status (*prepare)(sn_memory *memory, const sn_program *program, int64_t batch,
                           sn_exec **out, snug_error *err);
    /* required: instructions first .. first+count-1, then waits for all queues */
    snug_status (*run)(sn_exec *exec, const sn_step *step, size_t first, size_t count,
                       snug_error *err);
    void (*discard)(sn_exec *exec); /* required, NULL-safe */
    /* required: highest end of any range handed to an executed kernel, with the sizes that the
     * kernels themselves state; per slab */
    uint64_t (*measured_peak)(const sn_exec *exec, size_t slab);
    /* optional: seconds of each instruction in the last run (n_instrs values), and switching it on;
     * NULL means not measured */
    const double *(*profile)(sn_exec *exec, bool enable);
};

/* Every backend of this build, for `snug devices` and the tests; *n rows. */
const sn_backend *const *sn_backends(size_t *n);
/* Opens "cpu", "null:2GiB", ... SNUG_E_USAGE for an unknown backend, naming the known ones. */
snug_status sn_device_open(sn_device **out, const char *spec, const sn_device_options *options,
                           snug_error *err);
void sn_device_close(sn_device *device);

#endif
