/* SPDX-License-Identifier: Apache-2.0
 *
 * tree.h - reading the source tree, for tests that check the tree itself.
 *
 *     test_files files = {0};
 *     test_files_find(&files, "src", ".c .h");          // names relative to the source folder
 *     for (size_t i = 0; i < files.n; i++)
 *         problems += check(files.at[i], text = test_source_text(files.at[i]));
 *     test_files_free(&files);
 *
 * Ownership: a test_files owns its names; texts are freed with sn_free.  Threads: one at a time.
 */
#ifndef SN_TEST_TREE_H
#define SN_TEST_TREE_H

#include "support/support.h"

typedef struct test_files {
    char **at;
    size_t n, cap;
} test_files;

/* Adds, sorted, the regular files below <source folder>/folder whose name ends with one of the
 * suffixes ("" or a list with spaces between; a folder that is not there adds nothing). Hidden
 * files and folders and those named build* are passed over. */
void test_files_find(test_files *files, const char *folder, const char *suffixes);
void test_files_free(test_files *files);

/* The text of <source folder>/name. sn_free it. */
char *test_source_text(const char *name);
/* Cuts the next line off *cursor in place; NULL at the end. */
char *test_next_line(char **cursor);
/* Prints "name:line: message" unless quiet is set; always returns 1, to be added up. */
size_t test_problem(const char *name, size_t line, const char *format, ...) SNUG_PRINTF(3, 4);
/* While set, test_problem prints nothing: for texts that are wrong on purpose. */
extern bool test_quiet;

/* Calls found(name, context) for each function or object that text declares with SNUG_API. */
void test_public_names(const char *text, void (*found)(const char *name, void *context),
                       void *context);

#endif
