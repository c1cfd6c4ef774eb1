/* SPDX-License-Identifier: Apache-2.0
 *
 * What TensorFlow 1 and 2, Keras, XLA and JAX print. "49.00MiB" is binary; chunk lists and the
 * statistics are in bytes.
 */
#include "diagnose/state.h"

#include <stdio.h>
#include <string.h>

#include "diagnose/scan.h"

/* ".../device:GPU:0", "/gpu:0", "/device:CPU:0" */
static void read_device(snug_diagnosis *d, const char *text)
{
    uint64_t index;
    char name[16];
    if ((sn_scan_count_after(text, "device:GPU:", &index) ||
         sn_scan_count_after(text, "/gpu:", &index) || sn_scan_count_after(text, "GPU:", &index)) &&
        index < SN_DIAGNOSE_GPUS) {
        snprintf(name, sizeof name, "GPU:%u", (unsigned)index);
        sn_device_set(d, name);
    } else if (sn_scan_has(text, "device:CPU:") || sn_scan_has(text, "/cpu:") ||
               sn_scan_has(text, "allocator cpu") || sn_scan_has(text, "mklcpu")) {
        sn_device_set(d, "cpu");
    }
}

static void read_dtype(snug_diagnosis *d, const sn_line *line, const char *text)
{
    const char *type = strstr(text, "type ");
    if (!type)
        return;
    type += strlen("type ");
    size_t n = sn_scan_word(type);
    char name[24];
    if (!n || n >= sizeof name)
        return;
    memcpy(name, type, n);
    name[n] = '\0';
    if (n > 1 && name[n - 1] == '.')
        name[--n] = '\0';
    if (sn_dtype_name_bytes(name))
        sn_fact_set_text(d, SN_FACT_DTYPE, name, n, line->number);
}

/* Operations that make or change weights: no batch is in their tensors. */
static bool is_weight_op(const char *name)
{
    static const char *const parts[] = {
        "nitializer",
        "/Adam",
        "/Momentum",
        "/RMSProp",
        "random_uniform",
        "RandomUniform",
        "truncated_normal",
        "TruncatedNormal",
        "ResourceApply",
        "BackpropFilter",
        "MatMul_grad/MatMul_1",
        "AssignVariable",
        "VarHandle",
        "/kernel/",
        "zeros_like_opt",
        "/Assign",
        "ApplyAdam",
        "ApplyMomentum",
        "opt/update_",
    };
    for (size_t i = 0; i < SN_LEN(parts); i++)
        if (sn_scan_has(name, parts[i]))
            return true;
    return false;
}

/* Keras numbers the layers of a process: "sequential_57/conv2d_231" means that 57 models were made
 * before. */
static bool counts_models(const char *name)
{
    static const char *const stems[] = {"sequential_", "functional_", "model_"};
    for (size_t i = 0; i < SN_LEN(stems); i++) {
        uint64_t n;
        const char *hit = strstr(name, stems[i]);
        if (!hit)
            continue;
        const char *p = hit + strlen(stems[i]);
        const char *digits = p;
        if (*p >= '0' && *p <= '9' && sn_scan_count(&p, &n) && n >= 20 && n < 100000 &&
            p - digits < 6 && (*p == '/' || *p == '}' || *p == '\0' || *p == '"' || *p == '\''))
            return true;
    }
    return false;
}

static void read_name(snug_diagnosis *d, const sn_line *line, const char *name, size_t n)
{
    char text[256];
    n = SN_MIN(n, sizeof text - 1);
    memcpy(text, name, n);
    text[n] = '\0';
    if (is_weight_op(text))
        sn_tell_raise(d, SN_TELL_TF_WEIGHT_OP, line->number, line->text);
    if (counts_models(text))
        sn_tell_raise(d, SN_TELL_TF_MANY_MODELS, line->number, line->text);
    if (sn_scan_has(text, "test_function") || sn_scan_has(text, "predict_function") ||
        sn_scan_has(text, "evaluate_step"))
        sn_tell_raise(d, SN_TELL_FRAME_VALIDATE, line->number, line->text);
}

