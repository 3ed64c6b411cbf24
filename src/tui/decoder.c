#include "config.h"

#include "tui/decoder.h"

#include <stdlib.h>
#include <string.h>

#include "app/keys.h"
#include "base/mem.h"
#include "base/utf8.h"

#define MS ((int64_t)1000000)

static const int64_t REPEAT_NS = 1000 * MS;        /* ^X arrow, arrow, arrow ... */
static const int64_t DOUBLE_CLICK_NS = 400 * MS;
static const int64_t PATIENT_ESCAPE_NS = 200 * MS; /* while a reply is awaited */
static const int64_t SEQUENCE_NS = 2000 * MS;      /* a sequence that never ends is dropped */
static const int64_t PASTE_NS = 5000 * MS;         /* a paste that never ends is delivered */

enum { CTRL_C = 3, BEL = 7, CTRL_X = 0x18, ESC = 0x1B, DEL = 0x7F };
enum { PASTE_MAX = 1 << 20, PARAMS_MAX = 8 };
static const char PASTE_END[] = "\033[201~";

enum state {
    GROUND,
    UTF8,       /* in a character */
    ESCAPE,     /* ESC */
    CSI,        /* ESC [ */
    SS3,        /* ESC O */
    LINUX_F,    /* ESC [ [: the Linux console's F1 - F5 */
    X10_MOUSE,  /* ESC [ M: three bytes follow */
    STRING,     /* an OSC, DCS or APC: a reply to somebody */
    PASTE
};

/* ---- events out ----------------------------------------------------------------------------- */

static void push(struct decoder *d, const struct term_event *event)
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

static void push_key(struct decoder *d, int key, const void *raw, size_t raw_len, int64_t now_ns)
{
    struct term_event event = {.kind = TERM_KEY, .key = key};

    set_raw(&event, raw, raw_len);
    if (key == CTRL_X && !d->has_prefix) {
        d->has_prefix = true;
        return;
    }
    if (join_prefix(d, &event, now_ns))
        push(d, &event);
}

static void push_reply(struct decoder *d, enum term_reply reply, int a, int b)
{
    push(d, &(struct term_event){.kind = TERM_REPLY, .reply = reply, .reply_a = a, .reply_b = b});
}

static void go_to(struct decoder *d, enum state state)
{
    d->state = state;
    if (state == GROUND)
        d->seq_len = 0;
}

/* The sequence is complete and is `key`; a second ESC in front of it was Alt. */
static void finish_key(struct decoder *d, int key, int64_t now_ns)
{
    if (d->seq_len > 1 && d->seq[0] == ESC && d->seq[1] == ESC)
        key |= KEYMOD_ALT;
    push_key(d, key, d->seq, d->seq_len, now_ns);
    go_to(d, GROUND);
}

/* ---- names ---------------------------------------------------------------------------------- */

static int key_of_byte(const struct decoder *d, unsigned char c)
{
    return c == '\b' && d->options.backspace_is_h ? DEL : c;
}

struct name {
    int code, key;
};

/* Final bytes of CSI and SS3; the lower-case arrows are rxvt's (CSI: Shift, SS3: Ctrl). */
static const struct name final_names[] = {
    {'A', KEYS_UP},  {'B', KEYS_DOWN}, {'C', KEYS_RIGHT},   {'D', KEYS_LEFT}, {'H', KEYS_HOME},
    {'F', KEYS_END}, {'P', KEYS_F1},   {'Q', KEYS_F2},      {'R', KEYS_F3},   {'S', KEYS_F4},
    {'a', KEYS_UP},  {'b', KEYS_DOWN}, {'c', KEYS_RIGHT},   {'d', KEYS_LEFT},
};

/* CSI n ~ */
static const struct name tilde_names[] = {
    {1, KEYS_HOME},    {2, KEYS_INSERT},    {3, KEYS_DELETE}, {4, KEYS_END}, {5, KEYS_PAGE_UP},
    {6, KEYS_PAGE_DOWN}, {7, KEYS_HOME},    {8, KEYS_END},    {11, KEYS_F1}, {12, KEYS_F2},
    {13, KEYS_F3},     {14, KEYS_F4},       {15, KEYS_F5},    {17, KEYS_F6}, {18, KEYS_F7},
    {19, KEYS_F8},     {20, KEYS_F9},       {21, KEYS_F10},   {23, KEYS_F11}, {24, KEYS_F12},
};

