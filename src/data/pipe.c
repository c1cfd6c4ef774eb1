/* SPDX-License-Identifier: Apache-2.0
 *
 * The ring.
 *
 * Slots have sequence numbers; slot s lives in ring[s % n_slots]. [taken, opened) are being filled,
 * taken - 1 is with the consumer while `lent`.
 *
 * Invariants, all under the lock:
 *  1. opened - (taken - lent) <= n_slots.
 *  2. Epoch positions are assigned in rising order along (slot, place); a slot gets more of them
 *     later only while it is the newest, so the order holds.
 *  3. 0 <= n_done <= n_claimed <= n_assigned <= capacity; places [n_claimed, n_assigned) are FREE.
 *  4. A worker touches a place's memory from its claim to its done, without the lock; the consumer
 *     touches a place that is done.
 */
#include "data/pipe.h"

#include <assert.h>

#include "base/host.h"
#include "base/thread.h"
#include "data/augment.h"
#include "data/resize.h"

enum { WHY = 160, MAX_AUTO_THREADS = 32, STACK_BYTES = 256 * 1024 + 16 * 1024 };
enum { WINDOW = 8 }; /* batches between two looks at the number of threads */

enum place_state { FREE, CLAIMED, GOOD, BAD, TAKEN };

typedef struct slot {
    float *x;
    int32_t *classes;
    float *y;
    uint64_t *positions;
    uint64_t *at;   /* [capacity] epoch position */
    uint8_t *state; /* [capacity] */
    char *why;      /* [capacity][WHY], NULL if samples cannot be bad */
    int64_t n_assigned, n_claimed, n_done;
} slot;

/* Places [first, first + n) of one slot. */
typedef struct job {
    slot *slot;
    int64_t first, n;
} job;

typedef struct worker {
    sn_pipe *pipe;
    int id;
    pthread_t thread;
    bool started;
    sn_scratch scratch;
    float *tmp; /* one sample, for the augmentation; NULL if there is none */
} worker;

struct sn_pipe {
    snug_data *data;
    int64_t capacity, n_targets;
    uint64_t sample; /* floats */
    int64_t at_once; /* places that a worker claims together: many if samples are small */
    int n_slots;
    slot *ring;
    void *own_memory;
    void *tables; /* at, state and why of all slots */
    sn_pool pool;
    worker *workers;
    int n_workers, n_threads; /* n_threads 0: the caller's thread does it all with workers[0] */

    pthread_mutex_t lock;
    pthread_cond_t work, done;
    bool running; /* an epoch is under way */
    bool quit;
    bool stop; /* atomic: decoding under way is not wanted any more */
    snug_subset subset;
    uint64_t epoch, n, next_position, taken, opened;
    bool lent;
    int n_busy, n_active;
    bool automatic;
    snug_error fatal;
    uint64_t n_good, n_bad; /* of this epoch, in order */

    double started, waited, last_return;
    double window_waited, window_busy, window_began;
    int window_batches;
};

/* --- sizes -------------------------------------------------------------------------------------*/

static uint64_t aligned(uint64_t bytes)
{
    return sn_align_up(bytes, 64);
}

static uint64_t sample_floats(const snug_data *data)
{
    const int64_t *s = data->set.shape;

    return data->set.rank == 3 ? (uint64_t)s[0] * (uint64_t)s[1] * (uint64_t)s[2] : (uint64_t)s[0];
}

uint64_t snug_data_slot_bytes(const snug_data *data, int64_t batch)
{
    uint64_t n = (uint64_t)batch, x;

    if (batch < 1 || batch > INT64_C(1) << 31 || sn_mul_u64(&x, sample_floats(data) * 4, n) ||
        x > (uint64_t)1 << 46)
        return 0;
    return aligned(x) + aligned(n * sizeof(int32_t)) +
           aligned(n * (uint64_t)data->set.n_targets * sizeof(float)) +
           aligned(n * sizeof(uint64_t));
}

static int n_threads_of(const snug_pipe_options *o)
{
    if (o->data_threads == 1)
        return 0;
    if (o->data_threads > 1)
        return o->data_threads;
    return SN_MIN(sn_host_n_cpus(), (int)MAX_AUTO_THREADS);
}

int snug_data_n_slots(const snug_pipe_options *options)
{
    return options->n_slots ? options->n_slots : n_threads_of(options) ? 3 : 1;
}

