#include "config.h"

#include "tui/input.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <readline/readline.h>
#include <readline/history.h>

#include "app/app.h"
#include "app/keys.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/utf8.h"
#include "tui/completion.h"
#include "tui/editor.h"
#include "tui/history_file.h"
#include "tui/textwidth.h"

enum { CTRL_D = 4 };

static struct {
    bool open;
    struct input_hooks hooks;
    FILE *nowhere;   /* where readline prints to */
    struct str feed; /* bytes that readline has not read yet, from `fed` on */
    size_t fed;
    char *entered; /* a line was accepted; owned */
    struct str prompt;
    bool listed; /* completions are shown */
} in;

/* ---- what readline asks of us --------------------------------------------------------------- */

/* The next byte. Whole keys are fed, so it is never asked for one that is not there, but by a
 * sequence that no binding completes: then it is told the input ended, which only means that it
 * gives up on it. */
static int next_byte(FILE *stream)
{
    (void)stream;
    return in.fed < in.feed.len ? (unsigned char)in.feed.data[in.fed++] : EOF;
}

/* Is an ESC followed by more? What decides between vi's Escape and a key that begins with one. */
static int has_byte(void)
{
    return in.fed < in.feed.len;
}

static void no_prep(int meta)
{
    (void)meta;
}

static void no_deprep(void)
{
}

/* Readline would draw now. The view does, at its next frame. */
static void note_change(void)
{
    if (in.open)
        in.hooks.changed(in.hooks.ctx);
}

static void accept_line(char *line)
{
    if (line == NULL) /* the end of its input: no such thing here, Ctrl-D is taken before */
        return;
    free(in.entered);
    in.entered = line;
}

static void list_matches(char **matches, int n, int longest)
{
    (void)longest;
    in.listed = true;
    in.hooks.matches(in.hooks.ctx, matches + 1, (size_t)n);
}

/* ---- life cycle ----------------------------------------------------------------------------- */

static void set_variables(void)
{
    rl_readline_name = "fader";
    rl_catch_signals = 0;
    rl_catch_sigwinch = 0;
    rl_change_environment = 0;
    rl_instream = stdin;
    rl_outstream = in.nowhere;
    rl_getc_function = next_byte;
    rl_input_available_hook = has_byte;
    rl_prep_term_function = no_prep;
    rl_deprep_term_function = no_deprep;
    rl_redisplay_function = note_change;
    rl_completion_display_matches_hook = list_matches;
    rl_variable_bind("show-all-if-ambiguous", "on"); /* INPUTRC, read later, may say otherwise */
}

/* With its own redisplay replaced readline asks terminfo nothing, so what it would have found there
 * is bound here. */
static void bind_keys(void)
{
    static const struct {
        const char *sequence;
        rl_command_func_t *function;
    } keys[] = {
        {"\033[1~", rl_beg_of_line},     {"\033[4~", rl_end_of_line},
        {"\033[7~", rl_beg_of_line},     {"\033[8~", rl_end_of_line},
        {"\033[3~", rl_delete},          {"\033[1;5C", rl_forward_word},
        {"\033[1;5D", rl_backward_word}, {"\033[1;3C", rl_forward_word},
        {"\033[1;3D", rl_backward_word}, {"\033Oc", rl_forward_word},
        {"\033Od", rl_backward_word},    {"\033[3;5~", rl_kill_word},
        {"\033[2~", rl_overwrite_mode},
    };
    Keymap keymaps[] = {rl_get_keymap_by_name("emacs"), rl_get_keymap_by_name("vi-insert"),
                        rl_get_keymap_by_name("vi-move")};

    for (size_t m = 0; m < sizeof keymaps / sizeof keymaps[0]; m++)
        for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
            rl_bind_keyseq_if_unbound_in_map(keys[i].sequence, keys[i].function, keymaps[m]);
}

void input_open(struct app *app, const struct input_hooks *hooks)
{
    memset(&in, 0, sizeof in);
    in.hooks = *hooks;
    in.nowhere = fopen("/dev/null", "we");
    set_variables();
    completion_set_up(app);
    history_file_open(!app->options.no_save);
    rl_callback_handler_install("> ", accept_line);
    rl_variable_bind("bell-style", "none"); /* it would ring past curses */
    bind_keys();
    in.open = true;
}

void input_close(void)
{
    if (!in.open)
        return;
    in.open = false;
    rl_callback_handler_remove();
    rl_outstream = stdout;
    history_file_close();
    if (in.nowhere != NULL)
        fclose(in.nowhere);
    free(in.entered);
    str_done(&in.feed);
    str_done(&in.prompt);
}

/* ---- state ---------------------------------------------------------------------------------- */

