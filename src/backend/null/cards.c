/* SPDX-License-Identifier: Apache-2.0
 *
 * cards.c - cards to plan for, as their data sheets have them: memory, bandwidth (1e9 bytes a
 * second), float32 arithmetic at boost clock (1e12 operations a second). The reserve is what a
 * program does not get: the driver's context, and a screen where one is usually connected.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "snug/device.h"

enum { N_SHORT = 48 };

#define SCREEN (225 * SN_MIB)
#define SERVER (350 * SN_MIB)

static const snug_card cards[] = {
    {"Quadro K620", 2 * SN_GIB, 29, 0.86, SCREEN},
    {"Quadro P400", 2 * SN_GIB, 32, 0.64, SCREEN},
    {"MX150", 2 * SN_GIB, 48, 1.13, SCREEN},
    {"MX250", 2 * SN_GIB, 48, 1.21, SCREEN},
    {"GTX 750 Ti", 2 * SN_GIB, 86, 1.39, SCREEN},
    {"GTX 950", 2 * SN_GIB, 106, 1.8, SCREEN},
    {"GTX 960", 2 * SN_GIB, 112, 2.4, SCREEN},
    {"GTX 970", 7 * SN_GIB / 2, 196, 3.9, SCREEN},
    {"GTX 980", 4 * SN_GIB, 224, 5.0, SCREEN},
    {"GTX 980 Ti", 6 * SN_GIB, 336, 6.1, SCREEN},
    {"GTX 1050", 2 * SN_GIB, 112, 1.9, SCREEN},
    {"GTX 1050 Ti", 4 * SN_GIB, 112, 2.1, SCREEN},
    {"GTX 1060 3GB", 3 * SN_GIB, 192, 3.9, SCREEN},
    {"GTX 1060 6GB", 6 * SN_GIB, 192, 4.4, SCREEN},
    {"GTX 1070", 8 * SN_GIB, 256, 6.5, SCREEN},
    {"GTX 1080", 8 * SN_GIB, 320, 8.9, SCREEN},
    {"GTX 1080 Ti", 11 * SN_GIB, 484, 11.3, SCREEN},
    {"GTX 1650", 4 * SN_GIB, 128, 3.0, SCREEN},
    {"GTX 1660", 6 * SN_GIB, 192, 5.0, SCREEN},
    {"RTX 2060", 6 * SN_GIB, 336, 6.5, SCREEN},
    {"RTX 2070", 8 * SN_GIB, 448, 7.5, SCREEN},
    {"RTX 2080", 8 * SN_GIB, 448, 10.1, SCREEN},
    {"RTX 2080 Ti", 11 * SN_GIB, 616, 13.4, SCREEN},
    {"RTX 3050", 8 * SN_GIB, 224, 9.1, SCREEN},
    {"RTX 3060", 12 * SN_GIB, 360, 12.7, SCREEN},
    {"RTX 3070", 8 * SN_GIB, 448, 20.3, SCREEN},
    {"RTX 3080", 10 * SN_GIB, 760, 29.8, SCREEN},
    {"RTX 3090", 24 * SN_GIB, 936, 35.6, SCREEN},
    {"RTX 4060", 8 * SN_GIB, 272, 15.1, SCREEN},
    {"RTX 4070", 12 * SN_GIB, 504, 29.1, SCREEN},
    {"RTX 4080", 16 * SN_GIB, 717, 48.7, SCREEN},
    {"RTX 4090", 24 * SN_GIB, 1008, 82.6, SCREEN},
    {"Tesla K80", 12 * SN_GIB, 240, 4.1, SERVER},
    {"Tesla P4", 8 * SN_GIB, 192, 5.5, SERVER},
    {"Tesla P100", 16 * SN_GIB, 732, 9.3, SERVER},
    {"Tesla T4", 15 * SN_GIB, 320, 8.1, SERVER},
    {"Tesla V100", 16 * SN_GIB, 900, 14.1, SERVER},
    {"A100", 40 * SN_GIB, 1555, 19.5, SERVER},
    {"L4", 24 * SN_GIB, 300, 30.3, SERVER},
    {"Radeon RX 550", 2 * SN_GIB, 112, 1.2, SCREEN},
    {"Radeon RX 560", 4 * SN_GIB, 112, 2.6, SCREEN},
    {"Radeon RX 570", 4 * SN_GIB, 224, 5.1, SCREEN},
    {"Radeon RX 580", 8 * SN_GIB, 256, 6.2, SCREEN},
    {"Radeon RX 5700 XT", 8 * SN_GIB, 448, 9.8, SCREEN},
    {"Radeon RX 6600", 8 * SN_GIB, 224, 8.9, SCREEN},
    {"Radeon RX 6700 XT", 12 * SN_GIB, 384, 13.2, SCREEN},
    {"Radeon RX 7900 XTX", 24 * SN_GIB, 960, 61.4, SCREEN},
    {"Arc A380", 6 * SN_GIB, 186, 4.2, SCREEN},
    {"Arc A770", 16 * SN_GIB, 560, 19.7, SCREEN},
};

const snug_card *snug_cards(size_t *n)
{
    *n = SN_LEN(cards);
    return cards;
}

/* Lower case letters and digits, makers' words left out: "NVIDIA GeForce GTX 950" is "gtx950". */
static void shorten(char out[N_SHORT], const char *name)
{
    static const char *const words[] = {"nvidia", "geforce", "amd", "radeon", "intel", "tesla"};
    size_t n = 0;
    for (const char *at = name; *at && n < N_SHORT - 1; at++)
        if (isalnum((unsigned char)*at))
            out[n++] = (char)tolower((unsigned char)*at);
    out[n] = '\0';
    for (size_t w = 0; w < SN_LEN(words); w++) {
        char *at = strstr(out, words[w]);
        if (at) {
            size_t length = strlen(words[w]);
            memmove(at, at + length, strlen(at + length) + 1);
        }
    }
}

