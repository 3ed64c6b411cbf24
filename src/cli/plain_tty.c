/* The terminal of a chat without a screen: whose modes it has. */
#include "config.h"

#include "cli/plain_impl.h"

#include <errno.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <readline/readline.h>

#include "tui/signals.h"

/* Readline would give the modes back with every line. */
static void keep_modes(void)
{
}

static void set_modes(const struct termios *modes)
{
    while (tcsetattr(STDIN_FILENO, TCSADRAIN, modes) != 0 && errno == EINTR)
        ;
}

static void note_typed_ahead(struct plain *p)
{
    if (!(p->shell_modes.c_lflag & ICANON) || ioctl(STDIN_FILENO, FIONREAD, &p->typed_ahead) != 0)
        p->typed_ahead = 0;
}

void plain_tty_open(struct plain *p)
{
    if (tcgetattr(STDIN_FILENO, &p->shell_modes) == 0)
        signals_set_rescue("", STDIN_FILENO, &p->shell_modes);
    rl_deprep_term_function = keep_modes;
}

void plain_tty_adopt(struct plain *p)
{
    tcgetattr(STDIN_FILENO, &p->own_modes);
    note_typed_ahead(p);
}

void plain_tty_take(struct plain *p)
{
    struct termios theirs;
    bool were_ours = tcgetattr(STDIN_FILENO, &theirs) == 0 && !(theirs.c_lflag & ICANON);

    set_modes(&p->own_modes);
    if (!were_ours)
        note_typed_ahead(p);
}

void plain_tty_lend(struct plain *p)
{
    set_modes(&p->shell_modes);
}

/* A Ctrl-D that was typed in the shell's modes is a mark in the terminal's queue, and that reads as
 * a NUL in ours. */
int plain_tty_read_byte(struct plain *p)
{
    int c = rl_getc(stdin);

    if (p->typed_ahead <= 0)
        return c;
    p->typed_ahead--;
    return c == '\0' ? p->shell_modes.c_cc[VEOF] : c;
}
