/* SPDX-License-Identifier: Apache-2.0
 *
 * The project's own logs (tests/diagnose_logs): cause, framework and numbers of each; a log for
 * every rule; and what people do to logs before they paste them. A cause that is wrong with a
 * confidence above 0.5 in a cut, wrapped or mixed variant counts, and may be one in a hundred.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/io.h"
#include "diagnose/state.h"
#include "support/support.h"

#define LOGS SNUG_SOURCE_DIR "/tests/diagnose_logs"

typedef struct log_row {
    char *name, *cause, *framework, *numbers, *text;
    size_t n;
} log_row;

static log_row rows[256];
static size_t n_rows;
static char *index_text;

static int load(void **state)
{
    snug_error err = SNUG_ERROR_INIT;
    char path[SN_TEST_PATH];
    size_t n;
    if (sn_io_read_all(&index_text, &n, LOGS "/index.tsv", 1 << 20, SN_TAG_TEST, &err))
        return -1;
    char *next = strchr(index_text, '\n');
    for (char *p = next ? next + 1 : NULL; p && *p; p = next) {
        char *field[4] = {p};
        next = strchr(p, '\n');
        if (next)
            *next++ = '\0';
        for (int i = 1; i < 4; i++) {
            field[i] = strchr(field[i - 1], '\t');
            if (!field[i])
                return -1;
            *field[i]++ = '\0';
        }
        if (n_rows == SN_LEN(rows))
            return -1;
        log_row *row = &rows[n_rows++];
        *row = (log_row){field[0], field[1], field[2], field[3], NULL, 0};
        test_path(path, LOGS, row->name);
        if (sn_io_read_all(&row->text, &row->n, path, 1 << 20, SN_TAG_TEST, &err))
            return -1;
    }
    return 0;
}

static int unload(void **state)
{
    for (size_t i = 0; i < n_rows; i++)
        sn_free(rows[i].text);
    sn_free(index_text);
    n_rows = 0;
    return sn_ledger_live_bytes() ? -1 : 0;
}

static snug_diagnosis *diagnose(const char *text, size_t n, size_t step)
{
    snug_error err = SNUG_ERROR_INIT;
    snug_diagnosis *d;
    assert_ok(snug_diagnosis_new(&d, NULL, &err), &err);
    for (size_t i = 0; i < n; i += step)
        assert_ok(snug_diagnosis_feed(d, "a.log", text + i, SN_MIN(step, n - i), &err), &err);
    assert_ok(snug_diagnosis_finish(d, &err), &err);
    return d;
}

static const char *expected(const log_row *row)
{
    return !strcmp(row->cause, "healthy") ? "unknown" : row->cause;
}

/* A number as the index writes it. */
static void write_number(sn_buf *out, const snug_number *n)
{
    switch (n->kind) {
    case SNUG_NUMBER_BYTES:
    case SNUG_NUMBER_COUNT:
        sn_buf_printf(out, "%llu", (unsigned long long)n->count);
        break;
    case SNUG_NUMBER_FLAG:
        sn_buf_puts(out, n->count ? "true" : "false");
        break;
    case SNUG_NUMBER_REAL:
        sn_buf_printf(out, "%.10g", n->real);
        break;
    case SNUG_NUMBER_TEXT:
        sn_buf_puts(out, n->text);
        break;
    case SNUG_NUMBER_SHAPE:
        for (size_t i = 0; i < n->n_dims; i++)
            sn_buf_printf(out, "%s%lld", i ? "," : "[", (long long)n->dims[i]);
        sn_buf_puts(out, "]");
        break;
    }
}

static size_t wrong_numbers(const snug_diagnosis *d, const log_row *row)
{
    size_t wrong = 0;
    char list[2048];
    snprintf(list, sizeof list, "%s", row->numbers);
    for (char *p = list, *next; p && *p; p = next) {
        next = strstr(p, "; ");
        if (next) {
            *next = '\0';
            next += 2;
        }
        char *value = strchr(p, '=');
        assert_non_null(value);
        *value++ = '\0';
        const snug_number *n = snug_diagnosis_number_named(d, p);
        sn_buf got;
        sn_buf_init(&got, SN_TAG_TEST);
        if (n)
            write_number(&got, n);
        if (!n || strcmp(got.data, value) != 0) {
            print_message("%s: %s is %s, expected %s\n", row->name, p, n ? got.data : "absent",
                          value);
            wrong++;
        }
        sn_buf_deinit(&got);
    }
    return wrong;
}

