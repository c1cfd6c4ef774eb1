/* SPDX-License-Identifier: Apache-2.0
 *
 * Lines and counts.
 */
#include "data/notes.h"

#include <ctype.h>

#include "base/buf.h"
#include "data/image.h"

/* More kinds of endings than this are counted together. */
enum { MAX_ENDINGS = 64, SHOWN_ENDINGS = 8 };

void sn_notes_init(sn_notes *out)
{
    memset(out, 0, sizeof *out);
    sn_map_init(&out->ignored, SN_TAG_DATA);
}

bool sn_notes_add(sn_notes *notes, const char *format, ...)
{
    sn_buf b;
    va_list args;

    sn_buf_init(&b, SN_TAG_DATA);
    va_start(args, format);
    sn_buf_vprintf(&b, format, args);
    va_end(args);
    char *line = sn_buf_take(&b);
    if (line && SN_VEC_PUSH(SN_TAG_DATA, &notes->lines, line))
        return true;
    sn_free(line);
    return false;
}

bool sn_notes_ignore(sn_notes *notes, const char *name)
{
    char ending[16] = "without ending", shown[16];
    const char *slash = strrchr(name, '/'), *dot = strrchr(slash ? slash : name, '.');

    if (dot && strlen(dot) < 10 && dot[1]) {
        size_t n = strlen(dot);
        for (size_t i = 0; i < n; i++)
            ending[i] = (char)tolower((unsigned char)dot[i]);
        ending[n] = '\0';
    }
    sn_str_printable(shown, sizeof shown, ending);
    uint64_t *count = sn_map_find_str(&notes->ignored, shown);
    if (!count && notes->ignored.n >= MAX_ENDINGS) {
        memcpy(shown, "of other kinds", sizeof "of other kinds");
        count = sn_map_find_str(&notes->ignored, shown);
    }
    if (count) {
        ++*count;
        return true;
    }
    return sn_map_set_str(&notes->ignored, shown, 1);
}

typedef struct ending {
    const char *name;
    size_t length;
    uint64_t count;
} ending;

static int by_count(const void *a, const void *b)
{
    const ending *x = a, *y = b;

    if (x->count != y->count)
        return x->count < y->count ? 1 : -1;
    int order = memcmp(x->name, y->name, SN_MIN(x->length, y->length));
    return order ? order : (x->length > y->length) - (x->length < y->length);
}

bool sn_notes_sum_up(sn_notes *notes)
{
    ending found[MAX_ENDINGS + 1];
    size_t n = 0, cursor = 0;
    uint64_t total = 0, rest = 0;
    const void *key;
    sn_buf b;

    if (notes->ignored.n == 0)
        return true;
    while (n < SN_LEN(found) &&
           sn_map_next(&notes->ignored, &cursor, &key, &found[n].length, &found[n].count)) {
        found[n].name = key;
        total += found[n++].count;
    }
    qsort(found, n, sizeof *found, by_count);
    sn_buf_init(&b, SN_TAG_DATA);
    for (size_t i = 0; i < n; i++) {
        char text[16];
        if (i >= SHOWN_ENDINGS) {
            rest += found[i].count;
            continue;
        }
        snprintf(text, sizeof text, "%.*s", (int)found[i].length, found[i].name);
        sn_image_kind kind = sn_image_kind_of_name(text);
        sn_buf_printf(&b, "%s%" PRIu64 " %s", i ? ", " : "", found[i].count, text);
        if (kind != SN_IMAGE_UNKNOWN)
            sn_buf_printf(&b, " (%s)", sn_image_kind_words(kind));
    }
    if (rest)
        sn_buf_printf(&b, ", %" PRIu64 " more", rest);
    bool ok = !b.failed && sn_notes_add(notes, "ignored %" PRIu64 " file%s: %s", total,
                                        total == 1 ? "" : "s", b.data);
    sn_buf_deinit(&b);
    return ok;
}

void sn_notes_deinit(sn_notes *notes)
{
    for (size_t i = 0; i < notes->lines.n; i++)
        sn_free(notes->lines.at[i]);
    SN_VEC_FREE(&notes->lines);
    sn_map_deinit(&notes->ignored);
}
