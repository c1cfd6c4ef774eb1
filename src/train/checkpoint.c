/* SPDX-License-Identifier: Apache-2.0
 *
 * checkpoint.c - saving and loading. A weight whose layout is PLAIN goes straight between arena and
 * file; others pass through a buffer as large as the largest of them.
 */
#include "train/checkpoint.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/vec.h"
#include "format/safetensors.h"
#include "snug/train.h"

#define STATE_FORMAT                                                                               \
    "1 %" PRIu64 " %" PRId64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %a %a %a %" PRId64 " %" PRId64  \
    " %a %a %" PRId64 " %" PRIu64
#define STATE_SCAN                                                                                 \
    "1 %" SCNu64 " %" SCNd64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %la %la %la %" SCNd64           \
    " %" SCNd64 " %la %la %" SCNd64 " %" SCNu64

typedef struct entry_list {
    SN_VEC(sn_safetensors_entry) entries;
    SN_VEC(const sn_program_weight *) weights;
    sn_arena names;
} entry_list;

static const sn_program *any_program(const snug_session *session)
{
    for (int m = 0; m < 3; m++) {
        if (session->programs[m]) {
            return session->programs[m];
        }
    }
    return NULL;
}

static void list_free(entry_list *list)
{
    SN_VEC_FREE(&list->entries);
    SN_VEC_FREE(&list->weights);
    sn_arena_deinit(&list->names);
}

/* "conv1/kernel", and for optimizer state "conv1/kernel:slot0". */
static const char *entry_name(entry_list *list, const snug_session *session,
                              const sn_program_weight *w)
{
    const char *name = session->model->weights.at[w->weight].name;
    return w->slot < 0 ? name : sn_arena_printf(&list->names, "%s:slot%d", name, w->slot);
}

static snug_status list_new(entry_list *list, const snug_session *session, bool with_state,
                            snug_error *err)
{
    memset(list, 0, sizeof *list);
    sn_arena_init(&list->names, SN_TAG_TRAIN);
    const sn_program *p = any_program(session);
    for (size_t i = 0; i < p->n_weights; i++) {
        const sn_program_weight *w = &p->weights[i];
        if (w->slot >= 0 && !with_state) {
            continue;
        }
        const sn_shape *shape = &session->model->weights.at[w->weight].keras_shape;
        sn_safetensors_entry e = {
            .name = entry_name(list, session, w), .dtype = "F32", .rank = shape->rank};
        memcpy(e.shape, shape->dim, (size_t)shape->rank * sizeof *e.shape);
        if (!e.name || !SN_VEC_PUSH(SN_TAG_TRAIN, &list->entries, e) ||
            !SN_VEC_PUSH(SN_TAG_TRAIN, &list->weights, w)) {
            list_free(list);
            return sn_fail(err, SNUG_E_MEMORY, "no memory to list %zu weights", p->n_weights);
        }
    }
    return SNUG_OK;
}

static bool is_direct(const snug_session *session, const sn_program_weight *w)
{
    return session->backend->host_address && w->view.layout.kind == SN_LAYOUT_PLAIN;
}

static float *new_buffer(const snug_session *session, const entry_list *list, snug_error *err)
{
    uint64_t most = 1;
    for (size_t i = 0; i < list->weights.n; i++) {
        if (!is_direct(session, list->weights.at[i])) {
            most = SN_MAX(most, (uint64_t)sn_shape_n(&list->weights.at[i]->view.desc.shape));
        }
    }
    float *buffer = sn_alloc(SN_TAG_TRAIN, most * sizeof *buffer);
    if (!buffer) {
        sn_fail(err, SNUG_E_MEMORY, "no memory for the largest weight");
    }
    return buffer;
}

static void print_state(char *out, size_t n, const sn_run_state *s)
{
    snprintf(out, n, STATE_FORMAT, s->step, s->epoch, s->next_position, s->epoch_n,
             s->epoch_correct, s->epoch_loss_sum, s->epoch_seconds, s->best, s->best_epoch,
             s->bad_epochs, s->plateau_factor, s->plateau_best, s->plateau_bad, s->seed);
}

static bool scan_state(const char *text, sn_run_state *s)
{
    return sscanf(text, STATE_SCAN, &s->step, &s->epoch, &s->next_position, &s->epoch_n,
                  &s->epoch_correct, &s->epoch_loss_sum, &s->epoch_seconds, &s->best,
                  &s->best_epoch, &s->bad_epochs, &s->plateau_factor, &s->plateau_best,
                  &s->plateau_bad, &s->seed) == 14;
}

