/* SPDX-License-Identifier: Apache-2.0
 *
 * The host's memory: loaders, buffers, caches, whole sets, shared memory, memory that grows, and
 * inputs that cannot be read. "Killed" alone does not say what filled the RAM; what ran before it
 * does.
 */
#include "diagnose/rules.h"

static bool shuffle_killed(const snug_diagnosis *d)
{
    return sn_killed_soon_after(d, SN_TELL_SHUFFLE, 60) && !sn_went_on_after(d, SN_TELL_SHUFFLE);
}

static bool shuffle_cut(const snug_diagnosis *d)
{
    return !sn_is_killed(d) && !sn_tell_count(d, SN_TELL_SHUFFLE_DONE) && !sn_is_device_oom(d) &&
           !sn_went_on_after(d, SN_TELL_SHUFFLE) && sn_tell_count(d, SN_TELL_SHUFFLE) >= 3 &&
           sn_fv(d, SN_FACT_SHUFFLE_BUFFER) >= 1000 &&
           sn_tell_after(d, SN_TELL_TRACEBACK, SN_TELL_SHUFFLE);
}

static bool cache_killed(const snug_diagnosis *d)
{
    return sn_killed_soon_after(d, SN_TELL_CACHE_PART, 40) && !sn_is_device_oom(d);
}

static bool cache_done_killed(const snug_diagnosis *d)
{
    return sn_killed_soon_after(d, SN_TELL_CACHE_DONE, 40) && !cache_killed(d) &&
           !sn_is_device_oom(d);
}

static bool cache_broken(const snug_diagnosis *d)
{
    return !sn_is_killed(d) && !sn_is_device_oom(d) &&
           (sn_tells_near(d, SN_TELL_CACHE_PART, SN_TELL_TRACEBACK, 3)) &&
           sn_fv(d, SN_FACT_CACHE_DONE) < sn_fv(d, SN_FACT_CACHE_OF);
}

static bool cache_tf_killed(const snug_diagnosis *d)
{
    return sn_killed_soon_after(d, SN_TELL_CACHE_TF, 60);
}

static bool cache_warned(const snug_diagnosis *d)
{
    return sn_killed_soon_after(d, SN_TELL_CACHE_WARNING, 60);
}

static bool buffered(const snug_diagnosis *d)
{
    return shuffle_killed(d) || cache_killed(d) || cache_done_killed(d) || cache_tf_killed(d);
}

static bool loads_whole(const snug_diagnosis *d)
{
    return sn_killed_soon_after(d, SN_TELL_LOAD_WHOLE, 30);
}

static uint64_t array_bytes(const snug_diagnosis *d)
{
    return SN_MAX(sn_fv(d, SN_FACT_REQUESTED), sn_fv(d, SN_FACT_TENSOR_BYTES));
}

static bool set_array(const snug_diagnosis *d)
{
    return sn_shape_classify(d) == SN_SHAPE_SET && array_bytes(d) >= 256 * SN_MIB;
}

static bool large_array(const snug_diagnosis *d)
{
    return !set_array(d) && array_bytes(d) >= SN_GIB;
}

static bool small_array(const snug_diagnosis *d)
{
    return array_bytes(d) && !set_array(d) && !large_array(d);
}

static bool ten_percent_killed(const snug_diagnosis *d)
{
    return sn_killed_soon_after(d, SN_TELL_TF_TEN_PERCENT, 60) && !buffered(d) &&
           sn_fv(d, SN_FACT_BIGGEST_CHUNK) >= SN_GIB;
}

static bool ten_percent_some(const snug_diagnosis *d)
{
    return sn_killed_soon_after(d, SN_TELL_TF_TEN_PERCENT, 60) && !buffered(d) &&
           !ten_percent_killed(d);
}

static bool loaded_and_memory_error(const snug_diagnosis *d)
{
    return sn_tells_near(d, SN_TELL_LOAD_WHOLE, SN_TELL_MEMORY_ERROR, 12);
}

static bool loads_whole_killed(const snug_diagnosis *d)
{
    return loads_whole(d) && !loaded_and_memory_error(d) &&
           !sn_tell_count(d, SN_TELL_NUMPY_ALLOC) && !buffered(d);
}

