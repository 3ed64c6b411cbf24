#include "config.h"

#include "app/keys.h"

#include <stdio.h>

#include "base/str.h"
#include "base/utf8.h"

enum { TAB = 9, LINE_FEED = 10, ENTER = 13, ESCAPE = 27, BACKSPACE = 127, CTRL_H = 8 };

#define CTRL(letter) ((letter)&31)
#define X(key)       (KEYMOD_CTRL_X | (key))
#define ALT(key)     (KEYMOD_ALT | (key))

const struct binding bindings[] = {
    {BIND_ANYWHERE, X(' '), ACTION_PAUSE},
    {BIND_ANYWHERE, KEYS_F5, ACTION_PAUSE},
    {BIND_ANYWHERE, X('.'), ACTION_STEP},
    {BIND_ANYWHERE, KEYS_F6, ACTION_STEP},
    {BIND_ANYWHERE, X('-'), ACTION_SLOWER},
    {BIND_ANYWHERE, KEYS_F7, ACTION_SLOWER},
    {BIND_ANYWHERE, X('+'), ACTION_FASTER},
    {BIND_ANYWHERE, X('='), ACTION_FASTER},
    {BIND_ANYWHERE, KEYS_F8, ACTION_FASTER},
    {BIND_ANYWHERE, X('p'), ACTION_PRESETS},
    {BIND_ANYWHERE, KEYS_F2, ACTION_PRESETS},
    {BIND_ANYWHERE, X('v'), ACTION_PANEL},
    {BIND_ANYWHERE, KEYS_F3, ACTION_PANEL},
    {BIND_ANYWHERE, X('h'), ACTION_HELP},
    {BIND_ANYWHERE, KEYS_F1, ACTION_HELP},
    {BIND_ANYWHERE, X('r'), ACTION_RETRY},
    {BIND_ANYWHERE, X('R'), ACTION_RETRY_SAME},
    {BIND_ANYWHERE, X(CTRL('E')), ACTION_EDITOR},
    {BIND_ANYWHERE, X(KEYS_LEFT), ACTION_NUDGE_LEFT},
    {BIND_ANYWHERE, X(KEYS_RIGHT), ACTION_NUDGE_RIGHT},
    {BIND_ANYWHERE, X(KEYS_UP), ACTION_FADER_UP},
    {BIND_ANYWHERE, X(KEYS_DOWN), ACTION_FADER_DOWN},
    {BIND_ANYWHERE, ALT('j'), ACTION_NUDGE_LEFT},
    {BIND_ANYWHERE, ALT('k'), ACTION_NUDGE_RIGHT},
    {BIND_ANYWHERE, ALT('i'), ACTION_FADER_UP},
    {BIND_ANYWHERE, ALT('m'), ACTION_FADER_DOWN},
    {BIND_ANYWHERE, TAB, ACTION_FOCUS_NEXT},
    {BIND_ANYWHERE, KEYS_BACKTAB, ACTION_FOCUS_PREVIOUS},
    {BIND_ANYWHERE, ALT(TAB), ACTION_FOCUS_PREVIOUS},
    {BIND_ANYWHERE, KEYS_PAGE_UP, ACTION_SCROLL_UP},
    {BIND_ANYWHERE, KEYS_PAGE_DOWN, ACTION_SCROLL_DOWN},
    {BIND_ANYWHERE, CTRL('C'), ACTION_STOP},
    {BIND_ANYWHERE, CTRL('L'), ACTION_REDRAW},
    {BIND_ANYWHERE, CTRL('Z'), ACTION_SUSPEND},

    {FOCUS_INPUT, ENTER, ACTION_SEND},
    {FOCUS_INPUT, LINE_FEED, ACTION_NEW_LINE},
    {FOCUS_INPUT, ALT(ENTER), ACTION_NEW_LINE},
    {FOCUS_INPUT, KEYS_HOME, ACTION_SCROLL_HOME}, /* on an empty line; else readline's */
    {FOCUS_INPUT, KEYS_END, ACTION_SCROLL_END},
    {FOCUS_INPUT, CTRL('D'), ACTION_QUIT}, /* likewise */
    {FOCUS_INPUT, ESCAPE, ACTION_STOP},    /* in an answer, on an empty line; else readline's */

    {FOCUS_FADERS, KEYS_UP, ACTION_FADER_UP},
    {FOCUS_FADERS, KEYS_DOWN, ACTION_FADER_DOWN},
    {FOCUS_FADERS, KEYS_LEFT, ACTION_NUDGE_LEFT},
    {FOCUS_FADERS, KEYS_RIGHT, ACTION_NUDGE_RIGHT},
    {FOCUS_FADERS, '<', ACTION_COARSE_LEFT},
    {FOCUS_FADERS, '>', ACTION_COARSE_RIGHT},
    {FOCUS_FADERS, BACKSPACE, ACTION_FADER_RESET},
    {FOCUS_FADERS, CTRL_H, ACTION_FADER_RESET},
    {FOCUS_FADERS, 'm', ACTION_FADER_MUTE},
    {FOCUS_FADERS, 'u', ACTION_FADER_UNDO},
    {FOCUS_FADERS, ' ', ACTION_PAUSE},
    {FOCUS_FADERS, ENTER, ACTION_FOCUS_INPUT},
    {FOCUS_FADERS, ESCAPE, ACTION_FOCUS_INPUT},

    {FOCUS_CANDIDATES, KEYS_UP, ACTION_CANDIDATE_UP},
    {FOCUS_CANDIDATES, KEYS_DOWN, ACTION_CANDIDATE_DOWN},
    {FOCUS_CANDIDATES, ENTER, ACTION_CANDIDATE_PICK},
    {FOCUS_CANDIDATES, ' ', ACTION_PAUSE},
    {FOCUS_CANDIDATES, ESCAPE, ACTION_FOCUS_INPUT},

    {FOCUS_TRANSCRIPT, KEYS_LEFT, ACTION_TOKEN_LEFT},
    {FOCUS_TRANSCRIPT, KEYS_RIGHT, ACTION_TOKEN_RIGHT},
    {FOCUS_TRANSCRIPT, KEYS_UP, ACTION_LINE_UP},
    {FOCUS_TRANSCRIPT, KEYS_DOWN, ACTION_LINE_DOWN},
    {FOCUS_TRANSCRIPT, KEYS_HOME, ACTION_SCROLL_HOME},
    {FOCUS_TRANSCRIPT, KEYS_END, ACTION_SCROLL_END},
    {FOCUS_TRANSCRIPT, '[', ACTION_VERSION_PREVIOUS},
    {FOCUS_TRANSCRIPT, ']', ACTION_VERSION_NEXT},
    {FOCUS_TRANSCRIPT, 'y', ACTION_COPY},
    {FOCUS_TRANSCRIPT, 'h', ACTION_HEAT},
    {FOCUS_TRANSCRIPT, ' ', ACTION_PAUSE},
    {FOCUS_TRANSCRIPT, ENTER, ACTION_FOCUS_INPUT},
    {FOCUS_TRANSCRIPT, ESCAPE, ACTION_FOCUS_INPUT},
};
const size_t n_bindings = sizeof bindings / sizeof bindings[0];

