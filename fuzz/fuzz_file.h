/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_file.h - gives a fuzzer's bytes a path, for readers that open files.
 *
 *     char path[64];  int fd = fuzz_file(path, data, size);  ...  close(fd);
 *
 * Ownership: the caller closes the descriptor; the file ends with it.  Threads: one at a time.
 */
#ifndef SN_FUZZ_FILE_H
#define SN_FUZZ_FILE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static inline int fuzz_file(char path[64], const uint8_t *data, size_t size)
{
    int fd = memfd_create("fuzz", MFD_CLOEXEC);

    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    snprintf(path, 64, "/proc/self/fd/%d", fd);
    return fd;
}

#endif
