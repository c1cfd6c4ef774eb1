/* SPDX-License-Identifier: Apache-2.0
 *
 * banned.h - calls that the project does not make. Included by the build before every file of src/
 * and cli/ except src/base/ledger.c; using one is a compile error that names the replacement.
 * System headers that declare these names are included first, so that they still compile.
 *
 * Ownership: none.  Threads: none.
 */
#ifndef SN_BASE_BANNED_H
#define SN_BASE_BANNED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <mm_malloc.h> /* part of immintrin.h; calls malloc */
#endif

#pragma GCC poison strcpy strcat strncpy strncat sprintf vsprintf gets strtok rand srand atoi atof \
    atol
#pragma GCC poison malloc calloc realloc strdup strndup

#endif