const char *input_text(void)
{
    if (rl_line_buffer == NULL)
        return "";
    rl_line_buffer[rl_end] = '\0'; /* not all of readline's commands do so */
    return rl_line_buffer;
}

size_t input_cursor(void)
{
    return rl_point > 0 ? (size_t)rl_point : 0;
}

bool input_is_empty(void)
{
    return *input_text() == '\0';
}

bool input_is_searching(void)
{
    return RL_ISSTATE(RL_STATE_ISEARCH | RL_STATE_NSEARCH | RL_STATE_NUMERICARG |
                      RL_STATE_MULTIKEY | RL_STATE_VIMOTION | RL_STATE_CHARSEARCH) != 0;
}

static bool in_keymap(const char *name)
{
    return rl_get_keymap() == rl_get_keymap_by_name(name);
}

bool input_takes_escape(void)
{
    return input_is_searching() || in_keymap("vi-insert");
}

bool input_wants_tab(void)
{
    const char *text = input_text();

    return text[0] == '/' && text[1] != '/';
}

/* The mode, where INPUTRC asks to see it; what stands between \1 and \2 is for terminals. */
static void add_mode(struct str *out)
{
    const char *wanted = rl_variable_value("show-mode-in-prompt"), *mode;
    bool hidden = false;

    if (wanted == NULL || strcmp(wanted, "on") != 0)
        return;
    mode = rl_variable_value(in_keymap("vi-insert") ? "vi-ins-mode-string"
                             : in_keymap("vi-move") ? "vi-cmd-mode-string"
                                                    : "emacs-mode-string");
    for (; mode != NULL && *mode != '\0'; mode++) {
        if (*mode == '\001' || *mode == '\002')
            hidden = *mode == '\001';
        else if (!hidden)
            str_add_char(out, *mode);
    }
}

const char *input_prompt(void)
{
    str_clear(&in.prompt);
    add_mode(&in.prompt);
    str_add_text(&in.prompt, rl_display_prompt != NULL ? rl_display_prompt : "> ");
    return str_text(&in.prompt);
}

/* ---- lines of a text that has several ------------------------------------------------------- */

static size_t line_start(const char *text, size_t at)
{
    while (at > 0 && text[at - 1] != '\n')
        at--;
    return at;
}

static size_t line_end(const char *text, size_t at)
{
    return at + strcspn(text + at, "\n");
}

/* The cursor one line up or down, in the same column where that is; false at the first or last
 * line. */
static bool move_line(int direction)
{
    const char *text = input_text();
    size_t start = line_start(text, input_cursor()), end = line_end(text, input_cursor());
    int column = text_width(text + start, input_cursor() - start);

    if (direction < 0 ? start == 0 : text[end] == '\0')
        return false;
    size_t to = direction < 0 ? line_start(text, start - 1) : end + 1;
    rl_point = (int)(to + text_fit(text + to, line_end(text, to) - to, column));
    return true;
}

static bool kill_to_line_end(void)
{
    size_t at = input_cursor(), end = line_end(input_text(), at);

    if (input_text()[end] == '\0')
        return false;
    rl_kill_text((int)at, (int)(end > at ? end : at + 1));
    return true;
}

/* Readline's commands that mean a line: in a text of several they mean the one with the cursor.
 * False: let readline do it. */
static bool act_within_lines(const struct term_event *event)
{
    const char *text = input_text();
    rl_command_func_t *f =
        rl_function_of_keyseq_len((const char *)event->raw, event->raw_len, rl_get_keymap(), NULL);
    bool done = false;

    if (strchr(text, '\n') == NULL || event->raw_len == 0)
        return false;
    if (f == rl_get_previous_history)
        done = move_line(-1);
    else if (f == rl_get_next_history)
        done = move_line(1);
    else if (f == rl_kill_line)
        done = kill_to_line_end();
    else if (f == rl_beg_of_line || f == rl_end_of_line) {
        size_t at = input_cursor();
        rl_point = (int)(f == rl_beg_of_line ? line_start(text, at) : line_end(text, at));
        done = true;
    }
    if (done)
        note_change();
    return done;
}

/* ---- input ---------------------------------------------------------------------------------- */

/* The text that readline gave out as entered goes to whoever waits for it, outside of readline. */
static void hand_over(void)
{
    char *text = in.entered;

    in.entered = NULL;
    if (text == NULL)
        return;
    history_file_add(text);
    note_change();
    in.hooks.entered(in.hooks.ctx, text);
    free(text);
}

static void forget_matches(void)
{
    if (in.listed) {
        in.listed = false;
        in.hooks.matches(in.hooks.ctx, NULL, 0);
    }
}

