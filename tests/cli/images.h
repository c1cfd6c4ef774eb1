/* SPDX-License-Identifier: Apache-2.0
 *
 * images.h - a tiny data set for the tests of the command: two classes of small BMP files.
 *
 *     images_make(folder, "d");                            // d/c0/00.bmp ... d/c1/11.bmp, 16x16
 *
 * Ownership: nothing is held.  Threads: one at a time.
 */
#ifndef SN_TEST_IMAGES_H
#define SN_TEST_IMAGES_H

#include <stdio.h>
#include <string.h>

#include "support/support.h"

static inline void images_bmp(const char *path, uint32_t seed, uint8_t base)
{
    uint8_t file[54 + 16 * 16 * 3] = {'B', 'M'};

    file[10] = 54;
    file[14] = 40;
    file[18] = file[22] = 16;
    file[26] = 1;
    file[28] = 24;
    file[2] = (uint8_t)(sizeof file & 255);
    file[3] = (uint8_t)(sizeof file >> 8);
    for (size_t i = 54; i < sizeof file; i++) {
        seed = seed * 1664525u + 1013904223u;
        file[i] = (uint8_t)(base + (seed >> 24) % 100);
    }
    test_write(path, file, sizeof file);
}

static inline void images_make(const char *folder, const char *data)
{
    char name[64], path[SN_TEST_PATH];

    for (uint32_t k = 0; k < 2; k++)
        for (uint32_t i = 0; i < 12; i++) {
            snprintf(name, sizeof name, "%s/c%u/%02u.bmp", data, k, i);
            images_bmp(test_path(path, folder, name), 100 * k + i + 1, (uint8_t)(100 * k));
        }
}

#endif
