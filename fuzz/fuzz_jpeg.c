/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_jpeg.c - JPEG files.
 */
#include "fuzz.h"
#include "fuzz_image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_image(data, size);
}
