/* SPDX-License-Identifier: Apache-2.0
 *
 * diagnose/scan.h - small readers of numbers in a line of text. They never read past the NUL.
 *
 *     uint64_t free_bytes;
 *     if (sn_scan_before(line, " free", &free_bytes)) ...      // "10.26 GiB free"
 *
 * Units: K, M, G, T with or without "B" or "iB" are binary (as frameworks mean them); "bytes" and
 * no unit are bytes.
 * Ownership: none.  Threads: pure functions.
 */
#ifndef SN_DIAGNOSE_SCAN_H
#define SN_DIAGNOSE_SCAN_H

#include "base/base.h"

/* A decimal number at *p (spaces before it are skipped, commas between digits too); *p moves past
 * it. False and *p unmoved if there is none. */
bool sn_scan_real(const char **p, double *value);
bool sn_scan_count(const char **p, uint64_t *value);
/* A number and its unit at *p. *unit (may be NULL) tells if one was given. */
bool sn_scan_size(const char **p, uint64_t *bytes, bool *unit);
/* The size after the first label in text; ':', '=', '(', quotes and spaces between are skipped. */
bool sn_scan_after(const char *text, const char *label, uint64_t *bytes);
/* The size that ends where the first label with a size before it begins. */
bool sn_scan_before(const char *text, const char *label, uint64_t *bytes);
/* The count after the label, as sn_scan_after. */
bool sn_scan_count_after(const char *text, const char *label, uint64_t *value);
bool sn_scan_real_after(const char *text, const char *label, double *value);
/* Whole numbers in [ ] or ( ) at p, separated by commas; 1 to 8 of them, each at least 0. */
bool sn_scan_shape(const char *p, int64_t *dims, size_t *n);
/* A word at p: until a space, quote, comma, bracket or the end. Returns its length. */
size_t sn_scan_word(const char *p);
/* strstr without regard to case (ASCII). */
const char *sn_scan_fold(const char *text, const char *needle);
bool sn_scan_has(const char *text, const char *needle);

#endif
