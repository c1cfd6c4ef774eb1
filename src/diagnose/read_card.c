/* SPDX-License-Identifier: Apache-2.0
 *
 * Cards: nvidia-smi's tables, versions of libraries and drivers, darknet, OpenCL, and frameworks
 * other than TensorFlow and PyTorch.
 */
#include "diagnose/state.h"

#include <string.h>

#include "diagnose/scan.h"

static const char *skip_spaces(const char *p)
{
    return p + strspn(p, " ");
}

/* "|   0  GeForce GTX 107...  Off  | 00000000:01:00.0  On |                  N/A |" */
static void read_smi_name(snug_diagnosis *d, const sn_line *line, const char *at)
{
    uint64_t index = 0;
    const char *bar = strchr(line->text, '|'), *p = NULL;
    for (; bar && bar < at; bar = strchr(bar + 1, '|')) { /* a supervisor may put one before */
        p = bar + 1;
        if (sn_scan_count(&p, &index) && index < SN_DIAGNOSE_GPUS && *p == ' ')
            break;
    }
    if (!bar || bar >= at)
        return;
    p = skip_spaces(p);
    const char *end = strstr(p, "  ");
    char name[48];
    size_t n = end && end < at ? (size_t)(end - p) : 0;
    n = SN_MIN(n, sizeof name - 1);
    memcpy(name, p, n);
    name[n] = '\0';
    d->smi_gpu = (int)index;
    sn_gpu_set(d, d->smi_gpu, name, UINT64_MAX, UINT64_MAX);
}

/* "|  0%   61C    P0    58W / 180W |   7940MiB /  8112MiB |      3%      Default |" */
static void read_smi_memory(snug_diagnosis *d, const sn_line *line, const char *at)
{
    const char *p = at;
    uint64_t used, total;
    while (p > line->text && p[-1] >= '0' && p[-1] <= '9')
        p--;
    if (!sn_scan_size(&p, &used, NULL))
        return;
    p = skip_spaces(p);
    if (*p != '/')
        return;
    p++;
    if (!sn_scan_size(&p, &total, NULL) || !total)
        return;
    if (d->smi_gpu < 0) /* the row with the name was cut away */
        d->smi_gpu = (int)SN_MIN(d->n_gpus, (size_t)SN_DIAGNOSE_GPUS - 1);
    sn_gpu_set(d, d->smi_gpu, NULL, used, total);
    sn_tell_raise(d, SN_TELL_SMI, line->number, line->text);
    d->smi_gpu = -1;
}

static void read_smi_processes(snug_diagnosis *d, const sn_line *line, const char *at)
{
    SN_UNUSED(line);
    SN_UNUSED(at);
    d->smi_rows = 64;
    d->smi_gpu = -1;
}

/* "|    0   N/A  N/A      1234      C   python3          7801MiB |", and without the N/A. */
void sn_smi_row(snug_diagnosis *d, const sn_line *line)
{
    uint64_t gpu, pid, bytes;
    const char *first = strchr(line->text, '|'), *p = first;
    d->smi_rows--;
    for (; first; first = strchr(first + 1, '|')) {
        p = first + 1;
        if (sn_scan_count(&p, &gpu) && gpu < SN_DIAGNOSE_GPUS && *p == ' ')
            break;
    }
    if (!first)
        return;
    for (p = skip_spaces(p); sn_str_starts(p, "N/A"); p = skip_spaces(p + 3)) {
    }
    if (!sn_scan_count(&p, &pid))
        return;
    p = skip_spaces(p);
    while (*p == 'C' || *p == 'G' || *p == '+' || *p == 'M')
        p++;
    p = skip_spaces(p);
    const char *bar = strchr(p, '|');
    if (!bar)
        return;
    const char *mib = bar;
    while (mib > p && mib[-1] == ' ')
        mib--;
    const char *end = mib;
    while (mib > p && mib[-1] != ' ')
        mib--;
    const char *size = mib;
    if (!sn_scan_size(&size, &bytes, NULL) || size > end)
        bytes = UINT64_MAX; /* N/A */
    char name[64];
    while (mib > p && mib[-1] == ' ')
        mib--;
    size_t n = SN_MIN((size_t)(mib - p), sizeof name - 1);
    memcpy(name, p, n);
    name[n] = '\0';
    sn_gpu_holder_add(d, (int)gpu, pid, name, bytes, line->number);
    sn_tell_raise(d, SN_TELL_SMI_HOLDER, line->number, line->text);
}

