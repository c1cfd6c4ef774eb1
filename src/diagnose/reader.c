/* SPDX-License-Identifier: Apache-2.0
 *
 * The stream. A source of up to KEEP bytes is kept whole and read by unwrap.c, which can join lines
 * that a terminal broke. A larger one is read in blocks: one pass with the anchors of the patterns
 * that are not context finds places; only the text NEAR them is cut into lines, cleaned and
 * matched with all patterns.
 *
 * 1. data[0] begins a line, number `line` (streaming: or the rest of one that is too long).
 * 2. A block ends behind a line break, unless there is none in KEEP bytes.
 */
#include "diagnose/state.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"

enum { KEEP = 1 << 20, NEAR = 4096, PIECE = 6000, MAX_SEEN = 48 };

bool sn_reader_init(snug_diagnosis *d)
{
    sn_reader *r = &d->reader;
    r->cap = KEEP;
    r->data = sn_alloc(SN_TAG_DIAGNOSE, r->cap);
    r->scratch = sn_alloc(SN_TAG_DIAGNOSE, SN_LINE_MAX);
    r->line = 1;
    return r->data && r->scratch;
}

void sn_reader_deinit(snug_diagnosis *d)
{
    sn_free(d->reader.data);
    sn_free(d->reader.scratch);
}

/* The end of an escape sequence that begins at p: colours, window titles; p itself if none. */
static const char *skip_escape(const char *p, const char *end)
{
    const char *s = p;
    if (*s == '\x1b') {
        s++;
        if (s < end && *s == ']') { /* until BEL or ESC \ */
            while (s < end && *s != '\a' && *s != '\x1b')
                s++;
            return s < end && *s == '\a' ? s + 1 : s;
        }
        if (s == end || *s != '[')
            return s;
        s++;
        while (s < end && (*s < 0x40 || *s > 0x7e))
            s++;
        return s < end ? s + 1 : s;
    }
    /* the same as JSON or a shell would write it, or with its first byte lost */
    if (*s == '\\' && end - s > 6 && (!memcmp(s, "\\u001b[", 7) || !memcmp(s, "\\u001B[", 7)))
        s += 6;
    else if (*s == '\\' && end - s > 5 && (!memcmp(s, "\\x1b[", 5) || !memcmp(s, "\\033[", 5)))
        s += 4;
    if (s < end && *s == '[') {
        const char *q = s + 1;
        while (q < end && q - s < 12 && ((*q >= '0' && *q <= '9') || *q == ';'))
            q++;
        if (q < end && *q == 'm' && (q > s + 1 || s > p))
            return q + 1;
    }
    return p;
}

/* The length of the valid UTF-8 sequence at p, 0 if there is none. */
static size_t utf8_len(const unsigned char *p, const unsigned char *end)
{
    size_t n = *p >= 0xc2 && *p <= 0xdf   ? 2
               : (*p & 0xf0) == 0xe0      ? 3
               : *p >= 0xf0 && *p <= 0xf4 ? 4
                                          : 0;
    if (!n || (size_t)(end - p) < n)
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    if ((*p == 0xe0 && p[1] < 0xa0) || (*p == 0xed && p[1] > 0x9f) || (*p == 0xf0 && p[1] < 0x90) ||
        (*p == 0xf4 && p[1] > 0x8f))
        return 0;
    return n;
}

/* Are eight bytes all printable ASCII that begins no escape sequence? (The zero-byte test of H. S.
 * Warren, "Hacker's Delight", section 6-1: exact enough, a false alarm only costs time.) */
static inline bool all_plain(uint64_t v)
{
    const uint64_t ones = 0x0101010101010101u, high = 0x8080808080808080u;
    uint64_t bracket = v ^ (ones * '['), back = v ^ (ones * '\\'), del = v ^ (ones * 0x7f);
    uint64_t bad = v | (v - ones * 0x20) | ((bracket - ones) & ~bracket) | ((back - ones) & ~back) |
                   ((del - ones) & ~del);
    return !(bad & high);
}