/* SS3, a keypad in application mode. */
static const struct name keypad_names[] = {
    {'M', '\r'}, {'X', '='}, {'j', '*'}, {'k', '+'}, {'l', ','}, {'m', '-'}, {'n', '.'}, {'o', '/'},
    {'p', '0'},  {'q', '1'}, {'r', '2'}, {'s', '3'}, {'t', '4'}, {'u', '5'}, {'v', '6'}, {'w', '7'},
    {'x', '8'},  {'y', '9'},
};

#define FIND_NAME(table, code) find_name(table, sizeof(table) / sizeof(table)[0], code)

static int find_name(const struct name *names, size_t n, int code)
{
    for (size_t i = 0; i < n; i++)
        if (names[i].code == code)
            return names[i].key;
    return 0;
}

/* xterm's modifier parameter: 1 + bits shift, alt, ctrl, meta. */
static int modifiers(int param)
{
    int bits = param > 0 ? param - 1 : 0;

    return ((bits & 1) ? KEYMOD_SHIFT : 0) | ((bits & (2 | 8)) ? KEYMOD_ALT : 0) |
           ((bits & 4) ? KEYMOD_CTRL : 0);
}

/* ---- CSI ------------------------------------------------------------------------------------ */

struct csi {
    unsigned char private, intermediate, final; /* 0: none */
    int param[PARAMS_MAX];                      /* 0: absent */
    int n;
};

/* Takes d->seq apart: ESC [ private params intermediate final. Parameters after a colon are dropped. */
static struct csi parse_csi(const struct decoder *d)
{
    struct csi c = {0};
    size_t i = d->seq[1] == ESC ? 3 : 2;
    bool sub = false;

    c.final = d->seq[d->seq_len - 1];
    c.n = 1;
    for (; i + 1 < d->seq_len; i++) {
        unsigned char b = d->seq[i];
        if (b >= '<' && b <= '?') {
            c.private = b;
        } else if (b == ';') {
            sub = false;
            if (c.n < PARAMS_MAX)
                c.n++;
        } else if (b == ':') {
            sub = true;
        } else if (b >= '0' && b <= '9' && !sub) {
            int *p = &c.param[c.n - 1];
            *p = *p > 0xFFFFFF ? *p : *p * 10 + (b - '0');
        } else if (b < '0') {
            c.intermediate = b;
        }
    }
    return c;
}

/* A key that came as a number (CSI code ; mods u, CSI 27 ; mods ; code ~). Readline is given what an
 * ordinary terminal would have sent, or nothing where there is no such thing (Shift-Enter). */
static void finish_coded_key(struct decoder *d, int code, int mods, int64_t now_ns)
{
    char raw[8];
    size_t n = 0;

    go_to(d, GROUND);
    if (code <= 0 || code > 0x10FFFF || (code >= 0xE000 && code <= 0xF8FF)) /* kitty's names of other keys */
        return;
    if (code == '\t' && (mods & KEYMOD_SHIFT)) {
        push_key(d, KEYS_BACKTAB, "\033[Z", 3, now_ns);
        return;
    }
    if ((mods & KEYMOD_CTRL) && (code == ' ' || (code >= '@' && code < DEL))) {
        code &= 0x1F;
        mods &= ~KEYMOD_CTRL;
    }
    if (code != '\r')
        mods &= ~KEYMOD_SHIFT;
    if (mods & KEYMOD_ALT)
        raw[n++] = ESC;
    n += utf8_encode((uint32_t)code, raw + n);
    push_key(d, code | mods, raw, (mods & (KEYMOD_CTRL | KEYMOD_SHIFT)) ? 0 : n, now_ns);
}

static void count_clicks(struct decoder *d, struct term_event *event, int64_t now_ns)
{
    bool again = now_ns - d->click.when_ns < DOUBLE_CLICK_NS && d->click.x == event->mouse.x &&
                 d->click.y == event->mouse.y && d->click.button == event->mouse.button;

    d->click.count = again ? d->click.count + 1 : 1;
    d->click.when_ns = now_ns;
    d->click.x = event->mouse.x;
    d->click.y = event->mouse.y;
    d->click.button = event->mouse.button;
    event->mouse.clicks = d->click.count;
}