static uint64_t table_bytes(const snug_data *data, int64_t capacity)
{
    uint64_t n = (uint64_t)capacity;

    return aligned(n * sizeof(uint64_t)) + aligned(n) + (data->set.can_fail ? aligned(n * WHY) : 0);
}

static uint64_t worker_bytes(const snug_data *data)
{
    uint64_t bytes = sizeof(worker) + data->set.scratch_bytes + SN_SCRATCH_ALIGN;

    if (sn_augment_any(&data->options.augment))
        bytes += sample_floats(data) * sizeof(float);
    return bytes;
}

uint64_t snug_data_host_bytes(const snug_data *data, const snug_pipe_options *options)
{
    snug_pipe_options o = *options;
    int64_t batch = o.batch ? o.batch : 32;
    uint64_t threads = (uint64_t)n_threads_of(&o), slots = (uint64_t)snug_data_n_slots(&o);
    uint64_t bytes = sizeof(snug_data) + sizeof(sn_pipe) + data->set.held_bytes;

    bytes += slots * (sizeof(slot) + table_bytes(data, batch));
    if (!o.memory)
        bytes += slots * snug_data_slot_bytes(data, batch) + 64;
    bytes += SN_MAX(threads, 1) * worker_bytes(data) + threads * STACK_BYTES;
    if (data->set.needs_pool)
        bytes +=
            sn_align_up((data->options.decode_bytes + SN_POOL_BLOCKS - 1) / SN_POOL_BLOCKS, 4096) *
            SN_POOL_BLOCKS;
    return bytes;
}

/* --- one sample --------------------------------------------------------------------------------*/

static bool skippable(const sn_pipe *p, snug_status status)
{
    return p->data->set.can_fail && (status == SNUG_E_INPUT || status == SNUG_E_UNSUPPORTED ||
                                     status == SNUG_E_NOT_FOUND || status == SNUG_E_IO);
}

static snug_status load_sample(sn_pipe *p, worker *w, slot *s, int64_t place, snug_error *err)
{
    const snug_data *data = p->data;
    const sn_set *set = &data->set;
    uint64_t i = sn_data_index(data, p->subset, p->epoch, s->at[place]);
    float *x = s->x + (uint64_t)place * p->sample;
    float *y = p->n_targets ? s->y + place * p->n_targets : NULL;
    bool change = w->tmp && p->subset == SNUG_SUBSET_TRAIN && set->rank == 3;
    snug_status status = set->ops->load(set->self, &w->scratch, i,
                                        change ? SNUG_SCALE_0_255 : set->scale, x, &p->stop, err);

    s->positions[place] = i;
    if (status)
        return status;
    if (change) {
        int channels = (int)set->shape[2];
        sn_augment_apply(&data->options.augment, x, set->shape[0], set->shape[1], channels,
                         set->top, data->options.seed, p->epoch, i, w->tmp);
        sn_scale_apply(x, set->shape[0] * set->shape[1], channels, set->scale);
    }
    return set->ops->label(set->self, i, &s->classes[place], y, err);
}

/* --- claiming (under the lock) -----------------------------------------------------------------*/

static bool assign(sn_pipe *p, slot *s, int64_t n)
{
    n = (int64_t)SN_MIN((uint64_t)n, p->n - p->next_position);
    for (int64_t i = 0; i < n; i++) {
        s->at[s->n_assigned] = p->next_position++; /* 2 */
        s->state[s->n_assigned++] = FREE;
    }
    return n > 0;
}

static bool open_slot(sn_pipe *p)
{
    if (p->next_position >= p->n ||
        p->opened - (p->taken - (uint64_t)p->lent) >= (uint64_t)p->n_slots) /* 1 */
        return false;
    slot *s = &p->ring[p->opened % (uint64_t)p->n_slots];
    s->n_assigned = s->n_claimed = s->n_done = 0;
    p->opened++;
    return assign(p, s, p->capacity);
}

static bool claim_in(const sn_pipe *p, slot *s, job *out)
{
    if (s->n_claimed == s->n_assigned)
        return false;
    *out = (job){s, s->n_claimed, SN_MIN(p->at_once, s->n_assigned - s->n_claimed)};
    memset(s->state + s->n_claimed, CLAIMED, (size_t)out->n);
    s->n_claimed += out->n;
    return true;
}