const struct action_help action_helps[] = {
    {ACTION_SEND, "send", "Enter", "", ""},
    {ACTION_NEW_LINE, "new line", "Ctrl-J, or \\ then Enter", "Alt-Enter",
     "Windows Terminal; macOS without Meta"},
    {ACTION_FOCUS_NEXT, "focus: input, faders, candidates, transcript", "Tab (completes after /)",
     "", ""},
    {ACTION_FOCUS_PREVIOUS, "focus, backwards", "Esc Tab", "Shift-Tab", "Linux console"},
    {ACTION_NUDGE_LEFT, "nudge the fader from the line", "^X Left, ^X Right", "Alt-j, Alt-k",
     "vi mode; macOS without Meta"},
    {ACTION_FADER_UP, "choose the fader from the line", "^X Up, ^X Down", "Alt-i, Alt-m",
     "vi mode; macOS without Meta"},
    {ACTION_PAUSE, "pause, go on", "^X Space", "F5", "laptops: fn"},
    {ACTION_STEP, "one word", "^X .", "F6", "laptops: fn"},
    {ACTION_SLOWER, "slower", "^X -", "F7", "laptops: fn"},
    {ACTION_FASTER, "faster", "^X +", "F8", "laptops: fn"},
    {ACTION_PRESETS, "presets", "^X p", "F2", "laptops: fn"},
    {ACTION_PANEL, "panel: desk, strip, bare", "^X v", "F3", "laptops: fn"},
    {ACTION_HELP, "help", "/help, ^X h", "F1", "GNOME Terminal takes F1"},
    {ACTION_RETRY, "retry with a new seed", "^X r", "", ""},
    {ACTION_RETRY_SAME, "retry with the same dice", "^X R", "", ""},
    {ACTION_EDITOR, "write in the editor", "^X ^E", "", ""},
    {ACTION_STOP, "stop the answer", "Ctrl-C", "Esc", "tmux before 3.5: half a second"},
    {ACTION_QUIT, "leave",
     "Ctrl-D on an empty line; /quit; Ctrl-C twice within 1.5 s, idle and empty", "", ""},
    {ACTION_SCROLL_UP, "scroll", "PgUp, PgDn", "wheel", ""},
    {ACTION_SCROLL_HOME, "to the ends", "Home, End on an empty line", "", ""},
    {ACTION_REDRAW, "draw the screen anew", "Ctrl-L", "", ""},
    {ACTION_SUSPEND, "suspend", "Ctrl-Z", "", ""},
};
const size_t n_action_helps = sizeof action_helps / sizeof action_helps[0];