static void feed(const void *bytes, size_t len)
{
    str_add(&in.feed, bytes, len);
    while (in.open && in.fed < in.feed.len)
        rl_callback_read_char();
    str_clear(&in.feed);
    in.fed = 0;
    hand_over();
}

/* A sequence that nothing is bound to would be typed out, but for its first bytes. */
static bool is_known(const struct term_event *event)
{
    int type = ISKMAP;
    bool sequence = event->raw_len > 2 && event->raw[0] == ESC;

    if (!sequence || input_is_searching())
        return event->raw_len > 0;
    return rl_function_of_keyseq_len((const char *)event->raw, event->raw_len, rl_get_keymap(),
                                     &type) != NULL &&
           type != ISKMAP;
}

static bool is_modified_enter(int key)
{
    int mods = key & (KEYMOD_ALT | KEYMOD_CTRL | KEYMOD_SHIFT);

    return key == '\n' || (mods != 0 && key == (mods | '\r'));
}

void input_feed(const struct term_event *event)
{
    bool busy = input_is_searching();

    forget_matches();
    if (!busy && event->key == '\r')
        input_send();
    else if (!busy && is_modified_enter(event->key))
        input_new_line();
    else if (!busy && event->key == CTRL_D && input_is_empty())
        in.hooks.eof(in.hooks.ctx);
    else if (!busy && act_within_lines(event))
        return;
    else if (is_known(event))
        feed(event->raw, event->raw_len);
}

/* Ends a search or a half-entered key; the line stays. */
static void leave_search(void)
{
    if (!input_is_searching())
        return;
    rl_callback_sigcleanup();
    rl_clear_message();
}

void input_paste(const char *text, size_t len)
{
    char *copy = mem_strndup(text, len);

    forget_matches();
    leave_search();
    rl_begin_undo_group();
    rl_insert_text(copy);
    rl_end_undo_group();
    free(copy);
    note_change();
}

void input_new_line(void)
{
    input_paste("\n", 1);
}

void input_send(void)
{
    size_t at = input_cursor();

    if (at > 0 && input_text()[at - 1] == '\\') {
        rl_begin_undo_group();
        rl_delete_text((int)at - 1, (int)at);
        rl_point = (int)at - 1;
        rl_insert_text("\n");
        rl_end_undo_group();
        note_change();
        return;
    }
    leave_search();
    feed("\r", 1);
}

void input_set_text(const char *text)
{
    forget_matches();
    leave_search();
    rl_replace_line(text, 1);
    rl_point = rl_end;
    note_change();
}

void input_cancel(void)
{
    forget_matches();
    leave_search();
    rl_free_line_state();
    rl_replace_line("", 1);
    rl_point = 0;
    using_history();
    note_change();
}

bool input_edit(struct error *err)
{
    char *text;

    if (!editor_run(input_text(), &text, err))
        return false;
    input_set_text(text);
    free(text);
    return true;
}

/* ---- layout --------------------------------------------------------------------------------- */

int input_indent(int width)
{
    const char *prompt = input_prompt();
    int columns = text_width(prompt, strlen(prompt));

    return columns <= width / 2 ? columns : width / 2;
}

static void put_row(struct input_row *rows, size_t max_rows, size_t n, size_t start, size_t end)
{
    if (n < max_rows)
        rows[n] = (struct input_row){start, end};
}

size_t input_layout(int width, struct input_row *rows, size_t max_rows, size_t *cursor_row,
                    int *cursor_column)
{
    const char *text = input_text();
    size_t len = strlen(text), cursor = input_cursor(), n = 0, start = 0, at = 0;
    int indent = input_indent(width), room = width - indent, column = 0;
    struct grapheme g;

    *cursor_row = 0;
    *cursor_column = indent;
    for (; at < len; at += g.len) {
        text_next(text + at, len - at, &g);
        int columns = g.kind == GRAPHEME_TAB ? text_tab_width(column) : g.width;
        if (g.kind != GRAPHEME_NEWLINE && column > 0 && column + columns > room) {
            put_row(rows, max_rows, n++, start, at);
            start = at;
            column = 0;
        }
        if (cursor >= at && cursor < at + g.len) {
            *cursor_row = n;
            *cursor_column = indent + column;
        }
        column += columns;
        if (g.kind == GRAPHEME_NEWLINE) {
            put_row(rows, max_rows, n++, start, at);
            start = at + g.len;
            column = 0;
        }
    }
    if (cursor >= len && column >= room) { /* the cursor needs a place of its own */
        put_row(rows, max_rows, n++, start, len);
        start = len;
        column = 0;
    }
    put_row(rows, max_rows, n, start, len);
    if (cursor >= len) {
        *cursor_row = n;
        *cursor_column = indent + column;
    }
    return n + 1;
}
