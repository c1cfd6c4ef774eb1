/* SPDX-License-Identifier: Apache-2.0
 *
 * topics.h - the pages of docs/howto, compiled in by tools/topics.cmake, for `snug help TOPIC`.
 *
 *     for (size_t i = 0; i < sn_cli_n_topics; i++) puts(sn_cli_topics[i].slug);
 *
 * Ownership: static storage.  Threads: constant data.
 */
#ifndef SNUG_CLI_TOPICS_H
#define SNUG_CLI_TOPICS_H

#include <stddef.h>

typedef struct sn_cli_topic {
    const char *slug;  /* the file's name without .md */
    const char *title; /* its first heading */
    const char *words; /* what people search for: the page's "words:" comment */
    const char *text;  /* the whole page, in Markdown */
} sn_cli_topic;

extern const sn_cli_topic sn_cli_topics[];
extern const size_t sn_cli_n_topics;

#endif
