/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_text.c - what users type: sizes, numbers, names. Nothing may crash; what is shown must be
 * safe; what is accepted must be what a second reading gives.
 */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "fuzz.h"

static void must(bool what)
{
    if (!what)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[256], shown[300], again[300];
    size = SN_MIN(size, sizeof text - 1);
    memcpy(text, data, size);
    text[size] = '\0';

    sn_str_printable(shown, sizeof shown, text);
    must(strlen(shown) < sizeof shown);
    for (const char *c = shown; *c; c++)
        must((unsigned char)*c >= 0x20 && *c != 0x7f);
    /* What is safe to show is shown as it is. */
    must(sn_str_eq(sn_str_printable(again, sizeof again, shown), shown));

    uint64_t bytes;
    if (sn_parse_size(text, &bytes))
        must(text[strspn(text, "0123456789.kKmMgGtTpPiIbB")] == '\0');
    int64_t whole;
    if (sn_parse_i64(text, -1000, 1000, &whole))
        must(whole >= -1000 && whole <= 1000);
    double real;
    if (sn_parse_f64(text, -1, 1, &real))
        must(real >= -1 && real <= 1);

    static const char *const names[] = {"batch", "epochs", "memory", ""};
    const char *nearest = sn_str_nearest(text, names, SN_LEN(names));
    must(!nearest || sn_str_distance(text, nearest) <= strlen(text) + strlen(nearest));
    must(sn_str_natural_cmp(text, text) == 0);
    must((sn_str_natural_cmp(text, "a10") < 0) == (sn_str_natural_cmp("a10", text) > 0));
    return 0;
}