/* "[[{{node sequential_1/conv2d_1/Relu}}]]", "[[Node: conv1/Conv2D = Conv2D[T=...". */
static void read_node(snug_diagnosis *d, const sn_line *line, const char *at)
{
    const char *name = at + (sn_str_starts(at, "{{node ") ? strlen("{{node ") : strlen("[[Node: "));
    size_t n = strcspn(name, " }]");
    if (!n)
        return;
    sn_fact_set_text(d, SN_FACT_NODE, name, n, line->number);
    const char *op = strstr(name + n, "= ");
    if (op) {
        op += 2;
        size_t k = strcspn(op, "[ ");
        sn_fact_set_text(d, SN_FACT_OP, op, k, line->number);
    }
    read_name(d, line, name, n);
}

/* "[Op:AddV2]", "{{function_node __wrapped__AddV2_device_...}}" */
static void read_op(snug_diagnosis *d, const sn_line *line, const char *at)
{
    const char *name;
    size_t n;
    const char *bracket = strstr(at, "[Op:");
    if (bracket) {
        name = bracket + strlen("[Op:");
        n = strcspn(name, "]");
    } else {
        name = strstr(at, "__wrapped__");
        if (!name)
            return;
        name += strlen("__wrapped__");
        const char *end = strstr(name, "_device_");
        n = end ? (size_t)(end - name) : 0;
    }
    if (!n || n > 60)
        return;
    sn_fact_set_text(d, SN_FACT_OP, name, n, line->number);
    read_name(d, line, name, n);
}

/* "OOM when allocating tensor with shape[64,372,32,32] and type float on ...GPU:0 by allocator
 * GPU_0_bfc" */
static void read_oom_tensor(snug_diagnosis *d, const sn_line *line, const char *at)
{
    int64_t dims[8];
    size_t n;
    const char *shape = strstr(at, "shape");
    if (shape) {
        shape += strlen("shape");
        shape += strspn(shape, " :=");
        if (sn_scan_shape(shape, dims, &n)) {
            sn_fact_set_shape(d, SN_FACT_SHAPE, dims, n, line->number);
            sn_fact_clear(d, SN_FACT_DTYPE);
        }
    }
    read_dtype(d, line, at);
    read_device(d, at);
    const char *by = strstr(at, "by allocator ");
    if (by) {
        by += strlen("by allocator ");
        size_t k = sn_scan_word(by);
        sn_fact_set_text(d, SN_FACT_ALLOCATOR, by, k, line->number);
        if (sn_str_starts(by, "cpu") || sn_str_starts(by, "mklcpu"))
            sn_device_set(d, "cpu");
    }
    read_op(d, line, at);
    sn_tell_raise(d, SN_TELL_TF_OOM_TENSOR, line->number, line->text);
}

static void read_eager_const(snug_diagnosis *d, const sn_line *line, const char *at)
{
    SN_UNUSED(at);
    sn_fact_set_text(d, SN_FACT_OP, "_EagerConst", strlen("_EagerConst"), line->number);
    sn_tell_raise(d, SN_TELL_TF_EAGER_CONST, line->number, line->text);
}

/* "Allocator (GPU_0_bfc) ran out of memory trying to allocate 49.00MiB (rounded to
 * 51380224)requested by op AddV2" */
static void read_bfc(snug_diagnosis *d, const sn_line *line, const char *at)
{
    uint64_t size, rounded;
    if (sn_scan_has(line->text, "not a failure")) {
        sn_tell_raise(d, SN_TELL_TF_BFC_NOT_FATAL, line->number, line->text);
        return;
    }
    bool sized = sn_scan_after(at, "trying to allocate", &size);
    if (sized && sn_scan_count_after(at, "rounded to", &rounded)) {
        uint64_t gap = rounded > size ? rounded - size : size - rounded;
        if (gap <= size / 64 + 256)
            size = rounded;
    }
    if (sized)
        sn_fact_set(d, SN_FACT_REQUESTED, size, line->number);
    const char *op = strstr(at, "requested by op ");
    if (op) {
        op += strlen("requested by op ");
        size_t n = strcspn(op, " \n");
        if (n) {
            sn_fact_set_text(d, SN_FACT_OP, op, n, line->number);
            read_name(d, line, op, n);
        }
    }
    const char *paren = strstr(line->text, "Allocator (");
    if (paren) {
        paren += strlen("Allocator (");
        sn_fact_set_text(d, SN_FACT_ALLOCATOR, paren, strcspn(paren, ")"), line->number);
    }
    sn_tell_raise(d, SN_TELL_TF_BFC_OOM, line->number, line->text);
}