static bool torch_cpu_large(const snug_diagnosis *d)
{
    return sn_fv(d, SN_FACT_REQUESTED) >= 2 * SN_GIB;
}

static bool torch_cpu_data(const snug_diagnosis *d)
{
    return torch_cpu_large(d) &&
           (sn_tells_near(d, SN_TELL_FRAME_DATA_TO_DEVICE, SN_TELL_TORCH_CPU, 12) ||
            sn_tells_near(d, SN_TELL_LOAD_WHOLE, SN_TELL_TORCH_CPU, 12));
}

static bool torch_cpu_small(const snug_diagnosis *d)
{
    return !torch_cpu_large(d);
}

/* Killed, and nothing that was seen says by what. */
static bool killed_plain(const snug_diagnosis *d)
{
    return !buffered(d) && !ten_percent_killed(d) && !loads_whole_killed(d) &&
           !sn_is_device_oom(d) && !sn_tell_count(d, SN_TELL_WORKER_BUS) && !sn_series_growing(d) &&
           !(sn_tell_count(d, SN_TELL_SHUFFLE) && sn_tell_count(d, SN_TELL_SHUFFLE) > 0 &&
             shuffle_killed(d));
}

static bool killed_with_queue(const snug_diagnosis *d)
{
    return killed_plain(d) && sn_fv(d, SN_FACT_WORKERS) >= 2 && sn_is_killed(d);
}

static bool many_pythons(const snug_diagnosis *d)
{
    return sn_tell_count(d, SN_TELL_OOM_PYTHONS) >= 3 && !buffered(d);
}

static bool not_buffered(const snug_diagnosis *d)
{
    return !buffered(d);
}

static bool bus_with_loader(const snug_diagnosis *d)
{
    return sn_tell_count(d, SN_TELL_WORKERS) || sn_tell_count(d, SN_TELL_DATA_QUEUE) ||
           sn_fact_has(d, SN_FACT_SHM_TOTAL);
}

static bool bus_alone(const snug_diagnosis *d)
{
    return !bus_with_loader(d);
}

static bool shm_used_up(const snug_diagnosis *d)
{
    return sn_fact_has(d, SN_FACT_SHM_TOTAL) && sn_fv(d, SN_FACT_SHM_TOTAL) > 0 &&
           sn_fv(d, SN_FACT_SHM_USED) >= sn_fv(d, SN_FACT_SHM_TOTAL) / 100 * 95 &&
           (sn_is_killed(d) || sn_tell_count(d, SN_TELL_BUS_ERROR) ||
            sn_tell_count(d, SN_TELL_WORKER_BUS) || sn_tell_count(d, SN_TELL_WORKER_EXITED));
}

/* Models made again and again between the points of a growing series. */
static bool grows_by_models(const snug_diagnosis *d)
{
    return sn_series_growing(d) &&
           sn_tell_count(d, SN_TELL_BUILD_MODEL) * 3 >= sn_fv(d, SN_FACT_N_POINTS) &&
           sn_tell_count(d, SN_TELL_BUILD_MODEL) >= 3;
}

static bool grows_in_training(const snug_diagnosis *d)
{
    return sn_series_growing(d) && !grows_by_models(d) && sn_fv(d, SN_FACT_N_POINTS) >= 6 &&
           (sn_tell_count(d, SN_TELL_LOSS_LINE) || sn_tell_count(d, SN_TELL_PROGRESS_BACK));
}

static bool grows(const snug_diagnosis *d)
{
    return sn_series_growing(d) && !grows_by_models(d) && !grows_in_training(d);
}

static bool image_fatal(const snug_diagnosis *d)
{
    return !sn_went_on_after(d, SN_TELL_IMAGE_BAD) &&
           sn_tells_near(d, SN_TELL_TRACEBACK, SN_TELL_IMAGE_BAD, 40);
}

static bool image_alone(const snug_diagnosis *d)
{
    return !sn_went_on_after(d, SN_TELL_IMAGE_BAD) && !image_fatal(d);
}

static bool image_passed(const snug_diagnosis *d)
{
    return sn_went_on_after(d, SN_TELL_IMAGE_BAD);
}

static bool jpeg_fatal(const snug_diagnosis *d)
{
    return sn_tells_near(d, SN_TELL_JPEG_BAD, SN_TELL_TRACEBACK, 40) &&
           !sn_went_on_after(d, SN_TELL_JPEG_BAD) && !sn_is_device_oom(d) && !sn_is_killed(d);
}