/* "   3 CUDA Error: out of memory": the number is the layer whose row could not be made. */
static void read_darknet(snug_diagnosis *d, const sn_line *line, const char *at)
{
    if (!sn_str_starts(at, "CUDA Error: out of memory"))
        return; /* PyTorch writes "CUDA error" */
    const char *p = line->text;
    uint64_t layer;
    if (sn_scan_count(&p, &layer) && *p == ' ' && skip_spaces(p) == at)
        sn_fact_set(d, SN_FACT_FAILING_LAYER, layer, line->number);
    sn_framework_set(d, SN_FRAMEWORK_DARKNET, NULL);
    sn_tell_raise(d, SN_TELL_DARKNET_OOM, line->number, line->text);
}

/* "    0 conv     32  3 x 3 / 1   416 x 416 x   3   ->   416 x 416 x  32  0.299 BFLOPs" */
static void read_darknet_layer(snug_diagnosis *d, const sn_line *line, const char *at)
{
    const char *arrow = strstr(line->text, "->");
    uint64_t w, h, c;
    SN_UNUSED(at);
    sn_tell_raise(d, SN_TELL_DARKNET_LAYER, line->number, line->text);
    if (!arrow || sn_fact_has(d, SN_FACT_INPUT))
        return;
    const char *p = arrow; /* back over "416 x 416 x   3   " */
    int crosses = 0;
    while (p > line->text && crosses < 3) {
        p--;
        if (*p == 'x')
            crosses++;
        else if (*p == '/')
            break;
    }
    p = arrow;
    const char *starts[3] = {NULL, NULL, NULL};
    for (int i = 2; i >= 0; i--) {
        while (p > line->text && (p[-1] == ' ' || p[-1] == 'x'))
            p--;
        while (p > line->text && p[-1] >= '0' && p[-1] <= '9')
            p--;
        starts[i] = p;
    }
    const char *pw = starts[0], *ph = starts[1], *pc = starts[2];
    if (sn_scan_count(&pw, &w) && sn_scan_count(&ph, &h) && sn_scan_count(&pc, &c) &&
        w < 1u << 20 && h < 1u << 20 && c < 1u << 20) {
        int64_t dims[3] = {(int64_t)w, (int64_t)h, (int64_t)c};
        sn_fact_set_shape(d, SN_FACT_INPUT, dims, 3, line->number);
    }
}

/* "subdivisions: Using default '1'", "subdivisions=16", "batch = 64, ... subdivisions = 8" */
static void read_subdivisions(snug_diagnosis *d, const sn_line *line, const char *at)
{
    const char *p = at + strcspn(at, "0123456789");
    uint64_t n;
    if (p - at < 40 && sn_scan_count(&p, &n))
        sn_fact_set(d, SN_FACT_SUBDIVISIONS, n, line->number);
}

static void read_mini_batch(snug_diagnosis *d, const sn_line *line, const char *at)
{
    uint64_t n;
    if (sn_scan_count_after(at, "mini_batch", &n))
        sn_fact_set(d, SN_FACT_BATCH, n, line->number);
}

