/* SPDX-License-Identifier: Apache-2.0
 *
 * source.h - Python training code read without being run: which lines load a whole data set, cache
 * or shuffle decoded images in RAM, keep autograd graphs or results alive, build models in a loop.
 *
 *     sn_source_report report = {0};
 *     sn_source_scan(&report, &arena, text, n, err);
 *     for (size_t i = 0; i < report.n; i++) use(report.at[i].line, report.at[i].explanation);
 *
 * The scan gives every name an abstract value (a list of files, a decoded image, a whole set, a
 * tf.data pipeline, a loss with its graph, ...), walks the statements three times (so that
 * functions know their arguments) and reports in the last walk only. Ownership: findings and their
 * texts live in the caller's arena.  Threads: reentrant.
 */
#ifndef SN_DIAGNOSE_SOURCE_H
#define SN_DIAGNOSE_SOURCE_H

#include "diagnose/diagnose.h"

/* X(identifier, cause, confidence, decisive, what to type, what it gives): one row a trap. */
#define SN_TRAP_LIST(X)                                                                            \
    X(CONVERT, DATASET, 0.8, true,                                                                 \
      "tf.data.Dataset.from_tensor_slices(file_names).map(load).batch(32), or a "                  \
      "torch.utils.data.Dataset that opens one file in __getitem__",                               \
      "one batch of images in memory at a time, not the set")                                      \
    X(FIT_ARRAY, DATASET, 0.75, true,                                                              \
      "model.fit(dataset) with a tf.data pipeline or a keras.utils.PyDataset that reads batch by " \
      "batch; np.load(..., mmap_mode='r') if the array is a file already",                         \
      "memory for a few batches instead of the whole array and its copy")                          \
    X(BIG_ARRAY, DATASET, 0.8, true,                                                               \
      "read images batch by batch; if one array is needed, np.memmap(file, mode='w+', "            \
      "dtype='uint8', shape=...)",                                                                 \
      "the array lives in a file; uint8 is a quarter of float32, an eighth of float64")            \
    X(ACCUMULATE, DATASET, 0.65, true,                                                             \
      "keep file names in the list and open each file when its "                                   \
      "batch is made",                                                                             \
      "a name takes about 100 bytes, a decoded 224x224 photo 147 KiB to 1.1 MiB")                  \
    X(DATASET_INIT, DATASET, 0.7, true, "keep paths in __init__ and open the file in __getitem__", \
      "the data set object stays small, workers share it")                                         \
    X(WORKERS, HOST_LOADER, 0.75, true,                                                            \
      "keep paths (or one NumPy array, not a list of Python objects) in the Dataset and open "     \
      "files in __getitem__; until then num_workers=0",                                            \
      "each worker ends with a copy of the list: reference counts are written, so pages that "     \
      "were shared after the fork are copied")                                                     \
    X(MANY_WORKERS, HOST_LOADER, 0.45, false, "num_workers=4, prefetch_factor=2",                  \
      "each worker holds prefetch_factor batches and a copy of the interpreter")                   \
    X(CACHE_RAM, CACHE, 0.75, true,                                                                \
      ".cache('/path/on/disk') or no cache(), or cache() before the images are decoded",           \
      "a cache on disk does not count against RAM; encoded files are 5 to 20 times smaller")       \
    X(CACHE_ITEMS, CACHE, 0.65, true,                                                              \
      "cache to files, or bound the cache (lru_cache(maxsize=64))",                                \
      "a cache that never forgets ends with the whole set in RAM, once for each worker")           \
    X(SHUFFLE, CACHE, 0.75, true,                                                                  \
      "shuffle the file names: list_files(...).shuffle(n).map(decode), then a small "              \
      ".shuffle(256) if at all",                                                                   \
      "a buffer of names costs nothing, a buffer of decoded images costs its length times an "     \
      "image")                                                                                     \
    X(LOSS_KEPT, LEAK_HISTORY, 0.8, true, "losses.append(loss.item())",                            \
      "a number instead of a tensor that keeps the whole step's graph and activations")            \
    X(LOSS_SUM, LEAK_HISTORY, 0.8, true, "total_loss += loss.item()",                              \
      "the sum of tensors keeps the graph of every step since the beginning")                      \
    X(OUTPUT_KEPT, LEAK_HISTORY, 0.75, true, "outputs.append(out.detach().cpu())",                 \
      "the graph is let go and the numbers move to the host")                                      \
    X(OUTPUT_ON_GPU, LEAK_HISTORY, 0.7, true, "outputs.append(out.cpu())",                         \
      "results gather in host RAM instead of on the card")                                         \
    X(NO_NO_GRAD, LEAK_GRAPH, 0.75, true,                                                          \
      "with torch.no_grad():  (or @torch.inference_mode()) "                                       \
      "around the loop",                                                                           \
      "no activations are kept for a backward pass that never comes")                              \
    X(RETAIN_GRAPH, LEAK_GRAPH, 0.7, true,                                                         \
      "loss.backward() without retain_graph=True; detach() what is carried to the next step",      \
      "the graph is freed after each backward pass")                                               \
    X(MODEL_LOOP, LEAK_GRAPH, 0.7, true,                                                           \
      "tf.keras.backend.clear_session() and gc.collect() at the top of the loop, or one process "  \
      "per model",                                                                                 \
      "Keras keeps the graph of every model it built until the session is cleared")                \
    X(GRAPH_OPS, LEAK_GRAPH, 0.7, true,                                                            \
      "build the operations once before the loop, then "                                           \
      "sess.run() them; tf.get_default_graph().finalize() shows who adds one",                     \
      "each turn adds operations to the graph for good")                                           \
    X(HUGE_BATCH, BATCH, 0.55, true, "a batch that fits: snug plan DATA MODEL prints the largest", \
      "activations grow with the batch")

typedef enum sn_trap {
#define SN_TRAP_ENUM(id, cause, confidence, decisive, action, why) SN_TRAP_##id,
    SN_TRAP_LIST(SN_TRAP_ENUM)
#undef SN_TRAP_ENUM
        SN_N_TRAPS
} sn_trap;

typedef struct sn_source_finding {
    sn_trap trap;
    double confidence;
    uint32_t line, other_line; /* other_line: where the story begins, 0 if here */
    const char *explanation;   /* the GiB where sizes stand in the code */
} sn_source_finding;

typedef struct sn_source_report {
    sn_source_finding *at;
    size_t n, cap;
    bool torch, tensorflow; /* imported */
} sn_source_report;

/* Findings in the order of their lines. SNUG_OK (also for text that is no Python), SNUG_E_MEMORY.
 */
snug_status sn_source_scan(sn_source_report *out, sn_arena *arena, const char *text, size_t n,
                           snug_error *err);
/* Where a line of concatenated text comes from: NULL name means the source itself. */
typedef struct sn_source_place {
    const char *name;    /* "train.ipynb cell 3" */
    uint32_t first_line; /* of the concatenation, from 1 */
} sn_source_place;
/* Scans text and adds its findings to d; places (n_places, by first_line) name parts of it. */
snug_status sn_source_read(snug_diagnosis *d, const char *name, const char *text, size_t n,
                           const sn_source_place *places, size_t n_places, snug_error *err);
const char *sn_trap_name(sn_trap trap);
snug_cause_id sn_trap_cause(sn_trap trap);

#endif
