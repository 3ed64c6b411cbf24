#include "config.h"

#include "tui/completion.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <readline/readline.h>

#include "app/command.h"
#include "base/mem.h"

static struct app *completed_app;

static size_t common_prefix(const char *a, const char *b, size_t len)
{
    size_t n = 0;

    while (n < len && a[n] == b[n])
        n++;
    while (n > 0 && ((unsigned char)a[n] & 0xC0) == 0x80) /* never half a character */
        n--;
    return n;
}

/* Readline's form: what all have in common, then the words; a single word alone. Takes `words`. */
static char **with_common_prefix(char **words)
{
    size_t n = 0, len = strlen(words[0]);

    while (words[n] != NULL)
        n++;
    if (n == 1)
        return words;
    for (size_t i = 1; i < n; i++)
        len = common_prefix(words[0], words[i], len);
    words = mem_realloc_array(words, n + 2, sizeof *words);
    memmove(words + 1, words, (n + 1) * sizeof *words);
    words[0] = mem_strndup(words[1], len);
    return words;
}

static char **complete(const char *word, int start, int end)
{
    char **words = NULL;

    (void)end;
    rl_attempted_completion_over = 1;
    rl_completion_append_character = ' ';
    if (rl_line_buffer[0] != '/')
        return NULL;
    if (command_completes_file(rl_line_buffer, (size_t)start)) {
        rl_attempted_completion_over = 0; /* readline's own turn */
        return NULL;
    }
    words = command_complete(completed_app, rl_line_buffer, (size_t)start, word);
    if (words == NULL || words[0] == NULL) {
        free(words);
        return NULL;
    }
    return with_common_prefix(words);
}

void completion_set_up(struct app *app)
{
    completed_app = app;
    rl_attempted_completion_function = complete;
    rl_basic_word_break_characters = " \t\n";
    rl_completer_word_break_characters = " \t\n";
    rl_completer_quote_characters = "";
}