/* `code` as in the SGR encoding; x and y from 1. */
static void push_mouse(struct decoder *d, int code, int x, int y, bool release, int64_t now_ns)
{
    struct term_event event = {.kind = TERM_MOUSE};
    int low = code & 3;

    if (x < 1 || y < 1 || code >= 128)
        return;
    event.mouse.x = x - 1;
    event.mouse.y = y - 1;
    event.mouse.mods = ((code & 4) ? KEYMOD_SHIFT : 0) | ((code & 8) ? KEYMOD_ALT : 0) |
                       ((code & 16) ? KEYMOD_CTRL : 0);
    if (code & 64) {
        if (low > 1)
            return; /* sideways */
        event.mouse.kind = low == 0 ? MOUSE_WHEEL_UP : MOUSE_WHEEL_DOWN;
    } else if (release || low == 3) {
        event.mouse.kind = MOUSE_RELEASE;
        event.mouse.button = low < 3 ? low + 1 : d->button; /* X10 does not say which */
        if (d->button == 0 || (code & 32))
            return;
        d->button = 0;
    } else {
        event.mouse.kind = (code & 32) ? MOUSE_DRAG : MOUSE_PRESS;
        event.mouse.button = d->button = low + 1;
        if (event.mouse.kind == MOUSE_PRESS)
            count_clicks(d, &event, now_ns);
    }
    push(d, &event);
}

static void finish_reply(struct decoder *d, const struct csi *c)
{
    if (c->final == 'y' && c->intermediate == '$' && c->private == '?' && c->param[0] == 2026)
        push_reply(d, REPLY_SYNC, c->param[1], 0);
    else
        push_reply(d, REPLY_OTHER, 0, 0);
    go_to(d, GROUND);
}

static void finish_tilde(struct decoder *d, const struct csi *c, int64_t now_ns)
{
    int key = FIND_NAME(tilde_names, c->param[0]), mods = modifiers(c->param[1]);

    if (c->param[0] == 200) {
        go_to(d, PASTE);
        d->paste_match = 0;
        str_clear(&d->paste);
        return;
    }
    if (c->param[0] == 27 && c->n >= 3) {
        finish_coded_key(d, c->param[2], mods, now_ns);
        return;
    }
    if (c->final == '$' || c->final == '@') /* rxvt */
        mods |= KEYMOD_SHIFT;
    if (c->final == '^' || c->final == '@')
        mods |= KEYMOD_CTRL;
    if (key != 0)
        finish_key(d, key | mods, now_ns);
    else
        go_to(d, GROUND);
}

/* A complete CSI sequence lies in d->seq. */
static void finish_csi(struct decoder *d, int64_t now_ns)
{
    struct csi c = parse_csi(d);

    if (c.private == '<' && (c.final == 'M' || c.final == 'm')) {
        push_mouse(d, c.param[0], c.param[1], c.param[2], c.final == 'm', now_ns);
        go_to(d, GROUND);
    } else if (c.private != 0 || c.intermediate != 0) {
        finish_reply(d, &c);
    } else if (c.final == 'R' && c.n == 2 && c.param[0] > 1) { /* CSI 1 ; mods R is F3 */
        push_reply(d, REPLY_CURSOR, c.param[0], c.param[1]);
        go_to(d, GROUND);
    } else if (strchr("~^$@", c.final) != NULL) {
        finish_tilde(d, &c, now_ns);
    } else if (c.final == 'u') {
        finish_coded_key(d, c.param[0], modifiers(c.param[1]), now_ns);
    } else if (c.final == 'Z') {
        finish_key(d, KEYS_BACKTAB, now_ns);
    } else {
        int key = FIND_NAME(final_names, c.final), mods = modifiers(c.param[1]);
        if (c.final >= 'a')
            mods |= KEYMOD_SHIFT;
        if (key != 0)
            finish_key(d, key | mods, now_ns);
        else
            go_to(d, GROUND);
    }
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
    go_to(d, GROUND);
    event.text = text != NULL ? text : mem_strdup("");
    event.len = strlen(event.text);
    d->has_prefix = false;
    push(d, &event);
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
        finish_key(d, key_of_byte(d, b), now_ns);
    if (d->state == UTF8 && utf8_unfinished((const char *)d->seq, 1) == 0)
        go_to(d, GROUND); /* no character begins like this */
}