/* "Limit:    55115776" and its sisters, each on a line of its own or behind "Stats:". */
static void read_stat(snug_diagnosis *d, const sn_line *line, const char *at)
{
    static const struct {
        const char *label;
        sn_fact_id fact;
    } stats[] = {{"Limit:", SN_FACT_LIMIT},
                 {"InUse:", SN_FACT_IN_USE},
                 {"MaxInUse:", SN_FACT_MAX_IN_USE},
                 {"NumAllocs:", SN_FACT_N_ALLOCS},
                 {"MaxAllocSize:", SN_FACT_MAX_ALLOC}};
    const char *start = at;
    while (start > line->text && start[-1] != ' ')
        start--;
    for (size_t i = 0; i < SN_LEN(stats); i++) {
        if (!sn_str_starts(start, stats[i].label))
            continue;
        const char *p = start + strlen(stats[i].label);
        uint64_t value;
        if (sn_scan_size(&p, &value, NULL)) { /* bytes; since 2.20 "600.00MiB" */
            sn_fact_set(d, stats[i].fact, value, line->number);
            if (i == 0 || !sn_tell_count(d, SN_TELL_TF_BFC_STATS))
                sn_tell_raise(d, SN_TELL_TF_BFC_STATS, line->number, line->text);
        }
    }
}

static void read_region(snug_diagnosis *d, const sn_line *line, const char *at)
{
    uint64_t value;
    if (sn_scan_after(at, "total_region_allocated_bytes_", &value) ||
        sn_scan_after(at, "Total size in pool", &value))
        sn_fact_set(d, SN_FACT_REGION, value, line->number);
    if (sn_scan_after(at, "memory_limit_", &value))
        sn_fact_set(d, SN_FACT_LIMIT, value, line->number);
    if (sn_scan_after(at, "available bytes", &value) || sn_scan_after(at, "available size", &value))
        sn_fact_set(d, SN_FACT_AVAILABLE, value, line->number);
    sn_tell_raise(d, SN_TELL_TF_BFC_STATS, line->number, line->text);
}

static void read_sum(snug_diagnosis *d, const sn_line *line, const char *at)
{
    uint64_t value;
    if (sn_scan_after(at, "in-use chunks", &value))
        sn_fact_set(d, SN_FACT_IN_USE, value, line->number);
    sn_tell_raise(d, SN_TELL_TF_CHUNKS, line->number, line->text);
}

/* "1 Chunks of size 18924364800 totalling 17.62GiB"; "InUse at 84e542800 of size 65545216 next" */
static void read_chunk(snug_diagnosis *d, const sn_line *line, const char *at)
{
    uint64_t size, count, total;
    if (!sn_scan_count_after(at, "of size", &size))
        return;
    if (size >= sn_fact_value(d, SN_FACT_BIGGEST_CHUNK))
        sn_fact_set(d, SN_FACT_BIGGEST_CHUNK, size, line->number);
    sn_tell_raise(d, SN_TELL_TF_CHUNKS, line->number, line->text);
    const char *p = at; /* "110 Chunks of size": how often that size is held */
    while (p > line->text && p[-1] >= '0' && p[-1] <= '9')
        p--;
    if (p == at || !sn_scan_count(&p, &count) || sn_mul_u64(&total, count, size))
        return;
    if (count > 1 &&
        total > sn_fact_value(d, SN_FACT_SAME_CHUNKS) * sn_fact_value(d, SN_FACT_SAME_CHUNK)) {
        sn_fact_set(d, SN_FACT_SAME_CHUNKS, count, line->number);
        sn_fact_set(d, SN_FACT_SAME_CHUNK, size, line->number);
    }
}

static void read_free_chunk(snug_diagnosis *d, const sn_line *line, const char *at)
{
    uint64_t size;
    if (sn_scan_count_after(at, "of size", &size) &&
        (!sn_fact_has(d, SN_FACT_LARGEST_FREE) || size > sn_fact_value(d, SN_FACT_LARGEST_FREE)))
        sn_fact_set(d, SN_FACT_LARGEST_FREE, size, line->number);
}

