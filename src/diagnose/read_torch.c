/* SPDX-License-Identifier: Apache-2.0
 *
 * What PyTorch prints, all wordings since 1.0. Its sizes are binary whatever they call them.
 */
#include "diagnose/state.h"

#include <stdio.h>
#include <string.h>

#include "diagnose/scan.h"

/* The size after a label; false if it is not there. */
static bool set_after(snug_diagnosis *d, sn_fact_id fact, const char *text, const char *label,
                      const sn_line *line)
{
    uint64_t bytes;
    if (!sn_scan_after(text, label, &bytes))
        return false;
    sn_fact_set(d, fact, bytes, line->number);
    return true;
}

/* The size before a label; false if it is not there. */
static bool set_before(snug_diagnosis *d, sn_fact_id fact, const char *text, const char *label,
                       const sn_line *line)
{
    uint64_t bytes;
    if (!sn_scan_before(text, label, &bytes))
        return false;
    sn_fact_set(d, fact, bytes, line->number);
    return true;
}

/* "Process 812 has 5.00 GiB memory in use." for each process; the largest one's pid is kept. A
 * process in a container does not know its own number: one that holds just what PyTorch has
 * reserved and a driver's context is this one. */
static void read_processes(snug_diagnosis *d, const sn_line *line, const char *text)
{
    uint64_t sum = 0, largest = 0, pid, bytes, own = sn_fact_value(d, SN_FACT_RESERVED);
    bool own_known = sn_fact_has(d, SN_FACT_OWN_PROCESS);
    for (const char *p = text; (p = strstr(p, "rocess ")); p++) {
        const char *s = p + strlen("rocess ");
        if (!sn_scan_count(&s, &pid) || !sn_str_starts(s, " has "))
            continue;
        s += strlen(" has ");
        if (!sn_scan_size(&s, &bytes, NULL))
            continue;
        if (!own_known && own && bytes >= own && bytes - own <= SN_GIB) {
            own_known = true;
            sn_fact_set(d, SN_FACT_OWN_PROCESS, bytes, line->number);
            continue;
        }
        sum += bytes;
        if (bytes > largest) {
            largest = bytes;
            sn_fact_set(d, SN_FACT_OTHER_PID, pid, line->number);
        }
    }
    if (sum)
        sn_fact_set(d, SN_FACT_OTHER_PROCESSES, sum, line->number);
}

static void read_device(snug_diagnosis *d, const char *text)
{
    static const char *const labels[] = {"(GPU ", ". GPU ", " GPU ", "(NPU ", " NPU "};
    for (size_t i = 0; i < SN_LEN(labels); i++) {
        uint64_t index;
        if (!sn_scan_count_after(text, labels[i], &index) || index >= SN_DIAGNOSE_GPUS)
            continue;
        char name[24];
        snprintf(name, sizeof name, "cuda:%u", (unsigned)index);
        sn_device_set(d, name);
        return;
    }
}