/* Other frameworks: what was asked for, where it is said; the name of the framework. */
static void read_other(snug_diagnosis *d, const sn_line *line, const char *at)
{
    static const struct {
        const char *in_line, *name;
    } names[] = {
        {"Cannot allocate", "paddle"},
        {"Out of memory allocating", "cupy"},
        {"cupy", "cupy"},
        {"CNMEM", "theano"},
        {"bytes of device memory", "theano"},
        {"cudaSuccess", "caffe"},
        {"ggml", "llama.cpp"},
        {"llama", "llama.cpp"},
        {"onnxruntime", "onnxruntime"},
        {"requested buffer of size", "onnxruntime"},
        {"mxnet", "mxnet"},
        {"cudaMalloc retry", "mxnet"},
        {"cudaMalloc failed", "mxnet"},
        {"Out of GPU memory", "cuda.jl"},
        {"gpuDevice", "matlab"},
        {"numba", "numba"},
    };
    uint64_t bytes;
    const char *t = line->text;
    if (sn_scan_after(t, "Cannot allocate", &bytes) ||
        sn_scan_after(t, "Out of memory allocating", &bytes) ||
        sn_scan_after(t, "Error allocating", &bytes) ||
        sn_scan_after(t, "buffer of size", &bytes) || sn_scan_after(t, "allocating ", &bytes) ||
        sn_scan_after(t, "trying to allocate", &bytes))
        if (bytes)
            sn_fact_set(d, SN_FACT_REQUESTED, bytes, line->number);
    if (sn_scan_after(t, "available memory is only", &bytes))
        sn_fact_set(d, SN_FACT_FREE, bytes, line->number);
    if (sn_scan_before(t, " memory has been allocated", &bytes) ||
        sn_scan_after(t, "allocated so far", &bytes))
        sn_fact_set(d, SN_FACT_ALLOCATED, bytes, line->number);
    if (sn_scan_after(t, "limit set to", &bytes))
        sn_fact_set(d, SN_FACT_ALLOWED, bytes, line->number);
    const char *name = "other";
    for (size_t i = 0; i < SN_LEN(names) && !strcmp(name, "other"); i++)
        if (sn_scan_has(t, names[i].in_line))
            name = names[i].name;
    SN_UNUSED(at);
    if (strcmp(name, "other"))
        sn_framework_set(d, SN_FRAMEWORK_OTHER, name);
    sn_tell_raise(d, SN_TELL_OTHER_OOM, line->number, line->text);
}