static void take_utf8(struct decoder *d, unsigned char b, int64_t now_ns)
{
    size_t start = d->seq[0] == ESC ? 1 : 0;
    const char *bytes = (const char *)d->seq + start;
    uint32_t c;
    bool valid;

    if ((b & 0xC0) != 0x80) { /* cut off: the new byte counts */
        go_to(d, GROUND);
        take_byte(d, b, now_ns);
        return;
    }
    collect(d, b);
    if (utf8_unfinished(bytes, d->seq_len - start) > 0)
        return;
    utf8_decode(bytes, d->seq_len - start, &c, &valid);
    if (!valid)
        go_to(d, GROUND);
    else
        finish_key(d, (int)c | (start > 0 ? KEYMOD_ALT : 0), now_ns);
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
        push_key(d, ESC, "\033", 1, now_ns);
        return;
    }
    if (b == '[' || b == 'O') {
        collect(d, b);
        d->state = b == '[' ? CSI : SS3;
        return;
    }
    if (twice) { /* Esc, then Alt with a key */
        push_key(d, ESC, "\033", 1, now_ns);
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
            go_to(d, GROUND);
    } else if (b == '\t') {
        finish_key(d, KEYS_BACKTAB, now_ns);
    } else {
        finish_key(d, KEYMOD_ALT | key_of_byte(d, b), now_ns);
    }
}

static void take_csi(struct decoder *d, unsigned char b, int64_t now_ns)
{
    size_t start = d->seq[1] == ESC ? 3 : 2;
    bool first = d->seq_len == start;

    if (b < ' ' || b >= DEL) { /* no part of a sequence: that one is dropped */
        go_to(d, GROUND);
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
            go_to(d, GROUND);
        return;
    }
    collect(d, b);
    if (final)
        finish_csi(d, now_ns);
}

static void take_ss3(struct decoder *d, unsigned char b, int64_t now_ns)
{
    int key = FIND_NAME(final_names, b);

    if (key != 0 && b >= 'a')
        key |= KEYMOD_CTRL;
    if (key == 0)
        key = FIND_NAME(keypad_names, b);
    if (key == 0) {
        go_to(d, GROUND);
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
    finish_key(d, key, now_ns);
}

static void take_linux_f(struct decoder *d, unsigned char b, int64_t now_ns)
{
    collect(d, b);
    if (b >= 'A' && b <= 'E')
        finish_key(d, KEYS_F1 + (b - 'A'), now_ns);
    else
        go_to(d, GROUND);
}

static void take_x10(struct decoder *d, unsigned char b, int64_t now_ns)
{
    size_t start = d->seq[1] == ESC ? 3 : 2;

    collect(d, b);
    if (d->seq_len < start + 3)
        return;
    const unsigned char *m = d->seq + start;
    push_mouse(d, m[0] - 32, m[1] - 32, m[2] - 32, false, now_ns);
    go_to(d, GROUND);
}

/* Up to BEL or ESC \ ; what it says is of no interest. */
static void take_string(struct decoder *d, unsigned char b, int64_t now_ns)
{
    bool escaped = d->seq_len == 2;

    (void)now_ns;
    if (b == BEL || (escaped && b == '\\')) {
        go_to(d, GROUND);
        push_reply(d, REPLY_OTHER, 0, 0);
    } else {
        d->seq_len = 1;
        if (b == ESC)
            collect(d, b);
    }
}

static void take_byte(struct decoder *d, unsigned char b, int64_t now_ns)
{
    static void (*const take[])(struct decoder *, unsigned char, int64_t) = {
        [GROUND] = take_ground,   [UTF8] = take_utf8,     [ESCAPE] = take_escape,
        [CSI] = take_csi,         [SS3] = take_ss3,       [LINUX_F] = take_linux_f,
        [X10_MOUSE] = take_x10,   [STRING] = take_string,
    };

    if (d->state == PASTE) {
        take_pasted(d, b);
        return;
    }
    if (b == ESC && d->state != GROUND && d->state != ESCAPE && d->state != STRING)
        go_to(d, GROUND); /* ESC begins anew, whatever was under way */
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
            push_key(d, ESC, "\033", 1, now_ns);
        if (last == ESC)
            push_key(d, ESC, "\033", 1, now_ns);
        else
            push_key(d, KEYMOD_ALT | last, (char[]){ESC, (char)last}, 2, now_ns);
    }
    go_to(d, GROUND);
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