static bool claim(sn_pipe *p, job *out)
{
    if (!p->running || p->fatal.code)
        return false;
    for (uint64_t s = p->taken; s < p->opened; s++)
        if (claim_in(p, &p->ring[s % (uint64_t)p->n_slots], out))
            return true;
    return open_slot(p) && claim_in(p, &p->ring[(p->opened - 1) % (uint64_t)p->n_slots], out);
}

/* A failed sample is bad, or the end of the epoch. Under the lock. */
static void note_failure(sn_pipe *p, slot *s, int64_t place, snug_status status,
                         const snug_error *err)
{
    if (skippable(p, status)) {
        snprintf(s->why + place * WHY, WHY, "%.*s", WHY - 1, err->what);
    } else if (!p->fatal.code) {
        p->fatal = *err;
        p->fatal.code = status;
    }
}

/* Called without the lock by whoever claimed; returns with it. */
static void run_job(sn_pipe *p, worker *w, const job *j)
{
    snug_error err = SNUG_ERROR_INIT;
    snug_status status = SNUG_OK;
    double began = sn_now();
    int64_t n = 0;

    while (n < j->n && !status)
        status = load_sample(p, w, j->slot, j->first + n++, &err);
    double took = sn_now() - began;

    pthread_mutex_lock(&p->lock);
    p->window_busy += took;
    memset(j->slot->state + j->first, GOOD, (size_t)j->n);
    if (status) {
        j->slot->state[j->first + n - 1] = BAD;
        note_failure(p, j->slot, j->first + n - 1, status, &err);
    }
    j->slot->n_done += j->n;
    assert(j->slot->n_done <= j->slot->n_claimed); /* 3 */
    /* The consumer waits for whole slots, and for single places where some may be bad. */
    if (j->slot->n_done == j->slot->n_assigned || p->data->set.can_fail || status)
        pthread_cond_broadcast(&p->done);
}

