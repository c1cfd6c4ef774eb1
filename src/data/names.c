/* SPDX-License-Identifier: Apache-2.0
 *
 * The list in two files.
 */
#include "data/names.h"

#include <unistd.h>

#include "base/io.h"

enum { RECORDS_HELD = 2048, TEXT_HELD = 64 * 1024 };

snug_status sn_names_init(sn_names *out, snug_error *err)
{
    *out = (sn_names){.records_fd = -1, .text_fd = -1};
    snug_status status = sn_io_temporary(&out->records_fd, err);
    if (!status)
        status = sn_io_temporary(&out->text_fd, err);
    if (!status) {
        out->records = sn_alloc_array(SN_TAG_DATA, RECORDS_HELD, sizeof *out->records);
        out->text = sn_alloc(SN_TAG_DATA, TEXT_HELD);
        if (!out->records || !out->text)
            status = sn_fail(err, SNUG_E_MEMORY, "no memory to list files");
    }
    if (status)
        sn_names_deinit(out);
    return status;
}

static snug_status flush(sn_names *names, snug_error *err)
{
    uint64_t first = names->n - names->n_records_held;
    snug_status status =
        sn_io_pwrite(names->text_fd, names->text, names->n_text_held,
                     names->n_text - names->n_text_held, "the temporary list of files", err);

    if (!status)
        status = sn_io_pwrite(names->records_fd, names->records,
                              names->n_records_held * sizeof *names->records,
                              first * sizeof *names->records, "the temporary list of files", err);
    names->n_records_held = names->n_text_held = 0;
    return status;
}

snug_status sn_names_add(sn_names *names, const char *name, const sn_name_record *record,
                         snug_error *err)
{
    size_t length = strlen(name);

    if (length >= SN_NAME_MAX)
        return sn_fail(err, SNUG_E_INPUT, "a path of %zu bytes is longer than %d", length,
                       SN_NAME_MAX - 1);
    if (names->n_records_held == RECORDS_HELD || names->n_text_held + length > TEXT_HELD) {
        snug_status status = flush(names, err);
        if (status)
            return status;
    }
    sn_name_record *r = &names->records[names->n_records_held++];
    *r = *record;
    r->offset = names->n_text;
    r->length = (uint32_t)length;
    memcpy(names->text + names->n_text_held, name, length);
    names->n_text_held += length;
    names->n_text += length;
    names->n++;
    return SNUG_OK;
}

snug_status sn_names_seal(sn_names *names, snug_error *err)
{
    snug_status status = flush(names, err);

    sn_free(names->records);
    sn_free(names->text);
    names->records = NULL;
    names->text = NULL;
    return status;
}

snug_status sn_names_at(const sn_names *names, uint64_t i, sn_name_record *record, char *name,
                        size_t n, snug_error *err)
{
    snug_status status = sn_io_pread(names->records_fd, record, sizeof *record, i * sizeof *record,
                                     "the temporary list of files", err);

    if (status || !name)
        return status;
    if (record->length >= n)
        return sn_fail(err, SNUG_E_INTERNAL, "a name of %" PRIu32 " bytes does not fit",
                       record->length);
    name[record->length] = '\0';
    return sn_io_pread(names->text_fd, name, record->length, record->offset,
                       "the temporary list of files", err);
}

void sn_names_deinit(sn_names *names)
{
    sn_free(names->records);
    sn_free(names->text);
    if (names->records_fd > 0)
        close(names->records_fd);
    if (names->text_fd > 0)
        close(names->text_fd);
    *names = (sn_names){.records_fd = -1, .text_fd = -1};
}