static void each_log(void **state)
{
    size_t right = 0, wrong = 0, by_cause[SNUG_N_CAUSES] = {0}, healthy = 0;
    for (size_t i = 0; i < n_rows; i++) {
        const log_row *row = &rows[i];
        snug_diagnosis *d = diagnose(row->text, row->n, row->n + 1);
        const snug_cause *best = snug_diagnosis_cause(d, 0);
        assert_non_null(best);
        bool ok = !strcmp(best->name, expected(row));
        if (!strcmp(row->cause, "healthy")) {
            healthy++;
            ok = ok && best->confidence <= 0.3;
        }
        const char *framework = snug_diagnosis_framework(d);
        if (strcmp(framework ? framework : "-", row->framework) != 0) {
            print_message("%s: framework %s\n", row->name, framework ? framework : "-");
            ok = false;
        }
        if (!ok)
            print_message("%s: %s %.2f, expected %s\n", row->name, best->name, best->confidence,
                          row->cause);
        right += ok;
        by_cause[best->id]++;
        wrong += wrong_numbers(d, row);
        if (best->confidence > 0) {
            assert_true(best->explanation[0] && best->n_fixes > 0 && best->check[0]);
            if (best->id != SNUG_CAUSE_UNKNOWN && (!best->n_evidence || !best->evidence[0].line))
                fail_msg("%s: no evidence", row->name);
        }
        for (size_t k = 0; k < snug_diagnosis_n_causes(d); k++) {
            const snug_cause *c = snug_diagnosis_cause(d, k);
            assert_true(c->decisive || c->confidence <= 0.5);
            assert_null(strchr(c->explanation, '{'));
        }
        snug_diagnosis_free(d);
    }
    print_message("%zu of %zu logs right, %zu wrong numbers, %zu healthy\n", right, n_rows, wrong,
                  healthy);
    assert_int_equal(right, n_rows);
    assert_int_equal(wrong, 0);
    assert_true(n_rows >= 60 && healthy >= 10);
    for (size_t i = 0; i < SNUG_CAUSE_UNKNOWN; i++)
        if (by_cause[i] < 3)
            fail_msg("%s has %zu logs, 3 are wanted", snug_cause_name((snug_cause_id)i),
                     by_cause[i]);
}

static void each_rule_has_a_log(void **state)
{
    static bool fired[512];
    size_t n = 0, missing = 0;
    while (sn_rule_at(n))
        n++;
    assert_true(n <= 256);
    for (size_t i = 0; i < n_rows; i++) {
        snug_diagnosis *d = diagnose(rows[i].text, rows[i].n, rows[i].n + 1);
        for (size_t k = 0; k < n; k++)
            fired[k] |= sn_rule_fired(d, k);
        snug_diagnosis_free(d);
    }
    for (size_t k = 0; k < n; k++) {
        const sn_rule *rule = sn_rule_at(k);
        assert_true(rule->weight <= 0.5 || rule->decisive);
        if (!fired[k]) {
            print_message("no log for rule %s\n", rule->id);
            missing++;
        }
        for (size_t j = 0; j < k; j++)
            assert_string_not_equal(rule->id, sn_rule_at(j)->id);
    }
    assert_int_equal(missing, 0);
}

static void each_pattern_can_be_found(void **state)
{
    size_t n = 0;
    for (const sn_pattern *p; (p = sn_pattern_at(n)); n++) {
        assert_in_range(strlen(p->anchor), SN_ANCHOR_MIN, SN_ANCHOR_MAX);
        assert_true(p->parse || p->tell || p->framework);
    }
    print_message("%zu patterns\n", n);
}

/* ---- what is done to logs before they are pasted ---- */

typedef struct tally {
    size_t variants, wrong, right;
} tally;

static void judge(tally *t, const log_row *row, const char *text, size_t n, const char *how,
                  size_t where)
{
    snug_diagnosis *d = diagnose(text, n, n + 1);
    const snug_cause *best = snug_diagnosis_cause(d, 0);
    bool right = !strcmp(best->name, expected(row));
    t->variants++;
    t->right += right;
    if (!right && best->confidence > 0.5) {
        t->wrong++;
        print_message("%s, %s %zu: %s %.2f\n", row->name, how, where, best->name, best->confidence);
    }
    snug_diagnosis_free(d);
}

static void report(const char *how, const tally *t)
{
    print_message("%s: %zu variants, %zu (%.1f %%) with the right first cause, %zu (%.2f %%) wrong "
                  "above 0.5\n",
                  how, t->variants, t->right, 100.0 * (double)t->right / (double)t->variants,
                  t->wrong, 100.0 * (double)t->wrong / (double)t->variants);
    assert_true(t->wrong * 100 <= t->variants);
}

