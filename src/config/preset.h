/* Presets: sampling profiles in YAML, one a file (fader-presets(5)). */
#ifndef FADER_CONFIG_PRESET_H
#define FADER_CONFIG_PRESET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "engine/sampler.h"

struct preset {
    char *name;           /* "poetry": the file's stem, or its name: key */
    char *path;           /* where it was read; NULL for built in */
    char *description;    /* one sentence, or NULL */
    char *system;         /* system prompt, or NULL: the model's own */
    struct knobs knobs;   /* neutral-filled: a key that is absent holds the built-in default */
    bool has[KNOB_COUNT]; /* which keys the file had */
    bool has_order, has_exempt;
    int64_t seed;       /* -1: random, or absent */
    int32_t max_tokens; /* 0: absent */
    char **tries;       /* prompts worth trying, NULL-terminated; may be NULL */
};

/* Complaints that do not stop a load: unknown keys, with line and column. */
struct preset_warnings {
    char **items;
    size_t n, cap;
};
void preset_warnings_done(struct preset_warnings *w);

/* Reads one file. NULL with `err` (file:line:column: what) on bad YAML or a value out of range. */
struct preset *preset_load_file(const char *path, struct preset_warnings *warnings,
                                struct error *err);
/* By name: the user's folder first, then the shipped ones; "default" exists always. The error of an
 * unknown name suggests the nearest. */
struct preset *preset_load(const char *name, struct preset_warnings *warnings, struct error *err);
void preset_free(struct preset *p);

/* Saves under the user's folder as NAME.yaml, atomically; a name is letters, digits, - _ . and
 * blanks inside. *path (may be NULL) gets where, owned by the caller. Overwrites only when
 * `replace`. */
bool preset_save(const struct preset *p, bool replace, char **path, struct error *err);

/* Names of all presets, shipped ones in the order of interface.md 6 first, then the
 * user's by name. */
struct preset_entry {
    char *name, *path;
    char *description; /* or NULL */
    char *problem;     /* why it does not load, or NULL */
    bool user;
};
struct preset_list {
    struct preset_entry *items;
    size_t n, cap;
};
void preset_list_all(struct preset_list *out);
void preset_list_done(struct preset_list *list);

/* Reads another program's file: text-generation-webui YAML, SillyTavern or KoboldAI JSON, an Ollama
 * Modelfile, a Hugging Face generation_config.json. Recognised by content. Keys that fader has no
 * use for become warnings. */
struct preset *preset_import(const char *path, struct preset_warnings *warnings, struct error *err);

/* Writes the preset as YAML text. */
struct str;
void preset_format(const struct preset *p, struct str *out);

#endif
