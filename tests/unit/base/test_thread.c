/* SPDX-License-Identifier: Apache-2.0
 *
 * test_thread.c - threads as asked for; the bounded queue with many at both ends.
 */
#include "support/support.h"

#include "base/thread.h"

#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

typedef struct seen {
    char name[32];
    size_t stack_bytes;
    sigset_t blocked;
    int argument;
    pthread_barrier_t named;
} seen;

static void *look(void *argument)
{
    seen *s = argument;
    pthread_barrier_wait(&s->named);
    pthread_getname_np(pthread_self(), s->name, sizeof s->name);
    pthread_attr_t attributes;
    pthread_getattr_np(pthread_self(), &attributes);
    pthread_attr_getstacksize(&attributes, &s->stack_bytes);
    pthread_attr_destroy(&attributes);
    pthread_sigmask(SIG_SETMASK, NULL, &s->blocked);
    s->argument = 7;
    return s;
}

static void a_thread_is_as_asked_for(void **state)
{
    snug_error err = SNUG_ERROR_INIT;
    seen s = {.argument = 0};
    sigset_t before, after;
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    pthread_barrier_init(&s.named, NULL, 2);
    pthread_t thread;
    assert_ok(sn_thread_start(&thread, "snug-decode-0123456", look, &s, &err), &err);
    pthread_barrier_wait(&s.named);
    void *result;
    assert_int_equal(pthread_join(thread, &result), 0);
    pthread_barrier_destroy(&s.named);
    assert_ptr_equal(result, &s);
    assert_int_equal(s.argument, 7);
    assert_string_equal(s.name, "snug-decode-012");
    assert_true(s.stack_bytes >= 256 * 1024 && s.stack_bytes <= 2 * 1024 * 1024);
    static const int blocked[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGUSR1, SIGCHLD, SIGALRM};
    for (size_t i = 0; i < SN_LEN(blocked); i++)
        assert_int_equal(sigismember(&s.blocked, blocked[i]), 1);
    assert_int_equal(sigismember(&s.blocked, SIGSEGV), 0);
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    for (int i = 1; i < 32; i++)
        assert_int_equal(sigismember(&before, i), sigismember(&after, i));
}

static void a_queue_keeps_order_and_count(void **state)
{
    snug_error err = SNUG_ERROR_INIT;
    sn_queue *q;
    assert_ok(sn_queue_new(&q, 3, &err), &err);
    int items[7];
    assert_null(sn_queue_try_pop(q));
    for (size_t turn = 0; turn < 5; turn++) {
        for (size_t i = 0; i < 3; i++)
            assert_true(sn_queue_push(q, &items[i]));
        assert_int_equal(sn_queue_count(q), 3);
        assert_ptr_equal(sn_queue_pop(q), &items[0]);
        assert_true(sn_queue_push(q, &items[3]));
        for (size_t i = 1; i < 4; i++)
            assert_ptr_equal(i & 1 ? sn_queue_pop(q) : sn_queue_try_pop(q), &items[i]);
        assert_int_equal(sn_queue_count(q), 0);
    }
    sn_queue_free(q);
    sn_queue_free(NULL);
    assert_no_leak();
}

static void closing_refuses_pushes_and_lets_pops_drain(void **state)
{
    snug_error err = SNUG_ERROR_INIT;
    sn_queue *q;
    int item;
    assert_ok(sn_queue_new(&q, 2, &err), &err);
    assert_true(sn_queue_push(q, &item));
    sn_queue_close(q);
    sn_queue_close(q);
    assert_false(sn_queue_push(q, &item));
    assert_ptr_equal(sn_queue_pop(q), &item);
    assert_null(sn_queue_pop(q));
    assert_null(sn_queue_try_pop(q));
    sn_queue_free(q);
    assert_no_leak();
}

static void a_queue_that_cannot_be(void **state)
{
    snug_error err = SNUG_ERROR_INIT;
    sn_queue *q = (sn_queue *)&err;
    assert_fails(sn_queue_new(&q, 0, &err), SNUG_E_USAGE, &err);
    assert_null(q);
    assert_fails(sn_queue_new(&q, SIZE_MAX, &err), SNUG_E_MEMORY, &err);
    sn_ledger_fail_nth(1);
    assert_fails(sn_queue_new(&q, 4, &err), SNUG_E_MEMORY, &err);
    assert_null(q);
    assert_no_leak();
}