size_t sn_line_clean(char *out, const char *raw, size_t n)
{
    const char *p = raw, *end = raw + n;
    size_t len = 0;
    while (p < end && len < SN_LINE_MAX - 8) {
        uint64_t eight;
        while (end - p >= 8 && len < SN_LINE_MAX - 16) {
            memcpy(&eight, p, sizeof eight);
            if (!all_plain(eight))
                break;
            memcpy(out + len, &eight, sizeof eight);
            p += 8;
            len += 8;
        }
        if (p == end)
            break;
        unsigned char c = (unsigned char)*p;
        if (c >= 0x20 && c < 0x7f && c != '[' && c != '\\') { /* nearly all of a text */
            out[len++] = *p++;
            continue;
        }
        if (c == '\x1b' || c == '\\' || (c == '[' && end - p > 1 && p[1] <= ';')) {
            const char *after = skip_escape(p, end);
            if (after > p) {
                p = after;
                continue;
            }
        }
        if (c >= 0x80) {
            size_t k = utf8_len((const unsigned char *)p, (const unsigned char *)end);
            if (k == 2 && c == 0xc2 && (unsigned char)p[1] == 0xa0)
                out[len++] = ' '; /* no-break space */
            else if (k)
                memcpy(out + len, p, k), len += k;
            p += k ? k : 1;
            continue;
        }
        if (c == '\t')
            out[len++] = ' ';
        else if (c >= 0x20 && c != 0x7f)
            out[len++] = (char)c;
        p++;
    }
    out[len] = '\0';
    size_t skip = 0; /* quote marks of mail and chat */
    for (;;) {
        size_t s = skip;
        while (out[s] == ' ')
            s++;
        if (out[s] != '>')
            break;
        skip = s + 1;
        if (out[skip] == ' ')
            skip++;
    }
    if (skip) {
        memmove(out, out + skip, len - skip + 1);
        len -= skip;
    }
    return len;
}

void sn_line_match(snug_diagnosis *d, const sn_line *line)
{
    sn_filter_cursor cursor = {0, 0};
    const sn_pattern *pattern, *seen[MAX_SEEN];
    size_t n_seen = 0;
    const char *at;
    while ((at = sn_filter_next(d->filter, line->text, line->n, &cursor, &pattern))) {
        size_t i = 0;
        while (i < n_seen && seen[i] != pattern)
            i++;
        if (i < n_seen || n_seen == MAX_SEEN)
            continue;
        seen[n_seen++] = pattern;
        if (pattern->also && !strstr(line->text, pattern->also))
            continue;
        if (pattern->framework)
            sn_framework_set(d, pattern->framework, NULL);
        if (pattern->parse)
            pattern->parse(d, line, at);
        else
            sn_tell_raise(d, pattern->tell, line->number, line->text);
    }
    if (d->smi_rows)
        sn_smi_row(d, line);
}

static uint64_t count_breaks(const char *p, const char *end)
{
    uint64_t n = 0;
    while (p < end) { /* blocks of 255 let the compiler count in bytes */
        size_t block = SN_MIN((size_t)(end - p), (size_t)255);
        uint8_t sum = 0;
        for (size_t i = 0; i < block; i++)
            sum = (uint8_t)(sum + (p[i] == '\n'));
        n += sum;
        p += block;
    }
    return n;
}

static bool is_break(char c)
{
    return c == '\n' || c == '\r' || c == '\b';
}

/* Cleans and matches every line of [from, to); *line is the number at from and is moved on. */
static void match_lines(snug_diagnosis *d, const char *from, const char *to, uint64_t *line)
{
    while (from < to) {
        size_t span = SN_MIN((size_t)(to - from), (size_t)PIECE);
        const char *end = memchr(from, '\n', span), *other;
        span = end ? (size_t)(end - from) : span;
        if ((other = memchr(from, '\r', span)))
            span = (size_t)(other - from);
        if ((other = memchr(from, '\b', span)))
            span = (size_t)(other - from);
        end = from + span;
        if (end > from) {
            size_t n = sn_line_clean(d->reader.scratch, from, (size_t)(end - from));
            sn_line it = {d->reader.scratch, n, *line};
            sn_line_match(d, &it);
        }
        if (end < to && is_break(*end)) {
            *line += *end == '\n';
            end++;
        }
        from = end;
    }
}

/* Reads the first n bytes of the buffer as whole lines. */
static void read_block(snug_diagnosis *d, size_t n)
{
    sn_reader *r = &d->reader;
    const char *text = r->data, *end = text + n, *done = text;
    sn_filter_cursor cursor = {0, 0};
    uint64_t line = r->line;
    const sn_pattern *pattern;
    for (;;) {
        const char *at = sn_filter_next(d->main_filter, text, n, &cursor, &pattern);
        if (!at)
            break;
        if (at < done)
            continue;
        const char *from = at - text > NEAR ? at - NEAR : text;
        const char *to = end - at > NEAR ? at + NEAR : end;
        if (from < done)
            from = done;
        else
            while (from > text && !is_break(from[-1]) && at - from < 2 * NEAR)
                from--;
        while (to < end && !is_break(*to) && to - at < 2 * NEAR)
            to++;
        if (to < end && is_break(*to))
            to++;
        line += count_breaks(done, from);
        match_lines(d, from, to, &line);
        done = to;
        cursor = (sn_filter_cursor){(size_t)(done - text) + SN_ANCHOR_MIN - 1, 0};
    }
    r->line = line + count_breaks(done, end);
    memmove(r->data, r->data + n, r->n - n);
    r->n -= n;
}