static bool jpeg_alone(const snug_diagnosis *d)
{
    return !jpeg_fatal(d) && !sn_went_on_after(d, SN_TELL_JPEG_BAD) &&
           !sn_tell_count(d, SN_TELL_FINISHED) && sn_fact_has(d, SN_FACT_JPEG_LINE);
}

#define DEATHS SN_TELL_KILLED, SN_TELL_KERNEL_OOM, SN_TELL_CGROUP_OOM, SN_TELL_EXIT_137

static const sn_rule rows[] = {
    {.id = "shuffle-killed",
     .cause = SNUG_CAUSE_CACHE,
     .weight = 0.85,
     .decisive = true,
     .all = {SN_TELL_SHUFFLE},
     .when = shuffle_killed,
     .evidence = {SN_TELL_SHUFFLE, DEATHS},
     .explanation = "The process died while or just after it filled a shuffle buffer of "
                    "{shuffle_buffer} elements[[ ({shuffle_filled} were in)]]. The buffer holds "
                    "what comes before it in the pipeline: after decoding, whole images."},
    {.id = "shuffle-broken",
     .cause = SNUG_CAUSE_CACHE,
     .weight = 0.4,
     .all = {SN_TELL_SHUFFLE},
     .when = shuffle_cut,
     .evidence = {SN_TELL_SHUFFLE, SN_TELL_TRACEBACK},
     .explanation = "The run ended while it filled a shuffle buffer of {shuffle_buffer} elements."},
    {.id = "cache-killed",
     .cause = SNUG_CAUSE_CACHE,
     .weight = 0.82,
     .decisive = true,
     .all = {SN_TELL_CACHE_PART},
     .when = cache_killed,
     .evidence = {SN_TELL_CACHE_PART, DEATHS},
     .explanation = "The process died while it cached decoded images in RAM[[: {cache_done} of "
                    "{cache_of}]][[, {cache_bytes} so far]]."},
    {.id = "cache-done-killed",
     .cause = SNUG_CAUSE_CACHE,
     .weight = 0.6,
     .decisive = true,
     .all = {SN_TELL_CACHE_DONE},
     .when = cache_done_killed,
     .evidence = {SN_TELL_CACHE_DONE, DEATHS},
     .explanation = "The process died just after it had cached its decoded images in RAM[[ "
                    "({cache_bytes})]]."},
    {.id = "cache-broken",
     .cause = SNUG_CAUSE_CACHE,
     .weight = 0.5,
     .all = {SN_TELL_CACHE_PART},
     .when = cache_broken,
     .evidence = {SN_TELL_CACHE_PART, SN_TELL_TRACEBACK},
     .explanation = "Caching decoded images in RAM broke off at {cache_done} of {cache_of}[[, with "
                    "{cache_bytes} in this cache]]. A cache that the RAM cannot hold is the most "
                    "frequent reason."},
    {.id = "cache-tf-killed",
     .cause = SNUG_CAUSE_CACHE,
     .weight = 0.6,
     .decisive = true,
     .all = {SN_TELL_CACHE_TF},
     .when = cache_tf_killed,
     .evidence = {SN_TELL_CACHE_TF, DEATHS},
     .explanation = "cache() without a file keeps every element of the data set in RAM."},
    {.id = "cache-warned",
     .cause = SNUG_CAUSE_CACHE,
     .weight = 0.7,
     .decisive = true,
     .all = {SN_TELL_CACHE_WARNING},
     .when = cache_warned,
     .evidence = {SN_TELL_CACHE_WARNING, DEATHS},
     .explanation = "The program itself said that the cache[[ of {cache_bytes}]] does not fit the "
                    "RAM."},
    {.id = "numpy-set",
     .cause = SNUG_CAUSE_DATASET,
     .weight = 0.82,
     .decisive = true,
     .all = {SN_TELL_NUMPY_ALLOC},
     .when = set_array,
     .evidence = {SN_TELL_NUMPY_ALLOC, SN_TELL_LOAD_WHOLE},
     .explanation =
         "One array of shape {tensor_shape} needs {tensor_bytes}: the first dimension is "
         "the number of samples, so this is a whole data set in one array.[[ As uint8 "
         "it would be {tensor_bytes_as_uint8}.]]"},
    {.id = "numpy-large",
     .cause = SNUG_CAUSE_DATASET,
     .weight = 0.45,
     .all = {SN_TELL_NUMPY_ALLOC},
     .when = large_array,
     .evidence = {SN_TELL_NUMPY_ALLOC},
     .explanation = "One array[[ of shape {tensor_shape}]] needs more than the RAM has left[[: "
                    "{requested_bytes}]]."},
    {.id = "numpy-small",
     .cause = SNUG_CAUSE_HOST_LOADER,
     .weight = 0.5,
     .all = {SN_TELL_NUMPY_ALLOC},
     .when = small_array,
     .evidence = {SN_TELL_NUMPY_ALLOC},
     .explanation = "An array of only [[{tensor_bytes} ]]could not be had: the RAM was full before "
                    "it. Look at what else is kept, not at this line."},
    {.id = "load-memory-error",
     .cause = SNUG_CAUSE_DATASET,
     .weight = 0.62,
     .decisive = true,
     .all = {SN_TELL_LOAD_WHOLE, SN_TELL_MEMORY_ERROR},
     .when = loaded_and_memory_error,
     .evidence = {SN_TELL_LOAD_WHOLE, SN_TELL_MEMORY_ERROR},
     .explanation = "Python's memory ran out at a line that puts a whole data set into one array."},
    {.id = "load-killed",
     .cause = SNUG_CAUSE_DATASET,
     .weight = 0.5,
     .all = {SN_TELL_LOAD_WHOLE},
     .when = loads_whole_killed,
     .evidence = {SN_TELL_LOAD_WHOLE, DEATHS},
     .explanation = "The process died while it loaded a whole data set into memory."},
    {.id = "constant-killed",
     .cause = SNUG_CAUSE_DATASET,
     .weight = 0.65,
     .decisive = true,
     .all = {SN_TELL_TF_TEN_PERCENT},
     .when = ten_percent_killed,
     .evidence = {SN_TELL_TF_TEN_PERCENT, DEATHS},
     .explanation = "TensorFlow allocated {biggest_chunk_bytes} on the host in one piece, and then "
                    "the process was killed: a whole data set as one tensor."},
    {.id = "constant-killed-some",
     .cause = SNUG_CAUSE_DATASET,
     .weight = 0.4,
     .all = {SN_TELL_TF_TEN_PERCENT},
     .when = ten_percent_some,
     .evidence = {SN_TELL_TF_TEN_PERCENT, DEATHS},
     .explanation = "TensorFlow warned of large host allocations before the process was killed."},
    {.id = "torch-cpu-data",
     .cause = SNUG_CAUSE_DATASET,
     .weight = 0.65,
     .decisive = true,
     .all = {SN_TELL_TORCH_CPU},
     .when = torch_cpu_data,
     .evidence = {SN_TELL_TORCH_CPU, SN_TELL_FRAME_DATA_TO_DEVICE, SN_TELL_LOAD_WHOLE},
     .explanation = "{requested_bytes} of host memory were asked for at once to make a whole data "
                    "set one tensor."},
    {.id = "torch-cpu-large",
     .cause = SNUG_CAUSE_DATASET,
     .weight = 0.42,
     .all = {SN_TELL_TORCH_CPU},
     .when = torch_cpu_large,
     .evidence = {SN_TELL_TORCH_CPU},
     .explanation = "{requested_bytes} of host memory were asked for at once."},
    {.id = "torch-cpu-small",
     .cause = SNUG_CAUSE_HOST_LOADER,
     .weight = 0.5,
     .all = {SN_TELL_TORCH_CPU},
     .when = torch_cpu_small,
     .evidence = {SN_TELL_TORCH_CPU},
     .explanation = "The host, not the card, had no memory left[[ for {requested_bytes}]]."},
    {.id = "worker-killed",
     .cause = SNUG_CAUSE_HOST_LOADER,
     .weight = 0.75,
     .decisive = true,
     .all = {SN_TELL_WORKER_KILLED},
     .when = not_buffered,
     .evidence = {SN_TELL_WORKER_KILLED, SN_TELL_KERNEL_OOM, SN_TELL_WORKERS},
     .explanation = "A loader worker[[ (pid {worker_pid})]] was killed: every worker is a process "
                    "with its own copy of what it touches, and together they used up the RAM.[[ "
                    "Workers: {workers}.]]"},
    {.id = "kernel-many-pythons",
     .cause = SNUG_CAUSE_HOST_LOADER,
     .weight = 0.75,
     .decisive = true,
     .any = {SN_TELL_KERNEL_OOM, SN_TELL_CGROUP_OOM},
     .all = {SN_TELL_OOM_PYTHONS},
     .when = many_pythons,
     .evidence = {SN_TELL_KERNEL_OOM, SN_TELL_CGROUP_OOM, SN_TELL_OOM_PYTHONS},
     .explanation = "The kernel ran out of memory and its table lists several large Python "
                    "processes: a loader's workers.[[ It killed {killed_name}]][[ (pid "
                    "{killed_pid})]][[ with {killed_rss_bytes}]]."},
    {.id = "kernel-killed",
     .cause = SNUG_CAUSE_HOST_LOADER,
     .weight = 0.5,
     .any = {SN_TELL_KERNEL_OOM, SN_TELL_CGROUP_OOM, SN_TELL_SCHEDULER_OOM},
     .when = killed_plain,
     .evidence = {SN_TELL_KERNEL_OOM, SN_TELL_CGROUP_OOM, SN_TELL_SCHEDULER_OOM, SN_TELL_EXIT_137},
     .explanation = "The host's memory ran out, not the card's[[: {killed_name} held "
                    "{killed_rss_bytes} when it was killed]][[; the limit is "
                    "{cgroup_limit_bytes}]]. Loading and decoding, with queues and workers, is the "
                    "most frequent reason."},
    {.id = "killed",
     .cause = SNUG_CAUSE_HOST_LOADER,
     .weight = 0.48,
     .any = {SN_TELL_KILLED, SN_TELL_EXIT_137},
     .when = killed_plain,
     .evidence = {SN_TELL_KILLED, SN_TELL_EXIT_137},
     .explanation =
         "\"Killed\" is the kernel ending a process when the RAM is used up; the card is "
         "not involved. Decoding, queues and loader workers are the most frequent "
         "reason.[[ The last step seen is {last_step}.]]"},
    {.id = "notebook-ram",
     .cause = SNUG_CAUSE_HOST_LOADER,
     .weight = 0.48,
     .all = {SN_TELL_NOTEBOOK_RAM},
     .when = killed_plain,
     .evidence = {SN_TELL_NOTEBOOK_RAM},
     .explanation = "The notebook's host ran out of RAM; the card is not involved."},
    {.id = "notebook-died",
     .cause = SNUG_CAUSE_HOST_LOADER,
     .weight = 0.32,
     .all = {SN_TELL_NOTEBOOK_DIED},
     .when = killed_plain,
     .evidence = {SN_TELL_NOTEBOOK_DIED},
     .explanation = "A notebook's kernel that dies without a message was most often killed because "
                    "the RAM was full."},
    {.id = "bad-alloc",
     .cause = SNUG_CAUSE_HOST_LOADER,
     .weight = 0.48,
     .all = {SN_TELL_BAD_ALLOC},
     .when = not_buffered,
     .evidence = {SN_TELL_BAD_ALLOC, SN_TELL_WORKERS},
     .explanation =
         "std::bad_alloc: the host, not the card, had no memory left.[[ {workers} loader "
         "workers were set.]][[ The set has {samples} samples.]]"},
    {.id = "workers-killed",
     .cause = SNUG_CAUSE_HOST_LOADER,
     .weight = 0.5,
     .when = killed_with_queue,
     .evidence = {SN_TELL_WORKERS, DEATHS},
     .explanation =
         "The host's memory ran out with {workers} loader workers set; each is a process "
         "of its own."},
    {.id = "memory-error",
     .cause = SNUG_CAUSE_HOST_LOADER,
     .weight = 0.42,
     .any = {SN_TELL_MEMORY_ERROR, SN_TELL_ERRNO_12, SN_TELL_WIN_NOMEM},
     .when = not_buffered,
     .evidence = {SN_TELL_MEMORY_ERROR, SN_TELL_ERRNO_12, SN_TELL_WIN_NOMEM},
     .explanation = "The host had no memory left; the card is not involved."},
    {.id = "opencv-memory",
     .cause = SNUG_CAUSE_HOST_LOADER,
     .weight = 0.5,
     .all = {SN_TELL_CV_ALLOC},
     .when = not_buffered,
     .evidence = {SN_TELL_CV_ALLOC},
     .explanation = "Decoding or resizing an image[[ ({requested_bytes})]] found no host memory."},
    {.id = "windows-paging",
     .cause = SNUG_CAUSE_HOST_LOADER,
     .weight = 0.75,
     .decisive = true,
     .all = {SN_TELL_WIN_PAGING},
     .evidence = {SN_TELL_WIN_PAGING},
     .explanation = "Windows could not commit more memory (error 1455): every loader worker loads "
                    "the GPU libraries anew and commits several GiB for them, which RAM and page "
                    "file together do not have."},
    {.id = "worker-exited",
     .cause = SNUG_CAUSE_HOST_LOADER,
     .weight = 0.35,
     .all = {SN_TELL_WORKER_EXITED},
     .none = {SN_TELL_WORKER_BUS, SN_TELL_SHM_FULL, SN_TELL_SHM_OBJECT},
     .evidence = {SN_TELL_WORKER_EXITED},
     .explanation = "Loader workers ended without a word; being killed for memory is the most "
                    "frequent reason."},
    {.id = "worker-bus",
     .cause = SNUG_CAUSE_SHM,
     .weight = 0.92,
     .decisive = true,
     .all = {SN_TELL_WORKER_BUS},
     .evidence = {SN_TELL_WORKER_BUS},
     .explanation =
         "A loader worker[[ (pid {worker_pid})]] died of a bus error: it wrote to shared "
         "memory that /dev/shm could not back.[[ /dev/shm has {shm_total_bytes}.]] In "
         "containers it has 64 MiB unless told otherwise."},
    {.id = "shm-full",
     .cause = SNUG_CAUSE_SHM,
     .weight = 0.88,
     .decisive = true,
     .any = {SN_TELL_SHM_FULL, SN_TELL_NCCL_SHM},
     .evidence = {SN_TELL_SHM_FULL, SN_TELL_NCCL_SHM},
     .explanation = "/dev/shm is full[[ ({shm_used_bytes} of {shm_total_bytes})]]; workers and "
                    "NCCL pass their data through it."},
    {.id = "shm-object",
     .cause = SNUG_CAUSE_SHM,
     .weight = 0.8,
     .decisive = true,
     .all = {SN_TELL_SHM_OBJECT},
     .evidence = {SN_TELL_SHM_OBJECT},
     .explanation = "A shared memory object could not be made or mapped: /dev/shm or the number of "
                    "its objects is at its limit."},
    {.id = "shm-used-up",
     .cause = SNUG_CAUSE_SHM,
     .weight = 0.7,
     .decisive = true,
     .when = shm_used_up,
     .evidence = {SN_TELL_BUS_ERROR, SN_TELL_WORKER_BUS, SN_TELL_KILLED},
     .explanation = "/dev/shm is used up: {shm_used_bytes} of {shm_total_bytes}."},
    {.id = "bus-with-loader",
     .cause = SNUG_CAUSE_SHM,
     .weight = 0.6,
     .decisive = true,
     .all = {SN_TELL_BUS_ERROR},
     .when = bus_with_loader,
     .evidence = {SN_TELL_BUS_ERROR, SN_TELL_WORKERS},
     .explanation = "A bus error with a data loader at work: shared memory that could not be "
                    "backed.[[ /dev/shm has {shm_total_bytes}.]]"},
    {.id = "bus-alone",
     .cause = SNUG_CAUSE_SHM,
     .weight = 0.42,
     .all = {SN_TELL_BUS_ERROR},
     .when = bus_alone,
     .evidence = {SN_TELL_BUS_ERROR},
     .explanation =
         "A bus error: memory that was mapped could not be backed; in containers that is "
         "most often /dev/shm."},
    {.id = "descriptors",
     .cause = SNUG_CAUSE_SHM,
     .weight = 0.5,
     .all = {SN_TELL_FD_LIMIT},
     .evidence = {SN_TELL_FD_LIMIT},
     .explanation =
         "Workers hand over shared memory by file descriptors, and the process is at its "
         "limit of them."},
    {.id = "grows-by-models",
     .cause = SNUG_CAUSE_LEAK_GRAPH,
     .weight = 0.75,
     .decisive = true,
     .all = {SN_TELL_BUILD_MODEL},
     .when = grows_by_models,
     .evidence = {SN_TELL_BUILD_MODEL},
     .explanation = "Memory grows from {start_bytes} to {end_bytes}, {slope_bytes} with each of "
                    "{slope_points} readings, and a model is made each time: models and their "
                    "graphs stay alive."},
    {.id = "grows-in-training",
     .cause = SNUG_CAUSE_LEAK_HISTORY,
     .weight = 0.7,
     .decisive = true,
     .when = grows_in_training,
     .evidence = {SN_TELL_LOSS_LINE},
     .explanation = "Memory grows in a straight line while training goes on: from {start_bytes} to "
                    "{end_bytes}, {slope_bytes} with each of {slope_points} readings. Something is "
                    "kept from every step."},
    {.id = "grows",
     .cause = SNUG_CAUSE_LEAK_HISTORY,
     .weight = 0.5,
     .when = grows,
     .evidence = {SN_TELL_NONE},
     .explanation = "Memory grows in a straight line: from {start_bytes} to {end_bytes}, "
                    "{slope_bytes} with each of {slope_points} readings."},
    {.id = "image-bad",
     .cause = SNUG_CAUSE_INPUT,
     .weight = 0.85,
     .decisive = true,
     .all = {SN_TELL_IMAGE_BAD},
     .when = image_fatal,
     .evidence = {SN_TELL_IMAGE_BAD},
     .explanation = "An image could not be decoded[[: {bad_file}]], and that ended the run."},
    {.id = "image-bad-alone",
     .cause = SNUG_CAUSE_INPUT,
     .weight = 0.5,
     .all = {SN_TELL_IMAGE_BAD},
     .when = image_alone,
     .evidence = {SN_TELL_IMAGE_BAD},
     .explanation = "An image could not be decoded[[: {bad_file}]]; the text does not show whether "
                    "that ended the run."},
    {.id = "image-bad-passed",
     .cause = SNUG_CAUSE_INPUT,
     .weight = 0.2,
     .all = {SN_TELL_IMAGE_BAD},
     .when = image_passed,
     .evidence = {SN_TELL_IMAGE_BAD},
     .explanation = "An image could not be decoded, but training went on after it."},
    {.id = "jpeg-fatal",
     .cause = SNUG_CAUSE_INPUT,
     .weight = 0.75,
     .decisive = true,
     .all = {SN_TELL_JPEG_BAD},
     .when = jpeg_fatal,
     .evidence = {SN_TELL_JPEG_BAD, SN_TELL_TRACEBACK},
     .explanation =
         "A JPEG ends too early[[ (row {jpeg_line} of {jpeg_lines})]], and the run broke "
         "off just after it."},
    {.id = "jpeg-alone",
     .cause = SNUG_CAUSE_INPUT,
     .weight = 0.45,
     .all = {SN_TELL_JPEG_BAD},
     .when = jpeg_alone,
     .evidence = {SN_TELL_JPEG_BAD},
     .explanation =
         "A JPEG ends too early[[ (row {jpeg_line} of {jpeg_lines})]]; the text does not "
         "show whether that ended the run."},
    {.id = "record-bad",
     .cause = SNUG_CAUSE_INPUT,
     .weight = 0.85,
     .decisive = true,
     .all = {SN_TELL_RECORD_BAD},
     .evidence = {SN_TELL_RECORD_BAD},
     .explanation = "A record file is damaged or was cut while it was copied."},
    {.id = "archive-bad",
     .cause = SNUG_CAUSE_INPUT,
     .weight = 0.8,
     .decisive = true,
     .all = {SN_TELL_ARCHIVE_BAD},
     .evidence = {SN_TELL_ARCHIVE_BAD},
     .explanation = "A file of data or weights is damaged or incomplete[[: {bad_file}]]."},
};

const sn_rule *sn_rules_host(size_t *n)
{
    *n = SN_LEN(rows);
    return rows;
}
