/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz.h - what a fuzzer is: fuzz/fuzz_<name>.c defines this one function, fuzz/corpus/<name>/
 * holds its first inputs. With clang it becomes a libFuzzer program (`make fuzz`); in every test
 * build it is linked with replay_main.c, which feeds it the corpus.
 *
 *     int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
 *     {
 *         ... give the bytes to a reader; abort() when what it says cannot be ...
 *         return 0;
 *     }
 *
 * Ownership: data is borrowed for the call; whatever the call allocates it frees.
 * Threads: one at a time.
 */
#ifndef SN_FUZZ_H
#define SN_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
