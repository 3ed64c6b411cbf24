/* Where files are: XDG base directories, the package's own data, and models on this computer. All
 * results are owned by the caller. */
#ifndef FADER_CONFIG_PATHS_H
#define FADER_CONFIG_PATHS_H

#include <stddef.h>

#include "base/error.h"

struct model;
struct str;

char *paths_config(const char *name); /* $XDG_CONFIG_HOME/fader/NAME */
char *paths_state(const char *name);  /* $XDG_STATE_HOME/fader/NAME */
char *paths_cache(const char *name);  /* $XDG_CACHE_HOME/fader/NAME */
char *paths_home(const char *name);   /* $HOME/NAME, or the home of the password file */

/* Folders searched for "presets" or "themes", the user's first; then $FADER_DATA_DIR where it is
 * set, else those that lie beside the running program (SOURCE/presets for SOURCE/build/fader,
 * PREFIX/share/fader/presets for PREFIX/bin/fader) and $(pkgdatadir). NULL-terminated, at most 4;
 * paths_list_free. */
char **paths_data(const char *kind);
void paths_list_free(char **list);

/* A GGUF file found on this computer (conventions: Hugging Face, llama.cpp, Ollama, LM Studio
 * caches, fader's own, the working folder). */
struct model_file {
    char *path;
    char *name;        /* as a user would call it */
    const char *where; /* "fader", "Hugging Face", "llama.cpp", "Ollama", "LM Studio", "here" */
    unsigned long long size;
};
struct model_file_list {
    struct model_file *items;
    size_t n, cap;
};
void models_find(struct model_file_list *out); /* fader's own first, then by name; no file twice */
void model_file_list_done(struct model_file_list *list);

/* Turns what -m or /model was given into a path: a file, or the name (or a unique part of it) of a
 * model found. NULL `name`: the default model, else the only one found. NULL with `err`. */
char *models_resolve(const char *name, struct error *err);

/* Opens the file that models_resolve finds; its weights are not loaded. NULL with `err`. */
struct model *models_open(const char *name, struct error *err);

/* Appends the one screen that says what was looked for, where, and what to do. */
void models_explain(struct str *out);

#endif
