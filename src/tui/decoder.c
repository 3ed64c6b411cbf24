#include "config.h"

#include "tui/decoder.h"

#include <stdlib.h>
#include <string.h>

#include "app/keys.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "tui/decoder_impl.h"

static const int64_t REPEAT_NS = 1000 * MS;        /* ^X arrow, arrow, arrow ... */
static const int64_t PATIENT_ESCAPE_NS = 200 * MS; /* while a reply is awaited */
static const int64_t SEQUENCE_NS = 2000 * MS;      /* a sequence that never ends is dropped */
static const int64_t PASTE_NS = 5000 * MS;         /* a paste that never ends is delivered */

enum { PASTE_MAX = 1 << 20 };
static const char PASTE_END[] = "\033[201~";

/* ---- events out ----------------------------------------------------------------------------- */

void decoder_push(struct decoder *d, const struct term_event *event)
{
    if (d->head == d->n)
        d->head = d->n = 0;
    mem_grow(&d->queue, &d->cap, d->n + 1, sizeof *d->queue);
    d->queue[d->n++] = *event;
}

static bool is_arrow(int key)
{
    return key == KEYS_UP || key == KEYS_DOWN || key == KEYS_LEFT || key == KEYS_RIGHT;
}

static void set_raw(struct term_event *event, const void *bytes, size_t len)
{
    event->raw_len = len <= TERM_RAW_MAX ? len : 0;
    memcpy(event->raw, bytes, event->raw_len);
}

/* Joins a ^X that waits to `event`. False when nothing is left to tell. */
static bool join_prefix(struct decoder *d, struct term_event *event, int64_t now_ns)
{
    if (d->has_prefix) {
        d->has_prefix = false;
        if (event->key == ESC)
            return false;
        if (event->key == CTRL_C)
            return true;
    } else if (!is_arrow(event->key) || now_ns >= d->repeat_until_ns) {
        d->repeat_until_ns = 0;
        return true;
    }
    d->repeat_until_ns = is_arrow(event->key) ? now_ns + REPEAT_NS : 0;
    event->key |= KEYMOD_CTRL_X;
    if (event->raw_len > 0 && event->raw_len < TERM_RAW_MAX) {
        memmove(event->raw + 1, event->raw, event->raw_len++);
        event->raw[0] = CTRL_X;
    }
    return true;
}

void decoder_push_key(struct decoder *d, int key, const void *raw, size_t raw_len, int64_t now_ns)
{
    struct term_event event = {.kind = TERM_KEY, .key = key};

    set_raw(&event, raw, raw_len);
    if (key == CTRL_X && !d->has_prefix) {
        d->has_prefix = true;
        return;
    }
    if (join_prefix(d, &event, now_ns))
        decoder_push(d, &event);
}

void decoder_push_reply(struct decoder *d, enum term_reply reply, int a, int b)
{
    decoder_push(
        d, &(struct term_event){.kind = TERM_REPLY, .reply = reply, .reply_a = a, .reply_b = b});
}

void decoder_go_to(struct decoder *d, enum decoder_state state)
{
    d->state = (int)state;
    if (state == GROUND)
        d->seq_len = 0;
}

/* The sequence is complete and is `key`; a second ESC in front of it was Alt. */
void decoder_finish_key(struct decoder *d, int key, int64_t now_ns)
{
    if (d->seq_len > 1 && d->seq[0] == ESC && d->seq[1] == ESC)
        key |= KEYMOD_ALT;
    decoder_push_key(d, key, d->seq, d->seq_len, now_ns);
    decoder_go_to(d, GROUND);
}

static int key_of_byte(const struct decoder *d, unsigned char c)
{
    return c == '\b' && d->options.backspace_is_h ? DEL : c;
}

/* ---- paste ---------------------------------------------------------------------------------- */

/* Line ends become '\n'; other control characters are left out, invalid bytes are U+FFFD. */
static char *clean_paste(const struct str *paste)
{
    struct str out = STR_INIT;
    const char *p = str_text(paste), *end = p + paste->len;

    while (p < end) {
        uint32_t c;
        bool valid;
        size_t n = utf8_decode(p, (size_t)(end - p), &c, &valid);
        if (c == '\r') {
            str_add_char(&out, '\n');
            if (p + 1 < end && p[1] == '\n')
                n = 2;
        } else if (c == '\n' || c == '\t' || (c >= ' ' && c < DEL) || c >= 0xA0) {
            utf8_add_clean(&out, p, n);
        }
        p += n;
    }
    str_add(&out, "", 0);
    return str_steal(&out);
}

static void finish_paste(struct decoder *d)
{
    struct term_event event = {.kind = TERM_PASTE};
    char *text = clean_paste(&d->paste);

    str_done(&d->paste);
    decoder_go_to(d, GROUND);
    event.text = text != NULL ? text : mem_strdup("");
    event.len = strlen(event.text);
    d->has_prefix = false;
    decoder_push(d, &event);
}

