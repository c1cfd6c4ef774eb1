/* SPDX-License-Identifier: Apache-2.0
 *
 * thread.c - threads and the bounded queue.
 *
 * Invariants of a queue, under its mutex: 1. n <= capacity.  2. the items are ring[first],
 * ring[first + 1], ... modulo capacity, oldest first.  3. once closed it stays closed.
 */
#include "base/thread.h"

#include <assert.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

/* A sanitizer's frames are several times as large. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define STACK_BYTES ((size_t)1 << 20)
#else
#define STACK_BYTES ((size_t)256 << 10)
#endif

static size_t stack_bytes(void)
{
    long least = sysconf(_SC_THREAD_STACK_MIN);
    return SN_MAX(STACK_BYTES, least > 0 ? (size_t)least : 0);
}

snug_status sn_thread_start(pthread_t *out, const char *name, void *(*run)(void *), void *argument,
                            snug_error *err)
{
    pthread_attr_t attributes;
    int failed = pthread_attr_init(&attributes);
    if (failed)
        return sn_fail_errno(err, SNUG_E_MEMORY, failed, "cannot start thread %s", name);
    pthread_attr_setstacksize(&attributes, stack_bytes());
    /* The new thread inherits the mask: there is no moment at which a signal could land in it. The
     * faults of its own code stay open, so that a crash handler can report them. */
    sigset_t all, before;
    sigfillset(&all);
    sigdelset(&all, SIGSEGV);
    sigdelset(&all, SIGBUS);
    sigdelset(&all, SIGFPE);
    sigdelset(&all, SIGILL);
    sigdelset(&all, SIGTRAP);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    failed = pthread_create(out, &attributes, run, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    if (failed)
        return sn_fail_errno(err, SNUG_E_MEMORY, failed, "cannot start thread %s", name);
    char shown[16] = {0};
    memcpy(shown, name, strnlen(name, sizeof shown - 1));
    pthread_setname_np(*out, shown);
    return SNUG_OK;
}

struct sn_queue {
    pthread_mutex_t mutex;
    pthread_cond_t not_full, not_empty;
    size_t capacity, first, n;
    bool closed;
    void *ring[];
};

snug_status sn_queue_new(sn_queue **out, size_t capacity, snug_error *err)
{
    *out = NULL;
    if (capacity == 0)
        return sn_fail(err, SNUG_E_USAGE, "a queue needs a capacity of at least 1");
    size_t bytes;
    sn_queue *queue = NULL;
    if (!__builtin_mul_overflow(capacity, sizeof(void *), &bytes) &&
        !__builtin_add_overflow(bytes, sizeof *queue, &bytes))
        queue = sn_alloc(SN_TAG_BASE, bytes);
    if (!queue)
        return sn_fail(err, SNUG_E_MEMORY, "no memory for a queue of %zu", capacity);
    queue->capacity = capacity;
    /* With default attributes these cannot fail on Linux. */
    pthread_mutex_init(&queue->mutex, NULL);
    pthread_cond_init(&queue->not_full, NULL);
    pthread_cond_init(&queue->not_empty, NULL);
    *out = queue;
    return SNUG_OK;
}

bool sn_queue_push(sn_queue *queue, void *item)
{
    assert(item); /* NULL is pop's word for "closed" */
    pthread_mutex_lock(&queue->mutex);
    while (queue->n == queue->capacity && !queue->closed)
        pthread_cond_wait(&queue->not_full, &queue->mutex);
    bool open = !queue->closed;
    if (open) {
        queue->ring[(queue->first + queue->n) % queue->capacity] = item;
        queue->n++;
        assert(queue->n <= queue->capacity); /* 1 */
        pthread_cond_signal(&queue->not_empty);
    }
    pthread_mutex_unlock(&queue->mutex);
    return open;
}

static void *pop(sn_queue *queue, bool wait)
{
    pthread_mutex_lock(&queue->mutex);
    while (wait && queue->n == 0 && !queue->closed)
        pthread_cond_wait(&queue->not_empty, &queue->mutex);
    void *item = NULL;
    if (queue->n) {
        item = queue->ring[queue->first];
        queue->first = (queue->first + 1) % queue->capacity;
        queue->n--;
        pthread_cond_signal(&queue->not_full);
    }
    pthread_mutex_unlock(&queue->mutex);
    return item;
}

void *sn_queue_pop(sn_queue *queue)
{
    return pop(queue, true);
}

void *sn_queue_try_pop(sn_queue *queue)
{
    return pop(queue, false);
}

void sn_queue_close(sn_queue *queue)
{
    pthread_mutex_lock(&queue->mutex);
    queue->closed = true;
    pthread_cond_broadcast(&queue->not_full);
    pthread_cond_broadcast(&queue->not_empty);
    pthread_mutex_unlock(&queue->mutex);
}

size_t sn_queue_count(sn_queue *queue)
{
    pthread_mutex_lock(&queue->mutex);
    size_t n = queue->n;
    pthread_mutex_unlock(&queue->mutex);
    return n;
}

void sn_queue_free(sn_queue *queue)
{
    if (!queue)
        return;
    pthread_cond_destroy(&queue->not_empty);
    pthread_cond_destroy(&queue->not_full);
    pthread_mutex_destroy(&queue->mutex);
    sn_free(queue);
}
