/* Command lines. Each command has one table of options, from which its parsing and its --help come;
 * tests/cli/options.test holds the man page to it.
 *
 * A row names the option, says in one line what it does, and how its value gets into the caller's
 * struct: `take` writes at offset `at`. Several rows may write one field (aliases have no help). */
#ifndef FADER_CLI_OPTIONS_H
#define FADER_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "backend/backend.h"
#include "base/error.h"
#include "engine/sampler.h"

enum { EXIT_USAGE = 2 };

struct option_spec {
    const char *name;     /* "top-k": without dashes */
    int letter;           /* 'm', or 0 */
    const char *argument; /* "N"; "[=FILE]" for one that may lack; NULL: takes none */
    const char *help;     /* one line; NULL: an alias, or not for users */
    bool (*take)(const struct option_spec *spec, const char *value, void *field, struct error *err);
    size_t at;       /* of the field in the caller's struct */
    double min, max; /* of a number; for option_knob, min is the enum knob */
};

struct option_table {
    const char *command; /* "fader bench" */
    const char *usage;   /* what follows it on the command line: "[options]" */
    const char *about;   /* a sentence or two, may hold newlines; printed above the options */
    const struct option_spec *specs;
    size_t n;
    bool operands; /* words that are no options are the command's own business */
};

/* The ways to take a value, and the type of the field that each writes. */
bool option_flag(const struct option_spec *, const char *, void *field, struct error *); /* bool */
bool option_text(const struct option_spec *, const char *, void *field,
                 struct error *); /* const char * */
bool option_int(const struct option_spec *, const char *, void *field,
                struct error *); /* int32_t */
bool option_int64(const struct option_spec *, const char *, void *field,
                  struct error *); /* int64_t */
bool option_cache_type(const struct option_spec *, const char *, void *field,
                       struct error *); /* int */
bool option_knob(const struct option_spec *, const char *, void *field,
                 struct error *); /* knob_layer */
bool option_moves(const struct option_spec *, const char *, void *field,
                  struct error *); /* move_list */
bool option_optional(const struct option_spec *, const char *, void *field, struct error *);
/* const char *; "" when it has no value */

/* Reads argv[1...]. Values are pointers into argv. Returns the index of the first operand (argv is
 * permuted so that operands stand last; argc when there are none), or -1 with `err` (a usage error:
 * exit with EXIT_USAGE). */
int options_parse(const struct option_table *table, int argc, char **argv, void *out,
                  struct error *err);

/* The opening of every command: options_parse, and the help when it was asked for (`help` is a
 * field of `out`). -1: there is nothing left to do; *status is what to exit with. */
int options_open(const struct option_table *table, int argc, char **argv, void *out,
                 const bool *help, int *status);

/* Usage, about, and the list: one line for each option that has a help. */
void options_print_help(const struct option_table *table, FILE *to);
void options_print_list(const struct option_table *table, FILE *to);

/* Whole numbers and decimals as the command line takes them: all of `text`, within [min, max]. */
bool options_parse_whole(const char *text, double min, double max, int64_t *out);
bool options_parse_number(const char *text, double *out);

/* Says "fader: what: why" on standard error. Return EXIT_FAILURE and EXIT_USAGE. */
int cli_fail(const struct error *err);
int cli_fail_usage(const struct error *err, const struct option_table *table);

/* ---- the program's own options (the chat and -p) --------------------------------------------- */

struct knob_layer {
    bool has[KNOB_COUNT];
    double value[KNOB_COUNT];
};

struct move_list {
    struct move *items; /* owned */
    size_t n, cap;
};

struct options {
    const char *model, *prompt, *system, *preset, *theme, *file, *backend;
    const char *reopen;                    /* --continue: NULL: not asked for; "": the newest */
    int32_t predict;                       /* PREDICT_UNSET, or < 0: no limit */
    int32_t ctx_size, threads, batch_size; /* 0: not given */
    int64_t seed;                          /* -1: random; SEED_UNSET: not given */
    int cache_type;                        /* enum cache_type, or -1 */
    struct knob_layer knobs;
    struct move_list moves;
    bool raw, events, no_repack, no_save, plain, help, version;
};
enum { PREDICT_UNSET = INT32_MIN, SEED_UNSET = -2 };

extern const struct option_table fader_options;

void options_init(struct options *o); /* nothing given */
void options_done(struct options *o);

#endif
