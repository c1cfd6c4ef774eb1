/* SPDX-License-Identifier: Apache-2.0
 *
 * What to do, in the order in which to try it: a row per cause and framework. A row whose facts are
 * absent or that cannot work on the card in the text is left out.
 */
#include <string.h>

#include "diagnose/rules.h"

enum {
    TF = 1 << SN_FRAMEWORK_TENSORFLOW,
    TORCH = 1 << SN_FRAMEWORK_PYTORCH,
    JAX = 1 << SN_FRAMEWORK_JAX,
    DARKNET = 1 << SN_FRAMEWORK_DARKNET,
    ANY = 0
};

typedef struct fix_row {
    snug_cause_id cause;
    unsigned frameworks; /* ANY: all */
    bool (*when)(const snug_diagnosis *d);
    const char *action, *why;
} fix_row;

static bool fp16_is_fast(const snug_diagnosis *d)
{
    return !d->no_fp16_speed;
}

static bool fp16_only_saves(const snug_diagnosis *d)
{
    return d->no_fp16_speed && !d->maxwell;
}

static bool on_maxwell(const snug_diagnosis *d)
{
    return d->maxwell;
}

static bool not_maxwell(const snug_diagnosis *d)
{
    return !d->maxwell;
}

static bool batch_above_one(const snug_diagnosis *d)
{
    return sn_fact_value(d, SN_FACT_BATCH) > 1;
}

static bool evaluates_set(const snug_diagnosis *d)
{
    return sn_shape_classify(d) == SN_SHAPE_SET;
}

static bool is_container(const snug_diagnosis *d)
{
    return sn_tell_count(d, SN_TELL_CGROUP_OOM) > 0;
}

static bool is_windows(const snug_diagnosis *d)
{
    return sn_tell_count(d, SN_TELL_WIN_PAGING) || sn_tell_count(d, SN_TELL_WIN_NOMEM);
}

static bool at_descriptors(const snug_diagnosis *d)
{
    return sn_tell_count(d, SN_TELL_FD_LIMIT) > 0;
}

static bool not_descriptors(const snug_diagnosis *d)
{
    return !at_descriptors(d);
}

static bool has_vgg(const snug_diagnosis *d)
{
    const char *layer = sn_fact_text(d, SN_FACT_LAYER);
    return layer && strstr(layer, "VGG");
}

static bool has_fraction(const snug_diagnosis *d)
{
    return sn_tell_count(d, SN_TELL_TF_FRACTION) > 0;
}

static bool lacks_code(const snug_diagnosis *d)
{
    return sn_tell_count(d, SN_TELL_LIB_ARCH) && !d->maxwell;
}

static bool not_arch(const snug_diagnosis *d)
{
    return !sn_tell_count(d, SN_TELL_LIB_ARCH);
}

static bool many_models(const snug_diagnosis *d)
{
    return sn_tell_count(d, SN_TELL_TF_MANY_MODELS) || sn_tell_count(d, SN_TELL_BUILD_MODEL);
}

static bool kept_graph(const snug_diagnosis *d)
{
    return sn_tell_count(d, SN_TELL_FRAME_GRAPH_KEPT) > 0;
}

static bool validates(const snug_diagnosis *d)
{
    return sn_tell_count(d, SN_TELL_FRAME_VALIDATE) > 0;
}

static bool opencl_buffer(const snug_diagnosis *d)
{
    return sn_tell_count(d, SN_TELL_OPENCL_OOM) > 0;
}

static bool yolo_cache(const snug_diagnosis *d)
{
    return sn_tell_count(d, SN_TELL_CACHE_PART) || sn_tell_count(d, SN_TELL_CACHE_DONE) ||
           sn_tell_count(d, SN_TELL_CACHE_WARNING);
}

static bool shuffles(const snug_diagnosis *d)
{
    return sn_tell_count(d, SN_TELL_SHUFFLE) > 0;
}

