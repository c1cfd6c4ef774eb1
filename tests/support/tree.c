/* SPDX-License-Identifier: Apache-2.0
 *
 * tree.c - walking and reading the source tree.
 */
#include "support/tree.h"

#include <ctype.h>
#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "base/vec.h"

bool test_quiet;

static bool has_suffix(const char *name, const char *suffixes)
{
    if (!*suffixes)
        return true;
    for (const char *s = suffixes; *s;) {
        size_t n = strcspn(s, " "), len = strlen(name);
        if (n && len >= n && strncmp(name + len - n, s, n) == 0)
            return true;
        s += n + (s[n] == ' ');
    }
    return false;
}

static void walk(test_files *files, const char *folder, const char *suffixes)
{
    char path[SN_TEST_PATH];
    struct dirent **entries;
    int n = scandir(test_source_path(path, folder), &entries, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        const char *name = entries[i]->d_name;
        if (name[0] != '.' && !sn_str_starts(name, "build")) {
            char *inner = sn_io_join(SN_TAG_TEST, folder, name);
            assert_non_null(inner);
            bool is_folder = sn_io_is_folder(test_source_path(path, inner));
            if (is_folder)
                walk(files, inner, suffixes);
            if (!is_folder && has_suffix(name, suffixes))
                assert_true(SN_VEC_PUSH(SN_TAG_TEST, files, inner));
            else
                sn_free(inner);
        }
        free(entries[i]);
    }
    if (n >= 0)
        free(entries);
}

void test_files_find(test_files *files, const char *folder, const char *suffixes)
{
    walk(files, folder, suffixes);
}

void test_files_free(test_files *files)
{
    for (size_t i = 0; i < files->n; i++)
        sn_free(files->at[i]);
    SN_VEC_FREE(files);
}

char *test_source_text(const char *name)
{
    char path[SN_TEST_PATH];
    return test_read(test_source_path(path, name), NULL);
}

char *test_next_line(char **cursor)
{
    char *line = *cursor;
    if (!*line)
        return NULL;
    char *end = strchr(line, '\n');
    *cursor = end ? end + 1 : line + strlen(line);
    if (end)
        *end = '\0';
    return line;
}

size_t test_problem(const char *name, size_t line, const char *format, ...)
{
    if (test_quiet)
        return 1;
    char message[512];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    print_error("%s:%zu: %s\n", name, line, message);
    return 1;
}

static bool in_name(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

void test_public_names(const char *text, void (*found)(const char *name, void *context),
                       void *context)
{
    static const char mark[] = "SNUG_API";
    for (const char *at = text; (at = strstr(at, mark)); at++) {
        const char *line = at;
        while (line > text && line[-1] != '\n')
            line--;
        if (*line == '#' || *line == ' ' || *line == '/')
            continue; /* its definition, or a comment */
        const char *end = at + strcspn(at, "(;[=");
        while (end > at && !in_name(end[-1]))
            end--;
        const char *begin = end;
        while (begin > at && in_name(begin[-1]))
            begin--;
        char name[128];
        snprintf(name, sizeof name, "%.*s", (int)(end - begin), begin);
        found(name, context);
    }
}