/* "CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 10.76 GiB total capacity; ...)" */
static void read_oom(snug_diagnosis *d, const sn_line *line, const char *at)
{
    sn_framework_set(d, SN_FRAMEWORK_PYTORCH, NULL);
    uint64_t asked;
    if (!sn_scan_after(at, "ried to allocate", &asked)) {
        sn_tell_raise(d, SN_TELL_TORCH_OOM_BARE, line->number, line->text);
        return;
    }
    sn_facts_begin_event(d);
    sn_fact_set(d, SN_FACT_REQUESTED, asked, line->number);
    read_device(d, at);
    bool total = set_before(d, SN_FACT_TOTAL, at, " total capacity", line) ||
                 set_after(d, SN_FACT_TOTAL, at, "total capacity of", line) ||
                 set_after(d, SN_FACT_TOTAL, at, "total capacty of", line);
    if (!set_before(d, SN_FACT_FREE, at, " is free", line))
        set_before(d, SN_FACT_FREE, at, " free", line);
    set_before(d, SN_FACT_RESERVED, at, " reserved in total", line);
    bool allocated = set_before(d, SN_FACT_ALLOCATED, at, " already allocated", line) ||
                     set_before(d, SN_FACT_ALLOCATED, at, " is allocated by PyTorch", line);
    /* until 1.3 "cached", and since 2.1 "unallocated", is what is reserved less what is allocated
     */
    bool idle = set_before(d, SN_FACT_CACHED, at, " cached", line);
    if (idle && allocated)
        sn_fact_set(d, SN_FACT_RESERVED,
                    sn_fact_value(d, SN_FACT_ALLOCATED) + sn_fact_value(d, SN_FACT_CACHED),
                    line->number);
    idle = set_before(d, SN_FACT_RESERVED_UNALLOCATED, at,
                      " is reserved by PyTorch but unallocated", line);
    if (idle && allocated)
        sn_fact_set(d, SN_FACT_RESERVED,
                    sn_fact_value(d, SN_FACT_ALLOCATED) +
                        sn_fact_value(d, SN_FACT_RESERVED_UNALLOCATED),
                    line->number);
    set_after(d, SN_FACT_OWN_PROCESS, at, "this process has", line);
    read_processes(d, line, at);
    if (set_before(d, SN_FACT_ALLOWED, at, " allowed", line))
        sn_tell_raise(d, SN_TELL_TORCH_ALLOWED, line->number, line->text);
    sn_tell_raise(d, total ? SN_TELL_TORCH_OOM : SN_TELL_TORCH_OOM_BARE, line->number, line->text);
}

/* "CUDA error: out of memory", "cuda runtime error (2) : out of memory" */
static void read_bare(snug_diagnosis *d, const sn_line *line, const char *at)
{
    if (sn_str_starts(at, "CUDA Error: out of memory") || sn_scan_has(at, "ried to allocate"))
        return; /* darknet's; the other row reads it */
    sn_framework_set(d, SN_FRAMEWORK_PYTORCH, NULL);
    sn_tell_raise(d, SN_TELL_TORCH_OOM_BARE, line->number, line->text);
}

/* The cudaMallocAsync backend: "Allocation on device 0 would exceed allowed memory. (out of
 * memory)", then a number a line: "Currently allocated     : 6.63 GiB". */
static void read_async(snug_diagnosis *d, const sn_line *line, const char *at)
{
    SN_UNUSED(at);
    sn_facts_begin_event(d);
    uint64_t index;
    if (sn_scan_count_after(line->text, "on device", &index) && index < SN_DIAGNOSE_GPUS) {
        char name[24];
        snprintf(name, sizeof name, "cuda:%u", (unsigned)index);
        sn_device_set(d, name);
    }
    sn_tell_raise(d, SN_TELL_TORCH_OOM, line->number, line->text);
}

static void read_async_row(snug_diagnosis *d, const sn_line *line, const char *at)
{
    if (!sn_tell_count(d, SN_TELL_TORCH_OOM))
        return;
    set_after(d, SN_FACT_ALLOCATED, at, "Currently allocated", line);
    set_after(d, SN_FACT_REQUESTED, at, "Requested  ", line);
    set_after(d, SN_FACT_TOTAL, at, "Device limit", line);
    set_after(d, SN_FACT_FREE, at, "Free (according to CUDA)", line);
}

/* "MPS backend out of memory (MPS allocated: 8.90 GB, other allocations: 1.21 GB, max allowed: 9.07
 * GB). Tried to allocate 256.00 MB on private pool." */
static void read_mps(snug_diagnosis *d, const sn_line *line, const char *at)
{
    sn_facts_begin_event(d);
    set_after(d, SN_FACT_REQUESTED, at, "ried to allocate", line);
    set_after(d, SN_FACT_ALLOCATED, at, "MPS allocated", line);
    set_after(d, SN_FACT_OTHER_PROCESSES, at, "other allocations", line);
    set_after(d, SN_FACT_ALLOWED, at, "max allowed", line);
    sn_device_set(d, "mps");
    sn_tell_raise(d, SN_TELL_TORCH_MPS, line->number, line->text);
}