/* The buffer is full: read what is whole. */
static void read_full(snug_diagnosis *d)
{
    sn_reader *r = &d->reader;
    size_t n = r->n;
    while (n && r->data[n - 1] != '\n')
        n--;
    if (!n) { /* a progress bar's returns, or a line without end */
        n = r->n;
        while (n && r->data[n - 1] != '\r')
            n--;
    }
    r->streaming = true;
    read_block(d, n ? n : r->n - NEAR);
}

bool sn_reader_end(snug_diagnosis *d)
{
    sn_reader *r = &d->reader;
    if (r->streaming)
        read_block(d, r->n);
    else if (r->n)
        sn_unwrap_match(d, r->data, r->n);
    d->n_lines += r->line - 1 + (r->open_line ? 1 : 0);
    r->order += r->line;
    r->line = 1;
    r->n = 0;
    r->streaming = r->utf16 = r->open_line = false;
    r->begun = false;
    d->smi_rows = 0;
    return !d->failed;
}

char *sn_reader_space(snug_diagnosis *d, size_t *n)
{
    if (d->reader.n == d->reader.cap)
        read_full(d);
    *n = d->reader.cap - d->reader.n;
    return d->reader.data + d->reader.n;
}

bool sn_reader_commit(snug_diagnosis *d, size_t n)
{
    sn_reader *r = &d->reader;
    char *fresh = r->data + r->n;
    d->n_bytes += n;
    if (!r->begun && n) {
        /* a Windows shell writes UTF-16 with this mark; its zero bytes go, ASCII is left */
        r->utf16 = n >= 2 && (unsigned char)fresh[0] == 0xff && (unsigned char)fresh[1] == 0xfe;
        r->begun = true;
    }
    if (r->utf16) {
        size_t kept = 0;
        for (size_t i = 0; i < n; i++)
            if (fresh[i])
                fresh[kept++] = fresh[i];
        n = kept;
    }
    r->n += n;
    if (n)
        r->open_line = r->data[r->n - 1] != '\n';
    return !d->failed;
}

bool sn_reader_feed(snug_diagnosis *d, const char *bytes, size_t n)
{
    while (n) {
        size_t room;
        char *space = sn_reader_space(d, &room);
        size_t take = SN_MIN(room, n);
        memcpy(space, bytes, take);
        if (!sn_reader_commit(d, take))
            return false;
        bytes += take;
        n -= take;
    }
    return true;
}

snug_status snug_diagnosis_feed(snug_diagnosis *d, const char *source, const void *bytes, size_t n,
                                snug_error *err)
{
    if (d->finished)
        return sn_fail(err, SNUG_E_USAGE, "text was fed to a diagnosis that is finished");
    bool ok = true;
    if (source && strcmp(source, d->source))
        ok = sn_diagnosis_source(d, source);
    if (ok && bytes)
        ok = sn_reader_feed(d, bytes, n);
    else if (ok && !n)
        ok = sn_reader_end(d);
    return ok ? SNUG_OK : sn_fail(err, SNUG_E_MEMORY, "no memory left while reading %s", d->source);
}

snug_status snug_diagnosis_feed_file(snug_diagnosis *d, const char *path, snug_error *err)
{
    if (d->finished)
        return sn_fail(err, SNUG_E_USAGE, "text was fed to a diagnosis that is finished");
    bool standard = !strcmp(path, "-");
    int fd = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return sn_fail_errno(err, errno == ENOENT ? SNUG_E_NOT_FOUND : SNUG_E_IO, errno,
                             "cannot open %s", path);
    snug_status status = SNUG_OK;
    if (!sn_diagnosis_source(d, path))
        status = sn_fail(err, SNUG_E_MEMORY, "no memory left while reading %s", path);
    while (!status) {
        size_t room;
        char *space = sn_reader_space(d, &room);
        ssize_t got = read(fd, space, room);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            status = sn_fail_errno(err, SNUG_E_IO, errno, "cannot read %s", path);
        else if (!sn_reader_commit(d, (size_t)got))
            status = sn_fail(err, SNUG_E_MEMORY, "no memory left while reading %s", path);
        if (got <= 0)
            break;
    }
    if (!sn_reader_end(d) && !status)
        status = sn_fail(err, SNUG_E_MEMORY, "no memory left while reading %s", path);
    if (!standard)
        close(fd);
    return status;
}