enum { PRODUCERS = 3, CONSUMERS = 3, EACH = 2000 };

typedef struct work {
    sn_queue *queue;
    unsigned char *delivered; /* plain bytes: the queue alone orders the accesses */
    size_t first;
    atomic_size_t *most;
} work;

static void *produce(void *argument)
{
    work *w = argument;
    for (size_t i = 0; i < EACH; i++) {
        w->delivered[w->first + i] = 1;
        if (!sn_queue_push(w->queue, &w->delivered[w->first + i]))
            return NULL;
    }
    return w;
}

static void *consume(void *argument)
{
    work *w = argument;
    unsigned char *item;
    while ((item = sn_queue_pop(w->queue))) {
        ++*item;
        size_t n = sn_queue_count(w->queue), most = atomic_load(w->most);
        while (n > most && !atomic_compare_exchange_weak(w->most, &most, n))
            ;
    }
    return w;
}

static void many_at_both_ends_lose_and_repeat_nothing(void **state)
{
    snug_error err = SNUG_ERROR_INIT;
    unsigned char *delivered = sn_alloc(SN_TAG_TEST, PRODUCERS * EACH);
    atomic_size_t most = 0;
    sn_queue *q;
    assert_ok(sn_queue_new(&q, 4, &err), &err);
    pthread_t producers[PRODUCERS], consumers[CONSUMERS];
    work in[PRODUCERS], out = {.queue = q, .most = &most};
    for (size_t i = 0; i < CONSUMERS; i++)
        assert_ok(sn_thread_start(&consumers[i], "consumer", consume, &out, &err), &err);
    for (size_t i = 0; i < PRODUCERS; i++) {
        in[i] = (work){.queue = q, .delivered = delivered, .first = i * EACH};
        assert_ok(sn_thread_start(&producers[i], "producer", produce, &in[i], &err), &err);
    }
    for (size_t i = 0; i < PRODUCERS; i++) {
        void *result;
        pthread_join(producers[i], &result);
        assert_non_null(result);
    }
    sn_queue_close(q);
    for (size_t i = 0; i < CONSUMERS; i++)
        pthread_join(consumers[i], NULL);
    for (size_t i = 0; i < PRODUCERS * EACH; i++)
        assert_int_equal(delivered[i], 2);
    assert_true(atomic_load(&most) <= 4);
    assert_int_equal(sn_queue_count(q), 0);
    sn_queue_free(q);
    sn_free(delivered);
    assert_no_leak();
}

static void *push_until_closed(void *argument)
{
    static int item;
    size_t n = 0;
    while (sn_queue_push(argument, &item))
        n++;
    return (void *)(uintptr_t)(n + 1);
}

static void *pop_once(void *argument)
{
    return sn_queue_pop(argument);
}

static void closing_wakes_everybody_who_waits(void **state)
{
    snug_error err = SNUG_ERROR_INIT;
    sn_queue *full, *empty;
    pthread_t pushers[2], poppers[2];
    assert_ok(sn_queue_new(&full, 2, &err), &err);
    assert_ok(sn_queue_new(&empty, 2, &err), &err);
    for (size_t i = 0; i < 2; i++) {
        assert_ok(sn_thread_start(&pushers[i], "push", push_until_closed, full, &err), &err);
        assert_ok(sn_thread_start(&poppers[i], "pop", pop_once, empty, &err), &err);
    }
    while (sn_queue_count(full) < 2)
        usleep(100);
    sn_queue_close(full);
    sn_queue_close(empty);
    uintptr_t pushed = 0;
    for (size_t i = 0; i < 2; i++) {
        void *result;
        pthread_join(pushers[i], &result);
        pushed += (uintptr_t)result - 1;
        pthread_join(poppers[i], &result);
        assert_null(result);
    }
    assert_int_equal(pushed, 2);
    while (sn_queue_pop(full))
        ;
    sn_queue_free(full);
    sn_queue_free(empty);
    assert_no_leak();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thread_is_as_asked_for),
        cmocka_unit_test(a_queue_keeps_order_and_count),
        cmocka_unit_test(closing_refuses_pushes_and_lets_pops_drain),
        cmocka_unit_test(a_queue_that_cannot_be),
        cmocka_unit_test(many_at_both_ends_lose_and_repeat_nothing),
        cmocka_unit_test(closing_wakes_everybody_who_waits),
    };
    return cmocka_run_group_tests_name("base/thread", tests, NULL, NULL);
}
