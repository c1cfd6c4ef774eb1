/* SPDX-License-Identifier: Apache-2.0 */
#include "diagnose/state.h"

const sn_pattern *sn_pattern_at(size_t i)
{
    static const sn_pattern *(*const tables[])(size_t *) = {
        sn_patterns_torch, sn_patterns_tensorflow, sn_patterns_host,
        sn_patterns_data,  sn_patterns_card,       sn_patterns_general,
    };
    for (size_t k = 0; k < SN_LEN(tables); k++) {
        size_t n;
        const sn_pattern *rows = tables[k](&n);
        if (i < n)
            return &rows[i];
        i -= n;
    }
    return NULL;
}
