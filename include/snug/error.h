/* SPDX-License-Identifier: Apache-2.0
 *
 * error.h - what a call of libsnug returns.
 *
 * Every function that can fail returns a snug_status and takes a snug_error that the caller owns
 * (NULL allowed). The error is untouched on success. There are no globals and no thread-locals.
 *
 *     snug_error err = SNUG_ERROR_INIT;
 *     if (snug_plan_new(&plan, model, &options, &err))
 *         fprintf(stderr, "error: %s%s%s\n", err.where, err.where[0] ? ": " : "", err.what);
 *
 * Ownership: the caller owns the struct; it points to nothing.  Threads: reentrant.
 */
#ifndef SNUG_ERROR_H
#define SNUG_ERROR_H

#include <stdint.h>

#if defined(__GNUC__)
#define SNUG_API __attribute__((visibility("default")))
#define SNUG_PRINTF(f, a) __attribute__((format(printf, f, a)))
#else
#define SNUG_API
#define SNUG_PRINTF(f, a)
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* X(name, exit code of the command, meaning). One list makes the enum, the texts, the exit codes
 * and the reference page. */
#define SNUG_STATUS_LIST(X)                                                                        \
    X(SNUG_OK, 0, "done")                                                                          \
    X(SNUG_E_MEMORY, 1, "the host has no memory left for the library's own bookkeeping")           \
    X(SNUG_E_IO, 1, "a file could not be read or written")                                         \
    X(SNUG_E_DEVICE, 1, "the device failed")                                                       \
    X(SNUG_E_NUMERIC, 1, "the loss or a tensor became NaN or infinite")                            \
    X(SNUG_E_INTERNAL, 1, "an invariant of the library was broken: a defect of snug, report it")   \
    X(SNUG_E_USAGE, 2, "an argument or option is wrong")                                           \
    X(SNUG_E_DOES_NOT_FIT, 3, "the plan does not fit the budget; nothing was started")             \
    X(SNUG_E_INPUT, 4, "a model, image, data set or log cannot be read")                           \
    X(SNUG_E_UNSUPPORTED, 4, "the input is well formed but asks for something not supported")      \
    X(SNUG_E_NOT_FOUND, 4, "a file, model or name does not exist")                                 \
    X(SNUG_E_INTERRUPTED, 130, "stopped on request; what was to be saved is saved")

typedef enum snug_status {
#define SNUG_STATUS_ENUM(name, exit_code, meaning) name,
    SNUG_STATUS_LIST(SNUG_STATUS_ENUM)
#undef SNUG_STATUS_ENUM
} snug_status;

typedef struct snug_error {
    snug_status code; /* as returned */
    char what[224];   /* one complete line, with the numbers */
    char where[96];   /* "model.keras: layer 'conv2d_3'"; empty if the message says it all */
    uint64_t pos;     /* byte or line in the input, 0 if none */
    uint64_t need;    /* SNUG_E_DOES_NOT_FIT: bytes needed */
    uint64_t have;    /* SNUG_E_DOES_NOT_FIT: bytes in the budget */
} snug_error;

#define SNUG_ERROR_INIT                                                                            \
    {                                                                                              \
        SNUG_OK, "", "", 0, 0, 0                                                                   \
    }

/* "SNUG_E_INPUT"; "?" for a value that is no status. Static storage. */
SNUG_API const char *snug_status_name(snug_status status);
/* The meaning in words. Static storage. */
SNUG_API const char *snug_status_text(snug_status status);
/* The exit code that the command uses for this status. */
SNUG_API int snug_status_exit_code(snug_status status);

#ifdef __cplusplus
}
#endif
#endif