/* "DefaultCPUAllocator: can't allocate memory: you tried to allocate 123 bytes. Error code 12" */
static void read_cpu(snug_diagnosis *d, const sn_line *line, const char *at)
{
    set_after(d, SN_FACT_REQUESTED, at, "tried to allocate", line);
    sn_device_set(d, "cpu");
    sn_tell_raise(d, SN_TELL_TORCH_CPU, line->number, line->text);
}

static void read_status(snug_diagnosis *d, const sn_line *line, const char *at)
{
    if (!sn_str_starts(at, "CUDNN_STATUS_") && !sn_str_starts(at, "CUBLAS_STATUS_"))
        return;
    size_t n = strcspn(at, " '`\"().,;:");
    sn_fact_set_text(d, SN_FACT_STATUS, at, n, line->number);
    bool cublas = sn_str_starts(at, "CUBLAS");
    bool memory = sn_scan_has(at, "ALLOC_FAILED") || sn_scan_has(at, "NOT_INITIALIZED") ||
                  (!cublas && sn_scan_has(at, "INTERNAL_ERROR"));
    if (sn_scan_has(at, "VERSION_MISMATCH") || sn_scan_has(at, "ARCH_MISMATCH")) {
        sn_tell_raise(d, SN_TELL_LIB_CUDNN, line->number, line->text);
        return;
    }
    if (!memory)
        return;
    if (sn_scan_fold(line->text, "create cudnn handle") || sn_scan_has(line->text, "cuda_dnn.cc"))
        sn_tell_raise(
            d, sn_scan_has(at, "ALLOC_FAILED") ? SN_TELL_TF_CUDNN_ALLOC : SN_TELL_TF_CUDNN_INIT,
            line->number, line->text);
    else if (sn_scan_fold(line->text, "create cublas handle") ||
             sn_scan_has(line->text, "cuda_blas.cc"))
        sn_tell_raise(d, SN_TELL_TF_BLAS, line->number, line->text);
    else
        sn_tell_raise(d, cublas ? SN_TELL_TORCH_CUBLAS : SN_TELL_TORCH_CUDNN, line->number,
                      line->text);
}

/* "DataLoader worker (pid 47) is killed by signal: Bus error." */
static void read_worker(snug_diagnosis *d, const sn_line *line, const char *at)
{
    uint64_t pid;
    if (sn_scan_count_after(at, "(pid(s)", &pid) || sn_scan_count_after(at, "(pid", &pid))
        sn_fact_set(d, SN_FACT_WORKER_PID, pid, line->number);
    const char *signal = strstr(at, "killed by signal:");
    if (signal) {
        signal += strlen("killed by signal:");
        signal += strspn(signal, " ");
        size_t n = strcspn(signal, ".(");
        sn_fact_set_text(d, SN_FACT_SIGNAL, signal, n, line->number);
        if (sn_str_starts(signal, "Bus error"))
            sn_tell_raise(d, SN_TELL_WORKER_BUS, line->number, line->text);
        else if (sn_str_starts(signal, "Killed")) {
            sn_fact_set(d, SN_FACT_KILLED, 1, line->number);
            sn_tell_raise(d, SN_TELL_WORKER_KILLED, line->number, line->text);
        }
    } else if (sn_scan_has(at, "exited unexpectedly")) {
        sn_tell_raise(d, SN_TELL_WORKER_EXITED, line->number, line->text);
    }
}

