/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_csv.c - cells and rows, and the same bytes as a table of numbers and as a list of images.
 */
#include <string.h>

#include "format/csv.h"
#include "fuzz.h"
#include "fuzz_file.h"

static void as_rows(const char *path, size_t size)
{
    sn_csv c;
    size_t total = 0;

    if (sn_csv_open(&c, path, NULL))
        return;
    while (!sn_csv_next(&c, NULL) && c.n)
        for (size_t i = 0; i < c.n; i++)
            total += strlen(c.cells[i]);
    sn_csv_close(&c);
    if (total > size)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t live = sn_ledger_live_bytes();
    char path[64];
    int fd = fuzz_file(path, data, size);
    snug_data_options o = SNUG_DATA_OPTIONS_INIT;
    sn_raw *raw;
    sn_images *images;

    as_rows(path, size);
    o.label_column = "1";
    if (!sn_csv_raw(&raw, path, &o, NULL))
        sn_raw_free(raw);
    o.labels_path = path;
    o.label_column = NULL;
    if (!sn_images_new(&images, &o, NULL)) {
        (void)sn_csv_images(images, "/proc/self/fd", NULL, &o, NULL);
        sn_images_free(images);
    }
    close(fd);
    if (sn_ledger_live_bytes() != live)
        abort();
    return 0;
}