static const fix_row rows[] = {
    /* batch-too-large */
    {SNUG_CAUSE_BATCH, TF, evaluates_set, "model.evaluate(x_test, y_test, batch_size=64)",
     "evaluates in batches; all samples in one step need {tensor_bytes} for this tensor alone"},
    {SNUG_CAUSE_BATCH, DARKNET, NULL, "in the .cfg file: batch=64, subdivisions=32 (then 64)",
     "only batch / subdivisions images are on the card at once; the result stays that of batch 64"},
    {SNUG_CAUSE_BATCH, DARKNET, NULL, "in the .cfg file: width=320, height=320",
     "activations grow with the area: 320x320 takes 0.59 of 416x416"},
    {SNUG_CAUSE_BATCH, TF, batch_above_one, "model.fit(..., batch_size=N) with N below {batch}",
     "activations grow with the batch; halve it until it fits"},
    {SNUG_CAUSE_BATCH, TORCH, batch_above_one,
     "DataLoader(dataset, batch_size=N) with N below {batch}",
     "activations grow with the batch; halve it until it fits"},
    {SNUG_CAUSE_BATCH, ANY, NULL, "halve the batch size, then halve it again if needed",
     "activations grow in proportion to the batch; weights do not"},
    {SNUG_CAUSE_BATCH, ANY, NULL, "snug plan photos -m resnet50 -b auto",
     "computes the largest batch that fits before anything is started (your folder, your model)"},
    {SNUG_CAUSE_BATCH, TORCH, NULL,
     "loss = loss / 4; loss.backward(); then optimizer.step() every 4th batch only",
     "micro-batches: the gradient of a batch four times as large, the memory of a small one"},
    {SNUG_CAUSE_BATCH, TORCH, fp16_is_fast,
     "with torch.autocast('cuda', dtype=torch.float16): ... and a torch.amp.GradScaler()",
     "activations take half the memory, and the card computes 16 bits faster"},
    {SNUG_CAUSE_BATCH, TF, fp16_is_fast, "keras.mixed_precision.set_global_policy('mixed_float16')",
     "activations take about half the memory, and the card computes 16 bits faster"},
    {SNUG_CAUSE_BATCH, TORCH, fp16_only_saves, "with torch.autocast('cuda', dtype=torch.float16):",
     "activations take half the memory; this card is not faster with 16 bits"},
    {SNUG_CAUSE_BATCH, TORCH, NULL,
     "out = torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)",
     "a block's activations are computed again in the backward pass instead of being kept"},
    {SNUG_CAUSE_BATCH, ANY, NULL, "use a smaller image (160x160 instead of 224x224)",
     "activations grow with the area: 160x160 takes half of 224x224"},
    /* model-too-large */
    {SNUG_CAUSE_MODEL, TF, has_vgg,
     "base = VGG16(include_top=False); x = GlobalAveragePooling2D()(base.output)",
     "without the dense layers 14.7 of 138 million weights are left"},
    {SNUG_CAUSE_MODEL, ANY, NULL, "snug plan photos -m vgg16:dense=1024 -b 2",
     "plans the same network with smaller dense layers, gradients applied at once"},
    {SNUG_CAUSE_MODEL, TF, NULL, "optimizer=keras.optimizers.SGD(0.01, momentum=0.9)",
     "one number of state for each weight where Adam keeps two"},
    {SNUG_CAUSE_MODEL, TORCH, NULL,
     "optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)",
     "one number of state for each weight where Adam keeps two"},
    {SNUG_CAUSE_MODEL, TORCH, NULL, "for p in model.backbone.parameters(): p.requires_grad_(False)",
     "frozen layers need neither gradients nor optimizer state"},
    {SNUG_CAUSE_MODEL, TF, NULL, "base.trainable = False",
     "frozen layers need neither gradients nor optimizer state"},
    {SNUG_CAUSE_MODEL, ANY, NULL,
     "take a smaller network (MobileNet 4 M, SqueezeNet 1.2 M, ResNet-50 26 M weights)",
     "weights, gradients and optimizer state need no batch to be too much"},
    {SNUG_CAUSE_MODEL, ANY, NULL, "snug train photos -m mobilenetv2 -b auto",
     "a network that fits small cards, planned before it starts"},
    /* other-process */
    {SNUG_CAUSE_OTHER_PROCESS, ANY, NULL, "snug ps --end {other_pid}",
     "ends the largest holder that the message names ({held_elsewhere_bytes} with the others)"},
    {SNUG_CAUSE_OTHER_PROCESS, ANY, NULL, "snug ps",
     "lists who holds the card, also what nvidia-smi does not show"
     "[[; together they hold {held_elsewhere_bytes}]]"},
    {SNUG_CAUSE_OTHER_PROCESS, ANY, NULL,
     "shut down idle notebook kernels (Jupyter: Kernel, Shut Down) and old runs",
     "a notebook keeps its memory until its kernel ends, also when no cell runs"},
    {SNUG_CAUSE_OTHER_PROCESS, ANY, NULL, "CUDA_VISIBLE_DEVICES=1 python train.py",
     "uses another card of the machine, if it has one"},
    {SNUG_CAUSE_OTHER_PROCESS, TF, NULL,
     "tf.config.experimental.set_memory_growth(gpu, True) in each program that shares the card",
     "TensorFlow then takes what it needs and not the whole card"},
    {SNUG_CAUSE_OTHER_PROCESS, ANY, NULL, "snug train photos -M 90%",
     "never plans with more than what is free now"},
    /* whole-dataset */
    {SNUG_CAUSE_DATASET, TF, NULL,
     "ds = keras.utils.image_dataset_from_directory('photos', image_size=(224, 224), "
     "batch_size=32)",
     "reads batch after batch from disk; only a few batches are in memory"},
    {SNUG_CAUSE_DATASET, TF, NULL,
     "tf.data.Dataset.from_generator(...) or a keras.utils.PyDataset that loads one batch",
     "for arrays: never convert_to_tensor or from_tensor_slices of the whole set"},
    {SNUG_CAUSE_DATASET, TORCH, NULL,
     "class Photos(Dataset): open one file in __getitem__; DataLoader(Photos(), batch_size=32)",
     "reads one sample after the other; move only the batch: x = x.to(device)"},
    {SNUG_CAUSE_DATASET, ANY, NULL, "X = np.load('x.npy', mmap_mode='r'); batch = X[i:i+32]",
     "an array on disk that is read where it is used"},
    {SNUG_CAUSE_DATASET, ANY, NULL,
     "keep uint8 and divide by 255 in the model (keras.layers.Rescaling(1/255))",
     "float32 is four times as large[[: {tensor_bytes} against {tensor_bytes_as_uint8}]]"},
    {SNUG_CAUSE_DATASET, ANY, NULL, "snug train photos -m mobilenetv2",
     "a data set is a list of names for snug: 25 GB or 25 TB need the same memory"},
    /* host-loader */
    {SNUG_CAUSE_HOST_LOADER, TORCH, is_windows, "DataLoader(..., num_workers=0)",
     "on Windows each worker loads the GPU libraries anew and commits GiB for them"},
    {SNUG_CAUSE_HOST_LOADER, ANY, is_windows,
     "raise the page file: System, Advanced, Performance, Virtual memory: 32 GB or more",
     "what is committed must fit into RAM and page file, even if it is never used"},
    {SNUG_CAUSE_HOST_LOADER, TORCH, NULL,
     "DataLoader(..., num_workers=2, prefetch_factor=2, pin_memory=False)",
     "fewer workers, fewer batches waiting: each worker holds its own"},
    {SNUG_CAUSE_HOST_LOADER, TORCH, NULL,
     "keep paths and labels in one numpy array, not in a list of Python objects",
     "reference counts make each worker copy the pages of a list: it looks like a leak"},
    {SNUG_CAUSE_HOST_LOADER, TF, NULL,
     "options = tf.data.Options(); options.autotune.ram_budget = 2 << 30; "
     "ds = ds.with_options(options)",
     "AUTOTUNE may fill half of the RAM by itself; ds.prefetch(2), num_parallel_calls=4 do the "
     "same by hand"},
    {SNUG_CAUSE_HOST_LOADER, TF, NULL,
     "Object Detection API: queue_capacity 100, num_readers 2, prefetch_queue_capacity 5; resize "
     "images beforehand",
     "queues hold decoded images: one photo of 4032x3024 takes 36.6 MB, as float 146 MB"},
    {SNUG_CAUSE_HOST_LOADER, ANY, is_container,
     "docker run --memory=16g ..., or a larger limits.memory of the pod",
     "the limit of the container ended it[[ ({cgroup_limit_bytes})]], not the machine's RAM"},
    {SNUG_CAUSE_HOST_LOADER, ANY, NULL, "resize the photos on disk to what the network reads",
     "a photo of 12 megapixels takes 36.6 MB decoded, 150 KB at 224x224"},
    {SNUG_CAUSE_HOST_LOADER, ANY, NULL, "snug train photos --host-memory 2G",
     "a bounded ring of batches: the host's memory has a planned limit too"},
    /* shuffle-or-cache-buffer */
    {SNUG_CAUSE_CACHE, TF, shuffles,
     "shuffle the file names, before decoding: list_files(...).shuffle(N).map(decode)",
     "a name takes 100 bytes, a decoded photo megabytes"},
    {SNUG_CAUSE_CACHE, TF, shuffles,
     "shuffle_buffer_size: 100 in the input reader (or .shuffle(100))",
     "the buffer of {shuffle_buffer} elements holds decoded images"},
    {SNUG_CAUSE_CACHE, TORCH, yolo_cache, "leave out --cache, or --cache disk",
     "decoded images[[ of {cache_bytes}]] then stay out of the RAM"},
    {SNUG_CAUSE_CACHE, TF, NULL, "ds.cache('/tmp/cache')",
     "cache() without a file name keeps the whole set in RAM"},
    {SNUG_CAUSE_CACHE, ANY, NULL, "cache at the size that the network reads, as uint8",
     "a decoded image of 1280x1280 takes 4.9 MB, of 640x640 1.2 MB"},
    {SNUG_CAUSE_CACHE, ANY, NULL, "snug train photos",
     "shuffles the index, never pixels, and needs no cache"},
    /* shared-memory */
    {SNUG_CAUSE_SHM, ANY, not_descriptors, "docker run --shm-size=8g ... (or --ipc=host)",
     "containers get 64 MiB of /dev/shm unless told otherwise"},
    {SNUG_CAUSE_SHM, ANY, not_descriptors,
     "Kubernetes: an emptyDir volume with medium: Memory mounted at /dev/shm",
     "a pod's /dev/shm has 64 MiB too"},
    {SNUG_CAUSE_SHM, ANY, not_descriptors, "sudo mount -o remount,size=8G /dev/shm",
     "on the machine itself, when df -h /dev/shm shows it full"},
    {SNUG_CAUSE_SHM, TORCH, NULL, "torch.multiprocessing.set_sharing_strategy('file_system')",
     "uses names instead of file descriptors; for the limit of descriptors"},
    {SNUG_CAUSE_SHM, ANY, at_descriptors, "ulimit -n 65536", "raises the limit of open files"},
    {SNUG_CAUSE_SHM, TORCH, NULL, "DataLoader(..., num_workers=0)",
     "batches are then made in the process itself, without shared memory; slower"},
    {SNUG_CAUSE_SHM, ANY, NULL, "snug train photos",
     "reads with threads, not processes: it needs no /dev/shm"},
    /* leak-graph */
    {SNUG_CAUSE_LEAK_GRAPH, TORCH, validates,
     "model.eval() and: with torch.no_grad(): around the whole validation",
     "no activation is then kept for a backward pass"},
    {SNUG_CAUSE_LEAK_GRAPH, TORCH, kept_graph,
     "remove retain_graph=True; for a penalty: backward() the sum once, then del it",
     "each step's graph is freed only when nothing refers to it"},
    {SNUG_CAUSE_LEAK_GRAPH, TORCH, NULL, "del outputs, loss at the end of a step",
     "the graph of the last step is otherwise alive while the next is built"},
    {SNUG_CAUSE_LEAK_GRAPH, TF, many_models,
     "build the model once before the loop; in the loop: model.set_weights(initial_weights)",
     "the graphs of old models stay alive; clear_session() does not free all of it"},
    {SNUG_CAUSE_LEAK_GRAPH, TF, many_models,
     "run each trial in a process of its own: multiprocessing.Process(target=trial)",
     "everything is given back when that process ends"},
    {SNUG_CAUSE_LEAK_GRAPH, TF, NULL,
     "call tf.function outside of loops, with tensors instead of Python numbers",
     "each new Python value makes a new trace that stays alive"},
    {SNUG_CAUSE_LEAK_GRAPH, ANY, NULL, "snug diagnose -- python train.py",
     "runs it and shows how memory grows from step to step"},
    /* leak-history */
    {SNUG_CAUSE_LEAK_HISTORY, TORCH, NULL, "total += loss.item() and losses.append(loss.item())",
     "a tensor keeps the graph of its step on the card, a number keeps nothing"},
    {SNUG_CAUSE_LEAK_HISTORY, TORCH, NULL, "outputs.append(out.detach().cpu())",
     "results move to the host without their graph"},
    {SNUG_CAUSE_LEAK_HISTORY, TF, NULL, "history.append(float(loss))",
     "a number instead of a tensor"},
    {SNUG_CAUSE_LEAK_HISTORY, ANY, NULL, "snug diagnose -- python train.py",
     "runs it and fits the slope of memory over time"},
    {SNUG_CAUSE_LEAK_HISTORY, ANY, NULL, "snug train photos",
     "planned peak = used peak: memory does not grow"},
    /* fragmentation */
    {SNUG_CAUSE_FRAGMENTATION, TORCH, not_maxwell,
     "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True python train.py",
     "segments grow instead of new ones being added (PyTorch 2.0 and later)"},
    {SNUG_CAUSE_FRAGMENTATION, TORCH, NULL,
     "PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:128 python train.py",
     "large blocks are not split, so they stay whole for large requests"},
    {SNUG_CAUSE_FRAGMENTATION, TORCH, NULL,
     "torch.cuda.empty_cache() once, before the phase with larger tensors",
     "gives whole free segments back[[; {reserved_unallocated_bytes} are held unused]]"},
    {SNUG_CAUSE_FRAGMENTATION, ANY, NULL, "keep shapes the same from step to step (pad, drop_last)",
     "blocks of the same sizes are used again"},
    {SNUG_CAUSE_FRAGMENTATION, TF, not_maxwell,
     "TF_GPU_ALLOCATOR=cuda_malloc_async python train.py",
     "the driver's memory pools do not fragment (CUDA 11.2 and a card with memory pools)"},
    {SNUG_CAUSE_FRAGMENTATION, ANY, NULL, "snug train photos",
     "one arena with planned offsets: nothing to fragment"},
    /* workspace */
    {SNUG_CAUSE_WORKSPACE, TORCH, NULL, "torch.backends.cudnn.benchmark = False",
     "benchmarking tries algorithms with huge scratch memory"},
    {SNUG_CAUSE_WORKSPACE, TORCH, NULL, "torch.backends.cudnn.deterministic = True",
     "cuDNN then chooses another algorithm, usually with less scratch"},
    {SNUG_CAUSE_WORKSPACE, TORCH, NULL, "try that layer in float32 (autocast off around it)",
     "16-bit convolutions can need far more scratch than 32-bit ones"},
    {SNUG_CAUSE_WORKSPACE, TF, NULL, "TF_CUDNN_USE_AUTOTUNE=0 python train.py",
     "no trial runs of algorithms with huge scratch memory"},
    {SNUG_CAUSE_WORKSPACE, TF, NULL, "tf.config.experimental.set_memory_growth(gpu, True)",
     "leaves cuDNN room beside TensorFlow's pool"},
    {SNUG_CAUSE_WORKSPACE, ANY, NULL, "halve the batch or the image of that layer",
     "scratch grows with what one call convolves"},
    {SNUG_CAUSE_WORKSPACE, ANY, NULL, "snug plan photos -m resnet50 -b 8 --why",
     "shows each layer's scratch; it is part of the plan"},
    /* growth-or-cap */
    {SNUG_CAUSE_CAP, TF, has_fraction,
     "per_process_gpu_memory_fraction = 0.8 (or leave it out, with allow_growth = True)",
     "leaves room for the driver's context, cuDNN and cuBLAS"},
    {SNUG_CAUSE_CAP, TF, NULL,
     "for gpu in tf.config.list_physical_devices('GPU'): "
     "tf.config.experimental.set_memory_growth(gpu, True)",
     "before anything else uses the card: TensorFlow then leaves room for cuDNN and cuBLAS"},
    {SNUG_CAUSE_CAP, TF, NULL, "TF_FORCE_GPU_ALLOW_GROWTH=true python train.py",
     "the same without a change of the program"},
    {SNUG_CAUSE_CAP, TF, NULL, "raise or remove memory_limit of LogicalDeviceConfiguration",
     "if the program limits itself[[ to {limit_bytes}]]"},
    {SNUG_CAUSE_CAP, TORCH, NULL,
     "torch.cuda.set_per_process_memory_fraction(1.0), or leave it out",
     "lifts the cap[[ of {allowed_bytes}]] that the program sets on itself"},
    {SNUG_CAUSE_CAP, JAX, NULL, "XLA_PYTHON_CLIENT_PREALLOCATE=false python train.py",
     "JAX otherwise takes three quarters of the card at the start"},
    {SNUG_CAUSE_CAP, ANY, opencl_buffer, "split the buffer, or a smaller batch",
     "one buffer may be a quarter of the card; snug plans slabs of that size"},
    {SNUG_CAUSE_CAP, ANY, NULL, "snug ps", "shows whether somebody else holds the card after all"},
    {SNUG_CAUSE_CAP, ANY, NULL, "snug train photos -M 90%",
     "a true cap on everything that the process holds, the driver's context included"},
    /* graphdef-2gb */
    {SNUG_CAUSE_GRAPHDEF, TF, NULL,
     "x = tf.placeholder(tf.float32, shape); sess.run(init, feed_dict with the array)",
     "TensorFlow 1: an array that is fed is not part of the graph"},
    {SNUG_CAUSE_GRAPHDEF, TF, NULL,
     "tf.data.Dataset.from_generator(...) instead of tf.constant(array)",
     "TensorFlow 2: the data stay outside of the graph"},
    {SNUG_CAUSE_GRAPHDEF, TF, NULL, "tf.Variable filled by assign() or load_weights()",
     "an embedding belongs into a variable, whose values are not in the graph"},
    {SNUG_CAUSE_GRAPHDEF, TORCH, NULL,
     "torch.onnx.export(..., external_data=True) (or onnx.save with save_as_external_data)",
     "weights go to a file beside the model"},
    {SNUG_CAUSE_GRAPHDEF, ANY, NULL, "snug train photos",
     "has no such limit: data are never in a "
     "graph"},
    /* library-mismatch */
    {SNUG_CAUSE_LIBRARY, ANY, on_maxwell,
     "pip install \"tensorflow==2.16.*\", or PyTorch 2.14 or older from the cu126 index",
     "the last builds with code for this card (compute capability 5.x)"},
    {SNUG_CAUSE_LIBRARY, ANY, on_maxwell, "snug train photos -d opencl:0",
     "needs no wheel for this card: its driver's OpenCL is enough"},
    {SNUG_CAUSE_LIBRARY, TF, not_arch,
     "install cuDNN {cudnn_built} (the same major, the same or a newer minor)",
     "what TensorFlow was built with; {cudnn_loaded} was found first"},
    {SNUG_CAUSE_LIBRARY, TF, not_maxwell,
     "pip install \"tensorflow[and-cuda]\" in a fresh environment",
     "brings the matching CUDA and cuDNN along"},
    {SNUG_CAUSE_LIBRARY, TORCH, not_maxwell,
     "pip uninstall nvidia-cudnn-cu12 nvidia-cublas-cu12; pip install torch in a fresh environment",
     "one set of libraries, the one that PyTorch was built with"},
    {SNUG_CAUSE_LIBRARY, ANY, lacks_code, "install a build with code for this card",
     "pytorch.org and tensorflow.org list the compute capabilities of each build"},
    {SNUG_CAUSE_LIBRARY, ANY, NULL, "unset LD_LIBRARY_PATH; ldconfig -p | grep -E 'cudnn|cublas'",
     "shows which copies are found first"},
    {SNUG_CAUSE_LIBRARY, ANY, not_arch, "update the NVIDIA driver",
     "a driver may be newer than the CUDA runtime, never older"},
    /* corrupt-input */
    {SNUG_CAUSE_INPUT, ANY, NULL, "rm {bad_file} (or replace it)",
     "the file that the message names"},
    {SNUG_CAUSE_INPUT, ANY, NULL, "snug data photos",
     "names every file that cannot be decoded, "
     "and why"},
    {SNUG_CAUSE_INPUT, TF, NULL, "ds = ds.ignore_errors(log_warning=True)",
     "leaves out elements that fail"},
    {SNUG_CAUSE_INPUT, TORCH, NULL, "PIL.ImageFile.LOAD_TRUNCATED_IMAGES = True",
     "fills the missing rows with grey instead of failing"},
    {SNUG_CAUSE_INPUT, ANY, NULL, "snug train photos --bad-files skip",
     "trains without them and lists them in skipped.csv"},
    /* unknown */
    {SNUG_CAUSE_UNKNOWN, ANY, NULL, "snug diagnose -- python train.py",
     "runs it unchanged and watches its memory"},
};