enum action keys_find(enum focus focus, int key)
{
    enum action anywhere = ACTION_NONE;

    for (size_t i = 0; i < n_bindings; i++) {
        if (bindings[i].key != key)
            continue;
        if (bindings[i].where == (int)focus)
            return bindings[i].action;
        if (bindings[i].where == BIND_ANYWHERE)
            anywhere = bindings[i].action;
    }
    return anywhere;
}

/* ---- names ---------------------------------------------------------------------------------- */

static const struct {
    int key;
    const char *name;
} key_names[] = {
    {' ', "Space"},           {TAB, "Tab"},
    {ENTER, "Enter"},         {ESCAPE, "Esc"},
    {BACKSPACE, "Backspace"}, {KEYS_UP, "Up"},
    {KEYS_DOWN, "Down"},      {KEYS_LEFT, "Left"},
    {KEYS_RIGHT, "Right"},    {KEYS_HOME, "Home"},
    {KEYS_END, "End"},        {KEYS_PAGE_UP, "PgUp"},
    {KEYS_PAGE_DOWN, "PgDn"}, {KEYS_INSERT, "Ins"},
    {KEYS_DELETE, "Del"},     {KEYS_BACKTAB, "Shift-Tab"},
};

static void name_of(int key, bool after_ctrl_x, char out[16])
{
    for (size_t i = 0; i < sizeof key_names / sizeof key_names[0]; i++) {
        if (key_names[i].key == key) {
            snprintf(out, 16, "%s", key_names[i].name);
            return;
        }
    }
    if (key >= KEYS_F1 && key <= KEYS_F12) {
        snprintf(out, 16, "F%d", key - KEYS_F1 + 1);
    } else if (key >= 0 && key < 32) {
        snprintf(out, 16, "%s%c", after_ctrl_x ? "^" : "Ctrl-", key + '@');
    } else {
        char utf8[4];
        size_t n = utf8_encode((uint32_t)key, utf8);
        snprintf(out, 16, "%.*s", (int)n, utf8);
    }
}