static void cut_at_every_line(void **state)
{
    tally head = {0}, tail = {0};
    for (size_t i = 0; i < n_rows; i++) {
        const log_row *row = &rows[i];
        size_t line = 1;
        for (size_t k = 0; k + 1 < row->n; k++) {
            if (row->text[k] != '\n')
                continue;
            judge(&head, row, row->text, k + 1, "cut after line", line);
            judge(&tail, row, row->text + k + 1, row->n - k - 1, "cut before line", line + 1);
            line++;
        }
    }
    report("cut after a line", &head);
    report("cut before a line", &tail);
}

/* A terminal: every line broken at the width. */
static void wrap_hard(sn_buf *out, const char *text, size_t n, size_t width)
{
    size_t column = 0;
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '\n') {
            column = 0;
        } else if (column++ == width) {
            sn_buf_putc(out, '\n');
            column = 1;
        }
        sn_buf_putc(out, text[i]);
    }
}

/* A chat box: broken in place of a space where the next word does not fit. */
static void wrap_soft(sn_buf *out, const char *text, size_t n, size_t width)
{
    size_t column = 0;
    for (size_t i = 0; i < n;) {
        if (text[i] == '\n') {
            sn_buf_putc(out, text[i++]);
            column = 0;
            continue;
        }
        size_t word = i;
        while (word < n && text[word] == ' ')
            word++;
        while (word < n && text[word] != ' ' && text[word] != '\n')
            word++;
        if (column && column + (word - i) > width && text[i] == ' ') {
            sn_buf_putc(out, '\n');
            i++;
            column = 0;
            word = SN_MAX(word, i);
        }
        sn_buf_append(out, text + i, word - i);
        column += word - i;
        i = word;
    }
}

static void wrapped(void **state)
{
    static const size_t widths[] = {80, 72, 100, 120};
    tally hard = {0}, soft = {0};
    for (size_t i = 0; i < n_rows; i++)
        for (size_t k = 0; k < SN_LEN(widths); k++) {
            sn_buf b;
            sn_buf_init(&b, SN_TAG_TEST);
            wrap_hard(&b, rows[i].text, rows[i].n, widths[k]);
            judge(&hard, &rows[i], b.data, b.len, "hard wrap at", widths[k]);
            sn_buf_clear(&b);
            wrap_soft(&b, rows[i].text, rows[i].n, widths[k]);
            judge(&soft, &rows[i], b.data, b.len, "soft wrap at", widths[k]);
            sn_buf_deinit(&b);
        }
    report("hard wrap", &hard);
    report("soft wrap", &soft);
    assert_true(hard.right * 100 >= hard.variants * 90);
    assert_true(soft.right * 100 >= soft.variants * 90);
}

/* Lines of another process, one after every k-th line. */
static const char *const noise[] = {
    "2024-04-11 09:12:30,118 INFO server: GET /health 200 1.9 ms\n",
    "[Parallel(n_jobs=4)]: Done  42 tasks      | elapsed:    3.1s\n",
    " 37%|###7      | 118/320 [00:41<01:10,  2.88it/s]\n",
    "step 4120 loss: 0.7712 lr 0.0001\n",
    "wandb: Syncing run lively-frost-17\n",
    "Epoch 12/50\n",
    "DEBUG:urllib3.connectionpool:https://example.org:443 \"GET /a HTTP/1.1\" 200 None\n",
    "memory usage: 512.3 MB\n",
};

static void mixed(void **state)
{
    tally t = {0};
    for (size_t i = 0; i < n_rows; i++)
        for (size_t every = 1; every <= 4; every++) {
            sn_buf b;
            sn_buf_init(&b, SN_TAG_TEST);
            size_t line = 0, k = i + every;
            for (const char *p = rows[i].text; *p;) {
                size_t n = strcspn(p, "\n");
                n += p[n] == '\n';
                if (line++ % every == 0)
                    sn_buf_puts(&b, noise[k++ % SN_LEN(noise)]);
                sn_buf_append(&b, p, n);
                p += n;
            }
            sn_buf_puts(&b, noise[k % SN_LEN(noise)]);
            judge(&t, &rows[i], b.data, b.len, "mixed, every", every);
            sn_buf_deinit(&b);
        }
    report("mixed with another process", &t);
    assert_true(t.right * 100 >= t.variants * 90);
}