static void add_pasted(struct decoder *d, const char *bytes, size_t len)
{
    size_t room = d->paste.len < PASTE_MAX ? PASTE_MAX - d->paste.len : 0;

    str_add(&d->paste, bytes, len < room ? len : room);
}

static void take_pasted(struct decoder *d, unsigned char b)
{
    if (b == (unsigned char)PASTE_END[d->paste_match]) {
        if (++d->paste_match == sizeof PASTE_END - 1)
            finish_paste(d);
        return;
    }
    add_pasted(d, PASTE_END, d->paste_match);
    d->paste_match = 0;
    if (b == ESC)
        d->paste_match = 1;
    else
        add_pasted(d, (const char *)&b, 1);
}

/* ---- bytes in ------------------------------------------------------------------------------- */

static void take_byte(struct decoder *d, unsigned char b, int64_t now_ns);

static void collect(struct decoder *d, unsigned char b)
{
    if (d->seq_len < sizeof d->seq)
        d->seq[d->seq_len++] = b;
}

static void take_ground(struct decoder *d, unsigned char b, int64_t now_ns)
{
    d->seq[0] = b;
    d->seq_len = 1;
    if (b == ESC)
        d->state = ESCAPE;
    else if (b >= 0x80)
        d->state = UTF8;
    else
        decoder_finish_key(d, key_of_byte(d, b), now_ns);
    if (d->state == UTF8 && utf8_unfinished((const char *)d->seq, 1) == 0)
        decoder_go_to(d, GROUND); /* no character begins like this */
}

static void take_utf8(struct decoder *d, unsigned char b, int64_t now_ns)
{
    size_t start = d->seq[0] == ESC ? 1 : 0;
    const char *bytes = (const char *)d->seq + start;
    uint32_t c;
    bool valid;

    if ((b & 0xC0) != 0x80) { /* cut off: the new byte counts */
        decoder_go_to(d, GROUND);
        take_byte(d, b, now_ns);
        return;
    }
    collect(d, b);
    if (utf8_unfinished(bytes, d->seq_len - start) > 0)
        return;
    utf8_decode(bytes, d->seq_len - start, &c, &valid);
    if (!valid)
        decoder_go_to(d, GROUND);
    else
        decoder_finish_key(d, (int)c | (start > 0 ? KEYMOD_ALT : 0), now_ns);
}

/* After ESC (or ESC ESC, where the first was Alt). */
static void take_escape(struct decoder *d, unsigned char b, int64_t now_ns)
{
    bool twice = d->seq_len == 2;

    if (b == ESC && !twice) {
        collect(d, b);
        return;
    }
    if (b == ESC) { /* three in a row: the first is a key of its own */
        decoder_push_key(d, ESC, "\033", 1, now_ns);
        return;
    }
    if (b == '[' || b == 'O') {
        collect(d, b);
        d->state = b == '[' ? CSI : SS3;
        return;
    }
    if (twice) { /* Esc, then Alt with a key */
        decoder_push_key(d, ESC, "\033", 1, now_ns);
        d->seq_len = 1;
    }
    if (now_ns < d->await_until_ns && strchr("]P_^X", b) != NULL && b != '\0') {
        d->state = STRING;
        return;
    }
    collect(d, b);
    if (b >= 0x80) {
        d->state = UTF8;
        if (utf8_unfinished((const char *)d->seq + 1, 1) == 0)
            decoder_go_to(d, GROUND);
    } else if (b == '\t') {
        decoder_finish_key(d, KEYS_BACKTAB, now_ns);
    } else {
        decoder_finish_key(d, KEYMOD_ALT | key_of_byte(d, b), now_ns);
    }
}

static void take_csi(struct decoder *d, unsigned char b, int64_t now_ns)
{
    size_t start = d->seq[1] == ESC ? 3 : 2;
    bool first = d->seq_len == start;

    if (b < ' ' || b >= DEL) { /* no part of a sequence: that one is dropped */
        decoder_go_to(d, GROUND);
        take_byte(d, b, now_ns);
        return;
    }
    if (first && b == '[') {
        collect(d, b);
        d->state = LINUX_F;
        return;
    }
    if (first && b == 'M') {
        d->state = X10_MOUSE;
        return;
    }
    bool final = b >= '@' || (b == '$' && d->seq[start] != '?' && !first);
    if (d->seq_len == sizeof d->seq) { /* longer than any that we know */
        if (final)
            decoder_go_to(d, GROUND);
        return;
    }
    collect(d, b);
    if (final)
        decoder_finish_csi(d, now_ns);
}

static void take_ss3(struct decoder *d, unsigned char b, int64_t now_ns)
{
    int key = decoder_ss3_key(b);

    if (key == 0) {
        decoder_go_to(d, GROUND);
        if (b < ' ')
            take_byte(d, b, now_ns);
        return;
    }
    if (key >= KEY_BASE_) {
        collect(d, b);
    } else { /* readline knows the character, not the keypad */
        d->seq[0] = (unsigned char)key;
        d->seq_len = 1;
    }
    decoder_finish_key(d, key, now_ns);
}