/* The device's description; the name that follows may have spaces. */
static void read_gpu_name(snug_diagnosis *d, const sn_line *line, const char *name,
                          const char *stops)
{
    size_t n = strcspn(name, stops);
    while (n && name[n - 1] == ' ')
        n--;
    if (n)
        sn_fact_set_text(d, SN_FACT_GPU_NAME, name, n, line->number);
}

/* "Created TensorFlow device (/job:localhost/.../device:GPU:0 with 5482 MB memory) -> physical GPU
 * (device: 0, name: GeForce GTX 1060 6GB, pci bus id: ..., compute capability: 6.1)" */
static void read_created(snug_diagnosis *d, const sn_line *line, const char *at)
{
    uint64_t bytes;
    double cc;
    if (sn_scan_after(at, " with ", &bytes) && !sn_fact_has(d, SN_FACT_LIMIT))
        sn_fact_set(d, SN_FACT_LIMIT, bytes, line->number);
    const char *name = strstr(at, "name: ");
    if (name)
        read_gpu_name(d, line, name + strlen("name: "), ",");
    if (sn_scan_real_after(at, "compute capability", &cc))
        sn_fact_set_real(d, SN_FACT_COMPUTE_CAPABILITY, cc, line->number);
    sn_tell_raise(d, SN_TELL_TF_DEVICE, line->number, line->text);
}

/* "name: Tesla P40 major: 6 minor: 1 memoryClockRate(GHz): 1.531", "pciBusID: ... name: Quadro
 * M1000M computeCapability: 5.0" */
static void read_properties(snug_diagnosis *d, const sn_line *line, const char *at)
{
    uint64_t major, minor;
    double cc;
    SN_UNUSED(at);
    const char *name = strstr(line->text, "name: ");
    if (name) {
        name += strlen("name: ");
        const char *end = strstr(name, " major:");
        const char *end2 = strstr(name, " computeCapability");
        if (!end || (end2 && end2 < end))
            end = end2;
        if (end && end > name)
            sn_fact_set_text(d, SN_FACT_GPU_NAME, name, (size_t)(end - name), line->number);
    }
    if (sn_scan_count_after(line->text, "major", &major) &&
        sn_scan_count_after(line->text, "minor", &minor) && minor < 10)
        sn_fact_set_real(d, SN_FACT_COMPUTE_CAPABILITY, (double)major + (double)minor / 10,
                         line->number);
    else if (sn_scan_real_after(line->text, "computeCapability", &cc))
        sn_fact_set_real(d, SN_FACT_COMPUTE_CAPABILITY, cc, line->number);
}

/* "totalMemory: 22.38GiB freeMemory: 22.21GiB", "deviceMemorySize: 2.00GiB" */
static void read_device_memory(snug_diagnosis *d, const sn_line *line, const char *at)
{
    uint64_t bytes;
    const char *text = line->text;
    SN_UNUSED(at);
    if (sn_scan_after(text, "totalMemory", &bytes) || sn_scan_after(text, "Total memory", &bytes) ||
        sn_scan_after(text, "deviceMemorySize", &bytes))
        sn_fact_set(d, SN_FACT_GPU_TOTAL, bytes, line->number);
    if (sn_scan_after(text, "freeMemory", &bytes) || sn_scan_after(text, "Free memory", &bytes)) {
        sn_fact_set(d, SN_FACT_GPU_FREE, bytes, line->number);
        sn_tell_raise(d, SN_TELL_TF_DEVICE_FREE, line->number, line->text);
    }
}

/* "failed to allocate 3.24G (3478923520 bytes) from device: CUDA_ERROR_OUT_OF_MEMORY". At the
 * start TensorFlow tries ever smaller sizes; the first tells what it wanted. */
