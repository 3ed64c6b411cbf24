/* What app asks of a chat without a screen. */
#include "config.h"

#include "cli/plain_impl.h"

#include <poll.h>
#include <string.h>
#include <unistd.h>

#include <readline/readline.h>

#include "app/app.h"
#include "cli/plain_text.h"
#include "config/preset.h"
#include "tui/editor.h"
#include "tui/signals.h"

bool *plain_at_start(struct plain *p, FILE *out)
{
    return out == stdout ? &p->starts_line : &p->notes_start_line;
}

void plain_print(struct plain *p, FILE *out, const char *text, size_t len)
{
    struct str safe = STR_INIT;

    plain_text_add(&safe, text, len);
    if (safe.len > 0) {
        fwrite(safe.data, 1, safe.len, out);
        *plain_at_start(p, out) = safe.data[safe.len - 1] == '\n';
    }
    str_done(&safe);
}

void plain_start_line(struct plain *p, FILE *out)
{
    if (!*plain_at_start(p, out))
        fputc('\n', out);
    *plain_at_start(p, out) = true;
}

bool plain_edit_text(void *view, const char *text, char **out, struct error *err)
{
    struct plain *p = view;

    if (!p->by_hand)
        return error_set(err, "edit: standard input is not a terminal");
    plain_tty_lend(p);
    signals_lend(true);
    bool edited = editor_run(text, out, err);
    signals_lend(false);
    plain_tty_take(p);
    return edited;
}

static bool copy(void *view, const char *text, struct error *err)
{
    (void)view;
    (void)text;
    return error_set(err, "copy: a plain terminal has no clipboard; /export writes a file");
}

void plain_set_input(void *view, const char *text)
{
    struct plain *p = view;

    if (!p->by_hand)
        return;
    rl_replace_line(text, 1);
    rl_point = rl_end;
    if (p->shown)
        rl_forced_update_display();
}

static void show_page(void *view, const char *title, const char *text)
{
    struct plain *p = view;

    plain_start_line(p, p->notes);
    fprintf(p->notes, "-- %s --\n", title);
    plain_print(p, p->notes, text, strlen(text));
    plain_start_line(p, p->notes);
}

static void pick_preset(void *view)
{
    struct plain *p = view;
    struct str text = STR_INIT;
    struct preset_list list;

    preset_list_all(&list);
    plain_start_line(p, p->notes);
    for (size_t i = 0; i < list.n; i++) {
        const struct preset_entry *e = &list.items[i];
        bool current = strcmp(e->name, p->app->desk.preset_name) == 0;
        const char *about = e->problem != NULL ? e->problem : e->description;
        str_add_format(&text, "%c %-14s %s\n", current ? '>' : ' ', e->name,
                       about != NULL ? about : "");
    }
    plain_print(p, p->notes, str_text(&text), text.len);
    str_done(&text);
    preset_list_done(&list);
}

static bool set_theme(void *view, const char *name, struct error *err)
{
    (void)view;
    (void)name;
    return error_set(err, "theme: a plain terminal has no colours");
}

/* Waits for one of `keys`; Enter, Ctrl-D, Ctrl-C or the end of the terminal is no answer. Nothing
 * else is looked at meanwhile: the generator fills its ring and waits. */
static bool confirm_choice(void *view, const char *question, const char *keys, char *answer)
{
    struct plain *p = view;
    int key = 0;

    if (!p->by_hand)
        return false;
    plain_start_line(p, p->notes);
    fprintf(p->notes, "%s [%s] ", question, keys);
    *plain_at_start(p, p->notes) = false;
    while (key == 0) {
        struct pollfd fds[2] = {{STDIN_FILENO, POLLIN, 0}, {signals_fd(), POLLIN, 0}};
        fflush(p->notes);
        if (poll(fds, 2, -1) < 0)
            continue; /* a signal: its byte is in the pipe */
        if (fds[1].revents != 0 && plain_heed_signals(p))
            break;
        if (fds[0].revents == 0)
            continue;
        int c = plain_tty_read_byte(p);
        if (c < 0 || c == '\r' || c == '\n' || c == p->shell_modes.c_cc[VEOF])
            break;
        if (c > 0 && c < 128 && strchr(keys, c) != NULL)
            key = c;
    }
    if (key != 0)
        fputc(key, p->notes);
    plain_start_line(p, p->notes);
    *answer = (char)key;
    return key != 0;
}

static bool act(void *view, enum action action)
{
    (void)view;
    (void)action;
    return false;
}

const struct view_ops plain_view_ops = {
    .changed = plain_changed,
    .act = act,
    .edit_text = plain_edit_text,
    .copy = copy,
    .set_input = plain_set_input,
    .show_page = show_page,
    .pick_preset = pick_preset,
    .set_theme = set_theme,
    .confirm_choice = confirm_choice,
};