/* Quote marks, colours, CRLF, a prefix that a supervisor puts before each line. */
static void decorated(void **state)
{
    static const struct {
        const char *how, *before, *after;
    } ways[] = {
        {"quoted", "> ", "\n"},
        {"quoted twice", "> > ", "\n"},
        {"CRLF", "", "\r\n"},
        {"coloured", "\x1b[1;31m", "\x1b[0m\n"},
        {"half a colour", "[31m", "[0m\n"},
        {"progress before", "  3%|3         | 9/300 [00:01<00:40,  7.2it/s]\r", "\n"},
        {"compose", "trainer-1  | ", "\n"},
        {"timestamps", "2024-05-01T10:11:12.123456789Z ", "\n"},
    };
    tally t = {0};
    for (size_t i = 0; i < n_rows; i++)
        for (size_t w = 0; w < SN_LEN(ways); w++) {
            sn_buf b;
            sn_buf_init(&b, SN_TAG_TEST);
            for (const char *p = rows[i].text; *p;) {
                size_t n = strcspn(p, "\n");
                sn_buf_puts(&b, ways[w].before);
                sn_buf_append(&b, p, n);
                sn_buf_puts(&b, ways[w].after);
                p += n + (p[n] == '\n');
            }
            judge(&t, &rows[i], b.data, b.len, ways[w].how, w);
            sn_buf_deinit(&b);
        }
    report("decorated", &t);
    assert_true(t.right * 100 >= t.variants * 95);
}

/* The same in the middle of a text that is too large to be kept, and in pieces of any size. */
static void in_a_large_text(void **state)
{
    static const char filler[] = "INFO worker 3: sent 4096 records in 0.71 s, queue 12 of 64\n";
    tally t = {0};
    sn_buf b;
    sn_buf_init(&b, SN_TAG_TEST);
    for (size_t i = 0; i < n_rows; i++) {
        sn_buf_clear(&b);
        while (b.len < 700000)
            sn_buf_puts(&b, filler);
        sn_buf_append(&b, rows[i].text, rows[i].n);
        while (b.len < 1400000)
            sn_buf_puts(&b, filler);
        judge(&t, &rows[i], b.data, b.len, "in a large text", 0);
    }
    sn_buf_deinit(&b);
    report("in a large text", &t);
    assert_true(t.right * 100 >= t.variants * 98);
}

static void any_chunks(void **state)
{
    static const size_t steps[] = {1, 7, 4096};
    snug_error err = SNUG_ERROR_INIT;
    for (size_t i = 0; i < n_rows; i++) {
        snug_diagnosis *whole = diagnose(rows[i].text, rows[i].n, rows[i].n + 1);
        const char *a, *b;
        assert_ok(snug_diagnosis_json(whole, &a, &err), &err);
        for (size_t k = 0; k < SN_LEN(steps); k++) {
            snug_diagnosis *d = diagnose(rows[i].text, rows[i].n, steps[k]);
            assert_ok(snug_diagnosis_json(d, &b, &err), &err);
            assert_string_equal(a, b);
            snug_diagnosis_free(d);
        }
        snug_diagnosis_free(whole);
    }
}

/* Each allocation fails once: an error or the whole report, never a crash, never a leak. */
static void no_memory(void **state)
{
    static const size_t some[] = {0, 21, 44};
    for (size_t i = 0; i < SN_LEN(some); i++) {
        const log_row *row = &rows[some[i] % n_rows];
        uint64_t before = sn_ledger_live_bytes();
        bool done = false;
        for (uint64_t nth = 1; !done && nth < 3000; nth++) {
            snug_error err = SNUG_ERROR_INIT;
            snug_diagnosis *d;
            const char *text;
            sn_ledger_fail_nth(nth);
            if (!snug_diagnosis_new(&d, NULL, &err)) {
                snug_status fed = snug_diagnosis_feed(d, "a.log", row->text, row->n, &err);
                snug_status end = snug_diagnosis_finish(d, &err);
                snug_status json = snug_diagnosis_json(d, &text, &err);
                done = !fed && !end && !json;
                assert_true(done || err.code == SNUG_E_MEMORY);
            } else {
                assert_null(d);
            }
            sn_ledger_fail_nth(0);
            snug_diagnosis_free(d);
            assert_int_equal(sn_ledger_live_bytes(), before);
        }
        assert_true(done);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_log),
        cmocka_unit_test(each_rule_has_a_log),
        cmocka_unit_test(each_pattern_can_be_found),
        cmocka_unit_test(cut_at_every_line),
        cmocka_unit_test(wrapped),
        cmocka_unit_test(mixed),
        cmocka_unit_test(decorated),
        cmocka_unit_test(in_a_large_text),
        cmocka_unit_test(any_chunks),
        cmocka_unit_test(no_memory),
    };
    return cmocka_run_group_tests(tests, load, unload);
}