static void read_opencl(snug_diagnosis *d, const sn_line *line, const char *at)
{
    sn_fact_set_text(d, SN_FACT_STATUS, at, strspn(at, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_"),
                     line->number);
    sn_tell_raise(d, SN_TELL_OPENCL_OOM, line->number, line->text);
}

/* "Free memory on device (5.2/23.6 GiB) on startup is less than desired GPU memory utilization
 * (0.9, 21.2 GiB)" */
static void read_vllm(snug_diagnosis *d, const sn_line *line, const char *at)
{
    double part, whole;
    const char *p = strchr(at, '(');
    sn_tell_raise(d, SN_TELL_VLLM_FREE, line->number, line->text);
    if (!p)
        return;
    p++;
    if (sn_scan_real(&p, &part) && *p == '/') {
        p++;
        if (sn_scan_real(&p, &whole) && whole < 100000) {
            sn_fact_set(d, SN_FACT_FREE, (uint64_t)(part * (double)SN_GIB), line->number);
            sn_fact_set(d, SN_FACT_TOTAL, (uint64_t)(whole * (double)SN_GIB), line->number);
        }
    }
}

/* A name of a library in a loader's complaint. */
static void read_symbol(snug_diagnosis *d, const sn_line *line, const char *at)
{
    static const char *const libraries[] = {"libcudnn", "libcublas",   "libcudart",
                                            "libnccl",  "libcusolver", "libcusparse",
                                            "libnvrtc", "libcufft",    "libtorch"};
    SN_UNUSED(at);
    for (size_t i = 0; i < SN_LEN(libraries); i++) {
        const char *hit = strstr(line->text, libraries[i]);
        if (!hit)
            continue;
        size_t n = strcspn(hit, " :,;'\"");
        sn_fact_set_text(d, SN_FACT_LIBRARY, hit, n, line->number);
        bool missing = sn_scan_has(line->text, "Could not load dynamic library") ||
                       sn_scan_has(line->text, "cannot open shared object");
        sn_tell_raise(d, missing ? SN_TELL_LIB_MISSING : SN_TELL_LIB_SYMBOL, line->number,
                      line->text);
        return;
    }
}

/* "GeForce GTX 950 with CUDA capability sm_52 is not compatible with the current PyTorch
 * installation." */
static void read_arch(snug_diagnosis *d, const sn_line *line, const char *at)
{
    const char *sm = strstr(line->text, "sm_");
    const char *with = strstr(line->text, " with CUDA capability");
    uint64_t n;
    SN_UNUSED(at);
    if (sm && sn_scan_count_after(sm, "sm_", &n) && n >= 20 && n < 200)
        sn_fact_set_real(d, SN_FACT_COMPUTE_CAPABILITY, (double)n / 10, line->number);
    if (with)
        sn_fact_set_text(d, SN_FACT_GPU_NAME, line->text, (size_t)(with - line->text),
                         line->number);
    sn_tell_raise(d, SN_TELL_LIB_ARCH, line->number, line->text);
}

#define NO SN_FRAMEWORK_NONE
static const sn_pattern rows[] = {
    {" 00000000:", NULL, 0, NO, read_smi_name, true},
    {"| 0000:", NULL, 0, NO, read_smi_name, true},
    {"MiB / ", NULL, 0, NO, read_smi_memory, false},
    {"GPU Memory |", NULL, 0, NO, read_smi_processes, false},
    {"Process name", NULL, 0, NO, read_smi_processes, false},
    {"CUDA Error: out of memory", NULL, 0, NO, read_darknet, false},
    {" BFLOPs", NULL, 0, SN_FRAMEWORK_DARKNET, read_darknet_layer, true},
    {"3 x 3/", "->", 0, SN_FRAMEWORK_DARKNET, read_darknet_layer, true},
    {"mini_batch = ", NULL, 0, SN_FRAMEWORK_DARKNET, read_mini_batch, true},
    {"subdivisions", NULL, 0, NO, read_subdivisions, true},
    {"cudaMalloc failed: out of memory", NULL, 0, NO, read_other, false},
    {"cudaMalloc retry failed: out of memory", NULL, 0, NO, read_other, false},
    {"error == cudaSuccess (2 vs. 0)", NULL, 0, NO, read_other, false},
    {"Out of memory error on GPU", NULL, 0, NO, read_other, false},
    {"Out of memory allocating", "bytes", 0, NO, read_other, false},
    {"CNMEM_STATUS_OUT_OF_MEMORY", NULL, 0, NO, read_other, false},
    {"bytes of device memory", "rror", 0, NO, read_other, false},
    {"memory for requested buffer of size", NULL, 0, NO, read_other, false},
    {"Out of GPU memory trying to allocate", NULL, 0, NO, read_other, false},
    {"Out of memory on device.", NULL, 0, NO, read_other, false},
    {"cudaErrorMemoryAllocation", NULL, 0, NO, read_other, false},
    {"CL_MEM_OBJECT_ALLOCATION_FAILURE", NULL, 0, NO, read_opencl, false},
    {"CL_OUT_OF_RESOURCES", NULL, 0, NO, read_opencl, false},
    {"CL_OUT_OF_HOST_MEMORY", NULL, 0, NO, read_opencl, false},
    {"CL_INVALID_BUFFER_SIZE", NULL, 0, NO, read_opencl, false},
    {"Free memory on device (", NULL, 0, NO, read_vllm, false},
    {"no longer supports this GPU", NULL, SN_TELL_LIB_ARCH, SN_FRAMEWORK_PYTORCH, NULL, false},
    {"driver version is insufficient", NULL, SN_TELL_LIB_DRIVER, NO, NULL, false},
    {"NVIDIA driver on your system is too old", NULL, SN_TELL_LIB_DRIVER, SN_FRAMEWORK_PYTORCH,
     NULL, false},
    {"no kernel image is available", NULL, SN_TELL_LIB_ARCH, NO, NULL, false},
    {"is not compatible with the current PyTorch", NULL, 0, SN_FRAMEWORK_PYTORCH, read_arch, false},
    {"undefined symbol", NULL, 0, NO, read_symbol, false},
    {"symbol lookup error", NULL, 0, NO, read_symbol, false},
    {"cannot open shared object file", NULL, 0, NO, read_symbol, false},
    {"Could not load dynamic library", NULL, 0, NO, read_symbol, false},
    {"Could not load library libcudnn", NULL, SN_TELL_LIB_SYMBOL, NO, NULL, false},
    {"cuDNN version incompatibility", NULL, SN_TELL_LIB_CUDNN, SN_FRAMEWORK_PYTORCH, NULL, false},
    {"darknet", NULL, SN_TELL_NONE, SN_FRAMEWORK_DARKNET, NULL, true},
};

const sn_pattern *sn_patterns_card(size_t *n)
{
    *n = SN_LEN(rows);
    return rows;
}