/* The name of a frame: "validate", "forward", ... */
static void read_frame_name(snug_diagnosis *d, const sn_line *line, const char *name)
{
    static const char *const validate[] = {"validat", "evaluat",   "eval",    "predict",
                                           "infer",   "test_step", "sample_", "generate"};
    char low[64];
    size_t n = SN_MIN(sn_scan_word(name), sizeof low - 1);
    for (size_t i = 0; i < n; i++)
        low[i] = (char)(name[i] >= 'A' && name[i] <= 'Z' ? name[i] + 32 : name[i]);
    low[n] = '\0';
    const char *dot = strrchr(low, '.');
    const char *last = dot ? dot + 1 : low;
    bool library = sn_scan_has(line->text, "site-packages") || sn_scan_has(line->text, "/torch/") ||
                   sn_scan_has(line->text, "\\torch\\") || sn_scan_has(line->text, "dist-packages");
    if (!library)
        for (size_t i = 0; i < SN_LEN(validate); i++)
            if (sn_scan_has(last, validate[i]) && !sn_scan_has(last, "model.eval")) {
                sn_tell_raise(d, SN_TELL_FRAME_VALIDATE, line->number, line->text);
                sn_fact_set_text(d, SN_FACT_PHASE, last, strlen(last), line->number);
                return;
            }
    if (!library && (!strcmp(last, "test") || sn_str_starts(last, "test_") ||
                     sn_str_starts(last, "val_") || !strcmp(last, "val"))) {
        sn_tell_raise(d, SN_TELL_FRAME_VALIDATE, line->number, line->text);
        sn_fact_set_text(d, SN_FACT_PHASE, last, strlen(last), line->number);
    } else if (!library && (sn_str_starts(last, "train") || !strcmp(last, "fit"))) {
        sn_tell_raise(d, SN_TELL_FRAME_TRAIN, line->number, line->text);
    } else if (!strcmp(last, "backward") || !strcmp(last, "run_backward")) {
        sn_tell_raise(d, SN_TELL_FRAME_BACKWARD, line->number, line->text);
    } else if (sn_scan_has(line->text, "/optim/") || sn_scan_has(line->text, "\\optim\\")) {
        if (!sn_scan_has(line->text, "lr_scheduler"))
            sn_tell_raise(d, SN_TELL_FRAME_OPTIMIZER, line->number, line->text);
    } else if (!strcmp(last, "_apply") || !strcmp(last, "from_pretrained") ||
               !strcmp(last, "load_state_dict")) {
        sn_tell_raise(d, SN_TELL_FRAME_TO_DEVICE, line->number, line->text);
    } else if (sn_scan_has(last, "conv") && (library || sn_scan_has(last, "_conv_forward"))) {
        sn_tell_raise(d, SN_TELL_FRAME_CONV, line->number, line->text);
    } else if (!strcmp(last, "forward") || !strcmp(last, "_call_impl")) {
        sn_tell_raise(d, SN_TELL_FRAME_FORWARD, line->number, line->text);
    }
}

/* `File "train.py", line 282, in validate`, and IPython's `train.py in validate(model)`. */
static void read_frame(snug_diagnosis *d, const sn_line *line, const char *at)
{
    const char *in = NULL;
    sn_tell_raise(d, SN_TELL_TRACEBACK, line->number, line->text);
    for (const char *p = at; (p = strstr(p, " in ")); p++)
        in = p;
    if (in)
        read_frame_name(d, line, in + strlen(" in "));
}