void sn_fixes_add(snug_diagnosis *d, sn_cause_result *result)
{
    if (result->cause.id == SNUG_CAUSE_UNKNOWN && result->cause.confidence == 0)
        return;
    for (size_t i = 0; i < SN_LEN(rows); i++) {
        const fix_row *row = &rows[i];
        if (row->cause != result->cause.id || (row->when && !row->when(d)))
            continue;
        unsigned ours = 1u << d->framework; /* unknown: the two most frequent ones */
        if (d->framework == SN_FRAMEWORK_NONE)
            ours = TF | TORCH;
        if (row->frameworks && !(row->frameworks & ours))
            continue;
        const char *action = sn_expand(d, row->action), *why = sn_expand(d, row->why);
        if (!action || !why)
            continue; /* the text does not give a number in it */
        snug_cause_fix fix = {action, why};
        if (!SN_VEC_PUSH(SN_TAG_DIAGNOSE, &result->fixes, fix))
            d->failed = true;
    }
}

const char *sn_check_for(snug_diagnosis *d, snug_cause_id cause)
{
    static const char *const checks[SNUG_N_CAUSES] = {
        [SNUG_CAUSE_BATCH] = "run it with batch 1: if that fails too, it is not the batch",
        [SNUG_CAUSE_MODEL] = "snug plan photos -m vgg16 -b 1",
        [SNUG_CAUSE_OTHER_PROCESS] = "snug ps",
        [SNUG_CAUSE_DATASET] = "print(x.shape, x.dtype, x.nbytes / 2**30) just before the line",
        [SNUG_CAUSE_HOST_LOADER] = "journalctl -k | grep -i 'out of memory'",
        [SNUG_CAUSE_CACHE] = "free -h while the buffer or cache is being filled",
        [SNUG_CAUSE_SHM] = "df -h /dev/shm",
        [SNUG_CAUSE_LEAK_GRAPH] = "snug diagnose -- python train.py",
        [SNUG_CAUSE_LEAK_HISTORY] = "snug diagnose -- python train.py",
        [SNUG_CAUSE_FRAGMENTATION] = "print(torch.cuda.memory_summary())",
        [SNUG_CAUSE_WORKSPACE] = "run that layer alone with the same shapes",
        [SNUG_CAUSE_CAP] = "nvidia-smi while it runs",
        [SNUG_CAUSE_GRAPHDEF] = "print(x.nbytes) of the arrays that the graph is built from",
        [SNUG_CAUSE_LIBRARY] = "ldconfig -p | grep -E 'cudnn|cublas'; nvidia-smi",
        [SNUG_CAUSE_INPUT] = "snug data photos",
        [SNUG_CAUSE_UNKNOWN] = "snug diagnose -- python train.py",
    };
    if (cause == SNUG_CAUSE_FRAGMENTATION && d->framework != SN_FRAMEWORK_PYTORCH)
        return "look at the largest free chunk in the allocator's dump";
    if (cause == SNUG_CAUSE_UNKNOWN && d->results[cause].cause.confidence == 0)
        return "";
    return checks[cause];
}

