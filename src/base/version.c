/* SPDX-License-Identifier: Apache-2.0
 *
 * version.c - which library is running.
 */
#include "snug/snug.h"

const char *snug_version(void)
{
    return SNUG_VERSION;
}
