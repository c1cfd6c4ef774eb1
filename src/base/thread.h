/* SPDX-License-Identifier: Apache-2.0
 *
 * thread.h - threads with small stacks, and a bounded queue that moves whole objects between them.
 *
 *     sn_queue *q;  sn_queue_new(&q, 4, err);
 *     producer: if (!sn_queue_push(q, job)) return;     // closed
 *     consumer: while ((job = sn_queue_pop(q))) ...     // NULL: closed and drained
 *
 * Only this queue moves objects between threads: after push the producer does not touch them.
 * Ownership: the queue does not own what it carries; drain it before sn_queue_free.
 * Threads: push, pop and close from any thread; new and free from one.
 */
#ifndef SN_BASE_THREAD_H
#define SN_BASE_THREAD_H

#include <pthread.h>

#include "base/ledger.h"

/* A thread with a stack of 256 KiB (glibc's default of 8 MiB counts against the address space) and
 * all signals blocked but those of its own faults, named for top and gdb (15 characters at most).
 */
snug_status sn_thread_start(pthread_t *out, const char *name, void *(*run)(void *), void *argument,
                            snug_error *err);

typedef struct sn_queue sn_queue;
snug_status sn_queue_new(sn_queue **out, size_t capacity, snug_error *err);
/* Waits while full. false: the queue is closed and item still belongs to the caller. */
bool sn_queue_push(sn_queue *queue, void *item);
/* Waits while empty. NULL: closed and empty. */
void *sn_queue_pop(sn_queue *queue);
/* Without waiting: NULL if empty. */
void *sn_queue_try_pop(sn_queue *queue);
/* Wakes everybody; pushes fail from now on, pops drain what is there. */
void sn_queue_close(sn_queue *queue);
size_t sn_queue_count(sn_queue *queue);
void sn_queue_free(sn_queue *queue);

#endif