/* ---- advice that does not help here ---- */

static snug_cause_id best(const snug_diagnosis *d)
{
    return d->causes.n ? d->causes.at[0].id : SNUG_CAUSE_UNKNOWN;
}

static void useless(snug_diagnosis *d, const char *advice, const char *why)
{
    const char *text = sn_expand(d, why);
    if (text)
        sn_useless_add(d, advice, text);
}

void sn_useless_find(snug_diagnosis *d)
{
    snug_cause_id cause = best(d);
    bool tf = d->framework == SN_FRAMEWORK_TENSORFLOW, torch = d->framework == SN_FRAMEWORK_PYTORCH;
    bool trouble = d->causes.n && d->causes.at[0].confidence > 0;
    if (d->maxwell && trouble && (tf || sn_tell_count(d, SN_TELL_TF_ASYNC_HINT)))
        useless(d, "TF_GPU_ALLOCATOR=cuda_malloc_async",
                "it needs memory pools, and no Maxwell card has them[[ ({gpu_name})]]");
    if (d->no_fp16_speed && trouble && (tf || torch) &&
        (cause == SNUG_CAUSE_BATCH || cause == SNUG_CAUSE_MODEL))
        useless(d, "mixed precision for speed",
                "this card[[ ({gpu_name})]] has no fast 16-bit arithmetic");
    if (d->maxwell && trouble && cause == SNUG_CAUSE_LIBRARY)
        useless(d, "pip install --upgrade tensorflow (or torch)",
                "current wheels have no code for compute capability 5.x");
    if (torch && trouble && cause != SNUG_CAUSE_FRAGMENTATION && sn_is_device_oom(d))
        useless(d, "torch.cuda.empty_cache()",
                "it gives back only what no tensor uses[[ ({reserved_unallocated_bytes} here)]]; "
                "PyTorch does that by itself before it fails");
    switch (cause) {
    case SNUG_CAUSE_MODEL:
        useless(d, "batch 1",
                "weights, gradients and optimizer state have no batch dimension"
                "[[; the tensor that failed is {tensor_shape}]]");
        break;
    case SNUG_CAUSE_OTHER_PROCESS:
        useless(d, "a smaller batch",
                "others hold the memory[[ ({held_elsewhere_bytes})]]; this run never had it");
        break;
    case SNUG_CAUSE_DATASET:
        useless(d, "batch 1",
                "the whole set is in memory before the first batch is made"
                "[[; it alone takes {tensor_bytes}]]");
        break;
    case SNUG_CAUSE_HOST_LOADER:
    case SNUG_CAUSE_CACHE:
        useless(d, "a GPU with more memory, or set_memory_growth",
                "the host's RAM ran out, not the card");
        break;
    case SNUG_CAUSE_SHM:
        useless(d, "more RAM or a smaller model",
                "/dev/shm has a limit of its own[[ ({shm_total_bytes})]]");
        break;
    case SNUG_CAUSE_LEAK_GRAPH:
    case SNUG_CAUSE_LEAK_HISTORY:
        useless(d, "a smaller batch", "memory that grows reaches the limit later, but reaches it");
        if (tf)
            useless(d, "keras.backend.clear_session()",
                    "it drops names and graphs, but the allocator keeps its memory until the "
                    "process ends");
        break;
    case SNUG_CAUSE_FRAGMENTATION:
        useless(d, "a card with more memory",
                "enough is free[[: {reserved_unallocated_bytes} held unused]]; it is in pieces");
        break;
    case SNUG_CAUSE_WORKSPACE:
        useless(d, "freeing tensors",
                "what failed is scratch memory of one call"
                "[[, {requested_bytes}]]");
        break;
    case SNUG_CAUSE_CAP:
        useless(d, "a smaller batch", "there is no shortage on the card; a limit is in the way");
        break;
    case SNUG_CAUSE_GRAPHDEF:
        useless(d, "more RAM or another card", "2 GB is protobuf's own limit, on every machine");
        break;
    case SNUG_CAUSE_LIBRARY:
        useless(d, "a smaller batch or set_memory_growth",
                "a library of the wrong version fails with any amount of memory");
        break;
    case SNUG_CAUSE_INPUT:
        useless(d, "a smaller batch or more memory", "the file stays damaged");
        break;
    default:
        break;
    }
}