static void take_linux_f(struct decoder *d, unsigned char b, int64_t now_ns)
{
    collect(d, b);
    if (b >= 'A' && b <= 'E')
        decoder_finish_key(d, KEYS_F1 + (b - 'A'), now_ns);
    else
        decoder_go_to(d, GROUND);
}

static void take_x10(struct decoder *d, unsigned char b, int64_t now_ns)
{
    size_t start = d->seq[1] == ESC ? 3 : 2;

    collect(d, b);
    if (d->seq_len < start + 3)
        return;
    const unsigned char *m = d->seq + start;
    decoder_push_mouse(d, m[0] - 32, m[1] - 32, m[2] - 32, false, now_ns);
    decoder_go_to(d, GROUND);
}

/* Up to BEL or ESC \ ; what it says is of no interest. */
static void take_string(struct decoder *d, unsigned char b, int64_t now_ns)
{
    bool escaped = d->seq_len == 2;

    (void)now_ns;
    if (b == BEL || (escaped && b == '\\')) {
        decoder_go_to(d, GROUND);
        decoder_push_reply(d, REPLY_OTHER, 0, 0);
    } else {
        d->seq_len = 1;
        if (b == ESC)
            collect(d, b);
    }
}

static void take_byte(struct decoder *d, unsigned char b, int64_t now_ns)
{
    static void (*const take[])(struct decoder *, unsigned char, int64_t) = {
        [GROUND] = take_ground, [UTF8] = take_utf8,     [ESCAPE] = take_escape,
        [CSI] = take_csi,       [SS3] = take_ss3,       [LINUX_F] = take_linux_f,
        [X10_MOUSE] = take_x10, [STRING] = take_string,
    };

    if (d->state == PASTE) {
        take_pasted(d, b);
        return;
    }
    if (b == ESC && d->state != GROUND && d->state != ESCAPE && d->state != STRING)
        decoder_go_to(d, GROUND); /* ESC begins anew, whatever was under way */
    take[d->state](d, b, now_ns);
}

/* ---- the public part ------------------------------------------------------------------------ */

void decoder_init(struct decoder *d, const struct decoder_options *options)
{
    memset(d, 0, sizeof *d);
    d->options = *options;
    d->click.when_ns = INT64_MIN / 2;
}

void decoder_done(struct decoder *d)
{
    for (size_t i = d->head; i < d->n; i++)
        free((char *)d->queue[i].text);
    free(d->queue);
    free(d->handed_out);
    str_done(&d->paste);
}

void decoder_feed(struct decoder *d, const char *bytes, size_t len, int64_t now_ns)
{
    for (size_t i = 0; i < len; i++)
        take_byte(d, (unsigned char)bytes[i], now_ns);
    if (len > 0)
        d->since_ns = now_ns;
}

void decoder_await_reply(struct decoder *d, int64_t until_ns)
{
    d->await_until_ns = until_ns;
}

/* ESC, ESC [ and ESC O can be what a hand typed; anything longer cannot. */
static bool is_typed(const struct decoder *d)
{
    return d->state == ESCAPE ||
           ((d->state == CSI || d->state == SS3) && d->seq_len == (d->seq[1] == ESC ? 3 : 2));
}

int64_t decoder_deadline(const struct decoder *d)
{
    if (d->state == GROUND || d->state == UTF8)
        return INT64_MAX;
    if (d->state == PASTE)
        return d->since_ns + PASTE_NS;
    if (!is_typed(d))
        return d->since_ns + SEQUENCE_NS;
    if (d->since_ns < d->await_until_ns && d->options.escape_ns < PATIENT_ESCAPE_NS)
        return d->since_ns + PATIENT_ESCAPE_NS;
    return d->since_ns + d->options.escape_ns;
}

void decoder_expire(struct decoder *d, int64_t now_ns)
{
    if (now_ns < decoder_deadline(d))
        return;
    if (d->state == PASTE) {
        finish_paste(d);
        return;
    }
    if (is_typed(d)) {
        unsigned char last = d->seq[d->seq_len - 1];
        if (d->seq_len > 1 && d->seq[1] == ESC)
            decoder_push_key(d, ESC, "\033", 1, now_ns);
        if (last == ESC)
            decoder_push_key(d, ESC, "\033", 1, now_ns);
        else
            decoder_push_key(d, KEYMOD_ALT | last, (char[]){ESC, (char)last}, 2, now_ns);
    }
    decoder_go_to(d, GROUND);
}

bool decoder_next(struct decoder *d, struct term_event *out)
{
    free(d->handed_out);
    d->handed_out = NULL;
    if (d->head == d->n)
        return false;
    *out = d->queue[d->head++];
    d->handed_out = (char *)out->text;
    return true;
}