/* `model.to(device)` shown by a traceback; `X_train.cuda()` is a data set instead. */
static void read_move(snug_diagnosis *d, const sn_line *line, const char *at)
{
    static const char *const data[] = {"train_x",    "X_train",   "x_train",    "train_images",
                                       "train_data", "dataset",   "images_all", "all_images",
                                       "X_test",     "train_set", "trainX"};
    const char *from = at;
    while (from > line->text && from[-1] != ' ' && from[-1] != '(' && from[-1] != '=')
        from--;
    for (size_t i = 0; i < SN_LEN(data); i++) {
        const char *hit = strstr(from, data[i]);
        if (hit) {
            sn_tell_raise(d, SN_TELL_FRAME_DATA_TO_DEVICE, line->number, line->text);
            return;
        }
    }
    bool makes = sn_scan_has(line->text, "torch.tensor(") || sn_scan_has(line->text, "from_numpy(");
    if (makes && (sn_scan_has(line->text, "images") || sn_scan_has(line->text, "data") ||
                  sn_scan_has(line->text, "samples") || sn_scan_has(line->text, "(X"))) {
        sn_tell_raise(d, SN_TELL_FRAME_DATA_TO_DEVICE, line->number, line->text);
        return;
    }
    static const char *const models[] = {"model",   "net.",     "Net(", "self.model", "generator",
                                         "network", "encoder.", "unet", "pipe."};
    for (size_t i = 0; i < SN_LEN(models); i++) {
        const char *hit = sn_scan_fold(from, models[i]);
        if (hit && hit < at + 1) {
            sn_tell_raise(d, SN_TELL_FRAME_TO_DEVICE, line->number, line->text);
            return;
        }
    }
}

/* `losses.append(loss)` keeps the graph; with .item() it does not. */
static void read_kept(snug_diagnosis *d, const sn_line *line, const char *at)
{
    static const char *const sound[] = {".item()",  ".cpu()",    ".detach()", "float(",
                                        ".numpy()", ".tolist()", ".data["};
    for (size_t i = 0; i < SN_LEN(sound); i++)
        if (sn_scan_has(line->text, sound[i]))
            return;
    const char *from = SN_MAX(line->text, at - 24);
    if (!sn_scan_has(from, "loss") && !sn_scan_has(from, "output") && !sn_scan_has(from, "pred") &&
        !sn_scan_has(from, "feat") && !sn_scan_has(from, "score") && !sn_scan_has(from, "logits"))
        return;
    sn_tell_raise(d, SN_TELL_FRAME_LIST_KEPT, line->number, line->text);
}

/* memory_summary(): "| Allocated memory      |    7204 MB |    7300 MB | ..." */
static void read_summary_row(snug_diagnosis *d, const sn_line *line, const char *at)
{
    const char *bar = strchr(at, '|');
    uint64_t bytes;
    bool unit;
    if (!bar)
        return;
    bar++;
    if (!sn_scan_size(&bar, &bytes, &unit) || !unit)
        return;
    sn_fact_id fact = sn_str_starts(at, "Allocated") ? SN_FACT_ALLOCATED : SN_FACT_RESERVED;
    if (!sn_fact_has(d, fact))
        sn_fact_set(d, fact, bytes, line->number);
}

static void read_summary_ooms(snug_diagnosis *d, const sn_line *line, const char *at)
{
    uint64_t n;
    if (sn_scan_count_after(at, "CUDA OOMs", &n) && n)
        sn_tell_raise(d, SN_TELL_TORCH_SUMMARY_OOM, line->number, line->text);
}

/* A segment of memory_snapshot(): "'total_size': 11643387904}" */
static void read_segment(snug_diagnosis *d, const sn_line *line, const char *at)
{
    uint64_t bytes;
    bool live = sn_str_starts(at, "'allocated_size'");
    sn_fact_id fact = live ? SN_FACT_SEGMENT_LIVE : SN_FACT_SEGMENT_TOTAL;
    const char *p = strchr(at, ':');
    if (!p)
        return;
    p++;
    if (!sn_scan_count(&p, &bytes))
        return;
    if (bytes >= sn_fact_value(d, fact) && bytes)
        sn_fact_set(d, fact, bytes, line->number);
    sn_tell_raise(d, SN_TELL_TORCH_SEGMENTS, line->number, line->text);
}

static void read_shm_object(snug_diagnosis *d, const sn_line *line, const char *at)
{
    SN_UNUSED(at);
    bool full = sn_scan_has(line->text, "No space left");
    sn_tell_raise(d, full ? SN_TELL_SHM_FULL : SN_TELL_SHM_OBJECT, line->number, line->text);
}