static void read_failed_alloc(snug_diagnosis *d, const sn_line *line, const char *at)
{
    uint64_t bytes;
    if (!sn_scan_has(line->text, "CUDA_ERROR") && !sn_scan_has(line->text, "from device") &&
        !sn_scan_has(line->text, "on host") && !sn_scan_has(line->text, "pinned host"))
        return;
    sn_framework_set(d, SN_FRAMEWORK_TENSORFLOW, NULL);
    if (sn_scan_has(line->text, "on host") || sn_scan_has(line->text, "pinned host")) {
        bool sized =
            sn_scan_after(at, "failed to alloc", &bytes) || sn_scan_after(at, "of size", &bytes);
        if (sized && !sn_fact_has(d, SN_FACT_REQUESTED))
            sn_fact_set(d, SN_FACT_REQUESTED, bytes, line->number);
        sn_tell_raise(d, SN_TELL_TF_HOST_ALLOC, line->number, line->text);
        return;
    }
    bool found = sn_scan_count_after(at, "(", &bytes) || sn_scan_after(at, "allocate", &bytes);
    if (found && !sn_fact_has(d, SN_FACT_REQUESTED))
        sn_fact_set(d, SN_FACT_REQUESTED, bytes, line->number);
    sn_tell_raise(d, SN_TELL_TF_FAILED_ALLOC, line->number, line->text);
}

/* "failed call to cuDevicePrimaryCtxRetain: CUDA_ERROR_OUT_OF_MEMORY: out of memory; total memory
 * reported: 11721506816" */
static void read_context(snug_diagnosis *d, const sn_line *line, const char *at)
{
    uint64_t bytes;
    if (!sn_scan_fold(at, "out of memory") && !sn_scan_has(at, "OUT_OF_MEMORY"))
        return;
    if (sn_scan_after(at, "total memory reported", &bytes) && bytes < UINT64_C(1) << 50)
        sn_fact_set(d, SN_FACT_GPU_TOTAL, bytes, line->number);
    sn_tell_raise(d, SN_TELL_TF_NO_CONTEXT, line->number, line->text);
}

static void read_cuda_oom(snug_diagnosis *d, const sn_line *line, const char *at)
{
    SN_UNUSED(at);
    if (sn_scan_has(line->text, "failed to alloc") || sn_scan_has(line->text, "pinned host") ||
        sn_scan_has(line->text, "CtxRetain"))
        return; /* other rows read them */
    sn_tell_raise(d, SN_TELL_TF_FAILED_ALLOC, line->number, line->text);
}

/* "Allocation of 3231820288 exceeds 10% of free system memory." */
static void read_ten_percent(snug_diagnosis *d, const sn_line *line, const char *at)
{
    uint64_t bytes;
    const char *from = strstr(line->text, "llocation of ");
    SN_UNUSED(at);
    if (from && sn_scan_after(from, "llocation of", &bytes) &&
        bytes >= sn_fact_value(d, SN_FACT_BIGGEST_CHUNK))
        sn_fact_set(d, SN_FACT_BIGGEST_CHUNK, bytes, line->number);
    sn_tell_raise(d, SN_TELL_TF_TEN_PERCENT, line->number, line->text);
}

static void read_fraction(snug_diagnosis *d, const sn_line *line, const char *at)
{
    double value;
    const char *p = at + strcspn(at, "=:");
    if (*p) {
        p++;
        p += strspn(p, " '\"");
        bool dot = *p == '.';
        if (dot && p[1] >= '0' && p[1] <= '9') { /* ".95" */
            char text[16];
            snprintf(text, sizeof text, "0%.10s", p);
            const char *q = text;
            if (sn_scan_real(&q, &value))
                sn_fact_set_real(d, SN_FACT_MEMORY_FRACTION, value, line->number);
        } else if (sn_scan_real(&p, &value) && value > 0 && value < 16) {
            sn_fact_set_real(d, SN_FACT_MEMORY_FRACTION, value, line->number);
        }
    }
    sn_tell_raise(d, SN_TELL_TF_FRACTION, line->number, line->text);
}

/* XLA and JAX: no tensor is named, only a size. */
static void read_xla(snug_diagnosis *d, const sn_line *line, const char *at)
{
    uint64_t bytes;
    if (sn_scan_has(at, "ran out of memory") || sn_scan_has(line->text, "not a failure"))
        return;
    if (sn_scan_count_after(at, "GiB (", &bytes) || sn_scan_count_after(at, "MiB (", &bytes) ||
        sn_scan_after(at, "allocate", &bytes) || sn_scan_after(at, "allocating", &bytes) ||
        sn_scan_after(at, "request for", &bytes))
        sn_fact_set(d, SN_FACT_REQUESTED, bytes, line->number);
    if (sn_scan_has(line->text, "XlaRuntimeError") || sn_scan_has(line->text, "jax"))
        sn_framework_set(d, SN_FRAMEWORK_JAX, NULL);
    sn_tell_raise(d, SN_TELL_XLA_OOM, line->number, line->text);
}