static void write_spec(char *out, size_t n, const snug_card *card)
{
    snprintf(out, n, "null:%" PRIu64 "MiB,tflops=%g,gbps=%g,reserve=%" PRIu64 "MiB",
             card->bytes / SN_MIB, card->tflops, card->gbps, card->reserve_bytes / SN_MIB);
}

snug_status snug_card_spec(char *out, size_t n, const char *card, snug_error *err)
{
    char asked[N_SHORT], known[N_SHORT];
    const char *near_names[SN_LEN(cards)], *candidates = NULL;
    uint64_t bytes;
    if (n)
        *out = '\0';
    if (!card || !*card)
        return sn_fail(err, SNUG_E_USAGE, "no card was named; write \"GTX 950\" or 2GB");
    if (sn_parse_size(card, &bytes)) {
        if (bytes < SN_MIB)
            return sn_fail(err, SNUG_E_USAGE, "a card of %s: at least 1 MiB is needed", card);
        snprintf(out, n, "null:%" PRIu64 "MiB,reserve=%" PRIu64 "MiB", bytes / SN_MIB,
                 SN_MIN(SCREEN, bytes / 4) / SN_MIB);
        return SNUG_OK;
    }
    shorten(asked, card);
    size_t n_begin = 0, begin = 0;
    for (size_t i = 0; i < SN_LEN(cards); i++) {
        shorten(known, cards[i].name);
        near_names[i] = cards[i].name;
        if (sn_str_eq(asked, known)) {
            write_spec(out, n, &cards[i]);
            return SNUG_OK;
        }
        if (*asked && sn_str_starts(known, asked)) {
            candidates = n_begin ? candidates : cards[i].name;
            begin = i;
            n_begin++;
        }
    }
    if (n_begin == 1) {
        write_spec(out, n, &cards[begin]);
        return SNUG_OK;
    }
    if (n_begin)
        return sn_fail(err, SNUG_E_NOT_FOUND, "card '%s' could be several: '%s', '%s', ...", card,
                       candidates, cards[begin].name);
    const char *nearest = sn_str_nearest(card, near_names, SN_LEN(cards));
    if (nearest)
        return sn_fail(err, SNUG_E_NOT_FOUND,
                       "card '%s' is not in the table; did you mean '%s'? A size works, too: 2GB",
                       card, nearest);
    return sn_fail(err, SNUG_E_NOT_FOUND,
                   "card '%s' is not in the table of %zu; write its memory instead: 2GB", card,
                   SN_LEN(cards));
}