/* "unable to mmap 2048 bytes from file </torch_123_45>: Cannot allocate memory (12)" */
static void read_mmap(snug_diagnosis *d, const sn_line *line, const char *at)
{
    if (sn_scan_has(at, "/torch_"))
        sn_tell_raise(d, SN_TELL_SHM_OBJECT, line->number, line->text);
    else if (sn_scan_has(at, "annot allocate"))
        sn_tell_raise(d, SN_TELL_ERRNO_12, line->number, line->text);
}

/* No more than 0.5 of the card, by the program's own wish. */
static void read_fraction_call(snug_diagnosis *d, const sn_line *line, const char *at)
{
    double value;
    if (sn_scan_real_after(at, "fraction", &value) && value > 0 && value <= 1)
        sn_fact_set_real(d, SN_FACT_MEMORY_FRACTION, value, line->number);
    sn_tell_raise(d, SN_TELL_TF_FRACTION, line->number, line->text);
}

#define TORCH SN_FRAMEWORK_PYTORCH
#define NONE SN_FRAMEWORK_NONE
static const sn_pattern rows[] = {
    {"out of memory. Tried to allocate", NULL, 0, NONE, read_oom, false},
    {"CUDA out of memory", NULL, 0, NONE, read_bare, false},
    {"CUDA error: out of memory", NULL, 0, NONE, read_bare, false},
    {"cuda runtime error (2)", "out of memory", SN_TELL_TORCH_OOM_BARE, TORCH, NULL, false},
    {"hipErrorOutOfMemory", NULL, SN_TELL_TORCH_OOM_BARE, TORCH, NULL, false},
    {"PI_ERROR_OUT_OF_RESOURCES", NULL, SN_TELL_TORCH_OOM_BARE, TORCH, NULL, false},
    {"UR_RESULT_ERROR_OUT_OF", NULL, SN_TELL_TORCH_OOM_BARE, TORCH, NULL, false},
    {"would exceed allowed memory", NULL, 0, TORCH, read_async, false},
    {"Currently allocated  ", NULL, 0, NONE, read_async_row, true},
    {"Requested     ", NULL, 0, NONE, read_async_row, true},
    {"Device limit  ", NULL, 0, NONE, read_async_row, true},
    {"Free (according to CUDA)", NULL, 0, NONE, read_async_row, true},
    {"driver error: out of memory", NULL, 0, NONE, read_bare, false},
    {"'out of memory'", "uda failure", SN_TELL_TORCH_OOM_BARE, NONE, NULL, false},
    {"devices are busy or unavailable", NULL, SN_TELL_DEVICE_BUSY, NONE, NULL, false},
    {"MPS backend out of memory", NULL, 0, TORCH, read_mps, false},
    {"CPUAllocator: ", "tried to allocate", 0, TORCH, read_cpu, false},
    {"not enough memory: you tried to allocate", NULL, 0, TORCH, read_cpu, false},
    {"CUDNN_STATUS_", NULL, 0, NONE, read_status, false},
    {"CUBLAS_STATUS_", NULL, 0, NONE, read_status, false},
    {"cuDNN error: CUDNN_STATUS", NULL, SN_TELL_NONE, TORCH, NULL, false},
    {"CUDA error: CUBLAS_STATUS", NULL, SN_TELL_NONE, TORCH, NULL, false},
    {"Unable to find a valid cuDNN algorithm", NULL, SN_TELL_TORCH_NO_ENGINE, TORCH, NULL, false},
    {"unable to find an engine to execute", NULL, SN_TELL_TORCH_NO_ENGINE, TORCH, NULL, false},
    {"FIND was unable to find an engine", NULL, SN_TELL_TORCH_NO_ENGINE, TORCH, NULL, false},
    {"DataLoader worker (pid", NULL, 0, TORCH, read_worker, false},
    {"unable to open shared memory object", NULL, 0, TORCH, read_shm_object, false},
    {"unable to write to file </torch_", NULL, 0, TORCH, read_shm_object, false},
    {"unable to allocate shared memory", NULL, 0, TORCH, read_shm_object, false},
    {"insufficient shared memory (shm)", NULL, SN_TELL_SHM_FULL, NONE, NULL, false},
    {"out of shared memory. Please try", NULL, SN_TELL_WORKER_BUS, TORCH, NULL, false},
    {"unable to mmap ", NULL, 0, TORCH, read_mmap, false},
    {"unable to resize file </torch", NULL, SN_TELL_SHM_OBJECT, TORCH, NULL, false},
    {"received 0 items of ancdata", NULL, SN_TELL_FD_LIMIT, TORCH, NULL, false},
    {"Too many open files. Communication", NULL, SN_TELL_FD_LIMIT, TORCH, NULL, false},
    {"Allocated memory      |", NULL, 0, TORCH, read_summary_row, true},
    {"GPU reserved memory   |", NULL, 0, TORCH, read_summary_row, true},
    {"CUDA OOMs: ", NULL, 0, TORCH, read_summary_ooms, false},
    {"'total_size': ", NULL, 0, TORCH, read_segment, true},
    {"'allocated_size': ", NULL, 0, TORCH, read_segment, true},
    {", line ", " in ", 0, NONE, read_frame, true},
    {".py in ", NULL, 0, NONE, read_frame, true},
    {"File ~/", ", in ", 0, NONE, read_frame, true},
    {"File /", ", in ", 0, NONE, read_frame, true},
    {"Cell In[", ", in ", 0, NONE, read_frame, true},
    {"ipython-input-", " in ", 0, NONE, read_frame, true},
    {".to(device", NULL, 0, NONE, read_move, true},
    {".to(\"cuda", NULL, 0, NONE, read_move, true},
    {".to('cuda", NULL, 0, NONE, read_move, true},
    {".to(self.device", NULL, 0, NONE, read_move, true},
    {".cuda()", NULL, 0, NONE, read_move, true},
    {"torch.from_numpy(", NULL, 0, TORCH, read_move, true},
    {"torch.tensor(", NULL, 0, TORCH, read_move, true},
    {"_conv_forward", NULL, SN_TELL_FRAME_CONV, TORCH, NULL, true},
    {"F.conv", NULL, SN_TELL_FRAME_CONV, TORCH, NULL, true},
    {"conv_transpose", NULL, SN_TELL_FRAME_CONV, NONE, NULL, true},
    {"exp_avg", NULL, SN_TELL_FRAME_OPTIMIZER, TORCH, NULL, true},
    {"momentum_buffer", NULL, SN_TELL_FRAME_OPTIMIZER, TORCH, NULL, true},
    {"retain_graph=True", NULL, SN_TELL_FRAME_GRAPH_KEPT, TORCH, NULL, true},
    {"create_graph=True", NULL, SN_TELL_FRAME_GRAPH_KEPT, TORCH, NULL, true},
    {".append(", NULL, 0, NONE, read_kept, true},
    {"loss += ", NULL, 0, NONE, read_kept, true},
    {"set_per_process_memory_fraction", NULL, 0, TORCH, read_fraction_call, false},
    {"torch.cuda.", NULL, SN_TELL_NONE, TORCH, NULL, true},
    {"/torch/", NULL, SN_TELL_NONE, TORCH, NULL, true},
    {"\\torch\\", NULL, SN_TELL_NONE, TORCH, NULL, true},
    {"torch.distributed", NULL, SN_TELL_NONE, TORCH, NULL, true},
    {"pytorch", NULL, SN_TELL_NONE, TORCH, NULL, true},
    {"ultralytics", NULL, SN_TELL_NONE, TORCH, NULL, true},
    {"YOLOv5", NULL, SN_TELL_NONE, TORCH, NULL, true},
};

const sn_pattern *sn_patterns_torch(size_t *n)
{
    *n = SN_LEN(rows);
    return rows;
}
