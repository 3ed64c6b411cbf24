/* The parts of the view: tui.c (life cycle, what app asks of it, when to draw), tui_act.c (focus,
 * overlays, actions), tui_keys.c and tui_mouse.c (events), tui_draw.c and tui_lines.c (frames).
 * Private to src/tui. */
#ifndef FADER_TUI_TUI_IMPL_H
#define FADER_TUI_TUI_IMPL_H

#include "app/app.h"
#include "config/theme.h"
#include "tui/canvas.h"
#include "tui/input.h"
#include "tui/layout.h"
#include "tui/page.h"
#include "tui/picker.h"
#include "tui/screen.h"
#include "tui/scrollback.h"
#include "tui/styles.h"
#include "tui/terminal.h"

enum overlay { OVERLAY_NONE, OVERLAY_PAGE, OVERLAY_PRESETS };
enum drag { DRAG_NONE, DRAG_FADER, DRAG_SELECT };
enum { PANEL_EVERY_NS = 100000000 }; /* while words stream by, its numbers change this often */
enum { TYPED_MAX = 16, MATCHES_MAX = 256, INPUT_ROWS_MAX = 256 };

/* What shows in the panel at once when it changes: what a hand does there. */
struct panel_hand {
    uint32_t version; /* of the control */
    enum focus focus;
    enum knob selected;
    int candidate;
    char typed[TYPED_MAX];
};

struct tui {
    struct app *app;
    struct theme *theme;
    struct styles styles;
    enum glyph_set glyphs; /* in use, never GLYPHS_AUTO */
    struct screen screen;
    struct canvas *canvas;
    struct layout layout;
    struct scrollback scrollback;
    enum panel_mode panel; /* as wished */
    enum focus focus;
    int status; /* exit status that a signal asked for */

    unsigned changed; /* enum app_change, since the last frame */
    bool dirty;       /* a frame is due */
    bool urgent;      /* it answers a key */
    bool anew;        /* every region must be drawn */
    double budget;    /* frames that may be drawn now, refilled FRAMES_PER_SECOND a second */
    int64_t refilled_ns;
    int64_t panel_ns;             /* when the candidates were drawn last ... */
    struct panel_hand panel_hand; /* ... and what the hand had set then */

    enum overlay overlay;
    struct page page;
    bool explains_keys; /* the page is that of the keys: it says of each what arrived */
    char key_text[128]; /* ... of the last one */
    struct picker picker;
    char **matches; /* completions listed over the input, owned; NULL: none */
    size_t n_matches;
    char notice[512]; /* what the message line shows; "" = nothing */
    enum style notice_style;
    int64_t notice_until_ns; /* when it goes by itself; 0: it does not */
    bool notice_was_long;    /* it stood over the transcript */
    const char *question;    /* waits for one key; NULL: none */

    char typed[TYPED_MAX]; /* an exact value for the selected fader; "" = none */
    enum drag drag;
    enum knob drag_knob;
    struct place drag_from;
    bool selection_told;  /* how to select without us was said */
    int64_t interrupt_ns; /* the last Ctrl-C that found nothing to stop */
    int64_t escape_ns;    /* the last Esc that found nothing to stop; 0: other keys came after it */
    int64_t answering_ns; /* when an answer was last seen under way */
};

/* tui.c */
void tui_changed(struct tui *t, bool by_key); /* something is to be drawn */

/* tui_act.c */
void tui_set_focus(struct tui *t, enum focus focus);
void tui_open_presets(struct tui *t);
void tui_close_overlay(struct tui *t);
void tui_clear_matches(struct tui *t);
void tui_redraw_all(struct tui *t);           /* nothing on the terminal is trusted */
bool tui_act(void *view, enum action action); /* view_ops.act */
void tui_copy_selection(struct tui *t);

/* tui_draw.c */
void tui_draw(struct tui *t, int64_t now_ns);
struct rect tui_overlay_area(const struct tui *t);

/* tui_lines.c */
struct input_picture {
    struct input_row rows[INPUT_ROWS_MAX];
    size_t n, cursor_row, top;
    int cursor_column;
};
enum { INPUT_MARGIN = 1 };
void tui_lay_input(struct input_picture *p, int cols);
void tui_draw_input(struct tui *t, const struct input_picture *p);
void tui_choose_notice(struct tui *t, int64_t now_ns);
bool tui_notice_is_long(const struct tui *t);
void tui_draw_bottom(struct tui *t);
/* A text wrapped into an area; returns how many rows it takes (c NULL: only counts). */
int tui_draw_wrapped(struct canvas *c, struct rect area, enum style style, const char *text);

/* tui_keys.c, tui_mouse.c */
void tui_events(void *view); /* takes all there are */
void tui_handle(struct tui *t, const struct term_event *event);
void tui_overlay_key(struct tui *t, int key);
void tui_handle_mouse(struct tui *t, const struct term_event *event);

#endif
