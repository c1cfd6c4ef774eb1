/* SPDX-License-Identifier: Apache-2.0
 *
 * json.c - a snapshot as JSON. Unknown is null; a key is never left out.
 */
#include "gpus/gpus.h"

#include <jansson.h>
#include <stdlib.h>

static json_t *bytes_json(uint64_t bytes)
{
    return bytes == SNUG_BYTES_UNKNOWN ? json_null() : json_integer((json_int_t)bytes);
}

static json_t *text_json(const char *text)
{
    return text ? json_string(text) : json_null();
}

static json_t *seconds_json(double seconds)
{
    return seconds < 0 ? json_null() : json_real((double)(int64_t)(seconds * 10) / 10);
}

static int set(json_t *object, const char *key, json_t *value)
{
    return json_object_set_new(object, key, value);
}

static json_t *process_json(const snug_gpus_process *p)
{
    json_t *o = json_object();
    int bad = set(o, "pid", json_integer(p->pid));
    bad |= set(o, "parent", p->parent ? json_integer(p->parent) : json_null());
    bad |= set(o, "user", text_json(p->user));
    bad |= set(o, "bytes", bytes_json(p->bytes));
    bad |= set(o, "host_bytes", bytes_json(p->host_bytes));
    bad |= set(o, "host_is_rss", json_boolean(p->host_is_rss));
    bad |= set(o, "age_seconds", seconds_json(p->age_seconds));
    bad |= set(o, "idle_seconds", seconds_json(p->idle_seconds));
    bad |= set(o, "what", text_json(p->what));
    bad |= set(o, "state", text_json(p->state));
    bad |= set(o, "source", text_json(p->source));
    bad |= set(o, "container", text_json(p->container));
    bad |= set(o, "shared_with", p->shared_with ? json_integer(p->shared_with) : json_null());
    bad |= set(o, "can_end", json_boolean(!p->refusal));
    bad |= set(o, "command", text_json(p->command));
    if (bad) {
        json_decref(o);
        return NULL;
    }
    return o;
}

static json_t *processes_json(const snug_gpus_process *at, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; list && i < n; i++)
        if (json_array_append_new(list, process_json(&at[i]))) {
            json_decref(list);
            return NULL;
        }
    return list;
}

static json_t *card_json(const snug_gpus_card *c)
{
    json_t *o = json_object();
    int bad = set(o, "gpu", text_json(c->id));
    bad |= set(o, "name", text_json(c->name));
    bad |= set(o, "address", text_json(c->address));
    bad |= set(o, "driver", text_json(c->driver));
    bad |= set(o, "total_bytes", bytes_json(c->total_bytes));
    bad |= set(o, "used_bytes", bytes_json(c->used_bytes));
    bad |= set(o, "reserved_bytes", bytes_json(c->reserved_bytes));
    bad |= set(o, "explained_bytes", bytes_json(c->explained_bytes));
    bad |= set(o, "unexplained_bytes", bytes_json(c->unexplained_bytes));
    bad |= set(o, "unified", json_boolean(c->unified));
    bad |= set(o, "display", c->display < 0 ? json_null() : json_boolean(c->display));
    bad |= set(o, "processes", processes_json(c->processes, c->n_processes));
    if (bad) {
        json_decref(o);
        return NULL;
    }
    return o;
}

static json_t *cards_json(const snug_gpus *gpus)
{
    json_t *list = json_array();
    for (size_t i = 0; list && i < gpus->cards.n; i++)
        if (json_array_append_new(list, card_json(&gpus->cards.at[i].shown))) {
            json_decref(list);
            return NULL;
        }
    return list;
}

static json_t *ram_json(const snug_gpus_ram *r)
{
    json_t *o = json_object();
    int bad = set(o, "total_bytes", bytes_json(r->total_bytes));
    bad |= set(o, "available_bytes", bytes_json(r->available_bytes));
    bad |= set(o, "shm_bytes", bytes_json(r->shm_bytes));
    bad |= set(o, "shm_total_bytes", bytes_json(r->shm_total_bytes));
    bad |= set(o, "swap_bytes", bytes_json(r->swap_bytes));
    bad |= set(o, "swap_total_bytes", bytes_json(r->swap_total_bytes));
    bad |= set(o, "limit_bytes", bytes_json(r->limit_bytes));
    bad |= set(o, "limit_used_bytes", bytes_json(r->limit_used_bytes));
    bad |= set(o, "processes", processes_json(r->processes, r->n_processes));
    if (bad) {
        json_decref(o);
        return NULL;
    }
    return o;
}

static json_t *candidates_json(const snug_gpus *gpus)
{
    json_t *list = json_array();
    for (size_t i = 0; list && i < gpus->candidates.n; i++) {
        const snug_gpus_candidate *c = &gpus->candidates.at[i];
        json_t *o = json_object();
        int bad = set(o, "pid", json_integer(c->pid));
        bad |= set(o, "how", text_json(c->how));
        bad |= set(o, "frees_bytes", bytes_json(c->frees_bytes));
        bad |= set(o, "frees_gpu_bytes", bytes_json(c->frees_card_bytes));
        bad |= set(o, "frees_host_bytes", bytes_json(c->frees_host_bytes));
        if (bad || json_array_append(list, o)) {
            json_decref(o);
            json_decref(list);
            return NULL;
        }
        json_decref(o);
    }
    return list;
}

static json_t *notes_json(const snug_gpus *gpus)
{
    json_t *list = json_array();
    for (size_t i = 0; list && i < gpus->notes.n; i++)
        if (json_array_append_new(list, json_string(gpus->notes.at[i]))) {
            json_decref(list);
            return NULL;
        }
    return list;
}

snug_status snug_gpus_json(const char **out, snug_gpus *gpus, snug_error *err)
{
    *out = NULL;
    if (!gpus->json) {
        json_t *o = json_object();
        int bad = set(o, "gpus", cards_json(gpus));
        bad |= set(o, "ram", ram_json(&gpus->ram));
        bad |= set(o, "can_go", candidates_json(gpus));
        bad |= set(o, "notes", notes_json(gpus));
        char *text = bad ? NULL : json_dumps(o, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
        json_decref(o);
        gpus->json = text ? sn_strdup(SN_TAG_GPUS, text) : NULL;
        free(text);
    }
    if (!gpus->json)
        return sn_fail(err, SNUG_E_MEMORY, "no memory for the text of %zu cards", gpus->cards.n);
    *out = gpus->json;
    return SNUG_OK;
}