static void *worker_run(void *argument)
{
    worker *w = argument;
    sn_pipe *p = w->pipe;
    job j;

    pthread_mutex_lock(&p->lock);
    while (!p->quit) {
        if (w->id >= p->n_active || !claim(p, &j)) {
            pthread_cond_wait(&p->work, &p->lock);
            continue;
        }
        p->n_busy++;
        pthread_mutex_unlock(&p->lock);
        run_job(p, w, &j);
        if (--p->n_busy == 0)
            pthread_cond_broadcast(&p->done);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* --- the consumer (under the lock) -------------------------------------------------------------*/

/* Until something has happened; without threads it is done here. */
static void wait_for_work(sn_pipe *p)
{
    job j;

    if (p->n_threads) {
        pthread_cond_wait(&p->done, &p->lock);
        return;
    }
    if (!claim(p, &j))
        return;
    pthread_mutex_unlock(&p->lock);
    run_job(p, &p->workers[0], &j);
}

static snug_status too_many_bad(sn_pipe *p, bool ended, snug_error *err)
{
    uint64_t seen = p->n_good + p->n_bad;
    char file[160] = "", why[SN_DATA_WHY] = "", shown[96];

    if (p->data->options.lenient || p->n_bad * 10 <= seen || (!ended && seen < 100))
        return SNUG_OK;
    snug_data_skipped(p->data, 0, file, sizeof file, why, 64, NULL);
    return sn_fail(err, SNUG_E_INPUT,
                   "%" PRIu64 " of %" PRIu64 " files cannot be read, more than a tenth; the first: "
                   "%.80s: %s",
                   p->n_bad, seen, sn_str_printable(shown, sizeof shown, file), why);
}

/* A bad place met in order. */
static snug_status meet_bad(sn_pipe *p, const slot *s, int64_t place, snug_error *err)
{
    const char *why = s->why + place * WHY;
    bool first;
    char file[512] = "", shown[96];

    p->n_bad++;
    snug_status status = sn_data_skip(p->data, s->positions[place], why, &first, err);
    if (status)
        return status;
    if (p->data->options.bad_files == SNUG_BAD_FILES_STOP) {
        snug_data_name(p->data, s->positions[place], file, sizeof file, NULL);
        return sn_fail(err, SNUG_E_INPUT, "%s: %.120s", sn_str_printable(shown, sizeof shown, file),
                       why);
    }
    return too_many_bad(p, false, err);
}

/* Copies or moves a sample from one place to another. */
static void move_sample(const sn_pipe *p, slot *to, int64_t i, const slot *from, int64_t j)
{
    memcpy(to->x + (uint64_t)i * p->sample, from->x + (uint64_t)j * p->sample,
           p->sample * sizeof(float));
    to->classes[i] = from->classes[j];
    for (int64_t k = 0; k < p->n_targets; k++)
        to->y[i * p->n_targets + k] = from->y[j * p->n_targets + k];
    to->positions[i] = from->positions[j];
    to->at[i] = from->at[j];
    to->state[i] = GOOD;
}

/* Moves the good samples of a slot that is done to its front; [0, checked) are known to be good. */
static snug_status compact(sn_pipe *p, slot *s, int64_t checked, snug_error *err)
{
    int64_t n = checked;

    for (int64_t i = checked; i < s->n_assigned; i++) {
        if (s->state[i] == BAD) {
            snug_status status = meet_bad(p, s, i, err);
            if (status)
                return status;
        } else if (s->state[i] == GOOD) {
            p->n_good++;
            if (i != n)
                move_sample(p, s, n, s, i);
            n++;
        }
    }
    s->n_assigned = s->n_claimed = s->n_done = n;
    return SNUG_OK;
}

/* Takes the first samples of the slots behind until s is full or they are used up. */
static snug_status pull(sn_pipe *p, slot *s, snug_error *err)
{
    for (uint64_t q = p->taken + 1; q < p->opened && s->n_assigned < p->capacity; q++) {
        slot *from = &p->ring[q % (uint64_t)p->n_slots];
        for (int64_t i = 0; i < from->n_assigned && s->n_assigned < p->capacity; i++) {
            if (from->state[i] == TAKEN)
                continue;
            while (from->state[i] < GOOD && !p->fatal.code)
                wait_for_work(p);
            if (p->fatal.code)
                return SNUG_OK; /* reported by the caller */
            bool bad = from->state[i] == BAD;
            from->state[i] = TAKEN;
            if (bad) {
                snug_status status = meet_bad(p, from, i, err);
                if (status)
                    return status;
                continue;
            }
            p->n_good++;
            move_sample(p, s, s->n_assigned, from, i);
            s->n_claimed = s->n_done = ++s->n_assigned;
        }
    }
    return SNUG_OK;
}

static snug_status report_fatal(sn_pipe *p, snug_error *err)
{
    if (err)
        *err = p->fatal;
    return p->fatal.code;
}

/* Makes slot `taken` complete: full, or all that is left. */
static snug_status complete(sn_pipe *p, slot *s, snug_error *err)
{
    int64_t checked = 0;

    for (;;) {
        while (s->n_done < s->n_assigned && !p->fatal.code)
            wait_for_work(p);
        if (p->fatal.code)
            return report_fatal(p, err);
        snug_status status = compact(p, s, checked, err);
        if (!status && s->n_assigned < p->capacity)
            status = pull(p, s, err);
        if (status)
            return status;
        if (p->fatal.code)
            return report_fatal(p, err);
        checked = s->n_assigned;
        if (checked == p->capacity)
            return SNUG_OK;
        /* A slot that was opened meanwhile is pulled from in the next round. */
        if (p->opened > p->taken + 1) {
            bool left = false;
            for (uint64_t q = p->taken + 1; q < p->opened; q++) {
                const slot *from = &p->ring[q % (uint64_t)p->n_slots];
                for (int64_t i = 0; i < from->n_assigned; i++)
                    left = left || from->state[i] != TAKEN;
            }
            if (left)
                continue;
            p->opened = p->taken + 1; /* they are empty: this slot is the newest again */
        }
        if (!assign(p, s, p->capacity - checked))
            return SNUG_OK;
        pthread_cond_broadcast(&p->work);
    }
}

/* --- how many threads --------------------------------------------------------------------------*/

/* More while the consumer waits for more than a twentieth of its time; fewer when the work of a
 * window would have fitted into one thread less with a quarter to spare. */
static void adjust_threads(sn_pipe *p, double now)
{
    double span = now - p->window_began;

    if (!p->automatic || ++p->window_batches < WINDOW || span <= 0)
        return;
    if (p->window_waited > span * 0.05 && p->n_active < p->n_threads)
        p->n_active++;
    else if (p->window_waited < span * 0.005 && p->n_active > 1 &&
             p->window_busy * 1.25 < span * (p->n_active - 1))
        p->n_active--;
    p->window_batches = 0;
    p->window_waited = p->window_busy = 0;
    p->window_began = now;
    pthread_cond_broadcast(&p->work);
}

/* --- next and reset ----------------------------------------------------------------------------*/

static void hand_over(sn_pipe *p, const slot *s, snug_slot *out)
{
    size_t n = (size_t)s->n_assigned;

    if (!out->x) {
        out->x = s->x;
        out->classes = p->data->set.n_classes ? s->classes : NULL;
        out->y = p->n_targets ? s->y : NULL;
        out->positions = s->positions;
        out->capacity = p->capacity;
        out->sample_size = (int64_t)p->sample;
        out->target_size = p->n_targets;
    } else {
        memcpy(out->x, s->x, n * p->sample * sizeof(float));
        if (out->classes)
            memcpy(out->classes, s->classes, n * sizeof(int32_t));
        if (out->y && p->n_targets)
            memcpy(out->y, s->y, n * (size_t)p->n_targets * sizeof(float));
        if (out->positions)
            memcpy(out->positions, s->positions, n * sizeof(uint64_t));
    }
    out->n = s->n_assigned;
    out->next_position = n ? s->at[n - 1] + 1 : p->n;
}

/* Whether a caller's own memory has room for our batches. */
static snug_status check_room(const sn_pipe *p, const snug_slot *out, snug_error *err)
{
    if (out->capacity < p->capacity)
        return sn_fail(err, SNUG_E_USAGE, "a slot of %" PRId64 " samples for batches of %" PRId64,
                       out->capacity, p->capacity);
    return sn_data_check_sizes((int64_t)p->sample, out->sample_size, p->n_targets,
                               out->y ? out->target_size : 0, err);
}

/* Whether out's memory is one of our slots, lent before. */
static bool is_ours(const sn_pipe *p, const snug_slot *out)
{
    for (int i = 0; i < p->n_slots; i++)
        if (out->x == p->ring[i].x)
            return true;
    return false;
}

static snug_status next_locked(sn_pipe *p, snug_slot *out, snug_error *err)
{
    if (p->lent) {
        p->lent = false;
        pthread_cond_broadcast(&p->work);
    }
    if (p->fatal.code)
        return report_fatal(p, err);
    out->n = 0;
    out->next_position = p->n;
    if (p->opened == p->taken && !open_slot(p))
        return too_many_bad(p, true, err);
    slot *s = &p->ring[p->taken % (uint64_t)p->n_slots];
    if (p->n_threads)
        pthread_cond_broadcast(&p->work);
    snug_status status = complete(p, s, err);
    if (status)
        return status;
    p->taken++;
    if (s->n_assigned == 0)
        return too_many_bad(p, true, err);
    p->lent = true;
    hand_over(p, s, out);
    return SNUG_OK;
}

snug_status sn_pipe_next(sn_pipe *p, snug_subset subset, snug_slot *out, snug_error *err)
{
    if (!p)
        return sn_fail(err, SNUG_E_USAGE, "the pipeline is stopped: snug_data_start comes first");
    pthread_mutex_lock(&p->lock);
    bool lent = out->x && is_ours(p, out);
    snug_status status = out->x && !lent ? check_room(p, out, err) : SNUG_OK;
    if (!p->running || p->subset != subset) {
        status = sn_fail(err, SNUG_E_USAGE,
                         "reset comes before next: no epoch of this subset is "
                         "under way");
    } else if (!status) {
        if (lent)
            out->x = NULL;
        double began = sn_now();
        status = next_locked(p, out, err);
        double now = sn_now();
        p->waited += now - began;
        p->last_return = now;
        p->window_waited += now - began;
        adjust_threads(p, now);
        if (status)
            p->running = false;
    }
    pthread_mutex_unlock(&p->lock);
    return status;
}

/* Ends what is under way; under the lock. */
static void quiesce(sn_pipe *p)
{
    p->running = false;
    __atomic_store_n(&p->stop, true, __ATOMIC_RELAXED);
    while (p->n_busy)
        pthread_cond_wait(&p->done, &p->lock);
    __atomic_store_n(&p->stop, false, __ATOMIC_RELAXED);
}

snug_status sn_pipe_reset(sn_pipe *p, snug_subset subset, uint64_t epoch, uint64_t first,
                          snug_error *err)
{
    if (!p)
        return sn_fail(err, SNUG_E_USAGE, "the pipeline is stopped: snug_data_start comes first");
    uint64_t n = snug_data_n(p->data, subset);
    if (first > n)
        return sn_fail(err, SNUG_E_USAGE, "position %" PRIu64 " is beyond the %" PRIu64 " samples",
                       first, n);
    pthread_mutex_lock(&p->lock);
    quiesce(p);
    p->subset = subset;
    p->epoch = epoch;
    p->n = n;
    p->next_position = first;
    p->taken = p->opened = 0;
    p->lent = false;
    p->fatal = (snug_error)SNUG_ERROR_INIT;
    p->n_good = p->n_bad = 0;
    p->started = p->last_return = p->window_began = sn_now();
    p->waited = p->window_waited = p->window_busy = 0;
    p->window_batches = 0;
    p->running = true;
    pthread_cond_broadcast(&p->work);
    pthread_mutex_unlock(&p->lock);
    return SNUG_OK;
}

double sn_pipe_wait_fraction(sn_pipe *p)
{
    pthread_mutex_lock(&p->lock);
    double span = p->last_return - p->started, waited = p->waited;
    pthread_mutex_unlock(&p->lock);
    return span > 0 ? SN_MIN(waited / span, 1.0) : 0;
}

int sn_pipe_threads(sn_pipe *p)
{
    pthread_mutex_lock(&p->lock);
    int n = p->n_threads ? p->n_active : 0;
    pthread_mutex_unlock(&p->lock);
    return n;
}

/* --- making and ending -------------------------------------------------------------------------*/

static snug_status no_memory(snug_error *err)
{
    return sn_fail(err, SNUG_E_MEMORY, "no memory for the batch slots and threads of the pipeline");
}

/* Carves each slot out of the memory for it. */
static void carve(sn_pipe *p, uint8_t *memory, uint64_t slot_bytes)
{
    uint64_t n = (uint64_t)p->capacity, tables = table_bytes(p->data, p->capacity);

    for (int i = 0; i < p->n_slots; i++) {
        slot *s = &p->ring[i];
        uint8_t *at = memory + (uint64_t)i * slot_bytes;
        s->x = (float *)(void *)at;
        at += aligned(n * p->sample * sizeof(float));
        s->classes = (int32_t *)(void *)at;
        at += aligned(n * sizeof(int32_t));
        s->y = (float *)(void *)at;
        at += aligned(n * (uint64_t)p->n_targets * sizeof(float));
        s->positions = (uint64_t *)(void *)at;
        at = (uint8_t *)p->tables + (uint64_t)i * tables;
        s->at = (uint64_t *)(void *)at;
        at += aligned(n * sizeof(uint64_t));
        s->state = at;
        at += aligned(n);
        s->why = p->data->set.can_fail ? (char *)at : NULL;
    }
}

static snug_status make_ring(sn_pipe *p, const snug_pipe_options *o, snug_error *err)
{
    uint64_t slot_bytes = snug_data_slot_bytes(p->data, p->capacity);
    uint64_t bytes = slot_bytes * (uint64_t)p->n_slots;

    if (o->memory && o->memory_bytes < bytes)
        return sn_fail(err, SNUG_E_USAGE,
                       "%d slots need %" PRIu64 " bytes, %" PRIu64 " were brought", p->n_slots,
                       bytes, o->memory_bytes);
    if (o->memory && (uintptr_t)o->memory % 64)
        return sn_fail(err, SNUG_E_USAGE, "the slots' memory is not aligned to 64 bytes");
    p->ring = sn_alloc_array(SN_TAG_DATA, (size_t)p->n_slots, sizeof *p->ring);
    p->tables =
        sn_alloc_array(SN_TAG_DATA, (size_t)p->n_slots, (size_t)table_bytes(p->data, p->capacity));
    if (!o->memory)
        p->own_memory = sn_alloc(SN_TAG_DATA, (size_t)bytes + 64);
    if (!p->ring || !p->tables || (!o->memory && !p->own_memory))
        return no_memory(err);
    uint8_t *memory =
        o->memory ? o->memory : (uint8_t *)(uintptr_t)aligned((uintptr_t)p->own_memory);
    carve(p, memory, slot_bytes);
    return SNUG_OK;
}

static snug_status make_workers(sn_pipe *p, snug_error *err)
{
    const snug_data *data = p->data;
    sn_pool *pool = data->set.needs_pool ? &p->pool : NULL;
    snug_status status = pool ? sn_pool_init(pool, data->options.decode_bytes, err) : SNUG_OK;

    p->n_workers = SN_MAX(p->n_threads, 1);
    p->workers = sn_alloc_array(SN_TAG_DATA, (size_t)p->n_workers, sizeof *p->workers);
    if (!p->workers)
        return no_memory(err);
    for (int i = 0; i < p->n_workers && !status; i++) {
        worker *w = &p->workers[i];
        w->pipe = p;
        w->id = i;
        status = sn_scratch_init(&w->scratch, data->set.scratch_bytes, pool, err);
        if (!status && sn_augment_any(&data->options.augment) &&
            !(w->tmp = sn_alloc_array(SN_TAG_DATA, (size_t)p->sample, sizeof(float))))
            status = no_memory(err);
    }
    for (int i = 0; i < p->n_threads && !status; i++) {
        char name[16];
        snprintf(name, sizeof name, "snug-data-%d", i % 1000);
        status = sn_thread_start(&p->workers[i].thread, name, worker_run, &p->workers[i], err);
        p->workers[i].started = status == SNUG_OK;
    }
    return status;
}

static snug_status check_options(const snug_data *data, const snug_pipe_options *o, snug_error *err)
{
    if (o->batch < 0 || !snug_data_slot_bytes(data, o->batch ? o->batch : 32))
        return sn_fail(err, SNUG_E_USAGE, "a batch of %" PRId64 " is out of range", o->batch);
    if (o->n_slots < 0 || o->n_slots > 1024 || o->data_threads < 0 || o->data_threads > 1024)
        return sn_fail(err, SNUG_E_USAGE,
                       "%d slots and %d data threads are out of range (0 to 1024)", o->n_slots,
                       o->data_threads);
    if (n_threads_of(o) && o->n_slots == 1)
        return sn_fail(err, SNUG_E_USAGE, "data threads need two slots or more");
    return SNUG_OK;
}

snug_status sn_pipe_new(sn_pipe **out, snug_data *data, const snug_pipe_options *options,
                        snug_error *err)
{
    snug_pipe_options o = SNUG_PIPE_OPTIONS_INIT;

    *out = NULL;
    if (options)
        memcpy(&o, options, SN_MIN(options->struct_size, sizeof o));
    snug_status status = check_options(data, &o, err);
    if (status)
        return status;
    sn_pipe *p = sn_alloc(SN_TAG_DATA, sizeof *p);
    if (!p)
        return no_memory(err);
    p->data = data;
    p->capacity = o.batch ? o.batch : 32;
    p->n_targets = data->set.n_targets;
    p->sample = sample_floats(data);
    /* Where single samples can be bad a claim is one place, so that at most one of it is. */
    p->at_once = data->set.can_fail ? 1 : SN_MIN(SN_MAX(16384 / (int64_t)p->sample, 1), 64);
    p->n_threads = n_threads_of(&o);
    p->n_slots = snug_data_n_slots(&o);
    p->automatic = o.data_threads == 0;
    p->n_active = p->automatic ? SN_MIN(p->n_threads, 2) : p->n_threads;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->work, NULL);
    pthread_cond_init(&p->done, NULL);
    status = make_ring(p, &o, err);
    if (!status)
        status = make_workers(p, err);
    if (status)
        sn_pipe_free(p);
    else
        *out = p;
    return status;
}

void sn_pipe_free(sn_pipe *p)
{
    if (!p)
        return;
    pthread_mutex_lock(&p->lock);
    quiesce(p);
    p->quit = true;
    pthread_cond_broadcast(&p->work);
    pthread_mutex_unlock(&p->lock);
    for (int i = 0; i < p->n_workers && p->workers; i++) {
        worker *w = &p->workers[i];
        if (w->started)
            pthread_join(w->thread, NULL);
        sn_scratch_deinit(&w->scratch);
        sn_free(w->tmp);
    }
    sn_pool_deinit(&p->pool);
    sn_free(p->workers);
    sn_free(p->own_memory);
    sn_free(p->tables);
    sn_free(p->ring);
    pthread_cond_destroy(&p->done);
    pthread_cond_destroy(&p->work);
    pthread_mutex_destroy(&p->lock);
    sn_free(p);
}
