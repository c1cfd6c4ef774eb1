/* SPDX-License-Identifier: Apache-2.0
 *
 * dl.c - shared libraries that may be absent.
 */
#include "base/dl.h"

#include "base/ledger.h"

#include <dlfcn.h>

struct sn_dl {
    void *handle;
};

snug_status sn_dl_open(sn_dl **out, const char *name, snug_error *err)
{
    *out = NULL;
    sn_dl *dl = sn_alloc(SN_TAG_BASE, sizeof *dl);
    if (!dl)
        return sn_fail(err, SNUG_E_MEMORY, "no memory to open %s", name);
    dl->handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!dl->handle) {
        const char *why = dlerror();
        sn_free(dl);
        return sn_fail(err, SNUG_E_NOT_FOUND, "%s", why ? why : name);
    }
    *out = dl;
    return SNUG_OK;
}

void *sn_dl_symbol(sn_dl *dl, const char *name)
{
    return dlsym(dl->handle, name);
}

void sn_dl_free(sn_dl *dl)
{
    if (!dl)
        return;
    dlclose(dl->handle);
    sn_free(dl);
}