snug_status sn_checkpoint_save(snug_session *session, const char *path, const char *description,
                               const sn_run_state *state, snug_error *err)
{
    entry_list list;
    snug_status s = list_new(&list, session, state != NULL, err);
    if (s) {
        return s;
    }
    char text[400] = "";
    sn_safetensors_text metadata[3] = {
        {"format", "snug"}, {"description", description ? description : ""}, {"state", text}};
    if (state) {
        print_state(text, sizeof text, state);
    }
    sn_safetensors_writer *writer = NULL;
    float *buffer = new_buffer(session, &list, err);
    s = buffer ? sn_safetensors_begin(&writer, path, list.entries.at, list.entries.n, metadata,
                                      state ? 3 : 2, err)
               : SNUG_E_MEMORY;
    for (size_t i = 0; i < list.weights.n && !s; i++) {
        const sn_program_weight *w = list.weights.at[i];
        const float *values = buffer;
        if (is_direct(session, w)) {
            values = session->backend->host_address(session->memory, &w->view);
        } else {
            s = session->backend->read(session->memory, &w->view, buffer, err);
        }
        size_t bytes = (size_t)sn_shape_n(&w->view.desc.shape) * sizeof *values;
        s = s ? s : sn_safetensors_write(writer, i, 0, values, bytes, err);
    }
    if (s) {
        sn_safetensors_abort(writer);
    } else {
        s = sn_safetensors_commit(writer, err);
    }
    sn_free(buffer);
    list_free(&list);
    return s;
}

static snug_status load_entry(snug_session *session, const sn_safetensors *file,
                              const sn_safetensors_entry *wanted, const sn_program_weight *w,
                              float *buffer, snug_error *err)
{
    const sn_safetensors_entry *e = sn_safetensors_find(file, wanted->name);
    if (!e) {
        return sn_fail(err, SNUG_E_INPUT, "it has no tensor '%.100s'", wanted->name);
    }
    bool same = e->rank == wanted->rank && sn_str_eq(e->dtype, "F32");
    for (int d = 0; d < e->rank && same; d++) {
        same = e->shape[d] == wanted->shape[d];
    }
    if (!same) {
        sn_shape has = {SN_MIN(e->rank, SN_MAX_RANK), {0}}, needs = {wanted->rank, {0}};
        memcpy(has.dim, e->shape, (size_t)has.rank * sizeof *has.dim);
        memcpy(needs.dim, wanted->shape, (size_t)needs.rank * sizeof *needs.dim);
        char a[64], b[64];
        return sn_fail(err, SNUG_E_INPUT, "tensor '%.80s' is %.8s%s, the model takes F32%s",
                       wanted->name, e->dtype, sn_shape_format(a, sizeof a, &has),
                       sn_shape_format(b, sizeof b, &needs));
    }
    if (is_direct(session, w)) {
        void *at = session->backend->host_address(session->memory, &w->view);
        return sn_safetensors_read(file, e, at, err);
    }
    snug_status s = sn_safetensors_read(file, e, buffer, err);
    return s ? s : session->backend->write(session->memory, &w->view, buffer, err);
}

snug_status sn_checkpoint_load(snug_session *session, const char *path, sn_run_state *state,
                               snug_error *err)
{
    entry_list list;
    sn_safetensors *file = NULL;
    snug_status s = list_new(&list, session, state != NULL, err);
    if (s) {
        return s;
    }
    float *buffer = new_buffer(session, &list, err);
    s = buffer ? sn_safetensors_open(&file, path, err) : SNUG_E_MEMORY;
    if (!s && state) {
        const char *text = sn_safetensors_metadata(file, "state");
        if (!text || !scan_state(text, state)) {
            s = sn_fail(err, SNUG_E_INPUT, "it holds weights but no state of a run to go on from");
        }
    }
    for (size_t i = 0; i < list.weights.n && !s; i++) {
        s = load_entry(session, file, &list.entries.at[i], list.weights.at[i], buffer, err);
    }
    if (s && file) {
        sn_where(err, "%s", path);
    }
    sn_safetensors_free(file);
    sn_free(buffer);
    list_free(&list);
    return s;
}

uint64_t sn_checkpoint_bytes(const snug_session *session, bool with_state)
{
    entry_list list;
    if (list_new(&list, session, with_state, NULL)) {
        return 0;
    }
    uint64_t bytes = sn_safetensors_file_bytes(list.entries.at, list.entries.n, NULL, 0);
    list_free(&list);
    return bytes + 64 * SN_KIB; /* the description and the state */
}

snug_status snug_weights_save(snug_session *session, const char *path, const char *description,
                              snug_error *err)
{
    return sn_checkpoint_save(session, path, description, NULL, err);
}

snug_status snug_weights_load(snug_session *session, const char *path, snug_error *err)
{
    return sn_checkpoint_load(session, path, NULL, err);
}

snug_status snug_weights_description(char **out, const char *path, snug_error *err)
{
    *out = NULL;
    sn_safetensors *file;
    snug_status s = sn_safetensors_open(&file, path, err);
    if (s) {
        return s;
    }
    const char *text = sn_safetensors_metadata(file, "description");
    *out = sn_strdup(SN_TAG_TRAIN, text ? text : "");
    sn_safetensors_free(file);
    return *out ? SNUG_OK : sn_fail(err, SNUG_E_MEMORY, "no memory for a description");
}