void keys_format(int key, char out[24])
{
    char name[16], all[40];
    bool after = (key & KEYMOD_CTRL_X) != 0;

    name_of(key & ~(KEYMOD_CTRL_X | KEYMOD_ALT | KEYMOD_CTRL | KEYMOD_SHIFT), after, name);
    snprintf(all, sizeof all, "%s%s%s%s%s", after ? "^X " : "", key & KEYMOD_CTRL ? "Ctrl-" : "",
             key & KEYMOD_ALT ? "Alt-" : "", key & KEYMOD_SHIFT ? "Shift-" : "", name);
    snprintf(out, 24, "%.23s", all);
}

/* ---- /keys ---------------------------------------------------------------------------------- */

static const struct {
    enum action action;
    const char *what;
} place_helps[] = {
    {ACTION_FADER_UP, "the fader above"},
    {ACTION_FADER_DOWN, "the fader below"},
    {ACTION_NUDGE_LEFT, "less, fine"},
    {ACTION_NUDGE_RIGHT, "more, fine"},
    {ACTION_COARSE_LEFT, "less, coarse"},
    {ACTION_COARSE_RIGHT, "more, coarse"},
    {ACTION_FADER_RESET, "back to the preset"},
    {ACTION_FADER_MUTE, "mute, and back"},
    {ACTION_FADER_UNDO, "undo"},
    {ACTION_PAUSE, "pause, go on"},
    {ACTION_CANDIDATE_UP, "the candidate above"},
    {ACTION_CANDIDATE_DOWN, "the candidate below"},
    {ACTION_CANDIDATE_PICK, "go on with this one instead"},
    {ACTION_TOKEN_LEFT, "token before"},
    {ACTION_TOKEN_RIGHT, "token after"},
    {ACTION_LINE_UP, "line up"},
    {ACTION_LINE_DOWN, "line down"},
    {ACTION_VERSION_PREVIOUS, "version before"},
    {ACTION_VERSION_NEXT, "version after"},
    {ACTION_COPY, "copy"},
    {ACTION_HEAT, "surprise as heat, on and off"},
    {ACTION_SCROLL_HOME, "to the start"},
    {ACTION_SCROLL_END, "to the end"},
    {ACTION_FOCUS_INPUT, "back to the input line"},
};

/* One line for each action of a place, with all of its keys. */
static void describe_place(struct str *out, enum focus focus, const char *title, const char *more)
{
    str_add_format(out, "\n%s\n", title);
    for (size_t i = 0; i < sizeof place_helps / sizeof place_helps[0]; i++) {
        struct str keys = STR_INIT;
        for (size_t j = 0; j < n_bindings; j++) {
            char name[24];
            if (bindings[j].where != (int)focus || bindings[j].key == CTRL_H ||
                bindings[j].action != place_helps[i].action)
                continue;
            keys_format(bindings[j].key, name);
            str_add_format(&keys, "%s%s", keys.len > 0 ? ", " : "", name);
        }
        if (keys.len > 0)
            str_add_format(out, "  %-14s %s\n", keys.data, place_helps[i].what);
        str_done(&keys);
    }
    str_add_text(out, more);
}

void keys_describe(struct str *out)
{
    for (size_t i = 0; i < n_action_helps; i++) {
        const struct action_help *h = &action_helps[i];
        str_add_format(out, "%s\n    %s", h->what, h->everywhere);
        if (*h->fast != '\0')
            str_add_format(out, ", or %s", h->fast);
        if (*h->fails != '\0')
            str_add_format(out, " (not everywhere: %s)", h->fails);
        str_add_char(out, '\n');
    }
    describe_place(out, FOCUS_FADERS, "In the faders",
                   "  0-9 .          an exact value\n"
                   "  a letter or /  goes to the input line with that key\n");
    describe_place(out, FOCUS_CANDIDATES, "In the candidates", "");
    describe_place(out, FOCUS_TRANSCRIPT, "In the transcript", "");
}

