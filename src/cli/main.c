/* fader: the first word names a command; without one it is the chat, or one answer. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/nearest.h"
#include "cli/bench.h"
#include "cli/chat.h"
#include "cli/ledger_cmd.h"
#include "cli/models.h"
#include "cli/oneshot.h"
#include "cli/options.h"
#include "cli/presets.h"
#include "cli/replay.h"
#include "cli/sample.h"
#include "cli/score.h"
#include "cli/tokenize.h"
#include "tui/terminal.h"

struct command {
    const char *name;
    const char *help;
    int (*run)(int argc, char **argv); /* argv[0] is the command's name; returns the exit status */
};

static const struct command commands[] = {
    {"bench", "measure start, prefill, decode and memory", cmd_bench},
    {"ledger", "what the KV cache costs, of a model or of numbers", cmd_ledger},
    {"tokenize", "text on standard input to token ids, and back", cmd_tokenize},
    {"score", "log-probability and rank of each token on standard input", cmd_score},
    {"sample", "one sampling step on logits given as JSON, stage by stage", cmd_sample},
    {"presets", "list, show, check and import presets", cmd_presets},
    {"models", "the GGUF files found on this computer", cmd_models},
    {"replay", "make the answers of a saved conversation again", cmd_replay},
};

static const struct command *find_command(const char *name)
{
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}

static int refuse_command(const char *name)
{
    struct nearest nearest;
    struct error err;

    nearest_init(&nearest, name);
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
        nearest_offer(&nearest, commands[i].name);
    if (nearest.best != NULL)
        error_set(&err, "%s: no such command; did you mean %s?", name, nearest.best);
    else
        error_set(&err, "%s: no such command; a prompt stands after -p", name);
    return cli_fail_usage(&err, &fader_options);
}

static void print_help(void)
{
    printf("usage: fader [options]                 chat with a model in this terminal\n"
           "       fader -p TEXT [options]         one answer, streamed to standard output\n"
           "       fader COMMAND [options]         one of these; each has a --help\n\ncommands:\n");
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
        printf("  %-28s %s\n", commands[i].name, commands[i].help);
    options_print_list(&fader_options, stdout);
}

/* What could not be written is an error, unless its reader has simply left, or something else went
 * wrong already (a terminal that hung up takes standard output with it). */
static int finish_output(int status)
{
    struct error err;
    int why = fflush(stdout) == 0 ? 0 : errno;

    if (status != EXIT_SUCCESS || why == EPIPE || (why == 0 && !ferror(stdout)))
        return status;
    if (why != 0)
        error_set_errno(&err, why, "standard output");
    else
        error_set(&err, "standard output: not all of it could be written");
    return cli_fail(&err);
}

/* Without a prompt: standard input is one where it is no terminal, unless --plain asks for the
 * chat. */
static bool wants_one_answer(const struct options *o)
{
    if (o->prompt != NULL || o->file != NULL)
        return true;
    return !isatty(STDIN_FILENO) && !o->plain;
}

/* What only makes sense for one answer, or only for the chat. */
static bool check_mode(const struct options *o, struct error *err)
{
    bool one = wants_one_answer(o);

    if (!one && (o->raw || o->events || o->moves.n > 0))
        return error_set(err, "--%s: only with -p, -f or a prompt on standard input",
                         o->raw      ? "raw"
                         : o->events ? "events"
                                     : "at");
    if (one && o->reopen != NULL)
        return error_set(err, "--continue: only for the chat");
    if (o->raw && o->system != NULL)
        return error_set(err, "--raw: there is no system prompt without a chat template");
    return true;
}

static int run_without_command(int argc, char **argv)
{
    struct options o;
    struct error err;
    int status;

    options_init(&o);
    if (options_parse(&fader_options, argc, argv, &o, &err) < 0) {
        status = cli_fail_usage(&err, &fader_options);
    } else if (o.help) {
        print_help();
        status = EXIT_SUCCESS;
    } else if (o.version) {
        printf("fader %s\n", PACKAGE_VERSION);
        status = EXIT_SUCCESS;
    } else if (!check_mode(&o, &err)) {
        status = cli_fail_usage(&err, &fader_options);
    } else if (wants_one_answer(&o)) {
        status = oneshot_run(&o);
    } else {
        status = chat_run(&o);
    }
    options_done(&o);
    return status;
}

/* A standard descriptor that is closed would be the next file's: a model read as standard input, an
 * answer written into a transcript. Something takes its place that fails as the closed one did. */
static void fill_standard_descriptors(void)
{
    static const int modes[] = {O_WRONLY, O_RDONLY, O_RDONLY};

    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF && open("/dev/null", modes[fd]) < 0)
            _exit(EXIT_FAILURE);
}

int main(int argc, char **argv)
{
    const struct command *command = argc > 1 ? find_command(argv[1]) : NULL;

    fill_standard_descriptors();
    terminal_set_locale();
    if (argc > 1 && command == NULL && argv[1][0] != '-')
        return refuse_command(argv[1]);
    return finish_output(command != NULL ? command->run(argc - 1, argv + 1)
                                         : run_without_command(argc, argv));
}