/* "Attempting to allocate 20.00G. That was not possible. There are 13.20G free." (TPU) */
static void read_xla_free(snug_diagnosis *d, const sn_line *line, const char *at)
{
    uint64_t bytes;
    if (sn_scan_after(line->text, "ttempting to allocate", &bytes) ||
        sn_scan_after(line->text, "ttempting to reserve", &bytes))
        sn_fact_set(d, SN_FACT_REQUESTED, bytes, line->number);
    if (sn_scan_after(at, "There are", &bytes))
        sn_fact_set(d, SN_FACT_FREE, bytes, line->number);
    sn_tell_raise(d, SN_TELL_XLA_OOM, line->number, line->text);
}

/* "Used 18.27G of 15.48G hbm." */
static void read_hbm(snug_diagnosis *d, const sn_line *line, const char *at)
{
    uint64_t bytes;
    if (sn_scan_after(at, "Used", &bytes))
        sn_fact_set(d, SN_FACT_REQUESTED, bytes, line->number);
    if (sn_scan_before(at, " hbm", &bytes))
        sn_fact_set(d, SN_FACT_TOTAL, bytes, line->number);
    sn_tell_raise(d, SN_TELL_XLA_OOM, line->number, line->text);
}

/* XLA's BufferAssignment report. */
static void read_xla_buffers(snug_diagnosis *d, const sn_line *line, const char *at)
{
    uint64_t bytes;
    if (sn_scan_after(at, "parameter allocation", &bytes))
        sn_fact_set(d, SN_FACT_XLA_PARAMETERS, bytes, line->number);
    if (sn_scan_after(at, "constant allocation", &bytes))
        sn_fact_set(d, SN_FACT_XLA_CONSTANTS, bytes, line->number);
    if (sn_scan_after(at, "temp allocation", &bytes))
        sn_fact_set(d, SN_FACT_XLA_TEMP, bytes, line->number);
    sn_tell_raise(d, SN_TELL_XLA_BUFFERS, line->number, line->text);
}

/* "Loaded runtime CuDNN library: 8.0.5 but source was compiled with: 8.1.0." */
static void read_cudnn_version(snug_diagnosis *d, const sn_line *line, const char *at)
{
    const char *loaded = at + strcspn(at, ":");
    if (*loaded)
        loaded += 1 + strspn(loaded + 1, " ");
    const char *built = strstr(loaded, "compiled with");
    size_t n = strspn(loaded, "0123456789.");
    if (n)
        sn_fact_set_text(d, SN_FACT_CUDNN_LOADED, loaded, n, line->number);
    if (built) {
        built += strlen("compiled with");
        built += strspn(built, ": ");
        size_t k = strspn(built, "0123456789.");
        while (k && built[k - 1] == '.')
            k--;
        if (k)
            sn_fact_set_text(d, SN_FACT_CUDNN_BUILT, built, k, line->number);
    }
    sn_tell_raise(d, SN_TELL_LIB_CUDNN, line->number, line->text);
}

static void read_graphdef(snug_diagnosis *d, const sn_line *line, const char *at)
{
    uint64_t bytes;
    sn_fact_set(d, SN_FACT_PROTO_LIMIT, INT32_MAX, line->number);
    if (sn_scan_count_after(at, "of 2GB:", &bytes) && bytes > INT32_MAX)
        sn_fact_set(d, SN_FACT_PROTO_BYTES, bytes, line->number);
    sn_tell_raise(d, SN_TELL_GRAPHDEF, line->number, line->text);
}

