/* SPDX-License-Identifier: Apache-2.0
 *
 * score.h - scores in words and in JSON.
 *
 *     sn_cli_print_score(stdout, &score, data, true);
 *
 * Ownership: JSON that is returned is the caller's.  Threads: the command's main thread only.
 */
#ifndef SNUG_CLI_SCORE_H
#define SNUG_CLI_SCORE_H

#include <jansson.h>
#include <stdio.h>

#include "snug/snug.h"

void sn_cli_print_score(FILE *out, const snug_score *score, const snug_data *data,
                        bool every_class);
/* The name of a class as runs keep it: "class N" without data, or where it is not UTF-8. */
json_t *sn_cli_class_json(const snug_data *data, size_t i);
json_t *sn_cli_score_json(const snug_score *score, const snug_data *data);

#endif
