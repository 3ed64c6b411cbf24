/* From a tree to a preset: fader's own files, and those of other programs, through one table of
 * keys. Internal to config; preset.c and import.c are its callers. */
#ifndef FADER_CONFIG_PRESET_READ_H
#define FADER_CONFIG_PRESET_READ_H

#include <stdbool.h>

#include "base/error.h"
#include "config/preset.h"
#include "config/tree.h"

/* Whose keys, defaults and order a file speaks in. Bits: a key belongs to several. */
enum dialect {
    DIALECT_FADER = 1,
    DIALECT_WEBUI = 2,  /* text-generation-webui */
    DIALECT_TAVERN = 4, /* SillyTavern and KoboldAI */
    DIALECT_OLLAMA = 8,
    DIALECT_HF = 16,   /* generation_config.json */
    DIALECT_LLAMA = 32 /* llama.cpp's command line */
};
const char *dialect_name(enum dialect d);

/* A preset with the built-in knobs, nothing said about them, and a copy of `name`. */
struct preset *preset_new(const char *name);

/* The file's name without folder and .yaml, .yml, .json; owned by the caller. */
char *preset_stem(const char *path);

/* Whether it may name a preset's file. `err` says why not. */
bool preset_check_name(const char *name, struct error *err);

/* Fills a preset from the map `root`. False with `err` at the first wrong value. For another
 * program's dialect every knob that the file leaves out has that program's default, and the order
 * and exemption are its own. `file` is for messages. */
bool preset_read_tree(struct preset *p, const struct node *root, enum dialect dialect,
                      const char *file, struct preset_warnings *warnings, struct error *err);

/* Whether `root` has a key that only fader's own presets have. */
bool preset_tree_is_ours(const struct node *root);

/* Whether some key of `root` means something in this dialect. */
bool preset_tree_sets_anything(const struct node *root, enum dialect dialect);

/* Whether fader's presets have this key, and it sets a knob. */
bool preset_key_is_knob(const char *key);

void preset_warnings_add(struct preset_warnings *w, const char *text); /* NULL `w`: dropped */

#endif
