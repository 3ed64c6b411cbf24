/* The terminal: taken, read, and always given back. There is one, so there is no handle.
 *
 * terminal_open puts the tty into raw mode, starts curses on the alternate screen, and turns on
 * bracketed paste, the mouse, and (once the terminal has said that it knows it) synchronised
 * output. From then on this module is the only reader of the tty; curses' getch is never called.
 * However the program ends (terminal_close, exit, a fatal signal, memory running out) the terminal
 * is left as it was found. Handlers only set flags and write a byte into a pipe: everything else
 * happens in terminal_next_event.
 *
 * Life cycle: terminal_set_locale -> terminal_open -> terminal_next_event ... -> terminal_close. UI
 * thread only; other threads block all asynchronous signals. */
#ifndef FADER_TUI_TERMINAL_H
#define FADER_TUI_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "tui/decoder.h"

/* LC_CTYPE from the environment, never LC_NUMERIC; where that is not UTF-8, C.UTF-8. False when
 * neither can be had. Call before any text is measured, screen or not. */
bool terminal_set_locale(void);

/* Is there a terminal to draw on: standard input and output are one, and TERM is not dumb? */
bool terminal_is_usable(void);

/* Takes standard input and output. False with `err` (terminal as before) when curses does not know
 * TERM. After it stdscr exists; nothing has been drawn yet, and no reply is waited for. */
bool terminal_open(bool mouse, struct error *err);
void terminal_close(void); /* as it was found; fine when not open */

/* What to poll for input, and for signals. Either readable, or the deadline passed:
 * terminal_next_event. */
int terminal_fd(void);
int terminal_signal_fd(void);
int64_t terminal_deadline(void); /* monotonic ns; INT64_MAX: none */

/* The next event, without waiting; false when there is none. Reads the tty, resizes curses, stops
 * and goes on (SIGTSTP, SIGCONT). */
bool terminal_next_event(struct term_event *out);

void terminal_size(int *rows, int *cols); /* in cells, as curses has it */

/* Lends the terminal to another program (an editor) and takes it back; then draw everything. Nests
 * not. */
void terminal_suspend(void);
void terminal_resume(void);

/* Ctrl-Z: gives the terminal back, stops the job, and returns when it is continued, with every mode
 * set again: then draw everything. */
void terminal_stop(void);

void terminal_set_mouse(bool on); /* whether the terminal reports it */

/* Around the doupdate of a frame: the terminal shows it at once where it can. */
void terminal_frame_begin(void);
void terminal_frame_end(void);

/* Columns that the terminal gave to one '●': 1 or 2; 0 while it has not answered (it may never). A
 * TERM_REPLY event of REPLY_CURSOR says that it has. */
int terminal_glyph_columns(void);

/* Sends text to the terminal's clipboard (OSC 52; nothing confirms it). False with `err` when it is
 * too long. */
bool terminal_copy(const char *text, size_t len, struct error *err);

/* Rings the bell. */
void terminal_beep(void);

#endif
