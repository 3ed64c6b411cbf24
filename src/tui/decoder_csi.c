/* What sequences mean: names of keys, CSI with its parameters, the mouse, replies. */
#include "config.h"

#include "tui/decoder_impl.h"

#include <string.h>

#include "app/keys.h"
#include "base/utf8.h"

static const int64_t DOUBLE_CLICK_NS = 400 * MS;
enum { PARAMS_MAX = 8 };

/* ---- names ---------------------------------------------------------------------------------- */

struct name {
    int code, key;
};

/* Final bytes of CSI and SS3; the lower-case arrows are rxvt's (CSI: Shift, SS3: Ctrl). */
static const struct name final_names[] = {
    {'A', KEYS_UP},  {'B', KEYS_DOWN}, {'C', KEYS_RIGHT}, {'D', KEYS_LEFT}, {'H', KEYS_HOME},
    {'F', KEYS_END}, {'P', KEYS_F1},   {'Q', KEYS_F2},    {'R', KEYS_F3},   {'S', KEYS_F4},
    {'a', KEYS_UP},  {'b', KEYS_DOWN}, {'c', KEYS_RIGHT}, {'d', KEYS_LEFT},
};

/* CSI n ~ */
static const struct name tilde_names[] = {
    {1, KEYS_HOME},      {2, KEYS_INSERT}, {3, KEYS_DELETE}, {4, KEYS_END},  {5, KEYS_PAGE_UP},
    {6, KEYS_PAGE_DOWN}, {7, KEYS_HOME},   {8, KEYS_END},    {11, KEYS_F1},  {12, KEYS_F2},
    {13, KEYS_F3},       {14, KEYS_F4},    {15, KEYS_F5},    {17, KEYS_F6},  {18, KEYS_F7},
    {19, KEYS_F8},       {20, KEYS_F9},    {21, KEYS_F10},   {23, KEYS_F11}, {24, KEYS_F12},
};

/* SS3, a keypad in application mode. */
static const struct name keypad_names[] = {
    {'M', '\r'}, {'X', '='}, {'j', '*'}, {'k', '+'}, {'l', ','}, {'m', '-'},
    {'n', '.'},  {'o', '/'}, {'p', '0'}, {'q', '1'}, {'r', '2'}, {'s', '3'},
    {'t', '4'},  {'u', '5'}, {'v', '6'}, {'w', '7'}, {'x', '8'}, {'y', '9'},
};

#define FIND_NAME(table, code) find_name(table, sizeof(table) / sizeof(table)[0], code)

static int find_name(const struct name *names, size_t n, int code)
{
    for (size_t i = 0; i < n; i++)
        if (names[i].code == code)
            return names[i].key;
    return 0;
}

int decoder_ss3_key(unsigned char final)
{
    int key = FIND_NAME(final_names, final);

    if (key == 0)
        return FIND_NAME(keypad_names, final);
    return final >= 'a' ? key | KEYMOD_CTRL : key;
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

/* Takes d->seq apart: ESC [ private params intermediate final. Parameters after a colon are
 * dropped. */
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

/* A key that came as a number (CSI code ; mods u, CSI 27 ; mods ; code ~). Readline is given what
 * an ordinary terminal would have sent, or nothing where there is no such thing (Shift-Enter). */
static void finish_coded_key(struct decoder *d, int code, int mods, int64_t now_ns)
{
    char raw[8];
    size_t n = 0;

    decoder_go_to(d, GROUND);
    if (code <= 0 || code > 0x10FFFF ||
        (code >= 0xE000 && code <= 0xF8FF)) /* kitty's names of other keys */
        return;
    if (code == '\t' && (mods & KEYMOD_SHIFT)) {
        decoder_push_key(d, KEYS_BACKTAB, "\033[Z", 3, now_ns);
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
    decoder_push_key(d, code | mods, raw, (mods & (KEYMOD_CTRL | KEYMOD_SHIFT)) ? 0 : n, now_ns);
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
void decoder_push_mouse(struct decoder *d, int code, int x, int y, bool release, int64_t now_ns)
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
    decoder_push(d, &event);
}

static void finish_reply(struct decoder *d, const struct csi *c)
{
    if (c->final == 'y' && c->intermediate == '$' && c->private == '?' && c->param[0] == 2026)
        decoder_push_reply(d, REPLY_SYNC, c->param[1], 0);
    else
        decoder_push_reply(d, REPLY_OTHER, 0, 0);
    decoder_go_to(d, GROUND);
}

static void finish_tilde(struct decoder *d, const struct csi *c, int64_t now_ns)
{
    int key = FIND_NAME(tilde_names, c->param[0]), mods = modifiers(c->param[1]);

    if (c->param[0] == 200) {
        decoder_go_to(d, PASTE);
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
        decoder_finish_key(d, key | mods, now_ns);
    else
        decoder_go_to(d, GROUND);
}

/* A complete CSI sequence lies in d->seq. */
void decoder_finish_csi(struct decoder *d, int64_t now_ns)
{
    struct csi c = parse_csi(d);

    if (c.private == '<' && (c.final == 'M' || c.final == 'm')) {
        decoder_push_mouse(d, c.param[0], c.param[1], c.param[2], c.final == 'm', now_ns);
        decoder_go_to(d, GROUND);
    } else if (c.private != 0 || c.intermediate != 0) {
        finish_reply(d, &c);
    } else if (c.final == 'R' && c.n == 2 && c.param[0] > 1) { /* CSI 1 ; mods R is F3 */
        decoder_push_reply(d, REPLY_CURSOR, c.param[0], c.param[1]);
        decoder_go_to(d, GROUND);
    } else if (strchr("~^$@", c.final) != NULL) {
        finish_tilde(d, &c, now_ns);
    } else if (c.final == 'u') {
        finish_coded_key(d, c.param[0], modifiers(c.param[1]), now_ns);
    } else if (c.final == 'Z') {
        decoder_finish_key(d, KEYS_BACKTAB, now_ns);
    } else {
        int key = FIND_NAME(final_names, c.final), mods = modifiers(c.param[1]);
        if (c.final >= 'a')
            mods |= KEYMOD_SHIFT;
        if (key != 0)
            decoder_finish_key(d, key | mods, now_ns);
        else
            decoder_go_to(d, GROUND);
    }
}