static const char *help_of(enum action action)
{
    for (size_t i = 0; i < n_action_helps; i++) {
        if (action_helps[i].action == action)
            return action_helps[i].what;
    }
    for (size_t i = 0; i < sizeof place_helps / sizeof place_helps[0]; i++) {
        if (place_helps[i].action == action)
            return place_helps[i].what;
    }
    return NULL;
}

void keys_explain(int key, char *out, size_t size)
{
    static const char *const places[FOCUS_COUNT] = {
        [FOCUS_INPUT] = "in the line",
        [FOCUS_FADERS] = "in the faders",
        [FOCUS_CANDIDATES] = "in the candidates",
        [FOCUS_TRANSCRIPT] = "in the transcript",
    };
    struct str s = STR_INIT;
    char name[24];

    keys_format(key, name);
    str_add_format(&s, "%s: ", name);
    size_t start = s.len;
    for (size_t i = 0; i < n_bindings; i++) {
        const struct binding *b = &bindings[i];
        const char *what = help_of(b->action);
        if (b->key != key || what == NULL)
            continue;
        str_add_format(&s, "%s%s", s.len > start ? "; " : "", what);
        if (b->where != BIND_ANYWHERE)
            str_add_format(&s, " (%s)", places[b->where]);
    }
    if (s.len == start)
        str_add_text(&s, key > ' ' && key < 127 ? "text" : "readline's");
    snprintf(out, size, "%s", s.data);
    str_done(&s);
}

/* ---- the hint line -------------------------------------------------------------------------- */

static const struct key_hint hints_idle[] = {
    {"^X+arrows", "nudge"}, {"Tab", "faders"}, {"F2", "presets"},
    {"^X r", "retry"},      {"/help", ""},     {NULL, NULL},
};
static const struct key_hint hints_answering[] = {
    {"F5", "pause"},   {"F7/F8", "pace"}, {"^X+arrows", "nudge"}, {"Ctrl-C", "stop"},
    {"Tab", "faders"}, {"/help", ""},     {NULL, NULL},
};
static const struct key_hint hints_paused[] = {
    {"F5", "go on"},   {"F6", "one word"}, {"^X+arrows", "nudge"}, {"Tab", "faders"},
    {"F2", "presets"}, {"/help", ""},      {NULL, NULL},
};
static const struct key_hint hints_faders[] = {
    {"Left/Right", "fine"}, {"< >", "coarse"},  {"0-9", "value"},  {"m", "mute"},
    {"u", "undo"},          {"Space", "pause"}, {"Enter", "back"}, {NULL, NULL},
};
static const struct key_hint hints_faders_paused[] = {
    {"Left/Right", "fine"}, {"< >", "coarse"},  {"0-9", "value"},  {"m", "mute"},
    {"u", "undo"},          {"Space", "go on"}, {"Enter", "back"}, {NULL, NULL},
};
static const struct key_hint hints_candidates[] = {
    {"Up/Down", "choose"}, {"Enter", "go on with it"}, {"Space", "pause"}, {"Esc", "back"},
    {NULL, NULL},
};
static const struct key_hint hints_candidates_paused[] = {
    {"Up/Down", "choose"}, {"Enter", "go on with it"}, {"Space", "go on"}, {"Esc", "back"},
    {NULL, NULL},
};
static const struct key_hint hints_transcript[] = {
    {"arrows", "move"}, {"[ ]", "versions"}, {"y", "copy"},
    {"h", "heat"},      {"Enter", "back"},   {NULL, NULL},
};

const struct key_hint *keys_hints(enum focus focus, bool answering, bool paused)
{
    switch (focus) {
    case FOCUS_FADERS:
        return paused ? hints_faders_paused : hints_faders;
    case FOCUS_CANDIDATES:
        return paused ? hints_candidates_paused : hints_candidates;
    case FOCUS_TRANSCRIPT:
        return hints_transcript;
    default:
        return paused ? hints_paused : answering ? hints_answering : hints_idle;
    }
}