#define TF SN_FRAMEWORK_TENSORFLOW
#define JAX SN_FRAMEWORK_JAX
#define NO SN_FRAMEWORK_NONE
static const sn_pattern rows[] = {
    {"OOM when allocating tensor", NULL, 0, TF, read_oom_tensor, false},
    {"ran out of memory trying to allocate", NULL, 0, TF, read_bfc, false},
    {"{{node ", NULL, 0, TF, read_node, true},
    {"[[Node: ", NULL, 0, TF, read_node, true},
    {"__wrapped__", NULL, 0, TF, read_op, true},
    {"_EagerConst", NULL, 0, TF, read_eager_const, false},
    {"Dst tensor is not initialized", NULL, SN_TELL_TF_DST, TF, NULL, false},
    {"convert_to_tensor", NULL, SN_TELL_TF_CONVERT, TF, NULL, true},
    {"convert_to_eager_tensor", NULL, SN_TELL_TF_CONVERT, TF, NULL, true},
    {"from_tensor_slices", NULL, SN_TELL_TF_CONVERT, TF, NULL, true},
    {"Limit:  ", NULL, 0, TF, read_stat, false},
    {"InUse:  ", NULL, 0, TF, read_stat, false},
    {"NumAllocs:  ", NULL, 0, TF, read_stat, false},
    {"MaxAllocSize:  ", NULL, 0, TF, read_stat, false},
    {"total_region_allocated_bytes_", NULL, 0, TF, read_region, false},
    {"Total size in pool: ", NULL, 0, TF, read_region, false},
    {"Free  at ", NULL, 0, TF, read_free_chunk, false},
    {"Sum Total of in-use chunks", NULL, 0, TF, read_sum, false},
    {" Chunks of size ", NULL, 0, TF, read_chunk, false},
    {"InUse at ", NULL, 0, TF, read_chunk, false},
    {"Created TensorFlow device", NULL, 0, TF, read_created, false},
    {"Created device /job", NULL, 0, TF, read_created, false},
    {" major: ", NULL, 0, NO, read_properties, true},
    {"computeCapability", NULL, 0, TF, read_properties, true},
    {"totalMemory: ", NULL, 0, TF, read_device_memory, true},
    {"freeMemory: ", NULL, 0, TF, read_device_memory, false},
    {"Total memory: ", NULL, 0, NO, read_device_memory, true},
    {"Free memory: ", NULL, 0, NO, read_device_memory, true},
    {"deviceMemorySize: ", NULL, 0, TF, read_device_memory, true},
    {"failed to alloc", NULL, 0, NO, read_failed_alloc, false},
    {"could not allocate pinned host memory", NULL, 0, TF, read_failed_alloc, false},
    {"CUDA_ERROR_OUT_OF_MEMORY", NULL, 0, TF, read_cuda_oom, false},
    {"cuDevicePrimaryCtxRetain", NULL, 0, TF, read_context, false},
    {"implicit initialization on GPU", NULL, 0, TF, read_context, false},
    {"exceeds 10% of", NULL, 0, TF, read_ten_percent, false},
    {"Failed to get convolution algorithm", NULL, SN_TELL_TF_CONV_ALGO, TF, NULL, false},
    {"No algorithm worked!", NULL, SN_TELL_TF_NO_ALGO, TF, NULL, false},
    {"No algorithm without workspace worked", NULL, SN_TELL_TF_NO_ALGO, TF, NULL, false},
    {"cuDNN launch failure", NULL, SN_TELL_TF_CONV_ALGO, TF, NULL, false},
    {"DNN library initialization failed", NULL, SN_TELL_TF_CONV_ALGO, TF, NULL, false},
    {"DNN library is not found", NULL, SN_TELL_TF_CONV_ALGO, TF, NULL, false},
    {"Blas GEMM launch failed", NULL, SN_TELL_TF_BLAS, TF, NULL, false},
    {"Blas xGEMM", NULL, SN_TELL_TF_BLAS, TF, NULL, false},
    {"without BLAS support", NULL, SN_TELL_TF_BLAS, TF, NULL, false},
    {"create cublas handle", NULL, SN_TELL_TF_BLAS, TF, NULL, false},
    {"Physical devices cannot be modified", NULL, SN_TELL_TF_MEMORY_SET, TF, NULL, false},
    {"Memory growth must be set before", NULL, SN_TELL_TF_MEMORY_SET, TF, NULL, false},
    {"Virtual devices cannot be modified", NULL, SN_TELL_TF_MEMORY_SET, TF, NULL, false},
    {"per_process_gpu_memory_fraction", NULL, 0, TF, read_fraction, false},
    {"XLA_PYTHON_CLIENT_MEM_FRACTION", NULL, 0, JAX, read_fraction, false},
    {"memory_limit=", NULL, SN_TELL_TF_MEMORY_LIMIT, TF, NULL, false},
    {"set_memory_growth", NULL, SN_TELL_NONE, TF, NULL, true},
    {"cuda_malloc_async", NULL, SN_TELL_TF_ASYNC_HINT, TF, NULL, false},
    {"triggered tf.function retracing", NULL, SN_TELL_TF_RETRACING, TF, NULL, false},
    {"Out of memory while trying to allocate", NULL, 0, NO, read_xla, false},
    {"RESOURCE_EXHAUSTED: Out of memory", NULL, 0, NO, read_xla, false},
    {"RESOURCE_EXHAUSTED: Failed to allocate request", NULL, 0, NO, read_xla, false},
    {"RESOURCE_EXHAUSTED: ", "OOM", SN_TELL_NONE, TF, NULL, false},
    {"That was not possible. There are", NULL, 0, NO, read_xla_free, false},
    {"Ran out of memory in memory space hbm", NULL, 0, NO, read_hbm, false},
    {"parameter allocation: ", NULL, 0, NO, read_xla_buffers, false},
    {"constant allocation: ", NULL, 0, NO, read_xla_buffers, false},
    {"temp allocation: ", NULL, 0, NO, read_xla_buffers, false},
    {"BufferAssignment OOM Debugging", NULL, SN_TELL_XLA_BUFFERS, NO, NULL, false},
    {"XlaRuntimeError", NULL, SN_TELL_NONE, JAX, NULL, false},
    {"jaxlib", NULL, SN_TELL_NONE, JAX, NULL, true},
    {"content is larger than 2GB", NULL, 0, TF, read_graphdef, false},
    {"GraphDef cannot be larger than 2GB", NULL, 0, TF, read_graphdef, false},
    {"maximum protobuf size of 2GB", NULL, 0, NO, read_graphdef, false},
    {"protobuf size of 2GB", NULL, 0, NO, read_graphdef, false},
    {"(byte_size_before_serialization", NULL, 0, NO, read_graphdef, false},
    {"rejected because it was too big (more than", NULL, 0, NO, read_graphdef, false},
    {"Failed to serialize proto", NULL, 0, NO, read_graphdef, false},
    {"larger than the 2GB limit", NULL, 0, NO, read_graphdef, false},
    {"exceeds 2GB", NULL, 0, NO, read_graphdef, false},
    {"(byte_size) <= ", "INT_MAX", 0, NO, read_graphdef, false},
    {"Loaded runtime CuDNN library", NULL, 0, TF, read_cudnn_version, false},
    {"tensorflow", NULL, SN_TELL_NONE, TF, NULL, true},
    {"bfc_allocator", NULL, SN_TELL_NONE, TF, NULL, false},
    {"/keras/", NULL, SN_TELL_NONE, TF, NULL, true},
    {"\\keras\\", NULL, SN_TELL_NONE, TF, NULL, true},
    {"tf.compat", NULL, SN_TELL_NONE, TF, NULL, true},
    {"tf.data", NULL, SN_TELL_NONE, TF, NULL, true},
    {"tf.keras", NULL, SN_TELL_NONE, TF, NULL, true},
    {"in build_wrapper", NULL, SN_TELL_FRAME_BUILD, TF, NULL, true},
    {"in _maybe_rebuild", NULL, SN_TELL_FRAME_BUILD, TF, NULL, true},
    {"in add_weight", NULL, SN_TELL_FRAME_BUILD, TF, NULL, true},
    {"stateless_uniform", NULL, SN_TELL_FRAME_BUILD, TF, NULL, true},
    {"stateless_truncated_normal", NULL, SN_TELL_FRAME_BUILD, TF, NULL, true},
    {"init_ops_v2.py", NULL, SN_TELL_FRAME_BUILD, TF, NULL, true},
    {"initializers_v2.py", NULL, SN_TELL_FRAME_BUILD, TF, NULL, true},
    {"model: sequential", NULL, SN_TELL_NONE, TF, NULL, true},
    {"model: functional", NULL, SN_TELL_NONE, TF, NULL, true},
    {"Model: \"sequential", NULL, SN_TELL_NONE, TF, NULL, true},
    {"Model: \"model", NULL, SN_TELL_NONE, TF, NULL, true},
    {"Model: \"functional", NULL, SN_TELL_NONE, TF, NULL, true},
};

const sn_pattern *sn_patterns_tensorflow(size_t *n)
{
    *n = SN_LEN(rows);
    return rows;
}
